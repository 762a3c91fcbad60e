//! Comparisons with a stated allowance, with variants, with repeats, of sweeps' runs, and where prices are not known.

use crate::harness::{arg, scratch};
use crate::mock_server::{MockServer, last_line, polity, root, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn gsm8k() -> String {
    root().join("data/gsm8k-test-200.jsonl").display().to_string()
}

/// Runs the command without any provider.
fn alone(folder: &Path, args: &[&str]) -> Output {
    polity(folder, args, &[])
}

fn done(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    last_line(output)
}

fn refused(output: &Output, words: &str) {
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains(words), "{words}: {said}");
}

#[test]
fn a_stated_allowance_sets_the_sizes_of_teams() {
    let folder = scratch("comparisons-allowance");
    let task = gsm8k();
    let args =
        ["compare", "sc", "debate", "single", "--task", &task, "--model", "sim/medium", "--limit", "10", "--json"];
    let found = done(&alone(&folder, &[&args[..], &["--equal", "calls=12", "--out", "calls"]].concat()));
    let pilot = &found["pilots"][0];
    assert_eq!((&pilot["allowance"], &pilot["set_by"], &pilot["unit"]), (&12.0.into(), &Value::Null, &"calls".into()));
    let members = |found: &Value| -> Vec<u64> {
        found["methods"].as_array().unwrap().iter().map(|method| method["members"].as_u64().unwrap()).collect()
    };
    // One call a member; two rounds of a debate; and one member is one member.
    assert_eq!(members(&found), [12, 6, 1]);
    let part = |i: usize| found["methods"][i]["of_allowance"].as_f64().unwrap();
    assert_eq!((part(0), part(1)), (1.0, 1.0));
    assert!((part(2) - 1.0 / 12.0).abs() < 1e-12);
    // A single method with two models, each with its own pilot.
    let args =
        ["compare", "sc", "--task", &task, "--model", "sim/small", "--model", "sim/large", "--limit", "10", "--json"];
    let output = alone(&folder, &[&args[..], &["--equal", "calls=5", "--out", "models"]].concat());
    let found = done(&output);
    assert_eq!((members(&found), found["pilots"].as_array().unwrap().len()), (vec![5, 5], 2));
    let pair = &found["compared"][0];
    assert_eq!((&pair["a"], &pair["b"], &pair["model"]), (&"sim/small".into(), &"sim/large".into(), &Value::Null));
    assert!(
        text(&output.stderr).contains("equal calls with sim/small: 5 per item, as asked for"),
        "{}",
        text(&output.stderr)
    );
    for (equal, words) in
        [("tokens=none", "no amount above 0"), ("euros", "there is no unit `euros`"), ("usd=-1", "no amount above 0")]
    {
        refused(&alone(&folder, &[&args[..], &["--equal", equal, "--out", "wrong"]].concat()), words);
    }
}

#[test]
fn variants_of_a_method_are_told_apart_and_wrong_ones_are_refused() {
    let folder = scratch("comparisons-variants");
    let task = gsm8k();
    let compare = |methods: &[&str], out: &str| {
        let args = ["--task", &task, "--model", "sim/medium", "--limit", "3", "--no-report", "--json", "--out", out];
        alone(&folder, &[&["compare"][..], methods, &args].concat())
    };
    let found = done(&compare(&["debate", "debate:show_reasons=false,stop_when_agreed=true"], "two"));
    let second = &found["methods"][1];
    assert_eq!(second["method"], "debate:show_reasons=false,stop_when_agreed=true");
    assert_eq!(second["parameters"], serde_json::json!(["show_reasons=false", "stop_when_agreed=true"]));
    assert_eq!(second["run"], "runs/sim_medium/gsm8k-test-200/debate,show_reasons=false,stop_when_agreed=true@3/1");
    let scenario = folder.join("two").join(second["run"].as_str().unwrap()).join("scenario.yaml");
    let scenario: Value = serde_json::from_str(&fs::read_to_string(scenario).unwrap()).unwrap();
    assert_eq!(
        scenario["method"],
        serde_json::json!({"kind": "debate", "show_reasons": false, "stop_when_agreed": true})
    );
    // Teams of the same method and of different sizes keep their names.
    done(&compare(&["sc@2", "sc@3"], "sizes"));
    let items = text(&alone(&folder, &["export", "sizes", "--format", "jsonl"]).stdout);
    let names = items.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["method"].as_str().unwrap().to_owned(), row["members"].as_u64().unwrap())
    });
    let names: Vec<(String, u64)> = names.collect();
    assert_eq!(names, [vec![("sc@2".to_owned(), 2); 3], vec![("sc@3".to_owned(), 3); 3]].concat());
    // Runs are chosen by the names in the tables, too.
    for (run, calls) in [("sc@3", 9), ("sc", 15), ("self-consistency@2", 6)] {
        let chosen = alone(&folder, &["calls", "sizes", "--run", run, "--json"]);
        assert_eq!(text(&chosen.stdout).lines().count(), calls, "{run}: {}", text(&chosen.stderr));
    }
    refused(&alone(&folder, &["calls", "sizes", "--run", "debate"]), "/1, of the methods sc@2, sc@3");
    // Its own parameters win over those of all.
    let args =
        ["compare", "a=debate", "b=debate:show_reasons=true", "--task", &task, "--model", "sim/medium", "--limit", "2"];
    let found =
        done(&alone(&folder, &[&args[..], &["-P", "method.show_reasons=false", "--json", "--out", "own"]].concat()));
    let (a, b) = (&found["methods"][0], &found["methods"][1]);
    assert!(a["tokens_in"].as_u64().unwrap() < b["tokens_in"].as_u64().unwrap(), "{a} {b}");
    for (methods, words) in [
        (["debate:show_reason=false", "sc"], "show_reasons"),
        (["debate:show_reasons", "sc"], "`show_reasons` is no parameter; write KEY=VALUE"),
        (["a/b=debate", "sc"], "a label before `=`"),
        (["x=debate", "x=sc"], "`x` is named twice"),
        (["self-consistency=debate", "sc"], "would have the same folder"),
        (["debate:", "sc"], "is no parameter"),
    ] {
        refused(&compare(&methods, "wrong"), words);
    }
    let of_one =
        ["compare", "sc", "debate", "--task", &task, "--model", "sim/medium", "-P", "method.show_reasons=false"];
    refused(&alone(&folder, &of_one), "one method alone is changed after its name: debate:show_reasons=false");
    let twice = ["compare", "sc", "debate", "--task", &task, "--task", &task, "--model", "sim/medium"];
    refused(&alone(&folder, &twice), "is given twice");
    assert!(!folder.join("wrong").exists(), "nothing was begun");
}

#[test]
fn files_named_on_the_command_line_are_beside_the_command() {
    let folder = scratch("comparisons-files");
    ["data", "words"].iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
    let lines: Vec<String> = fs::read_to_string(gsm8k()).unwrap().lines().take(4).map(str::to_owned).collect();
    fs::write(folder.join("data/few.jsonl"), lines.join("\n")).unwrap();
    fs::write(folder.join("words/again.md"), "Think again, briefly.\n").unwrap();
    let on = ["--task", "data/few.jsonl", "--model", "sim/medium", "--no-report"];
    let words = "own=debate:prompts.again={file: words/again.md}";
    let cut = alone(&folder, &[&["compare", words, "sc@2", "--out", "cut", "--max-calls", "10"][..], &on].concat());
    assert_eq!(cut.status.code(), Some(7), "{}", text(&cut.stderr));
    // From its folder, and from another one.
    let again = alone(&folder, &["resume", "cut", "--max-calls", "20", "--no-report"]);
    assert_eq!(again.status.code(), Some(7), "{}", text(&again.stderr));
    assert!(text(&again.stderr).starts_with("data/few.jsonl: 4 items"), "{}", text(&again.stderr));
    let there = folder.join("cut").display().to_string();
    done(&alone(folder.parent().unwrap(), &["resume", &there, "--max-calls", "100", "--no-report", "--json"]));
    let shown = |run: &str| text(&alone(&folder, &["calls", run, "--full"]).stdout);
    assert!(shown("cut").contains("Think again, briefly."));
    let all = ["eval", "--method", "debate", "-P", "method.prompts.again={file: words/again.md}", "--out", "one"];
    assert_eq!(alone(&folder, &[&all[..], &on[..]].concat()).status.code(), Some(0));
    assert!(shown("one").contains("Think again, briefly."));
    // One name for two files.
    fs::write(folder.join("few.jsonl"), "Think.").unwrap();
    let same = ["eval", "--method", "debate", "-P", "method.prompts.again={file: few.jsonl}", "--out", "same"];
    refused(&alone(&folder, &[&same[..], &on[..]].concat()), "`few.jsonl` also names another file");
}

#[test]
fn repeats_of_a_method_are_a_comparison_that_goes_on() {
    let folder = scratch("comparisons-repeats");
    let task = gsm8k();
    let args = ["eval", "--method", "sc@3", "--task", &task, "--model", "sim/medium", "--limit", "8", "--repeats", "3"];
    let whole = done(&alone(&folder, &[&args[..], &["--out", "whole", "--json"]].concat()));
    assert_eq!(whole["runs"].as_array().unwrap().len(), 3);
    let cut = alone(&folder, &[&args[..], &["--out", "cut", "--max-calls", "30", "--json"]].concat());
    assert_eq!(cut.status.code(), Some(7), "{}", text(&cut.stderr));
    assert!(text(&cut.stderr).contains("`polity resume cut` continues with a higher limit"), "{}", text(&cut.stderr));
    let again = alone(&folder, &["resume", "cut"]);
    assert_eq!(again.status.code(), Some(7), "the limit still holds: {}", text(&again.stderr));
    let resumed = done(&alone(&folder, &["resume", "cut", "--max-calls", "1000", "--json"]));
    assert_eq!(resumed, whole);
    for name in ["methods.jsonl", "items.jsonl", "table.tex", "report.html"] {
        let read = |run: &str| fs::read(folder.join(run).join(name)).unwrap();
        assert!(read("cut") == read("whole"), "{name} differs");
    }
    let exported = text(&alone(&folder, &["export", "cut", "--table", "items"]).stdout);
    assert_eq!(exported.lines().count(), 1 + 3 * 8);
    assert!(exported.starts_with("task,model,method,members,seed,item,"), "{exported}");
    refused(&alone(&folder, &["resume", "cut", "--price", "sim/medium=1,1"]), "--price cannot change them");
    // Another request in the same folder, stopped after the run that both share: the other runs of the first one do not belong to it.
    let args = ["eval", "--method", "sc@3", "--task", &task, "--model", "sim/medium", "--limit", "8"];
    let other = ["--seed", "3", "--repeats", "2", "--out", "cut", "--max-calls", "24"];
    let other = alone(&folder, &[&args[..], &other].concat());
    assert_eq!(other.status.code(), Some(7), "{}", text(&other.stderr));
    let calls = text(&alone(&folder, &["calls", "cut", "--json"]).stdout);
    let runs = calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["run"].clone());
    let runs: Vec<String> = runs.map(|run| run.as_str().unwrap().to_owned()).collect();
    assert!(runs.iter().any(|run| run.ends_with("@3/3")), "{runs:?}");
    assert!(runs.iter().all(|run| !run.ends_with("@3/1") && !run.ends_with("@3/2")), "{runs:?}");
}

#[test]
fn runs_of_a_sweep_are_read_together() {
    let folder = scratch("comparisons-sweep");
    let file = folder.join("sweep.yaml");
    let scenario = serde_json::json!({
        "polity": polity_kernel::scenario::VERSION,
        "name": "two teams",
        "rounds": 2,
        "model": "sim/medium",
        "method": {"kind": "debate"},
        "agents": 3,
        "items": {"file": "items.jsonl", "shape": "gsm8k", "count": 2},
        "record": {"calls": true},
        "design": {"seeds": 2, "factors": {"method.show_reasons": [true, false]}},
    });
    let lines: Vec<String> = fs::read_to_string(gsm8k()).unwrap().lines().take(2).map(str::to_owned).collect();
    fs::write(folder.join("items.jsonl"), lines.join("\n")).unwrap();
    fs::write(&file, scenario.to_string()).unwrap();
    let swept = alone(&folder, &["sweep", arg(&file), "--out", "swept", "--no-report", "--json"]);
    let answers = done(&swept)["answers"].as_u64().unwrap() as usize;
    let calls = text(&alone(&folder, &["calls", "swept", "--json"]).stdout);
    assert_eq!(calls.lines().count(), answers);
    let exported = text(&alone(&folder, &["export", "swept", "--table", "calls"]).stdout);
    assert!(exported.starts_with("arm,seed,item,"), "{exported}");
    let own = text(&alone(&folder, &["export", "swept"]).stdout);
    assert!(own.starts_with("arm,metric,"), "{own}");
    let listing = text(&alone(&folder, &["calls", "swept", "--limit", "1"]).stdout);
    assert!(listing.starts_with("### runs/"), "{listing}");
    refused(&alone(&folder, &["calls", "swept/runs", "--run", "x"]), "is no sweep and no comparison");
}

#[test]
fn dollars_that_are_not_known_are_said_and_never_made_equal() {
    let folder = scratch("comparisons-dollars");
    let server = MockServer::start(&[]);
    let task = gsm8k();
    let args = ["compare", "single", "sc@2", "--task", &task, "--model", "openai/medium", "--limit", "4"];
    let ask = |more: &[&str]| polity(&folder, &[&args[..], more].concat(), &server.variables());
    // Nothing is asked before it is refused.
    refused(
        &ask(&["--equal", "usd", "--out", "equal"]),
        "its price is unknown, so budgets cannot be made equal in dollars",
    );
    refused(&ask(&["--equal", "usd=0.1", "--out", "equal"]), "--price openai/medium=");
    let free = ["--equal", "usd", "--price", "openai/medium=0,0", "--out", "equal"];
    refused(&ask(&free), "calls of `openai/medium` cost nothing, so budgets cannot be made equal in dollars");
    assert_eq!(server.count("answered"), 0);
    assert!(!folder.join("equal").exists(), "nothing was begun");

    let output = ask(&["--out", "unknown", "--json"]);
    let found = done(&output);
    let said = text(&output.stderr);
    assert!(said.contains("not known") && !said.contains("0.0000"), "{said}");
    assert!(said.contains("no item was solved, and none can be: the answers are those of the mock server"), "{said}");
    for method in found["methods"].as_array().unwrap() {
        assert!(method["cost_usd"].is_null() && method["ledger"][0]["cost_usd"].is_null(), "{method}");
    }
    for file in ["table.tex", "table.md", "report.html"] {
        assert!(fs::read_to_string(folder.join("unknown").join(file)).unwrap().contains("not known"), "{file}");
    }
    let latex = fs::read_to_string(folder.join("unknown/table.tex")).unwrap();
    assert!(!latex.contains("0.0000") && latex.contains(", openai/medium, seed 1"), "{latex}");
    let calls = alone(&folder, &["calls", "unknown", "--limit", "1"]);
    assert!(text(&calls.stdout).contains("cost not known") && !text(&calls.stdout).contains("$0.0"), "{calls:?}");
    let call = last_line(&alone(&folder, &["calls", "unknown", "--limit", "1", "--json"]));
    assert!(call["cost_usd"].is_null() && call["tokens_in"].as_u64().unwrap() > 0, "{call}");
    // With a price all of it is known.
    let priced = done(&ask(&["--price", "openai/medium=1,2", "--equal", "usd", "--out", "priced", "--json"]));
    assert!(priced["methods"][0]["cost_usd"].as_f64().unwrap() > 0.0, "{priced}");
    let call = last_line(&alone(&folder, &["calls", "priced", "--limit", "1", "--json"]));
    assert!(call["cost_usd"].as_f64().unwrap() > 0.0, "{call}");
    let answered = server.count("answered");
    // The report needs neither key nor model.
    assert_eq!(alone(&folder, &["report", "unknown"]).status.code(), Some(0));
    assert_eq!(server.count("answered"), answered);
}

#[test]
fn workers_share_a_planned_comparison() {
    let folder = scratch("comparisons-planned");
    let task = gsm8k();
    let methods = ["single", "sc@3"];
    let asked = |more: &[&str]| -> Vec<String> {
        let args =
            ["--task", &task, "--model", "sim/medium", "--limit", "5", "--repeats", "2", "--json", "--no-report"];
        [&["compare"][..], &methods, &args, more].concat().into_iter().map(str::to_owned).collect()
    };
    let run = |args: &[String]| alone(&folder, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let whole = done(&run(&asked(&["--out", "whole"])));
    let planned = done(&run(&asked(&["--out", "shared", "--plan"])));
    assert_eq!((&planned["runs"], &planned["already"]), (&4.into(), &false.into()));
    assert!(!folder.join("shared/runs").exists());
    assert_eq!(done(&run(&asked(&["--out", "shared", "--plan"])))["already"], true);
    let other = run(&asked(&["--out", "shared", "--plan", "--seed", "4"]));
    let said = text(&other.stderr);
    assert!(
        other.status.code() == Some(3) && said.contains("holds another comparison: its `seed` is 1, not 4"),
        "{said}"
    );
    // Each part has a run of every method.
    for (part, runs) in [
        ("0/2", ["chain-of-thought@1/1", "self-consistency@3/1"]),
        ("1/2", ["chain-of-thought@1/2", "self-consistency@3/2"]),
    ] {
        let worked = done(&alone(&folder, &["work", "shared", "--part", part, "--json"]));
        assert_eq!((&worked["done"], &worked["runs"]), (&2.into(), &2.into()));
        for run in runs {
            assert!(folder.join("shared/runs/sim_medium/gsm8k-test-200").join(run).is_dir(), "{part}");
        }
    }
    let summed = done(&alone(&folder, &["resume", "shared", "--json", "--no-report"]));
    let steady = |found: &Value| {
        let mut found = found.clone();
        for key in ["folder", "seconds", "wall_seconds"] {
            found.as_object_mut().unwrap().remove(key);
        }
        found
    };
    assert_eq!(steady(&summed), steady(&whole));
    // The same command again only sums up.
    assert_eq!(steady(&done(&run(&asked(&["--out", "shared"])))), steady(&whole));
    for file in ["table.md", "items.jsonl", "methods.parquet"] {
        let bytes = |out: &str| fs::read(folder.join(out).join(file)).unwrap();
        assert!(bytes("shared") == bytes("whole"), "{file}");
    }
    refused(&run(&asked(&["--out", "equal", "--plan", "--equal", "calls"])), "workers cannot share this comparison");
    refused(&alone(&folder, &["work", "whole"]), "give its command again with --plan");

    // One budget for all: a run begins if its own fits.
    refused(&run(&asked(&["--out", "capped", "--plan", "--max-calls", "38"])), "add `budget: {calls: ...}`");
    let capped = asked(&["--out", "capped", "--plan", "--max-calls", "38", "-P", "budget.calls=20"]);
    assert_eq!(done(&run(&capped))["runs"], 4);
    let worked = alone(&folder, &["work", "capped", "--jobs", "1", "--json"]);
    assert_eq!((worked.status.code(), &last_line(&worked)["done"]), (Some(6), &3.into()), "{}", text(&worked.stderr));
    let short =
        "the budget of the comparison is 38 calls: 25 calls are spent or reserved, and the next run may use up to 20";
    assert!(text(&worked.stderr).contains(short), "{}", text(&worked.stderr));
    let stopped = alone(&folder, &["resume", "capped"]);
    assert!(stopped.status.code() == Some(7) && text(&stopped.stderr).contains(short), "{}", text(&stopped.stderr));
    refused(&alone(&folder, &["work", "capped", "--max-calls", "30"]), "is 38 calls already");
    done(&alone(&folder, &["resume", "capped", "--max-calls", "45", "--json", "--no-report"]));
    // The command of the plan, with the limit of then.
    done(&run(&asked(&["--out", "capped", "--max-calls", "38", "-P", "budget.calls=20"])));
}
