//! The mutual information of two whole numbers. See README.md for the definition and the correction of its bias.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<MutualInformation>(files);
}

/// Parameters of the mutual information.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// How many values the second number has, from 1 on: the quantity is the first number times this, plus the second one.
    second: u32,
}

/// The mutual information of two whole numbers that one quantity holds.
pub struct MutualInformation {
    second: f64,
}

impl Metric for MutualInformation {
    const NAME: &'static str = "mutual-information";
    const SUMMARY: &'static str = "Information that two whole numbers have about each other";
    type Params = Params;
    /// (value, count), ascending.
    type Fold = Vec<(f64, u64)>;

    fn open(params: Params, _: &Source<'_>) -> Result<Self, Invalid> {
        Invalid::within(1..=u32::MAX, "second", params.second)?;
        Ok(MutualInformation { second: f64::from(params.second) })
    }

    fn fold(&self, values: &[f64]) -> Vec<(f64, u64)> {
        counts(values.iter().map(|value| (*value, 1)).collect())
    }

    fn merge(&self, mut left: Vec<(f64, u64)>, right: Vec<(f64, u64)>) -> Vec<(f64, u64)> {
        left.extend(right);
        counts(left)
    }

    fn finish(&self, pairs: Vec<(f64, u64)>, write: &mut dyn FnMut(&str, f64)) {
        if pairs.is_empty() || pairs.iter().any(|(value, _)| !(*value >= 0.0 && value.is_finite())) {
            return;
        }
        let pairs: Vec<(f64, u64)> = pairs.into_iter().map(|(value, count)| (value.floor(), count)).collect();
        let of = |part: &dyn Fn(f64) -> f64| entropy(&counts(pairs.iter().map(|(x, n)| (part(*x), *n)).collect()));
        let first = of(&|value| (value / self.second).floor());
        let second = of(&|value| value % self.second);
        let information = (first + second - of(&|value| value)).max(0.0);
        write("", information);
        write("count", libm::exp(information));
    }
}

/// Adds the counts of equal values. The values are then ascending.
fn counts(mut of: Vec<(f64, u64)>) -> Vec<(f64, u64)> {
    of.sort_by(|a, b| a.0.total_cmp(&b.0));
    of.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        kept.1 += if same { later.1 } else { 0 };
        same
    });
    of
}

/// Returns the entropy that counts estimate, in natural units, with the correction of Miller and Madow.
fn entropy(counts: &[(f64, u64)]) -> f64 {
    let n = counts.iter().map(|(_, count)| count).sum::<u64>() as f64;
    let term = |count: u64| -(count as f64 / n) * libm::log(count as f64 / n);
    counts.iter().map(|(_, count)| term(*count)).sum::<f64>() + (counts.len() as f64 - 1.0) / (2.0 * n)
}
