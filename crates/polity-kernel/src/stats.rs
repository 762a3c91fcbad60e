//! Statistics over the runs of a sweep and the items of an evaluation: means, percentile bootstrap intervals, contrasts, tests of pairs.
//!
//! An interval is the 2.5 % to 97.5 % quantile (linearly interpolated, as in R's type 7 and in NumPy) of [`RESAMPLES`] means of
//! samples drawn with replacement (Efron and Tibshirani: "An Introduction to the Bootstrap", 1993, chapter 13). The draws are
//! counter-based: the same values in the same order have the same interval, in every process. With few values such an interval
//! is too narrow, as for every bootstrap of this kind: of 95 % intervals of the mean of normal values about 93 % hold the true mean
//! with 30 values and about 83 % with 5.

use crate::rng::{Draws, Stream};
use serde::{Deserialize, Serialize};

/// Resamples of an interval.
pub const RESAMPLES: u32 = 10_000;
/// The share of resampled means between the ends of an interval.
pub const CONFIDENCE: f64 = 0.95;
/// With fewer values even differences that all have one sign are no rarer than one in twenty if signs are tossed (2 / 2^n).
pub const FEW: usize = 6;

/// A mean, or a difference of means, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean or the difference; `None` without values.
    pub mean: Option<f64>,
    /// Lower end of the interval; `None` with fewer than two values.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Number of values (of pairs in a paired difference, of the smaller sample in an unpaired one).
    pub n: usize,
}

/// What an interval says about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval excludes 0: with other seeds the difference would most likely have the same sign. With few values that is said
    /// too often: of differences that are noise, in 13 % with 6 values, in 7 % with 30.
    #[serde(rename = "stable")]
    Stable,
    /// The interval holds 0: other seeds may turn the difference round.
    #[serde(rename = "seed noise")]
    SeedNoise,
    /// There are too few values to tell: fewer than [`FEW`].
    #[serde(rename = "unknown")]
    Unknown,
}

impl Verdict {
    /// The word for tables and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Stable => "stable",
            Verdict::SeedNoise => "seed noise",
            Verdict::Unknown => "unknown",
        }
    }
}

impl Estimate {
    /// What is said without values.
    const NONE: Estimate = Estimate { mean: None, low: None, high: None, n: 0 };

    /// Whether the interval excludes 0, where there are values enough for it to tell.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.low, self.high) {
            _ if self.n < FEW => Verdict::Unknown,
            (Some(low), Some(high)) if low > 0.0 || high < 0.0 => Verdict::Stable,
            (Some(_), Some(_)) => Verdict::SeedNoise,
            _ => Verdict::Unknown,
        }
    }
}

/// Values, and the key of their resamples.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Samples with different keys are resampled independently, samples of one key and size alike.
    pub key: u64,
    /// Its values.
    pub values: &'a [f64],
}

/// The arithmetic mean; `None` of nothing. The mean of equal values is exactly that value.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let base = *values.first()?;
    Some(base + values.iter().map(|x| x - base).sum::<f64>() / values.len() as f64)
}

/// The mean of a sample, with its interval.
#[must_use]
pub fn estimate(sample: Sample<'_>) -> Estimate {
    bootstrap(sample.values.len(), |b| sample.mean(b))
}

/// The mean of the means of some independent samples, less that of others, with its interval.
#[must_use]
pub fn difference(plus: &[Sample<'_>], minus: &[Sample<'_>]) -> Estimate {
    let n = plus.iter().chain(minus).map(|sample| sample.values.len()).min().unwrap_or(0);
    let level = |samples: &[Sample<'_>], b| {
        let means: Vec<f64> = samples.iter().map(|sample| sample.mean(b)).collect();
        mean(&means).unwrap_or(0.0)
    };
    bootstrap(n, |b| level(plus, b) - level(minus, b))
}

/// What a statistic is, and where its resamples lie; `None` asks for the statistic itself.
fn bootstrap(n: usize, statistic: impl Fn(Option<u32>) -> f64) -> Estimate {
    if n == 0 {
        return Estimate::NONE;
    }
    let whole = Estimate { mean: Some(statistic(None)), n, ..Estimate::NONE };
    if n < 2 {
        return whole;
    }
    let mut means: Vec<f64> = (0..RESAMPLES).map(|b| statistic(Some(b))).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Estimate { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail), ..whole }
}

impl Sample<'_> {
    /// Its mean, or that of resample `b`, summed in the same way: what no seed changes has an interval without width.
    fn mean(&self, b: Option<u32>) -> f64 {
        let Some(b) = b else { return mean(self.values).unwrap_or(0.0) };
        let n = self.values.len();
        let mut draws = Draws::new(self.key, Stream::Bootstrap, n as u32, b);
        let base = self.values[0];
        let above: f64 = (0..n).map(|_| self.values[draws.below(n as u64) as usize] - base).sum();
        base + above / n as f64
    }
}

/// A quantile of sorted values, linearly interpolated.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let at = p * (sorted.len().checked_sub(1)?) as f64;
    let (low, high) = (sorted.get(at.floor() as usize)?, sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// The exact test of pairs with two outcomes (McNemar 1947, in its binomial form): how likely it is, if neither side were better, that of
/// `more + fewer` pairs that differ at least as many as here fall on one side. Two-sided; 1 where no pair differs.
///
/// Of means over repeats of an item it is the sign test, whose pairs are items.
#[must_use]
pub fn mcnemar(more: u64, fewer: u64) -> f64 {
    let n = more + fewer;
    let log_factorial = |k: u64| libm::lgamma(k as f64 + 1.0);
    let log_chance =
        |k: u64| log_factorial(n) - log_factorial(k) - log_factorial(n - k) - n as f64 * std::f64::consts::LN_2;
    let tail: f64 = (0..=more.min(fewer)).map(|k| libm::exp(log_chance(k))).sum();
    (2.0 * tail).min(1.0)
}

/// p values as they stand after as many tests as there are (Holm 1979, step-down): the i-th smallest of m is multiplied by m - i, counted
/// from 0, and is no less than those before it. In the order of the given ones.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max((p[at] * (p.len() - rank) as f64).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

/// pass^k of one item: the chance that `k` of its `n` tries, drawn without replacement, are all right when `right` are: C(right, k) / C(n, k),
/// without bias for the chance that k further tries all are (Yao et al., "tau-bench", 2024). `None` for more tries than were made.
#[must_use]
pub fn pass_hat(right: u32, n: u32, k: u32) -> Option<f64> {
    (k <= n).then(|| (0..k).map(|i| f64::from(right.saturating_sub(i)) / f64::from(n - i)).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_pairs_have_the_known_answers() {
        // scipy.stats.binomtest(k, n, 0.5).pvalue
        for (more, fewer, p) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (6, 0, 0.03125),
            (9, 2, 0.065_429_687_5),
            (25, 11, 0.028_816_719_7),
            (10, 10, 1.0),
        ] {
            assert!((mcnemar(more, fewer) - p).abs() < 1e-7, "{more} {fewer}: {}", mcnemar(more, fewer));
            assert_eq!(mcnemar(more, fewer), mcnemar(fewer, more));
        }
        // Pascal's triangle, where whole numbers hold it.
        for n in 1..=60_u64 {
            let mut row = vec![1_u64];
            for _ in 0..n {
                row = (0..=row.len()).map(|k| if k == 0 || k == row.len() { 1 } else { row[k - 1] + row[k] }).collect();
            }
            for k in 0..=n / 2 {
                let tail: u64 = row[..=k as usize].iter().sum();
                let p = (2.0 * tail as f64 / 2f64.powi(n as i32)).min(1.0);
                assert!((mcnemar(k, n - k) - p).abs() < 1e-10, "{k} of {n}");
            }
        }
        // Nothing overflows, and nothing is negative.
        let far = mcnemar(6_000, 4_000);
        assert!((0.0..1e-80).contains(&far), "{far}");
    }

    #[test]
    fn many_tests_are_paid_for() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn passes_are_what_enumeration_gives() {
        for n in 1..=6_u32 {
            for right in 0..=n {
                for k in 1..=n {
                    // All subsets of k tries of which the first `right` are right.
                    let subsets = (0..1_u32 << n).filter(|set| set.count_ones() == k);
                    let (mut all, mut passed) = (0, 0);
                    for set in subsets {
                        all += 1;
                        passed += u32::from(set >> right == 0);
                    }
                    let expected = f64::from(passed) / f64::from(all);
                    assert!((pass_hat(right, n, k).unwrap() - expected).abs() < 1e-12, "{right} of {n}, {k}");
                }
            }
        }
        assert_eq!(pass_hat(3, 3, 4), None);
    }
    use crate::rng::normal_quantile;
    use proptest::prelude::*;

    fn of(values: &[f64], key: u64) -> Estimate {
        estimate(Sample { key, values })
    }

    /// The same interval written down plainly: all resamples, sorted, ranks counted.
    fn plainly(values: &[f64], key: u64) -> (f64, f64) {
        let n = values.len();
        let mut means = Vec::new();
        for b in 0..RESAMPLES {
            let mut draws = Draws::new(key, Stream::Bootstrap, n as u32, b);
            let mut counts = vec![0u32; n];
            for _ in 0..n {
                counts[draws.below(n as u64) as usize] += 1;
            }
            means.push(values.iter().zip(&counts).map(|(x, c)| x * f64::from(*c)).sum::<f64>() / n as f64);
        }
        means.sort_by(|a, b| a.partial_cmp(b).unwrap());
        // 0.025 * 9999 = 249.975 and 0.975 * 9999 = 9749.025.
        let at = |rank: usize, part: f64| means[rank] * (1.0 - part) + means[rank + 1] * part;
        (at(249, 0.975), at(9749, 0.025))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_interval_agrees_with_a_plain_one(values in prop::collection::vec(-1e3..1e3f64, 2..40), key in 0..5u64) {
            let found = of(&values, key);
            let (low, high) = plainly(&values, key);
            prop_assert!((found.low.unwrap() - low).abs() < 1e-9 && (found.high.unwrap() - high).abs() < 1e-9);
            prop_assert!(found.low <= found.mean && found.mean <= found.high);
            prop_assert_eq!(found, of(&values, key));
        }
    }

    #[test]
    fn two_values_have_the_closed_form() {
        // Means of two draws: a with 1/4, the middle with 1/2, b with 1/4; both tails lie at the ends.
        let found = of(&[1.0, 3.0], 0);
        assert_eq!(found, Estimate { mean: Some(2.0), low: Some(1.0), high: Some(3.0), n: 2 });
    }

    #[test]
    fn the_width_tends_to_that_of_the_normal_interval() {
        // Evenly spaced quantiles: the bootstrap's standard error of the mean is sd / sqrt(n), exactly.
        let n = 400;
        let values: Vec<f64> = (0..n).map(|i| normal_quantile((f64::from(i) + 0.5) / f64::from(n))).collect();
        let sd = (values.iter().map(|x| x * x).sum::<f64>() / f64::from(n)).sqrt();
        let half = 1.959_964 * sd / f64::from(n).sqrt();
        let found = of(&values, 0);
        assert!((found.low.unwrap() + half).abs() < 0.04 * half, "{found:?} {half}");
        assert!((found.high.unwrap() - half).abs() < 0.04 * half, "{found:?} {half}");
    }

    /// The figures that the module's documentation names.
    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        let covered = |n: u32, trials: u32| {
            let hold = |trial: &u32| {
                let mut draws = Draws::new(99, Stream::Driver, n, *trial);
                let values: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
                let found = of(&values, 0);
                found.low.unwrap() <= 0.0 && found.high.unwrap() >= 0.0
            };
            f64::from((0..trials).filter(hold).count() as u32) / f64::from(trials)
        };
        let (few, thirty) = (covered(5, 600), covered(30, 300));
        assert!((0.78..0.88).contains(&few), "{few}");
        assert!((0.89..0.97).contains(&thirty), "{thirty}");
    }

    #[test]
    fn a_pair_tells_what_two_samples_do_not() {
        // Large noise that both share, a small difference: pairs cancel the noise, independent samples do not.
        let mut draws = Draws::new(3, Stream::Driver, 0, 0);
        let noise: Vec<f64> = (0..30).map(|_| 10.0 * draws.normal()).collect();
        let other: Vec<f64> = noise.iter().map(|x| x + 0.5 + 0.1 * draws.normal()).collect();
        let pairs: Vec<f64> = other.iter().zip(&noise).map(|(a, b)| a - b).collect();
        let paired = of(&pairs, 0);
        let unpaired = difference(&[Sample { key: 2, values: &other }], &[Sample { key: 1, values: &noise }]);
        assert!((paired.mean.unwrap() - unpaired.mean.unwrap()).abs() < 1e-9);
        assert_eq!((paired.verdict(), unpaired.verdict()), (Verdict::Stable, Verdict::SeedNoise));
        // Independent samples: the variance of the difference is the sum of the variances.
        let sd = |v: &[f64]| {
            let m = mean(v).unwrap();
            (v.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / v.len() as f64).sqrt()
        };
        let half = 1.96 * (sd(&noise).powi(2) + sd(&other).powi(2)).sqrt() / 30f64.sqrt();
        let width = unpaired.high.unwrap() - unpaired.low.unwrap();
        assert!((width / (2.0 * half) - 1.0).abs() < 0.08, "{width} {half}");
    }

    #[test]
    fn what_can_not_be_said_is_not_said() {
        assert_eq!(of(&[], 0), Estimate::NONE);
        assert_eq!(of(&[2.0], 0), Estimate { mean: Some(2.0), low: None, high: None, n: 1 });
        assert_eq!(of(&[2.0], 0).verdict(), Verdict::Unknown);
        let same = of(&[0.1; 7], 0);
        assert_eq!((same.low, same.high, same.verdict()), (Some(0.1), Some(0.1), Verdict::Stable));
        assert_eq!(of(&[0.0; 7], 0).verdict(), Verdict::SeedNoise);
        // With few values noise has one sign too often.
        assert_eq!(of(&[1.0; FEW - 1], 0).verdict(), Verdict::Unknown);
        let (one, none) = (Sample { key: 0, values: &[1.0] }, Sample { key: 1, values: &[] });
        assert_eq!(difference(&[one], &[none]), Estimate::NONE);
        // Means of three equal values: no rounding may look like an effect.
        let third = |key| Sample { key, values: &[0.1; FEW] };
        let none = difference(&[third(1), third(2), third(3)], &[third(4), third(5)]);
        assert_eq!((none.mean, none.verdict()), (Some(0.0), Verdict::SeedNoise));
    }
}
