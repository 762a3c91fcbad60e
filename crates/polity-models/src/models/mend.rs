//! Repairs the syntax of a reply that is almost JSON, but never its content.
//!
//! Text around the object is dropped, and the object goes through `jsonrepair-rs`. That crate also completes truncated text with a
//! made-up end, so a reply is first scanned here: one that may have been cut inside a value is not repaired.

use super::strict_json::parsed;
use serde_json::Value as Json;

/// Maximum bytes of a repaired object. The crate's worst-case time is quadratic.
const LONGEST: usize = 16_384;
/// Maximum nesting of a repaired object.
const DEEPEST: usize = 64;
/// Quotes and emphasis that may surround a word or number.
const AROUND: &[char] = &['"', '\'', '`', '*', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

/// The single object (or list, if `open` is `[`) in a reply, as JSON. The error says why there is none.
///
/// - Text around it is dropped, unless it contains brackets too: then it is unclear which object is meant.
/// - A reply may lack its final braces. It may not end inside a text, a number, a word or a list: content would be missing. A number is
///   complete if a space or line break follows it.
/// - An invalid number (`1e`, `-`, `007`, `1/2`) and dots in place of values are not repaired.
pub(super) fn json(text: &str, open: char) -> Result<Json, String> {
    let brackets: &[char] = if open == '[' { &['{', '}', '[', ']'] } else { &['{', '}'] };
    // The end of a fence shows that the text before it was not cut.
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

/// A word without surrounding quotes, emphasis, fence and full stop.
pub(super) fn word(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")?.split_once('\n'));
    let around = |c: char| c.is_whitespace() || AROUND.contains(&c);
    let text = fenced.map_or(text, |(_, inside)| inside).trim_matches(around);
    text.strip_suffix('.').unwrap_or(text).trim_matches(around)
}

/// A decimal number; digits may be missing on one side of the point only.
pub(super) fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let leading_zero = digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    let spelt = digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if leading_zero || !spelt { None } else { text.parse().ok() }
}

/// The state of the scan.
struct Scan {
    /// Expected closing brackets.
    open: Vec<char>,
    /// The last token.
    last: Last,
    /// Whether quotes or words occur in odd places, so that text borders are uncertain.
    odd: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// An opening bracket, a comma or a colon: a value may follow.
    Before,
    /// A quoted text, or a closing bracket.
    Closed,
    /// A number, or `true`, `false` or `null` in any language.
    Whole,
    /// A word that may continue.
    Word,
}

/// Length of the object or list at the start of `text`: to its last bracket, or to the end if only braces are missing.
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

/// The quotes that may end a text starting with `c`, if any. Elsewhere single quotes are apostrophes.
fn quotes(c: char, last: Last) -> Option<&'static [char]> {
    match c {
        '"' => Some(&['"']),
        '\'' | '`' if last == Last::Before => Some(if c == '`' { &['`'] } else { &['\''] }),
        '\u{201c}' | '\u{201d}' => Some(&['\u{201c}', '\u{201d}']),
        '\u{2018}' | '\u{2019}' if last == Last::Before => Some(&['\u{2018}', '\u{2019}']),
        _ => None,
    }
}

/// Length of the quoted text at the start of `text`; `None` if it does not end.
fn quoted(text: &str, quotes: &[char]) -> Option<usize> {
    let mut escaped = false;
    let (at, c) = text.char_indices().skip(1).find(|(_, c)| {
        let ends = !escaped && quotes.contains(c);
        escaped = !escaped && *c == '\\';
        ends
    })?;
    Some(at + c.len_utf8())
}
