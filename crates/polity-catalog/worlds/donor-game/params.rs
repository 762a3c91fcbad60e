//! What a scenario may set.

use super::DEEPEST;
use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// What a donor sees of the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// What the recipient did as a donor, and what its recipients had done before.
    #[default]
    Shown,
    /// Nothing.
    Hidden,
    /// A placebo: the history of an agent that is drawn at random in place of the recipient.
    Random,
}

/// Who lives on when a generation is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The half that has most.
    #[default]
    Top,
    /// A half that is drawn at random.
    Random,
}

/// Parameters of the game.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What an agent has at the beginning of a generation.
    pub(super) endowment: f64,
    /// A recipient gets what the donor gives up, times this; 0 to 10.
    pub(super) factor: f64,
    /// Rounds of a generation, in which every agent is a donor in every other one. A generation takes one round more, in which it is
    /// born.
    pub(super) rounds: u32,
    /// Generations. After the last one the run ends.
    pub(super) generations: u32,
    /// How many steps back a donor sees; 0 to 3.
    pub(super) trace: u32,
    /// What a donor sees of the past.
    pub(super) history: History,
    /// A recipient loses what a donor spends on punishing it, times this; 0: donors cannot punish.
    pub(super) punishment: f64,
    /// Who lives on when a generation is over.
    pub(super) selection: Selection,
    /// Probability that a newborn takes after any agent of the last generation, and not after one that lives on; 0 to 1.
    pub(super) mutation: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            endowment: 10.0,
            factor: 2.0,
            rounds: 12,
            generations: 10,
            trace: 3,
            history: History::Shown,
            punishment: 0.0,
            selection: Selection::Top,
            mutation: 0.0,
        }
    }
}

impl Params {
    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        Invalid::within(0.0..=1e6, "endowment", self.endowment)?;
        Invalid::within(0.0..=10.0, "factor", self.factor)?;
        // What an agent has can grow by the factor in each of them.
        Invalid::within(1..=200, "rounds", self.rounds)?;
        Invalid::within(1..=1_000_000, "generations", self.generations)?;
        Invalid::within(0..=DEEPEST as u32, "trace", self.trace)?;
        Invalid::within(0.0..=10.0, "punishment", self.punishment)?;
        Invalid::within(0.0..=1.0, "mutation", self.mutation)?;
        Invalid::unless(agents >= 2, "kind", format!("needs at least 2 agents, has {agents}"))
    }
}
