//! `polity doctor`: whether this machine has what runs need.

use super::failure::Exit;
use super::output::{json as to_json, print_line};
use polity_models::tools::python::Python;
use polity_store::memory::available;
use serde::Serialize;
use std::fs::{self, File};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// As it should be.
    Ok,
    /// Runs work, but less well than they could.
    Warn,
    /// Runs fail.
    Fail,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    status: Status,
    message: String,
}

fn check(check: &'static str, status: Status, message: impl Into<String>) -> Check {
    Check { check, status, message: message.into() }
}

/// Below this much free memory a society of some hundred thousand agents may not fit.
const LITTLE_MEMORY_MB: u64 = 1000;
/// A run of a million agents over ten rounds writes about 100 MB.
const LITTLE_DISK_MB: u64 = 1000;
/// Every answer of a model waits for a sync of the journal, shared with others.
const SLOW_SYNC_MS: u128 = 100;

/// Runs the checks and prints a line for each; with `json`, one object.
pub fn doctor(folder: &Path, json: bool) -> Exit {
    // A run creates its folder and the parents.
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let mut checks = vec![version(), cores(), memory(), disk(there), writable(there), sandbox()];
    checks.extend(environment());
    let worst = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
    if json {
        let object = serde_json::json!({ "status": worst, "version": env!("CARGO_PKG_VERSION"), "checks": checks });
        print_line(&to_json(&object));
    } else {
        for Check { check, status, message } in &checks {
            let status = format!("{status:?}").to_lowercase();
            print_line(&format!("{status:4}  {check:11}  {message}"));
        }
    }
    match worst {
        Status::Fail => Exit::Disk,
        _ => Exit::Done,
    }
}

fn version() -> Check {
    let (version, system, machine) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let message = format!("polity {version} on {system}, {machine}");
    match system {
        "linux" => check("version", Status::Ok, message),
        _ => check("version", Status::Warn, message + "; Polity is tested on Linux only"),
    }
}

fn cores() -> Check {
    match std::thread::available_parallelism().map_or(1, NonZeroUsize::get) {
        1 => check("cores", Status::Warn, "1 core for this process; more cores give the same results faster"),
        cores => check("cores", Status::Ok, format!("{cores} cores for this process")),
    }
}

fn memory() -> Check {
    match available().map(|bytes| bytes / 1_000_000) {
        Some(free) if free < LITTLE_MEMORY_MB => {
            let message = format!("{free} MB free; a million agents need 100 to 600 MB");
            check("memory", Status::Warn, message)
        }
        Some(free) => check("memory", Status::Ok, format!("{free} MB free")),
        None => check("memory", Status::Warn, "the system does not report how much memory is free"),
    }
}

#[cfg(unix)]
fn free_disk_mb(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) / 1_000_000)
}

#[cfg(not(unix))]
fn free_disk_mb(_: &Path) -> Option<u64> {
    None
}

fn disk(folder: &Path) -> Check {
    match free_disk_mb(folder) {
        Some(0) => {
            check("disk", Status::Fail, format!("no space is left on the disk of {}; free some", folder.display()))
        }
        Some(free) if free < LITTLE_DISK_MB => {
            check("disk", Status::Warn, format!("{free} MB free; a million agents write about 10 MB per round"))
        }
        Some(free) => check("disk", Status::Ok, format!("{free} MB free")),
        None => check("disk", Status::Warn, "the system does not report how much space is free"),
    }
}

/// Writes, syncs and removes a small file, as a run's journal does.
fn writable(folder: &Path) -> Check {
    let path = folder.join(format!(".polity-doctor-{}", std::process::id()));
    let begun = Instant::now();
    let tried = File::create_new(&path).and_then(|mut file| file.write_all(&[0; 4096]).and_then(|()| file.sync_all()));
    let took = begun.elapsed().as_millis();
    // Nothing can be done if the file cannot be removed.
    let _ = fs::remove_file(&path);
    match tried {
        Err(error) => {
            let help = "runs are written below the current folder, or to the folder that --out names";
            check("folder", Status::Fail, format!("{} cannot be written: {error}; {help}", folder.display()))
        }
        Ok(()) if took > SLOW_SYNC_MS => {
            let help = "model answers wait for it; a local disk is faster";
            check(
                "folder",
                Status::Warn,
                format!("{} can be written; a sync takes {took} ms, and {help}", folder.display()),
            )
        }
        Ok(()) => check("folder", Status::Ok, format!("{} can be written; a sync takes {took} ms", folder.display())),
    }
}

/// Checks where programs written by models run, if a scenario runs them. Other scenarios do not need it.
fn sandbox() -> Check {
    match Python::standard().state() {
        Ok(state) => check("sandbox", Status::Ok, state),
        Err(why) => check("sandbox", Status::Warn, why),
    }
}

/// Checks for variables that affect runs without being visible on the command line.
fn environment() -> Option<Check> {
    let mut names: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("POLITY_"))
        .collect();
    names.sort();
    let message =
        format!("these variables are set and act as flags of every run started from here: {}", names.join(", "));
    (!names.is_empty()).then(|| check("environment", Status::Warn, message))
}
