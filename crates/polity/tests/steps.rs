//! What agents saw and chose, as a table of a run, and a learner from it.

use crate::harness::{arg, scratch};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PLAYERS: &str = "seed: 3
rounds: 40
agents: 6
topology: {kind: none}
world: {kind: cart-pole}
record: {steps: true}
cohorts:
  - {name: fools, count: 2, policy: {kind: rule, actions: [{act: right, when: true}]}}
  - {name: players, count: 4, policy: {kind: rule, actions: [{act: left, when: angle < 0}, {act: right, when: angle > 0.01}]}}
metrics: [{kind: mean, of: steps}]
";

fn polity(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).env_remove("POLITY_OUT").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn steps_are_recorded_and_learned_from() {
    let home = scratch("steps");
    fs::write(home.join("players.yaml"), PLAYERS).unwrap();
    let run = home.join("run");
    let said = polity(&["run", arg(&home.join("players.yaml")), "--out", arg(&run), "--no-report"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let table = text(&polity(&["export", arg(&run), "--table", "steps"]).stdout);
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(names[..5], ["round", "agent", "cohort", "choice", "value"]);
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let (angle, turn) = (place("observation.angle"), place("observation.turn"));
    let (speed, position) = (place("observation.speed"), place("observation.position"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 40 * 6);
    let number = |row: &[&str], column: usize| row[column].parse::<f64>().unwrap();
    let mut idle = 0;
    for (i, row) in rows.iter().enumerate() {
        let (round, agent) = (i / 6, i % 6);
        assert_eq!(
            row[..3],
            [round.to_string(), agent.to_string(), if agent < 2 { "fools" } else { "players" }.into()]
        );
        // What was chosen follows from what was seen, and what is seen next from both.
        let expected = match (agent < 2, number(row, angle)) {
            (true, _) => "right",
            (_, angle) if angle < 0.0 => "left",
            (_, angle) if angle > 0.01 => "right",
            _ => "",
        };
        assert_eq!((row[3], row[4]), (expected, ""), "{row:?}");
        idle += u32::from(expected.is_empty());
        if let Some(next) = rows.get(i + 6)
            && next[place("observation.episode-ended")] == "0"
        {
            let moved = number(row, position) + 0.02 * number(row, speed);
            assert!((number(next, position) - moved).abs() < 1e-9);
            let leaned = number(row, angle) + 0.02 * number(row, turn);
            assert!((number(next, angle) - leaned).abs() < 1e-9);
        }
    }
    assert!(idle > 0);

    fs::write(home.join("steps.csv"), table.as_bytes()).unwrap();
    let learner = "seed: 1
rounds: 30
agents: 2
topology: {kind: none}
world: {kind: cart-pole}
cohorts: [{policy: {kind: bc, data: {steps: {file: steps.csv}, cohort: COHORT}}}]
metrics: [{kind: mean, of: episode-return}]
";
    let learn = |cohort: &str| {
        fs::write(home.join("learn.yaml"), learner.replace("COHORT", cohort)).unwrap();
        polity(&["run", arg(&home.join("learn.yaml")), "--out", arg(&home.join(cohort)), "--no-report"])
    };
    let said = learn("players");
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(home.join("players/weights/cohort-0.safetensors").exists());
    assert!(polity(&["replay", arg(&home.join("players"))]).status.success());
    let said = learn("nobody");
    assert!(!said.status.success() && text(&said.stderr).contains("no cohort `nobody`"), "{}", text(&said.stderr));
}

#[test]
fn steps_need_agents_that_act_together() {
    let home = scratch("steps-order");
    let scenario = "rounds: 2
agents: 9
topology: {kind: none}
world: {kind: schelling}
activation: random-order
record: {steps: true}
cohorts: [{policy: relocate}]
";
    fs::write(home.join("it.yaml"), scenario).unwrap();
    let said = polity(&["validate", arg(&home.join("it.yaml"))]);
    assert!(!said.status.success() && text(&said.stderr).contains("record.steps"), "{}", text(&said.stderr));
}

/// The data of the policies that learn from steps are what their command makes.
#[test]
fn the_data_in_the_box_are_those_of_their_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../polity-catalog/policies/bc");
    let run = scratch("steps-box").join("run");
    let said = polity(&["run", arg(&folder.join("steps.yaml")), "--out", arg(&run), "--no-report"]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let made = text(&polity(&["export", arg(&run), "--table", "steps"]).stdout);
    assert_eq!(made, fs::read_to_string(folder.join("steps.csv")).unwrap());
}
