//! What a person may be shown of texts that come from elsewhere: servers, models, files. Characters that steer a terminal, turn the order of
//! letters around or are not seen are written out, as Rust writes them (`\u{202e}`): nothing is lost, and nothing is what it does not look like.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text as it may be shown, on as many lines as it has.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    written(text, |c, before| c != '\n' && is_hidden(c, before), escape)
}

/// The same on one line.
#[must_use]
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    written(text, |c, before| c == '\n' || is_hidden(c, before), escape)
}

/// The same, byte for byte as long, for excerpts in which places are marked. Ends of lines of all kinds stay.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    let hidden = |c, before| !matches!(c, '\n' | '\r') && is_hidden(c, before);
    written(text, hidden, |c, out| out.extend(std::iter::repeat_n('?', c.len_utf8())))
}

/// JSON of which nothing is hidden: the same value, since such characters stand in its texts alone.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    written(
        text,
        |c, _| c != '\n' && is_hidden(c, None),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a String does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn escape(c: char, out: &mut String) {
    out.extend(c.escape_default());
}

/// The text with the characters that are `hidden` (by themselves and the one before) written by `write`.
fn written(text: &str, hidden: impl Fn(char, Option<char>) -> bool, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    // Most texts are plain.
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

/// Whether a character, behind another one, does something without being seen. Tabs are seen.
fn is_hidden(c: char, before: Option<char>) -> bool {
    match c {
        '\t' => false,
        // Controls, among them ESC, CSI (U+009B) and OSC (U+009D); soft hyphens; the Arabic mark of direction.
        c if c.is_control() => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' => true,
        // Parts of letters in Persian and Indian scripts and of emoji, and nothing behind a Latin letter.
        '\u{200c}' | '\u{200d}' => before.is_none_or(|before| before.is_ascii()),
        // Without width; marks, embeddings, overrides and isolates of direction; separators of lines and paragraphs; invisible operators.
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
            // Letters and signs of all scripts stay: joiners inside of them, too.
            ("naïve שלום नमस्ते می‌خواهم 👩‍👩‍👧 “quoted” — 日本語", "naïve שלום नमस्ते می‌خواهم 👩‍👩‍👧 “quoted” — 日本語"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(on_one_line("a\nb"), "a\\nb");
        assert_eq!(masked("a\u{202e}b\u{9b}\r\n"), "a???b??\r\n");
    }

    proptest! {
        /// JSON stays the same value, and no text shows anything hidden.
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
