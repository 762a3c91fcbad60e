//! Templates (Jinja): the precedence of sources, and a check of their names before a run.

use super::bounds;
use super::names::{FAR, invalid};
use minijinja::syntax::SyntaxConfig;
pub use minijinja::value::{Value, merge_maps};
use minijinja::{Environment, UndefinedBehavior};
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, Interface};
use polity_kernel::policy::{Fault, PolicySetup};
use polity_kernel::population::Cell;
use polity_kernel::scenario::TextSource;
use polity_kernel::tree::nearest;
use std::collections::{BTreeMap, BTreeSet};

/// Formats a number as people write it: six digits, no decimal point in whole numbers.
pub fn plain(x: f64) -> String {
    rounded(x).to_string()
}

/// Rounds to six digits.
fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() || x.fract() == 0.0 && x.abs() < 1e6 {
        return x;
    }
    let digits = 5 - libm::floor(libm::log10(x.abs())) as i32;
    let scale = libm::pow(10.0, f64::from(digits.abs()));
    if !scale.is_finite() {
        return x;
    }
    // Scale by a whole power of ten, so that the result is the nearest float to the rounded decimal.
    if digits >= 0 { (x * scale).round() / scale } else { (x / scale).round() * scale }
}

/// Converts a number for templates: to six digits, whole if possible.
pub fn number(x: f64) -> Value {
    let rounded = rounded(x);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { Value::from(rounded as i64) } else { Value::from(rounded) }
}

/// Converts a name for templates: `last-mean` would be a subtraction.
pub fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// Creates a value with named parts.
pub fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::from(entries.into_iter().map(|(name, value)| (Value::from(name), value)).collect::<BTreeMap<_, _>>())
}

/// Converts an attribute's value.
pub fn cell(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Number(x) => number(x),
        Cell::Text(text) => Value::from(text),
    }
}

/// Returns the acts of a world: (name, doc, low, high, options).
pub fn acts(interface: &Interface) -> Value {
    let act = |act: &polity_kernel::interface::ActionKind| {
        let mut map: BTreeMap<&str, Value> = BTreeMap::new();
        map.insert("name", Value::from(act.name.as_ref()));
        map.insert("doc", Value::from(act.doc.as_ref()));
        let bounds = match &act.argument {
            ActionArgument::Number { low, high } if low.abs() < FAR && high.abs() < FAR => Some((*low, *high)),
            _ => None,
        };
        let options = match &act.argument {
            ActionArgument::Choice(options) => Value::from(options.clone()),
            _ => Value::from(Vec::<String>::new()),
        };
        map.insert("low", bounds.map_or(Value::from(()), |(low, _)| number(low)));
        map.insert("high", bounds.map_or(Value::from(()), |(_, high)| number(high)));
        map.insert("options", options);
        self::map(map)
    };
    interface.acts.iter().map(act).collect()
}

/// Describes where and why a template cannot be used.
fn fault(key: &str, file: Option<&str>, error: &minijinja::Error) -> String {
    let place = match (file, error.line()) {
        (Some(file), Some(line)) => format!("{file}, line {line}"),
        (Some(file), None) => file.to_owned(),
        (None, Some(line)) => format!("the template `{key}`, line {line}"),
        (None, None) => format!("the template `{key}`"),
    };
    match error.detail() {
        Some(detail) => format!("{place}: {}: {detail}", error.kind()),
        None => format!("{place}: {}", error.kind()),
    }
}

/// A template of a policy.
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// The policy's own text, used if neither the scenario nor the world has one.
    pub own: &'static str,
    /// Names that it may use besides the common ones.
    pub names: &'static [&'static str],
    /// Whether it may use the names of a turn; a template used before a turn has begun may not.
    pub of_turn: bool,
}

/// Names that templates may use.
pub struct Names<'a> {
    /// Names of a turn.
    pub of_turn: &'a [&'static str],
    /// Common names, the same for all agents.
    pub common: &'a [&'static str],
    /// Columns of the population, as `person.NAME`.
    pub columns: &'a [String],
    /// Observation fields, as `obs.NAME`.
    pub fields: &'a [&'a str],
}

/// The templates of a policy: the scenario's, else the world's, else the policy's own.
pub struct Templates {
    environment: Environment<'static>,
    bounded: BTreeMap<&'static str, bounds::BoundedTemplate>,
    /// Names used by any template; others need no value.
    used: BTreeSet<String>,
}

impl Templates {
    /// Reads the templates and checks them for unknown names.
    pub fn open(
        all: &[Template],
        given: &BTreeMap<String, TextSource>,
        setup: &PolicySetup<'_>,
        names: &Names<'_>,
    ) -> Result<Self, Invalid> {
        let known: Vec<&str> = all.iter().map(|template| template.name).collect();
        if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
            let message = format!("there is no template `{name}`{near} (there are {})", known.join(", "));
            return Err(invalid(&format!("prompts.{name}"), message));
        }
        let mut environment = bounds::environment();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // A template is prose: a line with nothing but a tag leaves no line.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| invalid("", error.to_string()))?);
        let mut templates = Templates { environment, bounded: BTreeMap::new(), used: BTreeSet::new() };
        for template in all {
            let name = template.name;
            let source = given.get(name).map(|source| setup.words(source)).transpose();
            let source = source.map_err(|error| invalid(&format!("prompts.{name}.file"), error.message))?;
            let world = setup.prompts.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
            let (words, file) = source.unwrap_or((world.unwrap_or(template.own), None));
            let key = if given.contains_key(name) { format!("prompts.{name}") } else { String::new() };
            let blame = |message: String| invalid(&key, message);
            let bounded = bounds::BoundedTemplate::new(name, words, templates.environment.syntax());
            templates.bounded.insert(name, bounded.map_err(|error| blame(fault(name, file, &error)))?);
            // The engine's own copy is used only to find the names.
            let added = templates.environment.add_template_owned(name, words.to_owned());
            added.map_err(|error| blame(fault(name, file, &error)))?;
            let used = templates.check_names(template, file, names).map_err(blame)?;
            templates.used.extend(used);
        }
        Ok(templates)
    }

    /// Returns the names that a template uses, in any branch; an error for an unknown one.
    fn check_names(&self, of: &Template, file: Option<&str>, names: &Names<'_>) -> Result<Vec<String>, String> {
        let place = file.map_or(format!("the template `{}`", of.name), str::to_owned);
        let template = self.environment.get_template(of.name).map_err(|error| fault(of.name, file, &error))?;
        let of_turn = if of.of_turn { names.of_turn } else { &[] };
        let roots: Vec<&str> = [of_turn, names.common, of.names].concat();
        let globals: Vec<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let mut used: Vec<String> = template.undeclared_variables(true).into_iter().collect();
        used.sort();
        for name in &used {
            let (root, field) = name.split_once('.').map_or((name.as_str(), None), |(root, rest)| (root, Some(rest)));
            if globals.contains(&root) {
                continue;
            }
            if !roots.contains(&root) {
                let near =
                    nearest(root, roots.iter().copied()).map_or(String::new(), |n| format!(", did you mean `{n}`?"));
                return Err(format!(
                    "{place} uses `{root}`, which does not exist{near} (there are {})",
                    roots.join(", ")
                ));
            }
            let Some(field) = field.map(|field| field.split('.').next().unwrap_or(field)) else { continue };
            let known: Vec<&str> = match root {
                "person" => names.columns.iter().map(String::as_str).collect(),
                "obs" => names.fields.to_vec(),
                _ => continue,
            };
            if !known.contains(&field) {
                let near = nearest(field, known.iter().copied())
                    .map_or(String::new(), |n| format!(", did you mean `{root}.{n}`?"));
                let there = match (root, known.is_empty()) {
                    ("person", true) => "the scenario has no population with columns".to_owned(),
                    _ => format!("there are {}", known.join(", ")),
                };
                return Err(format!("{place} uses `{root}.{field}`, which does not exist{near} ({there})"));
            }
        }
        Ok(used.iter().map(|name| name.split('.').next().unwrap_or(name).to_owned()).collect())
    }

    /// Returns whether any template uses a name.
    pub fn use_name(&self, name: &str) -> bool {
        self.used.contains(name)
    }

    /// Fills in a template.
    pub fn fill(&self, name: &str, values: Value) -> Result<String, Fault> {
        let Some(template) = self.bounded.get(name) else {
            return Err(Fault(format!("there is no template `{name}`")));
        };
        match template.render(&self.environment, values) {
            Ok(words) => Ok(words.trim().to_owned()),
            Err(error) => Err(Fault(fault(name, None, &error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_do() {
        for (x, text) in
            [(33.333_333_333_333_336, "33.3333"), (50.0, "50"), (0.000_001_25, "0.00000125"), (-0.5, "-0.5")]
        {
            assert_eq!(plain(x), text);
        }
        // Too small to be scaled.
        assert_eq!(rounded(5e-324), 5e-324);
        assert_eq!(number(3.0).to_string(), "3");
    }
}
