//! What networks make of what is seen.

use super::Start;
use polity_nn::{Array, Mlp, Tape, Var, Weights, outputs};

/// What entropy is worth in the loss of a soft actor-critic (temperature α). Its logarithm is among the weights.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    log_alpha: usize,
    /// The entropy that α is adjusted to; `None`: α stays as it is.
    pub target: Option<f32>,
}

impl Temperature {
    /// Begins with this α.
    pub fn new(start: &mut Start, alpha: f64, target: Option<f64>) -> Self {
        let log_alpha = start.first.push("log-alpha", Array::column(vec![libm::log(alpha) as f32]));
        Temperature { log_alpha, target: target.map(|target| target as f32) }
    }

    /// Returns α.
    #[must_use]
    pub fn alpha(&self, weights: &Weights) -> f32 {
        libm::expf(weights[self.log_alpha].array.data()[0])
    }

    /// Adds log α times the entropy above the target to a loss; both are held. `entropy`: its mean over the batch, of which these rows are
    /// this share.
    pub fn adjusted(&self, tape: &mut Tape<'_>, loss: Var, entropy: Var, share: f32) -> Var {
        let Some(target) = self.target else { return loss };
        let above = tape.value(entropy).data()[0] - target * share;
        let log_alpha = tape.weight(self.log_alpha);
        let pull = tape.scale(log_alpha, above);
        tape.add(loss, pull)
    }
}

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
