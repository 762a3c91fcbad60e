//! Indexes against plain second implementations, on drawn corpora.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::*;
use polity_kernel::rng::{Draws, Stream};
use proptest::prelude::*;
use std::collections::BTreeMap;

const WORDS: [&str; 14] =
    ["moon", "Tide", "of", "the", "river", "42", "naïve", "Ωmega", "salt", "a", "harvest", "tides", "rivers", "budget"];

fn sentence(draws: &mut Draws, most: u64) -> String {
    let mut text = String::new();
    for _ in 0..draws.below(most + 1) {
        // The first words are drawn more often.
        let below = 1 + draws.below(WORDS.len() as u64);
        let word = WORDS[draws.below(below) as usize];
        text.push_str(word);
        text.push_str([" ", ", ", ". ", "\n\n"][draws.below(4) as usize]);
    }
    text
}

fn draws(seed: u64) -> Draws {
    Draws::new(seed, Stream::Driver, 0, 0)
}

fn plain_words(text: &str) -> Vec<String> {
    let lower = |word: &str| word.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(lower).collect()
}

/// BM25 as the textbook has it, a text and a word at a time. A text without a word of the query has no score.
fn plain_bm25(texts: &[String], query: &str, settings: Bm25Settings) -> Vec<Option<f64>> {
    let texts: Vec<Vec<String>> = texts.iter().map(|text| plain_words(text)).collect();
    let n = texts.len() as f64;
    let mean = texts.iter().map(Vec::len).sum::<usize>() as f64 / n;
    let with = |word: &String| texts.iter().filter(|text| text.contains(word)).count() as f64;
    let okapi = |word: &String| ((n - with(word) + 0.5) / (with(word) + 0.5)).ln();
    let mut vocabulary: Vec<&String> = texts.iter().flatten().collect();
    vocabulary.sort();
    vocabulary.dedup();
    let mean_idf = vocabulary.iter().map(|word| okapi(word)).sum::<f64>() / vocabulary.len() as f64;
    let idf = |word: &String| match settings.idf {
        Idf::Lucene => (1.0 + (n - with(word) + 0.5) / (with(word) + 0.5)).ln(),
        Idf::Okapi if okapi(word) < 0.0 => 0.25 * mean_idf,
        Idf::Okapi => okapi(word),
    };
    let (k1, b) = (settings.k1, settings.b);
    let query = plain_words(query);
    let score = |text: &Vec<String>| {
        let mut score = None;
        for word in &query {
            let count = text.iter().filter(|other| *other == word).count() as f64;
            if count > 0.0 {
                let part = count * (k1 + 1.0) / (count + k1 * (1.0 - b + b * text.len() as f64 / mean));
                score = Some(score.unwrap_or(0.0) + idf(word) * part);
            }
        }
        score
    };
    texts.iter().map(score).collect()
}

fn assert_scores(found: &[(u32, f64)], expected: &[Option<f64>], what: &str) {
    let expected: Vec<(u32, f64)> =
        (0..).zip(expected).filter_map(|(i, score)| score.map(|score| (i, score))).collect();
    assert_eq!(found.len(), expected.len(), "{what}: {found:?} {expected:?}");
    for ((i, score), (j, wanted)) in found.iter().zip(&expected) {
        assert!(i == j && (score - wanted).abs() < 1e-9, "{what}: {found:?} {expected:?}");
    }
}

#[test]
fn bm25_is_that_of_the_textbook() {
    let mut draws = draws(7);
    let mut found = 0;
    for round in 0..150 {
        let texts: Vec<String> = (0..1 + draws.below(30)).map(|_| sentence(&mut draws, 25)).collect();
        let idf = [Idf::Lucene, Idf::Okapi][round % 2];
        let settings = Bm25Settings { k1: draws.range(0.0, 3.0), b: draws.unit(), idf };
        let index = Bm25::new(&texts, settings);
        let query = sentence(&mut draws, 6);
        for first in [1, texts.len() / 2, texts.len(), texts.len() + 5] {
            let scores = index.scores(&query, first);
            found += scores.len();
            let some = &texts[..first.min(texts.len())];
            assert_scores(&scores, &plain_bm25(some, &query, settings), &format!("{query:?} in {some:?}"));
        }
    }
    assert!(found > 1_000, "{found}");
}

#[test]
fn bm25_has_the_scores_worked_out_by_hand() {
    let index = Bm25::new(["a b", "a a b c", "c"], Bm25Settings { k1: 1.2, b: 0.75, idf: Idf::Lucene });
    // The mean length is 7/3; of three texts two have `a`.
    let idf = (1.0f64 + 1.5 / 2.5).ln();
    let first = idf * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / (7.0 / 3.0)));
    let second = idf * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 4.0 / (7.0 / 3.0)));
    assert_scores(&index.scores("A!", 3), &[Some(first), Some(second), None], "a");
    assert_scores(&index.scores("a? a", 3), &[Some(2.0 * first), Some(2.0 * second), None], "a a");
    assert_eq!(index.scores("nothing", 3), []);
    assert_eq!(index.scores("", 3), []);
    assert_eq!(index.scores("a", 0), []);
    assert_eq!(Bm25::new([""; 0], Bm25Settings::default()).scores("a", 9), []);
    assert_eq!(Bm25::new(["", "..."], Bm25Settings::default()).scores("a", 9), []);
}

/// The hashed vector of a text, as its description says.
fn plain_vector(text: &str, dimensions: u64) -> BTreeMap<u64, f64> {
    let words = plain_words(text);
    let mut features: Vec<String> = words.clone();
    features.extend(words.windows(2).map(|pair| pair.join(" ")));
    for word in &words {
        let ends: Vec<char> = format!("|{word}|").chars().collect();
        features.extend(ends.windows(3).map(|run| format!("~{}", run.iter().collect::<String>())));
    }
    let mut vector = BTreeMap::new();
    for feature in features {
        let hash = crate::hash(feature.as_bytes());
        *vector.entry((hash >> 1) % dimensions).or_insert(0.0) += 1.0 - 2.0 * (hash & 1) as f64;
    }
    vector.values_mut().for_each(|x: &mut f64| *x = x.clamp(-127.0, 127.0));
    vector
}

fn plain_cosine(a: &str, b: &str, dimensions: u64) -> Option<f64> {
    let (a, b) = (plain_vector(a, dimensions), plain_vector(b, dimensions));
    let product: f64 = a.iter().map(|(i, x)| x * b.get(i).unwrap_or(&0.0)).sum();
    let length = |vector: &BTreeMap<u64, f64>| vector.values().map(|x| x * x).sum::<f64>().sqrt();
    (product > 0.0).then(|| product / (length(&a) * length(&b)))
}

#[test]
fn cosines_are_those_of_the_vectors() {
    let mut draws = draws(8);
    // More texts than a block has, one of them long enough for components to stop.
    let mut texts: Vec<String> = (0..700).map(|_| sentence(&mut draws, 12)).collect();
    texts[300] = "moon ".repeat(500);
    let mut found = 0;
    for dimensions in [1, 7, 64, 512] {
        let index = Dense::new(&texts, dimensions);
        for first in [0, 1, 256, 257, 700, 999] {
            let query = sentence(&mut draws, 6);
            let some = &texts[..first.min(texts.len())];
            let expected: Vec<Option<f64>> =
                some.iter().map(|text| plain_cosine(&query, text, dimensions as u64)).collect();
            let cosines = index.cosines(&query, first);
            found += cosines.len();
            assert_scores(&cosines, &expected, &query);
        }
    }
    assert!(found > 1_000, "{found}");
    let index = Dense::new(["moon tide", "moon ".repeat(500).as_str()], 512);
    assert!((index.cosines("Moon, tide!", 9)[0].1 - 1.0).abs() < 1e-12);
    assert!((index.cosines(&"moon ".repeat(500), 9).last().unwrap().1 - 1.0).abs() < 1e-12);
    assert_eq!(index.cosines("", 9), []);
}

fn documents(draws: &mut Draws, n: u64) -> Vec<Document> {
    let mut document = |i| {
        let date = match draws.below(4) {
            0 => None,
            _ => format!("2024-01-{:02}", 1 + draws.below(9)).parse().ok(),
        };
        Document { id: format!("d{i}"), title: sentence(draws, 2), text: sentence(draws, 40) + "end", date }
    };
    (0..n).map(&mut document).collect()
}

fn settings(method: Method, passage_words: usize) -> Settings {
    Settings { method, passage_words, dimensions: 64, ..Settings::default() }
}

/// What a search returns, for comparison.
fn shown(hits: &[Hit<'_>]) -> Vec<(String, String, f64)> {
    hits.iter().map(|hit| (hit.passage.citation(), hit.passage.text.to_owned(), hit.score)).collect()
}

#[test]
fn a_search_before_a_day_is_that_of_an_index_of_the_days_before() {
    let mut draws = draws(9);
    let mut found = 0;
    for round in 0..120 {
        let n = draws.below(25);
        let documents = documents(&mut draws, n);
        let method = [Method::Bm25, Method::Dense, Method::Hybrid][round % 3];
        let mut settings = settings(method, 1 + draws.below(12) as usize);
        settings.bm25.idf = [Idf::Lucene, Idf::Okapi][round % 2];
        let index = Index::new(documents.clone(), &settings).unwrap();
        for day in ["2023-12-31", "2024-01-01", "2024-01-05", "2024-02-01"] {
            let day: Date = day.parse().unwrap();
            let query = sentence(&mut draws, 5);
            let k = draws.below(12) as usize;
            let earlier = documents.iter().filter(|document| document.date.is_some_and(|date| date < day));
            let other = Index::new(earlier.cloned().collect(), &settings).unwrap();
            let hits = index.search(&query, k, Some(day));
            assert!(hits.iter().all(|hit| hit.passage.document.date.unwrap() < day));
            assert_eq!(shown(&hits), shown(&other.search(&query, k, None)), "{query:?} before {day} in {documents:?}");
            found += hits.len();
        }
    }
    assert!(found > 300, "{found}");
}

/// Ranks all passages of documents plainly.
fn plain_search(documents: &[Document], query: &str, settings: &Settings) -> Vec<(String, f64)> {
    let mut passages = Vec::new();
    let index = Index::new(documents.to_vec(), settings).unwrap();
    for document in documents {
        for passage in index.document(&document.id).unwrap().1 {
            passages.push((passage.citation(), format!("{}\n{}", document.title, passage.text)));
        }
    }
    let texts: Vec<String> = passages.iter().map(|(_, text)| text.clone()).collect();
    let ranked = |scores: Vec<Option<f64>>| {
        let mut all: Vec<(usize, f64)> =
            scores.into_iter().enumerate().filter_map(|(i, score)| Some((i, score?))).collect();
        // Scores that differ by rounding alone are ties.
        all.sort_by(|a, b| ((b.1 * 1e9).round()).total_cmp(&(a.1 * 1e9).round()).then(a.0.cmp(&b.0)));
        all
    };
    let bm25 = || ranked(plain_bm25(&texts, query, settings.bm25));
    let dense = || ranked(texts.iter().map(|text| plain_cosine(query, text, settings.dimensions as u64)).collect());
    let all = match settings.method {
        Method::Bm25 => bm25(),
        Method::Dense => dense(),
        Method::Hybrid => {
            let mut sums = vec![None; texts.len()];
            for ranking in [bm25(), dense()] {
                for (rank, (i, _)) in (1..).zip(ranking) {
                    sums[i] = Some(sums[i].unwrap_or(0.0) + 1.0 / f64::from(60 + rank));
                }
            }
            ranked(sums)
        }
    };
    all.into_iter().map(|(i, score)| (passages[i].0.clone(), score)).collect()
}

#[test]
fn the_best_passages_are_those_of_a_plain_ranking_with_ties_in_order_of_document() {
    let mut draws = draws(10);
    let mut ties = 0;
    for round in 0..90 {
        let n = 1 + draws.below(15);
        let mut documents = documents(&mut draws, n);
        // Some say the same, for ties.
        for i in 1..documents.len() {
            if draws.chance(0.3) {
                (documents[i].title, documents[i].text) =
                    (documents[i - 1].title.clone(), documents[i - 1].text.clone());
            }
        }
        let settings = settings([Method::Bm25, Method::Dense, Method::Hybrid][round % 3], 12);
        let index = Index::new(documents.clone(), &settings).unwrap();
        let query = sentence(&mut draws, 5);
        let expected = plain_search(&documents, &query, &settings);
        ties += expected.windows(2).filter(|pair| (pair[0].1 - pair[1].1).abs() < 1e-12).count();
        for k in [0, 1, 3, expected.len(), 99] {
            let hits = index.search(&query, k, None);
            let found: Vec<String> = hits.iter().map(|hit| hit.passage.citation()).collect();
            let wanted: Vec<String> = expected.iter().take(k).map(|(citation, _)| citation.clone()).collect();
            assert_eq!(found, wanted, "{:?} {query:?} in {documents:?}", settings.method);
            for (hit, (_, score)) in hits.iter().zip(&expected) {
                assert!((hit.score - score).abs() < 1e-9);
            }
        }
    }
    assert!(ties > 50, "{ties}");
}

#[test]
fn citations_lead_to_their_passages() {
    let mut draws = draws(11);
    let documents = documents(&mut draws, 20);
    let index = Index::new(documents.clone(), &settings(Method::Bm25, 5)).unwrap();
    assert_eq!(index.documents(), documents);
    let mut passages = 0;
    for document in &documents {
        let (found, parts) = index.document(&document.id).unwrap();
        assert_eq!(found, document);
        passages += parts.len();
        for (number, part) in (1..).zip(parts) {
            assert_eq!(part.number, number);
            assert_eq!(index.passage(&format!("{}#{number}", document.id)), Some(part));
            assert!(document.text.contains(part.text));
        }
    }
    assert_eq!(passages, index.passage_count());
    assert!(passages > 40, "{passages}");
    for citation in ["d1#0", "d1#999", "d1", "d99#1", "#1", ""] {
        assert_eq!(index.passage(citation), None, "{citation}");
    }
    assert_eq!(index.document("d1#1"), None);
    assert!(Index::new(Vec::new(), &Settings::default()).unwrap().search("moon", 5, None).is_empty());
}

#[test]
fn hashed_vectors_find_what_is_spelled_differently() {
    let document = |id: &str, text: &str| Document { id: id.into(), text: text.into(), ..Document::default() };
    let documents = vec![
        document("soup", "A recipe for soup with carrots and onions"),
        document("physics", "Entanglement links the states of two particles"),
        document("rents", "Rents rose in the whole city"),
    ];
    for (method, found) in
        [(Method::Bm25, None), (Method::Dense, Some("physics#1")), (Method::Hybrid, Some("physics#1"))]
    {
        let index = Index::new(documents.clone(), &settings(method, 100)).unwrap();
        let hits = index.search("entanglment", 1, None);
        assert_eq!(hits.first().map(|hit| hit.passage.citation()).as_deref(), found, "{method:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_indexed_and_searched(texts in proptest::collection::vec(".{0,60}", 0..8), query in ".{0,30}", k in 0usize..5) {
        let documents: Vec<Document> = (0..).zip(&texts)
            .map(|(i, text): (u32, _)| Document { id: i.to_string(), title: "t".into(), text: text.clone(), date: None })
            .collect();
        for method in [Method::Bm25, Method::Dense, Method::Hybrid] {
            let index = Index::new(documents.clone(), &settings(method, 3)).unwrap();
            let hits = index.search(&query, k, None);
            prop_assert!(hits.len() <= k && hits.is_sorted_by(|a, b| a.score >= b.score));
            prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
        }
    }
}
