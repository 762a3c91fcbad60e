//! Declared limits per minute that several runs share: those of one process, or of all processes that work in a folder.

use polity_models::bucket::Bucket;
use polity_store::disk::Disk;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

const FILE: &str = "rates.json";
const LOCK: &str = "rates.lock";
/// Tries for the lock, which others hold for a moment, and the wait before each.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(2);
/// Wait while the folder cannot be read or written: a run whose folder stays so ends by itself.
const TROUBLE: Duration = Duration::from_secs(1);

/// Where limits are kept.
#[derive(Default)]
pub struct SharedLimits {
    folder: Option<(Arc<dyn Disk>, PathBuf)>,
    /// By model and quantity, if only one process takes part.
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl fmt::Debug for SharedLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimits").field("folder", &self.folder.as_ref().map(|(_, path)| path)).finish()
    }
}

/// A bucket in a folder: what is left, and when that was so, in milliseconds since 1970.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Level {
    left: f64,
    at: u64,
}

impl SharedLimits {
    /// Limits for all processes that work in a folder. They keep a file there, and need locks that other machines see.
    #[must_use]
    pub fn in_folder(disk: Arc<dyn Disk>, folder: PathBuf) -> Self {
        SharedLimits { folder: Some((disk, folder)), buckets: Mutex::default() }
    }

    /// Takes an amount from a limit, or returns how long to wait for it. An amount above the limit needs all of it.
    fn take(&self, key: &str, per_minute: f64, amount: f64, now: Instant) -> Option<Duration> {
        if self.folder.is_some() {
            return self.take_in_folder(key, per_minute, amount).unwrap_or(Some(TROUBLE));
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(key.into()).or_insert_with(|| Bucket::full(per_minute, now));
        let wait = bucket.wait(amount, now);
        if wait.is_none() {
            bucket.take(amount);
        }
        wait
    }

    fn take_in_folder(&self, key: &str, per_minute: f64, amount: f64) -> io::Result<Option<Duration>> {
        let Some((disk, folder)) = &self.folder else { return Ok(None) };
        let _own = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tries = 0;
        let _held = loop {
            match disk.lock(&folder.join(LOCK)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < TRIES => sleep(PAUSE),
                held => break held?,
            }
            tries += 1;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let file = folder.join(FILE);
        let mut levels: BTreeMap<String, Level> = match disk.exists(&file)? {
            // A process may have died while it wrote. What was left is unknown then, so it counts as nothing.
            true => serde_json::from_slice(&disk.read(&file)?)
                .unwrap_or_else(|_| BTreeMap::from([(key.to_owned(), Level { left: 0.0, at: now })])),
            false => BTreeMap::new(),
        };
        let rate = per_minute / 60_000.0;
        let level = levels.entry(key.into()).or_insert(Level { left: per_minute, at: now });
        // Clocks of machines differ: time does not run backwards here.
        let since = now.saturating_sub(level.at) as f64;
        *level = Level { left: (level.left + rate * since).min(per_minute), at: now.max(level.at) };
        let missing = amount.min(per_minute) - level.left;
        let wait = (missing > 1e-9).then(|| Duration::from_secs_f64(missing / rate / 1000.0));
        if wait.is_none() {
            level.left -= amount;
        }
        let text = serde_json::to_vec(&levels).map_err(io::Error::other)?;
        disk.create(&file)?.write_all(&text)?;
        Ok(wait)
    }
}

/// One limit of a model, as one run draws on it.
#[derive(Debug)]
pub(super) struct Share {
    limits: Arc<SharedLimits>,
    key: String,
    per_minute: f64,
    /// What was taken, and not used yet.
    held: f64,
}

impl Share {
    pub(super) fn new(limits: &Arc<SharedLimits>, key: String, per_minute: f64) -> Share {
        Share { limits: limits.clone(), key, per_minute, held: 0.0 }
    }

    pub(super) fn per_minute(&self) -> f64 {
        self.per_minute
    }

    /// Time until `amount` is held; `None` once it is.
    pub(super) fn wait(&mut self, amount: f64, now: Instant) -> Option<Duration> {
        let missing = amount - self.held;
        if missing <= 1e-9 {
            return None;
        }
        let wait = self.limits.take(&self.key, self.per_minute, missing, now);
        if wait.is_none() {
            self.held = amount;
        }
        wait
    }

    /// Uses what is held.
    pub(super) fn take(&mut self, amount: f64) {
        self.held = (self.held - amount).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use polity_store::disk::{SimDisk, create_dir_durably};
    use std::path::Path;

    /// How many units several runs get at once.
    fn taken(shares: &mut [Share], now: Instant) -> usize {
        let mut sum = 0;
        let mut more = true;
        while more {
            more = false;
            for share in &mut *shares {
                if share.wait(1.0, now).is_none() {
                    share.take(1.0);
                    (sum, more) = (sum + 1, true);
                }
            }
        }
        sum
    }

    #[test]
    fn runs_share_a_limit_in_one_process_and_over_processes() {
        let now = Instant::now();
        let one = Arc::new(SharedLimits::default());
        let mut shares = [0; 3].map(|_| Share::new(&one, "m requests".into(), 60.0));
        assert_eq!(taken(&mut shares, now), 60);
        assert_eq!(taken(&mut shares, now + Duration::from_secs(5)), 5);

        let disk: Arc<dyn Disk> = Arc::new(SimDisk::default());
        create_dir_durably(disk.as_ref(), Path::new("sweep")).unwrap();
        let process = || Arc::new(SharedLimits::in_folder(disk.clone(), "sweep".into()));
        // A limit that refills slowly: the test takes less than a minute.
        let mut shares = [0; 4].map(|_| Share::new(&process(), "m requests".into(), 1.0));
        assert_eq!(taken(&mut shares, now), 1);
        assert!(shares[0].wait(1.0, now).unwrap() > Duration::from_secs(1));
        let mut others = [0; 2].map(|_| Share::new(&process(), "other requests".into(), 3.0));
        assert_eq!(taken(&mut others, now), 3);
    }
}
