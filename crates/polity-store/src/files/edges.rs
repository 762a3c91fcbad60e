//! Edge lists for topologies from data.

use super::data::{DataError, Format, Source, read_bytes};
use std::path::Path;

/// The edges of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeList {
    /// Each edge once, ascending: the hearing agent first, then the agent it hears. An agent may be tied to itself.
    pub edges: Vec<(u32, u32)>,
}

/// Reads edges from a `.csv` or `.tsv` file. The first two columns are agent ids: the follower (who hears), then the followed (who is
/// heard). The first line is a header if neither cell is a number. If the number of `agents` is known, every id must be below it.
///
/// # Errors
/// Names file and line: general data file errors, ragged rows, invalid agent ids.
pub fn read_edges(path: &Path, agents: Option<u32>) -> Result<EdgeList, DataError> {
    edges_from_bytes(path, &read_bytes(path)?, agents)
}

/// Reads edges from the bytes of the file at `path`, as [`read_edges`] does.
///
/// # Errors
/// As [`read_edges`].
pub fn edges_from_bytes(path: &Path, bytes: &[u8], agents: Option<u32>) -> Result<EdgeList, DataError> {
    let source = Source::of(path, bytes)?;
    let Format::Separated(separator) = source.format()? else {
        return Err(source.error(None, None, "edges are read from .csv and .tsv files only"));
    };
    let mut edges = Vec::new();
    let mut cells = None;
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
        // A number beside a word is a mistyped edge, not a header to skip.
        if first && [a, b].iter().all(|cell| cell.parse::<f64>().is_err()) {
            continue;
        }
        let (a, b) = id(a, agents)
            .and_then(|a| Ok((a, id(b, agents)?)))
            .map_err(|message| source.error(source.line_of(&record), None, message))?;
        edges.push((a, b));
        last = record;
    }
    source.check_end(&last)?;
    if edges.is_empty() {
        return Err(source.error(None, None, "there are no edges; for a society without ties use the topology `none`"));
    }
    edges.sort_unstable();
    edges.dedup();
    Ok(EdgeList { edges })
}

fn id(cell: &str, agents: Option<u32>) -> Result<u32, String> {
    if cell.is_empty() || !cell.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{cell}` is not an agent; agents are numbered from 0"));
    }
    match (cell.parse::<u32>(), agents) {
        (Ok(id), None) => Ok(id),
        (Ok(id), Some(n)) if id < n => Ok(id),
        (_, None | Some(0)) => Err(format!("agent {cell} does not exist")),
        (_, Some(n)) => Err(format!("agent {cell} does not exist; the society has agents 0 to {}", n - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, bytes: &[u8]) -> Result<EdgeList, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read_edges(&path, Some(111))
            .map_err(|error| error.to_string().strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned())
    }

    #[test]
    fn with_header_and_without() {
        let expected = EdgeList { edges: vec![(0, 5), (1, 2), (3, 110)] };
        assert_eq!(read("a.csv", b"follower,followee\n1,2\n0,5\n3,110\n0,5\n"), Ok(expected.clone()));
        assert_eq!(read("a.tsv", b"3\t110\tw\n0\t5\tx\n0\t5\ty\n1\t2\tz\n"), Ok(expected));
        // What becomes of edges that tie an agent to itself is the topology's matter, too.
        assert_eq!(read("a.csv", b"2,2\n1,2\n"), Ok(EdgeList { edges: vec![(1, 2), (2, 2)] }));
        // An edge and its reverse are two edges: only the topology knows whether ties are directed.
        assert_eq!(read("a.csv", b"from,to\n1,2\n2,1\n"), Ok(EdgeList { edges: vec![(1, 2), (2, 1)] }));
    }

    #[test]
    fn agents_not_known_yet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "900,4000000000\n").unwrap();
        assert_eq!(read_edges(&path, None).unwrap().edges, [(900, 4_000_000_000)]);
        std::fs::write(&path, "900,5000000000\n").unwrap();
        assert_eq!(read_edges(&path, None).unwrap_err().message, "agent 5000000000 does not exist");
    }

    #[test]
    fn bad_files() {
        let cases: &[(&str, &[u8], &str)] = &[
            (
                "a.csv",
                b"a,b\n1,2\n3,4\n5,6\n900,1\n",
                "line 5: agent 900 does not exist; the society has agents 0 to 110",
            ),
            ("a.csv", b"0,111\n", "line 1: agent 111 does not exist; the society has agents 0 to 110"),
            (
                "a.csv",
                b"a,b\n1,99999999999\n",
                "line 2: agent 99999999999 does not exist; the society has agents 0 to 110",
            ),
            ("a.csv", b"a,b\n1,-2\n", "line 2: `-2` is not an agent; agents are numbered from 0"),
            ("a.csv", b"O,2\n1,2\n", "line 1: `O` is not an agent; agents are numbered from 0"),
            ("a.csv", b"1,l\n1,2\n", "line 1: `l` is not an agent; agents are numbered from 0"),
            ("a.csv", b"-1,2\n", "line 1: `-1` is not an agent; agents are numbered from 0"),
            ("a.csv", b"a,b\n1,2\n1.0,2\n", "line 3: `1.0` is not an agent; agents are numbered from 0"),
            ("a.csv", b"a,b\n1,\n", "line 2: `` is not an agent; agents are numbered from 0"),
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
            ("a.jsonl", b"{}", "edges are read from .csv and .tsv files only"),
        ];
        for (name, bytes, message) in cases {
            assert_eq!(read(name, bytes).unwrap_err(), *message, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read("a.csv", &bytes);
        }

        /// Fragments of edges reach further than random bytes; every parsed result keeps the contract.
        #[test]
        fn no_pieces_panic(pieces in prop::collection::vec(prop::sample::select(vec!["1", "2", "30", ",", ",", "\n", "\r", "\"", "x"]), 0..60)) {
            if let Ok(list) = read("a.csv", pieces.concat().as_bytes()) {
                prop_assert!(list.edges.is_sorted_by(|a, b| a < b));
                prop_assert!(list.edges.iter().all(|(a, b)| *a < 111 && *b < 111));
            }
        }
    }
}
