//! Who is recruited after which advice, who reviews, and when the rounds end.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value};
use polity_kernel::machine::ItemReport;
use serde_json::{Value as Json, json};

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

const RECRUITER: u32 = 2;
const EVALUATOR: u32 = 3;

/// A group with a geographer answers Canberra, any other Sydney. The recruiter finds a geographer when it is told to. Reviewers object once
/// to Sydney; the evaluator accepts Canberra alone.
fn answer(effect: &Effect) -> Outcome {
    let told = told(effect);
    let judged = |right: bool, why: &str| says(why, Value::Choice(u32::from(!right)));
    match &effect.request.response_format {
        ResponseFormat::Record(fields) if fields[0].0 == "experts" => {
            let first = if told.contains("take a geographer") { "a geographer" } else { "a poet" };
            let list = Value::List([first, "a sceptic"].map(|expert| Value::Text(expert.into())).to_vec());
            Outcome::Reply { value: Value::Record(vec![list]), raw: String::new(), repaired: false }
        }
        _ if effect.id.actor == EVALUATOR => judged(told.contains("answers: Canberra"), "take a geographer"),
        _ if effect.request.purpose == "check" => judged(told.contains("Canberra"), "I doubt it"),
        _ if told.contains("you are: a geographer") => says("the map", Value::Text("Canberra".into())),
        _ => says("the opera", Value::Text("Sydney".into())),
    }
}

fn run(method: Json) -> (Vec<Effect>, ItemReport) {
    run_with(method, &answer)
}

fn run_with(method: Json, answer: &dyn Fn(&Effect) -> Outcome) -> (Vec<Effect>, ItemReport) {
    let mut scenario = json!({
        "rounds": 3, "method": {"kind": "agentverse", "reviews": 1},
        "team": [{}, {}, {"role": "recruiter"}, {"role": "evaluator"}],
    });
    for (key, value) in method.as_object().unwrap() {
        scenario["method"][key] = value.clone();
    }
    let (asked, reports) = one_question(&scenario, answer);
    (asked, reports.iter().flat_map(|report| &report.items).next().unwrap().clone())
}

fn actors(asked: &[Effect]) -> Vec<u32> {
    asked.iter().map(|effect| effect.id.actor).collect()
}

#[test]
fn bad_feedback_changes_the_group_and_good_feedback_ends_the_work() {
    let (asked, item) = run(json!({}));
    // A poet answers, the sceptic objects, the poet insists; a geographer answers, and nobody objects.
    assert_eq!(actors(&asked), [RECRUITER, 0, 1, 0, EVALUATOR, RECRUITER, 0, 1, EVALUATOR]);
    assert!(!told(&asked[0]).contains("The last group"));
    let again = told(&asked[5]);
    assert!(again.contains("take a geographer") && again.contains("a poet"), "{again}");
    let solver = told(&asked[6]);
    assert!(solver.contains("take a geographer") && solver.contains("answers: Sydney"), "{solver}");
    assert_eq!(item.answer.as_deref(), Some("Canberra"));
    assert_eq!(item.measured, [2.0, 1.0, 1.0].map(Some));
}

#[test]
fn without_a_judgement_the_work_ends_and_nothing_is_accepted() {
    let silent = |effect: &Effect| match effect.id.actor {
        EVALUATOR => Outcome::Failed { why: "no reply".into() },
        _ => answer(effect),
    };
    let (asked, item) = run_with(json!({}), &silent);
    assert_eq!(actors(&asked), [RECRUITER, 0, 1, 0, EVALUATOR]);
    assert_eq!((item.answer.as_deref(), &item.measured[..]), (Some("Sydney"), &[1.0, 0.0, 0.0].map(Some)[..]));
}

#[test]
fn withheld_feedback_changes_nothing() {
    let (asked, item) = run(json!({"feedback": false}));
    assert_eq!(actors(&asked), [RECRUITER, 0, 1, 0, EVALUATOR].repeat(3), "as often a round");
    assert!(
        asked.iter().filter(|effect| effect.id.actor != EVALUATOR).all(|effect| !told(effect).contains("geographer"))
    );
    assert_eq!(item.answer.as_deref(), Some("Sydney"));
    assert_eq!(item.measured, [3.0, 0.0, 0.0].map(Some));
}

#[test]
fn reviewers_see_the_answer_and_their_objections_reach_the_leader_as_experts() {
    let (asked, _) = run(json!({}));
    assert!(told(&asked[2]).contains("you are: a sceptic") && told(&asked[2]).contains("answers: Sydney"));
    let mended = told(&asked[3]);
    assert!(mended.contains("you are: a poet") && mended.contains("a sceptic: I doubt it"), "{mended}");
    assert!(told(&asked[4]).contains("a poet\na sceptic"), "the evaluator sees the group");
}

#[test]
fn a_horizontal_group_speaks_in_turn_and_its_leader_last() {
    let (asked, item) = run(json!({"discussion": "horizontal"}));
    assert_eq!(actors(&asked), [RECRUITER, 1, 0, EVALUATOR, RECRUITER, 1, 0, EVALUATOR]);
    assert!(!told(&asked[1]).contains("the opera") && told(&asked[2]).contains("the opera"));
    assert_eq!(item.answer.as_deref(), Some("Canberra"));
}
