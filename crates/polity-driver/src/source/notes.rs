//! Messages to people during calls: one line for every distinct cause.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum lines per process: no one reads endless messages.
const MOST: usize = 50;

/// Minimum time between reminders of the same cause: doubled after each, up to a maximum.
const FIRST_REMINDER: Duration = Duration::from_secs(60);
const LONGEST_REMINDER: Duration = Duration::from_secs(600);

/// Where notes go. Clones share what has been reported: runs of a sweep that wait for the same server report it once.
#[derive(Clone)]
pub struct Notes {
    told: Arc<Mutex<BTreeSet<String>>>,
    /// Earliest time of the next reminder, and the wait after it.
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
    /// Creates notes shown by `tell`.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Notes { told: Arc::default(), reminders: Arc::default(), tell: Arc::new(tell) }
    }

    /// Reports a cause unless reported before; numbers (waits, ids, counts) do not distinguish causes.
    pub fn tell(&self, text: &str) {
        let cause: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        // The set is valid even after a panic.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST && told.insert(cause) {
            drop(told);
            (self.tell)(text);
        }
    }
}

impl Notes {
    /// Reports that something continues, increasingly rarely, so that a run that waits for an hour says so more than once.
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
