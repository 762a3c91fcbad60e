//! Why a team failed, from the record of its run ([`crate::diagnosis`]).

use super::engine::{Engine, Recorded};
use super::folder::Folder;
use crate::comparison::{comparison_runs, is_comparison};
use crate::diagnosis::{Diagnosed, Ended, Trace, diagnose};
use crate::sweep::{is_sweep, sweep_runs};
use polity_kernel::scenario::Assembled;
use polity_store::DriveError;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Engine<'_> {
    /// Names the failure modes that the record of an evaluation shows, for the items that have ended; of a sweep or a comparison, those
    /// of all its runs.
    /// Nothing is run or written; the run may be active.
    ///
    /// # Errors
    /// [`DriveError::Input`] for a society; [`DriveError::Folder`], [`DriveError::Journal`] and [`DriveError::Tables`] for damaged runs.
    pub fn diagnose(&self, dir: &Path) -> Result<Vec<Diagnosed>, DriveError> {
        self.runs_in(dir)?.iter().map(|run| self.diagnose_run(run)).collect()
    }

    /// The folder of a run, or those of all runs of a sweep or a comparison.
    pub(super) fn runs_in(&self, dir: &Path) -> Result<Vec<PathBuf>, DriveError> {
        let disk = self.disk.as_ref();
        if is_sweep(disk, dir) {
            return Ok(sweep_runs(disk, dir)?.into_iter().map(|run| run.folder).collect());
        }
        match is_comparison(disk, dir) {
            true => Ok(comparison_runs(disk, dir)?.iter().map(|run| dir.join(run)).collect()),
            false => Ok(vec![dir.to_path_buf()]),
        }
    }

    fn diagnose_run(&self, dir: &Path) -> Result<Diagnosed, DriveError> {
        let folder = Folder::read(self.disk.clone(), dir)?;
        let Recorded { manifest, prepared, story, .. } = self.recorded(&folder)?;
        let Assembled::Evaluation(evaluation) = self.assemble(&prepared)? else { return Err(a_society(dir)) };
        let planted = match manifest.scenario.get("faults") {
            None | Some(Value::Null) => Vec::new(),
            Some(faults) => Vec::deserialize(faults).map_err(|error| {
                let path = dir.join("manifest.json");
                DriveError::Folder(format!("{}: `faults` cannot be read: {error}", path.display()))
            })?,
        };
        let ended = ended(&story.inventory.results(self.disk.as_ref(), folder.path()))?;
        let traces = Trace::of_run(evaluation.items(), story.past.answers.values(), ended);
        let diagnosis = diagnose(evaluation.team(), evaluation.items(), &traces);
        let ended = traces.iter().map(|trace| trace.item).collect();
        Ok(Diagnosed { run: dir.to_path_buf(), planted, ended, diagnosis })
    }
}

fn a_society(dir: &Path) -> DriveError {
    let dir = dir.display();
    DriveError::Input(format!(
        "{dir} is a society, and the rules are for evaluations, in which teams work on items. A model can label what each agent was \
         asked and replied: `--judge PROVIDER/MODEL`"
    ))
}

/// Reads how the items ended; an item that has not ended is absent.
pub(super) fn ended(tables: &Reader<'_>) -> Result<BTreeMap<u32, Ended>, DriveError> {
    let read = match tables.table("items", &["item", "answer", "correct", "rounds"], usize::MAX) {
        Ok(read) => read,
        // No item has ended yet.
        Err(TableError::Rounds { .. }) => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.into()),
    };
    let column = |name: &str| read.iter().find(|(column, _)| column == name).map(|(_, data)| data);
    let numbers = |name: &str| column(name).map(ColumnData::numbers).unwrap_or_default();
    let answers = column("answer").map(ColumnData::texts).unwrap_or_default();
    let rows = numbers("item").into_iter().zip(answers).zip(numbers("correct")).zip(numbers("rounds"));
    let ended = rows.filter_map(|(((item, answer), correct), rounds)| {
        let correct = correct.map(|correct| correct > 0.5);
        Some((item? as u32, Ended { answer, correct, rounds: rounds? as u32 }))
    });
    Ok(ended.collect())
}
