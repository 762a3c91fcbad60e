//! Two cooks make onion soup in a narrow kitchen. See README.md.

mod kitchen;
#[cfg(test)]
mod tests;

use crate::grid::{Cell, declare_cells};
use kitchen::{Cook, DIRECTIONS, Layout, Map, ONIONS, Pots, Soup, State, Thing, Tile};
use polity_kernel::Invalid;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<Overcooked>(files);
}

/// The actions; the first four are the directions.
const ACTIONS: [(&str, &str); 6] = [
    ("north", "turn up and go there if it is free"),
    ("south", "turn down and go there if it is free"),
    ("east", "turn to the right and go there if it is free"),
    ("west", "turn to the left and go there if it is free"),
    ("stay", "stay"),
    ("interact", "take, put down, cook or serve at the cell before you"),
];
/// What is shown of each cell, in the order of the program's encoding.
const CHANNELS: [(&str, &str); 22] = [
    ("own", "1 where the cook is"),
    ("other", "1 where the other cook is"),
    ("own-north", "1 where the cook is, if it faces up"),
    ("own-south", "1 where the cook is, if it faces down"),
    ("own-east", "1 where the cook is, if it faces right"),
    ("own-west", "1 where the cook is, if it faces left"),
    ("other-north", "1 where the other cook is, if it faces up"),
    ("other-south", "1 where the other cook is, if it faces down"),
    ("other-east", "1 where the other cook is, if it faces right"),
    ("other-west", "1 where the other cook is, if it faces left"),
    ("pot", "1 where a pot is"),
    ("counter", "1 where a counter is"),
    ("onion-box", "1 where onions are taken from"),
    ("dish-box", "1 where dishes are taken from"),
    ("window", "1 where soup is served"),
    ("onions-in-pot", "onions in a pot that does not cook yet"),
    ("onions-in-soup", "onions in a soup that cooks or is done"),
    ("time-left", "steps that a soup in a pot still has to cook"),
    ("done", "1 where a soup is done"),
    ("dish", "1 where a dish lies or is held"),
    ("onion", "1 where an onion lies or is held"),
    ("urgent", "1 everywhere in the last steps of an episode"),
];
/// The steps at the end of an episode that are urgent.
const URGENT: u32 = 40;

/// Parameters of an episode.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The kitchen.
    layout: Layout,
    /// Steps of an episode; 1 to 1,000,000.
    steps: u32,
    /// What both cooks get for a soup of three onions that is served; 0 to 1,000.
    reward: f64,
    /// Steps that a soup cooks; 1 to 1,000.
    cooking: u16,
    /// Whether a pot starts by itself once it has three onions, as in JaxMARL. Otherwise a cook has to start it.
    self_cooking: bool,
    /// Weight of each cook's own rewards for steps on the way to a soup; 0 to 10.
    shaping: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { layout: Layout::CrampedRoom, steps: 400, reward: 20.0, cooking: 20, self_cooking: false, shaping: 0.0 }
    }
}

/// A kitchen.
pub struct Overcooked {
    params: Params,
    map: Map,
    /// By channel, and by cell row by row.
    cells: Vec<NumberSlot>,
    kitchen: TextSlot,
}

impl Overcooked {
    /// Writes the cells of a channel that are not 0.
    fn write(&self, channel: &str, cells: impl Iterator<Item = (Cell, f64)>, observation: &mut ObservationRow<'_>) {
        let Some(channel) = CHANNELS.iter().position(|(name, _)| *name == channel) else { return };
        for (cell, value) in cells {
            observation.number(self.cells[channel * self.map.size.cells() + self.map.size.index(cell)], value);
        }
    }

    fn write_cooks(&self, state: &State, own: usize, observation: &mut ObservationRow<'_>) {
        let names = ["north", "south", "east", "west"];
        for (who, cook) in [("own", state.cooks[own]), ("other", state.cooks[1 - own])] {
            let here = || std::iter::once((cook.at, 1.0));
            self.write(who, here(), observation);
            self.write(&format!("{who}-{}", names[usize::from(cook.facing)]), here(), observation);
        }
    }

    fn write_things(&self, state: &State, observation: &mut ObservationRow<'_>) {
        let lying = self.map.size.all().filter_map(|cell| Some((cell, state.things[self.map.size.index(cell)]?)));
        let held = state.cooks.iter().filter_map(|cook| Some((cook.at, cook.holds?)));
        for (cell, thing) in lying.chain(held) {
            let mut put = |channel: &str, value: f64| self.write(channel, std::iter::once((cell, value)), observation);
            match thing {
                Thing::Dish => put("dish", 1.0),
                Thing::Onion => put("onion", 1.0),
                Thing::Soup(Soup { onions, cooked: None }) => put("onions-in-pot", f64::from(onions)),
                Thing::Soup(Soup { onions, cooked: Some(cooked) }) => {
                    put("onions-in-soup", f64::from(onions));
                    if self.map.tile(cell) == Tile::Pot {
                        put("time-left", f64::from(self.params.cooking) - f64::from(cooked));
                    }
                    if cooked >= self.params.cooking {
                        put("done", 1.0);
                    }
                }
            }
        }
    }

    /// Describes the kitchen for those who read.
    fn told(&self, state: &State, own: usize) -> String {
        let Cook { at, facing, holds } = state.cooks[own];
        let other = state.cooks[1 - own];
        let faces = ["up", "down", "to the right", "to the left"];
        let held = |holds: Option<Thing>| holds.map_or("nothing".to_owned(), |thing| thing.told(self.params.cooking));
        let mut text = format!(
            "{}\nYou are in column {}, row {}, face {} and hold {}. The other cook is in column {}, row {}, faces {} and holds {}.",
            self.map.drawn(),
            at.x,
            at.y,
            faces[usize::from(facing)],
            held(holds),
            other.at.x,
            other.at.y,
            faces[usize::from(other.facing)],
            held(other.holds),
        );
        for cell in self.map.size.all() {
            if let Some(thing) = state.things[self.map.size.index(cell)] {
                let told = thing.told(self.params.cooking);
                text.push_str(&format!("\nIn column {}, row {}: {told}.", cell.x, cell.y));
            }
        }
        text
    }
}

impl Environment for Overcooked {
    const NAME: &'static str = "overcooked";
    const SUMMARY: &'static str = "Two cooks make onion soup in a narrow kitchen, as in overcooked-ai";
    type Params = Params;
    type State = State;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(1..=1_000_000, "steps", params.steps)?;
        Invalid::within(0.0..=1_000.0, "reward", params.reward)?;
        Invalid::within(1..=1_000, "cooking", params.cooking)?;
        Invalid::within(0.0..=10.0, "shaping", params.shaping)?;
        let map = params.layout.map();
        let mut cells = Vec::new();
        for (name, doc) in CHANNELS {
            let all = map.size.all();
            cells.extend(all.map(|Cell { x, y }| declare.number_slot(format!("{name}-{x}-{y}"), doc)));
        }
        let kitchen = declare.text_slot("kitchen", "the kitchen, the cooks, and what lies where");
        for (name, doc) in ACTIONS {
            declare.action(name, ActionArgument::Nothing, doc);
        }
        declare_cells(declare, map.size, "cook", |state: &State, seat| state.cooks[seat as usize].at);
        declare.scalar("served", "soups of three onions served in the episode", |_, state: &State| {
            f64::from(state.served)
        });
        Ok(Overcooked { params, map, cells, kitchen })
    }

    fn seats(&self) -> u32 {
        2
    }

    fn reset(&self, _: &Item, _: &mut Draws) -> State {
        let cooks = self.map.starts.iter().map(|at| Cook { at: *at, facing: 0, holds: None }).collect();
        State { cooks, things: vec![None; self.map.size.cells()], served: 0, steps: 0 }
    }

    fn accepts(&self, state: &State) -> Result<(), String> {
        self.map.accepts(state, self.params.cooking)
    }

    fn cut(&self, _: &State) -> bool {
        true
    }

    fn observe(&self, state: &State, seat: Seat, observation: &mut ObservationRow<'_>) {
        let own = seat as usize;
        self.write_cooks(state, own, observation);
        for (channel, tile) in [
            ("pot", Tile::Pot),
            ("counter", Tile::Counter),
            ("onion-box", Tile::Onions),
            ("dish-box", Tile::Dishes),
            ("window", Tile::Window),
        ] {
            let cells = self.map.size.all().filter(|cell| self.map.tile(*cell) == tile);
            self.write(channel, cells.map(|cell| (cell, 1.0)), observation);
        }
        self.write_things(state, observation);
        if self.params.steps.saturating_sub(state.steps) < URGENT {
            self.write("urgent", self.map.size.all().map(|cell| (cell, 1.0)), observation);
        }
        observation.text(self.kitchen, self.told(state, own));
    }

    /// First both act on what is before them, the first cook first; then both move. A cook without a move stays.
    fn step(&self, state: &mut State, moves: &[Move], _: &mut Draws) -> StepResult {
        let mut actions = [usize::from(u8::MAX); 2];
        moves.iter().for_each(|made| actions[made.seat as usize] = usize::from(made.action));
        let pots = Pots { cooking: self.params.cooking, by_themselves: self.params.self_cooking };
        let waiting = self.map.waiting_pots(state);
        let (mut served, mut shaped) = (0, [0.0; 2]);
        for cook in 0..2 {
            if actions[cook] == ACTIONS.len() - 1 {
                let done = self.map.interact(state, cook, waiting, pots);
                served += u32::from(done.soup == Some(ONIONS));
                shaped[cook] = done.shaped;
            }
        }
        self.map.walk(state, actions.map(|action| (action < DIRECTIONS.len()).then_some(action)));
        self.map.cook(state, pots);
        state.served += served;
        state.steps += 1;
        let shared = f64::from(served) * self.params.reward;
        StepResult {
            rewards: shaped.map(|own| shared + self.params.shaping * own).into(),
            results: vec![String::new(); moves.len()],
            done: state.steps >= self.params.steps,
        }
    }
}
