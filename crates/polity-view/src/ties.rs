//! The network of a society, and messages.

use super::App;
use super::problem::Answer;
use super::rows::{Rows, page};
use polity_driver::results;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

/// How much of a network.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NetworkWanted {
    /// Most edges; 20,000 without it.
    pub limit: Option<usize>,
    /// The agent in the middle.
    pub agent: Option<u32>,
    /// Steps from that agent; 1 without it.
    pub depth: Option<u32>,
}

/// Agents and ties between them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Network {
    pub nodes: Vec<u32>,
    pub edges: Vec<(u32, u32)>,
    /// Whether ties are left out.
    pub sampled: bool,
    pub total_ties: usize,
}

pub(crate) fn network(app: &App, folder: &Path, wanted: &NetworkWanted) -> Answer<Network> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let none = || Network { nodes: Vec::new(), edges: Vec::new(), sampled: false, total_ties: 0 };
    let Some(rows) = Rows::read(&run.tables, "ties", &[], None)? else { return Ok(none()) };
    let (agent, hears) = (rows.column("agent")?, rows.column("hears")?);
    let tie = |row: usize| Some((rows.number(row, agent)? as u32, rows.number(row, hears)? as u32));
    let ties: Vec<(u32, u32)> = (0..rows.len()).filter_map(tie).collect();
    // A tie that goes both ways is drawn once.
    let undirected: BTreeSet<(u32, u32)> = ties.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
    let total_ties = undirected.len();
    let limit = wanted.limit.unwrap_or(20_000);
    let n = undirected.iter().map(|(_, b)| *b as usize + 1).max().unwrap_or(0);
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (a, b) in &undirected {
        near[*a as usize].push(*b);
        near[*b as usize].push(*a);
    }
    let within = match wanted.agent {
        Some(middle) => around(&near, middle, wanted.depth.unwrap_or(1), usize::MAX),
        None if total_ties <= limit => BTreeSet::from_iter(0..n as u32),
        None => {
            let hub = (0..n).max_by_key(|agent| (near[*agent].len(), std::cmp::Reverse(*agent))).unwrap_or(0);
            around(&near, hub as u32, u32::MAX, limit)
        }
    };
    let edges: Vec<(u32, u32)> =
        undirected.into_iter().filter(|(a, b)| within.contains(a) && within.contains(b)).take(limit).collect();
    let sampled = edges.len() < total_ties;
    Ok(Network { nodes: within.into_iter().collect(), edges, sampled, total_ties })
}

/// The agents within `depth` steps of one, nearest first, until they have `most` ties.
fn around(near: &[Vec<u32>], middle: u32, depth: u32, most: usize) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([middle]);
    let mut next = VecDeque::from([(middle, 0)]);
    let mut ties = 0;
    while let Some((agent, steps)) = next.pop_front() {
        let others = near.get(agent as usize).map_or(&[][..], Vec::as_slice);
        ties += others.len();
        if steps >= depth || ties > most {
            continue;
        }
        next.extend(others.iter().filter(|other| found.insert(**other)).map(|other| (*other, steps + 1)));
    }
    found
}

/// Which messages.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MessagesWanted {
    pub round: Option<u32>,
    pub from: Option<u32>,
    pub to: Option<u32>,
    /// Sender or recipient.
    pub agent: Option<u32>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// A page of messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Messages {
    pub total: usize,
    pub messages: Vec<Json>,
}

pub(crate) fn messages(app: &App, folder: &Path, wanted: &MessagesWanted) -> Answer<Messages> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let rounds = wanted.round.map(|round| round..=round);
    let Some(rows) = Rows::read(&run.tables, "messages", &[], rounds)? else {
        return Ok(Messages { total: 0, messages: Vec::new() });
    };
    let (from, to) = (rows.column("from")?, rows.column("to")?);
    let is = |row: usize, column: usize, wanted: Option<u32>| {
        wanted.is_none_or(|wanted| rows.number(row, column) == Some(f64::from(wanted)))
    };
    let fits = |row: &usize| {
        let either = wanted.agent.is_none() || is(*row, from, wanted.agent) || is(*row, to, wanted.agent);
        is(*row, from, wanted.from) && is(*row, to, wanted.to) && either
    };
    let matched: Vec<usize> = (0..rows.len()).filter(fits).collect();
    let page = page(&matched, wanted.offset, wanted.limit, 100);
    Ok(Messages { total: matched.len(), messages: page.iter().map(|row| rows.object(*row)).collect() })
}
