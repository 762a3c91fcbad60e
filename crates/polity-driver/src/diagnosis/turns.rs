//! What goes wrong in a discussion from a turn on: drift, collapse and monopoly. A turn is a round in which members answer.
//!
//! The three are those of Becker, "Multi-Agent Large Language Models for Conversational Task-Solving", 2024. Drift is defined as by Becker
//! et al., "Stay Focused: Problem Drift in Multi-Agent Debate", 2025: FOCUS, the performance after a turn minus that after the turn before,
//! is below 0, and the discussion does not recover. Here the performance is 1 if most members stand by a right answer, and 0 otherwise.
//! The paper measures collapse on questions of ethics, and monopoly by the length of messages. Here collapse means that messages become
//! alike, whatever they are about.

use super::trace::Step;
use super::{CallId, Case};
use polity_kernel::failure::DiscussionFault;
use serde::Serialize;
use std::collections::BTreeMap;

/// A turn from which on a discussion goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turning {
    /// The item.
    pub item: u32,
    /// What goes wrong.
    pub fault: DiscussionFault,
    /// The round from which on it does.
    pub turn: u32,
    /// The member who monopolises the discussion.
    pub member: Option<u32>,
    /// What the record shows, in a sentence.
    pub why: String,
    /// The calls of that turn that show it.
    pub calls: Vec<CallId>,
}

/// From this share of common pairs of words on, two messages are nearly the same.
const ALIKE: f64 = 0.9;
/// Fewest words of a message that can be compared: two bare answers are no messages.
const FEWEST_WORDS: usize = 8;
/// Fewest turns that a collapse or a monopoly lasts.
const FEWEST_TURNS: usize = 2;

/// A turn: the last step of each member that answers in it.
struct Turn<'a> {
    round: u32,
    steps: BTreeMap<u32, &'a Step>,
}

pub(super) fn turnings(case: &Case<'_>) -> Vec<Turning> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for step in case.trace.solving().filter(|step| step.answer.is_some()) {
        if turns.last().is_none_or(|turn| turn.round != step.id.round) {
            turns.push(Turn { round: step.id.round, steps: BTreeMap::new() });
        }
        if let Some(turn) = turns.last_mut() {
            turn.steps.insert(step.id.actor, step);
        }
    }
    [drift(case, &turns), collapse(case, &turns), monopoly(case, &turns)].into_iter().flatten().collect()
}

/// Most members stand by a right answer before the turn, and never from it on; the team ends wrong.
fn drift(case: &Case<'_>, turns: &[Turn<'_>]) -> Option<Turning> {
    let mut stands: BTreeMap<u32, bool> = BTreeMap::new();
    let mut held: Vec<(bool, usize)> = Vec::new();
    for turn in turns {
        for (member, step) in &turn.steps {
            stands.insert(*member, case.item.is_right(step.answer.as_deref()?)?);
        }
        let right = stands.values().filter(|right| **right).count();
        held.push((2 * right > stands.len(), right));
    }
    let last = held.iter().rposition(|(most, _)| *most)?;
    let turn = turns.get(last + 1)?;
    if stands.len() < 2 || case.trace.ended.correct != Some(false) {
        return None;
    }
    let wrong = |step: &&&Step| step.answer.as_deref().is_some_and(|it| case.item.is_right(it) == Some(false));
    let count = |place: usize| held.get(place).map_or(0, |(_, right)| *right);
    let why = format!(
        "before, {} of {} members stand by a right answer; then {}, and most never do again",
        count(last),
        stands.len(),
        count(last + 1)
    );
    Some(turning(case, DiscussionFault::ProblemDrift, turn, None, why, turn.steps.values().filter(wrong)))
}

/// In the turn and in all after it, the messages of all members are nearly the same, and in the turn before they are not.
fn collapse(case: &Case<'_>, turns: &[Turn<'_>]) -> Option<Turning> {
    let first = onset(turns, |turn| alike(turn).then_some(()))?.0;
    let turn = turns.get(first).filter(|_| first > 0)?;
    let why = format!("all {} members say nearly the same from here on, and did not before", turn.steps.len());
    Some(turning(case, DiscussionFault::AlignmentCollapse, turn, None, why, turn.steps.values()))
}

/// In the turn and in all after it, one member has more words than halfway between an equal share and all of them.
fn monopoly(case: &Case<'_>, turns: &[Turn<'_>]) -> Option<Turning> {
    let (first, member) = onset(turns, dominant)?;
    let turn = turns.get(first)?;
    let (share, bound) = shares(turn).map(|(_, share, bound)| (share, bound))?;
    let name = case.name(member);
    let why =
        format!("{name} says {:.0} % of all words from here on; the bound is {:.0} %", share * 100.0, bound * 100.0);
    Some(turning(case, DiscussionFault::Monopolisation, turn, Some(member), why, turn.steps.get(&member).into_iter()))
}

/// Returns the first turn of those at the end that all show the same, and what they show; `None` if they are too few.
fn onset<'a, T: PartialEq>(turns: &[Turn<'a>], shown: impl Fn(&Turn<'a>) -> Option<T>) -> Option<(usize, T)> {
    let last = shown(turns.last()?)?;
    let same = turns.iter().rev().take_while(|turn| shown(turn).as_ref() == Some(&last)).count();
    (same >= FEWEST_TURNS).then(|| (turns.len() - same, last))
}

/// Returns the member with the most words in a turn, its share and the bound for it; `None` with fewer than two members.
fn shares(turn: &Turn<'_>) -> Option<(u32, f64, f64)> {
    let words = turn.steps.iter().map(|(member, step)| (message(step).len(), *member));
    let (all, n) = (words.clone().map(|(words, _)| words).sum::<usize>(), turn.steps.len());
    let (most, member) = words.max()?;
    (n > 1 && all > 0).then(|| (member, most as f64 / all as f64, (1.0 + 1.0 / n as f64) / 2.0))
}

fn dominant(turn: &Turn<'_>) -> Option<u32> {
    shares(turn).filter(|(_, share, bound)| share > bound).map(|(member, ..)| member)
}

/// Whether the messages of all members in a turn are nearly the same.
fn alike(turn: &Turn<'_>) -> bool {
    let said: Vec<Vec<String>> = turn.steps.values().map(|step| message(step)).collect();
    let mut pairs = said.iter().enumerate().flat_map(|(i, a)| said.iter().skip(i + 1).map(move |b| (a, b)));
    said.len() > 1 && said.iter().all(|words| words.len() >= FEWEST_WORDS) && pairs.all(|(a, b)| common(a, b) >= ALIKE)
}

/// The words of what a member says in a step: its reasons and its answer.
fn message(step: &Step) -> Vec<String> {
    let texts = [step.reasons.as_deref(), step.answer.as_deref()].into_iter().flatten();
    let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric())).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns the share of pairs of neighbouring words that two messages have in common (Dice's coefficient of their bigrams, each counted as
/// often as it occurs), 0 to 1.
fn common(a: &[String], b: &[String]) -> f64 {
    let mut counts: BTreeMap<&[String], [usize; 2]> = BTreeMap::new();
    for (which, words) in [a, b].into_iter().enumerate() {
        for pair in words.windows(2) {
            if let Some(count) = counts.entry(pair).or_default().get_mut(which) {
                *count += 1;
            }
        }
    }
    let shared: usize = counts.values().map(|[a, b]| a.min(b)).sum();
    let all = (a.len() + b.len()).saturating_sub(2);
    2.0 * shared as f64 / all.max(1) as f64
}

fn turning<'a>(
    case: &Case<'_>,
    fault: DiscussionFault,
    turn: &Turn<'_>,
    member: Option<u32>,
    why: String,
    steps: impl Iterator<Item = &'a &'a Step>,
) -> Turning {
    let calls = steps.map(|step| CallId::from(step.id)).collect();
    Turning { item: case.trace.item, fault, turn: turn.round, member, why, calls }
}

#[cfg(test)]
mod tests {
    use super::common;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn common_pairs_of_words_are_counted() {
        let (a, b) = (words("a b c d"), words("a b c e"));
        assert!((common(&a, &a) - 1.0).abs() < 1e-12);
        // Two of three pairs each.
        assert!((common(&a, &b) - 4.0 / 6.0).abs() < 1e-12);
        // What one repeats, the other must repeat.
        assert!((common(&words("a b a b a b"), &words("a b")) - 2.0 / 6.0).abs() < 1e-12);
        assert_eq!(common(&words("a b"), &words("b a")), 0.0);
    }
}
