//! Many answers to the same question; the most frequent wins. See README.md for the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, propose, verdict, vote};
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
    registry.method::<SelfConsistency>(files);
}

/// Parameters of self-consistency.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Take one of the answers at random instead of the most frequent (the placebo of the vote).
    by_lot: bool,
    /// The weight of each member's vote, in order. Default: 1 each.
    weights: Option<Vec<f64>>,
}

/// Many answers, and the most frequent.
pub struct SelfConsistency(Params);

const STEPS: Prompt =
    Prompt::new("steps", "tells a member to work the question out step by step", include_str!("prompts/steps.md"));

impl Method for SelfConsistency {
    const NAME: &'static str = "self-consistency";
    const SUMMARY: &'static str = "Many independent answers; the most frequent wins";
    const SHORT: Option<&'static str> = Some("sc");
    const RECORDS: &'static [Records] = &ANSWERS;
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 8, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[STEPS, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, members: usize, _: u32) -> Result<Self, Invalid> {
        if let Some(weights) = &params.weights {
            let as_many = format!("{} weights for a team of {members}", weights.len());
            Invalid::unless(weights.len() == members, "weights", as_many)?;
            let finite = "weights must be finite, and at least 0";
            Invalid::unless(weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0), "weights", finite)?;
        }
        Ok(SelfConsistency(params))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let stands = propose(context, STEPS).await;
        if self.0.by_lot {
            let drawn = context.draws().below(stands.len() as u64) as usize;
            return Ok(verdict(stands.into_iter().nth(drawn).flatten().map(|stand| stand.answer)));
        }
        let weight = |place: usize| match &self.0.weights {
            Some(weights) => members.get(place).and_then(|member| weights.get(*member)).copied().unwrap_or(0.0),
            None => 1.0,
        };
        Ok(verdict(vote::weighted(context.item, &stands, weight)))
    }
}
