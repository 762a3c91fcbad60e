//! What networks make of what is seen.

use super::{About, Start, net};
use polity_kernel::Invalid;
use polity_kernel::rng::Draws;
use polity_nn::{Array, Mlp, Tape, Var, Weights, outputs};
use std::ops::Range;

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
    values_by(|tape, x| net.on(tape, x), weights, inputs, masks)
}

/// Returns the same for a network that `net` puts on a tape.
#[must_use]
pub fn values_by(
    net: impl Fn(&mut Tape<'_>, Var) -> Var + Sync,
    weights: &Weights,
    inputs: &Array,
    masks: &Array,
) -> Array {
    let [values] = outputs(weights, inputs.rows(), |tape, rows| {
        let (x, mask) = (tape.input(inputs.part(rows.clone())), tape.input(masks.part(rows)));
        let values = net(tape, x);
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

/// A network that gives each choice a logit.
#[derive(Clone, Debug)]
pub struct Chooser {
    net: Mlp,
    /// What is seen of each choice; `None`: the network sees everything, and has an output for each choice.
    per_choice: Option<PerChoice>,
}

/// Which columns of what is seen are about which choice.
#[derive(Clone, Debug)]
struct PerChoice {
    /// Those about no choice.
    common: Vec<usize>,
    /// Those about each choice, the same quantities in the same order.
    own: Vec<Vec<usize>>,
}

impl PerChoice {
    /// Sorts numbers by their names: `NAME-x` is about the choice `NAME`.
    fn of(numbers: &[String], choices: &[String]) -> Result<Self, Invalid> {
        let about = |choice: &String| -> Vec<(usize, &str)> {
            let prefix = format!("{choice}-");
            let named = numbers.iter().enumerate();
            named.filter_map(|(column, name)| Some((column, name.strip_prefix(&prefix)?))).collect()
        };
        let all: Vec<_> = choices.iter().map(about).collect();
        let quantities = |of: &[(usize, &str)]| of.iter().map(|(_, what)| (*what).to_owned()).collect::<Vec<_>>();
        let first = all.first().map(|of| quantities(of)).unwrap_or_default();
        let odd = choices.iter().zip(&all).find(|(_, of)| of.is_empty() || quantities(of) != first);
        if let Some((choice, of)) = odd {
            let message = format!(
                "needs the same numbers `CHOICE-...` for each choice; `{}` has {}, and `{choice}` has {}",
                choices[0],
                listed(&first),
                listed(&quantities(of)),
            );
            return Err(Invalid { key: "per_choice".into(), message });
        }
        let own: Vec<Vec<usize>> = all.iter().map(|of| of.iter().map(|(column, _)| *column).collect()).collect();
        let common = (0..numbers.len()).filter(|column| !own.iter().any(|own| own.contains(column))).collect();
        Ok(PerChoice { common, own })
    }

    /// Returns what the network sees of each choice, row by row: a row for each choice.
    fn seen(&self, inputs: &Array) -> Array {
        let columns = self.common.len() + self.own[0].len();
        let mut data = Vec::with_capacity(inputs.rows() * self.own.len() * columns);
        for row in 0..inputs.rows() {
            let row = inputs.row(row);
            for own in &self.own {
                data.extend(self.common.iter().chain(own).map(|column| row[*column]));
            }
        }
        Array::new(inputs.rows() * self.own.len(), columns, data)
    }
}

/// Returns names for a message.
fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.iter().map(|name| format!("`-{name}`")).collect::<Vec<_>>().join(", ")
    }
}

impl Chooser {
    /// Makes the network that a file of weights tells of. `gain`: that of its last layer.
    ///
    /// # Errors
    /// A network for each choice alone, where the choices do not have the same numbers.
    pub fn new(about: &About, gain: f64, weights: &mut Weights, draws: &mut Draws) -> Result<Self, Invalid> {
        let per_choice = about.per_choice.then(|| PerChoice::of(&about.numbers, &about.choices)).transpose()?;
        let sizes = match &per_choice {
            Some(of) => [of.common.len() + of.own[0].len(), 1],
            None => [about.numbers.len(), about.choices.len()],
        };
        let net = net(weights, "policy", sizes, (about.hidden.as_slice(), about.activation), gain, draws);
        Ok(Chooser { net, per_choice })
    }

    /// Returns the logarithms of the probabilities of all choices for these rows of what is seen.
    pub fn logs_on(&self, tape: &mut Tape<'_>, inputs: &Array, masks: &Array, rows: Range<usize>) -> Var {
        let (seen, mask) = (inputs.part(rows.clone()), tape.input(masks.part(rows)));
        match &self.per_choice {
            Some(of) => {
                let x = tape.input(of.seen(&seen));
                let logits = self.net.on(tape, x);
                let logits = tape.reshape(logits, of.own.len());
                let logits = tape.add(logits, mask);
                tape.log_softmax(logits)
            }
            None => {
                let x = tape.input(seen);
                logs_on(tape, &self.net, x, mask)
            }
        }
    }

    /// Returns the logarithms of the probabilities of all choices, for each row of what is seen with its mask ([`super::Seen::mask`]).
    #[must_use]
    pub fn logs(&self, weights: &Weights, inputs: &Array, masks: &Array) -> Array {
        let [logs] = outputs(weights, inputs.rows(), |tape, rows| [self.logs_on(tape, inputs, masks, rows)]);
        logs
    }
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
