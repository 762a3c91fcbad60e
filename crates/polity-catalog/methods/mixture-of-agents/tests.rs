//! Who is shown what in the layers of a mixture.

use crate::exchange::{one_question, says};
use crate::official::{Case, Official, Rule, answer, play};
use polity_kernel::ask::{Effect, Value};
use serde_json::json;

fn told(effect: &Effect) -> String {
    effect.request.rendered()
}

#[test]
fn the_first_layer_is_shown_no_proposals_and_told_of_none() {
    for method in ["mixture-of-agents", "sparse-moa"] {
        let scenario = json!({"rounds": 3, "agents": 4, "method": {"kind": method}});
        let (asked, _) = one_question(&scenario, &|effect| {
            says(
                &format!("reasons of {} in round {}", effect.id.actor, effect.id.round),
                Value::Text("Canberra".into()),
            )
        });
        let proposals = |round: u32| {
            let solving = asked.iter().filter(move |effect| effect.request.purpose != "judge");
            solving.filter(move |effect| effect.id.round == round && told(effect).contains("as `answer`"))
        };
        assert!(proposals(0).count() >= 4, "{method}");
        for effect in proposals(0) {
            assert!(!told(effect).contains("shown above"), "{method}: {}", told(effect));
        }
    }
}

#[test]
fn every_member_of_a_later_layer_is_shown_all_proposals() {
    let scenario = json!({"rounds": 3, "agents": 4, "method": {"kind": "mixture-of-agents"}});
    let (asked, _) = one_question(&scenario, &|effect| {
        says(&format!("reasons of {} in round {}", effect.id.actor, effect.id.round), Value::Text("Canberra".into()))
    });
    // Two layers of four, and the aggregator.
    assert_eq!(asked.len(), 9);
    for effect in asked.iter().filter(|effect| effect.id.round == 1) {
        for member in 0..4 {
            assert!(told(effect).contains(&format!("reasons of {member} in round 0")), "{}", told(effect));
        }
        assert!(told(effect).contains("shown above"));
    }
}

#[test]
fn acts_as_the_official_program() {
    let last_proposal = |case: &mut Case| {
        if case.replies["aggregator"].is_null() {
            case.answer = case.answers().last().unwrap().iter().flatten().next_back().cloned();
        }
    };
    let rules: [Rule<'_>; 1] = [("last-proposal", &last_proposal)];
    Official::compare(include_str!("official.json"), include_str!("README.md"), &rules, &|case| {
        let answers = case.answers();
        let who = |_: usize, effect: &Effect| match effect.id.round {
            round if round as usize == answers.len() => (round, "aggregator".into(), "aggregate"),
            round => (round, effect.id.actor.into(), "answer"),
        };
        play("mixture-of-agents", &case.settings, &who, &|(round, member, _), marker| match member.as_u64() {
            Some(member) => answer(marker, answers[*round as usize][member as usize].as_ref()),
            None => answer(marker, case.replies["aggregator"].as_str().map(String::from).as_ref()),
        })
    });
}
