//! OpenAI's responses endpoint: reads requests, shapes answers. Errors and limits are OpenAI's.

use super::conversation::{self, Choice, Tools, call_id, linked};
use super::{Failure, Head, OpenAi, Wire, words};
use crate::bucket::Bucket;
use crate::mock_server::answer::{Asked, Finish, Format, Said};
use polity_kernel::ask::{ChatMessage, Part, Role};
use serde_json::{Value as Json, json};
use std::borrow::Cow;

pub struct Responses;

/// A content: a text or a list of parts.
fn text(content: &Json) -> String {
    match content {
        Json::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// An item of the input; `None` if it is only the model's own, as its thoughts are.
fn message(item: &Json) -> Result<Option<ChatMessage>, String> {
    let id = || {
        let id = item["call_id"].as_str().filter(|id| !id.is_empty());
        id.ok_or_else(|| format!("an item of `input` has no `call_id`: {item}"))
    };
    match item["type"].as_str() {
        None | Some("message") => {}
        Some("function_call") => {
            let arguments = item["arguments"].as_str().ok_or("the `arguments` of a call must be a text of JSON")?;
            let call = conversation::call(id()?, &item["name"], &serde_json::from_str(arguments).unwrap_or_default())?;
            return Ok(Some(ChatMessage { role: Role::Assistant, parts: vec![Part::Calls(vec![call])] }));
        }
        Some("function_call_output") => {
            let result = conversation::result(id()?, "", text(&item["output"]), false);
            return Ok(Some(ChatMessage { role: Role::User, parts: vec![result] }));
        }
        Some("reasoning") => return Ok(None),
        Some(other) => return Err(format!("an item of `input` has an unknown type: {other}")),
    }
    let role = match item["role"].as_str() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(format!("an item of `input` has an unknown role: {}", item["role"])),
    };
    Ok(Some(ChatMessage::text(role, text(&item["content"]))))
}

/// The conversation: what the model says and calls in a row is one message.
fn conversation(items: &[Json]) -> Result<Vec<ChatMessage>, String> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    for item in items {
        let Some(next) = message(item)? else { continue };
        let calls = matches!(next.parts.first(), Some(Part::Calls(_)));
        match messages.last_mut().filter(|last| calls && last.role == Role::Assistant) {
            Some(last) => last.parts.extend(next.parts),
            None => messages.push(next),
        }
    }
    linked(messages)
}

/// The tools of a request.
fn tools(request: &Json) -> Result<Tools, String> {
    let tool = |tool: &Json| conversation::tool(tool, &tool["parameters"]);
    let offered = request["tools"].as_array().into_iter().flatten().filter(|tool| tool["type"] == "function");
    let offered = offered.map(tool).collect::<Result<_, _>>()?;
    let choice = &request["tool_choice"];
    let choice = match (choice["name"].as_str(), choice.as_str()) {
        (Some(name), _) => Choice::Named(name),
        (None, Some("required")) => Choice::Any,
        (None, Some("none")) => Choice::None,
        _ => Choice::Free,
    };
    Ok(Tools { single: request["parallel_tool_calls"] == false, ..Tools::read(offered, &choice)? })
}

/// The items of a reply: what is said, then the calls.
fn output(head: &Head, said: &Said) -> Vec<Json> {
    let status = if said.finish == Finish::Length { "incomplete" } else { "completed" };
    let part = match (&said.content, &said.refusal) {
        (Some(text), _) => Some(json!({"type": "output_text", "text": text, "annotations": []})),
        (None, Some(words)) => Some(json!({"type": "refusal", "refusal": words})),
        (None, None) => None,
    };
    let item = part.map(|part| {
        let id = format!("msg_{:032x}", head.key);
        json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": [part]})
    });
    let call = |(nth, (name, arguments)): (usize, &(String, String))| {
        json!({
            "id": call_id("fc_", head, nth), "type": "function_call", "status": status,
            "call_id": call_id("call_", head, nth), "name": name, "arguments": arguments,
        })
    };
    item.into_iter().chain(said.calls.iter().enumerate().map(call)).collect()
}

fn response(head: &Head, said: &Said, output: &[Json]) -> Json {
    let cut = said.finish == Finish::Length;
    let (tokens_in, tokens_out) = (said.usage.tokens_in, said.usage.tokens_out);
    json!({
        "id": format!("resp_{:032x}", head.key), "object": "response", "created_at": head.created,
        "status": if cut { "incomplete" } else { "completed" }, "error": null,
        "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"})), "model": head.model,
        "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": tokens_in, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": tokens_out, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens_in + tokens_out,
        },
    })
}

/// The events of one item: it begins empty, grows word by word, and is repeated when it is whole.
fn events(index: usize, item: &Json) -> Vec<Json> {
    let id = &item["id"];
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let mut growth = Vec::new();
    if item["type"] == "function_call" {
        let arguments = item["arguments"].as_str().unwrap_or_default();
        begun["arguments"] = json!("");
        let event = |kind: &str| json!({"type": format!("response.function_call_arguments.{kind}"), "item_id": id, "output_index": index});
        for part in words(arguments) {
            let mut delta = event("delta");
            delta["delta"] = json!(part);
            growth.push(delta);
        }
        let mut done = event("done");
        (done["name"], done["arguments"]) = (item["name"].clone(), json!(arguments));
        growth.push(done);
    } else {
        let part = &item["content"][0];
        let (kind, name) = if part["type"] == "refusal" { ("refusal", "refusal") } else { ("output_text", "text") };
        let text = part[name].as_str().unwrap_or_default();
        begun["content"] = json!([]);
        let event = |kind: String| json!({"type": format!("response.{kind}"), "item_id": id, "output_index": index, "content_index": 0});
        let mut added = event("content_part.added".into());
        added["part"] = part.clone();
        added["part"][name] = json!("");
        growth.push(added);
        for word in words(text) {
            let mut delta = event(format!("{kind}.delta"));
            delta["delta"] = json!(word);
            growth.push(delta);
        }
        let mut done = event(format!("{kind}.done"));
        done[name] = json!(text);
        growth.push(done);
        let mut whole = event("content_part.done".into());
        whole["part"] = part.clone();
        growth.push(whole);
    }
    let whole = |kind: &str, item: &Json| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    [vec![whole("added", &begun)], growth, vec![whole("done", item)]].concat()
}

impl Wire for Responses {
    fn asked<'a>(&self, _: &'a str, body: &'a [u8]) -> Result<Asked<'a>, String> {
        let request: Json =
            serde_json::from_slice(body).map_err(|error| format!("the request is not valid JSON: {error}"))?;
        let model = request["model"].as_str().filter(|model| !model.is_empty());
        let model = model.ok_or("you must provide a model parameter")?;
        let front = request["instructions"].as_str().map(|text| ChatMessage::text(Role::System, text));
        let rest = match &request["input"] {
            Json::String(text) => vec![ChatMessage::text(Role::User, text.as_str())],
            Json::Array(items) if !items.is_empty() => conversation(items)?,
            _ => return Err("`input` must be a text or a list of at least one item".into()),
        };
        let format = &request["text"]["format"];
        let form = match format["type"].as_str() {
            Some("json_schema") => Some(Format::Schema(Cow::Owned(format["schema"].to_string()))),
            Some("json_object") => Some(Format::Object),
            _ => None,
        };
        let tools = tools(&request)?;
        let forced = tools.forced.as_ref().map(|(_, schema)| Format::Schema(Cow::Owned(schema.clone())));
        Ok(Asked {
            model: Cow::Owned(model.to_owned()),
            letters: request["input"].to_string().chars().count() + request["instructions"].to_string().chars().count(),
            messages: front.into_iter().chain(rest).collect(),
            in_form: form.is_some(),
            format: forced.or(form),
            tools,
            longest: request["max_output_tokens"].as_u64(),
            stream: request["stream"] == true,
            logprobs: false,
            alternatives: 0,
            include_usage: true,
        })
    }

    fn whole(&self, head: &Head, said: &Said) -> String {
        response(head, said, &output(head, said)).to_string()
    }

    fn pieces(&self, head: &Head, said: &Said) -> Option<(&'static str, Vec<String>)> {
        let items = output(head, said);
        let mut begun = response(head, said, &[]);
        (begun["status"], begun["usage"], begun["incomplete_details"]) =
            (json!("in_progress"), json!(null), json!(null));
        let whole = response(head, said, &items);
        let end = format!("response.{}", whole["status"].as_str().unwrap_or_default());
        let start = ["response.created", "response.in_progress"].map(|kind| json!({"type": kind, "response": begun}));
        let middle = items.iter().enumerate().flat_map(|(index, item)| events(index, item));
        let all = start.into_iter().chain(middle).chain([json!({"type": end, "response": whole})]);
        let event = |(number, mut body): (usize, Json)| {
            body["sequence_number"] = json!(number);
            format!("event: {}\ndata: {body}\n\n", body["type"].as_str().unwrap_or_default())
        };
        Some(("text/event-stream; charset=utf-8", all.enumerate().map(event).collect()))
    }

    fn error(&self, failure: Failure<'_>, message: &str) -> (u16, Json) {
        let (status, mut body) = OpenAi.error(failure, message);
        if matches!(failure, Failure::Schema) {
            body["error"]["message"] =
                json!("Invalid parameter: 'text.format' of type 'json_schema' is not supported.");
            body["error"]["param"] = json!("text.format");
        }
        (status, body)
    }

    fn limit(&self, name: &str, bucket: &Bucket) -> Vec<(String, String)> {
        OpenAi.limit(name, bucket)
    }
}
