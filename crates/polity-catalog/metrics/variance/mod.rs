//! The variance, from means and squared deviations that merge exactly in theory and stably in floats (Chan, Golub and LeVeque).

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Variance>(files);
}

/// Parameters of the variance.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Treat the agents as a sample and divide by their number minus one; otherwise they are the whole population.
    sample: bool,
}

/// The variance.
pub struct Variance {
    sample: bool,
}

impl Metric for Variance {
    const NAME: &'static str = "variance";
    const SUMMARY: &'static str = "Variance";
    type Params = Params;
    /// Number of values, their mean, the sum of their squared deviations from it.
    type Fold = (u64, f64, f64);

    fn open(params: Params, _: &Source<'_>) -> Result<Self, Invalid> {
        Ok(Variance { sample: params.sample })
    }

    fn fold(&self, values: &[f64]) -> (u64, f64, f64) {
        if values.is_empty() {
            return (0, 0.0, 0.0);
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (values.len() as u64, mean, squares)
    }

    fn merge(&self, left: (u64, f64, f64), right: (u64, f64, f64)) -> (u64, f64, f64) {
        if left.0 == 0 || right.0 == 0 {
            return if left.0 == 0 { right } else { left };
        }
        let n = left.0 + right.0;
        let (difference, part) = (right.1 - left.1, right.0 as f64 / n as f64);
        let between = difference * difference * left.0 as f64 * part;
        (n, left.1 + difference * part, left.2 + right.2 + between)
    }

    fn finish(&self, (n, _, squares): (u64, f64, f64), write: &mut dyn FnMut(&str, f64)) {
        let divisor = if self.sample { n.saturating_sub(1) } else { n };
        if divisor > 0 && squares.is_finite() {
            write("", squares / divisor as f64);
        }
    }
}
