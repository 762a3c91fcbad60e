//! A limit of so much a minute, all of which may come at once: how providers count requests and tokens, and how a run keeps within that.

use std::time::{Duration, Instant};

/// What is left of a limit; it fills up all the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_minute: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    pub fn full(per_minute: f64, now: Instant) -> Self {
        Bucket { per_minute, level: per_minute, at: now }
    }

    /// How long until there is room for `amount`; nothing, if there is. What is more than a minute's needs the whole minute's.
    pub fn wait(&mut self, amount: f64, now: Instant) -> Option<Duration> {
        self.fill(now);
        let missing = amount.min(self.per_minute) - self.level;
        (missing > 1e-9).then(|| Duration::from_secs_f64(missing / self.rate()))
    }

    fn fill(&mut self, now: Instant) {
        self.level = (self.level + self.rate() * now.duration_since(self.at).as_secs_f64()).min(self.per_minute);
        self.at = now;
    }

    /// Believes who keeps the limit: so much a minute, and so much left.
    pub fn told(&mut self, per_minute: f64, left: f64, now: Instant) {
        *self = Bucket { per_minute, level: left.min(per_minute), at: now };
    }

    /// Takes it, even where it is not there: what was answered counts.
    pub fn take(&mut self, amount: f64) {
        self.level -= amount;
    }

    /// How much there is at most.
    pub fn per_minute(&self) -> f64 {
        self.per_minute
    }

    /// How much is left, in whole.
    pub fn left(&self) -> f64 {
        self.level.max(0.0).floor()
    }

    /// How long until it is full.
    pub fn full_in(&self) -> Duration {
        Duration::from_secs_f64(((self.per_minute - self.level) / self.rate()).max(0.0))
    }

    fn rate(&self) -> f64 {
        self.per_minute / 60.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_bucket_fills_up() {
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        let mut bucket = Bucket::full(60.0, now);
        assert_eq!(bucket.wait(60.0, now), None);
        bucket.take(60.0);
        assert_eq!(bucket.wait(1.0, now), Some(Duration::from_secs(1)));
        assert_eq!((bucket.left(), bucket.full_in()), (0.0, Duration::from_secs(60)));
        assert_eq!(bucket.wait(1.0, later(1)), None);
        // More than there ever is: the whole minute's.
        assert_eq!(bucket.wait(1e6, later(1)), Some(Duration::from_secs(59)));
        assert_eq!(bucket.wait(1e6, later(600)), None);
    }
}
