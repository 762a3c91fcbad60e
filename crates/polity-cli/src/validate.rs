//! `polity validate`.

use super::args::FileAccess;
use super::engine::plain_engine;
use super::failure::{Exit, Failure, failure};
use super::flags::load;
use super::output::{self, json as to_json, note, print_line};
use polity_driver::run::{Engine, Extent};
use polity_driver::source::{Notes, Outside};
use polity_kernel::registry::Registry;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks files, and all scenarios below folders.
pub fn validate(
    paths: &[PathBuf],
    access: &FileAccess,
    full: bool,
    json: bool,
    registry: &Registry,
) -> Result<Exit, Failure> {
    let extent = if full { Extent::Whole } else { Extent::Outline };
    let outside = Outside { notes: Notes::to(output::warn), ..Outside::default() };
    let engine = Engine { asks: false, outside, ..plain_engine(registry) };
    let (files, without) = named(paths);
    let mut wrong = without;
    for path in &files {
        let checked = load(path, access, &[], Vec::new(), registry).and_then(|(prepared, source)| {
            let checked = engine.validate(&prepared, extent);
            let arms = checked.and_then(|()| polity_driver::sweep::check(&engine, &prepared, extent));
            arms.map_err(|e| failure(&e, Some(&source)))
        });
        match checked {
            Ok(0) => note(&format!("{}: ok", path.display())),
            Ok(arms) => note(&format!("{}: ok, and so are the {arms} arms of its design", path.display())),
            Err(failure) => {
                wrong += 1;
                output::wrong(failure.message.trim_end());
            }
        }
    }
    let all = files.len() + without;
    if all > 1 {
        note(&format!("{all} files: {} ok, {wrong} wrong", all - wrong));
    }
    if json {
        let status = if wrong == 0 { "ok" } else { "wrong" };
        print_line(&to_json(&serde_json::json!({ "status": status, "files": all, "wrong": wrong })));
    }
    Ok(if wrong == 0 { Exit::Done } else { Exit::Input })
}

/// Returns the named files and those below named folders, and the number of folders without any, each of which is reported.
pub(super) fn named(paths: &[PathBuf]) -> (Vec<PathBuf>, usize) {
    let (mut files, mut without) = (Vec::new(), 0);
    for path in paths {
        let before = files.len();
        let read = match path.is_dir() {
            true => scenarios_below(path, &mut files),
            false => {
                files.push(path.clone());
                Ok(())
            }
        };
        if let Err(failure) = read {
            without += 1;
            output::wrong(&failure.message);
        } else if files.len() == before {
            without += 1;
            output::wrong(&format!("there is no file *.yaml or *.yml in the folder `{}` or below", path.display()));
        }
    }
    (files, without)
}

/// Adds all YAML files below a folder, sorted by name. Skips hidden entries and links, which may form a circle.
fn scenarios_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Exit::Input, format!("the folder `{}` cannot be read: {error}", folder.display()))
    };
    let mut entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            scenarios_below(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            files.push(path);
        }
    }
    Ok(())
}
