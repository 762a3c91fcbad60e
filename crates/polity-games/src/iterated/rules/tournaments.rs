//! Strategies of Axelrod's two tournaments that calculate (Axelrod 1980, "Effective choice in the prisoner's dilemma", and Axelrod
//! 1980b, "More effective choice in the prisoner's dilemma").

use super::{C, D, Rule, Turn, defect_if};
use crate::iterated::Move;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "tullock",
        "Tullock, in Axelrod 1980",
        C,
        tullock,
        "Cooperates eleven times, then a tenth less than the other in the last ten turns.",
    )
    .random()
    .or(&["first-by-tullock"]),
    Rule::new(
        "feld",
        "Feld, in Axelrod 1980",
        C,
        feld,
        "Tit for tat whose cooperation falls to one half within 200 turns.",
    )
    .random()
    .or(&["first-by-feld"]),
    Rule::new("nydegger", "Nydegger, in Axelrod 1980", C, nydegger, "A table of the last three turns.")
        .or(&["first-by-nydegger"]),
    Rule::new(
        "downing",
        "Downing, in Axelrod 1980",
        D,
        downing,
        "Estimates how the other answers each move, and plays the move that pays.",
    )
    .or(&["first-by-downing"]),
    Rule::new(
        "revised-downing",
        "Downing, in Axelrod 1980b",
        C,
        revised_downing,
        "Downing that begins with trust, and may alternate.",
    ),
    Rule::new(
        "champion",
        "Champion, in Axelrod 1980b",
        C,
        champion,
        "Cooperates ten times, plays tit for tat for fifteen turns, then forgives an other who mostly cooperates.",
    )
    .random()
    .or(&["second-by-champion"]),
    Rule::new(
        "eatherley",
        "Eatherley, in Axelrod 1980b",
        C,
        eatherley,
        "Answers a defection with the other's frequency of defections.",
    )
    .random()
    .or(&["second-by-eatherley"]),
    Rule::new(
        "tranquilizer",
        "Feathers, in Axelrod 1980b",
        C,
        tranquilizer,
        "Cooperates while its score is good, and throws in defections; plays tit for tat when its score is bad.",
    )
    .random()
    .or(&["second-by-tranquilizer"]),
];

fn tullock(t: &mut Turn<'_>) -> Move {
    let (turns, last) = (t.turns(11), t.others(10));
    if turns < 11 {
        return C;
    }
    t.chance(f64::from(10 - last.count_ones()) / 10.0 - 0.1)
}

fn feld(t: &mut Turn<'_>) -> Move {
    let turns = t.turns(200);
    if t.other == D { D } else { t.chance(1.0 - 0.5 / 200.0 * f64::from(turns)) }
}

/// An outcome counts 2 for the other's defection and 1 for the own; the last one has weight 16, the one before 4, the one before 1.
fn nydegger(t: &mut Turn<'_>) -> Move {
    const DEFECTS: [u64; 19] = [1, 6, 7, 17, 22, 23, 26, 29, 30, 31, 33, 38, 39, 45, 49, 54, 55, 58, 61];
    let (turns, others, own) = (t.turns(3), t.others(3), t.own(3));
    if turns < 3 {
        return defect_if(t.other == D || turns == 2 && others == 0b10);
    }
    let outcome = |place: u64| (others >> place & 1) << 1 | own >> place & 1;
    defect_if(DEFECTS.contains(&(16 * outcome(0) + 4 * outcome(1) + outcome(2))))
}

/// Counts: the other's cooperations after the own cooperation and after the own defection; the own cooperations and defections.
fn downing(t: &mut Turn<'_>) -> Move {
    let (turns, own) = (t.turns(2), t.own(2));
    let (other, now) = (t.other, t.own);
    let [after_c, after_d, cooperations, defections, ..] = &mut t.memory.count;
    if now == C {
        *cooperations += 1
    } else {
        *defections += 1
    }
    // The other's first move counts as an answer to cooperation.
    let answers_defection = turns == 2 && own & 0b10 != 0;
    *if answers_defection { &mut *after_d } else { &mut *after_c } += i64::from(other == C);
    if turns == 1 {
        return D;
    }
    let alpha = *after_c as f64 / (*cooperations + 1) as f64;
    let beta = *after_d as f64 / (*defections).max(2) as f64;
    let game = t.payoffs;
    let cooperating = alpha * game.cc + (1.0 - alpha) * game.cd;
    let defecting = beta * game.dc + (1.0 - beta) * game.dd;
    if cooperating == defecting { now.flipped() } else { defect_if(cooperating < defecting) }
}

/// Counts as for downing, from the third turn on. The weights are those of the prisoner's dilemma with 3, 0, 5 and 1 whatever the game
/// is.
fn revised_downing(t: &mut Turn<'_>) -> Move {
    let (turns, own) = (t.turns(2), t.own(2));
    if turns == 2 {
        let [after_c, after_d, cooperations, defections, ..] = &mut t.memory.count;
        let (answers, made) = if own & 0b10 != 0 { (after_d, defections) } else { (after_c, cooperations) };
        *answers += i64::from(t.other == C);
        *made += 1;
    }
    let [after_c, after_d, cooperations, defections, ..] = t.memory.count.map(|count| count as f64);
    let good = if cooperations > 0.0 { after_c / cooperations } else { 1.0 };
    let bad = if defections > 0.0 { after_d / defections } else { 0.0 };
    let always = 6.0 * good - 8.0 * bad - 2.0;
    let alternating = 4.0 * good - 5.0 * bad - 1.0;
    if always >= 0.0 && always >= alternating {
        C
    } else if always >= 0.0 || alternating >= 0.0 {
        t.own.flipped()
    } else {
        D
    }
}

fn champion(t: &mut Turn<'_>) -> Move {
    let ((turns, defections), other) = (t.totals(), t.other);
    if turns < 10 {
        return C;
    }
    if turns < 25 || other == C {
        return other;
    }
    let frequency = defections as f64 / turns as f64;
    defect_if(frequency >= t.draws.unit().max(0.4))
}

fn eatherley(t: &mut Turn<'_>) -> Move {
    let (turns, defections) = t.totals();
    if t.other == C { C } else { t.chance(1.0 - defections as f64 / turns as f64) }
}

/// Counts: the other's defections, turns, own score, the other's score; sums of own payoffs one turn and two turns after a defection
/// out of a good score, and the number of these defections. The mode is the number of turns since the last of them. The score is in
/// payoffs of the prisoner's dilemma with 3, 0, 5 and 1 whatever the game is, as its thresholds are.
fn tranquilizer(t: &mut Turn<'_>) -> Move {
    let ((turns, defections), streak) = (t.totals(), t.others(63).trailing_ones());
    let (payoff, of_other) = match (t.own, t.other) {
        (C, C) => (3, 3),
        (C, D) => (0, 5),
        (D, C) => (5, 0),
        (D, D) => (1, 1),
    };
    let [_, _, own, other, sum_1, sum_2, tests] = &mut t.memory.count;
    (*own, *other) = (*own + payoff, *other + of_other);
    let value = 3 - 3 * (t.other as i64) + 2 * (t.own as i64) - (t.other as i64) * (t.own as i64);
    match t.memory.mode {
        1 => {
            (*sum_1, *tests, t.memory.mode) = (*sum_1 + value, *tests + 1, 2);
            return C;
        }
        2 => (*sum_2, t.memory.mode) = (*sum_2 + value, 0),
        _ => {}
    }
    let (next, tests) = ((turns + 1) as f64, (*tests + 1) as f64);
    let score = *own as f64 / next;
    if score >= 2.25 {
        let after = (5 + *sum_1) as f64 / tests + *sum_2 as f64 / tests;
        let p = 0.95 - (after - 5.0) / 15.0 + 1.0 / (next * next) - f64::from(t.other as u8) / 4.0;
        let defects = t.draws.unit() > p;
        t.memory.mode = u8::from(defects);
        return defect_if(defects);
    }
    if score >= 1.75 {
        let cooperations = (turns - defections + 1) as f64 / next;
        let p = 0.25 + cooperations - f64::from(streak) * 0.25 + (*own - *other) as f64 / 100.0 + 4.0 / next;
        return defect_if(t.draws.unit() > p);
    }
    t.other
}
