//! Follow the regularised leader, with Hedge as its entropic case.

use super::Learner;

/// The regulariser of [`Ftrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regulariser {
    /// Negative entropy: probabilities in proportion to exp(-step · loss so far), which is Hedge, also called multiplicative weights.
    Entropy,
    /// Half the squared Euclidean norm: -step · loss so far, projected on the simplex; moves can get probability 0.
    Euclidean,
}

/// How strongly losses count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The same in all rounds.
    Fixed(f64),
    /// This number divided by the square root of the round's number, for an unknown number of rounds.
    Decreasing(f64),
}

impl Step {
    /// Returns Hedge's best fixed step for a known number of rounds: sqrt(8 ln K / T).
    #[must_use]
    pub fn hedge(moves: usize, rounds: u32) -> Self {
        Step::Fixed((8.0 * libm::log(moves as f64) / f64::from(rounds.max(1))).sqrt())
    }

    /// Returns Hedge's decreasing step: sqrt(8 ln K / t) in round t (Cesa-Bianchi and Lugosi 2006, theorem 2.3).
    #[must_use]
    pub fn hedge_anytime(moves: usize) -> Self {
        Step::Decreasing((8.0 * libm::log(moves as f64)).sqrt())
    }

    /// Returns the best fixed step of the Euclidean regulariser for a known number of rounds: 1 / sqrt(T K).
    #[must_use]
    pub fn euclidean(moves: usize, rounds: u32) -> Self {
        Step::Fixed(1.0 / (f64::from(rounds.max(1)) * moves as f64).sqrt())
    }

    fn at(self, round: u32) -> f64 {
        match self {
            Step::Fixed(step) => step,
            Step::Decreasing(first) => first / f64::from(round).sqrt(),
        }
    }
}

/// Follow the regularised leader (Shalev-Shwartz and Singer 2007): the probabilities with the least sum of step · loss so far and
/// regulariser.
#[derive(Clone, Debug, PartialEq)]
pub struct Ftrl {
    regulariser: Regulariser,
    step: Step,
    rounds: u32,
    losses: Vec<f64>,
    probabilities: Vec<f64>,
    /// Scratch space for sorting.
    sorted: Vec<f64>,
}

/// Makes Hedge (Freund and Schapire 1997; Littlestone and Warmuth 1994) for this many moves (at least 1).
#[must_use]
pub fn hedge(moves: usize, step: Step) -> Ftrl {
    Ftrl::new(moves, Regulariser::Entropy, step)
}

impl Ftrl {
    /// Begins with equal probabilities for this many moves (at least 1).
    #[must_use]
    pub fn new(moves: usize, regulariser: Regulariser, step: Step) -> Self {
        let moves = moves.max(1);
        let probabilities = vec![1.0 / moves as f64; moves];
        Ftrl { regulariser, step, rounds: 0, losses: vec![0.0; moves], probabilities, sorted: vec![0.0; moves] }
    }
}

impl Learner for Ftrl {
    fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    fn update(&mut self, losses: &[f64]) {
        self.losses.iter_mut().zip(losses).for_each(|(sum, loss)| *sum += loss);
        self.rounds = self.rounds.saturating_add(1);
        let step = self.step.at(self.rounds.saturating_add(1));
        let least = self.losses.iter().copied().fold(f64::INFINITY, f64::min);
        for (p, loss) in self.probabilities.iter_mut().zip(&self.losses) {
            *p = step * (least - loss);
        }
        match self.regulariser {
            Regulariser::Entropy => {
                self.probabilities.iter_mut().for_each(|p| *p = libm::exp(*p));
                let sum: f64 = self.probabilities.iter().sum();
                self.probabilities.iter_mut().for_each(|p| *p /= sum);
            }
            Regulariser::Euclidean => project(&mut self.probabilities, &mut self.sorted),
        }
    }
}

/// Projects a point on the simplex: the nearest probabilities (Held, Wolfe and Crowder 1974). `sorted` is scratch space as long as `point`.
pub(crate) fn project(point: &mut [f64], sorted: &mut [f64]) {
    sorted.copy_from_slice(point);
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (count, x) in (1u32..).zip(&*sorted) {
        sum += x;
        let tried = (sum - 1.0) / f64::from(count);
        if *x > tried {
            shift = tried;
        }
    }
    point.iter_mut().for_each(|x| *x = (*x - shift).max(0.0));
}

/// Returns the bound of Hedge's regret after T rounds with the tuned step [`Step::hedge`]: sqrt(T ln K / 2) (Cesa-Bianchi and Lugosi
/// 2006, theorem 2.2).
#[must_use]
pub fn hedge_bound(moves: usize, rounds: u32) -> f64 {
    (f64::from(rounds) * libm::log(moves as f64) / 2.0).sqrt()
}

/// Returns the bound of Hedge's regret after T rounds with any fixed step: ln K / step + step · T / 8.
#[must_use]
pub fn hedge_step_bound(moves: usize, rounds: u32, step: f64) -> f64 {
    libm::log(moves as f64) / step + step * f64::from(rounds) / 8.0
}

/// Returns the bound of Hedge's regret after any number of rounds with [`Step::hedge_anytime`]: 2 sqrt(T ln K / 2) + sqrt(ln K / 8).
#[must_use]
pub fn hedge_anytime_bound(moves: usize, rounds: u32) -> f64 {
    2.0 * hedge_bound(moves, rounds) + (libm::log(moves as f64) / 8.0).sqrt()
}

/// Returns the bound of the Euclidean regulariser's regret after T rounds with [`Step::euclidean`]: sqrt(T K) (half the squared
/// diameter by the step, and half the step times the squared norm of each loss).
#[must_use]
pub fn euclidean_bound(moves: usize, rounds: u32) -> f64 {
    (f64::from(rounds) * moves as f64).sqrt()
}
