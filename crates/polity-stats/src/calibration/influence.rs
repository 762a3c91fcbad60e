//! How models change their answers when they hear others: persuadability, discernment and conformity.

use super::Fit;
use serde::Serialize;

/// A model's answer before it heard others, what it heard, and its answer after. Answers are numbers, equal for equal answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The difficulty of the item.
    pub difficulty: f64,
    /// Its answer before.
    pub before: u32,
    /// The answers that it heard, in order.
    pub others: Vec<Opinion>,
    /// Its answer after.
    pub after: u32,
    /// The right answer, if it is known and was given by anyone.
    pub right: Option<u32>,
}

/// An answer that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// The answer.
    pub answer: u32,
    /// Whether it came with reasons.
    pub argued: bool,
}

/// The parameters that fit how others influence a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Influence {
    /// Times at which the model heard an answer that was not its own.
    pub heard: usize,
    /// Probability to follow a right argument.
    pub persuadability: f64,
    /// How far it sees through a wrong argument about what it masters, 0 to 1.
    pub discernment: f64,
    /// Probability to follow a unanimous majority. With reasons to every answer it is hard to tell apart from persuadability.
    pub conformity: f64,
    /// Share of these times at which it changed to an answer that it had not heard. The fit leaves them out: simulated models never do
    /// that.
    pub unheard: f64,
    /// Share of wrong answers that became right, and the share that the parameters imply.
    pub corrected: (f64, f64),
    /// Share of right answers that became wrong, and the share that the parameters imply.
    pub misled: (f64, f64),
}

/// The parameters, each 0 to 1.
#[derive(Clone, Copy)]
struct Parameters {
    persuadability: f64,
    discernment: f64,
    conformity: f64,
}

/// Least probability of what was observed.
const LEAST: f64 = 1e-9;

/// A [`Heard`] with the probability that the model answers the item right alone.
struct Turn<'a> {
    heard: &'a Heard,
    mastery: f64,
}

impl Turn<'_> {
    /// The probability of each answer after, by the rule of the simulated models.
    fn chances(&self, with: Parameters) -> Vec<(u32, f64)> {
        let Heard { before, others, right, .. } = self.heard;
        let mut found = Vec::new();
        let mut left = 1.0;
        for said in others.iter().filter(|said| said.argued && said.answer != *before) {
            let wrong = *right != Some(said.answer);
            let doubt = if wrong { with.discernment * self.mastery } else { 0.0 };
            let convinced = left * with.persuadability * (1.0 - doubt);
            found.push((said.answer, convinced));
            left -= convinced;
        }
        let count = |answer: u32| others.iter().filter(|said| said.answer == answer).count();
        let majority = others.iter().map(|said| said.answer).find(|answer| 2 * count(*answer) > others.len());
        if let Some(answer) = majority.filter(|answer| answer != before) {
            let share = count(answer) as f64 / others.len() as f64;
            let follows = left * with.conformity * share;
            found.push((answer, follows));
            left -= follows;
        }
        found.push((*before, left));
        found
    }

    fn chance_of(&self, with: Parameters, fits: impl Fn(u32) -> bool) -> f64 {
        self.chances(with).into_iter().filter(|(answer, _)| fits(*answer)).map(|(_, p)| p).sum()
    }

    fn is_right(&self, answer: u32) -> bool {
        self.heard.right == Some(answer)
    }
}

/// Fits the parameters by maximum likelihood. `alone` says how well the model masters an item; without it half of the items. `None` if no
/// answer other than the model's own was ever heard.
#[must_use]
pub fn fit(heard: &[Heard], alone: Option<&Fit>) -> Option<Influence> {
    let differs = |heard: &&Heard| heard.others.iter().any(|said| said.answer != heard.before);
    let known =
        |heard: &&Heard| heard.after == heard.before || heard.others.iter().any(|said| said.answer == heard.after);
    let times = heard.iter().filter(differs).count();
    let turn = |heard| Turn { heard, mastery: alone.map_or(0.5, |fit| fit.mastery(heard.difficulty)) };
    let turns: Vec<Turn<'_>> = heard.iter().filter(differs).filter(known).map(turn).collect();
    if turns.is_empty() {
        return None;
    }
    let likelihood = |with: Parameters| -> f64 {
        let chance = |turn: &Turn<'_>| turn.chance_of(with, |answer| answer == turn.heard.after);
        turns.iter().map(|turn| libm::log(chance(turn).max(LEAST))).sum()
    };
    let found = highest(likelihood);
    let share = |was_right: bool, is_right: bool| {
        let of: Vec<&Turn<'_>> = turns.iter().filter(|turn| turn.is_right(turn.heard.before) == was_right).collect();
        let n = (of.len() as f64).max(1.0);
        let observed = of.iter().filter(|turn| turn.is_right(turn.heard.after) == is_right).count() as f64 / n;
        let implied: f64 = of.iter().map(|turn| turn.chance_of(found, |a| turn.is_right(a) == is_right)).sum();
        (observed, implied / n)
    };
    Some(Influence {
        heard: times,
        persuadability: found.persuadability,
        discernment: found.discernment,
        conformity: found.conformity,
        unheard: (times - turns.len()) as f64 / times as f64,
        corrected: share(false, true),
        misled: share(true, false),
    })
}

/// Finds the highest point of a function on the unit cube with a coarse grid, then finer ones around the best point.
fn highest(f: impl Fn(Parameters) -> f64) -> Parameters {
    let mut best = Parameters { persuadability: 0.5, discernment: 0.5, conformity: 0.5 };
    let (mut width, mut most) = (0.5, f(best));
    // The width falls to below a thousandth.
    while width > 5e-4 {
        let around = best;
        let steps = || (-2..=2).map(|k| f64::from(k) * width / 2.0);
        for (dp, dd, dc) in steps().flat_map(|p| steps().flat_map(move |d| steps().map(move |c| (p, d, c)))) {
            let near = Parameters {
                persuadability: (around.persuadability + dp).clamp(0.0, 1.0),
                discernment: (around.discernment + dd).clamp(0.0, 1.0),
                conformity: (around.conformity + dc).clamp(0.0, 1.0),
            };
            let value = f(near);
            if value > most {
                (best, most) = (near, value);
            }
        }
        width *= 0.6;
    }
    best
}
