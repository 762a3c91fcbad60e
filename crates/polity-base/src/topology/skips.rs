//! Coin flips for many pairs, in time proportional to the heads.
//!
//! The number of tails before the next head is geometric, so one draw skips them all (Batagelj and Brandes, "Efficient
//! generation of large random networks", Physical Review E 71, 2005).

use crate::rng::Draws;

/// The gaps between heads of a coin.
struct Skips {
    draws: Draws,
    /// log(1 - p): -infinity for p = 1 makes every gap 0, and 0 for p = 0 makes the first one endless.
    log_tails: f64,
}

impl Skips {
    fn new(draws: Draws, p: f64) -> Self {
        Skips { draws, log_tails: libm::log1p(-p) }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        // The cast saturates, and a saturated gap lies beyond every pair.
        (libm::log(self.draws.open_unit()) / self.log_tails).abs() as u64
    }
}

/// Visits each pair `(v, w)` with `w < v < n` with probability `p`, in ascending order.
pub(super) fn triangle(n: u32, p: f64, draws: Draws, mut visit: impl FnMut(u32, u32)) {
    let n = u64::from(n);
    let mut skips = Skips::new(draws, p);
    let (mut v, mut w) = (1, skips.next());
    while v < n {
        if w < v {
            visit(v as u32, w as u32);
            w = w.saturating_add(skips.next()).saturating_add(1);
        } else {
            w -= v;
            v += 1;
        }
    }
}

/// Visits each pair `(row, column)` of a rectangle with probability `p`, in ascending order.
pub(super) fn rectangle(rows: u32, columns: u32, p: f64, draws: Draws, mut visit: impl FnMut(u32, u32)) {
    let (columns, total) = (u64::from(columns), u64::from(rows) * u64::from(columns));
    let mut skips = Skips::new(draws, p);
    let mut at = skips.next();
    while at < total {
        visit((at / columns) as u32, (at % columns) as u32);
        at = at.saturating_add(skips.next()).saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn draws(seed: u64) -> Draws {
        Draws::new(seed, Stream::Topology, 0, 0)
    }

    #[test]
    fn certain_and_impossible() {
        let mut seen = vec![];
        triangle(4, 1.0, draws(1), |v, w| seen.push((v, w)));
        assert_eq!(seen, [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]);
        seen.clear();
        rectangle(2, 3, 1.0, draws(1), |v, w| seen.push((v, w)));
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        for n in [0, 1, 2, 1000] {
            triangle(n, 0.0, draws(1), |v, w| panic!("{v} {w}"));
            rectangle(n, n, 0.0, draws(1), |v, w| panic!("{v} {w}"));
            triangle(n, 1e-300, draws(1), |v, w| panic!("{v} {w}"));
        }
    }

    /// Every pair is as likely as a coin flipped for it would make it, over many seeds (5 sigma for each pair).
    #[test]
    fn every_pair_is_equally_likely() {
        let (seeds, p) = (20_000, 0.3);
        let mut triangles = [[0u32; 6]; 6];
        let mut rectangles = [[0u32; 6]; 6];
        for seed in 0..seeds {
            triangle(6, p, draws(seed), |v, w| triangles[v as usize][w as usize] += 1);
            rectangle(6, 6, p, draws(seed), |v, w| rectangles[v as usize][w as usize] += 1);
        }
        let (mean, sigma) = (seeds as f64 * p, (seeds as f64 * p * (1.0 - p)).sqrt());
        let fair = |count: u32| (f64::from(count) - mean).abs() < 5.0 * sigma;
        for v in 0..6 {
            assert!((0..v).all(|w| fair(triangles[v][w])) && (v..6).all(|w| triangles[v][w] == 0), "{triangles:?}");
            assert!((0..6).all(|w| fair(rectangles[v][w])), "{rectangles:?}");
        }
    }
}
