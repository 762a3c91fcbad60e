//! Arms as learners: interquartile means over their seeds, and the probability that a run of an arm is above one of another, by the
//! definitions of rliable ([`polity_stats::evaluation`]). For metrics that the design names; a design that samples ranges has none.

use super::results::Values;
use polity_kernel::scenario::{Arm, Design};
use polity_stats::Estimate;
use polity_stats::evaluation::{interquartile_mean, probability_of_improvement};
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec};
use rayon::prelude::*;
use serde::Serialize;

/// Maximum number of arms; a design with more is not one of learners, and each bootstrap takes time.
const MOST_ARMS: usize = 100;

/// A metric of an arm over its seeds, or of a level of a factor over all other factors and seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationRow {
    /// The factor; null for an arm.
    pub factor: Option<String>,
    /// The arm, or the level.
    pub level: String,
    /// What it is compared with: the baseline, or the factor's first level; null for the baseline itself.
    pub reference: Option<String>,
    /// The metric.
    pub metric: String,
    /// Interquartile mean over the runs of an arm; null if none has it, and for a level, whose arms may have other scales.
    pub iqm: Option<f64>,
    /// Lower end of its 95 % interval; null with fewer than two runs.
    pub iqm_low: Option<f64>,
    /// Its upper end.
    pub iqm_high: Option<f64>,
    /// Probability of improvement: that a run has a higher value than a run of the reference. For a level: the mean over all combinations of
    /// levels of the other factors, which are its tasks.
    pub improvement: Option<f64>,
    /// Lower end of its 95 % interval.
    pub improvement_low: Option<f64>,
    /// Its upper end.
    pub improvement_high: Option<f64>,
    /// Runs that have the metric; of an improvement, those of the task with the fewest.
    pub n: usize,
}

/// What is evaluated: arms, and those that each is compared with.
struct Compared<'a> {
    factor: Option<&'a str>,
    level: &'a str,
    reference: Option<&'a str>,
    of: Vec<usize>,
    over: Vec<usize>,
}

/// Every arm, then every level of each factor against its first one, where the other factors have the same levels.
fn compared(design: &Design) -> Vec<Compared<'_>> {
    let baseline = design.arms.get(design.baseline).filter(|_| design.compares_arms());
    let mut all: Vec<Compared<'_>> = Vec::new();
    for (at, arm) in design.arms.iter().enumerate() {
        let baseline = baseline.filter(|_| at != design.baseline);
        let over = baseline.map(|_| design.baseline).into_iter().collect();
        let reference = baseline.map(|baseline| baseline.name.as_str());
        all.push(Compared { factor: None, level: &arm.name, reference, of: vec![at], over });
    }
    if design.factors.len() < 2 {
        return all;
    }
    for (f, factor) in design.factors.iter().enumerate() {
        let others = |arm: &Arm| {
            let mut levels = arm.levels.clone();
            levels.remove(f);
            levels
        };
        for (level, name) in factor.levels.iter().enumerate().skip(1) {
            let pair = |(of, arm): (usize, &Arm)| {
                let first = |other: &&Arm| other.levels[f] == 0 && others(other) == others(arm);
                let over = design.arms.iter().position(|other| first(&other))?;
                (arm.levels[f] == level).then_some((of, over))
            };
            let (of, over): (Vec<usize>, Vec<usize>) = design.arms.iter().enumerate().filter_map(pair).unzip();
            let reference = factor.levels.first().map(String::as_str);
            if !of.is_empty() {
                all.push(Compared { factor: Some(&factor.name), level: name, reference, of, over });
            }
        }
    }
    all
}

/// Whether the design names a metric in full.
fn names(design: &Design, metric: &str) -> bool {
    design.metrics.iter().flatten().any(|named| named == metric)
}

/// The rows of all named metrics, by arm.
pub(super) fn rows(design: &Design, metrics: &[String], values: &[Values]) -> Vec<EvaluationRow> {
    let comparable = design.factors.iter().all(|factor| factor.range.is_none());
    if !comparable || design.arms.len() > MOST_ARMS {
        return Vec::new();
    }
    let named = || metrics.iter().zip(values).filter(|(metric, _)| names(design, metric));
    let scores = |values: &Values, arm: usize| -> Vec<f64> { values[arm].iter().flatten().copied().collect() };
    let compared = compared(design);
    let cells: Vec<(&Compared<'_>, &String, &Values)> =
        compared.iter().flat_map(|of| named().map(move |(metric, values)| (of, metric, values))).collect();
    let row = |(compared, metric, values): (&Compared<'_>, &String, &Values)| {
        let of = |arms: &[usize]| arms.iter().map(|arm| scores(values, *arm)).collect::<Vec<Vec<f64>>>();
        let (own, others) = (of(&compared.of), of(&compared.over));
        let own_views: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        let other_views: Vec<&[f64]> = others.iter().map(Vec::as_slice).collect();
        let iqm = if compared.factor.is_none() { interquartile_mean(&own_views) } else { None };
        let improvement = probability_of_improvement(&own_views, &other_views);
        let n = match compared.factor {
            None => own.iter().map(Vec::len).sum(),
            Some(_) => improvement.map_or(0, |found| found.n),
        };
        let ends = |found: Option<Estimate>| {
            let of = |part: fn(&Estimate) -> Option<f64>| found.as_ref().and_then(part);
            (of(|found| found.mean), of(|found| found.low), of(|found| found.high))
        };
        let ((iqm, iqm_low, iqm_high), improved) = (ends(iqm), ends(improvement));
        let (improvement, improvement_low, improvement_high) = improved;
        EvaluationRow {
            factor: compared.factor.map(str::to_owned),
            level: compared.level.to_owned(),
            reference: compared.reference.map(str::to_owned),
            metric: metric.clone(),
            iqm,
            iqm_low,
            iqm_high,
            improvement,
            improvement_low,
            improvement_high,
            n,
        }
    };
    // Results are joined in order.
    cells.into_par_iter().map(row).collect()
}

/// The table.
pub(super) fn table(rows: &[EvaluationRow]) -> (TableSpec, Batch) {
    let number = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc).nullable();
    let text = |name: &str, doc: &str| ColumnSpec::new(name, Kind::Text, doc);
    let columns = vec![
        text("factor", "factor; missing for an arm").nullable(),
        text("level", "the arm, or the level"),
        text("reference", "what it is compared with: the baseline, or the factor's first level").nullable(),
        text("metric", "quantity and metric"),
        number("iqm", "interquartile mean over the arm's seeds: that of the middle half; missing for a level"),
        number("iqm_low", "lower end of its 95 % interval"),
        number("iqm_high", "upper end of its 95 % interval"),
        number(
            "improvement",
            "probability that a run has a higher value than a run of the reference, ties counting half; of a level, the mean over all \
             combinations of the other factors",
        ),
        number("improvement_low", "lower end of its 95 % interval"),
        number("improvement_high", "upper end of its 95 % interval"),
        ColumnSpec::new("n", Kind::U32, "runs that have the metric"),
    ];
    let numbers = |of: fn(&EvaluationRow) -> Option<f64>| Column::MaybeF64(rows.iter().map(of).collect());
    let maybe =
        |of: fn(&EvaluationRow) -> &Option<String>| Column::MaybeText(rows.iter().map(|row| of(row).clone()).collect());
    let data = vec![
        maybe(|row| &row.factor),
        Column::Text(rows.iter().map(|row| row.level.clone()).collect()),
        maybe(|row| &row.reference),
        Column::Text(rows.iter().map(|row| row.metric.clone()).collect()),
        numbers(|row| row.iqm),
        numbers(|row| row.iqm_low),
        numbers(|row| row.iqm_high),
        numbers(|row| row.improvement),
        numbers(|row| row.improvement_low),
        numbers(|row| row.improvement_high),
        Column::U32(rows.iter().map(|row| row.n as u32).collect()),
    ];
    let doc = "One row per arm, or level of a factor, and metric that the design names. Intervals: percentile bootstrap, 95 %, of each arm's seeds by themselves."
        .to_string();
    (
        TableSpec { name: "evaluation".into(), doc, columns, volatile: false, only_with_rows: false },
        Batch { rows: rows.len(), columns: data },
    )
}
