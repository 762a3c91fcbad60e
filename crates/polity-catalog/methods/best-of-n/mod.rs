//! Many answers; a judge names the best. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, propose, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
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
    /// Compare answers in pairs, each judged in both orders, instead of all at once.
    tournament: bool,
}

/// Many answers, one chosen.
pub struct BestOfN(Params);

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));

impl Method for BestOfN {
    const NAME: &'static str = "best-of-n";
    const SUMMARY: &'static str = "Many independent answers; a judge picks the best";
    const SHORT: Option<&'static str> = Some("bon");
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["judge"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 5, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Competition,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, judge::CHOOSE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(BestOfN(params))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let stands: Vec<Stand> = propose(context, STEPS).await.into_iter().flatten().collect();
        let by = context.cast("judge");
        let best = match self.0.tournament {
            true => judge::tournament(context, by, &stands).await,
            false => judge::best(context, by, &stands).await,
        };
        // Without a judgement the first answer is kept.
        Ok(verdict(best.and_then(|i| stands.get(i)).or(stands.first()).map(|stand| stand.answer.clone())))
    }
}
