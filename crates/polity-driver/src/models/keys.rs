//! Keys and addresses of providers: from the environment, else from the nearest `.env`. A key is never shown.

pub use super::secret::Secret;

use std::env::VarError;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a `.env` that are read at most.
const LONGEST_FILE: u64 = 1 << 20;

/// Where a variable stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// In the environment of the process.
    Environment,
    /// In this file.
    File(PathBuf),
}

impl fmt::Display for Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stands::Environment => f.write_str("the environment"),
            Stands::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

/// A variable that is set. Its value may be a key: it has no way to be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value, without spaces around it.
    pub value: String,
    /// Where it stands.
    pub stands: Stands,
}

/// The variables that say whom to ask, and as whom: of the environment, and of the nearest `.env` that is the user's own.
pub struct Variables {
    environment: fn(&str) -> Result<String, VarError>,
    /// The nearest `.env` with its text.
    file: Option<(PathBuf, String)>,
    /// Every `.env` that was passed over, with the reason, in a sentence each.
    pub ignored: Vec<String>,
}

impl Variables {
    /// Those of this process: the environment, and the nearest `.env` from the current folder upwards.
    ///
    /// # Errors
    /// A file that can not be read.
    pub fn here() -> Result<Self, String> {
        match std::env::current_dir() {
            Ok(folder) => Variables::of(|name| std::env::var(name), &folder),
            // A folder that is gone has no file in it.
            Err(_) => Ok(Variables { environment: |name| std::env::var(name), file: None, ignored: Vec::new() }),
        }
    }

    /// Those of an environment, and of the nearest `.env` from a folder upwards. Whoever can write such a file decides where a key is
    /// sent, so one that others own or can write is passed over.
    fn of(environment: fn(&str) -> Result<String, VarError>, folder: &Path) -> Result<Self, String> {
        let mut variables = Variables { environment, file: None, ignored: Vec::new() };
        for path in folder.ancestors().map(|folder| folder.join(".env")).filter(|path| path.is_file()) {
            let unreadable = |error: io::Error| format!("{} can not be read: {error}", path.display());
            let file = File::open(&path).map_err(unreadable)?;
            if let Some(why) = why_not_own(&file.metadata().map_err(unreadable)?) {
                variables.ignored.push(format!("`{}` is ignored: {why}", path.display()));
                continue;
            }
            let mut text = Vec::new();
            file.take(LONGEST_FILE).read_to_end(&mut text).map_err(unreadable)?;
            variables.file = Some((path, String::from_utf8_lossy(&text).into_owned()));
            break;
        }
        Ok(variables)
    }

    /// The first of these variables that is set. Of each the environment comes first, then the file.
    ///
    /// # Errors
    /// Name, file and line of a value that is no text, or whose quotes are not closed; never the value.
    pub fn get(&self, names: &[&'static str]) -> Result<Option<Variable>, String> {
        for name in names {
            let variable = match self.in_environment(name)? {
                None => self.in_file(name)?,
                found => found,
            };
            if variable.is_some() {
                return Ok(variable);
            }
        }
        Ok(None)
    }

    /// An address and the secret that is sent there, each the first of these variables that is set. They belong together: a file may
    /// be somebody else's, with a project that was copied from them, so an address from a file has its secret from the same file or
    /// has none.
    ///
    /// # Errors
    /// Those of [`Variables::get`], and an address from a file whose secret is in the environment alone.
    pub fn together(
        &self,
        addresses: &[&'static str],
        secrets: &[&'static str],
    ) -> Result<(Option<Variable>, Option<Variable>), String> {
        let address = self.get(addresses)?.filter(|address| !address.value.is_empty());
        let Some((address, path)) = address.as_ref().and_then(|address| match &address.stands {
            Stands::File(path) => Some((address, path)),
            Stands::Environment => None,
        }) else {
            return Ok((address, self.get(secrets)?));
        };
        let of_environment = self.first(secrets, Variables::in_environment)?;
        let of_file = self.first(secrets, Variables::in_file)?;
        let secret = match (of_environment, of_file) {
            // One that is set to nothing says that there is none.
            (Some(none), _) if none.value.is_empty() => Some(none),
            (_, Some(of_file)) => Some(of_file),
            (Some(Variable { name, .. }), None) => {
                return Err(format!(
                    "{} stands in `{}`, and {name} in the environment: that key is not sent to an address from a file, which may be \
                     somebody else's. If the address is right, put it into the environment as well (export {}=...), or the key into \
                     that file; else remove it from the file",
                    address.name,
                    path.display(),
                    address.name
                ));
            }
            (None, None) => None,
        };
        Ok((Some(address.clone()), secret))
    }

    fn first(
        &self,
        names: &[&'static str],
        of: fn(&Self, &'static str) -> Result<Option<Variable>, String>,
    ) -> Result<Option<Variable>, String> {
        names.iter().find_map(|name| of(self, name).transpose()).transpose()
    }

    fn in_environment(&self, name: &'static str) -> Result<Option<Variable>, String> {
        match (self.environment)(name) {
            Ok(value) => Ok(Some(Variable { name, value: value.trim().to_owned(), stands: Stands::Environment })),
            Err(VarError::NotUnicode(_)) => Err(format!("the environment variable {name} is not text (UTF-8)")),
            Err(VarError::NotPresent) => Ok(None),
        }
    }

    fn in_file(&self, name: &'static str) -> Result<Option<Variable>, String> {
        let Some((path, text)) = &self.file else { return Ok(None) };
        let mut found = None;
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            let line = line.strip_prefix("export ").unwrap_or(line);
            if let Some((key, value)) = line.split_once('=')
                && key.trim() == name
            {
                let open = || format!("{}, line {}: the quotes of {name} are not closed", path.display(), i + 1);
                // The last one counts, as in a shell.
                let value = unquoted(value.trim()).ok_or_else(open)?;
                found = Some(Variable { name, value, stands: Stands::File(path.clone()) });
            }
        }
        Ok(found)
    }
}

/// Why a file is not to be trusted as this user's own, if it is not: somebody else owns it or can write it.
#[cfg(unix)]
pub(crate) fn why_not_own(about: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    of_another(about.uid(), about.gid(), about.mode(), rustix::process::geteuid().as_raw())
}

/// Systems without owners have nothing to tell.
#[cfg(not(unix))]
pub(crate) fn why_not_own(_: &Metadata) -> Option<String> {
    None
}

/// The same by owner, group and mode, for the user `me`. What root owns is the system's.
#[cfg(unix)]
fn of_another(owner: u32, group: u32, mode: u32, me: u32) -> Option<String> {
    // Many systems give every user a group of the same number with nobody else in it, and let it write.
    let others = if group == me && me != 0 { 0o002 } else { 0o022 };
    match (owner == me || owner == 0, mode & others) {
        (false, _) => Some(format!("it belongs to another user (id {owner})")),
        (true, 0) => None,
        (true, _) => Some(format!("others can write it (mode {:03o}); chmod go-w takes that back", mode & 0o777)),
    }
}

/// A value without its quotes and without the comment after it; `None` where quotes are not closed.
fn unquoted(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        return rest.split_once('\'').map(|(value, _)| value.to_owned());
    }
    let Some(rest) = value.strip_prefix('"') else {
        let bare = if value.starts_with('#') { "" } else { value.split(" #").next().unwrap_or(value) };
        return Some(bare.trim_end().to_owned());
    };
    let mut out = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Folders, the lower of them with the path to it, and what their `.env` say.
    fn folders() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        (folder, deep)
    }

    fn put(folder: &Path, text: &str) {
        std::fs::write(folder.join(".env"), text).unwrap();
        allow(folder, 0o600);
    }

    fn allow(folder: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.join(".env"), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// An environment with a key and nothing else.
    fn with_key(name: &str) -> Result<String, VarError> {
        if name == "KEY" { Ok(" from-the-shell ".into()) } else { Err(VarError::NotPresent) }
    }

    fn empty(_: &str) -> Result<String, VarError> {
        Err(VarError::NotPresent)
    }

    fn value(found: Result<Option<Variable>, String>) -> Result<Option<String>, String> {
        found.map(|found| found.map(|variable| variable.value))
    }

    #[test]
    fn the_nearest_file_upwards_is_read() {
        let (folder, deep) = folders();
        let lines = "# keys\nexport ONE=1\nTWO = 'two # and' # a comment\nTHREE=\"th\\\"ree\" \nFOUR=4#4 # four\nONE=one\nFIVE=\"open\n";
        put(folder.path(), lines);
        let read = |name: &'static str| value(Variables::of(empty, &deep).unwrap().get(&[name]));
        assert_eq!(read("ONE"), Ok(Some("one".into())));
        assert_eq!(read("TWO"), Ok(Some("two # and".into())));
        assert_eq!(read("THREE"), Ok(Some("th\"ree".into())));
        assert_eq!(read("FOUR"), Ok(Some("4#4".into())));
        assert_eq!(read("SIX"), Ok(None));
        let error = read("FIVE").unwrap_err();
        assert!(error.contains("line 7") && !error.contains("open"), "{error}");
        put(&deep, "TWO=nearer\n");
        assert_eq!(read("TWO"), Ok(Some("nearer".into())));
        assert_eq!(read("ONE"), Ok(None), "only the nearest file counts");
    }

    #[test]
    fn a_key_goes_with_the_address_that_it_stands_beside() {
        let (_folder, deep) = folders();
        let together = |environment: fn(&str) -> Result<String, VarError>| {
            let found = Variables::of(environment, &deep).unwrap().together(&["BASE"], &["KEY", "OTHER_KEY"]);
            found.map(|(base, key)| [base, key].map(|found| found.map_or(String::new(), |found| found.value)))
        };
        let both = |base: &str, key: &str| Ok([base.to_owned(), key.to_owned()]);
        put(&deep, "KEY=from-the-file\n");
        assert_eq!(together(with_key), both("", "from-the-shell"));
        assert_eq!(together(empty), both("", "from-the-file"));
        put(&deep, "BASE=http://there\nKEY=from-the-file\n");
        assert_eq!(together(with_key), both("http://there", "from-the-file"));
        put(&deep, "BASE=http://there\nOTHER_KEY=other\n");
        assert_eq!(together(with_key), both("http://there", "other"));
        put(&deep, "BASE=\nKEY=from-the-file\n");
        assert_eq!(together(with_key), both("", "from-the-shell"));
        put(&deep, "BASE=http://there\n");
        assert_eq!(together(empty), both("http://there", ""));
        let none = |name: &str| if name == "KEY" { Ok(String::new()) } else { Err(VarError::NotPresent) };
        assert_eq!(together(none), both("http://there", ""));
        let error = together(with_key).unwrap_err();
        let file = deep.join(".env").display().to_string();
        assert!(error.contains(&file) && error.contains("KEY in the environment"), "{error}");
        assert!(error.contains("export BASE=") && !error.contains("from-the-shell"), "{error}");
        // The user's own address takes whatever key there is.
        let own = |name: &str| if name == "BASE" { Ok("http://own".into()) } else { Err(VarError::NotPresent) };
        put(&deep, "BASE=http://there\nKEY=from-the-file\n");
        assert_eq!(together(own), both("http://own", "from-the-file"));
    }

    #[test]
    fn a_file_that_others_can_write_is_passed_over() {
        let (folder, deep) = folders();
        put(folder.path(), "ONE=above\n");
        put(&deep, "ONE=near\n");
        for (mode, found) in [(0o600, "near"), (0o644, "near"), (0o646, "above"), (0o666, "above")] {
            allow(&deep, mode);
            let variables = Variables::of(empty, &deep).unwrap();
            assert_eq!(value(variables.get(&["ONE"])), Ok(Some(found.into())), "{mode:o}");
            let told = variables.ignored.join("\n");
            let named = told.contains(&deep.join(".env").display().to_string()) && told.contains("chmod");
            assert_eq!(named, found == "above", "{mode:o}: {told}");
        }
        for (owner, group, mode, me, own) in [
            (7, 7, 0o600, 7, true),
            (7, 7, 0o664, 7, true),
            (7, 9, 0o644, 7, true),
            (7, 9, 0o664, 7, false),
            (7, 7, 0o666, 7, false),
            (0, 0, 0o644, 7, true),
            (0, 0, 0o600, 0, true),
            (0, 0, 0o664, 0, false),
            (7, 7, 0o600, 0, false),
            (8, 7, 0o660, 7, false),
        ] {
            assert_eq!(of_another(owner, group, mode, me).is_none(), own, "{owner} {group} {mode:o} {me}");
        }
    }
}
