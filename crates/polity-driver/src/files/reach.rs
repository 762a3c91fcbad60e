//! Which files a scenario may read. Scenarios are shared, and what they read is sent to models and kept in run folders: whoever runs one must
//! not have to read it first.
//!
//! A file that a scenario names lies below the scenario's own folder, or below the project's: the nearest folder above with a file
//! `.polity-root`. Links are followed first, and hidden files (`.env`, `.ssh/...`) are left out. What the user names on the command line, and
//! what a program builds, is their own wish.

use super::read_bytes;
use crate::models::keys::why_not_own;
use polity_kernel::tree::Origin;
use std::path::{Path, PathBuf};

/// The file that marks a project: scenarios below its folder may read files below it.
pub const ROOT_MARKER: &str = ".polity-root";

/// See the module.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Where relative paths begin: the scenario's folder.
    folder: PathBuf,
    /// Folders that the user allows besides, as given.
    allowed: Vec<PathBuf>,
    /// Whether edits are the user's own.
    own_edits: bool,
}

impl From<&Path> for Reach {
    fn from(folder: &Path) -> Self {
        Reach::of(folder, &[])
    }
}

impl Reach {
    /// That of a scenario in a folder, and of what the user allows besides (`--allow-read`).
    #[must_use]
    pub fn of(folder: &Path, allowed: &[PathBuf]) -> Self {
        // The folder of `demo.yaml` is nameless.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Reach { folder: folder.to_path_buf(), allowed: allowed.to_vec(), own_edits: true }
    }

    /// The same where edits come from a file, too: a system's.
    #[must_use]
    pub(crate) fn with_edits_of_others(self) -> Self {
        Reach { own_edits: false, ..self }
    }

    /// Reads a file that stands at `origin` under a name; with its path.
    ///
    /// # Errors
    /// A sentence with the path: what lies elsewhere, and what can not be read.
    pub fn read(&self, name: &str, origin: &Origin) -> Result<(PathBuf, Vec<u8>), String> {
        let path = self.folder.join(name);
        let place = match origin {
            Origin::Built => path.clone(),
            Origin::Edit(_) if self.own_edits => path.clone(),
            Origin::Edit(_) | Origin::File { .. } => self.find(name)?,
        };
        let bytes = read_bytes(&place).map_err(|error| error.to_string())?;
        Ok((path, bytes))
    }

    /// Where a file of this name really lies. One that is not there is left to whoever reads it.
    ///
    /// # Errors
    /// A sentence with the path: what lies elsewhere.
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
                    "`{name}` is {shown}, a hidden file, which a scenario does not read. If this is meant: --allow-read {parent}"
                ))
            }
            Some(_) => Ok(place),
            None => Err(format!(
                "`{name}` is {shown}, and a scenario reads files below its own folder only ({}){}. If you trust it with that file: \
                 --allow-read {parent}",
                root.unwrap_or(own).display(),
                ignored.map(|why| format!("; {why}")).unwrap_or_default(),
            )),
        }
    }
}

/// The project that a folder belongs to, if any; why a mark does not count, if one does not. Who can write a mark widens what scenarios read.
fn project(folder: &Path) -> (Option<PathBuf>, Option<String>) {
    for above in folder.ancestors() {
        let mark = above.join(ROOT_MARKER);
        match mark.symlink_metadata() {
            Ok(about) if about.is_file() => match why_not_own(&about) {
                None => return (Some(above.to_path_buf()), None),
                Some(why) => return (None, Some(format!("`{}` does not count: {why}", mark.display()))),
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
        // What the user names, and what a program builds.
        for origin in [Origin::Built, Origin::Edit("population.file=../../secret".into())] {
            assert_eq!(reach.read("../../secret", &origin).unwrap().1, b"secret");
        }
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
        assert!(why.contains(".polity-root` does not count: others can write it"), "{why}");
        // One that is brought along ends what lies above it: the nearest counts.
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(home.path().join("project/demo").join(ROOT_MARKER), "").unwrap();
        fs::set_permissions(home.path().join("project/demo").join(ROOT_MARKER), fs::Permissions::from_mode(0o644))
            .unwrap();
        assert!(reach.read("../data/a.csv", &WRITTEN).is_err());
    }
}
