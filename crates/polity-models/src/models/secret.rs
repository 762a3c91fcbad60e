//! API keys, and how they are removed from everything shown and recorded: servers and gateways may echo them, sometimes escaped. All
//! redaction is here.

use super::provider::{Exchange, ProviderError};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use polity_kernel::ask::{Outcome, Value};
use polity_kernel::tool::ToolCall;
use serde_json::Value as Json;
use std::fmt;

/// Shorter keys are placeholders (`none`, `EMPTY`, `ollama`): they are not secret, and may occur as words in any text.
const SHORTEST: usize = 8;
/// Replaces a key.
const MASK: &str = "***";

/// A key or password. It is always shown as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// The key in hexadecimal and in base64: the parts that depend on the key alone, at any position in the encoded text.
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

    /// Removes the secret from a text: as is, with characters escaped as in JSON, HTML and addresses, or in base64 or hexadecimal.
    /// Secrets of fewer than 8 characters are not searched for.
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

    /// The first occurrence of the secret from a byte on, however escaped. It starts and ends at character borders, since keys and
    /// escapes are ASCII.
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

/// The unescaped byte at the start of a text, and its length in the text.
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
    // Three bytes are four digits, so a key may start at three offsets. Digits at its ends depend on the neighbours.
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

/// An error with every text `hidden`.
pub(super) fn in_trouble(trouble: ProviderError, hidden: &dyn Fn(String) -> String) -> ProviderError {
    match trouble {
        ProviderError::Retry { why, after_ms, charged } => ProviderError::Retry { why: hidden(why), after_ms, charged },
        ProviderError::RateLimited { why, after_ms } => ProviderError::RateLimited { why: hidden(why), after_ms },
        ProviderError::Anew { why } => ProviderError::Anew { why: hidden(why) },
        ProviderError::Never { why } => ProviderError::Never { why: hidden(why) },
        ProviderError::Fatal { why } => ProviderError::Fatal { why: hidden(why) },
    }
}

/// An exchange with every text `hidden`: JSON escapes have been resolved by now.
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
    Exchange { outcome, usage: exchange.usage, reasoning: exchange.reasoning.map(hidden) }
}

fn in_value(value: Value, hidden: &dyn Fn(String) -> String) -> Value {
    let all = |values: Vec<Value>| values.into_iter().map(|value| in_value(value, hidden)).collect();
    match value {
        Value::Text(text) => Value::Text(hidden(text)),
        Value::List(values) => Value::List(all(values)),
        Value::Record(values) => Value::Record(all(values)),
        Value::Calls { text, calls } => {
            let call = |call: ToolCall| ToolCall { arguments: hidden(call.arguments), ..call };
            Value::Calls { text: hidden(text), calls: calls.into_iter().map(call).collect() }
        }
        other @ (Value::Choice(_) | Value::Number(_) | Value::Vector(_)) => other,
    }
}

/// The same for parsed JSON.
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
                    // At most the digits at its ends are left, each of which holds part of a character.
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
            let exchange = Exchange { outcome, usage: Default::default(), reasoning: Some(told()) };
            let hidden = format!("{:?}", in_exchange(exchange.clone(), &|text| key.hidden_in(text)));
            assert!(!hidden.contains("canary") && hidden.contains("it is ***"), "{exchange:?}: {hidden}");
        }
        let json = serde_json::json!({"a": [told(), 1], "sk-canary-0123": null});
        let hidden = in_json(json, &|text| key.hidden_in(text));
        assert_eq!(hidden, serde_json::json!({"a": ["it is ***", 1], "***": null}));
    }
}
