//! Writes networks of agents for other programs: GraphML, GEXF, a list of edges.

use crate::tables::ColumnData;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

/// A network to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The number of nodes; their ids are 0 and up.
    pub nodes: usize,
    /// Attributes of nodes by name, a value each.
    pub attributes: Vec<(String, ColumnData)>,
    /// The one who hears, then the one who is heard. Without direction: each tie once.
    pub edges: Vec<(u32, u32)>,
    /// Whether edges have a direction.
    pub directed: bool,
}

impl Network {
    /// Makes a network of arcs. If every arc has its reverse, edges have no direction.
    #[must_use]
    pub fn of_arcs(nodes: usize, attributes: Vec<(String, ColumnData)>, mut arcs: Vec<(u32, u32)>) -> Self {
        arcs.sort_unstable();
        let directed = arcs.iter().any(|(a, b)| arcs.binary_search(&(*b, *a)).is_err());
        if !directed {
            arcs.retain(|(a, b)| a < b);
        }
        Network { nodes, attributes, edges: arcs, directed }
    }

    /// Writes it as GraphML.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn graphml(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">")?;
        for (i, (name, data)) in self.attributes.iter().enumerate() {
            let (name, kind) = (Escaped(name), Kind::of(data).name());
            writeln!(out, "  <key id=\"d{i}\" for=\"node\" attr.name=\"{name}\" attr.type=\"{kind}\"/>")?;
        }
        let default = if self.directed { "directed" } else { "undirected" };
        writeln!(out, "  <graph edgedefault=\"{default}\">")?;
        for node in 0..self.nodes {
            write!(out, "    <node id=\"{node}\">")?;
            for (i, (_, data)) in self.attributes.iter().enumerate() {
                if let Some(value) = value(data, node) {
                    write!(out, "<data key=\"d{i}\">{}</data>", Escaped(&value))?;
                }
            }
            writeln!(out, "</node>")?;
        }
        for (a, b) in &self.edges {
            writeln!(out, "    <edge source=\"{a}\" target=\"{b}\"/>")?;
        }
        writeln!(out, "  </graph>\n</graphml>")?;
        out.flush()
    }

    /// Writes it as GEXF 1.2, which most programs read.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn gexf(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<gexf xmlns=\"http://www.gexf.net/1.2draft\" version=\"1.2\">")?;
        let default = if self.directed { "directed" } else { "undirected" };
        writeln!(out, "  <graph mode=\"static\" defaultedgetype=\"{default}\">")?;
        writeln!(out, "    <attributes class=\"node\">")?;
        for (i, (name, data)) in self.attributes.iter().enumerate() {
            let (name, kind) = (Escaped(name), Kind::of(data).name());
            writeln!(out, "      <attribute id=\"{i}\" title=\"{name}\" type=\"{kind}\"/>")?;
        }
        writeln!(out, "    </attributes>\n    <nodes>")?;
        for node in 0..self.nodes {
            write!(out, "      <node id=\"{node}\" label=\"{node}\"><attvalues>")?;
            for (i, (_, data)) in self.attributes.iter().enumerate() {
                if let Some(value) = value(data, node) {
                    write!(out, "<attvalue for=\"{i}\" value=\"{}\"/>", Escaped(&value))?;
                }
            }
            writeln!(out, "</attvalues></node>")?;
        }
        writeln!(out, "    </nodes>\n    <edges>")?;
        for (i, (a, b)) in self.edges.iter().enumerate() {
            writeln!(out, "      <edge id=\"{i}\" source=\"{a}\" target=\"{b}\"/>")?;
        }
        writeln!(out, "    </edges>\n  </graph>\n</gexf>")?;
        out.flush()
    }

    /// Writes its edges as CSV with the columns `agent` (who hears) and `hears`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn edges(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "agent,hears")?;
        for (a, b) in &self.edges {
            writeln!(out, "{a},{b}")?;
        }
        out.flush()
    }
}

/// The type of an attribute.
#[derive(Clone, Copy)]
enum Kind {
    Whole,
    Number,
    Truth,
    Text,
}

impl Kind {
    fn of(data: &ColumnData) -> Self {
        match data {
            ColumnData::U32(_) | ColumnData::U64(_) => Kind::Whole,
            ColumnData::F64(_) => Kind::Number,
            ColumnData::Bool(_) => Kind::Truth,
            ColumnData::Text(_) | ColumnData::Category { .. } => Kind::Text,
        }
    }

    /// GraphML and GEXF have the same names.
    fn name(self) -> &'static str {
        match self {
            Kind::Whole => "long",
            Kind::Number => "double",
            Kind::Truth => "boolean",
            Kind::Text => "string",
        }
    }
}

/// The value of a node; `None` if it is missing or no finite number, which not all programs read.
fn value(data: &ColumnData, node: usize) -> Option<Cow<'_, str>> {
    let shown = match data {
        ColumnData::U32(values) => Cow::from((*values.get(node)?)?.to_string()),
        ColumnData::U64(values) => (*values.get(node)?)?.to_string().into(),
        ColumnData::F64(values) => (*values.get(node)?).filter(|value| value.is_finite())?.to_string().into(),
        ColumnData::Bool(values) => (*values.get(node)?)?.to_string().into(),
        ColumnData::Text(values) => values.get(node)?.as_deref()?.into(),
        ColumnData::Category { words, codes } => words.get(usize::from((*codes.get(node)?)?))?.as_str().into(),
    };
    Some(shown)
}

/// Text inside an element or an attribute. Characters that XML cannot have are shown as U+FFFD.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                // In an attribute they would be read as spaces.
                '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(c))?,
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::edges_from_bytes;
    use polity_kernel::topology::EdgeList;
    use proptest::prelude::*;
    use std::path::Path;

    fn attributes() -> Vec<(String, ColumnData)> {
        vec![
            ("party \"a\" & <b>".into(), ColumnData::Text(vec![Some("x\n<&>\u{1}".into()), None, Some("y".into())])),
            ("opinion.last".into(), ColumnData::F64(vec![Some(0.25), Some(f64::NAN), Some(-1e300)])),
            ("alive".into(), ColumnData::Bool(vec![Some(true), Some(false), None])),
            ("cohort".into(), ColumnData::Category { words: vec!["left".into()], codes: vec![Some(0), Some(0), None] }),
        ]
    }

    fn text(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn graphml_in_full() {
        let network = Network::of_arcs(3, attributes(), vec![(2, 0), (0, 2), (1, 0), (0, 1)]);
        let node0 = "<node id=\"0\"><data key=\"d0\">x&#10;&lt;&amp;&gt;\u{fffd}</data><data key=\"d1\">0.25</data><data key=\"d2\">\
                     true</data><data key=\"d3\">left</data></node>";
        let written = text(|out| network.graphml(out));
        for part in [
            "<key id=\"d0\" for=\"node\" attr.name=\"party &quot;a&quot; &amp; &lt;b&gt;\" attr.type=\"string\"/>",
            "<key id=\"d1\" for=\"node\" attr.name=\"opinion.last\" attr.type=\"double\"/>",
            "<graph edgedefault=\"undirected\">",
            node0,
            "<node id=\"1\"><data key=\"d2\">false</data><data key=\"d3\">left</data></node>",
            "<edge source=\"0\" target=\"1\"/>\n    <edge source=\"0\" target=\"2\"/>\n  </graph>",
        ] {
            assert!(written.contains(part), "{part}\n{written}");
        }
        assert_eq!(text(|out| network.edges(out)), "agent,hears\n0,1\n0,2\n");
        let written = text(|out| network.gexf(out));
        assert!(written.contains("<attvalue for=\"1\" value=\"0.25\"/>"), "{written}");
        assert!(written.contains("title=\"alive\" type=\"boolean\""), "{written}");
    }

    proptest! {
        /// What is written is read as the same graph.
        #[test]
        fn the_same_graph_comes_back(
            arcs in prop::collection::btree_set((0u32..9, 0u32..9), 1..20),
            both: bool,
        ) {
            let mut arcs: std::collections::BTreeSet<_> = arcs.into_iter().filter(|(a, b)| a != b).collect();
            if both {
                arcs.extend(arcs.clone().into_iter().map(|(a, b)| (b, a)));
            }
            prop_assume!(!arcs.is_empty());
            let network = Network::of_arcs(9, vec![], arcs.iter().copied().collect());
            prop_assert!(!both || !network.directed);
            let back = |file: &str, text: String| edges_from_bytes(Path::new(file), text.as_bytes(), false).unwrap();
            let expected = EdgeList { directed: Some(network.directed), ..EdgeList::from(network.edges.clone()) };
            prop_assert_eq!(back("a.graphml", text(|out| network.graphml(out))), expected.clone());
            prop_assert_eq!(back("a.gexf", text(|out| network.gexf(out))), expected.clone());
            prop_assert_eq!(back("a.csv", text(|out| network.edges(out))).edges, expected.edges);
            let of_arcs: std::collections::BTreeSet<_> = match network.directed {
                true => network.edges.iter().copied().collect(),
                false => network.edges.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect(),
            };
            prop_assert_eq!(of_arcs, arcs);
        }
    }
}
