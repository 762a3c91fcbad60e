//! Random matchings of everybody in pairs.

use crate::rng::{Draws, Stream};

/// A perfect matching of `n` agents for one round (one agent stays out when `n` is odd): a random order of all agents, read in
/// pairs. It takes no memory and finds a partner in constant time: the order is a keyed Feistel network (Luby and Rackoff 1988)
/// on the next power of two, walked until it falls below `n` (Black and Rogaway 2002).
#[derive(Clone, Copy, Debug)]
pub struct Matching {
    n: u32,
    /// The widths of the two parts of a position, in bits.
    low: u32,
    high: u32,
    /// The keys of the network's steps. They come from Philox; the steps themselves mix by two multiplications, for a Philox
    /// block in each step made a million partners cost six times as much.
    keys: [u32; STEPS],
}

/// Four steps make a random order out of random functions; four more are for functions that only look so.
const STEPS: usize = 8;

/// Parts narrower than this would make too few different orders; a small society walks a little longer instead.
const LEAST_BITS: u32 = 6;

impl Matching {
    /// The matching of a round.
    #[must_use]
    pub fn new(n: u32, seed: u64, round: u32) -> Self {
        let bits = (u32::BITS - n.saturating_sub(1).leading_zeros()).max(LEAST_BITS);
        let mut draws = Draws::new(seed, Stream::Matching, round, 0);
        Matching { n, low: bits / 2, high: bits - bits / 2, keys: std::array::from_fn(|_| draws.u32()) }
    }

    /// The agent's partner; `None` for the one that stays out, and for an agent not below `n`.
    #[inline]
    #[must_use]
    pub fn partner(&self, agent: u32) -> Option<u32> {
        if agent >= self.n {
            return None;
        }
        let place = self.order(agent, 0..STEPS) ^ 1;
        (place < self.n).then(|| self.order(place, (0..STEPS).rev()))
    }

    /// The agent's place in the order; with the steps backwards, the agent at a place.
    #[inline]
    fn order(&self, mut x: u32, steps: impl Iterator<Item = usize> + Clone) -> u32 {
        loop {
            x = steps.clone().fold(x, |x, step| self.flip(x, step));
            if x < self.n {
                return x;
            }
        }
    }

    /// Mixes one part of a position into the other; its own inverse.
    #[inline]
    fn flip(&self, x: u32, step: usize) -> u32 {
        let key = self.keys[step];
        if step.is_multiple_of(2) {
            x ^ mix(x & ((1 << self.low) - 1), key, self.high) << self.low
        } else {
            x ^ mix(x >> self.low, key, self.low)
        }
    }
}

/// `bits` bits that look like a random function of the part. The multipliers are Philox's.
#[inline]
fn mix(part: u32, key: u32, bits: u32) -> u32 {
    let x = (part ^ key).wrapping_mul(0xD251_1F53);
    (x ^ x >> 15).wrapping_mul(0xCD9E_8D57) >> (u32::BITS - bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn all(n: u32, seed: u64, round: u32) -> Vec<Option<u32>> {
        let matching = Matching::new(n, seed, round);
        (0..n).map(|i| matching.partner(i)).collect()
    }

    #[test]
    fn everybody_has_one_partner() {
        for n in [0, 1, 2, 3, 4, 5, 63, 64, 65, 1000, 1001, 4097] {
            for round in 0..5 {
                let partners = all(n, 42, round);
                let alone = partners.iter().filter(|p| p.is_none()).count() as u32;
                assert_eq!(alone, n % 2, "{n} agents, round {round}");
                for (i, partner) in partners.iter().enumerate() {
                    if let Some(j) = partner {
                        assert!(
                            *j != i as u32 && partners[*j as usize] == Some(i as u32),
                            "{n} agents, round {round}: {i} {j}"
                        );
                    }
                }
            }
        }
        assert_eq!(Matching::new(10, 1, 1).partner(10), None);
    }

    #[test]
    fn the_largest_society() {
        let matching = Matching::new(u32::MAX, 3, 9);
        for i in [0, 1, 77, 1 << 31, u32::MAX - 1] {
            assert_eq!(matching.partner(i).and_then(|j| matching.partner(j)), Some(i));
        }
    }

    #[test]
    fn rounds_and_seeds_differ() {
        let base = all(1000, 1, 1);
        for other in [all(1000, 1, 2), all(1000, 2, 1), all(1000, 1 << 32 | 1, 1)] {
            let same = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(same < 12, "{same} of 1000 pairs are alike, about 1 is expected");
        }
    }

    /// Chi-square against the uniform distribution, as a z-score.
    fn unevenness(counts: impl ExactSizeIterator<Item = u32> + Clone, cells: usize) -> f64 {
        let expected = f64::from(counts.clone().sum::<u32>()) / cells as f64;
        let missing = (cells - counts.len()) as f64 * expected;
        let chi = counts.map(|c| (f64::from(c) - expected).powi(2) / expected).sum::<f64>() + missing;
        let freedom = cells as f64 - 1.0;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn all_matchings_are_equally_likely() {
        // (n - 1)!! of them, times who stays out.
        for (n, matchings) in [(3, 3), (4, 3), (5, 15), (6, 15), (8, 105), (9, 945)] {
            let mut counts = BTreeMap::new();
            for round in 0..20_000 {
                *counts.entry(all(n, 5, round)).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), matchings);
            let z = unevenness(counts.values().copied(), matchings);
            assert!(z.abs() < 4.5, "{n} agents: {z} sigma");
        }
    }

    #[test]
    fn partners_are_equally_likely() {
        // One agent's partner over rounds, and over all agents the distance to the partner in one round.
        for n in [50u32, 100, 300] {
            let mut partners = vec![0; n as usize];
            for round in 0..20_000 {
                if let Some(j) = Matching::new(n, 8, round).partner(n / 3) {
                    partners[j as usize] += 1;
                }
            }
            partners.remove(n as usize / 3);
            let z = unevenness(partners.into_iter(), n as usize - 1);
            assert!(z.abs() < 4.5, "{n} agents: {z} sigma");
        }
        let n = 100_000;
        let mut distances = vec![0; 99];
        for (i, partner) in all(n, 2, 7).into_iter().enumerate() {
            let distance = (partner.unwrap() + n - i as u32) % n;
            distances[(distance / 1011).min(98) as usize] += 1;
        }
        let z = unevenness(distances.into_iter().take(98).collect::<Vec<_>>().into_iter(), 98);
        // Each pair is seen from both ends, which doubles the scatter.
        assert!(z.abs() < 12.0, "{z} sigma");
    }

    /// The sharpest test found: agents next to each other in a society as small as the network's parts allow. Four steps fail
    /// it by hundreds of sigma, six by some.
    #[test]
    fn neighbours_partners_are_unrelated() {
        let mut counts = [0; 64];
        for round in 0..100_000 {
            let matching = Matching::new(64, 77, round);
            if let (Some(a), Some(b)) = (matching.partner(0), matching.partner(1)) {
                counts[(a ^ b) as usize] += 1;
            }
        }
        // Two agents never have one partner; 0 and 1 are apart by 1 whenever they have each other.
        let z = unevenness(counts.into_iter().skip(2), 62);
        assert!(z.abs() < 4.0, "{z} sigma");
    }

    /// `cargo test --release -p polity-kernel a_million_partners -- --ignored --nocapture` prints the time.
    #[test]
    #[ignore = "a measurement"]
    fn a_million_partners() {
        let start = std::time::Instant::now();
        let sum: u64 = all(1_000_000, 1, 1).into_iter().flatten().map(u64::from).sum();
        println!("{:?} for a million agents", start.elapsed());
        assert_eq!(sum, 999_999 * 500_000);
    }
}
