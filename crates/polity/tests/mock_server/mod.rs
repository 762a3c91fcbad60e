//! The mock server in a process of its own, for tests of whole runs on a provider.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A key that must not be found anywhere.
pub const CANARY: &str = "sk-canary-5ecre7-0123456789abcdef";

/// The variables of all providers.
pub const VARIABLES: [&str; 9] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "OLLAMA_API_KEY",
    "OLLAMA_HOST",
];

/// The folder of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `polity mock-server`, until dropped.
pub struct MockServer {
    pub process: Child,
    pub url: String,
}

impl MockServer {
    pub fn start(flags: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_polity"))
            .arg("mock-server")
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("it says where").to_string();
        assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/v1"), "{url}");
        MockServer { process, url }
    }

    /// Returns its counts.
    pub fn stats(&self) -> Value {
        let address = self.url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /stats HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }

    /// Returns one of its counts.
    pub fn count(&self, key: &str) -> u64 {
        self.stats()[key].as_u64().unwrap()
    }

    /// Returns the variables with which a run asks it.
    pub fn variables(&self) -> [(&str, &str); 2] {
        [("OPENAI_BASE_URL", self.url.as_str()), ("OPENAI_API_KEY", CANARY)]
    }
}

impl MockServer {
    /// Its address without `/v1`.
    pub fn root(&self) -> &str {
        self.url.trim_end_matches("/v1")
    }

    /// Returns the variables with which a run asks it on any wire.
    pub fn everywhere(&self) -> [(&str, &str); VARIABLES.len()] {
        VARIABLES.map(|name| match name {
            "OPENAI_BASE_URL" => (name, self.url.as_str()),
            name if name.ends_with("_KEY") => (name, CANARY),
            name => (name, self.root()),
        })
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Creates the command in a folder, with these variables and no others of a provider.
pub fn command(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).current_dir(folder);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command
}

/// Runs the same to its end.
pub fn polity(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    command(folder, args, variables).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn last_line(output: &Output) -> Value {
    serde_json::from_str(text(&output.stdout).lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("no object on the last line: {output:?}"))
}

/// Returns every file below a folder that holds these bytes.
pub fn holding(folder: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, needle));
        } else if std::fs::read(&path).unwrap().windows(needle.len()).any(|window| window == needle.as_bytes()) {
            found.push(path);
        }
    }
    found
}

/// A run in a process of its own, killed on drop.
pub struct Process(pub Child);

impl Process {
    pub fn start(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = command(folder, &[args, &["--no-report", "--json"]].concat(), variables);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Process(command.spawn().unwrap())
    }

    /// Waits for an event; the process must not end before.
    pub fn until(&mut self, what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
            assert!(self.0.try_wait().unwrap().is_none(), "it ended before {what}: {}", self.end().1);
            sleep(Duration::from_millis(5));
        }
    }

    /// Like `kill -9`.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub fn end(&mut self) -> (Value, String, Option<i32>) {
        let code = self.0.wait().unwrap().code();
        let (mut out, mut notes) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        (serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or_default(), notes, code)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
