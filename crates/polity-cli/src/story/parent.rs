//! The parent of a fork, where its folder is there: its metrics, the first round that differs, the keys that were changed.

use super::{Lines, metrics};
use crate::compare::{differing_keys, parameters};
use crate::story::methods::words;
use polity_arena::report::{DataTable, Section, short};
use polity_driver::results::{self, Run};
use polity_driver::run::Manifest;
use polity_store::disk::Disk;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The most keys and metrics in the table.
const MOST_ROWS: usize = 60;

/// A key that differs, with the parent's value and the fork's.
type Key = (String, Option<Value>, Option<Value>);

/// A key that the fork changed on the way: round, path, the parent's value, the fork's.
type Change = (u64, String, Option<Value>, Value);

/// The parent of a fork.
pub struct Parent {
    name: String,
    /// Its metrics.
    pub lines: Lines,
    keys: Vec<Key>,
    changes: Vec<Change>,
    /// The first round whose digest differs.
    first: Option<usize>,
}

fn digests(tables: &Reader<'_>) -> Result<Vec<Option<String>>, TableError> {
    let rounds = tables.closed("rounds", &["digest"], usize::MAX)?;
    Ok(rounds.first().map(|(_, data)| ColumnData::texts(data)).unwrap_or_default())
}

/// The parent's folder: where it was, or beside the fork.
fn folder(fork: &Path, recorded: &str) -> Option<PathBuf> {
    let recorded = Path::new(recorded);
    let beside = fork.parent().zip(recorded.file_name()).map(|(dir, name)| dir.join(name));
    let is_there = |path: &PathBuf| path.join("manifest.json").is_file() && path.as_path() != fork;
    [Some(recorded.to_path_buf()), beside].into_iter().flatten().find(is_there)
}

/// The keys of two scenarios that differ, and the changes on the way that the fork alone has.
fn differing(parent: &Manifest, fork: &Manifest) -> (Vec<Key>, Vec<Change>) {
    let list =
        |manifest: &Manifest| manifest.scenario.get("changes").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, values) = (list(parent), parameters(parent));
    let mut changes = Vec::new();
    for change in list(fork).iter().filter(|change| !before.contains(change)) {
        let at = change.get("at").and_then(Value::as_u64).unwrap_or(0);
        for (path, value) in change.get("set").and_then(Value::as_object).into_iter().flatten() {
            changes.push((at, path.clone(), values.get(path).cloned(), value.clone()));
        }
    }
    let mut keys = differing_keys(parent, fork);
    keys.retain(|(key, _, _)| !key.starts_with("changes"));
    (keys, changes)
}

impl Parent {
    /// The parent of a run; `None` if it has none, or none that can be read.
    pub fn of(disk: &dyn Disk, run: &Run<'_>) -> Option<Parent> {
        let origin = run.manifest.forked_from.as_ref()?;
        let parent = results::of_run(disk, &folder(&run.folder, &origin.folder)?).ok()?;
        let (before, after) = (digests(&parent.tables).ok()?, digests(&run.tables).ok()?);
        let common = before.len().min(after.len());
        let (keys, changes) = differing(&parent.manifest, &run.manifest);
        Some(Parent {
            name: origin.run.clone(),
            lines: metrics(&parent.tables).ok()?,
            keys,
            changes,
            first: (0..common).find(|round| before[*round] != after[*round]),
        })
    }

    /// The first round that differs.
    pub fn first(&self) -> Option<usize> {
        self.first
    }

    /// What the fork changed, in words: `from round 4 on, world.fraction is 0.5 instead of 0.667`.
    pub fn changes(&self) -> String {
        let one = |(at, path, before, after): &Change| {
            let before = before.as_ref().map_or(String::new(), |before| format!(" instead of {}", words(before)));
            format!("from round {at} on, {path} is {}{before}", words(after))
        };
        self.changes.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// What differs, in sentences and a table.
    pub fn section(&self, lines: &Lines) -> Section {
        let told = |value: &Option<Value>| value.as_ref().map_or("–".to_owned(), words);
        let first = match self.first {
            Some(round) => format!("Round {round} is the first that differs."),
            None => "All rounds that both have are the same.".to_owned(),
        };
        let keys = self.keys.iter().map(|(key, before, after)| vec![key.clone(), told(before), told(after)]);
        let changes = self
            .changes
            .iter()
            .map(|(at, path, before, after)| vec![format!("{path}, from round {at} on"), told(before), words(after)]);
        let last = |lines: &Lines, name: &String| lines.get(name).and_then(|points| points.last()).map(|point| point.1);
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), short);
        let metrics = lines
            .keys()
            .filter(|name| !name.contains(".histogram."))
            .map(|name| (name, last(&self.lines, name), last(lines, name)))
            .filter(|(_, before, after)| before != after)
            .map(|(name, before, after)| vec![format!("{name}, last"), shown(before), shown(after)]);
        let rows: Vec<Vec<String>> = changes.chain(keys).chain(metrics).take(MOST_ROWS).collect();
        let table = DataTable {
            columns: vec!["what".into(), format!("parent ({})", self.name), "this run".into()],
            rows,
            caption: "What differs from the parent: keys of the scenario, then last values of metrics.".into(),
            links: Vec::new(),
        };
        Section {
            title: "Compared with its parent".into(),
            text: Some(format!("This run was forked from “{}”. {first}", self.name)),
            figures: Vec::new(),
            table: (!table.rows.is_empty()).then_some(table),
        }
    }
}
