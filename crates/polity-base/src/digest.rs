//! Digests define what "the same run" means.
//!
//! A round's digest is the order-independent 128-bit sum of one hash for every act, message, event and metric of the round, and of
//! the digests of all state at the beginning and end of the round. So it can be summed in any order on any thread or shard. The
//! run's digest chains its rounds' digests. The digest of a state is the sum of one hash for every row, changed or not; it is
//! updated with the rows that change ([`DigestVec`], [`DigestMap`]). The hash detects differences between runs. It is not a defence
//! against an adversary who forges a journal.

mod kept;
mod value;

pub use kept::{DigestMap, DigestVec};
pub use value::hash_value;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What kind of row a hash stands for. The numbers are part of the journal format: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An act of an agent.
    Action = 1,
    /// A message from one agent to another.
    Message = 2,
    /// The value of a metric.
    Metric = 3,
    /// The states of all agents.
    Agent = 4,
    /// A row of a state; all rows of the world.
    Row = 5,
    /// The state of the world that is not in rows.
    Common = 6,
    /// A birth or a death; who was born and who died.
    Life = 7,
    /// The verdict on an item of a data set.
    Item = 8,
    /// The link of a round to those before it.
    Chain = 9,
    /// A question to a model.
    Request = 10,
    /// The contents of an input file.
    Input = 11,
    /// A planned event.
    Event = 12,
    /// What the agents of a cohort share.
    Cohort = 13,
    /// The contents of a file that was written in pieces.
    File = 14,
    /// All state between two rounds.
    State = 15,
}

const P: [u64; 6] = [
    0x9E37_79B9_7F4A_7C15,
    0xD1B5_4A32_D192_ED03,
    0xA076_1D64_78BD_642F,
    0xE703_7ED1_A0B4_28DB,
    0x8EBC_6AF0_9C88_C6E3,
    0x5899_65CC_7537_4CC3,
];

/// Multiplies to a 128-bit product and folds its two halves.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// The hash of one row under construction: two independent lanes of multiply-and-fold.
#[derive(Clone, Copy, Debug)]
pub struct RowHash {
    a: u64,
    b: u64,
}

impl RowHash {
    /// Begins the hash of a row of `kind` in `round`.
    #[inline(always)]
    #[must_use]
    pub fn new(kind: Kind, round: u32) -> Self {
        let head = u64::from(round) << 8 | kind as u64;
        RowHash { a: fold(head ^ P[0], P[1]), b: fold(head ^ P[2], P[3]) }
    }

    /// Adds 64 bits.
    #[inline(always)]
    #[must_use]
    pub fn word(self, w: u64) -> Self {
        // The additions keep a lane alive if a product ever folds to zero.
        RowHash {
            a: fold(self.a ^ w, P[1]).wrapping_add(P[4]),
            b: fold(self.b.rotate_left(23) ^ w, P[3]).wrapping_add(P[5] ^ w),
        }
    }

    /// Adds two 64-bit words in one step.
    #[inline(always)]
    #[must_use]
    pub fn words(self, v: u64, w: u64) -> Self {
        RowHash {
            a: fold(self.a ^ v, P[1] ^ w).wrapping_add(P[4]),
            b: fold(self.b.rotate_left(23) ^ w, P[3] ^ v).wrapping_add(P[5] ^ w),
        }
    }

    /// Adds the exact bits of a number.
    #[inline(always)]
    #[must_use]
    pub fn number(self, x: f64) -> Self {
        self.word(x.to_bits())
    }

    /// Adds bytes and their length.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut hash = self.word(bytes.len() as u64 ^ P[2]);
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            hash = hash.word(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            hash = hash.word(u64::from_le_bytes(word));
        }
        hash
    }

    /// Adds a digest.
    #[inline(always)]
    #[must_use]
    pub fn digest(self, Digest(digest): Digest) -> Self {
        self.words(digest as u64, (digest >> 64) as u64)
    }

    /// Returns the 128-bit hash.
    #[inline(always)]
    #[must_use]
    pub fn finish(self) -> u128 {
        // Mix both lanes; each has gone through a folded product.
        let product = u128::from(self.a ^ P[5]) * u128::from(self.b ^ P[0]);
        product.wrapping_add(u128::from(self.a) << 64 | u128::from(self.b.rotate_left(32)))
    }
}

/// The digest of a file's bytes, computed in pieces. It does not depend on where the pieces are cut.
#[derive(Clone, Debug)]
pub struct FileHash {
    hash: RowHash,
    /// Bytes that do not fill two words yet.
    held: [u8; FileHash::STEP],
    length: u64,
}

impl FileHash {
    /// Bytes hashed at once: two words.
    const STEP: usize = 16;

    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hash = FileHash::default();
        hash.take(bytes);
        hash.digest()
    }

    /// Adds the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        let filled = (self.length % Self::STEP as u64) as usize;
        self.length += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min((Self::STEP - filled) % Self::STEP));
        self.held[filled..filled + head.len()].copy_from_slice(head);
        if filled > 0 && filled + head.len() == Self::STEP {
            self.hash = Self::step(self.hash, &self.held);
        }
        let (steps, tail) = rest.as_chunks::<{ FileHash::STEP }>();
        self.hash = steps.iter().fold(self.hash, Self::step);
        self.held[..tail.len()].copy_from_slice(tail);
    }

    /// Returns the digest of all bytes added.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let filled = (self.length % Self::STEP as u64) as usize;
        let mut last = [0; Self::STEP];
        last[..filled].copy_from_slice(&self.held[..filled]);
        // The length distinguishes trailing zeros from the end.
        Digest(Self::step(self.hash, &last).word(self.length).finish())
    }

    #[inline(always)]
    fn step(hash: RowHash, bytes: &[u8; FileHash::STEP]) -> RowHash {
        let both = u128::from_le_bytes(*bytes);
        hash.words(both as u64, (both >> 64) as u64)
    }
}

impl Default for FileHash {
    fn default() -> Self {
        FileHash { hash: RowHash::new(Kind::File, 0), held: [0; Self::STEP], length: 0 }
    }
}

/// A 128-bit digest, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub u128);

impl Digest {
    /// Adds the hash of a row.
    #[inline(always)]
    pub fn add(&mut self, hash: u128) {
        self.0 = self.0.wrapping_add(hash);
    }

    /// Subtracts the hash of a row that was added before.
    #[inline(always)]
    pub fn subtract(&mut self, hash: u128) {
        self.0 = self.0.wrapping_sub(hash);
    }

    /// Adds the sum of other rows of the same round.
    pub fn merge(&mut self, other: Digest) {
        self.add(other.0);
    }

    /// Returns the chain after a round whose rows sum to `of_round`.
    #[must_use]
    pub fn chain(self, round: u32, of_round: Digest) -> Digest {
        let (before, now) = (self.0, of_round.0);
        Digest(
            RowHash::new(Kind::Chain, round)
                .word(before as u64)
                .word((before >> 64) as u64)
                .word(now as u64)
                .word((now >> 64) as u64)
                .finish(),
        )
    }
}

impl FromStr for Digest {
    type Err = String;

    /// Reads 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, String> {
        let digest = u128::from_str_radix(text, 16).ok().map(Digest);
        digest
            .filter(|digest| digest.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not a digest (32 hexadecimal digits)"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Hashes words one by one and in pairs.
    fn rows(round: u32, a: u64, b: u64) -> [u128; 2] {
        let head = RowHash::new(Kind::Action, round);
        [head.word(a).word(b).finish(), head.words(a, b).finish()]
    }

    fn row(round: u32, a: u64, b: u64) -> u128 {
        rows(round, a, b)[1]
    }

    #[test]
    fn near_rows_differ_in_about_half_the_bits() {
        let mut total = 0;
        let mut cases = 0;
        for i in 0..64 {
            for (a, b) in [(5 ^ (1 << i), 9), (5, 9 ^ (1 << i))] {
                for (x, y) in rows(1, 5, 9).into_iter().zip(rows(1, a, b)) {
                    let bits = (x ^ y).count_ones();
                    assert!((30..=98).contains(&bits), "bit {i}: {bits}");
                    total += bits;
                    cases += 1;
                }
            }
        }
        let mean = f64::from(total) / f64::from(cases);
        assert!((60.0..68.0).contains(&mean), "{mean}");
    }

    #[test]
    fn small_inputs_do_not_collide() {
        let mut seen = BTreeSet::new();
        for round in 0..10 {
            for a in 0..100 {
                for b in 0..100 {
                    assert!(rows(round, a, b).into_iter().all(|row| seen.insert(row)));
                }
            }
        }
        assert_ne!(
            RowHash::new(Kind::Action, 0).bytes(b"a").finish(),
            RowHash::new(Kind::Action, 0).bytes(b"a\0").finish()
        );
        assert_ne!(RowHash::new(Kind::Action, 0).finish(), RowHash::new(Kind::Row, 0).finish());
    }

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = FileHash::of(b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for wrong in ["", "0", &digest.to_string().to_uppercase(), &format!("+{}", &digest.to_string()[1..])] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_has_one_digest_however_it_is_cut() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * i % 251) as u8).collect();
        for length in 0..bytes.len() {
            let whole = FileHash::of(&bytes[..length]);
            for piece in [1, 3, 15, 16, 17, 40] {
                let mut hash = FileHash::default();
                bytes[..length].chunks(piece).for_each(|piece| hash.take(piece));
                assert_eq!(hash.digest(), whole, "{length} bytes, {piece} at once");
            }
        }
    }

    #[test]
    fn files_that_differ_in_a_bit_or_in_length_have_other_digests() {
        let bytes: Vec<u8> = (0..67u32).map(|i| (i % 3) as u8).collect();
        let mut seen = BTreeSet::from([FileHash::of(&bytes)]);
        for at in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[at / 8] ^= 1 << (at % 8);
            assert!(seen.insert(FileHash::of(&other)), "bit {at}");
        }
        for length in 0..bytes.len() {
            assert!(seen.insert(FileHash::of(&bytes[..length])), "{length} bytes");
        }
        let zeros: BTreeSet<Digest> = (0..100).map(|length| FileHash::of(&vec![0; length])).collect();
        assert_eq!(zeros.len(), 100);
    }

    #[test]
    fn order_of_rows_is_free_and_order_of_rounds_is_not() {
        let (mut x, mut y) = (Digest::default(), Digest::default());
        for i in 0..100 {
            x.add(row(0, i, 0));
            y.add(row(0, 99 - i, 0));
        }
        assert_eq!(x, y);
        let zero = Digest::default();
        assert_ne!(zero.chain(0, x).chain(1, zero), zero.chain(0, zero).chain(1, x));
    }
}
