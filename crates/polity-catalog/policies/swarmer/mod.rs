//! Rules for five tasks of a swarm on a grid, by what an agent sees nearby and is told. See README.md.

mod map;

use map::{AGENT, BOX, FOOD, FREE, Map, NEST, OUT, PREY, UNKNOWN};
use polity_kernel::Invalid;
use polity_kernel::interface::{NumberSlot, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Swarmer>(files);
}

/// Parameters of the rules.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Tell nothing, as often (a placebo): the number 0 in place of what was seen.
    blank: bool,
}

/// Follows the rules.
pub struct Swarmer {
    params: Params,
    numbers: Numbers,
    view: TableSlot,
    view_columns: [usize; 3],
    heard: TableSlot,
    move_act: u16,
    tell_act: u16,
}

/// Numbers of the observation.
struct Numbers {
    active: NumberSlot,
    size: NumberSlot,
    task: NumberSlot,
    reach: NumberSlot,
    width: NumberSlot,
    height: NumberSlot,
    x: NumberSlot,
    y: NumberSlot,
    lit: NumberSlot,
}

/// The tasks, in the order of the number that the world shows.
const PURSUIT: u8 = 0;
const SYNCHRONIZE: u8 = 1;
const FORAGE: u8 = 2;
const FLOCK: u8 = 3;

/// The move that switches the light.
const SWITCH: u8 = 5;
/// Rounds for which the place of the prey is remembered.
const MEMORY: u32 = 3;
/// Phases begin below this.
const PHASES: u64 = 16;

/// What an agent remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    map: Map,
    /// Synchronize: the agent's count of rounds. Else the place that it roams to.
    count: u32,
    /// The place of the prey, and the round in which it was last seen or heard of.
    prey: Option<(u32, u32)>,
}

/// What an agent sees in a round.
struct Sight {
    task: u8,
    at: u32,
    lit: bool,
    /// Cells with agents.
    taken: Vec<u32>,
    prey: Option<u32>,
    heard: Vec<f64>,
}

/// Returns a cell as a message: positive, or negative for the second of two kinds of place.
fn told(cell: u32, second: bool) -> f64 {
    let number = f64::from(cell) + 1.0;
    if second { -number } else { number }
}

impl Memory {
    /// Returns a move towards the nearest cell that fits, else towards the nearest that has not been seen, else on a random walk.
    fn walk(&mut self, sight: &Sight, draws: &mut Draws, fits: impl Fn(u32) -> bool) -> u8 {
        self.map.way(sight.at, &sight.taken, fits).unwrap_or_else(|| self.roam(sight, draws))
    }

    fn roam(&mut self, sight: &Sight, draws: &mut Draws) -> u8 {
        let unseen = self.map.way(sight.at, &sight.taken, |cell| self.map.cells[cell as usize] == UNKNOWN);
        unseen.unwrap_or_else(|| {
            if self.count == sight.at || draws.chance(0.1) {
                self.count = draws.below(self.map.cells.len() as u64) as u32;
            }
            let to = self.count;
            let way = self.map.way(sight.at, &sight.taken, |cell| cell == to);
            way.filter(|act| *act > 0).unwrap_or_else(|| 1 + draws.below(4) as u8)
        })
    }

    /// Goes to a free side of the prey, and tells where it is.
    fn pursue(&mut self, sight: &Sight, round: u32, draws: &mut Draws) -> (u8, f64) {
        let known = sight.prey.or(sight.heard.iter().find(|said| **said > 0.0).map(|said| *said as u32 - 1));
        self.prey = known.map(|cell| (cell, round)).or(self.prey.filter(|(_, seen)| round - seen < MEMORY));
        let told = sight.prey.map_or(0.0, |cell| told(cell, false));
        let Some((prey, _)) = self.prey else { return (self.roam(sight, draws), told) };
        let sides: Vec<u32> = self.map.beside(prey).map(|(_, cell)| cell).collect();
        (self.walk(sight, draws, |cell| sides.contains(&cell)), told)
    }

    /// Counts rounds from the least count that it hears of; lights are on in two rounds of four. Between switches it goes to the middle.
    fn synchronize(&mut self, sight: &Sight, draws: &mut Draws) -> (u8, f64) {
        let heard = sight.heard.iter().filter(|said| **said > 0.0).map(|said| *said as u32 - 1);
        self.count = heard.fold(self.count, u32::min) + 1;
        let told = told(self.count, false);
        if sight.lit != (self.count / 2 % 2 == 1) {
            return (SWITCH, told);
        }
        let (width, height) = (self.map.width, self.map.cells.len() as u32 / self.map.width.max(1));
        let middle = height / 2 * width + width / 2;
        let way = self.map.way(sight.at, &sight.taken, |cell| cell == middle);
        (way.unwrap_or_else(|| draws.below(5) as u8), told)
    }

    /// Goes to food, and with food to the nest, and tells of both in turn.
    fn forage(&mut self, sight: &Sight, round: u32, draws: &mut Draws) -> (u8, f64) {
        for said in &sight.heard {
            let (cell, what) = (said.abs() as usize, if *said > 0.0 { FOOD } else { NEST });
            if let Some(cell) = cell.checked_sub(1).and_then(|cell| self.map.cells.get_mut(cell)) {
                *cell = what;
            }
        }
        let what = if sight.lit { NEST } else { FOOD };
        let beside: Vec<u32> =
            self.map.with(what).flat_map(|cell| self.map.beside(cell)).map(|(_, cell)| cell).collect();
        let second = round % 2 == 1;
        let place = self.map.with(if second { NEST } else { FOOD }).next();
        let told = place.map_or(0.0, |cell| told(cell, second));
        (self.walk(sight, draws, |cell| beside.contains(&cell)), told)
    }

    /// Goes to the nearest place of the shape, in the middle of the grid, that no other agent is seen to hold.
    fn flock(&mut self, sight: &Sight, agents: u32, draws: &mut Draws) -> (u8, f64) {
        let (width, height) = (self.map.width, self.map.cells.len() as u32 / self.map.width.max(1));
        let last = agents / 4;
        let (left, top) = (width.saturating_sub(last) / 2, height.saturating_sub(last) / 2);
        let border = |x: u32, y: u32| x == 0 || y == 0 || x == last || y == last;
        let places: Vec<u32> = (0..=last)
            .flat_map(|y| (0..=last).map(move |x| (x, y)))
            .filter(|(x, y)| border(*x, *y))
            .map(|(x, y)| (top + y) * width + left + x)
            .collect();
        (self.walk(sight, draws, |cell| places.contains(&cell) && !sight.taken.contains(&cell)), told(sight.at, false))
    }

    /// Pushes the box from beside it, and leaves when the gap is open; tells of the box, or of the open gap.
    fn transport(&mut self, sight: &Sight, round: u32, draws: &mut Draws) -> (u8, f64) {
        for said in &sight.heard {
            let (cell, open) = (said.abs() as usize, *said < 0.0);
            if let Some(cell) = cell.checked_sub(1).and_then(|cell| self.map.cells.get_mut(cell)) {
                *cell = if open || *cell == OUT { OUT } else { BOX };
            }
        }
        let gap: Vec<u32> = self.map.with(OUT).collect();
        let boxes: Vec<u32> = self.map.with(BOX).collect();
        let pick = |cells: &[u32]| cells.get(round as usize % cells.len().max(1)).copied();
        if let Some(cell) = pick(&gap) {
            return (self.walk(sight, draws, |cell| gap.contains(&cell)), told(cell, true));
        }
        let told = pick(&boxes).map_or(0.0, |cell| told(cell, false));
        if let Some(push) = self.map.near(sight.at, BOX) {
            return (push, told);
        }
        let beside: Vec<u32> = boxes.iter().flat_map(|cell| self.map.beside(*cell)).map(|(_, cell)| cell).collect();
        (self.walk(sight, draws, |cell| beside.contains(&cell)), told)
    }

    /// Notes what it sees: every cell within reach is free unless the view says otherwise.
    fn look(&mut self, at: u32, reach: i64, view: impl Iterator<Item = ((i64, i64), u8)>) -> (Vec<u32>, Option<u32>) {
        for step in (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy))) {
            if let Some(cell) = self.map.step(at, step) {
                self.map.cells[cell as usize] = FREE;
            }
        }
        let (mut taken, mut prey) = (Vec::new(), None);
        for (step, what) in view {
            match (self.map.step(at, step), what) {
                (None, _) => {}
                (Some(cell), PREY) => {
                    taken.push(cell);
                    prey = Some(cell);
                }
                (Some(cell), AGENT..) => taken.push(cell),
                (Some(cell), _) => self.map.cells[cell as usize] = what,
            }
        }
        (taken, prey)
    }
}

impl Policy for Swarmer {
    const NAME: &'static str = "swarmer";
    const SUMMARY: &'static str = "Rules for swarms on a grid: chase, keep time, forage, form a shape, push together";
    type Params = Params;
    type State = Memory;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (view, view_columns) = setup.table("view", ["dx", "dy", "what"])?;
        let numbers = Numbers {
            active: setup.number("active")?,
            size: setup.number("size")?,
            task: setup.number("task")?,
            reach: setup.number("reach")?,
            width: setup.number("width")?,
            height: setup.number("height")?,
            x: setup.number("x")?,
            y: setup.number("y")?,
            lit: setup.number("lit")?,
        };
        let heard = setup.table("heard", ["number"])?.0;
        let (move_act, tell_act) = (setup.act("move")?.0, setup.act("tell")?.0);
        Ok(Swarmer { params, numbers, view, view_columns, heard, move_act, tell_act })
    }

    /// The map: a byte a cell.
    fn memory_bytes(&self) -> usize {
        1_000
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> Memory {
        Memory { count: draws.below(PHASES) as u32, ..Memory::default() }
    }

    async fn act(&self, memory: &mut Memory, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let of = |slot: NumberSlot| turn.observation.number(slot);
        let Numbers { active, size, task, reach, width, height, x, y, lit } = self.numbers;
        if of(active) == 0.0 {
            return Ok(());
        }
        let (width, height) = (of(width) as u32, of(height) as u32);
        if memory.map.cells.is_empty() {
            memory.map = Map::new(width, height);
        }
        let at = of(y) as u32 * width + of(x) as u32;
        let [dx, dy, what] = self.view_columns;
        let view = turn.observation.table(self.view).map(|row| ((row[dx] as i64, row[dy] as i64), row[what] as u8));
        let (taken, prey) = memory.look(at, of(reach) as i64, view);
        let heard = turn.observation.table(self.heard).map(|row| row[0]).collect();
        let sight = Sight { task: of(task) as u8, at, lit: of(lit) > 0.0, taken, prey, heard };
        let (round, draws) = (turn.round, &mut turn.draws);
        let (act, said) = match sight.task {
            PURSUIT => memory.pursue(&sight, round, draws),
            SYNCHRONIZE => memory.synchronize(&sight, draws),
            FORAGE => memory.forage(&sight, round, draws),
            FLOCK => memory.flock(&sight, of(size) as u32, draws),
            _ => memory.transport(&sight, round, draws),
        };
        turn.act(self.move_act, f64::from(act));
        turn.act(self.tell_act, if self.params.blank { 0.0 } else { said });
        Ok(())
    }
}
