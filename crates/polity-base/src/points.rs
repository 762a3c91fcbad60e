//! Points that fill a unit cube evenly: random ones, Latin hypercubes and Sobol sequences. All depend on their seed alone.

use crate::rng::{Draws, Stream};

/// Direction numbers of Sobol sequences after Joe and Kuo ("Constructing Sobol sequences with better two-dimensional projections", 2008):
/// for each dimension from the second on, the inner coefficients of its primitive polynomial as bits, and its first direction numbers, as
/// many as the polynomial's degree.
const DIRECTIONS: [(u32, &[u32]); 20] = [
    (0, &[1]),
    (1, &[1, 3]),
    (1, &[1, 3, 1]),
    (2, &[1, 1, 1]),
    (1, &[1, 1, 3, 3]),
    (4, &[1, 3, 5, 13]),
    (2, &[1, 1, 5, 5, 17]),
    (4, &[1, 1, 5, 5, 5]),
    (7, &[1, 1, 7, 11, 19]),
    (11, &[1, 1, 5, 1, 1]),
    (13, &[1, 1, 1, 3, 11]),
    (14, &[1, 3, 5, 5, 31]),
    (1, &[1, 3, 3, 9, 7, 49]),
    (13, &[1, 1, 1, 15, 21, 21]),
    (16, &[1, 3, 1, 13, 27, 49]),
    (19, &[1, 1, 1, 15, 7, 5]),
    (22, &[1, 3, 1, 15, 13, 25]),
    (25, &[1, 1, 5, 5, 19, 61]),
    (1, &[1, 3, 7, 11, 23, 15, 103]),
    (4, &[1, 3, 7, 13, 13, 15, 69]),
];

/// The most dimensions of a Sobol sequence.
pub const SOBOL_DIMENSIONS: usize = DIRECTIONS.len() + 1;
/// Binary digits of a coordinate of a Sobol sequence.
const BITS: usize = 32;

/// Returns independent points, drawn uniformly.
#[must_use]
pub fn random(points: usize, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let of_point = |point: usize| {
        let mut draws = Draws::new(seed, Stream::Design, point as u32, 0);
        (0..dimensions).map(|_| draws.unit()).collect()
    };
    (0..points).map(of_point).collect()
}

/// Returns a Latin hypercube (McKay, Beckman and Conover 1979): every dimension is cut into as many equal parts as there are points, and
/// each part holds one point, at a random place within it.
/// ```
/// let points = polity_base::points::latin_hypercube(5, 2, 7);
/// let mut parts: Vec<u32> = points.iter().map(|point| (point[1] * 5.0) as u32).collect();
/// parts.sort();
/// assert_eq!(parts, [0, 1, 2, 3, 4]);
/// ```
#[must_use]
pub fn latin_hypercube(points: usize, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut all = vec![vec![0.0; dimensions]; points];
    for dimension in 0..dimensions {
        let mut draws = Draws::new(seed, Stream::Design, dimension as u32, 1);
        let mut parts: Vec<usize> = (0..points).collect();
        draws.shuffle(&mut parts);
        for (point, part) in all.iter_mut().zip(parts) {
            point[dimension] = (part as f64 + draws.unit()) / points as f64;
        }
    }
    all
}

/// Returns the first points of a Sobol sequence (Sobol 1967, in the order of Antonov and Saleev 1979). With a seed, the binary digits of
/// each dimension are shifted at random (Cranley-Patterson, digitally), which keeps the evenness and moves the points off the corner 0.
/// There are at most [`SOBOL_DIMENSIONS`] dimensions; numbers of points that are powers of two fill the cube most evenly.
/// ```
/// // scipy.stats.qmc.Sobol(2, scramble=False).random(4)
/// let points = polity_base::points::sobol(4, 2, None);
/// assert_eq!(points, [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]);
/// ```
#[must_use]
pub fn sobol(points: usize, dimensions: usize, seed: Option<u64>) -> Vec<Vec<f64>> {
    let dimensions = dimensions.min(SOBOL_DIMENSIONS);
    let mut all = vec![vec![0.0; dimensions]; points];
    for dimension in 0..dimensions {
        let directions = directions(dimension);
        let mut here = seed.map_or(0, |seed| Draws::new(seed, Stream::Design, dimension as u32, 2).u32());
        for (i, point) in all.iter_mut().enumerate() {
            point[dimension] = f64::from(here) / 4_294_967_296.0;
            // The next point differs in the direction of the lowest zero of the number of this one.
            here ^= directions.get((!i).trailing_zeros() as usize).copied().unwrap_or(0);
        }
    }
    all
}

/// The direction numbers of a dimension as binary fractions.
fn directions(dimension: usize) -> [u32; BITS] {
    let mut found = [0_u32; BITS];
    let Some((polynomial, first)) = dimension.checked_sub(1).and_then(|at| DIRECTIONS.get(at)) else {
        // The first dimension: van der Corput's sequence.
        found.iter_mut().enumerate().for_each(|(i, direction)| *direction = 1 << (BITS - 1 - i));
        return found;
    };
    let degree = first.len();
    for i in 0..BITS {
        found[i] = match first.get(i) {
            Some(number) => number << (BITS - 1 - i),
            None => {
                let inner = (1..degree).filter(|k| polynomial >> (degree - 1 - k) & 1 == 1);
                let start = found[i - degree] ^ (found[i - degree] >> degree);
                inner.fold(start, |sum, k| sum ^ found[i - k])
            }
        };
    }
    found
}

/// Returns the number at a place between `low` and `high`, from 0 at `low` to 1 at `high`; with `log`, equal steps are equal ratios.
/// ```
/// use polity_base::points::between;
/// assert_eq!(between(0.25, 2.0, 6.0, false), 3.0);
/// assert!((between(0.5, 0.01, 1.0, true) - 0.1).abs() < 1e-12);
/// ```
#[must_use]
pub fn between(place: f64, low: f64, high: f64, log: bool) -> f64 {
    let value = match log {
        true => libm::exp(libm::log(low) + place * (libm::log(high) - libm::log(low))),
        false => low + place * (high - low),
    };
    value.clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_scipy() {
        // scipy.stats.qmc.Sobol(21, scramble=False).random(1024)[[2, 201, 1023]], SciPy 1.17.1
        let points = sobol(1024, SOBOL_DIMENSIONS, None);
        for (at, expected) in KNOWN {
            assert_eq!(points[at].as_slice(), expected, "point {at}");
        }
    }

    /// Cells of a partition of the unit square into 2^i times 2^(6 - i), each with as many of the 64 points as any other.
    #[test]
    fn every_even_partition_of_two_neighbouring_dimensions_is_filled_evenly() {
        for seed in [None, Some(3), Some(u64::MAX)] {
            let points = sobol(64, 2, seed);
            for i in 0..=6 {
                let mut cells = vec![0; 64];
                for point in &points {
                    let (x, y) =
                        ((point[0] * f64::from(1 << i)) as usize, (point[1] * f64::from(1 << (6 - i))) as usize);
                    cells[x << (6 - i) | y] += 1;
                }
                assert!(cells.iter().all(|cell| *cell == 1), "{i}: {cells:?}");
            }
        }
    }

    #[test]
    fn each_dimension_is_filled_evenly() {
        let even = |points: &[Vec<f64>], dimension: usize| {
            let n = points.len();
            let mut parts: Vec<usize> = points.iter().map(|point| (point[dimension] * n as f64) as usize).collect();
            parts.sort_unstable();
            parts == (0..n).collect::<Vec<_>>()
        };
        let (latin, shifted) = (latin_hypercube(40, 6, 9), sobol(128, SOBOL_DIMENSIONS, Some(9)));
        assert!((0..6).all(|dimension| even(&latin, dimension)));
        assert!((0..SOBOL_DIMENSIONS).all(|dimension| even(&shifted, dimension)));
        // The dimensions are not copies of each other, and a seed decides.
        assert!(latin.iter().any(|point| (point[0] - point[1]).abs() > 0.5));
        assert_ne!((latin_hypercube(40, 6, 8), random(4, 2, 8)), (latin.clone(), random(4, 2, 9)));
        assert_eq!(latin_hypercube(40, 6, 9), latin);
    }

    #[test]
    fn values_lie_between_their_ends() {
        assert_eq!([between(0.0, 3.0, 9.0, true), between(1.0, 3.0, 9.0, true)], [3.0, 9.0]);
        assert_eq!(between(1.0, -0.1, 0.3, false), 0.3);
    }

    const KNOWN: [(usize, [f64; SOBOL_DIMENSIONS]); 3] = [
        (
            2,
            [
                0.75, 0.25, 0.25, 0.25, 0.75, 0.75, 0.25, 0.75, 0.75, 0.75, 0.75, 0.75, 0.25, 0.25, 0.75, 0.25, 0.75,
                0.25, 0.75, 0.25, 0.25,
            ],
        ),
        (
            201,
            [
                0.70703125, 0.88671875, 0.91015625, 0.08984375, 0.31640625, 0.05859375, 0.52734375, 0.47265625,
                0.83203125, 0.12109375, 0.49609375, 0.08984375, 0.80859375, 0.08984375, 0.59765625, 0.19140625,
                0.13671875, 0.34765625, 0.24609375, 0.67578125, 0.86328125,
            ],
        ),
        (
            1023,
            [
                0.0009765625,
                0.7529296875,
                0.6123046875,
                0.1455078125,
                0.1865234375,
                0.4384765625,
                0.1396484375,
                0.6181640625,
                0.3447265625,
                0.8505859375,
                0.6787109375,
                0.0361328125,
                0.1298828125,
                0.6650390625,
                0.3623046875,
                0.4638671875,
                0.3134765625,
                0.8759765625,
                0.5849609375,
                0.3193359375,
                0.8662109375,
            ],
        ),
    ];
}
