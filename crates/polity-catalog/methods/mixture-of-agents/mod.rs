//! Layers of members who see the proposals of the previous layer; one member combines them. See README.md for the source and what is
//! reproduced.

#[cfg(test)]
mod tests;

use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, layers, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<MixtureOfAgents>(files);
}

/// Defence against members who mislead (Wolf et al. 2025), before proposals are shown to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Defence {
    /// Nothing.
    #[default]
    None,
    /// The last layer is repeated, each time without a random third of the proposals; the majority wins.
    DropoutAndVote,
    /// Only the largest group of proposals with the same answer is shown.
    ClusterAndFilter,
}

/// Number of repeats of the last layer under `dropout-and-vote`.
const VOTES: u32 = 5;

/// Parameters of a mixture of agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Defence against members who mislead.
    defence: Defence,
    /// Make the same calls, but choose the answer at random: a proposal of the last layer instead of the aggregator's answer, or one of
    /// the votes instead of the majority (a placebo).
    by_lot: bool,
}

/// Layers of proposals.
pub struct MixtureOfAgents {
    params: Params,
    layers: u32,
}

impl Method for MixtureOfAgents {
    const NAME: &'static str = "mixture-of-agents";
    const SUMMARY: &'static str =
        "Layers of members who see the proposals of the previous layer; an aggregator combines them";
    const SHORT: Option<&'static str> = Some("moa");
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["aggregator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 6, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[layers::SYNTHESISE, layers::ALONE, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, layers: u32) -> Result<Self, Invalid> {
        match layers {
            0 | 1 => Err(Invalid {
                key: String::new(),
                message: "a mixture has at least 2 layers: set `rounds: 2` or more".into(),
            }),
            layers => Ok(MixtureOfAgents { params, layers }),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let (members, aggregator) = (context.workers(), context.cast("aggregator"));
        let mut proposals: Vec<Stand> = context.restore()?.unwrap_or_default();
        while context.round() < self.layers - 1 {
            let shown = self.filtered(context, &proposals);
            proposals = layers::layer(context, &members, &shown).await.into_iter().flatten().collect();
            context.end_round(&proposals).await?;
        }
        let mut draws = context.draws();
        if self.params.defence != Defence::DropoutAndVote {
            let shown = self.filtered(context, &proposals);
            let combined = layers::aggregate(context, aggregator, &shown).await;
            let answer = if self.params.by_lot { one_of(&proposals, &mut draws) } else { combined };
            return Ok(verdict(answer.map(|stand| stand.answer)));
        }
        let briefs = (0..VOTES)
            .map(|n| layers::to_synthesise(context, aggregator, &two_thirds(&proposals, &mut draws)).sample(n))
            .collect();
        let answers = crate::team::solve(context, briefs).await;
        if self.params.by_lot {
            let answers: Vec<Stand> = answers.into_iter().flatten().collect();
            return Ok(verdict(one_of(&answers, &mut draws).map(|stand| stand.answer)));
        }
        Ok(verdict(vote::plurality(context.item, &answers)))
    }
}

impl MixtureOfAgents {
    fn filtered(&self, context: &TeamContext<'_>, proposals: &[Stand]) -> Vec<Stand> {
        if self.params.defence != Defence::ClusterAndFilter {
            return proposals.to_vec();
        }
        let all: Vec<Option<Stand>> = proposals.iter().cloned().map(Some).collect();
        let largest = vote::plurality(context.item, &all);
        let same = |stand: &&Stand| largest.as_ref().is_some_and(|answer| context.item.same(answer, &stand.answer));
        proposals.iter().filter(same).cloned().collect()
    }
}

/// Returns a random two thirds of the proposals, rounded up, in their order.
fn two_thirds(proposals: &[Stand], draws: &mut Draws) -> Vec<Stand> {
    let mut kept: Vec<usize> = (0..proposals.len()).collect();
    while kept.len() > (proposals.len() * 2).div_ceil(3) {
        kept.remove(draws.below(kept.len() as u64) as usize);
    }
    kept.into_iter().filter_map(|i| proposals.get(i).cloned()).collect()
}

fn one_of(stands: &[Stand], draws: &mut Draws) -> Option<Stand> {
    stands.get(draws.below(stands.len() as u64) as usize).cloned()
}
