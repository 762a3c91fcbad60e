//! Arguments of a call, which fit the schema of their tool; and names in messages.

use polity_kernel::tool::Arguments;
use polity_recall::similar_names;

/// Returns a text, trimmed; empty if it is missing.
#[must_use]
pub fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(|value| value.as_str()).unwrap_or_default().trim()
}

/// Returns a whole number from 0 on, if there is one. In JSON, 3.0 is whole.
#[must_use]
pub fn whole(arguments: &Arguments, name: &str) -> Option<usize> {
    let value = arguments.get(name)?;
    let float =
        || value.as_f64().filter(|x| *x >= 0.0 && *x <= f64::from(u32::MAX) && x.fract() == 0.0).map(|x| x as u64);
    value.as_u64().or_else(float).map(|n| n as usize)
}

/// Names the known names most similar to an unknown one: "; the nearest are `a`, `b` and `c`". Empty if none is known.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    match similar_names(name, known, SHOWN).as_slice() {
        [] => String::new(),
        [one] => format!("; the nearest is `{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("; the nearest are {} and `{last}`", first.join(", "))
        }
    }
}

/// Writes a number of things: "1 edge", "3 edges".
#[must_use]
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_read_by_name() {
        let value =
            json!({"text": "  a b ", "three": 3, "float": 3.0, "part": 3.5, "minus": -1, "huge": 1e300, "null": null});
        let arguments = value.as_object().unwrap();
        assert_eq!((text(arguments, "text"), text(arguments, "none"), text(arguments, "three")), ("a b", "", ""));
        assert_eq!((whole(arguments, "three"), whole(arguments, "float")), (Some(3), Some(3)));
        for name in ["part", "minus", "huge", "null", "text", "none"] {
            assert_eq!(whole(arguments, name), None, "{name}");
        }
    }

    #[test]
    fn the_nearest_names_are_listed() {
        assert_eq!(nearest("x", []), "");
        assert_eq!(nearest("x", ["a"]), "; the nearest is `a`");
        assert_eq!(nearest("bc", ["a", "bcd"]), "; the nearest are `bcd` and `a`");
        assert_eq!(nearest("x", ["a", "b", "c", "d", "e", "f"]), "; the nearest are `a`, `b`, `c`, `d` and `e`");
        assert_eq!((count(1, "edge", "edges"), count(0, "edge", "edges")), ("1 edge".into(), "0 edges".into()));
    }
}
