//! The kitchen: its layouts, what lies where, and what cooks do. The rules are those of overcooked-ai 1.1.0.

use crate::grid::{Cell, EAST, NORTH, SOUTH, Size, WEST, Way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directions, in the order of the actions.
pub const DIRECTIONS: [Way; 4] = [NORTH, SOUTH, EAST, WEST];
/// Onions of a soup that is worth something, and the most that a pot holds.
pub const ONIONS: u8 = 3;
/// Rewards on the way: an onion in a pot, a dish when it is needed, a soup from a pot.
const POTTED: f64 = 3.0;
const DISH: f64 = 3.0;
const FILLED: f64 = 5.0;

/// The kitchens of Carroll and others (2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One small room for both.
    CrampedRoom,
    /// Two rooms; each has what the other is far from.
    AsymmetricAdvantages,
    /// A ring around a counter, in which cooks get into each other's way.
    CoordinationRing,
    /// Two rooms; one has onions and dishes, the other pots and the window.
    ForcedCoordination,
    /// A ring around a long counter, over which things can be passed.
    CounterCircuit,
}

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tile {
    /// Where cooks walk.
    Floor,
    /// Where things lie.
    Counter,
    /// Where onions are taken from.
    Onions,
    /// Where dishes are taken from.
    Dishes,
    /// Where soup cooks.
    Pot,
    /// Where soup is served.
    Window,
}

/// A kitchen without what moves.
pub struct Map {
    /// Its size.
    pub size: Size,
    tiles: Vec<Tile>,
    /// Where the two cooks begin.
    pub starts: [Cell; 2],
}

/// Soup, in a pot or on a dish.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Soup {
    /// Onions in it.
    pub onions: u8,
    /// Steps that it has cooked; none before it cooks.
    pub cooked: Option<u16>,
}

/// What a cook can hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Thing {
    /// An onion.
    Onion,
    /// An empty dish.
    Dish,
    /// Soup; on a dish, unless it is in a pot.
    Soup(Soup),
}

/// A cook.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cook {
    /// Where it is.
    pub at: Cell,
    /// The direction that it faces, by number.
    pub facing: u8,
    /// What it holds.
    pub holds: Option<Thing>,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The two cooks.
    pub cooks: Vec<Cook>,
    /// What lies in each cell or cooks in it, row by row.
    pub things: Vec<Option<Thing>>,
    /// Soups of three onions served so far.
    pub served: u32,
    /// Steps so far.
    pub steps: u32,
}

/// How soup cooks in the pots of a kitchen.
#[derive(Clone, Copy, Debug)]
pub struct Pots {
    /// Steps that a soup cooks.
    pub cooking: u16,
    /// Whether a pot starts by itself once it has three onions. Otherwise a cook has to start it.
    pub by_themselves: bool,
}

/// What an interaction did.
#[derive(Debug, Default, PartialEq)]
pub struct Done {
    /// The onions of a soup that was served.
    pub soup: Option<u8>,
    /// Reward on the way to a soup.
    pub shaped: f64,
}

impl Layout {
    fn rows(self) -> &'static [&'static str] {
        match self {
            Layout::CrampedRoom => &["XXPXX", "O  2O", "X1  X", "XDXSX"],
            Layout::AsymmetricAdvantages => &["XXXXXXXXX", "O XSXOX S", "X   P 1 X", "X2  P   X", "XXXDXDXXX"],
            Layout::CoordinationRing => &["XXXPX", "X 1 P", "D2X X", "O   X", "XOSXX"],
            Layout::ForcedCoordination => &["XXXPX", "O X1P", "O2X X", "D X X", "XXXSX"],
            Layout::CounterCircuit => &["XXXPPXXX", "X  2   X", "D XXXX S", "X  1   X", "XXXOOXXX"],
        }
    }

    /// Reads the layout.
    pub fn map(self) -> Map {
        let rows = self.rows();
        let width = rows.first().map_or(0, |row| row.len());
        let size = Size { width: width as u8, height: rows.len() as u8 };
        let marks: Vec<u8> = rows.iter().flat_map(|row| row.bytes()).collect();
        let tile = |mark: &u8| match mark {
            b'X' => Tile::Counter,
            b'O' => Tile::Onions,
            b'D' => Tile::Dishes,
            b'P' => Tile::Pot,
            b'S' => Tile::Window,
            _ => Tile::Floor,
        };
        let start = |mark: u8| size.all().find(|cell| marks[size.index(*cell)] == mark);
        let starts = [b'1', b'2'].map(|mark| start(mark).unwrap_or(Cell { x: 0, y: 0 }));
        Map { size, tiles: marks.iter().map(tile).collect(), starts }
    }
}

impl Soup {
    fn is_done(self, cooking: u16) -> bool {
        self.cooked.is_some_and(|cooked| cooked >= cooking)
    }
}

impl Thing {
    /// Describes it.
    pub fn told(self, cooking: u16) -> String {
        match self {
            Thing::Onion => "an onion".into(),
            Thing::Dish => "a dish".into(),
            Thing::Soup(Soup { onions, cooked: None }) => format!("{onions} of 3 onions, not cooking"),
            Thing::Soup(soup @ Soup { onions, .. }) if soup.is_done(cooking) => {
                format!("soup of {onions} onions, done")
            }
            Thing::Soup(Soup { onions, cooked }) => {
                format!("soup of {onions} onions, done in {} steps", cooking.saturating_sub(cooked.unwrap_or_default()))
            }
        }
    }
}

impl Map {
    /// Returns what a cell is.
    pub fn tile(&self, cell: Cell) -> Tile {
        self.tiles[self.size.index(cell)]
    }

    /// Draws the kitchen, row by row.
    pub fn drawn(&self) -> String {
        let mark = |tile: &Tile| match tile {
            Tile::Floor => '.',
            Tile::Counter => 'X',
            Tile::Onions => 'O',
            Tile::Dishes => 'D',
            Tile::Pot => 'P',
            Tile::Window => 'S',
        };
        let rows = self.tiles.chunks(usize::from(self.size.width));
        rows.map(|row| row.iter().map(mark).collect::<String>()).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether an episode can go on from a state, or why not.
    pub fn accepts(&self, state: &State, cooking: u16) -> Result<(), String> {
        let (cooks, cells) = (state.cooks.len(), state.things.len());
        if cooks != 2 || cells != self.size.cells() {
            return Err(format!("there are 2 cooks and {} cells, not {cooks} and {cells}", self.size.cells()));
        }
        let stands = |cook: &Cook| self.size.has(cook.at) && self.tile(cook.at) == Tile::Floor && cook.facing < 4;
        if !state.cooks.iter().all(stands) {
            return Err("cooks are on the floor and face one of 4 directions".into());
        }
        let on_dish = |thing: Thing| !matches!(thing, Thing::Soup(soup) if !soup.is_done(cooking));
        let lies = |(tile, thing): (&Tile, &Option<Thing>)| match (tile, thing) {
            (_, None) => true,
            (Tile::Counter, Some(thing)) => on_dish(*thing),
            (Tile::Pot, Some(Thing::Soup(soup))) => {
                (1..=ONIONS).contains(&soup.onions) && soup.cooked.is_none_or(|cooked| cooked <= cooking)
            }
            _ => false,
        };
        let held = state.cooks.iter().filter_map(|cook| cook.holds).all(on_dish);
        match held && self.tiles.iter().zip(&state.things).all(lies) {
            true => Ok(()),
            false => Err("things lie on counters, soup that is not done is in pots, with 1 to 3 onions".into()),
        }
    }

    /// Returns the number of pots that a dish is needed for, now or later: soup cooks or is done, or some onions are in it.
    pub fn waiting_pots(&self, state: &State) -> usize {
        let waits = |(tile, thing): &(&Tile, &Option<Thing>)| match thing {
            Some(Thing::Soup(soup)) if **tile == Tile::Pot => soup.cooked.is_some() || soup.onions < ONIONS,
            _ => false,
        };
        self.tiles.iter().zip(&state.things).filter(waits).count()
    }

    /// Lets a cook act on the cell before it. `waiting`: the pots that needed a dish when the step began.
    pub fn interact(&self, state: &mut State, cook: usize, waiting: usize, pots: Pots) -> Done {
        let Cook { at, facing, holds } = state.cooks[cook];
        let Some(cell) = self.size.beside(at, DIRECTIONS[usize::from(facing)]) else { return Done::default() };
        let place = self.size.index(cell);
        let lies = state.things[place];
        let mut done = Done::default();
        let (now_holds, now_lies) = match (self.tile(cell), holds, lies) {
            (Tile::Counter, Some(thing), None) => (None, Some(thing)),
            (Tile::Counter, None, Some(thing)) => (Some(thing), None),
            (Tile::Onions, None, _) => (Some(Thing::Onion), lies),
            (Tile::Dishes, None, _) => {
                let is_dish = |thing: Option<Thing>| thing == Some(Thing::Dish);
                let held = state.cooks.iter().filter(|cook| is_dish(cook.holds)).count();
                if !state.things.iter().any(|thing| is_dish(*thing)) && held < waiting {
                    done.shaped = DISH;
                }
                (Some(Thing::Dish), lies)
            }
            (Tile::Pot, None, Some(Thing::Soup(Soup { onions, cooked: None }))) if !pots.by_themselves => {
                (None, Some(Thing::Soup(Soup { onions, cooked: Some(0) })))
            }
            (Tile::Pot, Some(Thing::Dish), Some(Thing::Soup(soup))) if soup.is_done(pots.cooking) => {
                done.shaped = FILLED;
                (lies, None)
            }
            (Tile::Pot, Some(Thing::Onion), None) => {
                done.shaped = POTTED;
                (None, Some(Thing::Soup(Soup { onions: 1, cooked: None })))
            }
            (Tile::Pot, Some(Thing::Onion), Some(Thing::Soup(Soup { onions, cooked: None }))) if onions < ONIONS => {
                done.shaped = POTTED;
                (None, Some(Thing::Soup(Soup { onions: onions + 1, cooked: None })))
            }
            (Tile::Window, Some(Thing::Soup(soup)), _) => {
                done.soup = Some(soup.onions);
                (None, lies)
            }
            _ => (holds, lies),
        };
        state.cooks[cook].holds = now_holds;
        state.things[place] = now_lies;
        done
    }

    /// Turns and moves both cooks. If they would meet in a cell or change places, both stay where they are.
    pub fn walk(&self, state: &mut State, ways: [Option<usize>; 2]) {
        let mut cells = [state.cooks[0].at, state.cooks[1].at];
        for (i, way) in ways.into_iter().enumerate() {
            let Some(way) = way else { continue };
            state.cooks[i].facing = way as u8;
            let next = self.size.beside(cells[i], DIRECTIONS[way]);
            cells[i] = next.filter(|cell| self.tile(*cell) == Tile::Floor).unwrap_or(cells[i]);
        }
        let [a, b] = [state.cooks[0].at, state.cooks[1].at];
        if cells[0] != cells[1] && cells != [b, a] {
            state.cooks.iter_mut().zip(cells).for_each(|(cook, cell)| cook.at = cell);
        }
    }

    /// Cooks for a step.
    pub fn cook(&self, state: &mut State, pots: Pots) {
        for thing in state.things.iter_mut().flatten() {
            if let Thing::Soup(Soup { onions, cooked }) = thing {
                if pots.by_themselves && *onions == ONIONS {
                    cooked.get_or_insert(0);
                }
                if let Some(cooked) = cooked {
                    *cooked = (*cooked + 1).min(pots.cooking);
                }
            }
        }
    }
}
