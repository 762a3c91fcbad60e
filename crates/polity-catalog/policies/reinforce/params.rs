//! Parameters of REINFORCE.

use crate::learning::params;
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64], activation: Activation::Tanh }
    own {
        /// Whether the mean return is subtracted from returns (a baseline).
        baseline: bool = true,
    }
    returns { discount: 0.99 }
    adam { learning_rate: 0.01, max_grad_norm: 10.0 }
}
