//! Small logs of lm-evaluation-harness, by its documented fields, and what is refused. Logs made by Inspect itself, and runs:
//! `crates/polity/tests/import.rs`.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

const DATE: &str = "2026-11-25T10-00-00.000000";

/// Writes the samples of a task, and the results beside them.
fn logged(folder: &TempDir, task: &str, samples: &[Value], figures: &Value) -> PathBuf {
    let path = folder.path().join(format!("samples_{task}_{DATE}.jsonl"));
    fs::write(&path, samples.iter().map(|sample| format!("{sample}\n")).collect::<String>()).unwrap();
    let results = json!({ "model_name": "acme/bright", "results": { task: figures } });
    fs::write(folder.path().join(format!("results_{DATE}.json")), results.to_string()).unwrap();
    path
}

fn bundle(logs: &[&Path], choice: Choice<'_>) -> Result<Bundle, DriveError> {
    let logs: Result<Vec<Log>, DriveError> = logs.iter().map(|log| read(log, choice, &Registry::new())).collect();
    Bundle::of(logs?)
}

fn file<'a>(bundle: &'a Bundle, name: &str) -> &'a str {
    bundle.files.iter().find(|(other, _)| *other == name).map(|(_, text)| text.as_str()).unwrap()
}

/// A question with options, whose likelihoods were compared.
fn colour(id: u32, likelihoods: [f64; 2], right: u32, mark: f64) -> Value {
    let asked = |option: &str| json!({ "arg_0": format!("Question {id}"), "arg_1": option });
    json!({
        "doc_id": id, "doc": { "question": format!("Question {id}"), "choices": ["red", "blue"], "answer": right },
        "target": right.to_string(), "arguments": { "gen_args_0": asked(" red"), "gen_args_1": asked(" blue") },
        "resps": likelihoods.map(|value| json!([[value.to_string(), "False"]])),
        "filtered_resps": likelihoods.map(|value| json!([value.to_string(), "False"])),
        "filter": "none", "metrics": ["acc"], "acc": mark,
    })
}

/// A sum, with what a filter found in the reply.
fn sum(id: u32, filter: &str, found: &str, mark: f64) -> Value {
    json!({
        "doc_id": id, "doc": { "question": format!("What is {id} + {id}?"), "answer": format!("#### {}", 2 * id) },
        "target": format!("#### {}", 2 * id), "arguments": { "gen_args_0": { "arg_0": format!("Q: {id}"), "arg_1": {} } },
        "resps": [["a reply"]], "filtered_resps": [found], "filter": filter, "metrics": ["exact_match"], "exact_match": mark,
    })
}

#[test]
fn the_most_likely_option_is_the_answer() {
    let folder = TempDir::new().unwrap();
    let samples = [colour(0, [-3.0, -1.5], 1, 1.0), colour(1, [-1.0, -2.0], 1, 0.0), colour(2, [-2.0, -2.0], 0, 1.0)];
    let log = logged(&folder, "colours", &samples, &json!({ "acc,none": 2.0 / 3.0 }));
    let found = bundle(&[&log], Choice::default()).unwrap();
    assert_eq!((found.items, found.models.as_slice()), (3, &["acme/bright".to_string()][..]));
    let [account] = found.accounts.as_slice() else { panic!("{:?}", found.accounts) };
    assert!(account.agrees() && account.marks == 3, "{account:?}");
    assert_eq!((account.accuracy, account.recomputed), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
    let answers = "item\tmodel\tsample\tanswer\tmark\ncolours/0\tacme/bright\t0\tB\t1\n\
                   colours/1\tacme/bright\t0\tA\t0\ncolours/2\tacme/bright\t0\tA\t1\n";
    assert_eq!(file(&found, ANSWERS), answers);
    assert!(file(&found, SCENARIO).contains("method: {kind: direct}"));
    // The same log from another folder adds nothing.
    let other = TempDir::new().unwrap();
    let copy = logged(&other, "colours", &samples, &json!({ "acc,none": 2.0 / 3.0 }));
    let found = bundle(&[&log, &copy], Choice::default()).unwrap();
    assert_eq!(found.accounts.iter().map(|account| account.answers).collect::<Vec<_>>(), [3, 0]);
    assert_eq!(found.accounts.last().unwrap().left_out, [("samples that are there twice", 3)].into());
}

#[test]
fn the_filter_says_what_the_answer_is() {
    let folder = TempDir::new().unwrap();
    let samples = [
        sum(1, "strict-match", "2", 1.0),
        sum(2, "strict-match", "[invalid]", 0.0),
        sum(1, "flexible-extract", "2", 1.0),
        sum(2, "flexible-extract", "4", 1.0),
    ];
    let figures = json!({ "exact_match,strict-match": 0.5, "exact_match,flexible-extract": 1.0 });
    let log = logged(&folder, "sums", &samples, &figures);
    let strict = bundle(&[&log], Choice::default()).unwrap();
    let account = &strict.accounts[0];
    assert!(account.agrees() && account.accuracy == Some(0.5) && account.unread == 1, "{account:?}");
    assert_eq!(account.left_out, [("samples of other filters", 2)].into());
    let flexible = Choice { scorer: Some("flexible-extract"), model: Some("mine") };
    let found = bundle(&[&log], flexible).unwrap();
    assert!(found.accounts[0].agrees() && found.accounts[0].accuracy == Some(1.0), "{:?}", found.accounts);
    assert_eq!(found.models, ["mine"]);
    let none = bundle(&[&log], Choice { scorer: Some("loose"), model: None }).unwrap_err().to_string();
    assert!(none.contains("no filter `loose` (it has strict-match, flexible-extract)"), "{none}");
}

#[test]
fn a_difference_from_the_log_is_counted() {
    let folder = TempDir::new().unwrap();
    let samples = [sum(1, "strict-match", "2", 0.0), sum(2, "strict-match", "4", 1.0)];
    let log = logged(&folder, "sums", &samples, &json!({ "exact_match,strict-match": 0.5 }));
    let found = bundle(&[&log], Choice::default()).unwrap();
    let account = &found.accounts[0];
    assert!(!account.agrees(), "{account:?}");
    assert_eq!((account.differing, account.recomputed), (1, Some(1.0)));
}

#[test]
fn logs_that_say_nothing_are_refused() {
    let folder = TempDir::new().unwrap();
    let nameless = json!({ "filtered_resps": ["2"], "filter": "none" });
    let log = logged(&folder, "sums", &[nameless], &json!({}));
    let why = bundle(&[&log], Choice::default()).unwrap_err().to_string();
    assert!(why.contains("no answer that can be taken over (samples without an id: 1)"), "{why}");
    fs::write(&log, "{\"filtered_resps\": []}\n{broken\n").unwrap();
    let why = bundle(&[&log], Choice::default()).unwrap_err().to_string();
    assert!(why.contains("line 2: "), "{why}");
}
