//! The folder of a sweep: `sweep.json`, `inputs/`, `runs/ARM/SEED/`, `tables/`, and CSV files of the same tables.

use super::Arms;
use crate::DriveError;
use crate::disk::{Disk, create_dir_durably, write_atomically};
use crate::run::{Build, InputEntry, Prepared, claim, lock};
use polity_kernel::scenario::Design;
use polity_kernel::tree::Node;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the sweep folder.
const FORMAT: u32 = 1;

/// What makes a folder a sweep.
pub const SWEEP_FILE: &str = "sweep.json";

/// `sweep.json`: everything that determines a sweep, and what made it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepManifest {
    /// Version of the sweep folder.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// The scenario's file, as given.
    pub source: String,
    /// The flags that changed the scenario, as in a run's manifest.
    #[serde(default)]
    pub edits: Vec<String>,
    /// The build that began it.
    pub build: Build,
    /// The scenario with all edits, without its design.
    pub scenario: serde_json::Value,
    /// The design, worked out.
    pub design: Design,
    /// Arms in the order of the design.
    pub arms: Vec<ArmEntry>,
    /// The files that runs read.
    pub inputs: Vec<InputEntry>,
    /// The models that runs ask.
    pub models: Vec<String>,
    /// Whether answers come from simulated models.
    pub simulated: bool,
}

/// An arm in `sweep.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmEntry {
    /// Its name.
    pub name: String,
    /// Its folder in `runs/`.
    pub folder: String,
    /// Agents at the start of its runs.
    pub agents: u32,
}

/// A folder's name for an arm: the arm's own where that is plain.
fn folder_name(name: &str, at: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._=,+".contains(c);
    let fits = name.len() <= 120 && !name.starts_with(['.', '_', '-']) && name.chars().all(plain);
    if fits { name.to_string() } else { format!("_{at}") }
}

impl SweepManifest {
    pub(super) fn new(arms: &Arms) -> Result<SweepManifest, DriveError> {
        let (mut models, mut simulated) = (Vec::new(), false);
        for survey in &arms.surveys {
            models.extend(survey.models.iter().cloned());
            simulated |= survey.simulated;
        }
        let mut seen = BTreeSet::new();
        models.retain(|model| seen.insert(model.clone()));
        let entry = |(at, arm): (usize, &polity_kernel::scenario::Arm)| ArmEntry {
            name: arm.name.clone(),
            folder: folder_name(&arm.name, at),
            agents: arms.surveys.get(at).map_or(0, |survey| survey.agents),
        };
        let inputs = arms.base.files.iter().map(|file| file.entry.clone());
        Ok(SweepManifest {
            format: FORMAT,
            name: arms.base.name.clone(),
            source: arms.base.source.clone(),
            edits: arms.base.edits.clone(),
            build: Build::this(),
            scenario: arms.base.tree.to_json(),
            arms: arms.design.arms.iter().enumerate().map(entry).collect(),
            design: arms.design.clone(),
            inputs: inputs.collect(),
            models,
            simulated,
        })
    }
}

/// The folder of a run of the sweep in `sweep`.
pub(super) fn run_folder(sweep: &Path, arm: &ArmEntry, seed: u64) -> PathBuf {
    sweep.join("runs").join(&arm.folder).join(seed.to_string())
}

/// Whether a folder holds a sweep.
pub fn is_sweep(disk: &dyn Disk, dir: &Path) -> bool {
    disk.exists(&dir.join(SWEEP_FILE)).unwrap_or(false)
}

/// An opened sweep folder; holds its lock.
pub(super) struct SweepFolder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Box<dyn Send>,
}

impl SweepFolder {
    /// Makes a new folder, or takes an empty one.
    pub(super) fn create(
        disk: Arc<dyn Disk>,
        path: &Path,
        manifest: &SweepManifest,
        base: &Prepared,
    ) -> Result<SweepFolder, DriveError> {
        let refuse = || match is_sweep(disk.as_ref(), path) {
            true => Err(DriveError::Folder(format!(
                "{} already holds a sweep; resume it (polity resume {}), or choose another --out",
                path.display(),
                path.display()
            ))),
            false => Ok(()),
        };
        // What a crash left before sweep.json was written is no sweep.
        let lock = claim(disk.as_ref(), path, &["inputs", "lock"], &refuse)?;
        let inputs = path.join("inputs");
        create_dir_durably(disk.as_ref(), &inputs).map_err(DriveError::disk(&inputs))?;
        for file in &base.files {
            let path = inputs.join(&file.entry.digest);
            write_atomically(disk.as_ref(), &path, &file.bytes).map_err(DriveError::disk(&path))?;
        }
        let file = path.join(SWEEP_FILE);
        let mut text = serde_json::to_string_pretty(manifest)
            .map_err(|e| DriveError::Folder(format!("{} can not be written: {e}", file.display())))?;
        text.push('\n');
        // It comes last: a folder that has one can be resumed.
        write_atomically(disk.as_ref(), &file, text.as_bytes()).map_err(DriveError::disk(&file))?;
        Ok(SweepFolder { disk, path: path.to_path_buf(), _lock: lock })
    }

    /// Opens a folder to go on with its sweep.
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<(SweepFolder, SweepManifest), DriveError> {
        let manifest = SweepManifest::of(disk.as_ref(), path)?;
        let lock = lock(disk.as_ref(), path)?;
        Ok((SweepFolder { disk, path: path.to_path_buf(), _lock: lock }, manifest))
    }

    /// The arms, ready to be run, from the folder alone.
    pub(super) fn prepared(&self, manifest: &SweepManifest) -> Result<Vec<Prepared>, DriveError> {
        let read = |wish: &polity_kernel::scenario::FileWish, _: &polity_kernel::tree::Origin| {
            let entry = manifest.inputs.iter().find(|entry| entry.path == wish.path);
            let entry = entry.ok_or_else(|| format!("{} does not hold this file", self.path.display()))?;
            let path = self.path.join("inputs").join(&entry.digest);
            let bytes = self.disk.read(&path).map_err(|error| error.to_string())?;
            match crate::drive::digest_of(&bytes).to_string() == entry.digest {
                true => Ok((PathBuf::from(&wish.path), bytes)),
                false => Err(format!("{} was changed after the sweep began; put it back as it was", path.display())),
            }
        };
        let base = Prepared::nothing(manifest.name.clone(), manifest.source.clone());
        let mut base = base.with(Node::from_json(&manifest.scenario), &read)?;
        let mut prepared = Vec::new();
        for arm in &manifest.design.arms {
            let ready = base.with(arm.applied(&base.tree)?, &read)?;
            base.share(&ready);
            prepared.push(ready);
        }
        Ok(prepared)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes a sweep that can not go on away again.
    pub(super) fn discard(&self) -> Result<(), DriveError> {
        let runs = self.path.join("runs");
        if self.disk.exists(&runs).map_err(DriveError::disk(&runs))? {
            self.disk.remove_dir_all(&runs).map_err(DriveError::disk(&runs))?;
        }
        // It goes last: what a kill leaves before is a sweep that can be resumed.
        let file = self.path.join(SWEEP_FILE);
        self.disk.remove_file(&file).map_err(DriveError::disk(&file))?;
        self.disk.sync_dir(&self.path).map_err(DriveError::disk(&self.path))
    }
}

impl SweepManifest {
    /// Reads `sweep.json`.
    pub fn of(disk: &dyn Disk, dir: &Path) -> Result<SweepManifest, DriveError> {
        let path = dir.join(SWEEP_FILE);
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let manifest: SweepManifest = serde_json::from_slice(&bytes)
            .map_err(|e| DriveError::Folder(format!("{} can not be read: {e}", path.display())))?;
        if manifest.format > FORMAT {
            return Err(DriveError::Folder(format!(
                "{} is of sweep format {}, this build reads up to {FORMAT}; use a newer polity",
                path.display(),
                manifest.format
            )));
        }
        match manifest.arms.len() == manifest.design.arms.len() {
            true => Ok(manifest),
            false => Err(DriveError::Folder(format!("{} was changed: its arms do not fit its design", path.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn arms_have_folders_that_every_disk_takes() {
        assert_eq!(folder_name("world.fraction=0.5,mean=1", 3), "world.fraction=0.5,mean=1");
        for strange in ["a/b", "..", "a b", "_3", "", "é", &"x".repeat(500)] {
            // An empty name can not come from a design.
            assert!(strange.is_empty() || folder_name(strange, 3) == "_3", "{strange}");
        }
    }
}
