//! Tools that answer with text.

use polity_kernel::tool::{Arguments, EffectClass, ToolOutput, ToolSpec};
use polity_mcp::server::{Progress, Served, ServedTool};
use serde_json::json;
use std::time::Duration;

pub struct Plain;

impl Served for Plain {
    fn tools(&self) -> Vec<ServedTool> {
        let none = json!({"type": "object", "properties": {}});
        let tools = [
            ("test_simple_text", "Returns a text"),
            ("test_error_handling", "Fails"),
            ("test_tool_with_progress", "Reports how far it is"),
            ("test_reconnection", "Returns after a moment"),
        ];
        let tool = |(name, description)| ServedTool {
            spec: ToolSpec::new(name, description, &none, EffectClass::Pure),
            title: name.into(),
        };
        tools.into_iter().map(tool).collect()
    }

    async fn call(&self, tool: &str, _arguments: &Arguments, progress: &Progress) -> ToolOutput {
        match tool {
            "test_simple_text" => ToolOutput::text("This is a simple text response for testing."),
            "test_error_handling" => ToolOutput::error("This tool intentionally returns an error for testing"),
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    progress.report(done, Some(100.0), "on the way").await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                ToolOutput::text("done")
            }
            _ => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                ToolOutput::text("here again")
            }
        }
    }
}
