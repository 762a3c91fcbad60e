//! What policies that ask models have in common: the words agents are told ([`prompts`], over [`templates`]), acts as typed questions, groups of
//! agents ([`cells`]). Not a leaf: leaves use it, and it names none of them.

pub mod bounds;
pub mod cells;
pub mod memory;
pub mod offer;
pub mod prompts;
pub mod templates;

use offer::Shown;
use polity_kernel::Invalid;
use polity_kernel::ask::{Value, Want};
use polity_kernel::policy::{Binding, Turn};
use polity_kernel::sight::{ActArgument, NumberSlot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use templates::plain;

/// Name of the sight field that says by 0 that an agent has nothing to decide in a round.
pub const ACTIVE: &str = "active";
/// Sight fields that begin so hold right answers, for simulated models: no prompt may show them.
pub const RIGHT: &str = "right-";
/// Bounds so far away are none.
pub const FAR: f64 = 1e15;
/// Bytes of an open question with its prompts, for estimates of memory.
pub const OPEN_QUESTION: usize = 10_000;
/// Bytes of an agent's share of its group's counts, for estimates of memory.
pub const COUNTS: usize = 300;
/// The field of a reply that is the decision, where there is but one.
const ANSWER: &str = "answer";
/// The field of a reply that holds thoughts.
pub const THOUGHTS: &str = "thoughts";

/// An error at a key of the policy's parameters.
pub fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}

/// A model and the share of agents that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelShare {
    /// `provider/model`.
    pub model: String,
    /// Probability with which an agent is given it at birth; all sum to 1.
    pub share: f64,
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
    // By hand: an untagged enum would lose the place of an error.
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
pub struct Deed {
    /// Index of the act's kind.
    pub kind: u16,
    /// Its name.
    pub name: String,
    /// What it carries.
    pub argument: ActArgument,
    /// What it is asked for as.
    pub want: Want,
    /// What holds when no reply can be used.
    pub default: Option<Value>,
    /// The sight field with the right answer, for simulated models.
    pub right: Option<NumberSlot>,
    /// What it may name, where that is something seen.
    pub shown: Option<Shown>,
}

/// What a world's act is asked for as.
fn want_of(name: &str, argument: &ActArgument) -> Want {
    match argument {
        ActArgument::Number { low, high } => Want::number(
            if *low < -FAR { f64::NEG_INFINITY } else { *low },
            if *high > FAR { f64::INFINITY } else { *high },
        ),
        ActArgument::Choice(options) => Want::Choice(options.clone()),
        ActArgument::Text => Want::Text,
        ActArgument::Record(record) => record.clone(),
        // What there is to choose from is known in the turn ([`offer`]).
        ActArgument::Seen { .. } => Want::Choice(Vec::new()),
        ActArgument::Nothing => Want::Choice(vec![name.to_owned(), format!("do not {name}")]),
    }
}

fn default_of(given: &Given, want: &Want) -> Result<Value, String> {
    match (given, want) {
        (Given::Number(x), Want::Number { low, high, .. }) if (low..=high).contains(&x) => Ok(Value::Number(*x)),
        (Given::Number(x), Want::Number { low, high, .. }) => Err(format!("must lie in {low}..={high}, is {x}")),
        (Given::Text(text), Want::Choice(options)) => match options.iter().position(|option| option == text) {
            Some(i) => Ok(Value::Choice(i as u32)),
            None => Err(format!("`{text}` is none of {}", options.join(", "))),
        },
        (Given::Text(text), Want::Text) => Ok(Value::Text(text.clone())),
        (_, Want::Record(_)) => {
            Err("a record has no default: leave it out, and nothing is done without a usable reply".into())
        }
        (_, Want::Number { .. }) => Err("must be a number".into()),
        (_, Want::Choice(options)) => Err(format!("must be one of {}", options.join(", "))),
        _ => Err("must be a text".into()),
    }
}

/// The models that agents may be given, with their shares.
///
/// # Errors
/// Names that are none, shares that do not sum to 1, no model at all.
pub fn models_of(
    model: Option<&str>,
    models: &[ModelShare],
    binding: &Binding<'_>,
) -> Result<(Vec<String>, Vec<f64>), Invalid> {
    let named = |key: &str, model: &str| {
        let message = format!("a model is named `provider/model`, for instance `sim/medium`, not `{model}`");
        Invalid::unless(model.contains('/'), key, message)
    };
    if models.is_empty() {
        let given = model.is_some();
        let Some(model) = model.or(binding.model) else {
            return Err(invalid(
                "",
                "which model does it ask? Write `model: sim/medium` here, or once for the whole scenario",
            ));
        };
        named(if given { "model" } else { "" }, model)?;
        return Ok((vec![model.to_owned()], vec![1.0]));
    }
    Invalid::unless(model.is_none(), "models", "give `model` or `models`, not both")?;
    for (i, ModelShare { model, share }) in models.iter().enumerate() {
        named(&format!("models[{i}].model"), model)?;
        let fits = *share > 0.0 && *share <= 1.0;
        Invalid::unless(fits, &format!("models[{i}].share"), format!("lies above 0 and up to 1, not {share}"))?;
    }
    let sum: f64 = models.iter().map(|model| model.share).sum();
    Invalid::unless((sum - 1.0).abs() < 1e-6, "models", format!("the shares sum to {sum}, not to 1"))?;
    Ok(models.iter().map(|of| (of.model.clone(), of.share)).unzip())
}

/// Refuses worlds whose acts are alternatives, for policies whose agents do what others have answered: what an act is about is seen by each
/// for itself.
///
/// # Errors
/// Such a world.
pub fn no_alternatives(policy: &str, binding: &Binding<'_>) -> Result<(), Invalid> {
    let message = format!(
        "`{policy}` has agents do what others have answered, and the acts of the world `{}` name what each of them sees; take `archetype`, `mind` or a policy by rules",
        binding.world
    );
    Invalid::unless(!binding.interface.alternatives, "kind", message)
}

/// The acts that a mind is asked for.
///
/// # Errors
/// Acts that the world does not have, defaults that do not fit.
pub fn deeds(
    acts: Option<&[String]>,
    default: &BTreeMap<String, Given>,
    binding: &Binding<'_>,
) -> Result<Vec<Deed>, Invalid> {
    let all: Vec<String> = binding.interface.acts.iter().map(|act| act.name.to_string()).collect();
    let names = acts.unwrap_or(&all);
    Invalid::unless(!names.is_empty(), "acts", format!("the world `{}` has nothing to decide", binding.world))?;
    if let (true, Some(name)) = (binding.interface.alternatives, default.keys().next()) {
        let message = "the acts of this world are alternatives: without a usable reply none is performed";
        return Err(invalid(&format!("default.{name}"), message));
    }
    if let Some(name) = default.keys().find(|name| !names.contains(name)) {
        return Err(invalid(
            &format!("default.{name}"),
            format!("there is no such act (there are {})", names.join(", ")),
        ));
    }
    let deed = |(i, name): (usize, &String)| {
        let (kind, argument) = binding.act(name).map_err(|error| invalid(&format!("acts[{i}]"), error.message))?;
        Invalid::unless(!names[..i].contains(name), &format!("acts[{i}]"), format!("`{name}` stands here twice"))?;
        let want = want_of(name, &argument);
        let default = default.get(name).map(|given| default_of(given, &want)).transpose();
        let default = default.map_err(|message| invalid(&format!("default.{name}"), message))?;
        let right = binding.interface.number(binding.world, &format!("{}{name}", RIGHT)).ok();
        let shown = match argument.clone() {
            ActArgument::Seen { table, column, only, .. } => {
                let of = only.as_ref().map_or(&column, |(of, _)| of);
                let (slot, [place, of]) = binding.table(&table, [&column, of])?;
                Some(Shown { slot, place, only: only.map(|(_, value)| (of, value)), column })
            }
            _ => None,
        };
        Ok(Deed { kind, name: name.clone(), argument, want, default, right, shown })
    };
    names.iter().enumerate().map(deed).collect()
}

impl Deed {
    /// What a simulated model is told of the right answer, which the world shows as a number: as many digits as a person would give, or
    /// the option of that index.
    #[must_use]
    pub fn gold(&self, right: f64) -> String {
        match &self.want {
            Want::Choice(options) => options.get(right.round() as usize).cloned().unwrap_or_default(),
            _ => format!("{}", (right * 100.0).round() / 100.0),
        }
    }

    /// Performs it with a value of its kind. `tell`: those who hear the agent are told of numbers and texts.
    #[inline]
    pub fn perform(&self, value: &Value, turn: &mut Turn<'_>, tell: bool) {
        match (&self.argument, value) {
            (ActArgument::Nothing, Value::Choice(0)) => turn.act(self.kind, 0.0),
            (ActArgument::Choice(_), Value::Choice(i)) => turn.act(self.kind, f64::from(*i)),
            (ActArgument::Number { .. }, Value::Number(x)) => {
                turn.act(self.kind, *x);
                if tell {
                    turn.tell_neighbours(0, *x);
                }
            }
            (ActArgument::Text, Value::Text(text)) => {
                turn.act_text(self.kind, text.clone());
                if tell {
                    turn.tell_neighbours_text(0, text.clone());
                }
            }
            (ActArgument::Record(want), Value::Record(_)) => {
                turn.act_text(self.kind, value.to_json(want).to_string());
            }
            (ActArgument::Seen { .. }, Value::Number(x)) => turn.act(self.kind, *x),
            (ActArgument::Seen { .. }, Value::Record(fields)) => {
                if let [Value::Number(x), Value::Text(words)] = fields.as_slice() {
                    turn.act_saying(self.kind, *x, words.clone());
                }
            }
            _ => {}
        }
    }

    /// Performs it, as the agent finds for itself what it is about: the first row of what it sees that it can be about. Where there is no
    /// such row nothing is done. `said`: what it carries besides, if that is known; texts that are not are left out.
    pub fn perform_on_first(&self, said: Option<&Value>, turn: &mut Turn<'_>) {
        let words = said.and_then(Value::as_text).filter(|_| self.argument.has_words());
        match (&self.shown, words) {
            (Some(shown), words) => match (shown.first(turn.sight), words) {
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

    /// It as done, in words.
    #[must_use]
    pub fn done(&self, value: Option<&Value>) -> String {
        match (value, &self.want) {
            (Some(Value::Number(x)), _) => format!("{}: {}", self.name, plain(*x)),
            (Some(Value::Choice(i)), Want::Choice(options)) => {
                let option = options.get(*i as usize).map_or("", String::as_str);
                if self.argument == ActArgument::Nothing {
                    option.to_owned()
                } else {
                    format!("{}: {option}", self.name)
                }
            }
            (Some(Value::Text(text)), _) => format!("{}: {text}", self.name),
            (Some(record @ Value::Record(_)), Want::Record(_)) => {
                format!("{}: {}", self.name, record.to_json(&self.want))
            }
            (Some(Value::Record(fields)), _) => match fields.as_slice() {
                [Value::Number(x), Value::Text(words)] => format!("{} {}: {words}", self.name, plain(*x)),
                _ => self.name.clone(),
            },
            _ => format!("{}: nothing", self.name),
        }
    }
}

/// What acts are asked for as, in one question, and what it is for in a word. `thoughts`: they stand before the answer.
#[must_use]
pub fn wanted(deeds: &[Deed], thoughts: bool) -> (Want, String) {
    match deeds {
        // A record stands below a name, too: its own fields are not to be taken for the acts.
        [deed] if thoughts || matches!(deed.want, Want::Record(_)) => {
            let thoughts = thoughts.then(|| (THOUGHTS.to_owned(), Want::Text));
            let answer = (ANSWER.to_owned(), deed.want.clone());
            (Want::Record(thoughts.into_iter().chain([answer]).collect()), deed.name.clone())
        }
        [deed] => (deed.want.clone(), deed.name.clone()),
        deeds => {
            let thoughts = thoughts.then(|| (THOUGHTS.to_owned(), Want::Text));
            let wants = deeds.iter().map(|deed| (deed.name.clone(), deed.want.clone()));
            (Want::Record(thoughts.into_iter().chain(wants).collect()), "acts".to_owned())
        }
    }
}

/// Takes the thoughts off the values of an answer, in which they come first.
pub fn thoughts(values: &mut Vec<Value>) -> Option<String> {
    let first = if values.is_empty() { None } else { Some(values.remove(0)) };
    first?.as_text().map(str::to_owned)
}

/// The values in an answer to what [`wanted`] says, in order; thoughts first.
#[must_use]
pub fn values(answer: Value) -> Vec<Value> {
    // An act's own value is no record that stands alone.
    match answer {
        Value::Record(fields) => fields,
        one => vec![one],
    }
}
