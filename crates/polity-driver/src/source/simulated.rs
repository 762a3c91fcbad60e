//! A driver with seeded faults: it delays, reorders, repeats and fails. A run must not be affected.

use super::{Broken, Live, Outside, Source};
use polity_kernel::ask::{Answer, Effect};
use polity_kernel::rng::{Draws, Stream};
use polity_models::models::Providers;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The faults of a simulated driver.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Its seed; not the run's.
    pub seed: u64,
    /// Probability that a try fails and is repeated.
    pub failure: f64,
    /// Probability that an answer is delivered twice.
    pub repeat: f64,
}

/// Answers in virtual time.
pub struct Simulated {
    live: Live,
    faults: Faults,
    draws: Draws,
    now: f64,
    /// By (bits of the arrival time, count).
    arrivals: BTreeMap<(u64, u64), Answer>,
    count: u64,
    asked: usize,
}

impl Simulated {
    /// Answers come from the providers, which must answer immediately (simulated models do).
    #[must_use]
    pub fn new(providers: Arc<Providers>, seed: u64, faults: Faults) -> Self {
        Simulated {
            live: Live::new(providers, seed, usize::MAX, &Outside::default()),
            draws: Draws::new(faults.seed, Stream::Driver, 0, 0),
            faults,
            now: 0.0,
            arrivals: BTreeMap::new(),
            count: 0,
            asked: 0,
        }
    }

    fn arrive(&mut self, after: f64, answer: Answer) {
        // Times are positive, so their bits have the same order.
        self.arrivals.insert(((self.now + after).to_bits(), self.count), answer);
        self.count += 1;
    }
}

impl Source for Simulated {
    fn start(&mut self, effects: Vec<Effect>) {
        self.asked += effects.len();
        self.live.start(effects);
        let mut answers = Vec::new();
        while self.live.in_flight() > 0 && self.live.lost().is_none() {
            answers.extend(self.live.wait(Duration::from_secs(1)));
            let again = self.live.broken().into_iter().filter(|broken| broken.again);
            let again: Vec<Effect> = again.map(|Broken { effect, .. }| effect).collect();
            if !again.is_empty() {
                self.live.start(again);
            }
        }
        for answer in answers {
            let mut latency = self.draws.exponential(1.0);
            while self.draws.chance(self.faults.failure) {
                latency += 1.0 + self.draws.exponential(0.5);
            }
            if self.draws.chance(self.faults.repeat) {
                let again = latency + self.draws.exponential(1.0);
                self.arrive(again, answer.clone());
            }
            self.arrive(latency, answer);
        }
    }

    fn in_flight(&self) -> usize {
        self.arrivals.len()
    }

    fn wait(&mut self, _: Duration) -> Vec<Answer> {
        let take = 1 + self.draws.below(3);
        let mut out = Vec::new();
        for _ in 0..take {
            if let Some(((time, _), answer)) = self.arrivals.pop_first() {
                self.now = f64::from_bits(time);
                out.push(answer);
            }
        }
        out
    }

    fn is_sated(&self) -> Option<bool> {
        // Arrivals while turns start affect no result either.
        Some(false)
    }

    fn lost(&self) -> Option<&str> {
        self.live.lost()
    }

    fn reason(&self) -> String {
        format!("{} of {} simulated calls under way", self.arrivals.len(), self.asked)
    }
}
