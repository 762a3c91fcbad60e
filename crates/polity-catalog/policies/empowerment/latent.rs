//! A latent model: numbers that stand for what is seen, and how they follow each other.

use super::episodes::{Recorded, joined, one_hot};
use super::params::{LatentSource, Learns};
use crate::learning::Start;
use polity_kernel::rng::Draws;
use polity_nn::{Activation, Array, Gradients, Mlp, NotFinite, Tape, Var, Weights, gradients, outputs};
use std::ops::Range;

/// Recorded states, of which the next one is drawn in an imagined step.
const CANDIDATES: usize = 512;
/// Recorded states from which the right one is told in learning; itself is one of them.
const COMPARED: usize = 32;

/// The networks of a latent model.
pub struct Latent {
    source: LatentSource,
    /// From what is seen to a latent state.
    encoder: Mlp,
    /// From a latent state and a choice to a direction: the product with a latent state says how much more probable this one is next than
    /// it is in general, in logarithms.
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
        let scores = self.scores(weights, candidates, states, choices);
        let drawn: Vec<u32> = (0..scores.rows()).map(|row| by_score(scores.row(row), draws)).collect();
        candidates.pick(&drawn)
    }

    /// Returns how much more probable each candidate is after a latent state and a choice than in general, in logarithms.
    pub fn scores(&self, weights: &Weights, candidates: &Array, states: &Array, choices: &[u32]) -> Array {
        let inputs = joined(states, &one_hot(choices, self.choices));
        let [to] = outputs(weights, inputs.rows(), |tape, rows| {
            let inputs = tape.input(inputs.part(rows));
            [self.predictor.on(tape, inputs)]
        });
        to.times(&candidates.transposed(), None)
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
        let choices: Vec<u32> = order.iter().map(|row| recorded.episodes.choices[*row as usize]).collect();
        let choices = one_hot(&choices, self.choices);
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

/// Draws a number with a probability that is proportional to the exponential of its score.
fn by_score(scores: &[f32], draws: &mut Draws) -> u32 {
    let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let parts: Vec<f32> = scores.iter().map(|score| libm::expf(score - top)).collect();
    let mut left = draws.unit() as f32 * parts.iter().sum::<f32>();
    let found = parts.iter().position(|part| {
        left -= part;
        left < 0.0
    });
    found.unwrap_or_default() as u32
}
