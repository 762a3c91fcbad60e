//! Strategies that ignore the other player's moves.

use super::{C, D, FIRST, Opening, Rule, Turn, probability};
use crate::iterated::Move;

/// The rule of the `cycler-` strategies. Its numbers are the moves of the cycle as bits, the first in the lowest, and their number.
pub(in crate::iterated) static CYCLES: Rule = cycler("cycler-");

const fn cycler(name: &'static str) -> Rule {
    Rule { opening: Opening::Cycle, ..Rule::new(name, "Mittal and Deb 2009", C, cycle, "Repeats a cycle of moves.") }
}

pub(super) const RULES: &[Rule] = &[
    Rule::new("cooperator", "Axelrod 1984", C, |_| C, "Always cooperates.").or(&["all-c", "always-cooperate"]),
    Rule::new("defector", "Axelrod 1984", D, |_| D, "Always defects.").or(&["all-d", "always-defect"]),
    Rule {
        opening: Opening::Chance(FIRST),
        prepare: Some(|[p, ..], _| Ok([p; 5])),
        ..Rule::new("random", "Axelrod 1980", C, super::memory_one::by_last_turn, "Cooperates with probability `p`.")
            .with(&[probability("p", 0.5)])
    },
    Rule::new("alternator", "Axelrod 1984", C, |t| t.own.flipped(), "Cooperates and defects in turn."),
    cycler("cycler-ccd"),
    cycler("cycler-ddc"),
    cycler("cycler-dc"),
    cycler("cycler-cccd"),
    cycler("cycler-cccccd"),
    cycler("cycler-cccdcd"),
];

fn cycle(t: &mut Turn<'_>) -> Move {
    let [bits, length, ..] = *t.numbers;
    let next = (t.memory.count[0] + 1) % (length as i64).max(1);
    t.memory.count[0] = next;
    super::defect_if(bits as u64 >> next & 1 == 1)
}
