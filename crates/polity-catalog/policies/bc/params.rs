//! Parameters of behaviour cloning.

use crate::learning::{Choose, DataSource, params};
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// What is learned from. Default: what the learner's own agents did in the last `buffer_rounds` rounds.
        data: Option<DataSource> = None,
        /// How a choice is taken.
        choose: Choose = Choose::Best,
    }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 256 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
