//! What people are told while calls are under way: one line for every distinct cause.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines of one process at most: what is told without end is read by nobody.
const MOST: usize = 50;

/// Reminders of the same cause are at least so far apart at first, twice as far after each, and no further than the longest.
const FIRST_REMINDER: Duration = Duration::from_secs(60);
const LONGEST_REMINDER: Duration = Duration::from_secs(600);

/// Where notes go. Clones share what has been told: runs of a sweep that wait for the same server say so once.
#[derive(Clone)]
pub struct Notes {
    told: Arc<Mutex<BTreeSet<String>>>,
    /// When there may be another reminder, and how long after that the next.
    reminders: Arc<Mutex<Option<(Instant, Duration)>>>,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for Notes {
    fn default() -> Self {
        Notes::to(|_| {})
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}

impl Notes {
    /// Notes that `tell` shows.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Notes { told: Arc::default(), reminders: Arc::default(), tell: Arc::new(tell) }
    }

    /// Tells a cause unless it was told before; numbers (waits, ids, counts) make no other cause of it.
    pub fn tell(&self, text: &str) {
        let cause: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        // A set of texts is whole whoever panicked while it grew.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST && told.insert(cause) {
            drop(told);
            (self.tell)(text);
        }
    }
}

impl Notes {
    /// Tells that something still goes on, now and then and ever more rarely: a run that waits for an hour says so more than once.
    pub fn remind(&self, text: &str) {
        let now = Instant::now();
        let mut reminders = self.reminders.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = match *reminders {
            Some((next, _)) if now < next => return,
            Some((_, pause)) => pause,
            None => FIRST_REMINDER,
        };
        *reminders = Some((now + pause, (pause * 2).min(LONGEST_REMINDER)));
        drop(reminders);
        (self.tell)(text);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cause_is_told_once_by_all_clones_together() {
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = heard.clone();
        let notes = Notes::to(move |text| sink.lock().unwrap().push(text.to_owned()));
        for n in 0..3 {
            notes.clone().tell(&format!("limited, wait {n} s"));
            notes.tell("down");
        }
        assert_eq!(*heard.lock().unwrap(), ["limited, wait 0 s", "down"]);
    }
}
