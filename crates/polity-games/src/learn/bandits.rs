//! Bandits: rules that see only the reward of the arm they choose.

use super::Point;
use polity_base::rng::{Draws, Stream};

/// A rule that sees the reward of what it chose, and nothing else.
pub trait Bandit {
    /// Chooses the next round's arm.
    fn choose(&mut self, draws: &mut Draws) -> usize;

    /// Learns the reward, in [0, 1], of the arm that was chosen.
    fn update(&mut self, arm: usize, reward: f64);
}

/// How often each arm was chosen, and its mean reward.
#[derive(Clone, Debug, PartialEq)]
struct Means {
    counts: Vec<u32>,
    means: Vec<f64>,
    rounds: u32,
}

impl Means {
    fn new(arms: usize) -> Self {
        Means { counts: vec![0; arms.max(1)], means: vec![0.0; arms.max(1)], rounds: 0 }
    }

    fn add(&mut self, arm: usize, reward: f64) {
        self.rounds += 1;
        self.counts[arm] += 1;
        self.means[arm] += (reward - self.means[arm]) / f64::from(self.counts[arm]);
    }
}

/// Returns the place of the largest of some numbers, the first of several.
fn largest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (at, number) in numbers.enumerate() {
        if number > best.1 {
            best = (at, number);
        }
    }
    best.0
}

/// UCB1 (Auer, Cesa-Bianchi and Fischer 2002): each arm once, then the arm with the largest mean + sqrt(2 ln t / times chosen). Draws
/// nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Ucb1 {
    known: Means,
}

impl Ucb1 {
    /// Makes one for this many arms (at least 1).
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Ucb1 { known: Means::new(arms) }
    }
}

impl Bandit for Ucb1 {
    fn choose(&mut self, _: &mut Draws) -> usize {
        let known = &self.known;
        let log = libm::log(f64::from(known.rounds));
        largest(known.means.iter().zip(&known.counts).map(|(mean, count)| match count {
            0 => f64::INFINITY,
            _ => mean + (2.0 * log / f64::from(*count)).sqrt(),
        }))
    }

    fn update(&mut self, arm: usize, reward: f64) {
        self.known.add(arm, reward);
    }
}

/// How often [`EpsilonGreedy`] explores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exploration {
    /// With this probability in every round.
    Fixed(f64),
    /// With probability min(1, c / t) in round t (Auer, Cesa-Bianchi and Fischer 2002).
    Decreasing(f64),
}

/// Epsilon-greedy: an arm at random with probability epsilon, otherwise the one with the best mean (the first of several; arms never
/// chosen count as 0).
#[derive(Clone, Debug, PartialEq)]
pub struct EpsilonGreedy {
    exploration: Exploration,
    known: Means,
}

impl EpsilonGreedy {
    /// Makes one for this many arms (at least 1).
    #[must_use]
    pub fn new(arms: usize, exploration: Exploration) -> Self {
        EpsilonGreedy { exploration, known: Means::new(arms) }
    }
}

impl Bandit for EpsilonGreedy {
    fn choose(&mut self, draws: &mut Draws) -> usize {
        let epsilon = match self.exploration {
            Exploration::Fixed(epsilon) => epsilon,
            Exploration::Decreasing(c) => c / f64::from(self.known.rounds + 1),
        };
        if draws.chance(epsilon) {
            return draws.below(self.known.means.len() as u64) as usize;
        }
        largest(self.known.means.iter().copied())
    }

    fn update(&mut self, arm: usize, reward: f64) {
        self.known.add(arm, reward);
    }
}

/// Thompson sampling (Thompson 1933) with uniform priors: draws each arm's mean from its beta distribution and chooses the best. A
/// reward between 0 and 1 counts partly as a success and partly as a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Thompson {
    /// By arm: 1 + successes, 1 + failures.
    beta: Vec<[f64; 2]>,
}

impl Thompson {
    /// Makes one for this many arms (at least 1).
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Thompson { beta: vec![[1.0, 1.0]; arms.max(1)] }
    }
}

impl Bandit for Thompson {
    fn choose(&mut self, draws: &mut Draws) -> usize {
        largest(self.beta.iter().map(|[successes, failures]| {
            let (up, down) = (gamma(draws, *successes), gamma(draws, *failures));
            up / (up + down)
        }))
    }

    fn update(&mut self, arm: usize, reward: f64) {
        self.beta[arm][0] += reward;
        self.beta[arm][1] += 1.0 - reward;
    }
}

/// Draws from the gamma distribution with a shape of at least 1 (Marsaglia and Tsang 2000).
fn gamma(draws: &mut Draws, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = draws.normal();
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(draws.open_unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

/// Exp3 (Auer, Cesa-Bianchi, Freund and Schapire 2002): Hedge on rewards divided by the probability of seeing them, mixed with a share
/// `gamma` of pure chance. For rewards that an adversary may choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Exp3 {
    gamma: f64,
    /// By arm: the sum of estimated rewards.
    rewards: Vec<f64>,
    probabilities: Vec<f64>,
}

impl Exp3 {
    /// Makes one for this many arms (at least 1); `gamma` in (0, 1].
    #[must_use]
    pub fn new(arms: usize, gamma: f64) -> Self {
        let arms = arms.max(1);
        Exp3 { gamma, rewards: vec![0.0; arms], probabilities: vec![1.0 / arms as f64; arms] }
    }

    /// Makes one with the best share for a known number of rounds: min(1, sqrt(K ln K / ((e - 1) T))).
    #[must_use]
    pub fn tuned(arms: usize, rounds: u32) -> Self {
        let k = arms as f64;
        let gamma = (k * libm::log(k) / ((std::f64::consts::E - 1.0) * f64::from(rounds.max(1)))).sqrt();
        Self::new(arms, gamma.min(1.0))
    }

    /// Returns the probability of each arm in the next round.
    #[must_use]
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }
}

impl Bandit for Exp3 {
    fn choose(&mut self, draws: &mut Draws) -> usize {
        draws.weighted(&self.probabilities).unwrap_or_default()
    }

    fn update(&mut self, arm: usize, reward: f64) {
        self.rewards[arm] += reward / self.probabilities[arm];
        let equal = self.gamma / self.rewards.len() as f64;
        let most = self.rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (p, reward) in self.probabilities.iter_mut().zip(&self.rewards) {
            *p = libm::exp(equal * (reward - most));
        }
        let sum: f64 = self.probabilities.iter().sum();
        self.probabilities.iter_mut().for_each(|p| *p = (1.0 - self.gamma) * *p / sum + equal);
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
    bandit: &mut dyn Bandit,
    means: &[f64],
    rounds: u32,
    every: u32,
    seed: u64,
    bound: impl Fn(u32) -> f64,
) -> Vec<Point> {
    let best = means.iter().copied().fold(0.0, f64::max);
    let mut regret = 0.0;
    let pay = |arm: usize, draws: &mut Draws| {
        regret += best - means[arm];
        (f64::from(u8::from(draws.chance(means[arm]))), regret)
    };
    run(bandit, rounds, every, seed, pay, bound)
}

/// Plays a bandit on rewards that a stream decides beforehand, and returns its regret against the best single arm beside a bound, at
/// every `every` rounds and at the end. The stream gets the round (from 0) and fills in the rewards of this many arms.
pub fn bandit_curve(
    bandit: &mut dyn Bandit,
    arms: usize,
    rounds: u32,
    every: u32,
    seed: u64,
    mut stream: impl FnMut(u32, &mut [f64]),
    bound: impl Fn(u32) -> f64,
) -> Vec<Point> {
    let (mut rewards, mut sums, mut earned, mut round) = (vec![0.0; arms], vec![0.0; arms], 0.0, 0);
    let pay = |arm: usize, _: &mut Draws| {
        stream(round, &mut rewards);
        round += 1;
        earned += rewards[arm];
        sums.iter_mut().zip(&rewards).for_each(|(sum, reward)| *sum += reward);
        (rewards[arm], sums.iter().copied().fold(f64::NEG_INFINITY, f64::max) - earned)
    };
    run(bandit, rounds, every, seed, pay, bound)
}

/// Plays rounds; `pay` returns the reward of an arm and the regret so far.
fn run(
    bandit: &mut dyn Bandit,
    rounds: u32,
    every: u32,
    seed: u64,
    mut pay: impl FnMut(usize, &mut Draws) -> (f64, f64),
    bound: impl Fn(u32) -> f64,
) -> Vec<Point> {
    // The learner's draws and the world's are apart, so that every learner meets the same luck in the same rounds.
    let mut own = Draws::new(seed, Stream::Method, 0, 1);
    let mut points = Vec::new();
    for round in 1..=rounds {
        let arm = bandit.choose(&mut own);
        let (reward, regret) = pay(arm, &mut Draws::new(seed, Stream::World, round, 0));
        bandit.update(arm, reward);
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

/// Returns the bound of the expected regret of [`Exp3::tuned`] after T rounds: 2 sqrt((e - 1) T K ln K) (Auer, Cesa-Bianchi, Freund and
/// Schapire 2002, corollary 3.2).
#[must_use]
pub fn exp3_bound(arms: usize, rounds: u32) -> f64 {
    let k = arms as f64;
    2.0 * ((std::f64::consts::E - 1.0) * f64::from(rounds) * k * libm::log(k)).sqrt()
}
