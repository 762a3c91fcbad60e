//! A limit per minute, all of which may be used at once: how providers count requests and tokens, and how a run stays within the limit.

use std::time::{Duration, Instant};

/// The rest of a limit; it refills continuously.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    per_minute: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket of `per_minute` units.
    #[must_use]
    pub fn full(per_minute: f64, now: Instant) -> Self {
        Bucket { per_minute, level: per_minute, at: now }
    }

    /// Time until `amount` fits; `None` if it fits now. An amount above the per-minute limit needs the whole limit.
    pub fn wait(&mut self, amount: f64, now: Instant) -> Option<Duration> {
        self.fill(now);
        let missing = amount.min(self.per_minute) - self.level;
        (missing > 1e-9).then(|| Duration::from_secs_f64(missing / self.rate()))
    }

    fn fill(&mut self, now: Instant) {
        self.level = (self.level + self.rate() * now.duration_since(self.at).as_secs_f64()).min(self.per_minute);
        self.at = now;
    }

    /// Takes over the server's numbers: the limit per minute, and what is left.
    pub fn told(&mut self, per_minute: f64, left: f64, now: Instant) {
        *self = Bucket { per_minute, level: left.min(per_minute), at: now };
    }

    /// Takes an amount even if it exceeds the rest, since answered calls count.
    pub fn take(&mut self, amount: f64) {
        self.level -= amount;
    }

    /// The maximum.
    pub fn per_minute(&self) -> f64 {
        self.per_minute
    }

    /// How much is left, rounded down.
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
        // Above the maximum: waits for the whole minute's amount.
        assert_eq!(bucket.wait(1e6, later(1)), Some(Duration::from_secs(59)));
        assert_eq!(bucket.wait(1e6, later(600)), None);
    }
}
