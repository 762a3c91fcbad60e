//! Toolkits that list their tools themselves: MCP servers. They are asked before a run. The manifest keeps what they listed, so that resuming
//! and replaying ask for the same tools, and a server that defines them otherwise is refused.

use super::Engine;
use super::prepare::Prepared;
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::scenario::{Scenario, ToolkitEntry};
use polity_kernel::tool::{Arguments, Listed, OutsideToolkit, ToolSpec};
use polity_kernel::tree::{Node, TreeError};
use polity_mcp::client::{Limits, McpServer, Params};
use polity_models::models::ProviderError;
use polity_models::toolkits::{Calling, Place, Toolkit, Toolkits};
use polity_store::DriveError;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The declaration of MCP servers.
struct Mcp;

impl OutsideToolkit for Mcp {
    const NAME: &'static str = "mcp";
    const SUMMARY: &'static str = "The tools of a server that speaks the Model Context Protocol";
    type Params = Params;

    fn tools(params: Params, listed: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        let one = params.command.is_some() != params.url.is_some();
        Invalid::unless(one, "command", "give either `command`, a program to start, or `url`, a running server")?;
        Ok(listed.unwrap_or_default().to_vec())
    }
}

/// Adds the declaration of toolkits that list their tools themselves.
pub fn register(registry: &mut Registry) {
    let readme = include_str!("../../../polity-mcp/README.md");
    registry.outside_toolkit::<Mcp>(LeafFiles { readme, ..LeafFiles::default() });
}

/// The servers of a scenario, by the names of their entries.
fn servers(tools: &[Node]) -> Result<Vec<(String, Params)>, TreeError> {
    let mut servers = Vec::new();
    for (i, node) in tools.iter().enumerate() {
        let path = format!("tools[{i}]");
        let entry = ToolkitEntry::read(node, &path)?;
        if entry.kind.name == Mcp::NAME {
            servers.push((entry.name, entry.parameters.read(&path)?));
        }
    }
    Ok(servers)
}

/// A server that is connected when it is first called.
struct Server {
    params: Params,
    tools: Vec<ToolSpec>,
    connected: OnceCell<McpServer>,
}

impl Toolkit for Server {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn needs_consent(&self) -> Option<String> {
        Some(match (&self.params.command, &self.params.url) {
            (Some(command), _) => format!("start the program `{}`", command.join(" ")),
            (None, url) => format!("connect to {}", url.as_deref().unwrap_or_default()),
        })
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let connect = || async { McpServer::connect(self.params.clone(), Limits::default(), None).await };
            // The definitions differ from the approved ones, or the server cannot be had: the run stops, and can be resumed.
            let server = self.connected.get_or_try_init(connect).await.map_err(|why| ProviderError::Fatal { why })?;
            server.call(tool, arguments, state).await
        })
    }
}

/// Toolkits by the names of their entries.
type Named = Vec<(String, Arc<dyn Toolkit>)>;

/// The toolkits of the servers of a scenario, with the tools that they listed.
pub(super) fn toolkits(prepared: &Prepared, scenario: &Scenario) -> Result<Named, TreeError> {
    let toolkit = |(name, params): (String, Params)| {
        let listed = prepared.inputs.tools.get(&name).cloned().unwrap_or_default();
        let mut pinned = listed.pins.clone();
        pinned.extend(params.pinned.clone());
        let server =
            Server { params: Params { pinned, ..params }, tools: listed.tools.clone(), connected: OnceCell::new() };
        (name, Arc::new(server) as Arc<dyn Toolkit>)
    };
    Ok(servers(&scenario.tools)?.into_iter().map(toolkit).collect())
}

impl Engine<'_> {
    /// Refuses toolkits that do what a scenario may do only if its user allows it. Scenarios are shared, and it must be safe to run one
    /// without reading it first.
    pub(super) fn check_consent(&self, toolkits: &Toolkits) -> Result<(), DriveError> {
        match toolkits.need_consent().first() {
            Some((name, what)) if !self.outside.allow_tools => Err(DriveError::Input(format!(
                "the scenario's toolkit `{name}` would {what}. A scenario may not do that by itself; if you trust it: \
                 --allow-tools"
            ))),
            _ => Ok(()),
        }
    }

    /// Asks the servers of a scenario for their tools, unless they are known.
    pub(super) fn with_listed<'a>(
        &self,
        prepared: &'a Prepared,
        scenario: &Scenario,
    ) -> Result<Cow<'a, Prepared>, DriveError> {
        self.check_consent(&Toolkits::of(&[], &Place::default())?.and(toolkits(prepared, scenario)?))?;
        let mut prepared = Cow::Borrowed(prepared);
        for (name, params) in servers(&scenario.tools)? {
            if prepared.inputs.tools.contains_key(&name) {
                continue;
            }
            let runtime = self.providers.runtime().map_err(DriveError::Model)?;
            let asked = runtime.block_on(async {
                let server = McpServer::connect(params, Limits::default(), None).await?;
                Ok::<_, String>(Listed { tools: server.tools(), pins: server.pins() })
            });
            let listed = asked.map_err(|why| DriveError::Model(format!("the toolkit `{name}`: {why}")))?;
            prepared.to_mut().inputs.tools.insert(name, Arc::new(listed));
        }
        Ok(prepared)
    }
}
