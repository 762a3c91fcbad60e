//! Modes 2.1 to 2.6: between the members. Mode 2.2, failing to ask for clarification, is not in the record.

use super::specification::brief;
use super::trace::{Step, same};
use super::{Case, Symptom};
use polity_kernel::failure::FailureMode;
use polity_kernel::items::Scorer;
use std::collections::BTreeSet;

pub(super) fn symptoms(case: &Case<'_>) -> Vec<Symptom> {
    let rules = [reset, derailed, withheld, ignored, mismatched];
    rules.iter().filter_map(|rule| rule(case)).collect()
}

/// 2.1: a member is shown nothing of what was said, although the method shows some of it in most items.
fn reset(case: &Case<'_>) -> Option<Symptom> {
    let step = case.trace.solving().find(|step| !step.remembers() && case.protocol.remembers(step))?;
    let why = format!("{} begins again: it is shown nothing of what was said before", case.name(step.id.actor));
    Some(case.symptom(FailureMode::ConversationReset, why, &[step]))
}

/// 2.3: a member that is to answer the item is not shown its question, as it is in most items.
fn derailed(case: &Case<'_>) -> Option<Symptom> {
    let off = |step: &&Step| !step.mentions(&case.item.question) && case.protocol.shows_task(step);
    let step = case.trace.solving().find(off)?;
    let why =
        format!("{} is to answer, but what it is asked is not the question of the item", case.name(step.id.actor));
    Some(case.symptom(FailureMode::TaskDerailment, why, &[step]))
}

/// 2.4: a member has answered, but nobody to whom the method shows its answer in most items is shown it.
fn withheld(case: &Case<'_>) -> Option<Symptom> {
    let spoke: BTreeSet<u32> =
        case.trace.solving().filter(|it| it.answer.is_some()).map(|step| step.id.actor).collect();
    for member in spoke {
        let speaker = case.name(member);
        // Whoever is shown nothing at all has another failure.
        let due = |step: &&Step| step.id.actor != member && step.remembers() && case.protocol.shows(step, speaker);
        let hearers: Vec<&Step> = case.trace.solving().filter(due).collect();
        let Some(first) = hearers.first() else { continue };
        if hearers.iter().all(|step| step.heard().all(|(by, _)| by != speaker)) {
            let why = format!("what {speaker} answers is shown to nobody, as it is in most items");
            return Some(case.symptom(FailureMode::InformationWithholding, why, &[first]));
        }
    }
    None
}

/// 2.5: a member keeps a wrong answer, although it is told that it is wrong, or all others agree on the right one.
fn ignored(case: &Case<'_>) -> Option<Symptom> {
    let step = case.trace.solving().find(|step| {
        let (Some(own), Some(answer)) = (step.own(), step.answer.as_deref()) else { return false };
        let mut others = step.heard().map(|(_, answer)| answer);
        let corrected = step.heard().count() > 1 && others.all(|other| case.item.is_right(other) == Some(true));
        same(case.item, own, answer)
            && case.item.is_right(own) == Some(false)
            && (step.finding() == Some(false) || corrected)
    })?;
    let what = if step.finding() == Some(false) { "a finding that it is wrong" } else { "the agreement of the others" };
    let why = format!(
        "{} keeps the wrong answer `{}` against {what}",
        case.name(step.id.actor),
        brief(step.own().unwrap_or_default())
    );
    Some(case.symptom(FailureMode::IgnoredOtherAgentsInput, why, &[step]))
}

/// 2.6: the reasons end in another answer than the one that is given.
fn mismatched(case: &Case<'_>) -> Option<Symptom> {
    if matches!(case.item.scorer, Scorer::Code | Scorer::Judge) {
        return None;
    }
    let (step, concluded) = case.trace.solving().find_map(|step| {
        let concluded = conclusion(step.reasons.as_deref()?)?;
        let answer = step.answer.as_deref()?;
        let readable = case.item.extracted(concluded).is_some() && case.item.extracted(answer).is_some();
        (readable && !same(case.item, concluded, answer)).then_some((step, concluded))
    })?;
    let why = format!(
        "{} concludes `{}`, but answers `{}`",
        case.name(step.id.actor),
        brief(concluded),
        brief(step.answer.as_deref().unwrap_or_default())
    );
    Some(case.symptom(FailureMode::ReasoningActionMismatch, why, &[step]))
}

/// Returns the answer that a text states last: what follows `answer is`, up to the end of the sentence.
fn conclusion(reasons: &str) -> Option<&str> {
    const MARK: &str = "answer is";
    let (_, after) = reasons.rsplit_once(MARK)?;
    let end = after.find(". ").or_else(|| after.find('\n')).unwrap_or(after.len());
    let stated = after.get(..end)?.trim().trim_start_matches(':').trim().trim_end_matches('.');
    (!stated.is_empty()).then_some(stated)
}

#[cfg(test)]
mod tests {
    use super::conclusion;

    #[test]
    fn the_last_stated_answer_is_the_conclusion() {
        assert_eq!(conclusion("The answer is 3. No: the answer is 4.5. Sure."), Some("4.5"));
        assert_eq!(conclusion("So the answer is: B."), Some("B"));
        assert_eq!(conclusion("It follows."), None);
    }
}
