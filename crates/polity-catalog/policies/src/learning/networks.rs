//! What networks make of what is seen.

use super::Start;
use polity_nn::{Array, Mlp, Tape, Var, Weights, outputs};

/// Returns the values of all choices, for each row of what is seen; those that are not offered have very low ones. `masks`: what is added
/// to them ([`super::Seen::mask`]).
#[must_use]
pub fn values_of(net: &Mlp, weights: &Weights, inputs: &Array, masks: &Array) -> Array {
    let [values] = outputs(weights, inputs.rows(), |tape, rows| {
        let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(masks.part(rows)));
        let values = net.on(tape, x);
        [tape.add(values, mask)]
    });
    values
}

/// Returns the logarithms of the probabilities of all choices, for each row of what is seen with its mask.
#[must_use]
pub fn logs_of(net: &Mlp, weights: &Weights, inputs: &Array, masks: &Array) -> Array {
    let [logs] = outputs(weights, inputs.rows(), |tape, rows| {
        let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(masks.part(rows)));
        [logs_on(tape, net, x, mask)]
    });
    logs
}

/// Returns the same for inputs and masks on a tape.
pub fn logs_on(tape: &mut Tape<'_>, net: &Mlp, x: Var, mask: Var) -> Var {
    let logits = net.on(tape, x);
    let logits = tape.add(logits, mask);
    tape.log_softmax(logits)
}

/// Two networks that estimate the same values. The lesser of both counts, since errors make a single one too high where it is maximised.
#[derive(Clone, Debug)]
pub struct Twin(pub [Mlp; 2]);

impl Twin {
    /// Makes them, from these inputs to these outputs.
    pub fn new(start: &mut Start, sizes: [usize; 2]) -> Self {
        Twin(["value-0", "value-1"].map(|name| start.net(name, sizes, 1.0)))
    }

    /// Returns the lesser of both values, with weights that are constants.
    pub fn frozen_least(&self, tape: &mut Tape<'_>, x: Var) -> Var {
        let [one, two] = [0, 1].map(|i| self.0[i].frozen_on(tape, x));
        tape.least(one, two)
    }

    /// Returns the lesser of both values. `of` takes those that matter from the outputs of a network.
    pub fn least(&self, tape: &mut Tape<'_>, x: Var, of: impl Fn(&mut Tape<'_>, Var) -> Var) -> Var {
        let [one, two] = [0, 1].map(|i| {
            let values = self.0[i].on(tape, x);
            of(tape, values)
        });
        tape.least(one, two)
    }

    /// Returns the sum of the squares of the errors of both. `error` makes errors of the outputs of a network.
    pub fn squares(&self, tape: &mut Tape<'_>, x: Var, error: impl Fn(&mut Tape<'_>, Var) -> Var) -> Var {
        let [one, two] = [0, 1].map(|i| {
            let values = self.0[i].on(tape, x);
            let error = error(tape, values);
            let square = tape.square(error);
            tape.sum(square)
        });
        tape.add(one, two)
    }
}
