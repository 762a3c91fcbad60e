//! Verifies that a folder is as Polity wrote it: a run, a sweep, a comparison, or a folder of any of these. Nothing is recomputed (that
//! is a replay): every file is compared with the run's journal, or with `digests.json` in other folders.

use crate::comparison::is_comparison;
use crate::control::under_way;
use crate::drive::LEARNED;
use crate::run::{Folder, Inventory, LOCK, Manifest, irregular, is_marked, manifest_file};
use crate::sweep::{SWEEP_FILE, SweepManifest, is_sweep, run_folder};
use polity_kernel::event::Part;
use polity_kernel::journal::segment_number;
use polity_models::toolkits::FILES;
use polity_store::disk::{Disk, EntryKind};
use polity_store::listing::{DIGESTS_FILE, Listing};
use polity_store::snapshots::{Snapshots, is_snapshot};
use polity_store::tables::Span;
use polity_store::{DriveError, Fault};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often an active run is checked again, at most, and the wait before: its files change between checks.
const LOOKS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum folder depth.
const DEEPEST: u32 = 16;
/// Contents of a run's folder besides its journal, tables and inputs.
const BESIDE: [&str; 11] = [
    "manifest.json",
    LOCK,
    "journal",
    "tables",
    "inputs",
    "report.html",
    "control",
    "people",
    "batches",
    LEARNED,
    FILES,
];

/// The result for a folder.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    /// The folder.
    pub folder: PathBuf,
    /// `run`, `sweep`, or `runs` for a comparison and other folders of runs.
    pub kind: &'static str,
    /// Its contents, in words.
    pub words: String,
    /// What was changed after it was written.
    pub faults: Vec<Fault>,
    /// Possible leftovers of a kill, and files that are not Polity's; not damage.
    pub notes: Vec<String>,
    /// The run's digest, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Verified {
    fn new(folder: &Path, kind: &'static str) -> Self {
        let folder = folder.to_path_buf();
        Verified { folder, kind, words: String::new(), faults: Vec::new(), notes: Vec::new(), digest: None }
    }

    fn fault(&mut self, path: impl Into<PathBuf>, what: impl Into<String>) {
        let (path, what) = (path.into(), what.into());
        // Errors name their file as well.
        let named = format!("{}", path.display());
        let short = what.strip_prefix(&named).map(|rest| rest.trim_start_matches([':', ' ']).to_string());
        self.faults.push(Fault { path, what: short.unwrap_or(what) });
    }

    fn add(&mut self, faults: impl IntoIterator<Item = Fault>) {
        self.faults.extend(faults);
    }
}

/// Checks what else a folder holds, such as a report, which the driver does not know. The manifest is that of a run.
pub type LookBeside<'a> = dyn Fn(&Path, Option<&Manifest>) -> Result<Vec<Fault>, DriveError> + 'a;

/// Verifies a folder and everything below it.
///
/// # Errors
/// [`DriveError::Folder`] if it holds nothing of Polity's, [`DriveError::Disk`] for unreadable files.
pub fn verify(disk: &Arc<dyn Disk>, folder: &Path, beside: &LookBeside<'_>) -> Result<Vec<Verified>, DriveError> {
    if !disk.exists(folder).map_err(DriveError::disk(folder))? {
        return Err(DriveError::Folder(format!("{} does not exist", folder.display())));
    }
    let looking = Looking { disk, beside };
    let mut found = Vec::new();
    looking.folder(folder, DEEPEST, &mut found)?;
    match found.is_empty() {
        true => Err(DriveError::Folder(format!("{} holds no run, no sweep and no comparison", folder.display()))),
        false => Ok(found),
    }
}

struct Looking<'a> {
    disk: &'a Arc<dyn Disk>,
    beside: &'a LookBeside<'a>,
}

impl Looking<'_> {
    fn exists(&self, path: &Path) -> Result<bool, DriveError> {
        match self.disk.kind(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            kind => kind.map(|_| true).map_err(DriveError::disk(path)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, DriveError> {
        match self.disk.list(dir) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
            names => names.map_err(DriveError::disk(dir)),
        }
    }

    /// Verifies a folder of any kind.
    fn folder(&self, path: &Path, deepest: u32, found: &mut Vec<Verified>) -> Result<(), DriveError> {
        if self.exists(&path.join("manifest.json"))? || self.exists(&path.join("journal"))? {
            found.push(self.run(path)?);
            return Ok(());
        }
        if is_sweep(self.disk.as_ref(), path) {
            return self.sweep(path, found);
        }
        self.several(path, deepest, found)
    }

    /// Verifies a run. A run with apparent faults is checked again, since it may be active; only lasting faults count.
    fn run(&self, path: &Path) -> Result<Verified, DriveError> {
        let busy = || self.exists(&path.join(LOCK)).is_ok_and(|there| there) && under_way(self.disk.as_ref(), path);
        let mut verified = self.run_once(path);
        for look in 1..LOOKS {
            if verified.as_ref().is_ok_and(|verified| verified.faults.is_empty()) {
                break;
            }
            // Once more in any case: it may just have ended.
            if look > 1 {
                if !busy() {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
            let before = std::mem::replace(&mut verified, self.run_once(path));
            if let (Ok(before), Ok(now)) = (before, &mut verified) {
                now.faults.retain(|fault| before.faults.contains(fault));
            }
        }
        verified
    }

    fn run_once(&self, path: &Path) -> Result<Verified, DriveError> {
        let mut found = Verified::new(path, "run");
        found.add(irregular(self.disk.as_ref(), path, None)?);
        if !found.faults.is_empty() {
            // Links are not followed.
            return Ok(found);
        }
        let manifest = path.join("manifest.json");
        let journal = path.join("journal");
        let inventory = Inventory::read(self.disk.as_ref(), &journal);
        if !self.exists(&manifest)? {
            match &inventory {
                Ok(inventory) if inventory.rounds > 0 || inventory.ended.is_some() => {
                    found.fault(manifest, "it is gone; restore it from a copy");
                }
                _ => found.notes.push("a run was killed here before it began; the same command starts it again".into()),
            }
            return Ok(found);
        }
        let folder = Folder::read(self.disk.clone(), path)?;
        let file = match manifest_file(self.disk.as_ref(), path) {
            Ok(file) => Some(file),
            Err(error @ DriveError::Disk { .. }) => return Err(error),
            Err(error) => {
                found.fault(&manifest, error.to_string());
                None
            }
        };
        let inventory = match inventory {
            Ok(inventory) => inventory,
            Err(error) => {
                found.fault(journal, error.to_string());
                return Ok(found);
            }
        };
        let is = self.manifest(&inventory, &folder, file.as_deref(), &mut found)?;
        if let Some(manifest) = &is {
            found.add(folder.inputs(manifest)?.1);
        }
        let needed = self.journal(&inventory, &folder, &mut found)?;
        found.add(inventory.results(self.disk.as_ref(), path).all_faults()?);
        if inventory.closed() {
            self.strangers(&inventory, &needed, &folder, &mut found)?;
        }
        let others = self
            .list(path)?
            .into_iter()
            .filter(|name| !BESIDE.contains(&name.as_str()) && !name.ends_with(".tmp") && name != "scenario.yaml");
        found.notes.extend(others.map(|name| format!("{} is not one of the run's files", path.join(name).display())));
        found.add((self.beside)(path, is.as_ref())?);
        found.digest = inventory.ended.as_ref().map(|outcome| outcome.digest.to_string());
        found.words = words(&inventory, self.exists(&path.join("report.html"))?, path);
        Ok(found)
    }

    /// Compares the manifest's file with the journal; returns the manifest from the journal.
    fn manifest(
        &self,
        inventory: &Inventory,
        folder: &Folder,
        file: Option<&str>,
        found: &mut Verified,
    ) -> Result<Option<Manifest>, DriveError> {
        let path = folder.path().join("manifest.json");
        let Some(recorded) = inventory.manifest() else {
            found.fault(folder.journal(), "it has lost its first record; restore it from a copy");
            return Ok(None);
        };
        match file {
            None => {}
            Some(file) if file == recorded => {}
            Some(file) if inventory.is_stale(file) => {
                found.notes.push(format!("{} is older than the journal; resuming the run rewrites it", path.display()));
            }
            Some(file) => match inventory.verified(folder.path(), file) {
                Ok(_) => found.fault(path, "its values are unchanged, but its text is not; restore the original"),
                Err(error) => found.fault(path, error.to_string()),
            },
        }
        inventory.verified(folder.path(), recorded).map(Some)
    }

    /// Verifies the journal's end and the snapshots; returns the rounds of all snapshot files needed.
    fn journal(
        &self,
        inventory: &Inventory,
        folder: &Folder,
        found: &mut Verified,
    ) -> Result<BTreeSet<u32>, DriveError> {
        let (journal, run) = (folder.journal(), folder.path().display());
        match inventory.end {
            Some(end) if inventory.ended.is_some() && !end.closed() => found.fault(
                journal.join(end.segment_name()),
                format!(
                    "the run has ended, but its journal is not closed: it was killed at its very end, or something was cut off. \
                     `polity resume {run}` closes it"
                ),
            ),
            Some(end) if end.torn() => found.notes.push(format!(
                "the end of {} is incomplete; resuming the run removes it",
                journal.join(end.segment_name()).display()
            )),
            _ => {}
        }
        let (faults, needed) = Snapshots::new(self.disk.clone(), journal).faults(&inventory.named())?;
        found.add(faults);
        Ok(needed)
    }

    /// For a finished run: files that do not belong in its journal and its tables.
    fn strangers(
        &self,
        inventory: &Inventory,
        needed: &BTreeSet<u32>,
        folder: &Folder,
        found: &mut Verified,
    ) -> Result<(), DriveError> {
        const STRANGE: &str = "it is not a file of the run; remove it";
        let journal = folder.journal();
        for name in self.list(&journal)? {
            // A power loss can restore an old snapshot that was removed after a newer one was durable; it is never read.
            let older = |round: u32| inventory.snapshots.last_key_value().is_some_and(|(newest, _)| round < *newest);
            let known = is_snapshot(&name).is_some_and(|round| needed.contains(&round) || older(round));
            if !known && segment_number(&name).is_none() {
                found.fault(journal.join(name), STRANGE);
            }
        }
        let tables = folder.tables();
        for name in self.list(&tables)? {
            let path = tables.join(&name);
            if self.disk.kind(&path).map_err(DriveError::disk(&path))? != EntryKind::Folder {
                found.fault(path, STRANGE);
                continue;
            }
            let recorded = inventory.parts.get(&name).map_or(&[][..], Vec::as_slice);
            let files: BTreeSet<String> = recorded.iter().map(|part| Span::of(part).file_name()).collect();
            // Parts missing from the journal are already reported.
            let strange =
                self.list(&path)?.into_iter().filter(|file| !files.contains(file) && !file.ends_with(".parquet"));
            strange.for_each(|file| found.fault(path.join(file), STRANGE));
        }
        Ok(())
    }

    fn sweep(&self, path: &Path, found: &mut Vec<Verified>) -> Result<(), DriveError> {
        let mut own = Verified::new(path, "sweep");
        own.add(irregular(self.disk.as_ref(), path, Some("runs"))?);
        let checked = SweepManifest::checked(self.disk.as_ref(), path);
        let (manifest, listing) = match checked {
            Ok(checked) => checked,
            Err(error @ DriveError::Disk { .. }) => return Err(error),
            Err(error) => {
                if own.faults.is_empty() {
                    own.fault(path.join(SWEEP_FILE), error.to_string());
                }
                found.push(own);
                return self.runs_below(&path.join("runs"), DEEPEST, found);
            }
        };
        let mend = format!("`polity resume {}` rewrites it from the runs", path.display());
        self.listed(path, &listing, &mend, &["tables", "inputs"], &mut own)?;
        let runs: BTreeMap<&str, &str> = listing.runs().collect();
        let at = found.len();
        let mut begun = 0;
        let all = manifest.arms.iter().zip(&manifest.design.arms);
        for (entry, seed) in all.flat_map(|(entry, arm)| arm.seeds.iter().map(move |seed| (entry, *seed))) {
            let run = run_folder(path, entry, seed);
            let below = run_folder(Path::new(""), entry, seed).to_string_lossy().into_owned();
            match self.exists(&run)? {
                true => {
                    begun += 1;
                    let verified = self.run(&run)?;
                    compare_digests(&mut own, &verified, runs.get(below.as_str()).copied());
                    found.push(verified);
                }
                false if runs.contains_key(below.as_str()) => {
                    own.fault(
                        run,
                        format!(
                            "it is gone; restore it from a copy, or `polity resume {}` makes it again",
                            path.display()
                        ),
                    );
                }
                false => {}
            }
        }
        let planned = manifest.design.runs();
        own.words = match runs.is_empty() {
            true => format!("{begun} of {planned} runs begun; `polity resume {}` continues the sweep", path.display()),
            false => format!("{planned} runs, {} files beside them", listing.files().count()),
        };
        own.add((self.beside)(path, None)?);
        found.insert(at, own);
        Ok(())
    }

    /// Verifies a comparison, or a folder of runs.
    fn several(&self, path: &Path, deepest: u32, found: &mut Vec<Verified>) -> Result<(), DriveError> {
        let listing = Listing::read(self.disk.as_ref(), path);
        let marked = is_marked(self.disk.as_ref(), path);
        let at = found.len();
        let mut own = Verified::new(path, "runs");
        let again = match is_comparison(self.disk.as_ref(), path) {
            true => format!("`polity resume {}`", path.display()),
            false => "the command that made it".to_owned(),
        };
        match &listing {
            Err(error) => own.fault(path.join(DIGESTS_FILE), error.to_string()),
            Ok(None) if !marked => return self.runs_below(path, deepest, found),
            Ok(listing) => {
                let none = Listing::default();
                let mend = format!("{again} rewrites it from the runs");
                self.listed(path, listing.as_ref().unwrap_or(&none), &mend, &["inspect"], &mut own)?;
            }
        }
        self.runs_below(path, deepest, found)?;
        let runs = listing.ok().flatten();
        for (folder, digest) in runs.iter().flat_map(|listing| listing.runs()) {
            let run = path.join(folder);
            match found[at..].iter().find(|verified| verified.folder == run) {
                Some(verified) => compare_digests(&mut own, verified, Some(digest)),
                None => own.fault(run, format!("it is gone; restore it from a copy, or {again} makes it again")),
            }
        }
        own.words = format!("{} runs below it", found[at..].iter().filter(|verified| verified.kind == "run").count());
        own.add((self.beside)(path, None)?);
        found.insert(at, own);
        Ok(())
    }

    /// Compares the listed files with the existing ones, in the folder itself and in `within`.
    fn listed(
        &self,
        path: &Path,
        listing: &Listing,
        mend: &str,
        within: &[&str],
        own: &mut Verified,
    ) -> Result<(), DriveError> {
        let faults = listing.faults(self.disk.as_ref(), path)?;
        let mended = |Fault { path, what }| Fault::new(path, format!("{what}; restore it from a copy, or {mend}"));
        own.add(faults.into_iter().map(mended));
        let listed: BTreeSet<&str> = listing.files().collect();
        let mut open: Vec<String> = self.list(path)?;
        while let Some(name) = open.pop() {
            let at = path.join(&name);
            let is_own = [LOCK, DIGESTS_FILE, "report.html", "lock.tmp"].contains(&name.as_str());
            match self.disk.kind(&at).map_err(DriveError::disk(&at))? {
                EntryKind::Folder if within.iter().any(|within| name == *within || name.starts_with(&format!("{within}/"))) => {
                    open.extend(self.list(&at)?.into_iter().map(|below| format!("{name}/{below}")));
                }
                EntryKind::Folder => {}
                _ if is_own || listed.contains(name.as_str()) || name.ends_with(".tmp") => {}
                _ => own.fault(
                    at,
                    format!(
                        "{DIGESTS_FILE} does not list it: it was added, or {DIGESTS_FILE} is gone or outdated. Remove it, or put \
                         {DIGESTS_FILE} back from a copy"
                    ),
                ),
            }
        }
        Ok(())
    }

    /// Verifies all runs in the folders below a folder.
    fn runs_below(&self, path: &Path, deepest: u32, found: &mut Vec<Verified>) -> Result<(), DriveError> {
        if deepest == 0 {
            return Ok(());
        }
        for name in self.list(path)? {
            let below = path.join(name);
            if self.disk.kind(&below).map_err(DriveError::disk(&below))? == EntryKind::Folder {
                self.folder(&below, deepest - 1, found)?;
            }
        }
        Ok(())
    }
}

/// Checks that a run is the one summarised by the folder above it.
fn compare_digests(own: &mut Verified, run: &Verified, recorded: Option<&str>) {
    // Faults of the run itself are reported there.
    if let Some(recorded) = recorded.filter(|_| run.faults.is_empty())
        && run.digest.as_deref() != Some(recorded)
    {
        let has = run.digest.as_deref().unwrap_or("none, because it has not ended");
        own.fault(
            &run.folder,
            format!("its digest is {has}, but the summary was made of {recorded}; put the run back from a copy"),
        );
    }
}

/// The contents of a run, in words.
fn words(inventory: &Inventory, report: bool, path: &Path) -> String {
    let parts = || inventory.parts.values().flatten();
    let bytes: u64 = parts().map(|part: &Part| part.bytes).sum();
    let tables = inventory.parts.values().filter(|parts| !parts.is_empty()).count();
    let ended = match &inventory.ended {
        Some(_) => "ended".to_string(),
        None => format!("not ended (polity resume {} continues it)", path.display()),
    };
    let report = if report { "a report" } else { "no report" };
    format!(
        "{ended}, {} rounds, {} parts of {tables} tables ({:.1} MB), {report}",
        inventory.rounds,
        parts().count(),
        bytes as f64 / 1e6
    )
}
