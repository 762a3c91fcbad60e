//! Prints the figures of minds for the book's page of benchmarks: `cargo run --release -p polity --example minds`.
//!
//! The mock server and every run are separate processes (this program, started again as `polity`) on one machine: the mock server uses
//! its share of the cores. With arguments this program is the polity command itself.
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::unwrap_used)]

mod common;

use common::{MockServer, run};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Instant;

const LATENCY_MS: f64 = 50.0;

const MINDS: &str = "
name: minds
world: {kind: guess-average}
record: {acts: true}
cohorts: [{policy: {kind: mind, model: openai/medium, memory: {tokens: 0}}}]
";

const RULES: &str = "
name: rules
world: {kind: guess-average}
cohorts: [{policy: {kind: level-k}}]
";

const MIXED: &str = "
name: mixed
world: {kind: guess-average}
record: {acts: true}
cohorts:
  - {name: minds, count: {fixed: 1000}, policy: {kind: mind, model: openai/medium, memory: {tokens: 0}}}
  - {name: rules, share: 1, policy: {kind: level-k}}
";

fn mock_server() -> MockServer {
    MockServer::start(&["--latency-ms", &LATENCY_MS.to_string()])
}

/// Returns the median milliseconds of sequential calls on one connection, by a client that does nothing else.
fn lone_call_ms(mock_server: &MockServer) -> f64 {
    let address = mock_server.address();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let body = r#"{"model":"medium","messages":[{"role":"user","content":"Which number do you name?"}]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAuthorization: Bearer none\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut times: Vec<f64> = (0..41)
        .map(|_| {
            let began = Instant::now();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            while !answer.windows(4).any(|end| end == b"\r\n\r\n") || !answer.ends_with(b"}") {
                let mut piece = [0; 4096];
                let n = stream.read(&mut piece).unwrap();
                assert!(n > 0, "the mock server has hung up");
                answer.extend_from_slice(&piece[..n]);
            }
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[20]
}

fn main() -> ExitCode {
    if let Some(code) = common::as_polity() {
        return code;
    }
    let folder = common::folder("minds");
    println!(
        "the mock server answers after {LATENCY_MS} ms; {} cores for it and for the runs",
        std::thread::available_parallelism().map_or(0, usize::from)
    );

    let lone = lone_call_ms(&mock_server());
    println!(
        "a single call on one connection, with a plain client: {lone:.1} ms; the ideal throughput is computed from it"
    );
    for (connections, agents) in [("100", "10000"), ("1000", "100000")] {
        let mock_server = mock_server();
        let ran =
            run(&folder, MINDS, &mock_server, &["--rounds", "1", "--agents", agents, "--max-connections", connections]);
        let (n, calls) = (connections.parse::<f64>().unwrap(), ran.number("calls"));
        let (ideal, took) = (calls / n * lone / 1e3, ran.number("round_ms") / 1e3);
        println!(
            "{connections} connections, {calls} calls: {took:.2} s where {ideal:.2} s are ideal, {:.0} % of the ideal throughput; {:.0} µs of its own CPU time per call, and {:.0} µs of the mock server's",
            100.0 * ideal / took,
            ran.cpu / calls * 1e6,
            mock_server.cpu() / calls * 1e6
        );
    }

    let mock_server = mock_server();
    let memory = |rounds: &str| {
        run(&folder, MINDS, &mock_server, &["--rounds", rounds, "--agents", "2000", "--max-connections", "200"])
    };
    let told: Vec<String> = ["10", "50", "150"]
        .into_iter()
        .map(memory)
        .map(|ran| format!("{:.0} MB after {}", ran.number("peak_memory_mb"), ran.number("calls")))
        .collect();
    println!("memory by calls: {}", told.join(", "));

    let flags = ["--rounds", "5", "--agents", "100000", "--max-connections", "100"];
    let rules = run(&folder, RULES, &mock_server, &flags).number("round_ms");
    let alone = run(&folder, MINDS, &mock_server, &["--rounds", "5", "--agents", "1000", "--max-connections", "100"])
        .number("round_ms");
    let mixed = run(&folder, MIXED, &mock_server, &flags).number("round_ms");
    println!(
        "100,000 agents of whom 1,000 are minds: {mixed:.0} ms a round; 1,000 minds alone {alone:.0} ms, 100,000 by rule alone {rules:.1} ms: {:.2} of their sum",
        mixed / (alone + rules)
    );
    let _ = fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}
