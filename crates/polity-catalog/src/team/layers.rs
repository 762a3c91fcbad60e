//! Proposals that are shown to the next who propose: mixtures of agents.

use super::{Stand, solve, tell_all, to_solve};
use polity_kernel::ask::Part;
use polity_kernel::method::{Brief, Desk};

/// How those are instructed who answer with others' proposals before them.
pub const SYNTHESISE: &str = include_str!("prompts/synthesise.md");

/// A question to a member who is shown proposals.
#[must_use]
pub fn to_synthesise(desk: &Desk<'_>, member: usize, proposals: &[Stand]) -> Brief {
    let shown: Vec<Part> = proposals.iter().map(Stand::said).collect();
    to_solve(desk, member, &shown, SYNTHESISE)
}

/// One layer: every one of these members answers with the proposals of the last layer before it.
pub async fn layer(desk: &mut Desk<'_>, members: &[usize], proposals: &[Stand]) -> Vec<Option<Stand>> {
    for member in members {
        tell_all(desk, *member, proposals);
    }
    let briefs = members.iter().map(|member| to_synthesise(desk, *member, proposals)).collect();
    solve(desk, briefs).await
}

/// The answer of one who is shown proposals; where it gives none, the last proposal stands.
pub async fn aggregate(desk: &mut Desk<'_>, member: usize, proposals: &[Stand]) -> Option<Stand> {
    let answers = layer(desk, &[member], proposals).await;
    answers.into_iter().next().flatten().or_else(|| proposals.last().cloned())
}
