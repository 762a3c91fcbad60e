//! `polity compare`: what differs between runs.

use super::failure::{Exit, Failure};
use super::output::{self, note, print_line, table};
use polity_arena::arena::Entrant;
use polity_arena::report::short;
use polity_driver::chain::{Chain, Freedom};
use polity_driver::results;
use polity_driver::run::Manifest;
use polity_driver::sweep::is_sweep;
use polity_kernel::registry::Registry;
use polity_kernel::tree;
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rounds of a metric on the terminal, at the start and at the end.
const ENDS: usize = 5;
/// Factors of a chain on the terminal.
const MOST_FACTORS: usize = 24;

/// The compared data of a run.
struct Run {
    path: String,
    parameters: BTreeMap<String, Value>,
    /// Metrics by name: values by round.
    metrics: BTreeMap<String, Vec<(u32, f64)>>,
    /// Digests by round.
    digests: Vec<String>,
    /// Its method as a chain of conditional probabilities.
    chain: Option<Chain>,
}

/// Returns the scalars of a scenario by path, as `-P` writes them.
fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| flatten(&tree::child(path, key), value, into));
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                let named = item.get("name").and_then(Value::as_str);
                let path = named.map_or_else(|| tree::item(path, i), |name| tree::child(path, name));
                flatten(&path, item, into);
            }
        }
        scalar => drop(into.insert(path.to_string(), scalar.clone())),
    }
}

/// Returns the keys of a run's scenario with their values, and what else determines it.
pub fn parameters(manifest: &Manifest) -> BTreeMap<String, Value> {
    let mut parameters = BTreeMap::new();
    flatten("", &manifest.scenario, &mut parameters);
    // A scenario may omit its seed.
    parameters.insert("seed".into(), manifest.seed.into());
    for input in &manifest.inputs {
        parameters.insert(format!("input {}", input.path), input.digest.clone().into());
    }
    parameters.insert("build".into(), format!("{} {}", manifest.build.version, manifest.build.target).into());
    parameters
}

fn read(path: &Path) -> Result<Run, Failure> {
    if is_sweep(&RealDisk, path) {
        let message = format!(
            "{} is a sweep; compare its runs, which are folders below {}",
            path.display(),
            path.join("runs").display()
        );
        return Err(Failure::new(Exit::Folder, message));
    }
    let results::Run { manifest, tables, .. } = results::of_run(&RealDisk, path)?;
    // Empty if no round was saved yet.
    let rounds = tables.closed("rounds", &["digest"], usize::MAX)?;
    let digests = rounds.iter().flat_map(|(_, data)| data.texts()).flatten().collect();
    let metrics = tables.metrics()?;
    let chain = Chain::read(&RealDisk, path)?;
    Ok(Run { path: path.display().to_string(), parameters: parameters(&manifest), metrics, digests, chain })
}

/// Explains that methods were given instead of runs, or a single run.
fn no_methods(runs: &[PathBuf], registry: &Registry) -> Result<(), Failure> {
    let name = |run: &PathBuf| Entrant::name_in(&run.to_string_lossy()).to_owned();
    let method = runs.iter().find(|run| !run.exists() && registry.method_named(&name(run)).is_some());
    if let Some(method) = method {
        let message = format!(
            "`{}` is a method: name the items to compare methods on, for instance --task data/gsm8k-200.jsonl \
             --model sim/medium",
            method.display()
        );
        return Err(Failure::new(Exit::Input, message));
    }
    match runs {
        [_] => Err(Failure::new(Exit::Input, "a comparison needs at least two runs, or methods and a --task")),
        _ => Ok(()),
    }
}

/// Compares runs.
pub fn compare(runs: &[String], json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let paths: Vec<PathBuf> = runs.iter().map(PathBuf::from).collect();
    no_methods(&paths, registry)?;
    let runs = paths.iter().map(|path| read(path)).collect::<Result<Vec<Run>, Failure>>()?;
    let differing = differing(&runs);
    let common = runs.iter().map(|run| run.digests.len()).min().unwrap_or(0);
    let first = (0..common).find(|round| runs.iter().any(|run| run.digests[*round] != runs[0].digests[*round]));
    let side_by_side = side_by_side(&runs);
    show(&runs, &differing, &side_by_side, common, first);
    if json {
        let parameters: BTreeMap<&String, Vec<&Option<Value>>> =
            differing.iter().map(|(path, values)| (path, values.iter().collect())).collect();
        let metrics: BTreeMap<&String, Vec<Value>> = side_by_side
            .iter()
            .map(|(name, rows)| {
                (name, rows.iter().map(|(round, values)| json!({ "round": round, "values": values })).collect())
            })
            .collect();
        // Runs without a round have nothing to compare.
        let same = first.is_none() && common > 0 && runs.iter().all(|run| run.digests.len() == common);
        print_line(&output::json(&json!({
            "status": if same { "same" } else { "different" },
            "runs": runs.iter().map(|run| &run.path).collect::<Vec<_>>(),
            "rounds": runs.iter().map(|run| run.digests.len()).collect::<Vec<_>>(),
            "first_difference": first,
            "parameters": parameters,
            "metrics": metrics,
            "chains": runs.iter().map(|run| &run.chain).collect::<Vec<_>>(),
        })));
    }
    Ok(Exit::Done)
}

/// Returns parameters that differ between runs; `None` where a run lacks one.
fn differing(runs: &[Run]) -> Vec<(String, Vec<Option<Value>>)> {
    let paths: BTreeSet<&String> = runs.iter().flat_map(|run| run.parameters.keys()).collect();
    let values = |path: &String| runs.iter().map(|run| run.parameters.get(path).cloned()).collect::<Vec<_>>();
    let all = paths.into_iter().map(|path| (path.clone(), values(path)));
    all.filter(|(_, values)| values.iter().any(|value| *value != values[0])).collect()
}

/// The keys of the scenario in which two runs differ, with the values of both.
pub fn differing_keys(a: &Manifest, b: &Manifest) -> Vec<(String, Option<Value>, Option<Value>)> {
    let (a, b) = (parameters(a), parameters(b));
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let all = paths.into_iter().map(|path| (path.clone(), a.get(path).cloned(), b.get(path).cloned()));
    all.filter(|(_, a, b)| a != b).collect()
}

/// Values of a metric by round, in the order of the runs.
type Rows = Vec<(u32, Vec<Option<f64>>)>;

fn side_by_side(runs: &[Run]) -> BTreeMap<String, Rows> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.metrics.keys()).collect();
    let of = |name: &String| {
        let mut rows: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
        for (at, run) in runs.iter().enumerate() {
            for (round, value) in run.metrics.get(name).into_iter().flatten() {
                rows.entry(*round).or_insert_with(|| vec![None; runs.len()])[at] = Some(*value);
            }
        }
        (name.clone(), rows.into_iter().collect())
    };
    names.into_iter().map(of).collect()
}

fn show(
    runs: &[Run],
    differing: &[(String, Vec<Option<Value>>)],
    metrics: &BTreeMap<String, Rows>,
    common: usize,
    first: Option<usize>,
) {
    let names =
        |first: &[&str]| first.iter().map(|s| s.to_string()).chain(runs.iter().map(|r| r.path.clone())).collect();
    if differing.is_empty() {
        note("parameters: the same");
    } else {
        let mut shown = table(names(&["parameter"]));
        for (path, values) in differing {
            let cells = values.iter().map(|value| match value {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => "-".into(),
            });
            shown.add_row(std::iter::once(path.clone()).chain(cells).collect::<Vec<_>>());
        }
        note(&shown.to_string());
    }
    if !metrics.is_empty() {
        let mut shown = table(names(&["metric", "round"]));
        for (name, rows) in metrics.iter().filter(|(name, _)| !name.contains(".histogram.")) {
            for (at, (round, values)) in rows.iter().enumerate() {
                if at >= ENDS && at + ENDS < rows.len() {
                    if at == ENDS {
                        shown.add_row(vec![name.clone(), "...".into()]);
                    }
                    continue;
                }
                let cells = values.iter().map(|value| value.map_or("-".into(), |x| format!("{x:.4}")));
                shown.add_row([name.clone(), round.to_string()].into_iter().chain(cells).collect::<Vec<_>>());
            }
        }
        note(&shown.to_string());
    }
    show_chains(runs);
    match first {
        Some(round) => note(&format!("round {round} is the first whose digests differ")),
        None if common == 0 => note("digests: none to compare, because a run has no rounds"),
        None if runs.iter().all(|run| run.digests.len() == common) => {
            note(&format!("digests: the same in all {common} rounds"));
        }
        None => note(&format!("digests: the same in the {common} rounds that all runs have")),
    }
}

/// Shows methods as chains of conditional probabilities, one after the other, and their degrees of freedom side by side.
fn show_chains(runs: &[Run]) {
    for (run, chain) in runs.iter().filter_map(|run| Some((run, run.chain.as_ref()?))) {
        let mut shown = table(vec![format!("chain of {}", run.path), "value".into(), "model".into(), "calls".into()]);
        for factor in chain.factors.iter().take(MOST_FACTORS) {
            let cells = [factor.conditional.as_str(), factor.drawn.word(), factor.model.as_str()].map(str::to_owned);
            shown.add_row(cells.into_iter().chain([factor.calls.to_string()]).collect::<Vec<_>>());
        }
        if chain.factors.len() > MOST_FACTORS {
            shown.add_row(vec![format!("... {} in all; --json has them", chain.factors.len())]);
        }
        note(&shown.to_string());
    }
    let Some(chain) = runs.iter().find_map(|run| run.chain.as_ref()) else { return };
    let names = std::iter::once("degree of freedom".to_owned()).chain(runs.iter().map(|run| run.path.clone()));
    let mut shown = table(names.collect());
    for Freedom { name, .. } in &chain.freedoms {
        let value = |run: &Run| run.chain.as_ref().and_then(|chain| chain.freedom(name));
        let cells = runs.iter().map(|run| value(run).map_or("-".into(), short));
        shown.add_row(std::iter::once((*name).to_owned()).chain(cells).collect::<Vec<_>>());
    }
    note(&shown.to_string());
}
