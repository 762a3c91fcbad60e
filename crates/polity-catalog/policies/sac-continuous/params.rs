//! Parameters of soft actor-critic with numbers.

use crate::learning::params;
use polity_kernel::scenario::WeightsSource;
use polity_nn::Activation;

params! {
    /// Parameters of a learner.
    all { hidden: vec![64, 64], activation: Activation::Relu }
    own {
        /// Weights to begin with, from a file: {file: NAME}. Default: random ones.
        weights: Option<WeightsSource> = None,
        /// Components of the mixture of Gaussians from which actions are drawn, 1 to 64. With 1 the policy is a single Gaussian.
        components: u32 = 1,
        /// What entropy is worth at first (temperature α); above 0.
        alpha: f64 = 0.2,
        /// The entropy to which α is adjusted, for each number of an action, in nats of numbers from -1 to 1. `null`: α stays as it is.
        target_entropy: Option<f64> = Some(-1.0),
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    replay { buffer_rounds: 2_000, gradient_steps: 1, minibatch: 128 }
    online { learning_starts: 50, train_every: 1 }
    soft_target { tau: 0.01 }
    adam { learning_rate: 1e-3, max_grad_norm: 10.0 }
}
