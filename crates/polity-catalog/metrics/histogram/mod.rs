//! A histogram: the share of agents in each of equally wide bins.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Histogram>(files);
}

/// The bins.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Number of bins; 1 to 1000.
    bins: usize,
    /// Lower end of the first bin and upper end of the last one; by default, the range that the world declares for the quantity.
    range: Option<(f64, f64)>,
}

impl Default for Params {
    fn default() -> Self {
        Params { bins: 10, range: None }
    }
}

/// The share of agents in each of equally wide bins.
pub struct Histogram {
    low: f64,
    high: f64,
    names: Vec<String>,
}

impl Metric for Histogram {
    const NAME: &'static str = "histogram";
    const SUMMARY: &'static str = "Share of agents in each of equally wide bins";
    type Params = Params;
    /// Number of values in each bin.
    type Fold = Vec<u64>;

    fn open(params: Params, source: &Source<'_>) -> Result<Self, Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        let Params { bins, range } = params;
        Invalid::within(1..=1000, "bins", bins)?;
        let Some((low, high)) = range.or(source.range) else {
            let message =
                format!("the world declares no range for `{}`; give one, such as `range: [0, 1]`", source.name);
            return invalid("range", message);
        };
        if !(low < high && (high - low).is_finite()) {
            return invalid("range", format!("must be two numbers, the smaller first, is [{low}, {high}]"));
        }
        // Names of equal length, so that they sort like the bins.
        let width = (bins - 1).to_string().len().max(2);
        Ok(Histogram { low, high, names: (0..bins).map(|bin| format!("b{bin:0width$}")).collect() })
    }

    fn fold(&self, values: &[f64]) -> Vec<u64> {
        let bins = self.names.len();
        let mut counts = vec![0; bins];
        let scale = bins as f64 / (self.high - self.low);
        for value in values {
            // The cast moves everything below the range to 0; the last bin takes everything above it and its own upper end.
            let bin = ((value - self.low) * scale) as usize;
            counts[bin.min(bins - 1)] += 1;
        }
        counts
    }

    fn merge(&self, mut left: Vec<u64>, right: Vec<u64>) -> Vec<u64> {
        left.iter_mut().zip(right).for_each(|(count, more)| *count += more);
        left
    }

    fn finish(&self, counts: Vec<u64>, write: &mut dyn FnMut(&str, f64)) {
        let n: u64 = counts.iter().sum();
        if n > 0 {
            self.names.iter().zip(counts).for_each(|(name, count)| write(name, count as f64 / n as f64));
        }
    }
}
