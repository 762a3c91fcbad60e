//! Runs: starting, resuming, replaying and forking them.

mod calls;
mod claim;
mod derived;
mod diagnose;
mod engine;
mod estimate;
mod folder;
mod interview;
mod inventory;
mod journal_summary;
mod judge;
mod manifest;
mod models;
mod prepare;
mod recorded;
mod start;
mod summary;
mod whole;

pub use calls::{Shown, Texts, Wanted, calls, each_answer};
pub use claim::claim_shared;
pub(crate) use claim::{LOCK, claim, irregular, is_marked, lock, only_regular};
pub(crate) use engine::Survey;
pub use engine::{Engine, Extent, new_folder};
pub use estimate::{Basis, COVERAGE, Forecast};
pub use folder::Folder;
pub(crate) use folder::{inventory, manifest_file};
pub use interview::Interviewed;
pub(crate) use inventory::{Inventory, unreadable};
pub use judge::{Judged, Verdict};
pub use manifest::{Build, Manifest, Origin};
pub(crate) use prepare::within;
pub use prepare::{InputEntry, Planned, Prepared, SetKey, prepare, prepare_with_file};
pub use start::{fork_folder, other_models, seed_of};
pub use summary::{RunStatus, Summary};
pub(crate) use whole::Whole;
