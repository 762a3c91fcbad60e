//! Commons Harvest: apples on a field grow back the faster the more of them are left nearby. See README.md.

mod field;
#[cfg(test)]
mod tests;

use field::{Deed, Field, Rules, Shape};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TableSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Harvest>(files);
}

/// Parameters of a harvest.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Players on a field; 1 to 28. More agents play on fields of their own, side by side.
    players: u32,
    /// Columns of patches of 13 apples; 1 to 8.
    columns: u32,
    /// Rows of patches; 1 to 8.
    rows: u32,
    /// Cells that a player sees in each direction; 1 to 10.
    view: u32,
    /// Probability with which an apple grows back in a round, by the number of apples at most two cells away: none, one, two, and so
    /// on; the last one holds for more, too.
    regrowth: Vec<f64>,
    /// Rounds for which a player who is zapped is away; 0: zaps do nothing; up to 1,000.
    away: u32,
    /// Rounds of a game.
    rounds: u32,
    /// Apples near one that is eaten which `restraint` asks to be left.
    leave: u32,
    /// Whether the words say what is seen. Otherwise they have as many lines, which say nothing (a placebo).
    words: bool,
}

impl Default for Params {
    fn default() -> Self {
        let regrowth = vec![0.0, 0.0025, 0.005, 0.025];
        Params { players: 5, columns: 3, rows: 2, view: 4, regrowth, away: 4, rounds: 500, leave: 3, words: true }
    }
}

/// A harvest.
pub struct Harvest {
    params: Params,
    shape: Shape,
    rules: Rules,
    slots: Slots,
}

struct Slots {
    x: NumberSlot,
    y: NumberSlot,
    view: TableSlot,
    scene: TextSlot,
    go: u16,
    zap: u16,
}

/// What a cell of the view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Sight {
    /// Grass on which an apple may grow.
    Grass = 0,
    Apple = 1,
    Player = 2,
}

/// Returns 1 minus the Gini index of numbers; 1 if all are 0.
fn equality(numbers: &[u32]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let (n, all) = (sorted.len() as f64, sorted.iter().map(|x| f64::from(*x)).sum::<f64>());
    if all == 0.0 {
        return 1.0;
    }
    let ranked: f64 = (1u32..).zip(&sorted).map(|(rank, x)| f64::from(rank) * f64::from(*x)).sum();
    1.0 - (2.0 * ranked / (n * all) - (n + 1.0) / n)
}

fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

fn eaten(field: &Field) -> f64 {
    field.players.iter().map(|player| f64::from(player.eaten)).sum()
}

impl Harvest {
    /// Returns what a player sees, row by row: column and row of a cell relative to its own, and what is there.
    fn seen(&self, field: &Field, seat: Seat) -> Vec<(i32, i32, Sight)> {
        let Some(own) = field.players.get(seat as usize).filter(|own| own.away == 0) else { return Vec::new() };
        let reach = self.params.view as i32;
        let mut seen = Vec::new();
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                let at = (own.at.0 + dx, own.at.1 + dy);
                let site = self.shape.site(at);
                if (dx, dy) != (0, 0) && field.is_taken(at) {
                    seen.push((dx, dy, Sight::Player));
                }
                if let Some(site) = site {
                    seen.push((dx, dy, if field.apples[site] { Sight::Apple } else { Sight::Grass }));
                }
            }
        }
        seen
    }

    /// Says in words what a player sees.
    fn told(&self, field: &Field, seat: Seat) -> String {
        let steps = |n: i32, [less, more]: [&str; 2]| match n {
            0 => String::new(),
            n if n < 0 => format!("{} {less}", -n),
            n => format!("{n} {more}"),
        };
        let line = |(dx, dy, sight): (i32, i32, Sight)| {
            if !self.params.words {
                return "something: somewhere".to_owned();
            }
            let what = match sight {
                Sight::Grass => "bare grass",
                Sight::Apple => "an apple",
                Sight::Player => "another player",
            };
            let place = [steps(dx, ["left", "right"]), steps(dy, ["up", "down"])];
            let place: Vec<&str> = place.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            format!("{what}: {}", if place.is_empty() { "here".to_owned() } else { place.join(", ") })
        };
        self.seen(field, seat).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Environment for Harvest {
    const NAME: &'static str = "harvest";
    const SUMMARY: &'static str = "Apples on a field that grow back the faster the more are left (Commons Harvest)";
    type Params = Params;
    type State = Field;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=28, "players", params.players)?;
        Invalid::within(1..=8, "columns", params.columns)?;
        Invalid::within(1..=8, "rows", params.rows)?;
        Invalid::within(1..=10, "view", params.view)?;
        Invalid::within(0..=1_000, "away", params.away)?;
        Invalid::unless(params.rounds > 0, "rounds", "must be at least 1")?;
        Invalid::unless(!params.regrowth.is_empty(), "regrowth", "needs at least one probability")?;
        for p in &params.regrowth {
            Invalid::within(0.0..=1.0, "regrowth", *p)?;
        }
        let shape = Shape::new(params.columns, params.rows);
        let room = 4 * shape.width as u32;
        let message = format!("{} players have no room in a yard of {room} cells", params.players);
        Invalid::unless(params.players < room, "players", message)?;
        let x = declare.number_slot("x", "column of the player's cell, from the left");
        let y = declare.number_slot("y", "row of the player's cell, from the top");
        declare.shared_number("width", "columns of the field", |harvest: &Harvest, _| f64::from(harvest.shape.width));
        declare.shared_number("height", "rows of the field", |harvest: &Harvest, _| f64::from(harvest.shape.height));
        declare.shared_number("view", "cells that a player sees in each direction", |harvest: &Harvest, _| {
            f64::from(harvest.params.view)
        });
        declare.shared_number("round", "rounds played", |_, field| f64::from(field.round));
        declare.shared_number("rounds", "rounds of a game", |harvest: &Harvest, _| f64::from(harvest.params.rounds));
        declare.number("away", "rounds until a player who was zapped is back", |_, field: &Field, seat| {
            field.players.get(*seat as usize).map_or(0.0, |player| f64::from(player.away))
        });
        declare.number("eaten", "apples that the player has eaten", |_, field: &Field, seat| {
            field.players.get(*seat as usize).map_or(0.0, |player| f64::from(player.eaten))
        });
        declare.number("faces", "where a zap would go: 0 up, 1 right, 2 down, 3 left", |_, field: &Field, seat| {
            field.players.get(*seat as usize).map_or(0.0, |player| f64::from(player.faces))
        });
        let doc = "what the player sees: cells relative to its own, and 0 bare grass, 1 an apple, 2 another player";
        let view = declare.table_slot("seen", ["dx", "dy", "kind"], doc);
        let scene = declare.text_slot("scene", "the same in words, line by line");
        let ways = ["up", "right", "down", "left"].map(str::to_owned).to_vec();
        let doc = "go one cell; an apple there is eaten";
        let go = declare.action("go", ActionArgument::Choice(ways), doc);
        let doc = "zap those up to three cells ahead, and one to each side, who are then away for some rounds";
        let zap = declare.action("zap", ActionArgument::Nothing, doc);
        declare.scalar("apples", "apples on the field, as a share of all places for them", |_, field| {
            share(field.apples.iter().filter(|apple| **apple).count() as f64, field.apples.len() as f64)
        });
        declare.scalar("efficiency", "apples eaten by a player, so far", |_, field| {
            share(eaten(field), field.players.len() as f64)
        });
        declare.scalar("equality", "1 minus the Gini index of apples eaten", |_, field: &Field| {
            equality(&field.players.iter().map(|player| player.eaten).collect::<Vec<_>>())
        });
        let doc = "mean round in which an apple was eaten, as a share of the rounds of a game";
        declare.scalar("sustainability", doc, |harvest: &Harvest, field| {
            share(field.when as f64, eaten(field) * f64::from(harvest.params.rounds))
        });
        declare.scalar("peace", "share of players' rounds in which they were not away", |_, field: &Field| {
            1.0 - share(field.lost as f64, field.players.len() as f64 * f64::from(field.round))
        });
        let doc = "share of the apples eaten that left enough others near them";
        declare.scalar("restraint", doc, |_, field| share(f64::from(field.spared), eaten(field)));
        declare.scalar("zaps", "zaps of a player, so far", |_, field: &Field| {
            share(f64::from(field.zaps), field.players.len() as f64)
        });
        declare.column("eaten", "apples that the player has eaten", None, |_, field: &Field, seat| {
            field.players.get(*seat as usize).map_or(0.0, |player| f64::from(player.eaten))
        });
        let rules =
            Rules { regrowth: params.regrowth.clone(), away: params.away, cool: 2, leave: params.leave as usize };
        Ok(Harvest { params, shape, rules, slots: Slots { x, y, view, scene, go, zap } })
    }

    fn seats(&self) -> u32 {
        self.params.players
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Field {
        Field::new(&self.shape, self.params.players, draws)
    }

    fn observe(&self, field: &Field, seat: Seat, observation: &mut ObservationRow<'_>) {
        let Some(own) = field.players.get(seat as usize) else { return };
        observation.number(self.slots.x, f64::from(own.at.0));
        observation.number(self.slots.y, f64::from(own.at.1));
        observation.table(self.slots.view, |rows| {
            for (dx, dy, sight) in self.seen(field, seat) {
                rows.extend([f64::from(dx), f64::from(dy), f64::from(sight as u8)]);
            }
        });
        observation.text(self.slots.scene, self.told(field, seat));
    }

    fn offers(&self, field: &Field, seat: Seat, action: u16) -> bool {
        let there = field.players.get(seat as usize).filter(|own| own.away == 0);
        there.is_some_and(|own| action != self.slots.zap || own.cools == 0)
    }

    fn step(&self, field: &mut Field, moves: &[Move], draws: &mut Draws) -> StepResult {
        let mut deeds = vec![Deed::Nothing; field.players.len()];
        for made in moves {
            deeds[made.seat as usize] = match &made.argument {
                Value::Choice(way) if made.action == self.slots.go => Deed::Go((*way).min(3) as u8),
                _ => Deed::Zap,
            };
        }
        let rewards = field.play(&self.shape, &self.rules, &deeds, draws);
        let done = field.round >= self.params.rounds;
        StepResult { rewards, results: vec![String::new(); moves.len()], done }
    }
}
