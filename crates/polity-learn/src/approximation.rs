//! Values of actions as functions of numbers, learned online: by a Gaussian mixture over states and values together, and by a network with one
//! hidden layer.
//!
//! Source of the first: R. Pinto, "Fast Reinforcement Learning with Incremental Gaussian Mixture Models", arXiv 2011.00702; with
//! the precision form of R. Pinto and P. Engel, "Scalable and Incremental Learning of Gaussian Mixture Models", arXiv 1701.03940.

use crate::incremental::{Mixture, Settings};
use crate::linear::dot;
use polity_base::rng::Draws;
use serde::{Deserialize, Serialize};

/// What approximates, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Approximator {
    /// One mixture over states and the values of all actions. A point to learn has the value of the action taken changed, and those of the
    /// others as the mixture itself expects them.
    Mixture(Settings),
    /// Tanh units, and a linear unit for each action, by gradient descent on the squared error.
    Network {
        /// Hidden units.
        hidden: usize,
        /// Deviation of the first weights of hidden units; those of the outputs begin at 0.
        deviation: f64,
    },
}

/// What has been learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Learned {
    /// A mixture.
    Mixture(Mixture),
    /// Weights: of each hidden unit, its inputs and its constant; then of each action, its units and its constant.
    Network(Vec<f64>),
}

impl Approximator {
    /// Returns what is known at first of states of `inputs` numbers and of `actions`.
    #[must_use]
    pub fn start(&self, inputs: usize, actions: usize, draws: &mut Draws) -> Learned {
        match self {
            Approximator::Mixture(_) => Learned::Mixture(Mixture::default()),
            Approximator::Network { hidden, deviation } => {
                let first = hidden * (inputs + 1);
                let mut weights: Vec<f64> = (0..first).map(|_| deviation * draws.normal()).collect();
                weights.resize(first + actions * (hidden + 1), 0.0);
                Learned::Network(weights)
            }
        }
    }

    /// Returns how many numbers are fitted: of a mixture its means, covariances and weights.
    #[must_use]
    pub fn size(&self, learned: &Learned) -> usize {
        match (self, learned) {
            (Approximator::Mixture(settings), Learned::Mixture(mixture)) => {
                let d = settings.dimensions();
                mixture.components.len() * (1 + d + d * (d + 1) / 2)
            }
            (_, Learned::Network(weights)) => weights.len(),
            _ => 0,
        }
    }

    /// Returns the values of all actions; 0 where nothing is known.
    #[must_use]
    pub fn values(&self, learned: &Learned, state: &[f64], actions: usize) -> Vec<f64> {
        match (self, learned) {
            (Approximator::Mixture(settings), Learned::Mixture(mixture)) => {
                mixture.expect(settings, state).unwrap_or_else(|| vec![0.0; actions])
            }
            (Approximator::Network { hidden, .. }, Learned::Network(weights)) => {
                let units = units(weights, *hidden, state);
                weights[hidden * (state.len() + 1)..].chunks(hidden + 1).map(|row| dot(row, &units)).collect()
            }
            _ => vec![0.0; actions],
        }
    }

    /// Moves the value of an action towards a target: by about `rate` of the way in a mixture; in a network by `rate` times the gradient.
    /// `values` are those of the state, as [`Approximator::values`] returned them.
    pub fn learn(
        &self,
        learned: &mut Learned,
        state: &[f64],
        values: &[f64],
        (action, target): (usize, f64),
        rate: f64,
    ) {
        match (self, learned) {
            (Approximator::Mixture(settings), Learned::Mixture(mixture)) => {
                let step = mixture.step(settings, state);
                let reach = if step > 0.0 { rate / step } else { 1.0 };
                let mut point = [state, values].concat();
                point[state.len() + action] += reach * (target - values[action]);
                if point.iter().all(|entry| entry.is_finite()) {
                    mixture.learn(settings, &point);
                }
            }
            (Approximator::Network { hidden, .. }, Learned::Network(weights)) => {
                let units = units(weights, *hidden, state);
                let step = rate * (target - values[action]);
                let output = hidden * (state.len() + 1) + action * (hidden + 1);
                for (unit, at) in units[..*hidden].iter().enumerate() {
                    let back = step * weights[output + unit] * (1.0 - at * at);
                    let row = &mut weights[unit * (state.len() + 1)..(unit + 1) * (state.len() + 1)];
                    row.iter_mut().zip(state.iter().chain(&[1.0])).for_each(|(weight, x)| *weight += back * x);
                }
                weights[output..=output + hidden].iter_mut().zip(&units).for_each(|(weight, at)| *weight += step * at);
            }
            _ => {}
        }
    }
}

/// Returns the hidden units, and 1.
fn units(weights: &[f64], hidden: usize, state: &[f64]) -> Vec<f64> {
    let rows = weights.chunks(state.len() + 1).take(hidden);
    rows.map(|row| libm::tanh(dot(row, state) + row[state.len()])).chain([1.0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incremental::{Drift, Form};
    use polity_base::rng::Stream;

    fn mixture() -> Approximator {
        Approximator::Mixture(Settings {
            form: Form::Precision,
            variances: vec![0.04, 0.04, 0.1, 0.1, 0.1],
            novelty: 0.3,
            most: 40,
            age: 0,
            weight: 0.0,
            drift: Drift { known: 2, memory: 100.0, floor: 0.3, background: 1.0 },
        })
    }

    fn network() -> Approximator {
        Approximator::Network { hidden: 12, deviation: 1.0 }
    }

    /// Values of three actions that are no lines.
    fn truth(x: &[f64], action: usize) -> f64 {
        [x[0] * x[1], 1.0 - x[0], libm::cos(3.0 * x[1])][action]
    }

    #[test]
    fn both_learn_values_from_one_action_at_a_time() {
        for (approximator, rate, steps) in [(mixture(), 0.3, 6_000), (network(), 0.05, 60_000)] {
            let mut draws = Draws::new(3, Stream::World, 0, 0);
            let mut learned = approximator.start(2, 3, &mut draws);
            for _ in 0..steps {
                let state = [draws.unit(), draws.unit()];
                let values = approximator.values(&learned, &state, 3);
                let action = draws.below(3) as usize;
                approximator.learn(&mut learned, &state, &values, (action, truth(&state, action)), rate);
            }
            let mut worst = [0.0f64; 3];
            for i in 0..100 {
                let state = [0.05 + 0.1 * f64::from(i % 10), 0.05 + 0.1 * f64::from(i / 10)];
                let values = approximator.values(&learned, &state, 3);
                (0..3).for_each(|k| worst[k] += (values[k] - truth(&state, k)).abs() / 100.0);
            }
            assert!(worst.iter().all(|error| *error < 0.1), "{approximator:?}: {worst:?}");
        }
    }

    #[test]
    fn a_mixture_moves_the_value_by_the_rate_and_leaves_the_others_nearly_alone() {
        let approximator = mixture();
        let mut draws = Draws::new(4, Stream::World, 0, 0);
        let mut learned = approximator.start(2, 3, &mut draws);
        let (mut moved, mut others) = (Vec::new(), Vec::new());
        for step in 0..4_000 {
            let state = [draws.unit(), draws.unit()];
            let before = approximator.values(&learned, &state, 3);
            let goal = before[1] - 1.0;
            let size = approximator.size(&learned);
            approximator.learn(&mut learned, &state, &before, (1, goal), 0.2);
            if step >= 400 && approximator.size(&learned) == size {
                let after = approximator.values(&learned, &state, 3);
                moved.push(before[1] - after[1]);
                others.push((before[0] - after[0]).abs().max((before[2] - after[2]).abs()));
            }
        }
        // Slopes move with the means: at the rim of a component a value goes further than its mean.
        let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
        let (moved, others) = (mean(&moved), mean(&others));
        assert!((0.15..0.6).contains(&moved) && others < 0.01, "{moved} {others}");
    }

    #[test]
    fn a_network_steps_along_the_gradient() {
        // Against differences of half the squared error.
        let approximator = network();
        let mut draws = Draws::new(5, Stream::World, 0, 0);
        let Learned::Network(mut weights) = approximator.start(2, 3, &mut draws) else { panic!("a network") };
        weights.iter_mut().for_each(|weight| *weight += 0.3 * draws.normal());
        let (state, target) = ([0.4, -0.7], 0.9);
        let value = |weights: &[f64]| approximator.values(&Learned::Network(weights.to_vec()), &state, 3)[2];
        let loss = |weights: &[f64]| 0.5 * (value(weights) - target) * (value(weights) - target);
        let mut learned = Learned::Network(weights.clone());
        let values = approximator.values(&learned, &state, 3);
        approximator.learn(&mut learned, &state, &values, (2, target), 1.0);
        let Learned::Network(after) = learned else { panic!("a network") };
        for i in 0..weights.len() {
            let mut shifted = weights.clone();
            shifted[i] += 1e-6;
            let slope = (loss(&shifted) - loss(&weights)) / 1e-6;
            assert!((after[i] - weights[i] + slope).abs() < 1e-5, "{i}: {} {slope}", after[i] - weights[i]);
        }
    }

    #[test]
    fn where_nothing_is_known_values_are_0() {
        let approximator = mixture();
        let mut draws = Draws::new(6, Stream::World, 0, 0);
        let mut learned = approximator.start(2, 3, &mut draws);
        assert_eq!(approximator.values(&learned, &[0.5, 0.5], 3), vec![0.0; 3]);
        for _ in 0..50 {
            approximator.learn(&mut learned, &[0.1, 0.1], &[-1.0; 3], (0, -1.0), 0.3);
        }
        let [near, far] = [[0.1, 0.1], [3.0, 3.0]].map(|state: [f64; 2]| approximator.values(&learned, &state, 3)[0]);
        assert!(near < -0.9 && far > -0.01, "{near} {far}");
    }
}
