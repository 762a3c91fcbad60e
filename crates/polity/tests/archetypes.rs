//! Archetypes in whole runs: the city of `scenarios/city.yaml` with fewer people and the platform of
//! `scenarios/platform-archetypes.yaml`, on threads, shards and arrivals, under a hard limit of calls, killed on a provider, forked.
//!
//! The long form: `bash scripts/campaigns.sh cohort-kills`.

use crate::harness::{
    answers, arg, assert_asked_once, assert_same_tables, engine, events, from_env, prepared, run, scratch, tables,
    village,
};
use crate::mock_server::{MockServer, command, last_line, polity, root, text};
use polity_driver::run::{Prepared, prepare};
use polity_driver::source::Faults;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tree::Node;
use polity_store::disk::{Disk, RealDisk, SimDisk};
use polity_store::files::read_file;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

fn shipped(file: &str, own: &[(&str, Value)], changes: &[(&str, Value)]) -> Prepared {
    let path = root().join("scenarios").join(file);
    let (_, tree) = read_file(&path).unwrap();
    let edits = own.iter().chain(changes).map(|(key, value)| ((*key).to_string(), Node::from_json(value))).collect();
    prepare(tree, "test.yaml", path.parent().unwrap(), "test", edits).unwrap()
}

/// The city with these changes; the epidemic starts at once.
fn city(changes: &[(&str, Value)]) -> Prepared {
    let own = [("world.initial", json!(0.01)), ("rounds", json!(5)), ("record", json!({}))];
    shipped("city.yaml", &own, changes)
}

/// The platform with these changes, in which people look at their feeds as often by night.
fn platform(changes: &[(&str, Value)]) -> Prepared {
    let own = [("world.hours", json!(vec![0.3; 24])), ("rounds", json!(6)), ("record", json!({}))];
    shipped("platform-archetypes.yaml", &own, changes)
}

/// Settings of a run: threads, shards, the seed of failures and repeats.
type Setting = (usize, usize, Option<u64>);

/// All settings give the same digest and tables; returns answers and denials.
fn the_same_everywhere(prepared: &Prepared, settings: &[Setting]) -> (u64, u64) {
    let play = |(threads, shards, faults): Setting| {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let faults = faults.map(|seed| Faults { seed, failure: 0.2, repeat: 0.2 });
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let summary = pool.install(|| run(&engine(disk.clone(), shards, faults), prepared, Path::new("run"))).unwrap();
        (summary, tables(disk.as_ref(), Path::new("run")))
    };
    let (like, found) = play((1, 1, None));
    for setting in settings {
        let (other, tables) = play(*setting);
        assert_eq!(other.digest, like.digest, "{setting:?}");
        assert_same_tables(&tables, &found, &format!("{setting:?}"));
    }
    (like.totals.answers, like.totals.denied)
}

#[test]
fn a_city_is_the_same_on_any_threads_shards_and_arrivals_and_asks_no_more_than_a_town() {
    let everywhere = [(4, 1, None), (1, 3, None), (4, 3, Some(1)), (2, 1, Some(2))];
    let faulty = ("model", json!("sim/faulty"));
    let (asked, denied) = the_same_everywhere(&city(&[("agents", json!(30_000)), faulty]), &everywhere);
    assert!(denied == 0 && asked > 5 * 50, "{asked}");
    // Without failures, the calls of a round are the non-empty groups.
    let calls = |agents: u32| the_same_everywhere(&city(&[("agents", json!(agents))]), &[]).0;
    assert_eq!(calls(60_000), calls(30_000));
}

#[test]
fn a_platform_is_the_same_on_any_threads_shards_and_arrivals_and_asks_for_groups() {
    let everywhere = [(4, 1, None), (1, 3, None), (4, 3, Some(1)), (2, 1, Some(2))];
    let changes = [("agents", json!(9000)), ("model", json!("sim/faulty"))];
    let (asked, denied) = the_same_everywhere(&platform(&changes), &everywhere);
    assert!(denied == 0 && asked > 6 * 6, "{asked}");
    // Without failures: three levels of a trait, two sides, six rounds.
    let calls = |agents: u32| the_same_everywhere(&platform(&[("agents", json!(agents))]), &[]).0;
    assert_eq!((calls(3000), calls(9000)), (36, 36));
}

#[test]
fn a_wall_of_calls_denies_the_same_groups_everywhere() {
    let prepared = city(&[("agents", json!(9000)), ("budget", json!({"cohorts": {"people": {"calls": 100}}}))]);
    let (asked, denied) = the_same_everywhere(&prepared, &[(4, 3, None), (1, 3, Some(3))]);
    assert!(asked == 100 && denied > 0, "{asked} asked, {denied} denied");
}

#[test]
fn sampled_minds_are_the_same_on_any_threads_shards_and_arrivals() {
    let policy = json!({"kind": "sampled", "share": 0.2, "refit": 2, "default": "no",
        "by": [{"column": "age"}, {"observation": "health", "bins": [2, 3]}]});
    // Without jobs only those whose health changes take a turn.
    let prepared = city(&[
        ("agents", json!(20_000)),
        ("cohorts", json!([{"policy": policy}])),
        ("model", json!("sim/faulty")),
        ("world.employment", Value::Null),
    ]);
    let (asked, _) = the_same_everywhere(&prepared, &[(4, 1, None), (1, 3, None), (4, 3, Some(1))]);
    assert!((200..2000).contains(&asked), "{asked}");
}

#[test]
fn councils_are_held_in_every_kind_of_world_and_order() {
    let everywhere = [(4, 1, None), (1, 3, None), (2, 3, Some(1))];
    let folder = scratch("archetypes-worlds");
    let of = |scenario: Value| the_same_everywhere(&prepared(&scenario, &folder), &everywhere).0;
    let samples = json!({"kind": "archetype", "model": "sim/faulty", "samples": 3});
    // Births and deaths.
    let mut village = village(40, 14);
    village["cohorts"] = json!([{"policy": samples}]);
    assert!(of(village) > 8);
    // State in one place, and sequential turns.
    let schelling = |policy: Value| {
        json!({"seed": 2, "rounds": 4, "agents": 9000, "world": {"kind": "schelling", "density": 0.85, "radius": 1},
        "cohorts": [{"share": 0.3, "policy": {"kind": "relocate", "least_share": 0.4}}, {"share": 0.7, "policy": policy}]})
    };
    let by = json!({"kind": "archetype", "model": "sim/medium", "by": [{"observation": "like", "bins": [4]}]});
    assert_eq!(of(schelling(by.clone())), 8);
    let mut simultaneous = schelling(by);
    simultaneous["activation"] = json!("simultaneous");
    assert_eq!(of(simultaneous), 8);
}

#[test]
fn a_council_that_is_killed_goes_on_and_asks_nothing_twice() {
    killed("city.yaml", &["--agents", "3000", "-P", "world.initial=0.02"]);
}

#[test]
fn a_council_on_a_platform_that_is_killed_goes_on_and_asks_nothing_twice() {
    killed("platform-archetypes.yaml", &["--agents", "600", "-P", "world.minutes=240"]);
}

/// Runs a shipped scenario on a provider for five rounds, kills it, resumes it and replays it.
fn killed(file: &str, own: &[&str]) {
    let folder = scratch(&format!("archetypes-kill-{file}"));
    let file = root().join("scenarios").join(file);
    let mock_server = MockServer::start(&["--latency-ms", "20"]);
    let flags = |out: &'static str| {
        let first = ["run", arg(&file), "--model", "openai/medium", "--rounds", "5", "--out", out];
        let more = ["--no-report", "--json", "--max-connections", "8"];
        [&first[..], own, &more[..]].concat()
    };
    let whole = polity(&folder, &flags("whole"), &mock_server.variables());
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let asked = last_line(&whole)["answers"].as_u64().unwrap();
    // In the second, third or fourth round, with some of its groups answered.
    let mut draws = Draws::new(3, Stream::Driver, 0, 0);
    for _ in 0..from_env("POLITY_COHORT_KILLS", 2) {
        let out = folder.join("run");
        let _ = std::fs::remove_dir_all(&out);
        let at = mock_server.count("answered") + asked / 5 + draws.below(asked / 2);
        let mut process = command(&folder, &flags("run"), &mock_server.variables())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while mock_server.count("answered") < at {
            assert!(process.try_wait().unwrap().is_none(), "it ended before it could be killed");
            std::thread::sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        let before = events(Arc::new(RealDisk), &out).unwrap().0;
        let had = answers(&before).len() as u64;
        assert!(had > 0 && had < asked, "{had} of {asked}");
        let resumed = polity(&folder, &["resume", "run", "--no-report", "--json"], &mock_server.variables());
        assert_eq!(last_line(&resumed)["digest"], last_line(&whole)["digest"]);
        assert_asked_once(&before, &events(Arc::new(RealDisk), &out).unwrap().0, "a resume");
        assert_same_tables(&tables(&RealDisk, &out), &tables(&RealDisk, &folder.join("whole")), "killed");
    }
    drop(mock_server);
    let replayed = last_line(&polity(&folder, &["replay", "run", "--json"], &[]));
    assert_eq!((&replayed["status"], &replayed["digest"]), (&json!("same"), &last_line(&whole)["digest"]));
}

#[test]
fn a_fork_asks_what_if() {
    let folder = scratch("archetypes-fork");
    let file = root().join("scenarios/city.yaml");
    let args = [
        "run",
        file.to_str().unwrap(),
        "--agents",
        "20000",
        "-P",
        "world.initial=0.005",
        "--rounds",
        "30",
        "--out",
        "run",
        "--no-report",
        "--json",
    ];
    let ran = polity(&folder, &args, &[]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let forked = |set: &str, out: &str| {
        let args = ["fork", "run", "--at", "10", "-P", set, "--out", out, "--no-report", "--json"];
        let forked = polity(&folder, &args, &[]);
        assert!(forked.status.success(), "{}", text(&forked.stderr));
        last_line(&forked)
    };
    let without = forked("world.isolation=0", "without");
    assert_ne!(without["digest"], last_line(&ran)["digest"]);
    let infected = |run: &str| -> Vec<f64> {
        let metrics = polity_driver::results::open(&RealDisk, &folder.join(run)).unwrap().metrics().unwrap();
        let susceptible = metrics.iter().find(|(name, _)| *name == "susceptible").unwrap().1.clone();
        susceptible.into_iter().map(|(_, left)| 20_000.0 - left).collect()
    };
    let (as_it_was, what_if) = (infected("run"), infected("without"));
    assert_eq!(as_it_was[..10], what_if[..10], "a fork begins with the run");
    assert!(what_if.last() > as_it_was.last(), "staying at home prevents nothing: {what_if:?} and {as_it_was:?}");
    assert_eq!(last_line(&polity(&folder, &["replay", "without", "--json"], &[]))["status"], "same");
}
