//! Parameters of deep Q-learning.

use crate::learning::params;
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Whether the network itself names the best later choice, and the target network only its value (double Q-learning).
        double: bool = true,
    }
    returns { discount: 0.99 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 128 }
    online { learning_starts: 50, train_every: 1 }
    hard_target { target_update: 250 }
    exploration { epsilon_start: 1.0, epsilon_end: 0.05, epsilon_rounds: 500 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
