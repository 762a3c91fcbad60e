//! A maze of which two agents see half each: they talk, and then agree on every move. See README.md.

mod maze;
#[cfg(test)]
mod tests;

use maze::{MOVES, Maze, WAYS, walk};
use polity_kernel::Invalid;
use polity_kernel::ask::Value;
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, NumberSlot, TextSlot};
use polity_kernel::items::Item;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<RelayMaze>(files);
}

/// Who works on a maze.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// One agent, who sees the whole map.
    Solo,
    /// Two agents. Each cell is seen by one of them, drawn at random.
    #[default]
    Pair,
}

/// Parameters of mazes.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Who works on a maze.
    pairing: Pairing,
    /// Cells on a side; 3 to 20.
    size: u32,
    /// Share of walls; 0 to 0.6.
    walls: f64,
    /// Moves of the shortest path, at least.
    least: u32,
    /// Turns of talk before the first move, of both agents together; 0 to 20. One agent alone does not talk.
    talk: u32,
    /// Turns of an episode, of both agents together.
    turns: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params { pairing: Pairing::Pair, size: 6, walls: 0.3, least: 7, talk: 2, turns: 60 }
    }
}

/// A maze of which agents see parts.
pub struct RelayMaze {
    params: Params,
    map: TextSlot,
    conversation: TextSlot,
    objected: NumberSlot,
    say: u16,
    propose: u16,
}

/// Work on one maze.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    maze: Maze,
    /// Which seat sees each cell. Both see start and goal.
    seen_by: Vec<u8>,
    /// Turns taken.
    turn: u32,
    /// What was said, in turn.
    said: Vec<String>,
    /// The move that waits for the other's consent.
    proposal: Option<u8>,
    /// The move of each seat that the other did not agree to, until its next turn.
    objected: Vec<Option<u8>>,
    objections: u32,
    /// The moves agreed on.
    path: Vec<u8>,
    /// Where they lead, if through no wall.
    at: Option<u32>,
}

impl RelayMaze {
    fn alone(&self) -> bool {
        self.params.pairing == Pairing::Solo
    }

    fn talking(&self, work: &Work) -> bool {
        !self.alone() && work.turn < self.params.talk
    }

    /// Returns whose turn it is; nobody's once the path is decided.
    fn seat(&self, work: &Work) -> Option<Seat> {
        let over = work.at.is_none_or(|at| at == work.maze.goal) || work.turn >= self.params.turns;
        (!over).then_some(work.turn % self.seats())
    }

    fn sees(&self, work: &Work, seat: Seat, cell: usize) -> bool {
        let ends = cell == work.maze.start as usize || cell == work.maze.goal as usize;
        ends || self.alone() || work.seen_by.get(cell).is_some_and(|owner| u32::from(*owner) == seat)
    }

    /// Draws the map of a seat: a line for each row from the top.
    fn drawn(&self, work: &Work, seat: Seat) -> String {
        let size = self.params.size as usize;
        let sign = |cell: usize| match cell {
            _ if work.at == Some(cell as u32) => '@',
            _ if cell == work.maze.goal as usize => 'G',
            _ if !self.sees(work, seat, cell) => '?',
            _ if work.maze.walls[cell] => '#',
            _ => '.',
        };
        let row = |row: usize| (0..size).map(|column| sign(row * size + column)).collect::<String>();
        (0..size).map(row).collect::<Vec<_>>().join("\n")
    }

    /// Makes a move that all agree on. A move into a wall or out of the maze ends the walk.
    fn go(work: &mut Work, way: u8) {
        work.path.push(way);
        work.at = work.at.and_then(|at| work.maze.step(at, way)).filter(|to| !work.maze.walls[*to as usize]);
        work.objected.fill(None);
    }
}

impl Environment for RelayMaze {
    const NAME: &'static str = "relay-maze";
    const SUMMARY: &'static str = "Two agents see half of a maze each, talk, and agree on every move";
    type Params = Params;
    type State = Work;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::within(3..=20, "size", params.size)?;
        Invalid::within(0.0..=0.6, "walls", params.walls)?;
        let most = 2 * (params.size - 1);
        Invalid::unless(
            (1..=most).contains(&params.least),
            "least",
            format!(
                "a maze of {0} by {0} has shortest paths of 1 to {most} moves for certain, is {1}",
                params.size, params.least
            ),
        )?;
        Invalid::within(0..=20, "talk", params.talk)?;
        let message = format!("must be more than the {} turns of talk, is {}", params.talk, params.turns);
        Invalid::unless(params.turns > params.talk, "turns", message)?;
        declare.number("seat", "0 for the agent who begins, 1 for the other", |_, _, seat| f64::from(*seat));
        declare.shared_number("talking", "1 in turns of talk, 0 in turns of moves", |maze: &RelayMaze, work| {
            f64::from(u8::from(maze.talking(work)))
        });
        declare.shared_number("messages", "messages so far, of both", |_, work: &Work| work.said.len() as f64);
        declare.shared_number("turn", "turns taken so far, of both", |_, work| f64::from(work.turn));
        declare.shared_number("size", "cells on a side", |maze: &RelayMaze, _| f64::from(maze.params.size));
        let doc = "the move that waits for consent: 0 up, 1 right, 2 down, 3 left; -1 for none";
        declare.shared_number("proposal", doc, |_, work| work.proposal.map_or(-1.0, f64::from));
        let doc = "the agent's last proposal, if the other did not agree to it; -1 for none";
        let objected = declare.number_slot("objected", doc);
        let doc = "the maze as the agent sees it, row by row from the top: `#` wall, `.` free, `?` not seen, `@` where they are, `G` the goal";
        let map = declare.text_slot("map", doc);
        let doc = "what was said, line by line, each with `You:` or `Other:` before it";
        let conversation = declare.text_slot("conversation", doc);
        let say = declare.action("say", ActionArgument::Text, "say something to the other agent, in a turn of talk");
        let ways = WAYS.iter().map(|way| (*way).to_owned()).collect();
        let doc = "propose a move; it is made once the other agrees";
        let propose = declare.action("propose", ActionArgument::Choice(ways), doc);
        declare.action("agree", ActionArgument::Nothing, "agree to the other's proposal: the move is made");
        declare.scalar("solved", "share of mazes whose agreed path leads from the start to the goal", |_, work| {
            f64::from(u8::from(work.solved()))
        });
        declare.scalar("failed", "share of mazes without such a path", |_, work| f64::from(u8::from(!work.solved())));
        declare.scalar("progress", "part of the way to the goal that the agreed path covers, 0 to 1", |_, work| {
            work.progress()
        });
        declare.scalar("objections", "proposals that the other did not agree to", |_, work| f64::from(work.objections));
        declare.scalar("into-walls", "share of mazes in which the agreed path leads into a wall", |_, work| {
            f64::from(u8::from(work.at.is_none()))
        });
        declare.column("solved", "1 once the agent's maze is solved", Some((0.0, 1.0)), |_, work, _| {
            f64::from(u8::from(work.solved()))
        });
        Ok(RelayMaze { params, map, conversation, objected, say, propose })
    }

    fn seats(&self) -> u32 {
        if self.alone() { 1 } else { 2 }
    }

    fn reset(&self, _: &Item, draws: &mut Draws) -> Work {
        let maze = Maze::drawn(self.params.size, self.params.walls, self.params.least, draws);
        let seen_by = (0..maze.walls.len()).map(|_| draws.below(2) as u8).collect();
        let at = Some(maze.start);
        Work {
            maze,
            seen_by,
            turn: 0,
            said: Vec::new(),
            proposal: None,
            objected: vec![None; self.seats() as usize],
            objections: 0,
            path: Vec::new(),
            at,
        }
    }

    fn observe(&self, work: &Work, seat: Seat, observation: &mut ObservationRow<'_>) {
        let objected = work.objected.get(seat as usize).copied().flatten();
        observation.number(self.objected, objected.map_or(-1.0, f64::from));
        observation.text(self.map, self.drawn(work, seat));
        let line = |(turn, said): (u32, &String)| {
            let who = if turn % self.seats() == seat { "You" } else { "Other" };
            format!("{who}: {said}\n")
        };
        observation.text(self.conversation, (0u32..).zip(&work.said).map(line).collect::<String>());
    }

    fn offers(&self, work: &Work, seat: Seat, action: u16) -> bool {
        if self.seat(work) != Some(seat) {
            return false;
        }
        match (self.talking(work), action) {
            (true, action) => action == self.say,
            (false, action) if action == self.propose => true,
            (false, action) => action != self.say && work.proposal.is_some(),
        }
    }

    fn step(&self, work: &mut Work, moves: &[Move], _: &mut Draws) -> StepResult {
        let before = work.progress();
        if let Some(seat) = self.seat(work) {
            let made = moves.first();
            if self.talking(work) {
                let said = made.and_then(|made| match &made.argument {
                    Value::Text(said) => Some(said.replace('\n', " ")),
                    _ => None,
                });
                work.said.push(said.unwrap_or_default());
            } else if let Some(made) = made {
                work.objected[seat as usize] = None;
                let proposed = match &made.argument {
                    Value::Choice(way) if made.action == self.propose => Some((*way).min(MOVES as u32 - 1) as u8),
                    _ => None,
                };
                match (proposed, work.proposal.take()) {
                    (None, Some(way)) => RelayMaze::go(work, way),
                    (Some(way), Some(other)) if way == other => RelayMaze::go(work, way),
                    (Some(way), _) if self.alone() => RelayMaze::go(work, way),
                    (Some(way), other) => {
                        if other.is_some() {
                            work.objections += 1;
                            work.objected[1 - seat as usize] = other;
                        }
                        work.proposal = Some(way);
                    }
                    (None, None) => {}
                }
            }
        }
        work.turn += 1;
        let gain = work.progress() - before;
        StepResult {
            rewards: vec![gain; self.seats() as usize],
            results: vec![String::new(); moves.len()],
            done: work.turn >= self.params.turns,
        }
    }

    fn solved(&self, work: &Work, _: Option<&str>) -> Option<bool> {
        Some(work.solved())
    }
}

impl Work {
    /// Returns whether the agreed path leads to the goal: walks it from the start.
    fn solved(&self) -> bool {
        walk(&self.maze, &self.path) == Some(self.maze.goal)
    }

    /// Returns the part of the way to the goal that the agreed path covers; 0 if it leads into a wall or away.
    fn progress(&self) -> f64 {
        let all = f64::from(self.maze.distance.max(1));
        let left = walk(&self.maze, &self.path).and_then(|at| self.maze.distances(self.maze.goal)[at as usize]);
        left.map_or(0.0, |left| (1.0 - f64::from(left) / all).max(0.0))
    }
}
