//! The driver of Polity: everything that touches the outside. It reads files, asks models, keeps the journal, writes tables, and
//! drives the kernel's machines; no result depends on it.
//!
//! Start reading at [`drive::Drive`], then [`run`].

mod bucket;
mod budget;
pub mod calls;
pub mod control;
pub mod disk;
pub mod drive;
pub mod error;
pub mod files;
pub mod health;
mod http;
pub mod journal;
pub mod listing;
pub mod memory;
pub mod models;
pub mod people;
pub mod printable;
pub mod recorder;
pub mod results;
pub mod run;
pub mod snapshots;
pub mod source;
pub mod spreadsheet;
pub mod standin;
pub mod sweep;
pub mod systems;
pub mod tables;
pub mod tools;
pub mod traces;
pub mod verify;

pub use error::{DriveError, Fault};
