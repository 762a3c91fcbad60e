//! A run that has ended or stopped: its results, and operations on it.

use crate::environment::Environment;
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use polity_driver::calls::Call;
use polity_driver::drive::{Totals, Unwatched};
use polity_driver::health::Alarm;
use polity_driver::results;
use polity_driver::run::{Interviewed, Manifest, RunStatus, Summary, Texts, Wanted, calls};
use polity_driver::verify::Verified;
use polity_kernel::ask::Request;
use polity_kernel::registry::Registry;
use polity_kernel::tree::nearest;
use polity_models::models::Reply;
use polity_store::DriveError;
use polity_store::tables::{Reader, TableSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run that has ended or stopped: its results, its tables, and operations on it.
///
/// ```
/// # let scenario = "{rounds: 4, agents: 8, world: {kind: guess-average}, metrics: [{kind: mean, of: guess}],
/// # cohorts: [{policy: {kind: adaptive, rate: 0.5}}]}";
/// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
/// assert!(run.tables()?.iter().any(|name| name == "acts"));
/// let acts = run.table("acts")?;
/// assert_eq!(acts.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4 * 8);
/// let fall: Vec<f64> = run.series("guess.mean")?.into_iter().map(|(_, mean)| mean).collect();
/// assert!(fall.is_sorted_by(|earlier, later| earlier > later));
/// # Ok::<(), polity::Error>(())
/// ```
#[derive(Clone)]
pub struct Run {
    folder: PathBuf,
    summary: Summary,
    manifest: Manifest,
    environment: Environment,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("folder", &self.folder).field("summary", &self.summary).finish_non_exhaustive()
    }
}

/// Results.
impl Run {
    pub(crate) fn of(summary: Summary, environment: Environment) -> Result<Run> {
        let folder = PathBuf::from(&summary.run);
        let manifest = results::of_run(environment.disk.as_ref(), &folder)?.manifest;
        Ok(Run { folder, summary, manifest, environment })
    }

    /// Opens the folder of a run, whichever program made it. Nothing is run, locked or changed. The run may be in progress in another
    /// process; then its saved part is read.
    ///
    /// # Errors
    /// [`Error::Run`] for a folder without a run, or with a damaged one.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let out = folder.path().join("run");
    /// # let scenario = "{rounds: 2, agents: 8, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
    /// # let made = polity::Simulation::from_yaml(scenario)?.out(&out).run()?;
    /// let run = polity::Run::open(&out)?;
    /// assert!(run.is_done());
    /// assert_eq!(run.digest(), made.digest());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(folder: impl AsRef<Path>) -> Result<Run> {
        let environment = Environment::default();
        let summary = environment.reader().summed_up(folder.as_ref())?;
        Run::of(summary, environment)
    }

    /// Returns its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns how it ended. For an opened run, [`RunStatus::Stopped`] may also mean that it was killed or is in progress.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        self.summary.status
    }

    /// Returns whether it has ended and cannot be resumed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.status() == RunStatus::Done
    }

    /// Returns its digest. Two runs have the same digest if everything that happened in them is the same. For a stopped run, it covers
    /// the rounds so far.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.summary.digest
    }

    /// Returns the number of completed rounds.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.summary.rounds
    }

    /// Returns the number of agents at the start; in an evaluation, of team members.
    #[must_use]
    pub fn agents(&self) -> u32 {
        self.summary.agents
    }

    /// Returns its name in the scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Returns the scenario that was run, with all edits.
    #[must_use]
    pub fn scenario(&self) -> &serde_json::Value {
        &self.manifest.scenario
    }

    /// Returns its totals: calls, tokens, US dollars.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.summary.totals
    }

    /// Returns signs that the run is meaningless: agents that never act, texts that repeat each other, questions without an answer.
    #[must_use]
    pub fn alarms(&self) -> &[Alarm] {
        &self.summary.health
    }

    /// Returns all of this in one value, as the command prints it with `--json`.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Returns everything that determines it, and the build that made it.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

/// Tables.
impl Run {
    fn reader(&self) -> Result<Reader<'_>> {
        Ok(results::of_run(self.environment.disk.as_ref(), &self.folder)?.tables)
    }

    /// Returns the names of its tables, in order.
    ///
    /// # Errors
    /// [`Error::Run`] for a damaged folder.
    pub fn tables(&self) -> Result<Vec<String>> {
        Ok(self.reader()?.names())
    }

    /// Returns a table as Arrow record batches, oldest rows first. The data is checked against the run's record.
    ///
    /// # Errors
    /// [`Error::Run`] for a missing table, or a damaged one.
    ///
    /// ```
    /// use polity::arrow::{AsArray, types::{Float64Type, UInt32Type}};
    /// # let scenario = "{rounds: 4, agents: 8, world: {kind: guess-average}, metrics: [{kind: mean, of: guess}],
    /// # cohorts: [{policy: {kind: adaptive, rate: 0.5}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
    /// for batch in run.table("metrics")? {
    ///     let rounds = batch.column_by_name("round").unwrap().as_primitive::<UInt32Type>();
    ///     let values = batch.column_by_name("value").unwrap().as_primitive::<Float64Type>();
    ///     assert_eq!(rounds.len(), values.len());
    /// }
    /// assert!(run.table("nothing").is_err());
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn table(&self, name: &str) -> Result<Vec<RecordBatch>> {
        Ok(self.reader()?.record_batches(name)?)
    }

    /// Returns what a table declares: what a row is, and the name, kind and meaning of each column.
    ///
    /// # Errors
    /// [`Error::Run`] for a missing table, or a damaged one.
    pub fn table_spec(&self, name: &str) -> Result<TableSpec> {
        Ok(self.reader()?.spec(name)?)
    }

    /// Returns the metrics after the last round, by name.
    ///
    /// # Errors
    /// Those of [`Run::table`].
    pub fn metrics(&self) -> Result<BTreeMap<String, f64>> {
        let all = self.reader()?.metrics()?.into_iter();
        Ok(all.filter_map(|(name, values)| Some((name, values.last()?.1))).collect())
    }

    /// Returns a metric after the last round.
    ///
    /// # Errors
    /// [`Error::NoMetric`], which names the nearest metric.
    ///
    /// ```
    /// # let scenario = "{rounds: 4, agents: 8, world: {kind: guess-average}, metrics: [{kind: mean, of: guess}],
    /// # cohorts: [{policy: {kind: adaptive, rate: 0.5}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
    /// assert!(run.metric("guess.mean")? > 0.0);
    /// let error = run.metric("gues.mean").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `guess.mean`?"), "{error}");
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn metric(&self, name: &str) -> Result<f64> {
        let series = self.series(name)?;
        series.last().map(|(_, value)| *value).ok_or_else(|| no_metric(name, std::iter::empty()))
    }

    /// Returns a metric by round: (round, value), oldest first.
    ///
    /// A run that was stopped in the middle of a round has the rounds up to its last snapshot; [`Run::resume`] completes them.
    ///
    /// # Errors
    /// Those of [`Run::metric`].
    pub fn series(&self, name: &str) -> Result<Vec<(u32, f64)>> {
        let mut all = self.reader()?.metrics()?;
        all.remove(name).ok_or_else(|| no_metric(name, all.keys().map(String::as_str)))
    }

    /// Returns the questions and answers from the journal, in the order of the table `calls`. Works even if the scenario does not record
    /// that table.
    ///
    /// # Errors
    /// [`Error::Run`] for a damaged folder.
    pub fn calls(&self) -> Result<Vec<Call>> {
        let shown = calls(self.environment.disk.clone(), &self.folder, &Wanted::default(), Texts::Whole)?;
        Ok(shown.into_iter().map(|shown| shown.call).collect())
    }
}

fn no_metric<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Error {
    let meant = nearest(name, known.clone()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let known: Vec<&str> = known.collect();
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Error::NoMetric(format!("this run has no metric `{name}`{meant} (it has: {known})"))
}

/// Operations.
impl Run {
    pub(crate) const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the same run with the leaves of this registry, for later operations. An opened run has those of
    /// [`registry`](crate::registry).
    #[must_use]
    pub fn with_registry(mut self, registry: impl Into<Arc<Registry>>) -> Run {
        self.environment.registry = registry.into();
        self
    }

    /// Adds a model that is a function of this program, as [`Simulation::model`](crate::Simulation::model) does, for later operations:
    /// an opened run knows no functions.
    #[must_use]
    pub fn with_model<R: Into<Reply>>(
        mut self,
        name: &str,
        answer: impl Fn(&Request) -> R + Send + Sync + 'static,
    ) -> Run {
        self.environment.add_model(name, answer);
        self
    }

    /// Asks agents a question, in their state before round `at` (`None`: after the last complete one). The run does not change.
    ///
    /// # Errors
    /// [`Error::Run`] for an empty question, an agent that is unborn, dead or follows rules, and a model that cannot be reached.
    ///
    /// ```
    /// # let scenario = "
    /// # {rounds: 2, agents: 3, model: sim/small, world: {kind: guess-average}, cohorts: [{policy: {kind: mind}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
    /// let said = run.interview(&[0, 2], "Why this number?", None)?;
    /// assert_eq!((said.len(), said[1].agent, said[1].round), (2, 2, 2));
    /// assert!(run.interview(&[7], "Why this number?", None).is_err());
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn interview(&self, agents: &[u32], question: &str, at: Option<u32>) -> Result<Vec<Interviewed>> {
        if question.trim().is_empty() {
            let message = "the question is empty; write the question that the agents are to answer";
            return Err(Error::Run(DriveError::Input(message.into())));
        }
        Ok(self.environment.reader().interview(&self.folder, agents, at, question, &mut Unwatched)?)
    }

    /// Verifies that every file of its folder is as it was written.
    ///
    /// # Errors
    /// [`Error::Run`] for files that cannot be read. Damage is no error: [`Verified::faults`](polity_driver::verify::Verified) lists it.
    pub fn verify(&self) -> Result<Vec<Verified>> {
        Ok(polity_arena::verify(&self.environment.disk, &self.folder)?)
    }

    /// Recomputes it from its journal, without model calls, and compares every round. The summary's status is [`RunStatus::Same`] or
    /// [`RunStatus::Different`].
    ///
    /// # Errors
    /// [`Error::Run`] for a damaged folder, and for a run that this build cannot compute.
    ///
    /// ```
    /// # let scenario = "
    /// # {rounds: 2, agents: 3, model: sim/small, world: {kind: guess-average}, cohorts: [{policy: {kind: mind}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
    /// let replayed = run.replay()?;
    /// assert_eq!((replayed.status, replayed.digest.as_str()), (polity::RunStatus::Same, run.digest()));
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn replay(&self) -> Result<Summary> {
        Ok(self.environment.reader().replay(&self.folder, &mut Unwatched)?)
    }
}
