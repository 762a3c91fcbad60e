//! Presentation of a run: the table on the terminal and the report, both read from the run folder alone.

mod capacity;
mod chain;
mod curves;
mod finding;
pub(crate) mod methods;
mod parent;
mod pictures;

use super::failure::Failure;
use super::output::{self, note, note_with};
use super::{asked, evidence, save_report};
use polity_arena::report::{DataTable, Report, Section, automatic_edges};
use polity_driver::chain::Record;
use polity_driver::control::Recorded;
use polity_driver::results::Run;
use polity_driver::run::{Manifest, RunStatus, Summary};
use polity_kernel::registry::Registry;
use polity_store::disk::{Disk, RealDisk};
use polity_store::printable::counted;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum items in the report.
const MOST_ITEMS: usize = 200;

/// The values of a metric by round.
pub(super) type Lines = BTreeMap<String, Vec<(f64, f64)>>;

/// Returns the metrics of a run by name and round; empty if nothing was measured yet.
pub(super) fn metrics(tables: &Reader<'_>) -> Result<Lines, TableError> {
    let line = |values: Vec<(u32, f64)>| values.into_iter().map(|(round, value)| (f64::from(round), value)).collect();
    Ok(tables.metrics()?.into_iter().map(|(name, values)| (name, line(values))).collect())
}

/// Shows the table on the terminal. `lines`: the run's [`metrics`].
pub fn summary(run: &Run<'_>, lines: &Lines, summary: &Summary, no_report: bool) -> Result<(), Failure> {
    let Run { folder, manifest, tables, orders, .. } = run;
    if !lines.is_empty() && output::is_json() {
        let mut metrics = Map::new();
        for (name, points) in lines {
            if let (Some(first), Some(last)) = (points.first(), points.last()) {
                metrics.insert(name.clone(), json!({ "first": first.1, "last": last.1 }));
            }
        }
        note_with("the metrics of the first and the last round", &json!({ "metrics": metrics }));
    } else if !lines.is_empty() {
        let mut table = output::table(["", "first", "last"].map(str::to_owned).to_vec());
        let short = lines.iter().filter(|(name, _)| !name.contains(".histogram.")).take(24);
        for (name, points) in short {
            if let (Some(first), Some(last)) = (points.first(), points.last()) {
                table.add_row([name.clone(), format!("{:.4}", first.1), format!("{:.4}", last.1)]);
            }
        }
        note(&table.to_string());
    }
    let mut facts = vec![format!(
        "{}: {}, {}, {:.2} s",
        summary.status,
        counted(summary.agents, "agent"),
        counted(summary.rounds, "round"),
        summary.wall_seconds
    )];
    if let Some(reason) = &summary.reason {
        facts.push(format!("ended early: {reason}"));
    }
    let by_models = summary.totals.answers - summary.totals.people - summary.totals.tools;
    if by_models > 0 {
        let simulated = if summary.simulated { " from simulated models" } else { "" };
        let cost = match summary.simulated || summary.totals.cost_usd > 0.0 {
            true => format!("${:.4}", summary.totals.cost_usd),
            false if summary.totals.calls == 0 => "no call".into(),
            false if manifest.is_priced() => "$0".into(),
            false => "at an unknown price (--price sets it)".into(),
        };
        facts.push(format!("{}{simulated}, {cost}", counted(by_models, "answer")));
    }
    if summary.totals.cache_hits > 0 {
        facts.push(format!(
            "{} of them were already available or in progress, and cost nothing",
            summary.totals.cache_hits
        ));
    }
    let totals = &summary.totals;
    let questions = totals.resolutions.ended();
    if totals.resolutions.default > 0 {
        facts.push(format!(
            "{} of {questions} questions ended in their default: no reply fitted, or there was none (see \
             `polity calls`, columns resolution and outcome)",
            totals.resolutions.default
        ));
    }
    if totals.resolutions.none > 0 {
        facts.push(format!(
            "{} of {questions} questions ended without a fitting reply, or without any reply",
            totals.resolutions.none
        ));
    }
    if totals.retries > 0 {
        facts.push(format!("{} tries failed and were repeated", totals.retries));
    }
    if totals.charged > 0 {
        facts.push(format!(
            "{} requests were interrupted, or in flight when a process ended; they may have been answered, and are \
             counted at their maximum",
            totals.charged
        ));
    }
    if totals.estimated > 0 {
        facts.push(format!(
            "{} answers came without a count of their tokens; they are counted at the maximum that they can have used",
            totals.estimated
        ));
    }
    if summary.totals.denied > 0 {
        facts.push(format!("{} calls were not made: the budget does not cover them", summary.totals.denied));
    }
    if summary.totals.people > 0 {
        facts.push(format!("{} to people", counted(summary.totals.people, "question")));
    }
    if summary.totals.tools > 0 {
        facts.push(counted(summary.totals.tools, "tool call"));
    }
    if !orders.is_empty() {
        let words: Vec<String> = orders.iter().map(|order| order.order.to_string()).collect();
        facts.push(format!("commands during the run: {}", words.join(", ")));
    }
    facts.extend(evidence::facts(tables, &summary.health)?);
    if !summary.digest.is_empty() {
        facts.push(format!("digest {}", summary.digest));
    }
    facts.push(format!("run folder {}", summary.run));
    if summary.status == RunStatus::Stopped {
        facts.push(format!("continue with: polity resume {}", summary.run));
    } else if summary.status == RunStatus::Budget {
        facts.push(format!("continue with: polity resume {}, and a higher limit where one is used up", summary.run));
    } else if !no_report {
        facts.push(format!("report {}", folder.join("report.html").display()));
    }
    facts.iter().for_each(|fact| note(fact));
    Ok(())
}

/// Returns the report's section on commands sent to the run.
fn ordered(orders: &[Recorded]) -> Option<Section> {
    let row = |order: &Recorded| vec![order.at(), order.rounds.to_string(), order.order.to_string()];
    let rows: Vec<Vec<String>> = orders.iter().map(row).collect();
    (!rows.is_empty()).then(|| Section {
        title: "Commands during the run".into(),
        text: None,
        figures: Vec::new(),
        table: Some(DataTable {
            columns: vec!["when".into(), "complete rounds".into(), "order".into()],
            rows,
            caption: "Commands of `polity ctl`, by the clock of the process that received them.".into(),
            links: Vec::new(),
        }),
    })
}

/// Shows the result of a replay.
pub fn replayed(summary: &Summary) {
    match summary.first_difference {
        Some(Some(round)) => note(&format!(
            "different: round {round} is the first whose digest differs from the recorded one ({} recomputed)",
            counted(summary.rounds, "round")
        )),
        _ => note(&format!(
            "same: {} recomputed, no model asked, digest {}",
            counted(summary.rounds, "round"),
            summary.digest
        )),
    }
}

/// The report of a run, from the tables and the manifest. `lines`: the run's [`metrics`].
pub fn report_of(disk: &dyn Disk, run: &Run<'_>, lines: &Lines, registry: &Registry) -> Result<Report, Failure> {
    let method = method_sections(disk, run, registry)?;
    Ok(report(disk, run, lines, registry, method)?)
}

/// Writes `report.html` of a run, and returns its path. `lines`: the run's [`metrics`].
pub fn write_report(disk: &dyn Disk, run: &Run<'_>, lines: &Lines, registry: &Registry) -> Result<PathBuf, Failure> {
    save_report(disk, &run.folder, &report_of(disk, run, lines, registry)?)
}

/// The sections on the method of an evaluation, derived from its record: its chain, and the capacity of the team's components.
fn method_sections(disk: &dyn Disk, run: &Run<'_>, registry: &Registry) -> Result<Vec<Section>, Failure> {
    let Some(record) = Record::read(disk, &run.folder)? else { return Ok(Vec::new()) };
    let mut sections = chain::sections(&record.chain());
    let components = record.components(Arc::new(RealDisk), registry)?;
    sections.extend(capacity::section(&components, &run.manifest, &run.folder));
    Ok(sections)
}

/// Names and values for the head of the report, of the rounds that are recorded.
fn facts(run: &Run<'_>, rounds: &[(String, ColumnData)], agents: Option<f64>, planned: u64) -> Vec<(String, String)> {
    let manifest = &run.manifest;
    let column = |name: &str| rounds.iter().find(|(n, _)| n == name).map(|(_, data)| data);
    let complete = column("round").map_or(0, ColumnData::rows);
    let last = |name: &str| column(name).map(ColumnData::texts).and_then(|v| v.last().cloned().flatten());
    let sum = |name: &str| column(name).map_or(0.0, |data| data.numbers().into_iter().flatten().sum::<f64>());
    let evaluation = manifest.scenario.get("method").is_some();
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_string(), value));
    if let Some(agents) = agents {
        fact(if evaluation { "items" } else { "agents" }, format!("{agents}"));
    }
    fact("rounds", format!("{complete} of {planned}"));
    fact("seed", manifest.seed.to_string());
    fact("acts", format!("{}", sum("acts")));
    if sum("messages") > 0.0 {
        fact("messages", format!("{}", sum("messages")));
    }
    if sum("births") + sum("deaths") > 0.0 {
        fact("births, deaths", format!("{}, {}", sum("births"), sum("deaths")));
    }
    if !manifest.models.is_empty() {
        fact("models", manifest.models.join(", "));
    }
    for (model, capabilities) in &manifest.capabilities {
        fact("models at the start", format!("{model}: {}", capabilities.words()));
    }
    if let Some(origin) = &manifest.forked_from {
        fact("forked from", format!("{} at round {}", origin.run, origin.at));
    }
    if let Some(digest) = last("chain") {
        fact("digest", digest);
    }
    fact("build", format!("polity {} ({})", manifest.build.version, manifest.build.target));
    facts
}

fn report(
    disk: &dyn Disk,
    run: &Run<'_>,
    lines: &Lines,
    registry: &Registry,
    method: Vec<Section>,
) -> Result<Report, TableError> {
    let Run { folder, manifest, tables, orders, .. } = run;
    let rounds = tables.closed("rounds", &[], usize::MAX)?;
    let column = |name: &str| rounds.iter().find(|(n, _)| n == name).map(|(_, data)| data);
    let complete = column("round").map_or(0, ColumnData::rows);
    let agents = column("agents").map(ColumnData::numbers).and_then(|v| v.first().copied().flatten());
    let scenario = &manifest.scenario;
    let planned = scenario.get("rounds").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let marks = curves::marks(run);
    let parent = parent::Parent::of(disk, run);
    let (picture, shown) = pictures::first(run, lines)?;
    let mut sections = Vec::new();
    sections.extend(picture);
    sections.extend(curves::section(run, lines, &marks, parent.as_ref())?);
    sections.extend(parent.as_ref().map(|parent| parent.section(lines)));
    sections.extend(pictures::cascades(tables)?);
    sections.extend(pictures::before_and_after(run, &shown)?);
    sections.extend(items(tables)?);
    sections.extend(method);
    sections.extend(asked::sections(tables, folder, manifest.simulated, manifest.is_priced())?);
    sections.extend(ordered(orders));
    sections.extend(evidence::sections(tables)?);
    let text = |key: &str| scenario.get(key).and_then(|v| v.as_str()).map(str::to_string);
    Ok(Report {
        kind: String::new(),
        title: manifest.name.clone(),
        description: text("description"),
        finding: finding::finding(run, lines, &marks, parent.as_ref(), planned)?,
        simulated: manifest.simulated,
        status: finding::status(run).into(),
        facts: facts(run, &rounds, agents, planned),
        sections,
        scenario_yaml_or_json: serde_json::to_string_pretty(scenario).unwrap_or_default(),
        reproduce: vec![made_by(manifest), format!("polity replay {}", folder.display())],
        methods: methods::methods(manifest, orders, complete, agents, registry),
    })
}

/// Returns the command that repeats the run.
fn made_by(manifest: &Manifest) -> String {
    let mut words = match &manifest.forked_from {
        Some(origin) => vec![format!("polity fork {} --at {}", origin.folder, origin.at)],
        None => vec![format!("polity run {}", manifest.source)],
    };
    words.extend(manifest.edits.iter().filter(|word| !word.starts_with("-P seed=")).cloned());
    if manifest.forked_from.is_none() {
        words.push(format!("--seed {}", manifest.seed));
    }
    words.join(" ")
}

/// Returns bins that suit both distributions: those of the first one if they fit, since a reader knows them (say, a scale with whole
/// answers); else bins for both together.
fn shared_edges(before: &[f64], after: &[f64]) -> (f64, f64, usize) {
    let own = automatic_edges(before.iter().copied());
    if after.iter().all(|x| (own.0..=own.1).contains(x)) {
        return own;
    }
    automatic_edges(before.iter().chain(after).copied())
}

fn items(tables: &Reader<'_>) -> Result<Option<Section>, TableError> {
    let data = tables.closed("items", &[], MOST_ITEMS)?;
    let columns: Vec<String> = data.iter().map(|(name, _)| name.clone()).collect();
    let cells: Vec<Vec<Option<String>>> = data
        .iter()
        .map(|(name, column)| match (name.as_str(), column) {
            ("correct", ColumnData::Bool(v)) => {
                v.iter().map(|c| c.map(|c| if c { "yes".into() } else { "no".into() })).collect()
            }
            (_, column) => column.texts(),
        })
        .collect();
    let rows = data.first().map_or(0, |(_, c)| c.rows());
    if rows == 0 {
        return Ok(None);
    }
    let rows = (0..rows)
        .map(|row| cells.iter().map(|column| column.get(row).cloned().flatten().unwrap_or_default()).collect())
        .collect();
    Ok(Some(Section {
        title: "Items".into(),
        text: None,
        figures: Vec::new(),
        table: Some(DataTable {
            columns,
            rows,
            caption: "Verdicts, in the order of their rounds.".into(),
            links: Vec::new(),
        }),
    }))
}
