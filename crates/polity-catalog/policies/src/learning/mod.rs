//! What policies that learn with networks have in common: what they see and choose from, what a cohort keeps, and files of weights.
//!
//! All agents of a cohort share one network. Once a round the cohort step sees all of them as the rows of a matrix, learns if it is
//! time, and decides for all at once; each agent takes its decision in its turn.

pub mod clipped;
mod data;
mod decision;
mod episodes;
mod file;
mod kept;
mod learner;
pub mod mixed;
mod networks;
mod params;
mod proximal;
mod replay;
mod returns;
mod rollout;
mod senses;
mod teams;
#[cfg(test)]
pub mod testing;

pub use data::{Data, DataSource, Outcomes};
pub use decision::{Decision, Numbers};
pub use episodes::{Episodes, Parts};
pub use file::{About, Player, net};
pub use kept::Kept;
pub use learner::{
    Experience, Keys, Learner, Learning, Memory, Model, Now, Start, Trained, check_counts, check_layers,
    check_positive, check_shares, check_weights,
};
pub use networks::{Chooser, Temperature, Twin, logs_of, logs_on, values_by, values_of};
pub(crate) use params::params;
pub use params::{Exploration, LearnerParams};
pub use proximal::ClippedLoss;
pub use replay::{Batch, Refresh, Replay, Replayed, Schedule, TeamBatch};
pub use returns::{Returns, episode_return};
pub use rollout::{Decisions, Rollout, Step, generalised_advantages};
pub use senses::{Identity, RewardSource, Seen, Senses, any_offered};
pub use teams::{Teams, Together, one_hot, own_first};

use polity_kernel::rng::Draws;
use polity_nn::argmax;
use schemars::JsonSchema;
use serde::Deserialize;

/// A decision that an agent did not have to take.
pub const NONE: u16 = u16::MAX;

/// Returns numbers less their mean, in units of their standard deviation.
#[must_use]
pub fn normalised(numbers: &[f32]) -> Vec<f32> {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let square = |x: f64| x * x;
    let variance = numbers.iter().map(|x| square(f64::from(*x) - mean)).sum::<f64>() / n;
    // If all are equal, they become 0.
    let deviation = variance.sqrt() + 1e-8;
    numbers.iter().map(|x| ((f64::from(*x) - mean) / deviation) as f32).collect()
}

/// Draws one of the choices by the logarithms of their probabilities.
#[must_use]
pub fn sampled(logs: &[f32], draws: &mut Draws) -> u16 {
    let mut left = draws.unit();
    let mut last = 0;
    for (choice, log) in (0u16..).zip(logs) {
        let p = f64::from(libm::expf(*log));
        if p > 0.0 {
            last = choice;
        }
        left -= p;
        if left < 0.0 {
            break;
        }
    }
    last
}

/// How a choice is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// The best one.
    #[default]
    Best,
    /// By lot, with the probabilities of the network.
    Sampled,
}

impl Choose {
    /// Takes a choice by the logarithms of the probabilities, or by values if it is the best one.
    #[must_use]
    pub fn of(self, logs: &[f32], draws: &mut Draws) -> u16 {
        match self {
            Choose::Best => best(logs),
            Choose::Sampled => sampled(logs, draws),
        }
    }
}

/// Returns the choice with the highest number, the first of several.
#[must_use]
pub fn best(numbers: &[f32]) -> u16 {
    argmax(numbers) as u16
}
