//! Gaussian mixtures that are learned in one pass, point by point (IGMN), with rank-one updates of precision matrices (FIGMN).
//!
//! After Pinto and Engel, "A Fast Incremental Gaussian Mixture Model" (PLoS ONE 2015) and "Scalable and Incremental Learning of Gaussian
//! Mixture Models" (2017). Each point changes every component by its share w of the point: with e the point less the mean,
//! the mean moves by w e, and the covariance becomes (1 - w) (C + w e e'), the exact recursion of weighted covariances. The precision
//! follows by the formula of Sherman and Morrison, the determinant by the matrix determinant lemma, each in a time of D^2. (The update
//! printed in the paper takes the deviation from the new mean, which is not positive definite where w is above 0.38.)

use crate::linear::{cholesky, dot, forward, log_determinant, solve};
use polity_base::rng::normal_quantile;
use serde::{Deserialize, Serialize};

/// How components are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// As precision matrices with rank-one updates: a time of D^2 a point and component.
    #[default]
    Precision,
    /// As covariance matrices, factored for every point: a time of D^3.
    Covariance,
}

/// How a mixture learns.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How components are kept.
    pub form: Form,
    /// Variance of a new component in each dimension. Its length is the number of dimensions D.
    pub variances: Vec<f64>,
    /// Probability with which a point of a known component is taken for a new one, 0 to 1; at 0 there is one component.
    pub novelty: f64,
    /// Maximum number of components.
    pub most: usize,
    /// A component is forgotten if it has less than `weight` after this many points; 0: never.
    pub age: u32,
    /// See `age`.
    pub weight: f64,
}

impl Settings {
    /// Returns the number of dimensions.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.variances.len()
    }

    /// Returns the squared distance from which a point is new: the quantile of chi-square, by Wilson and Hilferty's approximation.
    #[must_use]
    pub fn limit(&self) -> f64 {
        if self.novelty <= 0.0 {
            return f64::INFINITY;
        }
        if self.novelty >= 1.0 {
            return 0.0;
        }
        let d = self.dimensions() as f64;
        let root = 1.0 - 2.0 / (9.0 * d) + normal_quantile(1.0 - self.novelty) * (2.0 / (9.0 * d)).sqrt();
        d * root.max(0.0) * root.max(0.0) * root.max(0.0)
    }
}

/// A component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// The mean.
    pub mean: Vec<f64>,
    /// The precision or the covariance, in row order.
    pub matrix: Vec<f64>,
    /// Logarithm of the determinant of the covariance.
    pub log_determinant: f64,
    /// The sum of its shares of points.
    pub weight: f64,
    /// Points since it was made.
    pub age: u32,
}

/// A mixture that learns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mixture {
    /// Its components, oldest first.
    pub components: Vec<Component>,
    /// Multiplications and additions of matrix entries so far, counted where they are done.
    pub operations: u64,
}

const LOG_TAU: f64 = 1.837_877_066_409_345_3;

impl Mixture {
    /// Learns a point.
    pub fn learn(&mut self, settings: &Settings, point: &[f64]) {
        let distances: Vec<f64> = (0..self.components.len()).map(|k| self.distance(settings, k, point)).collect();
        let limit = settings.limit();
        if self.components.is_empty()
            || self.components.len() < settings.most && distances.iter().all(|distance| *distance >= limit)
        {
            self.create(settings, point);
            return;
        }
        let shares = self.shares(&distances);
        for (k, share) in shares.iter().enumerate() {
            self.update(settings, k, point, *share);
        }
        if settings.age > 0 && self.components.len() > 1 {
            self.components.retain(|c| c.age <= settings.age || c.weight >= settings.weight);
        }
    }

    fn create(&mut self, settings: &Settings, point: &[f64]) {
        let d = settings.dimensions();
        let mut matrix = vec![0.0; d * d];
        for (i, variance) in settings.variances.iter().enumerate() {
            matrix[i * d + i] = if settings.form == Form::Precision { 1.0 / variance } else { *variance };
        }
        let log_determinant = settings.variances.iter().map(|variance| libm::log(*variance)).sum();
        self.components.push(Component { mean: point.to_vec(), matrix, log_determinant, weight: 1.0, age: 1 });
    }

    /// Returns the squared distance of a point from a component, in its own scale.
    fn distance(&mut self, settings: &Settings, k: usize, point: &[f64]) -> f64 {
        let d = settings.dimensions();
        let component = &self.components[k];
        let mut error: Vec<f64> = point.iter().zip(&component.mean).map(|(x, m)| x - m).collect();
        match settings.form {
            Form::Precision => {
                self.operations += (d * d) as u64;
                component.matrix.chunks(d).zip(&error).map(|(row, e)| e * dot(row, &error)).sum()
            }
            Form::Covariance => {
                self.operations += (d * d * d / 6 + d * d / 2) as u64;
                let Some(lower) = cholesky(&component.matrix, d) else { return f64::INFINITY };
                forward(&lower, &mut error);
                dot(&error, &error)
            }
        }
    }

    /// Returns the shares of a point that components with these distances have.
    fn shares(&self, distances: &[f64]) -> Vec<f64> {
        let score = |(c, distance): (&Component, &f64)| libm::log(c.weight) - 0.5 * (c.log_determinant + distance);
        let scores: Vec<f64> = self.components.iter().zip(distances).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
        let total: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / total).collect()
    }

    fn update(&mut self, settings: &Settings, k: usize, point: &[f64], share: f64) {
        let d = settings.dimensions();
        let component = &mut self.components[k];
        component.age = component.age.saturating_add(1);
        component.weight += share;
        let w = share / component.weight;
        let error: Vec<f64> = point.iter().zip(&component.mean).map(|(x, m)| x - m).collect();
        component.mean.iter_mut().zip(&error).for_each(|(mean, e)| *mean += w * e);
        let keep = 1.0 - w;
        match settings.form {
            Form::Precision => {
                let image: Vec<f64> = component.matrix.chunks(d).map(|row| dot(row, &error)).collect();
                let along = 1.0 + w * dot(&error, &image);
                for (row, x) in component.matrix.chunks_mut(d).zip(&image) {
                    let step = w * x / along;
                    row.iter_mut().zip(&image).for_each(|(entry, y)| *entry = (*entry - step * y) / keep);
                }
                component.log_determinant += d as f64 * libm::log(keep) + libm::log(along);
                self.operations += 2 * (d * d) as u64;
            }
            Form::Covariance => {
                for (row, x) in component.matrix.chunks_mut(d).zip(&error) {
                    row.iter_mut().zip(&error).for_each(|(entry, y)| *entry = keep * (*entry + w * x * y));
                }
                let lower = cholesky(&component.matrix, d);
                component.log_determinant = lower.map_or(f64::INFINITY, |lower| log_determinant(&lower, d));
                self.operations += (d * d * d / 6 + d * d) as u64;
            }
        }
    }

    /// Returns the expected rest of a point whose first entries are known. `None` without components, or if a matrix is singular.
    #[must_use]
    pub fn expect(&self, settings: &Settings, known: &[f64]) -> Option<Vec<f64>> {
        let (d, n) = (settings.dimensions(), known.len());
        let rest = d - n;
        let mut distances = Vec::new();
        let mut scale = Vec::new();
        let mut guesses: Vec<Vec<f64>> = Vec::new();
        for component in &self.components {
            let error: Vec<f64> = known.iter().zip(&component.mean).map(|(x, m)| x - m).collect();
            let matrix = &component.matrix;
            let block = |from: usize, to: usize, columns: std::ops::Range<usize>| -> Vec<f64> {
                (from..to).flat_map(|i| matrix[i * d + columns.start..i * d + columns.end].to_vec()).collect()
            };
            // The rest's own block, and its block with what is known.
            let cross = block(n, d, 0..n);
            match settings.form {
                Form::Precision => {
                    let lower = cholesky(&block(n, d, n..d), rest)?;
                    let along: Vec<f64> = cross.chunks(n).map(|row| dot(row, &error)).collect();
                    let mut shift = along.clone();
                    solve(&lower, &mut shift);
                    let whole: f64 =
                        matrix.chunks(d).take(n).zip(&error).map(|(row, e)| e * dot(&row[..n], &error)).sum();
                    distances.push(whole - dot(&along, &shift));
                    scale.push(component.log_determinant + log_determinant(&lower, rest));
                    guesses.push(component.mean[n..].iter().zip(&shift).map(|(m, s)| m - s).collect());
                }
                Form::Covariance => {
                    let lower = cholesky(&block(0, n, 0..n), n)?;
                    let mut weights = error.clone();
                    solve(&lower, &mut weights);
                    distances.push(dot(&error, &weights));
                    scale.push(log_determinant(&lower, n));
                    guesses
                        .push(cross.chunks(n).zip(&component.mean[n..]).map(|(r, m)| m + dot(r, &weights)).collect());
                }
            }
        }
        let scores: Vec<f64> = (0..guesses.len())
            .map(|k| libm::log(self.components[k].weight) - 0.5 * (scale[k] + distances[k]))
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
        let total: f64 = parts.iter().sum();
        let entry = |i: usize| guesses.iter().zip(&parts).map(|(guess, part)| part * guess[i]).sum::<f64>() / total;
        (!guesses.is_empty()).then(|| (0..rest).map(entry).collect())
    }

    /// Returns the logarithm of the density at a point; minus infinity without components.
    pub fn log_density(&mut self, settings: &Settings, point: &[f64]) -> f64 {
        let total: f64 = self.components.iter().map(|component| component.weight).sum();
        let d = settings.dimensions() as f64;
        let scores: Vec<f64> = (0..self.components.len())
            .map(|k| {
                let distance = self.distance(settings, k, point);
                let component = &self.components[k];
                libm::log(component.weight / total) - 0.5 * (component.log_determinant + distance + d * LOG_TAU)
            })
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return most;
        }
        most + libm::log(scores.iter().map(|score| libm::exp(score - most)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_base::rng::{Draws, Stream};

    fn settings(form: Form, d: usize) -> Settings {
        Settings { form, variances: vec![0.5; d], novelty: 0.001, most: 5, age: 0, weight: 0.0 }
    }

    /// Points of three correlated clusters.
    fn points(n: usize, d: usize, draws: &mut Draws) -> Vec<Vec<f64>> {
        let one = |draws: &mut Draws| {
            let centre = 6.0 * draws.below(3) as f64;
            let common = draws.normal();
            (0..d).map(|i| centre * f64::from(u8::from(i == 0)) + 0.8 * common + 0.6 * draws.normal()).collect()
        };
        (0..n).map(|_| one(draws)).collect()
    }

    #[test]
    fn both_forms_are_the_same_mixture() {
        let mut draws = Draws::new(5, Stream::World, 0, 0);
        for d in 1..6 {
            let (fast, slow) = (settings(Form::Precision, d), settings(Form::Covariance, d));
            let (mut a, mut b) = (Mixture::default(), Mixture::default());
            for point in points(300, d, &mut draws) {
                let (x, y) = (a.log_density(&fast, &point), b.log_density(&slow, &point));
                assert!(x == y || (x - y).abs() < 1e-6, "{x} {y}");
                a.learn(&fast, &point);
                b.learn(&slow, &point);
                for n in 1..d {
                    let (x, y) = (a.expect(&fast, &point[..n]).unwrap(), b.expect(&slow, &point[..n]).unwrap());
                    assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-6), "{x:?} {y:?}");
                }
            }
            assert_eq!(a.components.len(), b.components.len());
            assert!(a.components.len() >= 2, "{}", a.components.len());
            for (x, y) in a.components.iter().zip(&b.components) {
                assert!((x.log_determinant - y.log_determinant).abs() < 1e-6);
                assert!(x.mean.iter().zip(&y.mean).all(|(x, y)| (x - y).abs() < 1e-8));
            }
        }
    }

    #[test]
    fn one_component_is_the_mean_and_covariance_of_all_points() {
        // The first point has the prior variance as its covariance, so the sum of squares starts with it.
        let mut draws = Draws::new(6, Stream::World, 0, 0);
        let one = Settings { novelty: 0.0, ..settings(Form::Covariance, 3) };
        let points = points(200, 3, &mut draws);
        let mut mixture = Mixture::default();
        points.iter().for_each(|point| mixture.learn(&one, point));
        let n = points.len() as f64;
        let mean: Vec<f64> = (0..3).map(|i| points.iter().map(|p| p[i]).sum::<f64>() / n).collect();
        let [component] = &mixture.components[..] else { panic!("one component") };
        for i in 0..3 {
            assert!((component.mean[i] - mean[i]).abs() < 1e-9);
            for j in 0..3 {
                let sum: f64 = points.iter().map(|p| (p[i] - mean[i]) * (p[j] - mean[j])).sum();
                let prior = if i == j { 0.5 } else { 0.0 };
                assert!((component.matrix[i * 3 + j] - (sum + prior) / n).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn what_is_expected_is_the_regression_of_one_gaussian() {
        // y = 2 x + noise, one component: the slope is cov / var.
        let mut draws = Draws::new(7, Stream::World, 0, 0);
        let one = Settings { novelty: 0.0, variances: vec![1e-6; 2], ..settings(Form::Precision, 2) };
        let mut mixture = Mixture::default();
        for _ in 0..3000 {
            let x = draws.normal();
            mixture.learn(&one, &[x, 2.0 * x + 1.0 + 0.1 * draws.normal()]);
        }
        let at = |x: f64| mixture.expect(&one, &[x]).unwrap()[0];
        assert!((at(0.0) - 1.0).abs() < 0.02 && (at(3.0) - 7.0).abs() < 0.05, "{} {}", at(0.0), at(3.0));
    }

    #[test]
    fn the_limit_is_the_quantile_of_chi_square() {
        // Published values: 0.95 of 10 degrees is 18.307, 0.99 of 2 is 9.210, 0.9 of 64 is 78.860.
        for (d, novelty, value) in [(10, 0.05, 18.307), (2, 0.01, 9.210), (64, 0.1, 78.860)] {
            let limit = Settings { novelty, ..settings(Form::Precision, d) }.limit();
            assert!((limit / value - 1.0).abs() < 0.01, "{limit} {value}");
        }
    }
}
