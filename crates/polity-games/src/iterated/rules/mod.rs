//! The rules of the strategies, by family. Each is a function of the last turn and of the player's memory.

mod classics;
mod counting;
mod grudges;
mod memory_one;
mod probes;
mod reciprocity;
mod tournaments;

use super::Payoffs;
use super::strategy::{Memory, Move, chance};
use polity_base::rng::Draws;

pub(super) use classics::CYCLES;

use Move::{Cooperate as C, Defect as D};

/// A number that a rule takes.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) default: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether only whole numbers are allowed.
    pub(super) whole: bool,
}

/// A probability.
const fn probability(name: &'static str, default: f64) -> Key {
    Key { name, default, low: 0.0, high: 1.0, whole: false }
}

/// The first move.
#[derive(Debug)]
pub(super) enum Opening {
    Move(Move),
    /// Cooperation with the probability in this place of the numbers.
    Chance(usize),
    /// The first of the cycle.
    Cycle,
}

/// The place of the probability of cooperating first, in the numbers of strategies that remember one turn.
const FIRST: usize = 4;

/// Makes the numbers of a rule from those of its keys and the payoffs, or says what is wrong with them.
type Prepare = fn([f64; 5], &Payoffs) -> Result<[f64; 5], String>;

/// What a strategy does.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Its other names.
    pub(super) aliases: &'static [&'static str],
    pub(super) source: &'static str,
    pub(super) about: &'static str,
    pub(super) keys: &'static [Key],
    /// Whether it may draw. For strategies that remember one turn, their probabilities decide instead.
    pub(super) random: bool,
    pub(super) opening: Opening,
    /// The moves after the first.
    pub(super) next: fn(&mut Turn<'_>) -> Move,
    /// Makes the numbers of `next`; without it they are those of the keys.
    pub(super) prepare: Option<Prepare>,
}

impl Rule {
    /// A rule without draws, parameters and other names.
    const fn new(
        name: &'static str,
        source: &'static str,
        opening: Move,
        next: fn(&mut Turn<'_>) -> Move,
        about: &'static str,
    ) -> Rule {
        let opening = Opening::Move(opening);
        Rule { name, aliases: &[], source, about, keys: &[], random: false, opening, next, prepare: None }
    }

    /// The same rule under further names.
    const fn or(self, aliases: &'static [&'static str]) -> Rule {
        Rule { aliases, ..self }
    }

    /// The same rule with draws.
    const fn random(self) -> Rule {
        Rule { random: true, ..self }
    }

    /// The same rule with parameters.
    const fn with(self, keys: &'static [Key]) -> Rule {
        Rule { keys, ..self }
    }

    /// Returns whether its numbers are the five probabilities of a strategy that remembers one turn.
    pub(super) fn is_memory_one(&self) -> bool {
        matches!(self.opening, Opening::Chance(FIRST))
    }
}

/// Returns all rules, in a fixed order.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    let families = [
        classics::RULES,
        reciprocity::RULES,
        memory_one::RULES,
        grudges::RULES,
        counting::RULES,
        probes::RULES,
        tournaments::RULES,
    ];
    families.into_iter().flatten()
}

/// The last turn, as a player saw it, and what the player remembers.
pub(super) struct Turn<'a> {
    pub(super) numbers: &'a [f64; 5],
    pub(super) payoffs: &'a Payoffs,
    pub(super) memory: &'a mut Memory,
    pub(super) own: Move,
    pub(super) other: Move,
    pub(super) draws: &'a mut Draws,
}

impl Turn<'_> {
    /// Counts this turn; counting ends at `most`.
    #[inline]
    fn turns(&mut self, most: u32) -> u32 {
        self.memory.turn = (self.memory.turn + 1).min(most);
        self.memory.turn
    }

    /// Remembers the other's move, and returns its last `n`, the latest in the lowest bit; 1 is a defection.
    #[inline]
    fn others(&mut self, n: u32) -> u64 {
        self.memory.others = (self.memory.others << 1 | self.other as u64) & ((1 << n) - 1);
        self.memory.others
    }

    /// Remembers the own move, and returns the last `n` likewise.
    #[inline]
    fn own(&mut self, n: u32) -> u64 {
        self.memory.own = (self.memory.own << 1 | self.own as u64) & ((1 << n) - 1);
        self.memory.own
    }

    /// Counts the other's defections in `count[0]`; counting ends at `most`.
    #[inline]
    fn defections(&mut self, most: i64) -> i64 {
        self.memory.count[0] = (self.memory.count[0] + self.other as i64).min(most);
        self.memory.count[0]
    }

    /// Counts turns and the other's defections without end, and returns both.
    #[inline]
    fn totals(&mut self) -> (i64, i64) {
        self.memory.count[1] += 1;
        let defections = self.defections(i64::MAX);
        (self.memory.count[1], defections)
    }

    /// Cooperates with probability `p`.
    #[inline]
    fn chance(&mut self, p: f64) -> Move {
        chance(p, self.draws)
    }
}

/// Defects if the condition holds.
#[inline]
fn defect_if(condition: bool) -> Move {
    if condition { D } else { C }
}
