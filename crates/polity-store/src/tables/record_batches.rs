//! Reads tables as Arrow record batches, for programs that compute with columns.

use super::error::Result;
use super::read::{Known, OTHER_COLUMNS, OpenPart, Reader, Unread};
use super::spec::TableSpec;
use crate::tables::TableError;
use arrow_array::RecordBatch;
use std::collections::BTreeSet;

impl Reader<'_> {
    /// Returns what a table declares: its columns, their kinds and their meaning. Errors: as [`Reader::table`].
    pub fn spec(&self, name: &str) -> Result<TableSpec> {
        let look = |known: &Known, names: &BTreeSet<String>| {
            let mut spec: Option<TableSpec> = None;
            self.each_part(known, names, name, &mut |file| {
                spec = Some(OpenPart::open(file)?.spec.clone());
                Ok(false)
            })?;
            spec.ok_or_else(|| self.no_part(name))
        };
        self.patiently(name, look, |read| matches!(read, Err(TableError::Format { .. })))
    }

    /// Returns all columns of a table as Arrow record batches, oldest rows first, at most 65,536 rows each. A category is a dictionary of
    /// its words, a text a `LargeUtf8`.
    ///
    /// Holds the whole table in memory. Errors: as [`Reader::table`].
    pub fn record_batches(&self, name: &str) -> Result<Vec<RecordBatch>> {
        let look = |known: &Known, names: &BTreeSet<String>| {
            let mut spec: Option<TableSpec> = None;
            let mut batches = Vec::new();
            self.each_part(known, names, name, &mut |file| {
                let broken = |what: &str| Unread::Broken(what.to_string());
                let part = OpenPart::open(file)?;
                let declared = part.spec.clone();
                if *spec.get_or_insert_with(|| declared.clone()) != declared {
                    return Err(broken(OTHER_COLUMNS));
                }
                for batch in part.batches(declared.columns.iter(), usize::MAX)? {
                    batches.push(batch.map_err(|e| broken(&format!("could not be read: {e}")))?);
                }
                Ok(true)
            })?;
            if spec.is_some() { Ok(batches) } else { Err(self.no_part(name)) }
        };
        self.patiently(name, look, |read| matches!(read, Err(TableError::Format { .. })))
    }
}
