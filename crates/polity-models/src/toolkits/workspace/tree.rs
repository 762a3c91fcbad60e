//! The files of a version, and the rules of their paths.

use super::store::Hash;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The folder in the sandbox in which the files lie.
pub(super) const ROOT: &str = "/work";
/// Bytes of a path.
pub(super) const LONGEST_PATH: usize = 1_000;
/// Bytes of a name.
const LONGEST_NAME: usize = 255;
/// Links followed on one path, as in Linux.
const MOST_LINKS: usize = 40;
/// Files take up whole pages of the sandbox's memory.
const PAGE: u64 = 4_096;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Entry {
    Folder,
    File {
        hash: Hash,
        size: u64,
        executable: bool,
    },
    /// A symbolic link, with its target.
    Link(String),
}

/// Files, folders and links by path. The folders of every path are entries themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Tree(pub(super) BTreeMap<String, Entry>);

/// Why a path comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It leads out of the workspace.
    Out,
    /// Its links have no end.
    Endless,
    /// It goes on behind a file.
    File(String),
}

impl Lost {
    /// Says it of a path.
    pub(super) fn of(self, path: &str) -> String {
        match self {
            Lost::Out => format!("`{path}` leads out of the workspace"),
            Lost::Endless => format!("the links of `{path}` have no end"),
            Lost::File(file) => format!("`{file}` is a file, not a folder"),
        }
    }
}

/// The path of the folder that a path lies in; none for those of the top.
pub(super) fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent)
}

/// Checks a path of a call and returns it in its plain form, without `.` and doubled slashes. The empty path is the workspace itself.
pub(super) fn plain(path: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("the path `{}` {why}", path.escape_debug()));
    if path.starts_with('/') {
        return wrong("is absolute; give it relative to the workspace, like `src/main.py`");
    }
    if path.len() > LONGEST_PATH {
        return wrong(&format!("is longer than {LONGEST_PATH} bytes"));
    }
    if path.chars().any(char::is_control) {
        return wrong("has a control character");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return wrong("has `..`; paths may not leave the workspace, give them from its top");
    }
    if parts.iter().any(|part| part.len() > LONGEST_NAME) {
        return wrong(&format!("has a name of more than {LONGEST_NAME} bytes"));
    }
    Ok(parts.join("/"))
}

impl Tree {
    /// Follows the links on a path, within the tree only, and returns the path that it comes to, whether or not something is there.
    pub(super) fn resolve(&self, path: &str) -> Result<String, Lost> {
        let mut ahead: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.pop().ok_or(Lost::Out)?;
                    continue;
                }
                _ => at.push(part),
            }
            match self.0.get(&at.join("/")) {
                Some(Entry::Link(target)) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Lost::Endless);
                    }
                    at.pop();
                    let rest = match target.strip_prefix('/') {
                        None => target.as_str(),
                        Some(_) => {
                            at.clear();
                            target
                                .strip_prefix(ROOT)
                                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
                                .ok_or(Lost::Out)?
                        }
                    };
                    ahead.extend(rest.split('/').rev().map(str::to_owned));
                }
                Some(Entry::File { .. }) if ahead.iter().any(|part| !part.is_empty()) => {
                    return Err(Lost::File(at.join("/")));
                }
                _ => {}
            }
        }
        Ok(at.join("/"))
    }

    /// Removes what a version does not hold: links that lead out of the workspace, and names with control characters. Returns what was removed
    /// and why.
    pub(super) fn clean(&mut self) -> Vec<(String, String)> {
        let mut dropped: Vec<(String, String)> = Vec::new();
        for (path, entry) in &self.0 {
            let why = match entry {
                _ if path.chars().any(char::is_control) => "its name has a control character".to_owned(),
                Entry::Link(target) if self.resolve(path) == Err(Lost::Out) => {
                    format!("it is a link that leads out of the workspace, to {}", target.escape_debug())
                }
                _ => continue,
            };
            dropped.push((path.clone(), why));
        }
        for (path, _) in &dropped {
            self.remove(path);
        }
        dropped
    }

    /// Removes an entry, with everything in it.
    pub(super) fn remove(&mut self, path: &str) {
        let inside = format!("{path}/");
        self.0.remove(path);
        self.0.retain(|other, _| !other.starts_with(&inside));
    }

    /// Puts a file at a path that [`Tree::resolve`] returned, and makes its folders. An old file keeps its executable bit.
    pub(super) fn put(&mut self, path: &str, hash: Hash, size: u64) -> Result<(), String> {
        let executable = match self.0.get(path) {
            Some(Entry::Folder) => return Err(format!("`{path}` is a folder")),
            Some(Entry::File { executable, .. }) => *executable,
            Some(Entry::Link(_)) | None => false,
        };
        if path.is_empty() {
            return Err("the path names no file".into());
        }
        let mut above = parent(path);
        while let Some(folder) = above {
            match self.0.get(folder) {
                None => {
                    self.0.insert(folder.into(), Entry::Folder);
                }
                Some(Entry::Folder) => {}
                Some(_) => return Err(format!("`{folder}` is a file, not a folder")),
            }
            above = parent(folder);
        }
        self.0.insert(path.into(), Entry::File { hash, size, executable });
        Ok(())
    }

    /// Checks limits: the number of entries, and bytes in whole pages of memory.
    pub(super) fn within(&self, files: u64, bytes: u64) -> Result<(), String> {
        let (mut count, mut total) = (0, 0);
        for entry in self.0.values() {
            count += 1;
            total += match entry {
                Entry::File { size, .. } => size.div_ceil(PAGE) * PAGE,
                Entry::Folder | Entry::Link(_) => 0,
            };
        }
        if count > files {
            return Err(format!("the workspace would have {count} files and folders; {files} is the limit"));
        }
        if total > bytes {
            return Err(format!(
                "the workspace would have {total} bytes (each file in pages of {PAGE}); {bytes} is the limit"
            ));
        }
        Ok(())
    }

    /// Returns which paths must be removed, and which put, to make this tree of `other`. A path whose kind changes is in both.
    pub(super) fn changes_from<'a>(&'a self, other: &'a Tree) -> (Vec<&'a str>, Vec<(&'a str, &'a Entry)>) {
        let kind = std::mem::discriminant::<Entry>;
        let gone = other.0.iter().filter(|(path, entry)| match self.0.get(*path) {
            Some(now) => kind(now) != kind(entry),
            None => true,
        });
        let new = self.0.iter().filter(|(path, entry)| other.0.get(*path) != Some(*entry));
        (gone.map(|(path, _)| path.as_str()).collect(), new.map(|(path, entry)| (path.as_str(), entry)).collect())
    }
}
