//! The mutual information of two quantities. See README.md for the definition and the correction of its bias.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, NoParams, Registry};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<MutualInformation>(files);
}

/// The mutual information of two quantities.
pub struct MutualInformation;

impl Metric for MutualInformation {
    const NAME: &'static str = "mutual-information";
    const SUMMARY: &'static str = "Information that two quantities have about each other";
    const JOINT: bool = true;
    type Params = NoParams;
    /// Pairs of values with their counts, ascending.
    type Fold = Vec<([f64; 2], u64)>;

    fn open(_: NoParams, source: &Source<'_>) -> Result<Self, Invalid> {
        Invalid::unless(source.others.len() == 1, "of", "must be two quantities")?;
        Invalid::unless(source.groups.is_empty(), "by", "this metric does not compare groups; leave it out")?;
        Ok(MutualInformation)
    }

    fn fold(&self, rows: &[f64]) -> Self::Fold {
        // A sum with 0 makes the two zeros the same.
        counts(rows.chunks_exact(2).map(|row| ([row[0] + 0.0, row[1] + 0.0], 1)).collect())
    }

    fn merge(&self, mut left: Self::Fold, right: Self::Fold) -> Self::Fold {
        left.extend(right);
        counts(left)
    }

    fn finish(&self, pairs: Self::Fold, write: &mut dyn FnMut(&str, f64)) {
        if pairs.is_empty() {
            return;
        }
        let of = |place: usize| entropy(&counts(pairs.iter().map(|(pair, n)| ([pair[place], 0.0], *n)).collect()));
        let information = (of(0) + of(1) - entropy(&pairs)).max(0.0);
        write("", information);
        write("count", libm::exp(information));
    }
}

/// Adds the counts of equal pairs. The pairs are then ascending.
fn counts(mut of: Vec<([f64; 2], u64)>) -> Vec<([f64; 2], u64)> {
    of.sort_by(|([a, b], _), ([c, d], _)| a.total_cmp(c).then(b.total_cmp(d)));
    of.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        kept.1 += if same { later.1 } else { 0 };
        same
    });
    of
}

/// Returns the entropy that counts estimate, in natural units, with the correction of Miller and Madow.
fn entropy(counts: &[([f64; 2], u64)]) -> f64 {
    let n = counts.iter().map(|(_, count)| count).sum::<u64>() as f64;
    let term = |count: u64| -(count as f64 / n) * libm::log(count as f64 / n);
    counts.iter().map(|(_, count)| term(*count)).sum::<f64>() + (counts.len() as f64 - 1.0) / (2.0 * n)
}
