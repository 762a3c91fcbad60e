//! Environments: tasks that are worked on step by step. Tool use, games with payoffs and learning environments are all
//! environments.
//!
//! An episode begins with [`Environment::reset`] and continues, step by step, until it is done. In each step every seat whose turn
//! it is takes one of its offered actions. Observations and actions are declared once, as for a world ([`Declare`]): numbers for
//! rules and learners, texts and tables for models. See `docs/decisions/environments-and-episodes.md`.
//!
//! An environment is pure: the same task, draws and actions give the same episode. So a team's episode is re-run with its answers
//! and needs no record of its own ([`crate::method::TeamContext::episode`]). Every environment is also a world, in which agents sit
//! in thousands of episodes, one row each (`environment/as_world.rs`).

mod as_world;
mod seating;

pub(crate) use as_world::AsWorld;

use crate::ask::{ResponseFormat, Value};
use crate::declare::{Declare, Objective};
use crate::interface::{ActionArgument, Interface, Name, Observation, Observations};
use crate::items::Item;
use crate::rng::{Draws, Stream};
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::world::{ObservationRow, WorldSetup};
use crate::{Bug, Plain};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A place in an episode, from 0: a player of a game; always 0 in a single-player environment.
pub type Seat = u32;

/// The declarations of an environment: what a seat sees and can do. Functions read the episode's state and the seat.
pub type DeclareEnvironment<E> = Declare<E, <E as Environment>::State, Seat>;

impl<E: Environment> DeclareEnvironment<E> {
    /// Declares one of several objectives: a part of a vector reward. `value` returns what the last step gave a seat, and 0 before the first
    /// step. Agents see it as `last-reward-NAME`, and the column `return-NAME` sums it up over the episode. The scalar reward stays what
    /// [`Environment::step`] returns.
    pub fn objective(
        &mut self,
        name: impl Into<Name>,
        doc: impl Into<Name>,
        value: impl Fn(&E, &E::State, &Seat) -> f64 + Send + Sync + 'static,
    ) {
        self.objectives.push(Objective { name: name.into(), doc: doc.into(), value: Box::new(value) });
    }
}

/// The move of a seat in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Who moves.
    pub seat: Seat,
    /// The number of the declared action.
    pub action: u16,
    /// Its argument, in the declared format; an empty record for an action without one.
    pub argument: Value,
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResult {
    /// What each seat gets for the step.
    pub rewards: Vec<f64>,
    /// The result of each move, e.g. of a tool call, in the order of the moves. May be empty.
    pub results: Vec<String>,
    /// Whether the episode has ended.
    pub done: bool,
}

/// A task that is worked on step by step.
pub trait Environment: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// The state of an episode.
    type State: Plain;

    /// Opens the environment and declares what a seat sees and can do; or returns which parameter does not fit.
    fn open(
        params: Self::Params,
        setup: &WorldSetup<'_>,
        declare: &mut DeclareEnvironment<Self>,
    ) -> Result<Self, Invalid>;
    /// Returns the number of seats of an episode.
    fn seats(&self) -> u32 {
        1
    }
    /// Begins an episode on a task. Without a data set the task is empty.
    fn reset(&self, task: &Item, draws: &mut Draws) -> Self::State;
    /// Writes what a seat sees in slots that were declared without a function.
    fn observe(&self, state: &Self::State, seat: Seat, observation: &mut ObservationRow<'_>) {
        let _ = (state, seat, observation);
    }
    /// Returns whether an action is offered to a seat in this step. A seat without offers has no turn.
    fn offers(&self, state: &Self::State, seat: Seat, action: u16) -> bool {
        let _ = (state, seat, action);
        true
    }
    /// Applies the moves of a step, in order of seat: at most one of every seat that has a turn. Each move was offered, with an
    /// argument in the declared format. A seat with a turn may make no move.
    fn step(&self, state: &mut Self::State, moves: &[Move], draws: &mut Draws) -> StepResult;
    /// Returns whether an episode that has ended was only cut off, by a limit of steps that is no part of the task. A learner then does
    /// not conclude that nothing would have come.
    fn cut(&self, state: &Self::State) -> bool {
        let _ = state;
        false
    }
    /// Returns whether the environment can continue from a state that comes from outside, or why it cannot: an index out of range, a field
    /// of another size. An environment that does not check states accepts none.
    fn accepts(&self, state: &Self::State) -> Result<(), String> {
        let _ = state;
        Err(format!("the environment `{}` does not begin from a given state", Self::NAME))
    }
    /// Returns whether the episode has solved the task. `None`: the data set's own scoring decides.
    fn solved(&self, state: &Self::State, answer: Option<&str>) -> Option<bool> {
        let _ = (state, answer);
        None
    }
    /// Estimates the cost, in negative reward of seat 0, that still lies before a solution; never above the real one, so that a search
    /// by it (A*) finds the cheapest. Infinite if there is no solution. `None`: the environment estimates nothing.
    fn estimate(&self, state: &Self::State) -> Option<f64> {
        let _ = state;
        None
    }
}

/// The state of an episode with its type erased.
pub(crate) type StateBox = Box<dyn Any + Send + Sync>;

/// An environment with its type erased.
pub(crate) trait EnvironmentHost: Send + Sync {
    fn name(&self) -> &'static str;
    fn interface(&self) -> &Interface;
    fn seats(&self) -> u32;
    fn objectives(&self) -> Vec<&str>;
    fn reset(&self, task: &Item, draws: &mut Draws) -> StateBox;
    fn show(&self, state: &StateBox, seat: Seat, observations: &mut Observations) -> Result<(), Bug>;
    fn offers(&self, state: &StateBox, seat: Seat, action: u16) -> Result<bool, Bug>;
    fn step(&self, state: &mut StateBox, moves: &[Move], draws: &mut Draws) -> Result<StepResult, Bug>;
    fn gained(&self, state: &StateBox, seat: Seat) -> Result<Vec<f64>, Bug>;
    fn cut(&self, state: &StateBox) -> Result<bool, Bug>;
    fn to_json(&self, state: &StateBox) -> Result<serde_json::Value, Bug>;
    fn read_json(&self, state: &serde_json::Value) -> Result<StateBox, String>;
    fn solved(&self, state: &StateBox, answer: Option<&str>) -> Result<Option<bool>, Bug>;
    fn estimate(&self, state: &StateBox) -> Result<Option<f64>, Bug>;
    fn save(&self, state: &StateBox) -> Result<Vec<u8>, Bug>;
    fn load(&self, bytes: &[u8]) -> Result<StateBox, Bug>;
}

pub(crate) struct Host<E: Environment> {
    environment: E,
    declared: DeclareEnvironment<E>,
}

impl<E: Environment> Host<E> {
    pub fn new(environment: E, declared: DeclareEnvironment<E>) -> Self {
        Host { environment, declared }
    }
}

fn state<T: 'static>(state: &StateBox) -> Result<&T, Bug> {
    state.downcast_ref().ok_or_else(|| Bug::internal("an episode's state is of another environment's type"))
}

impl<E: Environment> EnvironmentHost for Host<E> {
    fn name(&self) -> &'static str {
        E::NAME
    }

    fn interface(&self) -> &Interface {
        &self.declared.interface
    }

    fn seats(&self) -> u32 {
        self.environment.seats()
    }

    fn objectives(&self) -> Vec<&str> {
        self.declared.objectives.iter().map(|objective| objective.name.as_ref()).collect()
    }

    fn reset(&self, task: &Item, draws: &mut Draws) -> StateBox {
        Box::new(self.environment.reset(task, draws))
    }

    fn show(&self, episode: &StateBox, seat: Seat, observations: &mut Observations) -> Result<(), Bug> {
        let state: &E::State = state(episode)?;
        observations.reset(&self.declared.interface, 1);
        for (slot, value) in &self.declared.shared {
            observations.put(0, *slot, value(&self.environment, state));
        }
        for (slot, value) in &self.declared.numbers {
            observations.put(0, *slot, value(&self.environment, state, &seat));
        }
        let topology = Topology::Complete { n: self.seats() };
        self.environment.observe(state, seat, &mut ObservationRow::new(observations, 0, seat, &topology));
        Ok(())
    }

    fn offers(&self, episode: &StateBox, seat: Seat, action: u16) -> Result<bool, Bug> {
        Ok(self.environment.offers(state(episode)?, seat, action))
    }

    fn step(&self, episode: &mut StateBox, moves: &[Move], draws: &mut Draws) -> Result<StepResult, Bug> {
        let state: &mut E::State = episode
            .downcast_mut()
            .ok_or_else(|| Bug::internal("an episode's state is of another environment's type"))?;
        let result = self.environment.step(state, moves, draws);
        match result.rewards.iter().all(|reward| reward.is_finite()) {
            true => Ok(result),
            false => {
                Err(Bug::internal(format!("the environment `{}` gave a reward that is not a finite number", E::NAME)))
            }
        }
    }

    fn gained(&self, episode: &StateBox, seat: Seat) -> Result<Vec<f64>, Bug> {
        let state: &E::State = state(episode)?;
        Ok(self.declared.objectives.iter().map(|of| (of.value)(&self.environment, state, &seat)).collect())
    }

    fn cut(&self, episode: &StateBox) -> Result<bool, Bug> {
        Ok(self.environment.cut(state(episode)?))
    }

    fn to_json(&self, episode: &StateBox) -> Result<serde_json::Value, Bug> {
        serde_json::to_value(state::<E::State>(episode)?)
            .map_err(|error| Bug::internal(format!("an episode of `{}`: {error}", E::NAME)))
    }

    fn read_json(&self, json: &serde_json::Value) -> Result<StateBox, String> {
        let state = E::State::deserialize(json)
            .map_err(|error| format!("this is no state of the environment `{}`: {error}", E::NAME))?;
        self.environment.accepts(&state)?;
        Ok(Box::new(state))
    }

    fn solved(&self, episode: &StateBox, answer: Option<&str>) -> Result<Option<bool>, Bug> {
        Ok(self.environment.solved(state(episode)?, answer))
    }

    fn estimate(&self, episode: &StateBox) -> Result<Option<f64>, Bug> {
        Ok(self.environment.estimate(state(episode)?))
    }

    fn save(&self, episode: &StateBox) -> Result<Vec<u8>, Bug> {
        postcard::to_allocvec(state::<E::State>(episode)?)
            .map_err(|error| Bug::internal(format!("an episode of `{}`: {error}", E::NAME)))
    }

    fn load(&self, bytes: &[u8]) -> Result<StateBox, Bug> {
        let state: E::State = postcard::from_bytes(bytes)
            .map_err(|error| Bug::Snapshot { what: format!("an episode of `{}`", E::NAME), why: error.to_string() })?;
        Ok(Box::new(state))
    }
}

/// An open environment ([`crate::registry::Registry::make_env`]). Clones are cheap.
#[derive(Clone)]
pub struct Env(pub(crate) Arc<dyn EnvironmentHost>);

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Env").field(&self.0.name()).finish()
    }
}

/// An action that a seat is offered, with its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Its number.
    pub action: u16,
    /// Its name.
    pub name: String,
    /// What it does.
    pub doc: String,
    /// Its arguments by name; empty if it takes none.
    pub arguments: Vec<(String, ResponseFormat)>,
    /// Whether its only argument is passed bare and not in a record.
    bare: bool,
}

impl Offered {
    /// Returns the move of a seat, with the arguments in order.
    #[must_use]
    pub fn with(&self, seat: Seat, mut values: Vec<Value>) -> Move {
        let argument = match values.pop() {
            Some(value) if self.bare => value,
            last => Value::Record(values.into_iter().chain(last).collect()),
        };
        Move { seat, action: self.action, argument }
    }
}

/// An episode in progress.
pub struct Episode {
    environment: Env,
    state: StateBox,
    seed: u64,
    /// Distinguishes episodes of one seed.
    index: u32,
    steps: u32,
    done: bool,
    /// The total reward of each seat so far.
    returns: Vec<f64>,
}

impl Env {
    /// Returns what a seat sees and can do.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        self.0.interface()
    }

    /// Returns the number of seats of an episode.
    #[must_use]
    pub fn seats(&self) -> u32 {
        self.0.seats()
    }

    /// Returns the names of its objectives, if its reward is a vector.
    #[must_use]
    pub fn objectives(&self) -> Vec<&str> {
        self.0.objectives()
    }

    /// Begins an episode.
    #[must_use]
    pub fn begin(&self, task: &Item, seed: u64, index: u32) -> Episode {
        let mut draws = Draws::new(seed, Stream::Episode, 0, index);
        let state = self.0.reset(task, &mut draws);
        let returns = vec![0.0; self.seats() as usize];
        Episode { environment: self.clone(), state, seed, index, steps: 0, done: false, returns }
    }
}

impl Episode {
    /// Returns the number of steps so far.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the total reward of a seat so far, undiscounted.
    #[must_use]
    pub fn total_reward(&self, seat: Seat) -> f64 {
        self.returns.get(seat as usize).copied().unwrap_or_default()
    }

    /// Calls `look` with the observation of a seat.
    pub fn observe<T>(&self, seat: Seat, look: impl FnOnce(Observation<'_>) -> T) -> Result<T, Bug> {
        let mut observations = Observations::new(self.environment.interface(), 1);
        self.environment.0.show(&self.state, seat, &mut observations)?;
        Ok(look(observations.row(0)))
    }

    /// Returns the actions that a seat is offered; none if it has no turn, or if the episode has ended.
    pub fn offered(&self, seat: Seat) -> Result<Vec<Offered>, Bug> {
        let mut offered = Vec::new();
        for (action, kind) in (0u16..).zip(&self.environment.interface().acts) {
            if self.done || !self.environment.0.offers(&self.state, seat, action)? {
                continue;
            }
            let one = |response_format: ResponseFormat| (vec![(kind.name.to_string(), response_format)], true);
            let (arguments, bare) = match &kind.argument {
                ActionArgument::Record(ResponseFormat::Record(fields)) => (fields.clone(), false),
                ActionArgument::Record(other) => one(other.clone()),
                ActionArgument::Number { low, high } => one(ResponseFormat::number(*low, *high)),
                ActionArgument::Choice(options) => one(ResponseFormat::Choice(options.clone())),
                ActionArgument::Text => one(ResponseFormat::Text),
                ActionArgument::Nothing | ActionArgument::Seen { .. } => (Vec::new(), false),
            };
            offered.push(Offered { action, name: kind.name.to_string(), doc: kind.doc.to_string(), arguments, bare });
        }
        Ok(offered)
    }

    /// Takes a step with at most one move of every seat that has a turn, in order of seat.
    pub fn step(&mut self, moves: &[Move]) -> Result<StepResult, Bug> {
        if self.done {
            return Err(Bug::internal("an episode that has ended was stepped"));
        }
        self.steps += 1;
        let mut draws = Draws::new(self.seed, Stream::Episode, self.steps, self.index);
        let result = self.environment.0.step(&mut self.state, moves, &mut draws)?;
        self.done = result.done;
        self.returns.iter_mut().zip(&result.rewards).for_each(|(sum, reward)| *sum += reward);
        Ok(result)
    }

    /// Returns what the last step gave a seat of each objective, in the order of [`Env::objectives`].
    pub fn gained(&self, seat: Seat) -> Result<Vec<f64>, Bug> {
        self.environment.0.gained(&self.state, seat)
    }

    /// Returns whether it has ended only because it was cut off ([`Environment::cut`]).
    pub fn is_cut(&self) -> Result<bool, Bug> {
        Ok(self.done && self.environment.0.cut(&self.state)?)
    }

    /// Returns its state as JSON, from which [`Episode::begin_from`] can begin.
    pub fn state(&self) -> Result<serde_json::Value, Bug> {
        self.environment.0.to_json(&self.state)
    }

    /// Begins anew from a state, with no steps and no rewards so far; or returns why the environment cannot ([`Environment::accepts`]).
    pub fn begin_from(&mut self, state: &serde_json::Value) -> Result<(), String> {
        self.state = self.environment.0.read_json(state)?;
        (self.steps, self.done) = (0, false);
        self.returns.fill(0.0);
        Ok(())
    }

    /// Returns whether it has solved the task; `None`: the data set's own scoring decides.
    pub fn solved(&self, answer: Option<&str>) -> Result<Option<bool>, Bug> {
        self.environment.0.solved(&self.state, answer)
    }

    /// Estimates the cost that still lies before a solution ([`Environment::estimate`]).
    pub fn estimate(&self) -> Result<Option<f64>, Bug> {
        self.environment.0.estimate(&self.state)
    }

    pub(crate) fn save(&self) -> Result<Vec<u8>, Bug> {
        let state = self.environment.0.save(&self.state)?;
        postcard::to_allocvec(&(self.steps, self.done, &self.returns, state))
            .map_err(|error| Bug::internal(format!("an episode: {error}")))
    }

    pub(crate) fn load(&mut self, bytes: &[u8]) -> Result<(), Bug> {
        let wrong = |error: postcard::Error| Bug::Snapshot { what: "an episode".into(), why: error.to_string() };
        let (steps, done, returns, state): (u32, bool, Vec<f64>, Vec<u8>) =
            postcard::from_bytes(bytes).map_err(wrong)?;
        self.state = self.environment.0.load(&state)?;
        (self.steps, self.done, self.returns) = (steps, done, returns);
        Ok(())
    }
}

impl fmt::Debug for Episode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Episode")
            .field("environment", &self.environment)
            .field("steps", &self.steps)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
