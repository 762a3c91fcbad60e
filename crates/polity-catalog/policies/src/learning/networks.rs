//! What networks make of what is seen.

use polity_nn::{Array, Mlp, Weights, outputs};

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
        let logits = net.on(tape, x);
        let logits = tape.add(logits, mask);
        [tape.log_softmax(logits)]
    });
    logs
}
