//! Runs with batched questions, against the mock server and its counts: the same results at half the price, failing lines, hard limits,
//! stops, and processes killed at any moment.
//!
//! The long form: `bash scripts/campaigns.sh batch-kills`.

use crate::harness::{arg, askers, assert_asked_once, assert_same_tables, command, engine, events, from_env, prepared};
use crate::harness::{said, scratch, tables, team, write_scenario};
use polity_driver::drive::{Progress, Stop, Unwatched, Watch};
use polity_driver::run::{Engine, RunStatus, Summary};
use polity_driver::source::{Notes, Outside};
use polity_kernel::rng::{Draws, Stream};
use polity_models::mock_server::{Faults, MockServer, Options};
use polity_models::models::Providers;
use polity_models::models::anthropic::Anthropic;
use polity_models::models::keys::Secret;
use polity_models::models::openai::OpenAi;
use polity_models::models::openai_responses::OpenAiResponses;
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk, SimDisk};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

const MODELS: [&str; 3] = ["openai/medium", "openai-responses/medium", "anthropic/medium"];
const KEY: &str = "a-key-for-tests";

fn mock_server(options: Options) -> MockServer {
    MockServer::start(options).unwrap()
}

fn faults(texts: &[&str]) -> Options {
    Options { faults: Faults::read(texts).unwrap(), ..Options::default() }
}

fn disk() -> Arc<dyn Disk> {
    Arc::new(SimDisk::default())
}

/// An engine that asks the mock server, in batches if requested.
fn at(mock_server: &MockServer, disk: &Arc<dyn Disk>, batch: Option<bool>) -> Engine<'static> {
    let key = || Secret::new(KEY);
    let providers = Providers::of(vec![
        Box::new(OpenAi::new(&mock_server.url(), key()).unwrap()),
        Box::new(OpenAiResponses::new(&mock_server.url(), key()).unwrap()),
        Box::new(Anthropic::new(&mock_server.root(), key()).unwrap()),
        Box::new(polity_models::models::sim::Sim::standard()),
    ]);
    let outside = Outside { batch, batch_pause: Some(Duration::from_millis(5)), ..Outside::default() };
    Engine { providers: Arc::new(providers), outside, ..engine(disk.clone(), 1, None) }
}

/// The same engine, keeping its notes.
fn telling(engine: Engine<'static>) -> (Engine<'static>, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = told.clone();
    let notes = Notes::to(move |text| sink.lock().unwrap().push(text.to_owned()));
    let outside = Outside { notes, ..engine.outside };
    (Engine { outside, ..engine }, told)
}

fn run(engine: &Engine<'_>, scenario: &Value) -> Result<Summary, DriveError> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    engine.run(&prepared(scenario, folder), Path::new("run"), &mut Unwatched)
}

fn resume(engine: &Engine<'_>) -> Result<Summary, DriveError> {
    engine.resume(Path::new("run"), &mut Unwatched)
}

/// Runs all cases in parallel, since they mostly wait.
fn each<T: Sync>(cases: &[T], work: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let working: Vec<_> = cases.iter().map(|case| scope.spawn(move || work(case))).collect();
        working.into_iter().for_each(|case| case.join().unwrap());
    });
}

/// Returns the notes of batches in a run's folder.
fn noted(disk: &dyn Disk, run: &Path) -> Vec<(PathBuf, Value)> {
    let folder = run.join("batches");
    let files = disk.list(&folder).unwrap_or_default().into_iter().map(|name| folder.join(name));
    files.map(|path| (path.clone(), serde_json::from_slice(&disk.read(&path).unwrap()).unwrap())).collect()
}

fn dollars(mock_server: &MockServer) -> f64 {
    let stats = mock_server.stats();
    (stats.tokens_in as f64 * 0.15 + stats.tokens_out as f64 * 0.6) / 1e6
}

#[test]
fn a_run_in_batches_is_the_run_without_at_half_the_price() {
    for model in MODELS {
        for (alike, agents) in [(false, 20), (true, 9)] {
            let scenario = askers(model, agents, 2, alike);
            let alone = mock_server(Options::default());
            let whole = run(&at(&alone, &disk(), None), &scenario).unwrap();
            assert!((whole.totals.cost_usd - dollars(&alone)).abs() < 1e-9);
            for shards in [1, 4] {
                let mock_server = mock_server(Options { batch_delay: Duration::from_millis(20), ..Options::default() });
                let disk = disk();
                let engine = Engine { shards, ..at(&mock_server, &disk, Some(true)) };
                let summary = run(&engine, &scenario).unwrap();
                assert_eq!(
                    (&summary.digest, &summary.totals.answers),
                    (&whole.digest, &whole.totals.answers),
                    "{model}"
                );
                let stats = mock_server.stats();
                // In each round all ask, then every second one again; identical questions share a line.
                assert_eq!((stats.calls, stats.batches, stats.lines), (0, 4, whole.totals.calls), "{model}");
                assert_eq!((stats.answered, stats.repeated, summary.totals.calls), (stats.lines, 0, stats.lines));
                // Half price, computed here from the tokens and counted there from the lines.
                assert!((summary.totals.cost_usd - dollars(&mock_server) / 2.0).abs() < 1e-9, "{model}");
                assert!((summary.totals.cost_usd - stats.cost_usd).abs() < 1e-9, "{model}");
                assert_manifest(disk.as_ref(), &engine, &scenario);
                assert_eq!(noted(disk.as_ref(), Path::new("run")).len(), 4);
                drop(mock_server);
                let replayed = engine.replay(Path::new("run"), &mut Unwatched).unwrap();
                assert_eq!((replayed.status, &replayed.digest), (RunStatus::Same, &whole.digest));
            }
        }
    }
}

/// The manifest records batching, and only that.
fn assert_manifest(disk: &dyn Disk, engine: &Engine<'_>, scenario: &Value) {
    let manifest: Value = serde_json::from_slice(&disk.read(Path::new("run/manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest["batch"], &manifest["prices"]), (&json!(engine.outside.batch), &prices(scenario)));
}

/// As declared: what a batch costs is no price of the model.
fn prices(scenario: &Value) -> Value {
    let mut prices = scenario["prices"].clone();
    prices.as_object_mut().unwrap().values_mut().for_each(|price| price["cached"] = Value::Null);
    prices
}

#[test]
fn models_without_batches_are_asked_as_ever_beside_those_that_have_them() {
    let mock_server = mock_server(Options::default());
    let mut scenario = askers("openai/medium", 8, 2, false);
    let cohort = |name: &str, model: &str| json!({"name": name, "share": 0.5, "policy": {"kind": "asker", "model": model, "alike": false}});
    scenario["cohorts"] = json!([cohort("paid", "openai/medium"), cohort("free", "sim/medium")]);
    let (engine, told) = telling(at(&mock_server, &disk(), Some(true)));
    let mixed = run(&engine, &scenario).unwrap();
    let told = told.lock().unwrap().clone();
    assert_eq!(
        (told.len(), told[0].as_str()),
        (2, "batches are not available for sim/medium; questions are sent one by one")
    );
    assert!(told[1].starts_with("4 questions to openai/medium are with its provider as a batch"), "{told:?}");
    let stats = mock_server.stats();
    assert!(stats.lines > 0 && stats.calls == 0, "{stats:?}");
    let alone = run(&at(&mock_server, &disk(), None), &scenario).unwrap();
    assert_eq!((mixed.digest, mixed.totals.answers), (alone.digest, alone.totals.answers));
}

#[test]
fn lines_that_fail_and_batches_that_expire_are_asked_again_and_nothing_twice() {
    for model in ["openai/medium", "anthropic/medium"] {
        let scenario = askers(model, 20, 2, false);
        let whole = run(&at(&mock_server(Options::default()), &disk(), None), &scenario).unwrap();
        let failing = mock_server(Options { batch_expires: 1, ..faults(&["500=0.08", "429-no-retry-after=0.08"]) });
        let summary = run(&at(&failing, &disk(), Some(true)), &scenario).unwrap();
        assert_eq!((&summary.digest, summary.totals.calls), (&whole.digest, whole.totals.calls), "{model}");
        let stats = failing.stats();
        assert_eq!((stats.calls, stats.answered, stats.repeated), (0, summary.totals.calls, 0), "{stats:?}");
        assert!(stats.faults["500"] > 0 && stats.lines >= stats.answered + 10, "{stats:?}");
        assert!(summary.totals.retries >= 10 && (summary.totals.cost_usd - stats.cost_usd).abs() < 1e-9);
    }
    // If everything fails, the run stops after as many tries as any question has.
    let down = mock_server(faults(&["500=1"]));
    let Err(DriveError::Lost(why)) = run(&at(&down, &disk(), Some(true)), &askers("openai/medium", 1, 1, false)) else {
        panic!("nobody answered")
    };
    assert!(why.contains("5 tries failed") && down.stats().batches == 5, "{why}");
}

/// An error that is no question's fault stops the run, with a message on what to do.
#[test]
fn a_batch_that_is_gone_stops_the_run_and_is_told() {
    let scenario = askers("openai/medium", 4, 1, false);
    let (left, disk) = stopped(&scenario, Duration::from_millis(2500));
    drop(left);
    let other = mock_server(Options::default());
    let Err(DriveError::Lost(why)) = resume(&at(&other, &disk, None)) else { panic!("it knows nothing of the batch") };
    let (path, _) = noted(disk.as_ref(), Path::new("run")).pop().unwrap();
    assert!(why.contains(&format!("delete {}", path.display())) && other.stats().batches == 0, "{why}");
    disk.remove_file(&path).unwrap();
    assert_eq!(resume(&at(&other, &disk, None)).unwrap().status, RunStatus::Done);
}

#[test]
fn a_wall_of_dollars_holds_by_the_providers_count_and_holds_what_batches_cost() {
    for model in ["openai/medium", "anthropic/medium"] {
        let mut scenario = askers(model, 12, 2, false);
        let whole = run(&at(&mock_server(Options::default()), &disk(), Some(true)), &scenario).unwrap().totals.cost_usd;
        for part in [0.6, 0.9] {
            let limit = whole * part;
            scenario["budget"] = json!({"cost_usd": limit});
            let paying = mock_server(faults(&["500=0.1"]));
            let disk = disk();
            let summary = run(&at(&paying, &disk, Some(true)), &scenario).unwrap();
            assert!(summary.status == RunStatus::Budget || summary.totals.denied > 0, "{part}: {summary:?}");
            let theirs = paying.stats().cost_usd;
            assert!(theirs <= limit && (theirs - summary.totals.cost_usd).abs() < 1e-9, "{theirs} of {limit}");
            // With reservations at the price of batches, more fits than at the full price.
            let alone = run(&at(&mock_server(Options::default()), &self::disk(), None), &scenario).unwrap();
            assert!(summary.totals.calls > alone.totals.calls, "{} and {}", summary.totals.calls, alone.totals.calls);
        }
    }
}

/// Asks the run to stop once a batch is at the provider.
struct StopsAt<'a> {
    mock_server: &'a MockServer,
    batches: u64,
    stop: Stop,
    waited: Vec<String>,
}

impl Watch for StopsAt<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.waited.extend(progress.waiting.clone());
        let shown = progress.waiting.as_ref().is_some_and(|words| words.contains("answered"));
        if shown && self.mock_server.stats().batches == self.batches {
            self.stop.ask();
        }
    }
}

#[test]
fn a_run_that_is_stopped_leaves_its_batch_and_a_resumed_one_collects_it() {
    // Also without --batch: what was sent is paid for.
    let [a, b] = ["openai/medium", "anthropic/medium"];
    each(&[(a, None), (a, Some(false)), (b, None), (b, Some(false))], |(model, again)| {
        let scenario = askers(model, 10, 2, true);
        let whole = run(&at(&mock_server(Options::default()), &disk(), None), &scenario).unwrap();
        let mock_server = mock_server(Options { batch_delay: Duration::from_millis(1800), ..Options::default() });
        let disk = disk();
        let (engine, told) = telling(at(&mock_server, &disk, Some(true)));
        let mut watch =
            StopsAt { mock_server: &mock_server, batches: 2, stop: engine.stop.clone(), waited: Vec::new() };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let summary = engine.run(&prepared(&scenario, folder), Path::new("run"), &mut watch).unwrap();
        assert_eq!((summary.status, mock_server.stats().batches), (RunStatus::Stopped, 2), "{model}");
        let words = |words: &str| watch.waited.iter().any(|waited| waited.contains(words));
        assert!(words(&format!("to {model}: 0 of 1 answered")), "{:?}", watch.waited);
        let left = told.lock().unwrap().join("\n");
        assert!(left.contains("stays with its provider; `polity resume run` collects its answers"), "{left}");
        assert_eq!(summary.totals.calls, 1, "the first batch was answered: {summary:?}");
        let resumed = resume(&at(&mock_server, &disk, *again)).unwrap();
        assert_eq!((resumed.status, &resumed.digest), (RunStatus::Done, &whole.digest), "{model}");
        let stats = mock_server.stats();
        assert_eq!((stats.answered, stats.repeated), (whole.totals.calls, 0), "{model}");
        assert!((stats.cost_usd - resumed.totals.cost_usd).abs() < 1e-9, "{model}: {stats:?} {resumed:?}");
        // Batching continues unless it is turned off.
        assert_eq!((stats.batches, stats.calls), if again.is_none() { (4, 0) } else { (2, 2) });
    });
}

/// A run that was stopped while its first batch was at the provider.
fn stopped(scenario: &Value, delay: Duration) -> (MockServer, Arc<dyn Disk>) {
    let mock_server = mock_server(Options { batch_delay: delay, ..Options::default() });
    let disk = disk();
    let engine = at(&mock_server, &disk, Some(true));
    let mut watch = StopsAt { mock_server: &mock_server, batches: 1, stop: engine.stop.clone(), waited: Vec::new() };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let summary = engine.run(&prepared(scenario, folder), Path::new("run"), &mut watch).unwrap();
    assert_eq!((summary.status, mock_server.stats().batches), (RunStatus::Stopped, 1));
    (mock_server, disk)
}

/// A process that is killed in between leaves an order whose id it did not receive, or that it did not send.
#[test]
fn an_order_whose_id_was_never_heard_is_found_at_the_provider() {
    // It is still in progress, it has ended, or it is at another provider, so that this one never had it.
    let cases = [(false, true), (true, true), (true, false)];
    let of = |model: &'static str| cases.map(|(ended, here)| (model, ended, here));
    each(&[of("openai/medium"), of("anthropic/medium")].concat(), |&(model, ended, here)| {
        let scenario = askers(model, 10, 1, false);
        let whole = run(&at(&mock_server(Options::default()), &disk(), None), &scenario).unwrap();
        let (left, disk) = stopped(&scenario, Duration::from_millis(2500));
        let (path, mut note) = noted(disk.as_ref(), Path::new("run")).pop().unwrap();
        note["id"] = Value::Null;
        disk.create(&path).unwrap().write_all(note.to_string().as_bytes()).unwrap();
        if ended && here {
            sleep(Duration::from_millis(2600));
        }
        let other = mock_server(Options::default());
        let asked = if here { &left } else { &other };
        let resumed = resume(&at(asked, &disk, None)).unwrap();
        assert_eq!((resumed.status, &resumed.digest), (RunStatus::Done, &whole.digest), "{model}");
        let stats = asked.stats();
        let found = (stats.answered, stats.repeated, stats.batches);
        assert_eq!(found, (whole.totals.calls, 0, 2), "{model}, ended {ended}, here {here}");
        let ids: Vec<Value> =
            noted(disk.as_ref(), Path::new("run")).into_iter().map(|(_, note)| note["id"].clone()).collect();
        assert!(ids.len() == 2 && ids.iter().all(Value::is_string), "{ids:?}");
    });
}

/// Batches of a run that are ordered, or about to be, and whose id is not yet known.
fn ordered(run: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(run.join("batches")).into_iter().flatten().flatten().map(|entry| entry.path());
    let without = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("\"id\":null"));
    files.filter(|path| path.extension().is_some_and(|end| end == "json") && without(path)).collect()
}

/// A process that is killed at any moment pays for no answer twice, by the provider's count.
#[test]
fn a_run_killed_at_any_moment_pays_for_no_line_twice() {
    let folder = scratch("batch-kill");
    let kills = from_env("POLITY_BATCH_KILLS", 2);
    let mut scenario = team(&folder, "debate", 12, 3);
    scenario["settings"] = json!({"max_tokens": 400});
    scenario["max_concurrent"] = 6.into();
    let mut tally = (0, 0, 0);
    for (number, model) in ["openai/medium", "anthropic/medium"].into_iter().cycle().take(kills as usize).enumerate() {
        scenario["model"] = model.into();
        scenario["prices"] = json!({model: {"input": 0.15, "output": 0.6}});
        let file = write_scenario(&folder, &scenario);
        let mock_server = mock_server(Options { batch_delay: Duration::from_millis(60), ..Options::default() });
        let with = |args: &[&str]| {
            let mut command = command(args);
            command.env("OPENAI_BASE_URL", mock_server.url()).env("OPENAI_API_KEY", KEY);
            command.env("ANTHROPIC_BASE_URL", mock_server.root()).env("ANTHROPIC_API_KEY", KEY);
            command.env("POLITY_BATCH_PAUSE_MS", "5");
            command
        };
        let whole = folder.join(format!("whole-{number}"));
        let began = Instant::now();
        let alone = said(&with(&["run", arg(&file), "--out", arg(&whole), "--batch"]).output().unwrap());
        let wall = began.elapsed();
        assert_eq!(alone.code, Some(0), "{alone:?}");
        let before = mock_server.stats();
        let mut draws = Draws::new(17, Stream::Driver, number as u32, 0);
        let out = folder.join(format!("killed-{number}"));
        let (mut left, mut deaths) = (Vec::new(), 0);
        // The mock server answers the first run's words again: it counts from here.
        while deaths == 0 || draws.chance(0.6) {
            let begun = out.join("manifest.json").exists();
            let args =
                if begun { vec!["resume", arg(&out)] } else { vec!["run", arg(&file), "--out", arg(&out), "--batch"] };
            let mut child = with(&args).spawn().unwrap();
            // At any time; or while an order is being sent, at the first or a later one.
            let (pause, orders) = (wall.mul_f64(draws.unit()), draws.below(4));
            let (began, mut unheard) = (Instant::now(), BTreeSet::new());
            while child.try_wait().unwrap().is_none() && (orders > 0 || began.elapsed() < pause) {
                unheard.extend(ordered(&out));
                if orders > 0 && unheard.len() as u64 >= orders {
                    break;
                }
                sleep(Duration::from_micros(200));
            }
            let _ = child.kill();
            let _ = child.wait();
            deaths += 1;
            if out.join("manifest.json").exists() {
                let (now, _) = events(Arc::new(RealDisk), &out).unwrap();
                assert_asked_once(&left, &now, "killed");
                left = now;
            }
            tally.1 += ordered(&out).len();
            tally.2 += usize::from(!noted(&RealDisk, &out).is_empty());
        }
        tally.0 += deaths;
        let begun = out.join("manifest.json").exists();
        let args =
            if begun { vec!["resume", arg(&out)] } else { vec!["run", arg(&file), "--out", arg(&out), "--batch"] };
        let resumed = said(&with(&args).output().unwrap());
        let what = format!("{model}, number {number}, {deaths} deaths: {resumed:?}");
        assert_eq!((resumed.code, resumed.text("digest")), (Some(0), alone.text("digest")), "{what}");
        assert_same_tables(&tables(&RealDisk, &out), &tables(&RealDisk, &whole), &what);
        let after = mock_server.stats();
        let (answered, calls) = (after.answered - before.answered, alone.json["calls"].as_u64().unwrap());
        assert_eq!((answered, after.calls), (calls, 0), "{what}");
        assert_eq!(resumed.json["calls"].as_u64(), Some(calls), "{what}");
        let paid = after.cost_usd - before.cost_usd;
        assert!((paid - resumed.json["cost_usd"].as_f64().unwrap()).abs() < 1e-9, "{what}");
        let names: BTreeSet<String> = noted(&RealDisk, &out).iter().map(|(_, note)| note["id"].to_string()).collect();
        assert!(names.len() == noted(&RealDisk, &out).len() && !names.contains("null"), "{what}");
        let replayed = said(&command(&["replay", arg(&out)]).output().unwrap());
        assert_eq!((replayed.code, replayed.text("digest")), (Some(0), alone.text("digest")), "{what}");
    }
    eprintln!("{} deaths; {} orders whose id was not heard, {} with batches", tally.0, tally.1, tally.2);
}
