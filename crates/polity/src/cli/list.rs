//! `polity list`.

use super::args::Listed;
use super::output::{json, note, print_line};
use super::{Exit, Failure};
use polity_driver::models::{Providers, prices};
use polity_kernel::method::Facts;
use polity_kernel::registry::{Card, Registry};
use polity_kernel::topology;
use serde::Serialize;

/// A method as JSON.
#[derive(Serialize)]
struct Method<'a> {
    #[serde(flatten)]
    card: &'a Card,
    #[serde(flatten)]
    facts: Option<&'a Facts>,
}

pub fn list(what: Listed, as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let cards: Vec<&Card> = match what {
        Listed::Worlds => registry.worlds(),
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

/// The prices that this build ships, for people: they are no list of models, which only the server has.
fn priced() {
    let Ok(table) = prices::table() else { return };
    note(&format!(
        "openai/NAME, openai-responses/NAME, anthropic/NAME, google/NAME and ollama/NAME ask a provider, or the server that its variable \
         names (OPENAI_BASE_URL, ...), for any model that it has. Prices of {} that this build knows, in US dollars for a million tokens \
         (--price gives others):",
        table.date
    ));
    let width = table.models.keys().map(String::len).max().unwrap_or(0);
    for (name, price) in &table.models {
        let cached = price.cached.map_or(String::new(), |cached| format!(", cached {cached}"));
        note(&format!("  {name:width$}  input {}, output {}{cached}", price.input, price.output));
    }
}
