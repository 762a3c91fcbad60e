//! Rank correlations of two series: Spearman's rho and Kendall's tau-b.

use crate::{CONFIDENCE, Estimate};
use polity_kernel::rng::normal_quantile;
use std::cmp::Ordering;

/// Returns Spearman's rho of pairs of numbers: Pearson's correlation of their ranks, where equal numbers share the mean of their ranks
/// (Spearman 1904; Kendall: "Rank Correlation Methods", 1948). `None` with fewer than two pairs, if one side has equal numbers alone,
/// or if a number is NaN.
/// ```
/// // SciPy: scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7])
/// let rho = polity_stats::rank::spearman(&[(1.0, 5.0), (2.0, 6.0), (3.0, 7.0), (4.0, 8.0), (5.0, 7.0)]).unwrap();
/// assert!((rho - 0.8207826816681233).abs() < 1e-12, "{rho}");
/// ```
#[must_use]
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    if unordered(pairs) {
        return None;
    }
    let side = |of: fn(&(f64, f64)) -> f64| ranks(&pairs.iter().map(of).collect::<Vec<_>>());
    let (first, second) = (side(|pair| pair.0), side(|pair| pair.1));
    // The mean of the ranks 1 to n, which ties do not change.
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let spread = product(&first, &first) * product(&second, &second);
    (spread > 0.0).then(|| product(&first, &second) / spread.sqrt())
}

/// Returns Spearman's rho with its 95 % interval: by Fisher's transformation with the variance of Bonett and Wright ("Sample size
/// requirements for estimating Pearson, Kendall and Spearman correlations", 2000). There is no interval with fewer than four pairs.
#[must_use]
pub fn spearman_interval(pairs: &[(f64, f64)]) -> Estimate {
    let (rho, n) = (spearman(pairs), pairs.len());
    let ends = rho.filter(|_| n > 3).map(|rho| {
        let half = normal_quantile((1.0 + CONFIDENCE) / 2.0) * ((1.0 + rho * rho / 2.0) / (n as f64 - 3.0)).sqrt();
        let end = |sign: f64| libm::tanh(libm::atanh(rho.clamp(-1.0, 1.0)) + sign * half);
        (end(-1.0), end(1.0))
    });
    let (low, high) = ends.unzip();
    Estimate { mean: rho, low, high, n }
}

/// Returns Kendall's tau-b of pairs of numbers: of all pairs of pairs, those in the same order on both sides less those in opposite
/// order, divided by the geometric mean of the numbers of those that are not tied on either side (Kendall 1945). Takes n log n steps
/// (Knight 1966). `None` as for [`spearman`].
/// ```
/// // SciPy: scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])
/// let tau = polity_stats::rank::kendall(&[(12.0, 1.0), (2.0, 4.0), (1.0, 7.0), (12.0, 1.0), (2.0, 0.0)]).unwrap();
/// assert!((tau + 0.4714045207910316).abs() < 1e-12, "{tau}");
/// ```
#[must_use]
pub fn kendall(pairs: &[(f64, f64)]) -> Option<f64> {
    if unordered(pairs) {
        return None;
    }
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|a, b| order(a.0, b.0).then(order(a.1, b.1)));
    let of_first = tied(&sorted, |a, b| a.0 == b.0);
    let of_both = tied(&sorted, |a, b| a == b);
    let mut second: Vec<f64> = sorted.iter().map(|pair| pair.1).collect();
    let opposite = exchanges(&mut second);
    let of_second = tied(&second, |a, b| a == b);
    let all = couples(pairs.len());
    // In this order no step falls below 0, since pairs tied on both sides count twice among the tied.
    let same = all + of_both - of_first - of_second - opposite;
    let spread = (all - of_first) as f64 * (all - of_second) as f64;
    (spread > 0.0).then(|| (same as f64 - opposite as f64) / spread.sqrt())
}

fn unordered(pairs: &[(f64, f64)]) -> bool {
    pairs.len() < 2 || pairs.iter().any(|(a, b)| a.is_nan() || b.is_nan())
}

/// Compares numbers other than NaN; both zeros are equal.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Returns the ranks of numbers, from 1 on; equal ones share their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    places.sort_by(|a, b| order(values[*a], values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in places.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|place| ranks[*place] = rank);
        before += equal.len();
    }
    ranks
}

/// Returns how many pairs can be made of n things.
fn couples(n: usize) -> u64 {
    let n = n as u64;
    n * n.saturating_sub(1) / 2
}

/// Returns how many pairs of things are tied, where equal things stand together.
fn tied<T>(sorted: &[T], equal: impl FnMut(&T, &T) -> bool) -> u64 {
    sorted.chunk_by(equal).map(|of| couples(of.len())).sum()
}

/// Sorts numbers; returns how many pairs stood in falling order.
fn exchanges(values: &mut [f64]) -> u64 {
    let half = values.len() / 2;
    if half == 0 {
        return 0;
    }
    let (low, high) = values.split_at_mut(half);
    let mut count = exchanges(low) + exchanges(high);
    let (mut i, mut j, mut merged) = (0, 0, Vec::with_capacity(low.len() + high.len()));
    while i < low.len() || j < high.len() {
        if j == high.len() || i < low.len() && low[i] <= high[j] {
            merged.push(low[i]);
            i += 1;
        } else {
            // It goes before all that is left of the lower half.
            count += (low.len() - i) as u64;
            merged.push(high[j]);
            j += 1;
        }
    }
    values.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Kendall's definition: the sum over all pairs of pairs.
    fn plain_kendall(pairs: &[(f64, f64)]) -> f64 {
        let sign = |a: f64, b: f64| f64::from(i8::from(a > b) - i8::from(a < b));
        let (mut together, mut first, mut second) = (0.0, 0.0, 0.0);
        for a in pairs {
            for b in pairs {
                let (x, y) = (sign(a.0, b.0), sign(a.1, b.1));
                (together, first, second) = (together + x * y, first + x * x, second + y * y);
            }
        }
        together / (first * second).sqrt()
    }

    /// Spearman's by counting: a rank is the number of smaller ones and half of the equal ones.
    fn plain_spearman(pairs: &[(f64, f64)]) -> f64 {
        let rank = |x: f64, of: fn(&(f64, f64)) -> f64| {
            let side = || pairs.iter().map(of);
            side().filter(|y| *y < x).count() as f64 + (side().filter(|y| *y == x).count() as f64 + 1.0) / 2.0
        };
        let ranks: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (rank(*a, |p| p.0), rank(*b, |p| p.1))).collect();
        let n = ranks.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| ranks.iter().map(of).sum::<f64>() / n;
        let (a, b) = (mean(&|r| r.0), mean(&|r| r.1));
        let covariance = mean(&|r| (r.0 - a) * (r.1 - b));
        covariance / (mean(&|r| (r.0 - a).powi(2)) * mean(&|r| (r.1 - b).powi(2))).sqrt()
    }

    fn close(found: Option<f64>, expected: f64) -> bool {
        // Without spread the plain definition divides 0 by 0.
        found.map_or(expected.is_nan(), |found| (found - expected).abs() < 1e-9)
    }

    proptest! {
        #[test]
        fn both_are_as_their_definitions(pairs in proptest::collection::vec((-5i32..5, -9i32..9), 2..60)) {
            let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|(a, b)| (f64::from(a), f64::from(b) / 3.0)).collect();
            prop_assert!(close(kendall(&pairs), plain_kendall(&pairs)), "{pairs:?}");
            prop_assert!(close(spearman(&pairs), plain_spearman(&pairs)), "{pairs:?}");
        }
    }

    #[test]
    fn the_interval_of_a_rank_correlation_is_that_of_the_formula_and_holds() {
        let pairs: Vec<(f64, f64)> = (0..40).map(|i| (f64::from(i), f64::from(i * 17 % 40))).collect();
        let found = spearman_interval(&pairs);
        let rho: f64 = found.mean.unwrap();
        let half = 1.959_963_984_540_054 * ((1.0 + rho * rho / 2.0) / 37.0).sqrt();
        assert!((found.low.unwrap() - (rho.atanh() - half).tanh()).abs() < 1e-6, "{found:?}");
        assert!((found.high.unwrap() - (rho.atanh() + half).tanh()).abs() < 1e-6, "{found:?}");
        // Independent numbers: the interval holds 0 in 95 of 100 cases.
        let mut held = 0;
        for trial in 0..1000 {
            let mut draws = polity_kernel::rng::Draws::new(4, polity_kernel::rng::Stream::Driver, trial, 0);
            let pairs: Vec<(f64, f64)> = (0..30).map(|_| (draws.unit(), draws.normal())).collect();
            let found = spearman_interval(&pairs);
            held += u32::from(found.low.unwrap() <= 0.0 && found.high.unwrap() >= 0.0);
        }
        assert!((930..=970).contains(&held), "{held}");
        let all = spearman_interval(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]);
        assert_eq!((all.mean, all.low, all.high), (Some(1.0), Some(1.0), Some(1.0)));
        assert_eq!(spearman_interval(&[(1.0, 1.0), (2.0, 2.0)]).low, None);
    }

    #[test]
    fn known_values() {
        let with =
            |second: &[f64]| -> Vec<(f64, f64)> { second.iter().enumerate().map(|(i, x)| (i as f64, *x)).collect() };
        // Without ties: 1 - 6 sum d^2 / (n (n^2 - 1)), and (same - opposite) / (n (n - 1) / 2).
        let mixed = with(&[2.0, 1.0, 4.0, 3.0, 6.0, 5.0]);
        assert!(close(spearman(&mixed), 1.0 - 6.0 * 6.0 / 210.0));
        assert!(close(kendall(&mixed), (12.0 - 3.0) / 15.0));
        for (series, expected) in [([1.0, 2.0, 3.0, 9.0], 1.0), ([4.0, 3.0, 2.0, -7.0], -1.0)] {
            assert!(close(spearman(&with(&series)), expected) && close(kendall(&with(&series)), expected));
        }
        // A tie costs tau-b less than tau-a: 5 same pairs of 6, one tied on one side.
        assert!(close(kendall(&with(&[1.0, 2.0, 2.0, 3.0])), 5.0 / 30f64.sqrt()));
    }

    #[test]
    fn ties_on_both_sides_count_once() {
        assert_eq!(kendall(&[(1.0, 2.0), (1.0, 2.0), (1.0, 3.0)]), None);
        let pairs = [(1.0, 1.0), (1.0, 1.0), (1.0, 2.0), (2.0, 1.0)];
        assert!(close(kendall(&pairs), plain_kendall(&pairs)) && close(spearman(&pairs), plain_spearman(&pairs)));
    }

    #[test]
    fn without_an_order_there_is_none() {
        for pairs in [
            &[][..],
            &[(1.0, 1.0)],
            &[(1.0, 2.0), (1.0, 3.0)],
            &[(0.0, 1.0), (-0.0, 2.0)],
            &[(f64::NAN, 1.0), (1.0, 2.0)],
        ] {
            assert_eq!((spearman(pairs), kendall(pairs)), (None, None), "{pairs:?}");
        }
    }
}
