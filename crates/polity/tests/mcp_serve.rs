//! `polity mcp serve`: scenarios, agents and teams as tools, over standard input and output.

use crate::harness::scratch;
use crate::mock_server::{command, root};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn start(folder: &Path, more: &[&str]) -> Client {
        let scenarios = root().join("scenarios").display().to_string();
        let args = [&["mcp", "serve", &scenarios][..], more].concat();
        let mut command = command(folder, &args, &[]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Client { child, to, from, last: 0 };
        let about =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert_eq!(client.ask("initialize", &about)["serverInfo"]["name"], "polity");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
        self.to.flush().unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["result"].clone()
    }

    /// The text of a call's result, or of its error.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        if result["isError"] == json!(true) { Err(text) } else { Ok(text) }
    }

    fn ends(mut self) {
        drop(self.to);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn scenarios_run_and_their_runs_are_kept() {
    let folder = scratch("mcp-serve");
    let mut client = Client::start(&folder, &[]);
    assert_eq!(client.ask("tools/list", &json!({}))["tools"].as_array().unwrap().len(), 5);
    assert!(client.call("list_scenarios", &json!({})).unwrap().contains("crew.yaml: "));
    let asked =
        json!({"scenario": "guess-average.yaml", "agents": 50, "rounds": 3, "parameters": {"world.fraction": 0.5}});
    let runs: Vec<Value> =
        (0..2).map(|_| serde_json::from_str(&client.call("run_scenario", &asked).unwrap()).unwrap()).collect();
    assert_eq!(runs[0]["run"], "guess-average-1");
    assert!(runs[0]["metrics"]["guess.mean"].is_number());
    assert_eq!(runs[0]["summary"]["digest"], runs[1]["summary"]["digest"]);
    assert_eq!(client.call("list_runs", &json!({})).unwrap(), "guess-average-1\nguess-average-2");
    assert!(folder.join("runs/guess-average-2/manifest.json").is_file());
    let why = client.call("ask_agent", &json!({"run": "guess-average-1", "agent": 1, "question": "Why?"})).unwrap_err();
    assert!(why.contains("cannot be asked"), "{why}");
    client.ends();
}

#[test]
fn a_team_answers_within_the_limit_of_all_calls() {
    let folder = scratch("mcp-team");
    let mut client = Client::start(&folder, &["--model", "sim/medium", "--max-cost", "0.0001"]);
    let asked = json!({"scenario": "debate.yaml", "question": "How many days has a week?"});
    let outcomes: Vec<Result<String, String>> = (0..4).map(|_| client.call("ask_team", &asked)).collect();
    let spent: f64 = outcomes
        .iter()
        .flatten()
        .map(|text| serde_json::from_str::<Value>(text).unwrap()["cost_usd"].as_f64().unwrap())
        .sum();
    assert!(spent <= 0.0001 && outcomes.iter().any(Result::is_err), "{outcomes:?}");
    client.ends();
}

#[test]
fn nothing_outside_of_the_folder_can_be_named() {
    let folder = scratch("mcp-outside");
    let mut client = Client::start(&folder, &[]);
    for scenario in ["../systems/dylan/scenario.yaml", "/etc/passwd", "", "nothing.yaml"] {
        let why = client.call("run_scenario", &json!({"scenario": scenario})).unwrap_err();
        assert_eq!(why, format!("there is no `{scenario}`"));
    }
    let file = json!({"scenario": "debate.yaml", "parameters": {"items.file": "/etc/passwd"}});
    assert!(client.call("run_scenario", &file).unwrap_err().contains("do not fit"));
    client.ends();
}
