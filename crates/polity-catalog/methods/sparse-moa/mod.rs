//! A mixture of agents in which a judge passes on only the best proposals and a moderator can stop early. See README.md for the source
//! and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::judge::{Prune, Pruning};
use crate::team::{ANSWERS, Stand, judge, layers, verdict, write};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<SparseMoa>(files);
}

/// Parameters of a sparse mixture.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Proposals that the judge passes on.
    keep: u32,
    /// Let the moderator stop before the last layer.
    stop_early: bool,
    /// Give members roles, written by one of them.
    roles: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { keep: 2, stop_early: true, roles: true }
    }
}

/// A mixture that passes on few proposals.
pub struct SparseMoa {
    params: Params,
    layers: u32,
}

/// The state between layers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    roles: Vec<String>,
    proposals: Vec<Stand>,
    ended: bool,
}

const ROLE: &str = include_str!("prompts/role.md");

impl Method for SparseMoa {
    const NAME: &'static str = "sparse-moa";
    const SUMMARY: &'static str =
        "A mixture of agents where a judge passes on the best proposals and a moderator stops early (SMoA)";
    const SHORT: Option<&'static str> = Some("smoa");
    const RECORDS: &'static [Records] = &ANSWERS;
    const ROLES: &'static [&'static str] = &["judge", "moderator", "aggregator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 4, rounds: 3 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Coopetition,
        structure: Structure::Centralised,
        strategy: Strategy::Role,
        coordination: Coordination::Dynamic,
    });
    type Params = Params;

    fn open(params: Params, members: usize, layers: u32) -> Result<Self, Invalid> {
        match params.keep {
            k if k == 0 || k as usize > members => Err(Invalid {
                key: "keep".into(),
                message: format!("the judge passes on 1 to {members} proposals, not {k}"),
            }),
            _ if layers < 2 => Err(Invalid {
                key: String::new(),
                message: "a mixture has at least 2 layers: set `rounds: 2` or more".into(),
            }),
            _ => Ok(SparseMoa { params, layers }),
        }
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let (by, aggregator) = (context.cast("judge"), context.cast("aggregator"));
        let mut state: State = context.restore()?.unwrap_or_default();
        while context.round() < self.layers - 1 && !state.ended {
            if self.params.roles && state.roles.is_empty() {
                for n in 0..members.len() {
                    let order = format!("{}\nIt is member {} of {}.", ROLE.trim_end(), n + 1, members.len());
                    state.roles.push(write(context, by, &[], &order).await.unwrap_or_default());
                }
            }
            let shown: Vec<Part> = state.proposals.iter().map(Stand::said).collect();
            let order = layers::instruction(&state.proposals);
            let briefs = members
                .iter()
                .enumerate()
                .map(|(n, member)| {
                    let role = state.roles.get(n).map_or(String::new(), |role| format!("Your part: {role}\n"));
                    crate::team::to_solve(context, *member, &shown, &format!("{role}{order}"))
                })
                .collect();
            let proposals: Vec<Stand> = crate::team::solve(context, briefs).await.into_iter().flatten().collect();
            let keep = self.params.keep as usize;
            let pruning = Pruning { prune: Prune::Marks, keep, scale: (1.0, 10.0), instruction: None };
            state.proposals = judge::kept(context, by, proposals, pruning).await;
            // After the last layer there is nothing to stop.
            if self.params.stop_early
                && context.round() + 2 < self.layers
                && let Some(best) = state.proposals.first().cloned()
            {
                let moderator = context.cast("moderator");
                state.ended = judge::check(context, moderator, &best, "").await.is_some_and(|(right, _)| right);
            }
            context.end_round(&state).await?;
        }
        Ok(verdict(layers::aggregate(context, aggregator, &state.proposals).await.map(|stand| stand.answer)))
    }
}
