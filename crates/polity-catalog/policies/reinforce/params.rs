//! Parameters of REINFORCE.

use crate::learning::{Keys, check_positive, check_shares};
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
    /// Step size of Adam.
    pub learning_rate: f64,
    /// What a reward is worth one decision later (discount γ); 0 to 1.
    pub discount: f64,
    /// Whether the mean return is subtracted from returns (a baseline).
    pub baseline: bool,
    /// The longest gradient; longer ones are scaled down.
    pub max_grad_norm: f64,
    /// The round from which the agents take the best choices and learn no more. Default: never.
    pub stop: Option<u32>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            observe: None,
            reward: "last-reward".into(),
            hidden: vec![64],
            activation: Activation::Tanh,
            learning_rate: 0.01,
            discount: 0.99,
            baseline: true,
            max_grad_norm: 10.0,
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
        check_shares(&[("discount", self.discount)])?;
        check_positive(&[("learning_rate", self.learning_rate), ("max_grad_norm", self.max_grad_norm)])
    }
}
