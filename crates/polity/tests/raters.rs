//! Labels and judges of failure modes: kappas against another formula, a scripted judge of an evaluation and of a society, budgets by the mock server's count, wrong files.

use crate::harness::{self, Said, arg, command, engine, polity, prepared, said, scratch, verify};
use polity_driver::diagnosis::{Agreement, Ratings, Subject, read_labels};
use polity_driver::run::Engine;
use polity_kernel::ask::Request;
use polity_kernel::failure::FailureMode;
use polity_kernel::scenario::Budget;
use polity_models::mock_server::{MockServer, Options};
use polity_models::models::{InProcess, Provider, Providers, Reply};
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

const ITEMS: u32 = 10;
const CASES: &str = "Case";

/// A debate on ten items with two planted faults.
fn debate(folder: &Path) -> PathBuf {
    let item = |i: u32| json!({"question": format!("{CASES} {i}: how many are there?"), "answer": (i + 3).to_string()});
    let lines: Vec<String> = (0..ITEMS).map(|i| item(i).to_string()).collect();
    fs::write(folder.join("items.jsonl"), lines.join("\n")).unwrap();
    let scenario = json!({
        "polity": 2, "seed": 5, "rounds": 3, "agents": 3, "model": "sim/perfect", "method": {"kind": "debate"},
        "items": {"file": "items.jsonl", "answer": "answer", "scorer": "number"},
        "faults": [
            {"mode": "step-repetition", "member": 1, "items": [2, 5]},
            {"mode": "information-withholding", "member": 0, "items": [4]},
        ],
    });
    let file = folder.join("debate.yaml");
    fs::write(&file, scenario.to_string()).unwrap();
    let run = folder.join("run");
    let said = polity(&["run", arg(&file), "--out", arg(&run)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    run
}

/// Cohen's kappa of two raters who say yes or no, from the four cells of their table: another formula than that of `polity-stats`.
fn kappa(pairs: &[(bool, bool)]) -> Option<f64> {
    let cell = |wanted: (bool, bool)| pairs.iter().filter(|pair| **pair == wanted).count() as f64;
    let (a, b, c, d) = (cell((true, true)), cell((true, false)), cell((false, true)), cell((false, false)));
    let below = (a + b) * (b + d) + (a + c) * (c + d);
    (below > 0.0).then(|| 2.0 * (a * d - b * c) / below)
}

fn near(a: &Value, b: Option<f64>) -> bool {
    match (a.as_f64(), b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-12,
        (None, None) => a.is_null(),
        _ => false,
    }
}

type Named = BTreeMap<u32, BTreeSet<&'static str>>;

/// Checks a printed agreement against the modes that each of two raters names.
fn check(agreement: &Value, first: &Named, second: &Named) {
    let both: Vec<(&BTreeSet<&str>, &BTreeSet<&str>)> =
        first.iter().filter_map(|(item, modes)| Some((modes, second.get(item)?))).collect();
    let of = |mode: &str| -> Vec<(bool, bool)> {
        both.iter().map(|(first, second)| (first.contains(mode), second.contains(mode))).collect()
    };
    let names = FailureMode::ALL.map(FailureMode::name);
    let all: Vec<(bool, bool)> = names.iter().flat_map(|mode| of(mode)).collect();
    assert_eq!(agreement["items"], json!(both.len()));
    assert!(near(&agreement["kappa"], kappa(&all)), "{agreement:#}, not {:?}", kappa(&all));
    for (mode, told) in names.iter().zip(agreement["modes"].as_array().unwrap()) {
        let pairs = of(mode);
        assert_eq!(told["mode"], json!(mode));
        assert!(near(&told["kappa"], kappa(&pairs)), "{told}, not {:?}", kappa(&pairs));
        assert_eq!(told["both"], json!(pairs.iter().filter(|pair| **pair == (true, true)).count()));
    }
}

/// What the rules name in a run, by item.
fn by_rules(report: &Value) -> Named {
    let mut named: Named = (0..ITEMS).map(|item| (item, BTreeSet::new())).collect();
    for symptom in report["runs"][0]["symptoms"].as_array().unwrap() {
        let mode = FailureMode::ALL.into_iter().find(|mode| symptom["mode"] == mode.name()).unwrap();
        named.get_mut(&(symptom["item"].as_u64().unwrap() as u32)).unwrap().insert(mode.name());
    }
    named
}

#[test]
fn kappa_against_labels_is_that_of_another_formula() {
    let folder = scratch("raters-labels");
    let run = debate(&folder);
    // One fault is missed, one is named that is not there, and item 9 has no label.
    let labels: Named = (0..9)
        .map(|item| match item {
            2 => (item, BTreeSet::from(["step-repetition", "conversation-reset"])),
            4 => (item, BTreeSet::from(["information-withholding"])),
            7 => (item, BTreeSet::from(["task-derailment"])),
            _ => (item, BTreeSet::new()),
        })
        .collect();
    let row = |(item, modes): (&u32, &BTreeSet<&str>)| {
        format!("{item},{}", modes.iter().copied().collect::<Vec<_>>().join(" "))
    };
    let file = folder.join("labels.csv");
    fs::write(&file, format!("item,modes\n{}\n", labels.iter().map(row).collect::<Vec<_>>().join("\n"))).unwrap();
    let said = polity(&["diagnose", arg(&run), "--labels", arg(&file)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let agreement = said.json["agreement"].as_array().unwrap();
    assert_eq!(
        (agreement.len(), &agreement[0]["rater"], &agreement[0]["against"]),
        (1, &json!("rules"), &json!("labels"))
    );
    let rules = by_rules(&said.json);
    assert!(rules[&2].contains("step-repetition") && rules[&4].contains("information-withholding"), "{rules:?}");
    check(&agreement[0], &rules, &labels);
    println!("kappa {}, by hand {}", agreement[0]["kappa"], agreement[0]["agreement"]);
    // The same labels as JSON give the same.
    let entries: Vec<Value> = labels.iter().map(|(item, modes)| json!({"item": item, "modes": modes})).collect();
    let file = folder.join("labels.json");
    fs::write(&file, json!(entries).to_string()).unwrap();
    let again = polity(&["diagnose", arg(&run), "--labels", arg(&file)]);
    assert_eq!(again.json["agreement"], said.json["agreement"]);
    // For people.
    let mut plain = Command::new(env!("CARGO_BIN_EXE_polity"));
    let output = plain.args(["diagnose", arg(&run), "--labels", arg(&file)]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("rules against labels, 9 rated by both: kappa 0."), "{text}");
}

#[test]
fn wrong_labels_are_refused() {
    let folder = scratch("raters-wrong");
    let run = debate(&folder);
    for (name, text, words) in [
        ("a.csv", "item,modes\n3,step-repetitions\n", "did you mean `step-repetition`?"),
        ("b.csv", "item,modes\n10,1.3\n", "there is no item 10 that has ended"),
        ("c.csv", "item,label\n1,1.3\n", "there is a column `label`"),
        ("d.json", "{}", "d.json"),
        ("e.csv", "run,item,modes\nruns/a/1,1,\n", "this is one run"),
    ] {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        let said = polity(&["diagnose", arg(&run), "--labels", arg(&file)]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.text("error").contains(words) && said.text("error").contains(name), "{said:?}");
    }
    let said = polity(&["diagnose", arg(&run), "--labels", arg(&folder.join("none.csv"))]);
    assert!(said.code == Some(2) && said.text("error").contains("none.csv"), "{said:?}");
}

/// What the scripted judge names in an item: `None` if its reply does not fit.
fn script(item: u32) -> Option<BTreeSet<&'static str>> {
    match item {
        2 => Some(BTreeSet::from(["step-repetition"])),
        4 => Some(BTreeSet::from(["information-withholding", "premature-termination"])),
        6 => Some(BTreeSet::from(["task-derailment"])),
        8 => None,
        _ => Some(BTreeSet::new()),
    }
}

/// An engine with a judge that follows the script, and the requests that it gets.
fn scripted() -> (Engine<'static>, Arc<Mutex<Vec<Request>>>) {
    let heard: Arc<Mutex<Vec<Request>>> = Arc::default();
    let listening = heard.clone();
    let answer = move |request: &Request| {
        listening.lock().unwrap().push(request.clone());
        let text = request.rendered();
        let case = (0..ITEMS).find(|i| text.contains(&format!("{CASES} {i}:"))).unwrap();
        let Some(named) = script(case) else { return Reply::Text("There is something wrong with it.".into()) };
        let mut reply = json!({"reasons": format!("I read {case}.")});
        for mode in FailureMode::ALL {
            reply[mode.name().replace('-', "_")] = named.contains(mode.name()).into();
        }
        reply.into()
    };
    let judge: Arc<dyn Provider> = Arc::new(InProcess::new("script").with(Some("judge"), answer));
    let providers = Arc::new(Providers::standard().with([judge]));
    (Engine { providers, ..engine(Arc::new(RealDisk), 1, None) }, heard)
}

#[test]
fn a_scripted_judge_is_heard_as_it_speaks() {
    let folder = scratch("raters-judge");
    let run = debate(&folder);
    let (engine, heard) = scripted();
    let judged = engine.judge(&run, "script/judge").unwrap();
    assert_eq!((judged.calls, judged.left, judged.verdicts.len()), (10, 0, 10));
    let said: BTreeMap<u32, Option<BTreeSet<&str>>> = judged
        .verdicts
        .iter()
        .map(|it| (it.subject.number(), it.modes.as_ref().map(|modes| modes.iter().map(|mode| mode.name()).collect())))
        .collect();
    assert_eq!(said, (0..ITEMS).map(|item| (item, script(item))).collect());
    assert_eq!(judged.verdicts[3].reasons, "I read 3.");
    // It is shown the steps of every member, and what the modes mean.
    let heard = heard.lock().unwrap();
    for request in heard.iter() {
        let text = request.rendered();
        assert!(
            ["[round 0, Agent 1, solve]", "[round 2, Agent 3, ", "`step_repetition` (1.3)"]
                .iter()
                .all(|it| text.contains(it)),
            "{text}"
        );
    }
    // Its agreement with the labels, which are the script's but for two items; the reply that does not fit is left out.
    let file = folder.join("labels.csv");
    fs::write(&file, "item,modes\n0,\n1,\n2,1.3\n3,2.3\n4,2.4\n5,\n6,2.3\n7,\n8,1.3\n9,\n").unwrap();
    let labels = read_labels(&file, &fs::read(&file).unwrap()).unwrap();
    let modes = judged.verdicts.iter().filter_map(|it| Some(((String::new(), it.subject), it.modes.clone()?)));
    let judge = Ratings { rater: "judge".into(), modes: modes.collect() };
    let found = serde_json::to_value(Agreement::of(&judge, &labels)).unwrap();
    let by_judge: Named = (0..ITEMS).filter_map(|item| Some((item, script(item)?))).collect();
    let by_label = |item: u32| match item {
        2 | 8 => BTreeSet::from(["step-repetition"]),
        3 | 6 => BTreeSet::from(["task-derailment"]),
        4 => BTreeSet::from(["information-withholding"]),
        _ => BTreeSet::new(),
    };
    check(&found, &by_judge, &(0..ITEMS).map(|item| (item, by_label(item))).collect());
    assert_eq!(found["items"], json!(9));
    println!("kappa of the scripted judge: {}", found["kappa"]);
    assert_eq!(verify(&run).text("status"), "sound");
}

/// The names of the modes in a verdict as JSON; `None` if the reply did not fit.
fn names(modes: &Value) -> Option<BTreeSet<&'static str>> {
    let modes = modes.as_array()?;
    Some(FailureMode::ALL.map(FailureMode::name).into_iter().filter(|name| modes.contains(&json!(name))).collect())
}

/// What a command says whose provider `openai` is this server.
fn said_of(command: &mut Command, server: &MockServer) -> Said {
    said(&command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", "a-key-for-tests").output().unwrap())
}

#[test]
fn a_judge_keeps_to_its_budget_and_asks_the_first_items() {
    let folder = scratch("raters-budget");
    let run = debate(&folder);
    let (judge, heard) = scripted();
    let judge = Engine { budget: Budget { calls: Some(4), ..Budget::default() }, ..judge };
    let judged = judge.judge(&run, "script/judge").unwrap();
    let items: Vec<u32> = judged.verdicts.iter().map(|it| it.subject.number()).collect();
    assert_eq!((items, judged.left, heard.lock().unwrap().len()), (vec![0, 1, 2, 3], 6, 4));
    assert!(judged.why_left.unwrap().contains("4 calls, of which 4 have been made"));
    // Over the wire of a provider, by the server's own count.
    let server = MockServer::start(Options::default()).unwrap();
    let ask = |more: &[&str]| {
        let mut args = vec!["diagnose", arg(&run), "--judge", "openai/medium"];
        args.extend(more);
        said_of(&mut command(&args), &server)
    };
    let few = ask(&["--max-calls", "3"]);
    assert_eq!(few.code, Some(0), "{few:?}");
    assert_eq!((&few.json["judged"]["calls"], &few.json["judged"]["left"]), (&json!(3), &json!(7)));
    assert_eq!(server.stats().answered, 3);
    assert!(few.notes.contains("the judge was not asked about 7 items"), "{few:?}");
    let none = ask(&["--max-cost", "0.000001", "--price", "openai/medium=1,1"]);
    assert_eq!((&none.json["judged"]["calls"], server.stats().answered), (&json!(0), 3), "{none:?}");
    let unknown = ask(&["--max-cost", "1"]);
    assert!(unknown.code != Some(0) && unknown.text("error").contains("price"), "{unknown:?}");
    let all = ask(&[]);
    assert_eq!((&all.json["judged"]["calls"], server.stats().answered), (&json!(10), 13), "{all:?}");
    // Its kappa with the rules is that of its printed verdicts.
    let verdicts = all.json["judged"]["verdicts"].as_array().unwrap();
    let by_judge: Named =
        verdicts.iter().filter_map(|it| Some((it["item"].as_u64()? as u32, names(&it["modes"])?))).collect();
    assert_eq!(all.json["agreement"][0]["rater"], "rules");
    check(&all.json["agreement"][0], &by_rules(&all.json), &by_judge);
    assert_eq!(verify(&run).text("status"), "sound");
    let missing = polity(&["diagnose", arg(&run), "--judge", "nobody/knows"]);
    assert!(missing.code != Some(0) && missing.text("error").contains("nobody"), "{missing:?}");
}

/// Runs a society of four players. Two play, agent 2 says the same in each round, and agent 3 leaves the topic.
fn society(folder: &Path) -> (PathBuf, Engine<'static>) {
    let cohort = |count: u32, model: &str| {
        let policy = json!({"kind": "mind", "model": format!("script/{model}"), "think": "in-reply"});
        json!({"count": count, "policy": policy})
    };
    let scenario = json!({
        "polity": 2, "seed": 3, "rounds": 3, "agents": 4, "world": {"kind": "guess-average", "announce": "mean"},
        "cohorts": [cohort(2, "plays"), cohort(1, "repeats"), cohort(1, "strays")],
        "metrics": [{"kind": "mean", "of": "guess"}],
    });
    let plays = |request: &Request| {
        let thoughts = format!("I have been shown {} letters.", request.rendered().len());
        json!({"thoughts": thoughts, "guess": 30})
    };
    let judge = |request: &Request| {
        let record = request.messages.last().unwrap().rendered();
        let mut reply = json!({"reasons": record.lines().next().unwrap()});
        for mode in FailureMode::ALL {
            reply[mode.name().replace('-', "_")] = named_by_reading(&record).contains(mode.name()).into();
        }
        reply
    };
    let script = InProcess::new("script")
        .with(Some("plays"), plays)
        .with(Some("repeats"), |_: &Request| json!({"thoughts": SAME, "guess": 30}))
        .with(Some("strays"), |_: &Request| json!({"thoughts": "Let us speak about the weather.", "guess": 30}))
        .with(Some("judge"), judge);
    let providers = Arc::new(Providers::standard().with([Arc::new(script) as Arc<dyn Provider>]));
    let engine = Engine { providers, ..engine(Arc::new(RealDisk), 1, None) };
    let run = folder.join("run");
    harness::run(&engine, &prepared(&scenario, folder), &run).unwrap();
    (run, engine)
}

/// What agent 2 thinks in each round.
const SAME: &str = "I take two thirds of the average.";

/// The modes that a reader finds in the record of an agent.
fn named_by_reading(record: &str) -> BTreeSet<&'static str> {
    let found =
        [(record.matches(SAME).count() == 3, "step-repetition"), (record.contains("the weather"), "task-derailment")];
    found.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
}

#[test]
fn a_judge_reads_what_each_agent_of_a_society_was_asked_and_replied() {
    let folder = scratch("raters-society");
    let (run, engine) = society(&folder);
    let judged = engine.judge(&run, "script/judge").unwrap();
    let named = |modes: &BTreeSet<FailureMode>| modes.iter().map(|mode| mode.name()).collect::<Vec<_>>();
    let said: Vec<(Subject, Vec<&str>)> =
        judged.verdicts.iter().map(|it| (it.subject, named(it.modes.as_ref().unwrap()))).collect();
    let expected = [vec![], vec![], vec!["step-repetition"], vec!["task-derailment"]];
    assert_eq!(said, (0..).map(Subject::Agent).zip(expected).collect::<Vec<_>>());
    assert_eq!(
        judged.verdicts[2].reasons,
        "Agent 2 of a society in the world `guess-average`. It has no task with a right answer."
    );
    // Two calls are enough for the first two agents.
    let few = Engine { budget: Budget { calls: Some(2), ..Budget::default() }, ..engine };
    let few = few.judge(&run, "script/judge").unwrap();
    assert_eq!((few.verdicts.len(), few.left), (2, 2));

    // On the command line, with labels, and a judge that another server simulates.
    let labels = folder.join("labels.csv");
    fs::write(&labels, "agent,modes\n0,\n1,\n2,1.3\n3,2.3\n").unwrap();
    let server = MockServer::start(Options::default()).unwrap();
    let ask = |more: &[&str]| {
        let mut args = vec!["diagnose", arg(&run), "--judge", "openai/medium"];
        args.extend(more);
        said_of(&mut command(&args), &server)
    };
    let found = ask(&["--labels", arg(&labels)]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert!(found.json["runs"].is_null() && found.json["tally"].is_null(), "{found:?}");
    let verdicts = found.json["judged"]["verdicts"].as_array().unwrap();
    let by_judge: Named =
        verdicts.iter().map(|it| (it["agent"].as_u64().unwrap() as u32, names(&it["modes"]).unwrap())).collect();
    let by_label = BTreeMap::from([
        (0, BTreeSet::new()),
        (1, BTreeSet::new()),
        (2, BTreeSet::from(["step-repetition"])),
        (3, BTreeSet::from(["task-derailment"])),
    ]);
    let agreement = found.json["agreement"].as_array().unwrap();
    assert_eq!((agreement.len(), &agreement[0]["against"]), (1, &json!("labels")));
    check(&agreement[0], &by_judge, &by_label);
    assert_eq!(server.stats().answered, 4);
    // Labels of items, or of an agent that is not there, are refused before anybody is asked.
    for (text, words) in [("item,modes\n0,\n", "this is a society"), ("agent,modes\n4,\n", "there is no agent 4")] {
        fs::write(&labels, text).unwrap();
        let refused = ask(&["--labels", arg(&labels)]);
        assert!(refused.code == Some(2) && refused.text("error").contains(words), "{refused:?}");
    }
    assert_eq!(server.stats().answered, 4);
    assert_eq!(verify(&run).text("status"), "sound");
}
