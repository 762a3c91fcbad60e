//! Parameters of the skill learner.

use crate::learning::{Choose, check_weights, params};
use polity_kernel::Invalid;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    /// Parameters of a learner of skills.
    all { hidden: vec![32], activation: Activation::Tanh }
    own {
        /// Skills, 2 to 256. Agent `k` follows skill `k` modulo this number.
        skills: u32 = 16,
        /// A latent model in which episodes are imagined, and the skills learn from these alone. Default: they learn from episodes of the
        /// world.
        latent: Option<LatentSource> = None,
        /// Weight of the entropy in the loss, with which choices stay random for longer; at least 0.
        entropy_weight: f64 = 0.02,
        /// How a choice is taken from `stop` on.
        choose: Choose = Choose::Best,
    }
    adam { learning_rate: 0.01, max_grad_norm: 10.0 }
}

/// A latent model: an encoder makes a latent state of what an agent sees, and a predictor tells from a latent state and a choice which latent
/// state comes next.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatentSource {
    /// Numbers of a latent state, 1 to 1,024.
    pub size: usize,
    /// What the encoder learns.
    #[serde(default)]
    pub encoder: Learns,
    /// Whether the model learns what came after other decisions, as a placebo: the same work, but it tells nothing about the world.
    #[serde(default)]
    pub shuffled: bool,
}

/// What an encoder learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learns {
    /// Latent states by which the next one can be told among others.
    #[default]
    Prediction,
    /// Latent states from which a third network can tell what was seen.
    Reconstruction,
}

impl Params {
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=256, "skills", self.skills)?;
        let size = self.latent.map_or(1, |latent| latent.size);
        Invalid::within(1..=1_024, "latent.size", size)?;
        check_weights(&[("entropy_weight", self.entropy_weight)])
    }
}
