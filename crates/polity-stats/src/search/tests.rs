//! Tests of searches: functions with known minima, a posterior distribution in closed form, and going on at every point.

use super::*;
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::Target;

fn search(by: By, evaluations: u32) -> Search {
    let target = Target { metric: "x".into(), value: None, scale: 1.0 };
    Search { toward: vec![target], by, evaluations, population: 400, keep: 0.02, seed: 3 }
}

/// Points, their losses, and the weights.
type Ran = (Vec<Vec<f64>>, Vec<Option<f64>>, Vec<Option<f64>>);

/// Evaluates whatever is wanted, and returns all points with their losses, and the weights.
fn run(search: &Search, dimensions: usize, loss: impl Fn(&[f64], u32) -> Option<f64>) -> Ran {
    let mut points = vec![search.start(dimensions)];
    let mut losses = vec![loss(&points[0], 0)];
    loop {
        let Step { next, weights } = step(search, dimensions, &losses);
        if next.is_empty() {
            return (points, losses, weights);
        }
        for point in next {
            losses.push(loss(&point, points.len() as u32));
            points.push(point);
        }
    }
}

fn best(points: &[Vec<f64>], losses: &[Option<f64>]) -> (Vec<f64>, f64) {
    let all = points.iter().zip(losses).filter_map(|(point, loss)| Some((point.clone(), (*loss)?)));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}

/// Rosenbrock's valley in the square from -1 to 2; its least is 0 at (1, 1).
fn valley(point: &[f64], _: u32) -> Option<f64> {
    let (x, y) = (3.0 * point[0] - 1.0, 3.0 * point[1] - 1.0);
    Some((1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2))
}

#[test]
fn optimisers_find_the_known_least_value() {
    for by in [By::NelderMead, By::CmaEs] {
        let (points, losses, weights) = run(&search(by, 1500), 2, valley);
        let (point, loss) = best(&points, &losses);
        assert!(loss < 1e-4 && points.len() <= 1500, "{by:?}: {loss} at {point:?} after {}", points.len());
        assert!(point.iter().all(|x| (x - 2.0 / 3.0).abs() < 0.01), "{by:?}: {point:?}");
        assert!(weights.iter().all(Option::is_none));
        assert!(points.iter().flatten().all(|x| (0.0..=1.0).contains(x)), "{by:?}");
    }
    // A least value at the edge, in six dimensions, with values that are missing in a half.
    let edge = |point: &[f64], _: u32| (point[1] > 0.3).then(|| point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum());
    let (points, losses, _) = run(&search(By::CmaEs, 3000), 6, edge);
    assert!(best(&points, &losses).1 < 1e-3, "{:?}", best(&points, &losses));
    // As many evaluations as are allowed, and no more.
    for (by, most) in [(By::NelderMead, 9), (By::CmaEs, 17), (By::Random, 40)] {
        assert_eq!(run(&search(by, most), 3, |point, _| Some(point[0])).0.len(), most as usize, "{by:?}");
    }
}

/// Data: the mean of 10 normal values around the parameter, of known deviation 0.3, was 0.4. The posterior distribution over the range from 0
/// to 1 is normal around 0.4, with the deviation 0.3 / sqrt(10) = 0.0949, cut at the ends.
#[test]
fn posteriors_are_those_in_closed_form() {
    let deviation = 0.3 / 10_f64.sqrt();
    let simulated = |point: &[f64], at: u32| {
        let mut draws = Draws::new(8, Stream::Driver, at, 0);
        Some((point[0] + deviation * draws.normal() - 0.4).abs())
    };
    for (by, evaluations) in [(By::Abc, 8000), (By::AbcSmc, 4000)] {
        let (points, _, weights) = run(&search(by, evaluations), 1, simulated);
        let of = |f: &dyn Fn(f64) -> f64| -> f64 {
            points.iter().zip(&weights).filter_map(|(point, weight)| Some((*weight)? * f(point[0]))).sum()
        };
        assert!((of(&|_| 1.0) - 1.0).abs() < 1e-9);
        let mean = of(&|x| x);
        let spread = of(&|x| (x - mean) * (x - mean)).sqrt();
        assert!((mean - 0.4).abs() < 0.025 && (spread - deviation).abs() < 0.02, "{by:?}: {mean} {spread}");
        // The second dimension does not matter: it stays uniform.
        let (points, _, weights) = run(&search(by, evaluations), 2, simulated);
        let mean: f64 = points.iter().zip(&weights).filter_map(|(point, weight)| Some((*weight)? * point[1])).sum();
        assert!((mean - 0.5).abs() < 0.08, "{by:?}: {mean}");
    }
}

#[test]
fn a_search_goes_on_from_any_point_as_if_it_had_not_stopped() {
    for by in [By::Random, By::NelderMead, By::CmaEs, By::Abc, By::AbcSmc] {
        let search = Search { population: 20, ..search(by, 60) };
        let (points, losses, weights) = run(&search, 2, valley);
        let mut asked: Vec<Vec<f64>> = vec![search.start(2)];
        while asked.len() < points.len() {
            let known = asked.len();
            let next = step(&search, 2, &losses[..known]).next;
            // Interrupted in the middle of the batch, the rest of it is wanted.
            let part = known + next.len() / 2;
            assert_eq!(step(&search, 2, &losses[..part]).next, next[part - known..], "{by:?}");
            asked.extend(next);
        }
        assert_eq!(asked, points, "{by:?}");
        assert_eq!(step(&search, 2, &losses), Step { next: Vec::new(), weights });
    }
}
