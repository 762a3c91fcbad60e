//! The tools of a server as a toolkit of a run.
//!
//! A server is not trusted. Its definitions are checked and can be pinned, every call has a time limit, what it sends is bounded, and
//! whatever it does has a clear outcome: an output with `error` set where the model can go on, a [`ProviderError`] where it cannot.

mod child;
mod content;
mod definition;
mod host;
mod http;
mod link;
mod listing;
mod params;

pub use host::{Said, Sampled, Sampler, Sampling};
pub use listing::{Prompt, PromptArgument, PromptMessage};
pub use params::{Limits, Params};

use definition::Definition;
use link::{Connection, Link};
use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
use polity_models::models::ProviderError;
use polity_models::toolkits::{Calling, Toolkit};
use rmcp::model::CallToolRequestParams;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tool that lists the resources of a server.
const LIST_RESOURCES: &str = "mcp_list_resources";
/// The tool that reads one of them.
const READ_RESOURCE: &str = "mcp_read_resource";

/// A server whose tools agents call.
///
/// ```no_run
/// use polity_mcp::client::{Limits, McpServer, Params};
/// use polity_models::toolkits::Toolkit;
///
/// # async fn connected() -> Result<(), String> {
/// let params: Params = serde_json::from_value(serde_json::json!({
///     "command": ["npx", "-y", "@modelcontextprotocol/server-memory"], "tools": ["read_graph"],
/// })).map_err(|error| error.to_string())?;
/// let server = McpServer::connect(params, Limits::default(), None).await?;
/// assert_eq!(&*server.tools()[0].name, "read_graph");
/// # Ok(())
/// # }
/// ```
pub struct McpServer {
    link: Link,
    limits: Limits,
    /// The tools as they were approved, by the names that models see.
    approved: BTreeMap<String, Approved>,
    specs: Vec<ToolSpec>,
}

/// A tool as it was approved.
struct Approved {
    definition: Definition,
    /// The schema that its results promise to fit.
    result: Option<jsonschema::Validator>,
}

impl McpServer {
    /// Connects to a server, starts it if it is a program, and takes its tools. Must run in a runtime of tokio that outlives the server.
    /// `sampler` answers it if it asks for a model; without one, it is told that there is none.
    ///
    /// # Errors
    /// What is wrong with the parameters, with the server, or with one of its tools.
    pub async fn connect(params: Params, limits: Limits, sampler: Option<Arc<dyn Sampler>>) -> Result<Self, String> {
        let (allowed, pinned) = (params.tools.clone(), params.pinned.clone());
        let link = Link::new(params, limits.clone(), sampler)?;
        let connection = link.first().await?;
        let told = |why: String| format!("the MCP server {}: {why}", link.name());
        let offered: Vec<&Definition> = connection.listed.values().collect();
        let mut approved = BTreeMap::new();
        let mut specs = Vec::new();
        let mut add = |spec: ToolSpec| match specs.iter().any(|known: &ToolSpec| known.name == spec.name) {
            true => {
                Err(told(format!("two of its tools have the name `{}` for models; list one in `tools`", spec.name)))
            }
            false => {
                specs.push(spec);
                Ok(())
            }
        };
        let is_allowed = |name: &str| allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|tool| tool == name));
        for definition in offered.iter().filter(|definition| is_allowed(&definition.name)) {
            if let Some(changed) = pinned.get(&definition.name).and_then(|pin| definition.against_pin(pin)) {
                return Err(told(format!(
                    "the tool `{}` is not the one that was pinned.{changed} Read it, and pin it as {} if it may be used",
                    definition.name,
                    definition.pin()
                )));
            }
            let (spec, result) = definition.checked(&limits).map_err(told)?;
            add(spec)?;
            approved.insert(definition.shown_name(), Approved { definition: (*definition).clone(), result });
        }
        if connection.has_resources {
            for tool in resource_tools().into_iter().filter(|tool| is_allowed(&tool.name)) {
                add(tool)?;
            }
        }
        let known: BTreeSet<&str> =
            approved.values().map(|tool| &*tool.definition.name).chain(specs.iter().map(|spec| &*spec.name)).collect();
        let missing = allowed.iter().flatten().chain(pinned.keys()).find(|name| !known.contains(name.as_str()));
        if let Some(missing) = missing {
            let names: Vec<&str> = offered.iter().map(|definition| &*definition.name).collect();
            let why = format!("it has no tool `{missing}` to use; it has: {}", names.join(", "));
            return Err(told(definition::clean(&why, 2000)));
        }
        Ok(McpServer { link, limits, approved, specs })
    }

    /// The hash of the definition of each tool, to put in `pinned`: by the name that the server gives it.
    #[must_use]
    pub fn pins(&self) -> BTreeMap<String, String> {
        self.approved.values().map(|tool| (tool.definition.name.clone(), tool.definition.pin())).collect()
    }

    /// The revision of the protocol that the server speaks with this side, such as `2026-07-28`.
    ///
    /// # Errors
    /// The server is gone and does not start again.
    pub async fn revision(&self) -> Result<String, ProviderError> {
        Ok(self.link.connection().await?.revision.clone())
    }

    async fn called(&self, tool: &str, arguments: &Arguments) -> Result<ToolOutput, ProviderError> {
        if !self.specs.iter().any(|spec| &*spec.name == tool) {
            return Ok(ToolOutput::error(format!("there is no tool `{tool}`")));
        }
        let connection = self.link.connection().await?;
        let Some(Approved { definition: approved, result }) = self.approved.get(tool) else {
            return self.resource_call(&connection, tool, arguments).await;
        };
        if let Some(output) = self.changed(&connection, approved).await? {
            return Ok(output);
        }
        let params = CallToolRequestParams::new(approved.name.clone()).with_arguments(arguments.clone());
        let answer = self.link.ask(&connection, self.limits.call, connection.service.call_tool(params)).await;
        match answer {
            Ok(answer) => Ok(content::output(&answer, result.as_ref(), self.limits.result)),
            Err(failure) => failure.into_output(),
        }
    }

    /// Whether the tool is still the one that was approved; the output that says so if it is not.
    async fn changed(
        &self,
        connection: &Arc<Connection>,
        approved: &Definition,
    ) -> Result<Option<ToolOutput>, ProviderError> {
        let now = match self.link.listed(connection).await {
            Ok(listed) => listed.get(&approved.name).cloned(),
            Err(failure) => return failure.into_output().map(Some),
        };
        let why = match now {
            None => "The server has it no more.".into(),
            Some(now) => match now.against(approved) {
                None => return Ok(None),
                Some(changed) => changed.trim_start().to_owned(),
            },
        };
        Ok(Some(ToolOutput::error(format!(
            "the tool `{}` is not called: the server changed it after it was approved. {why}",
            approved.name
        ))))
    }

    async fn resource_call(
        &self,
        connection: &Arc<Connection>,
        tool: &str,
        arguments: &Arguments,
    ) -> Result<ToolOutput, ProviderError> {
        let text = if tool == LIST_RESOURCES {
            listing::resources(&self.link, connection).await
        } else {
            let uri = arguments.get("uri").and_then(serde_json::Value::as_str).unwrap_or_default();
            listing::read(&self.link, connection, uri).await
        };
        match text {
            Ok(text) if text.len() > self.limits.result => Ok(ToolOutput::error(format!(
                "the result has {} bytes, and at most {} are taken",
                text.len(),
                self.limits.result
            ))),
            Ok(text) => Ok(ToolOutput::text(text)),
            Err(failure) => failure.into_output(),
        }
    }

    /// Lists the prompts that the server offers; none if it offers none.
    ///
    /// # Errors
    /// The server gives no list.
    pub async fn prompts(&self) -> Result<Vec<Prompt>, ProviderError> {
        let connection = self.link.connection().await?;
        listing::prompts(&self.link, &connection).await.map_err(link::Failure::into_error)
    }

    /// Returns a prompt with its arguments filled in.
    ///
    /// # Errors
    /// The server gives no such prompt.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<Vec<PromptMessage>, ProviderError> {
        let connection = self.link.connection().await?;
        listing::prompt(&self.link, &connection, name, arguments).await.map_err(link::Failure::into_error)
    }
}

impl Toolkit for McpServer {
    fn tools(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    /// The server was there when it was connected, so nothing is missing.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, _state: &'a str) -> Calling<'a> {
        Box::pin(self.called(tool, arguments))
    }
}

fn resource_tools() -> [ToolSpec; 2] {
    let list = serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false});
    let read = serde_json::json!({
        "type": "object", "required": ["uri"], "additionalProperties": false,
        "properties": {"uri": {"type": "string", "description": "The URI of the resource"}},
    });
    [
        ToolSpec::new(LIST_RESOURCES, "Lists the resources that can be read, one a line", &list, EffectClass::Reads),
        ToolSpec::new(READ_RESOURCE, "Returns the text of a resource", &read, EffectClass::Reads),
    ]
}

#[cfg(test)]
mod tests;
