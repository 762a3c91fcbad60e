//! Parameters of evolution strategies.

use crate::learning::{Choose, Keys, check_positive, check_weights};
use polity_kernel::Invalid;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of a learner.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that the network sees. Default: all, except those about turns and rewards.
    pub observe: Option<Vec<String>>,
    /// The number that shows the reward of the last round.
    pub reward: String,
    /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
    pub hidden: Vec<usize>,
    /// The function after each hidden layer.
    pub activation: Activation,
    /// Standard deviation of what is added to each weight of a member (σ).
    pub noise: f64,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// How strongly weights are drawn towards 0 in every step.
    pub weight_decay: f64,
    /// Whose rank counts for a member.
    pub ranks: Ranks,
    /// How a choice is taken.
    pub choose: Choose,
    /// The round from which the agents play the weights without noise and learn no more. Default: never.
    pub stop: Option<u32>,
}

/// Whose rank counts for a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranks {
    /// Its own.
    #[default]
    Own,
    /// Anybody's, by lot, as a placebo: the same work, but nothing about which weights are good.
    Shuffled,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            observe: None,
            reward: "last-reward".into(),
            hidden: vec![32],
            activation: Activation::Tanh,
            noise: 0.1,
            learning_rate: 0.05,
            weight_decay: 0.005,
            ranks: Ranks::Own,
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

    /// Checks that every number is in its range.
    pub fn check(&self) -> Result<(), Invalid> {
        check_positive(&[("noise", self.noise), ("learning_rate", self.learning_rate)])?;
        check_weights(&[("weight_decay", self.weight_decay)])
    }
}
