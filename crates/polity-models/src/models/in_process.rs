//! Models that are functions of the program that runs a scenario.

use super::provider::{Answering, Exchange, Provider, ProviderError};
use super::reply::read_reply;
use polity_kernel::ask::{Effect, Outcome, Request, Usage};
use polity_kernel::tree::nearest;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// A function's reply to a [`Request`].
///
/// A text is parsed like any model's reply: unchanged for free text, as an option's text for a choice, as a number, or as JSON for a
/// record or list. Anything convertible to text is a reply: `"yes".into()`, `42.0.into()`, `serde_json::json!({"guess": 3}).into()`, and
/// a `Result`, whose error is [`Reply::Failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The reply as the model gives it.
    Text(String),
    /// The model declines, with its words.
    Refused(String),
    /// No reply, with the reason.
    Failed(String),
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Reply::Text(text)
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Text(text.to_owned())
    }
}

impl From<f64> for Reply {
    fn from(number: f64) -> Self {
        Reply::Text(number.to_string())
    }
}

impl From<serde_json::Value> for Reply {
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::String(text) => Reply::Text(text),
            json => Reply::Text(json.to_string()),
        }
    }
}

impl<T: Into<Reply>, E: Display> From<Result<T, E>> for Reply {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(reply) => reply.into(),
            Err(error) => Reply::Failed(error.to_string()),
        }
    }
}

type Function = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A provider whose models are functions. They run on threads of their own, several at once, and may block; they cost nothing.
#[derive(Clone)]
pub struct InProcess {
    name: String,
    /// By the part of the name after the slash; `None` handles all other names.
    models: BTreeMap<Option<String>, Function>,
}

impl InProcess {
    /// Creates a provider of this name, without models.
    #[must_use]
    pub fn new(name: &str) -> Self {
        InProcess { name: name.to_owned(), models: BTreeMap::new() }
    }

    /// Adds a model of this name; `None`: of any name.
    #[must_use]
    pub fn with<R: Into<Reply>>(
        mut self,
        model: Option<&str>,
        answer: impl Fn(&Request) -> R + Send + Sync + 'static,
    ) -> Self {
        self.models.insert(model.map(str::to_owned), Arc::new(move |request| answer(request).into()));
        self
    }

    fn function(&self, model: &str) -> Option<&Function> {
        let own = model.split_once('/').map_or(model, |(_, own)| own);
        self.models.get(&Some(own.to_owned())).or_else(|| self.models.get(&None))
    }
}

impl Provider for InProcess {
    fn name(&self) -> &str {
        &self.name
    }

    fn models(&self) -> Vec<String> {
        self.models.keys().flatten().map(|model| format!("{}/{model}", self.name)).collect()
    }

    fn check(&self, model: &str) -> Result<(), String> {
        if self.function(model).is_some() {
            return Ok(());
        }
        let known = self.models();
        let meant = nearest(model, known.iter().map(String::as_str));
        let meant = meant.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        Err(format!("`{model}`: this program has no such model{meant} (it has {})", known.join(", ")))
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn simulated(&self) -> bool {
        false
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        Box::pin(async move {
            let model = &effect.request.model;
            let Some(function) = self.function(model).cloned() else {
                return Err(ProviderError::Fatal { why: format!("`{model}`: this program has no such model") });
            };
            let request = effect.request.clone();
            let began = std::time::Instant::now();
            let reply = tokio::task::spawn_blocking(move || function(&request)).await;
            let reply = reply.map_err(|error| ProviderError::Fatal {
                why: format!("the function that answers for `{model}` did not finish: {error}"),
            })?;
            let outcome = match reply {
                Reply::Text(raw) => read_reply(&effect.request.response_format, &raw),
                Reply::Refused(raw) => Outcome::Refused { raw },
                Reply::Failed(why) => Outcome::Failed { why },
            };
            let latency_ms = began.elapsed().as_secs_f64() * 1000.0;
            Ok(Exchange { outcome, usage: Usage { latency_ms, ..Usage::default() }, reasoning: None })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_that_no_model_has_is_refused_with_the_nearest() {
        let provider = InProcess::new("mine").with(Some("echo"), |_| "yes");
        assert_eq!(provider.check("mine/echo"), Ok(()));
        let why = provider.check("mine/eco").unwrap_err();
        assert!(why.contains("did you mean `mine/echo`?"), "{why}");
        assert_eq!(provider.with(None, |_| "no").check("mine/eco"), Ok(()));
    }

    #[test]
    fn what_can_be_a_text_makes_a_reply() {
        assert_eq!(Reply::from(2.5), Reply::Text("2.5".into()));
        assert_eq!(Reply::from(serde_json::json!({"a": 1})), Reply::Text(r#"{"a":1}"#.into()));
        assert_eq!(Reply::from(Err::<&str, _>("gone")), Reply::Failed("gone".into()));
    }
}
