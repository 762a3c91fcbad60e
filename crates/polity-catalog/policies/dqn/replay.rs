//! The memory of what was done, from which batches are drawn.

use crate::learning::{NONE, Seen};
use polity_kernel::AgentId;
use polity_kernel::digest::DigestVec;
use polity_kernel::rng::Draws;
use polity_nn::Array;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a cohort saw in a round, and what each of its agents chose.
type Step = (Seen, Vec<u16>);

/// The last rounds. What came of a decision is in the round after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay(DigestVec<Arc<Step>>);

/// Decisions and what came of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub inputs: Array,
    pub choices: Vec<u32>,
    pub rewards: Vec<f32>,
    pub ended: Vec<bool>,
    /// What was seen then, and which choices were offered.
    pub then: Array,
    pub then_masks: Array,
}

impl Replay {
    /// Adds a round and drops the oldest ones, so that at most `most` are left.
    pub fn push(&mut self, seen: Seen, choices: Vec<u16>, most: usize) {
        self.0.push(Arc::new((seen, choices)));
        let more = self.0.len().saturating_sub(most.max(1));
        if more > 0 {
            self.0.drop_first(more);
        }
    }

    /// Returns what an agent decided in the last round.
    pub fn decided(&self, who: AgentId) -> Option<u16> {
        let (seen, choices) = self.0.last()?.as_ref();
        let row = seen.agents.binary_search(&who).ok()?;
        choices.get(row).copied().filter(|choice| *choice != NONE)
    }

    /// Draws decisions, each with the same probability. Those after which an agent had no turn in the next
    /// round are left out, and those after which an episode was cut off: what came then was not seen.
    pub fn batch(&self, n: usize, draws: &mut Draws) -> Batch {
        let mut batch = Batch::default();
        let Some(last) = self.0.len().checked_sub(1).filter(|last| *last > 0) else { return batch };
        for _ in 0..n {
            let at = draws.below(last as u64) as usize;
            let ((seen, choices), (next, _)) = (self.0[at].as_ref(), self.0[at + 1].as_ref());
            if seen.agents.is_empty() {
                continue;
            }
            let row = draws.below(seen.agents.len() as u64) as usize;
            let Ok(then) = next.agents.binary_search(&seen.agents[row]) else { continue };
            if choices[row] == NONE || next.cut[then] || !(next.active[then] || next.ended[then]) {
                continue;
            }
            batch.inputs.push(seen.inputs.row(row));
            batch.choices.push(u32::from(choices[row]));
            batch.rewards.push(next.rewards[then]);
            batch.ended.push(next.ended[then]);
            batch.then.push(next.inputs.row(then));
            batch.then_masks.push(next.mask.row(then));
        }
        batch
    }
}
