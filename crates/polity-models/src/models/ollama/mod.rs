//! Models on one's own machine, behind Ollama's native API. See README.md.

use super::calls::RawCall;
use super::capabilities::Capabilities;
use super::home::Home;
use super::received::{Apart, End, Ended, Received, Told};
use super::remote::Remote;
use super::wire::{Question, Turn, Wire, path};
use polity_kernel::ask::{Role, Thinking};
use polity_kernel::tool::{ToolCall, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The provider `ollama`.
pub type Ollama = Remote<Chat>;

/// Its wire.
pub struct Chat;

/// The request.
#[derive(Debug, Serialize)]
pub struct Body {
    model: String,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Arc<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Json>,
    options: Options,
    /// It streams by default.
    stream: bool,
}

#[derive(Debug, Serialize)]
struct Message {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
}

/// A message, and a message of its own for every result in it, which comes first.
fn messages(turn: &Turn) -> Vec<Message> {
    let result = |result: &ToolResult| Message {
        role: "tool",
        content: Turn::told(result),
        tool_calls: Vec::new(),
        tool_name: Some(result.tool.clone()),
    };
    let call = |call: &ToolCall| json!({"function": {"name": call.tool, "arguments": call.read()}});
    let mut messages: Vec<Message> = turn.results.iter().map(result).collect();
    if !turn.text.is_empty() || messages.is_empty() {
        let role = match turn.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let tool_calls = turn.calls.iter().map(call).collect();
        messages.push(Message { role, content: turn.text.clone(), tool_calls, tool_name: None });
    }
    messages
}

fn tool(tool: &ToolSpec) -> Json {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.schema()});
    json!({"type": "function", "function": function})
}

#[derive(Debug, Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    num_predict: u64,
}

/// The response.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    error: Json,
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    done_reason: Option<String>,
    /// Absent if the whole request was cached.
    #[serde(default)]
    prompt_eval_count: Apart<u64>,
    #[serde(default)]
    eval_count: Apart<u64>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Json>>,
}

/// An address in any form that Ollama accepts: `127.0.0.1`, `:11434`, `0.0.0.0:8080`, or with `http://` in front.
fn address(text: &str) -> String {
    if text.contains("://") {
        return text.to_owned();
    }
    let text = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    // The port follows the last colon; an IPv6 address has its own colons in brackets.
    let host = text.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
    let path = text.get(host.len()..).unwrap_or_default();
    format!("http://{host}{}{path}", if port { "" } else { ":11434" })
}

impl Wire for Chat {
    const HOME: Home = Home {
        name: "ollama",
        aliases: &[],
        model: "ollama/llama3.2",
        base_variable: "OLLAMA_HOST",
        base_url: "http://127.0.0.1:11434",
        base_example: "http://127.0.0.1:11434",
        base_end: "",
        base_of: address,
        key_variables: &["OLLAMA_API_KEY"],
        needs_key: false,
        key_header: ("authorization", "Bearer "),
        headers: &[],
        listed_as: "ollama",
    };
    type Body = Body;

    fn path(_: &str) -> Vec<String> {
        path(["api", "chat"])
    }

    fn body(question: &Question<'_>) -> Body {
        Body {
            model: question.model.to_owned(),
            messages: question.turns.iter().flat_map(messages).collect(),
            tools: question.tools.iter().map(tool).collect(),
            format: question.schema.clone(),
            // Models that only have a switch take every level as on.
            think: question.thinking.map(|thinking| match thinking {
                Thinking::Off => json!(false),
                level => json!(level.name()),
            }),
            options: Options {
                temperature: question.temperature,
                top_p: question.top_p,
                seed: question.seed.map(|seed| seed & i32::MAX as u64),
                num_predict: question.longest,
            },
            stream: false,
        }
    }

    fn told(received: &Received) -> Result<Told, Ended> {
        received.whole(&Self::HOME)?;
        let reply: Reply = received.json("answer of /api/chat")?;
        received.error_in_body(&Self::HOME, &reply.error)?;
        let said = reply.message.ok_or_else(|| received.invalid("the body has no `message`".into()))?;
        let call = |call: Json| RawCall {
            name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
            arguments: match &call["function"]["arguments"] {
                Json::Null => String::new(),
                arguments => arguments.to_string(),
            },
        };
        let calls = said.tool_calls.unwrap_or_default().into_iter().map(call).collect();
        let end = match reply.done_reason.as_deref() {
            Some("length") => End::Cut("done_reason: length".into()),
            _ => End::Whole,
        };
        let usage = reply.prompt_eval_count.0.zip(reply.eval_count.0);
        let usage = usage.map(|(tokens_in, tokens_out)| polity_kernel::ask::Usage {
            tokens_in,
            tokens_out,
            ..Default::default()
        });
        Ok(Told { text: said.content, end, usage, calls, reasoning: said.thinking, ..Told::default() })
    }

    fn inquiry(model: &str) -> (Vec<String>, Option<Json>) {
        (path(["api", "show"]), Some(json!({"model": model})))
    }

    /// The model's context length; the server may allow less.
    fn capabilities(_: &str, _: bool, told: &Json) -> Capabilities {
        let length = told["model_info"].as_object().into_iter().flatten();
        let length = length.filter(|(name, _)| name.ends_with(".context_length")).find_map(|(_, value)| value.as_u64());
        Capabilities {
            schema: Some(true),
            logit_bias: Some(false),
            seed: Some(true),
            context: length,
            ..Capabilities::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_ollama_takes() {
        for (text, meant) in [
            ("127.0.0.1", "http://127.0.0.1:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:8080", "http://0.0.0.0:8080"),
            ("box.local/ollama", "http://box.local:11434/ollama"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:9", "http://[::1]:9"),
            ("https://ollama.com", "https://ollama.com"),
        ] {
            assert_eq!(address(text), meant);
        }
    }
}
