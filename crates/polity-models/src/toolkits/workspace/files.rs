//! The tools that work on the tree of files in this process: they need no sandbox, and touch nothing but the store.

use super::tree::{Entry, Tree, plain};
use super::{Done, Hash, Shared, Trouble, Version};
use regex::RegexBuilder;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Lines that a search shows.
const HITS: usize = 200;
/// Entries that a list shows.
const LISTED: usize = 500;
/// Characters of a line that are shown.
const WIDTH: usize = 500;
/// Bytes of a compiled pattern.
const PATTERN: usize = 1_000_000;
/// Similar lines that an edit shows.
const NEAR: usize = 3;
/// The least similarity of a line that is shown.
const SIMILAR: f64 = 0.6;

/// A line in the width that is shown.
fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{} [... line of {} characters]", &line[..end], line.chars().count()),
        None => line.to_owned(),
    }
}

/// The line of a byte offset, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Where a text is, each occurrence behind the one before.
fn occurrences(text: &str, wanted: &str) -> Vec<usize> {
    text.match_indices(wanted).map(|(at, _)| line_of(text, at)).collect()
}

/// How similar two lines are, from 0 to 1: the share of pairs of letters that they have in common.
fn similarity(a: &str, b: &str) -> f64 {
    let pairs = |line: &str| {
        let letters: Vec<char> = line.chars().filter(|c| !c.is_whitespace()).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect::<BTreeSet<(char, char)>>()
    };
    let (a, b) = (pairs(a), pairs(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    2.0 * a.intersection(&b).count() as f64 / (a.len() + b.len()) as f64
}

/// Says what in a text comes near to what was not found.
fn near(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let want: Vec<&str> = wanted.lines().map(str::trim).collect();
    let first = want.iter().position(|line| !line.is_empty()).unwrap_or(0);
    let last = want.iter().rposition(|line| !line.is_empty()).unwrap_or(0);
    let want = want.get(first..=last).unwrap_or_default();
    if let Some(at) = lines.windows(want.len().max(1)).position(|window| {
        window.iter().zip(want).all(|(line, wanted)| line.trim() == *wanted) && !want.iter().all(|line| line.is_empty())
    }) {
        let shown: Vec<String> = (at..at + want.len()).map(|i| format!("{}: {}", i + 1, cut(lines[i]))).collect();
        return format!("This differs from it only in spaces at the ends of lines:\n{}", shown.join("\n"));
    }
    let Some(wanted) = want.first() else { return String::new() };
    let mut similar: Vec<(usize, f64)> = lines.iter().map(|line| similarity(line, wanted)).enumerate().collect();
    similar.retain(|(_, similarity)| *similarity >= SIMILAR);
    similar.sort_by(|(i, a), (j, b)| b.total_cmp(a).then(i.cmp(j)));
    if similar.is_empty() {
        return "No line is like its first one.".into();
    }
    let shown: Vec<String> = similar.iter().take(NEAR).map(|(i, _)| format!("{}: {}", i + 1, cut(lines[*i]))).collect();
    format!("Lines like its first one:\n{}", shown.join("\n"))
}

impl Shared {
    /// The path that a call names, with links followed.
    pub(super) fn path(&self, tree: &Tree, path: &str) -> Result<String, Trouble> {
        let path = plain(path)?;
        Ok(tree.resolve(&path).map_err(|lost| lost.of(&path))?)
    }

    /// The path and the text of a file.
    pub(super) fn text_file(&self, tree: &Tree, path: &str) -> Result<(String, String), Trouble> {
        let at = self.path(tree, path)?;
        let (hash, size) = match tree.0.get(&at) {
            Some(Entry::File { hash, size, .. }) => (*hash, size),
            None if !at.is_empty() => return Err(Trouble::Told(self.no_file(tree, path, &at))),
            _ => return Err(Trouble::Told(format!("`{path}` is a folder"))),
        };
        let text = String::from_utf8(self.object(hash)?);
        let text =
            text.map_err(|_| Trouble::Told(format!("`{path}` is not UTF-8 text ({size} bytes); use Python for it")))?;
        Ok((at, text))
    }

    fn no_file(&self, tree: &Tree, path: &str, at: &str) -> String {
        let name = at.rsplit('/').next();
        let same = tree.0.iter().find(|(other, entry)| {
            matches!(entry, Entry::File { .. }) && other.rsplit('/').next() == name && other.as_str() != at
        });
        let meant = same.map(|(other, _)| format!(", did you mean `{other}`?")).unwrap_or_default();
        format!("there is no file `{path}`{meant}")
    }

    /// Puts texts at resolved paths, in memory only; what they need in the store is added to `objects`.
    pub(super) fn put(tree: &mut Tree, at: &str, text: &str, objects: &mut Vec<Vec<u8>>) -> Result<(), String> {
        tree.put(at, Hash::of(text.as_bytes()), text.len() as u64)?;
        objects.push(text.as_bytes().to_vec());
        Ok(())
    }

    /// A version with another tree.
    pub(super) fn moved(
        &self,
        version: Version,
        tree: &Tree,
        objects: Vec<Vec<u8>>,
        text: String,
    ) -> Result<Done, Trouble> {
        let tree = self.keep(tree, objects)?;
        Ok(Done { text, error: false, version: Version { tree, ..version } })
    }

    /// The tool `read_file`.
    pub(super) fn read_file(&self, version: Version, path: &str, from: u64, lines: u64) -> Result<Done, Trouble> {
        let (_, text) = self.text_file(&self.tree(version)?, path)?;
        let count = text.lines().count() as u64;
        let mut shown = String::new();
        let mut next = from;
        let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
        for line in text.lines().skip(skipped).take(usize::try_from(lines).unwrap_or(usize::MAX)) {
            if shown.len() > self.limits.shown {
                break;
            }
            let _ = writeln!(shown, "{next:>6}\t{}", cut(line));
            next += 1;
        }
        if count == 0 {
            shown = "(the file is empty)\n".into();
        } else if next == from {
            return Err(Trouble::Told(format!("`{path}` has {count} lines, and none from line {from} on")));
        } else if next <= count || from > 1 {
            let _ = writeln!(shown, "(lines {from} to {} of {count})", next - 1);
        }
        Ok(Done { text: shown, error: false, version })
    }

    /// The tool `write_file`.
    pub(super) fn write_file(&self, version: Version, path: &str, text: &str) -> Result<Done, Trouble> {
        let mut tree = self.tree(version)?;
        let at = self.path(&tree, path)?;
        let verb = if tree.0.contains_key(&at) { "Replaced" } else { "Created" };
        let mut objects = Vec::new();
        Shared::put(&mut tree, &at, text, &mut objects)?;
        let done = format!("{verb} `{at}`: {} lines, {} bytes.", text.lines().count(), text.len());
        self.moved(version, &tree, objects, done)
    }

    /// The tool `edit_file`.
    pub(super) fn edit_file(
        &self,
        version: Version,
        path: &str,
        old: &str,
        new: &str,
        all: bool,
    ) -> Result<Done, Trouble> {
        let mut tree = self.tree(version)?;
        let (at, text) = self.text_file(&tree, path)?;
        if old.is_empty() {
            return Err(Trouble::Told("`old` is empty; give the text to replace, or use write_file".into()));
        }
        let found = occurrences(&text, old);
        let lines = || found.iter().take(20).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match found.len() {
            0 => {
                let near = near(&text, old);
                return Err(Trouble::Told(format!("`{path}` does not have the old text; nothing was changed. {near}")));
            }
            1 => {}
            _ if all => {}
            many => {
                return Err(Trouble::Told(format!(
                    "`{path}` has the old text {many} times, at lines {}; nothing was changed. Give more lines around it, or set `all`",
                    lines()
                )));
            }
        }
        let mut objects = Vec::new();
        Shared::put(&mut tree, &at, &text.replace(old, new), &mut objects)?;
        let word = if found.len() == 1 { "line" } else { "lines" };
        let done = format!("Changed `{at}` at {word} {}.", lines());
        self.moved(version, &tree, objects, done)
    }

    /// The tool `search_files`.
    pub(super) fn search_files(&self, version: Version, pattern: &str, path: &str) -> Result<Done, Trouble> {
        let tree = self.tree(version)?;
        let pattern = RegexBuilder::new(pattern).size_limit(PATTERN).dfa_size_limit(10 * PATTERN).build();
        let pattern = pattern.map_err(|error| Trouble::Told(format!("the pattern cannot be used: {error}")))?;
        let at = self.path(&tree, path)?;
        if !at.is_empty() && !tree.0.contains_key(&at) {
            return Err(Trouble::Told(self.no_file(&tree, path, &at)));
        }
        let inside = format!("{at}/");
        let (mut shown, mut hits, mut skipped) = (String::new(), 0, 0);
        for (name, entry) in &tree.0 {
            let Entry::File { hash, .. } = entry else { continue };
            if !at.is_empty() && *name != at && !name.starts_with(&inside) {
                continue;
            }
            let Ok(text) = String::from_utf8(self.object(*hash)?) else {
                skipped += 1;
                continue;
            };
            for (i, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
                hits += 1;
                if hits <= HITS && shown.len() <= self.limits.shown {
                    let _ = writeln!(shown, "{name}:{}: {}", i + 1, cut(line));
                }
            }
        }
        let listed = shown.lines().count();
        if hits == 0 {
            shown = "No line matches.\n".into();
        } else if hits > listed {
            let _ = writeln!(shown, "(the first {listed} of {hits} lines; search for less, or in a folder)");
        }
        if skipped > 0 {
            let _ = writeln!(shown, "(files that are not UTF-8 text, not searched: {skipped})");
        }
        Ok(Done { text: shown, error: false, version })
    }

    /// The tool `list_files`.
    pub(super) fn list_files(&self, version: Version, path: &str, depth: u64) -> Result<Done, Trouble> {
        let tree = self.tree(version)?;
        let at = self.path(&tree, path)?;
        if !at.is_empty() && tree.0.get(&at) != Some(&Entry::Folder) {
            return Err(Trouble::Told(match tree.0.get(&at) {
                Some(_) => format!("`{path}` is a file, not a folder"),
                None => format!("there is no folder `{path}`"),
            }));
        }
        let inside = if at.is_empty() { String::new() } else { format!("{at}/") };
        let (mut shown, mut count, mut deeper) = (String::new(), 0, 0);
        for (name, entry) in &tree.0 {
            let Some(rest) = name.strip_prefix(&inside) else { continue };
            if rest.split('/').count() as u64 > depth {
                deeper += 1;
                continue;
            }
            count += 1;
            if count > LISTED {
                continue;
            }
            let _ = match entry {
                Entry::Folder => writeln!(shown, "{name}/"),
                Entry::File { size, executable, .. } => {
                    writeln!(shown, "{name} ({size} bytes{})", if *executable { ", executable" } else { "" })
                }
                Entry::Link(target) => writeln!(shown, "{name} -> {target}"),
            };
        }
        if count == 0 {
            shown = "(no files)\n".into();
        } else if count > LISTED {
            let _ = writeln!(shown, "(the first {LISTED} of {count} entries; list a folder)");
        }
        if deeper > 0 {
            let _ = writeln!(shown, "(deeper than {depth}: {deeper} more)");
        }
        Ok(Done { text: shown, error: false, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_matches_are_shown_with_their_lines() {
        let text = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n";
        assert!(near(text, "  def sub(a, b):\nreturn a - b").ends_with("4: def sub(a, b):\n5:     return a - b"));
        let shown = near(text, "def subtract(a, b):");
        assert!(shown.starts_with("Lines like its first one:\n4: def sub(a, b):"), "{shown}");
        assert_eq!(near(text, "import os"), "No line is like its first one.");
        assert_eq!(near("", "x"), "No line is like its first one.");
        assert!(!near(text, "\n\n").contains("differs"));
    }
}
