//! Modes 3.1 to 3.3: the check of an answer, and the end.

use super::specification::brief;
use super::trace::{Kind, Step, same};
use super::{Case, Symptom};
use polity_kernel::failure::FailureMode;
use std::collections::BTreeMap;

pub(super) fn symptoms(case: &Case<'_>) -> Vec<Symptom> {
    [too_early, unverified, wrongly_accepted].iter().filter_map(|rule| rule(case)).collect()
}

/// 3.1: an item ends before others do, although its answer was rejected or its members disagree.
fn too_early(case: &Case<'_>) -> Option<Symptom> {
    let rounds = case.trace.ended.rounds;
    if rounds >= case.protocol.rounds() {
        return None;
    }
    let last: Vec<&Step> = case.trace.steps.iter().filter(|step| step.id.round + 1 == rounds).collect();
    let checks: Vec<&Step> = last.iter().copied().filter(|step| step.accepts.is_some()).collect();
    let answer = case.trace.ended.answer.as_deref()?;
    let on_it = |step: &&&Step| step.heard().last().is_some_and(|(_, shown)| same(case.item, shown, answer));
    let mut finals = checks.iter().filter(on_it).peekable();
    if let Some(first) = finals.peek().copied() {
        let why = format!(
            "the team ends in round {} with the answer `{}`, which the last checks reject",
            rounds - 1,
            brief(answer)
        );
        let rejected = finals.all(|step| step.accepts == Some(false));
        return rejected.then(|| case.symptom(FailureMode::PrematureTermination, why, &[first]));
    }
    let judged = last.iter().any(|step| step.kind == Kind::Judges);
    let mut standing: BTreeMap<u32, &Step> = BTreeMap::new();
    for step in last.iter().filter(|step| step.kind == Kind::Solves && step.answer.is_some()) {
        standing.insert(step.id.actor, step);
    }
    let answers: Vec<&str> = standing.values().filter_map(|step| step.answer.as_deref()).collect();
    let differ = answers.iter().any(|a| answers.iter().any(|b| !same(case.item, a, b)));
    if judged || !differ || !case.protocol.takes_all_rounds() {
        return None;
    }
    let why =
        format!("the team ends after {rounds} of {} rounds, although its members disagree", case.protocol.rounds());
    Some(case.symptom(FailureMode::PrematureTermination, why, &standing.into_values().collect::<Vec<_>>()))
}

/// 3.2: a judgement that most items have is missing.
fn unverified(case: &Case<'_>) -> Option<Symptom> {
    let made = |purpose: &str, member: u32| {
        case.trace.judging().any(|step| step.request.purpose == purpose && step.id.actor == member)
    };
    // Whether another member does it is a question of roles.
    let done = |purpose: &str| case.trace.judging().filter(|step| step.request.purpose == purpose).count();
    let needed = |purpose: &str| case.protocol.required().filter(|(it, _)| *it == purpose).count();
    let (purpose, member) = case
        .protocol
        .required()
        .find(|(purpose, member)| !made(purpose, *member) && done(purpose) < needed(purpose))?;
    let why = format!("`{purpose}` by {} is missing, which most items have", case.name(member));
    let last: Vec<&Step> = case.trace.solving().last().into_iter().collect();
    Some(case.symptom(FailureMode::NoOrIncompleteVerification, why, &last))
}

/// 3.3: every check of the final answer accepts it, but it is wrong.
fn wrongly_accepted(case: &Case<'_>) -> Option<Symptom> {
    let answer = case.trace.ended.answer.as_deref().filter(|_| case.trace.ended.correct == Some(false))?;
    let checks: Vec<&Step> = case.trace.checks(case.item, answer).collect();
    let accepting = *checks.first()?;
    if !checks.iter().all(|step| step.accepts == Some(true)) {
        return None;
    }
    let why = format!("{} accepts the answer `{}`, which is wrong", case.name(accepting.id.actor), brief(answer));
    Some(case.symptom(FailureMode::IncorrectVerification, why, &checks))
}
