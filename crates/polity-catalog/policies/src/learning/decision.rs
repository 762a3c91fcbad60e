//! What an agent decides in its turn.

use super::{NONE, Senses};
use polity_kernel::Plain;
use polity_kernel::policy::Turn;

/// What an agent decides in its turn: a choice, or numbers.
pub trait Decision: Plain {
    /// A decision in a batch.
    type Batched;
    /// Whether the agents choose numbers.
    const NUMBERS: bool;

    /// Returns what stands for the decision of an agent without a turn.
    fn none() -> Self;

    /// Returns the decision for a batch; `None` if the agent had no turn.
    fn batched(&self) -> Option<Self::Batched>;

    /// Performs the decision.
    fn perform(&self, senses: &Senses, turn: &mut Turn<'_>);
}

/// A choice; [`NONE`] without a turn.
impl Decision for u16 {
    type Batched = u32;
    const NUMBERS: bool = false;

    fn none() -> u16 {
        NONE
    }

    fn batched(&self) -> Option<u32> {
        (*self != NONE).then_some(u32::from(*self))
    }

    fn perform(&self, senses: &Senses, turn: &mut Turn<'_>) {
        senses.choose(turn, *self);
    }
}

/// A number for each action that takes one: -1 for the lowest that the action takes, 1 for the highest; those beyond are moved there. Empty
/// without a turn.
pub type Numbers = Vec<f32>;

impl Decision for Numbers {
    type Batched = Numbers;
    const NUMBERS: bool = true;

    fn none() -> Numbers {
        Vec::new()
    }

    fn batched(&self) -> Option<Numbers> {
        (!self.is_empty()).then(|| self.clone())
    }

    fn perform(&self, senses: &Senses, turn: &mut Turn<'_>) {
        senses.set(turn, self);
    }
}
