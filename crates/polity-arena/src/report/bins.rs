//! Binned values: what histograms and heat maps are drawn from.

use super::{scale, text};

/// The most bins that [`histogram`] makes.
const MOST_BINS: usize = 512;

/// What the bins of a histogram or the rows of a heat map represent.
#[derive(Clone, Debug, PartialEq)]
pub enum BinAxis {
    /// Numbers: n + 1 rising finite edges for n bins; a bin holds its lower edge, the last one also its upper edge.
    Edges(Vec<f64>),
    /// Categories by name, in the order in which they are drawn.
    Categories(Vec<String>),
}

/// How many values fall into each bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// What the bins represent.
    pub axis: BinAxis,
    /// Values in each bin, in the order of the axis.
    pub counts: Vec<u64>,
    /// Values in no bin: missing, infinite or outside the edges. The report names their number.
    pub left_out: u64,
}

/// Counts `values` in `bins` (1 to 512) bins of equal width from `low` to `high`, both included.
///
/// Values outside or not finite are counted as left out. An empty or impossible range is widened around `low`.
pub fn histogram(values: &[f64], low: f64, high: f64, bins: usize) -> Bins {
    let bins = bins.clamp(1, MOST_BINS);
    let low = if scale::drawable(low) { low } else { 0.0 };
    let (low, high) = if scale::drawable(high) && high > low { (low, high) } else { scale::snug((low, low)) };
    let edges: Vec<f64> =
        (0..=bins).map(|i| if i == bins { high } else { low + (high - low) * (i as f64 / bins as f64) }).collect();
    let mut counts = vec![0; bins];
    let mut left_out = 0;
    for value in values {
        if !(*value >= low && *value <= high) {
            left_out += 1;
            continue;
        }
        // Comparing with the edges themselves keeps a value that equals an edge in the bin that the axis shows it in.
        let bin = edges.partition_point(|edge| edge <= value).saturating_sub(1).min(bins - 1);
        counts[bin] += 1;
    }
    Bins { axis: BinAxis::Edges(edges), counts, left_out }
}

/// A good `(low, high, bins)` for [`histogram`] over these values, for example those before and after together.
///
/// Whole numbers that span at most 30 get a bin each, centred on the number; other values get 8 to 30 bins (more
/// values, more bins: Sturges' rule) whose edges are round numbers.
pub fn automatic_edges(values: impl IntoIterator<Item = f64>) -> (f64, f64, usize) {
    let (mut count, mut whole) = (0_u64, true);
    let extent = scale::extent(values.into_iter().inspect(|v| {
        if scale::drawable(*v) {
            count += 1;
            whole &= v.fract() == 0.0;
        }
    }));
    let Some((low, high)) = extent else {
        return (0.0, 1.0, 10);
    };
    if whole && high - low <= 30.0 && low.abs().max(high.abs()) < 1e15 {
        return (low - 0.5, high + 0.5, (high - low) as usize + 1);
    }
    let sturges = (count.max(1).ilog2() as usize + 1).clamp(8, 30);
    let ticks = scale::ticks(low, high, sturges, false);
    let (Some((first, _)), Some((last, _))) = (ticks.first(), ticks.last()) else {
        let (low, high) = scale::snug((low, high));
        return (low, high, sturges);
    };
    let inner = ticks.len() - 1;
    if inner == 0 {
        return (low, high, sturges);
    }
    let step = (last - first) / inner as f64;
    let below = usize::from(low < *first);
    let above = usize::from(high > *last);
    ((first - step * below as f64).min(low), (last + step * above as f64).max(high), inner + below + above)
}

impl BinAxis {
    /// The number of bins.
    pub fn len(&self) -> usize {
        match self {
            Self::Edges(edges) => edges.len().saturating_sub(1),
            Self::Categories(names) => names.len(),
        }
    }

    /// Whether there is no bin at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The edges, if they are usable ones: two or more, drawable and rising.
    pub(super) fn edges(&self) -> Option<&[f64]> {
        match self {
            Self::Edges(edges)
                if edges.len() > 1 && edges.iter().all(|e| scale::drawable(*e)) && edges.is_sorted_by(|a, b| a < b) =>
            {
                Some(edges)
            }
            _ => None,
        }
    }

    /// The name of a bin: its category, its interval, or its whole number where the interval is centred on one.
    pub(super) fn label(&self, bin: usize) -> String {
        match self {
            Self::Categories(names) => names.get(bin).cloned().unwrap_or_default(),
            Self::Edges(edges) => {
                let low = edges.get(bin).copied().unwrap_or(f64::NAN);
                let high = edges.get(bin + 1).copied().unwrap_or(f64::NAN);
                let middle = low + 0.5;
                if high - low == 1.0 && middle.fract() == 0.0 {
                    text::shown(middle)
                } else {
                    format!("{} to {}", text::shown(low), text::shown(high))
                }
            }
        }
    }

    /// The same axis with at most `most` bins: numeric neighbours are joined, categories past the limit become one.
    pub(super) fn limited(&self, most: usize) -> Self {
        let groups = self.groups(most);
        match self {
            Self::Edges(edges) => {
                let last = edges.last().copied().into_iter();
                Self::Edges(groups.iter().filter_map(|g| edges.get(g.start).copied()).chain(last).collect())
            }
            Self::Categories(names) => Self::Categories(
                groups
                    .iter()
                    .map(|g| {
                        let more = format!("{} more", g.len());
                        if g.len() == 1 { names.get(g.start).cloned().unwrap_or_default() } else { more }
                    })
                    .collect(),
            ),
        }
    }

    /// Which bins [`limited`](Self::limited) joins.
    pub(super) fn groups(&self, most: usize) -> Vec<std::ops::Range<usize>> {
        let (count, most) = (self.len(), most.max(1));
        match self {
            _ if count <= most => (0..count).map(|i| i..i + 1).collect(),
            Self::Edges(_) => {
                let size = count.div_ceil(most);
                (0..count.div_ceil(size)).map(|g| g * size..((g + 1) * size).min(count)).collect()
            }
            Self::Categories(_) => (0..most - 1).map(|i| i..i + 1).chain(std::iter::once(most - 1..count)).collect(),
        }
    }
}

impl Bins {
    /// Each bin's share of the values in all bins, in per cent; all zero when there are none.
    pub fn shares(&self) -> Vec<f64> {
        let total = self.counts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
        self.counts.iter().map(|n| if total == 0 { 0.0 } else { *n as f64 / total as f64 * 100.0 }).collect()
    }

    /// The same values in at most `most` bins, one count for each bin of the axis.
    pub(super) fn limited(&self, most: usize) -> Self {
        let counts = self
            .axis
            .groups(most)
            .into_iter()
            .map(|g| g.fold(0_u64, |sum, i| sum.saturating_add(self.counts.get(i).copied().unwrap_or(0))))
            .collect();
        Self { axis: self.axis.limited(most), counts, left_out: self.left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_on_edges_fall_where_the_axis_shows_them() {
        let bins = histogram(&[0.0, 0.1, 0.2, 0.3, 0.7, 1.0, -0.1, 1.1, f64::NAN], 0.0, 1.0, 10);
        assert_eq!(bins.left_out, 3);
        assert_eq!(bins.counts.iter().sum::<u64>(), 6);
        assert_eq!(bins.counts[9], 1);
        assert_eq!(bins.counts[1], 1);
    }

    #[test]
    fn impossible_ranges_still_count() {
        for (low, high) in [(1.0, 1.0), (2.0, 0.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            let bins = histogram(&[1.0], low, high, 0);
            assert_eq!(bins.counts.len(), 1, "{low} {high}");
            assert!(bins.axis.edges().is_some(), "{low} {high}");
        }
        assert_eq!(histogram(&[1.0], 1.0, 1.0, 3).counts.iter().sum::<u64>(), 1);
    }

    #[test]
    fn automatic_edges_suit_the_values() {
        let scores = (0..944).map(|i| f64::from(i % 7 + 1));
        assert_eq!(automatic_edges(scores), (0.5, 7.5, 7));
        assert_eq!(automatic_edges([]), (0.0, 1.0, 10));
        assert_eq!(automatic_edges([3.0]), (2.5, 3.5, 1));
        let (low, high, bins) = automatic_edges((0..1000).map(|i| f64::from(i) / 10.0));
        assert_eq!((low, high, bins), (0.0, 100.0, 10));
        assert_eq!(
            histogram(&[0.0], low, high, bins).axis,
            BinAxis::Edges((0..=10).map(|i| f64::from(i) * 10.0).collect())
        );
    }

    #[test]
    fn long_axes_are_joined_without_losing_a_value() {
        let names = BinAxis::Categories((0..100).map(|i| format!("c{i}")).collect());
        let bins = Bins { axis: names, counts: (0..100).collect(), left_out: 0 };
        let short = bins.limited(30);
        assert_eq!((short.axis.len(), short.counts.len()), (30, 30));
        assert_eq!(short.axis.label(29), "71 more");
        assert_eq!(short.counts.iter().sum::<u64>(), bins.counts.iter().sum::<u64>());
        let numbers = histogram(&(0..500).map(f64::from).collect::<Vec<_>>(), 0.0, 500.0, 500);
        let short = numbers.limited(120);
        assert_eq!((short.axis.len(), short.counts.iter().sum::<u64>()), (100, 500));
        assert!(short.axis.edges().is_some());
    }

    proptest! {
        #[test]
        fn automatic_edges_hold_every_value(
            values in prop::collection::vec(prop_oneof![-1e3..1e3_f64, -1e-6..1e-6_f64, 1e9..1.1e9_f64], 1..200),
        ) {
            let (low, high, bins) = automatic_edges(values.iter().copied());
            prop_assert!((1..=80).contains(&bins));
            let bins = histogram(&values, low, high, bins);
            prop_assert_eq!(bins.left_out, 0);
            prop_assert!(bins.axis.edges().is_some());
        }
    }
}
