//! Tests of `polity eval` and `polity compare` of methods: against plain runs and plain statistics, interrupted and resumed, wrong
//! requests, and logs that Inspect AI reads.
//!
//! The long forms: `bash scripts/campaigns.sh items compared`.

use crate::harness::{Said, arg, assert_same_tables, from_env, polity, said, scratch, tables};
use polity_kernel::ask::{ChatMessage, Part, ResponseFormat, Role};
use polity_kernel::method::{Brief, DefaultTeam, Method, Records, TeamContext, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, NoParams};
use polity_kernel::tree::Invalid;
use polity_store::disk::RealDisk;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn gsm8k() -> String {
    root().join("data/gsm8k-test-200.jsonl").display().to_string()
}

/// Runs the command in a folder, with its report.
fn command_in(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).current_dir(folder).env_remove("POLITY_OUT").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns its standard output.
fn printed(folder: &Path, args: &[&str]) -> (Said, String) {
    let output = command_in(folder, args).output().unwrap();
    (said(&output), String::from_utf8(output.stdout.clone()).unwrap())
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns all files of a comparison except its runs.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for part in [folder.to_path_buf(), folder.join("inspect")] {
        for entry in std::fs::read_dir(part).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                all.insert(path.strip_prefix(folder).unwrap().display().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn an_evaluation_is_a_plain_run_of_its_scenario() {
    let folder = scratch("arena-eval");
    let (out, again) = (folder.join("eval"), folder.join("run"));
    let task = gsm8k();
    let args = ["eval", "--method", "debate", "--task", &task, "--model", "sim/medium", "--limit", "20", "--seed", "5"];
    let found = polity(&[&args[..], &["--out", arg(&out)]].concat());
    assert_eq!(found.code, Some(0), "{}", found.notes);
    let keys = [
        "method",
        "items",
        "accuracy",
        "low",
        "high",
        "calls",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "run",
        "simulated",
    ];
    keys.iter().for_each(|key| assert!(!found.json[key].is_null(), "{key}: {}", found.json));
    let ran = polity(&["run", arg(&out.join("scenario.yaml")), "--out", arg(&again)]);
    assert_eq!(ran.code, Some(0), "{}", ran.notes);
    assert_same_tables(&tables(&RealDisk, &out), &tables(&RealDisk, &again), "eval and run");
    for key in ["calls", "tokens_in", "tokens_out", "simulated"] {
        assert_eq!(found.json[key], ran.json[key], "{key}");
    }
    assert!((found.json["cost_usd"].as_f64().unwrap() - ran.json["cost_usd"].as_f64().unwrap()).abs() < 1e-12);
    // Recounted from the table.
    let text = |table: &str| {
        let file = folder.join(format!("{table}.jsonl"));
        let args = ["export", arg(&again), "--table", table, "--format", "jsonl", "--out", arg(&file)];
        assert!(command_in(&folder, &args).status().unwrap().success());
        lines(&file)
    };
    let items = text("items");
    let right = items.iter().filter(|item| item["correct"] == true).count() as f64;
    assert!((found.json["accuracy"].as_f64().unwrap() - right / items.len() as f64).abs() < 1e-12 && items.len() == 20);
    let mut ledger: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for call in text("calls") {
        let entry = ledger.entry(call["purpose"].as_str().unwrap().into()).or_default();
        let number = |key: &str| call[key].as_u64().unwrap();
        *entry = (entry.0 + 1, entry.1 + number("tokens_in"), entry.2 + number("tokens_out"));
    }
    assert_eq!(ledger.keys().collect::<Vec<_>>(), ["reconsider", "solve"]);
    for entry in found.json["ledger"].as_array().unwrap() {
        let number = |key: &str| entry[key].as_u64().unwrap();
        let expected = ledger[entry["purpose"].as_str().unwrap()];
        assert_eq!((number("calls"), number("tokens_in"), number("tokens_out")), expected, "{entry}");
    }
    let (all, solve) = (ledger.values().map(|x| x.1 + x.2).sum::<u64>(), ledger["solve"].1 + ledger["solve"].2);
    let coordination = found.json["coordination"].as_f64().unwrap();
    assert!((coordination - (all - solve) as f64 / all as f64).abs() < 1e-12);
    // Finished work is not repeated, and another request cannot take over the folder.
    let same = polity(&[&args[..], &["--out", arg(&out)]].concat());
    assert_eq!(same.json, found.json);
    let other = polity(&[&args[..], &["--out", arg(&out), "-P", "settings.temperature=0.5"]].concat());
    assert!(other.code == Some(2) && other.notes.contains("`settings`"), "{}", other.notes);
}

/// Binomial tail by Pascal's triangle.
fn mcnemar(more: u64, fewer: u64) -> f64 {
    let n = (more + fewer) as usize;
    let mut row = vec![1.0_f64];
    for _ in 0..n {
        row = (0..=row.len()).map(|k| if k == 0 || k == row.len() { 1.0 } else { row[k - 1] + row[k] }).collect();
    }
    (2.0 * row[..=more.min(fewer) as usize].iter().sum::<f64>() / 2f64.powi(n as i32)).min(1.0)
}

/// Holm, by its definition: the largest of the products of all p no larger.
fn corrected(plain: &[f64]) -> Vec<f64> {
    let of = |p: &f64| {
        let products = plain.iter().filter(|other| *other <= p).map(|other| {
            let no_smaller = plain.iter().filter(|third| *third >= other).count();
            (other * no_smaller as f64).min(1.0)
        });
        products.fold(0.0, f64::max)
    };
    plain.iter().map(of).collect()
}

#[test]
fn a_comparison_that_was_interrupted_ends_with_the_same_bytes_and_plain_statistics() {
    let task = gsm8k();
    let args = ["compare", "single", "sc", "debate@3", "dylan", "--task", &task, "--model", "sim/medium"];
    let args = [&args[..], &["--limit", "30", "--seed", "2", "--equal", "tokens", "--out", "all", "--json"]].concat();
    let whole = scratch("arena-whole");
    let (found, stdout) = printed(&whole, &args);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    let expected = files(&whole.join("all"));
    let names = ["frontier.svg", "items.jsonl", "methods.jsonl", "methods.parquet", "references.bib", "report.html"];
    names.iter().for_each(|name| assert!(expected.contains_key(*name), "{name}"));

    // Hard limits of calls stop it in the pilot and in the runs; kills anywhere.
    interrupted(&whole, &args, &stdout, &["3", "40", "260", "700"], &[30, 90, 150, 60]);

    // One object per method, then one for all.
    let methods: Vec<Value> = stdout.lines().take(4).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(stdout.lines().count(), 5);
    assert_eq!(Value::from(methods.clone()), found.json["methods"]);
    assert_eq!(methods, lines(&whole.join("all/methods.jsonl")));
    let members: Vec<u64> = methods.iter().map(|method| method["members"].as_u64().unwrap()).collect();
    assert_eq!((members[0], members[2]), (1, 3), "one member, and a size that was asked for, stay");
    let pilot = &found.json["pilots"][0];
    let trials = pilot["trials"].as_array().unwrap();
    let allowance = pilot["allowance"].as_f64().unwrap();
    let usual = trials[..4].iter().map(|trial| trial["per_item"].as_f64().unwrap()).fold(0.0, f64::max);
    let most = trials[..4].iter().find(|trial| trial["per_item"] == allowance).unwrap();
    assert!(allowance == usual && pilot["set_by"] == most["method"], "{pilot}");
    // No size that was tried comes closer.
    for method in ["sc", "dylan"].into_iter().filter(|method| pilot["set_by"] != *method) {
        let own: Vec<_> = trials.iter().filter(|trial| trial["method"] == method).collect();
        let distance = |trial: &Value| (trial["per_item"].as_f64().unwrap() - allowance).abs();
        let best = own.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
        let chosen = methods.iter().find(|m| m["method"] == method).unwrap();
        assert_eq!(best["members"], chosen["members"], "{method}: {own:?}");
        assert!(own.len() > 1, "{method} was fitted");
    }

    // Pairs, counted anew from the items.
    let mut right: BTreeMap<String, BTreeMap<u64, bool>> = BTreeMap::new();
    for row in lines(&whole.join("all/items.jsonl")) {
        let method = right.entry(row["method"].as_str().unwrap().into()).or_default();
        method.insert(row["item"].as_u64().unwrap(), row["correct"].as_bool().unwrap());
    }
    let duels = found.json["compared"].as_array().unwrap();
    assert_eq!(duels.len(), 6);
    let mut plain: Vec<f64> = Vec::new();
    for duel in duels {
        let (a, b) = (&right[duel["a"].as_str().unwrap()], &right[duel["b"].as_str().unwrap()]);
        assert_eq!(a.len(), 30);
        let more = a.iter().filter(|(item, right)| **right && !b[*item]).count() as u64;
        let fewer = a.iter().filter(|(item, right)| !**right && b[*item]).count() as u64;
        assert_eq!((&duel["a_only"], &duel["b_only"]), (&more.into(), &fewer.into()));
        let difference = (more as f64 - fewer as f64) / 30.0;
        assert!((duel["difference"].as_f64().unwrap() - difference).abs() < 1e-12, "{duel}");
        let (low, high) = (duel["low"].as_f64().unwrap(), duel["high"].as_f64().unwrap());
        // The bootstrap's standard error of a mean has a closed form; its interval lies close to the normal one.
        let variance = (more + fewer) as f64 / 30.0 - difference * difference;
        let half = 1.96 * (variance / 30.0).sqrt();
        assert!((low - difference + half).abs() < 0.06 && (high - difference - half).abs() < 0.06, "{duel}");
        plain.push(mcnemar(more, fewer));
        assert!((duel["p"].as_f64().unwrap() - mcnemar(more, fewer)).abs() < 1e-10, "{duel}");
    }
    for (duel, holm) in duels.iter().zip(corrected(&plain)) {
        assert!((duel["p_holm"].as_f64().unwrap() - holm).abs() < 1e-9, "{duel} {holm}");
        assert_eq!(duel["verdict"], if holm < 0.05 { "real" } else { "not told apart" });
    }
    inspect_reads(&whole.join("all"), &methods);
}

/// Stopped by limits of calls and by kills, a comparison ends with the same bytes as `whole`.
fn interrupted(whole: &Path, args: &[&str], stdout: &str, walls: &[&str], kills: &[u64]) {
    let expected = files(&whole.join("all"));
    let broken = scratch(&format!("{}-broken", whole.file_name().unwrap().to_str().unwrap()));
    for calls in walls {
        let (stopped, _) = printed(&broken, &[args, &["--max-calls", calls]].concat());
        assert_eq!((stopped.code, &stopped.json["status"]), (Some(7), &"budget".into()), "{}", stopped.notes);
        assert!(stopped.notes.contains("`polity resume all` continues with a higher limit"), "{}", stopped.notes);
    }
    let mut killed = 0;
    for milliseconds in kills {
        let mut process = command_in(&broken, args).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(*milliseconds));
        killed += u32::from(process.try_wait().unwrap().is_none());
        process.kill().unwrap();
        process.wait().unwrap();
    }
    assert!(killed > 0, "every process had ended before it was killed");
    let (went_on, printed_then) = printed(&broken, args);
    assert_eq!(went_on.code, Some(0), "{}", went_on.notes);
    assert!(printed_then == stdout, "{printed_then}\n{stdout}");
    let after = files(&broken.join("all"));
    assert_eq!(after.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    after.iter().for_each(|(name, bytes)| assert!(*bytes == expected[name], "{name} differs"));
}

/// Returns the number of runs of a comparison that have ended.
fn ended(folder: &Path) -> usize {
    let below = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut open: Vec<PathBuf> = below(folder.join("runs")).collect();
    let mut ended = 0;
    while let Some(path) = open.pop() {
        ended += usize::from(path.join("scenario.yaml").exists());
        if !path.join("journal").exists() {
            open.extend(below(path).filter(|path| path.is_dir()));
        }
    }
    ended
}

/// Four models, three tasks, two variants of a method: killed twice, resumed from elsewhere, and read with every verb.
#[test]
fn a_comparison_of_models_tasks_and_variants_is_resumed_to_the_same_bytes_and_read() {
    let tasks = ["data/gsm8k-easy.jsonl", "data/gsm8k-hard.jsonl", "data/recorded/mmlu-pro/held-out.jsonl"];
    let tasks = tasks.map(|task| root().join(task).display().to_string());
    let models = ["sim/small", "sim/medium", "sim/large", "sim/weak"];
    let mut args = vec!["compare", "debate", "silent=debate:show_reasons=false"];
    tasks.iter().for_each(|task| args.extend(["--task", task]));
    models.iter().for_each(|model| args.extend(["--model", model]));
    args.extend(["--limit", "6", "--seed", "4", "--out", "all", "--json"]);
    let whole = scratch("arena-variants");
    let (found, _) = printed(&whole, &args);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    let expected = files(&whole.join("all"));

    let broken = scratch("arena-variants-broken");
    for least in [3, 11] {
        let mut process = command_in(&broken, &args).spawn().unwrap();
        while ended(&broken.join("all")) < least && process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        assert!((least..24).contains(&ended(&broken.join("all"))), "it had ended before it was killed");
        // What is there can be read before it goes on.
        let (calls, lines) = printed(&broken, &["calls", "all", "--run", "silent", "--limit", "3", "--json"]);
        assert_eq!((calls.code, lines.lines().count()), (Some(0), 3), "{}", calls.notes);
        let (verified, _) = printed(&broken, &["verify", "all"]);
        assert_eq!(verified.code, Some(0), "{}", verified.notes);
        let (early, _) = printed(&broken, &["report", "all"]);
        assert!(early.code == Some(3) && early.notes.contains("`polity resume all` continues it"), "{}", early.notes);
    }
    // From another folder, without a word of the request.
    let (resumed, _) = printed(broken.parent().unwrap(), &["resume", arg(&broken.join("all")), "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.notes);
    assert_eq!(resumed.json["methods"], found.json["methods"]);
    let after = files(&broken.join("all"));
    assert_eq!(after.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    after.iter().for_each(|(name, bytes)| assert!(*bytes == expected[name], "{name} differs"));

    statistics_of_variants(&whole, &found.json);
    reads_of_variants(&whole, &found.json, &models);
}

/// The table, recomputed from the items.
fn statistics_of_variants(folder: &Path, found: &Value) {
    let all = folder.join("all");
    let (methods, pairs, overall) =
        (lines(&all.join("methods.jsonl")), lines(&all.join("pairs.jsonl")), lines(&all.join("overall.jsonl")));
    assert_eq!((methods.len(), pairs.len(), overall.len()), (24, 12, 8 + 4));
    assert_eq!(
        (Value::from(methods.clone()), Value::from(pairs.clone())),
        (found["methods"].clone(), found["compared"].clone())
    );
    assert!(
        methods.iter().all(|method| (method["method"] == "silent") == method["parameters"].is_array()),
        "{methods:?}"
    );
    type Place = (String, String, String);
    let mut right: BTreeMap<Place, BTreeMap<u64, bool>> = BTreeMap::new();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    for row in lines(&all.join("items.jsonl")) {
        let cell = right.entry((text(&row, "task"), text(&row, "model"), text(&row, "method"))).or_default();
        cell.insert(row["item"].as_u64().unwrap(), row["correct"].as_bool().unwrap());
    }
    let share = |of: &Place| right[of].values().filter(|right| **right).count() as f64 / right[of].len() as f64;
    for method in &methods {
        let place = (text(method, "task"), text(method, "model"), text(method, "method"));
        assert!((method["accuracy"].as_f64().unwrap() - share(&place)).abs() < 1e-12 && right[&place].len() == 6);
    }
    let mut plain = Vec::new();
    for pair in &pairs {
        let side = |key: &str| &right[&(text(pair, "task"), text(pair, "model"), text(pair, key))];
        let (a, b) = (side("a"), side("b"));
        let more = a.iter().filter(|(item, right)| **right && !b[*item]).count() as u64;
        let fewer = a.iter().filter(|(item, right)| !**right && b[*item]).count() as u64;
        plain.push(mcnemar(more, fewer));
    }
    for (pair, holm) in pairs.iter().zip(corrected(&plain)) {
        assert!((pair["p_holm"].as_f64().unwrap() - holm).abs() < 1e-9, "{pair} {holm}");
    }
    for mean in &overall {
        let of_method = |method: &str| {
            let shares =
                right.keys().filter(|(_, model, own)| *model == text(mean, "model") && own == method).map(share);
            let shares: Vec<f64> = shares.collect();
            assert_eq!(shares.len(), 3);
            shares.iter().sum::<f64>() / 3.0
        };
        let expected = match mean["difference"].as_bool().unwrap() {
            false => of_method(mean["method"].as_str().unwrap()),
            true => of_method("debate") - of_method("silent"),
        };
        assert!((mean["mean"].as_f64().unwrap() - expected).abs() < 1e-12, "{mean} {expected}");
    }
}

/// Calls, tables, LaTeX, the diagnosis and the report of the whole comparison.
fn reads_of_variants(folder: &Path, found: &Value, models: &[&str]) {
    let asked: u64 = found["methods"].as_array().unwrap().iter().map(|method| method["calls"].as_u64().unwrap()).sum();
    let rows = |args: &[&str]| {
        let (said, stdout) = printed(folder, args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.notes);
        stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let calls = rows(&["calls", "all", "--json"]);
    assert_eq!(calls.len() as u64, asked);
    let own = calls.iter().filter(|call| call["run"] == "runs/sim_small/gsm8k-hard/silent@3/4").count();
    assert_eq!(own, rows(&["calls", "all/runs/sim_small/gsm8k-hard/silent@3/4", "--json"]).len());
    let (shown, listing) =
        printed(folder, &["calls", "all", "--run", "sim_large", "--item", "2", "--purpose", "reconsider"]);
    assert_eq!(shown.code, Some(0), "{}", shown.notes);
    let head =
        "### runs/sim_large/gsm8k-easy/debate@3/4 (task gsm8k-easy, model sim/large, method debate, members 3, seed 4)";
    assert!(listing.contains(head) && !listing.contains("sim/small"), "{listing}");
    let (none, _) = printed(folder, &["calls", "all", "--run", "nobody"]);
    assert!(
        none.code == Some(2) && none.notes.contains("its runs are runs/sim_small/gsm8k-easy/debate@3/4, "),
        "{}",
        none.notes
    );

    let items = rows(&["export", "all", "--format", "jsonl"]);
    assert_eq!(items.len(), 24 * 6);
    let own = lines(&folder.join("all/items.jsonl"));
    for (exported, own) in items.iter().zip(&own) {
        let keys = ["task", "model", "method", "members", "seed", "item", "answer", "correct"];
        keys.iter().for_each(|key| assert_eq!(exported[*key], own[*key], "{key}: {exported} {own}"));
    }
    assert_eq!(rows(&["export", "all", "--table", "calls", "--format", "jsonl"]).len() as u64, asked);
    assert_eq!(rows(&["export", "all", "--limit", "9", "--format", "jsonl"]).len(), 9);

    let latex = std::fs::read_to_string(folder.join("all/table.tex")).unwrap();
    assert_eq!(latex.matches("\\begin{table}").count(), 3, "{latex}");
    for words in [
        "  gsm8k-easy & sim/small & debate & 3 & ",
        " & silent & 3 & ",
        "  sim/weak & debate - silent & ",
        "Holm's method",
    ] {
        assert!(latex.contains(words), "{words}: {latex}");
    }
    let page = std::fs::read_to_string(folder.join("all/report.html")).unwrap();
    models.iter().for_each(|model| assert!(page.contains(model), "{model}"));
    assert!(page.contains("show_reasons=false"));
    std::fs::write(folder.join("all/report.html"), "<p>mine</p>").unwrap();
    assert!(printed(folder, &["verify", "all"]).0.notes.contains("`polity report` writes it again"));
    assert_eq!(printed(folder, &["report", "all"]).0.code, Some(0));
    assert!(std::fs::read_to_string(folder.join("all/report.html")).unwrap() == page, "the report differs");
    let verified = printed(folder, &["verify", "all"]).0;
    assert_eq!(verified.code, Some(0), "{}", verified.notes);
    let diagnosed = rows(&["diagnose", "all", "--json"]);
    assert_eq!(diagnosed[0]["runs"].as_array().unwrap().len(), 24);
}

/// Every method that works on such items, one after the other in the same comparison.
#[test]
fn a_comparison_of_all_methods_that_was_interrupted_ends_with_the_same_bytes() {
    let items = from_env("POLITY_COMPARED", 8).to_string();
    let folder = scratch("arena-methods");
    let listed = printed(&folder, &["list", "methods", "--json"]).0.json;
    let suits = |method: &&Value| {
        let name = method["name"].as_str().unwrap();
        let tried = ["eval", "--method", name, "--task", &gsm8k(), "--model", "sim/medium", "--limit", "1", "--json"];
        let tried = printed(&folder, &[&tried[..], &["--no-report", "--out", name]].concat()).0;
        assert!(matches!(tried.code, Some(0 | 2)), "{name}: {}", tried.notes);
        tried.code == Some(0)
    };
    let methods: Vec<&str> =
        listed.as_array().unwrap().iter().filter(suits).map(|method| method["name"].as_str().unwrap()).collect();
    assert!(methods.len() >= 15, "{methods:?}");
    let task = gsm8k();
    let args = ["--task", &task, "--model", "sim/medium", "--limit", &items, "--seed", "2", "--out", "all", "--json"];
    let args = [&["compare"][..], &methods, &args].concat();
    let (found, stdout) = printed(&folder, &args);
    assert_eq!(found.code, Some(0), "{}", found.notes);
    assert!(
        found.json["methods"].as_array().unwrap().iter().all(|method| !method["ledger"].as_array().unwrap().is_empty())
    );
    interrupted(&folder, &args, &stdout, &["5", "100", "400"], &[50, 120, 300, 80]);
}

/// `systems/maslab` quotes this test.
#[test]
fn a_leaderboard_of_all_methods_is_ranked_and_replayed() {
    let folder = scratch("arena-leaderboard");
    let choices = root().join("data/recorded/mmlu-pro/held-out.jsonl").display().to_string();
    for (out, task) in [("arithmetic", gsm8k()), ("choices", choices)] {
        let args = ["compare", "all", "--task", &task, "--model", "sim/medium", "--limit", "4", "--replay"];
        let (found, _) = printed(&folder, &[&args[..], &["--no-report", "--out", out, "--json"]].concat());
        assert_eq!(found.code, Some(0), "{}", found.notes);
        assert!(found.notes.contains("left out: judge: "), "{}", found.notes);
        let methods = found.json["methods"].as_array().unwrap();
        assert!(methods.len() >= 20, "{}", found.notes);
        let items = lines(&folder.join(out).join("items.jsonl"));
        let mut ranks: Vec<(f64, u64, String)> = Vec::new();
        for method in methods {
            let name = method["method"].as_str().unwrap();
            let marks: Vec<bool> =
                items.iter().filter(|row| row["method"] == name).filter_map(|row| row["correct"].as_bool()).collect();
            let right = marks.iter().filter(|right| **right).count() as f64 / marks.len() as f64;
            let tokens = method["tokens_in"].as_u64().unwrap() + method["tokens_out"].as_u64().unwrap();
            assert!(!marks.is_empty() && (method["accuracy"].as_f64().unwrap() - right).abs() < 1e-12, "{method}");
            assert!(tokens > 0 && method["cost_usd"].as_f64().unwrap() > 0.0, "{method}");
            assert_eq!(method["replayed"], "same", "{method}");
            ranks.push((right, tokens, name.to_owned()));
        }
        ranks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let header = |line: &&str| line.trim_start().starts_with("method") && line.contains("accuracy");
        let table = found.notes.lines().skip_while(|line| !header(line)).skip(1).take(ranks.len());
        let shown: Vec<&str> = table.map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(shown, ranks.iter().map(|rank| rank.2.as_str()).collect::<Vec<_>>(), "{}", found.notes);
    }
}

/// A method that is another one whenever it is opened.
struct Moody(u32);

impl Method for Moody {
    const NAME: &'static str = "moody";
    const SUMMARY: &'static str = "Another answer whenever it is opened";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "the answer" }];
    const DEFAULT_TEAM: DefaultTeam = DefaultTeam { members: 1, rounds: 1 };
    type Params = NoParams;

    fn open(_: NoParams, _: usize, _: u32) -> Result<Self, Invalid> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        Ok(Moody(OPENED.fetch_add(1, Ordering::Relaxed)))
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let answer = self.0.to_string();
        let parts = vec![Part::Text(context.item.question.clone())];
        let asked = vec![ChatMessage { role: Role::User, parts }];
        let _ = context.ask(Brief::new(0, asked, ResponseFormat::Text)).await;
        context.record(0, 0, &answer);
        context.end_round(&()).await?;
        Ok(Verdict { answer: Some(answer) })
    }
}

#[test]
fn a_method_whose_replay_differs_is_not_ranked() {
    let compared = |methods: [&str; 2], replay: bool, name: &str| {
        let mut registry = ::polity::registry();
        registry.method::<Moody>(LeafFiles::default());
        let contest = ::polity::Contest::new(methods, gsm8k(), "sim/medium").limit(2).registry(registry);
        let contest = contest.out(scratch("arena-moody").join(name));
        if replay { contest.replayed().run() } else { contest.run() }
    };
    compared(["direct", "moody"], false, "trusting").unwrap();
    compared(["direct", "chain-of-thought"], true, "steady").unwrap();
    let refused = compared(["direct", "moody"], true, "moody").unwrap_err().to_string();
    assert!(refused.contains("differs from round 0 on; its trace cannot be trusted"), "{refused}");
}

/// Inspect's own command and library can read the logs.
fn inspect_reads(folder: &Path, methods: &[Value]) {
    let script =
        Command::new("bash").args(["scripts/python-clients.sh", "inspect"]).current_dir(root()).output().unwrap();
    if script.status.code() == Some(75) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&script.stderr).trim());
        return;
    }
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let logs = folder.join("inspect");
    let inspect = |args: &[&str]| {
        let output = Command::new(root().join("target/venv-inspect/bin/inspect")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = inspect(&["log", "list", "--log-dir", arg(&logs)]);
    assert_eq!(listed.lines().filter(|line| line.trim().ends_with(".json")).count(), methods.len(), "{listed}");
    for entry in std::fs::read_dir(&logs).unwrap().take(1) {
        let path = entry.unwrap().path();
        let log: Value = serde_json::from_str(&inspect(&["log", "dump", arg(&path)])).unwrap();
        let method = methods.iter().find(|method| method["method"] == log["eval"]["task"]).unwrap();
        assert_eq!(log["results"]["scores"][0]["metrics"]["accuracy"]["value"], method["accuracy"]);
        assert_eq!(log["samples"].as_array().unwrap().len(), 30);
        let right = log["samples"].as_array().unwrap().iter().filter(|s| s["scores"]["polity"]["value"] == "C").count();
        assert!((right as f64 / 30.0 - method["accuracy"].as_f64().unwrap()).abs() < 1e-12);
    }
}

#[test]
fn repeats_are_runs_with_seeds_of_their_own_and_have_pass_k() {
    let folder = scratch("arena-repeats");
    let task = gsm8k();
    let args =
        ["compare", "single", "sc@3", "--task", &task, "--model", "sim/medium", "--limit", "12", "--repeats", "3"];
    let (found, _) = printed(&folder, &[&args[..], &["--out", "c", "--json"]].concat());
    assert_eq!(found.code, Some(0), "{}", found.notes);
    let rows = lines(&folder.join("c/items.jsonl"));
    assert_eq!(rows.len(), 2 * 3 * 12);
    for method in found.json["methods"].as_array().unwrap() {
        let right = |item: u64| {
            let own = rows.iter().filter(|row| row["method"] == method["method"] && row["item"] == item);
            own.filter(|row| row["correct"] == true).count() as f64
        };
        let mean = |of: &dyn Fn(f64) -> f64| (0..12).map(|item| of(right(item))).sum::<f64>() / 12.0;
        let (accuracy, pass) = (method["accuracy"].as_f64().unwrap(), &method["pass"]);
        assert!((accuracy - mean(&|c| c / 3.0)).abs() < 1e-12 && pass["1"].as_f64() == Some(accuracy), "{method}");
        // C(c, 2) / C(3, 2), and all three.
        assert!((pass["2"].as_f64().unwrap() - mean(&|c| c * (c - 1.0) / 6.0)).abs() < 1e-12, "{method}");
        assert!((pass["3"].as_f64().unwrap() - mean(&|c| f64::from(u8::from(c == 3.0)))).abs() < 1e-12, "{method}");
        assert_eq!(method["runs"].as_array().unwrap().len(), 3);
    }
    let cached = [&args[..], &["--out", "d", "--cache", "kept"]].concat();
    assert_eq!(printed(&folder, &cached).0.code, Some(2), "kept answers are no repeats");
}

#[test]
fn wrong_requests_are_told_what_to_do() {
    let folder = scratch("arena-wrong");
    std::fs::write(folder.join("open.jsonl"), "{\"question\": \"Why?\"}\n{\"question\": \"How?\"}\n").unwrap();
    let task = gsm8k();
    let on = ["--task", &task, "--model", "sim/medium"];
    let eval = |more: &[&'static str]| [&["eval"], &on[..], more].concat();
    let compare = |more: &[&'static str]| [&["compare"], more, &on[..]].concat();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (eval(&["--method", "debat"]), "did you mean `debate`"),
        (eval(&["--method", "sc@0"]), "1 to 10,000"),
        (eval(&["--method", "all"]), "there is no method `all`"),
        (eval(&["--method", "sc", "--limit", "201"]), "has only 200 items"),
        (eval(&["--method", "sc", "--limit", "0"]), "at least one item"),
        (vec!["eval", "--method", "sc", "--task", "no.jsonl", "--model", "sim/medium"], "no.jsonl"),
        (vec!["eval", "--method", "sc", "--task", "open.jsonl", "--model", "sim/medium"], "names no right answers"),
        (vec!["eval", "--method", "sc", "--task", &task], "no model is given"),
        (eval(&["--method", "sc", "-P", "metod.kind=x"]), "metod"),
        (compare(&["sc", "--equal", "tokens"]), "--equal needs at least two methods"),
        (compare(&["sc"]), "at least two methods"),
        (compare(&["sc", "sc"]), "named twice"),
        (compare(&["single", "smoa@1", "--limit", "5"]), "smoa@1"),
        (vec!["compare", "sc", "debate"], "--task"),
        (vec!["compare", "sc"], "--task"),
        (vec!["compare", "plain=debate:show_reasons=false", "sc@3"], "--task"),
    ];
    for (args, words) in cases {
        let (said, _) = printed(&folder, &[&args[..], &["--json"]].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.notes);
        assert!(said.notes.contains(words), "{args:?}: {}", said.notes);
        assert_eq!(said.json["status"], "error", "{args:?}");
    }
    assert!(!folder.join("runs").exists(), "nothing was begun");
}

#[test]
fn what_a_list_says_of_methods() {
    let (listed, _) = printed(&root(), &["list", "methods", "--json"]);
    let methods = listed.json.as_array().unwrap().clone();
    for method in &methods {
        assert!(method["usual"]["members"].as_u64().unwrap() > 0 && method["tools"].is_array(), "{method}");
        assert!(method["form"]["structure"].is_string() && method["parameters"].is_object(), "{method}");
    }
    let short = |name: &str| methods.iter().find(|m| m["name"] == name).unwrap()["short"].clone();
    assert_eq!((short("self-consistency"), short("chain-of-thought")), ("sc".into(), "single".into()));
    // Two methods with the same name would be an error.
    let mut names: Vec<&str> =
        methods.iter().flat_map(|m| [m["name"].as_str(), m["short"].as_str()]).flatten().collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// `systems/debate` quotes this test.
#[test]
fn methods_are_filtered_by_five_dimensions() {
    let names = |json: &Value| -> Vec<String> {
        json.as_array().unwrap().iter().map(|method| method["name"].as_str().unwrap().into()).collect()
    };
    let all = printed(&root(), &["list", "methods", "--json"]).0.json;
    for dimension in ["actors", "type", "structure", "strategy", "coordination"] {
        let value = |method: &Value| match dimension {
            "actors" => method["usual"]["members"].to_string(),
            other => method["form"][other].as_str().unwrap_or_else(|| panic!("{dimension}: {method}")).to_owned(),
        };
        let values: BTreeSet<String> = all.as_array().unwrap().iter().map(value).collect();
        assert!(values.len() > 1, "{dimension}: all methods are alike");
        let mut listed = Vec::new();
        for value in &values {
            let some =
                printed(&root(), &["list", "methods", "--json", "--where", &format!("{dimension}={value}")]).0.json;
            listed.extend(names(&some));
        }
        listed.sort_unstable();
        assert_eq!(listed, names(&all), "{dimension}");
    }
    let both = ["list", "methods", "--where", "structure=single", "--where", "actors=1", "--json"];
    assert!(names(&printed(&root(), &both).0.json).contains(&"direct".to_owned()));
    for (filter, words) in [
        ("structure=flat", "--where structure=flat: no method has this structure; there are centralised, "),
        ("shape=flat", "there is no dimension `shape`; there are actors, type, structure, strategy, coordination"),
        ("structure", "write DIMENSION=VALUE"),
    ] {
        let said = printed(&root(), &["list", "methods", "--where", filter]).0;
        assert!(said.code == Some(2) && said.notes.contains(words), "{filter}: {}", said.notes);
    }
    let worlds = printed(&root(), &["list", "worlds", "--where", "actors=1"]).0;
    assert!(
        worlds.code == Some(2) && worlds.notes.contains("only methods and templates have dimensions"),
        "{}",
        worlds.notes
    );
}

/// `systems/agentic-taxonomy` quotes this test.
#[test]
fn templates_are_chosen_by_what_they_have_and_name_claims_that_exist() {
    let list = |filters: &[&str]| {
        let filters: Vec<&str> = filters.iter().flat_map(|filter| ["--where", filter]).collect();
        printed(&root(), &[&["list", "templates", "--json"][..], &filters].concat()).0.json
    };
    let all = list(&[]);
    let names = |found: &Value, kind: &str| -> BTreeSet<String> {
        let all = found["templates"].as_array().unwrap().iter().filter(|template| template["kind"] == kind);
        all.map(|template| template["name"].as_str().unwrap().into()).collect()
    };
    let (single, team) = (list(&["kind=tool-agent"]), list(&["kind=multi-agent"]));
    assert_eq!((names(&single, "tool-agent"), names(&single, "multi-agent").len()), (names(&all, "tool-agent"), 0));
    assert_eq!((names(&team, "multi-agent"), names(&team, "tool-agent").len()), (names(&all, "multi-agent"), 0));
    assert_eq!(team["kinds"].as_array().unwrap().len(), 1);
    let whole = list(&["memory=yes", "decomposition=yes"]);
    assert!(!names(&whole, "multi-agent").is_empty() && names(&whole, "tool-agent").is_empty(), "{whole}");
    for template in all["templates"].as_array().unwrap() {
        // A single agent with tools has one member and an environment; a system of several has more.
        let path = root().join(template["scenario"].as_str().unwrap());
        let (_, tree) = polity_store::files::read_file(&path).unwrap();
        let scenario = tree.to_json();
        let agents = scenario["agents"].as_u64().unwrap_or(scenario["team"].as_array().map_or(0, Vec::len) as u64);
        let alone = template["kind"] == "tool-agent";
        assert_eq!(alone, agents == 1, "{template}");
        assert!(!alone || scenario["environment"].is_object(), "{template}");
        let valid = printed(&root(), &["validate", arg(&path)]).0;
        assert_eq!(valid.code, Some(0), "{}", valid.notes);
    }
    for kind in all["kinds"].as_array().unwrap() {
        assert!(!names(&all, kind["name"].as_str().unwrap()).is_empty(), "{kind}");
        let failures = kind["failures"].as_array().unwrap();
        assert!(failures.len() >= 3, "{kind}");
        for known in failures {
            let named = ["seen", "shown"].into_iter().flat_map(|key| known[key].as_array().unwrap());
            named.for_each(|claim| assert!(reproduces(claim.as_str().unwrap()), "{claim}"));
            assert!(!known["shown"].as_array().unwrap().is_empty(), "{known}");
        }
    }
    let said = printed(&root(), &["list", "templates", "--where", "memory=maybe"]).0;
    assert!(
        said.code == Some(2) && said.notes.contains("no template has this memory; there are no, yes"),
        "{}",
        said.notes
    );
}

/// Whether there is a claim of this name, SYSTEM/CLAIM, which was measured and is not marked as one that does not reproduce.
fn reproduces(name: &str) -> bool {
    let (system, claim) = name.split_once('/').unwrap();
    let shown = printed(&root(), &["systems", "show", system, "--json"]).0.json;
    let found = |key: &str| shown[key].as_array().unwrap().iter().find(|one| one["name"] == claim).cloned();
    match (found("claims"), found("elsewhere")) {
        (Some(here), _) => here["reproduces"] == true,
        (None, elsewhere) => elsewhere.is_some_and(|elsewhere| elsewhere["finding"] == "holds"),
    }
}

#[test]
fn an_evaluation_of_many_items_is_one_run_killed_or_not() {
    let items = from_env("POLITY_ITEMS", 200);
    let folder = scratch("arena-many");
    let one = std::fs::read_to_string(gsm8k()).unwrap();
    let many: String = one.lines().cycle().take(items as usize).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("many.jsonl"), many).unwrap();
    let eval = ["eval", "--method", "debate", "--task", "many.jsonl", "--model", "sim/medium", "--no-report", "--json"];
    let whole = printed(&folder, &[&eval[..], &["--out", "whole"]].concat()).0;
    assert_eq!((whole.code, &whole.json["items"]), (Some(0), &items.into()), "{}", whole.notes);
    assert_eq!(whole.json["calls"], items * 6);
    let killed = [&eval[..], &["--out", "killed"]].concat();
    for milliseconds in [40, 120, u64::from(items) / 10] {
        let mut process = command_in(&folder, &killed).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let mut went_on = printed(&folder, &killed).0;
    assert_eq!(went_on.code, Some(0), "{}", went_on.notes);
    (went_on.json["run"], went_on.json["runs"]) = (whole.json["run"].clone(), whole.json["runs"].clone());
    assert_eq!(went_on.json, whole.json);
    let runs = ["whole", "killed"].map(|run| tables(&RealDisk, &folder.join(run)));
    assert_same_tables(&runs[1], &runs[0], "killed and not");
}
