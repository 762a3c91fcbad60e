//! Crates made by `polity new` work: the templates are compiled here and conform. `scripts/new-crate-check.sh` builds whole crates.
//! `POLITY_BLESS=1` rewrites the goldens of the templates.

#[path = "../../polity-cli/src/new/templates/method/src/lib.rs"]
mod ballot;
#[path = "../../polity-cli/src/new/templates/policy/src/lib.rs"]
mod midway;
#[path = "../../polity-cli/src/new/templates/world/src/lib.rs"]
mod pasture;

use polity::conformance::own_leaves;
use polity::kernel::registry::{LeafFiles, Registry};
use std::process::Command;

macro_rules! template {
    ($folder:literal) => {
        LeafFiles {
            prompts: &[],
            readme: include_str!(concat!("../../polity-cli/src/new/templates/", $folder, "/README.md")),
            scenario: include_str!(concat!("../../polity-cli/src/new/templates/", $folder, "/scenario.yaml")),
            golden: include_str!(concat!("../../polity-cli/src/new/templates/", $folder, "/golden.json")),
            cite: "",
            folder: concat!(env!("CARGO_MANIFEST_DIR"), "/../polity-cli/src/new/templates/", $folder),
        }
    };
}

#[test]
fn templates_conform() {
    // Here and not by their own `registry()`, since the crate's folder differs.
    let mut registry: Registry = polity::registry();
    registry.split_world::<pasture::Pasture>(template!("world"));
    registry.policy::<midway::Midway>(template!("policy"));
    registry.method::<ballot::Ballot>(template!("method"));
    let failures = own_leaves(&registry);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn templates_join_the_built_in_leaves() {
    let built_in = polity::registry();
    assert_eq!(pasture::registry().worlds().len(), built_in.worlds().len() + 1);
    assert_eq!(midway::registry().policies().len(), built_in.policies().len() + 1);
    assert_eq!(ballot::registry().methods().len(), built_in.methods().len() + 1);
}

#[test]
fn a_leaf_with_the_name_of_a_built_in_one_is_noticed() {
    let mut registry = polity::registry();
    let noise = registry.policies().into_iter().find(|card| card.name == "noise").unwrap().files;
    registry.policy::<midway::Midway>(template!("policy"));
    assert!(own_leaves(&registry).is_empty());
    assert!(own_leaves(&polity::registry())[0].contains("no leaf of its own"));
    // The same name from another folder.
    let mut registry = polity::registry();
    registry.policy::<Noise>(LeafFiles { folder: "/elsewhere", ..noise });
    assert!(own_leaves(&registry).iter().any(|failure| failure.contains("has a leaf of this name")));
}

/// A leaf with the name of a built-in one.
struct Noise;

impl polity::kernel::policy::Policy for Noise {
    const NAME: &'static str = "noise";
    const SUMMARY: &'static str = "";
    type Params = midway::Params;
    type State = ();

    fn open(_: midway::Params, _: &polity::kernel::policy::PolicySetup<'_>) -> Result<Self, polity::kernel::Invalid> {
        Ok(Noise)
    }

    fn init_state(&self, _: polity::kernel::policy::Person<'_>, _: &mut polity::kernel::rng::Draws) {}

    async fn act(
        &self,
        _: &mut (),
        _: &mut polity::kernel::policy::Turn<'_>,
    ) -> Result<(), polity::kernel::policy::Fault> {
        Ok(())
    }
}

fn polity(folder: &std::path::Path, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_polity"))
        .args(args)
        .env_remove("POLITY_SOURCE")
        .current_dir(folder)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn new_makes_a_folder_once() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = polity(folder.path(), &["new", "world", "tide"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cd tide"), "{said}");
    let lib = std::fs::read_to_string(folder.path().join("tide/src/lib.rs")).unwrap();
    assert!(lib.contains("pub struct Tide"));
    let (code, said) = polity(folder.path(), &["new", "policy", "tide"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    let (code, said) = polity(folder.path(), &["new", "policy", "fn", "--polity", "/nowhere"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = polity(folder.path(), &["new", "policy", "gull", "--polity", "/nowhere"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("a checkout of Polity"), "{said}");
    assert!(!folder.path().join("gull").exists());
}
