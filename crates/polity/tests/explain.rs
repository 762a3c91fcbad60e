//! `polity explain`: leaves of every kind have a page, and what it says fits is what `polity validate` takes.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn polity(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polity")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The page of a leaf, for people.
fn page(name: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let said = polity(home.path(), &["explain", name]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    text(&said.stdout)
}

fn pages(name: &str) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let said = polity(home.path(), &["explain", name, "--json"]);
    serde_json::from_slice(&said.stdout).unwrap()
}

#[test]
fn a_world_says_what_it_takes_shows_measures_and_what_fits_it() {
    let page = page("opinion");
    for part in [
        "opinion (world): ",
        "Parameters\n",
        "stop_below",
        "Agents see\n",
        "Agents do\n",
        "Quantities: one number for each agent, for metrics\n",
        "Measured in every round\n",
        "largest-change",
        "Policies that fit it\n",
        "deffuant-weisbuch",
        "Sources\n",
        "polity run opinion",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let fitting = page.split("Policies that fit it\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert!(!fitting.contains(" user ") && fitting.contains("mind"), "{fitting}");
}

#[test]
fn other_leaves_say_what_they_are() {
    for (name, parts) in [
        ("deffuant-weisbuch", &["(policy)", "epsilon", "needed", "Worlds that it fits", "opinion"][..]),
        ("debate", &["(method)", "members", "stop_when_agreed", "Du et al. (2024). Improving Factuality", "Prompts"]),
        ("sc", &["self-consistency (method)"]),
        ("mean", &["(metric)", "It has no parameters", "Worlds that it fits", "opinion"]),
        ("watts-strogatz", &["(topology)", "rewire"]),
        ("calculator", &["(toolkit)"]),
        ("matrix-game", &["(world)", "fictitious-play", "payoff"]),
    ] {
        let page = page(name);
        for part in parts {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}

#[test]
fn leaves_of_every_kind_have_a_page() {
    let registry = polity::registry();
    for (kind, leaves) in registry.leaves() {
        // Two of each kind: each takes a process.
        for leaf in leaves.into_iter().take(2) {
            let found = pages(leaf.name);
            assert!(found.iter().any(|page| page["name"] == leaf.name && page["summary"] == leaf.summary), "{kind}");
        }
    }
}

#[test]
fn the_matrix_is_what_validate_says() {
    let home = tempfile::tempdir().unwrap();
    let said = polity(home.path(), &["explain", "--json"]);
    let matrix: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap();
    let fits = |world: &str, policy: &str| {
        let row = matrix.iter().find(|row| row["world"] == world).unwrap();
        row["policies"].as_array().unwrap().iter().any(|other| other == policy)
    };
    assert_eq!(matrix.len(), polity::registry().worlds().len());
    // Every world has players, and every policy a world.
    for row in &matrix {
        assert!(!row["policies"].as_array().unwrap().is_empty(), "{row}");
    }
    for policy in polity::registry().policies() {
        assert!(matrix.iter().any(|row| fits(row["world"].as_str().unwrap(), policy.name)), "{}", policy.name);
    }
    // Against scenarios as a person writes them.
    let policies =
        [("degroot", "degroot"), ("user", "user"), ("noise", "noise"), ("level-k", "level-k"), ("boid", "boid")];
    for world in ["opinion", "guess-average", "platform", "flock"] {
        for (name, written) in policies {
            let scenario = format!(
                "rounds: 2\nagents: 20\ntopology: {{kind: ring, neighbours: 2}}\nworld: {world}\ncohorts: [{{policy: {written}}}]\n"
            );
            fs::write(home.path().join("it.yaml"), scenario).unwrap();
            let valid = polity(home.path(), &["validate", "it.yaml"]).status.success();
            assert_eq!(fits(world, name), valid, "{name} in {world}");
        }
    }
    let table = text(&polity(home.path(), &["explain"]).stdout);
    assert!(table.contains("Which policies fit which worlds") && table.contains("degroot"), "{table}");
}
