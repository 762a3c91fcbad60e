//! Tests of the graph: what its tools return, and its paths against a plain computation.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::*;
use polity_kernel::population::{Column, Table, TextBuilder};
use polity_kernel::rng::{Draws, Stream};
use serde_json::Value;
use std::sync::Arc;

fn texts<T: AsRef<str>>(cells: &[T]) -> Column {
    let mut column = TextBuilder::default();
    cells.iter().for_each(|cell| column.push(cell.as_ref()));
    column.finish()
}

/// Makes a table of rows with these columns, which are separated by `|`.
fn table(columns: &str, rows: &[&str]) -> Arc<Table> {
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.split('|').collect()).collect();
    let column = |i: usize| texts(&cells.iter().map(|row| row[i]).collect::<Vec<_>>());
    let columns = columns.split('|').enumerate().map(|(i, name)| (name.to_owned(), column(i))).collect();
    Arc::new(Table::new(columns).unwrap())
}

fn inputs() -> Inputs {
    let mut inputs = Inputs::default();
    let people = table(
        "subject|relation|object|subject_type|object_type",
        &[
            "Ada Lovelace|wrote|Notes|person|book",
            "Charles Babbage|designed|Analytical Engine|person|machine",
            "Notes|about|Analytical  Engine|book|",
            "Ada Lovelace|knew|Charles Babbage||",
            "Ada Lovelace|wrote|Notes|author|",
            "Ouroboros|bites|Ouroboros|snake|snake",
        ],
    );
    inputs.tables.insert("people.csv".into(), people);
    let more = table("subject|relation|object", &["Luigi Menabrea|wrote|Sketch", "Sketch|about|Analytical Engine"]);
    inputs.tables.insert("more.csv".into(), more);
    inputs.tables.insert("wrong.csv".into(), table("from|to", &["a|b"]));
    inputs.tables.insert("empty.csv".into(), table("subject|relation|object", &["a|r|b", "a| |b"]));
    inputs.texts.insert("memo.md".into(), "text".into());
    inputs
}

fn open(params: Value) -> Result<Graph, Invalid> {
    Graph::open(serde_json::from_value(params).unwrap(), &inputs())
}

fn call(graph: &Graph, tool: &str, arguments: Value) -> ToolOutput {
    graph.call(tool, arguments.as_object().unwrap())
}

#[test]
fn neighbours_are_edges_with_citations() {
    let graph = open(json!({"file": "people.csv", "files": ["more.csv"]})).unwrap();
    let neighbours =
        |node: &str, relation: &str| call(&graph, "neighbours", json!({"node": node, "relation": relation}));
    let expected = "[Analytical Engine] machine; 3 edges\n[t2] Charles Babbage --designed--> Analytical Engine\n\
                    [t3] Notes --about--> Analytical Engine\n[t8] Sketch --about--> Analytical Engine";
    assert_eq!(neighbours("Analytical Engine", ""), ToolOutput::text(expected));
    let expected = "[Ada Lovelace] author, person; 2 edges\n[t1] Ada Lovelace --wrote--> Notes";
    assert_eq!(neighbours("[Ada Lovelace]", "wrote"), ToolOutput::text(expected));
    assert_eq!(neighbours("Sketch", "").text.lines().next(), Some("[Sketch] 2 edges"));
    assert_eq!(neighbours("Ouroboros", "").text, "[Ouroboros] snake; 1 edge\n[t6] Ouroboros --bites--> Ouroboros");
    let error = "`Ada Lovelace` has no edge of relation `read`; it has `knew` (1), `wrote` (1)";
    assert_eq!(neighbours("Ada Lovelace", "read"), ToolOutput::error(error));
    let error = neighbours("ada lovelace", "");
    assert!(
        error.error && error.text.starts_with("there is no node `ada lovelace`; the nearest are `Ada Lovelace`, "),
        "{error:?}"
    );
    assert!(call(&graph, "dig", json!({})).error);
}

#[test]
fn nodes_are_found_by_a_part_of_their_names() {
    let graph = open(json!({"file": "people.csv", "files": ["more.csv"]})).unwrap();
    let find = |text: &str, kind: &str| call(&graph, "find", json!({"text": text, "type": kind}));
    assert_eq!(find("NOTES", "").text, "[Notes] book; 2 edges");
    assert_eq!(find("a", "person").text, "[Ada Lovelace] author, person; 2 edges\n[Charles Babbage] person; 2 edges");
    // Names that begin with the part come first.
    assert_eq!(find("l", "").text.lines().next(), Some("[Luigi Menabrea] 1 edge"));
    assert_eq!(
        find("Babage", "person"),
        ToolOutput::text(
            "No node of type `person` has `Babage` in its name; the nearest are `Charles Babbage` and `Ada Lovelace`"
        )
    );
    let error = "there is no type `persons`; the nearest are `person`, `author`, `book`, `machine` and `snake`";
    assert_eq!(find("a", "persons"), ToolOutput::error(error));
}

#[test]
fn long_results_say_what_is_left_out() {
    let graph = open(json!({"file": "people.csv", "most": 1})).unwrap();
    let neighbours = call(&graph, "neighbours", json!({"node": "Ada Lovelace"})).text;
    assert!(neighbours.ends_with("\n1 more edges are not shown; edges by relation: knew 1, wrote 1"), "{neighbours}");
    let found = call(&graph, "find", json!({"text": ""})).text;
    let expected =
        "[Ada Lovelace] author, person; 2 edges\n4 more nodes are not shown; give more of the name, or a type";
    assert_eq!(found, expected);
}

#[test]
fn paths_are_edges_in_order() {
    let graph = open(json!({"file": "people.csv", "files": ["more.csv"]})).unwrap();
    let path =
        |from: &str, to: &str, most: u32| call(&graph, "path", json!({"from": from, "to": to, "most": most})).text;
    let expected = "Shortest path between `Ada Lovelace` and `Luigi Menabrea`, 4 edges:\n[t1] Ada Lovelace --wrote--> Notes\n\
                    [t3] Notes --about--> Analytical Engine\n[t8] Sketch --about--> Analytical Engine\n[t7] Luigi Menabrea --wrote--> Sketch";
    assert_eq!(path("Ada Lovelace", "Luigi Menabrea", 4), expected);
    let longer = "The shortest path between `Ada Lovelace` and `Luigi Menabrea` has 4 edges, more than 3";
    assert_eq!(path("Ada Lovelace", "Luigi Menabrea", 3), longer);
    assert_eq!(path("Notes", "Ouroboros", 9), "There is no path between `Notes` and `Ouroboros`");
    assert_eq!(path("Notes", "Notes", 9), "`Notes` is both ends of the path, which has no edges");
    assert!(path("Notes", "Noets", 9).starts_with("there is no node `Noets`; the nearest are `Notes`"));
}

#[test]
fn paths_are_as_short_as_a_plain_computation_says() {
    let mut draws = Draws::new(3, Stream::Driver, 0, 0);
    let mut lengths = BTreeMap::new();
    for _ in 0..40 {
        let n = 2 + draws.below(12) as usize;
        let edges: Vec<(usize, usize)> = (0..1 + draws.below(14))
            .map(|_| (draws.below(n as u64) as usize, draws.below(n as u64) as usize))
            .collect();
        // Floyd and Warshall, in both directions.
        let far = 1_000;
        let mut between = BTreeMap::new();
        for pair in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            between.insert(pair, if pair.0 == pair.1 { 0 } else { far });
        }
        for (a, b) in edges.iter().filter(|(a, b)| a != b) {
            between.extend([((*a, *b), 1), ((*b, *a), 1)]);
        }
        for via in 0..n {
            let before = between.clone();
            for ((a, b), length) in &mut between {
                *length = (*length).min(before[&(*a, via)] + before[&(via, *b)]);
            }
        }
        let rows: Vec<String> = edges.iter().map(|(a, b)| format!("n{a}|r|n{b}")).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut inputs = Inputs::default();
        inputs.tables.insert("t.csv".into(), table("subject|relation|object", &rows));
        let graph = Graph::open(Params { file: Some("t.csv".into()), ..Params::default() }, &inputs).unwrap();
        for a in 0..n {
            for b in 0..n {
                let (Ok(start), Ok(end)) = (graph.node(&format!("n{a}")), graph.node(&format!("n{b}"))) else {
                    continue;
                };
                let path = graph.shortest(start, end);
                assert_eq!(path.as_ref().map_or(far, Vec::len), between[&(a, b)].min(far), "{edges:?}: {a} to {b}");
                let mut node = start;
                for edge in path.into_iter().flatten() {
                    assert!(edge.subject == node || edge.object == node, "{edges:?}: {a} to {b}");
                    node = edge.other(node);
                    *lengths.entry(between[&(a, b)]).or_insert(0) += 1;
                }
                assert!(node == end || between[&(a, b)] == far);
            }
        }
    }
    assert!(lengths.len() > 3, "{lengths:?}");
}

#[test]
fn what_is_no_graph_is_refused() {
    let message = |params: Value| open(params).err().unwrap().message;
    let needs = "`wrong.csv`: needs the columns `subject`, `relation` and `object`; it has from, to";
    assert_eq!(message(json!({"file": "wrong.csv"})), needs);
    assert_eq!(message(json!({"file": "empty.csv"})), "`empty.csv`: row 2: the relation is empty");
    assert_eq!(
        message(json!({"files": ["memo.md"]})),
        "`memo.md`: is a text; edges are read from a table (.csv, .tsv, .jsonl)"
    );
    assert_eq!(open(json!({"file": "people.csv", "most": 0})).err().unwrap().key, "most");
}
