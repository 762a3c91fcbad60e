//! Who scores what, what the critic sees, and which scores count.

use crate::exchange::{drive, open, says};
use polity_kernel::ask::{Effect, Outcome, Part, Value};
use polity_kernel::machine::ItemReport;
use serde_json::{Value as Json, json};

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

/// The scores that a question shows.
fn shown(effect: &Effect) -> Vec<(String, String)> {
    let parts = effect.request.messages.iter().flat_map(|message| &message.parts);
    let said = parts.filter_map(|part| match part {
        Part::Said { answer, reasons, .. } => Some((answer.clone(), reasons.clone())),
        _ => None,
    });
    said.collect()
}

const ASPECTS: [&str; 4] = ["accuracy", "coherence", "fairness", "tone"];

/// The evaluator gives 1, 2, 3, 4; the critic adds 1 to what it is shown, and gives 3 if it is shown nothing. It has no score for tone.
fn answer(effect: &Effect) -> Outcome {
    let aspect = ASPECTS.iter().position(|aspect| told(effect).contains(&format!("one aspect alone: {aspect}.")));
    let reviewed = ASPECTS.iter().position(|aspect| told(effect).contains(&format!("for one aspect: {aspect}.")));
    match (effect.id.actor, shown(effect).first()) {
        (0, _) => says(&format!("why {}", ASPECTS[aspect.unwrap()]), Value::Number(aspect.unwrap() as f64 + 1.0)),
        (_, Some(_)) if reviewed == Some(3) => Outcome::Refused { raw: "no".into() },
        (_, Some((score, _))) => says("better", Value::Number(score.parse::<f64>().unwrap() + 1.0)),
        (_, None) => says("own", Value::Number(3.0)),
    }
}

fn columns() -> [(&'static str, Vec<String>); 2] {
    [("question", vec!["A survey.".to_string()]), ("answer", vec!["4".to_string()])]
}

fn scenario(critic: &str, role: &str) -> Json {
    json!({
        "rounds": 1, "model": "test/scripted", "team": [{"name": "E"}, {"name": "C", "role": role}],
        "method": {"kind": "sageval", "aspects": ASPECTS, "critic": critic},
        "items": {"file": "items", "answer": "answer"},
    })
}

fn run(critic: &str) -> (Vec<Effect>, ItemReport) {
    let scenario = scenario(critic, if critic == "none" { "absent" } else { "critic" });
    let (asked, reports) = drive(open(&scenario, &columns(), &crate::testing::registry()).unwrap(), &answer).unwrap();
    (asked, reports.iter().flat_map(|report| &report.items).next().unwrap().clone())
}

#[test]
fn the_critic_sees_each_score_with_its_reasons_and_corrects_it() {
    let (asked, item) = run("reviews");
    assert_eq!(asked.len(), 8);
    for (n, effect) in asked.iter().enumerate() {
        assert!(told(effect).contains("A survey."));
        let expected = vec![((n % 4 + 1).to_string(), format!("why {}", ASPECTS[n % 4]))];
        assert_eq!(shown(effect), if n < 4 { Vec::new() } else { expected });
    }
    // 2, 3, 4, and for tone the evaluator's 4.
    assert_eq!(item.answer.as_deref(), Some("3.250"));
    assert_eq!(item.measured, [2.5, 3.25, 1.5, 0.75, 1.0].map(Some));
}

#[test]
fn a_shuffled_review_asks_as_often_and_shows_no_score_at_its_aspect() {
    let (asked, item) = run("shuffled");
    assert_eq!(asked.len(), 8);
    let mut scores = Vec::new();
    for (n, effect) in asked.iter().enumerate().skip(4) {
        let [(score, why)] = &shown(effect)[..] else { panic!("one score is shown") };
        assert_ne!(*score, (n - 3).to_string());
        assert_ne!(*why, format!("why {}", ASPECTS[n - 4]));
        scores.push(score.clone());
    }
    scores.sort();
    assert_eq!(scores, ["1", "2", "3", "4"]);
    assert_eq!(item.measured[0], Some(2.5));
}

#[test]
fn a_blind_critic_is_asked_as_often_and_shown_nothing() {
    let (asked, item) = run("blind");
    assert_eq!(asked.len(), 8);
    assert!(asked.iter().all(|effect| shown(effect).is_empty()));
    // Asked as the evaluator is, it gives 3 four times.
    assert_eq!(item.measured, [2.5, 3.0, 1.5, 1.0, 0.75].map(Some));
}

#[test]
fn without_a_critic_the_first_scores_count() {
    let (asked, item) = run("none");
    assert_eq!(asked.len(), 4);
    assert_eq!(item.measured, [Some(2.5), Some(2.5), Some(1.5), Some(1.5), None]);
}

#[test]
fn a_critic_that_is_not_asked_is_refused() {
    let opened = open(&scenario("none", "critic"), &columns(), &crate::testing::registry());
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("`C` can never act: `critic: none` asks no critic"), "{error}");
}
