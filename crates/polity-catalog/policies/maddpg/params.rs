//! Parameters of deterministic policy gradients of several agents.

use crate::learning::{Together, params};
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Whose views and choices the critic sees. With `alone` it sees one agent's (independent DDPG).
        critic: Together = Together::Episode,
        /// Temperature of the soft choices through which gradients reach the policy (Gumbel-softmax); above 0.
        temperature: f64 = 1.0,
        /// Weight of the squares of the policy's logits in the loss, which keeps choices from becoming certain.
        logit_weight: f64 = 0.001,
    }
    returns { discount: 0.95, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 256 }
    online { learning_starts: 50, train_every: 1 }
    soft_target { tau: 0.01 }
    adam { learning_rate: 0.003, max_grad_norm: 0.5 }
}
