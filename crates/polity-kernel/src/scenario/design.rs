//! The `design:` of a scenario: the runs of a sweep, and the metrics read from them.

mod combine;
mod factors;
mod fraction;
mod sample;
mod search;
mod seeds;
#[cfg(test)]
mod tests;

pub(super) use factors::placed;
pub use fraction::Fraction;
pub use sample::{Range, Sample, Scale};
pub use search::{By, Search, SearchSource, Target};
pub use seeds::{Intervals, Until};

use super::budget::Limits;
use super::expectation::Expectation;
use super::leave_one_out::LeaveOneOut;
use crate::digest::{Digest, Kind, RowHash};
use crate::tree::{Node, Origin, TreeError, Value, child, item, nearest};
use combine::Crossing;
use factors::{read_arms, read_factors};
use schemars::JsonSchema;
use seeds::read_seeds;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of arms of a design.
const MOST_ARMS: u64 = 10_000;
/// Maximum number of runs of a design.
const MOST_RUNS: u64 = 1_000_000;
/// The column and the factor of named arms, if there are other factors.
pub const NAMED: &str = "named_arm";
/// Columns of a sweep's tables, which no factor may be named after.
const COLUMNS: [&str; 5] = ["arm", "seed", "metric", "value", "digest"];
/// Keys of a scenario that no arm may set.
const FIXED: [&str; 5] = ["seed", "design", "polity", "name", "description"];

/// A design as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignSource {
    /// Factors with their levels; every combination of levels is an arm. `world.fraction: [0.5, 0.7]`, or with a name of its own
    /// `fraction: {path: world.fraction, values: [0.5, 0.7]}`; values may have names, `{low: 0.5, high: 0.7}`. With `sample`, a factor may
    /// have a range instead: `{path: world.fraction, range: [0.1, 0.9], scale: log, whole: false}`.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub factors: Option<Node>,
    /// How points are drawn from the ranges of factors; each point is an arm, combined with all factors that list their values.
    /// `{latin-hypercube: 40}`, `{sobol: 64}`, `{random: 100}`, or for sensitivity indices `{saltelli: 256}`.
    pub sample: Option<Sample>,
    /// Instead of `sample`: a search over the ranges, which decides from the runs so far which point is next. All factors must have ranges.
    pub search: Option<SearchSource>,
    /// The part of all combinations that is run, of factors with two levels: `1/2`, `1/4` and so on.
    #[schemars(with = "Option<String>")]
    pub fraction: Option<Node>,
    /// Named arms and their settings, `{control: {}, quiet: {world.announce: nothing}}`; each is combined with all factors.
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<String, serde_json::Value>>>")]
    pub arms: Option<Node>,
    /// Instead of `arms`: the whole team, and the team without each of its `members`, or without each of its `roles`. A difference from
    /// the arm `whole` is what the member or role is worth. The method must work without it.
    pub leave_one_out: Option<LeaveOneOut>,
    /// Number of seeds per arm, from the scenario's own seed on; or a list of seeds; or
    /// `{until: {metric: METRIC, halfwidth: WIDTH, batch: 5, max: 100}}`: batches of seeds until every interval is narrow enough.
    #[schemars(with = "serde_json::Value")]
    pub seeds: Node,
    /// Whether all arms use the same seeds, so that arms are compared seed by seed. Otherwise every arm has its own seeds.
    #[serde(default = "yes")]
    pub common_random_numbers: bool,
    /// The metrics to read, by name or by prefix (`guess.quantiles`). Default: all.
    pub metrics: Option<Vec<String>>,
    /// When metrics are read.
    #[serde(default)]
    pub read: Reading,
    /// The baseline arm of comparisons. Default: the first.
    pub baseline: Option<String>,
    /// What all runs may spend together, in any number of processes: `{cost_usd: 5}`. A run begins only if its own budget fits what is left.
    pub budget: Option<Limits>,
    /// What is expected, for the report: bounds on a metric's mean in an arm, or on its difference from the baseline.
    #[serde(default)]
    pub expect: Vec<Expectation>,
}

fn yes() -> bool {
    true
}

/// When a metric is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Its last value.
    #[default]
    Last,
    /// The mean of its values in the last k rounds of the run.
    MeanOfLast(u32),
    /// Its value in a round.
    Round(u32),
}

/// Something that differs between arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// The path that it sets; `None` for the named arms.
    pub path: Option<String>,
    /// Its levels, as text. Those of a range are the values of the points, in their order, and may be equal.
    pub levels: Vec<String>,
    /// The range that its values are drawn from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
}

impl Factor {
    /// Returns its name for readers: `arm` for the named arms.
    #[must_use]
    pub fn words(name: &str) -> &str {
        if name == NAMED { "arm" } else { name }
    }
}

/// One way to run the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// For each factor of the design, the position of its level.
    pub levels: Vec<usize>,
    /// Paths and values.
    #[serde(serialize_with = "as_map", deserialize_with = "from_map")]
    pub set: Vec<(String, Node)>,
    /// Its seeds.
    pub seeds: Vec<u64>,
}

fn as_map<S: Serializer>(set: &[(String, Node)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(set.iter().map(|(path, node)| (path, node.to_json())))
}

fn from_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Node)>, D::Error> {
    let map = serde_json::Map::deserialize(deserializer)?;
    Ok(map.iter().map(|(path, value)| (path.clone(), Node::from_json(value))).collect())
}

/// A design, expanded into arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Its factors; the first may be the named arms.
    pub factors: Vec<Factor>,
    /// Its arms, the last factor's levels varying fastest.
    pub arms: Vec<Arm>,
    /// Whether all arms have the same seeds.
    pub common_random_numbers: bool,
    /// The metrics to read; `None`: all.
    pub metrics: Option<Vec<String>>,
    /// When metrics are read.
    pub read: Reading,
    /// Position of the baseline arm.
    pub baseline: usize,
    /// How its points were drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// The search over its ranges; its arms are only the points so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The part of all combinations that is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<Fraction>,
    /// The rule that stops it; its arms have the maximum number of seeds until it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// What all runs may spend together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Limits>,
    /// What is expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
}

pub(super) fn wrong(
    path: impl Into<String>,
    origin: &Origin,
    message: impl Into<String>,
    help: Option<&str>,
) -> TreeError {
    TreeError { message: message.into(), path: path.into(), origin: origin.clone(), help: help.map(String::from) }
}

/// A factor's level or a named arm: its label and its settings.
pub(super) type Level = (String, Vec<(String, Node)>);

impl Design {
    /// Reads a design. `scenario` is the scenario without it.
    ///
    /// Arms are not built here. A path that does not exist in the scenario is an error when an arm is assembled, and points at the
    /// factor.
    pub fn read(node: &Node, scenario: &Node) -> Result<Design, TreeError> {
        let source: DesignSource = node.read("design")?;
        let mut places = Vec::new();
        let mut written = read_factors(source.factors.as_ref(), scenario, &mut places)?;
        let named = match (&source.arms, source.leave_one_out) {
            (Some(_), Some(_)) => {
                let message = "`leave_one_out` makes the arms itself; remove one of the two";
                return Err(wrong("design.arms", &node.get("arms").unwrap_or(node).origin, message, None));
            }
            (Some(arms), None) => Some(read_arms(arms, scenario, &places)?),
            (None, Some(leave_out)) => Some(leave_out.arms(node, scenario)?),
            (None, None) => None,
        };
        let ranges = written.iter().filter(|written| written.factor.range.is_some()).count();
        match (source.sample, written.iter().find(|written| written.factor.range.is_some())) {
            (Some(sample), _) => sample.check(ranges, node)?,
            (None, Some(written)) if source.search.is_none() => {
                let message =
                    format!("the factor `{}` has a range, but the design draws no sample", written.factor.name);
                let help = Some("add `sample: {latin-hypercube: 40}` to the design, or list `values`");
                return Err(wrong("design.factors", &node.get("factors").unwrap_or(node).origin, message, help));
            }
            (None, _) => {}
        }
        check_search(&source, node, named.is_some() || ranges < written.len(), ranges)?;
        let listed: Vec<&Factor> = written.iter().map(|of| &of.factor).filter(|of| of.range.is_none()).collect();
        let fraction = match &source.fraction {
            Some(part) => Some(Fraction::read(part, &listed)?),
            None => None,
        };
        let points = match &source.search {
            Some(search) => Some(search.evaluations()),
            None => source.sample.map(|sample| sample.points(ranges)),
        };
        let crossing = Crossing { named: named.as_deref(), fraction: fraction.as_ref(), points };
        let arms = crossing.count(&written);
        let seeds = read_seeds(&source, scenario, arms)?;
        if arms > MOST_ARMS || arms.saturating_mul(seeds.per_arm as u64) > MOST_RUNS {
            let runs = arms.saturating_mul(seeds.per_arm as u64);
            let message = format!(
                "this design has {arms} arms and {runs} runs; at most {MOST_ARMS} arms and {MOST_RUNS} runs are allowed"
            );
            return Err(wrong("design", &node.origin, message, Some("remove levels or seeds")));
        }
        let seed = seeds.of_arm(0).first().copied().unwrap_or(0);
        let search = match source.search.clone() {
            Some(search) => {
                Some(search.read(node.get("search").unwrap_or(node), source.common_random_numbers, seed)?)
            }
            None => None,
        };
        let drawn = match (source.sample, &search) {
            (Some(sample), _) => sample.draw(ranges, seed),
            (None, Some(search)) => vec![search.start(ranges)],
            (None, None) => Vec::new(),
        };
        if !drawn.is_empty() {
            let with_range = written.iter_mut().filter_map(|written| Some((written.factor.range?, written)));
            for (at, (range, written)) in with_range.enumerate() {
                written.take(range, drawn.iter().filter_map(|point| point.get(at).copied()), scenario);
            }
        }
        let (factors, mut arms) = crossing.cross(written, drawn.len());
        for (at, arm) in arms.iter_mut().enumerate() {
            arm.seeds = seeds.of_arm(at);
        }
        refuse_duplicates(&arms, scenario, node, points.is_some())?;
        let baseline = read_baseline(&source, &arms, node)?;
        read_reading(&source, node)?;
        let DesignSource { common_random_numbers, metrics, read, expect, sample, budget, .. } = source;
        let until = seeds.until;
        let design = Design {
            factors,
            arms,
            common_random_numbers,
            metrics,
            read,
            baseline,
            expect,
            sample,
            search,
            fraction,
            until,
            budget: budget.filter(Limits::any),
        };
        design.check_expectations(node)?;
        design.check_until(node)?;
        design.check_targets(node)?;
        Ok(design)
    }

    /// Adds points of a search, given in the unit cube, as arms with the seeds that follow.
    pub fn add_points(&mut self, places: &[Vec<f64>]) {
        let Some(first) = self.arms.first().cloned() else { return };
        let width = self.search.as_ref().map_or(0, |search| search.evaluations.to_string().len());
        for place in places {
            let at = self.arms.len();
            let mut set = Vec::new();
            for (factor, place) in self.factors.iter_mut().zip(place) {
                let Some((path, range)) = factor.path.clone().zip(factor.range) else { continue };
                let value = Node::built(range.at(*place));
                factor.levels.push(factors::label(&value));
                set.push((path, value));
            }
            let skipped = if self.common_random_numbers { 0 } else { (at * first.seeds.len()) as u64 };
            self.arms.push(Arm {
                name: format!("point-{:0width$}", at + 1),
                levels: vec![at; self.factors.len()],
                set,
                seeds: first.seeds.iter().map(|seed| seed + skipped).collect(),
            });
        }
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.arms.iter().map(|arm| arm.seeds.len()).sum()
    }

    /// Checks the expectations of a design that is complete otherwise.
    fn check_expectations(&self, node: &Node) -> Result<(), TreeError> {
        let arms: Vec<&str> = self.arms.iter().map(|arm| arm.name.as_str()).collect();
        let baseline = arms.get(self.baseline).copied().unwrap_or_default();
        for (i, expectation) in self.expect.iter().enumerate() {
            let fault = expectation.fault(&arms, baseline, self.reads(&expectation.metric));
            let Some((key, message, help)) = fault else { continue };
            let written = match node.get("expect").map(|list| &list.value) {
                Some(Value::List(items)) => items.get(i),
                _ => None,
            };
            let place = written.map(|written| written.get(key).unwrap_or(written));
            let origin = place.map_or(Origin::Built, |place| place.origin.clone());
            let path = item("design.expect", i);
            let path = if key.is_empty() { path } else { format!("{path}.{key}") };
            return Err(TreeError { message, path, origin, help: Some(help) });
        }
        Ok(())
    }

    /// Refuses a rule about a metric that the design does not read, or about differences that it does not have.
    fn check_until(&self, node: &Node) -> Result<(), TreeError> {
        let Some(until) = &self.until else { return Ok(()) };
        let (key, message, help) = if !self.reads(&until.metric) {
            ("metric", format!("the design does not read `{}`", until.metric), "add it to `design.metrics`")
        } else if until.of == Intervals::Differences && !self.compares_arms() {
            let message = "no arm is compared with the baseline: there is only one, or a factor has a range".to_owned();
            ("of", message, "leave `of` out, so that the interval of each arm counts")
        } else {
            return Ok(());
        };
        let place = node.get("seeds").and_then(|seeds| seeds.get("until")).and_then(|until| until.get(key));
        let origin = place.map_or(&node.origin, |place| &place.origin);
        Err(wrong(child("design.seeds.until", key), origin, message, Some(help)))
    }

    /// Returns whether arms are compared with the baseline. The points of a sample or a search are not.
    #[must_use]
    pub fn compares_arms(&self) -> bool {
        self.arms.len() > 1 && self.factors.iter().all(|factor| factor.range.is_none())
    }

    /// Refuses a search toward a metric that the design does not read, and factors named like columns of its table.
    fn check_targets(&self, node: &Node) -> Result<(), TreeError> {
        let Some(search) = &self.search else { return Ok(()) };
        if let Some(factor) = self.factors.iter().find(|factor| ["loss", "weight"].contains(&factor.name.as_str())) {
            let place = node.get("factors").unwrap_or(node);
            let message = format!("`{}` is already the name of a column in the table of a search", factor.name);
            let help = Some("give the factor another name: NAME: {path: PATH, range: [LOW, HIGH]}");
            return Err(wrong(child("design.factors", &factor.name), &place.origin, message, help));
        }
        let Some(target) = search.toward.iter().find(|target| !self.reads(&target.metric)) else { return Ok(()) };
        let place = node.get("search").and_then(|search| search.get("toward")).unwrap_or(node);
        let message = format!("the design does not read `{}`", target.metric);
        let help = Some("add it to `design.metrics`");
        Err(wrong("design.search.toward", &place.origin, message, help))
    }

    /// Returns whether a metric is read.
    #[must_use]
    pub fn reads(&self, metric: &str) -> bool {
        let chosen = |wanted: &String| {
            metric.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.metrics.as_ref().is_none_or(|wanted| wanted.iter().any(chosen))
    }
}

impl Reading {
    /// Returns the value of a metric in a run of `rounds` rounds, given its values by round, in order; `None` if there is none.
    #[must_use]
    pub fn of(self, values: &[(u32, f64)], rounds: u32) -> Option<f64> {
        let value = match self {
            Reading::Last => values.last().map(|(_, value)| *value),
            Reading::Round(round) => values.iter().find(|(r, _)| *r == round).map(|(_, value)| *value),
            Reading::MeanOfLast(k) => {
                let first = rounds.saturating_sub(k);
                let late: Vec<f64> = values.iter().filter(|(r, _)| *r >= first).map(|(_, value)| *value).collect();
                (!late.is_empty()).then(|| late.iter().sum::<f64>() / late.len() as f64)
            }
        };
        value.filter(|value| value.is_finite())
    }
}

/// Refuses a search in a design that runs anything else. `others`: whether it has arms or factors without a range.
fn check_search(source: &DesignSource, node: &Node, others: bool, ranges: usize) -> Result<(), TreeError> {
    let Some(place) = node.get("search").filter(|_| source.search.is_some()) else { return Ok(()) };
    let message = if source.sample.is_some() || source.fraction.is_some() {
        "a search chooses its points itself; remove `sample` and `fraction`"
    } else if others {
        "a search is over ranges alone; remove the arms and the factors that list values"
    } else if ranges == 0 {
        "no factor has a range to search"
    } else if matches!(source.seeds.value, Value::Map(_)) {
        "a search has the same number of seeds at every point"
    } else {
        return Ok(());
    };
    let help = Some("for instance `factors: {NAME: {path: PATH, range: [0.1, 0.5]}}` and `seeds: 5`");
    Err(wrong("design.search", &place.origin, message, help))
}

/// Refuses two arms with the same scenario or the same name. Two points of a sample may be the same scenario.
fn refuse_duplicates(arms: &[Arm], scenario: &Node, design: &Node, sampled: bool) -> Result<(), TreeError> {
    let mut seen: BTreeMap<u128, &str> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for arm in arms {
        if !names.insert(&arm.name) {
            let message = format!("two arms are named `{}`", arm.name);
            return Err(wrong(
                "design",
                &design.origin,
                message,
                Some("use no `,` or `=` in the names of arms and levels"),
            ));
        }
        if sampled {
            continue;
        }
        let tree = arm.applied(scenario)?;
        let Digest(hash) = Digest(RowHash::new(Kind::Input, 0).bytes(tree.to_json().to_string().as_bytes()).finish());
        if let Some(other) = seen.insert(hash, &arm.name) {
            let message = format!("the arms `{other}` and `{}` are the same scenario", arm.name);
            let named = design.get("arms").unwrap_or(design);
            return Err(wrong("design", &named.origin, message, Some("remove one of them, or make them differ")));
        }
    }
    Ok(())
}

impl Arm {
    /// Returns the scenario with the settings of this arm.
    pub fn applied(&self, scenario: &Node) -> Result<Node, TreeError> {
        let mut tree = scenario.clone();
        for (path, value) in &self.set {
            tree.edit(path, value.clone()).map_err(|error| self.blame(error))?;
        }
        Ok(tree)
    }

    /// Returns an error of this arm that the scenario alone may not have.
    #[must_use]
    pub fn blame(&self, error: TreeError) -> TreeError {
        let here = format!("in the arm `{}`", self.name);
        let help = error.help.map_or(here.clone(), |help| format!("{help}; {here}"));
        TreeError { help: Some(help), ..error }
    }
}

fn read_baseline(source: &DesignSource, arms: &[Arm], design: &Node) -> Result<usize, TreeError> {
    let Some(name) = &source.baseline else { return Ok(0) };
    arms.iter().position(|arm| arm.name == *name).ok_or_else(|| {
        let origin = design.get("baseline").map_or(&design.origin, |node| &node.origin);
        let known: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let near = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        let more = if known.len() > 12 { ", ..." } else { "" };
        let help = format!("arms: {}{more}", known[..known.len().min(12)].join(", "));
        wrong("design.baseline", origin, format!("there is no arm `{name}`{near}"), Some(&help))
    })
}

fn read_reading(source: &DesignSource, design: &Node) -> Result<(), TreeError> {
    let origin = |key: &str| design.get(key).map_or(&design.origin, |node| &node.origin).clone();
    if source.read == Reading::MeanOfLast(0) {
        return Err(wrong("design.read", &origin("read"), "a mean needs at least one round", None));
    }
    if source.metrics.as_ref().is_some_and(Vec::is_empty) {
        let help = Some("leave the key out to read all metrics");
        return Err(wrong("design.metrics", &origin("metrics"), "the list of metrics is empty", help));
    }
    Ok(())
}
