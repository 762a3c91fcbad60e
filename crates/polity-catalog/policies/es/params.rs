//! Parameters of evolution strategies.

use crate::learning::{Choose, params};
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    /// Parameters of a learner.
    all { hidden: vec![32], activation: Activation::Tanh }
    own {
        /// Standard deviation of what is added to each weight of a member (σ).
        noise: f64 = 0.1,
        /// Step size of Adam.
        learning_rate: f64 = 0.05,
        /// How strongly weights are drawn towards 0 in every step.
        weight_decay: f64 = 0.005,
        /// Whose rank counts for a member.
        ranks: Ranks = Ranks::Own,
        /// How a choice is taken.
        choose: Choose = Choose::Best,
    }
}

/// Whose rank counts for a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ranks {
    /// Its own.
    #[default]
    Own,
    /// A random member's, as a placebo: the same work, but no information about which weights are good.
    Shuffled,
}
