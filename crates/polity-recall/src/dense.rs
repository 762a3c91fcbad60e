//! Texts as vectors of a fixed number of dimensions, compared by their cosine.

use crate::{hash, words};

/// Texts in a block of the index. Their components of one dimension stand side by side, so that a query reads only the dimensions that it has.
const BLOCK: usize = 256;
/// The largest component, by magnitude.
const LARGEST: i32 = 127;

/// An index of texts, in a given order, as hashed vectors.
///
/// The features of a text are its words, its pairs of neighbouring words, and the runs of three characters of each word with its ends.
/// The hash of a feature chooses a dimension and a sign; the vector is the sum over all occurrences (Weinberger et al., "Feature Hashing
/// for Large Scale Multitask Learning", ICML 2009). Components stop at ±127. So typing errors and inflected forms are close to what was
/// meant; meanings are not compared. Features that share a dimension add noise: a standard deviation of about 1 / √dimensions in a cosine.
///
/// ```
/// use polity_recall::Dense;
///
/// let index = Dense::new(["quantum entanglement", "a recipe for soup"], 512);
/// let cosines = index.cosines("quantm entanglment", index.len());
/// assert_eq!(cosines[0].0, 0);
/// assert!(cosines[0].1 > 0.4);
/// ```
#[derive(Clone, Debug)]
pub struct Dense {
    dimensions: usize,
    /// One after the other; in a block, a dimension after the other.
    blocks: Vec<i8>,
    /// The Euclidean length of each vector.
    lengths: Vec<f64>,
}

impl Dense {
    /// Indexes texts. `dimensions`: at least 1.
    #[must_use]
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, dimensions: usize) -> Self {
        let mut index = Dense { dimensions: dimensions.max(1), blocks: Vec::new(), lengths: Vec::new() };
        let size = BLOCK * index.dimensions;
        for text in texts {
            let vector = vector(text.as_ref(), index.dimensions);
            let place = index.lengths.len() % BLOCK;
            if place == 0 {
                index.blocks.resize(index.blocks.len() + size, 0);
            }
            let block = index.blocks.len() - size;
            for (dimension, component) in vector.iter().enumerate() {
                index.blocks[block + dimension * BLOCK + place] = *component;
            }
            index.lengths.push(length(&vector));
        }
        index
    }

    /// Returns the number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns whether there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns those of the `first` texts whose cosine with the query is above 0, with the cosine, in order of text.
    #[must_use]
    pub fn cosines(&self, query: &str, first: usize) -> Vec<(u32, f64)> {
        let query = vector(query, self.dimensions);
        let query_length = length(&query);
        let used: Vec<(usize, i16)> =
            query.iter().enumerate().filter(|(_, x)| **x != 0).map(|(i, x)| (i, i16::from(*x))).collect();
        let lengths = &self.lengths[..first.min(self.len())];
        let mut cosines = Vec::new();
        for ((block, lengths), at) in
            self.blocks.chunks_exact(BLOCK * self.dimensions).zip(lengths.chunks(BLOCK)).zip((0u32..).step_by(BLOCK))
        {
            let mut products = [0i32; BLOCK];
            for (dimension, weight) in &used {
                let components = &block[dimension * BLOCK..][..BLOCK];
                for (product, component) in products.iter_mut().zip(components) {
                    *product += i32::from(weight * i16::from(*component));
                }
            }
            let positive = (at..).zip(products.iter().zip(lengths)).filter(|(_, (product, _))| **product > 0);
            cosines.extend(
                positive.map(|(text, (product, length))| (text, f64::from(*product) / (query_length * length))),
            );
        }
        cosines
    }
}

fn length(vector: &[i8]) -> f64 {
    vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
}

/// Returns the vector of a text.
fn vector(text: &str, dimensions: usize) -> Vec<i8> {
    let mut sums = vec![0i32; dimensions];
    let mut add = |feature: &[u8]| {
        let hash = hash(feature);
        let sum = &mut sums[((hash >> 1) % dimensions as u64) as usize];
        *sum = sum.saturating_add(if hash & 1 == 0 { 1 } else { -1 });
    };
    let mut last: Option<String> = None;
    for word in words(text) {
        // The space and the bars keep pairs, words and runs of characters apart, which have neither.
        if let Some(last) = last {
            add(format!("{last} {word}").as_bytes());
        }
        add(word.as_bytes());
        let ends = format!("|{word}|");
        let starts: Vec<usize> = ends.char_indices().map(|(i, _)| i).chain([ends.len()]).collect();
        for run in starts.windows(4) {
            add(&[b"~", &ends.as_bytes()[run[0]..run[3]]].concat());
        }
        last = Some(word);
    }
    sums.into_iter().map(|sum| sum.clamp(-LARGEST, LARGEST) as i8).collect()
}
