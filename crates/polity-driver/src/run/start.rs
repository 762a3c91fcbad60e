//! What is derived from a scenario or a run before a run of it begins.

use polity_kernel::tree::{Node, Value};
use polity_store::DriveError;
use polity_store::disk::Disk;
use std::path::{Path, PathBuf};

/// Returns the seed of a scenario that may not have been checked yet.
#[must_use]
pub fn seed_of(tree: &Node) -> u64 {
    match tree.get("seed").map(|node| &node.value) {
        Some(Value::Int(seed)) => *seed as u64,
        _ => 1,
    }
}

/// Returns a free folder next to a run's, for a fork of it.
///
/// # Errors
/// All of ten thousand names are taken.
pub fn fork_folder(disk: &dyn Disk, run: &Path, at: u32) -> Result<PathBuf, DriveError> {
    for i in 1..10_000 {
        let suffix = if i == 1 { String::new() } else { format!("-{i}") };
        let name = run.file_name().map_or("run".into(), |n| n.to_string_lossy().into_owned());
        let path = run.with_file_name(format!("{name}-fork{at}{suffix}"));
        if !disk.exists(&path).unwrap_or(true) {
            return Ok(path);
        }
    }
    Err(DriveError::Folder("there are ten thousand forks of this run; name a folder with --out".into()))
}

/// Sets every model that a scenario names outside of `model` (in team members and policies) to `value`.
#[must_use]
pub fn other_models(tree: &Node, value: &Node) -> Vec<(String, Node)> {
    let list = |key: &str| match tree.get(key).map(|node| &node.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let members = list("team").iter().enumerate().filter(|(_, member)| member.get("model").is_some());
    let mut edits: Vec<(String, Node)> = members.map(|(i, _)| (format!("team[{i}].model"), value.clone())).collect();
    for (i, cohort) in list("cohorts").iter().enumerate() {
        let Some(policy) = cohort.get("policy") else { continue };
        if policy.get("models").is_some() {
            let none = Node { value: Value::List(Vec::new()), ..value.clone() };
            edits.push((format!("cohorts[{i}].policy.models"), none));
        } else if policy.get("model").is_none() {
            continue;
        }
        edits.push((format!("cohorts[{i}].policy.model"), value.clone()));
    }
    edits
}
