//! An orchestrator with a task ledger and a progress ledger, who directs the others and replans when the work stalls. See README.md for
//! the source and what is reproduced.

#[cfg(test)]
mod tests;

use crate::team::ledger::{self, Entry, Tasks};
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, Stand, solve, to_solve, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Method, Prompt, Records, Strategy, Structure, Taxonomy, TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<MagenticOne>(files);
}

/// Parameters of the orchestrator.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of steps without progress before a new plan.
    max_stalls: u32,
    /// Make new plans; otherwise the work follows the first plan (the ablation).
    replan: bool,
    /// Clear the thread with each new plan; otherwise everybody still sees the old orders and answers (a placebo: the same work).
    new_thread: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { max_stalls: 3, replan: true, new_thread: true }
    }
}

/// An orchestrator and its ledgers.
pub struct MagenticOne {
    params: Params,
    turns: u32,
}

/// The state between turns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    tasks: Option<Tasks>,
    /// All orders and answers since the last plan. Everybody sees them.
    thread: Vec<Entry>,
    /// The last answer, also of an earlier thread.
    last: Option<Stand>,
    stalls: u32,
    plans: u32,
    /// Whether the last answer settles the question.
    satisfied: bool,
}

/// Indices of [`Method::RECORDS`].
const ORDER: u16 = 2;
const PLANNED: u16 = 3;
const FINAL: Prompt =
    Prompt::new("final", "asks the orchestrator for the final answer", include_str!("prompts/final.md"));
const WORK: Prompt = Prompt::new("work", "tells a member to follow its order", include_str!("prompts/work.md"));

const TASK: Prompt = Prompt::new("task", "tells a member its task", "Your task: {{ task }}").must_hold(&["task"]);

impl Method for MagenticOne {
    const NAME: &'static str = "magentic-one";
    const SUMMARY: &'static str =
        "An orchestrator keeps task and progress ledgers, directs the others and replans on stalls (Magentic-One)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "order", doc: "what the orchestrator told the member to do" },
        Records { name: "planned", doc: "number of the plan that the orchestrator made" },
    ];
    const ROLES: &'static [&'static str] = &["orchestrator"];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 4, rounds: 20 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Model,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[
        FINAL,
        WORK,
        TASK,
        ledger::FACTS,
        ledger::PLAN,
        ledger::PROGRESS,
        ledger::LEDGER,
        ledger::TEAM,
        ledger::ORDER,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, turns: u32) -> Result<Self, Invalid> {
        Ok(MagenticOne { params, turns })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let leader = context.cast("orchestrator");
        let workers: Vec<usize> = context.workers().into_iter().filter(|member| *member != leader).collect();
        // An orchestrator alone directs itself.
        let workers = if workers.is_empty() { vec![leader] } else { workers };
        let names: Vec<String> = workers.iter().map(|member| context.team[*member].name.clone()).collect();
        let can: Vec<String> =
            workers.iter().map(|i| format!("{}: {}", context.team[*i].name, context.team[*i].persona)).collect();
        let can = can.join("\n");
        let mut state: State = context.restore()?.unwrap_or_default();
        while context.round() < self.turns && !state.satisfied {
            let tasks = match state.tasks.take() {
                Some(tasks) => tasks,
                None => self.planned(context, leader, &can, None, &mut state).await,
            };
            let progress = ledger::progress(context, leader, &tasks, &names, &state.thread).await;
            state.stalls =
                progress.as_ref().map_or(state.stalls + 1, |progress| ledger::stalls(state.stalls, progress));
            let answered = state.thread.iter().any(|entry| matches!(entry, Entry::Answer(_)));
            match progress {
                // Nothing has been answered yet, so nothing can settle it.
                Some(progress) if progress.satisfied && answered => state.satisfied = true,
                // A new plan comes before anybody works on.
                _ if self.params.replan && state.stalls >= self.params.max_stalls => {
                    state.tasks = Some(self.planned(context, leader, &can, Some(&tasks), &mut state).await);
                    context.end_round(&state).await?;
                    continue;
                }
                Some(progress) => {
                    let member = workers[progress.next.min(workers.len() - 1)];
                    context.record(member, ORDER, &progress.order);
                    let to = context.team[member].name.clone();
                    let mut shown = vec![tasks.shown(context)];
                    shown.extend(Entry::all(context, &state.thread));
                    shown.push(Part::Text(context.filled(&TASK, &[("task", &progress.order)])));
                    state.thread.push(Entry::Order { to, order: progress.order });
                    let brief = to_solve(context, member, &shown, WORK).sample(context.round());
                    for stand in solve(context, vec![brief]).await.into_iter().flatten() {
                        state.last = Some(stand.clone());
                        state.thread.push(Entry::Answer(stand));
                    }
                }
                None => {}
            }
            state.tasks = Some(tasks);
            context.end_round(&state).await?;
        }
        // The orchestrator gives the answer, with the whole thread in view.
        let Some(last) = state.last.clone() else { return Ok(Verdict::default()) };
        let shown: Vec<Part> =
            state.tasks.iter().map(|tasks| tasks.shown(context)).chain(Entry::all(context, &state.thread)).collect();
        let brief = to_solve(context, leader, &shown, FINAL);
        let answer = solve(context, vec![brief]).await.into_iter().next().flatten().unwrap_or(last);
        Ok(verdict(Some(answer.answer)))
    }
}

impl MagenticOne {
    /// The orchestrator makes a plan from what failed, if anything. The thread begins anew with it.
    async fn planned(
        &self,
        context: &mut TeamContext<'_>,
        leader: usize,
        can: &str,
        before: Option<&Tasks>,
        state: &mut State,
    ) -> Tasks {
        let plan = ledger::plan(context, leader, can, before, &state.thread).await;
        state.plans += 1;
        state.stalls = 0;
        if self.params.new_thread {
            state.thread.clear();
        }
        context.record(leader, PLANNED, state.plans.to_string());
        plan
    }
}
