//! Parameters of an episode.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// The largest demand of a customer.
pub const LARGEST_DEMAND: u32 = 9;

/// Parameters of an episode.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Customers; 2 to 100.
    pub customers: usize,
    /// Vehicles of a team, each steered by an agent; 1 to 16.
    pub vehicles: usize,
    /// Teams that each serve the same customers; 1 to 64.
    pub teams: usize,
    /// The least and the most that a vehicle can carry; 9 to 1,000. Each vehicle draws its own, a whole number.
    pub least_capacity: u32,
    /// See `least_capacity`.
    pub most_capacity: u32,
    /// The speeds of the slowest and the fastest vehicle; 0.1 to 10. Each vehicle draws its own.
    pub slowest: f64,
    /// See `slowest`.
    pub fastest: f64,
    /// Who chooses when.
    pub decoding: Decoding,
    /// Who serves a customer that several vehicles choose in the same round.
    pub priority: Priority,
    /// What a team is to keep low.
    pub cost: Cost,
    /// What vehicles see of the others.
    pub communication: Communication,
    /// Whether all episodes have as many rounds as the longest can have, so that they end together: two for each customer and one for each
    /// vehicle. Teams that are done wait.
    pub even_length: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            customers: 20,
            vehicles: 3,
            teams: 1,
            least_capacity: 20,
            most_capacity: 40,
            slowest: 1.0,
            fastest: 1.0,
            decoding: Decoding::Parallel,
            priority: Priority::Nearest,
            cost: Cost::Longest,
            communication: Communication::Full,
            even_length: false,
        }
    }
}

/// Who chooses when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decoding {
    /// All vehicles in each round.
    Parallel,
    /// One vehicle in each round: the one that has travelled for the least time. One that stayed in the depot at its last turn comes last.
    Sequential,
}

/// Who serves a customer that several vehicles choose in the same round. The others stay where they are. Of equals it is the one on the
/// earlier seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// The vehicle that needs the least time to go there.
    Nearest,
    /// The one whose whole way, there and then home, would take the least time.
    Shortest,
    /// The one on the first seat.
    First,
    /// One drawn by lot.
    Random,
}

/// What a team is to keep low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// The time of the vehicle that travels for longest, with the way home.
    Longest,
    /// The time of all vehicles together, with their ways home.
    Total,
}

/// What vehicles see of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Communication {
    /// How near the others are to each customer, and how long their ways are.
    Full,
    /// Nothing; the numbers are 0.
    None,
    /// How near the others are to the next place instead, as a placebo: it tells nothing of this one. Nothing of their ways.
    Scrambled,
}

impl Params {
    /// Refuses what does not fit.
    ///
    /// # Errors
    /// A key out of its range.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::within(2..=100, "customers", self.customers)?;
        Invalid::within(1..=16, "vehicles", self.vehicles)?;
        Invalid::within(1..=64, "teams", self.teams)?;
        Invalid::within(LARGEST_DEMAND..=1_000, "least_capacity", self.least_capacity)?;
        Invalid::within(self.least_capacity..=1_000, "most_capacity", self.most_capacity)?;
        Invalid::within(0.1..=10.0, "slowest", self.slowest)?;
        Invalid::within(self.slowest..=10.0, "fastest", self.fastest)
    }

    /// Returns the most rounds that an episode can have. After a round in which nobody is served all vehicles are in the depot; in turns each
    /// can stay there once besides.
    #[must_use]
    pub fn most_rounds(&self) -> u32 {
        (2 * self.customers + self.vehicles) as u32
    }
}
