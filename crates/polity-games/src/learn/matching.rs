//! Regret matching.

use super::Learner;

/// Regret matching (Hart and Mas-Colell 2000): each move in proportion to how much better it would have been, if at all. With `plus`,
/// regrets never fall below 0 (Tammelin 2014). Needs no step and no number of rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct RegretMatching {
    plus: bool,
    regrets: Vec<f64>,
    probabilities: Vec<f64>,
}

impl RegretMatching {
    /// Begins with equal probabilities for this many moves (at least 1).
    #[must_use]
    pub fn new(moves: usize, plus: bool) -> Self {
        let moves = moves.max(1);
        RegretMatching { plus, regrets: vec![0.0; moves], probabilities: vec![1.0 / moves as f64; moves] }
    }
}

impl Learner for RegretMatching {
    fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    fn update(&mut self, losses: &[f64]) {
        let expected: f64 = self.probabilities.iter().zip(losses).map(|(p, loss)| p * loss).sum();
        let all = losses.iter().copied().chain(std::iter::repeat(0.0));
        for (regret, loss) in self.regrets.iter_mut().zip(all) {
            *regret += expected - loss;
            if self.plus {
                *regret = regret.max(0.0);
            }
        }
        let positive: f64 = self.regrets.iter().map(|regret| regret.max(0.0)).sum();
        match_regrets(&self.regrets, positive, &mut self.probabilities);
    }
}

/// Sets each probability in proportion to the positive part of its regret, given the sum of these parts; all to the same where no
/// regret is positive.
#[inline(always)]
pub(crate) fn match_regrets(regrets: &[f64], positive: f64, strategy: &mut [f64]) {
    // The reciprocal of a smaller number can be infinite.
    if positive >= f64::MIN_POSITIVE {
        let scale = 1.0 / positive;
        strategy.iter_mut().zip(regrets).for_each(|(p, regret)| *p = regret.max(0.0) * scale);
    } else {
        let equal = 1.0 / strategy.len() as f64;
        strategy.fill(equal);
    }
}

/// Returns the bound of the external regret of [`RegretMatching`] after T rounds, with or without `plus`: sqrt(T K).
#[must_use]
pub fn matching_bound(moves: usize, rounds: u32) -> f64 {
    (f64::from(rounds) * moves as f64).sqrt()
}

/// Regret matching on pairs of moves (Hart and Mas-Colell 2000; Foster and Vohra 1999): probabilities that do not change when each move
/// passes its probability on to those it should have been replaced by, in proportion to that regret. Its swap regret vanishes, so that
/// the joint play of such learners approaches the correlated equilibria of any game; plain regret matching only reaches the
/// coarse-correlated ones.
#[derive(Clone, Debug, PartialEq)]
pub struct InternalRegretMatching {
    /// Row by row: what playing the second move wherever the first one was played would have saved.
    regrets: Vec<f64>,
    probabilities: Vec<f64>,
    /// Space for the elimination.
    rates: Vec<f64>,
}

impl InternalRegretMatching {
    /// Begins with equal probabilities for this many moves (at least 1).
    #[must_use]
    pub fn new(moves: usize) -> Self {
        let moves = moves.max(1);
        let probabilities = vec![1.0 / moves as f64; moves];
        InternalRegretMatching { regrets: vec![0.0; moves * moves], probabilities, rates: vec![0.0; moves * moves] }
    }
}

impl Learner for InternalRegretMatching {
    fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    fn update(&mut self, losses: &[f64]) {
        let loss = |at: usize| losses.get(at).copied().unwrap_or_default();
        for (from, row) in self.regrets.chunks_mut(self.probabilities.len()).enumerate() {
            for (to, regret) in row.iter_mut().enumerate() {
                *regret += self.probabilities[from] * (loss(from) - loss(to));
            }
        }
        self.rates.iter_mut().zip(&self.regrets).for_each(|(rate, regret)| *rate = regret.max(0.0));
        stationary(&mut self.rates, &mut self.probabilities);
    }
}

/// Finds a stationary distribution of a Markov process with these rates (row by row; the diagonal does not count), by elimination
/// without subtraction (Grassmann, Taksar and Heyman 1985). Without any rate the distribution stays as it is.
fn stationary(rates: &mut [f64], distribution: &mut [f64]) {
    let n = distribution.len();
    let off = |at: usize| at / n != at % n;
    if !rates.iter().enumerate().any(|(at, rate)| off(at) && *rate > 0.0) {
        return;
    }
    // States above `from` have been taken out; the process among the others stays the same.
    let mut from = n - 1;
    while from > 0 {
        let out: f64 = rates[from * n..from * n + from].iter().sum();
        if out <= 0.0 {
            break;
        }
        for i in 0..from {
            rates[i * n + from] /= out;
            let share = rates[i * n + from];
            for j in (0..from).filter(|j| *j != i) {
                rates[i * n + j] += share * rates[from * n + j];
            }
        }
        from -= 1;
    }
    // No way leads down from this state: it keeps what there is.
    distribution[..from].fill(0.0);
    distribution[from] = 1.0;
    for at in from + 1..n {
        distribution[at] = (0..at).map(|i| distribution[i] * rates[i * n + at]).sum();
    }
    let sum: f64 = distribution.iter().sum();
    distribution.iter_mut().for_each(|p| *p /= sum);
}

/// Returns the bound of the internal regret of [`InternalRegretMatching`] after T rounds: sqrt(T (K - 1)); swap regret is at most K times
/// as large.
#[must_use]
pub fn internal_bound(moves: usize, rounds: u32) -> f64 {
    (f64::from(rounds) * (moves as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::stationary;

    fn solved(rates: &[f64], n: usize) -> Vec<f64> {
        let mut distribution = vec![1.0 / n as f64; n];
        stationary(&mut rates.to_vec(), &mut distribution);
        // What flows out of each state flows in.
        for i in 0..n {
            let out: f64 = (0..n).filter(|j| *j != i).map(|j| distribution[i] * rates[i * n + j]).sum();
            let into: f64 = (0..n).filter(|j| *j != i).map(|j| distribution[j] * rates[j * n + i]).sum();
            assert!((out - into).abs() < 1e-12, "{rates:?}: {distribution:?}");
        }
        assert!((distribution.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        distribution
    }

    #[test]
    fn stationary_distributions_balance() {
        assert_eq!(solved(&[0.0, 1.0, 3.0, 0.0], 2), [0.75, 0.25]);
        assert_eq!(solved(&[9.0, 0.0, 0.0, 9.0], 2), [0.5, 0.5]);
        // States that absorb: the last, the first, and one in between.
        assert_eq!(solved(&[0.0, 1.0, 0.0, 0.0], 2), [0.0, 1.0]);
        assert_eq!(solved(&[0.0, 0.0, 1.0, 0.0], 2), [1.0, 0.0]);
        assert_eq!(solved(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0], 3), [0.0, 1.0, 0.0]);
        let two_classes = [0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 4.0, 0.0, 0.0, 1.0, 0.0];
        solved(&two_classes, 4);
        for seed in 0..200u64 {
            let rate = |at: u64| (seed.wrapping_mul(0x9E37_79B9) ^ at.wrapping_mul(0x85EB_CA6B)) >> 3 & 7;
            let rates: Vec<f64> = (0..25).map(|at| rate(at).saturating_sub(4) as f64).collect();
            solved(&rates, 5);
        }
    }
}
