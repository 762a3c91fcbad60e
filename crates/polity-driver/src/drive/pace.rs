//! How fast a run advances, and how long it will take.

use super::Progress;
use std::time::Instant;

/// The pace of a run in this process: rounds of a society, items of an evaluation. What a resumed run had done before does not count,
/// nor the time to recompute it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// The time and the step from which the pace counts: the first note, or the last one of a recomputed round.
    first: Option<(Instant, f64)>,
}

/// What a [`Pace`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paced {
    /// Rounds per second; in an evaluation items.
    pub steps_per_s: f64,
    /// Seconds until the planned end, at this pace.
    pub seconds_left: f64,
}

impl Pace {
    /// Notes how far the run is. Returns its pace, once it has advanced since the first note.
    pub fn note(&mut self, progress: &Progress) -> Option<Paced> {
        let (done, all) = match progress.items {
            (_, 0) => (f64::from(progress.rounds), f64::from(progress.planned)),
            (done, all) => (done as f64, all as f64),
        };
        if progress.recomputed {
            self.first = Some((Instant::now(), done));
        }
        let (began, from) = *self.first.get_or_insert((Instant::now(), done));
        paced(from, done, all, began.elapsed().as_secs_f64())
    }
}

/// The pace of `done - from` steps in `seconds`, of `all`.
fn paced(from: f64, done: f64, all: f64, seconds: f64) -> Option<Paced> {
    if done <= from || seconds <= 0.0 {
        return None;
    }
    let steps_per_s = (done - from) / seconds;
    Some(Paced { steps_per_s, seconds_left: (all - done).max(0.0) / steps_per_s })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn recomputed_rounds_are_no_progress() {
        let mut pace = Pace::default();
        for rounds in 1..=50 {
            assert_eq!(pace.note(&Progress { rounds, planned: 60, recomputed: true, ..Progress::default() }), None);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let paced = pace.note(&Progress { rounds: 51, planned: 60, ..Progress::default() }).unwrap();
        assert!(paced.steps_per_s <= 50.0 && paced.seconds_left >= 0.18, "{paced:?}");
    }

    #[test]
    fn only_what_this_process_does_counts() {
        assert_eq!(paced(10.0, 10.0, 30.0, 5.0), None);
        assert_eq!(paced(10.0, 20.0, 30.0, 5.0), Some(Paced { steps_per_s: 2.0, seconds_left: 5.0 }));
        assert_eq!(paced(0.0, 30.0, 30.0, 10.0), Some(Paced { steps_per_s: 3.0, seconds_left: 0.0 }));
    }
}
