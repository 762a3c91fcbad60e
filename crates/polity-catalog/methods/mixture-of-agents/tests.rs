//! Who is shown what in the layers of a mixture.

use crate::exchange::{one_question, says};
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
