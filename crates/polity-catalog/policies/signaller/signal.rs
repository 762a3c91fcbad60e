//! Messages: bits as words, as fields of a record or as quantised numbers.

use super::Channel;
use polity_kernel::AgentId;
use polity_kernel::messages::{Body, Bucket};
use polity_kernel::policy::{Fault, Turn};
use std::collections::BTreeMap;

/// Facts, and the words for their values 0 and 1. All words differ, so that a value says which fact it is of.
pub static WORDS: [(&str, [&str; 2]); 15] = [
    ("colour", ["red", "blue"]),
    ("size", ["small", "large"]),
    ("shape", ["round", "square"]),
    ("weight", ["light", "heavy"]),
    ("age", ["new", "old"]),
    ("surface", ["smooth", "rough"]),
    ("distance", ["near", "far"]),
    ("warmth", ["cold", "warm"]),
    ("height", ["low", "high"]),
    ("sound", ["quiet", "loud"]),
    ("price", ["cheap", "dear"]),
    ("moisture", ["dry", "wet"]),
    ("pattern", ["plain", "striped"]),
    ("width", ["narrow", "wide"]),
    ("taste", ["sweet", "sour"]),
];

/// A message before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// Words.
    Text(String),
    /// Fields by name.
    Record(BTreeMap<&'static str, &'static str>),
    /// Numbers from 0 to 1.
    Vector(Vec<f64>),
}

impl Signal {
    /// Puts the lowest `amount` bits into a message. `bits`: of each number of a vector.
    pub fn of(channel: Channel, sent: u32, amount: u32, bits: u32) -> Signal {
        let word =
            |(i, (name, words)): (usize, &(&'static str, [&'static str; 2]))| (*name, words[(sent >> i & 1) as usize]);
        let all = WORDS.iter().enumerate().take(amount as usize).map(word);
        match channel {
            Channel::Text => Signal::Text(all.map(|(_, word)| word).collect::<Vec<_>>().join(" ")),
            Channel::Record => Signal::Record(all.collect()),
            Channel::Vector => {
                let level = |i: u32| sent >> (i * bits) & ((1 << bits) - 1);
                // The middle of its level's part of the range.
                let number = |i: u32| (f64::from(level(i)) + 0.5) / f64::from(1u32 << bits);
                Signal::Vector((0..amount.div_ceil(bits)).map(number).collect())
            }
        }
    }

    /// Sends it.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn send(self, turn: &mut Turn<'_>, to: AgentId) -> Result<(), Fault> {
        match self {
            Signal::Text(text) => turn.send_text(to, 0, text),
            Signal::Record(fields) => return turn.send_record(to, 0, &fields),
            Signal::Vector(numbers) => turn.send_vector(to, 0, numbers),
        }
        Ok(())
    }

    /// Returns the tokens that it takes to show it to a model.
    pub fn tokens(&self) -> u64 {
        let mut kept = Bucket::default();
        match self {
            Signal::Text(text) => kept.text(0, 0, 0, text),
            Signal::Record(fields) => kept.record(0, 0, 0, &serde_json::to_string(fields).unwrap_or_default()),
            Signal::Vector(numbers) => kept.vector(0, 0, 0, numbers),
        }
        kept.inbox().into_iter().map(|message| message.body.tokens()).sum()
    }
}

/// Returns the bits of a message. What it does not say, or says in no known word, is 0.
pub fn heard(body: &Body<'_>, bits: u32) -> u32 {
    let said = |word: &str| {
        let places = || WORDS.iter().enumerate();
        places().find(|(_, (_, [_, one]))| word == *one).map_or(0, |(i, _)| 1u32 << i)
    };
    match body {
        Body::Text(text) => text.split_whitespace().map(said).fold(0, |all, bit| all | bit),
        Body::Record(_) => {
            let fields: BTreeMap<String, String> = body.record().unwrap_or_default();
            let of = |(i, (name, [_, one])): (usize, &(&str, [&str; 2]))| match fields.get(*name) {
                Some(word) if word == one => 1u32 << i,
                _ => 0,
            };
            WORDS.iter().enumerate().map(of).sum()
        }
        Body::Vector(vector) => {
            let levels = f64::from(1u32 << bits);
            let level = |number: f64| (number * levels).clamp(0.0, levels - 1.0) as u32;
            // No object has more facts than a word has bits.
            let all = vector.numbers().take(u32::BITS as usize / bits as usize).enumerate();
            all.map(|(i, number)| level(number) << (i as u32 * bits)).fold(0, |all, bits| all | bits)
        }
        Body::Number(_) => 0,
    }
}
