//! The pure kernel of Polity: a deterministic round machine for societies of agents.
//!
//! It reads no clock, does no input or output and does not depend on the thread count. Requests to the outside leave as effects and
//! come back as answers ([`ask`]). Only answers are recorded, so replay, resume and fork all mean "run the same machine again".
//!
//! Start reading at [`machine::Machine::poll`] of a [`society::Society`], then [`policy::Policy`], [`world::SplitWorld`] and [`method::Method`].

pub mod ask;
pub mod cohort;
pub mod declare;
pub mod environment;
pub mod evaluation;
pub mod event;
pub mod failure;
pub mod interface;
pub mod items;
pub mod journal;
pub mod layout;
pub mod machine;
pub mod messages;
pub mod method;
pub mod metric;
pub mod policy;
pub mod prelude;
pub mod registry;
pub mod saved;
pub mod scenario;
pub mod society;
pub mod tool;
pub mod toolbox;
pub mod world;

pub use polity_base::{
    EXACT, Invalid, digest, distance, expression, formula, outline, points, population, rng, topology, tree,
};

use ask::{EffectId, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The id of an agent: a dense row number. Ids of dead agents are never reused.
pub type AgentId = u32;

/// log2 of [`BLOCK`].
pub const BLOCK_BITS: u32 = 12;
/// Agents in a block: the unit of float reductions, and where shards are cut.
pub const BLOCK: usize = 1 << BLOCK_BITS;

/// State that the kernel keeps: plain data with canonical bytes.
pub trait Plain: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {}
impl<T: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static> Plain for T {}

/// An error that stops a run from inside: a defect, or a record that does not belong to this run. Never a model's bad reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Bug {
    /// A turn cannot continue.
    #[error("agent {agent}, round {round}: {message}")]
    Turn {
        /// Whose turn.
        agent: AgentId,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// A cohort step cannot continue.
    #[error("the cohort step of cohort {cohort} (counted from 0), round {round}: {message}")]
    Cohort {
        /// Whose step.
        cohort: u16,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// A world cannot continue.
    #[error("the world, round {round}: {message}")]
    World {
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// A method cannot continue.
    #[error("item {item}, round {round}: {message}")]
    Method {
        /// Row of the data set.
        item: u32,
        /// When.
        round: u32,
        /// What happened.
        message: String,
    },
    /// The journal holds an answer to a different question.
    #[error(
        "effect {id} was recorded for another request: the run no longer asks what it asked when it was recorded\n\
         recorded: {journaled:?}\nnow asked: {asked:?}"
    )]
    Mismatch {
        /// Which effect.
        id: EffectId,
        /// The question in the journal.
        journaled: Box<Request>,
        /// The question now.
        asked: Box<Request>,
    },
    /// A snapshot does not fit.
    #[error("a snapshot cannot be read: {what}: {why}")]
    Snapshot {
        /// Which part.
        what: String,
        /// Why.
        why: String,
    },
    /// A frame between shards cannot be read.
    #[error("transport between shards: {0}")]
    Transport(String),
    /// The kernel is inconsistent.
    #[error("this is a defect of Polity: {0}")]
    Internal(String),
}

impl Bug {
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Bug::Internal(message.into())
    }
}

/// Reduces neighbours pairwise until one is left. The result depends on the number of items alone.
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
