//! Keys and addresses of providers: from the environment, else from the nearest `.env`. A key is never shown.

use std::env::VarError;
use std::fmt;
use std::path::Path;

/// Shorter keys are stand-ins (`none`, `EMPTY`, `ollama`): there is nothing to hide, and as a word they may stand in any text.
const SHORTEST: usize = 12;

/// A key or password. Shown in any way it is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text from outside without the secret: servers and gateways repeat what they were sent.
    #[must_use]
    pub fn hidden_in(&self, text: String) -> String {
        match self.0.len() >= SHORTEST && text.contains(&self.0) {
            true => text.replace(&self.0, "***"),
            false => text,
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The value of a variable: of the environment, which wins, else of the nearest `.env` from the current folder upwards.
pub fn from_environment(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value.trim().to_owned())),
        Err(VarError::NotUnicode(_)) => Err(format!("the environment variable {name} is not text (UTF-8)")),
        Err(VarError::NotPresent) => match std::env::current_dir() {
            Ok(folder) => from_file(&folder, name),
            // A folder that is gone has no file in it.
            Err(_) => Ok(None),
        },
    }
}

/// The value of a variable in the nearest `.env` from a folder upwards. An error names file and line, never a value.
pub fn from_file(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let Some(path) = folder.ancestors().map(|folder| folder.join(".env")).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let text = std::fs::read(&path).map_err(|error| format!("{} can not be read: {error}", path.display()))?;
    let mut found = None;
    for (i, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if let Some((key, value)) = line.split_once('=')
            && key.trim() == name
        {
            // The last one counts, as in a shell.
            found =
                Some(unquoted(value.trim()).ok_or_else(|| {
                    format!("{}, line {}: the quotes of {name} are not closed", path.display(), i + 1)
                })?);
        }
    }
    Ok(found)
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

    #[test]
    fn a_secret_is_never_shown() {
        let key = Secret::new("sk-canary-0123456789");
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "*** *** Some(***)");
        assert_eq!(key.hidden_in("wrong key sk-canary-0123456789!".into()), "wrong key ***!");
        assert_eq!(Secret::new("none").hidden_in("none of them".into()), "none of them");
    }

    #[test]
    fn the_nearest_file_upwards_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let lines = "# keys\nexport ONE=1\nTWO = 'two # and' # a comment\nTHREE=\"th\\\"ree\" \nFOUR=4#4 # four\nONE=one\nFIVE=\"open\n";
        std::fs::write(folder.path().join(".env"), lines).unwrap();
        let read = |name: &str| from_file(&deep, name);
        assert_eq!(read("ONE"), Ok(Some("one".into())));
        assert_eq!(read("TWO"), Ok(Some("two # and".into())));
        assert_eq!(read("THREE"), Ok(Some("th\"ree".into())));
        assert_eq!(read("FOUR"), Ok(Some("4#4".into())));
        assert_eq!(read("SIX"), Ok(None));
        let error = read("FIVE").unwrap_err();
        assert!(error.contains("line 7") && !error.contains("open"), "{error}");
        std::fs::write(deep.join(".env"), "TWO=nearer\n").unwrap();
        assert_eq!(read("TWO"), Ok(Some("nearer".into())));
        assert_eq!(read("ONE"), Ok(None), "only the nearest file counts");
    }
}
