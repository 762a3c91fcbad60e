//! The files that a workspace begins with.

use super::Limits;
use super::store::Hash;
use super::tree::{Entry, Tree, plain};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The files that a workspace begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Files by relative path, with their contents.
    Files(Vec<(String, Vec<u8>)>),
    /// A copy of a folder. Links and special files in it are errors.
    Folder(PathBuf),
}

impl Start {
    /// The tree, and the contents of its files.
    pub(super) fn tree(self, limits: &Limits) -> Result<(Tree, Vec<Vec<u8>>), String> {
        let mut gathered = Gathered { tree: Tree::default(), contents: Vec::new(), left: limits.sandbox.disk };
        match self {
            Start::Files(files) => {
                for (path, bytes) in files {
                    let name = plain(&path).map_err(|why| format!("a file of the start: {why}"))?;
                    if gathered.tree.0.contains_key(&name) {
                        return Err(format!("a file of the start: `{name}` is there twice"));
                    }
                    gathered.file(&name, bytes, false)?;
                }
            }
            Start::Folder(folder) => gathered.folder(&folder, "", limits)?,
        }
        gathered.tree.within(limits.sandbox.files, limits.sandbox.disk)?;
        Ok((gathered.tree, gathered.contents))
    }
}

struct Gathered {
    tree: Tree,
    contents: Vec<Vec<u8>>,
    /// Bytes that there is still room for.
    left: u64,
}

impl Gathered {
    fn file(&mut self, path: &str, bytes: Vec<u8>, executable: bool) -> Result<(), String> {
        let (hash, size) = (Hash::of(&bytes), bytes.len() as u64);
        self.tree.put(path, hash, size).map_err(|why| format!("a file of the start: {why}"))?;
        if executable {
            self.tree.0.insert(path.into(), Entry::File { hash, size, executable });
        }
        self.contents.push(bytes);
        Ok(())
    }

    fn folder(&mut self, folder: &Path, inside: &str, limits: &Limits) -> Result<(), String> {
        let about = |path: &Path, what: &dyn std::fmt::Display| format!("the start `{}`: {what}", path.display());
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| about(folder, &error))? {
            entries.push(entry.map_err(|error| about(folder, &error))?.path());
        }
        entries.sort();
        for path in entries {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| about(&path, &"its name is not UTF-8"))?;
            let name = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
            let name = plain(&name).map_err(|why| about(&path, &why))?;
            if self.tree.0.len() as u64 >= limits.sandbox.files {
                let most = limits.sandbox.files;
                return Err(about(folder, &format!("it has more than {most} files and folders, which is the limit")));
            }
            let found = fs::symlink_metadata(&path).map_err(|error| about(&path, &error))?;
            if found.is_dir() {
                self.tree.0.insert(name.clone(), Entry::Folder);
                self.folder(&path, &name, limits)?;
            } else if found.is_file() {
                let most = limits.sandbox.disk;
                self.left = self.left.checked_sub(found.len()).ok_or_else(|| {
                    about(&path, &format!("with it the files have more than {most} bytes, which is the limit"))
                })?;
                let bytes = fs::read(&path).map_err(|error| about(&path, &error))?;
                self.file(&name, bytes, found.permissions().mode() & 0o100 != 0)?;
            } else if found.is_symlink() {
                return Err(about(
                    &path,
                    &"it is a symbolic link; a workspace begins without links, so copy what it names",
                ));
            } else {
                return Err(about(&path, &"it is neither a file nor a folder"));
            }
        }
        Ok(())
    }
}
