//! `polity list`.

use super::args::Listed;
use super::failure::{Exit, Failure};
use super::flags::filter_of;
use super::output::{json, note, print_line};
use super::templates;
use polity_kernel::method::Facts;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::topology;
use polity_models::models::{Providers, prices};
use serde::Serialize;
use std::collections::BTreeSet;

/// A method as JSON.
#[derive(Serialize)]
struct Method<'a> {
    #[serde(flatten)]
    card: &'a LeafInfo,
    #[serde(flatten)]
    facts: &'a Facts,
}

pub fn list(what: Listed, filters: &[String], as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    if !filters.is_empty() && !matches!(what, Listed::Methods | Listed::Templates) {
        let only = "only methods and templates have dimensions: `polity list methods --where ...`";
        return Err(Failure::new(Exit::Input, only));
    }
    let cards: Vec<&LeafInfo> = match what {
        Listed::Worlds => registry.worlds(),
        Listed::Environments => registry.environments(),
        Listed::Methods => return methods(filters, as_json, registry),
        Listed::Templates => return templates::list(filters, as_json),
        Listed::Policies => registry.policies(),
        Listed::Metrics => registry.metrics(),
        Listed::Toolkits => registry.toolkits(),
        Listed::Topologies => {
            if as_json {
                let all: Vec<_> = topology::kinds()
                    .into_iter()
                    .map(|(name, schema)| serde_json::json!({ "name": name, "parameters": schema }))
                    .collect();
                print_line(&json(&all));
            } else {
                topology::kinds().iter().for_each(|(name, _)| print_line(name));
            }
            return Ok(Exit::Done);
        }
        Listed::Models => {
            let models = Providers::standard().models();
            if as_json {
                print_line(&json(&models));
            } else {
                models.iter().for_each(|name| print_line(name));
                priced();
            }
            return Ok(Exit::Done);
        }
    };
    match as_json {
        true => print_line(&json(&cards)),
        false => lines(&cards),
    }
    Ok(Exit::Done)
}

fn lines(cards: &[&LeafInfo]) {
    let width = cards.iter().map(|card| card.name.len()).max().unwrap_or(0);
    cards.iter().for_each(|card| print_line(&format!("{:width$}  {}", card.name, card.summary)));
}

/// Lists the methods that pass all filters. As JSON, a method is also a team and a form of collaboration.
fn methods(filters: &[String], as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let all: Vec<(&LeafInfo, &Facts)> =
        registry.methods().into_iter().filter_map(|card| Some((card, registry.facts(card.name)?))).collect();
    let values =
        |name: &str| -> BTreeSet<String> { all.iter().filter_map(|(_, facts)| facts.dimension(name)).collect() };
    let filters: Vec<(&str, &str)> = filters
        .iter()
        .map(|filter| filter_of(filter, "method", &Facts::DIMENSIONS, &values))
        .collect::<Result<_, _>>()?;
    let passes = |facts: &Facts| filters.iter().all(|(name, value)| facts.dimension(name).as_deref() == Some(*value));
    let kept = all.into_iter().filter(|(_, facts)| passes(facts));
    match as_json {
        true => print_line(&json(&kept.map(|(card, facts)| Method { card, facts }).collect::<Vec<_>>())),
        false => lines(&kept.map(|(card, _)| card).collect::<Vec<_>>()),
    }
    Ok(Exit::Done)
}

/// Lists the built-in prices, for people. This is not a list of models, which only the server has.
fn priced() {
    let Ok(table) = prices::table() else { return };
    note(&format!(
        "openai/NAME, openai-responses/NAME, anthropic/NAME, google/NAME and ollama/NAME name any model of a provider, \
         or of the server that its variable names (OPENAI_BASE_URL, ...). Prices known to this build, as of {}, in US \
         dollars per million tokens (--price sets others):",
        table.date
    ));
    let width = table.models.keys().map(String::len).max().unwrap_or(0);
    for (name, price) in &table.models {
        let cached = price.cached.map_or(String::new(), |cached| format!(", cached {cached}"));
        note(&format!("  {name:width$}  input {}, output {}{cached}", price.input, price.output));
    }
}
