//! `--plan` and `polity work`: runs of a sweep, a comparison or a check that several processes make.

use super::args::{Answering, Common, Spending, SweepLimits};
use super::engine::with_engine;
use super::failure::{Exit, Failure};
use super::output::{self, note, print_line};
use super::sweep::RunsBar;
use super::{arena, systems};
use polity_driver::comparison::is_comparison;
use polity_driver::run::{Engine, RunStatus};
use polity_driver::sweep::{self, WatchSweep, is_sweep};
use polity_driver::systems::is_check;
use polity_driver::workers::{Part, Planning, Progress, Task, WorkSummary};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Limits;
use polity_store::printable::counted;
use std::path::Path;

/// Says what `--plan` did, and what to do next. `key`: what the folder holds.
pub(super) fn tell_plan(key: &str, out: &Path, planned: Planning, common: &Common) -> Exit {
    let (shown, runs) = (out.display(), counted(planned.runs, "run"));
    match planned.already {
        true => note(&format!("the same {key} is already planned in {shown}, with {runs}; nothing was changed")),
        false => note(&format!("planned {runs} in {shown}, none is made yet")),
    }
    note(&format!("make them, in any number of processes: polity work {shown}"));
    note(&format!("then write the tables and the report: polity resume {shown}"));
    if common.json {
        let object = serde_json::json!({
            "status": RunStatus::NotRun, key: shown.to_string(), "runs": planned.runs, "already": planned.already,
        });
        print_line(&output::json(&object));
    }
    Exit::Done
}

impl Spending {
    /// The limits of all runs together, for workers.
    pub(super) fn of_all(self) -> Result<Limits, Failure> {
        if self.max_time.is_some() {
            let message =
                "--max-time works for a single run only; a worker can be interrupted, and the same command goes on";
            return Err(Failure::new(Exit::Input, message));
        }
        Ok(self.budget().run())
    }
}

/// How `polity work` was called.
pub(super) struct Called<'a> {
    pub folder: &'a Path,
    pub part: Option<Part>,
    pub common: &'a Common,
    pub limits: SweepLimits,
    pub spending: Spending,
    pub answering: &'a Answering,
}

/// `polity work`.
pub(super) fn work(called: &Called<'_>, registry: &Registry) -> Result<Exit, Failure> {
    if !called.answering.price.is_empty() {
        let message =
            "the runs that workers share have the prices of the scenario; --price works for a single run only";
        return Err(Failure::new(Exit::Input, message));
    }
    with_engine(called.common, called.answering, registry, |engine, _| {
        let mut bar = RunsBar::new();
        let worked = made(engine, called, &mut |done, of| bar.progress(done, of));
        bar.clear();
        let (what, worked) = worked?;
        Ok(tell(what, &worked, called.folder, called.common))
    })
}

/// Makes runs, and says what they are together.
fn made(
    engine: &Engine<'_>,
    called: &Called<'_>,
    progress: &mut Progress<'_>,
) -> Result<(&'static str, WorkSummary), Failure> {
    let Called { folder, part, common, limits, spending, answering } = *called;
    let disk = engine.disk.as_ref();
    let limits = limits.limits(common);
    let part = part.unwrap_or(Part::WHOLE);
    let task = Task { part, jobs: limits.jobs.get().min(engine.connections) };
    if is_sweep(disk, folder) {
        raise(engine, folder, spending)?;
        let worked = sweep::work(engine, folder, part, limits, &mut Watched(progress))?;
        return Ok(("sweep", worked));
    }
    if is_comparison(disk, folder) {
        return Ok(("comparison", arena::work(engine, folder, task, spending, answering, progress)?));
    }
    if is_check(disk, folder) {
        if spending.of_all()?.any() {
            return Err(no_budget());
        }
        return Ok(("check", systems::work(engine, folder, task, progress)?));
    }
    let what = format!(
        "{} holds no sweep, no comparison and no planned check; `polity sweep FILE --plan --out FOLDER`, and `polity compare` and \
         `polity systems check` with --plan, write the folder that workers share",
        folder.display()
    );
    Err(Failure::new(Exit::Folder, what))
}

/// Passes progress on.
struct Watched<'a, 'b>(&'a mut Progress<'b>);

impl WatchSweep for Watched<'_, '_> {
    fn progress(&mut self, done: usize, runs: usize) {
        (self.0)(done, runs);
    }
}

/// The error of limits for a check of claims.
pub(super) fn no_budget() -> Failure {
    Failure::new(
        Exit::Input,
        "the runs of a check have the budgets of their scenarios; --max-cost and the like cannot change them",
    )
}

/// Raises the budget of a sweep, if limits are given.
pub(super) fn raise(engine: &Engine<'_>, sweep: &Path, spending: Spending) -> Result<(), Failure> {
    let to = spending.of_all()?;
    match to.any() {
        true => Ok(sweep::raise(engine.disk.as_ref(), sweep, &to)?),
        false => Ok(()),
    }
}

/// Says what a worker did.
fn tell(what: &str, worked: &WorkSummary, folder: &Path, common: &Common) -> Exit {
    note(&format!("{} of {} have ended", worked.done, counted(worked.runs, "run")));
    if worked.held > 0 {
        note(&format!("{} are being made by other processes", worked.held));
    }
    if let Some(short) = &worked.short {
        note(&short_of(what, short));
    }
    let by_others = worked.done + worked.held == worked.runs;
    note(&match by_others {
        true => format!("when all workers have ended: polity resume {}", folder.display()),
        false => format!("stopped; the same command continues: polity work {}", folder.display()),
    });
    if common.json {
        print_line(&output::json(worked));
    }
    if by_others { Exit::Done } else { Exit::Stopped }
}

/// Why the budget of all runs lets no further one begin, and what to do.
pub(super) fn short_of(what: &str, short: &str) -> String {
    format!("the budget of the {what} is {short}; --max-cost, --max-calls and the like raise it")
}
