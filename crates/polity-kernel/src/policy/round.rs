//! A round as the turns of it see it.

use super::SharedContext;
use crate::cohort::SharedBox;

/// What the turns of a block have in common.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    pub round: u32,
    /// Number of rounds that a turn with questions may take.
    pub lag: u32,
    pub shared_context: &'a SharedContext,
    /// The shared state of the cohorts, by cohort.
    pub shared: &'a [Option<SharedBox>],
}

impl<'a> Round<'a> {
    pub fn shared_of(&self, cohort: u16) -> Option<&'a SharedBox> {
        self.shared.get(cohort as usize).and_then(Option::as_ref)
    }
}
