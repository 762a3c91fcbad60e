//! Exact quantiles.

use polity_kernel::Invalid;
use polity_kernel::metric::{Metric, Source};
use polity_kernel::registry::{LeafFiles, Registry};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.metric::<Quantiles>(files);
}

/// Which quantiles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The shares of agents below: 1 to 100 different numbers from 0 (the minimum) to 1 (the maximum).
    at: Vec<f64>,
}

impl Default for Params {
    fn default() -> Self {
        Params { at: vec![0.1, 0.5, 0.9] }
    }
}

/// Exact quantiles, interpolated linearly between neighbouring values (type 7 of Hyndman and Fan).
pub struct Quantiles {
    at: Vec<f64>,
}

/// Maps a number to bits that sort like the numbers.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the number of a key.
fn number(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

/// Number of leading bits of a key that choose its bucket: sign, exponent and 4 bits of the fraction.
const BUCKET_BITS: u32 = 16;

/// Runs that one task counts.
const TASK: usize = 64;

fn bucket(key: u64) -> usize {
    (key >> (u64::BITS - BUCKET_BITS)) as usize
}

/// Returns the values at `ranks` (ascending, different, each below the number of values) in sorted order. One pass counts the values by
/// bucket, a second collects those of the buckets with ranks; only these are searched.
fn at_ranks(runs: &[Vec<f64>], ranks: &[usize]) -> Vec<f64> {
    if runs.iter().map(Vec::len).sum::<usize>() <= 1 << BUCKET_BITS {
        // Fewer values than buckets: nothing to gain.
        let mut keys: Vec<u64> = runs.iter().flatten().map(|value| key(*value)).collect();
        return search(&mut keys, ranks.iter().copied()).collect();
    }
    let count = |runs: &[Vec<f64>]| {
        let mut counts = vec![0u32; 1 << BUCKET_BITS];
        for value in runs.iter().flatten() {
            counts[bucket(key(*value))] += 1;
        }
        counts
    };
    let add = |mut left: Vec<u32>, right: Vec<u32>| {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
        left
    };
    let counts = runs.par_chunks(TASK).map(count).reduce(|| vec![0; 1 << BUCKET_BITS], add);
    // For each bucket with ranks: their positions in it.
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut part_of = vec![u8::MAX; 1 << BUCKET_BITS];
    let mut ranks = ranks.iter().copied().peekable();
    let mut begin = 0;
    for (count, part) in counts.iter().zip(&mut part_of) {
        let end = begin + *count as usize;
        let mut places = Vec::new();
        while let Some(rank) = ranks.next_if(|rank| *rank < end) {
            places.push(rank - begin);
        }
        if !places.is_empty() {
            *part = parts.len() as u8;
            parts.push(places);
        }
        begin = end;
    }
    let collect = |runs: &[Vec<f64>]| {
        let mut keys: Vec<Vec<u64>> = vec![Vec::new(); parts.len()];
        for value in runs.iter().flatten() {
            let key = key(*value);
            if let Some(keys) = keys.get_mut(part_of[bucket(key)] as usize) {
                keys.push(key);
            }
        }
        keys
    };
    let keys: Vec<Vec<Vec<u64>>> = runs.par_chunks(TASK).map(collect).collect();
    let mut found = Vec::new();
    for (part, places) in parts.into_iter().enumerate() {
        let mut keys = keys.iter().map(|keys| keys[part].as_slice()).collect::<Vec<_>>().concat();
        found.extend(search(&mut keys, places.into_iter()));
    }
    found
}

/// Returns the values at ascending positions of the sorted keys.
fn search(keys: &mut [u64], places: impl Iterator<Item = usize>) -> impl Iterator<Item = f64> {
    let mut done = 0;
    places.map(move |place| {
        // Values that earlier searches left to the left are no greater.
        let key = *keys[done..].select_nth_unstable(place - done).1;
        done = place;
        number(key)
    })
}

impl Metric for Quantiles {
    const NAME: &'static str = "quantiles";
    const SUMMARY: &'static str = "Exact quantiles";
    type Params = Params;
    /// The values, in runs.
    type Fold = Vec<Vec<f64>>;

    fn open(params: Params, _: &Source<'_>) -> Result<Self, Invalid> {
        let invalid = |key: String, message: String| Err(Invalid { key, message });
        let at = params.at;
        if !(1..=100).contains(&at.len()) {
            return invalid("at".into(), format!("needs 1 to 100 numbers, has {}", at.len()));
        }
        for (i, share) in at.iter().enumerate() {
            Invalid::within(0.0..=1.0, &format!("at[{i}]"), *share)?;
            if at[..i].contains(share) {
                return invalid(format!("at[{i}]"), format!("{share} appears twice; remove one"));
            }
        }
        // Adding zero gives -0 and 0 the same name.
        Ok(Quantiles { at: at.into_iter().map(|share| share + 0.0).collect() })
    }

    fn fold(&self, values: &[f64]) -> Vec<Vec<f64>> {
        vec![values.to_vec()]
    }

    fn merge(&self, mut left: Vec<Vec<f64>>, right: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        left.extend(right);
        left
    }

    fn finish(&self, runs: Vec<Vec<f64>>, write: &mut dyn FnMut(&str, f64)) {
        let Some(last) = runs.iter().map(Vec::len).sum::<usize>().checked_sub(1) else { return };
        // Position of each quantile: a rank, and a fraction of the way to the next.
        let spots: Vec<(usize, f64)> = self
            .at
            .iter()
            .map(|share| {
                let spot = share * last as f64;
                (spot as usize, spot.fract())
            })
            .collect();
        let mut ranks: Vec<usize> = spots.iter().flat_map(|(rank, _)| [*rank, (rank + 1).min(last)]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let values = at_ranks(&runs, &ranks);
        let value = |rank: usize| values[ranks.partition_point(|other| *other < rank)];
        for (share, (rank, part)) in self.at.iter().zip(spots) {
            let (low, high) = (value(rank), value((rank + 1).min(last)));
            // Do not interpolate between equal values, also when both are infinite.
            let quantile = if part == 0.0 || low == high { low } else { low + part * (high - low) };
            if !quantile.is_nan() {
                write(&format!("q{share}"), quantile);
            }
        }
    }
}
