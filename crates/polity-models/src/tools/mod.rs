//! Tools: work done on this machine, called like models (`tool/python`). One folder per tool.
//!
//! Rules for model answers therefore apply to tools: answers are journaled before use, replayed, counted and shown.
//! `docs/decisions/a-tool-is-a-model.md`.

pub mod python;
mod tool;

pub use tool::{Tool, Working};

use crate::models::{Answering, Exchange, Provider, ProviderError};
use polity_kernel::ask::{Effect, Outcome, Part, Request, Role, Usage};
use polity_kernel::scenario::Price;
use polity_kernel::tree::nearest;
use std::time::Instant;

/// The provider's name.
const NAME: &str = "tool";

/// The provider `tool`: all tools of a build. They cost nothing.
pub struct Tools {
    all: Vec<Box<dyn Tool>>,
}

impl Tools {
    /// Creates all tools of this build.
    #[must_use]
    pub fn standard() -> Self {
        Tools::of(vec![Box::new(python::Python::standard())])
    }

    /// Tools of your own.
    #[must_use]
    pub fn of(all: Vec<Box<dyn Tool>>) -> Self {
        Tools { all }
    }

    fn tool(&self, model: &str) -> Result<&dyn Tool, String> {
        let short = model.split_once('/').map_or("", |(_, short)| short);
        if let Some(tool) = self.all.iter().find(|tool| tool.name() == short) {
            return Ok(tool.as_ref());
        }
        let known: Vec<&str> = self.all.iter().map(|tool| tool.name()).collect();
        let have = known.iter().map(|name| format!("`{NAME}/{name}`")).collect::<Vec<_>>().join(", ");
        let meant = nearest(short, known).map(|near| format!(", did you mean `{NAME}/{near}`?")).unwrap_or_default();
        Err(format!("`{model}`: there is no such tool{meant} (this build has {have})"))
    }
}

/// The texts of a request that is a single user message: one per part.
fn texts(request: &Request) -> Option<Vec<&str>> {
    fn text(part: &Part) -> Option<&str> {
        match part {
            Part::Text(text) => Some(text),
            _ => None,
        }
    }
    match request.messages.as_slice() {
        [message] if message.role == Role::User => message.parts.iter().map(text).collect(),
        _ => None,
    }
}

impl Provider for Tools {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, model: &str) -> Result<(), String> {
        self.tool(model)?.check().map_err(|why| format!("`{model}`: {why}"))
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn list_price(&self, _: &str) -> Option<Price> {
        Some(Price { input: 0.0, output: 0.0, cached: None })
    }

    fn simulated(&self) -> bool {
        false
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        Box::pin(async move {
            let began = Instant::now();
            let request = &effect.request;
            let model = &request.model;
            let tool = self.tool(model).map_err(|why| ProviderError::Fatal { why })?;
            if request.response_format != tool.gives() {
                return Err(ProviderError::Never {
                    why: format!(
                        "`{model}` answers with a record of its own; no other form of answer can be requested"
                    ),
                });
            }
            let texts = texts(request).filter(|texts| tool.takes().contains(&texts.len()));
            let Some(texts) = texts else {
                let takes = tool.takes();
                let (least, most) = (takes.start(), takes.end());
                let why =
                    format!("`{model}` takes exactly one user message, with {least} to {most} parts of plain text");
                return Err(ProviderError::Never { why });
            };
            let value = tool.work(texts).await?;
            let raw = value.to_json(&request.response_format).to_string();
            let latency_ms = began.elapsed().as_secs_f64() * 1e3;
            let outcome = Outcome::Reply { value, raw, repaired: false };
            Ok(Exchange { outcome, usage: Usage { latency_ms, ..Usage::default() }, reasoning: None })
        })
    }
}
