//! Modes 1.1 to 1.5: the specification of the task, of roles and of the end.

use super::protocol::judges;
use super::trace::Step;
use super::{Case, Symptom};
use polity_kernel::failure::FailureMode;
use polity_kernel::items::Scorer;

pub(super) fn symptoms(case: &Case<'_>) -> Vec<Symptom> {
    let rules = [unfit_answer, other_role, repeated_step, lost_history, beyond_the_end];
    rules.iter().filter_map(|rule| rule(case)).collect()
}

/// 1.1: a reply to the item has not the form that the item asks for.
fn unfit_answer(case: &Case<'_>) -> Option<Symptom> {
    let readable = matches!(case.item.scorer, Scorer::Number | Scorer::Math | Scorer::Choice);
    let unfit = |step: &&Step| {
        step.unfit || readable && step.answer.as_deref().is_some_and(|it| case.item.extracted(it).is_none())
    };
    let step = case.trace.solving().find(unfit)?;
    let said = step.answer.as_deref().unwrap_or("a reply that does not fit");
    let why =
        format!("{} answers `{}`, which is not an answer of the kind asked for", case.name(step.id.actor), brief(said));
    Some(case.symptom(FailureMode::DisobeyTaskSpecification, why, &[step]))
}

/// 1.2: a member judges where, in most items, only others do.
fn other_role(case: &Case<'_>) -> Option<Symptom> {
    let (purpose, member) = judges(case.trace).into_iter().find_map(|(purpose, members)| {
        let usual = case.protocol.judges(purpose)?;
        members.into_iter().find(|member| !usual.contains(member)).map(|member| (purpose, member))
    })?;
    let step = case.trace.judging().find(|step| step.request.purpose == purpose && step.id.actor == member)?;
    let why = format!("{} does `{purpose}`, which other members do in most items", case.name(member));
    Some(case.symptom(FailureMode::DisobeyRoleSpecification, why, &[step]))
}

/// 1.3: a member is asked the same again in a round, although it has replied.
fn repeated_step(case: &Case<'_>) -> Option<Symptom> {
    let steps = &case.trace.steps;
    let again = |a: &Step, b: &Step| {
        let place = |step: &Step| (step.id.round, step.id.actor, step.id.asker);
        place(a) == place(b) && !a.unfit && a.request == b.request
    };
    let pair = steps.iter().enumerate().find_map(|(i, first)| {
        let later = steps.get(i + 1..)?.iter().find(|later| again(first, later))?;
        Some((first, later))
    });
    let (first, later) = pair?;
    let why = format!(
        "{} does the same `{}` twice in round {}",
        case.name(first.id.actor),
        first.request.purpose,
        first.id.round
    );
    Some(case.symptom(FailureMode::StepRepetition, why, &[first, later]))
}

/// 1.4: a member is not shown its own earlier answer, which the method shows in most items.
fn lost_history(case: &Case<'_>) -> Option<Symptom> {
    let lost = |step: &&Step| step.remembers() && !step.continues() && case.protocol.shows_own(step);
    let step = case.trace.solving().find(lost)?;
    let why = format!("{} is not shown its own earlier answer, as it is in most items", case.name(step.id.actor));
    Some(case.symptom(FailureMode::LossOfConversationHistory, why, &[step]))
}

/// 1.5: an answer is changed although every check has accepted it.
fn beyond_the_end(case: &Case<'_>) -> Option<Symptom> {
    let (step, check) = case.trace.solving().find_map(|step| {
        let own = step.own()?;
        let near = |check: &&Step| check.id.round <= step.id.round && check.id.round + 1 >= step.id.round;
        let mut checks = case.trace.checks(case.item, own).filter(near).peekable();
        let first = *checks.peek()?;
        (step.finding() == Some(false) && checks.all(|check| check.accepts == Some(true))).then_some((step, first))
    })?;
    let why = format!(
        "{} accepts the answer `{}`, but {} is asked to revise it",
        case.name(check.id.actor),
        brief(step.own().unwrap_or_default()),
        case.name(step.id.actor)
    );
    Some(case.symptom(FailureMode::UnawareOfTerminationConditions, why, &[check, step]))
}

/// Returns the beginning of a text, on one line.
pub(super) fn brief(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
