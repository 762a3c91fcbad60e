//! Particle filters on a nonlinear model: with the model's own kernel as proposal (bootstrap), with a proposal that is fitted at each step,
//! and a filter on a grid as reference.
//!
//! The adaptive proposal is after Cornebise, Moulines and Olsson, "Adaptive sequential Monte Carlo by means of mixture of experts" (Statistics
//! and Computing 2014): at each step a mixture of experts with logistic weights is fitted by online EM to the kernel that would be optimal, by
//! weighted samples of the proposal itself.

use polity_base::rng::{Draws, normal_quantile};
use serde::{Deserialize, Serialize};

/// The growth model (Gordon, Salmond and Smith 1993): x' = x/2 + 25 x / (1 + x^2) + 8 cos(1.2 t) + noise, y = x'^2 / 20 + noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Variance of the noise of states.
    pub state: f64,
    /// Variance of the noise of observations.
    pub observation: f64,
}

impl Growth {
    /// Variance of the first state, whose mean is 0.
    pub const FIRST: f64 = 5.0;

    /// Returns the mean of the next state, at step `t` (from 1).
    #[must_use]
    pub fn drift(&self, x: f64, t: u32) -> f64 {
        0.5 * x + 25.0 * x / (1.0 + x * x) + 8.0 * libm::cos(1.2 * f64::from(t))
    }

    /// Returns the logarithm of the density of an observation, up to a constant.
    #[must_use]
    pub fn log_observed(&self, x: f64, y: f64) -> f64 {
        let error = y - x * x / 20.0;
        -0.5 * error * error / self.observation
    }

    /// Returns the logarithm of the density of the next state.
    #[must_use]
    pub fn log_moved(&self, drift: f64, next: f64) -> f64 {
        log_normal(next - drift, self.state)
    }

    /// Draws the next state and its observation.
    pub fn step(&self, x: f64, t: u32, draws: &mut Draws) -> (f64, f64) {
        let next = self.drift(x, t) + self.state.sqrt() * draws.normal();
        (next, next * next / 20.0 + self.observation.sqrt() * draws.normal())
    }
}

fn log_normal(error: f64, variance: f64) -> f64 {
    -0.5 * (error * error / variance + libm::log(variance) + 1.837_877_066_409_345_3)
}

/// An expert: a line through drifts, with a variance, and its part of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expert {
    /// Value at a drift of 0.
    pub intercept: f64,
    /// Slope over drifts.
    pub slope: f64,
    /// Variance.
    pub variance: f64,
    /// The logarithm of its weight, up to a constant: `bias + lean * drift`.
    pub bias: f64,
    /// See `bias`.
    pub lean: f64,
}

/// A mixture of experts with logistic weights: a distribution of the next state, given the drift.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experts {
    /// The experts.
    pub experts: Vec<Expert>,
    /// Weight of the model's own kernel, which keeps weights of particles bounded.
    pub defence: f64,
    /// Variance of the model's own kernel.
    pub own: f64,
}

/// How the proposal is fitted at each step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitting {
    /// Number of experts.
    pub experts: usize,
    /// Iterations of online EM.
    pub iterations: u32,
    /// Samples of each iteration.
    pub samples: usize,
    /// Weight of the model's own kernel in the proposal.
    pub defence: f64,
    /// A placebo: the same work, but the fit does not see the observation.
    pub blind: bool,
}

impl Experts {
    /// Experts beside each other that together cover the model's own kernel.
    #[must_use]
    pub fn spread(model: &Growth, fitting: &Fitting) -> Experts {
        let n = fitting.experts;
        let experts = (0..n)
            .map(|k| Expert {
                intercept: model.state.sqrt() * normal_quantile((k as f64 + 0.5) / n as f64),
                slope: 1.0,
                variance: model.state,
                bias: 0.0,
                lean: 0.0,
            })
            .collect();
        Experts { experts, defence: fitting.defence, own: model.state }
    }

    /// Returns the weights of experts at a drift.
    fn gate(&self, drift: f64) -> Vec<f64> {
        let scores: Vec<f64> = self.experts.iter().map(|e| e.bias + e.lean * drift).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
        let total: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / total).collect()
    }

    /// Draws a next state.
    pub fn draw(&self, drift: f64, draws: &mut Draws) -> f64 {
        if draws.chance(self.defence) {
            return drift + self.own.sqrt() * draws.normal();
        }
        let chosen = draws.weighted(&self.gate(drift)).unwrap_or(0);
        let expert = self.experts[chosen];
        expert.intercept + expert.slope * drift + expert.variance.sqrt() * draws.normal()
    }

    /// Returns each expert's density times its weight.
    fn parts(&self, drift: f64, next: f64) -> Vec<f64> {
        let density = |e: &Expert| libm::exp(log_normal(next - e.intercept - e.slope * drift, e.variance));
        self.gate(drift).iter().zip(&self.experts).map(|(weight, e)| weight * density(e)).collect()
    }

    /// Returns the logarithm of the density of a next state.
    #[must_use]
    pub fn log_density(&self, drift: f64, next: f64) -> f64 {
        let mixed: f64 = self.parts(drift, next).iter().sum();
        let own = libm::exp(log_normal(next - drift, self.own));
        libm::log(((1.0 - self.defence) * mixed + self.defence * own).max(f64::MIN_POSITIVE))
    }

    /// Fits the mixture to the optimal kernel of particles with these drifts, by online EM: each iteration samples the proposal, weighs the
    /// samples, and moves the expected statistics by a step that shrinks.
    pub fn fit(&mut self, model: &Growth, drifts: &[f64], y: f64, fitting: &Fitting, draws: &mut Draws) {
        let n = self.experts.len();
        // By expert: weight, drift, drift^2, next, drift * next, next^2.
        let mut statistics = vec![[0.0; 6]; n];
        for iteration in 0..fitting.iterations {
            let mut batch = vec![[0.0; 6]; n];
            let samples: Vec<(f64, f64, f64)> = (0..fitting.samples)
                .map(|_| {
                    let drift = drifts[draws.below(drifts.len() as u64) as usize];
                    let next = self.draw(drift, draws);
                    let seen = if fitting.blind { 0.0 } else { model.log_observed(next, y) };
                    (drift, next, model.log_moved(drift, next) + seen - self.log_density(drift, next))
                })
                .collect();
            let most = samples.iter().map(|sample| sample.2).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = samples.iter().map(|sample| libm::exp(sample.2 - most)).sum();
            for (drift, next, log) in samples {
                let weight = libm::exp(log - most) / total;
                let parts = self.parts(drift, next);
                let whole: f64 = parts.iter().sum();
                if whole <= 0.0 {
                    continue;
                }
                for (sums, part) in batch.iter_mut().zip(&parts) {
                    let share = weight * part / whole;
                    let values = [1.0, drift, drift * drift, next, drift * next, next * next];
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += share * value);
                }
            }
            let step = if iteration == 0 { 1.0 } else { 1.0 / libm::pow(f64::from(iteration) + 1.0, 0.6) };
            for (mean, batch) in statistics.iter_mut().zip(&batch) {
                mean.iter_mut().zip(batch).for_each(|(m, b)| *m += step * (b - *m));
            }
            self.maximise(&statistics);
        }
    }

    /// Sets the experts to the best ones for expected statistics: lines by regression; the gate is that of drifts with a common variance.
    fn maximise(&mut self, statistics: &[[f64; 6]]) {
        const LEAST: f64 = 1e-3;
        let total: f64 = statistics.iter().map(|s| s[0]).sum();
        if total <= 0.0 {
            return;
        }
        let spread = |s: &[f64; 6]| s[2] - s[1] * s[1] / s[0].max(f64::MIN_POSITIVE);
        let common = (statistics.iter().map(spread).sum::<f64>() / total).max(LEAST);
        for (expert, s) in self.experts.iter_mut().zip(statistics) {
            if s[0] < LEAST * total {
                expert.bias = libm::log(LEAST);
                expert.lean = 0.0;
                continue;
            }
            let (drift, next) = (s[1] / s[0], s[3] / s[0]);
            let variance = (s[2] / s[0] - drift * drift).max(0.0);
            let covariance = s[4] / s[0] - drift * next;
            // A little shrinkage to a slope of 0, so that a few samples decide no steep line.
            expert.slope = covariance / (variance + 0.05 * self.own);
            expert.intercept = next - expert.slope * drift;
            let left =
                s[5] / s[0] - next * next - 2.0 * expert.slope * covariance + expert.slope * expert.slope * variance;
            expert.variance = left.max(LEAST * self.own);
            expert.bias = libm::log(s[0] / total) - 0.5 * drift * drift / common;
            expert.lean = drift / common;
        }
    }
}

/// What a step of a filter gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The filter's mean of the state.
    pub mean: f64,
    /// Effective sample size as a share of the particles, 1 / (N sum of squared weights).
    pub effective: f64,
}

/// Equally weighted particles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Particles(pub Vec<f64>);

impl Particles {
    /// Draws particles of the first state.
    #[must_use]
    pub fn first(n: usize, draws: &mut Draws) -> Particles {
        Particles((0..n).map(|_| Growth::FIRST.sqrt() * draws.normal()).collect())
    }

    /// A step with the model's own kernel as proposal.
    pub fn bootstrap(&mut self, model: &Growth, t: u32, y: f64, draws: &mut Draws) -> Report {
        let moved: Vec<(f64, f64)> = self
            .0
            .iter()
            .map(|x| {
                let next = model.drift(*x, t) + model.state.sqrt() * draws.normal();
                (next, model.log_observed(next, y))
            })
            .collect();
        self.resample(&moved, draws)
    }

    /// A step with a fitted proposal.
    pub fn adaptive(&mut self, model: &Growth, t: u32, y: f64, fitting: &Fitting, draws: &mut Draws) -> Report {
        let drifts: Vec<f64> = self.0.iter().map(|x| model.drift(*x, t)).collect();
        let mut proposal = Experts::spread(model, fitting);
        proposal.fit(model, &drifts, y, fitting, draws);
        let moved: Vec<(f64, f64)> = drifts
            .iter()
            .map(|drift| {
                let next = proposal.draw(*drift, draws);
                let log = model.log_moved(*drift, next) + model.log_observed(next, y);
                (next, log - proposal.log_density(*drift, next))
            })
            .collect();
        self.resample(&moved, draws)
    }

    /// Measures weighted particles and draws equally weighted ones from them (systematic resampling).
    fn resample(&mut self, moved: &[(f64, f64)], draws: &mut Draws) -> Report {
        let n = moved.len();
        let most = moved.iter().map(|(_, log)| *log).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = moved.iter().map(|(_, log)| libm::exp(log - most)).collect();
        let total: f64 = weights.iter().sum();
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        let mean = moved.iter().zip(&weights).map(|((x, _), weight)| x * weight).sum::<f64>() / total;
        let effective = total * total / squares / n as f64;
        let (mut at, mut passed) = (0, weights[0]);
        let start = draws.unit();
        for (i, particle) in self.0.iter_mut().enumerate() {
            let wanted = (i as f64 + start) / n as f64 * total;
            while passed < wanted && at + 1 < n {
                at += 1;
                passed += weights[at];
            }
            *particle = moved[at].0;
        }
        Report { mean, effective }
    }
}

/// A filter on a grid, exact up to the width of its cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// Probability of each cell.
    pub cells: Vec<f64>,
}

impl Grid {
    /// Cells from -40 to 40.
    const CELLS: usize = 401;
    const END: f64 = 40.0;
    const WIDTH: f64 = 0.2;

    fn place(cell: usize) -> f64 {
        cell as f64 * Grid::WIDTH - Grid::END
    }

    /// The distribution of the first state.
    #[must_use]
    pub fn first() -> Grid {
        let cells = (0..Grid::CELLS).map(|cell| libm::exp(log_normal(Grid::place(cell), Growth::FIRST))).collect();
        let mut grid = Grid { cells };
        grid.normalise();
        grid
    }

    fn normalise(&mut self) {
        let total: f64 = self.cells.iter().sum();
        self.cells.iter_mut().for_each(|cell| *cell /= total);
    }

    /// A step: every cell's probability goes to the two cells around its drift, then spreads by the noise. Returns the mean.
    pub fn step(&mut self, model: &Growth, t: u32, y: f64) -> f64 {
        let mut drifted = vec![0.0; Grid::CELLS];
        for (cell, mass) in self.cells.iter().enumerate() {
            let at = (model.drift(Grid::place(cell), t) + Grid::END) / Grid::WIDTH;
            let at = at.clamp(0.0, Grid::CELLS as f64 - 1.000_001);
            let (low, part) = (at as usize, at - at.floor());
            drifted[low] += mass * (1.0 - part);
            drifted[low + 1] += mass * part;
        }
        let reach = (6.0 * model.state.sqrt() / Grid::WIDTH) as usize + 1;
        let kernel: Vec<f64> =
            (0..=reach).map(|k| libm::exp(log_normal(k as f64 * Grid::WIDTH, model.state))).collect();
        let mut next = vec![0.0; Grid::CELLS];
        for (from, mass) in drifted.iter().enumerate().filter(|(_, mass)| **mass > 1e-14) {
            let (low, high) = (from.saturating_sub(reach), (from + reach).min(Grid::CELLS - 1));
            for (to, cell) in next.iter_mut().enumerate().take(high + 1).skip(low) {
                *cell += mass * kernel[from.abs_diff(to)];
            }
        }
        let logs: Vec<f64> = (0..Grid::CELLS).map(|cell| model.log_observed(Grid::place(cell), y)).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        next.iter_mut().zip(&logs).for_each(|(cell, log)| *cell *= libm::exp(log - most).max(1e-200));
        self.cells = next;
        self.normalise();
        self.cells.iter().enumerate().map(|(cell, mass)| mass * Grid::place(cell)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    const MODEL: Growth = Growth { state: 10.0, observation: 1.0 };
    const FITTING: Fitting = Fitting { experts: 3, iterations: 10, samples: 100, defence: 0.1, blind: false };

    #[test]
    fn many_particles_agree_with_the_grid_under_both_proposals() {
        let mut draws = Draws::new(8, Stream::World, 0, 0);
        let mut x = Growth::FIRST.sqrt() * draws.normal();
        let mut grid = Grid::first();
        let mut plain = Particles::first(20_000, &mut draws);
        let mut fitted = plain.clone();
        for t in 1..15 {
            let (next, y) = MODEL.step(x, t, &mut draws);
            x = next;
            let exact = grid.step(&MODEL, t, y);
            let one = plain.bootstrap(&MODEL, t, y, &mut draws);
            let two = fitted.adaptive(&MODEL, t, y, &FITTING, &mut draws);
            assert!((one.mean - exact).abs() < 0.4, "{t}: {} {exact}", one.mean);
            assert!((two.mean - exact).abs() < 0.4, "{t}: {} {exact}", two.mean);
            // The effective sample size is that of the optimal proposal at most.
            assert!(two.effective <= 1.0 && one.effective > 0.0);
        }
    }

    #[test]
    fn densities_of_experts_integrate_to_one_and_draws_follow_them() {
        let mut draws = Draws::new(9, Stream::World, 0, 0);
        let mut experts = Experts::spread(&MODEL, &FITTING);
        experts.fit(&MODEL, &[-3.0, 2.0, 8.0], 6.0, &FITTING, &mut draws);
        for drift in [-3.0, 2.0, 8.0] {
            let width = 0.02;
            let (mut total, mut mean) = (0.0, 0.0);
            for i in 0..6000 {
                let next = -60.0 + width * f64::from(i);
                let mass = width * libm::exp(experts.log_density(drift, next));
                total += mass;
                mean += mass * next;
            }
            assert!((total - 1.0).abs() < 1e-3, "{total}");
            let drawn = (0..20_000).map(|_| experts.draw(drift, &mut draws)).sum::<f64>() / 20_000.0;
            assert!((drawn - mean).abs() < 0.3, "{drawn} {mean}");
        }
    }

    #[test]
    fn a_fit_comes_near_the_optimal_kernel_of_a_linear_observation() {
        // One expert, one drift: the optimal kernel is nearly normal, and its mean is that of the grid of next states.
        let mut draws = Draws::new(10, Stream::World, 0, 0);
        let fitting = Fitting { experts: 1, iterations: 40, samples: 200, defence: 0.1, blind: false };
        let (drift, y) = (10.0, 6.0);
        let mut experts = Experts::spread(&MODEL, &fitting);
        experts.fit(&MODEL, &[drift], y, &fitting, &mut draws);
        let (mut total, mut sum) = (0.0, 0.0);
        for i in 0..4000 {
            let next = 0.01 * f64::from(i) - 10.0;
            let mass = libm::exp(MODEL.log_moved(drift, next) + MODEL.log_observed(next, y));
            total += mass;
            sum += mass * next;
        }
        let fitted = experts.experts[0].intercept + experts.experts[0].slope * drift;
        assert!((fitted - sum / total).abs() < 0.1, "{fitted} {}", sum / total);
    }
}
