//! Adam (Kingma and Ba 2015), and clipping of gradients by their norm.

use crate::array::vectorised;
use crate::{Array, Weights};
use serde::{Deserialize, Serialize};

/// The state of Adam: running means of gradients and of their squares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    steps: u32,
    means: Vec<Array>,
    squares: Vec<Array>,
}

/// Weights of the past in the means of gradients and of squares.
const BETA: [f32; 2] = [0.9, 0.999];
/// What is added to the root of a mean square.
const EPSILON: f32 = 1e-5;

impl Adam {
    /// Begins with no past.
    #[must_use]
    pub fn new(weights: &Weights) -> Self {
        let zeros = || weights.iter().map(|of| Array::zeros(of.array.rows(), of.array.columns())).collect();
        Adam { steps: 0, means: zeros(), squares: zeros() }
    }

    /// Moves weights against their gradients.
    pub fn step(&mut self, weights: &mut Weights, gradients: &[Array], rate: f32) {
        self.steps += 1;
        let grown = |beta: f32| (1.0 - libm::pow(f64::from(beta), f64::from(self.steps))) as f32;
        let (rate, root) = (rate / grown(BETA[0]), libm::sqrtf(grown(BETA[1])));
        let past = self.means.iter_mut().zip(&mut self.squares);
        for ((weights, gradient), (mean, square)) in weights.arrays_mut().zip(gradients).zip(past) {
            let (mean, square) = (mean.data_mut(), square.data_mut());
            vectorised(
                #[inline(always)]
                || {
                    let rows = weights.data_mut().iter_mut().zip(gradient.data()).zip(mean.iter_mut().zip(square));
                    for ((w, g), (m, v)) in rows {
                        *m = BETA[0] * *m + (1.0 - BETA[0]) * g;
                        *v = BETA[1] * *v + (1.0 - BETA[1]) * g * g;
                        *w -= rate * *m / (v.sqrt() / root + EPSILON);
                    }
                },
            );
        }
    }
}

/// Scales gradients down to a norm, if they are longer. Returns their norm before.
pub fn clip(gradients: &mut [Array], most: f32) -> f64 {
    let square = |of: &Array| of.data().iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
    let norm = libm::sqrt(gradients.iter().map(square).sum());
    let by = (f64::from(most) / (norm + 1e-6)) as f32;
    if by < 1.0 {
        gradients.iter_mut().for_each(|of| of.data_mut().iter_mut().for_each(|x| *x *= by));
    }
    norm
}
