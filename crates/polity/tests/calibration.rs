//! Simulated models as data: parameters fitted to recorded answers, written to a file, and run.

use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::process::Command;

fn polity(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_polity")).current_dir(folder).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.success(), text(&out.stdout), text(&out.stderr))
}

/// Writes items of nine difficulties, and a scenario of four members.
fn sums(folder: &Path, items: u32, scenario: &Json) {
    let item = |i: u32| {
        json!({"question": format!("What is {i} + 1?"), "answer": (i + 1).to_string(), "difficulty": f64::from(i % 9) / 2.0 - 2.0})
            .to_string()
    };
    fs::write(folder.join("sums.jsonl"), (0..items).map(item).collect::<Vec<_>>().join("\n")).unwrap();
    let mut whole = json!({
        "seed": 5, "rounds": 1, "agents": 4, "model": "sim/medium", "method": {"kind": "self-consistency"},
        "items": {"file": "sums.jsonl", "answer": "answer", "difficulty": "difficulty"},
    });
    whole.as_object_mut().unwrap().extend(scenario.as_object().unwrap().clone());
    fs::write(folder.join("sums.yaml"), whole.to_string()).unwrap();
}

fn ran(folder: &Path, args: &[&str]) -> String {
    let (ok, out, errors) = polity(folder, args);
    assert!(ok, "{args:?}: {errors}");
    out
}

fn calibrated(folder: &Path, args: &[&str]) -> Json {
    let out = ran(folder, &[&["calibrate"], args, &["--json"]].concat());
    serde_json::from_str(&out).unwrap()
}

/// A value lies within eight standard errors: answers to one item are not independent, so the errors are too small.
fn close(value: &Json, declared: f64) {
    let (x, error) = (value[0].as_f64().unwrap(), value[1].as_f64().unwrap());
    assert!((x - declared).abs() < 8.0 * error, "{x} ± {error}, declared {declared}");
}

/// The declared parameters of a built-in model.
fn built_in(name: &str) -> Json {
    serde_json::from_str::<Json>(polity_models::models::sim::MODELS).unwrap()[name].take()
}

fn near(value: &Json, declared: f64, within: f64) {
    assert!((value.as_f64().unwrap() - declared).abs() < within, "{value}, declared {declared}");
}

#[test]
fn calibration_finds_the_declared_parameters() {
    let folder = tempfile::tempdir().unwrap();
    sums(folder.path(), 2_000, &json!({}));
    ran(folder.path(), &["run", "sums.yaml", "--out", "run"]);
    let found = calibrated(folder.path(), &["run"]);
    let fit = &found["models"][0]["alone"];
    let declared = built_in("medium");
    for key in ["skill", "difficulty_response"] {
        close(&fit[key], declared[key].as_f64().unwrap());
    }
    for key in ["correlation", "lure"] {
        near(&fit[key], declared[key].as_f64().unwrap(), 0.05);
    }
    for figure in found["misfit"].as_array().unwrap() {
        let [observed, error, implied] = ["observed", "error", "implied"].map(|key| figure[key].as_f64().unwrap());
        assert!((observed - implied).abs() < 6.0 * error, "{figure}");
    }
}

#[test]
fn calibration_finds_how_others_influence_models() {
    let folder = tempfile::tempdir().unwrap();
    let debate = json!({"rounds": 3, "method": {"kind": "debate"}, "model": "sim/medium?conformity=0.6"});
    sums(folder.path(), 2_000, &debate);
    ran(folder.path(), &["run", "sums.yaml", "--out", "run"]);
    let found = calibrated(folder.path(), &["run"]);
    let influence = &found["models"][0]["influence"];
    let declared = built_in("medium");
    near(&influence["persuadability"], declared["persuadability"].as_f64().unwrap(), 0.05);
    near(&influence["discernment"], declared["discernment"].as_f64().unwrap(), 0.12);
    near(&influence["conformity"], 0.6, 0.12);
    assert_eq!(influence["unheard"], 0.0, "{influence}");
}

/// The judges' verdicts on real pairs in both orders, counted from the table.
#[test]
fn recorded_judges_have_distance_and_bias() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/recorded/llmbar");
    for name in ["answers.tsv", "fit.jsonl"] {
        fs::copy(data.join(name), folder.path().join(name)).unwrap();
    }
    let judges = ["recorded/GPT-4/Vanilla_NoRules", "recorded/LLaMA2/Vanilla_NoRules"];
    let scenario = json!({
        "rounds": 1, "team": judges.map(|model| json!({"model": model})),
        "method": {"kind": "judge", "way": "jury", "both_orders": true},
        "items": {"file": "fit.jsonl", "shape": "preference", "recorded": "answers.tsv"},
    });
    fs::write(folder.path().join("pairs.yaml"), scenario.to_string()).unwrap();
    ran(folder.path(), &["run", "pairs.yaml", "--out", "run"]);
    let found = calibrated(folder.path(), &["run", "--out", "judges.json"]);
    let table = fs::read_to_string(data.join("answers.tsv")).unwrap();
    let items = fs::read_to_string(data.join("fit.jsonl")).unwrap();
    for (model, fitted) in judges.iter().zip(found["models"].as_array().unwrap()) {
        let name = model.strip_prefix("recorded/").unwrap();
        let verdicts = |id: &str| {
            let rows = table.lines().map(|row| row.split('\t').collect::<Vec<_>>());
            rows.filter(|row| row[0] == id && row[1] == name && !row[3].is_empty()).count()
        };
        let ids =
            items.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["id"].as_str().unwrap().to_owned());
        let recorded: usize = ids.map(|id| verdicts(&id)).filter(|n| *n == 2).sum();
        assert_eq!(fitted["judging"]["choices"], recorded, "{model}");
        assert!(recorded > 300, "{recorded}");
    }
    // GPT-4 tells them apart, LLaMA2 hardly; LLaMA2 leans to the answer shown first.
    let of = |n: usize, key: &str| found["models"][n]["judging"][key][0].as_f64().unwrap();
    assert!(of(0, "sensitivity") > 0.8 && of(1, "sensitivity") < 0.5 && of(1, "first_bias") > 0.1, "{found}");
    let written: Json = serde_json::from_str(&fs::read_to_string(folder.path().join("judges.json")).unwrap()).unwrap();
    near(&written["GPT-4-Vanilla_NoRules"]["critic"]["sensitivity"], of(0, "sensitivity"), 1e-3);
}

#[test]
fn what_calibrate_writes_runs_resumes_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let skilled = "sim/medium?skill=1.5&correlation=0.7&lure=0.6";
    sums(path, 1_000, &json!({"model": skilled}));
    ran(path, &["run", "sums.yaml", "--out", "run"]);
    let first = calibrated(path, &["run", "--out", "fitted.json"]);
    assert_eq!(first["models"][0]["written_as"], "medium-skill=1.5&correlation=0.7&lure=0.6");
    let name = format!("sim/{}", first["models"][0]["written_as"].as_str().unwrap());
    let as_fitted = ["-P", "simulated=fitted.json", "-P", &format!("model={name}")].map(String::from);
    let with: Vec<&str> = as_fitted.iter().map(String::as_str).collect();
    let run = |args: &[&str]| -> Json {
        serde_json::from_str(&ran(path, &[args, &["--no-report", "--json"]].concat())).unwrap()
    };
    let whole = run(&[&["run", "sums.yaml", "--out", "twin"], &with[..]].concat());
    assert_eq!(whole["simulated"], true);
    // The twin has the parameters that were fitted.
    let again = calibrated(path, &["twin"]);
    let (first, again) = (&first["models"][0]["alone"], &again["models"][0]["alone"]);
    close(&again["skill"], first["skill"][0].as_f64().unwrap());
    near(&again["correlation"], first["correlation"].as_f64().unwrap(), 0.08);
    near(&again["lure"], first["lure"].as_f64().unwrap(), 0.1);
    // Stopped by a limit, continued without the file, and replayed: the run has its own copy.
    let stopped = [&["run", "sums.yaml", "--out", "stopped", "--max-calls", "500"], &with[..]].concat();
    let (_, out, errors) = polity(path, &[&stopped[..], &["--no-report", "--json"]].concat());
    assert!(out.contains("budget") || errors.contains("budget"), "{out} {errors}");
    fs::remove_file(path.join("fitted.json")).unwrap();
    let resumed = run(&["resume", "stopped", "--max-calls", "100000"]);
    assert_eq!(resumed["digest"], whole["digest"]);
    assert_eq!(run(&["replay", "stopped"])["digest"], whole["digest"]);
}

#[test]
fn wrong_files_of_simulated_models_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    sums(path, 20, &json!({"simulated": "models.json", "model": "sim/own"}));
    let models: Json = serde_json::from_str(polity_models::models::sim::MODELS).unwrap();
    let refused = |file: &str, word: &str| {
        fs::write(path.join("models.json"), file).unwrap();
        let (ok, _, errors) = polity(path, &["run", "sums.yaml", "--out", "run"]);
        assert!(!ok && errors.contains(word) && !path.join("run").exists(), "{word}: {errors}");
    };
    let with = |key: &str, value: Json| {
        let mut model = models["medium"].clone();
        model[key] = value;
        json!({"own": model}).to_string()
    };
    refused("{", "models.json");
    refused(&json!({"medium": models["medium"]}).to_string(), "built-in model `sim/medium`");
    refused(&json!({"a/b": models["medium"]}).to_string(), "`a/b`");
    refused(&json!({"other": models["medium"]}).to_string(), "there is no model `sim/own`");
    refused(&with("correlation", json!(1.5)), "correlation must lie");
    refused(&with("skil", json!(1.5)), "skil");
    // A right one runs, and an existing file is kept.
    fs::write(path.join("models.json"), with("skill", json!(2.0))).unwrap();
    ran(path, &["run", "sums.yaml", "--out", "run"]);
    let (ok, _, errors) = polity(path, &["calibrate", "run", "--out", "models.json"]);
    assert!(!ok && errors.contains("already exists"), "{errors}");
    let (ok, _, errors) = polity(path, &["calibrate", "run", "--like", "sim/larg"]);
    assert!(!ok && errors.contains("did you mean `sim/large`"), "{errors}");
    let (ok, _, errors) = polity(path, &["calibrate", "nowhere"]);
    assert!(!ok && errors.contains("nowhere"), "{errors}");
    ran(path, &["validate", "sums.yaml"]);
}

/// The models of `data/simulated` and the figures in its README are what the command makes of the recorded answers.
#[test]
fn shipped_models_are_the_fitted_ones() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/simulated");
    let folder = tempfile::tempdir().unwrap();
    let bless = std::env::var_os("POLITY_BLESS").is_some();
    let mut figures = String::new();
    for name in ["mmlu-pro", "gsm8k", "dylan-math", "llmbar"] {
        let run = |part: &str| {
            let out = folder.path().join(format!("{name}-{part}")).display().to_string();
            let table = if name == "gsm8k" { "routellm-gsm8k" } else { name };
            let items = format!("items.file=../recorded/{table}/{part}.jsonl");
            ran(&home, &["run", &format!("{name}.yaml"), "--out", &out, "-P", &items, "--no-report"]);
            out
        };
        let (fit, held_out) = (run("fit"), run("held-out"));
        let fitted = folder.path().join(format!("{name}.json"));
        let (made, shipped) = (fitted.display().to_string(), home.join(format!("{name}.json")));
        let listed = ran(&home, &["calibrate", &fit, "--out", &made]);
        let listed = listed.split("\nWritten to").next().unwrap();
        let (how, again) = match name {
            "mmlu-pro" | "gsm8k" => {
                ("with the same parameters", ran(&home, &["calibrate", &held_out, "--against", &made]))
            }
            _ => ("fitted again", ran(&home, &["calibrate", &held_out])),
        };
        let shown = |text: &str| text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        figures.push_str(&format!(
            "### {name}\n\n`fit.jsonl`:\n\n```text\n{}\n```\n\n`held-out.jsonl`, {}:\n\n```text\n{}\n```\n\n",
            shown(listed),
            how,
            shown(&again)
        ));
        let made = fs::read_to_string(&made).unwrap();
        if bless {
            fs::write(&shipped, &made).unwrap();
        }
        assert_eq!(fs::read_to_string(&shipped).unwrap(), made, "{name}: write it anew with POLITY_BLESS=1");
    }
    let path = home.join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (begin, end) =
        ("<!-- fitted: POLITY_BLESS=1 cargo test -p polity --test all calibration:: -->\n", "<!-- end -->");
    let (head, rest) = readme.split_once(begin).unwrap();
    let made = format!("{head}{begin}\n{figures}{end}{}", rest.split_once(end).unwrap().1);
    if bless {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == made,
        "the figures are out of date: write them anew with POLITY_BLESS=1"
    );
}

/// Each parameter of the built-in models that recorded answers can tell is the fitted one, in two decimals.
#[test]
fn built_in_models_are_the_fitted_ones() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/simulated");
    let fitted = |file: &str, model: &str| -> Json {
        let text = fs::read_to_string(home.join(file)).unwrap();
        serde_json::from_str::<Json>(&text).unwrap()[model].take()
    };
    let sources = [
        ("small", "175b-verification", "ChatGPT-Vanilla_NoRules"),
        ("medium", "Mixtral-8x7B-Instruct-v0.1", "PaLM2-Vanilla_NoRules"),
        ("large", "gpt-4-1106-preview", "GPT-4-Vanilla_NoRules"),
        ("weak", "175b-finetuning", "Falcon-Vanilla_NoRules"),
    ];
    for (name, solver, judge) in sources {
        let (model, alone) = (built_in(name), fitted("gsm8k.json", solver));
        let (team, critic) = (fitted("dylan-math.json", "gpt-3.5-turbo-0301"), fitted("llmbar.json", judge));
        let same = |model: &Json, key: &str, source: &Json| {
            // A response below zero is an error of estimation: no model is better on harder items.
            let value = if key == "difficulty_response" {
                source[key].as_f64().unwrap().max(0.0)
            } else {
                source[key].as_f64().unwrap()
            };
            let declared = model[key].as_f64().unwrap();
            assert!((declared - value).abs() < 0.0051, "{name}, {key}: {declared}, fitted {value}");
        };
        for key in ["skill", "difficulty_response"] {
            same(&model, key, &alone);
        }
        for key in ["correlation", "lure", "persuadability", "discernment", "conformity"] {
            same(&model, key, &team);
        }
        for key in ["sensitivity", "first_bias"] {
            same(&model["critic"], key, &critic["critic"]);
        }
    }
    // The others are like `medium`, apart from what their names say.
    let apart: [(&str, &[&str]); 6] = [
        ("stubborn", &["conformity", "persuadability", "critic"]),
        ("conformist", &["conformity", "persuadability", "critic"]),
        ("faulty", &["failures"]),
        ("mathematician", &["topics"]),
        ("programmer", &["topics"]),
        ("scholar", &["topics"]),
    ];
    for (name, apart) in apart {
        let (model, medium) = (built_in(name), built_in("medium"));
        for (key, value) in medium.as_object().unwrap() {
            assert!(apart.contains(&key.as_str()) || model[key] == *value, "{name}, {key}");
        }
    }
}
