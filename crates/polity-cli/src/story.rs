//! Presentation of a run: the table on the terminal and the report, both read from the run folder alone.

use super::failure::{Exit, Failure};
use super::output::note;
use super::{asked, evidence};
use comfy_table::{ContentArrangement, Table, presets};
use polity_arena::report::{BinAxis, DataTable, Figure, Report, Section, Series, automatic_edges, histogram, render};
use polity_driver::control::Recorded;
use polity_driver::results::Run;
use polity_driver::run::{Manifest, RunStatus, Summary};
use polity_kernel::registry::Registry;
use polity_kernel::world::Activation;
use polity_store::disk::{Disk, write_atomically};
use polity_store::tables::{ColumnData, Reader, TableError};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Maximum number of agents whose first and last values are read for the distribution before and after.
const MOST_AGENTS: usize = 2_000_000;
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
    if !lines.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["", "first", "last"]);
        let short = lines.iter().filter(|(name, _)| !name.contains(".histogram.")).take(24);
        for (name, points) in short {
            if let (Some(first), Some(last)) = (points.first(), points.last()) {
                table.add_row([name.clone(), format!("{:.4}", first.1), format!("{:.4}", last.1)]);
            }
        }
        note(&table.to_string());
    }
    let mut facts = vec![format!(
        "{}: {} agents, {} rounds, {:.2} s",
        summary.status, summary.agents, summary.rounds, summary.wall_seconds
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
        facts.push(format!("{by_models} answers{simulated}, {cost}"));
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
        facts.push(format!("{} questions to people", summary.totals.people));
    }
    if summary.totals.tools > 0 {
        facts.push(format!("{} tool calls", summary.totals.tools));
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
        }),
    })
}

/// Shows the result of a replay.
pub fn replayed(summary: &Summary) {
    match summary.first_difference {
        Some(Some(round)) => note(&format!(
            "different: round {round} is the first whose digest differs from the recorded one ({} rounds recomputed)",
            summary.rounds
        )),
        _ => note(&format!("same: {} rounds recomputed, no model asked, digest {}", summary.rounds, summary.digest)),
    }
}

/// Writes `report.html` from the tables and the manifest. `lines`: the run's [`metrics`].
pub fn write_report(disk: &dyn Disk, run: &Run<'_>, lines: &Lines, registry: &Registry) -> Result<PathBuf, Failure> {
    let page = render(&report(run, lines, registry)?);
    let path = run.folder.join("report.html");
    write_atomically(disk, &path, page.as_bytes())
        .map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
    Ok(path)
}

fn report(run: &Run<'_>, lines: &Lines, registry: &Registry) -> Result<Report, TableError> {
    let Run { folder, manifest, tables, orders, .. } = run;
    let rounds = tables.closed("rounds", &[], usize::MAX)?;
    let column = |name: &str| rounds.iter().find(|(n, _)| n == name).map(|(_, data)| data);
    let complete = column("round").map_or(0, ColumnData::rows);
    let last = |name: &str| column(name).map(ColumnData::texts).and_then(|v| v.last().cloned().flatten());
    let sum = |name: &str| column(name).map_or(0.0, |data| data.numbers().into_iter().flatten().sum::<f64>());
    let scenario = &manifest.scenario;
    let planned = scenario.get("rounds").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let agents = column("agents").map(ColumnData::numbers).and_then(|v| v.first().copied().flatten());
    let evaluation = scenario.get("method").is_some();
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
    let mut sections = Vec::new();
    sections.extend(before_and_after(tables, manifest.simulated)?);
    sections.extend(over_rounds(lines, evaluation, scenario));
    sections.extend(items(tables)?);
    sections.extend(asked::sections(tables, folder, manifest.simulated, manifest.is_priced())?);
    sections.extend(ordered(orders));
    sections.extend(evidence::sections(tables)?);
    let text = |key: &str| scenario.get(key).and_then(|v| v.as_str()).map(str::to_string);
    Ok(Report {
        kind: String::new(),
        title: manifest.name.clone(),
        description: text("description"),
        simulated: manifest.simulated,
        status: if complete as u64 == planned { "finished".into() } else { format!("{complete} rounds") },
        facts,
        sections,
        scenario_yaml_or_json: serde_json::to_string_pretty(scenario).unwrap_or_default(),
        reproduce: vec![made_by(manifest), format!("polity replay {}", folder.display())],
        methods: methods(manifest, complete, agents, registry),
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

/// Returns distributions of the world's columns before the first and after the last round.
fn before_and_after(tables: &Reader<'_>, simulated: bool) -> Result<Option<Section>, TableError> {
    let all = tables.closed("agents", &[], 0)?;
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let bases: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".first")).collect();
    if bases.is_empty() {
        return Ok(None);
    }
    let shown = |name: &&str| name.ends_with(".first") || name.ends_with(".last");
    let data = tables.table("agents", &names.iter().copied().filter(shown).collect::<Vec<_>>(), MOST_AGENTS)?;
    let mut figures = Vec::new();
    for base in bases {
        let value = |moment: &str| {
            let name = format!("{base}.{moment}");
            let column = data.iter().find(|(n, _)| *n == name).map(|(_, data)| data.numbers());
            column.unwrap_or_default().into_iter().flatten().collect::<Vec<f64>>()
        };
        let (before, after) = (value("first"), value("last"));
        let (low, high, bins) = shared_edges(&before, &after);
        figures.push(Figure::Histogram {
            title: format!("{base}: before and after"),
            x_label: base.to_string(),
            y_label: "share of agents, %".into(),
            before: histogram(&before, low, high, bins),
            after: Some(histogram(&after, low, high, bins)),
            caption: format!(
                "Distribution of {base} over {} agents before the first and after the last round.",
                after.len()
            ),
        });
    }
    let text = simulated.then(|| "Answers come from simulated models.".to_string());
    Ok((!figures.is_empty()).then_some(Section { title: "Before and after".into(), text, figures, table: None }))
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

/// Returns metrics over rounds: one figure per quantity for its levels, one for each other metric, a heat map for histograms.
fn over_rounds(lines: &Lines, evaluation: bool, scenario: &serde_json::Value) -> Option<Section> {
    let mut levels: BTreeMap<String, Vec<Series>> = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<Series>> = BTreeMap::new();
    let mut heats: BTreeMap<String, BTreeMap<String, Vec<(f64, f64)>>> = BTreeMap::new();
    for (name, points) in lines {
        let mut parts = name.splitn(3, '.');
        let (quantity, metric, suffix) = (parts.next().unwrap_or(name), parts.next(), parts.next());
        let series = |name: String| Series { name, points: points.clone(), band: None };
        match (metric, suffix) {
            (Some("histogram"), Some(bin)) => {
                heats.entry(quantity.into()).or_default().insert(bin.into(), points.clone());
            }
            (Some("mean"), None) => levels.entry(quantity.into()).or_default().push(series("mean".into())),
            (Some("quantiles"), Some(q)) => {
                levels
                    .entry(quantity.into())
                    .or_default()
                    .push(series(format!("quantile {}", q.trim_start_matches('q'))));
            }
            _ if evaluation => others.entry("accuracy and agreement".into()).or_default().push(series(name.clone())),
            (Some(metric), Some(suffix)) => {
                others.entry(format!("{quantity}: {metric}")).or_default().push(series(suffix.into()));
            }
            (Some(metric), None) => {
                others.entry(format!("{quantity}: {metric}")).or_default().push(series(metric.into()))
            }
            (None, _) => others.entry(quantity.into()).or_default().push(series(quantity.into())),
        }
    }
    let mut figures = Vec::new();
    let figure = |title: String, y_label: String, series: Vec<Series>| Figure::Lines {
        caption: format!("{title} by round."),
        title,
        x_label: "round".into(),
        y_label,
        series,
    };
    for (quantity, series) in levels {
        figures.push(figure(format!("{quantity}: level and spread"), quantity, series));
    }
    for (quantity, bins) in heats {
        figures.push(heat(&quantity, &bins, scenario));
    }
    for (title, series) in others {
        let label = if evaluation { "share".to_string() } else { title.clone() };
        figures.push(figure(title, label, series));
    }
    (!figures.is_empty()).then_some(Section { title: "Over the rounds".into(), text: None, figures, table: None })
}

/// Returns the edges of a histogram whose range the scenario gives; otherwise the bins keep the metric's names.
fn edges(quantity: &str, bins: &BTreeMap<String, Vec<(f64, f64)>>, scenario: &serde_json::Value) -> BinAxis {
    let metrics = scenario.get("metrics").and_then(|m| m.as_array());
    let of = |metric: &&serde_json::Value| {
        metric.get("kind").is_some_and(|k| k == "histogram") && metric.get("of").is_some_and(|of| of == quantity)
    };
    let range = metrics.and_then(|m| m.iter().find(of)).and_then(|m| m.get("range")).and_then(|r| r.as_array());
    let end = |i: usize| range.and_then(|r| r.get(i)).and_then(serde_json::Value::as_f64);
    match (end(0), end(1)) {
        (Some(low), Some(high)) if high > low => {
            let n = bins.len();
            BinAxis::Edges((0..=n).map(|i| low + (high - low) * i as f64 / n as f64).collect())
        }
        _ => BinAxis::Categories(bins.keys().cloned().collect()),
    }
}

fn heat(quantity: &str, bins: &BTreeMap<String, Vec<(f64, f64)>>, scenario: &serde_json::Value) -> Figure {
    let mut rounds: Vec<u64> = bins.values().flatten().map(|(round, _)| *round as u64).collect();
    rounds.sort_unstable();
    rounds.dedup();
    // Bins are sorted by name; the names come from the metric.
    let cells = rounds
        .iter()
        .map(|round| {
            bins.values()
                .map(|points| points.iter().find(|p| p.0 as u64 == *round).map_or(f64::NAN, |p| p.1 * 100.0))
                .collect()
        })
        .collect();
    Figure::Heat {
        title: format!("{quantity}: distribution over the rounds"),
        x_label: "round".into(),
        y_label: quantity.into(),
        rounds,
        bins: edges(quantity, bins, scenario),
        cells,
        caption: format!("Share of agents in every bin of {quantity}, %, by round."),
    }
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
        table: Some(DataTable { columns, rows, caption: "Verdicts, in the order of their rounds.".into() }),
    }))
}

/// The paragraph for a paper's methods section.
fn methods(manifest: &Manifest, rounds: usize, agents: Option<f64>, registry: &Registry) -> String {
    let scenario = &manifest.scenario;
    let kind = |node: &serde_json::Value| {
        node.as_str().or_else(|| node.get("kind").and_then(|k| k.as_str())).unwrap_or("?").to_string()
    };
    let parameters = |node: &serde_json::Value| {
        let entries: Vec<String> = node
            .as_object()
            .map(|map| map.iter().filter(|(k, _)| *k != "kind").map(|(k, v)| format!("{k} = {v}")).collect())
            .unwrap_or_default();
        if entries.is_empty() { "with its default parameters".into() } else { format!("with {}", entries.join(", ")) }
    };
    let mut out = String::new();
    if let Some(world) = scenario.get("world") {
        let name = kind(world);
        let about = registry.worlds().into_iter().find(|c| c.name == name).map_or("", |c| c.summary);
        out.push_str(&format!(
            "We simulated {} agents over {rounds} rounds in the world \"{name}\" ({about}) {}. ",
            agents.unwrap_or(0.0),
            parameters(world)
        ));
        for cohort in scenario.get("cohorts").and_then(|c| c.as_array()).into_iter().flatten() {
            if let Some(policy) = cohort.get("policy") {
                let share = cohort.get("share").map_or(String::new(), |s| format!(" ({s} of the agents)"));
                let count = cohort.get("count").map_or(String::new(), |s| format!(" (count {s})"));
                out.push_str(&format!(
                    "One cohort{share}{count} followed the policy \"{}\" {}. ",
                    kind(policy),
                    parameters(policy)
                ));
            }
        }
        if let Some(topology) = scenario.get("topology") {
            out.push_str(&format!("The topology was \"{}\" {}. ", kind(topology), parameters(topology)));
        }
        if let Some(file) = scenario.get("population").and_then(|p| p.get("file")).and_then(|f| f.as_str()) {
            out.push_str(&format!("Agents' attributes came from {file}. "));
        }
        let of_population = |key: &str| scenario.get("population").is_some_and(|p| p.get(key).is_some());
        if of_population("marginals") && of_population("file") {
            out.push_str(
                "Its rows were weighted to the stated marginals by iterative proportional fitting (Deming and Stephan \
                 1940), and the weights were converted to whole numbers by truncate, replicate, sample (Lovelace and \
                 Ballas 2013). ",
            );
        } else if of_population("marginals") {
            out.push_str("Agents' attributes have the stated shares and are independent of each other. ");
        } else if of_population("quotas") {
            out.push_str("Its rows were drawn within quotas, which are met exactly. ");
        }
        out.push_str(match manifest.activation {
            None | Some(Activation::Simultaneous) => "All agents acted simultaneously in each round. ",
            Some(Activation::RandomOrder) => {
                "Agents acted one after the other, in an order drawn anew each round, and each acted on what those \
                 before it had done. "
            }
            Some(Activation::EventTime) => "Agents acted when something happened to them (event time). ",
        });
    } else if let Some(method) = scenario.get("method") {
        let members = scenario.get("agents").and_then(serde_json::Value::as_u64);
        let size = members.map_or("a team".to_string(), |n| format!("a team of {n}"));
        out.push_str(&format!(
            "On every item {size} used the method \"{}\" {} and the models {}. ",
            kind(method),
            parameters(method),
            manifest.models.join(", ")
        ));
    }
    if manifest.simulated {
        out.push_str("Answers came from simulated models with declared skills, not from language models. ");
    }
    out.push_str(&format!(
        "Random numbers are counter-based (Philox2x64-10, seed {}); the run is identified by its digest and can be recomputed \
         exactly with polity {}.",
        manifest.seed, manifest.build.version
    ));
    out
}
