//! Policies: how agents behave.
//!
//! A policy holds parameters only; the state of its agents is in columns outside it. A turn is a pure function of its initial
//! state, observation, inbox, answers so far and random stream. Its state, acts and messages are committed together when it
//! completes.

mod cohort;
mod host;
mod round;
mod setup;
mod suspended;
mod turn;
mod variants;

pub(crate) use host::{Host, Lane, PolicyHost, Rows};
pub(crate) use round::Round;
pub use setup::{PolicySetup, Prompts, Seating};
pub use suspended::Suspended;
pub(crate) use suspended::Waiting;
pub(crate) use turn::Messages;
pub use turn::Turn;
pub(crate) use variants::{Variants, open as open_variants};

use crate::ask::Request;
use crate::interface::WorldColumn;
use crate::population::{NumberColumn, Population, TextColumn};
use crate::rng::Draws;
use crate::topology::Topology;
use crate::tree::Invalid;
use crate::{AgentId, Bug, Plain};
use serde::de::DeserializeOwned;

/// What all agents of a society share and what does not change within a round.
#[derive(Debug)]
pub struct SharedContext {
    /// The seed of the run.
    pub seed: u64,
    /// Attributes of the agents.
    pub population: Population,
    /// Who can hear whom: the neighbours of an agent are the agents that it hears.
    pub topology: Topology,
    /// The reverse of a directed topology: who hears an agent. `None`: ties go both ways.
    pub audience: Option<Topology>,
}

impl SharedContext {
    /// Returns who hears an agent.
    #[inline]
    pub(crate) fn audience(&self) -> &Topology {
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
    /// Returns the number in a column of the population.
    #[must_use]
    pub fn number(&self, column: NumberColumn) -> f64 {
        self.population.number(column, self.id)
    }

    /// Returns the text in a column of the population.
    #[must_use]
    pub fn text(&self, column: TextColumn) -> &str {
        self.population.text(column, self.id)
    }
}

/// Why a turn cannot continue: a defect of the policy, which stops the run. A model's bad reply is not a fault; the policy sees it
/// as [`crate::ask::AskError`] and decides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

impl From<Bug> for Fault {
    fn from(bug: Bug) -> Self {
        Fault(bug.to_string())
    }
}

/// A number of an agent's state that a policy exposes.
#[derive(Debug)]
pub struct StateColumn<P: Policy> {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// One line: meaning and unit.
    pub doc: &'static str,
    /// Smallest and largest sensible value, if any.
    pub range: Option<(f64, f64)>,
    /// The value for an agent with this state.
    pub value: fn(&P, &P::State) -> f64,
}

/// The behaviour of a cohort's agents. This example is a rule-based policy that moves part of the way to the mean of what it hears.
/// `polity new policy` writes one in a crate of its own.
///
/// ```
/// use polity_kernel::policy::{PolicySetup, Fault, Person, Policy, Turn};
/// use polity_kernel::registry::{LeafFiles, Registry};
/// use polity_kernel::rng::Draws;
/// use polity_kernel::interface::NumberSlot;
/// use polity_kernel::tree::Invalid;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Params {
///     /// The part of the way that is gone in a round; 0 to 1.
///     rate: f64,
/// }
///
/// struct Drift {
///     rate: f64,
///     opinion: NumberSlot,
///     act: u16,
///     low: f64,
///     high: f64,
/// }
///
/// impl Policy for Drift {
///     const NAME: &'static str = "drift";
///     const SUMMARY: &'static str = "Go part of the way to the mean of the opinions heard";
///     type Params = Params;
///     type State = (); // What an agent carries from turn to turn.
///
///     fn open(Params { rate }: Params, society: &PolicySetup<'_>) -> Result<Self, Invalid> {
///         Invalid::within(0.0..=1.0, "rate", rate)?;
///         let (act, low, high) = society.number_act()?;
///         Ok(Drift { rate, opinion: society.number("opinion")?, act, low, high })
///     }
///     fn init_state(&self, _: Person<'_>, _: &mut Draws) {}
///     fn tells_neighbours(&self) -> bool {
///         true
///     }
///     async fn act(&self, _: &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
///         let own = turn.observation.number(self.opinion);
///         let heard: Vec<f64> = turn.inbox().numbers().map(|(_, opinion)| opinion).collect();
///         let goal = if heard.is_empty() { own } else { heard.iter().sum::<f64>() / heard.len() as f64 };
///         let new = (own + self.rate * (goal - own)).clamp(self.low, self.high);
///         turn.act(self.act, new);
///         turn.tell_neighbours(0, new);
///         Ok(())
///     }
/// }
///
/// let mut registry = Registry::new();
/// registry.policy::<Drift>(LeafFiles::default());
/// assert_eq!(registry.policies()[0].parameters["properties"]["rate"]["type"], "number");
/// ```
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

    /// The columns that metrics and tables may read from that state, besides those of the world. Agents of other policies have no
    /// value there.
    const COLUMNS: &'static [StateColumn<Self>] = &[];

    /// Binds the policy to a society; or returns which parameter or which part of the world does not fit.
    fn open(params: Self::Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid>;

    /// Returns the state of a new agent.
    fn init_state(&self, person: Person<'_>, draws: &mut Draws) -> Self::State;

    /// Returns further columns of the state, those that a scenario names.
    fn state_columns(&self) -> Vec<WorldColumn> {
        Vec::new()
    }

    /// Returns an agent's value in one of these columns, by its place in the list.
    fn state_value(&self, state: &Self::State, column: usize) -> f64 {
        let _ = (state, column);
        f64::NAN
    }

    /// Returns the models that its agents may ask.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the bytes of memory of an agent besides its state itself: heap data of the state, and open questions. This is an
    /// estimate. A run that cannot fit into memory is refused.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Returns whether its agents use [`Turn::tell_neighbours`] in most rounds. A round then has as many messages as the topology
    /// has arcs.
    fn tells_neighbours(&self) -> bool {
        false
    }

    /// Puts a question from outside to an agent as it is now. `None`: agents of this policy cannot be interviewed.
    fn interview(&self, state: &Self::State, turn: &Turn<'_>, question: &str) -> Result<Option<Request>, Fault> {
        let _ = (state, turn, question);
        Ok(None)
    }

    /// Runs one turn. May await only the turn's questions.
    async fn act(&self, state: &mut Self::State, turn: &mut Turn<'_>) -> Result<(), Fault>;
}
