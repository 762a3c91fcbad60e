//! Worlds with their types erased: one host for each of the two shapes of state.

use super::{
    Activation, AgentActions, AskingWorld, Future, ObservationRow, Split, SplitWorld, TimedWorld, World, WorldSetup,
};
use crate::ask::{Ask, ResponseFormat, poll_once};
use crate::declare::Declare;
use crate::digest::{Digest, DigestVec, Kind, RowHash, hash_value};
use crate::interface::{Actions, Cells, Interface, Observations};
use crate::messages::{Arena, Inbox};
use crate::policy::{Fault, Person, SharedContext};
use crate::rng::{Draws, Stream};
use crate::saved::{Reader, Writer};
use crate::world::{DeclareSplit, DeclareWorld};
use crate::{AgentId, Bug, tree_reduce};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt;

/// The rows of a block of one world: a [`DigestVec`], or nothing if the state is not split.
pub(crate) type RowsBox = Box<dyn Any + Send + Sync>;
/// A tally with its type erased.
pub(crate) type Tally = Box<dyn Any + Send + Sync>;

/// The living agents of a block, their acts, and in event time their events.
pub(crate) struct BlockActions<'a> {
    pub first: AgentId,
    pub alive: Option<&'a dyn Fn(usize) -> bool>,
    pub acts: &'a Actions,
    pub events: Option<&'a Arena>,
    pub round: u32,
}

/// A world with its type erased. Called once per block, never once per agent.
pub(crate) trait WorldHost: Send + Sync {
    fn interface(&self) -> &Interface;
    /// Returns the bytes of memory per agent.
    fn memory_bytes(&self) -> usize;
    fn split(&self) -> Split;
    /// Returns how agents take their turns, unless a scenario says otherwise.
    fn activation(&self) -> Activation;
    /// Returns whether an unsplit state reports all agents whose observation acts change.
    fn disturbs(&self) -> bool;
    /// Returns the length of a window in event time.
    fn delay(&self) -> Option<f64>;
    /// Returns the models that an unsplit state asks, with their answer formats.
    fn models(&self) -> Vec<(String, ResponseFormat)> {
        Vec::new()
    }
    /// Lets an unsplit state ask, at the beginning of a round. Returns whether it has all its answers and has applied them.
    fn query(&mut self, ask: &mut Ask<'_>) -> bool {
        let _ = ask;
        true
    }
    /// Plans the first events of a block's agents.
    fn start(&self, rows: &RowsBox, first: AgentId, shared_context: &SharedContext, future: &mut Future);
    /// Makes the initial state. `with_state`: this is the shard with an unsplit state.
    fn begin(&mut self, setup: &WorldSetup<'_>, seed: u64, with_state: bool);
    fn init_rows(&self, ids: std::ops::Range<AgentId>, shared_context: &SharedContext, round: u32) -> RowsBox;
    fn spawn(&self, rows: &mut RowsBox, who: AgentId, shared_context: &SharedContext, round: u32);
    fn observe(
        &self,
        rows: &RowsBox,
        first: AgentId,
        n: usize,
        shared_context: &SharedContext,
        observations: &mut Observations,
    );
    fn apply_block(
        &self,
        rows: &mut RowsBox,
        actions: &BlockActions<'_>,
        shared_context: &SharedContext,
        future: &mut Future,
    ) -> Result<Tally, Bug>;
    fn merge(&self, tallies: Vec<Tally>) -> Result<Tally, Bug>;
    fn encode_tally(&self, tally: &Tally) -> Result<Vec<u8>, Bug>;
    fn decode_tally(&self, bytes: &[u8]) -> Result<Tally, Bug>;
    fn end_round(&mut self, tally: Tally, round: u32, shared_context: &SharedContext) -> Result<Option<String>, Bug>;
    /// Writes an agent's observation of an unsplit state to row 0 of observations made for this world.
    fn observe_one(&self, who: AgentId, shared_context: &SharedContext, observations: &mut Observations);
    /// Applies acts to an unsplit state, in order; acts of one agent are adjacent.
    fn apply_acts(
        &mut self,
        acts: &Actions,
        range: std::ops::Range<usize>,
        round: u32,
        shared_context: &SharedContext,
        future: &mut Future,
    ) -> Result<(), Bug>;
    /// Ends a round of an unsplit state.
    fn settle_whole(&mut self, round: u32, shared_context: &SharedContext) -> Result<Option<String>, Bug>;
    /// Returns the hash of the state that is not in rows: the common state of a split world, or all of an unsplit one.
    fn hash(&self) -> u128;
    /// Returns the digest of a block's rows.
    fn digest_rows(&self, rows: &RowsBox) -> Result<Digest, Bug>;
    fn column(&self, rows: &RowsBox, first: AgentId, n: usize, column: usize, out: &mut Vec<f64>);
    fn scalar(&self, i: usize) -> f64;
    /// Returns what the last round adds to a table of the world's own.
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

/// Checks that what is read back has the hash that was saved with it.
fn as_saved(is: bool, what: fmt::Arguments<'_>) -> Result<(), Bug> {
    let why = "it is not what was saved: its digest differs";
    if is { Ok(()) } else { Err(Bug::Snapshot { what: what.to_string(), why: why.into() }) }
}

pub(crate) struct SplitHost<W: SplitWorld> {
    world: W,
    common: W::Common,
    declared: DeclareSplit<W>,
    /// Where the world has events in time.
    time: Option<Time<W>>,
}

/// What a [`TimedWorld`] does besides.
struct Time<W: SplitWorld> {
    delay: fn(&W) -> f64,
    start: fn(&W, &W::Row, Person<'_>, &mut Future),
}

impl<W: SplitWorld> SplitHost<W> {
    pub fn new(world: W, declared: DeclareSplit<W>) -> Self {
        SplitHost { common: world.init_common(), declared, world, time: None }
    }

    /// Makes the host of a world with events in time.
    pub fn timed(world: W, declared: DeclareSplit<W>) -> Self
    where
        W: TimedWorld,
    {
        SplitHost { time: Some(Time { delay: W::delay, start: W::start }), ..SplitHost::new(world, declared) }
    }

    fn fresh(&self, who: AgentId, shared_context: &SharedContext, round: u32) -> W::Row {
        let mut draws = Draws::new(shared_context.seed, Stream::Seat, round, who);
        self.world.init_row(Person { id: who, population: &shared_context.population }, &mut draws)
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
        if self.time.is_some() { Activation::EventTime } else { Activation::Simultaneous }
    }

    fn disturbs(&self) -> bool {
        false
    }

    fn delay(&self) -> Option<f64> {
        self.time.as_ref().map(|time| (time.delay)(&self.world))
    }

    fn start(&self, rows: &RowsBox, first: AgentId, shared_context: &SharedContext, future: &mut Future) {
        if let (Some(time), Ok(rows)) = (&self.time, downcast::<DigestVec<W::Row>>(rows.as_ref())) {
            for (i, row) in rows.iter().enumerate() {
                let person = Person { id: first + i as u32, population: &shared_context.population };
                (time.start)(&self.world, row, person, future);
            }
        }
    }

    fn begin(&mut self, _: &WorldSetup<'_>, _: u64, _: bool) {
        self.common = self.world.init_common();
    }

    fn init_rows(&self, ids: std::ops::Range<AgentId>, shared_context: &SharedContext, round: u32) -> RowsBox {
        let first = u64::from(ids.start);
        Box::new(DigestVec::numbered_from(first, ids.map(|who| self.fresh(who, shared_context, round)).collect()))
    }

    fn spawn(&self, rows: &mut RowsBox, who: AgentId, shared_context: &SharedContext, round: u32) {
        let fresh = self.fresh(who, shared_context, round);
        if let Ok(rows) = downcast_mut::<DigestVec<W::Row>>(rows.as_mut()) {
            rows.push(fresh);
        }
    }

    fn observe(
        &self,
        rows: &RowsBox,
        first: AgentId,
        n: usize,
        shared_context: &SharedContext,
        observations: &mut Observations,
    ) {
        let Declare { interface, shared, numbers, .. } = &self.declared;
        observations.reset(interface, n);
        for (slot, value) in shared {
            observations.put_all(*slot, value(&self.world, &self.common));
        }
        if let Ok(rows) = downcast::<DigestVec<W::Row>>(rows.as_ref()) {
            for (slot, value) in numbers {
                observations.put_each(*slot, rows.iter().map(|row| value(&self.world, &self.common, row)));
            }
            for (i, row) in rows.iter().enumerate() {
                let person = Person { id: first + i as u32, population: &shared_context.population };
                let mut observation =
                    ObservationRow { observations, row: i, who: person.id, topology: &shared_context.topology };
                self.world.observe(&self.common, row, person, &mut observation);
            }
        }
    }

    fn apply_block(
        &self,
        rows: &mut RowsBox,
        actions: &BlockActions<'_>,
        shared_context: &SharedContext,
        future: &mut Future,
    ) -> Result<Tally, Bug> {
        let (rows, mut pass) = downcast_mut::<DigestVec<W::Row>>(rows.as_mut())?.pass(actions.events.is_none());
        let mut tally = self.world.tally();
        let acts = &actions.acts.rows;
        let mut next = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            let who = actions.first + i as u32;
            let start = next;
            while acts.get(next).is_some_and(|act| act.who == who) {
                next += 1;
            }
            if actions.alive.is_some_and(|alive| !alive(i)) {
                continue;
            }
            let events = match actions.events {
                None => Inbox::default(),
                Some(arena) => arena.inbox(i),
            };
            if actions.events.is_some() && events.is_empty() && start == next {
                continue;
            }
            let person = Person { id: who, population: &shared_context.population };
            let of_agent = AgentActions {
                person,
                round: actions.round,
                acts: actions.acts,
                range: start..next,
                events,
                shared_context,
            };
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

    fn end_round(&mut self, tally: Tally, round: u32, shared_context: &SharedContext) -> Result<Option<String>, Bug> {
        let tally = tally.downcast::<W::Tally>().map_err(|_| Bug::internal("a tally is of another world's type"))?;
        let mut draws = Draws::new(shared_context.seed, Stream::World, round, AgentId::MAX);
        Ok(self.world.end_round(&mut self.common, *tally, &mut draws))
    }

    fn observe_one(&self, _: AgentId, _: &SharedContext, _: &mut Observations) {}

    fn apply_acts(
        &mut self,
        _: &Actions,
        _: std::ops::Range<usize>,
        _: u32,
        _: &SharedContext,
        _: &mut Future,
    ) -> Result<(), Bug> {
        Err(Bug::internal("a split world has no unsplit state"))
    }

    fn settle_whole(&mut self, _: u32, _: &SharedContext) -> Result<Option<String>, Bug> {
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
            value.extend(&self.world, &self.common, rows, out);
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
    /// Whether a block's observations are written by several threads.
    seen_in_parts: bool,
    asks: Option<Asks<W>>,
}

/// How a world asks ([`AskingWorld`]).
struct Asks<W: World> {
    models: fn(&W) -> Vec<(String, ResponseFormat)>,
    query: fn(&W, &mut W::State, &mut Ask<'_>) -> bool,
}

/// Number of agents whose observations are one thread's work if there are tables: a table is costly, and a small society has few
/// blocks.
const PART: usize = 256;

impl<W: World> WholeHost<W> {
    pub fn new(world: W, declared: DeclareWorld<W>) -> Self {
        WholeHost { state: None, seen_in_parts: declared.shows_tables(), declared, world, asks: None }
    }

    pub fn asking(world: W, declared: DeclareWorld<W>) -> Self
    where
        W: AskingWorld,
    {
        let query = |world: &W, state: &mut W::State, ask: &mut Ask<'_>| match poll_once(world.query(state, ask)) {
            Some(learnt) => {
                world.on_answers(state, learnt);
                true
            }
            None => false,
        };
        WholeHost { asks: Some(Asks { models: W::models, query }), ..WholeHost::new(world, declared) }
    }

    /// Writes the observations of `n` agents from `first` on.
    fn show(
        &self,
        state: &W::State,
        first: AgentId,
        n: usize,
        shared_context: &SharedContext,
        observations: &mut Observations,
    ) {
        let ids = first..first + n as u32;
        for (slot, value) in &self.declared.shared {
            observations.put_all(*slot, value(&self.world, state));
        }
        for (slot, value) in &self.declared.numbers {
            observations.put_each(*slot, ids.clone().map(|who| value(&self.world, state, &who)));
        }
        for (row, id) in ids.enumerate() {
            let person = Person { id, population: &shared_context.population };
            self.world.observe(
                state,
                person,
                &mut ObservationRow { observations, row, who: id, topology: &shared_context.topology },
            );
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
        if self.declared.random_order { Activation::RandomOrder } else { Activation::Simultaneous }
    }

    fn disturbs(&self) -> bool {
        self.declared.reports_disturbed
    }

    fn delay(&self) -> Option<f64> {
        None
    }

    fn models(&self) -> Vec<(String, ResponseFormat)> {
        self.asks.as_ref().map_or(Vec::new(), |asks| (asks.models)(&self.world))
    }

    fn query(&mut self, ask: &mut Ask<'_>) -> bool {
        match (&self.asks, &mut self.state) {
            (Some(asks), Some(state)) => (asks.query)(&self.world, state, ask),
            _ => true,
        }
    }

    fn start(&self, _: &RowsBox, _: AgentId, _: &SharedContext, _: &mut Future) {}

    fn begin(&mut self, setup: &WorldSetup<'_>, seed: u64, with_state: bool) {
        let mut draws = Draws::new(seed, Stream::Seat, 0, AgentId::MAX);
        self.state = with_state.then(|| self.world.init_state(setup, &mut draws));
    }

    fn init_rows(&self, _: std::ops::Range<AgentId>, _: &SharedContext, _: u32) -> RowsBox {
        Box::new(())
    }

    fn spawn(&self, _: &mut RowsBox, _: AgentId, _: &SharedContext, _: u32) {}

    fn observe(
        &self,
        _: &RowsBox,
        first: AgentId,
        n: usize,
        shared_context: &SharedContext,
        observations: &mut Observations,
    ) {
        let interface = &self.declared.interface;
        observations.reset(interface, n);
        let Some(state) = &self.state else { return };
        if self.seen_in_parts && n > PART {
            let part = |i: usize| {
                let (at, n) = (i * PART, PART.min(n - i * PART));
                let mut observations = Observations::new(interface, n);
                self.show(state, first + at as u32, n, shared_context, &mut observations);
                (at, observations)
            };
            let parts: Vec<(usize, Observations)> = (0..n.div_ceil(PART)).into_par_iter().map(part).collect();
            parts.iter().for_each(|(at, part)| observations.place(*at, part));
        } else {
            self.show(state, first, n, shared_context, observations);
        }
    }

    fn apply_block(
        &self,
        _: &mut RowsBox,
        _: &BlockActions<'_>,
        _: &SharedContext,
        _: &mut Future,
    ) -> Result<Tally, Bug> {
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

    fn end_round(&mut self, _: Tally, _: u32, _: &SharedContext) -> Result<Option<String>, Bug> {
        Ok(None)
    }

    fn observe_one(&self, who: AgentId, shared_context: &SharedContext, observations: &mut Observations) {
        observations.clear(1);
        if let Some(state) = &self.state {
            self.show(state, who, 1, shared_context, observations);
        }
    }

    fn apply_acts(
        &mut self,
        acts: &Actions,
        range: std::ops::Range<usize>,
        round: u32,
        shared_context: &SharedContext,
        future: &mut Future,
    ) -> Result<(), Bug> {
        let Some(state) = &mut self.state else { return Err(Bug::internal("acts came to a shard without the state")) };
        let mut next = range.start;
        while next < range.end {
            let (start, who) = (next, acts.rows[next].who);
            while next < range.end && acts.rows[next].who == who {
                next += 1;
            }
            let person = Person { id: who, population: &shared_context.population };
            let actions =
                AgentActions { person, round, acts, range: start..next, events: Inbox::default(), shared_context };
            self.world.apply(state, &actions, future);
        }
        Ok(())
    }

    fn settle_whole(&mut self, round: u32, shared_context: &SharedContext) -> Result<Option<String>, Bug> {
        let Some(state) = &mut self.state else {
            return Err(Bug::internal("a round ended on a shard without the state"));
        };
        let mut draws = Draws::new(shared_context.seed, Stream::World, round, AgentId::MAX);
        let reason = self.world.end_round(state, &mut draws);
        match self.world.fault(state) {
            None => Ok(reason),
            Some(Fault(message)) => Err(Bug::World { round, message }),
        }
    }

    fn hash(&self) -> u128 {
        hash_value(RowHash::new(Kind::Common, 0), 0, &self.state)
    }

    fn digest_rows(&self, _: &RowsBox) -> Result<Digest, Bug> {
        Ok(Digest::default())
    }

    fn column(&self, _: &RowsBox, first: AgentId, n: usize, column: usize, out: &mut Vec<f64>) {
        if let (Some(state), Some(value)) = (&self.state, self.declared.columns.get(column)) {
            let agents: Vec<AgentId> = (first..).take(n).collect();
            value.extend(&self.world, state, &agents, out);
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
        // Check first: the derived state relies on it.
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
