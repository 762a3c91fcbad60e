//! A scenario that is checked but not yet set up.

use super::assembled::{Assembled, of_vectors, once};
use crate::Bug;
use crate::evaluation::Evaluation;
use crate::layout::Layout;
use crate::policy::SharedContext;
use crate::society::{Leaves, Plan, Society, models_of};

/// A machine whose parts exist and fit each other. In a society, no agent has a place in the world yet.
pub enum Draft {
    /// Agents in a world.
    Society(Box<SocietyDraft>),
    /// A method that works on a data set.
    Evaluation(Box<Evaluation>),
}

/// The parts of a society.
pub struct SocietyDraft {
    pub(super) plan: Plan,
    pub(super) shared_context: SharedContext,
    pub(super) leaves: Leaves,
    /// Leaves with changed parameters, and the round from which they hold.
    pub(super) later: Vec<(u32, Leaves)>,
}

impl Draft {
    /// Sets it up to run.
    pub(super) fn set_up(self, layout: Layout) -> Result<Assembled, Bug> {
        match self {
            Draft::Society(society) => {
                let SocietyDraft { plan, shared_context, leaves, later } = *society;
                Ok(Assembled::Society(Box::new(Society::new(plan, shared_context, leaves, later, layout)?)))
            }
            Draft::Evaluation(evaluation) => Ok(Assembled::Evaluation(evaluation)),
        }
    }

    /// Returns the number of agents at the start; in an evaluation, of members of the team.
    #[must_use]
    pub fn agents(&self) -> u32 {
        match self {
            Draft::Society(society) => society.plan.cohorts.iter().sum(),
            Draft::Evaluation(evaluation) => evaluation.team().len() as u32,
        }
    }

    /// Returns seed, population and topology of a society.
    #[must_use]
    pub fn shared_context(&self) -> Option<&SharedContext> {
        match self {
            Draft::Society(society) => Some(&society.shared_context),
            Draft::Evaluation(_) => None,
        }
    }

    /// Returns the same as [`Assembled::models`].
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        match self {
            Draft::Society(society) => once(models_of(
                society.all_leaves().flat_map(|leaves| &leaves.policies),
                society.all_leaves().filter_map(Leaves::world),
            )),
            Draft::Evaluation(evaluation) => once(evaluation.models()),
        }
    }

    /// Returns the same as [`Assembled::models_of_vectors`].
    #[must_use]
    pub fn models_of_vectors(&self) -> Vec<String> {
        let Draft::Society(society) = self else { return Vec::new() };
        let worlds = society.all_leaves().filter_map(Leaves::world);
        of_vectors(worlds.flat_map(|world| world.models()))
    }
}

impl SocietyDraft {
    fn all_leaves(&self) -> impl Iterator<Item = &Leaves> {
        std::iter::once(&self.leaves).chain(self.later.iter().map(|(_, leaves)| leaves))
    }
}
