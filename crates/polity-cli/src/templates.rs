//! `polity list templates`: systems of agents to start from, with the known failures of each kind and what helps against them.

use super::failure::{Exit, Failure};
use super::flags::filter_of;
use super::output::{json, print_line};
use polity_store::files::yaml;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Kinds and templates as data.
const FILE: &str = include_str!("templates.yaml");

/// What templates are chosen by.
const DIMENSIONS: [&str; 4] = ["kind", "tools", "memory", "decomposition"];

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Templates {
    kinds: Vec<Kind>,
    templates: Vec<Template>,
}

/// A kind of system of agents.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    summary: String,
    failures: Vec<KnownFailure>,
}

/// A known failure of a kind, and what helps against it. Claims are named SYSTEM/CLAIM.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KnownFailure {
    failure: String,
    /// Claims that show the failure.
    seen: Vec<String>,
    mitigation: String,
    /// Claims that show that the mitigation helps.
    shown: Vec<String>,
}

/// A scenario to start from.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Template {
    name: String,
    kind: String,
    summary: String,
    tools: bool,
    memory: bool,
    decomposition: bool,
    scenario: String,
}

impl Template {
    /// Its value of a dimension.
    fn dimension(&self, name: &str) -> Option<&str> {
        let word = |is: bool| if is { "yes" } else { "no" };
        match name {
            "kind" => Some(&self.kind),
            "tools" => Some(word(self.tools)),
            "memory" => Some(word(self.memory)),
            "decomposition" => Some(word(self.decomposition)),
            _ => None,
        }
    }
}

/// Lists the templates that pass all filters, then their kinds.
pub fn list(filters: &[String], as_json: bool) -> Result<Exit, Failure> {
    let read = yaml::parse(FILE).and_then(|tree| tree.read::<Templates>(""));
    let Templates { mut kinds, mut templates } =
        read.map_err(|error| Failure::new(Exit::Defect, format!("templates.yaml: {error}")))?;
    let values = |name: &str| -> BTreeSet<String> {
        templates.iter().filter_map(|template| template.dimension(name)).map(str::to_owned).collect()
    };
    let filters: Vec<(&str, &str)> =
        filters.iter().map(|filter| filter_of(filter, "template", &DIMENSIONS, &values)).collect::<Result<_, _>>()?;
    templates.retain(|template| filters.iter().all(|(name, value)| template.dimension(name) == Some(*value)));
    kinds.retain(|kind| templates.iter().any(|template| template.kind == kind.name));
    if as_json {
        print_line(&json(&Templates { kinds, templates }));
        return Ok(Exit::Done);
    }
    for template in &templates {
        let parts: Vec<&str> =
            DIMENSIONS.into_iter().skip(1).filter(|name| template.dimension(name) == Some("yes")).collect();
        let with = if parts.is_empty() { String::new() } else { format!(", with {}", parts.join(", ")) };
        print_line(&format!("{} ({}{with}): {}", template.name, template.kind, template.summary));
        print_line(&format!("  polity run {}", template.scenario));
    }
    kinds.iter().for_each(show);
    Ok(Exit::Done)
}

fn show(kind: &Kind) {
    print_line("");
    print_line(&format!("{}: {}", kind.name, kind.summary));
    for known in &kind.failures {
        print_line(&format!("  failure     {}{}", known.failure, claims(&known.seen)));
        print_line(&format!("  mitigation  {}{}", known.mitigation, claims(&known.shown)));
    }
}

/// The claims that show something.
fn claims(names: &[String]) -> String {
    if names.is_empty() { " (no claim shows it)".into() } else { format!(" (shown by {})", names.join(", ")) }
}
