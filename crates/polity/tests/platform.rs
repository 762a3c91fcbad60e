//! The platform as a whole command: tables read by another program, killed and resumed, by shards; minds among users by rules.
//!
//! `POLITY_PLATFORM=100000 cargo test --release -p polity --test platform` does the same with so many people.

#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

mod harness;

use harness::{arg, assert_same_tables, command, from_env, polity, scratch, tables, write_scenario};
use polity_driver::disk::RealDisk;
use polity_kernel::rng::{Draws, Stream};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What the post from outside says.
const WORDS: &str = "They want to close the library on Mill Street.";

/// People by rules on a graph, some of whom are minds: all of them write, react and follow.
fn society(agents: u32, minds: u32) -> Value {
    json!({
        "polity": 1, "name": "platform", "seed": 4, "rounds": 12, "agents": agents, "model": "sim/medium",
        "topology": {"kind": "barabasi-albert", "links": 4},
        "world": {"kind": "platform", "influence": true, "hours": vec![0.3; 24], "seeds": [{"author": 0, "stance": 0.5, "text": WORDS}]},
        "cohorts": [
            {"name": "minds", "count": {"fixed": minds}, "policy": {"kind": "mind", "memory": {"tokens": 0}}},
            {"name": "rules", "share": 1, "policy": {"kind": "user"}}
        ],
        "snapshot": {"rounds": 3}
    })
}

fn people() -> u32 {
    from_env("POLITY_PLATFORM", 2000)
}

fn ran(scenario: &Path, out: &Path, more: &[&str]) -> harness::Said {
    let said = polity(&[&["run", arg(scenario), "--out", arg(out)], more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    said
}

#[test]
fn killed_and_resumed_and_by_shards_it_is_the_same() {
    let folder = scratch("platform-kills");
    let scenario = write_scenario(&folder, &society(people(), 20));
    let whole = folder.join("whole");
    let began = Instant::now();
    let first = ran(&scenario, &whole, &["--shards", "1"]);
    let wall = began.elapsed();
    let expected = tables(&RealDisk, &whole);
    let four = folder.join("four");
    assert_eq!(ran(&scenario, &four, &["--shards", "4"]).text("digest"), first.text("digest"));
    assert_same_tables(&tables(&RealDisk, &four), &expected, "four shards");

    let mut draws = Draws::new(u64::from(people()), Stream::World, 0, 0);
    let killed = folder.join("killed");
    let mut kills = 0;
    for _ in 0..5 {
        let args = match killed.join("manifest.json").exists() {
            true => vec!["resume", arg(&killed)],
            false => vec!["run", arg(&scenario), "--out", arg(&killed)],
        };
        let mut child = command(&args).spawn().unwrap();
        std::thread::sleep(wall.mul_f64(0.05 + 0.15 * draws.unit()).max(Duration::from_millis(20)));
        child.kill().unwrap();
        kills += u32::from(child.wait().unwrap().code().is_none());
    }
    assert!(kills >= 2, "only {kills} of 5 kills found the run alive");
    let last = polity(&["resume", arg(&killed)]);
    assert_eq!((last.code, last.text("digest")), (Some(0), first.text("digest")), "{last:?}");
    assert_same_tables(&tables(&RealDisk, &killed), &expected, "killed and resumed");
    println!("{} people, {kills} kills: digest {}", people(), first.text("digest"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn polars_reads_the_tables_and_follows_the_influence() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let script =
        Command::new("bash").args(["scripts/python-clients.sh", "polars"]).current_dir(&root).output().unwrap();
    if script.status.code() == Some(75) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&script.stderr).trim());
        return;
    }
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let folder = scratch("platform-polars");
    let scenario = write_scenario(&folder, &society(people(), 20));
    let out = folder.join("run");
    let summary = ran(&scenario, &out, &[]);
    let said = Command::new(root.join("target/venv-polars/bin/python"))
        .arg(root.join("crates/polity/tests/clients/platform_tables.py"))
        .args([arg(&out), &people().to_string(), summary.text("digest")])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{printed}\n{}", String::from_utf8_lossy(&said.stderr));
    println!("{printed}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn minds_are_asked_only_when_they_look_and_do_one_thing() {
    let folder = scratch("platform-minds");
    let scenario = write_scenario(&folder, &society(300, 30));
    let out = folder.join("run");
    let said = ran(&scenario, &out, &[]);
    let rows = |table: &str| -> Vec<Value> {
        let mut export = Command::new(env!("CARGO_BIN_EXE_polity"));
        let said = export.args(["export", arg(&out), "--table", table, "--format", "jsonl"]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (calls, acts) = (rows("calls"), rows("acts"));
    // Three tenths of thirty minds, for twelve rounds.
    let calls_made = calls.len();
    assert!((60..=160).contains(&calls_made), "{calls_made} calls");
    assert_eq!(said.json["calls"].as_u64().unwrap() as usize, calls_made);
    for (agent, round) in calls.iter().map(|call| (&call["agent"], &call["round"])) {
        let done = acts.iter().filter(|act| act["agent"] == *agent && act["round"] == *round).count();
        assert!(done <= 1, "agent {agent} did {done} things in round {round}");
    }
    let of_minds: Vec<&Value> = acts.iter().filter(|act| act["agent"].as_u64().unwrap() < 30).collect();
    assert!(of_minds.len() > 20, "{} acts of minds", of_minds.len());
    assert!(of_minds.iter().any(|act| act["kind"] == "comment" && act["text"].is_string()));
    // Words are read: those of the post from outside, and what minds have written themselves.
    let prompts: Vec<String> = calls.iter().map(|call| call["prompt"].to_string()).collect();
    assert!(prompts.iter().any(|prompt| prompt.contains(WORDS)));
    let written = of_minds.iter().filter(|act| act["kind"] != "share").filter_map(|act| act["text"].as_str());
    let read =
        written.filter(|words| prompts.iter().any(|prompt| prompt.contains(&words[..words.len().min(60)]))).count();
    assert!(read > 0, "nobody has read what a mind wrote");
    println!("{calls_made} calls, {} acts of minds, of whose words {read} were read", of_minds.len());
    // Acts name what was in the feed: nothing was refused.
    let metrics = rows("metrics");
    let refused = metrics.iter().filter(|row| row["name"] == "refused").map(|row| row["value"].as_f64().unwrap());
    assert_eq!(refused.sum::<f64>(), 0.0);
    std::fs::remove_dir_all(&folder).unwrap();
}
