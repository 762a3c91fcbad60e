//! Parameters of the auctions of houses.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// Features of a house: size, location, condition.
pub const FEATURES: usize = 3;

/// A kind of bidder.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// Its name: lower-case letters, digits and hyphens.
    pub(super) name: String,
    /// How much size, location and condition count for it; 0 or more, with a sum of 1.
    pub(super) weights: [f64; FEATURES],
    /// The most that it can pay for a house; above 0.
    pub(super) budget: f64,
    /// Its share of bidders, beside those of the others.
    #[serde(default = "one")]
    pub(super) share: f64,
}

fn one() -> f64 {
    1.0
}

/// Parameters of the auctions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Kinds of bidders; 2 to 10.
    pub(super) personas: Vec<Persona>,
    /// Bidders at a table, who compete with each other; 2 to 20.
    pub(super) seats: u32,
    /// Houses sold in a season, one after the other; 1 to 50.
    pub(super) houses: u32,
    /// Seasons. A bidder buys at most one house in each.
    pub(super) seasons: u32,
    /// First price of an auction; 0 to 1.
    pub(super) reserve: f64,
    /// By how much the price rises in a round; above 0, up to 0.5.
    pub(super) step: f64,
    /// Standard deviation of what a house is worth to a bidder beside its features; 0 to 1.
    pub(super) taste: f64,
}

impl Default for Params {
    fn default() -> Self {
        let persona = |name: &str, weights| Persona { name: name.into(), weights, budget: 1.0, share: 1.0 };
        Params {
            personas: vec![
                persona("family", [0.8, 0.1, 0.1]),
                persona("commuter", [0.1, 0.8, 0.1]),
                persona("retiree", [0.1, 0.1, 0.8]),
            ],
            seats: 4,
            houses: 8,
            seasons: 6,
            reserve: 0.2,
            step: 0.04,
            taste: 0.05,
        }
    }
}

impl Params {
    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        let kinds = self.personas.len();
        Invalid::unless((2..=10).contains(&kinds), "personas", format!("needs 2 to 10 personas, has {kinds}"))?;
        for (i, persona) in self.personas.iter().enumerate() {
            let at = |key: &str| format!("personas[{i}].{key}");
            let name = &persona.name;
            let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let message = format!(
                "`{name}` must begin with a lower-case letter and hold only lower-case letters, digits and hyphens"
            );
            Invalid::unless(fits, &at("name"), message)?;
            let twice = self.personas[..i].iter().any(|other| other.name == *name);
            Invalid::unless(!twice, &at("name"), format!("`{name}` appears twice"))?;
            let sum: f64 = persona.weights.iter().sum();
            let fits = persona.weights.iter().all(|weight| *weight >= 0.0) && (sum - 1.0).abs() < 1e-9;
            Invalid::unless(fits, &at("weights"), "must be 0 or more, with a sum of 1")?;
            let positive = |x: f64| x > 0.0 && x.is_finite();
            Invalid::unless(positive(persona.budget), &at("budget"), "must be above 0")?;
            Invalid::unless(positive(persona.share), &at("share"), "must be above 0")?;
        }
        Invalid::within(2..=20, "seats", self.seats)?;
        let message =
            format!("a table has {} seats, and {agents} agents do not fill a whole number of tables", self.seats);
        Invalid::unless(agents.is_multiple_of(self.seats), "seats", message)?;
        Invalid::within(1..=50, "houses", self.houses)?;
        Invalid::within(1..=100_000, "seasons", self.seasons)?;
        Invalid::within(0.0..=1.0, "reserve", self.reserve)?;
        let fits = self.step > 0.0 && self.step <= 0.5;
        Invalid::unless(fits, "step", format!("must be above 0, up to 0.5, is {}", self.step))?;
        Invalid::within(0.0..=1.0, "taste", self.taste)
    }
}
