//! The tables of a run: what happened, such as one row per agent and round, as Parquet that other tools read.
//!
//! A table is a folder of closed parts, `tables/acts/part-000000-000009.parquet`. When rounds are saved, a part is closed and made
//! durable under a temporary name ([`Tables::close_parts`]); the caller records its digest; then it gets its final name
//! ([`Tables::publish`]). Only recorded parts count: a part without a record is not ours, even under a final name. So a running
//! experiment can be read at any time, and the reader ([`Reader`]) checks every part.
//!
//! Rows are passed in batches of columns and written by one thread behind a queue bounded in bytes, while the next round runs. Equal
//! batches give equal bytes.

mod batch;
mod bytes;
mod category;
mod encode;
mod error;
mod hybrid;
mod parts;
mod queue;
mod read;
mod record_batches;
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
pub(crate) use bytes::shared;
pub use error::{Result, TableError};
pub use parts::remove_parts_after;
pub use parts::{Span, settle};
pub use read::{Again, Known};
pub use read::{ColumnData, Parts, Reader};
pub use record_batches::Selected;
pub use spec::{ColumnSpec, Kind, METADATA_KEY, TableSpec};

use polity_kernel::event::Part;
use queue::{Job, Queue};
use writer::Writer;

/// Maximum bytes of rows waiting for the writer.
const QUEUE_BYTES: usize = 32 << 20;

/// All tables of a run, open for writing. If dropped without [`Tables::finish`], rows outside closed parts are lost.
pub struct Tables {
    specs: Vec<TableSpec>,
    /// Rows of each table since its last closed part.
    unclosed: Vec<usize>,
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

impl Tables {
    /// Opens the tables in `dir` (a run's `tables` folder) and starts their writer. Creates missing folders, removes leftovers of a
    /// crash, and keeps the closed parts.
    ///
    /// Errors: [`TableError::Spec`] for a table that cannot be stored, [`TableError::Disk`].
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

    /// Passes rows to the table at this index of the specs. Returns at once unless the writer is too far behind.
    ///
    /// Errors: [`TableError::Batch`] if the rows do not fit (none is written, the tables stay usable); an earlier failure of the writer,
    /// on every later call.
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

    /// Closes the rows since the last call as one part per table, holding the rounds `first_round` to `last_round`. When this returns,
    /// the parts are durable. They count once they are recorded; then [`Tables::publish`] names them.
    ///
    /// Errors: [`TableError::Rounds`] if these rounds or later ones already have a part; [`TableError::Full`], [`TableError::Disk`].
    pub fn close_parts(&mut self, first_round: u32, last_round: u32) -> Result<Vec<Part>> {
        if first_round > last_round {
            let what = format!("a part cannot begin with round {first_round} and end with round {last_round}");
            return Err(TableError::Rounds { table: "all".into(), what });
        }
        let (closed, hears) = mpsc::channel();
        self.queue.push(Job::Close(first_round, last_round, closed), 0)?;
        self.queue.drain()?;
        self.unclosed.fill(0);
        hears.try_recv().map_err(|_| TableError::Stopped)
    }

    /// Gives the parts closed last their final names. Their records must be durable. The names need not be: [`Reader`] finds a recorded
    /// part by either name, but other programs know only the final one.
    ///
    /// Errors: [`TableError::Disk`].
    pub fn publish(&mut self, durably: bool) -> Result<()> {
        self.queue.push(Job::Publish(durably), 0)?;
        self.queue.drain()
    }

    /// Stops the writer.
    ///
    /// Errors: an earlier failure of the writer; [`TableError::Rounds`] if rows were passed after the last [`Tables::close_parts`], since
    /// no part holds them.
    pub fn finish(mut self) -> Result<()> {
        self.queue.drain()?;
        self.end();
        match self.specs.iter().zip(&self.unclosed).find(|(_, rows)| **rows > 0) {
            Some((spec, rows)) => Err(TableError::Rounds {
                table: spec.name.clone(),
                what: format!("{rows} rows were handed over after its last part was closed and are lost"),
            }),
            None => Ok(()),
        }
    }

    fn end(&mut self) {
        self.queue.hang_up();
        if let Some(writer) = self.writer.take() {
            // A writer that died has reported it to every later call.
            let _ = writer.join();
        }
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.end();
    }
}
