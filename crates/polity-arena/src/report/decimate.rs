//! Long series, drawn with few points and no lost extreme.

use std::ops::Range;

/// The largest number of points drawn for one line or one band.
pub(super) const MOST_POINTS: usize = 400;

/// Points that a bucket may keep: its first, lowest, highest and last one, and a gap.
const KEPT_PER_BUCKET: usize = 5;

/// Which of `count` points to draw: at most `most` (at least 5), in rising order.
///
/// The points are cut into equal buckets. Each keeps its first, lowest, highest and last drawable point, so the drawn
/// line has the same envelope as the full one and every peak stays, and one gap if it has any, so that a hole in the
/// data stays a hole in the line. `bounds` gives a point's lower and upper value, or nothing for a gap.
pub(super) fn decimate(count: usize, most: usize, bounds: impl Fn(usize) -> Option<(f64, f64)>) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let buckets = (most / KEPT_PER_BUCKET).max(1);
    (0..buckets).flat_map(|b| bucket(b * count / buckets..(b + 1) * count / buckets, &bounds)).collect()
}

fn bucket(range: Range<usize>, bounds: &impl Fn(usize) -> Option<(f64, f64)>) -> Vec<usize> {
    let mut gap = None;
    let mut ends: Option<(usize, usize)> = None;
    let mut lowest: Option<(usize, f64)> = None;
    let mut highest: Option<(usize, f64)> = None;
    for i in range {
        let Some((low, high)) = bounds(i) else {
            gap = gap.or(Some(i));
            continue;
        };
        ends = Some((ends.map_or(i, |(first, _)| first), i));
        lowest = lowest.filter(|(_, v)| *v <= low).or(Some((i, low)));
        highest = highest.filter(|(_, v)| *v >= high).or(Some((i, high)));
    }
    let mut kept: Vec<usize> = [
        gap,
        ends.map(|(first, _)| first),
        ends.map(|(_, last)| last),
        lowest.map(|(i, _)| i),
        highest.map(|(i, _)| i),
    ]
    .into_iter()
    .flatten()
    .collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(points: &[f64]) -> impl Fn(usize) -> Option<(f64, f64)> {
        |i| Some(points[i]).filter(|v| v.is_finite()).map(|v| (v, v))
    }

    #[test]
    fn short_series_are_untouched() {
        let points = vec![1.0; MOST_POINTS];
        assert_eq!(decimate(points.len(), MOST_POINTS, value(&points)), (0..MOST_POINTS).collect::<Vec<_>>());
        assert!(decimate(0, MOST_POINTS, |_| None).is_empty());
    }

    #[test]
    fn a_single_spike_and_a_single_gap_survive() {
        let mut points = vec![0.0; 100_000];
        points[31_415] = 7.0;
        points[27_182] = -7.0;
        points[60_221] = f64::NAN;
        let kept = decimate(points.len(), MOST_POINTS, value(&points));
        for index in [0, 27_182, 31_415, 60_221, 99_999] {
            assert!(kept.contains(&index), "{index}");
        }
    }

    proptest! {
        #[test]
        fn extremes_ends_and_order_are_kept(
            points in prop::collection::vec(prop_oneof![9 => -1e6..1e6_f64, 1 => Just(f64::NAN)], 401..3000),
        ) {
            let kept = decimate(points.len(), MOST_POINTS, value(&points));
            prop_assert!(kept.len() <= MOST_POINTS);
            prop_assert!(kept.is_sorted_by(|a, b| a < b));
            let fold = |indices: &mut dyn Iterator<Item = usize>| {
                indices.map(|i| points[i]).filter(|v| v.is_finite()).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
            };
            prop_assert_eq!(fold(&mut (0..points.len())), fold(&mut kept.iter().copied()));
            prop_assert_eq!(points.iter().any(|v| v.is_nan()), kept.iter().any(|i| points[*i].is_nan()));
            let finite = |i: &usize| points[*i].is_finite();
            prop_assert_eq!((0..points.len()).find(finite), kept.iter().copied().find(finite));
            prop_assert_eq!((0..points.len()).rfind(finite), kept.iter().copied().rfind(finite));
        }
    }
}
