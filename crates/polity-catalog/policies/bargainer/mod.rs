//! Bargain by concessions over time, and learn from a critic who reads the last game. See README.md.

mod critic;
#[cfg(test)]
mod tests;

use critic::{Reading, comment};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, StateColumn, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Bargainer>(files);
}

/// Who has a critic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coached {
    /// Nobody.
    #[default]
    Nobody,
    /// Sellers.
    Seller,
    /// Buyers.
    Buyer,
    /// Both.
    Both,
}

/// Parameters of bargaining.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Who has a critic.
    coached: Coached,
    /// Exponents of concessions over time are drawn evenly from this; 0.05 to 20. At 1 concessions are even, above it a player gives way
    /// early, below it late.
    slowest: f64,
    /// The largest exponent of concessions; from `slowest` to 20.
    fastest: f64,
    /// How many of the other's last steps a critic asks for at first; 0 to 100. Each broken game halves it.
    boldness: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { coached: Coached::Nobody, slowest: 0.5, fastest: 2.0, boldness: 1.0 }
    }
}

/// What a player carries from turn to turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The exponent of its concessions.
    exponent: f64,
    boldness: f64,
    /// How far it goes from its first offer, at most; its limit until a critic says otherwise.
    target: Option<f64>,
    /// Games that it has thought over.
    games: u32,
}

/// Bargains by concessions over time.
pub struct Bargainer {
    params: Params,
    slots: [NumberSlot; 9],
    last_price: NumberSlot,
    last_game: (TableSlot, [usize; 2]),
    offer: u16,
    accept: u16,
}

impl Policy for Bargainer {
    const NAME: &'static str = "bargainer";
    const SUMMARY: &'static str = "Give way over time, and hold out as a critic of the last game says";
    type Params = Params;
    type State = Memory;

    const COLUMNS: &'static [StateColumn<Self>] = &[
        StateColumn {
            name: "exponent",
            doc: "the exponent of concessions over time",
            range: None,
            value: |_, memory| memory.exponent,
        },
        StateColumn {
            name: "boldness",
            doc: "how many of the other's last steps the critic asks for",
            range: None,
            value: |_, memory| memory.boldness,
        },
    ];

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Params { slowest, fastest, boldness, .. } = params;
        Invalid::within(0.05..=20.0, "slowest", slowest)?;
        Invalid::within(slowest..=20.0, "fastest", fastest)?;
        Invalid::within(0.0..=100.0, "boldness", boldness)?;
        let number = |name| setup.number(name);
        let slots = [
            number("active")?,
            number("is-seller")?,
            number("low")?,
            number("high")?,
            number("turn")?,
            number("turns")?,
            number("game")?,
            number("limit")?,
            number("other-offer")?,
        ];
        Ok(Bargainer {
            params,
            slots,
            last_price: setup.number("last-price")?,
            last_game: setup.table("last-game", ["seller", "price"])?,
            offer: setup.act("offer")?.0,
            accept: setup.act("accept")?.0,
        })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> Memory {
        let Params { slowest, fastest, boldness, .. } = self.params;
        Memory { exponent: draws.range(slowest, fastest), boldness, target: None, games: 0 }
    }

    async fn act(&self, memory: &mut Memory, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let [active, seller, low, high, now, turns, game, limit, other] = self.slots.map(|slot| seen.number(slot));
        if active == 0.0 {
            return Ok(());
        }
        // A new pair: nothing is known of it.
        if game < f64::from(memory.games) {
            (memory.target, memory.games, memory.boldness) = (None, 0, self.params.boldness);
        }
        // Everything as a distance from the own first offer, so that sellers and buyers are alike.
        let sells = seller > 0.0;
        let away = |price: f64| if sells { high - price } else { price - low };
        let coached = match self.params.coached {
            Coached::Nobody => false,
            Coached::Seller => sells,
            Coached::Buyer => !sells,
            Coached::Both => true,
        };
        if game > f64::from(memory.games) {
            memory.games = game as u32;
            if coached {
                self.learn(memory, turn, away, sells);
            }
        }
        let target = memory.target.unwrap_or(f64::INFINITY).min(away(limit));
        let way = ((now / 2.0).floor() / (turns / 2.0 - 1.0)).min(1.0);
        let own = target * libm::pow(way, 1.0 / memory.exponent);
        if away(other) <= own {
            turn.act(self.accept, 0.0);
        } else {
            turn.act(self.offer, if sells { high - own } else { low + own });
        }
        Ok(())
    }
}

impl Bargainer {
    /// Lets the critic read the last game.
    fn learn(&self, memory: &mut Memory, turn: &Turn<'_>, away: impl Fn(f64) -> f64, sells: bool) {
        let (table, [seller, price]) = self.last_game;
        let rows: Vec<(bool, f64)> =
            turn.observation.table(table).map(|row| (row[seller] > 0.0, away(row[price]))).collect();
        let others: Vec<f64> = rows.iter().filter(|(by_seller, _)| *by_seller != sells).map(|row| row.1).collect();
        let last = turn.observation.number(self.last_price);
        let price = (last > 0.0).then(|| away(last));
        if let Some(advice) = comment(&Reading { others: &others, price }, memory.boldness) {
            memory.target = Some(advice.target);
            if advice.too_bold {
                memory.boldness /= 2.0;
            }
        }
    }
}
