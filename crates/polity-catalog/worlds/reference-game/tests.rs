//! What the game counts, against a recount of its columns and plain expectations.

use crate::testing::{metric, open, play, refused};
use polity_kernel::machine::{Machine, Then};
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn game(agents: u32, facts: u32, policy: Value) -> Value {
    json!({
        "seed": 2, "rounds": 11, "agents": agents, "topology": {"kind": "none"},
        "world": {"kind": "reference-game", "facts": facts}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "lost"}],
    })
}

#[test]
fn the_scalars_are_a_recount_of_every_round() {
    let scenario = game(400, 7, json!({"kind": "signaller", "amount": 5}));
    let mut society = open(&scenario, &Inputs::default(), 1).unwrap();
    let (mut lost, mut due, mut right) = (0.0, 0.0, 0.0);
    let mut rounds = 0;
    while let Then::Round(report) = society.poll(Vec::new()).unwrap().then {
        let of_agents = society.column(0);
        // Both of a pair have what their pair lost.
        assert_eq!(of_agents[..200], of_agents[200..]);
        lost += of_agents[..200].iter().sum::<f64>();
        if rounds > 0 {
            due += 200.0;
            right += of_agents[..200].iter().filter(|lost| **lost == 0.0).count() as f64;
            // Two facts are guessed.
            assert!(of_agents.iter().all(|lost| *lost <= 2.0));
            assert_eq!(metric(&report, "facts-lost"), lost / (7.0 * due));
            assert_eq!(metric(&report, "right"), right / due);
            let told = metric(&report, "bits-told");
            assert!(told > 4.9 && told < 5.1, "{told}");
            assert!((metric(&report, "bits-lost") + told - 7.0).abs() < 1e-12);
        } else {
            assert_eq!((metric(&report, "facts-lost"), metric(&report, "right"), lost), (0.0, 0.0, 0.0));
        }
        rounds += 1;
    }
    assert_eq!(rounds, 11);
    // A quarter of the objects is guessed right: five standard errors of 2,000 objects.
    assert!((right / due - 0.25).abs() < 5.0 * (0.25f64 * 0.75 / 2000.0).sqrt(), "{}", right / due);
}

#[test]
fn who_names_no_object_loses_all_facts() {
    // Numbers between the objects' name none of them.
    let end = play(&game(20, 3, json!({"kind": "noise"}))).rounds.pop().unwrap();
    assert_eq!(["facts-lost", "silent", "right"].map(|name| metric(&end, name)), [1.0, 1.0, 0.0]);
    assert_eq!(metric(&end, "bits-told"), 0.0);
}

#[test]
fn objects_are_spread_evenly() {
    // What is said of another object tells nothing: half of the facts are right by chance.
    let end = play(&game(2000, 4, json!({"kind": "signaller", "amount": 4, "placebo": true}))).rounds.pop().unwrap();
    let lost = metric(&end, "facts-lost");
    assert!((lost - 0.5).abs() < 5.0 * 0.5 / 40_000f64.sqrt(), "{lost}");
    assert!((metric(&end, "right") - 1.0 / 16.0).abs() < 5.0 * (1.0f64 / 16.0 / 10_000.0).sqrt());
}

#[test]
fn what_does_not_fit_is_refused() {
    let policy = || json!({"kind": "signaller", "amount": 1});
    assert!(refused(&game(5, 7, policy())).contains("must be even, is 5"));
    for facts in [0, 16] {
        assert!(refused(&game(4, facts, policy())).contains("facts"), "{facts}");
    }
    let mut late = game(4, 7, policy());
    late["answers"] = json!({"lag": 1});
    assert!(refused(&late).contains("lag"), "{}", refused(&late));
}
