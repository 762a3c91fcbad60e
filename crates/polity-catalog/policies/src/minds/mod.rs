//! Common parts of policies that ask models: prompts ([`prompts`], over [`templates`]), acts as typed questions, groups of agents
//! ([`cells`]). Not a leaf: leaves use it, and it names none of them.

pub mod action_form;
pub mod bounds;
pub mod cells;
pub mod memory;
pub mod names;
pub mod offer;
pub mod prompts;
pub mod templates;

pub use action_form::{ActionForm, Given, actions, no_alternatives, thoughts, values, wanted};
pub use names::{ACTIVE, COUNTS, FAR, MAY, OPEN_QUESTION, RIGHT, THOUGHTS, invalid};
use polity_kernel::Invalid;
use polity_kernel::ask::Part;
use polity_kernel::messages::{Body, Message};
use polity_kernel::policy::{PolicySetup, Turn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use templates::plain;

/// A model and the share of agents that use it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelShare {
    /// `provider/model`.
    pub model: String,
    /// Probability that an agent is given it at birth; all sum to 1.
    pub share: f64,
}

/// Returns the models for agents, with their shares.
///
/// # Errors
/// Invalid names, shares that do not sum to 1, no model at all.
pub fn models_of(
    model: Option<&str>,
    models: &[ModelShare],
    setup: &PolicySetup<'_>,
) -> Result<(Vec<String>, Vec<f64>), Invalid> {
    let named = |key: &str, model: &str| {
        let message = format!("a model is named `provider/model`, for instance `sim/medium`, not `{model}`");
        Invalid::unless(model.contains('/'), key, message)
    };
    if models.is_empty() {
        let given = model.is_some();
        let Some(model) = model.or(setup.model) else {
            return Err(invalid(
                "",
                "no model is given; write `model: sim/medium` here, or once for the whole scenario",
            ));
        };
        named(if given { "model" } else { "" }, model)?;
        return Ok((vec![model.to_owned()], vec![1.0]));
    }
    Invalid::unless(model.is_none(), "models", "give `model` or `models`, not both")?;
    for (i, ModelShare { model, share }) in models.iter().enumerate() {
        named(&format!("models[{i}].model"), model)?;
        let fits = *share > 0.0 && *share <= 1.0;
        Invalid::unless(fits, &format!("models[{i}].share"), format!("must be above 0 and at most 1, is {share}"))?;
    }
    let sum: f64 = models.iter().map(|model| model.share).sum();
    Invalid::unless((sum - 1.0).abs() < 1e-6, "models", format!("the shares sum to {sum}, not to 1"))?;
    Ok(models.iter().map(|of| (of.model.clone(), of.share)).unzip())
}

/// Returns the neighbours' messages that an agent hears in its turn: at most `most`, drawn from all that came.
#[must_use]
pub fn heard(turn: &Turn<'_>, most: usize) -> Vec<Part> {
    let inbox = turn.inbox();
    let mut heard: Vec<usize> = (0..inbox.len()).collect();
    if heard.len() > most {
        turn.draws.clone().shuffle(&mut heard);
        heard.truncate(most);
        heard.sort_unstable();
    }
    let said = |inbox: Message<'_>| {
        let by = format!("Agent {}", inbox.from);
        Part::Said { by, answer: in_words(inbox.body), reasons: String::new() }
    };
    heard.into_iter().filter_map(|i| inbox.get(i)).map(said).collect()
}

/// Returns the content of a message as a model reads it: a record as JSON, a vector as its numbers in brackets; numbers to six digits.
fn in_words(body: Body<'_>) -> String {
    match body {
        Body::Number(x) => plain(x),
        Body::Text(text) | Body::Record(text) => text.to_owned(),
        Body::Vector(vector) => format!("[{}]", vector.numbers().map(plain).collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::messages::Bucket;

    #[test]
    fn messages_are_read_as_what_they_are() {
        let mut bucket = Bucket::default();
        bucket.number(3, 0, 0, 1.0 / 3.0);
        bucket.text(3, 0, 0, "round, red");
        bucket.record(3, 0, 0, r#"{"colour":"red"}"#);
        bucket.vector(3, 0, 0, &[1.0 / 3.0, 2.0]);
        let read: Vec<String> = bucket.inbox().into_iter().map(|message| in_words(message.body)).collect();
        assert_eq!(read, ["0.333333", "round, red", r#"{"colour":"red"}"#, "[0.333333, 2]"]);
    }
}
