//! Agents: their table, their columns for pictures, one agent's life.

use super::problem::{Answer, Problem};
use super::rows::{MOST_ROWS, Rows, page};
use super::{App, answers};
use arrow_array::RecordBatch;
use polity_driver::results::{self, Run};
use polity_store::tables::{Kind, TableError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Rows of each list in an agent's life.
const LIFE: usize = 500;

/// Which agents, as they were after which round.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    /// The round; without it, the last one; -1: before the first.
    pub round: Option<i64>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
    /// Name of a column.
    pub sort: Option<String>,
    pub desc: bool,
    /// `COLUMN:OP:VALUE`, several separated by line breaks; OP is eq, ne, lt, le, gt, ge or contains.
    pub r#where: Option<String>,
    /// Names of columns, separated by commas.
    pub columns: Option<String>,
}

/// A page of agents.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Agents {
    pub round: Option<i64>,
    /// The recorded round that the values which change come from; -1: before the first.
    pub state_round: i64,
    pub total: usize,
    pub matched: usize,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Json>>,
}

/// A column of the wide table of agents: in which table, and where there.
#[derive(Clone, Copy)]
enum Source {
    Id,
    Of(usize, usize),
}

/// The rows of a table, found by agent.
struct Part {
    rows: Rows,
    /// The row of each agent; `u32::MAX`: none.
    of: Vec<u32>,
}

impl Part {
    fn new(rows: Rows) -> Answer<Part> {
        let agents = rows.column("agent")?;
        let mut of = Vec::new();
        for (row, agent) in rows.numbers(agents).into_iter().enumerate() {
            let agent = agent as usize;
            if agent >= of.len() {
                of.resize(agent + 1, u32::MAX);
            }
            of[agent] = row as u32;
        }
        Ok(Part { rows, of })
    }

    fn row(&self, agent: usize) -> Option<usize> {
        self.of.get(agent).filter(|row| **row != u32::MAX).map(|row| *row as usize)
    }
}

/// The agents of a run after a round, put together from its tables: `agents`, `states` and `acts`.
struct Wide {
    n: usize,
    state_round: i64,
    names: Vec<(String, Source)>,
    parts: Vec<Part>,
}

impl Wide {
    /// Reads the columns that `wants` names, all if it is `None`; of these agents alone if `only` names some.
    fn read(
        run: &Run<'_>,
        round: Option<i64>,
        wants: Option<&[&str]>,
        only: Option<&Arc<BTreeSet<u32>>>,
    ) -> Answer<Wide> {
        let wanted = |name: &str| {
            let first = name.strip_suffix(".first").unwrap_or(name);
            wants.is_none_or(|wants| wants.contains(&name) || wants.contains(&first))
        };
        let at_start = round.is_some_and(|round| round < 0);
        let round = if at_start { None } else { round.map(|round| round as u32).or(run.rounds.checked_sub(1)) };
        let mut wide = Wide {
            n: how_many(run)?,
            state_round: -1,
            names: vec![("agent".to_string(), Source::Id)],
            parts: Vec::new(),
        };
        // Tables with the prefix of their columns' names, and the rounds to read.
        let of_round = round.map(|round| Ok((round, run.tables.newest_round("states", round)?))).transpose();
        let of_round: Option<(u32, Option<u32>)> = match of_round {
            Ok(of_round) => of_round,
            Err(TableError::Rounds { .. } | TableError::Spec { .. }) => round.map(|round| (round, None)),
            Err(error) => return Err(error.into()),
        };
        let states = of_round.and_then(|(_, newest)| newest);
        let acts = of_round.map(|(round, _)| round);
        let tables =
            [("agents", "", Some(None)), ("states", "", states.map(Some)), ("acts", "action.", acts.map(Some))];
        for (table, prefix, rounds) in tables {
            let (Some(rounds), Ok((spec, _))) = (rounds, run.tables.describe(table)) else { continue };
            let names = spec.columns.iter().map(|column| column.name.as_str());
            let is_read = |name: &&str| *name != "agent" && *name != "round" && !(table == "acts" && *name == "text");
            let columns: Vec<&str> = names.filter(is_read).filter(|name| wanted(&format!("{prefix}{name}"))).collect();
            if columns.is_empty() {
                continue;
            }
            let columns: Vec<&str> = columns.into_iter().chain(["agent"]).collect();
            let among = only.map(|only| ("agent", only.clone()));
            let rounds = rounds.map(|round| round..=round);
            let Some(rows) = Rows::read_among(&run.tables, table, &columns, rounds.clone(), among)? else { continue };
            if let ("states", Some(rounds)) = (table, &rounds) {
                wide.state_round = i64::from(*rounds.start());
            }
            let at = wide.parts.len();
            let named = rows.columns().enumerate().filter(|(_, column)| column.name != "agent");
            let named = named.map(|(i, column)| (format!("{prefix}{}", column.name), Source::Of(at, i)));
            wide.names.extend(named.collect::<Vec<_>>());
            let part = Part::new(rows)?;
            wide.n = wide.n.max(part.of.len());
            wide.parts.push(part);
        }
        if at_start {
            // Values before the first round go by the names that they have later.
            let first = wide.names.clone().into_iter();
            wide.names.extend(first.filter_map(|(name, of)| Some((name.strip_suffix(".first")?.to_string(), of))));
        }
        Ok(wide)
    }

    fn source(&self, name: &str) -> Answer<Source> {
        let found = self.names.iter().find(|(known, _)| known == name);
        let known = || self.names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, source)| *source)
            .ok_or_else(|| Problem::bad(format!("agents have no column `{name}` in this round; they have {}", known())))
    }

    fn cell(&self, agent: usize, source: Source) -> Json {
        match source {
            Source::Id => agent.into(),
            Source::Of(part, column) => {
                let part = &self.parts[part];
                part.row(agent).map_or(Json::Null, |row| part.rows.cell(row, column))
            }
        }
    }

    /// The values of all agents as numbers; NaN where there is none.
    fn numbers(&self, source: Source) -> Vec<f64> {
        match source {
            Source::Id => (0..self.n).map(|agent| agent as f64).collect(),
            Source::Of(part, column) => {
                let part = &self.parts[part];
                let values = part.rows.numbers(column);
                (0..self.n).map(|agent| part.row(agent).map_or(f64::NAN, |row| values[row])).collect()
            }
        }
    }

    /// Whether a column holds plain numbers, which are compared without a detour.
    fn is_plain(&self, source: Source) -> bool {
        match source {
            Source::Id => true,
            Source::Of(part, column) => {
                let spec = self.parts[part].rows.columns().nth(column);
                spec.is_some_and(|spec| matches!(spec.kind, Kind::F64 | Kind::U32))
            }
        }
    }
}

/// The number of agents: those that the run began with, or all that its table of agents lists.
fn how_many(run: &Run<'_>) -> Answer<usize> {
    let counted = run.tables.closed("rounds", &["agents"], 1)?;
    let counted = counted.first().and_then(|(_, data)| data.numbers().first().copied().flatten()).unwrap_or(0.0);
    let listed: u64 = run.tables.parts().get("agents").map_or(0, |parts| parts.iter().map(|part| part.rows).sum());
    Ok((counted as usize).max(listed as usize))
}

/// The rows of the nearest recorded round before or at `round`.
fn nearest(run: &Run<'_>, table: &str, columns: &[String], round: u32) -> Answer<(Option<Rows>, i64)> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    match run.tables.newest_round(table, round)? {
        Some(newest) => Ok((Rows::read(&run.tables, table, &columns, Some(newest..=newest))?, i64::from(newest))),
        None => Ok((None, -1)),
    }
}

/// A condition on a column.
struct Condition {
    source: Source,
    /// The column and the value as numbers, if both are.
    numbers: Option<(Vec<f64>, f64)>,
    op: String,
    value: String,
}

impl Condition {
    fn parse(wide: &Wide, text: &str) -> Answer<Self> {
        let mut parts = text.splitn(3, ':');
        let (Some(column), Some(op), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(Problem::bad(format!("`{text}` is not COLUMN:OP:VALUE, for instance opinion:gt:0.5")));
        };
        if !["eq", "ne", "lt", "le", "gt", "ge", "contains"].contains(&op) {
            return Err(Problem::bad(format!("there is no comparison `{op}`; use eq, ne, lt, le, gt, ge or contains")));
        }
        let source = wide.source(column)?;
        let number = value.parse::<f64>().ok().filter(|_| op != "contains" && wide.is_plain(source));
        let numbers = number.map(|number| (wide.numbers(source), number));
        Ok(Condition { source, numbers, op: op.into(), value: value.into() })
    }

    fn holds(&self, wide: &Wide, agent: usize) -> bool {
        if let Some((numbers, value)) = &self.numbers {
            let number = numbers[agent];
            return if number.is_nan() { self.op == "ne" } else { self.meets(number.total_cmp(value)) };
        }
        let text = match wide.cell(agent, self.source) {
            Json::String(text) => text,
            Json::Null => return self.op == "ne",
            other => other.to_string(),
        };
        if self.op == "contains" {
            return text.to_lowercase().contains(&self.value.to_lowercase());
        }
        self.meets(match (text.parse::<f64>(), self.value.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => text.as_str().cmp(self.value.as_str()),
        })
    }

    fn meets(&self, order: Ordering) -> bool {
        match self.op.as_str() {
            "eq" => order == Ordering::Equal,
            "ne" => order != Ordering::Equal,
            "lt" => order == Ordering::Less,
            "le" => order != Ordering::Greater,
            "gt" => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }
    }
}

pub(crate) fn agents(app: &App, folder: &Path, wanted: &Wanted) -> Answer<Agents> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let conditions: Vec<&str> =
        wanted.r#where.as_deref().unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    // First which agents, from the columns that say so; then all columns, of one page of agents.
    let of_conditions = conditions.iter().filter_map(|condition| condition.split(':').next());
    let keys: Vec<&str> = of_conditions.chain(wanted.sort.as_deref()).collect();
    let matched: Vec<usize> = if keys.is_empty() {
        (0..how_many(&run)?).collect()
    } else {
        let wide = Wide::read(&run, wanted.round, Some(&keys), None)?;
        let conditions: Vec<Condition> =
            conditions.iter().map(|text| Condition::parse(&wide, text)).collect::<Answer<_>>()?;
        let mut matched: Vec<usize> =
            (0..wide.n).filter(|agent| conditions.iter().all(|condition| condition.holds(&wide, *agent))).collect();
        if let Some(sort) = &wanted.sort {
            sort_by(&wide, wide.source(sort)?, wanted.desc, &mut matched);
        }
        matched
    };
    let page = page(&matched, wanted.offset, wanted.limit, 100);
    let only: Arc<BTreeSet<u32>> = Arc::new(page.iter().map(|agent| *agent as u32).collect());
    let asked: Option<Vec<&str>> = wanted.columns.as_ref().map(|names| names.split(',').map(str::trim).collect());
    let wide = Wide::read(&run, wanted.round, asked.as_deref(), Some(&only))?;
    let columns: Vec<(String, Source)> = match &asked {
        None => wide.names.clone(),
        Some(asked) => asked.iter().map(|name| Ok(((*name).to_string(), wide.source(name)?))).collect::<Answer<_>>()?,
    };
    let rows = page.iter().map(|agent| columns.iter().map(|(_, source)| wide.cell(*agent, *source)).collect());
    Ok(Agents {
        round: wanted.round.or(run.rounds.checked_sub(1).map(i64::from)),
        state_round: wide.state_round,
        total: how_many(&run)?.max(wide.n),
        matched: matched.len(),
        rows: rows.collect(),
        columns: columns.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Sorts stably, with missing values last.
fn sort_by(wide: &Wide, source: Source, desc: bool, agents: &mut [usize]) {
    let of = |order: Ordering| if desc { order.reverse() } else { order };
    let numbers = wide.numbers(source);
    if agents.iter().any(|agent| !numbers[*agent].is_nan()) {
        agents.sort_by(|a, b| match (numbers[*a], numbers[*b]) {
            (a, b) if !a.is_nan() && !b.is_nan() => of(a.total_cmp(&b)),
            (a, b) => a.is_nan().cmp(&b.is_nan()),
        });
    } else {
        agents.sort_by_cached_key(|agent| wide.cell(*agent, source).as_str().map(str::to_string));
        if desc {
            agents.reverse();
        }
    }
}

/// Agents as Arrow: the columns of the tables that hold them, of the round alone.
pub(crate) fn as_arrow(app: &App, folder: &Path, wanted: &Wanted) -> Answer<Vec<RecordBatch>> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let last = run.rounds.saturating_sub(1);
    let round = wanted.round.map_or(last, |round| round.max(0) as u32);
    let columns = |table: &str| -> Option<Vec<String>> {
        let (spec, _) = run.tables.describe(table).ok()?;
        Some(spec.columns.into_iter().map(|column| column.name).collect())
    };
    let rows = match columns("states") {
        Some(columns) => nearest(&run, "states", &columns, round)?.0,
        None => Rows::read(&run.tables, "agents", &[], None)?,
    };
    let mut left = wanted.limit.unwrap_or(MOST_ROWS).min(MOST_ROWS);
    let mut skip = wanted.offset.unwrap_or(0);
    let mut out = Vec::new();
    for batch in rows.map(|rows| rows.selected.batches).unwrap_or_default() {
        let from = skip.min(batch.num_rows());
        skip -= from;
        let many = (batch.num_rows() - from).min(left);
        left -= many;
        if many > 0 {
            out.push(batch.slice(from, many));
        }
    }
    Ok(out)
}

/// A column of all agents, for pictures.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OneColumn {
    /// Its name.
    pub name: String,
    /// The round; without it, the last one; -1: before the first.
    pub round: Option<i64>,
    /// Most agents; the first ones.
    pub limit: Option<usize>,
}

/// The table and the column that hold a property of agents after a round, and the rounds to read.
fn located(run: &Run<'_>, wanted: &OneColumn) -> Answer<(&'static str, String, Option<u32>)> {
    let round = wanted.round.map_or(run.rounds.checked_sub(1), |round| u32::try_from(round).ok());
    let has = |table: &str, column: &str| {
        run.tables.describe(table).is_ok_and(|(spec, _)| spec.columns.iter().any(|known| known.name == column))
    };
    let name = wanted.name.as_str();
    if let (Some(column), Some(round)) = (name.strip_prefix("action."), round) {
        if has("acts", column) {
            return Ok(("acts", column.to_string(), Some(round)));
        }
    } else if round.is_some() && has("states", name) {
        return Ok(("states", name.to_string(), round));
    } else if has("agents", name) {
        return Ok(("agents", name.to_string(), None));
    } else if round.is_none() && has("agents", &format!("{name}.first")) {
        return Ok(("agents", format!("{name}.first"), None));
    }
    Err(Problem::bad(format!("agents have no column `{name}` in this round; a run's `columns` lists those there are")))
}

/// The values as little-endian 32-bit floats, in order of agents, and the round that they come from.
pub(crate) fn column(app: &App, folder: &Path, wanted: &OneColumn) -> Answer<(Vec<u8>, i64)> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let (table, column, round) = located(&run, wanted)?;
    let names = ["agent".to_string(), column.clone()];
    let (rows, state_round) = match (table, round) {
        ("states", Some(round)) => nearest(&run, table, &names, round)?,
        (_, round) => {
            let rounds = round.map(|round| round..=round);
            let rows = Rows::read(&run.tables, table, &["agent", &column], rounds)?;
            (rows, round.map_or(-1, i64::from))
        }
    };
    let mut values: Vec<f32> = vec![f32::NAN; how_many(&run)?];
    for (agent, value) in rows.iter().flat_map(|rows| rows.by_agent(&column)) {
        let agent = agent as usize;
        if agent >= values.len() {
            values.resize(agent + 1, f32::NAN);
        }
        values[agent] = value;
    }
    values.truncate(wanted.limit.unwrap_or(usize::MAX));
    Ok((values.into_iter().flat_map(f32::to_le_bytes).collect(), state_round))
}

/// One agent's life.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Life {
    pub agent: u32,
    pub cohort: Option<String>,
    pub alive: Option<bool>,
    pub attributes: Map<String, Json>,
    pub states: Vec<Json>,
    pub acts: Vec<Json>,
    pub received: Vec<Json>,
    pub sent: Vec<Json>,
    pub calls: Vec<Json>,
    pub cost_usd: f64,
    pub neighbours: Vec<u32>,
    /// What is left out, if anything.
    pub tell: Option<String>,
}

pub(crate) fn life(app: &App, folder: &Path, agent: u32) -> Answer<Life> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let mut left_out = Vec::new();
    let mut last = |mut rows: Vec<Json>, what: &str| {
        if rows.len() > LIFE {
            left_out.push(format!("{} of {} {what}", rows.len() - LIFE, rows.len()));
            rows.drain(..rows.len() - LIFE);
        }
        rows
    };
    let attributes = of_agent(&run, "agents", "agent", agent)?.into_iter().next();
    let mut attributes = match attributes {
        Some(Json::Object(attributes)) => attributes,
        _ => Map::new(),
    };
    attributes.remove("agent");
    let cohort = attributes.remove("cohort").and_then(|cohort| cohort.as_str().map(str::to_string));
    let alive = attributes.remove("alive").and_then(|alive| alive.as_bool());
    let states = last(of_agent(&run, "states", "agent", agent)?, "states");
    let acts = last(of_agent(&run, "acts", "agent", agent)?, "actions");
    let received = last(of_agent(&run, "messages", "to", agent)?, "received messages");
    let sent = last(of_agent(&run, "messages", "from", agent)?, "sent messages");
    let ties = of_agent(&run, "ties", "agent", agent)?;
    let neighbours = ties.iter().filter_map(|tie| tie.get("hears")?.as_u64()).map(|n| n as u32).take(200).collect();
    let wanted = answers::CallsWanted { agent: Some(agent), limit: Some(LIFE), ..Default::default() };
    let calls = if run.manifest.models.is_empty() { Vec::new() } else { answers::calls(app, folder, &wanted)?.calls };
    let cost_usd = calls.iter().filter_map(|call| call.get("cost_usd")?.as_f64()).sum();
    let known = attributes.len() + states.len() + acts.len() + calls.len();
    if known == 0 && run.ended.is_some() && how_many(&run)? <= agent as usize {
        return Err(Problem::absent(format!("there is no agent {agent}")));
    }
    let tell = (!left_out.is_empty()).then(|| format!("left out, the oldest: {}", left_out.join(", ")));
    Ok(Life { agent, cohort, alive, attributes, states, acts, received, sent, calls, cost_usd, neighbours, tell })
}

/// The rows of a table that concern an agent.
fn of_agent(run: &Run<'_>, table: &str, column: &str, agent: u32) -> Answer<Vec<Json>> {
    let among = Some((column, Arc::new(BTreeSet::from([agent]))));
    let rows = Rows::read_among(&run.tables, table, &[], None, among)?;
    Ok(rows.map(|rows| (0..rows.len()).map(|row| rows.object(row)).collect()).unwrap_or_default())
}

/// Who had a part in what an agent did, and in what others did after it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Influence {
    pub from: Vec<Json>,
    pub to: Vec<Json>,
}

/// Without an agent, those who reached the most, and those who were reached most. Messages by sender and recipient, with the actions of the recipient in the rounds of those messages; on platforms, reactions.
pub(crate) fn influence(app: &App, folder: &Path, agent: Option<u32>) -> Answer<Influence> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    if let Some(rows) = Rows::read(&run.tables, "influence", &["agent", "writer"], None)? {
        let (reader, writer) = (rows.column("agent")?, rows.column("writer")?);
        return Ok(counted(
            agent,
            (0..rows.len()).filter_map(|row| {
                let (reader, writer) = (rows.number(row, reader)? as u32, rows.number(row, writer)? as u32);
                Some((writer, reader, true))
            }),
        ));
    }
    let Some(rows) = Rows::read(&run.tables, "messages", &["round", "from", "to"], None)? else {
        return Ok(Influence { from: Vec::new(), to: Vec::new() });
    };
    let mut acted = std::collections::BTreeSet::new();
    if let Some(acts) = Rows::read(&run.tables, "acts", &["agent", "round"], None)? {
        let (who, round) = (acts.column("agent")?, acts.column("round")?);
        let of = |row: usize| Some((acts.number(row, who)? as u32, acts.number(row, round)? as u32));
        acted = (0..acts.len()).filter_map(of).collect();
    }
    let (round, from, to) = (rows.column("round")?, rows.column("from")?, rows.column("to")?);
    Ok(counted(
        agent,
        (0..rows.len()).filter_map(|row| {
            let of = |column: usize| rows.number(row, column).map(|n| n as u32);
            let (round, from, to) = (of(round)?, of(from)?, of(to)?);
            // A message of a round is read in the next one.
            Some((from, to, acted.contains(&(to, round + 1))))
        }),
    ))
}

/// Exposures, and actions after them, by agent.
type Exposures = BTreeMap<u32, (u32, u32)>;

fn counted(agent: Option<u32>, exposures: impl Iterator<Item = (u32, u32, bool)>) -> Influence {
    let (mut from, mut to) = (Exposures::new(), Exposures::new());
    for (source, target, acted) in exposures {
        let count = |of: &mut Exposures, other: u32| {
            let entry = of.entry(other).or_default();
            entry.0 += 1;
            entry.1 += u32::from(acted);
        };
        if agent.is_none_or(|agent| target == agent) {
            count(&mut from, source);
        }
        if agent.is_none_or(|agent| source == agent) {
            count(&mut to, target);
        }
    }
    let listed = |of: Exposures| {
        let mut all: Vec<_> = of.into_iter().collect();
        all.sort_by_key(|(other, (messages, _))| (std::cmp::Reverse(*messages), *other));
        let shown = all.into_iter().take(100);
        shown
            .map(|(agent, (messages, acts))| json!({ "agent": agent, "messages": messages, "acts_after": acts }))
            .collect()
    };
    Influence { from: listed(from), to: listed(to) }
}
