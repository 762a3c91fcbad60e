//! `digests.json`: the files of a folder with several runs, except those of the runs, and the digests of the runs. A run has its journal
//! for that; a sweep or comparison has this file. It is written before the files it names, so that files left unfinished by a kill are
//! missing, and no existing file is unlisted.

use crate::disk::{Disk, EntryKind, write_atomically};
use crate::tables::{Parts, Span};
use crate::{DriveError, Fault};
use polity_kernel::digest::{Digest, FileHash};
use polity_kernel::event::Part;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// The file's name.
pub const DIGESTS_FILE: &str = "digests.json";
/// Format version of the file.
const FORMAT: u32 = 1;

/// A listed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    bytes: u64,
    /// Computed by [`FileHash`].
    digest: String,
}

/// The contents of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    format: u32,
    /// Files by path, relative to the folder.
    files: BTreeMap<String, Listed>,
    /// Run digests by folder, likewise.
    runs: BTreeMap<String, String>,
}

impl Default for Listing {
    fn default() -> Self {
        Listing { format: FORMAT, files: BTreeMap::new(), runs: BTreeMap::new() }
    }
}

/// Whether a path stays inside the folder.
fn is_below(path: &str) -> bool {
    !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn part_path(part: &Part) -> String {
    format!("tables/{}/{}", part.table, Span::of(part).file_name())
}

impl Listing {
    /// Adds a file by its path relative to the folder.
    pub fn add(&mut self, path: impl Into<String>, bytes: &[u8]) {
        let listed = Listed { bytes: bytes.len() as u64, digest: FileHash::of(bytes).to_string() };
        self.files.insert(path.into(), listed);
    }

    /// Adds a part of a table.
    pub fn add_part(&mut self, part: &Part) {
        self.files.insert(part_path(part), Listed { bytes: part.bytes, digest: part.digest.to_string() });
    }

    /// Copies a file's entry from another listing.
    pub fn keep(&mut self, path: &str, from: &Listing) {
        if let Some(listed) = from.files.get(path) {
            self.files.insert(path.to_string(), listed.clone());
        }
    }

    /// Adds a run's digest, by its folder relative to this one.
    pub fn add_run(&mut self, folder: impl Into<String>, digest: impl Into<String>) {
        self.runs.insert(folder.into(), digest.into());
    }

    /// The files, as paths relative to the folder.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The runs: their folders relative to this one, and their digests.
    pub fn runs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.runs.iter().map(|(folder, digest)| (folder.as_str(), digest.as_str()))
    }

    /// The table parts among the files.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::new();
        for (path, listed) in &self.files {
            let Some((table, name)) = path.strip_prefix("tables/").and_then(|path| path.split_once('/')) else {
                continue;
            };
            if let (Some(Span { first, last }), Ok(digest)) = (Span::parse(name), listed.digest.parse::<Digest>()) {
                let part = Part { table: table.into(), first, last, rows: 0, bytes: listed.bytes, digest };
                parts.entry(table.to_string()).or_default().push(part);
            }
        }
        parts
    }

    fn text(&self) -> Result<String, DriveError> {
        let text = serde_json::to_string_pretty(self).map(|text| text + "\n");
        text.map_err(|error| DriveError::Folder(format!("{DIGESTS_FILE} cannot be written: {error}")))
    }

    /// Writes it to a folder.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<(), DriveError> {
        let path = dir.join(DIGESTS_FILE);
        write_atomically(disk, &path, self.text()?.as_bytes()).map_err(DriveError::disk(&path))
    }

    /// Reads the listing of a folder; `None` if missing.
    ///
    /// # Errors
    /// [`DriveError::Folder`] if it was changed.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Self>, DriveError> {
        let path = dir.join(DIGESTS_FILE);
        if !disk.exists(&path).map_err(DriveError::disk(&path))? {
            return Ok(None);
        }
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let wrong = |why: &dyn std::fmt::Display| {
            DriveError::Folder(format!(
                "{} was changed after it was written ({why}); restore it from a copy",
                path.display()
            ))
        };
        let listing: Listing = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
        if listing.format != FORMAT {
            let why = format!("it has format {}, but this build reads {FORMAT}", listing.format);
            return Err(wrong(&why));
        }
        if let Some(path) = listing.files.keys().chain(listing.runs.keys()).find(|path| !is_below(path)) {
            return Err(wrong(&format!("`{path}` leads out of the folder")));
        }
        match listing.text()?.as_bytes() == bytes {
            true => Ok(Some(listing)),
            false => Err(wrong(&"its text was changed")),
        }
    }

    /// What is wrong with a file, if it is listed and was changed.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn fault(&self, disk: &dyn Disk, dir: &Path, path: &str) -> Result<Option<Fault>, DriveError> {
        let at = dir.join(path);
        let Some(listed) = self.files.get(path) else {
            return Ok(Some(Fault::new(at, format!("it is not listed in {DIGESTS_FILE}: it was added; remove it"))));
        };
        let kind = match disk.kind(&at) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Some(Fault::new(at, "it is gone")));
            }
            kind => kind.map_err(DriveError::disk(&at))?,
        };
        if kind != EntryKind::File {
            return Ok(Some(Fault::new(at, "it is not a regular file")));
        }
        let bytes = disk.read(&at).map_err(DriveError::disk(&at))?;
        let same = bytes.len() as u64 == listed.bytes && FileHash::of(&bytes).to_string() == listed.digest;
        Ok((!same).then(|| Fault::new(at, "it was changed after it was written")))
    }

    /// Everything that is wrong with the listed files.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn faults(&self, disk: &dyn Disk, dir: &Path) -> Result<Vec<Fault>, DriveError> {
        let faults: Result<Vec<_>, _> = self.files.keys().map(|path| self.fault(disk, dir, path)).collect();
        Ok(faults?.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn what_is_listed_is_found_again_and_what_was_changed_is_named() {
        let (disk, dir) = (SimDisk::default(), Path::new("folder"));
        disk.create_dir_all(&dir.join("a")).unwrap();
        assert!(Listing::read(&disk, dir).unwrap().is_none());
        let mut listing = Listing::default();
        for (path, text) in [("one.csv", "1,2"), ("a/two.json", "{}")] {
            listing.add(path, text.as_bytes());
            write_atomically(&disk, &dir.join(path), text.as_bytes()).unwrap();
        }
        listing.add_run("runs/x", "00");
        listing.write(&disk, dir).unwrap();
        let read = Listing::read(&disk, dir).unwrap().unwrap();
        assert_eq!(read, listing);
        assert!(read.faults(&disk, dir).unwrap().is_empty());
        write_atomically(&disk, &dir.join("one.csv"), b"1,3").unwrap();
        disk.remove_file(&dir.join("a/two.json")).unwrap();
        let faults: Vec<String> = read
            .faults(&disk, dir)
            .unwrap()
            .into_iter()
            .map(|fault| format!("{}: {}", fault.path.display(), fault.what))
            .collect();
        assert_eq!(faults, ["folder/a/two.json: it is gone", "folder/one.csv: it was changed after it was written"]);
        assert!(read.fault(&disk, dir, "three").unwrap().unwrap().what.contains("not listed"));

        let text = String::from_utf8(disk.read(&dir.join(DIGESTS_FILE)).unwrap()).unwrap();
        for changed in [
            text.trim_end().to_string(),
            text.replace("one.csv", "../one.csv"),
            text.replace("\"format\": 1", "\"format\": 2"),
        ] {
            write_atomically(&disk, &dir.join(DIGESTS_FILE), changed.as_bytes()).unwrap();
            let error = Listing::read(&disk, dir).unwrap_err().to_string();
            assert!(error.contains("digests.json"), "{error}");
        }
    }
}
