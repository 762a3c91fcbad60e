//! The client that the official conformance suite tests: it connects to the URL, calls what the scenario names, or else every tool with
//! arguments that its schema asks for. `scripts/mcp-conformance.sh` runs it.

use polity_kernel::tool::{Arguments, ToolSpec};
use polity_mcp::client::{Limits, McpServer, Params};
use polity_models::toolkits::Toolkit;
use serde_json::{Value, json};
use std::io::Write;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: conformance_client URL")?;
    let server = McpServer::connect(Params { url: Some(url), ..Params::default() }, Limits::default(), None).await?;
    for (tool, arguments) in calls(&server.tools()) {
        let output = server.call(&tool, &arguments, "").await?;
        writeln!(std::io::stdout(), "{tool}: {}{}", if output.error { "error: " } else { "" }, output.text)?;
    }
    Ok(())
}

/// The calls to make: those of the scenario, or one of each tool.
fn calls(tools: &[ToolSpec]) -> Vec<(String, Arguments)> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let named = context["toolCalls"].as_array().or_else(|| context["tool_calls"].as_array());
    if let Some(named) = named {
        let call = |call: &Value| Some((call["name"].as_str()?.to_owned(), object(&call["arguments"])));
        return named.iter().filter_map(call).collect();
    }
    let call = |spec: &ToolSpec| (spec.name.to_string(), object(&filled(&spec.schema())));
    tools.iter().map(call).collect()
}

/// A value that fits a schema, as far as these tools need it.
fn filled(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("string") => json!("test"),
        Some("array") => json!([]),
        _ => {
            let properties = schema["properties"].as_object();
            properties.into_iter().flatten().map(|(name, schema)| (name.clone(), filled(schema))).collect()
        }
    }
}
