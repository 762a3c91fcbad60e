//! Collects the leaves: every folder under worlds/, policies/, methods/ and metrics/ is one, so that adding a leaf touches one
//! folder and nothing else.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

const KINDS: [&str; 4] = ["worlds", "policies", "methods", "metrics"];

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let mut modules = String::new();
    let mut register = String::from(
        "/// Adds every leaf of the catalogue.\npub fn register_all(registry: &mut polity_kernel::registry::Registry) {\n",
    );
    for kind in KINDS {
        let folder = Path::new(&root).join(kind);
        // Cargo looks at everything below the folder.
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut names = Vec::new();
        fs::create_dir_all(&folder)?; // Git keeps no empty folder.
        for entry in fs::read_dir(&folder)? {
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
            let _ = writeln!(
                modules,
                "    #[path = {:?}]\n    pub mod {module};",
                path.join("mod.rs").display().to_string()
            );
            let text = |file: &str| {
                let file = path.join(file);
                match file.is_file() {
                    true => format!("include_str!({:?})", file.display().to_string()),
                    false => "\"\"".to_string(),
                }
            };
            // What a world says to minds; a policy's own templates.
            let folder = path.join(if kind == "worlds" { "mind" } else { "prompts" });
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
    }
    register.push_str("}\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("leaves.rs"), modules + &register)
}
