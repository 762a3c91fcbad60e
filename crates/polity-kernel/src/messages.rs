//! Messages between agents: outboxes in buckets, inboxes in sorted arenas.
//!
//! Senders run in lanes of consecutive blocks. Every lane appends its messages to one bucket per destination block. At the barrier
//! a destination block concatenates its buckets in lane order and counting-sorts them by recipient. Both steps preserve order, so
//! every inbox is sorted by (sender, number) whatever the number of threads, lanes or shards.

use crate::{AgentId, BLOCK, BLOCK_BITS};
use serde::{Deserialize, Serialize};

/// Marks a message whose word points to a text.
const TEXT: u16 = 1 << 15;

/// A message in an arena: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedMessage {
    from: AgentId,
    /// Recipient within its block.
    to: u16,
    /// Channel, and whether the word points to a text.
    tag: u16,
    /// The bits of a number, or offset << 24
    /// length of a text in the arena.
    word: u64,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
}

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

/// Messages and their texts.
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
        self.messages.push(PackedMessage { from, to, tag: channel & !TEXT, word: value.to_bits() });
    }

    /// Appends a text (at most 16 MiB; longer ones are cut by the turn that sends them).
    pub fn text(&mut self, from: AgentId, to: AgentId, channel: u16, text: &str) {
        let to = (to & (BLOCK as u32 - 1)) as u16;
        let word = (self.text.len() as u64) << 24 | text.len() as u64;
        self.messages.push(PackedMessage { from, to, tag: channel & !TEXT | TEXT, word });
        self.text.extend_from_slice(text.as_bytes());
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
        self.messages.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !TEXT, u32::from(l.to)))
    }

    /// Appends an inbox, for one recipient.
    pub fn extend(&mut self, inbox: Inbox<'_>) {
        for message in inbox.messages {
            let mut message = *message;
            if message.tag & TEXT != 0 {
                let (start, len) = ((message.word >> 24) as usize, (message.word & 0xFF_FFFF) as usize);
                message.word = (self.text.len() as u64) << 24 | len as u64;
                self.text.extend_from_slice(inbox.text.get(start..start + len).unwrap_or_default());
            }
            self.messages.push(message);
        }
    }
}

/// The maximum length of a message's text, in bytes.
pub const LONGEST_TEXT: usize = (1 << 24) - 1;

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
            let base = (self.sorted.text.len() as u64) << 24;
            self.sorted.text.extend_from_slice(&bucket.text);
            for message in &bucket.messages {
                let mut message = *message;
                if message.tag & TEXT != 0 {
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
        self.messages.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !TEXT))
    }

    /// Iterates over the numbers among the messages, with their senders.
    #[inline]
    pub fn numbers(self) -> impl Iterator<Item = (AgentId, f64)> {
        self.messages.iter().filter(|l| l.tag & TEXT == 0).map(|l| (l.from, f64::from_bits(l.word)))
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

fn read<'a>(message: &PackedMessage, text: &'a [u8]) -> Message<'a> {
    let body = if message.tag & TEXT == 0 {
        Body::Number(f64::from_bits(message.word))
    } else {
        let (start, len) = ((message.word >> 24) as usize, (message.word & 0xFF_FFFF) as usize);
        let bytes = text.get(start..start + len).unwrap_or_default();
        Body::Text(std::str::from_utf8(bytes).unwrap_or_default())
    };
    Message { from: message.from, channel: message.tag & !TEXT, body }
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
            mut sent in proptest::collection::vec((0u32..40, 0u32..50, any::<bool>()), 0..300), cut in 1u32..40,
        ) {
            sent.sort_by_key(|s| s.0);
            let mut lanes = vec![Bucket::default(); 41];
            let mut plain: Vec<(u32, u32, String)> = Vec::new();
            for (n, (from, to, text)) in sent.iter().enumerate() {
                let lane = &mut lanes[(from / cut) as usize];
                if *text {
                    let words = format!("ü{n}");
                    lane.text(*from, *to, 3, &words);
                    plain.push((*to, *from, words));
                } else {
                    lane.number(*from, *to, 3, n as f64);
                    plain.push((*to, *from, n.to_string()));
                }
            }
            plain.sort_by_key(|p| p.0);
            let mut arena = Arena::default();
            arena.fill(lanes.iter(), false);
            let got: Vec<(u32, u32, String)> = arena
                .all()
                .map(|(row, inbox)| {
                    let words = match inbox.body { Body::Number(x) => x.to_string(), Body::Text(t) => t.to_string() };
                    (row as u32, inbox.from, words)
                })
                .collect();
            prop_assert_eq!(&got, &plain);
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
        let mut arena = Arena::default();
        arena.fill([&bucket].into_iter(), false);
        let mut kept = Bucket::default();
        kept.extend(arena.inbox(7));
        kept.extend(arena.inbox(7));
        let mails: Vec<_> = kept.inbox().into_iter().collect();
        assert_eq!(mails[2], Message { from: 1, channel: 0, body: Body::Text("hello") });
        assert_eq!(mails[3], Message { from: 2, channel: 5, body: Body::Number(2.5) });
        assert!(arena.inbox(8).is_empty() && Arena::default().inbox(3).is_empty());
    }
}
