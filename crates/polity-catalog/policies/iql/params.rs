//! Parameters of implicit Q-learning.

use crate::learning::{Choose, DataSource, params};
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// What is learned from. Default: what the learner's own agents did in the last `buffer_rounds` rounds.
        data: Option<DataSource> = None,
        /// The value of a state is this expectile of what choices are worth (τ of the paper); 0 to 1. At 0.5 it is their mean, near 1 the
        /// best one's.
        expectile: f64 = 0.7,
        /// How much the policy prefers choices that are better than expected (inverse temperature β); at 0 it imitates all alike.
        temperature: f64 = 3.0,
        /// How a choice is taken.
        choose: Choose = Choose::Best,
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 256 }
    soft_target { tau: 0.005 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
