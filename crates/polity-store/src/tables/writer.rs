//! The background thread: rows to row groups, row groups to parts.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::batch::{Batch, Piece};
use super::bytes::shared;
use super::encode;
use super::error::{Result, TableError};
use super::parts::{self, OPEN_PART, Span};
use super::queue::Job;
use super::spec::{METADATA_KEY, TableSpec};
use crate::disk::{Disk, DiskFile};
use polity_kernel::digest::FileHash;
use polity_kernel::event::Part;

/// Rows per row group, up to half more rather than a small rest: enough for the encodings to pay off, few enough to hold in memory.
const GROUP_ROWS: usize = 1_000_000;

/// Bytes of rows that one table buffers for a row group.
const GROUP_BYTES: usize = 32 << 20;

/// Bytes of rows that all tables together buffer.
const HELD_BYTES: usize = 64 << 20;

/// Bytes passed to the operating system at once.
const BUFFER: usize = 256 << 10;

/// All tables of a run, as the background thread sees them.
pub(super) struct Writer {
    disk: Arc<dyn Disk>,
    tables: Vec<Table>,
}

struct Table {
    spec: TableSpec,
    schema: TypePtr,
    properties: Arc<WriterProperties>,
    folder: PathBuf,
    /// The newest closed part.
    newest: Option<Span>,
    /// Whether it still has its temporary name.
    unnamed: bool,
    /// Whether a given name is not durable yet.
    unsynced: bool,
    /// Rows not yet in a row group, with the number of written rows of the first batch.
    held: VecDeque<Batch>,
    written_of_first: usize,
    held_rows: usize,
    held_bytes: usize,
    open: Option<SerializedFileWriter<Sink>>,
}

/// A disk file with a buffer for small writes.
struct Sink(BufWriter<Hashed>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A disk file, and the digest of what was written to it.
struct Hashed {
    file: Box<dyn DiskFile>,
    hash: FileHash,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.take(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Writer {
    pub(super) fn open(disk: Arc<dyn Disk>, dir: &Path, specs: Vec<TableSpec>) -> Result<Self> {
        let mut tables = Vec::with_capacity(specs.len());
        for spec in specs {
            let folder = dir.join(&spec.name);
            let exists = disk.exists(&folder).map_err(|e| TableError::disk(&spec.name, "look for", &folder, e))?;
            if exists || !spec.only_with_rows {
                parts::prepare(&*disk, dir, &spec.name)?;
            }
            let newest = parts::list(&*disk, dir, &spec.name)?.pop();
            tables.push(Table::new(spec, dir, newest)?);
        }
        Ok(Self { disk, tables })
    }

    pub(super) fn work(&mut self, job: Job) -> Result<()> {
        match job {
            Job::Rows(table, batch) => self.push(table, batch),
            Job::Close(first, last, closed) => {
                let mut parts = Vec::new();
                for table in &mut self.tables {
                    parts.extend(table.close(&*self.disk, Span { first, last })?);
                }
                // The caller is waiting for it, or is gone.
                let _ = closed.send(parts);
                Ok(())
            }
            Job::Publish(durably) => self.tables.iter_mut().try_for_each(|table| table.publish(&*self.disk, durably)),
        }
    }

    fn push(&mut self, table: usize, batch: Batch) -> Result<()> {
        let Some(into) = self.tables.get_mut(table) else {
            return Err(TableError::batch(&format!("number {table}"), "there is no such table".into()));
        };
        into.hold(batch);
        while into.held_rows >= GROUP_ROWS || into.held_bytes >= GROUP_BYTES {
            into.write_group(&*self.disk)?;
        }
        while self.tables.iter().map(|table| table.held_bytes).sum::<usize>() > HELD_BYTES {
            let Some(largest) = self.tables.iter_mut().max_by_key(|table| table.held_bytes) else {
                break;
            };
            largest.write_group(&*self.disk)?;
        }
        Ok(())
    }

    /// Removes what was never closed, as a crash followed by [`parts::prepare`] would.
    pub(super) fn discard(self) {
        for table in self.tables {
            if table.open.is_some() {
                // Errors cannot be reported here; the next open removes it.
                let _ = self.disk.remove_file(&table.folder.join(OPEN_PART));
            }
        }
    }
}

impl Table {
    fn new(spec: TableSpec, dir: &Path, newest: Option<Span>) -> Result<Self> {
        let unusable = |e: ParquetError| TableError::spec(&spec.name, e.to_string());
        let metadata = serde_json::to_string(&spec).map_err(|e| TableError::spec(&spec.name, e.to_string()))?;
        let properties = encode::properties(Encoding::PLAIN, false, Compression::UNCOMPRESSED);
        let properties = WriterProperties::clone(&properties)
            .into_builder()
            .set_key_value_metadata(Some(vec![KeyValue::new(METADATA_KEY.to_string(), metadata)]))
            .build();
        Ok(Self {
            schema: spec.parquet_schema().map_err(unusable)?,
            properties: Arc::new(properties),
            folder: dir.join(&spec.name),
            newest,
            unnamed: false,
            unsynced: false,
            held: VecDeque::new(),
            written_of_first: 0,
            held_rows: 0,
            held_bytes: 0,
            open: None,
            spec,
        })
    }

    fn hold(&mut self, batch: Batch) {
        if batch.rows > 0 {
            self.held_rows += batch.rows;
            self.held_bytes += batch.bytes();
            self.held.push_back(batch);
        }
    }

    /// Writes the oldest buffered rows, up to one row group.
    fn write_group(&mut self, disk: &dyn Disk) -> Result<()> {
        if self.unnamed {
            let what = "rows were handed over between the end of a part and its record".to_string();
            return Err(TableError::Rounds { table: self.spec.name.clone(), what });
        }
        if self.spec.only_with_rows
            && self.open.is_none()
            && self.newest.is_none()
            && let Some(dir) = self.folder.parent()
        {
            parts::prepare(disk, dir, &self.spec.name)?;
        }
        let path = self.folder.join(OPEN_PART);
        let name = self.spec.name.clone();
        self.append_group(disk, &path).map_err(|e| TableError::parquet(&name, "write", &path, e))?;
        Ok(())
    }

    fn append_group(&mut self, disk: &dyn Disk, path: &Path) -> parquet::errors::Result<()> {
        let rows = if self.held_rows < GROUP_ROWS * 3 / 2 { self.held_rows } else { GROUP_ROWS };
        // The rows of each batch in this group, from the oldest on.
        let (mut spans, mut left, mut from) = (Vec::new(), rows, self.written_of_first);
        for batch in &self.held {
            if left == 0 {
                break;
            }
            let until = batch.rows.min(from + left);
            left -= until - from;
            spans.push(from..until);
            from = 0;
        }

        let file = match &mut self.open {
            Some(file) => file,
            none => none.insert(start_file(disk, path, &self.schema, &self.properties)?),
        };
        let descriptor = file.schema_descr().columns().to_vec();
        let mut group = file.next_row_group()?;
        for (index, (spec, descr)) in self.spec.columns.iter().zip(descriptor).enumerate() {
            let columns = self.held.iter_mut().filter_map(|batch| batch.columns.get_mut(index));
            let mut pieces: Vec<Piece<'_>> =
                columns.zip(&spans).map(|(column, rows)| Piece { column, rows: rows.clone() }).collect();
            let (bytes, close) = encode::encode(spec, descr, &mut pieces)?;
            group.append_column(&shared(bytes), close)?;
        }
        group.close()?;

        self.held_rows -= rows;
        let done = self.held.iter().zip(&spans).take_while(|(batch, span)| span.end == batch.rows).count();
        self.held.drain(..done);
        self.written_of_first = spans.get(done).map_or(0, |span| span.end);
        self.held_bytes = self.held.iter().map(Batch::bytes).sum();
        Ok(())
    }

    /// Closes everything since the last part as a part, durable under the temporary name. A table without rows gets one only if it has
    /// none at all, so that its columns can be read; none if it exists only with rows.
    fn close(&mut self, disk: &dyn Disk, span: Span) -> Result<Option<Part>> {
        if let Some(newest) = self.newest.filter(|newest| newest.last >= span.first) {
            let what = format!(
                "{} already exists, so rounds {} to {} cannot become a part after it; resuming removes the parts newer \
                 than its snapshot first",
                newest.file_name(),
                span.first,
                span.last
            );
            return Err(TableError::Rounds { table: self.spec.name.clone(), what });
        }
        while self.held_rows > 0 {
            self.write_group(disk)?;
        }
        if self.open.is_none() && (self.newest.is_some() || self.spec.only_with_rows) {
            return Ok(None);
        }
        let (name, path) = (&self.spec.name, self.folder.join(OPEN_PART));
        let mut file = match self.open.take() {
            Some(file) => file,
            None => start_file(disk, &path, &self.schema, &self.properties)
                .map_err(|e| TableError::parquet(name, "write", &path, e))?,
        };
        let metadata = file.finish().map_err(|e| TableError::parquet(name, "write", &path, e))?;
        let rows = metadata.file_metadata().num_rows().unsigned_abs();
        let sink = file.inner_mut();
        sink.flush()
            .and_then(|()| sink.0.get_mut().file.sync())
            .map_err(|e| TableError::disk(name, "write", &path, e))?;
        let Hashed { hash, bytes, .. } = sink.0.get_ref();
        let (table, digest) = (name.clone(), hash.digest());
        let part = Part { table, first: span.first, last: span.last, rows, bytes: *bytes, digest };
        drop(file);
        disk.sync_dir(&self.folder).map_err(|e| TableError::disk(name, "sync", &self.folder, e))?;
        (self.newest, self.unnamed, self.unsynced) = (Some(span), true, false);
        Ok(Some(part))
    }

    /// Gives a closed part its name.
    fn publish(&mut self, disk: &dyn Disk, durably: bool) -> Result<()> {
        if let Some(span) = self.newest.filter(|_| self.unnamed) {
            let (from, to) = (self.folder.join(OPEN_PART), self.folder.join(span.file_name()));
            disk.rename(&from, &to).map_err(|e| TableError::disk(&self.spec.name, "rename to", &to, e))?;
            (self.unnamed, self.unsynced) = (false, true);
        }
        if durably && self.unsynced {
            let synced = disk.sync_dir(&self.folder);
            synced.map_err(|e| TableError::disk(&self.spec.name, "sync", &self.folder, e))?;
            self.unsynced = false;
        }
        Ok(())
    }
}

fn start_file(
    disk: &dyn Disk,
    path: &Path,
    schema: &TypePtr,
    properties: &Arc<WriterProperties>,
) -> parquet::errors::Result<SerializedFileWriter<Sink>> {
    let file = disk.create(path).map_err(|e| ParquetError::External(Box::new(e)))?;
    let file = Hashed { file, hash: FileHash::default(), bytes: 0 };
    SerializedFileWriter::new(Sink(BufWriter::with_capacity(BUFFER, file)), schema.clone(), properties.clone())
}
