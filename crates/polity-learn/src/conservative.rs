//! Optimistic exploration that never falls below a floor: step mixtures and mixtures of episodes with a known baseline.
//!
//! After Li, Huang, Shen and Yang, "Near-optimal Conservative Exploration in Reinforcement Learning under Episode-wise Constraints" (ICML
//! 2023). Rewards of a step must lie in 0 to 1 and depend on state and action alone. Transitions are unknown.

use crate::learner::{Baseline, Counts, Play, Task, View};
use crate::process::{Objective, greedy};
use serde::{Deserialize, Serialize};

/// How the baseline is mixed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// The first steps follow the baseline, as few as the floor allows, and the rest is optimistic; the step between them is drawn.
    Step,
    /// Each episode is drawn: all of it is optimistic, or all of it follows the baseline.
    Episode,
    /// The optimistic policy, whatever the floor.
    Never,
    /// The baseline alone.
    Always,
}

/// How it explores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How the baseline is mixed in.
    pub mixing: Mixing,
    /// Probability with which some confidence bound may fail.
    pub failure: f64,
    /// Number of episodes that the bounds must hold for.
    pub episodes: u32,
    /// Factor of the bounds; 1 is what theory asks for.
    pub width: f64,
}

/// What it has counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conservative {
    counts: Counts,
}

/// Estimates of the process from counts.
struct Model<'a> {
    task: &'a Task,
    counts: &'a Counts,
    horizon: usize,
    /// The logarithm in the confidence bounds.
    log: f64,
    width: f64,
}

impl Model<'_> {
    /// The value of a pair at a stage, and how far off it may be: empirical Bernstein (Maurer and Pontil 2009) or Hoeffding, whichever is less.
    fn ahead(&self, stage: usize, pair: usize, v: &[f64]) -> (f64, f64) {
        let (n, range) = (f64::from(self.counts.seen[pair]), (self.horizon - 1 - stage) as f64);
        if n == 0.0 || range == 0.0 {
            return (0.0, range);
        }
        let next = &self.counts.next[pair * self.task.states..(pair + 1) * self.task.states];
        let mean = next.iter().zip(v).map(|(count, v)| f64::from(*count) * v).sum::<f64>() / n;
        let square = next.iter().zip(v).map(|(count, v)| f64::from(*count) * (v - mean) * (v - mean)).sum::<f64>() / n;
        let hoeffding = range * (self.log / (2.0 * n)).sqrt();
        let bernstein = (2.0 * square * self.log / n).sqrt() + 7.0 / 3.0 * range * self.log / n;
        (mean, (self.width * hoeffding.min(bernstein)).min(range))
    }

    /// The optimistic values of all stages.
    fn optimistic(&self) -> Vec<f64> {
        let (actions, pairs) = (self.task.actions(), self.task.states * self.task.actions());
        let mut q = vec![0.0; self.horizon * pairs];
        let mut v = vec![0.0; self.task.states];
        for stage in (0..self.horizon).rev() {
            for pair in 0..pairs {
                let (mean, off) = self.ahead(stage, pair, &v);
                let reward = if self.counts.seen[pair] == 0 { 1.0 } else { self.counts.mean_reward(pair) };
                q[stage * pairs + pair] = (reward + mean + off).min((self.horizon - stage) as f64);
            }
            let now = q[stage * pairs..(stage + 1) * pairs].chunks(actions);
            v = now.map(|q| q.iter().copied().fold(0.0, f64::max)).collect();
        }
        q
    }

    /// The least that a policy is worth.
    fn least(&self, policy: &[f64]) -> f64 {
        let (actions, pairs) = (self.task.actions(), self.task.states * self.task.actions());
        let mut v = vec![0.0; self.task.states];
        for stage in (0..self.horizon).rev() {
            let q = |pair: usize| {
                let (mean, off) = self.ahead(stage, pair, &v);
                (self.counts.mean_reward(pair) + mean - off).max(0.0)
            };
            let value = |state: usize| -> f64 {
                (state * actions..(state + 1) * actions).map(|pair| policy[stage * pairs + pair] * q(pair)).sum()
            };
            v = (0..self.task.states).map(value).collect();
        }
        self.task.initial.iter().zip(&v).map(|(p, v)| p * v).sum()
    }
}

/// The probability of the policy that is worth at least `low` beside one worth at least `high`, so that the mixture is worth `floor`.
fn share(low: f64, high: f64, floor: f64) -> f64 {
    match high > low {
        true => ((high - floor) / (high - low)).clamp(0.0, 1.0),
        false => 0.0,
    }
}

impl Conservative {
    /// Learns from the last round and plays the next. Without a baseline or episodes it plays nothing.
    pub fn play(&mut self, config: &Config, view: &View<'_>) -> Play {
        let (task, Some(Baseline { policy: baseline, value, floor })) = (view.task, view.baseline) else {
            return Play::default();
        };
        let Objective::Episodic { horizon, .. } = task.objective else { return Play::default() };
        self.counts.add(task, view.batch);
        let pairs = task.states * task.actions();
        let events = 2.0 * (pairs * horizon) as f64 * f64::from(config.episodes.max(1));
        let model = Model {
            task,
            counts: &self.counts,
            horizon,
            log: libm::log(2.0 * events / config.failure),
            width: config.width,
        };
        let hopeful = greedy(&model.optimistic(), task.actions());
        let mixed = |steps: usize| [&baseline[..steps * pairs], &hopeful[steps * pairs..]].concat();
        let play = match config.mixing {
            Mixing::Never => Play { policy: hopeful.clone(), ..Play::default() },
            Mixing::Always => Play { policy: baseline.clone(), ..Play::default() },
            Mixing::Episode => {
                let least = model.least(&hopeful);
                let policy = hopeful.clone();
                let other = (least < *floor).then(|| (1.0 - share(least, *value, *floor), baseline.clone()));
                Play { policy, other, ..Play::default() }
            }
            Mixing::Step => {
                let mut before = model.least(&hopeful);
                let mut policy = hopeful.clone();
                for steps in 1..=horizon {
                    if before >= *floor {
                        break;
                    }
                    policy = mixed(steps);
                    let least = if steps == horizon { *value } else { model.least(&policy) };
                    if least >= *floor {
                        // The two differ in one step, so their mixture there is worth the mean of what they are worth.
                        let share = share(before, least, *floor);
                        for i in (steps - 1) * pairs..steps * pairs {
                            policy[i] = share * hopeful[i] + (1.0 - share) * baseline[i];
                        }
                        break;
                    }
                    before = least;
                }
                Play { policy, ..Play::default() }
            }
        };
        Play { target: Some(hopeful), ..play }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Batch;
    use crate::learner::testing::{sample, task};
    use crate::process::{Process, softmax};
    use crate::process_library::garnet;
    use polity_base::rng::{Draws, Stream};

    fn one_episode(process: &Process, policy: &[f64], horizon: usize, draws: &mut Draws) -> Batch {
        let mut batch = Batch::default();
        let mut at = process.begin(draws);
        for stage in 0..horizon {
            let now = sample(process, &policy[stage * process.pairs()..], &mut at, 1, draws);
            batch.steps.extend(now.steps);
            batch.rewards.extend(now.rewards);
        }
        batch
    }

    /// Violations, and regret in the first and the second half.
    fn run(mixing: Mixing, seed: u32, episodes: u32) -> (u32, [f64; 2]) {
        let mut draws = Draws::new(2, Stream::World, 0, seed);
        let process = garnet(3, &[2], 2, 1, &mut draws);
        let objective = Objective::Episodic { horizon: 3, discounts: vec![1.0] };
        let task = task(&process, objective.clone(), vec![1.0]);
        let optimum = process.optimum(&objective, &[1.0]);
        let policy: Vec<f64> =
            optimum.q.chunks(2).flat_map(|q| softmax(&q.iter().map(|q| 5.0 * q).collect::<Vec<_>>())).collect();
        let value = process.evaluate(&objective, &[1.0], &policy).value;
        let baseline = Baseline { policy, value, floor: 0.95 * value };
        let config = Config { mixing, failure: 0.1, episodes, width: 1.0 };
        let (mut learner, mut batch) = (Conservative::default(), Batch::default());
        let (mut broken, mut regret) = (0, [0.0; 2]);
        for episode in 0..episodes {
            let view = View { task: &task, batch: &batch, model: None, baseline: Some(&baseline) };
            let play = learner.play(&config, &view);
            let mut value = process.evaluate(&objective, &[1.0], &play.policy).value;
            let mut acts = &play.policy;
            if let Some((p, other)) = &play.other {
                value = (1.0 - p) * value + p * process.evaluate(&objective, &[1.0], other).value;
                acts = if draws.chance(*p) { other } else { acts };
            }
            broken += u32::from(value < baseline.floor - 1e-9);
            regret[usize::from(episode >= episodes / 2)] += optimum.value - value;
            batch = one_episode(&process, acts, 3, &mut draws);
        }
        (broken, regret)
    }

    #[test]
    fn mixtures_keep_the_floor_and_learn_and_optimism_alone_breaks_it() {
        let total = |mixing| {
            let runs = (0..6).map(|seed| run(mixing, seed, 1000));
            runs.fold((0, [0.0; 2]), |(a, b), (c, d)| (a + c, [b[0] + d[0], b[1] + d[1]]))
        };
        let (step, episode, never) = (total(Mixing::Step), total(Mixing::Episode), total(Mixing::Never));
        println!("{step:?} {episode:?} {never:?} {:?}", total(Mixing::Always));
        assert_eq!((step.0, episode.0), (0, 0));
        assert!(never.0 > 20, "{never:?}");
        assert!(step.1[1] < step.1[0] && episode.1[1] < episode.1[0], "{step:?} {episode:?}");
    }
}
