//! A team behind the OpenAI wire: its runs, its budget, its errors; the official client asks it, too.

use crate::harness::scratch;
use crate::mock_server::{MockServer, command, last_line, polity, root, text};
use crate::view::{Answer, Viewer};
use crate::wire::have_clients;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// A team of three that vote.
const THREE: [&str; 6] = ["serve", "--method", "sc@3", "--out", "team", "--no-open"];

fn start(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Viewer {
    Viewer::of(command(folder, args, variables))
}

/// A team of simulated models.
fn simulated(folder: &Path, more: &[&str]) -> Viewer {
    start(folder, &[&THREE, &["--model", "sim/medium"][..], more].concat(), &[])
}

fn post(server: &Viewer, body: &str) -> Answer {
    server.ask("POST /v1/chat/completions", "Content-Type: application/json\r\n", body)
}

fn ask(server: &Viewer, text: &str, more: &Value) -> Answer {
    let mut body = json!({ "model": "polity/sc@3", "messages": [{ "role": "user", "content": text }] });
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    post(server, &body.to_string())
}

/// The status of a refusal, and its error.
fn refused(answer: &Answer) -> (u16, Value) {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", text(&answer.body)));
    assert!(body["error"]["message"].is_string() && body["error"]["type"].is_string(), "{body}");
    (answer.status, body["error"].clone())
}

/// The names of the runs of a team.
fn runs(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder.join("team")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("chatcmpl-"));
    names.sort();
    names
}

/// The calls of all runs of a team.
fn calls(folder: &Path) -> usize {
    let lines = |run: &String| text(&polity(folder, &["calls", &format!("team/{run}"), "--json"], &[]).stdout);
    runs(folder).iter().map(|run| lines(run).lines().filter(|line| !line.contains("denied")).count()).sum()
}

fn interrupt(server: &Viewer) {
    assert!(Command::new("kill").args(["-INT", &server.process.id().to_string()]).status().unwrap().success());
}

#[test]
fn the_official_client_asks_a_team() {
    if !have_clients() {
        return;
    }
    let folder = scratch("serve-client");
    let server = simulated(&folder, &["--max-calls", "16"]);
    let said = Command::new(root().join("target/venv/bin/python"))
        .arg(root().join("crates/polity/tests/clients/team_client.py"))
        .env("OPENAI_BASE_URL", format!("http://{}/v1", server.address))
        .env("OPENAI_API_KEY", "any")
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let printed = text(&said.stdout);
    assert!(said.status.success(), "{printed}\n{}", text(&said.stderr));
    for part in ["models", "chat", "seeds", "stream", "refusals", "budget"] {
        assert!(printed.contains(&format!("{part} ok")), "{part}: {printed}");
    }
    assert!((15..=16).contains(&calls(&folder)), "{}", calls(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn requests_at_the_same_time_are_runs_that_verify_and_replay() {
    let folder = scratch("serve-runs");
    let mock_server = MockServer::start(&["--latency-ms", "300"]);
    let variables = mock_server.variables();
    let server = start(&folder, &[&THREE, &["--model", "openai/medium"][..]].concat(), &variables);
    let words = ["What is 6 times 7?", "Name a colour.", "What is 6 times 7?", "How many legs has a spider?"];
    let answers: Vec<Value> = scope(|scope| {
        let server = &server;
        let asking: Vec<_> = words.map(|text| scope.spawn(move || ask(server, text, &json!({})).json())).into();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    // One request alone never has more than three calls in flight.
    assert!(mock_server.count("most_in_flight") > 3, "{}", mock_server.stats());
    let ids: BTreeSet<&str> = answers.iter().map(|answer| answer["id"].as_str().unwrap()).collect();
    assert_eq!(ids.iter().copied().collect::<Vec<_>>(), runs(&folder));
    let digest = |i: usize| &answers[i]["polity"]["digest"];
    assert!(digest(0) == digest(2) && digest(0) != digest(1), "{answers:?}");
    for answer in &answers {
        let run = format!("team/{}", answer["id"].as_str().unwrap());
        let replayed = polity(&folder, &["replay", &run, "--json"], &[]);
        assert!(replayed.status.success(), "{}", text(&replayed.stderr));
        assert_eq!(last_line(&replayed)["digest"], answer["polity"]["digest"]);
        // Usage is what the members used.
        let listed = text(&polity(&folder, &["calls", &run, "--json"], &[]).stdout);
        let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |column: &str| listed.iter().map(|call| call[column].as_u64().unwrap()).sum::<u64>();
        assert_eq!(listed.len(), 3);
        assert_eq!(answer["usage"]["prompt_tokens"], sum("tokens_in"));
        assert_eq!(answer["usage"]["completion_tokens"], sum("tokens_out"));
    }
    let verified = polity(&folder, &["verify", "team"], &[]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    // The same server shows the runs.
    assert_eq!(server.get("/healthz").body, b"ok");
    let began = Instant::now();
    while server.get("/api/runs").json()["runs"].as_array().unwrap().len() != 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "the server does not show the runs");
        sleep(Duration::from_millis(200));
    }
    // A server that is started again in the folder continues to count.
    drop(server);
    let server = start(&folder, &[&THREE, &["--model", "openai/medium"][..]].concat(), &variables);
    let messages = json!([
        { "role": "system", "content": "Answer in French." }, { "role": "user", "content": "Hello" },
        { "role": "assistant", "content": "Bonjour" }, { "role": "user", "content": "Name a colour." },
    ]);
    let answer = ask(&server, "", &json!({ "messages": messages })).json();
    assert_eq!(answer["id"], "chatcmpl-000005");
    // Every member is sent every message.
    let listed = text(&polity(&folder, &["calls", "team/chatcmpl-000005", "--full"], &[]).stdout);
    for words in ["Answer in French.", "User: Hello", "Assistant: Bonjour", "Name a colour."] {
        assert_eq!(listed.matches(words).count(), 3, "{words}: {listed}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Patched MOA's three algorithms: only the method changes, and each asks the same model more than once.
#[test]
fn one_switch_wraps_a_model() {
    for method in ["best-of-n", "moa", "master"] {
        let folder = scratch(&format!("serve-switch-{method}"));
        let args = ["serve", "--method", method, "--model", "sim/small", "--out", "team", "--no-open"];
        let server = start(&folder, &args, &[]);
        let body = json!({
            "model": format!("polity/{method}"),
            "messages": [{ "role": "user", "content": "What is 6 times 7?" }],
        });
        let answer = post(&server, &body.to_string()).json();
        assert!(!answer["choices"][0]["message"]["content"].as_str().unwrap().is_empty(), "{answer}");
        assert!(answer["polity"]["calls"].as_u64().unwrap() > 1, "{answer}");
        let listed = text(&polity(&folder, &["calls", "team/chatcmpl-000001", "--json"], &[]).stdout);
        assert!(!listed.is_empty() && listed.lines().all(|line| line.contains("sim/small")), "{listed}");
        drop(server);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn one_budget_holds_over_requests_at_the_same_time() {
    let folder = scratch("serve-budget");
    let server = simulated(&folder, &["--max-calls", "7"]);
    let answers: Vec<Answer> = scope(|scope| {
        let server = &server;
        let one = |i| scope.spawn(move || ask(server, &format!("question {i}"), &json!({})));
        let asking: Vec<_> = (0..6).map(one).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    // Two have three calls each; what is left is not enough for a third, whoever it is.
    let (answered, not): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(answered.len(), 2, "{:?}", answers.iter().map(|answer| text(&answer.body)).collect::<Vec<_>>());
    for answer in not {
        let (status, error) = refused(answer);
        assert_eq!((status, &error["code"]), (429, &json!("insufficient_quota")), "{error}");
        assert!(answer.head.contains("x-should-retry: false"), "{}", answer.head);
    }
    assert!((6..=7).contains(&calls(&folder)), "{}", calls(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_requests_are_refused_in_the_format_of_the_api() {
    let folder = scratch("serve-refusals");
    let server = simulated(&folder, &[]);
    let of = |answer: Answer| {
        let (status, error) = refused(&answer);
        (status, error["message"].as_str().unwrap().to_owned(), error["param"].clone())
    };
    let (status, message, param) = of(ask(&server, "a", &json!({ "n": 2 })));
    assert!(status == 400 && param == "n" && message.contains("one run"), "{message}");
    let (status, message, param) = of(ask(&server, "a", &json!({ "model": "gpt-4o" })));
    assert!(status == 404 && param == "model" && message.contains("`polity/sc@3`"), "{message}");
    assert_eq!(of(post(&server, "{")).0, 400);
    let (status, message, _) = of(ask(&server, &"long ".repeat(300_000), &json!({})));
    assert!(status == 413 && message.contains("1 MiB"), "{message}");
    assert_eq!(of(server.get("/v1/embeddings")).0, 404);
    let json = "Content-Type: application/json\r\n";
    let post = |headers: &str| of(server.ask("POST /v1/chat/completions", headers, "{}")).0;
    assert_eq!(post("Content-Type: text/plain\r\n"), 415);
    assert_eq!(post(&format!("{json}Host: other.example\r\n")), 403);
    assert_eq!(post(&format!("{json}Origin: http://other.example\r\n")), 403);
    assert_eq!(runs(&folder), [""; 0]);
    drop(server);
    // With a token, it is the key.
    let server = simulated(&folder, &["--token", "0123456789abcdef"]);
    assert_eq!(of(server.get("/v1/models")).0, 401);
    let models = server.ask("GET /v1/models", "Authorization: Bearer 0123456789abcdef\r\n", "").json();
    assert_eq!(models["data"][0]["id"], "polity/sc@3");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_team_that_cannot_answer_is_refused_at_the_start() {
    let folder = scratch("serve-start");
    let tried = |args: &[&str]| {
        let output = polity(&folder, &[&["serve", "--no-open", "--out", "team"], args].concat(), &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    let sim = ["--model", "sim/medium"];
    for (args, why) in [
        (&["--method", "mao"][..], "did you mean `moa`"),
        (&["--method", "judge"], "cannot answer questions"),
        (&["--method", "agentcoder"], "cannot answer questions"),
        (&["--method", "sc", "-P", "budget.calls=5"], "--max-calls"),
        (&["--method", "sc", "-P", "items.count=2"], "items.count"),
        (&["--method", "sc", "--host", "0.0.0.0"], "--token"),
    ] {
        let message = tried(&[args, &sim].concat());
        assert!(message.contains(why), "{args:?}: {message}");
    }
    assert!(tried(&["--method", "sc"]).contains("no model is given"));
    assert!(tried(&["--method", "sc", "--model", "medium"]).contains("provider/model"));
    // A limit in dollars needs a price before the first request, too.
    let dollars =
        ["serve", "--method", "sc", "--model", "openai/nonesuch", "--max-cost", "1", "--no-open", "--out", "team"];
    let unpriced = polity(&folder, &dollars, &[("OPENAI_API_KEY", "any")]);
    assert!(text(&unpriced.stderr).contains("its price is unknown"), "{}", text(&unpriced.stderr));
    let message = text(&polity(&folder, &["serve", ".", "-P", "a=1", "--no-open"], &[]).stderr);
    assert!(message.contains("--method"), "{message}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_interrupt_stops_runs_that_can_be_resumed() {
    let folder = scratch("serve-interrupt");
    let mock_server = MockServer::start(&["--latency-ms", "1500"]);
    let variables = mock_server.variables();
    let team = ["serve", "--method", "debate", "--model", "openai/medium", "--out", "team", "--no-open"];
    let mut server = start(&folder, &team, &variables);
    let answer = scope(|scope| {
        let asking = scope.spawn(|| ask(&server, "What is 6 times 7?", &json!({ "model": "polity/debate" })));
        let began = Instant::now();
        while mock_server.count("in_flight") == 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was asked");
            sleep(Duration::from_millis(20));
        }
        interrupt(&server);
        asking.join().unwrap()
    });
    let (status, error) = refused(&answer);
    assert!(status == 503 && error["message"].as_str().unwrap().contains("polity resume"), "{error}");
    assert!(answer.head.contains("x-should-retry: false"), "{}", answer.head);
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
    let resumed = polity(&folder, &["resume", "team/chatcmpl-000001", "--no-report", "--json"], &variables);
    assert_eq!(last_line(&resumed)["status"], "done", "{}", text(&resumed.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
}
