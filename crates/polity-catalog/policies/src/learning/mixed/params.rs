//! Parameters of learners that mix values.

use crate::learning::{DataSource, Together, params};
use polity_nn::Activation;

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
    }
    returns { discount: 0.99 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 64 }
    online { learning_starts: 50, train_every: 1 }
    hard_target { target_update: 100 }
    exploration { epsilon_start: 1.0, epsilon_end: 0.05, epsilon_rounds: 500 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
