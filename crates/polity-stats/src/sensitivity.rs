//! Sobol's sensitivity indices: the shares of a variance that factors account for, each alone and with all its interactions.
//!
//! They need the values of a model at the points of Saltelli's design: two independent samples of the factors, and for each factor the
//! first sample with this factor's values from the second (Saltelli et al.: "Variance based sensitivity analysis of model output", 2010).

use crate::{CONFIDENCE, Estimate, mean, quantile};
use polity_kernel::rng::{Draws, Stream};

/// Resamples of the points for an interval.
const RESAMPLES: u32 = 1_000;

/// The indices of a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Indices {
    /// The share of the variance that the factor accounts for alone: by how much the variance falls, on average, if it is fixed.
    pub first: Estimate,
    /// The same with all its interactions: the share that is left, on average, if all other factors are fixed.
    pub total: Estimate,
}

/// Returns the indices of every factor. `first` and `second` are the values at the points of the two samples; `mixed` has, for each factor,
/// those at the points of the first sample with this factor's values from the second. First-order indices are estimated as Saltelli et al.
/// (2010, table 2b) do, of values less their mean; total ones as Jansen (1999). Intervals are percentile bootstraps over the points. `None`
/// if values do not vary, or if there are fewer than two points or unequal numbers of them.
#[must_use]
pub fn sobol_indices(first: &[f64], second: &[f64], mixed: &[Vec<f64>]) -> Option<Vec<Indices>> {
    let n = first.len();
    if n < 2 || second.len() != n || mixed.iter().any(|values| values.len() != n) {
        return None;
    }
    let whole: Vec<usize> = (0..n).collect();
    let resample = |b: u32| -> Vec<usize> {
        let mut draws = Draws::new(0, Stream::Bootstrap, n as u32, b);
        whole.iter().map(|_| draws.below(n as u64) as usize).collect()
    };
    let resamples: Vec<Vec<usize>> = (0..RESAMPLES).map(resample).collect();
    let of_factor = |mixed: &Vec<f64>| {
        let (first_order, total) = indices(first, second, mixed, &whole)?;
        let drawn: Vec<(f64, f64)> = resamples.iter().filter_map(|rows| indices(first, second, mixed, rows)).collect();
        let (firsts, totals) = drawn.into_iter().unzip();
        Some(Indices { first: estimate(first_order, firsts, n), total: estimate(total, totals, n) })
    };
    mixed.iter().map(of_factor).collect()
}

fn estimate(value: f64, mut drawn: Vec<f64>, n: usize) -> Estimate {
    drawn.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Estimate { mean: Some(value), low: quantile(&drawn, tail), high: quantile(&drawn, 1.0 - tail), n }
}

/// The first-order and the total index over some rows; `None` if the values do not vary.
fn indices(first: &[f64], second: &[f64], mixed: &[f64], rows: &[usize]) -> Option<(f64, f64)> {
    let both: Vec<f64> = rows.iter().flat_map(|row| [first[*row], second[*row]]).collect();
    let middle = mean(&both)?;
    let n = rows.len() as f64;
    let variance = both.iter().map(|x| (x - middle) * (x - middle)).sum::<f64>() / both.len() as f64;
    let alone = rows.iter().map(|row| (second[*row] - middle) * (mixed[*row] - first[*row])).sum::<f64>() / n;
    let squares = rows.iter().map(|row| (first[*row] - mixed[*row]) * (first[*row] - mixed[*row])).sum::<f64>() / n;
    (variance > 0.0).then(|| (alone / variance, squares / 2.0 / variance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::scenario::Sample;
    use std::f64::consts::PI;

    /// Values of a model at the points of Saltelli's design of three factors.
    fn found(n: u32, model: impl Fn(&[f64]) -> f64) -> Option<Vec<Indices>> {
        let points = Sample::Saltelli(n).draw(3, 5);
        let values: Vec<f64> = points.iter().map(|point| model(point)).collect();
        let parts: Vec<Vec<f64>> = values.chunks(n as usize).map(<[f64]>::to_vec).collect();
        sobol_indices(&parts[0], &parts[1], &parts[2..])
    }

    #[test]
    fn the_indices_of_the_ishigami_function_are_known() {
        // Ishigami and Homma 1990, with a = 7 and b = 0.1; the variances are integrals in closed form.
        let (a, b) = (7.0, 0.1);
        let ishigami = |point: &[f64]| {
            let x: Vec<f64> = point.iter().map(|u| (2.0 * u - 1.0) * PI).collect();
            x[0].sin() + a * x[1].sin().powi(2) + b * x[2].powi(4) * x[0].sin()
        };
        let first = 0.5 * (1.0 + b * PI.powi(4) / 5.0).powi(2);
        let (second, both) = (a * a / 8.0, b * b * PI.powi(8) * 8.0 / 225.0);
        let all = first + second + both;
        let known = [(first / all, (first + both) / all), (second / all, second / all), (0.0, both / all)];
        let found = found(4096, ishigami).unwrap();
        for (i, (found, (first, total))) in found.iter().zip(known).enumerate() {
            assert!((found.first.mean.unwrap() - first).abs() < 0.01, "first order of {i}: {found:?}, {first}");
            assert!((found.total.mean.unwrap() - total).abs() < 0.01, "total of {i}: {found:?}, {total}");
            for (of, truth) in [(found.first, first), (found.total, total)] {
                assert!(of.low.unwrap() - 1e-9 <= truth && truth <= of.high.unwrap() + 1e-9, "{of:?} {truth}");
                assert!(of.high.unwrap() - of.low.unwrap() < 0.15, "{of:?}");
            }
        }
    }

    #[test]
    fn a_sum_has_no_interactions_and_a_product_little_else() {
        let sum = found(1024, |x| 3.0 * x[0] + x[1]).unwrap();
        for (found, share) in sum.iter().zip([0.9, 0.1, 0.0]) {
            assert!((found.first.mean.unwrap() - share).abs() < 0.03, "{found:?}");
            assert!((found.total.mean.unwrap() - share).abs() < 0.03, "{found:?}");
        }
        let product = found(1024, |x| (x[0] - 0.5) * (x[1] - 0.5)).unwrap();
        assert!(product[0].first.mean.unwrap().abs() < 0.02 && product[0].total.mean.unwrap() > 0.95, "{product:?}");
        assert_eq!(product[2].total.mean, Some(0.0));
    }

    #[test]
    fn what_does_not_vary_has_no_indices() {
        assert_eq!(found(64, |_| 2.0), None);
        assert_eq!(sobol_indices(&[1.0], &[2.0], &[vec![1.0]]), None);
        assert_eq!(sobol_indices(&[1.0, 2.0], &[2.0, 1.0], &[vec![1.0]]), None);
    }
}
