//! The calls of a run, from its journal; the run may be active or killed.

use super::folder::{Folder, manifest_file};
use super::inventory::Inventory;
use super::manifest::Manifest;
use crate::calls::{Call, Place};
use polity_kernel::ask::{Answer, EffectId, Outcome};
use polity_kernel::event::Event;
use polity_models::models::Providers;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::journal::JournalReader;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A filter of calls; `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Of this agent, or member of the team.
    pub agent: Option<u32>,
    /// Of turns that began in this round.
    pub round: Option<u32>,
    /// On this item.
    pub item: Option<u32>,
    /// For this purpose.
    pub purpose: Option<String>,
    /// Maximum number, the first ones.
    pub limit: Option<usize>,
}

/// How much of texts is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// The whole texts.
    Whole,
    /// At most this many characters of each, from its beginning and its end.
    Cut(usize),
}

/// A call, with data that the table has no column for.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The call.
    pub call: Call,
    /// The messages of the request: their roles and their texts, as long as [`Texts`] says.
    pub messages: Vec<(&'static str, String)>,
    /// Why the reply does not fit, if so.
    pub unfit: Option<String>,
}

/// Returns the matching calls of a run, in the order of the table `calls`, including those of incomplete turns. The run may be active:
/// nothing is locked, and other calls are not kept in memory.
///
/// # Errors
/// [`DriveError::Folder`] for a folder without a run, [`DriveError::Journal`] for a damaged one, [`DriveError::Input`] for an agent,
/// round, item or purpose that the run does not have.
pub fn calls(disk: Arc<dyn Disk>, dir: &Path, wanted: &Wanted, texts: Texts) -> Result<Vec<Shown>, DriveError> {
    Folder::read(disk.clone(), dir)?;
    // Only the shape of the run is taken from it here; it is verified once the journal has been read.
    let file = manifest_file(disk.as_ref(), dir)?;
    let manifest = Manifest::from_text(&file, &dir.join("manifest.json"))?;
    let evaluation = manifest.scenario.get("method").is_some_and(|method| !method.is_null());
    let rounds = manifest.scenario.get("rounds").and_then(serde_json::Value::as_u64).unwrap_or(u64::MAX);
    let wrong = |what: String| Err(DriveError::Input(format!("{}: {what}", dir.display())));
    let mut found: BTreeMap<Place, Shown> = BTreeMap::new();
    let mut seen = Seen::default();
    let providers = Providers::standard();
    each_answer(disk.clone(), dir, |answer| {
        seen.agents.insert(answer.id.actor);
        if evaluation {
            seen.items.insert(answer.id.item);
        }
        if !seen.purposes.contains(&answer.request.purpose) {
            seen.purposes.insert(answer.request.purpose.clone());
        }
        let is = |wanted: Option<u32>, value: u32| wanted.is_none_or(|wanted| wanted == value);
        let fits = is(wanted.agent, answer.id.actor)
            && is(wanted.round, answer.id.round)
            && is(wanted.item, answer.id.item)
            && wanted.purpose.as_ref().is_none_or(|purpose| *purpose == answer.request.purpose);
        if !fits {
            return;
        }
        let EffectId { item, round, actor, asker, n } = answer.id;
        let place: Place = (round, evaluation.then_some(item), actor, asker, n);
        let full = wanted.limit.is_some_and(|limit| found.len() >= limit);
        if full && found.last_key_value().is_none_or(|(last, _)| place > *last) {
            return;
        }
        let priced = manifest.knows_price(&answer.request.model, &providers);
        found.insert(place, shown(answer, evaluation, texts, priced));
        if wanted.limit.is_some_and(|limit| found.len() > limit) {
            found.pop_last();
        }
    })?;
    if let Some(round) = wanted.round
        && u64::from(round) >= rounds
    {
        return wrong(format!("there is no round {round}: the run has {rounds} rounds, numbered from 0"));
    }
    if wanted.item.is_some() && !evaluation {
        return wrong("a society has no items; --item is for evaluations".into());
    }
    if seen.agents.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(agent) = wanted.agent.filter(|agent| !seen.agents.contains(agent)) {
        return wrong(format!("agent {agent} asked no questions; the agents that did: {}", listed(&seen.agents)));
    }
    if let Some(item) = wanted.item.filter(|item| !seen.items.contains(item)) {
        return wrong(format!(
            "no question was asked about item {item}; the items with questions: {}",
            listed(&seen.items)
        ));
    }
    if let Some(purpose) = wanted.purpose.as_ref().filter(|purpose| !seen.purposes.contains(*purpose)) {
        let known: Vec<String> = seen.purposes.iter().map(|purpose| format!("`{purpose}`")).collect();
        return wrong(format!("no question has the purpose `{purpose}`; the purposes are {}", known.join(", ")));
    }
    Ok(found.into_values().collect())
}

/// Passes every answer in the journal of a run on, in the order of arrival. The run may be active: nothing is locked, and no answer is
/// kept in memory.
///
/// # Errors
/// [`DriveError::Folder`] for a folder without a run, [`DriveError::Journal`] for a damaged one. Then the answers passed on so far must not
/// be used.
pub fn each_answer(disk: Arc<dyn Disk>, dir: &Path, mut take: impl FnMut(Answer)) -> Result<(), DriveError> {
    let folder = Folder::read(disk.clone(), dir)?;
    let file = manifest_file(disk.as_ref(), dir)?;
    let mut inventory = Inventory::default();
    let mut reader = JournalReader::open(disk.as_ref(), &folder.journal())?;
    while let Some(segment) = reader.next_segment()? {
        for record in segment.records() {
            let event = Event::decode(record.kind, record.payload).map_err(super::unreadable)?;
            inventory.take(&event);
            if let Event::Answers(answers) = event {
                answers.into_iter().for_each(&mut take);
            }
        }
    }
    inventory.verified(dir, &file)?;
    Ok(())
}

/// An answer as it is shown.
fn shown(answer: Answer, evaluation: bool, texts: Texts, priced: bool) -> Shown {
    let mut call = Call::of(&answer, evaluation, true, priced);
    let text = |text: String| match texts {
        Texts::Whole => text,
        Texts::Cut(most) => cut(&text, most),
    };
    let messages = answer.request.messages.iter();
    let messages = messages.map(|message| (message.role.name(), text(message.rendered()))).collect();
    if let Texts::Cut(most) = texts {
        call.prompt = cut(&call.prompt, most);
        call.answer = cut(&call.answer, most);
        call.reasoning = cut(&call.reasoning, most);
    }
    let unfit = match answer.outcome {
        Outcome::Invalid { why, .. } => Some(why),
        _ => None,
    };
    Shown { call, messages, unfit }
}

/// Askers, subjects and purposes that occur.
#[derive(Default)]
struct Seen {
    agents: BTreeSet<u32>,
    items: BTreeSet<u32>,
    purposes: BTreeSet<String>,
}

/// Numbers as ranges, `0 to 5, 8`; only the first few.
fn listed(numbers: &BTreeSet<u32>) -> String {
    const MOST: usize = 12;
    let all: Vec<u32> = numbers.iter().copied().collect();
    let mut stretches: Vec<String> = all
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .map(|run| match run {
            [first, .., last] => format!("{first} to {last}"),
            one => one.iter().map(u32::to_string).collect(),
        })
        .collect();
    if stretches.len() > MOST {
        stretches.truncate(MOST);
        stretches.push(format!("and others ({} in all)", all.len()));
    }
    stretches.join(", ")
}

/// Limits the characters of a text: a longer one is cut to its beginning and its end.
fn cut(text: &str, most: usize) -> String {
    // Count only texts that may be too long.
    let length = if text.len() <= most { 0 } else { text.chars().count() };
    if length <= most {
        return text.to_string();
    }
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(i, _)| i);
    let (head, tail) = (most - most / 2, most / 2);
    let (begin, end) = (&text[..at(head)], &text[at(length - tail)..]);
    format!("{} … ({} characters left out) … {}", begin.trim_end(), length - most, end.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("abcdefgh", 4), "ab … (4 characters left out) … gh");
        assert_eq!(cut("ääääöööö", 5), "äää … (3 characters left out) … öö");
        assert_eq!(cut("abc", 0), " … (3 characters left out) … ");
    }

    #[test]
    fn numbers_are_listed_as_stretches() {
        assert_eq!(listed(&BTreeSet::from([0, 1, 2, 5, 7, 8])), "0 to 2, 5, 7 to 8");
        let odd: BTreeSet<u32> = (0..100).map(|i| 2 * i).collect();
        assert!(listed(&odd).ends_with("22, and others (100 in all)"), "{}", listed(&odd));
    }
}
