//! The Gini index of inequality, exactly. See README.md for the definition and what happens to negative values.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Gini>(files);
}

/// The Gini index.
pub struct Gini;

impl Metric for Gini {
    const NAME: &'static str = "gini";
    const SUMMARY: &'static str = "Gini index of inequality";
    type Params = NoParams;
    /// The values in sorted runs.
    type Fold = Vec<Vec<f64>>;

    fn open(_: NoParams, source: &Source<'_>) -> Result<Self, Invalid> {
        match source.range {
            Some((low, _)) if low < 0.0 => Err(Invalid {
                key: String::new(),
                message: format!(
                    "the Gini index needs a quantity that is never negative, but `{}` goes down to {low}; measure its \
                     `variance` instead",
                    source.name
                ),
            }),
            _ => Ok(Gini),
        }
    }

    fn fold(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let mut run = values.to_vec();
        run.sort_unstable_by(f64::total_cmp);
        vec![run]
    }

    fn merge(&self, mut left: Vec<Vec<f64>>, right: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        left.extend(right);
        left
    }

    fn finish(&self, runs: Vec<Vec<f64>>, write: &mut dyn FnMut(&str, f64)) {
        let mut values = runs.concat();
        // The stable sort finds the sorted runs and only merges them.
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (values.first(), values.last()) else { return };
        if *least < 0.0 || most.is_infinite() {
            return;
        }
        // With the values taken as shares of the greatest, no sum overflows.
        let unit = if *most > 0.0 { *most } else { 1.0 };
        let n = values.len() as f64;
        let (mut sum, mut weighted) = (0.0, 0.0);
        for (i, value) in values.iter().enumerate() {
            let value = value / unit;
            sum += value;
            weighted += (2.0 * i as f64 + 1.0 - n) * value;
        }
        write("", if sum > 0.0 { weighted / (n * sum) } else { 0.0 });
    }
}
