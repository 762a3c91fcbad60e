//! Tests of `--otlp` with a receiver: names, parents and attributes against `polity calls` and the run's summary; receivers that are
//! gone, refuse, hang or are busy; nothing at all if not requested.

use crate::mock_server;

use crate::mock_server::{MockServer, last_line, polity, root, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A receiver's behaviour.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Takes,
    Refuses,
    Hangs,
    /// Rejects the first two requests as busy.
    Busy,
    /// Accepts all but one span of each request.
    Partly,
}

/// Paths with headers, and bodies, of accepted requests.
type Taken = Mutex<Vec<(String, Vec<u8>)>>;

/// A receiver of OTLP over HTTP on this machine.
struct Receiver {
    url: String,
    taken: Arc<Taken>,
    connections: Arc<Mutex<usize>>,
}

impl Receiver {
    fn start(manner: Manner) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Receiver { url, taken: Arc::default(), connections: Arc::default() };
        let (taken, connections) = (receiver.taken.clone(), receiver.connections.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                *connections.lock().unwrap() += 1;
                let (taken, stream) = (taken.clone(), stream.unwrap());
                std::thread::spawn(move || serve(stream, manner, &taken));
            }
        });
        receiver
    }

    /// Returns the received requests.
    fn requests(&self) -> Vec<(String, Value)> {
        let taken = self.taken.lock().unwrap();
        taken.iter().map(|(head, body)| (head.clone(), read("Request", body))).collect()
    }

    /// Returns all spans.
    fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        for (head, request) in &requests {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            assert!(head.to_lowercase().contains("content-type: application/x-protobuf"), "{head}");
            let resource = plain(&request["resourceSpans"][0]["resource"]["attributes"]);
            assert_eq!(resource["service.name"], "polity");
        }
        let of = |(_, request): &(String, Value)| -> Vec<Span> {
            let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().unwrap().iter().map(Span::read).collect()
        };
        requests.iter().flat_map(of).collect()
    }
}

fn serve(stream: TcpStream, manner: Manner, taken: &Taken) {
    static BUSY: Mutex<usize> = Mutex::new(0);
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap()];
        stream.read_exact(&mut body).unwrap();
        let answer = match manner {
            Manner::Takes => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
            Manner::Refuses => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Manner::Hangs => {
                std::thread::park();
                return;
            }
            Manner::Busy => {
                let mut before = BUSY.lock().unwrap();
                *before += 1;
                if *before <= 2 {
                    let no = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
                    stream.get_mut().write_all(no).unwrap();
                    continue;
                }
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            Manner::Partly => {
                let body = r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}"#;
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            }
        };
        if manner != Manner::Refuses {
            taken.lock().unwrap().push((head, body));
        }
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
    }
}

/// The fields of OTLP's messages, numbered as in the files `trace.proto`, `common.proto`, `resource.proto` and `trace_service.proto`: the
/// names of its JSON, with the type of their contents (`*`: repeated).
const FIELDS: &[(&str, u64, &str, &str)] = &[
    ("Request", 1, "resourceSpans", "*ResourceSpans"),
    ("ResourceSpans", 1, "resource", "Resource"),
    ("ResourceSpans", 2, "scopeSpans", "*ScopeSpans"),
    ("Resource", 1, "attributes", "*KeyValue"),
    ("ScopeSpans", 1, "scope", "Scope"),
    ("ScopeSpans", 2, "spans", "*Span"),
    ("Scope", 1, "name", "string"),
    ("Scope", 2, "version", "string"),
    ("Span", 1, "traceId", "hex"),
    ("Span", 2, "spanId", "hex"),
    ("Span", 4, "parentSpanId", "hex"),
    ("Span", 5, "name", "string"),
    ("Span", 6, "kind", "enum"),
    ("Span", 7, "startTimeUnixNano", "fixed64"),
    ("Span", 8, "endTimeUnixNano", "fixed64"),
    ("Span", 9, "attributes", "*KeyValue"),
    ("Span", 15, "status", "Status"),
    ("Status", 2, "message", "string"),
    ("Status", 3, "code", "enum"),
    ("KeyValue", 1, "key", "string"),
    ("KeyValue", 2, "value", "AnyValue"),
    ("AnyValue", 1, "stringValue", "string"),
    ("AnyValue", 2, "boolValue", "bool"),
    ("AnyValue", 3, "intValue", "int64"),
    ("AnyValue", 4, "doubleValue", "double"),
];

/// Converts an OTLP message to its JSON. Anything that is not in the table is an error.
fn read(message: &str, mut bytes: &[u8]) -> Value {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let (number, rest) = bytes.split_at(length);
        *bytes = rest;
        number.iter().rev().fold(0, |n, byte| n << 7 | u64::from(byte & 0x7f))
    }
    let mut object = serde_json::Map::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let found = FIELDS.iter().find(|(of, number, ..)| *of == message && *number == tag >> 3);
        let (.., name, kind) = *found.unwrap_or_else(|| panic!("{message} has no field {}", tag >> 3));
        let (number, content): (u64, &[u8]) = match tag & 7 {
            0 => (varint(&mut bytes), &[]),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                (u64::from_le_bytes(fixed.try_into().unwrap()), &[])
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                (0, content)
            }
            wire => panic!("wire type {wire}"),
        };
        let wire = match kind {
            "enum" | "bool" | "int64" => 0,
            "fixed64" | "double" => 1,
            _ => 2,
        };
        assert_eq!(tag & 7, wire, "{message}.{name}");
        let value = match kind {
            "string" => json!(std::str::from_utf8(content).unwrap()),
            "hex" => json!(content.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            "enum" => json!(number),
            "bool" => json!(number == 1),
            "int64" => json!((number as i64).to_string()),
            "fixed64" => json!(number.to_string()),
            "double" => json!(f64::from_bits(number)),
            inner => read(inner.trim_start_matches('*'), content),
        };
        match kind.starts_with('*') {
            true => object.entry(name).or_insert_with(|| json!([])).as_array_mut().unwrap().push(value),
            false => assert!(object.insert(name.into(), value).is_none(), "{message}.{name} twice"),
        }
    }
    Value::Object(object)
}

/// Converts attributes to plain JSON.
fn plain(attributes: &Value) -> BTreeMap<String, Value> {
    let value = |value: &Value| match value.as_object().unwrap().iter().next().unwrap() {
        (kind, Value::String(text)) if kind == "intValue" => json!(text.parse::<i64>().unwrap()),
        (kind, value) => {
            assert!(["stringValue", "doubleValue", "boolValue"].contains(&kind.as_str()), "{kind}");
            value.clone()
        }
    };
    let all: Vec<(String, Value)> = attributes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["key"].as_str().unwrap().to_owned(), value(&one["value"])))
        .collect();
    let names = all.len();
    let map: BTreeMap<String, Value> = all.into_iter().collect();
    assert_eq!(map.len(), names, "no name twice");
    map
}

#[derive(Clone, Debug)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    kind: u64,
    start: u128,
    end: u128,
    attributes: BTreeMap<String, Value>,
    status: Value,
}

impl Span {
    fn read(span: &Value) -> Span {
        let hex = |value: &Value, digits: usize| {
            let text = value.as_str().unwrap().to_owned();
            assert!(
                text.len() == digits && text.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)),
                "{text}"
            );
            text
        };
        let time = |key: &str| span[key].as_str().unwrap().parse().unwrap();
        Span {
            trace: hex(&span["traceId"], 32),
            id: hex(&span["spanId"], 16),
            parent: span.get("parentSpanId").map(|parent| hex(parent, 16)),
            name: span["name"].as_str().unwrap().into(),
            kind: span["kind"].as_u64().unwrap(),
            start: time("startTimeUnixNano"),
            end: time("endTimeUnixNano"),
            attributes: plain(&span["attributes"]),
            status: span["status"].clone(),
        }
    }

    fn get(&self, name: &str) -> &Value {
        self.attributes.get(name).unwrap_or(&Value::Null)
    }
}

/// Returns the output of `polity calls`, by (item, round, agent, n).
fn calls(folder: &Path, run: &str) -> BTreeMap<[u64; 4], Value> {
    let said = polity(folder, &["calls", run, "--json", "--full"], &[]);
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| row[key].as_u64().unwrap_or(0);
        ([number("item"), number("round"), number("agent"), number("n")], row)
    };
    text(&said.stdout).lines().map(row).collect()
}

/// Checks spans against the journal: their shape, and every number of every call. Returns the spans of calls.
fn check(spans: &[Span], summary: &Value, calls: &BTreeMap<[u64; 4], Value>) -> Vec<Span> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "no id twice");
    assert!(spans.iter().all(|span| span.trace == spans[0].trace && span.start <= span.end));
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_none()).collect();
    let [run] = roots[..] else { panic!("{roots:?}") };
    assert_eq!((run.get("polity.status"), run.get("openinference.span.kind")), (&summary["status"], &json!("CHAIN")));
    assert_eq!(run.get("gen_ai.operation.name"), "invoke_workflow");
    assert_eq!(run.name, format!("invoke_workflow {}", run.get("gen_ai.workflow.name").as_str().unwrap()));
    for (name, of) in [("answers", "answers"), ("calls", "calls"), ("shared", "cache_hits"), ("tokens_in", "tokens_in")]
    {
        assert_eq!(run.get(&format!("polity.{name}")), &summary[of], "{name}");
    }
    let rounds: BTreeMap<&str, &Span> =
        spans.iter().filter(|span| span.name == "round").map(|span| (span.id.as_str(), span)).collect();
    assert_eq!(rounds.len() as u64, summary["rounds"].as_u64().unwrap());
    for round in rounds.values() {
        assert_eq!((round.parent.as_ref(), round.get("polity.complete")), (Some(&run.id), &json!(true)));
        assert!(round.start <= round.end && round.end <= run.end);
    }
    let of_calls: Vec<Span> = spans.iter().filter(|span| span.name.starts_with("chat ")).cloned().collect();
    assert_eq!(spans.len(), 1 + rounds.len() + of_calls.len());
    let mut seen = BTreeSet::new();
    for span in &of_calls {
        let number = |name: &str| span.get(name).as_u64().unwrap_or(0);
        let place = [number("polity.item"), number("polity.round"), number("polity.agent"), number("polity.n")];
        assert!(seen.insert(place), "{place:?} twice");
        let call = &calls[&place];
        let round = rounds[span.parent.as_deref().unwrap()];
        assert_eq!(round.get("polity.round"), &call["round"]);
        let (provider, model) = call["model"].as_str().unwrap().split_once('/').unwrap();
        assert_eq!(span.name, format!("chat {model}"));
        assert_eq!(span.kind, if provider == "sim" { 1 } else { 3 });
        for (name, value) in [
            ("openinference.span.kind", json!("LLM")),
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.provider.name", json!(provider)),
            ("gen_ai.request.model", json!(model)),
            ("llm.provider", json!(provider)),
            ("llm.model_name", json!(model)),
            ("gen_ai.agent.id", json!(call["agent"].to_string())),
            ("polity.outcome", call["outcome"].clone()),
            ("polity.resolution", call["resolution"].clone()),
            ("polity.attempt", call["attempt"].clone()),
            ("polity.retries", call["retries"].clone()),
            ("polity.shared", call["shared"].clone()),
            ("polity.latency_ms", call["latency_ms"].clone()),
            ("polity.simulated", json!(provider == "sim")),
        ] {
            assert_eq!(span.get(name), &value, "{name} of {place:?}");
        }
        if call["purpose"] != "" {
            assert_eq!(span.get("polity.purpose"), &call["purpose"]);
        }
        // A single payment is reported once.
        let paid = |key: &str| if call["shared"] == true { Value::Null } else { call[key].clone() };
        for (name, key) in [
            ("gen_ai.usage.input_tokens", "tokens_in"),
            ("gen_ai.usage.output_tokens", "tokens_out"),
            ("llm.token_count.prompt", "tokens_in"),
            ("llm.token_count.completion", "tokens_out"),
            ("polity.cost_usd", "cost_usd"),
        ] {
            assert_eq!(span.get(name).as_f64(), paid(key).as_f64(), "{name} of {place:?}");
        }
        assert_eq!(span.get("error.type").is_null(), call["outcome"] != "failed");
        assert_eq!(span.status["code"] == 2, call["outcome"] == "failed");
    }
    assert_eq!(seen, calls.keys().copied().collect(), "every call of the journal has its span");
    let sum = |name: &str| of_calls.iter().filter_map(|span| span.get(name).as_u64()).sum::<u64>();
    assert_eq!(sum("llm.token_count.prompt"), summary["tokens_in"].as_u64().unwrap());
    assert_eq!(sum("llm.token_count.completion"), summary["tokens_out"].as_u64().unwrap());
    of_calls
}

fn scenario(name: &str) -> String {
    root().join("scenarios").join(name).to_str().unwrap().to_owned()
}

#[test]
fn spans_of_a_society_are_its_calls_and_say_no_word_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let receiver = Receiver::start(Manner::Takes);
    let minds = scenario("guess-average-minds.yaml");
    let run = ["run", &minds, "--agents", "60", "--rounds", "3", "--no-report", "--json", "--out"];
    let said = polity(folder, &[&run[..], &["told", "--otlp", &receiver.url]].concat(), &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let summary = last_line(&said);
    let plain = last_line(&polity(folder, &[&run[..], &["plain"]].concat(), &[]));
    assert_eq!(summary["digest"], plain["digest"], "who listens reaches no result");
    let calls = calls(folder, "told");
    assert!(calls.len() >= 180);
    let spans = check(&receiver.spans(), &summary, &calls);
    for span in &spans {
        assert_eq!(
            (span.get("polity.cohort"), span.get("gen_ai.request.temperature")),
            (&json!("people"), &json!(1.0))
        );
        assert_eq!(
            (span.get("gen_ai.request.max_tokens"), span.get("gen_ai.output.type")),
            (&json!(400), &json!("json"))
        );
        let parameters: Value = serde_json::from_str(span.get("llm.invocation_parameters").as_str().unwrap()).unwrap();
        assert_eq!(parameters, json!({"temperature": 1.0, "max_tokens": 400}));
        assert_eq!(span.start, span.end, "a simulated model takes no time of the clock");
        assert!(span.attributes.keys().all(|name| !name.contains("messages") && !name.contains(".value")));
    }
    // Without the flag: no prompt and no answer in any attribute.
    let sent: String = receiver.requests().iter().map(|(_, request)| request.to_string()).collect();
    for call in calls.values() {
        for key in ["prompt", "answer"] {
            let words = json!(call[key].as_str().unwrap()).to_string();
            let line = words.trim_matches('"').split("\\n").max_by_key(|line| line.len()).unwrap();
            assert!(line.len() < 4 || !sent.contains(line), "{line}");
        }
    }
}

#[test]
fn spans_of_an_evaluation_on_a_provider_hold_what_was_said_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let receiver = Receiver::start(Manner::Takes);
    let mock_server = MockServer::start(&["--fault", "500=0.2", "--latency-ms", "5"]);
    let debate = scenario("debate.yaml");
    let run = ["run", &debate, "-P", "model=openai/medium", "-P", "items.count=4", "--price", "openai/medium=1,2"];
    let flags = ["--no-report", "--json", "--out", "run", "--otlp", &receiver.url, "--otlp-content"];
    let said = polity(folder, &[&run[..], &flags].concat(), &mock_server.variables());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let calls = calls(folder, "run");
    let spans = check(&receiver.spans(), &last_line(&said), &calls);
    let port: u64 = mock_server.url.trim_end_matches("/v1").rsplit(':').next().unwrap().parse().unwrap();
    for span in &spans {
        let number = |name: &str| span.get(name).as_u64().unwrap();
        let call = &calls[&[number("polity.item"), number("polity.round"), number("polity.agent"), number("polity.n")]];
        assert_eq!((span.get("server.address"), span.get("server.port")), (&json!("127.0.0.1"), &json!(port)));
        // If all tries failed, the text is the error's, not a model's.
        let said = if call["outcome"] == "failed" { &Value::Null } else { &call["answer"] };
        assert_eq!((span.get("input.value"), span.get("output.value")), (&call["prompt"], said));
        assert_eq!(span.get("llm.output_messages.0.message.content"), said);
        let messages: Value = serde_json::from_str(span.get("gen_ai.input.messages").as_str().unwrap()).unwrap();
        for (i, message) in messages.as_array().unwrap().iter().enumerate() {
            assert_eq!(span.get(&format!("llm.input_messages.{i}.message.role")), &message["role"]);
            assert_eq!(span.get(&format!("llm.input_messages.{i}.message.content")), &message["parts"][0]["content"]);
        }
        assert!(span.get("gen_ai.agent.name").is_string());
        if call["shared"] == false {
            let took = (span.end - span.start) as f64 / 1e6;
            assert!((took - call["latency_ms"].as_f64().unwrap()).abs() < 0.001, "a call takes its latency");
            // If all tries failed nothing was paid, and free calls have no cost.
            let cost = if call["outcome"] == "failed" { &Value::Null } else { &call["cost_usd"] };
            assert_eq!(span.get("llm.cost.total"), cost);
        }
    }
    // The key is not in any request.
    assert!(
        receiver.requests().iter().all(|(head, request)| !format!("{head}{request}").contains(mock_server::CANARY))
    );
}

#[test]
fn a_stopped_run_an_interview_and_each_run_of_a_sweep_have_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let minds = scenario("guess-average-minds.yaml");
    let small = ["--agents", "10", "--rounds", "3", "--no-report", "--json"];
    let receiver = Receiver::start(Manner::Takes);
    let told = ["--otlp", receiver.url.as_str()];
    let run = [&["run", &minds, "--out", "run", "--max-calls", "15"][..], &small, &told].concat();
    let stopped = polity(folder, &run, &[]);
    assert_eq!(stopped.status.code(), Some(7), "{}", text(&stopped.stderr));
    let spans = receiver.spans();
    let statuses = |spans: &[Span]| -> Vec<String> {
        let roots = spans.iter().filter(|span| span.parent.is_none());
        roots.map(|span| span.get("polity.status").as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&spans), ["budget"]);
    // Denied calls were not asked.
    assert_eq!(spans.iter().filter(|span| span.name.starts_with("chat ")).count(), 15);
    // The resumed process reports its calls, in a trace of its own and the same session.
    let resumed =
        polity(folder, &[&["resume", "run", "--max-calls", "1000", "--no-report", "--json"][..], &told].concat(), &[]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let spans = receiver.spans();
    assert_eq!(statuses(&spans), ["budget", "done"]);
    assert_eq!(
        spans.iter().filter(|span| span.name.starts_with("chat ")).count(),
        calls(folder, "run").values().filter(|call| call["outcome"] != "denied").count()
    );
    assert_eq!(
        spans.iter().map(|span| span.get("session.id").as_str().unwrap()).collect::<BTreeSet<_>>(),
        ["run"].into()
    );
    let asked = [&["interview", "run", "--agent", "1", "--agent", "2", "Why?"][..], &told].concat();
    let said = polity(folder, &asked, &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let spans = receiver.spans();
    let last = spans.last().unwrap();
    assert_eq!(last.get("polity.status"), "interview");
    assert_eq!(spans.iter().filter(|span| span.parent.as_ref() == Some(&last.id)).count(), 2);
    // A sweep: one trace per run.
    let receiver = Receiver::start(Manner::Takes);
    let swept = [&["sweep", &minds, "--out", "sweep", "--seeds", "2", "--otlp", &receiver.url][..], &small].concat();
    let said = polity(folder, &swept, &[]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let traces: BTreeSet<String> = receiver.spans().into_iter().map(|span| span.trace).collect();
    assert_eq!(traces.len() as u64, last_line(&said)["runs"].as_u64().unwrap());
}

#[test]
fn receivers_in_trouble_are_told_once_and_touch_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let minds = scenario("guess-average-minds.yaml");
    let run = |name: &str, url: &str| {
        let args =
            ["run", &minds, "--agents", "20", "--rounds", "2", "--no-report", "--json", "--out", name, "--otlp", url];
        let said = polity(folder, &args, &[]);
        assert!(said.status.success(), "{name}: {}", text(&said.stderr));
        (last_line(&said)["digest"].clone(), text(&said.stderr))
    };
    let takes = Receiver::start(Manner::Takes);
    let (digest, quiet) = run("takes", &takes.url);
    assert!(!quiet.contains("traces:"), "{quiet}");
    let all = takes.spans().len();
    // A trailing slash does not change the address.
    let busy = Receiver::start(Manner::Busy);
    let (same, said) = run("busy", &format!("{}/", busy.url));
    assert_eq!(same, digest);
    assert_eq!(busy.spans().len(), all, "what was put off arrives: {said}");
    assert_eq!(said.matches("it answered 503").count(), 1, "{said}");
    assert!(!said.contains("did not reach"), "{said}");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (name, url, cause) in [
        ("refuses", Receiver::start(Manner::Refuses).url, "it answered 400"),
        ("hangs", Receiver::start(Manner::Hangs).url, "it took longer than 5 s at the end"),
        ("gone", format!("http://{gone}"), "cannot be reached"),
    ] {
        let (same, said) = run(name, &url);
        assert_eq!(same, digest, "{name}");
        let lost = format!("traces: {all} of {all} spans did not reach {url}/v1/traces");
        assert!(said.matches(&lost).count() == 1 && said.contains(cause), "{name}: {said}");
        assert!(said.lines().filter(|line| line.starts_with("traces: ")).count() <= 2, "{name}: {said}");
    }
    let (same, said) = run("partly", &Receiver::start(Manner::Partly).url);
    assert!(same == digest && said.contains("too old") && said.contains("did not reach"), "{said}");
    for (address, what) in [("localhost:4318", "http://"), ("ftp://x", "http://")] {
        let said = polity(folder, &["run", &minds, "--out", "none", "--otlp", address], &[]);
        assert!(said.status.code() == Some(2) && text(&said.stderr).contains(what), "{}", text(&said.stderr));
    }
    let said = polity(folder, &["run", &minds, "--out", "none", "--otlp-content"], &[]);
    assert!(said.status.code() == Some(2) && !folder.join("none").exists());
}

#[test]
fn without_the_flag_nobody_is_told_whatever_the_environment_says() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let receiver = Receiver::start(Manner::Takes);
    let minds = scenario("guess-average-minds.yaml");
    let run = ["run", &minds, "--agents", "10", "--rounds", "1", "--no-report", "--json", "--out"];
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-canary=secret-5ecre7"),
    ];
    assert!(polity(folder, &[&run[..], &["none"]].concat(), &variables).status.success());
    assert_eq!(*receiver.connections.lock().unwrap(), 0);
    let said = polity(folder, &[&run[..], &["env", "--otlp", "env"]].concat(), &variables);
    assert!(said.status.success(), "{}", text(&said.stderr));
    check(&receiver.spans(), &last_line(&said), &calls(folder, "env"));
    assert!(receiver.requests().iter().all(|(head, _)| head.contains("x-canary: secret-5ecre7")));
    assert_eq!(mock_server::holding(&folder.join("env"), "5ecre7"), [] as [std::path::PathBuf; 0]);
}
