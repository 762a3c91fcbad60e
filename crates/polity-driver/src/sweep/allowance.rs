//! What all runs of a sweep may spend together, in any number of processes.
//!
//! A run begins only if the most that it may spend fits what is left; once it has ended, what it did not spend is free again. So the sum
//! holds at every moment and no call of a run depends on other runs: runs are begun later or not at all, but never cut. The ledger is the
//! file `allowance.jsonl` in the sweep's folder, one line for each beginning and each end, written under a lock. A run keeps its
//! reservation when its process dies, because whoever continues it needs it.

use crate::budget::Amount;
use crate::drive::Totals;
use crate::run::Prepared;
use polity_kernel::scenario::{Budget, Limits};
use polity_store::DriveError;
use polity_store::disk::Disk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

const FILE: &str = "allowance.jsonl";
const LOCK: &str = "allowance.lock";
/// Tries for the lock, which others hold for a moment, and the wait before each.
const TRIES: u32 = 2_000;
const PAUSE: Duration = Duration::from_millis(5);

/// A line of the ledger.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    /// The run has begun, and may spend this much.
    Reserved(Amount),
    /// The run has ended, and spent this much.
    Spent(Amount),
}

#[derive(Serialize, Deserialize)]
struct Line {
    run: String,
    #[serde(flatten)]
    entry: Entry,
}

/// The ledger as it was last read.
#[derive(Default)]
struct Ledger {
    /// Bytes read.
    read: usize,
    of_run: BTreeMap<String, Entry>,
    /// Why a run could not begin.
    short: Option<String>,
}

impl Ledger {
    /// The sum over all runs but one.
    fn taken(&self, but: &str) -> Amount {
        let others = self.of_run.iter().filter(|(run, _)| *run != but);
        others.fold(Amount::default(), |sum, (_, Entry::Reserved(amount) | Entry::Spent(amount))| sum.and(*amount))
    }
}

/// The allowance of a sweep.
pub(super) struct Allowance<'a> {
    disk: &'a dyn Disk,
    file: PathBuf,
    lock: PathBuf,
    limit: Amount,
    ledger: Mutex<Ledger>,
}

impl<'a> Allowance<'a> {
    pub(super) fn new(disk: &'a dyn Disk, sweep: &Path, limits: &Limits) -> Self {
        Allowance {
            disk,
            file: sweep.join(FILE),
            lock: sweep.join(LOCK),
            limit: Amount::limit(limits),
            ledger: Mutex::default(),
        }
    }

    /// The most that a run of this scenario may spend, of what the allowance limits. `flags`: limits that replace those of the scenario.
    ///
    /// # Errors
    /// [`DriveError::Input`] if the run has no limit of its own, or one above the allowance.
    pub(super) fn most(&self, prepared: &Prepared, flags: &Budget) -> Result<Amount, DriveError> {
        let own = match prepared.tree.get("budget") {
            Some(node) => node.read::<Budget>("budget")?,
            None => Budget::default(),
        };
        let most = Amount::limit(&own.with(flags).run()).of_limited(self.limit);
        let Some((key, limit, _, more)) = Amount::over(self.limit, Amount::default(), most) else { return Ok(most) };
        Err(DriveError::Input(match more {
            Some(more) => format!(
                "the budget of the sweep (`design.budget`) is {limit}, but a single run may use up to {more} (`budget.{key}`): no run can begin"
            ),
            None => format!(
                "the budget of the sweep (`design.budget`) is {limit}, but its runs have no such limit of their own, so what a \
                 run may need is not known before it begins; add `budget: {{{key}: ...}}` to the scenario"
            ),
        }))
    }

    /// Reserves what a run may spend at most; returns whether it fits. An ended run needs nothing.
    pub(super) fn reserve(&self, run: &str, most: Amount) -> Result<bool, DriveError> {
        self.change(run, |ledger| match ledger.of_run.get(run) {
            Some(Entry::Spent(_)) => (true, None),
            Some(Entry::Reserved(amount)) if most.within(*amount) => (true, None),
            _ => {
                let taken = ledger.taken(run);
                let fits = taken.and(most).within(self.limit);
                if let Some((_, limit, taken, Some(more))) = Amount::over(self.limit, taken, most) {
                    ledger.short =
                        Some(format!("{limit}: {taken} are spent or reserved, and the next run may use up to {more}"));
                }
                (fits, fits.then_some(Entry::Reserved(most)))
            }
        })
    }

    /// Frees what an ended run did not spend.
    pub(super) fn settle(&self, run: &str, totals: &Totals) -> Result<(), DriveError> {
        let spent = Amount::of_totals(totals).of_limited(self.limit);
        self.change(run, |ledger| match ledger.of_run.get(run) {
            Some(Entry::Spent(_)) => ((), None),
            _ => ((), Some(Entry::Spent(spent))),
        })
    }

    /// Why a run could not begin, if one could not.
    pub(super) fn short(&self) -> Option<String> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).short.clone()
    }

    /// Reads what other processes have added, decides, and adds a line.
    fn change<T>(&self, run: &str, decide: impl FnOnce(&mut Ledger) -> (T, Option<Entry>)) -> Result<T, DriveError> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let _held = self.held()?;
        let whole_lines = self.refresh(&mut ledger)?;
        let (decided, entry) = decide(&mut ledger);
        if let Some(entry) = entry {
            let line = serde_json::to_string(&Line { run: run.into(), entry }).map_err(io::Error::other);
            let write = || {
                let mut file = self.disk.append(&self.file)?;
                // A line that a crash cut off ends here.
                let start = if whole_lines { "" } else { "\n" };
                file.write_all(format!("{start}{}\n", line?).as_bytes())?;
                file.sync()
            };
            write().map_err(DriveError::disk(&self.file))?;
            ledger.of_run.insert(run.into(), entry);
        }
        Ok(decided)
    }

    fn held(&self) -> Result<Box<dyn Send>, DriveError> {
        for _ in 0..TRIES {
            match self.disk.lock(&self.lock) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(PAUSE),
                held => return held.map_err(DriveError::disk(&self.lock)),
            }
        }
        Err(DriveError::Held(self.lock.display().to_string()))
    }

    /// Returns whether the file ends with a whole line.
    fn refresh(&self, ledger: &mut Ledger) -> Result<bool, DriveError> {
        if !self.disk.exists(&self.file).map_err(DriveError::disk(&self.file))? {
            return Ok(true);
        }
        let bytes = self.disk.read(&self.file).map_err(DriveError::disk(&self.file))?;
        let new = bytes.get(ledger.read..).unwrap_or_default();
        let whole = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in new[..whole].split(|byte| *byte == b'\n') {
            // A line that a crash cut off was never acted on.
            if let Ok(Line { run, entry }) = serde_json::from_slice(line) {
                ledger.of_run.insert(run, entry);
            }
        }
        ledger.read += whole;
        Ok(whole == new.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use polity_store::disk::{SimDisk, create_dir_durably};

    fn calls(n: u64) -> Limits {
        Limits { calls: Some(n), ..Limits::default() }
    }

    fn amount(n: u64) -> Amount {
        Amount::limit(&calls(n)).of_limited(Amount::limit(&calls(n)))
    }

    #[test]
    fn processes_share_one_ledger_and_a_cut_line_is_nothing() {
        let disk = SimDisk::default();
        let sweep = Path::new("sweep");
        create_dir_durably(&disk, sweep).unwrap();
        let open = || Allowance::new(&disk, sweep, &calls(10));
        let (one, other) = (open(), open());
        assert!(one.reserve("a/1", amount(4)).unwrap() && other.reserve("a/2", amount(4)).unwrap());
        assert!(!one.reserve("a/3", amount(4)).unwrap());
        assert!(one.short().unwrap().contains("10 calls: 8 calls are spent or reserved"));
        // Whoever takes a run over has its reservation.
        assert!(other.reserve("a/1", amount(4)).unwrap());
        other.settle("a/1", &Totals { calls: 1, charged: 1, ..Totals::default() }).unwrap();
        let mut file = disk.append(&sweep.join(FILE)).unwrap();
        file.write_all(b"{\"run\": \"a/3\", \"reser").unwrap();
        drop(file);
        assert!(one.reserve("a/3", amount(4)).unwrap());
        assert!(!open().reserve("a/4", amount(1)).unwrap());
        // An ended run is only read.
        assert!(one.reserve("a/1", amount(9)).unwrap());
    }
}
