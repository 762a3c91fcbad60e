//! Prints the table of benchmarks of the book: `cargo run --release -p polity --example bench`.
//!
//! Every line is a whole process (this program, started again as `polity`), so that memory and start-up count. With arguments this
//! program is the polity command itself.
#![allow(clippy::print_stdout, clippy::expect_used, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// As in the program `polity`.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

const GUESS: &str = "scenarios/guess-average.yaml";

const OPINION: &str = "
name: opinion-on-a-graph
rounds: 10
topology: {kind: barabasi-albert, links: 5}
world: {kind: opinion}
cohorts: [{policy: {kind: degroot}}]
record: {acts: false, agents: false}
";

const SCHELLING: &str = "
rounds: 25
world: {kind: schelling, density: 0.8, radius: 2}
cohorts: [{policy: {kind: relocate, least_count: 8}}]
record: {acts: false, agents: false}
";

const FLOCK: &str = "
rounds: 20
world: {kind: flock}
cohorts: [{policy: {kind: boid}}]
record: {acts: false, agents: false}
";

/// A city of 8.4 million, 60 days.
const EPIDEMIC: &str = "
rounds: 60
topology: {kind: erdos-renyi, mean_degree: 10}
world: {kind: epidemic, rate: 0.05, latent: 3, infectious: 5, initial: 0.0001, step: 1}
cohorts: [{policy: {kind: isolate, compliance: 0.3}}]
record: {acts: false, agents: false}
";

const DEBATES: &str = "
name: thousand-debates
rounds: 3
agents: 3
model: sim/medium
method: {kind: debate}
items: {file: QUESTIONS, question: question, answer: answer, difficulty: difficulty, count: 1000}
max_concurrent: 1000
";

fn main() -> ExitCode {
    if std::env::args().len() > 1 {
        return polity::cli::main(polity::registry());
    }
    table();
    ExitCode::SUCCESS
}

/// Returns the bytes below a folder.
fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return fs::metadata(path).map_or(0, |m| m.len()) };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

struct Line {
    json: serde_json::Value,
    wall: f64,
    disk: f64,
}

impl Line {
    fn number(&self, key: &str) -> f64 {
        self.json[key].as_f64().unwrap_or(f64::NAN)
    }
}

/// Runs once in a separate process.
fn run(folder: &Path, file: &str, args: &[&str]) -> Line {
    let out = folder.join("run");
    let _ = fs::remove_dir_all(&out);
    let began = std::time::Instant::now();
    let done = Command::new(std::env::current_exe().expect("the path of this program"))
        .args(["run", file, "--json", "--out"])
        .arg(&out)
        .args(args)
        .output()
        .expect("this program starts again");
    let wall = began.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&done.stdout);
    let last = text.lines().last().unwrap_or_default();
    assert!(done.status.success(), "{last}\n{}", String::from_utf8_lossy(&done.stderr));
    Line { json: serde_json::from_str(last).expect("one line of JSON"), wall, disk: size(&out) as f64 / 1e6 }
}

/// Returns the run with the median wall time of three.
fn median(folder: &Path, file: &str, args: &[&str]) -> Line {
    let mut lines: Vec<Line> = (0..3).map(|_| run(folder, file, args)).collect();
    lines.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    lines.remove(1)
}

fn table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file in the temporary folder");
        path.display().to_string()
    };
    let opinion = file("opinion.yaml", OPINION);
    let questions = folder.path().join("questions.jsonl");
    fs::copy("data/gsm8k-200.jsonl", questions).expect("started in the root of the repository");
    let debates = file("debates.yaml", &DEBATES.replace("QUESTIONS", "questions.jsonl"));
    let quiet = ["-P", "record.acts=false", "-P", "record.agents=false", "--no-report"];

    println!(
        "| what | agents | ms a round | million agent-rounds/s | process, s | peak MB | bytes an agent | MB on disk |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let empty = median(folder.path(), GUESS, &[&["--agents", "3"], &quiet[..]].concat()).number("peak_memory_mb");
    let print = |what: &str, agents: u64, line: &Line| {
        let ms = line.number("round_ms");
        println!(
            "| {what} | {agents} | {ms:.2} | {:.1} | {:.2} | {:.0} | {:.0} | {:.1} |",
            agents as f64 / ms / 1000.0,
            line.wall,
            line.number("peak_memory_mb"),
            (line.number("peak_memory_mb") - empty) * 1e6 / agents as f64,
            line.disk,
        );
    };
    for agents in [1_000u64, 10_000, 100_000, 1_000_000] {
        let n = agents.to_string();
        let line = median(folder.path(), GUESS, &[&["--agents", &n, "--rounds", "20"], &quiet[..]].concat());
        print("guess-average, rounds alone with mean and exact quantiles", agents, &line);
    }
    for agents in [1_000u64, 10_000, 100_000, 1_000_000] {
        let n = agents.to_string();
        let line = [&["--agents", &n, "--rounds", "20", "-P", "metrics=[]"], &quiet[..]].concat();
        print("guess-average, rounds alone, no metrics", agents, &median(folder.path(), GUESS, &line));
    }
    for agents in [1_000u64, 10_000, 100_000, 1_000_000] {
        let line = median(folder.path(), GUESS, &["--agents", &agents.to_string()]);
        print("guess-average, every act in Parquet, report", agents, &line);
    }
    for agents in [1_000u64, 10_000, 100_000, 1_000_000] {
        let line = median(folder.path(), &opinion, &["--agents", &agents.to_string(), "--no-report"]);
        print("opinion (DeGroot), Barabási–Albert, 10 messages an agent and round", agents, &line);
    }
    for (what, text, agents) in [
        ("schelling, radius 2, random order", SCHELLING, 100_000u64),
        ("flock, about 13 neighbours", FLOCK, 100_000),
        ("epidemic, 10 ties an agent, 60 days, event time", EPIDEMIC, 8_400_000),
    ] {
        let scenario = file("world.yaml", text);
        print(what, agents, &median(folder.path(), &scenario, &["--agents", &agents.to_string(), "--no-report"]));
    }
    let line = median(folder.path(), &debates, &["--no-report"]);
    println!();
    println!(
        "1,000 debates of three at once on simulated models: {} answers through journal and group commit, {:.0} answers/s in rounds \
         ({:.0} answers/s of the whole process), {} commits.",
        line.number("answers"),
        line.number("answers") / (line.number("round_ms") * line.number("rounds") / 1000.0),
        line.number("answers") / line.wall,
        line.number("commits"),
    );
    let one = median(folder.path(), &debates, &["-P", "items.count=1", "--no-report"]);
    println!("One debate of three over three rounds: {} commits in all.", one.number("commits"));
}
