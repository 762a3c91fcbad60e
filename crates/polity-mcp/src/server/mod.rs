//! Tools for other programs: what is served, over stdio and over HTTP.

mod http;

pub use http::{Http, Serving, serve_handler, serve_http};

use crate::limited::{Limited, Watch};
use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, serve_server};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, ServerHandler};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Maximum bytes of a request.
const REQUEST: usize = 4 << 20;

/// A tool that is served.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTool {
    /// The tool.
    pub spec: ToolSpec,
    /// Its name for people.
    pub title: String,
}

/// What is served. Calls come from many tasks at once.
///
/// ```
/// use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
/// use polity_mcp::server::{Progress, Served, ServedTool};
///
/// struct Doubler;
///
/// impl Served for Doubler {
///     fn tools(&self) -> Vec<ServedTool> {
///         let arguments = serde_json::json!({
///             "type": "object", "required": ["number"], "properties": {"number": {"type": "number"}},
///         });
///         let spec = ToolSpec::new("double", "Doubles a number", &arguments, EffectClass::Pure);
///         vec![ServedTool { spec, title: "Double".into() }]
///     }
///
///     async fn call(&self, _tool: &str, arguments: &Arguments, progress: &Progress) -> ToolOutput {
///         progress.report(1.0, Some(1.0), "doubled").await;
///         ToolOutput::text((2.0 * arguments["number"].as_f64().unwrap_or_default()).to_string())
///     }
/// }
/// ```
pub trait Served: Send + Sync + 'static {
    /// Returns the tools. The list does not change while they are served.
    fn tools(&self) -> Vec<ServedTool>;
    /// Calls a tool. The arguments fit its schema. The future is dropped when the caller gives the call up.
    fn call(&self, tool: &str, arguments: &Arguments, progress: &Progress) -> impl Future<Output = ToolOutput> + Send;
}

/// Tells the caller how far a call is, if it wants to know.
#[derive(Debug)]
pub struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    /// Reports. `done` grows from report to report; `total` is what it is out of, if that is known.
    pub async fn report(&self, done: f64, total: Option<f64>, message: &str) {
        let Some((peer, token)) = &self.0 else { return };
        let mut told = ProgressNotificationParam::new(token.clone(), done).with_message(message);
        told.total = total;
        // A caller that is gone gives the call up.
        let _ = peer.notify_progress(told).await;
    }
}

/// Serves tools over stdin and stdout, until stdin ends. Nothing else may write to stdout.
///
/// # Errors
/// The schema of a tool is not valid, or the other side does not speak the protocol.
pub async fn serve_stdio(served: impl Served) -> Result<(), String> {
    serve_pipes(Handler::new(served)?, tokio::io::stdin(), tokio::io::stdout()).await
}

/// As [`serve_stdio`], over any two pipes.
pub(crate) async fn serve_pipes(
    handler: impl ServerHandler,
    from: impl AsyncRead + Send + Unpin + 'static,
    to: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    let watch = Watch::new(REQUEST, usize::MAX);
    let pipes = AsyncRwTransport::new(Limited::new(from, watch.clone()), to).with_max_line_length(usize::MAX);
    let ended = match serve_server(handler, pipes).await {
        Ok(service) => service.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        Err(error) => Err(format!("the client does not begin as the protocol says: {error}")),
    };
    match watch.why_cut() {
        Some(why) => Err(format!("the connection to the client was cut off: {why}")),
        None => ended,
    }
}

/// The protocol side of what is served, for a server that offers more than tools: it passes on what it does not serve itself.
pub struct Handler<S> {
    served: Arc<S>,
    tools: Arc<BTreeMap<String, (Tool, jsonschema::Validator)>>,
}

impl<S> Clone for Handler<S> {
    fn clone(&self) -> Self {
        Handler { served: self.served.clone(), tools: self.tools.clone() }
    }
}

impl<S: Served> Handler<S> {
    /// Takes the tools.
    ///
    /// # Errors
    /// The schema of a tool is not valid, or two tools have one name.
    pub fn new(served: S) -> Result<Self, String> {
        let mut tools = BTreeMap::new();
        for ServedTool { spec, title } in served.tools() {
            let schema = spec.schema();
            let wrong = |why: String| format!("the tool `{}` cannot be served: {why}", spec.name);
            let validator = jsonschema::options().build(&schema);
            let validator = validator.map_err(|error| wrong(format!("its schema is not valid: {error}")))?;
            let serde_json::Value::Object(schema) = schema else {
                return Err(wrong("the schema of its arguments is no object".into()));
            };
            let reads = matches!(spec.effect, EffectClass::Pure | EffectClass::Reads);
            let hints = ToolAnnotations::new().read_only(reads).open_world(spec.effect != EffectClass::Pure);
            let hints = if reads { hints } else { hints.destructive(spec.effect == EffectClass::Outside) };
            let tool = Tool::new(spec.name.to_string(), spec.description.to_string(), schema);
            let tool = tool.with_title(title).with_annotations(hints);
            if tools.insert(spec.name.to_string(), (tool, validator)).is_some() {
                return Err(wrong("another one has its name".into()));
            }
        }
        Ok(Handler { served: Arc::new(served), tools: Arc::new(tools) })
    }

    /// Returns the tools as they are listed.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        self.tools.values().map(|(tool, _)| tool.clone()).collect()
    }
}

impl<S: Served> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(can).with_server_info(Implementation::new("polity", env!("CARGO_PKG_VERSION")))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get(name).map(|(tool, _)| tool.clone())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some((_, validator)) = self.tools.get(asked.name.as_ref()) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", asked.name), None));
        };
        let arguments = serde_json::Value::Object(asked.arguments.unwrap_or_default());
        if let Err(error) = validator.validate(&arguments) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { String::new() } else { format!(" at `{place}`") };
            return Ok(answer(ToolOutput::error(format!("the arguments do not fit{place}: {error}"))));
        }
        let serde_json::Value::Object(arguments) = arguments else {
            return Err(ErrorData::internal_error("no object", None));
        };
        let progress = Progress(context.meta.get_progress_token().map(|token| (context.peer.clone(), token)));
        tokio::select! {
            output = self.served.call(&asked.name, &arguments, &progress) => Ok(answer(output)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was given up", None)),
        }
    }
}

fn answer(output: ToolOutput) -> CallToolResponse {
    let content = vec![ContentBlock::text(output.text)];
    if output.error { CallToolResult::error(content) } else { CallToolResult::success(content) }.into()
}

#[cfg(test)]
mod tests;
