//! Strategies that count what the other has done.

use super::{C, D, Key, Opening, Rule, Turn, defect_if};
use crate::iterated::Move;

/// How many of the other's last moves count; 0: all.
const MEMORY: &[Key] = &[Key { name: "memory", default: 0.0, low: 0.0, high: 63.0, whole: true }];

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "go-by-majority",
        "Axelrod 1984",
        C,
        |t| defect_if(lead(t) > 0),
        "Defects if the other has defected more often than it has cooperated.",
    )
    .with(MEMORY)
    .or(&["soft-majority", "soft-go-by-majority"]),
    Rule::new(
        "hard-go-by-majority",
        "Mittal and Deb 2009",
        D,
        |t| defect_if(lead(t) >= 0),
        "Defects if the other has defected at least as often as it has cooperated.",
    )
    .with(MEMORY)
    .or(&["hard-majority"]),
    Rule::new(
        "forgiver",
        "Campbell, in Knight et al. 2016",
        C,
        |t| {
            let (turns, defections) = t.totals();
            defect_if(10 * defections > turns)
        },
        "Defects if the other has defected in more than a tenth of the turns.",
    ),
    Rule::new(
        "level-punisher",
        "Arnold 2015",
        C,
        |t| {
            let (turns, defections) = t.totals();
            defect_if(turns >= 10 && 5 * defections > turns)
        },
        "Defects, after ten turns, if the other has defected in more than a fifth of them.",
    ),
    Rule::new(
        "doubler",
        "Prison's dilemma library, LIFL 1998",
        C,
        |t| {
            let (turns, defections) = t.totals();
            defect_if(t.other == D && turns - defections <= 2 * defections)
        },
        "Answers a defection unless the other has cooperated more than twice as often as it has defected.",
    ),
    Rule::new(
        "short-mem",
        "Carvalho et al. 2013",
        C,
        short_mem,
        "Cooperates ten times; then the last ten moves decide, and near balance it plays tit for tat.",
    ),
    Rule::new(
        "retaliate",
        "Campbell, in Knight et al. 2016",
        C,
        |t| defect_if(is_behind(t)),
        "Defects if it was exploited more than a tenth as often as it has exploited.",
    ),
    Rule::new(
        "limited-retaliate",
        "Campbell, in Knight et al. 2016",
        C,
        limited_retaliate,
        "Like retaliate, with at most twenty defections in succession.",
    ),
    Rule::new(
        "appeaser",
        "Müller, in Knight et al. 2016",
        C,
        |t| if t.other == D { t.own.flipped() } else { t.own },
        "Changes its move whenever the other defects.",
    ),
    Rule {
        opening: Opening::Chance(0),
        ..Rule::new(
            "average-copier",
            "Palmer, in Knight et al. 2016",
            C,
            copy_average,
            "Cooperates as often as the other has.",
        )
        .random()
        .with(&[super::probability("first", 0.5)])
    },
    Rule::new(
        "adaptive",
        "Li, Hingston and Kendall 2011",
        C,
        adaptive,
        "Plays CCCCCCDDDDD, then the move that has brought more in all.",
    ),
];

/// How many more defections than cooperations of the other count.
fn lead(t: &mut Turn<'_>) -> i64 {
    let memory = t.numbers[0] as u32;
    if memory == 0 {
        t.memory.count[0] += if t.other == D { 1 } else { -1 };
        return t.memory.count[0];
    }
    let seen = t.turns(memory);
    2 * i64::from(t.others(memory).count_ones()) - i64::from(seen)
}

fn short_mem(t: &mut Turn<'_>) -> Move {
    let (turns, last) = (t.turns(11), t.others(10));
    match last.count_ones() {
        _ if turns <= 10 => C,
        // At least three more of one kind than of the other.
        0..=3 => C,
        7.. => D,
        _ => t.other,
    }
}

/// Counts: how often it was exploited, how often it has exploited.
fn is_behind(t: &mut Turn<'_>) -> bool {
    let [exploited, exploiting, ..] = &mut t.memory.count;
    *exploited += i64::from((t.own, t.other) == (C, D));
    *exploiting += i64::from((t.own, t.other) == (D, C));
    10 * *exploited > *exploiting
}

/// Count 2: defections in succession.
fn limited_retaliate(t: &mut Turn<'_>) -> Move {
    let behind = is_behind(t);
    let made = &mut t.memory.count[2];
    let retaliates = behind && *made < 20;
    *made = if retaliates { *made + 1 } else { 0 };
    defect_if(retaliates)
}

fn copy_average(t: &mut Turn<'_>) -> Move {
    let (turns, defections) = t.totals();
    t.chance((turns - defections) as f64 / turns as f64)
}

/// Counts of CC, CD, DC and DD.
fn adaptive(t: &mut Turn<'_>) -> Move {
    t.memory.count[(t.own as usize) << 1 | t.other as usize] += 1;
    let turns = t.turns(11);
    if turns < 11 {
        return defect_if(turns > 5);
    }
    let [cc, cd, dc, dd, ..] = t.memory.count.map(|count| count as f64);
    let game = t.payoffs;
    defect_if(cc * game.cc + cd * game.cd <= dc * game.dc + dd * game.dd)
}
