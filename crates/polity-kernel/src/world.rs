//! Worlds: environments that own the shared state.
//!
//! `observe` only reads; applying acts is the only writer. A world has one of two shapes. A [`World`] keeps its state in one place:
//! with several shards it is on shard 0, and observations and acts are sent. A [`SplitWorld`] declares what is split: a row per
//! agent, a small common state that every shard has, and a tally that reduces acts to what the common state needs.

mod host;

pub(crate) use host::{BlockActions, RowsBox, SplitHost, Tally, WholeHost, WorldHost};

use crate::ask::{Ask, ResponseFormat};
use crate::declare::Declare;
use crate::interface::{Action, Actions, NumberSlot, Observations, Rows, TableSlot, TextSlot};
use crate::messages::Inbox;
use crate::policy::{Fault, Person, SharedContext};
use crate::population::Population;
use crate::rng::{Draws, Stream};
use crate::scenario::TextSource;
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::{AgentId, Plain};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a world may use when it is opened.
#[derive(Clone, Copy, Debug)]
pub struct WorldSetup<'a> {
    /// Number of agents at the start.
    pub agents: u32,
    /// Their attributes.
    pub population: &'a Population,
    /// Who can hear whom.
    pub topology: &'a Topology,
    /// Maximum number of rounds between an agent's observation and its acts (`answers: {lag: 2}`); 0: the same round.
    pub lag: u32,
    /// How many seats of each episode each cohort takes; empty if agents take them in order of id. Only set while something is opened.
    pub seats: &'a [u32],
    /// The texts of the scenario's files, by path; only set while something is opened.
    pub texts: &'a BTreeMap<String, Arc<str>>,
}

impl<'a> WorldSetup<'a> {
    /// Returns a text of the scenario, and the name of its file.
    ///
    /// # Errors
    /// A file that was not read.
    pub fn words<'b>(&'b self, source: &'b TextSource) -> Result<(&'b str, Option<&'b str>), Invalid> {
        source.words(self.texts)
    }
}

/// Writes one agent's observation.
#[derive(Debug)]
pub struct ObservationRow<'a> {
    observations: &'a mut Observations,
    row: usize,
    who: AgentId,
    topology: &'a Topology,
}

impl<'a> ObservationRow<'a> {
    pub(crate) fn new(observations: &'a mut Observations, row: usize, who: AgentId, topology: &'a Topology) -> Self {
        ObservationRow { observations, row, who, topology }
    }

    /// Iterates over the agents that the agent hears.
    pub fn neighbours(&self) -> impl Iterator<Item = AgentId> + 'a {
        self.topology.neighbours(self.who)
    }

    /// Shows a number.
    #[inline]
    pub fn number(&mut self, slot: NumberSlot, value: f64) {
        self.observations.put(self.row, slot, value);
    }

    /// Shows a text.
    pub fn text(&mut self, slot: TextSlot, value: impl Into<String>) {
        self.observations.put_text(self.row, slot, value);
    }

    /// Shows a table: `fill` appends its rows.
    pub fn table(&mut self, slot: TableSlot, fill: impl FnOnce(&mut Rows<'_>)) {
        self.observations.put_table(self.row, slot, fill);
    }
}

/// A birth: the parent determines the cohort and the attributes.
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
    /// Sequentially, in an order drawn for each round; each agent sees what those before it have done. Worlds in which no agent
    /// sees others' acts within a round refuse it.
    RandomOrder,
    /// Agents act when an event happens to them. A round is a window as long as the world's least delay: an event can cause nothing
    /// before the end of its window, so its agents need not wait for each other.
    EventTime,
}

/// An event that a world has planned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// The agent whose act or event planned it.
    pub from: AgentId,
    /// The agent that it will happen to.
    pub to: AgentId,
    /// Its kind: a number below 32,768 that the world gives meaning to.
    pub kind: u16,
    /// When, in the world's unit of time.
    pub at: f64,
}

/// The decisions of a world besides its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Future {
    /// Births, in the order of the agents that caused them; they happen between rounds.
    pub births: Vec<Birth>,
    /// Deaths; they happen between rounds.
    pub deaths: Vec<AgentId>,
    /// Events, in the order planned.
    pub events: Vec<Planned>,
    /// Agents whose observation has changed since this list was last taken.
    pub(crate) disturbed: Vec<AgentId>,
}

impl Future {
    /// Plans an event of `kind` for `to` at time `at`, which must not be before the end of the current window. Events after the
    /// run's last round are dropped.
    #[inline]
    pub fn event(&mut self, from: AgentId, to: AgentId, kind: u16, at: f64) {
        self.events.push(Planned { from, to, kind, at });
    }

    /// Marks the observation of `who` as changed; see [`DeclareWorld::reports_disturbed`].
    #[inline]
    pub fn disturb(&mut self, who: AgentId) {
        self.disturbed.push(who);
    }

    /// Lets a child of `parent` be born between this round and the next.
    pub fn birth(&mut self, parent: AgentId) {
        self.births.push(Birth { parent });
    }

    /// Lets `who` die between this round and the next.
    pub fn death(&mut self, who: AgentId) {
        self.deaths.push(who);
    }
}

/// An agent's acts in a round, for a world to apply.
#[derive(Debug)]
pub struct AgentActions<'a> {
    /// Who acted.
    pub person: Person<'a>,
    /// The round.
    pub round: u32,
    acts: &'a Actions,
    range: std::ops::Range<usize>,
    events: Inbox<'a>,
    shared_context: &'a SharedContext,
}

impl<'a> AgentActions<'a> {
    /// Returns the acts, in the order performed.
    #[inline]
    #[must_use]
    pub fn acts(&self) -> &'a [Action] {
        &self.acts.rows[self.range.clone()]
    }

    /// Returns the text of the `i`-th act.
    #[must_use]
    pub fn text(&self, i: usize) -> Option<&'a str> {
        self.acts.text(self.range.start + i)
    }

    /// Returns the record of the `i`-th act; `None` if it has none, or one that is not a `T`.
    #[must_use]
    pub fn record<T: DeserializeOwned>(&self, i: usize) -> Option<T> {
        serde_json::from_str(self.text(i)?).ok()
    }

    /// Iterates over the agent's events in this window, sorted by (time, planner, number): (time, planner, kind).
    pub fn events(&self) -> impl Iterator<Item = (f64, AgentId, u16)> + 'a {
        self.events.stamped()
    }

    /// Returns the number of agents that it hears.
    #[must_use]
    pub fn degree(&self) -> u32 {
        self.shared_context.topology.degree(self.person.id)
    }

    /// Iterates over the agents that the agent hears.
    pub fn neighbours(&self) -> impl Iterator<Item = AgentId> + 'a {
        self.shared_context.topology.neighbours(self.person.id)
    }

    /// Returns the world's random numbers for this agent in this round.
    #[must_use]
    pub fn draws(&self) -> Draws {
        Draws::new(self.shared_context.seed, Stream::World, self.round, self.person.id)
    }
}

/// A world whose state is split over the agents, and so over threads and shards. An agent's acts change its own row. The common
/// state is updated from a tally of all acts.
///
/// ```
/// use polity_kernel::world::DeclareSplit;
/// use polity_kernel::policy::Person;
/// use polity_kernel::registry::{LeafFiles, Registry};
/// use polity_kernel::rng::Draws;
/// use polity_kernel::interface::ActionArgument;
/// use polity_kernel::tree::Invalid;
/// use polity_kernel::world::{AgentActions, Future, WorldSetup, SplitWorld};
///
/// /// Land that all share. What is left of the grass grows back by a share.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Pasture {
///     growth: f64,
/// }
///
/// impl SplitWorld for Pasture {
///     const NAME: &'static str = "pasture";
///     const SUMMARY: &'static str = "Agents graze on land that all share";
///     type Params = Pasture;
///     type Row = f64; // What the agent has eaten.
///     type Common = f64; // Grass an agent.
///     type Tally = (f64, f64); // Grass eaten in the round, agents.
///
///     fn open(world: Pasture, _: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid> {
///         Invalid::within(0.0..=1.0, "growth", world.growth)?;
///         declare.shared_number("grass", "grass left an agent", |_, grass| *grass);
///         declare.action("graze", ActionArgument::Number { low: 0.0, high: 1.0 }, "eat");
///         declare.column("eaten", "all that the agent has eaten", None, |_, _, eaten| *eaten);
///         Ok(world)
///     }
///     fn init_common(&self) -> f64 {
///         1.0
///     }
///     fn init_row(&self, _: Person<'_>, _: &mut Draws) -> f64 {
///         0.0
///     }
///     fn tally(&self) -> (f64, f64) {
///         (0.0, 0.0)
///     }
///     fn apply(&self, grass: &f64, eaten: &mut f64, actions: &AgentActions<'_>, tally: &mut (f64, f64), _: &mut Future) {
///         let meal = actions.acts().last().map_or(0.0, |act| act.value).min(*grass);
///         *eaten += meal;
///         *tally = (tally.0 + meal, tally.1 + 1.0);
///     }
///     fn merge(&self, left: (f64, f64), right: (f64, f64)) -> (f64, f64) {
///         (left.0 + right.0, left.1 + right.1)
///     }
///     fn end_round(&self, grass: &mut f64, (eaten, agents): (f64, f64), _: &mut Draws) -> Option<String> {
///         *grass = (*grass - eaten / agents).max(0.0) * (1.0 + self.growth);
///         (*grass < 0.01).then(|| "the land is bare".into())
///     }
/// }
///
/// let mut registry = Registry::new();
/// registry.split_world::<Pasture>(LeafFiles::default());
/// assert_eq!(registry.worlds()[0].summary, "Agents graze on land that all share");
/// ```
pub trait SplitWorld: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// An agent's part of the state.
    type Row: Plain;
    /// The small state that all agents share.
    type Common: Plain;
    /// What the acts of a block are reduced to.
    type Tally: Plain;

    /// Opens the world and declares what it shows and understands; or returns which parameter does not fit.
    fn open(params: Self::Params, setup: &WorldSetup<'_>, declare: &mut DeclareSplit<Self>) -> Result<Self, Invalid>;
    /// Returns the bytes of memory of an agent besides its row itself. This is an estimate. A run that cannot fit into memory is
    /// refused.
    fn memory_bytes(&self) -> usize {
        0
    }
    /// Returns the initial common state.
    fn init_common(&self) -> Self::Common;
    /// Returns a new agent's row.
    fn init_row(&self, person: Person<'_>, draws: &mut Draws) -> Self::Row;
    /// Writes an agent's observation to slots that were declared without a function.
    fn observe(
        &self,
        common: &Self::Common,
        row: &Self::Row,
        person: Person<'_>,
        observation: &mut ObservationRow<'_>,
    ) {
        let _ = (common, row, person, observation);
    }
    /// Returns an empty tally.
    fn tally(&self) -> Self::Tally;
    /// Applies one agent's acts and events to its row. Called for every living agent in order of id, even without acts; in event
    /// time, for agents with events.
    fn apply(
        &self,
        common: &Self::Common,
        row: &mut Self::Row,
        actions: &AgentActions<'_>,
        tally: &mut Self::Tally,
        future: &mut Future,
    );
    /// Merges the tallies of neighbouring runs of agents.
    fn merge(&self, left: Self::Tally, right: Self::Tally) -> Self::Tally;
    /// Updates the common state. `Some(reason)` ends the run.
    fn end_round(&self, common: &mut Self::Common, tally: Self::Tally, draws: &mut Draws) -> Option<String>;
}

/// A world whose state is in one place.
/// ```
/// use polity_kernel::world::DeclareWorld;
/// use polity_kernel::registry::{LeafFiles, Registry};
/// use polity_kernel::rng::Draws;
/// use polity_kernel::interface::ActionArgument;
/// use polity_kernel::tree::Invalid;
/// use polity_kernel::world::{AgentActions, Future, WorldSetup, World};
///
/// /// Who claps is heard by all.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Hall {}
///
/// impl World for Hall {
///     const NAME: &'static str = "hall";
///     const SUMMARY: &'static str = "Agents clap, and hear how many did";
///     type Params = Hall;
///     type State = (u64, u64); // Claps of the last round, and of this one.
///
///     fn open(hall: Hall, _: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
///         declare.shared_number("heard", "claps of the last round", |_, (heard, _)| *heard as f64);
///         declare.action("clap", ActionArgument::Nothing, "clap");
///         declare.scalar("claps", "claps of the round", |_, (heard, _)| *heard as f64);
///         Ok(hall)
///     }
///     fn init_state(&self, _: &WorldSetup<'_>, _: &mut Draws) -> (u64, u64) {
///         (0, 0)
///     }
///     fn apply(&self, (_, claps): &mut (u64, u64), actions: &AgentActions<'_>, _: &mut Future) {
///         *claps += actions.acts().len() as u64;
///     }
///     fn end_round(&self, (heard, claps): &mut (u64, u64), _: &mut Draws) -> Option<String> {
///         *heard = std::mem::take(claps);
///         None
///     }
/// }
///
/// let mut registry = Registry::new();
/// registry.world::<Hall>(LeafFiles::default());
/// assert_eq!(registry.worlds()[0].name, "hall");
/// ```
pub trait World: Send + Sync + Sized + 'static {
    /// The name a scenario uses; also the name of the leaf's folder.
    const NAME: &'static str;
    /// One line for lists.
    const SUMMARY: &'static str;
    /// What a scenario may set.
    type Params: DeserializeOwned + schemars::JsonSchema;
    /// The whole changing state. All of it is hashed in every round. Large parts should be [`crate::digest::DigestVec`]s and
    /// [`crate::digest::DigestMap`]s, which hash only changes.
    type State: Plain;

    /// Opens the world and declares what it shows and understands; or returns which parameter does not fit.
    fn open(params: Self::Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid>;
    /// Returns the bytes of the state per agent at the start. This is an estimate. A run that cannot fit into memory is refused.
    fn memory_bytes(&self) -> usize {
        200
    }
    /// Returns the initial state.
    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> Self::State;
    /// Writes an agent's observation to slots that were declared without a function.
    fn observe(&self, state: &Self::State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let _ = (state, person, observation);
    }
    /// Applies one agent's acts. Simultaneous: after all have acted, in order of id, for agents with acts. Random order: right
    /// after the agent's turn, before the next agent observes.
    fn apply(&self, state: &mut Self::State, actions: &AgentActions<'_>, future: &mut Future);
    /// Ends a round. `Some(reason)` ends the run.
    fn end_round(&self, state: &mut Self::State, draws: &mut Draws) -> Option<String>;
    /// Rebuilds derived state that is not saved (`#[serde(skip)]`).
    fn restore(&self, state: &mut Self::State) {
        let _ = state;
    }
    /// Returns why the world cannot continue, which stops the run: a defect of the world, such as an exception of a function that it
    /// calls. Called after [`World::end_round`]; the round does not count then.
    fn fault(&self, state: &Self::State) -> Option<Fault> {
        let _ = state;
        None
    }
}

/// A world that asks models itself, at the beginning of every round, before any observation; added by
/// [`crate::registry::Registry::asking_world`]. See `docs/decisions/worlds-ask.md`.
#[allow(async_fn_in_trait)] // Futures are polled in place and never leave their thread.
pub trait AskingWorld: World {
    /// The result of a round's answers.
    type Learnt;

    /// Returns the models that it asks, each with the format of its answers.
    fn models(&self) -> Vec<(String, ResponseFormat)>;
    /// Asks, each question on behalf of an agent, whose budget pays for it. It runs again from its start when answers have arrived,
    /// and may await only `ask`. The same state must ask the same questions.
    async fn query(&self, state: &Self::State, ask: &mut Ask<'_>) -> Self::Learnt;
    /// Applies the result of the answers, in the same round.
    fn on_answers(&self, state: &mut Self::State, learnt: Self::Learnt);
}

/// A world with events in continuous time; added by [`crate::registry::Registry::timed_world`]. Its rounds are windows of its least
/// delay. See `docs/decisions/three-activations.md`.
pub trait TimedWorld: SplitWorld {
    /// Returns the least delay between an event and its consequences, in the world's unit of time.
    fn delay(&self) -> f64;
    /// Plans the first events of an initial agent; time begins at 0.
    fn start(&self, row: &Self::Row, person: Person<'_>, future: &mut Future) {
        let _ = (row, person, future);
    }
}

/// Whether a world's state can be split over shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// One row per agent.
    Rows,
    /// All of it on shard 0.
    None,
}

/// The declarations of a [`World`].
pub type DeclareWorld<W> = Declare<W, <W as World>::State, AgentId>;

impl<W: World> DeclareWorld<W> {
    /// Declares that agents take their turns one after the other, in random order, unless a scenario says otherwise.
    pub fn random_order(&mut self) {
        self.random_order = true;
    }

    /// Declares that `apply` reports all agents whose observation it changes, by [`Future::disturb`]. Then, in random order, turns
    /// that leave no trace are found on all threads before the first turn, and only disturbed agents observe again. So rounds with
    /// few acts are fast.
    pub fn reports_disturbed(&mut self) {
        self.reports_disturbed = true;
    }
}

/// The declarations of a [`SplitWorld`].
pub type DeclareSplit<W> = Declare<W, <W as SplitWorld>::Common, <W as SplitWorld>::Row>;
