//! Agreement: the share of agents that have the most common value.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Agreement>(files);
}

/// The share of agents that have the most common value.
pub struct Agreement;

impl Metric for Agreement {
    const NAME: &'static str = "agreement";
    const SUMMARY: &'static str = "Share of agents that have the most common value";
    type Params = NoParams;
    /// (value, count), ascending.
    type Fold = Vec<(f64, u64)>;

    fn open(_: NoParams, _: &Source<'_>) -> Result<Self, Invalid> {
        Ok(Agreement)
    }

    fn fold(&self, values: &[f64]) -> Vec<(f64, u64)> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
    }

    fn merge(&self, mut left: Vec<(f64, u64)>, right: Vec<(f64, u64)>) -> Vec<(f64, u64)> {
        left.extend(right);
        // The stable sort finds the two sorted runs and only merges them.
        left.sort_by(|a, b| a.0.total_cmp(&b.0));
        left.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
        left
    }

    fn finish(&self, counts: Vec<(f64, u64)>, write: &mut dyn FnMut(&str, f64)) {
        let n: u64 = counts.iter().map(|(_, count)| count).sum();
        if let Some(most) = counts.iter().map(|(_, count)| *count).max() {
            write("", most as f64 / n as f64);
        }
    }
}
