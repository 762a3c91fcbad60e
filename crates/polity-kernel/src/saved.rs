//! State is saved in pieces of canonical bytes, so that there is no second copy of it in memory.

use crate::Bug;
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;

/// Receives the bytes of a saved state as they are written.
pub trait Sink {
    /// Takes the next bytes. A sink that cannot store them remembers why, and discards all further bytes.
    fn take(&mut self, bytes: &[u8]);

    /// Notes that a part of the state begins at byte `at`.
    fn begin(&mut self, part: Part, at: u64) {
        let _ = (part, at);
    }
}

/// The kind of a part of a saved society.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The round, the living agents, and what cohorts share.
    Head,
    /// The state of the world that is not in rows.
    World,
    /// The number of agents in a block, and their cohorts.
    Block,
    /// States of agents.
    Agents,
    /// Rows of the world.
    Rows,
    /// Messages to be read, waiting turns, planned events.
    Pending,
}

impl Sink for Vec<u8> {
    fn take(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Bytes that are passed on at once.
const PIECE: usize = 64 << 10;

/// Writes values one after the other, as postcard does. The last bytes are passed on when it is dropped.
pub(crate) struct Writer<'a> {
    sink: &'a mut dyn Sink,
    piece: Vec<u8>,
    /// Bytes passed on before.
    before: u64,
}

impl<'a> Writer<'a> {
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Writer { sink, piece: Vec::with_capacity(PIECE), before: 0 }
    }

    /// Begins a part.
    pub fn begin(&mut self, part: Part) {
        self.sink.begin(part, self.before + self.piece.len() as u64);
    }

    /// Writes a value. `what` names the state in errors.
    pub fn value<T: Serialize + ?Sized>(&mut self, value: &T, what: impl Display) -> Result<(), Bug> {
        let written = postcard::serialize_with_flavor(value, Pieces(self));
        written.map_err(|e| Bug::internal(format!("{what} cannot be saved: {e}")))
    }

    fn hand_on(&mut self) {
        self.sink.take(&self.piece);
        self.before += self.piece.len() as u64;
        self.piece.clear();
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.piece.is_empty() {
            self.hand_on();
        }
    }
}

/// Receives the bytes of one value from postcard.
struct Pieces<'w, 'a>(&'w mut Writer<'a>);

impl Flavor for Pieces<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        if self.0.piece.len() == PIECE {
            self.0.hand_on();
        }
        self.0.piece.push(byte);
        Ok(())
    }

    #[inline(always)]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if self.0.piece.len() + bytes.len() > PIECE {
            self.0.hand_on();
            if bytes.len() > PIECE {
                self.0.sink.take(bytes);
                self.0.before += bytes.len() as u64;
                return Ok(());
            }
        }
        self.0.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Reads values back in the order in which they were written.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// Reads the next value. `what` names the state in errors.
    pub fn value<T: DeserializeOwned>(&mut self, what: impl Display) -> Result<T, Bug> {
        let (value, rest) = postcard::take_from_bytes(self.0)
            .map_err(|e| Bug::Snapshot { what: what.to_string(), why: e.to_string() })?;
        self.0 = rest;
        Ok(value)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that nothing is left. `what`: whose state it was.
    pub fn end(self, what: &str) -> Result<(), Bug> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(Bug::Snapshot { what: what.into(), why: format!("{left} bytes are left over") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the lengths of the pieces.
    #[derive(Default)]
    struct Lengths(Vec<usize>, Vec<u8>);

    impl Sink for Lengths {
        fn take(&mut self, bytes: &[u8]) {
            self.0.push(bytes.len());
            self.1.take(bytes);
        }
    }

    #[test]
    fn values_come_back_whatever_the_pieces() {
        let numbers: Vec<u32> = (0..100_000).map(|n| n * 7919 % 70_001).collect();
        let text = "x".repeat(3 * PIECE);
        let mut sink = Lengths::default();
        let mut writer = Writer::new(&mut sink);
        writer.value(&numbers, "numbers").unwrap();
        writer.value(text.as_str(), "a text").unwrap();
        writer.value(&(7u8, vec![1.5f32; 20_000]), "the rest").unwrap();
        drop(writer);
        let Lengths(pieces, bytes) = sink;
        // No more than a piece is buffered; a large write is passed on as it is.
        assert!(pieces.len() > 5 && pieces.iter().all(|n| (1..=PIECE).contains(n) || *n == text.len()), "{pieces:?}");
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.value::<Vec<u32>>("numbers").unwrap(), numbers);
        assert_eq!(reader.value::<String>("a text").unwrap(), text);
        assert!(reader.end("all").unwrap_err().to_string().contains("left over"));
        assert_eq!(reader.value::<(u8, Vec<f32>)>("the rest").unwrap().0, 7);
        assert_eq!(reader.end("all"), Ok(()));
        assert!(reader.value::<String>("more").unwrap_err().to_string().contains("more"));
    }
}
