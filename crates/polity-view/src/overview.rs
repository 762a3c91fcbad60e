//! What a run is and how far it is.

use super::problem::Answer;
use super::{App, is_run};
use polity_driver::control::{self, Status};
use polity_driver::drive::Totals;
use polity_driver::health::alarms;
use polity_driver::results::{self, Run};
use polity_driver::run::{Engine, RunStatus};
use polity_kernel::registry::Registry;
use polity_store::tables::{ColumnSpec, Kind, TableSpec};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// A run in the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunHead {
    /// Its ID in this server.
    pub id: String,
    pub name: String,
    /// `society` or `evaluation`.
    pub kind: &'static str,
    /// `running`, `paused`, `done`, `stopped` or `budget`.
    pub status: &'static str,
    /// Rounds complete.
    pub rounds: u32,
    pub rounds_planned: Option<u64>,
    pub agents: Option<u64>,
    pub seed: u64,
    /// Whether answers come from simulated models.
    pub simulated: bool,
    pub calls: u64,
    /// Cost in US dollars; null if a price is not known.
    pub cost_usd: Option<f64>,
    pub tokens: u64,
    pub started_ms: Option<u64>,
    pub changed_ms: Option<u64>,
    pub alarms: usize,
    /// Why nothing moves, if so.
    pub waiting: Option<String>,
    /// The run it was forked from.
    pub parent: Option<String>,
    pub folder: String,
}

/// All that is known about a run but its rows.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunDetail {
    #[serde(flatten)]
    pub head: RunHead,
    /// The scenario as it was run.
    pub scenario: Json,
    pub world: Option<String>,
    pub policies: Vec<String>,
    pub cohorts: Vec<String>,
    pub models: Vec<String>,
    pub digest: Option<String>,
    pub build: String,
    pub totals: Json,
    pub limits: Json,
    pub health: Vec<Json>,
    pub orders: Vec<Json>,
    pub changes: Vec<Json>,
    pub fork: Option<Json>,
    pub tables: Vec<Json>,
    /// Numbers and categories that agents can be coloured and sorted by.
    pub columns: Vec<AgentColumn>,
    pub space: Option<Json>,
    /// Rounds from one recorded state of the agents to the next.
    pub states_every: Option<u32>,
    pub network: Option<Json>,
    pub has: BTreeMap<&'static str, bool>,
    pub question_count: usize,
}

/// A property of agents.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AgentColumn {
    pub name: String,
    pub doc: String,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// `number` or `category`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Whether it is known by round.
    pub timed: bool,
}

/// The list of runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    pub runs: Vec<RunHead>,
}

fn milliseconds(path: &Path) -> Option<u64> {
    let time = std::fs::metadata(path).ok()?.modified().ok()?;
    Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis() as u64)
}

/// The journal's newest change.
fn changed(folder: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(folder.join("journal")).ok()?;
    entries.flatten().filter_map(|entry| milliseconds(&entry.path())).max()
}

/// What the process that works on a run says, if one does. The run of a process that is busy for long says nothing in time.
pub(crate) fn active(app: &App, folder: &Path, since: u32) -> Option<Status> {
    if !control::under_way(app.disk.as_ref(), folder) {
        return None;
    }
    control::status(app.disk.clone(), folder, since).ok()
}

/// Finished runs do not change: their totals are read once.
fn totals(app: &App, folder: &Path) -> Answer<(RunStatus, Totals, usize)> {
    let registry = Registry::default();
    let engine = Engine { disk: app.disk.clone(), ..Engine::new(&registry) };
    let summary = engine.summed_up(folder)?;
    Ok((summary.status, summary.totals, summary.health.len()))
}

pub(crate) fn head(app: &App, id: &str, folder: &Path) -> Answer<RunHead> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    Ok(head_of(app, id, &run)?.0)
}

/// The head of a run, and its totals.
fn head_of(app: &App, id: &str, run: &Run<'_>) -> Answer<(RunHead, Totals)> {
    let folder = &run.folder;
    let manifest = &run.manifest;
    let scenario = &manifest.scenario;
    let is_evaluation = scenario.get("method").is_some_and(|method| !method.is_null());
    let status = if run.ended.is_some() { None } else { active(app, folder, u32::MAX) };
    let now = status.as_ref();
    // What an active run tells itself need not be read from its journal, which may be long.
    let (ended, totals, alarms) = match now {
        Some(status) => (RunStatus::Stopped, status.totals, alarms(&run.tables)?.len()),
        None => app.catalog.once(folder, changed(folder), || totals(app, folder))?,
    };
    let is_priced = manifest.is_priced();
    let head = RunHead {
        id: id.to_string(),
        name: manifest.name.clone(),
        kind: if is_evaluation { "evaluation" } else { "society" },
        status: match (now, ended) {
            (Some(status), _) if status.paused => "paused",
            (Some(_), _) => "running",
            (None, _) if run.ended.is_none() && control::under_way(app.disk.as_ref(), folder) => "running",
            (None, ended) => ended.name(),
        },
        rounds: now.map_or(run.rounds, |status| status.rounds),
        rounds_planned: scenario.get("rounds").and_then(Json::as_u64),
        agents: match is_evaluation {
            true => scenario.get("team").and_then(Json::as_array).map(|team| team.len() as u64),
            false => now.map(|status| u64::from(status.agents)).or_else(|| agents_of(run)),
        },
        seed: manifest.seed,
        simulated: manifest.simulated,
        calls: totals.calls,
        cost_usd: is_priced.then_some(totals.cost_usd),
        tokens: totals.tokens_in + totals.tokens_out,
        started_ms: milliseconds(&folder.join("inputs")).or_else(|| milliseconds(&folder.join("manifest.json"))),
        changed_ms: changed(folder),
        alarms,
        waiting: now.and_then(|status| status.waiting.clone()),
        parent: manifest.forked_from.as_ref().map(|origin| parent(app, folder, &origin.folder)),
        folder: folder.display().to_string(),
    };
    Ok((head, totals))
}

/// The run that a fork came from: its ID, if it is served, else its folder.
fn parent(app: &App, fork: &Path, folder: &str) -> String {
    let name = Path::new(folder).file_name();
    let beside = fork.parent().zip(name).map(|(dir, name)| dir.join(name));
    let runs = app.catalog.runs();
    let id = runs.iter().find(|(_, run)| beside.as_ref() == Some(run) || run.as_path() == Path::new(folder));
    id.map_or_else(|| folder.to_string(), |(id, _)| id.clone())
}

/// Agents of a society: at the start of its first recorded round.
fn agents_of(run: &Run<'_>) -> Option<u64> {
    let rounds = run.tables.closed("rounds", &["agents"], 1).ok()?;
    let first = rounds.first().and_then(|(_, data)| data.numbers().first().copied().flatten());
    first.map(|n| n as u64).or_else(|| run.manifest.scenario.get("agents").and_then(Json::as_u64))
}

pub(crate) fn list(app: &App) -> Answer<RunList> {
    let mut runs: Vec<RunHead> = Vec::new();
    for (id, folder) in app.catalog.runs().iter().filter(|(_, folder)| is_run(folder)) {
        runs.push(match head(app, id, folder) {
            Ok(head) => head,
            // It stays in the list, with what is wrong.
            Err(problem) => broken(id, folder, problem.error),
        });
    }
    runs.sort_by_key(|run| std::cmp::Reverse((run.status == "running", run.changed_ms)));
    Ok(RunList { runs })
}

fn broken(id: &str, folder: &Path, why: String) -> RunHead {
    RunHead {
        id: id.to_string(),
        name: id.rsplit('~').next().unwrap_or(id).to_string(),
        kind: "society",
        status: "damaged",
        rounds: 0,
        rounds_planned: None,
        agents: None,
        seed: 0,
        simulated: false,
        calls: 0,
        cost_usd: None,
        tokens: 0,
        started_ms: None,
        changed_ms: changed(folder),
        alarms: 0,
        waiting: Some(why),
        parent: None,
        folder: folder.display().to_string(),
    }
}

fn described(run: &Run<'_>) -> Answer<Vec<(TableSpec, u64)>> {
    run.tables.names().iter().map(|name| Ok(run.tables.describe(name)?)).collect()
}

fn column_json(column: &ColumnSpec) -> Json {
    let (kind, words) = match &column.kind {
        Kind::U32 => ("u32", None),
        Kind::U64 => ("u64", None),
        Kind::F64 => ("f64", None),
        Kind::Bool => ("bool", None),
        Kind::Text => ("text", None),
        Kind::Category(words) => ("category", Some(words)),
    };
    let mut json = json!({ "name": column.name, "kind": kind, "doc": column.doc });
    if let (Some(words), Some(object)) = (words, json.as_object_mut()) {
        object.insert("words".into(), json!(words));
    }
    json
}

/// What agents can be coloured by: their states by round, else before the first and after the last round, and their attributes.
pub(crate) fn agent_columns(tables: &[(TableSpec, u64)], is_evaluation: bool) -> Vec<AgentColumn> {
    let of = |name: &str| tables.iter().find(|(spec, _)| spec.name == name).map(|(spec, _)| spec);
    let (states, agents) = (of("states"), of("agents"));
    let column = |spec: &ColumnSpec, timed: bool| {
        let (kind, words) = match &spec.kind {
            Kind::Category(words) => ("category", words.clone()),
            Kind::Bool => ("category", vec!["no".into(), "yes".into()]),
            Kind::Text => return None,
            _ => ("number", Vec::new()),
        };
        let (low, high) = spec.range.unzip();
        Some(AgentColumn { name: spec.name.clone(), doc: spec.doc.clone(), low, high, kind, words, timed })
    };
    let mut columns: Vec<AgentColumn> = Vec::new();
    if is_evaluation {
        return columns;
    }
    let of_states = states.map_or(&[][..], |spec| &spec.columns);
    columns.extend(of_states.iter().filter(|c| c.name != "round" && c.name != "agent").filter_map(|c| column(c, true)));
    if let Some(acts) = of("acts") {
        let wanted = acts.columns.iter().filter(|c| c.name == "value" || c.name == "kind");
        columns.extend(wanted.filter_map(|c| {
            let name = format!("action.{}", c.name);
            column(c, true).map(|column| AgentColumn { name, ..column })
        }));
    }
    let known: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let is_known = |name: &str| {
        let base = name.strip_suffix(".first").or_else(|| name.strip_suffix(".last")).unwrap_or(name);
        known.iter().any(|known| known == base)
    };
    let of_agents = agents.map_or(&[][..], |spec| &spec.columns);
    columns
        .extend(of_agents.iter().filter(|c| c.name != "agent" && !is_known(&c.name)).filter_map(|c| column(c, false)));
    columns
}

/// The space that agents live in, by the axes of their columns.
fn space(tables: &[(TableSpec, u64)]) -> Option<Json> {
    use polity_kernel::interface::Axis;
    ["states", "agents"].iter().find_map(|name| {
        let (spec, _) = tables.iter().find(|(spec, _)| spec.name == *name)?;
        // Of the two columns of the table of agents, the last one.
        let on = |axis: Axis| spec.columns.iter().rev().find(|column| column.axis == Some(axis));
        let extent = |column: &ColumnSpec, more: f64| column.range.map_or(1.0, |(low, high)| high - low + more);
        if let (Some(x), Some(y)) = (on(Axis::CellX), on(Axis::CellY)) {
            let (width, height) = (extent(x, 1.0), extent(y, 1.0));
            return Some(json!({ "kind": "grid", "width": width, "height": height, "x": x.name, "y": y.name }));
        }
        let (x, y) = (on(Axis::X)?, on(Axis::Y)?);
        let heading = on(Axis::HeadingX).zip(on(Axis::HeadingY)).map(|(x, y)| json!([x.name, y.name]));
        let (width, height) = (extent(x, 0.0), extent(y, 0.0));
        Some(json!({ "kind": "plane", "width": width, "height": height, "x": x.name, "y": y.name, "heading": heading }))
    })
}

fn names(list: Option<&Json>, key: &str) -> Vec<String> {
    let entries = list.and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    entries.iter().filter_map(|entry| Some(entry.pointer(key)?.as_str()?.to_string())).collect()
}

pub(crate) fn detail(app: &App, id: &str, folder: &Path) -> Answer<RunDetail> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let (head, totals) = head_of(app, id, &run)?;
    let manifest = &run.manifest;
    let scenario = manifest.scenario.clone();
    let tables = described(&run)?;
    let has_table = |name: &str| tables.iter().any(|(spec, rows)| spec.name == name && *rows > 0);
    let rows = |name: &str| tables.iter().find(|(spec, _)| spec.name == name).map_or(0, |(_, rows)| *rows);
    let is_evaluation = head.kind == "evaluation";
    let states_every = tables.iter().find(|(spec, _)| spec.name == "states").map(|_| {
        let agents = head.agents.unwrap_or(1);
        let record = polity_kernel::scenario::Record::default();
        let columns =
            tables.iter().find(|(spec, _)| spec.name == "states").map_or(0, |(spec, _)| spec.columns.len() - 2);
        let stated = scenario.pointer("/record/states").and_then(Json::as_u64).map(|n| n as u32);
        let rounds = head.rounds_planned.unwrap_or(0) as u32;
        stated.or_else(|| record.states_every(agents as u32, columns, rounds)).unwrap_or(1)
    });
    let health = alarms(&run.tables)?;
    let digest = run.ended.as_ref().map(|outcome| outcome.digest.to_string());
    let words = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let changes = scenario.get("changes").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let changes = changes.iter().flat_map(|change| {
        let at = change.get("at").cloned().unwrap_or_default();
        let set = change.get("set").and_then(Json::as_object);
        set.into_iter()
            .flatten()
            .map(move |(path, value)| json!({"round": at, "what": format!("{path} = {}", words(value))}))
    });
    let budget = scenario.get("budget").cloned().unwrap_or_default();
    let limit = |key: &str| budget.get(key).cloned().unwrap_or_default();
    let questions =
        polity_driver::people::of_run(app.disk.clone(), folder).ok().and_then(|mailbox| mailbox.pending().ok());
    Ok(RunDetail {
        world: scenario.pointer("/world/kind").and_then(Json::as_str).map(str::to_string),
        policies: names(scenario.get("cohorts"), "/policy/kind"),
        cohorts: names(scenario.get("cohorts"), "/name"),
        models: manifest.models.clone(),
        digest,
        build: format!("{} {}", manifest.build.version, manifest.build.target),
        totals: serde_json::to_value(totals).unwrap_or_default(),
        limits: json!({
            "usd": limit("cost_usd"), "tokens": limit("tokens"), "calls": limit("calls"), "seconds": limit("seconds"),
        }),
        health: health.iter().map(|alarm| json!({ "round": null, "what": alarm.message })).collect(),
        orders: run
            .orders
            .iter()
            .map(|order| json!({ "round": order.rounds, "at_ms": order.at_ms, "what": order.order.to_string() }))
            .collect(),
        changes: changes.collect(),
        fork: manifest.forked_from.as_ref().map(|origin| json!({ "of": origin.folder, "at": origin.at })),
        columns: agent_columns(&tables, is_evaluation),
        space: space(&tables),
        states_every,
        network: (rows("ties") > 0).then(|| json!({ "ties": rows("ties"), "directed": true })),
        has: [
            ("messages", has_table("messages")),
            ("calls", !manifest.models.is_empty()),
            ("items", has_table("items")),
            ("posts", has_table("posts")),
            ("acts", has_table("acts")),
            ("votes", is_evaluation && has_table("acts")),
        ]
        .into(),
        tables: tables
            .iter()
            .map(|(spec, rows)| {
                let columns: Vec<Json> = spec.columns.iter().map(column_json).collect();
                json!({ "name": spec.name, "doc": spec.doc, "rows": rows, "columns": columns })
            })
            .collect(),
        question_count: questions.map_or(0, |questions| questions.len()),
        scenario,
        head,
    })
}

/// A metric by round.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Series {
    pub name: String,
    pub points: Vec<(u32, f64)>,
}

/// The metrics of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metrics {
    pub metrics: Vec<Series>,
}

/// Most points of a series.
const POINTS: usize = 2_000;

/// Metrics by round: those of the tables, and of an active run those of its latest rounds, too.
pub(crate) fn metrics(app: &App, folder: &Path) -> Answer<Metrics> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let mut all: BTreeMap<String, BTreeMap<u32, f64>> = BTreeMap::new();
    for (name, points) in run.tables.metrics()? {
        all.insert(name, points.into_iter().collect());
    }
    if run.ended.is_none()
        && let Some(status) = active(app, folder, 0)
    {
        for (round, metrics) in status.metrics {
            for (name, value) in metrics {
                all.entry(name).or_default().insert(round, value);
            }
        }
    }
    let metrics = all.into_iter().map(|(name, points)| Series { name, points: thinned(points.into_iter().collect()) });
    Ok(Metrics { metrics: metrics.collect() })
}

/// Evenly thinned; the first and the last stay.
pub(crate) fn thinned(points: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let n = points.len();
    if n <= POINTS {
        return points;
    }
    (0..POINTS).map(|i| points[i * (n - 1) / (POINTS - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_series_keep_their_ends() {
        let points: Vec<(u32, f64)> = (0..10_001).map(|round| (round, f64::from(round))).collect();
        let thin = thinned(points.clone());
        assert_eq!((thin.len(), thin[0], thin[POINTS - 1]), (POINTS, points[0], points[10_000]));
    }
}
