//! The command line. Everything for people goes to standard error; with `--json` the last line of standard output is one object.

mod args;
mod asked;
mod calls;
mod compare;
mod doctor;
mod evidence;
mod export;
mod list;
mod manual;
mod migrate;
mod mock;
mod new;
mod output;
mod progress;
mod reference;
mod story;
mod sweep;
mod validate;

pub use args::Args;
use args::{Common, Edits, Mock, Spending, Verb};
use clap::Parser;
use output::{error_json, note, print_line};
use polity_driver::DriveError;
use polity_driver::disk::{Disk, RealDisk};
use polity_driver::drive::Stop;
use polity_driver::files::{self, FileError};
use polity_driver::models::Providers;
use polity_driver::run::{Engine, Prepared, Summary, Wanted, new_folder, prepare};
use polity_driver::standin::{Faults, Options};
use polity_driver::sweep::is_sweep;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_kernel::tree::{Node, TreeError, Value};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What a process says with its exit code. The numbers are stable; README.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Done = 0,
    /// The run stopped at a defect; its message names the seed.
    Defect = 1,
    /// Wrong input: a flag, a scenario, a file it names.
    Input = 2,
    /// A run folder that is damaged, taken, or not a run.
    Folder = 3,
    /// The disk is full or fails; the run resumes.
    Disk = 4,
    /// The run differs from its record.
    Differs = 5,
    /// Stopped by a person; the run resumes.
    Stopped = 6,
    /// Its budget is used up; the run resumes with a greater one.
    Budget = 7,
    /// No answer of a model can be had; the run resumes.
    Lost = 8,
}

/// What went wrong, ready to be shown.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: message.into() }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::new(Exit::Input, error.render(output::colours()))
    }
}

/// The file a scenario was read from, for errors that point into it.
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn failure(&self, error: &TreeError) -> Failure {
        Failure::new(Exit::Input, files::render(error, &self.name, &self.text, output::colours()))
    }
}

/// Whether more space would help.
fn is_full(error: &DriveError) -> bool {
    use polity_driver::journal::JournalError;
    use polity_driver::tables::TableError;
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        DriveError::Journal(JournalError::DiskFull { .. }) | DriveError::Tables(TableError::Full { .. }) => true,
        DriveError::Disk { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
        DriveError::InRun { error, .. } => is_full(error),
        _ => false,
    }
}

fn is_of_disk(error: &DriveError) -> bool {
    use polity_driver::journal::JournalError;
    use polity_driver::tables::TableError;
    matches!(
        error,
        DriveError::Journal(JournalError::DiskFull { .. })
            | DriveError::Tables(TableError::Full { .. } | TableError::Disk { .. })
            | DriveError::Disk { .. }
    )
}

fn failure(error: &DriveError, source: Option<&Source>) -> Failure {
    let exit = match error {
        DriveError::Scenario(tree) => {
            return match source {
                Some(source) => source.failure(tree),
                None => Failure::new(Exit::Input, tree.to_string()),
            };
        }
        DriveError::InRun { error: inner, .. } => failure(inner, source).exit,
        DriveError::Input(_) | DriveError::Model(_) => Exit::Input,
        DriveError::Lost(_) => Exit::Lost,
        DriveError::Differs(_) => Exit::Differs,
        DriveError::Bug { .. } => Exit::Defect,
        error if is_of_disk(error) => Exit::Disk,
        _ => Exit::Folder,
    };
    Failure::new(exit, error.to_string())
}

/// Runs the command line with the leaves of a build.
#[must_use]
pub fn main(registry: Registry) -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let code = if error.use_stderr() { Exit::Input } else { Exit::Done };
            // Nothing is left to do when even the message can not be written.
            let _ = error.print();
            // The flags were not understood, so this one is looked for by hand.
            if error.use_stderr() && std::env::args().any(|word| word == "--json") {
                print_line(&error_json(error.to_string().trim_end(), code as u8));
            }
            return ExitCode::from(code as u8);
        }
    };
    let json = args.verb.json();
    match dispatch(args.verb, &registry) {
        Ok(Exit::Done) if output::lost() => {
            note("error: standard output can not be written; is the disk full?");
            ExitCode::from(Exit::Disk as u8)
        }
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            note(&format!("error: {}", failure.message.trim_end()));
            if json {
                print_line(&error_json(&failure.message, failure.exit as u8));
            }
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn dispatch(verb: Verb, registry: &Registry) -> Result<Exit, Failure> {
    match verb {
        Verb::Validate { files, json } => validate::validate(&files, json, registry),
        Verb::Run { file, common, out, edits, spending } => {
            let flags = edits.flags().into_iter().chain(spending.flags()).collect();
            run(&file, &common, out, &edits.set, flags, registry)
        }
        Verb::Sweep { file, common, limits, out, edits, seeds } => {
            let flags = edits.flags().into_iter().chain(flags([("design.seeds", seeds.map(u64::from))])).collect();
            sweep::sweep(&file, &common, limits, out, &edits.set, flags, registry)
        }
        Verb::Compare { runs, json } => compare::compare(&runs, json),
        Verb::Resume { run, common, limits, spending } if is_sweep(&RealDisk, &run) => {
            if !spending.flags().is_empty() {
                let message =
                    "a sweep has the budget of its scenario, for each run; --max-cost and the like are for runs";
                return Err(Failure::new(Exit::Input, message));
            }
            sweep::resume(&run, &common, limits, registry)
        }
        Verb::Resume { run, common, limits, spending } => with_engine(&common, registry, |engine, stop| {
            if limits.jobs.is_some() || limits.memory.is_some() {
                let message = format!("{} is no sweep; --jobs and --memory are for sweeps", run.display());
                return Err(Failure::new(Exit::Input, message));
            }
            let mut watch = progress::Bar::new(stop);
            let engine = &Engine {
                budget: spending.budget(),
                providers: engine.providers.clone(),
                disk: engine.disk.clone(),
                stop: engine.stop.clone(),
                ..*engine
            };
            let summary = engine.resume(&run, &mut watch).map_err(|e| failure(&e, None))?;
            watch.finish();
            finish(&summary, &common, engine.disk.as_ref(), registry)
        }),
        Verb::Replay { run, common } => with_engine(&common, registry, |engine, stop| {
            let mut watch = progress::Bar::new(stop);
            let summary = engine.replay(&run, &mut watch).map_err(|e| failure(&e, None))?;
            watch.finish();
            story::replayed(&summary);
            if common.json {
                print_line(&output::json(&summary));
            }
            Ok(if summary.status == "same" { Exit::Done } else { Exit::Differs })
        }),
        Verb::Fork { run, at, out, set, rounds, common } => {
            let edits = edits(&set)?;
            with_engine(&common, registry, |engine, stop| {
                let out = match &out {
                    Some(out) => out.clone(),
                    None => fork_folder(engine.disk.as_ref(), &run, at)?,
                };
                let mut watch = progress::Bar::new(stop);
                let summary = engine.fork(&run, at, edits, rounds, &out, &mut watch).map_err(|e| failure(&e, None))?;
                watch.finish();
                finish(&summary, &common, engine.disk.as_ref(), registry)
            })
        }
        Verb::List { what, json } => list::list(what, json, registry),
        Verb::Export { run, table, format, out, limit } => {
            export::export(&run, table.as_deref(), format, out.as_deref(), limit)
        }
        Verb::Calls { run, agent, round, item, purpose, limit, json, full } => {
            calls::calls(&run, &Wanted { agent, round, item, purpose, limit }, json, full)
        }
        Verb::Report { run } => {
            let path = match is_sweep(&RealDisk, &run) {
                true => sweep::write_report(&RealDisk, &run)?,
                false => story::write_report(&RealDisk, &run, registry)?,
            };
            note(&format!("report: {}", path.display()));
            Ok(Exit::Done)
        }
        Verb::New { kind, name, polity } => new::new(kind, &name, polity.as_deref(), registry),
        Verb::Migrate { files, from, dry_run } => migrate::migrate(&files, from, dry_run),
        Verb::MockProvider(mock) => mock::mock_provider(mock.options()?),
        Verb::Schema => Ok(manual::schema(registry)),
        Verb::Doctor { folder, json } => Ok(doctor::doctor(&folder, json)),
        Verb::Completions { shell } => Ok(manual::completions(shell)),
        Verb::Man { folder } => manual::man(folder.as_deref()),
        Verb::Reference => Ok(manual::reference(registry)),
    }
}

/// Flags that set a number of the scenario.
fn flags<const N: usize>(flags: [(&str, Option<u64>); N]) -> Vec<(String, Node)> {
    let set = |(path, value): (&str, Option<u64>)| {
        let value = value?;
        let flag = path.rsplit('.').next().unwrap_or(path);
        let origin = polity_kernel::tree::Origin::Edit(format!("--{flag} {value}").into());
        Some((path.to_string(), Node { value: Value::Int(value as i64), origin }))
    };
    flags.into_iter().filter_map(set).collect()
}

impl Spending {
    fn budget(self) -> Budget {
        let Spending { max_cost, max_tokens, max_calls, max_time } = self;
        Budget { cost_usd: max_cost, tokens: max_tokens, calls: max_calls, seconds: max_time, ..Budget::default() }
    }

    /// The same as edits of a scenario.
    fn flags(self) -> Vec<(String, Node)> {
        let Spending { max_cost, max_tokens, max_calls, max_time } = self;
        let real = |flag: &str, path: &str, value: Option<f64>| {
            let value = value?;
            let origin = polity_kernel::tree::Origin::Edit(format!("--{flag} {value}").into());
            Some((path.to_string(), Node { value: Value::Float(value), origin }))
        };
        let whole = flags([("budget.tokens", max_tokens), ("budget.calls", max_calls)]);
        let real = [real("max-cost", "budget.cost_usd", max_cost), real("max-time", "budget.seconds", max_time)];
        whole.into_iter().chain(real.into_iter().flatten()).collect()
    }
}

impl Edits {
    fn flags(&self) -> Vec<(String, Node)> {
        let Edits { agents, rounds, seed, .. } = self;
        flags([("agents", agents.map(u64::from)), ("rounds", rounds.map(u64::from)), ("seed", *seed)])
    }
}

impl Mock {
    fn options(self) -> Result<Options, Failure> {
        let faults = Faults::read(&self.fault).map_err(|why| Failure::new(Exit::Input, format!("--fault: {why}")))?;
        Ok(Options {
            port: self.port,
            model: self.model,
            requests_per_minute: self.requests_per_minute.map(NonZeroU32::get),
            tokens_per_minute: self.tokens_per_minute.map(NonZeroU32::get),
            latency: Duration::from_millis(self.latency_ms),
            faults,
            seed: self.seed,
        })
    }
}

fn edits(set: &[String]) -> Result<Vec<(String, Node)>, Failure> {
    set.iter()
        .map(|text| files::parse_edit(text).map_err(|error| Failure::new(Exit::Input, format!("-P {text}: {error}"))))
        .collect()
}

/// The folder to which paths in a scenario are relative.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

fn load(file: &Path, set: &[String], flags: Vec<(String, Node)>) -> Result<(Prepared, Source), Failure> {
    let (text, tree) = files::read_file(file)?;
    let source = Source { name: file.display().to_string(), text };
    let mut all = edits(set)?;
    all.extend(flags);
    let folder = folder_of(file);
    let stem = file.file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let prepared = prepare(tree, &source.name, folder, &stem, all).map_err(|e| failure(&e, Some(&source)))?;
    Ok((prepared, source))
}

fn with_engine<T>(
    common: &Common,
    registry: &Registry,
    work: impl FnOnce(&Engine<'_>, Stop) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(threads) = common.threads {
        // Fails only when the pool is already there, which keeps the first choice.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
    }
    let stop = Stop::default();
    let asked = stop.clone();
    // Without a handler Ctrl-C still stops the process; the run resumes all the same.
    let _ = ctrlc::set_handler(move || {
        if asked.ask() > 1 {
            note("stopped at once; `polity resume` goes on from what is saved");
            std::process::exit(i32::from(Exit::Stopped as u8));
        }
        note("finishing what is in flight and saving; once more stops at once");
    });
    let engine = Engine {
        registry,
        providers: Arc::new(Providers::standard()),
        disk: Arc::new(RealDisk),
        shards: common.shards.get(),
        connections: common.max_connections.get(),
        budget: Default::default(),
        faults: None,
        stop: stop.clone(),
    };
    work(&engine, stop)
}

fn run(
    file: &Path,
    common: &Common,
    out: Option<PathBuf>,
    set: &[String],
    flags: Vec<(String, Node)>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    let (prepared, source) = load(file, set, flags)?;
    if prepared.design.is_some() {
        note("this is one run of the scenario itself; `polity sweep` runs its design");
    }
    with_engine(common, registry, |engine, stop| {
        let out = match out {
            Some(out) => out,
            None => {
                new_folder(engine.disk.as_ref(), &prepared.name, seed_of(&prepared)).map_err(|e| failure(&e, None))?
            }
        };
        let mut watch = progress::Bar::new(stop);
        let summary = engine.run(&prepared, &out, &mut watch).map_err(|e| {
            let mut failure = failure(&e, Some(&source));
            if matches!(e, DriveError::Lost(_)) {
                failure
                    .message
                    .push_str(&format!("\nnothing is lost; once it can be had: polity resume {}", out.display()));
            }
            if is_full(&e) {
                // Before the manifest is there nothing has begun, and the same command takes the folder again.
                let begun = engine.disk.exists(&out.join("manifest.json")).unwrap_or(false);
                failure.message.push_str(&match begun {
                    true => format!("\nfree some space, then: polity resume {}", out.display()),
                    false => "\nfree some space, then run the same command again: the run had not begun".to_string(),
                });
            }
            failure
        })?;
        watch.finish();
        finish(&summary, common, engine.disk.as_ref(), registry)
    })
}

fn seed_of(prepared: &Prepared) -> u64 {
    match prepared.tree.get("seed").map(|node| &node.value) {
        Some(Value::Int(seed)) => *seed as u64,
        _ => 1,
    }
}

/// Shows what a run came to.
fn finish(summary: &Summary, common: &Common, disk: &dyn Disk, registry: &Registry) -> Result<Exit, Failure> {
    let stopped = summary.status != "done";
    if !stopped && !common.no_report {
        story::write_report(disk, Path::new(&summary.run), registry)?;
    }
    story::summary(disk, summary, common.no_report);
    if common.json {
        print_line(&output::json(summary));
    }
    Ok(match summary.status.as_str() {
        "stopped" => Exit::Stopped,
        "budget" => Exit::Budget,
        _ => Exit::Done,
    })
}

fn fork_folder(disk: &dyn Disk, run: &Path, at: u32) -> Result<PathBuf, Failure> {
    for i in 1..10_000 {
        let suffix = if i == 1 { String::new() } else { format!("-{i}") };
        let name = run.file_name().map_or("run".into(), |n| n.to_string_lossy().into_owned());
        let path = run.with_file_name(format!("{name}-fork{at}{suffix}"));
        if !disk.exists(&path).unwrap_or(true) {
            return Ok(path);
        }
    }
    Err(Failure::new(Exit::Folder, "there are ten thousand forks of this run; name a folder with --out"))
}
