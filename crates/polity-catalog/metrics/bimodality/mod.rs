//! Sarle's bimodality coefficient, from sums of powers of deviations that merge stably (Pébay).

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, NoParams, Registry};
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Bimodality>(files);
}

/// The bimodality coefficient.
pub struct Bimodality;

/// Number of values, their mean, and the sums of the second, third and fourth powers of their deviations from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
    cubes: f64,
    fourths: f64,
}

impl Metric for Bimodality {
    const NAME: &'static str = "bimodality";
    const SUMMARY: &'static str = "Sarle's bimodality coefficient: 1 for two points, 0.33 for a normal distribution";
    type Params = NoParams;
    type Fold = Moments;

    fn open(_: NoParams, _: &Source<'_>) -> Result<Self, Invalid> {
        Ok(Bimodality)
    }

    fn fold(&self, values: &[f64]) -> Moments {
        let Some(first) = values.first() else { return Moments::default() };
        let n = values.len() as f64;
        // Relative to the first value, so that equal values have no deviation at all.
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / n;
        let mut moments = Moments { n, mean, ..Moments::default() };
        for value in values {
            let d = value - mean;
            moments.squares += d * d;
            moments.cubes += d * d * d;
            moments.fourths += d * d * d * d;
        }
        moments
    }

    fn merge(&self, a: Moments, b: Moments) -> Moments {
        if a.n == 0.0 || b.n == 0.0 {
            return if a.n == 0.0 { b } else { a };
        }
        let n = a.n + b.n;
        let (d, p, q) = (b.mean - a.mean, a.n / n, b.n / n);
        Moments {
            n,
            mean: a.mean + d * q,
            squares: a.squares + b.squares + d * d * n * p * q,
            cubes: a.cubes + b.cubes + d * d * d * n * p * q * (p - q) + 3.0 * d * (p * b.squares - q * a.squares),
            fourths: a.fourths
                + b.fourths
                + d * d * d * d * n * p * q * (p * p - p * q + q * q)
                + 6.0 * d * d * (p * p * b.squares + q * q * a.squares)
                + 4.0 * d * (p * b.cubes - q * a.cubes),
        }
    }

    fn finish(&self, all: Moments, write: &mut dyn FnMut(&str, f64)) {
        let Moments { n, squares, cubes, fourths, .. } = all;
        let coefficient = (cubes * cubes / squares + squares * squares / n) / fourths;
        if coefficient.is_finite() {
            write("", coefficient);
        }
    }
}
