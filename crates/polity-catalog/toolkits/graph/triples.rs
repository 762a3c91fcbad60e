//! The edges of a graph, read from tables.

use crate::sources::{Content, Source, column};
use polity_kernel::Invalid;
use polity_kernel::population::Column;
use std::collections::{BTreeMap, BTreeSet};

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The number of its row, from 1, over all tables. It is cited by it.
    pub row: u32,
    /// A node.
    pub subject: u32,
    /// What the subject is to the object.
    pub relation: String,
    /// A node.
    pub object: u32,
}

impl Edge {
    /// Returns the node at the other end.
    pub fn other(&self, node: u32) -> u32 {
        if self.subject == node { self.object } else { self.subject }
    }
}

/// The edges of a graph. An edge that is given again counts once, as its first row.
#[derive(Clone, Debug, Default)]
pub struct Triples {
    /// In order of name.
    nodes: Vec<String>,
    /// Of each node.
    types: Vec<Vec<String>>,
    all_types: Vec<String>,
    /// In order of row.
    edges: Vec<Edge>,
    /// The positions of each node's edges, ascending; an edge from a node to itself is there once.
    of: Vec<Vec<u32>>,
}

/// What a row says: a name and, if it is known, a type.
type End = (String, String);

impl Triples {
    /// Reads tables.
    pub fn read(sources: &[Source<'_>]) -> Result<Self, Invalid> {
        let mut rows: Vec<(End, String, End)> = Vec::new();
        for source in sources {
            read_rows(source, &mut rows)?;
        }
        let mut types: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, kind) in rows.iter().flat_map(|(subject, _, object)| [subject, object]) {
            let own = types.entry(name.clone()).or_default();
            if !kind.is_empty() {
                own.insert(kind.clone());
            }
        }
        let ids: BTreeMap<String, u32> = types.keys().cloned().zip(0..).collect();
        let (nodes, types): (Vec<String>, Vec<BTreeSet<String>>) = types.into_iter().unzip();
        let all_types: BTreeSet<String> = types.iter().flatten().cloned().collect();
        let mut triples = Triples {
            of: vec![Vec::new(); nodes.len()],
            nodes,
            types: types.into_iter().map(|own| own.into_iter().collect()).collect(),
            all_types: all_types.into_iter().collect(),
            edges: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for (row, ((subject, _), relation, (object, _))) in (1..).zip(rows) {
            let (subject, object) = (ids[&subject], ids[&object]);
            if seen.insert((subject, relation.clone(), object)) {
                let position = triples.edges.len() as u32;
                triples.of[subject as usize].push(position);
                if object != subject {
                    triples.of[object as usize].push(position);
                }
                triples.edges.push(Edge { row, subject, relation, object });
            }
        }
        Ok(triples)
    }

    /// Returns the names of the nodes, in order.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Returns the node of a name.
    pub fn node(&self, name: &str) -> Option<u32> {
        self.nodes.binary_search_by(|other| other.as_str().cmp(name)).ok().map(|position| position as u32)
    }

    /// Returns the types of a node, in order.
    pub fn types(&self, node: u32) -> &[String] {
        &self.types[node as usize]
    }

    /// Returns all types, in order.
    pub fn all_types(&self) -> &[String] {
        &self.all_types
    }

    /// Returns the edges, in order of row.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the positions of a node's edges, ascending.
    pub fn of(&self, node: u32) -> &[u32] {
        &self.of[node as usize]
    }
}

fn read_rows(source: &Source<'_>, rows: &mut Vec<(End, String, End)>) -> Result<(), Invalid> {
    let Content::Table(table) = source.content else {
        return Err(source.invalid("is a text; edges are read from a table (.csv, .tsv, .jsonl)"));
    };
    let columns = ["subject", "relation", "object"].map(|name| column(table, name));
    let [Some(subject), Some(relation), Some(object)] = columns else {
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        let message = "needs the columns `subject`, `relation` and `object`";
        return Err(source.invalid(format!("{message}; it has {}", names.join(", "))));
    };
    let [subject_type, object_type] = ["subject_type", "object_type"].map(|name| column(table, name));
    for row in 0..table.rows() {
        let name = |what: &str, column: &Column| match line(Some(column), row) {
            name if name.is_empty() => Err(source.invalid(format!("row {}: the {what} is empty", row + 1))),
            name => Ok(name),
        };
        let end = |what, column, kind| Ok((name(what, column)?, line(kind, row)));
        rows.push((
            end("subject", subject, subject_type)?,
            name("relation", relation)?,
            end("object", object, object_type)?,
        ));
    }
    Ok(())
}

/// Returns a cell on one line: runs of white space are one space.
fn line(column: Option<&Column>, row: usize) -> String {
    let cell = column.map_or_else(String::new, |column| column.cell(row).to_string());
    cell.split_whitespace().collect::<Vec<_>>().join(" ")
}
