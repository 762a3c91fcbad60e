//! What tabular learners see of a process and what they do, round by round.

use crate::process::{Objective, Process};
use serde::{Deserialize, Serialize};

/// What a learner knows of its task from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Number of states.
    pub states: usize,
    /// Number of moves of each seat.
    pub moves: Vec<usize>,
    /// Sizes of the features that a state is made of, the slowest first.
    pub features: Vec<usize>,
    /// The probability that an episode begins in a state.
    pub initial: Vec<f64>,
    /// How rewards add up.
    pub objective: Objective,
    /// Weights of the channels of reward.
    pub weights: Vec<f64>,
}

impl Task {
    /// Number of joint actions.
    #[must_use]
    pub fn actions(&self) -> usize {
        self.moves.iter().product()
    }

    /// The factor by which a reward of the next step counts less; 1 for averages. Of episodes, the first channel's.
    #[must_use]
    pub fn discount(&self) -> f64 {
        match &self.objective {
            Objective::Episodic { discounts, .. } => discounts.first().copied().unwrap_or(1.0),
            Objective::Discounted { discount } => *discount,
            Objective::Average => 1.0,
        }
    }
}

/// A sampled step. Its rewards are beside it, in [`Batch::rewards`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Where it began.
    pub state: u32,
    /// The joint action.
    pub action: u32,
    /// Where it led.
    pub next: u32,
    /// Whether the episode ended with it.
    pub ends: bool,
}

/// The steps of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// In order.
    pub steps: Vec<Step>,
    /// For each step, the reward of each channel.
    pub rewards: Vec<f64>,
}

impl Batch {
    /// Each step with its rewards.
    pub fn iter(&self) -> impl Iterator<Item = (&Step, &[f64])> {
        let channels = self.rewards.len() / self.steps.len().max(1);
        self.steps.iter().zip(self.rewards.chunks(channels.max(1)))
    }
}

/// A policy that is known from the start, and what must not be fallen below.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// For each stage, state and joint action: a probability.
    pub policy: Vec<f64>,
    /// What it is worth.
    pub value: f64,
    /// What every episode must be worth in expectation.
    pub floor: f64,
}

/// What a learner sees in a round.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The task.
    pub task: &'a Task,
    /// What the last round's policy led to; empty at first.
    pub batch: &'a Batch,
    /// The process itself, if the learner may know it.
    pub model: Option<&'a Process>,
    /// The known policy, if there is one.
    pub baseline: Option<&'a Baseline>,
}

/// What a learner does in a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Play {
    /// The policy that acts: for each stage or for all, each state and each joint action a probability.
    pub policy: Vec<f64>,
    /// Another policy, which acts in an episode in its place with this probability.
    pub other: Option<(f64, Vec<f64>)>,
    /// The policy that the learner holds to be best, if it is not the one that acts.
    pub target: Option<Vec<f64>>,
    /// Action values as the learner estimates them.
    pub estimate: Option<Vec<f64>>,
    /// Number of steps to sample, if it is not the usual one.
    pub steps: Option<u32>,
}

/// The greedy policy, softened: with probability `explore` an action is uniform.
#[must_use]
pub fn explored(greedy: &[f64], actions: usize, explore: f64) -> Vec<f64> {
    greedy.iter().map(|p| (1.0 - explore) * p + explore / actions as f64).collect()
}

/// Counts of transitions, and sums of rewards over channels, for each pair of state and joint action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// How often each state followed, state by state.
    pub next: Vec<u32>,
    /// How often each pair was seen.
    pub seen: Vec<u32>,
    /// The sum of its rewards, weighted over channels.
    pub reward: Vec<f64>,
}

impl Counts {
    /// Counts a batch.
    pub fn add(&mut self, task: &Task, batch: &Batch) {
        let (states, actions) = (task.states, task.actions());
        self.next.resize(states * actions * states, 0);
        self.seen.resize(states * actions, 0);
        self.reward.resize(states * actions, 0.0);
        for (step, rewards) in batch.iter() {
            let pair = step.state as usize * actions + step.action as usize;
            if pair < self.seen.len() && (step.next as usize) < states {
                self.next[pair * states + step.next as usize] += 1;
                self.seen[pair] += 1;
                self.reward[pair] +=
                    rewards.iter().zip(&task.weights).map(|(reward, weight)| reward * weight).sum::<f64>();
            }
        }
    }

    /// The mean reward of a pair; 0 if it was never seen.
    #[must_use]
    pub fn mean_reward(&self, pair: usize) -> f64 {
        self.reward[pair] / f64::from(self.seen[pair].max(1))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::process::greedy;
    use polity_base::rng::{Draws, Stream};

    /// The task of a process.
    pub fn task(process: &Process, objective: Objective, weights: Vec<f64>) -> Task {
        Task {
            states: process.states,
            moves: process.moves.clone(),
            features: process.features.clone(),
            initial: process.initial.clone(),
            objective,
            weights,
        }
    }

    /// Plays a policy for a number of steps from a state on.
    pub fn sample(process: &Process, policy: &[f64], at: &mut usize, steps: usize, draws: &mut Draws) -> Batch {
        let actions = process.actions();
        let mut batch = Batch::default();
        for _ in 0..steps {
            let action = draws.weighted(&policy[*at * actions..(*at + 1) * actions]).unwrap();
            let pair = *at * actions + action;
            let next = process.draw_next(pair, draws);
            let ends = process.terminal[next];
            batch.steps.push(Step { state: *at as u32, action: action as u32, next: next as u32, ends });
            batch.rewards.extend(&process.rewards[pair * process.channels..(pair + 1) * process.channels]);
            *at = if ends { process.begin(draws) } else { next };
        }
        batch
    }

    #[test]
    fn counts_are_means() {
        let process = crate::process_library::chain(3, 0.5, 0.2);
        let task = task(&process, Objective::Average, vec![2.0]);
        let mut counts = Counts::default();
        let mut draws = Draws::new(1, Stream::World, 0, 0);
        let policy = explored(&greedy(&[0.0; 6], 2), 2, 1.0);
        counts.add(&task, &sample(&process, &policy, &mut 0, 10_000, &mut draws));
        assert_eq!(counts.seen.iter().sum::<u32>(), 10_000);
        assert!((counts.mean_reward(0) - 0.4).abs() < 1e-9);
        let climbed = f64::from(counts.next[3 + 1]) / f64::from(counts.seen[1]);
        assert!((climbed - 0.5).abs() < 0.03, "{climbed}");
    }
}
