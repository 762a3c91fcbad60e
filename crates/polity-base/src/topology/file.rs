//! A topology from a file of edges.

use super::{Csr, TopologyError};
use crate::population::Population;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ties from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A CSV or TSV file with two columns of agents (the one who hears, then the one who is heard), a GraphML file (`.graphml`) or a GEXF
    /// file (`.gexf`). Other columns, and attributes of nodes and edges, are not read.
    pub file: String,
    /// The column of the population by whose values the file names agents. By default the file numbers them from 0.
    #[serde(default)]
    pub id: Option<String>,
    /// Whether only the first of the two hears the second. If not, both hear each other. Default: what a GraphML or GEXF file says;
    /// false for a table.
    #[serde(default)]
    pub directed: Option<bool>,
    /// What becomes of edges that tie an agent to itself.
    #[serde(default)]
    pub self_loops: Surplus,
    /// What becomes of repeated edges. Unless ties are directed, an edge repeats its reverse.
    #[serde(default)]
    pub duplicates: Surplus,
}

/// What becomes of edges that a graph cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Surplus {
    /// They are an error, which says how many there are.
    #[default]
    Refuse,
    /// They are left out. The run says how many.
    Drop,
}

/// The edges of a file, as they are in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeList {
    /// The hearing agent first, then the agent it hears: indices into `names`, or numbers of agents.
    pub edges: Vec<(u32, u32)>,
    /// The names of agents, each once, if the file does not number them.
    pub names: Option<Vec<String>>,
    /// Whether the file says that edges have a direction (or none).
    pub directed: Option<bool>,
    /// The first two cells of the header of a table in which agents have names: they may be meant as an edge.
    pub header: Option<[String; 2]>,
}

impl From<Vec<(u32, u32)>> for EdgeList {
    fn from(edges: Vec<(u32, u32)>) -> Self {
        EdgeList { edges, ..EdgeList::default() }
    }
}

/// The edges of a file that a graph cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwanted {
    /// Edges of an agent with itself.
    pub self_loops: usize,
    /// Edges that repeat an earlier one.
    pub duplicates: usize,
}

impl File {
    /// Whether ties have a direction.
    #[must_use]
    pub fn is_directed(&self, list: &EdgeList) -> bool {
        self.directed.or(list.directed).unwrap_or(false)
    }

    /// Counts the edges that a graph cannot have.
    #[must_use]
    pub fn unwanted(&self, list: &EdgeList) -> Unwanted {
        let edges = self.sorted(list);
        let self_loops = edges.iter().filter(|(a, b)| a == b).count();
        let repeats = |pair: &&[(u32, u32)]| pair[0] == pair[1] && pair[0].0 != pair[0].1;
        Unwanted { self_loops, duplicates: edges.windows(2).filter(repeats).count() }
    }

    fn sorted(&self, list: &EdgeList) -> Vec<(u32, u32)> {
        let mut edges = list.edges.clone();
        if !self.is_directed(list) {
            edges.iter_mut().for_each(|(a, b)| (*a, *b) = (*a.min(b), *a.max(b)));
        }
        edges.sort_unstable();
        edges
    }

    /// The graph of these edges between `n` agents.
    ///
    /// # Errors
    /// An agent that does not exist, edges that are to be refused, a file that contradicts `directed`, more arcs than are allowed.
    pub fn graph(&self, list: &EdgeList, n: u32, population: &Population) -> Result<Csr, TopologyError> {
        let file = &self.file;
        if (self.directed, list.directed) == (Some(true), Some(false)) {
            let message = format!("the ties of `{file}` have no direction; leave `directed` out");
            return Err(TopologyError::at("directed", message));
        }
        let agents = match (&self.id, &list.names) {
            (Some(column), Some(names)) => Some(agents_of(file, column, names, list.header.as_ref(), n, population)?),
            (None, Some(names)) => return Err(unnumbered(file, names)),
            (_, None) => None,
        };
        let agent = |end: u32| agents.as_ref().map_or(end, |agents| agents[end as usize]);
        if let Some((a, b)) = list.edges.iter().find(|(a, b)| agents.is_none() && (*a >= n || *b >= n)) {
            let last = n.saturating_sub(1);
            let message = format!(
                "`{file}` has a tie from {a} to {b}, but there are only agents 0 to {last}; a topology from a file fits only \
                 one number of agents, a generated one fits any"
            );
            return Err(TopologyError::at("file", message));
        }
        let name = |end: u32| match &list.names {
            Some(names) => format!("`{}`", names[end as usize]),
            None => format!("agent {end}"),
        };
        let Unwanted { self_loops, duplicates } = self.unwanted(list);
        if self_loops > 0
            && self.self_loops == Surplus::Refuse
            && let Some((who, _)) = list.edges.iter().find(|(a, b)| a == b)
        {
            let message = format!(
                "`{file}` has {self_loops} edges that tie an agent to itself, the first is of {}; `self_loops: drop` leaves \
                 them out",
                name(*who)
            );
            return Err(TopologyError::at("file", message));
        }
        if duplicates > 0
            && self.duplicates == Surplus::Refuse
            && let Some(twice) = self.sorted(list).windows(2).find(|pair| pair[0] == pair[1] && pair[0].0 != pair[0].1)
        {
            let (a, b) = twice[0];
            let reverse = if self.is_directed(list) { "" } else { ", one may be the reverse of the other" };
            let message = format!(
                "`{file}` has {duplicates} edges that repeat another, for instance that of {} and {}{reverse}; \
                 `duplicates: drop` keeps one of each",
                name(a),
                name(b)
            );
            return Err(TopologyError::at("file", message));
        }
        let edges: Vec<(u32, u32)> =
            list.edges.iter().filter(|(a, b)| a != b).map(|(a, b)| (agent(*a), agent(*b))).collect();
        Csr::from_edges(n, &edges, self.is_directed(list))
    }
}

/// The agents with these names in a column of the population.
fn agents_of(
    file: &str,
    column: &str,
    names: &[String],
    header: Option<&[String; 2]>,
    n: u32,
    population: &Population,
) -> Result<Vec<u32>, TopologyError> {
    let index = population.table().index(column).map_err(|error| TopologyError::at("id", error.to_string()))?;
    let mut agents: BTreeMap<String, u32> = BTreeMap::new();
    for agent in 0..n {
        let name = population.cell(index, agent).to_string();
        if let Some(other) = agents.get(&name) {
            let message = format!(
                "agents {other} and {agent} both have the value `{name}` in the column `{column}`, so that it does not name \
                 one agent"
            );
            return Err(TopologyError::at("id", message));
        }
        agents.insert(name, agent);
    }
    if let Some([a, b]) = header.filter(|header| header.iter().all(|name| agents.contains_key(name))) {
        let message = format!(
            "the first line of `{file}` is a tie of `{a}` and `{b}`; add a header above it, for instance `agent,hears`"
        );
        return Err(TopologyError::at("file", message));
    }
    let unknown: Vec<&String> = names.iter().filter(|name| !agents.contains_key(*name)).collect();
    match unknown.first() {
        Some(first) => {
            let message = format!(
                "{} of the {} agents that `{file}` names are not in the column `{column}`, the first is `{first}`",
                unknown.len(),
                names.len()
            );
            Err(TopologyError::at("id", message))
        }
        None => Ok(names.iter().map(|name| agents[name]).collect()),
    }
}

fn unnumbered(file: &str, names: &[String]) -> TopologyError {
    let first = names.iter().find(|name| name.parse::<u32>().is_err()).or(names.first());
    let message = format!(
        "`{file}` has the agent `{}`, which is not a number; `id: COLUMN` says which column of the population has these names",
        first.map_or("", String::as_str)
    );
    TopologyError::at("file", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::{Column, Table, TextBuilder};
    use serde_json::json;
    use std::sync::Arc;

    fn file(more: serde_json::Value) -> File {
        let mut keys = json!({"file": "ties.csv"});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(keys).unwrap()
    }

    fn graph(more: serde_json::Value, list: &EdgeList) -> Result<Vec<Vec<u32>>, String> {
        let mut names = TextBuilder::default();
        ["ann", "bob", "eve", "joe"].iter().for_each(|name| names.push(name));
        let group = Column::Number(vec![1.0, 2.0, 1.0, 7.0]);
        let table = Table::new(vec![("name".into(), names.finish()), ("group".into(), group)]).unwrap();
        let csr = file(more).graph(list, 4, &Population::from_table(Arc::new(table)));
        let csr = csr.map_err(|error| error.to_string())?;
        Ok((0..4).map(|agent| csr.neighbours(agent).to_vec()).collect())
    }

    #[test]
    fn surplus_edges_are_counted_and_dropped_on_request_only() {
        let list = EdgeList::from(vec![(0, 1), (2, 2), (1, 0), (1, 2), (1, 2), (3, 3), (2, 2)]);
        let counted = |more| file(more).unwanted(&list);
        assert_eq!(counted(json!({})), Unwanted { self_loops: 3, duplicates: 2 });
        assert_eq!(counted(json!({"directed": true})), Unwanted { self_loops: 3, duplicates: 1 });
        assert_eq!(
            graph(json!({}), &list).unwrap_err(),
            "file: `ties.csv` has 3 edges that tie an agent to itself, the first is of agent 2; `self_loops: drop` leaves them out"
        );
        assert_eq!(
            graph(json!({"self_loops": "drop"}), &list).unwrap_err(),
            "file: `ties.csv` has 2 edges that repeat another, for instance that of agent 0 and agent 1, one may be the reverse \
             of the other; `duplicates: drop` keeps one of each"
        );
        let drop = json!({"self_loops": "drop", "duplicates": "drop"});
        assert_eq!(graph(drop, &list).unwrap(), [vec![1], vec![0, 2], vec![1], vec![]]);
        let directed = json!({"self_loops": "drop", "duplicates": "drop", "directed": true});
        assert_eq!(graph(directed, &list).unwrap(), [vec![1], vec![0, 2], vec![], vec![]]);
    }

    #[test]
    fn agents_are_named_by_a_column() {
        let list = |names: &[&str]| EdgeList {
            edges: vec![(0, 1), (1, 2)],
            names: Some(names.iter().map(ToString::to_string).collect()),
            directed: Some(true),
            header: None,
        };
        assert_eq!(
            graph(json!({"id": "name"}), &list(&["joe", "ann", "eve"])).unwrap(),
            [vec![2], vec![], vec![], vec![0]]
        );
        let error = |more, names: &[&str]| graph(more, &list(names)).unwrap_err();
        assert_eq!(
            error(json!({"id": "name"}), &["joe", "an", "ev"]),
            "id: 2 of the 3 agents that `ties.csv` names are not in the column `name`, the first is `an`"
        );
        assert!(error(json!({"id": "nam"}), &["joe", "ann", "eve"]).contains("did you mean `name`?"));
        assert_eq!(
            error(json!({"id": "group"}), &["1", "2", "7"]),
            "id: agents 0 and 2 both have the value `1` in the column `group`, so that it does not name one agent"
        );
        assert_eq!(
            error(json!({}), &["0", "ann", "eve"]),
            "file: `ties.csv` has the agent `ann`, which is not a number; `id: COLUMN` says which column of the population has \
             these names"
        );
    }

    #[test]
    fn a_tie_is_not_lost_as_a_header() {
        let list = |header: [&str; 2]| EdgeList {
            names: Some(vec!["ann".into(), "joe".into()]),
            header: Some(header.map(String::from)),
            ..EdgeList::from(vec![(0, 1)])
        };
        assert!(graph(json!({"id": "name"}), &list(["who", "whom"])).is_ok());
        assert_eq!(
            graph(json!({"id": "name"}), &list(["bob", "eve"])).unwrap_err(),
            "file: the first line of `ties.csv` is a tie of `bob` and `eve`; add a header above it, for instance `agent,hears`"
        );
    }

    #[test]
    fn a_file_says_whether_ties_have_a_direction() {
        let list = |directed| EdgeList { directed, ..EdgeList::from(vec![(0, 1)]) };
        assert_eq!(graph(json!({}), &list(Some(true))).unwrap()[..2], [vec![1], vec![]]);
        assert_eq!(graph(json!({"directed": false}), &list(Some(true))).unwrap()[..2], [vec![1], vec![0]]);
        assert_eq!(graph(json!({}), &list(None)).unwrap()[..2], [vec![1], vec![0]]);
        assert_eq!(
            graph(json!({"directed": true}), &list(Some(false))).unwrap_err(),
            "directed: the ties of `ties.csv` have no direction; leave `directed` out"
        );
        assert!(graph(json!({}), &EdgeList::from(vec![(0, 4)])).unwrap_err().contains("only agents 0 to 3"));
    }
}
