//! A workflow: a task graph as data. Members are asked, tools are called, functions are run, in loops, branches and conversations. See
//! README.md.

mod flow;
mod outputs;
mod perform;
mod plan;
#[cfg(test)]
mod tests;

use self::perform::Performance;
use self::plan::Step;
use crate::team::{ANSWERS, DECEIVE, FORM, LENGTH, act, floor, judge, refine, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Member, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<Workflow>(files);
}

/// Indices of the method's own records.
const OUTPUT: u16 = 2;
const CALL: u16 = 3;
const RESULT: u16 = 4;
/// Indices of the quantities that the method itself measures.
const TOOL_CALLS: u16 = 0;
const STEPS: u16 = 1;

/// Parameters of a workflow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The steps, in order. Default: the first member is asked for the answer.
    steps: Vec<Step>,
    /// The step whose output is the answer. Default: the last step that was done.
    answer: Option<String>,
    /// Steps whose outputs are shown with all letters and digits covered: the same work, without information (a placebo).
    blank: Vec<String>,
    /// Steps that pass or fail, or choose, by lot (a placebo).
    drawn: Vec<String>,
}

impl Default for Params {
    fn default() -> Self {
        let ask = Step { ask: Some("Answer the question.".into()), ..Step::default() };
        Params { steps: vec![ask], answer: None, blank: Vec::new(), drawn: Vec::new() }
    }
}

/// A task graph.
pub struct Workflow(Params);

impl Method for Workflow {
    const NAME: &'static str = "workflow";
    const SUMMARY: &'static str = "A task graph as data: ask, act, call, run, vote, choose, review, revise; loops, branches, routes, hand-offs, chats";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "output", doc: "the output of a step, after its id" },
        Records { name: "call", doc: "a call that the member makes, with its arguments" },
        Records { name: "result", doc: "what the call returned" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "tool-calls", doc: "calls of tools" },
        Quantity { name: "steps", doc: "steps that were done" },
        Quantity { name: "recall", doc: "share of the right results that were found, as the checker measures it" },
        Quantity { name: "precision", doc: "share of the found results that are right, as the checker measures it" },
        Quantity { name: "grounded", doc: "share of claims with evidence, as the checker measures it" },
        Quantity { name: "coverage", doc: "share of the work that was covered, as the checker measures it" },
        Quantity { name: "size", doc: "size of what was made, in the checker's unit" },
        Quantity { name: "value", doc: "value of what was made, in the checker's unit" },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Centralised,
        strategy: Strategy::Rule,
        coordination: Coordination::Static,
    });
    const PROMPTS: &'static [Prompt] = &[
        floor::ROUTE,
        floor::HAND_OFF,
        floor::NEXT_SPEAKER,
        floor::SPEAK,
        judge::CHOOSE,
        judge::CHECK,
        refine::AGAIN,
        act::ANSWER_DOC,
        act::REASONS_DOC,
        FORM,
        LENGTH,
        DECEIVE,
    ];
    type Params = Params;

    fn open(params: Params, _: usize, _: u32) -> Result<Self, Invalid> {
        plan::check(&params)?;
        Ok(Workflow(params))
    }

    fn check_team(&self, team: &[Member]) -> Result<(), Invalid> {
        let mut checked = Ok(());
        plan::walk(&self.0.steps, "steps", &mut |step, path| {
            for (key, name) in step.members() {
                if checked.is_ok()
                    && let Err(message) = plan::place_of(team, name)
                {
                    checked = Err(Invalid { key: format!("{path}.{key}"), message });
                }
            }
        });
        checked
    }

    fn idle(&self, team: &[Member], member: usize) -> Option<String> {
        (!plan::uses(&self.0.steps, team, member)).then(|| "no step is for it".into())
    }

    /// Every step is a round with a checkpoint, so a killed run resumes at the last step.
    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let mut performance = Performance::new(&self.0, context)?;
        performance.all(&self.0.steps).await?;
        Ok(verdict(performance.answer().filter(|answer| !answer.is_empty())))
    }
}
