//! Who gets which message with which fields, who evaluates, and when revisions end.

use crate::exchange::{one_question, says};
use polity_kernel::ask::{Effect, Outcome, ResponseFormat, Value};
use polity_kernel::machine::ItemReport;
use serde_json::{Value as Json, json};

const SUPERVISOR: u32 = 0;
const GENERATOR: u32 = 1;
const REVISER: u32 = 2;
const LEADER: u32 = 3;

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

fn reply(value: Value) -> Outcome {
    Outcome::Reply { value, raw: String::new(), repaired: false }
}

/// The generator answers Sydney, the reviser Canberra; evaluators give Canberra 9 and anything else 2.
fn answer(effect: &Effect) -> Outcome {
    let told = told(effect);
    match &effect.request.response_format {
        ResponseFormat::Record(fields) if fields[0].0 == "content" => {
            let by = effect.id.actor;
            reply(Value::Record(vec![
                Value::Text(format!("content of {by}")),
                Value::Text(format!("background of {by}")),
            ]))
        }
        ResponseFormat::Text => reply(Value::Text("the summary".into())),
        _ if effect.request.purpose == "rate" => {
            let good = told.contains("answers: Canberra");
            says(&format!("found by {}", effect.id.actor), Value::Number(if good { 9.0 } else { 2.0 }))
        }
        _ if effect.id.actor == GENERATOR => says("at a guess", Value::Text("Sydney".into())),
        _ => says("looked up", Value::Text("Canberra".into())),
    }
}

fn run(method: Json, rounds: u32) -> (Vec<Effect>, ItemReport) {
    run_with(method, rounds, &answer)
}

fn run_with(method: Json, rounds: u32, answer: &dyn Fn(&Effect) -> Outcome) -> (Vec<Effect>, ItemReport) {
    let mut scenario = json!({
        "rounds": rounds, "method": {"kind": "talkhier", "criteria": ["steps", "result"]},
        "team": [{"role": "supervisor"}, {"role": "generator"}, {"role": "reviser"}, {"role": "evaluation supervisor"}, {}, {}],
    });
    for (key, value) in method.as_object().unwrap() {
        scenario["method"][key] = value.clone();
    }
    let (asked, reports) = one_question(&scenario, answer);
    (asked, reports.iter().flat_map(|report| &report.items).next().unwrap().clone())
}

#[test]
fn an_answer_goes_up_and_down_the_hierarchy_until_it_is_accepted() {
    let (asked, item) = run(json!({}), 3);
    let actors: Vec<u32> = asked.iter().map(|effect| effect.id.actor).collect();
    let evaluation = [SUPERVISOR, LEADER, 4, 5, LEADER];
    let expected = [&[SUPERVISOR, GENERATOR][..], &evaluation, &[SUPERVISOR, REVISER], &evaluation].concat();
    assert_eq!(actors, expected);
    assert_eq!(item.answer.as_deref(), Some("Canberra"));
    assert_eq!(item.measured, [2.0, 1.0, 9.0].map(Some));
}

#[test]
fn messages_have_content_background_and_the_answer_so_far() {
    let (asked, _) = run(json!({}), 3);
    assert!(told(&asked[1]).contains("content of 0") && told(&asked[1]).contains("background of 0"));
    for evaluator in [&asked[4], &asked[5]] {
        let told = told(evaluator);
        assert!(
            told.contains("content of 3") && told.contains("background of 3"),
            "from their supervisor alone: {told}"
        );
        assert!(
            !told.contains("content of 0") && told.contains("answers: Sydney") && !told.contains("found by"),
            "{told}"
        );
    }
    assert!(told(&asked[4]).contains("alone: steps.") && told(&asked[5]).contains("alone: result."));
    assert!(told(&asked[6]).contains("found by 4") && told(&asked[6]).contains("found by 5"));
    let reviser = told(&asked[8]);
    assert!(reviser.contains("the summary") && reviser.contains("content of 0") && reviser.contains("answers: Sydney"));
    assert!(!reviser.contains("found by 4"), "it hears the summary, not the evaluators: {reviser}");
}

#[test]
fn fields_that_are_left_out_are_seen_by_nobody() {
    let (asked, item) = run(json!({"background": false}), 3);
    let received = |effect: &&Effect| effect.request.purpose != "write";
    assert!(asked.iter().filter(received).all(|effect| !told(effect).contains("background of")));
    assert_eq!((asked.len(), item.measured[0]), (14, Some(2.0)), "as many calls");
    // Evaluators who are shown no answer find none good.
    let (asked, item) = run(json!({"intermediate": false}), 3);
    let rating = |effect: &&Effect| effect.request.purpose == "rate";
    assert!(asked.iter().filter(rating).all(|effect| !told(effect).contains("answers: Canberra")));
    assert_eq!(item.measured, [3.0, 0.0, 2.0].map(Some));
    let (asked, _) = run(json!({"summarise": false}), 3);
    assert_eq!(asked.len(), 12);
    assert!(told(&asked[7]).contains("found by 4"), "the reviser hears the evaluators");
}

#[test]
fn rounds_and_the_threshold_end_the_work() {
    let (asked, item) = run(json!({}), 1);
    assert_eq!((asked.len(), item.answer.as_deref()), (7, Some("Sydney")));
    let (asked, item) = run(json!({"accept": 2.0}), 3);
    assert_eq!((asked.len(), item.measured), (7, [1.0, 1.0, 2.0].map(Some).to_vec()));
}

#[test]
fn without_a_mark_the_work_ends_and_nothing_is_accepted() {
    let silent = |effect: &Effect| match effect.request.purpose.as_str() {
        "rate" => Outcome::Failed { why: "no reply".into() },
        _ => answer(effect),
    };
    let (_, item) = run_with(json!({}), 3, &silent);
    assert_eq!((item.answer.as_deref(), &item.measured[..]), (Some("Sydney"), &[None, None, None][..]));
}
