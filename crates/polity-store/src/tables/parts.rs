//! The files of a table: `part-FIRST-LAST.parquet`, with rounds of six or more digits, and one that is being written or is closed but not
//! yet named.

use std::collections::BTreeSet;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;

use super::error::{Result, TableError};
use super::spec::is_table_name;
use crate::disk::Disk;
use polity_kernel::digest::FileHash;
use polity_kernel::event::Part;

/// The part being written, or closed and waiting for its record; `.tmp` marks a possible leftover of a crash.
pub const OPEN_PART: &str = "open.parquet.tmp";

/// Rounds of a closed part: the first and last whose rows it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first round.
    pub first: u32,
    /// The last round.
    pub last: u32,
}

impl Span {
    /// The rounds of a recorded part.
    #[must_use]
    pub fn of(part: &Part) -> Self {
        Span { first: part.first, last: part.last }
    }

    /// The name of the part's file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("part-{:06}-{:06}.parquet", self.first, self.last)
    }

    /// Reads the name of a part's file; `None` if it is not one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (first, last) = name.strip_prefix("part-")?.strip_suffix(".parquet")?.split_once('-')?;
        let part = Span { first: first.parse().ok()?, last: last.parse().ok()? };
        (part.file_name() == name).then_some(part)
    }
}

/// The closed parts of a table, by round. Empty if it is not a folder.
pub(super) fn list(disk: &dyn Disk, dir: &Path, table: &str) -> Result<Vec<Span>> {
    let mut parts: Vec<Span> =
        names(disk, &dir.join(table), table)?.iter().filter_map(|name| Span::parse(name)).collect();
    parts.sort();
    Ok(parts)
}

/// Creates a table's folder and removes leftovers of a crash.
pub(super) fn prepare(disk: &dyn Disk, dir: &Path, table: &str) -> Result<()> {
    let folder = dir.join(table);
    disk.create_dir_all(&folder).map_err(|e| TableError::disk(table, "create", &folder, e))?;
    disk.sync_dir(dir).map_err(|e| TableError::disk(table, "sync", dir, e))?;
    let left: Vec<String> = names(disk, &folder, table)?.into_iter().filter(|name| name.ends_with(".tmp")).collect();
    for name in &left {
        let path = folder.join(name);
        disk.remove_file(&path).map_err(|e| TableError::disk(table, "remove", &path, e))?;
    }
    match left.is_empty() {
        true => Ok(()),
        false => disk.sync_dir(&folder).map_err(|e| TableError::disk(table, "sync", &folder, e)),
    }
}

/// Makes the name of a table's newest recorded part durable; if a kill prevented the renaming, renames it first and compares its bytes
/// with the record.
pub fn settle(disk: &dyn Disk, dir: &Path, newest: &Part) -> Result<()> {
    let table = &newest.table;
    let folder = dir.join(table);
    let (from, to) = (folder.join(OPEN_PART), folder.join(Span::of(newest).file_name()));
    let there = |path: &Path| disk.exists(path).map_err(|e| TableError::disk(table, "look for", path, e));
    if !there(&to)? && there(&from)? {
        let bytes = disk.read(&from).map_err(|e| TableError::disk(table, "read", &from, e))?;
        if FileHash::of(&bytes) == newest.digest {
            disk.rename(&from, &to).map_err(|e| TableError::disk(table, "rename to", &to, e))?;
        }
    }
    match there(&folder)? {
        true => disk.sync_dir(&folder).map_err(|e| TableError::disk(table, "sync", &folder, e)),
        false => Ok(()),
    }
}

/// Removes, in every table of `dir`, the parts with rounds after `round`; without a round, all parts.
///
/// For a resume: the snapshot's round is the last one whose rows are kept. Errors: [`TableError::Rounds`] if a part has rounds on both
/// sides (then nothing is removed in any table), [`TableError::Disk`] otherwise.
pub fn remove_parts_after(disk: &dyn Disk, dir: &Path, round: Option<u32>) -> Result<()> {
    let tables: Vec<String> = names(disk, dir, "tables")?.into_iter().filter(|name| is_table_name(name)).collect();
    let newer = |part: &Span| round.is_none_or(|round| part.last > round);
    let mut doomed = Vec::new();
    for table in &tables {
        for part in list(disk, dir, table)?.into_iter().filter(newer) {
            if round.is_some_and(|round| part.first <= round) {
                let what = format!(
                    "{} begins before the snapshot to resume from and ends after it; a part closes with every snapshot, \
                     so this folder was not written by this run. Nothing was removed",
                    part.file_name()
                );
                return Err(TableError::Rounds { table: table.clone(), what });
            }
            doomed.push((table, part));
        }
    }
    // Newest first: a crash in between leaves no gap.
    doomed.sort_by_key(|(_, part)| std::cmp::Reverse(part.first));
    for (table, part) in &doomed {
        let path = dir.join(table).join(part.file_name());
        disk.remove_file(&path).map_err(|e| TableError::disk(table, "remove", &path, e))?;
    }
    for table in doomed.iter().map(|(table, _)| *table).collect::<BTreeSet<_>>() {
        let folder = dir.join(table);
        disk.sync_dir(&folder).map_err(|e| TableError::disk(table, "sync", &folder, e))?;
    }
    Ok(())
}

pub(super) fn names(disk: &dyn Disk, folder: &Path, table: &str) -> Result<Vec<String>> {
    match disk.list(folder) {
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => Ok(Vec::new()),
        names => names.map_err(|e| TableError::disk(table, "list", folder, e)),
    }
}
