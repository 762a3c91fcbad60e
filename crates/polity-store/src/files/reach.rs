//! Which files a scenario may read. Scenarios are shared, and their files are sent to models and kept in run folders, so it must be safe
//! to run one without reading it first.
//!
//! A file named by a scenario must be below the scenario's own folder or below the project's: the nearest parent folder with a file
//! `.polity-root`. Links are resolved first, and hidden files (`.env`, `.ssh/...`) are excluded. Paths on the command line, and those
//! built by a program, are not restricted.

use super::read_bytes;
use crate::owner::why_not_own;
use polity_kernel::tree::Origin;
use std::path::{Path, PathBuf};

/// The file that marks a project: scenarios below its folder may read files below it.
pub const ROOT_MARKER: &str = ".polity-root";

/// Maximum number of files of a folder.
const MOST_FILES: usize = 100_000;

/// See the module docs.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Base of relative paths: the scenario's folder.
    folder: PathBuf,
    /// Additional folders allowed by the user, as given.
    allowed: Vec<PathBuf>,
    /// Whether edits come from the user.
    own_edits: bool,
    /// Base of relative paths in the user's edits, if it is another one.
    edits_folder: Option<PathBuf>,
}

impl From<&Path> for Reach {
    fn from(folder: &Path) -> Self {
        Reach::of(folder, &[])
    }
}

impl Reach {
    /// Creates the reach of a scenario in a folder, with additional folders allowed by the user (`--allow-read`).
    #[must_use]
    pub fn of(folder: &Path, allowed: &[PathBuf]) -> Self {
        // The parent of `demo.yaml` is the empty path.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Reach { folder: folder.to_path_buf(), allowed: allowed.to_vec(), own_edits: true, edits_folder: None }
    }

    /// The same if edits also come from a file, namely a system's.
    #[must_use]
    pub fn with_edits_of_others(self) -> Self {
        Reach { own_edits: false, ..self }
    }

    /// The same where relative paths in the user's edits start at another folder; empty for the current one.
    #[must_use]
    pub fn with_edits_from(self, folder: &Path) -> Self {
        Reach { edits_folder: Some(folder.to_path_buf()), ..self }
    }

    /// Returns the path of a file or folder named at `origin`.
    fn path(&self, name: &str, origin: &Origin) -> PathBuf {
        let folder = match (origin, &self.edits_folder) {
            (Origin::Edit(_), Some(folder)) if self.own_edits => folder,
            _ => &self.folder,
        };
        folder.join(name)
    }

    /// Reads a file named at `origin`; returns it with its path.
    ///
    /// # Errors
    /// A sentence with the path: files out of reach, and unreadable files.
    pub fn read(&self, name: &str, origin: &Origin) -> Result<(PathBuf, Vec<u8>), String> {
        let path = self.path(name, origin);
        let place = match origin {
            Origin::Built => path.clone(),
            Origin::Edit(_) if self.own_edits => path.clone(),
            Origin::Edit(_) | Origin::File { .. } => self.find(name)?,
        };
        let bytes = read_bytes(&place).map_err(|error| error.to_string())?;
        Ok((path, bytes))
    }

    /// Reads all files of a folder named at `origin`, and of the folders in it, in order of their paths: JSON lines with `id`, the path in
    /// the folder, and `text`. Hidden files are left out.
    ///
    /// # Errors
    /// A sentence with the path: folders and files out of reach, too many files, and files that are not text.
    pub fn read_folder(&self, name: &str, origin: &Origin) -> Result<(PathBuf, Vec<u8>), String> {
        let folder = self.path(name, origin);
        if !folder.is_dir() {
            return Err(format!("there is no folder `{}`", folder.display()));
        }
        let mut names = Vec::new();
        list(&folder, "", &mut names)?;
        names.sort();
        let mut lines = Vec::new();
        for file in names {
            let (path, bytes) = self.read(&format!("{name}/{file}"), origin)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| format!("`{}` is not text (UTF-8), so it cannot be read as a document", path.display()))?;
            lines.extend_from_slice(serde_json::json!({"id": file, "text": text}).to_string().as_bytes());
            lines.push(b'\n');
        }
        Ok((folder, lines))
    }

    /// Resolves the real path of a file. Missing files are left to the reader.
    ///
    /// # Errors
    /// A sentence with the path, for files out of reach.
    pub fn find(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        let Ok(place) = path.canonicalize() else { return Ok(path) };
        let mut allowed = self.allowed.iter().filter_map(|folder| folder.canonicalize().ok());
        if allowed.any(|folder| place.starts_with(folder)) {
            return Ok(place);
        }
        let own = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        let (root, ignored) = project(&own);
        let below = |folder: &Path| place.strip_prefix(folder).ok().map(Path::to_path_buf);
        let shown = place.display();
        let parent = place.parent().unwrap_or(&place).display();
        match below(&own).or_else(|| below(root.as_deref()?)) {
            Some(rest) if rest.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b".")) => {
                Err(format!(
                    "`{name}` is {shown}, a hidden file, which a scenario may not read. To allow it: --allow-read \
                     {parent}"
                ))
            }
            Some(_) => Ok(place),
            None => Err(format!(
                "`{name}` is {shown}, but a scenario may read only files below its own folder ({}){}. If you trust it \
                 with that file: --allow-read {parent}",
                root.unwrap_or(own).display(),
                ignored.map(|why| format!("; {why}")).unwrap_or_default(),
            )),
        }
    }
}

/// Lists the files of a folder and of the folders in it, by their paths in it, without hidden ones.
fn list(folder: &Path, above: &str, names: &mut Vec<String>) -> Result<(), String> {
    let unreadable = |error: std::io::Error| format!("cannot read the folder `{}`: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(format!("`{}` has a name that is not text (UTF-8)", entry.path().display()));
        };
        if name.starts_with('.') {
            continue;
        }
        let (kind, path) = (entry.file_type().map_err(unreadable)?, format!("{above}{name}"));
        match kind.is_dir() {
            true => list(&entry.path(), &format!("{path}/"), names)?,
            false => names.push(path),
        }
        if names.len() > MOST_FILES {
            return Err(format!("the folder `{}` has more than {MOST_FILES} files", folder.display()));
        }
    }
    Ok(())
}

/// The project of a folder, if any, and why a marker is ignored, if one is. Whoever can write a marker widens what scenarios may read.
fn project(folder: &Path) -> (Option<PathBuf>, Option<String>) {
    for above in folder.ancestors() {
        let mark = above.join(ROOT_MARKER);
        match mark.symlink_metadata() {
            Ok(about) if about.is_file() => match why_not_own(&about) {
                None => return (Some(above.to_path_buf()), None),
                Some(why) => return (None, Some(format!("`{}` is ignored: {why}", mark.display()))),
            },
            _ => {}
        }
    }
    (None, None)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const WRITTEN: Origin = Origin::File { start: 0, end: 1 };

    /// `home/secret`, and below `home/project` a scenario's folder with data beside it.
    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        ["secret", "project/data/a.csv", "project/.env", "project/demo/own/b.csv", "project/demo/.hidden/c"]
            .into_iter()
            .for_each(put);
        home
    }

    #[test]
    fn a_scenario_reads_below_its_own_folder_only() {
        let home = home();
        let demo = home.path().join("project/demo");
        symlink(home.path().join("secret"), demo.join("link.csv")).unwrap();
        symlink("own/b.csv", demo.join("near.csv")).unwrap();
        let reach = Reach::from(demo.as_path());
        let absolute = home.path().join("secret").display().to_string();
        for name in ["own/b.csv", "near.csv", "own/../own/b.csv"] {
            assert!(reach.read(name, &WRITTEN).is_ok(), "{name}");
        }
        for name in ["../data/a.csv", "../../secret", "link.csv", absolute.as_str(), "own/../../../secret"] {
            let why = reach.read(name, &WRITTEN).unwrap_err();
            assert!(why.contains(&format!("`{name}`")) && why.contains("--allow-read /"), "{why}");
        }
        let why = reach.read(".hidden/c", &WRITTEN).unwrap_err();
        assert!(why.contains("hidden"), "{why}");
        assert!(reach.read("none.csv", &WRITTEN).unwrap_err().contains("there is no such file"));
        // Paths named by the user or built by a program.
        for origin in [Origin::Built, Origin::Edit("population.file=../../secret".into())] {
            assert_eq!(reach.read("../../secret", &origin).unwrap().1, b"secret");
        }
        // Where edits have a folder of their own, only they are read from there.
        let edit = Origin::Edit("population.file=data/a.csv".into());
        let elsewhere = reach.clone().with_edits_from(&home.path().join("project"));
        assert!(elsewhere.read("data/a.csv", &edit).is_ok() && reach.read("data/a.csv", &edit).is_err());
        assert!(elsewhere.read("own/b.csv", &WRITTEN).is_ok() && elsewhere.read("data/a.csv", &WRITTEN).is_err());
        let edit = Origin::Edit("items.file=../../secret of system.yaml".into());
        assert!(reach.with_edits_of_others().read("../../secret", &edit).is_err());
        let allowed = Reach::of(&demo, &[home.path().join("project")]);
        for name in ["../data/a.csv", "../.env", ".hidden/c"] {
            assert!(allowed.read(name, &WRITTEN).is_ok(), "{name}");
        }
        assert!(allowed.read("../../secret", &WRITTEN).is_err());
    }

    #[test]
    fn a_mark_makes_a_project_and_widens_no_other_folder() {
        let home = home();
        let reach = Reach::from(home.path().join("project/demo").as_path());
        let mark = home.path().join("project").join(ROOT_MARKER);
        fs::write(&mark, "").unwrap();
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(reach.read("../data/a.csv", &WRITTEN).is_ok());
        assert!(reach.read("../../secret", &WRITTEN).is_err());
        assert!(reach.read("../.env", &WRITTEN).unwrap_err().contains("hidden"));
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o666)).unwrap();
        let why = reach.read("../data/a.csv", &WRITTEN).unwrap_err();
        assert!(why.contains(".polity-root` is ignored: others can write to it"), "{why}");
        // A marker shipped with the scenario hides those above it: the nearest counts.
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(home.path().join("project/demo").join(ROOT_MARKER), "").unwrap();
        fs::set_permissions(home.path().join("project/demo").join(ROOT_MARKER), fs::Permissions::from_mode(0o644))
            .unwrap();
        assert!(reach.read("../data/a.csv", &WRITTEN).is_err());
    }
}
