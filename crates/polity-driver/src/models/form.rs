//! The form of a reply: what is asked of a server, in its constrained mode or in words, and how what comes is read.

use super::read_reply;
use super::reply::{mended, strict};
use polity_kernel::ask::{Outcome, Value, Want};
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The name under which a reply stands that is no object by itself; servers take only objects at the root of a schema.
pub(super) const ANSWER: &str = "answer";
/// Forms of replies that are kept as schemas.
const FORMS: usize = 16;

/// The last forms of replies, as schemas with or without bounds: most questions of a run have the same few.
#[derive(Debug, Default)]
pub(super) struct Forms(Mutex<VecDeque<(Want, bool, Form)>>);

/// The form of a reply.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Its JSON Schema.
    pub schema: Arc<Json>,
    /// Bytes of it in words.
    pub in_words: usize,
}

impl Forms {
    /// The form of a reply; free text has none.
    pub fn of(&self, want: &Want, bounds: bool) -> Option<Form> {
        // What is behind it is as good after a panic as before.
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = forms.iter().find(|(of, with, _)| of == want && *with == bounds).map(|(.., form)| form.clone());
        known.or_else(|| {
            let form =
                Form { schema: Arc::new(form(want, bounds)?), in_words: in_words(want).map_or(0, |form| form.len()) };
            forms.truncate(FORMS - 1);
            forms.push_front((want.clone(), bounds, form.clone()));
            Some(form)
        })
    }
}

/// What is asked of the server: an object, in which a choice or a number stands as [`ANSWER`].
fn enveloped(want: &Want) -> Option<Want> {
    match want {
        Want::Choice(_) | Want::Number { .. } | Want::List { .. } => {
            Some(Want::Record(vec![(ANSWER.into(), want.clone())]))
        }
        Want::Text | Want::Record(_) | Want::Vector => None,
    }
}

/// The schema of a reply; free text has none.
fn form(want: &Want, bounds: bool) -> Option<Json> {
    let envelope = enveloped(want);
    let want = envelope.as_ref().unwrap_or(want);
    matches!(want, Want::Record(_)).then(|| want.to_schema(bounds))
}

/// The form of a reply in words, for servers that take no schema; free text has none.
pub(super) fn in_words(want: &Want) -> Option<String> {
    let schema = form(want, true)?;
    Some(format!(
        "Reply with one JSON object that fits this JSON Schema, and with nothing else, neither words nor a fence around it:\n{schema}"
    ))
}

/// Reads the content: in its envelope, or bare, as servers send it that know no schema; as it came, or with its form mended.
pub(super) fn fit(want: &Want, content: &str) -> Outcome {
    let reply = |value, repaired| Outcome::Reply { value, raw: content.to_owned(), repaired };
    let inside = |value| match value {
        Value::Record(mut fields) => fields.pop(),
        _ => None,
    };
    let Some(envelope) = enveloped(want) else {
        return read_reply(want, content);
    };
    if let Ok(value) = strict(want, content) {
        return reply(value, false);
    }
    if let Some(value) = strict(&envelope, content).ok().and_then(inside) {
        return reply(value, false);
    }
    if let Some(value) = mended(&envelope, content).ok().and_then(inside) {
        return reply(value, true);
    }
    // What is wrong with it in the form that it seems to have.
    read_reply(if content.trim_start().starts_with('{') { &envelope } else { want }, content)
}
