//! Q-learning whose values live in mapped spaces, one for each channel of reward.
//!
//! After Fatemi and Tavakoli, "Orchestrated Value Mapping for Reinforcement Learning" (ICLR 2022). The reward is a weighted sum of
//! parts. Each part has its own values, which are stored under an increasing map. All parts bootstrap on the action that is best for their weighted sum.
//! A single part under the identity is Q-learning; the positive and the negative part under a logarithm are Log Q-learning;
//! one part a channel under the identity is Q-decomposition.

use crate::learner::{Play, View, explored};
use crate::process::{best, greedy};
use serde::{Deserialize, Serialize};

/// The part of the reward that a value is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// All of it.
    Sum,
    /// What is above 0.
    Positive,
    /// What is below 0, as a positive number.
    Negative,
    /// One channel, by number from 0.
    Channel(usize),
}

/// An increasing map under which values are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mapping {
    /// None.
    Identity,
    /// `scale` times the logarithm of the value plus `offset`. Values must be 0 or more.
    Log {
        /// The factor; above 0.
        scale: f64,
        /// What is added to the value; above 0.
        offset: f64,
    },
    /// The value's size to a power, with its sign.
    Power {
        /// The exponent; above 0.
        exponent: f64,
    },
}

/// A part with its weight and its map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// Which part of the reward.
    pub part: Part,
    /// The weight of its values in the sum.
    pub weight: f64,
    /// How they are stored.
    pub mapping: Mapping,
}

/// How values are learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The parts.
    pub channels: Vec<Channel>,
    /// Visits to the power of minus this are the rate of the plain average, before the map.
    pub decay: f64,
    /// The rate of the average under the map.
    pub mapped_rate: f64,
    /// It falls with visits to the power of minus this.
    pub mapped_decay: f64,
    /// Probability of a uniform action.
    pub explore: f64,
    /// Whether each part bootstraps on the action that is best for itself.
    pub selfish: bool,
}

impl Mapping {
    /// Checks that the map is increasing and defined on the values of a part.
    ///
    /// # Errors
    /// Which rule is broken.
    pub fn check(&self, part: Part) -> Result<(), String> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        match *self {
            Mapping::Log { scale, offset } => {
                if !positive(scale) || !positive(offset) {
                    return Err(format!(
                        "a logarithm needs a scale and an offset above 0 to be increasing, not {scale} and {offset}"
                    ));
                }
                match part {
                    Part::Positive | Part::Negative => Ok(()),
                    Part::Sum | Part::Channel(_) => Err("a logarithm needs values that cannot be negative: map the positive and the negative part, each with its own values".into()),
                }
            }
            Mapping::Power { exponent } if !positive(exponent) => {
                Err(format!("a power is increasing with an exponent above 0, not {exponent}"))
            }
            _ => Ok(()),
        }
    }

    /// The stored number of a value.
    #[must_use]
    pub fn store(&self, value: f64) -> f64 {
        match *self {
            Mapping::Identity => value,
            Mapping::Log { scale, offset } => scale * libm::log(value.max(0.0) + offset),
            Mapping::Power { exponent } => libm::copysign(libm::pow(value.abs(), exponent), value),
        }
    }

    /// The value of a stored number.
    #[must_use]
    pub fn value(&self, stored: f64) -> f64 {
        match *self {
            Mapping::Identity => stored,
            Mapping::Log { scale, offset } => libm::exp(stored / scale) - offset,
            Mapping::Power { exponent } => libm::copysign(libm::pow(stored.abs(), 1.0 / exponent), stored),
        }
    }
}

/// Checks that the maps are increasing and that the weighted parts add up to the reward.
///
/// # Errors
/// Which channel breaks which rule.
pub fn check(channels: &[Channel], weights: &[f64]) -> Result<(), String> {
    for (i, channel) in channels.iter().enumerate() {
        channel.mapping.check(channel.part).map_err(|why| format!("channel {i}: {why}"))?;
        if matches!(channel.part, Part::Channel(number) if number >= weights.len()) {
            return Err(format!("channel {i}: the process has only {} channels of reward", weights.len()));
        }
    }
    let total =
        |part: Part| channels.iter().filter(|channel| channel.part == part).map(|channel| channel.weight).sum::<f64>();
    // The reward is the sum over k of weight[k] · channel[k]; the parts must give the same.
    let (sum, plus, minus) = (total(Part::Sum), total(Part::Positive), total(Part::Negative));
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let whole = sum + plus;
    let rest = 1.0 - whole;
    let fits = near(plus, -minus)
        && weights.iter().enumerate().all(|(number, weight)| near(total(Part::Channel(number)), rest * weight));
    match fits {
        true => Ok(()),
        false => Err("the weighted channels do not add up to the reward".into()),
    }
}

/// The stored values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueMapping {
    /// For each part, state and action.
    stored: Vec<Vec<f64>>,
    visits: Vec<u32>,
}

impl ValueMapping {
    fn sum(&self, config: &Config, pair: usize) -> f64 {
        let value = |(channel, stored): (&Channel, &Vec<f64>)| channel.weight * channel.mapping.value(stored[pair]);
        config.channels.iter().zip(&self.stored).map(value).sum()
    }

    /// Learns from the last round and plays the next.
    pub fn play(&mut self, config: &Config, view: &View<'_>) -> Play {
        let (task, actions) = (view.task, view.task.actions());
        let (pairs, discount) = (task.states * actions, task.discount());
        if self.visits.is_empty() {
            self.stored = config.channels.iter().map(|channel| vec![channel.mapping.store(0.0); pairs]).collect();
            self.visits = vec![0; pairs];
        }
        for (step, rewards) in view.batch.iter() {
            let pair = step.state as usize * actions + step.action as usize;
            let ahead = step.next as usize * actions..(step.next as usize + 1) * actions;
            let sums: Vec<f64> = ahead.clone().map(|pair| self.sum(config, pair)).collect();
            let shared = best(&sums);
            self.visits[pair] += 1;
            let rate = libm::pow(f64::from(self.visits[pair]), -config.decay);
            let mapped = config.mapped_rate * libm::pow(f64::from(self.visits[pair]), -config.mapped_decay);
            let sum: f64 = rewards.iter().zip(&task.weights).map(|(reward, weight)| reward * weight).sum();
            for (channel, stored) in config.channels.iter().zip(&mut self.stored) {
                let reward = match channel.part {
                    Part::Sum => sum,
                    Part::Positive => sum.max(0.0),
                    Part::Negative => (-sum).max(0.0),
                    Part::Channel(number) => rewards[number],
                };
                let own: Vec<f64> = stored[ahead.clone()].iter().map(|stored| channel.mapping.value(*stored)).collect();
                let next = match config.selfish {
                    false => own[shared],
                    true if channel.weight < 0.0 => own.iter().copied().fold(f64::INFINITY, f64::min),
                    true => own.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                };
                let goal = reward + if step.ends { 0.0 } else { discount * next };
                let value = channel.mapping.value(stored[pair]);
                let averaged = value + rate * (goal - value);
                stored[pair] += mapped * (channel.mapping.store(averaged) - stored[pair]);
            }
        }
        let q: Vec<f64> = (0..pairs).map(|pair| self.sum(config, pair)).collect();
        let target = greedy(&q, actions);
        Play {
            policy: explored(&target, actions, config.explore),
            target: Some(target),
            estimate: Some(q),
            ..Play::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Batch;
    use crate::learner::testing::{sample, task};
    use crate::process::Objective;
    use crate::process_library::garnet;
    use polity_base::rng::{Draws, Stream};

    fn channel(part: Part, weight: f64, mapping: Mapping) -> Channel {
        Channel { part, weight, mapping }
    }

    const LOG: Mapping = Mapping::Log { scale: 1.0, offset: 0.5 };

    /// The largest error of the values after 60,000 steps, in any of four processes.
    fn error(channels: Vec<Channel>, selfish: bool) -> f64 {
        (0..4).map(|seed| error_in(seed, channels.clone(), selfish)).fold(0.0, f64::max)
    }

    fn error_in(seed: u32, channels: Vec<Channel>, selfish: bool) -> f64 {
        let mut draws = Draws::new(5, Stream::World, 0, seed);
        let process = garnet(4, &[2], 2, 2, &mut draws);
        let (weights, objective) = (vec![1.0, -1.0], Objective::Discounted { discount: 0.7 });
        let task = task(&process, objective.clone(), weights.clone());
        let config = Config { channels, decay: 0.7, mapped_rate: 0.5, mapped_decay: 0.0, explore: 0.5, selfish };
        let (mut learner, mut batch, mut at) = (ValueMapping::default(), Batch::default(), 0);
        let best = process.optimum(&objective, &weights).q;
        let mut error = f64::INFINITY;
        for _ in 0..300 {
            let play = learner.play(&config, &View { task: &task, batch: &batch, model: None, baseline: None });
            batch = sample(&process, &play.policy, &mut at, 200, &mut draws);
            error = play.estimate.unwrap().iter().zip(&best).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        }
        error
    }

    #[test]
    fn all_instances_converge_to_the_optimum_and_selfish_parts_do_not() {
        let q = vec![channel(Part::Sum, 1.0, Mapping::Identity)];
        let log = vec![channel(Part::Positive, 1.0, LOG), channel(Part::Negative, -1.0, LOG)];
        let parts =
            vec![channel(Part::Channel(0), 1.0, Mapping::Identity), channel(Part::Channel(1), -1.0, Mapping::Identity)];
        let errors = [error(q, false), error(log, false), error(parts.clone(), false), error(parts, true)];
        assert!(errors[..3].iter().all(|error| *error < 0.06), "{errors:?}");
        assert!(errors[3] > 0.2, "{errors:?}");
    }

    #[test]
    fn maps_are_inverted_and_bad_ones_refused() {
        for mapping in [Mapping::Identity, LOG, Mapping::Power { exponent: 0.5 }] {
            for value in [0.0, 0.3, 2.0] {
                assert!((mapping.value(mapping.store(value)) - value).abs() < 1e-12);
            }
        }
        let falling = Mapping::Log { scale: -1.0, offset: 0.5 };
        let refused = |channels: &[Channel]| check(channels, &[1.0, -1.0]).unwrap_err();
        assert!(refused(&[channel(Part::Positive, 1.0, falling)]).contains("increasing"));
        assert!(refused(&[channel(Part::Sum, 1.0, LOG)]).contains("cannot be negative"));
        assert!(refused(&[channel(Part::Sum, 1.0, Mapping::Power { exponent: 0.0 })]).contains("exponent above 0"));
        assert!(refused(&[channel(Part::Positive, 1.0, LOG)]).contains("add up"));
        assert!(refused(&[channel(Part::Channel(0), 1.0, Mapping::Identity)]).contains("add up"));
        check(&[channel(Part::Positive, 1.0, LOG), channel(Part::Negative, -1.0, LOG)], &[1.0, -1.0]).unwrap();
    }
}
