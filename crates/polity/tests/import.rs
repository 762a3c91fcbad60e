//! `polity import recorded`: logs that Inspect AI itself makes, and our own runs, are imported and played; what cannot be imported is
//! refused, and what is not kept is said.

use crate::harness::{Said, arg, polity, said, scratch};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn import(logs: &[&Path], out: &Path) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(["import", "recorded"]).args(logs).arg("--out").arg(out).arg("--json").stdin(Stdio::null());
    said(&command.output().unwrap())
}

/// Plays an import, and returns a metric of the run.
fn played(out: &Path, metric: &str) -> f64 {
    let run = out.join("run");
    let found = polity(&["run", arg(&out.join("scenario.yaml")), "--out", arg(&run)]);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    measured(&run, metric)
}

fn measured(run: &Path, metric: &str) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    let printed = command.args(["export", arg(run), "--format", "jsonl"]).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let rows = String::from_utf8(printed.stdout).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = rows.iter().find(|row| row["metric"] == metric || row["name"] == metric);
    found.and_then(|row| row["value"].as_f64()).unwrap_or_else(|| panic!("no {metric} in {rows:?}"))
}

/// Makes real logs; `None` if Inspect cannot be installed.
fn logs_of_inspect(folder: &Path) -> Option<()> {
    let script = ["scripts/python-clients.sh", "inspect"];
    let script = Command::new("bash").args(script).current_dir(root()).output().unwrap();
    if script.status.code() == Some(75) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&script.stderr).trim());
        return None;
    }
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let mut python = Command::new(root().join("target/venv-inspect/bin/python"));
    let made = python.arg(root().join("crates/polity/tests/clients/inspect_logs.py")).arg(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(())
}

/// The log of a task in a folder.
fn log(folder: &Path, task: &str) -> PathBuf {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let fits = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(&format!("_{task}_"));
    all.filter(fits).max().unwrap()
}

#[test]
fn logs_made_by_inspect_are_played_and_score_as_inspect_scored_them() {
    let folder = scratch("import-inspect");
    if logs_of_inspect(&folder).is_none() {
        return;
    }
    let (eval, json) = (folder.join("eval"), folder.join("json"));
    // Four items, two epochs: five of the eight answers are right, and one cannot be read.
    let out = folder.join("colours");
    let found = import(&[&log(&eval, "colours")], &out);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    assert_eq!(
        (&found.json["items"], &found.json["answers"], &found.json["agrees"]),
        (&4.into(), &8.into(), &true.into())
    );
    assert_eq!(found.json["models"], json!(["scripted/bright"]));
    let account = &found.json["logs"][0];
    let expected = json!([0.625, 0.625, 8, 0, 1, "choice"]);
    let shown = ["accuracy", "recomputed", "marks", "differing", "unread", "scorer"].map(|key| account[key].clone());
    assert_eq!(json!(shown), expected);
    assert!(found.notes.contains("they agree"), "{}", found.notes);
    let items = fs::read_to_string(out.join("items.jsonl")).unwrap();
    let first: Value = serde_json::from_str(items.lines().next().unwrap()).unwrap();
    assert!(first["id"] == "sky" && first["answer"] == "B" && items.contains("Think of summer. Think"), "{items}");
    let answers = fs::read_to_string(out.join("answers.tsv")).unwrap();
    assert!(answers.contains("rose\tscripted/bright\t0\t\t0\t11\t5"), "{answers}");
    // The unreadable answer is no answer of a member: five of seven.
    assert!((played(&out, "members.correct") - 5.0 / 7.0).abs() < 1e-12);
    // The other format says the same.
    let other = folder.join("colours-json");
    let found = import(&[&log(&json, "colours")], &other);
    assert_eq!((found.code, &found.json["agrees"]), (Some(0), &true.into()), "{}", found.notes);
    for file in ["items.jsonl", "answers.tsv"] {
        assert!(fs::read(out.join(file)).unwrap() == fs::read(other.join(file)).unwrap(), "{file} differs");
    }
    // Numbers, and a sample that ended in an error.
    let out = folder.join("sums");
    let found = import(&[&log(&eval, "sums")], &out);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    assert_eq!(found.json["logs"][0]["left_out"], json!({ "samples that ended in an error": 1 }));
    assert!(found.json["agrees"] == true && found.notes.contains("ended in an error: 1"), "{}", found.notes);
    assert!((played(&out, "items.correct") - 0.75).abs() < 1e-12);
    together(&folder, &log(&eval, "colours"), &log(&json, "colours"));
    contradicting(&folder, &log(&json, "sums"));
    damaged(&folder, &log(&eval, "sums"));
}

/// Several logs of a task are further samples, and a copy of a log adds nothing.
fn together(folder: &Path, first: &Path, second: &Path) {
    let found = import(&[first, second], &folder.join("together"));
    assert_eq!((found.code, &found.json["answers"]), (Some(0), &16.into()), "{}", found.notes);
    let answers = fs::read_to_string(folder.join("together/answers.tsv")).unwrap();
    assert!(answers.contains("snow\tscripted/bright\t3\tA\t0"), "{answers}");
    let copy = folder.join("copy.eval");
    fs::copy(first, &copy).unwrap();
    let found = import(&[first, &copy], &folder.join("copied"));
    assert_eq!((found.code, &found.json["answers"]), (Some(0), &8.into()), "{}", found.notes);
    assert_eq!(found.json["logs"][1]["left_out"], json!({ "samples that are there twice": 8 }));
}

/// A log whose marks contradict its answers, and one whose questions contradict another's.
fn contradicting(folder: &Path, sums: &Path) {
    let log: Value = serde_json::from_slice(&fs::read(sums).unwrap()).unwrap();
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut changed = log.clone();
        change(&mut changed);
        let path = folder.join(name);
        fs::write(&path, changed.to_string()).unwrap();
        path
    };
    let marked = with("marked.json", &|log| log["samples"][0]["scores"]["match"]["value"] = "I".into());
    let found = import(&[&marked], &folder.join("marked"));
    assert_eq!((found.code, &found.json["agrees"]), (Some(0), &false.into()), "{}", found.notes);
    assert!(found.notes.contains("1 of 4 marks of the log differ"), "{}", found.notes);
    let other = with("other.json", &|log| log["samples"][0]["input"] = "What is the capital of Peru?".into());
    let found = import(&[sums, &other], &folder.join("other"));
    assert!(found.code == Some(2) && found.notes.contains("different tasks with the same ids"), "{}", found.notes);
    assert!(found.notes.contains("Peru") && !folder.join("other").exists(), "{}", found.notes);
    let found = import(&[&with("none.json", &|log| log["samples"] = json!([]))], &folder.join("none"));
    assert!(found.code == Some(2) && found.notes.contains("it has no samples"), "{}", found.notes);
}

/// An archive that was cut off, and one with changed bytes in its samples.
fn damaged(folder: &Path, archive: &Path) {
    let bytes = fs::read(archive).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 3..bytes.len() / 2].iter_mut().for_each(|byte| *byte ^= 0xff);
    for (name, bytes) in [("cut.eval", &bytes[..bytes.len() / 2]), ("flipped.eval", &flipped[..])] {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        let found = import(&[&path], &folder.join("damaged"));
        assert!(found.code == Some(2) && found.notes.contains("the archive is damaged"), "{name}: {}", found.notes);
        assert!(!folder.join("damaged").exists());
    }
}

#[test]
fn a_run_of_ours_is_played_with_the_same_votes() {
    let folder = scratch("import-own");
    let (task, run, out) = (root().join("data/gsm8k-200.jsonl"), folder.join("first"), folder.join("out"));
    let args = ["eval", "--method", "sc@5", "--task", arg(&task), "--model", "sim/medium", "--out", arg(&run)];
    let found = polity(&args);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    let found = import(&[&run], &out);
    assert_eq!((found.code, &found.json["agrees"]), (Some(0), &true.into()), "{}", found.notes);
    assert_eq!((&found.json["items"], &found.json["answers"]), (&200.into(), &1000.into()));
    let accuracy = measured(&run, "members.correct");
    assert!((found.json["logs"][0]["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-12 && accuracy > 0.0);
    assert!((played(&out, "members.correct") - accuracy).abs() < 1e-12, "the same answers");
    assert!(
        (measured(&out.join("run"), "items.correct") - measured(&run, "items.correct")).abs() < 1e-12,
        "the same votes"
    );
    // Nothing is overwritten.
    let before = fs::read(out.join("answers.tsv")).unwrap();
    let found = import(&[&run], &out);
    assert!(found.code == Some(2) && found.notes.contains("already exists; nothing was changed"), "{}", found.notes);
    assert!(fs::read(out.join("answers.tsv")).unwrap() == before);
    let found = import(&[&run, &run], &folder.join("twice"));
    assert!(found.code == Some(2) && found.notes.contains("named twice"), "{}", found.notes);
}

#[test]
fn what_is_no_log_is_refused() {
    let folder = scratch("import-wrong");
    let cases = [
        ("empty.eval", "", "the file is empty"),
        ("notes.txt", "hello", "not a known kind of log"),
        ("text.eval", "hello", "the archive is damaged"),
        ("other.json", "{\"a\": 1}", "this is not an Inspect log"),
        ("samples_x.jsonl", "{\"a\": 1}\n", "line 1: "),
    ];
    for (name, text, why) in cases {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        let found = import(&[&path], &folder.join("out"));
        assert!(found.code == Some(2) && found.notes.contains(why), "{name}: {}", found.notes);
        assert!(found.notes.contains(name) && !folder.join("out").exists(), "{name}: {}", found.notes);
    }
    let found = import(&[&folder.join("missing.eval")], &folder.join("out"));
    assert!(found.code == Some(2) && found.notes.contains("missing.eval"), "{}", found.notes);
    let run = folder.join("society");
    let started = polity(&["run", "guess-average", "--out", arg(&run)]);
    assert_eq!(started.code, Some(0), "{}", started.notes);
    let found = import(&[&run], &folder.join("out"));
    assert!(found.code == Some(2) && found.notes.contains("this run is a society"), "{}", found.notes);
}
