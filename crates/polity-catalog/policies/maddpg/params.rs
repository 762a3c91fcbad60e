//! Parameters of deterministic policy gradients of several agents.

use crate::learning::{Keys, Refresh, Schedule, Together, check_counts, check_positive, check_shares, check_weights};
use polity_kernel::Invalid;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of a learner.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that the networks see. Default: all, except those about turns and rewards, and the agent's seat.
    pub observe: Option<Vec<String>>,
    /// The number that shows the reward of the last round.
    pub reward: String,
    /// What rewards are multiplied by before they are learned from; above 0. Values of about 1 are learned fastest.
    pub reward_scale: f64,
    /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
    pub hidden: Vec<usize>,
    /// The function after each hidden layer.
    pub activation: Activation,
    /// Whose views and choices the critic sees together: with `nobody`, each agent's own (independent DDPG).
    pub critic: Together,
    /// Rounds that are remembered, of all agents.
    pub buffer_rounds: u32,
    /// The round before which nothing is learned.
    pub learning_starts: u32,
    /// Rounds from one update to the next.
    pub train_every: u32,
    /// Steps of the optimiser in an update.
    pub gradient_steps: u32,
    /// Decisions in a step of the optimiser, about.
    pub minibatch: u32,
    /// How far the target networks move towards the others after each step of the optimiser, as a part of the difference (τ); above 0, at
    /// most 1.
    pub tau: f64,
    /// Temperature of the soft choices through which gradients reach the policy (Gumbel-softmax); above 0.
    pub temperature: f64,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// What a reward is worth one decision later (discount γ); 0 to 1.
    pub discount: f64,
    /// Weight of the squares of the policy's logits in the loss, which keeps choices from becoming certain.
    pub logit_weight: f64,
    /// The longest gradient of the policy, and of the critic; longer ones are scaled down.
    pub max_grad_norm: f64,
    /// The round from which the agents take the best choices and learn no more. Default: never.
    pub stop: Option<u32>,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            observe: None,
            reward: "last-reward".into(),
            reward_scale: 1.0,
            hidden: vec![64, 64],
            activation: Activation::Relu,
            critic: Together::Episode,
            buffer_rounds: 2_000,
            learning_starts: 50,
            train_every: 1,
            gradient_steps: 1,
            minibatch: 256,
            tau: 0.01,
            temperature: 1.0,
            learning_rate: 0.003,
            discount: 0.95,
            logit_weight: 0.001,
            max_grad_norm: 0.5,
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
            refresh: Refresh::Towards(self.tau),
        }
    }

    /// Checks that every number is in its range.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=1_000_000, "buffer_rounds", self.buffer_rounds)?;
        check_counts(&[
            ("train_every", self.train_every),
            ("gradient_steps", self.gradient_steps),
            ("minibatch", self.minibatch),
        ])?;
        check_shares(&[("discount", self.discount), ("tau", self.tau)])?;
        check_weights(&[("logit_weight", self.logit_weight)])?;
        check_positive(&[
            ("learning_rate", self.learning_rate),
            ("max_grad_norm", self.max_grad_norm),
            ("reward_scale", self.reward_scale),
            ("temperature", self.temperature),
            ("tau", self.tau),
        ])
    }
}
