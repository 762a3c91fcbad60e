//! Gaussian mixtures with full covariances, fitted to all points at once by expectation maximisation (Dempster, Laird and Rubin 1977).
//!
//! Beginning, end and smallest variances are those of scikit-learn's `GaussianMixture`: k-means, a gain of less than 0.001 in the mean
//! logarithm of the density or 100 rounds, and 10⁻⁶ on the diagonal of each covariance.

use crate::gaussian::{Gaussian, posterior};
use crate::linear::cholesky;
use crate::spectral::k_means;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// The smallest gain of a round, the most rounds, and what is added to variances.
const GAIN: f64 = 1e-3;
const ROUNDS: usize = 100;
const RIDGE: f64 = 1e-6;

/// A mixture that was fitted to points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mixture {
    /// Its components, with weights that add up to 1.
    pub components: Vec<(f64, Gaussian)>,
    /// The mean logarithm of its density at the points.
    pub log_density: f64,
}

impl Mixture {
    /// Fits a mixture of so many components to points, one after another in a slice. `None` if there are fewer points than components.
    ///
    /// ```
    /// use polity_base::rng::{Draws, Stream};
    /// use polity_learn::mixture::Mixture;
    ///
    /// let points = [0.0, 0.1, 0.2, 5.0, 5.1, 5.2];
    /// let fitted = Mixture::fit(&points, 1, 2, &mut Draws::new(1, Stream::World, 0, 0)).unwrap();
    /// let mut means: Vec<f64> = fitted.components.iter().map(|(_, one)| one.mean[0]).collect();
    /// means.sort_by(f64::total_cmp);
    /// assert!((means[0] - 0.1).abs() < 1e-6 && (means[1] - 5.1).abs() < 1e-6);
    /// ```
    #[must_use]
    pub fn fit(points: &[f64], dimensions: usize, components: usize, draws: &mut Draws) -> Option<Self> {
        let n = points.len() / dimensions.max(1);
        if components == 0 || n < components {
            return None;
        }
        let labels = k_means(points, dimensions, components, draws);
        let mut responsibilities = vec![0.0; n * components];
        labels.iter().enumerate().for_each(|(i, label)| responsibilities[i * components + label] = 1.0);
        let mut fitted = Mixture::maximise(points, dimensions, &responsibilities)?;
        let mut before = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            fitted.log_density = fitted.expect(points, dimensions, &mut responsibilities);
            if (fitted.log_density - before).abs() < GAIN {
                break;
            }
            before = fitted.log_density;
            fitted = Mixture { log_density: before, ..Mixture::maximise(points, dimensions, &responsibilities)? };
        }
        Some(fitted)
    }

    /// The M step: returns the components whose density is highest, given the probability of each component for each point. `None` if the
    /// points of a component have no covariance that can be inverted.
    fn maximise(points: &[f64], d: usize, responsibilities: &[f64]) -> Option<Self> {
        let n = points.len() / d;
        let k = responsibilities.len() / n;
        let mut components = Vec::with_capacity(k);
        for one in 0..k {
            let each = || points.chunks(d).zip(responsibilities.iter().skip(one).step_by(k));
            let all = each().map(|(_, share)| share).sum::<f64>() + 10.0 * f64::EPSILON;
            let mut mean = vec![0.0; d];
            for (point, share) in each() {
                mean.iter_mut().zip(point).for_each(|(sum, x)| *sum += share * x / all);
            }
            let mut covariance = vec![0.0; d * d];
            for (point, share) in each() {
                for i in 0..d {
                    for j in 0..d {
                        covariance[i * d + j] += share * (point[i] - mean[i]) * (point[j] - mean[j]) / all;
                    }
                }
            }
            (0..d).for_each(|i| covariance[i * d + i] += RIDGE);
            components.push((all / n as f64, Gaussian { mean, factor: cholesky(&covariance, d)? }));
        }
        Some(Mixture { components, log_density: f64::NEG_INFINITY })
    }

    /// The E step: writes the probability of each component for each point, and returns the mean logarithm of the density.
    fn expect(&self, points: &[f64], d: usize, responsibilities: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (point, row) in points.chunks(d).zip(responsibilities.chunks_mut(self.components.len())) {
            let (shares, log_density) = posterior(&self.components, point);
            row.copy_from_slice(&shares);
            sum += log_density;
        }
        sum / (points.len() / d) as f64 - d as f64 * libm::log(TAU) / 2.0
    }

    /// Returns Akaike's criterion for the `n` points that it was fitted to: the lower, the better.
    #[must_use]
    pub fn aic(&self, n: usize) -> f64 {
        let (k, d) =
            (self.components.len() as f64, self.components.first().map_or(0, |(_, one)| one.mean.len()) as f64);
        let numbers = k * (d * (d + 1.0) / 2.0 + d) + k - 1.0;
        2.0 * numbers - 2.0 * self.log_density * n as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    /// Points around three corners, stretched in different directions.
    fn points(n: usize) -> Vec<f64> {
        let mut draws = Draws::new(3, Stream::World, 0, 0);
        let corner = |i: usize| [[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]][i % 3];
        (0..n)
            .flat_map(|i| {
                let (along, across) = (draws.normal(), draws.normal());
                let [x, y] = corner(i);
                [x + along, y + 0.5 * along + across]
            })
            .collect()
    }

    #[test]
    fn components_are_found_and_no_round_makes_the_density_lower() {
        let points = points(3_000);
        let mut fitted = Mixture::fit(&points, 2, 3, &mut Draws::new(1, Stream::World, 0, 0)).unwrap();
        fitted.components.sort_by(|(_, a), (_, b)| (a.mean[0] - a.mean[1]).total_cmp(&(b.mean[0] - b.mean[1])));
        for ((weight, one), [x, y]) in fitted.components.iter().zip([[0.0, 6.0], [0.0, 0.0], [6.0, 0.0]]) {
            assert!((one.mean[0] - x).abs() < 0.2 && (one.mean[1] - y).abs() < 0.2, "{one:?}");
            assert!((weight - 1.0 / 3.0).abs() < 0.02);
            // The covariance is 1, 1/2; 1/2, 5/4.
            for (found, exact) in one.factor.iter().zip([1.0, 0.0, 0.5, 1.0]) {
                assert!((found - exact).abs() < 0.1, "{one:?}");
            }
        }
        let mut responsibilities = vec![0.0; 3_000 * 3];
        let (mut now, mut before) = (fitted, f64::NEG_INFINITY);
        for _ in 0..5 {
            let found = now.expect(&points, 2, &mut responsibilities);
            assert!(found >= before - 1e-12);
            before = found;
            now = Mixture::maximise(&points, 2, &responsibilities).unwrap();
        }
    }

    #[test]
    fn the_criterion_prefers_as_many_components_as_there_are() {
        let points = points(600);
        let aic = |k| Mixture::fit(&points, 2, k, &mut Draws::new(1, Stream::World, 0, 0)).unwrap().aic(600);
        assert!(aic(3) < aic(1) && aic(3) < aic(2));
        assert!(Mixture::fit(&points[..4], 2, 3, &mut Draws::new(1, Stream::World, 0, 0)).is_none());
    }
}
