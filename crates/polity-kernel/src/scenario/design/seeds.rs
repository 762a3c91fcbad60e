//! The seeds of a design: a number, a list, or batches until intervals are narrow enough.

use super::{DesignSource, MOST_RUNS, wrong};
use crate::tree::{Node, Origin, TreeError, Value, item};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A rule that stops a design: seeds are added in batches until the intervals of a metric are narrow enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The metric, by its full name.
    pub metric: String,
    /// Half of the width that every 95 % interval may have, in units of the metric.
    pub halfwidth: f64,
    /// Seeds per arm in a batch: 2 or more. Default: 5.
    #[serde(default = "five")]
    pub batch: u32,
    /// Maximum number of seeds per arm.
    pub max: u32,
    /// Which intervals must be narrow enough.
    #[serde(default)]
    pub of: Intervals,
}

/// Which intervals a rule looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Intervals {
    /// Those of the mean in every arm.
    #[default]
    Arms,
    /// Those of every difference from the baseline.
    Differences,
}

fn five() -> u32 {
    5
}

impl Until {
    /// Returns half of the width of the widest interval, given by their ends; `None` if one is missing, or if there are none.
    pub fn widest(&self, intervals: impl IntoIterator<Item = Option<(f64, f64)>>) -> Option<f64> {
        let halves = intervals.into_iter().map(|interval| interval.map(|(low, high)| (high - low) / 2.0));
        let halves: Option<Vec<f64>> = halves.collect();
        halves?.into_iter().reduce(f64::max)
    }

    /// Returns whether intervals, given by their ends, are all narrow enough. A missing one is not.
    pub fn narrow(&self, intervals: impl IntoIterator<Item = Option<(f64, f64)>>) -> bool {
        self.widest(intervals).is_some_and(|widest| widest <= self.halfwidth)
    }

    fn check(&self, node: &Node) -> Result<(), TreeError> {
        let fault = |key: &str, message: String| {
            let origin = &node.get(key).unwrap_or(node).origin;
            Err(wrong(format!("design.seeds.until.{key}"), origin, message, None))
        };
        if self.halfwidth.is_nan() || self.halfwidth <= 0.0 {
            return fault("halfwidth", format!("the half-width must be above 0, but this is {}", self.halfwidth));
        }
        if self.batch < 2 {
            return fault("batch", format!("a batch has 2 seeds or more, but this has {}", self.batch));
        }
        if self.max < self.batch {
            return fault("max", format!("the maximum {} is below the {} seeds of a batch", self.max, self.batch));
        }
        Ok(())
    }
}

/// The seeds of a design.
pub(super) struct Seeds {
    listed: Option<Vec<u64>>,
    first: u64,
    pub(super) per_arm: usize,
    common: bool,
    pub(super) until: Option<Until>,
}

impl Seeds {
    pub(super) fn of_arm(&self, arm: usize) -> Vec<u64> {
        let skipped = if self.common { 0 } else { (arm * self.per_arm) as u64 };
        match &self.listed {
            Some(seeds) => seeds.clone(),
            None => (0..self.per_arm as u64).map(|i| self.first + skipped + i).collect(),
        }
    }
}

/// Seeds as a map.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batches {
    until: Until,
}

pub(super) fn read_seeds(source: &DesignSource, scenario: &Node, arms: u64) -> Result<Seeds, TreeError> {
    let node = &source.seeds;
    let at = "design.seeds";
    let fault = |message: &str, help| Err(wrong(at, &node.origin, message, help));
    let common = source.common_random_numbers;
    if let Value::List(items) = &node.value {
        let seeds: Vec<u64> = node.read(at)?;
        if let Some(Node { origin: edit @ Origin::Edit(_), .. }) = scenario.get("seed") {
            let message = "the design lists its seeds, so this would change nothing";
            return Err(wrong(
                "seed",
                edit,
                message,
                Some("give the design a number of seeds, for instance --seeds 30"),
            ));
        }
        if !common {
            let help = "give a number of seeds, or remove `common_random_numbers: false`";
            return fault("a list of seeds is the same in every arm", Some(help));
        }
        if seeds.is_empty() {
            return fault("there must be at least one seed", None);
        }
        let mut seen = BTreeSet::new();
        for (i, (seed, Node { origin: place, .. })) in seeds.iter().zip(items).enumerate() {
            if !seen.insert(*seed) {
                return Err(wrong(item(at, i), place, format!("the seed {seed} is listed twice"), None));
            }
            if i64::try_from(*seed).is_err() {
                return Err(wrong(item(at, i), place, "seeds must be below 2^63", None));
            }
        }
        return Ok(Seeds { per_arm: seeds.len(), listed: Some(seeds), first: 0, common, until: None });
    }
    let until = match &node.value {
        Value::Map(_) => {
            let Batches { until } = node.read(at)?;
            until.check(node.get("until").unwrap_or(node))?;
            Some(until)
        }
        _ => None,
    };
    let count: u64 = match &until {
        Some(until) => u64::from(until.max),
        None => node
            .read(at)
            .map_err(|error| TreeError { help: Some("write a number of seeds, or a list of seeds".into()), ..error })?,
    };
    if count == 0 {
        return fault("there must be at least one seed", Some("30 is a good number for intervals"));
    }
    let first: u64 = match scenario.get("seed") {
        Some(seed) => seed.read("seed")?,
        None => 1,
    };
    let all = if common { count } else { count.saturating_mul(arms) };
    if count > MOST_RUNS || first.saturating_add(all) > i64::MAX as u64 {
        return fault(
            &format!(
                "{count} seeds from {first} on are not possible: there can be at most {MOST_RUNS}, all below 2^63"
            ),
            None,
        );
    }
    Ok(Seeds { listed: None, first, per_arm: count as usize, common, until })
}
