//! The questions of `polity new experiment` in a terminal. Each answer is checked at once, and asked for again if it is wrong.

use super::answers::{KEYS, Reading, Start};
use crate::failure::{Exit, Failure};
use crate::output::note;
use polity_kernel::tree::{Node, Value, child, item};
use polity_store::files::yaml;
use serde_json::json;
use std::io::BufRead;

/// Keys that may be left out.
const OPTIONAL: [&str; 3] = ["because", "control", "placebo"];
/// Maximum keys of a scenario that are shown.
const MOST_KEYS: usize = 40;

/// Asks for all answers, and returns them as the text of a file.
///
/// # Errors
/// The end of the input.
pub(super) fn ask(input: &mut dyn BufRead, reading: &Reading<'_>) -> Result<String, Failure> {
    // One for each key so far; empty for what is left out.
    let mut entries: Vec<String> = Vec::new();
    note("An empty line leaves an answer out where that is possible. Nothing is written before the last answer.");
    while let Some(key) = KEYS.get(entries.len()).copied() {
        let (at, text) = (entries.len(), entries.concat());
        note(&question(key, &text, reading));
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(read) if read > 0) {
            let message = format!("the input ended before the answer to `{key}`; nothing was created");
            return Err(Failure::new(Exit::Input, message));
        }
        let line = line.trim();
        let entry = match line.is_empty() && OPTIONAL.contains(&key) {
            true => String::new(),
            false => format!("{key}: {}\n", written(key, line)),
        };
        match reading.plan(&format!("{text}{entry}")).err() {
            // What has not been asked for is missing.
            Some(fault) if place(&fault.key).is_some_and(|of| of > at) => entries.push(entry),
            Some(fault) => {
                note(&format!("{}\nanother answer, please:", fault.told()));
                entries.truncate(place(&fault.key).unwrap_or(at));
            }
            None => entries.push(entry),
        }
    }
    Ok(entries.concat())
}

/// The place of a key in the order of the questions.
fn place(key: &str) -> Option<usize> {
    KEYS.iter().position(|known| *known == key)
}

/// A typed line as YAML.
fn written(key: &str, line: &str) -> String {
    match key {
        "control" | "seeds" => line.to_owned(),
        "treatments" if line.starts_with('[') => line.to_owned(),
        "treatments" => format!("[{line}]"),
        "placebo" => match line.split_once('=').filter(|_| !line.starts_with('{')) {
            Some((path, value)) => format!("{{{}: {}}}", json!(path.trim()), value.trim()),
            None => line.to_owned(),
        },
        "validation" => pattern(line).unwrap_or_else(|| json!(line).to_string()),
        _ => json!(line).to_string(),
    }
}

/// Reads `METRIC >= NUMBER [because TEXT]`.
fn pattern(line: &str) -> Option<String> {
    let (rule, because) = match line.split_once(" because ") {
        Some((rule, because)) => (rule, format!(", because: {}", json!(because.trim()))),
        None => (line, String::new()),
    };
    let (bound, (metric, number)) = [("at_least", ">="), ("at_most", "<=")]
        .into_iter()
        .find_map(|(bound, sign)| Some((bound, rule.split_once(sign)?)))?;
    Some(format!("{{metric: {}, {bound}: {}{because}}}", json!(metric.trim()), number.trim()))
}

/// A question, with what can be answered.
fn question(key: &str, text: &str, reading: &Reading<'_>) -> String {
    let start = || started(text, reading);
    match key {
        "question" => "\n1. What do you want to find out? One sentence.".into(),
        "because" => "   What do you expect, and why? (may be left out)".into(),
        "studied" => "\n2. What is studied? rules (agents follow rules), minds (models decide for agents), or team (models work on tasks together)".into(),
        "start" => {
            let leaves = reading.registry.leaves();
            let of = |kind: &str| {
                let cards = leaves.iter().filter(|(name, _)| *name == kind).flat_map(|(_, cards)| cards);
                cards.map(|card| card.name).collect::<Vec<_>>().join(", ")
            };
            format!(
                "\n3. Which model do you start from? A scenario file, or a leaf, whose example is in the box (a team starts from a file):\n   worlds: {}\n   policies: {}",
                of("worlds"),
                of("policies")
            )
        }
        "factor" => {
            let keys = start().map_or(Vec::new(), |start| keys(&start.tree));
            let more = if keys.len() > MOST_KEYS { "\n   ..." } else { "" };
            let shown: Vec<String> = keys.into_iter().take(MOST_KEYS).collect();
            format!("\n4. Which key of the scenario is the factor? It may be one that is not written there. Written are:\n   {}{more}", shown.join("\n   "))
        }
        "control" => "   Its value in the control arm? (empty: as in the scenario)".into(),
        "treatments" => "   Its values in the treatment arms, with commas between them?".into(),
        "placebo" => "\n5. A placebo arm: KEY=VALUE of a key that must not matter? (may be left out)".into(),
        "outcome" => {
            format!("\n6. Which metric is the outcome? {}", start().map_or(String::new(), |start| start.metrics.join(", ")))
        }
        "expected" => "   Where is it in the treatment arms, compared with the control arm? higher, lower, or different".into(),
        "seeds" => "\n7. How many seeds has each arm? At least 6; 12 is a start.".into(),
        _ => "\n8. Which known pattern must the control arm show? METRIC >= NUMBER or METRIC <= NUMBER, and perhaps: because SOURCE".into(),
    }
}

/// The scenario to start from, as far as it is answered.
fn started(text: &str, reading: &Reading<'_>) -> Option<Start> {
    let tree = yaml::parse(text).ok()?;
    match &tree.get("start")?.value {
        Value::Text(name) => reading.start(name).ok(),
        _ => None,
    }
}

/// The keys of a scenario with a plain value: `world.fraction: 0.5`.
fn keys(tree: &Node) -> Vec<String> {
    fn below(node: &Node, path: &str, found: &mut Vec<String>) {
        match &node.value {
            Value::Map(entries) => entries.iter().for_each(|(key, node)| below(node, &child(path, &key.name), found)),
            Value::List(items) => items.iter().enumerate().for_each(|(i, node)| {
                let name = match node.get("name").map(|name| &name.value) {
                    Some(Value::Text(name)) => child(path, name),
                    _ => item(path, i),
                };
                below(node, &name, found);
            }),
            _ => found.push(format!("{path}: {}", node.to_json())),
        }
    }
    let mut found = Vec::new();
    below(tree, "", &mut found);
    let fixed = ["seed", "design", "polity", "name", "description", "metrics"];
    found.retain(|key| !fixed.contains(&key.split(['.', '[', ':']).next().unwrap_or_default()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::registry::Registry;

    fn registry() -> Registry {
        let mut registry = Registry::new();
        polity_catalog::register_all(&mut registry);
        registry
    }

    #[test]
    fn a_dialogue_asks_again_and_gives_what_a_file_gives() {
        let registry = registry();
        let reading = Reading::new(&registry);
        let lines = [
            "Do people who think further ahead guess lower?",
            "",
            "people", // no such choice
            "rules",
            "gues-average", // no such leaf
            "guess-average",
            "world.fracton", // not in the scenario, and no such key once it has a value
            "1.5",
            "cohorts.thinkers.policy.mean",
            "1.5",
            "1.5", // the control's value
            "2, 3",
            "topology={kind: ring, neighbours: 4}",
            "guess.median", // not measured
            "guess.mean",
            "smaller",
            "lower",
            "3", // too few
            "8",
            "guess.mean is low",
            "guess.mean <= 5 because Nagel 1995",
        ];
        let typed = lines.join("\n") + "\n";
        let text = ask(&mut typed.as_bytes(), &reading).unwrap();
        let plan = reading.plan(&text).unwrap_or_else(|fault| panic!("{}", fault.told()));
        let names: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["control", "treatment-2", "treatment-3", "placebo"]);
        assert_eq!((plan.seeds, plan.because.as_deref(), plan.treatments()), (8, None, 2));
        assert_eq!(plan.validation.at_most, Some(5.0));
        assert_eq!(plan.validation.because.as_deref(), Some("Nagel 1995"));
        let cut = ask(&mut "A question?\n".as_bytes(), &reading).unwrap_err();
        assert!(cut.message.contains("before the answer to `because`; nothing was created"), "{}", cut.message);
    }

    #[test]
    fn the_keys_of_a_scenario_are_shown_with_their_values() {
        let registry = registry();
        let start = Reading::new(&registry).start("guess-average").unwrap_or_else(|fault| panic!("{}", fault.told()));
        let keys = keys(&start.tree);
        assert!(keys.contains(&"world.fraction: 0.5".to_owned()), "{keys:?}");
        assert!(keys.contains(&"cohorts.thinkers.policy.noise: 0.02".to_owned()), "{keys:?}");
        assert!(keys.iter().all(|key| !key.starts_with("seed") && !key.starts_with("metrics")), "{keys:?}");
    }
}
