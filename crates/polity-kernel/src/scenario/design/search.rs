//! Searches over the ranges of a design: toward which values of metrics, and how.

use super::wrong;
use crate::points::random;
use crate::tree::{Node, TreeError, Value, item};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most evaluations of a search.
const MOST_EVALUATIONS: u32 = 10_000;

/// A search over the ranges of a design's factors, as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchSource {
    /// What is sought: a value of a metric, `{metric: guess.mean, value: 20}`; its minimum, if `value` is left out; or a list of targets
    /// with values.
    #[schemars(with = "serde_json::Value")]
    toward: Node,
    /// How: `random`, `nelder-mead`, `cma-es`, `abc` or `abc-smc`.
    by: By,
    /// Maximum number of points that are run.
    evaluations: u32,
    /// `abc-smc`: points of the first batch. Default: 100.
    population: Option<u32>,
    /// `abc`: the share of the points that is kept, those nearest to the targets. Default: 0.05.
    keep: Option<f64>,
}

/// How a search proceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Independent points.
    Random,
    /// The simplex method of Nelder and Mead, from the middle of the ranges: for few factors, and metrics that change smoothly.
    NelderMead,
    /// The evolution strategy CMA-ES, from the middle of the ranges: for more factors, and rough metrics.
    CmaEs,
    /// Approximate Bayesian computation by rejection: of independent points, the share that is nearest to the targets.
    Abc,
    /// The same in batches, each drawn around the nearest points so far: sequential Monte Carlo.
    AbcSmc,
}

impl By {
    /// Returns whether it ends in a posterior distribution, not in a best point.
    #[must_use]
    pub fn is_bayesian(self) -> bool {
        matches!(self, By::Abc | By::AbcSmc)
    }
}

/// A target of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The metric, by its full name.
    pub metric: String,
    /// The value that is sought. Default: the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What a difference of 1 between several targets is, in units of the metric. Default: 1.
    #[serde(default = "one")]
    pub scale: f64,
}

fn one() -> f64 {
    1.0
}

/// A search over the ranges of a design's factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What is sought.
    pub toward: Vec<Target>,
    /// How.
    pub by: By,
    /// Maximum number of points.
    pub evaluations: u32,
    /// Points of the first batch of [`By::AbcSmc`].
    pub population: u32,
    /// The share of the points that [`By::Abc`] keeps.
    pub keep: f64,
    /// Decides the points.
    pub seed: u64,
}

impl SearchSource {
    /// The most points that it may run.
    pub(super) fn evaluations(&self) -> u64 {
        u64::from(self.evaluations)
    }

    /// Checks it. `node` is the search; `common`: whether all points have the same seeds.
    pub(super) fn read(self, node: &Node, common: bool, seed: u64) -> Result<Search, TreeError> {
        let fault = |key: &str, message: String, help: Option<&str>| {
            Err(wrong(format!("design.search.{key}"), &node.get(key).unwrap_or(node).origin, message, help))
        };
        let SearchSource { toward: written, by, evaluations, population, keep } = self;
        let toward: Vec<Target> = match &written.value {
            Value::List(_) => written.read("design.search.toward")?,
            _ => vec![written.read("design.search.toward")?],
        };
        if toward.is_empty() {
            return fault(
                "toward",
                "a search needs a target".into(),
                Some("for instance `toward: {metric: guess.mean, value: 20}`"),
            );
        }
        for (i, target) in toward.iter().enumerate() {
            if target.scale.is_nan() || target.scale <= 0.0 {
                return fault("toward", format!("the scale of `{}` must be above 0", target.metric), None);
            }
            if target.value.is_none() && (toward.len() > 1 || by.is_bayesian()) {
                let at = if toward.len() > 1 { item("design.search.toward", i) } else { "design.search.toward".into() };
                let message = format!("the target `{}` needs a value", target.metric);
                let help = "only an optimiser with one target may seek the least of a metric";
                return Err(wrong(at, &written.origin, message, Some(help)));
            }
        }
        if !(2..=MOST_EVALUATIONS).contains(&evaluations) {
            let message = format!("a search has 2 to {MOST_EVALUATIONS} evaluations, but this has {evaluations}");
            return fault("evaluations", message, None);
        }
        if population.is_some() && by != By::AbcSmc {
            return fault("population", "`population` is for `by: abc-smc`".into(), None);
        }
        if keep.is_some() && by != By::Abc {
            return fault("keep", "`keep` is for `by: abc`".into(), None);
        }
        let (population, keep) = (population.unwrap_or(100).min(evaluations), keep.unwrap_or(0.05));
        if population < 10 && by == By::AbcSmc {
            return fault("population", format!("a population has 10 points or more, but this has {population}"), None);
        }
        if !(keep > 0.0 && keep < 1.0) {
            return fault("keep", format!("the share that is kept is between 0 and 1, but this is {keep}"), None);
        }
        if by.is_bayesian() && common {
            let message =
                "a posterior distribution needs points with seeds of their own, so that it holds the noise of runs";
            return fault("by", message.into(), Some("add `common_random_numbers: false` to the design"));
        }
        Ok(Search { toward, by, evaluations, population, keep, seed })
    }
}

impl Search {
    /// Returns the first point, in the unit cube of so many factors.
    #[must_use]
    pub fn start(&self, factors: usize) -> Vec<f64> {
        match self.by {
            By::NelderMead | By::CmaEs => vec![0.5; factors],
            By::Random | By::Abc | By::AbcSmc => random(1, factors, self.seed).remove(0),
        }
    }

    /// Returns what it is in words, for methods sections.
    #[must_use]
    pub fn words(&self) -> String {
        let of = |target: &Target| match target.value {
            Some(value) if self.toward.len() > 1 => format!("{} = {value} (scale {})", target.metric, target.scale),
            Some(value) => format!("{} = {value}", target.metric),
            None => format!("the least {}", target.metric),
        };
        let toward = self.toward.iter().map(of).collect::<Vec<_>>().join(", ");
        let how = match self.by {
            By::Random => "independent random points".to_owned(),
            By::NelderMead => "the Nelder-Mead simplex method".to_owned(),
            By::CmaEs => "the evolution strategy CMA-ES".to_owned(),
            By::Abc => format!("approximate Bayesian computation by rejection, keeping {} of the points", self.keep),
            By::AbcSmc => format!(
                "approximate Bayesian computation by adaptive population Monte Carlo, with populations of {}",
                self.population
            ),
        };
        format!("a search toward {toward} by {how}, with at most {} points", self.evaluations)
    }

    /// Returns how far a point is from the targets, given the mean of a metric there: the metric itself if its least is sought, else the root
    /// of the sum of squared differences in units of the scales. `None` if a metric is missing.
    pub fn loss(&self, mean: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        if let [Target { metric, value: None, .. }] = self.toward.as_slice() {
            return mean(metric);
        }
        let square = |target: &Target| {
            let difference = (mean(&target.metric)? - target.value?) / target.scale;
            Some(difference * difference)
        };
        Some(self.toward.iter().map(square).sum::<Option<f64>>()?.sqrt())
    }
}
