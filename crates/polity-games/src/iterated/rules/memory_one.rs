//! Strategies that remember one turn: five probabilities of cooperating, after CC, CD, DC, DD (own move first), and at the beginning.

use super::{C, FIRST, Key, Opening, Prepare, Rule, Turn, probability};
use crate::iterated::{Move, Payoffs};

pub(super) const RULES: &[Rule] = &[
    one_turn(
        "win-stay-lose-shift",
        "Nowak and Sigmund 1993",
        |_, _| Ok([1.0, 0.0, 0.0, 1.0, 1.0]),
        "Repeats its move after a good payoff, and changes it after a bad one.",
    )
    .or(&["pavlov", "wsls"]),
    one_turn(
        "win-shift-lose-stay",
        "Li, Hingston and Kendall 2011",
        |_, _| Ok([0.0, 1.0, 1.0, 0.0, 0.0]),
        "Changes its move after a good payoff, and repeats it after a bad one.",
    ),
    one_turn(
        "gtft",
        "Nowak and Sigmund 1993",
        generous,
        "Tit for tat that forgives a defection with the greatest probability that is stable.",
    )
    .or(&["generous-tit-for-tat"]),
    one_turn(
        "firm-but-fair",
        "Frean 1994",
        |_, _| Ok([1.0, 0.0, 1.0, 2.0 / 3.0, 1.0]),
        "Tit for tat that cooperates two times in three after mutual defection.",
    ),
    one_turn(
        "stochastic-cooperator",
        "Adami and Hintze 2013",
        |_, _| Ok([0.935, 0.229, 0.266, 0.42, 1.0]),
        "A strategy that evolution favours where memory is one turn.",
    ),
    one_turn(
        "stochastic-wsls",
        "Harper, in Knight et al. 2016",
        |[e, ..], _| Ok([1.0 - e, e, e, 1.0 - e, 1.0]),
        "Win stay, lose shift that errs with probability `p`.",
    )
    .with(&[probability("p", 0.05)]),
    one_turn(
        "soft-joss",
        "Prison's dilemma library, LIFL 1998",
        |[q, ..], _| Ok([1.0, 1.0 - q, 1.0, 1.0 - q, 1.0]),
        "Tit for tat that answers a defection with probability `q`.",
    )
    .with(&[probability("q", 0.9)]),
    one_turn(
        "joss",
        "Joss, in Axelrod 1980",
        |[p, ..], _| Ok([p, 0.0, p, 0.0, 1.0]),
        "Tit for tat that answers cooperation with probability `p`.",
    )
    .with(&[probability("p", 0.9)])
    .or(&["first-by-joss", "hard-joss"]),
    one_turn(
        "grofman",
        "Grofman, in Axelrod 1980",
        |_, _| Ok([1.0, 2.0 / 7.0, 2.0 / 7.0, 1.0, 1.0]),
        "Cooperates two times in seven after different moves, else always.",
    )
    .or(&["first-by-grofman"]),
    one_turn(
        "memory-one",
        "Nowak 1990",
        |p, _| Ok(p),
        "Cooperates with a probability for each outcome of the last turn.",
    )
    .with(&[
        probability("cc", 1.0),
        probability("cd", 0.0),
        probability("dc", 0.0),
        probability("dd", 1.0),
        probability("first", 1.0),
    ]),
    one_turn(
        "reactive",
        "Nowak and Sigmund 1989",
        |[c, d, first, ..], _| Ok([c, d, c, d, first]),
        "Cooperates with a probability for each of the other's last moves.",
    )
    .with(&[probability("c", 1.0), probability("d", 0.0), probability("first", 1.0)]),
    one_turn(
        "zd-extort-2",
        "Press and Dyson 2012, as in Stewart and Plotkin 2012",
        |[phi, s, ..], game| zero_determinant(phi, s, game.dd, game),
        "Takes twice the other's surplus over mutual defection.",
    )
    .with(&[not_negative("phi", 1.0 / 9.0), slope(0.5)]),
    one_turn(
        "zd-gtft-2",
        "Stewart and Plotkin 2012",
        |[phi, s, ..], game| zero_determinant(phi, s, game.cc, game),
        "Bears twice the other's deficit below mutual cooperation.",
    )
    .with(&[not_negative("phi", 0.25), slope(0.5)]),
    one_turn(
        "zd-set-2",
        "Kuhn 2017",
        |[phi, s, l, ..], game| zero_determinant(phi, s, l, game),
        "Sets the other's payoff to 2, whatever the other does.",
    )
    .with(&[
        not_negative("phi", 0.25),
        slope(0.0),
        Key { name: "l", default: 2.0, low: f64::MIN, high: f64::MAX, whole: false },
    ]),
];

/// A rule whose numbers come from its parameters and the payoffs.
const fn one_turn(name: &'static str, source: &'static str, prepare: Prepare, about: &'static str) -> Rule {
    let opening = Opening::Chance(FIRST);
    Rule { opening, prepare: Some(prepare), ..Rule::new(name, source, C, by_last_turn, about) }
}

const fn not_negative(name: &'static str, default: f64) -> Key {
    Key { name, default, low: 0.0, high: f64::MAX, whole: false }
}

/// The slope of the other's payoff over the own one.
const fn slope(default: f64) -> Key {
    Key { name: "s", default, low: -1.0, high: 1.0, whole: false }
}

pub(super) fn by_last_turn(t: &mut Turn<'_>) -> Move {
    t.chance(t.numbers[(t.own as usize) << 1 | t.other as usize])
}

/// The greatest generosity with which defection does not pay (Molander 1985; Nowak and Sigmund 1992).
fn generous(_: [f64; 5], game: &Payoffs) -> Result<[f64; 5], String> {
    let Payoffs { cc, cd, dc, dd } = *game;
    let p = (1.0 - (dc - cc) / (cc - cd)).min((cc - dd) / (dc - dd));
    probabilities([1.0, p, 1.0, p, 1.0])
}

/// The strategy that enforces `s · (own − l) = other − l` between the mean payoffs (Hilbe, Nowak and Traulsen 2013, equation 14).
fn zero_determinant(phi: f64, s: f64, l: f64, game: &Payoffs) -> Result<[f64; 5], String> {
    let Payoffs { cc, cd, dc, dd } = *game;
    probabilities([
        1.0 - phi * (1.0 - s) * (cc - l),
        1.0 - phi * (s * (l - cd) + (dc - l)),
        phi * ((l - cd) + s * (dc - l)),
        phi * (1.0 - s) * (l - dd),
        1.0,
    ])
}

/// Refuses what is not a probability; rounding errors are corrected.
fn probabilities(p: [f64; 5]) -> Result<[f64; 5], String> {
    if p.iter().all(|p| (-1e-12..=1.0 + 1e-12).contains(p)) {
        return Ok(p.map(|p| p.clamp(0.0, 1.0)));
    }
    let [cc, cd, dc, dd, _] = p;
    Err(format!(
        "it does not exist for these payoffs and parameters: it would cooperate with probabilities {cc:.3} after CC, {cd:.3} after \
         CD, {dc:.3} after DC and {dd:.3} after DD"
    ))
}
