//! Toolkits whose calls reach outside of the machine, one folder each: their tools are called by agents, with arguments that fit a schema.
//! Toolkits whose results follow from the scenario alone are leaves of the catalogue.

pub mod browse;
pub mod http;
mod marks;
mod open;
pub mod sql;
mod toolkit;

pub mod workspace;

pub use open::Place;
pub use toolkit::{Calling, Toolkit};

use crate::models::{Answering, Exchange, Provider, ProviderError};
use polity_kernel::ask::{Effect, Outcome, Part, Request, Usage};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Price;
use polity_kernel::tool::{Arguments, EffectClass, ToolOutput};
use polity_kernel::toolbox::{PROVIDER, output_format};
use polity_kernel::tree::{Node, TreeError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The folder of a run in which its toolkits keep their files.
pub const FILES: &str = "tools";

/// Adds the declarations of all toolkits of this build.
pub fn register_all(registry: &mut Registry) {
    browse::register(registry);
    http::register(registry);
    sql::register(registry);
    workspace::register(registry);
}

/// The provider `toolkit`: the toolkits of a scenario by the names of their entries. Their calls cost nothing.
pub struct Toolkits {
    all: BTreeMap<String, Arc<dyn Toolkit>>,
}

impl Toolkits {
    /// Opens the toolkits of a scenario, without those of the catalogue.
    ///
    /// # Errors
    /// An entry that is no toolkit, or parameters that do not fit.
    pub fn of(tools: &[Node], place: &Place) -> Result<Self, TreeError> {
        Ok(Toolkits { all: open::all(tools, place)? })
    }

    /// Adds toolkits, by the names of their entries.
    #[must_use]
    pub fn and(mut self, others: impl IntoIterator<Item = (String, Arc<dyn Toolkit>)>) -> Self {
        self.all.extend(others);
        self
    }

    /// Returns what toolkits would do that a scenario may do only if its user allows it, each with its name.
    #[must_use]
    pub fn need_consent(&self) -> Vec<(&str, String)> {
        self.all.iter().filter_map(|(name, toolkit)| Some((name.as_str(), toolkit.needs_consent()?))).collect()
    }

    fn toolkit(&self, target: &str) -> Result<&dyn Toolkit, String> {
        let name = target.split_once('/').map_or("", |(_, name)| name);
        let found = self.all.get(name).map(Arc::as_ref);
        found.ok_or_else(|| format!("`{target}`: the scenario's `tools` have no toolkit of this name"))
    }
}

/// The parts of a request: the tool, the arguments, and the state of the session.
fn parts(request: &Request) -> Option<(&str, Arguments, &str)> {
    let [message] = request.messages.as_slice() else { return None };
    match message.parts.as_slice() {
        [Part::Text(tool), Part::Text(arguments), Part::Text(state)] => {
            Some((tool, serde_json::from_str(arguments).ok()?, state))
        }
        _ => None,
    }
}

impl Provider for Toolkits {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn check(&self, target: &str) -> Result<(), String> {
        self.toolkit(target)?.check().map_err(|why| format!("`{target}`: {why}"))
    }

    fn check_name(&self, target: &str) -> Result<(), String> {
        self.toolkit(target).map(|_| ())
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

    fn repeatable(&self, request: &Request) -> bool {
        let Some((tool, ..)) = parts(request) else { return true };
        let tools = self.toolkit(&request.model).map(Toolkit::tools).unwrap_or_default();
        tools.iter().all(|known| *known.name != *tool || known.effect != EffectClass::Outside)
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        Box::pin(async move {
            let (began, request) = (Instant::now(), &effect.request);
            let toolkit = self.toolkit(&request.model).map_err(|why| ProviderError::Fatal { why })?;
            let wrong = || ProviderError::Never { why: format!("`{}` takes calls of its tools alone", request.model) };
            let (tool, arguments, state) = parts(request).ok_or_else(wrong)?;
            if request.response_format != output_format() {
                return Err(wrong());
            }
            let ToolOutput { text, error, state } = toolkit.call(tool, &arguments, state).await?;
            let json = serde_json::json!({"text": text, "error": error, "state": state});
            let value = polity_kernel::ask::Value::from_json(&json, &request.response_format).ok_or_else(wrong)?;
            let latency_ms = began.elapsed().as_secs_f64() * 1e3;
            let outcome = Outcome::Reply { value, raw: json.to_string(), repaired: false };
            Ok(Exchange { outcome, usage: Usage { latency_ms, ..Usage::default() }, reasoning: None })
        })
    }
}
