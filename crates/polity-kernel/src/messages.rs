//! Messages between agents: outboxes in buckets, inboxes in sorted arenas.
//!
//! Senders run in lanes of consecutive blocks. Every lane appends its messages to one bucket per destination block. At the barrier
//! a destination block concatenates its buckets in lane order and counting-sorts them by recipient. Both steps preserve order, so
//! every inbox is sorted by (sender, number) whatever the number of threads, lanes or shards.

use crate::{AgentId, BLOCK, BLOCK_BITS};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Marks a message whose word points to bytes: a text, a record or a vector.
const BYTES: u16 = 1 << 15;
/// The low bits of such a word: the number of bytes.
const LENGTH_BITS: u32 = 24;
/// Where the form begins in such a word; the bits between are the offset of the bytes.
const FORM_BITS: u32 = 62;

/// The forms of a message that is not a number.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text = 0,
    Record = 1,
    Vector = 2,
}

/// A message in an arena: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedMessage {
    from: AgentId,
    /// Recipient within its block.
    to: u16,
    /// Channel, and whether the word points to bytes.
    tag: u16,
    /// The bits of a number, or the form, the offset and the length of the bytes in the arena.
    word: u64,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
    /// A record: named fields as JSON.
    Record(&'a str),
    /// A vector: several numbers.
    Vector(Vector<'a>),
}

/// Characters per token, roughly: the rule by which simulated models count.
const LETTERS: u64 = 4;

impl Body<'_> {
    /// Returns the fields of a record; `None` if it is no record, or not a `T`.
    #[must_use]
    pub fn record<T: DeserializeOwned>(&self) -> Option<T> {
        match self {
            Body::Record(json) => serde_json::from_str(json).ok(),
            _ => None,
        }
    }

    /// Returns how many tokens it takes to show it to a model, as an estimate: its characters as displayed / 4, rounded up.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        (self.to_string().chars().count() as u64).div_ceil(LETTERS)
    }
}

/// A number and a text as they are, a record as JSON, a vector as a list in brackets.
impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Number(number) => write!(f, "{number}"),
            Body::Text(text) | Body::Record(text) => f.write_str(text),
            Body::Vector(vector) => {
                f.write_str("[")?;
                for (i, number) in vector.numbers().enumerate() {
                    write!(f, "{}{number}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// The numbers of a vector, as they lie in an arena.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vector<'a>(&'a [u8]);

impl<'a> Vector<'a> {
    /// Returns how many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.len() / NUMBER
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.len() < NUMBER
    }

    /// Iterates over them.
    pub fn numbers(self) -> impl Iterator<Item = f64> + 'a {
        self.0.chunks_exact(NUMBER).map(|bytes| {
            let mut number = [0; NUMBER];
            number.copy_from_slice(bytes);
            f64::from_le_bytes(number)
        })
    }
}

/// Bytes of a message in a frame.
const PACKED: usize = size_of::<PackedMessage>();
/// Bytes of a number.
const NUMBER: usize = size_of::<f64>();

/// A message as its recipient reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// The sender.
    pub from: AgentId,
    /// The channel it was sent on: a number below 32,768 whose meaning world and policies agree on; 0 by default.
    pub channel: u16,
    /// Its content.
    pub body: Body<'a>,
}

/// Messages and the bytes of those that are not numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    messages: Vec<PackedMessage>,
    text: Vec<u8>,
}

impl Bucket {
    /// Appends a number.
    #[inline(always)]
    pub fn number(&mut self, from: AgentId, to: AgentId, channel: u16, value: f64) {
        let to = (to & (BLOCK as u32 - 1)) as u16;
        self.messages.push(PackedMessage { from, to, tag: channel & !BYTES, word: value.to_bits() });
    }

    /// Appends a text (at most 16 MiB; longer ones are cut by the turn that sends them).
    pub fn text(&mut self, from: AgentId, to: AgentId, channel: u16, text: &str) {
        self.point(from, to, channel, Form::Text, text.len());
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Appends a record as JSON (at most 16 MiB; turns cannot send longer ones).
    pub fn record(&mut self, from: AgentId, to: AgentId, channel: u16, json: &str) {
        self.point(from, to, channel, Form::Record, json.len());
        self.text.extend_from_slice(json.as_bytes());
    }

    /// Appends a vector (at most [`LONGEST_VECTOR`] numbers; longer ones are cut by the turn that sends them).
    pub fn vector(&mut self, from: AgentId, to: AgentId, channel: u16, numbers: &[f64]) {
        self.point(from, to, channel, Form::Vector, numbers.len() * NUMBER);
        self.text.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }

    /// Appends a message whose bytes come next.
    fn point(&mut self, from: AgentId, to: AgentId, channel: u16, form: Form, len: usize) {
        let to = (to & (BLOCK as u32 - 1)) as u16;
        let word = (form as u64) << FORM_BITS | (self.text.len() as u64) << LENGTH_BITS | len as u64;
        self.messages.push(PackedMessage { from, to, tag: channel & !BYTES | BYTES, word });
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Clears the bucket, keeping its memory for the next round.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.text.clear();
    }

    /// Returns the messages as an inbox, in the order stored.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_> {
        Inbox { messages: &self.messages, text: &self.text }
    }

    /// Iterates over messages whose number is a time: (time, sender, channel, recipient within its block).
    pub(crate) fn stamped(&self) -> impl Iterator<Item = (f64, AgentId, u16, AgentId)> + '_ {
        self.messages.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !BYTES, u32::from(l.to)))
    }

    /// Appends the messages of several buckets for one block to a frame, in order, as plain bytes: how many messages and bytes of
    /// texts, then 16 bytes for each message, then the texts.
    pub(crate) fn pack<'b>(buckets: impl Iterator<Item = &'b Bucket> + Clone, to: &mut Vec<u8>) {
        let messages: usize = buckets.clone().map(Bucket::len).sum();
        let text: usize = buckets.clone().map(|bucket| bucket.text.len()).sum();
        to.reserve(2 * NUMBER + messages * PACKED + text);
        to.extend((messages as u64).to_le_bytes());
        to.extend((text as u64).to_le_bytes());
        let mut base = 0;
        for bucket in buckets.clone() {
            for PackedMessage { from, to: recipient, tag, word } in &bucket.messages {
                let word = if tag & BYTES == 0 { *word } else { word + (base << LENGTH_BITS) };
                let mut bytes = [0; PACKED];
                bytes[..4].copy_from_slice(&from.to_le_bytes());
                bytes[4..6].copy_from_slice(&recipient.to_le_bytes());
                bytes[6..8].copy_from_slice(&tag.to_le_bytes());
                bytes[8..].copy_from_slice(&word.to_le_bytes());
                to.extend_from_slice(&bytes);
            }
            base += bucket.text.len() as u64;
        }
        buckets.for_each(|bucket| to.extend_from_slice(&bucket.text));
    }

    /// Takes the next bucket off a frame; `None` if the bytes are not one.
    pub(crate) fn unpack(from: &mut &[u8]) -> Option<Bucket> {
        let mut length = || {
            let (length, rest) = from.split_first_chunk::<NUMBER>()?;
            *from = rest;
            usize::try_from(u64::from_le_bytes(*length)).ok()
        };
        let (messages, text) = (length()?, length()?);
        let (packed, rest) = from.split_at_checked(messages.checked_mul(PACKED)?)?;
        let (text, rest) = rest.split_at_checked(text)?;
        *from = rest;
        let mut read = Vec::with_capacity(messages);
        for bytes in packed.chunks_exact(PACKED) {
            let (mut from, mut to, mut tag, mut word) = ([0; 4], [0; 2], [0; 2], [0; 8]);
            from.copy_from_slice(&bytes[..4]);
            to.copy_from_slice(&bytes[4..6]);
            tag.copy_from_slice(&bytes[6..8]);
            word.copy_from_slice(&bytes[8..]);
            let to = Some(u16::from_le_bytes(to)).filter(|to| usize::from(*to) < BLOCK)?;
            let (from, tag, word) = (u32::from_le_bytes(from), u16::from_le_bytes(tag), u64::from_le_bytes(word));
            read.push(PackedMessage { from, to, tag, word });
        }
        Some(Bucket { messages: read, text: text.to_vec() })
    }

    /// Appends an inbox, for one recipient.
    pub fn extend(&mut self, inbox: Inbox<'_>) {
        for message in inbox.messages {
            let mut message = *message;
            if message.tag & BYTES != 0 {
                let start = (self.text.len() as u64) << LENGTH_BITS;
                self.text.extend_from_slice(pointed(&message, inbox.text));
                message.word = message.word & !OFFSET | start;
            }
            self.messages.push(message);
        }
    }
}

/// A number told to all neighbours, for those in other shards: it travels once to each shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Broadcast {
    pub from: AgentId,
    pub channel: u16,
    /// The number of the message to the first neighbour, among the sender's messages of the round.
    pub first: u32,
    pub value: f64,
}

impl Broadcast {
    /// Bytes in a frame.
    pub const PACKED: usize = 18;

    /// Appends it to a frame.
    pub fn pack(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.from.to_le_bytes());
        to.extend_from_slice(&self.first.to_le_bytes());
        to.extend_from_slice(&self.channel.to_le_bytes());
        to.extend_from_slice(&self.value.to_bits().to_le_bytes());
    }

    /// Reads it from [`Broadcast::PACKED`] bytes.
    pub fn unpack(bytes: &[u8; Self::PACKED]) -> Self {
        let (mut from, mut first, mut channel, mut value) = ([0; 4], [0; 4], [0; 2], [0; 8]);
        from.copy_from_slice(&bytes[..4]);
        first.copy_from_slice(&bytes[4..8]);
        channel.copy_from_slice(&bytes[8..10]);
        value.copy_from_slice(&bytes[10..]);
        Broadcast {
            from: u32::from_le_bytes(from),
            first: u32::from_le_bytes(first),
            channel: u16::from_le_bytes(channel),
            value: f64::from_bits(u64::from_le_bytes(value)),
        }
    }
}

/// The maximum length of a message's text or record, in bytes.
pub const LONGEST_TEXT: usize = (1 << LENGTH_BITS) - 1;
/// The maximum length of a message's vector, in numbers.
pub const LONGEST_VECTOR: usize = LONGEST_TEXT / NUMBER;
/// The bits of the offset in the word of a message that points to bytes.
const OFFSET: u64 = (1 << FORM_BITS) - (1 << LENGTH_BITS);

/// The sorted inbox of a block of agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arena {
    /// `starts[i]..starts[i + 1]` are the messages of row i; empty if the block has no inbox.
    starts: Vec<u32>,
    sorted: Bucket,
}

impl Arena {
    /// Sorts the buckets of a destination block. `late`: messages of some senders may be out of order because their turns had to
    /// wait, so each inbox is sorted again.
    pub fn fill<'b>(&mut self, buckets: impl Iterator<Item = &'b Bucket> + Clone, late: bool) {
        let total: usize = buckets.clone().map(Bucket::len).sum();
        self.sorted.text.clear();
        if total == 0 {
            self.starts.clear();
            self.sorted.messages.clear();
            return;
        }
        self.starts.clear();
        self.starts.resize(BLOCK + 1, 0);
        for bucket in buckets.clone() {
            for message in &bucket.messages {
                self.starts[message.to as usize + 1] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        let empty = PackedMessage { from: 0, to: 0, tag: 0, word: 0 };
        self.sorted.messages.resize(total, empty);
        for bucket in buckets {
            let base = (self.sorted.text.len() as u64) << LENGTH_BITS;
            self.sorted.text.extend_from_slice(&bucket.text);
            for message in &bucket.messages {
                let mut message = *message;
                if message.tag & BYTES != 0 {
                    message.word += base;
                }
                let slot = &mut self.starts[message.to as usize];
                self.sorted.messages[*slot as usize] = message;
                *slot += 1;
            }
        }
        // Every start has moved to its end, so shift back by one.
        self.starts.copy_within(0..BLOCK, 1);
        self.starts[0] = 0;
        if late {
            for row in 0..BLOCK {
                let range = self.starts[row] as usize..self.starts[row + 1] as usize;
                self.sorted.messages[range].sort_by_key(|message| message.from);
            }
        }
    }

    /// Sorts each inbox by the messages' numbers, then by sender. The sort is stable.
    pub fn sort_by_number(&mut self) {
        for row in 0..self.starts.len().saturating_sub(1) {
            let range = self.starts[row] as usize..self.starts[row + 1] as usize;
            if range.len() > 1 {
                self.sorted.messages[range].sort_by(|a, b| {
                    f64::from_bits(a.word).total_cmp(&f64::from_bits(b.word)).then(a.from.cmp(&b.from))
                });
            }
        }
    }

    /// Returns the inbox of row `row` of the block.
    #[inline]
    #[must_use]
    pub fn inbox(&self, row: usize) -> Inbox<'_> {
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => {
                Inbox { messages: &self.sorted.messages[*start as usize..*end as usize], text: &self.sorted.text }
            }
            _ => Inbox::default(),
        }
    }

    /// Removes all messages.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.sorted.clear();
    }

    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether no inbox has messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Iterates over all messages of the block as (recipient's row, message), sorted by (recipient, sender, number).
    pub fn all(&self) -> impl Iterator<Item = (usize, Message<'_>)> {
        let rows = self.starts.len().saturating_sub(1);
        (0..rows).flat_map(move |row| self.inbox(row).into_iter().map(move |inbox| (row, inbox)))
    }
}

/// The messages an agent reads, sorted by (sender, number).
#[derive(Clone, Copy, Debug, Default)]
pub struct Inbox<'a> {
    messages: &'a [PackedMessage],
    text: &'a [u8],
}

impl<'a> Inbox<'a> {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are no messages.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.messages.is_empty()
    }

    /// Returns message `i`.
    #[must_use]
    pub fn get(self, i: usize) -> Option<Message<'a>> {
        self.messages.get(i).map(|message| read(message, self.text))
    }

    /// Iterates over messages whose number is a time: (time, sender, channel).
    pub(crate) fn stamped(self) -> impl Iterator<Item = (f64, AgentId, u16)> + 'a {
        self.messages.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !BYTES))
    }

    /// Iterates over the numbers among the messages, with their senders.
    #[inline]
    pub fn numbers(self) -> impl Iterator<Item = (AgentId, f64)> {
        self.messages.iter().filter(|l| l.tag & BYTES == 0).map(|l| (l.from, f64::from_bits(l.word)))
    }
}

impl<'a> IntoIterator for Inbox<'a> {
    type Item = Message<'a>;
    type IntoIter = Messages<'a>;

    fn into_iter(self) -> Messages<'a> {
        Messages { messages: self.messages.iter(), text: self.text }
    }
}

/// Iterates over an inbox.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    messages: std::slice::Iter<'a, PackedMessage>,
    text: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        self.messages.next().map(|message| read(message, self.text))
    }
}

/// Returns the bytes that a message points to.
fn pointed<'a>(message: &PackedMessage, bytes: &'a [u8]) -> &'a [u8] {
    let start = ((message.word & OFFSET) >> LENGTH_BITS) as usize;
    let len = (message.word & LONGEST_TEXT as u64) as usize;
    bytes.get(start..start + len).unwrap_or_default()
}

fn read<'a>(message: &PackedMessage, text: &'a [u8]) -> Message<'a> {
    let body = if message.tag & BYTES == 0 {
        Body::Number(f64::from_bits(message.word))
    } else {
        let bytes = pointed(message, text);
        let words = || std::str::from_utf8(bytes).unwrap_or_default();
        match message.word >> FORM_BITS {
            form if form == Form::Record as u64 => Body::Record(words()),
            form if form == Form::Vector as u64 => Body::Vector(Vector(bytes)),
            _ => Body::Text(words()),
        }
    };
    Message { from: message.from, channel: message.tag & !BYTES, body }
}

/// Returns the block of an agent.
#[inline(always)]
#[must_use]
pub fn block_of(agent: AgentId) -> usize {
    (agent >> BLOCK_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with the plain definition, sorting all messages by (to, from, n), for any split of the senders into lanes.
        #[test]
        fn inboxes_are_sorted_by_sender_and_number(
            mut sent in proptest::collection::vec((0u32..40, 0u32..50, 0u8..4), 0..300), cut in 1u32..40,
        ) {
            sent.sort_by_key(|s| s.0);
            let mut lanes = vec![Bucket::default(); 41];
            let mut plain: Vec<(u32, u32, String)> = Vec::new();
            for (n, (from, to, form)) in sent.iter().enumerate() {
                let lane = &mut lanes[(from / cut) as usize];
                let (number, words) = (n as f64 + 0.5, format!("ü{n}"));
                match form {
                    0 => lane.number(*from, *to, 3, number),
                    1 => lane.text(*from, *to, 3, &words),
                    2 => lane.record(*from, *to, 3, &words),
                    _ => lane.vector(*from, *to, 3, &vec![number; n % 4]),
                }
                let read = match form {
                    0 => format!("Number({number})"),
                    1 => format!("Text({words})"),
                    2 => format!("Record({words})"),
                    _ => format!("Vector({:?})", vec![number; n % 4]),
                };
                plain.push((*to, *from, read));
            }
            plain.sort_by_key(|p| p.0);
            let mut arena = Arena::default();
            arena.fill(lanes.iter(), false);
            let got: Vec<(u32, u32, String)> = arena
                .all()
                .map(|(row, inbox)| {
                    let kind = match inbox.body {
                        Body::Number(_) => "Number",
                        Body::Text(_) => "Text",
                        Body::Record(_) => "Record",
                        Body::Vector(_) => "Vector",
                    };
                    let words = format!("{kind}({})", inbox.body);
                    (row as u32, inbox.from, words)
                })
                .collect();
            prop_assert_eq!(&got, &plain);
            // Nothing changes on the way to another process.
            let mut frame = Vec::new();
            Bucket::pack(lanes.iter(), &mut frame);
            let mut rest = frame.as_slice();
            let unpacked = Bucket::unpack(&mut rest);
            prop_assert!(rest.is_empty());
            let mut carried = Arena::default();
            carried.fill(unpacked.iter(), false);
            prop_assert_eq!(&carried, &arena);
            prop_assert_eq!(Bucket::unpack(&mut &frame[..frame.len() - 1]), None);
            // A late lane is sorted into its place.
            let mut late = Arena::default();
            late.fill(lanes.iter().rev(), true);
            let again: Vec<_> = late.all().map(|(row, inbox)| (row, inbox.from)).collect();
            prop_assert_eq!(again, got.iter().map(|g| (g.0 as usize, g.1)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_inbox_can_be_kept() {
        let mut bucket = Bucket::default();
        bucket.text(1, 7, 0, "hello");
        bucket.number(2, 7, 5, 2.5);
        bucket.record(3, 7, 0, r#"{"colour":"red"}"#);
        bucket.vector(4, 7, 6, &[0.5, -2.0, f64::MIN_POSITIVE]);
        let mut arena = Arena::default();
        arena.fill([&bucket].into_iter(), false);
        let mut kept = Bucket::default();
        kept.extend(arena.inbox(7));
        kept.extend(arena.inbox(7));
        let mails: Vec<_> = kept.inbox().into_iter().collect();
        assert_eq!(mails.len(), 8);
        assert_eq!(mails[4], Message { from: 1, channel: 0, body: Body::Text("hello") });
        assert_eq!(mails[5], Message { from: 2, channel: 5, body: Body::Number(2.5) });
        assert_eq!(mails[6], Message { from: 3, channel: 0, body: Body::Record(r#"{"colour":"red"}"#) });
        let Body::Vector(vector) = mails[7].body else { panic!("{mails:?}") };
        assert_eq!(vector.numbers().collect::<Vec<_>>(), [0.5, -2.0, f64::MIN_POSITIVE]);
        assert_eq!((vector.len(), vector.is_empty(), mails[7].channel), (3, false, 6));
        assert!(arena.inbox(8).is_empty() && Arena::default().inbox(3).is_empty());
    }

    #[test]
    fn a_message_is_shown_as_what_it_is() {
        let mut bucket = Bucket::default();
        bucket.number(0, 1, 0, 0.25);
        bucket.text(0, 1, 0, "red small");
        bucket.record(0, 1, 0, r#"{"colour":"red","size":3}"#);
        bucket.vector(0, 1, 0, &[0.25, 1.0]);
        bucket.vector(0, 1, 0, &[]);
        let bodies: Vec<Body<'_>> = bucket.inbox().into_iter().map(|message| message.body).collect();
        let shown: Vec<String> = bodies.iter().map(Body::to_string).collect();
        assert_eq!(shown, ["0.25", "red small", r#"{"colour":"red","size":3}"#, "[0.25, 1]", "[]"]);
        assert_eq!(bodies.iter().map(Body::tokens).collect::<Vec<_>>(), [1, 3, 7, 3, 1]);
        // Only a record has fields, and only of its own type.
        let fields: Vec<Option<(String, u32)>> = bodies
            .iter()
            .map(|body| body.record::<serde_json::Value>())
            .map(|record| record.map(|it| (it["colour"].as_str().unwrap().into(), it["size"].as_u64().unwrap() as u32)))
            .collect();
        assert_eq!(fields, [None, None, Some(("red".into(), 3)), None, None]);
        assert_eq!(bodies[2].record::<Vec<u32>>(), None);
    }
}
