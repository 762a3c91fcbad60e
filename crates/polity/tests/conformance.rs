//! Every leaf of the catalogue conforms. `POLITY_BLESS=1` writes the goldens anew, for a change that is meant.

use polity::conformance::check;
use std::path::Path;

#[test]
fn every_leaf_conforms() {
    let registry = polity::registry();
    let bless = std::env::var_os("POLITY_BLESS").is_some();
    let shelves = [
        ("worlds", registry.worlds()),
        ("policies", registry.policies()),
        ("methods", registry.methods()),
        ("metrics", registry.metrics()),
    ];
    let folder = |leaf: &str| {
        let (kind, name) = leaf.split_once('/').unwrap();
        let shelf = &shelves.iter().find(|(k, _)| *k == kind).unwrap().1;
        shelf.iter().find(|card| card.name == name).unwrap().files.folder
    };
    let mut failures = Vec::new();
    let checked = check(&registry);
    assert!(checked.len() >= 4, "the catalogue is not empty");
    for checked in checked {
        println!("{}  {}", checked.digest, checked.leaf);
        for failure in &checked.failures {
            if bless && failure.contains("golden") {
                continue;
            }
            failures.push(format!("{}: {failure}", checked.leaf));
        }
        if bless {
            checked.write_golden(Path::new(folder(&checked.leaf))).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
