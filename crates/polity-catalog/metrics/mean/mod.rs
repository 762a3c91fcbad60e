//! The arithmetic mean, summed over a fixed tree of blocks.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Mean>(files);
}

/// The arithmetic mean.
pub struct Mean;

impl Metric for Mean {
    const NAME: &'static str = "mean";
    const SUMMARY: &'static str = "Arithmetic mean";
    type Params = NoParams;
    /// Sum and number of values.
    type Fold = (f64, u64);

    fn open(_: NoParams, _: &Source<'_>) -> Result<Self, Invalid> {
        Ok(Mean)
    }

    fn fold(&self, values: &[f64]) -> (f64, u64) {
        (values.iter().sum(), values.len() as u64)
    }

    fn merge(&self, left: (f64, u64), right: (f64, u64)) -> (f64, u64) {
        (left.0 + right.0, left.1 + right.1)
    }

    fn finish(&self, (sum, n): (f64, u64), write: &mut dyn FnMut(&str, f64)) {
        // Opposite infinities have no mean.
        if n > 0 && !sum.is_nan() {
            write("", sum / n as f64);
        }
    }
}
