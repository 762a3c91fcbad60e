//! How well a model tells the better of two answers: signal detection with two alternatives (Green and Swets 1966).

use polity_kernel::rng::normal_quantile;
use serde::Serialize;

/// A judge's choice between two answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Whether the answer shown first is the better one.
    pub first_better: bool,
    /// Whether the judge named the answer shown first.
    pub first_named: bool,
}

/// The parameters that fit a judge's choices, each with its standard error, which counts choices as independent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judging {
    /// Choices.
    pub choices: usize,
    /// Distance of better from worse answers, in standard deviations of its impression of one (d'). Below 0 if it prefers the worse one.
    pub sensitivity: (f64, f64),
    /// What is added to its impression of the answer shown first, in the same unit.
    pub first_bias: (f64, f64),
}

/// Fits both by maximum likelihood, with half a choice added to each count (Hautus 1995), so that a judge without an error has a finite
/// distance. `None` unless the better answer was shown first at times, and second at others.
#[must_use]
pub fn fit(choices: &[Choice]) -> Option<Judging> {
    let quantile = |first_better: bool| {
        let of: Vec<&Choice> = choices.iter().filter(|choice| choice.first_better == first_better).collect();
        let right = of.iter().filter(|choice| choice.first_named == first_better).count() as f64;
        let (p, n) = ((right + 0.5) / (of.len() as f64 + 1.0), of.len() as f64);
        let z = normal_quantile(p);
        let density = libm::exp(-z * z / 2.0) / libm::sqrt(std::f64::consts::TAU);
        (!of.is_empty()).then(|| (z, p * (1.0 - p) / n / (density * density)))
    };
    let ((first, one), (second, other)) = (quantile(true)?, quantile(false)?);
    // The difference of two impressions has the standard deviation √2, and its mean is d' plus or minus the bias.
    let error = libm::sqrt((one + other) / 2.0);
    Some(Judging {
        choices: choices.len(),
        sensitivity: ((first + second) / std::f64::consts::SQRT_2, error),
        first_bias: ((first - second) / std::f64::consts::SQRT_2, error),
    })
}
