//! Policies: how agents behave.
//!
//! A policy holds parameters only; the state of its agents lives in columns outside it. A turn is a pure function of (state at its
//! start, sight, inbox, answers so far, random stream); its state, acts and letters commit together, when it completes.

mod binding;

pub use binding::Binding;

use crate::ask::schema::typed;
use crate::ask::{Answer, Asker, Effect, Heard, Hidden, Request, Unanswered, Want};
use crate::council::{Council, CouncilHost, SharedBox};
use crate::digest::{Digest, DigestVec, Kind, RowHash};
use crate::door::{Ask, Book, Door, MOST_QUESTIONS, poll_once};
use crate::ladder::{Question, Settled};
use crate::mail::{Arena, Bucket, Inbox, LONGEST_TEXT, block_of};
use crate::population::{NumberColumn, Population, TextColumn};
use crate::rng::{AHEAD, Draws, Stream, first_blocks};
use crate::saved::{Reader, Writer};
use crate::sight::{Act, Acts, Sight, Sights, WorldColumn};
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::{AgentId, Bug, Plain};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;

/// What all agents of a society share and nobody changes within a round.
#[derive(Debug)]
pub struct Commons {
    /// The seed of the run.
    pub seed: u64,
    /// Attributes of the agents.
    pub population: Population,
    /// Who can hear whom: the neighbours of an agent are those that it hears.
    pub topology: Topology,
    /// The same the other way round, for a directed topology: who hears an agent. `None`: ties go both ways.
    pub audience: Option<Topology>,
}

impl Commons {
    /// Who hears an agent.
    #[inline]
    fn audience(&self) -> &Topology {
        self.audience.as_ref().unwrap_or(&self.topology)
    }
}

/// An agent and its row of the population.
#[derive(Clone, Copy, Debug)]
pub struct Person<'a> {
    /// The agent.
    pub id: AgentId,
    /// The attributes of all agents.
    pub population: &'a Population,
}

impl Person<'_> {
    /// The number in a column of the population.
    #[must_use]
    pub fn number(&self, column: NumberColumn) -> f64 {
        self.population.number(column, self.id)
    }

    /// The text in a column of the population.
    #[must_use]
    pub fn text(&self, column: TextColumn) -> &str {
        self.population.text(column, self.id)
    }
}

/// Why a turn can not go on: a defect of the policy, which stops the run. A bad reply of a model is not a fault; the policy sees it
/// as [`crate::ask::Unanswered`] and decides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// A number that a policy shows of an agent's state.
#[derive(Debug)]
pub struct StateColumn<P: Policy> {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// One line: meaning and unit.
    pub doc: &'static str,
    /// Smallest and largest sensible value, where there are such.
    pub range: Option<(f64, f64)>,
    /// The value for an agent with this state.
    pub value: fn(&P, &P::State) -> f64,
}

/// How the agents of a cohort behave.
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait Policy: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// What an agent carries from turn to turn.
    type State: Plain;

    /// What metrics and tables may read of that, beside the columns of the world. Agents of other policies have no value there.
    const COLUMNS: &'static [StateColumn<Self>] = &[];

    /// Binds the policy to a society, or says which parameter or which part of the world does not fit.
    fn open(params: Self::Params, binding: &Binding<'_>) -> Result<Self, Invalid>;

    /// The state of a new agent.
    fn born(&self, person: Person<'_>, draws: &mut Draws) -> Self::State;

    /// The models that its agents may ask.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of memory of an agent besides its state itself: what the state points at, and open questions. An estimate: a run that cannot
    /// fit into memory is refused.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Whether its agents use [`Turn::tell_neighbours`] in most rounds. Then a round has as many letters as the topology has arcs.
    fn tells_neighbours(&self) -> bool {
        false
    }

    /// A question from outside to an agent as it is now, in its own words; `None`: agents of this policy can not be asked.
    fn interview(&self, state: &Self::State, turn: &Turn<'_>, question: &str) -> Result<Option<Request>, Fault> {
        let _ = (state, turn, question);
        Ok(None)
    }

    /// One turn. May await only the turn's own door.
    async fn act(&self, state: &mut Self::State, turn: &mut Turn<'_>) -> Result<(), Fault>;
}

#[derive(Debug)]
enum Address {
    One(AgentId),
    Neighbours,
}

#[derive(Debug)]
enum Words {
    Number(f64),
    Text(String),
}

#[derive(Debug)]
struct Post {
    to: Address,
    channel: u16,
    words: Words,
}

/// An agent's turn: what it sees, and what it does.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Who acts.
    pub who: AgentId,
    /// The round in which the turn began.
    pub round: u32,
    /// What the world shows.
    pub sight: Sight<'a>,
    /// The agent's random numbers of this round.
    pub draws: Draws,
    mail: Letters<'a>,
    commons: &'a Commons,
    shared: Option<&'a SharedBox>,
    door: Door<'a>,
    acts: &'a mut Acts,
    posts: &'a mut Vec<Post>,
}

impl<'a> Turn<'a> {
    /// The agent's attributes.
    #[must_use]
    pub fn person(&self) -> Person<'_> {
        Person { id: self.who, population: &self.commons.population }
    }

    /// Letters sent to the agent since its last turn, sorted by (round, sender, number).
    #[inline]
    #[must_use]
    pub fn inbox(&self) -> Inbox<'a> {
        self.mail.inbox(self.sight.row())
    }

    /// What the agents of its cohort share since their council of this round.
    ///
    /// # Errors
    /// The policy holds no council, or shares something of another type: a defect of the policy.
    #[inline]
    pub fn shared<S: Plain>(&self) -> Result<&'a S, Fault> {
        let shared = self.shared.and_then(|shared| shared.downcast_ref());
        shared
            .ok_or_else(|| Fault("the agents of this cohort share nothing of the type that their policy reads".into()))
    }

    /// Who can hear whom.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.commons.topology
    }

    /// The seed of the run, for draws that several agents must agree on.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.commons.seed
    }

    /// Performs an act that carries a number or the index of a choice.
    #[inline]
    pub fn act(&mut self, kind: u16, value: f64) {
        self.acts.push(Act { who: self.who, kind, value }, None);
    }

    /// Performs an act that carries a text.
    pub fn act_text(&mut self, kind: u16, text: impl Into<String>) {
        self.acts.push(Act { who: self.who, kind, value: 0.0 }, Some(text.into()));
    }

    /// Performs an act that carries a record: the fields that the world has declared, by their names.
    ///
    /// # Errors
    /// A record that is no JSON.
    pub fn act_record(&mut self, kind: u16, record: &impl Serialize) -> Result<(), Fault> {
        let text = serde_json::to_string(record).map_err(|error| Fault(format!("a record is no JSON: {error}")))?;
        self.act_text(kind, text);
        Ok(())
    }

    /// Performs an act that carries a number and a text.
    pub fn act_saying(&mut self, kind: u16, value: f64, text: impl Into<String>) {
        self.acts.push(Act { who: self.who, kind, value }, Some(text.into()));
    }

    /// Sends a number to one agent; it is read next round. A letter to nobody (an id that was never born) is dropped.
    pub fn send(&mut self, to: AgentId, channel: u16, value: f64) {
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Number(value) });
    }

    /// Sends a text to one agent; it is read next round. Texts above 16 MiB are cut.
    pub fn send_text(&mut self, to: AgentId, channel: u16, text: impl Into<String>) {
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Text(cut(text.into())) });
    }

    /// Sends a number to everybody who can hear the agent.
    #[inline]
    pub fn tell_neighbours(&mut self, channel: u16, value: f64) {
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Number(value) });
    }

    /// Sends a text to everybody who can hear the agent.
    pub fn tell_neighbours_text(&mut self, channel: u16, text: impl Into<String>) {
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Text(cut(text.into())) });
    }

    /// Asks a model.
    pub async fn ask(&mut self, request: Request, hidden: Option<Hidden>) -> Heard {
        let actor = self.who;
        self.door.ask(Ask { actor, request, hidden, default: None }).await
    }

    /// Asks a model for a value of a Rust type, whatever the request says of its form. A type that can not be asked for ([`Want::of`]) is a
    /// fault of the policy.
    pub async fn ask_as<T: JsonSchema + DeserializeOwned>(
        &mut self,
        request: Request,
    ) -> Result<Result<T, Unanswered>, Fault> {
        let want = Want::of::<T>().map_err(Fault)?;
        let heard = self.ask(Request { want: want.clone(), ..request }, None).await;
        Ok(typed(heard, &want))
    }

    /// The next question of this turn, if it has its answer already: a turn is run again from its start when its answers have come, and
    /// what is the same each time and costly to make (the words of a question) can be taken from here.
    #[must_use]
    pub fn answered_next(&self) -> Option<&Request> {
        self.door.answered_next(self.who)
    }

    /// Puts questions together, each with its ladder; what they end in comes in the order asked.
    pub async fn settle_all(&mut self, questions: Vec<Question>) -> Vec<Settled> {
        let actor = self.who;
        self.door.settle_all(questions.into_iter().map(|question| (actor, question)).collect()).await
    }

    /// Asks several questions at once.
    pub async fn ask_all(&mut self, requests: Vec<Request>) -> Vec<Heard> {
        let actor = self.who;
        let ask = |request| Ask { actor, request, hidden: None, default: None };
        self.door.ask_all(requests.into_iter().map(ask).collect()).await
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let mut end = LONGEST_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// Turns that wait, sorted by agent. Boxed, since those that still wait are moved whenever others are done.
pub(crate) type Waiting = Vec<Box<Suspended>>;

/// A turn that waits for answers: its inputs, never its future.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// Who waits.
    pub who: AgentId,
    /// The round in which the turn began.
    pub began: u32,
    /// The round whose barrier it must reach.
    pub due: u32,
    sights: Sights,
    letters: Bucket,
    /// Answers so far, sorted by id.
    answers: Vec<Answer>,
    /// Questions that have no answer yet.
    open: Vec<Effect>,
    /// Letters that came while it waited; read at the next turn.
    pub(crate) held: Bucket,
}

impl Suspended {
    fn new(who: AgentId, round: &Round<'_>, sights: Sights, inbox: Inbox<'_>, open: Vec<Effect>) -> Self {
        let mut letters = Bucket::default();
        letters.extend(inbox);
        Suspended {
            who,
            began: round.round,
            due: round.round + round.lag,
            sights,
            letters,
            answers: Vec::new(),
            open,
            held: Bucket::default(),
        }
    }

    /// Takes an answer in; `true` when it was the last one that the turn waits for.
    pub(crate) fn hear(&mut self, answer: Answer) -> bool {
        let before = self.open.len();
        self.open.retain(|effect| effect.id != answer.id);
        if self.open.len() < before
            && let Err(place) = self.answers.binary_search_by_key(&answer.id, |a| a.id)
        {
            self.answers.insert(place, answer);
        }
        self.open.is_empty()
    }

    /// The questions that have no answer yet.
    pub(crate) fn open(&self) -> &[Effect] {
        &self.open
    }
}

/// What a lane of consecutive blocks produces in a round.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// One bucket a destination block.
    pub buckets: Vec<Bucket>,
    /// Events planned, one bucket a destination block; a letter's number is the time.
    pub events: Vec<Bucket>,
    pub digest: Digest,
    pub effects: Vec<Effect>,
    /// Letters whose sender had waited stand out of order.
    pub late: bool,
    posts: Vec<Post>,
    book: Book,
}

impl Lane {
    /// Begins a round in a society of `blocks` blocks.
    pub fn reset(&mut self, blocks: usize) {
        self.buckets.resize_with(blocks, Bucket::default);
        self.buckets.iter_mut().for_each(Bucket::clear);
        self.digest = Digest::default();
        self.effects.clear();
        self.late = false;
    }

    /// Sends what a completed turn has posted.
    #[inline]
    fn commit_posts(&mut self, from: AgentId, round: u32, commons: &Commons) {
        if !self.posts.is_empty() {
            self.send_posts(from, round, commons);
        }
    }

    fn send_posts(&mut self, from: AgentId, round: u32, commons: &Commons) {
        let base = RowHash::new(Kind::Letter, round).word(u64::from(from));
        let mut n = 0u64;
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
                        Address::Neighbours => commons.audience().neighbours(from).for_each(send),
                    }
                }
                Words::Text(text) => {
                    let base = base.word(1 << 32 | u64::from(channel)).bytes(text.as_bytes());
                    let mut send = |to: AgentId| {
                        if let Some(bucket) = buckets.get_mut(block_of(to)) {
                            bucket.text(from, to, channel, &text);
                            digest.add(base.word(u64::from(to) << 32 | n).finish());
                            n += 1;
                        }
                    };
                    match to {
                        Address::One(to) => send(to),
                        Address::Neighbours => commons.audience().neighbours(from).for_each(send),
                    }
                }
            }
        }
    }
}

/// What the turns of a block have in common.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub round: u32,
    /// Rounds a turn that asks may take.
    pub lag: u32,
    pub commons: &'a Commons,
    /// What the cohorts share, by cohort.
    pub shared: &'a [Option<SharedBox>],
}

impl<'a> Round<'a> {
    fn shared_of(&self, cohort: u16) -> Option<&'a SharedBox> {
        self.shared.get(cohort as usize).and_then(Option::as_ref)
    }
}

/// Consecutive agents of one cohort, as a policy runs over them.
pub(crate) struct Rows<'a> {
    /// Their cohort.
    pub cohort: u16,
    /// The first of them.
    pub first: AgentId,
    /// Where their states stand in the column.
    pub states: std::ops::Range<usize>,
    /// The row of the first in `sights` and `mail`.
    pub base: usize,
    pub sights: &'a Sights,
    pub mail: Letters<'a>,
    /// Whether a row takes a turn (alive and not waiting); `None`: all do.
    pub awake: Option<&'a dyn Fn(usize) -> bool>,
    pub acts: &'a mut Acts,
    /// Sorted by agent.
    pub suspended: &'a mut Waiting,
}

/// A column of states, one policy's: a [`DigestVec`].
pub(crate) type States = Box<dyn Any + Send + Sync>;

/// A policy with its type erased; called once for a run of rows, never once an agent.
pub(crate) trait PolicyHost: Send + Sync {
    fn models(&self) -> Vec<String>;
    /// Bytes of memory that an agent takes.
    fn memory_bytes(&self) -> usize;
    fn tells_neighbours(&self) -> bool;
    /// The council that its agents hold, if they hold one.
    fn council(&self) -> Option<&dyn CouncilHost>;
    /// What it shows of its agents' states.
    fn columns(&self) -> Vec<WorldColumn>;
    /// The values of the column of this name, one an agent, where it has such a column.
    fn column(&self, states: &States, name: &str) -> Option<Vec<f64>>;
    /// The digest of these states.
    fn digest(&self, states: &States) -> Result<Digest, Bug>;
    fn born(&self, ids: std::ops::Range<AgentId>, commons: &Commons, round: u32) -> States;
    fn join(&self, states: &mut States, who: AgentId, commons: &Commons, round: u32);
    fn run(&self, states: &mut States, rows: Rows<'_>, round: &Round<'_>, lane: &mut Lane) -> Result<(), Bug>;
    /// The agents whose turns would leave a trace: an act, a letter, a question, another state, an error. Nothing of it stays.
    fn try_out(
        &self,
        states: &mut States,
        rows: Rows<'_>,
        round: &Round<'_>,
        lane: &mut Lane,
    ) -> Result<Vec<AgentId>, Bug>;
    /// Runs a suspended turn again with the answers it has, in the round that `round` says. `true`: it is complete.
    /// `at`: where the agent's state stands, and its cohort.
    fn rerun(
        &self,
        states: &mut States,
        at: (usize, u16),
        waiting: &mut Suspended,
        round: &Round<'_>,
        acts: &mut Acts,
        lane: &mut Lane,
    ) -> Result<bool, Bug>;
    /// A question from outside to the agent whose state stands at `index`; `who`: it, and the next round.
    #[expect(clippy::too_many_arguments, reason = "the parts of a turn, which there is none of")]
    fn interview(
        &self,
        states: &States,
        index: usize,
        sight: Sight<'_>,
        mail: Letters<'_>,
        who: (AgentId, u32),
        commons: &Commons,
        shared: Option<&SharedBox>,
        question: &str,
    ) -> Result<Option<Request>, Bug>;
    fn save(&self, states: &States, to: &mut Writer<'_>) -> Result<(), Bug>;
    fn load(&self, from: &mut Reader<'_>) -> Result<States, Bug>;
}

/// A policy as one of its kind, and as a council if it holds one.
pub(crate) struct Host<P: Policy> {
    pub policy: P,
    council: Option<fn(&Host<P>) -> &dyn CouncilHost>,
}

impl<P: Council> Host<P> {
    /// Of a policy whose agents hold council.
    pub fn in_council(policy: P) -> Self {
        Host { policy, council: Some(|host| host) }
    }
}

impl<P: Policy> Host<P> {
    pub fn new(policy: P) -> Self {
        Host { policy, council: None }
    }

    fn states<'s>(&self, states: &'s States) -> Result<&'s DigestVec<P::State>, Bug> {
        states.downcast_ref().ok_or_else(|| Bug::internal("a cohort's states are of another policy's type"))
    }

    fn states_mut<'s>(&self, states: &'s mut States) -> Result<&'s mut DigestVec<P::State>, Bug> {
        states.downcast_mut().ok_or_else(|| Bug::internal("a cohort's states are of another policy's type"))
    }

    /// What the turns of rows are run with, and where acts and open turns go.
    fn given<'a>(rows: Rows<'a>, round: &Round<'a>, purpose: Purpose) -> (Given<'a>, &'a mut Acts, &'a mut Waiting) {
        let Rows { cohort, first, states, base, sights, mail, awake, acts, suspended } = rows;
        let (began, commons, shared) = (round.round, round.commons, round.shared_of(cohort));
        (
            Given { states, first, base, awake, sights, mail, answers: &[], began, purpose, commons, shared },
            acts,
            suspended,
        )
    }

    fn fresh(&self, who: AgentId, commons: &Commons, round: u32) -> P::State {
        let mut draws = Draws::new(commons.seed, Stream::Birth, round, who);
        self.policy.born(Person { id: who, population: &commons.population }, &mut draws)
    }

    /// Runs the turns of consecutive agents. Those that complete commit; those that wait for answers leave nothing behind but
    /// their open questions, which are returned. Turns that are tried out are returned if they would leave a trace.
    ///
    /// This is the only place where a policy is called: with one caller the compiler puts a rule's turn into this loop.
    fn turns(
        &self,
        column: &mut DigestVec<P::State>,
        given: &Given<'_>,
        acts: &mut Acts,
        lane: &mut Lane,
    ) -> Result<Vec<(AgentId, Vec<Effect>)>, Bug> {
        let Given { first, base, awake, sights, mail, answers, began, purpose, commons, shared, .. } = *given;
        let start = acts.rows.len();
        let whole = awake.is_none() && given.states == (0..column.len()) && matches!(purpose, Purpose::Commit(_));
        let (column, mut pass) = column.pass(whole);
        let states = column
            .get_mut(given.states.clone())
            .ok_or_else(|| Bug::internal("an agent without a state takes a turn"))?;
        let mut waiting = Vec::new();
        // Random numbers are computed some agents ahead as long as turns use them; that changes when, never what.
        let (mut used, mut ahead, mut blocks) = (false, false, [[0; 2]; AHEAD]);
        for (i, state) in states.iter_mut().enumerate() {
            let who = first + i as AgentId;
            if i % AHEAD == 0 {
                ahead = std::mem::take(&mut used);
                if ahead {
                    first_blocks(commons.seed, Stream::Turn, began, who, &mut blocks);
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
                sight: sights.row(row),
                mail,
                draws: if ahead {
                    Draws::with_block(commons.seed, Stream::Turn, began, who, blocks[i % AHEAD])
                } else {
                    Draws::new(commons.seed, Stream::Turn, began, who)
                },
                commons,
                shared,
                door: Door::new(Asker::Agent, 0, began, answers, &mut lane.book),
                acts,
                posts: &mut lane.posts,
            };
            let polled = poll_once(self.policy.act(&mut next, &mut turn));
            used |= turn.draws.used();
            if polled.is_some() {
                turn.door.forget();
            }
            match (polled, purpose) {
                (Some(Ok(())), Purpose::Commit(now)) => {
                    if next != *state {
                        pass.changed(given.states.start + i, state, &next);
                        *state = next;
                    }
                    lane.commit_posts(who, now, commons);
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
                        let message = "the turn awaits something that is not its own door".into();
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

/// What the turns of consecutive agents are run with.
struct Given<'a> {
    /// Where their states stand in the column.
    states: std::ops::Range<usize>,
    /// The first agent.
    first: AgentId,
    /// Its row in `sights` and `mail`.
    base: usize,
    /// Whether a row takes a turn; `None`: all do.
    awake: Option<&'a dyn Fn(usize) -> bool>,
    sights: &'a Sights,
    mail: Letters<'a>,
    /// Sorted by id.
    answers: &'a [Answer],
    /// The round in which the turns began.
    began: u32,
    purpose: Purpose,
    commons: &'a Commons,
    /// What their cohort shares.
    shared: Option<&'a SharedBox>,
}

/// What turns are run for.
#[derive(Clone, Copy)]
enum Purpose {
    /// To count, in this round.
    Commit(u32),
    /// To show whether they are complete.
    Complete,
    /// To show whether they would leave a trace.
    TryOut,
}

/// Where turns find their letters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Letters<'a> {
    /// By row.
    OfBlock(&'a Arena),
    /// Of one agent.
    OfTurn(Inbox<'a>),
}

impl<'a> Letters<'a> {
    #[inline]
    fn inbox(self, row: usize) -> Inbox<'a> {
        match self {
            Letters::OfBlock(arena) => arena.inbox(row),
            Letters::OfTurn(inbox) => inbox,
        }
    }
}

/// Takes the acts from index `from` on into the digest. An act that carries NaN is a defect of its policy.
fn digest_acts(digest: &mut Digest, round: u32, acts: &Acts, from: usize) -> Result<(), Bug> {
    let kind = RowHash::new(Kind::Act, round);
    let texts = !acts.texts.is_empty();
    let (mut last, mut n) = (AgentId::MAX, 0u64);
    for (i, act) in acts.rows[from..].iter().enumerate() {
        if act.value.is_nan() {
            return Err(Bug::Turn { agent: act.who, round, message: "an act's value is not a number (NaN)".into() });
        }
        // The highest id is never given out.
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

/// Notes a turn that would leave a trace. Not in the loop over all turns, where it would be in the way of the rest.
#[cold]
#[inline(never)]
fn loud(waiting: &mut Vec<(AgentId, Vec<Effect>)>, who: AgentId) {
    waiting.push((who, Vec::new()));
}

/// Undoes what a turn did beyond its first `rows` acts and `texts` texts.
#[cold]
fn take_back(acts: &mut Acts, rows: usize, texts: usize, lane: &mut Lane) {
    acts.rows.truncate(rows);
    acts.texts.truncate(texts);
    lane.posts.clear();
}

impl<P: Policy> PolicyHost for Host<P> {
    fn models(&self) -> Vec<String> {
        self.policy.models()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<P::State>() + self.policy.memory_bytes()
    }

    fn tells_neighbours(&self) -> bool {
        self.policy.tells_neighbours()
    }

    fn council(&self) -> Option<&dyn CouncilHost> {
        self.council.map(|of| of(self))
    }

    fn columns(&self) -> Vec<WorldColumn> {
        let column = |column: &StateColumn<P>| WorldColumn {
            name: column.name.into(),
            doc: column.doc.into(),
            range: column.range,
        };
        P::COLUMNS.iter().map(column).collect()
    }

    fn column(&self, states: &States, name: &str) -> Option<Vec<f64>> {
        let column = P::COLUMNS.iter().find(|column| column.name == name)?;
        debug_assert!(states.is::<DigestVec<P::State>>(), "a cohort's states are of another policy's type");
        let states = self.states(states).ok()?;
        Some(states.iter().map(|state| (column.value)(&self.policy, state)).collect())
    }

    fn born(&self, ids: std::ops::Range<AgentId>, commons: &Commons, round: u32) -> States {
        let first = u64::from(ids.start);
        let states = ids.map(|who| self.fresh(who, commons, round)).collect();
        Box::new(DigestVec::numbered_from(first, states))
    }

    fn digest(&self, states: &States) -> Result<Digest, Bug> {
        Ok(self.states(states)?.digest())
    }

    fn join(&self, states: &mut States, who: AgentId, commons: &Commons, round: u32) {
        let fresh = self.fresh(who, commons, round);
        if let Ok(column) = self.states_mut(states) {
            column.push(fresh);
        }
    }

    fn run(&self, states: &mut States, rows: Rows<'_>, round: &Round<'_>, lane: &mut Lane) -> Result<(), Bug> {
        let Rows { first, base, sights, mail, .. } = rows;
        let (given, acts, suspended) = Self::given(rows, round, Purpose::Commit(round.round));
        for (who, open) in self.turns(self.states_mut(states)?, &given, acts, lane)? {
            let row = base + (who - first) as usize;
            lane.effects.extend(open.iter().cloned());
            let place = suspended.partition_point(|s| s.who < who);
            let turn = Suspended::new(who, round, sights.keep(row), mail.inbox(row), open);
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
        acts: &mut Acts,
        lane: &mut Lane,
    ) -> Result<bool, Bug> {
        let Round { round: now, commons, .. } = *round;
        // A turn that is complete before its barrier has come is run once more then, with the same answers.
        let due = waiting.due <= now;
        let given = Given {
            states: index..index + 1,
            first: waiting.who,
            base: 0,
            awake: None,
            sights: &waiting.sights,
            mail: Letters::OfTurn(waiting.letters.inbox()),
            answers: &waiting.answers,
            began: waiting.began,
            purpose: if due { Purpose::Commit(now) } else { Purpose::Complete },
            commons,
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
        sight: Sight<'_>,
        mail: Letters<'_>,
        (who, round): (AgentId, u32),
        commons: &Commons,
        shared: Option<&SharedBox>,
        question: &str,
    ) -> Result<Option<Request>, Bug> {
        let state =
            self.states(states)?.get(index).ok_or_else(|| Bug::internal("an agent without a state is asked"))?;
        let (mut book, mut acts, mut posts) = (Book::default(), Acts::default(), Vec::new());
        let turn = Turn {
            who,
            round,
            sight,
            mail,
            draws: Draws::new(commons.seed, Stream::Turn, round, who),
            commons,
            shared,
            door: Door::new(Asker::Agent, 0, round, &[], &mut book),
            acts: &mut acts,
            posts: &mut posts,
        };
        let asked = self.policy.interview(state, &turn, question);
        asked.map_err(|fault| Bug::Turn { agent: who, round, message: fault.0 })
    }

    fn save(&self, states: &States, to: &mut Writer<'_>) -> Result<(), Bug> {
        to.value(self.states(states)?, format_args!("the states of policy `{}`", P::NAME))
    }

    fn load(&self, from: &mut Reader<'_>) -> Result<States, Bug> {
        Ok(Box::new(from.value::<DigestVec<P::State>>(format_args!("the states of policy `{}`", P::NAME))?))
    }
}
