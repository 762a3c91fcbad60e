//! Summarises a run's journal.

use super::inventory::{Inventory, unreadable};
use crate::past::Past;
use polity_kernel::ask::{EffectId, Usage};
use polity_kernel::event::{Event, Order, Sent};
use polity_kernel::scenario::Limits;
use polity_store::DriveError;
use polity_store::journal::JournalReader;
use std::collections::BTreeMap;

/// The summary of a run's journal.
#[derive(Debug, Default)]
pub(super) struct JournalSummary {
    pub(super) past: Past,
    /// The required contents of its folder.
    pub(super) inventory: Inventory,
    /// Why it stopped, if its budget was used up and it has not continued since.
    pub(super) exhausted: Option<String>,
    /// Limits set during the run.
    pub(super) set: Limits,
    /// Requests in flight when the process was killed. They are in [`Past::broken`], and not yet in any record.
    pub(super) in_flight: Vec<(EffectId, Usage)>,
}

pub(super) fn read_journal(reader: &mut JournalReader<'_>) -> Result<JournalSummary, DriveError> {
    let mut summary = JournalSummary::default();
    let mut in_flight = BTreeMap::new();
    while let Some(segment) = reader.next_segment()? {
        for record in segment.records() {
            let event = Event::decode(record.kind, record.payload).map_err(unreadable)?;
            summary.inventory.take(&event);
            match event {
                Event::Answers(answers) => {
                    for answer in &answers {
                        in_flight.remove(&answer.id);
                    }
                    summary.past.answers.extend(answers.into_iter().map(|answer| (answer.id, answer)));
                }
                Event::Round { round, sum, chain } => {
                    summary.past.rounds.insert(round, (sum, chain));
                }
                Event::Stopped { .. } => summary.exhausted = None,
                Event::Wave(ids) => {
                    summary.past.waved.extend(ids.iter().map(|id| id.round));
                    summary.past.waves.extend(ids);
                }
                Event::Sent(sent) => in_flight.extend(sent.into_iter().map(|Sent { id, most }| (id, most))),
                Event::Broke { id, charged } => {
                    in_flight.remove(&id);
                    summary.past.broke(id, charged);
                }
                Event::Form { .. } => {}
                Event::Exhausted { reason } => summary.exhausted = Some(reason),
                Event::Ordered { order: Order::Set { limits, .. }, .. } => summary.set = summary.set.with(&limits),
                Event::Ordered { .. }
                | Event::Manifest(_)
                | Event::Snapshot { .. }
                | Event::Ended { .. }
                | Event::Rewound { .. } => {}
            }
        }
    }
    in_flight.iter().for_each(|(id, most)| summary.past.broke(*id, Some(*most)));
    summary.in_flight = in_flight.into_iter().collect();
    summary.inventory.end = reader.end();
    Ok(summary)
}
