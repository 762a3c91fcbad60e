//! `polity verify`: check that folders are as Polity wrote them.

use super::failure::{Exit, Failure};
use super::output::{self, print_line, wrong};
use polity_driver::verify::Verified;
use polity_store::Fault;
use polity_store::disk::{Disk, RealDisk};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub fn verify(folder: &Path, as_json: bool) -> Result<Exit, Failure> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let found = polity_arena::verify(&disk, folder)?;
    let damaged = found.iter().any(|verified| !verified.faults.is_empty());
    let status = |damaged: bool| if damaged { "damaged" } else { "sound" };
    for Verified { folder, words, faults, notes, .. } in &found {
        if !as_json {
            let words = if words.is_empty() { String::new() } else { format!("  {words}") };
            print_line(&format!("{:7}  {}{words}", status(!faults.is_empty()), folder.display()));
            notes.iter().for_each(|note| print_line(&format!("         {note}")));
        }
        faults.iter().for_each(|Fault { path, what }| wrong(&format!("{}: {what}", path.display())));
    }
    if as_json {
        print_line(&output::json(&json!({ "status": status(damaged), "folders": found })));
    }
    Ok(if damaged { Exit::Folder } else { Exit::Done })
}
