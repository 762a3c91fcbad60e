//! The paragraph for a paper's methods section.

use crate::sources::sources;
use polity_arena::report::short;
use polity_driver::control::Recorded;
use polity_driver::run::Manifest;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::world::Activation;
use serde_json::Value;

/// The most entries of a list that the paragraph names.
const MOST_ENTRIES: usize = 6;

/// A value in words: no braces, no quotes.
pub fn words(value: &Value) -> String {
    let within = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => format!("({})", words(value)),
        plain => words(plain),
    };
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), short),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let mut shown: Vec<String> = items.iter().take(MOST_ENTRIES).map(within).collect();
            if items.len() > MOST_ENTRIES {
                shown.push(format!("{} more", items.len() - MOST_ENTRIES));
            }
            shown.join(", ")
        }
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key} {}", within(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

fn kind(node: &Value) -> &str {
    node.as_str().or_else(|| node.get("kind").and_then(Value::as_str)).unwrap_or("?")
}

/// The parameters of a part of the scenario, in words.
fn parameters(node: &Value) -> String {
    let entry = |(key, value): (&String, &Value)| match value {
        Value::Array(_) | Value::Object(_) => format!("{key} = ({})", words(value)),
        value => format!("{key} = {}", words(value)),
    };
    let entries: Vec<String> =
        node.as_object().map(|map| map.iter().filter(|(k, _)| *k != "kind").map(entry).collect()).unwrap_or_default();
    if entries.is_empty() { "with its default parameters".into() } else { format!("with {}", entries.join(", ")) }
}

fn list<'a>(scenario: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    scenario.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Who followed which policy.
fn cohorts(scenario: &Value) -> String {
    let all = list(scenario, "cohorts").count();
    let mut out = String::new();
    for cohort in list(scenario, "cohorts") {
        let Some(policy) = cohort.get("policy") else { continue };
        let share = cohort.get("share").and_then(Value::as_f64);
        let name = cohort.get("name").and_then(Value::as_str).map_or(String::new(), |name| format!(" ({name})"));
        let only = cohort.get("where").and_then(Value::as_str);
        let who = match (cohort.get("count").and_then(Value::as_u64), share) {
            _ if only.is_some() => format!("Agents for whom {}{name}", only.unwrap_or_default()),
            _ if all == 1 => "All agents".to_owned(),
            (Some(1), _) => format!("One agent{name}"),
            (Some(n), _) => format!("{n} agents{name}"),
            (None, Some(share)) => format!("{} % of the agents{name}", short(100.0 * share)),
            (None, None) => format!("The other agents{name}"),
        };
        out.push_str(&format!("{who} followed the policy “{}” {}. ", kind(policy), parameters(policy)));
    }
    out
}

/// Where agents' attributes came from.
fn population(scenario: &Value) -> String {
    let Some(population) = scenario.get("population") else { return String::new() };
    let text = |key: &str| population.get(key).and_then(Value::as_str);
    let has = |key: &str| population.get(key).is_some_and(|value| !value.is_null());
    let mut out = String::new();
    if let Some(file) = text("file") {
        out.push_str(&format!("Agents' attributes came from the rows of {file}. "));
    }
    let dropped: Vec<&str> = match population.get("missing") {
        Some(Value::Object(columns)) => {
            columns.iter().filter(|(_, word)| **word == "drop").map(|(column, _)| column.as_str()).collect()
        }
        Some(word) if word == "drop" => vec!["any column"],
        _ => Vec::new(),
    };
    if !dropped.is_empty() {
        out.push_str(&format!("Rows with a missing value in {} were left out. ", dropped.join(" or ")));
    }
    if let Some(derived) = population.get("derive").and_then(Value::as_object).filter(|derived| !derived.is_empty()) {
        let each: Vec<String> = derived.iter().map(|(name, value)| format!("{name} was {}", words(value))).collect();
        out.push_str(&format!("Of their attributes, {}. ", each.join(" and ")));
    }
    if let Some(weight) = text("weight") {
        out.push_str(&format!("The rows had the weights of its column “{weight}”. "));
    }
    if has("marginals") && has("file") {
        out.push_str(
            "The rows were weighted to the stated marginals by iterative proportional fitting (Deming and Stephan 1940), \
             and the weights were converted to whole numbers by truncate, replicate, sample (Lovelace and Ballas 2013). ",
        );
    } else if has("marginals") {
        out.push_str("Agents' attributes had the stated shares and were independent of each other. ");
    } else if has("quotas") {
        out.push_str("The rows were drawn within quotas, which were met exactly. ");
    } else if has("weight") {
        out.push_str(
            "The weights were converted to whole numbers of agents by truncate, replicate, sample (Lovelace and Ballas 2013). ",
        );
    }
    out
}

/// What the scenario changes on the way.
fn changes(scenario: &Value) -> String {
    let mut out = String::new();
    for change in list(scenario, "changes") {
        let Some(set) = change.get("set").and_then(Value::as_object).filter(|set| !set.is_empty()) else { continue };
        let at = change.get("at").map_or(String::new(), words);
        let set: Vec<String> = set.iter().map(|(path, value)| format!("{path} was {}", words(value))).collect();
        out.push_str(&format!("From round {at} on, {}. ", set.join(" and ")));
    }
    out
}

/// Where the run came from, and what a person ordered.
fn interventions(manifest: &Manifest, orders: &[Recorded]) -> String {
    let mut out = String::new();
    if let Some(origin) = &manifest.forked_from {
        out.push_str(&format!(
            "The run was forked from the run “{}” at round {}: up to then both are the same. ",
            origin.run, origin.at
        ));
    }
    if !orders.is_empty() {
        let given: Vec<String> =
            orders.iter().map(|order| format!("“{}” after {} rounds", order.order, order.rounds)).collect();
        out.push_str(&format!("While it ran, a person ordered {}. ", given.join(", ")));
    }
    out
}

/// The sentences on a society.
fn society(scenario: &Value, world: &Value, agents: f64, registry: &Registry) -> String {
    let name = kind(world);
    let about = registry.worlds().into_iter().find(|card| card.name == name).map_or("", |card| card.summary);
    let rounds = scenario.get("rounds").and_then(Value::as_u64).unwrap_or(0);
    let mut out = format!(
        "We simulated {agents} agents over {rounds} rounds in the world “{name}” ({about}) {}. ",
        parameters(world)
    );
    out.push_str(&cohorts(scenario));
    if let Some(topology) = scenario.get("topology") {
        out.push_str(&format!("The topology was “{}” {}. ", kind(topology), parameters(topology)));
    }
    out.push_str(&population(scenario));
    out
}

/// The sentence on a team.
fn team(scenario: &Value, method: &Value) -> String {
    let members = scenario.get("agents").and_then(Value::as_u64);
    let members = members.or_else(|| Some(scenario.get("team")?.as_array()?.len() as u64));
    let size = match members {
        Some(1) => "a team of one member".to_owned(),
        Some(n) => format!("a team of {n} members"),
        None => "a team".to_owned(),
    };
    format!("On every item {size} used the method “{}” {}. ", kind(method), parameters(method))
}

/// Which models answered, and with what settings.
fn models(scenario: &Value, models: &[String], simulated: bool) -> String {
    let named = match models {
        [] => return String::new(),
        [model] => format!("Questions went to the model {model}"),
        [others @ .., last] => format!("Questions went to the models {} and {last}", others.join(", ")),
    };
    let settings = scenario.get("settings").filter(|settings| settings.as_object().is_some_and(|map| !map.is_empty()));
    let settings = settings.map_or(", with default settings".into(), |settings| format!(" ({})", words(settings)));
    let simulated = match simulated {
        true => "Answers came from simulated models with declared skills, not from language models. ",
        false => "",
    };
    format!("{named}{settings}. {simulated}")
}

/// What was done in a run: the society or the team, what changed, and who answered.
pub fn of_each(scenario: &Value, asked: &[String], simulated: bool, agents: f64, registry: &Registry) -> String {
    let mut out = match (scenario.get("world"), scenario.get("method")) {
        (Some(world), _) => society(scenario, world, agents, registry),
        (None, Some(method)) => team(scenario, method),
        (None, None) => String::new(),
    };
    out.push_str(&changes(scenario));
    out.push_str(&models(scenario, asked, simulated));
    out
}

/// The leaf that a part of the scenario names.
fn named<'a>(leaves: &[&'a LeafInfo], node: &Value) -> Option<&'a LeafInfo> {
    leaves.iter().copied().find(|leaf| leaf.name == kind(node))
}

/// A paragraph that cites the sources of the leaves in use; empty if none names any.
pub fn sources_of(scenario: &Value, registry: &Registry) -> String {
    let mut cited: Vec<String> = Vec::new();
    let mut cite = |card: Option<&LeafInfo>| {
        let Some(card) = card else { return };
        let sources = sources(card);
        let entry = format!("{}: {}", card.name, sources.join("; "));
        let entry = entry.trim_end_matches('.').to_owned();
        if !sources.is_empty() && !cited.contains(&entry) {
            cited.push(entry);
        }
    };
    let (worlds, policies, methods) = (registry.worlds(), registry.policies(), registry.methods());
    cite(scenario.get("world").and_then(|world| named(&worlds, world)));
    for policy in list(scenario, "cohorts").filter_map(|cohort| cohort.get("policy")) {
        cite(named(&policies, policy));
        cite(policy.get("method").and_then(|method| named(&methods, method)));
    }
    cite(scenario.get("method").and_then(|method| named(&methods, method)));
    match cited.is_empty() {
        true => String::new(),
        false => format!("\n\nSources. {}.", cited.join(". ")),
    }
}

/// The paragraph.
pub fn methods(
    manifest: &Manifest,
    orders: &[Recorded],
    rounds: usize,
    agents: Option<f64>,
    registry: &Registry,
) -> String {
    let scenario = &manifest.scenario;
    let mut out = of_each(scenario, &manifest.models, manifest.simulated, agents.unwrap_or(0.0), registry);
    if scenario.get("world").is_some() {
        out.push_str(match manifest.activation {
            None | Some(Activation::Simultaneous) => "All agents acted simultaneously in each round. ",
            Some(Activation::RandomOrder) => {
                "Agents acted one after the other, in an order drawn anew each round, and each acted on what those before \
                 it had done. "
            }
            Some(Activation::EventTime) => "Agents acted when something happened to them (event time). ",
        });
        let planned = scenario.get("rounds").and_then(Value::as_u64);
        if planned.is_some_and(|planned| planned != rounds as u64) {
            out.push_str(&format!("The run has {rounds} complete rounds. "));
        }
    }
    out.push_str(&interventions(manifest, orders));
    out.push_str(&format!(
        "Random numbers are counter-based (Philox2x64-10, seed {}); the run is identified by its digest and can be recomputed \
         exactly with polity {}.{}",
        manifest.seed,
        manifest.build.version,
        sources_of(scenario, registry)
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_words_and_no_json() {
        let value =
            json!({"feed": 20, "seeds": [{"author": 0, "stance": 0.8}, {"author": 1, "stance": -0.8}], "on": true});
        let told = parameters(&value);
        assert_eq!(told, "with feed = 20, seeds = ((author 0, stance 0.8), (author 1, stance −0.8)), on = yes");
        let many: Vec<u32> = (0..9).collect();
        assert_eq!(words(&json!(many)), "0, 1, 2, 3, 4, 5, 3 more");
        assert_eq!(parameters(&json!("noise")), "with its default parameters");
    }

    #[test]
    fn cohorts_are_counted_as_people_count() {
        let policy = json!({"kind": "noise"});
        assert_eq!(
            cohorts(&json!({"cohorts": [{"share": 1, "policy": policy}]})),
            "All agents followed the policy “noise” with its default parameters. "
        );
        let two = cohorts(&json!({"cohorts": [
            {"name": "few", "count": 1, "policy": policy}, {"name": "most", "share": 0.7, "policy": policy}, {"policy": policy}
        ]}));
        for words in ["One agent (few) followed", "70 % of the agents (most) followed", "The other agents followed"] {
            assert!(two.contains(words), "{two}");
        }
    }

    #[test]
    fn models_have_their_settings_and_leaves_their_sources() {
        let scenario = json!({"settings": {"temperature": 0.7, "max_tokens": 300}});
        let two = ["a/b".to_owned(), "c/d".to_owned()];
        assert_eq!(
            models(&scenario, &two, false),
            "Questions went to the models a/b and c/d (temperature 0.7, max_tokens 300). "
        );
        assert!(models(&json!({}), &two[..1], true).contains("default settings. Answers came from simulated models"));
        assert_eq!(models(&scenario, &[], true), "");
        assert_eq!(sources_of(&json!({"world": "nowhere", "cohorts": []}), &Registry::new()), "");
    }

    #[test]
    fn weights_are_named() {
        let told = population(&json!({"population": {"file": "a.csv", "weight": "w"}}));
        assert!(told.contains("the weights of its column “w”") && told.contains("truncate, replicate, sample"));
    }
}
