//! The `design:` of a scenario: the runs of a sweep, and the metrics read from them.

use super::expectation::Expectation;
use super::leave_one_out::LeaveOneOut;
use crate::digest::{Digest, Kind, RowHash};
use crate::tree::{Node, Origin, Step, TreeError, Value, child, item, nearest, parse_path};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of arms of a design.
const MOST_ARMS: u64 = 10_000;
/// Maximum number of runs of a design.
const MOST_RUNS: u64 = 1_000_000;
/// The column and the factor of named arms, if there are other factors.
const NAMED: &str = "named_arm";
/// Columns of a sweep's tables, which no factor may be named after.
const COLUMNS: [&str; 5] = ["arm", "seed", "metric", "value", "digest"];
/// Keys of a scenario that no arm may set.
const FIXED: [&str; 5] = ["seed", "design", "polity", "name", "description"];

/// A design as it is written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DesignSource {
    /// Factors with their levels; every combination of levels is an arm. `world.fraction: [0.5, 0.7]`, or with a name of its own
    /// `fraction: {path: world.fraction, values: [0.5, 0.7]}`.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub factors: Option<Node>,
    /// Named arms and their settings, `{control: {}, quiet: {world.announce: nothing}}`; each is combined with all factors.
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<String, serde_json::Value>>>")]
    pub arms: Option<Node>,
    /// Instead of `arms`: the whole team, and the team without each of its `members`, or without each of its `roles`. A difference from
    /// the arm `whole` is what the member or role is worth. The method must work without it.
    pub leave_one_out: Option<LeaveOneOut>,
    /// Number of seeds per arm, from the scenario's own seed on; or a list of seeds.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// The path that it sets; `None` for the named arms.
    pub path: Option<String>,
    /// Its levels, as text.
    pub levels: Vec<String>,
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
        let (mut factors, mut levels): (Vec<Factor>, Vec<Vec<Level>>) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        let written = read_factors(source.factors.as_ref(), scenario, &mut places)?;
        let named = match (&source.arms, source.leave_one_out) {
            (Some(_), Some(_)) => {
                let message = "`leave_one_out` makes the arms itself; remove one of the two";
                return Err(wrong("design.arms", &node.get("arms").unwrap_or(node).origin, message, None));
            }
            (Some(arms), None) => Some(read_arms(arms, scenario, &places)?),
            (None, Some(leave_out)) => Some(leave_out.arms(node, scenario)?),
            (None, None) => None,
        };
        let has_named = named.is_some();
        if let Some(named) = named {
            if !written.is_empty() || named.len() > 1 {
                let labels = named.iter().map(|(label, _)| label.clone()).collect();
                factors.push(Factor { name: NAMED.into(), path: None, levels: labels });
            }
            levels.push(named);
        }
        for (factor, of_factor) in written {
            factors.push(factor);
            levels.push(of_factor);
        }
        let arms = levels.iter().fold(1u64, |n, of_factor| n.saturating_mul(of_factor.len() as u64));
        let seeds = read_seeds(&source, scenario, arms)?;
        if arms > MOST_ARMS || arms.saturating_mul(seeds.per_arm as u64) > MOST_RUNS {
            let runs = arms.saturating_mul(seeds.per_arm as u64);
            let message = format!(
                "this design has {arms} arms and {runs} runs; at most {MOST_ARMS} arms and {MOST_RUNS} runs are allowed"
            );
            return Err(wrong("design", &node.origin, message, Some("remove levels or seeds")));
        }
        let mut arms = combine(&levels, has_named, &factors);
        for (at, arm) in arms.iter_mut().enumerate() {
            arm.seeds = seeds.of_arm(at);
        }
        if factors.len() == 1 && factors[0].path.is_none() {
            // With named arms only, the arm's name says all, and every arm is compared with the baseline anyway.
            factors.clear();
            arms.iter_mut().for_each(|arm| arm.levels.clear());
        }
        refuse_duplicates(&arms, scenario, node)?;
        let baseline = read_baseline(&source, &arms, node)?;
        read_reading(&source, node)?;
        let DesignSource { common_random_numbers, metrics, read, expect, .. } = source;
        let design = Design { factors, arms, common_random_numbers, metrics, read, baseline, expect };
        design.check_expectations(node)?;
        Ok(design)
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

/// Returns a level as text, for names of arms and for tables.
fn label(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        _ => node.to_json().to_string(),
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Int(n) => Some(n as f64),
        Value::Float(x) => Some(x),
        _ => None,
    }
}

/// Checks a path that an arm sets.
fn check_path(path: &str, at: &str, origin: &Origin) -> Result<(), TreeError> {
    let steps = parse_path(path).map_err(|message| {
        wrong(at, origin, message, Some("write it like world.fraction, cohorts[0].count or cohorts.NAME.count"))
    })?;
    let root = match steps.first() {
        Some(crate::tree::Step::Word(root) | crate::tree::Step::Name(root)) => root.as_str(),
        _ => "",
    };
    if FIXED.contains(&root) {
        let help = (root == "seed").then_some("set the number of seeds, or the seeds themselves, under `design.seeds`");
        return Err(wrong(at, origin, format!("`{root}` is the same in all arms of a design"), help));
    }
    Ok(())
}

/// Returns the value as an arm sets it. If the scenario does not have the key yet, errors point at the path that names it.
pub(super) fn placed(value: &Node, path: &str, named_at: &Origin, scenario: &Node) -> Node {
    let mut value = value.clone();
    if scenario.find(path).is_none() {
        value.origin = named_at.clone();
    }
    value
}

/// The places that factors set: the path as the scenario resolves it, and the factor.
type Places = Vec<(Vec<String>, String)>;

/// Resolves a path step by step; entries of lists become indices.
fn resolved(path: &str, scenario: &Node) -> Vec<String> {
    let mut here = Some(scenario);
    let mut out = Vec::new();
    // Unreadable paths were refused before.
    for step in parse_path(path).unwrap_or_default() {
        let entry = here.and_then(|node| node.entry(&step));
        out.push(match (&entry, &step) {
            (Some((at, _)), _) => at.clone(),
            (None, Step::Index(at)) => at.to_string(),
            (None, Step::Word(word) | Step::Name(word)) => word.clone(),
        });
        here = entry.map(|(_, node)| node);
    }
    out
}

/// Returns the factor that sets a place, a part of it, or a place that contains it.
fn set_by<'a>(places: &'a Places, path: &[String]) -> Option<&'a str> {
    let overlaps = |other: &[String]| other.iter().zip(path).all(|(a, b)| a == b);
    places.iter().find(|(other, _)| overlaps(other)).map(|(_, factor)| factor.as_str())
}

/// A factor with a name of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedFactor {
    path: String,
    values: Vec<Node>,
}

/// Reads the factors; adds the paths that they set to `places`.
fn read_factors(
    node: Option<&Node>,
    scenario: &Node,
    places: &mut Places,
) -> Result<Vec<(Factor, Vec<Level>)>, TreeError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let Value::Map(entries) = &node.value else {
        let message = format!("expected a map of factors, found {}", node.describe());
        return Err(wrong("design.factors", &node.origin, message, Some("for instance `world.fraction: [0.5, 0.7]`")));
    };
    if entries.is_empty() {
        return Err(wrong(
            "design.factors",
            &node.origin,
            "there are no factors",
            Some("remove the key, or add a factor"),
        ));
    }
    let mut factors = Vec::new();
    for (key, node) in entries {
        let at = child("design.factors", &key.name);
        let (path, path_at, values) = match &node.value {
            Value::List(values) => (key.name.clone(), &key.origin, values.clone()),
            Value::Map(_) => {
                let NamedFactor { path, values } = node.read(&at)?;
                (path, node.get("path").map_or(&node.origin, |path| &path.origin), values)
            }
            _ => {
                let message = format!("expected a list of values, found {}", node.describe());
                let help = Some("write `PATH: [VALUE, ...]` or `NAME: {path: PATH, values: [VALUE, ...]}`");
                return Err(wrong(at, &node.origin, message, help));
            }
        };
        if COLUMNS.contains(&key.name.as_str()) || key.name == NAMED {
            let message = format!("`{}` is already the name of a column in every sweep", key.name);
            let help = "give the factor another name: NAME: {path: PATH, values: [VALUE, ...]}";
            return Err(wrong(at, &key.origin, message, Some(help)));
        }
        check_path(&path, &at, path_at)?;
        let place = resolved(&path, scenario);
        if let Some(other) = set_by(places, &place) {
            return Err(wrong(
                at,
                path_at,
                format!("the factor `{other}` already sets `{path}`, or a part of it"),
                None,
            ));
        }
        places.push((place, key.name.clone()));
        if let Some(Node { origin: edit @ Origin::Edit(_), .. }) = scenario.find(&path) {
            let message = format!("the factor `{}` sets `{path}` in every arm, so this would change nothing", key.name);
            return Err(wrong(path, edit, message, Some("remove one of the two")));
        }
        if values.is_empty() {
            return Err(wrong(
                at,
                &node.origin,
                "a factor needs at least one value",
                Some("add values, or remove the factor"),
            ));
        }
        let mut levels: Vec<Level> = Vec::new();
        for (i, value) in values.iter().enumerate() {
            let label = label(value);
            let same = |other: &Node| {
                other.to_json() == value.to_json() || number(other).is_some_and(|x| number(value) == Some(x))
            };
            if values[..i].iter().any(same) {
                return Err(wrong(item(&at, i), &value.origin, format!("the value {label} is listed twice"), None));
            }
            levels.push((label, vec![(path.clone(), placed(value, &path, path_at, scenario))]));
        }
        let labels = levels.iter().map(|(label, _)| label.clone()).collect();
        factors.push((Factor { name: key.name.clone(), path: Some(path), levels: labels }, levels));
    }
    Ok(factors)
}

fn read_arms(node: &Node, scenario: &Node, places: &Places) -> Result<Vec<Level>, TreeError> {
    let path = "design.arms";
    let help = Some("for instance `arms: {control: {}, quiet: {world.announce: nothing}}`");
    let Value::Map(entries) = &node.value else {
        let message = format!("expected a map of arms, found {}", node.describe());
        return Err(wrong(path, &node.origin, message, help));
    };
    if entries.is_empty() {
        return Err(wrong(path, &node.origin, "there are no arms", help));
    }
    let mut arms = Vec::new();
    for (key, node) in entries {
        let at = child(path, &key.name);
        if key.name.trim().is_empty() {
            return Err(wrong(at, &key.origin, "an arm needs a name", help));
        }
        let set = match &node.value {
            Value::Map(set) => set.as_slice(),
            Value::Null => &[],
            _ => {
                let message = format!("expected a map of paths and values, found {}", node.describe());
                return Err(wrong(at, &node.origin, message, help));
            }
        };
        let mut edits = Vec::new();
        for (key, value) in set {
            check_path(&key.name, &at, &key.origin)?;
            if let Some(factor) = set_by(places, &resolved(&key.name, scenario)) {
                let message = format!("the factor `{factor}` sets `{}`, or a part of it, in every arm", key.name);
                return Err(wrong(at, &key.origin, message, Some("set it in only one of the two")));
            }
            edits.push((key.name.clone(), placed(value, &key.name, &key.origin, scenario)));
        }
        arms.push((key.name.clone(), edits));
    }
    Ok(arms)
}

/// The seeds of a design.
struct Seeds {
    listed: Option<Vec<u64>>,
    first: u64,
    per_arm: usize,
    common: bool,
}

impl Seeds {
    fn of_arm(&self, arm: usize) -> Vec<u64> {
        let skipped = if self.common { 0 } else { (arm * self.per_arm) as u64 };
        match &self.listed {
            Some(seeds) => seeds.clone(),
            None => (0..self.per_arm as u64).map(|i| self.first + skipped + i).collect(),
        }
    }
}

fn read_seeds(source: &DesignSource, scenario: &Node, arms: u64) -> Result<Seeds, TreeError> {
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
        return Ok(Seeds { per_arm: seeds.len(), listed: Some(seeds), first: 0, common });
    }
    let count: u64 = node
        .read(at)
        .map_err(|error| TreeError { help: Some("write a number of seeds, or a list of seeds".into()), ..error })?;
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
    Ok(Seeds { listed: None, first, per_arm: count as usize, common })
}

/// Returns all combinations, the last factor varying fastest.
fn combine(levels: &[Vec<Level>], named_arms: bool, factors: &[Factor]) -> Vec<Arm> {
    let mut arms = vec![Arm { name: String::new(), levels: Vec::new(), set: Vec::new(), seeds: Vec::new() }];
    // A single named arm without factors is not a factor.
    let unnamed = levels.len() - factors.len().min(levels.len());
    for (i, of_factor) in levels.iter().enumerate() {
        let prefix = match (i.checked_sub(unnamed).and_then(|i| factors.get(i)), i == 0 && named_arms) {
            (Some(factor), false) => format!("{}=", factor.name),
            _ => String::new(),
        };
        let extended = |arm: &Arm| {
            let arm = arm.clone();
            let prefix = prefix.clone();
            of_factor.iter().enumerate().map(move |(at, (label, set))| {
                let mut arm = arm.clone();
                let comma = if arm.name.is_empty() { "" } else { "," };
                arm.name.push_str(&format!("{comma}{prefix}{label}"));
                if i >= unnamed {
                    arm.levels.push(at);
                }
                arm.set.extend(set.iter().cloned());
                arm
            })
        };
        arms = arms.iter().flat_map(extended).collect();
    }
    if levels.is_empty() {
        arms.iter_mut().for_each(|arm| arm.name = "base".into());
    }
    arms
}

/// Refuses two arms with the same scenario or the same name.
fn refuse_duplicates(arms: &[Arm], scenario: &Node, design: &Node) -> Result<(), TreeError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scenario() -> Node {
        Node::from_json(&json!({
            "seed": 4, "rounds": 3, "world": {"kind": "guess", "fraction": 0.5},
            "cohorts": [{"name": "thinkers", "policy": {"kind": "level-k"}}],
        }))
    }

    fn read(design: serde_json::Value) -> Result<Design, TreeError> {
        Design::read(&Node::from_json(&design), &scenario())
    }

    #[test]
    fn factors_are_crossed_and_arms_named() {
        let design = read(json!({
            "factors": {"world.fraction": [0.5, 0.7], "mean": {"path": "cohorts.thinkers.policy.mean", "values": [1, 2, 3]}},
            "seeds": 2,
        }))
        .unwrap();
        let names: Vec<&str> = design.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names[..2], ["world.fraction=0.5,mean=1", "world.fraction=0.5,mean=2"]);
        assert_eq!((names.len(), design.runs()), (6, 12));
        assert_eq!(design.arms[4].levels, [1, 1]);
        assert!(design.arms.iter().all(|arm| arm.seeds == [4, 5]));
        let tree = design.arms[5].applied(&scenario()).unwrap();
        assert_eq!(tree.find("cohorts.thinkers.policy.mean").unwrap().value, Value::Int(3));
        assert_eq!(tree.find("world.fraction").unwrap().value, Value::Float(0.7));
    }

    #[test]
    fn named_arms_stand_alone_or_are_crossed() {
        let arms = json!({"control": null, "loud": {"world.announce": "all", "rounds": 5}});
        let alone = read(json!({"arms": arms, "seeds": [9, 3]})).unwrap();
        assert_eq!((alone.factors.len(), alone.arms[1].name.as_str(), alone.runs()), (0, "loud", 4));
        assert_eq!((&alone.arms[0].seeds, &alone.arms[1].levels), (&vec![9, 3], &Vec::new()));
        let crossed = read(json!({"arms": arms, "factors": {"world.fraction": [0.1, 0.2]}, "seeds": 1})).unwrap();
        assert_eq!(crossed.factors[0].name, NAMED);
        assert_eq!((crossed.arms[3].name.as_str(), &crossed.arms[3].levels), ("loud,world.fraction=0.2", &vec![1, 1]));
        assert_eq!(crossed.arms[3].set.len(), 3);
        let one = read(json!({"arms": {"only": {"rounds": 2}}, "factors": {"world.fraction": [0.1, 0.2]}, "seeds": 1}));
        assert_eq!(one.unwrap().arms[1].name, "only,world.fraction=0.2");
        let single = read(json!({"arms": {"only": {"rounds": 2}}, "seeds": 1})).unwrap();
        assert_eq!((single.arms[0].name.as_str(), single.arms[0].levels.len(), single.factors.len()), ("only", 0, 0));
        assert_eq!(read(json!({"seeds": 2})).unwrap().arms[0].name, "base");
    }

    #[test]
    fn arms_without_common_random_numbers_share_no_seed() {
        let design = read(json!({"factors": {"rounds": [1, 2]}, "seeds": 3, "common_random_numbers": false})).unwrap();
        assert_eq!((&design.arms[0].seeds, &design.arms[1].seeds), (&vec![4, 5, 6], &vec![7, 8, 9]));
    }

    #[test]
    fn a_design_survives_json() {
        let arms = json!({"b": {"world.fraction": 1.0, "cohorts": [1, {"x": null}]}, "a": {}});
        let design = read(json!({"arms": arms, "seeds": 2, "read": {"mean_of_last": 3}, "baseline": "a"})).unwrap();
        let text = serde_json::to_string(&design).unwrap();
        let again: Design = serde_json::from_str(&text).unwrap();
        assert_eq!((again, design.baseline), (design.clone(), 1));
    }

    #[test]
    fn wrong_designs_say_what_is_wrong() {
        let cases = [
            (json!({"factors": {"rounds": [1]}}), "design: the key `seeds` is missing"),
            (json!({"seeds": 0}), "design.seeds: there must be at least one seed"),
            (json!({"seeds": []}), "design.seeds: there must be at least one seed"),
            (json!({"seeds": [1, 2, 1]}), "design.seeds[2]: the seed 1 is listed twice"),
            (json!({"seeds": "x"}), "design.seeds: expected a whole number, found text `x`"),
            (
                json!({"seeds": [1], "common_random_numbers": false}),
                "design.seeds: a list of seeds is the same in every arm",
            ),
            (json!({"seeds": 1, "factor": {}}), "design.factor: unknown key `factor`; did you mean `factors`?"),
            (json!({"seeds": 1, "factors": {}}), "design.factors: there are no factors"),
            (json!({"seeds": 1, "factors": [1]}), "design.factors: expected a map of factors, found a list of 1 entry"),
            (
                json!({"seeds": 1, "factors": {"rounds": []}}),
                "design.factors.rounds: a factor needs at least one value",
            ),
            (
                json!({"seeds": 1, "factors": {"rounds": 3}}),
                "design.factors.rounds: expected a list of values, found the number 3",
            ),
            (
                json!({"seeds": 1, "factors": {"rounds": [3, 4, 3]}}),
                "design.factors.rounds[2]: the value 3 is listed twice",
            ),
            (
                json!({"seeds": 1, "factors": {"seed": [3]}}),
                "design.factors.seed: `seed` is already the name of a column in every sweep",
            ),
            (
                json!({"seeds": 1, "factors": {"s": {"path": "seed", "values": [3]}}}),
                "design.factors.s: `seed` is the same in all arms of a design",
            ),
            (
                json!({"seeds": 1, "factors": {"s": {"path": "rounds", "valuse": [3]}}}),
                "design.factors.s.valuse: unknown key `valuse`; did you mean `values`?",
            ),
            (
                json!({"seeds": 1, "factors": {"rounds": [1], "r": {"path": "rounds", "values": [3]}}}),
                "design.factors.r: the factor `rounds` already sets `rounds`, or a part of it",
            ),
            (json!({"seeds": 1, "factors": {"a..b": [3]}}), "design.factors.\"a..b\": a step of the path is empty"),
            (json!({"seeds": 1, "arms": {}}), "design.arms: there are no arms"),
            (
                json!({"seeds": 1, "arms": {"a": 3}}),
                "design.arms.a: expected a map of paths and values, found the number 3",
            ),
            (
                json!({"seeds": 1, "arms": {"a": {"rounds": 3}}, "factors": {"rounds": [1, 2]}}),
                "design.arms.a: the factor `rounds` sets `rounds`, or a part of it, in every arm",
            ),
            (
                json!({"seeds": 1, "arms": {"a": {}, "b": {"rounds": 3}}}),
                "design: the arms `a` and `b` are the same scenario",
            ),
            (
                json!({"seeds": 1, "arms": {"a": {}, "b": {"rounds": 4}}, "baseline": "bb"}),
                "design.baseline: there is no arm `bb`; did you mean `b`?",
            ),
            (json!({"seeds": 1, "read": {"mean_of_last": 0}}), "design.read: a mean needs at least one round"),
            (json!({"seeds": 1, "read": "first"}), "design.read: unknown choice `first`"),
            (json!({"seeds": 1, "metrics": []}), "design.metrics: the list of metrics is empty"),
            (
                json!({"seeds": 1_000_000, "factors": {"rounds": [1, 2]}}),
                "design: this design has 2 arms and 2000000 runs; at most 10000 arms and 1000000 runs are allowed",
            ),
            (json!({"seeds": 1, "arms": {"a": {"cohorts.x.count": 1}}}), "cohorts: no entry of this list is named `x`"),
        ];
        for (design, message) in cases {
            assert_eq!(read(design.clone()).unwrap_err().to_string(), message, "{design}");
        }
    }

    #[test]
    fn metrics_are_read_where_the_design_says() {
        let values = [(0, 1.0), (2, 3.0), (4, 8.0)];
        assert_eq!(Reading::Last.of(&values, 6), Some(8.0));
        assert_eq!(Reading::Round(2).of(&values, 6), Some(3.0));
        assert_eq!(Reading::Round(3).of(&values, 6), None);
        assert_eq!(Reading::MeanOfLast(4).of(&values, 6), Some(5.5));
        assert_eq!(Reading::MeanOfLast(1).of(&values, 6), None);
        assert_eq!(Reading::Last.of(&[], 6), None);
        assert_eq!(Reading::Last.of(&[(0, f64::NAN)], 1), None);
        let design = read(json!({"seeds": 1, "metrics": ["guess.quantiles", "target"]})).unwrap();
        assert!(design.reads("guess.quantiles.q0.1") && design.reads("target"));
        assert!(!design.reads("guess.mean") && !design.reads("targets") && !design.reads("guess.quantilesx"));
    }

    fn expecting(expect: serde_json::Value) -> Result<Design, TreeError> {
        let scenario = json!({"seed": 4, "rounds": 3, "world": {"kind": "guess", "fraction": 0.5}});
        let design = json!({
            "arms": {"control": {}, "low": {"world.fraction": 0.2}}, "seeds": 6, "metrics": ["guess"], "expect": expect,
        });
        Design::read(&Node::from_json(&design), &Node::from_json(&scenario))
    }

    #[test]
    fn an_interval_meets_bounds_contradicts_them_or_leaves_it_open() {
        let expect = json!([
            {"arm": "low", "minus": "control", "metric": "guess.mean", "below": 0},
            {"arm": "control", "metric": "guess.mean", "at_least": 1, "at_most": 2},
        ]);
        let design = expecting(expect).unwrap();
        let [lower, within] = design.expect.as_slice() else { panic!("{:?}", design.expect) };
        assert_eq!(lower.words(), "guess.mean, low minus control: below 0");
        assert_eq!(within.words(), "guess.mean, control: at least 1 and at most 2");
        let decided = [(-2.0, -1.0), (-1.0, 1.0), (0.0, 0.0), (1.0, 2.0)].map(|(low, high)| lower.decided(low, high));
        assert_eq!(decided, [Some(true), None, Some(false), Some(false)]);
        let decided = [(1.0, 2.0), (0.5, 1.5), (2.5, 3.0), (1.0, 1.0)].map(|(low, high)| within.decided(low, high));
        assert_eq!(decided, [Some(true), None, Some(false), Some(true)]);
        let text = serde_json::to_string(&design).unwrap();
        assert_eq!(serde_json::from_str::<Design>(&text).unwrap(), design);
        let without = serde_json::to_string(&expecting(json!([])).unwrap()).unwrap();
        assert!(!without.contains("expect"), "a design without expectations is written as before: {without}");
    }

    #[test]
    fn wrong_expectations_say_what_is_wrong() {
        let metric = "guess.mean";
        for (expect, message) in [
            (
                json!([{"arm": "lo", "metric": metric, "below": 0}]),
                "design.expect[0].arm: there is no arm `lo`; did you mean `low`?",
            ),
            (
                json!([{"arm": "control", "minus": "low", "metric": metric, "below": 0}]),
                "design.expect[0].minus: differences are taken from the baseline, `control`, but this names `low`",
            ),
            (
                json!([{"arm": "control", "minus": "control", "metric": metric, "below": 0}]),
                "design.expect[0].minus: an arm does not differ from itself",
            ),
            (
                json!([{"arm": "low", "metric": "target", "below": 0}]),
                "design.expect[0].metric: the design does not read `target`",
            ),
            (json!([{"arm": "low", "metric": metric}]), "design.expect[0]: an expectation needs a bound"),
            (
                json!([{"arm": "low", "metric": metric, "above": 2, "below": 1}]),
                "design.expect[0]: nothing lies above 2 and below 1",
            ),
            (json!([{"arm": "low", "metric": metric, "over": 2}]), "design.expect[0].over: unknown key `over`"),
        ] {
            assert!(expecting(expect.clone()).unwrap_err().to_string().starts_with(message), "{expect}");
        }
    }
}
