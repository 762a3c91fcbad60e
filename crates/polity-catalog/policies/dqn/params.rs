//! Parameters of deep Q-learning.

use crate::learning::params;
use polity_nn::Activation;
use schemars::JsonSchema;
use serde::Deserialize;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Whether the network itself names the best later choice, and the target network only its value (double Q-learning).
        double: bool = true,
        /// A first layer for pictures, which encodes patch by patch. Default: none.
        patches: Option<PatchesSource> = None,
    }
    returns { discount: 0.99 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 128 }
    online { learning_starts: 50, train_every: 1 }
    hard_target { target_update: 250 }
    exploration { epsilon_start: 1.0, epsilon_end: 0.05, epsilon_rounds: 500 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}

/// What is seen as a picture of patches. One layer, shared by all patches, encodes each patch and its position.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchesSource {
    /// Number of patches of equal size into which the numbers that are seen are divided, in order; 1 to 256.
    pub count: usize,
    /// Numbers that encode a patch, 1 to 1,024.
    pub size: usize,
    /// A soft mixture of experts between these numbers and the layers `hidden`. Default: none.
    #[serde(default)]
    pub experts: Option<SoftExpertsSource>,
}

/// Experts who each see a weighed mean of all patches (Puigcerver et al. 2023).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoftExpertsSource {
    /// How many there are, 1 to 64.
    pub count: usize,
    /// Outputs of each, 1 to 1,024.
    pub size: usize,
}
