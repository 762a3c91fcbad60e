//! Where what a folder records and what is asked for differ.

use serde_json::Value;

/// The same value, as it reads back from a file.
#[must_use]
pub fn as_read_back(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or_default()
}

/// The first difference between what is recorded and what is asked for, with its path and both values: `its `design.seeds` is 6, not 8`.
/// Keys come before the values below them, in their order.
#[must_use]
pub fn difference(there: &Value, here: &Value) -> Option<String> {
    fn below(path: &str, there: &Value, here: &Value) -> Option<String> {
        let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match (there, here) {
            (Value::Object(of_there), Value::Object(of_here)) => {
                let keys = of_there.keys().chain(of_here.keys().filter(|key| !of_there.contains_key(*key)));
                let value = |map: &serde_json::Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
                keys.into_iter().find_map(|key| below(&at(key), &value(of_there, key), &value(of_here, key)))
            }
            (Value::Array(of_there), Value::Array(of_here)) => {
                let value = |list: &[Value], i: usize| list.get(i).cloned().unwrap_or_default();
                let all = 0..of_there.len().max(of_here.len());
                all.into_iter().find_map(|i| below(&format!("{path}[{i}]"), &value(of_there, i), &value(of_here, i)))
            }
            (there, here) if there == here => None,
            (there, here) => Some(format!("its `{path}` is {}, not {}", words(there), words(here))),
        }
    }
    below("", there, here)
}

/// A value in an error, cut if it is long.
fn words(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        _ if value.is_null() => "missing".into(),
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_has_its_path() {
        let there = json!({"a": 1, "b": {"c": [1, {"d": 2.5}], "e": "x"}});
        for (here, words) in [
            (there.clone(), None),
            (json!({"a": 1, "b": {"c": [1, {"d": 3}], "e": "x"}}), Some("its `b.c[1].d` is 2.5, not 3")),
            (json!({"a": 1, "b": {"c": [1, {"d": 2.5}, 4], "e": "x"}}), Some("its `b.c[2]` is missing, not 4")),
            (json!({"b": {"c": [1, {"d": 2.5}], "e": "x"}}), Some("its `a` is 1, not missing")),
            (json!({"a": "1", "b": 0}), Some("its `a` is 1, not \"1\"")),
        ] {
            assert_eq!(difference(&there, &here).as_deref(), words);
        }
    }
}
