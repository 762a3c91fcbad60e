//! Parameters of REINFORCE.

use crate::learning::{Choose, check_weights, params};
use polity_kernel::Invalid;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64], activation: Activation::Tanh }
    own {
        /// Policies in the network, up to 256. With several, agent `k` follows policy `k` modulo this number, and the network sees which.
        policies: u32 = 1,
        /// Whether the network scores one choice at a time. It then sees the numbers about this choice, whose names begin with that of the
        /// choice (`NAME-distance`), and those about no choice.
        per_choice: bool = false,
        /// Which episodes are learned from.
        learns: Learns = Learns::All,
        /// With `learns: best`, the round before which those of all agents are learned from.
        best_from: u32 = 0,
        /// What is subtracted from returns, if those of all agents are learned from.
        baseline: Baseline = Baseline::Batch,
        /// Weight of the entropy in the loss, with which choices stay random for longer; at least 0.
        entropy_weight: f64 = 0.0,
        /// A reward for policies that differ. Default: none.
        diversity: Option<Diversity> = None,
        /// How a choice is taken from `stop` on.
        choose: Choose = Choose::Best,
    }
    returns { discount: 0.99 }
    adam { learning_rate: 0.01, max_grad_norm: 10.0 }
}

/// Which episodes are learned from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learns {
    /// Those of all agents.
    #[default]
    All,
    /// Of the agents of an episode of the world only the one with the highest return, from the difference to the second highest (Grinsztajn
    /// et al. 2023).
    Best,
}

/// What is subtracted from returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Nothing.
    None,
    /// The mean of all that is learned from; the rest is divided by the standard deviation.
    #[default]
    Batch,
    /// The mean over the decisions at the same step of their episodes; the rest is divided by the standard deviation.
    Step,
    /// The mean return of the agents of the same episode of the world. Every decision of an agent then counts by its return.
    Episode,
}

/// A reward for states that tell which policy an agent follows (Kumar et al. 2020): how much more probable a second network, the
/// discriminator, finds the policy in the next state than chance does, in logarithms.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diversity {
    /// What it is worth; at least 0.
    pub weight: f64,
    /// Only for episodes with at least this return.
    pub from_return: f64,
    /// Whether the discriminator learns policies drawn by lot, as a placebo: the same work, but it tells nothing.
    #[serde(default)]
    pub scrambled: bool,
}

impl Params {
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(1..=256, "policies", self.policies)?;
        check_weights(&[("entropy_weight", self.entropy_weight)])?;
        if let Some(diversity) = &self.diversity {
            Invalid::unless(self.policies > 1, "diversity", "needs `policies`, from 2 on")?;
            check_weights(&[("diversity.weight", diversity.weight)])?;
            let message = format!("must be a finite number, is {}", diversity.from_return);
            Invalid::unless(diversity.from_return.is_finite(), "diversity.from_return", message)?;
        }
        Ok(())
    }
}
