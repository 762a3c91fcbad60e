//! Tests of the schema of scenarios, validation of folders, manual and completions, doctor.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn polity(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polity")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns all scenarios of the repository that its program can run.
fn scenarios() -> Vec<PathBuf> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("templates") {
                below(&path, found);
            } else if path.extension().is_some_and(|end| end == "yaml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    below(&root().join("scenarios"), &mut found);
    below(&root().join("crates/polity-catalog"), &mut found);
    found
}

fn schema() -> jsonschema::Validator {
    let said = polity(&root(), &["schema"]);
    assert!(said.status.success());
    let schema: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_schema_accepts_every_scenario_there_is() {
    let schema = schema();
    let scenarios = scenarios();
    assert!(scenarios.len() > 10);
    for path in scenarios {
        let (_, tree) = polity_store::files::read_file(&path).unwrap();
        let wrong: Vec<String> =
            schema.iter_errors(&tree.to_json()).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
    }
}

#[test]
fn the_schema_refuses_what_validate_refuses() {
    let schema = schema();
    let folder = tempfile::tempdir().unwrap();
    let good = json!({
        "polity": 2, "rounds": 3, "agents": 10, "topology": {"kind": "ring", "neighbours": 2},
        "world": {"kind": "opinion", "initial": {"value": 0.5}, "jitter": 0.1},
        "cohorts": [{"policy": {"kind": "degroot"}}],
        "metrics": [{"kind": "mean", "of": "opinion", "every": 2}],
    });
    let check = |scenario: &Value| {
        fs::write(folder.path().join("it.yaml"), scenario.to_string()).unwrap();
        let said = polity(folder.path(), &["validate", "it.yaml"]);
        (schema.is_valid(scenario), said.status.success(), text(&said.stderr))
    };
    let (valid, ok, said) = check(&good);
    assert!(valid && ok, "{said}");
    let with = |key: &str, value: Value| {
        let mut scenario = good.clone();
        *scenario.pointer_mut(key).unwrap() = value;
        scenario
    };
    let mut unknown = good.clone();
    unknown["turns"] = json!(3);
    let mut missing = good.clone();
    missing.as_object_mut().unwrap().remove("rounds");
    let wrong = [
        unknown,
        missing,
        with("/polity", json!(1)),
        with("/polity", json!(3)),
        with("/rounds", json!("many")),
        with("/rounds", json!(-1)),
        with("/world", json!({"kind": "opinions"})),
        with("/world", json!({"low": 0})),
        with("/world", json!({"kind": "opinion", "lower": 0})),
        with("/world/initial", json!({"values": 1})),
        with("/cohorts/0", json!({"policy": "nobody"})),
        with("/cohorts/0", json!({"share": 1})),
        with("/topology", json!("ring")),
        with("/metrics/0", json!({"kind": "mean"})),
        with("/metrics/0/every", json!(0)),
        with("/metrics/0", json!({"kind": "quantiles", "of": "opinion", "at": 0.5})),
    ];
    for scenario in wrong {
        let (valid, ok, _) = check(&scenario);
        assert!(!ok, "validate takes {scenario}");
        assert!(!valid, "the schema takes {scenario}");
    }
    // Names alone, if nothing needs to be set.
    for bare in [with("/cohorts/0", json!({"policy": "degroot"})), with("/topology", json!("complete"))] {
        let (valid, ok, said) = check(&bare);
        assert!(valid && ok, "{said}");
    }
}

#[test]
fn folders_are_validated_with_all_below() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir_all(folder.path().join(".hidden")).unwrap();
    let good = "rounds: 1\nagents: 2\nworld: opinion\ncohorts: [{policy: noise}]\n";
    fs::write(deep.join("one.yaml"), good).unwrap();
    fs::write(folder.path().join("two.yml"), good).unwrap();
    fs::write(folder.path().join("notes.txt"), "no scenario").unwrap();
    fs::write(folder.path().join(".hidden/three.yaml"), "no scenario").unwrap();
    let said = polity(folder.path(), &["validate", ".", "--json"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stderr).contains("./a/b/one.yaml: ok"), "{}", text(&said.stderr));
    assert!(text(&said.stderr).ends_with("2 files: 2 ok, 0 wrong\n"));
    assert_eq!(text(&said.stdout), "{\"status\":\"ok\",\"files\":2,\"wrong\":0}\n");
    fs::write(deep.join("wrong.yaml"), "rounds: 1\nturns: 2\n").unwrap();
    let said = polity(folder.path(), &["validate", "."]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).ends_with("3 files: 2 ok, 1 wrong\n"), "{}", text(&said.stderr));
    fs::create_dir(folder.path().join("empty")).unwrap();
    let said = polity(folder.path(), &["validate", "empty"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(text(&said.stderr).contains("no file *.yaml"), "{}", text(&said.stderr));
}

#[test]
fn a_newer_format_is_refused_before_its_unknown_keys() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("it.yaml"), "never-heard-of: 1\npolity: 7\n").unwrap();
    for verb in ["validate", "run", "migrate"] {
        let said = polity(folder.path(), &[verb, "it.yaml"]);
        assert_eq!(said.status.code(), Some(2));
        let said = text(&said.stderr);
        assert!(
            said.contains("format 7, but this build reads formats up to 2") && said.contains("use a newer polity"),
            "{said}"
        );
    }
    assert_eq!(fs::read_to_string(folder.path().join("it.yaml")).unwrap(), "never-heard-of: 1\npolity: 7\n");
}

#[test]
fn doctor_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let said = polity(folder.path(), &["doctor", "--json"]);
    let object: Value = serde_json::from_slice(&said.stdout).unwrap();
    let checks: Vec<&str> =
        object["checks"].as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
    assert!(checks.starts_with(&["version", "cores", "memory", "disk", "folder", "sandbox"]), "{checks:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    // A run creates its folder.
    assert_eq!(polity(folder.path(), &["doctor", "missing/too"]).status.code(), Some(0));
    fs::write(folder.path().join("file"), "").unwrap();
    let said = polity(folder.path(), &["doctor", "file"]);
    assert_eq!(said.status.code(), Some(4));
    assert!(text(&said.stdout).contains("fail  folder       file cannot be written"), "{}", text(&said.stdout));
}

#[test]
fn manual_and_completions_name_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    assert!(polity(folder.path(), &["man", "man1"]).status.success());
    let pages: Vec<String> = fs::read_dir(folder.path().join("man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let page = text(&polity(folder.path(), &["man"]).stdout);
    for verb in [
        "run",
        "eval",
        "compare",
        "resume",
        "replay",
        "fork",
        "validate",
        "new",
        "migrate",
        "mock-server",
        "schema",
        "doctor",
        "completions",
    ] {
        assert!(pages.contains(&format!("polity-{verb}.1")), "{pages:?}");
        let escaped = verb.replace('-', "\\-");
        assert!(page.contains(&format!("polity\\-{escaped}(1)")), "the page of the program names {verb}");
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let said = polity(folder.path(), &["completions", shell]);
            assert!(said.status.success() && text(&said.stdout).contains(verb), "{shell} completes {verb}");
            assert!(!text(&said.stdout).contains("reference"), "{shell} offers a verb that is not for people");
        }
    }
    assert!(!page.contains("reference"), "the verb for the book is hidden");
}

/// Returns standard error as objects, one per line.
fn log(said: &Output) -> Vec<Value> {
    let lines = text(&said.stderr);
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let objects: Vec<Value> = lines.lines().map(read).collect();
    for object in &objects {
        let time = object["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{object}");
        assert!(["info", "warn", "error"].contains(&object["level"].as_str().unwrap()), "{object}");
        assert!(!object["message"].as_str().unwrap().is_empty(), "{object}");
    }
    objects
}

#[test]
fn standard_error_is_one_object_a_line_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = root().canonicalize().unwrap().join("scenarios/guess-average.yaml");
    let scenario = scenario.to_str().unwrap();
    let run = ["run", scenario, "--agents", "50", "--rounds", "3", "--json", "--log-format", "json"];
    let said = polity(folder.path(), &[&run[..], &["--out", "json"]].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let told = log(&said);
    let progress = told.iter().find(|line| line["planned"] == 3).unwrap();
    assert_eq!((&progress["rounds"], &progress["agents"]), (&json!(1), &json!(50)), "{progress}");
    // Once the run has a folder, every line names it. The last values are fields, not a table.
    let named = told.iter().skip_while(|line| line["run"].is_null());
    assert!(named.clone().count() > 5 && named.clone().all(|line| line["run"] == "json"), "{told:?}");
    assert!(told.iter().all(|line| !line["message"].as_str().unwrap().contains('\n')), "{told:?}");
    let metrics = told.iter().find_map(|line| line["metrics"].as_object()).unwrap();
    assert!(!metrics.is_empty() && metrics.values().all(|of| of["first"].is_number() && of["last"].is_number()));
    let of = |said: &Output| -> Value { serde_json::from_str(text(&said.stdout).lines().last().unwrap()).unwrap() };
    // The same in words, with the same result.
    let plain = polity(folder.path(), &["run", scenario, "--agents", "50", "--rounds", "3", "--json", "--out", "text"]);
    assert!(text(&plain.stderr).lines().all(|line| serde_json::from_str::<Value>(line).is_err()));
    assert_eq!(of(&plain)["digest"], of(&said)["digest"]);
    // Errors in a scenario, a flag, a folder. The last line says how the process ends.
    for (args, code) in [
        (vec!["run", scenario, "-P", "agents=none", "--log-format=json"], 2),
        (vec!["run", scenario, "--ronds", "3", "--log-format=json"], 2),
        (vec!["--log-format", "json", "resume", "nowhere"], 3),
    ] {
        let said = polity(folder.path(), &args);
        let told = log(&said);
        let last = told.last().unwrap();
        assert_eq!((&last["level"], &last["exit_code"]), (&json!("error"), &json!(code)), "{last}");
        assert_eq!(said.status.code(), Some(code));
    }
    let by_environment = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["validate", "none.yaml"])
        .current_dir(folder.path())
        .env("POLITY_LOG_FORMAT", "json")
        .output()
        .unwrap();
    assert!(log(&by_environment).iter().any(|line| line["level"] == "error"));
}

/// Returns whether a text has terminal control sequences or changes the direction of text.
fn steers(shown: &str) -> bool {
    shown.chars().any(|c| c.is_control() && !"\n\t".contains(c) || "\u{202e}\u{2066}\u{200f}".contains(c))
}

#[test]
fn nothing_that_is_named_steers_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |name: &str| {
        format!(
            "name: \"{name}\"\nrounds: 1\nagents: 2\nmodel: sim/medium\npopulation: {{file: people.csv, persona: '{{who}}'}}\n\
             world: {{kind: guess-average}}\ncohorts: [{{name: all, policy: {{kind: mind}}}}]\n"
        )
    };
    fs::write(folder.path().join("people.csv"), "who\nanna\u{202e}exe\u{1b}[2J\nben\n").unwrap();
    fs::write(folder.path().join("a.yaml"), scenario("a\\e[2J\u{202e}b")).unwrap();
    fs::write(folder.path().join("b.yaml"), scenario("a\u{202e}b").replace("guess-average", "gues\u{202e}s")).unwrap();
    let prompts = polity(folder.path(), &["prompts", "a.yaml", "--agent", "0"]);
    let shown = text(&prompts.stdout);
    assert!(shown.contains("anna\\u{202e}exe\\u{1b}[2J") && !steers(&shown), "{shown:?}");
    for args in [
        &["validate", "a.yaml", "b.yaml"][..],
        &["validate", "\u{1b}[2J\u{202e}.yaml"],
        &["run", "a.yaml", "-P", "na\u{1b}[2Jme=1"],
        &["run", "a.yaml", "--\u{1b}[2J"],
        &["run", "a.yaml", "--rounds", "\u{1b}]0;x\u{7}"],
        &["run", "a.yaml", "-P", "name=\u{1b}[2J\u{202e}"],
        &["run", "a.yaml", "-P", "name=\u{202e}x", "--out", "named", "--json"],
        &["run", "a.yaml", "--out", "out", "--json"],
        &["calls", "out"],
        &["answer", "out"],
        &["export", "\u{202e}"],
        &["compare", "out", "out"],
    ] {
        let said = polity(folder.path(), args);
        for shown in [text(&said.stdout), text(&said.stderr)] {
            assert!(!steers(&shown), "{args:?}: {shown:?}");
        }
    }
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(!steers(&page) && page.contains("\\u{202e}"));
}

#[test]
fn a_scenario_reads_what_lies_below_its_own_folder() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("downloaded");
    fs::create_dir(&folder).unwrap();
    fs::write(home.path().join("secret.csv"), "who\nthe secret\nof mine\n").unwrap();
    symlink("../secret.csv", folder.join("people.csv")).unwrap();
    let scenario = |population: &str, prompts: &str, design: &str| {
        let text = format!(
            "rounds: 1\nagents: 2\nmodel: sim/medium\npopulation:\n  file: {population}\nworld: {{kind: guess-average}}\n\
             cohorts: [{{name: all, policy: {{kind: mind, {prompts}}}}}]\n{design}"
        );
        fs::write(folder.join("a.yaml"), text).unwrap();
    };
    // Independent of the current folder, which grants no access.
    let said = |args: &[&str]| {
        let said = polity(home.path(), args);
        (said.status.code(), text(&said.stderr) + &text(&said.stdout))
    };
    let file = "downloaded/a.yaml";
    let allow = ["--allow-read", "."];
    for population in ["../secret.csv", "people.csv", home.path().join("secret.csv").to_str().unwrap()] {
        scenario(population, "think: no", "");
        let real = home.path().canonicalize().unwrap().join("secret.csv").display().to_string();
        for verb in [
            &["run", file, "--out", "run"][..],
            &["validate", file],
            &["prompts", file],
            &["estimate", file, "--no-ask"],
        ] {
            let (code, told) = said(verb);
            assert_eq!(code, Some(2), "{verb:?}: {told}");
            let place = "downloaded/a.yaml:5:9";
            // A long path is broken into lines.
            let in_a_line = told.replace(['\n', ' ', '│'], "");
            for word in [place, "population.file", real.as_str(), "--allow-read"] {
                assert!(in_a_line.contains(word), "{verb:?}: no `{word}` in {told}");
            }
            assert!(!told.contains("the secret"), "{told}");
            let (code, told) = said(&[verb, &allow].concat());
            assert_eq!(code, Some(0), "{verb:?}: {told}");
            let _ = fs::remove_dir_all(home.path().join("run"));
        }
    }
    // Files named by the user are always allowed.
    scenario("none.csv", "think: no", "");
    let (code, told) =
        said(&["prompts", file, "-P", "population.file=../secret.csv", "-P", "population.persona=I am {who}"]);
    assert!(code == Some(0) && told.contains("the secret"), "{told}");
    // The same rules apply to prompts and the arms of a design.
    fs::write(folder.join("own.csv"), "who\nanna\nben\n").unwrap();
    scenario("own.csv", "prompts: {question: {file: ../secret.csv}}", "");
    assert_eq!(said(&["validate", file]).0, Some(2));
    let design = "design: {arms: {one: {}, two: {population.file: ../secret.csv}}, seeds: 1}\n";
    scenario("own.csv", "think: no", design);
    for verb in [&["validate", file][..], &["sweep", file, "--out", "sweep"]] {
        let (code, told) = said(verb);
        assert!(code == Some(2) && told.contains("--allow-read"), "{verb:?}: {told}");
        assert_eq!(said(&[verb, &allow].concat()).0, Some(0), "{verb:?}");
    }
    // A marker in a parent folder makes a project.
    fs::write(home.path().join(".polity-root"), "").unwrap();
    assert_eq!(said(&["validate", file]).0, Some(0));
}
