//! The pure kernel of Polity: a deterministic round machine for societies of agents.
//!
//! It reads no clock, does no input or output and knows no thread count. What it wants from outside leaves as effects and comes
//! back as answers ([`ask`]); what is recorded is the answers, so replay, resume and fork are all "run the same machine again".
//!
//! Start reading at [`society::Society::poll`], then [`policy::Policy`], [`world::SplitWorld`] and [`method::Method`].

pub mod agreement;
pub mod ask;
pub mod calibration;
pub mod council;
pub mod declare;
pub mod digest;
pub mod distance;
mod door;
pub mod evaluation;
pub mod event;
pub mod items;
pub mod journal;
pub mod ladder;
pub mod machine;
pub mod mail;
pub mod method;
pub mod metric;
pub mod policy;
pub mod population;
pub mod registry;
pub mod rng;
pub mod saved;
pub mod scenario;
pub mod sight;
pub mod society;
pub mod stats;
pub mod system;
pub mod topology;
pub mod transport;
pub mod tree;
pub mod world;

pub use tree::Invalid;

use ask::{EffectId, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Names an agent: a dense row number. Ids of the dead are never used again.
pub type AgentId = u32;

/// log2 of [`BLOCK`].
pub const BLOCK_BITS: u32 = 12;
/// Agents in a block: the unit of float reductions, and where shards are cut.
pub const BLOCK: usize = 1 << BLOCK_BITS;

/// State that the kernel keeps: plain data with canonical bytes.
pub trait Plain: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<T: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static> Plain for T {}

/// What stops a run from inside: a defect, or a record that does not belong to this run. Never a model's bad reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Bug {
    /// A turn can not go on.
    #[error("agent {agent}, round {round}: {message}")]
    Turn {
        /// Whose turn.
        agent: AgentId,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// A cohort's council can not go on.
    #[error("the council of cohort {cohort} (counted from 0), round {round}: {message}")]
    Council {
        /// Whose council.
        cohort: u16,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// A method can not go on.
    #[error("item {item}, round {round}: {message}")]
    Method {
        /// Row of the data set.
        item: u32,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// The record holds an answer to another question.
    #[error(
        "effect {id} was recorded for another request: the run no longer asks what it asked when it was recorded\n\
         recorded: {journaled:?}\nnow asked: {asked:?}"
    )]
    Mismatch {
        /// Which effect.
        id: EffectId,
        /// What the journal says was asked.
        journaled: Box<Request>,
        /// What is asked now.
        asked: Box<Request>,
    },
    /// A snapshot does not fit.
    #[error("a snapshot can not be read: {what}: {why}")]
    Snapshot {
        /// Which part.
        what: String,
        /// Why.
        why: String,
    },
    /// A frame between shards can not be read.
    #[error("transport between shards: {0}")]
    Transport(String),
    /// The kernel contradicts itself.
    #[error("this is a defect of Polity: {0}")]
    Internal(String),
}

impl Bug {
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Bug::Internal(message.into())
    }
}

/// Reduces neighbours pairwise until one is left: the result depends on the number of items alone.
pub fn tree_reduce<T>(mut items: Vec<T>, merge: impl Fn(T, T) -> T) -> Option<T> {
    while items.len() > 1 {
        let mut next = Vec::with_capacity(items.len().div_ceil(2));
        let mut iter = items.into_iter();
        while let Some(left) = iter.next() {
            next.push(match iter.next() {
                Some(right) => merge(left, right),
                None => left,
            });
        }
        items = next;
    }
    items.pop()
}
