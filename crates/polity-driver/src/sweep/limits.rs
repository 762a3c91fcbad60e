//! Limits and estimates of a sweep's memory and disk space.
//!
//! Memory per run: the estimate ([`polity_kernel::scenario::MemoryBudget`]), which includes the process once, or the measured use of the
//! first run if that is more. Disk: before the first run, 32 kB per run, its inputs, and 2 bytes for every act and 4 for every agent
//! recorded by the scenario; this is low, so that nothing that fits is refused. Once a run of an arm has ended, its actual size.

use super::arms::Arms;
use super::pool::{Outcomes, RunId, Runs};
use polity_kernel::scenario::{PROCESS_BYTES, Scenario, bytes_in_words};
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::memory::available;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limits of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum concurrent runs.
    pub jobs: NonZeroUsize,
}

impl Limits {
    /// Number of concurrent runs, if the largest takes an estimated `memory` bytes; at least one, which was not refused. `measured`: MB
    /// that a run used; `bound`: MB for all, else half of what is free.
    pub(super) fn jobs(&self, memory: u64, measured: Option<f64>, bound: Option<u64>) -> usize {
        // The estimate's part for the process, independent of the number of runs.
        let process = PROCESS_BYTES as f64 / 1e6;
        let each = (memory as f64 / 1e6 - process).max(1.0).max(measured.unwrap_or(0.0));
        let bound = bound.map(|mb| mb as f64).or_else(|| available().map(|free| free as f64 / 2e6));
        let fit = bound.map_or(usize::MAX, |bound| ((bound - process) / each).floor().max(1.0) as usize);
        self.jobs.get().min(fit)
    }
}

/// The nearest existing parent folder.
fn existing(disk: &dyn Disk, path: &Path) -> PathBuf {
    let mut folders = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    folders.find(|folder| disk.exists(folder).unwrap_or(false)).unwrap_or(Path::new(".")).to_path_buf()
}

fn refusal(path: &Path, what: String) -> DriveError {
    DriveError::Disk { path: path.to_path_buf(), source: io::Error::new(io::ErrorKind::StorageFull, what) }
}

/// Refuses a design that cannot fit, before anything is written.
pub(super) fn check_disk_before(disk: &dyn Disk, out: &Path, arms: &Arms) -> Result<(), DriveError> {
    let here = existing(disk, out);
    let Some(free) = disk.free(&here).map_err(DriveError::disk(&here))? else { return Ok(()) };
    let mut need = 0u64;
    for ((arm, prepared), agents) in arms.design.arms.iter().zip(&arms.prepared).zip(arms.agents()) {
        let scenario = Scenario::read(&prepared.tree)?;
        let agents = u64::from(agents);
        let inputs: u64 = prepared.files.iter().map(|file| file.entry.bytes).sum();
        let acts = if scenario.record.acts { 2 * agents * u64::from(scenario.rounds) } else { 0 };
        let rows = if scenario.record.agents { 4 * agents } else { 0 };
        let run = 32_000 + inputs + acts + rows;
        need = need.saturating_add(run.saturating_mul(arm.seeds.len() as u64));
    }
    match need > free {
        true => Err(refusal(
            out,
            format!(
                "the {} runs of this design need at least about {}, but only {} are free there; remove seeds or \
                 levels, record less, or choose a larger disk with --out",
                arms.design.runs(),
                bytes_in_words(need as f64),
                bytes_in_words(free as f64)
            ),
        )),
        false => Ok(()),
    }
}

/// Disk use of runs, as they end.
pub(super) struct Space<'a> {
    disk: Arc<dyn Disk>,
    runs: &'a Runs<'a>,
    /// Bytes of a run, by arm.
    known: Vec<Option<u64>>,
}

impl<'a> Space<'a> {
    pub(super) fn new(runs: &'a Runs<'a>) -> Self {
        Space { disk: runs.engine.disk.clone(), runs, known: vec![None; runs.manifest.arms.len()] }
    }

    /// Records the size of a run; an error if the others cannot fit.
    pub(super) fn learn(&mut self, run: RunId, outcomes: &Outcomes) -> Result<(), DriveError> {
        if self.known.get(run.arm).copied().flatten().is_some() {
            return Ok(());
        }
        let bytes = bytes_below(self.disk.as_ref(), &self.runs.folder(run));
        if let Some(known) = self.known.get_mut(run.arm) {
            *known = Some(bytes);
        }
        let dir = self.runs.path;
        let Some(free) = self.disk.free(dir).map_err(DriveError::disk(dir))? else { return Ok(()) };
        let most = self.known.iter().flatten().copied().max().unwrap_or(0);
        let left = outcomes.left_by_arm();
        let need: u64 =
            left.iter().zip(&self.known).map(|(n, known)| (*n as u64).saturating_mul(known.unwrap_or(most))).sum();
        match need > free {
            true => Err(refusal(
                dir,
                format!(
                    "{} of {} runs are done; judging by their size, the others need about {}, but only {} are free \
                     there. Free some space, then run: polity resume {}",
                    outcomes.count(),
                    self.runs.manifest.design.runs(),
                    bytes_in_words(need as f64),
                    bytes_in_words(free as f64),
                    dir.display()
                ),
            )),
            false => Ok(()),
        }
    }
}

/// Bytes of all files below a folder, each rounded up to blocks of 4,096.
fn bytes_below(disk: &dyn Disk, path: &Path) -> u64 {
    match disk.list(path) {
        Ok(names) => 4096 + names.iter().map(|name| bytes_below(disk, &path.join(name))).sum::<u64>(),
        Err(_) => disk.len(path).unwrap_or(0).next_multiple_of(4096),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_bounds_the_runs_at_once() {
        let limits = |jobs| Limits { jobs: NonZeroUsize::new(jobs).unwrap() };
        // 40 MB of 60 are the process.
        assert_eq!(limits(8).jobs(60_000_000, None, Some(100)), 3);
        assert_eq!(limits(2).jobs(60_000_000, None, Some(100)), 2);
        assert_eq!(limits(8).jobs(60_000_000, Some(30.0), Some(100)), 2);
        assert_eq!(limits(8).jobs(60_000_000, Some(300.0), Some(100)), 1);
        assert_eq!(limits(8).jobs(60_000_000, None, Some(50)), 1);
    }
}
