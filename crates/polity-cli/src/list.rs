//! `polity list`.

use super::args::Listed;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line};
use polity_kernel::method::Facts;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::topology;
use polity_models::models::{Providers, prices};
use serde::Serialize;

/// A method as JSON.
#[derive(Serialize)]
struct Method<'a> {
    #[serde(flatten)]
    card: &'a LeafInfo,
    #[serde(flatten)]
    facts: Option<&'a Facts>,
}

pub fn list(what: Listed, as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let cards: Vec<&LeafInfo> = match what {
        Listed::Worlds => registry.worlds(),
        Listed::Environments => registry.environments(),
        Listed::Methods => registry.methods(),
        Listed::Policies => registry.policies(),
        Listed::Metrics => registry.metrics(),
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
    if as_json && what == Listed::Methods {
        // A method is also a team and a form of collaboration.
        let all: Vec<Method<'_>> =
            cards.into_iter().map(|card| Method { card, facts: registry.facts(card.name) }).collect();
        print_line(&json(&all));
    } else if as_json {
        print_line(&json(&cards));
    } else {
        let width = cards.iter().map(|c| c.name.len()).max().unwrap_or(0);
        cards.iter().for_each(|card| print_line(&format!("{:width$}  {}", card.name, card.summary)));
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
