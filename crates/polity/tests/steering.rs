//! Active runs are steered: they step, tell how far they are, and go on with other parameters. All of it is in the journal, so that a
//! replay gives the same digest.

use crate::harness::{scratch, write_scenario};
use crate::mock_server::{Process, last_line, polity, text};
use serde_json::{Value, json};
use std::path::Path;

fn society(rounds: u32) -> Value {
    json!({
        "name": "steered", "seed": 1, "rounds": rounds, "agents": 3000,
        "world": {"kind": "guess-average", "fraction": 0.9},
        "cohorts": [{"policy": {"kind": "adaptive", "rate": 0.01}}],
        "metrics": [{"kind": "mean", "of": "guess"}],
        "record": {"messages": true},
    })
}

fn ctl(folder: &Path, order: &[&str]) -> (bool, String) {
    let output = polity(folder, &[&["ctl", "run"], order].concat(), &[]);
    (output.status.success(), text(&output.stderr))
}

/// The rounds that a run says are complete.
fn rounds(folder: &Path) -> u32 {
    let (told, words) = ctl(folder, &["status"]);
    assert!(told, "{words}");
    words.split("round ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("run/manifest.json")).unwrap()).unwrap()
}

/// A run that is paused after some round.
fn paused(name: &str) -> (std::path::PathBuf, Process) {
    let folder = scratch(name);
    let file = write_scenario(&folder, &society(1_000_000));
    let mut process = Process::start(&folder, &["run", file.to_str().unwrap(), "--out", "run"], &[]);
    process.until("the pause", || ctl(&folder, &["pause"]).0);
    (folder, process)
}

#[test]
fn a_run_steps_and_goes_on_with_other_parameters_as_if_they_had_been_planned() {
    let (folder, mut process) = paused("steering");
    // It pauses at the end of a round that may be under way.
    let mut before = rounds(&folder);
    process.until("the end of the round", || std::mem::replace(&mut before, rounds(&folder)) == before);
    let (taken, words) = ctl(&folder, &["step", "3"]);
    assert!(taken && words.contains("3 round"), "{words}");
    process.until("three rounds", || rounds(&folder) == before + 3);
    assert!(ctl(&folder, &["status"]).1.contains("paused"));
    for (edit, why) in [
        ("world.fractoin=0.1", "did you mean `fraction`"),
        ("world.fraction=7", "fraction"),
        ("agents=5", "cannot change during a run"),
        ("world.fraction", "PATH=VALUE"),
    ] {
        let (taken, words) = ctl(&folder, &["change", edit]);
        assert!(!taken && words.contains(why), "{edit}: {words}");
    }
    let (taken, words) = ctl(&folder, &["change", "world.fraction=0.1"]);
    assert!(taken && words.contains("from the next round on"), "{words}");
    process.until("some rounds", || rounds(&folder) > before + 10);
    assert!(ctl(&folder, &["stop"]).0);
    let (summary, notes, code) = process.end();
    assert_eq!((summary["status"].as_str(), code), (Some("stopped"), Some(6)), "{notes}");
    let replayed = polity(&folder, &["replay", "run", "--json"], &[]);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    let changes = manifest(&folder)["scenario"]["changes"].clone();
    assert_eq!(changes, json!([{"at": before + 3, "set": {"world.fraction": 0.1}}]));
    planned_is_the_same(&folder, &summary, &[]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Planned from the start, the same changes give the same digest as the steered run.
fn planned_is_the_same(folder: &Path, summary: &Value, args: &[&str]) {
    let mut planned = society(summary["rounds"].as_u64().unwrap() as u32);
    planned["changes"] = manifest(folder)["scenario"]["changes"].clone();
    let file = write_scenario(folder, &planned);
    let run = [&["run", file.to_str().unwrap(), "--out", "planned", "--json"], args].concat();
    let other = last_line(&polity(folder, &run, &[]));
    let chain = |run: &str| text(&polity(folder, &["export", run, "--table", "rounds"], &[]).stdout);
    let chains = |run: &str| -> Vec<String> {
        chain(run).lines().skip(1).map(|line| line.split(',').nth(7).unwrap().to_string()).collect()
    };
    let (steered, planned) = (chains("run"), chains("planned"));
    assert_eq!(steered.last(), planned.get(steered.len() - 1), "{other}");
    assert_eq!(summary["digest"], planned.last().unwrap().as_str(), "{other}");
    std::fs::remove_dir_all(folder.join("planned")).unwrap();
}

/// A message changes the scenario, so the run begins again with the new one. It is under way all the time: no order in between is lost.
#[test]
fn orders_in_quick_succession_are_all_taken() {
    let (folder, mut process) = paused("steering-quick");
    for k in 0..40 {
        let (taken, words) = ctl(&folder, &["message", "--from", "7", "--to", "3", &format!("message {k}")]);
        assert!(taken, "{k}: {words}");
    }
    assert!(ctl(&folder, &["stop"]).0);
    let (summary, notes, _) = process.end();
    assert_eq!(summary["status"], "stopped", "{notes}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_message_that_is_sent_to_a_run_is_part_of_its_scenario() {
    let (folder, mut process) = paused("steering-message");
    for (order, why) in [
        (&["message", "--from", "3000", "hello"][..], "there is no agent 3000"),
        (&["message", "--from", "1", "--to", "2,4000", "hello"], "there is no agent 4000"),
        (&["message", "--from", "1", ""], "a text has 1 to"),
    ] {
        let (taken, words) = ctl(&folder, order);
        assert!(!taken && words.contains(why), "{order:?}: {words}");
    }
    let said = "Guess: \"90\", {x: 1} # both";
    for order in
        [&["message", "--from", "7", "--to", "3,2900", said][..], &["message", "--from", "2999", "--to", "3", "no"]]
    {
        let (taken, words) = ctl(&folder, order);
        assert!(taken, "{words}");
    }
    let before = rounds(&folder);
    process.until("some rounds", || rounds(&folder) > before + 10);
    assert!(ctl(&folder, &["stop"]).0);
    let (summary, notes, _) = process.end();
    assert_eq!(summary["status"], "stopped", "{notes}");
    let replayed = polity(&folder, &["replay", "run", "--json"], &[]);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    let sent = text(&polity(&folder, &["export", "run", "--table", "messages", "--format", "jsonl"], &[]).stdout);
    let sent: Vec<Value> = sent.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &Value| (message["from"].as_u64().unwrap(), message["to"].as_u64().unwrap());
    assert_eq!(sent.iter().map(of).collect::<Vec<_>>(), [(7, 3), (7, 2900), (2999, 3)], "{sent:?}");
    assert_eq!(sent[0]["text"], said);
    for args in [&["--threads", "1"][..], &["--threads", "2", "--shards", "3"]] {
        planned_is_the_same(&folder, &summary, args);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_mind_reads_a_message_of_the_scenario_in_the_next_round() {
    let folder = scratch("planned-message");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("scenarios/guess-average-minds.yaml");
    let message = r#"messages=[{from: 7, to: [3], text: "Guess ninety"}]"#;
    let size = ["--agents", "8", "--rounds", "3", "--out", "run", "--no-report", "-P", message];
    let run = polity(&folder, &[&["run", file.to_str().unwrap()], &size[..]].concat(), &[]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let asked = text(&polity(&folder, &["calls", "run", "--agent", "3", "--round", "1"], &[]).stdout);
    assert!(asked.contains("Guess ninety") && asked.contains('7'), "{asked}");
    let others = text(&polity(&folder, &["calls", "run", "--round", "0"], &[]).stdout);
    assert!(others.len() > 100 && !others.contains("Guess ninety"), "{others}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_change_that_was_journaled_is_made_after_kill_9() {
    let (folder, process) = paused("steering-kill");
    // A paused run takes the order, and is killed before or after it begins to obey.
    let (taken, words) = ctl(&folder, &["change", "world.fraction=0.1"]);
    assert!(taken, "{words}");
    process.kill();
    let mut resumed = Process::start(&folder, &["resume", "run"], &[]);
    resumed.until("the resumed run", || ctl(&folder, &["stop"]).0);
    let (summary, notes, _) = resumed.end();
    assert_eq!(summary["status"], "stopped", "{notes}");
    assert_eq!(manifest(&folder)["scenario"]["changes"][0]["set"], json!({"world.fraction": 0.1}));
    let replayed = polity(&folder, &["replay", "run", "--json"], &[]);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    std::fs::remove_dir_all(&folder).unwrap();
}
