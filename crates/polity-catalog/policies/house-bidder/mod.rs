//! Bid for houses, with or without profiles of competitors. See README.md.

use polity_kernel::Invalid;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_learn::linear::dot;
use polity_learn::process::{best, softmax};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<HouseBidder>(files);
}

/// The cells of an integral over prices.
const CELLS: u32 = 12;

/// What a bidder believes of the personas of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The shares of personas, for everybody.
    #[default]
    Off,
    /// What follows from the prices at which they left, by Bayes' rule.
    Learned,
    /// A placebo: for each of them the profile of a bidder that is drawn at random, anew after each sale.
    Random,
}

/// Parameters of bidding.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What it believes of the personas of others.
    profile: Profile,
    /// Seats of a table, from the first on, whose bidders profile; those in other seats do as with `off`.
    seats: u32,
    /// Share of the gain that it expects from waiting, below which it does not buy; 0 to 1.
    patience: f64,
    /// Standard deviation with which it expects others to leave around the worth of a house; above 0, up to 1.
    error: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { profile: Profile::Off, seats: 20, patience: 1.0, error: 0.15 }
    }
}

/// By competitor: its seat, and the logarithm of the weight of each persona.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beliefs {
    of: Vec<(u32, Vec<f64>)>,
    /// The least gain for which it stays in the current auction.
    waits_for: f64,
}

/// Bids for houses.
pub struct HouseBidder {
    params: Params,
    /// Seat, whether it is in the auction, price, value, budget, whether a house has just been sold.
    numbers: [NumberSlot; 6],
    houses: TableSlot,
    others: TableSlot,
    memory: TableSlot,
    personas: TableSlot,
    stay: u16,
    profile: u16,
    names: Vec<String>,
}

#[derive(Serialize)]
struct Guess<'a> {
    seat: f64,
    persona: &'a str,
}

/// A persona as it is shown: weights of features, budget, share.
type Shown = [f64; 5];

/// What a house is worth to a persona.
fn worth(persona: &Shown, features: &[f64]) -> f64 {
    dot(&persona[..3], features)
}

impl HouseBidder {
    /// Learns from the records of the last sale: [size, location, condition, seat, left, price, buyer], one for each competitor.
    fn learn(&self, beliefs: &mut Beliefs, personas: &[Shown], records: &[[f64; 7]]) {
        let (error, waits) = (self.params.error, beliefs.waits_for);
        for record in records {
            let Some((_, logs)) = beliefs.of.iter_mut().find(|(seat, _)| f64::from(*seat) == record[3]) else {
                continue;
            };
            let (left, price) = (record[4], record[5]);
            for (log, persona) in logs.iter_mut().zip(personas) {
                let expected = (worth(persona, record) - waits).min(persona[3]);
                *log += if left >= 0.0 {
                    let distance = (left - expected) / error;
                    -0.5 * distance * distance
                } else if left == -1.0 {
                    // It would have paid this price, at least.
                    -libm::log(1.0 + libm::exp(-1.7 * (expected - price) / error))
                } else {
                    0.0
                };
            }
        }
    }

    /// The gain that it expects if it lets the present house go: from the last house backwards, what a house brings beyond what comes after it. Others are
    /// taken to wait as it does, and one of them to buy each house before.
    fn later(&self, houses: &[[f64; 4]], limits: [f64; 2], personas: &[Shown], rivals: &[Vec<f64>]) -> f64 {
        let [reserve, budget] = limits;
        let mut waiting = 0.0;
        for (after, house) in houses.iter().enumerate().skip(1).rev() {
            // One competitor buys each house before this one.
            let here = 1.0 - (after as f64 / rivals.len().max(1) as f64).min(1.0);
            // The probability that no rival pays more than a price.
            let cheap = |price: f64| {
                let leaves = |persona: &Shown| {
                    let limit = (worth(persona, house) - waiting).min(persona[3]);
                    1.0 / (1.0 + libm::exp(1.7 * (limit - price) / self.params.error))
                };
                let each: Vec<f64> = personas.iter().map(leaves).collect();
                rivals.iter().map(|weights| 1.0 - here * (1.0 - dot(weights, &each))).product::<f64>()
            };
            let most = house[3] - waiting;
            let pays = most.min(budget);
            if pays > reserve {
                let cell = (pays - reserve) / f64::from(CELLS);
                let middle = |i: u32| cheap(reserve + cell * (f64::from(i) + 0.5));
                waiting += cell * (0..CELLS).map(middle).sum::<f64>() + (most - pays) * cheap(pays);
            }
        }
        waiting
    }
}

impl Policy for HouseBidder {
    const NAME: &'static str = "house-bidder";
    const SUMMARY: &'static str =
        "Bid for houses up to their worth, waiting for better ones, with profiles of competitors";
    type Params = Params;
    type State = Beliefs;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0..=20, "seats", params.seats)?;
        Invalid::within(0.0..=1.0, "patience", params.patience)?;
        let fits = params.error > 0.0 && params.error <= 1.0;
        Invalid::unless(fits, "error", format!("must be above 0, up to 1, is {}", params.error))?;
        let (profile, argument) = setup.act("profile")?;
        let names = match argument {
            ActionArgument::Record(ResponseFormat::Record(fields)) => {
                fields.into_iter().find_map(|(name, format)| match format {
                    ResponseFormat::Choice(names) if name == "persona" => Some(names),
                    _ => None,
                })
            }
            _ => None,
        };
        let message = format!("profiles of the world `{}` do not name a persona from a list", setup.world);
        let names = names.ok_or_else(|| Invalid { key: "kind".into(), message })?;
        let [seat, active, price, value, budget, news] =
            ["seat", "active", "price", "value", "budget", "news"].map(|name| setup.number(name));
        let numbers = [seat?, active?, price?, value?, budget?, news?];
        let memory = ["size", "location", "condition", "seat", "left", "price", "buyer"];
        Ok(HouseBidder {
            params,
            numbers,
            houses: setup.table("houses", ["size", "location", "condition", "value"])?.0,
            others: setup.table("others", ["seat", "within", "bought"])?.0,
            memory: setup.table("memory", memory)?.0,
            personas: setup.table("personas", ["size", "location", "condition", "budget", "share"])?.0,
            stay: setup.act("stay")?.0,
            profile,
            names,
        })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Beliefs {
        Beliefs::default()
    }

    fn memory_bytes(&self) -> usize {
        400
    }

    async fn act(&self, beliefs: &mut Beliefs, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let [seat, active, price, value, budget, news] = self.numbers.map(|slot| seen.number(slot));
        let personas: Vec<Shown> = seen.table(self.personas).filter_map(|row| Shown::try_from(row).ok()).collect();
        let profiles = f64::from(self.params.seats) > seat;
        let profile = if profiles { self.params.profile } else { Profile::Off };
        // Personas are shown when an auction opens.
        if !personas.is_empty() {
            if beliefs.of.is_empty() {
                let prior: Vec<f64> = personas.iter().map(|persona| libm::log(persona[4])).collect();
                beliefs.of = seen.table(self.others).map(|row| (row[0] as u32, prior.clone())).collect();
            }
            let records: Vec<[f64; 7]> =
                seen.table(self.memory).filter_map(|row| <[f64; 7]>::try_from(row).ok()).collect();
            if news > 0.0 && profile != Profile::Off {
                let last = records.len().saturating_sub(beliefs.of.len());
                self.learn(beliefs, &personas, records.get(last..).unwrap_or_default());
            }
            let shares: Vec<f64> = personas.iter().map(|persona| persona[4]).collect();
            let mut rivals = Vec::new();
            for (row, (seat, logs)) in seen.table(self.others).zip(&beliefs.of) {
                let believed = match profile {
                    Profile::Random => {
                        let drawn = turn.draws.weighted(&shares).unwrap_or_default();
                        (0..shares.len()).map(|i| if i == drawn { 1.0 } else { 0.0 }).collect()
                    }
                    Profile::Learned | Profile::Off => softmax(logs),
                };
                if profile != Profile::Off {
                    let persona = self.names.get(best(&believed)).map_or("", String::as_str);
                    turn.act_record(self.profile, &Guess { seat: f64::from(*seat), persona })?;
                }
                if row[2] == 0.0 {
                    rivals.push(believed);
                }
            }
            let houses: Vec<[f64; 4]> =
                seen.table(self.houses).filter_map(|row| <[f64; 4]>::try_from(row).ok()).collect();
            beliefs.waits_for = self.params.patience * self.later(&houses, [price, budget], &personas, &rivals);
        }
        let gain = value - price;
        if active > 0.0 && gain >= beliefs.waits_for && gain >= 0.0 {
            turn.act(self.stay, 0.0);
        }
        Ok(())
    }
}
