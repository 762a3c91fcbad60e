//! Cohort steps: what a cohort decides once per round for all of its agents, before their turns.
//!
//! A policy with a cohort step first counts its agents: every agent's state, attributes and observation go into a tally, block by
//! block, merged in a fixed tree. Then the cohort takes its step: straight-line code that may ask models, on behalf of agents. All
//! agents of the cohort share the result and read it in their turns without waiting. So the number of questions depends on the
//! number of groups that a policy makes, not on the number of agents. See `docs/decisions/cohorts-hold-council.md`.

use crate::ask::{Answer, Ask, Effect, Question, Reply};
use crate::interface::{Observation, Observations};
use crate::policy::{Fault, Person, Policy, SharedContext};
use crate::rng::{Draws, Stream};
use crate::{AgentId, Bug, Plain};
use std::any::Any;

/// A policy with a cohort step before the turns of every round.
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait CohortPolicy: Policy {
    /// The tally that agents are counted into.
    type Tally: Plain;
    /// What the agents of the cohort share in their turns ([`crate::policy::Turn::shared`]); kept from round to round.
    type Shared: Plain;

    /// Returns the initial shared state.
    fn init_shared(&self) -> Self::Shared;

    /// Returns an empty tally.
    fn tally(&self) -> Self::Tally;

    /// Counts a living agent, with its observation at the start of the round and its current state. Called for every agent of the
    /// cohort in order of id.
    fn count(
        &self,
        tally: &mut Self::Tally,
        round: u32,
        state: &Self::State,
        person: Person<'_>,
        observation: Observation<'_>,
    );

    /// Merges the tallies of neighbouring runs of agents.
    fn merge(&self, left: Self::Tally, right: Self::Tally) -> Self::Tally;

    /// Updates the shared state. May await only the context. It may be called again from its start, with the original `shared`.
    async fn cohort_step(
        &self,
        shared: &mut Self::Shared,
        tally: &Self::Tally,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault>;

    /// Returns what the cohort has learned, as the bytes of a file of weights (safetensors). It is written when a run ends. `None`: the
    /// policy does not learn weights.
    fn weights(&self, shared: &Self::Shared) -> Result<Option<Vec<u8>>, Fault> {
        let _ = shared;
        Ok(None)
    }
}

/// The context of a cohort's step in a round: its way to ask.
#[derive(Debug)]
pub struct CohortContext<'a> {
    /// The round.
    pub round: u32,
    pub(crate) shared_context: &'a SharedContext,
    pub(crate) ask: Ask<'a>,
}

impl CohortContext<'_> {
    /// Returns random numbers of one of its members for the cohort step of this round.
    #[must_use]
    pub fn draws(&self, member: AgentId) -> Draws {
        Draws::new(self.shared_context.seed, Stream::Cohort, self.round, member)
    }

    /// Asks questions together, each on behalf of an agent of the cohort. Answers are in the order of the questions.
    pub async fn ask_all(&mut self, questions: Vec<(AgentId, Question)>) -> Vec<Reply> {
        self.ask.ask_all(questions).await
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
    /// The row of the first in `observations`, and their number.
    pub base: usize,
    pub len: usize,
    pub observations: &'a Observations,
    /// Rows of the dead, sorted.
    pub gone: &'a [u32],
    pub shared_context: &'a SharedContext,
}

/// The progress of a cohort step.
pub(crate) enum CohortProgress {
    /// The new shared state.
    Done(SharedBox),
    /// It waits for answers to these effects.
    Asks(Vec<Effect>),
}

/// A cohort step with its types erased. Called once per run of agents, never once per agent.
pub(crate) trait CohortHost: Send + Sync {
    fn init_shared(&self) -> SharedBox;
    fn count(&self, members: &Members<'_>) -> Result<TallyBox, Bug>;
    fn merge(&self, tallies: Vec<TallyBox>) -> Result<TallyBox, Bug>;
    fn encode_tally(&self, tally: &TallyBox) -> Result<Vec<u8>, Bug>;
    fn decode_tally(&self, bytes: &[u8]) -> Result<TallyBox, Bug>;
    /// `at`: the cohort and the round; `answers`: sorted by id.
    fn cohort_step(
        &self,
        shared: &SharedBox,
        tally: &TallyBox,
        answers: &[Answer],
        at: (u16, u32),
        shared_context: &SharedContext,
    ) -> Result<CohortProgress, Bug>;
    /// Returns the hash of what a cohort shares.
    fn hash(&self, shared: &SharedBox, cohort: u16) -> Result<u128, Bug>;
    fn save(&self, shared: &SharedBox) -> Result<Vec<u8>, Bug>;
    fn load(&self, bytes: &[u8]) -> Result<SharedBox, Bug>;
    /// Returns what it has learned, as a file.
    fn weights(&self, shared: &SharedBox) -> Result<Option<Vec<u8>>, Bug>;
}

/// A column of states of one policy: a [`DigestVec`].
pub(crate) type States = Box<dyn Any + Send + Sync>;
