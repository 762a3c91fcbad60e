//! When turns begin: one after the other, also of agents that ask a model, what each observes, and that nothing else matters; all of a
//! round, so that calls run meanwhile.

use crate::harness;

use crate::harness::{
    StopAfter, answers, askers, assert_same_tables, engine, events, in_order, prepared, replay, resume, run, scratch,
    tables,
};
use polity_driver::drive::{Progress, Stop, Watch};
use polity_driver::results;
use polity_driver::run::Engine;
use polity_driver::run::RunStatus;
use polity_driver::source::Faults;
use polity_kernel::ask::Answer;
use polity_kernel::machine::Machine;
use polity_kernel::scenario::Assembled;
use polity_store::disk::{Disk, SimDisk};
use polity_store::tables::ColumnData;
use std::path::Path;
use std::sync::Arc;

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

#[test]
fn every_agent_sees_those_that_acted_before_it() {
    let folder = scratch("activation-order");
    let scenario = serde_json::json!({
        "name": "counters", "seed": 1, "rounds": 5, "agents": 50, "world": {"kind": "counter"},
        "cohorts": [{"policy": {"kind": "echo"}}],
    });
    let disk = disk();
    run(&engine(disk.clone(), 1, None), &prepared(&scenario, &folder), Path::new("run")).unwrap();
    let table = results::open(disk.as_ref(), Path::new("run")).unwrap().table("acts", &[], usize::MAX).unwrap();
    let column = |name: &str| table.iter().find(|(n, _)| n == name).map(|(_, data)| data).unwrap();
    let ColumnData::F64(values) = column("value") else { panic!("numbers") };
    let orders: Vec<Vec<u32>> =
        values.chunks(50).map(|round| round.iter().map(|value| value.unwrap() as u32).collect()).collect();
    assert_eq!(orders.len(), 5);
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>(), "each number of predecessors occurs once");
    }
    assert_ne!(orders[0], orders[1], "the order is drawn anew");
}

#[test]
fn askers_in_order_do_not_depend_on_shards_arrival_or_stops() {
    let folder = scratch("activation-askers");
    let prepared = prepared(&in_order(30, 4), &folder);
    let base = disk();
    let expected = run(&engine(base.clone(), 1, None), &prepared, Path::new("run")).unwrap();
    let asked = answers(&events(base.clone(), Path::new("run")).unwrap().0).len();
    // 18 askers, a third of whom ask twice.
    assert_eq!(asked, 4 * (18 + 6));
    let found = tables(base.as_ref(), Path::new("run"));
    for (shards, seed) in [(3, None), (1, Some(1)), (2, Some(2))] {
        let faults = seed.map(|seed| Faults { seed, failure: 0.3, repeat: 0.3 });
        let disk = disk();
        let got = run(&engine(disk.clone(), shards, faults), &prepared, Path::new("run")).unwrap();
        assert_eq!(got.digest, expected.digest, "{shards} shards, faults {seed:?}");
        assert_same_tables(&tables(disk.as_ref(), Path::new("run")), &found, "tables");
    }
    let again = replay(&engine(base, 3, None), Path::new("run")).unwrap();
    assert_eq!((again.status, &again.digest), (RunStatus::Same, &expected.digest));

    let disk = disk();
    let stop = Stop::default();
    let engine = Engine { stop: stop.clone(), ..harness::engine(disk.clone(), 2, None) };
    let stopped = engine.run(&prepared, Path::new("run"), &mut StopAfter(2, stop)).unwrap();
    assert_eq!(stopped.status, RunStatus::Stopped);
    let resumed = resume(&harness::engine(disk.clone(), 3, None), Path::new("run")).unwrap();
    assert_eq!(resumed.digest, expected.digest);
    assert_same_tables(&tables(disk.as_ref(), Path::new("run")), &found, "tables");
}

/// How many questions were open when the first answer came.
#[derive(Default)]
struct FirstHeard(Option<usize>);

impl Watch for FirstHeard {
    fn progress(&mut self, _: &Progress) {}

    fn heard(&mut self, _: &Answer, machine: &Assembled) {
        let Assembled::Society(society) = machine else { panic!("a society") };
        self.0.get_or_insert_with(|| society.open_effects().len());
    }
}

#[test]
fn answers_are_heard_while_turns_begin_unless_a_budget_is_to_decide_of_them_all() {
    let folder = scratch("activation-meanwhile");
    let mut scenario = askers("sim/medium", 20_000, 1, false);
    scenario.as_object_mut().unwrap().remove("prices");
    let heard = |scenario: &serde_json::Value| {
        let faults = Some(Faults { seed: 1, failure: 0.3, repeat: 0.3 });
        let mut first = FirstHeard::default();
        let summary =
            engine(disk(), 2, faults).run(&prepared(scenario, &folder), Path::new("run"), &mut first).unwrap();
        (first.0.unwrap(), summary.totals.answers, summary.digest)
    };
    let (open, answers, digest) = heard(&scenario);
    // Blocks are of 4,096.
    assert_eq!((open, answers), (4_096, 30_000));
    scenario["budget"] = serde_json::json!({"calls": 30_000});
    let (all, _, same) = heard(&scenario);
    assert_eq!((all, same), (20_000, digest));
}
