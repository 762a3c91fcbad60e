//! What a scenario may set.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// The resource, in the words of prompts. It changes no rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Tons of fish in a lake.
    #[default]
    Fishery,
    /// Hectares of grass for flocks of sheep.
    Pasture,
    /// Clean water of a river, used up by factories that make pallets of goods.
    Pollution,
    /// Trash in a shared house.
    House,
}

/// What agents are shown of what was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speech {
    /// What others have said.
    #[default]
    Heard,
    /// A placebo: as many proposals as others have made, but each is the agent's own. No words.
    Echo,
    /// Nothing. Agents speak, but no agent hears another.
    Blank,
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The resource, in the words of prompts. It changes no rule.
    pub(super) setting: Setting,
    /// Largest possible stock, in whole units.
    pub(super) capacity: f64,
    /// The stock at the start. Default: the capacity.
    pub(super) initial: Option<f64>,
    /// What is left after a harvest is multiplied by this, up to the capacity; above 1.
    pub(super) growth: f64,
    /// Months. After the last harvest the run ends.
    pub(super) months: u32,
    /// The stock has collapsed if less than this is left after a harvest; with `inverse`, if more is left. Default: 5; with `inverse`,
    /// `capacity` less `refill`.
    pub(super) collapse: Option<f64>,
    /// Rounds of talk after each harvest; 0 to 10. A month takes one round more.
    pub(super) talk: u32,
    /// Whether agents talk before the first harvest, too.
    pub(super) opening: bool,
    /// What agents are shown of what was said.
    pub(super) speech: Speech,
    /// Whether agents see the last harvests of the agents that they hear.
    pub(super) show_harvests: bool,
    /// Whether agents are told how much each could take sustainably if all took the same amount (universalization).
    pub(super) universalize: bool,
    /// Number of agents, those with the highest ids, who arrive later.
    pub(super) newcomers: u32,
    /// The month, from 0, in which newcomers arrive.
    pub(super) arrival: u32,
    /// Whether the stock is a burden: agents carry it away at a cost, and it is refilled every month.
    pub(super) inverse: bool,
    /// Units that are added to a burden every month, up to the capacity.
    pub(super) refill: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            setting: Setting::Fishery,
            capacity: 100.0,
            initial: None,
            growth: 2.0,
            months: 12,
            collapse: None,
            talk: 1,
            opening: false,
            speech: Speech::Heard,
            show_harvests: true,
            universalize: false,
            newcomers: 0,
            arrival: 0,
            inverse: false,
            refill: 50.0,
        }
    }
}

impl Params {
    /// Returns the stock at the start.
    pub(super) fn stock(&self) -> f64 {
        self.initial.unwrap_or(self.capacity)
    }

    /// Returns what must be left of the stock, at least; of a burden, at most.
    pub(super) fn limit(&self) -> f64 {
        self.collapse.unwrap_or(if self.inverse { self.capacity - self.refill } else { 5.0 })
    }

    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        let whole = |key: &str, units: f64, low: f64, high: f64| {
            let fits = (low..=high).contains(&units) && units.fract() == 0.0;
            Invalid::unless(fits, key, format!("must be whole units from {low} to {high}, is {units}"))
        };
        whole("capacity", self.capacity, 1.0, 1e9)?;
        whole("initial", self.stock(), 0.0, self.capacity)?;
        let grows = self.growth > 1.0 && self.growth <= 1000.0;
        Invalid::unless(grows, "growth", format!("must be above 1 and at most 1000, is {}", self.growth))?;
        Invalid::within(1..=100_000, "months", self.months)?;
        Invalid::within(0..=10, "talk", self.talk)?;
        whole("refill", self.refill, 0.0, self.capacity)?;
        Invalid::within(0.0..=self.capacity, "collapse", self.limit())?;
        let few = self.newcomers < agents.max(1);
        let message = format!("must be below the number of agents ({agents}), is {}", self.newcomers);
        Invalid::unless(few, "newcomers", message)
    }
}
