//! `polity agreement`: how far judges agree with the labels of a data set and with each other, and how far they favour the answer shown
//! first.

use super::failure::{Exit, Failure};
use super::output::{json, print_line, print_text};
use polity_driver::results;
use polity_stats::Estimate;
use polity_stats::agreement::{cohen, fleiss, position_bias, position_bias_of_orders};
use polity_store::disk::RealDisk;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A judge, or the team's verdict.
#[derive(Debug, Serialize)]
struct Rater {
    name: String,
    /// Items with both a verdict and a label.
    items: usize,
    /// Share of them with the same verdict and label.
    agreement: Option<f64>,
    /// Cohen's kappa with the labels.
    kappa: Option<f64>,
    /// How far it favours the answer shown first, beyond the share of labels; `n` is the number of pairs.
    position_bias: Estimate,
    /// The basis of that measurement: `both orders`, or `labels`.
    measured_by: &'static str,
    /// Share of the items asked in both orders on which it kept its verdict.
    steady: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Agreement {
    /// Share of the labels that are A, the answer shown first.
    labelled_first: f64,
    team: Rater,
    judges: Vec<Rater>,
    /// Fleiss' kappa between the judges.
    fleiss: Option<f64>,
}

/// The letter of the answer that is shown first in the given order.
const FIRST: &str = "A";

/// Verdicts by item.
type Verdicts = BTreeMap<u32, String>;

/// A judge's verdicts on each item.
#[derive(Default)]
struct Said {
    /// Its verdict.
    verdicts: Verdicts,
    /// If asked in both orders: its letter in the given order.
    given: Verdicts,
    /// Its letter in the other order.
    swapped: Verdicts,
}

fn rater(name: &str, said: &Said, labels: &Verdicts) -> Rater {
    let joined = |a: &'_ Verdicts, b: &'_ Verdicts| -> Vec<(String, String)> {
        a.iter().filter_map(|(item, word)| Some((word.clone(), b.get(item)?.clone()))).collect()
    };
    let (labelled, orders) = (joined(&said.verdicts, labels), joined(&said.given, &said.swapped));
    let same = |pairs: &[(String, String)]| {
        let same = pairs.iter().filter(|(a, b)| a == b).count();
        (!pairs.is_empty()).then(|| same as f64 / pairs.len() as f64)
    };
    // A judge asked in both orders has a verdict only where it kept it, so its bias shows in the others.
    let (position_bias, measured_by) = match orders.is_empty() {
        true => {
            let first: Vec<_> = labelled.iter().map(|(said, label)| (said == FIRST, label == FIRST)).collect();
            (position_bias(&first), "labels")
        }
        false => {
            let first: Vec<_> = orders.iter().map(|(given, swapped)| (given == FIRST, swapped != FIRST)).collect();
            (position_bias_of_orders(&first), "both orders")
        }
    };
    Rater {
        name: name.into(),
        items: labelled.len(),
        agreement: same(&labelled),
        kappa: cohen(&labelled),
        position_bias,
        measured_by,
        steady: same(&orders),
    }
}

/// Returns full columns of a table of a run.
pub(super) fn columns<const N: usize>(
    run: &Path,
    tables: &Reader<'_>,
    table: &str,
    names: [&str; N],
) -> Result<[ColumnData; N], Failure> {
    let broken = |message: String| Failure::new(Exit::Folder, message);
    let read = tables.table(table, &names, usize::MAX).map_err(|error| match error {
        TableError::Rounds { .. } => broken(format!(
            "{}: the run has no table `{table}` yet; only evaluations have it, from their first rounds on",
            run.display()
        )),
        error => error.into(),
    })?;
    let data: Vec<ColumnData> = names
        .iter()
        .filter_map(|name| read.iter().find(|(column, _)| column == name).map(|(_, data)| data.clone()))
        .collect();
    data.try_into().map_err(|_| broken(format!("{}: the table `{table}` lacks a column", run.display())))
}

pub fn agreement(run: &Path, as_json: bool) -> Result<Exit, Failure> {
    let tables = results::open(&RealDisk, run)?;
    let [item, answer, gold] = columns(run, &tables, "items", ["item", "extracted", "gold"])?;
    let [act_item, who, kind, text] = columns(run, &tables, "acts", ["item", "agent", "kind", "text"])?;
    let [agent, name] = columns(run, &tables, "agents", ["agent", "name"])?;
    let whole =
        |data: &ColumnData| -> Vec<Option<u32>> { data.numbers().into_iter().map(|x| x.map(|x| x as u32)).collect() };
    let by_item = |items: &ColumnData, words: &ColumnData| -> Verdicts {
        whole(items).into_iter().zip(words.texts()).filter_map(|(item, word)| item.zip(word)).collect()
    };
    let (labels, team) = (by_item(&item, &gold), by_item(&item, &answer));
    if labels.is_empty() {
        let message = format!("{}: the items have no labels to compare answers with", run.display());
        return Err(Failure::new(Exit::Input, message));
    }
    // A member's last verdict on an item counts.
    let mut said: BTreeMap<u32, Said> = BTreeMap::new();
    for (((item, who), kind), text) in whole(&act_item).into_iter().zip(whole(&who)).zip(kind.texts()).zip(text.texts())
    {
        let (Some(item), Some(who), Some(kind), Some(text)) = (item, who, kind, text) else { continue };
        let said = said.entry(who).or_default();
        let verdicts = match kind.as_str() {
            "verdict" | "answer" => &mut said.verdicts,
            "given-order" => &mut said.given,
            "swapped-order" => &mut said.swapped,
            _ => continue,
        };
        verdicts.insert(item, text);
    }
    let none = Said::default();
    let of = |who: u32| said.get(&who).unwrap_or(&none);
    let judges: Vec<(u32, String)> =
        whole(&agent).into_iter().zip(name.texts()).filter_map(|(a, n)| a.zip(n)).collect();
    let ratings: Vec<Vec<&String>> =
        labels.keys().map(|item| judges.iter().filter_map(|(who, _)| of(*who).verdicts.get(item)).collect()).collect();
    let first = labels.values().filter(|label| *label == FIRST).count();
    let found = Agreement {
        labelled_first: first as f64 / labels.len() as f64,
        team: rater("team", &Said { verdicts: team, ..Said::default() }, &labels),
        judges: judges.iter().map(|(who, name)| rater(name, of(*who), &labels)).collect(),
        fleiss: fleiss(&ratings),
    };
    if as_json {
        print_line(&json(&found));
        return Ok(Exit::Done);
    }
    let shown = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let mut out = format!(
        "{:<20} {:>6} {:>10} {:>8} {:>24} {:<11} {:>7}\n",
        "", "items", "agreement", "kappa", "position bias", "by", "steady"
    );
    for rater in std::iter::once(&found.team).chain(&found.judges) {
        let Rater { name, items, agreement, kappa, position_bias: bias, measured_by, steady } = rater;
        let bias = match (bias.mean, bias.low, bias.high) {
            (Some(mean), Some(low), Some(high)) => format!("{mean:+.3} [{low:+.3}, {high:+.3}]"),
            _ => "-".into(),
        };
        out.push_str(&format!(
            "{name:<20} {items:>6} {:>10} {:>8} {bias:>24} {measured_by:<11} {:>7}\n",
            shown(*agreement),
            shown(*kappa),
            shown(*steady)
        ));
    }
    out.push_str(&format!("Share of labels for the answer shown first: {}\n", shown(Some(found.labelled_first))));
    out.push_str(&format!("Fleiss' kappa among the judges: {}\n", shown(found.fleiss)));
    print_text(&out);
    Ok(Exit::Done)
}
