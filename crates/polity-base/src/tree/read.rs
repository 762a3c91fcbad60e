//! Typed reading of a sub-tree: a serde deserialiser over [`Node`] whose errors know the deepest key or value at fault.
//!
//! An error is made without a place. Whoever called serde for a child adds the child's origin (unless a deeper one is
//! already there) and its step, so the path grows on the way out and costs nothing when all is well.

use std::fmt::Display;

use serde::de::{self, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::carry::{CARRIED, pack};
use super::nearest::{excerpt, known_list, meant};
use super::path::join;
use super::{Key, Node, Origin, Step, TreeError, Value};
use crate::EXACT;

impl Node {
    /// Reads this sub-tree as a `T`. `path` is this node's own path, used in errors. Every key must be one that `T`
    /// knows, whether or not `T` denies unknown fields; numbers must fit; nothing is converted silently except a whole
    /// number where a float is wanted, and a float without a fraction where a whole number is.
    pub fn read<T: de::DeserializeOwned>(&self, path: &str) -> Result<T, TreeError> {
        T::deserialize(Reader(self)).map_err(|fault| {
            let fault = fault.at(&self.origin);
            let steps: Vec<Step> = fault.steps.into_iter().rev().collect();
            TreeError {
                message: fault.message,
                path: join(path, &steps),
                origin: fault.origin.unwrap_or(Origin::Built),
                help: fault.help,
            }
        })
    }
}

/// An error on its way out of the tree.
#[derive(Debug)]
struct Fault {
    message: String,
    help: Option<String>,
    origin: Option<Origin>,
    /// The path, innermost step first.
    steps: Vec<Step>,
}

impl Fault {
    fn new(message: String, help: Option<String>) -> Fault {
        Fault { message, help, origin: None, steps: Vec::new() }
    }

    /// "expected WHAT, found ..."
    fn expected(what: impl Display, found: &Node) -> Fault {
        Fault::new(format!("expected {what}, found {}", found.describe()), None)
    }

    fn unknown_key(key: &str, known: &[&str]) -> Fault {
        let message = format!("unknown key `{}`{}", excerpt(key), meant(key, known));
        Fault::new(message, Some(known_list("known keys", known)))
    }

    fn at(mut self, origin: &Origin) -> Fault {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    fn under(mut self, step: Step) -> Fault {
        self.steps.push(step);
        self
    }

    fn under_key(self, key: &Key) -> Fault {
        self.under(Step::Word(key.name.clone()))
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Fault {
        Fault::new(message.to_string(), None)
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::new(format!("expected {expected}, found {}", describe(found)), None)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Fault {
        Fault::new(format!("expected {expected}, found {len}"), None)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Fault {
        let message = format!("unknown choice `{}`{}", excerpt(variant), meant(variant, known));
        Fault::new(message, Some(known_list("choices", known)))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Fault {
        Fault::unknown_key(field, known)
    }

    fn missing_field(field: &'static str) -> Fault {
        Fault::new(format!("the key `{field}` is missing"), None)
    }

    fn duplicate_field(field: &'static str) -> Fault {
        Fault::new(format!("the key `{field}` is given twice"), None)
    }
}

/// What a visitor of someone else's was shown and did not want.
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => format!("`{truth}`"),
        Unexpected::Unsigned(number) => format!("the number {number}"),
        Unexpected::Signed(number) => format!("the number {number}"),
        Unexpected::Float(number) => format!("the number {number:?}"),
        Unexpected::Str(text) => format!("text `{}`", excerpt(text)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        other => other.to_string(),
    }
}

/// The deserialiser of one node.
struct Reader<'de>(&'de Node);

const NUMBERS: &str = "write a number like 12, -0.5 or 1e3: no quotes, leading zeros, underscores or 0x";
const QUOTES: &str = "if text is meant, put it in quotes";

impl Reader<'_> {
    /// The whole number written here, if it lies in a range.
    fn whole(&self, least: i128, most: i128) -> Result<i128, Fault> {
        let number = match self.0.value {
            Value::Int(number) => i128::from(number),
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => number as i128,
            _ => return Err(self.no_number("a whole number")),
        };
        match (least..=most).contains(&number) {
            true => Ok(number),
            false if least == 0 && number < 0 => Err(Fault::expected("a whole number that is not negative", self.0)),
            false => Err(Fault::expected(format!("a whole number from {least} to {most}"), self.0)),
        }
    }

    fn float(&self, most: f64) -> Result<f64, Fault> {
        let number = match self.0.value {
            Value::Int(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(self.no_number("a number")),
        };
        match number.abs() <= most {
            true => Ok(number),
            false => Err(Fault::expected(format!("a number from {:?} to {most:?}", -most), self.0)),
        }
    }

    fn no_number(&self, wanted: &str) -> Fault {
        const BY_AGENT: &str = "a parameter of a policy can differ by agent: `{column: NAME}` or `{formula: ...}`";
        let help = match &self.0.value {
            Value::Map(_) => Some(BY_AGENT.to_owned()),
            _ => self.0.number_help(),
        };
        Fault::new(format!("expected {wanted}, found {}", self.0.describe()), help)
    }
}

impl Node {
    /// Says how to write the number that a text seems to mean, as `51%` does; `None` if it seems to mean none.
    #[must_use]
    pub fn number_help(&self) -> Option<String> {
        let Value::Text(text) = &self.value else { return None };
        let digits = || text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
        match text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()) {
            Some(percent) => Some(format!("write {text} as {}", percent / 100.0)),
            None => digits().then(|| NUMBERS.to_owned()),
        }
    }
}

impl<'de> Reader<'de> {
    fn text(&self) -> Result<&'de str, Fault> {
        match &self.0.value {
            Value::Text(text) => Ok(text),
            other => {
                let mut fault = Fault::expected("text", self.0);
                let scalar = matches!(other, Value::Bool(_) | Value::Int(_) | Value::Float(_));
                fault.help = scalar.then(|| QUOTES.to_owned());
                Err(fault)
            }
        }
    }

    fn items(&self, wanted: impl Display) -> Result<&'de [Node], Fault> {
        match &self.0.value {
            Value::List(items) => Ok(items),
            _ => Err(Fault::expected(wanted, self.0)),
        }
    }

    fn entries(&self) -> Result<&'de [(Key, Node)], Fault> {
        match &self.0.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(Fault::expected("a map", self.0)),
        }
    }

    fn exactly<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        let wanted = format!("a list of {len} entries");
        let items = self.items(&wanted)?;
        match items.len() == len {
            true => visitor.visit_seq(Items(items.iter().enumerate())),
            false => Err(Fault::expected(wanted, self.0)),
        }
    }

    /// A struct: every key is one of `known`, checked here so that no type can forget to.
    fn record<V: Visitor<'de>>(self, known: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        let entries = match self.entries() {
            Ok(entries) => entries,
            Err(mut fault) => {
                fault.help = Some(known_list("its keys", known));
                return Err(fault);
            }
        };
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
            return Err(Fault::unknown_key(&key.name, known).at(&key.origin).under_key(key));
        }
        visitor.visit_map(Entries { rest: entries.iter(), next: None }).map_err(|mut fault| {
            if fault.origin.is_none() && fault.help.is_none() {
                fault.help = Some(known_list("its keys", known));
            }
            fault
        })
    }
}

macro_rules! whole_numbers {
    ($($method:ident $type:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let number = self.whole($type::MIN as i128, $type::MAX as i128)?;
            visitor.$visit(number as $type)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::Float(_) => visitor.visit_f64(self.float(f64::MAX)?),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), next: None }),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.value {
            Value::Bool(truth) => visitor.visit_bool(truth),
            _ => Err(Fault::expected("true or false", self.0)),
        }
    }

    whole_numbers! {
        deserialize_i8 i8 visit_i8
        deserialize_i16 i16 visit_i16
        deserialize_i32 i32 visit_i32
        deserialize_i64 i64 visit_i64
        deserialize_i128 i128 visit_i128
        deserialize_u8 u8 visit_u8
        deserialize_u16 u16 visit_u16
        deserialize_u32 u32 visit_u32
        deserialize_u64 u64 visit_u64
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_u128(self.whole(0, i128::MAX)?.unsigned_abs())
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.float(f64::from(f32::MAX))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.float(f64::MAX)?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let mut letters = self.text()?.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => visitor.visit_char(letter),
            _ => Err(Fault::expected("a single character", self.0)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.value {
            Value::Null => visitor.visit_unit(),
            _ => Err(Fault::expected("nothing", self.0)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        match name == CARRIED {
            true => visitor.visit_byte_buf(pack(self.0).map_err(de::Error::custom)?),
            false => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(Items(self.items("a list")?.iter().enumerate()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.exactly(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.exactly(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Entries { rest: self.entries()?.iter(), next: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.record(known, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(name) => visitor.visit_enum(Choice { name: Word(name), node: self.0, entry: None }),
            Value::Map(entries) if entries.len() == 1 => {
                let (key, content) = &entries[0];
                visitor.visit_enum(Choice { name: Word(&key.name), node: content, entry: Some(key) })
            }
            _ => {
                let mut fault = Fault::expected("the name of a choice or a map of one entry", self.0);
                if let Value::Map(entries) = &self.0.value {
                    let keys: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
                    fault.message.push_str(&format!(" with the keys {}", keys.join(", ")));
                }
                fault.help = Some(known_list("choices", known));
                Err(fault)
            }
        }
    }

    forward_to_deserialize_any! { bytes byte_buf ignored_any }
}

/// The entries of a list, each marked with its index when it is wrong.
struct Items<'de>(std::iter::Enumerate<std::slice::Iter<'de, Node>>);

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((at, node)) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(Reader(node)).map(Some).map_err(|fault| fault.at(&node.origin).under(Step::Index(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The entries of a map, keys and values marked when they are wrong.
struct Entries<'de> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    next: Option<&'de (Key, Node)>,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.next = self.rest.next();
        let Some((key, _)) = self.next else {
            return Ok(None);
        };
        seed.deserialize(Word(&key.name)).map(Some).map_err(|fault| fault.at(&key.origin).under_key(key))
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, node) = self.next.take().ok_or_else(|| <Fault as de::Error>::custom("a value before its key"))?;
        seed.deserialize(Reader(node)).map_err(|fault| fault.at(&node.origin).under_key(key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The deserialiser of a key or a choice's name.
struct Word<'de>(&'de str);

macro_rules! parsed_words {
    ($($method:ident $visit:ident $what:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Fault::new(format!("expected {} as a key, found `{}`", $what, excerpt(self.0)), None)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Word<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed_words! {
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number from -32768 to 32767"
        deserialize_i32 visit_i32 "a 32-bit whole number"
        deserialize_i64 visit_i64 "a 64-bit whole number"
        deserialize_u8 visit_u8 "a whole number from 0 to 255"
        deserialize_u16 visit_u16 "a whole number from 0 to 65535"
        deserialize_u32 visit_u32 "a 32-bit whole number that is not negative"
        deserialize_u64 visit_u64 "a 64-bit whole number that is not negative"
        deserialize_bool visit_bool "true or false"
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// One choice of an enum: its name alone, or a map of one entry.
struct Choice<'de> {
    name: Word<'de>,
    /// The name's own node when it stands alone, else the content.
    node: &'de Node,
    /// The key of the one entry; `None` when the name stands alone.
    entry: Option<&'de Key>,
}

impl<'de> de::EnumAccess<'de> for Choice<'de> {
    type Error = Fault;
    type Variant = Content<'de>;

    fn variant_seed<V: de::DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'de>), Fault> {
        let variant = seed.deserialize(self.name).map_err(|fault| match self.entry {
            Some(key) => fault.at(&key.origin).under_key(key),
            None => fault.at(&self.node.origin),
        })?;
        Ok((variant, Content { node: self.node, entry: self.entry }))
    }
}

/// What belongs to a choice.
struct Content<'de> {
    node: &'de Node,
    entry: Option<&'de Key>,
}

/// What a choice without content has.
const NO_ENTRIES: &Node = &Node { value: Value::Map(Vec::new()), origin: Origin::Built };

impl<'de> Content<'de> {
    /// Reads the content, marking errors with its place.
    fn with<T>(self, read: impl FnOnce(Reader<'de>) -> Result<T, Fault>) -> Result<T, Fault> {
        match self.entry {
            Some(key) => read(Reader(self.node)).map_err(|fault| fault.at(&self.node.origin).under_key(key)),
            None => Err(Fault::new(format!("{} needs a value", self.node.describe()), Some(WITH_VALUE.to_owned()))),
        }
    }
}

const WITH_VALUE: &str = "write it as a map of one entry: {NAME: VALUE}";

impl<'de> de::VariantAccess<'de> for Content<'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.entry {
            None => Ok(()),
            Some(_) => self.with(de::Deserialize::deserialize),
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.with(|reader| seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.with(|reader| reader.exactly(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, known: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        match self.entry {
            // The name alone is the choice with all defaults.
            None => Reader(NO_ENTRIES).record(known, visitor),
            Some(_) => self.with(|reader| reader.record(known, visitor)),
        }
    }
}

#[cfg(test)]
mod tests;
