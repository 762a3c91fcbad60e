//! Trials against closed forms, and of players who avoid risk against those who do not.

use super::{Family, Params};
use crate::trials::testing::{refuses, results};
use polity_kernel::rng::{Draws, Stream};
use serde_json::json;

fn trials(family: Family, aversion: f64, count: u32) -> Vec<Vec<f64>> {
    let tremble = if family == Family::Crossing { 0.02 } else { 0.1 };
    let params = Params { family, aversion, tremble };
    results(params, 8, count)
}

/// With tremble t the stag gives its mean less the weighted variance of a coin with probability t/2; it stays an equilibrium where this is
/// at least the hare's.
#[test]
fn the_stag_stays_where_the_closed_form_says() {
    for aversion in [0.0, 0.5, 1.0, 2.0] {
        for (i, found) in (0u32..).zip(trials(Family::StagHunt, aversion, 60)) {
            let mut draws = Draws::new(8, Stream::World, 0, i);
            let (together, alone) = (draws.range(3.0, 5.0), draws.range(-1.0, 1.0));
            let coin = f64::midpoint(together, alone);
            let hare = coin + draws.range(0.05, 0.95) * (together - coin);
            let gap = together - alone;
            // By the slope of the objective at the stag towards the hare, which carries no risk.
            let stays = together - 0.05 * gap - hare >= 2.0 * aversion * 0.05 * 0.95 * gap * gap;
            assert_eq!(found[0] == 0.0, stays, "{aversion} {together} {alone} {hare}");
        }
    }
}

#[test]
fn aversion_lowers_variance_and_crashes() {
    let mean = |family, aversion, column: usize| {
        let all = trials(family, aversion, 20);
        all.iter().map(|found| found[column]).sum::<f64>() / all.len() as f64
    };
    assert!(mean(Family::Random, 2.0, 1) < 0.8 * mean(Family::Random, 0.0, 1));
    assert!(mean(Family::Crossing, 2.0, 3) < mean(Family::Crossing, 0.0, 3));
    assert!(trials(Family::Crossing, 2.0, 10).iter().all(|found| found[6] < 1e-5));
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses("risk-averse-games", &[("aversion", json!(-1.0)), ("tremble", json!(2.0))]);
}
