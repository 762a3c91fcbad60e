//! The state of a society.

use super::answers::Answers;
use super::plan::{Leaves, Measure, Plan, Policies};
use super::shard::Shard;
use crate::ask::Answer;
use crate::cohort::{SharedBox, TallyBox};
use crate::digest::{Digest, Kind, RowHash};
use crate::interface::Interface;
use crate::machine::Outcome;
use crate::messages::Bucket;
use crate::policy::SharedContext;
use crate::transport::Transport;
use crate::world::{Future, Split};
use crate::{AgentId, Bug};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// A cohort that is taking its step.
pub(super) struct CohortRound {
    pub(super) cohort: u16,
    pub(super) tally: TallyBox,
    pub answers: Answers,
    /// Its result.
    pub(super) done: Option<SharedBox>,
}

pub(super) enum Stage {
    /// Nothing of the round has happened.
    Border,
    /// The world asks, before any observation.
    Inquiring(Answers),
    /// Cohorts take their steps before their agents take turns.
    CohortStep(Vec<CohortRound>),
    /// Turns are begun, slice by slice. Answers that arrive before all are begun are held.
    Beginning {
        slice: Slice,
        held: Vec<Answer>,
    },
    /// Turns are under way.
    Acting,
    /// Turns are under way, one after the other.
    InOrder(Order),
    Ended(Outcome),
}

/// A slice with this many questions is large enough; the next one is no longer.
pub(super) const SLICE: usize = 8_000;

/// Which turns are begun next. Calls go out after every slice, so that answers are under way while the rest writes its questions.
/// Slices double in length while they ask little: the first calls go out soon, and the rest has all threads. The slicing does not
/// affect results.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) shard: usize,
    pub(super) lane: usize,
    pub(super) lanes: usize,
    /// Whether the agents' observations of the round exist already.
    pub(super) observed: bool,
}

/// Data for a shard from others, sorted by origin: (origin, one bucket per block).
pub(super) type Incoming = Vec<(usize, Vec<Bucket>)>;

/// The progress of a round of sequential turns.
pub(super) struct Order {
    pub(super) agents: Vec<AgentId>,
    pub(super) next: usize,
    /// The agent whose turn waits for answers. No other agent observes before it has acted.
    pub(super) waits: Option<AgentId>,
    /// By agent, whether its turn would leave no trace: tried out before the first turn, and not disturbed since. Empty if nothing
    /// was tried.
    pub(super) quiet: Vec<bool>,
    /// Turns that acted or asked.
    pub(super) loud: usize,
}

impl Order {
    /// Makes disturbed agents take a normal turn.
    pub(super) fn wake(&mut self, future: &mut Future) {
        for who in future.disturbed.drain(..) {
            if let Some(quiet) = self.quiet.get_mut(who as usize) {
                *quiet = false;
            }
        }
    }
}

/// A society of agents, as a [`Machine`](crate::machine::Machine).
pub struct Society {
    pub(super) plan: Plan,
    pub(super) shared_context: SharedContext,
    /// By the round from which they hold, newest last. A waiting turn continues with the policy under which it began.
    pub(super) policies: Policies,
    pub(super) measures: Vec<Measure>,
    pub(super) interface: Interface,
    pub(super) split: Split,
    pub(super) shards: Vec<Shard>,
    pub(super) transport: Box<dyn Transport>,
    /// Leaves with changed parameters, and the round from which they hold, sorted by round.
    pub(super) changes: Vec<(u32, Leaves)>,
    pub(super) dead: BTreeSet<AgentId>,
    /// Number of ids assigned so far.
    pub(super) born: u32,
    /// Parents of the agents born during the run, in order of birth.
    pub(super) parents: Vec<AgentId>,
    /// The digest of births and deaths, updated incrementally: the cost of a round does not grow with the number of deaths.
    pub(super) life: Digest,
    pub(super) round: u32,
    pub(super) chain: Digest,
    pub(super) stage: Stage,
    /// The digest of all state at the end of the last round.
    pub(super) state: Digest,
    /// Whether few agents left a trace in the last round of sequential turns. It does not affect results.
    pub(super) calm: bool,
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Bug> {
    postcard::to_allocvec(value).map_err(|e| Bug::Transport(e.to_string()))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Bug> {
    postcard::from_bytes(bytes).map_err(|e| Bug::Transport(e.to_string()))
}

pub(super) fn death(round: u32, who: AgentId) -> u128 {
    RowHash::new(Kind::Life, round).word(u64::from(who)).finish()
}

pub(super) fn birth(round: u32, child: AgentId, parent: AgentId) -> u128 {
    RowHash::new(Kind::Life, round).word(1 << 40 | u64::from(child)).word(u64::from(parent)).finish()
}
