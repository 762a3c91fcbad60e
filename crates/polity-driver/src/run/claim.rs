//! Whose a folder is. Polity writes, and deletes, only where it finds nothing or its own: a folder of its own has Polity's mark in its
//! file `lock`, and where anything is to be deleted, nothing else than files that Polity writes there.

use crate::disk::{Disk, EntryKind, create_dir_durably};
use crate::{DriveError, Fault};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What stands in the file `lock` of a folder that Polity made.
const MARK: &[u8] = b"polity\n";
/// The file that is held by whoever works on a folder.
pub(crate) const LOCK: &str = "lock";
/// How often the lock of a folder that is held is tried for again, and how long is waited before.
const LOCK_TRIES: u32 = 3;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Folders within folders, at most; Polity makes fewer.
const DEEPEST: usize = 16;

/// Whether Polity itself may have left an entry where nothing has begun yet: its names from the folder down, and whether it is a file.
pub(crate) type Ours = dyn Fn(&[&str], bool) -> bool;

/// Makes a folder, or takes one that is empty or Polity's own, and locks it. Every entry of it must be one of `ours`. `refuse`: an error if
/// the folder holds something to go on with.
pub(crate) fn claim(
    disk: &dyn Disk,
    path: &Path,
    ours: &Ours,
    refuse: &dyn Fn() -> Result<(), DriveError>,
) -> Result<Box<dyn Send>, DriveError> {
    if disk.exists(path).map_err(DriveError::disk(path))? {
        let inside = disk.list(path).map_err(|_| {
            DriveError::Folder(format!("{} is there already and is no folder; choose another --out", path.display()))
        })?;
        refuse()?;
        let taken = |what: &str, why: &str| {
            Err(DriveError::Folder(format!(
                "{} is not empty (it holds {what}){why}; nothing was touched, choose another --out",
                path.display()
            )))
        };
        if let Some(other) = foreign(disk, path, ours)? {
            return taken(&other, "");
        }
        if let Some(other) = inside.iter().find(|name| *name != LOCK)
            && !is_marked(disk, path)
        {
            return taken(other, ", and its file lock does not say that it is Polity's");
        }
        // With nothing else beside it, a lock may have been cut off while it was written.
        if inside.iter().any(|name| name == LOCK) {
            let lock = path.join(LOCK);
            let held = disk.read(&lock).map_err(DriveError::disk(&lock))?;
            if !MARK.starts_with(&held) {
                return taken(LOCK, ", which is not Polity's");
            }
        }
    }
    create_dir_durably(disk, path).map_err(DriveError::disk(path))?;
    mark(disk, path)?;
    let lock = lock(disk, path)?;
    // Another process may have begun something, and even ended it, since the first look.
    refuse()?;
    Ok(lock)
}

/// Makes a folder for several runs, or takes one that is empty or was made so. What lies in it stays.
pub fn claim_shared(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    if disk.exists(path).map_err(DriveError::disk(path))? && is_marked(disk, path) {
        return Ok(());
    }
    claim(disk, path, &|names, is_file| names == [LOCK] && is_file, &|| Ok(())).map(drop)
}

/// Writes the mark, durably before anything else is written.
fn mark(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    if is_marked(disk, path) {
        return Ok(());
    }
    let lock = path.join(LOCK);
    let write = || {
        let mut file = disk.create(&lock)?;
        file.write_all(MARK)?;
        file.sync()?;
        disk.sync_dir(path)
    };
    write().map_err(DriveError::disk(&lock))
}

/// Whether a folder has Polity's mark.
pub(crate) fn is_marked(disk: &dyn Disk, path: &Path) -> bool {
    disk.read(&path.join(LOCK)).is_ok_and(|bytes| bytes == MARK)
}

/// The first entry of a folder that is not one of `ours`, as a path from the folder down.
pub(crate) fn foreign(disk: &dyn Disk, path: &Path, ours: &Ours) -> Result<Option<String>, DriveError> {
    let mut found = None;
    walk(disk, path, &mut |names, kind| {
        let is_ours = match kind {
            EntryKind::File => ours(names, true),
            EntryKind::Folder => ours(names, false),
            EntryKind::Other(_) => false,
        };
        if !is_ours && found.is_none() {
            found = Some(names.join("/"));
        }
        // What is not ours is not looked into.
        Ok(is_ours)
    })?;
    Ok(found)
}

/// Refuses a folder that holds anything but regular files and folders: through a link it would reach what lies outside, and a FIFO or a
/// device has no end. `beyond`: a folder in it that is looked into by whoever opens what it holds.
pub(crate) fn only_regular(disk: &dyn Disk, path: &Path, beyond: Option<&str>) -> Result<(), DriveError> {
    match irregular(disk, path, beyond)?.into_iter().next() {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// All such entries, and what to do about them.
pub(crate) fn irregular(disk: &dyn Disk, path: &Path, beyond: Option<&str>) -> Result<Vec<Fault>, DriveError> {
    let mut found = Vec::new();
    walk(disk, path, &mut |names, kind| {
        if let EntryKind::Other(what) = kind {
            let entry = names.iter().fold(path.to_path_buf(), |path, name| path.join(name));
            let what = format!(
                "it is {what}, and a folder of Polity's holds regular files and folders alone; remove it, or put the file itself there"
            );
            found.push(Fault::new(entry, what));
        }
        Ok(beyond.is_none_or(|beyond| names != [beyond]))
    })?;
    Ok(found)
}

/// Sees an entry by its names from a folder down; says whether to go down into it.
type Visit<'a> = dyn FnMut(&[&str], EntryKind) -> Result<bool, DriveError> + 'a;

/// Shows every entry of a folder, in order of its names.
fn walk(disk: &dyn Disk, path: &Path, visit: &mut Visit<'_>) -> Result<(), DriveError> {
    fn down(disk: &dyn Disk, path: &Path, above: &mut Vec<String>, visit: &mut Visit<'_>) -> Result<(), DriveError> {
        let names = match disk.list(path) {
            // A process that works on it may have taken it away meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(DriveError::disk(path))?,
        };
        if above.len() == DEEPEST {
            return Err(DriveError::Folder(format!(
                "{} lies too deep for a folder of Polity's; remove it",
                path.display()
            )));
        }
        for name in names {
            let entry = path.join(&name);
            let kind = match disk.kind(&entry) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                kind => kind.map_err(DriveError::disk(&entry))?,
            };
            above.push(name);
            let names: Vec<&str> = above.iter().map(String::as_str).collect();
            if visit(&names, kind)? && kind == EntryKind::Folder {
                down(disk, &entry, above, visit)?;
            }
            above.pop();
        }
        Ok(())
    }
    down(disk, path, &mut Vec::new(), visit)
}

/// Holds a folder for this process alone.
pub(crate) fn lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Send>, DriveError> {
    let mut held = disk.lock(&path.join(LOCK));
    // A command that looks whether a run is under way holds the lock for a moment.
    for _ in 0..LOCK_TRIES {
        if !held.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        held = disk.lock(&path.join(LOCK));
    }
    held.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DriveError::Folder(format!(
            "another process works on {}; wait until it has ended, or stop it",
            path.display()
        )),
        _ => DriveError::Disk { path: path.join(LOCK), source: error },
    })
}
