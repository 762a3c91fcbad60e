//! Messages for wrong inputs, as a person types them: what each must say, and what it must not. The inputs are those that users of all
//! kinds tried (`polity validate`, `polity run` and so on); those about data files are in `people.rs`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A correct society, of which every wrong input changes one thing.
const SCENARIO: &str = "\
rounds: 5
agents: 10
topology: {kind: ring, neighbours: 2}
world: {kind: opinion, low: 0, high: 1}
cohorts:
  - name: citizens
    policy: {kind: deffuant-weisbuch, epsilon: 0.3}
metrics: [{kind: mean, of: opinion}]
";

/// The same with a policy that asks a model.
const MINDS: &str = "\
rounds: 1
agents: 2
world: guess-average
model: openai/gpt-4o-mini
cohorts: [{policy: mind}]
";

/// Words of all messages that come from the parser of flags or the system, and say nothing about what to write.
const NEVER: [&str; 7] = [
    "invalid digit",
    "invalid float",
    "would be zero for non-zero",
    "is not in 1..=",
    "use '-- ",
    "os error",
    "panicked",
];

fn said(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(words)
        .current_dir(folder)
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .output()
        .unwrap();
    // Lines of a message are broken to fit; a sentence is compared without its breaks.
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), text)
}

fn check(folder: &Path, words: &[&str], wanted: &[&str]) {
    let (code, text) = said(folder, words);
    assert!(code.is_some_and(|code| code != 0), "{words:?} succeeded: {text}");
    for part in wanted {
        assert!(text.contains(part), "polity {}\nlacks: {part}\n{text}", words.join(" "));
    }
    for part in NEVER {
        assert!(!text.contains(part), "polity {}\nsays: {part}\n{text}", words.join(" "));
    }
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("good.yaml"), SCENARIO).unwrap();
    fs::write(home.path().join("minds.yaml"), MINDS).unwrap();
    fs::create_dir(home.path().join("full")).unwrap();
    fs::write(home.path().join("full/mine.txt"), "mine").unwrap();
    home
}

/// What is written, what stands in its place, and what the message must contain.
type Wrong = (&'static str, &'static str, &'static [&'static str]);

#[test]
fn wrong_scenarios_are_answered_with_what_to_write() {
    let wrong: [Wrong; 23] = [
        ("topology:", "topolgy:", &["unknown key `topolgy`", "did you mean `topology`?", "x.yaml:3:1"]),
        ("epsilon: 0.3", "epsilon: two", &["expected a number, found text `two`", "x.yaml:7:48"]),
        ("rounds: 5", "rounds: \"5\"", &["expected a whole number", "no quotes"]),
        ("rounds: 5", "rounds: -5", &["a whole number that is not negative"]),
        ("rounds: 5", "rounds: 5.5", &["expected a whole number, found the number 5.5"]),
        ("agents: 10", "population: {file: nobody.csv}", &["nobody.csv", "there is no such file"]),
        ("  - name:", "\t- name:", &["tabs cannot be used", "spaces"]),
        ("deffuant-weisbuch", "deffuant", &["no policy `deffuant`", "did you mean `deffuant-weisbuch`?", "degroot"]),
        ("of: opinion", "of: opinon", &["no quantity `opinon`", "did you mean `opinion`? (it has opinion)"]),
        ("    policy: {", "    share: 0.5\n    policy: {", &["the shares sum to 0.5, not to 1"]),
        ("    policy: {", "    share: 100%\n    policy: {", &["found text `100%`", "write 100% as 1"]),
        ("    policy: {", "    share: 51\n    policy: {", &["share"]),
        ("rounds: 5", "name: a: b\nrounds: 5", &["text with `: ` in it needs quotes"]),
        (
            "{kind: deffuant-weisbuch, epsilon: 0.3}",
            "user",
            &[
                "the policy `user` does not fit this world: it reads the table `feed`, which the world `opinion` does not show",
                "`polity explain opinion` lists the policies that fit",
            ],
        ),
        ("{kind: mean, of: opinion}", "{kind: mean, by: party}", &["the key `of` is missing", "of, by, every"]),
        ("kind: mean", "kind: median", &["no metric `median`", "quantiles"]),
        ("kind: opinion,", "kind: opinions,", &["no world `opinions`", "did you mean `opinion`?"]),
        ("ring", "rign", &["no topology `rign`", "did you mean `ring`?"]),
        ("policy: {", "polcy: {", &["polcy", "policy"]),
        ("cohorts:", "policy: {epsilon: 3}\ncohorts:", &["`cohorts.citizens.policy.epsilon`"]),
        ("rounds: 5", "rounds: 5\nwindow: 3", &["unknown key `window`; did you mean `max_concurrent`?"]),
        ("name: citizens", "goal: win", &["unknown key `goal`"]),
        ("low: 0, high: 1", "low: 1, high: 0", &["world"]),
    ];
    let home = home();
    let folder = home.path();
    for (before, after, wanted) in wrong {
        assert!(SCENARIO.contains(before), "{before}");
        fs::write(folder.join("x.yaml"), SCENARIO.replacen(before, after, 1)).unwrap();
        check(folder, &["validate", "x.yaml"], wanted);
    }
    let good = said(folder, &["validate", "good.yaml"]);
    assert_eq!(good, (Some(0), "good.yaml: ok".to_owned()));
}

#[test]
fn wrong_flags_are_answered_with_what_to_write() {
    type Asked = (&'static [&'static str], &'static [&'static str]);
    let wrong: [Asked; 37] = [
        (&["run", "none.yaml"], &["there is no file `none.yaml`"]),
        (&["run", "full"], &["`full` is a folder", "polity validate full"]),
        (&["run", "good.yaml", "-P", "cohorts.citizen.policy.epsilon=3"], &["did you mean `citizens`?"]),
        (&["run", "good.yaml", "-P", "policy.epsilon=3"], &["belongs to a cohort: `cohorts.citizens.policy.epsilon`"]),
        (&["run", "good.yaml", "-P", "rounds"], &["must be PATH=VALUE"]),
        (&["run", "good.yaml", "-P", "rounds", "=", "3"], &["Write -P rounds=3 without spaces"]),
        (&["run", "good.yaml", "-P", "metrics=[{kind:", "mean,", "of:", "opinion}]"], &["or the edit in quotes"]),
        (&["run", "good.yaml", "--seed", "-1"], &["'-1'", "0 to 9223372036854775807"]),
        (&["run", "good.yaml", "--seed=-1"], &["'-1'", "0 to 9223372036854775807"]),
        (&["run", "good.yaml", "--agents", "10k"], &["write 10000"]),
        (&["run", "good.yaml", "--agents", "1,000"], &["write 1000"]),
        (&["run", "good.yaml", "--agents", "-5"], &["a whole number, 0 or more"]),
        (&["run", "good.yaml", "--agents", "4000000000"], &["at most 100000000 agents"]),
        (&["run", "good.yaml", "--max-cost", "$1"], &["write 1"]),
        (&["run", "good.yaml", "--threads", "0"], &["a whole number, 1 to 1024"]),
        (&["run", "good.yaml", "--threads", "-1"], &["a whole number, 1 to 1024"]),
        (&["run", "good.yaml", "--threads", "two"], &["a whole number, 1 to 1024"]),
        (&["run", "good.yaml", "--max-connections", "0"], &["at least 1"]),
        (&["run", "good.yaml", "--patience", "5"], &["a number with its unit", "90s"]),
        (&["run", "good.yaml", "--out", "full"], &["is not empty (it holds mine.txt)", "Choose another --out"]),
        (&["run", "good.yaml", "--out", "good.yaml"], &["not a folder", "choose another --out"]),
        (&["run", "good.yaml", "--out", "/proc/x"], &["the folder /proc/x cannot be made: ", "; choose another --out"]),
        (&["run", "good.yaml", "--model", "gpt-4o-mini"], &["did you mean `openai/gpt-4o-mini`?"]),
        (&["run", "minds.yaml", "--model", "opneai/gpt-4o-mini"], &["opneai", "openai"]),
        (&["run", "minds.yaml", "--model", "sim/huge"], &["sim/huge", "sim/large"]),
        (&["run", "minds.yaml"], &["no key: set OPENAI_API_KEY"]),
        (&["run", "good.yaml", "--sed", "3"], &["similar argument exists: '--seed'"]),
        (&["run", "good.yaml", "extra"], &["unexpected argument 'extra'"]),
        (&["compare", "debat", "--task", "x"], &["did you mean `debate`?"]),
        (&["eval", "--method", "debate@0", "--task", "x"], &["1 to 10,000", "sc@8"]),
        (&["calls", "full", "--round", "-1"], &["a whole number, 0 or more"]),
        (&["export", "full", "--limit", "-1"], &["a whole number, 0 or more"]),
        (&["view", "full", "--port", "99999"], &["a port is a whole number, 0 to 65535"]),
        (&["view", "full", "--host", "here"], &["127.0.0.1"]),
        (
            &["ctl", "full", "kill"],
            &["'kill'", "The commands are: pause, resume, stop, step, status, change, message, set"],
        ),
        (&["explain", "opinon"], &["did you mean `opinion`?"]),
        (&["status", "nowhere"], &["there is no folder `nowhere`"]),
    ];
    let home = home();
    for (words, wanted) in wrong {
        check(home.path(), words, wanted);
    }
    // What was refused has made nothing.
    assert!(!home.path().join("runs").exists());
}

#[test]
fn what_yaml_takes_flags_take_too() {
    let home = home();
    let (code, text) = said(home.path(), &["run", "good.yaml", "--agents", "1e1", "--rounds", "2e0", "--out", "run"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("10 agents, 2 rounds"), "{text}");
}

#[test]
fn nobody_is_asked_so_no_key_is_needed() {
    let home = home();
    for words in [&["validate", "minds.yaml"][..], &["estimate", "minds.yaml", "--no-ask"]] {
        let (code, text) = said(home.path(), words);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("a run cannot ask `openai/gpt-4o-mini` yet") && text.contains("OPENAI_API_KEY"),
            "{text}"
        );
    }
}

#[test]
fn errors_for_programs_say_the_same_without_the_word_error() {
    let home = home();
    let output = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(["run", "good.yaml", "--json", "-P", "rounds", "=", "3"])
        .current_dir(home.path())
        .output()
        .unwrap();
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = line["error"].as_str().unwrap();
    assert!(error.starts_with("unexpected argument '='") && error.contains("-P rounds=3"), "{error}");
}
