//! Parses YAML text into a spanned tree.
//!
//! Built on the event parser of serde-saphyr. Only events tell whether a scalar was quoted and where a list or map ends. Composing them
//! needs no recursion, so depth, size and aliases are bounded by counting.
//!
//! The dialect is YAML 1.2 without its traps. Only `true` and `false` (also `True`, `TRUE`) are booleans, so `no` is text. Decimal
//! numbers are numbers. `012`, `0x10` and `1_000`, on which YAML readers disagree, are text, so a typed read of a number refuses them.
//! `.nan`, `.inf` and numbers too large to hold are errors; so are tags, merge keys, duplicate keys, non-scalar keys, and a second
//! document. Anchors and aliases are allowed: an alias is a copy of its anchor, including source positions.

mod compose;
mod scalar;

use std::sync::Arc;

use polity_kernel::tree::{self, Node, Origin, TreeError, Value};
use serde_saphyr::granit_parser::{Parser, options};

use self::compose::Composer;
use super::limits::{MAX_BYTES, MAX_DEPTH};

/// Parses one document. An empty text is [`Value::Null`].
pub fn parse(text: &str) -> Result<Node, TreeError> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; the limit is {MAX_BYTES}", text.len());
        return Err(TreeError { message, path: String::new(), origin: Origin::Built, help: None });
    }
    let options = options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        emit_comments: false,
    };
    let mut composer = Composer::new(text);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| composer.syntax(&error))?;
        composer.take(event, &span)?;
    }
    Ok(composer.done())
}

/// Parses a `-P` edit, `path=value`: the path for [`Node::edit`] and the value, a YAML scalar or flow value (`[1, 2]`,
/// `{a: 1}`), marked with the edit's text.
pub fn parse_edit(edit: &str) -> Result<(String, Node), TreeError> {
    let origin = Origin::Edit(Arc::from(edit));
    let wrong = |message: String, path: &str, help: &str| TreeError {
        message,
        path: path.to_owned(),
        origin: origin.clone(),
        help: Some(help.to_owned()),
    };
    let mut quoted = false;
    let equals = edit.find(|c| {
        quoted ^= c == '"';
        c == '=' && !quoted
    });
    let Some((path, value)) = equals.map(|at| (edit[..at].trim(), edit[at + 1..].trim())) else {
        return Err(wrong(
            "an edit must be PATH=VALUE, but this has no `=`".to_owned(),
            "",
            "write -P world.fraction=0.4",
        ));
    };
    tree::parse_path(path).map_err(|message| wrong(message, path, "write -P cohorts.NAME.count=3"))?;
    let mut node = parse(value).map_err(|error| TreeError {
        path: path.to_owned(),
        origin: origin.clone(),
        help: error.help.or_else(|| Some(QUOTE_EDIT.to_owned())),
        ..error
    })?;
    let block = matches!(node.value, Value::List(_) | Value::Map(_)) && !value.starts_with(['[', '{']);
    let unread = match node.origin {
        Origin::File { end, .. } => value.get(end..).is_some_and(|rest| !rest.trim().is_empty()),
        _ => false,
    };
    if block {
        return Err(wrong(format!("the value is {}, by YAML's rules", node.describe()), path, QUOTE_EDIT));
    }
    if unread {
        return Err(wrong("a part of the value is a comment, by YAML's rules".to_owned(), path, QUOTE_EDIT));
    }
    stamp(&mut node, &origin);
    Ok((path.to_owned(), node))
}

const QUOTE_EDIT: &str = "if it is text, quote it for YAML and for the shell: -P 'path=\"text: more\"'";

/// Marks a whole tree with one origin.
fn stamp(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| stamp(item, origin)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, item)| {
            key.origin = origin.clone();
            stamp(item, origin);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
