//! Learners on mountain car, against a plain loop, and without information.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{acts, metric, play, refused};
use polity_kernel::rng::{Draws, Stream};
use polity_learn::approximation::{Approximator, Learned};
use polity_learn::incremental::{Drift, Form, Settings};
use serde_json::{Value, json};

fn drive(agents: u32, rounds: u32, limit: u32, changes: Value) -> Value {
    let mut policy = json!({"kind": "value-learner", "step": "step", "limit": "limit", "highest": 0, "fade": 0.98,
        "state": [{"number": "position", "low": -1.2, "high": 0.6}, {"number": "velocity", "low": -0.07, "high": 0.07}],
        "solved": {"reward": -150, "episodes": 20}});
    if let (Some(policy), Value::Object(changes)) = (policy.as_object_mut(), changes) {
        policy.extend(changes);
    }
    json!({"seed": 7, "rounds": rounds, "agents": agents, "topology": {"kind": "none"},
        "world": {"kind": "mountain-car", "limit": limit}, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "position"}, {"kind": "mean", "of": "recent-return"},
            {"kind": "mean", "of": "fitted-numbers"}, {"kind": "mean", "of": "components"}]})
}

/// Plays a drive with a plain loop beside it: how many decisions could be compared, of how many. Values nearer to each other than rounding
/// are left out.
fn agreed(changes: Value, approximator: &Approximator, mut learned: Learned, rate: f64) -> usize {
    let played = play(&drive(1, 300, 400, changes));
    let pushes: Vec<usize> = played.rounds.iter().map(|round| acts(round)[0] as usize).collect();
    let after: Vec<f64> = played.rounds.iter().map(|round| metric(round, "position.mean")).collect();
    // Backwards from the first two positions to the start, at rest.
    let slope = |position: f64| libm::cos(3.0 * position) * 0.0025;
    let first = after[1] - after[0] - (pushes[1] as f64 - 1.0) * 0.001 + slope(after[0]);
    let positions: Vec<f64> = [after[0] - first].iter().chain(&after).copied().collect();
    let velocity = |t: usize| if t == 0 { 0.0 } else { positions[t] - positions[t - 1] };
    let state = |t: usize| [(positions[t] + 1.2) / 1.8, (velocity(t) + 0.07) / 0.14];
    let mut compared = 0;
    let mut before: Vec<f64> = vec![0.0; 3];
    for t in 0..300 {
        if t > 0 {
            let best = approximator.values(&learned, &state(t), 3).into_iter().fold(f64::NEG_INFINITY, f64::max);
            let target = -1.0 + 0.99 * best.min(0.0);
            approximator.learn(&mut learned, &state(t - 1), &before, (pushes[t - 1], target), rate);
        }
        before = approximator.values(&learned, &state(t), 3);
        let top = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let good: Vec<usize> = (0..3).filter(|i| before[*i] > top - 1e-6).collect();
        if good.len() == 1 {
            assert_eq!(pushes[t], good[0], "step {t}: {before:?}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn decisions_are_those_of_a_plain_loop() {
    let settings = Settings {
        form: Form::Precision,
        variances: vec![0.04, 0.04, 0.09, 0.09, 0.09],
        novelty: 0.3,
        most: 40,
        age: 0,
        weight: 0.0,
        drift: Drift { known: 2, memory: 100.0, floor: 0.3, background: 30.0 },
    };
    let approximator = Approximator::Mixture(settings);
    let start = approximator.start(2, 3, &mut Draws::new(1, Stream::World, 0, 0));
    let compared = agreed(json!({}), &approximator, start, 0.3);
    assert!(compared > 250, "{compared}");
}

#[test]
fn a_mixture_learns_to_reach_the_goal_and_learns_nothing_from_targets_by_lot() {
    let recent =
        |changes: Value| metric(play(&drive(3, 8_000, 200, changes)).rounds.last().unwrap(), "recent-return.mean");
    let (learned, by_lot) = (recent(json!({})), recent(json!({"scrambled": true})));
    assert!(learned > -170.0 && by_lot < -190.0, "{learned} {by_lot}");
}

#[test]
fn nothing_is_learned_from_the_decision_at_which_an_episode_is_cut() {
    let fitted = |limit: u32, changes: Value| {
        metric(play(&drive(2, 20, limit, changes)).rounds.last().unwrap(), "fitted-numbers.mean")
    };
    assert_eq!(fitted(1, json!({})), 0.0);
    // Without `limit` the last decision counts as the end of the task. One component has 5 means, 15 covariances and a weight.
    assert_eq!(fitted(1, json!({"limit": null})), 21.0);
    assert_eq!(fitted(1, json!({"approximator": {"network": {"hidden": 4}}})), 27.0);
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let why = |changes: Value| refused(&drive(1, 1, 10, changes));
    assert!(why(json!({"state": []})).contains("state"));
    assert!(why(json!({"state": [{"number": "weather", "low": 0, "high": 1}]})).contains("weather"));
    assert!(why(json!({"state": [{"number": "position", "low": 1, "high": 1}]})).contains("position"));
    assert!(why(json!({"step": null})).contains("step"));
    assert!(why(json!({"approximator": {"mixture": {"floor": 0}}})).contains("floor"));
    assert!(why(json!({"rate": 0})).contains("rate"));
}
