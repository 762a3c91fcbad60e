//! Many samples of one model, brought together by it. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, Stand, layers, samples, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SelfMoa>(files);
}

/// Parameters of Self-MoA.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Proposals that are brought together at a time: with fewer than there are, the synthesis so far is one of the next (Self-MoA-Seq).
    window: Option<u32>,
}

/// Samples of one model, brought together.
pub struct SelfMoa(Params);

const STEPS: &str = include_str!("prompts/steps.md");

impl Method for SelfMoa {
    const NAME: &'static str = "self-moa";
    const SUMMARY: &'static str = "Many samples of the best member's model, brought together at once or in a window";
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 6, rounds: 1 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        match params.window {
            Some(0 | 1) => Err(Invalid { key: "window".into(), message: "a window holds at least 2 proposals".into() }),
            _ => Ok(SelfMoa(params)),
        }
    }

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let (n, best) = (desk.workers().len() as u32, desk.cast("best"));
        let aggregator =
            desk.team.iter().position(|member| member.role.as_deref() == Some("aggregator")).unwrap_or(best);
        let proposals: Vec<Stand> = samples(desk, best, n, STEPS).await.into_iter().flatten().collect();
        let window = self.0.window.map_or(proposals.len(), |window| window as usize).max(2);
        let mut rest = proposals.into_iter();
        let mut shown: Vec<Stand> = rest.by_ref().take(window).collect();
        let mut held = layers::aggregate(desk, aggregator, &shown).await;
        loop {
            shown = held.clone().into_iter().chain(rest.by_ref().take(window - 1)).collect();
            if shown.len() < 2 {
                return Ok(verdict(held.map(|stand| stand.answer)));
            }
            held = layers::aggregate(desk, aggregator, &shown).await;
        }
    }
}
