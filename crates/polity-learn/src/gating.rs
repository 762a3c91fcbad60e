//! Mixtures of logistic experts with a softmax gate, fitted by maximum likelihood, and how far the fit is from the truth.
//!
//! After Nguyen, Akbarian, Nguyen and Ho, "A General Theory for Softmax Gating Multinomial Logistic Mixture of Experts" (ICML 2024). Two
//! classes, a number x as input, and one expert more than there are: the first of two true ones is fitted by two. The derivative by the slope of
//! an expert is the mixed derivative by gate and intercept; if the slope vanishes, second derivatives by the intercept are multiples of
//! the first one, too, and estimates are slow.

use crate::linear::{cholesky, dot, solve};
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// What the gate sees of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// The input.
    #[default]
    Plain,
    /// Its hyperbolic tangent.
    Modified,
}

/// An expert: the gate's bias and slope, the intercept and the slope of its logit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expert {
    /// The gate's bias.
    pub bias: f64,
    /// The gate's slope.
    pub lean: f64,
    /// The logit at 0.
    pub intercept: f64,
    /// The slope of the logit.
    pub slope: f64,
}

impl Expert {
    fn of(numbers: &[f64]) -> Expert {
        Expert { bias: numbers[0], lean: numbers[1], intercept: numbers[2], slope: numbers[3] }
    }

    fn numbers(&self) -> [f64; 4] {
        [self.bias, self.lean, self.intercept, self.slope]
    }
}

/// Inputs lie on a grid from -2 to 2.
const POINTS: usize = 81;

/// Parameters lie within this distance of the true ones: a compact set, as the theory has it.
const REACH: f64 = 1.0;

fn place(i: usize) -> f64 {
    4.0 * i as f64 / (POINTS - 1) as f64 - 2.0
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Returns the probability of the first class at an input, and its derivatives by all numbers of the experts.
fn predict(experts: &[Expert], gate: Gate, x: f64) -> (f64, Vec<f64>) {
    let seen = match gate {
        Gate::Plain => x,
        Gate::Modified => libm::tanh(x),
    };
    let scores: Vec<f64> = experts.iter().map(|e| e.bias + e.lean * seen).collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
    let total: f64 = parts.iter().sum();
    let own: Vec<f64> = experts.iter().map(|e| logistic(e.intercept + e.slope * x)).collect();
    let mixed = dot(&parts, &own) / total;
    let derivatives = parts.iter().zip(&own).flat_map(|(part, p)| {
        let weight = part / total;
        let by_gate = weight * (p - mixed);
        let by_logit = weight * p * (1.0 - p);
        [by_gate, by_gate * seen, by_logit, by_logit * x]
    });
    (mixed, derivatives.collect())
}

/// Returns the true experts: of the first one the slope is given; the second one's gate is the reference.
#[must_use]
pub fn truth(slope: f64) -> [Expert; 2] {
    [
        Expert { bias: 0.5, lean: 1.5, intercept: 1.0, slope },
        Expert { bias: 0.0, lean: 0.0, intercept: -1.0, slope: -1.0 },
    ]
}

/// Draws the shares of the first class at each input, of `n` points that are spread evenly over the inputs: normal with the binomial variance.
#[must_use]
pub fn sample(truth: &[Expert], gate: Gate, n: f64, draws: &mut Draws) -> Vec<f64> {
    let each = n / POINTS as f64;
    (0..POINTS)
        .map(|i| {
            let (p, _) = predict(truth, gate, place(i));
            (p + (p * (1.0 - p) / each).sqrt() * draws.normal()).clamp(0.5 / each, 1.0 - 0.5 / each)
        })
        .collect()
}

/// Returns the log-likelihood of shares for each point, up to a constant, as the mean over inputs.
#[must_use]
pub fn log_likelihood(experts: &[Expert], gate: Gate, shares: &[f64]) -> f64 {
    let at = |(i, share): (usize, &f64)| {
        let (p, _) = predict(experts, gate, place(i));
        let p = p.clamp(1e-300, 1.0 - 1e-16);
        share * libm::log(p / share) + (1.0 - share) * libm::log((1.0 - p) / (1.0 - share))
    };
    shares.iter().enumerate().map(at).sum::<f64>() / shares.len() as f64
}

/// Fits experts by maximum likelihood, from a start, with Fisher's scoring, damped as by Levenberg and Marquardt. The last expert and all
/// weights stay as they are; other numbers stay within 1 of the true ones.
#[must_use]
pub fn fit(start: &[Expert], truth: &[Expert; 2], gate: Gate, shares: &[f64], iterations: usize) -> Vec<Expert> {
    let n = 4 * start.len();
    // The last expert and the weights are known.
    let free: Vec<usize> = (0..n - 4).filter(|i| i % 4 != 0).collect();
    let m = free.len();
    let centre: Vec<f64> = [truth[0], truth[0], truth[1]].iter().flat_map(Expert::numbers).collect();
    let mut numbers: Vec<f64> = start.iter().flat_map(Expert::numbers).collect();
    let experts = |numbers: &[f64]| -> Vec<Expert> { numbers.chunks(4).map(Expert::of).collect() };
    let mut value = log_likelihood(start, gate, shares);
    let mut damping = 1e-3;
    for _ in 0..iterations {
        let now = experts(&numbers);
        let mut information = vec![0.0; m * m];
        let mut score = vec![0.0; m];
        for (i, share) in shares.iter().enumerate() {
            let (p, derivatives) = predict(&now, gate, place(i));
            let scale = 1.0 / (p * (1.0 - p)).max(1e-12) / shares.len() as f64;
            let of: Vec<f64> = free.iter().map(|place| derivatives[*place]).collect();
            for (j, a) in of.iter().enumerate() {
                score[j] += scale * (share - p) * a;
                of.iter().enumerate().for_each(|(k, b)| information[j * m + k] += scale * a * b);
            }
        }
        let mut moved = false;
        while damping < 1e12 {
            let mut damped = information.clone();
            (0..m).for_each(|j| damped[j * m + j] += damping * (1e-12 + information[j * m + j]));
            let Some(lower) = cholesky(&damped, m) else {
                damping *= 10.0;
                continue;
            };
            let mut step = score.clone();
            solve(&lower, &mut step);
            let mut next = numbers.clone();
            for (place, by) in free.iter().zip(&step) {
                next[*place] = (next[*place] + by).clamp(centre[*place] - REACH, centre[*place] + REACH);
            }
            let reached = log_likelihood(&experts(&next), gate, shares);
            if reached > value {
                moved = reached - value > 1e-18;
                (numbers, value) = (next, reached);
                damping = (damping * 0.2).max(1e-14);
                break;
            }
            damping *= 5.0;
        }
        if !moved {
            break;
        }
    }
    experts(&numbers)
}

/// Returns the loss of Voronoi cells: both fitted experts that share the first true one count by their weight times their squared distance
/// from it. (The weights and the second expert are known, so the other parts of the loss are 0.)
#[must_use]
pub fn loss(fitted: &[Expert], truth: &[Expert; 2]) -> f64 {
    let square = |a: [f64; 4], b: [f64; 4]| (1..4).map(|i| (a[i] - b[i]) * (a[i] - b[i])).sum::<f64>();
    let part = |e: &Expert| libm::exp(e.bias) * square(e.numbers(), truth[0].numbers());
    fitted.iter().take(fitted.len() - 1).map(part).sum()
}

/// Returns a start near the truth: the first expert twice, each with half of its weight and with its other numbers moved by normal draws.
#[must_use]
pub fn near(truth: &[Expert; 2], spread: f64, draws: &mut Draws) -> Vec<Expert> {
    let half = Expert { bias: truth[0].bias - std::f64::consts::LN_2, ..truth[0] };
    let mut moved = |e: &Expert| Expert::of(&e.numbers().map(|x| x + spread * draws.normal()));
    let mut start = vec![moved(&half), moved(&half), truth[1]];
    start[0].bias = half.bias;
    start[1].bias = half.bias;
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    #[test]
    fn derivatives_are_those_of_small_steps() {
        let experts = [Expert::of(&[0.3, 1.2, 0.7, -0.4]), Expert::of(&[-0.2, 0.5, -1.0, 0.9]), truth(0.0)[1]];
        for gate in [Gate::Plain, Gate::Modified] {
            for x in [-1.7, 0.2, 1.1] {
                let (p, derivatives) = predict(&experts, gate, x);
                let mut numbers: Vec<f64> = experts.iter().flat_map(Expert::numbers).collect();
                for i in 0..12 {
                    numbers[i] += 1e-6;
                    let moved: Vec<Expert> = numbers.chunks(4).map(Expert::of).collect();
                    let slope = (predict(&moved, gate, x).0 - p) / 1e-6;
                    assert!((slope - derivatives[i]).abs() < 1e-5, "{i}: {slope} {}", derivatives[i]);
                    numbers[i] -= 1e-6;
                }
            }
        }
    }

    #[test]
    fn a_fit_is_at_least_as_likely_as_the_truth_and_no_step_lowers_it() {
        for (slope, gate) in [(2.0, Gate::Plain), (0.0, Gate::Plain), (0.0, Gate::Modified)] {
            let truth = truth(slope);
            let mut draws = Draws::new(13, Stream::World, 0, 0);
            let shares = sample(&truth, gate, 1e6, &mut draws);
            let start = near(&truth, 0.1, &mut draws);
            let value =
                |iterations: usize| log_likelihood(&fit(&start, &truth, gate, &shares, iterations), gate, &shares);
            assert!(value(200) >= log_likelihood(&truth, gate, &shares));
            assert!(value(1) <= value(2) && value(2) <= value(10));
        }
    }

    #[test]
    fn two_constant_experts_are_one_whatever_the_gate_sees() {
        // The slope is 0 and the gates are alike: only the mean of the two probabilities counts, so intercepts cannot be told.
        let truth = truth(0.0);
        let p = logistic(truth[0].intercept);
        let logit = |p: f64| libm::log(p / (1.0 - p));
        let half = truth[0].bias - std::f64::consts::LN_2;
        let apart = |by: f64| Expert { bias: half, intercept: logit(p + by), ..truth[0] };
        let fitted = [apart(0.1), apart(-0.1), truth[1]];
        for gate in [Gate::Plain, Gate::Modified] {
            for i in 0..POINTS {
                let difference = predict(&fitted, gate, place(i)).0 - predict(&truth, gate, place(i)).0;
                assert!(difference.abs() < 1e-14);
            }
        }
        assert!(loss(&fitted, &truth) > 0.3);
    }
}
