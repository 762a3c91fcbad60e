//! Renders tree errors for a person: the location, the lines around it, and what to do.

use std::fmt::{self, Display};

use crate::printable::{masked, on_one_line, printable};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};
use polity_kernel::tree::{Origin, TreeError};

/// Longest line shown whole, in bytes; a longer one is cut to a window around the error.
const WIDEST: usize = 200;

/// The line and column of a byte offset, both from 1, the column in characters. An offset past the end is the end. A
/// line ends where YAML says: at LF, CR LF or a lone CR.
pub fn position(text: &str, byte: usize) -> (usize, usize) {
    let byte = text.floor_char_boundary(byte);
    let bytes = text.as_bytes();
    let (mut line, mut line_start) = (1, 0);
    for (at, b) in bytes[..byte].iter().enumerate() {
        if *b == b'\n' || *b == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
            (line, line_start) = (line + 1, at + 1);
        }
    }
    (line, text[line_start..byte].chars().count() + 1)
}

/// Renders the error with its location in the source (`file_name:line:column`), the lines around it and the help. An error in a `-P` edit
/// is shown in the edit's text.
pub fn render(error: &TreeError, file_name: &str, source: &str, colour: bool) -> String {
    let shown = Shown {
        headline: printable(&error.to_string()).into_owned(),
        help: error.help.as_deref().map(|help| printable(help).into_owned()),
        excerpt: match &error.origin {
            Origin::File { start, end } => Some(Excerpt::new(file_name, source, *start, *end)),
            Origin::Edit(edit) => Some(Excerpt::new("-P", edit, 0, edit.len())),
            Origin::Built => None,
        },
    };
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(100);
    let mut text = String::new();
    match handler.render_report(&mut text, &shown) {
        Ok(()) => text,
        Err(_) => format!("{}\n", shown.headline),
    }
}

/// An error and its excerpt.
#[derive(Debug)]
struct Shown {
    headline: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, excerpt.span))))
    }
}

/// The few lines around an error.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: String,
    /// The error's place in `text`.
    span: SourceSpan,
    /// Where `text` begins in the source, from 0.
    first_line: usize,
    /// Where the error begins in the source, from 0.
    column: usize,
}

impl Excerpt {
    fn new(name: &str, source: &str, start: usize, end: usize) -> Excerpt {
        let start = source.floor_char_boundary(start);
        let line_start = after_newline(&source[..start]);
        let line_end = source[start..].find(['\r', '\n']).map_or(source.len(), |newline| start + newline);
        // Mark only the first line: a map that lacks a key may span pages.
        let end = source.floor_char_boundary(end.clamp(start, line_end));
        let above = after_newline(&source[..line_start.saturating_sub(1)]);
        let mut breaks = source[start..].match_indices('\n').map(|(newline, _)| start + newline);
        let below = breaks.nth(1).unwrap_or(source.len());
        let narrow = source[above..below].lines().all(|line| line.len() <= WIDEST);
        let (from, to) = match narrow {
            true => (above, below),
            false => {
                let from = source.floor_char_boundary(start.saturating_sub(WIDEST / 4).max(line_start));
                (from, source.floor_char_boundary((from + WIDEST).min(line_end)))
            }
        };
        let first_line = position(source, from).0 - 1;
        let column = position(source, start).1 - 1;
        let span = SourceSpan::new((start - from).into(), end.min(to) - start);
        // Keeps its length, so that offsets stay valid.
        let text = masked(&source[from..to]).into_owned();
        Excerpt { name: on_one_line(name).into_owned(), text, span, first_line, column }
    }
}

/// Start of the last line of a text.
fn after_newline(text: &str) -> usize {
    text.rfind('\n').map_or(0, |newline| newline + 1)
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        let column = if inner.span().offset() == self.span.offset() { self.column } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line() + self.first_line,
            column,
            inner.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(start: usize, end: usize) -> TreeError {
        TreeError {
            message: "unknown key `frction`".into(),
            path: "world.frction".into(),
            origin: Origin::File { start, end },
            help: Some("known keys: fraction".into()),
        }
    }

    /// The rendered error at the first `word` of a source.
    fn shown(source: &str, word: &str) -> String {
        let start = source.find(word).unwrap();
        render(&error(start, start + word.len()), "demo.yaml", source, false)
    }

    #[test]
    fn an_error_shows_its_lines_its_place_and_its_help() {
        let text = shown("seed: 1\nworld:\n  frction: 0.5\n  rounds: 3\nend: 1\n", "frction");
        let expected = "  × world.frction: unknown key `frction`
   ╭─[demo.yaml:3:3]
 2 │ world:
 3 │   frction: 0.5
   ·   ───────
 4 │   rounds: 3
   ╰────
  help: known keys: fraction
";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(position("é🔑x", 6), (1, 3));
        assert_eq!(position("a\r\nb", 3), (2, 1));
        assert_eq!(position("a\rb", 2), (2, 1));
        assert_eq!(position("a\n", 99), (2, 1));
        assert!(shown("a: {é🔑: 1, frction: 2}", "frction").contains("[demo.yaml:1:12]"));
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        let error = error(0, 1);
        assert!(render(&error, "x", "abc", true).contains('\u{1b}'));
        assert!(!render(&error, "x", "abc", false).contains('\u{1b}'));
    }

    #[test]
    fn a_file_can_not_steer_the_terminal() {
        let source = "a: \u{1b}[31m\u{9b}5m frction\u{7}";
        let text = shown(source, "frction");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        let excerpt = Excerpt::new("demo.yaml", source, source.find("frction").unwrap(), source.len() - 1);
        let from = excerpt.span.offset();
        assert_eq!(&excerpt.text[from..from + excerpt.span.len()], "frction");
    }

    #[test]
    fn a_long_line_is_shown_through_a_window() {
        let source = format!("a: 1\nb: [{}frction, {}]\n", "one, ".repeat(100_000), "two, ".repeat(100_000));
        let text = shown(&source, "frction");
        assert!(text.contains("frction") && text.contains("[demo.yaml:2:500005]"), "{text}");
        assert!(text.len() < 2000, "{} bytes", text.len());
    }

    #[test]
    fn edits_are_shown_as_they_were_given() {
        let edit = TreeError { origin: Origin::Edit("world.frction=2".into()), ..error(0, 0) };
        let text = render(&edit, "demo.yaml", "seed: 1", false);
        assert!(text.contains("[-P:1:1]") && text.contains("world.frction=2"), "{text}");
        let built = TreeError { origin: Origin::Built, ..error(0, 0) };
        let expected = "  × world.frction: unknown key `frction`\n  help: known keys: fraction\n";
        assert_eq!(render(&built, "demo.yaml", "seed: 1", false), expected);
    }

    proptest! {
        #[test]
        fn any_place_in_any_text_is_shown(
            source in "([a-z: ]|é|🔑|\\n|\\r|\\t|\u{1b}){0,300}",
            start in 0..1500_usize,
            len in 0..1500_usize,
        ) {
            let text = render(&error(start, start + len), "demo.yaml", &source, false);
            let (line, column) = position(&source, start);
            let place = format!("[demo.yaml:{line}:{column}]");
            prop_assert!(text.contains(&place), "{place} is not in\n{text}");
        }
    }
}
