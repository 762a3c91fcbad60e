//! Code shared by data files of all formats: bounded reading, the format by file extension, errors with their location.

use crate::memory::available;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The largest data file, in bytes: 1 GiB.
pub const MAX_DATA_BYTES: u64 = 1 << 30;

/// Memory in bytes per byte of a data file: the byte itself, plus a one-digit cell and its comma as an eight-byte number, or a short word
/// that occurs only once.
const READ: u64 = 10;
/// Files small enough to skip the memory check.
const SMALL: u64 = 16 << 20;
/// Maximum columns of a table, or keys of a JSON line.
pub(super) const MOST_COLUMNS: usize = 10_000;

/// What is wrong with a data file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column's name.
    pub column: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl std::error::Error for DataError {}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match (self.line, &self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            (None, Some(column)) => write!(f, "column {column}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

/// How the rows of a data file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Cells separated by this byte.
    Separated(u8),
    /// One JSON object per line.
    JsonLines,
}

/// Reads the bytes of a data file, at most [`MAX_DATA_BYTES`].
///
/// # Errors
/// Names the file: missing, a folder, not a regular file, too large, or unreadable.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    read_up_to(path, MAX_DATA_BYTES)
}

/// A file's text, at most [`super::limits::MAX_BYTES`].
///
/// # Errors
/// Names the file: not UTF-8, or too long.
pub fn text_from_bytes<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, DataError> {
    let fail = |message: String| DataError { path: path.to_owned(), line: None, column: None, message };
    if bytes.len() > super::limits::MAX_BYTES {
        return Err(fail(format!(
            "it has {} bytes; a text may have at most {}",
            bytes.len(),
            super::limits::MAX_BYTES
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        fail(format!("it is not UTF-8 text: byte {} (counted from 0) is not part of a character", error.valid_up_to()))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, DataError> {
    let fail = |message: String| DataError { path: path.to_owned(), line: None, column: None, message };
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => fail("there is no such file".into()),
        _ => fail(format!("it cannot be read: {error}")),
    };
    let about = path.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(fail("this is a folder; name a file in it".into()));
    }
    if !about.is_file() {
        return Err(fail("this is not a regular file; copy its contents into one".into()));
    }
    let takes = about.len().saturating_mul(READ);
    if let Some(there) = available().filter(|there| about.len() > SMALL && takes > *there) {
        let mb = |bytes: u64| bytes / 1_000_000;
        return Err(fail(format!(
            "it has {} MB; reading it takes up to {} MB of memory, but only {} MB are available; use a sample of its \
             rows",
            mb(about.len()),
            mb(takes),
            mb(there)
        )));
    }
    let mut bytes = Vec::new();
    // The file may grow between the two checks.
    File::open(path).map_err(unreadable)?.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(fail(format!(
            "it is larger than {limit} bytes, the limit of a data file; use a sample of its rows"
        )));
    }
    Ok(bytes)
}

/// A data file in memory.
pub(super) struct Source<'a> {
    path: &'a Path,
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Decodes the bytes of the file at `path`; drops a byte order mark.
    pub fn of(path: &'a Path, bytes: &'a [u8]) -> Result<Self, DataError> {
        let mark = if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) { 3 } else { 0 };
        let bytes = &bytes[mark..];
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Source { path, text }),
            Err(error) => {
                let at = error.valid_up_to();
                let message = match bytes {
                    [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "this is UTF-16; save the file as UTF-8".into(),
                    _ => {
                        let (byte, offset) = (bytes[at], at + mark);
                        format!("byte {offset} (counted from 0), {byte:#04x}, is not UTF-8; save the file as UTF-8")
                    }
                };
                let valid = Source { path, text: std::str::from_utf8(&bytes[..at]).unwrap_or_default() };
                Err(valid.error(valid.line(at), None, message))
            }
        }
    }

    /// The format by file extension.
    pub fn format(&self) -> Result<Format, DataError> {
        let end = self.path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        match end.as_str() {
            "csv" => Ok(Format::Separated(b',')),
            "tsv" => Ok(Format::Separated(b'\t')),
            "jsonl" => Ok(Format::JsonLines),
            _ => Err(self.error(
                None,
                None,
                "the name must end in .csv, .tsv, .jsonl or .parquet, which says what format the file has",
            )),
        }
    }

    /// Creates an error in this file.
    pub fn error(&self, line: impl Into<Option<u64>>, column: Option<&str>, message: impl Into<String>) -> DataError {
        let column = column.map(str::to_owned);
        DataError { path: self.path.to_owned(), line: line.into(), column, message: message.into() }
    }

    /// The records of a separated file, with cells trimmed and any length allowed.
    pub fn records(&self, separator: u8) -> csv::StringRecordsIntoIter<&[u8]> {
        csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(self.text.as_bytes())
            .into_records()
    }

    /// The line that contains a byte, from 1. Breaks are \n, \r\n and \r alike.
    pub fn line(&self, byte: usize) -> u64 {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        let breaks =
            |(i, b): &(usize, &u8)| **b == b'\n' || **b == b'\r' && self.text.as_bytes().get(i + 1) != Some(&b'\n');
        1 + before.iter().enumerate().filter(breaks).count() as u64
    }

    /// The line at which a record begins.
    pub fn line_of(&self, record: &csv::StringRecord) -> Option<u64> {
        // The reader counts empty lines before a record as part of it.
        let begin = record.position()?.byte() as usize;
        let empty = self.text.get(begin..)?.bytes().take_while(|b| matches!(b, b'\n' | b'\r')).count();
        Some(self.line(begin + empty))
    }

    /// Counts the lines at which records begin, one record after the other.
    pub fn lines(&self) -> Lines<'a> {
        Lines { text: self.text, byte: 0, line: 1 }
    }

    /// Refuses a file whose last record has an unclosed quote: the reader would close it at the end of the file and silently swallow the
    /// lines in between.
    pub fn check_end(&self, last: &csv::StringRecord) -> Result<(), DataError> {
        let quotes = || self.text.bytes().filter(|b| *b == b'"').count();
        if last.iter().any(|cell| cell.contains('\n')) && !quotes().is_multiple_of(2) {
            return Err(self.error(self.line_of(last), None, "a quote is not closed before the end of the file"));
        }
        Ok(())
    }

    /// The message for a record of the wrong length.
    pub fn ragged(&self, record: &csv::StringRecord, expected: usize) -> DataError {
        let hint = if record.iter().any(|cell| cell.contains('\n')) { "; is a quote not closed?" } else { "" };
        let cells = |n: usize| if n == 1 { "1 cell".to_owned() } else { format!("{n} cells") };
        let message = format!("{} where the first line has {}{hint}", cells(record.len()), cells(expected));
        self.error(self.line_of(record), None, message)
    }
}

/// The lines at which records begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    byte: usize,
    line: u32,
}

impl Lines<'_> {
    /// Returns the line of a record, from 1. Records come in their order.
    pub fn of(&mut self, record: &csv::StringRecord) -> u32 {
        let bytes = self.text.as_bytes();
        let mut begin = record.position().map_or(self.byte, |position| position.byte() as usize).min(bytes.len());
        // The reader counts empty lines before a record as part of it.
        begin += bytes[begin..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        while self.byte < begin {
            let is_break = match bytes[self.byte] {
                b'\n' => true,
                b'\r' => bytes.get(self.byte + 1) != Some(&b'\n'),
                _ => false,
            };
            self.line += u32::from(is_break);
            self.byte += 1;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_last_byte_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "a\n1\n").unwrap();
        assert_eq!(read_up_to(&path, 4), Ok(b"a\n1\n".to_vec()));
        assert_eq!(
            read_up_to(&path, 3).unwrap_err().message,
            "it is larger than 3 bytes, the limit of a data file; use a sample of its rows"
        );
    }

    #[test]
    fn lines_are_counted_over_all_breaks() {
        let source = Source::of(Path::new("a.csv"), b"a\nb\r\nc\rd").unwrap();
        let lines: Vec<u64> = source.text.char_indices().map(|(at, _)| source.line(at)).collect();
        assert_eq!(lines, [1, 1, 2, 2, 2, 3, 3, 4]);
    }
}
