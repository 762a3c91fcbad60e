//! The tool `apply_patch`: unified diffs, all of one or nothing.

use super::tree::{Entry, Tree, plain};
use super::{Done, Shared, Trouble, Version};

/// The path in a header for a file that does not exist.
const NOTHING: &str = "/dev/null";
/// What the last line of a file is followed by in a patch if it has no newline.
const NO_NEWLINE: &str = "\\ No newline";

/// The changes of one file.
#[derive(Debug, PartialEq, Eq)]
struct FilePatch {
    /// None if the patch creates the file.
    old: Option<String>,
    /// None if the patch deletes the file.
    new: Option<String>,
    hunks: Vec<Hunk>,
}

/// A place of a file that changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The line it begins at, from 1; 0 for an empty file.
    at: usize,
    /// Lines that are expected, and those that replace them, each with its newline.
    old: Vec<String>,
    new: Vec<String>,
}

/// The path of a header line, without the `a/` or `b/` of git. None for `/dev/null`.
fn header_path(rest: &str, prefix: &str) -> Result<Option<String>, String> {
    let path = rest.split('\t').next().unwrap_or_default().trim_end();
    if path == NOTHING {
        return Ok(None);
    }
    let path = plain(path.strip_prefix(prefix).unwrap_or(path))?;
    if path.is_empty() { Err("a header of the patch names no file".into()) } else { Ok(Some(path)) }
}

/// `12,5` is (12, 5), and `12` is (12, 1).
fn range(text: &str) -> Option<(usize, usize)> {
    let (at, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((at.parse().ok()?, count.parse().ok()?))
}

/// `@@ -1,2 +3,4 @@ ...`: the old line and the number of old and new lines.
fn hunk_header(line: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let ((at, old), (_, new)) = (range(old)?, range(new)?);
    Some((at, old, new))
}

/// Reads a hunk behind its header, and returns how many lines it took.
fn hunk(lines: &[&str], at: usize, old: usize, new: usize) -> Result<(Hunk, usize), String> {
    let mut hunk = Hunk { at, ..Hunk::default() };
    let mut taken = 0;
    while hunk.old.len() < old || hunk.new.len() < new {
        let Some(line) = lines.get(taken) else { break };
        let (mark, text) =
            if line.is_empty() { (' ', "") } else { (line.as_bytes()[0] as char, line.get(1..).unwrap_or("")) };
        let text = format!("{text}\n");
        match mark {
            ' ' => {
                hunk.old.push(text.clone());
                hunk.new.push(text);
            }
            '-' => hunk.old.push(text),
            '+' => hunk.new.push(text),
            '\\' => {}
            _ => break,
        }
        taken += 1;
        if lines.get(taken).is_some_and(|next| next.starts_with(NO_NEWLINE)) {
            let sides = [(mark != '+', &mut hunk.old), (mark != '-', &mut hunk.new)];
            for (_, side) in sides.into_iter().filter(|(applies, _)| *applies) {
                if let Some(last) = side.last_mut() {
                    last.pop();
                }
            }
            taken += 1;
        }
    }
    if (hunk.old.len(), hunk.new.len()) != (old, new) {
        let (has_old, has_new) = (hunk.old.len(), hunk.new.len());
        return Err(format!(
            "its header says {old} old and {new} new lines, but it has {has_old} and {has_new}; each line must begin with ` `, `-` or `+`"
        ));
    }
    if let Some(next) = lines
        .get(taken)
        .filter(|next| next.starts_with([' ', '-', '+']) && !next.starts_with("--- ") && **next != "-- ")
    {
        return Err(format!(
            "it has more lines than its header says ({old} old and {new} new): the next is `{}`",
            next.escape_debug()
        ));
    }
    Ok((hunk, taken))
}

/// Refuses what a patch may say and this tool cannot do.
fn refuse(line: &str) -> Result<(), &'static str> {
    let mode = line.strip_prefix("new file mode ").is_some_and(|mode| mode != "100644");
    if mode || line.starts_with("old mode ") || line.starts_with("new mode ") {
        return Err("modes cannot be patched; use the shell");
    }
    let renames = ["rename from ", "copy from ", "GIT binary patch", "Binary files "];
    if renames.iter().any(|start| line.starts_with(start)) {
        return Err("renames, copies and binary files cannot be patched; use the shell");
    }
    Ok(())
}

/// Refuses a header of git that changes no line. `begun`: its line.
fn unchanged(begun: Option<usize>) -> Result<(), String> {
    match begun {
        Some(at) => Err(format!(
            "line {} of the patch names a file of which no line changes; use write_file or the shell",
            at + 1
        )),
        None => Ok(()),
    }
}

/// Reads a patch.
fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let lines: Vec<&str> = patch.split('\n').collect();
    // The text behind the last newline is no line.
    let lines = if lines.last() == Some(&"") { &lines[..lines.len() - 1] } else { &lines[..] };
    let mut files: Vec<FilePatch> = Vec::new();
    let mut at = 0;
    // The line of a header of git for which no file has come yet.
    let mut begun = None;
    while at < lines.len() {
        let line = lines[at];
        refuse(line).map_err(|why| format!("line {} of the patch, `{}`: {why}", at + 1, line.escape_debug()))?;
        if line.starts_with("diff --git ") {
            unchanged(begun)?;
            begun = Some(at);
        }
        if let Some((start, old, new)) = hunk_header(line) {
            let number = files.last().map_or(0, |file| file.hunks.len()) + 1;
            let file = files.last_mut().ok_or_else(|| {
                format!("line {} of the patch is a hunk, but no `--- path` and `+++ path` came before it", at + 1)
            })?;
            let name = file.name().to_owned();
            let (hunk, taken) = hunk(&lines[at + 1..], start, old, new)
                .map_err(|why| format!("hunk {number} of `{name}` (line {} of the patch): {why}", at + 1))?;
            file.hunks.push(hunk);
            at += 1 + taken;
        } else if let (Some(old), Some(new)) =
            (line.strip_prefix("--- "), lines.get(at + 1).and_then(|next| next.strip_prefix("+++ ")))
        {
            let (old, new) = (header_path(old, "a/")?, header_path(new, "b/")?);
            if old.is_none() && new.is_none() {
                return Err(format!("line {} of the patch: both paths are {NOTHING}", at + 1));
            }
            if let (Some(old), Some(new)) = (&old, &new)
                && old != new
            {
                return Err(format!(
                    "the patch changes `{old}` to `{new}`: files cannot be renamed by it; use the shell"
                ));
            }
            files.push(FilePatch { old, new, hunks: Vec::new() });
            begun = None;
            at += 2;
        } else if line.starts_with("@@") {
            return Err(format!(
                "line {} of the patch, `{}`, is no header of a hunk like `@@ -1,2 +1,3 @@`",
                at + 1,
                line
            ));
        } else {
            at += 1;
        }
    }
    unchanged(begun)?;
    match files.iter().find(|file| file.hunks.is_empty()) {
        _ if files.is_empty() => {
            Err("the patch has no file: it must have lines `--- path` and `+++ path`, and hunks".into())
        }
        Some(empty) => Err(format!("the patch has no hunk for `{}`", empty.name())),
        None => Ok(files),
    }
}

impl FilePatch {
    fn name(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// Applies the hunks, in order, each at the place nearest to where it says.
    fn apply(&self, text: &str) -> Result<String, String> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut result = String::new();
        let mut done = 0;
        // How far hunks were found from where they say.
        let mut shift = 0_isize;
        for (i, hunk) in self.hunks.iter().enumerate() {
            // A hunk without old lines says the line behind which it is to be put.
            let said = if hunk.old.is_empty() { hunk.at } else { hunk.at.saturating_sub(1) };
            let expected = said.saturating_add_signed(shift);
            let fits = |at: &usize| lines.get(*at..*at + hunk.old.len()).is_some_and(|here| here.iter().eq(&hunk.old));
            let last = lines.len().saturating_sub(hunk.old.len());
            let found = (done..=last).filter(fits).min_by_key(|at| at.abs_diff(expected));
            let found = if hunk.old.is_empty() { found.filter(|at| *at == expected) } else { found };
            let at = found.ok_or_else(|| {
                format!("hunk {} of `{}` {}", i + 1, self.name(), misfit(&lines, hunk, expected, done))
            })?;
            shift = at.cast_signed() - said.cast_signed();
            result.extend(lines[done..at].iter().copied());
            result.extend(hunk.new.iter().map(String::as_str));
            done = at + hunk.old.len();
        }
        result.extend(lines[done..].iter().copied());
        Ok(result)
    }
}

/// Says why a hunk does not apply.
fn misfit(lines: &[&str], hunk: &Hunk, expected: usize, done: usize) -> String {
    if hunk.old.is_empty() {
        return format!("would be put behind line {expected}, but the file has {} lines", lines.len());
    }
    // The place near which the most lines fit from the first one on.
    let agree = |at: usize| hunk.old.iter().zip(&lines[at.min(lines.len())..]).take_while(|(a, b)| a == *b).count();
    let best = (done..lines.len()).max_by_key(|at| (agree(*at), std::cmp::Reverse(at.abs_diff(expected))));
    let best = best.unwrap_or(expected);
    let good = agree(best);
    let wanted = hunk.old.get(good).map_or("", String::as_str).escape_debug().to_string();
    let there =
        lines.get(best + good).map_or("the end of the file".into(), |line| format!("`{}`", line.escape_debug()));
    format!("does not apply: at line {} it expects `{wanted}`, and there is {there}", best + good + 1)
}

impl Shared {
    /// The tool `apply_patch`.
    pub(super) fn apply_patch(&self, version: Version, patch: &str) -> Result<Done, Trouble> {
        let mut tree = self.tree(version)?;
        let mut texts: Vec<(String, String)> = Vec::new();
        let mut done = Vec::new();
        let wrap = |why: String| Trouble::Told(format!("{why}. Nothing was changed."));
        for file in parse(patch).map_err(wrap)? {
            let at = self.path(&tree, file.name())?;
            match (&file.old, &file.new) {
                (None, _) => {
                    if tree.0.contains_key(&at) {
                        return Err(wrap(format!("the patch creates `{}`, which is there already", file.name())));
                    }
                    let text = file.apply("").map_err(wrap)?;
                    self.patched(&mut tree, &mut texts, &at, text).map_err(wrap)?;
                    done.push(format!("created `{at}`"));
                }
                (Some(_), new) => {
                    // A file that this patch has changed before is not in the store yet.
                    let changed = texts.iter().rfind(|(path, _)| *path == at).map(|(_, text)| text.clone());
                    let before = match changed.filter(|_| tree.0.contains_key(&at)) {
                        Some(text) => text,
                        None => match self.text_file(&tree, file.name()) {
                            Err(Trouble::Told(why)) => return Err(wrap(why)),
                            other => other?.1,
                        },
                    };
                    let text = file.apply(&before).map_err(wrap)?;
                    if new.is_some() {
                        self.patched(&mut tree, &mut texts, &at, text).map_err(wrap)?;
                        done.push(format!("changed `{at}`"));
                    } else if text.is_empty() {
                        self.delete(&mut tree, file.name(), &at);
                        done.push(format!("deleted `{at}`"));
                    } else {
                        let name = file.name();
                        return Err(wrap(format!("the patch deletes `{name}`, but not all of its lines")));
                    }
                }
            }
        }
        let objects = texts.into_iter().map(|(_, text)| text.into_bytes()).collect();
        self.moved(version, &tree, objects, format!("Patched: {}.", done.join(", ")))
    }

    fn patched(
        &self,
        tree: &mut Tree,
        texts: &mut Vec<(String, String)>,
        at: &str,
        text: String,
    ) -> Result<(), String> {
        Shared::put(tree, at, &text, &mut Vec::new())?;
        texts.push((at.to_owned(), text));
        Ok(())
    }

    /// Removes a file: the link to it where the path is one.
    fn delete(&self, tree: &mut Tree, path: &str, at: &str) {
        let link = matches!(tree.0.get(path), Some(Entry::Link(_)));
        tree.0.remove(if link { path } else { at });
    }
}
