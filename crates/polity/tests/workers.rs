//! Processes that share the runs of a sweep: the tables of one process, one budget and one rate limit for all, and kills.

use crate::harness::{Said, arg, command, polity, said, scratch, write_scenario};
use crate::sweep::{design, done, folders, outcome, steady, sweep_of};
use polity_models::mock_server::{MockServer, Options};
use serde_json::json;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Workers without a coordinator, two at a time, one of every pair killed: the tables are those of a sweep in one process.
#[test]
fn workers_share_a_sweep_and_heal_it() {
    let folder = scratch("sweep-workers");
    let scenario = design(1500, 4);
    let (whole, like) = done(&folder, &scenario, "whole", &[]);
    let out = folder.join("shared");
    let planned = sweep_of(&folder, &scenario, "shared", &["--plan"]).1;
    assert_eq!((planned.code, planned.text("status"), &planned.json["runs"]), (Some(0), "not run", &json!(24)));
    assert!(!out.join("runs").exists());
    // The same plan again changes nothing, as when every task of an array gives the command; another plan is refused.
    let before = fs::metadata(out.join("sweep.json")).unwrap().modified().unwrap();
    let again = sweep_of(&folder, &scenario, "shared", &["--plan"]).1;
    assert_eq!(
        (again.code, &again.json["already"], &again.json["runs"]),
        (Some(0), &json!(true), &json!(24)),
        "{again:?}"
    );
    assert!(again.notes.contains("the same sweep is already planned in"), "{again:?}");
    for (flags, why) in [
        (["--seeds", "5"], "its `design.arms[0].seeds[4]` is missing, not 11"),
        (["--rounds", "7"], "its `scenario.rounds` is 4, not 7"),
    ] {
        let other = sweep_of(&folder, &scenario, "shared", &[&["--plan"], &flags[..]].concat()).1;
        assert!(other.code == Some(3) && other.notes.contains("holds another sweep"), "{other:?}");
        assert!(other.notes.contains(why), "{why}: {other:?}");
    }
    assert_eq!(fs::metadata(out.join("sweep.json")).unwrap().modified().unwrap(), before);
    let work = |part: &'static str| {
        let mut args = vec!["work", arg(&out), "--jobs", "1"];
        if !part.is_empty() {
            args.extend(["--part", part]);
        }
        command(&args)
    };
    for round in 0..3 {
        let (mut killed, other) = (work("").spawn().unwrap(), work("").spawn().unwrap());
        sleep(Duration::from_millis(40 * (round + 1)));
        killed.kill().unwrap();
        killed.wait().unwrap();
        if round < 2 {
            let mut other = other;
            other.kill().unwrap();
            other.wait().unwrap();
        } else {
            let ended = said(&other.wait_with_output().unwrap());
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }
    // Parts are disjoint, and a part that is done is only read.
    let parts: Vec<Said> = ["0/3", "1/3", "2/3"].map(|part| said(&work(part).output().unwrap())).into();
    for part in &parts {
        assert_eq!((part.code, part.text("status"), &part.json["done"]), (Some(0), "done", &json!(8)), "{part:?}");
    }
    let resumed = polity(&["resume", arg(&out)]);
    assert_eq!(steady(&resumed), steady(&like));
    assert!(outcome(&out) == outcome(&whole));
    for (args, word) in [
        (vec!["work", arg(&out), "--part", "3/3"], "from 0/N to (N-1)/N"),
        (vec!["work", arg(&folder)], "holds no sweep"),
        (vec!["work", arg(&out), "--max-calls", "9"], "does not limit `calls`, so there is nothing to raise"),
        (vec!["work", arg(&out), "--max-time", "9"], "--max-time works for a single run only"),
    ] {
        let refused = polity(&args);
        assert!(refused.code != Some(0) && refused.notes.contains(word), "{refused:?}");
    }
    let mut grows = design(20, 4);
    grows["design"]["seeds"] = json!({"until": {"metric": "guess.mean", "halfwidth": 0.1, "batch": 4, "max": 8}});
    let refused = sweep_of(&folder, &grows, "grows", &["--plan"]).1;
    assert!(refused.notes.contains("workers cannot share this sweep"), "{refused:?}");
}

/// Four processes with one budget, one of them killed: the endpoint counts no call above it.
#[test]
fn the_budget_of_a_sweep_holds_over_processes() {
    let folder = scratch("sweep-budget");
    let server = MockServer::start(Options { latency: Duration::from_millis(15), ..Options::default() }).unwrap();
    let mut scenario = json!({
        "name": "shared-budget", "seed": 3, "rounds": 3, "agents": 4, "world": {"kind": "guess-average"},
        "cohorts": [{"policy": {"kind": "mind", "model": "openai/medium", "memory": {"tokens": 0}}}],
        "settings": {"max_tokens": 40}, "snapshot": {"rounds": 1},
        // A run makes 12 calls.
        "budget": {"calls": 14},
        "design": {"seeds": 8, "budget": {"calls": 60}},
    });
    let asking = |args: &[&str]| {
        let mut command = command(args);
        command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", "a-key-for-tests");
        command
    };
    let file = write_scenario(&folder, &scenario);
    let out = folder.join("shared");
    let planned = said(&asking(&["sweep", arg(&file), "--out", arg(&out), "--plan"]).output().unwrap());
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let work = || asking(&["work", arg(&out), "--jobs", "1"]);
    let mut workers: Vec<_> = (0..4).map(|_| work().spawn().unwrap()).collect();
    sleep(Duration::from_millis(150));
    workers[0].kill().unwrap();
    workers.into_iter().for_each(|worker| drop(worker.wait_with_output()));
    // What the dead process had begun is finished, and nothing else fits.
    let healed = said(&work().output().unwrap());
    assert_eq!((healed.code, &healed.json["done"]), (Some(6), &json!(4)), "{healed:?}");
    let short = "the budget of the sweep is 60 calls: ";
    assert!(healed.notes.contains(short) && healed.notes.contains("may use up to 14 calls"), "{healed:?}");
    let stopped = said(&asking(&["resume", arg(&out)]).output().unwrap());
    assert!(stopped.code == Some(6) && stopped.notes.contains(short), "{stopped:?}");
    let there = server.stats().calls;
    assert!((48..=60).contains(&there), "{there} calls at the endpoint");

    // A higher limit is in the ledger: for every process from then on, and once.
    let limits = || fs::read_to_string(out.join("allowance.jsonl")).unwrap().matches("{\"limit\":").count();
    let raised = said(&asking(&["resume", arg(&out), "--max-calls", "74"]).output().unwrap());
    assert_eq!((raised.code, &raised.json["done"], limits()), (Some(6), &json!(5), 1), "{raised:?}");
    for (flags, word) in [
        (["--max-calls", "70"], "the budget of this sweep is 74 calls already"),
        (["--max-tokens", "70"], "does not limit `tokens`"),
    ] {
        let refused = said(&asking(&[&["work", arg(&out)], &flags[..]].concat()).output().unwrap());
        assert!(refused.code == Some(2) && refused.notes.contains(word), "{refused:?}");
    }
    for _ in 0..2 {
        let rest = said(&asking(&["work", arg(&out), "--max-calls", "110"]).output().unwrap());
        assert_eq!((rest.code, &rest.json["done"], limits()), (Some(0), &json!(8), 2), "{rest:?}");
    }
    let ended = said(&asking(&["resume", arg(&out)]).output().unwrap());
    assert_eq!((ended.code, ended.text("status")), (Some(0), "done"), "{ended:?}");

    scenario["budget"] = json!({"calls": 61});
    let file = write_scenario(&folder, &scenario);
    let refused = said(&asking(&["sweep", arg(&file), "--out", arg(&folder.join("large"))]).output().unwrap());
    assert!(refused.code == Some(2) && refused.notes.contains("a single run may use up to 61 calls"), "{refused:?}");
    scenario.as_object_mut().unwrap().remove("budget");
    let file = write_scenario(&folder, &scenario);
    let refused = said(&asking(&["sweep", arg(&file), "--out", arg(&folder.join("endless"))]).output().unwrap());
    assert!(refused.code == Some(2) && refused.notes.contains("add `budget: {calls: ...}`"), "{refused:?}");
}

/// Four processes with one budget and one limit per minute, one of them killed in the middle. The endpoint has a limit of its own, a tenth
/// higher: it would refuse calls if each process had a limit for itself.
#[test]
fn a_limit_per_minute_holds_over_processes_at_the_endpoint() {
    let folder = scratch("sweep-rates");
    let latency = Duration::from_millis(40);
    let server = MockServer::start(Options { latency, requests_per_minute: Some(66), ..Options::default() }).unwrap();
    let scenario = json!({
        "name": "shared-rate", "seed": 5, "rounds": 3, "agents": 4, "world": {"kind": "guess-average"},
        "cohorts": [{"policy": {"kind": "mind", "model": "openai/medium", "memory": {"tokens": 0}}}],
        "settings": {"max_tokens": 40}, "snapshot": {"rounds": 1},
        // A run makes 12 calls; the killed one may make up to two again. Six runs fit, whether it does or not.
        "budget": {"calls": 15},
        "design": {"seeds": 8, "budget": {"calls": 78}},
    });
    let asking = |args: &[&str]| {
        let mut command = command(args);
        command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", "a-key-for-tests");
        command
    };
    let file = write_scenario(&folder, &scenario);
    let out = folder.join("shared");
    let planned = said(&asking(&["sweep", arg(&file), "--out", arg(&out), "--plan"]).output().unwrap());
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let flags = ["--jobs", "1", "--max-connections", "2", "--requests-per-minute", "60"];
    let work = || asking(&[&["work", arg(&out)], &flags[..]].concat());
    let mut workers: Vec<_> = (0..4).map(|_| work().spawn().unwrap()).collect();
    let from = Instant::now();
    while server.stats().calls < 30 && from.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(1));
    }
    workers[0].kill().unwrap();
    workers.into_iter().for_each(|worker| drop(worker.wait_with_output()));
    let healed = said(&work().output().unwrap());
    assert_eq!((healed.code, &healed.json["done"]), (Some(6), &json!(6)), "{healed:?}");
    let there = server.stats();
    assert!((72..=78).contains(&there.calls), "{there:?}");
    assert!(there.most_in_flight <= 8 && there.limited == 0, "{there:?}");
}

#[test]
fn a_run_that_another_process_makes_is_left_to_it() {
    let folder = scratch("sweep-held");
    let scenario = design(200, 1);
    let (whole, like) = done(&folder, &scenario, "whole", &[]);
    let out = folder.join("shared");
    sweep_of(&folder, &scenario, "shared", &["--plan"]);
    // Made by hand: a run that another process holds.
    let held = out.join(folders(&whole)[3].strip_prefix(&whole).unwrap());
    fs::create_dir_all(&held).unwrap();
    fs::write(held.join("lock"), "polity\n").unwrap();
    let lock = fs::File::open(held.join("lock")).unwrap();
    lock.lock().unwrap();
    let worked = polity(&["work", arg(&out)]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    assert_eq!((&worked.json["done"], &worked.json["held"]), (&json!(5), &json!(1)), "{worked:?}");
    let early = polity(&["resume", arg(&out)]);
    assert_eq!((early.text("status"), &early.json["held"]), ("stopped", &json!(1)), "{early:?}");
    drop(lock);
    let resumed = polity(&["resume", arg(&out)]);
    assert_eq!(steady(&resumed), steady(&like));
    assert!(outcome(&out) == outcome(&whole));
}

// ------------------------------------------------------------------ leave one out
