//! Tests of sweeps: their tables against runs made alone and against plainly written statistics, kills, parallelism, bad designs, limits;
//! and the comparison of runs.
//!
//! The long form: `bash scripts/campaigns.sh sweep-kills`.

use crate::harness;

use crate::harness::{
    Said, arg, assert_same_tables, command, engine, from_env, polity, rules, said, scratch, tables, team,
};
use crate::harness::{prepared, write_scenario};
use polity_driver::sweep::{self, Limits, WatchSweep};
use polity_kernel::rng::{Draws, Stream};
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk, SimDisk};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A small society in a 2 x 3 design.
pub(crate) fn design(agents: u32, seeds: u32) -> Value {
    let mut scenario = rules(agents, 4);
    scenario["design"] = json!({
        "factors": {
            "world.fraction": [0.7, 0.5],
            "depth": {"path": "cohorts.thinkers.policy.mean", "values": [1, 1.5, 2]},
        },
        "seeds": seeds,
    });
    scenario
}

pub(crate) fn sweep_of(folder: &Path, scenario: &Value, name: &str, more: &[&str]) -> (PathBuf, Said) {
    let file = write_scenario(folder, scenario);
    let out = folder.join(name);
    let mut args = vec!["sweep", arg(&file), "--out", arg(&out)];
    args.extend(more);
    let said = polity(&args);
    (out, said)
}

pub(crate) fn done(folder: &Path, scenario: &Value, name: &str, more: &[&str]) -> (PathBuf, Said) {
    let (out, said) = sweep_of(folder, scenario, name, more);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{said:?}");
    assert_eq!(said.json["runs"], said.json["done"], "{said:?}");
    (out, said)
}

/// Returns the rows of a CSV file by column.
pub(crate) fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    let mut lines = text.lines();
    let names = cells(lines.next().unwrap());
    lines.map(|line| names.iter().cloned().zip(cells(line)).collect()).collect()
}

/// Everything in a sweep's folder that must not depend on how it was made.
pub(crate) fn outcome(sweep: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["sweep.json", "runs.csv", "summary.csv", "contrasts.csv"] {
        files.insert(name.to_string(), fs::read(sweep.join(name)).unwrap());
    }
    // Of some designs only.
    for name in ["sensitivity.csv", "search.csv", "arms.json", "evaluation.csv"] {
        files.extend(fs::read(sweep.join(name)).ok().map(|bytes| (name.to_string(), bytes)));
    }
    for table in ["runs", "summary", "contrasts"] {
        let part = sweep.join("tables").join(table).join("part-000000-000000.parquet");
        files.insert(table.to_string(), fs::read(part).unwrap());
    }
    files
}

/// The object on the last line, without what may differ.
pub(crate) fn steady(said: &Said) -> Value {
    let mut json = said.json.clone();
    for key in ["wall_seconds", "peak_memory_mb", "sweep", "jobs"] {
        json.as_object_mut().unwrap().remove(key);
    }
    json
}

pub(crate) fn folders(sweep: &Path) -> Vec<PathBuf> {
    let inside = |path: &Path| fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let mut runs: Vec<PathBuf> = inside(&sweep.join("runs")).iter().flat_map(|arm| inside(arm)).collect();
    runs.sort();
    runs
}

// ------------------------------------------------------------------ what a sweep says

#[test]
fn a_sweep_says_what_its_runs_say_alone() {
    let folder = scratch("sweep-alone");
    let (out, said) = done(&folder, &design(60, 2), "sweep", &[]);
    let rows = csv(&out.join("runs.csv"));
    // 6 arms, 2 seeds, guess.mean and the world's own target.
    assert_eq!((rows.len(), said.json["runs"].as_u64()), (24, Some(12)));
    let file = folder.join("scenario.yaml");
    for (i, row) in rows.iter().enumerate().filter(|(_, row)| row["metric"] == "guess.mean") {
        let alone = folder.join(format!("alone-{i}"));
        let (fraction, depth) = (&row["world.fraction"], &row["depth"]);
        assert_eq!(row["arm"], format!("world.fraction={fraction},depth={depth}"));
        let set = [format!("world.fraction={fraction}"), format!("cohorts.thinkers.policy.mean={depth}")];
        let run =
            polity(&["run", arg(&file), "--out", arg(&alone), "-P", &set[0], "-P", &set[1], "--seed", &row["seed"]]);
        assert_eq!(run.text("digest"), row["digest"], "{row:?}");
        let metrics = &tables(&RealDisk, &alone)["metrics"];
        let (polity_store::tables::ColumnData::Text(names), polity_store::tables::ColumnData::F64(values)) =
            (&metrics[1].1, &metrics[2].1)
        else {
            panic!("{metrics:?}")
        };
        let last = names.iter().zip(values).rfind(|(name, _)| name.as_deref() == Some("guess.mean")).unwrap();
        assert_eq!(row["value"].parse::<f64>().ok(), *last.1, "{row:?}");
        // Except for what is recorded, it is the same run as in the sweep.
        let within = out.join("runs").join(&row["arm"]).join(&row["seed"]);
        let (within, mut alone) = (tables(&RealDisk, &within), tables(&RealDisk, &alone));
        assert!(["acts", "agents", "states"].iter().all(|table| alone.remove(*table).is_some()));
        assert_same_tables(&within, &alone, &row["arm"]);
    }
    // One run of the scenario is the same with and without its design.
    let with = polity(&["run", arg(&file), "--out", arg(&folder.join("with"))]);
    let without = polity(&["run", arg(&write_scenario(&folder, &rules(60, 4))), "--out", arg(&folder.join("without"))]);
    assert_eq!(with.text("digest"), without.text("digest"));
    assert!(with.notes.contains("polity sweep"), "{with:?}");
    let compared = compared(&[&folder.join("with"), &folder.join("without")]);
    assert_eq!(compared.text("status"), "same", "{compared:?}");
    assert_eq!(compared.json["parameters"], json!({}), "{compared:?}");
}

pub(crate) fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = average(values);
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Student's interval by the book, with the quantile from a table.
fn plainly(values: &[f64], quantile: f64) -> (f64, f64) {
    let half = quantile * (variance(values) / values.len() as f64).sqrt();
    (average(values) - half, average(values) + half)
}

/// 97.5 % of Student's distribution with 7 degrees of freedom is below this.
const SEVEN: f64 = 2.364_624_251_592_784;

fn close(row: &BTreeMap<String, String>, key: &str, expected: f64) {
    let found: f64 = row[key].parse().unwrap();
    assert!((found - expected).abs() < 1e-9, "{key}: {expected} in {row:?}");
}

/// Values by arm, in the order of seeds, from the table of runs.
pub(crate) fn by_arm(out: &Path, metric: &str) -> BTreeMap<String, Vec<f64>> {
    let mut arms: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in csv(&out.join("runs.csv")).iter().filter(|row| row["metric"] == metric) {
        arms.entry(row["arm"].clone()).or_default().push(row["value"].parse().unwrap());
    }
    arms
}

#[test]
fn means_intervals_and_contrasts_are_those_of_the_table() {
    let folder = scratch("sweep-statistics");
    let (out, said) = done(&folder, &design(60, 8), "sweep", &[]);
    let arms = by_arm(&out, "guess.mean");
    let summary = csv(&out.join("summary.csv"));
    assert_eq!(summary.len(), 12);
    for row in summary.iter().filter(|row| row["metric"] == "guess.mean") {
        let values = &arms[&row["arm"]];
        let (low, high) = plainly(values, SEVEN);
        close(row, "mean", average(values));
        close(row, "low", low);
        close(row, "high", high);
        assert_eq!(row["n"], "8");
    }
    // The printed values are those in the files.
    let printed = said.json["arms"].as_array().unwrap();
    assert_eq!(printed.len(), summary.len());
    for (printed, row) in printed.iter().zip(&summary) {
        assert_eq!((printed["arm"].as_str(), printed["metric"].as_str()), (Some(&*row["arm"]), Some(&*row["metric"])));
        close(row, "low", printed["low"].as_f64().unwrap());
    }
    let contrasts = csv(&out.join("contrasts.csv"));
    // 5 arms against the baseline, 1 + 2 levels and 2 interactions, for two metrics.
    assert_eq!(contrasts.len(), 20);
    let own = |row: &&BTreeMap<String, String>| row["metric"] == "guess.mean" && row["contrast"] != "interaction";
    for row in contrasts.iter().filter(own) {
        // Main effects are means over the cells with a level.
        let cells = |level: &str| -> Vec<&Vec<f64>> {
            let part = format!("{}={level}", row["factor"]);
            match row["contrast"].as_str() {
                "arm" => vec![&arms[level]],
                _ => {
                    arms.iter().filter(|(arm, _)| arm.split(',').any(|p| p == part)).map(|(_, values)| values).collect()
                }
            }
        };
        let (plus, minus) = (cells(&row["level"]), cells(&row["reference"]));
        assert_eq!(
            plus.len(),
            match row["factor"].as_str() {
                "" => 1,
                "depth" => 2,
                _ => 3,
            }
        );
        let at =
            |cells: &[&Vec<f64>], seed: usize| average(&cells.iter().map(|values| values[seed]).collect::<Vec<_>>());
        let pairs: Vec<f64> = (0..8).map(|seed| at(&plus, seed) - at(&minus, seed)).collect();
        let (low, high) = plainly(&pairs, SEVEN);
        close(row, "difference", average(&pairs));
        close(row, "low", low);
        close(row, "high", high);
        let corrected: f64 = row["p_holm"].parse().unwrap();
        let verdict = match (low > 0.0 || high < 0.0, corrected < 0.05) {
            _ if low == 0.0 && high == 0.0 => "the same",
            (true, true) => "stable",
            (true, false) => "not after Holm",
            _ => "seed noise",
        };
        assert_eq!((row["verdict"].as_str(), row["paired"].as_str()), (verdict, "true"));
    }
}

#[test]
fn arms_with_seeds_of_their_own_are_compared_by_their_own_variances() {
    let folder = scratch("sweep-own-seeds");
    let mut scenario = rules(60, 4);
    scenario["design"] = json!({
        "arms": {"control": {}, "same": {"name": "x"}, "low": {"world.fraction": 0.3}}, "baseline": "control",
        "seeds": 7, "common_random_numbers": false, "metrics": ["guess"], "read": {"mean_of_last": 2},
    });
    let (_, refused) = sweep_of(&folder, &scenario, "refused", &[]);
    assert!(refused.notes.contains("`name` is the same in all arms of a design"), "{refused:?}");
    scenario["design"]["arms"].as_object_mut().unwrap().remove("same");
    let (out, _) = done(&folder, &scenario, "sweep", &[]);
    let seeds: BTreeSet<String> = csv(&out.join("runs.csv")).iter().map(|row| row["seed"].clone()).collect();
    assert_eq!(seeds.len(), 14, "no seed is in both arms: {seeds:?}");
    let arms = by_arm(&out, "guess.mean");
    let (control, low) = (&arms["control"], &arms["low"]);
    // Welch's interval lies between those of 6 and of 12 degrees of freedom.
    let half = |quantile: f64| quantile * ((variance(low) + variance(control)) / 7.0).sqrt();
    let (most, least) = (half(2.446_911_851_144_979), half(2.178_812_829_663_418));
    let contrasts = csv(&out.join("contrasts.csv"));
    assert_eq!(contrasts.len(), 1);
    close(&contrasts[0], "difference", average(low) - average(control));
    let number = |key: &str| contrasts[0][key].parse::<f64>().unwrap();
    let found = (number("high") - number("low")) / 2.0;
    assert!((least..=most).contains(&found), "{least} {found} {most}");
    assert_eq!((contrasts[0]["paired"].as_str(), contrasts[0]["verdict"].as_str()), ("false", "stable"));
    // Read over the last two of four rounds.
    let metrics = harness::tables(&RealDisk, &out.join("runs/control/7"))["metrics"].clone();
    let (polity_store::tables::ColumnData::Text(names), polity_store::tables::ColumnData::F64(values)) =
        (&metrics[1].1, &metrics[2].1)
    else {
        panic!("{metrics:?}")
    };
    let all: Vec<f64> =
        names.iter().zip(values).filter(|(n, _)| n.as_deref() == Some("guess.mean")).map(|(_, v)| v.unwrap()).collect();
    assert!((average(&all[2..]) - control[0]).abs() < 1e-9);
}

#[test]
fn a_team_is_swept_over_models() {
    let folder = scratch("sweep-team");
    let mut scenario = team(&folder, "debate", 6, 2);
    scenario["design"] = json!({"factors": {"model": ["sim/small", "sim/large"]}, "seeds": 3});
    let (out, said) = done(&folder, &scenario, "sweep", &[]);
    assert_eq!(said.json["simulated"], true);
    // The items are in the sweep's folder, so it can continue without its scenario.
    fs::remove_file(folder.join("items.jsonl")).unwrap();
    fs::remove_dir_all(out.join("runs/model=sim")).ok();
    fs::remove_dir_all(folders(&out).pop().unwrap()).unwrap();
    let like = outcome(&out);
    let again = polity(&["resume", arg(&out)]);
    assert_eq!((again.code, steady(&again)), (Some(0), steady(&said)), "{again:?}");
    assert_eq!(outcome(&out), like);
}

// ------------------------------------------------------------------ order and kills

#[test]
fn the_number_of_runs_at_once_reaches_no_result() {
    let folder = scratch("sweep-jobs");
    let scenario = design(300, 4);
    let (one, first) = done(&folder, &scenario, "one", &["--jobs", "1"]);
    let (three, second) = done(&folder, &scenario, "three", &["--jobs", "3"]);
    assert_eq!((first.json["jobs"].as_u64(), second.json["jobs"].as_u64()), (Some(1), Some(3)));
    assert_eq!(steady(&first), steady(&second));
    assert!(outcome(&one) == outcome(&three), "files differ");
    for (a, b) in folders(&one).iter().zip(folders(&three)) {
        assert_eq!(a.strip_prefix(&one).unwrap(), b.strip_prefix(&three).unwrap());
        assert_same_tables(&tables(&RealDisk, a), &tables(&RealDisk, &b), arg(a));
    }
    let page = |sweep: &Path| {
        let said = Command::new(env!("CARGO_BIN_EXE_polity")).args(["report", arg(sweep)]).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        fs::read_to_string(sweep.join("report.html")).unwrap()
    };
    let (a, b) = (page(&one), page(&three));
    assert!(
        a == b
            && a.contains("Sweep report")
            && a.contains("<h4 id=\"figure-1-1-title\">guess.mean</h4>")
            && !a.contains("<script")
    );
}

fn count_files(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    entries.flatten().map(|e| if e.path().is_dir() { count_files(&e.path()) } else { 1 }).sum()
}

#[test]
fn a_sweep_survives_kills() {
    let folder = scratch("sweep-kill");
    let scenario = design(400, 4);
    let began = Instant::now();
    let (whole, like) = done(&folder, &scenario, "whole", &[]);
    let (wall, files) = (began.elapsed(), count_files(&whole));
    let expected = outcome(&whole);
    let file = folder.join("scenario.yaml");
    let (mut kills, mut number, mut begun, mut over) = (0, 0, 0, 0);
    while kills < from_env("POLITY_KILLS", 12) {
        let mut draws = Draws::new(5, Stream::Driver, number, 0);
        let out = folder.join(format!("killed-{number}"));
        number += 1;
        let next = || match out.join("sweep.json").exists() {
            true => vec!["resume", arg(&out), "--jobs", "3"],
            false => vec!["sweep", arg(&file), "--out", arg(&out)],
        };
        let mut moments = Vec::new();
        while moments.is_empty() || draws.chance(0.5) {
            let (by_time, at) = (draws.chance(0.5), draws.unit());
            moments.push((by_time, at));
            let began = Instant::now();
            let mut child = command(&next()).spawn().unwrap();
            loop {
                let reached = match by_time {
                    true => began.elapsed() >= wall.mul_f64(at),
                    false => count_files(&out) as f64 >= files as f64 * at,
                };
                if reached || child.try_wait().unwrap().is_some() {
                    break;
                }
                sleep(Duration::from_micros(200));
            }
            // SIGKILL; the process may have ended by itself.
            let _ = child.kill();
            child.wait().unwrap();
            kills += 1;
            begun += u32::from(out.join("sweep.json").exists());
            over += u32::from(out.join("contrasts.csv").exists());
        }
        let what = format!("sweep {number}, {moments:?}");
        let said = polity(&next());
        assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{what}: {said:?}");
        assert_eq!(steady(&said), steady(&like), "{what}");
        assert!(outcome(&out) == expected, "{what}: files differ");
        for (a, b) in folders(&out).iter().zip(folders(&whole)) {
            assert_same_tables(&tables(&RealDisk, a), &tables(&RealDisk, &b), &what);
        }
        fs::remove_dir_all(&out).unwrap();
    }
    eprintln!("{kills} kills, {begun} of them of sweeps that had begun, {over} after the tables; {wall:?} each");
    assert!(begun > 3, "{begun}");
}

#[test]
fn ctrl_c_stops_a_sweep_that_goes_on() {
    let folder = scratch("sweep-interrupt");
    let scenario = design(3000, 4);
    let (whole, like) = done(&folder, &scenario, "whole", &[]);
    let (file, out) = (folder.join("scenario.yaml"), folder.join("stopped"));
    let mut child = command(&["sweep", arg(&file), "--out", arg(&out)]).spawn().unwrap();
    while child.try_wait().unwrap().is_none() && !out.join("runs/world.fraction=0.7,depth=2").exists() {
        sleep(Duration::from_micros(500));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = said(&child.wait_with_output().unwrap());
    assert_eq!((stopped.code, stopped.text("status")), (Some(6), "stopped"), "{stopped:?}");
    assert!(stopped.json["done"].as_u64() < Some(24) && stopped.notes.contains("continue with: polity resume"));
    let locked = fs::File::open(out.join("lock")).unwrap();
    locked.lock().unwrap();
    let refused = polity(&["resume", arg(&out)]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.notes.contains("another process is working on"), "{refused:?}");
    drop(locked);
    let resumed = polity(&["resume", arg(&out)]);
    assert_eq!(steady(&resumed), steady(&like));
    assert!(outcome(&out) == outcome(&whole));
}

// ------------------------------------------------------------------ learners

/// Interquartile means and probabilities of improvement in a sweep's table, against plain loops over its runs.
#[test]
fn arms_are_evaluated_as_learners() {
    let folder = scratch("sweep-evaluation");
    let mut scenario = design(300, 7);
    scenario["design"]["metrics"] = json!(["guess.mean"]);
    let (out, said) = done(&folder, &scenario, "out", &[]);
    let runs = csv(&out.join("runs.csv"));
    let value = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f64>().unwrap();
    let of = |arm: &str| -> Vec<f64> {
        let own = runs.iter().filter(|row| row["metric"] == "guess.mean" && row["arm"] == arm);
        own.map(|row| value(row, "value")).collect()
    };
    let improvement = |of: &[f64], over: &[f64]| {
        let won = |x: f64, y: f64| {
            if x > y {
                1.0
            } else if x == y {
                0.5
            } else {
                0.0
            }
        };
        let sum: f64 = of.iter().map(|x| over.iter().map(|y| won(*x, *y)).sum::<f64>()).sum();
        sum / (of.len() * over.len()) as f64
    };
    let rows = csv(&out.join("evaluation.csv"));
    // Six arms, one other level of the first factor, two of the second.
    assert!(rows.iter().all(|row| row["metric"] == "guess.mean"));
    assert_eq!(rows.len(), 6 + 1 + 2);
    assert_eq!(said.json["evaluation"].as_array().unwrap().len(), rows.len());
    let baseline = of(&rows[0]["level"]);
    assert_eq!((rows[0]["reference"].as_str(), rows[0]["improvement"].as_str()), ("", ""));
    for row in &rows[..6] {
        let mut own = of(&row["level"]);
        assert_eq!((own.len(), row["n"].as_str(), row["factor"].as_str()), (7, "7", ""));
        if row["level"] != rows[0]["level"] {
            assert!((value(row, "improvement") - improvement(&own, &baseline)).abs() < 1e-12, "{row:?}");
            let (low, high) = (value(row, "improvement_low"), value(row, "improvement_high"));
            assert!((0.0..=1.0).contains(&low) && low <= high && high <= 1.0, "{row:?}");
        }
        own.sort_by(f64::total_cmp);
        // The middle half of seven: without one at each end.
        let iqm = own[1..6].iter().sum::<f64>() / 5.0;
        assert!((value(row, "iqm") - iqm).abs() < 1e-9 * iqm.abs().max(1.0), "{row:?}");
        assert!(value(row, "iqm_low") <= iqm && iqm <= value(row, "iqm_high"), "{row:?}");
    }
    // A level of a factor against the first, over the levels of the other as tasks.
    let fraction = rows.iter().find(|row| row["factor"] == "world.fraction").unwrap();
    let tasks = ["1", "1.5", "2"].map(|depth| {
        let arm = |fraction: &str| of(&format!("world.fraction={fraction},depth={depth}"));
        improvement(&arm("0.5"), &arm("0.7"))
    });
    assert_eq!(
        (fraction["level"].as_str(), fraction["reference"].as_str(), fraction["iqm"].as_str()),
        ("0.5", "0.7", "")
    );
    assert!((value(fraction, "improvement") - tasks.iter().sum::<f64>() / 3.0).abs() < 1e-12, "{fraction:?} {tasks:?}");
    let written = Command::new(env!("CARGO_BIN_EXE_polity")).args(["report", arg(&out)]).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    for words in
        ["Evaluation over seeds", "Performance profiles", "interquartile mean, 95 % interval", "P(improvement)"]
    {
        assert!(report.contains(words), "{words}");
    }
    // A design that names no metric has no such table.
    let (plain, said) = done(&folder, &design(20, 2), "plain", &[]);
    assert!(!plain.join("evaluation.csv").exists() && said.json["evaluation"] == json!([]));
}

/// In a vote an expert is worth something, and a layman less than nothing: ties go to the first member, the expert.
#[test]
fn leaving_one_out_shows_what_each_member_is_worth() {
    let folder = scratch("sweep-leave-out");
    let mut scenario = team(&folder, "self-consistency", 120, 1);
    scenario.as_object_mut().unwrap().remove("agents");
    scenario["team"] = json!([
        {"name": "expert", "model": "sim/perfect"},
        {"name": "layman", "model": "sim/small"},
        {"name": "novice", "model": "sim/small"},
    ]);
    scenario["design"] = json!({"leave_one_out": "members", "seeds": 8, "metrics": ["items.correct"]});
    let (out, _) = done(&folder, &scenario, "members", &[]);
    let worth = |arm: &str| {
        let rows = csv(&out.join("contrasts.csv"));
        let row = rows.iter().find(|row| row["level"] == arm && row["reference"] == "whole");
        let row = row.unwrap_or_else(|| panic!("{arm}: {rows:?}"));
        ["low", "high"].map(|key| row[key].parse::<f64>().unwrap())
    };
    assert!(worth("without-expert")[1] < 0.0, "{:?}", worth("without-expert"));
    for arm in ["without-layman", "without-novice"] {
        assert!(worth(arm)[0] > 0.0, "{arm}: {:?}", worth(arm));
    }
    // The same as a team that never had the member.
    let mut smaller = scenario.clone();
    smaller["team"].as_array_mut().unwrap()[2]["role"] = json!("absent");
    smaller.as_object_mut().unwrap().remove("design");
    let alone = polity(&["run", arg(&write_scenario(&folder, &smaller)), "--out", arg(&folder.join("alone"))]);
    let rows = csv(&out.join("runs.csv"));
    assert!(
        rows.iter().any(|row| row["arm"] == "without-novice" && row["digest"] == alone.text("digest")),
        "{alone:?}"
    );

    scenario["method"] = json!({"kind": "mixture-of-agents"});
    scenario["rounds"] = json!(2);
    let chair = json!({"name": "chair", "model": "sim/large", "role": "aggregator"});
    scenario["team"] = json!([chair, {"name": "one"}, {"name": "other"}]);
    scenario["design"]["leave_one_out"] = json!("roles");
    let (out, _) = done(&folder, &scenario, "roles", &[]);
    let arms: BTreeSet<String> = csv(&out.join("runs.csv")).iter().map(|row| row["arm"].clone()).collect();
    assert_eq!(arms.iter().map(String::as_str).collect::<Vec<_>>(), ["whole", "without-aggregator"]);
    // Another member combines the proposals: the chair is never asked.
    let digests = |arm: &str| -> BTreeSet<String> {
        let rows = csv(&out.join("runs.csv")).into_iter();
        rows.filter(|row| row["arm"] == arm).map(|row| row["digest"].clone()).collect()
    };
    assert!(digests("whole").is_disjoint(&digests("without-aggregator")));
    // Without roles there is nothing to leave out.
    scenario["team"][0].as_object_mut().unwrap().remove("role");
    let (_, said) = sweep_of(&folder, &scenario, "none", &[]);
    assert!(said.code == Some(2) && said.text("error").contains("no member of the team has a role"), "{said:?}");
}

// ------------------------------------------------------------------ what is refused

#[test]
fn wrong_designs_are_shown_where_they_are_wrong() {
    let folder = scratch("sweep-wrong");
    let base = "name: w\nrounds: 2\nagents: 20\nworld: {kind: guess-average, fraction: 0.5}\n\
                cohorts: [{name: all, policy: {kind: level-k, mean: 1}}]\nmetrics: [{kind: mean, of: guess}]\n";
    let cases = [
        (
            "design: {factors: {world.frction: [0.5, 0.7]}, seeds: 2}",
            "7:20",
            "unknown key `frction`; did you mean `fraction`?",
        ),
        ("design: {factors: {wrld.fraction: [0.5]}, seeds: 2}", "7:20", "unknown key `wrld`; did you mean `world`?"),
        ("design: {factors: {world.fraction: [0.5, 7]}, seeds: 2}", "7:42", "must lie in 0..=2, is 7"),
        ("design: {factors: {cohorts.al.policy.mean: [1]}, seeds: 2}", "7:20", "did you mean `all`?"),
        ("design: {factors: {rounds: [1, 2]}, seeds: 0}", "7:44", "there must be at least one seed"),
        ("design: {factors: {rounds: []}, seeds: 1}", "7:28", "a factor needs at least one value"),
        ("design: {factors: {rounds: [1]}, sedes: 1}", "7:34", "unknown key `sedes`; did you mean `seeds`?"),
        ("design: {arms: {a: {}, b: {rounds: 2}}, seeds: 1}", "7:16", "the arms `a` and `b` are the same scenario"),
        ("design: {read: {round: 9}, seeds: 1}", "7:16", "round 9 is never reached"),
        ("design: {read: {mean_of_last: 9}, seeds: 1}", "7:16", "which is fewer than 9"),
        ("design: {factors: {rounds: [1, 1.0]}, seeds: 1}", "7:32", "is listed twice"),
        (
            "design: {factors: {\"cohorts[0].policy.mean\": [1], cohorts.all.policy: [level-k]}, seeds: 1}",
            "7:51",
            "`cohorts.all.policy`, or a part of it",
        ),
        (
            "design: {leave_one_out: members, arms: {a: {}}, seeds: 1}",
            "7:40",
            "`leave_one_out` makes the arms itself; remove one of the two",
        ),
        ("design: {leave_one_out: roles, seeds: 1}", "7:25", "the scenario lists no `team`"),
        ("design: {arms: {a: {rounds: two}}, seeds: 1}", "7:29", "expected a whole number, found text `two`"),
    ];
    let file = folder.join("wrong.yaml");
    for (design, place, message) in cases {
        fs::write(&file, format!("{base}{design}\n")).unwrap();
        let out = folder.join("out");
        let said = polity(&["sweep", arg(&file), "--out", arg(&out)]);
        assert_eq!((said.code, out.exists()), (Some(2), false), "{design}: {said:?}");
        let shown = said.text("error");
        assert!(shown.contains(message) && shown.contains(&format!("wrong.yaml:{place}]")), "{design}: {}", said.notes);
        let validated = Command::new(env!("CARGO_BIN_EXE_polity")).args(["validate", arg(&file)]).output().unwrap();
        assert_eq!(validated.status.code(), Some(2), "{design}");
        assert!(String::from_utf8_lossy(&validated.stderr).contains(message), "{design}");
    }
    fs::write(&file, base).unwrap();
    let none = polity(&["sweep", arg(&file), "--out", arg(&folder.join("out"))]);
    assert!(none.code == Some(2) && none.text("error").contains("there is no `design:`"), "{none:?}");
    // An edit that a factor or the list of seeds overrides is refused.
    fs::write(&file, format!("{base}design: {{factors: {{world.fraction: [0.5, 0.7]}}, seeds: [3, 4]}}\n")).unwrap();
    for (edit, message) in
        [(["-P", "world.fraction=0.2"], "sets `world.fraction` in every arm"), (["--seed", "9"], "lists its seeds")]
    {
        let said = polity(&["sweep", arg(&file), "--out", arg(&folder.join("out")), edit[0], edit[1]]);
        assert!(said.code == Some(2) && said.text("error").contains(message), "{said:?}");
    }
    fs::write(&file, base).unwrap();
    // A number of seeds is design enough.
    let seeds = polity(&["sweep", arg(&file), "--seeds", "3", "--seed", "5", "--out", arg(&folder.join("seeds"))]);
    assert_eq!((seeds.json["runs"].as_u64(), seeds.json["arms"][0]["arm"].as_str()), (Some(3), Some("base")));
    assert!(seeds.notes.contains("3 seeds are few") && folder.join("seeds/runs/base/7").exists());
}

#[test]
fn a_metric_that_no_run_measures_is_told_and_the_folder_is_free_again() {
    let folder = scratch("sweep-metric");
    let mut scenario = design(20, 1);
    scenario["design"]["metrics"] = json!(["target", "guess.men"]);
    let (out, said) = sweep_of(&folder, &scenario, "sweep", &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.text("error").contains("no run measures `guess.men`; did you mean `guess.mean`?"), "{said:?}");
    assert!(
        said.text("error").contains("design.metrics[1]") && said.text("error").contains("scenario.yaml:"),
        "{said:?}"
    );
    scenario["design"]["metrics"] = json!(["target"]);
    let (_, said) = done(&folder, &scenario, "sweep", &[]);
    assert!(said.json["arms"].as_array().unwrap().iter().all(|row| row["metric"] == "target"));
    let (_, again) = sweep_of(&folder, &scenario, "sweep", &[]);
    assert!(again.code == Some(3) && again.notes.contains("already holds a sweep; resume it"), "{again:?}");
    // A run that cannot be resumed is named.
    let run = folders(&out).pop().unwrap();
    let journal = run.join("journal/00000001.journal");
    let whole = fs::read(&journal).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x40;
    fs::write(&journal, damaged).unwrap();
    let stopped = polity(&["resume", arg(&out)]);
    assert!(stopped.code == Some(3) && stopped.notes.contains(&format!("in the run {}", run.display())), "{stopped:?}");
    fs::write(&journal, whole).unwrap();
    assert_eq!(polity(&["resume", arg(&out)]).text("status"), "done");
    // Missing metrics of a run are an error, and complete files are not rewritten.
    let written = fs::metadata(out.join("summary.csv")).unwrap().modified().unwrap();
    fs::rename(run.join("tables/metrics"), run.join("tables/elsewhere")).unwrap();
    let lost = polity(&["resume", arg(&out)]);
    let gone = format!("{}: it is gone", run.join("tables/metrics/part-000000-000001.parquet").display());
    assert!(lost.code == Some(3) && lost.notes.contains(&gone), "{lost:?}");
    fs::rename(run.join("tables/elsewhere"), run.join("tables/metrics")).unwrap();
    assert_eq!(polity(&["resume", arg(&out)]).text("status"), "done");
    assert_eq!(fs::metadata(out.join("summary.csv")).unwrap().modified().unwrap(), written);
    // A run of another scenario is not mistaken for its own.
    let file = write_scenario(&folder, &rules(20, 5));
    fs::remove_dir_all(&run).unwrap();
    assert_eq!(polity(&["run", arg(&file), "--out", arg(&run)]).code, Some(0));
    let other = polity(&["resume", arg(&out)]);
    assert!(other.code == Some(3) && other.notes.contains("is a run of another scenario"), "{other:?}");
}

#[test]
fn memory_and_jobs_are_bounded() {
    let folder = scratch("sweep-memory");
    let (out, said) = sweep_of(&folder, &design(50_000, 1), "sweep", &["--memory", "60"]);
    assert_eq!((said.code, out.exists()), (Some(2), false), "{said:?}");
    let told = said.text("error").replace(['\n', '│'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("it needs about 85 MB of memory, but only 60 MB is available"), "{told}");
    // 40 MB for the process and twice the minimum of 1 MB per run fit; a third run does not (the measurement of the first run can only
    // reduce that).
    let (_, said) = done(&folder, &design(30, 1), "small", &["--memory", "42", "--jobs", "3"]);
    assert!(said.json["jobs"].as_u64() <= Some(2), "{said:?}");
}

struct Quiet;

impl WatchSweep for Quiet {
    fn progress(&mut self, _: usize, _: usize) {}
}

#[test]
fn a_sweep_that_does_not_fit_the_disk_is_refused() {
    let folder = scratch("sweep-disk");
    let scenario = prepared(&design(200, 3), &folder);
    let limits = Limits { jobs: NonZeroUsize::new(2).unwrap() };
    let out = Path::new("sweep");
    let begin =
        |disk: &SimDisk| sweep::begin(&engine(Arc::new(disk.clone()), 1, None), &scenario, out, limits, &mut Quiet);
    let resume = |disk: &SimDisk| sweep::resume(&engine(Arc::new(disk.clone()), 1, None), out, limits, &mut Quiet);
    let whole = SimDisk::default();
    let like = begin(&whole).unwrap();
    // Before the start: 18 runs of at least 32 kB.
    let disk = SimDisk::default();
    disk.set_capacity(500_000);
    let refused = begin(&disk).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("the 18 runs of this design need at least about 576 kB, but only 500 kB are free"), "{text}");
    assert!(matches!(&refused, DriveError::Disk { source, .. } if source.kind() == std::io::ErrorKind::StorageFull));
    assert!(!disk.exists(out).unwrap(), "nothing was written");
    // After the first run: something else has filled the disk meanwhile.
    let disk = SimDisk::default();
    disk.set_capacity(1_200_000);
    struct Fill<'a>(&'a SimDisk);
    impl WatchSweep for Fill<'_> {
        fn progress(&mut self, _: usize, _: usize) {
            self.0.set_capacity(200_000);
        }
    }
    let full = engine(Arc::new(disk.clone()), 1, None);
    let refused = sweep::begin(&full, &scenario, out, limits, &mut Fill(&disk)).unwrap_err().to_string();
    assert!(refused.contains("1 of 18 runs are done; judging by their size, the others need about"), "{refused}");
    assert!(refused.contains("polity resume sweep"), "{refused}");
    // With free space again, it continues to the same end.
    disk.set_capacity(u64::MAX);
    let resumed = resume(&disk).unwrap();
    assert_eq!((&resumed.digest, &resumed.arms, &resumed.contrasts), (&like.digest, &like.arms, &like.contrasts));
    // A full disk in a run or a table is reported, and the sweep can be resumed, too.
    for capacity in [30_000, 1_160_000] {
        let disk = SimDisk::default();
        let first = begin(&disk).unwrap();
        disk.remove_dir_all(&out.join("runs/world.fraction=0.5,depth=2")).unwrap();
        disk.set_capacity(capacity);
        let error = resume(&disk).unwrap_err().to_string();
        assert!(error.contains("free") || error.contains("full"), "{error}");
        disk.set_capacity(u64::MAX);
        let resumed = resume(&disk.after_kill()).unwrap();
        assert_eq!(resumed.digest, first.digest);
    }
}

// ------------------------------------------------------------------ comparing runs

fn compared(runs: &[&Path]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    said(&command.arg("compare").args(runs).arg("--json").output().unwrap())
}

#[test]
fn runs_are_compared() {
    let folder = scratch("sweep-compare");
    let file = write_scenario(&folder, &rules(100, 6));
    let (a, b, c) = (folder.join("a"), folder.join("b"), folder.join("c"));
    assert_eq!(polity(&["run", arg(&file), "--out", arg(&a)]).code, Some(0));
    assert_eq!(polity(&["fork", arg(&a), "--at", "3", "-P", "world.fraction=0.2", "--out", arg(&b)]).code, Some(0));
    assert_eq!(
        polity(&["run", arg(&file), "--out", arg(&c), "-P", "cohorts.learners.policy.rate=0.1", "--rounds", "2"]).code,
        Some(0)
    );
    let said = compared(&[&a, &b]);
    assert_eq!((said.code, said.text("status")), (Some(0), "different"), "{said:?}");
    assert_eq!(said.json["first_difference"], 3, "{said:?}");
    let parameters = said.json["parameters"].as_object().unwrap();
    assert_eq!(parameters.keys().collect::<Vec<_>>(), ["changes[0].at", "changes[0].set.\"world.fraction\""]);
    assert_eq!(parameters["changes[0].at"], json!([null, 3]));
    let rows = said.json["metrics"]["guess.mean"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[2]["values"][0], rows[2]["values"][1]);
    assert_ne!(rows[5]["values"][0], rows[5]["values"][1]);
    let said = compared(&[&a, &b, &c]);
    assert_eq!(said.json["parameters"]["cohorts.learners.policy.rate"], json!([null, null, 0.1]), "{said:?}");
    assert_eq!(said.json["parameters"]["rounds"], json!([6, 6, 2]));
    assert_eq!((&said.json["rounds"], said.json["first_difference"].as_u64()), (&json!([6, 6, 2]), Some(1)));
    assert_eq!(said.json["metrics"]["target"][4]["values"][2], Value::Null);
    assert!(said.notes.contains("round 1 is the first whose digests differ"), "{said:?}");
    let none = compared(&[&a, &folder]);
    assert!(none.code == Some(3) && none.notes.contains("holds no run"), "{none:?}");
    let (sweep, _) = done(&folder, &design(20, 1), "sweep", &[]);
    let refused = compared(&[&a, &sweep]);
    assert!(refused.code == Some(3) && refused.notes.contains("is a sweep"), "{refused:?}");
}

// ------------------------------------------------------------------ a published table

/// What the members answered, by item, round and member.
type Answers = BTreeMap<u64, BTreeMap<u64, BTreeMap<u64, f64>>>;

fn answered(run: &Path) -> Answers {
    let acts = &tables(&RealDisk, run)["acts"];
    let column = |name: &str| &acts.iter().find(|(column, _)| column == name).unwrap().1;
    let (items, rounds, members) = (column("item").numbers(), column("round").numbers(), column("agent").numbers());
    let (kinds, texts) = (column("kind").texts(), column("text").texts());
    let mut said = Answers::new();
    let places = items.iter().zip(&rounds).zip(&members);
    for (((item, round), member), (kind, text)) in places.zip(kinds.iter().zip(&texts)) {
        assert_eq!(kind.as_deref(), Some("answer"), "every member answers");
        let [item, round, member] = [item, round, member].map(|place| place.unwrap() as u64);
        let answer = text.as_ref().unwrap().parse().unwrap();
        said.entry(item).or_default().entry(round).or_default().insert(member, answer);
    }
    said
}

/// How often each answer was given.
fn counted(answers: &BTreeMap<u64, f64>) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    answers.values().for_each(|answer| *counts.entry(answer.to_bits()).or_default() += 1);
    counts
}

/// The four figures of a cell, written again after the paper: accuracy, tokens, conformity and majority.
fn figures(run: &Path, patterns: &[&str]) -> [Option<f64>; 4] {
    let said = answered(run);
    let all = tables(&RealDisk, run);
    let numbers = |table: &str, name: &str| {
        let (_, data) = all[table].iter().find(|(column, _)| column == name).unwrap();
        data.numbers().into_iter().map(Option::unwrap).sum::<f64>()
    };
    let (_, items) = all["items"].iter().find(|(column, _)| column == "item").unwrap();
    let (_, gold) = all["items"].iter().find(|(column, _)| column == "gold").unwrap();
    let gold: BTreeMap<u64, f64> = items
        .numbers()
        .into_iter()
        .zip(gold.texts())
        .map(|(item, gold)| (item.unwrap() as u64, gold.unwrap().parse().unwrap()))
        .collect();
    let (mut right, mut conformity, mut majority) = (Vec::new(), Vec::new(), Vec::new());
    for (item, rounds) in &said {
        assert_eq!(rounds.len(), 4);
        let last = &rounds[&3];
        let counts = counted(last);
        let most = *counts.values().max().unwrap();
        majority.push(f64::from(u8::from(2 * most > last.len())));
        // The society's answer is the most common one; of several, that of the first member who gave one of them.
        let answer = last.values().find(|answer| counts[&answer.to_bits()] == most).unwrap();
        right.push(f64::from(u8::from(*answer == gold[item])));
        let (mut conform, mut of) = (0, 0);
        for round in (1..4).filter(|round| patterns[*round as usize - 1] == "debate") {
            let before = counted(&rounds[&(round - 1)]);
            let most = *before.values().max().unwrap();
            of += 3;
            let leads = |answer: &&f64| most > 1 && before.get(&answer.to_bits()) == Some(&most);
            conform += rounds[&round].values().filter(leads).count();
        }
        if of > 0 {
            conformity.push(f64::from(conform as u32) / f64::from(of));
        }
    }
    let tokens = numbers("calls", "tokens_in") + numbers("calls", "tokens_out");
    let conformity = (!conformity.is_empty()).then(|| average(&conformity));
    [Some(average(&right)), Some(tokens), conformity, Some(average(&majority))]
}

/// The table of MachineSoM: four societies by eight sequences, each with its four figures, which a second implementation recomputes from
/// what the members answered and from the table of calls.
#[test]
fn the_table_of_four_societies_by_eight_sequences_has_four_figures_a_cell() {
    let folder = scratch("sweep-societies");
    let out = folder.join("table");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/machine-som/table.yaml");
    let small = ["items.count=10", "record.acts=true", "record.calls=true"];
    let edits = small.iter().flat_map(|edit| ["-P", *edit]);
    let args: Vec<&str> = ["sweep", arg(&file), "--out", arg(&out), "--seeds", "1"].into_iter().chain(edits).collect();
    let said = polity(&args);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{said:?}");
    let names = ["items.correct", "run.tokens", "conformity", "majority"];
    let printed: BTreeMap<(&str, &str), Option<f64>> = said.json["arms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ((row["arm"].as_str().unwrap(), row["metric"].as_str().unwrap()), row["mean"].as_f64()))
        .collect();
    let rows = csv(&out.join("runs.csv"));
    let (mut cells, mut different) = (BTreeMap::new(), BTreeSet::new());
    for row in rows.iter().filter(|row| row["metric"] == "majority") {
        let patterns = [&row["first"], &row["second"], &row["third"]].map(String::as_str);
        let found = figures(&out.join("runs").join(&row["arm"]).join(&row["seed"]), &patterns);
        for (name, expected) in names.iter().zip(found) {
            let told = printed.get(&(row["arm"].as_str(), *name)).copied().flatten();
            let same = match (told, expected) {
                (Some(told), Some(expected)) => (told - expected).abs() < 1e-9,
                (told, expected) => told == expected,
            };
            assert!(same, "{name} of {}: printed {told:?}, recomputed {expected:?}", row["arm"]);
        }
        assert_eq!(found[2].is_none(), patterns == ["reflection"; 3], "{patterns:?}");
        different.insert(found.map(|figure| figure.map(f64::to_bits)));
        cells.insert((row["named_arm"].clone(), patterns.map(str::to_owned)), found);
    }
    assert_eq!(cells.len(), 4 * 8);
    assert!(different.len() > 8, "the figures differ from cell to cell: {}", different.len());
}
