//! Tells what it sees of a maze, and agrees on moves that shorten the way. See README.md.

mod words;

use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot, TextSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use words::{Counting, in_force, told};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<MazePartner>(files);
}

/// How well an agent speaks of a maze.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Skill {
    /// Tells all cells that it sees, and does not say how it counts them.
    #[default]
    Weak,
    /// Says how it counts them, too.
    Strong,
}

/// Parameters of agents in a maze.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The agent who begins.
    first: Skill,
    /// The other agent.
    second: Skill,
    /// Messages of a conversation that a strong agent speaks in place of the one whose turn it is (relay inference); 0 to 20.
    relay: u32,
    /// The first of them, from 0; 0 to 20.
    relay_from: u32,
    /// Whether strong agents say how they count. Otherwise they say as many other words (a placebo).
    stated: bool,
    /// Ways of counting cells of which each agent has one by habit, drawn at random; 1 to 4.
    habits: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { first: Skill::Weak, second: Skill::Weak, relay: 0, relay_from: 0, stated: true, habits: 4 }
    }
}

/// Works on mazes with another.
pub struct MazePartner {
    params: Params,
    numbers: Numbers,
    map: TextSlot,
    conversation: TextSlot,
    say: u16,
    propose: u16,
    agree: u16,
}

/// Numbers of the observation.
struct Numbers {
    active: NumberSlot,
    seat: NumberSlot,
    talking: NumberSlot,
    messages: NumberSlot,
    turn: NumberSlot,
    proposal: NumberSlot,
    objected: NumberSlot,
}

/// What an agent keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// How it counts cells by habit.
    habit: u8,
    /// Cells that the other did not want to enter, in this maze.
    objected: Vec<u32>,
}

/// A maze as an agent believes it to be: its cells are numbered row by row from the top left.
struct Believed {
    size: u32,
    at: u32,
    goal: u32,
    /// Whether each cell is a wall; `None` if nothing is known of it.
    seen: Vec<Option<bool>>,
    told: Vec<Option<bool>>,
    objected: Vec<u32>,
}

impl Believed {
    /// Reads a map as the world draws it. `None`: it has no goal, or the agent stands nowhere.
    fn read(map: &str) -> Option<Believed> {
        let size = map.lines().count() as u32;
        let signs: Vec<char> = map.lines().flat_map(str::chars).collect();
        let goal = signs.iter().position(|sign| *sign == 'G')? as u32;
        let at = signs.iter().position(|sign| *sign == '@')? as u32;
        let seen: Vec<Option<bool>> = signs.iter().map(|sign| (*sign != '?').then_some(*sign == '#')).collect();
        let told = vec![None; seen.len()];
        Some(Believed { size, at, goal, seen, told, objected: Vec::new() })
    }

    fn is_wall(&self, cell: u32) -> bool {
        let of = |known: &[Option<bool>]| known.get(cell as usize).copied().flatten();
        of(&self.seen).or_else(|| of(&self.told)) == Some(true) || self.objected.contains(&cell)
    }

    /// Returns the cell that a move leads to: up, right, down, left.
    fn step(&self, at: u32, way: u8) -> Option<u32> {
        let (row, column) = (at / self.size, at % self.size);
        match way {
            0 => row.checked_sub(1).map(|_| at - self.size),
            1 => (column + 1 < self.size).then_some(at + 1),
            2 => (row + 1 < self.size).then_some(at + self.size),
            _ => column.checked_sub(1).map(|_| at - 1),
        }
    }

    /// Returns the moves from every cell to the goal. Cells of which nothing is known count as free.
    fn distances(&self) -> Vec<Option<u32>> {
        let mut found = vec![None; self.seen.len()];
        found[self.goal as usize] = Some(0);
        let mut next = VecDeque::from([(self.goal, 0)]);
        while let Some((at, moves)) = next.pop_front() {
            for to in (0..4).filter_map(|way| self.step(at, way)) {
                if !self.is_wall(to) && found[to as usize].is_none() {
                    found[to as usize] = Some(moves + 1);
                    next.push_back((to, moves + 1));
                }
            }
        }
        found
    }

    /// Returns the moves that shorten the way. If the agent believes that there is no way, it forgets objections, and then what it
    /// was told.
    fn good_moves(&mut self) -> Vec<u8> {
        for forget in 0..3 {
            match forget {
                1 => self.objected.clear(),
                2 => self.told.fill(None),
                _ => {}
            }
            let distances = self.distances();
            let of = |cell: u32| distances.get(cell as usize).copied().flatten();
            if let Some(here) = of(self.at) {
                let shortens = |way: &u8| self.step(self.at, *way).and_then(of).is_some_and(|there| there < here);
                return (0..4).filter(shortens).collect();
            }
        }
        Vec::new()
    }
}

impl MazePartner {
    /// Returns whether a strong agent speaks the next message.
    fn speaks_strongly(&self, seat: f64, messages: u32) -> bool {
        let Params { first, second, relay, relay_from, .. } = self.params;
        let relayed = messages >= relay_from && messages - relay_from < relay;
        relayed || (if seat == 0.0 { first } else { second }) == Skill::Strong
    }
}

impl Policy for MazePartner {
    const NAME: &'static str = "maze-partner";
    const SUMMARY: &'static str =
        "Tells what it sees of a maze, well or badly, and agrees on moves that shorten the way";
    type Params = Params;
    type State = Kept;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Invalid::within(0..=20, "relay", params.relay)?;
        Invalid::within(0..=20, "relay_from", params.relay_from)?;
        Invalid::within(1..=4, "habits", params.habits)?;
        let (propose, argument) = setup.act("propose")?;
        let message = format!("the action `propose` of the world `{}` is not one of four moves", setup.world);
        let fits = matches!(argument, ActionArgument::Choice(ways) if ways.len() == 4);
        Invalid::unless(fits, "kind", message)?;
        let numbers = Numbers {
            active: setup.number("active")?,
            seat: setup.number("seat")?,
            talking: setup.number("talking")?,
            messages: setup.number("messages")?,
            turn: setup.number("turn")?,
            proposal: setup.number("proposal")?,
            objected: setup.number("objected")?,
        };
        let (map, conversation) = (setup.text("map")?, setup.text("conversation")?);
        let (say, agree) = (setup.act("say")?.0, setup.act("agree")?.0);
        Ok(MazePartner { params, numbers, map, conversation, say, propose, agree })
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> Kept {
        Kept { habit: draws.below(u64::from(self.params.habits)) as u8, objected: Vec::new() }
    }

    async fn act(&self, kept: &mut Kept, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let seen = turn.observation;
        let number = |slot: NumberSlot| seen.number(slot);
        if number(self.numbers.turn) < 2.0 {
            kept.objected.clear();
        }
        if number(self.numbers.active) == 0.0 {
            return Ok(());
        }
        let Some(mut maze) = Believed::read(seen.text(self.map)) else { return Ok(()) };
        let habit = Counting::of(kept.habit);
        let lines: Vec<&str> = seen.text(self.conversation).lines().collect();
        if number(self.numbers.talking) == 1.0 {
            let counting = in_force(&lines).unwrap_or(habit);
            let strong = self.speaks_strongly(number(self.numbers.seat), number(self.numbers.messages) as u32);
            turn.act_text(self.say, words::tell(&maze.seen, maze.size, counting, strong, self.params.stated));
            return Ok(());
        }
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("Other:")) {
            let counting = in_force(&lines[..=i]).unwrap_or(habit);
            for (cell, wall) in told(line, maze.size, counting) {
                maze.told[cell as usize] = Some(wall);
            }
        }
        let objected = number(self.numbers.objected);
        if objected >= 0.0 {
            kept.objected.extend(maze.step(maze.at, objected as u8).filter(|cell| *cell != maze.goal));
        }
        maze.objected.clone_from(&kept.objected);
        let good = maze.good_moves();
        let proposal = number(self.numbers.proposal);
        match good.first() {
            _ if good.iter().any(|way| f64::from(*way) == proposal) => turn.act(self.agree, 0.0),
            Some(way) => turn.act(self.propose, f64::from(*way)),
            None => {}
        }
        Ok(())
    }
}
