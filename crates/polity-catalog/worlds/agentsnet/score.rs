//! How far answers solve a problem, by the published rules.

use super::{AgentsNet, Network, Problem};
use polity_kernel::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The quality of the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// From 0 to 1; 1 if they solve the problem.
    pub score: f64,
    /// Colours taken, agents in the cover, pairs, leaders, or agents that answer 1.
    pub count: u32,
}

impl AgentsNet {
    /// Judges the answers.
    pub(super) fn verdict(&self, network: &Network) -> Verdict {
        match self.problem {
            Problem::Coloring => self.coloring(&network.answers),
            Problem::VertexCover => self.vertex_cover(&network.answers),
            Problem::Matching => self.matching(&network.answers),
            Problem::LeaderElection => leader_election(&network.answers),
            Problem::Consensus => self.consensus(network),
        }
    }

    /// Returns the share of ties whose two ends fit; 1 without ties. A tie is counted from both ends.
    fn ties(&self, fits: impl Fn(AgentId, AgentId) -> bool) -> f64 {
        let of = |i: AgentId| self.topology.neighbours(i).filter(|j| fits(i, *j)).count() as u64;
        match self.topology.arcs() {
            0 => 1.0,
            arcs => (0..self.topology.n()).map(of).sum::<u64>() as f64 / arcs as f64,
        }
    }

    /// The share of ties between different colours; 0 if an answer is not valid.
    fn coloring(&self, answers: &[Option<i64>]) -> Verdict {
        let colours: BTreeSet<i64> = answers.iter().flatten().copied().collect();
        let share = self.ties(|i, j| answers[i as usize] != answers[j as usize]);
        let score = if answers.iter().all(Option::is_some) { share } else { 0.0 };
        Verdict { score, count: colours.len() as u32 }
    }

    /// The share of ties that are covered, times the share of the cover that could not leave it. While a tie is not covered, nobody
    /// could.
    fn vertex_cover(&self, answers: &[Option<i64>]) -> Verdict {
        let covers = |i: AgentId| answers[i as usize] == Some(1);
        let covered = self.ties(|i, j| covers(i) || covers(j));
        let all: Vec<AgentId> = (0..self.topology.n()).filter(|i| covers(*i)).collect();
        let needed = |i: &&AgentId| covered < 1.0 || self.topology.neighbours(**i).any(|other| !covers(other));
        let score = match all.len() {
            // Without ties an empty cover is right.
            0 => f64::from(u8::from(covered >= 1.0)),
            size => covered * all.iter().filter(needed).count() as f64 / size as f64,
        };
        Verdict { score, count: all.len() as u32 }
    }

    /// The share of agents that form a pair with a neighbour, or are single and have no single neighbour.
    fn matching(&self, answers: &[Option<i64>]) -> Verdict {
        let partner = |i: AgentId| answers[i as usize].and_then(|answer| u32::try_from(answer).ok());
        let paired =
            |i: AgentId| partner(i).is_some_and(|other| self.topology.hears(i, other) && partner(other) == Some(i));
        let single = |i: AgentId| answers[i as usize] == Some(-1);
        let fits = |i: &AgentId| paired(*i) || single(*i) && !self.topology.neighbours(*i).any(single);
        let n = self.topology.n();
        let score = (0..n).filter(fits).count() as f64 / f64::from(n.max(1));
        Verdict { score, count: (0..n).filter(|i| paired(*i)).count() as u32 / 2 }
    }

    /// 1 if all answer the same value, and some agent began with it.
    fn consensus(&self, network: &Network) -> Verdict {
        let Network { answers, .. } = network;
        let agreed = answers.first().copied().flatten();
        let same = answers.iter().all(|answer| answer.is_some() && *answer == agreed);
        let began = agreed.is_some_and(|value| (0..answers.len() as u32).any(|i| self.value(network, i) == value));
        let ones = answers.iter().filter(|answer| **answer == Some(1)).count();
        Verdict { score: f64::from(u8::from(same && began)), count: ones as u32 }
    }
}

/// 1 if all answers are valid and exactly one is yes.
fn leader_election(answers: &[Option<i64>]) -> Verdict {
    let leaders = answers.iter().filter(|answer| **answer == Some(1)).count();
    let solved = leaders == 1 && answers.iter().all(Option::is_some);
    Verdict { score: f64::from(u8::from(solved)), count: leaders as u32 }
}
