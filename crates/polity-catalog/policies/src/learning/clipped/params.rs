//! Parameters of proximal policy optimisation.

use super::MemorySource;
use crate::learning::{Together, check_counts, check_positive, check_shares, check_weights};
use polity_kernel::Invalid;
use polity_kernel::scenario::WeightsSource;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of a learner. The defaults are those of the paper's Atari runs where it gives them, with the network of CleanRL.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Numbers that the world shows and that the network sees. Default: all, except those about turns and rewards.
    pub observe: Option<Vec<String>>,
    /// The number that shows the reward of the last round.
    pub reward: String,
    /// What rewards are multiplied by before they are learned from; above 0. Values of about 1 are learned fastest.
    pub reward_scale: f64,
    /// Sizes of the hidden layers; up to 8 layers of up to 1,024.
    pub hidden: Vec<usize>,
    /// The function after each hidden layer.
    pub activation: Activation,
    /// Whose views the critic sees together. Default: in `ppo` nobody's but the agent's own; in `mappo` those of all agents of the episode.
    pub critic: Option<Together>,
    /// What agents remember from round to round of an episode. Default: nothing.
    pub memory: Option<MemorySource>,
    /// Weights to begin with, from a file: {file: NAME}. Default: random ones.
    pub weights: Option<WeightsSource>,
    /// Rounds between updates (horizon T).
    pub horizon: u32,
    /// How often an update goes over its decisions (epochs K).
    pub epochs: u32,
    /// Decisions in a step of the optimiser (minibatch size M).
    pub minibatch: u32,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// Whether the step size falls to 0 towards the end of the run.
    pub anneal: bool,
    /// What a reward is worth one decision later (discount γ); 0 to 1.
    pub discount: f64,
    /// Weight of later surprises in an advantage (λ); 0 to 1.
    pub lambda: f64,
    /// How far the probability of a decision may move in an update, as a part of it (ε); above 0.
    pub clip: f64,
    /// Weight of the error of the value in the loss (c1).
    pub value_weight: f64,
    /// Weight of the entropy in the loss (c2).
    pub entropy_weight: f64,
    /// The longest gradient; longer ones are scaled down.
    pub max_grad_norm: f64,
    /// A teacher whose choices the network imitates at first. Default: none.
    pub teacher: Option<Teacher>,
    /// The round from which the agents take the best choices and learn no more. Default: never.
    pub stop: Option<u32>,
}

/// A teacher, and how much it counts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Teacher {
    /// Its weights, from a file that a learner has written: {file: NAME}.
    pub weights: WeightsSource,
    /// Weight of the cross entropy between its probabilities and the network's in the loss; above 0.
    #[serde(default = "one")]
    pub weight: f64,
    /// After each update that weight is multiplied by this; 0 to 1.
    #[serde(default = "decay")]
    pub decay: f64,
}

fn one() -> f64 {
    1.0
}

fn decay() -> f64 {
    0.9
}

impl Default for Params {
    fn default() -> Self {
        Params {
            observe: None,
            reward: "last-reward".into(),
            reward_scale: 1.0,
            hidden: vec![64, 64],
            activation: Activation::Tanh,
            critic: None,
            memory: None,
            weights: None,
            horizon: 128,
            epochs: 4,
            minibatch: 256,
            learning_rate: 2.5e-4,
            anneal: false,
            discount: 0.99,
            lambda: 0.95,
            clip: 0.2,
            value_weight: 0.5,
            entropy_weight: 0.01,
            max_grad_norm: 0.5,
            teacher: None,
            stop: None,
        }
    }
}

impl Params {
    /// Checks that every number is in its range.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        check_counts(&[("horizon", self.horizon), ("epochs", self.epochs), ("minibatch", self.minibatch)])?;
        if let Some(Teacher { weight, decay, .. }) = self.teacher {
            check_positive(&[("teacher.weight", weight)])?;
            check_shares(&[("teacher.decay", decay)])?;
        }
        check_shares(&[("discount", self.discount), ("lambda", self.lambda)])?;
        check_positive(&[
            ("learning_rate", self.learning_rate),
            ("clip", self.clip),
            ("max_grad_norm", self.max_grad_norm),
            ("reward_scale", self.reward_scale),
        ])?;
        check_weights(&[("value_weight", self.value_weight), ("entropy_weight", self.entropy_weight)])
    }
}
