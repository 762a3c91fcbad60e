//! The evolution strategy CMA-ES (Hansen: "The CMA evolution strategy: a tutorial", 2016), within the unit cube.

use super::Replay;
use polity_kernel::rng::{Draws, Stream};

/// The standard deviation at the start.
const START: f64 = 0.25;
/// The search ends when the standard deviation is so small in every direction.
const CLOSE: f64 = 1e-5;

type Matrix = Vec<Vec<f64>>;

/// Searches from the middle of the cube on.
pub(super) fn search(replay: &mut Replay<'_>, dimensions: usize, seed: u64) -> Option<()> {
    let n = dimensions as f64;
    // Every search begins with one point.
    replay.ask(&[vec![0.5; dimensions]])?;
    let lambda = 4 + (3.0 * libm::log(n)).floor() as usize;
    let mu = lambda / 2;
    let raw: Vec<f64> = (0..mu).map(|i| libm::log((lambda as f64 + 1.0) / 2.0) - libm::log(i as f64 + 1.0)).collect();
    let all: f64 = raw.iter().sum();
    let weights: Vec<f64> = raw.iter().map(|weight| weight / all).collect();
    let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
    let c_sigma = (effective + 2.0) / (n + effective + 5.0);
    let damping = 1.0 + 2.0 * (((effective - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma;
    let c_path = (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n);
    let c_one = 2.0 / ((n + 1.3) * (n + 1.3) + effective);
    let c_mu = (1.0 - c_one).min(2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0) * (n + 2.0) + effective));
    let expected = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
    let (mut centre, mut sigma) = (vec![0.5; dimensions], START);
    let (mut path_sigma, mut path) = (vec![0.0; dimensions], vec![0.0; dimensions]);
    let mut covariance = identity(dimensions);
    for generation in 0.. {
        let (values, vectors) = eigen(&covariance);
        let roots: Vec<f64> = values.iter().map(|value| value.max(0.0).sqrt()).collect();
        if roots.iter().all(|root| root * sigma < CLOSE) {
            break;
        }
        let mut draws = Draws::new(seed, Stream::Design, generation, 3);
        let point = |draws: &mut Draws| -> Vec<f64> {
            let z: Vec<f64> = roots.iter().map(|root| root * draws.normal()).collect();
            (0..dimensions)
                .map(|i| {
                    let step: f64 = vectors[i].iter().zip(&z).map(|(v, z)| v * z).sum();
                    (centre[i] + sigma * step).clamp(0.0, 1.0)
                })
                .collect()
        };
        let points: Vec<Vec<f64>> = (0..lambda).map(|_| point(&mut draws)).collect();
        let losses = replay.ask(&points)?;
        let mut order: Vec<usize> = (0..lambda).collect();
        order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
        // Steps of the best, in units of sigma; with clamped points these are the steps that were made.
        let steps: Vec<Vec<f64>> = order[..mu]
            .iter()
            .map(|at| points[*at].iter().zip(&centre).map(|(x, c)| (x - c) / sigma).collect())
            .collect();
        let mean: Vec<f64> =
            (0..dimensions).map(|i| weights.iter().zip(&steps).map(|(w, step)| w * step[i]).sum()).collect();
        centre.iter_mut().zip(&mean).for_each(|(c, step)| *c += sigma * step);
        // C^(-1/2) times the mean step.
        let rotated: Vec<f64> =
            (0..dimensions).map(|k| (0..dimensions).map(|i| vectors[i][k] * mean[i]).sum::<f64>()).collect();
        let whitened: Vec<f64> = (0..dimensions)
            .map(|i| (0..dimensions).filter(|k| roots[*k] > 0.0).map(|k| vectors[i][k] * rotated[k] / roots[k]).sum())
            .collect();
        let grow = (c_sigma * (2.0 - c_sigma) * effective).sqrt();
        path_sigma.iter_mut().zip(&whitened).for_each(|(p, w)| *p = (1.0 - c_sigma) * *p + grow * w);
        let length = path_sigma.iter().map(|p| p * p).sum::<f64>().sqrt();
        let decay = 1.0 - libm::pow(1.0 - c_sigma, 2.0 * (f64::from(generation) + 1.0));
        let moves = length / decay.sqrt() < (1.4 + 2.0 / (n + 1.0)) * expected;
        let grow = if moves { (c_path * (2.0 - c_path) * effective).sqrt() } else { 0.0 };
        path.iter_mut().zip(&mean).for_each(|(p, step)| *p = (1.0 - c_path) * *p + grow * step);
        let lost = if moves { 0.0 } else { c_one * c_path * (2.0 - c_path) };
        for (i, row) in covariance.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate() {
                let of_best: f64 = weights.iter().zip(&steps).map(|(w, step)| w * step[i] * step[j]).sum();
                *cell = (1.0 - c_one - c_mu + lost) * *cell + c_one * path[i] * path[j] + c_mu * of_best;
            }
        }
        sigma *= libm::exp((length / expected - 1.0) * c_sigma / damping);
    }
    Some(())
}

fn identity(n: usize) -> Matrix {
    (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

/// Eigenvalues of a symmetric matrix, and its eigenvectors as columns: by Jacobi's rotations.
fn eigen(matrix: &Matrix) -> (Vec<f64>, Matrix) {
    let n = matrix.len();
    let (mut a, mut v) = (matrix.clone(), identity(n));
    for _ in 0..100 {
        let off: f64 = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i][j] * a[i][j]).sum();
        if off < 1e-30 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] == 0.0 {
                    continue;
                }
                let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for row in &mut a {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (of_p, of_q) = (a[p].clone(), a[q].clone());
                for (k, (x, y)) in of_p.into_iter().zip(of_q).enumerate() {
                    (a[p][k], a[q][k]) = (c * x - s * y, s * x + c * y);
                }
                for row in &mut v {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
            }
        }
    }
    ((0..n).map(|i| a[i][i]).collect(), v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_turned_into_themselves() {
        let matrix = vec![vec![4.0, 1.0, -2.0], vec![1.0, 2.0, 0.5], vec![-2.0, 0.5, 3.0]];
        let (values, vectors) = eigen(&matrix);
        for k in 0..3 {
            for i in 0..3 {
                let product: f64 = (0..3).map(|j| matrix[i][j] * vectors[j][k]).sum();
                assert!((product - values[k] * vectors[i][k]).abs() < 1e-10, "{i} {k}");
            }
        }
        assert!((values.iter().sum::<f64>() - 9.0).abs() < 1e-10);
    }
}
