//! Parameters of learners that mix values.

use crate::learning::{DataSource, Together, params};
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    for <M>
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Who is a team, whose values are mixed, and which gets the mean of what its members get.
        together: Together = Together::Episode,
        /// How values are mixed.
        mixer: M = M::default(),
        /// What is learned from. Default: what the learner's own agents did in the last `buffer_rounds` rounds.
        data: Option<DataSource> = None,
        /// Makes choices that the data do not have worth less, if values are summed. Default: nothing does.
        conservative: Option<Conservative> = None,
    }
    returns { discount: 0.99 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 64 }
    online { learning_starts: 50, train_every: 1 }
    hard_target { target_update: 100 }
    exploration { epsilon_start: 1.0, epsilon_end: 0.05, epsilon_rounds: 500 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}

/// A penalty on the values of choices that are not in the data.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conservative {
    /// Its weight (α); at least 0.
    pub alpha: f64,
    /// What it compares the choices of a team with.
    pub penalty: Penalty,
}

impl Default for Conservative {
    fn default() -> Self {
        Conservative { alpha: 1.0, penalty: Penalty::Counterfactual }
    }
}

impl Conservative {
    /// Returns the weight of the mean over the members of a team.
    pub fn weight(&self, seats: usize) -> f32 {
        match self.penalty {
            Penalty::Counterfactual => self.alpha as f32,
            Penalty::Joint => self.alpha as f32 * seats as f32,
        }
    }
}

/// What the choices of a team are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Penalty {
    /// With what each member could have done beside what the others did; the mean over members (Shao et al. 2023).
    #[default]
    Counterfactual,
    /// With all that the team could have done.
    Joint,
}
