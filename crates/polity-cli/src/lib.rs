//! The command line. Everything for people goes to standard error; with `--json` the last line of standard output is one object.

mod agreement;
mod answer;
mod arena;
mod args;
mod ask;
mod asked;
mod calibrate;
mod calls;
mod compare;
mod ctl;
mod diagnose;
mod doctor;
mod engine;
mod estimate;
mod evidence;
mod explain;
mod export;
mod failure;
mod fits;
mod flags;
mod import;
mod interview;
mod list;
mod manual;
mod mcp;
mod migrate;
mod mock;
mod new;
mod numbers;
mod output;
mod progress;
mod prompts;
mod reference;
mod reference_pages;
mod serve;
mod several;
mod solve;
mod sources;
mod spread;
mod status;
mod story;
mod suite;
mod sweep;
mod systems;
mod templates;
mod tournament;
mod validate;
mod verify;
mod view;
mod workers;

pub use args::Args;
use args::{Answering, Common, Listening, Spending, Verb, Work};
use clap::Parser;
use engine::{continues_with, with_engine};
pub use failure::{Exit, Failure, exit_of};
use failure::{Source, failure, is_full};
use flags::{edits, flags, load};
use spread::Spreading;

/// The allocator of the program `polity`. The library sets none; your own program can choose it with two lines. Without a
/// dependency of your own on this crate, it is `polity::cli::Allocator`:
///
/// ```no_run,standalone_crate
/// #[global_allocator]
/// static MEMORY: polity_cli::Allocator = polity_cli::Allocator;
/// # fn main() {}
/// ```
pub use mimalloc::MiMalloc as Allocator;
use output::{LogFormat, error_json, note, print_line};
use polity_arena::report::{self, Report, render};
use polity_driver::comparison::is_comparison;
use polity_driver::results;
use polity_driver::run::{Engine, Prepared, RunStatus, Summary, Wanted, new_folder};
use polity_driver::run::{claim_for_files, fork_folder, seed_of};
use polity_driver::sweep::is_sweep;
use polity_driver::systems::is_check;
use polity_kernel::registry::Registry;
use polity_kernel::tree::Node;
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk, write_atomically};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command line of this process with the leaves of a build.
#[must_use]
pub fn main(registry: Registry) -> ExitCode {
    ExitCode::from(run_words(std::env::args_os(), Arc::new(registry)) as u8)
}

/// Runs a command line: its words, with the program's name first. For programs that have a command line of their own around this one.
///
/// It sets the process's handlers of signals, as the program does, and writes to standard output and standard error.
pub fn run_words(words: impl IntoIterator<Item = OsString>, registry: Arc<Registry>) -> Exit {
    let words: Vec<OsString> = words.into_iter().collect();
    let plain = || words.iter().map(|word| word.to_string_lossy().into_owned());
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(mut error) => {
            without_dashes(&mut error);
            let code = if error.use_stderr() { Exit::Input } else { Exit::Done };
            let tip = of_edits(&error, plain()).to_owned() + &of_orders(&error);
            // The flags were not understood, so this one is looked up by hand.
            output::write_as(log_format(plain()));
            if error.use_stderr() {
                let message = match output::colours() {
                    true => error.render().ansi().to_string(),
                    false => error.to_string(),
                };
                let message = message + &tip;
                output::usage(&message, code as u8);
            } else {
                // Nothing can be done if the message cannot be written.
                let _ = error.print();
            }
            if error.use_stderr() && plain().any(|word| word == "--json") {
                let message = error.to_string() + &tip;
                let plain = message.strip_prefix("error: ").unwrap_or(&message);
                print_line(&error_json(plain.trim_end(), code as u8));
            }
            return code;
        }
    };
    output::write_as(args.log_format);
    survive_limits_of_files();
    let json = args.verb.json();
    let exit = match dispatch(args.verb, &registry) {
        Ok(Exit::Done) if output::lost() => {
            output::error("standard output cannot be written; is the disk full?", Some(Exit::Disk as u8));
            Exit::Disk
        }
        Ok(exit) => exit,
        Err(failure) => {
            output::error(&failure.message, Some(failure.exit as u8));
            if json {
                print_line(&error_json(&failure.message, failure.exit as u8));
            }
            failure.exit
        }
    };
    // A process that is not a Rust program does not do this at its end.
    let _ = std::io::stdout().flush();
    exit
}

/// Writes `report.html` of a run, a sweep or a comparison again, from its folder alone, and returns its path: `polity report`.
///
/// # Errors
/// A damaged folder, one that holds neither, or a disk that cannot be written.
pub fn write_report(folder: &Path, registry: &Registry) -> Result<PathBuf, Failure> {
    save_report(&RealDisk, folder, &report_of(folder, registry)?)
}

/// The report of a run, a sweep or a comparison, from its folder alone.
fn report_of(folder: &Path, registry: &Registry) -> Result<Report, Failure> {
    match is_sweep(&RealDisk, folder) {
        true => sweep::report_of(&RealDisk, folder, registry),
        false if is_comparison(&RealDisk, folder) => arena::report_of(folder, registry),
        false => {
            let run = results::of_run(&RealDisk, folder)?;
            story::report_of(&RealDisk, &run, &story::metrics(&run.tables)?, registry)
        }
    }
}

/// Writes `report.html`, and returns its path.
pub(crate) fn save_report(disk: &dyn Disk, folder: &Path, report: &Report) -> Result<PathBuf, Failure> {
    let path = folder.join("report.html");
    write_atomically(disk, &path, render(report).as_bytes())
        .map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
    Ok(path)
}

/// Removes the parser's tip to write `-- -1`: no argument here takes a word with a dash, so that it would lead to the next error.
fn without_dashes(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue};
    if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) {
        let kept = tips.iter().filter(|tip| !tip.to_string().starts_with("to pass")).cloned().collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(kept));
    }
}

/// What to do about words that a shell made of an edit.
fn of_edits(error: &clap::Error, mut words: impl Iterator<Item = String>) -> &'static str {
    let is_unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    match is_unknown && words.any(|word| word.starts_with("-P")) {
        true => {
            "\nAn edit is one word, PATH=VALUE: the shell splits it at spaces and reads brackets. Write -P rounds=3 without \
             spaces, or the edit in quotes: -P 'metrics=[{kind: mean, of: guess}]'\n"
        }
        false => "",
    }
}

/// The commands that `polity ctl` knows, where another one was given.
fn of_orders(error: &clap::Error) -> String {
    use clap::Subcommand;
    use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
    let is_unknown = matches!(error.kind(), InvalidSubcommand | UnknownArgument);
    match is_unknown && error.to_string().contains(" ctl [OPTIONS] <RUN> <COMMAND>") {
        true => {
            let ctl = args::Ordered::augment_subcommands(clap::Command::new("ctl"));
            let names: Vec<&str> = ctl.get_subcommands().map(clap::Command::get_name).collect();
            format!("\nThe commands are: {}\n", names.join(", "))
        }
        false => String::new(),
    }
}

/// Turns a write beyond the file size limit (`ulimit -f`) into an error instead of a signal that ends the process.
fn survive_limits_of_files() {
    #[cfg(unix)]
    {
        const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();
        // If this fails, the signal ends the process as before.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// Reads the format of standard error from the command line, else from the environment.
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

fn dispatch(verb: Verb, registry: &Arc<Registry>) -> Result<Exit, Failure> {
    match verb {
        Verb::Validate { files, access, full, json } => validate::validate(&files, &access, full, json, registry),
        Verb::Run { file, common, out, go_on, spreading, access, edits, spending, answering, listening } => {
            let flags = edits.flags().into_iter().chain(spending.flags()).chain(answering.flags()?).collect();
            let (prepared, source) = load(&file, &access, &edits.keys.set, flags, registry)?;
            run(prepared, &source, &common, &answering, listening, (out, go_on, spreading), registry)
        }
        Verb::Estimate { file, max_cost, from, no_ask, processes, common, access, edits, answering } => {
            let flags = edits.flags().into_iter().chain(answering.flags()?).collect();
            let (prepared, source) = load(&file, &access, &edits.keys.set, flags, registry)?;
            if let Some(processes) = processes {
                return with_engine(&common, &answering, registry, |engine, _| {
                    estimate::processes(engine, &prepared, &source, processes.get(), common.json)
                });
            }
            let basis = estimate::basis(from.as_deref(), no_ask, max_cost);
            with_engine(&common, &answering, registry, |engine, stop| {
                let engine = &Engine { asks: !no_ask, ..engine.clone() };
                estimate::estimate(engine, &prepared, &source, basis, common.json, progress::Bar::new(stop))
            })
        }
        Verb::Sweep { file, common, limits, out, access, edits, seeds, plan, answering } => {
            let seeds = flags([("design.seeds", seeds.map(u64::from))]);
            let flags = edits.flags().into_iter().chain(seeds).chain(answering.flags()?).collect();
            let scenario = load(&file, &access, &edits.keys.set, flags, registry)?;
            match plan {
                true => sweep::plan(&scenario, &common, &answering, out, registry),
                false => sweep::sweep(&scenario, &common, &answering, limits, out, registry),
            }
        }
        Verb::Work { folder, part, common, limits, spending, answering } => {
            let (common, answering) = (&common, &answering);
            workers::work(&workers::Called { folder: &folder, part, common, limits, spending, answering }, registry)
        }
        Verb::Ask { asked, work: Work { edits, spending, answering, common } } => {
            ask::ask(&asked, &edits, spending.budget(), &answering, &common, registry)
        }
        Verb::Eval { suite: Some(name), systems, trying, out, work, .. } => {
            suite::eval(&name, systems.systems, trying.repeats, out, &work, registry)
        }
        Verb::Eval { method, task, trying, out, work: Work { edits, spending, answering, common }, .. } => {
            let (method, task) = (method.unwrap_or_default(), task.unwrap_or_default());
            let wished = arena::Wished { keys: &edits.keys, trying, spending, answering: &answering, out };
            with_engine(&common, &answering, registry, |engine, stop| {
                arena::eval(engine, &method, &task, &edits, &wished, &common, stop)
            })
        }
        Verb::Compare { what, comparing, common, .. } if comparing.tasks.is_empty() => {
            compare::compare(&what, common.json, registry)
        }
        Verb::Compare { what, comparing, trying, out, keys, spending, answering, common } => {
            let wished = arena::Wished { keys: &keys, trying, spending, answering: &answering, out };
            with_engine(&common, &answering, registry, |engine, stop| {
                arena::compare(engine, &what, comparing, &wished, &common, stop)
            })
        }
        Verb::Resume { run, rounds: Some(rounds), .. } => Err(longer(&run, rounds)),
        Verb::Resume { run, common, limits, spending, answering, listening, .. } if is_sweep(&RealDisk, &run) => {
            no_flags_of_runs("a sweep", &answering, &listening)?;
            sweep::resume(&run, &common, &answering, limits, spending, registry)
        }
        Verb::Resume { run, common, limits, spending, answering, listening, .. } if is_check(&RealDisk, &run) => {
            no_flags_of_runs("a check", &answering, &listening)?;
            if !spending.flags().is_empty() {
                return Err(workers::no_budget());
            }
            with_engine(&common, &answering, registry, |engine, _| systems::resume(engine, &run, limits, &common))
        }
        Verb::Resume { run, common, limits, spending, answering, listening, .. } if is_comparison(&RealDisk, &run) => {
            no_flags_of_sweeps(&run, &limits)?;
            no_listening(&listening, "a comparison")?;
            with_engine(&common, &answering, registry, |engine, stop| {
                arena::resume(engine, &run, spending, &answering, &common, stop)
            })
        }
        Verb::Resume { run, common, limits, spending, answering, listening, .. } => {
            no_flags_of_sweeps(&run, &limits)?;
            resume(&run, &spending, &answering, listening, &common, registry)
        }
        Verb::Replay { run, common } => replay(&run, &common, registry),
        Verb::Fork { run, at, out, set, rounds, spending, answering, listening, common } => {
            let mut whole = flags([("rounds", rounds.map(u64::from))]);
            whole.extend(spending.flags());
            whole.extend(answering.flags()?);
            fork(&Fork { run, at, out, edits: edits(&set)?, whole }, &answering, listening, &common, registry)
        }
        Verb::Prompts { file, agent, out, access, edits } => {
            // The name of a method, unless there is such a file.
            match file.to_str().and_then(|name| registry.method_named(name)).filter(|_| !file.exists()) {
                Some(method) => prompts::of_method(method, out.as_deref(), registry),
                None => {
                    let scenario = load(&file, &access, &edits.keys.set, edits.flags(), registry)?;
                    prompts::prompts(&scenario, agent, out.as_deref(), registry)
                }
            }
        }
        Verb::Interview { run, agents, question, at, out, answering, common } => {
            with_engine(&common, &answering, registry, |engine, stop| {
                let asked = interview::Asked { run: &run, agents: &agents, at, question: &question };
                interview::interview(engine, &asked, out.as_deref(), common.json, progress::Bar::new(stop))
            })
        }
        Verb::Systems(verb) => systems::systems(verb, registry),
        Verb::Explain { name, json } => explain::explain(name.as_deref(), json, registry),
        Verb::Solve(asked) => solve::solve(&asked),
        Verb::Tournament(asked) => tournament::tournament(&asked),
        Verb::Status { folder, json } => status::status(&folder, json),
        Verb::List { what, filters, json } => list::list(what, &filters, json, registry),
        Verb::Import(what) => import::import(what, registry),
        Verb::Export { run, network: Some(format), out, .. } => export::network(&run, format, out.as_deref()),
        Verb::Export { run, table, network: None, format, raw, out, limit } => {
            export::export(&run, table.as_deref(), format, raw, out.as_deref(), limit)
        }
        Verb::Verify { folder, json } => verify::verify(&folder, json),
        Verb::Calls { run, of, agent, round, item, purpose, limit, json, full } => {
            calls::calls(&run, of.as_deref(), &Wanted { agent, round, item, purpose, limit }, json, full)
        }
        Verb::Calibrate(asked) => calibrate::calibrate(&asked, registry),
        Verb::Diagnose(asked) => diagnose::diagnose(&asked, registry),
        Verb::Agreement { run, json } => agreement::agreement(&run, json),
        Verb::Answer { run, id, values, json } => answer::answer(&run, id.as_deref(), &values, json),
        Verb::Ctl { run, order } => ctl::ctl(&run, &order),
        Verb::Report { run, figures, tables } => report(&run, figures.as_deref(), tables.as_deref(), registry),
        Verb::View { run, serving } => view::view(&run, &serving, registry.clone()),
        Verb::Serve { folder: Some(folder), serving, work: Work { edits, answering, .. }, .. } => {
            serve::no_flags_of_teams(&edits, &answering)?;
            view::serve(&folder, &serving, registry.clone())
        }
        Verb::Serve { method, serving, served, work: Work { edits, spending, answering, common }, .. } => {
            let (method, edits, answering) = (method.as_deref().unwrap_or_default(), &edits, &answering);
            let wished = serve::Wished { method, served: &served, edits, spending, answering, common: &common };
            serve::serve(&wished, &serving, registry)
        }
        Verb::New { kind, name, polity, guided } => new::new(kind, &name, polity.as_deref(), &guided, registry),
        Verb::Migrate { files, from, dry_run } => migrate::migrate(&files, from, dry_run),
        Verb::Mcp(args::Mcp::Serve(asked)) => mcp::serve(asked),
        Verb::MockServer(mock) => mock::mock_server(mock.options()?),
        Verb::Schema => Ok(manual::schema(registry)),
        Verb::Doctor { folder, json } => Ok(doctor::doctor(&folder, json)),
        Verb::Completions { shell } => Ok(manual::completions(shell)),
        Verb::Man { folder } => manual::man(folder.as_deref()),
        Verb::Reference { leaf } => manual::reference(registry, leaf.as_deref()),
    }
}

/// Refuses flags that are for a single run.
fn no_flags_of_runs(what: &str, answering: &Answering, listening: &Listening) -> Result<(), Failure> {
    no_listening(listening, what)?;
    if !answering.price.is_empty() {
        let message = format!("each run of {what} has the prices of the scenario; --price works for a single run only");
        return Err(Failure::new(Exit::Input, message));
    }
    Ok(())
}

/// Refuses --listen for several runs.
fn no_listening(listening: &Listening, what: &str) -> Result<(), Failure> {
    match listening.listen {
        None => Ok(()),
        Some(_) => Err(Failure::new(
            Exit::Input,
            format!(
                "--listen works for a single run only; to answer questions of the runs of {what}, use `polity answer`"
            ),
        )),
    }
}

/// Refuses flags that are for a sweep.
fn no_flags_of_sweeps(run: &Path, limits: &args::SweepLimits) -> Result<(), Failure> {
    if limits.jobs.is_some() {
        let message = format!("{} is not a sweep; --jobs works for sweeps only", run.display());
        return Err(Failure::new(Exit::Input, message));
    }
    Ok(())
}

/// Says which command continues a run beyond its planned end. The journal records the planned number of rounds, so the run keeps it; a fork
/// has the same digest as a run that was planned with more rounds.
fn longer(run: &Path, rounds: u32) -> Failure {
    let at = run.display();
    let group = match () {
        () if is_sweep(&RealDisk, run) => Some(("sweep", "sweep FILE")),
        () if is_comparison(&RealDisk, run) => Some(("comparison", "compare ...")),
        () => None,
    };
    if let Some((what, verb)) = group {
        let message = format!(
            "{at} is a {what}, which keeps the number of rounds that it was planned with; `polity {verb} --rounds {rounds}` \
             starts one with {rounds} rounds"
        );
        return Failure::new(Exit::Input, message);
    }
    let message = match results::of_run(&RealDisk, run) {
        Err(error) => return failure(&error, None),
        Ok(recorded) => {
            let complete = recorded.rounds;
            let planned = recorded.manifest.scenario.get("rounds").and_then(serde_json::Value::as_u64).unwrap_or(0);
            let ended_early = recorded.ended.as_ref().and_then(|outcome| outcome.reason.clone());
            if recorded.manifest.scenario.get("method").is_some_and(|method| !method.is_null()) {
                format!(
                    "{at} is an evaluation; its rounds are those of each item, so it cannot be continued beyond them"
                )
            } else if let Some(reason) = ended_early {
                format!("{at} ended in round {complete} of {planned}, and more rounds change nothing: {reason}")
            } else if rounds <= complete {
                format!("{at} has {complete} complete rounds already; name a number of rounds above {complete}")
            } else {
                format!(
                    "a run keeps the number of rounds that it was planned with, here {planned}. This command continues \
                     it up to round {rounds} in a new folder, and gives the same as a run planned with \
                     {rounds} rounds:\n\n    polity fork {at} --at {complete} --rounds {rounds}"
                )
            }
        }
    };
    Failure::new(Exit::Input, message)
}

/// Continues a run.
fn resume(
    run: &Path,
    spending: &Spending,
    answering: &Answering,
    listening: Listening,
    common: &Common,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, stop| {
        let mut watch = progress::Bar::new(stop);
        let engine = &Engine { budget: spending.budget(), ..engine.clone() };
        continues_with("run", run);
        let _doors = answer::open(run, listening, &watch)?;
        let summary = engine.resume(run, &mut watch).map_err(|e| lost(failure(&e, None), &e, run))?;
        watch.finish();
        finish(&summary, common, engine.disk.as_ref(), registry)
    })
}

/// Recomputes a run and compares digests.
fn replay(run: &Path, common: &Common, registry: &Registry) -> Result<Exit, Failure> {
    with_engine(common, &Answering::default(), registry, |engine, stop| {
        let mut watch = progress::Bar::new(stop);
        output::works_on("run", run);
        let summary = engine.replay(run, &mut watch)?;
        watch.finish();
        story::replayed(&summary);
        if common.json {
            print_line(&output::json(&summary.to_json()));
        }
        Ok(if summary.status == RunStatus::Same { Exit::Done } else { Exit::Differs })
    })
}

/// Writes the report of a run, a sweep or a comparison again, or its figures and tables.
fn report(run: &Path, figures: Option<&Path>, tables: Option<&Path>, registry: &Registry) -> Result<Exit, Failure> {
    type Files = fn(&Report) -> Vec<report::File>;
    let report = report_of(run, registry)?;
    if figures.is_none() && tables.is_none() {
        note(&format!("report: {}", save_report(&RealDisk, run, &report)?.display()));
        return Ok(Exit::Done);
    }
    let wanted: [(Option<&Path>, Files); 2] = [(figures, report::figures), (tables, report::tables)];
    for (folder, files) in wanted {
        let Some(folder) = folder else { continue };
        claim_for_files(&RealDisk, folder, report::is_for_papers).map_err(|error| {
            let failure = Failure::from(error);
            Failure { message: failure.message.replace("another --out", "another folder"), ..failure }
        })?;
        let files = files(&report);
        for (name, bytes) in &files {
            let path = folder.join(name);
            write_atomically(&RealDisk, &path, bytes)
                .map_err(|e| Failure::new(Exit::Disk, format!("{}: {e}", path.display())))?;
            note(&path.display().to_string());
        }
        if files.is_empty() {
            note(&format!("the report of {} has none for {}", run.display(), folder.display()));
        }
    }
    Ok(Exit::Done)
}

/// A fork that is asked for.
struct Fork {
    run: PathBuf,
    at: u32,
    out: Option<PathBuf>,
    edits: Vec<(String, Node)>,
    whole: Vec<(String, Node)>,
}

/// Forks a run and continues it.
fn fork(
    wanted: &Fork,
    answering: &Answering,
    listening: Listening,
    common: &Common,
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, stop| {
        let out = match &wanted.out {
            Some(out) => out.clone(),
            None => fork_folder(engine.disk.as_ref(), &wanted.run, wanted.at)?,
        };
        let mut watch = progress::Bar::new(stop);
        continues_with("run", &out);
        let _doors = answer::open(&out, listening, &watch)?;
        let forked = engine.fork(&wanted.run, wanted.at, wanted.edits.clone(), wanted.whole.clone(), &out, &mut watch);
        let summary = forked.map_err(|e| lost(failure(&e, None), &e, &out))?;
        watch.finish();
        finish(&summary, common, engine.disk.as_ref(), registry)
    })
}

/// Explains how to continue a run whose models do not answer.
fn lost(mut failure: Failure, error: &DriveError, run: &Path) -> Failure {
    if matches!(error, DriveError::Lost(_)) {
        failure
            .message
            .push_str(&format!("\nnothing is lost; once the model can be reached: polity resume {}", run.display()));
    }
    failure
}

fn run(
    prepared: Prepared,
    source: &Source,
    common: &Common,
    answering: &Answering,
    listening: Listening,
    (out, go_on, spreading): (Option<PathBuf>, bool, Spreading),
    registry: &Registry,
) -> Result<Exit, Failure> {
    with_engine(common, answering, registry, |engine, stop| {
        let out = match out {
            Some(out) => out,
            None => new_folder(engine.disk.as_ref(), &prepared.name, seed_of(&prepared.tree))?,
        };
        let mut watch = progress::Bar::new(stop);
        continues_with("run", &out);
        let _doors = answer::open(&out, listening, &watch)?;
        let spread = spreading.place()?;
        let helps = spread.as_ref().is_some_and(|spread| spread.index() > 0);
        let engine = &Engine { spread, ..engine.clone() };
        let ran = match (&engine.spread, go_on) {
            (Some(_), _) => engine.run_spread(&prepared, &out, &mut watch),
            (None, true) => engine.run_or_resume(&prepared, &out, &mut watch),
            (None, false) => engine.run(&prepared, &out, &mut watch),
        };
        let summary = ran.map_err(|e| {
            let mut failure = lost(failure(&e, Some(source)), &e, &out);
            if is_full(&e) {
                // Before the manifest exists nothing has begun, and the same command takes the folder again.
                let begun = engine.disk.exists(&out.join("manifest.json")).unwrap_or(false);
                failure.message.push_str(&match begun {
                    true => format!("\nfree some space, then: polity resume {}", out.display()),
                    false => "\nfree some space, then run the same command again: the run had not begun".to_string(),
                });
            }
            failure
        })?;
        watch.finish();
        if helps {
            return Ok(helped(&summary, common));
        }
        let exit = finish(&summary, common, engine.disk.as_ref(), registry)?;
        if prepared.design.is_some() {
            note("this was a single run of the scenario; `polity sweep` runs its design");
        }
        Ok(exit)
    })
}

/// Says that the part of a run that this process had is over; process 0 shows the results.
fn helped(summary: &Summary, common: &Common) -> Exit {
    let Summary { status, rounds, digest, run, .. } = summary;
    note(&format!(
        "this process's part of {run} is over after {rounds} rounds ({status}); process 0 writes the run, digest {digest}"
    ));
    if common.json {
        print_line(&output::json(&summary.to_json()));
    }
    exit_of_status(summary.status)
}

fn exit_of_status(status: RunStatus) -> Exit {
    match status {
        RunStatus::Stopped => Exit::Stopped,
        RunStatus::Budget => Exit::Budget,
        _ => Exit::Done,
    }
}

/// Shows the results of a run.
fn finish(summary: &Summary, common: &Common, disk: &dyn Disk, registry: &Registry) -> Result<Exit, Failure> {
    let stopped = summary.status != RunStatus::Done;
    let run = results::of_run(disk, Path::new(&summary.run))?;
    let metrics = story::metrics(&run.tables)?;
    if !stopped && !common.no_report {
        story::write_report(disk, &run, &metrics, registry)?;
    }
    story::summary(&run, &metrics, summary, common.no_report)?;
    // Without an answer of a model there is no table of calls.
    if !stopped
        && summary.totals.answers > 0
        && run.manifest.scenario.get("method").is_some_and(|method| !method.is_null())
        && let Some((answer, _)) = polity_arena::team::answer_of(&run, &summary.digest, &|_| false)?
    {
        note(&format!("answer: {answer}"));
    }
    if common.json {
        print_line(&output::json(&summary.to_json()));
    }
    Ok(exit_of_status(summary.status))
}
