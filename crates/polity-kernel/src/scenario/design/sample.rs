//! Designs that sample ranges: which points of the ranges are run.

use super::wrong;
use crate::points::{SOBOL_DIMENSIONS, between, latin_hypercube, random, sobol};
use crate::tree::{Node, TreeError, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How points are drawn from the ranges of a design's factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sample {
    /// This number of independent points.
    Random(u32),
    /// A Latin hypercube of this number of points: each range is cut into as many parts, and each part has one point.
    LatinHypercube(u32),
    /// This number of points of a Sobol sequence, a power of two. They fill the ranges more evenly than random ones.
    Sobol(u32),
    /// For Sobol's sensitivity indices: two samples of this number of points, a power of two, and for each factor the first sample with
    /// this factor's values from the second. With k factors these are k + 2 times as many points.
    Saltelli(u32),
}

/// The scale of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal ratios.
    Log,
}

/// The values that a factor may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Its scale.
    #[serde(default)]
    pub scale: Scale,
    /// Whether only whole numbers are taken.
    #[serde(default)]
    pub whole: bool,
}

impl Range {
    /// Returns the value at a place, from 0 at its low end to 1 at its high end.
    #[must_use]
    pub fn at(&self, place: f64) -> Value {
        let log = self.scale == Scale::Log;
        match self.whole {
            // The part of the places that a whole number takes ends where that of the next begins.
            true => Value::Int(between(place, self.low, self.high + 1.0, log).floor().min(self.high) as i64),
            false => Value::Float(between(place, self.low, self.high, log)),
        }
    }

    /// Checks it. `node` is the factor that has it, `at` its path.
    pub(super) fn check(&self, node: &Node, at: &str) -> Result<(), TreeError> {
        let origin = &node.get("range").unwrap_or(node).origin;
        let fault = |message: String, help: &str| Err(wrong(at, origin, message, Some(help)));
        let Range { low, high, scale, whole } = *self;
        if low >= high {
            return fault(
                format!("the range ends at {high}, which is not above its beginning {low}"),
                "write `range: [0.1, 0.5]`",
            );
        }
        if scale == Scale::Log && low <= 0.0 {
            return fault(
                format!("a range on a log scale begins above 0, but this begins at {low}"),
                "leave `scale` out",
            );
        }
        if whole && (low.fract() != 0.0 || high.fract() != 0.0 || low.abs().max(high.abs()) > 1e15) {
            return fault(
                format!("the ends {low} and {high} are not whole numbers"),
                "use whole numbers, or leave `whole` out",
            );
        }
        Ok(())
    }
}

impl Sample {
    /// Returns the number of points for so many factors with ranges.
    #[must_use]
    pub fn points(self, factors: usize) -> u64 {
        match self {
            Sample::Random(n) | Sample::LatinHypercube(n) | Sample::Sobol(n) => u64::from(n),
            Sample::Saltelli(n) => u64::from(n).saturating_mul(factors as u64 + 2),
        }
    }

    /// Checks it for so many factors with ranges. `node` is the design.
    pub(super) fn check(self, factors: usize, node: &Node) -> Result<(), TreeError> {
        let origin = &node.get("sample").unwrap_or(node).origin;
        let fault = |message: String, help: String| Err(wrong("design.sample", origin, message, Some(&help)));
        if factors == 0 {
            let help = "give a factor a range: `NAME: {path: PATH, range: [0.1, 0.5]}`";
            return fault("no factor has a range to draw from".into(), help.into());
        }
        let (n, power, most) = match self {
            Sample::Random(n) | Sample::LatinHypercube(n) => (n, false, usize::MAX),
            Sample::Sobol(n) => (n, true, SOBOL_DIMENSIONS),
            Sample::Saltelli(n) => (n, true, SOBOL_DIMENSIONS / 2),
        };
        if n < 2 {
            return fault(
                "a sample needs at least two points".into(),
                "for instance `sample: {latin-hypercube: 40}`".into(),
            );
        }
        if power && !n.is_power_of_two() {
            let above = u64::from(n).next_power_of_two();
            let message = format!("a Sobol sequence needs a power of two as its number of points, and {n} is none");
            return fault(message, format!("write {} or {above}", above / 2));
        }
        if factors > most {
            let message = format!("{factors} factors have ranges, but this sample takes at most {most}");
            return fault(message, "take `latin-hypercube`, or fewer ranges".into());
        }
        Ok(())
    }

    /// Returns the points in the unit cube of so many factors, in the order of the arms. With [`Sample::Saltelli`] they are, n each: the
    /// first sample, the second, and for each factor the first with that factor's values from the second.
    #[must_use]
    pub fn draw(self, factors: usize, seed: u64) -> Vec<Vec<f64>> {
        match self {
            Sample::Random(n) => random(n as usize, factors, seed),
            Sample::LatinHypercube(n) => latin_hypercube(n as usize, factors, seed),
            Sample::Sobol(n) => sobol(n as usize, factors, Some(seed)),
            Sample::Saltelli(n) => {
                let both = sobol(n as usize, 2 * factors, Some(seed));
                let (first, second): (Vec<&[f64]>, Vec<&[f64]>) =
                    both.iter().map(|point| point.split_at(factors)).unzip();
                let mut all: Vec<Vec<f64>> = first.iter().chain(&second).map(|point| point.to_vec()).collect();
                for factor in 0..factors {
                    all.extend(first.iter().zip(&second).map(|(first, second)| {
                        let mut point = first.to_vec();
                        point[factor] = second[factor];
                        point
                    }));
                }
                all
            }
        }
    }

    /// Returns what it is in words, for methods sections: `a Latin hypercube of 40 points`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Sample::Random(n) => format!("{n} random points"),
            Sample::LatinHypercube(n) => format!("a Latin hypercube of {n} points"),
            Sample::Sobol(n) => format!("{n} points of a Sobol sequence with a random digital shift"),
            Sample::Saltelli(n) => {
                format!("Saltelli's design of {n} base points of a Sobol sequence with a random digital shift")
            }
        }
    }
}
