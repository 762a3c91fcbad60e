//! What all runs of a folder may spend together, in any number of processes.
//!
//! A run begins only if the most that it may spend fits what is left; once it has ended, what it did not spend is free again. So the sum
//! holds at every moment and no call of a run depends on other runs: runs are begun later or not at all, but never cut. The ledger is the
//! file `allowance.jsonl` in the folder, one line for each beginning, each end and each higher limit, written under a lock. A run keeps its
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

/// What the ledger says of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    /// It has begun, and may spend this much.
    Reserved(Amount),
    /// It has ended, and spent this much.
    Spent(Amount),
}

/// A line of the ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Run {
        run: String,
        #[serde(flatten)]
        entry: Entry,
    },
    /// From here on all runs together may spend this much.
    Limit { limit: Limits },
}

/// The ledger as it was last read.
#[derive(Default)]
struct Ledger {
    /// Bytes read.
    read: usize,
    of_run: BTreeMap<String, Entry>,
    /// The limit, if it was raised.
    raised: Option<Limits>,
    /// Why a run could not begin.
    short: Option<String>,
}

impl Ledger {
    fn add(&mut self, line: Line) {
        match line {
            Line::Run { run, entry } => drop(self.of_run.insert(run, entry)),
            Line::Limit { limit } => self.raised = Some(limit),
        }
    }

    /// The sum over all runs but one.
    fn taken(&self, but: &str) -> Amount {
        let others = self.of_run.iter().filter(|(run, _)| *run != but);
        others.fold(Amount::default(), |sum, (_, Entry::Reserved(amount) | Entry::Spent(amount))| sum.and(*amount))
    }
}

/// The allowance of the runs in a folder.
pub struct Allowance<'a> {
    disk: &'a dyn Disk,
    /// What the runs are together: a sweep, a comparison.
    what: &'static str,
    file: PathBuf,
    lock: PathBuf,
    /// The limits with which the folder was planned.
    planned: Limits,
    ledger: Mutex<Ledger>,
}

impl<'a> Allowance<'a> {
    /// The allowance of the runs in a folder. `what`: what they are together, a `sweep` or a `comparison`; `limits`: those with which the
    /// folder was planned.
    #[must_use]
    pub fn new(disk: &'a dyn Disk, folder: &Path, what: &'static str, limits: &Limits) -> Self {
        Allowance {
            disk,
            what,
            file: folder.join(FILE),
            lock: folder.join(LOCK),
            planned: *limits,
            ledger: Mutex::default(),
        }
    }

    /// The most that a run of this scenario may spend, of what the allowance limits. `flags`: limits that replace those of the scenario.
    ///
    /// # Errors
    /// [`DriveError::Input`] if the run has no limit of its own, or one above the allowance.
    pub(crate) fn most(&self, prepared: &Prepared, flags: &Budget) -> Result<Amount, DriveError> {
        let own = match prepared.tree.get("budget") {
            Some(node) => node.read::<Budget>("budget")?,
            None => Budget::default(),
        };
        let all = Amount::limit(&self.planned);
        let most = Amount::limit(&own.with(flags).run()).of_limited(all);
        let Some((key, limit, _, more)) = Amount::over(all, Amount::default(), most) else { return Ok(most) };
        let (what, key_of_all) = (self.what, if self.what == "sweep" { " (`design.budget`)" } else { "" });
        Err(DriveError::Input(match more {
            Some(more) => format!(
                "the budget of the {what}{key_of_all} is {limit}, but a single run may use up to {more} (`budget.{key}`): no run can \
                 begin"
            ),
            None => format!(
                "the budget of the {what}{key_of_all} is {limit}, but its runs have no such limit of their own, so what a \
                 run may need is not known before it begins; add `budget: {{{key}: ...}}` to the scenario, or -P budget.{key}=..."
            ),
        }))
    }

    /// Reserves what a run may spend at most; returns whether it fits. An ended run needs nothing.
    ///
    /// # Errors
    /// [`DriveError::Input`] if the run has no limit of its own, or one above the allowance; [`DriveError::Disk`].
    pub fn begin(&self, run: &str, prepared: &Prepared, flags: &Budget) -> Result<bool, DriveError> {
        self.reserve(run, self.most(prepared, flags)?)
    }

    fn reserve(&self, run: &str, most: Amount) -> Result<bool, DriveError> {
        self.change(|ledger| match ledger.of_run.get(run) {
            Some(Entry::Spent(_)) => Ok((true, None)),
            Some(Entry::Reserved(amount)) if most.within(*amount) => Ok((true, None)),
            _ => {
                let (limit, taken) = (Amount::limit(&self.limits(ledger)), ledger.taken(run));
                let over = Amount::over(limit, taken, most);
                if let Some((_, limit, taken, Some(more))) = &over {
                    ledger.short =
                        Some(format!("{limit}: {taken} are spent or reserved, and the next run may use up to {more}"));
                }
                let line = Line::Run { run: run.into(), entry: Entry::Reserved(most) };
                Ok((over.is_none(), over.is_none().then_some(line)))
            }
        })
    }

    /// Frees what an ended run did not spend.
    ///
    /// # Errors
    /// [`DriveError::Disk`].
    pub fn settle(&self, run: &str, totals: &Totals) -> Result<(), DriveError> {
        let spent = Amount::of_totals(totals).of_limited(Amount::limit(&self.planned));
        self.change(|ledger| match ledger.of_run.get(run) {
            Some(Entry::Spent(_)) => Ok(((), None)),
            _ => Ok(((), Some(Line::Run { run: run.into(), entry: Entry::Spent(spent) }))),
        })
    }

    /// Raises the limits to those that are given; others stay. Processes at work see it before their next run. The same again changes nothing.
    ///
    /// # Errors
    /// [`DriveError::Input`] for a limit that there is not, or one below the present one; [`DriveError::Disk`].
    pub fn raise(&self, to: &Limits) -> Result<(), DriveError> {
        let what = self.what;
        self.change(|ledger| {
            let now = self.limits(ledger);
            let raised = now.with(to);
            if raised == now {
                return Ok(((), None));
            }
            let Limits { cost_usd, tokens, calls, requests, tool_calls } = *to;
            let of = |given: bool, key: &'static str, flag: &'static str| given.then_some((key, flag));
            let asked = [
                of(cost_usd.is_some(), "cost_usd", "--max-cost"),
                of(tokens.is_some(), "tokens", "--max-tokens"),
                of(calls.is_some(), "calls", "--max-calls"),
                of(requests.is_some(), "requests", "--max-requests"),
                of(tool_calls.is_some(), "tool_calls", "--max-tool-calls"),
            ];
            for (key, flag) in asked.into_iter().flatten() {
                let (before, after) = (Amount::limit(&now).of_key(key), Amount::limit(&raised).of_key(key));
                if before == u64::MAX {
                    return Err(DriveError::Input(format!(
                        "{flag}: the budget of this {what} does not limit `{key}`, so there is nothing to raise; the budget of \
                         each run is that of the scenario"
                    )));
                }
                if after < before {
                    let before = Amount::in_words(key, before);
                    return Err(DriveError::Input(format!(
                        "{flag}: the budget of this {what} is {before} already, and runs may have begun that rely on it, so it can \
                         only be raised"
                    )));
                }
            }
            Ok(((), Some(Line::Limit { limit: raised })))
        })
    }

    /// Why a run could not begin, if one could not.
    #[must_use]
    pub fn short(&self) -> Option<String> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).short.clone()
    }

    fn limits(&self, ledger: &Ledger) -> Limits {
        ledger.raised.unwrap_or(self.planned)
    }

    /// Reads what other processes have added, decides, and adds a line.
    fn change<T>(
        &self,
        decide: impl FnOnce(&mut Ledger) -> Result<(T, Option<Line>), DriveError>,
    ) -> Result<T, DriveError> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let _held = self.held()?;
        let whole_lines = self.refresh(&mut ledger)?;
        let (decided, line) = decide(&mut ledger)?;
        if let Some(line) = line {
            let text = serde_json::to_string(&line).map_err(io::Error::other);
            let write = || {
                let mut file = self.disk.append(&self.file)?;
                // A line that a crash cut off ends here.
                let start = if whole_lines { "" } else { "\n" };
                file.write_all(format!("{start}{}\n", text?).as_bytes())?;
                file.sync()
            };
            write().map_err(DriveError::disk(&self.file))?;
            ledger.add(line);
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
            if let Ok(line) = serde_json::from_slice(line) {
                ledger.add(line);
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
        let open = || Allowance::new(&disk, sweep, "sweep", &calls(10));
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
    #[test]
    fn a_raised_limit_holds_in_processes_that_are_at_work() {
        let disk = SimDisk::default();
        let sweep = Path::new("sweep");
        create_dir_durably(&disk, sweep).unwrap();
        let planned = Limits { calls: Some(10), cost_usd: Some(1.0), ..Limits::default() };
        let open = || Allowance::new(&disk, sweep, "sweep", &planned);
        let (one, other) = (open(), open());
        assert!(one.reserve("a/1", amount(8)).unwrap() && !one.reserve("a/2", amount(8)).unwrap());
        other.raise(&calls(16)).unwrap();
        assert!(one.reserve("a/2", amount(8)).unwrap() && !one.reserve("a/3", amount(1)).unwrap());
        assert!(one.short().unwrap().starts_with("16 calls: 16 calls are"));
        let lines = || disk.read(&sweep.join(FILE)).unwrap().iter().filter(|byte| **byte == b'\n').count();
        let before = lines();
        // The same again, as every worker is given it.
        one.raise(&calls(16)).unwrap();
        for (limits, word) in [
            (calls(15), "is 16 calls already"),
            (Limits { tokens: Some(1), ..Limits::default() }, "does not limit `tokens`"),
            (Limits { cost_usd: Some(0.5), ..Limits::default() }, "is 1.0000 USD already"),
        ] {
            let refused = open().raise(&limits).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
        assert_eq!(lines(), before);
        open().raise(&Limits { cost_usd: Some(2.5), ..Limits::default() }).unwrap();
        assert!(!open().reserve("a/3", amount(1)).unwrap());
    }
}
