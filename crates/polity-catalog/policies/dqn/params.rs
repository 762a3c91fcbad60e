//! Parameters of deep Q-learning.

use crate::learning::{Keys, Refresh, Schedule, check_counts, check_positive, check_shares, faded};
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
    /// Rounds that are remembered, of all agents.
    pub buffer_rounds: u32,
    /// The round before which nothing is learned.
    pub learning_starts: u32,
    /// Rounds from one update to the next.
    pub train_every: u32,
    /// Steps of the optimiser in an update.
    pub gradient_steps: u32,
    /// Decisions in a step of the optimiser.
    pub minibatch: u32,
    /// Steps of the optimiser from one refreshing of the target network to the next.
    pub target_update: u32,
    /// Whether the network itself names the best later choice, and the target network only its value (double Q-learning).
    pub double: bool,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// What a reward is worth one decision later (discount γ); 0 to 1.
    pub discount: f64,
    /// Probability with which a decision is drawn at random (ε) at the start; 0 to 1.
    pub epsilon_start: f64,
    /// What that probability falls to; 0 to 1.
    pub epsilon_end: f64,
    /// Rounds until it has fallen.
    pub epsilon_rounds: u32,
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
            hidden: vec![64, 64],
            activation: Activation::Relu,
            buffer_rounds: 2_000,
            learning_starts: 50,
            train_every: 1,
            gradient_steps: 1,
            minibatch: 128,
            target_update: 250,
            double: true,
            learning_rate: 1e-3,
            discount: 0.99,
            epsilon_start: 1.0,
            epsilon_end: 0.05,
            epsilon_rounds: 500,
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

    pub fn schedule(&self) -> Schedule {
        Schedule {
            starts: self.learning_starts,
            every: self.train_every,
            steps: self.gradient_steps,
            refresh: Refresh::Every(self.target_update),
        }
    }

    /// Returns the probability with which a decision is drawn at random.
    pub fn explores(&self, round: u32) -> f64 {
        faded([self.epsilon_start, self.epsilon_end], self.epsilon_rounds, round)
    }

    /// Checks that every number is in its range.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=1_000_000, "buffer_rounds", self.buffer_rounds)?;
        check_counts(&[
            ("train_every", self.train_every),
            ("gradient_steps", self.gradient_steps),
            ("minibatch", self.minibatch),
            ("target_update", self.target_update),
        ])?;
        check_shares(&[
            ("discount", self.discount),
            ("epsilon_start", self.epsilon_start),
            ("epsilon_end", self.epsilon_end),
        ])?;
        check_positive(&[("learning_rate", self.learning_rate), ("max_grad_norm", self.max_grad_norm)])
    }
}
