//! Edges from files of graphs: GraphML (Brandes et al. 2002) and GEXF (Gephi). Attributes of nodes and edges are not read.

use super::data::{DataError, Source};
use super::edges::{Names, id};
use super::xml::{Element, Event, Xml};
use polity_kernel::topology::EdgeList;

/// The edges of a GraphML file.
pub(super) fn graphml(source: &Source<'_>, named: bool) -> Result<EdgeList, DataError> {
    let mut graph = Graph::default();
    each_element(source, "graphml", |element| match element.name {
        "graph" => graph.begin(match element.get("edgedefault") {
            Some("directed") => true,
            Some("undirected") => false,
            _ => return Err("the graph needs the attribute `edgedefault`: directed or undirected".into()),
        }),
        "node" => graph.node(element),
        "edge" => {
            let directed = match element.get("directed") {
                Some("true" | "1") => Some(true),
                Some("false" | "0") => Some(false),
                Some(other) => return Err(format!("an edge has `directed` {other}; it is true or false")),
                None => None,
            };
            graph.edge(element, directed)
        }
        "hyperedge" => Err("edges between more than two nodes are not read".into()),
        _ => Ok(()),
    })?;
    graph.finish(source, named)
}

/// The edges of a GEXF file.
pub(super) fn gexf(source: &Source<'_>, named: bool) -> Result<EdgeList, DataError> {
    let mut graph = Graph::default();
    each_element(source, "gexf", |element| match element.name {
        "graph" if element.get("mode") == Some("dynamic") => {
            Err("the graph changes over time; export its state at one time".into())
        }
        "graph" => graph.begin(is_directed(element.get("defaultedgetype").unwrap_or("undirected"))?),
        "node" => graph.node(element),
        "edge" => {
            let directed = element.get("type").map(is_directed).transpose()?;
            graph.edge(element, directed)
        }
        _ => Ok(()),
    })?;
    graph.finish(source, named)
}

fn is_directed(kind: &str) -> Result<bool, String> {
    match kind {
        "directed" => Ok(true),
        "undirected" | "mutual" => Ok(false),
        other => Err(format!("`{other}` is no type of edges; there are directed, undirected and mutual")),
    }
}

/// Goes through the elements of a document, whose outermost must have the name `root`.
fn each_element(
    source: &Source<'_>,
    root: &str,
    mut visit: impl FnMut(&Element<'_>) -> Result<(), String>,
) -> Result<(), DataError> {
    let mut xml = Xml::new(source.text);
    loop {
        let step = xml.next().and_then(|event| match event {
            None => Ok(false),
            Some(Event::Start(element)) if xml.depth() == 1 && element.name != root => {
                Err(format!("the outermost element is `{}`, not `{root}`", element.name))
            }
            Some(Event::Start(element)) => visit(&element).map(|()| true),
            Some(Event::End | Event::Text(_)) => Ok(true),
        });
        match step {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(message) => return Err(source.error(source.line(xml.position()), None, message)),
        }
    }
}

/// A graph that is being read.
#[derive(Default)]
struct Graph {
    /// Whether edges have a direction unless they say otherwise; `None` before the graph begins.
    directed: Option<bool>,
    names: Names,
    /// By number of a name: whether there is such a node. Edges may come first.
    exists: Vec<bool>,
    /// Both ends, and whether the edge has a direction.
    edges: Vec<(u32, u32, bool)>,
}

impl Graph {
    fn begin(&mut self, directed: bool) -> Result<(), String> {
        match self.directed.replace(directed) {
            None => Ok(()),
            Some(_) => Err("there are two graphs; only one can be read".into()),
        }
    }

    fn number(&mut self, name: &str) -> usize {
        let number = self.names.number(name) as usize;
        if number == self.exists.len() {
            self.exists.push(false);
        }
        number
    }

    fn node(&mut self, element: &Element<'_>) -> Result<(), String> {
        let name = element.get("id").ok_or("a node needs the attribute `id`")?;
        if self.directed.is_none() {
            return Err(format!("the node `{name}` stands outside of a graph"));
        }
        let number = self.number(name);
        match std::mem::replace(&mut self.exists[number], true) {
            false => Ok(()),
            true => Err(format!("there are two nodes with the id `{name}`")),
        }
    }

    fn edge(&mut self, element: &Element<'_>, directed: Option<bool>) -> Result<(), String> {
        let default = self.directed.ok_or("an edge stands outside of a graph")?;
        let [from, to] = ["source", "target"]
            .map(|end| element.get(end).ok_or_else(|| format!("an edge needs the attribute `{end}`")));
        let (from, to) = (self.number(from?) as u32, self.number(to?) as u32);
        self.edges.push((from, to, directed.unwrap_or(default)));
        Ok(())
    }

    fn finish(self, source: &Source<'_>, named: bool) -> Result<EdgeList, DataError> {
        let Graph { names, exists, edges, directed } = self;
        if directed.is_none() {
            return Err(source.error(None, None, "there is no graph"));
        }
        let names = names.finish();
        if let Some(number) = exists.iter().position(|exists| !exists) {
            return Err(source.error(
                None,
                None,
                format!("an edge names the node `{}`, which does not exist", names[number]),
            ));
        }
        // If only some edges have a direction, the others become two.
        let some_directed = edges.iter().any(|(_, _, directed)| *directed);
        let mut ends = Vec::with_capacity(edges.len());
        for (from, to, directed) in edges {
            ends.push((from, to));
            if some_directed && !directed {
                ends.push((to, from));
            }
        }
        let mut list = EdgeList { edges: ends, names: None, directed: Some(some_directed), header: None };
        if named {
            list.names = Some(names);
        } else {
            let numbers = numbers(&names).map_err(|message| source.error(None, None, message))?;
            let number = |end: u32| numbers[end as usize];
            list.edges.iter_mut().for_each(|(from, to)| (*from, *to) = (number(*from), number(*to)));
        }
        Ok(list)
    }
}

/// The numbers of agents that all ids name: `7`, or with the letter that some programs put before it, `n7`.
fn numbers(ids: &[String]) -> Result<Vec<u32>, String> {
    let letter = ids.iter().all(|id| id.starts_with('n'));
    ids.iter().map(|name| id(if letter { &name[1..] } else { name })).collect()
}

#[cfg(test)]
mod tests {
    use crate::files::edges_from_bytes;
    use polity_kernel::topology::EdgeList;
    use proptest::prelude::*;
    use std::path::Path;

    fn read(file: &str, text: &str, named: bool) -> Result<EdgeList, String> {
        edges_from_bytes(Path::new(file), text.as_bytes(), named)
            .map_err(|error| error.to_string()[file.len() + 2..].into())
    }

    fn graphml(inside: &str) -> String {
        format!(
            "<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
             <key id=\"d0\" for=\"node\" attr.name=\"age\" attr.type=\"long\"/>\n{inside}\n</graphml>"
        )
    }

    #[test]
    fn graphml_with_numbers_letters_and_names() {
        let text = |n: &str| {
            graphml(&format!(
                "<graph edgedefault=\"undirected\"><edge source=\"{n}2\" target=\"{n}0\"/><node id=\"{n}0\"><data key=\"d0\">\
                 7</data></node><node id=\"{n}1\"/><node id=\"{n}2\"/><edge source=\"{n}1\" target=\"{n}0\"/></graph>"
            ))
        };
        let expected = EdgeList { directed: Some(false), ..EdgeList::from(vec![(2, 0), (1, 0)]) };
        assert_eq!(read("a.graphml", &text(""), false), Ok(expected.clone()));
        assert_eq!(read("a.graphml", &text("n"), false), Ok(expected));
        let named = read("a.graphml", &text("person "), true).unwrap();
        assert_eq!(named.names.unwrap(), ["person 2", "person 0", "person 1"]);
        assert_eq!(named.edges, [(0, 1), (2, 1)]);
        assert_eq!(
            read("a.graphml", &text("p"), false).unwrap_err(),
            "`p2` is not an agent; agents are numbered from 0, or `id: COLUMN` names them"
        );
    }

    #[test]
    fn edges_with_and_without_direction() {
        let text = |default: &str, edge: &str| {
            graphml(&format!(
                "<graph edgedefault=\"{default}\"><node id=\"0\"/><node id=\"1\"/><node id=\"2\"/>\
                 <edge source=\"0\" target=\"1\"/><edge source=\"1\" target=\"2\" {edge}/></graph>"
            ))
        };
        let read = |default, edge| read("a.graphml", &text(default, edge), false).unwrap();
        let list =
            |directed, edges: &[(u32, u32)]| EdgeList { directed: Some(directed), ..EdgeList::from(edges.to_vec()) };
        assert_eq!(read("directed", ""), list(true, &[(0, 1), (1, 2)]));
        assert_eq!(read("undirected", ""), list(false, &[(0, 1), (1, 2)]));
        assert_eq!(read("undirected", "directed='true'"), list(true, &[(0, 1), (1, 0), (1, 2)]));
        assert_eq!(read("directed", "directed='false'"), list(true, &[(0, 1), (1, 2), (2, 1)]));
    }

    #[test]
    fn gexf_as_gephi_writes_it() {
        let text = "<gexf xmlns=\"http://gexf.net/1.3\" xmlns:viz=\"http://gexf.net/1.3/viz\" version=\"1.3\"><meta><creator>Gephi\
                    </creator></meta><graph defaultedgetype=\"directed\" mode=\"static\"><attributes class=\"node\"/><nodes>\
                    <node id=\"0\" label=\"Ann\"><viz:size value=\"10\"/></node><node id=\"1\" label=\"Bob\"/></nodes>\
                    <edges><edge id=\"0\" source=\"1\" target=\"0\" weight=\"2.0\"/></edges></graph></gexf>";
        let expected = EdgeList { directed: Some(true), ..EdgeList::from(vec![(1, 0)]) };
        assert_eq!(read("a.gexf", text, false), Ok(expected));
        let mutual = text.replace("directed", "mutual");
        assert_eq!(read("a.gexf", &mutual, false).unwrap().directed, Some(false));
    }

    #[test]
    fn what_is_not_read_is_an_error_at_its_line() {
        let graph =
            |inside: &str| graphml(&format!("<graph edgedefault=\"directed\">\n<node id=\"0\"/>\n{inside}\n</graph>"));
        let cases = [
            (graph("<node id=\"0\"/>"), "line 6: there are two nodes with the id `0`"),
            (graph("<node/>"), "line 6: a node needs the attribute `id`"),
            (graph("<edge source=\"0\"/>"), "line 6: an edge needs the attribute `target`"),
            (graph("<edge source=\"0\" target=\"9\"/>"), "an edge names the node `9`, which does not exist"),
            (graph("<hyperedge/>"), "line 6: edges between more than two nodes are not read"),
            (
                graph("<node id=\"1\"><graph edgedefault=\"directed\"/></node>"),
                "line 6: there are two graphs; only one can be read",
            ),
            (graph(""), "there are no edges; for a society without ties use the topology `none`"),
            (graphml(""), "there is no graph"),
            (graphml("<node id=\"0\"/>"), "line 4: the node `0` stands outside of a graph"),
            (graphml("<graph/>"), "line 4: the graph needs the attribute `edgedefault`: directed or undirected"),
            ("<gexf/>".into(), "line 1: the outermost element is `gexf`, not `graphml`"),
            ("0,1\n".into(), "line 2: there is text outside of all elements; this is not XML"),
        ];
        for (text, message) in cases {
            assert_eq!(read("a.graphml", &text, false).unwrap_err(), message, "{text}");
        }
        let dynamic = "<gexf><graph mode=\"dynamic\"/></gexf>";
        assert_eq!(
            read("a.gexf", dynamic, false).unwrap_err(),
            "line 1: the graph changes over time; export its state at one time"
        );
        assert!(
            read("a.gexf", "<gexf><graph defaultedgetype='wavy'/></gexf>", false)
                .unwrap_err()
                .contains("no type of edges")
        );
    }

    proptest! {
        #[test]
        fn no_pieces_panic(pieces in prop::collection::vec(prop::sample::select(vec![
            "<graphml>", "</graphml>", "<graph edgedefault='directed'>", "</graph>", "<node id='n'/>", "<node id='n1'/>", "<node id=''/>",
            "<edge source='n' target='n1'/>", "<edge source='' target=''/>", " "]), 0..12), named: bool) {
            let _ = read("a.graphml", &pieces.concat(), named);
        }
    }
}
