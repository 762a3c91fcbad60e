//! Tests of the library as used by an embedding program: the example, and what the examples of the documentation do not show.

use crate::harness::scratch;
use polity::kernel::ask::{Request, ResponseFormat};
use polity::{Error, Event, Reply, RunStatus, Simulation};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

#[path = "../examples/embedding.rs"]
mod example;

fn minds(model: &str) -> Value {
    json!({
        "name": "minds", "rounds": 3, "agents": 3, "model": model, "world": {"kind": "guess-average"},
        "cohorts": [{"policy": {"kind": "mind"}}], "metrics": [{"kind": "mean", "of": "guess"}]
    })
}

/// Keeps what is written; disconnects after this many lines.
#[derive(Clone, Default)]
struct Caller(Arc<Mutex<Vec<u8>>>, Option<usize>);

impl io::Write for Caller {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut said = self.0.lock().unwrap();
        if self.1.is_some_and(|most| said.iter().filter(|byte| **byte == b'\n').count() >= most) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_service_streams_three_agents() {
    let caller = Caller::default();
    let run = example::serve(3, caller.clone()).unwrap();
    assert_eq!((run.status(), run.agents(), run.totals().calls), (RunStatus::Done, 3, 9));
    assert_eq!(run.metric("guess.mean").unwrap(), 75.0);
    let said = String::from_utf8(caller.0.lock().unwrap().clone()).unwrap();
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).cloned().collect::<Vec<_>>();
    assert_eq!((of("round").len(), of("call").len()), (3, 9));
    assert_eq!(of("round")[2]["metrics"]["guess.mean"], 75.0);
    assert_eq!(of("call")[0]["answer"], "75");
    // All say the same in every round, which gives an alarm, at the end.
    assert_eq!(of("alarm")[0]["kind"], "no-variance");
    assert_eq!(events.last().unwrap()["event"], "alarm");
}

#[test]
fn a_caller_that_has_gone_stops_the_run() {
    let run = example::serve(50, Caller(Arc::default(), Some(7))).unwrap();
    assert_eq!(run.status(), RunStatus::Stopped);
    assert!(run.rounds() < 50);
    let run = run.resume().run().unwrap();
    assert_eq!((run.status(), run.rounds()), (RunStatus::Done, 50));
    assert_eq!(run.replay().unwrap().status, RunStatus::Same);
}

#[test]
fn the_command_and_the_library_make_the_same_run() {
    let folder = scratch("embedding-same");
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/guess-average.yaml");
    let out = folder.join("by-command");
    let said = crate::harness::polity(&[
        "run",
        scenario.to_str().unwrap(),
        "--seed",
        "5",
        "-P",
        "world.fraction=0.5",
        "--agents",
        "50",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let of_command = polity::Run::open(&out).unwrap();
    let simulation = Simulation::from_file(&scenario).unwrap().seed(5).agents(50).set("world.fraction", 0.5).unwrap();
    let own = simulation.clone().in_memory().run().unwrap();
    assert_eq!(own.digest(), of_command.digest());
    assert_eq!(own.metrics().unwrap(), of_command.metrics().unwrap());
    assert_eq!(own.table("acts").unwrap(), of_command.table("acts").unwrap());
    assert_eq!((of_command.status(), of_command.agents(), of_command.rounds()), (RunStatus::Done, 50, 10));
    // The command reads what the library writes.
    let run = simulation.out(folder.join("by-library")).run().unwrap();
    let said = crate::harness::polity(&["replay", run.folder().to_str().unwrap()]);
    assert_eq!((said.code, &said.json["status"]), (Some(0), &json!("same")), "{said:?}");
}

#[test]
fn errors_name_the_path_and_the_place() {
    let wrong = |scenario: Value| Simulation::from_value(scenario).unwrap().in_memory().run().unwrap_err();
    let mut scenario = minds("sim/medium");
    scenario["cohorts"][0]["policy"]["agian"] = json!(1);
    let error = wrong(scenario);
    assert_eq!(error.path(), Some("cohorts[0].policy.agian"));
    assert!(error.to_string().contains("known keys: model, models"), "{error}");
    let error = wrong(minds("mine/none"));
    assert!(matches!(error, Error::Run(_)) && error.to_string().contains("there is no provider `mine`"), "{error}");
    let text = "rounds: 1\nworld: {kind: guess-average, fraction: 7}\ncohorts: [{policy: {kind: noise}}]\nagents: 2";
    let error = Simulation::from_yaml(text).unwrap().validate().unwrap_err();
    assert!(error.to_string().starts_with("the scenario's text:2:40: world.fraction: "), "{error}");
    let scenario = Simulation::from_yaml(text).unwrap();
    let error = scenario.set("world.fraction", "many").unwrap().validate().unwrap_err();
    assert_eq!(error.path(), Some("world.fraction"));
    // Settings that a resumed run and a fork cannot change.
    let mut rules = minds("sim/small");
    rules["cohorts"][0]["policy"] = json!("noise");
    let done = Simulation::from_value(rules).unwrap().in_memory().run().unwrap();
    let error = done.resume().seed(2).run().unwrap_err();
    assert!(error.path() == Some("seed") && error.to_string().contains("fork it"), "{error}");
    assert_eq!(done.resume().set("world.fraction", 1).unwrap_err().path(), Some("world.fraction"));
    assert_eq!(done.fork(1).agents(7).run().unwrap_err().path(), Some("agents"));
    assert_eq!(done.fork(1).rounds(5).max_calls(100).run().unwrap().rounds(), 5);
    let missing = Simulation::from_file("no/such.yaml").unwrap_err();
    assert_eq!(missing.to_string(), "there is no file `no/such.yaml`");
    let error = polity::Run::open("no/such").unwrap_err();
    assert!(error.to_string().contains("no/such does not exist"), "{error}");
}

#[test]
fn a_model_of_the_program_is_reasked_refuses_fails_and_panics() {
    // Everybody's first answer does not fit, and is retried.
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let stubborn = move |request: &Request| {
        assert!(matches!(request.response_format, ResponseFormat::Number { .. }));
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::from("I would rather not say a number."),
            _ => Reply::from(20.0),
        }
    };
    let run = |model: Simulation| model.in_memory().run();
    let minds = || Simulation::from_value(minds("mine/one")).unwrap();
    let done = run(minds().model("mine/one", stubborn)).unwrap();
    assert_eq!((done.totals().calls, done.totals().resolutions.reasked), (10, 1));
    assert_eq!(asked.load(Ordering::SeqCst), 10);
    // A provider's name alone answers for all of its models; an error is no reply.
    let failing = run(minds().model("mine", |_: &Request| Err::<f64, _>("the line is down"))).unwrap();
    assert!(failing.calls().unwrap().iter().all(|call| call.outcome == "failed" && call.answer == "the line is down"));
    let refusing = run(minds().model("mine", |_: &Request| Reply::Refused("no".into()))).unwrap();
    assert!(refusing.calls().unwrap().iter().all(|call| call.outcome == "refused"));
    // A panic stops the run, but not the program.
    let panics = |_: &Request| -> f64 { panic!("a defect of the program") };
    let error = run(minds().model("mine/one", panics)).unwrap_err();
    assert!(error.to_string().contains("`mine/one` did not finish"), "{error}");
    // Without the function, the recorded answers are enough.
    assert_eq!(done.replay().unwrap().status, RunStatus::Same);
}

#[test]
fn a_run_on_a_thread_is_heard_and_stopped_from_another() {
    let mut scenario = minds("mine/slow");
    scenario["rounds"] = json!(10_000);
    let slow = |_: &Request| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        30.0
    };
    let running = Simulation::from_value(scenario).unwrap().model("mine/slow", slow).in_memory().spawn();
    let rounds = running.events().filter(|event| matches!(event, Event::Round { .. })).take(3).count();
    assert_eq!(rounds, 3);
    running.stop();
    let run = running.join().unwrap();
    assert_eq!(run.status(), RunStatus::Stopped);
    assert!((3..10_000).contains(&run.rounds()));
    // If stopped in the middle of a round, its tables have the rounds up to its last snapshot, possibly none.
    let series = run.series("guess.mean").unwrap_or_default();
    assert!(series.len() <= run.rounds() as usize, "{} rounds, {series:?}", run.rounds());
}

#[test]
fn everybody_is_asked_of_one_model() {
    let mut scenario = minds("sim/small");
    scenario["cohorts"][0]["policy"]["model"] = json!("sim/large");
    let run = Simulation::from_value(scenario).unwrap().ask("sim/medium").in_memory().run().unwrap();
    assert_eq!(run.manifest().models, ["sim/medium"]);
    assert!(run.calls().unwrap().iter().all(|call| call.model == "sim/medium"));
}
