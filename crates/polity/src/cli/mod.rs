//! The command line. Everything for people goes to standard error; with `--json` the last line of standard output is one object.

mod agreement;
mod answer;
mod arena;
mod args;
mod asked;
mod calibrate;
mod calls;
mod compare;
mod ctl;
mod doctor;
mod estimate;
mod evidence;
mod export;
mod interview;
mod list;
mod manual;
mod migrate;
mod mock;
mod new;
mod output;
mod progress;
mod prompts;
mod reference;
mod story;
mod sweep;
mod systems;
mod validate;
mod verify;

pub use args::Args;
use args::{Answering, Common, Edits, FileAccess, Listening, Mock, Spending, Verb};
use clap::Parser;
use output::{LogFormat, error_json, note, print_line};
use polity_driver::DriveError;
use polity_driver::disk::{Disk, RealDisk};
use polity_driver::drive::Stop;
use polity_driver::files::{self, FileError, Reach};
use polity_driver::models::Providers;
use polity_driver::printable::printable;
use polity_driver::results;
use polity_driver::run::{Basis, Engine, Prepared, RunStatus, Summary, Wanted, new_folder, prepare};
use polity_driver::source::{Declared, Notes, Outside};
use polity_driver::standin::{Faults, Options};
use polity_driver::sweep::is_sweep;
use polity_driver::tables::TableError;
use polity_driver::traces::Traces;
use polity_kernel::ask::Constrain;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Budget, Price};
use polity_kernel::tree::{Key, Node, Origin, TreeError, Value, nearest};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What a process says with its exit code. The numbers are stable; docs/book/src/commands.md lists them.
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
    /// Claims are not as they are expected to be.
    Unmet = 9,
}

/// What went wrong, ready to be shown.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: printable(&message.into()).into_owned() }
    }

    /// One that is already rendered, perhaps with colours.
    fn rendered(exit: Exit, message: String) -> Self {
        Failure { exit, message }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::rendered(Exit::Input, error.render(output::colours()))
    }
}

/// Of a scenario that lies in no file the user wrote: [`failure`] points into the file.
impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        failure(&error, None)
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        DriveError::from(error).into()
    }
}

/// The file a scenario was read from, for errors that point into it.
struct Source {
    name: String,
    text: String,
}

impl Source {
    fn failure(&self, error: &TreeError) -> Failure {
        Failure::rendered(Exit::Input, files::render(error, &self.name, &self.text, output::colours()))
    }
}

/// Whether more space would help.
fn is_full(error: &DriveError) -> bool {
    use polity_driver::journal::JournalError;
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
    matches!(
        error,
        DriveError::Journal(JournalError::DiskFull { .. } | JournalError::Disk { .. })
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
            // The flags were not understood, so these are looked for by hand.
            output::write_as(log_format(std::env::args()));
            if error.use_stderr() {
                let message = match output::colours() {
                    true => error.render().ansi().to_string(),
                    false => error.to_string(),
                };
                output::usage(&message, code as u8);
            } else {
                // Nothing is left to do when even the message can not be written.
                let _ = error.print();
            }
            if error.use_stderr() && std::env::args().any(|word| word == "--json") {
                print_line(&error_json(error.to_string().trim_end(), code as u8));
            }
            return ExitCode::from(code as u8);
        }
    };
    output::write_as(args.log_format);
    survive_limits_of_files();
    let json = args.verb.json();
    match dispatch(args.verb, &registry) {
        Ok(Exit::Done) if output::lost() => {
            output::error("standard output can not be written; is the disk full?", Some(Exit::Disk as u8));
            ExitCode::from(Exit::Disk as u8)
        }
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            output::error(&failure.message, Some(failure.exit as u8));
            if json {
                print_line(&error_json(&failure.message, failure.exit as u8));
            }
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) an error instead of a signal that ends the process.
fn survive_limits_of_files() {
    #[cfg(unix)]
    {
        const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();
        // If this fails, the signal ends the process as before.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// What the words of a command line say of the format of standard error, else the environment.
fn log_format(words: impl Iterator<Item = String>) -> LogFormat {
    const FLAG: &str = "--log-format";
    let words: Vec<String> = words.collect();
    let beside = words.iter().position(|word| word == FLAG).and_then(|i| words.get(i + 1).cloned());
    let joined = || words.iter().find_map(|word| Some(word.strip_prefix(FLAG)?.strip_prefix('=')?.to_owned()));
    match beside.or_else(joined).or_else(|| std::env::var("POLITY_LOG_FORMAT").ok()).as_deref() {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    }
}

fn dispatch(verb: Verb, registry: &Registry) -> Result<Exit, Failure> {
    match verb {
        Verb::Validate { files, access, json } => validate::validate(&files, &access, json, registry),
        Verb::Run { file, common, out, access, edits, spending, answering, listening } => {
            let flags = edits.flags().into_iter().chain(spending.flags()).chain(answering.flags()?).collect();
            let (prepared, source) = load(&file, &access, &edits.set, flags)?;
            run(prepared, &source, &common, &answering, listening, out, registry)
        }
        Verb::Estimate { file, max_cost, from, no_ask, common, access, edits, answering } => {
            let flags = edits.flags().into_iter().chain(answering.flags()?).collect();
            let (prepared, source) = load(&file, &access, &edits.set, flags)?;
            let basis = match &from {
                Some(run) => Basis::Run(run),
                None if no_ask => Basis::Bounds,
                None => Basis::Sample(max_cost),
            };
            with_engine(&common, &answering, registry, |engine, stop| {
                estimate::estimate(engine, &prepared, &source, basis, common.json, progress::Bar::new(stop))
            })
        }
        Verb::Sweep { file, common, limits, out, access, edits, seeds, answering } => {
            let seeds = flags([("design.seeds", seeds.map(u64::from))]);
            let flags = edits.flags().into_iter().chain(seeds).chain(answering.flags()?).collect();
            let scenario = load(&file, &access, &edits.set, flags)?;
            sweep::sweep(&scenario, &common, &answering, limits, out, registry)
        }
        Verb::Eval { method, task, trying, out, edits, spending, answering, common } => {
            let wished = arena::Wished { task: &task, trying, pilot: None, edits: &edits, spending, out };
            with_engine(&common, &answering, registry, |engine, stop| {
                arena::eval(engine, &method, wished, &answering, &common, stop)
            })
        }
        Verb::Compare { what, task: None, common, .. } => {
            let runs: Vec<PathBuf> = what.iter().map(PathBuf::from).collect();
            arena::no_methods(&runs, registry)?;
            compare::compare(&runs, common.json)
        }
        Verb::Compare { what, task: Some(task), equal, pilot, trying, out, edits, spending, answering, common } => {
            let wished = arena::Wished { task: &task, trying, pilot, edits: &edits, spending, out };
            with_engine(&common, &answering, registry, |engine, stop| {
                arena::compare(engine, &what, equal, wished, &answering, &common, stop)
            })
        }
        Verb::Resume { run, common, limits, spending, answering, listening } if is_sweep(&RealDisk, &run) => {
            if listening.listen.is_some() {
                return Err(Failure::new(
                    Exit::Input,
                    "--listen is for one run; the runs of a sweep are answered with polity answer",
                ));
            }
            if !spending.flags().is_empty() || !answering.price.is_empty() {
                let message = "a sweep has the budget and the prices of its scenario, for each run; --max-cost, --price and the like are for runs";
                return Err(Failure::new(Exit::Input, message));
            }
            sweep::resume(&run, &common, &answering, limits, registry)
        }
        Verb::Resume { run, common, limits, spending, answering, listening } => {
            with_engine(&common, &answering, registry, |engine, stop| {
                if limits.jobs.is_some() {
                    let message = format!("{} is no sweep; --jobs is for sweeps", run.display());
                    return Err(Failure::new(Exit::Input, message));
                }
                let mut watch = progress::Bar::new(stop);
                let engine = &Engine {
                    budget: spending.budget(),
                    outside: engine.outside.clone(),
                    providers: engine.providers.clone(),
                    disk: engine.disk.clone(),
                    stop: engine.stop.clone(),
                    ..*engine
                };
                let _doors = answer::open(&run, listening, &watch)?;
                let summary = engine.resume(&run, &mut watch).map_err(|e| lost(failure(&e, None), &e, &run))?;
                watch.finish();
                finish(&summary, &common, engine.disk.as_ref(), registry)
            })
        }
        Verb::Replay { run, common } => with_engine(&common, &Answering::default(), registry, |engine, stop| {
            let mut watch = progress::Bar::new(stop);
            let summary = engine.replay(&run, &mut watch)?;
            watch.finish();
            story::replayed(&summary);
            if common.json {
                print_line(&output::json(&summary));
            }
            Ok(if summary.status == RunStatus::Same { Exit::Done } else { Exit::Differs })
        }),
        Verb::Fork { run, at, out, set, rounds, spending, answering, listening, common } => {
            let edits = edits(&set)?;
            let mut whole = flags([("rounds", rounds.map(u64::from))]);
            whole.extend(spending.flags());
            whole.extend(answering.flags()?);
            with_engine(&common, &answering, registry, |engine, stop| {
                let out = match &out {
                    Some(out) => out.clone(),
                    None => fork_folder(engine.disk.as_ref(), &run, at)?,
                };
                let mut watch = progress::Bar::new(stop);
                let _doors = answer::open(&out, listening, &watch)?;
                let forked = engine.fork(&run, at, edits, whole, &out, &mut watch);
                let summary = forked.map_err(|e| lost(failure(&e, None), &e, &out))?;
                watch.finish();
                finish(&summary, &common, engine.disk.as_ref(), registry)
            })
        }
        Verb::Prompts { file, agent, out, access, edits } => {
            let scenario = load(&file, &access, &edits.set, edits.flags())?;
            prompts::prompts(&scenario, agent, out.as_deref(), registry)
        }
        Verb::Interview { run, agents, question, at, out, answering, common } => {
            with_engine(&common, &answering, registry, |engine, stop| {
                let watch = progress::Bar::new(stop);
                let asked = interview::Asked { run: &run, agents: &agents, at, question: &question };
                interview::interview(engine, &asked, out.as_deref(), common.json, watch)
            })
        }
        Verb::Systems(verb) => systems::systems(verb, registry),
        Verb::List { what, json } => list::list(what, json, registry),
        Verb::Export { run, table, format, raw, out, limit } => {
            export::export(&run, table.as_deref(), format, raw, out.as_deref(), limit)
        }
        Verb::Verify { folder, json } => verify::verify(&folder, json),
        Verb::Calls { run, agent, round, item, purpose, limit, json, full } => {
            calls::calls(&run, &Wanted { agent, round, item, purpose, limit }, json, full)
        }
        Verb::Calibrate { run, json } => calibrate::calibrate(&run, json, registry),
        Verb::Agreement { run, json } => agreement::agreement(&run, json),
        Verb::Answer { run, id, values, json } => answer::answer(&run, id.as_deref(), &values, json),
        Verb::Ctl { run, order } => ctl::ctl(&run, &order),
        Verb::Report { run } => {
            let path = match is_sweep(&RealDisk, &run) {
                true => sweep::write_report(&RealDisk, &run)?,
                false => {
                    let run = results::of_run(&RealDisk, &run)?;
                    story::write_report(&RealDisk, &run, &story::metrics(&run.tables)?, registry)?
                }
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
        let Spending { max_cost, max_tokens, max_calls, max_requests, max_tool_calls, max_time } = self;
        Budget {
            cost_usd: max_cost,
            tokens: max_tokens,
            calls: max_calls,
            requests: max_requests,
            tool_calls: max_tool_calls,
            seconds: max_time,
            ..Budget::default()
        }
    }

    /// The same as edits of a scenario.
    fn flags(self) -> Vec<(String, Node)> {
        let Spending { max_cost, max_tokens, max_calls, max_requests, max_tool_calls, max_time } = self;
        let whole = |n: u64| (Value::Int(n as i64), n.to_string());
        let real = |x: f64| (Value::Float(x), x.to_string());
        let limits = [
            ("max-tokens", "budget.tokens", max_tokens.map(whole)),
            ("max-calls", "budget.calls", max_calls.map(whole)),
            ("max-requests", "budget.requests", max_requests.map(whole)),
            ("max-tool-calls", "budget.tool_calls", max_tool_calls.map(whole)),
            ("max-cost", "budget.cost_usd", max_cost.map(real)),
            ("max-time", "budget.seconds", max_time.map(real)),
        ];
        let set = |(flag, path, value): (&str, &str, Option<(Value, String)>)| {
            let (value, shown) = value?;
            let origin = polity_kernel::tree::Origin::Edit(format!("--{flag} {shown}").into());
            Some((path.to_string(), Node { value, origin }))
        };
        limits.into_iter().filter_map(set).collect()
    }
}

impl Answering {
    /// Prices by name.
    fn prices(&self) -> Result<BTreeMap<String, Price>, Failure> {
        self.price.iter().map(|text| price(text)).collect()
    }

    /// Prices as edits of a scenario. A name is quoted, since it may hold dots, which part the keys of a path.
    fn flags(&self) -> Result<Vec<(String, Node)>, Failure> {
        let edit = |text: &String| {
            let (name, price) = price(text)?;
            let origin = Origin::Edit(format!("--price {text}").into());
            let entry = |name: &str, value: f64| {
                let key = Key { name: name.into(), origin: origin.clone() };
                (key, Node { value: Value::Float(value), origin: origin.clone() })
            };
            let mut entries = vec![entry("input", price.input), entry("output", price.output)];
            entries.extend(price.cached.map(|cached| entry("cached", cached)));
            Ok((format!("prices.{name:?}"), Node { value: Value::Map(entries), origin }))
        };
        self.price.iter().map(edit).collect()
    }
}

/// `NAME=INPUT,OUTPUT[,CACHED]`. A name may hold an equals sign, a price none.
fn price(text: &str) -> Result<(String, Price), Failure> {
    let wrong = || {
        let what = "NAME=INPUT,OUTPUT[,CACHED] in US dollars for a million tokens, for instance openai/gpt-4.1-mini=0.4,1.6,0.1";
        Failure::new(Exit::Input, format!("--price {text}: it must be {what}"))
    };
    let (name, numbers) = text.rsplit_once('=').filter(|(name, _)| !name.contains('"')).ok_or_else(wrong)?;
    let numbers: Option<Vec<f64>> = numbers.split(',').map(|number| number.trim().parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.iter().all(|x| (0.0..=1e6).contains(x))).ok_or_else(wrong)?;
    if !name.contains('/') {
        return Err(Failure::new(
            Exit::Input,
            format!("--price {text}: a model is named `provider/model`, for instance openai/{name}"),
        ));
    }
    let (input, output, cached) = match numbers[..] {
        [input, output] => (input, output, None),
        [input, output, cached] => (input, output, Some(cached)),
        _ => return Err(wrong()),
    };
    Ok((name.to_owned(), Price { input, output, cached }))
}

/// Says how a run goes on that nobody answers.
fn lost(mut failure: Failure, error: &DriveError, run: &Path) -> Failure {
    if matches!(error, DriveError::Lost(_)) {
        failure.message.push_str(&format!("\nnothing is lost; once it can be had: polity resume {}", run.display()));
    }
    failure
}

impl Edits {
    fn flags(&self) -> Vec<(String, Node)> {
        let Edits { agents, rounds, seed, model, .. } = self;
        let numbers = flags([("agents", agents.map(u64::from)), ("rounds", rounds.map(u64::from)), ("seed", *seed)]);
        numbers.into_iter().chain(model.as_deref().map(|model| ("model".to_string(), of_all(model)))).collect()
    }
}

/// The flag `--model`, which reaches further than the key `model`.
fn of_all(model: &str) -> Node {
    let origin = polity_kernel::tree::Origin::Edit(format!("--model {model}").into());
    Node { value: Value::Text(model.into()), origin }
}

/// Where else a scenario names models: members of a team, and policies.
fn other_models(tree: &Node, model: &str) -> Vec<(String, Node)> {
    let list = |key: &str| match tree.get(key).map(|node| &node.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let members = list("team").iter().enumerate().filter(|(_, member)| member.get("model").is_some());
    let mut edits: Vec<(String, Node)> = members.map(|(i, _)| (format!("team[{i}].model"), of_all(model))).collect();
    for (i, cohort) in list("cohorts").iter().enumerate() {
        let Some(policy) = cohort.get("policy") else { continue };
        if policy.get("models").is_some() {
            let none = Node { value: Value::List(Vec::new()), ..of_all(model) };
            edits.push((format!("cohorts[{i}].policy.models"), none));
        } else if policy.get("model").is_none() {
            continue;
        }
        edits.push((format!("cohorts[{i}].policy.model"), of_all(model)));
    }
    edits
}

impl Mock {
    fn options(self) -> Result<Options, Failure> {
        let faults = Faults::read(&self.fault).map_err(|why| Failure::new(Exit::Input, format!("--fault: {why}")))?;
        Ok(Options {
            port: self.port,
            model: self.model,
            requests_per_minute: self.requests_per_minute.map(NonZeroU32::get),
            tokens_per_minute: self.tokens_per_minute.map(NonZeroU32::get),
            at_once: self.at_once.map(NonZeroU32::get),
            latency: Duration::from_millis(self.latency_ms),
            batch_delay: Duration::from_millis(self.batch_delay),
            batch_expires: self.batch_expires,
            faults,
            seed: self.seed,
            offers: self
                .offers
                .iter()
                .filter(|way| !way.is_empty())
                .map(|way| offered(way))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A way to hold a model to a form that a stand-in can offer.
fn offered(name: &str) -> Result<Constrain, Failure> {
    let ways = Constrain::ALL.into_iter().filter(|way| *way != Constrain::Words);
    ways.clone().find(|way| way.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ways.map(Constrain::name).collect();
        let meant =
            nearest(name, names.iter().copied()).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        Failure::new(Exit::Input, format!("--offers: there is no `{name}`{meant} (there are {})", names.join(", ")))
    })
}

fn edits(set: &[String]) -> Result<Vec<(String, Node)>, Failure> {
    set.iter()
        .map(|text| files::parse_edit(text).map_err(|error| Failure::new(Exit::Input, format!("-P {text}: {error}"))))
        .collect()
}

fn load(
    file: &Path,
    access: &FileAccess,
    set: &[String],
    flags: Vec<(String, Node)>,
) -> Result<(Prepared, Source), Failure> {
    let (text, tree) = files::read_file(file)?;
    let source = Source { name: file.display().to_string(), text };
    let mut all = edits(set)?;
    for (path, node) in flags {
        if let ("model", Value::Text(model)) = (path.as_str(), &node.value) {
            all.extend(other_models(&tree, model));
        }
        all.push((path, node));
    }
    let stem = file.file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let reach = Reach::of(file.parent().unwrap_or(Path::new(".")), &access.allowed);
    let prepared = prepare(tree, &source.name, reach, &stem, all).map_err(|e| failure(&e, Some(&source)))?;
    Ok((prepared, source))
}

/// An engine for what runs nothing.
fn plain_engine(registry: &Registry) -> Engine<'_> {
    Engine {
        registry,
        providers: Arc::new(Providers::standard()),
        disk: Arc::new(RealDisk),
        shards: 1,
        connections: 1,
        memory: None,
        budget: Default::default(),
        outside: Default::default(),
        faults: None,
        stop: Stop::default(),
    }
}

fn with_engine<T>(
    common: &Common,
    answering: &Answering,
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
    let notes = Notes::to(output::warn);
    let traces = match &answering.otlp {
        None if answering.otlp_content => {
            return Err(Failure::new(
                Exit::Input,
                "--otlp-content says what --otlp sends; name a receiver with --otlp URL",
            ));
        }
        None => None,
        Some(address) => {
            let traces = Traces::new(address, answering.otlp_content, notes.clone());
            Some(traces.map_err(|why| Failure::new(Exit::Input, why))?)
        }
    };
    let engine = Engine {
        shards: common.shards.get(),
        connections: common.max_connections.get(),
        memory: common.memory,
        outside: Outside {
            prices: answering.prices()?,
            cache: answering.cache.clone(),
            declared: Declared {
                requests_per_minute: answering.requests_per_minute.map(NonZeroU32::get),
                tokens_per_minute: answering.tokens_per_minute.map(NonZeroU32::get),
            },
            schedule: answering.schedule,
            patience: answering.patience,
            grace: answering.grace,
            batch: answering.batch,
            batch_pause: answering.batch_pause_ms.map(Duration::from_millis),
            notes,
            traces: traces.clone(),
        },
        stop: stop.clone(),
        providers: Arc::new(Providers::within(answering.request_timeout)),
        ..plain_engine(registry)
    };
    let result = work(&engine, stop);
    if let Some(lost) = traces.and_then(|traces| traces.finish()) {
        output::warn(&lost);
    }
    result
}

fn run(
    prepared: Prepared,
    source: &Source,
    common: &Common,
    answering: &Answering,
    listening: Listening,
    out: Option<PathBuf>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    if prepared.design.is_some() {
        note("this is one run of the scenario itself; `polity sweep` runs its design");
    }
    with_engine(common, answering, registry, |engine, stop| {
        let out = match out {
            Some(out) => out,
            None => new_folder(engine.disk.as_ref(), &prepared.name, seed_of(&prepared))?,
        };
        let mut watch = progress::Bar::new(stop);
        let _doors = answer::open(&out, listening, &watch)?;
        let summary = engine.run(&prepared, &out, &mut watch).map_err(|e| {
            let mut failure = lost(failure(&e, Some(source)), &e, &out);
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
    let stopped = summary.status != RunStatus::Done;
    let run = results::of_run(disk, Path::new(&summary.run))?;
    let metrics = story::metrics(&run.tables)?;
    if !stopped && !common.no_report {
        story::write_report(disk, &run, &metrics, registry)?;
    }
    story::summary(&run, &metrics, summary, common.no_report)?;
    if common.json {
        print_line(&output::json(summary));
    }
    Ok(match summary.status {
        RunStatus::Stopped => Exit::Stopped,
        RunStatus::Budget => Exit::Budget,
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
