//! `polity new experiment`: a guide from a question to a scenario with a design and a protocol.

mod answers;
mod dialogue;
mod files;

use crate::args::FileAccess;
use crate::failure::{Exit, Failure, Source, failure};
use crate::flags::load;
use crate::output::note;
use answers::{Plan, Reading};
use files::File;
use polity_driver::run::Extent;
use polity_kernel::registry::Registry;
use polity_store::files::{read_bytes, text_from_bytes};
use std::fs;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Answers to begin with: all keys, with what they mean.
const TEMPLATE: &str = include_str!("answers.yaml");

fn wrong(message: String) -> Failure {
    Failure::new(Exit::Input, message)
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Disk, format!("{} cannot be written: {error}", path.display()))
}

/// Writes the folder of an experiment from answers in a file or in the terminal.
pub(super) fn experiment(
    dir: &str,
    answers: Option<&Path>,
    template: Option<&Path>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    if let Some(path) = template {
        return write_template(dir, path);
    }
    let folder = Path::new(dir);
    vacant(folder)?;
    let reading = Reading::new(registry);
    let source = match answers {
        Some(path) => {
            let name = path.display().to_string();
            let bytes = read_bytes(path).map_err(|error| wrong(error.to_string()))?;
            let text = text_from_bytes(path, &bytes).map_err(|error| wrong(error.to_string()))?.to_owned();
            Source { name, text }
        }
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            let text = dialogue::ask(&mut std::io::stdin().lock(), &reading)?;
            Source { name: "your answers".into(), text }
        }
        None => {
            return Err(wrong(format!(
                "there is no terminal to ask in; nothing was created. Write the answers into a file:\n  polity new experiment {dir} \
                 --write-answers answers.yaml\n  polity new experiment {dir} --answers answers.yaml"
            )));
        }
    };
    let plan = reading.plan(&source.text).map_err(|fault| fault.failure(&source))?;
    let name = folder.file_name().map_or("experiment".into(), |name| name.to_string_lossy().into_owned());
    let files = files::files(&plan, &name, &source.text).map_err(wrong)?;
    write(folder, &files, plan.arms.len(), &reading)?;
    tell(dir, &plan);
    Ok(Exit::Done)
}

/// Writes answers to begin with.
fn write_template(dir: &str, path: &Path) -> Result<Exit, Failure> {
    let written = fs::File::create_new(path).and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            wrong(format!("{} already exists; nothing was changed. Choose another file", path.display()))
        }
        _ => unwritten(path, &error),
    })?;
    let path = path.display();
    note(&format!(
        "wrote {path}: an example of all answers. Edit it, then: polity new experiment {dir} --answers {path}"
    ));
    Ok(Exit::Done)
}

/// Refuses a folder that exists.
fn vacant(folder: &Path) -> Result<(), Failure> {
    match folder.symlink_metadata() {
        Ok(_) => Err(wrong(format!("{} already exists; nothing was changed. Choose another folder", folder.display()))),
        Err(_) => Ok(()),
    }
}

/// Writes the folder as a whole or not at all: beside its place, checked there, and renamed.
fn write(folder: &Path, files: &[File], arms: usize, reading: &Reading<'_>) -> Result<(), Failure> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|error| unwritten(parent, &error))?;
    let staging = parent.join(format!(".polity-experiment-{}", std::process::id()));
    fs::create_dir(&staging).map_err(|error| unwritten(&staging, &error))?;
    let done = write_into(&staging, files)
        .and_then(|()| check(&staging.join("scenario.yaml"), arms, reading))
        .and_then(|()| vacant(folder))
        .and_then(|()| fs::rename(&staging, folder).map_err(|error| unwritten(folder, &error)));
    if done.is_err() {
        // Only what was made above is in it.
        let _ = fs::remove_dir_all(&staging);
    }
    done
}

fn write_into(folder: &Path, files: &[File]) -> Result<(), Failure> {
    for (name, bytes) in files {
        let path: PathBuf = folder.join(name);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, bytes)).map_err(|error| unwritten(&path, &error))?;
    }
    Ok(())
}

/// Checks the scenario with all arms, as `polity validate` does.
fn check(file: &Path, arms: usize, reading: &Reading<'_>) -> Result<(), Failure> {
    let (prepared, source) = load(file, &FileAccess::default(), &[], Vec::new(), reading.registry)?;
    let checked = reading.engine.validate(&prepared, Extent::Outline);
    let found = checked.and_then(|()| polity_driver::sweep::check(&reading.engine, &prepared, Extent::Outline));
    match found.map_err(|error| failure(&error, Some(&source)))? {
        found if found == arms => Ok(()),
        found => Err(Failure::new(Exit::Defect, format!("the design has {found} arms instead of {arms}"))),
    }
}

/// Says what was made, and what to do next.
fn tell(dir: &str, plan: &Plan) {
    let arms = plan.arms.len();
    let runs = arms * plan.seeds as usize;
    note(&format!("created {dir}: {arms} arms, {} seeds each, {runs} runs", plan.seeds));
    note(
        "  scenario.yaml  the scenario with its design\n  PROTOCOL.md    question, arms, analysis and validation, before the first run",
    );
    let estimate = if plan.start.models.is_empty() { "" } else { "  polity estimate scenario.yaml\n" };
    note(&format!(
        "try:\n  cd {dir}\n  polity validate scenario.yaml\n{estimate}  polity sweep scenario.yaml --out sweep"
    ));
}
