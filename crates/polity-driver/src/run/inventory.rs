//! The required contents of a run's folder, by its journal: the manifest, the parts of its tables, its snapshots. Only this module
//! decides which of them count.

use super::manifest::Manifest;
use crate::control::Recorded;
use polity_kernel::digest::Digest;
use polity_kernel::event::{Event, Order, Part};
use polity_kernel::machine::Outcome;
use polity_store::DriveError;
use polity_store::disk::Disk;
use polity_store::journal::{End, JournalReader};
use polity_store::snapshots::OLDER;
use polity_store::tables::{Again, Known, Parts, Reader, Span, TableError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Accumulated from the records of a journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inventory {
    /// The successive manifests, newest last.
    manifests: Vec<String>,
    /// The required snapshots: the round at which each begins, and the digest of its state.
    pub snapshots: BTreeMap<u32, Digest>,
    /// The table parts that count.
    pub parts: Parts,
    /// Parts that no longer count.
    void: BTreeSet<(String, Span)>,
    /// Rounds that are complete.
    pub rounds: u32,
    /// Orders during the run.
    pub orders: Vec<Recorded>,
    /// Edits that were ordered after the newest manifest: it does not have them yet.
    pub ordered: Vec<String>,
    /// How the run ended, if it has.
    pub ended: Option<Outcome>,
    /// Where the journal ends.
    pub end: Option<End>,
}

impl Inventory {
    /// Reads the relevant records of a run's journal.
    pub fn read(disk: &dyn Disk, journal: &Path) -> Result<Self, DriveError> {
        const WANTED: [u8; 6] =
            [Event::MANIFEST, Event::ROUND, Event::SNAPSHOT, Event::ENDED, Event::ORDERED, Event::REWOUND];
        let mut inventory = Inventory::default();
        let mut reader = JournalReader::open(disk, journal)?;
        while let Some(segment) = reader.next_segment()? {
            for record in segment.records().filter(|record| WANTED.contains(&record.kind)) {
                inventory.take(&Event::decode(record.kind, record.payload).map_err(unreadable)?);
            }
        }
        inventory.end = reader.end();
        Ok(inventory)
    }

    /// Adds the next record.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Manifest(text) => {
                self.manifests.push(text.clone());
                self.ordered.clear();
            }
            Event::Round { round, .. } => self.rounds = self.rounds.max(round + 1),
            Event::Snapshot { round, bytes, parts } => {
                self.snapshots.insert(*round, *bytes);
                while self.snapshots.len() > 1 + OLDER {
                    self.snapshots.pop_first();
                }
                self.count(parts);
            }
            Event::Ended { outcome, parts } => {
                self.ended = Some(outcome.clone());
                self.count(parts);
            }
            Event::Rewound { round } => {
                self.snapshots.retain(|snapshot, _| snapshot <= round);
                for parts in self.parts.values_mut() {
                    let gone = parts.iter().filter(|part| part.last >= *round);
                    self.void.extend(gone.map(|part| (part.table.clone(), Span::of(part))));
                    parts.retain(|part| part.last < *round);
                }
            }
            Event::Ordered { order, at_ms } => {
                if let Order::Change { edits } = order {
                    self.ordered.extend(edits.iter().cloned());
                }
                self.orders.push(Recorded { order: order.clone(), at_ms: *at_ms, rounds: self.rounds });
            }
            _ => {}
        }
    }

    fn count(&mut self, parts: &[Part]) {
        for part in parts {
            self.void.remove(&(part.table.clone(), Span::of(part)));
            self.parts.entry(part.table.clone()).or_default().push(part.clone());
        }
    }

    /// The snapshots, oldest first.
    pub fn named(&self) -> Vec<(u32, Digest)> {
        self.snapshots.iter().map(|(round, digest)| (*round, *digest)).collect()
    }

    /// The exact text of the manifest; `None` if the journal has lost its first record.
    pub fn manifest(&self) -> Option<&str> {
        self.manifests.last().map(String::as_str)
    }

    /// Whether a kill came between the record of a change and the manifest's file.
    pub fn is_stale(&self, file: &str) -> bool {
        self.ended.is_none() && self.manifests.iter().rev().skip(1).any(|older| older == file)
    }

    /// Whether the run is final: it has ended, and its journal is closed.
    pub fn closed(&self) -> bool {
        self.ended.is_some() && self.end.is_some_and(|end| end.closed())
    }

    /// What is known about the tables of the run in `folder`.
    pub fn known(&self, folder: &Path) -> Known {
        let run = folder.display();
        let anew = match self.rounds {
            0 => "run the scenario again".to_string(),
            at => format!(
                "recreate the tables from the journal in another folder, without calling models, with `polity fork \
                 {run} --at {at}`"
            ),
        };
        let mend = format!("Restore it from a copy, or {anew}");
        Known { parts: self.parts.clone(), void: self.void.clone(), mend, record: Some(folder.join("journal")) }
    }

    /// A reader of the tables of the run in `folder`.
    pub fn results<'a>(&self, disk: &'a dyn Disk, folder: &Path) -> Reader<'a> {
        let (path, journal) = (folder.to_path_buf(), folder.join("journal"));
        let look = move || match Inventory::read(disk, &journal) {
            Ok(inventory) => Ok(inventory.known(&path)),
            Err(error) => {
                Err(TableError::Format { table: "all".into(), path: journal.clone(), what: error.to_string() })
            }
        };
        let again: Option<Again<'a>> = if self.ended.is_none() { Some(Box::new(look)) } else { None };
        Reader::new(disk, &folder.join("tables"), self.known(folder), again)
    }

    /// The manifest of the run in `folder`: its file, if it matches the journal.
    ///
    /// Errors: [`DriveError::Folder`] naming the first changed key.
    pub fn verified(&self, folder: &Path, file: &str) -> Result<Manifest, DriveError> {
        let Some(recorded) = self.manifest() else {
            // It was durable before the manifest existed.
            return Err(DriveError::Folder(format!(
                "{} has lost its first record; restore it from a copy, or run the scenario again",
                folder.join("journal").display()
            )));
        };
        let manifest = Manifest::from_text(recorded, &folder.join("journal"))?;
        match Manifest::change(file, recorded) {
            Some(change) if !self.is_stale(file) => Err(DriveError::Folder(format!(
                "{} was changed after the run began: {change}. Put it back as it was",
                folder.join("manifest.json").display()
            ))),
            _ => Ok(manifest),
        }
    }
}

pub(crate) fn unreadable(why: String) -> DriveError {
    DriveError::Differs(format!("a journal record cannot be read ({why}); it was written by another build"))
}
