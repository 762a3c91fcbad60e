//! Reads and parses scenario files, and renders their errors.

mod columnar;
mod data;
mod edges;
mod graphs;
mod limits;
mod reach;
mod relative;
mod render;
pub mod table;
mod xml;
pub mod yaml;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polity_kernel::tree::{Node, Origin, TreeError};

pub use data::{DataError, MAX_DATA_BYTES, read_bytes, text_from_bytes};
pub use edges::edges_from_bytes;
pub use limits::{MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_TEXT};
pub use reach::{ROOT_MARKER, Reach};
pub use relative::{from_there, plainly};
pub use render::{position, render};
pub use table::{table_from_bytes, texts_from_bytes};
pub use yaml::parse_edit;

/// Why a scenario file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no file `{}`", path.display())]
    Missing {
        /// The path that was given.
        path: PathBuf,
    },
    /// The system does not allow reading it.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The path that was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is larger than [`MAX_BYTES`].
    #[error("`{}` is larger than {MAX_BYTES} bytes, the limit of a scenario; keep large data in a table of its own", path.display())]
    TooLarge {
        /// The path that was given.
        path: PathBuf,
    },
    /// It is not text.
    #[error("`{}` is not UTF-8 text: byte {byte} (counted from 0) is not part of a character", path.display())]
    NotUtf8 {
        /// The path that was given.
        path: PathBuf,
        /// The offset of the first byte that is not text.
        byte: usize,
    },
    /// It is not YAML, or not the YAML dialect of scenarios.
    #[error("{}", place(path, text, error))]
    Syntax {
        /// The path that was given.
        path: PathBuf,
        /// The file's text, for showing the location.
        text: String,
        /// What is wrong.
        error: Box<TreeError>,
    },
}

impl FileError {
    /// Renders the error for a person, with its location in the file if known.
    pub fn render(&self, colour: bool) -> String {
        match self {
            FileError::Syntax { path, text, error } => render(error, &path.display().to_string(), text, colour),
            other => format!("{other}\n"),
        }
    }
}

fn place(path: &Path, text: &str, error: &TreeError) -> String {
    match error.origin {
        Origin::File { start, .. } => {
            let (line, column) = position(text, start);
            format!("{}:{line}:{column}: {error}", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    }
}

/// Reads and parses a scenario file. Returns its text (for rendering later errors) and its tree.
pub fn read_file(path: &Path) -> Result<(String, Node), FileError> {
    let owned = || path.to_owned();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => FileError::Missing { path: owned() },
        _ => FileError::Unreadable { path: owned(), source },
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_BYTES {
        return Err(FileError::TooLarge { path: owned() });
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| FileError::NotUtf8 { path: owned(), byte: error.utf8_error().valid_up_to() })?;
    match yaml::parse(&text) {
        Ok(node) => Ok((text, node)),
        Err(error) => Err(FileError::Syntax { path: owned(), text, error: Box::new(error) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo.yaml");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_is_read_with_its_text() {
        let (_folder, path) = write(b"a: 1\n");
        let (text, node) = read_file(&path).unwrap();
        assert_eq!((text.as_str(), node.to_json()), ("a: 1\n", serde_json::json!({"a": 1})));
    }

    #[test]
    fn files_that_can_not_be_used_say_why() {
        let (folder, path) = write(b"caf\xe9: 1\n");
        let missing = folder.path().join("nope.yaml");
        let name = path.display();
        assert_eq!(read_file(&missing).unwrap_err().to_string(), format!("there is no file `{}`", missing.display()));
        assert_eq!(
            read_file(&path).unwrap_err().to_string(),
            format!("`{name}` is not UTF-8 text: byte 3 (counted from 0) is not part of a character")
        );
        std::fs::write(&path, "a: 1\nb: [\n").unwrap();
        let broken = read_file(&path).unwrap_err();
        assert_eq!(broken.to_string(), format!("{name}:2:4: this `[` is not closed"));
        assert!(broken.render(false).contains("b: ["));
        assert!(matches!(read_file(folder.path()), Err(FileError::Unreadable { .. })));
    }

    #[test]
    fn the_limit_is_the_last_byte_allowed() {
        let (_folder, path) = write(&vec![b'#'; MAX_BYTES]);
        assert!(read_file(&path).is_ok());
        std::fs::write(&path, vec![b'#'; MAX_BYTES + 1]).unwrap();
        let error = read_file(&path).unwrap_err();
        assert!(matches!(error, FileError::TooLarge { .. }));
        assert!(error.to_string().contains("4194304 bytes"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn an_endless_file_is_too_large() {
        assert!(matches!(read_file(Path::new("/dev/zero")), Err(FileError::TooLarge { .. })));
    }
}
