//! How the turns of many agents run: a policy with its type erased, and the one loop in which turns are polled.

use super::round::Round;
use super::suspended::{Suspended, Waiting};
use super::turn::{Address, Messages, Post, Turn, Words};
use super::{Person, Policy, SharedContext, StateColumn, Variants};
use crate::ask::{Answer, Ask, Asker, Book, Effect, MOST_QUESTIONS, Request, poll_once};
use crate::cohort::{CohortHost, CohortPolicy, SharedBox, States};
use crate::digest::{Digest, DigestVec, Kind, RowHash};
use crate::interface::{Actions, Observation, Observations, WorldColumn};
use crate::messages::{Broadcast, Bucket, block_of};
use crate::rng::{AHEAD, Draws, Stream, first_blocks};
use crate::saved::{Reader, Writer};
use crate::topology::Topology;
use crate::{AgentId, Bug};
use std::ops::Range;

/// The output of a lane of consecutive blocks in a round.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// One bucket per destination block.
    pub buckets: Vec<Bucket>,
    /// Numbers that agents told all their neighbours, if some of these are in other shards.
    pub broadcasts: Vec<Broadcast>,
    /// The agents of this shard, if there are others.
    own: Option<Range<AgentId>>,
    /// Planned events, one bucket per destination block; a message's number is the time.
    pub events: Vec<Bucket>,
    pub digest: Digest,
    pub effects: Vec<Effect>,
    /// Whether messages are out of order because their sender had to wait.
    pub late: bool,
    posts: Vec<Post>,
    book: Book,
}

impl Lane {
    /// Begins a round in a society of `blocks` blocks. `own`: the agents of this shard, if there are others.
    pub fn reset(&mut self, blocks: usize, own: Option<Range<AgentId>>) {
        self.own = own;
        self.broadcasts.clear();
        self.buckets.resize_with(blocks, Bucket::default);
        self.buckets.iter_mut().for_each(Bucket::clear);
        self.digest = Digest::default();
        self.effects.clear();
        self.late = false;
    }

    /// Sends a text in the name of an agent after its turn. `to`: the recipients; `None`: its neighbours.
    pub fn send_text(
        &mut self,
        from: AgentId,
        to: Option<&[AgentId]>,
        text: &str,
        round: u32,
        shared_context: &SharedContext,
    ) {
        let post = |to: Address| Post { to, channel: 0, words: Words::Text(text.to_owned()) };
        match to {
            None => self.posts.push(post(Address::Neighbours)),
            Some(to) => self.posts.extend(to.iter().map(|to| post(Address::One(*to)))),
        }
        self.send_posts(from, round, shared_context);
        self.late = true;
    }

    /// Sends the messages of a completed turn.
    #[inline]
    fn commit_posts(&mut self, from: AgentId, round: u32, shared_context: &SharedContext) {
        if !self.posts.is_empty() {
            self.send_posts(from, round, shared_context);
        }
    }

    fn send_posts(&mut self, from: AgentId, round: u32, shared_context: &SharedContext) {
        let base = RowHash::new(Kind::Message, round).word(u64::from(from));
        let mut n = 0u64;
        let is_broadcast = |post: &Post| matches!((&post.to, &post.words), (Address::Neighbours, Words::Number(_)));
        if let Some(own) = &self.own
            && self.posts.iter().all(is_broadcast)
        {
            let mut first = 0;
            for Post { channel, words, .. } in self.posts.drain(..) {
                let Words::Number(value) = words else { continue };
                let broadcast = Broadcast { from, channel, first, value };
                let audience = shared_context.audience();
                let told = broadcast.tell(audience, own, round, &mut self.buckets, 0, &mut self.digest);
                let degree = audience.degree(from);
                if told < degree {
                    self.broadcasts.push(broadcast);
                }
                first += degree;
            }
            return;
        }
        for Post { to, channel, words } in self.posts.drain(..) {
            let (buckets, digest) = (&mut self.buckets, &mut self.digest);
            match words {
                Words::Number(value) => {
                    let base = base.word(u64::from(channel)).number(value);
                    let mut send = |to: AgentId| {
                        if let Some(bucket) = buckets.get_mut(block_of(to)) {
                            bucket.number(from, to, channel, value);
                            digest.add(base.word(u64::from(to) << 32 | n).finish());
                            n += 1;
                        }
                    };
                    match to {
                        Address::One(to) => send(to),
                        Address::Neighbours => shared_context.audience().neighbours(from).for_each(send),
                    }
                }
                words => {
                    let base = words.hashed(base, channel);
                    let mut send = |to: AgentId| {
                        if let Some(bucket) = buckets.get_mut(block_of(to)) {
                            words.append(bucket, from, to, channel);
                            digest.add(base.word(u64::from(to) << 32 | n).finish());
                            n += 1;
                        }
                    };
                    match to {
                        Address::One(to) => send(to),
                        Address::Neighbours => shared_context.audience().neighbours(from).for_each(send),
                    }
                }
            }
        }
    }
}

impl Broadcast {
    /// Tells it to those of the sender's neighbours whose ids are in a range, and returns how many that are. `buckets`: one for each
    /// block from block `start` on.
    #[inline]
    pub fn tell(
        &self,
        audience: &Topology,
        ids: &Range<AgentId>,
        round: u32,
        buckets: &mut [Bucket],
        start: usize,
        digest: &mut Digest,
    ) -> u32 {
        let Broadcast { from, channel, first, value } = *self;
        let base = RowHash::new(Kind::Message, round).word(u64::from(from)).word(u64::from(channel)).number(value);
        let mut told = 0;
        audience.neighbours_in(from, ids.clone()).for_each(|(place, to)| {
            if let Some(bucket) = block_of(to).checked_sub(start).and_then(|block| buckets.get_mut(block)) {
                bucket.number(from, to, channel, value);
                digest.add(base.word(u64::from(to) << 32 | u64::from(first + place)).finish());
                told += 1;
            }
        });
        told
    }
}

impl Words {
    /// Adds the content and its form to the hash of a message.
    fn hashed(&self, base: RowHash, channel: u16) -> RowHash {
        let of = |form: u64| base.word(form << 32 | u64::from(channel));
        match self {
            Words::Number(number) => of(0).number(*number),
            Words::Text(text) => of(1).bytes(text.as_bytes()),
            Words::Record(json) => of(2).bytes(json.as_bytes()),
            Words::Vector(numbers) => {
                numbers.iter().fold(of(3).word(numbers.len() as u64), |hash, number| hash.number(*number))
            }
        }
    }

    /// Appends the message to a bucket.
    fn append(&self, bucket: &mut Bucket, from: AgentId, to: AgentId, channel: u16) {
        match self {
            Words::Number(number) => bucket.number(from, to, channel, *number),
            Words::Text(text) => bucket.text(from, to, channel, text),
            Words::Record(json) => bucket.record(from, to, channel, json),
            Words::Vector(numbers) => bucket.vector(from, to, channel, numbers),
        }
    }
}

/// Consecutive agents of one cohort, the input of a policy's loop.
pub(crate) struct Rows<'a> {
    /// Their cohort.
    pub cohort: u16,
    /// The first of them.
    pub first: AgentId,
    /// The range of their states in the column.
    pub states: std::ops::Range<usize>,
    /// The row of the first in `observations` and `inbox`.
    pub base: usize,
    pub observations: &'a Observations,
    pub inbox: Messages<'a>,
    /// Whether a row takes a turn (alive and not waiting); `None`: all do.
    pub awake: Option<&'a dyn Fn(usize) -> bool>,
    pub acts: &'a mut Actions,
    /// Sorted by agent.
    pub suspended: &'a mut Waiting,
}

/// A policy with its type erased. Called once per run of rows, never once per agent.
pub(crate) trait PolicyHost: Send + Sync {
    fn models(&self) -> Vec<String>;
    /// Returns the bytes of memory per agent.
    fn memory_bytes(&self) -> usize;
    fn tells_neighbours(&self) -> bool;
    /// Returns its cohort step, if it has one.
    fn cohort_host(&self) -> Option<&dyn CohortHost>;
    /// Returns the columns of its agents' states.
    fn columns(&self) -> Vec<WorldColumn>;
    /// Returns the values of the column of this name, one per agent, of whom `first` is the first; if it has such a column.
    fn column(&self, states: &States, first: AgentId, name: &str, shared_context: &SharedContext) -> Option<Vec<f64>>;
    /// Returns the digest of these states.
    fn digest(&self, states: &States) -> Result<Digest, Bug>;
    fn init_state(&self, ids: std::ops::Range<AgentId>, shared_context: &SharedContext, round: u32) -> States;
    fn spawn(&self, states: &mut States, who: AgentId, shared_context: &SharedContext, round: u32);
    fn run(&self, states: &mut States, rows: Rows<'_>, round: &Round<'_>, lane: &mut Lane) -> Result<(), Bug>;
    /// Returns the agents whose turns would leave a trace: an act, a message, a question, another state, an error. All effects are
    /// undone.
    fn try_out(
        &self,
        states: &mut States,
        rows: Rows<'_>,
        round: &Round<'_>,
        lane: &mut Lane,
    ) -> Result<Vec<AgentId>, Bug>;
    /// Runs a suspended turn again with its answers so far, in the round of `round`. Returns `true` if it is complete. `at`: the
    /// position of the agent's state, and its cohort.
    fn rerun(
        &self,
        states: &mut States,
        at: (usize, u16),
        waiting: &mut Suspended,
        round: &Round<'_>,
        acts: &mut Actions,
        lane: &mut Lane,
    ) -> Result<bool, Bug>;
    /// Puts a question from outside to the agent with the state at `index`. `who`: the agent, and the next round.
    #[expect(clippy::too_many_arguments, reason = "the parts of a turn, which there is none of")]
    fn interview(
        &self,
        states: &States,
        index: usize,
        observation: Observation<'_>,
        inbox: Messages<'_>,
        who: (AgentId, u32),
        shared_context: &SharedContext,
        shared: Option<&SharedBox>,
        question: &str,
    ) -> Result<Option<Request>, Bug>;
    fn save(&self, states: &States, to: &mut Writer<'_>) -> Result<(), Bug>;
    fn load(&self, from: &mut Reader<'_>) -> Result<States, Bug>;
}

/// A policy of a known type, and its cohort step if it has one.
pub(crate) struct Host<P: Policy> {
    pub policies: Variants<P>,
    cohort_step: Option<fn(&Host<P>) -> &dyn CohortHost>,
}

impl<P: CohortPolicy> Host<P> {
    /// Makes the host of a policy with a cohort step.
    pub fn with_cohort_step(policies: Variants<P>) -> Self {
        Host { policies, cohort_step: Some(|host| host) }
    }
}

impl<P: Policy> Host<P> {
    pub fn new(policies: Variants<P>) -> Self {
        Host { policies, cohort_step: None }
    }

    fn states<'s>(&self, states: &'s States) -> Result<&'s DigestVec<P::State>, Bug> {
        states.downcast_ref().ok_or_else(|| Bug::internal("a cohort's states are of another policy's type"))
    }

    fn states_mut<'s>(&self, states: &'s mut States) -> Result<&'s mut DigestVec<P::State>, Bug> {
        states.downcast_mut().ok_or_else(|| Bug::internal("a cohort's states are of another policy's type"))
    }

    /// Returns the inputs of the turns of rows, and where acts and open turns go.
    fn given<'a>(rows: Rows<'a>, round: &Round<'a>, purpose: Purpose) -> (Given<'a>, &'a mut Actions, &'a mut Waiting) {
        let Rows { cohort, first, states, base, observations, inbox, awake, acts, suspended } = rows;
        let (began, shared_context, shared) = (round.round, round.shared_context, round.shared_of(cohort));
        (
            Given {
                states,
                first,
                base,
                awake,
                observations,
                inbox,
                answers: &[],
                began,
                purpose,
                shared_context,
                shared,
            },
            acts,
            suspended,
        )
    }

    fn fresh(&self, who: AgentId, shared_context: &SharedContext, round: u32) -> P::State {
        let mut draws = Draws::new(shared_context.seed, Stream::Birth, round, who);
        let policy = self.policies.of(who, shared_context);
        policy.init_state(Person { id: who, population: &shared_context.population }, &mut draws)
    }

    /// Runs the turns of consecutive agents. Completed turns commit. Turns that wait for answers leave only their open questions,
    /// which are returned. Turns that are tried out are returned if they would leave a trace.
    ///
    /// This is the only place where a policy is called. With a single caller the compiler inlines a rule's turn into this loop.
    fn turns(
        &self,
        column: &mut DigestVec<P::State>,
        given: &Given<'_>,
        acts: &mut Actions,
        lane: &mut Lane,
    ) -> Result<Vec<(AgentId, Vec<Effect>)>, Bug> {
        let Given { first, base, awake, observations, inbox, answers, began, purpose, shared_context, shared, .. } =
            *given;
        let start = acts.rows.len();
        let whole = awake.is_none() && given.states == (0..column.len()) && matches!(purpose, Purpose::Commit(_));
        let (column, mut pass) = column.pass(whole);
        let states = column
            .get_mut(given.states.clone())
            .ok_or_else(|| Bug::internal("an agent without a state takes a turn"))?;
        let mut waiting = Vec::new();
        // While turns use random numbers, compute them some agents ahead; that changes when they are computed, never their values.
        let (mut used, mut ahead, mut blocks) = (false, false, [[0; 2]; AHEAD]);
        for (i, state) in states.iter_mut().enumerate() {
            let who = first + i as AgentId;
            if i % AHEAD == 0 {
                ahead = std::mem::take(&mut used);
                if ahead {
                    first_blocks(shared_context.seed, Stream::Turn, began, who, &mut blocks);
                }
            }
            let row = base + i;
            if awake.is_some_and(|awake| !awake(row)) {
                continue;
            }
            let (rows_before, texts_before) = (acts.rows.len(), acts.texts.len());
            let mut next = state.clone();
            let mut turn = Turn {
                who,
                round: began,
                observation: observations.row(row),
                inbox,
                draws: if ahead {
                    Draws::with_block(shared_context.seed, Stream::Turn, began, who, blocks[i % AHEAD])
                } else {
                    Draws::new(shared_context.seed, Stream::Turn, began, who)
                },
                shared_context,
                shared,
                ask: Ask::new(Asker::Agent, 0, began, answers, &mut lane.book),
                acts,
                posts: &mut lane.posts,
            };
            let polled = poll_once(self.policies.of(who, shared_context).act(&mut next, &mut turn));
            used |= turn.draws.used();
            if polled.is_some() {
                turn.ask.forget();
            }
            match (polled, purpose) {
                (Some(Ok(())), Purpose::Commit(now)) => {
                    if next != *state {
                        pass.changed(given.states.start + i, state, &next);
                        *state = next;
                    }
                    lane.commit_posts(who, now, shared_context);
                }
                (Some(Ok(())), Purpose::Complete) => take_back(acts, rows_before, texts_before, lane),
                (Some(done), Purpose::TryOut) => {
                    if done.is_err() || next != *state || acts.rows.len() > rows_before || !lane.posts.is_empty() {
                        take_back(acts, rows_before, texts_before, lane);
                        loud(&mut waiting, who);
                    }
                }
                (Some(Err(fault)), _) => return Err(Bug::Turn { agent: who, round: began, message: fault.0 }),
                (None, _) => {
                    let open = lane.book.close()?;
                    if open.is_empty() {
                        let message = "the turn awaits something other than its own questions".into();
                        return Err(Bug::Turn { agent: who, round: began, message });
                    }
                    if open.iter().any(|effect| effect.id.n >= MOST_QUESTIONS) {
                        let message = format!("the turn asks more than {MOST_QUESTIONS} questions");
                        return Err(Bug::Turn { agent: who, round: began, message });
                    }
                    take_back(acts, rows_before, texts_before, lane);
                    waiting.push((who, open));
                }
            }
        }
        pass.end(column);
        if let Purpose::Commit(now) = purpose
            && acts.rows.len() > start
        {
            // Not turn by turn: the hashes of several acts overlap.
            digest_acts(&mut lane.digest, now, acts, start)?;
        }
        Ok(waiting)
    }
}

/// The inputs of the turns of consecutive agents.
struct Given<'a> {
    /// The range of their states in the column.
    states: std::ops::Range<usize>,
    /// The first agent.
    first: AgentId,
    /// Its row in `observations` and `inbox`.
    base: usize,
    /// Whether a row takes a turn; `None`: all do.
    awake: Option<&'a dyn Fn(usize) -> bool>,
    observations: &'a Observations,
    inbox: Messages<'a>,
    /// Sorted by id.
    answers: &'a [Answer],
    /// The round in which the turns began.
    began: u32,
    purpose: Purpose,
    shared_context: &'a SharedContext,
    /// The shared state of their cohort.
    shared: Option<&'a SharedBox>,
}

/// The purpose of running turns.
#[derive(Clone, Copy)]
enum Purpose {
    /// Commit them, in this round.
    Commit(u32),
    /// Check whether they are complete.
    Complete,
    /// Check whether they would leave a trace.
    TryOut,
}

/// Adds the acts from index `from` on to the digest. An act with NaN is a defect of its policy.
fn digest_acts(digest: &mut Digest, round: u32, acts: &Actions, from: usize) -> Result<(), Bug> {
    let kind = RowHash::new(Kind::Action, round);
    let texts = !acts.texts.is_empty();
    let (mut last, mut n) = (AgentId::MAX, 0u64);
    for (i, act) in acts.rows[from..].iter().enumerate() {
        if act.value.is_nan() {
            return Err(Bug::Turn { agent: act.who, round, message: "an act's value is not a number (NaN)".into() });
        }
        // The highest id is never assigned.
        n = if last == act.who { n + 1 } else { 0 };
        last = act.who;
        let head = u64::from(act.who) << 32 | u64::from(act.kind) << 16 | n & 0xFFFF;
        let mut hash = kind.words(head, act.value.to_bits());
        if texts && let Some(text) = acts.text(from + i) {
            hash = hash.bytes(text.as_bytes());
        }
        digest.add(hash.finish());
    }
    Ok(())
}

/// Notes a turn that would leave a trace. Outlined, to keep it out of the hot loop over all turns.
#[cold]
#[inline(never)]
fn loud(waiting: &mut Vec<(AgentId, Vec<Effect>)>, who: AgentId) {
    waiting.push((who, Vec::new()));
}

/// Undoes the effects of a turn beyond its first `rows` acts and `texts` texts.
#[cold]
fn take_back(acts: &mut Actions, rows: usize, texts: usize, lane: &mut Lane) {
    acts.rows.truncate(rows);
    acts.texts.truncate(texts);
    lane.posts.clear();
}

impl<P: Policy> PolicyHost for Host<P> {
    fn models(&self) -> Vec<String> {
        let mut models: Vec<String> = self.policies.any().models();
        for model in self.policies.all().iter().skip(1).flat_map(Policy::models) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }

    fn memory_bytes(&self) -> usize {
        let policies = self.policies.all();
        // Each agent may have parameters of its own.
        let own = if policies.len() > 1 { size_of::<P>() } else { 0 };
        size_of::<P::State>() + own + policies.iter().map(Policy::memory_bytes).max().unwrap_or(0)
    }

    fn tells_neighbours(&self) -> bool {
        self.policies.all().iter().any(Policy::tells_neighbours)
    }

    fn cohort_host(&self) -> Option<&dyn CohortHost> {
        self.cohort_step.map(|of| of(self))
    }

    fn columns(&self) -> Vec<WorldColumn> {
        let column = |column: &StateColumn<P>| WorldColumn {
            axis: None,
            name: column.name.into(),
            doc: column.doc.into(),
            range: column.range,
        };
        P::COLUMNS.iter().map(column).chain(self.policies.any().state_columns()).collect()
    }

    fn column(&self, states: &States, first: AgentId, name: &str, shared_context: &SharedContext) -> Option<Vec<f64>> {
        debug_assert!(states.is::<DigestVec<P::State>>(), "a cohort's states are of another policy's type");
        let states = self.states(states).ok()?;
        if let Some(column) = P::COLUMNS.iter().find(|column| column.name == name) {
            let value =
                |(who, state): (AgentId, &P::State)| (column.value)(self.policies.of(who, shared_context), state);
            return Some((first..).zip(states.iter()).map(value).collect());
        }
        let column = self.policies.any().state_columns().iter().position(|column| column.name == name)?;
        let value =
            |(who, state): (AgentId, &P::State)| self.policies.of(who, shared_context).state_value(state, column);
        Some((first..).zip(states.iter()).map(value).collect())
    }

    fn init_state(&self, ids: std::ops::Range<AgentId>, shared_context: &SharedContext, round: u32) -> States {
        let first = u64::from(ids.start);
        let states = ids.map(|who| self.fresh(who, shared_context, round)).collect();
        Box::new(DigestVec::numbered_from(first, states))
    }

    fn digest(&self, states: &States) -> Result<Digest, Bug> {
        Ok(self.states(states)?.digest())
    }

    fn spawn(&self, states: &mut States, who: AgentId, shared_context: &SharedContext, round: u32) {
        let fresh = self.fresh(who, shared_context, round);
        if let Ok(column) = self.states_mut(states) {
            column.push(fresh);
        }
    }

    fn run(&self, states: &mut States, rows: Rows<'_>, round: &Round<'_>, lane: &mut Lane) -> Result<(), Bug> {
        let Rows { first, base, observations, inbox, .. } = rows;
        let (given, acts, suspended) = Self::given(rows, round, Purpose::Commit(round.round));
        for (who, open) in self.turns(self.states_mut(states)?, &given, acts, lane)? {
            let row = base + (who - first) as usize;
            lane.effects.extend(open.iter().cloned());
            let place = suspended.partition_point(|s| s.who < who);
            let turn = Suspended::new(who, round, observations.keep(row), inbox.inbox(row), open);
            suspended.insert(place, Box::new(turn));
        }
        Ok(())
    }

    fn try_out(
        &self,
        states: &mut States,
        rows: Rows<'_>,
        round: &Round<'_>,
        lane: &mut Lane,
    ) -> Result<Vec<AgentId>, Bug> {
        let (given, acts, _) = Self::given(rows, round, Purpose::TryOut);
        Ok(self.turns(self.states_mut(states)?, &given, acts, lane)?.into_iter().map(|(who, _)| who).collect())
    }

    fn rerun(
        &self,
        states: &mut States,
        (index, cohort): (usize, u16),
        waiting: &mut Suspended,
        round: &Round<'_>,
        acts: &mut Actions,
        lane: &mut Lane,
    ) -> Result<bool, Bug> {
        let Round { round: now, shared_context, .. } = *round;
        // A turn that is complete before its barrier runs once more at the barrier, with the same answers.
        let due = waiting.due <= now;
        let given = Given {
            states: index..index + 1,
            first: waiting.who,
            base: 0,
            awake: None,
            observations: &waiting.observations,
            inbox: Messages::OfTurn(waiting.messages.inbox()),
            answers: &waiting.answers,
            began: waiting.began,
            purpose: if due { Purpose::Commit(now) } else { Purpose::Complete },
            shared_context,
            shared: round.shared_of(cohort),
        };
        match self.turns(self.states_mut(states)?, &given, acts, lane)?.pop() {
            None => {
                lane.late |= due;
                Ok(due)
            }
            Some((_, wanted)) => {
                let known = |effect: &Effect| waiting.open.iter().any(|open| open.id == effect.id);
                let new: Vec<Effect> = wanted.into_iter().filter(|effect| !known(effect)).collect();
                lane.effects.extend(new.iter().cloned());
                waiting.open.extend(new);
                Ok(false)
            }
        }
    }

    fn interview(
        &self,
        states: &States,
        index: usize,
        observation: Observation<'_>,
        inbox: Messages<'_>,
        (who, round): (AgentId, u32),
        shared_context: &SharedContext,
        shared: Option<&SharedBox>,
        question: &str,
    ) -> Result<Option<Request>, Bug> {
        let state =
            self.states(states)?.get(index).ok_or_else(|| Bug::internal("an agent without a state is asked"))?;
        let (mut book, mut acts, mut posts) = (Book::default(), Actions::default(), Vec::new());
        let turn = Turn {
            who,
            round,
            observation,
            inbox,
            draws: Draws::new(shared_context.seed, Stream::Turn, round, who),
            shared_context,
            shared,
            ask: Ask::new(Asker::Agent, 0, round, &[], &mut book),
            acts: &mut acts,
            posts: &mut posts,
        };
        let asked = self.policies.of(who, shared_context).interview(state, &turn, question);
        asked.map_err(|fault| Bug::Turn { agent: who, round, message: fault.0 })
    }

    fn save(&self, states: &States, to: &mut Writer<'_>) -> Result<(), Bug> {
        to.value(self.states(states)?, format_args!("the states of policy `{}`", P::NAME))
    }

    fn load(&self, from: &mut Reader<'_>) -> Result<States, Bug> {
        Ok(Box::new(from.value::<DigestVec<P::State>>(format_args!("the states of policy `{}`", P::NAME))?))
    }
}
