//! Parameters of conservative Q-learning.

use crate::learning::{DataSource, params};
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// What is learned from. Default: what the learner's own agents did in the last `buffer_rounds` rounds.
        data: Option<DataSource> = None,
        /// How much choices that are not in the data are worth less (α); at 0 it is double Q-learning from data.
        alpha: f64 = 1.0,
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 256 }
    hard_target { target_update: 250 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
