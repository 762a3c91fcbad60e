//! How many seeds an experiment needs.

use crate::{CONFIDENCE, FEW, mean, student_quantile};

/// The probability with which an experiment of [`seeds_needed`] seeds finds the effect.
pub const POWER: f64 = 0.8;
/// Maximum number of seeds that is computed.
const MOST: u32 = 1_000_000;

/// Returns the standard deviation of a sample (divided by n - 1); `None` with fewer than two values.
/// ```
/// // R: sd(c(2, 4, 4, 5))
/// assert!((polity_stats::replicates::deviation(&[2.0, 4.0, 4.0, 5.0]).unwrap() - 1.258306).abs() < 1e-6);
/// ```
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let middle = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|x| (x - middle) * (x - middle)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the number of seeds with which the 95 % interval of a mean excludes 0 with probability [`POWER`], if the true mean is `effect` and
/// one seed deviates from it by `deviation` (a standard deviation, in the same unit): the smallest n that is at least
/// ((t(0.975, n - 1) + t(0.8, n - 1)) deviation / effect)^2, with quantiles of Student's distribution (Guenther, "Sample Size Formulas for
/// Normal Theory t Tests", The American Statistician 35, 1981). It is at least [`FEW`], since fewer seeds have no verdict. `None` without
/// an effect, and beyond a million.
/// ```
/// use polity_stats::replicates::seeds_needed;
/// // G*Power and R (power.t.test, paired): 15, 34 and 199 pairs for effects of 0.8, 0.5 and 0.2 standard deviations.
/// assert_eq!([0.8, 0.5, 0.2].map(|effect| seeds_needed(effect, 1.0)), [Some(15), Some(34), Some(199)]);
/// ```
#[must_use]
pub fn seeds_needed(effect: f64, deviation: f64) -> Option<u32> {
    let ratio = deviation / effect.abs();
    if effect == 0.0 || !ratio.is_finite() {
        return None;
    }
    let enough = |n: u32| {
        let freedom = f64::from(n) - 1.0;
        let t = student_quantile((1.0 + CONFIDENCE) / 2.0, freedom) + student_quantile(POWER, freedom);
        f64::from(n) >= (t * ratio) * (t * ratio)
    };
    // What is needed falls as n grows, so all numbers from the smallest on are enough.
    let (mut low, mut high) = (1, FEW as u32);
    while !enough(high) {
        if high >= MOST {
            return None;
        }
        (low, high) = (high, high.saturating_mul(2).min(MOST));
    }
    while high - low > 1 && high > FEW as u32 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student;
    use polity_kernel::rng::{Draws, Stream};

    #[test]
    fn without_an_effect_no_number_of_seeds_is_enough() {
        assert_eq!(seeds_needed(0.0, 1.0), None);
        assert_eq!(seeds_needed(f64::NAN, 1.0), None);
        assert_eq!(seeds_needed(1e-9, 1.0), None, "more than a million");
        assert_eq!(seeds_needed(-0.5, 1.0), seeds_needed(0.5, 1.0));
        assert_eq!((seeds_needed(3.0, 0.0), seeds_needed(100.0, 1.0)), (Some(6), Some(6)));
        assert_eq!((deviation(&[1.0]), deviation(&[]), deviation(&[2.0, 2.0])), (None, None, Some(0.0)));
    }

    #[test]
    fn so_many_seeds_find_the_effect_as_often_as_promised() {
        for effect in [0.5, 0.8] {
            let n = seeds_needed(effect, 1.0).unwrap();
            let found = |trial: &u32| {
                let mut draws = Draws::new(7, Stream::Driver, n, *trial);
                let values: Vec<f64> = (0..n).map(|_| effect + draws.normal()).collect();
                student(&values).low.unwrap() > 0.0
            };
            let share = (0..4_000).filter(found).count() as f64 / 4_000.0;
            // The standard error is 0.006.
            assert!((POWER - 0.02..POWER + 0.04).contains(&share), "{effect}: {n} seeds find it in {share}");
        }
    }
}
