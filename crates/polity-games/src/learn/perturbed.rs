//! Follow the perturbed leader.

use super::Learner;
use polity_base::rng::{Draws, Stream};

/// Follow the perturbed leader (Hannan 1957; Kalai and Vempala 2005): the move whose loss so far, minus an exponential draw
/// made afresh in each round, is least.
#[derive(Clone, Debug)]
pub struct PerturbedLeader {
    /// The rate of the exponential draws.
    rate: f64,
    draws: Draws,
    losses: Vec<f64>,
    /// All on the move that has been drawn for the next round.
    probabilities: Vec<f64>,
}

impl PerturbedLeader {
    /// Makes one for this many moves (at least 1), whose draws have this rate: their mean is 1 / rate.
    #[must_use]
    pub fn new(moves: usize, rate: f64, seed: u64) -> Self {
        let moves = moves.max(1);
        let draws = Draws::new(seed, Stream::Method, 0, 0);
        let mut learner = PerturbedLeader { rate, draws, losses: vec![0.0; moves], probabilities: vec![0.0; moves] };
        learner.draw();
        learner
    }

    /// Makes one with the best rate for a known number of rounds: sqrt((1 + ln K) / T).
    #[must_use]
    pub fn tuned(moves: usize, rounds: u32, seed: u64) -> Self {
        let rate = ((1.0 + libm::log(moves as f64)) / f64::from(rounds.max(1))).sqrt();
        Self::new(moves, rate, seed)
    }

    fn draw(&mut self) {
        let (mut leader, mut least) = (0, f64::INFINITY);
        for (at, loss) in self.losses.iter().enumerate() {
            let perturbed = loss - self.draws.exponential(self.rate);
            if perturbed < least {
                (leader, least) = (at, perturbed);
            }
        }
        self.probabilities.fill(0.0);
        self.probabilities[leader] = 1.0;
    }
}

impl Learner for PerturbedLeader {
    fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    fn update(&mut self, losses: &[f64]) {
        self.losses.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        self.draw();
    }
}

/// Returns the bound of the expected regret of [`PerturbedLeader::tuned`] after T rounds: 2 sqrt(T (1 + ln K)) (Hutter and Poland 2005).
#[must_use]
pub fn perturbed_bound(moves: usize, rounds: u32) -> f64 {
    2.0 * (f64::from(rounds) * (1.0 + libm::log(moves as f64))).sqrt()
}
