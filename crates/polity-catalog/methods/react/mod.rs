//! ReAct: a member thinks, calls tools and sees their results, until it answers. See README.md.

use crate::team::act::{self, Acted, Course};
use crate::team::{ANSWER, ANSWERS, DECEIVE, FORM, LENGTH, samples, talk, verdict};
use polity_kernel::Invalid;
use polity_kernel::method::{
    Coordination, DefaultTeam, Kind, Member, Method, Prompt, Quantity, Records, Strategy, Structure, Taxonomy,
    TeamContext, Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<React>(files);
}

const STEP: Prompt = Prompt::new("step", "tells the member how to work with tools", include_str!("prompts/step.md"));
const ALONE: Prompt = Prompt::new("alone", "asks the member when there are no tools", include_str!("prompts/alone.md"));
/// Indices of the method's own records.
const CALL: u16 = 2;
const RESULT: u16 = 3;

/// Think, act, observe.
pub struct React {
    rounds: u32,
}

impl Method for React {
    const NAME: &'static str = "react";
    const SUMMARY: &'static str = "A member thinks, calls a tool and sees its result, step by step (ReAct)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "call", doc: "a call that the member makes, with its arguments" },
        Records { name: "result", doc: "what the call returned" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "reward", doc: "total reward of the episode" },
        Quantity { name: "steps", doc: "steps of the episode; without one, calls of tools" },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 8 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Model,
        coordination: Coordination::Dynamic,
    });
    const PROMPTS: &'static [Prompt] = &[STEP, ALONE, act::ANSWER_DOC, act::REASONS_DOC, FORM, LENGTH, DECEIVE];
    type Params = NoParams;

    fn open(_: NoParams, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(React { rounds })
    }

    fn idle(&self, _: &[Member], member: usize) -> Option<String> {
        (member > 0).then(|| "the first member does all the work".into())
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        if offers_nothing(context)? {
            // Without tools it is a chain of thought.
            let said = samples(context, 0, 1, ALONE).await.into_iter().flatten().next();
            return Ok(verdict(said.map(|stand| stand.answer)));
        }
        let mut course: Course = context.restore()?.unwrap_or_default();
        let mut answer = None;
        while context.round() < self.rounds && !is_over(context) {
            let (opening, may) = (talk(context, 0, &[], STEP), act::offers(context, 0)?);
            let acted = act::step(context, 0, &mut course, opening, may, None).await?;
            if acted == Acted::Called {
                act::record(context, 0, &course, [CALL, RESULT]);
            }
            if is_over(context) {
                answer = last_argument(&course);
            }
            match acted {
                Acted::Called => {}
                Acted::Answered { answer: said, .. } => answer = Some(said),
                Acted::Nothing => break,
            }
            if let Some(answer) = &answer {
                context.record(0, ANSWER, answer.clone());
                measure(context);
                return Ok(verdict(Some(answer.clone())));
            }
            measure(context);
            context.end_round(&course).await?;
        }
        Ok(verdict(None))
    }
}

/// Whether there is neither an episode nor a tool.
fn offers_nothing(context: &TeamContext<'_>) -> Result<bool, Fault> {
    Ok(context.episode_ref().is_none() && context.tools(0)?.is_empty())
}

fn is_over(context: &TeamContext<'_>) -> bool {
    context.episode_ref().is_some_and(polity_kernel::environment::Episode::is_done)
}

/// The only argument of the last call, as a text: the answer, if the call ended the episode with one.
fn last_argument(course: &Course) -> Option<String> {
    let arguments = course.steps.last()?.calls.last()?.read();
    let [value] = arguments.values().collect::<Vec<_>>()[..] else { return None };
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Measures the reward and the steps of the episode, or the calls that were made.
fn measure(context: &mut TeamContext<'_>) {
    let calls = f64::from(context.calls());
    let (reward, steps) = match context.episode_ref() {
        Some(episode) => (Some(episode.total_reward(0)), f64::from(episode.steps())),
        None => (None, calls),
    };
    if let Some(reward) = reward {
        context.measure(0, reward);
    }
    context.measure(1, steps);
}
