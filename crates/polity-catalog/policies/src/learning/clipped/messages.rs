//! Messages that the agents of an episode send each other before they decide.

use crate::learning::{Start, Teams};
use polity_kernel::Invalid;
use polity_nn::{Array, Attention, Mlp, Tape, Var};
use schemars::JsonSchema;
use serde::Deserialize;

/// Messages between the agents in the critic's view.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessagesSource {
    /// Numbers in a message, 1 to 1,024.
    pub size: usize,
    /// How an agent puts the messages together that it receives.
    #[serde(default)]
    pub mix: Mix,
    /// From how many other agents an agent receives messages; at least 1. Default: from all.
    #[serde(default)]
    pub senders: Option<usize>,
    /// How these senders are found.
    #[serde(default)]
    pub graph: Graph,
}

/// How messages are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// By their mean (Sukhbaatar et al. 2016).
    #[default]
    Mean,
    /// By attention: an agent weighs them by how well they fit what it sees (Das et al. 2019).
    Attention,
}

/// How the senders of each agent are found, if it does not receive messages from all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Graph {
    /// They are learned: each possible sender has a logit, and those with the highest are taken; gradients flow through a softmax of the
    /// logits (Hu et al. 2024).
    #[default]
    Learned,
    /// They are drawn at random once, as a control with as many messages.
    Random,
}

/// Makes messages, and puts together those that an agent receives.
#[derive(Clone, Debug)]
pub struct Messages {
    net: Mlp,
    attention: Option<Attention>,
    senders: Option<Senders>,
    seats: usize,
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
struct Senders {
    /// How many send to each agent.
    count: usize,
    /// The number of the logits among the weights: a row for each seat, a column for each other seat, beginning with the next one.
    logits: usize,
    learned: bool,
    /// The column of what an agent sees that is 1 if it sits on the first seat.
    seat: usize,
}

impl Messages {
    /// Makes the networks.
    ///
    /// # Errors
    /// A number out of range; agents that do not have a common critic; senders by seat for agents who do not see their seat.
    pub fn open(source: &MessagesSource, teams: Option<&Teams>, start: &mut Start) -> Result<Self, Invalid> {
        Invalid::within(1..=1_024, "messages.size", source.size)?;
        let seats = teams.map_or(1, Teams::seats);
        let why = "needs a critic that sees several agents: `critic: episode`, in an episode of several";
        Invalid::unless(seats > 1, "messages", why)?;
        let inputs = start.inputs();
        let net = start.net("message", [inputs, source.size], 1.0);
        let attention =
            (source.mix == Mix::Attention).then(|| start.attention("attention", [inputs, source.size, source.size]));
        let senders = source.senders.map(|count| {
            Invalid::within(1..=seats - 1, "messages.senders", count)?;
            let numbers = start.senses.numbers();
            let seat = numbers.iter().position(|name| name == "seat-0");
            let seat = seat.filter(|first| (0..seats).all(|k| numbers.get(first + k) == Some(&format!("seat-{k}"))));
            let message = "needs agents that see their seats: name `seat-0`, `seat-1` and so on in `observe`, in order";
            let seat = seat.ok_or_else(|| Invalid { key: "messages.senders".into(), message: message.into() })?;
            let logits = start.normal("senders", [seats, seats - 1], 0.1);
            Ok(Senders { count, logits, learned: source.graph == Graph::Learned, seat })
        });
        Ok(Messages { net, attention, senders: senders.transpose()?, seats })
    }

    /// Returns what each agent hears. `x`: what it sees itself. `view`: that, then what the agents on the seats after its own see.
    pub fn heard(&self, tape: &mut Tape<'_>, x: Var, view: Var) -> Var {
        let (others, width) = (self.seats - 1, tape.value(view).columns() / self.seats);
        let mut said = Vec::with_capacity(others);
        for other in 1..=others {
            let seen = tape.columns(view, other * width, width);
            let numbers = self.net.on(tape, seen);
            said.push(tape.tanh(numbers));
        }
        let rows = tape.value(x).rows();
        let open = match self.senders {
            Some(senders) => senders.of(tape, x, self.seats),
            None => tape.input(Array::new(rows, others, vec![1.0; rows * others])),
        };
        if let Some(attention) = &self.attention {
            return attention.on(tape, x, &said, open);
        }
        let count = self.senders.map_or(others, |senders| senders.count);
        let mut heard = Vec::with_capacity(others);
        for (other, said) in said.into_iter().enumerate() {
            let open = tape.columns(open, other, 1);
            heard.push(tape.row_times(open, said));
        }
        let sum = heard.into_iter().reduce(|sum, said| tape.add(sum, said)).unwrap_or(x);
        tape.scale(sum, 1.0 / count as f32)
    }
}

impl Senders {
    /// Returns, for each agent and each other seat, 1 if it receives messages from there, and 0 if not.
    fn of(self, tape: &mut Tape<'_>, x: Var, seats: usize) -> Var {
        let logits = if self.learned { tape.weight(self.logits) } else { tape.frozen(self.logits) };
        let seat = tape.columns(x, self.seat, seats);
        let none = tape.input(Array::zeros(1, seats - 1));
        let logits = tape.affine(seat, logits, none);
        let shares = tape.log_softmax(logits);
        let shares = tape.exp(shares);
        let taken = highest(tape.value(shares), self.count);
        tape.replaced(shares, &taken)
    }
}

/// Returns 1 at the highest numbers of each row, and 0 elsewhere; of equal numbers the first are taken.
fn highest(of: &Array, count: usize) -> Array {
    let columns = of.columns();
    let mut taken = Array::zeros(of.rows(), columns);
    for (row, taken) in taken.data_mut().chunks_exact_mut(columns.max(1)).enumerate() {
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|a, b| of.row(row)[*b].total_cmp(&of.row(row)[*a]));
        order.iter().take(count).for_each(|column| taken[*column] = 1.0);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::highest;
    use polity_nn::Array;

    #[test]
    fn the_highest_numbers_are_taken() {
        let of = Array::new(2, 4, vec![0.1, 0.4, 0.3, 0.2, 0.2, 0.2, 0.1, 0.2]);
        assert_eq!(highest(&of, 2).data(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    }
}
