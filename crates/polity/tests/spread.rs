//! One society over several processes: real processes, killed and stopped at random, with the folder of one process as the result.
//!
//! The long form: `bash scripts/campaigns.sh spread-kills`. Over network namespaces: `bash scripts/spread.sh`.

use crate::harness::{
    Said, StopAfter, Tables, answers, arg, assert_asked_once, assert_same_tables, command, engine, events, from_env,
    polity, prepared, rules, said, scratch, tables, verify, write_scenario,
};
use polity_driver::drive::Stop;
use polity_driver::run::{Engine, RunStatus};
use polity_driver::spread::Spread;
use polity_kernel::ask::EffectId;
use polity_kernel::event::Event;
use polity_kernel::rng::{Draws, Stream};
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The exit code of a process that has lost another one.
const LOST: Option<i32> = Some(75);

/// Addresses on this machine whose ports are free now.
fn addresses(n: usize) -> String {
    let listeners: Vec<TcpListener> = (0..n).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<String> = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
    addresses.join(",")
}

/// A process of a run over several, which waits so many seconds for the others to start.
fn patient(scenario: &Path, out: &Path, addresses: &str, index: usize, patience: &str) -> Command {
    let index = index.to_string();
    let spread = ["run", arg(scenario), "--out", arg(out), "--spread", addresses, "--spread-index", &index];
    let mut command = command(&[&spread[..], &["--spread-silence", "4", "--spread-patience", patience]].concat());
    command.env_remove("POLITY_SPREAD_TOKEN");
    command
}

fn process(scenario: &Path, out: &Path, addresses: &str, index: usize) -> Command {
    patient(scenario, out, addresses, index, "120")
}

fn start(scenario: &Path, out: &Path, n: usize) -> Vec<Child> {
    let addresses = addresses(n);
    (0..n).map(|index| process(scenario, out, &addresses, index).spawn().unwrap()).collect()
}

fn people(agents: u32, rounds: u32) -> Value {
    json!({
        "name": "people", "seed": 9, "rounds": rounds, "agents": agents, "model": "sim/medium",
        "world": {"kind": "opinion"},
        "topology": {"kind": "ring", "neighbours": 4},
        "cohorts": [
            {"name": "before", "share": 0.45, "policy": {"kind": "degroot"}},
            // Some of them are in the first of two processes, most in the second.
            {"name": "minds", "share": 0.015, "policy": {"kind": "mind"}},
            {"name": "after", "share": 0.535, "policy": {"kind": "degroot"}},
        ],
        "record": {"messages": true},
        "metrics": [{"kind": "quantiles", "of": "opinion"}],
        "snapshot": {"rounds": 2},
    })
}

/// The same run in one process.
struct Whole {
    scenario: PathBuf,
    folder: PathBuf,
    digest: String,
    answers: u64,
    tables: Tables,
    wall: Duration,
}

impl Whole {
    fn new(name: &str, scenario: &Value) -> Whole {
        let folder = scratch(name);
        let scenario = write_scenario(&folder, scenario);
        let (began, out) = (Instant::now(), folder.join("whole"));
        let ran = polity(&["run", arg(&scenario), "--out", arg(&out)]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        Whole {
            scenario,
            digest: ran.text("digest").to_string(),
            answers: ran.json["answers"].as_u64().unwrap(),
            tables: tables(&RealDisk, &out),
            wall: began.elapsed(),
            folder,
        }
    }

    /// Checks a finished run against it.
    fn expect(&self, out: &Path, what: &str) {
        assert_same_tables(&tables(&RealDisk, out), &self.tables, what);
        let (events, torn) = events(Arc::new(RealDisk), out).unwrap();
        assert!(!torn, "{what}");
        assert_asked_once(&[], &events, what);
        assert_eq!(answers(&events).len() as u64, self.answers, "{what}");
        let verified = verify(out);
        assert_eq!(verified.code, Some(0), "{what}: {verified:?}");
    }
}

/// The answers in the logs of the processes that helped.
fn logged(out: &Path) -> Vec<EffectId> {
    let Ok(logs) = std::fs::read_dir(out.join("peers")) else { return Vec::new() };
    let read = |log: &Path| events(Arc::new(RealDisk), log).map_or(Vec::new(), |(events, _)| events);
    logs.flatten().flat_map(|log| answers(&read(&log.path())).into_keys().collect::<Vec<_>>()).collect()
}

#[test]
fn several_processes_write_the_folder_of_one() {
    let rules = Whole::new("spread-rules", &rules(20_000, 6));
    let people = Whole::new("spread-people", &people(9_000, 4));
    assert!(people.answers > 100);
    for (whole, n) in [(&rules, 2), (&rules, 3), (&people, 2)] {
        let what = format!("{} on {n} processes", whole.scenario.display());
        let out = whole.folder.join(format!("on-{n}"));
        let outputs: Vec<_> =
            start(&whole.scenario, &out, n).into_iter().map(|child| said(&child.wait_with_output().unwrap())).collect();
        for said in &outputs {
            assert_eq!((said.code, said.text("digest")), (Some(0), whole.digest.as_str()), "{what}: {said:?}");
        }
        assert!(outputs[1].notes.contains("process 0 writes the run"), "{what}: {:?}", outputs[1]);
        whole.expect(&out, &what);
        let replayed = polity(&["replay", arg(&out)]);
        assert_eq!((replayed.code, replayed.text("status")), (Some(0), "same"), "{what}: {replayed:?}");
        // Finished: the same commands only say so again.
        for child in start(&whole.scenario, &out, n) {
            let again = said(&child.wait_with_output().unwrap());
            assert_eq!((again.code, again.text("digest")), (Some(0), whole.digest.as_str()), "{what}: {again:?}");
        }
    }
    let logged = logged(&people.folder.join("on-2"));
    assert!(!logged.is_empty() && (logged.len() as u64) < people.answers, "each process asks for its own agents");
}

/// The rounds are complete, and the end is not recorded: what is written then is that of the agents of all processes.
#[test]
fn a_run_that_stopped_after_its_last_round_has_its_end_written() {
    let whole = Whole::new("spread-end", &rules(20_000, 6));
    let prepared = prepared(&rules(20_000, 6), &whole.folder);
    let out = whole.folder.join("ended");
    let start = |rounds: u32| -> Vec<RunStatus> {
        let one = |spread: Spread| {
            let stop = Stop::default();
            let mut watch = StopAfter(if spread.index() == 0 { rounds } else { u32::MAX }, stop.clone());
            let engine = Engine { spread: Some(spread), stop, ..engine(Arc::new(RealDisk), 1, None) };
            engine.run_spread(&prepared, &out, &mut watch).unwrap().status
        };
        std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> =
                Spread::threads(2).into_iter().map(|spread| scope.spawn(move || one(spread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    // All stop together, at the end of the round after the one in which process 0 was asked to.
    assert_eq!(start(5), [RunStatus::Stopped; 2]);
    let (events, _) = events(Arc::new(RealDisk), &out).unwrap();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Round { .. })).count(), 6);
    assert_eq!(start(u32::MAX), [RunStatus::Done; 2]);
    whole.expect(&out, "stopped after the last round");
}

/// Kills processes of a run at random moments, and starts it again with another number of them, until it ends.
fn survives(whole: &Whole, seed: u64, kills: u32) {
    let (mut killed, mut number, mut with_answers) = (0, 0, 0);
    while killed < kills {
        let mut draws = Draws::new(seed, Stream::Driver, number, 0);
        let out = whole.folder.join(format!("killed-{number}"));
        number += 1;
        let mut story = Vec::new();
        loop {
            let n = 1 + draws.below(3) as usize;
            let addresses = addresses(n);
            // If one is killed before it joins, the others wait for it in vain.
            let start = |index| patient(&whole.scenario, &out, &addresses, index, "15").spawn().unwrap();
            let mut children: Vec<Child> = (0..n).map(start).collect();
            let victim = (n > 1 && draws.chance(0.8)).then(|| draws.below(n as u64) as usize);
            story.push((n, victim));
            let what = format!("seed {seed}, run {number}, {story:?}");
            if let Some(victim) = victim {
                sleep(whole.wall.mul_f64(draws.unit() * 1.2));
                if children[victim].try_wait().unwrap().is_none() {
                    children[victim].kill().unwrap();
                    killed += 1;
                }
            }
            let outputs: Vec<_> = children.into_iter().map(|child| said(&child.wait_with_output().unwrap())).collect();
            for (index, said) in outputs.iter().enumerate().filter(|(index, _)| Some(*index) != victim) {
                assert!([Some(0), LOST].contains(&said.code), "{what}: process {index}: {said:?}");
                if said.code == LOST {
                    assert!(said.json["error"].as_str().unwrap().contains("start"), "{what}: {said:?}");
                }
            }
            let ids = logged(&out);
            assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{what}: an answer was asked for twice");
            with_answers += u32::from(!ids.is_empty());
            if outputs[0].code == Some(0) {
                assert_eq!(outputs[0].text("digest"), whole.digest, "{what}");
                whole.expect(&out, &what);
                break;
            }
        }
        std::fs::remove_dir_all(&out).unwrap();
    }
    eprintln!("{killed} kills in {number} runs; logs with answers at {with_answers} ends");
}

#[test]
fn rules_on_several_processes_survive_kills() {
    survives(&Whole::new("spread-kill-rules", &rules(20_000, 30)), 1, from_env("POLITY_SPREAD_KILLS", 4));
}

#[test]
fn minds_on_several_processes_survive_kills() {
    survives(&Whole::new("spread-kill-minds", &people(9_000, 8)), 2, from_env("POLITY_SPREAD_KILLS", 4));
}

/// Sends a signal to a process.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn a_stopped_process_is_lost_and_changes_nothing_when_it_wakes() {
    let folder = scratch("spread-stopped");
    // Long enough that it is not over when one process is stopped.
    let scenario = write_scenario(&folder, &rules(20_000, 4_000));
    let out = folder.join("run");
    let mut children = start(&scenario, &out, 3);
    let begun = Instant::now();
    // Its log is made when all have met.
    while !out.join("peers/2/journal").exists() && begun.elapsed() < Duration::from_secs(100) {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(300));
    let stopped = children.remove(2);
    signal(&stopped, "-STOP");
    let lost: Vec<_> = children.into_iter().map(|child| said(&child.wait_with_output().unwrap())).collect();
    let why = |said: &Said| said.json["error"].as_str().unwrap().to_string();
    for said in &lost {
        assert_eq!(said.code, LOST, "{said:?}");
        // Whoever notices first leaves, and the other may see that before it notices.
        assert!(why(said).contains("process 2") || why(said).contains("it has stopped"), "{said:?}");
    }
    let noticed = |said: &Said| why(said).contains("process 2") && why(said).contains("no sign of life for 4 s");
    assert!(lost.iter().any(noticed), "{lost:?}");
    // Awake again, it finds nobody, and leaves.
    signal(&stopped, "-CONT");
    let woken = said(&stopped.wait_with_output().unwrap());
    assert_eq!(woken.code, LOST, "{woken:?}");
    assert_eq!(verify(&out).code, Some(0));
}

#[test]
fn what_cannot_be_spread_says_so() {
    let folder = scratch("spread-refused");
    let out = folder.join("run");
    let refused = |scenario: &Value, more: &[&str]| {
        let scenario = write_scenario(&folder, scenario);
        let fixed = ["run", arg(&scenario), "--out", arg(&out), "--spread", "127.0.0.1:9,127.0.0.1:10"];
        let said = polity(&[&fixed[..], more].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(!out.exists());
        said.json["error"].as_str().unwrap().to_string()
    };
    let first = ["--spread-index", "0"];
    let schelling = json!({"name": "s", "agents": 100, "rounds": 2, "world": {"kind": "schelling"},
        "cohorts": [{"policy": {"kind": "relocate"}}]});
    assert!(refused(&schelling, &first).contains("in one piece"));
    assert!(refused(&rules(100, 2), &[]).contains("--spread-index"));
    assert!(refused(&rules(100, 2), &["--spread-index", "2"]).contains("process 2 has no address"));
    let too_few = ["--spread-index", "0", "--requests-per-minute", "1"];
    assert!(refused(&rules(100, 2), &too_few).contains("each needs at least 1; start at most 1"));
    let scenario = write_scenario(&folder, &rules(100, 2));
    let far = polity(&["run", arg(&scenario), "--out", arg(&out), "--spread", "198.51.100.1:7400,198.51.100.2:7400"]);
    assert!(far.json["error"].as_str().unwrap().contains("--spread-index"), "{far:?}");
    let no_token = polity(
        &[&["run", arg(&scenario), "--out", arg(&out), "--spread", "198.51.100.1:7400,198.51.100.2:7400"], &first[..]]
            .concat(),
    );
    assert!(no_token.json["error"].as_str().unwrap().contains("POLITY_SPREAD_TOKEN"), "{no_token:?}");
}

#[test]
fn another_token_another_run_and_another_build_are_turned_away() {
    let folder = scratch("spread-strangers");
    let scenario = write_scenario(&folder, &rules(9_000, 6));
    let other = folder.join("other.yaml");
    std::fs::write(&other, serde_json::to_string(&rules(9_000, 7)).unwrap()).unwrap();
    let (out, addresses) = (folder.join("run"), addresses(2));
    let with = |mut command: Command, token: &str| {
        command.env("POLITY_SPREAD_TOKEN", token);
        command
    };
    let first = with(process(&scenario, &out, &addresses, 0), "ours").spawn().unwrap();
    let refused = |command: &mut Command, why: &str| {
        let said = said(&command.output().unwrap());
        assert_eq!(said.code, LOST, "{said:?}");
        assert!(said.json["error"].as_str().unwrap().contains(why), "{said:?}");
    };
    refused(&mut with(process(&scenario, &out, &addresses, 1), "theirs"), "token");
    refused(&mut with(process(&other, &out, &addresses, 1), "ours"), "another run");
    // The same program with a byte more is another build.
    let build = folder.join("polity");
    std::fs::copy(env!("CARGO_BIN_EXE_polity"), &build).unwrap();
    let mut bytes = std::fs::OpenOptions::new().append(true).open(&build).unwrap();
    std::io::Write::write_all(&mut bytes, b"\n").unwrap();
    drop(bytes);
    let real = process(&scenario, &out, &addresses, 1);
    let mut altered = Command::new(&build);
    altered.args(real.get_args()).env("POLITY_SPREAD_TOKEN", "ours").env_remove("POLITY_OUT");
    refused(&mut altered, "another build");
    let second = with(process(&scenario, &out, &addresses, 1), "ours").spawn().unwrap();
    for child in [second, first] {
        let said = said(&child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}
