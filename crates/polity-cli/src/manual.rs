//! Documentation of the program: completions, manual pages, the schema of a scenario and its reference.

use super::args::Args;
use super::failure::{Exit, Failure};
use super::output::{print_line, print_text};
use clap::CommandFactory;
use polity_kernel::registry::Registry;
use polity_kernel::scenario;
use std::io;
use std::path::Path;

/// `polity schema`.
pub fn schema(registry: &Registry) -> Exit {
    print_line(&serde_json::to_string_pretty(&scenario::schema(registry)).unwrap_or_default());
    Exit::Done
}

/// `polity reference`.
pub fn reference(registry: &Registry, leaf: Option<&str>) -> Result<Exit, Failure> {
    let text = match leaf {
        None => super::reference::reference(registry),
        Some("tables") => super::reference_pages::tables(registry)?,
        Some("flags") => super::reference_pages::flags(&shown()),
        Some("fits") => super::explain::page(registry),
        Some(leaf) => {
            let keys = leaf.split_once('/').and_then(|(kind, name)| super::reference::of_leaf(registry, kind, name));
            keys.ok_or_else(|| {
                Failure::new(Exit::Input, format!("there is no leaf `{leaf}`; write, for instance, worlds/opinion"))
            })?
        }
    };
    print_text(&text);
    Ok(Exit::Done)
}

/// Returns the command line without the hidden commands, which completions would offer.
fn shown() -> clap::Command {
    let whole = Args::command();
    let verbs: Vec<clap::Command> = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    let about = whole.get_about().cloned().unwrap_or_default();
    clap::Command::new("polity").about(about).version(env!("CARGO_PKG_VERSION")).subcommands(verbs)
}

/// `polity completions`.
pub fn completions(shell: clap_complete::Shell) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(), "polity", &mut text);
    print_text(&String::from_utf8_lossy(&text));
    Exit::Done
}

/// `polity man`.
pub fn man(folder: Option<&Path>) -> Result<Exit, Failure> {
    let failed = |error: io::Error, what: String| Failure::new(Exit::Disk, format!("{what}: {error}"));
    match folder {
        None => {
            let mut text = Vec::new();
            let page = clap_mangen::Man::new(Args::command());
            page.render(&mut text).map_err(|error| failed(error, "the manual page".into()))?;
            print_text(&String::from_utf8_lossy(&text));
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
                .map_err(|error| failed(error, format!("manual pages cannot be written to {}", folder.display())))?;
            super::output::note(&format!("wrote polity.1 and one page per command to {}", folder.display()));
        }
    }
    Ok(Exit::Done)
}
