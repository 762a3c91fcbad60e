//! `polity eval` and `polity compare METHOD ... --task FILE`: run methods on the items of files.

use super::args::{Answering, Common, Comparing, Edits, Keys, Spending, Trying};
use super::engine::continues_with;
use super::failure::{Exit, Failure, failure};
use super::flags::{check_model, edits as read_edits, no_model};
use super::output::{self, note, print_line};
use super::workers::{short_of, tell_plan};
use super::{progress, story};
use comfy_table::{ContentArrangement, Table, presets};
use polity_arena::arena::{
    self, Arena, ArenaObserver, ArenaRequest, Asked, COORDINATION, Comparison, Entrant, Grid, Halt, Score, Spent,
    tables,
};
use polity_arena::report::Report;
use polity_driver::comparison::is_comparison;
use polity_driver::drive::{Stop, Watch};
use polity_driver::results::Run;
use polity_driver::run::{Engine, RunStatus, Summary, new_folder};
use polity_driver::workers::{Progress, Task, WorkSummary};
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use polity_store::disk::{Disk, RealDisk};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Maximum rows of a table on the terminal.
const MOST_ROWS: usize = 60;

/// What a command line asks for, besides methods, tasks and models.
pub struct Wished<'a> {
    pub keys: &'a Keys,
    pub trying: Trying,
    pub spending: Spending,
    pub answering: &'a Answering,
    pub out: Option<PathBuf>,
}

impl Wished<'_> {
    fn request(
        &self,
        registry: &Registry,
        asked: Asked,
        methods: Vec<String>,
        tasks: Vec<PathBuf>,
        models: Vec<String>,
    ) -> Result<ArenaRequest, Failure> {
        let Keys { set, agents, rounds, seed } = self.keys;
        // First, since a wrong name can be reported without a model or a file.
        arena::read_methods(asked, &methods, *agents, *rounds, registry)?;
        if models.is_empty() {
            return Err(no_model());
        }
        models.iter().try_for_each(|model| check_model(model))?;
        if self.trying.repeats > 1 && self.answering.cache.is_some() {
            // A repeat asks the same words again, and would get the first one's answers.
            let message = "--repeats with --cache would count the cached answers of one run several times; use only one of \
                           the two";
            return Err(Failure::new(Exit::Input, message));
        }
        let mut edits = read_edits(set)?;
        edits.extend(self.answering.flags()?);
        Ok(ArenaRequest {
            asked,
            methods,
            members: *agents,
            rounds: *rounds,
            tasks,
            from: PathBuf::new(),
            models,
            limit: self.trying.limit,
            seed: seed.unwrap_or(1),
            repeats: self.trying.repeats,
            equal: None,
            pilot: None,
            replay: false,
            edits,
            batch: self.answering.batch,
            budget: self.spending.budget(),
            planned: false,
        })
    }

    fn folder(&self, engine: &Engine<'_>, name: &str, seed: u64) -> Result<PathBuf, Failure> {
        match &self.out {
            Some(out) => Ok(out.clone()),
            None => Ok(new_folder(engine.disk.as_ref(), name, seed)?),
        }
    }
}

/// Shows runs as they are made.
pub struct Teller<'a> {
    pub stop: Stop,
    /// Where each run gets its own report.
    pub reports: Option<&'a Engine<'a>>,
}

impl ArenaObserver for Teller<'_> {
    fn see(
        &mut self,
        what: &str,
        run: &mut dyn FnMut(&mut dyn Watch) -> Result<Summary, DriveError>,
    ) -> Result<Summary, DriveError> {
        note(what);
        let mut bar = progress::Bar::new(self.stop.clone());
        let summary = run(&mut bar)?;
        bar.finish();
        Ok(summary)
    }

    fn ended(&mut self, run: &Run<'_>) -> Result<(), DriveError> {
        let Some(engine) = self.reports else { return Ok(()) };
        let metrics = story::metrics(&run.tables)?;
        let written = story::write_report(engine.disk.as_ref(), run, &metrics, engine.registry);
        written.map(drop).map_err(|failure| DriveError::Folder(failure.message))
    }
}

/// Tells why there are no results, and how to go on: `how`.
pub fn halted(halt: Halt, how: &str, out: &Path, common: &Common) -> Result<Exit, Failure> {
    let summary = match halt {
        Halt::Stopped(summary) => summary,
        Halt::Short(short) => {
            note(&short_of("comparison", &short));
            note(how);
            if common.json {
                let object =
                    json!({ "status": RunStatus::Budget, "folder": out.display().to_string(), "reason": short });
                print_line(&output::json(&object));
            }
            return Ok(Exit::Budget);
        }
        Halt::Failed(error) => {
            let mut failure = failure(&error, None);
            if failure.exit != Exit::Input && begun(out) {
                failure.message.push_str(&format!("\neverything recorded so far is kept; {how}"));
            }
            return Err(failure);
        }
    };
    let reason = summary.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let more = if summary.status == RunStatus::Budget { " with a higher limit" } else { "" };
    note(&format!("{}{reason}; {how}{more}", summary.status));
    if common.json {
        let object = json!({ "status": summary.status, "folder": out.display().to_string(), "run": summary.run, "reason": summary.reason });
        print_line(&output::json(&object));
    }
    Ok(if summary.status == RunStatus::Budget { Exit::Budget } else { Exit::Stopped })
}

fn resumes(out: &Path) -> String {
    format!("`polity resume {}` continues", out.display())
}

/// Whether a folder holds something that can go on.
fn begun(out: &Path) -> bool {
    is_comparison(&RealDisk, out) || RealDisk.exists(&out.join("manifest.json")).unwrap_or(false)
}

fn show(grid: &Grid) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(&grid.columns);
    table.add_rows(grid.rows.iter().take(MOST_ROWS));
    note(&table.to_string());
    if grid.rows.len() > MOST_ROWS {
        note(&format!(" ... {} more rows", grid.rows.len() - MOST_ROWS));
    }
}

/// Prints the use of the scoring model, if there is one.
fn show_scoring(methods: &[Score]) {
    let mut all = Spent::default();
    methods.iter().filter_map(|score| score.scoring.as_ref()).for_each(|spent| all.add(spent));
    if all.calls > 0 {
        note(&format!("scoring the answers took {}, which do not count as use of the methods", tables::used(&all)));
    }
}

/// `polity eval`.
pub fn eval(
    engine: &Engine<'_>,
    method: &str,
    task: &Path,
    edits: &Edits,
    wished: &Wished<'_>,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let models = edits.model.iter().cloned().collect();
    let request =
        wished.request(engine.registry, Asked::Eval, vec![method.to_owned()], vec![task.to_owned()], models)?;
    let name = Entrant::name_in(method);
    let name = engine.registry.method_named(name).unwrap_or(name);
    let out = wished.folder(engine, &format!("eval-{name}"), request.seed)?;
    match request.repeats {
        1 => eval_once(engine, &request, &out, common, stop),
        _ => compared(engine, &request, &out, common, stop),
    }
}

/// Opens what is asked for, and says what it works on. `key`: as of [`output::works_on`].
fn opened<'a>(
    engine: &'a Engine<'a>,
    request: &'a ArenaRequest,
    (key, out): (&'static str, &Path),
    common: &Common,
    stop: Stop,
) -> Result<(Arena<'a>, Teller<'a>), Failure> {
    let arena = Arena::open(engine, request, out)?;
    arena.tasks().iter().for_each(|task| note(&task.words()));
    arena.left_out().iter().for_each(|why| note(&format!("left out: {why}")));
    continues_with(key, out);
    Ok((arena, Teller { stop, reports: (!common.no_report).then_some(engine) }))
}

/// Runs a method on a task once: the folder is a run folder.
fn eval_once(
    engine: &Engine<'_>,
    request: &ArenaRequest,
    out: &Path,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let (arena, mut teller) = opened(engine, request, ("run", out), common, stop)?;
    let (score, unsolved) = match arena.eval(&mut teller) {
        Ok(found) => found,
        Err(halt) => return halted(halt, &resumes(out), out, common),
    };
    let scores = std::slice::from_ref(&score);
    show(&tables::methods(scores));
    unsolved.iter().for_each(|warning| output::warn(warning));
    show(&tables::ledger(scores));
    show_scoring(scores);
    if score.simulated {
        note("answers come from simulated models");
    }
    note(&format!("run folder {}", score.run));
    if common.json {
        print_line(&output::json(&score));
    }
    Ok(Exit::Done)
}

/// `polity compare` of methods.
pub fn compare(
    engine: &Engine<'_>,
    methods: &[String],
    comparing: Comparing,
    wished: &Wished<'_>,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let Comparing { tasks, models, equal, pilot, replay, plan } = comparing;
    if pilot.is_some() && equal.0.is_none() {
        let message =
            "--pilot sets the items of the pilot that `--equal` needs; add `--equal tokens`, or leave --pilot out";
        return Err(Failure::new(Exit::Input, message));
    }
    let request = wished.request(engine.registry, Asked::Compare, methods.to_vec(), tasks, models)?;
    let request = ArenaRequest { equal: equal.0, pilot, replay, ..request };
    let out = wished.folder(engine, &request.folder_name(), request.seed)?;
    if plan {
        let planned = Arena::open(engine, &request, &out)?.plan()?;
        return Ok(tell_plan("comparison", &out, planned, common));
    }
    compared(engine, &request, &out, common, stop)
}

/// `polity work` in the folder of a comparison.
pub(super) fn work(
    engine: &Engine<'_>,
    dir: &Path,
    task: Task,
    spending: Spending,
    answering: &Answering,
    progress: &mut Progress<'_>,
) -> Result<WorkSummary, Failure> {
    spending.of_all()?;
    let mut request = Arena::recorded(engine, dir)?;
    request.budget = request.budget.with(&spending.budget());
    no_shared_answers(&request, answering)?;
    Ok(Arena::open(engine, &request, dir)?.work(task, progress)?)
}

/// Refuses a cache for repeats.
fn no_shared_answers(request: &ArenaRequest, answering: &Answering) -> Result<(), Failure> {
    match request.repeats > 1 && answering.cache.is_some() {
        true => Err(Failure::new(
            Exit::Input,
            "--cache would count the cached answers of one run several times, since each method has several runs",
        )),
        false => Ok(()),
    }
}

/// `polity resume` of the folder of a comparison. Limits that are given take the place of those that were.
pub fn resume(
    engine: &Engine<'_>,
    dir: &Path,
    spending: Spending,
    answering: &Answering,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let mut request = Arena::recorded(engine, dir)?;
    request.budget = request.budget.with(&spending.budget());
    if !answering.price.is_empty() {
        let message = "the prices of a comparison are those of the command that began it; --price cannot change them";
        return Err(Failure::new(Exit::Input, message));
    }
    no_shared_answers(&request, answering)?;
    request.batch = answering.batch.or(request.batch);
    compared(engine, &request, dir, common, stop)
}

/// The report of the comparison in a folder, from its runs alone.
pub fn report_of(dir: &Path, registry: &Registry) -> Result<Report, Failure> {
    let engine = Engine { asks: false, ..super::engine::plain_engine(registry) };
    let request = Arena::recorded(&engine, dir)?;
    let comparison = Arena::read(&engine, &request, dir)?;
    Ok(arena::report_of(&RealDisk, &comparison, registry))
}

/// Makes a comparison, and shows it.
fn compared(
    engine: &Engine<'_>,
    request: &ArenaRequest,
    out: &Path,
    common: &Common,
    stop: Stop,
) -> Result<Exit, Failure> {
    let (arena, mut teller) = opened(engine, request, ("comparison", out), common, stop)?;
    let comparison = match arena.compare(&mut teller) {
        Ok(found) => found,
        Err(halt) => return halted(halt, &resumes(out), out, common),
    };
    arena::write(&engine.disk, out, &comparison, engine.registry, !common.no_report)?;
    show_comparison(&comparison);
    if !common.no_report {
        note(&format!("report {}", out.join("report.html").display()));
    }
    if common.json {
        comparison.methods.iter().for_each(|score| print_line(&output::json(score)));
        // With a single method, its line says all.
        if request.asked == Asked::Compare {
            print_line(&output::json(&comparison));
        }
    }
    Ok(Exit::Done)
}

fn show_comparison(comparison: &Comparison) {
    if !comparison.pilots.is_empty() {
        let mut lines = tables::allowances(comparison);
        let spent = lines.pop();
        lines.iter().for_each(|line| note(line));
        show(&tables::pilot(comparison));
        spent.iter().for_each(|line| note(line));
    }
    show(&tables::methods(&comparison.methods));
    comparison.warnings().iter().for_each(|warning| output::warn(warning));
    if !comparison.overall.is_empty() {
        show(&tables::overall(comparison));
        note(tables::OVERALL);
    }
    if !comparison.compared.is_empty() {
        show(&tables::duels(comparison));
        tables::despite(comparison).iter().for_each(|why| note(why));
    }
    show(&tables::ledger(&comparison.methods));
    show_scoring(&comparison.methods);
    note(COORDINATION);
    if comparison.simulated {
        note("answers come from simulated models: they are no evidence about any real model");
    }
    note(&format!(
        "folder {}: table.md, table.tex, frontier.svg, methods.parquet, items.jsonl, references.bib, inspect",
        comparison.folder
    ));
}
