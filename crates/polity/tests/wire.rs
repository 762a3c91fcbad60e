//! End-to-end tests of the OpenAI wire: the official Python client against the mock server, and whole runs against it through the
//! provider.

use crate::mock_server::{CANARY, MockServer, holding, last_line, polity, root, text};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// Clients, and what each must show.
const CLIENTS: &[(&str, &[&str])] = &[
    (
        "openai_client.py",
        &[
            "models",
            "chat",
            "tool",
            "stream",
            "stream of a tool",
            "loop of calls",
            "streamed loop of calls",
            "parse",
            "embeddings",
            "errors",
            "batches",
            "many at once",
        ],
    ),
    ("responses_client.py", &["responses", "parse", "loop of calls", "stream", "errors"]),
    (
        "anthropic_client.py",
        &["models", "messages", "structured", "tool", "stream", "loop of calls", "errors", "batches"],
    ),
    ("google_client.py", &["models", "generate", "structured", "chat", "loop of calls", "errors"]),
    ("ollama_client.py", &["models", "chat", "structured", "stream", "loop of calls", "errors"]),
];

/// Installs the clients; returns whether they are there.
pub fn have_clients() -> bool {
    let script = Command::new("bash").arg("scripts/python-clients.sh").current_dir(root()).output().unwrap();
    if script.status.code() == Some(75) {
        eprintln!("SKIPPED: {}", text(&script.stderr).trim());
        return false;
    }
    assert!(script.status.success(), "{}", text(&script.stderr));
    true
}

#[test]
fn the_official_python_clients_are_served() {
    if !have_clients() {
        return;
    }
    let mock_server = MockServer::start(&[]);
    // They take a second to start: all at once.
    let printed = std::thread::scope(|scope| {
        let mock_server = &mock_server;
        let serving: Vec<_> =
            CLIENTS.iter().map(|(client, parts)| scope.spawn(move || served(mock_server, client, parts))).collect();
        serving.into_iter().map(|serving| serving.join().unwrap()).collect::<String>()
    });
    println!("{printed}");
}

fn served(mock_server: &MockServer, client: &str, parts: &[&str]) -> String {
    let said = Command::new(root().join("target/venv/bin/python"))
        .arg(root().join("crates/polity/tests/clients").join(client))
        .envs(mock_server.everywhere())
        // A mock server on this machine is not behind a proxy.
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap();
    let printed = text(&said.stdout);
    assert!(said.status.success(), "{client}: {printed}\n{}", text(&said.stderr));
    for part in parts {
        assert!(printed.contains(&format!("{part} ok")), "{client}, {part}: {printed}");
    }
    printed
}

#[test]
fn a_provider_that_is_gone_or_refuses_stops_a_run_that_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario = root().join("scenarios/debate.yaml");
    let scenario = scenario.to_str().unwrap();
    let mock_server = MockServer::start(&[]);
    let whole = ["run", scenario, "-P", "model=openai/medium", "-P", "items.count=2", "--out", "whole", "--json"];
    let variables = [("OPENAI_BASE_URL", mock_server.url.as_str()), ("OPENAI_API_KEY", CANARY)];
    let digest = last_line(&polity(folder, &whole, &variables))["digest"].clone();
    let refusing = MockServer::start(&["--fault", "401=1"]);
    let gone = MockServer::start(&[]).url.clone();
    for (name, url, cause) in
        [("refused", refusing.url.as_str(), "OPENAI_API_KEY"), ("gone", gone.as_str(), "cannot be reached")]
    {
        let run = ["run", scenario, "-P", "model=openai/medium", "-P", "items.count=2", "--out", name, "--json"];
        let stopped = polity(folder, &run, &[("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", CANARY)]);
        assert_eq!(stopped.status.code(), Some(8), "{}", text(&stopped.stderr));
        assert!(text(&stopped.stderr).contains(cause), "{}", text(&stopped.stderr));
        assert!(text(&stopped.stderr).contains("polity resume"), "{}", text(&stopped.stderr));
        assert_eq!(holding(folder, CANARY), [] as [PathBuf; 0]);
        let resumed = polity(folder, &["resume", name, "--json"], &variables);
        assert_eq!(last_line(&resumed)["digest"], digest, "{name}: {}", text(&resumed.stderr));
    }
    // Without a price, a limit in dollars cannot be enforced.
    let run = ["run", scenario, "-P", "model=openai/medium", "--max-cost", "1", "--out", "priced", "--json"];
    let refused = polity(folder, &run, &variables);
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("--max-tokens"));
    let run = [&whole[..6], &["--max-calls", "10", "--out", "calls", "--json"]].concat();
    let held = last_line(&polity(folder, &run, &variables));
    assert_eq!((&held["status"], &held["answers"]), (&Value::from("budget"), &Value::from(10)), "{held}");
}

#[test]
fn a_run_on_a_provider_replays_without_it_and_holds_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let scenario = root().join("scenarios/debate.yaml");
    let scenario = scenario.to_str().unwrap();
    // Occasional errors, which are retried: the run must not be affected.
    let mock_server = MockServer::start(&["--fault", "500=0.2", "--latency-ms", "5"]);
    let variables = [("OPENAI_BASE_URL", mock_server.url.as_str()), ("OPENAI_API_KEY", CANARY)];
    let run = ["run", scenario, "-P", "model=openai/medium", "-P", "items.count=2", "--out", "run", "--json"];
    let ran = polity(folder, &run, &variables);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let summary = last_line(&ran);
    assert_eq!((summary["status"].as_str(), summary["simulated"].as_bool()), (Some("done"), Some(false)));
    assert_eq!(summary["answers"], 18, "two items, three members, three rounds");
    assert!(summary["tokens_in"].as_u64().unwrap() > 0 && summary["tokens_out"].as_u64().unwrap() > 0);
    let stats = mock_server.stats();
    assert_eq!((&stats["answered"], &stats["in_flight"]), (&Value::from(18), &Value::from(0)), "{stats}");
    assert!(stats["faults"]["500"].as_u64().unwrap() > 0 && stats["cost_usd"].as_f64().unwrap() > 0.0, "{stats}");
    assert_eq!((&stats["tokens_in"], &stats["tokens_out"]), (&summary["tokens_in"], &summary["tokens_out"]));
    drop(mock_server);
    let replayed = polity(folder, &["replay", "run", "--json"], &[]);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    let replay = last_line(&replayed);
    assert_eq!((replay["status"].as_str(), &replay["digest"]), (Some("same"), &summary["digest"]));
    assert!(folder.join("run/report.html").is_file());
    assert_eq!(holding(&folder.join("run"), CANARY), Vec::<PathBuf>::new());
    for output in [&ran, &replayed] {
        assert!(!text(&output.stdout).contains(CANARY) && !text(&output.stderr).contains(CANARY));
    }
    // A key that the server refuses and repeats is kept nowhere.
    let mock_server = MockServer::start(&["--fault", "401=1"]);
    let variables = [("OPENAI_BASE_URL", mock_server.url.as_str()), ("OPENAI_API_KEY", CANARY)];
    let run = ["run", scenario, "-P", "model=openai/medium", "-P", "items.count=1", "--out", "refused", "--json"];
    let ran = polity(folder, &run, &variables);
    assert!(!text(&ran.stdout).contains(CANARY) && !text(&ran.stderr).contains(CANARY));
    assert_eq!(holding(&folder.join("refused"), CANARY), Vec::<PathBuf>::new());
    assert!(text(&ran.stderr).contains("does not accept the key"), "{}", text(&ran.stderr));
}

/// The resulting acts differ between wires, since the mock server's answers depend on the bytes of a request.
#[test]
fn a_run_on_any_wire_is_counted_replayed_without_it_and_holds_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = root().join("scenarios/debate.yaml");
    let mock_server = MockServer::start(&["--fault", "500=0.1"]);
    for model in ["anthropic/medium", "google/medium", "gemini/medium", "ollama/medium", "openai-responses/medium"] {
        let out = model.replace('/', "-");
        let before = mock_server.stats();
        let run = ["run", scenario.to_str().unwrap(), "-P", &format!("model={model}"), "-P", "items.count=2"];
        let ran = polity(folder.path(), &[&run[..], &["--out", &out, "--json"]].concat(), &mock_server.everywhere());
        assert!(ran.status.success(), "{model}: {}", text(&ran.stderr));
        let summary = last_line(&ran);
        assert_eq!((&summary["answers"], &summary["simulated"]), (&Value::from(18), &Value::from(false)), "{model}");
        let stats = mock_server.stats();
        for count in ["tokens_in", "tokens_out"] {
            let counted = stats[count].as_u64().unwrap() - before[count].as_u64().unwrap();
            assert_eq!(summary[count], counted, "{model}, {count}");
        }
        let replayed = last_line(&polity(folder.path(), &["replay", &out, "--json"], &[]));
        assert_eq!((&replayed["status"], &replayed["digest"]), (&Value::from("same"), &summary["digest"]), "{model}");
        assert!(!text(&ran.stdout).contains(CANARY) && !text(&ran.stderr).contains(CANARY));
    }
    assert_eq!(holding(folder.path(), CANARY), Vec::<PathBuf>::new());
}

#[test]
fn what_models_offer_is_asked_once_when_a_run_begins() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = root().join("scenarios/debate.yaml");
    let mock_server = MockServer::start(&[]);
    let capabilities = |out: &str| -> Value {
        let manifest = std::fs::read(folder.path().join(out).join("manifest.json")).unwrap();
        serde_json::from_slice::<Value>(&manifest).unwrap()["capabilities"].clone()
    };
    let run = |model: &str, out: &str, variables: &[(&str, &str)]| {
        let model = format!("model={model}");
        let args = ["run", scenario.to_str().unwrap(), "-P", &model, "-P", "items.count=1", "--out", out];
        polity(folder.path(), &args, variables)
    };
    for (model, known, schema, context) in [
        ("openai/medium", true, Value::from(true), Value::Null),
        ("openai-responses/medium", true, Value::from(true), Value::Null),
        ("anthropic/medium", true, Value::from(true), Value::from(200_000)),
        ("google/medium", true, Value::Null, Value::from(200_000)),
        ("ollama/medium", true, Value::from(true), Value::from(200_000)),
    ] {
        let out = model.replace('/', "-");
        assert!(run(model, &out, &mock_server.everywhere()).status.success());
        let found = &capabilities(&out)[model];
        assert_eq!(
            (&found["known"], &found["schema"], &found["context"]),
            (&known.into(), &schema, &context),
            "{found}"
        );
        let report = std::fs::read_to_string(folder.path().join(&out).join("report.html")).unwrap();
        assert!(!context.is_u64() || report.contains("200000 tokens of context"), "{model}");
    }
    // Simulated models are not asked.
    assert!(run("sim/medium", "sim", &[]).status.success());
    assert_eq!(capabilities("sim"), Value::Null);
    // A missing server affects only the available information; the run continues, and does not ask again.
    let gone = MockServer::start(&[]).root().to_string();
    let stopped = run("ollama/medium", "gone", &[("OLLAMA_HOST", gone.as_str())]);
    assert_eq!(stopped.status.code(), Some(8), "{}", text(&stopped.stderr));
    let found = capabilities("gone");
    assert_eq!((&found["ollama/medium"]["known"], &found["ollama/medium"]["schema"]), (&false.into(), &true.into()));
    assert!(polity(folder.path(), &["resume", "gone"], &mock_server.everywhere()).status.success());
    assert_eq!(capabilities("gone"), found);
}

#[test]
fn a_missing_key_is_told_before_the_run_and_found_in_a_file_above() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let scenario = root().join("scenarios/debate.yaml");
    let run = |variables: &[(&str, &str)], out: &str| {
        let args = [
            "run",
            scenario.to_str().unwrap(),
            "-P",
            "model=openai/gpt-4o-mini",
            "-P",
            "items.count=1",
            "--no-report",
            "--out",
            out,
        ];
        polity(&deep, &args, variables)
    };
    let said = run(&[], "none");
    assert_eq!(said.status.code(), Some(2));
    let message = text(&said.stderr);
    assert!(message.contains("OPENAI_API_KEY") && message.contains("sim/medium"), "{message}");
    assert!(!deep.join("none").exists(), "nothing has begun");
    let said = run(&[("OPENAI_API_KEY", "none"), ("OPENAI_BASE_URL", "localhost:8000/v1")], "none");
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("OPENAI_BASE_URL"), "{}", text(&said.stderr));
    let mock_server = MockServer::start(&[]);
    let file = format!("OPENAI_API_KEY='{CANARY}'\nexport OPENAI_BASE_URL=\"{}\"\n", mock_server.url);
    std::fs::write(folder.path().join(".env"), file).unwrap();
    let said = run(&[], "found");
    assert!(said.status.success(), "{}", text(&said.stderr));
    // The environment takes precedence over the file.
    let said = run(&[("OPENAI_API_KEY", "")], "none");
    assert_eq!(said.status.code(), Some(2));
}

/// A server that answers every question with this status and body, and has no information on its models.
fn answering(status: u16, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let answer = move |stream: &mut std::net::TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first)?;
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
        let (status, body) = if first.starts_with("POST") { (status, body.as_str()) } else { (404, "") };
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The client may be gone.
            let _ = answer(&mut stream.unwrap());
        }
    });
    url
}

/// Returns whether a text has terminal control sequences or changes the direction of text.
fn steers(shown: &str) -> bool {
    shown.chars().any(|c| c.is_control() && !"\n\t".contains(c) || "\u{202e}\u{2066}\u{200f}".contains(c))
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = root().join("scenarios/debate.yaml");
    let run = |url: &str, out: &str, more: &[&str]| {
        let scenario = scenario.to_str().unwrap();
        let args = ["run", scenario, "-P", "model=openai/m", "-P", "items.count=1", "--no-report", "--out", out];
        let variables = [("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", CANARY)];
        polity(folder.path(), &[&args[..], more].concat(), &variables)
    };
    let words = r"\u001b]52;c;cm0gLXJm\u0007\u001b[2Jgone \u202eexe.txt\u009b5m";
    let refusing = answering(401, format!(r#"{{"error": {{"message": "{words}"}}}}"#));
    let said = run(&refusing, "refused", &[]);
    let told = text(&said.stderr);
    assert_eq!(said.status.code(), Some(8), "{told}");
    assert!(!steers(&told), "{told:?}");
    assert!(told.contains(r"\u{1b}]52;c;cm0gLXJm\u{7}\u{1b}[2Jgone \u{202e}exe.txt\u{9b}5m"), "{told}");
    let said = run(&refusing, "logged", &["--log-format", "json", "--json"]);
    for line in text(&said.stderr).lines().chain(text(&said.stdout).lines()) {
        assert!(!steers(line) && serde_json::from_str::<Value>(line).is_ok(), "{line:?}");
    }
    let reply = format!(
        r#"{{"choices": [{{"message": {{"role": "assistant", "content": "{words}"}}, "finish_reason": "stop"}}]}}"#
    );
    let said = run(&answering(200, reply), "answered", &[]);
    assert!(!steers(&text(&said.stderr)), "{:?}", text(&said.stderr));
    for more in [&[][..], &["--full"], &["--json"]] {
        let shown = text(&polity(folder.path(), &[&["calls", "answered"], more].concat(), &[]).stdout);
        assert!(!steers(&shown) && shown.contains("exe.txt"), "{more:?}: {shown:?}");
    }
    // Data in a file or a pipe is unchanged: JSON by its own escapes, CSV by its bytes.
    let export = |format: &str| {
        let args = ["export", "answered", "--table", "calls", "--format", format];
        text(&polity(folder.path(), &args, &[]).stdout)
    };
    let first: Value = serde_json::from_str(export("jsonl").lines().next().unwrap()).unwrap();
    assert!(first["answer"].as_str().unwrap().contains('\u{202e}'), "{first}");
    assert!(!steers(&export("jsonl")) && export("csv").contains('\u{202e}'));
}

#[test]
fn a_key_is_not_sent_to_an_address_that_a_file_names() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("cloned/project");
    std::fs::create_dir_all(&deep).unwrap();
    let file = folder.path().join("cloned/.env");
    let put = |text: String, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let scenario = root().join("scenarios/debate.yaml");
    let run = |variables: &[(&str, &str)], out: &str| {
        let scenario = scenario.to_str().unwrap();
        let args = ["run", scenario, "-P", "model=openai/medium", "-P", "items.count=1", "--no-report", "--out", out];
        polity(&deep, &args, variables)
    };
    let (evil, own) = (MockServer::start(&[]), MockServer::start(&[]));
    let key = ("OPENAI_API_KEY", CANARY);
    put(format!("OPENAI_BASE_URL={}\n", evil.url), 0o600);
    let said = run(&[key], "a");
    let told = text(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{told}");
    assert!(told.contains(file.to_str().unwrap()) && told.contains("OPENAI_API_KEY in the environment"), "{told}");
    assert_eq!(evil.count("calls"), 0);
    // A custom address is reported once, and gets the key.
    let said = run(&[key, ("OPENAI_BASE_URL", &own.url)], "b");
    let told = text(&said.stderr);
    assert!(said.status.success(), "{told}");
    assert_eq!(told.matches(&format!("uses the address {}", own.url)).count(), 1, "{told}");
    assert!(told.contains("OPENAI_BASE_URL in the environment") && !told.contains("can be read on the way"), "{told}");
    // A file that others can write is ignored, and named.
    put(format!("OPENAI_BASE_URL={}\nOPENAI_API_KEY=from-the-file\n", evil.url), 0o666);
    let said = run(&[("OPENAI_BASE_URL", &own.url)], "c");
    let told = text(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{told}");
    assert!(told.contains("is ignored: others can write to it") && told.contains(file.to_str().unwrap()), "{told}");
    let said = run(&[key, ("OPENAI_BASE_URL", &own.url)], "c");
    assert!(said.status.success() && text(&said.stderr).contains("is ignored"), "{}", text(&said.stderr));
    assert_eq!(evil.count("calls"), 0);
    // With its own key it is asked, whatever key the environment holds, and this is reported.
    put(format!("OPENAI_BASE_URL={}\nOPENAI_API_KEY=from-the-file\n", evil.url), 0o600);
    let said = run(&[key], "d");
    let told = text(&said.stderr);
    assert!(said.status.success(), "{told}");
    assert!(told.contains(&format!("OPENAI_BASE_URL in `{}`", file.display())), "{told}");
    assert!(evil.count("calls") > 0);
    // A key for another machine without encryption is reported; nothing is asked here.
    let scenario = scenario.to_str().unwrap();
    let estimate = ["estimate", scenario, "-P", "model=openai/medium", "-P", "items.count=1", "--no-ask"];
    let said = polity(&deep, &estimate, &[key, ("OPENAI_BASE_URL", "http://models.invalid/v1")]);
    assert!(text(&said.stderr).contains("http://models.invalid/v1 is on another machine"), "{}", text(&said.stderr));
    let said = polity(&deep, &estimate, &[key, ("OPENAI_BASE_URL", "https://models.invalid/v1")]);
    assert!(!text(&said.stderr).contains("another machine"), "{}", text(&said.stderr));
}

#[test]
fn without_certificates_http_works_and_https_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = root().join("scenarios/debate.yaml");
    let mock_server = MockServer::start(&[]);
    let run = |base: &str, out: &str| {
        let nowhere = folder.path().join("nowhere");
        let nowhere = nowhere.to_str().unwrap();
        let variables = [
            ("OPENAI_BASE_URL", base),
            ("OPENAI_API_KEY", "none"),
            ("SSL_CERT_FILE", nowhere),
            ("SSL_CERT_DIR", nowhere),
        ];
        let scenario = scenario.to_str().unwrap();
        let args =
            ["run", scenario, "-P", "model=openai/m", "-P", "items.count=1", "--no-report", "--json", "--out", out];
        polity(folder.path(), &args, &variables)
    };
    let ran = run(&mock_server.url, "http");
    assert!(last_line(&ran)["tokens_out"].as_u64().is_some_and(|tokens| tokens > 0), "{}", text(&ran.stderr));
    let said = run(&mock_server.url.replace("http:", "https:"), "https");
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("ca-certificates"), "{}", text(&said.stderr));
}

#[test]
fn wrong_flags_of_the_stand_in_say_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let said = |flags: &[&str]| {
        let output = polity(folder.path(), &[&["mock-server"], flags].concat(), &[]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(said(&["--fault", "50=1"]).contains("slow-drip"));
    assert!(said(&["--model", "sim/medum"]).contains("did you mean `sim/medium`?"));
    let taken = MockServer::start(&[]);
    let port = taken.url.trim_end_matches("/v1").rsplit(':').next().unwrap();
    assert!(said(&["--port", port]).contains(&format!("port {port}")));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_stand_in() {
    let mut mock_server = MockServer::start(&[]);
    let id = mock_server.process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(mock_server.process.wait().unwrap().success());
}
