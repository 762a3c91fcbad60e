//! Documents that are searched passage by passage.

use crate::bm25::{Bm25, Bm25Settings};
use crate::date::Date;
use crate::dense::Dense;
use crate::passages::{Document, DocumentError, Passage, check, split, split_citation};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// How passages are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By the words that they share with the query: BM25.
    #[default]
    Bm25,
    /// By the cosine of hashed vectors of words, pairs of words and parts of words. It also finds words that are written differently.
    Dense,
    /// By both rankings: reciprocal rank fusion.
    Hybrid,
}

/// Settings of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How passages are ranked.
    pub method: Method,
    /// Parameters of BM25.
    pub bm25: Bm25Settings,
    /// Dimensions of the vectors, at least 1.
    pub dimensions: usize,
    /// The most words of a passage, at least 1.
    pub passage_words: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { method: Method::Bm25, bm25: Bm25Settings::default(), dimensions: 512, passage_words: 200 }
    }
}

/// A passage that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'a> {
    /// The passage.
    pub passage: Passage<'a>,
    /// BM25, the cosine, or the sum of reciprocal ranks. Scores of one search compare; those of two searches do not.
    pub score: f64,
}

/// An index of documents. The title of a document counts as a part of each of its passages.
///
/// ```
/// use polity_recall::{Document, Index, Settings};
///
/// let document = |id: &str, date: &str, text: &str| {
///     Document { id: id.into(), text: text.into(), date: date.parse().ok(), ..Document::default() }
/// };
/// let documents = vec![
///     document("budget", "2024-03-01", "The council cut the budget.\n\nParks lose most."),
///     document("harvest", "2023-09-01", "The harvest was good."),
/// ];
/// let index = Index::new(documents, &Settings { passage_words: 6, ..Settings::default() })?;
/// let cited = |query: &str, before: Option<&str>| -> Vec<String> {
///     let before = before.map(|day| day.parse().unwrap());
///     index.search(query, 5, before).iter().map(|hit| hit.passage.citation()).collect()
/// };
/// assert_eq!(cited("what do the parks lose", None), ["budget#2", "budget#1", "harvest#1"]);
/// assert_eq!(cited("the budget", Some("2024-03-01")), ["harvest#1"]);
/// # Ok::<(), polity_recall::DocumentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    documents: Vec<Document>,
    /// In order of date, undated ones last; those of one day in order of document. So the passages before any day come first.
    passages: Vec<Place>,
    /// The position in `passages` of every document's first passage, by id.
    by_id: BTreeMap<Box<str>, usize>,
    bm25: Option<Bm25>,
    dense: Option<Dense>,
}

/// Where a passage is.
#[derive(Clone, Debug)]
struct Place {
    document: u32,
    /// From 1.
    number: u32,
    text: Range<usize>,
}

impl Index {
    /// Indexes documents, of which there may be none.
    ///
    /// # Errors
    /// A document that cannot be cited, has the id of another, or is empty.
    pub fn new(documents: Vec<Document>, settings: &Settings) -> Result<Index, DocumentError> {
        check(&documents)?;
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.sort_by_key(|i| (documents[*i].date.is_none(), documents[*i].date));
        let (mut passages, mut by_id) = (Vec::new(), BTreeMap::new());
        for i in order {
            by_id.insert(documents[i].id.as_str().into(), passages.len());
            let split = split(&documents[i].text, settings.passage_words.max(1));
            let place = |(text, number)| Place { document: i as u32, number, text };
            passages.extend(split.into_iter().zip(1..).map(place));
        }
        let texts = || {
            passages.iter().map(|place: &Place| {
                let document = &documents[place.document as usize];
                format!("{}\n{}", document.title, &document.text[place.text.clone()])
            })
        };
        let bm25 = (settings.method != Method::Dense).then(|| Bm25::new(texts(), settings.bm25));
        let dense = (settings.method != Method::Bm25).then(|| Dense::new(texts(), settings.dimensions));
        Ok(Index { documents, passages, by_id, bm25, dense })
    }

    /// Returns the documents, as they were given.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the number of passages.
    #[must_use]
    pub fn passage_count(&self) -> usize {
        self.passages.len()
    }

    /// Returns the `k` passages that fit a query best, the best first; ties go to the document that was given first, then to its first
    /// passage. Passages that have nothing in common with the query are left out.
    ///
    /// `before` leaves out documents dated on that day or later, and undated ones, as if they did not exist: the result is that of an
    /// index without them.
    #[must_use]
    pub fn search(&self, query: &str, k: usize, before: Option<Date>) -> Vec<Hit<'_>> {
        let first = match before {
            Some(day) => self
                .passages
                .partition_point(|place| self.documents[place.document as usize].date.is_some_and(|date| date < day)),
            None => self.passages.len(),
        };
        let found = match (&self.bm25, &self.dense) {
            (Some(bm25), Some(dense)) => {
                let depth = k.max(FUSED);
                let rankings = [bm25.scores(query, first), dense.cosines(query, first)];
                self.best(fuse(&rankings.map(|scores| self.best(scores, depth))), k)
            }
            (Some(bm25), None) => self.best(bm25.scores(query, first), k),
            (None, Some(dense)) => self.best(dense.cosines(query, first), k),
            (None, None) => Vec::new(),
        };
        found.into_iter().map(|(place, score)| Hit { passage: self.at(place as usize), score }).collect()
    }

    /// Returns a document and its passages.
    #[must_use]
    pub fn document(&self, id: &str) -> Option<(&Document, Vec<Passage<'_>>)> {
        let first = *self.by_id.get(id)?;
        let document = self.passages[first].document;
        let own = self.passages[first..].iter().take_while(|place| place.document == document).count();
        let passages = (first..first + own).map(|place| self.at(place)).collect();
        Some((&self.documents[document as usize], passages))
    }

    /// Returns the passage of a citation, such as `doc#3`.
    #[must_use]
    pub fn passage(&self, citation: &str) -> Option<Passage<'_>> {
        let (id, number) = split_citation(citation)?;
        let (_, passages) = self.document(id)?;
        passages.into_iter().find(|passage| passage.number == number)
    }

    fn at(&self, place: usize) -> Passage<'_> {
        let Place { document, number, text } = &self.passages[place];
        let document = &self.documents[*document as usize];
        Passage { document, number: *number, text: &document.text[text.clone()] }
    }

    /// Returns the `k` best of scored passages, the best first.
    fn best(&self, mut scores: Vec<(u32, f64)>, k: usize) -> Vec<(u32, f64)> {
        let given = |place: u32| {
            let Place { document, number, .. } = self.passages[place as usize];
            (document, number)
        };
        let better = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then_with(|| given(a.0).cmp(&given(b.0)));
        if 0 < k && k < scores.len() {
            scores.select_nth_unstable_by(k - 1, better);
        }
        scores.truncate(k);
        scores.sort_unstable_by(better);
        scores
    }
}

/// How many of the best passages of each ranking are fused, unless more are asked for.
const FUSED: usize = 100;
/// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
const RANK_OFFSET: f64 = 60.0;

/// Fuses rankings: each passage gets the sum of 1 / (60 + rank), with ranks from 1.
fn fuse(rankings: &[Vec<(u32, f64)>]) -> Vec<(u32, f64)> {
    let mut fused: BTreeMap<u32, f64> = BTreeMap::new();
    for ranking in rankings {
        for (i, (place, _)) in ranking.iter().enumerate() {
            *fused.entry(*place).or_default() += 1.0 / (RANK_OFFSET + (i + 1) as f64);
        }
    }
    fused.into_iter().collect()
}
