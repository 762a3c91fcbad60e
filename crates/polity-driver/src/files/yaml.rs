//! YAML text to a spanned tree.
//!
//! Built on the event parser that serde-saphyr is built on (and exports): only the events say whether a scalar was
//! quoted and where a list or a map ends, and composing them needs no recursion, so depth, size and aliases are bounded
//! by counting.
//!
//! The dialect is YAML 1.2 less its traps. Only `true` and `false` (also `True`, `TRUE`) are booleans, so `no` is text.
//! Decimal numbers are numbers; `012`, `0x10` and `1_000`, which readers of YAML disagree on, are text, which a typed
//! read of a number then refuses. `.nan`, `.inf` and numbers too large to hold are errors, and so are tags, merge keys,
//! keys given twice, keys that are not scalars, and a second document. Anchors and aliases are allowed: an alias is a
//! copy of its anchor, places included.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use polity_kernel::tree::{self, Key, Node, Origin, TreeError, Value};
use serde_saphyr::granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, options,
};

use super::{MAX_BYTES, render::position};

/// The deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 64;
/// The most values in one file, the copies that anchors and aliases make included.
pub const MAX_NODES: usize = 200_000;
/// The most bytes of text in one tree, the copies that anchors and aliases make included.
pub const MAX_TEXT: usize = 4 * MAX_BYTES;

/// Parses one document. Nothing at all is [`Value::Null`].
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
    Ok(composer.root.unwrap_or(Node { value: Value::Null, origin: Origin::File { start: 0, end: 0 } }))
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
        return Err(wrong("an edit is PATH=VALUE, and this has no `=`".to_owned(), "", "write -P world.fraction=0.4"));
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

/// What is wrong, and what to do.
type Wrong = (String, Option<String>);

/// How much of the limits a tree takes.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    text: usize,
    depth: usize,
}

fn weigh(value: &Value) -> Weight {
    let inner = |children: &mut dyn Iterator<Item = Weight>| {
        let sum = children.fold(Weight::default(), |a, b| Weight {
            nodes: a.nodes + b.nodes,
            text: a.text + b.text,
            depth: a.depth.max(b.depth),
        });
        Weight { nodes: sum.nodes + 1, text: sum.text, depth: sum.depth + 1 }
    };
    match value {
        Value::List(items) => inner(&mut items.iter().map(|item| weigh(&item.value))),
        Value::Map(entries) => inner(&mut entries.iter().map(|(key, item)| {
            let weight = weigh(&item.value);
            Weight { text: weight.text + key.name.len(), ..weight }
        })),
        Value::Text(text) => Weight { nodes: 1, text: text.len(), depth: 0 },
        _ => Weight { nodes: 1, text: 0, depth: 0 },
    }
}

/// A list or a map that is not finished.
struct Open {
    so_far: SoFar,
    start: usize,
    /// The end of what was last read inside.
    end: usize,
    /// The anchor's number, 0 for none.
    anchor: usize,
    block: bool,
}

enum SoFar {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The key whose value comes next.
        key: Option<Key>,
        /// Where each key was first written.
        seen: BTreeMap<String, usize>,
    },
}

/// Builds the tree from events.
struct Composer<'t> {
    text: &'t str,
    open: Vec<Open>,
    root: Option<Node>,
    /// Finished anchors, by number.
    anchors: BTreeMap<usize, Rc<Node>>,
    spent: Weight,
}

impl<'t> Composer<'t> {
    fn new(text: &'t str) -> Composer<'t> {
        Composer { text, open: Vec::new(), root: None, anchors: BTreeMap::new(), spent: Weight::default() }
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), TreeError> {
        let place = span.byte_range().unwrap_or_default();
        let (start, end) = (place.start, place.end);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span)?;
                let end = start + self.text.get(start..end).unwrap_or_default().trim_end().len();
                let origin = Origin::File { start, end };
                if self.wants_key() {
                    return self.key(text.into_owned(), style, origin, anchor);
                }
                let value = match style {
                    ScalarStyle::Plain => plain(&text).map_err(|what| self.wrong(what, start, end))?,
                    _ => Value::Text(text.into_owned()),
                };
                self.spend(weigh(&value), start, end)?;
                self.put(Node { value, origin }, end, anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span)?;
                self.begin(SoFar::List(Vec::new()), style, anchor, start, end)
            }
            Event::MappingStart(style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span)?;
                let so_far = SoFar::Map { entries: Vec::new(), key: None, seen: BTreeMap::new() };
                self.begin(so_far, style, anchor, start, end)
            }
            Event::SequenceEnd | Event::MappingEnd => self.finish(end),
            Event::Alias(anchor) => self.alias(anchor, start, end),
            Event::DocumentStart(..) if self.root.is_some() => {
                let help = "put each scenario into a file of its own".to_owned();
                Err(self.wrong(("a second document begins here".to_owned(), Some(help)), start, end))
            }
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        so_far: SoFar,
        style: StructureStyle,
        anchor: usize,
        start: usize,
        end: usize,
    ) -> Result<(), TreeError> {
        if self.wants_key() {
            return Err(self.wrong(("a key is a name, not a list or a map".to_owned(), None), start, end));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(self.wrong(too_deep(), start, end));
        }
        self.spend(Weight { nodes: 1, text: 0, depth: 0 }, start, end)?;
        self.open.push(Open { so_far, start, end, anchor, block: style == StructureStyle::Block });
        Ok(())
    }

    /// The innermost list or map is complete.
    fn finish(&mut self, end: usize) -> Result<(), TreeError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        // A block ends in the file where its last entry ends; the event comes at the start of whatever follows.
        let end = if open.block { open.end } else { end.max(open.end) };
        let value = match open.so_far {
            SoFar::List(items) => Value::List(items),
            SoFar::Map { entries, .. } => Value::Map(entries),
        };
        self.put(Node { value, origin: Origin::File { start: open.start, end } }, end, open.anchor)
    }

    /// Puts a finished node where it belongs.
    fn put(&mut self, node: Node, end: usize, anchor: usize) -> Result<(), TreeError> {
        if anchor != 0 {
            let start = match node.origin {
                Origin::File { start, .. } => start,
                _ => end,
            };
            self.spend(weigh(&node.value), start, end)?;
            self.anchors.insert(anchor, Rc::new(node.clone()));
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(open) => {
                open.end = end;
                match &mut open.so_far {
                    SoFar::List(items) => items.push(node),
                    SoFar::Map { entries, key, .. } => entries.extend(key.take().map(|key| (key, node))),
                }
            }
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { so_far: SoFar::Map { key: None, .. }, .. }))
    }

    fn key(&mut self, name: String, style: ScalarStyle, origin: Origin, anchor: usize) -> Result<(), TreeError> {
        let (start, end) = match origin {
            Origin::File { start, end } => (start, end),
            _ => (0, 0),
        };
        let plain = style == ScalarStyle::Plain;
        let wrong = if plain && start == end {
            Some("a key is missing before this `:`")
        } else if plain && name == "<<" {
            Some("merge keys (`<<`) are not read: write the keys out")
        } else if anchor != 0 {
            Some("an anchor on a key is not read: put it on the value")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return Err(self.wrong((wrong.to_owned(), None), start, end));
        }
        self.spend(Weight { nodes: 0, text: name.len(), depth: 0 }, start, end)?;
        let Some(Open { so_far: SoFar::Map { key, seen, .. }, .. }) = self.open.last_mut() else { return Ok(()) };
        let first = seen.get(&name).copied();
        seen.entry(name.clone()).or_insert(start);
        *key = Some(Key { name, origin });
        match first {
            None => Ok(()),
            Some(first) => {
                let (line, _) = position(self.text, first);
                let help = format!("it was first given in line {line}");
                Err(self.wrong(("this key is given twice in one map".to_owned(), Some(help)), start, end))
            }
        }
    }

    fn alias(&mut self, anchor: usize, start: usize, end: usize) -> Result<(), TreeError> {
        if self.wants_key() {
            return Err(self.wrong(("an alias is not read as a key".to_owned(), None), start, end));
        }
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.wrong(("this alias stands inside its own anchor".to_owned(), None), start, end));
        };
        let weight = weigh(&node.value);
        if self.open.len() + weight.depth > MAX_DEPTH {
            return Err(self.wrong(too_deep(), start, end));
        }
        self.spend(weight, start, end)?;
        self.put(Node::clone(&node), end, 0)
    }

    fn refuse_tag(&self, tagged: bool, span: &Span) -> Result<(), TreeError> {
        if !tagged {
            return Ok(());
        }
        let place = span.tag_span().and_then(|span| span.byte_range()).or(span.byte_range()).unwrap_or_default();
        let what = ("tags are not read".to_owned(), Some("leave it out; quotes make text".to_owned()));
        Err(self.wrong(what, place.start, place.end))
    }

    fn spend(&mut self, weight: Weight, start: usize, end: usize) -> Result<(), TreeError> {
        self.spent.nodes += weight.nodes;
        self.spent.text += weight.text;
        let message = if self.spent.nodes > MAX_NODES {
            format!("more than {MAX_NODES} values, counting the copies that anchors and aliases make")
        } else if self.spent.text > MAX_TEXT {
            format!("more than {MAX_TEXT} bytes of text, counting the copies that anchors and aliases make")
        } else {
            return Ok(());
        };
        Err(self.wrong((message, Some("keep large data in a table of its own".to_owned())), start, end))
    }

    fn wrong(&self, (message, help): Wrong, start: usize, end: usize) -> TreeError {
        TreeError { message, path: self.path(), origin: Origin::File { start, end }, help }
    }

    /// The path of what is being read.
    fn path(&self) -> String {
        self.open.iter().fold(String::new(), |path, open| match &open.so_far {
            SoFar::List(items) => tree::item(&path, items.len()),
            SoFar::Map { key: Some(key), .. } => tree::child(&path, &key.name),
            SoFar::Map { key: None, .. } => path,
        })
    }

    /// An error of the event parser, in words for someone who writes a scenario.
    fn syntax(&self, error: &ScanError) -> TreeError {
        let at = error.marker().byte_offset().unwrap_or(self.text.len());
        let help = |text: &str| Some(text.to_owned());
        let what = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(),
            ErrorKind::UnknownAnchor => ("there is no anchor of this name above".to_owned(), None),
            ErrorKind::MappingValueNotAllowed => {
                ("a `:` can not stand here".to_owned(), help("text with `: ` in it needs quotes"))
            }
            ErrorKind::UnexpectedCharacter { character } => {
                (format!("a plain word can not begin with `{character}`"), help("put the text in quotes"))
            }
            ErrorKind::UnclosedFlowCollection { open } => (format!("this `{open}` is not closed"), None),
            ErrorKind::UnclosedQuotedScalar => ("this quote is not closed".to_owned(), None),
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
                ("a tab can not indent".to_owned(), help("indent with spaces"))
            }
            ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
                (error.info(), help("check the indentation of this line and of those above it"))
            }
            _ => (error.info(), None),
        };
        self.wrong(what, at, at)
    }
}

fn too_deep() -> Wrong {
    (format!("lists and maps are nested more than {MAX_DEPTH} deep"), None)
}

/// What a scalar without quotes means.
fn plain(text: &str) -> Result<Value, Wrong> {
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
    if leading_zero || !unsigned.bytes().all(numeric) || !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
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

#[cfg(test)]
mod tests;
