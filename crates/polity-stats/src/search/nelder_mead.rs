//! The simplex method of Nelder and Mead (1965), within the unit cube.

use super::Replay;

/// The search ends when all points of the simplex are so close.
const CLOSE: f64 = 1e-4;

/// Searches from the middle of the cube on.
pub(super) fn search(replay: &mut Replay<'_>, dimensions: usize) -> Option<()> {
    let mut points = vec![vec![0.5; dimensions]; dimensions + 1];
    (0..dimensions).for_each(|i| points[i + 1][i] = 0.75);
    // The first point is asked for alone, since every search begins with one.
    let mut losses = replay.ask(&points[..1])?;
    losses.extend(replay.ask(&points[1..])?);
    let mut simplex: Vec<(f64, Vec<f64>)> = losses.into_iter().zip(points).collect();
    loop {
        simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, worst) = (&simplex[0], &simplex[dimensions]);
        let second_worst = simplex[dimensions - 1].0;
        let far = |point: &[f64]| point.iter().zip(&best.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if simplex.iter().all(|(_, point)| far(point) < CLOSE) {
            return Some(());
        }
        let centre: Vec<f64> = (0..dimensions)
            .map(|i| simplex[..dimensions].iter().map(|(_, point)| point[i]).sum::<f64>() / dimensions as f64)
            .collect();
        let along = |by: f64| -> Vec<f64> {
            centre.iter().zip(&worst.1).map(|(c, w)| (c + by * (c - w)).clamp(0.0, 1.0)).collect()
        };
        let mut one = |point: Vec<f64>| Some((replay.ask(std::slice::from_ref(&point))?[0], point));
        let reflected = one(along(1.0))?;
        let better = if reflected.0 < best.0 {
            let expanded = one(along(2.0))?;
            Some(if expanded.0 < reflected.0 { expanded } else { reflected })
        } else if reflected.0 < second_worst {
            Some(reflected)
        } else {
            let outside = reflected.0 < worst.0;
            let contracted = one(along(if outside { 0.5 } else { -0.5 }))?;
            (contracted.0 < reflected.0.min(worst.0)).then_some(contracted)
        };
        match better {
            Some(point) => simplex[dimensions] = point,
            None => {
                // Towards the best.
                let nearer = |(_, point): &(f64, Vec<f64>)| -> Vec<f64> {
                    point.iter().zip(&simplex[0].1).map(|(a, b)| b + (a - b) / 2.0).collect()
                };
                let points: Vec<Vec<f64>> = simplex[1..].iter().map(nearer).collect();
                let losses = replay.ask(&points)?;
                simplex.truncate(1);
                simplex.extend(losses.into_iter().zip(points));
            }
        }
    }
}
