//! Collects the leaves of a kind: every folder beside the crate's `Cargo.toml` that has a `mod.rs`. Adding a leaf therefore touches one
//! folder and nothing else. All kinds build with this script.
#![allow(clippy::print_stdout, reason = "Cargo reads what a build script prints")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let mut modules = String::new();
    let mut register = String::from(
        "/// Adds every leaf of the catalogue.\npub fn register_all(registry: &mut polity_kernel::registry::Registry) {\n",
    );
    let folder = Path::new(&root);
    let kind = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Cargo watches everything below the folder.
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().join("mod.rs").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let _ = writeln!(modules, "/// The {kind} of the catalogue, one folder each.\npub mod {kind} {{");
    for name in names {
        let path = folder.join(&name);
        let module = name.replace('-', "_");
        let _ =
            writeln!(modules, "    #[path = {:?}]\n    pub mod {module};", path.join("mod.rs").display().to_string());
        let text = |file: &str| {
            let file = path.join(file);
            match file.is_file() {
                true => format!("include_str!({:?})", file.display().to_string()),
                false => "\"\"".to_string(),
            }
        };
        // A world's texts for minds; a policy's own templates.
        let folder = path.join(if matches!(kind, "worlds" | "environments") { "mind" } else { "prompts" });
        let mut prompts = Vec::new();
        if folder.is_dir() {
            for entry in fs::read_dir(&folder)? {
                let file = entry?.path();
                if let (Some(stem), Some("md")) = (file.file_stem(), file.extension().and_then(|e| e.to_str())) {
                    let (stem, file) = (stem.to_string_lossy().into_owned(), file.display().to_string());
                    prompts.push(format!("({stem:?}, include_str!({file:?}))"));
                }
            }
        }
        prompts.sort();
        let _ = writeln!(
            register,
            "    {kind}::{module}::register(registry, polity_kernel::registry::LeafFiles {{ readme: {}, scenario: {}, golden: {}, cite: {}, prompts: &[{}], folder: {:?} }});",
            text("README.md"),
            text("scenario.yaml"),
            text("golden.json"),
            text("cite.bib"),
            prompts.join(", "),
            path.display().to_string(),
        );
    }
    modules.push_str("}\n");
    register.push_str("}\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("leaves.rs"), modules + &register)
}
