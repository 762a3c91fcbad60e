//! Planted faults and `polity diagnose`: what was planted is named, clean runs get no label, evidence is in the record.
//!
//! The long form: `POLITY_SEEDS=20 cargo test -p polity --test all diagnose::`.

use crate::harness::{Said, arg, from_env, polity, scratch, verify};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The object that `polity diagnose` prints of a folder.
fn diagnosed(folder: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_polity")).args(["diagnose", arg(folder), "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names of the modes in the symptoms of a run.
fn named(run: &Value) -> Vec<&str> {
    run["symptoms"].as_array().unwrap().iter().map(|symptom| symptom["mode"].as_str().unwrap()).collect()
}

/// Runs all arms of a scenario of `systems/mast`. Every planted fault must be named in nine of ten runs, and nine of ten clean runs must
/// get no label.
fn measured(name: &str) -> Value {
    let seeds = from_env("POLITY_SEEDS", 3);
    let folder = scratch(&format!("mast-{name}")).join("sweep");
    let file = root().join(format!("systems/mast/{name}.yaml"));
    let said = polity(&["sweep", arg(&file), "--seeds", &seeds.to_string(), "--out", arg(&folder)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = diagnosed(&folder);
    let tally = &found["tally"];
    let enough = |part: &Value, of: &Value| 10 * number(part) >= 9 * number(of);
    let missed: Vec<&Value> = tally["modes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|mode| !enough(&mode["named_runs"], &mode["planted_runs"]))
        .collect();
    assert!(missed.is_empty(), "{name}: {missed:#?}");
    assert_eq!(number(&tally["clean_runs"]), u64::from(seeds));
    assert!(enough(&tally["unlabelled_clean_runs"], &tally["clean_runs"]), "{name}: {tally:#}");
    found
}

/// How many modes are planted in a sweep.
fn planted(found: &Value) -> usize {
    let modes = found["tally"]["modes"].as_array().unwrap();
    modes.iter().filter(|mode| number(&mode["planted_runs"]) > 0).count()
}

#[test]
fn faults_planted_in_a_debate_are_named() {
    assert_eq!(planted(&measured("debate")), 10);
}

#[test]
fn faults_planted_in_self_refinement_are_named() {
    assert_eq!(planted(&measured("self-refine")), 11);
}

#[test]
fn faults_planted_in_a_group_with_an_evaluator_are_named() {
    assert_eq!(planted(&measured("agentverse")), 12);
}

#[test]
fn faults_planted_in_a_mixture_are_named() {
    assert_eq!(planted(&measured("mixture-of-agents")), 7);
}

/// Whether this is at least nine in ten of that, and that is something.
fn most(part: &Value, of: &Value) -> bool {
    number(of) > 0 && 10 * number(part) >= 9 * number(of)
}

/// The calls of a run.
fn calls_of(run: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_polity")).args(["calls", arg(run), "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Three paradigms of a discussion and a debate, with personas. What is planted is flagged at its turn; placebos, which replace the same
/// replies by what was said before, and quiet runs get no flag. Every question to a member has its persona, and no other's.
#[test]
fn what_goes_wrong_in_a_discussion_is_flagged_at_its_turn() {
    let seeds = from_env("POLITY_SEEDS", 2);
    let folder = scratch("mallm-turns").join("sweep");
    let file = root().join("systems/mallm/turns.yaml");
    let said = polity(&["sweep", arg(&file), "--seeds", &seeds.to_string(), "--out", arg(&folder)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = diagnosed(&folder);
    let tally = &found["tally"];
    println!(
        "{:#}",
        json!({"turns": tally["turns"], "quiet": [tally["unflagged_quiet_runs"], tally["quiet_runs"]],
        "placebos": [tally["unflagged_placebo_runs"], tally["placebo_runs"]]})
    );
    for turn in tally["turns"].as_array().unwrap() {
        assert!(most(&turn["flagged_runs"], &turn["planted_runs"]), "{turn:#}");
        // The precision is above 0.9.
        assert!(10 * number(&turn["flagged_items"]) > 9 * number(&turn["flags"]), "{turn:#}");
        let arms = if turn["fault"] == "problem-drift" { 8 } else { 4 };
        assert_eq!(number(&turn["planted_runs"]), arms * u64::from(seeds));
    }
    assert_eq!(number(&tally["quiet_runs"]), 4 * u64::from(seeds));
    assert!(most(&tally["unflagged_quiet_runs"], &tally["quiet_runs"]), "{tally:#}");
    assert_eq!(number(&tally["placebo_runs"]), 12 * u64::from(seeds));
    assert!(most(&tally["unflagged_placebo_runs"], &tally["placebo_runs"]), "{tally:#}");
    let personas = ["accountant", "teach children", "engineer"];
    let mut asked = 0;
    let quiet = |run: &&Value| run["planted"].as_array().unwrap().is_empty();
    for run in found["runs"].as_array().unwrap().iter().filter(quiet) {
        for call in calls_of(Path::new(run["run"].as_str().unwrap())) {
            let prompt = call["prompt"].as_str().unwrap();
            for (member, persona) in personas.iter().enumerate() {
                assert_eq!(prompt.contains(persona), number(&call["agent"]) == member as u64, "{prompt}");
            }
            asked += 1;
        }
    }
    println!("{asked} questions have the persona of their member");
    assert!(asked > 0);
}

/// A debate of three members on ten items, with these faults.
fn debate(folder: &Path, faults: &Value, more: &[&str]) -> (PathBuf, Said) {
    let scenario = json!({
        "polity": 2, "seed": 5, "rounds": 3, "agents": 3, "model": "sim/medium", "method": {"kind": "debate"},
        "items": {"file": "items.jsonl", "answer": "answer", "difficulty": "difficulty", "scorer": "number", "count": 10},
        "faults": faults,
    });
    fs::copy(root().join("data/gsm8k-200.jsonl"), folder.join("items.jsonl")).unwrap();
    let file = folder.join("debate.yaml");
    fs::write(&file, scenario.to_string()).unwrap();
    let run = folder.join("run");
    let mut args = vec!["run", arg(&file), "--out", arg(&run)];
    args.extend(more);
    let said = polity(&args);
    (run, said)
}

#[test]
fn evidence_is_in_the_record_and_a_run_with_faults_replays() {
    let folder = scratch("diagnose-evidence");
    let faults = json!([
        {"mode": "step-repetition", "member": 1, "items": [2]},
        {"mode": "conversation-reset", "member": 0, "items": [4]},
        {"mode": "premature-termination", "items": [6]},
    ]);
    let (run, said) = debate(&folder, &faults, &["--shards", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let replayed = polity(&["replay", arg(&run)]);
    assert_eq!((replayed.text("status"), replayed.text("digest")), ("same", said.text("digest")));
    assert_eq!(verify(&run).text("status"), "sound");
    let found = diagnosed(&run);
    let one = &found["runs"][0];
    assert_eq!(one["planted"].as_array().unwrap().len(), 3);
    let place = |item: u64, mode: &str| {
        let symptoms = one["symptoms"].as_array().unwrap();
        symptoms.iter().any(|it| number(&it["item"]) == item && it["mode"] == mode)
    };
    assert!(place(2, "step-repetition") && place(4, "conversation-reset"), "{one:#}");
    // Whatever is named has calls, and they are those of the item.
    for symptom in one["symptoms"].as_array().unwrap() {
        let calls: Vec<Value> = calls_of(&run).into_iter().filter(|call| call["item"] == symptom["item"]).collect();
        let shown = symptom["calls"].as_array().unwrap();
        assert!(!shown.is_empty(), "{symptom}");
        for call in shown {
            let same = |it: &&Value| ["round", "agent", "n"].iter().all(|key| it[key] == call[key]);
            assert!(calls.iter().any(|it| same(&it)), "{symptom}");
        }
    }
}

#[test]
fn a_run_without_faults_shows_only_what_its_members_did() {
    let folder = scratch("diagnose-plain");
    let (run, said) = debate(&folder, &json!([]), &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = diagnosed(&run);
    let one = &found["runs"][0];
    // Members of this model do not always give in to the others; nothing else can fail here.
    assert!(named(one).iter().all(|mode| *mode == "ignored-other-agents-input"), "{one:#}");
    let undecided: Vec<&str> =
        one["undecided"].as_array().unwrap().iter().map(|mode| mode["mode"].as_str().unwrap()).collect();
    assert!(undecided.contains(&"fail-to-ask-for-clarification") && undecided.contains(&"incorrect-verification"));
}

#[test]
fn faults_that_cannot_be_planted_are_refused() {
    let folder = scratch("diagnose-refused");
    for (faults, words) in [
        (json!([{"mode": "fail-to-ask-for-clarification"}]), "cannot be planted"),
        (json!([{"mode": "step-repetition", "member": 3}]), "there is no member 3; the team has 3"),
        (json!([{"mode": "step-repetition", "items": [10]}]), "there is no item 10; the data set has 10"),
        (json!([{"mode": "step-repetitions"}]), "did you mean `step-repetition`"),
        (json!([{"mode": "problem-drift", "turn": 3}]), "there is no round 3; the scenario has 3"),
        (json!([{"mode": "step-repetition", "placebo": true}]), "`step-repetition` has no placebo"),
    ] {
        let (_, said) = debate(&folder, &faults, &[]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.text("error").contains(words), "{said:?}");
    }
    let (_, said) = debate(&folder, &json!([{"mode": "incorrect-verification"}]), &["--model", "openai/gpt-x"]);
    assert!(said.text("error").contains("`incorrect-verification` changes what a member says"), "{said:?}");
}

#[test]
fn the_rules_are_not_for_societies() {
    let folder = scratch("diagnose-society");
    let run = folder.join("run");
    let said = polity(&["run", "guess-average", "--agents", "20", "--rounds", "1", "--out", arg(&run)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = Command::new(env!("CARGO_BIN_EXE_polity")).args(["diagnose", arg(&run)]).output().unwrap();
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && words.contains("is a society, and the rules are for evaluations"), "{words}");
}
