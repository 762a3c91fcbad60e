//! The form of a reply: what is requested of a server, in a constrained mode or in words, and how its reply is parsed.

use super::reply::{mended, read_reply, strict};
use polity_kernel::ask::{Outcome, ResponseFormat, Value};
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The key of a reply that is not an object itself; servers accept only objects at the root of a schema.
pub(super) const ANSWER: &str = "answer";
/// Number of schemas kept.
const FORMS: usize = 16;

/// Recent schemas, with or without bounds: most requests of a run share a few.
#[derive(Debug, Default)]
pub(super) struct Forms(Mutex<VecDeque<(ResponseFormat, bool, Form)>>);

/// The form of a reply.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Its JSON Schema.
    pub schema: Arc<Json>,
    /// Its length in words, in bytes.
    pub in_words: usize,
}

impl Forms {
    /// The form of a reply; `None` for free text.
    pub fn of(&self, response_format: &ResponseFormat, bounds: bool) -> Option<Form> {
        // The guarded data is valid even after a panic.
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            forms.iter().find(|(of, with, _)| of == response_format && *with == bounds).map(|(.., form)| form.clone());
        known.or_else(|| {
            let form = Form {
                schema: Arc::new(form(response_format, bounds)?),
                in_words: in_words(response_format).map_or(0, |form| form.len()),
            };
            forms.truncate(FORMS - 1);
            forms.push_front((response_format.clone(), bounds, form.clone()));
            Some(form)
        })
    }
}

/// The form requested of the server: an object, in which a choice or a number is under [`ANSWER`].
fn enveloped(response_format: &ResponseFormat) -> Option<ResponseFormat> {
    match response_format {
        ResponseFormat::Choice(_) | ResponseFormat::Number { .. } | ResponseFormat::List { .. } => {
            Some(ResponseFormat::Record(vec![(ANSWER.into(), response_format.clone())]))
        }
        ResponseFormat::Text | ResponseFormat::Record(_) | ResponseFormat::Calls(_) | ResponseFormat::Vector => None,
    }
}

/// The schema of a reply; `None` for free text.
fn form(response_format: &ResponseFormat, bounds: bool) -> Option<Json> {
    let envelope = enveloped(response_format);
    let response_format = envelope.as_ref().unwrap_or(response_format);
    let has_schema = matches!(response_format, ResponseFormat::Record(_) | ResponseFormat::Calls(_));
    has_schema.then(|| response_format.to_schema(bounds))
}

/// The form of a reply in words, for servers without schema support; `None` for free text.
pub(super) fn in_words(response_format: &ResponseFormat) -> Option<String> {
    let schema = form(response_format, true)?;
    if let ResponseFormat::Calls(tools) = response_format {
        let tools: Vec<String> = tools.iter().map(|tool| format!("- {}: {}", tool.name, tool.description)).collect();
        return Some(format!(
            "You can call these tools:\n{}\n\nReply with one JSON object that fits this JSON Schema, and with nothing else. To answer \
             without a call, leave `calls` empty and put the answer in `text`.\n{schema}",
            tools.join("\n")
        ));
    }
    Some(format!(
        "Reply with one JSON object that fits this JSON Schema, and with nothing else, neither words nor a fence around it:\n{schema}"
    ))
}

/// Parses the content: in its envelope or bare (from servers without schema support), unchanged or repaired.
pub(super) fn fit(response_format: &ResponseFormat, content: &str) -> Outcome {
    let reply = |value, repaired| Outcome::Reply { value, raw: content.to_owned(), repaired };
    let inside = |value| match value {
        Value::Record(mut fields) => fields.pop(),
        _ => None,
    };
    let Some(envelope) = enveloped(response_format) else {
        return read_reply(response_format, content);
    };
    if let Ok(value) = strict(response_format, content) {
        return reply(value, false);
    }
    if let Some(value) = strict(&envelope, content).ok().and_then(inside) {
        return reply(value, false);
    }
    if let Some(value) = mended(&envelope, content).ok().and_then(inside) {
        return reply(value, true);
    }
    // Report errors for the form that it seems to have.
    read_reply(if content.trim_start().starts_with('{') { &envelope } else { response_format }, content)
}
