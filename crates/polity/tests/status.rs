//! `polity status` on runs in every state, and what is told of a run's progress where there is no terminal; runs that go on for longer.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "\
name: rings
rounds: 6
agents: 50
topology: {kind: ring, neighbours: 2}
world: {kind: opinion, low: 0, high: 1}
cohorts: [{policy: degroot}]
metrics: [{kind: mean, of: opinion}]
";

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).current_dir(folder);
    command
}

fn polity(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("rings.yaml"), SCENARIO).unwrap();
    home
}

fn status(folder: &Path, of: &str) -> Value {
    let said = polity(folder, &["status", of, "--json"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    serde_json::from_slice(&said.stdout).unwrap()
}

fn run<'a>(status: &'a Value, folder: &str) -> &'a Value {
    status["runs"].as_array().unwrap().iter().find(|run| run["run"] == folder).unwrap()
}

/// Waits until a condition holds, for a minute at most.
fn wait(what: &str, is_so: &mut dyn FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run of so many rounds that it does not end by itself.
fn endless(folder: &Path, out: &str) -> Child {
    let args = ["run", "rings.yaml", "--rounds", "1e8", "--out", out, "--log-format", "json"];
    command(folder, &args).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn runs_are_told_in_every_state() {
    let home = home();
    let folder = home.path();
    assert!(polity(folder, &["run", "rings.yaml", "--out", "runs/done"]).status.success());
    let mut active = endless(folder, "runs/active");
    wait("the run is under way", &mut || {
        let status = polity(folder, &["status", "runs/active", "--json"]);
        serde_json::from_slice::<Value>(&status.stdout).is_ok_and(|status| {
            status["runs"].as_array().is_some_and(|runs| runs.iter().any(|run| run["eta_s"].is_number()))
        })
    });
    let told = status(folder, "runs");
    let now = run(&told, "runs/active");
    assert_eq!((now["state"].as_str(), now["planned"].as_u64()), (Some("running"), Some(100_000_000)), "{now}");
    assert!(now["rounds"].as_u64().unwrap() > 0 && now["acts_per_s"].as_f64().unwrap() > 0.0, "{now}");
    let done = run(&told, "runs/done");
    assert_eq!(
        (done["state"].as_str(), done["rounds"].as_u64(), done["agents"].as_u64()),
        (Some("done"), Some(6), Some(50))
    );
    active.kill().unwrap();
    active.wait().unwrap();
    let killed = status(folder, "runs");
    let killed = run(&killed, "runs/active");
    assert_eq!(killed["state"], "stopped");
    assert_eq!(killed["why"], "polity resume runs/active");
    // A damaged run stays in the list, with what is wrong.
    let manifest = folder.join("runs/done/manifest.json");
    let changed = fs::read_to_string(&manifest).unwrap().replacen("rings", "other", 1);
    fs::write(manifest, changed).unwrap();
    let told = status(folder, "runs");
    assert_eq!(run(&told, "runs/done")["state"], "damaged");
    let table = text(&polity(folder, &["ps", "runs"]).stdout);
    assert!(table.contains("runs/active") && table.contains("stopped") && table.contains("damaged"), "{table}");
}

#[test]
fn a_sweep_is_one_line() {
    let home = home();
    let folder = home.path();
    let design = format!("{SCENARIO}design: {{seeds: 3, arms: {{a: {{}}, b: {{world.high: 2}}}}}}\n");
    fs::write(folder.join("sweep.yaml"), design).unwrap();
    let swept = polity(folder, &["sweep", "sweep.yaml", "--out", "runs/sweep"]);
    assert!(swept.status.success(), "{}", text(&swept.stderr));
    let told = status(folder, "runs");
    let sweep = &told["sweeps"][0];
    assert_eq!(
        (sweep["state"].as_str(), sweep["done"].as_u64(), sweep["runs"].as_u64()),
        (Some("done"), Some(6), Some(6))
    );
    let table = text(&polity(folder, &["status"]).stdout);
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("6 of 6 runs"), "{table}");
}

#[test]
fn a_comparison_is_one_line_that_says_how_to_continue_it() {
    let home = home();
    let folder = home.path();
    let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/gsm8k-test-200.jsonl").display().to_string();
    let args = ["compare", "single", "sc@2", "--task", &task, "--model", "sim/medium", "--limit", "4"];
    let cut = polity(folder, &[&args[..], &["--max-calls", "6", "--no-report", "--out", "runs/both"]].concat());
    assert_eq!(cut.status.code(), Some(7), "{}", text(&cut.stderr));
    let is = |state: &str, done: u64| {
        let told = status(folder, "runs");
        let both = &told["comparisons"][0];
        assert_eq!(both["comparison"], "runs/both");
        let found = (both["state"].as_str(), both["done"].as_u64(), both["runs"].as_u64());
        assert_eq!(found, (Some(state), Some(done), Some(2)), "{both}");
        let table = text(&polity(folder, &["status"]).stdout);
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(table.contains(&format!("{done} of 2 runs")), "{table}");
        assert_eq!(table.contains("polity resume runs/both"), state != "done", "{table}");
    };
    is("budget", 1);
    // A run that has not begun, as after an interrupt.
    fs::remove_dir_all(folder.join("runs/both/runs/sim_medium/gsm8k-test-200/self-consistency@2")).unwrap();
    is("stopped", 1);
    let resumed = polity(folder, &["resume", "runs/both", "--max-calls", "100", "--no-report"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    is("done", 2);
}

#[test]
fn lines_for_programs_name_the_run_and_the_time_left() {
    let home = home();
    let args = ["run", "rings.yaml", "--rounds", "1e8", "--out", "far", "--max-time", "6", "--log-format", "json"];
    let said = polity(home.path(), &args);
    let lines: Vec<Value> = text(&said.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let progress: Vec<&Value> = lines.iter().filter(|line| line["planned"].is_number()).collect();
    assert!(progress.len() >= 2, "{lines:?}");
    assert!(progress.iter().all(|line| line["run"] == "far"), "{progress:?}");
    let last = progress.last().unwrap();
    assert!(last["eta_s"].as_f64().unwrap() > 0.0 && last["message"].as_str().unwrap().contains(" left"), "{last}");
}

#[test]
fn a_run_goes_on_for_longer_as_a_fork_that_is_the_same_as_one_planned_longer() {
    let home = home();
    let folder = home.path();
    assert!(polity(folder, &["run", "rings.yaml", "--out", "short"]).status.success());
    let said = polity(folder, &["resume", "short", "--rounds", "9"]);
    assert_eq!(said.status.code(), Some(2));
    let said = text(&said.stderr);
    let command = said.lines().find_map(|line| line.trim().strip_prefix("polity ")).unwrap().to_owned();
    assert_eq!(command, "fork short --at 6 --rounds 9");
    let digest = |args: &[&str]| {
        let said = polity(folder, &[args, &["--json"]].concat());
        assert!(said.status.success(), "{}", text(&said.stderr));
        let line: Value = serde_json::from_slice(&said.stdout).unwrap();
        (line["digest"].as_str().unwrap().to_owned(), line["rounds"].as_u64())
    };
    let words: Vec<&str> = command.split(' ').collect();
    let longer = digest(&words);
    assert_eq!(longer, digest(&["run", "rings.yaml", "--rounds", "9", "--out", "long"]));
    assert_eq!(longer.1, Some(9));
    for (rounds, why) in [("6", "name a number of rounds above 6"), ("3", "name a number of rounds above 6")] {
        let said = polity(folder, &["resume", "short", "--rounds", rounds]);
        assert!(text(&said.stderr).contains(why), "{}", text(&said.stderr));
    }
}
