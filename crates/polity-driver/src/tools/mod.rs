//! Tools: what a run has done on this machine, asked as models are (`tool/python`). One folder a tool.
//!
//! So whatever holds for answers of models holds for theirs: they are journaled before they are used, replayed, counted and shown.
//! `docs/decisions/a-tool-is-a-model.md`.

pub mod python;

use crate::models::{Answering, Exchange, Provider, Trouble};
use polity_kernel::ask::{Effect, Outcome, Part, Request, Role, Usage, Value, Want};
use polity_kernel::scenario::Price;
use polity_kernel::tree::nearest;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Instant;

/// The provider's name.
const NAME: &str = "tool";

/// Whether it is a tool. Its runs are no calls: they cost nothing, and no budget holds them.
#[must_use]
pub fn is_tool(model: &str) -> bool {
    model.split_once('/').is_some_and(|(provider, _)| provider == NAME)
}

/// The future of a tool's work.
pub type Working<'a> = Pin<Box<dyn Future<Output = Result<Value, Trouble>> + Send + 'a>>;

/// What can be done with texts.
pub trait Tool: Send + Sync {
    /// The part of its model's name after the slash.
    fn name(&self) -> &'static str;
    /// What it answers; nothing else can be asked of it.
    fn gives(&self) -> Want;
    /// Says before a run whether this machine has it; the error says what is missing and how to get it. Quick after the first time.
    fn check(&self) -> Result<(), String>;
    /// How many texts it works on.
    fn takes(&self) -> RangeInclusive<usize>;
    /// Does it. What goes wrong with the texts is an answer; trouble is only what goes wrong with the tool.
    fn work<'a>(&'a self, texts: Vec<&'a str>) -> Working<'a>;
}

/// The provider `tool`: all tools of a build. They cost nothing.
pub struct Tools {
    all: Vec<Box<dyn Tool>>,
}

impl Tools {
    /// All that this build has.
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

/// The texts of a request that is one message of a user and nothing else: a part each.
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
            let tool = self.tool(model).map_err(|why| Trouble::Fatal { why })?;
            if request.want != tool.gives() {
                return Err(Trouble::Never {
                    why: format!("`{model}` answers with a record of its own, and nothing else can be asked of it"),
                });
            }
            let texts = texts(request).filter(|texts| tool.takes().contains(&texts.len()));
            let Some(texts) = texts else {
                let takes = tool.takes();
                let (least, most) = (takes.start(), takes.end());
                let why = format!(
                    "`{model}` is given one message of a user, of {least} to {most} parts of plain text, and nothing else"
                );
                return Err(Trouble::Never { why });
            };
            let value = tool.work(texts).await?;
            let raw = value.to_json(&request.want).to_string();
            let latency_ms = began.elapsed().as_secs_f64() * 1e3;
            let outcome = Outcome::Reply { value, raw, repaired: false };
            Ok(Exchange { outcome, usage: Usage { latency_ms, ..Usage::default() } })
        })
    }
}
