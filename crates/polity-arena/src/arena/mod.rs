//! Fair comparison of methods on the same items: what `polity eval` and `polity compare` do.
//!
//! Everything is runs. A method on a task is one ordinary run: started if its folder has none, continued if it was interrupted, read if
//! it has ended. A comparison is a folder of such runs, and its results are a fold of their tables. The same command on the same folder
//! continues wherever it was interrupted, and gives the same results in the end.

mod entrant;
mod equal;
mod files;
mod inspect;
mod request;
mod score;
mod sheet;
pub mod tables;
mod task;

pub use entrant::Entrant;
pub use equal::{Pilot, Trial, Unit};
pub use files::write;
pub use request::{ArenaRequest, LEAST_PILOT};
pub use score::{Duel, Entry, LEVEL, Score};
pub use sheet::{Ledger, Row, SOLVE, Sheet, Spent};
pub use tables::{COORDINATION, Grid};
pub(crate) use task::scenario_on;
pub use task::{Task, scenario_fault};

use polity_driver::drive::Watch;
use polity_driver::results;
use polity_driver::run::{Engine, Extent, Folder, Manifest, Prepared, RunStatus, Summary, claim_shared};
use polity_kernel::scenario::Budget;
use polity_store::DriveError;
use polity_store::disk::write_atomically;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use task::{SCENARIO, scenario_beside};

/// A use that differs from the allowance by more than this share gets a warning.
const UNLIKE: f64 = 0.25;

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

/// Why there is no result.
#[derive(Debug)]
pub enum Halt {
    /// A run was stopped, or a budget is used up; the same command continues it.
    Stopped(Box<Summary>),
    /// An error.
    Failed(DriveError),
}

impl<E: Into<DriveError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

/// The results of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Always [`RunStatus::Done`], since stopped runs are not compared.
    pub status: RunStatus,
    /// Its folder.
    pub folder: String,
    /// The task: the name of its file.
    pub task: String,
    /// The format of that file.
    pub shape: String,
    /// The model of all members.
    pub model: String,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Items.
    pub items: u32,
    /// Runs of each method.
    pub repeats: u32,
    /// Whether answers came from simulated models.
    pub simulated: bool,
    /// The methods, as they were named.
    pub methods: Vec<Score>,
    /// All pairs of them.
    pub compared: Vec<Duel>,
    /// What was measured to make budgets equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pilot: Option<Pilot>,
    /// The command that makes it again.
    #[serde(skip)]
    pub command: String,
    /// Answers to items, by method and repeat.
    #[serde(skip)]
    pub sheets: Vec<Vec<Sheet>>,
}

impl Comparison {
    /// Returns warnings about results that could mislead a reader.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let unlike = |score: &Score| {
            let part = score.of_allowance.filter(|part| !(1.0 - UNLIKE..=1.0 + UNLIKE).contains(part))?;
            Some(format!(
                "{} used {:.0} % of the allowance: its budget is not equal to that of the others",
                score.method,
                100.0 * part
            ))
        };
        let mut warnings: Vec<String> = self.methods.iter().filter_map(unlike).collect();
        let fitted = |score: &&Score| {
            self.pilot.iter().flat_map(|pilot| &pilot.trials).filter(|trial| trial.method == score.method).count() > 1
        };
        if self.methods.iter().filter(fitted).any(|score| unlike(score).is_some()) {
            warnings.push("a pilot with more items would come closer (--pilot)".into());
        }
        warnings
    }
}

/// The place of a comparison: a task, a request, and a folder.
pub struct Arena<'a> {
    engine: &'a Engine<'a>,
    task: &'a Task,
    wish: &'a ArenaRequest,
    witness: &'a mut dyn ArenaObserver,
    began: Instant,
    /// The paid cost of all runs so far: calls, tokens, dollars.
    paid: (u64, u64, f64),
}

impl<'a> Arena<'a> {
    /// Sets an arena up.
    pub fn new(
        engine: &'a Engine<'a>,
        task: &'a Task,
        wish: &'a ArenaRequest,
        witness: &'a mut dyn ArenaObserver,
    ) -> Self {
        Arena { engine, task, wish, witness, began: Instant::now(), paid: (0, 0, 0.0) }
    }

    /// Runs one method on the task. With one repeat, `out` is its run folder; otherwise it holds one for each seed.
    pub fn eval(&mut self, entrant: &Entrant, out: &Path) -> Result<(Score, Vec<Sheet>), Halt> {
        let count = self.task.count(self.wish.limit)?;
        if self.wish.repeats > 1 {
            claim_shared(self.engine.disk.as_ref(), out)?;
        }
        let folder = |seed: u64| if self.wish.repeats == 1 { out.into() } else { out.join(format!("seed-{seed}")) };
        self.score(entrant, count, &folder)
    }

    /// Returns every method of this build that can work on the task, and for each of the others why it cannot.
    ///
    /// Errors: those of the task and of the model.
    pub fn suitable(
        &self,
        members: Option<u32>,
        rounds: Option<u32>,
        out: &Path,
    ) -> Result<(Vec<Entrant>, Vec<String>), DriveError> {
        let count = self.task.count(self.wish.limit)?;
        let (mut suitable, mut others) = (Vec::new(), Vec::new());
        for card in self.engine.registry.methods() {
            let entrant = Entrant::read(card.name, members, rounds, self.engine.registry)?;
            let prepared = self.task.scenario(&entrant, self.wish, count, self.wish.seed, out)?;
            match self.engine.validate(&prepared, Extent::Whole) {
                Ok(_) => suitable.push(entrant),
                Err(DriveError::Scenario(why)) => others.push(format!("{}: {why}", entrant.label)),
                Err(error) => return Err(named(&entrant, error)),
            }
        }
        Ok((suitable, others))
    }

    /// Compares methods on the same items, with budgets equal in `equal` or with their usual teams.
    ///
    /// Errors: [`DriveError::Input`] for fewer than two methods and for a method that is named twice; those of runs.
    pub fn compare(&mut self, mut entrants: Vec<Entrant>, equal: Option<Unit>, out: &Path) -> Result<Comparison, Halt> {
        let twice = (1..entrants.len()).find(|i| entrants[..*i].iter().any(|other| other.label == entrants[*i].label));
        if let Some(i) = twice {
            return Err(DriveError::Input(format!("`{}` is named twice", entrants[i].label)).into());
        }
        if entrants.len() < 2 {
            let why = match equal {
                Some(_) => "--equal needs at least two methods: a single one has nothing to be equal to",
                None => "a comparison needs at least two methods; `polity eval` runs a single one",
            };
            return Err(DriveError::Input(why.into()).into());
        }
        let count = self.task.count(self.wish.limit)?;
        // Report an error in any of them before money is spent on another.
        for entrant in &entrants {
            let prepared = self.task.scenario(entrant, self.wish, count, self.wish.seed, out)?;
            self.engine.validate(&prepared, Extent::Whole).map_err(|error| named(entrant, error))?;
        }
        claim_shared(self.engine.disk.as_ref(), out)?;
        let pilot = equal.map(|unit| self.pilot(&mut entrants, unit, count, out)).transpose()?;
        let (mut methods, mut sheets) = (Vec::new(), Vec::new());
        for entrant in &entrants {
            let runs = out.join("runs");
            let folder = |seed: u64| match self.wish.repeats {
                1 => runs.join(entrant.slug()),
                _ => runs.join(format!("{}-{seed}", entrant.slug())),
            };
            let (mut score, own) = self.score(entrant, count, &folder)?;
            score.of_allowance = pilot.as_ref().map(|pilot| score.use_per_item(pilot.unit) / pilot.allowance);
            methods.push(score);
            sheets.push(own);
        }
        Ok(Comparison {
            status: RunStatus::Done,
            folder: out.display().to_string(),
            task: self.task.name(),
            shape: self.task.shape_word(),
            model: self.wish.model.clone(),
            seed: self.wish.seed,
            items: count,
            repeats: self.wish.repeats,
            simulated: methods.iter().any(|score| score.simulated),
            compared: score::duels(&methods),
            command: self.command(&entrants, equal),
            methods,
            pilot,
            sheets,
        })
    }

    fn command(&self, entrants: &[Entrant], equal: Option<Unit>) -> String {
        let ArenaRequest { model, limit, seed, repeats, pilot, replay, edits, .. } = self.wish;
        let mut words = vec!["polity compare".to_owned()];
        let sized = |entrant: &Entrant| entrant.sized && !entrant.label.contains('@');
        words.extend(entrants.iter().map(|entrant| match sized(entrant) {
            true => format!("{}@{}", entrant.label, entrant.members),
            false => entrant.label.clone(),
        }));
        words.push(format!("--task {} --model {model} --seed {seed}", self.task.path().display()));
        words.extend(limit.map(|limit| format!("--limit {limit}")));
        words.extend((*repeats > 1).then(|| format!("--repeats {repeats}")));
        words.extend(equal.map(|unit| format!("--equal {}", unit.flag())));
        words.extend(pilot.map(|pilot| format!("--pilot {pilot}")));
        words.extend(replay.then(|| "--replay".to_owned()));
        words.extend(edits.iter().map(|(path, value)| format!("-P '{path}={}'", value.to_json())));
        words.join(" ")
    }

    /// Measures what methods use, and gives each method without a requested size the size whose use comes closest to the most expensive
    /// method's.
    fn pilot(&mut self, entrants: &mut [Entrant], unit: Unit, count: u32, out: &Path) -> Result<Pilot, Halt> {
        let items = self.wish.pilot.unwrap_or((count / 10).max(LEAST_PILOT)).min(count);
        let (mut trials, mut spent) = (Vec::new(), Spent::default());
        let mut used = Vec::new();
        for entrant in entrants.iter() {
            used.push(self.measure(entrant, unit, items, out, &mut trials, &mut spent)?.unwrap_or_default());
        }
        let most = used.iter().copied().enumerate().reduce(|most, other| if other.1 > most.1 { other } else { most });
        let (setter, allowance) = most.unwrap_or_default();
        let set_by = entrants[setter].label.clone();
        if allowance <= 0.0 {
            let why = format!("no method uses any {}, so budgets cannot be made equal in them", unit.word());
            return Err(DriveError::Input(why).into());
        }
        for (entrant, used) in entrants.iter_mut().zip(used) {
            let usual = self.engine.registry.facts(entrant.method).map_or(1, |facts| facts.usual.members);
            // The size of a one-member method cannot change.
            if entrant.sized || usual < 2 || used <= 0.0 {
                continue;
            }
            let size = equal::fit((entrant.members, used), allowance, |members| {
                let other = Entrant { members, ..entrant.clone() };
                self.measure(&other, unit, items, out, &mut trials, &mut spent)
            })?;
            entrant.members = size;
        }
        Ok(Pilot { unit, items, allowance, set_by, trials, spent })
    }

    /// Returns a team's use per item of the pilot, or `None` if the method does not accept this size.
    fn measure(
        &mut self,
        entrant: &Entrant,
        unit: Unit,
        items: u32,
        out: &Path,
        trials: &mut Vec<Trial>,
        spent: &mut Spent,
    ) -> Result<Option<f64>, Halt> {
        let run = out.join("pilot").join(entrant.slug());
        let prepared = self.task.scenario(entrant, self.wish, items, self.wish.seed, &run)?;
        if self.engine.validate(&prepared, Extent::Whole).is_err() {
            return Ok(None);
        }
        let what = format!("pilot: {}, {} members, {items} items", entrant.label, entrant.members);
        let (sheet, _) = self.run(&what, entrant, &prepared, &run)?;
        let mut own = Spent::default();
        sheet.rows.iter().for_each(|row| own.add(&row.spent));
        let per_item = unit.of(&own) / f64::from(items);
        let (method, run) = (entrant.label.clone(), run.display().to_string());
        trials.push(Trial { method, members: entrant.members, per_item, run, digest: sheet.digest });
        spent.add(&own);
        Ok(Some(per_item))
    }

    fn score(
        &mut self,
        entrant: &Entrant,
        count: u32,
        folder: &dyn Fn(u64) -> PathBuf,
    ) -> Result<(Score, Vec<Sheet>), Halt> {
        let (mut sheets, mut runs, mut simulated) = (Vec::new(), Vec::new(), false);
        for repeat in 0..u64::from(self.wish.repeats) {
            let seed = self.wish.seed + repeat;
            let run = folder(seed);
            let prepared = self.task.scenario(entrant, self.wish, count, seed, &run)?;
            let what = format!("{}, {} members, {count} items, seed {seed}", entrant.label, entrant.members);
            let (sheet, summary) = self.run(&what, entrant, &prepared, &run)?;
            simulated |= summary.simulated;
            if self.wish.replay {
                self.replay(&what, &run)?;
            }
            sheets.push(sheet);
            runs.push(run.display().to_string());
        }
        let mut score = Score::of(entrant, &sheets, runs, simulated);
        score.replayed = self.wish.replay.then_some(RunStatus::Same);
        Ok((score, sheets))
    }

    /// Recomputes a finished run from its journal: every request that it makes again and every digest must be those recorded.
    fn replay(&mut self, what: &str, run: &Path) -> Result<(), Halt> {
        let engine = self.engine;
        let replayed = self.witness.see(&format!("replay: {what}"), &mut |watch| engine.replay(run, watch))?;
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
        let engine = Engine { budget: self.left(), ..self.engine.clone() };
        let summary = self.witness.see(what, &mut |watch| match begun {
            true => engine.resume(out, watch),
            false => engine.run(prepared, out, watch),
        });
        let summary = summary.map_err(|error| named(entrant, error))?;
        let totals = &summary.totals;
        self.paid.0 += totals.calls;
        self.paid.1 += totals.tokens_in + totals.tokens_out;
        self.paid.2 += totals.cost_usd;
        if summary.status != RunStatus::Done {
            return Err(Halt::Stopped(Box::new(summary)));
        }
        let run = results::of_run(disk.as_ref(), out)?;
        self.witness.ended(&run)?;
        let results::Run { manifest, tables, .. } = run;
        let path = out.join(SCENARIO);
        write_atomically(disk.as_ref(), &path, scenario_beside(&manifest)?.as_bytes())
            .map_err(DriveError::disk(&path))?;
        let quantities = self.engine.registry.facts(entrant.method).map_or(&[][..], |facts| facts.quantities);
        Ok((Sheet::read(&tables, &summary.digest, &manifest.scenario, quantities)?, summary))
    }

    /// Returns the remaining budget of the next run: the requested one, less the use of all earlier runs in this folder.
    fn left(&self) -> Budget {
        let Budget { cost_usd, tokens, calls, seconds, .. } = self.wish.budget;
        Budget {
            cost_usd: cost_usd.map(|most| (most - self.paid.2).max(0.0)),
            tokens: tokens.map(|most| most.saturating_sub(self.paid.1)),
            // A run that reached its hard limit continues only with another one. If none is requested any more, set it out of reach.
            calls: Some(calls.map_or(u64::MAX, |most| most.saturating_sub(self.paid.0))),
            seconds: seconds.map(|most| (most - self.began.elapsed().as_secs_f64()).max(0.0)),
            ..Budget::default()
        }
    }
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
fn differs(manifest: &Manifest, prepared: &Prepared) -> Option<String> {
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
