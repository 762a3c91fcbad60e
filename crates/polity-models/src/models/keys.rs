//! API keys and addresses of providers, from the environment or else the nearest `.env`. A key is never shown.

pub use super::secret::Secret;

use std::env::VarError;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes read of a `.env`.
const LONGEST_FILE: u64 = 1 << 20;

/// Where a variable was found.
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

/// A variable that is set. Its value may be a key, so it cannot be displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value, trimmed.
    pub value: String,
    /// Where it was found.
    pub stands: Stands,
}

/// The variables with addresses and keys, from the environment and the nearest `.env` owned by the user.
pub struct Variables {
    environment: fn(&str) -> Result<String, VarError>,
    /// The nearest `.env` with its text.
    file: Option<(PathBuf, String)>,
    /// Every skipped `.env`, with the reason, one sentence each.
    pub ignored: Vec<String>,
}

impl Variables {
    /// Reads those of this process: the environment, and the nearest `.env` from the current folder upwards.
    ///
    /// # Errors
    /// An unreadable file.
    pub fn here() -> Result<Self, String> {
        match std::env::current_dir() {
            Ok(folder) => Variables::of(|name| std::env::var(name), &folder),
            // A deleted folder has no file in it.
            Err(_) => Ok(Variables { environment: |name| std::env::var(name), file: None, ignored: Vec::new() }),
        }
    }

    /// Reads those of an environment, and of the nearest `.env` from a folder upwards. Whoever can write such a file decides where a key
    /// is sent, so files that others own or can write are skipped.
    fn of(environment: fn(&str) -> Result<String, VarError>, folder: &Path) -> Result<Self, String> {
        let mut variables = Variables { environment, file: None, ignored: Vec::new() };
        for path in folder.ancestors().map(|folder| folder.join(".env")).filter(|path| path.is_file()) {
            let unreadable = |error: io::Error| format!("{} cannot be read: {error}", path.display());
            let file = File::open(&path).map_err(unreadable)?;
            if let Some(why) = polity_store::owner::why_not_own(&file.metadata().map_err(unreadable)?) {
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

    /// Returns the first of these variables that is set. For each, the environment comes before the file.
    ///
    /// # Errors
    /// Name, file and line of a value that is not text or has an unclosed quote; never the value.
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

    /// Returns an address and its secret, each the first of these variables that is set. They belong together: a file may have been
    /// copied with somebody else's project, so an address from a file uses a secret from the same file or none.
    ///
    /// # Errors
    /// Those of [`Variables::get`], and an address from a file whose secret is only in the environment.
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
            // An empty value means none.
            (Some(none), _) if none.value.is_empty() => Some(none),
            (_, Some(of_file)) => Some(of_file),
            (Some(Variable { name, .. }), None) => {
                return Err(format!(
                    "{} is set in `{}`, but {name} in the environment. That key is not sent to an address from a file, \
                     because the file may be somebody else's. If the address is right, set it in the environment as \
                     well (export {}=...), or put the key into that file; otherwise remove the address from the file",
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

/// A value without its quotes and its trailing comment; `None` if a quote is unclosed.
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

    /// Nested folders (with the path to the inner one) and the content of their `.env`.
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

    /// An environment with only a key.
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
        // The user's own address accepts any key.
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
    }
}
