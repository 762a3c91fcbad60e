//! The run folder: `manifest.json`, `journal/`, `tables/`, `inputs/`, `report.html`.

use super::{Manifest, Prepared};
use crate::DriveError;
use crate::disk::{Disk, create_dir_durably, write_atomically};
use crate::sweep::is_sweep;
use polity_kernel::scenario::{Inputs, Scenario};
use polity_kernel::tree::Node;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the lock of a folder that is held is tried for again, and how long is waited before.
const LOCK_TRIES: u32 = 3;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// An opened run folder; holds its lock unless it is only read.
pub struct Folder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Option<Box<dyn Send>>,
}

/// Makes a folder, or takes one that holds nothing but `ours`, and locks it. `refuse`: an error if it holds something to go on with.
pub(crate) fn claim(
    disk: &dyn Disk,
    path: &Path,
    ours: &[&str],
    refuse: &dyn Fn() -> Result<(), DriveError>,
) -> Result<Box<dyn Send>, DriveError> {
    let error = |e| DriveError::disk(path)(e);
    if disk.exists(path).map_err(error)? {
        let inside = disk.list(path).map_err(|_| {
            DriveError::Folder(format!("{} is there already and is no folder; choose another --out", path.display()))
        })?;
        refuse()?;
        if let Some(other) = inside.iter().find(|name| !ours.contains(&name.as_str()) && !name.ends_with(".tmp")) {
            return Err(DriveError::Folder(format!(
                "{} is not empty (it holds {other}); choose another --out",
                path.display()
            )));
        }
    }
    create_dir_durably(disk, path).map_err(error)?;
    let lock = lock(disk, path)?;
    // Another process may have begun something, and even ended it, since the first look.
    refuse()?;
    Ok(lock)
}

/// Holds a folder for this process alone.
pub(crate) fn lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn Send>, DriveError> {
    let mut held = disk.lock(&path.join("lock"));
    // A command that looks whether a run is under way holds the lock for a moment.
    for _ in 0..LOCK_TRIES {
        if !held.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        held = disk.lock(&path.join("lock"));
    }
    held.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DriveError::Folder(format!(
            "another process works on {}; wait until it has ended, or stop it",
            path.display()
        )),
        _ => DriveError::Disk { path: path.join("lock"), source: error },
    })
}

impl Folder {
    /// Makes a new folder, or takes an empty one.
    pub fn create(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        let error = |e| DriveError::disk(path)(e);
        // What a crash left before the manifest was written is no run.
        let ours = ["journal", "tables", "inputs", "lock"];
        let lock = claim(disk.as_ref(), path, &ours, &|| Self::refuse_a_run(disk.as_ref(), path))?;
        for part in ["journal", "tables", "inputs"] {
            let dir = path.join(part);
            if disk.exists(&dir).map_err(error)? {
                disk.remove_dir_all(&dir).map_err(error)?;
            }
            create_dir_durably(disk.as_ref(), &dir).map_err(error)?;
        }
        Ok(Folder { disk, path: path.to_path_buf(), _lock: Some(lock) })
    }

    /// Opens a folder to go on with its run.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        let folder = Folder::read(disk, path)?;
        let lock = lock(folder.disk.as_ref(), path)?;
        Ok(Folder { _lock: Some(lock), ..folder })
    }

    /// Opens a folder to read it.
    pub fn read(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        let manifest = path.join("manifest.json");
        if !disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
            let what = if is_sweep(disk.as_ref(), path) {
                "is a sweep; name one of its runs, a folder below its folder runs"
            } else if disk.exists(path).map_err(DriveError::disk(path))? {
                "holds no run that began (there is no manifest.json)"
            } else {
                "does not exist"
            };
            return Err(DriveError::Folder(format!("{} {what}", path.display())));
        }
        Ok(Folder { disk, path: path.to_path_buf(), _lock: None })
    }

    fn refuse_a_run(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
        let manifest = path.join("manifest.json");
        match disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
            true => Err(DriveError::Folder(format!(
                "{} already holds a run; resume it (polity resume {}), or choose another --out",
                path.display(),
                path.display()
            ))),
            false => Ok(()),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    /// Its tables.
    #[must_use]
    pub fn tables(&self) -> PathBuf {
        self.path.join("tables")
    }

    pub(super) fn write_inputs(&self, prepared: &Prepared) -> Result<(), DriveError> {
        for file in &prepared.files {
            let path = self.path.join("inputs").join(&file.entry.stored);
            write_atomically(self.disk.as_ref(), &path, &file.bytes).map_err(DriveError::disk(&path))?;
        }
        Ok(())
    }

    pub(super) fn write_manifest(&self, manifest: &Manifest) -> Result<(), DriveError> {
        let path = self.path.join("manifest.json");
        let mut text = serde_json::to_string_pretty(manifest)
            .map_err(|e| DriveError::Folder(format!("the manifest can not be written: {e}")))?;
        text.push('\n');
        write_atomically(self.disk.as_ref(), &path, text.as_bytes()).map_err(DriveError::disk(&path))
    }

    /// The manifest.
    pub fn manifest(&self) -> Result<Manifest, DriveError> {
        let path = self.path.join("manifest.json");
        let bytes = self.disk.read(&path).map_err(DriveError::disk(&path))?;
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|e| DriveError::Folder(format!("{} can not be read: {e}", path.display())))?;
        if manifest.format > super::manifest::FORMAT {
            return Err(DriveError::Folder(format!(
                "{} is of run format {}, this build reads up to {}; use a newer polity",
                path.display(),
                manifest.format,
                super::manifest::FORMAT
            )));
        }
        if manifest.format < super::manifest::FORMAT {
            return Err(DriveError::Folder(format!(
                "{} is of run format {}, this build reads {}: its journal or its snapshots were written in another form. Use the build that began the \
                 run (version {}), or run the scenario again",
                path.display(),
                manifest.format,
                super::manifest::FORMAT,
                manifest.build.version
            )));
        }
        Ok(manifest)
    }

    /// The scenario and inputs of the run, from the folder alone.
    pub fn prepared(&self, manifest: &Manifest) -> Result<Prepared, DriveError> {
        let tree = Node::from_json(&manifest.scenario);
        let scenario = Scenario::read(&tree)?;
        let mut inputs = Inputs::default();
        let mut loaded = Vec::new();
        for wish in scenario.files() {
            let entry = manifest.inputs.iter().find(|entry| entry.path == wish.path).ok_or_else(|| {
                DriveError::Folder(format!("{} does not hold the input {}", self.path.display(), wish.path))
            })?;
            let path = self.path.join("inputs").join(&entry.stored);
            let bytes = self.disk.read(&path).map_err(DriveError::disk(&path))?;
            if crate::drive::digest_of(&bytes).to_string() != entry.digest {
                return Err(DriveError::Folder(format!(
                    "{} was changed after the run began; put it back as it was",
                    path.display()
                )));
            }
            super::prepare::take_in(&mut inputs, &wish, &path, &bytes)
                .map_err(|error| DriveError::Input(error.to_string()))?;
            loaded.push(super::prepare::InputFile { entry: entry.clone(), bytes: Arc::new(bytes) });
        }
        let (name, source) = (manifest.name.clone(), manifest.source.clone());
        Ok(Prepared { tree, name, source, inputs, edits: manifest.edits.clone(), design: None, files: loaded })
    }
}
