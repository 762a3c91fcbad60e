//! A seller and a buyer bargain over a price, game after game. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, TableSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The seller's seat.
const SELLER: Seat = 0;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Bargaining>(files);
}

/// Which game players are shown once a game is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Their own.
    #[default]
    Own,
    /// A placebo: one between two others, who concede at an even pace to limits drawn at random.
    Another,
}

/// Parameters of the game.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The buyer's first bid; 0 to 1e9.
    low: f64,
    /// The seller's first price, above `low`; up to 1e9.
    high: f64,
    /// The seller's cost is drawn evenly from `low` to this.
    highest_cost: f64,
    /// What the good is worth to the buyer is drawn evenly from this to `high`.
    lowest_value: f64,
    /// Turns of a game, by turns of seller and buyer; an even number from 4 to 1000.
    turns: u32,
    /// Games of an episode, between the same two players; 1 to 1000.
    games: u32,
    /// Which game players are shown once a game is over.
    shown: Shown,
}

impl Default for Params {
    fn default() -> Self {
        Params { low: 10.0, high: 20.0, highest_cost: 15.0, lowest_value: 15.0, turns: 20, games: 5, shown: Shown::Own }
    }
}

/// A seller and a buyer.
pub struct Bargaining {
    params: Params,
    dialogue: TableSlot,
    last_game: TableSlot,
    offer: u16,
    accept: u16,
}

/// An offer, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Offer {
    seat: Seat,
    price: f64,
}

/// A game: the offers in order, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Game {
    offers: Vec<Offer>,
    price: Option<f64>,
    /// Whether a player has left.
    left: bool,
}

/// The games of a seller and a buyer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Play {
    cost: f64,
    value: f64,
    turn: u32,
    game: Game,
    /// The prices of games that are over; `None` for those without a deal.
    prices: Vec<Option<f64>>,
    /// The game that is shown.
    shown: Game,
}

fn truth(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl Game {
    fn last(&self, seat: Seat) -> f64 {
        self.offers.iter().rev().find(|offer| offer.seat == seat).map_or(0.0, |offer| offer.price)
    }

    fn is_over(&self) -> bool {
        self.left || self.price.is_some()
    }
}

impl Play {
    fn limit(&self, seat: Seat) -> f64 {
        if seat == SELLER { self.cost } else { self.value }
    }

    fn gain(&self, seat: Seat, price: Option<f64>) -> f64 {
        let Some(price) = price else { return 0.0 };
        if seat == SELLER { price - self.cost } else { self.value - price }
    }

    fn broken(&self) -> f64 {
        self.prices.iter().filter(|price| price.is_none()).count() as f64 / self.prices.len().max(1) as f64
    }

    /// Returns the price of the latest deal; 0 before the first.
    fn latest(&self) -> f64 {
        self.prices.iter().rev().copied().flatten().next().unwrap_or(0.0)
    }

    fn broken_last(&self) -> f64 {
        truth(!self.prices.is_empty() && self.last_price().is_none())
    }

    fn last_price(&self) -> Option<f64> {
        self.prices.last().copied().flatten()
    }
}

impl Bargaining {
    /// Begins a game: both first offers are on the table, and it is the seller's turn.
    fn begin(&self) -> Game {
        let Params { low, high, .. } = self.params;
        Game { offers: vec![Offer { seat: 0, price: high }, Offer { seat: 1, price: low }], ..Game::default() }
    }

    /// Draws a game between two others.
    fn another(&self, draws: &mut Draws) -> Game {
        let Params { low, high, turns, .. } = self.params;
        let limits = [draws.range(low, high), draws.range(low, high)];
        let mut game = self.begin();
        for turn in 0..turns {
            let seat = turn % 2;
            let way = f64::from(turn / 2) / f64::from(turns / 2 - 1);
            let start = if seat == SELLER { high } else { low };
            let price = start + (limits[seat as usize] - start) * way;
            let other = game.last(1 - seat);
            if if seat == SELLER { other >= price } else { other <= price } {
                game.price = Some(other);
                return game;
            }
            game.offers.push(Offer { seat, price });
        }
        game
    }

    fn declare_results(declare: &mut DeclareEnvironment<Self>) {
        declare
            .column("price", "price of the latest deal; 0 before the first", None, |_, play: &Play, _| play.latest());
        let doc = "what the last game was worth to the player: 0 without a deal";
        declare.column("gain", doc, None, |_, play, seat| play.gain(*seat, play.last_price()));
        let doc = "1 if the last game was broken off or ran out of turns";
        declare.column("broken-last", doc, Some((0.0, 1.0)), |_, play, _| play.broken_last());
        declare.column("broken", "share of games so far without a deal", Some((0.0, 1.0)), |_, play, _| play.broken());
        declare.scalar("games", "games that are over", |_, play| play.prices.len() as f64);
        declare.scalar("price", "price of the latest deal; 0 before the first", |_, play| play.latest());
        let doc = "price of the latest deal less that of the first; 0 before the first";
        declare.scalar("price-change", doc, |_, play| {
            play.prices.iter().copied().flatten().next().map_or(0.0, |first| play.latest() - first)
        });
        let doc = "what the last game was worth to the seller: 0 without a deal";
        declare.scalar("seller-gain", doc, |_, play| play.gain(SELLER, play.last_price()));
        let doc = "what the last game was worth to the buyer: 0 without a deal";
        declare.scalar("buyer-gain", doc, |_, play| play.gain(1 - SELLER, play.last_price()));
        declare.scalar("broken-last", "1 if the last game was broken off or ran out of turns", |_, play| {
            play.broken_last()
        });
        declare.scalar("broken", "share of games so far without a deal", |_, play| play.broken());
    }
}

impl Environment for Bargaining {
    const NAME: &'static str = "bargaining";
    const SUMMARY: &'static str = "A seller and a buyer make offers by turns, over several games";
    type Params = Params;
    type State = Play;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        let Params { low, high, highest_cost, lowest_value, turns, games, .. } = params;
        Invalid::within(0.0..=1e9, "low", low)?;
        let message = format!("must be above `low` and at most 1e9, is {high}");
        Invalid::unless(high > low && high <= 1e9, "high", message)?;
        Invalid::within(low..=high, "highest_cost", highest_cost)?;
        Invalid::within(low..=high, "lowest_value", lowest_value)?;
        Invalid::within(4..=1000, "turns", turns)?;
        Invalid::unless(turns.is_multiple_of(2), "turns", format!("must be even, is {turns}"))?;
        Invalid::within(1..=1000, "games", games)?;
        for (name, doc, value) in [
            ("low", "the buyer's first bid", low),
            ("high", "the seller's first price", high),
            ("turns", "turns of a game", f64::from(turns)),
            ("games", "games between the two", f64::from(games)),
        ] {
            declare.shared_number(name, doc, move |_, _| value);
        }
        declare.shared_number("game", "games that are over", |_, play| play.prices.len() as f64);
        declare.shared_number("turn", "turns of this game that are over", |_, play| f64::from(play.turn));
        declare.number("is-seller", "1 for the seller, 0 for the buyer", |_, _, seat| truth(*seat == SELLER));
        let doc = "the seller's cost, or what the good is worth to the buyer; the other does not know it";
        declare.number("limit", doc, |_, play, seat| play.limit(*seat));
        declare.number("own-offer", "the player's last offer", |_, play, seat| play.game.last(*seat));
        declare.number("other-offer", "the other's last offer", |_, play, seat| play.game.last(1 - *seat));
        let doc = "price of the game that is shown as the last one; 0 if there was no deal";
        declare.shared_number("last-price", doc, |_, play| play.shown.price.unwrap_or(0.0));
        let columns = ["seller", "price"];
        let dialogue =
            declare.table_slot("dialogue", columns, "the offers of this game: whose (1: the seller's), and the price");
        let last_game =
            declare.table_slot("last-game", columns, "the offers of the game that is shown as the last one");
        let offer = declare.action("offer", ActionArgument::Number { low, high }, "offer this price");
        let accept = declare.action("accept", ActionArgument::Nothing, "accept the other's last offer");
        declare.action("leave", ActionArgument::Nothing, "break off the game without a deal");
        Bargaining::declare_results(declare);
        Ok(Bargaining { params, dialogue, last_game, offer, accept })
    }

    fn seats(&self) -> u32 {
        2
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Play {
        let Params { low, high, highest_cost, lowest_value, .. } = self.params;
        Play {
            cost: draws.range(low, highest_cost),
            value: draws.range(lowest_value, high),
            turn: 0,
            game: self.begin(),
            prices: Vec::new(),
            shown: Game::default(),
        }
    }

    fn observe(&self, play: &Play, _: Seat, observation: &mut ObservationRow<'_>) {
        for (slot, game) in [(self.dialogue, &play.game), (self.last_game, &play.shown)] {
            observation.table(slot, |rows| {
                rows.extend(game.offers.iter().flat_map(|offer| [truth(offer.seat == SELLER), offer.price]));
            });
        }
    }

    /// The turns that are left once a game is over pass without moves, so that all games take as long.
    fn offers(&self, play: &Play, seat: Seat, _: u16) -> bool {
        !play.game.is_over() && play.turn % 2 == seat
    }

    fn step(&self, play: &mut Play, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut rewards = vec![0.0; 2];
        for made in moves {
            match &made.argument {
                Value::Number(price) if made.action == self.offer => {
                    play.game.offers.push(Offer { seat: made.seat, price: *price });
                }
                _ if made.action == self.accept => {
                    let price = Some(play.game.last(1 - made.seat));
                    play.game.price = price;
                    rewards = vec![play.gain(0, price), play.gain(1, price)];
                }
                _ => play.game.left = true,
            }
        }
        play.turn += 1;
        if play.turn == self.params.turns {
            play.turn = 0;
            let game = std::mem::replace(&mut play.game, self.begin());
            play.prices.push(game.price);
            play.shown = match self.params.shown {
                Shown::Own => game,
                Shown::Another => self.another(draws),
            };
        }
        let done = play.prices.len() as u32 >= self.params.games;
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }
}
