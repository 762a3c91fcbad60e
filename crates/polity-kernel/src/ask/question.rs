//! A question, and what happens when a reply is unusable: it is asked again with the error, and finally a default holds.
//!
//! The driver parses replies and repairs their format. Asking again is done here, as straight-line code, so that every try is an
//! effect of its own: journaled before it is used, counted by the budget, and never paid twice. See
//! `docs/decisions/the-ladder-is-in-the-kernel.md`.

use super::{AskError, ChatMessage, Hidden, Request, Role, Step, Value};
use std::sync::Arc;

/// Number of characters of a bad reply that a model is shown again.
const SHOWN: usize = 2_000;

/// A question of an agent, a cohort, a world or a method.
///
/// ```
/// use polity_kernel::ask::{ChatMessage, Question, Request, Role, Value, ResponseFormat};
///
/// let request = Request::new("sim/medium", vec![ChatMessage::text(Role::User, "How many?")], ResponseFormat::number(0.0, 10.0));
/// // A reply that is no such number is shown to the model twice, with what is wrong; then 5 holds.
/// let question = Question::new(request).retries(2).default(Value::Number(5.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The request. Its step is set when it is asked.
    pub request: Request,
    /// What a simulated model may know about it.
    pub hidden: Option<Hidden>,
    /// Maximum number of retries when a reply is unusable.
    pub retries: u8,
    /// What the asker uses when no reply fits. It is shown to people. The answer is still an error that says why.
    pub default: Option<Value>,
}

impl Question {
    /// Makes a question that is asked once and has no default.
    #[must_use]
    pub fn new(request: Request) -> Self {
        Question { request, hidden: None, retries: 0, default: None }
    }

    /// Adds what a simulated model may know about it.
    #[must_use]
    pub fn hidden(self, hidden: Option<Hidden>) -> Self {
        Question { hidden, ..self }
    }

    /// Sets the maximum number of retries.
    #[must_use]
    pub fn retries(self, retries: u8) -> Self {
        Question { retries, ..self }
    }

    /// Sets the default.
    #[must_use]
    pub fn default(self, default: Value) -> Self {
        Question { default: Some(default), ..self }
    }

    /// Returns the step of try `nth`, from 0; `None` for a question that is asked once and has no default.
    pub(super) fn step(&self, nth: u8) -> Option<Step> {
        let default = self.default.is_some();
        (default || self.retries > 0).then_some(Step { nth, last: nth >= self.retries, default })
    }

    /// Shows the model what was wrong with its reply.
    pub(super) fn show(&mut self, unanswered: &AskError) {
        let (raw, why) = match unanswered {
            AskError::Invalid { raw, why } => (raw.as_str(), why.as_str()),
            AskError::Refused(raw) => (raw.as_str(), "it declines to answer, and an answer is needed"),
            AskError::Failed(_) | AskError::Denied(_) => return,
        };
        let end = raw.char_indices().nth(SHOWN).map_or(raw.len(), |(end, _)| end);
        let messages = Arc::make_mut(&mut self.request.messages);
        let shown = raw.get(..end).map(str::trim).unwrap_or_default();
        if !shown.is_empty() {
            messages.push(ChatMessage::text(Role::Assistant, shown));
        }
        let words = format!("That reply cannot be used: {why}. Reply again, in the form that was asked for.");
        messages.push(ChatMessage::text(Role::User, words));
    }
}

impl From<Request> for Question {
    fn from(request: Request) -> Self {
        Question::new(request)
    }
}

impl AskError {
    /// Returns whether asking the question again may help; see [`super::Outcome::may_be_asked_again`].
    #[must_use]
    pub fn may_be_asked_again(&self) -> bool {
        matches!(self, AskError::Invalid { .. } | AskError::Refused(_))
    }
}
