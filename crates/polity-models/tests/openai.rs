//! The provider `openai` against the mock server, and its parser against everything that servers send.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::asking::{CANARY, ask, block_on, choice, effect, fits, formats, mock_server, percent, record};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use polity_kernel::ask::{ChatMessage, Effect, Outcome, Part, ResponseFormat, Role, Value};
use polity_models::mock_server::MockServer;
use polity_models::models::anthropic::Anthropic;
use polity_models::models::keys::Secret;
use polity_models::models::openai::wire::{ChatRequest, Function, Tool, WireMessage};
use polity_models::models::openai::{OpenAi, Received, Settings, outcome, read_completion};
use polity_models::models::{Exchange, Provider, ProviderError};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn provider(mock_server: &MockServer, settings: Settings) -> OpenAi {
    OpenAi::new(&mock_server.url(), Secret::new(CANARY)).unwrap().with(settings)
}

#[test]
fn what_others_said_is_sent_in_words() {
    let provider = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("none")).unwrap().with(Settings {
        seed: Some(u64::MAX),
        temperature: Some(0.5),
        max_tokens: Some(9),
        logprobs: Some(2),
        ..Settings::default()
    });
    let mut effect = effect(choice(), "Who is right?");
    let said = Part::Said { by: "Ada".into(), answer: "42".into(), reasons: "I counted.".into() };
    Arc::make_mut(&mut effect.request.messages).push(ChatMessage { role: Role::Assistant, parts: vec![said] });
    let sent = serde_json::to_value(provider.request(&effect)).unwrap();
    let schema = json!({
        "type": "object", "properties": {"answer": {"type": "string", "enum": ["calm", "angry", "{sad}"]}},
        "required": ["answer"], "additionalProperties": false,
    });
    let expected = json!({
        "model": "medium",
        "messages": [
            {"role": "system", "content": "You are brief."}, {"role": "user", "content": "Who is right?"},
            {"role": "assistant", "content": "Ada answers: 42\nReasons: I counted."},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}},
        "temperature": 0.5, "seed": i64::MAX, "max_tokens": 9, "logprobs": true, "top_logprobs": 2,
    });
    assert_eq!(sent, expected);
    // By default only the request and the maximum reply length are sent.
    let plain = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("none")).unwrap();
    effect.request.response_format = ResponseFormat::Text;
    let sent = serde_json::to_value(plain.request(&effect)).unwrap();
    assert_eq!(sent.as_object().unwrap().keys().collect::<Vec<_>>(), ["model", "messages", "max_tokens"]);
    assert!(serde_json::from_value::<Settings>(json!({"temprature": 1})).is_err());
}

#[test]
fn tools_and_log_probabilities_come_back() {
    let mock_server = mock_server(&[]);
    let provider = provider(&mock_server, Settings::default());
    let parameters = json!({"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]});
    let request = ChatRequest {
        model: "large".into(),
        messages: vec![WireMessage { role: "user", content: Some("Weather?".into()), ..WireMessage::default() }],
        tools: vec![Tool {
            r#type: "function",
            function: Function { name: "weather".into(), description: None, parameters: Some(parameters) },
        }],
        tool_choice: Some(json!("required")),
        ..ChatRequest::default()
    };
    for stream in [None, Some(true)] {
        let completion = block_on(provider.complete(&ChatRequest { stream, ..request.clone() })).unwrap().unwrap();
        assert_eq!(completion.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(completion.content, None);
        let call = &completion.tool_calls[0];
        assert!(call.id.starts_with("call_") && call.function.name == "weather", "{call:?}");
        let arguments: Json = serde_json::from_str(&call.function.arguments).unwrap();
        assert!(arguments["town"].is_string(), "{arguments}");
        // Only a tool was requested here, so it is not a reply.
        assert!(
            matches!(outcome(&ResponseFormat::Text, &completion, ""), Outcome::Invalid { why, .. } if why.contains("`weather`"))
        );
        let plain =
            ChatRequest { stream, tools: Vec::new(), tool_choice: None, logprobs: Some(true), ..request.clone() };
        let completion = block_on(provider.complete(&plain)).unwrap().unwrap();
        let words: String = completion.logprobs.iter().map(|token| token.token.as_str()).collect();
        assert_eq!(Some(words), completion.content);
    }
}

#[test]
fn texts_are_given_vectors() {
    let mock_server = mock_server(&[]);
    let provider = provider(&mock_server, Settings::default());
    let vectors = ["a red house", "two dogs", "a red car"].map(|text| {
        let effect = effect(ResponseFormat::Vector, text);
        let Exchange { outcome, usage, .. } = ask(&provider, &effect).unwrap();
        assert!(usage.tokens_in > 0 && usage.tokens_in <= provider.most(&effect.request).tokens_in, "{usage:?}");
        assert_eq!((usage.tokens_out, provider.most(&effect.request).tokens_out), (0, 0));
        match outcome {
            Outcome::Reply { value: Value::Vector(vector), raw, repaired: false } if raw.contains("256") => vector,
            other => panic!("{other:?}"),
        }
    });
    let near = |a: usize, b: usize| -> f32 { vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum() };
    assert!(near(0, 2) > near(0, 1));
    let other = Anthropic::new("http://127.0.0.1:1", Secret::new(CANARY)).unwrap();
    let trouble = ask(&other, &effect(ResponseFormat::Vector, "a text")).unwrap_err();
    assert!(matches!(&trouble, ProviderError::Fatal { why } if why.contains("openai/")), "{trouble:?}");
}

#[test]
fn wrong_addresses_say_what_to_do() {
    let refused = |base: &str| OpenAi::new(base, Secret::new(CANARY)).map(|_| ()).unwrap_err();
    for base in
        ["127.0.0.1:8000/v1", "localhost:8000/v1", "ftp://a/v1", "", "https://", "me:pass-0123456789@host:x/v1?key=k"]
    {
        let error = refused(base);
        assert!(error.contains("OPENAI_BASE_URL") && error.contains("http://127.0.0.1:8000/v1"), "{error}");
        assert!(!error.contains("pass-0123456789") && !error.contains("key=k"), "{error}");
    }
    let error = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("")).unwrap_err();
    assert!(error.contains("OPENAI_API_KEY") && error.contains("sim/medium"), "{error}");
    let error = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("two\nlines-0123456789")).unwrap_err();
    assert!(error.contains("line break") && !error.contains("lines-"), "{error}");
    let provider = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("none")).unwrap();
    assert!(provider.check("openai/").unwrap_err().contains("names no model"));
    assert!(provider.check("openai/meta-llama/Llama-3.1-8B").is_ok());
}

#[test]
fn a_provider_is_shown_without_its_secrets() {
    let password = "pass-canary-0123456789";
    let provider =
        OpenAi::new(&format!("http://me:{password}@127.0.0.1:1/v1?key={CANARY}"), Secret::new(CANARY)).unwrap();
    let shown = format!("{provider:?}");
    assert!(shown.contains("http://127.0.0.1:1/v1") && !shown.contains(password) && !shown.contains(CANARY), "{shown}");
}

/// A server of one answer: it echoes everything received, including headers with the key.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        // The request ends with this.
        while !sent.ends_with(b"\"max_tokens\":8192}") {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).unwrap();
            sent.extend_from_slice(&part[..length]);
        }
        let answer = body(json!(String::from_utf8(sent).unwrap()), "stop");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes()).unwrap();
    });
    format!("http://{address}/v1")
}

#[test]
fn a_key_that_a_server_repeats_is_hidden_in_its_answer() {
    let provider = OpenAi::new(&echo(), Secret::new(CANARY)).unwrap();
    match ask(&provider, &effect(ResponseFormat::Text, "?")).unwrap().outcome {
        Outcome::Reply { raw, .. } => {
            assert!(raw.contains("authorization: Bearer ***") && !raw.contains(CANARY), "{raw}")
        }
        other => panic!("{other:?}"),
    }
}

/// A server of one fixed answer.
fn once(head: &str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", body.len());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        while !sent.ends_with(b"\"max_tokens\":8192}") {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).unwrap();
            sent.extend_from_slice(&part[..length]);
        }
        stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    });
    format!("http://{address}/v1")
}

#[test]
fn a_key_is_hidden_however_a_server_spells_it() {
    let escaped: String = CANARY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let base64 = BASE64_STANDARD.encode(format!("Bearer {CANARY}"));
    let percent: String = CANARY.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    // In the text of the reply; in JSON written by a model, the backslash of an escape is itself escaped.
    for spelling in [CANARY, &escaped, &escaped.replace('\\', "\\\\"), &base64, &percent, &hex] {
        let reply = format!(
            r#"{{"choices": [{{"message": {{"role": "assistant", "content": "it is {spelling}"}}, "finish_reason": "stop"}}]}}"#
        );
        let provider = OpenAi::new(&once("HTTP/1.1 200 OK", reply.into_bytes()), Secret::new(CANARY)).unwrap();
        let exchange = ask(&provider, &effect(ResponseFormat::Text, "?")).unwrap();
        let Outcome::Reply { value: Value::Text(text), raw, .. } = exchange.outcome else { panic!("{spelling}") };
        assert!(text.starts_with("it is") && text.contains("***"), "{spelling}: {text}");
        for spelled in [CANARY, &escaped, base64.get(10..30).unwrap(), &percent, &hex] {
            assert!(!text.contains(spelled) && !raw.contains(spelled), "{spelling}: {text}");
        }
        // In an error, too.
        let refusal = format!(r#"{{"error": {{"message": "not with {spelling}"}}}}"#);
        let base = once("HTTP/1.1 401 No", refusal.into_bytes());
        let trouble =
            ask(&OpenAi::new(&base, Secret::new(CANARY)).unwrap(), &effect(ResponseFormat::Text, "?")).unwrap_err();
        let told = trouble.to_string();
        assert!(told.contains("not with ") && told.contains("***") && !told.contains(CANARY), "{spelling}: {told}");
    }
}

#[test]
fn a_body_that_is_encoded_unasked_is_no_answer() {
    let gzip = || [&[0x1f, 0x8b, 8, 0][..], &[0xff; 40]].concat();
    let trouble = |head: &str| {
        let provider = OpenAi::new(&once(head, gzip()), Secret::new(CANARY)).unwrap();
        ask(&provider, &effect(ResponseFormat::Text, "?")).unwrap_err()
    };
    for encoding in ["gzip", "deflate", "br"] {
        let ended = trouble(&format!("HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}"));
        let said = format!("encoded as {encoding}, which was not asked for");
        assert!(matches!(&ended, ProviderError::Retry { why, charged: true, .. } if why.contains(&said)), "{ended:?}");
    }
    // The status counts, although the message is unreadable.
    let ended = trouble("HTTP/1.1 401 No\r\nContent-Encoding: gzip");
    assert!(matches!(&ended, ProviderError::Fatal { why } if why.contains("a body encoded as gzip")), "{ended:?}");
    let plain = body(json!("fine"), "stop").into_bytes();
    let provider = OpenAi::new(&once("HTTP/1.1 200 OK\r\nContent-Encoding: identity", plain), Secret::new(CANARY));
    assert!(ask(&provider.unwrap(), &effect(ResponseFormat::Text, "?")).is_ok());
}

/// A server that refuses schemas with this status and body, and otherwise gives the answer; it counts both kinds of requests.
fn without_schema(status: u16, refusal: &'static str, answer: (u16, String)) -> (String, Arc<[AtomicU32; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let counted = counts.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut sent = Vec::new();
            while !(sent.ends_with(b"\"max_tokens\":8192}") || sent.starts_with(b"GET") && sent.ends_with(b"\r\n\r\n"))
            {
                let mut part = [0; 4096];
                let length = stream.read(&mut part).unwrap();
                assert!(length > 0, "{}", String::from_utf8_lossy(&sent));
                sent.extend_from_slice(&part[..length]);
            }
            let sent = String::from_utf8(sent).unwrap();
            // It has no model information, and is probed once.
            if sent.starts_with("GET") {
                stream.write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
                continue;
            }
            let plain = !sent.contains("response_format");
            counted[usize::from(plain)].fetch_add(1, Relaxed);
            assert_eq!(plain, sent.contains("JSON Schema"), "{sent}");
            let (status, body) = if plain { (answer.0, answer.1.as_str()) } else { (status, refusal) };
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    (format!("http://{address}/v1"), counts)
}

#[test]
fn where_no_schema_is_taken_the_form_is_asked_for_in_words() {
    let fine = || (200, body(json!("{\"answer\": 7}"), "stop"));
    let bad = || (400, r#"{"error": {"message": "the conversation is too long"}}"#.to_string());
    let seen = |counts: &[AtomicU32; 2]| [counts[0].load(Relaxed), counts[1].load(Relaxed)];
    let seven = Some(Outcome::Reply { value: Value::Number(7.0), raw: "{\"answer\": 7}".into(), repaired: false });
    // Status, its message, the answer without a schema; whether there is a reply, and the number of requests with and without a schema in
    // three calls. A refused mode is tried twice, since a refusal may be accidental.
    let cases = [
        (400, r#"{"error": {"message": "no", "param": "response_format"}}"#, fine(), true, [2, 3]),
        (422, r#"{"detail": [{"loc": ["body", "json_schema", "maxItems"], "msg": "extra"}]}"#, fine(), true, [2, 3]),
        // It gives no reason; the answer without a schema shows it.
        (400, "Bad Request", fine(), true, [2, 3]),
        (400, r#"{"error": {"message": "the conversation is too long"}}"#, bad(), false, [6, 6]),
        (400, r#"{"error": {"message": "invalid schema"}}"#, bad(), false, [6, 6]),
        // Other reasons.
        (400, r#"{"error": {"message": "filtered", "code": "content_filter"}}"#, fine(), false, [3, 0]),
        (404, r#"{"error": {"message": "there is no response_format here"}}"#, fine(), false, [3, 0]),
        (500, r#"{"error": {"message": "response_format"}}"#, fine(), false, [3, 0]),
    ];
    for (status, refusal, answer, replies, expected) in cases {
        let (base, counts) = without_schema(status, refusal, answer);
        let provider = OpenAi::new(&base, Secret::new(CANARY)).unwrap();
        for _ in 0..3 {
            let ended = ask(&provider, &effect(percent(), "?"));
            let outcome = ended.as_ref().ok().map(|exchange| exchange.outcome.clone());
            assert_eq!(outcome == seven, replies, "{refusal}: {ended:?}");
            let never = matches!(&ended, Err(ProviderError::Never { why }) if why.contains("too long"));
            assert_eq!(never, expected == [6, 6], "{refusal}: {ended:?}");
        }
        assert_eq!(seen(&counts), expected, "{refusal}");
    }
    // The same with the mock server: the model is called in words, and that is remembered.
    let mock_server = mock_server(&["no-schema=1"]);
    let provider = provider(&mock_server, Settings::default());
    for calls in [3, 4] {
        let ended = ask(&provider, &effect(record(), "?")).unwrap();
        assert!(matches!(ended.outcome, Outcome::Reply { .. }) && ended.usage.tokens_in > 0, "{ended:?}");
        assert_eq!((mock_server.stats().calls, mock_server.stats().answered), (calls, calls - 2));
    }
}

#[test]
fn schemas_keep_to_what_models_take() {
    let provider = OpenAi::new("http://127.0.0.1:1/v1", Secret::new("none")).unwrap();
    let of = Box::new(ResponseFormat::number(0.0, f64::INFINITY));
    let mut effect = effect(ResponseFormat::List { of, least: 1, most: 3 }, "?");
    let schema = |effect: &Effect| provider.request(effect).response_format.unwrap().json_schema.schema;
    let items = json!({"type": "array", "items": {"type": "number", "minimum": 0.0}, "minItems": 1, "maxItems": 3});
    assert_eq!(schema(&effect)["properties"]["answer"], items);
    effect.request.model = "openai/ft:gpt-4o-mini:me::1".into();
    assert_eq!(schema(&effect)["properties"]["answer"], json!({"type": "array", "items": {"type": "number"}}));
    effect.request.response_format = ResponseFormat::yes_or_no();
    assert_eq!(schema(&effect)["properties"]["answer"], json!({"type": "boolean"}));
    // A budget reserves enough for either mode.
    assert!(
        provider.most(&effect.request).tokens_in
            > provider
                .request(&effect)
                .response_format
                .map_or(0, |form| { serde_json::to_string(&form).unwrap().len() as u64 })
    );
}

fn received(status: u16, headers: &[(&str, &str)], body: &str) -> Received {
    let header =
        |(name, value): &(&str, &str)| (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    Received::new(
        "http://h/v1",
        "m",
        status,
        headers.iter().map(header).collect::<HeaderMap>(),
        body.as_bytes().to_vec(),
    )
}

/// The result of a body: `reply`, `refused`, `invalid`, `retry`, `never` or `fatal`, and its message.
fn comes_to(response_format: &ResponseFormat, received: &Received) -> (&'static str, String) {
    let read = match read_completion(received) {
        Ok(Ok(completion)) => outcome(response_format, &completion, &received.body),
        Ok(Err(outcome)) => outcome,
        Err(ProviderError::Retry { why, after_ms, .. }) => return ("retry", format!("{why} {after_ms:?}")),
        Err(ProviderError::RateLimited { why, after_ms }) => return ("crowded", format!("{why} {after_ms:?}")),
        Err(ProviderError::Anew { why }) => return ("anew", why),
        Err(ProviderError::Never { why }) => return ("never", why),
        Err(ProviderError::Fatal { why }) => return ("fatal", why),
    };
    match read {
        Outcome::Reply { raw, .. } => ("reply", raw),
        Outcome::Refused { raw } => ("refused", raw),
        Outcome::Invalid { why, .. } => ("invalid", why),
        other => panic!("{other:?}"),
    }
}

fn body(content: Json, finish_reason: &str) -> String {
    json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}]})
        .to_string()
}

/// Status, headers and body; the result, and words of its message.
type Case = (u16, &'static [(&'static str, &'static str)], String, &'static str, &'static str);

#[test]
fn what_servers_send_comes_to_what_it_is() {
    let number = percent();
    let ok = |content: &str| body(json!(content), "stop");
    let cases: &[Case] = &[
        (200, &[], ok(r#"{"answer": 7}"#), "reply", "7"),
        (200, &[], ok("7"), "reply", "7"),
        (200, &[], ok("7 or so"), "invalid", "wanted a number"),
        (200, &[], ok(r#"{"answer": 700}"#), "invalid", "outside"),
        (200, &[], body(json!("7"), "length"), "invalid", "cut off"),
        (200, &[], body(json!("7"), "content_filter"), "refused", "7"),
        (200, &[], body(json!(null), "stop"), "invalid", "null"),
        (200, &[], body(json!(7), "stop"), "invalid", "no chat completion"),
        (200, &[], body(json!("  "), "stop"), "invalid", "empty"),
        (200, &[], "7".into(), "invalid", "no chat completion"),
        (200, &[], "Internal error".into(), "invalid", "no JSON"),
        (200, &[], String::new(), "retry", "empty body"),
        (200, &[], ok("7").chars().take(20).collect(), "retry", "cut off"),
        (200, &[], "{}".into(), "invalid", "no `choices`"),
        (200, &[], r#"{"choices": []}"#.into(), "invalid", "no `choices`"),
        (200, &[], r#"{"choices": null}"#.into(), "invalid", "no `choices`"),
        (200, &[], r#"{"error": {"message": "busy", "code": 503}}"#.into(), "retry", "503"),
        (200, &[], r#"{"error": {"message": "busy", "code": "odd"}}"#.into(), "invalid", "in place of an answer: busy"),
        (200, &[], r#"{"error": {"message": "slow", "type": "rate_limit_exceeded"}}"#.into(), "retry", "429"),
        (200, &[], "<HTML>hello".into(), "retry", "web page"),
        (200, &[("content-type", "text/html")], "7".into(), "retry", "web page"),
        (
            200,
            &[("content-type", "text/event-stream")],
            "data: {\"choices\":[{\"delta\":{\"content\":\"7\"}}]}\n".into(),
            "retry",
            "cut",
        ),
        (200, &[("content-type", "text/event-stream")], "data: oops\n".into(), "invalid", "piece of the stream"),
        (
            200,
            &[("content-type", "text/event-stream")],
            "data: {\"error\": {\"message\": \"x\", \"code\": 500}}\n".into(),
            "retry",
            "500",
        ),
        (302, &[("location", "http://elsewhere")], String::new(), "fatal", "redirects"),
        (400, &[], r#"{"error": {"message": "bad", "code": null}}"#.into(), "never", "bad"),
        (400, &[], r#"{"error": {"message": "no!", "code": "content_filter"}}"#.into(), "refused", "no!"),
        (401, &[], r#"{"error": "who are you"}"#.into(), "fatal", "who are you"),
        (403, &[], "<html>".into(), "fatal", "OPENAI_API_KEY"),
        (404, &[], "nothing here".into(), "fatal", "OPENAI_BASE_URL"),
        (408, &[], String::new(), "retry", "408"),
        (409, &[], String::new(), "retry", "409"),
        (422, &[], r#"{"detail": [{"loc": "body"}]}"#.into(), "never", "loc"),
        (429, &[("retry-after", "3")], String::new(), "crowded", "Some(3000)"),
        (429, &[], r#"{"error": {"message": "x", "type": "insufficient_quota"}}"#.into(), "fatal", "quota"),
        (503, &[("x-ratelimit-reset-requests", "2s")], "down".into(), "crowded", "Some(2000)"),
        (599, &[], String::new(), "retry", "599"),
        (700, &[], String::new(), "fatal", "700"),
    ];
    for (status, headers, body, what, words) in cases {
        let (came, said) = comes_to(&number, &received(*status, headers, body));
        assert!(came == *what && said.contains(words), "{status} {body}: {came}: {said}");
    }
    // Unreadable token counts do not discard an answer; readable ones are kept separately.
    let with = |usage: Json| {
        let mut whole: Json = serde_json::from_str(&ok("7")).unwrap();
        whole["usage"] = usage;
        read_completion(&received(200, &[], &whole.to_string())).unwrap().unwrap().usage
    };
    assert_eq!(with(json!({"prompt_tokens": -1})), None);
    let usage = with(json!({
        "prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }));
    assert_eq!(usage.map(|usage| (usage.cached_in(), usage.reasoning_out())), Some((8, 4)));
    assert_eq!(
        with(json!({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": null}))
            .map(|usage| usage.cached_in()),
        Some(0)
    );
    // An incomplete count is no count.
    for partly in [json!({}), json!({"total_tokens": 14}), json!({"prompt_tokens": 9}), json!({"completion_tokens": 5})]
    {
        assert_eq!(with(partly.clone()), None, "{partly}");
    }
}

/// A damaged body, close to what servers send.
fn wounded() -> impl Strategy<Value = (Vec<u8>, &'static str)> {
    let contents = prop_oneof![
        Just(json!("7")),
        Just(json!("calm")),
        Just(json!(r#"{"answer": "calm"}"#)),
        Just(json!(r#"{"answer": "yes", "mood": "calm", "sure": 50}"#)),
        Just(json!(r#"{"answer": "yes", "mood": "calm", "sure": 5e400}"#)),
        Just(json!(null)),
        Just(json!({"answer": 1})),
        Just(json!([[[[]]]])),
        any::<String>().prop_map(|text| json!(text)),
    ];
    let finish = prop_oneof![Just("stop"), Just("length"), Just("tool_calls"), Just("")];
    let whole = (contents, finish, any::<bool>()).prop_map(|(content, finish, stream)| match stream {
        false => (body(content, finish), "application/json"),
        true => {
            let first = json!({"choices": [{"index": 0, "delta": {"content": content}}]});
            let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
            (format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n"), "text/event-stream")
        }
    });
    let wound = prop_oneof![
        any::<prop::sample::Index>().prop_map(|at| (0, at, 0)),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| (1, at, byte)),
        any::<prop::sample::Index>().prop_map(|at| (2, at, 0)),
        any::<prop::sample::Index>().prop_map(|at| (3, at, 0)),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| (4, at, byte)),
    ];
    let wounds = prop::collection::vec(wound, 0..4);
    let near = (whole, wounds).prop_map(|((body, kind), wounds)| {
        let mut bytes = body.into_bytes();
        for (what, at, byte) in wounds {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match what {
                0 => bytes.truncate(at),
                1 => bytes[at] = byte,
                2 => drop(bytes.remove(at)),
                3 => bytes.extend_from_within(at..),
                _ => bytes.insert(at, byte),
            }
        }
        (bytes, kind)
    });
    let noise = (
        prop::collection::vec(any::<u8>(), 0..200),
        prop_oneof![Just("application/json"), Just("text/event-stream"), Just("x")],
    );
    prop_oneof![9 => near, 1 => noise]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn malformed_bodies_are_never_taken_for_replies(
        (bytes, kind) in wounded(),
        status in prop_oneof![8 => Just(200u16), 1 => 100u16..700],
        wait in "[0-9.a-zA-Z :,-]{0,12}",
        response_format in 0usize..4,
    ) {
        let response_format = formats()[response_format].clone();
        let mut headers = HeaderMap::new();
        for (name, value) in [("content-type", kind), ("retry-after", &wait), ("x-ratelimit-reset-tokens", &wait)] {
            headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let received = Received::new("http://h/v1", "m", status, headers, bytes);
        if let Ok(Ok(completion)) = read_completion(&received) {
            let outcome = outcome(&response_format, &completion, &received.body);
            if let Outcome::Reply { value, raw, .. } = outcome {
                prop_assert!(fits(&response_format, &value), "{value:?}");
                prop_assert_eq!(Some(&raw), completion.content.as_ref());
                prop_assert!((200..300).contains(&status) && received.fault.is_none());
                prop_assert!(completion.finish_reason.as_deref() != Some("length"));
            }
        }
    }
}
