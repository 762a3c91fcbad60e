//! Mixtures of given controllers, learnt without a model: improper reinforcement learning.
//!
//! After Zaki, Mohan, Gopalan and Mannor, "Actor-Critic based Improper Reinforcement Learning" (ICML 2022). In each step a controller is
//! drawn from a softmax and chooses the action. What is learnt is the softmax, not the actions.

use crate::learner::{Batch, Play, View};
use crate::process::{best, softmax};
use serde::{Deserialize, Serialize};

/// A controller: a fixed rule from states to actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Always the same action.
    Always(usize),
    /// The action with the number of the largest feature of the state, such as the longest queue.
    Largest,
}

/// How the softmax is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Policy gradient with the discounted rewards that followed, less their mean; no critic.
    Gradient,
    /// Actor and critic.
    ActorCritic,
    /// Natural actor and critic.
    Natural,
    /// Equal shares that never change.
    Fixed,
}

/// How it learns.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The controllers.
    pub controllers: Vec<Controller>,
    /// How the softmax is learnt.
    pub rule: Rule,
    /// Step of the softmax.
    pub step: f64,
    /// Step of the critic.
    pub critic: f64,
    /// Discount factor of the critic or of the rewards that follow.
    pub discount: f64,
}

/// Checks that all actions of controllers exist.
///
/// # Errors
/// Which does not.
pub fn check(controllers: &[Controller], actions: usize) -> Result<(), String> {
    let unknown = |controller: &Controller| match controller {
        Controller::Always(action) if *action >= actions => Some(*action),
        _ => None,
    };
    match controllers.iter().find_map(unknown) {
        Some(action) => Err(format!("there is no action {action} for a controller; the process has {actions}")),
        None => Ok(()),
    }
}

/// Logits of controllers, and the critic's values of states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Improper {
    logits: Vec<f64>,
    values: Vec<f64>,
}

/// The features of a state.
#[must_use]
pub fn features(mut state: usize, sizes: &[usize]) -> Vec<usize> {
    let mut features = vec![0; sizes.len()];
    for (feature, size) in features.iter_mut().zip(sizes).rev() {
        *feature = state % size;
        state /= size;
    }
    features
}

impl Improper {
    /// The share of each controller.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        softmax(&self.logits)
    }

    /// For each step, how much it speaks for the action that was taken.
    fn advantages(&mut self, config: &Config, view: &View<'_>) -> Vec<f64> {
        let Batch { steps, .. } = view.batch;
        let reward = |rewards: &[f64]| rewards.iter().zip(&view.task.weights).map(|(r, w)| r * w).sum::<f64>();
        let mut found: Vec<f64> = view.batch.iter().map(|(_, rewards)| reward(rewards)).collect();
        if config.rule == Rule::Gradient {
            let mean = found.iter().sum::<f64>() / found.len().max(1) as f64;
            let mut after = 0.0;
            for (found, step) in found.iter_mut().zip(steps).rev() {
                after = *found - mean + if step.ends { 0.0 } else { config.discount * after };
                *found = after;
            }
            let mean = found.iter().sum::<f64>() / found.len().max(1) as f64;
            found.iter_mut().for_each(|found| *found -= mean);
            return found;
        }
        for (found, step) in found.iter_mut().zip(steps) {
            let next = if step.ends { 0.0 } else { config.discount * self.values[step.next as usize] };
            let value = &mut self.values[step.state as usize];
            *found += next - *value;
            *value += config.critic * *found;
        }
        found
    }

    /// Learns from the last round and plays the next.
    pub fn play(&mut self, config: &Config, view: &View<'_>) -> Play {
        let (task, actions) = (view.task, view.task.actions());
        if self.logits.is_empty() {
            self.logits = vec![0.0; config.controllers.len()];
            self.values = vec![0.0; task.states];
        }
        let chosen = |controller: &Controller, state: usize| match controller {
            Controller::Always(action) => (*action).min(actions - 1),
            Controller::Largest => {
                let sizes: Vec<f64> = features(state, &task.features).into_iter().map(|n| n as f64).collect();
                best(&sizes).min(actions - 1)
            }
        };
        let shares = self.shares();
        let advantages = self.advantages(config, view);
        let mut gains = vec![0.0; shares.len()];
        for (step, advantage) in view.batch.steps.iter().zip(&advantages) {
            // A controller that would have done the same is credited with its share of the action's probability.
            let same = |controller: &Controller| chosen(controller, step.state as usize) == step.action as usize;
            let p: f64 = config.controllers.iter().zip(&shares).filter(|(c, _)| same(c)).map(|(_, share)| share).sum();
            for (gain, controller) in gains.iter_mut().zip(&config.controllers) {
                *gain += if same(controller) { advantage / p.max(1e-9) } else { 0.0 } / advantages.len() as f64;
            }
        }
        let mean: f64 = gains.iter().zip(&shares).map(|(gain, share)| gain * share).sum();
        for ((logit, gain), share) in self.logits.iter_mut().zip(&gains).zip(&shares) {
            *logit += match config.rule {
                Rule::Fixed => 0.0,
                Rule::Natural => config.step * (gain - mean),
                Rule::Gradient | Rule::ActorCritic => config.step * share * (gain - mean),
            };
        }
        let shares = self.shares();
        let mut policy = vec![0.0; task.states * actions];
        for state in 0..task.states {
            for (controller, share) in config.controllers.iter().zip(&shares) {
                policy[state * actions + chosen(controller, state)] += share;
            }
        }
        Play { policy, ..Play::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Step;
    use crate::learner::testing::{sample, task};
    use crate::process::{Objective, Process};
    use crate::process_library::queues;
    use polity_base::rng::{Draws, Stream};

    /// The share of the first queue after some rounds, and the mean reward a step.
    fn learnt(rule: Rule, arrivals: [f64; 2], seed: u32) -> (f64, f64) {
        let mut draws = Draws::new(4, Stream::World, 0, seed);
        let process = queues(12, arrivals);
        let task = task(&process, Objective::Average, vec![1.0]);
        let controllers = vec![Controller::Always(0), Controller::Always(1)];
        let step = if rule == Rule::ActorCritic { 5.0 } else { 2.0 };
        let config = Config { controllers, rule, step, critic: 0.1, discount: 0.9 };
        let (mut learner, mut batch, mut at) = (Improper::default(), Batch::default(), 0);
        let mut policy = Vec::new();
        for _ in 0..150 {
            policy = learner.play(&config, &View { task: &task, batch: &batch, model: None, baseline: None }).policy;
            batch = sample(&process, &policy, &mut at, 500, &mut draws);
        }
        (learner.shares()[0], process.evaluate(&Objective::Average, &[1.0], &policy).value)
    }

    #[test]
    fn the_server_learns_to_divide_its_time() {
        for rule in [Rule::Gradient, Rule::ActorCritic, Rule::Natural] {
            for seed in 0..3 {
                let (share, value) = learnt(rule, [0.2, 0.6], seed);
                println!("{rule:?} {share} {value}");
                assert!((0.2..0.4).contains(&share), "{rule:?} {share} {value}");
            }
        }
        let fixed = learnt(Rule::Fixed, [0.2, 0.6], 0);
        assert!(fixed.0 == 0.5 && fixed.1 < -0.4, "{fixed:?}");
    }

    /// Steps of 0.02 s until the pole leans more than 0.21 or the cart is 2.4 away, at most 500. In each step a controller of those given by
    /// their gains sets the force, as `choose` says.
    fn balance(gains: &[[f64; 4]], draws: &mut Draws, mut choose: impl FnMut(&mut Draws) -> usize) -> Vec<usize> {
        let mut s: [f64; 4] = std::array::from_fn(|_| draws.range(-0.05, 0.05));
        let mut chosen = Vec::new();
        while chosen.len() < 500 && s[0].abs() <= 2.4 && s[2].abs() <= 0.21 {
            chosen.push(choose(draws));
            let gain = gains[chosen[chosen.len() - 1]];
            let force = (0..4).map(|i| gain[i] * s[i]).sum::<f64>().clamp(-20.0, 20.0);
            let (sine, cosine) = (libm::sin(s[2]), libm::cos(s[2]));
            let pushed = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
            let turned = (9.8 * sine - cosine * pushed) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
            s[1] += 0.02 * (pushed - 0.05 * turned * cosine / 1.1);
            s[0] += 0.02 * s[1];
            s[3] += 0.02 * turned;
            s[2] += 0.02 * s[3];
        }
        chosen
    }

    #[test]
    fn a_cart_pole_is_balanced_by_controllers_each_of_which_drops_it() {
        // One turns back to the middle too hard, one away from it.
        let gains = [[8.78, 1.72, 29.1, 7.1], [-23.22, 1.72, 29.1, 7.1]];
        let process = Process { states: 1, moves: vec![2], channels: 1, ..Process::default() };
        let mut task = task(&process, Objective::Average, vec![1.0]);
        task.features = vec![1];
        let controllers = vec![Controller::Always(0), Controller::Always(1)];
        let run = |rule, seed: u32, rounds: u32| {
            let mut draws = Draws::new(9, Stream::World, 0, seed);
            let config = Config { controllers: controllers.clone(), rule, step: 20.0, critic: 0.1, discount: 0.99 };
            let (mut learner, mut batch) = (Improper::default(), Batch::default());
            let mut lengths = Vec::new();
            for _ in 0..rounds {
                let view = View { task: &task, batch: &batch, model: None, baseline: None };
                let policy = learner.play(&config, &view).policy;
                batch = Batch::default();
                lengths.clear();
                for _ in 0..20 {
                    let chosen = balance(&gains, &mut draws, |draws| usize::from(!draws.chance(policy[0])));
                    let n = chosen.len();
                    lengths.push(n as f64);
                    for (i, action) in chosen.into_iter().enumerate() {
                        batch.steps.push(Step { state: 0, action: action as u32, next: 0, ends: i + 1 == n });
                        batch.rewards.push(if i + 1 == n && n < 500 { -1.0 } else { 0.0 });
                    }
                }
            }
            (learner.shares()[0], lengths.iter().sum::<f64>() / 20.0)
        };
        let mut draws = Draws::new(9, Stream::World, 1, 0);
        for only in 0..2 {
            let longest = (0..50).map(|_| balance(&gains, &mut draws, |_| only).len()).max();
            println!("controller {only}: {longest:?}");
            assert!(longest.is_some_and(|longest| longest < 500));
        }
        for seed in 0..5 {
            let (learnt, fixed) = (run(Rule::Gradient, seed, 150), run(Rule::Fixed, seed, 1));
            println!("learnt {learnt:?}, equal shares {fixed:?}");
            assert!(learnt.1 > 450.0 && fixed.1 < 250.0, "{learnt:?} {fixed:?}");
        }
    }

    #[test]
    fn controllers_need_actions() {
        check(&[Controller::Always(1), Controller::Largest], 2).unwrap();
        assert!(check(&[Controller::Always(2)], 2).unwrap_err().contains("no action 2"));
    }

    #[test]
    fn features_are_the_digits_of_a_state() {
        assert_eq!(features(0, &[3, 4]), [0, 0]);
        assert_eq!(features(11, &[3, 4]), [2, 3]);
    }
}
