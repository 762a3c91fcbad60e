//! A mixture of agents in which a judge passes on only the best proposals and a moderator can stop early. See README.md for the source
//! and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::judge::{Prune, Pruning};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, judge, layers, persona_in, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, ResponseFormat, Role, Task, Value};
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Preparation, Prompt, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
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
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Proposals that the judge passes on.
    keep: u32,
    /// Let the moderator stop before the last layer.
    stop_early: bool,
    /// Give members roles, which the judge writes once a run.
    roles: bool,
    /// What the data set is about, for the writer of roles. Default: its first three questions.
    about: Option<String>,
}

impl Default for Params {
    fn default() -> Self {
        Params { keep: 2, stop_early: true, roles: true, about: None }
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
    proposals: Vec<Stand>,
    ended: bool,
}

const ROLES: Prompt =
    Prompt::new("roles", "asks the judge for a part for every member, once a run", include_str!("prompts/roles.md"))
        .may_hold(&["n"]);
/// Questions that stand for the data set if it is not described.
const EXAMPLES: usize = 3;

const PART: Prompt = Prompt::new("part", "tells a member its part", "Your part: {{ part }}").must_hold(&["part"]);

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
    const PROMPTS: &'static [Prompt] =
        &[ROLES, PART, layers::SYNTHESISE, layers::ALONE, judge::MARK, judge::CHECK, FORM, LENGTH, DECEIVE];
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

    async fn prepare(&self, context: &mut Preparation<'_>) -> Result<(), Fault> {
        if !self.params.roles {
            return Ok(());
        }
        let (by, n) = (context.cast("judge"), context.workers().len() as u32);
        let about = self.params.about.clone().unwrap_or_else(|| {
            let questions = context.items.iter().take(EXAMPLES).map(|item| item.question.as_str());
            questions.collect::<Vec<_>>().join("\n\n")
        });
        let order = context.filled(&ROLES, &[("n", &n.to_string())]);
        let parts = vec![Part::Text(about), Part::Text(order)];
        let mut messages = persona_in(context.team, by, &context.filled(&DECEIVE, &[]));
        messages.push(ChatMessage { role: Role::User, parts });
        let list = ResponseFormat::List { of: Box::new(ResponseFormat::Text), least: n, most: n };
        let format = ResponseFormat::Record(vec![("roles".into(), list)]);
        let heard = context.ask(Brief::new(by, messages, format).task(Task::Write)).await;
        // If the request for roles fails, members have no roles.
        if let Some(Value::List(roles)) = heard.ok().as_ref().and_then(|value| value.field(0)) {
            let roles: Vec<&str> = roles.iter().filter_map(Value::as_text).map(str::trim).collect();
            context.keep(&roles)?;
        }
        Ok(())
    }

    fn unused_role(&self) -> Option<(&'static str, &'static str)> {
        (!(self.params.stop_early && self.layers > 2))
            .then_some(("moderator", "a moderator is asked with `stop_early` and three layers or more"))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let members = context.workers();
        let (by, aggregator) = (context.cast("judge"), context.cast("aggregator"));
        let mut state: State = context.restore()?.unwrap_or_default();
        let roles: Vec<String> = if self.params.roles { context.prepared()?.unwrap_or_default() } else { Vec::new() };
        while context.round() < self.layers - 1 && !state.ended {
            let shown: Vec<Part> = state.proposals.iter().map(Stand::said).collect();
            let order = context.prompt(&layers::instruction(&state.proposals)).to_owned();
            let briefs = members
                .iter()
                .enumerate()
                .map(|(n, member)| {
                    let part = |role: &String| format!("{}\n", context.filled(&PART, &[("part", role)]));
                    let role = roles.get(n).map_or(String::new(), part);
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
