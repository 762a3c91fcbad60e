//! Every wire against the mock server: replies, every fault, limits, keys; and its parser against what its servers send.

use crate::asking::{CANARY, ask, block_on, effect_to, fits, formats, mock_server, record};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Usage};
use polity_kernel::scenario::Price;
use polity_models::mock_server::{Fault, Faults, MockServer, Options};
use polity_models::models::anthropic::{Anthropic, Messages};
use polity_models::models::google::{GenerateContent, Google};
use polity_models::models::keys::Secret;
use polity_models::models::ollama::{self, Ollama};
use polity_models::models::openai::{Chat, OpenAi};
use polity_models::models::openai_responses::{OpenAiResponses, Responses};
use polity_models::models::prices::Prices;
use polity_models::models::{Ended, Exchange, Provider, ProviderError, Received, Remote, Settings, Wire};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Creates a provider from an address, a key and settings.
pub type Open = fn(&str, &str, Settings) -> Result<Box<dyn Provider>, String>;

/// A provider under test.
pub struct Way {
    /// The provider's name, with the variant.
    pub name: &'static str,
    /// Creates it.
    pub open: Open,
    /// The model called.
    pub model: &'static str,
    pub stream: bool,
    /// Variables named in errors: for the key and for the address.
    variables: [&'static str; 2],
}

fn open<W: Wire>(base: &str, key: &str, settings: Settings) -> Result<Box<dyn Provider>, String> {
    let provider = Remote::<W>::new(base, Secret::new(key))?;
    Ok(Box::new(provider.with(settings)))
}

const OPENAI: [&str; 2] = ["OPENAI_API_KEY", "OPENAI_BASE_URL"];
pub const WAYS: &[Way] = &[
    Way { name: "openai", open: open::<Chat>, model: "openai/medium", stream: false, variables: OPENAI },
    Way { name: "openai, in pieces", open: open::<Chat>, model: "openai/medium", stream: true, variables: OPENAI },
    Way {
        name: "anthropic",
        open: open::<Messages>,
        model: "anthropic/medium",
        stream: false,
        variables: ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
    },
    Way {
        name: "google",
        open: open::<GenerateContent>,
        model: "google/medium",
        stream: false,
        variables: ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
    },
    Way {
        name: "ollama",
        open: open::<ollama::Chat>,
        model: "ollama/medium",
        stream: false,
        variables: ["OLLAMA_API_KEY", "OLLAMA_HOST"],
    },
    Way {
        name: "openai-responses",
        open: open::<Responses>,
        model: "openai-responses/medium",
        stream: false,
        variables: OPENAI,
    },
];

impl Way {
    fn settings(&self, timeout_ms: Option<u64>) -> Settings {
        Settings { stream: self.stream, logprobs: self.stream.then_some(0), timeout_ms, ..Settings::default() }
    }

    /// Connects to the mock server. All addresses may end in `/v1`, or not.
    pub fn to(&self, mock_server: &MockServer, timeout_ms: Option<u64>) -> Box<dyn Provider> {
        let base = if self.variables == OPENAI { mock_server.url() } else { mock_server.root() };
        (self.open)(&base, CANARY, self.settings(timeout_ms)).unwrap()
    }

    fn effect(&self, response_format: ResponseFormat) -> Effect {
        effect_to(self.model, response_format, "How do you feel?")
    }
}

#[test]
fn every_kind_of_answer_comes_back() {
    for way in WAYS {
        let mock_server = mock_server(&[]);
        let provider = way.to(&mock_server, None);
        for response_format in formats() {
            let effect = way.effect(response_format.clone());
            let exchange = ask(&*provider, &effect).unwrap();
            match &exchange.outcome {
                Outcome::Reply { value, .. } => assert!(fits(&response_format, value), "{}: {value:?}", way.name),
                other => panic!("{}, {response_format:?}: {other:?}", way.name),
            }
            assert!(exchange.usage.tokens_in > 0 && exchange.usage.tokens_out > 0 && exchange.usage.latency_ms > 0.0);
            let again = ask(&*provider, &effect).unwrap().outcome;
            assert_eq!(again, exchange.outcome, "{}: the same bytes, the same answer", way.name);
        }
        let stats = mock_server.stats();
        assert_eq!((stats.calls, stats.answered, stats.repeated, stats.in_flight), (8, 8, 4, 0), "{}", way.name);
        assert!(stats.cost_usd > 0.0 && stats.tokens_in > 0);
    }
}

/// The expected result of a fault when a record was requested.
fn as_it_should(fault: Fault, way: &Way, ended: &Result<Exchange, ProviderError>) -> bool {
    let retry = |part: &str, wait: Option<u64>| matches!(ended, Err(ProviderError::Retry { why, after_ms, .. }) if why.contains(part) && *after_ms == wait);
    let crowded = |wait: Option<u64>| matches!(ended, Err(ProviderError::RateLimited { why, after_ms }) if why.contains("limits the rate") && *after_ms == wait);
    let fatal = |part: &str| matches!(ended, Err(ProviderError::Fatal { why }) if why.contains(part));
    let outcome = ended.as_ref().ok().map(|exchange| &exchange.outcome);
    let invalid =
        |part: &str| matches!(outcome, Some(Outcome::Invalid { raw, why }) if why.contains(part) && !raw.is_empty());
    match fault {
        // These wires have no word for it: it looks like a rate limit.
        Fault::Quota if ["google", "ollama"].contains(&way.name) => crowded(None),
        // Nor does this one for refusals; the text is not a record.
        Fault::Refusal if way.name == "ollama" => invalid("wanted a JSON object"),
        Fault::RateLimit => crowded(Some(1_000)),
        Fault::RateLimitBare => crowded(None),
        Fault::Quota => fatal("no quota left"),
        Fault::Server => retry("status 500", None),
        Fault::Key => fatal(way.variables[0]),
        Fault::Model => fatal("no model `medium`"),
        Fault::Hang | Fault::Drip => retry("no complete answer within 1.5 s", None),
        Fault::Cut => retry("broke off its answer", None),
        Fault::Truncated if way.stream => retry("cut before its end", None),
        Fault::Truncated => retry("sent a body that was cut off", None),
        Fault::WebPage => retry("web page", None) && retry(way.variables[1], None),
        Fault::Schema => invalid("the field `answer` is missing"),
        Fault::Length => invalid("cut off at the limit"),
        Fault::Empty => invalid("empty"),
        // A stream cannot tell it from an empty text if it starts with `""`.
        Fault::Null => invalid(if way.stream { "content" } else { "null" }),
        Fault::Refusal => matches!(outcome, Some(Outcome::Refused { raw }) if raw == "I cannot help with that."),
        Fault::Huge => invalid("longer than 10 MB"),
        // Called again without a form, the mock server reads it in the words.
        Fault::NoSchema => matches!(outcome, Some(Outcome::Reply { .. })),
    }
}

fn ends_as_it_should(fault: Fault, way: &Way, mock_server: &MockServer) {
    // The long answer needs time on a busy machine; hanging calls time out soon.
    let provider = way.to(mock_server, Some(if fault == Fault::Huge { 60_000 } else { 1_500 }));
    let began = Instant::now();
    let ended = ask(&*provider, &way.effect(record()));
    let took = began.elapsed();
    let shown: String = format!("{ended:?}").chars().take(2_000).collect();
    assert!(as_it_should(fault, way, &ended), "{fault}, {}: {shown}", way.name);
    // Generous, for busy machines: hanging calls never end.
    assert!(took < Duration::from_secs(60), "{fault}, {}: {took:?}", way.name);
    assert!(!shown.contains(CANARY), "{fault}, {}: {shown}", way.name);
    // For other kinds of answers there must never be a reply either; slow faults have shown that already.
    if !matches!(fault, Fault::Hang | Fault::Drip | Fault::Huge | Fault::NoSchema) {
        for response_format in formats() {
            let ended = ask(&*provider, &way.effect(response_format.clone()));
            let replied = matches!(ended, Ok(Exchange { outcome: Outcome::Reply { .. }, .. }));
            let as_text = (fault, way.name, &response_format) == (Fault::Refusal, "ollama", &ResponseFormat::Text);
            assert!(replied == as_text, "{fault}, {}: {ended:?}", way.name);
            assert!(!format!("{ended:?}").contains(CANARY));
        }
    }
}

#[test]
fn every_fault_ends_as_it_should_on_every_wire_and_in_time() {
    for fault in Fault::ALL {
        let mock_server = mock_server(&[&format!("{fault}=1")]);
        // In parallel: hanging calls all end at their timeout.
        std::thread::scope(|scope| {
            for way in WAYS {
                let mock_server = &mock_server;
                scope.spawn(move || ends_as_it_should(*fault, way, mock_server));
            }
        });
        let stats = mock_server.stats();
        assert_eq!(stats.faults.get(fault.name()), Some(&stats.calls));
        let effect = effect_to("openai/small", ResponseFormat::Vector, "a text");
        if !matches!(fault, Fault::Huge | Fault::Hang | Fault::Drip | Fault::NoSchema) {
            let provider = OpenAi::new(&mock_server.url(), Secret::new(CANARY)).unwrap();
            let ended = ask(&provider, &effect);
            let replied = matches!(&ended, Ok(Exchange { outcome: Outcome::Reply { .. }, .. }));
            assert!(!replied && !format!("{ended:?}").contains(CANARY), "vectors fail, too: {ended:?}");
        }
    }
}

/// The cost recorded for a call, at the price of the model in use.
fn counted(provider: &dyn Provider, effect: &Effect, ended: &Result<Exchange, ProviderError>) -> f64 {
    let price = Price { input: 0.15, output: 0.6, cached: None };
    let prices = Prices::from(BTreeMap::from([(effect.request.model.to_string(), price)]));
    let usage = match ended {
        Ok(exchange) => exchange.usage,
        Err(ProviderError::Retry { charged: true, .. }) => provider.most(&effect.request),
        Err(_) => Usage::default(),
    };
    prices.applied(&effect.request.model, usage).cost_usd
}

#[test]
fn what_the_server_counts_is_counted_here_too_whatever_comes_back() {
    for fault in Fault::ALL.iter().map(|fault| fault.name()).chain(["none"]) {
        let faults = if fault == "none" { vec![] } else { vec![format!("{fault}=1")] };
        let mock_server =
            MockServer::start(Options { faults: Faults::read(&faults).unwrap(), ..Options::default() }).unwrap();
        let mut ours = 0.0;
        for way in WAYS {
            // For timeouts, one wire shows as much as all.
            if ["hang", "slow-drip"].contains(&fault) && way.name != "openai" {
                continue;
            }
            let provider = way.to(&mock_server, Some(1_500));
            for response_format in [ResponseFormat::Text, record()] {
                let effect = way.effect(response_format);
                ours += counted(&*provider, &effect, &ask(&*provider, &effect));
                let theirs = mock_server.stats().cost_usd;
                assert!(ours >= theirs * (1.0 - 1e-9), "{fault}, {}: {ours} here, {theirs} there", way.name);
            }
        }
        // The count is never too high: rejected calls cost nothing.
        let turned_away = ["429", "429-no-retry-after", "quota", "500", "401", "404"].contains(&fault);
        assert!(!turned_away || ours == 0.0, "{fault}: {ours}");
    }
}

#[test]
fn where_one_place_can_not_be_asked_the_next_one_is() {
    let among = |standins: &[&MockServer]| {
        let places = standins.iter().map(|mock_server| (mock_server.url(), Secret::new(CANARY))).collect();
        let settings = Settings { timeout_ms: Some(500), ..Settings::default() };
        Remote::<Chat>::among(places).unwrap().with(settings)
    };
    let effect = effect_to("openai/medium", ResponseFormat::Text, "How do you feel?");
    let replies =
        |provider: &Remote<Chat>| matches!(ask(provider, &effect), Ok(Exchange { outcome: Outcome::Reply { .. }, .. }));
    let fine = mock_server(&[]);
    for fault in ["401=1", "429=1", "500=1", "quota=1"] {
        let bad = mock_server(&[fault]);
        let provider = among(&[&bad, &fine]);
        let before = fine.stats().answered;
        assert!((0..3).all(|_| replies(&provider)), "{fault}");
        // It is called once, and then skipped.
        assert_eq!((bad.stats().calls, fine.stats().answered - before), (1, 3), "{fault}");
        // If none is available, that is reported, and the next request starts with the other.
        let none = among(&[&bad, &bad]);
        assert!(ask(&none, &effect).is_err());
        assert_eq!(bad.stats().calls, 3, "{fault}");
    }
    let gone = mock_server(&[]);
    let provider = among(&[&gone, &fine]);
    drop(gone);
    assert!(replies(&provider));
    // A call that may have cost something is not repeated here.
    let hangs = mock_server(&["hang=1"]);
    let provider = among(&[&hangs, &fine]);
    assert!(matches!(ask(&provider, &effect), Err(ProviderError::Retry { charged: true, .. })));
    assert!(replies(&provider));
    // A request that is rejected for itself is rejected elsewhere, too.
    let refuses = mock_server(&["404=1"]);
    let provider = among(&[&refuses, &fine]);
    assert!(matches!(ask(&provider, &effect), Err(ProviderError::Fatal { .. })));
}

#[test]
fn limits_say_how_long_to_wait() {
    for way in WAYS {
        for (requests_per_minute, tokens_per_minute) in [(Some(2), None), (None, Some(60))] {
            let options = Options { requests_per_minute, tokens_per_minute, ..Options::default() };
            let mock_server = MockServer::start(options).unwrap();
            let provider = way.to(&mock_server, None);
            let ends: Vec<_> = (0..4).map(|_| ask(&*provider, &way.effect(ResponseFormat::Text))).collect();
            assert!(ends[0].is_ok());
            match &ends[3] {
                Err(ProviderError::RateLimited { why, after_ms: Some(wait) }) => {
                    assert!(why.contains("limits the rate") && (1..=60_000).contains(wait), "{why} {wait}");
                }
                other => panic!("{}: {other:?}", way.name),
            }
            assert!(mock_server.stats().limited > 0);
        }
    }
}

#[test]
fn wrong_addresses_and_keys_say_what_to_do() {
    for way in WAYS.iter().filter(|way| !way.stream) {
        let [key, base_url] = way.variables;
        let refused = |base: &str, key: &str| (way.open)(base, key, Settings::default()).err().unwrap();
        for base in ["ftp://a/v1", "https://", "ftp://me:pass-0123456789@host:x/v1?key=k"] {
            let error = refused(base, CANARY);
            assert!(error.contains(base_url) && error.contains("http://127.0.0.1:"), "{error}");
            assert!(!error.contains("pass-0123456789") && !error.contains("key=k"), "{error}");
        }
        let without = (way.open)("http://127.0.0.1:1", "", Settings::default());
        assert_eq!(
            without.err().is_some_and(|why| why.contains(key) && why.contains("sim/medium")),
            way.name != "ollama"
        );
        let error = refused("http://127.0.0.1:1", "two\nlines-0123456789");
        assert!(error.contains(key) && error.contains("line break") && !error.contains("lines-"), "{error}");
        let provider = (way.open)("http://127.0.0.1:1", "none", Settings::default()).unwrap();
        let slash = format!("{}/", way.name);
        assert!(provider.check(&slash).unwrap_err().contains("names no model"));
        assert!(provider.check(way.model).is_ok());
    }
}

#[test]
fn a_key_is_nowhere_in_what_is_shown() {
    let mock_server = mock_server(&[]);
    let password = "pass-canary-0123456789";
    for way in WAYS.iter().filter(|way| !way.stream) {
        // No listener, TLS where there is none, an address with a password, a server whose error repeats the key.
        let address = mock_server.root();
        let bases = [
            "http://127.0.0.1:1/v1?key=canary-in-query".to_string(),
            address.replace("http:", "https:"),
            format!("http://user:{password}@127.0.0.1:1"),
            format!("{address}/elsewhere"),
        ];
        for base in bases {
            let provider = (way.open)(&base, CANARY, way.settings(Some(3_000))).unwrap();
            let trouble = ask(&*provider, &way.effect(ResponseFormat::Text)).unwrap_err();
            let shown = format!("{trouble:?} {trouble} {:?}", provider.address(way.model));
            for secret in [CANARY, password, "canary-in-query"] {
                assert!(!shown.contains(secret), "{shown}");
            }
            let elsewhere = base.contains("elsewhere");
            assert_eq!(matches!(trouble, ProviderError::Fatal { .. }), elsewhere, "{trouble}");
            assert!(shown.contains(way.variables[1]), "{shown}");
        }
        // With a user name and password in the address it works, and the key is not sent.
        let base = address.replace("127.0.0.1", &format!("user:{password}@127.0.0.1"));
        let base = if way.variables == OPENAI { format!("{base}/v1") } else { base };
        let provider = (way.open)(&base, "", Settings::default()).unwrap();
        assert!(ask(&*provider, &way.effect(ResponseFormat::Text)).is_ok(), "{}", way.name);
    }
}

fn received(status: u16, headers: &[(&str, &str)], body: &str) -> Received {
    let header =
        |(name, value): &(&str, &str)| (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    let headers = headers.iter().map(header).collect::<HeaderMap>();
    Received::new("http://h", "m", status, headers, body.as_bytes().to_vec())
}

/// The result of a body: `reply`, `refused`, `invalid`, `retry`, `crowded`, `never` or `fatal`, and its message.
fn comes_to<W: Wire>(response_format: &ResponseFormat, received: &Received) -> (&'static str, String) {
    let outcome = match W::told(received) {
        Ok(told) => told.outcome(response_format, &received.body),
        Err(Ended::Outcome(outcome)) => outcome,
        Err(Ended::ProviderError(ProviderError::Retry { why, after_ms, .. })) => {
            return ("retry", format!("{why} {after_ms:?}"));
        }
        Err(Ended::ProviderError(ProviderError::RateLimited { why, after_ms })) => {
            return ("crowded", format!("{why} {after_ms:?}"));
        }
        Err(Ended::ProviderError(ProviderError::Anew { why })) => return ("anew", why),
        Err(Ended::ProviderError(ProviderError::Never { why })) => return ("never", why),
        Err(Ended::ProviderError(ProviderError::Fatal { why })) => return ("fatal", why),
    };
    match outcome {
        Outcome::Reply { raw, .. } => ("reply", raw),
        Outcome::Refused { raw } => ("refused", raw),
        Outcome::Invalid { why, .. } => ("invalid", why),
        other => panic!("{other:?}"),
    }
}

/// Status, headers and body; the result, and words of its message.
type Case = (u16, &'static [(&'static str, &'static str)], Json, &'static str, &'static str);

fn check<W: Wire>(cases: &[Case]) {
    for (status, headers, body, what, words) in cases {
        let (came, said) =
            comes_to::<W>(&ResponseFormat::number(0.0, 100.0), &received(*status, headers, &body.to_string()));
        assert!(came == *what && said.contains(words), "{status} {body}: {came}: {said}");
    }
    // The same on all wires.
    let name = W::HOME.name;
    for (status, body, what, words) in [
        (200, "", "retry", "empty body"),
        (200, "{\"a\": [1, ", "retry", "cut off"),
        (200, "oops", "invalid", "no JSON"),
        (200, "7", "invalid", "the body is no "),
        (200, "{}", "invalid", "the body has no `"),
        (200, "<html>hello", "retry", "web page"),
        (302, "", "fatal", "redirects"),
        (503, "down", "crowded", "503"),
        (700, "", "fatal", "700"),
        (401, "<html>", "fatal", W::HOME.key_variables[0]),
        (404, "nothing here", "fatal", W::HOME.base_variable),
    ] {
        let (came, said) = comes_to::<W>(&ResponseFormat::number(0.0, 100.0), &received(status, &[], body));
        assert!(came == what && said.contains(words), "{name}: {status} {body}: {came}: {said}");
    }
}

/// Token counts of an answer: request, reply, cached, thinking.
fn tokens<W: Wire>(body: &Json) -> Option<[u64; 4]> {
    let usage = W::told(&received(200, &[], &body.to_string())).unwrap().usage?;
    Some([usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.tokens_thinking])
}

#[test]
fn what_anthropic_sends_comes_to_what_it_is() {
    let said = |content: Json, stop: &str| {
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop,
               "usage": {"input_tokens": 9, "output_tokens": 5}})
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "the words"}});
    check::<Messages>(&[
        (200, &[], said(text(r#"{"answer": 7}"#), "end_turn"), "reply", "7"),
        (
            200,
            &[],
            said(json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "7"}]), "end_turn"),
            "reply",
            "7",
        ),
        (200, &[], said(text("7"), "max_tokens"), "invalid", "cut off"),
        (200, &[], said(text("7"), "model_context_window_exceeded"), "invalid", "cut off"),
        (200, &[], said(text("I will"), "refusal"), "refused", "I will"),
        (200, &[], said(json!([]), "refusal"), "refused", ""),
        (200, &[], said(text("7"), "pause_turn"), "invalid", "pause_turn"),
        (200, &[], said(json!([{"type": "tool_use", "name": "saw", "input": {}}]), "tool_use"), "invalid", "`saw`"),
        (200, &[], said(json!([]), "end_turn"), "invalid", "null"),
        (200, &[], said(text(" "), "end_turn"), "invalid", "empty"),
        (200, &[], said(json!("7"), "end_turn"), "invalid", "no message"),
        (200, &[], error("overloaded_error"), "retry", "500"),
        (400, &[], error("invalid_request_error"), "never", "the words"),
        (402, &[], error("billing_error"), "fatal", "no quota left (billing_error)"),
        (403, &[], error("permission_error"), "fatal", "ANTHROPIC_API_KEY"),
        (404, &[], error("not_found_error"), "fatal", "no model `m`"),
        (413, &[], error("request_too_large"), "never", "413"),
        (429, &[("retry-after", "3")], error("rate_limit_error"), "crowded", "Some(3000)"),
        (529, &[], error("overloaded_error"), "crowded", "529"),
    ]);
    let with = |usage: Json| {
        let mut whole = said(text("7"), "end_turn");
        whole["usage"] = usage;
        tokens::<Messages>(&whole)
    };
    assert_eq!(with(json!({"input_tokens": -1})), None);
    assert_eq!(
        with(json!({"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": null})),
        Some([9, 5, 0, 0])
    );
    let all = json!({
        "input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 4},
    });
    assert_eq!(with(all), Some([129, 5, 100, 4]));
}

#[test]
fn what_google_sends_comes_to_what_it_is() {
    let said = |parts: Json, finish: &str| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
               "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5}})
    };
    let error = |code: u16, status: &str, details: Json| json!({"error": {"code": code, "message": "the words", "status": status, "details": details}});
    let info = |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
    let wait = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
                      {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}]);
    check::<GenerateContent>(&[
        (200, &[], said(json!([{"text": "{\"answer\""}, {"text": ": 7}"}]), "STOP"), "reply", "7"),
        (200, &[], said(json!([{"text": "hm", "thought": true}, {"text": "7"}]), "STOP"), "reply", "7"),
        (200, &[], said(json!([{"text": "7"}]), "MAX_TOKENS"), "invalid", "cut off"),
        (200, &[], said(json!(null), "MAX_TOKENS"), "invalid", "cut off"),
        (200, &[], said(json!(null), "SAFETY"), "refused", "SAFETY"),
        (200, &[], said(json!([{"text": "I can"}]), "RECITATION"), "refused", "I can"),
        (200, &[], said(json!([{"text": "7"}]), "MALFORMED_RESPONSE"), "invalid", "MALFORMED_RESPONSE"),
        (200, &[], said(json!([{"functionCall": {"name": "saw", "args": {}}}]), "STOP"), "invalid", "`saw`"),
        (200, &[], json!({"candidates": [{"finishReason": "STOP"}]}), "invalid", "null"),
        (200, &[], said(json!([{"text": ""}]), "STOP"), "invalid", "empty"),
        (200, &[], json!({"promptFeedback": {"blockReason": "SAFETY"}}), "refused", "blockReason: SAFETY"),
        (200, &[], error(503, "UNAVAILABLE", json!([])), "retry", "503"),
        (400, &[], error(400, "INVALID_ARGUMENT", json!([])), "never", "the words"),
        (400, &[], error(400, "INVALID_ARGUMENT", info("API_KEY_INVALID")), "fatal", "GEMINI_API_KEY"),
        (400, &[], error(400, "FAILED_PRECONDITION", json!([])), "fatal", "billing"),
        (403, &[], error(403, "PERMISSION_DENIED", json!([])), "fatal", "GEMINI_API_KEY"),
        (404, &[], error(404, "NOT_FOUND", json!([])), "fatal", "no model `m`"),
        (429, &[], error(429, "RESOURCE_EXHAUSTED", wait), "crowded", "Some(17500)"),
        (504, &[], error(504, "DEADLINE_EXCEEDED", json!([])), "retry", "504"),
    ]);
    let with = |usage: Json| {
        let mut whole = said(json!([{"text": "7"}]), "STOP");
        whole["usageMetadata"] = usage;
        tokens::<GenerateContent>(&whole)
    };
    assert_eq!(with(json!({"promptTokenCount": "many"})), None);
    let all = json!({"promptTokenCount": 109, "cachedContentTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 40});
    assert_eq!(with(all), Some([109, 45, 100, 40]));
}

#[test]
fn what_ollama_sends_comes_to_what_it_is() {
    let said = |message: Json, reason: &str| json!({"model": "m", "message": message, "done": true, "done_reason": reason, "prompt_eval_count": 9, "eval_count": 5});
    let text = |text: &str| json!({"role": "assistant", "content": text});
    check::<ollama::Chat>(&[
        (200, &[], said(text(r#"{"answer": 7}"#), "stop"), "reply", "7"),
        (200, &[], said(json!({"role": "assistant", "content": "7", "thinking": "hm"}), "stop"), "reply", "7"),
        (200, &[], said(text("7"), "length"), "invalid", "cut off"),
        (200, &[], said(text(""), "stop"), "invalid", "empty"),
        (200, &[], said(json!({"role": "assistant"}), "stop"), "invalid", "null"),
        (
            200,
            &[],
            said(json!({"content": "", "tool_calls": [{"function": {"name": "saw"}}]}), "stop"),
            "invalid",
            "`saw`",
        ),
        (200, &[], json!({"error": "out of memory"}), "invalid", "in place of an answer: out of memory"),
        (400, &[], json!({"error": "the words"}), "never", "the words"),
        (404, &[], json!({"error": "model 'm' not found"}), "fatal", "OLLAMA_HOST"),
        (429, &[("retry-after", "3")], json!({"error": "busy"}), "crowded", "Some(3000)"),
        (500, &[], json!({"error": "the runner has stopped"}), "retry", "the runner has stopped"),
        (503, &[], json!({"error": "server busy"}), "crowded", "503"),
    ]);
    assert_eq!(tokens::<ollama::Chat>(&said(text("7"), "stop")), Some([9, 5, 0, 0]));
    // Unreported is not zero.
    assert_eq!(tokens::<ollama::Chat>(&json!({"message": {"content": "7"}, "eval_count": 5})), None);
}

#[test]
fn what_the_responses_endpoint_sends_comes_to_what_it_is() {
    let said = |status: &str, reason: Json, parts: Json| {
        json!({"object": "response", "status": status, "error": null, "incomplete_details": reason,
               "output": [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": parts}],
               "usage": {"input_tokens": 9, "output_tokens": 5}})
    };
    let text = |text: &str| json!([{"type": "output_text", "text": text, "annotations": []}]);
    let reason = |reason: &str| json!({"reason": reason});
    let call = json!({"status": "completed", "output": [{"type": "function_call", "name": "saw", "arguments": "{}"}]});
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "the words"}, "output": []});
    check::<Responses>(&[
        (200, &[], said("completed", json!(null), text(r#"{"answer": 7}"#)), "reply", "7"),
        (200, &[], said("incomplete", reason("max_output_tokens"), text("7")), "invalid", "cut off"),
        (200, &[], said("incomplete", reason("content_filter"), text("7")), "refused", "7"),
        (200, &[], said("completed", json!(null), json!([{"type": "refusal", "refusal": "No."}])), "refused", "No."),
        (200, &[], said("completed", json!(null), json!([])), "invalid", "null"),
        (200, &[], said("completed", json!(null), text(" ")), "invalid", "empty"),
        (200, &[], said("in_progress", json!(null), text("7")), "invalid", "in_progress"),
        (200, &[], call, "invalid", "`saw`"),
        (200, &[], failed, "retry", "500: the words"),
        (400, &[], json!({"error": {"message": "no!", "code": "content_filter"}}), "refused", "no!"),
        (429, &[], json!({"error": {"message": "x", "code": "insufficient_quota"}}), "fatal", "quota"),
        (429, &[("x-ratelimit-reset-tokens", "2s")], json!({"error": {"message": "x"}}), "crowded", "Some(2000)"),
    ]);
    let mut whole = said("completed", json!(null), text("7"));
    whole["usage"] = json!({"input_tokens": 109, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 45,
                            "output_tokens_details": {"reasoning_tokens": 40}});
    assert_eq!(tokens::<Responses>(&whole), Some([109, 45, 100, 40]));
}

#[test]
fn what_is_sent_has_the_words_of_each_wire() {
    let mut effect = effect_to("x", record(), "How do you feel?");
    effect.request.settings.temperature = Some(0.5);
    effect.request.settings.max_tokens = Some(70);
    effect.request.settings.seed = Some(3);
    let schema = |bounds| record().to_schema(bounds);
    let near = "http://127.0.0.1:1";
    effect.request.model = "anthropic/m".into();
    let sent = json!(Anthropic::new(near, Secret::new("none")).unwrap().request(&effect));
    let expected = json!({
        "model": "m", "system": "You are brief.", "messages": [{"role": "user", "content": "How do you feel?"}],
        "temperature": 0.5, "output_config": {"format": {"type": "json_schema", "schema": schema(false)}}, "max_tokens": 70,
    });
    assert_eq!(sent, expected);
    effect.request.model = "gemini/models/m".into();
    let sent = json!(Google::new(near, Secret::new("none")).unwrap().request(&effect));
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "You are brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "How do you feel?"}]}],
        "generationConfig": {
            "temperature": 0.5, "seed": 3, "responseMimeType": "application/json", "responseJsonSchema": schema(true),
            "maxOutputTokens": 70,
        },
    });
    assert_eq!(sent, expected);
    effect.request.model = "ollama/m:7b".into();
    let sent = json!(Ollama::new(near, Secret::new("")).unwrap().request(&effect));
    let conversation =
        json!([{"role": "system", "content": "You are brief."}, {"role": "user", "content": "How do you feel?"}]);
    let expected = json!({
        "model": "m:7b", "messages": conversation, "format": schema(true),
        "options": {"temperature": 0.5, "seed": 3, "num_predict": 70}, "stream": false,
    });
    assert_eq!(sent, expected);
    effect.request.model = "openai-responses/m".into();
    let sent = json!(OpenAiResponses::new(near, Secret::new("none")).unwrap().request(&effect));
    let format = json!({"type": "json_schema", "name": "answer", "strict": true, "schema": schema(true)});
    let expected = json!({
        "model": "m", "input": conversation, "temperature": 0.5, "text": {"format": format}, "store": false,
        "max_output_tokens": 70,
    });
    assert_eq!(sent, expected);
    // If only system messages exist, they are the conversation.
    effect.request.messages =
        vec![polity_kernel::ask::ChatMessage::text(polity_kernel::ask::Role::System, "Speak.")].into();
    effect.request.model = "anthropic/m".into();
    let sent = json!(Anthropic::new(near, Secret::new("none")).unwrap().request(&effect));
    assert_eq!((&sent["system"], &sent["messages"][0]["content"]), (&Json::Null, &json!("Speak.")));
}

#[test]
fn what_servers_tell_of_models_is_read() {
    let told =
        json!({"object": "list", "data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 4096}]});
    assert_eq!(Chat::capabilities("m", false, Chat::entry("m", &told)).context, Some(4096));
    assert!(Chat::entry("none", &told).is_null() && Chat::entry("m", &Json::Null).is_null());
    let told = json!({"max_input_tokens": 9, "capabilities": {"structured_outputs": {"supported": false}}});
    let found = Messages::capabilities("m", true, Messages::entry("m", &told));
    assert_eq!((found.context, found.schema, found.seed), (Some(9), Some(false), Some(false)));
    assert_eq!(
        found.words(),
        "no schemas, log-probabilities, logit bias, seeds; not known: calls of tools, lists of options, grammars; 9 tokens of context"
    );
    let told = json!({"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}});
    assert_eq!(ollama::Chat::capabilities("m", true, &told).context, Some(131_072));
    // A missing server is not an error, and the wire's features are known anyway.
    for way in WAYS {
        let provider = (way.open)("http://127.0.0.1:1", "none", Settings::default()).unwrap();
        let found = block_on(provider.probe(way.model)).unwrap();
        assert!(!found.known && found.context.is_none(), "{}: {found:?}", way.name);
    }
}
