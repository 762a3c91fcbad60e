//! ReAct: a member thinks, acts and observes the result, until the episode ends. See README.md.

use crate::team::{ANSWERS, NO_ANSWER, persona, samples, verdict};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Part, ResponseFormat, Role, Task, Value};
use polity_kernel::environment::Offered;
use polity_kernel::method::{
    Brief, Coordination, DefaultTeam, Kind, Method, Quantity, Records, Strategy, Structure, Taxonomy, TeamContext,
    Verdict,
};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams, Registry};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.method::<React>(files);
}

const STEP: &str = include_str!("prompts/step.md");
const ALONE: &str = include_str!("prompts/alone.md");
/// The field that names the action.
const ACTION: &str = "action";
/// Indices of the method's own records.
const CALL: u16 = 2;
const RESULT: u16 = 3;

/// Think, act, observe.
pub struct React {
    rounds: u32,
}

/// The transcript so far, as it is shown to the member again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Course {
    /// (the member's step, its result).
    steps: Vec<(String, String)>,
    /// The text or number of the last move, if any.
    said: Option<String>,
}

impl Method for React {
    const NAME: &'static str = "react";
    const SUMMARY: &'static str = "A member thinks, calls a tool and sees its result, step by step (ReAct)";
    const RECORDS: &'static [Records] = &[
        ANSWERS[0],
        ANSWERS[1],
        Records { name: "call", doc: "the action that the member takes, with its arguments" },
        Records { name: "result", doc: "what the action returned" },
    ];
    const QUANTITIES: &'static [Quantity] = &[
        Quantity { name: "reward", doc: "total reward of the episode" },
        Quantity { name: "steps", doc: "steps of the episode" },
    ];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 8 };
    const TAXONOMY: Option<Taxonomy> = Some(Taxonomy {
        kind: Kind::Cooperation,
        structure: Structure::Single,
        strategy: Strategy::Model,
        coordination: Coordination::Dynamic,
    });
    type Params = NoParams;

    fn open(_: NoParams, _: usize, rounds: u32) -> Result<Self, Invalid> {
        Ok(React { rounds })
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        if context.episode().is_none() {
            // Without an environment it is a chain of thought.
            let said = samples(context, 0, 1, ALONE).await.into_iter().flatten().next();
            return Ok(verdict(said.map(|stand| stand.answer)));
        }
        let mut course: Course = context.restore()?.unwrap_or_default();
        while context.round() < self.rounds {
            let Some(episode) = context.episode().filter(|episode| !episode.is_done()) else { break };
            let offered = episode.offered(0)?;
            if !self.step(context, &mut course, &offered).await? {
                break;
            }
            context.end_round(&course).await?;
        }
        let done = context.episode().is_some_and(|episode| episode.is_done());
        Ok(verdict(course.said.filter(|_| done)))
    }
}

impl React {
    /// Runs one step. Returns whether the episode can continue: an unusable reply ends it.
    async fn step(
        &self,
        context: &mut TeamContext<'_>,
        course: &mut Course,
        offered: &[Offered],
    ) -> Result<bool, Fault> {
        let response_format = wanted(offered);
        let mut messages = persona(context, 0);
        messages.push(ChatMessage { role: Role::User, parts: self.told(context, offered) });
        for (step, result) in &course.steps {
            messages.push(ChatMessage::text(Role::Assistant, step.clone()));
            messages.push(ChatMessage::text(Role::User, result.clone()));
        }
        let value = match context.ask(Brief::new(0, messages, response_format.clone()).task(Task::Solve)).await {
            Ok(value) => value,
            Err(why) => {
                context.record(0, NO_ANSWER, why.to_string());
                return Ok(false);
            }
        };
        let Some((offer, values)) = read(&value, &response_format, offered) else {
            context.record(0, NO_ANSWER, "the reply names no action");
            return Ok(false);
        };
        let shown = shown(offer, &values);
        course.said = match values.as_slice() {
            [Value::Text(text)] => Some(text.clone()),
            [Value::Number(x)] => Some(x.to_string()),
            _ => None,
        };
        let Some(episode) = context.episode() else { return Ok(false) };
        let result = episode.step(&[offer.with(0, values)])?;
        let reward = result.rewards.first().copied().unwrap_or_default();
        let (total, steps, done) = (episode.total_reward(0), episode.steps(), episode.is_done());
        let told = match result.results.into_iter().next().filter(|text| !text.is_empty()) {
            Some(text) => text,
            None => format!("Done. Reward: {reward}."),
        };
        context.record(0, if done { 0 } else { CALL }, if done { course.said.clone().unwrap_or(shown) } else { shown });
        context.record(0, RESULT, told.clone());
        context.measure(0, total);
        context.measure(1, f64::from(steps));
        course.steps.push((value.to_json(&response_format).to_string(), told));
        Ok(true)
    }

    /// Builds the prompt: the question, the actions, and how to continue.
    fn told(&self, context: &TeamContext<'_>, offered: &[Offered]) -> Vec<Part> {
        let line = |offer: &Offered| {
            let fields: Vec<&str> = offer.arguments.iter().map(|(name, _)| name.as_str()).collect();
            let needs = if fields.is_empty() { String::new() } else { format!(" (needs {})", fields.join(", ")) };
            format!("- {}{needs}: {}", offer.name, offer.doc)
        };
        let actions: Vec<String> = offered.iter().map(line).collect();
        vec![
            Part::Text(context.item.question.clone()),
            Part::Text(format!("What you can do:\n{}", actions.join("\n"))),
            Part::Text(STEP.trim_end().to_owned()),
        ]
    }
}

/// Returns the format of a reply: a thought, an action, and the fields of all actions. Arguments with the same name and form share a
/// field.
fn wanted(offered: &[Offered]) -> ResponseFormat {
    let names = offered.iter().map(|offer| offer.name.clone()).collect();
    let mut fields =
        vec![("thought".to_owned(), ResponseFormat::Text), (ACTION.to_owned(), ResponseFormat::Choice(names))];
    for offer in offered {
        for (name, response_format) in &offer.arguments {
            let field = field(&offer.name, name, response_format, offered);
            if !fields.iter().any(|(known, _)| *known == field) {
                fields.push((field, response_format.clone()));
            }
        }
    }
    ResponseFormat::Record(fields)
}

/// Returns the field of an action's argument: its own name, unless another action has an argument of that name and another form.
fn field(action: &str, name: &str, response_format: &ResponseFormat, offered: &[Offered]) -> String {
    let taken = [ACTION, "thought"].contains(&name)
        || offered
            .iter()
            .flat_map(|offer| &offer.arguments)
            .any(|(other, form)| other == name && form != response_format);
    if taken { format!("{action}-{name}") } else { name.to_owned() }
}

/// Returns the action that a reply names, and the values of its arguments.
fn read<'a>(
    value: &Value,
    response_format: &ResponseFormat,
    offered: &'a [Offered],
) -> Option<(&'a Offered, Vec<Value>)> {
    let ResponseFormat::Record(fields) = response_format else { return None };
    let Some(Value::Choice(chosen)) = value.field(1) else { return None };
    let offer = offered.get(*chosen as usize)?;
    let argument = |(name, response_format): &(String, ResponseFormat)| {
        let field = field(&offer.name, name, response_format, offered);
        let place = fields.iter().position(|(known, _)| *known == field)?;
        value.field(place).cloned()
    };
    let arguments: Option<Vec<Value>> = offer.arguments.iter().map(argument).collect();
    Some((offer, arguments?))
}

/// Formats a move for the record.
fn shown(offer: &Offered, values: &[Value]) -> String {
    let Offered { name, arguments, .. } = offer;
    format!("{name} {}", Value::Record(values.to_vec()).to_json(&ResponseFormat::Record(arguments.clone())))
}
