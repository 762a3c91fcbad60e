//! Strategies that begin with fixed moves, and judge the other by the answers.

use super::{C, D, Rule, Turn, defect_if};
use crate::iterated::Move;

// What a probe has led to, as modes.
const DEFECT: u8 = 1;
const RECIPROCATE: u8 = 2;
const COOPERATE: u8 = 3;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "prober",
        "Li, Hingston and Kendall 2011",
        D,
        |t| probe(t, &[D, C, C], |others| if others & 0b11 == 0b00 { DEFECT } else { RECIPROCATE }),
        "Plays DCC; then it defects if the other cooperated in turns 2 and 3, else it plays tit for tat.",
    ),
    Rule::new(
        "prober-2",
        "Prison's dilemma library, LIFL 1998",
        D,
        |t| probe(t, &[D, C, C], |others| if others & 0b11 == 0b10 { COOPERATE } else { RECIPROCATE }),
        "Plays DCC; then it cooperates if the other played DC in turns 2 and 3, else it plays tit for tat.",
    ),
    Rule::new(
        "prober-3",
        "Prison's dilemma library, LIFL 1998",
        D,
        |t| probe(t, &[D, C], |others| if others & 1 == 0 { DEFECT } else { RECIPROCATE }),
        "Plays DC; then it defects if the other cooperated in turn 2, else it plays tit for tat.",
    ),
    Rule::new(
        "prober-4",
        "Prison's dilemma library, LIFL 1998",
        C,
        prober_4,
        "Plays twenty fixed moves, and compares defections that retaliate with those that provoke.",
    ),
    Rule::new(
        "hard-prober",
        "Prison's dilemma library, LIFL 1998",
        D,
        |t| probe(t, &[D, D, C, C], |others| if others & 0b110 == 0 { DEFECT } else { RECIPROCATE }),
        "Plays DDCC; then it defects if the other cooperated in turns 2 and 3, else it plays tit for tat.",
    ),
    Rule::new(
        "handshake",
        "Robson 1990",
        C,
        handshake,
        "Plays CD; then it cooperates with whoever played CD too, and defects against all others.",
    ),
    Rule::new(
        "collective-strategy",
        "Li and Kendall 2009",
        C,
        collective,
        "Handshake that defects for good after the other's next defection.",
    ),
    Rule::new(
        "detective",
        "Case 2017",
        C,
        |t| probe(t, &[C, D, C, C], |others| if others == 0 { DEFECT } else { RECIPROCATE }),
        "Plays CDCC; then it defects if the other never defected, else it plays tit for tat.",
    ),
    Rule::new(
        "tester",
        "Gladstein, in Axelrod 1980b",
        D,
        tester,
        "Defects first; it apologises to an other who defects and plays tit for tat, and otherwise defects every other turn.",
    )
    .or(&["second-by-tester"]),
    Rule::new(
        "gladstein",
        "Gladstein, in Axelrod 1980b",
        D,
        gladstein,
        "Like tester, with defections in just under half of the turns.",
    )
    .or(&["second-by-gladstein"]),
];

/// Plays the opening; then the other's moves during it, the last in the lowest bit, decide what to do forever.
fn probe(t: &mut Turn<'_>, opening: &[Move], verdict: fn(u64) -> u8) -> Move {
    if t.memory.mode == 0 {
        let (turns, others) = (t.turns(opening.len() as u32), t.others(opening.len() as u32));
        if let Some(next) = opening.get(turns as usize) {
            return *next;
        }
        t.memory.mode = verdict(others);
    }
    match t.memory.mode {
        DEFECT => D,
        COOPERATE => C,
        _ => t.other,
    }
}

/// Counts: the other's defections that retaliate, and those that provoke.
fn prober_4(t: &mut Turn<'_>) -> Move {
    /// CCDCDDDCCDCDCCDCDDCD, the first in the lowest bit.
    const OPENING: u32 = 0b1011_0100_1010_0111_0100;
    const LENGTH: u32 = 20;
    let turns = t.turns(LENGTH + 5);
    if turns < LENGTH {
        if t.other == D {
            t.memory.count[(t.own == C) as usize] += 1;
        }
        return defect_if(OPENING >> turns & 1 == 1);
    }
    if turns == LENGTH {
        let [just, unjust, ..] = t.memory.count;
        t.memory.mode = if (just - unjust).abs() <= 2 { DEFECT } else { RECIPROCATE };
    }
    match t.memory.mode {
        DEFECT => D,
        _ if turns < LENGTH + 5 => C,
        _ => t.other,
    }
}

fn handshake(t: &mut Turn<'_>) -> Move {
    probe(t, &[C, D], |others| if others == 0b01 { COOPERATE } else { DEFECT })
}

fn collective(t: &mut Turn<'_>) -> Move {
    let defections = t.defections(2);
    let made = handshake(t);
    if defections > 1 && t.memory.mode != 0 { D } else { made }
}

/// Returns the answer to an other who has defected: an apology, then tit for tat.
fn apology(t: &mut Turn<'_>) -> Option<Move> {
    if t.memory.mode == RECIPROCATE {
        return Some(t.other);
    }
    (t.other == D).then(|| {
        t.memory.mode = RECIPROCATE;
        C
    })
}

fn tester(t: &mut Turn<'_>) -> Move {
    if let Some(answer) = apology(t) {
        return answer;
    }
    if t.turns(3) < 3 { C } else { t.own.flipped() }
}

/// Count 0: twice the own cooperations, less the turns.
fn gladstein(t: &mut Turn<'_>) -> Move {
    if let Some(answer) = apology(t) {
        return answer;
    }
    t.memory.count[0] += if t.own == C { 1 } else { -1 };
    defect_if(t.memory.count[0] > 0)
}
