//! `polity ask`, `polity prompts METHOD` and the roles of teams, as a user types them.

use crate::harness::scratch;
use crate::mock_server::{MockServer, last_line, polity, text};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn ask(folder: &Path, args: &[&str]) -> Output {
    polity(folder, &[&["ask"], args, &["--model", "sim/medium", "--no-report"]].concat(), &[])
}

#[test]
fn only_the_answer_goes_to_standard_output_and_the_run_is_an_ordinary_one() {
    let folder = scratch("ask-plain");
    let asked = ask(&folder, &["How many legs do three spiders have?", "--method", "debate", "--out", "run"]);
    let (out, err) = (text(&asked.stdout), text(&asked.stderr));
    assert!(asked.status.success(), "{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(err.contains("6 answers of simulated models") && err.contains("run folder run"), "{err}");
    // The same question in another way, and with other settings.
    std::fs::write(folder.join("question.txt"), "How many legs do three spiders have?\n").unwrap();
    let again = ask(&folder, &["--file", "question.txt", "--method", "debate", "--json", "--out", "again"]);
    let json: Value = last_line(&again);
    assert_eq!((json["answer"].as_str(), json["calls"].as_u64()), (Some(out.trim()), Some(6)));
    assert_eq!((json["status"].as_str(), json["simulated"].as_bool()), (Some("done"), Some(true)));
    let other =
        ask(&folder, &["Why?", "--agents", "2", "--rounds", "3", "--method", "debate", "--json", "--out", "other"]);
    let json: Value = last_line(&other);
    assert_eq!(json["calls"], 6);
    for verb in [["replay", "run"], ["verify", "run"]] {
        let output = polity(&folder, &verb, &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    // Nothing is scored, so nobody is told to be short.
    let calls = text(&polity(&folder, &["calls", "run", "--full"], &[]).stdout);
    assert!(calls.contains("as long as the task asks for") && !calls.contains("as short as it can be"), "{calls}");
    let set = ask(&folder, &["Why?", "-P", "method.prompts.length=in 20 words", "--out", "set"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    assert!(text(&polity(&folder, &["calls", "set", "--full"], &[]).stdout).contains("`answer`, in 20 words."));
}

#[test]
fn long_answers_are_printed_whole_and_a_stopped_question_is_resumed() {
    let folder = scratch("ask-long");
    let server = MockServer::start(&[]);
    let prose = "A paragraph of many words. ".repeat(400);
    std::fs::write(
        folder.join("flow.yaml"),
        format!(
            "polity: 2\nrounds: 1\nmodel: openai/medium\nteam: [{{name: Writer}}]\nmethod:\n  kind: workflow\n  steps:\n    \
             - {{id: draft, ask: Write.}}\n    - {{id: text, text: '{prose}'}}\n"
        ),
    )
    .unwrap();
    let variables = server.variables();
    let asked = polity(&folder, &["ask", "Write it.", "--method", "flow.yaml", "--out", "run"], &variables);
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    assert_eq!(text(&asked.stdout).trim(), prose.trim());
    let limit = ["ask", "Why?", "--method", "debate", "--model", "openai/medium", "--max-calls", "2", "--out", "cut"];
    let cut = polity(&folder, &limit, &variables);
    assert_eq!((cut.status.code(), text(&cut.stdout).trim()), (Some(7), ""), "{}", text(&cut.stderr));
    assert!(text(&cut.stderr).contains("there is no answer yet; `polity resume cut` continues"));
    let resumed = polity(&folder, &["resume", "cut", "--max-calls", "20"], &variables);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert!(text(&resumed.stderr).contains("answer: "), "{}", text(&resumed.stderr));
}

#[test]
fn wrong_questions_are_refused_with_what_to_do() {
    let folder = scratch("ask-wrong");
    std::fs::write(folder.join("town.yaml"), "polity: 2\nrounds: 1\nworld: schelling\ncohorts: [{policy: relocate}]\n")
        .unwrap();
    for (args, message) in [
        (&["  "][..], "the question is empty"),
        (&["--file", "none.txt"], "none.txt cannot be read"),
        (&["Why?", "--method", "debat"], "did you mean `debate`?"),
        (&["Why?", "--method", "town.yaml"], "town.yaml has no `method`"),
        (&["Why?", "-P", "method.prompts.lenth=x"], "did you mean `length`?"),
        (&["Why?", "-P", "items.count=2"], "the only item is the question"),
        (&["Why?", "--method", "metagpt"], "needs items of the shape `humaneval`"),
    ] {
        let asked = ask(&folder, args);
        assert_eq!(asked.status.code(), Some(2), "{args:?}");
        assert!(text(&asked.stderr).contains(message), "{args:?}: {}", text(&asked.stderr));
    }
    let none = polity(&folder, &["ask", "Why?"], &[]);
    assert!(text(&none.stderr).contains("no model is given"), "{}", text(&none.stderr));
}

const TEAM: &str = "polity: 2\nrounds: 2\nmodel: sim/medium\nitems: {file: items.jsonl}\n";

/// What `validate` says of a scenario.
fn validated(folder: &Path, scenario: &str) -> (Option<i32>, String) {
    std::fs::write(folder.join("items.jsonl"), "{\"question\": \"Why?\"}\n").unwrap();
    std::fs::write(folder.join("team.yaml"), format!("{TEAM}{scenario}")).unwrap();
    let output = polity(folder, &["validate", "team.yaml"], &[]);
    (output.status.code(), text(&output.stderr) + &text(&output.stdout))
}

#[test]
fn prompts_of_a_method_are_read_written_changed_and_recorded() {
    let folder = scratch("ask-prompts");
    let shown = polity(&folder, &["prompts", "debate"], &[]);
    let listed = text(&shown.stdout);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    for part in
        ["[again] tells a member", "[choose] asks a judge", "placeholders: {{ length }}", "with `scorer: code`:"]
    {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    // A short name is one, too.
    assert!(text(&polity(&folder, &["prompts", "sc"], &[]).stdout).contains("[steps]"));
    let written = polity(&folder, &["prompts", "debate", "--out", "words"], &[]);
    assert!(text(&written.stderr).contains("prompts: {alone: {file: alone.md}}"), "{}", text(&written.stderr));
    assert_eq!(std::fs::read_dir(folder.join("words")).unwrap().count(), 8);
    let twice = polity(&folder, &["prompts", "debate", "--out", "words"], &[]);
    assert_eq!(twice.status.code(), Some(2));
    std::fs::write(folder.join("words/again.md"), "Think again, briefly.\n").unwrap();
    let method = "agents: 3\nmethod: {kind: debate, prompts: {again: {file: words/again.md}, nobody: Silence.}}\n";
    assert_eq!(validated(&folder, method).0, Some(0));
    let changed = text(&polity(&folder, &["prompts", "team.yaml"], &[]).stdout);
    assert!(
        changed.contains("[again] (changed in this scenario)") && changed.contains("Think again, briefly."),
        "{changed}"
    );
    let ran = polity(&folder, &["run", "team.yaml", "--out", "run", "--no-report"], &[]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let calls = || text(&polity(&folder, &["calls", "run", "--full"], &[]).stdout);
    assert!(calls().contains("Think again, briefly.") && !calls().contains("Look for mistakes"));
    // An argument of a tool that is called `file` names no file of the scenario.
    let call = "agents: 1\ntools: [calculator]\nmethod: {kind: workflow, steps: [{call: calculate, arguments: {file: none.txt}}]}\n";
    let (code, said) = validated(&folder, call);
    assert_eq!(code, Some(0), "{said}");
    // The run keeps the file: it is replayed without it.
    std::fs::remove_dir_all(folder.join("words")).unwrap();
    let replayed = polity(&folder, &["replay", "run"], &[]);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    for (method, message) in [
        ("{kind: debate, prompts: {agian: x}}", "`debate` has no prompt `agian`; did you mean `again`?"),
        (
            "{kind: debate, prompts: {form: \"{{ lenght }}\"}}",
            "there is no placeholder `{{ lenght }}`; did you mean `{{ length }}`?",
        ),
        ("{kind: autoagents, prompts: {step: Work.}}", "the text needs the placeholder `{{ task }}`"),
        ("{kind: debate, prompts: {again: {file: none.md}}}", "none.md"),
    ] {
        let (code, said) = validated(&folder, &format!("agents: 3\nmethod: {method}\n"));
        assert!(code == Some(2) && said.contains(message), "{method}: {said}");
    }
}

#[test]
fn roles_that_a_method_lacks_and_members_that_can_never_act_are_refused() {
    let folder = scratch("ask-roles");
    let member = |role: &str| {
        format!("method: {{kind: debate, aggregate: judge}}\nteam: [{{name: Ann, role: {role}}}, {{name: Ben}}]\n")
    };
    assert_eq!(validated(&folder, &member("judge")).0, Some(0));
    for (scenario, message) in [
        (member("researcher"), "write `persona: You are a researcher.`"),
        (member("jugde"), "has no role `jugde` (did you mean `judge`?); it has judge"),
        (member("judge").replace(", aggregate: judge", ""), "`Ann` can never act: `aggregate: majority` asks no judge"),
        (
            member("judge").replace("{name: Ben}", "{name: Ben, role: judge}, {name: Cy}"),
            "team[1]: `Ben` can never act: `debate` has one `judge`, and `Ann` is it already",
        ),
        (
            "method: direct\nteam: [{name: Ann}, {name: Ben}]\n".into(),
            "`Ben` can never act: the first member does all the work",
        ),
        (
            "method: {kind: crew, tasks: [{member: 0, task: x}]}\nteam: [{name: Ann}, {name: Ben}]\n".into(),
            "`Ben` can never act: none of the `tasks` is for it. Leave it out of the team",
        ),
    ] {
        let (code, said) = validated(&folder, &scenario);
        assert!(code == Some(2) && said.contains(message), "{scenario}: {said}");
    }
}
