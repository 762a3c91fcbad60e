//! A scenario as a tree in which every part remembers where it was written.
//!
//! A scenario file is read in three steps: its text becomes a [`Node`] (the driver's YAML reader does that), `-P` edits
//! change the tree ([`Node::edit`]), and each leaf reads its own type from its own sub-tree ([`Node::read`]), chosen by
//! an explicit `kind` ([`Node::split_kind`]). Because positions live in the tree and not in the reader, a mistake at any
//! depth, in the file or in an edit, is reported where a person can see it.

mod carry;
mod edit;
mod json;
mod nearest;
mod path;
mod read;
mod schema;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use nearest::nearest;
use nearest::{excerpt, known_list, meant};
pub use path::{MAX_STEPS, Step, child, item, parse_path};

/// Where a part of the tree came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Written in the file: a half-open range of byte offsets into its text.
    File {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
    /// Given by a `-P` edit, whose whole text (`world.fraction=0.4`) this is.
    Edit(Arc<str>),
    /// Made by the program.
    Built,
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// What can be written in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Nothing: `null`, `~` or an empty place.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number with a point or an exponent.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map in the order of the file; keys are unique.
    Map(Vec<(Key, Node)>),
}

/// A name and where it was written: a map's key, or the `kind` of a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The name, as written.
    pub name: String,
    /// Where it was written.
    pub origin: Origin,
}

/// What is wrong with a scenario, and where. Its `Display` is one line: the path and the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_line(path, message))]
pub struct TreeError {
    /// What is wrong.
    pub message: String,
    /// The place in the tree, `cohorts[1].policy.mean`; empty for the whole tree.
    pub path: String,
    /// The place in the source.
    pub origin: Origin,
    /// What to do about it.
    pub help: Option<String>,
}

fn one_line(path: &str, message: &str) -> String {
    match path.is_empty() {
        true => message.to_owned(),
        false => format!("{path}: {message}"),
    }
}

/// A value of the right type that a leaf does not accept; [`Node::blame`] finds the place where it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_line(key, message))]
pub struct Invalid {
    /// The key, dotted and relative to the leaf's own map (`levels[2].share`); empty for the whole leaf.
    pub key: String,
    /// What is wrong with it, `must lie in 0..=1, is 1.5`.
    pub message: String,
}

impl Invalid {
    /// Refuses the value under `key` unless it fits.
    pub fn unless(fits: bool, key: &str, message: impl Into<String>) -> Result<(), Invalid> {
        if fits { Ok(()) } else { Err(Invalid { key: key.into(), message: message.into() }) }
    }

    /// Refuses the value under `key` unless it lies in a range; what has no order, NaN, lies in none.
    pub fn within<T: PartialOrd + Display>(range: RangeInclusive<T>, key: &str, value: T) -> Result<(), Invalid> {
        let (low, high) = (range.start(), range.end());
        Invalid::unless(range.contains(&value), key, format!("must lie in {low}..={high}, is {value}"))
    }
}

impl Node {
    /// Makes a node that is not from a file or an edit.
    pub fn built(value: Value) -> Node {
        Node { value, origin: Origin::Built }
    }

    /// The value under a map's key; `None` when there is no such key or this is no map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Splits a leaf into its kind and the map of its own keys. `level-k` alone is the same as `{kind: level-k}`.
    /// `path` is this node's own path, used in errors.
    pub fn split_kind(&self, path: &str) -> Result<(Key, Node), TreeError> {
        let wrong = |message: String, origin: &Origin, path: String| TreeError {
            message,
            path,
            origin: origin.clone(),
            help: Some("write `{kind: NAME, ...}`, or the name alone".to_owned()),
        };
        let kind_of = |node: &Node, path: String| match &node.value {
            Value::Text(name) if !name.is_empty() => Ok(Key { name: name.clone(), origin: node.origin.clone() }),
            _ => Err(wrong(format!("a kind must be a name, found {}", node.describe()), &node.origin, path)),
        };
        let Value::Map(entries) = &self.value else {
            let empty = Node { value: Value::Map(Vec::new()), origin: self.origin.clone() };
            return Ok((kind_of(self, path.to_owned())?, empty));
        };
        let Some(kind) = self.get("kind") else {
            let near = nearest("kind", entries.iter().map(|(key, _)| key.name.as_str()));
            let typo = near.map(|key| format!("; should `{key}` be `kind`?")).unwrap_or_default();
            return Err(wrong(format!("the key `kind` is missing{typo}"), &self.origin, path.to_owned()));
        };
        let kind = kind_of(kind, child(path, "kind"))?;
        let rest = entries.iter().filter(|(key, _)| key.name != "kind").cloned().collect();
        Ok((kind, Node { value: Value::Map(rest), origin: self.origin.clone() }))
    }

    /// Points an [`Invalid`] at the value that caused it: at the key if it was written, else (the default was used) at the
    /// innermost map that should contain it. `path` is this node's own path.
    pub fn blame(&self, path: &str, invalid: Invalid) -> TreeError {
        let steps = match invalid.key.is_empty() {
            true => Vec::new(),
            false => parse_path(&invalid.key).unwrap_or_else(|_| vec![Step::Name(invalid.key.clone())]),
        };
        let mut here = self;
        let mut written = true;
        for step in &steps {
            match here.enter(step) {
                Some(next) => here = next,
                None => {
                    written = false;
                    break;
                }
            }
        }
        TreeError {
            message: invalid.message,
            path: path::join(path, &steps),
            origin: here.origin.clone(),
            help: (!written).then(|| "it is not set here; this is its default".to_owned()),
        }
    }

    /// The child that a step leads to, an index or an existing key.
    fn enter(&self, step: &Step) -> Option<&Node> {
        match (&self.value, step) {
            (Value::Map(_), Step::Word(name) | Step::Name(name)) => self.get(name),
            (Value::List(items), Step::Index(at)) => items.get(*at),
            (Value::List(items), Step::Word(word)) => items.get(word.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// Describes the node for a message: "text `abc`", "the number 3", "a list of 2 entries".
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(truth) => format!("`{truth}`"),
            Value::Int(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number:?}"),
            Value::Text(text) => format!("text `{}`", excerpt(text)),
            Value::List(items) if items.len() == 1 => "a list of 1 entry".to_owned(),
            Value::List(items) => format!("a list of {} entries", items.len()),
            Value::Map(_) => "a map".to_owned(),
        }
    }
}

/// Other words for kinds.
const SYNONYMS: [(&str, &str); 8] = [
    ("median", "quantiles"),
    ("percentiles", "quantiles"),
    ("average", "mean"),
    ("avg", "mean"),
    ("std", "variance"),
    ("sd", "variance"),
    ("polarization", "bimodality"),
    ("deffuant", "deffuant-weisbuch"),
];

/// The error for a kind that no leaf has: "there is no policy `levelk`; did you mean `level-k`?".
pub fn unknown_kind(what: &str, kind: &str, known: &[&str], path: &str, origin: Origin) -> TreeError {
    let other = SYNONYMS.iter().find(|(word, name)| *word == kind && known.contains(name));
    let meant = other.map_or_else(|| meant(kind, known), |(_, name)| format!("; did you mean `{name}`?"));
    TreeError {
        message: format!("there is no {what} `{}`{meant}", excerpt(kind)),
        path: path.to_owned(),
        origin,
        help: Some(known_list("known", known)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, start: usize) -> Node {
        Node { value: Value::Text(text.into()), origin: Origin::File { start, end: start + text.len() } }
    }

    fn map(entries: Vec<(&str, Node)>) -> Node {
        let keyed = entries.into_iter().map(|(k, v)| (Key { name: k.into(), origin: Origin::Built }, v)).collect();
        Node { value: Value::Map(keyed), origin: Origin::File { start: 0, end: 99 } }
    }

    #[test]
    fn kinds_are_split_from_maps_and_bare_names() {
        let full = map(vec![("mean", Node::built(Value::Float(1.5))), ("kind", text("level-k", 7))]);
        let (kind, rest) = full.split_kind("policy").unwrap();
        assert_eq!(kind, Key { name: "level-k".into(), origin: Origin::File { start: 7, end: 14 } });
        assert_eq!(rest, map(vec![("mean", Node::built(Value::Float(1.5)))]));
        let (kind, rest) = text("level-k", 3).split_kind("policy").unwrap();
        assert_eq!((kind.name.as_str(), &rest.value), ("level-k", &Value::Map(vec![])));
    }

    #[test]
    fn kinds_that_are_missing_or_no_names_are_errors() {
        let cases = [
            (map(vec![("knid", text("x", 1))]), "policy: the key `kind` is missing; should `knid` be `kind`?"),
            (map(vec![("mean", text("x", 1))]), "policy: the key `kind` is missing"),
            (map(vec![("kind", Node::built(Value::Int(3)))]), "policy.kind: a kind must be a name, found the number 3"),
            (Node::built(Value::Null), "policy: a kind must be a name, found nothing"),
            (Node::built(Value::List(vec![])), "policy: a kind must be a name, found a list of 0 entries"),
        ];
        for (node, expected) in cases {
            assert_eq!(node.split_kind("policy").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn unknown_kinds_name_the_nearest() {
        let error = unknown_kind("policy", "levelk", &["cournot", "level-k"], "cohorts[0].policy", Origin::Built);
        assert_eq!(error.to_string(), "cohorts[0].policy: there is no policy `levelk`; did you mean `level-k`?");
        assert_eq!(error.help.unwrap(), "known: cournot, level-k");
        assert!(!unknown_kind("policy", "zebra", &["level-k"], "", Origin::Built).message.contains("mean"));
        let error = unknown_kind("metric", "median", &["mean", "quantiles"], "metrics[0]", Origin::Built);
        assert_eq!(error.to_string(), "metrics[0]: there is no metric `median`; did you mean `quantiles`?");
    }

    #[test]
    fn blame_points_at_what_was_written() {
        let leaf = map(vec![("levels", Node::built(Value::List(vec![text("a", 10), text("b", 20)])))]);
        let blame = |key: &str| leaf.blame("policy", Invalid { key: key.into(), message: "is wrong".into() });
        assert_eq!(blame("levels[1]").origin, Origin::File { start: 20, end: 21 });
        assert_eq!(blame("levels.1").path, "policy.levels.1");
        assert_eq!(blame("levels[1]").help, None);
        let default = blame("mean");
        assert_eq!((default.path.as_str(), &default.origin), ("policy.mean", &leaf.origin));
        assert!(default.help.unwrap().contains("default"));
        assert_eq!(blame("").path, "policy");
        assert_eq!(blame("").help, None);
        assert_eq!(blame("no [path").to_string(), "policy.\"no [path\": is wrong");
    }

    #[test]
    fn excerpts_stay_short_and_on_one_line() {
        assert_eq!(excerpt("a\nb"), "a\\nb");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), 41);
    }
}
