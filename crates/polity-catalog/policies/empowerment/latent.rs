//! A latent model: numbers that stand for what is seen, and how they follow each other.

use super::episodes::{Recorded, joined};
use super::params::{LatentSource, Learns};
use crate::learning::{Start, one_hot, sampled};
use polity_kernel::rng::Draws;
use polity_nn::{Activation, Array, Gradients, Mlp, NotFinite, Tape, Var, Weights, gradients, outputs};
use std::ops::Range;

/// Recorded states from which an imagined step draws the next one.
const CANDIDATES: usize = 512;
/// States that are compared in learning: the right one and 31 others.
const COMPARED: usize = 32;

/// The networks of a latent model.
pub struct Latent {
    source: LatentSource,
    /// From what is seen to a latent state.
    encoder: Mlp,
    /// From a latent state and a choice to a vector. Its product with another latent state is log p(next | state, choice) / p(next).
    predictor: Mlp,
    /// From a latent state to what was seen.
    decoder: Option<Mlp>,
    choices: usize,
}

impl Latent {
    /// Makes the networks for states of so many numbers.
    pub fn open(source: LatentSource, observed: usize, start: &mut Start) -> Self {
        let (size, choices) = (source.size, start.choices());
        let encoder = start.net("encoder", [observed, size], 1.0);
        let predictor = start.net("predictor", [size + choices, size], 1.0);
        let decoder = (source.encoder == Learns::Reconstruction)
            .then(|| start.net_with("decoder", [size, observed], (&[], Activation::Tanh), 1.0));
        Latent::new(source, [encoder, predictor], decoder, choices)
    }

    pub(super) fn new(
        source: LatentSource,
        [encoder, predictor]: [Mlp; 2],
        decoder: Option<Mlp>,
        choices: usize,
    ) -> Self {
        Latent { source, encoder, predictor, decoder, choices }
    }

    /// Returns the latent states of what is seen.
    pub fn encoded(&self, weights: &Weights, states: &Array) -> Array {
        let [latent] = outputs(weights, states.rows(), |tape, rows| {
            let states = tape.input(states.part(rows));
            let latent = self.encoder.on(tape, states);
            [tape.tanh(latent)]
        });
        latent
    }

    /// Returns latent states of recorded states, among which [`Latent::next`] draws.
    pub fn candidates(&self, weights: &Weights, recorded: &Recorded, draws: &mut Draws) -> Array {
        let n = recorded.then.rows() as u64;
        let drawn: Vec<u32> = (0..CANDIDATES).map(|_| draws.below(n) as u32).collect();
        self.encoded(weights, &recorded.then.pick(&drawn))
    }

    /// Draws the latent state after each latent state and choice.
    pub fn next(
        &self,
        weights: &Weights,
        candidates: &Array,
        states: &Array,
        choices: &[u32],
        draws: &mut Draws,
    ) -> Array {
        let inputs = joined(states, &one_hot(choices.iter().map(|choice| *choice as usize), self.choices));
        let (to, none) = (candidates.transposed(), Array::zeros(1, candidates.rows()));
        let [logs] = outputs(weights, inputs.rows(), |tape, rows| {
            let [inputs, to, none] = [inputs.part(rows), to.clone(), none.clone()].map(|of| tape.input(of));
            let predicted = self.predictor.on(tape, inputs);
            let scores = tape.affine(predicted, to, none);
            [tape.log_softmax(scores)]
        });
        let drawn: Vec<u32> = (0..logs.rows()).map(|row| u32::from(sampled(logs.row(row), draws))).collect();
        candidates.pick(&drawn)
    }

    /// Returns the latent states of what is seen, on a tape.
    fn latent_on(&self, tape: &mut Tape<'_>, states: Var) -> Var {
        let latent = match self.source.encoder {
            Learns::Prediction => self.encoder.on(tape, states),
            Learns::Reconstruction => self.encoder.frozen_on(tape, states),
        };
        tape.tanh(latent)
    }

    /// Returns the gradients of the cross entropy of telling the next state among others (InfoNCE: van den Oord et al. 2018). It is least
    /// where the scores are logarithms of p(z'|z, a) / p(z').
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    pub fn learn(&self, weights: &Weights, recorded: &Recorded, draws: &mut Draws) -> Result<Gradients<1>, NotFinite> {
        let n = recorded.then.rows();
        // States of the same episode would be told apart from each other only.
        let mut order: Vec<u32> = (0..n as u32).collect();
        draws.shuffle(&mut order);
        let states = recorded.episodes.states.pick(&order);
        let choices = order.iter().map(|row| recorded.episodes.choices[*row as usize] as usize);
        let choices = one_hot(choices, self.choices);
        if self.source.shuffled {
            draws.shuffle(&mut order);
        }
        let then = recorded.then.pick(&order);
        gradients(weights, n, ["the loss of the latent model"], |tape, rows| {
            let [seen, then, choices] = [&states, &then, &choices].map(|of| tape.input(of.part(rows.clone())));
            let [from, to] = [seen, then].map(|of| self.latent_on(tape, of));
            let from = tape.join(&[from, choices]);
            let told = self.predictor.on(tape, from);
            let mut scores = Vec::with_capacity(COMPARED);
            for shift in 0..COMPARED.min(rows.len()) {
                let other = (0..rows.len()).map(|row| ((row + shift) % rows.len()) as u32).collect();
                let other = tape.rows(to, other);
                let product = tape.multiply(told, other);
                scores.push(tape.row_sums(product));
            }
            let scores = tape.join(&scores);
            let logs = tape.log_softmax(scores);
            let right = tape.columns(logs, 0, 1);
            let sum = tape.sum(right);
            let loss = tape.scale(sum, -1.0 / n as f32);
            [self.reconstructed(tape, loss, &states, rows, n)]
        })
    }

    /// Adds the error in telling what was seen from its latent state, if the encoder learns that.
    fn reconstructed(&self, tape: &mut Tape<'_>, loss: Var, states: &Array, rows: Range<usize>, n: usize) -> Var {
        let Some(decoder) = &self.decoder else { return loss };
        let states = tape.input(states.part(rows));
        let latent = self.encoder.on(tape, states);
        let latent = tape.tanh(latent);
        let told = decoder.on(tape, latent);
        let error = tape.subtract(told, states);
        let square = tape.square(error);
        let sum = tape.sum(square);
        let error = tape.scale(sum, 1.0 / n as f32);
        tape.add(loss, error)
    }
}
