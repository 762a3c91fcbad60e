//! Runs that belong together (of a sweep, or the arms of claims): each in a folder of its own, started, resumed or only read, several at
//! once. Threads and timing affect no result.

use super::engine::Engine;
use super::folder::Folder;
use super::prepare::{InputEntry, Prepared};
use super::summary::{RunStatus, Summary};
use crate::drive::{Totals, Unwatched, Watch};
use crate::results;
use polity_store::DriveError;
use polity_store::tables::Reader;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// How one of several tasks is done.
pub(crate) type Making<'a, T, D> = dyn Fn(&Engine<'_>, T) -> Result<Made<D>, DriveError> + Sync + 'a;

/// How far one of several tasks came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made<D> {
    /// It has ended.
    Done(D),
    /// A person or a budget stopped it.
    Stopped,
    /// Another process is working on it.
    Held,
}

impl<D> Made<D> {
    /// Converts what has ended.
    pub(crate) fn and_then<E>(self, read: impl FnOnce(D) -> Result<E, DriveError>) -> Result<Made<E>, DriveError> {
        Ok(match self {
            Made::Done(done) => Made::Done(read(done)?),
            Made::Stopped => Made::Stopped,
            Made::Held => Made::Held,
        })
    }
}

/// The results of a finished run.
pub(crate) struct Whole<'a> {
    /// Its digest.
    pub digest: String,
    /// Rounds completed.
    pub rounds: u32,
    /// Totals of its answers.
    pub totals: Totals,
    /// Its metrics by name: (round, value), oldest first.
    pub metrics: BTreeMap<String, Vec<(u32, f64)>>,
    /// Its tables.
    pub tables: Reader<'a>,
}

impl Engine<'_> {
    /// The same engine for one of several concurrent runs, which share the limit on calls in flight.
    fn one_of(&self, jobs: usize) -> Engine<'_> {
        Engine { connections: (self.connections / jobs.max(1)).max(1), ..self.clone() }
    }

    /// Does several tasks on `jobs` threads, each with an engine of its share, and passes on results as tasks end. Returns how many tasks
    /// another process is working on. Stops at the first error, or on a stop request; of several errors, reports that of the first task in
    /// order.
    pub(crate) fn at_once<T: Copy + Ord + Send + Sync, D: Send>(
        &self,
        tasks: &[T],
        jobs: usize,
        make: &Making<'_, T, D>,
        hear: &mut dyn FnMut(T, D) -> Result<(), DriveError>,
    ) -> Result<usize, DriveError> {
        let mut held = 0;
        let (next, halt) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (send, receive) = mpsc::channel();
        let engine = self.one_of(jobs);
        let work = |send: mpsc::Sender<(T, Result<Made<D>, DriveError>)>| {
            while !halt.load(Ordering::SeqCst) && !engine.stop.asked() {
                let Some(task) = tasks.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                if send.send((*task, make(&engine, *task))).is_err() {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            let work = &work;
            for _ in 0..jobs.max(1) {
                let send = send.clone();
                scope.spawn(move || work(send));
            }
            drop(send);
            let mut failed: Option<(T, DriveError)> = None;
            for (task, result) in receive {
                let result = match result {
                    Ok(Made::Done(done)) => hear(task, done),
                    Ok(Made::Stopped) => Ok(()),
                    Ok(Made::Held) => {
                        held += 1;
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = result {
                    halt.store(true, Ordering::SeqCst);
                    if failed.as_ref().is_none_or(|(other, _)| task < *other) {
                        failed = Some((task, error));
                    }
                }
            }
            failed.map_or(Ok(held), |(_, error)| Err(error))
        })
    }

    /// Starts a run in a folder, resumes it, or reads its results. `says`: why this run belongs there, for errors.
    pub(crate) fn whole(&self, prepared: &Prepared, dir: &Path, says: &str) -> Result<Made<Whole<'_>>, DriveError> {
        match self.make(prepared, dir, says) {
            Err(DriveError::Held(_)) => Ok(Made::Held),
            Err(error) => Err(DriveError::InRun { run: dir.display().to_string(), error: Box::new(error) }),
            made => made,
        }
    }

    /// Starts a run in a folder that has none, else resumes it; a finished run is only summarised.
    ///
    /// # Errors
    /// Those of [`Engine::run`] and [`Engine::resume`]; [`DriveError::Folder`] for a run of another scenario.
    pub fn run_or_resume(&self, prepared: &Prepared, dir: &Path, watch: &mut dyn Watch) -> Result<Summary, DriveError> {
        let manifest = dir.join("manifest.json");
        if !self.disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
            match self.run(prepared, dir, watch) {
                // Another process was faster.
                Err(DriveError::Begun(_)) => {}
                ran => return ran,
            }
        }
        self.check_own(prepared, dir, "the command")?;
        self.resume(dir, watch)
    }

    fn make(&self, prepared: &Prepared, dir: &Path, says: &str) -> Result<Made<Whole<'_>>, DriveError> {
        let manifest = dir.join("manifest.json");
        let of = |summary: Summary| (summary.digest, summary.rounds, summary.totals);
        let mut ran = None;
        if !self.disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
            match self.run(prepared, dir, &mut Unwatched) {
                // Another process was faster.
                Err(DriveError::Begun(_)) => {}
                summary => ran = Some(summary?),
            }
        }
        if ran.is_none() {
            self.check_own(prepared, dir, says)?;
        }
        let ended = if ran.is_none() { self.ended(dir)? } else { None };
        let (digest, rounds, totals) = match (ran, ended) {
            (None, Some((outcome, totals))) => (outcome.digest.to_string(), outcome.rounds, totals),
            (ran, _) => {
                let summary = ran.map_or_else(|| self.resume(dir, &mut Unwatched), Ok)?;
                if summary.status != RunStatus::Done {
                    return Ok(Made::Stopped);
                }
                of(summary)
            }
        };
        let tables = results::open(self.disk.as_ref(), dir)?;
        let metrics = tables.metrics()?;
        Ok(Made::Done(Whole { digest, rounds, totals, metrics, tables }))
    }

    /// Refuses a run of another scenario.
    fn check_own(&self, prepared: &Prepared, dir: &Path, says: &str) -> Result<(), DriveError> {
        let manifest = Folder::read(self.disk.clone(), dir)?.manifest()?;
        let inputs = |entries: &mut dyn Iterator<Item = &InputEntry>| -> Vec<(String, String)> {
            entries.map(|entry| (entry.path.clone(), entry.digest.clone())).collect()
        };
        let same_inputs =
            inputs(&mut manifest.inputs.iter()) == inputs(&mut prepared.files.iter().map(|file| &file.entry));
        match manifest.scenario == prepared.tree.to_json() && same_inputs {
            true => Ok(()),
            false => Err(DriveError::Folder(format!(
                "{} is a run of another scenario, or of other data, than {says} says; put both back as they were, or \
                 remove the run so that it is made again",
                dir.display()
            ))),
        }
    }
}
