//! Errors of a run's tables, with advice on what to do next.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;

/// The result of every table function.
pub type Result<T> = std::result::Result<T, TableError>;

/// A failure of the tables. `Clone`, because every later call returns the writer's failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    /// A table declaration that cannot be stored.
    #[error("table `{table}` cannot be declared: {what}")]
    Spec {
        /// The table's name.
        table: String,
        /// What is wrong with the description.
        what: String,
    },
    /// Rows that do not fit the table. Nothing of the batch was written.
    #[error("rows do not fit table `{table}`: {what}")]
    Batch {
        /// The table's name.
        table: String,
        /// What does not fit.
        what: String,
    },
    /// Parts and rounds do not match.
    #[error("table `{table}`: {what}")]
    Rounds {
        /// The table's name.
        table: String,
        /// What does not match, and what to do.
        what: String,
    },
    /// The disk is full.
    #[error(
        "the disk is full: table `{table}`, could not {doing} {path}. Every part closed before is kept and can be \
         read; rows since then are not in the tables. Free some space; `polity resume` then continues from the last \
         snapshot",
        path = path.display()
    )]
    Full {
        /// The table's name.
        table: String,
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The disk failed.
    #[error(
        "table `{table}`: could not {doing} {path}: {source}. Every part closed before is kept; once the cause is \
         fixed, `polity resume` continues from the last snapshot",
        path = path.display()
    )]
    Disk {
        /// The table's name.
        table: String,
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: Arc<io::Error>,
    },
    /// A file is not as expected.
    #[error("table `{table}`: {path}: {what}", path = path.display())]
    Format {
        /// The table's name.
        table: String,
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The writer ended without a reason, which is a defect of Polity.
    #[error(
        "the writer of the tables ended unexpectedly; the parts closed before are kept, and `polity resume` continues"
    )]
    Stopped,
}

impl TableError {
    pub(super) fn disk(table: &str, doing: &'static str, path: &Path, error: io::Error) -> Self {
        let (table, path) = (table.to_string(), path.to_path_buf());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => TableError::Full { table, doing, path },
            _ => TableError::Disk { table, doing, path, source: Arc::new(error) },
        }
    }

    /// Converts a Parquet library error, to a disk error if that is the cause.
    pub(super) fn parquet(table: &str, doing: &'static str, path: &Path, error: ParquetError) -> Self {
        let what = error.to_string();
        if let ParquetError::External(cause) = error
            && let Ok(io) = cause.downcast::<io::Error>()
        {
            return TableError::disk(table, doing, path, *io);
        }
        TableError::Format {
            table: table.to_string(),
            path: path.to_path_buf(),
            what: format!("could not {doing}: {what}"),
        }
    }

    pub(super) fn batch(table: &str, what: String) -> Self {
        TableError::Batch { table: table.to_string(), what }
    }

    pub(super) fn spec(table: &str, what: String) -> Self {
        TableError::Spec { table: table.to_string(), what }
    }
}
