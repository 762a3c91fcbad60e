//! The guess-average world with its policies, against closed forms.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing::{acts, mean, metric, play};
use serde_json::{Value, json};

fn contest(agents: u32, rounds: u32, world: Value, policy: Value) -> Value {
    json!({
        "seed": 5, "rounds": rounds, "agents": agents, "world": world, "cohorts": [{"policy": policy}],
        "metrics": [{"kind": "mean", "of": "guess"}, {"kind": "mean", "of": "last-guess"}],
    })
}

/// f(k) and b_k of the cognitive hierarchy, written out: Poisson weights up to 20, and b_k = p * sum_{h<k} f(h) b_h / sum_{h<k} f(h).
fn hierarchy(tau: f64, p: f64, anchor: f64) -> Vec<(f64, f64)> {
    let mut factorial = 1.0;
    let mut levels: Vec<(f64, f64)> = Vec::new();
    for k in 0..=20 {
        if k > 0 {
            factorial *= f64::from(k);
        }
        let mass: f64 = levels.iter().map(|(f, _)| f).sum();
        let sum: f64 = levels.iter().map(|(f, b)| f * b).sum();
        levels.push(((-tau).exp() * tau.powi(k) / factorial, if k == 0 { anchor } else { p * sum / mass }));
    }
    levels
}

#[test]
fn the_first_mean_of_level_k_is_the_closed_form_and_later_means_decay_geometrically() {
    let (n, tau, p) = (20_000, 1.5, 2.0 / 3.0);
    let played = play(&contest(n, 8, json!({"kind": "guess-average"}), json!({"kind": "level-k", "mean": tau})));
    let levels = hierarchy(tau, p, 50.0);
    let expected: f64 = levels.iter().map(|(f, b)| f * b).sum();
    // Level 0 is uniform over 0..100, which has variance 100^2 / 12.
    let square: f64 = levels.iter().map(|(f, b)| f * b * b).sum::<f64>() + levels[0].0 * 1e4 / 12.0;
    let five_sigma = 5.0 * ((square - expected * expected) / f64::from(n)).sqrt();
    let means: Vec<f64> = played.rounds.iter().map(|round| metric(round, "guess.mean")).collect();
    assert!((means[0] - expected).abs() < five_sigma, "{} is not {expected} +- {five_sigma}", means[0]);
    // From then on every level answers in proportion to the last mean, so that the mean shrinks by one factor: the closed form's with the
    // anchor 1, up to the sampling of levels.
    let factor = means[2] / means[1];
    let ideal: f64 = hierarchy(tau, p, 1.0).iter().map(|(f, b)| f * b).sum();
    assert!((factor - ideal).abs() < 0.01, "{factor} and {ideal}");
    for pair in means[1..].windows(2) {
        assert!((pair[1] / pair[0] - factor).abs() < 1e-12, "{means:?}");
    }
    assert!((metric(&played.rounds[7], "target") - p * means[7]).abs() < 1e-12);
}

#[test]
fn a_population_of_learners_decays_by_a_known_factor() {
    let policy = json!({"kind": "adaptive", "rate": 0.4});
    let played =
        play(&contest(500, 12, json!({"kind": "guess-average", "fraction": 0.5, "low": 0, "high": 10}), policy));
    let means: Vec<f64> = played.rounds.iter().map(|round| mean(&acts(round))).collect();
    assert!((means[0] - 5.0).abs() < 5.0 * 10.0 / (12.0f64 * 500.0).sqrt());
    for pair in means.windows(2) {
        // m' = m + rate * (p m - m)
        assert!((pair[1] - pair[0] * (1.0 - 0.4 * 0.5)).abs() < 1e-12, "{means:?}");
    }
}

#[test]
fn learners_stay_where_they_are_when_nothing_is_announced() {
    let world = json!({"kind": "guess-average", "announce": "nothing"});
    let played = play(&contest(100, 3, world, json!({"kind": "adaptive"})));
    assert_eq!(acts(&played.rounds[0]), acts(&played.rounds[2]));
    assert_eq!(played.outcome.rounds, 3);
}

#[test]
fn noise_is_uniform_over_the_range_and_new_in_every_round() {
    let world = json!({"kind": "guess-average", "low": -10, "high": 30});
    let played = play(&contest(20_000, 2, world, json!({"kind": "noise"})));
    let [first, second] = [0, 1].map(|round| acts(&played.rounds[round]));
    for values in [&first, &second] {
        assert!(values.iter().all(|value| (-10.0..30.0).contains(value)));
        // Each quarter of the range, 5,000 expected with a standard deviation of 61.
        for quarter in 0..4 {
            let low = -10.0 + 10.0 * f64::from(quarter);
            let count = values.iter().filter(|value| (low..low + 10.0).contains(*value)).count();
            assert!((4_690..5_310).contains(&count), "{count} in quarter {quarter}");
        }
    }
    assert!(first.iter().zip(&second).all(|(a, b)| a != b));
    assert_eq!(metric(&played.rounds[1], "guess.mean"), metric(&played.rounds[1], "last-guess.mean"));
}

#[test]
fn worlds_reward() {
    let guess = json!({"rounds": 3, "agents": 50, "seed": 2, "world": {"kind": "guess-average"}, "topology": {"kind": "none"},
        "cohorts": [{"policy": {"kind": "noise"}}]});
    let played = play(&guess);
    let interface = played.society.interface();
    let reward = played.society.column(interface.reward.unwrap());
    let guesses = played.society.column(0);
    let target = played.rounds.last().unwrap().metrics.iter().find(|(name, _)| name == "target").unwrap().1;
    for (guess, reward) in guesses.iter().zip(&reward) {
        assert_eq!(*reward, -(guess - target).abs() / 100.0, "how far off, as a share of the range");
    }
}
