//! `polity import recorded`: logs of other programs become recorded answers.

use super::args::Import;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, warn};
use polity_arena::recordings::{Account, Bundle, Choice, SCENARIO, read};
use polity_kernel::items::{Scorer, Shape};
use polity_kernel::registry::Registry;
use polity_store::DriveError;
use polity_store::printable::counted;
use serde::Serialize;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// What was imported.
#[derive(Serialize)]
struct Imported<'a> {
    status: &'static str,
    out: &'a Path,
    items: usize,
    answers: usize,
    models: &'a [String],
    shape: Shape,
    scorer: Scorer,
    agrees: bool,
    logs: &'a [Account],
}

/// Reads logs and writes them as items, a table of answers and a scenario.
pub fn import(what: Import, registry: &Registry) -> Result<Exit, Failure> {
    let Import::Recorded { logs, out, model, scorer, json: as_json } = what;
    once(&logs)?;
    vacant(&out)?;
    let choice = Choice { model: model.as_deref(), scorer: scorer.as_deref() };
    let taken: Result<Vec<_>, DriveError> = logs.iter().map(|log| read(log, choice, registry)).collect();
    let bundle = Bundle::of(taken?)?;
    write(&out, &bundle.files)?;
    bundle.accounts.iter().for_each(tell);
    let answers = bundle.accounts.iter().map(|account| account.answers).sum();
    note(&format!(
        "imported into {}: {}, {} of {}",
        out.display(),
        counted(bundle.items, "item"),
        counted(answers, "answer"),
        counted(bundle.models.len(), "model")
    ));
    note(&format!("try:\n  polity run {}", out.join(SCENARIO).display()));
    if as_json {
        print_line(&json(&Imported {
            status: "done",
            out: &out,
            items: bundle.items,
            answers,
            models: &bundle.models,
            shape: bundle.shape,
            scorer: bundle.rule,
            agrees: bundle.accounts.iter().all(Account::agrees),
            logs: &bundle.accounts,
        }));
    }
    Ok(Exit::Done)
}

/// Refuses a log that is named twice: its answers would become samples of their own.
fn once(logs: &[PathBuf]) -> Result<(), Failure> {
    let mut known = Vec::new();
    for log in logs {
        // A log that does not exist is reported where it is read.
        let file = log.canonicalize().unwrap_or_else(|_| log.clone());
        if known.contains(&file) {
            return Err(Failure::new(Exit::Input, format!("{} is named twice; name each log once", log.display())));
        }
        known.push(file);
    }
    Ok(())
}

/// Refuses a folder that exists, before the logs are read.
fn vacant(out: &Path) -> Result<(), Failure> {
    match out.symlink_metadata() {
        Ok(_) => Err(exists(out)),
        Err(_) => Ok(()),
    }
}

fn exists(out: &Path) -> Failure {
    let message = format!("{} already exists; nothing was changed. Choose another folder: --out FOLDER", out.display());
    Failure::new(Exit::Input, message)
}

/// Writes the files into a new folder.
fn write(out: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let disk =
        |path: &Path, error: Error| Failure::new(Exit::Disk, format!("{} cannot be written: {error}", path.display()));
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).map_err(|error| disk(parent, error))?;
    }
    fs::create_dir(out).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(out),
        _ => disk(out, error),
    })?;
    for (name, text) in files {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| disk(&path, error))?;
    }
    Ok(())
}

/// Says what became of a log, and whether it was kept.
fn tell(account: &Account) {
    let Account { log, format, task, scorer, answers, unread, left_out, notes, .. } = account;
    let by = if scorer.is_empty() { String::new() } else { format!(", scorer `{scorer}`") };
    let none = if *unread == 0 { String::new() } else { format!("; no answer could be read in {unread} of them") };
    note(&format!("{log} ({format}, task `{task}`{by}): {} taken{none}", counted(*answers, "answer")));
    left_out.iter().for_each(|(why, count)| warn(&format!("  left out: {why}: {count}")));
    notes.iter().for_each(|what| warn(&format!("  {what}")));
    compare(account);
}

/// Compares the accuracy of a log with that of its import.
fn compare(account: &Account) {
    let Account { answers, accuracy, recomputed, marks, differing, left_out, .. } = account;
    if *answers == 0 {
        return;
    }
    let Some(recomputed) = recomputed else {
        return note("  accuracy: the items have no right answers, so nothing is scored");
    };
    let Some(stated) = accuracy else {
        note(&format!("  accuracy: {recomputed:.4} by the items' own scoring; the log states none"));
        if *differing > 0 {
            warn(&format!("  {differing} of {} of the log differ from this scoring", counted(*marks, "mark")));
        }
        return;
    };
    let both = format!("  accuracy: {stated:.4} in the log, {recomputed:.4} by the items' own scoring");
    if account.agrees() {
        return note(&format!("{both}; they agree"));
    }
    let missing = match left_out.values().sum() {
        0usize => String::new(),
        count => format!("; its accuracy may include what was left out ({count})"),
    };
    warn(&format!("{both}; {differing} of {} of the log differ{missing}", counted(*marks, "mark")));
}
