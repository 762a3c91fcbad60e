//! Describes an object in a message, as text, record or vector, and names the object of a message. See README.md.

mod code;
mod signal;
#[cfg(test)]
mod tests;

use code::Code;
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use signal::{Signal, WORDS, heard};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Signaller>(files);
}

/// The form of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// Words, one for each bit.
    #[default]
    Text,
    /// A record with a field for each bit.
    Record,
    /// A vector of quantised numbers.
    Vector,
}

/// What the bits of a message are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// The first facts of the object as they are.
    #[default]
    Facts,
    /// The nearest word of a perfect code (Hamming's, or the majority), which loses the fewest facts that so many bits can lose. Words and
    /// fields then stand for places in the code.
    Perfect,
}

/// Parameters of describing.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The form of messages.
    channel: Channel,
    /// What the bits of a message are.
    code: Coding,
    /// Bits of a message: words of a text, or fields of a record.
    amount: u32,
    /// Bits of each number of a vector; 1 to 16. It has 2^`bits` levels.
    bits: u32,
    /// Describe another object, drawn at random, in the same form (the placebo).
    placebo: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { channel: Channel::Text, code: Coding::Facts, amount: 7, bits: 8, placebo: false }
    }
}

/// Describes and names.
pub struct Signaller {
    params: Params,
    code: Code,
    facts: u32,
    describes: NumberSlot,
    partner: NumberSlot,
    object: TableSlot,
    columns: [usize; 2],
    act: u16,
}

/// An agent's last messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Tokens of what was sent or read.
    tokens: u64,
}

impl Signaller {
    fn describe(&self, turn: &mut Turn<'_>) -> Result<u64, Fault> {
        let [fact, value] = self.columns;
        let rows = turn.observation.table(self.object);
        let bit = |row: &[f64]| 1u32.checked_shl(row[fact] as u32).unwrap_or(0);
        let seen = rows.filter(|row| row[value] > 0.0).fold(0, |object, row| object | bit(row));
        let object = match self.params.placebo {
            true => turn.draws.below(1 << self.facts) as u32,
            false => seen,
        };
        let Params { channel, amount, bits, .. } = self.params;
        let signal = Signal::of(channel, self.code.encode(object), amount, bits);
        let (tokens, to) = (signal.tokens(), turn.observation.number(self.partner) as u32);
        signal.send(turn, to)?;
        Ok(tokens)
    }
}

impl Policy for Signaller {
    const NAME: &'static str = "signaller";
    const SUMMARY: &'static str = "Describe an object in a message, as text, record or vector, or name it from one";
    type Params = Params;
    type State = Last;

    const COLUMNS: &'static [StateColumn<Self>] = &[StateColumn {
        name: "tokens",
        doc: "tokens of the messages that the agent sent or read in its last turn, as a model would be shown them",
        range: None,
        value: |_, last| last.tokens as f64,
    }];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(1..=16, "bits", params.bits)?;
        let (object, columns) = setup.table("object", ["fact", "value"])?;
        let (act, argument) = setup.act("name")?;
        // Objects count from 0, and their number is a power of two.
        let facts = match argument {
            ActionArgument::Number { high, .. } => (high as u32).saturating_add(1).ilog2(),
            _ => 0,
        };
        Invalid::within(1..=WORDS.len() as u32, "kind", facts)?;
        Ok(Signaller {
            params,
            code: Code::of(params.code, facts, params.amount)?,
            facts,
            describes: setup.number("describes")?,
            partner: setup.number("partner")?,
            object,
            columns,
            act,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Last {
        Last::default()
    }

    async fn act(&self, last: &mut Last, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if turn.observation.number(self.describes) > 0.0 {
            last.tokens = self.describe(turn)?;
            return Ok(());
        }
        last.tokens = turn.inbox().into_iter().map(|message| message.body.tokens()).sum();
        if let Some(message) = turn.inbox().into_iter().last() {
            let object = self.code.decode(heard(&message.body, self.params.bits));
            turn.act(self.act, f64::from(object));
        }
        Ok(())
    }
}
