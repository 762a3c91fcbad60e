//! Parameters of soft actor-critic.

use crate::learning::params;
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// What entropy is worth at first (temperature α); above 0.
        alpha: f64 = 0.2,
        /// The entropy that α is adjusted to, as a part of the greatest one, the logarithm of the number of choices; 0 to 1. Default: α
        /// stays as it is.
        target_entropy: Option<f64> = None,
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 128 }
    online { learning_starts: 50, train_every: 1 }
    soft_target { tau: 0.01 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
