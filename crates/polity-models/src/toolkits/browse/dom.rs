//! HTML as a tree. Parsing is html5ever's, so it is the standard's; this keeps the nodes in one list, and gives up on trees without end.

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

/// Nodes of a page. Unclosed formatting can multiply them far beyond the page's length.
const NODES: usize = 200_000;
/// Nesting of a page; browsers stop at 512.
const DEPTH: usize = 1_000;
/// Bytes between two looks at these limits.
const STEP: usize = 4_096;

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    Element(QualName, Vec<Attribute>),
    Text(String),
    /// The document, a comment, the contents of a template.
    Other,
}

/// A node, with the places of its relatives in the list.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    parent: Option<usize>,
    pub(super) children: Vec<usize>,
    depth: usize,
}

impl Node {
    /// Its tag, empty if it is no element.
    pub(super) fn tag(&self) -> &str {
        if let Kind::Element(name, _) = &self.kind { &name.local } else { "" }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let Kind::Element(_, attributes) = &self.kind else { return None };
        attributes.iter().find(|one| &*one.name.local == name).map(|one| &*one.value)
    }
}

/// A parsed page; node 0 is the document.
pub(super) struct Dom {
    pub(super) nodes: Vec<Node>,
    /// Whether the rest of the page was left out because it is too large or too deep.
    pub(super) cut: bool,
}

/// Parses a page. Every text is one.
pub(super) fn parse(html: &str) -> Dom {
    let sink = Sink::default();
    sink.add(Kind::Other);
    let mut parser = parse_document(sink, ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() && !parser.tokenizer.sink.sink.cut.get() {
        let (now, later) = rest.split_at(rest.floor_char_boundary(STEP));
        parser.process(StrTendril::from(now));
        rest = later;
    }
    parser.finish()
}

#[derive(Default)]
struct Sink {
    nodes: RefCell<Vec<Node>>,
    cut: Cell<bool>,
}

impl Sink {
    fn add(&self, kind: Kind) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node { kind, parent: None, children: Vec::new(), depth: 0 });
        if nodes.len() > NODES {
            self.cut.set(true);
        }
        nodes.len() - 1
    }

    /// Puts a node or a text among the children of `parent`, at `at` or at the end.
    fn insert(&self, parent: usize, at: Option<usize>, child: NodeOrText<usize>) {
        let end = self.nodes.borrow()[parent].children.len();
        let at = at.unwrap_or(end);
        let id = match child {
            NodeOrText::AppendNode(id) => {
                self.detach(id);
                id
            }
            NodeOrText::AppendText(text) => {
                let mut nodes = self.nodes.borrow_mut();
                let before = at.checked_sub(1).map(|before| nodes[parent].children[before]);
                if let Some(before) = before
                    && let Kind::Text(held) = &mut nodes[before].kind
                {
                    return held.push_str(&text);
                }
                drop(nodes);
                self.add(Kind::Text(text.to_string()))
            }
        };
        let mut nodes = self.nodes.borrow_mut();
        let depth = nodes[parent].depth + 1;
        (nodes[id].parent, nodes[id].depth) = (Some(parent), depth);
        let at = at.min(nodes[parent].children.len());
        nodes[parent].children.insert(at, id);
        if depth > DEPTH {
            self.cut.set(true);
        }
    }

    /// The parent of a node, and its place there. Moved nodes are usually near the end.
    fn place(&self, id: usize) -> Option<(usize, usize)> {
        let nodes = self.nodes.borrow();
        let parent = nodes[id].parent?;
        nodes[parent].children.iter().rposition(|&child| child == id).map(|at| (parent, at))
    }

    fn detach(&self, id: usize) {
        if let Some((parent, at)) = self.place(id) {
            let mut nodes = self.nodes.borrow_mut();
            nodes[parent].children.remove(at);
            nodes[id].parent = None;
        }
    }
}

/// The name of an element.
#[derive(Debug)]
struct Name(QualName);

impl ElemName for Name {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl TreeSink for Sink {
    type Handle = usize;
    type Output = Dom;
    type ElemName<'a> = Name;

    fn finish(self) -> Dom {
        Dom { nodes: self.nodes.into_inner(), cut: self.cut.get() }
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> usize {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a usize) -> Name {
        match &self.nodes.borrow()[*target].kind {
            Kind::Element(name, _) => Name(name.clone()),
            Kind::Text(_) | Kind::Other => Name(QualName::new(None, Namespace::default(), LocalName::default())),
        }
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> usize {
        self.add(Kind::Element(name, attributes))
    }

    fn create_comment(&self, _: StrTendril) -> usize {
        self.add(Kind::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> usize {
        self.add(Kind::Other)
    }

    fn append(&self, parent: &usize, child: NodeOrText<usize>) {
        self.insert(*parent, None, child);
    }

    fn append_based_on_parent_node(&self, element: &usize, previous: &usize, child: NodeOrText<usize>) {
        match self.place(*element) {
            Some((parent, at)) => self.insert(parent, Some(at), child),
            None => self.insert(*previous, None, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// Contents of templates are never shown: they hang on no other node.
    fn get_template_contents(&self, _: &usize) -> usize {
        self.add(Kind::Other)
    }

    fn same_node(&self, one: &usize, other: &usize) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &usize, node: NodeOrText<usize>) {
        if let NodeOrText::AppendNode(id) = &node {
            self.detach(*id);
        }
        if let Some((parent, at)) = self.place(*sibling) {
            self.insert(parent, Some(at), node);
        }
    }

    fn add_attrs_if_missing(&self, target: &usize, attributes: Vec<Attribute>) {
        if let Kind::Element(_, held) = &mut self.nodes.borrow_mut()[*target].kind {
            for attribute in attributes {
                if held.iter().all(|one| one.name != attribute.name) {
                    held.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &usize) {
        self.detach(*target);
    }

    fn reparent_children(&self, node: &usize, parent: &usize) {
        let children = std::mem::take(&mut self.nodes.borrow_mut()[*node].children);
        for child in children {
            self.nodes.borrow_mut()[child].parent = None;
            self.insert(*parent, None, NodeOrText::AppendNode(child));
        }
    }
}
