//! Who sees whose ideas, and how ideas are counted.

use super::{diversity, similarity, words};
use crate::exchange::one_question;
use polity_kernel::ask::{Effect, Outcome, Value};
use polity_kernel::machine::ItemReport;
use serde_json::json;

/// Member k says `idea k in round r` and, from the second round on, an idea of the first member again.
fn answer(effect: &Effect) -> Outcome {
    let (member, round) = (effect.id.actor, effect.id.round);
    let own = format!("w{member}{round} x{member}{round} y{member}{round}");
    let again = (round > 0).then(|| "W00 x00, y00!".to_owned());
    let ideas = std::iter::once(own).chain(again).map(Value::Text).collect();
    Outcome::Reply { value: Value::Record(vec![Value::List(ideas)]), raw: String::new(), repaired: false }
}

fn run(shared: bool) -> (Vec<Effect>, ItemReport) {
    let scenario = json!({"rounds": 2, "agents": 3, "method": {"kind": "brainstorm", "shared": shared}});
    let (asked, reports) = one_question(&scenario, &answer);
    let item = reports.into_iter().flat_map(|report| report.items).next().unwrap();
    (asked, item)
}

#[test]
fn repeated_ideas_are_counted_once() {
    let (asked, item) = run(true);
    assert_eq!(asked.len(), 6);
    // 3 ideas, and 3 more with 3 repetitions.
    assert_eq!(item.measured[..2], [Some(9.0), Some(6.0)]);
    // Of 36 pairs, the 6 among the four like the first have all words in common.
    assert!((item.measured[2].unwrap() - 30.0 / 36.0).abs() < 1e-12, "{:?}", item.measured);
    assert_eq!(item.answer.unwrap().lines().nth(1), Some("w10 x10 y10"));
}

#[test]
fn a_group_sees_all_ideas_and_a_nominal_group_its_own() {
    for shared in [true, false] {
        for effect in run(shared).0 {
            let told = effect.request.rendered();
            for member in 0..3 {
                let seen = effect.id.round > 0 && (shared || member == effect.id.actor);
                assert_eq!(told.contains(&format!("w{member}0 x")), seen, "{told}");
            }
        }
    }
}

#[test]
fn ideas_are_compared_by_their_words() {
    assert_eq!(similarity(&words("A door stop."), &words("a DOOR-stop")), 1.0);
    assert_eq!(similarity(&words("a door"), &words("a window")), 1.0 / 3.0);
    assert_eq!(similarity(&words(""), &words("")), 1.0);
    assert_eq!(diversity(&[words("a door")]), None);
}
