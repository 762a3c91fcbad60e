//! Pages as text: what a reader would see, with numbered links, in screens.

use super::dom::{Dom, Kind, Node, parse};
use super::hidden::{Sheet, is_invisible};
use url::Url;

/// A page as text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page {
    /// Empty if it has none.
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    /// Targets of the links; number 1 is the first one.
    pub(super) links: Vec<Url>,
    /// Pieces of text that a reader would not see; they are left out.
    pub(super) hidden: usize,
    /// Whether the page was too large or too deep to be read whole.
    pub(super) cut: bool,
}

/// Tags whose contents are not text of the page.
const DROPPED: [&str; 15] = [
    "script", "style", "template", "noscript", "head", "iframe", "object", "canvas", "svg", "math", "audio", "video",
    "select", "datalist", "dialog",
];
/// Tags that stand on lines of their own.
const BLOCKS: [&str; 26] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "li",
    "main",
    "nav",
    "ol",
    "section",
    "summary",
    "tr",
    "ul",
    "caption",
    "body",
    "hr",
];
/// Tags that an empty line sets apart.
const APART: [&str; 9] = ["p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "pre"];

impl Page {
    /// Reads a page; `base` is its address.
    pub(super) fn of_html(html: &str, base: &Url) -> Page {
        let dom = parse(html);
        let sheet = Sheet::of(&dom);
        let mut writer = Writer {
            dom: &dom,
            sheet,
            base,
            page: Page { cut: dom.cut, ..Page::default() },
            line: String::new(),
            space: false,
            pre: 0,
            cells: 0,
            lists: Vec::new(),
            open: Vec::new(),
        };
        writer.write();
        writer.page
    }

    /// Takes a plain text as a page.
    pub(super) fn of_text(text: &str) -> Page {
        Page { lines: text.lines().map(str::to_string).collect(), ..Page::default() }
    }

    /// Splits it into screens of about as many words; at least one.
    pub(super) fn screens(&self, words: usize) -> Vec<String> {
        let mut screens = vec![String::new()];
        let mut count = 0;
        for line in &self.lines {
            let mut pieces: Vec<String> = vec![line.clone()];
            if line.split_whitespace().count() > words {
                let all: Vec<&str> = line.split_whitespace().collect();
                pieces = all.chunks(words).map(|chunk| chunk.join(" ")).collect();
            }
            for piece in pieces {
                let more = piece.split_whitespace().count();
                if count > 0 && count + more > words {
                    screens.push(String::new());
                    count = 0;
                }
                count += more;
                if let Some(screen) = screens.last_mut() {
                    screen.push_str(&piece);
                    screen.push('\n');
                }
            }
        }
        screens.iter().map(|screen| screen.trim_matches('\n').to_string()).collect()
    }
}

enum Step {
    Enter(usize),
    Leave(usize),
}

struct Writer<'a> {
    dom: &'a Dom,
    sheet: Sheet,
    base: &'a Url,
    page: Page,
    line: String,
    /// Whether a space belongs before the next word.
    space: bool,
    pre: usize,
    /// Table cells around the current place.
    cells: usize,
    /// Lists around the current place: the number of the next item, if it is numbered.
    lists: Vec<Option<usize>>,
    /// Links around the current place: their numbers.
    open: Vec<Option<usize>>,
}

impl Writer<'_> {
    fn write(&mut self) {
        let dom = self.dom;
        // No recursion: the depth of a page is the page's choice.
        let mut steps = vec![Step::Enter(0)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Leave(id) => self.leave(&dom.nodes[id]),
                Step::Enter(id) => {
                    let node = &dom.nodes[id];
                    if let Kind::Text(text) = &node.kind {
                        self.text(text);
                        continue;
                    }
                    if node.tag() == "head" && self.page.title.is_empty() {
                        self.page.title = title(dom, node);
                    }
                    if DROPPED.contains(&node.tag()) && !(node.tag() == "dialog" && node.attribute("open").is_some()) {
                        continue;
                    }
                    if self.sheet.hides(node) {
                        self.page.hidden += usize::from(has_text(dom, id));
                        continue;
                    }
                    self.enter(node);
                    steps.push(Step::Leave(id));
                    steps.extend(node.children.iter().rev().map(|&child| Step::Enter(child)));
                }
            }
        }
        self.end_line();
        while self.page.lines.last().is_some_and(String::is_empty) {
            self.page.lines.pop();
        }
    }

    fn enter(&mut self, node: &Node) {
        let tag = node.tag();
        self.break_for(tag);
        match tag {
            "br" => self.break_line(),
            "hr" => self.mark("---"),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = tag.as_bytes()[1] - b'0';
                self.mark(&"#".repeat(level.into()));
            }
            "ul" => self.lists.push(None),
            "ol" => self.lists.push(Some(1)),
            "li" => {
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(20));
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}.", *number - 1)
                    }
                    _ => "-".into(),
                };
                if self.cells == 0 {
                    self.line.push_str(&indent);
                }
                self.mark(&sign);
            }
            "td" | "th" => {
                if !self.line.is_empty() {
                    self.line.push_str(" |");
                }
                (self.space, self.cells) = (true, self.cells + 1);
            }
            "pre" => self.pre += 1,
            "img" => {
                if let Some(alt) = node.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "input" => {
                let kind = node.attribute("type").unwrap_or("text").to_ascii_lowercase();
                let value = node.attribute("value").or_else(|| node.attribute("placeholder")).unwrap_or_default();
                if kind != "hidden" && kind != "password" {
                    self.text(&format!("[field: {value}]"));
                }
            }
            "a" => {
                let number = self.target(node).map(|url| {
                    self.page.links.push(url);
                    self.page.links.len()
                });
                self.open.push(number);
            }
            _ => {}
        }
    }

    fn leave(&mut self, node: &Node) {
        match node.tag() {
            "ul" | "ol" => drop(self.lists.pop()),
            "td" | "th" => self.cells = self.cells.saturating_sub(1),
            "pre" => self.pre = self.pre.saturating_sub(1),
            "a" => {
                if let Some(number) = self.open.pop().flatten() {
                    // What follows may be a comma.
                    let space = std::mem::replace(&mut self.space, true);
                    self.word(&format!("[{number}]"));
                    self.space = space;
                }
            }
            _ => {}
        }
        self.break_for(node.tag());
    }

    /// Where a link leads, if it is to another page.
    fn target(&self, node: &Node) -> Option<Url> {
        let href = node.attribute("href").map(str::trim).filter(|href| !href.starts_with('#'))?;
        self.base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    }

    fn break_for(&mut self, tag: &str) {
        if APART.contains(&tag) {
            self.break_line();
            if self.cells == 0 && self.page.lines.last().is_some_and(|line| !line.is_empty()) {
                self.page.lines.push(String::new());
            }
        } else if BLOCKS.contains(&tag) {
            self.break_line();
        }
    }

    /// Ends the line; in a cell of a table only the word, so that a row stays one line.
    fn break_line(&mut self) {
        match self.cells {
            0 => self.end_line(),
            _ => self.space = true,
        }
    }

    fn end_line(&mut self) {
        let line = self.line.trim_end();
        if !line.is_empty() {
            self.page.lines.push(line.to_string());
        }
        self.line.clear();
        self.space = false;
    }

    /// Writes a word of our own.
    fn mark(&mut self, mark: &str) {
        self.word(mark);
        self.space = true;
    }

    fn word(&mut self, word: &str) {
        if self.space && !self.line.is_empty() && !self.line.ends_with(' ') {
            self.line.push(' ');
        }
        self.space = false;
        self.line.push_str(word);
    }

    fn text(&mut self, text: &str) {
        let visible: String = text.chars().filter(|&c| !is_invisible(c)).collect();
        self.page.hidden += usize::from(visible.len() < text.len());
        if self.pre > 0 && self.cells == 0 {
            for (at, line) in visible.split('\n').enumerate() {
                if at > 0 {
                    self.page.lines.push(std::mem::take(&mut self.line).trim_end().to_string());
                }
                self.line.push_str(line);
            }
            return;
        }
        self.space |= visible.starts_with(|c: char| c.is_whitespace());
        for word in visible.split_whitespace() {
            self.word(word);
            self.space = true;
        }
        self.space = visible.ends_with(|c: char| c.is_whitespace()) || (self.space && visible.trim().is_empty());
    }
}

fn title(dom: &Dom, head: &Node) -> String {
    let title = head.children.iter().map(|&id| &dom.nodes[id]).find(|node| node.tag() == "title");
    let text = title.into_iter().flat_map(|title| &title.children).filter_map(|&id| match &dom.nodes[id].kind {
        Kind::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text: String = text.collect::<String>().chars().filter(|&c| !is_invisible(c)).take(300).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_text(dom: &Dom, id: usize) -> bool {
    let mut ids = vec![id];
    while let Some(id) = ids.pop() {
        let node = &dom.nodes[id];
        match &node.kind {
            Kind::Text(text) if !text.trim().is_empty() => return true,
            _ if DROPPED.contains(&node.tag()) => {}
            _ => ids.extend(&node.children),
        }
    }
    false
}
