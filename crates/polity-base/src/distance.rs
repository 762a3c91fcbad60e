//! Distances between two samples: how far the results of a society are from observations.
//!
//! All are at least 0, and 0 for two samples with the same distribution. Samples may have different sizes; none is empty.

/// The two-sample Kolmogorov–Smirnov statistic: the largest difference between the two empirical distribution functions, 0 to 1
/// (Smirnov 1939). Both samples are sorted ascending. `None` when one is empty.
#[must_use]
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<f64> {
    let mut largest = 0.0f64;
    each_step(a, b, |_, below_a, below_b| largest = largest.max((below_a - below_b).abs()))?;
    Some(largest)
}

/// The Wasserstein-1 (earth mover's) distance: the area between the two empirical distribution functions, in the unit of the values
/// (Vallender 1974). Both samples are sorted ascending. `None` when one is empty.
#[must_use]
pub fn wasserstein(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mut area, mut before) = (0.0, None);
    each_step(a, b, |value, below_a, below_b| {
        if let Some((from, height)) = before {
            area += (value - from) * height;
        }
        before = Some((value, f64::abs(below_a - below_b)));
    })?;
    Some(area)
}

/// Visits the distinct values of both samples, ascending, with the share of each sample at or below the value.
fn each_step(a: &[f64], b: &[f64], mut visit: impl FnMut(f64, f64, f64)) -> Option<()> {
    let (mut i, mut j) = (0, 0);
    if a.is_empty() || b.is_empty() {
        return None;
    }
    loop {
        let value = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.min(*y),
            (Some(x), None) | (None, Some(x)) => *x,
            (None, None) => return Some(()),
        };
        i += a[i..].iter().take_while(|x| **x <= value).count();
        j += b[j..].iter().take_while(|y| **y <= value).count();
        visit(value, i as f64 / a.len() as f64, j as f64 / b.len() as f64);
    }
}

/// Total variation: half the sum over categories of the difference of shares, 0 to 1. It is the share of people who would have to
/// change category. Both samples are sorted by the same order. `None` if one is empty.
#[must_use]
pub fn total_variation<T: PartialOrd>(a: &[T], b: &[T]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while let Some(category) = match (a.get(i), b.get(j)) {
        (Some(x), Some(y)) => Some(if x <= y { x } else { y }),
        (x, y) => x.or(y),
    } {
        let of = |sample: &[T]| sample.iter().take_while(|x| *x <= category).count();
        let (more_a, more_b) = (of(&a[i..]), of(&b[j..]));
        sum += (more_a as f64 / a.len() as f64 - more_b as f64 / b.len() as f64).abs();
        (i, j) = (i + more_a, j + more_b);
    }
    Some(sum / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn near(found: Option<f64>, expected: f64) -> bool {
        (found.unwrap() - expected).abs() < 1e-12
    }

    #[test]
    fn closed_forms() {
        // A shift of whole numbers by 3 moves all mass by 3.
        let a: Vec<f64> = (0..10).map(f64::from).collect();
        let b: Vec<f64> = (3..13).map(f64::from).collect();
        assert!(near(wasserstein(&a, &b), 3.0) && near(kolmogorov_smirnov(&a, &b), 0.3));
        assert!(near(total_variation(&a, &b), 0.3));
        // Two points against one in the middle.
        assert!(near(wasserstein(&[0.0, 1.0], &[0.5]), 0.5) && near(kolmogorov_smirnov(&[0.0, 1.0], &[0.5]), 0.5));
        // Disjoint samples.
        assert!(near(wasserstein(&[1.0, 1.0], &[5.0, 6.0]), 4.5) && near(kolmogorov_smirnov(&[1.0], &[5.0]), 1.0));
        assert!(near(total_variation(&["a", "a", "b"], &["a", "b", "b"]), 1.0 / 3.0));
        assert!(near(total_variation(&["a"], &["b"]), 1.0));
        assert_eq!(wasserstein(&[], &[1.0]), None);
        assert_eq!(kolmogorov_smirnov(&[1.0], &[]), None);
        assert_eq!(total_variation::<f64>(&[], &[]), None);
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-8i32..8).prop_map(|x| f64::from(x) / 2.0), 1..30).prop_map(|mut values| {
            values.sort_by(f64::total_cmp);
            values
        })
    }

    fn below(sample: &[f64], x: f64) -> f64 {
        sample.iter().filter(|value| **value <= x).count() as f64 / sample.len() as f64
    }

    proptest! {
        /// Computes the distribution functions by counting, on a grid that holds all values; the Wasserstein distance also as a
        /// mean over quantiles, which is its other definition.
        #[test]
        fn agree_with_counting(a in sample(), b in sample()) {
            let grid: Vec<f64> = (-10..10).map(|x| f64::from(x) / 2.0).collect();
            let gaps: Vec<f64> = grid.iter().map(|x| (below(&a, *x) - below(&b, *x)).abs()).collect();
            prop_assert!(near(kolmogorov_smirnov(&a, &b), gaps.iter().copied().fold(0.0, f64::max)));
            prop_assert!(near(wasserstein(&a, &b), gaps.iter().sum::<f64>() / 2.0));
            let (n, m) = (a.len(), b.len());
            let moved: f64 = (0..n * m).map(|i| (a[i / m] - b[i / n]).abs()).sum::<f64>() / (n * m) as f64;
            prop_assert!((wasserstein(&a, &b).unwrap() - moved).abs() < 1e-9);
            let mut shares: BTreeMap<i64, f64> = BTreeMap::new();
            a.iter().for_each(|x| *shares.entry((x * 2.0) as i64).or_default() += 1.0 / n as f64);
            b.iter().for_each(|x| *shares.entry((x * 2.0) as i64).or_default() -= 1.0 / m as f64);
            prop_assert!((total_variation(&a, &b).unwrap() - shares.values().map(|x| x.abs()).sum::<f64>() / 2.0).abs() < 1e-9);
            prop_assert_eq!(wasserstein(&a, &b), wasserstein(&b, &a));
        }
    }
}
