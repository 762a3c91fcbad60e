//! Objectives that discount differently, pursued by one planner.
//!
//! After Pitis, "Consistent Aggregation of Objectives with Diverse Time Preferences Requires Non-Markovian Rewards" (NeurIPS 2023). A
//! weighted sum of discounted objectives is not the discounted sum of any single reward. A planner that carries one number for each
//! objective, its weight times its discount factor to the power of the time that has passed, acts consistently.

use crate::process::{Objective, Process, best, greedy, scaled};

/// How objectives are aggregated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// One reward, the weighted sum, with one discount factor for all.
    Markov {
        /// The factor; `None`: the one of a hundred and one whose plan the objectives like best.
        discount: Option<f64>,
    },
    /// At each step the objectives are weighed as at the first.
    Afresh,
    /// Weights are carried along: each objective's falls with its discount factor.
    Carried,
}

/// The policy of a scheme in episodes of a known process: for each stage, state and action.
///
/// The schemes that weigh anew at each step plan the rest of the episode from each stage on, and take the first action of that plan.
#[must_use]
pub fn plan(process: &Process, horizon: usize, discounts: &[f64], weights: &[f64], scheme: Scheme) -> Vec<f64> {
    let actions = process.actions();
    let single = |discount: f64| {
        let objective = Objective::Episodic { horizon, discounts: vec![discount; process.channels] };
        greedy(&process.optimum(&objective, weights).q, actions)
    };
    match scheme {
        Scheme::Markov { discount: Some(discount) } => single(discount),
        Scheme::Markov { discount: None } => {
            let truth = Objective::Episodic { horizon, discounts: discounts.to_vec() };
            let plans: Vec<Vec<f64>> = (0..=100).map(|i| single(f64::from(i) / 100.0)).collect();
            let worth: Vec<f64> = plans.iter().map(|plan| process.evaluate(&truth, weights, plan).value).collect();
            plans.into_iter().nth(best(&worth)).unwrap_or_default()
        }
        Scheme::Afresh | Scheme::Carried => {
            let mut policy = Vec::with_capacity(horizon * process.pairs());
            let mut carried = weights.to_vec();
            for stage in 0..horizon {
                let rest = Objective::Episodic { horizon: horizon - stage, discounts: discounts.to_vec() };
                let q = process.optimum(&rest, &carried).q;
                policy.extend(greedy(&q[..process.pairs()], actions));
                if scheme == Scheme::Carried {
                    carried = scaled(&carried, discounts, 1);
                }
            }
            policy
        }
    }
}

/// The number of pairs of a stage and a state, among those that some policy can reach, in which a policy takes an action that the objectives, weighed at the
/// beginning, like less than another one. With it, the number of pairs that were looked at.
#[must_use]
pub fn inconsistencies(
    process: &Process,
    horizon: usize,
    discounts: &[f64],
    weights: &[f64],
    policy: &[f64],
) -> (usize, usize) {
    let (actions, pairs) = (process.actions(), process.pairs());
    let uniform = vec![1.0 / actions as f64; pairs];
    let reached = process.occupancy(horizon, &uniform);
    let truth = process.optimum(&Objective::Episodic { horizon, discounts: discounts.to_vec() }, weights).q;
    let (mut wrong, mut all) = (0, 0);
    for (place, _) in reached.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let q = &truth[place * actions..(place + 1) * actions];
        let start = if policy.len() > pairs { place * actions } else { place * actions % pairs };
        let taken: f64 = q.iter().zip(&policy[start..start + actions]).map(|(q, p)| q * p).sum();
        all += 1;
        let scale = scaled(weights, discounts, place / process.states).into_iter().fold(0.0, f64::max);
        wrong += usize::from(taken < q[best(q)] - 1e-9 * scale);
    }
    (wrong, all)
}

/// By how much all objectives together could be improved on a policy: the least, over weights of the objectives that add up to 1, of
/// what the best policy for these weights gains. By the minimax theorem a number above 0 means that some mixture of policies is better by
/// at least as much for every objective. Two objectives; for more it is 0.
#[must_use]
pub fn dominance(process: &Process, horizon: usize, discounts: &[f64], policy: &[f64]) -> f64 {
    if process.channels != 2 {
        return 0.0;
    }
    let objective = Objective::Episodic { horizon, discounts: discounts.to_vec() };
    let value = |weights: [f64; 2]| process.evaluate(&objective, &weights, policy).value;
    let own = [value([1.0, 0.0]), value([0.0, 1.0])];
    let gain = |first: f64| {
        let weights = [first, 1.0 - first];
        process.optimum(&objective, &weights).value - first * own[0] - (1.0 - first) * own[1]
    };
    // The gain is convex in the weight.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if gain(a) <= gain(b) { high = b } else { low = a }
    }
    gain((low + high) / 2.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_library::{Cell, garnet, grid};
    use polity_base::rng::{Draws, Stream};

    /// The best sum over all paths of a deterministic process from its first state, by trying all.
    fn walked(process: &Process, left: usize, stage: usize, state: usize, discounts: &[f64], weights: &[f64]) -> f64 {
        if left == 0 || process.terminal[state] {
            return 0.0;
        }
        let actions = process.actions();
        let all = (0..actions).map(|action| {
            let pair = state * actions + action;
            let next = process.next[pair][0].0 as usize;
            process.reward(pair, &scaled(weights, discounts, stage))
                + walked(process, left - 1, stage + 1, next, discounts, weights)
        });
        all.fold(f64::NEG_INFINITY, f64::max)
    }

    fn field() -> Process {
        let end = |x, y, channel, reward| Cell { x, y, channel, reward, end: true };
        grid(3, 3, 0.0, 2, &[end(2, 0, 0, 1.0), end(2, 2, 1, 2.0)])
    }

    #[test]
    fn carried_weights_find_the_best_path_of_all() {
        let (process, discounts) = (field(), [0.5, 0.95]);
        for i in 1..10 {
            let weights = [f64::from(i), 1.0];
            let best = walked(&process, 6, 0, 0, &discounts, &weights);
            let policy = plan(&process, 6, &discounts, &weights, Scheme::Carried);
            let objective = Objective::Episodic { horizon: 6, discounts: discounts.to_vec() };
            assert!((process.evaluate(&objective, &weights, &policy).value - best).abs() < 1e-12);
            assert_eq!(inconsistencies(&process, 6, &discounts, &weights, &policy).0, 0);
        }
    }

    #[test]
    fn other_schemes_contradict_themselves_somewhere_and_never_with_equal_discounts() {
        let (mut afresh, mut markov, mut dominated) = (0, 0, 0.0f64);
        let mut free = 0.0f64;
        for n in 0..10 {
            let process = garnet(4, &[3], 1, 2, &mut Draws::new(3, Stream::World, 0, n));
            let mut wrong = |discounts: [f64; 2], scheme| {
                let policy = plan(&process, 6, &discounts, &[1.0, 1.0], scheme);
                let worse = dominance(&process, 6, &discounts, &policy);
                if scheme == Scheme::Carried {
                    free = free.max(worse)
                } else {
                    dominated = dominated.max(worse)
                }
                inconsistencies(&process, 6, &discounts, &[1.0, 1.0], &policy).0
            };
            assert_eq!(wrong([0.4, 1.0], Scheme::Carried), 0);
            assert_eq!(
                wrong([0.8, 0.8], Scheme::Afresh) + wrong([0.8, 0.8], Scheme::Markov { discount: Some(0.8) }),
                0
            );
            afresh += wrong([0.4, 1.0], Scheme::Afresh);
            markov += wrong([0.4, 1.0], Scheme::Markov { discount: None });
        }
        assert!(afresh > 0 && markov > 0, "{afresh} {markov}");
        assert!(dominated > 0.01 && free < 1e-9, "{dominated} {free}");
    }
}
