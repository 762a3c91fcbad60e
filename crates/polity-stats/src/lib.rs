//! Statistics over the runs of a sweep and the items of an evaluation: means with intervals, contrasts, tests of pairs.
//!
//! There are two kinds of interval. The number of values decides which one is right:
//!
//! - Few values, which are means themselves: the runs of a sweep or of a claim, one per seed. [`student`] gives Student's interval,
//!   and [`welch`] that of a difference of independent samples. Their coverage holds from two values on, as far as the values are
//!   near normal.
//! - Many values of any shape: the items of an evaluation. [`bootstrap`] gives the 2.5 % to 97.5 % quantile (linearly interpolated, as in R's
//!   type 7 and in NumPy) of [`RESAMPLES`] means of samples drawn with replacement (Efron and Tibshirani: "An Introduction to the
//!   Bootstrap", 1993, chapter 13). The draws are counter-based: the same values in the same order have the same interval, in every
//!   process. With few values it is too narrow: for five normal values it contains the true mean in 83 % of the cases.
//!
//! The page `docs/book/src/intervals.md` has the measured coverage of each.

pub mod agreement;
pub mod calibration;
pub mod evaluation;
pub mod rank;
pub mod replicates;
pub mod search;
pub mod sensitivity;

use polity_kernel::rng::{Draws, Stream};
use serde::{Deserialize, Serialize};

/// Resamples of a bootstrap interval.
pub const RESAMPLES: u32 = 10_000;
/// The probability that an interval contains the true mean.
pub const CONFIDENCE: f64 = 0.95;
/// The minimum number of values for a verdict. With fewer, differences that all have one sign are not rarer than one in twenty if
/// signs are random (2 / 2^n): a verdict would depend entirely on the values being normal.
pub const FEW: usize = 6;

/// A mean or a difference of means, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean or the difference; `None` without values.
    pub mean: Option<f64>,
    /// Lower end of the interval; `None` with fewer than two values.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Number of values (pairs in a paired difference, the smaller sample in an unpaired one).
    pub n: usize,
}

/// What an interval says about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval excludes 0: with other seeds the difference would most likely have the same sign. One in twenty differences
    /// that are noise is called stable.
    #[serde(rename = "stable")]
    Stable,
    /// The interval contains 0: with other seeds the difference may change its sign.
    #[serde(rename = "seed noise")]
    SeedNoise,
    /// All values are 0: what is compared does not differ in any run.
    #[serde(rename = "the same")]
    Same,
    /// The interval excludes 0, but with so many contrasts some do so by chance: after Holm's correction this one may be noise.
    #[serde(rename = "not after Holm")]
    NotAfterHolm,
    /// There are too few values to decide: fewer than [`FEW`].
    #[serde(rename = "unknown")]
    Unknown,
}

impl Verdict {
    /// Returns the word for tables and people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Stable => "stable",
            Verdict::SeedNoise => "seed noise",
            Verdict::Same => "the same",
            Verdict::NotAfterHolm => "not after Holm",
            Verdict::Unknown => "unknown",
        }
    }
}

impl Estimate {
    /// The estimate without values.
    pub(crate) const NONE: Estimate = Estimate { mean: None, low: None, high: None, n: 0 };

    /// Returns the probability of a mean so far above `bound`, or farther, if the true mean were `bound` (one-sided, Student's distribution
    /// with n - 1 degrees of freedom). It is below 0.025 exactly if `bound` is below the interval of [`student`]. `None` without an interval.
    /// ```
    /// // R: t.test(c(2.1, 2.9, 2.4, 2.6), mu = 2, alternative = "greater")$p.value
    /// let p = polity_stats::student(&[2.1, 2.9, 2.4, 2.6]).p_above(2.0).unwrap();
    /// assert!((p - 0.0295236).abs() < 1e-6, "{p}");
    /// ```
    #[must_use]
    pub fn p_above(&self, bound: f64) -> Option<f64> {
        let (mean, high) = self.mean.zip(self.high)?;
        let (half, above) = (high - mean, mean - bound);
        if half <= 0.0 {
            return Some(if above > 0.0 { 0.0 } else { 1.0 });
        }
        let freedom = self.n as f64 - 1.0;
        let t = above / half * student_quantile((1.0 + CONFIDENCE) / 2.0, freedom);
        let tail = incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5) / 2.0;
        Some(if t > 0.0 { tail } else { 1.0 - tail })
    }

    /// Returns the verdict of one of several contrasts, given its p value after a correction for their number.
    #[must_use]
    pub fn verdict_corrected(&self, p: Option<f64>) -> Verdict {
        match self.verdict() {
            Verdict::Stable if p.is_none_or(|p| p >= 1.0 - CONFIDENCE) => Verdict::NotAfterHolm,
            verdict => verdict,
        }
    }

    /// Returns the verdict: whether the interval excludes 0, if there are enough values.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.low, self.high) {
            (Some(low), Some(high)) if low == 0.0 && high == 0.0 => Verdict::Same,
            _ if self.n < FEW => Verdict::Unknown,
            (Some(low), Some(high)) if low > 0.0 || high < 0.0 => Verdict::Stable,
            (Some(_), Some(_)) => Verdict::SeedNoise,
            _ => Verdict::Unknown,
        }
    }
}

/// Returns the arithmetic mean; `None` without values. The mean of equal values is exactly that value.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let base = *values.first()?;
    Some(base + values.iter().map(|x| x - base).sum::<f64>() / values.len() as f64)
}

/// Returns the same as [`mean`], whatever the order of the values: groups with the same values have exactly the same mean, so that no
/// rounding looks like a difference.
/// ```
/// let means = [[0.1, 0.7, 0.3], [0.7, 0.3, 0.1]].map(|values| polity_stats::mean_in_any_order(values.to_vec()));
/// assert_eq!(means[0], means[1]);
/// ```
#[must_use]
pub fn mean_in_any_order(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    mean(&values)
}

/// Returns the mean of few values, with Student's interval: for the runs of an arm, one per seed. Equal values have an interval of
/// width 0.
/// ```
/// let few = polity_stats::student(&[0.61, 0.64, 0.58]);
/// assert!(few.low.unwrap() < 0.61 && 0.61 < few.high.unwrap());
/// ```
#[must_use]
pub fn student(values: &[f64]) -> Estimate {
    welch(&[values], &[])
}

/// Returns the mean of the means of some independent samples, minus that of others, with the Welch-Satterthwaite interval: the
/// samples may differ in size and in variance. Without `minus` it is the mean of the means.
#[must_use]
pub fn welch(plus: &[&[f64]], minus: &[&[f64]]) -> Estimate {
    welch_tested(plus, minus).0
}

/// Returns the same as [`welch`], and the p value of no difference: two-sided, by the same distribution, so that it is below 0.05 exactly if
/// the interval excludes 0. `None` without an interval.
/// ```
/// // R: t.test(c(5.1, 4.9, 6.2), c(6.5, 7.1, 6.9))$p.value
/// let (_, p) = polity_stats::welch_tested(&[&[5.1, 4.9, 6.2]], &[&[6.5, 7.1, 6.9]]);
/// assert!((p.unwrap() - 0.05410326565718462).abs() < 1e-9, "{p:?}");
/// ```
#[must_use]
pub fn welch_tested(plus: &[&[f64]], minus: &[&[f64]]) -> (Estimate, Option<f64>) {
    let Some(n) = plus.iter().chain(minus).map(|sample| sample.len()).min().filter(|n| *n > 0) else {
        return (Estimate::NONE, None);
    };
    let level = |samples: &[&[f64]]| {
        mean_in_any_order(samples.iter().filter_map(|sample| mean(sample)).collect()).unwrap_or(0.0)
    };
    let difference = level(plus) - level(minus);
    let whole = Estimate { mean: Some(difference), n, ..Estimate::NONE };
    if n < 2 {
        return (whole, None);
    }
    // The variance of each mean, and its contribution to the degrees of freedom of their sum.
    let (mut variance, mut parts) = (0.0, 0.0);
    for samples in [plus, minus] {
        let share = 1.0 / samples.len().max(1) as f64;
        for sample in samples {
            let (n, middle) = (sample.len() as f64, mean(sample).unwrap_or(0.0));
            let squares: f64 = sample.iter().map(|x| (x - middle) * (x - middle)).sum();
            let own = share * share * squares / (n - 1.0) / n;
            variance += own;
            parts += own * own / (n - 1.0);
        }
    }
    let (half, p) = match variance > 0.0 {
        true => {
            let (freedom, t) = (variance * variance / parts, difference / variance.sqrt());
            let half = student_quantile((1.0 + CONFIDENCE) / 2.0, freedom) * variance.sqrt();
            (half, incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5))
        }
        false => (0.0, if difference == 0.0 { 1.0 } else { 0.0 }),
    };
    (Estimate { low: Some(difference - half), high: Some(difference + half), ..whole }, Some(p))
}

/// Returns the quantile of Student's distribution at probability `p`, from 0.5 up to but not including 1. The degrees of freedom
/// need not be whole.
fn student_quantile(p: f64, freedom: f64) -> f64 {
    // The two-sided tail probability beyond t is a regularised incomplete beta function.
    let beyond = |t: f64| incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5);
    let wanted = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while beyond(high) > wanted {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if beyond(middle) > wanted { low = middle } else { high = middle }
    }
}

/// Returns the regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22), evaluated by Lentz's
/// method.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        // Here the fraction would converge slowly.
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * libm::log(x) + b * libm::log1p(-x) + libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let term = |i: u32| {
        let m = f64::from(i / 2);
        let above = match i % 2 {
            0 => m * (b - m),
            _ => -(a + m) * (a + b + m),
        };
        above * x / ((a + f64::from(i) - 1.0) * (a + f64::from(i)))
    };
    let not_zero = |x: f64| if x.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { x };
    let (mut fraction, mut up, mut down) = (1.0, 1.0, 0.0);
    // A hundred terms are enough for thousands of degrees of freedom.
    for i in 1..10_000 {
        down = 1.0 / not_zero(1.0 + term(i) * down);
        up = not_zero(1.0 + term(i) / up);
        fraction *= up * down;
        if (up * down - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    libm::exp(front) / (a * fraction)
}

/// Returns the mean of many values, with its percentile bootstrap interval: for the items of an evaluation.
#[must_use]
pub fn bootstrap(values: &[f64]) -> Estimate {
    stratified(&[values])
}

/// Returns the mean of the means of some samples, with its percentile bootstrap interval, in which each sample is resampled by itself:
/// for several tasks, each with its items. Every sample has the same weight, whatever its size, and the samples count as given: the
/// interval says nothing about samples that are not among them. `n` counts all values. Without values in one of them there is no mean.
/// ```
/// let both = polity_stats::stratified(&[&[1.0, 0.0, 1.0, 1.0], &[0.0, 1.0]]);
/// assert_eq!((both.mean, both.n), (Some(0.625), 6));
/// assert_eq!(polity_stats::stratified(&[&[1.0, 0.0], &[]]).mean, None);
/// ```
#[must_use]
pub fn stratified(samples: &[&[f64]]) -> Estimate {
    let n = samples.iter().map(|sample| sample.len()).sum();
    let means: Option<Vec<f64>> = samples.iter().map(|sample| mean(sample)).collect();
    let Some(whole) = means.and_then(|means| mean(&means)) else { return Estimate { n, ..Estimate::NONE } };
    let whole = Estimate { mean: Some(whole), n, ..Estimate::NONE };
    if n < 2 {
        return whole;
    }
    let resampled = |b: u32| {
        let mut draws = Draws::new(0, Stream::Bootstrap, n as u32, b);
        let mut of = |values: &[f64]| {
            let base = values[0];
            let above: f64 = values.iter().map(|_| values[draws.below(values.len() as u64) as usize] - base).sum();
            base + above / values.len() as f64
        };
        match samples {
            [one] => of(one),
            several => several.iter().map(|sample| of(sample)).sum::<f64>() / several.len() as f64,
        }
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(resampled).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Estimate { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail), ..whole }
}

/// Returns a quantile of sorted values, linearly interpolated.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let at = p * (sorted.len().checked_sub(1)?) as f64;
    let (low, high) = (sorted.get(at.floor() as usize)?, sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// Returns the p value of the exact test of pairs with two outcomes (McNemar 1947, in its binomial form): the probability, if
/// neither side is better, that of `more + fewer` pairs that differ at least as many as here fall on one side. Two-sided; 1 if no
/// pair differs.
///
/// For means over repeats of an item it is the sign test, with items as pairs.
#[must_use]
pub fn mcnemar(more: u64, fewer: u64) -> f64 {
    let n = more + fewer;
    let log_factorial = |k: u64| libm::lgamma(k as f64 + 1.0);
    let log_chance =
        |k: u64| log_factorial(n) - log_factorial(k) - log_factorial(n - k) - n as f64 * std::f64::consts::LN_2;
    let tail: f64 = (0..=more.min(fewer)).map(|k| libm::exp(log_chance(k))).sum();
    (2.0 * tail).min(1.0)
}

/// Returns p values adjusted for multiple tests (Holm 1979, step-down): the i-th smallest of m is multiplied by m - i, counted from
/// 0, and is no less than those before it. The order of the input is kept.
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

/// Returns pass^k of one item: the probability that `k` of its `n` tries, drawn without replacement, are all right if `right` are:
/// C(right, k) / C(n, k). It is an unbiased estimate of the probability that k further tries are all right (Yao et al.,
/// "tau-bench", 2024). `None` for more tries than were made.
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
        // Pascal's triangle, as far as integers hold it.
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
    fn samples_are_resampled_each_by_itself() {
        let mut draws = Draws::new(3, Stream::Driver, 0, 0);
        let mut shares =
            |n: usize, p: f64| -> Vec<f64> { (0..n).map(|_| f64::from(u8::from(draws.chance(p)))).collect() };
        let samples = [shares(300, 0.8), shares(60, 0.3), shares(120, 0.5)];
        let found = stratified(&samples.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // The standard error of a mean of independent means has a closed form.
        let (mut middle, mut variance) = (0.0, 0.0);
        for sample in &samples {
            let n = sample.len() as f64;
            let own = sample.iter().sum::<f64>() / n;
            middle += own / 3.0;
            variance += own * (1.0 - own) / n / 9.0;
        }
        let half = 1.96 * f64::sqrt(variance);
        assert!((found.mean.unwrap() - middle).abs() < 1e-12 && found.n == 480, "{found:?}");
        assert!((found.low.unwrap() - middle + half).abs() < 0.005, "{found:?} {half}");
        assert!((found.high.unwrap() - middle - half).abs() < 0.005, "{found:?} {half}");
        // What never varies within a sample has no interval, however far the samples lie apart.
        let fixed = stratified(&[&[1.0, 1.0], &[0.0, 0.0, 0.0]]);
        assert_eq!((fixed.mean, fixed.low, fixed.high), (Some(0.5), Some(0.5), Some(0.5)));
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
    fn a_correction_is_said_and_never_made_lighter() {
        let clear = Estimate { mean: Some(1.0), low: Some(0.2), high: Some(1.8), n: 10 };
        assert_eq!(clear.verdict_corrected(Some(0.03)), Verdict::Stable);
        assert_eq!(clear.verdict_corrected(Some(0.06)), Verdict::NotAfterHolm);
        assert_eq!(Estimate { low: Some(-0.2), ..clear }.verdict_corrected(Some(0.001)), Verdict::SeedNoise);
        assert_eq!(Estimate { n: FEW - 1, ..clear }.verdict_corrected(Some(0.001)), Verdict::Unknown);
        // An interval that just excludes 0 has a p value just below 0.05.
        let values: Vec<f64> = (0..8).map(|i| 1.0 + f64::from(i % 4)).collect();
        let half = student(&values).mean.unwrap() - student(&values).low.unwrap();
        for (shift, below) in [(1e-9, true), (-1e-9, false)] {
            let moved: Vec<f64> = values.iter().map(|x| x - 2.5 + half + shift).collect();
            let (found, p) = welch_tested(&[&moved], &[]);
            assert_eq!((found.low.unwrap() > 0.0, p.unwrap() < 0.05), (below, below), "{found:?} {p:?}");
        }
    }

    #[test]
    fn passes_are_what_enumeration_gives() {
        for n in 1..=6_u32 {
            for right in 0..=n {
                for k in 1..=n {
                    // All subsets of k tries, of which the first `right` are right.
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
    use polity_kernel::rng::normal_quantile;
    use proptest::prelude::*;

    /// Computes the same interval naively: all resamples, sorted, ranks counted.
    fn plainly(values: &[f64]) -> (f64, f64) {
        let n = values.len();
        let mut means = Vec::new();
        for b in 0..RESAMPLES {
            let mut draws = Draws::new(0, Stream::Bootstrap, n as u32, b);
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
        fn the_bootstrap_agrees_with_a_plain_one(values in prop::collection::vec(-1e3..1e3f64, 2..40)) {
            let found = bootstrap(&values);
            let (low, high) = plainly(&values);
            prop_assert!((found.low.unwrap() - low).abs() < 1e-9 && (found.high.unwrap() - high).abs() < 1e-9);
            prop_assert!(found.low <= found.mean && found.mean <= found.high);
            prop_assert_eq!(found, bootstrap(&values));
        }
    }

    #[test]
    fn two_values_have_the_closed_form() {
        // Means of two draws: a with 1/4, the middle with 1/2, b with 1/4; both tails lie at the ends.
        let found = bootstrap(&[1.0, 3.0]);
        assert_eq!(found, Estimate { mean: Some(2.0), low: Some(1.0), high: Some(3.0), n: 2 });
    }

    #[test]
    fn the_width_tends_to_that_of_the_normal_interval() {
        // Evenly spaced quantiles: the bootstrap's standard error of the mean is sd / sqrt(n), exactly.
        let n = 400;
        let values: Vec<f64> = (0..n).map(|i| normal_quantile((f64::from(i) + 0.5) / f64::from(n))).collect();
        let sd = (values.iter().map(|x| x * x).sum::<f64>() / f64::from(n)).sqrt();
        let half = 1.959_964 * sd / f64::from(n).sqrt();
        let found = bootstrap(&values);
        assert!((found.low.unwrap() + half).abs() < 0.04 * half, "{found:?} {half}");
        assert!((found.high.unwrap() - half).abs() < 0.04 * half, "{found:?} {half}");
    }

    /// Returns how often the interval of `n` values contains their true mean.
    fn covered(n: u32, trials: u32, truth: f64, value: impl Fn(&mut Draws) -> f64, of: fn(&[f64]) -> Estimate) -> f64 {
        let hold = |trial: &u32| {
            let mut draws = Draws::new(99, Stream::Driver, n, *trial);
            let values: Vec<f64> = (0..n).map(|_| value(&mut draws)).collect();
            let found = of(&values);
            found.low.unwrap() <= truth && found.high.unwrap() >= truth
        };
        f64::from((0..trials).filter(hold).count() as u32) / f64::from(trials)
    }

    #[test]
    fn the_interval_of_few_seeds_holds_the_true_mean_as_often_as_it_says() {
        for n in [2, 3, 6, 8, 30] {
            let normal = covered(n, 4000, 0.0, Draws::normal, student);
            assert!((0.93..0.97).contains(&normal), "{n} normal values: {normal}");
            for p in [0.3, 0.9] {
                let items = |draws: &mut Draws| (0..400).filter(|_| draws.chance(p)).count() as f64 / 400.0;
                let means = covered(n, 2000, p, items, student);
                assert!((0.93..0.97).contains(&means), "{n} means of items right with {p}: {means}");
            }
        }
        // What it replaces, as the module's documentation says.
        let few = covered(5, 600, 0.0, Draws::normal, bootstrap);
        assert!((0.78..0.88).contains(&few), "{few}");
    }

    #[test]
    fn the_interval_of_a_difference_holds_it_whatever_the_variances() {
        let hold = |trial: &u32| {
            let mut draws = Draws::new(98, Stream::Driver, 0, *trial);
            let mut sample = |n: u32, middle: f64, deviation: f64| -> Vec<f64> {
                (0..n).map(|_| middle + deviation * draws.normal()).collect()
            };
            let (a, b, c) = (sample(6, 1.0, 1.0), sample(12, 3.0, 4.0), sample(8, 0.5, 0.2));
            let found = welch(&[&a, &b], &[&c]);
            found.low.unwrap() <= 1.5 && found.high.unwrap() >= 1.5
        };
        let covered = f64::from((0..4000).filter(hold).count() as u32) / 4000.0;
        assert!((0.93..0.97).contains(&covered), "{covered}");
    }

    #[test]
    fn quantiles_of_student_s_distribution_are_those_of_the_tables() {
        // scipy.stats.t.ppf(p, df)
        for (freedom, upper, lower) in [
            (1.0, 12.706_204_736_174_694, 6.313_751_514_675_037),
            (1.5, 6.016_663_104_427_929, 3.705_180_820_095_75),
            (2.0, 4.302_652_729_749_462, 2.919_985_580_353_724),
            (3.0, 3.182_446_305_283_708, 2.353_363_434_801_823),
            (4.7, 2.620_726_075_353_17, 2.043_811_093_013_787),
            (5.0, 2.570_581_835_636_315, 2.015_048_373_333_023),
            (7.0, 2.364_624_251_592_784, 1.894_578_605_090_006),
            (29.0, 2.045_229_642_132_703, 1.699_127_026_533_497),
            (120.0, 1.979_930_405_082_44, 1.657_650_899_355_235),
            (1000.0, 1.962_339_080_826_408, 1.646_378_817_285_464),
        ] {
            for (p, expected) in [(0.975, upper), (0.95, lower)] {
                let found = student_quantile(p, freedom);
                assert!((found - expected).abs() < 1e-9, "{p} with {freedom}: {found}, {expected}");
            }
        }
        assert_eq!(student_quantile(0.5, 3.0), 0.0);
    }

    #[test]
    fn intervals_are_those_of_a_textbook() {
        // scipy.stats: ttest_1samp of all, ttest_ind of the first five and the last three with equal_var=False; their confidence_interval().
        let values = [5.1, 4.9, 6.2, 5.5, 5.8, 4.7, 5.3, 6.0];
        let found = student(&values);
        assert!((found.low.unwrap() - 4.990_767_689_761).abs() < 1e-9, "{found:?}");
        assert!((found.high.unwrap() - 5.884_232_310_239).abs() < 1e-9, "{found:?}");
        let (first, last) = values.split_at(5);
        let found = welch(&[first], &[last]);
        assert!((found.mean.unwrap() - 1.0 / 6.0).abs() < 1e-9, "{found:?}");
        assert!((found.low.unwrap() + 1.120_245_696_047).abs() < 1e-9, "{found:?}");
        assert!((found.high.unwrap() - 1.453_579_029_381).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_pair_tells_what_two_samples_do_not() {
        // Large shared noise, a small difference: pairs cancel the noise, independent samples do not.
        let mut draws = Draws::new(3, Stream::Driver, 0, 0);
        let noise: Vec<f64> = (0..30).map(|_| 10.0 * draws.normal()).collect();
        let other: Vec<f64> = noise.iter().map(|x| x + 0.5 + 0.1 * draws.normal()).collect();
        let pairs: Vec<f64> = other.iter().zip(&noise).map(|(a, b)| a - b).collect();
        let (paired, unpaired) = (student(&pairs), welch(&[&other], &[&noise]));
        assert!((paired.mean.unwrap() - unpaired.mean.unwrap()).abs() < 1e-9);
        assert_eq!((paired.verdict(), unpaired.verdict()), (Verdict::Stable, Verdict::SeedNoise));
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        for of in [student, bootstrap] {
            assert_eq!(of(&[]), Estimate::NONE);
            assert_eq!(of(&[2.0]), Estimate { mean: Some(2.0), low: None, high: None, n: 1 });
            assert_eq!(of(&[2.0]).verdict(), Verdict::Unknown);
            let same = of(&[0.1; 7]);
            assert_eq!((same.low, same.high, same.verdict()), (Some(0.1), Some(0.1), Verdict::Stable));
            assert_eq!(of(&[0.0; 7]).verdict(), Verdict::Same);
            // Two runs are enough to see that they are equal.
            assert_eq!((of(&[0.0; 2]).verdict(), of(&[0.0; 1]).verdict()), (Verdict::Same, Verdict::Unknown));
            // With few values, noise has one sign too often.
            assert_eq!(of(&[1.0; FEW - 1]).verdict(), Verdict::Unknown);
        }
        assert_eq!(welch(&[&[1.0]], &[&[]]), Estimate::NONE);
        // Means of three equal values: no rounding may look like an effect.
        let third = &[0.1; FEW][..];
        let none = welch(&[third, third, third], &[third, third]);
        assert_eq!((none.mean, none.verdict()), (Some(0.0), Verdict::Same));
    }
}
