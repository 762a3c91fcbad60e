//! What is pruned, who sees what, which program wins, and when repairs end.

use crate::exchange::{Shown, drive, open, says};
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value};
use serde_json::{Value as Json, json};

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

fn is_run(effect: &Effect) -> bool {
    &*effect.request.model == Ran::PYTHON
}

/// Prompts, suites and programs carry numbers. The program of prompt `n` passes the first `n` of the three generated cases, a repaired one
/// all of them if `heals`. Marks rise with the order in which outputs are shown.
fn answer(effect: &Effect, heals: bool) -> Outcome {
    let told = told(effect);
    if is_run(effect) {
        let case = (1..=3).find(|case| told.contains(&format!("== {case}"))).unwrap_or(0);
        let program = (0..3).find(|n| told.contains(&format!("program {n}"))).unwrap_or(0);
        let good = told.contains("healed") || case <= program;
        let ended = if good { Ended::Finished } else { Ended::Failed };
        return reply(Ran { ended, status: 0, output: String::new(), errors: "AssertionError".into() }.value());
    }
    match &effect.request.response_format {
        ResponseFormat::Record(fields) if fields[0].0 == "tests" => {
            reply(Value::Record(vec![Value::Text(format!("assert add(1, 2) == {}", 1 + effect.request.sample))]))
        }
        ResponseFormat::Record(fields) if fields[0].0 == "marks" => {
            let ResponseFormat::List { most, .. } = &fields[0].1 else { panic!("marks are a list") };
            reply(Value::Record(vec![Value::List((0..*most).map(|mark| Value::Number(f64::from(mark + 1))).collect())]))
        }
        ResponseFormat::Text => reply(Value::Text(format!("text {}", effect.request.sample))),
        _ if told.contains("finds your answer wrong") && heals => says("", Value::Text("    # healed".into())),
        _ if told.contains("finds your answer wrong") => says("", Value::Text("    # program 0".into())),
        _ => {
            let n = (0..3).find(|n| told.contains(&format!("text {n}"))).unwrap_or(9);
            says("", Value::Text(format!("    # program {n}")))
        }
    }
}

fn run(method: Json, rounds: u32, heals: bool) -> Shown {
    let mut scenario = json!({
        "rounds": rounds, "agents": 1, "model": "test/scripted", "method": {"kind": "codecor"},
        "items": {"file": "items", "shape": "humaneval"},
    });
    for (key, value) in method.as_object().unwrap() {
        scenario["method"][key] = value.clone();
    }
    let columns = [
        ("task_id", "one"),
        ("prompt", "def add(a, b):\n    \"\"\"Sum.\"\"\"\n"),
        ("entry_point", "add"),
        ("canonical_solution", "    return a + b\n"),
        ("test", "def check(candidate):\n    assert candidate(1, 2) == 3\n"),
    ]
    .map(|(name, cell)| (name, vec![cell.to_string()]));
    drive(open(&scenario, &columns, &crate::testing::registry()).unwrap(), &|effect| answer(effect, heals)).unwrap()
}

/// The answer, and what was measured.
fn ended(shown: &Shown) -> (String, Vec<Option<f64>>) {
    let item = shown.1.iter().flat_map(|report| &report.items).next().unwrap();
    (item.answer.clone().unwrap(), item.measured.clone())
}

fn calls(shown: &Shown) -> usize {
    shown.0.iter().filter(|effect| !is_run(effect)).count()
}

fn programs(shown: &Shown) -> Vec<String> {
    let solving = shown.0.iter().filter(|effect| effect.request.purpose == "solve");
    solving.map(told).collect()
}

#[test]
fn the_best_outputs_are_kept_and_the_program_that_passes_most_wins() {
    let shown = run(json!({}), 1, false);
    // Marks rise with the order: prompts 1 and 2 stay, and the tests that expect 2 and 3.
    let programs = programs(&shown);
    assert_eq!(programs.len(), 2);
    assert!(programs[0].contains("text 2") && programs[1].contains("text 1"), "{programs:?}");
    // Program 2 passes the case 2 and fails 3; program 1 fails both; the repaired ones fail both.
    assert_eq!(ended(&shown), ("    # program 2".into(), vec![Some(0.5), Some(2.0), Some(4.0)]));
    assert_eq!(calls(&shown), 3 + 1 + 3 + 1 + 2 + 1 + 2 * 5);
}

#[test]
fn a_program_that_passes_all_ends_the_repairs() {
    let shown = run(json!({}), 3, true);
    assert_eq!(ended(&shown), ("    # healed".into(), vec![Some(1.0), Some(2.0), Some(4.0)]));
    assert_eq!(calls(&shown), 21, "one round of repairs");
    let never = run(json!({}), 3, false);
    assert_eq!(calls(&never), 11 + 3 * 10, "three rounds at most");
    assert_eq!(ended(&never).0, "    # program 2", "an earlier program is not lost");
}

#[test]
fn without_pruning_all_is_kept_and_no_marks_are_asked_for() {
    let shown = run(json!({"prune": "none"}), 1, false);
    assert_eq!((programs(&shown).len(), ended(&shown).1[1]), (3, Some(3.0)));
    assert_eq!(calls(&shown), 3 + 3 + 3 + 3 * 4, "no marks");
}

#[test]
fn tests_are_written_without_a_program_in_view_and_advice_with_one() {
    let shown = run(json!({}), 1, false);
    let of =
        |purpose: &str| shown.0.iter().filter(|effect| effect.request.purpose == purpose).map(told).collect::<Vec<_>>();
    assert!(of("test").iter().all(|told| !told.contains("program") && !told.contains("text ")));
    let advice: Vec<String> = of("write").into_iter().filter(|told| told.contains("does not pass its tests")).collect();
    assert_eq!(advice.len(), 6);
    assert!(advice.iter().all(|told| told.contains("# program") && told.contains("AssertionError")));
}
