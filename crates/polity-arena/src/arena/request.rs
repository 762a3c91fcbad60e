//! What a comparison is asked for, and its record in the comparison's folder, from which it goes on.

use super::entrant::Entrant;
use super::equal::Allowance;
use super::task::task_name;
use polity_driver::comparison::{COMPARISON_FILE, is_comparison};
use polity_driver::run::{as_read_back, difference, quoted};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Budget, Limits};
use polity_kernel::tree::Node;
use polity_store::DriveError;
use polity_store::disk::{Disk, write_atomically};
use polity_store::files::{from_there, parse_edit, plainly};
use polity_store::listing::Listing;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The minimum number of pilot items, unless a number is given.
pub const LEAST_PILOT: u32 = 5;
/// Format version of the record.
const FORMAT: u32 = 1;

/// In place of the methods of a comparison: all that can work on the items.
pub const ALL: &str = "all";

/// The command that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// `polity eval`: one method alone.
    Eval,
    /// `polity compare`: several methods, models or tasks.
    Compare,
}

/// Reads the methods of a request; `None` if all are asked for ([`ALL`]).
///
/// # Errors
/// Those of [`Entrant::read`].
pub fn read_methods(
    asked: Asked,
    words: &[String],
    members: Option<u32>,
    rounds: Option<u32>,
    registry: &Registry,
) -> Result<Option<Vec<Entrant>>, DriveError> {
    match (asked, words) {
        (Asked::Compare, [word]) if word == ALL => Ok(None),
        _ => {
            words.iter().map(|word| Entrant::read(word, members, rounds, registry)).collect::<Result<_, _>>().map(Some)
        }
    }
}

/// A comparison as it is asked for.
#[derive(Clone, Debug)]
pub struct ArenaRequest {
    /// The command that asks.
    pub asked: Asked,
    /// The methods, as they are named ([`Entrant::read`]), or [`ALL`].
    pub methods: Vec<String>,
    /// Members of teams whose size is not named.
    pub members: Option<u32>,
    /// Maximum number of rounds; if `None`, the usual one of each method.
    pub rounds: Option<u32>,
    /// Files of items. Relative paths start at `from`.
    pub tasks: Vec<PathBuf>,
    /// The folder in which the request was made; empty for the current one.
    pub from: PathBuf,
    /// The models (`provider/model`): one at a time is that of all members.
    pub models: Vec<String>,
    /// Use only the first N items of each task; all if `None`.
    pub limit: Option<u32>,
    /// Seed of the first repeat; each further repeat adds one.
    pub seed: u64,
    /// Runs of each method.
    pub repeats: u32,
    /// What each method may use per item.
    pub equal: Option<Allowance>,
    /// Items of the pilot; if `None`, a tenth, but at least [`LEAST_PILOT`].
    pub pilot: Option<u32>,
    /// Whether each run is recomputed from its journal before it counts.
    pub replay: bool,
    /// Changes of the scenario. Relative paths in them start at `from`, too.
    pub edits: Vec<(String, Node)>,
    /// Whether questions are sent in batches, where the provider has them; if `None`, as the scenario says.
    pub batch: Option<bool>,
    /// The budget of all runs in this folder together, and of this process in seconds.
    pub budget: Budget,
    /// Whether workers share its runs.
    pub planned: bool,
}

impl ArenaRequest {
    /// Returns the request of some methods on one task, with one model, and nothing else.
    #[must_use]
    pub fn of(asked: Asked, methods: Vec<String>, task: PathBuf, model: String) -> ArenaRequest {
        ArenaRequest {
            asked,
            methods,
            members: None,
            rounds: None,
            tasks: vec![task],
            from: PathBuf::new(),
            models: vec![model],
            limit: None,
            seed: 1,
            repeats: 1,
            equal: None,
            pilot: None,
            replay: false,
            edits: Vec::new(),
            batch: None,
            budget: Budget::default(),
            planned: false,
        }
    }

    /// Returns the command that makes the comparison.
    #[must_use]
    pub fn command(&self, entrants: &[Entrant]) -> String {
        let verb = match self.asked {
            Asked::Eval => "polity eval --method",
            Asked::Compare => "polity compare",
        };
        let mut words = vec![verb.to_owned()];
        words.extend(self.methods_of(entrants).iter().map(|word| quoted(word)));
        words.extend(self.tasks.iter().map(|task| format!("--task {}", quoted(&task.display().to_string()))));
        words.extend(self.models.iter().map(|model| format!("--model {}", quoted(model))));
        words.push(format!("--seed {}", self.seed));
        let number = |flag: &str, value: Option<u32>| value.map(|value| format!("--{flag} {value}"));
        words.extend(number("agents", self.members));
        words.extend(number("rounds", self.rounds));
        words.extend(number("limit", self.limit));
        words.extend((self.repeats > 1).then(|| format!("--repeats {}", self.repeats)));
        words.extend(self.equal.map(|allowance| format!("--equal {}", allowance.flag())));
        words.extend(number("pilot", self.pilot));
        words.extend(self.replay.then(|| "--replay".to_owned()));
        words.extend(self.batch.map(|batch| format!("--batch={batch}")));
        words.extend(self.edits.iter().map(|edit| format!("-P {}", quoted(&as_text(edit)))));
        words.join(" ")
    }

    /// The methods as they were named, or, for all methods, their names.
    fn methods_of(&self, entrants: &[Entrant]) -> Vec<String> {
        match self.methods.as_slice() {
            [word] if word == ALL => entrants.iter().map(|entrant| entrant.label.clone()).collect(),
            words => words.to_vec(),
        }
    }

    /// Returns the name of a comparison's folder: `compare-TASK`, or `compare-TASK-and-others`.
    #[must_use]
    pub fn folder_name(&self) -> String {
        let first = self.tasks.first().map_or("task".into(), |task| task_name(task));
        let others = if self.tasks.len() > 1 { "-and-others" } else { "" };
        format!("compare-{first}{others}")
    }

    /// Returns the path of a task.
    pub(super) fn path_of(&self, task: &Path) -> PathBuf {
        self.from.join(task)
    }
}

/// An edit as the flag -P writes it.
pub(super) fn as_text((path, value): &(String, Node)) -> String {
    format!("{path}={}", value.to_json())
}

/// A method in the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    /// As it was named.
    pub word: String,
    /// Its label.
    pub label: String,
    /// The name of its folders, without the size of the team.
    pub folder: String,
}

/// `comparison.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    format: u32,
    asked: Asked,
    pub methods: Vec<Named>,
    members: Option<u32>,
    rounds: Option<u32>,
    /// As given; relative ones start at `from`.
    pub tasks: Vec<PathBuf>,
    /// The folder in which the command was given, from this one.
    from: PathBuf,
    pub models: Vec<String>,
    limit: Option<u32>,
    pub seed: u64,
    pub repeats: u32,
    /// As the flag writes it.
    equal: Option<String>,
    pilot: Option<u32>,
    replay: bool,
    /// As the flag -P writes them.
    set: Vec<String>,
    batch: Option<bool>,
    budget: Budget,
    /// Whether workers share its runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
}

impl Record {
    /// The record of a request for a comparison in the folder `out`.
    pub(super) fn of(request: &ArenaRequest, entrants: &[Entrant], out: &Path) -> Record {
        let words = request.methods_of(entrants);
        let named = |(word, entrant): (String, &Entrant)| Named {
            word,
            label: entrant.label.clone(),
            folder: entrant.folder.clone(),
        };
        Record {
            format: FORMAT,
            asked: request.asked,
            methods: words.into_iter().zip(entrants).map(named).collect(),
            members: request.members,
            rounds: request.rounds,
            tasks: request.tasks.clone(),
            from: from_there(out, &request.from),
            models: request.models.clone(),
            limit: request.limit,
            seed: request.seed,
            repeats: request.repeats,
            equal: request.equal.map(Allowance::flag),
            pilot: request.pilot,
            replay: request.replay,
            set: request.edits.iter().map(as_text).collect(),
            batch: request.batch,
            budget: request.budget.clone(),
            planned: request.planned,
        }
    }

    /// The record in a folder, if there is one.
    pub(super) fn there(disk: &dyn Disk, dir: &Path) -> Result<Option<Record>, DriveError> {
        is_comparison(disk, dir).then(|| Record::read(disk, dir)).transpose()
    }

    /// The first difference from the record in a folder, of all that determines the runs. Workers do not need to be given the same budget
    /// again: a higher one is in their ledger.
    pub(super) fn differs_from(&self, there: &Record) -> Option<String> {
        let determining = |record: &Record| {
            let record = Record { batch: None, budget: Budget::default(), planned: false, ..record.clone() };
            serde_json::to_value(record).unwrap_or_default()
        };
        difference(&as_read_back(&determining(there)), &as_read_back(&determining(self)))
    }

    /// Whether both have the same budget.
    pub(super) fn same_budget(&self, other: &Record) -> bool {
        self.budget == other.budget
    }

    /// The limits that differ from those in a folder.
    pub(super) fn raised_from(&self, there: &Record) -> Limits {
        fn new<T: PartialEq>(own: Option<T>, there: Option<T>) -> Option<T> {
            own.filter(|own| there.as_ref() != Some(own))
        }
        let (own, there) = (self.budget.run(), there.budget.run());
        Limits {
            cost_usd: new(own.cost_usd, there.cost_usd),
            tokens: new(own.tokens, there.tokens),
            calls: new(own.calls, there.calls),
            requests: new(own.requests, there.requests),
            tool_calls: new(own.tool_calls, there.tool_calls),
        }
    }

    /// What all runs may spend together, if that is limited.
    pub(super) fn limits(&self) -> Option<Limits> {
        Some(self.budget.run()).filter(Limits::any)
    }

    /// Reads the record of a comparison.
    ///
    /// Errors: [`DriveError::Folder`] if it is missing or cannot be read, [`DriveError::Disk`].
    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Record, DriveError> {
        let path = dir.join(COMPARISON_FILE);
        let bytes = disk.read(&path).map_err(DriveError::disk(&path))?;
        let wrong = |why: String| DriveError::Folder(format!("{} cannot be read: {why}", path.display()));
        let record: Record = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        match record.format {
            FORMAT => Ok(record),
            other => Err(wrong(format!("it has format {other}, but this build reads {FORMAT}"))),
        }
    }

    /// Writes the record into its folder, unless the same is there. The list of files names it first, so that no file is unlisted; the runs
    /// of another request leave the list.
    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<(), DriveError> {
        let path = dir.join(COMPARISON_FILE);
        let text = serde_json::to_string_pretty(self).map(|text| text + "\n");
        let text = text.map_err(|e| DriveError::Folder(format!("{} cannot be written: {e}", path.display())))?;
        if disk.exists(&path).map_err(DriveError::disk(&path))?
            && disk.read(&path).map_err(DriveError::disk(&path))? == text.as_bytes()
        {
            return Ok(());
        }
        // A damaged listing has no information on older files.
        let before = match Listing::read(disk, dir) {
            Err(DriveError::Folder(_)) => None,
            read => read?,
        };
        let before = before.unwrap_or_default();
        let mut listing = Listing::default();
        before.files().for_each(|file| listing.keep(file, &before));
        listing.add(COMPARISON_FILE, text.as_bytes());
        listing.write(disk, dir)?;
        write_atomically(disk, &path, text.as_bytes()).map_err(DriveError::disk(&path))
    }

    /// Returns the request that goes on with the comparison in the folder `dir`.
    ///
    /// Errors: [`DriveError::Folder`] for edits and allowances that cannot be read.
    pub(super) fn request(self, dir: &Path) -> Result<ArenaRequest, DriveError> {
        let wrong = |why: String| DriveError::Folder(format!("{}: {why}", dir.join(COMPARISON_FILE).display()));
        let edits = self.set.iter().map(|text| parse_edit(text).map_err(|error| wrong(error.to_string())));
        Ok(ArenaRequest {
            asked: self.asked,
            methods: self.methods.iter().map(|method| method.word.clone()).collect(),
            members: self.members,
            rounds: self.rounds,
            tasks: self.tasks,
            from: plainly(dir.join(self.from)),
            models: self.models,
            limit: self.limit,
            seed: self.seed,
            repeats: self.repeats,
            equal: self.equal.as_deref().map(Allowance::read).transpose().map_err(wrong)?,
            pilot: self.pilot,
            replay: self.replay,
            edits: edits.collect::<Result<_, _>>()?,
            batch: self.batch,
            budget: self.budget,
            planned: self.planned,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was() {
        let mut request = ArenaRequest::of(Asked::Compare, vec!["sc@8".into()], "data/x.jsonl".into(), "sim/a".into());
        request.equal = Some(Allowance::read("usd=0.01").unwrap());
        request.edits = ["settings.temperature=0.5", "items.answer=gold", "prices.\"a/b.c\"={input: 1.0, output: 2}"]
            .map(|text| parse_edit(text).unwrap())
            .into();
        request.budget.cost_usd = Some(5.0);
        let entrant = Entrant {
            label: "sc@8".into(),
            method: "self-consistency",
            members: 8,
            sized: true,
            rounds: 1,
            set: Vec::new(),
            folder: "self-consistency".into(),
        };
        let record = Record::of(&request, std::slice::from_ref(&entrant), Path::new("out"));
        let again = record.clone().request(Path::new("out")).unwrap();
        assert_eq!(Record::of(&again, &[entrant], Path::new("out")), record);
        let json = |request: &ArenaRequest| {
            request.edits.iter().map(|(path, value)| (path.clone(), value.to_json())).collect::<Vec<_>>()
        };
        assert_eq!(json(&again), json(&request));
        assert_eq!(again.path_of(Path::new("data/x.jsonl")), Path::new("data/x.jsonl"));
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("plain=debate@3:show_reasons=false"), "plain=debate@3:show_reasons=false");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
