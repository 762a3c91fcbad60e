//! Runs of Polity: every answer of every member of a team, from the journal.

use super::{Choice, Log, MeanOf, Question, Reply, Said, wrong};
use polity_driver::results;
use polity_driver::run::{Folder, each_answer};
use polity_kernel::ask::{Answer, Asker, Outcome, Resolution, ResponseFormat, Value};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::items::{Item, RECORDED, Scorer};
use polity_kernel::layout::Layout;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, assemble};
use polity_store::DriveError;
use polity_store::disk::RealDisk;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The purposes of questions whose replies are answers to the item: alone, and after the answers of others.
const ANSWERING: [&str; 2] = ["solve", "reconsider"];

/// Reads a run.
pub(super) fn read(path: &Path, choice: Choice<'_>, registry: &Registry) -> Result<Log, DriveError> {
    let folder = Folder::read(Arc::new(RealDisk), path)?;
    let manifest = folder.manifest()?;
    let prepared = folder.prepared(&manifest)?;
    let machine = assemble(&prepared.tree, registry, &prepared.inputs, Layout::default())
        .map_err(|error| DriveError::Folder(error.to_string()))?;
    let Assembled::Evaluation(evaluation) = machine else {
        return Err(wrong(path, "this run is a society; only evaluations have answers to items"));
    };
    if choice.scorer.is_some() {
        return Err(wrong(path, "a run of Polity has no other scorers; leave --scorer out"));
    }
    let rule = evaluation.items().first().map(|item| item.scorer).unwrap_or_default();
    if matches!(rule, Scorer::Code | Scorer::Judge) || evaluation.items().iter().any(|item| item.pair) {
        let what = "its items are programs, pairs, or scored by a model; only answers that can be scored by reading \
                    them are taken over";
        return Err(wrong(path, what));
    }
    let run = results::of_run(&RealDisk, path)?;
    let accuracy = run.tables.metrics()?.get("members.correct").and_then(|all| Some(all.first()?.1));
    let mut log = Log {
        path: path.display().to_string(),
        format: "Polity",
        task: prepared.name.clone(),
        rule: Some(rule),
        accuracy: accuracy.map(|value| (value, MeanOf::ReadableAnswers)),
        questions: evaluation.items().iter().map(question).collect(),
        ..Log::default()
    };
    if run.ended.is_none() {
        log.notes.push("the run has not ended".into());
    }
    if evaluation.team().iter().any(|member| !member.persona.is_empty()) {
        log.notes.push("members have personas, which the table does not tell apart".into());
    }
    let mut found: BTreeMap<(u32, u32, u32, u32), Answer> = BTreeMap::new();
    each_answer(Arc::new(RealDisk), path, |answer| {
        let answers = answer.id.asker == Asker::Member && answer.resolution() != Resolution::Again;
        if answers && ANSWERING.contains(&answer.request.purpose.as_str()) {
            let id = answer.id;
            found.insert((id.item, id.round, id.actor, id.n), answer);
        } else if answers {
            log.leave_out("replies to questions that ask for other work than an answer");
        }
    })?;
    let mut taken = BTreeSet::new();
    for answer in found.into_values() {
        take(&mut log, &evaluation, answer, choice.model, &mut taken);
    }
    Ok(log)
}

/// The id of an item: that of its table of recorded answers, else its row.
fn id_of(item: &Item) -> String {
    if item.id.is_empty() { item.index.to_string() } else { item.id.clone() }
}

fn question(item: &Item) -> Question {
    // The options are below the text of the question.
    let options =
        item.options.iter().enumerate().filter_map(|(i, option)| Some(format!("\n{}) {option}", super::letter(i)?)));
    let options: String = options.collect();
    let text = item.question.strip_suffix(&options).unwrap_or(&item.question).to_owned();
    Question { id: id_of(item), text, choices: item.options.clone(), right: item.gold.clone() }
}

/// Takes over an answer of a member. `taken` has the questions that are answered already.
fn take(
    log: &mut Log,
    evaluation: &Evaluation,
    answer: Answer,
    model: Option<&str>,
    taken: &mut BTreeSet<(String, String, u32, u32)>,
) {
    let Answer { id, request, outcome, usage, .. } = answer;
    let team = evaluation.team();
    let (Some(item), Some(member)) = (evaluation.items().get(id.item as usize), team.get(id.actor as usize)) else {
        return log.leave_out("replies of others than members");
    };
    let said = match outcome {
        Outcome::Reply { value, .. } => match said(&request.response_format, &value) {
            Some(text) => text,
            None => return log.leave_out("replies without an answer"),
        },
        // It replied, but no answer could be read.
        Outcome::Invalid { .. } => String::new(),
        Outcome::Refused { .. } | Outcome::Failed { .. } | Outcome::Denied { .. } => {
            return log.leave_out("questions without a reply");
        }
    };
    // Members with one model share its samples, as when they are played.
    let same = |members: &[polity_kernel::method::Member]| {
        members.iter().filter(|other| other.model == member.model).count() as u32
    };
    let nth = request.sample / (team.len() as u32).max(1);
    let sample = nth * same(team) + same(team.get(..id.actor as usize).unwrap_or_default());
    let model = model.unwrap_or_else(|| request.model.strip_prefix(RECORDED).unwrap_or(&request.model)).to_owned();
    let item_id = id_of(item);
    if !taken.insert((item_id.clone(), model.clone(), sample, id.round)) {
        return log.leave_out("further answers of a member in one round");
    }
    let mark = if said.is_empty() { item.gold.as_ref().map(|_| false) } else { item.is_right(&said) };
    log.replies.push(Reply {
        item: item_id,
        model,
        sample,
        round: id.round,
        member: Some(member.name.clone()),
        said: Said::Extracted(said),
        mark,
        tokens: [usage.tokens_in, usage.tokens_out],
        cost_usd: usage.cost_usd,
        identity: None,
    });
}

/// The answer in a reply: the whole of it, or the field `answer` of a record.
fn said(form: &ResponseFormat, value: &Value) -> Option<String> {
    match (form, value) {
        (ResponseFormat::Record(parts), Value::Record(_)) => {
            let place = parts.iter().position(|(name, _)| name == "answer")?;
            said(&parts.get(place)?.1, value.field(place)?)
        }
        (ResponseFormat::Choice(options), Value::Choice(chosen)) => options.get(*chosen as usize).cloned(),
        (_, Value::Text(text)) => Some(text.trim().to_owned()),
        (_, Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::Task;

    #[test]
    fn the_first_purpose_is_that_of_the_kernel() {
        assert_eq!(ANSWERING[0], Task::Solve.name());
    }
}
