//! The tables of a run: what happened, one row per agent and round and so on, as Parquet that other tools read.
//!
//! A table is a folder of closed parts, `tables/acts/part-000000-000009.parquet`. When rounds are saved a part is closed and made durable
//! under another name ([`Tables::close_parts`]), its bytes' digest is recorded by whoever keeps the record, and then it is given its own
//! name ([`Tables::publish`]). The record is what makes it count: a part under its own name without one is none of ours. So a running
//! experiment can be read at any time, and every part is checked by its reader ([`Reader`]).
//!
//! Rows are handed over in batches of columns and written by one thread behind a queue that is bounded in bytes, while
//! the next round runs. The same batches give the same bytes.

mod batch;
mod bytes;
mod category;
mod encode;
mod error;
mod hybrid;
mod parts;
mod queue;
mod read;
mod spec;
#[cfg(test)]
mod tests;
mod writer;

use crate::disk::Disk;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

pub use batch::{Batch, Column, Value};
pub use error::{Result, TableError};
pub use parts::remove_parts_after;
pub(crate) use parts::{Span, settle};
pub(crate) use read::{Again, Known};
pub use read::{ColumnData, Parts, Reader};
pub use spec::{ColumnSpec, Kind, METADATA_KEY, TableSpec};

use polity_kernel::event::Part;
use queue::{Job, Queue};
use writer::Writer;

/// Bytes of rows that may wait for the writer.
const QUEUE_BYTES: usize = 32 << 20;

/// All tables of a run, open for writing. Dropped without [`Tables::finish`], rows of no closed part are gone.
pub struct Tables {
    specs: Vec<TableSpec>,
    /// Rows of each table since its last closed part.
    unclosed: Vec<usize>,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

impl Tables {
    /// Opens the tables in `dir` (a run's `tables` folder) and starts their writer. Creates folders that are not there,
    /// removes what a crash left unfinished, and keeps the closed parts.
    ///
    /// Errors: [`TableError::Spec`] for a table that can not be stored, [`TableError::Disk`].
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, specs: Vec<TableSpec>) -> Result<Self> {
        let mut names = BTreeSet::new();
        for spec in &specs {
            spec.check()?;
            if !names.insert(&spec.name) {
                return Err(TableError::spec(&spec.name, "another table has this name".into()));
            }
        }
        let mut tables = Writer::open(disk, dir, specs.clone())?;
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let served = queue.clone();
        let writer = thread::Builder::new()
            .name("tables".into())
            .spawn(move || {
                served.serve(|job| tables.work(job));
                tables.discard();
            })
            .map_err(|e| TableError::disk("all", "start the writer for", dir, e))?;
        Ok(Self { unclosed: vec![0; specs.len()], specs, queue, writer: Some(writer) })
    }

    /// Hands rows to the table at this position of the specs. Returns at once unless the writer is too far behind.
    ///
    /// Errors: [`TableError::Batch`] if the rows do not fit (nothing of them is written, the tables stay usable);
    /// whatever stopped the writer before, now and on every later call.
    pub fn push(&mut self, table: usize, batch: Batch) -> Result<()> {
        let Some(spec) = self.specs.get(table) else {
            return Err(TableError::batch(
                &format!("number {table}"),
                format!("there are {} tables", self.specs.len()),
            ));
        };
        batch.check(spec)?;
        let (bytes, rows) = (batch.bytes(), batch.rows);
        self.queue.push(Job::Rows(table, batch), bytes)?;
        self.unclosed[table] += rows;
        Ok(())
    }

    /// Closes what was handed over since the last call as a part of each table, holding the rounds `first_round` to `last_round`. When this
    /// returns, the parts are durable; they count once they are recorded, and then [`Tables::publish`] gives them their names.
    ///
    /// Errors: [`TableError::Rounds`] if there is a part of these rounds or later ones; [`TableError::Full`],
    /// [`TableError::Disk`].
    pub fn close_parts(&mut self, first_round: u32, last_round: u32) -> Result<Vec<Part>> {
        if first_round > last_round {
            let what = format!("a part can not begin with round {first_round} and end with round {last_round}");
            return Err(TableError::Rounds { table: "all".into(), what });
        }
        let (closed, hears) = mpsc::channel();
        self.queue.push(Job::Close(first_round, last_round, closed), 0)?;
        self.queue.drain()?;
        self.unclosed.fill(0);
        hears.try_recv().map_err(|_| TableError::Stopped)
    }

    /// Gives the parts that were closed last their names. Their records must be durable; the names need not be, since [`Reader`] finds a
    /// recorded part by either name, but other programs know only its own.
    ///
    /// Errors: [`TableError::Disk`].
    pub fn publish(&mut self, durably: bool) -> Result<()> {
        self.queue.push(Job::Publish(durably), 0)?;
        self.queue.drain()
    }

    /// Ends the writer.
    ///
    /// Errors: what stopped the writer before; [`TableError::Rounds`] if rows were handed over after the last
    /// [`Tables::close_parts`], which are in no part.
    pub fn finish(mut self) -> Result<()> {
        self.queue.drain()?;
        self.end();
        match self.specs.iter().zip(&self.unclosed).find(|(_, rows)| **rows > 0) {
            Some((spec, rows)) => Err(TableError::Rounds {
                table: spec.name.clone(),
                what: format!("{rows} rows were handed over after its last part was closed, and are lost"),
            }),
            None => Ok(()),
        }
    }

    fn end(&mut self) {
        self.queue.hang_up();
        if let Some(writer) = self.writer.take() {
            // A writer that died has said so to whoever called since.
            let _ = writer.join();
        }
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.end();
    }
}
