//! Why a statement gave no rows.

use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::fmt;

/// The limit that a statement reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Thousands of instructions of SQLite's virtual machine.
    Steps(u64),
    /// Seconds by the clock.
    Time(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Steps(most) => write!(f, "{most} thousand instructions of SQLite"),
            Limit::Time(most) => write!(f, "{most} s"),
        }
    }
}

/// Why a statement gave no rows. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// SQLite cannot compile or run it; with the place, if known.
    #[error("{0}")]
    Wrong(String),
    /// It may not do what it does.
    #[error("{0}")]
    Refused(String),
    /// It was stopped.
    #[error(
        "stopped at the limit of {0}: make the query cheaper, for example with conditions on indexed columns, and check \
         that joins have conditions and that recursion ends"
    )]
    Limit(Limit),
    /// The database itself cannot be used; no other statement will help.
    #[error("{0}")]
    Unusable(String),
}

impl SqlError {
    /// Translates an error of SQLite about a statement.
    pub(super) fn of(error: &rusqlite::Error, sql: &str) -> SqlError {
        match error {
            rusqlite::Error::SqlInputError { msg, offset, .. } => {
                let place = usize::try_from(*offset).ok().and_then(|offset| place(sql, offset)).unwrap_or_default();
                SqlError::Wrong(format!("{msg}{place}"))
            }
            rusqlite::Error::SqliteFailure(code, message) => {
                let message = message.clone().unwrap_or_else(|| code.to_string());
                failure(*code, message)
            }
            other => SqlError::Wrong(other.to_string()),
        }
    }
}

fn failure(code: ffi::Error, message: String) -> SqlError {
    match code.code {
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            SqlError::Unusable(format!("the database is damaged: {message}"))
        }
        ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed => {
            SqlError::Unusable(format!("the database cannot be read: {message}"))
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            SqlError::Unusable(format!("another program works on the database: {message}"))
        }
        ErrorCode::OutOfMemory => SqlError::Refused("the query needs too much memory: sort or keep fewer rows".into()),
        ErrorCode::DiskFull => {
            SqlError::Refused(format!("the database would become larger than {} MiB", super::database::WRITABLE >> 20))
        }
        ErrorCode::TooBig => SqlError::Wrong(format!("{message}: a value, a row or the statement is too long")),
        _ => SqlError::Wrong(message),
    }
}

/// The line, the column and the text at a byte of a statement.
fn place(sql: &str, offset: usize) -> Option<String> {
    let before = sql.get(..offset)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next()?.chars().count() + 1;
    let near: String = sql[offset..].chars().take_while(|&c| c != '\n').take(40).collect();
    let near = polity_store::printable::on_one_line(&near).into_owned();
    Some(format!(", at line {line}, column {column}: `{near}`"))
}
