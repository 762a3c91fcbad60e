//! UCB1, which sees only the reward of the arm it chooses.

use super::Point;
use polity_base::rng::{Draws, Stream};

/// UCB1 (Auer, Cesa-Bianchi and Fischer 2002): each arm once, then the arm with the largest mean + sqrt(2 ln t / times chosen).
#[derive(Clone, Debug, PartialEq)]
pub struct Ucb1 {
    /// By arm: how often it was chosen, and its mean reward.
    counts: Vec<u32>,
    means: Vec<f64>,
    rounds: u32,
}

impl Ucb1 {
    /// Makes one for this many arms (at least 1).
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Ucb1 { counts: vec![0; arms.max(1)], means: vec![0.0; arms.max(1)], rounds: 0 }
    }

    /// Chooses the next round's arm: the first of several with the same index.
    #[must_use]
    pub fn choose(&self) -> usize {
        let log = libm::log(f64::from(self.rounds));
        let mut best = (0, f64::NEG_INFINITY);
        for (arm, (mean, count)) in self.means.iter().zip(&self.counts).enumerate() {
            let index = if *count == 0 { f64::INFINITY } else { mean + (2.0 * log / f64::from(*count)).sqrt() };
            if index > best.1 {
                best = (arm, index);
            }
        }
        best.0
    }

    /// Learns the reward, in [0, 1], of the arm that was chosen.
    pub fn update(&mut self, arm: usize, reward: f64) {
        self.rounds += 1;
        self.counts[arm] += 1;
        self.means[arm] += (reward - self.means[arm]) / f64::from(self.counts[arm]);
    }
}

/// Plays a bandit on arms that pay 1 with these probabilities, else 0, and returns its pseudo-regret (by mean rewards) beside a bound, at
/// every `every` rounds and at the end.
///
/// ```
/// use polity_games::learn::{Ucb1, bernoulli_curve, ucb1_bound};
///
/// let means = [0.2, 0.8];
/// let points = bernoulli_curve(&mut Ucb1::new(2), &means, 2_000, 500, 7, |rounds| ucb1_bound(&means, rounds));
/// assert!(points.iter().all(|point| point.regret <= point.bound));
/// ```
pub fn bernoulli_curve(
    bandit: &mut Ucb1,
    means: &[f64],
    rounds: u32,
    every: u32,
    seed: u64,
    bound: impl Fn(u32) -> f64,
) -> Vec<Point> {
    let best = means.iter().copied().fold(0.0, f64::max);
    let (mut regret, mut points) = (0.0, Vec::new());
    for round in 1..=rounds {
        let arm = bandit.choose();
        regret += best - means[arm];
        let pays = Draws::new(seed, Stream::World, round, 0).chance(means[arm]);
        bandit.update(arm, f64::from(u8::from(pays)));
        if round.is_multiple_of(every.max(1)) || round == rounds {
            points.push(Point { round, regret, bound: bound(round) });
        }
    }
    points
}

/// Returns the bound of the expected pseudo-regret of [`Ucb1`] after T rounds: 8 ln T · sum of 1 / gap + (1 + pi² / 3) · sum of gaps,
/// over the arms below the best (Auer, Cesa-Bianchi and Fischer 2002, theorem 1).
#[must_use]
pub fn ucb1_bound(means: &[f64], rounds: u32) -> f64 {
    let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = libm::log(f64::from(rounds.max(1)));
    let constant = 1.0 + std::f64::consts::PI * std::f64::consts::PI / 3.0;
    means.iter().map(|mean| best - mean).filter(|gap| *gap > 0.0).map(|gap| 8.0 * log / gap + constant * gap).sum()
}
