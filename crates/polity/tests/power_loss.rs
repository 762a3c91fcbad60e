//! Whole runs on a disk that loses power, at every operation that changes it, each in several possible states of the disk.
//!
//! The long form: `bash scripts/campaigns.sh power-loss`.

use crate::harness::{Scripted, replied, rules, run, scratch, tables, team, village};
use crate::harness::{
    Tables, assert_asked_once, assert_same_tables, curious, engine, events, from_env, in_order, oracles, platform,
    prepared, replay, resume,
};
use polity_driver::run::{Engine, Prepared, RunStatus};
use polity_driver::source::Faults;
use polity_driver::verify::verify;
use polity_kernel::ask::{Effect, Outcome, Value};
use polity_kernel::event::Event;
use polity_kernel::rng::{Draws, Stream};
use polity_models::models::{Provider, Providers};
use polity_store::disk::{Disk, SimDisk};
use polity_store::tables::ColumnData;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations beyond this many are sampled.
const ALL: u64 = 300;
/// Of those, the first and last ones that are always taken.
const ENDS: u64 = 50;

struct Case {
    prepared: Prepared,
    shards: usize,
    faults: Option<Faults>,
    digest: String,
    tables: Tables,
    operations: u64,
}

#[derive(Debug, Default)]
struct Tally {
    resumed: u64,
    begun_anew: u64,
    already_ended: u64,
}

fn out() -> &'static Path {
    Path::new("runs/one")
}

fn shared(disk: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// Returns what a process finds on a disk; an empty journal if there is none.
fn recorded(disk: &SimDisk) -> Vec<Event> {
    events(shared(disk), out()).map_or(Vec::new(), |(events, _)| events)
}

/// Returns what is wrong with the run on a disk.
fn faults(disk: &SimDisk) -> Vec<String> {
    let found = verify(&shared(disk), out(), &|_, _| Ok(Vec::new())).unwrap();
    let faults = found.iter().flat_map(|verified| &verified.faults);
    faults.map(|fault| format!("{}: {}", fault.path.display(), fault.what)).collect()
}

impl Case {
    fn new(prepared: Prepared, shards: usize, faults: Option<Faults>) -> Case {
        let disk = SimDisk::with_strict_names();
        let summary = run(&engine(shared(&disk), shards, faults), &prepared, out()).unwrap();
        assert_eq!(summary.status, RunStatus::Done);
        let tables = tables(&disk, out());
        let operations = disk.operations();
        Case { prepared, shards, faults, digest: summary.digest, tables, operations }
    }

    /// The same run on a disk that stops at operation `at`.
    fn crashed(&self, at: u64) -> SimDisk {
        let disk = SimDisk::with_strict_names();
        disk.crash_at(at);
        let result = run(&engine(shared(&disk), self.shards, self.faults), &self.prepared, out());
        if let Ok(summary) = result {
            assert_eq!(summary.digest, self.digest, "the run ended before operation {at}");
        }
        disk
    }

    /// Continues from a disk's contents to the end, and compares with the uninterrupted run.
    fn check(&self, disk: &SimDisk, what: &str, tally: &mut Tally) {
        let began = disk.exists(&out().join("manifest.json")).unwrap();
        let before = recorded(disk);
        // A crash is not reported as damage. A journal that is not closed is reported, since a cut cannot be ruled out.
        let over = matches!(before.last(), Some(Event::Ended { .. }));
        let mut faults = if began { self::faults(disk) } else { Vec::new() };
        faults.retain(|fault| !over || !fault.contains("its journal is not closed"));
        assert_eq!(faults, Vec::<String>::new(), "{what}");
        // Another number of shards than before: a resume must not depend on it.
        let engine = engine(shared(disk), 3 - self.shards.min(2), self.faults);
        let summary = match resume(&engine, out()) {
            Ok(summary) => {
                tally.resumed += 1;
                tally.already_ended += u64::from(matches!(before.last(), Some(Event::Ended { .. })));
                summary
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!began, "{what}: a run with a manifest was refused: {text}");
                assert!(text.contains("holds no run that began") || text.contains("does not exist"), "{what}: {text}");
                tally.begun_anew += 1;
                run(&engine, &self.prepared, out()).unwrap_or_else(|e| panic!("{what}: it cannot begin again: {e}"))
            }
        };
        assert_eq!((summary.status, summary.digest.as_str()), (RunStatus::Done, self.digest.as_str()), "{what}");
        assert_same_tables(&tables(disk, out()), &self.tables, what);
        let after = recorded(disk);
        assert_asked_once(if began { &before } else { &[] }, &after, what);
        let ended = after.iter().filter(|event| matches!(event, Event::Ended { .. })).count();
        assert_eq!(ended, 1, "{what}: it ends once");
        assert_eq!(self::faults(disk), Vec::<String>::new(), "{what}: what was mended is sound");
    }

    fn survives(&self, name: &str) {
        let n = self.operations;
        let cuts = from_env("POLITY_CUTS", 3) as usize;
        let step = n.saturating_sub(2 * ENDS).div_ceil(ALL - 2 * ENDS).max(1);
        let points: Vec<u64> = (0..=n).filter(|at| *at < ENDS || at + ENDS > n || at.is_multiple_of(step)).collect();
        let mut tally = Tally::default();
        for at in &points {
            let disk = self.crashed(*at);
            let killed = disk.after_kill();
            // A second crash during the recovery from the first.
            let mut draws = Draws::new(*at, Stream::Driver, 0, 0);
            if draws.chance(0.3) && killed.exists(&out().join("manifest.json")).unwrap() {
                let again = disk.after_kill();
                let second = draws.below(n.max(1));
                again.crash_at(second);
                let _ = resume(&engine(shared(&again), self.shards, self.faults), out());
                let what = format!("{name}: killed at {at}, then at {second}");
                self.check(&again.after_kill(), &what, &mut tally);
                for cut in again.cuts(2) {
                    self.check(&again.after_power_loss(&cut), &format!("{what}, {cut:?}"), &mut tally);
                }
            }
            self.check(&killed, &format!("{name}: killed at {at}"), &mut tally);
            for cut in disk.cuts(cuts.max(2)) {
                self.check(&disk.after_power_loss(&cut), &format!("{name}: power lost at {at}, {cut:?}"), &mut tally);
            }
        }
        eprintln!("{name}: {n} operations, {} crashes, {tally:?}", points.len());
        assert!(tally.resumed > 100 && tally.begun_anew > 10 && tally.already_ended > 0, "{tally:?} proves little");
    }
}

fn misbehaving() -> Option<Faults> {
    Some(Faults { seed: 9, failure: 0.2, repeat: 0.2 })
}

#[test]
fn a_rule_society() {
    let folder = scratch("power-rules");
    Case::new(prepared(&rules(40, 5), &folder), 1, None).survives("rules");
}

#[test]
fn births_deaths_and_an_early_end() {
    let folder = scratch("power-village");
    let case = Case::new(prepared(&village(40, 30), &folder), 2, None);
    let rounds = case.tables["rounds"][0].1.rows();
    assert!((3..30).contains(&rounds), "{rounds} rounds: the village ends early");
    assert!(case.tables["agents"][0].1.rows() > 40, "somebody is born");
    case.survives("village");
}

#[test]
fn a_society_that_asks() {
    let folder = scratch("power-oracles");
    Case::new(prepared(&oracles(12, 4, 0), &folder), 1, misbehaving()).survives("oracles");
}

#[test]
fn a_society_whose_answers_come_later() {
    let folder = scratch("power-lag");
    Case::new(prepared(&oracles(12, 5, 2), &folder), 1, misbehaving()).survives("oracles with a lag");
}

#[test]
fn a_society_that_asks_one_after_the_other() {
    let folder = scratch("power-order");
    Case::new(prepared(&in_order(8, 3), &folder), 1, misbehaving()).survives("in order");
}

#[test]
fn a_world_that_asks() {
    let folder = scratch("power-world");
    Case::new(prepared(&curious(8, 5), &folder), 1, misbehaving()).survives("a world that asks");
}

#[test]
fn a_society_at_its_wall() {
    let folder = scratch("power-budget");
    let mut scenario = oracles(12, 4, 0);
    // Rounds of nine calls: the second is decided in waves, the third is cut.
    scenario["budget"] =
        serde_json::json!({"cohorts": {"askers": {"calls": 24, "cost_usd": 0.004}}, "agent": {"calls": 5}});
    let case = Case::new(prepared(&scenario, &folder), 2, misbehaving());
    let denied = |event: &Event| matches!(event, Event::Answers(of) if of.iter().any(|a| matches!(a.outcome, Outcome::Denied { .. })));
    let whole = recorded(&case.crashed(u64::MAX));
    assert!(whole.iter().any(|event| matches!(event, Event::Wave(_))) && whole.iter().any(denied));
    case.survives("a society at its wall");
}

#[test]
fn a_team_whose_calls_are_decided_in_waves() {
    let folder = scratch("power-waves");
    let mut scenario = team(&folder, "council", 6, 3);
    scenario["budget"] = serde_json::json!({"cost_usd": 0.01});
    let case = Case::new(prepared(&scenario, &folder), 1, misbehaving());
    assert!(recorded(&case.crashed(u64::MAX)).iter().any(|event| matches!(event, Event::Wave(_))));
    case.survives("a team in waves");
}

#[test]
fn an_epidemic() {
    let folder = scratch("power-epidemic");
    let scenario = serde_json::json!({
        "name": "epidemic", "seed": 2, "rounds": 12, "agents": 80, "snapshot": {"rounds": 3},
        "topology": {"kind": "ring", "neighbours": 6},
        "world": {"kind": "epidemic", "rate": 0.3, "initial": 0.05, "latent": 2, "step": 1},
        "cohorts": [{"policy": {"kind": "isolate", "compliance": 0.5}}],
    });
    Case::new(prepared(&scenario, &folder), 1, None).survives("epidemic");
}

/// Posts leave memory while it runs, and snapshots refer to each other's files.
#[test]
fn a_platform() {
    let folder = scratch("power-platform");
    let case = Case::new(prepared(&platform(120, 14), &folder), 4, None);
    let disk = case.crashed(u64::MAX);
    let journal = out().join("journal");
    let files = disk.list(&journal).unwrap().into_iter().filter(|name| name.starts_with("snapshot-")).count();
    assert!(files > 2, "{files} files: two snapshots refer to older ones");
    let rows = |table: &str| case.tables[table][0].1.rows();
    assert!(rows("posts") > 2 * 60, "{} posts: most of them are no longer live", rows("posts"));
    case.survives("platform");
}

#[test]
fn a_team() {
    let folder = scratch("power-team");
    Case::new(prepared(&team(&folder, "council", 6, 2), &folder), 1, misbehaving()).survives("council");
}

/// A crashed run can be replayed up to the crash.
#[test]
fn a_crashed_run_can_be_replayed() {
    let folder = scratch("power-replay");
    let cases = [
        Case::new(prepared(&oracles(12, 5, 2), &folder), 1, misbehaving()),
        Case::new(prepared(&team(&folder, "council", 6, 3), &folder), 1, misbehaving()),
    ];
    let mut replayed = 0;
    for case in cases {
        for at in (0..=case.operations).step_by(7) {
            let disk = case.crashed(at).after_kill();
            let rounds = recorded(&disk).iter().filter(|event| matches!(event, Event::Round { .. })).count();
            if rounds == 0 || !disk.exists(&out().join("manifest.json")).unwrap() {
                continue;
            }
            let summary =
                replay(&engine(shared(&disk), 1, None), out()).unwrap_or_else(|e| panic!("killed at {at}: {e}"));
            assert_eq!((summary.status, summary.rounds as usize), (RunStatus::Same, rounds), "killed at {at}");
            replayed += 1;
        }
    }
    assert!(replayed > 20, "{replayed}");
}

/// A provider whose answers never repeat, like real ones: a lost answer cannot be recovered by asking again.
fn dice() -> Box<dyn Provider> {
    let count = AtomicU64::default();
    let answer = move |_: &Effect, _: u64| {
        let text = count.fetch_add(1, Ordering::SeqCst).to_string();
        replied(Value::Text(text.clone()), text)
    };
    Box::new(Scripted { name: "dice", answer })
}

#[test]
fn answers_that_can_not_be_had_again() {
    let folder = scratch("power-dice");
    let mut scenario = team(&folder, "council", 6, 3);
    scenario["model"] = "dice/one".into();
    let prepared = prepared(&scenario, &folder);
    let providers = Arc::new(Providers::of(vec![dice()]));
    let on = |disk: &SimDisk| Engine { providers: providers.clone(), ..engine(shared(disk), 1, misbehaving()) };
    let whole = SimDisk::with_strict_names();
    run(&on(&whole), &prepared, out()).unwrap();
    let mut resumed = 0;
    for at in 0..=whole.operations() {
        let disk = SimDisk::with_strict_names();
        disk.crash_at(at);
        let _ = run(&on(&disk), &prepared, out());
        let cuts = disk.cuts(from_env("POLITY_CUTS", 3).max(2) as usize);
        let lost = cuts.iter().map(|cut| disk.after_power_loss(cut));
        for disk in std::iter::once(disk.after_kill()).chain(lost) {
            if !disk.exists(&out().join("manifest.json")).unwrap() {
                continue;
            }
            let before = recorded(&disk);
            resume(&on(&disk), out()).unwrap_or_else(|e| panic!("crash at {at}: {e}"));
            resumed += 1;
            let after = recorded(&disk);
            assert_eq!(before, after[..before.len()], "crash at {at}: the record only grows");
            assert_asked_once(&before, &after, &format!("crash at {at}"));
            // The tables cover the rounds of the journal, and both follow from the answers.
            let digests: Vec<Option<String>> = after
                .iter()
                .filter_map(|event| match event {
                    Event::Round { sum, .. } => Some(Some(sum.to_string())),
                    _ => None,
                })
                .collect();
            let tables = tables(&disk, out());
            let column = tables["rounds"].iter().find(|(name, _)| name == "digest").map(|(_, values)| values);
            assert_eq!(column, Some(&ColumnData::Text(digests)), "crash at {at}");
            let replayed = replay(&on(&disk), out()).unwrap_or_else(|e| panic!("crash at {at}: {e}"));
            assert_eq!(replayed.status, RunStatus::Same, "crash at {at}");
        }
    }
    assert!(resumed > 100, "{resumed}");
}
