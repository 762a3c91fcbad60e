//! Folders with several runs, sweeps and comparisons, for commands that read runs.

use super::failure::{Exit, Failure};
use polity_arena::arena::{is_comparison, members};
use polity_driver::sweep::{is_sweep, sweep_runs};
use polity_store::disk::{Disk, RealDisk};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One of several runs.
pub struct Member {
    /// Its folder, from that of all.
    pub name: String,
    pub folder: PathBuf,
    /// What tells it apart: columns and values.
    pub about: Vec<(&'static str, Value)>,
}

impl Member {
    /// Returns its method, as the tables of a comparison call it.
    fn method(&self) -> Option<&str> {
        self.about.iter().find(|(column, _)| *column == "method").and_then(|(_, method)| method.as_str())
    }

    /// Returns what tells it apart, in words.
    pub fn words(&self) -> String {
        let word = |(name, value): &(&str, Value)| match value {
            Value::String(text) => format!("{name} {text}"),
            value => format!("{name} {value}"),
        };
        self.about.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the runs of a sweep or a comparison that have begun, in its order; `None` for any other folder. With `of`, only those of the
/// method with this name in the tables, or, if there is none, those whose name or method contains it.
pub fn several(dir: &Path, of: Option<&str>) -> Result<Option<Vec<Member>>, Failure> {
    let all: Vec<Member> = if is_sweep(&RealDisk, dir) {
        let member = |run: polity_driver::sweep::SweepRun| {
            let name = run.folder.strip_prefix(dir).unwrap_or(&run.folder).to_string_lossy().into_owned();
            Member { name, folder: run.folder, about: vec![("arm", run.arm.into()), ("seed", run.seed.into())] }
        };
        let begun = |member: &Member| RealDisk.exists(&member.folder.join("manifest.json")).unwrap_or(false);
        sweep_runs(&RealDisk, dir)?.into_iter().map(member).filter(begun).collect()
    } else if is_comparison(&RealDisk, dir) {
        let member = |run: polity_arena::arena::Member| Member {
            folder: dir.join(&run.run),
            name: run.run,
            about: vec![
                ("task", run.task.into()),
                ("model", run.model.into()),
                ("method", run.method.into()),
                ("members", run.members.into()),
                ("seed", run.seed.into()),
            ],
        };
        members(&RealDisk, dir)?.into_iter().map(member).collect()
    } else {
        return match of {
            None => Ok(None),
            Some(_) => {
                let message =
                    format!("{} is no sweep and no comparison; --run chooses among the runs of these", dir.display());
                Err(Failure::new(Exit::Input, message))
            }
        };
    };
    if all.is_empty() {
        let message = format!("no run of {} has begun; `polity resume {}` continues it", dir.display(), dir.display());
        return Err(Failure::new(Exit::Folder, message));
    }
    let Some(wanted) = of else { return Ok(Some(all)) };
    // `moa` is also a part of the name of another method's runs.
    let is_named = |member: &Member| member.method() == Some(wanted);
    let has_it =
        |member: &Member| member.name.contains(wanted) || member.method().is_some_and(|method| method.contains(wanted));
    let is_method = all.iter().any(is_named);
    let (some, others): (Vec<Member>, Vec<Member>) =
        all.into_iter().partition(|member| if is_method { is_named(member) } else { has_it(member) });
    if !some.is_empty() {
        return Ok(Some(some));
    }
    let mut methods: Vec<String> = Vec::new();
    for method in others.iter().filter_map(Member::method) {
        if methods.iter().all(|other| other != method) {
            methods.push(method.to_owned());
        }
    }
    let names: Vec<String> = others.into_iter().map(|member| member.name).collect();
    let methods = match methods.is_empty() {
        true => String::new(),
        false => format!(", of the methods {}", shortened(&methods)),
    };
    let message = format!(
        "--run {wanted}: no run of {} has this in its name; its runs are {}{methods}",
        dir.display(),
        shortened(&names)
    );
    Err(Failure::new(Exit::Input, message))
}

/// Joins names; only the first of many.
fn shortened(names: &[String]) -> String {
    const MOST: usize = 12;
    match names.len() {
        ..=MOST => names.join(", "),
        n => format!("{} and {} more", names[..MOST].join(", "), n - MOST),
    }
}
