//! Layers of proposals, each shown to the next layer: mixtures of agents.

use super::{Stand, solve, tell_all, to_solve};
use polity_kernel::ask::Part;
use polity_kernel::method::{Brief, Prompt, TeamContext};

/// Instruction to members who answer with others' proposals in view.
pub const SYNTHESISE: Prompt = Prompt::new(
    "synthesise",
    "tells a member to answer with the proposals of others in view",
    include_str!("prompts/synthesise.md"),
);
/// Instruction to members who are shown none.
pub const ALONE: Prompt =
    Prompt::new("alone", "tells a member to answer when there are no proposals yet", include_str!("prompts/alone.md"));

/// Returns the instruction for a member who sees these proposals. The first layer sees none, so its instruction mentions none.
#[must_use]
pub fn instruction(proposals: &[Stand]) -> Prompt {
    if proposals.is_empty() { ALONE } else { SYNTHESISE }
}

/// Builds a question to a member who is shown proposals.
#[must_use]
pub fn to_synthesise(context: &TeamContext<'_>, member: usize, proposals: &[Stand]) -> Brief {
    let shown: Vec<Part> = proposals.iter().map(Stand::said).collect();
    to_solve(context, member, &shown, instruction(proposals))
}

/// Runs one layer: each of these members answers with the proposals of the previous layer in view.
pub async fn layer(context: &mut TeamContext<'_>, members: &[usize], proposals: &[Stand]) -> Vec<Option<Stand>> {
    for member in members {
        tell_all(context, *member, proposals);
    }
    let briefs = members.iter().map(|member| to_synthesise(context, *member, proposals)).collect();
    solve(context, briefs).await
}

/// Returns the answer of a member who is shown proposals; without an answer, the last proposal.
pub async fn aggregate(context: &mut TeamContext<'_>, member: usize, proposals: &[Stand]) -> Option<Stand> {
    let answers = layer(context, &[member], proposals).await;
    answers.into_iter().next().flatten().or_else(|| proposals.last().cloned())
}
