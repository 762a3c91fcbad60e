//! Reads the part of XML that files of graphs use: elements, attributes and text. Declarations of document types are refused, so
//! that nothing is expanded or fetched.

use super::limits::MAX_DEPTH;
use std::borrow::Cow;

/// The most attributes of one element.
const MOST_ATTRIBUTES: usize = 1000;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// An element begins.
    Start(Element<'a>),
    /// The last open element ends.
    End,
    /// Text inside an element.
    Text(Cow<'a, str>),
}

/// The begin of an element. Prefixes of namespaces are left out of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub name: &'a str,
    pub attributes: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Element<'a> {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_ref())
    }
}

/// Reads a document from its begin to its end.
pub(super) struct Xml<'a> {
    text: &'a str,
    /// Where the rest begins, in bytes.
    at: usize,
    /// The names of the open elements, with their prefixes.
    open: Vec<&'a str>,
    /// Whether the last begin of an element was its end, too.
    ends: bool,
    begun: bool,
}

impl<'a> Xml<'a> {
    pub fn new(text: &'a str) -> Self {
        Xml { text, at: 0, open: Vec::new(), ends: false, begun: false }
    }

    /// How many elements are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Where the part read last ends, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The text up to a mark, behind which reading goes on.
    fn up_to(&mut self, mark: &str, what: &str) -> Result<&'a str, String> {
        let rest = self.rest();
        let end = rest.find(mark).ok_or_else(|| format!("{what} is not closed"))?;
        self.at += end + mark.len();
        Ok(&rest[..end])
    }

    /// The next part; `None` at the end of the document.
    pub fn next(&mut self) -> Result<Option<Event<'a>>, String> {
        if std::mem::take(&mut self.ends) {
            self.open.pop();
            return Ok(Some(Event::End));
        }
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return match (self.open.last(), self.begun) {
                    (Some(name), _) => Err(format!("the element `{name}` is not closed")),
                    (None, false) => Err("there is no element; this is not XML".into()),
                    (None, true) => Ok(None),
                };
            }
            if rest.starts_with("<!--") {
                self.at += 4;
                self.up_to("-->", "a comment")?;
            } else if rest.starts_with("<?") {
                self.up_to("?>", "an instruction")?;
            } else if rest.starts_with("<![CDATA[") {
                self.at += 9;
                let text = self.up_to("]]>", "a section of CDATA")?;
                if self.open.is_empty() {
                    return Err("there is text outside of all elements".into());
                }
                return Ok(Some(Event::Text(text.into())));
            } else if rest.starts_with("<!") {
                return Err("document types and entities are not read; remove the declaration".into());
            } else if rest.starts_with("</") {
                self.at += 2;
                let name = self.up_to(">", "the end of an element")?.trim_end();
                let open = self.open.pop();
                if open != Some(name) {
                    let expected = open.map_or("no element is open".into(), |open| format!("`{open}` is open"));
                    return Err(format!("the element `{name}` ends, but {expected}"));
                }
                return Ok(Some(Event::End));
            } else if rest.starts_with('<') {
                return self.element().map(|element| Some(Event::Start(element)));
            } else {
                let text = &rest[..rest.find('<').unwrap_or(rest.len())];
                self.at += text.len();
                if !self.open.is_empty() {
                    return Ok(Some(Event::Text(unescaped(text)?)));
                }
                if !text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
                    return Err("there is text outside of all elements; this is not XML".into());
                }
            }
        }
    }

    fn skip_space(&mut self) -> bool {
        let rest = self.rest();
        let space = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        self.at += space;
        space > 0
    }

    fn name(&mut self) -> Result<&'a str, String> {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || "=<>/\"'&".contains(c)).unwrap_or(rest.len());
        self.at += end;
        match end {
            0 => Err("a name is missing".into()),
            _ => Ok(&rest[..end]),
        }
    }

    fn element(&mut self) -> Result<Element<'a>, String> {
        if self.begun && self.open.is_empty() {
            return Err("there are two outermost elements".into());
        }
        if self.open.len() == MAX_DEPTH {
            return Err(format!("elements are nested more than {MAX_DEPTH} deep"));
        }
        self.begun = true;
        self.at += 1;
        let name = self.name()?;
        let mut attributes: Vec<(&str, Cow<'a, str>)> = Vec::new();
        loop {
            let space = self.skip_space();
            if self.rest().starts_with("/>") {
                self.at += 2;
                self.ends = true;
                break;
            }
            if self.rest().starts_with('>') {
                self.at += 1;
                break;
            }
            if self.rest().is_empty() || !space {
                return Err(format!("the element `{name}` is not written as XML"));
            }
            let attribute = self.name()?;
            self.skip_space();
            let equals = self.rest().starts_with('=');
            self.at += usize::from(equals);
            self.skip_space();
            let quote = self.rest().get(..1).filter(|quote| equals && ["\"", "'"].contains(quote));
            let Some(quote) = quote else {
                return Err(format!("the attribute `{attribute}` of `{name}` needs a value in quotes"));
            };
            self.at += 1;
            let value = unescaped(self.up_to(quote, "a quote")?)?;
            if attributes.len() == MOST_ATTRIBUTES {
                return Err(format!("the element `{name}` has more than {MOST_ATTRIBUTES} attributes"));
            }
            // `xmlns:viz` is not the attribute `viz`.
            if attribute != "xmlns" && !attribute.starts_with("xmlns:") {
                if attributes.iter().any(|(other, _)| *other == local(attribute)) {
                    return Err(format!("the element `{name}` has the attribute `{attribute}` twice"));
                }
                attributes.push((local(attribute), value));
            }
        }
        self.open.push(name);
        Ok(Element { name: local(name), attributes })
    }
}

/// A name without the prefix of its namespace.
fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Replaces the references to characters.
fn unescaped(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('&') {
        return Ok(text.into());
    }
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let unknown = || format!("`&{}` is no reference to a character", part.split(';').next().unwrap_or(part));
        let (name, rest) = part.split_once(';').ok_or_else(unknown)?;
        let code = |digits: &str, base| u32::from_str_radix(digits, base).ok().and_then(char::from_u32);
        let found = match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
                (Some(digits), _) => code(digits, 16),
                (None, Some(digits)) => code(digits, 10),
                (None, None) => None,
            },
        };
        plain.push(found.ok_or_else(unknown)?);
        plain.push_str(rest);
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<String, String> {
        let mut xml = Xml::new(text);
        let mut shown = String::new();
        while let Some(event) = xml.next()? {
            match event {
                Event::Start(element) => {
                    shown.push_str(&format!("<{}", element.name));
                    element.attributes.iter().for_each(|(name, value)| shown.push_str(&format!(" {name}={value:?}")));
                    shown.push('>');
                }
                Event::End => shown.push_str("</>"),
                Event::Text(text) => shown.push_str(&text),
            }
        }
        assert_eq!(xml.depth(), 0);
        Ok(shown)
    }

    #[test]
    fn elements_attributes_and_text() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b -->\n<g xmlns='u' xmlns:v='w' a = \"1 &lt; 2\"\tb='\"'>x &amp; y\
                    <v:n c=''/><![CDATA[<&>]]></g >\n";
        assert_eq!(read(text).unwrap(), r#"<g a="1 < 2" b="\"">x & y<n c=""></><&></>"#);
        assert_eq!(read("<a>&#65;&#x1F600;</a>").unwrap(), "<a>A\u{1F600}</>");
    }

    #[test]
    fn what_is_not_read_is_an_error() {
        let cases = [
            ("", "there is no element; this is not XML"),
            ("node,other", "there is text outside of all elements; this is not XML"),
            ("<a>", "the element `a` is not closed"),
            ("<a></b>", "the element `b` ends, but `a` is open"),
            ("</a>", "the element `a` ends, but no element is open"),
            ("<a/><b/>", "there are two outermost elements"),
            ("<a b=1/>", "the attribute `b` of `a` needs a value in quotes"),
            ("<a b='1' b='2'/>", "the element `a` has the attribute `b` twice"),
            ("<a b='1'c='2'/>", "the element `a` is not written as XML"),
            ("<a b='1", "a quote is not closed"),
            ("<a>&lol;</a>", "`&lol` is no reference to a character"),
            ("<a>&#xD800;</a>", "`&#xD800` is no reference to a character"),
            (
                "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
                "document types and entities are not read; remove the declaration",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(read(text).unwrap_err(), message, "{text}");
        }
        let deep = |n| format!("{}{}", "<a>".repeat(n), "</a>".repeat(n));
        assert!(read(&deep(MAX_DEPTH)).is_ok());
        assert_eq!(read(&deep(MAX_DEPTH + 1)).unwrap_err(), "elements are nested more than 64 deep");
        let many = |n| format!("<a {}/>", (0..n).map(|i| format!("a{i}='' ")).collect::<String>());
        assert!(read(&many(MOST_ATTRIBUTES)).is_ok());
        assert!(read(&many(MOST_ATTRIBUTES + 1)).unwrap_err().contains("more than 1000 attributes"));
    }

    proptest! {
        #[test]
        fn no_pieces_panic(pieces in prop::collection::vec(prop::sample::select(
            vec!["<", ">", "/", "a", "b:", "=", "'", "\"", "&", ";", "#x", "41", "<!--", "-->", "<?", "?>", "<![CDATA[", "]]>", " ", "é"]), 0..50)) {
            let _ = read(&pieces.concat());
        }
    }
}
