//! Strategies that remember a defection.

use super::{C, D, Rule, Turn, defect_if};
use crate::iterated::Move;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "grudger",
        "Friedman, in Axelrod 1980",
        C,
        |t| defect_if(t.defections(1) > 0),
        "Cooperates until the other defects, then defects forever.",
    )
    .or(&["friedman", "grim", "grim-trigger"]),
    Rule::new(
        "forgetful-grudger",
        "Palmer, in Knight et al. 2016",
        C,
        forgetful,
        "Answers a defection with ten, and forgets it.",
    ),
    Rule::new("soft-grudger", "Li, Hingston and Kendall 2011", C, soft, "Answers a defection with DDDDCC."),
    Rule::new(
        "opposite-grudger",
        "Palmer, in Knight et al. 2016",
        D,
        |t| {
            t.memory.mode |= u8::from(t.other == C);
            defect_if(t.memory.mode == 0)
        },
        "Defects until the other cooperates, then cooperates forever.",
    ),
    Rule::new(
        "aggravater",
        "Campbell, in Knight et al. 2016",
        D,
        |t| {
            let grudge = t.defections(1) > 0;
            defect_if(t.turns(3) < 3 || grudge)
        },
        "Defects three times, then plays grudger.",
    ),
    Rule::new(
        "easy-go",
        "Li, Hingston and Kendall 2011",
        D,
        |t| defect_if(t.defections(1) == 0),
        "Defects until the other defects, then cooperates forever.",
    ),
    Rule::new(
        "grudger-alternator",
        "Prison's dilemma library, LIFL 1998",
        C,
        |t| defect_if(t.defections(1) > 0 && t.own == C),
        "Cooperates until the other defects, then alternates.",
    ),
    Rule::new(
        "spiteful-cc",
        "Mathieu and Delahaye 2015",
        C,
        |t| {
            let grudge = t.defections(1) > 0;
            defect_if(t.turns(2) > 1 && grudge)
        },
        "Cooperates twice, then plays grudger.",
    ),
    Rule::new(
        "fool-me-once",
        "Harper, in Knight et al. 2016",
        C,
        |t| defect_if(t.defections(2) > 1),
        "Forgives one defection; after the second it defects forever.",
    ),
    Rule::new(
        "once-bitten",
        "Marissa, in Knight et al. 2016",
        C,
        once_bitten,
        "Answers two defections in succession with eleven, and forgets them.",
    ),
    Rule::new(
        "punisher",
        "Palmer, in Knight et al. 2016",
        C,
        punisher,
        "Punishes a defection the longer, the more often the other has defected, up to 20 turns.",
    ),
    Rule::new(
        "davis",
        "Davis, in Axelrod 1980",
        C,
        |t| {
            let grudge = t.defections(1) > 0;
            defect_if(t.turns(10) == 10 && grudge)
        },
        "Cooperates ten times, then plays grudger.",
    )
    .or(&["first-by-davis"]),
    Rule::new(
        "shubik",
        "Shubik, in Axelrod 1980",
        C,
        shubik,
        "Retaliates with one defection, then with two, and so on.",
    )
    .or(&["first-by-shubik"]),
];

/// Count 1: turns of the grudge; mode 1 bears it.
fn forgetful(t: &mut Turn<'_>) -> Move {
    if t.memory.count[1] == 10 {
        (t.memory.count[1], t.memory.mode) = (0, 0);
    }
    t.memory.mode |= t.other as u8;
    t.memory.count[1] += i64::from(t.memory.mode);
    defect_if(t.memory.mode == 1)
}

/// The mode is the number of moves of the answer that were made.
fn soft(t: &mut Turn<'_>) -> Move {
    let made = t.memory.mode;
    t.memory.mode = match made {
        0 => t.other as u8,
        5 => 0,
        _ => made + 1,
    };
    defect_if(made == 0 && t.other == D || (1..4).contains(&made))
}

/// The mode is the number of turns of the grudge.
fn once_bitten(t: &mut Turn<'_>) -> Move {
    let last = t.others(2);
    let turns = if t.memory.mode > 10 { 0 } else { t.memory.mode };
    t.memory.mode = if turns > 0 { turns + 1 } else { u8::from(last == 0b11) };
    defect_if(t.memory.mode > 0)
}

/// Counts: the other's defections, turns, length of the punishment, turns of it. Mode 1 punishes.
fn punisher(t: &mut Turn<'_>) -> Move {
    let (turns, defections) = t.totals();
    let [_, _, length, served, ..] = &mut t.memory.count;
    if served >= length {
        (*served, t.memory.mode) = (0, 0);
    }
    if t.memory.mode == 1 {
        *served += 1;
        return D;
    }
    if t.other == D {
        (*length, t.memory.mode) = (defections * 20 / turns, 1);
        return D;
    }
    C
}

/// Counts: defections left, length of the last retaliation.
fn shubik(t: &mut Turn<'_>) -> Move {
    let [left, length, ..] = &mut t.memory.count;
    if *left > 0 {
        *left -= 1;
        return D;
    }
    if t.other == D && t.own == C {
        *length += 1;
        *left = *length - 1;
        return D;
    }
    C
}
