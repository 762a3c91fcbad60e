//! A latent model: codes of what is seen, and how they follow each other.

use super::episodes::{Recorded, one_hot};
use super::params::{LatentSource, Learns};
use crate::learning::{Start, best};
use polity_kernel::rng::Draws;
use polity_nn::{Activation, Array, Gradients, Mlp, NotFinite, Tape, Var, Weights, gradients, outputs};
use std::ops::Range;

/// The networks of a latent model.
pub struct Latent {
    source: LatentSource,
    /// From what is seen to a logit for each code.
    encoder: Mlp,
    /// From a code to logits of the next code, for each choice.
    dynamics: Mlp,
    /// From a code to what was seen.
    decoder: Option<Mlp>,
    choices: usize,
}

/// How a code follows from each code and choice.
pub struct Table {
    probabilities: Array,
    choices: usize,
}

impl Table {
    /// Returns the logarithms of the probabilities of the next code.
    pub fn next(&self, code: u32, choice: u16) -> &[f32] {
        self.probabilities.row(code as usize * self.choices + usize::from(choice))
    }
}

impl Latent {
    /// Makes the networks for states of so many numbers.
    pub fn open(source: LatentSource, observed: usize, start: &mut Start) -> Self {
        let (codes, choices, linear) = (source.codes, start.choices(), (&[][..], Activation::Tanh));
        let encoder = start.net("encoder", [observed, codes], 1.0);
        let dynamics = start.net_with("dynamics", [codes, choices * codes], linear, 1.0);
        let decoder = (source.encoder == Learns::Reconstruction)
            .then(|| start.net_with("decoder", [codes, observed], linear, 1.0));
        Latent::new(source, [encoder, dynamics], decoder, choices)
    }

    pub(super) fn new(
        source: LatentSource,
        [encoder, dynamics]: [Mlp; 2],
        decoder: Option<Mlp>,
        choices: usize,
    ) -> Self {
        Latent { source, encoder, dynamics, decoder, choices }
    }

    /// Returns the number of codes.
    pub fn codes(&self) -> usize {
        self.source.codes
    }

    /// Returns the most probable code of each state.
    pub fn encoded(&self, weights: &Weights, states: &Array) -> Vec<u32> {
        let [logits] = outputs(weights, states.rows(), |tape, rows| {
            let states = tape.input(states.part(rows));
            [self.encoder.on(tape, states)]
        });
        (0..logits.rows()).map(|row| u32::from(best(logits.row(row)))).collect()
    }

    /// Returns how codes follow from codes and choices.
    pub fn table(&self, weights: &Weights) -> Table {
        let all: Vec<u32> = (0..self.codes() as u32).collect();
        let codes = one_hot(&all, self.codes());
        let [probabilities] = outputs(weights, codes.rows(), |tape, rows| {
            let codes = tape.input(codes.part(rows));
            let logits = self.next_on(tape, codes);
            [tape.log_softmax(logits)]
        });
        Table { probabilities, choices: self.choices }
    }

    /// Returns logits of the next code: a row for each choice, then those of the next row of codes.
    fn next_on(&self, tape: &mut Tape<'_>, codes: Var) -> Var {
        let logits = self.dynamics.on(tape, codes);
        tape.reshape(logits, self.codes())
    }

    /// Returns the probabilities of the codes of states on a tape.
    fn codes_on(&self, tape: &mut Tape<'_>, states: Var) -> Var {
        let logits = match self.source.encoder {
            Learns::Prediction => self.encoder.on(tape, states),
            Learns::Reconstruction => self.encoder.frozen_on(tape, states),
        };
        let logs = tape.log_softmax(logits);
        tape.exp(logs)
    }

    /// Returns the gradients of what the model and the encoder learn from the transitions of episodes. The sum over next codes of q(c')
    /// (log p(c'|c, a) - log m(c')) is to become large: with q of the encoder, p of the model and the mean m of q it is the information
    /// of a code and a choice about the next code. Without m all states would get the same code, which is easily predicted.
    ///
    /// # Errors
    /// The first loss or gradient that is not a finite number.
    pub fn learn(&self, weights: &Weights, recorded: &Recorded, draws: &mut Draws) -> Result<Gradients<1>, NotFinite> {
        let (states, choices, n) = (&recorded.episodes.states, &recorded.episodes.choices, recorded.then.rows());
        let mut order: Vec<u32> = (0..n as u32).collect();
        if self.source.shuffled {
            draws.shuffle(&mut order);
        }
        let then = recorded.then.pick(&order);
        let [codes] = outputs(weights, n, |tape, rows| {
            let then = tape.input(then.part(rows));
            [self.codes_on(tape, then)]
        });
        let rare = codes.column_sums().map(|sum| -libm::logf((sum / n as f32).max(1e-9)));
        gradients(weights, n, ["the loss of the latent model"], |tape, rows| {
            let [seen, then] = [states, &then].map(|of| tape.input(of.part(rows.clone())));
            let [from, to] = [seen, then].map(|of| self.codes_on(tape, of));
            let logits = self.next_on(tape, from);
            let logits = tape.rows(logits, self.chosen(&choices[rows.clone()]));
            let logs = tape.log_softmax(logits);
            let mut surprise = Array::EMPTY;
            rows.clone().for_each(|_| surprise.push(rare.row(0)));
            let surprise = tape.input(surprise);
            let gain = tape.add(logs, surprise);
            let gain = tape.multiply(to, gain);
            let sum = tape.sum(gain);
            let loss = tape.scale(sum, -1.0 / n as f32);
            [self.reconstructed(tape, loss, states, &rows, n)]
        })
    }

    /// Returns the rows of [`Latent::next_on`] that belong to choices.
    fn chosen(&self, choices: &[u32]) -> Vec<u32> {
        (0u32..).zip(choices).map(|(row, choice)| row * self.choices as u32 + choice).collect()
    }

    /// Adds the error in telling what was seen from its code, if the encoder learns that. Gradients flow through the code as if it were its
    /// probability.
    fn reconstructed(&self, tape: &mut Tape<'_>, loss: Var, states: &Array, rows: &Range<usize>, n: usize) -> Var {
        let Some(decoder) = &self.decoder else { return loss };
        let states = tape.input(states.part(rows.clone()));
        let logits = self.encoder.on(tape, states);
        let logs = tape.log_softmax(logits);
        let soft = tape.exp(logs);
        let codes: Vec<u32> = (0..rows.len()).map(|row| u32::from(best(tape.value(soft).row(row)))).collect();
        let code = tape.replaced(soft, &one_hot(&codes, self.codes()));
        let told = decoder.on(tape, code);
        let error = tape.subtract(told, states);
        let square = tape.square(error);
        let sum = tape.sum(square);
        let error = tape.scale(sum, 1.0 / n as f32);
        tape.add(loss, error)
    }
}
