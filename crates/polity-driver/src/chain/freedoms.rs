//! The degrees of freedom of a chain: each a number with its meaning.

use super::{Drawn, ItemChain, Link};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A degree of freedom.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Freedom {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    /// The number.
    pub value: f64,
}

/// Counts the degrees of freedom.
pub(super) fn of(chains: &[ItemChain]) -> Vec<Freedom> {
    let links = || chains.iter().flat_map(|chain| &chain.links);
    let per_item = |n: usize| n as f64 / chains.len().max(1) as f64;
    let models = || links().filter(|link| matches!(link.form.drawn, Drawn::Sampled | Drawn::Greedy));
    let forms =
        |links: &mut dyn Iterator<Item = &Link>| links.map(|link| &link.form).collect::<BTreeSet<_>>().len() as f64;
    let freedom = |name, meaning, value| Freedom { name, meaning, value };
    vec![
        freedom("calls", "calls per item, without repeats", per_item(links().count())),
        freedom(
            "factors",
            "different conditionals, by round, kind, conditions, model and temperature",
            forms(&mut links()),
        ),
        freedom(
            "sampled",
            "those of them whose value a model samples; all else follows from its conditions",
            forms(&mut links().filter(|link| link.form.drawn == Drawn::Sampled)),
        ),
        freedom(
            "conditions",
            "earlier replies that calls are shown, per item",
            per_item(links().map(|link| link.shown.replies.len()).sum()),
        ),
        freedom("others", "those of them that are another member's", per_item(links().map(|link| link.others).sum())),
        freedom(
            "depth",
            "the longest series of calls of which each is shown the reply of the one before",
            links().map(|link| link.depth).max().unwrap_or(0) as f64,
        ),
        freedom(
            "choice-points",
            "places at which items with the same calls so far went on with different calls: the replies so far, or the item, decide",
            choice_points(chains) as f64,
        ),
        freedom("rounds", "rounds with calls", count(links().map(|link| link.form.round))),
        freedom("members", "members of the team that are asked", count(models().map(|link| link.actor))),
        freedom("models", "different models", count(models().map(|link| &link.form.model))),
        freedom(
            "temperatures",
            "different temperatures, where unset counts as one",
            count(models().map(|link| link.form.temperature)),
        ),
        freedom(
            "prompts",
            "different prompts, without the question and the replies that they show",
            count(models().map(|link| &link.shown.frame)),
        ),
    ]
}

fn count<T: Ord>(values: impl Iterator<Item = T>) -> f64 {
    values.collect::<BTreeSet<T>>().len() as f64
}

/// A call as a step of a series: its round, its number, its member and its kind.
type Step<'a> = (u32, u32, u32, &'a str);

/// Counts the series of calls after which items went on differently.
fn choice_points(chains: &[ItemChain]) -> usize {
    // The tree of all series: the children of a node, by the next call; `None` is the end.
    let mut children: Vec<BTreeMap<Option<Step<'_>>, usize>> = vec![BTreeMap::new()];
    for chain in chains {
        let mut steps: Vec<Step<'_>> =
            chain.links.iter().map(|link| (link.form.round, link.n, link.actor, link.form.kind.as_str())).collect();
        steps.sort_unstable();
        let mut node = 0;
        for step in steps.into_iter().map(Some).chain([None]) {
            let next = children.len();
            let Some(known) = children.get_mut(node) else { break };
            node = *known.entry(step).or_insert(next);
            if node == next {
                children.push(BTreeMap::new());
            }
        }
    }
    children.iter().filter(|children| children.len() > 1).count()
}
