//! Prints the figures of scheduling for the book's page of benchmarks: `cargo run --release -p polity --example traffic`. It takes some
//! minutes, due to the rate limits.
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::unwrap_used)]

mod common;

use common::{MockServer, polity, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REQUESTS: f64 = 500.0;
const TOKENS: f64 = 200_000.0;

/// Returns the counts of the mock server.
fn stats(address: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /stats HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(&text[text.find("\r\n\r\n").unwrap() + 4..]).unwrap()
}

/// Returns the seconds from the first answer to the last, and the longest time between two polls with a new answer.
fn watched(address: &str, done: &AtomicBool) -> (f64, f64) {
    let (mut first, mut last, mut longest, mut answered) = (None, Instant::now(), 0.0f64, 0);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let now = stats(address)["answered"].as_u64().unwrap();
        if now > answered {
            if first.is_some() {
                longest = longest.max(last.elapsed().as_secs_f64());
            }
            first.get_or_insert_with(Instant::now);
            (answered, last) = (now, Instant::now());
        }
    }
    (first.map_or(0.0, |first| last.duration_since(first).as_secs_f64()), longest)
}

/// A run under declared limits on requests or tokens, which it reaches.
fn limits(folder: &Path, what: &str, agents: &str, rules: &str) {
    let (requests, tokens) = (REQUESTS.to_string(), TOKENS.to_string());
    let mock_server =
        MockServer::start(&["--requests-per-minute", &requests, "--tokens-per-minute", &tokens, "--latency-ms", "400"]);
    let scenario = format!(
        "name: limits\nworld: {{kind: guess-average}}\ncohorts: [{{policy: {{kind: mind, model: openai/medium, prompts: {{rules: \"{rules}\"}}}}}}]"
    );
    let done = AtomicBool::new(false);
    let ((seconds, longest), ran) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watched(mock_server.address(), &done));
        let ran = run(folder, &scenario, &mock_server, &["--rounds", "1", "--agents", agents]);
        done.store(true, Ordering::Relaxed);
        (watching.join().unwrap(), ran)
    });
    let counted = stats(mock_server.address());
    let number = |key: &str| counted[key].as_f64().unwrap();
    // A minute's worth may come at once, and then that much per minute.
    let share = |used: f64, limit: f64| 100.0 * used / (limit * (1.0 + seconds / 60.0));
    println!(
        "{what}: {} calls and {} tokens in {seconds:.0} s: {:.0} % of the requests and {:.0} % of the tokens that the \
         limits allow; {:.2} % of calls turned away; the longest time without an answer {longest:.1} s; {} lost",
        number("answered"),
        number("tokens_in") + number("tokens_out"),
        share(number("answered"), REQUESTS),
        share(number("tokens_in") + number("tokens_out"), TOKENS),
        100.0 * number("limited") / number("calls"),
        ran.number("calls") - number("answered"),
    );
}

/// Agents on a server with little capacity, under a schedule: AIOS's comparison.
fn schedule(folder: &Path, name: &str) {
    let mock_server = MockServer::start(&["--at-once", "8", "--latency-ms", "200"]);
    let scenario = "
name: schedules
world: {kind: guess-average}
record: {calls: true}
cohorts:
  - {name: urgent, share: 0.25, priority: 1, policy: {kind: mind, model: openai/medium, think: first}}
  - {name: others, share: 0.75, policy: {kind: mind, model: openai/medium, think: first}}
";
    let flags = ["--rounds", "1", "--agents", "160", "--max-connections", "8", "--schedule", name];
    let ran = run(folder, scenario, &mock_server, &flags);
    let listed = polity(&["calls", folder.join("run").to_str().unwrap(), "--json"]);
    let calls: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let waits = |from: u64, to: u64| -> Vec<f64> {
        let of = |call: &&Value| (from..to).contains(&call["agent"].as_u64().unwrap());
        let mut waits: Vec<f64> =
            calls.iter().filter(of).map(|call| call["waited_ms"].as_f64().unwrap() / 1e3).collect();
        waits.sort_by(f64::total_cmp);
        waits
    };
    let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len().max(1) as f64;
    let all = waits(0, 160);
    println!(
        "{name:>8}: waiting {:.2} s on average, at most {:.2} s in 9 of 10 calls; urgent agents {:.2} s, others \
         {:.2} s; whole run {:.1} s; {} tries turned away, {} calls",
        mean(&all),
        all[all.len() * 9 / 10],
        mean(&waits(0, 40)),
        mean(&waits(40, 160)),
        ran.number("round_ms") / 1e3,
        stats(mock_server.address())["limited"],
        calls.len(),
    );
}

/// Two keys on two servers; the one in use dies in the middle.
fn outage(folder: &Path) {
    let scenario =
        "name: outage\nworld: {kind: guess-average}\ncohorts: [{policy: {kind: mind, model: openai/medium}}]";
    let (first, mut second) =
        (MockServer::start(&["--latency-ms", "100"]), MockServer::start(&["--latency-ms", "100"]));
    let (died, served) = (first.address().to_owned(), second.address().to_owned());
    // Runs use this address.
    second.1 = format!("{},{}", first.1, second.1);
    let (ran, answered) = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(folder, scenario, &second, &["--rounds", "2", "--agents", "1000"]));
        while stats(&died)["answered"].as_u64().unwrap() < 500 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let answered = stats(&died)["answered"].clone();
        drop(first);
        (running.join().unwrap(), answered)
    });
    println!(
        "outage: the first server dies after {answered} answers, the second gives {}: {} of 2000 questions answered, {} by their default",
        stats(&served)["answered"],
        ran.number("calls"),
        ran.resolutions("default") + ran.resolutions("none"),
    );
}

/// An evaluation: the share of time that its connections are busy, including start and end of the process.
fn evaluation(folder: &Path) {
    const CONNECTIONS: u32 = 32;
    const SECONDS: f64 = 0.4;
    let mock_server = MockServer::start(&["--latency-ms", &(SECONDS * 1e3).to_string()]);
    let task = folder.join("items.jsonl");
    let item = |i: u32| format!("{{\"question\": \"What is {i} and {i}?\", \"answer\": \"{}\"}}", 2 * i);
    fs::write(&task, (0..600).map(item).collect::<Vec<_>>().join("\n")).unwrap();
    let out = folder.join("evaluation");
    let began = Instant::now();
    let told = Command::new(std::env::current_exe().unwrap())
        .args(["eval", "--method", "debate", "--model", "openai/medium", "--no-report", "--json"])
        .args(["--max-connections", &CONNECTIONS.to_string()])
        .args([OsStr::new("--task"), task.as_os_str(), OsStr::new("--out"), out.as_os_str()])
        .env("OPENAI_BASE_URL", &mock_server.1)
        .env("OPENAI_API_KEY", "none")
        .output()
        .unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let answered = stats(mock_server.address())["answered"].as_f64().unwrap();
    println!(
        "evaluation: debates on 600 items, {answered} calls of {SECONDS} s over {CONNECTIONS} connections in {seconds:.1} s: {:.1} % of the \
         time of the connections is used",
        100.0 * answered * SECONDS / (f64::from(CONNECTIONS) * seconds)
    );
}

fn main() -> ExitCode {
    if let Some(code) = common::as_polity() {
        return code;
    }
    let folder = common::folder("traffic");
    println!("declared: {REQUESTS} requests and {TOKENS} tokens a minute, told in headers; calls of 400 ms");
    limits(&folder, "many short calls", "1400", "You take part in a game.");
    limits(
        &folder,
        "fewer long ones",
        "700",
        &"You take part in a game that has many rules, none of which matters here. ".repeat(35),
    );
    println!("160 agents that ask twice, on a server that answers 8 at once after 200 ms and turns others away:");
    for (name, _) in polity_driver::source::Schedule::ALL {
        schedule(&folder, name);
    }
    outage(&folder);
    evaluation(&folder);
    let _ = fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}
