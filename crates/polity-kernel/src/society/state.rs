//! The state of a society.

use super::answers::Answers;
use super::gather::Shown;
use super::plan::{Leaves, Measure, Plan, Policies};
use super::shard::Shard;
use crate::AgentId;
use crate::ask::Answer;
use crate::cohort::{SharedBox, TallyBox};
use crate::digest::{Digest, Kind, RowHash};
use crate::interface::Interface;
use crate::layout::{Frame, Layout};
use crate::machine::{Outcome, RoundReport};
use crate::messages::Bucket;
use crate::metric::Fold;
use crate::policy::SharedContext;
use crate::world::{Birth, Future, Split, Tally};
use serde::{Deserialize, Serialize};
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
    /// The first planned events are exchanged, before the first round.
    Planning,
    /// The world asks, before any observation.
    Inquiring(Answers),
    /// Cohorts take their steps before their agents take turns.
    CohortStep(Vec<CohortRound>),
    /// The tallies of cohort steps are exchanged: by cohort, those of this process.
    Counting(Vec<Vec<TallyBox>>),
    /// What cohorts share from now on is exchanged.
    Sharing,
    /// Turns are begun, slice by slice. Answers that arrive before all are begun are held.
    Beginning {
        slice: Slice,
        held: Vec<Answer>,
    },
    /// Turns are under way.
    Acting,
    /// Turns are under way, one after the other.
    InOrder(Order),
    /// Turns are done: messages, events, tallies, births and deaths are exchanged.
    Delivering(Box<Closing>),
    /// The world has ended its round: folds of metrics and digests are exchanged.
    Reducing(Box<Closing>),
    Ended(Outcome),
}

/// What a shard tells all others at the end of its turns.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    /// Over its acts, messages and planned events.
    pub(super) sum: Digest,
    /// Whether some messages were sent out of order.
    pub(super) late: bool,
    pub(super) acts: u64,
    /// One tally for each of its blocks, in order; empty in a society of one shard, and in a world in one piece.
    pub(super) tallies: Vec<Vec<u8>>,
    /// With the cohort of the parent.
    pub(super) births: Vec<(Birth, u16)>,
    pub(super) deaths: Vec<AgentId>,
    /// Digests of its agents' states and of its rows at the beginning of the round, if no process has the digest of all state yet.
    pub(super) outset: Option<(Digest, Digest)>,
}

/// What a shard gives the first shard of every process at the end of the round.
#[derive(Serialize, Deserialize)]
pub(super) struct Reduced {
    /// Over the messages to all neighbours that were told to its agents from other shards.
    pub(super) sum: Digest,
    /// Messages delivered to its agents.
    pub(super) messages: u64,
    /// Digests of its agents' states and of its rows.
    pub(super) agents: Digest,
    pub(super) rows: Digest,
    /// By metrics with the same input, by block: the fold of each metric.
    pub(super) folds: Vec<Vec<Vec<Vec<u8>>>>,
}

/// A round at its barrier. Lists are by shard of this process.
#[derive(Default)]
pub(super) struct Closing {
    pub(super) report: RoundReport,
    pub(super) told: Vec<Told>,
    pub(super) tallies: Vec<Vec<Tally>>,
    /// Why the world ends the run, if it does.
    pub(super) reason: Option<String>,
    /// Over the messages to all neighbours that came from other shards, to all shards of this process.
    pub(super) told_here: Digest,
    /// Messages delivered.
    pub(super) messages: Vec<u64>,
    /// By metrics with the same input, by block: the fold of each metric.
    pub(super) folds: Vec<Vec<Vec<Vec<Fold>>>>,
    pub(super) reduced: Vec<Reduced>,
}

/// The state between two rounds.
pub(super) enum Outset {
    /// Its digest.
    Known(Digest),
    /// Digests of this process's agents and rows, and of what every process has. The whole is known after the next exchange.
    OfShard(Digest, Digest, Digest),
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
    pub(super) layout: Layout,
    /// What other processes have shown of their agents since the last round, in order of shards.
    pub(super) elsewhere: Vec<Shown>,
    /// Blocks in all shards when they were cut. Those of agents born later are on the last shard.
    pub(super) cut: usize,
    /// Frames for other processes, to be carried.
    pub(super) outgoing: Vec<Frame>,
    /// The frames for which the society waits, once they are here.
    pub(super) arrived: Option<Vec<Frame>>,
    /// Bytes of frames so far.
    pub(super) carried: u64,
    /// Leaves with changed parameters, and the round from which they hold, sorted by round.
    pub(super) changes: Vec<(u32, Leaves)>,
    pub(super) dead: BTreeSet<AgentId>,
    /// Number of ids assigned so far.
    pub(super) born: u32,
    /// Parents of the agents born during the run, in order of birth.
    pub(super) parents: Vec<AgentId>,
    /// Their cohorts.
    pub(super) newborns: Vec<u16>,
    /// The digest of births and deaths, updated incrementally: the cost of a round does not grow with the number of deaths.
    pub(super) life: Digest,
    pub(super) round: u32,
    pub(super) chain: Digest,
    pub(super) stage: Stage,
    /// The state at the end of the last round.
    pub(super) state: Outset,
    /// Whether few agents left a trace in the last round of sequential turns. It does not affect results.
    pub(super) calm: bool,
}

pub(super) fn death(round: u32, who: AgentId) -> u128 {
    RowHash::new(Kind::Life, round).word(u64::from(who)).finish()
}

pub(super) fn birth(round: u32, child: AgentId, parent: AgentId) -> u128 {
    RowHash::new(Kind::Life, round).word(1 << 40 | u64::from(child)).word(u64::from(parent)).finish()
}
