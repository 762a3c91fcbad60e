//! Tests of the table `calls` against a recount of the journal, for any arrival, shards, stops and forks; `polity calls` on runs in any
//! state.

use crate::harness;

use crate::harness::{
    Nothing, StopAfter, answers, arg, assert_same_tables, engine, events, in_order, prepared, rules, scratch, tables,
};
use crate::harness::{Scripted, polity, team, village, write_scenario};
use polity_driver::drive::Unwatched;
use polity_driver::health::{DEFAULTS, alarms};
use polity_driver::results;
use polity_driver::run::{Engine, Prepared, RunStatus};
use polity_driver::source::Faults;
use polity_kernel::Invalid;
use polity_kernel::ask::{
    Answer, ChatMessage, Effect, EffectId, Outcome, Question, Request, ResponseFormat, Role, Usage, Value,
};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_models::models::{Exchange, Provider, Providers};
use polity_store::disk::{Disk, RealDisk, SimDisk};
use polity_store::tables::ColumnData;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

// ------------------------------------------------------------------ leaves

/// A policy that asks for a number until it fits, then for news in words that others use, too; it always acts once.
struct Clerk {
    act: u16,
    low: f64,
    high: f64,
}

impl Policy for Clerk {
    const NAME: &'static str = "clerk";
    const SUMMARY: &'static str = "Ask with a ladder";
    type Params = Nothing;
    type State = ();

    fn open(_: Nothing, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (act, low, high) = setup.number_act()?;
        Ok(Clerk { act, low, high })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    fn models(&self) -> Vec<String> {
        vec!["fickle/one".into()]
    }

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let ask = |text: String, response_format: ResponseFormat, purpose: &str| Request {
            purpose: purpose.into(),
            ..Request::new(
                "fickle/one",
                vec![ChatMessage::text(Role::System, "Be brief."), ChatMessage::text(Role::User, text)],
                response_format,
            )
        };
        let text = format!("Agent {} guesses in round {}.", turn.who, turn.round);
        let guess = Question::new(ask(text, ResponseFormat::number(self.low, self.high), "guess"));
        let value = match turn.ask(guess.retries(2).default(Value::Number(self.low))).await {
            Ok(Value::Number(value)) => value,
            _ => self.low,
        };
        let text = format!("News of round {} for desk {}?", turn.round, turn.who % 5);
        let news = turn.ask(ask(text, ResponseFormat::Text, "news")).await;
        turn.act(self.act, if news.is_ok() { value } else { self.low });
        Ok(())
    }
}

/// A provider whose answers depend on the question, and whose latencies depend on the order of arrival.
fn fickle() -> Box<dyn Provider> {
    let count = AtomicU64::default();
    let answer = move |effect: &Effect, _: u64| {
        let words = effect.request.rendered();
        let hash = RowHash::new(Kind::Input, 0).bytes(words.as_bytes()).finish() as u64;
        let arrived = count.fetch_add(1, Ordering::SeqCst);
        let raw = format!("say {}", hash % 100);
        let outcome = match (&effect.request.response_format, hash % 10) {
            (ResponseFormat::Number { .. }, 0 | 1) => Outcome::Invalid { raw, why: "no number".into() },
            (_, 2) => Outcome::Refused { raw: "I would rather not".into() },
            (ResponseFormat::Number { .. }, 3) => Outcome::Failed { why: "gone".into() },
            (ResponseFormat::Number { low, high, .. }, n) => {
                Outcome::Reply { value: Value::Number(low + (high - low) * n as f64 / 10.0), raw, repaired: n == 4 }
            }
            _ => Outcome::Reply { value: Value::Text(raw.clone()), raw, repaired: false },
        };
        let usage = Usage {
            tokens_in: words.len() as u64,
            tokens_out: hash % 7,
            tokens_cached: hash % 3,
            tokens_thinking: hash % 2,
            cost_usd: (hash % 1000) as f64 * 1e-6,
            latency_ms: arrived as f64,
            ..Usage::default()
        };
        Exchange { outcome, usage, reasoning: hash.is_multiple_of(3).then(|| format!("thought {}", hash % 100)) }
    };
    Box::new(Scripted { name: "fickle", answer })
}

fn leaves() -> &'static Registry {
    static LEAVES: OnceLock<Registry> = OnceLock::new();
    LEAVES.get_or_init(|| {
        let mut leaves = harness::leaves();
        leaves.policy::<Clerk>(LeafFiles::default());
        leaves
    })
}

// ------------------------------------------------------------------ scenarios

fn clerks(mut scenario: serde_json::Value, lag: u32) -> serde_json::Value {
    let cohorts = scenario["cohorts"].as_array_mut().unwrap();
    cohorts[0]["policy"] = json!({"kind": "clerk"});
    if lag > 0 {
        scenario["answers"] = json!({"lag": lag});
    }
    scenario
}

fn oracles() -> serde_json::Value {
    harness::oracles(12, 5, 2)
}

// ------------------------------------------------------------------ running

const RUN: &str = "runs/one";

fn on(disk: &SimDisk, shards: usize, faults: Option<u64>) -> Engine<'static> {
    let faults = faults.map(|seed| Faults { seed, failure: 0.3, repeat: 0.3 });
    let providers = vec![Box::new(polity_models::models::sim::Sim::standard()) as Box<dyn Provider>, fickle()];
    Engine {
        registry: leaves(),
        providers: Arc::new(Providers::of(providers)),
        ..engine(Arc::new(disk.clone()), shards, faults)
    }
}

/// Runs to the end; with `stop`, stops after some rounds and resumes.
fn ran(prepared: &Prepared, shards: usize, faults: Option<u64>, stop: Option<u32>) -> SimDisk {
    let disk = SimDisk::default();
    let engine = on(&disk, shards, faults);
    let run = Path::new(RUN);
    let summary = match stop {
        None => engine.run(prepared, run, &mut Unwatched).unwrap(),
        Some(after) => {
            let mut watch = StopAfter(after, engine.stop.clone());
            let stopped = engine.run(prepared, run, &mut watch).unwrap();
            assert_eq!(stopped.status, RunStatus::Stopped);
            on(&disk, 3 - shards, faults.map(|seed| seed + 1)).resume(run, &mut Unwatched).unwrap()
        }
    };
    assert_eq!(summary.status, RunStatus::Done);
    disk
}

// ------------------------------------------------------------------ recounting

/// Returns the answers that a run used, in the order of the table, from its journal and its acts: every completed turn acts.
fn used(disk: &SimDisk, run: &Path, lag: u32, evaluation: bool) -> Vec<Answer> {
    let (events, _) = events(Arc::new(disk.clone()), run).unwrap();
    let acts = tables(disk, run).remove("acts").unwrap();
    let numbers = |name: &str| acts.iter().find(|(column, _)| column == name).unwrap().1.numbers();
    let acted: BTreeSet<(u32, u32)> = numbers("agent")
        .into_iter()
        .zip(numbers("round"))
        .map(|(agent, round)| (agent.unwrap() as u32, round.unwrap() as u32))
        .collect();
    let complete = |id: &EffectId| evaluation || acted.contains(&(id.actor, id.round + lag));
    let mut used: Vec<Answer> = answers(&events).into_values().flatten().filter(|a| complete(&a.id)).collect();
    used.sort_by_key(|a| (a.id.round, a.id.item, a.id.actor, a.id.asker, a.id.n));
    used
}

fn assert_recounts(disk: &SimDisk, run: &Path, lag: u32, evaluation: bool, what: &str) -> Vec<Answer> {
    let used = used(disk, run, lag, evaluation);
    let table = results::open(disk, run).unwrap().table("calls", &[], usize::MAX).unwrap();
    let mut left: BTreeMap<String, ColumnData> = table.into_iter().collect();
    let mut texts = |name: &str, of: &dyn Fn(&Answer) -> String| {
        let expected: Vec<Option<String>> = used.iter().map(|a| Some(of(a))).collect();
        assert!(left.remove(name).unwrap().texts() == expected, "{what}: {name}");
    };
    texts("purpose", &|a| a.request.purpose.clone());
    texts("model", &|a| a.request.model.to_string());
    texts("outcome", &|a| {
        let outcome = format!("{:?}", a.outcome).to_lowercase();
        outcome.split(' ').next().unwrap().to_string()
    });
    texts("asker", &|a| format!("{:?}", a.id.asker).to_lowercase());
    texts("resolution", &|a| format!("{:?}", a.resolution()).to_lowercase());
    texts("prompt", &|a| {
        let said = |m: &ChatMessage| format!("[{}]\n{}", format!("{:?}", m.role).to_lowercase(), m.rendered());
        a.request.messages.iter().map(said).collect::<Vec<_>>().join("\n\n")
    });
    texts("answer", &|a| match &a.outcome {
        Outcome::Reply { raw, .. } | Outcome::Invalid { raw, .. } | Outcome::Refused { raw } => raw.clone(),
        Outcome::Failed { why } | Outcome::Denied { why } => why.clone(),
    });
    texts("reasoning", &|a| a.reasoning.clone().unwrap_or_default());
    let mut numbers = |name: &str, of: &dyn Fn(&Answer) -> f64| {
        let expected: Vec<Option<f64>> = used.iter().map(|a| Some(of(a))).collect();
        assert!(left.remove(name).unwrap().numbers() == expected, "{what}: {name}");
    };
    if evaluation {
        numbers("item", &|a| f64::from(a.id.item));
    }
    numbers("round", &|a| f64::from(a.id.round));
    numbers("agent", &|a| f64::from(a.id.actor));
    numbers("n", &|a| f64::from(a.id.n));
    numbers("attempt", &|a| a.request.step.map_or(0.0, |step| f64::from(step.nth)));
    numbers("tokens_in", &|a| a.usage.tokens_in as f64);
    numbers("tokens_out", &|a| a.usage.tokens_out as f64);
    numbers("tokens_cached", &|a| a.usage.tokens_cached as f64);
    numbers("tokens_thinking", &|a| a.usage.tokens_thinking as f64);
    numbers("cost_usd", &|a| a.usage.cost_usd);
    numbers("latency_ms", &|a| a.usage.latency_ms);
    numbers("waited_ms", &|a| a.usage.waited_ms);
    numbers("retries", &|a| f64::from(a.usage.retries));
    numbers("shared", &|a| f64::from(u8::from(a.usage.shared)));
    numbers("estimated", &|a| f64::from(u8::from(a.usage.estimated)));
    assert!(left.is_empty(), "{what}: nobody recounts {:?}", left.keys());
    used
}

/// Returns the table `health`'s counts of questions.
fn counted(disk: &SimDisk, run: &Path, measure: &str) -> f64 {
    let table = results::open(disk, run).unwrap().closed("health", &["measure", "value"], usize::MAX).unwrap();
    let (measures, values) = (table[0].1.texts(), table[1].1.numbers());
    measures.iter().zip(values).filter(|(m, _)| m.as_deref() == Some(measure)).map(|(_, v)| v.unwrap()).sum()
}

/// Runs a scenario in many ways: the table always equals the recount, and is always the same except for volatile columns.
fn check(name: &str, scenario: &serde_json::Value, folder: &Path, stops: &[u32]) -> (SimDisk, Vec<Answer>) {
    let lag = scenario["answers"]["lag"].as_u64().unwrap_or(0) as u32;
    let evaluation = scenario.get("method").is_some();
    let prepared = prepared(scenario, folder);
    let run = Path::new(RUN);
    let whole = ran(&prepared, 1, None, None);
    let calls = assert_recounts(&whole, run, lag, evaluation, name);
    let expected = tables(&whole, run);
    assert!(!calls.is_empty() && expected["calls"].len() + 4 == 23 - usize::from(!evaluation), "{name}");
    let ends = |a: &&Answer| format!("{:?}", a.resolution()) != "Again";
    assert_eq!(counted(&whole, run, "questions"), calls.iter().filter(ends).count() as f64, "{name}");
    let mut ways = vec![(2, None, None), (1, Some(1), None), (2, Some(2), None)];
    ways.extend(stops.iter().flat_map(|after| [(1, Some(3), Some(*after)), (2, None, Some(*after))]));
    for (shards, faults, stop) in ways {
        let what = format!("{name}: {shards} shards, faults {faults:?}, stopped after {stop:?}");
        let disk = ran(&prepared, shards, faults, stop);
        assert_recounts(&disk, run, lag, evaluation, &what);
        assert_same_tables(&tables(&disk, run), &expected, &what);
    }
    (whole, calls)
}

// ------------------------------------------------------------------ tests

#[test]
fn calls_of_a_society_with_ladders_are_a_recount() {
    let folder = scratch("calls-ladder");
    let (disk, calls) = check("clerks", &clerks(rules(20, 5), 0), &folder, &[1, 2, 4]);
    let resolutions: BTreeSet<&str> = calls.iter().map(|a| a.resolution().name()).collect();
    assert_eq!(
        resolutions,
        BTreeSet::from(["fit", "repaired", "reasked", "again", "default", "none"]),
        "all are tried"
    );
    let lost = calls.iter().filter(|a| ["default", "none"].contains(&a.resolution().name())).count() as f64;
    let questions = calls.iter().filter(|a| a.resolution().name() != "again").count() as f64;
    assert_eq!(counted(&disk, Path::new(RUN), "unanswered"), lost);
    let alarms = alarms(&results::open(&disk, Path::new(RUN)).unwrap()).unwrap();
    let alarm = alarms.iter().find(|alarm| alarm.kind == "defaults").unwrap();
    assert_eq!((alarm.figure, alarm.threshold, alarm.subject.as_str()), (lost / questions, DEFAULTS, "all"));
    assert!(alarm.message.starts_with(&format!("{lost} of {questions} questions to models (")), "{}", alarm.message);
}

#[test]
fn calls_of_turns_that_wait_are_a_recount() {
    let folder = scratch("calls-lag");
    let (disk, calls) = check("clerks with a lag", &clerks(rules(20, 6), 2), &folder, &[1, 3, 5]);
    // Turns begin in rounds 0 and 3; those of the last rounds would complete after the end.
    let rounds: BTreeSet<u32> = calls.iter().map(|a| a.id.round).collect();
    assert!(rounds.iter().all(|round| round + 2 < 6), "{rounds:?}");
    let (events, _) = events(Arc::new(disk), Path::new(RUN)).unwrap();
    assert!(answers(&events).len() >= calls.len());
    check("oracles with a lag", &oracles(), &folder, &[1, 3]);
}

#[test]
fn calls_of_agents_that_die_while_they_wait_are_left_out() {
    let folder = scratch("calls-deaths");
    let (disk, calls) = check("a village", &clerks(village(40, 14), 2), &folder, &[2, 5]);
    let (events, _) = events(Arc::new(disk), Path::new(RUN)).unwrap();
    let last = calls.last().unwrap().id.round;
    let before_the_end = answers(&events).into_keys().filter(|id| id.round <= last).count();
    assert!(
        before_the_end > calls.len(),
        "somebody dies while a turn waits: {before_the_end} answers, {} used",
        calls.len()
    );
}

#[test]
fn calls_of_agents_one_after_the_other_are_a_recount() {
    let folder = scratch("calls-order");
    check("in order", &clerks(in_order(9, 4), 0), &folder, &[1, 3]);
}

#[test]
fn calls_of_an_evaluation_are_a_recount() {
    let folder = scratch("calls-team");
    for method in ["council", "debate"] {
        // Six items pass all rounds before the others begin.
        let mut scenario = team(&folder, method, 12, 3);
        scenario["max_concurrent"] = 6.into();
        check(method, &scenario, &folder, &[1, 2]);
    }
}

#[test]
fn a_fork_has_the_calls_of_the_rounds_that_it_shares() {
    let folder = scratch("calls-fork");
    for (name, lag) in [("wait", 0), ("lag", 2)] {
        let prepared = prepared(&clerks(rules(20, 6), lag), &folder);
        let disk = ran(&prepared, 1, None, None);
        let edits = vec![("world.fraction".to_string(), polity_kernel::tree::Node::from_json(&json!(0.3)))];
        let fork = Path::new("runs/fork");
        let forked = on(&disk, 2, Some(4)).fork(Path::new(RUN), 4, edits, Vec::new(), fork, &mut Unwatched).unwrap();
        assert_eq!(forked.status, RunStatus::Done);
        let (old, new) = (used(&disk, Path::new(RUN), lag, false), assert_recounts(&disk, fork, lag, false, name));
        let shared = |calls: Vec<Answer>| calls.into_iter().filter(|a| a.id.round < 4).collect::<Vec<_>>();
        assert_eq!(shared(old), shared(new), "{name}");
    }
}

#[test]
fn who_asks_nobody_or_wants_no_table_has_none() {
    let folder = scratch("calls-none");
    let has = |disk: &SimDisk| disk.list(&Path::new(RUN).join("tables")).unwrap().contains(&"calls".to_string());
    assert!(!has(&ran(&prepared(&rules(20, 3), &folder), 1, None, None)), "nobody is asked");
    let mut scenario = clerks(rules(20, 3), 0);
    scenario["record"] = json!({"calls": false});
    let disk = ran(&prepared(&scenario, &folder), 1, None, Some(2));
    assert!(!has(&disk), "nothing is to be recorded");
    let alarms = alarms(&results::open(&disk, Path::new(RUN)).unwrap()).unwrap();
    assert!(alarms.iter().any(|alarm| alarm.kind == "defaults"), "the alarm needs no table of calls: {alarms:?}");
}

/// Lines of `polity calls --json`.
fn lines(args: &[&str]) -> Vec<serde_json::Value> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_polity")).arg("calls").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_command_tells_the_journal_of_a_run_in_any_state() {
    let folder = scratch("calls-command");
    let scenario = write_scenario(&folder, &team(&folder, "debate", 6, 2));
    let (whole, stopped) = (folder.join("whole"), folder.join("stopped"));
    assert_eq!(polity(&["run", arg(&scenario), "--out", arg(&whole)]).code, Some(0));
    assert_eq!(polity(&["run", arg(&scenario), "--out", arg(&stopped), "--max-calls", "10"]).code, Some(7));
    // The table, line by line.
    let all = lines(&[arg(&whole), "--json"]);
    let table = polity_export(&whole);
    assert_eq!(all, table);
    assert_eq!(all.len(), 36);
    // A process that works on the run holds its lock, and its output may be torn at the end.
    let lock = RealDisk.lock(&stopped.join("lock")).unwrap();
    let part = lines(&[arg(&stopped), "--json"]);
    assert_eq!(part.len(), 10);
    assert!(!stopped.join("tables/calls").exists(), "no round is complete");
    let journal = stopped.join("journal");
    let segment = std::fs::read_dir(&journal)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|x| x == "journal"))
        .unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes.extend([7; 11]);
    std::fs::write(&segment, bytes).unwrap();
    assert_eq!(lines(&[arg(&stopped), "--json"]), part);
    drop(lock);
    // What is wanted.
    let of = |key: &str, value: u32| all.iter().filter(|call| call[key] == value).cloned().collect::<Vec<_>>();
    assert_eq!(lines(&[arg(&whole), "--json", "--agent", "1"]), of("agent", 1));
    assert_eq!(lines(&[arg(&whole), "--json", "--round", "1"]), of("round", 1));
    assert_eq!(lines(&[arg(&whole), "--json", "--item", "4"]), of("item", 4));
    assert_eq!(lines(&[arg(&whole), "--json", "--limit", "5"]), all[..5]);
    assert_eq!(lines(&[arg(&whole), "--json", "--limit", "0"]).len(), 0);
    // For people.
    let show = |more: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_polity"))
            .args(["calls", arg(&whole), "--limit", "1"])
            .args(more)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = show(&["--full"]);
    assert!(shown.starts_with("== item 0, round 0, agent 0, question 0 | solve | sim/medium | "), "{shown}");
    let answer = all[0]["answer"].as_str().unwrap().lines().next().unwrap();
    assert!(shown.contains("-> answer") && shown.contains(answer), "{shown}");
}

/// The table as lines of JSON.
fn polity_export(run: &Path) -> Vec<serde_json::Value> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["export", arg(run), "--table", "calls", "--format", "jsonl"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let csv = std::process::Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["export", arg(run), "--table", "calls"])
        .output()
        .unwrap();
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(
        csv.starts_with("item,round,agent,asker,n,purpose,model,outcome,resolution,attempt,tokens_in,tokens_out,"),
        "{csv}"
    );
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn wrong_wishes_are_told_what_there_is() {
    let folder = scratch("calls-wrong");
    let scenario = write_scenario(&folder, &team(&folder, "debate", 2, 2));
    let run = folder.join("run");
    assert_eq!(polity(&["run", arg(&scenario), "--out", arg(&run)]).code, Some(0));
    let society = folder.join("society");
    std::fs::write(folder.join("society.yaml"), rules(20, 2).to_string()).unwrap();
    assert_eq!(polity(&["run", arg(&folder.join("society.yaml")), "--out", arg(&society)]).code, Some(0));
    let nowhere = folder.join("nowhere");
    for (args, code, words) in [
        (vec![arg(&run), "--agent", "7"], 2, "agent 7 asked no questions; the agents that did: 0 to 2"),
        (vec![arg(&run), "--round", "2"], 2, "there is no round 2: the run has 2 rounds, numbered from 0"),
        (vec![arg(&run), "--item", "9"], 2, "no question was asked about item 9; the items with questions: 0 to 1"),
        (vec![arg(&run), "--purpose", "x"], 2, "no question has the purpose `x`; the purposes are"),
        (vec![arg(&society), "--item", "0"], 2, "a society has no items"),
        (vec![arg(&society), "--round", "1"], 0, "no such call so far"),
        (vec![arg(&society)], 0, "no such call so far"),
        (vec![arg(&nowhere)], 3, "does not exist"),
        (vec![arg(&folder)], 3, "holds no run that began"),
    ] {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_polity")).arg("calls").args(&args).output().unwrap();
        let notes = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {notes}");
        assert!(notes.contains(words), "{args:?}: {notes}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn the_report_counts_calls_by_model() {
    let folder = scratch("calls-report");
    let scenario = write_scenario(&folder, &team(&folder, "debate", 6, 2));
    let run = folder.join("run");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["run", arg(&scenario), "--out", arg(&run)])
        .output()
        .unwrap();
    assert!(output.status.success());
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    for words in ["Model calls", "Model answers", "sim/medium", "the run does not wait for them", "default or none, %"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("cohort</th>"), "members of a team have no cohort");
}
