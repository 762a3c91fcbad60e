//! What a recorded evaluation shows of its models: answers given alone, answers after others were heard, choices between two answers.

use crate::agreement::columns;
use crate::failure::{Exit, Failure};
use polity_driver::results;
use polity_driver::run::{Folder, each_answer};
use polity_kernel::ask::{Answer, Asker, Part, Role};
use polity_kernel::evaluation::Evaluation;
use polity_kernel::items::recorded_model;
use polity_kernel::layout::Layout;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, assemble};
use polity_stats::calibration::influence::{Heard, Opinion};
use polity_stats::calibration::judging::Choice;
use polity_stats::calibration::{Answered, OPEN};
use polity_store::disk::RealDisk;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a run shows of a model.
#[derive(Default)]
pub(super) struct Seen {
    /// Its first answers, before it heard anyone.
    pub alone: Vec<Answered>,
    /// Its answers after it heard others.
    pub heard: Vec<Heard>,
    /// Its choices between two answers.
    pub choices: Vec<Choice>,
}

/// An answer's place: item, round and member.
type Place = (u32, u32, u32);

/// Reads what a run shows, by model. Members that are told to mislead are left out.
pub(super) fn read(run: &Path, registry: &Registry) -> Result<BTreeMap<String, Seen>, Failure> {
    let folder = Folder::read(Arc::new(RealDisk), run)?;
    let manifest = folder.manifest()?;
    let prepared = folder.prepared(&manifest)?;
    let machine = assemble(&prepared.tree, registry, &prepared.inputs, Layout::default())
        .map_err(|error| Failure::new(Exit::Folder, error.to_string()))?;
    let Assembled::Evaluation(evaluation) = machine else {
        let message = format!("{} is a society; parameters can be fitted to evaluations only", run.display());
        return Err(Failure::new(Exit::Input, message));
    };
    let acts = Acts::read(run)?;
    let mut seen = BTreeMap::new();
    of_answers(&evaluation, &acts, &mut seen);
    let mut heard: BTreeMap<Place, Vec<(String, Opinion, String)>> = BTreeMap::new();
    each_answer(Arc::new(RealDisk), run, |answer| {
        let place = (answer.id.item, answer.id.round, answer.id.actor);
        let said = shown(&answer);
        if answer.id.asker == Asker::Member && !said.is_empty() {
            heard.entry(place).or_insert(said);
        }
    })?;
    for (place, said) in heard {
        if let Some((model, heard)) = after_others(&evaluation, &acts, place, said) {
            seen.entry(model).or_default().heard.push(heard);
        }
    }
    Ok(seen)
}

/// The answers of members by kind of act, each the first of its kind in its place.
struct Acts(BTreeMap<(String, Place), String>);

impl Acts {
    fn read(run: &Path) -> Result<Self, Failure> {
        let tables = results::open(&RealDisk, run)?;
        let names = ["item", "round", "agent", "kind", "text"];
        let [item, round, who, kind, text] = columns(run, &tables, "acts", names)?;
        let whole = |data: &polity_store::tables::ColumnData| -> Vec<Option<u32>> {
            data.numbers().into_iter().map(|x| x.map(|x| x as u32)).collect()
        };
        let mut acts = BTreeMap::new();
        let places = whole(&item).into_iter().zip(whole(&round)).zip(whole(&who));
        for ((((item, round), who), kind), text) in places.zip(kind.texts()).zip(text.texts()) {
            if let (Some(item), Some(round), Some(who), Some(kind), Some(text)) = (item, round, who, kind, text) {
                acts.entry((kind, (item, round, who))).or_insert(text);
            }
        }
        Ok(Acts(acts))
    }

    fn answer(&self, place: Place) -> Option<&str> {
        self.0.get(&("answer".to_owned(), place)).map(String::as_str)
    }
}

/// Takes the answers given alone, and the choices between two answers.
fn of_answers(evaluation: &Evaluation, acts: &Acts, seen: &mut BTreeMap<String, Seen>) {
    for ((kind, (index, round, who)), text) in &acts.0 {
        let (Some(item), Some(member)) =
            (evaluation.items().get(*index as usize), evaluation.team().get(*who as usize))
        else {
            continue;
        };
        if *round != 0 || member.adversarial {
            continue;
        }
        // Without other orders a verdict is a choice in the given order.
        let orders = acts.0.contains_key(&("given-order".to_owned(), (*index, *round, *who)));
        let choice = item.pair.then(|| choice(kind, orders, text, item.gold.as_deref())).flatten();
        let right = item.is_right(text).filter(|_| !item.pair && kind == "answer");
        if choice.is_none() && right.is_none() {
            continue;
        }
        let of_model = seen.entry(member.model.clone()).or_default();
        of_model.choices.extend(choice);
        of_model.alone.extend(right.map(|right| Answered {
            item: *index,
            difficulty: item.difficulty,
            others: if item.options.is_empty() { OPEN } else { item.options.len().saturating_sub(2) as u32 },
            right,
            answer: item.extracted(text).unwrap_or_default(),
        }));
    }
}

/// The choice of a judge of two answers, which are shown in the given order except in a `swapped-order`. Answer A is given first.
fn choice(kind: &str, orders: bool, text: &str, gold: Option<&str>) -> Option<Choice> {
    let swapped = match kind {
        "given-order" => false,
        "verdict" | "answer" if !orders => false,
        "swapped-order" => true,
        _ => return None,
    };
    let is_first = |letter: &str| match letter {
        "A" => Some(!swapped),
        "B" => Some(swapped),
        _ => None,
    };
    Some(Choice { first_better: is_first(gold?)?, first_named: is_first(text)? })
}

/// Returns the answers that a request shows after the model's last message, each with its author.
fn shown(answer: &Answer) -> Vec<(String, Opinion, String)> {
    let messages = &answer.request.messages;
    let own = messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |last| last + 1);
    let parts = messages.iter().skip(own).flat_map(|message| &message.parts);
    // The prose of recorded answers is not shipped, but the model was shown it.
    let on_record = recorded_model(&answer.request.model).is_some();
    parts
        .filter_map(|part| match part {
            Part::Said { by, answer, reasons } => {
                let argued = on_record || !reasons.is_empty();
                Some((by.clone(), Opinion { answer: 0, argued }, answer.clone()))
            }
            _ => None,
        })
        .collect()
}

/// Returns a member's model, and its answer after it heard others with its answer before.
fn after_others(
    evaluation: &Evaluation,
    acts: &Acts,
    (index, round, who): Place,
    said: Vec<(String, Opinion, String)>,
) -> Option<(String, Heard)> {
    let (item, member) = (evaluation.items().get(index as usize)?, evaluation.team().get(who as usize)?);
    if member.adversarial || item.pair {
        return None;
    }
    let after = acts.answer((index, round, who))?;
    let before = (0..round).rev().find_map(|round| acts.answer((index, round, who)))?;
    // Answers that are the same to the scorer get the same number.
    let mut known: Vec<String> = Vec::new();
    let mut number = |answer: &str| match known.iter().position(|known| item.same(known, answer)) {
        Some(place) => place as u32,
        None => {
            known.push(answer.to_owned());
            known.len() as u32 - 1
        }
    };
    let others = said.into_iter().filter(|(by, ..)| *by != member.name);
    let others = others.map(|(_, said, answer)| Opinion { answer: number(&answer), ..said }).collect();
    let (before, after) = (number(before), number(after));
    let right = known.iter().position(|answer| item.is_right(answer) == Some(true)).map(|place| place as u32);
    Some((member.model.clone(), Heard { difficulty: item.difficulty, before, others, after, right }))
}
