//! Many answers; a judge names the best. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, Stand, judge, propose, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<BestOfN>(files);
}

/// Parameters of best of n.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Whether answers meet in pairs, each judged in both orders, instead of all at once.
    tournament: bool,
}

/// Many answers, one chosen.
pub struct BestOfN(Params);

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for BestOfN {
    const NAME: &'static str = "best-of-n";
    const SUMMARY: &'static str = "Many answers, each alone; a judge names the best";
    const SHORT: Option<&'static str> = Some("bon");
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 5, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Competition,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(BestOfN(params))
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let stands: Vec<Stand> = propose(desk, STEPS).await.into_iter().flatten().collect();
        let by = desk.cast("judge");
        let best = match self.0.tournament {
            true => judge::tournament(desk, by, &stands).await,
            false => judge::best(desk, by, &stands).await,
        };
        // Without a judgement the first answer stands.
        Ok(verdict(best.and_then(|i| stands.get(i)).or(stands.first()).map(|stand| stand.answer.clone())))
    }
}
