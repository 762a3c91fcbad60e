//! Vectors of interests, topics and words, which feeds compare.

use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::Draws;
use polity_recall as recall;

/// Topics; a vector of interests or of a post has a number for each.
pub const TOPICS: usize = 32;
/// Spread of vectors around their topic: the standard deviation of each component, before normalisation to length 1.
const SPREAD: f64 = 0.12;

/// A vector of length 1.
pub type Vector = [f32; TOPICS];

/// Returns the dot product of two vectors; summed in eight lanes, so that it is fast and the same on every machine.
#[inline]
pub fn dot(a: &Vector, b: &Vector) -> f32 {
    let mut lanes = [0.0f32; 8];
    for start in [0, 8, 16, 24] {
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane += a[start + i] * b[start + i];
        }
    }
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
}

/// A vector in 4,096ths: one cache line, and exact sums.
pub type Code = [i16; TOPICS];
/// A vector in 180ths, for searches over many. The product of two of length 1 is at most 32,400, also in partial sums (Cauchy and
/// Schwarz), so that it fits in 16 bits.
pub type Coarse = [i16; TOPICS];
/// The code of no vector.
pub const NONE: Code = [0; TOPICS];
const UNIT: f32 = 4096.0;
const COARSE: f32 = 180.0;

pub fn code(vector: &Vector) -> Code {
    vector.map(|x| (x * UNIT) as i16)
}

pub fn coarse(vector: &Vector) -> Coarse {
    vector.map(|x| (x * COARSE) as i16)
}

pub fn decode(code: &Code) -> Vector {
    code.map(|x| f32::from(x) / UNIT)
}

/// Returns the exact product of two codes. In four lanes and a separate function, which compilers vectorise to four multiplications.
#[inline(never)]
pub fn product(a: &Code, b: &Code) -> i32 {
    let mut lanes = [0i32; 4];
    for i in 0..TOPICS / 4 {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane += i32::from(a[4 * i + l]) * i32::from(b[4 * i + l]);
        }
    }
    (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
}

/// Returns the similarity of two vectors, by their codes: -1 to 1.
pub fn likeness(a: &Code, b: &Code) -> f32 {
    product(a, b) as f32 / (UNIT * UNIT)
}

/// Draws a vector around a topic.
pub fn around(topic: u8, draws: &mut Draws) -> Vector {
    let mut vector = [0.0; TOPICS];
    for (i, x) in vector.iter_mut().enumerate() {
        let center = if i == usize::from(topic) { 1.0 } else { 0.0 };
        *x = (center + SPREAD * draws.normal()) as f32;
    }
    unit(&mut vector);
    vector
}

/// Returns a vector of words: each word maps to one component with a sign, by a hash (feature hashing; Weinberger et al., 2009). Texts
/// with the same words are similar; synonyms are not.
pub fn hashed(text: &str) -> Vector {
    let mut vector = [0.0; TOPICS];
    for hash in recall::hashes(text) {
        vector[(hash % TOPICS as u64) as usize] += if hash >> 16 & 1 == 0 { 1.0 } else { -1.0 };
    }
    unit(&mut vector);
    vector
}

/// Projects a model's vector to our few components, approximately preserving angles: each of its components is added to or subtracted
/// from each of ours, by a hash of both positions (a random projection; Achlioptas, "Database-friendly random projections", 2003). A
/// vector no longer than ours is unchanged. `None` if it has no direction.
pub fn projected(numbers: &[f32]) -> Option<Vector> {
    let length = numbers.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return None;
    }
    let mut sums = [0.0f64; TOPICS];
    if numbers.len() <= TOPICS {
        sums.iter_mut().zip(numbers).for_each(|(sum, x)| *sum = f64::from(*x) / length);
    } else {
        for (place, x) in numbers.iter().enumerate() {
            let signs = RowHash::new(Kind::Input, 1).word(place as u64).finish();
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += f64::from(*x) / length * if signs >> i & 1 == 0 { 1.0 } else { -1.0 };
            }
        }
    }
    let mut vector = sums.map(|sum| sum as f32);
    unit(&mut vector);
    vector.iter().any(|x| *x != 0.0).then_some(vector)
}

pub fn unit(vector: &mut Vector) {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::rng::Stream;

    #[test]
    fn words_alike_lie_near_each_other() {
        let near = |a: &str, b: &str| dot(&hashed(a), &hashed(b));
        let said = "They want to close the library on Mill Street";
        assert!((near(said, "they WANT to close, the library on mill street!") - 1.0).abs() < 1e-6);
        let (related, other) = (near(said, "who wants to close our library?"), near(said, "ein Hund bellt nachts"));
        assert!(related > other, "{related} {other}");
        assert_eq!(hashed(" ... "), [0.0; TOPICS]);
    }

    #[test]
    fn vectors_of_models_keep_their_angles() {
        let mut draws = Draws::new(3, Stream::World, 0, 0);
        let mut vector = |n: usize| -> Vec<f32> { (0..n).map(|_| draws.normal() as f32).collect() };
        let cosine = |a: &[f32], b: &[f32]| {
            let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>();
            product(a, b) / (product(a, a) * product(b, b)).sqrt()
        };
        let mut errors = Vec::new();
        for i in 0..400 {
            let (a, other) = (vector(384), vector(384));
            let part = i as f32 / 400.0;
            let b: Vec<f32> = a.iter().zip(&other).map(|(a, other)| part * a + (1.0 - part) * other).collect();
            let ours = f64::from(dot(&projected(&a).unwrap(), &projected(&b).unwrap()));
            errors.push((ours - cosine(&a, &b)).powi(2));
        }
        // The error of angles between random directions is 1 / sqrt(32), of small ones less.
        let error = (errors.iter().sum::<f64>() / 400.0).sqrt();
        assert!(error < 0.18, "{error}");
        let few = vector(TOPICS);
        let kept = projected(&few).unwrap();
        assert!((cosine(&few, &kept) - 1.0).abs() < 1e-6 && (dot(&kept, &kept) - 1.0).abs() < 1e-6);
        let all: Vec<f32> = vector(384).iter().map(|x| x * 1e30).collect();
        assert!(projected(&all).is_some());
        for none in [vec![], vec![0.0; 384], vec![f32::NAN; 384], vec![1.0, f32::INFINITY]] {
            assert_eq!(projected(&none), None);
        }
    }
}
