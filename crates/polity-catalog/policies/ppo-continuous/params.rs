//! Parameters of proximal policy optimisation with numbers.

use crate::learning::params;
use polity_kernel::scenario::WeightsSource;
use polity_nn::Activation;

params! {
    /// Parameters of a learner. The defaults are those of CleanRL, except for the entropy and rounds between updates.
    all { hidden: vec![64, 64], activation: Activation::Tanh }
    own {
        /// Weights to begin with, from a file: {file: NAME}. Default: random ones.
        weights: Option<WeightsSource> = None,
        /// The standard deviation of actions at first, for numbers from -1 to 1; above 0.
        deviation: f64 = 1.0,
    }
    clipped {
        horizon: 128, epochs: 10, minibatch: 256, anneal: false, lambda: 0.95, clip: 0.2, value_weight: 0.5, entropy_weight: 0.0
    }
    returns { discount: 0.99, reward_scale: 1.0 }
    adam { learning_rate: 3e-4, max_grad_norm: 0.5 }
}
