//! Counter-based random numbers.
//!
//! A draw is a pure function of (seed, stream, round, agent, n). Nothing is stored between rounds, so thread count, shard count and
//! resume cannot affect it. The block function is Philox2x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011), checked below against the known answers of the authors' Random123 library.

use std::sync::LazyLock;

/// Multiplier and key increment of Philox2x64.
const M: u64 = 0xD2B7_4407_B1CE_6E93;
const W: u64 = 0x9E37_79B9_7F4A_7C15;

/// One Philox2x64-10 block: 128 random bits from a 128-bit counter and a 64-bit key.
#[inline(always)]
#[must_use]
pub fn philox(mut counter: [u64; 2], mut key: u64) -> [u64; 2] {
    for _ in 0..10 {
        let product = u128::from(M) * u128::from(counter[0]);
        counter = [(product >> 64) as u64 ^ key ^ counter[1], product as u64];
        key = key.wrapping_add(W);
    }
    counter
}

/// The counter of the first block of an agent's draws. The lowest 32 bits count blocks.
#[inline(always)]
fn first_counter(stream: Stream, round: u32, agent: u32) -> [u64; 2] {
    [u64::from(agent) << 32, (stream as u64) << 32 | u64::from(round)]
}

/// Agents whose first blocks are computed together.
pub const AHEAD: usize = 16;

/// The first blocks of the draws of consecutive agents, side by side: one block is a chain of ten products that wait for each
/// other, several keep the processor busy.
pub fn first_blocks(seed: u64, stream: Stream, round: u32, first: u32, blocks: &mut [[u64; 2]; AHEAD]) {
    for (i, block) in blocks.iter_mut().enumerate() {
        *block = philox(first_counter(stream, round, first.wrapping_add(i as u32)), seed);
    }
}

/// The purpose of a stream of draws. Streams of one seed never overlap, so adding draws in one place cannot shift another place's
/// draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// An agent's turn (keyed by round and agent).
    Turn = 1,
    /// An agent's birth: its first state.
    Birth = 2,
    /// The world's own dynamics (keyed by round).
    World = 3,
    /// Resampling of the population or of a data set.
    Population = 4,
    /// Generated topologies.
    Topology = 5,
    /// Random matchings of agents in pairs (keyed by round).
    Matching = 6,
    /// A method (keyed by item).
    Method = 7,
    /// A simulated model's answers.
    Model = 8,
    /// The simulated driver: latencies, faults and reordering.
    Driver = 9,
    /// An agent's first row of the world.
    Seat = 10,
    /// The order in which agents take their turns (keyed by round).
    Order = 11,
    /// A cohort's cohort step (keyed by round and agent).
    Cohort = 12,
    /// Episodes of environments (keyed by step and episode).
    Episode = 13,
    /// Parameters of policies that differ by agent (keyed by parameter and agent).
    Parameter = 14,
    /// The points of a design (keyed by dimension or point).
    Design = 15,
    /// Samples for measures of a topology.
    Measures = 16,
    /// A learner: its first weights and its shuffles (keyed by round and first agent).
    Learner = 17,
    /// Bootstrap resamples of an evaluation's items (keyed by sample size and resample).
    Bootstrap = 20,
}

/// A lazy, endless sequence of draws with one key. Cheap to make (no block is computed before the first draw).
/// ```
/// use polity_base::rng::{Draws, Stream};
///
/// // The same key gives the same draws, wherever and whenever they are drawn.
/// let mut draws = Draws::new(7, Stream::Turn, 3, 42);
/// let (roll, coin) = (draws.below(6), draws.chance(0.5));
/// let mut again = Draws::new(7, Stream::Turn, 3, 42);
/// assert_eq!((again.below(6), again.chance(0.5)), (roll, coin));
/// // Another agent's are its own.
/// assert_ne!(Draws::new(7, Stream::Turn, 3, 43).u64(), Draws::new(7, Stream::Turn, 3, 42).u64());
/// ```
#[derive(Clone, Debug)]
pub struct Draws {
    key: u64,
    counter: [u64; 2],
    block: [u64; 2],
    /// Words of 32 bits that are left of the block.
    left: u8,
}

impl Draws {
    /// The draws of `agent` in `round` for one purpose.
    #[inline]
    #[must_use]
    pub fn new(seed: u64, stream: Stream, round: u32, agent: u32) -> Self {
        Draws { key: seed, counter: first_counter(stream, round, agent), block: [0; 2], left: 0 }
    }

    /// The draws of an agent whose first block has been computed ahead, by [`first_blocks`].
    #[inline(always)]
    pub fn with_block(seed: u64, stream: Stream, round: u32, agent: u32, block: [u64; 2]) -> Self {
        let [low, high] = first_counter(stream, round, agent);
        Draws { key: seed, counter: [low + 1, high], block, left: 4 }
    }

    /// Whether something has been drawn.
    #[inline(always)]
    pub fn used(&self) -> bool {
        // All four words of the first block are left, or no block has been computed.
        self.left != 4 && self.counter[0] as u32 != 0 || self.counter[0] as u32 > 1
    }

    #[inline]
    fn refill(&mut self) {
        self.block = philox(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(1);
        self.left = 4;
    }

    /// 32 random bits.
    #[inline]
    pub fn u32(&mut self) -> u32 {
        if self.left == 0 {
            self.refill();
        }
        self.left -= 1;
        (self.block[usize::from(self.left >> 1 & 1)] >> (32 * (self.left & 1))) as u32
    }

    /// 64 random bits.
    #[inline]
    pub fn u64(&mut self) -> u64 {
        // Use one half of a block; skip an odd remaining word.
        if self.left < 2 {
            self.refill();
        }
        self.left = (self.left & !1) - 2;
        self.block[usize::from(self.left >> 1 & 1)]
    }

    /// Uniform on [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform on the open interval (0, 1); safe under a logarithm.
    #[inline]
    pub fn open_unit(&mut self) -> f64 {
        ((self.u64() >> 12) as f64 + 0.5) * (1.0 / 4_503_599_627_370_496.0)
    }

    /// Uniform on [low, high).
    #[inline]
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform integer below `n` without bias (Lemire 2019); 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let mut product = u128::from(self.u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Standard normal, by the ziggurat of 256 layers (Marsaglia and Tsang 2000) with layer and position from different bits
    /// (Doornik 2005): 99 of 100 draws need one table look-up and one product.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let ziggurat: &Ziggurat = &ZIGGURAT;
        loop {
            let bits = self.u64();
            let layer = (bits & 0xFF) as usize;
            // On [-1, 1), from the upper 53 bits.
            let x = ((bits as i64) >> 11) as f64 * (1.0 / 4_503_599_627_370_496.0) * ziggurat.edge[layer];
            if x.abs() < ziggurat.edge[layer + 1] {
                return x;
            }
            if let Some(x) = self.outside(ziggurat, layer, x) {
                return x;
            }
        }
    }

    /// Handles a position in a layer that may not be under the curve.
    #[cold]
    fn outside(&mut self, ziggurat: &Ziggurat, layer: usize, x: f64) -> Option<f64> {
        if layer == 0 {
            // The tail (Marsaglia 1964).
            loop {
                let far = -libm::log(self.open_unit()) / TAIL;
                let deep = -libm::log(self.open_unit());
                if 2.0 * deep >= far * far {
                    return Some(if x < 0.0 { -TAIL - far } else { TAIL + far });
                }
            }
        }
        let (low, high) = (ziggurat.height[layer], ziggurat.height[layer + 1]);
        (low + self.unit() * (high - low) < libm::exp(-0.5 * x * x)).then_some(x)
    }

    /// Exponential with the given rate (per unit of time).
    #[inline]
    pub fn exponential(&mut self, rate: f64) -> f64 {
        -libm::log(self.open_unit()) / rate
    }

    /// Poisson with the given mean, by inversion in steps of at most 500 (so that `exp(-mean)` never underflows).
    pub fn poisson(&mut self, mean: f64) -> u64 {
        let mut left = mean;
        let mut total = 0;
        while left > 0.0 {
            let step = left.min(500.0);
            left -= step;
            let u = self.unit();
            let mut p = libm::exp(-step);
            let mut cumulative = p;
            let mut k = 0u64;
            while u >= cumulative && p > 0.0 {
                k += 1;
                p *= step / k as f64;
                cumulative += p;
            }
            total += k;
        }
        total
    }

    /// Fisher–Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }

    /// An index with probability proportional to its weight; `None` when no weight is positive.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|w| **w > 0.0).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let mut left = self.unit() * total;
        let mut last = None;
        for (i, w) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(i);
            if left < *w {
                return last;
            }
            left -= w;
        }
        last
    }
}

/// Where the tail of the ziggurat begins, for 256 layers.
const TAIL: f64 = 3.654_152_885_361_009;
/// The area of each of them.
const AREA: f64 = 0.004_928_673_233_974_655;

/// Layers of equal area that cover the upper half of the normal curve, widest first.
struct Ziggurat {
    /// Right edge of layer i; that of layer 0 is as wide as a rectangle of its area, tail included. The last is 0.
    edge: [f64; 257],
    /// Height of the curve (not normalised) at each edge.
    height: [f64; 257],
}

/// Distribution function of the standard normal distribution.
#[must_use]
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let curve = |x: f64| libm::exp(-0.5 * x * x);
    let mut edge = [0.0; 257];
    edge[0] = AREA / curve(TAIL);
    edge[1] = TAIL;
    for i in 2..256 {
        edge[i] = (-2.0 * libm::log(curve(edge[i - 1]) + AREA / edge[i - 1])).sqrt();
    }
    Ziggurat { edge, height: edge.map(curve) }
});

/// The standard normal quantile function, AS 241 (PPND16), relative accuracy about 1e-16, for `p` in (0, 1).
#[inline]
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ];
    const B: [f64; 8] = [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_854e3,
    ];
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    const E: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    const F: [f64; 8] = [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    #[inline]
    fn ratio(top: &[f64; 8], bottom: &[f64; 8], x: f64) -> f64 {
        let (mut n, mut d) = (top[7], bottom[7]);
        for i in (0..7).rev() {
            n = n * x + top[i];
            d = d * x + bottom[i];
        }
        n / d
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&A, &B, 0.180_625 - q * q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    // The square root is exact by IEEE 754 on every machine; the logarithm is not, hence libm's.
    let r = (-libm::log(tail)).sqrt();
    let x = if r <= 5.0 { ratio(&C, &D, r - 1.6) } else { ratio(&E, &F, r - 5.0) };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `kat_vectors` of Random123 for philox2x64-10.
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 2], 0), [0xca00_a045_9843_d731, 0x66c2_4222_c9a8_45b5]);
        assert_eq!(philox([u64::MAX; 2], u64::MAX), [0x65b0_21d6_0cd8_310f, 0x4d02_f322_2f86_df20]);
        assert_eq!(
            philox([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344], 0xa409_3822_299f_31d0),
            [0x0a5e_742c_2997_341c, 0xb0f8_83d3_8000_de5d]
        );
    }

    #[test]
    fn normal_quantile_matches_known_values() {
        // Values of the published algorithm's own check, and of standard tables.
        for (p, z) in
            [(0.25, -0.674_489_750_196_081_7), (0.001, -3.090_232_306_167_813_5), (1e-20, -9.262_340_089_798_408)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-13 * z.abs().max(1.0), "{p}: {}", normal_quantile(p));
        }
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-13);
    }

    #[test]
    fn moments() {
        let n = 200_000;
        let mut d = Draws::new(7, Stream::Turn, 1, 2);
        let (mut s, mut s2, mut po, mut ex) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = d.normal();
            s += x;
            s2 += x * x;
            po += d.poisson(1.5) as f64;
            ex += d.exponential(4.0);
        }
        let n = f64::from(n);
        assert!((s / n).abs() < 0.01 && (s2 / n - 1.0).abs() < 0.01);
        assert!((po / n - 1.5).abs() < 0.02 && (ex / n - 0.25).abs() < 0.005);
        assert!((d.poisson(5000.0) as f64 - 5000.0).abs() < 400.0);
    }

    #[test]
    fn blocks_computed_ahead_are_the_same() {
        for (seed, round, first) in [(0, 0, 0), (u64::MAX, 7, 4096), (1 << 40 | 3, 9, u32::MAX - 20)] {
            let mut blocks = [[0; 2]; AHEAD];
            first_blocks(seed, Stream::Turn, round, first, &mut blocks);
            for (i, block) in blocks.into_iter().enumerate() {
                let agent = first + i as u32;
                let mut plain = Draws::new(seed, Stream::Turn, round, agent);
                let mut ahead = Draws::with_block(seed, Stream::Turn, round, agent, block);
                assert!(!plain.used() && !ahead.used());
                for _ in 0..5 {
                    assert_eq!((plain.u64(), plain.u32()), (ahead.u64(), ahead.u32()));
                    assert!(plain.used() && ahead.used());
                }
            }
        }
    }

    /// The layers fit: the last one ends at the top of the curve.
    #[test]
    fn the_ziggurat_closes() {
        let last = ZIGGURAT.edge[255];
        assert!((ZIGGURAT.height[255] + AREA / last - 1.0).abs() < 1e-13);
        assert!(ZIGGURAT.edge.windows(2).all(|pair| pair[0] > pair[1]));
    }

    /// Tests Kolmogorov's distance to the distribution function, which is independent of the ziggurat, and the mass of the tail.
    #[test]
    fn normal_draws_are_normal() {
        let n = 2_000_000;
        let mut draws = Draws::new(3, Stream::Turn, 0, 0);
        let mut values: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
        values.sort_by(f64::total_cmp);
        let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let distance = values.iter().enumerate().map(|(i, x)| (below(*x) - (i as f64 + 0.5) / f64::from(n)).abs());
        // One honest sample in a thousand exceeds 1.95 / sqrt(n).
        assert!(distance.fold(0.0, f64::max) < 1.95 / f64::from(n).sqrt());
        let tail = values.iter().filter(|x| x.abs() > TAIL).count() as f64;
        let expected = 2.0 * below(-TAIL) * f64::from(n);
        assert!((tail - expected).abs() < 4.0 * expected.sqrt(), "{tail} beyond the last edge, {expected} expected");
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut d = Draws::new(1, Stream::World, 0, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[d.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert_eq!(d.below(0), 0);
    }
}
