//! Judges of pairs in whole runs, and the output of `polity agreement`.

use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn polity(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_polity")).current_dir(folder).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

/// Runs judges on `n` pairs, half of which have the better answer first; returns the command's output.
fn judged(folder: &Path, n: u32, model: &str, method: &Json) -> Json {
    judged_of(folder, n, 50, model, method)
}

/// The same with this many of a hundred pairs that have the better answer first.
fn judged_of(folder: &Path, n: u32, first: u32, model: &str, method: &Json) -> Json {
    let pair = |i: u32| {
        let (label, a, b) = if i * 37 % 100 < first { ("A", "good", "bad") } else { ("B", "bad", "good") };
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
    assert!(judges.iter().all(|judge| number(&judge["position_bias"]["low"]) > 0.0), "{found}");
    assert!(judges.iter().all(|judge| (0.55..0.8).contains(&number(&judge["agreement"]))), "{found}");
    assert!(number(&found["team"]["agreement"]) > judges.iter().map(|j| number(&j["agreement"])).sum::<f64>() / 3.0);
    assert!((0.0..0.9).contains(&number(&found["fleiss"])), "{found}");
    // In both orders the bias shows as verdicts that are not kept.
    let folder = tempfile::tempdir().unwrap();
    let found = judged(folder.path(), 600, "sim/small", &json!({"kind": "judge", "way": "jury", "both_orders": true}));
    let judges = found["judges"].as_array().unwrap();
    assert!(judges.iter().all(|judge| number(&judge["steady"]) < 0.95), "{found}");
    assert!(judges.iter().all(|judge| number(&judge["position_bias"]["low"]) > 0.0), "{found}");
    assert!(judges.iter().all(|judge| judge["measured_by"] == "both orders"), "{found}");
}

/// The share of labels does not affect the bias: a judge whose first answer is better in 85 of 100 pairs names the first less often than
/// the labels do, whatever its bias.
#[test]
fn a_lean_is_told_apart_from_the_share_of_labels() {
    let number = |value: &Json| value.as_f64().unwrap();
    for both_orders in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let method = json!({"kind": "judge", "way": "jury", "both_orders": both_orders});
        let found =
            judged_of(folder.path(), 1000, 85, "sim/small?critic.sensitivity=0.6&critic.first_bias=0.3", &method);
        assert_eq!(number(&found["labelled_first"]), 0.85);
        for judge in found["judges"].as_array().unwrap() {
            // Declared: 0.3 standard deviations of an impression, a share of 0.13 to 0.17 by whether errors look right to it.
            let bias = &judge["position_bias"];
            assert!(
                number(&bias["low"]) > 0.0 && (0.08..0.25).contains(&number(&bias["mean"])),
                "{both_orders} {judge}"
            );
            assert_eq!(judge["measured_by"], if both_orders { "both orders" } else { "labels" });
        }
        // A judge that is always right has no bias.
        let folder = tempfile::tempdir().unwrap();
        let found = judged_of(folder.path(), 100, 85, "sim/perfect", &method);
        let bias = &found["judges"][0]["position_bias"];
        assert!(bias["mean"] == 0.0 && number(&bias["low"]) < 0.0 && number(&bias["high"]) > 0.0, "{found}");
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
    assert!(!ok && errors.contains("it compares pairs of answers"), "{errors}");
    let (ok, _, errors) = polity(folder.path(), &["agreement", "nowhere"]);
    assert!(!ok && errors.contains("nowhere"), "{errors}");
}

#[test]
fn a_model_scores_answers_and_its_work_is_not_the_methods() {
    let folder = tempfile::tempdir().unwrap();
    let task = format!("{}/../../data/gsm8k-200.jsonl", env!("CARGO_MANIFEST_DIR"));
    let evaluated = |out: &str, judge: Option<&str>| {
        let mut args: Vec<String> =
            ["eval", "--method", "debate", "--task", &task, "--model", "sim/medium", "--seed", "4", "--no-report"]
                .map(String::from)
                .to_vec();
        args.extend(["--json".into(), "--out".into(), out.into()]);
        if let Some(judge) = judge {
            args.extend(["-P".into(), "items.scorer=judge".into(), "-P".into(), format!("items.judge={judge}")]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (ok, out, errors) = polity(folder.path(), &args);
        assert!(ok, "{errors}");
        (serde_json::from_str::<Json>(&out).unwrap(), errors)
    };
    let (exact, _) = evaluated("exact", None);
    let (knows, notes) = evaluated("knows", Some("sim/perfect"));
    // Figures equal those of a comparison, and the method has the same number of calls.
    for key in ["accuracy", "low", "high", "calls", "unanswered"] {
        assert_eq!(knows[key], exact[key], "{key}");
    }
    assert!(exact.get("scoring").is_none() && notes.contains("do not count as use of the methods"), "{notes}");
    assert_eq!(knows["scoring"]["calls"], 200 - knows["unanswered"].as_u64().unwrap());
    let (guesses, _) = evaluated("guesses", Some("sim/small"));
    assert_ne!(guesses["accuracy"], exact["accuracy"], "a weak judge errs");
    assert_eq!(guesses["calls"], exact["calls"]);

    let wrong = |set: &str| {
        let args = ["eval", "--method", "single", "--task", &task, "--model", "sim/medium", "-P", set];
        let (ok, _, errors) = polity(folder.path(), &args);
        assert!(!ok);
        errors
    };
    assert!(wrong("items.scorer=judge").contains("`judge: provider/model` (the model that scores"));
    assert!(wrong("items.judge=sim/small").contains("`scorer: judge` and"));
}

/// An item whose score is awaited must not be lost, whichever round its method ends in.
#[test]
fn every_item_of_every_method_is_there_with_its_score() {
    let folder = tempfile::tempdir().unwrap();
    let task = |name: &str| format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"));
    let (ok, listed, errors) = polity(folder.path(), &["list", "methods", "--json"]);
    assert!(ok, "{errors}");
    let mut tried = 0;
    for method in serde_json::from_str::<Vec<Json>>(&listed).unwrap() {
        let name = method["name"].as_str().unwrap();
        for (file, sets) in [
            ("gsm8k-200.jsonl", &["-P", "items.scorer=judge", "-P", "items.judge=sim/perfect"][..]),
            ("humaneval-60.jsonl", &[]),
        ] {
            let (task, out) = (task(file), format!("{name}-{}", sets.len()));
            let args = ["eval", "--method", name, "--task", &task, "--model", "sim/medium", "--limit", "4", "--json"];
            let args = [&args[..], &["--no-report", "--out", &out], sets].concat();
            let (ok, found, errors) = polity(folder.path(), &args);
            if !ok {
                assert!(errors.contains("it cannot work on item 0"), "{errors}");
                continue;
            }
            tried += 1;
            let found: Json = serde_json::from_str(&found).unwrap();
            assert_eq!((&found["items"], &found["unscored"]), (&4.into(), &0.into()), "{name}: {errors}");
            // Every question is in the table of calls, including those after the method's last round.
            let (ok, rows, errors) = polity(folder.path(), &["export", &out, "--table", "calls", "--format", "jsonl"]);
            assert!(ok, "{errors}");
            let (ok, items, errors) = polity(folder.path(), &["export", &out, "--table", "items", "--format", "jsonl"]);
            assert!(ok, "{errors}");
            let asked = |line: &str| serde_json::from_str::<Json>(line).unwrap()["asks"].as_u64().unwrap();
            assert_eq!(rows.lines().count() as u64, items.lines().map(asked).sum::<u64>(), "{name}");
        }
    }
    assert!(tried >= 30, "{tried}");
}
