//! The server that the official conformance suite tests, served as [`polity_mcp::server`] serves tools: the suite calls tools, resources
//! and prompts by fixed names. It listens at a free port and writes its URL to stdout. `scripts/mcp-conformance.sh` runs it.

#![allow(deprecated)] // The suite also tests what the newest revision deprecates.

mod asking;
mod inputs;
mod plain;

use plain::Plain;
use polity_mcp::server::{Handler, Http, serve_handler};
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A PNG of one pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// A WAV without samples.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// How long lists may be kept, in milliseconds.
const KEPT: u64 = 60_000;

/// Tools that answer with content, by name: description and content.
fn contents(name: &str) -> Option<(&'static str, Value)> {
    let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
    let resource = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    Some(match name {
        "test_image_content" => ("Returns an image", json!([image])),
        "test_audio_content" => ("Returns sound", json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}])),
        "test_embedded_resource" => (
            "Returns a resource",
            json!([resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]),
        ),
        "test_multiple_content_types" => (
            "Returns content of several kinds",
            json!([
                {"type": "text", "text": "Multiple content types test:"},
                image,
                resource("test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}"),
            ]),
        ),
        _ => return None,
    })
}

#[derive(Clone)]
struct Fixture {
    /// What a [`polity_mcp::server::Served`] can express is served by it.
    plain: Handler<Plain>,
    listening: Arc<Mutex<Vec<SubscriptionSink>>>,
}

/// A type of the protocol from its JSON.
fn made<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn tool(name: &str, description: &str, schema: Value) -> Result<Tool, ErrorData> {
    made(json!({"name": name, "description": description, "inputSchema": schema}))
}

/// A schema with the features of JSON Schema 2020-12.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "address", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
        "if": {"required": ["address"]},
        "then": {"properties": {"address": {"required": ["street"]}}},
        "else": {"required": ["name"]},
        "additionalProperties": false,
    })
}

fn header_schema() -> Value {
    json!({"type": "object", "required": ["value"], "properties": {"value": {"type": "string", "x-mcp-header": "Value"}}})
}

impl Fixture {
    fn tools(&self) -> Result<Vec<Tool>, ErrorData> {
        let none = || json!({"type": "object", "properties": {}});
        let mut tools = self.plain.tools();
        for name in
            ["test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types"]
        {
            let (description, _) = contents(name).unwrap_or_default();
            tools.push(tool(name, description, none())?);
        }
        tools.push(tool("json_schema_2020_12_tool", "Has a rich schema", rich_schema())?);
        tools.push(tool("test_custom_header", "Has an argument that is sent as a header too", header_schema())?);
        let text = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}});
        tools.push(tool("test_sampling", "Asks for a model", text("prompt"))?);
        tools.push(tool("test_elicitation", "Asks a person", text("message"))?);
        let asking = asking::TOOLS.iter().chain(inputs::TOOLS);
        for name in asking {
            tools.push(tool(name, "Asks, tells or notes something", none())?);
        }
        Ok(tools)
    }

    /// Tells those that listen that a list changed.
    async fn changed(&self, tools: bool) -> CallToolResponse {
        let listening = self.listening.lock().await.clone();
        for sink in listening {
            // One that is gone misses nothing.
            let _ = if tools { sink.notify_tool_list_changed().await } else { sink.notify_prompt_list_changed().await };
        }
        said("told")
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts_list_changed()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(can).with_server_info(Implementation::new("polity-conformance", "1"))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().ok()?.into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()?).with_ttl_ms(KEPT).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = asked.name.to_string();
        if let Some((_, content)) = contents(&name) {
            return made::<CallToolResult>(json!({"resultType": "complete", "content": content})).map(Into::into);
        }
        match name.as_str() {
            name if inputs::TOOLS.contains(&name) => inputs::call(&asked, &context),
            "test_trigger_tool_change" => Ok(self.changed(true).await),
            "test_trigger_prompt_change" => Ok(self.changed(false).await),
            "test_custom_header" => match asked.arguments.as_ref().and_then(|given| given.get("value")?.as_str()) {
                Some(value) => Ok(said(value)),
                None => Err(ErrorData::invalid_params("`value` must be a text", None)),
            },
            "json_schema_2020_12_tool" => Ok(said("it fits")),
            name if asking::TOOLS.contains(&name) || matches!(name, "test_sampling" | "test_elicitation") => {
                asking::call(asked, context).await
            }
            _ => self.plain.call_tool(asked, context).await,
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = made(json!([
            {"uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "static-binary", "description": "An image", "mimeType": "image/png"},
        ]))?;
        Ok(ListResourcesResult::with_all_items(resources).with_ttl_ms(KEPT).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = made(json!([
            {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
        ]))?;
        Ok(ListResourceTemplatesResult::with_all_items(templates)
            .with_ttl_ms(KEPT)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = asked.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": IMAGE}),
            (_, Some(id)) => {
                let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
                json!({"mimeType": "application/json", "text": text})
            }
            _ => return Err(ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))),
        };
        let mut contents = contents;
        contents["uri"] = json!(uri);
        let result = ReadResourceResult::new(vec![made(contents)?]);
        Ok(result.with_ttl_ms(KEPT).with_cache_scope(CacheScope::Public).into())
    }

    async fn subscribe(
        &self,
        _asked: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _asked: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listening.lock().await.push(context.sink().clone());
        context.cancelled().await;
        self.listening.lock().await.retain(|sink| sink.id() != context.sink().id());
        Ok(())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = made(json!([
            {"name": "test_simple_prompt", "description": "A text"},
            {"name": "test_prompt_with_arguments", "description": "A text with arguments", "arguments": [
                {"name": "arg1", "description": "The first", "required": true},
                {"name": "arg2", "description": "The second", "required": true},
            ]},
            {"name": "test_prompt_with_embedded_resource", "description": "A resource", "arguments": [
                {"name": "resourceUri", "description": "Its URI", "required": true},
            ]},
            {"name": "test_prompt_with_image", "description": "An image"},
            {"name": inputs::PROMPT, "description": "A text that a person completes"},
        ]))?;
        Ok(ListPromptsResult::with_all_items(prompts).with_ttl_ms(KEPT).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = asked.arguments.clone().unwrap_or_default();
        let given = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let text = |text: String| json!({"type": "text", "text": text});
        let content = match asked.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.".into())],
            "test_prompt_with_arguments" => {
                vec![text(format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
            }
            "test_prompt_with_embedded_resource" => vec![
                json!({"type": "resource", "resource": {"uri": given("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing."}}),
                text("Please process the embedded resource above.".into()),
            ],
            "test_prompt_with_image" => vec![
                json!({"type": "image", "data": IMAGE, "mimeType": "image/png"}),
                text("Please analyze the image above.".into()),
            ],
            inputs::PROMPT => return inputs::prompt(&asked),
            _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
        };
        let messages: Vec<Value> =
            content.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
        Ok(GetPromptResult::new(made(Value::Array(messages))?).into())
    }

    async fn complete(
        &self,
        asked: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["paris", "park", "party"].iter().filter(|value| value.starts_with(&asked.argument.value));
        let values = CompletionInfo::new(values.map(|&value| value.into()).collect());
        Ok(CompleteResult::new(values.map_err(|why| ErrorData::internal_error(why, None))?))
    }

    async fn set_level(
        &self,
        _asked: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), String> {
    let fixture = Fixture { plain: Handler::new(Plain)?, listening: Arc::default() };
    let serving = serve_handler(fixture, Http::default()).await?;
    writeln!(std::io::stdout(), "{}", serving.url()).map_err(|error| error.to_string())?;
    serving.wait().await;
    Ok(())
}
