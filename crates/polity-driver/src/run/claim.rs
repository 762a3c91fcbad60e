//! Ownership of folders. Polity writes and deletes only in empty folders or its own: an own folder has Polity's mark in its file `lock`,
//! and nothing is deleted unless all files are of kinds that Polity writes there.

use polity_store::disk::{Disk, EntryKind, create_dir_durably};
use polity_store::{DriveError, Fault};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Content of the file `lock` in a folder made by Polity.
const MARK: &[u8] = b"polity\n";
/// The lock file of a folder, held by the process that works on it.
pub(crate) const LOCK: &str = "lock";
/// Retries for a held lock, and the wait before each.
const LOCK_TRIES: u32 = 3;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Maximum folder depth; Polity makes fewer levels.
const DEEPEST: usize = 16;

/// Whether Polity itself may have left an entry before anything started: its path from the folder, and whether it is a file.
pub(crate) type Ours = dyn Fn(&[&str], bool) -> bool;

/// Creates a folder, or takes an empty or own one, and locks it. All its entries must be `ours`. `refuse`: an error if the folder holds
/// something to continue.
pub(crate) fn claim(
    disk: &dyn Disk,
    path: &Path,
    ours: &Ours,
    refuse: &dyn Fn() -> Result<(), DriveError>,
) -> Result<Box<dyn Send>, DriveError> {
    if disk.exists(path).map_err(DriveError::disk(path))? {
        let inside = disk.list(path).map_err(|_| not_a_folder(path))?;
        refuse()?;
        let taken = |what: &str, why: &str| {
            Err(DriveError::Folder(format!(
                "{} is not empty (it holds {what}){why}; nothing was changed. Choose another --out",
                path.display()
            )))
        };
        if let Some(other) = foreign(disk, path, ours)? {
            return taken(&other, "");
        }
        if let Some(other) = inside.iter().find(|name| *name != LOCK)
            && !is_marked(disk, path)
        {
            return taken(other, ", and its file `lock` does not mark it as Polity's");
        }
        // If it is the only file, the lock may have been truncated while it was written.
        if inside.iter().any(|name| name == LOCK) {
            let lock = path.join(LOCK);
            let held = disk.read(&lock).map_err(DriveError::disk(&lock))?;
            if !MARK.starts_with(&held) {
                return taken(LOCK, ", which is not Polity's");
            }
        }
    }
    create_dir_durably(disk, path).map_err(|error| not_made(path, error))?;
    mark(disk, path)?;
    let lock = lock(disk, path)?;
    // Another process may have started or even finished something since the first check.
    refuse()?;
    Ok(lock)
}

fn not_a_folder(path: &Path) -> DriveError {
    DriveError::Folder(format!("{} already exists and is not a folder; choose another --out", path.display()))
}

/// Why a folder could not be made: the place is wrong, or the disk fails.
fn not_made(path: &Path, error: io::Error) -> DriveError {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let why = match error.kind() {
        NotFound => "its parent does not allow new folders",
        PermissionDenied => "the permission to write there is missing",
        NotADirectory => "a part of its path is a file",
        ReadOnlyFilesystem => "the disk there is read-only",
        InvalidFilename => "its name is not allowed there",
        _ => return DriveError::disk(path)(error),
    };
    DriveError::Input(format!("the folder {} cannot be made: {why}; choose another --out", path.display()))
}

/// Creates a folder for several runs, or takes an empty one or one created this way. Its contents stay.
pub fn claim_shared(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    if disk.exists(path).map_err(DriveError::disk(path))? && is_marked(disk, path) {
        return Ok(());
    }
    claim(disk, path, &|names, is_file| names == [LOCK] && is_file, &|| Ok(())).map(drop)
}

/// Creates a folder for files that no command continues, or takes one that is Polity's or whose files all have names that are `ours`. It
/// gets no mark and no lock.
pub fn claim_for_files(disk: &dyn Disk, path: &Path, ours: fn(&str) -> bool) -> Result<(), DriveError> {
    if disk.exists(path).map_err(DriveError::disk(path))? && !is_marked(disk, path) {
        disk.list(path).map_err(|_| not_a_folder(path))?;
        let is_ours = move |names: &[&str], is_file: bool| is_file && matches!(names, [name] if ours(name));
        if let Some(other) = foreign(disk, path, &is_ours)? {
            return Err(DriveError::Folder(format!(
                "{} is not empty (it holds {other}); nothing was changed. Choose another --out",
                path.display()
            )));
        }
    }
    create_dir_durably(disk, path).map_err(|error| not_made(path, error))
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

/// The first entry of a folder that is not one of `ours`, as a path relative to the folder.
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
        // Foreign folders are not searched.
        Ok(is_ours)
    })?;
    Ok(found)
}

/// Refuses a folder with entries other than regular files and folders: a link would lead outside, and a FIFO or device has no end.
/// `beyond`: a subfolder checked elsewhere, when its contents are opened.
pub(crate) fn only_regular(disk: &dyn Disk, path: &Path, beyond: Option<&str>) -> Result<(), DriveError> {
    match irregular(disk, path, beyond)?.into_iter().next() {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// All such entries, with advice.
pub(crate) fn irregular(disk: &dyn Disk, path: &Path, beyond: Option<&str>) -> Result<Vec<Fault>, DriveError> {
    let mut found = Vec::new();
    walk(disk, path, &mut |names, kind| {
        if let EntryKind::Other(what) = kind {
            let entry = names.iter().fold(path.to_path_buf(), |path, name| path.join(name));
            let what = format!(
                "it is {what}, but a folder of Polity's holds only regular files and folders; remove it, or put the \
                 file itself there"
            );
            found.push(Fault::new(entry, what));
        }
        Ok(beyond.is_none_or(|beyond| names != [beyond]))
    })?;
    Ok(found)
}

/// Called with an entry's path from a folder; returns whether to descend.
type Visit<'a> = dyn FnMut(&[&str], EntryKind) -> Result<bool, DriveError> + 'a;

/// Visits every entry of a folder, by name.
fn walk(disk: &dyn Disk, path: &Path, visit: &mut Visit<'_>) -> Result<(), DriveError> {
    fn down(disk: &dyn Disk, path: &Path, above: &mut Vec<String>, visit: &mut Visit<'_>) -> Result<(), DriveError> {
        let names = match disk.list(path) {
            // An active process may have removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(DriveError::disk(path))?,
        };
        if above.len() == DEEPEST {
            return Err(DriveError::Folder(format!(
                "{} is nested too deeply for a folder of Polity's; remove it",
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

/// Locks a folder for this process.
pub(crate) fn lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Send>, DriveError> {
    let mut held = disk.lock(&path.join(LOCK));
    // A command that checks whether a run is active holds the lock for a moment.
    for _ in 0..LOCK_TRIES {
        if !held.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        held = disk.lock(&path.join(LOCK));
    }
    held.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DriveError::Held(path.display().to_string()),
        _ => DriveError::Disk { path: path.join(LOCK), source: error },
    })
}
