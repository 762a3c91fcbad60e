//! Figures of a method, and which differences between methods are real.

use super::sheet::{Ledger, SOLVE, Sheet, Spent};
use super::{Entrant, Unit};
use polity_kernel::stats;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// Below this chance, after as many tests as there are, a difference counts as real.
pub const LEVEL: f64 = 0.05;

/// What was spent by somebody on a kind of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The member's role or name, else `members`.
    pub who: String,
    /// The kind of work: `calls.purpose`.
    pub purpose: String,
    /// What it took.
    #[serde(flatten)]
    pub spent: Spent,
}

/// A quantity that a method measures: the mean over the items that have a value, of each the mean over its repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The mean.
    pub mean: f64,
    /// Lower end of its 95 % interval: percentile bootstrap over items.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Items that have a value.
    pub items: usize,
}

/// What a method came to.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// As it was named.
    pub method: String,
    /// The method's name.
    pub kind: &'static str,
    /// Members of its team.
    pub members: u32,
    /// Rounds at most.
    pub rounds: u32,
    /// Items.
    pub items: usize,
    /// Share of right answers: the mean over items, of each its mean over the repeats that could be scored. `None` if none could.
    pub accuracy: Option<f64>,
    /// Lower end of its 95 % interval: percentile bootstrap over items, with all repeats of an item together.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// What all repeats took together.
    #[serde(flatten)]
    pub spent: Spent,
    /// Share of the tokens that were not spent on solving the item: every purpose but `solve`.
    pub coordination: f64,
    /// What a model that scores the answers took, where one does; no part of what the method took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scoring: Option<Spent>,
    /// Use per item as a share of the allowance, where budgets were to be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_allowance: Option<f64>,
    /// Answers that nobody could score, for instance because their tests did not run. They count for nothing.
    pub unscored: usize,
    /// Items on which the team had no answer. They count as wrong.
    pub unanswered: usize,
    /// pass^k by k: the chance that k tries at an item are all right; with several repeats.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pass: BTreeMap<u32, f64>,
    /// What the method measures of its items besides, by the quantity's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<&'static str, Measured>,
    /// Who spent what for what.
    pub ledger: Vec<Entry>,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// `done`.
    pub status: &'static str,
    /// Folder of the run, with repeats of the first.
    pub run: String,
    /// The runs of all repeats.
    pub runs: Vec<String>,
    /// Share of right answers by item, over its repeats.
    #[serde(skip)]
    pub by_item: Vec<Option<f64>>,
}

impl Score {
    /// Sums the repeats of a method up.
    pub(super) fn of(entrant: &Entrant, sheets: &[Sheet], runs: Vec<String>, simulated: bool) -> Score {
        let items = sheets.first().map_or(0, |sheet| sheet.rows.len());
        let told = |item: usize| sheets.iter().filter_map(move |sheet| sheet.rows.get(item)?.correct);
        let by_item: Vec<Option<f64>> = (0..items)
            .map(|item| stats::mean(&told(item).map(|right| f64::from(u8::from(right))).collect::<Vec<_>>()))
            .collect();
        let values: Vec<f64> = by_item.iter().flatten().copied().collect();
        let accuracy = stats::bootstrap(&values);
        let (mut spent, mut scoring) = (Spent::default(), Spent::default());
        sheets.iter().for_each(|sheet| scoring.add(&sheet.scoring));
        let mut ledger = Ledger::new();
        for (who, part) in sheets.iter().flat_map(|sheet| &sheet.ledger) {
            spent.add(part);
            ledger.entry(who.clone()).or_default().add(part);
        }
        let solving: u64 =
            ledger.iter().filter(|((_, purpose), _)| purpose == SOLVE).map(|(_, spent)| spent.tokens()).sum();
        let rows = || sheets.iter().flat_map(|sheet| &sheet.rows);
        Score {
            method: entrant.label.clone(),
            kind: entrant.method,
            members: entrant.members,
            rounds: entrant.rounds,
            items,
            accuracy: accuracy.mean,
            low: accuracy.low,
            high: accuracy.high,
            spent,
            coordination: 1.0 - solving as f64 / spent.tokens().max(1) as f64,
            scoring: Some(scoring).filter(|scoring| scoring.calls > 0),
            of_allowance: None,
            unscored: rows().filter(|row| row.correct.is_none()).count(),
            unanswered: rows().filter(|row| row.answer.is_none()).count(),
            pass: passes(sheets.len() as u32, (0..items).map(|item| told(item).collect()).collect()),
            measured: measured(sheets),
            ledger: ledger.into_iter().map(|((who, purpose), spent)| Entry { who, purpose, spent }).collect(),
            simulated,
            status: "done",
            run: runs.first().cloned().unwrap_or_default(),
            runs,
            by_item,
        }
    }

    /// What it takes an item and repeat, in a unit.
    #[must_use]
    pub fn use_per_item(&self, unit: Unit) -> f64 {
        unit.of(&self.spent) / (self.items * self.runs.len()).max(1) as f64
    }
}

/// What was measured of the items, over all repeats.
fn measured(sheets: &[Sheet]) -> BTreeMap<&'static str, Measured> {
    let mut of_items: BTreeMap<&'static str, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for row in sheets.iter().flat_map(|sheet| &sheet.rows) {
        for (name, value) in &row.measured {
            of_items.entry(name).or_default().entry(row.item).or_default().push(*value);
        }
    }
    let summed = |(name, values): (&'static str, BTreeMap<u32, Vec<f64>>)| {
        let values: Vec<f64> = values.values().filter_map(|repeats| stats::mean(repeats)).collect();
        let estimate = stats::bootstrap(&values);
        let measured = Measured { mean: estimate.mean?, low: estimate.low, high: estimate.high, items: values.len() };
        Some((name, measured))
    };
    of_items.into_iter().filter_map(summed).collect()
}

/// pass^k for every k up to the number of repeats, over the items that could be scored so often.
fn passes(repeats: u32, told: Vec<Vec<bool>>) -> BTreeMap<u32, f64> {
    let of = |k: u32| {
        let each = told.iter().filter_map(|tries| {
            let right = tries.iter().filter(|right| **right).count() as u32;
            stats::pass_hat(right, tries.len() as u32, k)
        });
        stats::mean(&each.collect::<Vec<f64>>()).map(|mean| (k, mean))
    };
    if repeats < 2 { BTreeMap::new() } else { (1..=repeats).filter_map(of).collect() }
}

/// Two methods on the same items.
#[derive(Clone, Debug, Serialize)]
pub struct Duel {
    /// One.
    pub a: String,
    /// The other.
    pub b: String,
    /// Items that both could be scored on.
    pub items: usize,
    /// Accuracy of `a` less that of `b` on these.
    pub difference: Option<f64>,
    /// Lower end of its 95 % interval: percentile bootstrap over items, in pairs.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Items on which `a` is right more often.
    pub a_only: u64,
    /// Items on which `b` is.
    pub b_only: u64,
    /// Exact two-sided McNemar test (with repeats: sign test over items).
    pub p: f64,
    /// The same after as many tests as there are pairs (Holm).
    pub p_holm: f64,
    /// `real` if that is below [`LEVEL`], else `not told apart`.
    pub verdict: &'static str,
}

/// All pairs, in order.
pub(super) fn duels(scores: &[Score]) -> Vec<Duel> {
    let pairs: Vec<(usize, usize)> =
        (0..scores.len()).flat_map(|a| (a + 1..scores.len()).map(move |b| (a, b))).collect();
    // Joined in order.
    let mut duels: Vec<Duel> = pairs.into_par_iter().map(|(a, b)| duel(&scores[a], &scores[b])).collect();
    let adjusted = stats::holm(&duels.iter().map(|duel| duel.p).collect::<Vec<f64>>());
    for (duel, p_holm) in duels.iter_mut().zip(adjusted) {
        duel.p_holm = p_holm;
        duel.verdict = if p_holm < LEVEL { "real" } else { "not told apart" };
    }
    duels
}

fn duel(a: &Score, b: &Score) -> Duel {
    let pairs: Vec<f64> = a.by_item.iter().zip(&b.by_item).filter_map(|(a, b)| Some((*a)? - (*b)?)).collect();
    let difference = stats::bootstrap(&pairs);
    let a_only = pairs.iter().filter(|x| **x > 0.0).count() as u64;
    let b_only = pairs.iter().filter(|x| **x < 0.0).count() as u64;
    let p = stats::mcnemar(a_only, b_only);
    Duel {
        a: a.method.clone(),
        b: b.method.clone(),
        items: pairs.len(),
        difference: difference.mean,
        low: difference.low,
        high: difference.high,
        a_only,
        b_only,
        p,
        p_holm: p,
        verdict: "",
    }
}
