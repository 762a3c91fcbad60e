//! A policy that draws actions from Gaussians, whose numbers a hyperbolic tangent keeps between -1 and 1.

use crate::learning::{best, sampled};
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, Tape, Var, Weights, outputs};
use std::f32::consts::LN_2;

/// Half the logarithm of 2π.
const HALF_LOG_TAU: f32 = 0.918_938_5;
/// The range of the logarithm of a standard deviation.
const LOG_DEVIATION: [f32; 2] = [-5.0, 2.0];

/// A mixture of Gaussians, given by a network.
#[derive(Clone, Debug)]
pub struct Gaussians {
    /// Its outputs are, for each component, the means and then what the deviations come from. The logits of the components are last.
    pub net: Mlp,
    /// Numbers of an action.
    pub numbers: usize,
    /// Components of the mixture.
    pub components: usize,
}

/// The mixture of each row of inputs. Means and deviations are those before the hyperbolic tangent, component by component.
#[derive(Clone, Debug)]
pub struct Mixtures {
    /// The means.
    pub means: Array,
    /// The standard deviations.
    pub deviations: Array,
    /// The logarithms of the components' weights.
    pub log_weights: Array,
    numbers: usize,
}

/// An action of each row, from one component, on a tape.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The numbers, from -1 to 1.
    pub action: Var,
    /// The logarithms of their densities, as a column.
    pub log: Var,
}

impl Gaussians {
    /// Returns the number of outputs that the network needs.
    #[must_use]
    pub fn outputs(numbers: usize, components: usize) -> usize {
        components * 2 * numbers + components
    }

    /// Returns the columns of these outputs that hold means.
    pub fn means(numbers: usize, components: usize) -> impl Iterator<Item = usize> {
        (0..components).flat_map(move |k| k * 2 * numbers..(k * 2 + 1) * numbers)
    }

    /// Returns the means and the logarithms of the deviations of a component. `of`: the network's outputs.
    fn component(&self, tape: &mut Tape<'_>, of: Var, k: usize) -> [Var; 2] {
        let first = k * 2 * self.numbers;
        let mean = tape.columns(of, first, self.numbers);
        let free = tape.columns(of, first + self.numbers, self.numbers);
        let [low, high] = LOG_DEVIATION;
        let bounded = tape.tanh(free);
        let bounded = tape.scale(bounded, (high - low) / 2.0);
        let middle = tape.value(bounded).map(|_| (low + high) / 2.0);
        let middle = tape.input(middle);
        [mean, tape.add(bounded, middle)]
    }

    /// Draws an action from a component. `of`: the network's outputs; `noise`: standard normal numbers.
    pub fn draw(&self, tape: &mut Tape<'_>, of: Var, k: usize, noise: Array) -> Drawn {
        let [mean, log_deviation] = self.component(tape, of, k);
        // The density of the noise.
        let constant = noise.map(|z| -0.5 * z * z - HALF_LOG_TAU);
        let (noise, constant) = (tape.input(noise), tape.input(constant));
        let deviation = tape.exp(log_deviation);
        let away = tape.multiply(deviation, noise);
        let free = tape.add(mean, away);
        let action = tape.tanh(free);
        let log = tape.subtract(constant, log_deviation);
        // log (1 - tanh² u) = 2 (log 2 - u - log (1 + exp (-2 u)))
        let twice = tape.scale(free, -2.0);
        let softplus = tape.softplus(twice);
        let slope = tape.add(free, softplus);
        let slope = tape.scale(slope, 2.0);
        let log = tape.add(log, slope);
        let shift = tape.value(log).map(|_| -2.0 * LN_2);
        let shift = tape.input(shift);
        let log = tape.add(log, shift);
        Drawn { action, log: tape.row_sums(log) }
    }

    /// Returns the logarithms of the components' weights. `of`: the network's outputs.
    pub fn log_weights(&self, tape: &mut Tape<'_>, of: Var) -> Var {
        let logits = tape.columns(of, self.components * 2 * self.numbers, self.components);
        tape.log_softmax(logits)
    }

    /// Returns the mixture of each row of inputs.
    #[must_use]
    pub fn of(&self, weights: &Weights, inputs: &Array) -> Mixtures {
        let [means, deviations, log_weights] = outputs(weights, inputs.rows(), |tape, rows| {
            let x = tape.input(inputs.part(rows));
            let of = self.net.on(tape, x);
            let (mut means, mut deviations) = (Vec::new(), Vec::new());
            for k in 0..self.components {
                let [mean, log_deviation] = self.component(tape, of, k);
                means.push(mean);
                deviations.push(tape.exp(log_deviation));
            }
            [tape.join(&means), tape.join(&deviations), self.log_weights(tape, of)]
        });
        Mixtures { means, deviations, log_weights, numbers: self.numbers }
    }
}

impl Mixtures {
    /// Draws a component, and an action from it. Returns the action, and the logarithm of its density in that component.
    pub fn sample(&self, row: usize, draws: &mut Draws) -> (Vec<f32>, f32) {
        let k = usize::from(sampled(self.log_weights.row(row), draws));
        let mut log = 0.0;
        let number = |i: usize| {
            let (mean, deviation) = (self.means.row(row)[i], self.deviations.row(row)[i]);
            let z = draws.normal() as f32;
            let free = mean + deviation * z;
            // log (1 - tanh² u) = 2 (log 2 - u - log (1 + exp (-2 u)))
            let softplus = (-2.0 * free).max(0.0) + libm::log1pf(libm::expf(-2.0 * free.abs()));
            log += -0.5 * z * z - HALF_LOG_TAU - libm::logf(deviation) - 2.0 * (LN_2 - free - softplus);
            libm::tanhf(free)
        };
        let action = (k * self.numbers..(k + 1) * self.numbers).map(number).collect();
        (action, log)
    }

    /// Returns the mean of the most probable component.
    #[must_use]
    pub fn most_probable(&self, row: usize) -> Vec<f32> {
        let k = usize::from(best(self.log_weights.row(row)));
        let means = &self.means.row(row)[k * self.numbers..(k + 1) * self.numbers];
        means.iter().map(|mean| libm::tanhf(*mean)).collect()
    }
}

/// Returns standard normal numbers.
pub fn normals(rows: usize, columns: usize, draws: &mut Draws) -> Array {
    Array::new(rows, columns, (0..rows * columns).map(|_| draws.normal() as f32).collect())
}
