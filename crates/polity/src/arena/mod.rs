//! Methods at work on the same items, fairly compared: what `polity eval` and `polity compare` do.
//!
//! Everything is runs. A method on a task is one ordinary run: begun where its folder holds none, gone on with where it was interrupted,
//! read where it has ended. A comparison is a folder of such runs, and what it says is a fold of their tables: the same command on the same
//! folder goes on wherever it was left, and says the same in the end.

mod entrant;
mod equal;
mod files;
mod inspect;
mod score;
mod sheet;
pub mod tables;
mod task;

pub use entrant::Entrant;
pub use equal::{Pilot, Trial, Unit};
pub use files::write;
pub use score::{Duel, Entry, LEVEL, Score};
pub use sheet::{Ledger, Row, SOLVE, Sheet, Spent};
pub use tables::{COORDINATION, Grid};
pub use task::{Task, scenario_fault};

use polity_driver::DriveError;
use polity_driver::disk::write_atomically;
use polity_driver::drive::Watch;
use polity_driver::results;
use polity_driver::run::{Engine, Folder, Manifest, Prepared, RunStatus, Summary, claim_shared};
use polity_kernel::scenario::Budget;
use polity_kernel::tree::Node;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use task::{SCENARIO, scenario_beside};

/// Items of a pilot at least, where nobody said how many.
pub const LEAST_PILOT: u32 = 5;

/// A use that is further from the allowance than this part of it is told of.
const UNLIKE: f64 = 0.25;

/// What is asked for, whichever method it is.
#[derive(Clone, Debug)]
pub struct Wish {
    /// `provider/model` of all members.
    pub model: String,
    /// Items: the first so many; without it all.
    pub limit: Option<u32>,
    /// Seed of the first repeat; each has one more than the one before.
    pub seed: u64,
    /// Runs of each method.
    pub repeats: u32,
    /// Items of the pilot; without it a tenth, but [`LEAST_PILOT`] at least.
    pub pilot: Option<u32>,
    /// Changes of the scenario.
    pub edits: Vec<(String, Node)>,
    /// What all runs together may spend in this folder, and this process in seconds.
    pub budget: Budget,
}

/// Told of the runs of a comparison. It watches them.
pub trait Witness {
    /// Makes or goes on with a run. `what` says which.
    fn see(
        &mut self,
        what: &str,
        run: &mut dyn FnMut(&mut dyn Watch) -> Result<Summary, DriveError>,
    ) -> Result<Summary, DriveError>;

    /// Told of a run that has ended.
    fn ended(&mut self, run: &results::Run<'_>) -> Result<(), DriveError>;
}

/// Why there is no result.
#[derive(Debug)]
pub enum Halt {
    /// A run was stopped, or a budget is used up: the same command goes on.
    Stopped(Box<Summary>),
    /// It went wrong.
    Failed(DriveError),
}

impl<E: Into<DriveError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Failed(error.into())
    }
}

/// What methods came to against each other.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Always [`RunStatus::Done`]: one that was stopped is not compared.
    pub status: RunStatus,
    /// Its folder.
    pub folder: String,
    /// The task: its file's name.
    pub task: String,
    /// How that is written.
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
    /// What a reader could be fooled by.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let unlike = |score: &Score| {
            let part = score.of_allowance.filter(|part| !(1.0 - UNLIKE..=1.0 + UNLIKE).contains(part))?;
            Some(format!(
                "{} came to {:.0} % of the allowance: its budget is not equal to that of the others",
                score.method,
                100.0 * part
            ))
        };
        let mut warnings: Vec<String> = self.methods.iter().filter_map(unlike).collect();
        let fitted = |score: &&Score| {
            self.pilot.iter().flat_map(|pilot| &pilot.trials).filter(|trial| trial.method == score.method).count() > 1
        };
        if self.methods.iter().filter(fitted).any(|score| unlike(score).is_some()) {
            warnings.push("a pilot of more items comes closer (--pilot)".into());
        }
        warnings
    }
}

/// Where methods are tried: a task, what is asked for, and a folder.
pub struct Arena<'a> {
    engine: &'a Engine<'a>,
    task: &'a Task,
    wish: &'a Wish,
    witness: &'a mut dyn Witness,
    began: Instant,
    /// What all runs so far have cost: calls, tokens, dollars, as they were paid.
    paid: (u64, u64, f64),
}

impl<'a> Arena<'a> {
    /// Sets an arena up.
    pub fn new(engine: &'a Engine<'a>, task: &'a Task, wish: &'a Wish, witness: &'a mut dyn Witness) -> Self {
        Arena { engine, task, wish, witness, began: Instant::now(), paid: (0, 0, 0.0) }
    }

    /// One method on the task. With one repeat `out` is its run folder, else it holds one for each seed.
    pub fn eval(&mut self, entrant: &Entrant, out: &Path) -> Result<(Score, Vec<Sheet>), Halt> {
        let count = self.task.count(self.wish.limit)?;
        if self.wish.repeats > 1 {
            claim_shared(self.engine.disk.as_ref(), out)?;
        }
        let folder = |seed: u64| if self.wish.repeats == 1 { out.into() } else { out.join(format!("seed-{seed}")) };
        self.score(entrant, count, &folder)
    }

    /// Methods on the same items, with equal budgets in `equal` or with the teams they usually have.
    ///
    /// Errors: [`DriveError::Input`] for fewer than two methods and for one that is named twice; those of runs.
    pub fn compare(&mut self, mut entrants: Vec<Entrant>, equal: Option<Unit>, out: &Path) -> Result<Comparison, Halt> {
        let twice = (1..entrants.len()).find(|i| entrants[..*i].iter().any(|other| other.label == entrants[*i].label));
        if let Some(i) = twice {
            return Err(DriveError::Input(format!("`{}` is named twice", entrants[i].label)).into());
        }
        if entrants.len() < 2 {
            let why = match equal {
                Some(_) => "--equal needs two methods at least: with one there is nothing to be equal with",
                None => "a comparison needs two methods at least; polity eval is for one",
            };
            return Err(DriveError::Input(why.into()).into());
        }
        let count = self.task.count(self.wish.limit)?;
        // Whatever is wrong with one of them shows before anything is spent on another.
        for entrant in &entrants {
            let prepared = self.task.scenario(entrant, self.wish, count, self.wish.seed, out)?;
            self.engine.validate(&prepared).map_err(|error| named(entrant, error))?;
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
        let Wish { model, limit, seed, repeats, pilot, edits, .. } = self.wish;
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
        words.extend(edits.iter().map(|(path, value)| format!("-P '{path}={}'", value.to_json())));
        words.join(" ")
    }

    /// Measures what methods use, and gives those whose size nobody asked for the one that comes closest to what the most expensive uses.
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
            let why = format!("no method uses any {}, so nothing can be made equal in them", unit.word());
            return Err(DriveError::Input(why).into());
        }
        for (entrant, used) in entrants.iter_mut().zip(used) {
            let usual = self.engine.registry.facts(entrant.method).map_or(1, |facts| facts.usual.members);
            // A method of one member has no size that could be another.
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

    /// What a team uses per item of the pilot; `None` if the method does not take a team of this size.
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
        if self.engine.validate(&prepared).is_err() {
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
            sheets.push(sheet);
            runs.push(run.display().to_string());
        }
        Ok((Score::of(entrant, &sheets, runs, simulated), sheets))
    }

    /// Begins a run, goes on with it, or finds it ended; and reads what it came to.
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
        let engine = Engine {
            budget: self.left(),
            outside: self.engine.outside.clone(),
            providers: self.engine.providers.clone(),
            disk: disk.clone(),
            stop: self.engine.stop.clone(),
            ..*self.engine
        };
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

    /// What the next run may spend: what was asked for, less what all runs before it in this folder took.
    fn left(&self) -> Budget {
        let Budget { cost_usd, tokens, calls, seconds, .. } = self.wish.budget;
        Budget {
            cost_usd: cost_usd.map(|most| (most - self.paid.2).max(0.0)),
            tokens: tokens.map(|most| most.saturating_sub(self.paid.1)),
            // A run that has come to its wall goes on only with another one. Where nobody asks for a wall any more, it is out of reach.
            calls: Some(calls.map_or(u64::MAX, |most| most.saturating_sub(self.paid.0))),
            seconds: seconds.map(|most| (most - self.began.elapsed().as_secs_f64()).max(0.0)),
            ..Budget::default()
        }
    }
}

/// An error with the method it belongs to, where it does not name its place.
fn named(entrant: &Entrant, error: DriveError) -> DriveError {
    match error {
        DriveError::Scenario(tree) => DriveError::Input(format!("{}: {tree}", entrant.label)),
        DriveError::Model(why) => DriveError::Model(format!("{}: {why}", entrant.label)),
        other => other,
    }
}

/// The first thing in which a run that is there is not the one that is asked for.
fn differs(manifest: &Manifest, prepared: &Prepared) -> Option<String> {
    // As it reads back from a file.
    let wanted = serde_json::from_str::<serde_json::Value>(&prepared.tree.to_json().to_string()).unwrap_or_default();
    // The name is made of the others.
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
