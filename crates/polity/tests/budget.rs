//! Budgets are hard limits: what is spent, who is denied, and that only the scenario decides it.

use crate::harness;

use crate::harness::{
    answers, arg, assert_same_tables, engine, events, in_order, oracles, polity, prepared, replay, resume, run,
    scratch, tables, team, write_scenario,
};
use polity_driver::drive::{Progress, Stop, Watch};
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::Faults;
use polity_driver::spread::Spread;
use polity_kernel::ask::{Answer, Effect, EffectId, Outcome, Request, Usage};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, Budget};
use polity_models::models::sim::Sim;
use polity_models::models::{Answering, Exchange, Provider, Providers};
use polity_store::DriveError;
use polity_store::disk::{Disk, SimDisk};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const OUT: &str = "run";

/// Simulated models whose price is between three tenths and all of the announced maximum, different for each call. They count the
/// requests of each id.
struct Metered(Sim, Requests);

type Requests = Arc<Mutex<BTreeMap<EffectId, u32>>>;

fn metered(requests: &Requests) -> Arc<Providers> {
    Arc::new(Providers::of(vec![Box::new(Metered(Sim::standard(), requests.clone()))]))
}

/// The maximum cost of a call, in dollars.
const MOST: f64 = 0.001;

impl Provider for Metered {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn models(&self) -> Vec<String> {
        self.0.models()
    }

    fn check(&self, model: &str) -> Result<(), String> {
        self.0.check(model)
    }

    fn most(&self, _: &Request) -> Usage {
        Usage { tokens_in: 50, tokens_out: 50, cost_usd: MOST, ..Usage::default() }
    }

    fn simulated(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        let EffectId { item, round, actor, n, .. } = effect.id;
        *self.1.lock().unwrap().entry(effect.id).or_default() += 1;
        let part = 0.3 + 0.7 * Draws::new(seed, Stream::Driver, round, actor * 10 + n + item * 1000).unit();
        let usage = Usage { cost_usd: MOST * part, tokens_in: 20, tokens_out: 10, ..Usage::default() };
        Box::pin(async move { Ok(Exchange { usage, ..self.0.answer(effect, seed).await? }) })
    }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

fn faults(seed: u64) -> Option<Faults> {
    Some(Faults { seed, failure: 0.3, repeat: 0.3 })
}

/// Returns all answers in order of id; each effect has one.
fn answered(disk: &Arc<dyn Disk>) -> Vec<Answer> {
    answers(&events(disk.clone(), Path::new(OUT)).unwrap().0).into_values().flatten().collect()
}

fn denied(answer: &&Answer) -> bool {
    matches!(answer.outcome, Outcome::Denied { .. })
}

fn spent(answers: &[Answer]) -> f64 {
    answers.iter().map(|answer| answer.usage.cost_usd).sum()
}

fn of(scenario: &Value, budget: Value) -> Value {
    let mut scenario = scenario.clone();
    scenario["budget"] = budget;
    scenario
}

fn whole(scenario: &Value, folder: &Path, shards: usize, faults: Option<Faults>) -> (Summary, Arc<dyn Disk>) {
    let disk = disk();
    let engine = Engine { providers: metered(&Requests::default()), ..engine(disk.clone(), shards, faults) };
    (run(&engine, &prepared(scenario, folder), Path::new(OUT)).unwrap(), disk)
}

#[test]
fn calls_are_denied_in_order_of_id() {
    let folder = scratch("budget-order");
    // 18 askers in a round, of whom every third asks twice: 24 calls.
    let scenario = of(&oracles(30, 4, 0), json!({"cohorts": {"askers": {"calls": 57}}}));
    let (summary, base) = whole(&scenario, &folder, 1, None);
    assert_eq!((summary.status, summary.totals.answers, summary.totals.denied), (RunStatus::Done, 57, 39));
    let all = answered(&base);
    // Two whole rounds, and in the third all of the first questions but for the last nine.
    let made: Vec<(u32, u32, u32)> =
        all.iter().filter(|a| !denied(a)).map(|a| (a.id.round, a.id.n, a.id.actor)).collect();
    assert_eq!(made.iter().filter(|(round, ..)| *round < 2).count(), 48);
    let third: Vec<u32> = made.iter().filter(|(round, ..)| *round == 2).map(|(.., actor)| *actor).collect();
    assert_eq!(third.len(), 9);
    assert!(
        made.iter()
            .all(|(round, n, actor)| *round < 2 || (*round, *n) == (2, 0) && *actor <= *third.iter().max().unwrap())
    );
    // Only the scenario decides who is denied.
    let expected = tables(base.as_ref(), Path::new(OUT));
    for seed in 0..6 {
        let (again, disk) = whole(&scenario, &folder, 1 + seed as usize % 3, faults(seed));
        assert_eq!((again.digest.as_str(), again.totals.denied), (summary.digest.as_str(), 39), "arrival {seed}");
        assert_eq!(answered(&disk), all, "arrival {seed}");
        assert_same_tables(&tables(disk.as_ref(), Path::new(OUT)), &expected, "arrival");
    }
    assert_eq!(replay(&engine(base, 2, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
}

#[test]
fn a_wall_of_dollars_is_never_passed_whatever_comes_first() {
    let folder = scratch("budget-wall");
    let (mut stopped, mut most) = (0, 0.0f64);
    for part in 1..=20u32 {
        for scenario in [oracles(30, 6, 0), in_order(30, 6), team(&folder, "council", 6, 3)] {
            // From far too little to almost enough.
            let free = whole(&scenario, &folder, 1, None).0;
            let limit = free.totals.cost_usd * f64::from(part) / 20.5;
            let scenario = of(&scenario, json!({"cost_usd": limit}));
            let (one, disk) = whole(&scenario, &folder, 1, None);
            let answers = answered(&disk);
            assert!(spent(&answers) <= limit, "{} of {limit}", spent(&answers));
            // Totals are rounded to a trillionth of a dollar after each answer.
            assert!((spent(&answers) - one.totals.cost_usd).abs() < 1e-12 * (1 + answers.len()) as f64);
            let (other, with_faults) = whole(&scenario, &folder, 2, faults(part.into()));
            assert_eq!(
                (&one.digest, &one.status, one.totals.denied),
                (&other.digest, &other.status, other.totals.denied),
                "{limit}"
            );
            assert!(answers == answered(&with_faults), "the same calls are made and denied, {limit}");
            stopped += u32::from(one.status == RunStatus::Budget);
            most = most.max(spent(&answers) / limit);
        }
    }
    assert!(stopped > 50, "{stopped}");
    // The limit is not enforced far too early: at the end there was no room for one more call.
    assert!(most > 0.99, "{most}");
}

#[test]
fn a_society_finishes_its_round_and_a_greater_budget_takes_it_on() {
    let folder = scratch("budget-society");
    let scenario = of(&oracles(30, 6, 0), json!({"calls": 60}));
    let (summary, disk) = whole(&scenario, &folder, 1, None);
    // 24 calls a round: the third has room for twelve.
    assert_eq!((summary.status, summary.rounds, summary.totals.answers), (RunStatus::Budget, 3, 60));
    assert!(summary.reason.as_ref().unwrap().contains("60 calls"), "{:?}", summary.reason);
    assert!(!summary.digest.is_empty());
    let plain = engine(disk.clone(), 1, None);
    let refused = resume(&plain, Path::new(OUT)).unwrap_err();
    assert!(matches!(&refused, DriveError::Input(why) if why.contains("has used up its budget")), "{refused}");
    let greater = Engine { budget: Budget { calls: Some(1000), ..Budget::default() }, ..plain };
    let resumed = resume(&greater, Path::new(OUT)).unwrap();
    assert_eq!((resumed.status, resumed.rounds), (RunStatus::Done, 6));
    // Denials are recorded and stay.
    assert_eq!(resumed.totals.denied, summary.totals.denied);
    assert_eq!(resumed.totals.answers, 60 + 3 * 24);
    assert_eq!(replay(&engine(disk, 1, None), Path::new(OUT)).unwrap().status, RunStatus::Same);
}

#[test]
fn an_evaluation_stops_with_nothing_denied_and_goes_on_as_if_it_had_not() {
    let folder = scratch("budget-evaluation");
    let scenario = team(&folder, "council", 6, 3);
    let (free, _) = whole(&scenario, &folder, 1, None);
    for calls in [0, 1, free.totals.answers / 3, free.totals.answers - 1] {
        let (summary, disk) = whole(&of(&scenario, json!({"calls": calls})), &folder, 1, faults(calls));
        assert_eq!((summary.status, summary.totals.denied), (RunStatus::Budget, 0), "{calls}");
        assert_eq!(summary.totals.answers, calls);
        let budget = Budget { calls: Some(free.totals.answers), ..Budget::default() };
        let resumed = resume(&Engine { budget, ..engine(disk, 1, None) }, Path::new(OUT)).unwrap();
        assert_eq!((resumed.status, &resumed.digest), (RunStatus::Done, &free.digest), "{calls}");
        assert_eq!((resumed.totals.answers, resumed.totals.denied), (free.totals.answers, 0));
    }
}

#[test]
fn agents_and_cohorts_have_walls_of_their_own() {
    let folder = scratch("budget-agents");
    let scenario = of(&oracles(30, 4, 0), json!({"agent": {"calls": 3}}));
    let (summary, disk) = whole(&scenario, &folder, 2, faults(3));
    assert_eq!(summary.status, RunStatus::Done);
    let answers = answered(&disk);
    let mut calls = BTreeMap::<u32, u32>::new();
    for answer in answers.iter().filter(|answer| !denied(answer)) {
        *calls.entry(answer.id.actor).or_default() += 1;
    }
    // Twelve ask once per round and six twice: three calls each.
    assert_eq!(calls.len(), 18);
    assert!(calls.values().all(|calls| *calls == 3), "{calls:?}");
    assert!(
        answers.iter().any(
            |a| matches!(&a.outcome, Outcome::Denied { why } if why.contains("the budget of an agent is 3 calls"))
        )
    );
    let (again, _) = whole(&scenario, &folder, 1, None);
    assert_eq!(again.digest, summary.digest);
}

/// Interrupts a process twice after this many answers.
struct Interrupted(u32, Stop);

impl Watch for Interrupted {
    fn progress(&mut self, _: &Progress) {}

    fn heard(&mut self, _: &Answer, _: &Assembled) {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            self.1.ask();
            self.1.ask();
        }
    }
}

/// Runs a society over `n` processes, or resumes it. Process 1 gets two interrupts after `interrupted` answers.
fn spread(
    scenario: &Value,
    folder: &Path,
    disk: &Arc<dyn Disk>,
    n: usize,
    requests: &Requests,
    interrupted: Option<u32>,
) -> Vec<Result<Summary, DriveError>> {
    let prepared = prepared(scenario, folder);
    let one = |spread: Spread| {
        let stop = Stop::default();
        let after = interrupted.filter(|_| spread.index() == 1).unwrap_or(u32::MAX);
        let mut watch = Interrupted(after, stop.clone());
        let engine =
            Engine { spread: Some(spread), stop, providers: metered(requests), ..engine(disk.clone(), 1, None) };
        engine.run_spread(&prepared, Path::new(OUT), &mut watch)
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = Spread::threads(n).into_iter().map(|spread| scope.spawn(move || one(spread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Some askers in each of three processes: of the first kind 27, of the second 45.
fn over_blocks() -> Value {
    let mut scenario = oracles(9_000, 4, 0);
    let cohort = |name: &str, share: f64, kind: &str| json!({"name": name, "share": share, "policy": {"kind": kind}});
    scenario["cohorts"] = json!([
        cohort("a", 0.453, "noise"),
        cohort("first", 0.003, "oracle"),
        cohort("b", 0.452, "noise"),
        cohort("second", 0.005, "oracle"),
        cohort("c", 0.087, "noise"),
    ]);
    scenario
}

#[test]
fn one_budget_holds_over_several_processes_and_they_deny_what_one_would() {
    let folder = scratch("budget-spread");
    let free = whole(&over_blocks(), &folder, 1, None).0.totals;
    let round = free.answers / 4;
    assert_eq!(free.answers, 4 * (72 + 24), "every third asks twice");
    let mut exhausted = 0;
    for (budget, most) in [
        (json!({"calls": round * 2 + 50}), None),
        (json!({"calls": round + 3}), None),
        (json!({"cost_usd": free.cost_usd * 0.6}), Some(free.cost_usd * 0.6)),
        (json!({"cohorts": {"first": {"calls": 70}, "second": {"calls": 101}}}), None),
        (json!({"cost_usd": free.cost_usd * 0.8, "agent": {"calls": 4}}), Some(free.cost_usd * 0.8)),
    ] {
        let scenario = of(&over_blocks(), budget);
        let (one, disk_of_one) = whole(&scenario, &folder, 1, None);
        exhausted += u32::from(one.status == RunStatus::Budget);
        assert!(one.totals.denied > 0);
        for n in [2, 3] {
            let (requests, disk) = (Requests::default(), disk());
            let what = format!("{} on {n}", scenario["budget"]);
            for summary in spread(&scenario, &folder, &disk, n, &requests, None) {
                let summary = summary.unwrap();
                let found = (&summary.digest, summary.status, &summary.reason);
                assert_eq!(found, (&one.digest, one.status, &one.reason), "{what}");
            }
            let all = answered(&disk);
            assert_eq!(all, answered(&disk_of_one), "{what}");
            assert_same_tables(
                &tables(disk.as_ref(), Path::new(OUT)),
                &tables(disk_of_one.as_ref(), Path::new(OUT)),
                &what,
            );
            assert_eq!(requests.lock().unwrap().len(), all.iter().filter(|answer| !denied(answer)).count(), "{what}");
            assert!(most.is_none_or(|most| spent(&all) <= most), "{what}: {}", spent(&all));
            assert_eq!(replay(&engine(disk, 1, None), Path::new(OUT)).unwrap().status, RunStatus::Same, "{what}");
        }
    }
    assert!(exhausted >= 3, "{exhausted}");
}

/// A lost process leaves answers in its log. The processes that go on read it, however many they are.
#[test]
fn a_lost_process_and_fewer_that_go_on_ask_nothing_twice() {
    let folder = scratch("budget-spread-lost");
    let (mut lost, mut logged) = (0, 0);
    for (budget, after) in [(json!({}), 30), (json!({"calls": 250}), 20), (json!({"calls": 250}), 75)] {
        let scenario = of(&over_blocks(), budget);
        let (one, disk_of_one) = whole(&scenario, &folder, 1, None);
        for n in [1, 2] {
            let (requests, disk) = (Requests::default(), disk());
            let what = format!("{} after {after}, on {n}", scenario["budget"]);
            let first = spread(&scenario, &folder, &disk, 3, &requests, Some(after));
            lost += first.iter().filter(|summary| matches!(summary, Err(DriveError::Peers(_)))).count();
            let told = answered(&disk).len();
            logged += requests.lock().unwrap().len() - told;
            let summary = match n {
                1 => {
                    let alone = Engine { providers: metered(&requests), ..engine(disk.clone(), 1, None) };
                    resume(&alone, Path::new(OUT))
                }
                _ => spread(&scenario, &folder, &disk, n, &requests, None).remove(0),
            };
            let summary = summary.unwrap();
            assert_eq!((&summary.digest, summary.status), (&one.digest, one.status), "{what}");
            assert_eq!(answered(&disk), answered(&disk_of_one), "{what}");
            let requests = requests.lock().unwrap();
            let twice: Vec<_> = requests.iter().filter(|(_, times)| **times != 1).collect();
            assert!(twice.is_empty(), "{what}: {twice:?}");
        }
    }
    assert!(lost >= 6 && logged > 0, "{lost}, {logged}");
}

#[test]
fn wrong_budgets_are_shown_where_they_are_wrong() {
    let folder = scratch("budget-wrong");
    let cases = [
        (json!({"cost": 1}), "unknown key `cost`"),
        (json!({"cost_usd": -1}), "must lie in 0 to 1,000,000,000, is -1"),
        (json!({"cohorts": {"askrs": {"calls": 1}}}), "there is no cohort `askrs` (there are thinkers, learners)"),
    ];
    let refused = |scenario: &Value| {
        let file = write_scenario(&folder, scenario);
        let said = polity(&["run", arg(&file), "--out", arg(&folder.join("out"))]);
        assert_eq!(said.code, Some(2), "{said:?}");
        said.text("error").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (budget, message) in cases {
        let shown = refused(&of(&harness::rules(10, 2), budget));
        assert!(shown.contains(message), "{shown}");
    }
    let mut lagging = of(&harness::rules(10, 2), json!({"calls": 5}));
    lagging["answers"] = json!({"lag": 2});
    assert!(refused(&lagging).contains("answers: wait"));
    let mut evaluation = team(&folder, "council", 2, 2);
    evaluation["method"] = json!({"kind": "debate"});
    assert!(refused(&of(&evaluation, json!({"agent": {"calls": 1}}))).contains("has a team and no agents"));
}

#[test]
fn the_command_stops_with_a_code_of_its_own_and_goes_on() {
    let folder = scratch("budget-command");
    let mut scenario = team(&folder, "debate", 6, 3);
    scenario["method"] = json!({"kind": "debate"});
    let file = write_scenario(&folder, &scenario);
    let free = polity(&["run", arg(&file), "--out", arg(&folder.join("free"))]);
    let out = folder.join("out");
    let cost = free.json["cost_usd"].as_f64().unwrap();
    let limit = format!("{}", cost / 2.0);
    let stopped = polity(&["run", arg(&file), "--out", arg(&out), "--max-cost", &limit]);
    assert_eq!((stopped.code, stopped.text("status")), (Some(7), "budget"), "{stopped:?}");
    assert!(stopped.json["cost_usd"].as_f64().unwrap() <= cost / 2.0, "{stopped:?}");
    assert!(stopped.notes.contains("polity resume"), "{stopped:?}");
    let refused = polity(&["resume", arg(&out)]);
    assert!(refused.code == Some(2) && refused.notes.contains("--max-cost"), "{refused:?}");
    let resumed = polity(&["resume", arg(&out), "--max-cost", "10"]);
    assert_eq!((resumed.code, resumed.text("digest")), (Some(0), free.text("digest")), "{resumed:?}");
    let timed = polity(&["run", arg(&file), "--out", arg(&folder.join("timed")), "--max-time", "0"]);
    assert_eq!((timed.code, timed.text("status")), (Some(7), "budget"), "{timed:?}");
    let resumed = polity(&["resume", arg(&folder.join("timed")), "--max-time", "1000"]);
    assert_eq!((resumed.code, resumed.text("digest")), (Some(0), free.text("digest")), "{resumed:?}");
}
