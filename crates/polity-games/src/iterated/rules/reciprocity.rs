//! Tit for tat and its relatives: answers to the other's last moves.

use super::{C, D, Rule, Turn, defect_if, probability};
use crate::iterated::Move;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "tit-for-tat",
        "Rapoport, in Axelrod 1980",
        C,
        |t| t.other,
        "Cooperates, then repeats the other's last move.",
    )
    .or(&["tft"]),
    Rule::new(
        "tit-for-2-tats",
        "Maynard Smith, in Axelrod 1980b",
        C,
        |t| defect_if(t.others(2) == 0b11),
        "Defects after two defections in succession.",
    )
    .or(&["tf2t", "tit-for-two-tats"]),
    Rule::new(
        "two-tits-for-tat",
        "Axelrod 1984",
        C,
        |t| defect_if(t.others(2) != 0),
        "Answers each defection with two.",
    )
    .or(&["2tft"]),
    Rule::new(
        "suspicious-tit-for-tat",
        "Beaufils, Delahaye and Mathieu 1997",
        D,
        |t| t.other,
        "Tit for tat that begins with a defection.",
    ),
    Rule::new(
        "anti-tit-for-tat",
        "Hilbe, Nowak and Traulsen 2013",
        C,
        |t| t.other.flipped(),
        "Cooperates, then plays the opposite of the other's last move.",
    ),
    Rule::new(
        "bully",
        "Nachbar 1992",
        D,
        |t| t.other.flipped(),
        "Defects, then plays the opposite of the other's last move.",
    )
    .or(&["reverse-tit-for-tat"]),
    Rule::new(
        "hard-tit-for-tat",
        "Prison's dilemma library, LIFL 2017",
        C,
        |t| defect_if(t.others(3) != 0),
        "Defects if the other defected in one of the last three turns.",
    ),
    Rule::new(
        "hard-tit-for-2-tats",
        "Stewart and Plotkin 2012",
        C,
        |t| {
            let last = t.others(3);
            defect_if(last & last >> 1 != 0)
        },
        "Defects if the other defected twice in succession in the last three turns.",
    ),
    Rule::new(
        "sneaky-tit-for-tat",
        "Langner, in Knight et al. 2016",
        C,
        sneaky,
        "Defects once, and repents if punished.",
    ),
    Rule::new(
        "forgiving-tit-for-tat",
        "Campbell, in Knight et al. 2016",
        C,
        |t| {
            let (turns, defections) = t.totals();
            if 10 * defections > turns { t.other } else { C }
        },
        "Tit for tat while the other has defected in more than a tenth of the turns; else it cooperates.",
    ),
    Rule::new(
        "contrite-tit-for-tat",
        "Wu and Axelrod 1995",
        C,
        contrite,
        "Tit for tat that accepts punishment after a defection which it did not intend.",
    ),
    Rule::new(
        "omega-tft",
        "Slany and Kienreich 2007",
        C,
        omega,
        "Tit for tat that breaks cycles of retaliation, and gives up on an other who seems random.",
    ),
    Rule::new(
        "gradual",
        "Beaufils, Delahaye and Mathieu 1997, as in CRISTAL-SMAC 2018",
        C,
        gradual,
        "Punishes with as many defections as the other has made, then cooperates twice.",
    ),
    Rule::new(
        "original-gradual",
        "Beaufils, Delahaye and Mathieu 1997",
        C,
        original_gradual,
        "Punishes the n-th time with n defections, then cooperates twice, whatever happens meanwhile.",
    ),
    Rule::new(
        "adaptive-pavlov-2006",
        "Li 2007",
        C,
        adaptive_pavlov_2006,
        "Tit for tat for six turns; then it classifies the other every six turns and plays against that class.",
    ),
    Rule::new(
        "adaptive-pavlov-2011",
        "Li, Hingston and Kendall 2011",
        C,
        adaptive_pavlov_2011,
        "Like adaptive-pavlov-2006, with classes by the number of defections.",
    )
    .or(&["adaptive-pavlov"]),
    Rule::new(
        "capri",
        "Murase and Baek 2020",
        C,
        capri,
        "Rules for the last three turns: cooperate, accept punishment, punish once, recover; in all other cases it defects.",
    ),
    Rule::new(
        "naive-prober",
        "Li, Hingston and Kendall 2011",
        C,
        |t| if t.other == D { D } else { t.chance(1.0 - t.numbers[0]) },
        "Tit for tat that defects with probability `p` instead of cooperating.",
    )
    .random()
    .with(&[probability("p", 0.1)]),
    Rule::new(
        "remorseful-prober",
        "Li, Hingston and Kendall 2011",
        C,
        remorseful,
        "Naive prober that does not answer a defection which it has provoked.",
    )
    .random()
    .with(&[probability("p", 0.1)]),
];

fn sneaky(t: &mut Turn<'_>) -> Move {
    let (turns, own) = (t.turns(2), t.own(2));
    match (turns, t.defections(1)) {
        (1, _) => C,
        (_, 0) => D,
        _ if t.other == D && own & 0b10 != 0 => C,
        _ => t.other,
    }
}

/// Mode bit 0: contrite; bit 1: the last move was meant as a defection.
fn contrite(t: &mut Turn<'_>) -> Move {
    let mode = t.memory.mode;
    let (contrite, meant) = (mode & 1 != 0, if mode & 2 != 0 { D } else { C });
    if contrite && t.own == C {
        t.memory.mode = 0;
        return C;
    }
    let slipped = meant != t.own && t.own == D && t.other == C;
    t.memory.mode = u8::from(contrite || slipped) | (t.other as u8) << 1;
    t.other
}

/// Counts: signs of randomness, turns of deadlock.
fn omega(t: &mut Turn<'_>) -> Move {
    const DEADLOCK: i64 = 3;
    const RANDOM: i64 = 8;
    let last = t.others(2);
    if t.turns(2) == 1 {
        return t.other;
    }
    let (own, other) = (t.own, t.other);
    let [random, deadlock, ..] = &mut t.memory.count;
    if *deadlock >= DEADLOCK {
        *deadlock = if *deadlock == DEADLOCK { DEADLOCK + 1 } else { 0 };
        return C;
    }
    let changed = last == 0b01 || last == 0b10;
    *random += i64::from(changed) + i64::from(own != other) - i64::from(last == 0);
    if *random >= RANDOM {
        return D;
    }
    *deadlock = if changed { *deadlock + 1 } else { 0 };
    other
}

/// Counts: the other's defections, punishments left, calm turns left.
fn gradual(t: &mut Turn<'_>) -> Move {
    t.memory.count[0] += t.other as i64;
    let [defections, punish, calm, ..] = &mut t.memory.count;
    if *punish > 0 {
        *punish -= 1;
        D
    } else if *calm > 0 {
        *calm -= 1;
        C
    } else if t.other == D {
        (*punish, *calm) = (*defections - 1, 2);
        D
    } else {
        C
    }
}

/// Counts: the length of the punishment, punishments made. Mode 1 punishes, mode 2 calms.
fn original_gradual(t: &mut Turn<'_>) -> Move {
    let [length, made, ..] = &mut t.memory.count;
    match t.memory.mode {
        2 => t.memory.mode = 0,
        1 if made < length => {
            *made += 1;
            return D;
        }
        1 => (t.memory.mode, *made) = (2, 0),
        _ if t.other == D => {
            (t.memory.mode, *made) = (1, 1);
            *length += 1;
            return D;
        }
        _ => {}
    }
    C
}

/// Counts turns to six, then from six to eleven again and again: a new class is due at six.
fn period(t: &mut Turn<'_>) -> u32 {
    let turn = t.turns(12);
    if turn == 12 {
        t.memory.turn = 6;
    }
    t.memory.turn
}

// Classes of the adaptive Pavlovs, as modes.
const COOPERATIVE: u8 = 1;
const ALL_D: u8 = 2;
const SUSPICIOUS: u8 = 3;
const PAVLOV_D: u8 = 4;
const RANDOM: u8 = 5;

fn adaptive_pavlov_2006(t: &mut Turn<'_>) -> Move {
    let (turn, last) = (period(t), t.others(6));
    if turn < 6 {
        return t.other;
    }
    if turn == 6 {
        t.memory.mode = match last {
            0 => COOPERATIVE,
            0b11_1111 => ALL_D,
            0b10_1010 => SUSPICIOUS,
            0b11_0110 => PAVLOV_D,
            _ if t.memory.mode == 0 => RANDOM,
            _ => t.memory.mode,
        };
    }
    match t.memory.mode {
        RANDOM | ALL_D => D,
        SUSPICIOUS if turn < 8 => C,
        PAVLOV_D => defect_if(turn == 6),
        _ => t.other,
    }
}

fn adaptive_pavlov_2011(t: &mut Turn<'_>) -> Move {
    let (turn, last) = (period(t), t.others(6));
    if turn < 6 {
        return t.other;
    }
    if turn == 6 {
        t.memory.mode = match last.count_ones() {
            0 => COOPERATIVE,
            3 => SUSPICIOUS,
            4.. => ALL_D,
            _ if t.memory.mode == 0 => RANDOM,
            _ => t.memory.mode,
        };
    }
    match t.memory.mode {
        RANDOM | ALL_D => D,
        SUSPICIOUS => defect_if(last & 0b11 == 0b11),
        _ => t.other,
    }
}

/// The own and the other's last three moves, the latest in the lowest bit, after which it cooperates.
fn capri(t: &mut Turn<'_>) -> Move {
    let cooperates = matches!(
        (t.own(3), t.others(3)),
        (0b000, 0b000)
            // Accept punishment.
            | (0b001, 0b000) | (0b010, 0b001) | (0b100, 0b010) | (0b000, 0b100)
            // Punish once, then make peace.
            | (0b001, 0b010) | (0b010, 0b100) | (0b100, 0b000)
            // Recover from mutual defection.
            | (0b111, 0b110) | (0b110, 0b100) | (0b110, 0b111) | (0b100, 0b110) | (0b110, 0b110) | (0b100, 0b100)
    );
    defect_if(!cooperates)
}

/// Mode 1: the last move was a defection of its own accord.
fn remorseful(t: &mut Turn<'_>) -> Move {
    if t.other == D {
        let provoked = t.memory.mode == 1;
        t.memory.mode = 0;
        return defect_if(!provoked);
    }
    let made = t.chance(1.0 - t.numbers[0]);
    t.memory.mode = made as u8;
    made
}
