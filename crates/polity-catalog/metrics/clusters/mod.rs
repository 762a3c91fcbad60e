//! The number of groups: runs of values without a wide gap, counted on a grid. See README.md.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Clusters>(files);
}

/// What counts as a group.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Neighbouring values farther apart than this belong to different groups; in units of the quantity. By default, a hundredth of the
    /// range.
    gap: Option<f64>,
    /// Groups with a smaller share of the agents do not count; 0 to 1.
    share: f64,
    /// Cells of the grid; 2 to 4000. Their width is the resolution of distances.
    cells: usize,
    /// The ends of the grid; by default, the range that the world declares for the quantity.
    range: Option<(f64, f64)>,
}

impl Default for Params {
    fn default() -> Self {
        Params { gap: None, share: 0.01, cells: 1000, range: None }
    }
}

/// The number of groups.
pub struct Clusters {
    low: f64,
    high: f64,
    cells: usize,
    /// Maximum distance between cells of one group, in cells.
    reach: usize,
    share: f64,
}

impl Metric for Clusters {
    const NAME: &'static str = "clusters";
    const SUMMARY: &'static str = "Number of groups, separated by gaps";
    type Params = Params;
    /// Number of values in each cell.
    type Fold = Vec<u64>;

    fn open(params: Params, source: &Source<'_>) -> Result<Self, Invalid> {
        let invalid = |key: &str, message: String| Err(Invalid { key: key.into(), message });
        let Params { gap, share, cells, range } = params;
        Invalid::within(2..=4000, "cells", cells)?;
        Invalid::within(0.0..=1.0, "share", share)?;
        let Some((low, high)) = range.or(source.range) else {
            let message =
                format!("the world declares no range for `{}`; give one, such as `range: [0, 1]`", source.name);
            return invalid("range", message);
        };
        if !(low < high && (high - low).is_finite()) {
            return invalid("range", format!("must be two numbers, the smaller first, is [{low}, {high}]"));
        }
        let width = (high - low) / cells as f64;
        let gap = gap.unwrap_or((high - low) / 100.0);
        // Decimal gaps and widths divide with rounding errors: a gap of 10 cells is 10 cells.
        let reach = gap / width + 1e-6;
        if !(reach >= 1.0 && gap <= high - low) {
            let message =
                format!("must lie between the width of a cell ({width}) and the range ({}), is {gap}", high - low);
            return invalid("gap", message);
        }
        Ok(Clusters { low, high, cells, reach: reach as usize, share })
    }

    fn fold(&self, values: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; self.cells];
        let scale = self.cells as f64 / (self.high - self.low);
        for value in values {
            // The cast moves everything below the range to 0; the last cell takes everything above it and its own upper end.
            let cell = ((value - self.low) * scale) as usize;
            counts[cell.min(self.cells - 1)] += 1;
        }
        counts
    }

    fn merge(&self, mut left: Vec<u64>, right: Vec<u64>) -> Vec<u64> {
        left.iter_mut().zip(right).for_each(|(count, more)| *count += more);
        left
    }

    fn finish(&self, counts: Vec<u64>, write: &mut dyn FnMut(&str, f64)) {
        let n: u64 = counts.iter().sum();
        if n == 0 {
            return;
        }
        // (last occupied cell, agents) of each group.
        let mut groups: Vec<(usize, u64)> = Vec::new();
        for (cell, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            match groups.last_mut() {
                Some((last, agents)) if cell - *last <= self.reach => (*last, *agents) = (cell, *agents + count),
                _ => groups.push((cell, count)),
            }
        }
        let least = self.share * n as f64;
        write("", groups.iter().filter(|(_, agents)| *agents as f64 >= least).count() as f64);
    }
}
