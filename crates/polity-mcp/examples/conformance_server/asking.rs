//! Tools that ask the client, or note something, while they are called: as the revisions before 2026-07-28 do.

use super::{made, said};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use std::time::Duration;

pub const TOOLS: &[&str] = &[
    "test_tool_with_logging",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
];

pub async fn call(
    asked: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = asked.arguments.unwrap_or_default();
    let given = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    match asked.name.as_ref() {
        "test_sampling" => {
            let prompt = SamplingMessage::user_text(given("prompt"));
            let answer = context.peer.create_message(CreateMessageRequestParams::new(vec![prompt], 100)).await;
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let text = answer.message.content.first().and_then(|block| block.as_text());
            Ok(said(format!("LLM response: {}", text.map(|text| text.text.as_str()).unwrap_or_default())))
        }
        "test_elicitation" => {
            let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
                "username": {"type": "string", "description": "The name"},
                "email": {"type": "string", "description": "The address"},
            }});
            elicited(&context, given("message"), schema).await
        }
        "test_elicitation_sep1034_defaults" => elicited(&context, "Please look these through", defaults()).await,
        "test_elicitation_sep1330_enums" => elicited(&context, "Please choose", choices()).await,
        "test_missing_capability" => {
            if context.meta.client_capabilities().is_none_or(|can| can.sampling.is_none()) {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            Ok(said("you can sample"))
        }
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                noted(&context, level, "noted").await;
            }
            Ok(said("noted if asked"))
        }
        _ => {
            for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                noted(&context, LoggingLevel::Info, text).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(said("noted"))
        }
    }
}

async fn noted(context: &RequestContext<RoleServer>, level: LoggingLevel, text: &str) {
    // A client that is gone needs no notes.
    let _ = context.peer.notify_logging_message(LoggingMessageNotificationParam::new(level, json!(text))).await;
}

async fn elicited(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<CallToolResponse, ErrorData> {
    let asked = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: made(schema)?,
    };
    let answer = context.peer.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(asked))).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let ClientResult::ElicitResult(answer) = answer else {
        return Err(ErrorData::internal_error("the client answers with something else", None));
    };
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    Ok(said(format!("Elicitation completed: action={}, content={}", answer["action"], answer["content"])))
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

fn choices() -> Value {
    let titled = |what: &str| {
        let titles = [("value1", "First"), ("value2", "Second"), ("value3", "Third")];
        titles.map(|(value, title)| json!({"const": value, "title": format!("{title} {what}")}))
    };
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }})
}
