//! BM25: texts ranked by the words of a query that they contain.

use crate::words;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How much a rare word counts more than a common one. `n` is the number of texts, `m` the number of them that have the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idf {
    /// ln(1 + (n - m + 0.5) / (m + 0.5)), as in Lucene. It is never negative.
    #[default]
    Lucene,
    /// ln((n - m + 0.5) / (m + 0.5)), by Robertson and Spärck Jones. A word in more than half of the texts would count negatively; it
    /// counts a quarter of the mean over all words instead, as in the Python package rank-bm25.
    Okapi,
}

/// Parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bm25Settings {
    /// How much further occurrences of a word count: 0 for not at all. At least 0.
    pub k1: f64,
    /// How much long texts are held back: 0 for not at all, 1 in proportion to their length.
    pub b: f64,
    /// How much a rare word counts more than a common one.
    pub idf: Idf,
}

impl Default for Bm25Settings {
    fn default() -> Self {
        Bm25Settings { k1: 1.2, b: 0.75, idf: Idf::Lucene }
    }
}

/// Occurrences of a word in a text.
#[derive(Clone, Copy, Debug)]
struct Posting {
    text: u32,
    count: u32,
}

/// An inverted index of texts, in a given order, which scores them by Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance
/// Framework: BM25 and Beyond", 2009). The words are those of [`words`](crate::words): there are no stop words and no stems.
///
/// ```
/// use polity_recall::{Bm25, Bm25Settings};
///
/// let texts = ["the river and the tide", "the moon", "a moon, another moon"];
/// let index = Bm25::new(texts, Bm25Settings::default());
/// let scores = index.scores("moon", index.len());
/// assert_eq!(scores.iter().map(|(text, _)| *text).collect::<Vec<_>>(), [1, 2]);
/// // Among the first two texts, as if there were no others.
/// assert_eq!(index.scores("moon", 2).len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Bm25 {
    settings: Bm25Settings,
    /// Where each word occurs, in order of text.
    postings: BTreeMap<Box<str>, Box<[Posting]>>,
    /// Words in all texts before each, and in all.
    before: Vec<u64>,
    /// The mean weight of all words, if the weights are [`Idf::Okapi`]; else 0.
    mean_idf: f64,
}

impl Bm25 {
    /// Indexes texts.
    #[must_use]
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, settings: Bm25Settings) -> Self {
        let mut growing: BTreeMap<Box<str>, Vec<Posting>> = BTreeMap::new();
        let mut before = vec![0];
        let mut total = 0;
        for (i, text) in texts.into_iter().enumerate() {
            let mut words: Vec<String> = words(text.as_ref()).collect();
            total += words.len() as u64;
            before.push(total);
            words.sort_unstable();
            for same in words.chunk_by(|a, b| a == b) {
                let posting = Posting { text: i as u32, count: same.len() as u32 };
                match growing.get_mut(same[0].as_str()) {
                    Some(postings) => postings.push(posting),
                    None => _ = growing.insert(same[0].as_str().into(), vec![posting]),
                }
            }
        }
        let postings = growing.into_iter().map(|(word, postings)| (word, postings.into_boxed_slice())).collect();
        let mut index = Bm25 { settings, postings, before, mean_idf: 0.0 };
        if settings.idf == Idf::Okapi {
            index.mean_idf = index.mean_okapi(index.len());
        }
        index
    }

    /// Returns the number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.len() - 1
    }

    /// Returns whether there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Scores those of the `first` texts that have a word of the query, in order of text. Texts behind them count for nothing: the scores
    /// are those of an index without them. A word that the query has twice counts twice.
    #[must_use]
    pub fn scores(&self, query: &str, first: usize) -> Vec<(u32, f64)> {
        const UNFOUND: f64 = f64::NEG_INFINITY;
        let first = first.min(self.len());
        let mean = self.before[first] as f64 / first as f64;
        let Bm25Settings { k1, b, .. } = self.settings;
        let (fixed, by_length) = (k1 * (1.0 - b), k1 * b / mean);
        let mut scores = vec![UNFOUND; first];
        let mut mean_idf = None;
        for (word, times) in counted(query) {
            let postings = self.postings.get(word.as_str()).map_or(&[][..], |all| among(all, first));
            if postings.is_empty() {
                continue;
            }
            let weight = times * self.idf(postings.len(), first, &mut mean_idf) * (k1 + 1.0);
            for posting in postings {
                let text = posting.text as usize;
                let length = (self.before[text + 1] - self.before[text]) as f64;
                let count = f64::from(posting.count);
                let score = &mut scores[text];
                if *score == UNFOUND {
                    *score = 0.0;
                }
                *score += weight * count / (count + fixed + by_length * length);
            }
        }
        (0u32..).zip(scores).filter(|(_, score)| *score != UNFOUND).collect()
    }

    /// Returns the weight of a word that `with` of the `first` texts have. `mean` keeps the mean over all words once it was needed.
    fn idf(&self, with: usize, first: usize, mean: &mut Option<f64>) -> f64 {
        let idf = idf(self.settings.idf, with, first);
        if idf >= 0.0 {
            return idf;
        }
        let all = first == self.len();
        0.25 * *mean.get_or_insert_with(|| if all { self.mean_idf } else { self.mean_okapi(first) })
    }

    /// Returns the mean weight of the words that the `first` texts have.
    fn mean_okapi(&self, first: usize) -> f64 {
        let found = self.postings.values().map(|all| among(all, first).len()).filter(|with| *with > 0);
        let (sum, words) = found.fold((0.0, 0u64), |(sum, words), with| (sum + okapi(with, first), words + 1));
        sum / words as f64
    }
}

fn idf(form: Idf, with: usize, texts: usize) -> f64 {
    match form {
        Idf::Lucene => libm::log1p(((texts - with) as f64 + 0.5) / (with as f64 + 0.5)),
        Idf::Okapi => okapi(with, texts),
    }
}

fn okapi(with: usize, texts: usize) -> f64 {
    libm::log(((texts - with) as f64 + 0.5) / (with as f64 + 0.5))
}

/// Returns the postings in the `first` texts.
fn among(postings: &[Posting], first: usize) -> &[Posting] {
    &postings[..postings.partition_point(|posting| (posting.text as usize) < first)]
}

/// Returns the different words of a query with the number of their occurrences, in order of first appearance.
fn counted(query: &str) -> Vec<(String, f64)> {
    let mut counted: Vec<(String, f64)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for word in words(query) {
        match places.get(&word) {
            Some(place) => counted[*place].1 += 1.0,
            None => {
                places.insert(word.clone(), counted.len());
                counted.push((word, 1.0));
            }
        }
    }
    counted
}
