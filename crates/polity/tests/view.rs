//! The viewer over HTTP, as its page and as scripts use it.

use crate::harness::{scratch, write_scenario};
use crate::mock_server::{command, polity, root, text};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A viewer in a process of its own, perhaps with a team.
pub struct Viewer {
    pub process: Child,
    pub address: String,
    pub token: Option<String>,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).unwrap()
    }

    fn error(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap();
        body["error"].as_str().unwrap().to_string()
    }
}

impl Viewer {
    fn start(folder: &Path, args: &[&str]) -> Viewer {
        Viewer::of(command(folder, args, &[]))
    }

    pub fn of(mut command: Command) -> Viewer {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().strip_prefix("http://").unwrap().to_string();
        let (address, token) = match url.split_once("/#token=") {
            Some((address, token)) => (address.to_string(), Some(token.to_string())),
            None => (url.split('/').next().unwrap().to_string(), None),
        };
        Viewer { process, address, token }
    }

    pub fn ask(&self, request: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let token = self.token.as_ref().map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\n{host}{token}{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut whole = Vec::new();
        stream.read_to_end(&mut whole).unwrap();
        let end = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&whole[..end]).to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: whole[end + 4..].to_vec() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "", "")
    }
}

/// A folder with two runs of one society, the second with another fraction from the start.
fn runs(name: &str) -> std::path::PathBuf {
    let folder = scratch(name);
    let file = write_scenario(
        &folder,
        &json!({
            "name": "two", "seed": 1, "rounds": 5, "agents": 50, "record": {"messages": true},
            "world": {"kind": "guess-average", "fraction": 0.5},
            "topology": {"kind": "ring", "neighbours": 2},
            "cohorts": [{"policy": {"kind": "adaptive", "rate": 0.5}}],
            "metrics": [{"kind": "mean", "of": "guess"}],
        }),
    );
    let file = file.to_str().unwrap();
    for (out, set) in [("runs/a", "world.fraction=0.5"), ("runs/more/b", "world.fraction=0.6")] {
        let made = polity(&folder, &["run", file, "--out", out, "-P", set, "--no-report"], &[]);
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    folder
}

#[test]
fn runs_agents_and_metrics_are_served_as_json_and_as_arrow() {
    let folder = runs("view");
    let viewer = Viewer::start(&folder, &["serve", "runs", "--no-open"]);
    assert_eq!(viewer.get("/healthz").body, b"ok");
    let page = viewer.get("/");
    assert!(page.status == 200 && page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    let listed = viewer.get("/api/runs").json();
    let ids: Vec<&str> = listed["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert!(ids.len() == 2 && ids.contains(&"a") && ids.contains(&"more~b"), "{ids:?}");
    let run = viewer.get("/api/runs/more~b").json();
    assert_eq!((&run["status"], &run["agents"], &run["rounds"]), (&json!("done"), &json!(50), &json!(5)));
    assert_eq!(run["network"]["ties"], 100);
    // A page of agents after round 2, against the table.
    let exported = text(&polity(&folder, &["export", "runs/a", "--table", "states"], &[]).stdout);
    let header: Vec<&str> = exported.lines().next().unwrap().split(',').collect();
    assert_eq!(header[..3], ["round", "agent", "last-guess"]);
    let mut of_round: Vec<(u64, f64)> = exported
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|line| line[0] == "2")
        .map(|line| (line[1].parse().unwrap(), line[2].parse().unwrap()))
        .filter(|(_, guess)| *guess > 20.0)
        .collect();
    of_round.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let query = "round=2&where=last-guess:gt:20&sort=last-guess&desc=true&columns=agent,last-guess&limit=5&offset=1";
    let agents = viewer.get(&format!("/api/runs/a/agents?{query}")).json();
    assert_eq!((&agents["total"], &agents["matched"]), (&json!(50), &json!(of_round.len())));
    let expected: Vec<Value> = of_round.iter().skip(1).take(5).map(|(agent, guess)| json!([agent, guess])).collect();
    assert_eq!(agents["rows"], json!(expected));
    let floats = viewer.get("/api/runs/a/column?name=last-guess&round=2").body;
    assert_eq!(floats.len(), 4 * 50);
    for (agent, guess) in &of_round {
        let at = 4 * *agent as usize;
        assert_eq!(f32::from_le_bytes(floats[at..at + 4].try_into().unwrap()), *guess as f32);
    }
    // Before the first round.
    let first = viewer.get("/api/runs/a/agents?round=-1&columns=last-guess&limit=1").json();
    assert_eq!(first["state_round"], -1);
    assert!(first["rows"][0][0].is_number(), "{first}");
    let life = viewer.get("/api/runs/a/agents/7").json();
    assert_eq!((life["states"].as_array().unwrap().len(), life["acts"].as_array().unwrap().len()), (5, 5));
    assert_eq!(life["neighbours"], json!([6, 8]));
    let seen = viewer.get("/api/runs/a/agents/7/observation?round=3").json();
    assert!(seen["numbers"].as_object().is_some_and(|numbers| !numbers.is_empty()), "{seen}");
    let arrow = "Accept: application/vnd.apache.arrow.stream\r\n";
    for path in ["agents?round=2", "metrics", "tables/acts?from=1&to=2"] {
        let answer = viewer.ask(&format!("GET /api/runs/a/{path}"), arrow, "");
        assert!(answer.status == 200 && answer.head.contains("arrow.stream"), "{path}: {}", answer.head);
        // The stream's mark for a message that continues.
        assert_eq!(answer.body[..4], [0xff; 4], "{path}");
    }
    let metrics = viewer.get("/api/runs/a/metrics").json();
    assert_eq!(metrics["metrics"][0]["points"].as_array().unwrap().len(), 5);
    let diff = viewer.get("/api/diff?a=a&b=more~b").json();
    assert!(
        diff["scenario"].as_array().unwrap().contains(&json!({"path": "world.fraction", "a": 0.5, "b": 0.6})),
        "{diff}"
    );
    assert_eq!(diff["metrics"][0]["a"].as_array().unwrap().len(), 5);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_requests_get_words_and_other_sites_get_nothing() {
    let folder = runs("view-wrong");
    let viewer = Viewer::start(&folder, &["view", "runs/a", "--no-open"]);
    for (path, status, words) in [
        ("/api/runs/b", 404, "there is no run `b`"),
        ("/api/runs/..%2F..%2Fetc", 404, "there is no run"),
        ("/api/runs/a/agents?where=nothing:eq:1", 400, "no column `nothing`"),
        ("/api/runs/a/agents?where=agent", 400, "COLUMN:OP:VALUE"),
        ("/api/runs/a/agents?rownd=1", 400, "rownd"),
        ("/api/runs/a/agents?round=x", 400, "the query"),
        ("/api/runs/a/agents/5000", 404, "no agent 5000"),
        ("/api/runs/a/posts", 404, "no posts"),
        ("/nothing", 404, "openapi"),
    ] {
        let answer = viewer.get(path);
        assert!(
            answer.status == status && answer.error().contains(words),
            "{path}: {} {}",
            answer.status,
            answer.error()
        );
    }
    for headers in ["Host: evil.example\r\n", "Origin: http://evil.example\r\n"] {
        assert_eq!(viewer.ask("GET /api/runs", headers, "").status, 403, "{headers}");
    }
    let post =
        |kind: &str, body: &str| viewer.ask("POST /api/runs/a/orders", &format!("Content-Type: {kind}\r\n"), body);
    assert_eq!(post("text/plain", "{}").status, 415);
    let ended = post("application/json", "{\"order\": \"pause\"}");
    assert!(ended.status == 409 && ended.error().contains("not under way"), "{}", ended.error());
    assert!(post("application/json", "{\"order\": \"dance\"}").error().contains("pause, resume"));
    // The description names every route with the parameters that it takes.
    let description = viewer.get("/api/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0");
    let parameters = description["paths"]["/api/runs/{id}/agents"]["get"]["parameters"].as_array().unwrap();
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
    assert!(["id", "round", "where", "sort"].iter().all(|name| names.contains(name)), "{names:?}");
    let open = polity(&folder, &["serve", "runs", "--host", "0.0.0.0", "--no-open"], &[("POLITY_TOKEN", "")]);
    assert!(open.status.code() == Some(2), "{}", text(&open.stderr));
    let none = polity(&folder, &["view", "runs", "--no-open"], &[]);
    assert!(text(&none.stderr).contains("polity serve"), "{}", text(&none.stderr));
    drop(viewer);
    let viewer = Viewer::start(&folder, &["serve", "runs", "--no-open", "--token", "0123456789abcdef"]);
    assert_eq!(viewer.get("/api/runs").status, 200);
    let stranger = Viewer {
        process: command(&folder, &["--version"], &[]).spawn().unwrap(),
        token: None,
        address: viewer.address.clone(),
    };
    assert_eq!((stranger.get("/api/runs").status, stranger.get("/healthz").status), (401, 200));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn evaluations_are_conversations() {
    let folder = scratch("view-debate");
    let scenario = root().join("scenarios/debate.yaml");
    let made = polity(&folder, &["run", scenario.to_str().unwrap(), "--out", "run", "--no-report"], &[]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let viewer = Viewer::start(&folder, &["view", "run", "--no-open"]);
    let run = viewer.get("/api/runs/run").json();
    assert_eq!((&run["kind"], &run["simulated"]), (&json!("evaluation"), &json!(true)));
    let items = viewer.get("/api/runs/run/items?limit=3").json();
    assert_eq!(items["items"].as_array().unwrap().len(), 3);
    assert!(items["accuracy"]["low"].as_f64() < items["accuracy"]["mean"].as_f64(), "{items}");
    let item = viewer.get("/api/runs/run/items/3").json();
    let calls = item["calls"].as_array().unwrap();
    assert!(!calls.is_empty() && calls.iter().all(|call| call["messages"][0]["role"].is_string()), "{item}");
    let wanted = viewer.get("/api/runs/run/calls?item=3&agent=1&limit=1").json();
    assert_eq!(wanted["calls"][0]["agent"], 1);
    std::fs::remove_dir_all(&folder).unwrap();
}
