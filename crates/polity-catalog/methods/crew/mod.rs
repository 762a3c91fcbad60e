//! A crew: members with roles and tools work on an item one after the other. See README.md.

#[cfg(test)]
mod tests;

use crate::team::act::{self, Acted, Course};
use crate::team::{ANSWER, ANSWERS, DECEIVE, LENGTH, NO_ANSWER, Stand, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Member, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Crew>(files);
}

const WORK: Prompt = Prompt::new("work", "tells a member to do its part", include_str!("prompts/work.md"));
const LAST: Prompt =
    Prompt::new("last", "tells the last member to finish", include_str!("prompts/last.md")).may_hold(&["length"]);
const TASK: Prompt = Prompt::new("task", "tells a member its task", "Your task: {{ task }}").must_hold(&["task"]);
/// Indices of the method's own records.
const CALL: u16 = 2;
const RESULT: u16 = 3;

/// A task of a crew.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrewTask {
    /// The member that does it, by its place in the team from 0.
    member: u32,
    /// What to do.
    task: String,
}

/// Parameters of a crew.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The tasks, in order. Default: every member works on the item once, in order, as its persona says.
    tasks: Vec<CrewTask>,
    /// Maximum number of replies of a member in a task.
    #[schemars(range(min = 1, max = 100))]
    steps: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { tasks: Vec::new(), steps: 8 }
    }
}

/// Members that work one after the other.
pub struct Crew {
    tasks: Vec<CrewTask>,
    steps: u32,
}

/// What the crew has done so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// Results of finished tasks.
    results: Vec<Stand>,
    /// The work on the task at hand.
    course: Course,
    /// Replies in it.
    replies: u32,
}

impl Method for Crew {
    const NAME: &'static str = "crew";
    const SUMMARY: &'static str =
        "Members with roles and tools work one after the other, each with the results of those before it";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "call", doc: "a call that the member makes, with its arguments" },
        Records { name: "result", doc: "what the call returned" },
    ];
    const QUANTITIES: &'static [Quantity] = &[Quantity { name: "tool-calls", doc: "calls of tools" }];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 3, rounds: 30 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Decentralised,
        strategy: Strategy::Role,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[WORK, LAST, TASK, act::ANSWER_DOC, act::REASONS_DOC, LENGTH, DECEIVE];
    type Params = Params;

    fn open(params: Params, members: usize, _: u32) -> Result<Self, Invalid> {
        Invalid::within(1..=100, "steps", params.steps)?;
        for (i, CrewTask { member, .. }) in params.tasks.iter().enumerate() {
            let message = format!("there is no member {member}; the team has {members}, numbered from 0");
            Invalid::unless((*member as usize) < members, &format!("tasks[{i}].member"), &message)?;
        }
        let each = |member| CrewTask { member, task: String::new() };
        let tasks = match params.tasks.is_empty() {
            true => (0..members as u32).map(each).collect(),
            false => params.tasks,
        };
        Ok(Crew { tasks, steps: params.steps })
    }

    fn idle(&self, _: &[Member], member: usize) -> Option<String> {
        let is_named = self.tasks.iter().any(|task| task.member as usize == member);
        (!is_named).then(|| "none of the `tasks` is for it".into())
    }

    /// Every reply is a round, so a killed run resumes at the last one.
    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut state: State = context.restore()?.unwrap_or_default();
        // Absent members do none.
        let is_absent = |member: u32| context.team.get(member as usize).is_some_and(Member::is_absent);
        let tasks: Vec<&CrewTask> = self.tasks.iter().filter(|task| !is_absent(task.member)).collect();
        while let Some(task) = tasks.get(state.results.len()) {
            let member = task.member as usize;
            let shown: Vec<Part> = state.results.iter().map(Stand::said).collect();
            let next = tasks.get(state.results.len() + 1).map(|task| task.member as usize);
            let opening = talk(context, member, &shown, &instruction(context, task, next.is_none()));
            let may =
                if state.replies + 1 < self.steps { act::offers(context, member)? } else { act::answer_only(context) };
            state.replies += 1;
            match act::step(context, member, &mut state.course, opening, may, None).await? {
                Acted::Called => act::record(context, member, &state.course, [CALL, RESULT]),
                Acted::Answered { answer, reasons } => finish(context, &mut state, (member, next), answer, reasons),
                // Without a usable reply the task ends without a result, and the others go on.
                Acted::Nothing => finish(context, &mut state, (member, next), String::new(), String::new()),
            }
            context.measure(0, f64::from(context.calls()));
            context.end_round(&state).await?;
        }
        Ok(verdict(state.results.pop().map(|stand| stand.answer).filter(|answer| !answer.is_empty())))
    }
}

/// Ends the task of a member with a result, which those after it are shown. `next`: the member of the next task.
fn finish(
    context: &mut TeamContext<'_>,
    state: &mut State,
    (member, next): (usize, Option<usize>),
    answer: String,
    reasons: String,
) {
    if answer.is_empty() {
        context.record(member, NO_ANSWER, "the task has no result");
    } else {
        context.record(member, ANSWER, answer.clone());
    }
    if let Some(next) = next {
        context.tell(member, next, answer.clone());
    }
    let by = context.team.get(member).map_or(String::new(), |member| member.name.clone());
    state.results.push(Stand { by, answer, reasons });
    (state.course, state.replies) = (Course::default(), 0);
}

fn instruction(context: &TeamContext<'_>, task: &CrewTask, last: bool) -> String {
    let how = match last {
        true => context.filled(&LAST, &[("length", context.prompt(&LENGTH))]),
        false => context.prompt(&WORK).to_owned(),
    };
    match task.task.trim() {
        "" => how,
        own => format!("{}\n{how}", context.filled(&TASK, &[("task", own)])),
    }
}
