//! Many samples of one model, which it combines. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, layers, samples, verdict};
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
    registry.method::<SelfMoa>(files);
}

/// Parameters of Self-MoA.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of proposals combined at a time. If smaller than the total, the synthesis so far is one of the next (Self-MoA-Seq).
    window: Option<u32>,
}

/// Samples of one model, combined by it.
pub struct SelfMoa(Params);

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));

impl Method for SelfMoa {
    const NAME: &'static str = "self-moa";
    const SUMMARY: &'static str = "Many samples from the best member's model, combined all at once or window by window";
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["best", "aggregator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 6, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, layers::SYNTHESISE, layers::ALONE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        match params.window {
            Some(0 | 1) => {
                Err(Invalid { key: "window".into(), message: "a window must hold at least 2 proposals".into() })
            }
            _ => Ok(SelfMoa(params)),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let (n, best) = (context.workers().len() as u32, context.cast("best"));
        let aggregator =
            context.team.iter().position(|member| member.role.as_deref() == Some("aggregator")).unwrap_or(best);
        let proposals: Vec<Stand> = samples(context, best, n, STEPS).await.into_iter().flatten().collect();
        let window = self.0.window.map_or(proposals.len(), |window| window as usize).max(2);
        let mut rest = proposals.into_iter();
        let mut shown: Vec<Stand> = rest.by_ref().take(window).collect();
        let mut held = layers::aggregate(context, aggregator, &shown).await;
        loop {
            shown = held.clone().into_iter().chain(rest.by_ref().take(window - 1)).collect();
            if shown.len() < 2 {
                return Ok(verdict(held.map(|stand| stand.answer)));
            }
            held = layers::aggregate(context, aggregator, &shown).await;
        }
    }
}
