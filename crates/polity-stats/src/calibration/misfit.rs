//! How far fitted models are from the answers they were fitted to, in figures that the fit does not use.

use super::{Answered, Fit};
use crate::mean;
use crate::replicates::deviation;
use polity_kernel::rng::{Draws, Stream, normal_quantile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A figure of the answers, and what the fitted models imply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Misfit {
    /// The figure.
    pub figure: &'static str,
    /// In the answers.
    pub observed: f64,
    /// Its standard error over items.
    pub error: f64,
    /// In simulated answers of the fitted models to the same items.
    pub implied: f64,
}

/// Items that are simulated, at least; each as often as the others.
const DRAWN: usize = 20_000;
/// The tempting answer; the right one is 0, and others follow.
const TEMPTING: u32 = 1;

/// Figures of a team's answers to an item.
struct Made {
    /// The chance that a plurality vote is right; ties are broken by lot.
    vote: f64,
    /// 1 if no answer is right, else 0.
    none: f64,
    /// 1 if all are right, else 0.
    all: f64,
    /// Share of pairs of wrong answers that are the same; `None` with fewer than two wrong answers.
    same: Option<f64>,
}

/// Counts the answers to an item, which are numbers; the right one is 0.
fn made(answers: &[u32]) -> Made {
    let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
    answers.iter().for_each(|answer| *counts.entry(*answer).or_default() += 1.0);
    let most = counts.values().copied().fold(0.0, f64::max);
    let tops = counts.values().filter(|n| **n == most).count() as f64;
    let right = counts.get(&0).copied().unwrap_or(0.0);
    let wrong = answers.len() as f64 - right;
    let same: f64 = counts.iter().filter(|(answer, _)| **answer != 0).map(|(_, n)| n * (n - 1.0) / 2.0).sum();
    Made {
        vote: if right == most { 1.0 / tops } else { 0.0 },
        none: f64::from(u8::from(right == 0.0)),
        all: f64::from(u8::from(wrong == 0.0)),
        same: (wrong > 1.0).then(|| same / (wrong * (wrong - 1.0) / 2.0)),
    }
}

/// Compares the team of all models with its simulated twin, on the items that at least two of them answered. Models without a fit are
/// left out.
#[must_use]
pub fn misfits(models: &[Vec<Answered>], fits: &[Option<Fit>]) -> Vec<Misfit> {
    let mut by_item: BTreeMap<u32, Vec<(&Fit, &Answered)>> = BTreeMap::new();
    for (fit, answers) in fits.iter().zip(models) {
        let Some(fit) = fit else { continue };
        answers.iter().for_each(|answer| by_item.entry(answer.item).or_default().push((fit, answer)));
    }
    by_item.retain(|_, answers| answers.len() > 1);
    let observed: Vec<Made> = by_item.values().map(|answers| made(&numbered(answers))).collect();
    if observed.is_empty() {
        return Vec::new();
    }
    let times = DRAWN.div_ceil(observed.len()) as u32;
    let implied: Vec<Made> = (0..times)
        .flat_map(|time| by_item.iter().map(move |(item, answers)| made(&simulated(answers, time, *item))))
        .collect();
    let figure = |figure: &'static str, of: &dyn Fn(&Made) -> Option<f64>| {
        let seen: Vec<f64> = observed.iter().filter_map(of).collect();
        let drawn: Vec<f64> = implied.iter().filter_map(of).collect();
        let error = deviation(&seen).unwrap_or(0.0) / (seen.len() as f64).sqrt();
        Some(Misfit { figure, observed: mean(&seen)?, error, implied: mean(&drawn)? })
    };
    [
        figure("a plurality vote is right", &|made| Some(made.vote)),
        figure("no answer to an item is right", &|made| Some(made.none)),
        figure("all answers to an item are right", &|made| Some(made.all)),
        figure("two wrong answers to an item are the same", &|made| made.same),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Recorded answers as numbers: the right one is 0.
fn numbered(answers: &[(&Fit, &Answered)]) -> Vec<u32> {
    let wrong = answers.iter().map(|(_, answer)| answer).filter(|answer| !answer.right);
    let known: BTreeSet<&str> = wrong.map(|answer| answer.answer.as_str()).collect();
    let number = |(_, answer): &(&Fit, &Answered)| match answer.right {
        true => 0,
        false => known.iter().take_while(|known| **known <= answer.answer.as_str()).count() as u32,
    };
    answers.iter().map(number).collect()
}

/// Answers of the fitted models to an item, by the rule of the simulated models.
fn simulated(answers: &[(&Fit, &Answered)], time: u32, item: u32) -> Vec<u32> {
    let mut draws = Draws::new(1, Stream::Model, time, item);
    let of_item = draws.normal();
    let answer = |(fit, answered): &(&Fit, &Answered)| {
        let c = fit.correlation.unwrap_or(0.0);
        let luck = libm::sqrt(c) * of_item + libm::sqrt(1.0 - c) * draws.normal();
        let (tempted, other) = (draws.chance(fit.lure.unwrap_or(0.0)), draws.below(u64::from(answered.others.max(1))));
        match luck < normal_quantile(fit.mastery(answered.difficulty)) {
            true => 0,
            false if tempted => TEMPTING,
            false => TEMPTING + 1 + other as u32,
        }
    };
    answers.iter().map(answer).collect()
}
