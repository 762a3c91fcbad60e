//! Approximate Bayesian computation: points whose runs come near to data are a sample of the posterior distribution of the parameters, if these
//! are uniform in their ranges before. The nearer, the better the approximation.

use super::Replay;
use polity_kernel::points::random;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Search;

/// The share of a population that is kept.
const KEPT: f64 = 0.5;
/// The search ends when no more than this share of the new points are nearer than the farthest that was kept.
const FEW: f64 = 0.05;
/// Maximum draws of a point within the ranges.
const TRIES: u32 = 10_000;

/// The nearest of some points, by loss and then by order.
fn nearest(mut points: Vec<(f64, usize)>, n: usize) -> Vec<(f64, usize)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    points.truncate(n);
    points.retain(|(loss, _)| loss.is_finite());
    points
}

/// Keeps a share of independent points (Pritchard et al. 1999).
pub(super) fn rejection(
    replay: &mut Replay<'_>,
    search: &Search,
    dimensions: usize,
    posterior: &mut Vec<(usize, f64)>,
) -> Option<()> {
    let n = search.evaluations as usize;
    let losses = replay.ask(&random(n, dimensions, search.seed))?;
    let kept = ((n as f64 * search.keep).round() as usize).max(1);
    let kept = nearest(losses.into_iter().zip(0..).collect(), kept);
    *posterior = kept.into_iter().map(|(_, at)| (at, 1.0)).collect();
    Some(())
}

/// Draws populations around the nearest half of the points so far, weighted so that they stay a sample of the posterior distribution
/// (Lenormand, Jabot and Deffuant: "Adaptive approximate Bayesian computation for complex models", 2013).
pub(super) fn sequential(
    replay: &mut Replay<'_>,
    search: &Search,
    dimensions: usize,
    posterior: &mut Vec<(usize, f64)>,
) -> Option<()> {
    let n = search.population as usize;
    let half = ((n as f64 * KEPT).round() as usize).max(2);
    let mut points = random(n, dimensions, search.seed);
    let mut weights = vec![1.0; n];
    let losses = replay.ask(&points)?;
    let mut kept = nearest(losses.into_iter().zip(0..).collect(), half);
    for generation in 1.. {
        *posterior = kept.iter().map(|(_, at)| (*at, weights[*at])).collect();
        let far = kept.last()?.0;
        let kernel = Kernel::around(&points, posterior);
        let mut draws = Draws::new(search.seed, Stream::Design, generation, 4);
        let new: Vec<Vec<f64>> = (0..n - half).map(|_| kernel.draw(&mut draws)).collect::<Option<_>>()?;
        let losses = replay.ask(&new)?;
        let first = points.len();
        weights.extend(new.iter().map(|point| 1.0 / kernel.density(point)));
        points.extend(new);
        let nearer = losses.iter().filter(|loss| **loss < far).count();
        kept.extend(losses.into_iter().zip(first..));
        kept = nearest(kept, half);
        *posterior = kept.iter().map(|(_, at)| (*at, weights[*at])).collect();
        if (nearer as f64) <= FEW * (n - half) as f64 {
            break;
        }
    }
    Some(())
}

/// A mixture of normal distributions around weighted points, with twice their variance in each dimension.
struct Kernel<'a> {
    centres: Vec<&'a [f64]>,
    weights: Vec<f64>,
    deviations: Vec<f64>,
}

impl<'a> Kernel<'a> {
    fn around(points: &'a [Vec<f64>], kept: &[(usize, f64)]) -> Kernel<'a> {
        let all: f64 = kept.iter().map(|(_, weight)| weight).sum();
        let weights: Vec<f64> = kept.iter().map(|(_, weight)| weight / all).collect();
        let centres: Vec<&[f64]> = kept.iter().map(|(at, _)| points[*at].as_slice()).collect();
        let dimensions = centres.first().map_or(0, |centre| centre.len());
        let deviation = |i: usize| {
            let mean: f64 = centres.iter().zip(&weights).map(|(centre, weight)| weight * centre[i]).sum();
            let variance: f64 = centres
                .iter()
                .zip(&weights)
                .map(|(centre, weight)| weight * (centre[i] - mean) * (centre[i] - mean))
                .sum();
            (2.0 * variance).sqrt().max(1e-9)
        };
        Kernel { deviations: (0..dimensions).map(deviation).collect(), centres, weights }
    }

    /// A point within the cube; `None` if none is found.
    fn draw(&self, draws: &mut Draws) -> Option<Vec<f64>> {
        for _ in 0..TRIES {
            let centre = self.centres[draws.weighted(&self.weights)?];
            let point: Vec<f64> =
                centre.iter().zip(&self.deviations).map(|(x, deviation)| x + deviation * draws.normal()).collect();
            if point.iter().all(|x| (0.0..=1.0).contains(x)) {
                return Some(point);
            }
        }
        None
    }

    /// The density at a point, up to a constant.
    fn density(&self, point: &[f64]) -> f64 {
        let of = |centre: &&[f64]| -> f64 {
            let squares = centre.iter().zip(point).zip(&self.deviations).map(|((c, x), deviation)| {
                let z = (x - c) / deviation;
                z * z
            });
            libm::exp(-squares.sum::<f64>() / 2.0)
        };
        let mixture: f64 = self.centres.iter().zip(&self.weights).map(|(centre, weight)| weight * of(centre)).sum();
        let norm: f64 =
            self.deviations.iter().map(|deviation| deviation * (2.0 * std::f64::consts::PI).sqrt()).product();
        mixture / norm
    }
}
