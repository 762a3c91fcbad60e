//! Judges of pairs in whole runs, and what `polity agreement` says of them.
#![allow(clippy::unwrap_used, clippy::panic)] // clippy.toml lets tests fail loudly; their helpers are no tests to it.

use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn polity(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_polity")).current_dir(folder).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

/// Judges at work on `n` pairs, half of which have the better answer first; what the command says of the run.
fn judged(folder: &Path, n: u32, model: &str, method: &Json) -> Json {
    let pair = |i: u32| {
        let (label, a, b) = if i.is_multiple_of(2) { ("A", "good", "bad") } else { ("B", "bad", "good") };
        json!({"question": format!("question {i}?"), "answer_a": format!("{a} {i}"), "answer_b": format!("{b} {i}"), "label": label})
            .to_string()
    };
    fs::write(folder.join("pairs.jsonl"), (0..n).map(pair).collect::<Vec<_>>().join("\n")).unwrap();
    let scenario = json!({
        "seed": 3, "rounds": 2, "agents": 3, "model": model, "method": method,
        "items": {"file": "pairs.jsonl", "shape": "preference"},
    });
    fs::write(folder.join("judge.yaml"), scenario.to_string()).unwrap();
    let (ok, _, errors) = polity(folder, &["run", "judge.yaml", "--out", "run"]);
    assert!(ok, "{errors}");
    let (ok, out, errors) = polity(folder, &["agreement", "run", "--json"]);
    assert!(ok, "{errors}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn who_knows_agrees_with_everything() {
    for way in ["pairwise", "rubric", "jury", "debate", "critic"] {
        let folder = tempfile::tempdir().unwrap();
        let found =
            judged(folder.path(), 20, "sim/perfect", &json!({"kind": "judge", "way": way, "both_orders": true}));
        assert_eq!(found["team"]["kappa"], json!(1.0), "{way}: {found}");
        assert_eq!(found["team"]["items"], json!(20), "{way}");
        if way == "jury" {
            assert_eq!(found["fleiss"], json!(1.0));
            assert!(found["judges"].as_array().unwrap().iter().all(|judge| judge["steady"] == json!(1.0)));
        }
    }
}

#[test]
fn who_guesses_leans_to_what_comes_first_and_a_jury_does_better_than_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let found = judged(folder.path(), 600, "sim/small", &json!({"kind": "judge", "way": "jury"}));
    let number = |value: &Json| value.as_f64().unwrap();
    let judges = found["judges"].as_array().unwrap();
    // One standard error of a share of 600 is 0.02.
    assert!(judges.iter().all(|judge| number(&judge["first_bias"]) > 0.04), "{found}");
    assert!(judges.iter().all(|judge| (0.55..0.8).contains(&number(&judge["agreement"]))), "{found}");
    assert!(number(&found["team"]["agreement"]) > judges.iter().map(|j| number(&j["agreement"])).sum::<f64>() / 3.0);
    assert!((0.0..0.9).contains(&number(&found["fleiss"])), "{found}");
    // In both orders the lean shows as verdicts that are not kept.
    let folder = tempfile::tempdir().unwrap();
    let found = judged(folder.path(), 600, "sim/small", &json!({"kind": "judge", "way": "jury", "both_orders": true}));
    let judges = found["judges"].as_array().unwrap();
    assert!(judges.iter().all(|judge| number(&judge["steady"]) < 0.95), "{found}");
    assert!(judges.iter().all(|judge| number(&judge["first_bias"]).abs() < 0.09), "{found}");
}

#[test]
fn calibration_finds_the_declared_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let item = |i: u32| {
        json!({"question": format!("What is {i} + 1?"), "answer": (i + 1).to_string(), "difficulty": f64::from(i % 9) / 2.0 - 2.0})
            .to_string()
    };
    fs::write(folder.path().join("sums.jsonl"), (0..2_000).map(item).collect::<Vec<_>>().join("\n")).unwrap();
    let scenario = json!({
        "seed": 5, "rounds": 1, "agents": 4, "model": "sim/medium", "method": {"kind": "self-consistency"},
        "items": {"file": "sums.jsonl", "answer": "answer", "difficulty": "difficulty"},
    });
    fs::write(folder.path().join("sc.yaml"), scenario.to_string()).unwrap();
    let (ok, _, errors) = polity(folder.path(), &["run", "sc.yaml", "--out", "run"]);
    assert!(ok, "{errors}");
    let (ok, out, errors) = polity(folder.path(), &["calibrate", "run", "--json"]);
    assert!(ok, "{errors}");
    let fit: Json = serde_json::from_str(&out).unwrap();
    // Declared of sim/medium: skill 0.8, difficulty response 1, correlation 0.3, lure 0.35. Answers to one item are not independent, so
    // the standard errors are too small: eight of them.
    let close = |value: &Json, declared: f64| {
        let (x, error) = (value[0].as_f64().unwrap(), value[1].as_f64().unwrap());
        assert!((x - declared).abs() < 8.0 * error, "{x} ± {error}, declared {declared}");
    };
    close(&fit["skill"], 0.8);
    close(&fit["difficulty_response"], 1.0);
    for (key, declared) in [("correlation", 0.3), ("lure", 0.35)] {
        assert!((fit[key].as_f64().unwrap() - declared).abs() < 0.05, "{key}: {fit}");
    }
}

#[test]
fn wrong_wishes_are_told_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("q.jsonl"), r#"{"question": "1 + 1?", "answer": "2"}"#).unwrap();
    let scenario = json!({
        "rounds": 1, "agents": 1, "model": "sim/medium", "method": {"kind": "judge"},
        "items": {"file": "q.jsonl", "answer": "answer"},
    });
    fs::write(folder.path().join("wrong.yaml"), scenario.to_string()).unwrap();
    let (ok, _, errors) = polity(folder.path(), &["run", "wrong.yaml", "--out", "run"]);
    assert!(!ok && errors.contains("judges compare pairs of answers"), "{errors}");
    let (ok, _, errors) = polity(folder.path(), &["agreement", "nowhere"]);
    assert!(!ok && errors.contains("nowhere"), "{errors}");
}
