//! The driver of Polity: everything that touches the outside. It reads files, calls models, keeps the journal, writes tables, and drives
//! the kernel's machines; no result depends on it.
//!
//! Start reading at [`drive::Drive`], then [`run`].

mod budget;
pub mod calls;
pub mod chain;
pub mod comparison;
pub mod control;
pub mod diagnosis;
pub mod drive;
pub mod health;
mod past;
pub mod people;
pub mod recorder;
pub mod results;
pub mod run;
pub mod source;
pub mod spread;
pub mod sweep;
pub mod systems;
mod totals;
pub mod traces;
pub mod verify;
pub mod workers;

pub use polity_store::{DriveError, Fault};
