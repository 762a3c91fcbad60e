//! Reads tables as Arrow record batches, for programs that compute with columns.

use super::error::Result;
use super::read::{Among, Known, OTHER_COLUMNS, OpenPart, Reader, Unread, pick};
use super::spec::TableSpec;
use crate::tables::TableError;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

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
        self.select_among(name, columns, rounds, None)
    }

    /// Returns what [`Reader::select`] does, of the rows alone whose whole number in a column is one of a set: `("agent", {3, 7})`.
    ///
    /// Errors: as [`Reader::select`].
    pub fn select_among(
        &self,
        name: &str,
        columns: &[&str],
        rounds: Option<RangeInclusive<u32>>,
        among: Option<(&str, Arc<BTreeSet<u32>>)>,
    ) -> Result<Selected> {
        let mut conditions = Vec::new();
        if let Some(range) = rounds.clone() {
            let has = range.clone();
            conditions.push(Among { column: "round", range, has: Arc::new(move |round| has.contains(&round)) });
        }
        if let Some((column, set)) = among {
            // An empty set has an empty range.
            let range = set.first().copied().unwrap_or(1)..=set.last().copied().unwrap_or(0);
            conditions.push(Among { column, range, has: Arc::new(move |number| set.contains(&number)) });
        }
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
                for batch in part.batches(into.spec.columns.iter(), &conditions, usize::MAX)? {
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

    /// Returns the last round up to `until` that a table has rows of, in constant memory.
    ///
    /// Errors: as [`Reader::select`].
    pub fn newest_round(&self, name: &str, until: u32) -> Result<Option<u32>> {
        for part in self.parts().get(name).into_iter().flatten().rev() {
            if part.first > until || part.rows == 0 {
                continue;
            }
            let range = part.first..=part.last.min(until);
            let look = |known: &Known, names: &BTreeSet<String>| {
                let mut newest = None;
                self.each_part(known, names, name, Some(&range), &mut |file| {
                    let part = OpenPart::open(file)?;
                    let round = pick(&part.spec, &["round"]).map_err(Unread::NoColumn)?;
                    let has = range.clone();
                    let has = Arc::new(move |round: u32| has.contains(&round));
                    let conditions = [Among { column: "round", range: range.clone(), has }];
                    for batch in part.batches(round.iter().map(|(column, _)| column), &conditions, usize::MAX)? {
                        let batch = batch.map_err(|e| Unread::Broken(format!("could not be read: {e}")))?;
                        let rounds = batch.column(0).as_primitive_opt::<UInt32Type>();
                        newest = newest.max(rounds.and_then(|rounds| rounds.values().iter().max().copied()));
                    }
                    Ok(true)
                })?;
                Ok(newest)
            };
            let newest = self.patiently(name, look, |read| matches!(read, Err(TableError::Format { .. })))?;
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Returns what a table declares, and its number of rows so far.
    ///
    /// Errors: as [`Reader::table`].
    pub fn describe(&self, name: &str) -> Result<(TableSpec, u64)> {
        let rows = self.parts().get(name).map_or(0, |parts| parts.iter().map(|part| part.rows).sum());
        Ok((self.spec(name)?, rows))
    }
}
