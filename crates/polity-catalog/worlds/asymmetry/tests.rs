//! Tests of private facts and those who ask for them.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{metric, open, play};
use polity_kernel::machine::Machine;
use polity_kernel::scenario::Inputs;
use serde_json::{Value, json};

fn society(rounds: u32, topology: Value, world: Value, policy: Value) -> Value {
    let (mut world, mut policy) = (world, policy);
    world["kind"] = "asymmetry".into();
    policy["kind"] = "inquirer".into();
    json!({
        "seed": 3, "rounds": rounds, "agents": 60, "topology": topology, "world": world,
        "cohorts": [{"policy": policy}], "metrics": [{"kind": "mean", "of": "turn"}],
    })
}

fn last(scenario: &Value, name: &str) -> f64 {
    play(scenario).rounds.last().map_or(f64::NAN, |round| metric(round, name))
}

/// Everybody knows everybody and remembers everything: each fact is asked for in one turn, told in the next and heard in the third, so
/// that all are answered correctly in turn `needs` + 2.
#[test]
fn who_knows_everybody_is_done_in_as_many_turns_as_facts_and_two() {
    let memory = json!({"clear": 200, "fuzzy": 0, "relays": 0});
    for needs in [1, 3, 7] {
        let scenario = society(20, json!({"kind": "complete"}), json!({"needs": needs}), memory.clone());
        let played = play(&scenario);
        assert_eq!(played.rounds.len(), needs + 2);
        let end = played.rounds.last().unwrap();
        assert_eq!((metric(end, "right"), metric(end, "turns")), (1.0, (needs + 2) as f64));
    }
}

/// Missing facts cannot be guessed, and nobody holds all facts alone.
#[test]
fn nobody_answers_alone() {
    let alone = |policy| last(&society(10, json!({"kind": "none"}), json!({}), policy), "answered");
    assert_eq!((alone(json!({})), alone(json!({"plan": false}))), (0.0, 0.0));
}

/// All facts are in summaries, each wrong with probability `blur`: a question of one fact is answered correctly with 1 - `blur`. Without
/// fuzzy memory, only those whose fact is among the newest are.
#[test]
fn summaries_are_wide_and_wrong_and_clear_memory_is_right_and_small() {
    let one = |policy: Value| {
        let mut scenario = society(12, json!({"kind": "complete"}), json!({"needs": 1, "facts": 20}), policy);
        scenario["agents"] = 4000.into();
        let played = play(&scenario);
        let end = played.rounds.last().unwrap();
        (metric(end, "answered"), metric(end, "right"))
    };
    let five_sigma = |p: f64| 5.0 * (p * (1.0 - p) / 4000.0).sqrt();
    let (answered, right) = one(json!({"clear": 0, "blur": 0.3, "relays": 0}));
    assert_eq!(answered, 1.0);
    assert!((right - 0.7).abs() < five_sigma(0.7), "{right}");
    // Half of the facts are among the last ten; facts told meanwhile reduce that slightly.
    let (answered, right) = one(json!({"clear": 10, "fuzzy": 0, "relays": 0}));
    assert_eq!(answered, right);
    assert!(right < 0.5 + five_sigma(0.5) && right > 0.4, "{right}");
}

/// On a ring a fact reaches as far as it is passed on: `relays` + 1 of the eleven others on each side.
#[test]
fn facts_come_from_as_far_as_they_are_passed_on() {
    for relays in [0, 1, 2] {
        let ring = json!({"kind": "ring", "neighbours": 2});
        let memory = json!({"clear": 100, "relays": relays});
        let mut scenario = society(20, ring, json!({"needs": 1, "facts": 3}), memory);
        scenario["agents"] = 12.into();
        let answered = |seed: u32| {
            scenario["seed"] = seed.into();
            last(&scenario, "answered")
        };
        let share = (1..=60).map(answered).sum::<f64>() / 60.0;
        let reached = 2.0 * f64::from(relays + 1) / 11.0;
        let five_sigma = 5.0 * (reached * (1.0 - reached) / 720.0).sqrt();
        assert!((share - reached).abs() < five_sigma, "{relays}: {share} is not {reached}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |world: Value, policy: Value| {
        let scenario = society(5, json!({"kind": "none"}), world, policy);
        open(&scenario, &Inputs::default(), 1).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let cases = [
        (json!({"facts": 0}), json!({}), "facts"),
        (json!({"needs": 31}), json!({}), "half of the 60 agents"),
        (json!({"values": 1}), json!({}), "values"),
        (json!({"asked": 1.5}), json!({}), "asked"),
        (json!({}), json!({"blur": -0.1}), "blur"),
        (json!({}), json!({"relays": 101}), "relays"),
    ];
    for (world, policy, word) in cases {
        let error = refused(world, policy);
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(
        open(&society(5, json!({"kind": "none"}), json!({}), json!({})), &Inputs::default(), 3)
            .unwrap()
            .poll(Vec::new())
            .is_ok()
    );
}
