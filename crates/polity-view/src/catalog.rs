//! The runs in a folder. An ID is looked up among the runs that were found, so no request can name another path.

use super::is_run;
use super::problem::{Answer, Problem};
use super::reports::REPORT_FILE;
use polity_driver::drive::Totals;
use polity_driver::run::RunStatus;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How deep runs are looked for below the folder.
const DEPTH: usize = 6;
/// How many runs are listed.
const MOST: usize = 5_000;
/// How long a list of runs is kept.
const KEPT: Duration = Duration::from_secs(2);

/// Folders by ID.
type Folders = BTreeMap<String, PathBuf>;

/// What the folder holds.
#[derive(Debug, Default)]
struct Found {
    runs: Folders,
    /// Sweeps and comparisons with a report.
    reports: Folders,
}

/// What is known of a run's totals: how it ended, the totals, the number of alarms.
pub(crate) type Known = (RunStatus, Totals, usize);

pub(crate) struct Catalog {
    root: PathBuf,
    found: Mutex<(Instant, Arc<Found>)>,
    /// Totals by folder, and the time of its last change.
    known: Mutex<BTreeMap<PathBuf, (Option<u64>, Known)>>,
}

impl Catalog {
    pub fn open(folder: &Path) -> Result<Self, String> {
        let root = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        if !root.is_dir() {
            return Err(format!(
                "{} is not a folder; name the folder of a run, or one that holds runs",
                root.display()
            ));
        }
        let found = Mutex::new((Instant::now(), Arc::new(found(&root))));
        Ok(Catalog { root, found, known: Mutex::default() })
    }

    /// The folder that is served.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All runs by ID.
    pub fn runs(&self) -> Folders {
        self.found().runs.clone()
    }

    /// The folders of sweeps and comparisons with a report, by ID.
    pub fn reports(&self) -> Folders {
        self.found().reports.clone()
    }

    fn found(&self) -> Arc<Found> {
        let mut kept = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0.elapsed() > KEPT {
            *kept = (Instant::now(), Arc::new(found(&self.root)));
        }
        kept.1.clone()
    }

    /// The totals of a run, which are made again only after a change of the run.
    pub fn once(&self, folder: &Path, changed: Option<u64>, make: impl FnOnce() -> Answer<Known>) -> Answer<Known> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, found)) = known().get(folder)
            && *at == changed
        {
            return Ok(*found);
        }
        let found = make()?;
        known().insert(folder.to_path_buf(), (changed, found));
        Ok(found)
    }

    /// The folder of a run.
    pub fn run(&self, id: &str) -> Answer<PathBuf> {
        let absent = || Problem::absent(format!("there is no run `{id}` in {}", self.root.display()));
        if let Some(path) = self.runs().get(id) {
            return Ok(path.clone());
        }
        // It may have just begun.
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), Arc::new(found(&self.root)));
        self.runs().get(id).cloned().ok_or_else(absent)
    }
}

/// The name of the folder that is served.
fn name(root: &Path) -> String {
    root.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned())
}

fn found(root: &Path) -> Found {
    let mut found = Found::default();
    if is_run(root) {
        found.runs.insert(name(root), root.to_path_buf());
        return found;
    }
    look(root, "", DEPTH, &mut found);
    found
}

/// Collects the runs below a folder, and the folders of many runs that have a report.
fn look(folder: &Path, id: &str, depth: usize, found: &mut Found) {
    if folder.join(REPORT_FILE).is_file() {
        found.reports.insert(if id.is_empty() { name(folder) } else { id.to_owned() }, folder.to_path_buf());
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link may lead out of the folder.
        if found.runs.len() >= MOST || name.starts_with('.') || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let id = if id.is_empty() { name } else { format!("{id}~{name}") };
        let path = entry.path();
        if is_run(&path) {
            found.runs.insert(id, path);
        } else if depth > 1 {
            look(&path, &id, depth - 1, found);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_runs_that_were_found_can_be_named() {
        let folder = tempfile::tempdir().unwrap();
        for run in ["a", "sweep/runs/b"] {
            let run = folder.path().join(run);
            std::fs::create_dir_all(run.join("journal")).unwrap();
            std::fs::write(run.join("manifest.json"), "{}").unwrap();
        }
        let catalog = Catalog::open(folder.path()).unwrap();
        assert_eq!(catalog.runs().keys().collect::<Vec<_>>(), ["a", "sweep~runs~b"]);
        for other in ["..", "a/../a", "sweep", "/etc", "sweep~runs"] {
            assert!(catalog.run(other).is_err(), "{other}");
        }
        assert!(catalog.run("sweep~runs~b").unwrap().ends_with("sweep/runs/b"));
    }
}
