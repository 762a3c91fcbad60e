//! Who reads whom in debates and reflections, and what is counted of the answers.

use crate::exchange::{Shown, one_question, says};
use polity_kernel::ask::{Effect, Outcome, Value};
use serde_json::json;

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

/// Answers by round and member; an empty one is a refusal.
fn run(patterns: &[&str], script: &[[&str; 3]]) -> Shown {
    let scenario =
        json!({"rounds": script.len(), "agents": 3, "method": {"kind": "machine-som", "patterns": patterns}});
    one_question(&scenario, &|effect| {
        let (round, member) = (effect.id.round, effect.id.actor);
        match script[round as usize][member as usize] {
            "" => Outcome::Refused { raw: "no".into() },
            answer => says(&format!("reasons of {member} in {round}"), Value::Text(answer.into())),
        }
    })
}

/// The answer, and what was measured last.
fn ended(shown: &Shown) -> (Option<String>, Vec<Option<f64>>) {
    let item = shown.1.iter().flat_map(|report| &report.items).next().unwrap();
    (item.answer.clone(), item.measured.clone())
}

#[test]
fn debates_show_the_others_and_reflections_nobody() {
    let same = ["Canberra"; 3];
    let (asked, _) = run(&["debate", "reflection", "debate"], &[same, same, same, same]);
    assert_eq!(asked.len(), 12);
    for effect in &asked {
        let (round, member, told) = (effect.id.round, effect.id.actor, told(effect));
        for before in 0..round {
            // What was shown once stays in the conversation: debates show the round before them.
            for other in 0..3 {
                let shown = match other == member {
                    true => true,
                    false => before == 0 || before == 2,
                };
                assert_eq!(
                    told.contains(&format!("reasons of {other} in {before}")),
                    shown,
                    "{round} {member}: {told}"
                );
            }
        }
    }
}

#[test]
fn a_society_that_only_reflects_hears_nobody_at_as_many_calls() {
    let same = ["Canberra"; 3];
    let (asked, _) = run(&["reflection"], &[same, same, same]);
    assert_eq!(asked.len(), 9);
    for effect in &asked {
        let others = (0..3).filter(|other| *other != effect.id.actor);
        others.for_each(|other| assert!(!told(effect).contains(&format!("reasons of {other}"))));
    }
}

#[test]
fn conformity_is_counted_as_in_the_repository() {
    // In the first debate one of the two right members goes, the wrong one comes; in the second nobody changes.
    let script =
        [["Canberra", "Canberra", "Sydney"], ["Canberra", "Sydney", "Canberra"], ["Canberra", "Sydney", "Canberra"]];
    let (answer, measured) = ended(&run(&["debate"], &script));
    assert_eq!(answer.as_deref(), Some("Canberra"));
    // Conforming: members 0 and 2, twice. Outside: member 2, then member 1; only the first was swayed.
    let expected = [4.0 / 6.0, 0.5, 0.0, 1.0 / 6.0, 2.0, 1.0];
    assert_eq!(measured, expected.map(Some));
}

#[test]
fn a_wrong_majority_turns_right_answers_wrong() {
    let script = [["Sydney", "Sydney", "Canberra"], ["Sydney", "Sydney", "Sydney"]];
    let (answer, measured) = ended(&run(&["debate"], &script));
    assert_eq!(answer.as_deref(), Some("Sydney"));
    assert_eq!(measured, [1.0, 1.0, 1.0 / 3.0, 0.0, 1.0, 1.0].map(Some));
}

#[test]
fn without_a_majority_nobody_conforms_and_without_a_debate_nothing_is_counted() {
    let script = [["Perth", "Sydney", "Canberra"], ["Perth", "Sydney", "Perth"]];
    let (_, measured) = ended(&run(&["debate"], &script));
    assert_eq!(measured, [Some(0.0), None, Some(0.0), Some(0.0), Some(2.0), Some(1.0)]);
    let (_, measured) = ended(&run(&["reflection"], &script));
    assert_eq!(measured, [None, None, None, None, Some(2.0), Some(1.0)]);
}

#[test]
fn a_member_without_an_answer_keeps_its_last_one() {
    let script = [["Perth", "Canberra", ""], ["", "Perth", "Perth"], ["", "", "Perth"]];
    let (answer, measured) = ended(&run(&["debate", "reflection"], &script));
    assert_eq!(answer.as_deref(), Some("Perth"));
    assert_eq!(measured[4..], [Some(1.0), Some(1.0)]);
}
