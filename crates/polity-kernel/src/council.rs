//! Councils: what a cohort settles once a round for all of its agents, before their turns.
//!
//! A policy whose agents hold council counts them first: every agent's state, attributes and sight go into a tally, a block at a time,
//! merged in a fixed tree. Then the cohort confers: straight-line code that may ask models, in the names of agents. What it comes to is
//! shared by all agents of the cohort in their turns of the round, which read it and need not wait. So the number of questions is
//! that of the groups a policy makes, whatever the number of agents. `docs/decisions/cohorts-hold-council.md`.

use crate::ask::{Answer, Asker, Effect};
use crate::digest::{DigestVec, Kind, RowHash, hash_value};
use crate::door::{Book, Door, MOST_QUESTIONS, poll_once};
use crate::ladder::{Question, Settled};
use crate::policy::{Commons, Fault, Host, Person, Policy, States};
use crate::rng::{Draws, Stream};
use crate::sight::{Sight, Sights};
use crate::{AgentId, Bug, Plain, tree_reduce};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

/// A policy whose agents hold council before the turns of every round.
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait Council: Policy {
    /// What agents are counted into.
    type Tally: Plain;
    /// What the agents of the cohort share in their turns ([`crate::policy::Turn::shared`]); kept from round to round.
    type Shared: Plain;

    /// What is shared at the start.
    fn begin(&self) -> Self::Shared;

    /// An empty tally.
    fn tally(&self) -> Self::Tally;

    /// Counts a living agent, with what it sees at the start of the round and what it has become before. Called for every agent of the cohort in order of id.
    fn count(&self, tally: &mut Self::Tally, round: u32, state: &Self::State, person: Person<'_>, sight: Sight<'_>);

    /// Joins the tallies of neighbouring runs of agents.
    fn merge(&self, left: Self::Tally, right: Self::Tally) -> Self::Tally;

    /// Moves on what is shared. May await only the session's own door. It may be called again from its start, with `shared` as it was.
    async fn confer(
        &self,
        shared: &mut Self::Shared,
        tally: &Self::Tally,
        session: &mut Session<'_>,
    ) -> Result<(), Fault>;
}

/// A round's council of a cohort: its way to ask.
#[derive(Debug)]
pub struct Session<'a> {
    /// The round.
    pub round: u32,
    commons: &'a Commons,
    door: Door<'a>,
}

impl Session<'_> {
    /// Random numbers of one of its members for the council's round.
    #[must_use]
    pub fn draws(&self, member: AgentId) -> Draws {
        Draws::new(self.commons.seed, Stream::Council, self.round, member)
    }

    /// Puts questions together, each in the name of an agent of the cohort and with its ladder; what they end in comes in the order asked.
    pub async fn settle_all(&mut self, questions: Vec<(AgentId, Question)>) -> Vec<Settled> {
        self.door.settle_all(questions).await
    }
}

/// What a cohort shares, with its type erased.
pub(crate) type SharedBox = Box<dyn Any + Send + Sync>;
/// A tally with its type erased.
pub(crate) type TallyBox = Box<dyn Any + Send + Sync>;

/// Consecutive agents of one cohort, to be counted.
pub(crate) struct Members<'a> {
    pub round: u32,
    pub first: AgentId,
    pub states: &'a States,
    /// The row of the first in `sights`, and how many they are.
    pub base: usize,
    pub len: usize,
    pub sights: &'a Sights,
    /// Rows of the dead, sorted.
    pub gone: &'a [u32],
    pub commons: &'a Commons,
}

/// How far a council is.
pub(crate) enum Conferred {
    /// What is shared from now on.
    Done(SharedBox),
    /// It waits for answers to these.
    Asks(Vec<Effect>),
}

/// A council with its types erased; called once a run of agents, never once an agent.
pub(crate) trait CouncilHost: Send + Sync {
    fn begin(&self) -> SharedBox;
    fn count(&self, members: &Members<'_>) -> Result<TallyBox, Bug>;
    fn merge(&self, tallies: Vec<TallyBox>) -> Result<TallyBox, Bug>;
    fn encode_tally(&self, tally: &TallyBox) -> Result<Vec<u8>, Bug>;
    fn decode_tally(&self, bytes: &[u8]) -> Result<TallyBox, Bug>;
    /// `at`: the cohort and the round; `answers`: sorted by id.
    fn confer(
        &self,
        shared: &SharedBox,
        tally: &TallyBox,
        answers: &[Answer],
        at: (u16, u32),
        commons: &Commons,
    ) -> Result<Conferred, Bug>;
    /// The hash of what a cohort shares.
    fn hash(&self, shared: &SharedBox, cohort: u16) -> Result<u128, Bug>;
    fn save(&self, shared: &SharedBox) -> Result<Vec<u8>, Bug>;
    fn load(&self, bytes: &[u8]) -> Result<SharedBox, Bug>;
}

fn typed<T: 'static>(value: &(dyn Any + Send + Sync)) -> Result<&T, Bug> {
    value.downcast_ref().ok_or_else(|| Bug::internal("a council's data are of another policy's type"))
}

fn encode<T: Serialize>(value: &T, name: &str) -> Result<Vec<u8>, Bug> {
    postcard::to_allocvec(value).map_err(|e| Bug::internal(format!("the council of `{name}`: {e}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T, Bug> {
    postcard::from_bytes(bytes)
        .map_err(|e| Bug::Snapshot { what: format!("the council of policy `{name}`"), why: e.to_string() })
}

impl<P: Council> CouncilHost for Host<P> {
    fn begin(&self) -> SharedBox {
        Box::new(self.policy.begin())
    }

    fn count(&self, members: &Members<'_>) -> Result<TallyBox, Bug> {
        let Members { round, first, states, base, len, sights, gone, commons } = *members;
        let states: &DigestVec<P::State> = typed(states.as_ref())?;
        let mut tally = self.policy.tally();
        for (i, state) in states.iter().take(len).enumerate() {
            if !gone.is_empty() && gone.binary_search(&((base + i) as u32)).is_ok() {
                continue;
            }
            let person = Person { id: first + i as AgentId, population: &commons.population };
            self.policy.count(&mut tally, round, state, person, sights.row(base + i));
        }
        Ok(Box::new(tally))
    }

    fn merge(&self, tallies: Vec<TallyBox>) -> Result<TallyBox, Bug> {
        let mut own = Vec::with_capacity(tallies.len());
        for tally in tallies {
            own.push(*tally.downcast().map_err(|_| Bug::internal("a tally is of another policy's type"))?);
        }
        let merged = tree_reduce(own, |left, right| self.policy.merge(left, right));
        Ok(Box::new(merged.unwrap_or_else(|| self.policy.tally())))
    }

    fn encode_tally(&self, tally: &TallyBox) -> Result<Vec<u8>, Bug> {
        encode(typed::<P::Tally>(tally.as_ref())?, P::NAME)
    }

    fn decode_tally(&self, bytes: &[u8]) -> Result<TallyBox, Bug> {
        Ok(Box::new(decode::<P::Tally>(bytes, P::NAME)?))
    }

    fn confer(
        &self,
        shared: &SharedBox,
        tally: &TallyBox,
        answers: &[Answer],
        (cohort, round): (u16, u32),
        commons: &Commons,
    ) -> Result<Conferred, Bug> {
        let mut next = typed::<P::Shared>(shared.as_ref())?.clone();
        let mut book = Book::default();
        let mut session = Session { round, commons, door: Door::new(Asker::Cohort, 0, round, answers, &mut book) };
        let polled = poll_once(self.policy.confer(&mut next, typed(tally.as_ref())?, &mut session));
        let open = session.door.close()?;
        let bug = |message: String| Bug::Council { cohort, round, message };
        match polled {
            Some(Ok(())) => Ok(Conferred::Done(Box::new(next))),
            Some(Err(Fault(message))) => Err(bug(message)),
            None if open.is_empty() => Err(bug("it awaits something that is not its own door".into())),
            None if open.iter().any(|effect| effect.id.n >= MOST_QUESTIONS) => {
                Err(bug(format!("it asks more than {MOST_QUESTIONS} questions in the name of one agent")))
            }
            None => Ok(Conferred::Asks(open)),
        }
    }

    fn hash(&self, shared: &SharedBox, cohort: u16) -> Result<u128, Bug> {
        let head = RowHash::new(Kind::Council, 0);
        Ok(hash_value(head, u64::from(cohort), typed::<P::Shared>(shared.as_ref())?))
    }

    fn save(&self, shared: &SharedBox) -> Result<Vec<u8>, Bug> {
        encode(typed::<P::Shared>(shared.as_ref())?, P::NAME)
    }

    fn load(&self, bytes: &[u8]) -> Result<SharedBox, Bug> {
        Ok(Box::new(decode::<P::Shared>(bytes, P::NAME)?))
    }
}
