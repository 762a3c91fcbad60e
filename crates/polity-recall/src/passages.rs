//! Documents, and the passages they are cited by.

use crate::date::Date;
use std::collections::BTreeMap;
use std::ops::Range;

/// A document to be searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Its id, unique among the documents. A citation is the id, `#`, and the number of a passage.
    pub id: String,
    /// Its title; may be empty.
    pub title: String,
    /// Its text. Blank lines separate paragraphs.
    pub text: String,
    /// The day on which it became known, if that is known.
    pub date: Option<Date>,
}

/// A document that cannot be indexed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Its id would make citations ambiguous.
    #[error(
        "document {number} has the id `{id}`; an id needs at least one character, no space at its ends, no brackets, no control \
         characters, and no `#` with a number at its end"
    )]
    Id {
        /// Its place among the documents, from 1.
        number: usize,
        /// The id.
        id: String,
    },
    /// Another document has the same id.
    #[error("documents {first} and {second} both have the id `{id}`; give every document an id of its own")]
    Twice {
        /// The id.
        id: String,
        /// The place of the first, from 1.
        first: usize,
        /// The place of the second, from 1.
        second: usize,
    },
    /// It has neither a title nor a text.
    #[error("document `{id}` has neither a title nor a text; remove it")]
    Empty {
        /// Its id.
        id: String,
    },
}

/// A passage of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage<'a> {
    /// The document.
    pub document: &'a Document,
    /// Its number in the document, from 1.
    pub number: u32,
    /// Its text: a part of the document's.
    pub text: &'a str,
}

impl Passage<'_> {
    /// Returns what cites it: `doc#3` is the third passage of the document `doc`.
    #[must_use]
    pub fn citation(&self) -> String {
        format!("{}#{}", self.document.id, self.number)
    }
}

/// Splits a citation into the document's id and the number of the passage, if it is one.
pub(crate) fn split_citation(citation: &str) -> Option<(&str, u32)> {
    let (id, number) = citation.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Some((id, number.parse().ok()?)) } else { None }
}

/// Checks that every document can be cited and has something to find.
pub(crate) fn check(documents: &[Document]) -> Result<(), DocumentError> {
    let mut seen = BTreeMap::new();
    for (i, document) in documents.iter().enumerate() {
        let Document { id, .. } = document;
        let number = i + 1;
        let ambiguous = id.rsplit_once('#').is_some_and(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
        if id.is_empty() || id.trim() != id || id.contains(|c: char| c.is_control() || "[]".contains(c)) || ambiguous {
            return Err(DocumentError::Id { number, id: id.clone() });
        }
        if let Some(first) = seen.insert(id.as_str(), number) {
            return Err(DocumentError::Twice { id: id.clone(), first, second: number });
        }
        if document.title.trim().is_empty() && document.text.trim().is_empty() {
            return Err(DocumentError::Empty { id: id.clone() });
        }
    }
    Ok(())
}

/// Splits a text into passages of at most `most` words, as byte ranges. Consecutive paragraphs share a passage while they fit; a longer
/// paragraph is cut after the last sentence that fits, or else after the last word. A text without words is one empty passage.
pub(crate) fn split(text: &str, most: usize) -> Vec<Range<usize>> {
    let mut passages: Vec<Range<usize>> = Vec::new();
    let mut open: Option<(Range<usize>, usize)> = None;
    for (piece, words) in paragraphs(text).into_iter().flat_map(|paragraph| cut(text, paragraph, most)) {
        open = match open {
            Some((range, count)) if count + words <= most => Some((range.start..piece.end, count + words)),
            before => {
                passages.extend(before.map(|(range, _)| range));
                Some((piece, words))
            }
        };
    }
    passages.extend(open.map(|(range, _)| range));
    if passages.is_empty() {
        passages.push(0..0);
    }
    passages
}

/// Returns the paragraphs of a text without the space around them: what blank lines separate.
fn paragraphs(text: &str) -> Vec<Range<usize>> {
    let mut paragraphs: Vec<Range<usize>> = Vec::new();
    let (mut place, mut begins) = (0, true);
    for line in text.split_inclusive('\n') {
        let (start, trimmed) = (place, line.trim());
        place += line.len();
        if trimmed.is_empty() {
            begins = true;
            continue;
        }
        let start = start + (line.len() - line.trim_start().len());
        let end = start + trimmed.len();
        match paragraphs.last_mut() {
            Some(last) if !begins => last.end = end,
            _ => paragraphs.push(start..end),
        }
        begins = false;
    }
    paragraphs
}

/// Returns the words of a part of a text: what white space separates.
fn word_ranges(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut place = part.start;
    for piece in text[part].split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        if !word.is_empty() {
            words.push(place..place + word.len());
        }
        place += piece.len();
    }
    words
}

/// Cuts a paragraph into pieces of at most `most` words; returns each with its number of words.
fn cut(text: &str, paragraph: Range<usize>, most: usize) -> Vec<(Range<usize>, usize)> {
    let words = word_ranges(text, paragraph);
    let ends_sentence = |word: &Range<usize>| {
        text[word.clone()].trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['.', '!', '?'])
    };
    let mut pieces = Vec::new();
    let mut rest = words.as_slice();
    while let (Some(first), Some(last)) = (rest.first(), rest.last()) {
        if rest.len() <= most {
            pieces.push((first.start..last.end, rest.len()));
            break;
        }
        let sentence = rest[..most].iter().rposition(ends_sentence);
        let count = sentence.map_or(most, |last| last + 1);
        pieces.push((first.start..rest[count - 1].end, count));
        rest = &rest[count..];
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str, most: usize) -> Vec<&str> {
        split(text, most).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn paragraphs_share_a_passage_while_they_fit() {
        let text = "one two\n\nthree\nfour\n \n\nfive six seven\n";
        assert_eq!(texts(text, 4), ["one two\n\nthree\nfour", "five six seven"]);
        assert_eq!(texts(text, 3), ["one two", "three\nfour", "five six seven"]);
        assert_eq!(texts(text, 100), ["one two\n\nthree\nfour\n \n\nfive six seven"]);
        assert_eq!(texts("", 5), [""]);
        assert_eq!(texts(" \n\n ", 5), [""]);
    }

    #[test]
    fn long_paragraphs_are_cut_after_sentences() {
        let text = "It rains. “It pours!” Nobody went out that day because of it.";
        assert_eq!(texts(text, 6), ["It rains. “It pours!”", "Nobody went out that day because", "of it."]);
        assert_eq!(texts("a b c d e", 2), ["a b", "c d", "e"]);
        assert_eq!(texts("a b c d e", 1), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn citations_are_an_id_and_a_number() {
        assert_eq!(split_citation("doc#3"), Some(("doc", 3)));
        assert_eq!(split_citation("a#b#12"), Some(("a#b", 12)));
        for text in ["doc", "doc#", "doc#x", "doc#-1", "doc#+1", "doc#99999999999"] {
            assert_eq!(split_citation(text), None, "{text}");
        }
    }

    #[test]
    fn documents_that_can_not_be_cited_are_refused() {
        let document = |id: &str, text: &str| Document { id: id.into(), text: text.into(), ..Document::default() };
        for id in ["", " a", "a ", "a]", "[a", "a\nb", "a#1", "a#"] {
            let error = check(&[document("fine", "x"), document(id, "x")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("document 2 has the id `{id}`; ")), "{error}");
        }
        check(&[document("a#b", "x"), document("a b/ü.md", "x")]).unwrap();
        let twice = [document("a", "x"), document("b", "x"), document("a", "y")];
        let error = check(&twice).unwrap_err().to_string();
        assert_eq!(error, "documents 1 and 3 both have the id `a`; give every document an id of its own");
        let error = check(&[document("a", " \n")]).unwrap_err().to_string();
        assert_eq!(error, "document `a` has neither a title nor a text; remove it");
    }

    proptest! {
        #[test]
        fn passages_hold_every_word_once_and_no_more_than_the_limit(text in "([a-zé.]{0,3}[ \n]{0,3}){0,60}", most in 1usize..9) {
            let passages = texts(&text, most);
            let words: Vec<&str> = passages.iter().flat_map(|passage| passage.split_whitespace()).collect();
            prop_assert_eq!(words, text.split_whitespace().collect::<Vec<_>>());
            prop_assert!(passages.iter().all(|passage| passage.split_whitespace().count() <= most));
            prop_assert!(passages.iter().all(|passage| passage.trim() == *passage));
        }
    }
}
