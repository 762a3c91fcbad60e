//! Several Q-learners that control one body together, each with its own moves, view and reward.
//!
//! After van Seijen, Fatemi, Romoff and Laroche, "Separation of Concerns in Reinforcement Learning" (2016).

use crate::improper::features;
use crate::learner::{Play, View};
use serde::{Deserialize, Serialize};

/// One of the learners.
#[derive(Clone, Debug, PartialEq)]
pub struct Concern {
    /// The seats whose moves it makes, in order.
    pub seats: Vec<usize>,
    /// The features of the state that it sees, in order.
    pub sees: Vec<usize>,
    /// Its reward: the weight of each channel.
    pub reward: Vec<f64>,
    /// Whether what it has learnt survives the round of forgetting.
    pub kept: bool,
}

/// How all of them learn.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The learners. Together they make the moves of all seats, each once.
    pub concerns: Vec<Concern>,
    /// Rate of learning.
    pub rate: f64,
    /// Probability of a uniform move.
    pub explore: f64,
    /// The round before which all but those kept forget.
    pub forget: Option<u32>,
}

/// Their action values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Concerns {
    values: Vec<Vec<f64>>,
    round: u32,
}

/// Checks that every seat's move is made by one learner, and that all features and channels are there.
///
/// # Errors
/// What is missing.
pub fn check(concerns: &[Concern], moves: &[usize], sizes: &[usize], channels: usize) -> Result<(), String> {
    let mut seats: Vec<usize> = concerns.iter().flat_map(|concern| concern.seats.iter().copied()).collect();
    seats.sort_unstable();
    if !seats.into_iter().eq(0..moves.len()) {
        return Err(format!("each of the {} seats needs one learner that makes its moves", moves.len()));
    }
    for concern in concerns {
        if let Some(feature) = concern.sees.iter().find(|feature| **feature >= sizes.len()) {
            return Err(format!("there is no feature {feature}; the state has {}", sizes.len()));
        }
        if concern.reward.len() != channels {
            return Err(format!("a reward needs {channels} weights, one for each channel"));
        }
    }
    Ok(())
}

/// The number that some digits make.
fn code(digits: impl Iterator<Item = (usize, usize)>) -> usize {
    digits.fold(0, |code, (digit, size)| code * size + digit)
}

impl Concern {
    fn actions(&self, moves: &[usize]) -> usize {
        self.seats.iter().map(|seat| moves[*seat]).product()
    }

    fn seen(&self, state: usize, sizes: &[usize]) -> usize {
        let all = features(state, sizes);
        code(self.sees.iter().map(|feature| (all[*feature], sizes[*feature])))
    }

    fn made(&self, action: usize, moves: &[usize]) -> usize {
        let all = features(action, moves);
        code(self.seats.iter().map(|seat| (all[*seat], moves[*seat])))
    }
}

impl Concerns {
    /// Learns from the last round and plays the next.
    pub fn play(&mut self, config: &Config, view: &View<'_>) -> Play {
        let task = view.task;
        let (moves, sizes, discount) = (&task.moves, &task.features, task.discount());
        let size = |concern: &Concern| {
            concern.sees.iter().map(|feature| sizes[*feature]).product::<usize>() * concern.actions(moves)
        };
        if self.values.is_empty() {
            self.values = config.concerns.iter().map(|concern| vec![0.0; size(concern)]).collect();
        }
        for (concern, values) in config.concerns.iter().zip(&mut self.values) {
            let own = concern.actions(moves);
            for (step, rewards) in view.batch.iter() {
                let reward: f64 = rewards.iter().zip(&concern.reward).map(|(reward, weight)| reward * weight).sum();
                let pair = concern.seen(step.state as usize, sizes) * own + concern.made(step.action as usize, moves);
                let next = concern.seen(step.next as usize, sizes) * own;
                let ahead = values[next..next + own].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let goal = reward + if step.ends { 0.0 } else { discount * ahead };
                values[pair] += config.rate * (goal - values[pair]);
            }
            if config.forget == Some(self.round) && !concern.kept {
                values.fill(0.0);
            }
        }
        self.round += 1;
        // Equal values are equally likely.
        let actions = task.actions();
        let mut policy = vec![1.0; task.states * actions];
        let mut target = policy.clone();
        for (concern, values) in config.concerns.iter().zip(&self.values) {
            let own = concern.actions(moves);
            let best: Vec<f64> = values
                .chunks(own)
                .flat_map(|q| {
                    let most = q.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let ties = q.iter().filter(|q| **q >= most - 1e-12).count() as f64;
                    q.iter().map(move |q| if *q >= most - 1e-12 { 1.0 / ties } else { 0.0 }).collect::<Vec<f64>>()
                })
                .collect();
            let made: Vec<usize> = (0..actions).map(|action| concern.made(action, moves)).collect();
            for state in 0..task.states {
                let seen = concern.seen(state, sizes) * own;
                for (action, made) in made.iter().enumerate() {
                    let p = best[seen + made];
                    target[state * actions + action] *= p;
                    policy[state * actions + action] *= (1.0 - config.explore) * p + config.explore / own as f64;
                }
            }
        }
        Play { policy, target: Some(target), ..Play::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Batch;
    use crate::learner::testing::{sample, task};
    use crate::process::Objective;
    use crate::process_library::catch;
    use polity_base::rng::{Draws, Stream};

    fn concern(seats: &[usize], sees: &[usize], reward: [f64; 2], kept: bool) -> Concern {
        Concern { seats: seats.to_vec(), sees: sees.to_vec(), reward: reward.to_vec(), kept }
    }

    /// Rounds of 5 episodes until 90 % are caught, then the same in the changed task.
    fn rounds(concerns: Vec<Concern>, seed: u32) -> [usize; 2] {
        let mut draws = Draws::new(8, Stream::World, 0, seed);
        let objective = Objective::Episodic { horizon: 5, discounts: vec![1.0; 2] };
        let weights = vec![1.0, 0.0];
        let mut found = [600; 2];
        let (mut learner, mut batch) = (Concerns::default(), Batch::default());
        for (half, found) in found.iter_mut().enumerate() {
            let process = catch(6, 5, half == 1);
            let best = process.optimum(&objective, &weights).value;
            let task = task(&process, objective.clone(), weights.clone());
            let config = Config { concerns: concerns.clone(), rate: 0.2, explore: 0.1, forget: Some(600) };
            for round in 0..600 {
                let play = learner.play(&config, &View { task: &task, batch: &batch, model: None, baseline: None });
                let mut at = process.begin(&mut draws);
                batch = sample(&process, &play.policy, &mut at, 25, &mut draws);
                if *found == 600 && process.evaluate(&objective, &weights, &play.target.unwrap()).value > 0.9 * best {
                    *found = round;
                }
            }
        }
        found
    }

    #[test]
    fn two_learn_faster_than_one_and_a_kept_part_helps() {
        let total = |concerns: Vec<Concern>| {
            let runs = (0..4).map(|seed| rounds(concerns.clone(), seed));
            runs.fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]])
        };
        let flat = total(vec![concern(&[0, 1], &[0, 1, 2, 3], [1.0, 0.0], false)]);
        let body = |kept| concern(&[0], &[0, 1, 2], [0.0, 1.0], kept);
        let arm = || concern(&[1], &[0, 1, 2, 3], [1.0, 0.0], false);
        let (two, kept) = (total(vec![body(false), arm()]), total(vec![body(true), arm()]));
        println!("flat {flat:?} two {two:?} kept {kept:?}");
        assert!(3 * two[0] < 2 * flat[0] && 3 * kept[1] < 2 * two[1], "{flat:?} {two:?} {kept:?}");
    }

    #[test]
    fn seats_without_a_learner_are_refused() {
        let alone = [concern(&[0], &[0], [1.0, 0.0], false)];
        assert!(check(&alone, &[3, 3], &[2, 2], 2).unwrap_err().contains("each of the 2 seats"));
        let blind = [concern(&[0, 1], &[5], [1.0, 0.0], false)];
        assert!(check(&blind, &[3, 3], &[2, 2], 2).unwrap_err().contains("no feature 5"));
    }
}
