//! Finite Markov decision processes and cooperative Markov games, solved exactly.
//!
//! A process has states, joint actions and channels of reward. A joint action is one move for each seat; with one seat it is a plain
//! action. The first seat's move changes slowest. What a policy is worth is a weighted sum of channels, each of which may have a
//! discount factor of its own if episodes have a horizon.

use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// The largest number of pairs of states and joint actions of a process.
pub const LARGEST: usize = 100_000;

/// The largest number of states whose values are found by elimination. Larger processes are iterated.
const DENSE: usize = 400;

/// A finite Markov decision process, or a cooperative Markov game.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Number of states.
    pub states: usize,
    /// Number of moves of each seat.
    pub moves: Vec<usize>,
    /// Number of channels of reward.
    pub channels: usize,
    /// For each state and joint action: next states and their probabilities.
    pub next: Vec<Vec<(u32, f64)>>,
    /// For each state, joint action and channel: the reward.
    pub rewards: Vec<f64>,
    /// The probability that an episode begins in a state.
    pub initial: Vec<f64>,
    /// Whether an episode ends when it enters a state. No reward comes after that.
    pub terminal: Vec<bool>,
    /// The sizes of the features that a state is made of, the slowest first; their product is the number of states.
    pub features: Vec<usize>,
}

/// How rewards of different times add up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Objective {
    /// Episodes of so many steps; each channel has its own discount factor.
    Episodic {
        /// Steps of an episode.
        horizon: usize,
        /// Discount factor of each channel.
        discounts: Vec<f64>,
    },
    /// Forever, with one discount factor below 1.
    Discounted {
        /// The discount factor.
        discount: f64,
    },
    /// The mean reward a step, forever.
    Average,
}

/// What a policy or the best policy is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// From the initial states. For the average objective: the reward a step.
    pub value: f64,
    /// For each stage, state and joint action. There is one stage for each step of an episode, else a single one. For the average objective these are differences
    /// from the average.
    pub q: Vec<f64>,
    /// For each stage and state.
    pub v: Vec<f64>,
}

impl Process {
    /// Number of joint actions.
    #[must_use]
    pub fn actions(&self) -> usize {
        self.moves.iter().product()
    }

    /// Number of pairs of a state and a joint action.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.states * self.actions()
    }

    /// The pairs of a state.
    fn of(&self, state: usize) -> std::ops::Range<usize> {
        state * self.actions()..(state + 1) * self.actions()
    }

    /// The sum of a pair's rewards over channels, each times its weight.
    #[must_use]
    pub fn reward(&self, pair: usize, weights: &[f64]) -> f64 {
        let rewards = &self.rewards[pair * self.channels..(pair + 1) * self.channels];
        rewards.iter().zip(weights).map(|(reward, weight)| reward * weight).sum()
    }

    /// Checks sizes and probabilities.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn check(&self) -> Result<(), String> {
        let pairs = self.states.checked_mul(self.actions()).filter(|pairs| *pairs <= LARGEST);
        let Some(pairs) = pairs else {
            return Err(format!(
                "the process has {} states and {} joint actions; at most {LARGEST} pairs can be solved",
                self.states,
                self.actions()
            ));
        };
        if self.states == 0 || self.channels == 0 || self.moves.is_empty() || self.moves.contains(&0) {
            return Err("a process needs a state, a channel of reward, and a move for each seat".into());
        }
        let sizes = [
            (self.next.len(), pairs, "transitions"),
            (self.rewards.len(), pairs * self.channels, "rewards"),
            (self.initial.len(), self.states, "initial probabilities"),
            (self.terminal.len(), self.states, "terminal states"),
            (self.features.iter().product(), self.states, "features"),
        ];
        for (is, must, what) in sizes {
            if is != must {
                return Err(format!("{is} {what} do not fit {must}"));
            }
        }
        let one = |sum: f64| (sum - 1.0).abs() < 1e-9;
        if !one(self.initial.iter().sum()) || self.initial.iter().any(|p| !p.is_finite() || *p < 0.0) {
            return Err("initial probabilities must be 0 or more and add up to 1".into());
        }
        for (pair, next) in self.next.iter().enumerate() {
            let (state, action) = (pair / self.actions(), pair % self.actions());
            if next.iter().any(|(to, p)| *to as usize >= self.states || !p.is_finite() || *p < 0.0) {
                return Err(format!(
                    "state {state}, action {action}: a transition leads nowhere or has no probability"
                ));
            }
            if !one(next.iter().map(|(_, p)| p).sum()) {
                return Err(format!("state {state}, action {action}: probabilities of transitions must add up to 1"));
            }
        }
        match self.rewards.iter().all(|reward| reward.is_finite()) {
            true => Ok(()),
            false => Err("rewards must be finite".into()),
        }
    }

    /// Draws a first state.
    #[must_use]
    pub fn begin(&self, draws: &mut Draws) -> usize {
        draws.weighted(&self.initial).unwrap_or(0)
    }

    /// Draws the state after a pair.
    #[must_use]
    pub fn draw_next(&self, pair: usize, draws: &mut Draws) -> usize {
        let mut left = draws.unit();
        let next = &self.next[pair];
        for (to, p) in next {
            left -= p;
            if left < 0.0 {
                return *to as usize;
            }
        }
        next.last().map_or(0, |(to, _)| *to as usize)
    }

    /// The number of stages that values and policies may have.
    #[must_use]
    pub fn stages(objective: &Objective) -> usize {
        match objective {
            Objective::Episodic { horizon, .. } => *horizon,
            Objective::Discounted { .. } | Objective::Average => 1,
        }
    }

    /// The mean of `v` over what follows a pair; 0 after a terminal state.
    fn ahead(&self, pair: usize, v: &[f64]) -> f64 {
        self.next[pair].iter().map(|(to, p)| if self.terminal[*to as usize] { 0.0 } else { p * v[*to as usize] }).sum()
    }

    /// The best policy's worth: backward induction, value iteration to 1e-11, or relative value iteration to 1e-11.
    #[must_use]
    pub fn optimum(&self, objective: &Objective, weights: &[f64]) -> Worth {
        self.solve(objective, weights, None)
    }

    /// The worth of a policy: for each stage, state and joint action a probability. A policy with one stage is used at every step.
    #[must_use]
    pub fn evaluate(&self, objective: &Objective, weights: &[f64], policy: &[f64]) -> Worth {
        self.solve(objective, weights, Some(policy))
    }

    fn solve(&self, objective: &Objective, weights: &[f64], policy: Option<&[f64]>) -> Worth {
        match objective {
            Objective::Episodic { horizon, discounts } => self.induce(*horizon, discounts, weights, policy),
            Objective::Discounted { discount } => self.discounted(*discount, weights, policy),
            Objective::Average => self.average(weights, policy),
        }
    }

    fn value_at(&self, state: usize, q: &[f64], policy: Option<&[f64]>) -> f64 {
        let actions = self.actions();
        let q = &q[state * actions..(state + 1) * actions];
        match policy {
            None => q.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Some(policy) => q.iter().zip(&policy[state * actions..]).map(|(q, p)| q * p).sum(),
        }
    }

    fn start(&self, v: &[f64]) -> f64 {
        self.initial.iter().zip(v).map(|(p, v)| p * v).sum()
    }

    fn induce(&self, horizon: usize, discounts: &[f64], weights: &[f64], policy: Option<&[f64]>) -> Worth {
        let (states, pairs) = (self.states, self.pairs());
        let mut worth = Worth { value: 0.0, q: vec![0.0; horizon * pairs], v: vec![0.0; horizon * states] };
        let mut after = vec![0.0; states];
        for stage in (0..horizon).rev() {
            let scaled = scaled(weights, discounts, stage);
            let q = &mut worth.q[stage * pairs..(stage + 1) * pairs];
            for (pair, q) in q.iter_mut().enumerate() {
                *q = self.reward(pair, &scaled) + self.ahead(pair, &after);
            }
            let policy = policy.map(|policy| if policy.len() > pairs { &policy[stage * pairs..] } else { policy });
            after = (0..states).map(|state| self.value_at(state, q, policy)).collect();
            worth.v[stage * states..(stage + 1) * states].copy_from_slice(&after);
        }
        worth.value = self.start(&after);
        worth
    }

    fn discounted(&self, discount: f64, weights: &[f64], policy: Option<&[f64]>) -> Worth {
        let mut v = vec![0.0; self.states];
        let mut q = vec![0.0; self.pairs()];
        if let (Some(policy), true) = (policy, self.states <= DENSE)
            && let Some(exact) = self.eliminate(discount, weights, policy)
        {
            v = exact;
        }
        // Sweeps in place. A policy's exact values need one; others contract by `discount` with each.
        for _ in 0..100_000 {
            let mut change = 0.0f64;
            for state in 0..self.states {
                for pair in self.of(state) {
                    q[pair] = self.reward(pair, weights) + discount * self.ahead(pair, &v);
                }
                let new = self.value_at(state, &q, policy);
                change = change.max((new - v[state]).abs());
                v[state] = new;
            }
            if change < 1e-11 {
                break;
            }
        }
        Worth { value: self.start(&v), q, v }
    }

    /// Values of a policy by elimination.
    fn eliminate(&self, discount: f64, weights: &[f64], policy: &[f64]) -> Option<Vec<f64>> {
        let n = self.states;
        let mut matrix = vec![vec![0.0; n]; n];
        let mut right = vec![0.0; n];
        for (state, (row, right)) in matrix.iter_mut().zip(&mut right).enumerate() {
            row[state] = 1.0;
            for pair in self.of(state) {
                *right += policy[pair] * self.reward(pair, weights);
                for (to, p) in self.next[pair].iter().filter(|(to, _)| !self.terminal[*to as usize]) {
                    row[*to as usize] -= discount * policy[pair] * p;
                }
            }
        }
        solve(matrix, right)
    }

    /// For each state, the share of time that a policy spends there in the long run; the chain must have one recurrent class.
    #[must_use]
    pub fn stationary(&self, policy: &[f64]) -> Vec<f64> {
        let n = self.states;
        let flow = |from: usize, put: &mut dyn FnMut(usize, f64)| {
            for pair in self.of(from) {
                for (to, p) in &self.next[pair] {
                    put(*to as usize, policy[pair] * p);
                }
            }
        };
        if n <= DENSE {
            // Balance in each state but the last; shares add up to 1.
            let mut matrix = vec![vec![0.0; n]; n];
            (0..n).for_each(|from| flow(from, &mut |to, p| matrix[to][from] += p));
            matrix.iter_mut().enumerate().for_each(|(state, row)| row[state] -= 1.0);
            matrix[n - 1] = vec![1.0; n];
            let mut right = vec![0.0; n];
            right[n - 1] = 1.0;
            if let Some(shares) = solve(matrix, right) {
                return shares;
            }
        }
        let mut shares = self.initial.clone();
        for _ in 0..20_000 {
            let mut new: Vec<f64> = shares.iter().map(|share| share / 2.0).collect();
            for (from, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                flow(from, &mut |to, p| new[to] += share / 2.0 * p);
            }
            let change: f64 = new.iter().zip(&shares).map(|(a, b)| (a - b).abs()).sum();
            shares = new;
            if change < 1e-13 {
                break;
            }
        }
        shares
    }

    /// The mean reward of a policy in each state.
    fn rewarded(&self, weights: &[f64], policy: &[f64]) -> Vec<f64> {
        let mean = |state: usize| self.of(state).map(|pair| policy[pair] * self.reward(pair, weights)).sum();
        (0..self.states).map(mean).collect()
    }

    /// Values of a policy's states relative to the first one's, by elimination.
    fn relative(&self, rewarded: &[f64], policy: &[f64], gain: f64) -> Option<Vec<f64>> {
        let n = self.states;
        let mut matrix = vec![vec![0.0; n]; n];
        let mut right: Vec<f64> = rewarded.iter().map(|reward| reward - gain).collect();
        for (state, row) in matrix.iter_mut().enumerate().skip(1) {
            row[state] = 1.0;
            for pair in self.of(state) {
                self.next[pair].iter().for_each(|(to, p)| row[*to as usize] -= policy[pair] * p);
            }
        }
        (matrix[0][0], right[0]) = (1.0, 0.0);
        solve(matrix, right)
    }

    fn average(&self, weights: &[f64], policy: Option<&[f64]>) -> Worth {
        let mut v = vec![0.0; self.states];
        let mut q = vec![0.0; self.pairs()];
        let fill = |q: &mut [f64], v: &[f64]| {
            for (pair, q) in q.iter_mut().enumerate() {
                let ahead: f64 = self.next[pair].iter().map(|(to, p)| p * v[*to as usize]).sum();
                *q = self.reward(pair, weights) + ahead;
            }
        };
        let exact = policy.map(|policy| {
            let rewarded = self.rewarded(weights, policy);
            let gain: f64 = self.stationary(policy).iter().zip(&rewarded).map(|(share, reward)| share * reward).sum();
            (gain, if self.states <= DENSE { self.relative(&rewarded, policy, gain) } else { None })
        });
        let mut gain = 0.0;
        if let Some((gain, Some(v))) = exact {
            fill(&mut q, &v);
            q.iter_mut().for_each(|q| *q -= gain);
            return Worth { value: gain, q, v };
        }
        // Half of the time nothing happens, so that periodic chains converge, too.
        for _ in 0..200_000 {
            fill(&mut q, &v);
            let new: Vec<f64> = (0..self.states).map(|s| 0.5 * v[s] + 0.5 * self.value_at(s, &q, policy)).collect();
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for (new, old) in new.iter().zip(&v) {
                (low, high) = (low.min(new - old), high.max(new - old));
            }
            gain = low + high;
            let base = new[0];
            v = new.into_iter().map(|value| value - base).collect();
            if high - low < 1e-11 {
                break;
            }
        }
        let gain = exact.map_or(gain, |(gain, _)| gain);
        q.iter_mut().for_each(|q| *q -= gain);
        Worth { value: gain, q, v }
    }

    /// For each stage and state, the probability that an episode is there under a policy, as long as it has not ended.
    #[must_use]
    pub fn occupancy(&self, horizon: usize, policy: &[f64]) -> Vec<f64> {
        let (states, pairs) = (self.states, self.pairs());
        let mut shares = vec![0.0; horizon * states];
        let mut now: Vec<f64> =
            self.initial.iter().zip(&self.terminal).map(|(p, end)| if *end { 0.0 } else { *p }).collect();
        for stage in 0..horizon {
            shares[stage * states..(stage + 1) * states].copy_from_slice(&now);
            let policy = if policy.len() > pairs { &policy[stage * pairs..(stage + 1) * pairs] } else { policy };
            let mut then = vec![0.0; states];
            for (pair, p) in policy.iter().enumerate() {
                let share = now[pair / self.actions()] * p;
                if share > 0.0 {
                    for (to, p) in self.next[pair].iter().filter(|(to, _)| !self.terminal[*to as usize]) {
                        then[*to as usize] += share * p;
                    }
                }
            }
            now = then;
        }
        shares
    }
}

/// Weights of channels at a stage: each times its discount factor to the power of the stage.
#[must_use]
pub fn scaled(weights: &[f64], discounts: &[f64], stage: usize) -> Vec<f64> {
    let factor = |discount: f64| libm::pow(discount, stage as f64);
    weights.iter().zip(discounts).map(|(weight, discount)| weight * factor(*discount)).collect()
}

/// The deterministic policy that takes the first best action of each state, for as many stages as `q` has.
#[must_use]
pub fn greedy(q: &[f64], actions: usize) -> Vec<f64> {
    let mut policy = vec![0.0; q.len()];
    for (q, policy) in q.chunks(actions).zip(policy.chunks_mut(actions)) {
        policy[best(q)] = 1.0;
    }
    policy
}

/// The place of the first largest number.
#[must_use]
pub fn best(values: &[f64]) -> usize {
    let better = |best: usize, next: usize| if values[next] > values[best] { next } else { best };
    (0..values.len()).fold(0, better)
}

/// Probabilities proportional to the exponentials of `logits`.
#[must_use]
pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|logit| libm::exp(logit - most)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Solves `matrix · x = right` by elimination with partial pivoting. `None` if the matrix is singular.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for k in 0..n {
        let pivot = (k..n).fold(k, |best, i| if matrix[i][k].abs() > matrix[best][k].abs() { i } else { best });
        if matrix[pivot][k].abs() < 1e-14 {
            return None;
        }
        matrix.swap(k, pivot);
        right.swap(k, pivot);
        let (above, below) = matrix.split_at_mut(k + 1);
        let first = &above[k];
        let b = right[k];
        for (row, right) in below.iter_mut().zip(&mut right[k + 1..]) {
            let factor = row[k] / first[k];
            if factor != 0.0 {
                row[k..].iter_mut().zip(&first[k..]).for_each(|(a, b)| *a -= factor * b);
                *right -= factor * b;
            }
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|i| matrix[k][i] * right[i]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_library::garnet;
    use polity_base::rng::Stream;

    fn draws(n: u32) -> Draws {
        Draws::new(7, Stream::World, 0, n)
    }

    /// The best deterministic policy without stages, by trying all.
    fn tried(process: &Process, objective: &Objective, weights: &[f64]) -> f64 {
        let (states, actions) = (process.states, process.actions());
        let mut most = f64::NEG_INFINITY;
        for mut code in 0..actions.pow(states as u32) {
            let mut policy = vec![0.0; states * actions];
            for state in 0..states {
                policy[state * actions + code % actions] = 1.0;
                code /= actions;
            }
            most = most.max(process.evaluate(objective, weights, &policy).value);
        }
        most
    }

    #[test]
    fn the_optimum_is_the_best_of_all_policies() {
        for n in 0..20 {
            let process = garnet(4, &[3], 2, 2, &mut draws(n));
            process.check().unwrap();
            for objective in [Objective::Discounted { discount: 0.9 }, Objective::Average] {
                let found = process.optimum(&objective, &[1.0, -0.5]).value;
                let best = tried(&process, &objective, &[1.0, -0.5]);
                assert!((found - best).abs() < 1e-7, "{objective:?} {found} {best}");
            }
        }
    }

    #[test]
    fn the_best_plan_of_an_episode_is_the_best_of_all_with_stages() {
        let weights = [1.0, 0.7];
        for n in 0..5 {
            let process = garnet(2, &[2], 2, 2, &mut draws(n));
            let objective = Objective::Episodic { horizon: 3, discounts: vec![0.5, 0.95] };
            let found = process.optimum(&objective, &weights).value;
            let mut most = f64::NEG_INFINITY;
            for code in 0..64u32 {
                let policy: Vec<f64> =
                    (0..6).flat_map(|i| if code >> i & 1 == 1 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
                most = most.max(process.evaluate(&objective, &weights, &policy).value);
            }
            assert!((found - most).abs() < 1e-12);
        }
    }

    #[test]
    fn elimination_iteration_and_sampling_agree() {
        let process = garnet(5, &[2, 2], 3, 1, &mut draws(3));
        let policy: Vec<f64> = (0..5).flat_map(|_| [0.1, 0.2, 0.3, 0.4]).collect();
        let value = process.evaluate(&Objective::Average, &[1.0], &policy).value;
        let shares = process.stationary(&policy);
        let mut iterated = process.initial.clone();
        for _ in 0..10_000 {
            let mut new = vec![0.0; 5];
            for (pair, p) in policy.iter().enumerate() {
                process.next[pair].iter().for_each(|(to, q)| new[*to as usize] += iterated[pair / 4] * p * q);
            }
            iterated = new;
        }
        assert!(shares.iter().zip(&iterated).all(|(a, b)| (a - b).abs() < 1e-9));
        let (mut at, mut sum, mut draws) = (0, 0.0, draws(9));
        for _ in 0..200_000 {
            let action = draws.weighted(&[0.1, 0.2, 0.3, 0.4]).unwrap();
            sum += process.reward(at * 4 + action, &[1.0]);
            at = process.draw_next(at * 4 + action, &mut draws);
        }
        assert!((sum / 200_000.0 - value).abs() < 0.01, "{} {value}", sum / 200_000.0);
        // Values relative to the average satisfy their equation.
        let worth = process.evaluate(&Objective::Average, &[1.0], &policy);
        for (state, v) in worth.v.iter().enumerate() {
            let mean: f64 = (0..4).map(|action| policy[action] * worth.q[state * 4 + action]).sum();
            assert!((mean - v).abs() < 1e-9, "{mean} {v}");
        }
    }

    #[test]
    fn processes_that_do_not_fit_are_refused() {
        let good = garnet(3, &[2], 2, 1, &mut draws(0));
        let mut bad = good.clone();
        bad.next[1][0].1 += 0.1;
        assert!(bad.check().unwrap_err().contains("state 0, action 1"));
        let mut bad = good.clone();
        bad.rewards.pop();
        assert!(bad.check().unwrap_err().contains("5 rewards do not fit 6"));
        let mut bad = good;
        bad.states = 1_000_000;
        assert!(bad.check().unwrap_err().contains("at most 100000 pairs"));
    }
}
