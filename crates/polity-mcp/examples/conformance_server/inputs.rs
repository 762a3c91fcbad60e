//! Tools and a prompt that need input of the client: since revision 2026-07-28 the result asks for it, and the client calls again. What
//! was reached is in the sealed state that the client gives back.

use super::{made, said};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

pub const PROMPT: &str = "test_input_required_result_prompt";

pub const TOOLS: &[&str] = &[
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
];

/// A server would keep a secret.
fn key() -> Key {
    Key::new(HMAC_SHA256, b"the conformance suite may know this key")
}

fn sealed(state: &str) -> String {
    format!("{state}.{}", BASE64_URL_SAFE_NO_PAD.encode(sign(&key(), state.as_bytes())))
}

/// The state that the client gave back, if it is one that was sealed here.
fn opened(given: &str) -> Result<String, ErrorData> {
    let state = given.split_once('.').and_then(|(state, seal)| {
        let seal = BASE64_URL_SAFE_NO_PAD.decode(seal).ok()?;
        verify(&key(), state.as_bytes(), &seal).ok()?;
        Some(state.to_owned())
    });
    state.ok_or_else(|| ErrorData::invalid_params("`requestState` was tampered with", None))
}

fn form(message: &str, name: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": {
        "type": "object", "required": [name], "properties": {name: {"type": kind}},
    }}})
}

fn sample(prompt: &str) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"method": "sampling/createMessage", "params": {"maxTokens": 100, "messages": [message]}})
}

fn roots() -> Value {
    json!({"method": "roots/list"})
}

fn needed(inputs: Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(made(inputs)?), state.map(sealed)))
}

/// The answer of the client to a question, if it is one.
fn answer<'a>(answers: Option<&'a InputResponses>, name: &str) -> Option<&'a Map<String, Value>> {
    answers?.get(name)?.as_object()
}

pub fn call(
    asked: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = asked.input_responses.as_ref();
    let given = |name: &str| answer(answers, name);
    let state = asked.request_state.as_deref().map(opened).transpose()?;
    let name = || form("What is your name?", "name", "string");
    let inputs = match asked.name.as_ref() {
        "test_input_required_result_elicitation" => match given("user_name") {
            Some(answer) => {
                return Ok(said(format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("you"))));
            }
            None => needed(json!({"user_name": name()}), None),
        },
        "test_input_required_result_sampling" => match given("capital_question") {
            Some(answer) => return Ok(said(format!("The model says: {}", answer["content"]["text"]))),
            None => needed(json!({"capital_question": sample("What is the capital of France?")}), None),
        },
        "test_input_required_result_list_roots" => match given("client_roots") {
            Some(answer) => return Ok(said(format!("The roots: {}", answer["roots"]))),
            None => needed(json!({"client_roots": roots()}), None),
        },
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => match state {
            Some(_) => return Ok(said("Confirmed: state-ok")),
            None => needed(json!({"confirm": form("Please confirm", "ok", "boolean")}), Some("confirm")),
        },
        "test_input_required_result_multiple_inputs" => {
            let all = ["user_name", "greeting", "client_roots"].iter().all(|name| given(name).is_some());
            if all && state.is_some() {
                return Ok(said("All inputs are here"));
            }
            let inputs =
                json!({"user_name": name(), "greeting": sample("Generate a greeting"), "client_roots": roots()});
            needed(inputs, Some("gather"))
        }
        "test_input_required_result_multi_round" => match state.as_deref() {
            None => needed(json!({"step1": name()}), Some("1")),
            Some("1") => needed(json!({"step2": form("Which color?", "color", "string")}), Some("2")),
            Some(_) => return Ok(said("All rounds are done")),
        },
        "test_input_required_result_capabilities" => {
            let can = context.meta.client_capabilities().unwrap_or_default();
            let all = [
                ("user_name", name(), can.elicitation.is_some()),
                ("greeting", sample("Generate a greeting"), can.sampling.is_some()),
                ("client_roots", roots(), can.roots.is_some()),
            ];
            let wanted: Map<String, Value> =
                all.into_iter().filter(|(.., can)| *can).map(|(name, input, _)| (name.into(), input)).collect();
            if answers.is_some() || wanted.is_empty() {
                return Ok(said("No more is asked than can be answered"));
            }
            needed(Value::Object(wanted), None)
        }
        _ => needed(json!({"streaming_elicitation": form("Provide a value", "value", "string")}), None),
    };
    inputs.map(Into::into)
}

pub fn prompt(asked: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    match answer(asked.input_responses.as_ref(), "user_context") {
        Some(answer) => {
            let text = format!("Prompt with context: {}", answer["content"]["context"]);
            let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
            Ok(GetPromptResult::new(made(messages)?).into())
        }
        None => {
            let inputs = json!({"user_context": form("Which context?", "context", "string")});
            needed(inputs, None).map(Into::into)
        }
    }
}
