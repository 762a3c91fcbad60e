//! Makes texts from servers, models and files safe to show. Characters that control a terminal, reorder text or are invisible are escaped
//! as in Rust (`\u{202e}`): nothing is lost, and nothing is disguised.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

/// A text that is safe to show, with its line breaks.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    written(text, |c, before| c != '\n' && is_hidden(c, before), escape)
}

/// The same on one line.
#[must_use]
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    written(text, |c, before| c == '\n' || is_hidden(c, before), escape)
}

/// The same with the byte length kept, for excerpts with marked positions. Line ends of all kinds stay.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    let hidden = |c, before| !matches!(c, '\n' | '\r') && is_hidden(c, before);
    written(text, hidden, |c, out| out.extend(std::iter::repeat_n('?', c.len_utf8())))
}

/// JSON without hidden characters: the value is unchanged, since such characters occur only inside its texts.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    written(
        text,
        |c, _| c != '\n' && is_hidden(c, None),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// A number of things: `1 round`, `2 rounds`.
#[must_use]
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn escape(c: char, out: &mut String) {
    out.extend(c.escape_default());
}

/// The text with `hidden` characters (judged with the one before) replaced by `write`.
fn written(text: &str, hidden: impl Fn(char, Option<char>) -> bool, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    // Most texts are plain ASCII.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    for c in text.chars() {
        match hidden(c, before) {
            true => write(c, &mut out),
            false => out.push(c),
        }
        before = Some(c);
    }
    Cow::Owned(out)
}

/// Whether a character, given the one before, has an invisible effect. Tabs are visible.
fn is_hidden(c: char, before: Option<char>) -> bool {
    match c {
        '\t' => false,
        // Controls, including ESC, CSI (U+009B) and OSC (U+009D); soft hyphens; the Arabic letter mark.
        c if c.is_control() => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' => true,
        // Joiners: part of Persian and Indic text and of emoji, but meaningless after a Latin letter.
        '\u{200c}' | '\u{200d}' => before.is_none_or(|before| before.is_ascii()),
        // Zero-width characters; directional marks, embeddings, overrides and isolates; line and paragraph separators; invisible
        // operators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Byte order marks, annotations, tags.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([counted(0_u32, "round"), counted(1_u64, "round")], ["0 rounds", "1 round"]);
        assert_eq!(counted(2_usize, "call"), "2 calls");
    }

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}]52;c;AAAA\u{7}\u{1b}[2J", "\\u{1b}]52;c;AAAA\\u{7}\\u{1b}[2J"),
            ("\u{9b}5m\u{9d}0;t\u{9c}", "\\u{9b}5m\\u{9d}0;t\\u{9c}"),
            ("a\rb\u{7f}\u{0}", "a\\rb\\u{7f}\\u{0}"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
            ("\u{2066}x\u{2069}\u{200e}\u{61c}", "\\u{2066}x\\u{2069}\\u{200e}\\u{61c}"),
            ("ad\u{200b}min ad\u{200d}min \u{feff}", "ad\\u{200b}min ad\\u{200d}min \\u{feff}"),
            ("a\u{2028}b\u{2029}", "a\\u{2028}b\\u{2029}"),
            ("\u{e0041}", "\\u{e0041}"),
            // Letters and signs of all scripts stay, including joiners inside them.
            ("naïve שלום नमस्ते می‌خواهم 👩‍👩‍👧 “quoted” — 日本語", "naïve שלום नमस्ते می‌خواهم 👩‍👩‍👧 “quoted” — 日本語"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(on_one_line("a\nb"), "a\\nb");
        assert_eq!(masked("a\u{202e}b\u{9b}\r\n"), "a???b??\r\n");
    }

    proptest! {
        /// JSON keeps its value, and no text shows hidden characters.
        #[test]
        fn nothing_hidden_is_left_and_json_says_the_same(text in any::<String>()) {
            let value = serde_json::json!({ "text": text });
            let written = serde_json::to_string(&value).unwrap();
            let shown = json(&written);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
            for shown in [&shown, &printable(&text), &on_one_line(&text), &masked(&text)] {
                let all: Vec<char> = shown.chars().collect();
                let hidden = (0..all.len()).filter(|i| is_hidden(all[*i], i.checked_sub(1).map(|i| all[i])));
                prop_assert!(hidden.into_iter().all(|i| matches!(all[i], '\n' | '\r')), "{:?}", shown);
            }
            prop_assert_eq!(masked(&text).len(), text.len());
        }
    }
}
