//! Actor and critic for the mean reward a step, with estimates over several levels.
//!
//! After Suttle, Bedi, Patel, Sadler, Koppel and Manocha, "Beyond Exponentially Fast Mixing in Average-Reward Reinforcement Learning via
//! Multi-Level Monte Carlo Actor-Critic" (ICML 2023). A level is drawn from a geometric law; two to its power is the number of steps. The estimate is the
//! first step's, plus two to the power of the level times the difference of the means over all steps and over their first half. Its mean is that of a very long
//! batch, its mean cost grows only with the logarithm of that batch.

use crate::learner::{Play, View};
use crate::process::softmax;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// How many steps an estimate takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// A drawn power of two, at most so many.
    Levels {
        /// The largest number of steps.
        most: u32,
    },
    /// Always so many.
    Fixed {
        /// The number of steps.
        steps: u32,
    },
}

/// How it learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How many steps an estimate takes.
    pub batches: Batches,
    /// Step of the actor.
    pub actor: f64,
    /// Step of the critic and of the mean reward.
    pub critic: f64,
    /// Whether steps are divided by the root of the sum of squared estimates so far (AdaGrad), as in the paper.
    pub adaptive: bool,
}

/// Logits, values, mean reward.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MultiLevel {
    logits: Vec<f64>,
    values: Vec<f64>,
    mean: f64,
    /// Squared estimates so far: of the actor, the critic, the mean.
    squares: [f64; 3],
}

/// Sums over a prefix of the batch.
#[derive(Clone)]
struct Sums {
    actor: Vec<f64>,
    critic: Vec<f64>,
    mean: f64,
}

impl Sums {
    /// `self = self * a + other * b`.
    fn blend(&mut self, a: f64, other: &Sums, b: f64) {
        for (own, other) in [(&mut self.actor, &other.actor), (&mut self.critic, &other.critic)] {
            own.iter_mut().zip(other).for_each(|(own, other)| *own = *own * a + other * b);
        }
        self.mean = self.mean * a + other.mean * b;
    }

    fn size(values: &[f64]) -> f64 {
        values.iter().map(|value| value * value).sum()
    }
}

impl MultiLevel {
    /// The estimate of a batch.
    fn estimate(&self, config: &Config, view: &View<'_>) -> Option<Sums> {
        let actions = view.task.actions();
        let n = view.batch.steps.len();
        let zero = Sums { actor: vec![0.0; self.logits.len()], critic: vec![0.0; self.values.len()], mean: 0.0 };
        let (mut sums, mut first, mut half) = (zero.clone(), None, zero);
        for (i, (step, rewards)) in view.batch.iter().enumerate() {
            let (state, next) = (step.state as usize, step.next as usize);
            let reward: f64 = rewards.iter().zip(&view.task.weights).map(|(reward, weight)| reward * weight).sum();
            let error = reward - self.mean + self.values[next] - self.values[state];
            sums.mean += reward - self.mean;
            sums.critic[state] += error;
            let p = softmax(&self.logits[state * actions..(state + 1) * actions]);
            for (action, p) in p.iter().enumerate() {
                let own = f64::from(u8::from(action == step.action as usize));
                sums.actor[state * actions + action] += error * (own - p);
            }
            if i == 0 {
                first = Some(sums.clone());
            }
            if i + 1 == n / 2 {
                half = sums.clone();
            }
        }
        let mut estimate = first?;
        match config.batches {
            Batches::Fixed { .. } => estimate.blend(0.0, &sums, 1.0 / n as f64),
            // With n steps the level has probability 1 / n.
            Batches::Levels { .. } if n > 1 => {
                estimate.blend(1.0, &sums, 1.0);
                estimate.blend(1.0, &half, -2.0);
            }
            Batches::Levels { .. } => {}
        }
        Some(estimate)
    }

    /// Learns from the last round and plays the next.
    pub fn play(&mut self, config: &Config, view: &View<'_>, draws: &mut Draws) -> Play {
        let (task, actions) = (view.task, view.task.actions());
        if self.logits.is_empty() {
            self.logits = vec![0.0; task.states * actions];
            self.values = vec![0.0; task.states];
        }
        if let Some(estimate) = self.estimate(config, view) {
            let sizes = [Sums::size(&estimate.actor), Sums::size(&estimate.critic), estimate.mean * estimate.mean];
            self.squares.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
            let scale = |step: f64, squares: f64| if config.adaptive { step / (squares + 1e-6).sqrt() } else { step };
            let [actor, critic, mean] = self.squares;
            let step = scale(config.actor, actor);
            self.logits.iter_mut().zip(&estimate.actor).for_each(|(logit, slope)| *logit += step * slope);
            let step = scale(config.critic, critic);
            self.values.iter_mut().zip(&estimate.critic).for_each(|(value, slope)| *value += step * slope);
            self.mean += scale(config.critic, mean) * estimate.mean;
        }
        let policy: Vec<f64> = self.logits.chunks(actions).flat_map(softmax).collect();
        let steps = match config.batches {
            Batches::Fixed { steps } => steps,
            Batches::Levels { most } => {
                let mut level = 1;
                while draws.chance(0.5) {
                    level += 1;
                }
                1u32.checked_shl(level).filter(|steps| *steps <= most).unwrap_or(1)
            }
        };
        Play { policy, steps: Some(steps), ..Play::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Batch;
    use crate::learner::testing::{sample, task};
    use crate::process::Objective;
    use crate::process_library::garnet;
    use polity_base::rng::Stream;

    /// The estimate over levels has the mean of the long batch: with values and logits at 0, that of the reward.
    #[test]
    fn levels_are_not_biased() {
        let mut draws = Draws::new(6, Stream::World, 0, 0);
        let process = garnet(3, &[2], 2, 1, &mut draws);
        let task = task(&process, Objective::Average, vec![1.0]);
        let config = Config { batches: Batches::Levels { most: 64 }, actor: 0.0, critic: 0.0, adaptive: false };
        let policy = vec![0.5; 6];
        let (mut sum, mut cost, runs) = (0.0, 0.0, 60_000);
        for _ in 0..runs {
            let mut learner = MultiLevel::default();
            let empty = Batch::default();
            let mut view = View { task: &task, batch: &empty, model: None, baseline: None };
            let steps = learner.play(&config, &view, &mut draws).steps.unwrap();
            let batch = sample(&process, &policy, &mut 0, steps as usize, &mut draws);
            view.batch = &batch;
            sum += learner.estimate(&config, &view).unwrap().mean;
            cost += f64::from(steps);
        }
        // The mean over the first 64 steps from the first state.
        let mut shares = vec![1.0, 0.0, 0.0];
        let mut expected = 0.0;
        for _ in 0..64 {
            let mut next = vec![0.0; 3];
            for (pair, p) in policy.iter().enumerate() {
                expected += shares[pair / 2] * p * process.reward(pair, &[1.0]) / 64.0;
                process.next[pair].iter().for_each(|(to, q)| next[*to as usize] += shares[pair / 2] * p * q);
            }
            shares = next;
        }
        let (mean, cost) = (sum / f64::from(runs), cost / f64::from(runs));
        assert!((mean - expected).abs() < 0.03, "{mean} {expected}");
        // Six levels cost a step each.
        assert!((cost - 6.0).abs() < 0.2, "{cost}");
    }
}
