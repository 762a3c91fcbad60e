//! Keys, and how they are kept out of what is shown and recorded: servers and gateways repeat what they were sent, some of them in other
//! spellings. The one place where that is done.

use super::{Exchange, Trouble};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use polity_kernel::ask::{Outcome, Value};
use serde_json::Value as Json;
use std::fmt;

/// Shorter keys are stand-ins (`none`, `EMPTY`, `ollama`): there is nothing to hide, and as a word they may stand in any text.
const SHORTEST: usize = 8;
/// What stands in the place of a key.
const MASK: &str = "***";

/// A key or password. Shown in any way it is `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// Itself as hexadecimal digits and in base64: what of that depends on the key alone, wherever it stands in what was encoded.
    encoded: Vec<String>,
}

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let encoded = if text.len() < SHORTEST { Vec::new() } else { encodings(text.as_bytes()) };
        Secret { text, encoded }
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// A text from outside without the secret: neither as it is, nor with letters of it escaped as JSON, HTML and addresses do, nor in
    /// base64 or hexadecimal digits. A secret of fewer than 8 letters is not looked for.
    #[must_use]
    pub fn hidden_in(&self, text: String) -> String {
        if self.text.len() < SHORTEST {
            return text;
        }
        let text = match self.spelled_in(text.as_bytes(), 0) {
            None => text,
            Some(first) => {
                let mut out = String::with_capacity(text.len());
                let (mut from, mut next) = (0, Some(first));
                while let Some((start, end)) = next {
                    out.push_str(&text[from..start]);
                    out.push_str(MASK);
                    from = end;
                    next = self.spelled_in(text.as_bytes(), end);
                }
                out.push_str(&text[from..]);
                out
            }
        };
        let hide = |text: String, word: &String| if text.contains(word) { text.replace(word, MASK) } else { text };
        self.encoded.iter().fold(text, hide)
    }

    /// Where the secret first stands from a byte on, however its letters are escaped. It begins and ends at borders of characters: its
    /// letters are ASCII, and so are escapes.
    fn spelled_in(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let key = self.text.as_bytes();
        let begins = |byte: &u8| *byte == key[0] || matches!(byte, b'\\' | b'%' | b'&');
        let mut at = from;
        loop {
            at += text.get(at..)?.iter().position(begins)?;
            let mut end = at;
            let same = key.iter().all(|letter| match letter_at(text.get(end..).unwrap_or_default()) {
                Some((found, length)) if found == *letter => {
                    end += length;
                    true
                }
                _ => false,
            });
            if same {
                return Some((at, end));
            }
            at += 1;
        }
    }
}

/// The byte that a text begins with, its escape undone, and the bytes that it takes.
fn letter_at(text: &[u8]) -> Option<(u8, usize)> {
    let first = *text.first()?;
    let digits = |from: usize, to: usize, radix: u32| {
        let digits = std::str::from_utf8(text.get(from..to)?).ok().filter(|digits| !digits.starts_with('+'))?;
        u8::try_from(u32::from_str_radix(digits, radix).ok()?).ok()
    };
    let escaped = match (first, text.get(1)) {
        (b'\\', Some(b'u')) => digits(2, 6, 16).map(|letter| (letter, 6)),
        (b'\\', Some(b'x')) => digits(2, 4, 16).map(|letter| (letter, 4)),
        (b'\\', Some(letter)) if letter.is_ascii_punctuation() => Some((*letter, 2)),
        (b'%', _) => digits(1, 3, 16).map(|letter| (letter, 3)),
        (b'&', Some(b'#')) => {
            let end = text.iter().take(10).position(|byte| *byte == b';')?;
            let letter = match text.get(2) {
                Some(b'x' | b'X') => digits(3, end, 16),
                _ => digits(2, end, 10),
            };
            letter.map(|letter| (letter, end + 1))
        }
        _ => None,
    };
    Some(escaped.unwrap_or((first, 1)))
}

/// See [`Secret::encoded`].
fn encodings(key: &[u8]) -> Vec<String> {
    let mut all: Vec<String> = vec![
        key.iter().map(|byte| format!("{byte:02x}")).collect(),
        key.iter().map(|byte| format!("{byte:02X}")).collect(),
    ];
    // Three bytes are four digits: a key may begin at any of three places. Digits at its ends depend on what stands beside it.
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(key);
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for digits in [BASE64_STANDARD.encode(&bytes), BASE64_URL_SAFE.encode(&bytes)] {
            all.extend(digits.get(first..end).map(str::to_owned));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// A trouble in which every text is `hidden`.
pub(super) fn in_trouble(trouble: Trouble, hidden: &dyn Fn(String) -> String) -> Trouble {
    match trouble {
        Trouble::Retry { why, after_ms, charged } => Trouble::Retry { why: hidden(why), after_ms, charged },
        Trouble::Crowded { why, after_ms } => Trouble::Crowded { why: hidden(why), after_ms },
        Trouble::Anew { why } => Trouble::Anew { why: hidden(why) },
        Trouble::Never { why } => Trouble::Never { why: hidden(why) },
        Trouble::Fatal { why } => Trouble::Fatal { why: hidden(why) },
    }
}

/// An exchange in which every text is `hidden`: what was written into JSON as an escape is a letter by now.
pub(super) fn in_exchange(exchange: Exchange, hidden: &dyn Fn(String) -> String) -> Exchange {
    let outcome = match exchange.outcome {
        Outcome::Reply { value, raw, repaired } => {
            Outcome::Reply { value: in_value(value, hidden), raw: hidden(raw), repaired }
        }
        Outcome::Invalid { raw, why } => Outcome::Invalid { raw: hidden(raw), why: hidden(why) },
        Outcome::Refused { raw } => Outcome::Refused { raw: hidden(raw) },
        Outcome::Failed { why } => Outcome::Failed { why: hidden(why) },
        Outcome::Denied { why } => Outcome::Denied { why: hidden(why) },
    };
    Exchange { outcome, ..exchange }
}

fn in_value(value: Value, hidden: &dyn Fn(String) -> String) -> Value {
    let all = |values: Vec<Value>| values.into_iter().map(|value| in_value(value, hidden)).collect();
    match value {
        Value::Text(text) => Value::Text(hidden(text)),
        Value::List(values) => Value::List(all(values)),
        Value::Record(values) => Value::Record(all(values)),
        other @ (Value::Choice(_) | Value::Number(_) | Value::Vector(_)) => other,
    }
}

/// The same in JSON that was read.
pub(super) fn in_json(json: Json, hidden: &dyn Fn(String) -> String) -> Json {
    match json {
        Json::String(text) => Json::String(hidden(text)),
        Json::Array(values) => values.into_iter().map(|value| in_json(value, hidden)).collect(),
        Json::Object(entries) => {
            entries.into_iter().map(|(key, value)| (hidden(key), in_json(value, hidden))).collect()
        }
        other => other,
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
        assert_eq!(Secret::new("12345678").hidden_in("key 12345678?".into()), "key ***?");
    }

    #[test]
    fn a_key_is_hidden_in_every_spelling() {
        let text = "sk-cañary/0123".replace('ñ', "n");
        let key = Secret::new(text.as_str());
        let spelled = |each: &dyn Fn(u8) -> String| text.bytes().map(each).collect::<String>();
        let mixed: String = text
            .bytes()
            .enumerate()
            .map(|(i, b)| if i % 2 == 0 { format!("\\u{b:04X}") } else { char::from(b).into() })
            .collect();
        for spelling in [
            text.clone(),
            spelled(&|b| format!("\\u{b:04x}")),
            spelled(&|b| format!("\\x{b:02x}")),
            spelled(&|b| format!("%{b:02X}")),
            spelled(&|b| format!("&#{b};")),
            spelled(&|b| format!("&#x{b:x};")),
            text.replace('/', "\\/"),
            mixed,
        ] {
            let hidden = key.hidden_in(format!("ü{spelling}ü and {spelling}"));
            assert_eq!(hidden, "ü***ü and ***", "{spelling}");
        }
        for before in ["", "a", "Bearer ", "authorization: Bearer "] {
            for after in ["", "\n", " and more"] {
                let plain = format!("{before}{text}{after}");
                let hex: String = plain.bytes().map(|b| format!("{b:02x}")).collect();
                for spelling in
                    [BASE64_STANDARD.encode(&plain), BASE64_URL_SAFE.encode(&plain), hex.to_uppercase(), hex]
                {
                    let hidden = key.hidden_in(format!("it was {spelling}"));
                    // At most the digits at its ends are left, each of which holds a part of a letter.
                    assert!(hidden.contains("***"), "{spelling}: {hidden}");
                }
            }
        }
        for other in ["sk-canary/012", "sk-canary/012\\u0034", "%73k-", "\\u00", "&#", "&#1000;", "%", "\\", "ß\\ü"] {
            assert_eq!(key.hidden_in(other.into()), other);
        }
    }

    #[test]
    fn nothing_of_an_exchange_keeps_a_key() {
        let key = Secret::new("sk-canary-0123");
        let told = || "it is sk-canary-0123".to_owned();
        let value =
            Value::Record(vec![Value::Text(told()), Value::List(vec![Value::Text(told()), Value::Number(1.0)])]);
        for outcome in [
            Outcome::Reply { value, raw: told(), repaired: false },
            Outcome::Invalid { raw: told(), why: told() },
            Outcome::Refused { raw: told() },
            Outcome::Failed { why: told() },
        ] {
            let exchange = Exchange { outcome, usage: Default::default() };
            let hidden = format!("{:?}", in_exchange(exchange.clone(), &|text| key.hidden_in(text)));
            assert!(!hidden.contains("canary") && hidden.contains("it is ***"), "{exchange:?}: {hidden}");
        }
        let json = serde_json::json!({"a": [told(), 1], "sk-canary-0123": null});
        let hidden = in_json(json, &|text| key.hidden_in(text));
        assert_eq!(hidden, serde_json::json!({"a": ["it is ***", 1], "***": null}));
    }
}
