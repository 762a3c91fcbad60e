//! Prints the figures of the platform for the book's page of benchmarks: `cargo run --release -p polity --example platform`.
//!
//! Every line is a whole process (this program, started again as `polity`), including feeds, acts, the store of posts and the tables.
//! `stolen` is the share of requested processor time that other machines of the same host took meanwhile.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod common;

use common::{polity, with_stolen};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Active people: a fifth of them look at a feed of 20 out of 200 candidates per round, and react to about a third of it.
const BUSY: &str = "
polity: 2
name: busy
seed: 1
topology: {kind: barabasi-albert, links: 5}
world: {kind: platform, hours: HOURS}
cohorts: [{policy: {kind: user, like: 0.6, share: 0.02, comment: 0.1, dislike: 0.3, post: 0.1, tolerance: 0.8}}]
record: {agents: false}
";

/// Feeds by similarity alone, the nearest of all live posts of two topics; a twentieth of the people read, and write a post each.
const NEAREST: &str = "
polity: 2
name: nearest
seed: 1
rounds: 8
topology: {kind: none}
world: {kind: platform, hours: HOURS, depth: 100000, weights: {followed: 0, interest: 1, hot: 0, recent: 0, random: 0}}
cohorts: [{policy: {kind: user, post: 1, like: 0.2}}]
record: {agents: false}
";

struct Ran {
    told: Value,
    acts: f64,
    feeds: f64,
    /// Milliseconds of each round.
    rounds: Vec<f64>,
}

impl Ran {
    fn number(&self, key: &str) -> f64 {
        self.told[key].as_f64().unwrap()
    }
}

/// Runs a scenario in a separate process.
fn run(folder: &Path, scenario: &str, args: &[&str]) -> Ran {
    let (file, out) = (folder.join("scenario.yaml"), folder.join("run"));
    let hour = |share: &str| format!("[{}]", vec![share; 24].join(", "));
    let share = if scenario.contains("nearest") { "0.05" } else { "0.2" };
    fs::write(&file, scenario.replace("HOURS", &hour(share))).unwrap();
    let _ = fs::remove_dir_all(&out);
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let said = polity(&[&["run", file, "--out", out, "--no-report", "--json"], args].concat());
    let told = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let table = |name: &str| polity(&["export", out, "--table", name, "--format", "jsonl"]);
    let rows = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let rounds = rows(&table("rounds"));
    let feeds = rows(&table("metrics"))
        .iter()
        .filter(|row| row["name"] == "active")
        .map(|row| row["value"].as_f64().unwrap())
        .sum();
    Ran {
        told,
        acts: rounds.iter().map(|round| round["acts"].as_f64().unwrap()).sum(),
        feeds,
        rounds: rounds.iter().map(|round| round["wall_ms"].as_f64().unwrap()).collect(),
    }
}

/// Snapshots take memory, and by default are taken by the clock: fast machines would be measured without them.
fn snapshot_every(rounds: u32) -> String {
    format!("snapshot.rounds={rounds}")
}

fn main() -> ExitCode {
    if let Some(code) = common::as_polity() {
        return code;
    }
    let folder = common::folder("platform");
    println!("| people | rounds | acts | acts/s | feeds/s | candidates/s at most | peak MB | bytes a user | stolen |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let empty = run(&folder, BUSY, &["--agents", "10", "--rounds", "1"]).number("peak_memory_mb");
    for (people, rounds) in [("1000", "2000"), ("10000", "200"), ("100000", "30"), ("1000000", "10")] {
        let halfway = snapshot_every(rounds.parse::<u32>().unwrap() / 2);
        let args = ["--agents", people, "--rounds", rounds, "-P", &halfway];
        let (ran, stolen) = with_stolen(|| run(&folder, BUSY, &args));
        let (seconds, peak) = (ran.number("wall_seconds"), ran.number("peak_memory_mb"));
        println!(
            "| {people} | {rounds} | {:.0} | {:.0} | {:.0} | {:.1} million | {peak:.0} | {:.0} | {stolen:.0} % |",
            ran.acts,
            ran.acts / seconds,
            ran.feeds / seconds,
            ran.feeds * 200.0 / seconds / 1e6,
            (peak - empty) * 1e6 / people.parse::<f64>().unwrap(),
        );
    }
    let args = ["--agents", "100000", "--rounds", "30", "-P", "world.weights.collaborative=1"];
    let (ran, stolen) = with_stolen(|| run(&folder, BUSY, &args));
    println!(
        "the same 100,000 people with collaborative filtering as well: {:.0} acts/s, {:.0} feeds/s; stolen {stolen:.0} %",
        ran.acts / ran.number("wall_seconds"),
        ran.feeds / ran.number("wall_seconds")
    );
    let whole = fs::read_to_string("scenarios/platform.yaml").expect("started in the root of the repository");
    let (ran, stolen) = with_stolen(|| run(&folder, &whole, &["--agents", "1000000", "-P", &snapshot_every(15)]));
    println!(
        "scenarios/platform.yaml, a million people, 30 rounds, usual activity: {:.1} s, {:.0} MB, {:.0} acts, {:.0} feeds; stolen \
         {stolen:.0} %",
        ran.number("wall_seconds"),
        ran.number("peak_memory_mb"),
        ran.acts,
        ran.feeds
    );
    let (ran, stolen) = with_stolen(|| run(&folder, NEAREST, &["--agents", "1000000"]));
    // Once there are 100,000 live posts.
    let late = &ran.rounds[4..];
    println!(
        "nearest of all live posts of two topics, a million people and 100,000 live posts, {:.1} % of the people a \
         round: {:.2} s per round on average, reading and writing included; stolen {stolen:.0} %",
        100.0 * ran.feeds / 8.0 / 1e6,
        late.iter().sum::<f64>() / late.len() as f64 / 1e3
    );
    let _ = fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}
