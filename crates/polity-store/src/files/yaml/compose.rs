//! Composes events into a tree and enforces the limits.

use std::collections::BTreeMap;
use std::rc::Rc;

use polity_kernel::tree::{self, Key, Node, Origin, TreeError, Value};
use serde_saphyr::granit_parser::{ErrorKind, Event, ScalarStyle, ScanError, Span, StructureStyle};

use super::scalar::{Wrong, plain};
use crate::files::limits::{MAX_DEPTH, MAX_NODES, MAX_TEXT};
use crate::files::render::position;

/// Share of the limits used by a tree.
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

/// An unfinished list or map.
struct Open {
    so_far: SoFar,
    start: usize,
    /// End of the last item read inside.
    end: usize,
    /// The anchor's number, 0 if none.
    anchor: usize,
    block: bool,
}

enum SoFar {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The key whose value comes next.
        key: Option<Key>,
        /// Where each key was first used.
        seen: BTreeMap<String, usize>,
    },
}

/// Builds the tree from events.
pub(super) struct Composer<'t> {
    text: &'t str,
    open: Vec<Open>,
    root: Option<Node>,
    /// Finished anchors, by number.
    anchors: BTreeMap<usize, Rc<Node>>,
    spent: Weight,
}

impl<'t> Composer<'t> {
    pub(super) fn new(text: &'t str) -> Composer<'t> {
        Composer { text, open: Vec::new(), root: None, anchors: BTreeMap::new(), spent: Weight::default() }
    }

    /// Returns the tree after the last event; an empty document is [`Value::Null`].
    pub(super) fn done(self) -> Node {
        let nothing = Node { value: Value::Null, origin: Origin::File { start: 0, end: 0 } };
        self.root.unwrap_or(nothing)
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), TreeError> {
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
            return Err(self.wrong(("a key must be a name, not a list or a map".to_owned(), None), start, end));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(self.wrong(too_deep(), start, end));
        }
        self.spend(Weight { nodes: 1, text: 0, depth: 0 }, start, end)?;
        self.open.push(Open { so_far, start, end, anchor, block: style == StructureStyle::Block });
        Ok(())
    }

    /// Completes the innermost list or map.
    fn finish(&mut self, end: usize) -> Result<(), TreeError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        // A block ends where its last entry ends, but the event comes at the start of what follows.
        let end = if open.block { open.end } else { end.max(open.end) };
        let value = match open.so_far {
            SoFar::List(items) => Value::List(items),
            SoFar::Map { entries, .. } => Value::Map(entries),
        };
        self.put(Node { value, origin: Origin::File { start: open.start, end } }, end, open.anchor)
    }

    /// Adds a finished node to its parent.
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
            Some("merge keys (`<<`) are not supported: write the keys out")
        } else if anchor != 0 {
            Some("an anchor on a key is not supported: put it on the value")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return Err(self.wrong((wrong.to_owned(), None), start, end));
        }
        self.spend(Weight { nodes: 0, text: name.len(), depth: 0 }, start, end)?;
        let Some(Open { so_far: SoFar::Map { key, seen, .. }, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        let first = seen.get(&name).copied();
        seen.entry(name.clone()).or_insert(start);
        *key = Some(Key { name, origin });
        match first {
            None => Ok(()),
            Some(first) => {
                let (line, _) = position(self.text, first);
                let help = format!("it was first given on line {line}");
                Err(self.wrong(("this key is given twice in one map".to_owned(), Some(help)), start, end))
            }
        }
    }

    fn alias(&mut self, anchor: usize, start: usize, end: usize) -> Result<(), TreeError> {
        if self.wants_key() {
            return Err(self.wrong(("an alias is not supported as a key".to_owned(), None), start, end));
        }
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.wrong(("this alias is inside its own anchor".to_owned(), None), start, end));
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
        let what =
            ("tags are not supported".to_owned(), Some("remove it; to make a value text, put it in quotes".to_owned()));
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

    /// The path of the value being read.
    fn path(&self) -> String {
        self.open.iter().fold(String::new(), |path, open| match &open.so_far {
            SoFar::List(items) => tree::item(&path, items.len()),
            SoFar::Map { key: Some(key), .. } => tree::child(&path, &key.name),
            SoFar::Map { key: None, .. } => path,
        })
    }

    /// Words a parser error for scenario authors.
    pub(super) fn syntax(&self, error: &ScanError) -> TreeError {
        let at = error.marker().byte_offset().unwrap_or(self.text.len());
        let help = |text: &str| Some(text.to_owned());
        let what = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(),
            ErrorKind::UnknownAnchor => ("there is no anchor of this name above".to_owned(), None),
            ErrorKind::MappingValueNotAllowed => {
                ("a `:` is not allowed here".to_owned(), help("text with `: ` in it needs quotes"))
            }
            ErrorKind::UnexpectedCharacter { character } => {
                (format!("a plain word cannot begin with `{character}`"), help("put the text in quotes"))
            }
            ErrorKind::UnclosedFlowCollection { open } => (format!("this `{open}` is not closed"), None),
            ErrorKind::UnclosedQuotedScalar => ("this quote is not closed".to_owned(), None),
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
                ("tabs cannot be used for indentation".to_owned(), help("indent with spaces"))
            }
            ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
                (error.info(), help("check the indentation of this line and of those above it"))
            }
            _ => (error.info(), None),
        };
        // No path: the parser reads ahead, so the error may be far from the value being composed.
        TreeError { message: what.0, path: String::new(), origin: Origin::File { start: at, end: at }, help: what.1 }
    }
}

fn too_deep() -> Wrong {
    (format!("lists and maps are nested more than {MAX_DEPTH} deep"), None)
}
