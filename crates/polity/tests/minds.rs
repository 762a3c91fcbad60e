//! Tests of minds in whole runs: on any number of threads and shards, on a provider with kills, interviewed, replayed offline.
//!
//! The long forms: `bash scripts/campaigns.sh minds-kills walls`.

use crate::harness::{
    answers, arg, assert_asked_once, assert_same_tables, contents, engine, events, from_env, run, scratch, tables,
};
use crate::mock_server::{CANARY, MockServer, command, holding, last_line, polity, root, text};
use polity_driver::run::{Prepared, prepare};
use polity_driver::source::Faults;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::{Node, Value as Tree};
use polity_store::disk::{Disk, RealDisk, SimDisk};
use polity_store::files::read_file;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn scenario(name: &str) -> PathBuf {
    root().join("scenarios").join(name)
}

fn prepared_file(path: &Path, edits: &[(&str, i64)]) -> Prepared {
    let (_, tree) = read_file(path).unwrap();
    let edits = edits.iter().map(|(key, n)| (key.to_string(), Node::built(Tree::Int(*n)))).collect();
    prepare(tree, "test.yaml", path.parent().unwrap(), "test", edits).unwrap()
}

#[test]
fn the_mixed_society_is_the_same_on_any_threads_shards_and_arrivals() {
    let prepared = prepared_file(&scenario("guess-average-mixed.yaml"), &[("agents", 9000), ("rounds", 4)]);
    let play = |threads: usize, shards: usize, faults: Option<u64>| {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let faults = faults.map(|seed| Faults { seed, failure: 0.2, repeat: 0.2 });
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let summary = pool.install(|| run(&engine(disk.clone(), shards, faults), &prepared, Path::new("run"))).unwrap();
        assert_eq!(summary.totals.answers, 4 * 450);
        (summary.digest, tables(disk.as_ref(), Path::new("run")))
    };
    let (digest, like) = play(1, 1, None);
    for (threads, shards, faults) in [(4, 1, None), (1, 3, None), (4, 3, None), (2, 3, Some(1)), (4, 1, Some(2))] {
        let what = format!("{threads} threads, {shards} shards, arrival {faults:?}");
        let (other, found) = play(threads, shards, faults);
        assert_eq!(other, digest, "{what}");
        assert_same_tables(&found, &like, &what);
    }
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn one_flag_names_the_model_of_all() {
    let folder = scratch("minds-model");
    for (name, extra) in [
        ("guess-average-minds.yaml", ["--agents", "5"]),
        ("guess-average-mixed.yaml", ["--rounds", "1"]),
        ("debate.yaml", ["-P", "items.count=1"]),
    ] {
        let file = scenario(name);
        let args =
            [&["run", arg(&file), "--model", "sim/large", "--out", name, "--no-report", "--json"], &extra[..]].concat();
        let ran = polity(&folder, &args, &[]);
        assert!(ran.status.success(), "{name}: {}", text(&ran.stderr));
        let written = manifest(&folder.join(name));
        assert_eq!(written["models"], serde_json::json!(["sim/large"]), "{name}");
        // The flags in the manifest make the same run.
        let edits: Vec<String> =
            written["edits"].as_array().unwrap().iter().map(|e| e.as_str().unwrap().into()).collect();
        let line = format!(
            "{} run {} {} --out again-{name} --no-report --json",
            env!("CARGO_BIN_EXE_polity"),
            arg(&file),
            edits.join(" ")
        );
        let again = std::process::Command::new("bash").args(["-c", &line]).current_dir(&folder).output().unwrap();
        assert_eq!(last_line(&again)["digest"], last_line(&ran)["digest"], "{line}: {}", text(&again.stderr));
    }
    let minds = scenario("guess-average-minds.yaml");
    let wrong = polity(&folder, &["run", arg(&minds), "--model", "sim/lrage"], &[]);
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("did you mean `sim/large`"), "{wrong:?}");
}

/// Every file below a folder, with what it holds.
#[test]
fn an_interview_leaves_the_run_as_it_is() {
    let folder = scratch("minds-interview");
    let mock_server = MockServer::start(&[]);
    let minds = scenario("guess-average-minds.yaml");
    let args =
        ["run", arg(&minds), "--model", "openai/medium", "--agents", "6", "--out", "run", "--no-report", "--json"];
    assert!(polity(&folder, &args, &mock_server.variables()).status.success());
    let before = contents(&folder.join("run"));
    let ask = |more: &[&str]| {
        let args = [&["interview", "run", "Why that number?", "--json"], more].concat();
        polity(&folder, &args, &mock_server.variables())
    };
    let calls = mock_server.count("answered");
    let said = ask(&["--agent", "2", "--agent", "4", "--at", "3", "--out", "said.jsonl"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert_eq!(mock_server.count("answered"), calls + 2, "an interview is two calls, and a run again is none");
    let lines: Vec<Value> = text(&said.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["agent"], &lines[0]["round"], &lines[0]["outcome"]), (&2.into(), &3.into(), &"reply".into()));
    assert!(lines[0]["tokens_in"].as_u64().unwrap() > 50, "{lines:?}");
    assert_eq!(std::fs::read_to_string(folder.join("said.jsonl")).unwrap(), text(&said.stdout));
    assert_eq!(contents(&folder.join("run")), before);
    // An agent's prompt contains what it has seen, so it grows later.
    let tokens = |at: &str| last_line(&ask(&["--agent", "2", "--at", at]))["tokens_in"].as_u64().unwrap();
    assert!(tokens("0") < tokens("5"));
    for (more, words) in [
        (vec!["--agent", "6"], "the agents are 0 to 5"),
        (vec!["--agent", "1", "--at", "6"], "rounds 0 to 5"),
        (vec!["--agent", "1", "--out", "run/said.jsonl"], "lies in the run's folder"),
    ] {
        let refused = ask(&more);
        assert_eq!(refused.status.code(), Some(2), "{more:?}");
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
    assert_eq!(contents(&folder.join("run")), before);
    assert_eq!(holding(&folder, CANARY), [] as [PathBuf; 0]);
}

#[test]
fn minds_on_a_provider_replay_with_the_cable_out_and_no_key_is_anywhere() {
    let folder = scratch("minds-wire");
    let mock_server = MockServer::start(&["--fault", "500=0.1", "--fault", "wrong-schema=0.1", "--latency-ms", "2"]);
    let minds = scenario("guess-average-minds.yaml");
    let args =
        ["run", arg(&minds), "--model", "openai/medium", "--agents", "20", "--rounds", "3", "--out", "run", "--json"];
    let ran = polity(&folder, &args, &mock_server.variables());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let summary = last_line(&ran);
    assert_eq!(summary["simulated"], false);
    assert!(summary["resolutions"]["again"].as_u64().unwrap() > 0, "{summary}");
    // Every call has a row, with its number of tries.
    let rows = calls(&folder, "run");
    assert_eq!(rows.len() as u64, summary["answers"].as_u64().unwrap());
    let retries: u64 = rows.iter().map(|row| row["retries"].as_u64().unwrap()).sum();
    assert!(retries > 0 && retries == summary["retries"].as_u64().unwrap(), "{summary}");
    assert!(rows.iter().all(|row| row["prompt"].as_str().unwrap().contains("Which number do you name?")));
    drop(mock_server);
    let replayed = polity(&folder, &["replay", "run", "--json"], &[]);
    assert_eq!(last_line(&replayed)["status"], "same", "{}", text(&replayed.stderr));
    assert_eq!(last_line(&replayed)["digest"], summary["digest"]);
    assert_eq!(last_line(&replayed)["resolutions"], summary["resolutions"]);
    assert_eq!(holding(&folder, CANARY), [] as [PathBuf; 0]);
    for output in [&ran, &replayed] {
        assert!(!text(&output.stdout).contains(CANARY) && !text(&output.stderr).contains(CANARY));
    }
}

/// The rows of a run's table `calls`.
fn calls(folder: &Path, run: &str) -> Vec<Value> {
    let rows = polity(folder, &["export", run, "--table", "calls", "--format", "jsonl"], &[]);
    text(&rows.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn agents_that_share_an_answer_pay_for_it_once_and_each_has_a_row() {
    let folder = scratch("minds-shared");
    let mock_server = MockServer::start(&["--latency-ms", "50"]);
    let minds = scenario("guess-average-minds.yaml");
    let flags = ["-P", "cohorts.people.policy.shared=true", "-P", "cohorts.people.policy.prompts.persona=A player."];
    let args = [
        &["run", arg(&minds), "--model", "openai/medium", "--agents", "30", "--rounds", "1", "--out", "run", "--json"],
        &flags[..],
    ]
    .concat();
    let ran = polity(&folder, &args, &mock_server.variables());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let summary = last_line(&ran);
    // All agents get the same prompt.
    assert_eq!((&summary["answers"], &summary["calls"], &summary["cache_hits"]), (&30.into(), &1.into(), &29.into()));
    assert_eq!((mock_server.count("answered"), &summary["tokens_in"]), (1, &mock_server.stats()["tokens_in"]));
    let rows = calls(&folder, "run");
    assert_eq!(rows.iter().filter(|row| row["shared"] == true).count(), 29);
    assert!(rows.iter().all(|row| row["tokens_in"] == summary["tokens_in"]));
}

fn until(process: &mut Child, patience: Duration, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() && began.elapsed() < patience && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_society_pays_for_no_recorded_answer_twice() {
    let folder = scratch("minds-kill");
    let minds = scenario("guess-average-minds.yaml");
    // All prompts differ, so that the mock server sees repeated questions.
    let unlike = "cohorts.people.policy.prompts.persona=You are number {{ agent }} in round {{ round }}.";
    let flags = |out: &'static str| {
        vec![
            "run",
            arg(&minds),
            "--model",
            "openai/medium",
            "-P",
            unlike,
            "--agents",
            "60",
            "--rounds",
            "5",
            "--out",
            out,
            "--no-report",
            "--json",
            "--max-connections",
            "8",
        ]
    };
    let mock_server = MockServer::start(&["--latency-ms", "20"]);
    let whole = polity(&folder, &flags("whole"), &mock_server.variables());
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let digest = last_line(&whole)["digest"].clone();
    assert_eq!((mock_server.count("answered"), mock_server.count("repeated")), (300, 0));
    let (kills, mut in_flight, mut lost) = (from_env("POLITY_MOCK_KILLS", 3), 0, 0);
    let mut draws = Draws::new(7, Stream::Driver, 0, 0);
    let mut killed = 0u32;
    while in_flight < u64::from(kills) {
        let mock_server = MockServer::start(&["--latency-ms", "20"]);
        let out = folder.join("run");
        let _ = std::fs::remove_dir_all(&out);
        let mut verb = flags("run");
        loop {
            // Some resumes are killed too; the last one of a run is not.
            let at = mock_server.count("answered") + 20 + draws.below(140);
            let mut process = command(&folder, &verb, &mock_server.variables())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            until(&mut process, Duration::from_secs(60), || mock_server.count("answered") >= at);
            std::thread::sleep(Duration::from_micros(draws.below(20_000)));
            let flying = mock_server.count("in_flight");
            if process.try_wait().unwrap().is_some() {
                break;
            }
            process.kill().unwrap();
            process.wait().unwrap();
            killed += 1;
            in_flight += u64::from(flying > 0);
            verb = vec!["resume", "run", "--no-report", "--json", "--max-connections", "8"];
        }
        // Requests in flight are lost with the process, as are answers of the mock server that it had not yet read.
        let before = events(Arc::new(RealDisk), &out).unwrap().0;
        let resumed = polity(&folder, &["resume", "run", "--no-report", "--json"], &mock_server.variables());
        if resumed.status.success() {
            assert_eq!(last_line(&resumed)["digest"], digest);
        }
        let after = events(Arc::new(RealDisk), &out).unwrap().0;
        assert_asked_once(&before, &after, "a resume");
        assert_eq!(answers(&after).len(), 300);
        assert_same_tables(&tables(&RealDisk, &out), &tables(&RealDisk, &folder.join("whole")), "killed");
        assert_eq!(mock_server.count("answered"), 300 + mock_server.count("repeated"));
        lost += mock_server.count("repeated");
    }
    println!(
        "{killed} kills, {in_flight} with calls in flight; {lost} answers were under way to the process when it died, and were had again"
    );
    // Each kill may lose answers between the mock server's count and the journal: at most one per connection.
    assert!(lost <= 8 * u64::from(killed));
}

#[test]
fn a_loop_happy_society_stops_at_its_wall_by_the_providers_count() {
    let folder = scratch("minds-wall");
    let minds = scenario("guess-average-minds.yaml");
    let (seeds, cents) = (from_env("POLITY_WALLS", 2), from_env("POLITY_WALL_CENTS", 5));
    let limit = f64::from(cents) / 100.0;
    let mut spent = Vec::new();
    for seed in 1..=seeds {
        let seed = seed.to_string();
        let mock_server = MockServer::start(&[
            "--seed",
            &seed,
            "--fault",
            "429=0.03",
            "--fault",
            "500=0.03",
            "--fault",
            "truncated-json=0.05",
        ]);
        // It would think, act and chat for ever.
        let questions = "cohorts.people.policy.questions=[{name: mood, ask: How are you?, response_format: text}, {name: sure, ask: Are you sure?, response_format: {choice: [yes, no]}}]";
        let cost = limit.to_string();
        let args = [
            "run",
            arg(&minds),
            "--model",
            "openai/large",
            "--price",
            "openai/large=2.5,10",
            "--max-cost",
            &cost,
            "--seed",
            &seed,
            "--rounds",
            "1000000",
            "--agents",
            "20",
            "-P",
            "cohorts.people.policy.think=first",
            "-P",
            questions,
            "-P",
            "settings.max_tokens=200",
            "--out",
            &seed,
            "--no-report",
            "--json",
        ];
        let ran = polity(&folder, &args, &mock_server.variables());
        assert_eq!(ran.status.code(), Some(7), "{}", text(&ran.stderr));
        let (told, counted) = (last_line(&ran), mock_server.stats()["cost_usd"].as_f64().unwrap());
        assert_eq!(told["status"], "budget");
        assert!(counted <= limit, "seed {seed}: {counted} of {limit} dollars by the mock server's count");
        // It comes near the hard limit by the run's own count, which counts an interrupted try at its maximum.
        let own = told["cost_usd"].as_f64().unwrap();
        assert!(counted <= own && own > 0.8 * limit, "seed {seed}: {own} and {counted} of {limit} dollars: {told}");
        spent.push(counted);
    }
    println!("{seeds} seeds, a wall of {limit} dollars: {spent:?} by the mock server's count");
}
