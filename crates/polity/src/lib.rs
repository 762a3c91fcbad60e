//! Polity: societies of agents, from three models that debate to a million citizens, on one deterministic engine.
//!
//! A scenario defines the agents, their world and the metrics. A run of it leaves a folder with a journal and tables. The same scenario
//! with the same seed gives the same run, to the last byte, and a run can be resumed, replayed and forked.
//!
//! ```
//! use polity::Simulation;
//!
//! let run = Simulation::from_yaml("
//! rounds: 10
//! agents: 1000
//! world: {kind: guess-average, fraction: 0.5}
//! cohorts: [{policy: {kind: level-k, mean: 1.5, noise: 0.02}}]
//! metrics: [{kind: mean, of: guess}]
//! ")?.seed(7).in_memory().run()?;
//! println!("{} after {} rounds: {:?}", run.status(), run.rounds(), run.metrics()?);
//! # assert!(run.metric("guess.mean")? > 0.0);
//! # Ok::<(), polity::Error>(())
//! ```
//!
//! Start with [`Simulation`]; it gives a [`Run`], and sends an [`Event`] for what happens meanwhile. A model may be a function of the
//! program ([`Simulation::model`]). Your own worlds, policies, methods and metrics implement the traits of [`kernel`] and are added to a
//! [`Registry`], which [`Simulation::registry`] takes.
//!
//! The feature `cli`, on by default, adds the command line. Library users can turn it off: `polity = { default-features = false }`.

pub mod conformance;
mod contest;
mod environment;
mod error;
mod events;
mod own;
mod run;
mod simulation;
mod sweep;

/// Methods compared on the same items, and reports.
pub use polity_arena::{arena, report};
/// The command line.
#[cfg(feature = "cli")]
pub use polity_cli as cli;

pub use contest::Contest;
pub use error::{Error, Result};
pub use events::{Event, Flow, StopHandle};
pub use run::Run;
pub use simulation::{Running, Simulation};
pub use sweep::Sweep;

/// The kernel, with the traits for your own leaves: [`kernel::world::SplitWorld`], [`kernel::policy::Policy`],
/// [`kernel::method::Method`], [`kernel::metric::Metric`].
pub use polity_kernel as kernel;

/// The driver, on which the library is built, for programs that need more than the library offers.
pub use polity_driver as driver;
pub use polity_driver::calls::Call;
pub use polity_driver::drive::Totals;
pub use polity_driver::health::Alarm;
pub use polity_driver::run::{RunStatus, Summary};
pub use polity_models::models::{Provider, Reply};

use polity_kernel::registry::Registry;
use std::path::Path;

/// What tables declare: [`Run::table_spec`].
pub mod tables {
    pub use polity_store::tables::{ColumnSpec, Kind, TableSpec};
}

/// Returns whether a folder holds a sweep: then [`Sweep::open`] opens it, and not [`Run::open`].
#[must_use]
pub fn is_sweep(folder: impl AsRef<Path>) -> bool {
    driver::sweep::is_sweep(&polity_store::disk::RealDisk, folder.as_ref())
}

/// Arrow, in the version of the record batches that [`Run::table`] returns.
pub mod arrow {
    pub use arrow_array::cast::AsArray;
    pub use arrow_array::*;
    pub use arrow_schema as schema;
}

/// Runs the scenario in a file, in a new folder `runs/NAME-SEED`. See [`Simulation::from_file`].
///
/// # Errors
/// Those of [`Simulation::from_file`] and [`Simulation::run`].
///
/// ```no_run
/// let run = polity::run("scenarios/guess-average.yaml")?;
/// println!("{}: {:?}", run.folder().display(), run.metrics()?);
/// # Ok::<(), polity::Error>(())
/// ```
pub fn run(scenario: impl AsRef<Path>) -> Result<Run> {
    Simulation::from_file(scenario)?.run()
}

/// Continues the run in a folder that was stopped or killed. See [`Run::resume`].
///
/// # Errors
/// Those of [`Run::open`] and [`Simulation::run`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let out = folder.path().join("run");
/// # let scenario = "{rounds: 9, agents: 8, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
/// # let simulation = polity::Simulation::from_yaml(scenario)?.out(&out);
/// # simulation.stop_handle().stop();
/// # simulation.run()?;
/// let run = polity::resume(&out)?;
/// assert!(run.is_done());
/// assert_eq!(polity::replay(&out)?.status, polity::RunStatus::Same);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resume(folder: impl AsRef<Path>) -> Result<Run> {
    Run::open(folder)?.resume().run()
}

/// Recomputes the run in a folder from its journal, without model calls, and compares every round. See [`Run::replay`].
///
/// # Errors
/// Those of [`Run::open`] and [`Run::replay`].
pub fn replay(folder: impl AsRef<Path>) -> Result<Summary> {
    Run::open(folder)?.replay()
}

/// Reruns the run in a folder up to a round, and continues from there with other parameters. See [`Run::fork`].
///
/// # Errors
/// Those of [`Run::open`], [`Simulation::set`] and [`Simulation::run`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let out = folder.path().join("run");
/// # let scenario = "{rounds: 4, agents: 8, world: {kind: guess-average}, cohorts: [{policy: {kind: adaptive, rate: 0.2}}]}";
/// # let made = polity::Simulation::from_yaml(scenario)?.out(&out).run()?;
/// let other = polity::fork(&out, 2, [("cohorts[0].policy.rate", 0.9.into())])?;
/// assert_ne!(other.digest(), made.digest());
/// assert_eq!(other.manifest().forked_from.as_ref().map(|origin| origin.at), Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fork<'a>(
    folder: impl AsRef<Path>,
    round: u32,
    edits: impl IntoIterator<Item = (&'a str, serde_json::Value)>,
) -> Result<Run> {
    let fork = Run::open(folder)?.fork(round);
    edits.into_iter().try_fold(fork, |fork, (path, value)| fork.set(path, value))?.run()
}

/// Returns a registry with every leaf of the catalogue, and with every toolkit.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    polity_catalog::register_all(&mut registry);
    polity_models::toolkits::register_all(&mut registry);
    polity_driver::run::register_toolkits(&mut registry);
    registry
}
