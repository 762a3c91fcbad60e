//! A knowledge graph. See README.md.

#[cfg(test)]
mod tests;
mod triples;

use crate::arguments::{count, nearest, text, whole};
use crate::sources::sources;
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::scenario::Inputs;
use polity_kernel::tool::{Arguments, EffectClass, PureToolkit, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use triples::{Edge, Triples};

/// The longest path that a call may ask for, in edges.
const LONGEST: usize = 50;
/// The longest path unless the call says otherwise, in edges.
const USUAL: usize = 6;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.toolkit::<Graph>(files);
}

/// Parameters of a knowledge graph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// A table of edges (CSV, TSV or JSON lines) with the columns `subject`, `relation` and `object`, and, if known, `subject_type` and
    /// `object_type`.
    file: Option<String>,
    /// Further such tables.
    files: Vec<String>,
    /// Maximum number of edges or nodes in a result.
    #[schemars(range(min = 1, max = 1000))]
    most: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params { file: None, files: Vec::new(), most: 50 }
    }
}

/// A knowledge graph.
pub struct Graph {
    triples: Triples,
    most: usize,
}

impl PureToolkit for Graph {
    const NAME: &'static str = "graph";
    const SUMMARY: &'static str = "Neighbours, nodes and paths in a knowledge graph";
    type Params = Params;

    fn open(params: Params, inputs: &Inputs) -> Result<Self, Invalid> {
        let Params { file, files, most } = params;
        Invalid::within(1..=1_000, "most", most)?;
        let triples = Triples::read(&sources(file.as_deref(), &files, None, inputs)?)?;
        Ok(Graph { triples, most })
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let nodes = count(self.triples.nodes().len(), "node", "nodes");
        let edges = count(self.triples.edges().len(), "edge", "edges");
        let node = json!({"type": "string", "description": "the name of a node, as `find` returns it"});
        let neighbours = json!({
            "type": "object",
            "properties": {"node": node, "relation": {"type": "string", "description": "only edges of this relation"}},
            "required": ["node"],
            "additionalProperties": false,
        });
        let find = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "a part of the name, in any case"},
                "type": {"type": "string", "description": "only nodes of this type"},
            },
            "required": ["text"],
            "additionalProperties": false,
        });
        let path = json!({
            "type": "object",
            "properties": {
                "from": node, "to": node,
                "most": {
                    "type": "integer", "minimum": 1, "maximum": LONGEST,
                    "description": format!("the most edges that the path may have; default {USUAL}"),
                },
            },
            "required": ["from", "to"],
            "additionalProperties": false,
        });
        let tool = |name, doc: &str, arguments| ToolSpec::new(name, doc, arguments, EffectClass::Pure);
        let find_doc = format!("Finds nodes of a knowledge graph of {nodes} and {edges} by a part of their names.");
        let path_doc = "Returns a shortest path between two nodes. Edges are followed in both directions.";
        vec![
            tool("find", &find_doc, &find),
            tool(
                "neighbours",
                "Returns the edges of a node, with the id to cite each by in square brackets.",
                &neighbours,
            ),
            tool("path", path_doc, &path),
        ]
    }

    fn call(&self, tool: &str, arguments: &Arguments) -> ToolOutput {
        let called = match tool {
            "find" => self.find(text(arguments, "text"), text(arguments, "type")),
            "neighbours" => self.neighbours(text(arguments, "node"), text(arguments, "relation")),
            "path" => {
                let most = whole(arguments, "most").unwrap_or(USUAL).clamp(1, LONGEST);
                self.path(text(arguments, "from"), text(arguments, "to"), most)
            }
            _ => Err(format!("there is no tool `{tool}`")),
        };
        called.map_or_else(ToolOutput::error, ToolOutput::text)
    }
}

impl Graph {
    fn node(&self, name: &str) -> Result<u32, String> {
        // Models copy the brackets.
        let found = self.triples.node(name).or_else(|| self.triples.node(name.trim_matches(['[', ']'])));
        let known = || self.triples.nodes().iter().map(String::as_str);
        found.ok_or_else(|| format!("there is no node `{name}`{}", nearest(name, known())))
    }

    fn name(&self, node: u32) -> &str {
        &self.triples.nodes()[node as usize]
    }

    /// Writes an edge: "[t3] Ada Lovelace --wrote--> Notes".
    fn edge(&self, edge: &Edge) -> String {
        let Edge { row, subject, relation, object } = edge;
        format!("[t{row}] {} --{relation}--> {}", self.name(*subject), self.name(*object))
    }

    /// Writes a node: "[Ada Lovelace] person; 3 edges".
    fn about(&self, node: u32) -> String {
        let mut types = self.triples.types(node).join(", ");
        if !types.is_empty() {
            types.push_str("; ");
        }
        format!("[{}] {types}{}", self.name(node), count(self.triples.of(node).len(), "edge", "edges"))
    }

    fn neighbours(&self, name: &str, relation: &str) -> Result<String, String> {
        let node = self.node(name)?;
        let edges = || self.triples.of(node).iter().map(|i| &self.triples.edges()[*i as usize]);
        let mut relations: BTreeMap<&str, usize> = BTreeMap::new();
        for edge in edges() {
            *relations.entry(&edge.relation).or_default() += 1;
        }
        if !relation.is_empty() && !relations.contains_key(relation) {
            let has: Vec<String> = relations.iter().map(|(relation, n)| format!("`{relation}` ({n})")).collect();
            return Err(format!(
                "`{}` has no edge of relation `{relation}`; it has {}",
                self.name(node),
                has.join(", ")
            ));
        }
        let shown: Vec<&Edge> = edges().filter(|edge| relation.is_empty() || edge.relation == relation).collect();
        let mut lines = vec![self.about(node)];
        lines.extend(shown.iter().take(self.most).map(|edge| self.edge(edge)));
        if shown.len() > self.most {
            let has: Vec<String> = relations.iter().map(|(relation, n)| format!("{relation} {n}")).collect();
            let hint = format!("edges by relation: {}", has.join(", "));
            lines.push(format!("{} more edges are not shown; {hint}", shown.len() - self.most));
        }
        Ok(lines.join("\n"))
    }

    fn find(&self, part: &str, kind: &str) -> Result<String, String> {
        if !kind.is_empty() && !self.triples.all_types().iter().any(|known| known == kind) {
            let known = self.triples.all_types().iter().map(String::as_str);
            return Err(format!("there is no type `{kind}`{}", nearest(kind, known)));
        }
        let lower = part.to_lowercase();
        let place = |node: u32| {
            let name = self.name(node).to_lowercase();
            let found = name.find(&lower)?;
            let fits = kind.is_empty() || self.triples.types(node).iter().any(|own| own == kind);
            // The name itself, then names that begin with the part, then the others.
            fits.then_some((name.len() != lower.len(), found > 0, node))
        };
        let mut found: Vec<(bool, bool, u32)> = (0..self.triples.nodes().len() as u32).filter_map(place).collect();
        // Nodes are in order of name.
        found.sort_unstable();
        if found.is_empty() {
            let what = if kind.is_empty() { String::new() } else { format!(" of type `{kind}`") };
            let fits = |node: &u32| kind.is_empty() || self.triples.types(*node).iter().any(|own| own == kind);
            let known = (0..self.triples.nodes().len() as u32).filter(fits).map(|node| self.name(node));
            return Ok(format!("No node{what} has `{part}` in its name{}", nearest(part, known)));
        }
        let mut lines: Vec<String> = found.iter().take(self.most).map(|(.., node)| self.about(*node)).collect();
        if found.len() > self.most {
            lines.push(format!(
                "{} more nodes are not shown; give more of the name, or a type",
                found.len() - self.most
            ));
        }
        Ok(lines.join("\n"))
    }

    fn path(&self, from: &str, to: &str, most: usize) -> Result<String, String> {
        let (start, end) = (self.node(from)?, self.node(to)?);
        if start == end {
            return Ok(format!("`{}` is both ends of the path, which has no edges", self.name(start)));
        }
        let between = format!("between `{}` and `{}`", self.name(start), self.name(end));
        match self.shortest(start, end) {
            None => Ok(format!("There is no path {between}")),
            Some(path) if path.len() > most => {
                Ok(format!("The shortest path {between} has {} edges, more than {most}", path.len()))
            }
            Some(path) => {
                let lines: Vec<String> = path.into_iter().map(|edge| self.edge(edge)).collect();
                Ok(format!("Shortest path {between}, {}:\n{}", count(lines.len(), "edge", "edges"), lines.join("\n")))
            }
        }
    }

    /// Searches breadth first, along the edges of a node in order of their rows. Of several shortest paths it finds the same one always.
    fn shortest(&self, start: u32, end: u32) -> Option<Vec<&Edge>> {
        let edges = self.triples.edges();
        let mut reached: Vec<Option<u32>> = vec![None; self.triples.nodes().len()];
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for i in self.triples.of(node) {
                let other = edges[*i as usize].other(node);
                if other == start || reached[other as usize].is_some() {
                    continue;
                }
                reached[other as usize] = Some(*i);
                queue.push_back(other);
            }
            if reached[end as usize].is_some() {
                break;
            }
        }
        let mut path = Vec::new();
        let mut node = end;
        while node != start {
            let edge = &edges[reached[node as usize]? as usize];
            path.push(edge);
            node = edge.other(node);
        }
        path.reverse();
        Some(path)
    }
}
