//! People in whole runs, and commands to runs in progress: killed, answered while dead, timed out, asked over HTTP and in a terminal;
//! paused, stopped, limited. Nothing may be asked twice, paid twice or visible in a result.

use crate::mock_server;

use crate::harness::{
    answers, assert_same_tables, engine, events, prepared, replay, run, scratch, tables, write_scenario,
};
use crate::mock_server::{MockServer, Process, command, last_line, polity, root, text};
use polity_driver::control::recorded;
use polity_driver::people::{Mailbox, Words};
use polity_driver::run::RunStatus;
use polity_driver::source::Faults;
use polity_kernel::ask::Outcome;
use polity_kernel::event::{Event, Order};
use polity_store::disk::{Disk, RealDisk, SimDisk};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Agents with a model, and Ann, the last one, who names 50 if she does not answer in time.
fn game(model: &str, others: u32, rounds: u32) -> Value {
    json!({
        "name": "game", "seed": 1, "rounds": rounds, "agents": others + 1,
        "world": {"kind": "guess-average"},
        "cohorts": [
            // All prompts differ, so that the mock server sees repeated questions.
            {"name": "models", "share": 1.0, "policy": {
                "kind": "mind", "model": model, "prompts": {"persona": "You are number {{ agent }} in round {{ round }}."},
            }},
            {"name": "ann", "count": {"fixed": 1}, "policy": {"kind": "mind", "model": "human/ann", "default": {"guess": 50}}},
        ],
        "snapshot": {"rounds": 1},
    })
}

fn guess(round: u64) -> &'static str {
    ["33", "20", "14.5", "9"][round as usize % 4]
}

/// Answers all questions to Ann, until the run has ended.
fn answered(mut process: Process, folder: &Path, run: &str) -> (Value, String, Option<i32>) {
    while process.0.try_wait().unwrap().is_none() {
        for question in pending(folder, run) {
            let round = question["id"].as_str().unwrap().split('-').nth(1).unwrap().parse().unwrap();
            answer(folder, run, &question, &[guess(round)]);
        }
        sleep(Duration::from_millis(5));
    }
    process.end()
}

/// Returns the open questions; none if the run does not exist yet or any more.
fn pending(folder: &Path, run: &str) -> Vec<Value> {
    let listed = polity(folder, &["answer", run, "--json"], &[]);
    match listed.status.success() {
        true => last_line(&listed).as_array().unwrap().clone(),
        false => Vec::new(),
    }
}

fn answer(folder: &Path, run: &str, question: &Value, values: &[&str]) -> Output {
    polity(folder, &[&["answer", run, question["id"].as_str().unwrap()], values].concat(), &[])
}

fn ctl(folder: &Path, run: &str, order: &[&str]) -> Output {
    polity(folder, &[&["ctl", run], order].concat(), &[])
}

fn rows(folder: &Path, run: &str) -> usize {
    text(&polity(folder, &["calls", run, "--json"], &[]).stdout).lines().count()
}

fn journal(run: &Path) -> Vec<Event> {
    events(Arc::new(RealDisk), run).unwrap().0
}

#[test]
fn a_question_survives_kill_9_and_what_is_around_it_happens_once() {
    let folder = scratch("people-kill");
    let file = write_scenario(&folder, &game("openai/medium", 9, 3));
    let file = file.to_str().unwrap();
    let mock_server = MockServer::start(&["--latency-ms", "5"]);
    let began =
        |out| Process::start(&folder, &["run", file, "--out", out, "--max-connections", "1"], &mock_server.variables());
    let (whole, ..) = answered(began("whole"), &folder, "whole");
    assert_eq!(
        (&whole["status"], &whole["people"], &whole["calls"]),
        (&"done".into(), &3.into(), &27.into()),
        "{whole}"
    );
    assert_eq!((mock_server.count("answered"), mock_server.count("repeated")), (27, 0));

    let mock_server = MockServer::start(&["--latency-ms", "5"]);
    let mut first =
        Process::start(&folder, &["run", file, "--out", "run", "--max-connections", "1"], &mock_server.variables());
    // She occupies no connection: with only one, everybody else is still asked.
    first.until("the others' answers", || rows(&folder, "run") == 9 && pending(&folder, "run").len() == 1);
    first.kill();
    let asked = pending(&folder, "run");
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(
        (&asked[0]["id"], &asked[0]["who"], &asked[0]["form"], &asked[0]["default"]),
        (&"0-0-9-0".into(), &"human/ann".into(), &"a number from 0 to 100".into(), &"50".into())
    );
    assert!(asked[0]["prompt"].as_str().unwrap().contains("Which number do you name?"), "{asked:?}");

    // Killed again while it waits: the question is there once, unchanged.
    let resume = || Process::start(&folder, &["resume", "run", "--max-connections", "1"], &mock_server.variables());
    let mut second = resume();
    second.until("the lock", || !text(&ctl(&folder, "run", &["resume"]).stderr).contains("not under way"));
    second.kill();
    assert_eq!(pending(&folder, "run"), asked);

    // Answered while no process runs.
    let given = answer(&folder, "run", &asked[0], &[guess(0)]);
    assert!(given.status.success() && text(&given.stderr).contains("polity resume run"), "{}", text(&given.stderr));
    let (resumed, notes, code) = answered(resume(), &folder, "run");
    assert_eq!(code, Some(0), "{notes}");
    assert_eq!(resumed["digest"], whole["digest"]);
    // The other side's counter: every call was made once, whatever happened to the process.
    assert_eq!((mock_server.count("answered"), mock_server.count("repeated")), (27, 0));
    let answers = answers(&journal(&folder.join("run")));
    assert_eq!(answers.len(), 30);
    assert!(answers.values().all(|answers| answers.len() == 1));
    assert_same_tables(&tables(&RealDisk, &folder.join("run")), &tables(&RealDisk, &folder.join("whole")), "killed");

    drop(mock_server);
    let replayed = polity(&folder, &["replay", "run", "--json"], &[]);
    assert_eq!((&last_line(&replayed)["status"], &last_line(&replayed)["digest"]), (&"same".into(), &whole["digest"]));
    let interview = polity(&folder, &["interview", "run", "Why?", "--agent", "9"], &[("OPENAI_API_KEY", "x")]);
    assert!(text(&interview.stderr).contains("is a person"), "{}", text(&interview.stderr));
}

#[test]
fn an_answer_is_checked_taken_once_and_refused_in_words() {
    let folder = scratch("people-words");
    let file = write_scenario(&folder, &game("sim/medium", 3, 1));
    let mut process = Process::start(&folder, &["run", file.to_str().unwrap(), "--out", "run"], &[]);
    process.until("a question", || pending(&folder, "run").len() == 1);
    let question = pending(&folder, "run").remove(0);
    let refused = |args: &[&str], code: i32, words: &str| {
        let output = polity(&folder, &[&["answer"], args].concat(), &[]);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    };
    refused(&["run", "0-0-3-0", "101"], 2, "101 lies outside 0 to 100. Wanted: a number from 0 to 100");
    refused(&["run", "0-0-3-0", "-1"], 2, "-1 lies outside 0 to 100");
    refused(&["run", "0-0-3-0", "many"], 2, "wanted a number");
    refused(&["run", "0-0-3-0", "1", "2"], 2, "expected one answer, found 2");
    refused(&["run", "0-0-3-0"], 2, "no answer was given");
    refused(&["run", "0-0-2-0", "5"], 2, "there is no open question `0-0-2-0`");
    refused(&["run", "../manifest", "5"], 2, "there is no open question");
    refused(&["elsewhere", "0-0-3-0", "5"], 3, "elsewhere does not exist");
    assert_eq!(pending(&folder, "run"), std::slice::from_ref(&question));
    // From standard input, without a value on the command line.
    let mut asked = command(&folder, &["answer", "run", "0-0-3-0"], &[]);
    let mut asked = asked.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    asked.stdin.take().unwrap().write_all(b" 42 \n").unwrap();
    assert!(asked.wait().unwrap().success());
    let (summary, notes, _) = process.end();
    assert_eq!(summary["status"], "done", "{notes}");
    assert!(notes.contains("human/ann is asked, and the run waits: `polity answer run`"), "{notes}");
    refused(&["run", "0-0-3-0", "43"], 2, "has ended; it accepts no more answers");
    refused(&["run"], 2, "has ended");
    // Even if the end of the journal is lost again, answers are kept.
    let twice =
        Mailbox::of(Arc::new(RealDisk), &folder.join("run")).answer("0-0-3-0", &Words::Typed(&["43".into()]), "x");
    assert!(twice.unwrap_err().to_string().contains("was already answered (by polity answer): 42"));
}

#[test]
fn without_an_answer_in_time_the_declared_default_holds_and_the_journal_says_so() {
    let folder = scratch("people-timeout");
    let mut scenario = game("sim/medium", 3, 2);
    scenario["humans"] = json!({"timeout": "1s"});
    let file = write_scenario(&folder, &scenario);
    let mut process = Process::start(&folder, &["run", file.to_str().unwrap(), "--out", "run"], &[]);
    let path = folder.join("run/people/0-0-3-0.question.json");
    process.until("a question", || path.exists());
    process.kill();
    let put = std::fs::read(&path).unwrap();
    // Time continues while no process runs, from when the question was first asked.
    sleep(Duration::from_millis(1100));
    let (summary, notes, code) = Process::start(&folder, &["resume", "run"], &[]).end();
    assert_eq!(code, Some(0), "{notes}");
    assert_eq!(std::fs::read(&path).unwrap(), put);
    assert_eq!((&summary["people"], &summary["resolutions"]["default"]), (&2.into(), &2.into()), "{summary}");
    let of_ann: Vec<_> =
        answers(&journal(&folder.join("run"))).into_values().flatten().filter(|a| a.id.actor == 3).collect();
    assert_eq!(of_ann.len(), 2);
    for answer in of_ann {
        assert!(
            matches!(&answer.outcome, Outcome::Failed { why } if why == "human/ann gave no answer within 1 s"),
            "{answer:?}"
        );
    }
    let acts = polity(&folder, &["export", "run", "--table", "acts", "--format", "jsonl"], &[]);
    let ann = text(&acts.stdout)
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|a| a["agent"] == 3)
        .count();
    assert_eq!((ann, text(&acts.stdout).matches("50.0").count()), (2, 2), "{}", text(&acts.stdout));
    assert_eq!(last_line(&polity(&folder, &["replay", "run", "--json"], &[]))["digest"], summary["digest"]);
    for (wrong, words) in [("24", "not a length of time"), ("0s", "above 0 s")] {
        scenario["humans"] = json!({ "timeout": wrong });
        let file = write_scenario(&folder, &scenario);
        let refused = polity(&folder, &["validate", file.to_str().unwrap()], &[]);
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_person_debates_with_models() {
    let folder = scratch("people-debate");
    let file = root().join("scenarios/debate-person.yaml");
    let mut process =
        Process::start(&folder, &["run", file.to_str().unwrap(), "--out", "run", "-P", "items.count=2"], &[]);
    let mut read = Vec::new();
    while process.0.try_wait().unwrap().is_none() {
        for question in pending(&folder, "run") {
            let unfit = answer(&folder, "run", &question, &["18"]);
            assert!(
                text(&unfit.stderr).contains("expected 2 values, found 1") || unfit.status.code() == Some(2),
                "{unfit:?}"
            );
            let taken = answer(&folder, "run", &question, &["As I said, \"nine\" at two.", "18"]);
            assert!(taken.status.success(), "{}", text(&taken.stderr));
            read.push(question["prompt"].as_str().unwrap().to_string());
        }
        sleep(Duration::from_millis(5));
    }
    let (summary, notes, code) = process.end();
    assert_eq!(code, Some(0), "{notes}");
    // Two items, two rounds; in the second she reads the others' answers and her own.
    assert_eq!((read.len(), &summary["people"]), (4, &4.into()));
    assert!(!read[0].contains("Others have worked"), "{read:?}");
    assert!(read[1].contains("Ada answers: ") && read[1].contains("You said:\nAnn answers: 18"), "{}", read[1]);
    let said = polity(&folder, &["export", "run", "--table", "messages", "--format", "jsonl"], &[]);
    // On each item both others were shown her answer.
    let hers = text(&said.stdout).lines().filter(|line| line.contains("\"from\":2") && line.contains("\"18\"")).count();
    assert_eq!(hers, 4, "{}", text(&said.stdout));
    assert_eq!(last_line(&polity(&folder, &["replay", "run", "--json"], &[]))["status"], "same");
}

#[test]
fn a_society_with_people_is_the_same_on_any_shards_and_arrivals() {
    let folder = scratch("people-shards");
    let mut scenario = game("sim/medium", 40, 3);
    // As many calls as the models make: people are not calls, and the limit is unchanged.
    scenario["budget"] = json!({"calls": 120});
    let play = |shards: usize, faults: Option<u64>| {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        let faults = faults.map(|seed| Faults { seed, failure: 0.2, repeat: 0.2 });
        let (mailbox, done) = (Mailbox::of(disk.clone(), Path::new("run")), AtomicBool::new(false));
        let summary = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    for question in mailbox.pending().unwrap() {
                        let round: u64 = question.id.split('-').nth(1).unwrap().parse().unwrap();
                        let words = [guess(round).to_string()];
                        mailbox.answer(&question.id, &Words::Typed(&words), "a test").unwrap();
                    }
                    sleep(Duration::from_millis(1));
                }
            });
            let summary = run(&engine(disk.clone(), shards, faults), &prepared(&scenario, &folder), Path::new("run"));
            done.store(true, Ordering::SeqCst);
            summary.unwrap()
        });
        assert_eq!((summary.status, summary.totals.people, summary.totals.denied), (RunStatus::Done, 3, 0));
        assert_eq!(replay(&engine(disk.clone(), 1, None), Path::new("run")).unwrap().status, RunStatus::Same);
        (summary.digest, tables(disk.as_ref(), Path::new("run")))
    };
    let (digest, like) = play(1, None);
    for (shards, faults) in [(3, None), (1, Some(1)), (3, Some(2))] {
        let (other, found) = play(shards, faults);
        assert_eq!(other, digest, "{shards} shards, arrival {faults:?}");
        assert_same_tables(&found, &like, "people");
    }
}

/// Sends a request to a run that listens; returns its status and body.
fn http(address: &str, token: Option<&str>, request: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let token = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\n{token}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap())
}

#[test]
fn over_http_with_the_token_alone() {
    let folder = scratch("people-http");
    let file = write_scenario(&folder, &game("sim/medium", 2, 1));
    let file = file.to_str().unwrap();
    for (flags, words) in [("0.0.0.0:0", "can be reached from other machines"), ("here", "invalid")] {
        let refused = polity(&folder, &["run", file, "--out", "no", "--listen", flags], &[]);
        assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
    let short = polity(&folder, &["run", file, "--out", "no", "--listen", "127.0.0.1:0"], &[("POLITY_TOKEN", "short")]);
    assert!(text(&short.stderr).contains("16 ASCII characters"), "{}", text(&short.stderr));
    let mut process = Process::start(&folder, &["run", file, "--out", "run", "--listen", "127.0.0.1:0"], &[]);
    let mut line = String::new();
    let mut notes = BufReader::new(process.0.stderr.take().unwrap());
    notes.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_string();
    let token = line.trim().rsplit(' ').next().unwrap().to_string();
    assert_eq!(token.len(), 32, "{line}");
    process.until("a question", || pending(&folder, "run").len() == 1);
    let with = Some(token.as_str());
    for token in [None, Some(""), Some("0"), Some(&token[1..]), Some("00000000000000000000000000000000")] {
        assert_eq!(http(&address, token, "GET /questions", "").0, 401, "{token:?}");
        assert_eq!(http(&address, token, "POST /questions/0-0-2-0", r#"{"answer": 5}"#).0, 401, "{token:?}");
    }
    let (status, listed) = http(&address, with, "GET /questions", "");
    assert_eq!((status, &listed[0]["id"]), (200, &"0-0-2-0".into()));
    for (path, body, status) in [
        ("0-0-1-0", r#"{"answer": 5}"#, 404),
        ("0-0-2-0", r#"{"answer": 101}"#, 422),
        ("0-0-2-0", "5", 400),
        ("0-0-2-0", "", 400),
    ] {
        let (found, said) = http(&address, with, &format!("POST /questions/{path}"), body);
        assert!(found == status && said["error"].is_string(), "{path} {body}: {found} {said}");
    }
    assert_eq!(http(&address, with, "GET /other", "").0, 404);
    assert_eq!(http(&address, with, "POST /questions/0-0-2-0", r#"{"answer": 12.5}"#).0, 200);
    process.0.wait().unwrap();
    let of_ann =
        answers(&journal(&folder.join("run"))).into_values().flatten().find(|answer| answer.id.actor == 2).unwrap();
    assert!(matches!(of_ann.outcome, Outcome::Reply { ref raw, .. } if raw == "12.5"), "{of_ann:?}");
    // The token is in no file of the run.
    assert_eq!(mock_server::holding(&folder.join("run"), &token), [] as [PathBuf; 0]);
}

#[test]
fn in_a_terminal_it_asks_there() {
    let folder = scratch("people-terminal");
    let file = write_scenario(&folder, &game("sim/medium", 2, 2));
    // Creates a terminal; on a machine without this command, only this part is not tested.
    let line = format!("{} run {} --out run --no-report", env!("CARGO_BIN_EXE_polity"), file.display());
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else {
        println!("no command `script` here: the terminal was not tested");
        return;
    };
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(b"one hundred\n33\n20\n").unwrap();
    let mut seen = String::new();
    child.stdout.take().unwrap().read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    assert!(seen.contains("expected: a number from 0 to 100") && seen.contains("the answer does not fit"), "{seen}");
    let raw: Vec<String> = answers(&journal(&folder.join("run")))
        .into_values()
        .flatten()
        .filter(|answer| answer.id.actor == 2)
        .map(|answer| answer.outcome.words().to_string())
        .collect();
    assert_eq!(raw, ["33", "20"]);
}

/// Models only, in rounds that take a while.
fn slow(folder: &Path, agents: u32, rounds: u32) -> PathBuf {
    let mut scenario = game("openai/medium", agents, rounds);
    scenario["cohorts"].as_array_mut().unwrap().pop();
    scenario["agents"] = agents.into();
    write_scenario(folder, &scenario)
}

#[test]
fn a_run_is_paused_told_to_go_on_and_stopped_and_nothing_shows() {
    let folder = scratch("ctl-pause");
    let file = slow(&folder, 40, 4);
    let file = file.to_str().unwrap();
    let mock_server = MockServer::start(&["--latency-ms", "1"]);
    let begin = |out| ["run", file, "--out", out, "--max-connections", "2"];
    let whole = polity(&folder, &[&begin("whole")[..], &["--no-report", "--json"]].concat(), &mock_server.variables());
    let digest = last_line(&whole)["digest"].clone();

    // Long enough that a command from a busy machine still finds it running.
    let mock_server = MockServer::start(&["--latency-ms", "60"]);
    let mut process = Process::start(&folder, &begin("run"), &mock_server.variables());
    process.until("calls", || mock_server.count("answered") >= 5);
    let paused = ctl(&folder, "run", &["pause"]);
    assert!(
        paused.status.success() && text(&paused.stderr).contains("no new calls are made"),
        "{}",
        text(&paused.stderr)
    );
    let sent = mock_server.count("calls");
    process.until("the calls in flight", || mock_server.count("in_flight") == 0);
    // Within the round, too: only calls already being sent are made.
    let then = mock_server.count("calls");
    assert!(then <= sent + 2, "{sent} calls when it was paused, then {then}");
    let (count, recorded_then) = (mock_server.count("calls"), rows(&folder, "run"));
    sleep(Duration::from_millis(400));
    assert_eq!((mock_server.count("calls"), rows(&folder, "run")), (count, recorded_then), "it stands still");
    assert!(count < 160 && process.0.try_wait().unwrap().is_none());
    // What was in flight at the pause is recorded.
    assert_eq!(recorded_then as u64, mock_server.count("answered"));
    assert!(ctl(&folder, "run", &["set", "max-connections=7"]).status.success());
    assert!(ctl(&folder, "run", &["resume"]).status.success());
    process.until("more calls at once", || mock_server.count("most_in_flight") > 2);
    assert!(ctl(&folder, "run", &["stop"]).status.success());
    let (summary, notes, code) = process.end();
    assert_eq!((code, &summary["status"]), (Some(6), &"stopped".into()), "{notes}");
    assert!(mock_server.count("most_in_flight") <= 7);
    let (again, notes, _) = Process::start(&folder, &["resume", "run"], &mock_server.variables()).end();
    assert_eq!(again["digest"], digest, "{notes}");
    assert_eq!((mock_server.count("answered"), mock_server.count("repeated")), (160, 0));

    let orders: Vec<String> = recorded(Arc::new(RealDisk), &folder.join("run"))
        .unwrap()
        .iter()
        .map(|order| order.order.to_string())
        .collect();
    assert_eq!(orders, ["pause", "set max-connections=7", "resume", "stop"]);
    assert!(notes.contains("commands during the run: pause, set max-connections=7, resume, stop"), "{notes}");
    assert!(polity(&folder, &["report", "run"], &[]).status.success());
    let report = std::fs::read_to_string(folder.join("run/report.html")).unwrap();
    assert!(report.contains("Commands during the run") && report.contains("set max-connections=7"));
    for (run, words, code) in
        [("run", "is not under way: the run is done. `polity fork run", 2), ("nowhere", "does not exist", 3)]
    {
        let refused = ctl(&folder, run, &["pause"]);
        assert!(
            refused.status.code() == Some(code) && text(&refused.stderr).contains(words),
            "{}",
            text(&refused.stderr)
        );
    }
    assert_eq!(last_line(&polity(&folder, &["replay", "run", "--json"], &[]))["digest"], digest);
}

#[test]
fn a_limit_that_was_set_is_a_wall_at_once_and_after_a_crash() {
    let folder = scratch("ctl-limit");
    let file = slow(&folder, 60, 3);
    let file = file.to_str().unwrap();
    let mock_server = MockServer::start(&["--latency-ms", "1"]);
    let digest =
        Process::start(&folder, &["run", file, "--out", "whole"], &mock_server.variables()).end().0["digest"].clone();
    // A limit below the spent amount: unsent calls are no longer sent.
    let mock_server = MockServer::start(&["--latency-ms", "40"]);
    let mut process =
        Process::start(&folder, &["run", file, "--out", "low", "--max-connections", "2"], &mock_server.variables());
    process.until("calls", || mock_server.count("answered") >= 6);
    let said = ctl(&folder, "low", &["set", "max-calls=3"]);
    assert!(
        text(&said.stderr).contains("the run stops because the budget of the run is 3 calls"),
        "{}",
        text(&said.stderr)
    );
    let (summary, notes, code) = process.end();
    assert_eq!((code, &summary["status"]), (Some(7), &"budget".into()), "{notes}");
    let made = mock_server.count("answered");
    assert!((6..180).contains(&made) && summary["calls"] == made && summary["denied"] == 0, "{made}: {summary}");
    let refused = polity(&folder, &["resume", "low", "--json"], &mock_server.variables());
    assert!(
        refused.status.code() == Some(2) && text(&refused.stderr).contains("has used up its budget"),
        "{refused:?}"
    );
    let (summary, notes, code) =
        Process::start(&folder, &["resume", "low", "--max-calls", "1000"], &mock_server.variables()).end();
    assert_eq!((code, &summary["status"]), (Some(0), &"done".into()), "{notes}");
    assert_eq!((&summary["digest"], mock_server.count("repeated")), (&digest, 0), "nobody was denied");

    // A limit above it, within a round whose calls were all admitted: only as many are made as still fit.
    let mock_server = MockServer::start(&["--latency-ms", "40"]);
    let mut process =
        Process::start(&folder, &["run", file, "--out", "middle", "--max-connections", "2"], &mock_server.variables());
    process.until("calls", || mock_server.count("answered") >= 6);
    assert!(ctl(&folder, "middle", &["set", "max-calls=40"]).status.success());
    let (summary, notes, code) = process.end();
    assert_eq!((code, mock_server.count("answered"), &summary["denied"]), (Some(7), 40, &20.into()), "{notes}");

    // A limit above it, on a run that had none; then the process is killed, and the limit remains.
    let mock_server = MockServer::start(&["--latency-ms", "40"]);
    let mut process =
        Process::start(&folder, &["run", file, "--out", "run", "--max-connections", "3"], &mock_server.variables());
    process.until("calls", || mock_server.count("answered") >= 6);
    let unpriced = ctl(&folder, "run", &["set", "max-cost=1"]);
    assert!(
        text(&unpriced.stderr).contains("the price of a model of this run is unknown"),
        "{}",
        text(&unpriced.stderr)
    );
    assert!(ctl(&folder, "run", &["set", "max-calls=100"]).status.success());
    process.until("more calls", || mock_server.count("answered") >= 12);
    process.kill();
    let (summary, notes, code) =
        Process::start(&folder, &["resume", "run", "--max-connections", "3"], &mock_server.variables()).end();
    assert_eq!((code, &summary["status"]), (Some(7), &"budget".into()), "{notes}");
    // Calls sent before the kill may have been answered, and are counted: three at once, and earlier ones whose answers were not yet
    // kept.
    let counted = summary["calls"].as_u64().unwrap() + summary["charged"].as_u64().unwrap();
    assert_eq!(counted, 100, "{summary}");
    assert!(summary["charged"].as_u64() <= Some(6) && mock_server.count("answered") <= 100, "{summary}");
    let orders: Vec<Order> =
        recorded(Arc::new(RealDisk), &folder.join("run")).unwrap().into_iter().map(|order| order.order).collect();
    assert!(matches!(orders.as_slice(), [Order::Set { .. }]), "what was refused is not recorded: {orders:?}");
    assert_eq!(last_line(&polity(&folder, &["replay", "run", "--json"], &[]))["status"], "same");
}

#[test]
fn an_evaluation_takes_orders_too_and_a_stop_leaves_questions_pending() {
    let folder = scratch("ctl-evaluation");
    let file = root().join("scenarios/debate-person.yaml");
    let args = [
        "run",
        file.to_str().unwrap(),
        "--out",
        "run",
        "-P",
        "items.count=2",
        "-P",
        "max_concurrent=2",
        "-P",
        "rounds=1",
    ];
    let mut process = Process::start(&folder, &args, &[]);
    process.until("both questions", || pending(&folder, "run").len() == 2);
    let asked = pending(&folder, "run");
    assert!(ctl(&folder, "run", &["set", "max-calls=4"]).status.success());
    assert!(ctl(&folder, "run", &["stop"]).status.success());
    let (summary, notes, code) = process.end();
    assert_eq!(code, Some(6), "{summary} {notes}");
    assert_eq!(pending(&folder, "run"), asked);
    for question in &asked {
        assert!(answer(&folder, "run", question, &["18", "so"]).status.success());
    }
    // All model calls were made before the limit was set; people are not calls.
    let (summary, notes, code) = Process::start(&folder, &["resume", "run"], &[]).end();
    assert_eq!((code, &summary["people"], &summary["calls"]), (Some(0), &2.into(), &4.into()), "{notes}");
}
