//! Edges for topologies from data.

use super::data::{DataError, Format, Source};
use super::graphs;
use polity_kernel::topology::EdgeList;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads edges from the bytes of the file at `path`.
///
/// In a `.csv` or `.tsv` file, the first two columns are agents: the follower (who hears), then the followed (who is heard). If agents
/// are `named`, their names are texts and the first line is a header; otherwise they are numbers, and the first line is a header if
/// neither cell is a number. In a `.graphml` or `.gexf` file agents are nodes, by their ids; an id is a number with or without an `n`
/// before it, unless agents are `named`.
///
/// # Errors
/// Names file and line: general data file errors, ragged rows, invalid agents, elements that are not read.
pub fn edges_from_bytes(path: &Path, bytes: &[u8], named: bool) -> Result<EdgeList, DataError> {
    let source = Source::of(path, bytes)?;
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let list = match end.as_str() {
        "graphml" => graphs::graphml(&source, named)?,
        "gexf" => graphs::gexf(&source, named)?,
        _ => separated(&source, named)?,
    };
    if list.edges.is_empty() {
        return Err(source.error(None, None, "there are no edges; for a society without ties use the topology `none`"));
    }
    Ok(list)
}

fn separated(source: &Source<'_>, named: bool) -> Result<EdgeList, DataError> {
    let Ok(Format::Separated(separator)) = source.format() else {
        return Err(source.error(None, None, "edges are read from .csv, .tsv, .graphml and .gexf files"));
    };
    let (mut edges, mut names) = (Vec::new(), Names::default());
    let (mut cells, mut header) = (None, None);
    let mut last = csv::StringRecord::new();
    for record in source.records(separator) {
        let record = record.map_err(|error| source.error(None, None, format!("it cannot be parsed: {error}")))?;
        let first = cells.is_none();
        let expected = *cells.get_or_insert(record.len());
        if record.len() != expected {
            return Err(source.ragged(&record, expected));
        }
        let (Some(a), Some(b)) = (record.get(0), record.get(1)) else {
            let message = "two columns are needed, as in `follower,followee`: first the agent who hears, then the one \
                           who is heard";
            return Err(source.error(source.line_of(&record), None, message));
        };
        if named {
            if first {
                header = Some([a.to_owned(), b.to_owned()]);
                continue;
            }
            if a.is_empty() || b.is_empty() {
                return Err(source.error(source.line_of(&record), None, "an agent is missing"));
            }
            edges.push((names.number(a), names.number(b)));
        } else {
            // A number beside a word is a mistyped edge, not a header to skip.
            if first && [a, b].iter().all(|cell| cell.parse::<f64>().is_err()) {
                continue;
            }
            let edge = id(a).and_then(|a| Ok((a, id(b)?)));
            edges.push(edge.map_err(|message| source.error(source.line_of(&record), None, message))?);
        }
        last = record;
    }
    source.check_end(&last)?;
    Ok(EdgeList { edges, names: named.then(|| names.finish()), directed: None, header })
}

/// Names in order of their first appearance.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, u32>);

impl Names {
    /// The number of a name, from 0.
    pub fn number(&mut self, name: &str) -> u32 {
        match self.0.get(name) {
            Some(number) => *number,
            None => {
                let number = self.0.len() as u32;
                self.0.insert(name.to_owned(), number);
                number
            }
        }
    }

    pub fn finish(self) -> Vec<String> {
        let mut names = vec![String::new(); self.0.len()];
        self.0.into_iter().for_each(|(name, number)| names[number as usize] = name);
        names
    }
}

/// The number of an agent.
pub(super) fn id(cell: &str) -> Result<u32, String> {
    if cell.is_empty() || !cell.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{cell}` is not an agent; agents are numbered from 0, or `id: COLUMN` names them"));
    }
    cell.parse::<u32>().map_err(|_| format!("agent {cell} does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, bytes: &[u8]) -> Result<EdgeList, String> {
        edges_from_bytes(Path::new(name), bytes, false).map_err(|error| error.to_string()[name.len() + 2..].to_owned())
    }

    #[test]
    fn with_header_and_without() {
        let expected = EdgeList::from(vec![(1, 2), (0, 5), (3, 110), (0, 5)]);
        assert_eq!(read("a.csv", b"follower,followee\n1,2\n0,5\n3,110\n0,5\n"), Ok(expected));
        // What becomes of repeated edges, and of those that tie an agent to itself, is the topology's matter.
        assert_eq!(read("a.tsv", b"2\t2\tw\n2\t1\tx\n1\t2\ty\n"), Ok(EdgeList::from(vec![(2, 2), (2, 1), (1, 2)])));
        assert_eq!(read("a.csv", b"900,4000000000\n").unwrap().edges, [(900, 4_000_000_000)]);
    }

    #[test]
    fn agents_have_names() {
        let read = |bytes: &[u8]| edges_from_bytes(Path::new("a.csv"), bytes, true).map_err(|error| error.to_string());
        let expected = EdgeList {
            edges: vec![(0, 1), (2, 0)],
            names: Some(vec!["eve".into(), "7".into(), "joe".into()]),
            directed: None,
            header: Some(["who".into(), "whom".into()]),
        };
        assert_eq!(read(b"who,whom\neve,7\njoe,eve\n"), Ok(expected));
        assert_eq!(read(b"who,whom\neve,\n"), Err("a.csv: line 2: an agent is missing".into()));
        assert!(read(b"eve,joe\n").unwrap_err().contains("there are no edges"));
    }

    #[test]
    fn bad_files() {
        let named = "agents are numbered from 0, or `id: COLUMN` names them";
        let cases: &[(&str, &[u8], &str)] = &[
            ("a.csv", b"a,b\n1,99999999999\n", "line 2: agent 99999999999 does not exist"),
            ("a.csv", b"a,b\n1,-2\n", &format!("line 2: `-2` is not an agent; {named}")),
            ("a.csv", b"O,2\n1,2\n", &format!("line 1: `O` is not an agent; {named}")),
            ("a.csv", b"1,l\n1,2\n", &format!("line 1: `l` is not an agent; {named}")),
            ("a.csv", b"-1,2\n", &format!("line 1: `-1` is not an agent; {named}")),
            ("a.csv", b"a,b\n1,2\n1.0,2\n", &format!("line 3: `1.0` is not an agent; {named}")),
            ("a.csv", b"a,b\n1,\n", &format!("line 2: `` is not an agent; {named}")),
            ("a.csv", b"a,b\n1,2\n3\n", "line 3: 1 cell where the first line has 2 cells"),
            (
                "a.csv",
                b"a\n1\n",
                "line 1: two columns are needed, as in `follower,followee`: first the agent who hears, then the one who is heard",
            ),
            ("a.csv", b"a,b,c\n1,2,x\n1,3,\"x\n2,3,x\n", "line 3: a quote is not closed before the end of the file"),
            ("a.csv", b"a,b\n", "there are no edges; for a society without ties use the topology `none`"),
            ("a.csv", b"", "there are no edges; for a society without ties use the topology `none`"),
            ("a.csv", b"1,2\n\xff,3\n", "line 2: byte 4 (counted from 0), 0xff, is not UTF-8; save the file as UTF-8"),
            ("a.jsonl", b"{}", "edges are read from .csv, .tsv, .graphml and .gexf files"),
        ];
        for (name, bytes, message) in cases {
            assert_eq!(read(name, bytes).unwrap_err(), *message, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), named: bool) {
            let _ = edges_from_bytes(Path::new("a.csv"), &bytes, named);
        }

        /// Fragments of edges reach further than random bytes.
        #[test]
        fn no_pieces_panic(pieces in prop::collection::vec(prop::sample::select(vec!["1", "2", "30", ",", ",", "\n", "\r", "\"", "x"]), 0..60), named: bool) {
            let _ = edges_from_bytes(Path::new("a.csv"), pieces.concat().as_bytes(), named);
        }
    }
}
