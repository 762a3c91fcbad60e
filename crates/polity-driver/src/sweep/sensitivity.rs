//! How far the factors with ranges move the metrics of a sampled design: Sobol's indices, or rank correlations.

use super::results::Values;
use polity_kernel::scenario::{Design, Factor, Sample};
use polity_stats::rank::spearman_interval;
use polity_stats::sensitivity::sobol_indices;
use polity_stats::{Estimate, mean};
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec};
use rayon::prelude::*;
use serde::Serialize;

/// How far a factor moves a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensitivityRow {
    /// The metric.
    pub metric: String,
    /// The levels of the factors without a range; null if there are none.
    pub at: Option<String>,
    /// The factor with a range.
    pub factor: String,
    /// `first order` or `total`: Sobol's index, the share of the variance of the arms' means that the factor accounts for alone, or with all
    /// its interactions; `rank correlation`: Spearman's, of the factor's value with the arms' means.
    pub index: &'static str,
    /// Its value; null if the means do not vary or one is missing.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Points: of a rank correlation, all that have the metric; of Sobol's indices, those of one of the two samples.
    pub n: usize,
}

/// All rows: for each metric and each combination of the other levels, one or two for each factor with a range.
pub(super) fn rows(design: &Design, metrics: &[String], values: &[Values]) -> Vec<SensitivityRow> {
    let Some(sample) = design.sample else { return Vec::new() };
    let ranges: Vec<(usize, &Factor)> =
        design.factors.iter().enumerate().filter(|(_, factor)| factor.range.is_some()).collect();
    let points = sample.points(ranges.len()) as usize;
    // Points vary fastest.
    let groups: Vec<usize> = (0..design.arms.len()).step_by(points.max(1)).collect();
    let cells: Vec<(usize, usize)> =
        (0..metrics.len()).flat_map(|metric| groups.iter().map(move |first| (metric, *first))).collect();
    let of_cell = |(metric, first): &(usize, usize)| {
        let means: Vec<Option<f64>> = values[*metric][*first..*first + points]
            .iter()
            .map(|seeds| mean(&seeds.iter().flatten().copied().collect::<Vec<_>>()))
            .collect();
        let row = |factor: &Factor, index, found: Estimate| SensitivityRow {
            metric: metrics[*metric].clone(),
            at: others(design, *first),
            factor: factor.name.clone(),
            index,
            value: found.mean,
            low: found.low,
            high: found.high,
            n: found.n,
        };
        match sample {
            Sample::Saltelli(n) => shares(&means, n as usize, ranges.len())
                .into_iter()
                .zip(&ranges)
                .flat_map(|([alone, total], (_, factor))| {
                    [row(factor, "first order", alone), row(factor, "total", total)]
                })
                .collect::<Vec<_>>(),
            _ => ranges
                .iter()
                .map(|(_, factor)| {
                    let value = |(at, mean): (usize, &Option<f64>)| {
                        Some((factor.levels.get(at)?.parse::<f64>().ok()?, (*mean)?))
                    };
                    let pairs: Vec<(f64, f64)> = means.iter().enumerate().filter_map(value).collect();
                    row(factor, "rank correlation", spearman_interval(&pairs))
                })
                .collect(),
        }
    };
    cells.par_iter().map(of_cell).collect::<Vec<_>>().into_iter().flatten().collect()
}

/// The first-order and the total index of each factor; without values if one of the means is missing or none differs.
fn shares(means: &[Option<f64>], n: usize, factors: usize) -> Vec<[Estimate; 2]> {
    let none = Estimate { mean: None, low: None, high: None, n };
    let all: Option<Vec<f64>> = means.iter().copied().collect();
    let parts: Vec<Vec<f64>> = all.unwrap_or_default().chunks(n.max(1)).map(<[f64]>::to_vec).collect();
    let found = match parts.split_first_chunk::<2>() {
        Some(([first, second], mixed)) => sobol_indices(first, second, mixed),
        None => None,
    };
    match found {
        Some(found) => found.into_iter().map(|found| [found.first, found.total]).collect(),
        None => vec![[none; 2]; factors],
    }
}

/// The levels of an arm without its point, as in its name; `None` if there are no others.
fn others(design: &Design, arm: usize) -> Option<String> {
    design.arms[arm].name.rsplit_once(',').map(|(others, _)| others.to_string())
}

/// The table of sensitivities.
pub(super) fn table(rows: &[SensitivityRow]) -> (TableSpec, Batch) {
    let number = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc).nullable();
    let columns = vec![
        ColumnSpec::new("metric", Kind::Text, "quantity and metric"),
        ColumnSpec::new("at", Kind::Text, "levels of the factors without a range").nullable(),
        ColumnSpec::new("factor", Kind::Text, "factor with a range"),
        ColumnSpec::new(
            "index",
            Kind::Text,
            "`first order`, `total`: Sobol's indices, shares of the variance of the arms' means; `rank correlation`: Spearman's, of the \
             factor's value with these means",
        ),
        number("value", "the index; missing if the means do not vary or one is missing"),
        number("low", "lower end of the 95 % interval"),
        number("high", "upper end of the 95 % interval"),
        ColumnSpec::new("n", Kind::U32, "points; of Sobol's indices, those of one sample"),
    ];
    let data = vec![
        Column::Text(rows.iter().map(|row| row.metric.clone()).collect()),
        Column::MaybeText(rows.iter().map(|row| row.at.clone()).collect()),
        Column::Text(rows.iter().map(|row| row.factor.clone()).collect()),
        Column::Text(rows.iter().map(|row| row.index.to_string()).collect()),
        Column::MaybeF64(rows.iter().map(|row| row.value).collect()),
        Column::MaybeF64(rows.iter().map(|row| row.low).collect()),
        Column::MaybeF64(rows.iter().map(|row| row.high).collect()),
        Column::U32(rows.iter().map(|row| row.n as u32).collect()),
    ];
    let doc = "One row per metric, factor with a range and index. Intervals, 95 %, over points: percentile bootstraps of Sobol's indices; by \
               Fisher's transformation for rank correlations."
        .to_string();
    (
        TableSpec { name: "sensitivity".into(), doc, columns, volatile: false, only_with_rows: false },
        Batch { rows: rows.len(), columns: data },
    )
}
