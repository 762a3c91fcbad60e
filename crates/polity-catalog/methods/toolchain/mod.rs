//! ToolChain*: a search over calls of tools for the cheapest plan. See README.md.

#[cfg(test)]
mod tests;

use crate::team::plans::{Branching, Found, best_first, carry_out, monte_carlo};
use crate::team::{ANSWER, ANSWERS, DECEIVE, FORM, LENGTH, NO_ANSWER, plans, samples, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<ToolChain>(files);
}

const ALONE: Prompt =
    Prompt::new("alone", "asks the member when there are no calls to search", include_str!("prompts/alone.md"));

/// How the tree of calls is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// The least cost so far plus the estimated rest first.
    #[default]
    AStar,
    /// The least cost so far first, without an estimate.
    UniformCost,
    /// Monte Carlo tree search.
    MonteCarlo,
}

/// Parameters of the search.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// How the tree is searched.
    search: Search,
    /// Maximum number of nodes that are expanded.
    #[schemars(range(min = 1))]
    nodes: u32,
    /// In how many replies the member proposes the calls from a node. 0: all offered tools that need no arguments are tried, and no model
    /// is asked.
    proposals: u32,
    /// Weight of the bonus for calls that were seldom tried, in Monte Carlo tree search.
    exploration: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { search: Search::AStar, nodes: 10_000, proposals: 3, exploration: 0.1 }
    }
}

/// A search over calls.
pub struct ToolChain {
    params: Params,
}

impl Method for ToolChain {
    const NAME: &'static str = "toolchain";
    const SUMMARY: &'static str =
        "Searches a tree of tool calls for the cheapest plan, then carries it out (ToolChain*)";
    const RECORDS: &'static [Records] =
        &[ANSWERS[0], ANSWERS[1], Records { name: "call", doc: "a call of the plan that is carried out" }];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "expanded", doc: "nodes of the tree that were expanded" },
        Quantity { name: "plan-cost", doc: "cost of the plan: minus the total reward" },
        Quantity { name: "plan-calls", doc: "calls of the plan" },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[ALONE, plans::PROPOSE, plans::SO_FAR, FORM, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::unless(params.nodes > 0, "nodes", "must be at least 1")?;
        Invalid::within(0..=100, "proposals", params.proposals)?;
        let exploration = params.exploration;
        Invalid::unless(exploration.is_finite() && exploration >= 0.0, "exploration", "must be 0 or more")?;
        Ok(ToolChain { params })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let Params { search, nodes, proposals, exploration } = self.params;
        let branching = match proposals {
            0 => Branching::All,
            replies => Branching::Proposed { member: 0, replies },
        };
        if context.episode_ref().is_none() {
            // Without calls to search it is a chain of thought.
            let said = samples(context, 0, 1, ALONE).await.into_iter().flatten().next();
            return Ok(verdict(said.map(|stand| stand.answer)));
        }
        let Found { plan, expanded } = match search {
            Search::AStar => best_first(context, branching, 1.0, nodes).await?,
            Search::UniformCost => best_first(context, branching, 0.0, nodes).await?,
            Search::MonteCarlo => monte_carlo(context, branching, exploration, nodes).await?,
        };
        context.measure(0, f64::from(expanded));
        let Some((plan, cost)) = plan else {
            context.record(0, NO_ANSWER, format!("no plan was found in {expanded} nodes"));
            return Ok(verdict(None));
        };
        carry_out(context, &plan).await?;
        for call in &plan {
            context.record(0, 2, format!("{} {}", call.tool, call.arguments));
        }
        context.measure(1, cost);
        context.measure(2, plan.len() as f64);
        let names: Vec<&str> = plan.iter().map(|call| call.tool.as_str()).collect();
        let answer = names.join(", ");
        context.record(0, ANSWER, answer.clone());
        Ok(verdict(Some(answer)))
    }
}
