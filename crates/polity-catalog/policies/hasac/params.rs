//! Parameters of soft actor-critic of several agents.

use crate::learning::{Together, params};
use polity_kernel::scenario::WeightsSource;
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Whose views and choices the critics see. With `alone` they see one agent's (independent soft actor-critic).
        critic: Together = Together::Episode,
        /// What entropy is worth (temperature α); above 0.
        alpha: f64 = 0.2,
        /// Weights of the policy to begin with, from a file: {file: NAME}. Default: random ones.
        weights: Option<WeightsSource> = None,
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 256 }
    online { learning_starts: 50, train_every: 1 }
    soft_target { tau: 0.01 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
