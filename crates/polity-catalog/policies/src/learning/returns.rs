//! What an agent has got in its episodes.

use polity_kernel::policy::{Policy, StateColumn};
use serde::{Deserialize, Serialize};

/// What an agent has got in its episodes, undiscounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Returns {
    /// In the current episode.
    sum: f64,
    /// In the last one that ended.
    last: f64,
}

impl Returns {
    /// Adds the reward of a round, and whether it ended an episode.
    pub fn add(&mut self, reward: f64, ended: bool) {
        self.sum += reward;
        if ended {
            *self = Returns { sum: 0.0, last: self.sum };
        }
    }

    /// Returns the total reward of the last episode that ended; 0 before the first has.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.last
    }
}

/// Returns the column `episode-return`, the learning curve of a learner.
#[must_use]
pub const fn episode_return<P: Policy<State = Returns>>() -> StateColumn<P> {
    StateColumn {
        name: "episode-return",
        doc: "the agent's total reward in its last episode that ended; 0 before the first has",
        range: None,
        value: |_, returns| returns.last(),
    }
}
