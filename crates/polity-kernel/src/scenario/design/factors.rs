//! The factors and named arms of a design as they are written, and the places that they set.

use super::{COLUMNS, FIXED, Factor, Level, NAMED, Range, Scale, wrong};
use crate::tree::{Node, Origin, Step, TreeError, Value, child, item, parse_path};
use serde::Deserialize;

/// Returns a level as text, for names of arms and for tables.
pub(super) fn label(node: &Node) -> String {
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
pub(in crate::scenario) fn placed(value: &Node, path: &str, named_at: &Origin, scenario: &Node) -> Node {
    let mut value = value.clone();
    if scenario.find(path).is_none() {
        value.origin = named_at.clone();
    }
    value
}

/// The places that factors set: the path as the scenario resolves it, and the factor.
pub(super) type Places = Vec<(Vec<String>, String)>;

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
    values: Option<Node>,
    range: Option<[f64; 2]>,
    scale: Option<Scale>,
    whole: Option<bool>,
}

/// A factor as it is written.
pub(super) struct Written {
    pub(super) factor: Factor,
    /// Its levels; none if it has a range, before points are drawn.
    pub(super) levels: Vec<Level>,
    /// Where its path and its range are written.
    origins: (Origin, Origin),
}

impl Written {
    /// Takes the values at places in its range, from 0 to 1, as levels.
    pub(super) fn take(&mut self, range: Range, places: impl Iterator<Item = f64>, scenario: &Node) {
        let Some(path) = self.factor.path.clone() else { return };
        for place in places {
            let value = Node { value: range.at(place), origin: self.origins.1.clone() };
            self.factor.levels.push(label(&value));
            self.levels.push((String::new(), vec![(path.clone(), placed(&value, &path, &self.origins.0, scenario))]));
        }
    }
}

/// Reads the factors; adds the paths that they set to `places`.
pub(super) fn read_factors(
    node: Option<&Node>,
    scenario: &Node,
    places: &mut Places,
) -> Result<Vec<Written>, TreeError> {
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
            Value::List(_) => (key.name.clone(), &key.origin, Values::Listed(labelled(node, &at)?)),
            Value::Map(_) => {
                let named: NamedFactor = node.read(&at)?;
                let values = named.values(node, &at)?;
                (named.path, node.get("path").map_or(&node.origin, |path| &path.origin), values)
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
        let origins = (path_at.clone(), node.get("range").unwrap_or(node).origin.clone());
        let mut factor = Factor { name: key.name.clone(), path: Some(path.clone()), levels: Vec::new(), range: None };
        let levels = match values {
            Values::Range(range) => {
                factor.range = Some(range);
                Vec::new()
            }
            Values::Listed(values) => {
                factor.levels = values.iter().map(|(label, _)| label.clone()).collect();
                let level = |(label, value): (String, Node)| {
                    (label, vec![(path.clone(), placed(&value, &path, path_at, scenario))])
                };
                values.into_iter().map(level).collect()
            }
        };
        factors.push(Written { factor, levels, origins });
    }
    Ok(factors)
}

/// The values of a factor.
enum Values {
    Listed(Vec<(String, Node)>),
    Range(Range),
}

impl NamedFactor {
    fn values(&self, node: &Node, at: &str) -> Result<Values, TreeError> {
        let help = Some("write `values: [VALUE, ...]`, or `range: [LOW, HIGH]` in a design with `sample`");
        match (&self.values, self.range) {
            (Some(_), Some(_)) => {
                Err(wrong(at, &node.origin, "a factor has either `values` or a `range`, not both", help))
            }
            (None, None) => Err(wrong(at, &node.origin, "a factor needs `values` or a `range`", help)),
            (Some(values), None) => {
                let (scale, whole) = (self.scale.map(|_| "scale"), self.whole.map(|_| "whole"));
                if let Some(key) = scale.or(whole) {
                    let origin = &node.get(key).unwrap_or(node).origin;
                    return Err(wrong(
                        child(at, key),
                        origin,
                        format!("`{key}` is for ranges, but this lists values"),
                        None,
                    ));
                }
                Ok(Values::Listed(labelled(values, &child(at, "values"))?))
            }
            (None, Some([low, high])) => {
                let (scale, whole) = (self.scale.unwrap_or_default(), self.whole.unwrap_or(false));
                let range = Range { low, high, scale, whole };
                range.check(node, &child(at, "range"))?;
                Ok(Values::Range(range))
            }
        }
    }
}

/// The values of a list, labelled by their text, or those of a map, labelled by its keys.
fn labelled(node: &Node, at: &str) -> Result<Vec<(String, Node)>, TreeError> {
    let values: Vec<(String, &Node)> = match &node.value {
        Value::List(values) => values.iter().map(|value| (label(value), value)).collect(),
        Value::Map(values) => values.iter().map(|(key, value)| (key.name.clone(), value)).collect(),
        _ => {
            let message = format!("expected a list of values, or a map of names and values, found {}", node.describe());
            return Err(wrong(at, &node.origin, message, Some("for instance `values: [0.5, 0.7]`")));
        }
    };
    if values.is_empty() {
        let help = Some("add values, or remove the factor");
        return Err(wrong(at, &node.origin, "a factor needs at least one value", help));
    }
    for (i, (label, value)) in values.iter().enumerate() {
        let same = |other: &Node| {
            other.to_json() == value.to_json() || number(other).is_some_and(|x| number(value) == Some(x))
        };
        if values[..i].iter().any(|(_, other)| same(other)) {
            let place = if let Value::List(_) = &node.value { item(at, i) } else { child(at, label) };
            return Err(wrong(place, &value.origin, format!("the value {label} is listed twice"), None));
        }
    }
    Ok(values.into_iter().map(|(label, value)| (label, value.clone())).collect())
}

pub(super) fn read_arms(node: &Node, scenario: &Node, places: &Places) -> Result<Vec<Level>, TreeError> {
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
