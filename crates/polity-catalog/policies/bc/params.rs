//! Parameters of behaviour cloning.

use crate::learning::{Choose, DataSource, Keys, Refresh, Schedule, check_counts, check_positive};
use polity_kernel::Invalid;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of a learner.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What is learned from. Default: what the learner's own agents did in the last `buffer_rounds` rounds.
    pub data: Option<DataSource>,
    /// Numbers that the world shows and that the network sees. Default: all, except those about turns and rewards.
    pub observe: Option<Vec<String>>,
    /// The number that shows the reward of the last round.
    pub reward: String,
    /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
    pub hidden: Vec<usize>,
    /// The function after each hidden layer.
    pub activation: Activation,
    /// Rounds that are remembered, of all agents, if there are no data.
    pub buffer_rounds: u32,
    /// Steps of the optimiser in a round.
    pub gradient_steps: u32,
    /// Decisions in a step of the optimiser.
    pub minibatch: u32,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// The longest gradient; longer ones are scaled down.
    pub max_grad_norm: f64,
    /// How a choice is taken.
    pub choose: Choose,
    /// The round from which nothing is learned any more. Default: never.
    pub stop: Option<u32>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            data: None,
            observe: None,
            reward: "last-reward".into(),
            hidden: vec![64, 64],
            activation: Activation::Relu,
            buffer_rounds: 2_000,
            gradient_steps: 1,
            minibatch: 256,
            learning_rate: 1e-3,
            max_grad_norm: 10.0,
            choose: Choose::Best,
            stop: None,
        }
    }
}

impl Params {
    pub fn keys(&self) -> Keys<'_> {
        Keys {
            observe: self.observe.as_deref(),
            reward: &self.reward,
            hidden: &self.hidden,
            activation: self.activation,
            stop: self.stop,
        }
    }

    pub fn schedule(&self) -> Schedule {
        Schedule { starts: 0, every: 1, steps: self.gradient_steps, refresh: Refresh::Every(u32::MAX) }
    }

    /// Checks that every number is in its range.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=1_000_000, "buffer_rounds", self.buffer_rounds)?;
        check_counts(&[("gradient_steps", self.gradient_steps), ("minibatch", self.minibatch)])?;
        check_positive(&[("learning_rate", self.learning_rate), ("max_grad_norm", self.max_grad_norm)])
    }
}
