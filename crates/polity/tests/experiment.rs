//! `polity new experiment`: answers become files that `validate` accepts and `sweep` runs; the report's figures on reliability against
//! plain computations; wrong answers, and nothing overwritten.

use crate::harness::{Said, arg, contents, polity, rules, said, scratch, team, write_scenario};
use polity_stats::replicates::seeds_needed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the program in a folder; it has no terminal.
fn at(folder: &Path, args: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
    command.args(args).current_dir(folder).env_remove("POLITY_OUT").env("NO_COLOR", "1").stdin(Stdio::null());
    said(&command.output().unwrap())
}

/// A message without the breaks of its lines.
fn on_one_line(notes: &str) -> String {
    notes.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes an experiment from answers.
fn made(folder: &Path, answers: &str) -> (PathBuf, Said) {
    fs::write(folder.join("answers.txt"), answers).unwrap();
    let mut said = at(folder, &["new", "experiment", "study", "--answers", "answers.txt"]);
    said.notes = on_one_line(&said.notes);
    (folder.join("study"), said)
}

/// The answers that the program itself gives as an example.
fn example(folder: &Path) -> String {
    let said = at(folder, &["new", "experiment", "study", "--write-answers", "example.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.notes.contains("polity new experiment study --answers example.yaml"), "{said:?}");
    fs::read_to_string(folder.join("example.yaml")).unwrap()
}

/// Runs the design, and returns the folder of the sweep with its report.
fn swept(study: &Path) -> (PathBuf, String) {
    let sweep = study.join("sweep");
    let said = polity(&["sweep", arg(&study.join("scenario.yaml")), "--out", arg(&sweep)]);
    assert_eq!((said.code, said.text("status")), (Some(0), "done"), "{said:?}");
    let report = at(study, &["report", "sweep"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    (sweep.clone(), said.notes + &fs::read_to_string(sweep.join("report.html")).unwrap())
}

/// The rows of the table in a section of a report, as text.
fn rows(page: &str, section: &str) -> Vec<Vec<String>> {
    let table = page.split(&format!("<h2>{section}</h2>")).nth(1).unwrap_or_else(|| panic!("no section {section}"));
    let body = table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let plain = |cell: &str| {
        let inner = cell.split_once('>').unwrap().1.split("</td>").next().unwrap();
        let mut text = String::new();
        let mut tag = false;
        for c in inner.chars() {
            match c {
                '<' => tag = true,
                '>' => tag = false,
                c if !tag => text.push(c),
                _ => {}
            }
        }
        text.replace('−', "-")
    };
    body.split("<tr>").skip(1).map(|row| row.split("<td").skip(1).map(plain).collect()).collect()
}

/// Values and digests by arm, in the order of the seeds, from the table of runs.
fn by_arm(sweep: &Path, metric: &str) -> BTreeMap<String, Vec<(f64, String)>> {
    let text = fs::read_to_string(sweep.join("runs.csv")).unwrap();
    let mut arms: BTreeMap<String, Vec<(f64, String)>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [arm, _, of, value, digest] = cells[..] else { panic!("{line}") };
        if of == metric {
            arms.entry(arm.into()).or_default().push((value.parse().unwrap(), digest.into()));
        }
    }
    arms
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation by the book.
fn spread(values: &[f64]) -> f64 {
    let middle = average(values);
    (values.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Whether a shown number is the value, as far as its digits go.
fn shows(shown: &str, value: f64) -> bool {
    let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    let shown: f64 = shown.parse().unwrap_or_else(|_| panic!("{shown} is no number"));
    (shown - value).abs() <= 0.5001 * 10f64.powi(-decimals)
}

#[test]
fn answers_become_an_experiment_whose_report_says_how_reliable_it_is() {
    /// 97.5 % of Student's distribution with 11 degrees of freedom is below this.
    const ELEVEN: f64 = 2.200_985_160_082_949;
    let folder = scratch("experiment");
    let (study, told) = made(&folder, &example(&folder));
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.notes.contains("created study: 3 arms, 12 seeds each, 36 runs"), "{told:?}");
    let validated = at(&study, &["validate", "scenario.yaml"]);
    assert!(validated.notes.contains("ok, and so are the 3 arms of its design"), "{validated:?}");

    let scenario = fs::read_to_string(study.join("scenario.yaml")).unwrap();
    assert!(scenario.contains("name: \"study\"") && scenario.contains("baseline: control"), "{scenario}");
    let protocol = fs::read_to_string(study.join("PROTOCOL.md")).unwrap();
    for words in [
        "Do people who think further ahead guess lower?",
        "Hypothesis: `guess.mean` is lower in the treatment arm than in the control arm.",
        "| `control` | control | `cohorts.thinkers.policy.mean: 1.5` |",
        "| `treatment-3` | treatment | `cohorts.thinkers.policy.mean: 3` |",
        "| `placebo` | placebo |",
        "12 seeds each, the same in all arms (common random numbers), 36 runs in all",
        "if its difference is `stable` and below 0",
        "the whole 95 % interval of its mean of `guess.mean` lies at or below 5",
        "polity sweep scenario.yaml --out sweep",
        "polity replay sweep/runs/control/1",
        "treatments: [3]",
    ] {
        assert!(protocol.contains(words), "{words} is not in\n{protocol}");
    }

    let (sweep, page) = swept(&study);
    let arms = by_arm(&sweep, "guess.mean");
    let differences = |arm: &str| -> Vec<f64> {
        arms[arm].iter().zip(&arms["control"]).map(|((treated, _), (control, _))| treated - control).collect()
    };
    let table = rows(&page, "Reliability");
    assert_eq!(table.len(), 2, "{table:?}");
    for (row, arm) in table.iter().zip(["treatment-3", "placebo"]) {
        let found = differences(arm);
        let (mean, half) = (average(&found), ELEVEN * spread(&found) / 12f64.sqrt());
        let same = found.iter().filter(|one| **one * mean > 0.0).count();
        let equal = arms[arm].iter().zip(&arms["control"]).filter(|((_, a), (_, b))| a == b).count();
        assert_eq!(row[0], format!("{arm} minus control"));
        let (low, high) = row[2].split_once(" to ").unwrap();
        assert!(shows(low, mean - half) && shows(high, mean + half), "{row:?}: {mean} +- {half}");
        assert_eq!(row[4..6], ["12".to_owned(), format!("{same} of 12")], "{row:?}");
        assert_eq!(row[7], format!("{equal} of 12"), "{row:?}");
    }
    // A step of thinking more lowers the guesses in all seeds; ties that nobody uses change nothing at all.
    assert_eq!(table[0][3..], ["stable", "12", "12 of 12", "enough", "0 of 12"]);
    assert_eq!(table[1][3..], ["the same", "12", "0 of 12", "–", "12 of 12"]);
    let runs = rows(&page, "Reliability of the runs");
    assert_eq!(runs, ["control", "treatment-3", "placebo"].map(|arm| [arm, "12", "12"].map(String::from).to_vec()));
    assert!(page.contains("No model was asked."));

    // What was expected is judged by the same intervals.
    let control: Vec<f64> = arms["control"].iter().map(|(value, _)| *value).collect();
    let (mean, half) = (average(&control), ELEVEN * spread(&control) / 12f64.sqrt());
    assert!(mean + half < 5.0, "{mean} {half}");
    let expected = rows(&page, "Expected and found");
    assert!(shows(&expected[0][1], mean), "{expected:?} {mean}");
    assert_eq!((expected[0][0].as_str(), expected[0][3].as_str()), ("guess.mean, control: at most 5", "holds"));
    assert_eq!(
        (expected[1][0].as_str(), expected[1][3].as_str()),
        ("guess.mean, treatment-3 minus control: below 0", "holds")
    );
    assert!(
        page.contains("expected: guess.mean, treatment-3 minus control: below 0: holds (95 % interval"),
        "on the terminal"
    );

    // What the protocol says about replays.
    let replayed = polity(&["replay", arg(&sweep.join("runs/control/1"))]);
    assert_eq!((replayed.code, replayed.text("status")), (Some(0), "same"), "{replayed:?}");
}

#[test]
fn an_effect_that_is_not_told_apart_says_how_many_seeds_it_needs() {
    let folder = scratch("experiment-noise");
    // One or two people more change hardly anything: six seeds do not show it. And the control arm does not show the pattern.
    let scenario = "name: small\nrounds: 3\nagents: 30\nworld: {kind: guess-average, fraction: 0.6}\n\
                    cohorts:\n  - {name: thinkers, share: 0.5, policy: {kind: level-k, mean: 1.5, noise: 0.2}}\n  \
                    - {name: guessers, share: 0.5, policy: {kind: noise}}\nmetrics: [{kind: mean, of: guess}]\n";
    fs::write(folder.join("small.yaml"), scenario).unwrap();
    let answers = "question: Q?\nstudied: rules\nstart: small.yaml\nfactor: agents\ntreatments: [31, 32]\n\
                   outcome: guess.mean\nexpected: different\nseeds: 6\nvalidation: {metric: guess.mean, at_least: 99}\n";
    let (study, told) = made(&folder, answers);
    assert_eq!(told.code, Some(0), "{told:?}");
    let (sweep, page) = swept(&study);
    let arms = by_arm(&sweep, "guess.mean");
    for row in rows(&page, "Reliability") {
        let arm = row[0].split_once(" minus ").unwrap().0;
        let found: Vec<f64> = arms[arm].iter().zip(&arms["control"]).map(|((a, _), (b, _))| a - b).collect();
        let (mean, sd) = (average(&found), spread(&found));
        match row[3].as_str() {
            "stable" => assert_eq!(row[6], "enough"),
            _ => {
                let needed: u32 = row[6].parse().unwrap();
                assert_eq!(Some(needed), seeds_needed(mean, sd), "{row:?}");
                // The normal approximation needs a little less, and never more.
                let normal = ((1.959_964 + 0.841_621) * sd / mean).powi(2);
                assert!(f64::from(needed) >= normal && f64::from(needed) <= normal + 4.0, "{needed} {normal}");
                assert!(needed > 6, "{row:?}");
            }
        }
    }
    assert!(rows(&page, "Reliability").iter().any(|row| row[3] == "seed noise"), "{:?}", rows(&page, "Reliability"));
    let expected = rows(&page, "Expected and found");
    assert_eq!((expected.len(), expected[0][3].as_str()), (1, "does not hold"), "{expected:?}");
}

#[test]
fn effects_of_factors_and_arms_with_their_own_seeds_are_counted_plainly() {
    let folder = scratch("experiment-designs");
    let sweep = |name: &str, design: Value| {
        let mut scenario = rules(40, 3);
        scenario["design"] = design;
        let (file, out) = (write_scenario(&folder, &scenario), folder.join(name));
        let said = polity(&["sweep", arg(&file), "--out", arg(&out)]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(at(&folder, &["report", name]).code, Some(0));
        fs::read_to_string(out.join("report.html")).unwrap()
    };
    // Values by arm from the exported table, whose columns depend on the factors.
    let values = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polity"));
        let args = ["export", name, "--table", "runs", "--format", "jsonl"];
        let rows = String::from_utf8(command.args(args).current_dir(&folder).output().unwrap().stdout).unwrap();
        let mut arms: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            if row["metric"] == "guess.mean" {
                arms.entry(row["arm"].as_str().unwrap().into()).or_default().push(row["value"].as_f64().unwrap());
            }
        }
        arms
    };
    let factors = json!({
        "factors": {"fraction": {"path": "world.fraction", "values": [0.7, 0.5]}, "agents": [40, 41]},
        "seeds": 7, "metrics": ["guess.mean"],
    });
    let page = sweep("crossed", factors);
    let arms = values("crossed");
    let table = rows(&page, "Reliability");
    let row = |name: &str| table.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {table:?}"));
    let level = |of: [&str; 2], seed: usize| (arms[of[0]][seed] + arms[of[1]][seed]) / 2.0;
    for (name, plus, minus) in [
        (
            "fraction: 0.5 minus 0.7",
            ["fraction=0.5,agents=40", "fraction=0.5,agents=41"],
            ["fraction=0.7,agents=40", "fraction=0.7,agents=41"],
        ),
        (
            "agents: 41 minus 40",
            ["fraction=0.7,agents=41", "fraction=0.5,agents=41"],
            ["fraction=0.7,agents=40", "fraction=0.5,agents=40"],
        ),
    ] {
        let found: Vec<f64> = (0..7).map(|seed| level(plus, seed) - level(minus, seed)).collect();
        let mean = average(&found);
        let same = found.iter().filter(|one| **one * mean > 0.0).count();
        assert_eq!(row(name)[5], format!("{same} of 7"));
        assert_eq!(row(name)[7], "–", "there is no pair of runs behind a main effect");
    }

    let own = json!({
        "arms": {"control": {}, "more": {"agents": 41}}, "seeds": 6, "common_random_numbers": false, "metrics": ["guess.mean"],
    });
    let page = sweep("own", own);
    let arms = values("own");
    let table = rows(&page, "Reliability");
    assert_eq!((table.len(), table[0][5].as_str(), table[0][7].as_str()), (1, "–", "–"), "{table:?}");
    let (more, control) = (&arms["more"], &arms["control"]);
    let both = (spread(more).powi(2) + spread(control).powi(2)).sqrt();
    let needed = seeds_needed(average(more) - average(control), both).unwrap();
    let expected = if table[0][3] == "stable" { "enough".into() } else { needed.to_string() };
    assert_eq!(table[0][6], expected, "{table:?}");
}

#[test]
fn a_team_takes_its_files_along_and_its_defaults_are_counted() {
    let folder = scratch("experiment-team");
    let mut scenario = team(&folder, "self-consistency", 4, 1);
    scenario["max_retries"] = json!(0);
    write_scenario(&folder, &scenario);
    let answers = "question: Does a larger model solve more?\nstudied: team\nstart: scenario.yaml\nfactor: model\n\
                   treatments: [sim/faulty]\noutcome: items.correct\nexpected: lower\nseeds: 6\n\
                   validation: {metric: items.correct, at_least: 0.01}\n";
    let (study, told) = made(&folder, answers);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert_eq!(fs::read(study.join("data/items.jsonl")).unwrap(), fs::read(folder.join("items.jsonl")).unwrap());
    // The folder is complete by itself.
    fs::remove_file(folder.join("items.jsonl")).unwrap();
    let (sweep, page) = swept(&study);
    let table = rows(&page, "Reliability of the runs");
    let manifest: Value = serde_json::from_slice(&fs::read(sweep.join("sweep.json")).unwrap()).unwrap();
    let mut all = 0;
    for (row, arm) in table.iter().zip(manifest["arms"].as_array().unwrap()) {
        assert_eq!(row[0], arm["name"].as_str().unwrap());
        let (mut asked, mut unanswered) = (0, 0);
        for run in fs::read_dir(sweep.join("runs").join(arm["folder"].as_str().unwrap())).unwrap() {
            let replayed = polity(&["replay", arg(&run.unwrap().path())]);
            let count = |key: &str| replayed.json["resolutions"][key].as_u64().unwrap();
            unanswered += count("default") + count("none");
            asked += ["fit", "repaired", "reasked", "default", "none"].map(count).iter().sum::<u64>();
        }
        assert_eq!(row[3..5], [asked.to_string(), unanswered.to_string()], "{row:?}");
        assert!(shows(&row[5], 100.0 * unanswered as f64 / asked as f64), "{row:?}");
        all += unanswered;
    }
    assert!(all > 0, "a faulty model gives answers that fit nothing: {table:?}");
}

#[test]
fn each_kind_of_study_starts_from_its_own_kind_of_model() {
    let folder = scratch("experiment-kinds");
    let scenario = team(&folder, "debate", 4, 2);
    write_scenario(&folder, &scenario);
    let rest = "expected: different\nseeds: 6\n";
    let kinds = [
        (
            "rules",
            "schelling",
            "factor: world.radius\ntreatments: [2]\noutcome: like-share.mean\nvalidation: {metric: like-share.mean, at_least: 0.5}\n",
        ),
        (
            "minds",
            "mind",
            "factor: world.fraction\ncontrol: 0.5\ntreatments: [0.7]\noutcome: guess.mean\nvalidation: {metric: guess.mean, at_most: 60}\n",
        ),
        (
            "team",
            "scenario.yaml",
            "factor: agents\ntreatments: [2]\noutcome: items.correct\nvalidation: {metric: items.correct, at_least: 0.1}\n",
        ),
    ];
    for (studied, start, answers) in kinds {
        for (claimed, _, _) in kinds {
            let text = format!("question: Q?\nstudied: {claimed}\nstart: {start}\n{answers}{rest}");
            let (study, told) = made(&folder, &text);
            if claimed != studied {
                assert_eq!(told.code, Some(2), "{claimed} for {start}: {told:?}");
                assert!(told.notes.contains(&format!("write `studied: {studied}`")), "{told:?}");
                continue;
            }
            assert_eq!(told.code, Some(0), "{start}: {told:?}");
            let validated = at(&study, &["validate", "scenario.yaml"]);
            assert!(validated.notes.contains("ok, and so are the 2 arms of its design"), "{validated:?}");
            let protocol = fs::read_to_string(study.join("PROTOCOL.md")).unwrap();
            assert_eq!(protocol.contains("No model is asked."), studied == "rules", "{protocol}");
            assert_eq!(protocol.contains("polity estimate scenario.yaml"), studied != "rules", "{protocol}");
            fs::remove_dir_all(study).unwrap();
        }
    }
}

#[test]
fn wrong_answers_are_shown_where_they_are_wrong() {
    let folder = scratch("experiment-wrong");
    let example = example(&folder);
    for (from, to, words) in [
        ("studied: rules", "studied: people", "unknown choice `people`"),
        ("studied: rules", "studied: minds", "`guess-average` is agents that follow rules; no model is asked"),
        ("start: guess-average", "start: gues-average", "there is no file `gues-average`"),
        (
            "factor: cohorts.thinkers.policy.mean",
            "factor: cohorts.thinkers.policy.maen",
            "unknown key `maen`; did you mean `mean`?",
        ),
        ("factor: cohorts.thinkers.policy.mean", "factor: seed", "`seed` is the same in all arms"),
        ("control: 1.5", "control: 200", "in the arm `control`"),
        ("treatments: [3]", "treatments: []", "there is only the control arm"),
        ("treatments: [3]", "treatments: [1.5]", "the arms `control` and `treatment-1.5` are the same scenario"),
        ("treatments: [3]", "treatments: [x]", "expected a number"),
        ("placebo: {topology: {kind: ring, neighbours: 4}}", "placebo: {topology: {kind: rong}}", "rong"),
        (
            "placebo: {topology: {kind: ring, neighbours: 4}}",
            "placebo: {world.fraction: 0.5}",
            "the placebo is the same scenario as the arm `control`",
        ),
        ("outcome: guess.mean", "outcome: guess.median", "the scenario does not measure `guess.median`"),
        ("expected: lower", "expected: smaller", "unknown choice `smaller`"),
        ("seeds: 12", "seeds: 5", "5 seeds are too few"),
        ("seeds: 12", "seed: 12", "unknown key `seed`; did you mean `seeds`?"),
        ("  metric: guess.mean", "  metric: wealth.mean", "the scenario does not measure `wealth.mean`"),
        ("  at_most: 5\n", "", "a pattern needs a bound"),
        ("  at_most: 5\n", "  at_most: 5\n  at_least: 6\n", "no value is at least 6 and at most 5"),
        ("question: Do", "because: Do", "given twice"),
        ("seeds: 12\n", "", "seeds: this answer is missing"),
    ] {
        assert!(example.contains(from), "{from}");
        let (study, told) = made(&folder, &example.replacen(from, to, 1));
        assert_eq!(told.code, Some(2), "{to}: {told:?}");
        assert!(told.notes.contains(words), "{to}: {}", told.notes);
        assert!(!study.exists(), "{to}");
    }
    // The place is that of the answer in its file.
    let (_, told) = made(&folder, &example.replacen("seeds: 12", "seeds: 5", 1));
    let line = example.lines().position(|line| line == "seeds: 12").unwrap() + 1;
    assert!(told.notes.contains(&format!("answers.txt:{line}:8")), "{}", told.notes);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left of what was refused: {left:?}");
}

#[test]
fn nothing_is_overwritten_and_without_a_terminal_it_says_what_to_do() {
    let folder = scratch("experiment-once");
    let example = example(&folder);
    let again = at(&folder, &["new", "experiment", "study", "--write-answers", "example.yaml"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.notes.contains("already exists; nothing was changed"), "{again:?}");
    let (study, told) = made(&folder, &example);
    assert_eq!(told.code, Some(0), "{told:?}");
    let before = contents(&folder);
    let (_, told) = made(&folder, &example);
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.notes.contains("study already exists; nothing was changed"), "{told:?}");
    assert_eq!(contents(&folder), before);
    assert!(study.join("scenario.yaml").is_file());
    let silent = at(&folder, &["new", "experiment", "other"]);
    assert_eq!(silent.code, Some(2), "{silent:?}");
    for words in ["no terminal", "polity new experiment other --write-answers", "polity new experiment other --answers"]
    {
        assert!(silent.notes.contains(words), "{words}: {silent:?}");
    }
    assert!(!folder.join("other").exists());
    let misplaced = at(&folder, &["new", "world", "tide", "--answers", "answers.txt"]);
    assert_eq!(misplaced.code, Some(2), "{misplaced:?}");
    assert!(misplaced.notes.contains("for `polity new experiment` only"), "{misplaced:?}");
}
