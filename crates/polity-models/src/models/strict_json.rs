//! JSON without duplicate keys.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;

/// Parses JSON without duplicate keys.
pub(super) fn parsed(text: &str) -> Result<Json, serde_json::Error> {
    serde_json::from_str(text).map(|Once(json)| json)
}

struct Once(Json);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor).map(Once)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Json, E> {
        Ok(Json::from(yes))
    }

    fn visit_i64<E>(self, x: i64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Json, E> {
        Ok(Json::from(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut map = serde_json::Map::new();
        while let Some((key, Once(value))) = entries.next_entry::<String, Once>()? {
            if map.get(&key).is_some_and(|known| *known != value) {
                return Err(serde::de::Error::custom(format!("the key {} has two values", quoted(&key))));
            }
            map.insert(key, value);
        }
        Ok(Json::Object(map))
    }
}

/// Characters of a reply quoted in messages.
const QUOTED: usize = 60;

pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
