//! `polity list`.

use super::args::Listed;
use super::failure::{Exit, Failure};
use super::flags::filter_of;
use super::output::{json, note, print_line};
use super::templates;
use polity_games::iterated::{self, Payoffs};
use polity_games::{extensive, library};
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
        Listed::Games => return games(as_json),
        Listed::Strategies => return strategies(as_json),
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
    let all: Vec<(&str, &str)> = cards.iter().map(|card| (card.name, card.summary)).collect();
    summaries(&all);
}

/// Prints names, each with one line on it.
fn summaries(all: &[(&str, &str)]) {
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    all.iter().for_each(|(name, summary)| print_line(&format!("{name:width$}  {summary}")));
}

/// Lists the games that are known by name: those in normal form, then those in extensive form.
fn games(as_json: bool) -> Result<Exit, Failure> {
    let normal: Vec<(&str, &str)> = library::GAMES.iter().map(|game| (game.name, game.summary)).collect();
    if as_json {
        let of = |form: &'static str| move |(name, summary): &(&str, &str)| serde_json::json!({"name": name, "summary": summary, "form": form});
        let all: Vec<_> = normal.iter().map(of("normal")).chain(extensive::GAMES.iter().map(of("extensive"))).collect();
        print_line(&json(&all));
    } else {
        summaries(&[&normal[..], &extensive::GAMES].concat());
    }
    Ok(Exit::Done)
}

/// Lists the strategies of the repeated prisoner's dilemma, with what each does and who described it.
fn strategies(as_json: bool) -> Result<Exit, Failure> {
    let (all, _) = iterated::all(&Payoffs::PRISONERS_DILEMMA);
    if as_json {
        let each = all.iter().map(|strategy| {
            let (summary, source) = (strategy.about(), strategy.source());
            let (name, random) = (strategy.label(), strategy.is_random());
            serde_json::json!({"name": name, "summary": summary, "source": source, "random": random})
        });
        print_line(&json(&each.collect::<Vec<_>>()));
    } else {
        let lines: Vec<String> =
            all.iter().map(|strategy| format!("{} ({})", strategy.about(), strategy.source())).collect();
        let named: Vec<(&str, &str)> =
            all.iter().map(|strategy| strategy.label()).zip(lines.iter().map(String::as_str)).collect();
        summaries(&named);
    }
    Ok(Exit::Done)
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
