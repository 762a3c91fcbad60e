//! Mends the form of a reply that is almost JSON, and never what it says.
//!
//! What a model wrote around its object is left out, and the text of the object itself goes through `jsonrepair-rs`. That crate also
//! closes what was cut, and makes up an end for it. So a reply is first looked through here: what may have been cut in the middle of a
//! value is not mended at all.

use super::reply::parsed;
use serde_json::Value as Json;

/// Bytes of an object that are mended at most. The crate takes a time that grows with their square in the worst case.
const LONGEST: usize = 16_384;
/// Objects and lists within each other that are mended at most.
const DEEPEST: usize = 64;
/// What may stand around a word or a number without being a part of it: quotes and emphasis.
const AROUND: &[char] = &['"', '\'', '`', '*', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

/// The one object (or list, if `open` is `[`) in a reply, as JSON. The error says why there is none that could be taken.
///
/// - Text around it is left out, unless there are brackets in it, too: then nobody knows which object is meant.
/// - A reply may lack the braces at its end. It may not end within a text, a number, a word or a list: what is missing there is not
///   form. A number is over where a space or a line break follows it.
/// - A number that is none (`1e`, `-`, `007`, `1/2`) and dots in the place of values are not mended.
pub(super) fn json(text: &str, open: char) -> Result<Json, String> {
    let brackets: &[char] = if open == '[' { &['{', '}', '[', ']'] } else { &['{', '}'] };
    // A fence's end: what stands before it was not cut.
    let text = text.trim_end().strip_suffix("```").unwrap_or(text);
    let start = text.find(open).ok_or("there is no JSON in it")?;
    let (before, rest) = text.split_at(start);
    let (body, after) = rest.split_at(end(rest)?);
    if before.contains(brackets)
        || after.contains(brackets)
        || before.matches('[').count() != before.matches(']').count()
    {
        return Err("there are brackets beside the JSON".into());
    }
    if let Ok(json) = parsed(body) {
        return Ok(json);
    }
    if body.len() > LONGEST {
        return Err(format!("what is longer than {LONGEST} bytes is not mended"));
    }
    let mended = jsonrepair_rs::jsonrepair(body).map_err(|error| error.to_string())?;
    parsed(&mended).map_err(|error| error.to_string())
}

/// A word without quotes, emphasis, a fence and a full stop around it.
pub(super) fn word(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")?.split_once('\n'));
    let around = |c: char| c.is_whitespace() || AROUND.contains(&c);
    let text = fenced.map_or(text, |(_, inside)| inside).trim_matches(around);
    text.strip_suffix('.').unwrap_or(text).trim_matches(around)
}

/// A decimal number, of which only the digits on one side of the point may be missing.
pub(super) fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let leading_zero = digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    let spelt = digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if leading_zero || !spelt { None } else { text.parse().ok() }
}

/// What is known of the text so far.
struct Scan {
    /// Brackets that are to come.
    open: Vec<char>,
    /// What the last thing was.
    last: Last,
    /// Whether quotes and words stand where none should: then it is not certain what is within a text.
    odd: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// A bracket that opens, a comma or a colon: a value may follow.
    Before,
    /// A text in quotes, or a bracket that closes.
    Closed,
    /// A number, or `true`, `false` or `null` in any language.
    Whole,
    /// A word that may go on.
    Word,
}

/// Length of the object or list that `text` begins with: to its last bracket, or to the end where only braces are missing.
fn end(text: &str) -> Result<usize, String> {
    let mut scan = Scan { open: Vec::new(), last: Last::Before, odd: false };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let mut length = c.len_utf8();
        match c {
            '{' | '[' => {
                scan.open.push(if c == '{' { '}' } else { ']' });
                scan.last = Last::Before;
                if scan.open.len() > DEEPEST {
                    return Err(format!("it is deeper than {DEEPEST} brackets"));
                }
            }
            '}' | ']' => {
                if scan.open.pop() != Some(c) {
                    return Err("its brackets do not match".into());
                }
                if scan.open.is_empty() {
                    return Ok(at + length);
                }
                scan.last = Last::Closed;
            }
            ',' | ':' => scan.last = Last::Before,
            '/' if rest.starts_with("//") => length = rest.find('\n').unwrap_or(rest.len()),
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => length = rest.find("*/").ok_or("it ends within a comment")? + 2,
            c if c.is_whitespace() => {}
            c if quotes(c, scan.last).is_some() => {
                let quotes = quotes(c, scan.last).unwrap_or_default();
                length = quoted(rest, quotes).ok_or("it ends within a text")?;
                scan.odd |= scan.last != Last::Before;
                scan.last = Last::Closed;
            }
            _ => {
                length = rest.find(|c: char| c.is_whitespace() || ",:{}[]\"".contains(c)).unwrap_or(rest.len());
                let word = &rest[..length];
                let numeric = word.starts_with(|c: char| c.is_ascii_digit() || "+-.\u{2026}".contains(c));
                if numeric && number(word).is_none() {
                    return Err(format!("`{}` is no value", word.chars().take(20).collect::<String>()));
                }
                if length == rest.len() {
                    return Err("it ends within a number or a word".into());
                }
                scan.odd |= scan.last != Last::Before;
                let keyword = ["true", "false", "null", "none"].iter().any(|known| known.eq_ignore_ascii_case(word));
                scan.last = if numeric || keyword { Last::Whole } else { Last::Word };
            }
        }
        rest = &rest[length..];
    }
    match scan {
        Scan { last: Last::Word, .. } => Err("it ends within a word".into()),
        Scan { odd: true, .. } => Err("its end is missing, and its quotes are not certain".into()),
        Scan { open, .. } if open.contains(&']') => Err("it ends within a list".into()),
        _ => Ok(text.len()),
    }
}

/// The quotes that end a text that begins with `c`, if it does. Single ones are apostrophes elsewhere.
fn quotes(c: char, last: Last) -> Option<&'static [char]> {
    match c {
        '"' => Some(&['"']),
        '\'' | '`' if last == Last::Before => Some(if c == '`' { &['`'] } else { &['\''] }),
        '\u{201c}' | '\u{201d}' => Some(&['\u{201c}', '\u{201d}']),
        '\u{2018}' | '\u{2019}' if last == Last::Before => Some(&['\u{2018}', '\u{2019}']),
        _ => None,
    }
}

/// Length of the text in quotes that `text` begins with; `None` if it does not end.
fn quoted(text: &str, quotes: &[char]) -> Option<usize> {
    let mut escaped = false;
    let (at, c) = text.char_indices().skip(1).find(|(_, c)| {
        let ends = !escaped && quotes.contains(c);
        escaped = !escaped && *c == '\\';
        ends
    })?;
    Some(at + c.len_utf8())
}
