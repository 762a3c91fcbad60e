//! Fair comparison of methods on the same items: what `polity eval` and `polity compare` do.
//!
//! Everything is runs. A method on a task, with a model, is one ordinary run: started if its folder has none, continued if it was
//! interrupted, read if it has ended. A comparison is a folder of such runs, and its results are a fold of their tables. The folder records
//! what was asked for ([`ArenaRequest`]): the same command on the same folder, or `polity resume`, continues wherever it was interrupted, and
//! gives the same results in the end.

mod comparison;
mod entrant;
mod equal;
mod files;
mod inspect;
mod members;
mod request;
mod score;
mod sheet;
pub mod tables;
mod task;

pub use comparison::{Comparison, TaskOf};
pub use entrant::Entrant;
pub use equal::{Allowance, Pilot, Trial, Unit};
pub use files::{report_of, write};
pub use members::{Member, is_planned, members, planned_runs};
pub use polity_driver::comparison::is_comparison;
pub use request::{ALL, ArenaRequest, Asked, LEAST_PILOT, read_methods};
pub use score::{Despite, Duel, Entry, LEVEL, Overall, Score};
pub use sheet::{Ledger, Row, SOLVE, Sheet, Spent};
pub use tables::{COORDINATION, Grid};
pub(crate) use task::scenario_on;
pub use task::{Task, scenario_fault};

use entrant::folder_name;
use polity_driver::comparison::{COMPARISON_FILE, RUNS};
use polity_driver::drive::{Totals, Unwatched, Watch};
use polity_driver::results;
use polity_driver::run::{Engine, Extent, Folder, Manifest, Prepared, RunStatus, Summary, claim_shared, quoted};
use polity_driver::workers::{
    Allowance as WorkersAllowance, PlannedRun, PlannedRuns, Planning, Progress, Task as Tasks, WorkSummary, planned,
    planned_otherwise, sharing,
};
use polity_kernel::scenario::Budget;
use polity_kernel::tree::{Node, TreeError};
use polity_store::DriveError;
use polity_store::disk::write_atomically;
use polity_store::printable::counted;
use request::{Record, as_text};
use std::path::{Path, PathBuf};
use std::time::Instant;
use task::{SCENARIO, scenario_beside};

/// What its runs are together.
const COMPARISON: &str = "comparison";

/// The folder of the runs of pilots.
const PILOT: &str = "pilot";

/// Observes the runs of a comparison.
pub trait ArenaObserver {
    /// Starts or continues a run. `what` names it.
    fn see(
        &mut self,
        what: &str,
        run: &mut dyn FnMut(&mut dyn Watch) -> Result<Summary, DriveError>,
    ) -> Result<Summary, DriveError>;

    /// Called when a run has ended.
    fn ended(&mut self, run: &results::Run<'_>) -> Result<(), DriveError>;
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl ArenaObserver for Unobserved {
    fn see(
        &mut self,
        _: &str,
        run: &mut dyn FnMut(&mut dyn Watch) -> Result<Summary, DriveError>,
    ) -> Result<Summary, DriveError> {
        run(&mut Unwatched)
    }

    fn ended(&mut self, _: &results::Run<'_>) -> Result<(), DriveError> {
        Ok(())
    }
}

/// Why there is no result.
#[derive(Debug)]
pub enum Halt {
    /// A run was stopped, or a budget is used up; `polity resume` continues it.
    Stopped(Box<Summary>),
    /// The budget that workers share lets no further run begin: the budget, and why.
    Short(String),
    /// An error.
    Failed(DriveError),
}

impl<E: Into<DriveError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

/// What happens to runs that have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// They are started or continued.
    Run,
    /// None may be left.
    Read,
}

/// A comparison at work: a request, its tasks and participants, and a folder.
pub struct Arena<'a> {
    engine: &'a Engine<'a>,
    wish: &'a ArenaRequest,
    tasks: Vec<Task>,
    entrants: Vec<Entrant>,
    left_out: Vec<String>,
    out: PathBuf,
    work: Work,
    began: Instant,
    /// What all runs so far have paid.
    paid: Totals,
    /// The plan, if workers share its runs.
    plan: Option<Plan<'a>>,
}

/// How the runs of a comparison are shared.
struct Plan<'a> {
    allowance: Option<WorkersAllowance<'a>>,
}

/// A task and a model: one square of the table.
#[derive(Clone, Copy)]
struct Square<'a> {
    task: &'a Task,
    model: &'a str,
}

impl<'a> Arena<'a> {
    /// Reads the tasks and the participants of a request, and checks that all can be run: nothing is paid before. `out` is the
    /// comparison's folder.
    ///
    /// # Errors
    /// [`DriveError::Input`] for wrong requests, unknown methods and files that cannot be read; those of scenarios and of models;
    /// [`DriveError::Model`] if budgets are to be equal in dollars and prices are not known.
    pub fn open(engine: &'a Engine<'a>, wish: &'a ArenaRequest, out: &Path) -> Result<Self, DriveError> {
        Arena::open_to(Work::Run, engine, wish, out)
    }

    fn open_to(work: Work, engine: &'a Engine<'a>, wish: &'a ArenaRequest, out: &Path) -> Result<Self, DriveError> {
        // First, since a wrong name can be reported without any file.
        let entrants = read_methods(wish.asked, &wish.methods, wish.members, wish.rounds, engine.registry)?;
        let tasks = wish.tasks.iter().map(|task| Task::read(&wish.path_of(task))).collect::<Result<Vec<_>, _>>()?;
        let mut arena = Arena {
            engine,
            wish,
            tasks,
            entrants: Vec::new(),
            left_out: Vec::new(),
            out: out.to_path_buf(),
            work,
            began: Instant::now(),
            paid: Totals::default(),
            plan: None,
        };
        differ(wish.models.iter().map(|model| (model.clone(), folder_name(model))), "--model")?;
        differ(arena.tasks.iter().map(|task| (task.path().display().to_string(), task.folder())), "--task")?;
        match entrants {
            None => arena.take_all()?,
            Some(entrants) => {
                arena.entrants = entrants;
                arena.check()?;
            }
        }
        Ok(arena)
    }

    /// Returns the request that a comparison's folder records.
    ///
    /// # Errors
    /// [`DriveError::Folder`] for a record that cannot be read, [`DriveError::Disk`] for a folder without one.
    pub fn recorded(engine: &Engine<'_>, dir: &Path) -> Result<ArenaRequest, DriveError> {
        Record::read(engine.disk.as_ref(), dir)?.request(dir)
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The methods that cannot work on the tasks, each with the reason, if all methods were asked for.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Takes every method of this build that can work on the tasks.
    fn take_all(&mut self) -> Result<(), DriveError> {
        for card in self.engine.registry.methods() {
            let entrant = Entrant::read(card.name, self.wish.members, self.wish.rounds, self.engine.registry)?;
            let checked = self.squares().into_iter().try_for_each(|square| self.validate(&entrant, square));
            match checked {
                Ok(()) => self.entrants.push(entrant),
                Err(DriveError::Scenario(why)) => self.left_out.push(format!("{}: {why}", entrant.label)),
                Err(error) => return Err(named(&entrant, error)),
            }
        }
        self.check_number()
    }

    /// Reports an error in any participant before money is spent on another.
    fn check(&self) -> Result<(), DriveError> {
        for (i, entrant) in self.entrants.iter().enumerate() {
            if let Some(why) = self.entrants[..i].iter().find_map(|other| entrant.clash(other)) {
                return Err(DriveError::Input(why));
            }
        }
        self.check_number()?;
        for square in self.squares() {
            for entrant in &self.entrants {
                self.validate(entrant, square).map_err(|error| self.explained(entrant, square, error))?;
            }
        }
        Ok(())
    }

    /// Adds the method's name to an error. If a parameter of all methods is unknown to this one, also how to give it to another method
    /// alone.
    fn explained(&self, entrant: &Entrant, square: Square<'_>, error: DriveError) -> DriveError {
        let edit = match &error {
            DriveError::Scenario(TreeError { message, path, .. }) if message.starts_with("unknown key") => {
                let within = format!("{path}.");
                let sets = |(at, _): &&(String, Node)| at == path || at.starts_with(&within);
                // The method's own parameters come last, and are named with it.
                let own = entrant.set.iter().any(|edit| sets(&edit));
                self.wish.edits.iter().find(sets).filter(|_| !own && self.entrants.len() > 1)
            }
            _ => None,
        };
        let edit = edit.map(as_text);
        let Some(parameter) = edit.as_deref().and_then(|edit| edit.strip_prefix("method.")) else {
            return named(entrant, error);
        };
        let knows = |other: &&Entrant| self.validate(other, square).is_ok();
        let method = self.entrants.iter().find(knows).map_or("METHOD", |other| other.method);
        DriveError::Input(format!(
            "{}. -P holds for every method; one method alone is changed after its name: {}",
            named(entrant, error),
            quoted(&format!("{method}:{parameter}"))
        ))
    }

    fn check_number(&self) -> Result<(), DriveError> {
        let wrong = |what: &str| Err(DriveError::Input(what.into()));
        match (self.wish.asked, self.wish.equal, self.entrants.len(), self.squares().len()) {
            (_, _, _, 0) => wrong("no model or no task is given; for instance --model sim/medium --task FILE"),
            (_, _, 0, _) => wrong("there is no method to run: none is given, or none can work on the items"),
            (Asked::Compare, Some(Allowance { per_item: None, .. }), ..=1, _) => wrong(
                "--equal needs at least two methods: a single one has nothing to be equal to. (An amount needs none: \
                 --equal tokens=3000)",
            ),
            (Asked::Compare, _, ..=1, 1) => {
                wrong("a comparison needs at least two methods, models or tasks; `polity eval` runs a single method")
            }
            _ => Ok(()),
        }
    }

    fn validate(&self, entrant: &Entrant, square: Square<'_>) -> Result<(), DriveError> {
        let count = square.task.count(self.wish.limit)?;
        let prepared = self.scenario(entrant, square, count, self.wish.seed, &self.out)?;
        self.engine.validate(&prepared, Extent::Whole)?;
        match self.wish.equal {
            Some(Allowance { unit: Unit::Usd, .. }) if self.work == Work::Run => self.engine.check_dollars(&prepared),
            _ => Ok(()),
        }
    }

    fn scenario(
        &self,
        entrant: &Entrant,
        square: Square<'_>,
        count: u32,
        seed: u64,
        run: &Path,
    ) -> Result<Prepared, DriveError> {
        square.task.scenario(
            entrant,
            square.model,
            (self.wish.edits.as_slice(), self.wish.from.as_path()),
            (count, seed),
            run,
        )
    }

    /// Every task with every model, in order.
    fn squares(&self) -> Vec<Square<'_>> {
        let of = |task| self.wish.models.iter().map(move |model| Square { task, model: model.as_str() });
        self.tasks.iter().flat_map(of).collect()
    }

    /// Runs the only method on the only task, once: the comparison's folder is the run folder. Also returns why no item was solved, if that
    /// is so.
    ///
    /// # Errors
    /// See [`Halt`].
    pub fn eval(mut self, witness: &mut dyn ArenaObserver) -> Result<(Score, Option<String>), Halt> {
        let (tasks, entrants) = (std::mem::take(&mut self.tasks), std::mem::take(&mut self.entrants));
        let (Some(task), Some(entrant), Some(model)) = (tasks.first(), entrants.first(), self.wish.models.first())
        else {
            return Err(DriveError::Input("no method, task or model is given".into()).into());
        };
        let out = self.out.clone();
        let (mut score, sheets) =
            self.score(entrant, Square { task, model: model.as_str() }, &|_| out.clone(), "", witness)?;
        score.run = out.display().to_string();
        score.runs = vec![score.run.clone()];
        let unsolved = comparison::unsolved(std::slice::from_ref(&score), &[sheets], &[self.stands_in(model)]);
        Ok((score, unsolved))
    }

    /// Makes all runs of the comparison that have not ended, and compares.
    ///
    /// # Errors
    /// See [`Halt`].
    pub fn compare(mut self, witness: &mut dyn ArenaObserver) -> Result<Comparison, Halt> {
        let disk = self.engine.disk.clone();
        claim_shared(disk.as_ref(), &self.out)?;
        self.plan = self.planned()?;
        if self.plan.is_none() {
            Record::of(self.wish, &self.entrants, &self.out).write(disk.as_ref(), &self.out)?;
        }
        self.fold(witness)
    }

    /// Records the request and makes no run: workers make them ([`Arena::work`]). A folder in which the same is planned stays as it is.
    ///
    /// # Errors
    /// [`DriveError::Input`] for budgets that are made equal, and for runs without a limit of their own if there is one for all;
    /// [`DriveError::Folder`] for a folder with another comparison.
    pub fn plan(&self) -> Result<Planning, DriveError> {
        if self.wish.equal.is_some() {
            return Err(DriveError::Input(
                "workers cannot share this comparison: with --equal a pilot decides the sizes of teams; `polity compare` makes it in \
                 one process, or name the sizes (sc@8) and leave --equal out"
                    .into(),
            ));
        }
        let (disk, out) = (self.engine.disk.as_ref(), self.out.as_path());
        let mut record = Record::of(self.wish, &self.entrants, out);
        record.planned = true;
        let runs = self.planned_runs()?;
        let allowance = self.allowance(&record);
        PlannedRuns { folder: out, runs: &runs, allowance: allowance.as_ref(), says: COMPARISON_FILE }
            .check_budget(&self.unbounded())?;
        let there = || match Record::there(disk, out)? {
            None => Ok(false),
            Some(there) => match record.differs_from(&there) {
                Some(why) => Err(planned_otherwise(out, "comparison", &why)),
                None if there.planned && !record.same_budget(&there) => {
                    let why = format!(
                        "its budget differs; `polity work {}` with --max-cost, --max-calls and the like raises it",
                        out.display()
                    );
                    Err(planned_otherwise(out, "comparison", &why))
                }
                None => Ok(there.planned),
            },
        };
        let write = || {
            claim_shared(disk, out)?;
            record.write(disk, out)
        };
        Ok(Planning { runs: runs.len(), already: planned(&there, &write)? })
    }

    /// Makes the missing runs of one part of a planned comparison.
    ///
    /// # Errors
    /// [`DriveError::Input`] if the comparison was not planned; those of runs.
    pub fn work(&self, task: Tasks, progress: &mut Progress<'_>) -> Result<WorkSummary, DriveError> {
        let Some(plan) = self.planned()? else {
            return Err(DriveError::Input(format!(
                "the comparison in {} is that of one process: `polity resume {}` continues it. For workers, give its command again \
                 with --plan",
                self.out.display(),
                self.out.display()
            )));
        };
        let runs = self.planned_runs()?;
        PlannedRuns { folder: &self.out, runs: &runs, allowance: plan.allowance.as_ref(), says: COMPARISON_FILE }.work(
            &self.unbounded(),
            task,
            progress,
        )
    }

    /// The plan in its folder, if there is one, with what the request adds to its budget.
    fn planned(&self) -> Result<Option<Plan<'a>>, DriveError> {
        let disk = self.engine.disk.as_ref();
        let Some(there) = Record::there(disk, &self.out)?.filter(|record| record.planned) else { return Ok(None) };
        let own = Record::of(self.wish, &self.entrants, &self.out);
        if let Some(why) = own.differs_from(&there) {
            return Err(planned_otherwise(&self.out, "comparison", &why));
        }
        let allowance = self.allowance(&there);
        let more = own.raised_from(&there);
        if more.any() {
            WorkersAllowance::new(disk, &self.out, COMPARISON, &there.limits().unwrap_or_default()).raise(&more)?;
        }
        Ok(Some(Plan { allowance }))
    }

    fn allowance(&self, record: &Record) -> Option<WorkersAllowance<'a>> {
        let disk = self.engine.disk.as_ref();
        record.limits().map(|limits| WorkersAllowance::new(disk, &self.out, COMPARISON, &limits))
    }

    /// The engine of planned runs: what each may spend is in its scenario.
    fn unbounded(&self) -> Engine<'a> {
        let mut engine = Engine { budget: Budget::default(), ..self.engine.clone() };
        engine.outside.batch = engine.outside.batch.or(self.wish.batch);
        engine
    }

    /// All runs, in their order.
    fn planned_runs(&self) -> Result<Vec<PlannedRun>, DriveError> {
        let mut runs = Vec::new();
        for square in self.squares() {
            let count = square.task.count(self.wish.limit)?;
            for (group, entrant) in self.entrants.iter().enumerate() {
                for repeat in 0..u64::from(self.wish.repeats) {
                    let seed = self.wish.seed + repeat;
                    let dir = self.folder_of(RUNS, square).join(entrant.slug()).join(seed.to_string());
                    let prepared = self.scenario(entrant, square, count, seed, &dir)?;
                    runs.push(PlannedRun { name: self.below(&dir), prepared, group });
                }
            }
        }
        Ok(runs)
    }

    /// Compares the runs of a comparison that has ended. Nothing is run or asked.
    ///
    /// # Errors
    /// [`DriveError::Folder`] if a run has not ended.
    pub fn read(engine: &'a Engine<'a>, wish: &'a ArenaRequest, dir: &Path) -> Result<Comparison, DriveError> {
        Arena::open_to(Work::Read, engine, wish, dir)?.fold(&mut Unobserved).map_err(|halt| match halt {
            Halt::Failed(error) => error,
            Halt::Stopped(summary) => unended(dir, Path::new(&summary.run)),
            Halt::Short(_) => unended(dir, dir),
        })
    }

    fn fold(mut self, witness: &mut dyn ArenaObserver) -> Result<Comparison, Halt> {
        // Both are read-only from here, while the sums change.
        let (tasks, models) = (std::mem::take(&mut self.tasks), self.wish.models.clone());
        let (mut methods, mut sheets, mut pilots) = (Vec::new(), Vec::new(), Vec::new());
        for square in
            tasks.iter().flat_map(|task| models.iter().map(move |model| Square { task, model: model.as_str() }))
        {
            let mut entrants = self.entrants.clone();
            let several = tasks.len() * models.len() > 1;
            let place = if several { format!(", {}, {}", square.task.name(), square.model) } else { String::new() };
            let pilot = self.wish.equal.map(|allowance| self.pilot(&mut entrants, allowance, square, &place, witness));
            let pilot = pilot.transpose()?;
            for entrant in &entrants {
                let folder = self.folder_of(RUNS, square).join(entrant.slug());
                let (mut score, own) =
                    self.score(entrant, square, &|seed| folder.join(seed.to_string()), &place, witness)?;
                score.of_allowance =
                    pilot.as_ref().and_then(|pilot| Some(score.use_per_item(pilot.unit)? / pilot.allowance));
                methods.push(score);
                sheets.push(own);
            }
            pilots.extend(pilot);
        }
        let counts = tasks.iter().map(|task| {
            let items = task.count(self.wish.limit)?;
            Ok(TaskOf { task: task.name(), shape: task.shape_word(), items })
        });
        let of_tasks = counts.collect::<Result<Vec<_>, DriveError>>()?;
        let stand_in = methods.iter().map(|score| self.stands_in(&score.model)).collect::<Vec<bool>>();
        let compared = score::duels(&methods);
        Ok(Comparison {
            status: RunStatus::Done,
            folder: self.out.display().to_string(),
            models,
            seed: self.wish.seed,
            items: of_tasks.iter().map(|task| task.items).sum(),
            repeats: self.wish.repeats,
            simulated: methods.iter().any(|score| score.simulated),
            overall: score::overall(&methods, &compared, of_tasks.len()),
            tasks: of_tasks,
            compared,
            command: self.wish.command(&self.entrants),
            unsolved: comparison::unsolved(&methods, &sheets, &stand_in),
            methods,
            pilots,
            sheets,
        })
    }

    /// Whether the replies of a model may be those of the mock server: it is asked over a wire.
    fn stands_in(&self, model: &str) -> bool {
        self.engine.providers.for_model(model).is_ok_and(|provider| !provider.simulated())
    }

    /// The folder of the runs of a task with a model, in `part` of the comparison.
    fn folder_of(&self, part: &str, square: Square<'_>) -> PathBuf {
        self.out.join(part).join(folder_name(square.model)).join(square.task.folder())
    }

    /// Measures what methods use, and gives each method without a requested size the size whose use comes closest to the allowance: the
    /// stated one, else the most expensive method's.
    fn pilot(
        &mut self,
        entrants: &mut [Entrant],
        allowance: Allowance,
        square: Square<'_>,
        place: &str,
        witness: &mut dyn ArenaObserver,
    ) -> Result<Pilot, Halt> {
        let (unit, count) = (allowance.unit, square.task.count(self.wish.limit)?);
        let items = self.wish.pilot.unwrap_or((count / 10).max(LEAST_PILOT)).min(count);
        let (task, model) = (square.task.name(), square.model.to_owned());
        let (trials, spent) = (Vec::new(), Spent::default());
        let mut pilot = Pilot { task, model, unit, items, allowance: 0.0, set_by: None, trials, spent };
        let mut used = Vec::new();
        for entrant in entrants.iter() {
            used.push(self.measure(entrant, square, place, &mut pilot, witness)?.unwrap_or_default());
        }
        let most = used.iter().copied().enumerate().reduce(|most, other| if other.1 > most.1 { other } else { most });
        let (setter, dearest) = most.unwrap_or_default();
        if dearest <= 0.0 {
            let why = format!("no method uses any {}, so budgets cannot be made equal in them", unit.word());
            return Err(DriveError::Input(why).into());
        }
        if allowance.per_item.is_none() {
            pilot.set_by = entrants.get(setter).map(|entrant| entrant.label.clone());
        }
        pilot.allowance = allowance.per_item.unwrap_or(dearest);
        for (entrant, used) in entrants.iter_mut().zip(used) {
            let usual = self.engine.registry.facts(entrant.method).map_or(1, |facts| facts.usual.members);
            // The size of a one-member method cannot change.
            if entrant.sized || usual < 2 || used <= 0.0 {
                continue;
            }
            let size = equal::fit((entrant.members, used), pilot.allowance, |members| {
                let other = Entrant { members, ..entrant.clone() };
                self.measure(&other, square, place, &mut pilot, witness)
            })?;
            entrant.members = size;
        }
        Ok(pilot)
    }

    /// Returns a team's use per item of the pilot, or `None` if the method does not accept this size.
    fn measure(
        &mut self,
        entrant: &Entrant,
        square: Square<'_>,
        place: &str,
        pilot: &mut Pilot,
        witness: &mut dyn ArenaObserver,
    ) -> Result<Option<f64>, Halt> {
        let run = self.folder_of(PILOT, square).join(entrant.slug());
        let items = pilot.items;
        let prepared = self.scenario(entrant, square, items, self.wish.seed, &run)?;
        if self.engine.validate(&prepared, Extent::Whole).is_err() {
            return Ok(None);
        }
        let what = format!(
            "pilot: {}, {}, {}{place}",
            entrant.label,
            counted(entrant.members, "member"),
            counted(items, "item")
        );
        let (sheet, _) = self.run(&what, entrant, &prepared, &run, witness)?;
        let mut own = Spent::default();
        sheet.rows.iter().for_each(|row| own.add(&row.spent));
        let Some(used) = pilot.unit.of(&own) else {
            let why = format!("{}: its dollars are not known, so budgets cannot be made equal in them", entrant.label);
            return Err(DriveError::Model(why).into());
        };
        let per_item = used / f64::from(items);
        let (method, run) = (entrant.label.clone(), self.below(&run));
        pilot.trials.push(Trial { method, members: entrant.members, per_item, run, digest: sheet.digest });
        pilot.spent.add(&own);
        Ok(Some(per_item))
    }

    /// A run's folder from that of the comparison.
    fn below(&self, run: &Path) -> String {
        let below = run.strip_prefix(&self.out).unwrap_or(run);
        below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Makes the runs of a method on a task with a model, and sums them up.
    fn score(
        &mut self,
        entrant: &Entrant,
        square: Square<'_>,
        folder: &dyn Fn(u64) -> PathBuf,
        place: &str,
        witness: &mut dyn ArenaObserver,
    ) -> Result<(Score, Vec<Sheet>), Halt> {
        let count = square.task.count(self.wish.limit)?;
        let (mut sheets, mut runs, mut simulated) = (Vec::new(), Vec::new(), false);
        for repeat in 0..u64::from(self.wish.repeats) {
            let seed = self.wish.seed + repeat;
            let run = folder(seed);
            let prepared = self.scenario(entrant, square, count, seed, &run)?;
            let what = format!(
                "{}, {}, {}{place}, seed {seed}",
                entrant.label,
                counted(entrant.members, "member"),
                counted(count, "item")
            );
            let (sheet, summary) = self.run(&what, entrant, &prepared, &run, witness)?;
            simulated |= summary.simulated;
            if self.wish.replay && self.work == Work::Run {
                self.replay(&what, &run, witness)?;
            }
            sheets.push(sheet);
            runs.push(self.below(&run));
        }
        let place = (square.task.name(), square.model);
        let mut score = Score::of(entrant, (&place.0, place.1), &sheets, runs, simulated);
        // Runs that are only read were replayed before the comparison ended.
        score.replayed = self.wish.replay.then_some(RunStatus::Same);
        Ok((score, sheets))
    }

    /// Recomputes a finished run from its journal: every request that it makes again and every digest must be those recorded.
    fn replay(&mut self, what: &str, run: &Path, witness: &mut dyn ArenaObserver) -> Result<(), Halt> {
        let engine = self.engine;
        let replayed = witness.see(&format!("replay: {what}"), &mut |watch| engine.replay(run, watch))?;
        match replayed.first_difference.flatten() {
            None => Ok(()),
            Some(round) => {
                let what = "its trace cannot be trusted, so the methods are not compared";
                let message = format!("the replay of {} differs from round {round} on; {what}", run.display());
                Err(DriveError::Folder(message).into())
            }
        }
    }

    /// Starts or continues a run, unless it has ended, and reads its results.
    fn run(
        &mut self,
        what: &str,
        entrant: &Entrant,
        prepared: &Prepared,
        out: &Path,
        witness: &mut dyn ArenaObserver,
    ) -> Result<(Sheet, Summary), Halt> {
        let disk = self.engine.disk.clone();
        let path = out.join("manifest.json");
        let begun = disk.exists(&path).map_err(DriveError::disk(&path))?;
        if begun {
            let manifest = Folder::read(disk.clone(), out)?.manifest()?;
            if let Some(why) = differs(&manifest, prepared) {
                let message = format!("{} holds another evaluation: {why}. Choose another --out", out.display());
                return Err(DriveError::Input(message).into());
            }
        }
        let (name, mut engine) = (self.below(out), self.unbounded());
        match &self.plan {
            None => engine.budget = self.left(),
            Some(Plan { allowance }) => {
                engine = sharing(&engine, &self.out);
                if let Some(allowance) = allowance
                    && !allowance.begin(&name, prepared, &engine.budget)?
                {
                    return Err(Halt::Short(allowance.short().unwrap_or_default()));
                }
                engine.budget.seconds = self.left().seconds;
            }
        }
        let summary = match self.work {
            Work::Read if begun => engine.summed_up(out),
            Work::Read => return Err(unended(&self.out, out).into()),
            Work::Run => witness.see(what, &mut |watch| match begun {
                true => engine.resume(out, watch),
                false => engine.run(prepared, out, watch),
            }),
        };
        let summary = summary.map_err(|error| named(entrant, error))?;
        self.paid.add(&summary.totals);
        if summary.status != RunStatus::Done {
            return Err(Halt::Stopped(Box::new(summary)));
        }
        if let Some(Plan { allowance: Some(allowance) }) = &self.plan {
            allowance.settle(&name, &summary.totals)?;
        }
        let run = results::of_run(disk.as_ref(), out)?;
        witness.ended(&run)?;
        let results::Run { manifest, tables, .. } = run;
        let path = out.join(SCENARIO);
        write_atomically(disk.as_ref(), &path, scenario_beside(&manifest)?.as_bytes())
            .map_err(DriveError::disk(&path))?;
        let quantities = self.engine.registry.facts(entrant.method).map_or(&[][..], |facts| facts.quantities);
        let priced = |model: &str| self.engine.knows_price(&manifest, model);
        Ok((Sheet::read(&tables, &summary.digest, &manifest, quantities, &priced)?, summary))
    }

    fn left(&self) -> Budget {
        remaining(&self.wish.budget, &self.paid, self.began)
    }
}

/// Returns the remaining budget of the next of several runs: that of all, less what earlier ones have used. `began`: when the first one
/// began.
pub(crate) fn remaining(all: &Budget, paid: &Totals, began: Instant) -> Budget {
    let Budget { cost_usd, tokens, calls, requests, tool_calls, seconds, .. } = *all;
    let rest = |limit: Option<u64>, used: u64| limit.map(|most| most.saturating_sub(used));
    Budget {
        cost_usd: cost_usd.map(|most| (most - paid.cost_usd).max(0.0)),
        tokens: rest(tokens, paid.tokens_in + paid.tokens_out),
        // A run that reached its hard limit continues only with another one. If none is requested any more, set it out of reach.
        calls: Some(calls.map_or(u64::MAX, |most| most.saturating_sub(paid.calls))),
        requests: rest(requests, paid.requests),
        tool_calls: rest(tool_calls, paid.tools),
        seconds: seconds.map(|most| (most - began.elapsed().as_secs_f64()).max(0.0)),
        ..Budget::default()
    }
}

/// Refuses names that occur twice, or whose folders would.
fn differ(names: impl Iterator<Item = (String, String)>, flag: &str) -> Result<(), DriveError> {
    let mut seen: Vec<(String, String)> = Vec::new();
    for (name, folder) in names {
        if let Some((other, _)) = seen.iter().find(|seen| seen.1 == folder) {
            return Err(DriveError::Input(match *other == name {
                true => format!("{flag} {name} is given twice"),
                false => format!(
                    "{flag} {other} and {flag} {name} would have the same folder, `{folder}`; rename one of the two"
                ),
            }));
        }
        seen.push((name, folder));
    }
    Ok(())
}

/// The error of a comparison that is to be read before it has ended.
fn unended(dir: &Path, run: &Path) -> DriveError {
    DriveError::Folder(format!(
        "the comparison in {} has not ended ({} is not complete); `polity resume {}` continues it",
        dir.display(),
        run.strip_prefix(dir).unwrap_or(run).display(),
        dir.display()
    ))
}

/// Adds the method's name to an error that names no place.
fn named(entrant: &Entrant, error: DriveError) -> DriveError {
    match error {
        DriveError::Scenario(tree) => DriveError::Input(format!("{}: {tree}", entrant.label)),
        DriveError::Model(why) => DriveError::Model(format!("{}: {why}", entrant.label)),
        other => other,
    }
}

/// Returns the first difference between an existing run and the requested one.
pub(crate) fn differs(manifest: &Manifest, prepared: &Prepared) -> Option<String> {
    // As it reads back from a file.
    let wanted = serde_json::from_str::<serde_json::Value>(&prepared.tree.to_json().to_string()).unwrap_or_default();
    // The name is derived from the others.
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let all = value.as_object().into_iter().flat_map(|map| map.keys());
        all.filter(|key| *key != "name").cloned().collect()
    };
    let absent = serde_json::Value::Null;
    for key in keys(&manifest.scenario).into_iter().chain(keys(&wanted)) {
        let (there, here) = (manifest.scenario.get(&key).unwrap_or(&absent), wanted.get(&key).unwrap_or(&absent));
        if there != here {
            return Some(format!("its `{key}` is {there}, not {here}"));
        }
    }
    let other = prepared
        .input_digests()
        .into_iter()
        .find(|(path, digest)| manifest.inputs.iter().any(|entry| entry.path == *path && entry.digest != *digest));
    other.map(|(path, _)| format!("{path} has changed since"))
}
