//! The meaning of unquoted scalars.

use polity_kernel::tree::Value;

/// The value of an unquoted scalar.
pub(super) fn plain(text: &str) -> Result<Value, Wrong> {
    let quotes = || Some("if text is meant, put it in quotes".to_owned());
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err((format!("a number must be finite, found `{text}`"), quotes()));
    }
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let leading_zero = digits > 1 && unsigned.starts_with('0');
    let numeric = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-');
    if leading_zero || !unsigned.bytes().all(numeric) || !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return Ok(Value::Text(text.to_owned()));
    }
    if digits == unsigned.len() {
        let help = Some(format!("whole numbers lie between {} and {}; text goes in quotes", i64::MIN, i64::MAX));
        return text.parse().map(Value::Int).map_err(|_| ("this whole number is too large".to_owned(), help));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::Float(number)),
        Ok(_) => Err(("this number is too large".to_owned(), quotes())),
        Err(_) => Ok(Value::Text(text.to_owned())),
    }
}

/// What is wrong, and what to do.
pub(super) type Wrong = (String, Option<String>);
