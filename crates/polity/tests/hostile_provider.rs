//! Runs against an endpoint that disconnects, lies, stalls and sends invalid data. Nothing hangs, no limit is exceeded by the endpoint's
//! own count, no transport error becomes an answer, and interrupted runs can be resumed and replayed.
//!
//! The long forms: `bash scripts/campaigns.sh hostile outages caps`.

use crate::harness::{arg, askers, command, engine, events, from_env, prepared, said, scratch, team, write_scenario};
use crate::hostile::{Act, BEHAVIOURS, Hostile, Kind, When, act};
use polity_driver::drive::Unwatched;
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::{Notes, Outside};
use polity_kernel::event::Event;
use polity_kernel::scenario::Budget;
use polity_models::models::Providers;
use polity_models::models::keys::Secret;
use polity_models::models::openai::{OpenAi, Settings};
use polity_store::DriveError;
use polity_store::disk::{Disk, SimDisk};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};

const MODEL: &str = "openai/medium";
const KEY: &str = "sk-canary-5ecre7-0123456789abcdef";
/// After this time a run counts as hanging, on any machine.
const HANGS: Duration = Duration::from_secs(400);

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

/// An engine that asks this address, with long patience but short timeouts.
fn at(url: &str, disk: &Arc<dyn Disk>) -> Engine<'static> {
    let provider = OpenAi::new(url, Secret::new(KEY)).unwrap();
    let provider = provider.with(Settings { timeout_ms: Some(1_000), ..Settings::default() });
    let providers = Arc::new(Providers::of(vec![Box::new(provider)]));
    let outside = Outside { patience: Some(Duration::from_secs(600)), ..Outside::default() };
    Engine { providers, outside, ..engine(disk.clone(), 1, None) }
}

fn begin(engine: &Engine<'_>, scenario: &Value, folder: &Path) -> Result<Summary, DriveError> {
    engine.run(&prepared(scenario, folder), Path::new("run"), &mut Unwatched)
}

fn resume(engine: &Engine<'_>) -> Result<Summary, DriveError> {
    engine.resume(Path::new("run"), &mut Unwatched)
}

/// Replays the run without any model.
fn replays(disk: &Arc<dyn Disk>) {
    let replayed = at("http://127.0.0.1:1/v1", disk).replay(Path::new("run"), &mut Unwatched).unwrap();
    assert_eq!(replayed.status, RunStatus::Same);
}

/// Returns the result of a thread, or fails if it hangs.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tells, told) = mpsc::channel();
    let worker = spawn(move || tells.send(work()));
    match told.recv_timeout(HANGS) {
        Ok(done) => done,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            worker.join().unwrap().unwrap();
            unreachable!("it has panicked")
        }
    }
}

/// Runs all in parallel, each in its own thread.
fn each<T: Send + Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    let next = Mutex::new(all.iter());
    scope(|scope| {
        // Most of the time they wait.
        for _ in 0..64 {
            scope.spawn(|| {
                while let Some(one) = { next.lock().unwrap().next() } {
                    work(one);
                }
            });
        }
    });
}

#[test]
fn every_behaviour_ends_and_goes_on_and_replays() {
    let folder = scratch("hostile-each");
    let scenario = askers(MODEL, 6, 2, false);
    let honest = begin(&at(&Hostile::honest().url(), &disk()), &scenario, &folder).unwrap();
    assert_eq!((honest.totals.calls, honest.totals.resolutions.fit, honest.totals.requests), (18, 18, 18));
    assert!(BEHAVIOURS.len() >= 110, "{}", BEHAVIOURS.len());
    each(BEHAVIOURS, |(name, kind, act)| {
        let (scenario, folder, act, name) = (scenario.clone(), folder.clone(), *act, *name);
        let (disk, digest) = ends(name, move || {
            let server = Hostile::start(vec![act], When::Drawn(0.4, 7), Duration::ZERO);
            let disk = disk();
            let ended = begin(&at(&server.url(), &disk), &scenario, &folder);
            let summary = match ended {
                Ok(summary) => summary,
                // A stopped run is intact: with an honest server it continues.
                Err(DriveError::Lost(why)) => {
                    assert!(!why.contains(KEY), "{name}: {why}");
                    resume(&at(&Hostile::honest().url(), &disk)).unwrap()
                }
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(summary.status, RunStatus::Done, "{name}");
            assert!(server.books().requests > 0, "{name}");
            (disk, summary.digest)
        });
        replays(&disk);
        match kind {
            Kind::Trouble | Kind::Stops => assert_eq!(digest, honest.digest, "{name}: trouble became an answer"),
            Kind::Answer => {}
        }
    });
}

/// All failures without an answer, at once.
fn troubles() -> Vec<Act> {
    let slow = ["hang", "drip"];
    let of = |(name, kind, act): &(&str, Kind, Act)| (*kind == Kind::Trouble && !slow.contains(name)).then_some(*act);
    BEHAVIOURS.iter().filter_map(of).collect()
}

#[test]
fn limits_hold_by_the_books_of_the_endpoint_and_nothing_hangs() {
    let folder = scratch("hostile-caps");
    let seeds = u64::from(from_env("POLITY_HOSTILE", 8));
    let others = if seeds > 8 { seeds } else { 2 };
    let scenarios = [askers(MODEL, 12, 2, false), {
        let mut scenario = team(&folder, "debate", 6, 2);
        scenario["model"] = MODEL.into();
        scenario["settings"] = json!({"max_tokens": 200});
        scenario
    }];
    // Each limit leaves about half of what a run needs.
    let limits =
        [json!({"calls": 20}), json!({"requests": 30}), json!({"tokens": 3000}), json!({"calls": 25, "requests": 40})];
    let mut cases = Vec::new();
    for seed in 0..seeds {
        // Resets with each limit, other failures in turn.
        let limit = |n: u64| limits[(n % limits.len() as u64) as usize].clone();
        cases.push((seed, "resets", vec![act("reset")], limits[0].clone()));
        if seed >= others {
            continue;
        }
        cases.push((seed, "cut", vec![act("close"), act("cut-in-the-middle")], limit(seed)));
        cases.push((seed, "500", vec![act("500"), act("429"), act("503-now")], limit(seed + 1)));
        cases.push((seed, "page", vec![act("page"), act("502-page")], limit(seed + 2)));
        cases.push((seed, "all", troubles(), limit(seed + 3)));
    }
    let stopped = Mutex::new(0);
    each(&cases, |(seed, name, acts, limit)| {
        let mut scenario = scenarios[(*seed % 2) as usize].clone();
        scenario["budget"] = limit.clone();
        let what = format!("{name}, seed {seed}, {limit}");
        let (folder, acts, seed, limit, shown) = (folder.clone(), acts.clone(), *seed, limit.clone(), what.clone());
        let ended_early = ends(&what, move || {
            let server = Hostile::start(acts, When::Drawn(0.5, seed), Duration::ZERO);
            let disk = disk();
            let summary = begin(&at(&server.url(), &disk), &scenario, &folder).unwrap();
            let (books, totals) = (server.books(), summary.totals);
            let within = |key: &str, counted: u64, theirs: u64| {
                let limit = limit.get(key).and_then(Value::as_u64).unwrap_or(u64::MAX);
                assert!(theirs <= limit, "{shown}: {theirs} {key} there");
                assert!(counted <= limit, "{shown}: {counted} {key} here");
                assert!(theirs <= counted, "{shown}: {theirs} {key} there, {counted} here");
            };
            within("calls", totals.calls + totals.charged, books.answered);
            within("requests", totals.requests, books.requests);
            within("tokens", totals.tokens_in + totals.tokens_out, books.tokens);
            let early = summary.status == RunStatus::Budget || totals.denied > 0;
            // With enough budget it continues to its end, at an equally bad endpoint.
            if summary.status == RunStatus::Budget {
                let budget = Budget {
                    calls: Some(100_000),
                    requests: Some(100_000),
                    tokens: Some(100_000_000),
                    ..Budget::default()
                };
                let resumed = resume(&Engine { budget, ..at(&server.url(), &disk) }).unwrap();
                assert_eq!(resumed.status, RunStatus::Done, "{shown}");
            }
            replays(&disk);
            early
        });
        *stopped.lock().unwrap() += usize::from(ended_early);
    });
    let stopped = stopped.into_inner().unwrap();
    assert!(stopped * 2 > cases.len(), "a limit was met in {stopped} runs of {}", cases.len());
}

#[test]
fn a_server_that_tells_no_tokens_is_counted_from_above() {
    let folder = scratch("hostile-usage");
    let lies: Vec<(&str, Act)> =
        BEHAVIOURS.iter().filter(|(name, ..)| name.starts_with("usage-")).map(|(name, _, act)| (*name, *act)).collect();
    assert_eq!(lies.len(), 10);
    let mut scenario = askers(MODEL, 40, 2, false);
    scenario["settings"] = json!({"max_tokens": 60});
    let honest = Hostile::honest();
    let whole = begin(&at(&honest.url(), &disk()), &scenario, &folder).unwrap();
    let books = honest.books();
    assert_eq!(whole.totals.tokens_in + whole.totals.tokens_out, books.tokens, "an honest server is believed");
    assert_eq!(whole.totals.estimated, 0);
    each(&lies, |(name, act)| {
        for budget in [json!({"tokens": books.tokens / 2}), json!({"cost_usd": whole.totals.cost_usd / 2.0})] {
            let mut scenario = scenario.clone();
            scenario["budget"] = budget.clone();
            let server = Hostile::start(vec![*act], When::Drawn(1.0, 1), Duration::ZERO);
            let told: Arc<Mutex<Vec<String>>> = Arc::default();
            let sink = told.clone();
            let engine = at(&server.url(), &disk());
            let notes = Notes::to(move |text| sink.lock().unwrap().push(text.to_owned()));
            let engine = Engine { outside: Outside { notes, ..engine.outside.clone() }, ..engine };
            let summary = begin(&engine, &scenario, &folder).unwrap();
            let theirs = server.books();
            assert!(theirs.tokens <= books.tokens / 2 + 1, "{name}, {budget}: {} tokens there", theirs.tokens);
            assert!(theirs.tokens <= summary.totals.tokens_in + summary.totals.tokens_out, "{name}");
            assert!(theirs.answered > 0 && summary.totals.denied > 0, "{name}: {:?}", summary.totals);
            assert_eq!(summary.totals.estimated, summary.totals.calls, "{name}");
            let told = told.lock().unwrap();
            let said = told.iter().filter(|note| note.contains("does not report how many tokens")).count();
            assert_eq!(said, 1, "{name}: {told:?}");
        }
    });
}

#[test]
fn an_outage_changes_no_result() {
    let folder = scratch("hostile-outage");
    let scenario = askers(MODEL, 60, 4, false);
    let whole = begin(&at(&Hostile::honest().url(), &disk()), &scenario, &folder).unwrap();
    let seconds = std::env::var("POLITY_OUTAGES").unwrap_or_else(|_| "2,6".into());
    let seconds: Vec<u64> = seconds.split(',').map(|text| text.trim().parse().unwrap()).collect();
    each(&seconds, |seconds| {
        let mut server = Hostile::start(vec![act("reset")], When::Drawn(0.0, 1), Duration::from_millis(20));
        let (url, disk) = (server.url(), disk());
        let (scenario, folder, shared) = (scenario.clone(), folder.clone(), disk.clone());
        let running = spawn(move || {
            // The default: an hour, once the first answer has arrived.
            let engine = at(&url, &shared);
            let outside = Outside { patience: None, ..engine.outside.clone() };
            begin(&Engine { outside, connections: 16, ..engine }, &scenario, &folder)
        });
        while server.books().answered < 120 {
            sleep(Duration::from_millis(5));
        }
        server.close();
        sleep(Duration::from_secs(*seconds));
        server.open();
        let summary = ends("outage", move || running.join().unwrap().unwrap());
        assert_eq!((summary.status, &summary.digest), (RunStatus::Done, &whole.digest), "{seconds} s");
        let totals = summary.totals;
        assert_eq!((totals.resolutions, totals.calls), (whole.totals.resolutions, whole.totals.calls), "{seconds} s");
        assert!(totals.retries > 0, "{seconds} s: nobody noticed");
        replays(&disk);
    });
}

#[test]
fn a_run_stops_when_it_is_told_to_though_nobody_answers() {
    let folder = scratch("hostile-stop");
    let mut scenario = team(&folder, "debate", 6, 2);
    scenario["model"] = MODEL.into();
    let file = write_scenario(&folder, &scenario);
    let honest = Hostile::honest();
    let with = |url: &str, args: &[&str]| {
        let mut command = command(args);
        command.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", KEY);
        command
    };
    let whole = said(&with(&honest.url(), &["run", arg(&file), "--out", arg(&folder.join("whole"))]).output().unwrap());
    assert_eq!(whole.code, Some(0), "{whole:?}");
    // The first answers come; then nothing does.
    let ways = ["max-time", "ctrl-c", "ctl-stop", "patience"];
    each(&ways, |way| {
        let server = Hostile::start(vec![Act::Hang], When::Drawn(0.9, 3), Duration::ZERO);
        let out = folder.join(way);
        let flags = match *way {
            "max-time" => vec!["--max-time", "2", "--grace", "1s"],
            "patience" => vec!["--patience", "3s", "--request-timeout", "1s"],
            _ => vec!["--grace", "1s"],
        };
        let args = [&["run", arg(&file), "--out", arg(&out), "--max-connections", "16"][..], &flags].concat();
        let mut child = with(&server.url(), &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while server.books().requests < 3 {
            sleep(Duration::from_millis(10));
        }
        match *way {
            "ctrl-c" => {
                let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
                assert!(sent.unwrap().success());
            }
            "ctl-stop" => {
                let stop =
                    Command::new(env!("CARGO_BIN_EXE_polity")).args(["ctl", arg(&out), "stop"]).output().unwrap();
                assert!(stop.status.success(), "{stop:?}");
            }
            _ => {}
        }
        let began = Instant::now();
        let output = loop {
            match child.try_wait().unwrap() {
                Some(_) => break child.wait_with_output().unwrap(),
                None if began.elapsed() > HANGS => {
                    let _ = child.kill();
                    panic!("{way}: it hangs");
                }
                None => sleep(Duration::from_millis(20)),
            }
        };
        let stopped = said(&output);
        let code = match *way {
            "max-time" => 7,
            "patience" => 8,
            _ => 6,
        };
        assert_eq!(stopped.code, Some(code), "{way}: {stopped:?}");
        if *way != "patience" {
            let (charged, requests) = (&stopped.json["charged"], &stopped.json["requests"]);
            assert!(charged.as_u64() <= requests.as_u64(), "{way}: {stopped:?}");
        }
        let resumed = said(&with(&honest.url(), &["resume", arg(&out)]).output().unwrap());
        assert_eq!((resumed.code, resumed.text("digest")), (Some(0), whole.text("digest")), "{way}: {resumed:?}");
        // Requests in flight at the stop may have been answered, and are counted.
        assert!(resumed.json["charged"].as_u64() > Some(0), "{way}: {resumed:?}");
        assert!(resumed.notes.contains("in flight when a process ended"), "{way}: {resumed:?}");
    });
}

#[test]
fn what_is_sent_is_counted_though_the_process_is_killed() {
    let folder = scratch("hostile-kills");
    let mut scenario = team(&folder, "debate", 120, 3);
    scenario["model"] = MODEL.into();
    scenario["max_concurrent"] = 40.into();
    let file = write_scenario(&folder, &scenario);
    let kills = from_env("POLITY_CAP_KILLS", 11);
    let server = Hostile::start(vec![act("reset")], When::Drawn(0.0, 1), Duration::from_millis(60));
    let out = folder.join("out");
    let cap = 300;
    let mut killed = 0;
    let last = loop {
        let began = out.join("manifest.json").exists();
        let cap = cap.to_string();
        let args = match began {
            false => vec!["run", arg(&file), "--out", arg(&out), "--max-calls", &cap],
            true => vec!["resume", arg(&out)],
        };
        let mut command = command(&[&args[..], &["--max-connections", "64"]].concat());
        command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", KEY);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if killed < kills {
            // In the middle of the calls, after some more.
            let before = server.books().requests;
            while server.books().requests < before + 12 && child.try_wait().unwrap().is_none() {
                sleep(Duration::from_millis(1));
            }
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
                continue;
            }
        }
        break said(&child.wait_with_output().unwrap());
    };
    let books = server.books();
    assert_eq!(last.code, Some(7), "the limit was met: {last:?}");
    // The limit is used up by the count, which includes everything answered within it.
    let counted = match &last.json["calls"] {
        Value::Null => 300,
        calls => calls.as_u64().unwrap() + last.json["charged"].as_u64().unwrap(),
    };
    assert!(books.answered <= 300, "{books:?} after {killed} kills: {last:?}");
    assert!(counted <= 300 && books.answered <= counted, "{counted} here, {books:?} after {killed} kills");
    assert!(killed >= 3, "{killed}");
    // With enough budget it ends, with the same result as a run that was not killed.
    let enough = ["resume", arg(&out), "--max-calls", "100000", "--max-connections", "64"];
    let mut go_on = command(&enough);
    let done = said(&go_on.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", KEY).output().unwrap());
    let mut whole = command(&["run", arg(&file), "--out", arg(&folder.join("whole"))]);
    let whole =
        said(&whole.env("OPENAI_BASE_URL", Hostile::honest().url()).env("OPENAI_API_KEY", KEY).output().unwrap());
    assert_eq!((done.code, done.text("digest")), (Some(0), whole.text("digest")), "{done:?} {whole:?}");
    println!("{killed} kills at a limit of 300 calls: {} answered at the server, {counted} counted", books.answered);
}

#[test]
fn a_stray_refusal_turns_no_schema_off_and_what_changes_is_journaled() {
    let folder = scratch("hostile-schema");
    let scenario = askers(MODEL, 60, 4, false);
    for name in ["400-of-schemas", "400-stray", "400-plain", "422-stray"] {
        let server = Hostile::start(vec![act(name)], When::Once(9), Duration::ZERO);
        let disk = disk();
        let summary = begin(&at(&server.url(), &disk), &scenario, &folder).unwrap();
        let books = server.books();
        assert_eq!((books.requests, books.with_schema), (361, 361), "{name}");
        assert_eq!((summary.totals.resolutions.fit, summary.totals.charged), (360, 0), "{name}: {:?}", summary.totals);
        let forms = events(disk, Path::new("run")).unwrap().0.into_iter().filter(|e| matches!(e, Event::Form { .. }));
        assert_eq!(forms.count(), 0, "{name}");
    }
    // A server that refuses schemas for a while: it is asked in words, and with schemas again later.
    let server = Hostile::start(vec![act("400-of-schemas")], When::Schemas(40), Duration::ZERO);
    let disk = disk();
    let engine = Engine { connections: 4, ..at(&server.url(), &disk) };
    let summary = begin(&engine, &scenario, &folder).unwrap();
    assert_eq!((summary.totals.resolutions.none, summary.totals.calls), (0, 360), "{:?}", summary.totals);
    let forms: Vec<bool> = events(disk.clone(), Path::new("run"))
        .unwrap()
        .0
        .into_iter()
        .filter_map(|event| match event {
            Event::Form { used, why, .. } => {
                assert!(!why.is_empty());
                Some(used)
            }
            _ => None,
        })
        .collect();
    assert_eq!(forms, [false, true]);
    let books = server.books();
    assert!(books.with_schema > 200, "{books:?}");
    replays(&disk);
}

#[test]
fn what_a_process_says_at_the_end_counts_its_defaults() {
    let folder = scratch("hostile-defaults");
    let server = Hostile::named("not-json", 0.5, 4);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/guess-average-minds.yaml");
    let out = folder.join("out");
    let mut command =
        command(&["run", arg(&file), "--model", MODEL, "--agents", "30", "--rounds", "2", "--out", arg(&out)]);
    let said = said(&command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", KEY).output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    let defaults = said.json["resolutions"]["default"].as_u64().unwrap();
    assert!(defaults > 0, "{said:?}");
    assert!(said.notes.contains(&format!("{defaults} of 60 questions ended in their default")), "{said:?}");
}

/// Serves until it is killed, for manual trials: `POLITY_SERVE=reset,500 POLITY_PROBABILITY=50 cargo test --test all
/// hostile_provider::serve -- --ignored --nocapture`.
#[test]
#[ignore = "a tool, no test"]
fn serve() {
    let names = std::env::var("POLITY_SERVE").unwrap_or_default();
    let acts = names.split(',').filter(|name| !name.is_empty()).map(act).collect::<Vec<_>>();
    let percent = f64::from(from_env("POLITY_PROBABILITY", 50));
    let seed = u64::from(from_env("POLITY_SEED_OF_IT", 1));
    let latency = Duration::from_millis(u64::from(from_env("POLITY_LATENCY_MS", 0)));
    let acts = if acts.is_empty() { troubles() } else { acts };
    let server = Hostile::start(acts, When::Drawn(percent / 100.0, seed), latency);
    println!("{}", server.url());
    loop {
        sleep(Duration::from_secs(1));
        println!("{:?}", server.books());
    }
}
