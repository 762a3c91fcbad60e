//! Shared code of the benchmarks: the mock server and every run are separate processes, this program started again as `polity`.
#![allow(dead_code, reason = "each program uses its part")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// As in the program `polity`.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

/// Set for a run that should report its processor time.
const TELL: &str = "POLITY_TELL_CPU";
/// Clock ticks per second in Linux's `/proc`.
const TICKS: f64 = 100.0;

/// Acts as `polity` if there are arguments.
pub fn as_polity() -> Option<ExitCode> {
    (std::env::args().len() > 1).then(|| {
        let code = polity::cli::main(polity::registry());
        if std::env::var_os(TELL).is_some() {
            eprintln!("cpu {}", cpu_seconds("self"));
        }
        code
    })
}

/// A folder for the runs.
pub fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("polity-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A mock server that serves until dropped, and its address.
pub struct MockServer(pub Child, pub String);

impl Drop for MockServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl MockServer {
    /// Starts one with these flags.
    pub fn start(flags: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("mock-server")
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        MockServer(process, line.trim().trim_start_matches("listening on ").to_owned())
    }

    /// Returns host and port.
    pub fn address(&self) -> &str {
        self.1.trim_start_matches("http://").trim_end_matches("/v1")
    }

    /// Returns its processor time in seconds.
    pub fn cpu(&self) -> f64 {
        cpu_seconds(&self.0.id().to_string())
    }
}

/// A finished run: the object it printed, and its processor time in seconds.
pub struct Ran {
    told: Value,
    pub cpu: f64,
}

impl Ran {
    /// Returns a number of the object.
    pub fn number(&self, key: &str) -> f64 {
        self.told[key].as_f64().unwrap_or_else(|| panic!("no {key} in {}", self.told))
    }
}

impl Ran {
    /// Returns how many questions ended with a resolution.
    pub fn resolutions(&self, resolution: &str) -> f64 {
        self.told["resolutions"][resolution]
            .as_f64()
            .unwrap_or_else(|| panic!("no resolution {resolution} in {}", self.told))
    }
}

/// Runs a scenario, in `folder/run`.
pub fn run(folder: &Path, scenario: &str, mock_server: &MockServer, flags: &[&str]) -> Ran {
    let file = folder.join("scenario.yaml");
    fs::write(&file, format!("polity: 2\n{scenario}")).unwrap();
    let out = folder.join("run");
    let _ = fs::remove_dir_all(&out);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--no-report", "--json"])
        .args(flags)
        .env(TELL, "1")
        .env("OPENAI_BASE_URL", &mock_server.1)
        .env("OPENAI_API_KEY", "none")
        .output()
        .unwrap();
    let (said, noted) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{noted}");
    let told = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let cpu = noted.lines().last().and_then(|line| line.strip_prefix("cpu ")).unwrap().parse().unwrap();
    Ran { told, cpu }
}

/// Returns the processor time of a process, in seconds.
pub fn cpu_seconds(process: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let field = |i: usize| after.split_whitespace().nth(i).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    (field(11) + field(12)) / TICKS
}

/// Returns the processor time in seconds that this machine has requested since its start, and the part that other machines of its host
/// took.
fn wanted_and_stolen() -> (f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<f64> = text.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    let field = |i: usize| ticks.get(i).copied().unwrap_or(0.0) / TICKS;
    // user, nice, system, idle, waiting, two kinds of interrupts, stolen
    let stolen = field(7);
    ([0, 1, 2, 5, 6].map(field).iter().sum::<f64>() + stolen, stolen)
}

/// Returns the result of `work`, and the percentage of requested processor time taken meanwhile by other machines of the same host: on a
/// shared host a figure means little without it.
pub fn with_stolen<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = wanted_and_stolen();
    let done = work();
    let after = wanted_and_stolen();
    (done, 100.0 * (after.1 - before.1) / (after.0 - before.0).max(1.0 / TICKS))
}

/// Returns the output of `polity`.
pub fn polity(args: &[&str]) -> String {
    let output = Command::new(std::env::current_exe().unwrap()).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
