//! The exchange of shards at the barrier: messages, reductions, observations and acts of unsplit state, digests. Nothing else is
//! exchanged.

use crate::Bug;

/// Bytes from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Sending shard.
    pub from: usize,
    /// Receiving shard.
    pub to: usize,
    /// The content: postcard bytes of a type that both ends know from the phase of the round.
    pub bytes: Vec<u8>,
}

/// Carries the frames of one phase. Returns them sorted by (to, from), whatever their order of travel.
pub trait Transport: Send {
    /// Sends frames and waits for all of them.
    fn exchange(&mut self, frames: Vec<Frame>) -> Result<Vec<Frame>, Bug>;
    /// Returns the number of bytes carried so far.
    fn carried(&self) -> u64;
}

/// Shards within one process. Frames are really serialised: what would be lost between machines is lost here too.
#[derive(Debug, Default)]
pub struct InMemory {
    carried: u64,
}

impl Transport for InMemory {
    fn exchange(&mut self, mut frames: Vec<Frame>) -> Result<Vec<Frame>, Bug> {
        self.carried += frames.iter().map(|f| f.bytes.len() as u64).sum::<u64>();
        // A network would not keep order: reverse, then sort, so that no caller relies on the order of sending.
        frames.reverse();
        frames.sort_by_key(|f| (f.to, f.from));
        Ok(frames)
    }

    fn carried(&self) -> u64 {
        self.carried
    }
}
