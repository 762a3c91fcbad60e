//! `polity agreement`: how far judges agree with the labels of a data set and with each other, and whether they lean to what is shown first.

use super::output::{json, print_line, print_text};
use super::{Exit, Failure};
use polity_driver::disk::RealDisk;
use polity_driver::tables::{ColumnData, TableError, read_table};
use polity_kernel::agreement::{cohen, fleiss};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A judge, or the team's verdict.
#[derive(Debug, Serialize)]
struct Rater {
    name: String,
    /// Items that both it and the labels have a verdict on.
    items: usize,
    /// Share of them on which the two agree.
    agreement: Option<f64>,
    /// Cohen's kappa with the labels.
    kappa: Option<f64>,
    /// Share of its verdicts for what is shown first, less that of the labels.
    first_bias: Option<f64>,
    /// Of the items asked in both orders, the share on which it kept its verdict.
    steady: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Agreement {
    team: Rater,
    judges: Vec<Rater>,
    /// Fleiss' kappa of the judges among themselves.
    fleiss: Option<f64>,
}

/// Verdicts by item.
type Verdicts = BTreeMap<u32, String>;

fn rater(name: &str, verdicts: &Verdicts, labels: &Verdicts, swapped: &Verdicts) -> Rater {
    let both: Vec<(&String, &String)> =
        verdicts.iter().filter_map(|(item, said)| Some((said, labels.get(item)?))).collect();
    let n = both.len() as f64;
    let share = |holds: &dyn Fn(&(&String, &String)) -> bool| {
        (n > 0.0).then(|| both.iter().filter(|pair| holds(pair)).count() as f64 / n)
    };
    // Whoever changed with the order has no verdict: the other order alone is on record.
    let kept = swapped.iter().filter(|(item, said)| verdicts.get(item) == Some(said)).count();
    Rater {
        name: name.into(),
        items: both.len(),
        agreement: share(&|(said, label)| said == label),
        kappa: cohen(&both),
        first_bias: share(&|(said, _)| *said == "A").zip(share(&|(_, label)| *label == "A")).map(|(a, b)| a - b),
        steady: (!swapped.is_empty()).then(|| kept as f64 / swapped.len() as f64),
    }
}

/// Columns of a table of a run, whole.
pub(super) fn columns<const N: usize>(run: &Path, table: &str, names: [&str; N]) -> Result<[ColumnData; N], Failure> {
    let broken = |message: String| Failure::new(Exit::Folder, message);
    let read = read_table(&RealDisk, &run.join("tables"), table, &names, usize::MAX).map_err(|error| match error {
        TableError::Rounds { .. } => broken(format!(
            "{}: the run has no table `{table}` yet; only evaluations have it, from their first rounds on",
            run.display()
        )),
        error => broken(error.to_string()),
    })?;
    let data: Vec<ColumnData> = names
        .iter()
        .filter_map(|name| read.iter().find(|(column, _)| column == name).map(|(_, data)| data.clone()))
        .collect();
    data.try_into().map_err(|_| broken(format!("{}: the table `{table}` lacks a column", run.display())))
}

pub fn agreement(run: &Path, as_json: bool) -> Result<Exit, Failure> {
    let [item, answer, gold] = columns(run, "items", ["item", "extracted", "gold"])?;
    let [act_item, who, kind, text] = columns(run, "acts", ["item", "agent", "kind", "text"])?;
    let [agent, name] = columns(run, "agents", ["agent", "name"])?;
    let whole =
        |data: &ColumnData| -> Vec<Option<u32>> { data.numbers().into_iter().map(|x| x.map(|x| x as u32)).collect() };
    let by_item = |items: &ColumnData, words: &ColumnData| -> Verdicts {
        whole(items).into_iter().zip(words.texts()).filter_map(|(item, word)| item.zip(word)).collect()
    };
    let (labels, team) = (by_item(&item, &gold), by_item(&item, &answer));
    if labels.is_empty() {
        let message = format!("{}: the items have no labels to agree with", run.display());
        return Err(Failure::new(Exit::Input, message));
    }
    // A member's last verdict on an item counts.
    let mut said: BTreeMap<(u32, bool), Verdicts> = BTreeMap::new();
    for (((item, who), kind), text) in whole(&act_item).into_iter().zip(whole(&who)).zip(kind.texts()).zip(text.texts())
    {
        let (Some(item), Some(who), Some(kind), Some(text)) = (item, who, kind, text) else { continue };
        let swapped = kind == "first-shown";
        if swapped || kind == "verdict" || kind == "answer" {
            said.entry((who, swapped)).or_default().insert(item, text);
        }
    }
    let none = Verdicts::new();
    let of = |who: u32, swapped: bool| said.get(&(who, swapped)).unwrap_or(&none);
    let judges: Vec<(u32, String)> =
        whole(&agent).into_iter().zip(name.texts()).filter_map(|(a, n)| a.zip(n)).collect();
    let ratings: Vec<Vec<&String>> =
        labels.keys().map(|item| judges.iter().filter_map(|(who, _)| of(*who, false).get(item)).collect()).collect();
    let found = Agreement {
        team: rater("team", &team, &labels, &none),
        judges: judges.iter().map(|(who, name)| rater(name, of(*who, false), &labels, of(*who, true))).collect(),
        fleiss: fleiss(&ratings),
    };
    if as_json {
        print_line(&json(&found));
        return Ok(Exit::Done);
    }
    let shown = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let mut out =
        format!("{:<20} {:>6} {:>10} {:>8} {:>11} {:>7}\n", "", "items", "agreement", "kappa", "first bias", "steady");
    for rater in std::iter::once(&found.team).chain(&found.judges) {
        let Rater { name, items, agreement, kappa, first_bias, steady } = rater;
        out.push_str(&format!(
            "{name:<20} {items:>6} {:>10} {:>8} {:>11} {:>7}\n",
            shown(*agreement),
            shown(*kappa),
            shown(*first_bias),
            shown(*steady)
        ));
    }
    out.push_str(&format!("Fleiss' kappa among the judges: {}\n", shown(found.fleiss)));
    print_text(&out);
    Ok(Exit::Done)
}
