//! Five tasks of a swarm on a grid, with a small view and local messages. See README.md.

mod arena;
mod shape;
#[cfg(test)]
mod tests;

use arena::{Arena, FREE, GONE, Goal, Ground, MOVES};
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, Axis, NumberSlot, TableSlot, TextSlot};
use polity_kernel::policy::Person;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::{Draws, philox};
use polity_kernel::world::{AgentActions, DeclareWorld, Future, ObservationRow, World, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.world::<Swarm>(files);
}

/// What the agents have to do together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Surround a prey that flees; a point each time.
    #[default]
    Pursuit,
    /// Switch all lights on, then all off, and so on; a point each time.
    Synchronize,
    /// Carry food to the nest; a point for each piece.
    Forage,
    /// Stand in the outline of a square; points are the steps that the swarm came nearer to it.
    Flock,
    /// Five agents push a box out of a gap; who leaves through the gap gets the share of the rounds that is left.
    Transport,
}

/// Parameters of the world.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// What the agents have to do together.
    task: Task,
    /// Agents of a swarm; 1 to 100. More agents are several swarms, each on a grid of its own; the last may be smaller.
    size: u32,
    /// Cells per row, walls included; 9 to 100.
    width: u32,
    /// Rows, walls included; 9 to 100.
    height: u32,
    /// Cells per row, and rows, of what an agent sees around itself: an odd number. Messages reach as far.
    view: u32,
    /// Rounds of a run.
    rounds: u32,
    /// Show each agent what is around a cell drawn at random, in place of its own (a placebo).
    elsewhere: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params { task: Task::Pursuit, size: 10, width: 12, height: 12, view: 5, rounds: 100, elsewhere: false }
    }
}

/// Swarms, each on a grid.
pub struct Swarm {
    params: Params,
    ground: Ground,
    seen: Seen,
}

/// Observations of agents.
struct Seen {
    active: NumberSlot,
    x: NumberSlot,
    y: NumberSlot,
    lit: NumberSlot,
    view: TableSlot,
    heard: TableSlot,
    words: TextSlot,
}

/// The grids, the moves of this round, and what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// By swarm.
    arenas: Vec<Arena>,
    /// The key of random places.
    key: u64,
    round: u32,
    /// By agent, for this round.
    moves: Vec<u8>,
    said: Vec<Said>,
    /// By agent, what it said in the last round, and where.
    last: Vec<Said>,
}

impl State {
    /// Returns how many agents of all swarms did what in the last round.
    fn did(&self) -> [u32; 6] {
        let mut all = [0; 6];
        for arena in &self.arenas {
            all.iter_mut().zip(arena.did).for_each(|(sum, did)| *sum += did);
        }
        all
    }
}

/// What an agent said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    number: Option<f64>,
    words: String,
}

/// Acts, by number.
const MOVE: u16 = 0;
const TELL: u16 = 1;
/// Characters of a text, as published; longer ones are cut.
const LONGEST: usize = 120;

impl Swarm {
    fn declare(declare: &mut DeclareWorld<Self>, params: Params) -> Seen {
        let Params { task, width, height, view, rounds, .. } = params;
        let doc = "0: pursuit, 1: synchronize, 2: forage, 3: flock, 4: transport";
        declare.shared_number("task", doc, move |_, _| f64::from(task as u8));
        let doc = "rows and columns that the agent sees in each direction; messages reach as far";
        declare.shared_number("reach", doc, move |_, _| f64::from(view / 2));
        declare.shared_number("width", "columns of the grid", move |_, _| f64::from(width));
        declare.shared_number("height", "rows of the grid", move |_, _| f64::from(height));
        declare.shared_number("left", "rounds to come", move |_, state| f64::from(rounds.saturating_sub(state.round)));
        declare.number("size", "agents of the swarm", |world, state, who| world.arena(state, *who).0.at.len() as f64);
        declare.number("points", "the swarm's points so far", |world, state, who| world.arena(state, *who).0.score);
        let active = declare.number_slot("active", "0 when the agent has left the grid");
        let x = declare.number_slot("x", "the agent's column, from 0 on");
        let y = declare.number_slot("y", "the agent's row, from 0 on, downwards");
        let lit = declare.number_slot("lit", "1 if its light is on, or it carries food");
        let doc = "what is around, by columns and rows from the agent: 1 wall, 2 food, 3 nest, 4 box, 5 open gap, 6 prey, \
                   7 agent (light on, or with food), 8 agent (light off, or without); other cells are free";
        let view = declare.table_slot("view", ["dx", "dy", "what"], doc);
        let doc = "numbers that agents told who were in view, in the last round";
        let heard = declare.table_slot("heard", ["number"], doc);
        let words = declare.text_slot("words", "texts that such agents said");
        let moves = MOVES.map(String::from).into();
        declare.action("move", ActionArgument::Choice(moves), "go to a free cell beside, or switch the light");
        let most = f64::from(width) * f64::from(height);
        let doc = "tell a number to all in view, who read it in the next round";
        declare.action("tell", ActionArgument::Number { low: -most, high: most }, doc);
        let doc = "say something to all in view; 120 characters at most";
        declare.action("say", ActionArgument::Text, doc);
        let most = f64::from(width - 1);
        let doc = "the agent's column; -1 if it has left";
        declare.coordinate(Axis::X, "x", doc, (0.0, most), |world, state, who| {
            world.place(state, *who).map_or(-1.0, |(x, _)| x)
        });
        let most = f64::from(height - 1);
        let doc = "the agent's row; -1 if it has left";
        declare.coordinate(Axis::Y, "y", doc, (0.0, most), |world, state, who| {
            world.place(state, *who).map_or(-1.0, |(_, y)| y)
        });
        let doc = "1 if its light is on, or it carries food";
        declare.column("lit", doc, Some((0.0, 1.0)), |world, state, who| {
            let (arena, place) = world.arena(state, *who);
            f64::from(u8::from(arena.lit[place]))
        });
        declare.scalar("score", "the swarm's points; of several swarms, their mean", |_, state| {
            state.arenas.iter().map(|arena| arena.score).sum::<f64>() / state.arenas.len().max(1) as f64
        });
        Swarm::declare_dynamics(declare);
        Seen { active, x, y, lit, view, heard, words }
    }

    /// Measures of the group, as published.
    fn declare_dynamics(declare: &mut DeclareWorld<Self>) {
        let share = |part: u32, did: [u32; 6]| f64::from(part) / f64::from(did.iter().sum::<u32>().max(1));
        let doc = "share of the agents that stayed in their cells in the round";
        declare.scalar("still", doc, move |_, state| {
            let did = state.did();
            share(did[0] + did[5], did)
        });
        let doc = "share of the agents that did what most did: stay, go in one direction, or switch";
        declare.scalar("dominant", doc, move |_, state| {
            let did = state.did();
            share(did.into_iter().max().unwrap_or(0), did)
        });
        let doc = "entropy of the directions of those that moved, in bits: 0 if all go the same way, 2 at most";
        declare.scalar("entropy", doc, |_, state| {
            let went = &state.did()[1..5];
            let all = f64::from(went.iter().sum::<u32>());
            let bits = |n: &u32| f64::from(*n) / all * libm::log2(all / f64::from(*n));
            went.iter().filter(|n| **n > 0).map(bits).fold(0.0, |sum, bits| sum + bits)
        });
        let doc = "share of the cells, walls and things aside, on which an agent has been";
        declare.scalar("explored", doc, |_, state| {
            let cells = || state.arenas.iter().flat_map(|arena| arena.cells.iter().zip(&arena.visited));
            let free = || cells().filter(|(cell, _)| **cell == FREE);
            free().filter(|(_, visited)| **visited).count() as f64 / (free().count() as f64).max(1.0)
        });
    }

    /// Returns the grid of an agent, and its number there.
    fn arena<'a>(&self, state: &'a State, who: u32) -> (&'a Arena, usize) {
        (&state.arenas[(who / self.params.size) as usize], (who % self.params.size) as usize)
    }

    /// Returns column and row of an agent that has not left.
    fn place(&self, state: &State, who: u32) -> Option<(f64, f64)> {
        let (arena, place) = self.arena(state, who);
        let at = arena.at[place];
        (at != GONE).then(|| (f64::from(at % self.ground.width), f64::from(at / self.ground.width)))
    }

    /// Returns whether one place is in view of another.
    fn sees(&self, from: u32, to: u32) -> bool {
        let (width, reach) = (self.ground.width, self.params.view / 2);
        from != GONE
            && to != GONE
            && (from % width).abs_diff(to % width) <= reach
            && (from / width).abs_diff(to / width) <= reach
    }

    /// Writes what is around a cell.
    fn look(&self, arena: &Arena, around: u32, observation: &mut ObservationRow<'_>) {
        let reach = i64::from(self.params.view / 2);
        let steps = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy)));
        observation.table(self.seen.view, |rows| {
            for (dx, dy) in steps.filter(|step| *step != (0, 0)) {
                let what = self.ground.step(around, (dx, dy)).map_or(FREE, |cell| self.ground.seen(arena, cell));
                if what != FREE {
                    rows.extend([dx as f64, dy as f64, f64::from(what)]);
                }
            }
        });
    }
}

impl World for Swarm {
    const NAME: &'static str = "swarm";
    const SUMMARY: &'static str =
        "A swarm on a grid with a small view: pursuit, lights in step, foraging, a shape, a box";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &WorldSetup<'_>, declare: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        let Params { task, size, width, height, view, rounds, .. } = params;
        Invalid::within(1..=100, "size", size)?;
        Invalid::within(9..=100, "width", width)?;
        Invalid::within(9..=100, "height", height)?;
        Invalid::unless(view % 2 == 1 && view <= 99, "view", format!("must be odd and at most 99, is {view}"))?;
        Invalid::within(1..=1_000_000, "rounds", rounds)?;
        // Half of the cells at most, so that everybody has room.
        let most = (width - 2) * (height - 2) / 2;
        let message = format!("{size} agents are too many for {width} x {height} cells; at most {most}");
        Invalid::unless(size <= most, "size", message)?;
        let late = "moves are of the same round; leave out `answers: {lag: ...}`";
        Invalid::unless(setup.lag == 0, "kind", late)?;
        let goal = match task {
            Task::Pursuit => Goal::Pursuit,
            Task::Synchronize => Goal::Synchronize,
            Task::Forage => Goal::Forage,
            Task::Flock => Goal::Flock,
            Task::Transport => Goal::Transport,
        };
        let ground = Ground { width, height, goal, rounds };
        Ok(Swarm { params, ground, seen: Swarm::declare(declare, params) })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let (n, size) = (setup.agents as usize, self.params.size);
        let sizes = (0..setup.agents).step_by(size as usize).map(|first| size.min(setup.agents - first));
        let arenas = sizes.map(|agents| self.ground.set_up(agents, draws)).collect();
        let said = vec![Said::default(); n];
        State { arenas, key: draws.u64(), round: 0, moves: vec![0; n], last: said.clone(), said }
    }

    fn observe(&self, state: &State, person: Person<'_>, observation: &mut ObservationRow<'_>) {
        let (arena, who) = self.arena(state, person.id);
        let at = arena.at[who];
        let first = person.id as usize - who;
        let Some((x, y)) = self.place(state, person.id) else { return };
        observation.number(self.seen.active, 1.0);
        observation.number(self.seen.x, x);
        observation.number(self.seen.y, y);
        observation.number(self.seen.lit, f64::from(u8::from(arena.lit[who])));
        let around = match self.params.elsewhere {
            true => {
                let drawn = philox([u64::from(person.id), u64::from(state.round)], state.key)[0];
                (drawn % u64::from(self.ground.width * self.ground.height)) as u32
            }
            false => at,
        };
        self.look(arena, around, observation);
        let near = || {
            arena
                .at
                .iter()
                .zip(&state.last[first..])
                .enumerate()
                .filter(|(i, (other, _))| *i != who && self.sees(at, **other))
        };
        observation.table(self.seen.heard, |rows| rows.extend(near().filter_map(|(_, (_, said))| said.number)));
        let words = near().map(|(_, (_, said))| said.words.as_str()).filter(|words| !words.is_empty());
        let words: Vec<&str> = words.collect();
        if !words.is_empty() {
            observation.text(self.seen.words, words.join("\n"));
        }
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        let who = actions.person.id as usize;
        for (i, act) in actions.acts().iter().enumerate() {
            match act.kind {
                MOVE => state.moves[who] = act.value as u8,
                TELL => state.said[who].number = Some(act.value),
                _ => {
                    let words = actions.text(i).unwrap_or_default();
                    state.said[who].words = words.chars().take(LONGEST).collect();
                }
            }
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        for (arena, moves) in state.arenas.iter_mut().zip(state.moves.chunks(self.params.size as usize)) {
            match arena.done {
                true => arena.did = [0; 6],
                false => self.ground.play(arena, moves, state.round, draws),
            }
        }
        state.moves.fill(0);
        state.last = std::mem::replace(&mut state.said, vec![Said::default(); state.last.len()]);
        state.round += 1;
        if state.arenas.iter().all(|arena| arena.done) {
            return Some("the task is done".into());
        }
        (state.round >= self.params.rounds).then(|| "the rounds are over".into())
    }
}
