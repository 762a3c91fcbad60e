//! Layers of members who see what the layer before has proposed; one brings it together. See README.md for the source and what is reproduced.

use crate::team::{ANSWERS, Stand, layers, verdict, vote};
use polity_kernel::Invalid;
use polity_kernel::method::{Coordination, Desk, Form, Kind, Method, Records, Strategy, Structure, Usual, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<MixtureOfAgents>(files);
}

/// What is done against members who mislead (Wolf et al. 2025), before proposals are shown to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Defence {
    /// Nothing.
    #[default]
    None,
    /// The last layer is done several times, each time with a third of the proposals left out by lot; most win.
    DropoutAndVote,
    /// Only the largest group of proposals with the same answer is shown.
    ClusterAndFilter,
}

/// How often the last layer is done under `dropout-and-vote`.
const VOTES: u32 = 5;

/// Parameters of a mixture of agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What is done against members who mislead.
    defence: Defence,
}

/// Layers of proposals.
pub struct MixtureOfAgents {
    params: Params,
    layers: u32,
}

impl Method for MixtureOfAgents {
    const NAME: &'static str = "mixture-of-agents";
    const SUMMARY: &'static str =
        "Layers of members who see what the layer before proposed; an aggregator brings it together";
    const SHORT: Option<&'static str> = Some("moa");
    const RECORDS: &'static [Records] = &ANSWERS;
    const USUAL: Usual = Usual { members: 6, rounds: 3 };
    const FORM: Option<Form> = Some(Form {
        kind: Kind::Cooperation,
        structure: Structure::Hierarchical,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
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

    async fn run(&self, desk: &mut Desk<'_>) -> Result<Verdict, Fault> {
        let (members, aggregator) = (desk.workers(), desk.cast("aggregator"));
        let mut proposals: Vec<Stand> = desk.restore()?.unwrap_or_default();
        while desk.round() < self.layers - 1 {
            let shown = self.filtered(desk, &proposals);
            proposals = layers::layer(desk, &members, &shown).await.into_iter().flatten().collect();
            desk.end_round(&proposals).await?;
        }
        if self.params.defence != Defence::DropoutAndVote {
            let shown = self.filtered(desk, &proposals);
            return Ok(verdict(layers::aggregate(desk, aggregator, &shown).await.map(|stand| stand.answer)));
        }
        let mut draws = desk.draws();
        let briefs = (0..VOTES)
            .map(|n| layers::to_synthesise(desk, aggregator, &two_thirds(&proposals, &mut draws)).sample(n))
            .collect();
        let answers = crate::team::solve(desk, briefs).await;
        Ok(verdict(vote::plurality(desk.item, &answers)))
    }
}

impl MixtureOfAgents {
    fn filtered(&self, desk: &Desk<'_>, proposals: &[Stand]) -> Vec<Stand> {
        if self.params.defence != Defence::ClusterAndFilter {
            return proposals.to_vec();
        }
        let all: Vec<Option<Stand>> = proposals.iter().cloned().map(Some).collect();
        let largest = vote::plurality(desk.item, &all);
        let same = |stand: &&Stand| largest.as_ref().is_some_and(|answer| desk.item.same(answer, &stand.answer));
        proposals.iter().filter(same).cloned().collect()
    }
}

/// Two thirds of the proposals, rounded up, by lot; in their order.
fn two_thirds(proposals: &[Stand], draws: &mut Draws) -> Vec<Stand> {
    let mut kept: Vec<usize> = (0..proposals.len()).collect();
    while kept.len() > (proposals.len() * 2).div_ceil(3) {
        kept.remove(draws.below(kept.len() as u64) as usize);
    }
    kept.into_iter().filter_map(|i| proposals.get(i).cloned()).collect()
}
