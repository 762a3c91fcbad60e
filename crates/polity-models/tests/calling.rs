//! Calls of tools on every wire: a loop against the mock server, what is sent, and what servers and models reply.

use crate::asking::{ask, effect_to, mock_server};
use crate::wires::WAYS;
use polity_kernel::ask::{ChatMessage, Constrain, Effect, Outcome, Part, ResponseFormat, Role, Value};
use polity_kernel::tool::{EffectClass, ToolCall, ToolOutput, ToolSpec};
use polity_kernel::toolbox::ToolSession;
use polity_models::mock_server::{MockServer, Options};
use polity_models::models::Exchange;
use polity_models::models::anthropic::Anthropic;
use polity_models::models::google::Google;
use polity_models::models::keys::Secret;
use polity_models::models::ollama::Ollama;
use polity_models::models::openai::OpenAi;
use polity_models::models::openai_responses::OpenAiResponses;
use serde_json::{Value as Json, json};
use std::sync::Arc;

const QUESTION: &str = "How warm is it in Bern?";

fn search() -> Json {
    json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "k": {"type": "integer", "minimum": 1}},
        "required": ["query", "k"], "additionalProperties": false,
    })
}

fn nothing() -> Json {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

fn note() -> Json {
    json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
}

fn tools() -> Arc<Vec<ToolSpec>> {
    Arc::new(vec![
        ToolSpec::new("search", "Finds pages", &search(), EffectClass::Reads),
        ToolSpec::new("now", "The time", &nothing(), EffectClass::Reads),
        ToolSpec::new("note", "Keeps a note", &note(), EffectClass::Writes),
    ])
}

fn question(model: &str) -> Effect {
    effect_to(model, ResponseFormat::Calls(tools()), QUESTION)
}

fn called(exchange: &Exchange) -> (String, Vec<ToolCall>) {
    match &exchange.outcome {
        Outcome::Reply { value: Value::Calls { text, calls }, .. } => (text.clone(), calls.clone()),
        other => panic!("{other:?}"),
    }
}

/// Names and arguments.
fn made(calls: &[ToolCall]) -> Vec<(String, Json)> {
    calls.iter().map(|call| (call.tool.clone(), Json::Object(call.read()))).collect()
}

/// Adds numbered calls and their results to a conversation; the second result is an error.
fn continued(effect: &mut Effect, session: &mut ToolSession, text: &str, mut calls: Vec<ToolCall>) {
    session.number(&mut calls);
    let output = |nth: usize, call: &ToolCall| match nth {
        1 => ToolOutput::error("no clock"),
        _ => ToolOutput::text(format!("result of {}", call.tool)),
    };
    let results = calls.iter().enumerate().map(|(nth, call)| session.result(call, output(nth, call), 2_000));
    let results = results.map(Part::Result).collect();
    let text = (!text.is_empty()).then(|| Part::Text(text.to_owned()));
    let parts = text.into_iter().chain([Part::Calls(calls)]).collect();
    let messages = Arc::make_mut(&mut effect.request.messages);
    messages.push(ChatMessage { role: Role::Assistant, parts });
    messages.push(ChatMessage { role: Role::User, parts: results });
}

#[test]
fn two_rounds_of_calls_end_in_an_answer_on_every_wire() {
    for way in WAYS {
        let mock_server = mock_server(&[]);
        let provider = way.to(&mock_server, None);
        let (mut effect, mut session) = (question(way.model), ToolSession::default());
        let mut rounds = Vec::new();
        let answer = loop {
            let exchange = ask(&*provider, &effect).unwrap();
            let again = ask(&*provider, &effect).unwrap();
            assert_eq!(again.outcome, exchange.outcome, "{}: the same bytes, the same answer", way.name);
            let (text, calls) = called(&exchange);
            if calls.is_empty() {
                break text;
            }
            assert!(exchange.usage.tokens_in > 0 && exchange.usage.tokens_out > 0, "{}", way.name);
            rounds.push(made(&calls));
            continued(&mut effect, &mut session, &text, calls);
            assert!(rounds.len() < 4, "{}: {rounds:?}", way.name);
        };
        let first = vec![("search".into(), json!({"query": QUESTION, "k": 1})), ("now".into(), json!({}))];
        assert_eq!(rounds, [first, vec![("note".into(), json!({"text": QUESTION}))]], "{}", way.name);
        assert!(!answer.is_empty(), "{}", way.name);
        // Every request was accepted as it was sent first: nothing was refused and asked for in another form.
        assert_eq!((mock_server.stats().calls, mock_server.stats().answered), (6, 6), "{}", way.name);
    }
}

#[test]
fn faults_spoil_calls_too() {
    for fault in ["wrong-schema", "length", "empty", "null", "refusal"] {
        let mock_server = mock_server(&[&format!("{fault}=1")]);
        for way in WAYS {
            let outcome = ask(&*way.to(&mock_server, None), &question(way.model)).unwrap().outcome;
            let invalid = |part: &str| matches!(&outcome, Outcome::Invalid { why, .. } if why.contains(part));
            let fits = match fault {
                "wrong-schema" => invalid("do not fit"),
                "length" => invalid("cut off"),
                "refusal" if way.name == "ollama" => matches!(outcome, Outcome::Reply { .. }),
                "refusal" => matches!(outcome, Outcome::Refused { .. }),
                _ => invalid("content"),
            };
            assert!(fits, "{fault}, {}: {outcome:?}", way.name);
        }
    }
}

#[test]
fn a_server_without_tools_is_asked_in_another_form() {
    let options = Options { offers: vec![Constrain::Schema], ..Options::default() };
    let mock_server = MockServer::start(options).unwrap();
    for way in WAYS {
        let provider = way.to(&mock_server, None);
        let mut effect = question(way.model);
        let (text, calls) = called(&ask(&*provider, &effect).unwrap());
        let why = &provider.refused(way.model)[&Constrain::Tools];
        assert!(why.contains("tools"), "{}: {why}", way.name);
        // Calls and results are then words.
        continued(&mut effect, &mut ToolSession::default(), &text, calls);
        called(&ask(&*provider, &effect).unwrap());
        // By its setting, no other form is tried.
        effect.request.settings.constrain = Some(Constrain::Tools);
        let refused = ask(&*provider, &effect).unwrap_err().to_string();
        assert!(refused.contains("does not accept `constrain: tools`"), "{}: {refused}", way.name);
    }
}

/// A conversation with two calls in a message, their results, and words after them.
fn conversation(model: &str) -> Effect {
    let mut effect = question(model);
    let arguments = |json: Json| json.as_object().cloned().unwrap();
    let calls = vec![
        ToolCall::new("search", &arguments(json!({"query": "Bern", "k": 2}))),
        ToolCall::new("now", &arguments(json!({}))),
    ];
    continued(&mut effect, &mut ToolSession::default(), "I look.", calls);
    let messages = Arc::make_mut(&mut effect.request.messages);
    messages.last_mut().unwrap().parts.push(Part::Text("Go on.".into()));
    effect
}

#[test]
fn calls_and_results_are_sent_in_the_words_of_each_wire() {
    let near = "http://127.0.0.1:1";
    let (none, empty) = (|| Secret::new("none"), || Secret::new(""));
    let [found, failed] = ["[E1] result of search", "[E2] Error: no clock"];
    let described =
        [("search", "Finds pages", search()), ("now", "The time", nothing()), ("note", "Keeps a note", note())];
    let function = |(name, description, schema): &(&str, &str, Json)| json!({"name": name, "description": description, "parameters": schema});
    let typed = |tool: &(&str, &str, Json)| json!({"type": "function", "function": function(tool)});

    let sent = json!(OpenAi::new(&format!("{near}/v1"), none()).unwrap().request(&conversation("openai/m")));
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "You are brief."}, {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                call("call00001", "search", r#"{"query":"Bern","k":2}"#), call("call00002", "now", "{}"),
            ]},
            {"role": "tool", "tool_call_id": "call00001", "content": found},
            {"role": "tool", "tool_call_id": "call00002", "content": failed},
            {"role": "user", "content": "Go on."},
        ],
        "tools": described.iter().map(typed).collect::<Vec<_>>(), "max_tokens": 8192,
    });
    assert_eq!(sent, expected);

    let sent = json!(
        OpenAiResponses::new(&format!("{near}/v1"), none()).unwrap().request(&conversation("openai-responses/m"))
    );
    let flat = |(name, description, schema): &(&str, &str, Json)| json!({"type": "function", "name": name, "description": description, "parameters": schema, "strict": false});
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
    let expected = json!({
        "model": "m",
        "input": [
            {"role": "system", "content": "You are brief."}, {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "I look."},
            call("call00001", "search", r#"{"query":"Bern","k":2}"#), call("call00002", "now", "{}"),
            {"type": "function_call_output", "call_id": "call00001", "output": found},
            {"type": "function_call_output", "call_id": "call00002", "output": failed},
            {"role": "user", "content": "Go on."},
        ],
        "tools": described.iter().map(flat).collect::<Vec<_>>(), "store": false, "max_output_tokens": 8192,
    });
    assert_eq!(sent, expected);

    let sent = json!(Anthropic::new(near, none()).unwrap().request(&conversation("anthropic/m")));
    let tool = |(name, description, schema): &(&str, &str, Json)| json!({"name": name, "description": description, "input_schema": schema});
    let result = |id: &str, text: &str, error: bool| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error});
    let expected = json!({
        "model": "m", "system": "You are brief.",
        "messages": [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call00001", "name": "search", "input": {"query": "Bern", "k": 2}},
                {"type": "tool_use", "id": "call00002", "name": "now", "input": {}},
            ]},
            {"role": "user", "content": [
                result("call00001", found, false), result("call00002", failed, true), {"type": "text", "text": "Go on."},
            ]},
        ],
        "tools": described.iter().map(tool).collect::<Vec<_>>(), "max_tokens": 8192,
    });
    assert_eq!(sent, expected);

    for (model, signature) in
        [("google/gemini-2.5-flash", None), ("google/gemini-3-pro", Some("skip_thought_signature_validator"))]
    {
        let sent = json!(Google::new(near, none()).unwrap().request(&conversation(model)));
        let declared = |(name, description, schema): &(&str, &str, Json)| json!({"name": name, "description": description, "parametersJsonSchema": schema});
        let result =
            |name: &str, key: &str, text: &str| json!({"functionResponse": {"name": name, "response": {key: text}}});
        let mut first = json!({"functionCall": {"name": "search", "args": {"query": "Bern", "k": 2}}});
        if let Some(signature) = signature {
            first["thoughtSignature"] = json!(signature);
        }
        let expected = json!({
            "systemInstruction": {"parts": [{"text": "You are brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": QUESTION}]},
                {"role": "model", "parts": [
                    {"text": "I look."}, first, {"functionCall": {"name": "now", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    result("search", "result", found), result("now", "error", failed), {"text": "Go on."},
                ]},
            ],
            "tools": [{"functionDeclarations": described.iter().map(declared).collect::<Vec<_>>()}],
            "generationConfig": {"maxOutputTokens": 8192},
        });
        assert_eq!(sent, expected);
    }

    let sent = json!(Ollama::new(near, empty()).unwrap().request(&conversation("ollama/m")));
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "You are brief."}, {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"function": {"name": "search", "arguments": {"query": "Bern", "k": 2}}},
                {"function": {"name": "now", "arguments": {}}},
            ]},
            {"role": "tool", "tool_name": "search", "content": found},
            {"role": "tool", "tool_name": "now", "content": failed},
            {"role": "user", "content": "Go on."},
        ],
        "tools": described.iter().map(typed).collect::<Vec<_>>(), "options": {"num_predict": 8192}, "stream": false,
    });
    assert_eq!(sent, expected);
}
