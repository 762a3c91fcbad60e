//! A small server for tests and figures: `served stdio`, or `served http`, which writes its URL to stdout.

use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
use polity_mcp::server::{Http, Progress, Served, ServedTool, serve_http, serve_stdio};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

struct Small;

impl Served for Small {
    fn tools(&self) -> Vec<ServedTool> {
        let text = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
        let none = json!({"type": "object", "properties": {}});
        let tool = |name: &str, words: &str, arguments: &Value, effect| ServedTool {
            spec: ToolSpec::new(name, words, arguments, effect),
            title: name.into(),
        };
        vec![
            tool("echo", "Returns the text", &text, EffectClass::Reads),
            tool("fail", "Fails", &none, EffectClass::Outside),
            tool("wait", "Returns after a minute, and reports in between", &none, EffectClass::Outside),
        ]
    }

    async fn call(&self, tool: &str, arguments: &Arguments, progress: &Progress) -> ToolOutput {
        match tool {
            "echo" => ToolOutput::text(arguments["text"].as_str().unwrap_or_default()),
            "fail" => ToolOutput::error("it failed, as asked"),
            _ => {
                for second in 0..60 {
                    progress.report(f64::from(second), Some(60.0), "waiting").await;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                ToolOutput::text("waited")
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), String> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => serve_stdio(Small).await,
        Some("http") => {
            let serving = serve_http(Small, Http::default()).await?;
            writeln!(std::io::stdout(), "{}", serving.url()).map_err(|error| error.to_string())?;
            serving.wait().await;
            Ok(())
        }
        _ => Err("usage: served stdio|http".into()),
    }
}
