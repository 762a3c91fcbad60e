//! The command is killed at random moments, again and again, and resumed: the result must not show it.
//!
//! The long form: `bash scripts/campaigns.sh kills`.

use crate::harness;

use crate::harness::{
    Tables, arg, assert_asked_once, assert_same_tables, command, events, from_env, platform, polity, rules, said,
    scratch,
};
use crate::harness::{tables, team, write_scenario};
use crate::hostile::{Hostile, When, act};
use polity_kernel::ask::EffectId;
use polity_kernel::event::Event;
use polity_kernel::rng::{Draws, Stream};
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// This long after its start.
    After(Duration),
    /// Once the journal has this length, in bytes.
    Journal(u64),
    /// Once the run folder has this many files.
    Files(usize),
}

/// The state of the run at each kill.
#[derive(Debug, Default)]
struct Tally {
    kills: u32,
    /// Nothing to resume yet.
    before_manifest: u32,
    /// No round complete yet.
    before_round_0: u32,
    during_rounds: u32,
    /// Of those during rounds or before round 0: with answers that no complete round has used.
    answers_in_flight: u32,
    /// Of those: with a snapshot to resume from.
    with_snapshot: u32,
    /// All rounds complete, the end not recorded.
    before_the_end: u32,
    /// The end was recorded, and the process still there or just gone.
    after_the_end: u32,
    /// With a torn end of the journal.
    torn: u32,
    /// Kills of a process that resumed.
    of_a_resume: u32,
    resumes: u32,
}

struct Case {
    name: &'static str,
    folder: PathBuf,
    scenario: PathBuf,
    digest: String,
    answers: u64,
    rounds: u32,
    tables: Tables,
    weights: BTreeMap<OsString, Vec<u8>>,
    wall: Duration,
    journal: u64,
    files: usize,
    /// The provider, unless the model is simulated in the process.
    provider: Option<Hostile>,
}

fn journal_len(run: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(run.join("journal")) else { return 0 };
    entries
        .flatten()
        .filter(|e| e.path().extension().is_some_and(|x| x == "journal"))
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum()
}

/// Returns what learners have learned: files by name.
fn weights(run: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let files = std::fs::read_dir(run.join("weights")).into_iter().flatten().map(Result::unwrap);
    files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect()
}

fn count_files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().map(|e| if e.path().is_dir() { count_files(&e.path()) } else { 1 }).sum()
}

/// Returns the journal of a killed process.
fn recorded(run: &Path) -> (Vec<Event>, bool) {
    match run.join("manifest.json").exists() {
        true => events(Arc::new(RealDisk), run).unwrap(),
        false => (Vec::new(), false),
    }
}

/// Creates the command and sets its provider.
fn asking(args: &[&str], provider: Option<&Hostile>) -> Command {
    let mut command = command(args);
    if let Some(provider) = provider {
        command.env("OPENAI_BASE_URL", provider.url()).env("OPENAI_API_KEY", "a-key-for-tests");
    }
    command
}

/// A provider that drops one in ten requests.
fn faulty() -> Option<Hostile> {
    let acts = ["reset", "close", "500", "503-now", "429-soon", "cut-in-the-middle", "truncated"].map(act).to_vec();
    Some(Hostile::start(acts, When::Drawn(0.1, 5), Duration::from_millis(3)))
}

impl Case {
    fn new(name: &'static str, scenario: &Value, folder: PathBuf) -> Case {
        Case::at(name, scenario, folder, None)
    }

    fn at(name: &'static str, scenario: &Value, folder: PathBuf, provider: Option<Hostile>) -> Case {
        let scenario = write_scenario(&folder, scenario);
        let whole = folder.join("whole");
        let began = Instant::now();
        let said = said(&asking(&["run", arg(&scenario), "--out", arg(&whole)], provider.as_ref()).output().unwrap());
        let wall = began.elapsed();
        assert_eq!(said.code, Some(0), "{said:?}");
        Case {
            name,
            digest: said.text("digest").to_string(),
            answers: said.json["answers"].as_u64().unwrap(),
            rounds: said.json["rounds"].as_u64().unwrap() as u32,
            tables: tables(&RealDisk, &whole),
            weights: weights(&whole),
            wall,
            journal: journal_len(&whole),
            files: count_files(&whole),
            scenario,
            folder,
            provider,
        }
    }

    fn moment(&self, draws: &mut Draws) -> Moment {
        match draws.below(3) {
            0 => Moment::After(self.wall.mul_f64(draws.unit() * 1.1)),
            1 => Moment::Journal(draws.below(self.journal + 1)),
            _ => Moment::Files(draws.below(self.files as u64 + 1) as usize),
        }
    }

    /// Returns the arguments that start or resume the run.
    fn next<'a>(&'a self, run: &'a Path) -> Vec<&'a str> {
        match run.join("manifest.json").exists() {
            true => vec!["resume", arg(run)],
            false => vec!["run", arg(&self.scenario), "--out", arg(run)],
        }
    }

    /// Starts a process, kills it at the moment, and returns its state.
    fn kill(&self, run: &Path, moment: Moment, tally: &mut Tally) -> Vec<Event> {
        let resumed = run.join("manifest.json").exists();
        let began = Instant::now();
        let mut child = asking(&self.next(run), self.provider.as_ref()).spawn().unwrap();
        let ended = loop {
            if child.try_wait().unwrap().is_some() {
                break true;
            }
            let reached = match moment {
                Moment::After(time) => began.elapsed() >= time,
                Moment::Journal(len) => journal_len(run) >= len,
                Moment::Files(n) => count_files(run) >= n,
            };
            if reached {
                break false;
            }
            sleep(Duration::from_micros(100));
        };
        // The process may have ended by itself.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let (left, torn) = recorded(run);
        tally.kills += 1;
        tally.torn += u32::from(torn);
        tally.of_a_resume += u32::from(resumed);
        let rounds = left.iter().filter(|event| matches!(event, Event::Round { .. })).count() as u32;
        let over = matches!(left.last(), Some(Event::Ended { .. }));
        if ended {
            assert!(over, "{}: it ended without an end: {:?}", self.name, said(&output));
        }
        if !run.join("manifest.json").exists() {
            tally.before_manifest += 1;
        } else if over {
            tally.after_the_end += 1;
        } else if rounds == self.rounds {
            tally.before_the_end += 1;
        } else {
            match rounds {
                0 => tally.before_round_0 += 1,
                _ => tally.during_rounds += 1,
            }
            let unused = |event: &Event| matches!(event, Event::Answers(of) if of.iter().any(|a| a.id.round >= rounds));
            tally.answers_in_flight += u32::from(left.iter().any(unused));
            tally.with_snapshot += u32::from(left.iter().any(|event| matches!(event, Event::Snapshot { .. })));
        }
        left
    }

    fn survives(&self, seed: u64) {
        let kills = from_env("POLITY_KILLS", if self.provider.is_some() { 6 } else { 20 });
        let mut tally = Tally::default();
        let mut number = 0;
        while tally.kills < kills {
            let mut draws = Draws::new(seed, Stream::Driver, number, 0);
            let run = self.folder.join(format!("killed-{number}"));
            number += 1;
            let mut before = Vec::new();
            let mut moments = Vec::new();
            while moments.is_empty() || draws.chance(0.4) {
                let moment = self.moment(&mut draws);
                moments.push(moment);
                let what = format!("{}, seed {seed}, run {number}, {moments:?}", self.name);
                let left = self.kill(&run, moment, &mut tally);
                assert_asked_once(&before, &left, &what);
                before = left;
            }
            let what = format!("{}, seed {seed}, run {number}, {moments:?}", self.name);
            if !run.join("manifest.json").exists() {
                let refused = polity(&["resume", arg(&run)]);
                assert_eq!(refused.code, Some(3), "{what}: {refused:?}");
            }
            let said = said(&asking(&self.next(&run), self.provider.as_ref()).output().unwrap());
            tally.resumes += 1;
            assert_eq!(said.code, Some(0), "{what}: {said:?}");
            assert_eq!(said.text("status"), "done", "{what}");
            assert_eq!(said.text("digest"), self.digest, "{what}");
            assert_eq!(said.json["answers"].as_u64(), Some(self.answers), "{what}: {said:?}");
            assert_same_tables(&tables(&RealDisk, &run), &self.tables, &what);
            assert!(weights(&run) == self.weights, "{what}: other weights");
            let (after, torn) = recorded(&run);
            assert!(!torn, "{what}");
            assert_asked_once(&before, &after, &what);
            if number % 5 == 1 {
                let replayed = polity(&["replay", arg(&run)]);
                assert_eq!((replayed.code, replayed.text("status")), (Some(0), "same"), "{what}: {replayed:?}");
                assert_eq!(replayed.text("digest"), self.digest, "{what}");
            }
            std::fs::remove_dir_all(&run).unwrap();
        }
        eprintln!("{}: {} runs, {:?} each, journal {} bytes, {tally:?}", self.name, number, self.wall, self.journal);
    }
}

#[test]
fn a_rule_society_survives_kills() {
    Case::new("rules", &rules(3000, 20), scratch("kill-rules")).survives(1);
}

/// Its old posts leave memory, and its snapshots refer to each other's files.
#[test]
fn a_platform_survives_kills() {
    Case::new("platform", &platform(1000, 40), scratch("kill-platform")).survives(3);
}

/// Networks, what they learn from, and their optimisers are part of the state.
#[test]
fn a_training_survives_kills() {
    let scenario = json!({
        "name": "training", "seed": 2, "rounds": 120, "agents": 24, "topology": {"kind": "none"},
        "world": {"kind": "spread"},
        "cohorts": [
            {"count": 12, "policy": {"kind": "mappo", "horizon": 10, "hidden": [16]}},
            {"count": 12, "policy": {"kind": "qmix", "hidden": [16]}},
        ],
        "metrics": [{"kind": "mean", "of": "episode-return", "by": "cohort"}],
        "snapshot": {"rounds": 7},
    });
    let case = Case::new("training", &scenario, scratch("kill-training"));
    assert_eq!(case.weights.len(), 2);
    case.survives(6);
}

#[test]
fn a_debate_survives_kills() {
    let folder = scratch("kill-debate");
    let mut scenario = team(&folder, "debate", 80, 8);
    // The first half of the items passes all rounds before the others begin: kills meet items ahead of the open round, and
    // rounds that complete one by one.
    scenario["max_concurrent"] = 40.into();
    let case = Case::new("debate", &scenario, folder);
    assert!(case.answers >= 1500, "{} answers are too few to be killed among", case.answers);
    let (events, _) = recorded(&case.folder.join("whole"));
    let ids: BTreeSet<EffectId> = harness::answers(&events).into_keys().collect();
    assert_eq!(ids.len() as u64, case.answers);
    case.survives(2);
}

#[test]
fn minds_at_a_faulty_provider_survive_kills() {
    let scenario = json!({
        "name": "minds", "seed": 4, "rounds": 4, "agents": 60, "model": "openai/medium",
        "world": {"kind": "guess-average"},
        "cohorts": [{"policy": {"kind": "mind", "max_retries": 2, "memory": {"tokens": 100}}}],
        "metrics": [{"kind": "mean", "of": "guess"}],
        "snapshot": {"rounds": 1},
    });
    Case::at("minds", &scenario, scratch("kill-minds"), faulty()).survives(4);
}

#[test]
fn a_debate_at_a_faulty_provider_survives_kills() {
    let folder = scratch("kill-debate-provider");
    let mut scenario = team(&folder, "debate", 20, 3);
    scenario["model"] = "openai/medium".into();
    Case::at("debate at a provider", &scenario, folder, faulty()).survives(5);
}
