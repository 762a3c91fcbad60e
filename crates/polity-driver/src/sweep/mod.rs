//! Sweeps: all runs of a design, many at once, each in its own folder below one; their table, intervals and contrasts.
//!
//! The state of a sweep is in its folder: `sweep.json` lists the runs, and the run folders hold their progress. Continuing after a kill
//! is therefore the same as starting: finished runs are read, started ones resumed, the others started. Tables are written once all runs
//! have ended, in order of arm and seed. A rule for seeds and a search add runs in batches; what they add follows from the runs so
//! far alone, so they end in the same way after a kill.

mod arms;
mod begin;
mod contrasts;
mod evaluation;
mod folder;
mod limits;
mod mark;
mod pool;
mod results;
mod search;
mod sensitivity;
mod work;

pub use begin::{Stopping, SweepSummary, WatchSweep, begin, check, plan, resume};
pub use contrasts::ContrastRow;
pub use evaluation::EvaluationRow;
pub use folder::{ArmEntry, SweepManifest, SweepRun, sweep_runs};
pub(crate) use folder::{run_folder, tables};
pub use limits::Limits;
pub use mark::{SWEEP_FILE, is_sweep};
pub use pool::HealthRow;
pub use results::ArmRow;
pub use search::{Found, PosteriorRow, SearchRow};
pub use sensitivity::SensitivityRow;
pub use work::{raise, work};
