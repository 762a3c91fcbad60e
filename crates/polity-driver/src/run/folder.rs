//! The run folder: `manifest.json`, `journal/`, `tables/`, `inputs/`, `report.html`.

use super::claim::{self, LOCK};
use super::inventory::Inventory;
use super::manifest::{FORMAT, Manifest};
use super::prepare::{InputFile, Prepared};
use crate::sweep::is_sweep;
use polity_kernel::digest::FileHash;
use polity_kernel::journal::segment_number;
use polity_kernel::scenario::{Inputs, Scenario};
use polity_kernel::tree::Node;
use polity_models::toolkits::FILES;
use polity_store::disk::{Disk, EntryKind, create_dir_durably, write_atomically};
use polity_store::snapshots::Snapshots;
use polity_store::{DriveError, Fault};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open run folder; holds its lock unless it is only read.
pub struct Folder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Option<Box<dyn Send>>,
}

/// Leftovers of a crash before the manifest is written: they do not block another run.
fn left_by_a_crash(names: &[&str], is_file: bool) -> bool {
    match (names, is_file) {
        ([LOCK | "manifest.json.tmp"], true) | (["journal" | "tables" | "inputs"], false) => true,
        (["journal", name], true) => segment_number(name).is_some(),
        (["inputs", name], true) => {
            let number = name.split_once('-').map(|(number, _)| number);
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        }
        _ => false,
    }
}

/// Refuses a folder without a run, or with links and other irregular entries.
fn is_run(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
    let manifest = path.join("manifest.json");
    if !disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
        let what = if is_sweep(disk, path) {
            "is a sweep; name one of its runs, a folder inside its folder `runs`"
        } else if disk.exists(path).map_err(DriveError::disk(path))? {
            "holds no run that began (there is no manifest.json)"
        } else {
            "does not exist"
        };
        return Err(DriveError::Folder(format!("{} {what}", path.display())));
    }
    claim::only_regular(disk, path, None)
}

/// The manifest of a run, and the required contents of its folder, for readers.
pub(crate) fn inventory(disk: &dyn Disk, run: &Path) -> Result<(Manifest, Inventory), DriveError> {
    is_run(disk, run)?;
    let file = manifest_file(disk, run)?;
    let inventory = Inventory::read(disk, &run.join("journal"))?;
    Ok((inventory.verified(run, &file)?, inventory))
}

/// The text of the manifest's file, if it has this build's format. [`Inventory::verified`] compares it with the journal.
pub(crate) fn manifest_file(disk: &dyn Disk, run: &Path) -> Result<String, DriveError> {
    /// Readable in any format version.
    #[derive(Deserialize)]
    struct Head {
        format: u32,
        build: super::Build,
    }
    let path = run.join("manifest.json");
    let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
    let wrong = |why: &dyn std::fmt::Display| {
        DriveError::Folder(format!("{} cannot be read: {why}; restore the original", path.display()))
    };
    let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
    let Head { format, build } = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if format > FORMAT {
        return Err(DriveError::Folder(format!(
            "{} has run format {format}, but this build reads up to {FORMAT}; use a newer polity",
            path.display()
        )));
    }
    if format < FORMAT {
        return Err(DriveError::Folder(format!(
            "{} has run format {format}, but this build reads {FORMAT}: its journal or its snapshots were written in a \
             different form. Use the build that began the run (version {}), or run the scenario again",
            path.display(),
            build.version
        )));
    }
    Ok(text)
}

impl Folder {
    /// Creates a new folder, or takes an empty one, or one left by a crash before its run started.
    pub fn create(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        let refuse = || Self::refuse_a_run(disk.as_ref(), path);
        let lock = claim::claim(disk.as_ref(), path, &left_by_a_crash, &refuse)?;
        for part in ["journal", "tables", "inputs"] {
            let dir = path.join(part);
            create_dir_durably(disk.as_ref(), &dir).map_err(DriveError::disk(&dir))?;
            // All of them were just checked to be Polity's own.
            for name in disk.list(&dir).map_err(DriveError::disk(&dir))? {
                let file = dir.join(name);
                disk.remove_file(&file).map_err(DriveError::disk(&file))?;
            }
            disk.sync_dir(&dir).map_err(DriveError::disk(&dir))?;
        }
        Ok(Folder { disk, path: path.to_path_buf(), _lock: Some(lock) })
    }

    /// Opens a folder to continue its run.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        let folder = Folder::read(disk, path)?;
        let lock = claim::lock(folder.disk.as_ref(), path)?;
        Ok(Folder { _lock: Some(lock), ..folder })
    }

    /// Opens a folder to read it.
    pub fn read(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, DriveError> {
        is_run(disk.as_ref(), path)?;
        Ok(Folder { disk, path: path.to_path_buf(), _lock: None })
    }

    fn refuse_a_run(disk: &dyn Disk, path: &Path) -> Result<(), DriveError> {
        let manifest = path.join("manifest.json");
        match disk.exists(&manifest).map_err(DriveError::disk(&manifest))? {
            true => Err(DriveError::Begun(path.display().to_string())),
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

    /// Removes leftovers of a kill beside the journal: unrecorded or unneeded snapshots, and incomplete files.
    pub(super) fn tidy(&self, inventory: &Inventory) -> Result<(), DriveError> {
        let dir = self.journal();
        for name in self.disk.list(&dir).map_err(DriveError::disk(&dir))? {
            if name.ends_with(".tmp") {
                let path = dir.join(name);
                self.disk.remove_file(&path).map_err(DriveError::disk(&path))?;
            }
        }
        Snapshots::new(self.disk.clone(), dir).tidy(&inventory.named())
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

    /// Copies the files of the toolkits of another run.
    pub(super) fn copy_tools(&self, from: &Path) -> Result<(), DriveError> {
        let from = from.join(FILES);
        match self.disk.exists(&from).map_err(DriveError::disk(&from))? {
            true => copy_folder(self.disk.as_ref(), &from, &self.path.join(FILES)),
            false => Ok(()),
        }
    }

    /// `text`: as in the journal.
    pub(super) fn write_manifest(&self, text: &str) -> Result<(), DriveError> {
        let path = self.path.join("manifest.json");
        write_atomically(self.disk.as_ref(), &path, text.as_bytes()).map_err(DriveError::disk(&path))
    }

    /// The manifest, which the journal holds too.
    pub fn manifest(&self) -> Result<Manifest, DriveError> {
        Ok(inventory(self.disk.as_ref(), &self.path)?.0)
    }

    /// The run's files in the folder `inputs`, and the faults there: missing, changed or unknown files.
    pub(crate) fn inputs(&self, manifest: &Manifest) -> Result<(Vec<InputFile>, Vec<Fault>), DriveError> {
        let dir = self.path.join("inputs");
        let mut names: BTreeSet<String> = match self.disk.list(&dir) {
            Ok(names) => names.into_iter().collect(),
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(DriveError::disk(&dir)(error)),
        };
        let (mut files, mut faults) = (Vec::new(), Vec::new());
        for entry in &manifest.inputs {
            let path = dir.join(&entry.stored);
            // A stored name is that of an entry in the folder, never a path.
            let there = names.remove(&entry.stored);
            if !there || self.disk.kind(&path).map_err(DriveError::disk(&path))? != EntryKind::File {
                let what = format!("it is gone: the run reads it as {}. Restore it from a copy", entry.path);
                faults.push(Fault::new(path, what));
                continue;
            }
            let bytes = self.disk.read(&path).map_err(DriveError::disk(&path))?;
            match bytes.len() as u64 == entry.bytes && FileHash::of(&bytes).to_string() == entry.digest {
                true => files.push(InputFile { entry: entry.clone(), bytes: Arc::new(bytes) }),
                false => faults.push(Fault::new(path, "it was changed after the run began; restore the original")),
            }
        }
        let more =
            names.into_iter().map(|name| Fault::new(dir.join(name), "the run does not read this file; remove it"));
        faults.extend(more);
        Ok((files, faults))
    }

    /// The scenario and inputs of the run, from the folder alone.
    pub fn prepared(&self, manifest: &Manifest) -> Result<Prepared, DriveError> {
        let tree = Node::from_json(&manifest.scenario);
        let scenario = Scenario::read(&tree)?;
        let (files, faults) = self.inputs(manifest)?;
        if let Some(fault) = faults.into_iter().next() {
            return Err(fault.into());
        }
        let mut inputs = Inputs { tools: manifest.listed.clone(), ..Inputs::default() };
        let mut loaded = Vec::new();
        for wish in scenario.files() {
            let file = files.iter().find(|file| file.entry.path == wish.path).ok_or_else(|| {
                DriveError::Folder(format!("{} does not hold the input {}", self.path.display(), wish.path))
            })?;
            let path = self.path.join("inputs").join(&file.entry.stored);
            super::prepare::take_in(&mut inputs, &wish, &path, &file.bytes)
                .map_err(|error| DriveError::Input(error.to_string()))?;
            loaded.push(file.clone());
        }
        let (name, source) = (manifest.name.clone(), manifest.source.clone());
        Ok(Prepared { tree, name, source, inputs, edits: manifest.edits.clone(), design: None, files: loaded })
    }
}

/// Copies a folder with the folders in it. Whatever is neither a file nor a folder is left out.
fn copy_folder(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), DriveError> {
    disk.create_dir_all(to).map_err(DriveError::disk(to))?;
    for name in disk.list(from).map_err(DriveError::disk(from))? {
        let (old, new) = (from.join(&name), to.join(&name));
        match disk.kind(&old).map_err(DriveError::disk(&old))? {
            EntryKind::Folder => copy_folder(disk, &old, &new)?,
            EntryKind::File => {
                let bytes = disk.read(&old).map_err(DriveError::disk(&old))?;
                write_atomically(disk, &new, &bytes).map_err(DriveError::disk(&new))?;
            }
            EntryKind::Other(_) => {}
        }
    }
    Ok(())
}
