//! Tests of `polity systems`: reading errors with their places, findings, checks repeated, killed and resumed, broken mechanisms, the
//! table in the book.
//!
//! `POLITY_SYSTEMS=all cargo test -p polity --test all systems::` breaks the mechanisms of all systems with all their items.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("systems-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[derive(Debug)]
struct Said {
    code: Option<i32>,
    json: Value,
    notes: String,
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.arg("systems").args(args).current_dir(folder).env_remove("POLITY_OUT").env_remove("POLITY_SYSTEMS");
    command
}

fn systems(folder: &Path, args: &[&str]) -> Said {
    let output = command(folder, args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Said {
        code: output.status.code(),
        json: serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default(),
        notes: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What `polity systems show --all` prints, by name.
fn shown() -> BTreeMap<String, Value> {
    let output = command(&root(), &["show", "--all", "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let of = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let shown = text.lines().map(of).map(|it| (it["system"].as_str().unwrap().to_owned(), it));
    shown.collect()
}

/// Returns the findings of a check, without its folder.
fn check(folder: &Path, args: &[&str], out: &Path) -> Said {
    let args: Vec<&str> =
        ["check"].iter().chain(args).copied().chain(["--json", "--out", out.to_str().unwrap()]).collect();
    let mut said = systems(folder, &args);
    if let Some(object) = said.json.as_object_mut() {
        object.remove("out");
    }
    said
}

fn claim<'a>(said: &'a Said, name: &str) -> &'a Value {
    said.json["claims"]
        .as_array()
        .unwrap()
        .iter()
        .find(|claim| claim["claim"] == name)
        .unwrap_or_else(|| panic!("{said:?}"))
}

const SYSTEM: &str = "\
name: Voting
title: Votes
paper: nowhere
authors: Nobody
year: 2026
ids: [7]
leaves: [methods/self-consistency]
seeds: 6
items: 40
simulated: true
arms:
  many: {scenario: scenario.yaml}
  one: {scenario: scenario.yaml, set: {agents: 1}}
claims:
  - name: more-calls
    text: Many samples cost as many calls.
    source: here
    decided_by: checker
    metric: calls
    of: many
    against: one
    scale: ratio
    is: within
    than: 5
    tolerance: 0.1
    breaks:
      few: {arm: many, set: {agents: 3}}
  - name: ahead
    text: Many samples are more accurate than one.
    source: here
    decided_by: simulated
    metric: accuracy
    of: many
    against: one
    is: more
    breaks:
      by-lot: {arm: many, set: {method.by_lot: true}}
clauses:
  - {text: It votes., from: works-when, claims: [more-calls, ahead]}
";

const SCENARIO: &str = "\
polity: 2
rounds: 1
agents: 5
model: sim/medium
method: {kind: self-consistency}
items: {file: items.jsonl, answer: answer, difficulty: difficulty, count: 8}
";

/// Creates a folder with a small system of its own, `systems/voting`, whose file is changed.
fn own(name: &str, change: impl Fn(String) -> String) -> PathBuf {
    let folder = scratch(name);
    let voting = folder.join("systems/voting");
    fs::create_dir_all(&voting).unwrap();
    let header = "id\tname\tgroup\trole\tworks_when\n";
    fs::write(
        folder.join("systems/index.tsv"),
        format!("{header}7\tVotes\tmethod\tbuild\tIt votes.\n9\tLater\tmethod\tbuild\tNever.\n"),
    )
    .unwrap();
    fs::copy(root().join("data/gsm8k-200.jsonl"), voting.join("items.jsonl")).unwrap();
    fs::write(voting.join("scenario.yaml"), SCENARIO).unwrap();
    fs::write(voting.join("system.yaml"), change(SYSTEM.into())).unwrap();
    folder
}

/// A system of two games that score a model.
const SUITE: &str = "\
name: Guess
title: Guess
paper: none
authors: nobody
year: 2026
ids: [7]
leaves: [worlds/guess-average, policies/mind]
simulated: true
suite:
  - {name: two-thirds, scenario: game.yaml, score: guess.mean}
  - {name: half, scenario: game.yaml, set: {world.fraction: 0.5}, score: guess.mean}
clauses:
  - {text: It is played., from: works-when, missing: Nothing is claimed.}
";

const GAME: &str = "\
polity: 2
seed: 3
rounds: 2
agents: 4
world: {kind: guess-average}
cohorts:
  - {name: people, policy: {kind: mind, model: sim/medium}}
metrics:
  - {kind: mean, of: guess}
";

#[test]
fn a_suite_is_played_under_one_budget_and_goes_on() {
    let folder = own("suite", |_| SUITE.into());
    fs::write(folder.join("systems/voting/game.yaml"), GAME).unwrap();
    let eval = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
        command.args(["eval", "--suite", "voting", "--json"]).args(more).current_dir(&folder);
        let output = command.env_remove("POLITY_OUT").env_remove("POLITY_SYSTEMS").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
        (output.status.code(), json, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (model, twice) = (["--model", "sim/large"], ["--repeats", "2"]);
    let whole = eval(&[&model[..], &twice, &["--out", "whole"]].concat());
    assert_eq!(whole.0, Some(0), "{}", whole.2);
    // Four players, two rounds, two games, two seeds.
    let calls =
        |json: &Value| json["games"].as_array().unwrap().iter().map(|g| g["calls"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(calls(&whole.1), 32);
    // 20 calls are enough for two runs and a part of the third. It goes on with 60, of which the part is lost.
    let part = eval(&[&model[..], &twice, &["--out", "part", "--max-calls", "20"]].concat());
    assert_eq!(part.0, Some(7), "{}", part.2);
    let rest = eval(&[&model[..], &twice, &["--out", "part", "--max-calls", "60"]].concat());
    assert_eq!(rest.0, Some(0), "{}", rest.2);
    for at in 0..2 {
        assert_eq!(rest.1["games"][at]["scores"], whole.1["games"][at]["scores"]);
    }
    assert!(folder.join("part/half-3-denied-1").is_dir());
    let denied = eval(&[&model[..], &twice, &["--out", "part", "--max-calls", "35"]].concat());
    assert_eq!(denied.0, Some(0), "what has been played is only read: {}", denied.2);
    for (args, word) in [
        (vec!["--out", "none"], "no model is given"),
        (vec!["--model", "large"], "provider/model"),
        (vec!["--model", "sim/medium", "--method", "sc"], "cannot be used with"),
        (vec!["--model", "sim/medium", "--out", "whole", "--repeats", "2"], "holds another game"),
    ] {
        let refused = eval(&args);
        assert!(refused.0 != Some(0) && refused.2.contains(word), "{args:?}: {}", refused.2);
    }
    fs::write(folder.join("systems/voting/system.yaml"), SUITE.replacen("score: guess.mean", "score: guess.men", 1))
        .unwrap();
    let wrong = eval(&["--model", "sim/large", "--out", "wrong"]);
    assert!(wrong.2.contains("did you mean `guess.mean`"), "{}", wrong.2);
}

// ------------------------------------------------------------------ what there is

#[test]
fn every_row_of_the_index_is_listed_and_only_what_is_there_has_claims() {
    let said = systems(&root(), &["list", "--json"]);
    let rows = said.json.as_array().unwrap();
    assert_eq!(rows.len(), 376);
    let mut found = BTreeSet::new();
    for row in rows {
        let (planned, claims) = (row["system"].is_null(), row["claims"].as_u64().unwrap());
        assert!(!planned || row["status"] == "planned", "{row}");
        assert!(if planned { claims == 0 } else { claims >= 2 }, "{row}");
        if planned {
            continue;
        }
        found.insert(row["id"].as_u64().unwrap());
        // The status follows from the clauses.
        let clauses = &row["clauses"];
        let [shown, not, missing] = ["shown", "not_reproduced", "missing"].map(|key| clauses[key].as_u64().unwrap());
        let status = match (shown, not, missing) {
            (0, 0, _) => "planned",
            (_, 0, 0) => "works",
            _ => "partly",
        };
        assert!(shown + not + missing > 0 && row["status"] == status, "{row}");
    }
    let wanted = [0, 1, 5, 17, 24, 31, 38, 50, 67, 73, 86, 100, 101, 107, 153, 161, 244, 261, 296];
    assert!(wanted.iter().all(|id| found.contains(id)), "{found:?}");
    // A folder without a system is no system.
    let folders =
        fs::read_dir(root().join("systems")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    for folder in folders {
        for file in ["system.yaml", "README.md"] {
            assert!(folder.join(file).is_file(), "{} has no {file}", folder.display());
        }
    }
}

/// All arms and breaks can be run. No break makes both arms of its claim the same run, and none changes nothing: that is refused.
#[test]
fn all_arms_can_be_run_and_no_break_makes_them_the_same() {
    let folder = scratch("dry");
    let said = check(&root(), &["--all", "--breaks", "--dry-run"], &folder.join("out"));
    assert_eq!((said.code, said.json["status"].as_str()), (Some(0), Some("not run")), "{said:?}");
    assert!(said.json["runs"].as_u64() > Some(500) && !folder.join("out").exists(), "{said:?}");
}

#[test]
fn entries_are_left_out_by_what_they_need_or_use() {
    let folder = own("without", |text| text);
    let runs = |without: &str| {
        let said = check(&folder, &["--all", "--dry-run", "--without", without], &folder.join("out"));
        assert_eq!(said.code, Some(0), "{said:?}");
        said.json["runs"].as_u64().unwrap()
    };
    assert!(runs("tool/python") > 0 && runs("methods/debate") > 0);
    assert_eq!((runs("methods/self-consistency"), runs("voting"), runs("7")), (0, 0, 0));
    let said = check(&folder, &["--all", "--dry-run", "--without", "votin"], &folder.join("out"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.notes.contains("did you mean `voting`"), "{said:?}");
}

/// No arm works on an item of its file twice in a run.
#[test]
fn items_of_an_arm_are_distinct() {
    let read = |path: &Path| polity_store::files::read_file(path).unwrap().1.to_json();
    let mut files = 0;
    for folder in fs::read_dir(root().join("systems")).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(system) = Some(folder.join("system.yaml")).filter(|path| path.exists()).map(|path| read(&path)) else {
            continue;
        };
        for (name, arm) in system["arms"].as_object().into_iter().flatten() {
            let scenario = read(&folder.join(arm["scenario"].as_str().unwrap()));
            let set = |key: &str| arm["set"].get(format!("items.{key}")).or(scenario["items"].get(key));
            let Some(file) = set("file").and_then(Value::as_str) else { continue };
            let text = fs::read_to_string(folder.join(file)).unwrap();
            let count = arm["set"].get("items.count").or(system.get("items")).or(scenario["items"].get("count"));
            let held = text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
            let wanted = count.and_then(Value::as_u64).unwrap_or(0);
            assert!(wanted <= held, "{}, arm `{name}`: {wanted} items of {held}", folder.display());
            files += 1;
        }
    }
    assert!(files > 100, "{files}");
}

#[test]
fn unknown_names_are_told_the_nearest() {
    let said = systems(&root(), &["check", "dylam", "--json"]);
    assert_eq!(said.code, Some(2));
    assert!(said.notes.contains("no system `dylam`, did you mean `dylan`?"), "{said:?}");
    let folder = own("names", |text| text);
    let said = systems(&folder, &["check", "9"]);
    assert!(
        said.code == Some(2) && said.notes.contains("`9` is only planned: this build does not implement Later"),
        "{said:?}"
    );
    let said = systems(&folder, &["show", "7", "--json"]);
    assert_eq!((said.code, said.json["system"].as_str()), (Some(0), Some("voting")), "{said:?}");
    let said = systems(&folder, &["show", "Later", "--json"]);
    assert_eq!((said.code, said.json["status"].as_str()), (Some(0), Some("planned")), "{said:?}");
    let printed = |args: &[&str]| command(&folder, args).output().unwrap().stdout;
    let lines = |args: &[&str]| String::from_utf8(printed(args)).unwrap().lines().count();
    assert_eq!(lines(&["show", "Later", "voting", "--json"]), 2);
    assert_eq!(lines(&["show", "--all", "--json"]), 1, "what is only planned is not shown");
    let unknown = ["show", "voting", "votin", "--json"];
    let said = systems(&folder, &unknown);
    assert_eq!((said.code, said.json["status"].as_str()), (Some(2), Some("error")), "{said:?}");
    assert_eq!(lines(&unknown), 1, "with one unknown name only the error is printed");
    fs::remove_dir_all(folder.join("systems")).unwrap();
    let said = systems(Path::new("/"), &["list"]);
    assert!(said.code == Some(2) && said.notes.contains("name one with --systems"), "{said:?}");
}

// ------------------------------------------------------------------ what is wrong is told with its place

#[test]
fn mistakes_are_told_with_their_places() {
    let line = |needle: &str| 1 + SYSTEM.lines().position(|line| line.contains(needle)).unwrap();
    let mapped = "clauses:\n";
    let map = |rest: &str| format!("map:\n  - {{part: a, feature: b, {rest}}}\nclauses:\n");
    let [neither, claim, other, own_name] =
        [map("gap: null"), map("claims: [ahed]"), map("systems: [votin]"), map("systems: [voting]")];
    let at_map = 1 + line("clauses:");
    let cases: [(&str, &str, &str, usize); 21] = [
        (mapped, &neither, "either examples (`claims`, `systems`), or what is missing", at_map),
        (mapped, &claim, "no claim `ahed`, did you mean `ahead`?", at_map),
        (mapped, &other, "no system `votin`, did you mean `voting`?", at_map),
        (mapped, &own_name, "a survey is no example of itself", at_map),
        ("year: 2026", "yaer: 2026", "unknown key `yaer`; did you mean `year`?", line("year:")),
        ("ids: [7]", "ids: [8]", "index.tsv has no row 8", line("ids:")),
        ("ids: [7]", "ids: []", "at least one row of the index", line("ids:")),
        ("decided_by: checker", "decided_by: cheker", "did you mean `checker`?", line("decided_by: checker")),
        ("[more-calls, ahead]", "[more-calls, ahed]", "no claim `ahed`, did you mean `ahead`?", line("It votes")),
        ("claims: [more-calls, ahead]", "missing: \"\", claims: [ahead]", "either the claims", line("It votes")),
        (
            "self-consistency]",
            "self-consistent]",
            "no leaf `methods/self-consistent`, did you mean `methods/self- consistency`?",
            line("leaves:"),
        ),
        ("seeds: 6", "seeds: 5", "at least 6 seeds", line("seeds:")),
        (
            "    of: many\n    against: one\n    scale",
            "    of: mani\n    against: one\n    scale",
            "no arm `mani`, did you mean `many`?",
            line("    of:"),
        ),
        (
            "    against: one\n    scale",
            "    against: many\n    scale",
            "not compared with itself",
            line("    against:"),
        ),
        ("    than: 5\n", "    than: many\n", "expected a number", line("    than:")),
        ("    tolerance: 0.1", "    tolerance: 0", "`within` needs a tolerance", line("tolerance:")),
        (
            "    is: more",
            "    is: more\n    tolerance: 0.1",
            "`more` and `less` have no tolerance",
            1 + line("    is: more"),
        ),
        (
            "    breaks:\n      by-lot: {arm: many, set: {method.by_lot: true}}\n",
            "",
            "names a way to break it",
            line("- name: ahead"),
        ),
        (
            "    is: more",
            "    is: more\n    reproduces: false",
            "must say what was measured",
            3 + line("- name: ahead") - 3,
        ),
        ("few: {arm: many,", "few: {arm: some,", "no arm `some`", line("few:")),
        ("name: ahead", "name: more-calls", "two claims have this name", line("name: ahead")),
    ];
    for (i, (from, to, told, at)) in cases.into_iter().enumerate() {
        assert!(SYSTEM.contains(from), "{from}");
        let folder = own(&format!("mistake-{i}"), |text| text.replacen(from, to, 1));
        let said = systems(&folder, &["list", "--json"]);
        // Long messages are broken into lines.
        let notes = said.notes.replace("\n  │ ", " ");
        assert!(said.code == Some(2) && notes.contains(told), "{to}: {said:?}");
        assert!(said.notes.contains(&format!("system.yaml:{at}:")), "{to}: not at line {at}: {said:?}");
    }
    let folder = own("mistake-index", |text| text);
    let index = folder.join("systems/index.tsv");
    let text = fs::read_to_string(&index).unwrap();
    for (from, to, told) in [
        ("9\tLater", "6\tLater", "line 3: ids must increase"),
        ("9\tLater", "Later", "line 3: it has 4 cells, not 5"),
        ("id\tname", "name\tid", "its first line must be the columns id, name"),
    ] {
        fs::write(&index, text.replace(from, to)).unwrap();
        let said = systems(&folder, &["list"]);
        assert!(said.code == Some(2) && said.notes.contains(told), "{said:?}");
    }
}

#[test]
fn mistakes_in_arms_are_told_before_anything_runs() {
    let cases = [
        ("set: {agents: 1}", "set: {agent: 1}", "unknown key `agent`; did you mean `agents`?"),
        ("set: {agents: 1}", "set: {method.kid: 1}", "method.kid"),
        ("simulated: true", "simulated: false", "its arm `many` calls simulated models"),
        ("one: {scenario: scenario.yaml", "one: {scenario: other.yaml", "there is no file"),
    ];
    for (i, (from, to, told)) in cases.into_iter().enumerate() {
        let folder = own(&format!("arm-{i}"), |text| text.replacen(from, to, 1));
        let out = folder.join("out");
        let said = check(&folder, &["voting"], &out);
        assert!(said.code == Some(2) && said.notes.contains(told), "{to}: {said:?}");
        assert!(!out.exists());
    }
    // A model is called simulated only if an arm uses it.
    let folder = own("arm-rules", |text| text.replace("metric: accuracy", "metric: calls"));
    let rules = "polity: 2\nagents: 5\nrounds: 2\nworld: {kind: opinion}\ncohorts: [{policy: voter}]\n";
    fs::write(folder.join("systems/voting/scenario.yaml"), rules).unwrap();
    let said = check(&folder, &["voting"], &folder.join("out"));
    let told = "it says `simulated: true`, but none of its arms calls simulated models";
    assert!(said.code == Some(2) && said.notes.contains(told), "{said:?}");
    // The available metrics are known once something has run.
    let folder = own("arm-metric", |text| text.replace("metric: accuracy", "metric: acuracy"));
    let said = check(&folder, &["voting", "--quick"], &folder.join("out"));
    assert!(said.code == Some(2) && said.notes.contains("measures `acuracy`, did you mean `accuracy`?"), "{said:?}");
}

#[test]
fn the_schema_takes_every_system_and_refuses_what_is_none() {
    let said = Command::new(env!("CARGO_BIN_EXE_polity")).args(["systems", "schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut taken = 0;
    for entry in fs::read_dir(root().join("systems")).unwrap() {
        let path = entry.unwrap().path().join("system.yaml");
        if path.is_file() {
            let (_, tree) = polity_store::files::read_file(&path).unwrap();
            let wrong: Vec<String> =
                schema.iter_errors(&tree.to_json()).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
            taken += 1;
        }
    }
    assert!(taken >= 15);
    let good = polity_store::files::yaml::parse(SYSTEM).unwrap().to_json();
    assert!(schema.is_valid(&good));
    for (path, value) in
        [("/year", json!("new")), ("/seeds", json!(2)), ("/claims/0/is", json!("bigger")), ("/arms/one", json!({}))]
    {
        let mut wrong = good.clone();
        *wrong.pointer_mut(path).unwrap() = value;
        assert!(!schema.is_valid(&wrong), "{path}");
    }
}

// ------------------------------------------------------------------ what is found

/// Every file of every run, except those with times.
fn runs(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for run in fs::read_dir(out.join("voting")).unwrap().map(|entry| entry.unwrap().path()) {
        for table in ["items", "metrics"] {
            for part in fs::read_dir(run.join("tables").join(table)).unwrap().map(|entry| entry.unwrap().path()) {
                found.insert(part.strip_prefix(out).unwrap().to_path_buf(), fs::read(&part).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_check_says_what_is_found_twice_the_same_and_where_other_models_differ() {
    let folder = own("twice", |text| text);
    let first = check(&folder, &["voting", "--breaks", "--jobs", "1"], &folder.join("first"));
    let second = check(&folder, &["voting", "--breaks", "--jobs", "3"], &folder.join("second"));
    assert_eq!((first.code, &first.json), (Some(0), &second.json), "{first:?}");
    assert_eq!(runs(&folder.join("first")), runs(&folder.join("second")));
    // 6 seeds of two arms with four draws and four regions each; plus those of two breaks, of one arm each.
    assert_eq!(first.json["runs"], 6 * (2 * (4 + 4) + 2));
    let calls = claim(&first, "more-calls");
    assert_eq!(calls["expected"], "calls of many to that of one: 4.9 to 5.1");
    assert_eq!((&calls["measured"], &calls["low"], &calls["high"]), (&json!(5.0), &json!(5.0), &json!(5.0)));
    assert_eq!((calls["verdict"].as_str(), &calls["simulated"]), (Some("holds"), &json!(true)));
    assert_eq!(calls["draws"].as_array().unwrap().len(), 3);
    // Corrected for the number of claims: the smallest p value counts as often as there are claims, the next once less, and so on.
    let claims = first.json["claims"].as_array().unwrap();
    let mut p: Vec<(f64, f64)> =
        claims.iter().filter_map(|claim| claim["p"].as_f64().zip(claim["p_holm"].as_f64())).collect();
    p.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(p.len() >= 2 && p.iter().any(|(p, _)| *p > 0.0), "{p:?}");
    let mut least = 0.0f64;
    for (i, (plain, corrected)) in p.iter().enumerate() {
        least = least.max((plain * (p.len() - i) as f64).min(1.0));
        assert!((corrected - least).abs() < 1e-12, "{p:?}");
    }
    assert!(first.notes.contains("corrected for the number of claims (Holm)"), "{}", first.notes);
    // With the broken mechanism, three calls are not five.
    assert_eq!(
        (&calls["breaks"][0]["measured"], calls["breaks"][0]["verdict"].as_str()),
        (&json!(3.0), Some("does not hold"))
    );
    // Finished runs are read, not run again: the same command in the folder of the first.
    let before = fs::metadata(folder.join("first/voting")).unwrap().modified().unwrap();
    let again = check(&folder, &["voting", "--breaks"], &folder.join("first"));
    assert_eq!(again.json, first.json);
    assert_eq!(fs::metadata(folder.join("first/voting")).unwrap().modified().unwrap(), before);
    // Draws of the models are different models.
    let accuracy = claim(&first, "ahead");
    let measured: BTreeSet<String> =
        accuracy["draws"].as_array().unwrap().iter().map(|draw| draw["measured"].to_string()).collect();
    assert!(measured.len() > 1 && !measured.contains(&accuracy["measured"].to_string()), "{accuracy}");
}

#[test]
fn claims_that_are_not_as_expected_have_an_exit_code_of_their_own() {
    // Expected to hold, and does not.
    let folder = own("unmet", |text| text.replace("than: 5\n", "than: 4\n"));
    let said = check(&folder, &["voting", "--quick"], &folder.join("out"));
    assert_eq!((said.code, said.json["failed"].as_u64()), (Some(9), Some(1)), "{said:?}");
    assert_eq!(claim(&said, "more-calls")["verdict"], "does not hold");
    assert!(said.notes.contains("<- expected to hold"), "{said:?}");
    // Declared as not reproducing, and it does not: reported as expected.
    let known = |text: String| {
        text.replace("than: 5\n", "than: 4\n    reproduces: false\n    found: 5\n    why: five are asked\n")
    };
    let without = |text: String| text.replace("    breaks:\n      few: {arm: many, set: {agents: 3}}\n", "");
    let folder = own("known", |text| without(known(text)));
    let said = check(&folder, &["voting", "--quick"], &folder.join("out"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let report = claim(&said, "more-calls");
    assert_eq!(
        (report["verdict"].as_str(), &report["found"], &report["reproduces"]),
        (Some("does not hold"), &json!(5.0), &json!(false))
    );
    assert!(said.notes.contains("does not hold, as expected") && said.notes.contains("five are asked"), "{said:?}");
    // Declared as not reproducing, but it holds: this must be reported.
    let folder = own("silently", |text| without(known(text)).replace("than: 4", "than: 5"));
    let said = check(&folder, &["voting"], &folder.join("out"));
    assert!(said.code == Some(9) && said.notes.contains("<- marked as not reproducing"), "{said:?}");
    // Few items give many chance findings.
    let said = check(&folder, &["voting", "--quick"], &folder.join("quick"));
    assert!(said.code == Some(0) && said.notes.contains("holds, although it is marked as not reproducing"), "{said:?}");
    // A break without effect on the result is found when it has run, ...
    let broken = |set: &str| {
        let set = format!("few: {{arm: many, set: {{{set}}}}}");
        own("unbroken", move |text| text.replace("few: {arm: many, set: {agents: 3}}", &set))
    };
    let folder = broken("max_retries: 1");
    let said = check(&folder, &["voting", "--quick", "--breaks"], &folder.join("out"));
    assert!(said.code == Some(9) && said.notes.contains("<- holds although its mechanism is broken"), "{said:?}");
    // ... and one that changes nothing, or makes both arms the same run, before.
    for (set, told) in [("agents: 5", "it changes nothing"), ("agents: 1", "it makes both arms the same run")] {
        let folder = broken(set);
        let said = check(&folder, &["voting", "--quick", "--breaks"], &folder.join("out"));
        assert!(said.code == Some(2) && said.notes.contains(told), "{said:?}");
    }
}

#[test]
fn what_the_machine_lacks_is_told_and_not_taken_for_a_finding() {
    let folder = own("lacks", |text| text.replace("seeds: 6", "needs: [tool/telescope]\nseeds: 6"));
    let said = check(&folder, &["voting"], &folder.join("out"));
    assert_eq!((said.code, said.json["runs"].as_u64()), (Some(0), Some(0)), "{said:?}");
    let report = claim(&said, "more-calls");
    assert_eq!((report["verdict"].as_str(), &report["measured"]), (Some("not checked"), &Value::Null));
    assert!(report["note"].as_str().unwrap().contains("tool/telescope"), "{report}");
}

#[test]
fn a_check_that_is_killed_goes_on_where_it_was() {
    let folder = own("killed", |text| text);
    let whole = check(&folder, &["voting"], &folder.join("whole"));
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let out = folder.join("killed");
    let args = ["check", "voting", "--jobs", "1", "--json", "--out", out.to_str().unwrap()];
    for after in [3, 20] {
        let mut child = command(&folder, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = || fs::read_dir(out.join("voting")).map_or(0, Iterator::count);
        while begun() < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(begun() < 48, "it was done before it was killed");
    }
    let resumed = check(&folder, &["voting"], &out);
    assert_eq!((resumed.code, &resumed.json), (Some(0), &whole.json), "{resumed:?}");
    assert_eq!(runs(&out), runs(&folder.join("whole")));
}

/// With every break that a system names, its claim must not hold, if it holds without.
#[test]
fn workers_share_a_planned_check() {
    let folder = own("planned", |text| text);
    let alone = check(&folder, &["voting", "--quick", "--breaks"], &folder.join("alone"));
    let (out, asked) = (folder.join("shared"), ["voting", "--quick", "--breaks"]);
    let planned = check(&folder, &[&asked[..], &["--plan"]].concat(), &out);
    assert_eq!((planned.code, &planned.json["runs"]), (Some(0), &alone.json["runs"]), "{planned:?}");
    assert!(!out.join("voting").exists());
    let again = check(&folder, &[&asked[..], &["--plan"]].concat(), &out);
    assert_eq!((again.code, &again.json["already"]), (Some(0), &json!(true)), "{again:?}");
    let other = check(&folder, &["voting", "--quick", "--plan"], &out);
    assert!(
        other.code == Some(3) && other.notes.contains("holds another check: its `breaks` is true, not false"),
        "{other:?}"
    );
    let polity = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
        let output = command.args(args).arg("--json").current_dir(&folder).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default();
        (output.status.code(), json, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let dir = out.to_str().unwrap();
    let state = |json: &Value| json["checks"][0]["state"].clone();
    assert_eq!(state(&polity(&["status", dir]).1), json!("planned"));
    let mut done = 0;
    for part in ["0/2", "1/2"] {
        let (code, worked, notes) = polity(&["work", dir, "--part", part, "--jobs", "1"]);
        assert_eq!((code, worked["status"].as_str()), (Some(0), Some("done")), "{notes}");
        done += worked["done"].as_u64().unwrap();
    }
    assert_eq!(json!(done), alone.json["runs"]);
    let (_, status, _) = polity(&["status", dir]);
    assert_eq!((state(&status), &status["checks"][0]["done"]), (json!("done"), &json!(done)));
    // Summed up by `polity resume`, and by the same command again.
    let (code, mut resumed, notes) = polity(&["resume", dir]);
    resumed.as_object_mut().unwrap().remove("out");
    assert_eq!((code, &resumed), (alone.code, &alone.json), "{notes}");
    assert_eq!(check(&folder, &asked, &out).json, alone.json);
    for (args, word) in [
        (&["work", dir, "--max-calls", "9"][..], "budgets of their scenarios"),
        (&["resume", dir, "--max-cost", "9"][..], "budgets of their scenarios"),
    ] {
        let (code, _, notes) = polity(args);
        assert!(code == Some(2) && notes.contains(word), "{notes}");
    }
    // A system that has changed since has other runs.
    let file = folder.join("systems/voting/scenario.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("agents: 5", "agents: 7")).unwrap();
    let (code, _, notes) = polity(&["work", dir]);
    assert!(code == Some(3) && notes.contains("the systems have changed since the check in"), "{notes}");
}

#[test]
fn a_broken_mechanism_turns_its_claim_red() {
    let folder = scratch("breaks");
    let all = std::env::var("POLITY_SYSTEMS").is_ok_and(|which| which == "all");
    let few = ["dylan", "deceptive-moa", "sparse-moa", "s3", "--quick", "--breaks"];
    let args: &[&str] = if all { &["--all", "--breaks"] } else { &few };
    let said = check(&root(), args, &folder.join("out"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut red = 0;
    for claim in said.json["claims"].as_array().unwrap() {
        for broken in claim["breaks"].as_array().unwrap() {
            assert_ne!(broken["verdict"], "holds", "{claim}");
            red += u32::from(claim["verdict"] == "holds");
        }
    }
    assert!(red >= 4, "only {red} claims that hold were broken: {said:?}");
}

/// Figures that an entry quotes from `scripts/recorded-figures.py` are those that it computes now.
#[test]
fn figures_of_recorded_answers_are_as_quoted() {
    const COMMAND: &str = "python3 scripts/recorded-figures.py ";
    let mut quoted: BTreeMap<String, (String, String)> = BTreeMap::new();
    for system in shown().values() {
        for claim in system["elsewhere"].as_array().unwrap() {
            let text = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
            if let Some(figure) = text("command").strip_prefix(COMMAND) {
                quoted.insert(figure.to_owned(), (text("measured"), text("finding")));
            }
        }
    }
    assert!(quoted.len() >= 15, "{quoted:?}");
    let mut script = Command::new("python3");
    script.arg("scripts/recorded-figures.py").args(quoted.keys()).current_dir(root());
    let output = script.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let computed = String::from_utf8(output.stdout).unwrap();
    let mut found = 0;
    for line in computed.lines() {
        let figure: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| figure[key].as_f64().unwrap();
        let measured = format!(
            "{:+.3} [{:+.3}, {:+.3}] over {} items; the bound is {}",
            number("figure"),
            number("low"),
            number("high"),
            figure["n"],
            number("bound")
        );
        let verdict = figure["verdict"].as_str().unwrap().to_owned();
        assert_eq!(quoted.get(figure["claim"].as_str().unwrap()), Some(&(measured, verdict)), "{line}");
        found += 1;
    }
    assert_eq!(found, quoted.len());
}

// ------------------------------------------------------------------ the book

/// The table of `docs/book/src/systems.md`.
fn coverage() -> String {
    let rows = systems(&root(), &["list", "--json"]).json;
    let rows = rows.as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut out = String::from(
        "| system | paper | rows | claims | do not reproduce | decided by | clauses: shown, not reproduced, missing |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, it) in &shown() {
        let (claims, elsewhere) = (it["claims"].as_array().unwrap(), it["elsewhere"].as_array().unwrap());
        let not = claims.iter().filter(|claim| claim["reproduces"] == false).count()
            + elsewhere.iter().filter(|claim| claim["finding"] != "holds").count();
        let mut decided: BTreeMap<String, u32> = BTreeMap::new();
        for claim in claims.iter().chain(elsewhere) {
            *decided.entry(text(&claim["decided_by"])).or_default() += 1;
        }
        let decided: Vec<String> = decided.into_iter().map(|(by, n)| format!("{by} {n}")).collect();
        let of_rows = it["rows"].as_array().unwrap().iter();
        let ids: Vec<String> = of_rows.map(|row| format!("{} {}", row["id"], text(&row["status"]))).collect();
        let standings: Vec<String> =
            it["clauses"].as_array().unwrap().iter().map(|clause| text(&clause["standing"])).collect();
        let count = |standing: &str| standings.iter().filter(|other| *other == standing).count();
        out += &format!(
            "| `{name}` | {}, {} | {} | {} | {not} | {} | {}, {}, {} |\n",
            text(&it["title"]),
            it["year"],
            ids.join(", "),
            claims.len() + elsewhere.len(),
            decided.join(", "),
            count("shown"),
            count("not-reproduced"),
            count("missing"),
        );
    }
    let mut groups: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for row in rows {
        let group = groups.entry(text(&row["group"])).or_default();
        group.0 += 1;
        group.1 += u32::from(row["status"] != "planned");
    }
    out += "\n| group | systems | there, whole or in part |\n|---|---|---|\n";
    for (group, (all, there)) in &groups {
        out += &format!("| {group} | {all} | {there} |\n");
    }
    let there: u32 = groups.values().map(|(_, there)| there).sum();
    out + &format!("| all | {} | {there} |\n", rows.len())
}

/// The maps of the surveys, for `docs/book/src/maps.md`.
fn maps() -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut out = String::new();
    for (name, it) in shown() {
        let map = it["map"].as_array().unwrap();
        if map.is_empty() {
            continue;
        }
        out += &format!(
            "\n## {}\n\n{}, {}. Its own claims: `polity systems check {name}`.\n\n",
            text(&it["name"]),
            text(&it["title"]),
            it["year"]
        );
        out += "| part | feature | examples |\n|---|---|---|\n";
        for feature in map {
            let list = |key: &str, before: &str| -> Vec<String> {
                feature[key].as_array().unwrap().iter().map(|one| format!("{before}`{}`", text(one))).collect()
            };
            let mut examples = [list("claims", "claim "), list("systems", "system ")].concat();
            examples.extend(feature["gap"].as_str().map(|gap| format!("**open**: {gap}")));
            out +=
                &format!("| {} | {} | {} |\n", text(&feature["part"]), text(&feature["feature"]), examples.join(", "));
        }
    }
    out
}

/// Three surveys quote this test.
#[test]
fn every_feature_of_a_map_is_a_checked_example_or_an_open_gap() {
    let shown = shown();
    let claims_of = |name: &str| {
        shown[name]["claims"].as_array().unwrap().len() + shown[name]["elsewhere"].as_array().unwrap().len()
    };
    let (mut maps, mut examples, mut gaps) = (0, 0, 0);
    for it in shown.values() {
        let map = it["map"].as_array().unwrap();
        maps += usize::from(!map.is_empty());
        for feature in map {
            let others = feature["systems"].as_array().unwrap();
            let own = feature["claims"].as_array().unwrap();
            for other in others.iter().map(|other| other.as_str().unwrap()) {
                // An example is documented, and has claims that a check decides.
                assert!(root().join("systems").join(other).join("README.md").is_file(), "{other}");
                assert!(claims_of(other) > 0, "{other}");
            }
            assert_eq!(others.is_empty() && own.is_empty(), feature["gap"].is_string(), "{feature}");
            examples += usize::from(feature["gap"].is_null());
            gaps += usize::from(feature["gap"].is_string());
        }
    }
    // What the surveys promise has an example in every part.
    for (name, parts) in [
        (
            "llm-mas-frontiers",
            &["solving complex tasks", "simulating specific scenarios", "evaluating generative agents"][..],
        ),
        (
            "rise-of-llm-agents",
            &["brain", "perception", "action", "single agent", "several agents", "people and agents", "society"],
        ),
        ("agent-methodology", &["construction", "collaboration", "evolution"]),
    ] {
        let map = shown[name]["map"].as_array().unwrap();
        let there =
            map.iter().filter(|feature| feature["gap"].is_null()).map(|feature| feature["part"].as_str().unwrap());
        assert_eq!(there.collect::<BTreeSet<_>>(), parts.iter().copied().collect(), "{name}");
        assert!(map.is_sorted_by_key(|feature| parts.iter().position(|part| feature["part"] == *part)), "{name}");
    }
    // A check of a survey is also one of its examples.
    let folder = scratch("examples");
    let said = check(&root(), &["rise-of-llm-agents", "--dry-run"], &folder.join("out"));
    assert!(said.code == Some(0) && said.json["runs"].as_u64() > Some(100), "{said:?}");
    assert!(maps >= 3 && examples > gaps && gaps > 0, "{maps} maps, {examples} examples, {gaps} gaps");
}

#[test]
fn the_books_maps_are_those_of_the_surveys() {
    let path = root().join("docs/book/src/maps.md");
    let text = fs::read_to_string(&path).unwrap();
    let begin = "<!-- maps: POLITY_BLESS=1 cargo test -p polity --test all systems:: -->\n";
    let (head, _) = text.split_once(begin).unwrap();
    let made = format!("{head}{begin}{}", maps());
    if std::env::var_os("POLITY_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap();
    assert!(there == made, "write it anew: POLITY_BLESS=1 cargo test -p polity --test all systems::");
}

#[test]
fn the_books_table_is_that_of_the_systems() {
    let path = root().join("docs/book/src/systems.md");
    let text = fs::read_to_string(&path).unwrap();
    let (begin, end) =
        ("<!-- coverage: POLITY_BLESS=1 cargo test -p polity --test all systems:: -->\n", "<!-- end -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let made = format!("{head}{begin}\n{}\n{end}{tail}", coverage());
    if std::env::var_os("POLITY_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == made,
        "write it anew: POLITY_BLESS=1 cargo test -p polity --test all systems::"
    );
}
