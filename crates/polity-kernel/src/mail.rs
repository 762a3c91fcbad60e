//! Letters between agents: outboxes in buckets, inboxes in sorted arenas.
//!
//! Senders run in lanes of consecutive blocks. Every lane appends its letters to one bucket a destination block; at the barrier a
//! destination block concatenates its buckets in lane order and counting-sorts them by recipient. Both steps keep order, so every
//! inbox is sorted by (sender, number) whatever the number of threads, lanes or shards.

use crate::{AgentId, BLOCK, BLOCK_BITS};
use serde::{Deserialize, Serialize};

/// Marks a letter whose word points at text.
const TEXT: u16 = 1 << 15;

/// A letter in an arena: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    from: AgentId,
    /// Recipient within its block.
    to: u16,
    /// Channel, and whether the word points at text.
    tag: u16,
    /// A number's bits, or offset << 24 | length of a text in the arena.
    word: u64,
}

/// What a letter says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body<'a> {
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a str),
}

/// A letter as its recipient reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mail<'a> {
    /// The sender.
    pub from: AgentId,
    /// The channel it was sent on (a number below 32,768 that world and policies agree on; 0 unless said).
    pub channel: u16,
    /// What it says.
    pub body: Body<'a>,
}

/// Letters and the texts they point at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    letters: Vec<Letter>,
    text: Vec<u8>,
}

impl Bucket {
    /// Appends a number.
    #[inline(always)]
    pub fn number(&mut self, from: AgentId, to: AgentId, channel: u16, value: f64) {
        let to = (to & (BLOCK as u32 - 1)) as u16;
        self.letters.push(Letter { from, to, tag: channel & !TEXT, word: value.to_bits() });
    }

    /// Appends a text (at most 16 MiB; longer ones are cut by the turn that sends them).
    pub fn text(&mut self, from: AgentId, to: AgentId, channel: u16, text: &str) {
        let to = (to & (BLOCK as u32 - 1)) as u16;
        let word = (self.text.len() as u64) << 24 | text.len() as u64;
        self.letters.push(Letter { from, to, tag: channel & !TEXT | TEXT, word });
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Number of letters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Empties the bucket; its memory is kept for the next round.
    pub fn clear(&mut self) {
        self.letters.clear();
        self.text.clear();
    }

    /// The letters as an inbox, in the order they lie.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_> {
        Inbox { letters: &self.letters, text: &self.text }
    }

    /// Letters whose number is a time: (time, sender, channel, recipient within its block).
    pub(crate) fn stamped(&self) -> impl Iterator<Item = (f64, AgentId, u16, AgentId)> + '_ {
        self.letters.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !TEXT, u32::from(l.to)))
    }

    /// Copies an inbox to the end, for one recipient.
    pub fn extend(&mut self, inbox: Inbox<'_>) {
        for letter in inbox.letters {
            let mut letter = *letter;
            if letter.tag & TEXT != 0 {
                let (start, len) = ((letter.word >> 24) as usize, (letter.word & 0xFF_FFFF) as usize);
                letter.word = (self.text.len() as u64) << 24 | len as u64;
                self.text.extend_from_slice(inbox.text.get(start..start + len).unwrap_or_default());
            }
            self.letters.push(letter);
        }
    }
}

/// The longest text a letter carries, bytes.
pub const LONGEST_TEXT: usize = (1 << 24) - 1;

/// The sorted mail of a block of agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arena {
    /// `starts[i]..starts[i + 1]` are the letters of row i; empty when the block has no mail.
    starts: Vec<u32>,
    sorted: Bucket,
}

impl Arena {
    /// Sorts the buckets of a destination block. `late`: some sender's letters may stand out of the order of senders (its turn
    /// had waited), so each inbox is put into order again.
    pub fn fill<'b>(&mut self, buckets: impl Iterator<Item = &'b Bucket> + Clone, late: bool) {
        let total: usize = buckets.clone().map(Bucket::len).sum();
        self.sorted.text.clear();
        if total == 0 {
            self.starts.clear();
            self.sorted.letters.clear();
            return;
        }
        self.starts.clear();
        self.starts.resize(BLOCK + 1, 0);
        for bucket in buckets.clone() {
            for letter in &bucket.letters {
                self.starts[letter.to as usize + 1] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        let empty = Letter { from: 0, to: 0, tag: 0, word: 0 };
        self.sorted.letters.resize(total, empty);
        for bucket in buckets {
            let base = (self.sorted.text.len() as u64) << 24;
            self.sorted.text.extend_from_slice(&bucket.text);
            for letter in &bucket.letters {
                let mut letter = *letter;
                if letter.tag & TEXT != 0 {
                    letter.word += base;
                }
                let slot = &mut self.starts[letter.to as usize];
                self.sorted.letters[*slot as usize] = letter;
                *slot += 1;
            }
        }
        // Every start has moved to its end: shift back by one.
        self.starts.copy_within(0..BLOCK, 1);
        self.starts[0] = 0;
        if late {
            for row in 0..BLOCK {
                let range = self.starts[row] as usize..self.starts[row + 1] as usize;
                self.sorted.letters[range].sort_by_key(|letter| letter.from);
            }
        }
    }

    /// Sorts each inbox by the letters' numbers, then by sender; equal ones keep their order.
    pub fn sort_by_number(&mut self) {
        for row in 0..self.starts.len().saturating_sub(1) {
            let range = self.starts[row] as usize..self.starts[row + 1] as usize;
            if range.len() > 1 {
                self.sorted.letters[range].sort_by(|a, b| {
                    f64::from_bits(a.word).total_cmp(&f64::from_bits(b.word)).then(a.from.cmp(&b.from))
                });
            }
        }
    }

    /// The inbox of row `row` of the block.
    #[inline]
    #[must_use]
    pub fn inbox(&self, row: usize) -> Inbox<'_> {
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => {
                Inbox { letters: &self.sorted.letters[*start as usize..*end as usize], text: &self.sorted.text }
            }
            _ => Inbox::default(),
        }
    }

    /// Drops all mail.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.sorted.clear();
    }

    /// Number of letters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no mail.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// All letters of the block as (recipient's row, mail), sorted by (recipient, sender, number).
    pub fn all(&self) -> impl Iterator<Item = (usize, Mail<'_>)> {
        let rows = self.starts.len().saturating_sub(1);
        (0..rows).flat_map(move |row| self.inbox(row).into_iter().map(move |mail| (row, mail)))
    }
}

/// The letters an agent reads, sorted by (sender, number).
#[derive(Clone, Copy, Debug, Default)]
pub struct Inbox<'a> {
    letters: &'a [Letter],
    text: &'a [u8],
}

impl<'a> Inbox<'a> {
    /// Number of letters.
    #[must_use]
    pub fn len(self) -> usize {
        self.letters.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.letters.is_empty()
    }

    /// Letter `i`.
    #[must_use]
    pub fn get(self, i: usize) -> Option<Mail<'a>> {
        self.letters.get(i).map(|letter| read(letter, self.text))
    }

    /// Letters whose number is a time: (time, sender, channel).
    pub(crate) fn stamped(self) -> impl Iterator<Item = (f64, AgentId, u16)> + 'a {
        self.letters.iter().map(|l| (f64::from_bits(l.word), l.from, l.tag & !TEXT))
    }

    /// The numbers among the letters, with their senders.
    #[inline]
    pub fn numbers(self) -> impl Iterator<Item = (AgentId, f64)> {
        self.letters.iter().filter(|l| l.tag & TEXT == 0).map(|l| (l.from, f64::from_bits(l.word)))
    }
}

impl<'a> IntoIterator for Inbox<'a> {
    type Item = Mail<'a>;
    type IntoIter = Letters<'a>;

    fn into_iter(self) -> Letters<'a> {
        Letters { letters: self.letters.iter(), text: self.text }
    }
}

/// Iterates over an inbox.
#[derive(Clone, Debug)]
pub struct Letters<'a> {
    letters: std::slice::Iter<'a, Letter>,
    text: &'a [u8],
}

impl<'a> Iterator for Letters<'a> {
    type Item = Mail<'a>;

    fn next(&mut self) -> Option<Mail<'a>> {
        self.letters.next().map(|letter| read(letter, self.text))
    }
}

fn read<'a>(letter: &Letter, text: &'a [u8]) -> Mail<'a> {
    let body = if letter.tag & TEXT == 0 {
        Body::Number(f64::from_bits(letter.word))
    } else {
        let (start, len) = ((letter.word >> 24) as usize, (letter.word & 0xFF_FFFF) as usize);
        let bytes = text.get(start..start + len).unwrap_or_default();
        Body::Text(std::str::from_utf8(bytes).unwrap_or_default())
    };
    Mail { from: letter.from, channel: letter.tag & !TEXT, body }
}

/// The block an agent lives in.
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
        /// Against the plain definition: sort all letters by (to, from, n), for any cut of the senders into lanes.
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
                .map(|(row, mail)| {
                    let words = match mail.body { Body::Number(x) => x.to_string(), Body::Text(t) => t.to_string() };
                    (row as u32, mail.from, words)
                })
                .collect();
            prop_assert_eq!(&got, &plain);
            // A lane that comes late is put into its place.
            let mut late = Arena::default();
            late.fill(lanes.iter().rev(), true);
            let again: Vec<_> = late.all().map(|(row, mail)| (row, mail.from)).collect();
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
        assert_eq!(mails[2], Mail { from: 1, channel: 0, body: Body::Text("hello") });
        assert_eq!(mails[3], Mail { from: 2, channel: 5, body: Body::Number(2.5) });
        assert!(arena.inbox(8).is_empty() && Arena::default().inbox(3).is_empty());
    }
}
