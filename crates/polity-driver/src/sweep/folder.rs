//! The folder of a sweep: `sweep.json`, `inputs/`, `runs/ARM/SEED/`, `tables/`, CSV files of the same tables, and `digests.json`, which
//! lists these files. A design whose runs decide which others follow (a rule for seeds, a search) has
//! `arms.json`, too: the arms as they were run.

use super::arms::Arms;
use super::mark::{SWEEP_FILE, is_sweep};
use crate::run::{Build, InputEntry, LOCK, Prepared, as_read_back, claim, difference, lock, only_regular};
use polity_kernel::digest::{Digest, FileHash};
use polity_kernel::scenario::{Arm, Design, Factor};
use polity_kernel::tree::Node;
use polity_store::DriveError;
use polity_store::disk::{Disk, create_dir_durably, write_atomically};
use polity_store::listing::{DIGESTS_FILE, Listing};
use polity_store::tables::{Known, Reader};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The arms as they were run, of a design whose runs decide which others follow.
pub(super) const ARMS_FILE: &str = "arms.json";
/// Format version of the sweep folder.
const FORMAT: u32 = 2;

/// `sweep.json`: everything that determines a sweep, and its build.
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
    /// The build that started it.
    pub build: Build,
    /// The scenario with all edits, without its design.
    pub scenario: serde_json::Value,
    /// The expanded design.
    pub design: Design,
    /// Arms in the order of the design.
    pub arms: Vec<ArmEntry>,
    /// The files that runs read.
    pub inputs: Vec<InputEntry>,
    /// The models that runs call.
    pub models: Vec<String>,
    /// Whether answers come from simulated models.
    pub simulated: bool,
}

/// `arms.json`: what was run.
#[derive(Serialize, Deserialize)]
struct Ran {
    factors: Vec<Factor>,
    arms: Vec<Arm>,
    entries: Vec<ArmEntry>,
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

/// The folder name of an arm: the arm's own name if it is a plain word.
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
        let entry = |(at, arm): (usize, &Arm)| ArmEntry {
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
pub(crate) fn run_folder(sweep: &Path, arm: &ArmEntry, seed: u64) -> PathBuf {
    sweep.join("runs").join(&arm.folder).join(seed.to_string())
}

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepRun {
    /// Name of its arm.
    pub arm: String,
    /// Its seed.
    pub seed: u64,
    /// Its folder, which may not exist yet.
    pub folder: PathBuf,
}

/// All runs of a sweep, in the order of its design.
///
/// # Errors
/// [`DriveError::Folder`] if sweep.json was changed.
pub fn sweep_runs(disk: &dyn Disk, dir: &Path) -> Result<Vec<SweepRun>, DriveError> {
    let manifest = SweepManifest::of(disk, dir)?;
    let arms = manifest.design.arms.iter().zip(&manifest.arms);
    let of = |(arm, entry): (&Arm, &ArmEntry)| {
        let run = |seed: &u64| SweepRun { arm: arm.name.clone(), seed: *seed, folder: run_folder(dir, entry, *seed) };
        arm.seeds.iter().map(run).collect::<Vec<_>>()
    };
    Ok(arms.flat_map(of).collect())
}

/// Leftovers of a crash before sweep.json is written: they do not block another sweep.
fn left_by_a_crash(names: &[&str], is_file: bool) -> bool {
    let whole = |name: &str| name.strip_suffix(".tmp").unwrap_or(name).to_owned();
    match (names, is_file) {
        ([name], true) => *name == LOCK || *name == "sweep.json.tmp" || whole(name) == DIGESTS_FILE,
        (["inputs"], false) => true,
        (["inputs", name], true) => whole(name).parse::<Digest>().is_ok(),
        _ => false,
    }
}

/// The tables of a sweep.
///
/// # Errors
/// [`DriveError::Folder`] if sweep.json or digests.json was changed.
pub(crate) fn tables<'a>(disk: &'a dyn Disk, dir: &Path) -> Result<Reader<'a>, DriveError> {
    let (_, listing) = SweepManifest::checked(disk, dir)?;
    let mend = format!("`polity resume {}` rewrites the tables of the sweep from its runs", dir.display());
    let record = Some(dir.join(DIGESTS_FILE));
    let known = Known { parts: listing.parts(), mend, record, ..Known::default() };
    Ok(Reader::new(disk, &dir.join("tables"), known, None))
}

/// An opened sweep folder; holds its lock, unless it was opened only for its runs.
pub(super) struct SweepFolder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Option<Box<dyn Send>>,
}

impl SweepFolder {
    /// Creates a new folder, or takes an empty one.
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
        let lock = claim(disk.as_ref(), path, &left_by_a_crash, &refuse)?;
        let inputs = path.join("inputs");
        create_dir_durably(disk.as_ref(), &inputs).map_err(DriveError::disk(&inputs))?;
        let mut listing = Listing::default();
        for file in &base.files {
            let path = inputs.join(&file.entry.digest);
            listing.add(format!("inputs/{}", file.entry.digest), &file.bytes);
            write_atomically(disk.as_ref(), &path, &file.bytes).map_err(DriveError::disk(&path))?;
        }
        let file = path.join(SWEEP_FILE);
        let mut text = serde_json::to_string_pretty(manifest)
            .map_err(|e| DriveError::Folder(format!("{} cannot be written: {e}", file.display())))?;
        text.push('\n');
        listing.add(SWEEP_FILE, text.as_bytes());
        listing.write(disk.as_ref(), path)?;
        // Written last: a folder that has it can be resumed.
        write_atomically(disk.as_ref(), &file, text.as_bytes()).map_err(DriveError::disk(&file))?;
        Ok(SweepFolder { disk, path: path.to_path_buf(), _lock: Some(lock) })
    }

    /// Opens a folder to continue its sweep.
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<(SweepFolder, SweepManifest), DriveError> {
        let (manifest, _) = SweepManifest::begun(disk.as_ref(), path)?;
        let lock = lock(disk.as_ref(), path)?;
        Ok((SweepFolder { disk, path: path.to_path_buf(), _lock: Some(lock) }, manifest))
    }

    /// Opens a folder to make its runs, beside other processes: the lock guards only its tables.
    pub(super) fn open_for_runs(disk: Arc<dyn Disk>, path: &Path) -> Result<(SweepFolder, SweepManifest), DriveError> {
        let (manifest, _) = SweepManifest::begun(disk.as_ref(), path)?;
        Ok((SweepFolder { disk, path: path.to_path_buf(), _lock: None }, manifest))
    }

    /// Some arms, ready to run, from the folder alone.
    pub(super) fn prepared(&self, manifest: &SweepManifest, arms: &[Arm]) -> Result<Vec<Prepared>, DriveError> {
        let read = |wish: &polity_kernel::scenario::FileWish, _: &polity_kernel::tree::Origin| {
            let entry = manifest.inputs.iter().find(|entry| entry.path == wish.path);
            let entry = entry.ok_or_else(|| format!("{} does not hold this file", self.path.display()))?;
            // The name is the digest of the bytes, so it cannot be a path to elsewhere.
            let name = entry.digest.parse::<Digest>()?.to_string();
            let path = self.path.join("inputs").join(&name);
            let bytes = self.disk.read(&path).map_err(|error| error.to_string())?;
            match FileHash::of(&bytes).to_string() == name {
                true => Ok((PathBuf::from(&wish.path), bytes)),
                false => Err(format!("{} was changed after the sweep began; restore the original", path.display())),
            }
        };
        let base = Prepared::nothing(manifest.name.clone(), manifest.source.clone());
        let mut base = base.with(Node::from_json(&manifest.scenario), &read)?;
        let mut prepared = Vec::new();
        for arm in arms {
            let ready = base.with(arm.applied(&base.tree)?, &read)?;
            base.share(&ready);
            prepared.push(ready);
        }
        Ok(prepared)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a sweep that cannot continue.
    pub(super) fn discard(&self) -> Result<(), DriveError> {
        let runs = self.path.join("runs");
        if self.disk.exists(&runs).map_err(DriveError::disk(&runs))? {
            self.disk.remove_dir_all(&runs).map_err(DriveError::disk(&runs))?;
        }
        // Removed last: after a kill before that, the sweep can be resumed.
        let file = self.path.join(SWEEP_FILE);
        self.disk.remove_file(&file).map_err(DriveError::disk(&file))?;
        self.disk.sync_dir(&self.path).map_err(DriveError::disk(&self.path))
    }
}

impl SweepManifest {
    /// Whether what was run is decided by the runs themselves, so that `arms.json` says it.
    pub(super) fn decides(&self) -> bool {
        self.design.until.is_some() || self.design.search.is_some()
    }

    /// The text of `arms.json`.
    pub(super) fn arms_file(&self) -> Result<Vec<u8>, DriveError> {
        let (factors, arms) = (self.design.factors.clone(), self.design.arms.clone());
        let ran = Ran { factors, arms, entries: self.arms.clone() };
        let text = serde_json::to_string_pretty(&ran).map(|text| text + "\n");
        text.map(String::into_bytes)
            .map_err(|error| DriveError::Folder(format!("{ARMS_FILE} cannot be written: {error}")))
    }

    /// Takes the arms as they were run from `arms.json`, which is written when all runs have ended. A kill may have left the folder without
    /// it.
    fn take_arms(&mut self, disk: &dyn Disk, dir: &Path, listing: &Listing) -> Result<(), DriveError> {
        let path = dir.join(ARMS_FILE);
        if !listing.files().any(|file| file == ARMS_FILE) || !disk.exists(&path).map_err(DriveError::disk(&path))? {
            return Ok(());
        }
        let wrong = |what: &dyn std::fmt::Display| {
            DriveError::Folder(format!("{} {what}; restore the original", path.display()))
        };
        if listing.fault(disk, dir, ARMS_FILE)?.is_some() {
            return Err(wrong(&"was changed after the sweep ended"));
        }
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let ran: Ran = serde_json::from_slice(&bytes).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        (self.design.factors, self.design.arms, self.arms) = (ran.factors, ran.arms, ran.entries);
        match self.matches() {
            true => Ok(()),
            false => Err(wrong(&"was changed: its arms do not match their folders")),
        }
    }

    /// Adds the entry of the next arm of the design.
    pub(super) fn add_entry(&mut self, agents: u32) {
        let at = self.arms.len();
        if let Some(arm) = self.design.arms.get(at) {
            self.arms.push(ArmEntry { name: arm.name.clone(), folder: folder_name(&arm.name, at), agents });
        }
    }

    /// The first difference from the sweep in `there`, of all that determines its runs: where it is, and both values.
    pub(super) fn differs_from(&self, there: &SweepManifest) -> Option<String> {
        let inputs = |manifest: &SweepManifest| -> serde_json::Map<String, serde_json::Value> {
            manifest.inputs.iter().map(|entry| (entry.path.clone(), entry.digest.clone().into())).collect()
        };
        let determining = |manifest: &SweepManifest| {
            let SweepManifest { scenario, design, .. } = manifest;
            serde_json::json!({ "scenario": scenario, "design": design, "inputs": inputs(manifest) })
        };
        difference(&determining(there), &as_read_back(&determining(self)))
    }

    /// Whether every arm has its entry. A folder name that does not match its arm could lead anywhere.
    fn matches(&self) -> bool {
        let named = |(at, arm): (usize, &ArmEntry)| arm.folder == folder_name(&arm.name, at);
        self.arms.len() == self.design.arms.len() && self.arms.iter().enumerate().all(named)
    }

    /// Reads `sweep.json`, and verifies it.
    pub fn of(disk: &dyn Disk, dir: &Path) -> Result<SweepManifest, DriveError> {
        Ok(Self::checked(disk, dir)?.0)
    }

    /// The same, with the other required contents of the folder.
    pub(crate) fn checked(disk: &dyn Disk, dir: &Path) -> Result<(SweepManifest, Listing), DriveError> {
        let (mut manifest, listing) = Self::begun(disk, dir)?;
        if manifest.decides() {
            manifest.take_arms(disk, dir, &listing)?;
        }
        Ok((manifest, listing))
    }

    /// The same, as it was when the sweep began.
    fn begun(disk: &dyn Disk, dir: &Path) -> Result<(SweepManifest, Listing), DriveError> {
        /// Readable in any format version.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            build: Build,
        }
        only_regular(disk, dir, Some("runs"))?;
        let path = dir.join(SWEEP_FILE);
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let wrong = |what: &dyn std::fmt::Display| {
            Err(DriveError::Folder(format!("{} {what}; restore the original", path.display())))
        };
        let head: Head = match serde_json::from_slice(&bytes) {
            Ok(head) => head,
            Err(error) => return wrong(&format!("cannot be read: {error}")),
        };
        if head.format != FORMAT {
            return Err(DriveError::Folder(format!(
                "{} has sweep format {}, but this build reads {FORMAT}; use the build that began the sweep (version \
                 {}) or a newer one, or run the sweep again",
                path.display(),
                head.format,
                head.build.version
            )));
        }
        let Some(listing) = Listing::read(disk, dir)? else {
            return Err(DriveError::Folder(format!(
                "{} is gone, so the sweep cannot be checked for changes; restore it from a copy",
                dir.join(DIGESTS_FILE).display()
            )));
        };
        if listing.fault(disk, dir, SWEEP_FILE)?.is_some() {
            return wrong(&"was changed after the sweep began");
        }
        let manifest: SweepManifest = match serde_json::from_slice(&bytes) {
            Ok(manifest) => manifest,
            Err(error) => return wrong(&format!("cannot be read: {error}")),
        };
        match manifest.matches() {
            true => Ok((manifest, listing)),
            false => wrong(&"was changed: its arms do not match its design"),
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
            // A design cannot contain an empty name.
            assert!(strange.is_empty() || folder_name(strange, 3) == "_3", "{strange}");
        }
    }
}
