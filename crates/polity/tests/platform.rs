//! Tests of the platform as a whole command: tables read by another program, killed and resumed, by shards; minds among rule-based users.
//!
//! The long form: `bash scripts/campaigns.sh platform`.

use crate::harness;
use crate::mock_server;

use crate::harness::{
    StopAfter, arg, assert_asked_once, assert_same_tables, command, engine, events, from_env, polity, prepared, resume,
    run, scratch, tables, write_scenario,
};
use crate::mock_server::MockServer;
use polity_driver::drive::Stop;
use polity_driver::run::Engine;
use polity_driver::run::RunStatus;
use polity_kernel::rng::{Draws, Stream};
use polity_store::disk::{Disk, RealDisk, SimDisk};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The text of the post from outside.
const WORDS: &str = "They want to close the library on Mill Street.";

/// Rule-based people on a graph, some of whom are minds: all of them write, react and follow.
fn society(agents: u32, minds: u32) -> Value {
    json!({
        "polity": 2, "name": "platform", "seed": 4, "rounds": 12, "agents": agents, "model": "sim/medium",
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
    let mut scenario = society(people(), 20);
    // A post is live for two rounds or three: old ones leave memory while it runs.
    scenario["world"]["live"] = json!(people() / 4);
    let scenario = write_scenario(&folder, &scenario);
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
    let (calls, acts) = (rows(&out, "calls"), rows(&out, "acts"));
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
    // Minds read the words of the post from outside, and those of other minds.
    let prompts: Vec<String> = calls.iter().map(|call| call["prompt"].to_string()).collect();
    assert!(prompts.iter().any(|prompt| prompt.contains(WORDS)));
    let written = of_minds.iter().filter(|act| act["kind"] != "share").filter_map(|act| act["text"].as_str());
    let read =
        written.filter(|words| prompts.iter().any(|prompt| prompt.contains(&words[..words.len().min(60)]))).count();
    assert!(read > 0, "nobody has read what a mind wrote");
    println!("{calls_made} calls, {} acts of minds, of whose words {read} were read", of_minds.len());
    // Actions name posts in the feed: none was refused.
    let metrics = rows(&out, "metrics");
    let refused = metrics.iter().filter(|row| row["name"] == "refused").map(|row| row["value"].as_f64().unwrap());
    assert_eq!(refused.sum::<f64>(), 0.0);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The rows of a table of a run.
fn rows(run: &Path, table: &str) -> Vec<Value> {
    let mut export = Command::new(env!("CARGO_BIN_EXE_polity"));
    let said = export.args(["export", arg(run), "--table", table, "--format", "jsonl"]).output().unwrap();
    String::from_utf8(said.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the last line of a verb's output, with the mock server as its provider.
fn asked_of(mock_server: &MockServer, folder: &Path, args: &[&str]) -> Value {
    let ended = mock_server::polity(folder, &[args, &["--no-report", "--json"]].concat(), &mock_server.variables());
    assert!(ended.status.success(), "{}", mock_server::text(&ended.stderr));
    mock_server::last_line(&ended)
}

#[test]
fn words_have_vectors_by_a_model_which_is_asked_once_a_post() {
    let folder = scratch("platform-vectors");
    let mock_server = MockServer::start(&["--latency-ms", "5"]);
    let mut scenario = society(300, 30);
    scenario["model"] = json!("openai/medium");
    scenario["world"]["embedding"] = json!("openai/medium");
    let scenario = write_scenario(&folder, &scenario);
    let play = |verb: &[&str]| asked_of(&mock_server, &folder, verb);
    let first = play(&["run", arg(&scenario), "--out", "one"]);
    let one = folder.join("one");
    let posts: Vec<Value> = rows(&one, "posts").into_iter().filter(|post| post["text"].is_string()).collect();
    let asked: Vec<Value> = rows(&one, "calls").into_iter().filter(|call| call["purpose"] == "embedding").collect();
    // In the round after they were written, in the name of their authors; those of the last round have no readers.
    let mut written: Vec<(u64, u64)> = Vec::new();
    for post in &posts {
        let (author, round) = (post["author"].as_u64().unwrap(), post["round"].as_u64().unwrap());
        let of_seed = post["seed"] == 1 && post["depth"] == 0;
        written.extend((of_seed || round < 11).then_some((author, if of_seed { 0 } else { round + 1 })));
    }
    let mut calls: Vec<(u64, u64)> =
        asked.iter().map(|call| (call["agent"].as_u64().unwrap(), call["round"].as_u64().unwrap())).collect();
    written.sort_unstable();
    calls.sort_unstable();
    assert!(written.len() > 5, "{} posts with words", written.len());
    assert_eq!(calls, written);
    assert!(asked.iter().all(|call| call["outcome"] == "reply" && call["model"] == "openai/medium"));
    assert_eq!(mock_server.count("repeated"), 0);

    // By shards, with the provider gone, and killed.
    assert_eq!(play(&["run", arg(&scenario), "--out", "four", "--shards", "4"])["digest"], first["digest"]);
    let gone = mock_server::polity(&folder, &["replay", "one", "--json"], &[]);
    assert_eq!(mock_server::last_line(&gone)["digest"], first["digest"], "{}", mock_server::text(&gone.stderr));
    let mut killed = 0;
    for (i, share) in [0.2, 0.5, 0.4].into_iter().enumerate() {
        let verb = if i == 0 { vec!["run", arg(&scenario), "--out", "dead"] } else { vec!["resume", "dead"] };
        let before = mock_server.count("answered");
        let mut process = mock_server::command(&folder, &verb, &mock_server.variables());
        let mut process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let calls = (first["calls"].as_f64().unwrap() * share) as u64;
        while process.try_wait().unwrap().is_none() && mock_server.count("answered") < before + calls {
            std::thread::sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        killed += u32::from(process.wait().unwrap().code().is_none());
    }
    assert!(killed >= 2, "{killed} of 3 kills found it alive");
    assert_eq!(play(&["resume", "dead"])["digest"], first["digest"]);
    assert_same_tables(&tables(&RealDisk, &folder.join("dead")), &tables(&RealDisk, &one), "killed");

    // A model's vectors differ from hashes.
    let hashed = play(&["run", arg(&scenario), "--out", "hashed", "-P", "world.embedding=null"]);
    assert_ne!(hashed["digest"], first["digest"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn another_model_reads_all_live_posts_anew_whenever_it_comes() {
    let folder = scratch("platform-change");
    let mock_server = MockServer::start(&[]);
    let mut scenario = society(300, 30);
    scenario["model"] = json!("openai/medium");
    scenario["world"]["embedding"] = json!("openai/medium");
    scenario["changes"] =
        json!([{"at": 5, "set": {"world.embedding": "openai/large"}}, {"at": 9, "set": {"world.embedding": null}}]);
    let scenario = write_scenario(&folder, &scenario);
    let first = asked_of(&mock_server, &folder, &["run", arg(&scenario), "--out", "one"]);
    let of = |run: &str, model: &str, round: u64| {
        let calls = rows(&folder.join(run), "calls").into_iter().filter(|call| call["purpose"] == "embedding");
        calls.filter(|call| call["model"] == model && call["round"] == round).count()
    };
    let written = |before: u64| {
        let posts = rows(&folder.join("one"), "posts").into_iter().filter(|post| post["text"].is_string());
        posts.filter(|post| post["round"].as_u64().unwrap() < before).count()
    };
    assert_eq!((of("one", "openai/medium", 5), of("one", "openai/large", 5)), (0, written(5)));
    assert!(of("one", "openai/large", 5) > 3);
    assert_eq!(
        (9..12).map(|round| of("one", "openai/large", round) + of("one", "openai/medium", round)).sum::<usize>(),
        0
    );
    let four = asked_of(&mock_server, &folder, &["run", arg(&scenario), "--out", "four", "--shards", "4"]);
    assert_eq!(four["digest"], first["digest"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_run_whose_model_of_vectors_changes_goes_on_from_every_border() {
    let folder = scratch("platform-borders");
    let mut scenario = society(300, 30);
    scenario["snapshot"] = json!({"rounds": 1});
    scenario["world"]["embedding"] = json!("sim/medium");
    scenario["changes"] =
        json!([{"at": 5, "set": {"world.embedding": "sim/large"}}, {"at": 9, "set": {"world.embedding": null}}]);
    let prepared = prepared(&scenario, &folder);
    let whole: Arc<dyn Disk> = Arc::new(SimDisk::default());
    let expected = run(&engine(whole.clone(), 1, None), &prepared, Path::new("run")).unwrap();
    for rounds in 4..=10 {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let stop = Stop::default();
        let first = Engine { stop: stop.clone(), ..engine(disk.clone(), 2, None) };
        let stopped = first.run(&prepared, Path::new("run"), &mut StopAfter(rounds, stop)).unwrap();
        assert_eq!((stopped.status, stopped.rounds), (RunStatus::Stopped, rounds));
        let before = events(disk.clone(), Path::new("run")).unwrap().0;
        let resumed = resume(&engine(disk.clone(), 1, None), Path::new("run")).unwrap();
        assert_eq!(resumed.digest, expected.digest, "stopped after {rounds}");
        assert_asked_once(&before, &events(disk.clone(), Path::new("run")).unwrap().0, "a resume");
        assert_same_tables(
            &tables(disk.as_ref(), Path::new("run")),
            &tables(whole.as_ref(), Path::new("run")),
            "tables",
        );
    }
}

#[test]
fn vectors_are_never_asked_for_in_batches() {
    let folder = scratch("platform-batches");
    let mock_server = MockServer::start(&[]);
    let mut scenario = society(100, 10);
    scenario["rounds"] = json!(4);
    scenario["model"] = json!("openai/medium");
    let plain = write_scenario(&folder, &scenario);
    let play = |file: &Path, out: &str, more: &[&str]| {
        let mut command = mock_server::command(
            &folder,
            &["run", arg(file), "--out", out, "--no-report", "--json"],
            &mock_server.variables(),
        );
        let ended = command.args(more).env("POLITY_BATCH_PAUSE_MS", "5").output().unwrap();
        assert!(ended.status.success(), "{}", mock_server::text(&ended.stderr));
        mock_server::last_line(&ended)
    };
    for (embedding, sends) in [("openai/large", true), ("openai/medium", false)] {
        let set = format!("world.embedding={embedding}");
        let name = embedding.replace('/', "-");
        let alone = play(&plain, &format!("alone-{name}"), &["-P", &set]);
        let batched = play(&plain, &format!("batched-{name}"), &["-P", &set, "--batch"]);
        assert_eq!(batched["digest"], alone["digest"], "{embedding}");
        let sent = folder.join(format!("batched-{name}")).join("batches").exists();
        assert_eq!(sent, sends, "{embedding}");
        let calls = rows(&folder.join(format!("batched-{name}")), "calls");
        let vectors = calls.iter().filter(|call| call["purpose"] == "embedding");
        assert!(vectors.clone().count() > 0 && vectors.clone().all(|call| call["outcome"] == "reply"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn models_that_make_no_vectors_are_refused_before_the_run() {
    let folder = scratch("platform-refused");
    let scenario = write_scenario(&folder, &society(20, 2));
    for (model, words) in [
        ("human/ann", "makes no embeddings"),
        ("tool/python", "makes no embeddings"),
        ("anthropic/claude-haiku-4-5", "openai/text-embedding-3-small"),
        ("ann", "provider/model"),
        ("sim/none", "there is no model"),
    ] {
        let set = format!("world.embedding={model}");
        let args = ["run", arg(&scenario), "--out", "run", "-P", &set];
        let refused = mock_server::polity(&folder, &args, &[("ANTHROPIC_API_KEY", mock_server::CANARY)]);
        let said = mock_server::text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(words), "{model}: {said}");
        assert!(!folder.join("run").exists(), "{model}");
    }
    let both = ["run", arg(&scenario), "-P", "world.embedding=sim/medium", "-P", "world.wording=0"];
    let refused = mock_server::text(&mock_server::polity(&folder, &both, &[]).stderr);
    assert!(refused.contains("have no effect"), "{refused}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn without_vectors_words_are_hashed() {
    let folder = scratch("platform-none");
    // Rules alone, and posts from outside: all questions are for vectors.
    let mut scenario = society(300, 0);
    scenario["cohorts"] = json!([{"policy": {"kind": "user"}}]);
    let seed =
        |i: u32| json!({"author": i, "at": i, "stance": 0.2, "text": format!("{WORDS} I say it for the {i}th time.")});
    scenario["world"]["seeds"] = (0..8).map(seed).collect();
    ran(&write_scenario(&folder, &scenario), &folder.join("plain"), &[]);
    scenario["world"]["embedding"] = json!("openai/medium");
    // It answers, but never with a vector.
    let mock_server = MockServer::start(&["--fault", "wrong-schema=1"]);
    let scenario = write_scenario(&folder, &scenario);
    let said = asked_of(&mock_server, &folder, &["run", arg(&scenario), "--out", "none"]);
    assert_eq!(said["calls"], json!(8));
    // The state also holds the model's name, so digests differ; everybody's actions are the same.
    for table in ["acts", "posts", "metrics"] {
        assert_eq!(rows(&folder.join("none"), table), rows(&folder.join("plain"), table), "{table}");
    }
    let calls = rows(&folder.join("none"), "calls");
    assert!(calls.iter().all(|call| call["outcome"] == "invalid" && call["resolution"] == "default"), "{calls:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
