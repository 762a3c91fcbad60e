//! The form in which a mind is asked for an action, and what its answers mean.

use super::names::{ANSWER, FAR, MAY, RIGHT, THOUGHTS, invalid};
use super::templates::plain;
use polity_kernel::Invalid;
use polity_kernel::ask::{ResponseFormat, Value};
use polity_kernel::interface::{ActionArgument, Name, NumberSlot, Observation, TableSlot};
use polity_kernel::policy::{PolicySetup, Turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The column of an observation's table whose values an act may name.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The table.
    pub slot: TableSlot,
    /// Position of its column in a row.
    pub place: usize,
    /// The column's name.
    pub column: Name,
    /// Position of a column and the value that marks allowed rows; `None`: all rows are allowed.
    pub only: Option<(usize, f64)>,
}

impl Shown {
    /// Returns the value of the first row that an act can be about; in a feed, the best one.
    #[must_use]
    pub fn first(&self, observation: Observation<'_>) -> Option<f64> {
        let fits = |row: &&[f64]| self.only.is_none_or(|(place, value)| row.get(place) == Some(&value));
        observation.table(self.slot).find(fits).and_then(|row| row.get(self.place)).copied()
    }
}

/// A number, or the name of a choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Given {
    /// A number.
    Number(f64),
    /// A choice, or a text.
    Text(String),
}

impl<'de> Deserialize<'de> for Given {
    // Implemented by hand: an untagged enum would lose the place of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl serde::de::Visitor<'_> for Read {
            type Value = Given;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_f64<E>(self, x: f64) -> Result<Given, E> {
                Ok(Given::Number(x))
            }
            fn visit_i64<E>(self, x: i64) -> Result<Given, E> {
                Ok(Given::Number(x as f64))
            }
            fn visit_u64<E>(self, x: u64) -> Result<Given, E> {
                Ok(Given::Number(x as f64))
            }
            fn visit_str<E>(self, text: &str) -> Result<Given, E> {
                Ok(Given::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// An act as a question.
pub struct ActionForm {
    /// Index of the act's kind.
    pub kind: u16,
    /// Its name.
    pub name: String,
    /// Its argument.
    pub argument: ActionArgument,
    /// The format of its answer.
    pub response_format: ResponseFormat,
    /// The value used when no reply can be used.
    pub default: Option<Value>,
    /// The observation field with the right answer, for simulated models.
    pub right: Option<NumberSlot>,
    /// Its possible targets, if these are observed.
    pub shown: Option<Shown>,
    /// The observation field that says whether it is offered, if the world has one.
    pub may: Option<NumberSlot>,
}

/// Returns the format of the answer that gives an action its argument.
pub(super) fn format_of(name: &str, argument: &ActionArgument) -> ResponseFormat {
    match argument {
        ActionArgument::Number { low, high } => ResponseFormat::number(
            if *low < -FAR { f64::NEG_INFINITY } else { *low },
            if *high > FAR { f64::INFINITY } else { *high },
        ),
        ActionArgument::Choice(options) => ResponseFormat::Choice(options.clone()),
        ActionArgument::Text => ResponseFormat::Text,
        ActionArgument::Record(record) => record.clone(),
        // The options are known in the turn ([`offer`]).
        ActionArgument::Seen { .. } => ResponseFormat::Choice(Vec::new()),
        ActionArgument::Nothing => ResponseFormat::Choice(vec![name.to_owned(), format!("do not {name}")]),
    }
}

fn default_of(given: &Given, response_format: &ResponseFormat) -> Result<Value, String> {
    match (given, response_format) {
        (Given::Number(x), ResponseFormat::Number { low, high, .. }) if (low..=high).contains(&x) => {
            Ok(Value::Number(*x))
        }
        (Given::Number(x), ResponseFormat::Number { low, high, .. }) => {
            Err(format!("must lie in {low}..={high}, is {x}"))
        }
        (Given::Text(text), ResponseFormat::Choice(options)) => {
            match options.iter().position(|option| option == text) {
                Some(i) => Ok(Value::Choice(i as u32)),
                None => Err(format!("`{text}` is not one of {}", options.join(", "))),
            }
        }
        (Given::Text(text), ResponseFormat::Text) => Ok(Value::Text(text.clone())),
        (_, ResponseFormat::Record(_)) => {
            Err("a record cannot have a default; leave it out: without a usable reply, nothing is done".into())
        }
        (_, ResponseFormat::Number { .. }) => Err("must be a number".into()),
        (_, ResponseFormat::Choice(options)) => Err(format!("must be one of {}", options.join(", "))),
        _ => Err("must be text".into()),
    }
}

/// Refuses worlds whose acts are alternatives, for policies whose agents copy others' answers: each agent sees different targets.
///
/// # Errors
/// Such a world.
pub fn no_alternatives(policy: &str, setup: &PolicySetup<'_>) -> Result<(), Invalid> {
    let message = format!(
        "agents of `{policy}` do what others have answered, but the acts of the world `{}` refer to what each agent \
         sees; use `archetype`, `mind` or a rule-based policy",
        setup.world
    );
    Invalid::unless(!setup.interface.alternatives, "kind", message)
}

/// Returns the acts that a mind is asked for.
///
/// # Errors
/// Actions that the world does not have, invalid defaults.
pub fn actions(
    acts: Option<&[String]>,
    default: &BTreeMap<String, Given>,
    setup: &PolicySetup<'_>,
) -> Result<Vec<ActionForm>, Invalid> {
    let all: Vec<String> = setup.interface.acts.iter().map(|act| act.name.to_string()).collect();
    let names = acts.unwrap_or(&all);
    Invalid::unless(!names.is_empty(), "acts", format!("the world `{}` has nothing to decide", setup.world))?;
    if let (true, Some(name)) = (setup.interface.alternatives, default.keys().next()) {
        let message = "the acts of this world are alternatives and have no default: without a usable reply, none is \
                       performed";
        return Err(invalid(&format!("default.{name}"), message));
    }
    if let Some(name) = default.keys().find(|name| !names.contains(name)) {
        return Err(invalid(
            &format!("default.{name}"),
            format!("there is no such act (there are {})", names.join(", ")),
        ));
    }
    let action = |(i, name): (usize, &String)| {
        let (kind, argument) = setup.act(name).map_err(|error| invalid(&format!("acts[{i}]"), error.message))?;
        Invalid::unless(!names[..i].contains(name), &format!("acts[{i}]"), format!("`{name}` appears twice"))?;
        let response_format = format_of(name, &argument);
        let default = default.get(name).map(|given| default_of(given, &response_format)).transpose();
        let default = default.map_err(|message| invalid(&format!("default.{name}"), message))?;
        let right = setup.interface.number(setup.world, &format!("{}{name}", RIGHT)).ok();
        let shown = match argument.clone() {
            ActionArgument::Seen { table, column, only, .. } => {
                let of = only.as_ref().map_or(&column, |(of, _)| of);
                let (slot, [place, of]) = setup.table(&table, [&column, of])?;
                Some(Shown { slot, place, only: only.map(|(_, value)| (of, value)), column })
            }
            _ => None,
        };
        let may = setup.number(&format!("{MAY}{name}")).ok();
        Ok(ActionForm { kind, name: name.clone(), argument, response_format, default, right, shown, may })
    };
    names.iter().enumerate().map(action).collect()
}

impl ActionForm {
    /// Returns the right answer for a simulated model, which the world shows as a number: with as many digits as a person would give, or
    /// the option of that index.
    #[must_use]
    pub fn gold(&self, right: f64) -> String {
        match &self.response_format {
            ResponseFormat::Choice(options) => options.get(right.round() as usize).cloned().unwrap_or_default(),
            _ => format!("{}", (right * 100.0).round() / 100.0),
        }
    }

    /// Performs it with a value of its kind. `tell`: send numbers and texts to those who hear the agent.
    #[inline]
    pub fn perform(&self, value: &Value, turn: &mut Turn<'_>, tell: bool) {
        match (&self.argument, value) {
            (ActionArgument::Nothing, Value::Choice(0)) => turn.act(self.kind, 0.0),
            (ActionArgument::Choice(_), Value::Choice(i)) => turn.act(self.kind, f64::from(*i)),
            (ActionArgument::Number { .. }, Value::Number(x)) => {
                turn.act(self.kind, *x);
                if tell {
                    turn.tell_neighbours(0, *x);
                }
            }
            (ActionArgument::Text, Value::Text(text)) => {
                turn.act_text(self.kind, text.clone());
                if tell {
                    turn.tell_neighbours_text(0, text.clone());
                }
            }
            (ActionArgument::Record(response_format), Value::Record(_)) => {
                turn.act_text(self.kind, value.to_json(response_format).to_string());
            }
            (ActionArgument::Seen { .. }, Value::Number(x)) => turn.act(self.kind, *x),
            (ActionArgument::Seen { .. }, Value::Record(fields)) => {
                if let [Value::Number(x), Value::Text(words)] = fields.as_slice() {
                    turn.act_saying(self.kind, *x, words.clone());
                }
            }
            _ => {}
        }
    }

    /// Performs it; the agent finds the target itself: the first suitable row that it sees. Does nothing without such a row. `said`:
    /// other content, if known; unknown texts are left out.
    pub fn perform_on_first(&self, said: Option<&Value>, turn: &mut Turn<'_>) {
        let words = said.and_then(Value::as_text).filter(|_| self.argument.has_words());
        match (&self.shown, words) {
            (Some(shown), words) => match (shown.first(turn.observation), words) {
                (Some(row), Some(words)) => turn.act_saying(self.kind, row, words),
                (Some(row), None) => turn.act(self.kind, row),
                (None, _) => {}
            },
            (None, _) => match said {
                Some(value) => self.perform(value, turn, false),
                None => turn.act(self.kind, 0.0),
            },
        }
    }

    /// Describes the performed act in words.
    #[must_use]
    pub fn done(&self, value: Option<&Value>) -> String {
        match (value, &self.response_format) {
            (Some(Value::Number(x)), _) => format!("{}: {}", self.name, plain(*x)),
            (Some(Value::Choice(i)), ResponseFormat::Choice(options)) => {
                let option = options.get(*i as usize).map_or("", String::as_str);
                if self.argument == ActionArgument::Nothing {
                    option.to_owned()
                } else {
                    format!("{}: {option}", self.name)
                }
            }
            (Some(Value::Text(text)), _) => format!("{}: {text}", self.name),
            (Some(record @ Value::Record(_)), ResponseFormat::Record(_)) => {
                format!("{}: {}", self.name, record.to_json(&self.response_format))
            }
            (Some(Value::Record(fields)), _) => match fields.as_slice() {
                [Value::Number(x), Value::Text(words)] => format!("{} {}: {words}", self.name, plain(*x)),
                _ => self.name.clone(),
            },
            _ => format!("{}: nothing", self.name),
        }
    }
}

/// Returns the answer format of acts in one question, and its purpose in a word. `thoughts`: they come before the answer.
#[must_use]
pub fn wanted(actions: &[ActionForm], thoughts: bool) -> (ResponseFormat, String) {
    match actions {
        // A record is also put below a name, so that its own fields are not mistaken for the acts.
        [action] if thoughts || matches!(action.response_format, ResponseFormat::Record(_)) => {
            let thoughts = thoughts.then(|| (THOUGHTS.to_owned(), ResponseFormat::Text));
            let answer = (ANSWER.to_owned(), action.response_format.clone());
            (ResponseFormat::Record(thoughts.into_iter().chain([answer]).collect()), action.name.clone())
        }
        [action] => (action.response_format.clone(), action.name.clone()),
        actions => {
            let thoughts = thoughts.then(|| (THOUGHTS.to_owned(), ResponseFormat::Text));
            let wants = actions.iter().map(|action| (action.name.clone(), action.response_format.clone()));
            (ResponseFormat::Record(thoughts.into_iter().chain(wants).collect()), "acts".to_owned())
        }
    }
}

/// Removes the thoughts from the values of an answer, where they come first.
pub fn thoughts(values: &mut Vec<Value>) -> Option<String> {
    let first = if values.is_empty() { None } else { Some(values.remove(0)) };
    first?.as_text().map(str::to_owned)
}

/// Returns the values in an answer to [`wanted`], in order; thoughts first.
#[must_use]
pub fn values(answer: Value) -> Vec<Value> {
    // An act's own value is never a bare record.
    match answer {
        Value::Record(fields) => fields,
        one => vec![one],
    }
}
