//! Replies with calls and thoughts, as servers and open models send them; written after their public documentation.

use crate::asking::{ask, effect_to};
use crate::wires::{WAYS, Way};
use polity_kernel::ask::{Outcome, ResponseFormat, Value};
use polity_kernel::tool::{EffectClass, ToolSpec};
use polity_models::models::{Exchange, Settings};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// What a model thinks in these replies; it must not be found in any answer.
const THOUGHTS: &str = "The user wants the weather.";
const WORDS: &str = "I look it up.";

/// A server of one answer to every request; returns its root.
fn serving(kind: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    let serve = move |mut stream: TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? <= 2 {
                break;
            }
            if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may be gone.
            let _ = serve(stream.unwrap());
        }
    });
    root
}

fn way(name: &str) -> &'static Way {
    WAYS.iter().find(|way| way.name == name).unwrap()
}

fn tools() -> ResponseFormat {
    let weather = json!({
        "type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer"}}, "required": ["town"],
    });
    let now = json!({"type": "object", "properties": {}});
    ResponseFormat::Calls(
        vec![
            ToolSpec::new("weather", "Tells the weather", &weather, EffectClass::Reads),
            ToolSpec::new("now", "Tells the time", &now, EffectClass::Reads),
        ]
        .into(),
    )
}

/// What a provider makes of a body.
fn read(name: &str, kind: &'static str, body: String, format: ResponseFormat) -> Exchange {
    let way = way(name);
    let root = serving(kind, body);
    let base = if name.starts_with("openai") { format!("{root}/v1") } else { root };
    let settings = Settings { stream: way.stream, ..Settings::default() };
    ask(&*(way.open)(&base, "none", settings).unwrap(), &effect_to(way.model, format, "How warm is it?")).unwrap()
}

/// Checks words and calls of a reply, and that its thoughts are kept apart.
fn check(which: &str, exchange: &Exchange, words: &str, calls: &[(&str, Json)], thinks: bool) {
    let shown = format!("{:?}", exchange.outcome);
    match &exchange.outcome {
        Outcome::Reply { value: Value::Calls { text, calls: made }, .. } => {
            let made: Vec<(&str, Json)> =
                made.iter().map(|call| (call.tool.as_str(), Json::Object(call.read()))).collect();
            assert_eq!((text.as_str(), made.as_slice()), (words, calls), "{which}");
        }
        _ => panic!("{which}: {shown}"),
    }
    assert_eq!(exchange.reasoning.as_deref(), thinks.then_some(THOUGHTS), "{which}");
    assert!(!shown.contains(THOUGHTS) && !shown.contains("think>"), "{which}: {shown}");
}

fn both() -> Vec<(&'static str, Json)> {
    vec![("weather", json!({"town": "Bern", "days": 2})), ("now", json!({}))]
}

/// A chat completion.
fn chat(message: Json, finish: &str) -> String {
    let usage = json!({"prompt_tokens": 90, "completion_tokens": 60, "total_tokens": 150, "completion_tokens_details": {"reasoning_tokens": 20}});
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage})
        .to_string()
}

fn function(id: &str, name: &str, arguments: &str) -> Json {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

#[test]
fn calls_in_the_form_of_chat_completions_are_read() {
    let two = json!([function("call_1", "weather", r#"{"town": "Bern", "days": 2}"#), function("call_2", "now", "{}")]);
    let messages = [
        (
            "OpenAI, in parallel",
            "",
            json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": two}),
        ),
        (
            "GLM-4.5",
            WORDS,
            json!({"role": "assistant", "content": format!("\n{WORDS}\n"), "reasoning_content": format!("\n{THOUGHTS}"), "tool_calls": two}),
        ),
        ("DeepSeek", "", json!({"role": "assistant", "content": "", "reasoning_content": THOUGHTS, "tool_calls": two})),
        (
            "vLLM, without arguments of a tool that has none",
            "",
            json!({"role": "assistant", "content": null, "reasoning": THOUGHTS, "tool_calls": [
                function("chatcmpl-tool-1", "weather", r#"{"town": "Bern", "days": 2}"#), function("chatcmpl-tool-2", "now", ""),
            ]}),
        ),
    ];
    for (which, words, message) in messages {
        let exchange = read("openai", "application/json", chat(message, "tool_calls"), tools());
        check(which, &exchange, words, &both(), !which.starts_with("OpenAI"));
        assert_eq!((exchange.usage.tokens_in, exchange.usage.tokens_thinking), (90, 20), "{which}");
    }
}

#[test]
fn calls_in_the_text_of_open_models_are_read() {
    let list = r#"[{"name": "weather", "arguments": {"town": "Bern", "days": 2}}, {"name": "now", "arguments": {}}]"#;
    let tag = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let tags = format!("{}\n{}", tag("weather", r#"{"town": "Bern", "days": 2}"#), tag("now", "{}"));
    let keyed = "<tool_call>weather\n<arg_key>town</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>";
    let texts = [
        ("xLAM", "", list.to_owned()),
        ("xLAM, after thoughts", "", format!("<think>{THOUGHTS}</think>\n{list}")),
        ("Hermes", "", tags.clone()),
        ("Hermes, with words", WORDS, format!("{WORDS}\n{tags}")),
        ("Qwen, after thoughts", "", format!("<think>\n{THOUGHTS}\n</think>\n\n{tags}")),
        ("Qwen, without the tag that its template opens", WORDS, format!("{THOUGHTS}\n</think>\n\n{WORDS}\n{tags}")),
        ("GLM-4.5", WORDS, format!("\n<think>{THOUGHTS}</think>\n{WORDS}\n{keyed}")),
    ];
    for (which, words, text) in texts {
        let thinks = text.contains(THOUGHTS);
        let exchange =
            read("openai", "application/json", chat(json!({"role": "assistant", "content": text}), "stop"), tools());
        check(which, &exchange, words, &both(), thinks);
    }
}

#[test]
fn calls_in_a_stream_are_put_together() {
    let events = |deltas: &[Json]| {
        let event = |delta: &Json| {
            format!(
                "data: {}\n\n",
                json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
            )
        };
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 90, "completion_tokens": 60}});
        deltas.iter().map(event).collect::<String>() + &format!("data: {end}\n\ndata: [DONE]\n\n")
    };
    let begun = |index: u64, name: &str, arguments: &str| json!({"tool_calls": [{"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": arguments}}]});
    let more =
        |index: u64, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]});
    let thought = |name: &str| {
        let (first, second) = THOUGHTS.split_at(9);
        [json!({"role": "assistant", "content": null, name: first}), json!({name: second})]
    };
    let pieces = [
        begun(0, "weather", ""),
        more(0, "{\"town\": "),
        more(0, "\"Bern\", \"days\": 2}"),
        begun(1, "now", ""),
        more(1, "{}"),
    ];
    let at_once = [begun(0, "weather", r#"{"town": "Bern", "days": 2}"#), begun(1, "now", "{}")];
    for (which, deltas) in [
        ("OpenAI", [&[json!({"role": "assistant", "content": null})][..], &pieces].concat()),
        ("DeepSeek", [&thought("reasoning_content")[..], &pieces].concat()),
        ("GLM-4.5", [&thought("reasoning_content")[..], &at_once].concat()),
        ("vLLM", [&thought("reasoning")[..], &at_once].concat()),
    ] {
        let exchange = read("openai, in pieces", "text/event-stream", events(&deltas), tools());
        check(which, &exchange, "", &both(), which != "OpenAI");
    }
}

#[test]
fn calls_beside_thoughts_are_read_on_every_wire() {
    let responses = json!({
        "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "output": [
            {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHTS}]},
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": WORDS, "annotations": []}]},
            {"id": "fc_1", "type": "function_call", "call_id": "call_1", "status": "completed", "name": "weather", "arguments": "{\"town\":\"Bern\",\"days\":2}"},
            {"id": "fc_2", "type": "function_call", "call_id": "call_2", "status": "completed", "name": "now", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 90, "output_tokens": 60, "output_tokens_details": {"reasoning_tokens": 20}},
    });
    let anthropic = json!({
        "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": {"input_tokens": 90, "output_tokens": 60},
        "content": [
            {"type": "thinking", "thinking": THOUGHTS, "signature": "c2ln"}, {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "text", "text": WORDS},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"town": "Bern", "days": 2}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        ],
    });
    let google = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": THOUGHTS, "thought": true}, {"text": WORDS},
            {"functionCall": {"id": "1", "name": "weather", "args": {"town": "Bern", "days": 2}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "now"}},
        ]}}],
        "usageMetadata": {"promptTokenCount": 90, "candidatesTokenCount": 40, "thoughtsTokenCount": 20},
    });
    let ollama = json!({
        "model": "m", "done": true, "done_reason": "stop", "prompt_eval_count": 90, "eval_count": 60,
        "message": {"role": "assistant", "content": WORDS, "thinking": THOUGHTS, "tool_calls": [
            {"function": {"index": 0, "name": "weather", "arguments": {"town": "Bern", "days": 2}}},
            {"function": {"index": 1, "name": "now", "arguments": {}}},
        ]},
    });
    for (name, body) in
        [("openai-responses", responses), ("anthropic", anthropic), ("google", google), ("ollama", ollama)]
    {
        let exchange = read(name, "application/json", body.to_string(), tools());
        check(name, &exchange, WORDS, &both(), true);
        assert_eq!((exchange.usage.tokens_in, exchange.usage.tokens_out), (90, 60), "{name}");
    }
}

#[test]
fn thoughts_are_no_part_of_an_answer() {
    let text = |content: &str| {
        read(
            "openai",
            "application/json",
            chat(json!({"role": "assistant", "content": content}), "stop"),
            ResponseFormat::Text,
        )
    };
    for content in [
        format!("<think>{THOUGHTS}</think>{WORDS}"),
        format!("\n<think>\n{THOUGHTS}\n</think>\n\n{WORDS}"),
        format!("{THOUGHTS}\n</think>\n\n{WORDS}"),
    ] {
        let exchange = text(&content);
        assert_eq!(exchange.reasoning.as_deref(), Some(THOUGHTS), "{content}");
        let expected = Outcome::Reply { value: Value::Text(WORDS.into()), raw: WORDS.into(), repaired: false };
        assert_eq!(exchange.outcome, expected, "{content}");
    }
    // Thoughts alone are no answer.
    let alone = text(&format!("<think>{THOUGHTS}</think>")).outcome;
    assert!(matches!(&alone, Outcome::Invalid { why, .. } if why.contains("empty")), "{alone:?}");
}
