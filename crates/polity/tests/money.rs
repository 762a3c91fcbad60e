//! Money and scheduling against a provider with its own counts: hard limits by its count, shared and cached answers, prices, outages.

use crate::harness;

use crate::harness::{arg, askers, command, engine, prepared, said, scratch, team, write_scenario};
use polity_driver::drive::Unwatched;
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::{Notes, Outside, Schedule};
use polity_kernel::scenario::Budget;
use polity_models::mock_server::{Faults, MockServer, Options};
use polity_models::models::Providers;
use polity_models::models::keys::Secret;
use polity_models::models::openai::{OpenAi, Settings};
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk, SimDisk};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MODEL: &str = "openai/medium";

fn evaluation(folder: &Path) -> Value {
    let mut scenario = team(folder, "debate", 6, 2);
    scenario["model"] = MODEL.into();
    scenario["settings"] = json!({"max_tokens": 400});
    scenario["prices"] = json!({MODEL: {"input": 0.15, "output": 0.6}});
    scenario
}

fn mock_server(faults: &[&str], seed: u64, latency_ms: u64) -> MockServer {
    let latency = Duration::from_millis(latency_ms);
    MockServer::start(Options { faults: Faults::read(faults).unwrap(), seed, latency, ..Options::default() }).unwrap()
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

fn at(url: &str, disk: &Arc<dyn Disk>, outside: Outside) -> Engine<'static> {
    let provider = OpenAi::new(url, Secret::new("a-key-for-tests")).unwrap();
    let provider = provider.with(Settings { timeout_ms: Some(700), ..Settings::default() });
    let providers = Arc::new(Providers::of(vec![Box::new(provider)]));
    Engine { providers, outside, ..engine(disk.clone(), 1, None) }
}

fn run(engine: &Engine<'_>, scenario: &Value, folder: &Path) -> Result<Summary, DriveError> {
    engine.run(&prepared(scenario, folder), Path::new("run"), &mut Unwatched)
}

/// Two servers for the same models; the one in use dies in the middle of a round.
#[test]
fn an_outage_of_one_of_two_servers_loses_no_turn() {
    let folder = scratch("money-failover");
    let (first, second) = (mock_server(&[], 1, 30), mock_server(&[], 1, 0));
    let places = [&first, &second].map(|mock_server| (mock_server.url(), Secret::new("a-key-for-tests")));
    let provider = OpenAi::among(places.into()).unwrap();
    let provider = provider.with(Settings { timeout_ms: Some(3000), ..Settings::default() });
    let providers = Arc::new(Providers::of(vec![Box::new(provider)]));
    let engine = Engine { providers, connections: 20, ..engine(disk(), 1, None) };
    let (summary, dead) = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&engine, &askers(MODEL, 300, 2, false), &folder).unwrap());
        while first.stats().answered < 60 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let counted = first.stats().answered;
        drop(first);
        (running.join().unwrap(), counted)
    });
    let calls = 2 * (300 + 150);
    assert_eq!((summary.status, summary.totals.calls, summary.totals.resolutions.fit), (RunStatus::Done, calls, calls));
    assert!(second.stats().answered >= calls - dead - 40, "{:?} after {dead}", second.stats());
    // The same numbers as from one server: the mock server's answers depend on the words alone.
    let alone = run(&at(&second.url(), &disk(), Outside::default()), &askers(MODEL, 300, 2, false), &folder).unwrap();
    assert_eq!(alone.digest, summary.digest);
}

/// A limit must hold by the count of the provider, who sends the bill.
#[test]
fn a_wall_holds_by_the_providers_own_count() {
    let folder = scratch("money-wall");
    let scenarios = [askers(MODEL, 12, 2, false), evaluation(&folder)];
    let whole: Vec<f64> = scenarios
        .iter()
        .map(|scenario| {
            let mock_server = mock_server(&[], 1, 0);
            let summary = run(&at(&mock_server.url(), &disk(), Outside::default()), scenario, &folder).unwrap();
            let stats = mock_server.stats();
            assert!((summary.totals.cost_usd - stats.cost_usd).abs() < 1e-9, "{} {stats:?}", summary.totals.cost_usd);
            stats.cost_usd
        })
        .collect();
    let one = |seed: u64, scenario: &Value, whole: f64| {
        let faults = ["429=0.1", "500=0.1", "cut-stream=0.15", "slow-drip=0.04", "hang=0.02", "truncated-json=0.05"];
        let mock_server = mock_server(if seed.is_multiple_of(4) { &[] } else { &faults }, seed, 1);
        let disk = disk();
        let mut scenario = scenario.clone();
        let limit = whole * (0.2 + 0.04 * seed as f64);
        scenario["budget"] = json!({"cost_usd": limit});
        let held = |summary: &Summary, limit: f64| {
            let seed = format!("{} {seed} ({} rounds)", scenario["name"], summary.rounds);
            let (theirs, ours) = (mock_server.stats().cost_usd, summary.totals.cost_usd);
            assert!(theirs <= limit * (1.0 + 1e-9), "seed {seed}: {theirs} of {limit} by the provider's count");
            assert!(ours <= limit * (1.0 + 1e-9), "seed {seed}: {ours} of {limit}");
            assert!(theirs <= ours * (1.0 + 1e-9), "seed {seed}: {theirs} there and {ours} here");
        };
        let engine = at(&mock_server.url(), &disk, Outside::default());
        match run(&engine, &scenario, &folder) {
            Ok(summary) => {
                held(&summary, limit);
                // And again after a resume: earlier charges are not forgotten.
                if summary.status == RunStatus::Budget && summary.rounds < 2 {
                    let more = limit * 1.3;
                    let budget = Budget { cost_usd: Some(more), ..Budget::default() };
                    let resumed = Engine { budget, ..engine }.resume(Path::new("run"), &mut Unwatched).unwrap();
                    held(&resumed, more);
                }
                u32::from(summary.status == RunStatus::Budget || summary.totals.denied > 0)
            }
            // A question failed five times in a row: spending is still within the limit.
            Err(DriveError::Lost(_)) => {
                assert!(mock_server.stats().cost_usd <= limit * (1.0 + 1e-9), "seed {seed}");
                0
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    };
    let stopped: u32 = std::thread::scope(|scope| {
        let one = &one;
        let runs = (0..20u64).flat_map(|seed| scenarios.iter().zip(&whole).map(move |(s, whole)| (seed, s, *whole)));
        let runs: Vec<_> = runs.map(|(seed, s, whole)| scope.spawn(move || one(seed, s, whole))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    assert!(stopped > 20, "the wall was met in {stopped} runs of 40");
}

#[test]
fn questions_of_the_same_words_are_asked_once_while_they_are_under_way() {
    let folder = scratch("money-shared");
    let mock_server = mock_server(&[], 1, 150);
    let summary =
        run(&at(&mock_server.url(), &disk(), Outside::default()), &askers(MODEL, 30, 3, true), &folder).unwrap();
    // In each round everybody asks the same, and then every other one the same again.
    assert_eq!((summary.totals.answers, summary.totals.calls, summary.totals.cache_hits), (3 * 45, 6, 3 * 45 - 6));
    let stats = mock_server.stats();
    assert_eq!((stats.calls, stats.repeated), (6, 0));
    assert!((stats.cost_usd - summary.totals.cost_usd).abs() < 1e-9, "what is shared costs once");
    // Separate questions get the same answers, and a budget counts all of them, so that denials do not depend on what was in flight.
    let mut scenario = askers(MODEL, 30, 3, true);
    scenario["budget"] = json!({"calls": 100});
    let digest = |connections| {
        let engine = Engine { connections, ..at(&mock_server.url(), &disk(), Outside::default()) };
        let summary = run(&engine, &scenario, &folder).unwrap();
        (summary.digest, summary.totals.answers, summary.totals.denied)
    };
    assert_eq!(digest(100), digest(1));
}

/// Experts for each question on three models, and an aggregator on a fourth.
fn experts(folder: &Path, window: u32) -> Value {
    let topics = ["math", "code", "knowledge"];
    let row = |i: usize| json!({"question": format!("What is {i} plus {i}?"), "answer": format!("{}", 2 * i), "topic": topics[i % 3]});
    let rows: String = (0..24).map(|i| format!("{}\n", row(i))).collect();
    std::fs::write(folder.join("questions.jsonl"), rows).unwrap();
    json!({
        "name": "experts", "seed": 3, "rounds": 1, "max_concurrent": window,
        "team": [
            {"model": "openai/mathematician"}, {"model": "openai/programmer"}, {"model": "openai/scholar"},
            {"model": "openai/medium", "role": "aggregator"},
        ],
        "method": {"kind": "symbolic-moe", "skills": "topic", "profiles": {
            "openai/mathematician": {"math": 3, "code": 2, "knowledge": 2},
            "openai/programmer": {"math": 2, "code": 3, "knowledge": 2},
            "openai/scholar": {"math": 2, "code": 2, "knowledge": 3},
        }},
        "items": {"file": "questions.jsonl", "answer": "answer", "topic": "topic"},
    })
}

/// By the count of a server that holds one model at a time and loads another when a request names it.
#[test]
fn one_model_at_a_time_loads_each_model_once_a_stage() {
    let folder = scratch("money-loads");
    let loads = |schedule: Schedule, connections: usize, window: u32| {
        let mock_server = mock_server(&[], 1, 4);
        let outside = Outside { schedule, ..Outside::default() };
        let engine = Engine { connections, ..at(&mock_server.url(), &disk(), outside) };
        let summary = run(&engine, &experts(&folder, window), &folder).unwrap();
        assert_eq!(summary.totals.calls, 24 * 4);
        (mock_server.stats().loads, summary.digest)
    };
    let (of_fifo, digest) = loads(Schedule::Fifo, 1, 1000);
    for connections in [1, 3, 40] {
        // Three models for all experts, then the aggregator's.
        assert_eq!(loads(Schedule::ByModel, connections, 1000), (4, digest.clone()), "{connections} connections");
    }
    assert!(of_fifo > 24, "without grouping models change all the time: {of_fifo} loads");
    // Eight questions at a time: a stage each.
    let (grouped, of_few) = loads(Schedule::ByModel, 8, 8);
    let (mixed, _) = loads(Schedule::Fifo, 8, 8);
    assert!(of_few == digest && grouped < mixed / 2, "{grouped} and {mixed} loads");
    println!("loads: {of_fifo} first come, first served; 4 by model; of eight at a time {mixed} and {grouped}");
}

#[test]
fn kept_answers_make_the_same_run_without_a_provider() {
    let folder = scratch("money-cache");
    let kept = folder.join("kept");
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let outside = || {
        let told = told.clone();
        let notes = Notes::to(move |text| told.lock().unwrap().push(text.to_owned()));
        Outside { cache: Some(kept.clone()), notes, ..Outside::default() }
    };
    for scenario in [askers(MODEL, 12, 2, false), evaluation(&folder)] {
        let _ = std::fs::remove_dir_all(&kept);
        let mock_server = mock_server(&[], 1, 0);
        let url = mock_server.url();
        let first = run(&at(&url, &disk(), outside()), &scenario, &folder).unwrap();
        assert_eq!((first.totals.calls, first.totals.cache_hits), (first.totals.answers, 0));
        // Another price, another budget: the answers are the same, and so are the denials.
        let again = run(&at(&url, &disk(), outside()), &scenario, &folder).unwrap();
        assert_eq!(again.digest, first.digest);
        assert_eq!((again.totals.calls, again.totals.cache_hits), (0, first.totals.answers));
        assert_eq!((again.totals.cost_usd, mock_server.stats().calls), (0.0, first.totals.calls));
        // A damaged entry is asked for again, reported, and repaired.
        let entries = || {
            let folders = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
            let files = folders.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()));
            let mut files: Vec<_> = files.collect();
            files.sort();
            files
        };
        let files = entries();
        assert_eq!(files.len() as u64, first.totals.calls, "one file an answer, nothing left over");
        let mut bytes = std::fs::read(&files[0]).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(&files[0], bytes).unwrap();
        std::fs::write(&files[1], "").unwrap();
        let mended = run(&at(&url, &disk(), outside()), &scenario, &folder).unwrap();
        assert_eq!((mended.totals.calls, &mended.digest), (2, &first.digest));
        assert!(told.lock().unwrap().iter().any(|note| note.contains("damaged")), "{told:?}");
        assert_eq!(entries(), files);
        // The provider is gone: with the cache nothing is missing, and a replay does not even need that.
        drop(mock_server);
        let last = disk();
        let without = run(&at(&url, &last, outside()), &scenario, &folder).unwrap();
        assert_eq!((without.totals.calls, &without.digest), (0, &first.digest));
        std::fs::remove_dir_all(&kept).unwrap();
        let replayed = at(&url, &last, Outside::default()).replay(Path::new("run"), &mut Unwatched).unwrap();
        assert_eq!(replayed.status, RunStatus::Same);
        for file in &files {
            let bytes = std::fs::read(file).unwrap_or_default();
            assert!(!bytes.windows(15).any(|part| part == b"a-key-for-tests"));
        }
    }
}

#[test]
fn simulated_models_neither_share_nor_keep_answers() {
    let folder = scratch("money-sim");
    let kept = folder.join("kept");
    let outside = Outside { cache: Some(kept.clone()), ..Outside::default() };
    let scenario = team(&folder, "council", 4, 2);
    let sim = Engine { outside, ..engine(disk(), 1, None) };
    let summary = harness::run(&sim, &prepared(&scenario, &folder), Path::new("run")).unwrap();
    assert_eq!((summary.totals.cache_hits, kept.exists()), (0, false));
}

#[test]
fn a_price_on_the_command_line_is_part_of_the_run() {
    let folder = scratch("money-price");
    let mock_server = mock_server(&[], 1, 0);
    let file = write_scenario(&folder, &{
        let mut scenario = evaluation(&folder);
        scenario.as_object_mut().unwrap().remove("prices");
        scenario["model"] = "openai/gpt-4.1-mini".into();
        scenario
    });
    let polity = |args: &[&str]| {
        let mut command = command(args);
        command.env("OPENAI_BASE_URL", mock_server.url()).env("OPENAI_API_KEY", "a-key-for-tests");
        said(&command.output().unwrap())
    };
    let out = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    // At an address that is not OpenAI's no price is known, and the message says what to set.
    let refused = polity(&["run", arg(&file), "--max-cost", "1", "--out", &out("refused")]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.notes.contains("--price openai/gpt-4.1-mini=0.4,1.6,0.1"), "{}", refused.notes);
    let price = "openai/gpt-4.1-mini=0.4,1.6";
    let ran = polity(&["run", arg(&file), "--max-cost", "1", "--price", price, "--out", &out("ran")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stats = mock_server.stats();
    let cost = (stats.tokens_in as f64 * 0.4 + stats.tokens_out as f64 * 1.6) / 1e6;
    assert!((ran.json["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{ran:?}");
    let manifest: Value = serde_json::from_slice(&std::fs::read(folder.join("ran/manifest.json")).unwrap()).unwrap();
    let price = json!({"openai/gpt-4.1-mini": {"input": 0.4, "output": 1.6, "cached": null}});
    assert_eq!(manifest["prices"], price);
    assert_eq!(manifest["scenario"]["prices"]["openai/gpt-4.1-mini"]["input"], 0.4);
    // These words of the command reproduce it.
    let words: Vec<String> = manifest["edits"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().into()).collect();
    let shell = format!(
        "{} run {} {} --out {} --json --no-report",
        env!("CARGO_BIN_EXE_polity"),
        arg(&file),
        words.join(" "),
        out("again")
    );
    let mut sh = std::process::Command::new("sh");
    sh.args(["-c", &shell]).env("OPENAI_BASE_URL", mock_server.url()).env("OPENAI_API_KEY", "a-key-for-tests");
    let again = said(&sh.output().unwrap());
    assert_eq!((again.code, again.text("digest")), (Some(0), ran.text("digest")), "{shell}: {again:?}");
    let second: Value = serde_json::from_slice(&std::fs::read(folder.join("again/manifest.json")).unwrap()).unwrap();
    assert_eq!((&second["prices"], &second["scenario"]), (&manifest["prices"], &manifest["scenario"]));
    // A run that began without a cache continues with one, and its earlier use is counted.
    let began = polity(&["run", arg(&file), "--max-calls", "10", "--out", &out("began")]);
    assert_eq!((began.code, &began.json["cost_usd"]), (Some(7), &Value::Null), "{began:?}");
    let price = ["--price", "openai/gpt-4.1-mini=0.4,1.6", "--max-calls", "1000", "--max-cost"];
    let little = polity(&[&["resume", &out("began")][..], &price, &["0.0001"]].concat());
    assert_eq!(little.code, Some(7), "{little:?}");
    let resumed = polity(&[&["resume", &out("began")][..], &price, &["1"]].concat());
    assert_eq!((resumed.code, resumed.text("digest")), (Some(0), ran.text("digest")), "{resumed:?}");
    // A fork takes one, too.
    let fork = polity(&["fork", &out("ran"), "--at", "1", "--price", "openai/gpt-4.1-mini=1,2", "--out", &out("fork")]);
    assert_eq!((fork.code, fork.text("digest")), (Some(0), ran.text("digest")), "{fork:?}");
    for wrong in
        ["openai/m", "openai/m=1", "openai/m=1,x", "openai/m=1,2,3,4", "m=1,2", "openai/m=-1,2", "openai/m=1,2,3"]
    {
        let said = polity(&["run", arg(&file), "--price", wrong, "--out", &out("wrong")]);
        assert!(said.code == Some(2) && !said.notes.is_empty(), "{wrong}: {said:?}");
    }
    let own =
        polity(&["run", arg(&file), "-P", "model=sim/medium", "--price", "sim/medium=1,2", "--out", &out("wrong")]);
    assert!(own.code == Some(2) && own.notes.contains("reports the cost of calls itself"), "{own:?}");
}

/// Returns the first note of a run, apart from that of its address, and its time; then the process is ended.
fn first_note(url: &str, folder: &Path, name: &str) -> (String, Duration) {
    let file = write_scenario(folder, &evaluation(folder));
    let mut command = command(&["run", arg(&file), "--out", folder.join(name).to_str().unwrap()]);
    command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "a-key-for-tests").stdout(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| !line.contains("uses the address")).unwrap_or_default();
    let took = began.elapsed();
    let _ = child.kill();
    let _ = child.wait();
    (line, took)
}

#[test]
fn the_cause_of_an_outage_is_told_soon_though_nobody_draws_a_bar() {
    let folder = scratch("money-outage");
    let closed = mock_server(&[], 1, 0).url();
    let (line, took) = first_note(&closed, &folder, "closed");
    assert!(line.contains("cannot be reached") && took < Duration::from_secs(5), "{took:?} {line}");
    for (fault, cause) in
        [("429", "limits the rate"), ("500", "status 500"), ("hang", "no news"), ("wrong-content-type", "web page")]
    {
        let mock_server = mock_server(&[&format!("{fault}=1")], 1, 0);
        let (line, took) = first_note(&mock_server.url(), &folder, fault);
        // A little more than five seconds, for slow machines.
        assert!(line.contains(cause) && took < Duration::from_secs(8), "{fault}: {took:?} {line}");
    }
}

#[test]
fn a_failing_cache_stops_no_run() {
    let folder = scratch("money-cache-fails");
    // A file is no folder.
    std::fs::write(folder.join("kept"), "x").unwrap();
    let mock_server = mock_server(&[], 1, 0);
    let outside = Outside { cache: Some(folder.join("kept")), ..Outside::default() };
    let summary = run(&at(&mock_server.url(), &disk(), outside), &askers(MODEL, 6, 1, false), &folder).unwrap();
    assert_eq!((summary.status, summary.totals.cache_hits), (RunStatus::Done, 0));
    assert!(RealDisk.exists(&folder.join("kept")).unwrap());
}
