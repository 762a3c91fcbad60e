//! What a run leaves on disk: journal, tables, snapshots and listings; also the disk itself and bounded file reading.
//!
//! Start reading at [`disk::Disk`], then [`journal`] and [`tables`].

pub mod clock;
pub mod disk;
pub mod error;
pub mod files;
pub mod journal;
pub mod listing;
pub mod memory;
pub mod network;
pub mod owner;
pub mod printable;
pub mod snapshots;
pub mod spreadsheet;
pub mod tables;

pub use error::{DriveError, Fault};

use polity_kernel::digest::{Digest, Kind, RowHash};

/// The digest of bytes that are not a whole file ([`polity_kernel::digest::FileHash`] is for files), such as a request or part of a
/// state.
#[must_use]
pub fn digest_of(bytes: &[u8]) -> Digest {
    Digest(RowHash::new(Kind::Input, 0).bytes(bytes).finish())
}
