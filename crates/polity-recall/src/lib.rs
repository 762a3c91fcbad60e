//! Finds texts.
//!
//! - [`Index`] searches documents for a query and cites passages. It ranks by [`Bm25`], by the cosine of hashed vectors ([`Dense`]), or
//!   by both.
//! - [`nearest`] finds the texts of a small store that are most similar to a query, without an index. Texts are bags of hashed words
//!   ([`Bag`]); similarity is the cosine of the angle between two bags.
//! - [`similar_names`] finds what was meant by a mistyped name.
//!
//! In bags, words are hashed to a fixed number of buckets (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML
//! 2009), so there is no vocabulary and a text's bag does not depend on other texts. It is simple on purpose: it compares words,
//! not meanings.

mod bm25;
mod date;
mod dense;
mod index;
mod names;
mod passages;
#[cfg(test)]
mod tests;

pub use bm25::{Bm25, Bm25Settings, Idf};
pub use date::{Date, DateError};
pub use dense::Dense;
pub use index::{Hit, Index, Method, Settings};
pub use names::similar_names;
pub use passages::{Document, DocumentError, Passage};

use polity_kernel::digest::{Kind, RowHash};

/// Buckets that words are hashed to. In a text of a thousand distinct words, about two pairs share a bucket.
const BUCKETS: u64 = 1 << 18;

/// The word counts of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bag {
    /// (bucket, occurrences), in order of bucket; no count is 0.
    counts: Vec<(u32, f64)>,
    /// Euclidean norm of the counts.
    length: f64,
}

impl Bag {
    /// Makes the bag of a text from the hashes of its words.
    #[must_use]
    pub fn of(text: &str) -> Bag {
        Bag::of_hashes(hashes(text))
    }

    fn of_hashes(hashes: impl Iterator<Item = u64>) -> Bag {
        let mut buckets: Vec<u32> = hashes.map(|hash| (hash % BUCKETS) as u32).collect();
        buckets.sort_unstable();
        let counts: Vec<(u32, f64)> =
            buckets.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect();
        let length = counts.iter().map(|(_, n)| n * n).sum::<f64>().sqrt();
        Bag { counts, length }
    }

    /// Returns the similarity of two texts: 1 for the same words in the same proportions, 0 for no common word or an empty text.
    #[must_use]
    pub fn cosine(&self, other: &Bag) -> f64 {
        let (mut a, mut b) = (self.counts.iter().peekable(), other.counts.iter().peekable());
        let mut product = 0.0;
        while let (Some((left, m)), Some((right, n))) = (a.peek(), b.peek()) {
            if left == right {
                product += m * n;
            }
            let (step_a, step_b) = (left <= right, right <= left);
            a.next_if(|_| step_a);
            b.next_if(|_| step_b);
        }
        if product > 0.0 { product / (self.length * other.length) } else { 0.0 }
    }
}

/// Iterates over the words of a text, in order: runs of letters and digits, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Iterates over a hash of every word of a text, in order.
pub fn hashes(text: &str) -> impl Iterator<Item = u64> {
    words(text).map(|word| hash(word.as_bytes()))
}

fn hash(bytes: &[u8]) -> u64 {
    RowHash::new(Kind::Input, 0).bytes(bytes).finish() as u64
}

/// Returns the positions of the `k` texts of a store that are most similar to a query, the most similar first; ties go to the
/// newest, which are the last. A smaller store returns all of its texts.
#[must_use]
pub fn nearest<'a>(question: &str, store: impl IntoIterator<Item = &'a str>, k: usize) -> Vec<usize> {
    let question = Bag::of(question);
    let mut alike: Vec<(f64, usize)> =
        store.into_iter().enumerate().map(|(i, text)| (question.cosine(&Bag::of(text)), i)).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    alike.into_iter().take(k).map(|(_, i)| i).collect()
}

#[cfg(test)]
mod bag_tests {
    use super::*;
    use polity_kernel::rng::{Draws, Stream};
    use std::collections::BTreeMap;

    /// Computes the same from the words themselves, as in a textbook.
    fn plain(a: &str, b: &str) -> f64 {
        let counts = |text: &str| {
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                *counts.entry(word.to_lowercase()).or_default() += 1.0;
            }
            counts
        };
        let (a, b) = (counts(a), counts(b));
        let length = |counts: &BTreeMap<String, f64>| counts.values().map(|n| n * n).sum::<f64>().sqrt();
        let product: f64 = a.iter().map(|(word, n)| n * b.get(word).copied().unwrap_or(0.0)).sum();
        if product > 0.0 { product / (length(&a) * length(&b)) } else { 0.0 }
    }

    #[test]
    fn bags_are_compared_as_the_words_themselves_are() {
        let words = ["moon", "Tide", "of", "the", "river", "42", "naïve", "Ωmega", "salt"];
        let mut draws = Draws::new(5, Stream::Driver, 0, 0);
        let mut text = || -> String {
            (0..draws.below(12)).map(|_| format!("{}, ", words[draws.below(words.len() as u64) as usize])).collect()
        };
        for _ in 0..200 {
            let (a, b) = (text(), text());
            assert!((Bag::of(&a).cosine(&Bag::of(&b)) - plain(&a, &b)).abs() < 1e-12, "{a:?} {b:?}");
        }
        assert_eq!(Bag::of("").cosine(&Bag::of("")), 0.0);
        assert!((Bag::of("The TIDE.").cosine(&Bag::of("tide, the")) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_said_on_a_question_is_found_among_other_talk() {
        let store = [
            "Ann: the capital of Australia is Sydney, everybody knows its opera house",
            "Ben: penguins cannot fly",
            "Cara: I would say that the capital of Australia is Canberra",
            "Ben: penguins live far in the south",
            "Ann: we should have lunch",
        ];
        let found = |question: &str, k: usize| nearest(question, store, k);
        assert_eq!(found("What is the capital of Australia?", 2), [2, 0]);
        assert_eq!(found("Do penguins fly?", 2), [1, 3]);
        // Nothing in common: the newest.
        assert_eq!(found("xylophone", 2), [4, 3]);
        assert_eq!(found("xylophone", 0), [0usize; 0]);
        assert_eq!(found("penguins", 99).len(), store.len());
    }
}
