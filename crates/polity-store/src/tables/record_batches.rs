//! Reads tables as Arrow record batches, for programs that compute with columns.

use super::error::Result;
use super::read::{Known, OTHER_COLUMNS, OpenPart, Reader, Unread, pick};
use super::spec::TableSpec;
use crate::tables::TableError;
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The table, with the selected columns alone.
    pub spec: TableSpec,
    /// The rows, oldest first, at most 65,536 in each batch.
    pub batches: Vec<RecordBatch>,
}

impl Reader<'_> {
    /// Returns what a table declares: its columns, their kinds and their meaning. Errors: as [`Reader::table`].
    pub fn spec(&self, name: &str) -> Result<TableSpec> {
        let look = |known: &Known, names: &BTreeSet<String>| {
            let mut spec: Option<TableSpec> = None;
            self.each_part(known, names, name, None, &mut |file| {
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
        Ok(self.select(name, &[], None)?.batches)
    }

    /// Returns the named columns of a table (all for an empty list), of these rounds alone if they are given. Parts and row groups of
    /// other rounds are not decoded.
    ///
    /// Holds one part's file and the selected rows in memory. Errors: as [`Reader::table`], and [`TableError::Spec`] for rounds of a
    /// table without a column `round`.
    ///
    /// ```no_run
    /// # let disk = polity_store::disk::RealDisk;
    /// # let parts = Default::default();
    /// let reader = polity_store::tables::Reader::of_parts(&disk, "runs/a/tables".as_ref(), parts);
    /// let fifth = reader.select("acts", &["agent", "value"], Some(5..=5))?;
    /// # Ok::<(), polity_store::tables::TableError>(())
    /// ```
    pub fn select(&self, name: &str, columns: &[&str], rounds: Option<RangeInclusive<u32>>) -> Result<Selected> {
        let look = |known: &Known, names: &BTreeSet<String>| {
            let mut declared: Option<TableSpec> = None;
            let mut selected: Option<Selected> = None;
            self.each_part(known, names, name, rounds.as_ref(), &mut |file| {
                let broken = |what: &str| Unread::Broken(what.to_string());
                let part = OpenPart::open(file)?;
                if *declared.get_or_insert_with(|| part.spec.clone()) != part.spec {
                    return Err(broken(OTHER_COLUMNS));
                }
                let into = match &mut selected {
                    Some(selected) => selected,
                    none => {
                        let columns = pick(&part.spec, columns).map_err(Unread::NoColumn)?;
                        let columns = columns.into_iter().map(|(column, _)| column).collect();
                        let spec = TableSpec { columns, ..part.spec.clone() };
                        none.insert(Selected { spec, batches: Vec::new() })
                    }
                };
                for batch in part.batches(into.spec.columns.iter(), rounds.as_ref(), usize::MAX)? {
                    let batch = batch.map_err(|e| broken(&format!("could not be read: {e}")))?;
                    if batch.num_rows() > 0 {
                        into.batches.push(batch);
                    }
                }
                Ok(true)
            })?;
            selected.ok_or_else(|| self.no_part(name))
        };
        self.patiently(name, look, |read| matches!(read, Err(TableError::Format { .. })))
    }

    /// Returns what a table declares, and its number of rows so far.
    ///
    /// Errors: as [`Reader::table`].
    pub fn describe(&self, name: &str) -> Result<(TableSpec, u64)> {
        let rows = self.parts().get(name).map_or(0, |parts| parts.iter().map(|part| part.rows).sum());
        Ok((self.spec(name)?, rows))
    }
}
