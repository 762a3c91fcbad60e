//! Tests of the search over small sets of documents. The ranking itself is tested in polity-recall.
#![allow(clippy::panic, clippy::unwrap_used)]

use super::*;
use polity_kernel::population::{Column, Table, TextBuilder};
use serde_json::Value;
use std::sync::Arc;

fn texts(cells: &[&str]) -> Column {
    let mut column = TextBuilder::default();
    cells.iter().for_each(|cell| column.push(cell));
    column.finish()
}

fn table(columns: &[(&str, &[&str])]) -> Arc<Table> {
    Arc::new(Table::new(columns.iter().map(|(name, cells)| ((*name).to_owned(), texts(cells))).collect()).unwrap())
}

fn inputs() -> Inputs {
    let mut inputs = Inputs::default();
    let news = table(&[
        ("id", &["budget", "harvest", "rumour"]),
        ("title", &["The new budget", "", "Gossip\n in town"]),
        (
            "text",
            &["The council cut the budget.\n\nParks lose most.", "The harvest was good.", "The mayor likes parks."],
        ),
        ("date", &["2024-03-01", "2023-09-01T08:00:00Z", ""]),
    ]);
    inputs.tables.insert("news.jsonl".into(), news);
    let notes = table(&[("id", &["a.md", "sub/b.md"]), ("text", &["# Rents\nRents rose.", "No heading, no rents."])]);
    inputs.tables.insert("notes".into(), notes);
    inputs.tables.insert("wrong.csv".into(), table(&[("name", &["x"]), ("text", &["y"])]));
    let numbers = vec![("id".to_owned(), Column::Number(vec![7.0])), ("text".to_owned(), texts(&["Seven hills"]))];
    inputs.tables.insert("numbers.csv".into(), Arc::new(Table::new(numbers).unwrap()));
    inputs.tables.insert("dates.csv".into(), table(&[("id", &["x"]), ("text", &["y"]), ("date", &["1 May 2024"])]));
    inputs.texts.insert("memo.md".into(), "Intro\n# The memo\n\nSave water.".into());
    inputs
}

fn open(params: Value) -> Result<Search, Invalid> {
    Search::open(serde_json::from_value(params).unwrap(), &inputs())
}

fn refused(params: Value) -> (String, String) {
    let Invalid { key, message } = open(params).err().unwrap();
    (key, message)
}

fn call(search: &Search, tool: &str, arguments: Value) -> ToolOutput {
    search.call(tool, arguments.as_object().unwrap())
}

#[test]
fn passages_are_numbered_and_cited() {
    let search = open(json!({"file": "news.jsonl", "passage_words": 10})).unwrap();
    let found = call(&search, "search", json!({"query": "what do parks lose"}));
    let expected = "1. [budget#1] The new budget (2024-03-01)\nThe council cut the budget.\n\nParks lose most.\n\n\
                    2. [rumour#1] Gossip in town\nThe mayor likes parks.";
    assert_eq!(found, ToolOutput::text(expected));
    let found = call(&search, "search", json!({"query": "the", "k": 1.0}));
    assert_eq!(found.text.matches('[').count(), 1);
    assert_eq!(
        call(&search, "search", json!({"query": "xylophone"})),
        ToolOutput::text("No passage fits `xylophone`. Try other words.")
    );
    assert!(call(&search, "search", json!({"query": " "})).error);
    assert!(call(&search, "dig", json!({})).error);
}

#[test]
fn documents_of_a_day_or_later_are_not_found_before_it() {
    let search = open(json!({"file": "news.jsonl"})).unwrap();
    let before = |day: &str| call(&search, "search", json!({"query": "the", "before": day}));
    assert_eq!(before("2024-03-01").text, "1. [harvest#1] (2023-09-01)\nThe harvest was good.");
    assert_eq!(before("2024-03-02").text.matches("#1]").count(), 2, "an undated one is not found before any day");
    assert_eq!(
        before("2023-09-01").text,
        "No passage in documents dated before 2023-09-01 fits `the`. Try other words."
    );
    assert_eq!(
        before("yesterday"),
        ToolOutput::error("before: `yesterday` is not a date; write YEAR-MONTH-DAY, such as 2024-05-31")
    );
}

#[test]
fn a_day_in_the_scenario_holds_for_every_call() {
    let search = open(json!({"file": "news.jsonl", "before": "2024-01-01"})).unwrap();
    assert!(search.tools()[0].description.contains("Searches 1 document, all dated before 2024-01-01."));
    let found = call(&search, "search", json!({"query": "the", "before": "2030-01-01"}));
    assert_eq!(found.text, "1. [harvest#1] (2023-09-01)\nThe harvest was good.");
    for id in ["budget", "budget#1", "rumour"] {
        let error = ToolOutput::error(format!("there is no document `{id}`; the nearest is `harvest`"));
        assert_eq!(call(&search, "read", json!({"id": id})), error);
    }
    let (key, message) = refused(json!({"file": "news.jsonl", "before": "2000-01-01"}));
    assert_eq!(key, "before");
    assert_eq!(message, "no document is dated before 2000-01-01: there are 3, of which 1 have no date");
}

#[test]
fn documents_and_passages_are_read() {
    let search = open(json!({"file": "news.jsonl"})).unwrap();
    let read = |id: &str| call(&search, "read", json!({"id": id}));
    let whole = "[budget] The new budget (2024-03-01), 1 passage\n\n[budget#1]\nThe council cut the budget.\n\nParks lose most.";
    assert_eq!(read("budget"), ToolOutput::text(whole));
    assert_eq!(read("[budget]"), read("budget"));
    assert_eq!(read("[harvest#1]"), ToolOutput::text("[harvest#1] (2023-09-01)\nThe harvest was good."));
    let error = "there is no `budget#4`: `budget` has 1 passage, from `budget#1` to `budget#1`";
    assert_eq!(read("budget#4"), ToolOutput::error(error));
    let error = "there is no document `bugdet`; the nearest are `budget`, `harvest` and `rumour`";
    assert_eq!(read("bugdet"), ToolOutput::error(error));
}

#[test]
fn long_documents_have_several_passages() {
    let mut inputs = inputs();
    let text: String = (0..40).map(|i| format!("Sentence {i} has five words.\n\n")).collect();
    inputs.texts.insert("long.txt".into(), text.into());
    let params = serde_json::from_value(json!({"files": ["long.txt"], "passage_words": 10})).unwrap();
    let search = Search::open(params, &inputs).unwrap();
    let whole = call(&search, "read", json!({"id": "long.txt"})).text;
    assert!(
        whole.starts_with("[long.txt], 20 passages\n\n[long.txt#1]\nSentence 0 has five words.\n\nSentence 1"),
        "{whole}"
    );
    let found = call(&search, "search", json!({"query": "sentence 33", "k": 1}));
    let passage = "Sentence 32 has five words.\n\nSentence 33 has five words.";
    assert_eq!(found.text, format!("1. [long.txt#17]\n{passage}"));
    assert_eq!(call(&search, "read", json!({"id": "long.txt#17"})).text, format!("[long.txt#17]\n{passage}"));
}

#[test]
fn files_of_all_kinds_are_documents() {
    let search =
        open(json!({"file": "numbers.csv", "files": ["memo.md", "news.jsonl"], "folder": "notes", "method": "hybrid"}))
            .unwrap();
    let ids: Vec<&str> = search.index.documents().iter().map(|document| document.id.as_str()).collect();
    assert_eq!(ids, ["7", "memo.md", "budget", "harvest", "rumour", "a.md", "sub/b.md"]);
    let titles: Vec<&str> = search.index.documents().iter().map(|document| document.title.as_str()).collect();
    assert_eq!(titles, ["", "The memo", "The new budget", "", "Gossip\n in town", "Rents", ""]);
    assert!(call(&search, "search", json!({"query": "hils"})).text.contains("[7#1]"), "with a typing error");
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = |params: Value| refused(params).1;
    assert_eq!(message(json!({})), "names no file; give it `file` or `files`");
    assert_eq!(
        refused(json!({"files": ["memo.md", "x.pdf"]})),
        ("files[1]".into(), "`x.pdf` is neither a table (.csv, .tsv, .jsonl) nor a text (.md, .txt, .html)".into())
    );
    assert_eq!(
        message(json!({"file": "wrong.csv"})),
        "`wrong.csv`: needs the columns `id` and `text` (and `title` and `date`, if known); it has name, text"
    );
    assert_eq!(
        message(json!({"file": "dates.csv"})),
        "`dates.csv`: row 1: `1 May 2024` is not a date; write YEAR-MONTH-DAY, such as 2024-05-31"
    );
    assert_eq!(
        message(json!({"file": "memo.md", "files": ["memo.md"]})),
        "documents 1 and 2 both have the id `memo.md`; give every document an id of its own"
    );
    for (key, params) in [
        ("k", json!({"file": "memo.md", "k": 0})),
        ("k", json!({"file": "memo.md", "k": 51})),
        ("passage_words", json!({"file": "memo.md", "passage_words": 1})),
        ("dimensions", json!({"file": "memo.md", "dimensions": 1})),
        ("bm25.k1", json!({"file": "memo.md", "bm25": {"k1": -1.0}})),
        ("bm25.b", json!({"file": "memo.md", "bm25": {"b": 1.5}})),
        ("before", json!({"file": "memo.md", "before": "soon"})),
    ] {
        assert_eq!(refused(params).0, key);
    }
}
