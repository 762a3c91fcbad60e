//! A principal that does not know the signals: it explores every combination of efforts, then commits to the mechanism that is best by its estimates, with a
//! margin. Horizons double, so the number of rounds need not be known.

use super::{Margins, Mechanism, Problem, optimal};
use serde::{Deserialize, Serialize};

/// What the principal has seen of the signals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learner {
    /// As the law of a problem: how often these signals were seen.
    counts: Vec<u64>,
}

/// A part of a horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// The combination of efforts that is explored; `None` while the principal has committed itself.
    pub explores: Option<usize>,
    /// Its rounds.
    pub rounds: u64,
}

impl Learner {
    /// Makes one that has seen nothing.
    #[must_use]
    pub fn new(problem: &Problem) -> Self {
        Learner { counts: vec![0; problem.law.len()] }
    }

    /// The phases of a horizon of this many rounds: each combination of efforts is explored in `share` times T^(2/3) rounds over their number, at least
    /// 1; the principal is committed in the rest.
    #[must_use]
    pub fn phases(problem: &Problem, rounds: u64, share: f64) -> Vec<Phase> {
        let efforts = problem.joint_efforts();
        let each = (share * libm::pow(rounds as f64, 2.0 / 3.0) / efforts as f64).ceil().max(1.0) as u64;
        let each = each.min(rounds / efforts as u64);
        let explore = (0..efforts).map(|efforts| Phase { explores: Some(efforts), rounds: each });
        let commit = Phase { explores: None, rounds: rounds - each * efforts as u64 };
        explore.chain([commit]).collect()
    }

    /// Learns signals that were seen `times` times with these efforts in this state.
    pub fn see(&mut self, problem: &Problem, efforts: usize, state: usize, signals: usize, times: u64) {
        let place = (efforts * problem.prior.len() + state) * problem.joint_signals() + signals;
        if let Some(count) = self.counts.get_mut(place) {
            *count += times;
        }
    }

    /// The problem with the law that it believes in: frequencies, with one further observation spread over all signals.
    #[must_use]
    pub fn believed(&self, problem: &Problem) -> Problem {
        let signals = problem.joint_signals();
        let frequencies = |counts: &[u64]| -> Vec<f64> {
            let all = counts.iter().sum::<u64>() as f64 + 1.0;
            counts.iter().map(|count| (*count as f64 + 1.0 / signals as f64) / all).collect()
        };
        Problem { law: self.counts.chunks(signals).flat_map(frequencies).collect(), ..problem.clone() }
    }

    /// The best mechanism by what it has seen. Obedience beats deviations by `margin` times the largest payment over the root of the least number of
    /// observations of efforts.
    ///
    /// # Errors
    /// As [`optimal`].
    pub fn commit(&self, problem: &Problem, margin: f64) -> Result<Mechanism, String> {
        let size = problem.joint_signals() * problem.prior.len();
        let least = self.counts.chunks(size).map(|counts| counts.iter().sum::<u64>()).min().unwrap_or_default();
        let effort = margin * problem.cap / (least.max(1) as f64).sqrt();
        let signals = problem.signals.iter().copied().max().unwrap_or(1);
        optimal(&self.believed(problem), Margins { effort, report: effort / signals as f64 })
    }
}

/// Returns the slope of regret over rounds, both as logarithms, by least squares; 0 with fewer than two points. Points are rounds and regret, both above 0.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let points: Vec<(f64, f64)> =
        points.iter().map(|(x, y)| (libm::log(*x), libm::log(y.max(f64::MIN_POSITIVE)))).collect();
    let n = points.len().max(1) as f64;
    let x = points.iter().map(|point| point.0).sum::<f64>() / n;
    let y = points.iter().map(|point| point.1).sum::<f64>() / n;
    let spread: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    if spread > 0.0 { both / spread } else { 0.0 }
}
