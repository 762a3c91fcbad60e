//! The runs in the folder of a comparison, with what tells them apart.

use super::entrant::{Entrant, folder_name};
use super::request::Record;
use super::task::task_name;
use polity_driver::comparison::comparison_runs;
use polity_store::DriveError;
use polity_store::disk::Disk;
use std::path::Path;

/// A run of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its folder, from the comparison's: `runs/sim_medium/gsm8k/debate@3/1`.
    pub run: String,
    /// The model of all members.
    pub model: String,
    /// The task: the name of its file.
    pub task: String,
    /// The method, as it was named.
    pub method: String,
    /// Members of its team.
    pub members: u32,
    /// Its seed.
    pub seed: u64,
}

/// Returns the runs of a comparison in its order (tasks, models, methods, sizes, seeds): the compared ones if it has ended, else those that
/// have begun. Runs of earlier requests in the same folder are left out, and so are those of pilots.
///
/// # Errors
/// [`DriveError::Folder`] if the comparison's files were changed, [`DriveError::Disk`].
pub fn members(disk: &dyn Disk, dir: &Path) -> Result<Vec<Member>, DriveError> {
    let record = Record::read(disk, dir)?;
    let mut found: Vec<((usize, usize, usize), Member)> = Vec::new();
    for run in comparison_runs(disk, dir)? {
        let parts: Vec<&str> = run.split('/').collect();
        let [_, model, task, team, seed] = parts.as_slice() else { continue };
        let Some((method, size)) = team.rsplit_once('@') else { continue };
        let (Ok(members), Ok(seed)) = (size.parse::<u32>(), seed.parse::<u64>()) else { continue };
        if !(record.seed..record.seed.saturating_add(record.repeats.into())).contains(&seed) {
            continue;
        }
        // Methods that differ only in the size of the team share the first part of their folders' names.
        let of_size = |size: Option<u32>| {
            record.methods.iter().position(|named| named.folder == method && Entrant::size_in(&named.word) == size)
        };
        let place = (
            record.tasks.iter().position(|path| folder_name(&task_name(path)) == *task),
            record.models.iter().position(|name| folder_name(name) == *model),
            of_size(Some(members)).or_else(|| of_size(None)),
        );
        let (Some(of_task), Some(of_model), Some(of_method)) = place else { continue };
        let member = Member {
            model: record.models[of_model].clone(),
            task: task_name(&record.tasks[of_task]),
            method: record.methods[of_method].label.clone(),
            members,
            seed,
            run,
        };
        found.push(((of_task, of_model, of_method), member));
    }
    found.sort_by_key(|(place, member)| (*place, member.members, member.seed));
    Ok(found.into_iter().map(|(_, member)| member).collect())
}

/// Returns how many runs a comparison has once it has ended, without those of pilots.
///
/// # Errors
/// [`DriveError::Folder`] if its record cannot be read, [`DriveError::Disk`].
pub fn planned_runs(disk: &dyn Disk, dir: &Path) -> Result<usize, DriveError> {
    let Record { tasks, models, methods, repeats, .. } = Record::read(disk, dir)?;
    Ok(tasks.len() * models.len() * methods.len() * repeats as usize)
}

/// Returns whether workers share the runs of a comparison.
#[must_use]
pub fn is_planned(disk: &dyn Disk, dir: &Path) -> bool {
    Record::read(disk, dir).is_ok_and(|record| record.planned)
}
