//! Tests of `decision-process` and `tabular-learner`: closed forms, plain second calculations, and what is refused.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{play, refused};
use serde_json::{Value, json};

fn society(rounds: u32, agents: u32, world: &Value, algorithm: &Value) -> Value {
    let mut world = world.clone();
    world["kind"] = json!("decision-process");
    json!({"seed": 5, "rounds": rounds, "agents": agents, "topology": {"kind": "none"}, "world": world,
        "cohorts": [{"policy": {"kind": "tabular-learner", "algorithm": algorithm}}]})
}

/// The values of a column at the end of a run.
fn column(scenario: &Value, name: &str) -> Vec<f64> {
    let played = play(scenario);
    let columns = &played.society.interface().columns;
    let place = columns.iter().position(|column| &*column.name == name).unwrap();
    played.society.column(place)
}

/// Two states. Action 0 stays; action 1 changes sides with probability 0.5. State 1 gives 1, whatever is done.
fn two() -> Value {
    let change = |from, to| [json!([from, 1, to, 0.5]), json!([from, 1, from, 0.5])];
    let transitions: Vec<Value> = [change(0, 1), change(1, 0)].concat();
    json!({"kind": "written", "states": 2, "moves": [2], "transitions": transitions,
        "rewards": [[1, 0, 0, 1.0], [1, 1, 0, 1.0]]})
}

#[test]
fn values_of_a_mixture_are_the_closed_form_and_samples_agree() {
    let fixed = json!({"kind": "improper", "controllers": [{"always": 0}, {"always": 1}], "rule": "fixed", "step": 0});
    // Each state changes with probability 0.25, so each has half of the time.
    let world = json!({"process": two(), "objective": {"kind": "average"}, "batch": 5000});
    let scenario = society(3, 4, &world, &fixed);
    assert!(column(&scenario, "value").iter().all(|value| (value - 0.5).abs() < 1e-12));
    assert!(column(&scenario, "reward").iter().all(|reward| (reward - 0.5).abs() < 0.06));
    assert!(column(&scenario, "samples").iter().all(|samples| *samples == 15_000.0));
    assert!(column(&scenario, "optimum").iter().all(|optimum| (optimum - 1.0).abs() < 1e-9));
    // Discounted by 0.5, from state 0: v0 = 0.5 (0.75 v0 + 0.25 v1), v1 = 1 + 0.5 (0.75 v1 + 0.25 v0).
    let world = json!({"process": two(), "objective": {"kind": "discounted", "discount": 0.5}});
    let value = column(&society(1, 1, &world, &fixed), "value")[0];
    let (v0, v1): (f64, f64) = (0.125 / 0.625 / (0.625 - 0.125 * 0.2), 1.0 / (0.625 - 0.125 * 0.2));
    assert!((v1 - 1.0 - 0.5 * (0.75 * v1 + 0.25 * v0)).abs() < 1e-12 && (value - v0).abs() < 1e-12, "{value} {v0}");
    // Three steps: state 1 is reached after one or two.
    let world = json!({"process": two(), "objective": {"kind": "episodic", "steps": 3}, "weights": [2]});
    let value = column(&society(1, 1, &world, &fixed), "value")[0];
    assert!((value - 2.0 * (0.25 + 0.25 * 0.75 + 0.75 * 0.25)).abs() < 1e-12, "{value}");
}

#[test]
fn regret_and_violations_add_up() {
    let world = json!({"objective": {"kind": "episodic", "steps": 3}, "baseline": {"temperature": 0.3, "floor": 0.9},
        "track": true, "batch": 1, "process": {"kind": "garnet", "states": 3, "moves": [2], "branching": 2}});
    let run = |mixing: &str, name: &str| {
        column(&society(64, 6, &world, &json!({"kind": "conservative", "mixing": mixing, "episodes": 64})), name)
    };
    // The baseline's regret is the same in every round, so that it doubles with them.
    assert!(run("always", "regret-growth").iter().all(|growth| (growth - 1.0).abs() < 1e-9));
    for mixing in ["always", "step", "episode"] {
        assert!(run(mixing, "violations").iter().all(|violations| *violations == 0.0), "{mixing}");
    }
    assert!(run("never", "violations").iter().sum::<f64>() > 10.0);
    assert!(run("step", "regret").iter().all(|regret| *regret > 0.0));
}

#[test]
fn another_task_begins_when_it_should() {
    let catch = |mirrored: bool| json!({"kind": "catch", "width": 3, "height": 3, "mirrored": mirrored});
    let world = json!({"process": catch(false), "objective": {"kind": "episodic", "steps": 3}, "weights": [1, 0],
        "batch": 10, "change": {"round": 40, "process": catch(true)}});
    let whole = json!({"kind": "concerns", "rate": 0.5, "explore": 0.2,
        "concerns": [{"seats": [0, 1], "sees": [0, 1, 2, 3], "reward": [1, 0]}]});
    let before = column(&society(40, 3, &world, &whole), "value");
    let after = column(&society(41, 3, &world, &whole), "value");
    assert!(before.iter().zip(&after).all(|(before, after)| before > after), "{before:?} {after:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let q = json!({"kind": "value-mapping", "channels": [{"part": "sum"}]});
    let no = |world: Value, algorithm: &Value| refused(&society(1, 2, &world, algorithm));
    let mut half = two();
    half["transitions"][0][3] = json!(0.4);
    let text = no(json!({"process": half}), &q);
    assert!(text.contains("process") && text.contains("add up to 1"), "{text}");
    let text = no(json!({"process": {"kind": "catch", "width": 60, "height": 60}}), &q);
    assert!(text.contains("658800 states and 9 joint actions are too many"), "{text}");
    let garnet = json!({"kind": "garnet", "states": 2000, "moves": [3], "branching": 2});
    let text = no(json!({"process": garnet}), &q);
    assert!(text.contains("12000000 transitions are too many"), "{text}");
    let long = json!({"process": {"kind": "chain", "states": 2000, "climb": 1, "small": 0},
        "objective": {"kind": "episodic", "steps": 1000}});
    assert!(no(long, &q).contains("4000000 values"));
    let text = no(json!({"weights": [1, 2]}), &q);
    assert!(text.contains("2 numbers do not fit 1 channels"), "{text}");
    let log = json!({"kind": "value-mapping", "channels": [{"part": "sum", "mapping": {"kind": "log", "scale": 1, "offset": 1}}]});
    let text = no(json!({}), &log);
    assert!(text.contains("channels[0].mapping") && text.contains("cannot be negative"), "{text}");
    let steep =
        json!({"kind": "value-mapping", "channels": [{"part": "sum", "mapping": {"kind": "power", "exponent": -1}}]});
    assert!(no(json!({}), &steep).contains("exponent above 0"));
    let change = json!({"change": {"round": 1, "process": {"kind": "chain", "states": 3, "climb": 1, "small": 0}}});
    assert!(no(change, &q).contains("nothing is drawn"));
}
