//! Designs beyond the full factorial: interactions and corrections against plain statistics, fractions, samples with their sensitivities,
//! models and tasks as factors, and seeds in batches until intervals are narrow, interrupted and not.

use crate::harness::{arg, command, polity, rules, scratch, team, verify};
use crate::sweep::{average, by_arm, csv, done, outcome, steady, sweep_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

type Row = BTreeMap<String, String>;

fn number(row: &Row, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key} of {row:?}"))
}

/// What a command prints that takes no flags of runs.
fn printed(args: &[&str]) -> String {
    let said = Command::new(env!("CARGO_BIN_EXE_polity")).args(args).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap()
}

fn report(sweep: &Path) -> String {
    printed(&["report", arg(sweep)]);
    fs::read_to_string(sweep.join("report.html")).unwrap()
}

/// 97.5 % of Student's distribution with 7 degrees of freedom is below this.
const SEVEN: f64 = 2.364_624_251_592_784;

/// Three factors of which two interact: the deeper people think, the less the fraction matters.
fn three_factors(seeds: u32) -> Value {
    let mut scenario = rules(60, 4);
    scenario["design"] = json!({
        "arms": {"small": {}, "large": {"agents": 90}},
        "factors": {
            "fraction": {"path": "world.fraction", "values": [0.7, 0.5]},
            "depth": {"path": "cohorts.thinkers.policy.mean", "values": {"shallow": 1, "deep": 3}},
        },
        "seeds": seeds, "metrics": ["guess.mean"],
    });
    scenario
}

#[test]
fn interactions_are_differences_of_differences_and_contrasts_are_corrected() {
    let folder = scratch("designs-interactions");
    let (out, said) = done(&folder, &three_factors(8), "sweep", &[]);
    let arms = by_arm(&out, "guess.mean");
    let rows = csv(&out.join("contrasts.csv"));
    let kinds = |kind: &str| rows.iter().filter(|row| row["contrast"] == kind).collect::<Vec<_>>();
    assert_eq!((kinds("arm").len(), kinds("main effect").len(), kinds("interaction").len()), (7, 3, 3));
    // The effect of depth at each fraction, over both sizes, seed by seed.
    let row = rows.iter().find(|row| row["factor"] == "depth" && row["with_factor"] == "fraction").unwrap();
    assert_eq!(
        ["level", "reference", "with_level", "with_reference"].map(|key| row[key].as_str()),
        ["deep", "shallow", "0.5", "0.7"]
    );
    let at = |fraction: &str, depth: &str, seed: usize| {
        average(&["small", "large"].map(|size| arms[&format!("{size},fraction={fraction},depth={depth}")][seed]))
    };
    let effect = |fraction: &str, seed: usize| at(fraction, "deep", seed) - at(fraction, "shallow", seed);
    let seeds: Vec<f64> = (0..8).map(|seed| effect("0.5", seed) - effect("0.7", seed)).collect();
    let mean = average(&seeds);
    let variance = seeds.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 7.0;
    let half = SEVEN * (variance / 8.0).sqrt();
    for (key, expected) in [("difference", mean), ("low", mean - half), ("high", mean + half)] {
        assert!((number(row, key) - expected).abs() < 1e-9, "{key}: {expected} in {row:?}");
    }
    // Holm's correction over the contrasts of a kind, written again: sorted, multiplied, never falling.
    for kind in ["arm", "main effect", "interaction"] {
        let mut family = kinds(kind);
        family.sort_by(|a, b| number(a, "p").total_cmp(&number(b, "p")));
        let mut least = 0.0_f64;
        for (rank, row) in family.iter().enumerate() {
            least = least.max((number(row, "p") * (family.len() - rank) as f64).min(1.0));
            assert!((number(row, "p_holm") - least).abs() < 1e-12, "{row:?}");
            let excludes = number(row, "low") > 0.0 || number(row, "high") < 0.0;
            assert_eq!(excludes, number(row, "p") < 0.05, "{row:?}");
            let verdict = match (excludes, least < 0.05) {
                (true, true) => "stable",
                (true, false) => "not after Holm",
                _ => "seed noise",
            };
            assert_eq!(row["verdict"], verdict, "{row:?}");
        }
    }
    // The terminal, the lines of JSON and the report say it in words; named arms are called arms.
    assert!(said.notes.contains("depth deep minus shallow, at fraction 0.5 minus at 0.7"), "{}", said.notes);
    assert!(said.notes.contains("arm: large minus small") && !said.notes.contains("named_arm"), "{}", said.notes);
    let printed = said.json["contrasts"].as_array().unwrap();
    assert!(printed.iter().any(|row| row["with_factor"] == "fraction" && row["p_holm"].is_number()), "{printed:?}");
    let page = report(&out);
    for words in ["<h2>Interactions</h2>", "depth by fraction", "depth by arm", "p (Holm)"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("named_arm"), "the report says `arm`");
}

#[test]
fn interactions_of_arms_with_their_own_seeds_are_those_of_welch() {
    let folder = scratch("designs-own-seeds");
    let mut scenario = rules(60, 4);
    scenario["design"] = json!({
        "factors": {"world.fraction": [0.7, 0.5], "rounds": [2, 4]},
        "seeds": 7, "metrics": ["guess.mean"], "common_random_numbers": false,
    });
    let (out, _) = done(&folder, &scenario, "sweep", &[]);
    let arms = by_arm(&out, "guess.mean");
    let means: Vec<f64> = ["0.7,rounds=2", "0.7,rounds=4", "0.5,rounds=2", "0.5,rounds=4"]
        .map(|arm| average(&arms[&format!("world.fraction={arm}")]))
        .to_vec();
    let row = csv(&out.join("contrasts.csv")).into_iter().find(|row| row["contrast"] == "interaction").unwrap();
    let expected = (means[3] - means[2]) - (means[1] - means[0]);
    assert!((number(&row, "difference") - expected).abs() < 1e-9, "{expected} {row:?}");
    let variance = |values: &Vec<f64>| {
        let mean = average(values);
        values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    };
    // Between 6 and 24 degrees of freedom.
    let error = (arms.values().map(variance).sum::<f64>() / 7.0).sqrt();
    let half = (number(&row, "high") - number(&row, "low")) / 2.0;
    assert!((2.063 * error..=2.447 * error).contains(&half), "{half} {error}");
    assert_eq!(row["paired"], "false");
}

// ------------------------------------------------------------------ fractions

#[test]
fn a_fraction_finds_main_effects_and_says_what_it_cannot_tell_apart() {
    let folder = scratch("designs-fraction");
    let mut scenario = rules(60, 3);
    scenario["design"] = json!({
        "factors": {
            "fraction": {"path": "world.fraction", "values": [0.7, 0.5]},
            "depth": {"path": "cohorts.thinkers.policy.mean", "values": [1, 2]},
            "noise": {"path": "cohorts.thinkers.policy.noise", "values": [0.0, 0.02]},
            "rate": {"path": "cohorts.learners.policy.rate", "values": [0.4, 0.6]},
        },
        "fraction": "1/2", "seeds": 6, "metrics": ["guess.mean"],
    });
    let (out, said) = done(&folder, &scenario, "half", &[]);
    assert_eq!(said.json["runs"], 8 * 6);
    assert!(
        said.notes.contains("design: 1/2 of all combinations, resolution IV: rate = fraction:depth:noise"),
        "{}",
        said.notes
    );
    assert!(said.notes.contains("aliased: fraction:depth = noise:rate"), "{}", said.notes);
    let rows = csv(&out.join("contrasts.csv"));
    let interactions: Vec<&Row> = rows.iter().filter(|row| row["contrast"] == "interaction").collect();
    // Six interactions in three groups of two.
    assert_eq!(interactions.len(), 3, "{interactions:?}");
    assert!(interactions.iter().all(|row| !row["aliases"].is_empty()), "{interactions:?}");
    // The main effect of the fraction is near that of the whole design, which runs twice as much.
    scenario["design"].as_object_mut().unwrap().remove("fraction");
    let (whole, _) = done(&folder, &scenario, "whole", &[]);
    let main = |rows: &[Row]| {
        number(
            rows.iter().find(|row| row["contrast"] == "main effect" && row["factor"] == "fraction").unwrap(),
            "difference",
        )
    };
    let (half, whole) = (main(&rows), main(&csv(&whole.join("contrasts.csv"))));
    assert!(half < -2.0 && (half - whole).abs() < 0.2 * whole.abs(), "{half} {whole}");
    assert!(report(&out).contains("cannot be told apart: fraction:depth = noise:rate"));
}

// ------------------------------------------------------------------ samples

fn sampled(sample: Value) -> Value {
    let mut scenario = rules(40, 3);
    scenario["design"] = json!({
        "factors": {
            "fraction": {"path": "world.fraction", "range": [0.3, 0.9]},
            "rate": {"path": "cohorts.learners.policy.rate", "range": [0.01, 1], "scale": "log"},
            "none": {"path": "snapshot.rounds", "range": [1, 3], "whole": true},
        },
        "sample": sample, "seeds": 2, "metrics": ["guess.mean"],
    });
    scenario
}

#[test]
fn a_sample_is_a_sweep_whose_sensitivities_are_those_of_its_table() {
    let folder = scratch("designs-sample");
    let (out, said) = done(&folder, &sampled(json!({"latin-hypercube": 24})), "one", &["--jobs", "1"]);
    assert_eq!(said.json["runs"], 48);
    let (other, _) = done(&folder, &sampled(json!({"latin-hypercube": 24})), "two", &["--jobs", "3"]);
    assert!(outcome(&out) == outcome(&other), "files differ");
    // Spearman's correlation by the formula without ties: 1 - 6 sum d^2 / (n (n^2 - 1)).
    let rows = csv(&out.join("runs.csv"));
    let mut arms: BTreeMap<String, (f64, Vec<f64>)> = BTreeMap::new();
    for row in &rows {
        let arm = arms.entry(row["arm"].clone()).or_insert((number(row, "fraction"), Vec::new()));
        arm.1.push(number(row, "value"));
    }
    let (x, y): (Vec<f64>, Vec<f64>) = arms.values().map(|(x, values)| (*x, average(values))).unzip();
    let rank = |values: &[f64], at: usize| values.iter().filter(|x| **x < values[at]).count() as f64;
    let squares: f64 = (0..24).map(|at| (rank(&x, at) - rank(&y, at)).powi(2)).sum();
    let expected = 1.0 - 6.0 * squares / (24.0 * (24.0 * 24.0 - 1.0));
    let sensitivity = csv(&out.join("sensitivity.csv"));
    assert_eq!(sensitivity.len(), 3);
    assert_eq!((sensitivity[0]["factor"].as_str(), sensitivity[0]["index"].as_str()), ("fraction", "rank correlation"));
    assert!((number(&sensitivity[0], "value") - expected).abs() < 1e-9, "{expected} {sensitivity:?}");
    assert!(expected > 0.8, "a larger fraction is guessed higher: {expected}");
    assert!(number(&sensitivity[2], "low") < 0.0 && number(&sensitivity[2], "high") > 0.0, "{sensitivity:?}");
    assert!(said.notes.contains("rank correlation") && said.json["sensitivity"][0]["factor"] == "fraction", "{said:?}");
    let page = report(&out);
    for words in
        ["<h2>Sensitivity</h2>", "a Latin hypercube of 24 points", "0.01 to 1 (log scale)", "<h2>Over the ranges</h2>"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(verify(&out).code, Some(0));
}

#[test]
fn sobol_indices_of_a_sweep_name_the_factor_that_matters() {
    let folder = scratch("designs-saltelli");
    let mut scenario = sampled(json!({"saltelli": 16}));
    scenario["design"]["factors"]["rounds"] = json!([2, 3]);
    scenario["design"]["seeds"] = json!(1);
    let (out, said) = done(&folder, &scenario, "sweep", &[]);
    // Two levels, two samples and one for each of three ranges.
    assert_eq!(said.json["runs"], 2 * 5 * 16);
    let rows = csv(&out.join("sensitivity.csv"));
    let found = |at: &str, factor: &str, index: &str| {
        let row = rows.iter().find(|row| row["at"] == at && row["factor"] == factor && row["index"] == index);
        number(row.unwrap_or_else(|| panic!("{at} {factor} {index} in {rows:?}")), "value")
    };
    assert_eq!(rows.len(), 2 * 3 * 2);
    for at in ["rounds=2", "rounds=3"] {
        assert!(found(at, "fraction", "total") > 0.5, "{rows:?}");
        assert!(found(at, "fraction", "total") > found(at, "rate", "total"), "{rows:?}");
        // What changes nothing has no share at all: with common seeds its runs are equal.
        assert_eq!((found(at, "none", "first order"), found(at, "none", "total")), (0.0, 0.0), "{rows:?}");
    }
}

// ------------------------------------------------------------------ models and tasks

#[test]
fn models_and_tasks_are_factors_with_labels_of_their_own() {
    let folder = scratch("designs-models-tasks");
    let mut scenario = team(&folder, "debate", 6, 2);
    fs::create_dir(folder.join("tasks")).unwrap();
    fs::rename(folder.join("items.jsonl"), folder.join("tasks/easy.jsonl")).unwrap();
    fs::write(
        folder.join("tasks/hard.jsonl"),
        "{\"question\": \"What is 17 times 23?\", \"answer\": \"391\", \"difficulty\": 3}\n",
    )
    .unwrap();
    scenario["items"]["file"] = json!("tasks/easy.jsonl");
    scenario["design"] = json!({
        "factors": {
            "model": {"path": "model", "values": ["sim/small", "sim/perfect"]},
            "task": {"path": "items.file", "values": {"easy": "tasks/easy.jsonl", "hard": "tasks/hard.jsonl"}},
        },
        "seeds": 6, "metrics": ["items.correct"],
    });
    let (out, said) = done(&folder, &scenario, "sweep", &[]);
    let rows = csv(&out.join("runs.csv"));
    assert_eq!(rows[0]["arm"], "model=sim/small,task=easy");
    let mut cells: Vec<(&str, &str)> = rows.iter().map(|row| (row["model"].as_str(), row["task"].as_str())).collect();
    cells.dedup();
    let expected = [("sim/small", "easy"), ("sim/small", "hard"), ("sim/perfect", "easy"), ("sim/perfect", "hard")];
    assert_eq!(cells, expected);
    assert!(
        said.notes.contains("model: sim/perfect minus sim/small") && said.notes.contains("task: hard minus easy"),
        "{said:?}"
    );
    assert!(said.notes.contains("task hard minus easy, at model sim/perfect minus at sim/small"), "{said:?}");
    // Each arm's calls went to its model, about its items.
    // The names of these arms have a slash, so their folders are numbered.
    let arm = |at: usize| out.join(format!("runs/_{at}/{}", rows[0]["seed"]));
    for (at, items) in [(0, 6), (1, 1), (2, 6), (3, 1)] {
        let text = printed(&["export", arg(&arm(at)), "--table", "items"]);
        assert_eq!(text.lines().count(), items + 1, "{at}: {text}");
    }
    // The sweep continues without the files, and a file that is missing is told with its factor.
    fs::remove_dir_all(folder.join("tasks")).unwrap();
    assert_eq!(polity(&["resume", arg(&out)]).text("status"), "done");
    let (_, missing) = sweep_of(&folder, &scenario, "missing", &[]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
    fs::create_dir(folder.join("tasks")).unwrap();
    fs::write(folder.join("tasks/easy.jsonl"), "{\"question\": \"1?\", \"answer\": \"1\", \"difficulty\": 0}\n")
        .unwrap();
    let (_, missing) = sweep_of(&folder, &scenario, "missing", &[]);
    let told = missing.text("error").replace(['\n', '│'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("tasks/hard.jsonl") && told.contains("model=sim/small,task=hard"), "{told}");
}

// ------------------------------------------------------------------ seeds until intervals are narrow

/// A design whose arms need more than one batch of seeds.
fn until(agents: u32, halfwidth: f64, max: u32) -> Value {
    let mut scenario = rules(agents, 4);
    scenario["cohorts"][0]["policy"]["noise"] = json!(0.2);
    scenario["design"] = json!({
        "factors": {"world.fraction": [0.7, 0.5]}, "metrics": ["guess.mean"],
        "seeds": {"until": {"metric": "guess.mean", "halfwidth": halfwidth, "batch": 3, "max": max}},
    });
    scenario
}

/// Half of the width of the widest interval of the arms over their first seeds.
fn widest(arms: &BTreeMap<String, Vec<f64>>, seeds: usize) -> f64 {
    let half = |values: &Vec<f64>| {
        let found = polity_stats::student(&values[..seeds]);
        (found.high.unwrap() - found.low.unwrap()) / 2.0
    };
    arms.values().map(half).fold(0.0, f64::max)
}

#[test]
fn seeds_are_added_until_every_interval_is_narrow() {
    let folder = scratch("designs-until");
    let mut all = until(30, 1e-9, 24);
    all["design"]["seeds"] = json!(24);
    let (plain, _) = done(&folder, &all, "plain", &[]);
    let arms = by_arm(&plain, "guess.mean");
    // A width that three batches need, by the plain sweep.
    let width = widest(&arms, 9);
    let expected = (1..=8).map(|batch| 3 * batch).find(|seeds| widest(&arms, *seeds) <= width).unwrap();
    let (out, said) = done(&folder, &until(30, width, 24), "stopped", &[]);
    let found = by_arm(&out, "guess.mean");
    assert!(found.values().all(|values| values.len() == expected), "{expected} {found:?}");
    assert!(
        found.iter().all(|(arm, values)| *values == arms[arm][..expected]),
        "the runs are those of the plain sweep"
    );
    let stopping = &said.json["stopping"];
    assert_eq!((stopping["seeds"].as_u64(), &stopping["narrow"]), (Some(expected as u64), &json!(true)), "{stopping}");
    assert!(said.notes.contains("slightly too narrow"), "{}", said.notes);
    assert!(report(&out).contains("where the rule stopped the sweep"));
    assert_eq!(verify(&out).code, Some(0));
    let like = outcome(&out);
    let again = polity(&["resume", arg(&out)]);
    assert_eq!((steady(&again), outcome(&out) == like), (steady(&said), true));
    // No width: the maximum stops it.
    let (most, said) = done(&folder, &until(30, 1e-9, 7), "most", &[]);
    assert!(by_arm(&most, "guess.mean").values().all(|values| values.len() == 7));
    assert!(said.json["stopping"]["narrow"] == json!(false) && said.notes.contains("the maximum"), "{said:?}");
    // The arms as they were run cannot be changed unseen.
    let file = out.join("arms.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replacen("world.fraction=0.5", "world.fraction=0.6", 1)).unwrap();
    let changed = polity(&["resume", arg(&out)]);
    assert!(changed.code == Some(3) && changed.notes.contains("was changed after the sweep ended"), "{changed:?}");
    fs::remove_file(&file).unwrap();
    assert_eq!(steady(&polity(&["resume", arg(&out)])), steady(&again));
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    // Differences need fewer seeds than arms, with common seeds.
    let mut differences = until(30, width, 24);
    differences["design"]["seeds"]["until"]["of"] = json!("differences");
    let (_, said) = done(&folder, &differences, "differences", &[]);
    assert!(said.json["stopping"]["seeds"].as_u64().is_some_and(|seeds| seeds <= expected as u64), "{said:?}");
    // A metric that no run measures is told at its place.
    let mut wrong = until(30, 1.0, 6);
    wrong["design"]["metrics"] = json!(["guess"]);
    wrong["design"]["seeds"]["until"]["metric"] = json!("guess.men");
    let (_, said) = sweep_of(&folder, &wrong, "wrong", &[]);
    assert!(said.code == Some(2) && said.text("error").contains("no run measures `guess.men`"), "{said:?}");
}

#[test]
fn a_rule_stops_a_killed_sweep_where_it_stops_another() {
    let folder = scratch("designs-until-kill");
    let scenario = until(900, 1e-9, 18);
    let (whole, like) = done(&folder, &scenario, "whole", &[]);
    let expected = outcome(&whole);
    let (file, out): (PathBuf, PathBuf) = (folder.join("scenario.yaml"), folder.join("killed"));
    for wanted in [2, 9, 20, 31] {
        let args = match out.join("sweep.json").exists() {
            true => vec!["resume", arg(&out)],
            false => vec!["sweep", arg(&file), "--out", arg(&out)],
        };
        let mut child = command(&args).spawn().unwrap();
        let begun = || {
            let arms = fs::read_dir(out.join("runs")).into_iter().flatten().flatten();
            arms.flat_map(|arm| fs::read_dir(arm.path()).into_iter().flatten()).count()
        };
        while child.try_wait().unwrap().is_none() && begun() < wanted {
            sleep(Duration::from_micros(300));
        }
        // SIGKILL; the process may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let said = polity(&["resume", arg(&out), "--jobs", "3"]);
    assert_eq!((said.code, steady(&said)), (Some(0), steady(&like)), "{said:?}");
    assert!(outcome(&out) == expected, "files differ");
}

// ------------------------------------------------------------------ searches

/// A search for the fraction and for how fast learners follow, from what a run with known values gave.
fn searching(folder: &Path, search: Value, common: bool) -> Value {
    let mut truth = rules(300, 4);
    truth["metrics"] = json!([{"kind": "mean", "of": "guess"}, {"kind": "quantiles", "of": "guess", "at": [0.1, 0.9]}]);
    truth["world"]["fraction"] = json!(FRACTION);
    truth["design"] = json!({"seeds": 20});
    let (out, _) = done(folder, &truth, "truth", &[]);
    let data = average(&by_arm(&out, "guess.mean")["base"]);
    let mut scenario = truth;
    scenario["design"] = json!({
        "factors": {
            "fraction": {"path": "world.fraction", "range": [0.2, 0.95]},
            "unused": {"path": "snapshot.rounds", "range": [1, 4], "whole": true},
        },
        "search": search, "seeds": if common { 2 } else { 1 }, "metrics": ["guess.mean"],
        "common_random_numbers": common,
    });
    scenario["design"]["search"]["toward"] = json!({"metric": "guess.mean", "value": data});
    scenario["agents"] = json!(100);
    scenario
}

/// The value with which data are made, to be found again.
const FRACTION: f64 = 0.63;

#[test]
fn a_search_finds_the_parameter_that_made_the_data() {
    let folder = scratch("designs-search");
    for by in ["nelder-mead", "cma-es", "random"] {
        let own = folder.join(by);
        fs::create_dir(&own).unwrap();
        let scenario = searching(&own, json!({"by": by, "evaluations": 40}), true);
        let (out, said) = done(&own, &scenario, "search", &[]);
        let found = &said.json["search"];
        let best = found["best"]["values"][0].as_f64().unwrap();
        assert!((best - FRACTION).abs() < 0.03, "{by}: {best} in {found}");
        // Every evaluation is a row, with the loss that its runs have.
        let rows = csv(&out.join("search.csv"));
        let means = by_arm(&out, "guess.mean");
        assert_eq!((rows.len(), means.len()), (found["evaluations"].as_u64().unwrap() as usize, rows.len()));
        let data = scenario["design"]["search"]["toward"]["value"].as_f64().unwrap();
        for row in &rows {
            assert!((number(row, "loss") - (average(&means[&row["arm"]]) - data).abs()).abs() < 1e-9, "{row:?}");
        }
        let least = rows.iter().map(|row| number(row, "loss")).fold(f64::INFINITY, f64::min);
        assert_eq!(found["best"]["loss"].as_f64(), Some(least));
        let page = report(&out);
        assert!(page.contains("<h2>Search</h2>") && page.contains("least loss so far"), "{by}");
        assert_eq!(verify(&out).code, Some(0));
        let like = outcome(&out);
        assert_eq!((steady(&polity(&["resume", arg(&out)])), outcome(&out) == like), (steady(&said), true), "{by}");
    }
}

#[test]
fn a_posterior_distribution_holds_the_parameter_that_made_the_data() {
    let folder = scratch("designs-abc");
    for (by, more) in [("abc", json!({"keep": 0.15})), ("abc-smc", json!({"population": 60}))] {
        let mut search = json!({"by": by, "evaluations": 200});
        search.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let own = folder.join(by);
        fs::create_dir(&own).unwrap();
        let scenario = searching(&own, search, false);
        let (out, said) = done(&own, &scenario, "search", &[]);
        let posterior = said.json["search"]["posterior"].as_array().unwrap();
        let end = |factor: usize, key: &str| posterior[factor][key].as_f64().unwrap();
        assert!(end(0, "low") < FRACTION && FRACTION < end(0, "high"), "{by}: {posterior:?}");
        assert!(end(0, "high") - end(0, "low") < 0.3, "{by}: narrower than the range of 0.75: {posterior:?}");
        // What does not matter stays as it was before.
        assert_eq!((end(1, "low"), end(1, "high")), (1.0, 4.0), "{by}: {posterior:?}");
        // The mean is that of the table, by its weights.
        let rows = csv(&out.join("search.csv"));
        let kept = rows.iter().filter(|row| !row["weight"].is_empty());
        let (sum, mean) = kept.fold((0.0, 0.0), |(sum, mean), row| {
            let weight = number(row, "weight");
            (sum + weight, mean + weight * number(row, "fraction"))
        });
        assert!((sum - 1.0).abs() < 1e-9 && (mean - end(0, "mean")).abs() < 1e-9, "{by}: {sum} {mean}");
    }
}

#[test]
fn a_point_that_cannot_be_run_leaves_the_runs_so_far() {
    let folder = scratch("designs-search-wrong-point");
    let mut scenario = rules(40, 3);
    scenario["design"] = json!({
        // The world takes fractions up to 2; the search begins at 1.6 and goes on at 2.3.
        "factors": {"fraction": {"path": "world.fraction", "range": [0.2, 3.0]}},
        "search": {"toward": {"metric": "guess.mean", "value": 20}, "by": "nelder-mead", "evaluations": 9},
        "seeds": 1, "metrics": ["guess.mean"],
    });
    let (out, said) = sweep_of(&folder, &scenario, "search", &[]);
    assert!(said.code == Some(2) && said.text("error").contains("in the run point-2"), "{said:?}");
    assert!(out.join("sweep.json").exists() && out.join("runs/point-1").exists(), "the first run is still there");
}

#[test]
fn a_killed_search_asks_for_the_same_points_again() {
    let folder = scratch("designs-search-kill");
    let scenario = searching(&folder, json!({"by": "cma-es", "evaluations": 30}), true);
    let (whole, like) = done(&folder, &scenario, "whole", &["--jobs", "1"]);
    let (file, out) = (folder.join("scenario.yaml"), folder.join("killed"));
    for wanted in [3, 8, 17, 25] {
        let args = match out.join("sweep.json").exists() {
            true => vec!["resume", arg(&out)],
            false => vec!["sweep", arg(&file), "--out", arg(&out)],
        };
        let mut child = command(&args).spawn().unwrap();
        while child.try_wait().unwrap().is_none()
            && fs::read_dir(out.join("runs")).into_iter().flatten().count() < wanted
        {
            sleep(Duration::from_micros(300));
        }
        // SIGKILL; the process may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let said = polity(&["resume", arg(&out), "--jobs", "3"]);
    assert_eq!((said.code, steady(&said)), (Some(0), steady(&like)), "{said:?}");
    assert!(outcome(&out) == outcome(&whole), "files differ");
    assert!(out.join("search.csv").exists() && out.join("arms.json").exists());
    // A target that no run measures is told, and the folder is free again.
    let mut wrong = scenario;
    wrong["design"]["metrics"] = json!(["guess"]);
    wrong["design"]["search"]["toward"]["metric"] = json!("guess.men");
    for _ in 0..2 {
        let (_, said) = sweep_of(&folder, &wrong, "wrong", &[]);
        assert!(said.code == Some(2) && said.text("error").contains("no run measures `guess.men`"), "{said:?}");
    }
}
