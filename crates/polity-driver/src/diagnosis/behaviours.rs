//! Social behaviours of members, by turn: those that Chen et al., "AgentVerse: Facilitating Multi-Agent Collaboration and Exploring Emergent
//! Behaviors", 2024, found in the logs of groups, as far as the record of an evaluation decides them.
//!
//! They are told by answers and checks. A member of a team speaks only when its method asks, so a reviewer volunteers if it gives an answer of its own.

use super::trace::{Step, Trace, same};
use super::{CallId, Case};
use polity_kernel::items::{Item, Scorer};
use serde::Serialize;

/// A behaviour of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Social {
    /// A member helps without being asked: it is asked whether an answer is right, and gives one of its own.
    Volunteer,
    /// A member gives up its answer after criticism, or for the answer of the group.
    Conformity,
    /// A member turns the group away from a right answer, and the group ends with a wrong one.
    Destructive,
}

impl Social {
    /// Returns its name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Social::Volunteer => "volunteer",
            Social::Conformity => "conformity",
            Social::Destructive => "destructive",
        }
    }
}

/// A behaviour of a member in a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behaviour {
    /// The item.
    pub item: u32,
    /// The behaviour.
    pub behaviour: Social,
    /// The round.
    pub turn: u32,
    /// The member.
    pub member: u32,
    /// What the record shows, in a sentence.
    pub why: String,
    /// The call that shows it.
    pub call: CallId,
}

/// A behaviour that the rules cannot decide for a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndecidedBehaviour {
    /// The behaviour.
    pub behaviour: Social,
    /// Why.
    pub why: &'static str,
}

/// Lists what the record of a run with these items cannot decide.
pub(super) fn undecided(items: &[Item], traces: &[Trace]) -> Vec<UndecidedBehaviour> {
    let known = items.iter().any(|item| item.gold.as_deref().is_some_and(|gold| item.is_right(gold).is_some()));
    let reviews = |trace: &Trace| trace.steps.iter().any(|step| step.review.is_some());
    let volunteer = match items.iter().any(has_form) {
        false => Some("the rules cannot find an answer in the words of a review, unless it is a number or an option"),
        true if !traces.iter().any(reviews) => {
            Some("the method has no reviews, and only a reviewer can give an answer that nobody asked for")
        }
        true => None,
    };
    let destructive = (!known).then_some("no right answer is known to compare with");
    let entry = |(behaviour, why)| UndecidedBehaviour { behaviour, why };
    [volunteer.map(|why| (Social::Volunteer, why)), destructive.map(|why| (Social::Destructive, why))]
        .into_iter()
        .flatten()
        .map(entry)
        .collect()
}

/// Whether an answer to the item can be found among other words.
fn has_form(item: &Item) -> bool {
    matches!(item.scorer, Scorer::Number | Scorer::Choice)
}

/// Returns the behaviours in the steps of an item, in their order. A member shows each at most once in a turn.
pub(super) fn behaviours(case: &Case<'_>) -> Vec<Behaviour> {
    let mut found: Vec<Behaviour> = Vec::new();
    for step in &case.trace.steps {
        let shown = [
            (Social::Volunteer, volunteers(case, step)),
            (Social::Conformity, conforms(case, step)),
            (Social::Destructive, destroys(case, step)),
        ];
        for (behaviour, why) in shown {
            let Some(why) = why else { continue };
            let (item, turn, member) = (case.trace.item, step.id.round, step.id.actor);
            let place = |it: &Behaviour| (it.behaviour, it.turn, it.member);
            if found.iter().all(|it| place(it) != (behaviour, turn, member)) {
                found.push(Behaviour { item, behaviour, turn, member, why, call: CallId::from(step.id) });
            }
        }
    }
    found
}

/// A review ends with an answer that is neither among those that its author was shown nor a number of the question.
fn volunteers(case: &Case<'_>, step: &Step) -> Option<String> {
    let item = case.item;
    let offered = item.extracted(step.review.as_deref().filter(|_| has_form(item))?)?;
    let known = step.heard().any(|(_, answer)| same(item, answer, &offered));
    let quoted = item.scorer == Scorer::Number
        && item.question.split(|c: char| !(c.is_alphanumeric() || ".,".contains(c))).any(|word| {
            let word = word.trim_matches(['.', ',']);
            !word.is_empty() && same(item, word, &offered)
        });
    (!known && !quoted)
        .then(|| format!("{} is asked whether an answer is right, and gives its own", case.name(step.id.actor)))
}

/// A member gives another answer than its own before: after a finding against it, or the answer of most of the others, who are at least
/// two.
fn conforms(case: &Case<'_>, step: &Step) -> Option<String> {
    let (own, answer) = (step.own()?, step.answer.as_deref()?);
    if same(case.item, own, answer) {
        return None;
    }
    let name = case.name(step.id.actor);
    if step.finding() == Some(false) {
        return Some(format!("{name} gives another answer after criticism"));
    }
    let heard: Vec<&str> = step.heard().map(|(_, answer)| answer).collect();
    let agreeing = heard.iter().filter(|other| same(case.item, other, answer)).count();
    (heard.len() > 1 && 2 * agreeing > heard.len())
        .then(|| format!("{name} gives up its answer for that of {agreeing} of {} others", heard.len()))
}

/// A check rejects a right answer, or a member is the first to give a wrong one although most that it hears give a right one; and the team
/// ends with a wrong answer: after that check, or with that answer.
fn destroys(case: &Case<'_>, step: &Step) -> Option<String> {
    if case.trace.ended.correct != Some(false) {
        return None;
    }
    let (item, name) = (case.item, case.name(step.id.actor));
    let ended = case.trace.ended.answer.as_deref()?;
    let right = |answer: &str| item.is_right(answer) == Some(true);
    if step.accepts == Some(false) {
        let (_, checked) = step.heard().last()?;
        // Whoever gave the answer gives it up after the check.
        let given_up = |later: &Step| {
            later.id.round >= step.id.round
                && later.finding() == Some(false)
                && later.own().is_some_and(|own| same(item, own, checked))
                && later.answer.as_deref().is_some_and(|answer| !right(answer))
        };
        return (right(checked) && case.trace.solving().any(given_up))
            .then(|| format!("{name} rejects a right answer, which is given up for a wrong one"));
    }
    let answer = step.answer.as_deref().filter(|answer| !right(answer) && same(item, answer, ended))?;
    let heard: Vec<&str> = step.heard().map(|(_, answer)| answer).collect();
    let for_right = heard.iter().filter(|other| right(other)).count();
    let mut earlier = case.trace.solving().take_while(|earlier| earlier.id != step.id);
    let first = earlier.all(|it| it.answer.as_deref().is_none_or(|other| !same(item, other, answer)));
    (first && 2 * for_right > heard.len())
        .then(|| format!("{name} brings up the wrong answer with which the team ends, against a right one"))
}
