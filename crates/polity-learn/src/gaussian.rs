//! Normal distributions of several dimensions, and which component of a mixture a point belongs to.

use crate::linear::{dot, forward, log_determinant};
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// A normal distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gaussian {
    /// The mean.
    pub mean: Vec<f64>,
    /// The lower Cholesky factor of the covariance, in row order.
    pub factor: Vec<f64>,
}

impl Gaussian {
    /// A distribution with independent entries.
    #[must_use]
    pub fn independent(mean: &[f64], deviations: &[f64]) -> Gaussian {
        let n = mean.len();
        let mut factor = vec![0.0; n * n];
        deviations.iter().enumerate().for_each(|(i, deviation)| factor[i * n + i] = *deviation);
        Gaussian { mean: mean.to_vec(), factor }
    }

    /// Returns the standardised vector of a point.
    ///
    /// ```
    /// use polity_learn::gaussian::Gaussian;
    ///
    /// let normal = Gaussian { mean: vec![1.0, 0.0], factor: vec![2.0, 0.0, 1.0, 0.5] };
    /// assert_eq!(normal.standardise(&[3.0, 2.0]), [1.0, 2.0]);
    /// ```
    #[must_use]
    pub fn standardise(&self, x: &[f64]) -> Vec<f64> {
        let mut z: Vec<f64> = x.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
        forward(&self.factor, &mut z);
        z
    }

    /// Draws a point.
    #[must_use]
    pub fn draw(&self, draws: &mut Draws) -> Vec<f64> {
        let n = self.mean.len();
        let z: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
        self.mean.iter().zip(self.factor.chunks(n)).map(|(m, row)| m + dot(row, &z)).collect()
    }

    /// Returns the logarithm of the density, without the constant that all distributions of as many dimensions have.
    fn log_density(&self, x: &[f64]) -> f64 {
        let z = self.standardise(x);
        -0.5 * (dot(&z, &z) + log_determinant(&self.factor, self.mean.len()))
    }
}

/// Returns the probability of each component of a mixture, given a point, and the logarithm of the mixture's density there, without the
/// constant that all mixtures of as many dimensions have. The components have weights that add up to 1.
///
/// ```
/// use polity_learn::gaussian::{Gaussian, posterior};
///
/// let at = |mean: f64| Gaussian::independent(&[mean], &[1.0]);
/// let (shares, _) = posterior(&[(0.25, at(-1.0)), (0.75, at(1.0))], &[0.0]);
/// assert!((shares[1] - 0.75).abs() < 1e-12);
/// ```
#[must_use]
pub fn posterior(components: &[(f64, Gaussian)], x: &[f64]) -> (Vec<f64>, f64) {
    let logs: Vec<f64> = components.iter().map(|(weight, one)| libm::log(*weight) + one.log_density(x)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut shares: Vec<f64> = logs.iter().map(|log| libm::exp(log - most)).collect();
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
    (shares, most + libm::log(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::Stream;

    #[test]
    fn what_is_drawn_has_the_mean_and_covariance() {
        let normal = Gaussian { mean: vec![1.0, -2.0], factor: vec![2.0, 0.0, 1.0, 0.5] };
        let mut draws = Draws::new(9, Stream::World, 0, 0);
        let drawn: Vec<Vec<f64>> = (0..20_000).map(|_| normal.draw(&mut draws)).collect();
        let mean = |of: &dyn Fn(&[f64]) -> f64| drawn.iter().map(|x| of(x)).sum::<f64>() / 20_000.0;
        assert!((mean(&|x| x[0]) - 1.0).abs() < 0.05 && (mean(&|x| x[1]) + 2.0).abs() < 0.05);
        assert!((mean(&|x| (x[0] - 1.0) * (x[1] + 2.0)) - 2.0).abs() < 0.1);
    }

    #[test]
    fn the_density_of_a_mixture_is_that_of_its_components() {
        let mixture = [
            (0.3, Gaussian { mean: vec![1.0, -2.0], factor: vec![2.0, 0.0, 1.0, 0.5] }),
            (0.7, Gaussian::independent(&[0.0, 1.0], &[0.5, 3.0])),
        ];
        let x = [0.4, -0.9];
        // The formula with the inverse of a 2 by 2 covariance, without the factor 1/(2π).
        let density = |mean: [f64; 2], [a, b, c]: [f64; 3]| {
            let ([u, v], determinant) = ([x[0] - mean[0], x[1] - mean[1]], a * c - b * b);
            (-(c * u * u - 2.0 * b * u * v + a * v * v) / determinant / 2.0).exp() / determinant.sqrt()
        };
        let one = 0.3 * density([1.0, -2.0], [4.0, 2.0, 1.25]);
        let other = 0.7 * density([0.0, 1.0], [0.25, 0.0, 9.0]);
        let (shares, log_density) = posterior(&mixture, &x);
        assert!((shares[0] - one / (one + other)).abs() < 1e-12);
        assert!((log_density - (one + other).ln()).abs() < 1e-12);
    }
}
