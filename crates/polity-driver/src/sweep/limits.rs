//! How much memory and disk a sweep may take, and what it will.
//!
//! Memory: 32 MB for the process, and for every run under way 8 MB and 600 bytes an agent, or what the first run was measured to
//! take if that is more. Disk: before the first run 32 kB a run, its inputs, and 2 bytes for every act and 4 for every agent that the
//! scenario records, which is little, so that nothing is refused that fits; as soon as a run of an arm has ended, what that run takes.

use super::Arms;
use super::pool::{Outcomes, RunId, Runs};
use crate::DriveError;
use crate::disk::Disk;
use crate::run::memory_mb;
use polity_kernel::scenario::Scenario;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PROCESS_MB: f64 = 32.0;
const RUN_MB: f64 = 8.0;
const AGENT_BYTES: f64 = 600.0;

/// What a sweep may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Runs at once, at most.
    pub jobs: NonZeroUsize,
    /// Memory of all of them in MB; `None`: half of what the system has free.
    pub memory_mb: Option<u64>,
}

impl Limits {
    /// How many runs may be under way at once. `measured`: MB that a run was seen to take.
    pub(super) fn jobs(&self, agents: &[u32], measured: Option<f64>) -> Result<usize, DriveError> {
        let most = f64::from(agents.iter().copied().max().unwrap_or(0));
        let estimate = RUN_MB + most * AGENT_BYTES / 1e6;
        let each = estimate.max(measured.unwrap_or(0.0));
        let bound = match self.memory_mb {
            Some(mb) => mb as f64,
            None => match memory_mb("/proc/meminfo", "MemAvailable:") {
                Some(free) => free / 2.0,
                None => return Ok(self.jobs.get()),
            },
        };
        let fit = ((bound - PROCESS_MB) / each).floor();
        // What was measured can not be undone, and an unasked bound refuses nothing.
        if fit < 1.0 && measured.is_none() && self.memory_mb.is_some() {
            return Err(DriveError::Input(format!(
                "--memory {bound:.0} is too little: the process takes about {PROCESS_MB:.0} MB and a run of {most} agents about \
                 {each:.0} MB; give at least --memory {:.0}",
                (PROCESS_MB + each).ceil()
            )));
        }
        Ok(self.jobs.get().min(fit.max(1.0) as usize))
    }
}

/// Bytes as a person reads them.
fn shown(bytes: u64) -> String {
    let bytes = bytes as f64;
    for (unit, name) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")] {
        if bytes >= unit {
            return format!("{:.1} {name}", bytes / unit);
        }
    }
    format!("{:.0} kB", (bytes / 1e3).ceil())
}

/// The nearest folder that exists.
fn existing(disk: &dyn Disk, path: &Path) -> PathBuf {
    let mut folders = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    folders.find(|folder| disk.exists(folder).unwrap_or(false)).unwrap_or(Path::new(".")).to_path_buf()
}

fn refusal(path: &Path, what: String) -> DriveError {
    DriveError::Disk { path: path.to_path_buf(), source: io::Error::new(io::ErrorKind::StorageFull, what) }
}

/// Refuses a design that can not fit, before anything is written.
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
                "the {} runs of this design need at least about {}, and {} are free there; take seeds or levels out, record less, or \
                 choose a larger disk with --out",
                arms.design.runs(),
                shown(need),
                shown(free)
            ),
        )),
        false => Ok(()),
    }
}

/// What runs take on the disk, as they end.
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

    /// Takes note of what a run takes; an error if the others can not fit by that.
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
                    "{} of {} runs are done; by what they take the others need about {}, and {} are free there; free some space, \
                     then: polity resume {}",
                    outcomes.count(),
                    self.runs.manifest.design.runs(),
                    shown(need),
                    shown(free),
                    dir.display()
                ),
            )),
            false => Ok(()),
        }
    }
}

/// Bytes of all files below a folder, each in whole blocks of 4,096.
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
        let limits = |jobs, memory_mb| Limits { jobs: NonZeroUsize::new(jobs).unwrap(), memory_mb };
        // 8 MB + 600 bytes for each of 20,000 agents are 20 MB.
        assert_eq!(limits(8, Some(92)).jobs(&[5, 20_000], None).unwrap(), 3);
        assert_eq!(limits(2, Some(92)).jobs(&[5, 20_000], None).unwrap(), 2);
        assert_eq!(limits(8, Some(92)).jobs(&[5, 20_000], Some(30.0)).unwrap(), 2);
        assert_eq!(limits(8, Some(92)).jobs(&[5, 20_000], Some(300.0)).unwrap(), 1);
        let refused = limits(8, Some(40)).jobs(&[20_000], None).unwrap_err().to_string();
        assert!(refused.contains("20000 agents about 20 MB; give at least --memory 52"), "{refused}");
    }

    #[test]
    fn bytes_are_shown_with_their_unit() {
        assert_eq!([shown(1), shown(2_500_000), shown(16_400_000_000)], ["1 kB", "2.5 MB", "16.4 GB"]);
    }
}
