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
    /// How it follows points whose distribution changes.
    pub drift: Drift,
}

/// How a mixture follows points whose distribution changes, and what it expects where it has seen none. By default neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drift {
    /// The first so many entries of a point say to which components it belongs and whether it is new; 0: all entries.
    pub known: usize,
    /// The maximum weight of a component; beyond it old points fade. 0: no maximum.
    pub memory: f64,
    /// Share of the first variances below which fading does not take the variances; needed with `memory`.
    pub floor: f64,
    /// Weight of a background of density 1 everywhere that [`Mixture::expect`] adds. Its rest is 0.
    pub background: f64,
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
        let d = if self.drift.known > 0 { self.drift.known } else { self.dimensions() } as f64;
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

/// What a component says of a point whose first entries are known.
struct Marginal {
    /// Squared distance of the known entries.
    distance: f64,
    /// Logarithm of the determinant of their covariance.
    log_determinant: f64,
    /// The expected rest.
    rest: Vec<f64>,
}

impl Component {
    /// Adds `w` times the square of a vector to the covariance, and multiplies it by `keep`; for precisions. Returns the logarithm of the factor by
    /// which the sum makes the determinant larger.
    fn spread(&mut self, error: &[f64], w: f64, keep: f64) -> f64 {
        let d = error.len();
        let image: Vec<f64> = self.matrix.chunks(d).map(|row| dot(row, error)).collect();
        let along = 1.0 + w * dot(error, &image);
        for (row, x) in self.matrix.chunks_mut(d).zip(&image) {
            let step = w * x / along;
            row.iter_mut().zip(&image).for_each(|(entry, y)| *entry = (*entry - step * y) / keep);
        }
        libm::log(along)
    }

    fn marginal(&self, settings: &Settings, known: &[f64]) -> Option<Marginal> {
        let (d, n) = (settings.dimensions(), known.len());
        let rest = d - n;
        let error: Vec<f64> = known.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
        let block = |from: usize, to: usize, columns: std::ops::Range<usize>| -> Vec<f64> {
            (from..to).flat_map(|i| self.matrix[i * d + columns.start..i * d + columns.end].to_vec()).collect()
        };
        // The rest's own block, and its block with what is known.
        let cross = block(n, d, 0..n);
        Some(match settings.form {
            Form::Precision => {
                let lower = cholesky(&block(n, d, n..d), rest)?;
                let along: Vec<f64> = cross.chunks(n).map(|row| dot(row, &error)).collect();
                let mut shift = along.clone();
                solve(&lower, &mut shift);
                let whole: f64 =
                    self.matrix.chunks(d).take(n).zip(&error).map(|(row, e)| e * dot(&row[..n], &error)).sum();
                Marginal {
                    distance: whole - dot(&along, &shift),
                    log_determinant: self.log_determinant + log_determinant(&lower, rest),
                    rest: self.mean[n..].iter().zip(&shift).map(|(m, s)| m - s).collect(),
                }
            }
            Form::Covariance => {
                let lower = cholesky(&block(0, n, 0..n), n)?;
                let mut weights = error.clone();
                solve(&lower, &mut weights);
                Marginal {
                    distance: dot(&error, &weights),
                    log_determinant: log_determinant(&lower, n),
                    rest: cross.chunks(n).zip(&self.mean[n..]).map(|(r, m)| m + dot(r, &weights)).collect(),
                }
            }
        })
    }
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
        let judged: Vec<(f64, f64)> = (0..self.components.len()).map(|k| self.judge(settings, k, point)).collect();
        let (distances, scales): (Vec<f64>, Vec<f64>) = judged.into_iter().unzip();
        let limit = settings.limit();
        if self.components.is_empty()
            || self.components.len() < settings.most && distances.iter().all(|distance| *distance >= limit)
        {
            self.create(settings, point);
            return;
        }
        let shares = self.shares(&distances, &scales);
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

    /// Returns the squared distance of a point from a component, over the entries that say where it belongs, and the logarithm of the
    /// determinant of their covariance.
    fn judge(&mut self, settings: &Settings, k: usize, point: &[f64]) -> (f64, f64) {
        let n = settings.drift.known;
        if n == 0 || n >= point.len() {
            return (self.distance(settings, k, point), self.components[k].log_determinant);
        }
        self.operations += (n * settings.dimensions()) as u64;
        let marginal = self.components[k].marginal(settings, &point[..n]);
        marginal.map_or((f64::INFINITY, 0.0), |marginal| (marginal.distance, marginal.log_determinant))
    }

    /// Returns the shares of a point that components with these distances and determinants have.
    fn shares(&self, distances: &[f64], scales: &[f64]) -> Vec<f64> {
        let score = |(c, (distance, scale)): (&Component, (&f64, &f64))| libm::log(c.weight) - 0.5 * (scale + distance);
        let scores: Vec<f64> = self.components.iter().zip(distances.iter().zip(scales)).map(score).collect();
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
        let Drift { memory, floor, .. } = settings.drift;
        if memory > 0.0 {
            component.weight = component.weight.min(memory);
        }
        let error: Vec<f64> = point.iter().zip(&component.mean).map(|(x, m)| x - m).collect();
        component.mean.iter_mut().zip(&error).for_each(|(mean, e)| *mean += w * e);
        let keep = 1.0 - w;
        match settings.form {
            Form::Precision => {
                let larger = component.spread(&error, w, keep);
                component.log_determinant += d as f64 * libm::log(keep) + larger;
                self.operations += 2 * (d * d) as u64;
                if floor > 0.0 {
                    // One variance in turn, for all of them.
                    let turn = component.age as usize % d;
                    let mut unit = vec![0.0; d];
                    unit[turn] = 1.0;
                    let larger = component.spread(&unit, w * d as f64 * floor * settings.variances[turn], 1.0);
                    component.log_determinant += larger;
                    self.operations += 2 * (d * d) as u64;
                }
                if memory > 0.0 {
                    // Rounding makes the matrix a little asymmetric, and what fades out of it would make that part grow without end.
                    for i in 0..d {
                        for j in 0..i {
                            component.matrix[j * d + i] = component.matrix[i * d + j];
                        }
                    }
                }
            }
            Form::Covariance => {
                for (row, x) in component.matrix.chunks_mut(d).zip(&error) {
                    row.iter_mut().zip(&error).for_each(|(entry, y)| *entry = keep * (*entry + w * x * y));
                }
                if floor > 0.0 {
                    let turn = component.age as usize % d;
                    component.matrix[turn * d + turn] += w * d as f64 * floor * settings.variances[turn];
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
        let marginals: Vec<Marginal> =
            self.components.iter().map(|component| component.marginal(settings, known)).collect::<Option<_>>()?;
        let mut scores: Vec<f64> = self
            .components
            .iter()
            .zip(&marginals)
            .map(|(component, m)| libm::log(component.weight) - 0.5 * (m.log_determinant + m.distance))
            .collect();
        if settings.drift.background > 0.0 {
            scores.push(libm::log(settings.drift.background) + 0.5 * known.len() as f64 * LOG_TAU);
        }
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> = scores.iter().map(|score| libm::exp(score - most)).collect();
        let total: f64 = parts.iter().sum();
        let entry = |i: usize| marginals.iter().zip(&parts).map(|(m, part)| part * m.rest[i]).sum::<f64>() / total;
        (!marginals.is_empty()).then(|| (0..settings.dimensions() - known.len()).map(entry).collect())
    }

    /// Returns the share of the way from what is expected at a point to the point that its learning goes, roughly: the sum over components
    /// of their share of the point times the step of their mean. 0 without components.
    #[must_use]
    pub fn step(&self, settings: &Settings, known: &[f64]) -> f64 {
        let judged = |component: &Component| {
            let marginal = component.marginal(settings, known);
            marginal.map_or((f64::INFINITY, 0.0), |marginal| (marginal.distance, marginal.log_determinant))
        };
        let (distances, scales): (Vec<f64>, Vec<f64>) = self.components.iter().map(judged).unzip();
        let shares = self.shares(&distances, &scales);
        shares.iter().zip(&self.components).map(|(share, component)| share * share / (component.weight + share)).sum()
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
        Settings {
            form,
            variances: vec![0.5; d],
            novelty: 0.001,
            most: 5,
            age: 0,
            weight: 0.0,
            drift: Drift::default(),
        }
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

    #[test]
    fn known_entries_alone_say_where_a_point_belongs_in_both_forms() {
        // With drift, both forms are still the same mixture, and the rest of a point says nothing about its shares.
        let drift = Drift { known: 2, memory: 40.0, floor: 0.1, background: 2.0 };
        let [fast, slow] =
            [Form::Precision, Form::Covariance].map(|form| Settings { drift: drift.clone(), ..settings(form, 4) });
        let mut draws = Draws::new(8, Stream::World, 0, 0);
        let (mut a, mut b) = (Mixture::default(), Mixture::default());
        for point in points(600, 4, &mut draws) {
            a.learn(&fast, &point);
            b.learn(&slow, &point);
            let (x, y) = (a.expect(&fast, &point[..2]).unwrap(), b.expect(&slow, &point[..2]).unwrap());
            assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-6), "{x:?} {y:?}");
            assert!((a.step(&fast, &point[..2]) - b.step(&slow, &point[..2])).abs() < 1e-6);
        }
        assert_eq!(a.components.len(), b.components.len());
        assert!(a.components.iter().all(|component| component.weight <= 40.0));
        let judged = |mixture: &mut Mixture, rest: f64| mixture.judge(&fast, 0, &[0.3, 0.2, rest, rest]);
        assert_eq!(judged(&mut a, 0.0), judged(&mut a, 50.0));
    }

    #[test]
    fn memory_follows_a_mean_that_jumps_and_the_floor_keeps_variances() {
        let drift = Drift { memory: 20.0, floor: 0.2, ..Drift::default() };
        let one = Settings { novelty: 0.0, drift, ..settings(Form::Precision, 2) };
        let mut mixture = Mixture::default();
        (0..2_000).for_each(|_| mixture.learn(&one, &[0.0, 0.0]));
        (0..200).for_each(|_| mixture.learn(&one, &[1.0, 1.0]));
        assert!((mixture.components[0].mean[0] - 1.0).abs() < 0.01);
        // The same point again and again: what is left of the variance 0.5 is what the floor adds, 0.2 of it.
        (0..20_000).for_each(|_| mixture.learn(&one, &[1.0, 1.0]));
        let lower = cholesky(&mixture.components[0].matrix, 2).unwrap();
        let mut column = vec![1.0, 0.0];
        solve(&lower, &mut column);
        assert!((column[0] / 0.1 - 1.0).abs() < 0.1, "{column:?}");
    }
}
