//! Agents: their table, their columns for pictures, one agent's life.

use super::problem::{Answer, Problem};
use super::rows::{MOST_ROWS, Rows, page};
use super::{App, answers};
use arrow_array::RecordBatch;
use polity_driver::results::{self, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

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

/// A column of the wide table of agents: in which part, and where there.
#[derive(Clone, Copy)]
enum Source {
    Id,
    Agents(usize),
    States(usize),
    Acts(usize),
}

/// The agents of a run after a round, put together from its tables.
struct Wide {
    n: usize,
    state_round: i64,
    names: Vec<(String, Source)>,
    agents: Option<Rows>,
    states: Option<Rows>,
    /// Row in the table of states, by agent.
    state_of: Vec<Option<u32>>,
    acts: Option<Rows>,
    act_of: Vec<Option<u32>>,
}

impl Wide {
    /// Reads the columns that `wants` names; all if it is `None`.
    fn read(run: &Run<'_>, round: Option<i64>, wants: Option<&[&str]>) -> Answer<Wide> {
        let wanted = |name: &str| {
            let first = name.strip_suffix(".first").unwrap_or(name);
            wants.is_none_or(|wants| wants.contains(&name) || wants.contains(&first))
        };
        let at_start = round.is_some_and(|round| round < 0);
        let round = if at_start { None } else { round.map(|round| round as u32).or(run.rounds.checked_sub(1)) };
        let pick = |table: &str, keys: &[&str], prefix: &str| -> Answer<Option<Vec<String>>> {
            let Ok((spec, _)) = run.tables.describe(table) else { return Ok(None) };
            let names = spec.columns.into_iter().map(|column| column.name);
            let names = names.filter(|name| keys.contains(&name.as_str()) || wanted(&format!("{prefix}{name}")));
            Ok(Some(names.collect()))
        };
        let (states, state_round) = match (pick("states", &["agent", "round"], "")?, round) {
            (Some(columns), Some(round)) if columns.len() > 2 || wants.is_none() => {
                nearest(run, "states", &columns, round)?
            }
            _ => (None, -1),
        };
        let acts = match (pick("acts", &["agent"], "action.")?, round) {
            (Some(columns), Some(round)) if columns.len() > 1 => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).filter(|name| *name != "text").collect();
                Rows::read(&run.tables, "acts", &columns, Some(round..=round))?
            }
            _ => None,
        };
        let agents = match pick("agents", &["agent"], "")? {
            Some(columns) if columns.len() > 1 => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                Rows::read(&run.tables, "agents", &columns, None)?
            }
            _ => None,
        };
        let most = |rows: &Rows| -> Answer<usize> {
            let at = rows.column("agent")?;
            Ok((0..rows.len()).filter_map(|row| rows.number(row, at)).fold(0.0, f64::max) as usize + 1)
        };
        let counted = run.tables.closed("rounds", &["agents"], 1)?;
        let counted = counted.first().and_then(|(_, data)| data.numbers().first().copied().flatten()).unwrap_or(0.0);
        let mut n = counted as usize;
        for rows in [&agents, &states, &acts].into_iter().flatten().filter(|rows| rows.len() > 0) {
            n = n.max(most(rows)?);
        }
        let by_agent = |rows: &Option<Rows>| -> Answer<Vec<Option<u32>>> {
            let mut of = Vec::new();
            if let Some(rows) = rows {
                of.resize(n, None);
                let at = rows.column("agent")?;
                for row in 0..rows.len() {
                    if let Some(place) = rows.number(row, at).and_then(|agent| of.get_mut(agent as usize)) {
                        *place = Some(row as u32);
                    }
                }
            }
            Ok(of)
        };
        let (state_of, act_of) = (by_agent(&states)?, by_agent(&acts)?);
        let mut names = vec![("agent".to_string(), Source::Id)];
        let of_table = |rows: &Option<Rows>, skip: &[&str], prefix: &str, source: fn(usize) -> Source| {
            let columns = rows.iter().flat_map(|rows| rows.columns().enumerate().collect::<Vec<_>>());
            let kept = columns.filter(|(_, column)| !skip.contains(&column.name.as_str()));
            kept.map(|(at, column)| (format!("{prefix}{}", column.name), source(at))).collect::<Vec<_>>()
        };
        names.extend(of_table(&agents, &["agent"], "", Source::Agents));
        if at_start {
            // Values before the first round go by the names that they have later.
            let first = names.clone().into_iter();
            names.extend(first.filter_map(|(name, of)| Some((name.strip_suffix(".first")?.to_string(), of))));
        }
        names.extend(of_table(&states, &["agent", "round"], "", Source::States));
        names.extend(of_table(&acts, &["agent", "round"], "action.", Source::Acts));
        Ok(Wide { n, state_round, names, agents, states, state_of, acts, act_of })
    }

    fn source(&self, name: &str) -> Answer<Source> {
        let found = self.names.iter().find(|(known, _)| known == name);
        let known = || self.names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, source)| *source)
            .ok_or_else(|| Problem::bad(format!("agents have no column `{name}` in this round; they have {}", known())))
    }

    /// The rows and the position in them of an agent's value.
    fn place(&self, agent: usize, source: Source) -> Option<(&Rows, usize, usize)> {
        let row = |of: &[Option<u32>]| of.get(agent).copied().flatten().map(|row| row as usize);
        match source {
            Source::Id => None,
            Source::Agents(column) => self.agents.as_ref().map(|rows| (rows, agent, column)),
            Source::States(column) => Some((self.states.as_ref()?, row(&self.state_of)?, column)),
            Source::Acts(column) => Some((self.acts.as_ref()?, row(&self.act_of)?, column)),
        }
    }

    fn cell(&self, agent: usize, source: Source) -> Json {
        match source {
            Source::Id => agent.into(),
            _ => self.place(agent, source).map_or(Json::Null, |(rows, row, column)| rows.cell(row, column)),
        }
    }

    fn number(&self, agent: usize, source: Source) -> Option<f64> {
        match source {
            Source::Id => Some(agent as f64),
            _ => self.place(agent, source).and_then(|(rows, row, column)| rows.number(row, column)),
        }
    }
}

/// The rows of the nearest recorded round before or at `round`.
fn nearest(run: &Run<'_>, table: &str, columns: &[String], round: u32) -> Answer<(Option<Rows>, i64)> {
    let parts = run.tables.parts();
    // Rounds that may be recorded: those of the closed parts.
    let of_table = parts.get(table).map_or(&[][..], Vec::as_slice);
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    for part in of_table.iter().rev().filter(|part| part.first <= round && part.rows > 0) {
        let until = part.last.min(round);
        let Some(rounds) = Rows::read(&run.tables, table, &["round"], Some(part.first..=until))? else { continue };
        let newest = rounds.len().checked_sub(1).and_then(|row| rounds.number(row, 0));
        if let Some(newest) = newest {
            let newest = newest as u32;
            return Ok((Rows::read(&run.tables, table, &columns, Some(newest..=newest))?, i64::from(newest)));
        }
    }
    Ok((None, -1))
}

/// A condition on a column.
struct Condition {
    source: Source,
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
        Ok(Condition { source: wide.source(column)?, op: op.into(), value: value.into() })
    }

    fn holds(&self, wide: &Wide, agent: usize) -> bool {
        let text = match wide.cell(agent, self.source) {
            Json::String(text) => text,
            Json::Null => return self.op == "ne",
            other => other.to_string(),
        };
        if self.op == "contains" {
            return text.to_lowercase().contains(&self.value.to_lowercase());
        }
        let order = match (text.parse::<f64>(), self.value.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.total_cmp(&b),
            _ => text.as_str().cmp(self.value.as_str()),
        };
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
    let asked: Option<Vec<&str>> = wanted.columns.as_ref().map(|names| names.split(',').map(str::trim).collect());
    let conditions: Vec<&str> =
        wanted.r#where.as_deref().unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    let needed: Option<Vec<&str>> = asked.as_ref().map(|asked| {
        let of_conditions = conditions.iter().filter_map(|condition| condition.split(':').next());
        asked.iter().copied().chain(of_conditions).chain(wanted.sort.as_deref()).collect()
    });
    let wide = Wide::read(&run, wanted.round, needed.as_deref())?;
    let conditions: Vec<Condition> =
        conditions.iter().map(|text| Condition::parse(&wide, text)).collect::<Answer<_>>()?;
    let mut matched: Vec<usize> =
        (0..wide.n).filter(|agent| conditions.iter().all(|condition| condition.holds(&wide, *agent))).collect();
    if let Some(sort) = &wanted.sort {
        let source = wide.source(sort)?;
        sort_by(&wide, source, wanted.desc, &mut matched);
    }
    let columns: Vec<(String, Source)> = match &asked {
        None => wide.names.clone(),
        Some(asked) => asked.iter().map(|name| Ok(((*name).to_string(), wide.source(name)?))).collect::<Answer<_>>()?,
    };
    let page = page(&matched, wanted.offset, wanted.limit, 100);
    let rows = page.iter().map(|agent| columns.iter().map(|(_, source)| wide.cell(*agent, *source)).collect());
    Ok(Agents {
        round: wanted.round.or(run.rounds.checked_sub(1).map(i64::from)),
        state_round: wide.state_round,
        total: wide.n,
        matched: matched.len(),
        rows: rows.collect(),
        columns: columns.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Sorts stably, with missing values last.
fn sort_by(wide: &Wide, source: Source, desc: bool, agents: &mut [usize]) {
    let of = |order: Ordering| if desc { order.reverse() } else { order };
    let numbers: Vec<Option<f64>> = agents.iter().map(|agent| wide.number(*agent, source)).collect();
    if numbers.iter().any(Option::is_some) {
        let by: BTreeMap<usize, f64> =
            agents.iter().zip(&numbers).filter_map(|(agent, number)| Some((*agent, (*number)?))).collect();
        agents.sort_by(|a, b| match (by.get(a), by.get(b)) {
            (Some(a), Some(b)) => of(a.total_cmp(b)),
            (a, b) => b.is_some().cmp(&a.is_some()),
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
    let counted = run.tables.closed("rounds", &["agents"], 1)?;
    let counted = counted.first().and_then(|(_, data)| data.numbers().first().copied().flatten()).unwrap_or(0.0);
    let mut values: Vec<f32> = vec![f32::NAN; counted as usize];
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
    if known == 0 && run.ended.is_some() && agents(app, folder, &Wanted::default())?.total <= agent as usize {
        return Err(Problem::absent(format!("there is no agent {agent}")));
    }
    let tell = (!left_out.is_empty()).then(|| format!("left out, the oldest: {}", left_out.join(", ")));
    Ok(Life { agent, cohort, alive, attributes, states, acts, received, sent, calls, cost_usd, neighbours, tell })
}

/// The rows of a table that concern an agent.
fn of_agent(run: &Run<'_>, table: &str, column: &str, agent: u32) -> Answer<Vec<Json>> {
    let Some(keys) = Rows::read(&run.tables, table, &[column], None)? else { return Ok(Vec::new()) };
    let rows: Vec<usize> = (0..keys.len()).filter(|row| keys.number(*row, 0) == Some(f64::from(agent))).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let Some(all) = Rows::read(&run.tables, table, &[], None)? else { return Ok(Vec::new()) };
    Ok(rows.into_iter().map(|row| all.object(row)).collect())
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
