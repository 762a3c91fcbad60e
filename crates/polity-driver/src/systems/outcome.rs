//! What the runs of a check came to, and the values of a claim's quantity in them.

use super::{Entry, FILE};
use crate::chain::{Record, weakest};
use crate::drive::Totals;
use crate::run::{Engine, Made, Prepared, Whole};
use crate::systems::entry::{Claim, Over};
use polity_kernel::scenario::Scenario;
use polity_kernel::tree::nearest;
use polity_stats::rank;
use polity_store::DriveError;
use polity_store::tables::{ColumnData, Reader};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Names of quantities that are derived from the record of the calls begin so: degrees of freedom of the method's chain, and `weakest`,
/// the number of the member with the smallest share of right answers.
pub(super) const DERIVED: [&str; 2] = ["chain.", "capacity."];

/// A rank correlation of pairs.
type Correlation = fn(&[(f64, f64)]) -> Option<f64>;

/// Names of rank correlations begin so: of what is measured of an item with the data set's own number, over all items that have both.
pub(super) const RANKED: [(&str, Correlation); 2] = [("spearman.", rank::spearman), ("kendall.", rank::kendall)];

/// Quantities of every run with calls, besides its metrics.
pub const QUANTITIES: [&str; 6] = ["accuracy", "score", "calls", "tokens", "cost", "rounds"];

/// A run of a check.
pub(super) struct BenchRun {
    pub dir: PathBuf,
    pub prepared: Prepared,
    /// Whether a claim is about its single items.
    pub by_item: bool,
    /// Whether a claim is about what is derived from its calls.
    pub chained: bool,
    /// Whether a claim is about a rank correlation over its items.
    pub ranked: bool,
    /// The number of its arm, over all claims and variants.
    pub arm: usize,
}

/// What says which run belongs into a folder, for errors.
pub(super) const FOLDERS_NAME: &str = "its folder's name";

/// The results of a run.
#[derive(Clone)]
pub(super) struct Values {
    /// By quantity.
    means: BTreeMap<String, f64>,
    /// By quantity and item, of an evaluation. An item without a right answer has no accuracy.
    items: BTreeMap<String, Vec<Option<f64>>>,
    digest: String,
}

/// Runs of an arm, one per seed, as indices into the list of all.
pub(super) type Runs = Vec<usize>;

/// Makes a run, or reads it, and returns its results.
pub(super) fn run(engine: &Engine<'_>, run: &BenchRun) -> Result<Made<Values>, DriveError> {
    engine.whole(&run.prepared, &run.dir, FOLDERS_NAME)?.and_then(|whole| values(engine, run, &whole))
}

fn values(engine: &Engine<'_>, run: &BenchRun, whole: &Whole<'_>) -> Result<Values, DriveError> {
    let BenchRun { dir, prepared, by_item, chained, ranked, .. } = run;
    let mut values: BTreeMap<String, f64> =
        whole.metrics.iter().filter_map(|(name, values)| Some((name.clone(), values.last()?.1))).collect();
    let mut of_items = BTreeMap::new();
    let Totals { calls, tokens_in, tokens_out, cost_usd, .. } = whole.totals;
    let (mut items, mut rounds) = (1.0, f64::from(whole.rounds));
    if Scenario::read(&prepared.tree)?.items.is_some() {
        of_items = numbers(&whole.tables, if *by_item { &[] } else { &["item", "rounds"] }, dir)?;
        let of_rounds = of_items.get("rounds").map(Vec::as_slice).unwrap_or_default();
        items = of_rounds.len() as f64;
        rounds = of_rounds.iter().flatten().sum::<f64>() / items;
        if *ranked {
            values.extend(correlations(&whole.tables)?);
        }
    }
    if let Some(correct) = values.get("items.correct").copied() {
        values.insert("accuracy".into(), correct);
    }
    if let Some(score) = values.get("items.score").copied() {
        values.insert("score".into(), score);
    }
    values.insert("calls".into(), calls as f64 / items);
    values.insert("tokens".into(), (tokens_in + tokens_out) as f64 / items);
    values.insert("cost".into(), cost_usd / items);
    values.insert("rounds".into(), rounds);
    if *chained {
        values.extend(of_record(engine, dir)?);
    }
    Ok(Values { means: values, items: of_items, digest: whole.digest.clone() })
}

/// The quantities that are derived from the record of the calls.
fn of_record(engine: &Engine<'_>, dir: &Path) -> Result<BTreeMap<String, f64>, DriveError> {
    let Some(record) = Record::read(engine.disk.as_ref(), dir)? else { return Ok(BTreeMap::new()) };
    let freedoms =
        record.chain().freedoms.into_iter().map(|freedom| (format!("chain.{}", freedom.name), freedom.value));
    let components = record.components(engine.disk.clone(), engine.registry)?;
    let weakest = weakest(&components).map(|component| ("capacity.weakest".to_owned(), f64::from(component.member)));
    Ok(freedoms.chain(weakest).collect())
}

/// The numbers of each item, in order of item: `accuracy` (0 or 1), `rounds`, `calls`, and what the method measures; of these columns, or
/// of all for an empty list.
fn numbers(
    tables: &Reader<'_>,
    columns: &[&str],
    dir: &Path,
) -> Result<BTreeMap<String, Vec<Option<f64>>>, DriveError> {
    let table = tables.closed("items", columns, usize::MAX)?;
    let Some((_, ColumnData::U32(order))) = table.iter().find(|(name, _)| name == "item") else {
        return Err(DriveError::Folder(format!(
            "{} has no table of items; remove it so that it is made again",
            dir.display()
        )));
    };
    let mut places: Vec<usize> = (0..order.len()).collect();
    places.sort_by_key(|place| order[*place]);
    let mut numbers = BTreeMap::new();
    for (name, column) in &table {
        let name = match name.as_str() {
            "correct" => "accuracy",
            "asks" => "calls",
            name => name,
        };
        let number = |place: usize| match column {
            ColumnData::U32(values) => values[place].map(f64::from),
            ColumnData::F64(values) => values[place],
            ColumnData::Bool(values) => values[place].map(|right| f64::from(u8::from(right))),
            _ => None,
        };
        if matches!(column, ColumnData::U32(_) | ColumnData::F64(_) | ColumnData::Bool(_)) {
            numbers.insert(name.to_owned(), places.iter().map(|place| number(*place)).collect());
        }
    }
    Ok(numbers)
}

/// The rank correlations of every number of the items with the data set's own number (`gold`); of those that vary.
fn correlations(tables: &Reader<'_>) -> Result<BTreeMap<String, f64>, DriveError> {
    let table = tables.closed("items", &[], usize::MAX)?;
    let gold: Vec<Option<f64>> = match table.iter().find(|(name, _)| name == "gold") {
        Some((_, ColumnData::Text(texts))) => {
            texts.iter().map(|text| text.as_ref().and_then(|text| text.trim().parse().ok())).collect()
        }
        _ => Vec::new(),
    };
    let mut found = BTreeMap::new();
    for (name, column) in &table {
        let pairs: Vec<(f64, f64)> = column.numbers().into_iter().zip(&gold).filter_map(|(a, b)| a.zip(*b)).collect();
        for (prefix, correlation) in RANKED {
            found.extend(correlation(&pairs).map(|value| (format!("{prefix}{name}"), value)));
        }
    }
    Ok(found)
}

/// Calls per run or item, the mean over runs.
pub(super) fn calls(runs: &Runs, values: &[Values]) -> Option<f64> {
    let calls: Vec<f64> = runs.iter().filter_map(|at| values.get(*at)?.means.get("calls").copied()).collect();
    let mean = calls.iter().sum::<f64>() / calls.len() as f64;
    (mean > 0.0).then_some(mean)
}

/// Returns whether two arms gave the same digests.
pub(super) fn same(of: &Runs, against: &Runs, values: &[Values]) -> bool {
    let digests = |runs: &Runs| runs.iter().map(|at| values[*at].digest.clone()).collect::<Vec<_>>();
    digests(of) == digests(against)
}

/// The values of a claim's quantity in the runs of its arms: seed by seed, or item by item, where both arms have a value.
pub(super) fn read(
    entry: &Entry,
    claim: &Claim,
    arms: &[Runs],
    values: &[Values],
) -> Result<(Vec<f64>, Option<Vec<f64>>), DriveError> {
    let of_arms = arms.iter().map(|runs| of_arm(entry, claim, runs, values)).collect::<Result<Vec<_>, _>>()?;
    let (of, against) = match &of_arms[..] {
        [of, against] => (of, against),
        [of] => return Ok((of.iter().flatten().copied().collect(), None)),
        _ => return Ok((Vec::new(), None)),
    };
    if of.len() != against.len() {
        return Err(DriveError::Input(format!(
            "{}, claim `{}`: its arms have {} and {} items; they must work on the same ones",
            entry.folder.join(FILE).display(),
            claim.name,
            of.len(),
            against.len()
        )));
    }
    let pairs = of.iter().zip(against).filter_map(|(a, b)| a.zip(*b));
    let (of, against) = pairs.unzip();
    Ok((of, Some(against)))
}

/// The values of a claim's quantity in the runs of an arm.
fn of_arm(entry: &Entry, claim: &Claim, runs: &Runs, values: &[Values]) -> Result<Vec<Option<f64>>, DriveError> {
    let of_runs: Vec<&Values> = runs.iter().filter_map(|at| values.get(*at)).collect();
    let found: Option<Vec<Option<f64>>> = match claim.over {
        Over::Seeds => of_runs.iter().map(|values| values.means.get(&claim.metric).map(|value| Some(*value))).collect(),
        Over::Items => of_runs.first().and_then(|values| values.items.get(&claim.metric).cloned()),
    };
    found.ok_or_else(|| {
        let names = |values: &Values| match claim.over {
            Over::Seeds => values.means.keys().cloned().collect::<Vec<_>>(),
            Over::Items => values.items.keys().filter(|name| *name != "item").cloned().collect(),
        };
        let measured: Vec<String> = of_runs.iter().flat_map(|values| names(values)).collect();
        let usual = QUANTITIES.iter().filter(|_| claim.over == Over::Seeds);
        let known: BTreeSet<&str> = measured.iter().map(String::as_str).chain(usual.copied()).collect();
        let meant = nearest(&claim.metric, known.iter().copied()).filter(|near| *near != claim.metric);
        let meant = meant.map_or(String::new(), |near| format!(", did you mean `{near}`?"));
        DriveError::Input(format!(
            "{}, claim `{}`: not every run of its arms measures `{}`{meant} (measured: {})",
            entry.folder.join(FILE).display(),
            claim.name,
            claim.metric,
            known.into_iter().collect::<Vec<_>>().join(", ")
        ))
    })
}
