//! Looks for apples on a field, with or without restraint and memory. See README.md.

use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot, Observation, TableSlot, TextSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Forager>(files);
}

/// Which apples an agent eats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Appetite {
    /// Those that leave enough others near them, and any once it is hungry.
    #[default]
    Restrained,
    /// Any.
    Greedy,
}

/// What an agent reads of what it sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// The table of numbers.
    #[default]
    Table,
    /// The description in words, as minds are shown it.
    Words,
}

/// Parameters of foragers.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Which apples it eats.
    appetite: Appetite,
    /// Apples at most two cells away that a restrained agent leaves near one that it eats; 0 to 12.
    leave: u32,
    /// Rounds without an apple after which a restrained agent is hungry.
    patience: u32,
    /// Whether it remembers apples and bare places that it does not see now.
    memory: bool,
    /// Probability with which it zaps a player who is ahead; 0 to 1.
    zap: f64,
    /// What it reads of what it sees.
    reads: Reads,
}

impl Default for Params {
    fn default() -> Self {
        Params { appetite: Appetite::Restrained, leave: 4, patience: 25, memory: true, zap: 0.0, reads: Reads::Table }
    }
}

/// Looks for apples.
pub struct Forager {
    params: Params,
    numbers: Numbers,
    view: (TableSlot, [usize; 3]),
    scene: TextSlot,
    go: u16,
    zap: u16,
}

/// Numbers of the observation.
struct Numbers {
    active: NumberSlot,
    x: NumberSlot,
    y: NumberSlot,
    width: NumberSlot,
    height: NumberSlot,
    round: NumberSlot,
    eaten: NumberSlot,
    faces: NumberSlot,
    may_zap: NumberSlot,
}

/// What an agent keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Places where apples grow, by (column, row): whether there was one when it was last seen.
    places: BTreeMap<(i32, i32), bool>,
    /// Apples eaten so far, and rounds since the last one.
    eaten: u32,
    hungry: u32,
    /// Where it wanders, if it knows of no apple.
    heading: u8,
}

const WAYS: [(i32, i32); 4] = [(0, -1), (1, 0), (0, 1), (-1, 0)];

fn distance(a: (i32, i32), b: (i32, i32)) -> i32 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// What is in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Grass,
    Apple,
    Player,
}

/// Reads a line such as `an apple: 2 left, 1 up`: columns and rows from the own cell, and what is there.
fn read(line: &str) -> Option<(i32, i32, What)> {
    let (what, place) = line.split_once(':')?;
    let what = match what.trim() {
        "bare grass" => What::Grass,
        "an apple" => What::Apple,
        "another player" => What::Player,
        _ => return None,
    };
    let mut at = (0, 0);
    for part in place.split(',').map(str::trim).filter(|part| *part != "here") {
        let (steps, way) = part.split_once(' ')?;
        let steps: i32 = steps.parse().ok()?;
        match way {
            "left" => at.0 -= steps,
            "right" => at.0 += steps,
            "up" => at.1 -= steps,
            "down" => at.1 += steps,
            _ => return None,
        }
    }
    Some((at.0, at.1, what))
}

impl Forager {
    /// Returns what an agent sees, in the order in which the world shows it.
    fn sees(&self, seen: Observation<'_>) -> Vec<(i32, i32, What)> {
        let (table, [dx, dy, kind]) = self.view;
        let number = |row: &[f64]| {
            let what = [What::Grass, What::Apple, What::Player].get(row[kind] as usize).copied()?;
            Some((row[dx] as i32, row[dy] as i32, what))
        };
        match self.params.reads {
            Reads::Table => seen.table(table).filter_map(number).collect(),
            Reads::Words => seen.text(self.scene).lines().filter_map(read).collect(),
        }
    }

    /// Returns whether an agent that knows these places eats the apple at one of them.
    fn eats(&self, places: &BTreeMap<(i32, i32), bool>, hungry: bool, at: (i32, i32)) -> bool {
        if hungry || self.params.appetite == Appetite::Greedy {
            return true;
        }
        let mut left = 0;
        for dy in -2..=2i32 {
            for dx in -2..=2i32 {
                let near = (dx, dy) != (0, 0) && dx * dx + dy * dy <= 4;
                left += u32::from(near && places.get(&(at.0 + dx, at.1 + dy)) == Some(&true));
            }
        }
        left >= self.params.leave
    }
}

impl Policy for Forager {
    const NAME: &'static str = "forager";
    const SUMMARY: &'static str = "Looks for apples on a field, with or without restraint and memory";
    type Params = Params;
    type State = Kept;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0..=12, "leave", params.leave)?;
        Invalid::within(0.0..=1.0, "zap", params.zap)?;
        let (go, argument) = setup.act("go")?;
        let message = format!("the action `go` of the world `{}` is not one of four moves", setup.world);
        let fits = matches!(argument, ActionArgument::Choice(ways) if ways.len() == 4);
        Invalid::unless(fits, "kind", message)?;
        let numbers = Numbers {
            active: setup.number("active")?,
            x: setup.number("x")?,
            y: setup.number("y")?,
            width: setup.number("width")?,
            height: setup.number("height")?,
            round: setup.number("round")?,
            eaten: setup.number("eaten")?,
            faces: setup.number("faces")?,
            may_zap: setup.number("may-zap")?,
        };
        let view = setup.table("seen", ["dx", "dy", "kind"])?;
        let scene = setup.text("scene")?;
        Ok(Forager { params, numbers, view, scene, go, zap: setup.act("zap")?.0 })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> Kept {
        Kept::default()
    }

    fn memory_bytes(&self) -> usize {
        // Places of some patches.
        80 * 16
    }

    async fn act(&self, kept: &mut Kept, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let number = |slot: NumberSlot| seen.number(slot);
        if number(self.numbers.round) == 0.0 {
            *kept = Kept { heading: turn.draws.below(4) as u8, ..Kept::default() };
        }
        kept.hungry = if number(self.numbers.eaten) as u32 > kept.eaten { 0 } else { kept.hungry.saturating_add(1) };
        kept.eaten = number(self.numbers.eaten) as u32;
        if number(self.numbers.active) == 0.0 {
            return Ok(());
        }
        let at = (number(self.numbers.x) as i32, number(self.numbers.y) as i32);
        if !self.params.memory {
            kept.places.clear();
        }
        let mut others = BTreeSet::new();
        for (dx, dy, what) in self.sees(seen) {
            let cell = (at.0 + dx, at.1 + dy);
            match what {
                What::Player => {
                    others.insert(cell);
                }
                What::Apple | What::Grass => {
                    kept.places.insert(cell, what == What::Apple);
                }
            }
        }
        let (ahead_x, ahead_y) = WAYS[number(self.numbers.faces) as usize % 4];
        let is_ahead = |cell: &(i32, i32)| {
            let (x, y) = (cell.0 - at.0, cell.1 - at.1);
            (1..=3).contains(&(x * ahead_x + y * ahead_y)) && (x * ahead_y - y * ahead_x).abs() <= 1
        };
        if self.params.zap > 0.0
            && number(self.numbers.may_zap) == 1.0
            && others.iter().any(is_ahead)
            && turn.draws.chance(self.params.zap)
        {
            turn.act(self.zap, 0.0);
            return Ok(());
        }
        let hungry = kept.hungry >= self.params.patience;
        let places = &kept.places;
        let eats = |cell: (i32, i32)| self.eats(places, hungry, cell);
        let apples = places.iter().filter(|(_, apple)| **apple).map(|(cell, _)| *cell);
        // Of the nearest ones the first by column and row.
        let goal = apples.filter(|cell| *cell != at && eats(*cell)).min_by_key(|cell| distance(*cell, at));
        if goal.is_none() && turn.draws.chance(0.1) {
            kept.heading = turn.draws.below(4) as u8;
        }
        let (width, height) = (number(self.numbers.width) as i32, number(self.numbers.height) as i32);
        let mut best: Option<(i32, u8)> = None;
        let first = turn.draws.below(4) as u8;
        for way in (0..4u8).map(|i| (first + i) % 4) {
            let (dx, dy) = WAYS[usize::from(way)];
            let to = (at.0 + dx, at.1 + dy);
            if !(0..width).contains(&to.0) || !(0..height).contains(&to.1) {
                if goal.is_none() && way == kept.heading {
                    kept.heading = turn.draws.below(4) as u8;
                }
                continue;
            }
            let spoils = kept.places.get(&to) == Some(&true) && !self.eats(&kept.places, hungry, to);
            let far = match goal {
                Some(goal) => distance(to, goal),
                None => i32::from(way != kept.heading),
            };
            let cost = far + 1_000 * i32::from(spoils) + 100 * i32::from(others.contains(&to));
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, way));
            }
        }
        // Rather than spoil a patch it stays where it is.
        if let Some((_, way)) = best.filter(|(cost, _)| *cost < 1_000) {
            turn.act(self.go, f64::from(way));
        }
        Ok(())
    }
}
