//! Worlds that ask: before agents observe, in the name of agents, with retries; by threads, shards, arrival, stops, limits and deaths.

use crate::harness::{
    StopAfter, answers, assert_asked_once, assert_same_tables, curious, engine, events, prepared, replay, resume, run,
    scratch, tables,
};
use polity_driver::drive::Stop;
use polity_driver::run::Engine;
use polity_driver::run::RunStatus;
use polity_driver::source::Faults;
use polity_kernel::ask::{Asker, EffectId, Outcome, ResponseFormat, Value};
use polity_store::disk::{Disk, SimDisk};
use polity_store::tables::ColumnData;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const OUT: &str = "run";

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

#[test]
fn what_a_world_is_told_does_not_depend_on_threads_shards_or_arrival() {
    let folder = scratch("inquiry");
    // In two blocks, so that the work can be split between shards.
    let prepared = prepared(&curious(5000, 3), &folder);
    let base = disk();
    let expected = run(&engine(base.clone(), 1, None), &prepared, Path::new(OUT)).unwrap();
    let found = tables(base.as_ref(), Path::new(OUT));
    for (threads, shards, seed) in [(4, 1, None), (1, 2, Some(1)), (3, 2, Some(2))] {
        let faults = seed.map(|seed| Faults { seed, failure: 0.3, repeat: 0.3 });
        let disk = disk();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let got = pool.install(|| run(&engine(disk.clone(), shards, faults), &prepared, Path::new(OUT))).unwrap();
        assert_eq!(got.digest, expected.digest, "{threads} threads, {shards} shards, faults {seed:?}");
        assert_same_tables(&tables(disk.as_ref(), Path::new(OUT)), &found, "tables");
    }
    let again = replay(&engine(base, 2, None), Path::new(OUT)).unwrap();
    assert_eq!((again.status, &again.digest), (RunStatus::Same, &expected.digest));
}

#[test]
fn a_world_asks_in_the_names_of_agents_before_they_look() {
    let folder = scratch("inquiry-names");
    let disk = disk();
    let summary = run(&engine(disk.clone(), 1, None), &prepared(&curious(20, 5), &folder), Path::new(OUT)).unwrap();
    let heard = answers(&events(disk.clone(), Path::new(OUT)).unwrap().0);
    let (of_world, of_agents): (Vec<_>, Vec<_>) = heard.iter().partition(|(id, _)| id.asker == Asker::World);
    assert_eq!(summary.totals.answers, heard.len() as u64);
    // Eight askers, of whom three ask twice, in every round; the world in all but the fourth.
    assert_eq!(of_agents.len(), 5 * (8 + 3));
    for round in [0, 1, 2, 4] {
        let of_round = || of_world.iter().filter(|(id, _)| id.round == round);
        for who in (0..20).step_by(2) {
            let n = |n: u32| {
                of_round().any(|(id, _)| **id == EffectId { item: 0, round, actor: who, asker: Asker::World, n })
            };
            assert!(n(0) && (who > 0 || n(1)), "round {round}, agent {who}");
        }
        let vectors =
            of_round().filter(|(_, all)| all.last().unwrap().request.response_format == ResponseFormat::Vector);
        let vector =
            |outcome: &Outcome| matches!(outcome, Outcome::Reply { value: Value::Vector(v), .. } if v.len() == 256);
        assert!(vectors.map(|(_, all)| vector(&all.last().unwrap().outcome)).eq([true]), "round {round}");
    }
    assert!(of_world.iter().all(|(id, _)| id.round != 3));
}

#[test]
fn a_wall_denies_a_world_and_its_defaults_hold() {
    let folder = scratch("inquiry-wall");
    let mut scenario = curious(20, 5);
    scenario["budget"] = json!({"calls": 15});
    let play = |shards: usize, faults: Option<Faults>| {
        let disk = disk();
        let summary =
            run(&engine(disk.clone(), shards, faults), &prepared(&scenario, &folder), Path::new(OUT)).unwrap();
        assert_eq!(summary.status, RunStatus::Budget);
        (
            summary.digest,
            answers(&events(disk.clone(), Path::new(OUT)).unwrap().0),
            tables(disk.as_ref(), Path::new(OUT)),
        )
    };
    // The first round asks 11 for the world and 11 for agents: four of these, and the second round's.
    let (digest, heard, found) = play(1, None);
    let denied = |id: &EffectId| matches!(heard[id].last().unwrap().outcome, Outcome::Denied { .. });
    let of = |round: u32, of_world: bool| {
        heard.keys().filter(move |id| id.round == round && (id.asker == Asker::World) == of_world)
    };
    assert_eq!((of(0, true).filter(|id| denied(id)).count(), of(0, true).count()), (0, 11));
    assert!(of(0, false).any(denied));
    let (other, _, same) = play(1, Some(Faults { seed: 3, failure: 0.3, repeat: 0.3 }));
    assert_eq!(other, digest);
    assert_same_tables(&same, &found, "arrival");
    // With less, the world itself is denied, and agents see the declared default: those that repeat what they see repeat that.
    scenario["budget"] = json!({"calls": 5});
    let disk = disk();
    run(&engine(disk.clone(), 1, None), &prepared(&scenario, &folder), Path::new(OUT)).unwrap();
    let heard = answers(&events(disk.clone(), Path::new(OUT)).unwrap().0);
    let of_world = heard.iter().filter(|(id, _)| id.asker == Asker::World);
    let (denied, had): (Vec<_>, Vec<_>) =
        of_world.partition(|(_, all)| matches!(all.last().unwrap().outcome, Outcome::Denied { .. }));
    assert_eq!((denied.len(), had.len()), (6, 5));
    let tables = tables(disk.as_ref(), Path::new(OUT));
    let column = |name: &str| &tables["acts"].iter().find(|(column, _)| column == name).unwrap().1;
    let (ColumnData::U32(agents), ColumnData::F64(values)) = (column("agent"), column("value")) else {
        panic!("numbers")
    };
    // Agents from 8 on are echoes.
    for (id, _) in denied.iter().filter(|(id, _)| id.actor >= 8) {
        let place = agents.iter().position(|agent| *agent == Some(id.actor)).unwrap();
        assert_eq!(values[place], Some(0.5), "agent {}", id.actor);
    }
    assert!(denied.iter().any(|(id, _)| id.actor >= 8));
}

#[test]
fn a_world_that_is_stopped_goes_on_and_asks_nothing_twice() {
    let folder = scratch("inquiry-stop");
    let prepared = prepared(&curious(30, 6), &folder);
    let whole = disk();
    let expected = run(&engine(whole.clone(), 1, None), &prepared, Path::new(OUT)).unwrap();
    let disk = disk();
    let stop = Stop::default();
    let first = Engine { stop: stop.clone(), ..engine(disk.clone(), 2, None) };
    let stopped = first.run(&prepared, Path::new(OUT), &mut StopAfter(2, stop)).unwrap();
    assert_eq!(stopped.status, RunStatus::Stopped);
    let before = events(disk.clone(), Path::new(OUT)).unwrap().0;
    let resumed = resume(&engine(disk.clone(), 3, None), Path::new(OUT)).unwrap();
    assert_eq!(resumed.digest, expected.digest);
    assert_asked_once(&before, &events(disk.clone(), Path::new(OUT)).unwrap().0, "a resume");
    assert_same_tables(&tables(disk.as_ref(), Path::new(OUT)), &tables(whole.as_ref(), Path::new(OUT)), "tables");
}

#[test]
fn the_first_questions_are_those_of_agents_in_the_first_round() {
    let folder = scratch("inquiry-first");
    let first =
        |scenario: &serde_json::Value| engine(disk(), 1, None).first_questions(&prepared(scenario, &folder)).unwrap();
    let asked = first(&curious(20, 5));
    assert_eq!(asked.len(), 8);
    assert!(asked.iter().all(|effect| effect.id.round == 0 && effect.id.asker != Asker::World));
    // Nobody is active in the first round, so nobody is asked.
    let mut hours = vec![1.0; 24];
    hours[8] = 0.0;
    let asleep = json!({
        "name": "asleep", "seed": 1, "rounds": 3, "agents": 5, "model": "sim/medium",
        "world": {"kind": "platform", "hours": hours}, "cohorts": [{"policy": {"kind": "mind"}}],
    });
    assert_eq!(first(&asleep), []);
}

#[test]
fn answers_that_come_later_are_refused() {
    let folder = scratch("inquiry-lag");
    let mut scenario = curious(10, 3);
    scenario["answers"] = json!({"lag": 1});
    let refused = run(&engine(disk(), 1, None), &prepared(&scenario, &folder), Path::new(OUT)).unwrap_err();
    let shown = format!("{refused:?}");
    assert!(shown.contains("the world asks a model itself") && shown.contains("answers: wait"), "{shown}");
}
