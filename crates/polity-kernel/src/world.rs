//! Worlds: environments that own the shared state.
//!
//! `observe` only reads; applying acts is the only writer. A world comes in one of two shapes. A [`World`] keeps its state in one
//! place: with several shards it lives on shard 0, sights and acts travel. A [`SplitWorld`] declares what is split: a row an agent,
//! a small common state that every shard holds alike, and a tally that reduces acts to what the common state needs.

use crate::ask::Want;
use crate::declare::{Declare, DeclareSplit, DeclareWorld};
use crate::digest::{Digest, DigestVec, Kind, RowHash, hash_value};
use crate::ladder::{Question, Settled};
use crate::mail::{Arena, Inbox};
use crate::policy::{Commons, Person};
use crate::population::Population;
use crate::rng::{Draws, Stream};
use crate::saved::{Reader, Writer};
use crate::sight::{Act, Acts, Cells, Interface, NumberSlot, Rows, Sights, TableSlot, TextSlot};
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::{AgentId, Bug, Plain, tree_reduce};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;

/// What a world may know when it is opened.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Number of agents at the start.
    pub agents: u32,
    /// Their attributes.
    pub population: &'a Population,
    /// Who can hear whom.
    pub topology: &'a Topology,
    /// Rounds between what an agent sees and its acts, at most (`answers: {lag: 2}`); 0: the same round.
    pub lag: u32,
}

/// The pen with which a world writes one agent's sight.
#[derive(Debug)]
pub struct SightRow<'a> {
    sights: &'a mut Sights,
    row: usize,
    who: AgentId,
    topology: &'a Topology,
}

impl<'a> SightRow<'a> {
    /// Whom the agent hears.
    pub fn neighbours(&self) -> impl Iterator<Item = AgentId> + 'a {
        self.topology.neighbours(self.who)
    }

    /// Shows a number.
    #[inline]
    pub fn number(&mut self, slot: NumberSlot, value: f64) {
        self.sights.put(self.row, slot, value);
    }

    /// Shows a text.
    pub fn text(&mut self, slot: TextSlot, value: impl Into<String>) {
        self.sights.put_text(self.row, slot, value);
    }

    /// Shows a table: `fill` appends its rows.
    pub fn table(&mut self, slot: TableSlot, fill: impl FnOnce(&mut Rows<'_>)) {
        self.sights.put_table(self.row, slot, fill);
    }
}

/// A birth: who is born, into which cohort, like whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// The parent: the newborn takes its row of the population and its cohort.
    pub parent: AgentId,
}

/// When the agents of a round act, and what they see of each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// All see the same frozen round.
    Simultaneous,
    /// One after the other, in an order drawn anew each round; each sees what those before it have done. Worlds in which nobody
    /// sees others' acts within a round refuse it.
    RandomOrder,
    /// Those to whom something happens. A round is a window of the world's least delay: what happens in it can cause nothing
    /// before its end, so that its agents need not wait for each other.
    EventTime,
}

/// An event that a world has planned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Whose act or event planned it.
    pub from: AgentId,
    /// To whom it will happen.
    pub to: AgentId,
    /// What; a number below 32,768 that the world gives meaning to.
    pub kind: u16,
    /// When, in the world's unit of time.
    pub at: f64,
}

/// What a world decides beyond its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Future {
    /// Births, in the order of the agents that caused them; they take place between rounds.
    pub births: Vec<Birth>,
    /// Deaths; they take place between rounds.
    pub deaths: Vec<AgentId>,
    /// Events, in the order planned.
    pub events: Vec<Planned>,
    /// Agents whose sight has changed since somebody last took them from here.
    pub(crate) disturbed: Vec<AgentId>,
}

impl Future {
    /// Plans that something of `kind` happens to `to` at time `at`, which must not lie before the end of the window under way.
    /// What would happen after the run's last round is dropped.
    #[inline]
    pub fn event(&mut self, from: AgentId, to: AgentId, kind: u16, at: f64) {
        self.events.push(Planned { from, to, kind, at });
    }

    /// `who` sees something else from now on; see [`World::disturbs`].
    #[inline]
    pub fn disturb(&mut self, who: AgentId) {
        self.disturbed.push(who);
    }

    /// A child of `parent` is born between this round and the next.
    pub fn birth(&mut self, parent: AgentId) {
        self.births.push(Birth { parent });
    }

    /// `who` dies between this round and the next.
    pub fn death(&mut self, who: AgentId) {
        self.deaths.push(who);
    }
}

/// An agent's acts of a round, as a world applies them.
#[derive(Debug)]
pub struct Deeds<'a> {
    /// Who acted.
    pub person: Person<'a>,
    /// The round.
    pub round: u32,
    acts: &'a Acts,
    range: std::ops::Range<usize>,
    events: Inbox<'a>,
    commons: &'a Commons,
}

impl<'a> Deeds<'a> {
    /// The acts, in the order performed.
    #[inline]
    #[must_use]
    pub fn acts(&self) -> &'a [Act] {
        &self.acts.rows[self.range.clone()]
    }

    /// The text of the `i`-th act.
    #[must_use]
    pub fn text(&self, i: usize) -> Option<&'a str> {
        self.acts.text(self.range.start + i)
    }

    /// The record of the `i`-th act; `None` if it carries none, or one that is no `T`.
    #[must_use]
    pub fn record<T: DeserializeOwned>(&self, i: usize) -> Option<T> {
        serde_json::from_str(self.text(i)?).ok()
    }

    /// What happens to the agent in this window, sorted by (time, who planned it, number): (time, who planned it, kind).
    pub fn events(&self) -> impl Iterator<Item = (f64, AgentId, u16)> + 'a {
        self.events.stamped()
    }

    /// How many agents it hears.
    #[must_use]
    pub fn degree(&self) -> u32 {
        self.commons.topology.degree(self.person.id)
    }

    /// Whom the agent hears.
    pub fn neighbours(&self) -> impl Iterator<Item = AgentId> + 'a {
        self.commons.topology.neighbours(self.person.id)
    }

    /// The world's random numbers for this agent in this round.
    #[must_use]
    pub fn draws(&self) -> Draws {
        Draws::new(self.commons.seed, Stream::World, self.round, self.person.id)
    }
}

/// A world whose state is split over the agents.
pub trait SplitWorld: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// An agent's share of the state.
    type Row: Plain;
    /// The small state that all agents share.
    type Common: Plain;
    /// What the acts of a block are reduced to.
    type Tally: Plain;

    /// Opens the world and declares what it shows and understands, or says which parameter does not fit.
    fn open(params: Self::Params, setup: &Setup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid>;
    /// Bytes of memory of an agent besides its row itself. An estimate: a run that cannot fit into memory is refused.
    fn memory_bytes(&self) -> usize {
        0
    }
    /// The least delay between what happens and what it causes, in the world's unit of time: a world with events has one, and its
    /// rounds are windows of it.
    fn delay(&self) -> Option<f64> {
        None
    }
    /// The common state at the start.
    fn begin(&self) -> Self::Common;
    /// A new agent's row.
    fn seat(&self, person: Person<'_>, draws: &mut Draws) -> Self::Row;
    /// Plans the first events of an agent that is there from the start; time begins at 0.
    fn start(&self, row: &Self::Row, person: Person<'_>, future: &mut Future) {
        let _ = (row, person, future);
    }
    /// Writes what one agent sees in slots that were declared without a function.
    fn observe(&self, common: &Self::Common, row: &Self::Row, person: Person<'_>, sight: &mut SightRow<'_>) {
        let _ = (common, row, person, sight);
    }
    /// An empty tally.
    fn tally(&self) -> Self::Tally;
    /// Applies one agent's acts and events to its row. Called for every living agent in order of id, also for those that did
    /// nothing; in event time for those to whom something happens.
    fn apply(
        &self,
        common: &Self::Common,
        row: &mut Self::Row,
        deeds: &Deeds<'_>,
        tally: &mut Self::Tally,
        future: &mut Future,
    );
    /// Joins the tallies of neighbouring runs of agents.
    fn merge(&self, left: Self::Tally, right: Self::Tally) -> Self::Tally;
    /// Moves the common state on. `Some(reason)` ends the run.
    fn settle(&self, common: &mut Self::Common, tally: Self::Tally, draws: &mut Draws) -> Option<String>;
}

/// A world whose state lies in one place.
pub trait World: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// Everything that changes. All of it is hashed in every round; what is large lies in [`crate::digest::DigestVec`]s and
    /// [`crate::digest::DigestMap`]s, which are hashed where they change.
    type State: Plain;

    /// Opens the world and declares what it shows and understands, or says which parameter does not fit.
    fn open(params: Self::Params, setup: &Setup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid>;
    /// Bytes of the state for each agent at the start. An estimate: a run that cannot fit into memory is refused.
    fn memory_bytes(&self) -> usize {
        200
    }
    /// How its agents take their turns unless a scenario says otherwise.
    fn activation(&self) -> Activation {
        Activation::Simultaneous
    }
    /// Whether `apply` names everybody whose sight it changes, by [`Future::disturb`]. Then, in random order, turns that leave no
    /// trace are found on all threads before the first, and only the disturbed look again: rounds in which few act are fast.
    fn disturbs(&self) -> bool {
        false
    }
    /// The state at the start.
    fn begin(&self, setup: &Setup<'_>, draws: &mut Draws) -> Self::State;
    /// Models that the world itself asks, each with a kind of answer that is wanted of it: who names none is never called for
    /// [`World::inquire`].
    fn models(&self) -> Vec<(String, Want)> {
        Vec::new()
    }
    /// What the world asks at the beginning of a round, before anybody looks: each question in the name of an agent, whose budget pays for it.
    /// The same state always asks the same.
    fn inquire(&self, state: &Self::State) -> Vec<(AgentId, Question)> {
        let _ = state;
        Vec::new()
    }
    /// Takes in what these questions ended in, in the order asked; called in the same round, and only if there were some.
    fn learn(&self, state: &mut Self::State, ends: Vec<Settled>) {
        let _ = (state, ends);
    }
    /// Writes what one agent sees in slots that were declared without a function.
    fn observe(&self, state: &Self::State, person: Person<'_>, sight: &mut SightRow<'_>) {
        let _ = (state, person, sight);
    }
    /// Applies one agent's acts. Simultaneous: once all have acted, in order of id, for those that did something. Random order:
    /// right after the agent's turn, before the next agent looks.
    fn apply(&self, state: &mut Self::State, deeds: &Deeds<'_>, future: &mut Future);
    /// Ends a round. `Some(reason)` ends the run.
    fn settle(&self, state: &mut Self::State, draws: &mut Draws) -> Option<String>;
    /// Rebuilds what follows from the rest of the state and is not saved with it (`#[serde(skip)]`).
    fn restore(&self, state: &mut Self::State) {
        let _ = state;
    }
}

/// Whether a world's state can be split over shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// A row an agent.
    Rows,
    /// All of it on shard 0.
    None,
}

/// The rows of a block, one world's: a [`DigestVec`], or nothing where the state is not split.
pub(crate) type RowsBox = Box<dyn Any + Send + Sync>;
/// A tally with its type erased.
pub(crate) type Tally = Box<dyn Any + Send + Sync>;

/// The living agents of a block, their acts, and in event time what happens to them.
pub(crate) struct BlockDeeds<'a> {
    pub first: AgentId,
    pub alive: Option<&'a dyn Fn(usize) -> bool>,
    pub acts: &'a Acts,
    pub events: Option<&'a Arena>,
    pub round: u32,
}

/// A world with its type erased; called once a block, never once an agent.
pub(crate) trait WorldHost: Send + Sync {
    fn interface(&self) -> &Interface;
    /// Bytes of memory that an agent takes.
    fn memory_bytes(&self) -> usize;
    fn split(&self) -> Split;
    /// How agents take their turns unless a scenario says otherwise.
    fn activation(&self) -> Activation;
    /// Whether an unsplit state names everybody whose sight acts change.
    fn disturbs(&self) -> bool;
    /// The length of a window in event time.
    fn delay(&self) -> Option<f64>;
    /// The models that an unsplit state asks, and what for.
    fn models(&self) -> Vec<(String, Want)> {
        Vec::new()
    }
    /// What an unsplit state asks at the beginning of a round.
    fn inquire(&self) -> Vec<(AgentId, Question)> {
        Vec::new()
    }
    /// Takes in what that ended in.
    fn learn(&mut self, ends: Vec<Settled>) {
        let _ = ends;
    }
    /// Plans the first events of a block's agents.
    fn start(&self, rows: &RowsBox, first: AgentId, commons: &Commons, future: &mut Future);
    /// Makes the state of the start; `with_state`: this is the shard that holds an unsplit state.
    fn begin(&mut self, setup: &Setup<'_>, seed: u64, with_state: bool);
    fn seat(&self, ids: std::ops::Range<AgentId>, commons: &Commons, round: u32) -> RowsBox;
    fn join(&self, rows: &mut RowsBox, who: AgentId, commons: &Commons, round: u32);
    fn observe(&self, rows: &RowsBox, first: AgentId, n: usize, commons: &Commons, sights: &mut Sights);
    fn apply_block(
        &self,
        rows: &mut RowsBox,
        deeds: &BlockDeeds<'_>,
        commons: &Commons,
        future: &mut Future,
    ) -> Result<Tally, Bug>;
    fn merge(&self, tallies: Vec<Tally>) -> Result<Tally, Bug>;
    fn encode_tally(&self, tally: &Tally) -> Result<Vec<u8>, Bug>;
    fn decode_tally(&self, bytes: &[u8]) -> Result<Tally, Bug>;
    fn settle(&mut self, tally: Tally, round: u32, commons: &Commons) -> Result<Option<String>, Bug>;
    /// Writes what one agent sees of an unsplit state into row 0 of sights that were made for this world.
    fn observe_one(&self, who: AgentId, commons: &Commons, sights: &mut Sights);
    /// Applies acts to an unsplit state, in order; acts of one agent stand together.
    fn apply_acts(
        &mut self,
        acts: &Acts,
        range: std::ops::Range<usize>,
        round: u32,
        commons: &Commons,
        future: &mut Future,
    ) -> Result<(), Bug>;
    /// Ends a round of an unsplit state.
    fn settle_whole(&mut self, round: u32, commons: &Commons) -> Result<Option<String>, Bug>;
    /// The hash of the state that is not in rows: that of a split world which all shards share, or all of an unsplit one.
    fn hash(&self) -> u128;
    /// The digest of a block's rows.
    fn digest_rows(&self, rows: &RowsBox) -> Result<Digest, Bug>;
    fn column(&self, rows: &RowsBox, first: AgentId, n: usize, column: usize, out: &mut Vec<f64>);
    fn scalar(&self, i: usize) -> f64;
    /// What the last round adds to a table of the world's own.
    fn rows(&self, i: usize) -> Vec<Cells>;
    fn save(&self, to: &mut Writer<'_>) -> Result<(), Bug>;
    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Bug>;
    fn save_rows(&self, rows: &RowsBox, to: &mut Writer<'_>) -> Result<(), Bug>;
    fn load_rows(&self, from: &mut Reader<'_>) -> Result<RowsBox, Bug>;
}

fn encode<T: Serialize>(value: &T, what: &str) -> Result<Vec<u8>, Bug> {
    postcard::to_allocvec(value).map_err(|e| Bug::internal(format!("{what}: {e}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, Bug> {
    postcard::from_bytes(bytes).map_err(|e| Bug::Snapshot { what: what.into(), why: e.to_string() })
}

fn downcast<T: 'static>(value: &(dyn Any + Send + Sync)) -> Result<&T, Bug> {
    value.downcast_ref().ok_or_else(|| Bug::internal("a world's data are of another world's type"))
}

fn downcast_mut<T: 'static>(value: &mut (dyn Any + Send + Sync)) -> Result<&mut T, Bug> {
    value.downcast_mut().ok_or_else(|| Bug::internal("a world's data are of another world's type"))
}

/// What is read back must have the hash that was saved with it.
fn as_saved(is: bool, what: fmt::Arguments<'_>) -> Result<(), Bug> {
    let why = "it is not what was saved: its digest is another";
    if is { Ok(()) } else { Err(Bug::Snapshot { what: what.to_string(), why: why.into() }) }
}

pub(crate) struct SplitHost<W: SplitWorld> {
    world: W,
    common: W::Common,
    declared: DeclareSplit<W>,
}

impl<W: SplitWorld> SplitHost<W> {
    pub fn new(world: W, declared: DeclareSplit<W>) -> Self {
        SplitHost { common: world.begin(), declared, world }
    }

    fn fresh(&self, who: AgentId, commons: &Commons, round: u32) -> W::Row {
        let mut draws = Draws::new(commons.seed, Stream::Seat, round, who);
        self.world.seat(Person { id: who, population: &commons.population }, &mut draws)
    }
}

impl<W: SplitWorld> WorldHost for SplitHost<W> {
    fn interface(&self) -> &Interface {
        &self.declared.interface
    }

    fn memory_bytes(&self) -> usize {
        size_of::<W::Row>() + self.world.memory_bytes()
    }

    fn split(&self) -> Split {
        Split::Rows
    }

    fn activation(&self) -> Activation {
        if self.world.delay().is_some() { Activation::EventTime } else { Activation::Simultaneous }
    }

    fn disturbs(&self) -> bool {
        false
    }

    fn delay(&self) -> Option<f64> {
        self.world.delay()
    }

    fn start(&self, rows: &RowsBox, first: AgentId, commons: &Commons, future: &mut Future) {
        if let Ok(rows) = downcast::<DigestVec<W::Row>>(rows.as_ref()) {
            for (i, row) in rows.iter().enumerate() {
                let person = Person { id: first + i as u32, population: &commons.population };
                self.world.start(row, person, future);
            }
        }
    }

    fn begin(&mut self, _: &Setup<'_>, _: u64, _: bool) {
        self.common = self.world.begin();
    }

    fn seat(&self, ids: std::ops::Range<AgentId>, commons: &Commons, round: u32) -> RowsBox {
        let first = u64::from(ids.start);
        Box::new(DigestVec::numbered_from(first, ids.map(|who| self.fresh(who, commons, round)).collect()))
    }

    fn join(&self, rows: &mut RowsBox, who: AgentId, commons: &Commons, round: u32) {
        let fresh = self.fresh(who, commons, round);
        if let Ok(rows) = downcast_mut::<DigestVec<W::Row>>(rows.as_mut()) {
            rows.push(fresh);
        }
    }

    fn observe(&self, rows: &RowsBox, first: AgentId, n: usize, commons: &Commons, sights: &mut Sights) {
        let Declare { interface, shared, numbers, .. } = &self.declared;
        sights.reset(interface, n);
        for (slot, value) in shared {
            sights.put_all(*slot, value(&self.world, &self.common));
        }
        if let Ok(rows) = downcast::<DigestVec<W::Row>>(rows.as_ref()) {
            for (slot, value) in numbers {
                sights.put_each(*slot, rows.iter().map(|row| value(&self.world, &self.common, row)));
            }
            for (i, row) in rows.iter().enumerate() {
                let person = Person { id: first + i as u32, population: &commons.population };
                let mut sight = SightRow { sights, row: i, who: person.id, topology: &commons.topology };
                self.world.observe(&self.common, row, person, &mut sight);
            }
        }
    }

    fn apply_block(
        &self,
        rows: &mut RowsBox,
        deeds: &BlockDeeds<'_>,
        commons: &Commons,
        future: &mut Future,
    ) -> Result<Tally, Bug> {
        let (rows, mut pass) = downcast_mut::<DigestVec<W::Row>>(rows.as_mut())?.pass(deeds.events.is_none());
        let mut tally = self.world.tally();
        let acts = &deeds.acts.rows;
        let mut next = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            let who = deeds.first + i as u32;
            let start = next;
            while acts.get(next).is_some_and(|act| act.who == who) {
                next += 1;
            }
            if deeds.alive.is_some_and(|alive| !alive(i)) {
                continue;
            }
            let events = match deeds.events {
                None => Inbox::default(),
                Some(arena) => arena.inbox(i),
            };
            if deeds.events.is_some() && events.is_empty() && start == next {
                continue;
            }
            let person = Person { id: who, population: &commons.population };
            let of_agent = Deeds { person, round: deeds.round, acts: deeds.acts, range: start..next, events, commons };
            let before = row.clone();
            self.world.apply(&self.common, row, &of_agent, &mut tally, future);
            if *row != before {
                pass.changed(i, &before, row);
            }
        }
        pass.end(rows);
        Ok(Box::new(tally))
    }

    fn merge(&self, tallies: Vec<Tally>) -> Result<Tally, Bug> {
        let mut typed = Vec::with_capacity(tallies.len());
        for tally in tallies {
            typed.push(*tally.downcast::<W::Tally>().map_err(|_| Bug::internal("a tally is of another world's type"))?);
        }
        let merged = tree_reduce(typed, |a, b| self.world.merge(a, b)).unwrap_or_else(|| self.world.tally());
        Ok(Box::new(merged))
    }

    fn encode_tally(&self, tally: &Tally) -> Result<Vec<u8>, Bug> {
        encode(downcast::<W::Tally>(tally.as_ref())?, "tally")
    }

    fn decode_tally(&self, bytes: &[u8]) -> Result<Tally, Bug> {
        Ok(Box::new(decode::<W::Tally>(bytes, "a tally")?))
    }

    fn settle(&mut self, tally: Tally, round: u32, commons: &Commons) -> Result<Option<String>, Bug> {
        let tally = tally.downcast::<W::Tally>().map_err(|_| Bug::internal("a tally is of another world's type"))?;
        let mut draws = Draws::new(commons.seed, Stream::World, round, AgentId::MAX);
        Ok(self.world.settle(&mut self.common, *tally, &mut draws))
    }

    fn observe_one(&self, _: AgentId, _: &Commons, _: &mut Sights) {}

    fn apply_acts(
        &mut self,
        _: &Acts,
        _: std::ops::Range<usize>,
        _: u32,
        _: &Commons,
        _: &mut Future,
    ) -> Result<(), Bug> {
        Err(Bug::internal("a split world has no unsplit state"))
    }

    fn settle_whole(&mut self, _: u32, _: &Commons) -> Result<Option<String>, Bug> {
        Err(Bug::internal("a split world has no unsplit state"))
    }

    fn hash(&self) -> u128 {
        hash_value(RowHash::new(Kind::Common, 0), 0, &self.common)
    }

    fn digest_rows(&self, rows: &RowsBox) -> Result<Digest, Bug> {
        Ok(downcast::<DigestVec<W::Row>>(rows.as_ref())?.digest())
    }

    fn column(&self, rows: &RowsBox, _: AgentId, _: usize, column: usize, out: &mut Vec<f64>) {
        let value = self.declared.columns.get(column);
        if let (Some(value), Ok(rows)) = (value, downcast::<DigestVec<W::Row>>(rows.as_ref())) {
            out.extend(rows.iter().map(|row| value(&self.world, &self.common, row)));
        }
    }

    fn scalar(&self, i: usize) -> f64 {
        self.declared.scalars.get(i).map_or(0.0, |value| value(&self.world, &self.common))
    }

    fn rows(&self, i: usize) -> Vec<Cells> {
        self.declared.tables.get(i).map_or(Vec::new(), |rows| rows(&self.world, &self.common))
    }

    fn save(&self, to: &mut Writer<'_>) -> Result<(), Bug> {
        to.value(&(&self.common, self.hash()), format_args!("the state of world `{}`", W::NAME))
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Bug> {
        let what = format_args!("the state of world `{}`", W::NAME);
        let (common, hash): (W::Common, u128) = from.value(what)?;
        self.common = common;
        as_saved(self.hash() == hash, what)
    }

    fn save_rows(&self, rows: &RowsBox, to: &mut Writer<'_>) -> Result<(), Bug> {
        to.value(downcast::<DigestVec<W::Row>>(rows.as_ref())?, format_args!("the rows of world `{}`", W::NAME))
    }

    fn load_rows(&self, from: &mut Reader<'_>) -> Result<RowsBox, Bug> {
        Ok(Box::new(from.value::<DigestVec<W::Row>>(format_args!("the rows of world `{}`", W::NAME))?))
    }
}

pub(crate) struct WholeHost<W: World> {
    world: W,
    /// `None` on the shards that do not hold the state.
    state: Option<W::State>,
    declared: DeclareWorld<W>,
    /// Whether a block's sights are written by several threads.
    seen_in_parts: bool,
}

/// Agents whose sights are one thread's work where tables are seen: a table costs much, and a small society has few blocks.
const PART: usize = 256;

impl<W: World> WholeHost<W> {
    pub fn new(world: W, declared: DeclareWorld<W>) -> Self {
        WholeHost { state: None, seen_in_parts: declared.shows_tables(), declared, world }
    }

    /// Writes what `n` agents from `first` on see.
    fn show(&self, state: &W::State, first: AgentId, n: usize, commons: &Commons, sights: &mut Sights) {
        let ids = first..first + n as u32;
        for (slot, value) in &self.declared.shared {
            sights.put_all(*slot, value(&self.world, state));
        }
        for (slot, value) in &self.declared.numbers {
            sights.put_each(*slot, ids.clone().map(|who| value(&self.world, state, &who)));
        }
        for (row, id) in ids.enumerate() {
            let person = Person { id, population: &commons.population };
            self.world.observe(state, person, &mut SightRow { sights, row, who: id, topology: &commons.topology });
        }
    }
}

impl<W: World> WorldHost for WholeHost<W> {
    fn interface(&self) -> &Interface {
        &self.declared.interface
    }

    fn memory_bytes(&self) -> usize {
        self.world.memory_bytes()
    }

    fn split(&self) -> Split {
        Split::None
    }

    fn activation(&self) -> Activation {
        self.world.activation()
    }

    fn disturbs(&self) -> bool {
        self.world.disturbs()
    }

    fn delay(&self) -> Option<f64> {
        None
    }

    fn models(&self) -> Vec<(String, Want)> {
        self.world.models()
    }

    fn inquire(&self) -> Vec<(AgentId, Question)> {
        self.state.as_ref().map_or(Vec::new(), |state| self.world.inquire(state))
    }

    fn learn(&mut self, ends: Vec<Settled>) {
        if let Some(state) = &mut self.state {
            self.world.learn(state, ends);
        }
    }

    fn start(&self, _: &RowsBox, _: AgentId, _: &Commons, _: &mut Future) {}

    fn begin(&mut self, setup: &Setup<'_>, seed: u64, with_state: bool) {
        let mut draws = Draws::new(seed, Stream::Seat, 0, AgentId::MAX);
        self.state = with_state.then(|| self.world.begin(setup, &mut draws));
    }

    fn seat(&self, _: std::ops::Range<AgentId>, _: &Commons, _: u32) -> RowsBox {
        Box::new(())
    }

    fn join(&self, _: &mut RowsBox, _: AgentId, _: &Commons, _: u32) {}

    fn observe(&self, _: &RowsBox, first: AgentId, n: usize, commons: &Commons, sights: &mut Sights) {
        let interface = &self.declared.interface;
        sights.reset(interface, n);
        let Some(state) = &self.state else { return };
        if self.seen_in_parts && n > PART {
            let part = |i: usize| {
                let (at, n) = (i * PART, PART.min(n - i * PART));
                let mut sights = Sights::new(interface, n);
                self.show(state, first + at as u32, n, commons, &mut sights);
                (at, sights)
            };
            let parts: Vec<(usize, Sights)> = (0..n.div_ceil(PART)).into_par_iter().map(part).collect();
            parts.iter().for_each(|(at, part)| sights.place(*at, part));
        } else {
            self.show(state, first, n, commons, sights);
        }
    }

    fn apply_block(&self, _: &mut RowsBox, _: &BlockDeeds<'_>, _: &Commons, _: &mut Future) -> Result<Tally, Bug> {
        Ok(Box::new(()))
    }

    fn merge(&self, _: Vec<Tally>) -> Result<Tally, Bug> {
        Ok(Box::new(()))
    }

    fn encode_tally(&self, _: &Tally) -> Result<Vec<u8>, Bug> {
        Ok(Vec::new())
    }

    fn decode_tally(&self, _: &[u8]) -> Result<Tally, Bug> {
        Ok(Box::new(()))
    }

    fn settle(&mut self, _: Tally, _: u32, _: &Commons) -> Result<Option<String>, Bug> {
        Ok(None)
    }

    fn observe_one(&self, who: AgentId, commons: &Commons, sights: &mut Sights) {
        sights.clear(1);
        if let Some(state) = &self.state {
            self.show(state, who, 1, commons, sights);
        }
    }

    fn apply_acts(
        &mut self,
        acts: &Acts,
        range: std::ops::Range<usize>,
        round: u32,
        commons: &Commons,
        future: &mut Future,
    ) -> Result<(), Bug> {
        let Some(state) = &mut self.state else { return Err(Bug::internal("acts came to a shard without the state")) };
        let mut next = range.start;
        while next < range.end {
            let (start, who) = (next, acts.rows[next].who);
            while next < range.end && acts.rows[next].who == who {
                next += 1;
            }
            let person = Person { id: who, population: &commons.population };
            let deeds = Deeds { person, round, acts, range: start..next, events: Inbox::default(), commons };
            self.world.apply(state, &deeds, future);
        }
        Ok(())
    }

    fn settle_whole(&mut self, round: u32, commons: &Commons) -> Result<Option<String>, Bug> {
        let Some(state) = &mut self.state else {
            return Err(Bug::internal("a round ended on a shard without the state"));
        };
        let mut draws = Draws::new(commons.seed, Stream::World, round, AgentId::MAX);
        Ok(self.world.settle(state, &mut draws))
    }

    fn hash(&self) -> u128 {
        hash_value(RowHash::new(Kind::Common, 0), 0, &self.state)
    }

    fn digest_rows(&self, _: &RowsBox) -> Result<Digest, Bug> {
        Ok(Digest::default())
    }

    fn column(&self, _: &RowsBox, first: AgentId, n: usize, column: usize, out: &mut Vec<f64>) {
        if let (Some(state), Some(value)) = (&self.state, self.declared.columns.get(column)) {
            out.extend((0..n as u32).map(|i| value(&self.world, state, &(first + i))));
        }
    }

    fn scalar(&self, i: usize) -> f64 {
        let value = self.state.as_ref().zip(self.declared.scalars.get(i));
        value.map_or(0.0, |(state, value)| value(&self.world, state))
    }

    fn rows(&self, i: usize) -> Vec<Cells> {
        let rows = self.state.as_ref().zip(self.declared.tables.get(i));
        rows.map_or(Vec::new(), |(state, rows)| rows(&self.world, state))
    }

    fn save(&self, to: &mut Writer<'_>) -> Result<(), Bug> {
        to.value(&(&self.state, self.hash()), format_args!("the state of world `{}`", W::NAME))
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Bug> {
        let what = format_args!("the state of world `{}`", W::NAME);
        let (state, hash): (Option<W::State>, u128) = from.value(what)?;
        self.state = state;
        // Before the rest is made from it, which relies on it.
        as_saved(self.hash() == hash, what)?;
        if let Some(state) = &mut self.state {
            self.world.restore(state);
        }
        Ok(())
    }

    fn save_rows(&self, _: &RowsBox, _: &mut Writer<'_>) -> Result<(), Bug> {
        Ok(())
    }

    fn load_rows(&self, _: &mut Reader<'_>) -> Result<RowsBox, Bug> {
        Ok(Box::new(()))
    }
}
