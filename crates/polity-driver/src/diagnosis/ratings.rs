//! Failure modes as several raters name them - the rules, a judge, people who labelled the items - and how far two of them agree.

use super::Diagnosed;
use polity_kernel::failure::FailureMode;
use polity_kernel::population::Column;
use polity_kernel::tree::nearest;
use polity_stats::agreement::cohen;
use polity_store::files::texts_from_bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// What a rater rates: an item of an evaluation, or an agent of a society with all that it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// An item, from 0.
    Item(u32),
    /// An agent, from 0.
    Agent(u32),
}

impl Subject {
    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Subject::Item(number) | Subject::Agent(number) => number,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Item(number) => write!(f, "item {number}"),
            Subject::Agent(number) => write!(f, "agent {number}"),
        }
    }
}

/// The failure modes that a rater names. An item or agent that it did not rate is absent; one without a failure has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// Who rates.
    pub rater: String,
    /// By run and subject. A run is named by its folder below that of the sweep; alone it is empty.
    pub modes: BTreeMap<(String, Subject), BTreeSet<FailureMode>>,
}

/// How far two raters agree, over the items or agents that both have rated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The first.
    pub rater: String,
    /// The second.
    pub against: String,
    /// Number of items or agents that both have rated.
    pub items: usize,
    /// The share of decisions in which they agree: one for each of them and each mode.
    pub agreement: Option<f64>,
    /// Cohen's kappa of these decisions.
    pub kappa: Option<f64>,
    /// All modes, in order.
    pub modes: Vec<ModeAgreement>,
}

/// How far two raters agree about a mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeAgreement {
    /// The mode.
    pub mode: FailureMode,
    /// Its number.
    pub number: &'static str,
    /// Items in which both name it.
    pub both: usize,
    /// Items in which only the first names it.
    pub first: usize,
    /// Items in which only the second names it.
    pub second: usize,
    /// Cohen's kappa. `None` if the agreement expected by chance is 1: both name it in no item, or in every one.
    pub kappa: Option<f64>,
}

impl Agreement {
    /// Compares two raters.
    #[must_use]
    pub fn of(a: &Ratings, b: &Ratings) -> Self {
        let rated: Vec<(&BTreeSet<FailureMode>, &BTreeSet<FailureMode>)> =
            a.modes.iter().filter_map(|(item, modes)| Some((modes, b.modes.get(item)?))).collect();
        let of_mode = |mode: FailureMode| -> Vec<(bool, bool)> {
            rated.iter().map(|(a, b)| (a.contains(&mode), b.contains(&mode))).collect()
        };
        let all: Vec<(bool, bool)> = FailureMode::ALL.into_iter().flat_map(of_mode).collect();
        let agreed = all.iter().filter(|(a, b)| a == b).count();
        let modes = FailureMode::ALL.map(|mode| {
            let pairs = of_mode(mode);
            let count = |wanted: (bool, bool)| pairs.iter().filter(|pair| **pair == wanted).count();
            ModeAgreement {
                mode,
                number: mode.number(),
                both: count((true, true)),
                first: count((true, false)),
                second: count((false, true)),
                kappa: cohen(&pairs),
            }
        });
        Agreement {
            rater: a.rater.clone(),
            against: b.rater.clone(),
            items: rated.len(),
            agreement: (!all.is_empty()).then(|| agreed as f64 / all.len() as f64),
            kappa: cohen(&all),
            modes: modes.into(),
        }
    }
}

impl Ratings {
    /// The ratings of the rules in these runs. `dir`: the folder that was asked for.
    #[must_use]
    pub fn of_rules(dir: &Path, runs: &[Diagnosed]) -> Self {
        let mut modes: BTreeMap<(String, Subject), BTreeSet<FailureMode>> = BTreeMap::new();
        for run in runs {
            let name = Self::name_of(dir, &run.run);
            modes.extend(run.ended.iter().map(|item| ((name.clone(), Subject::Item(*item)), BTreeSet::new())));
            for symptom in &run.diagnosis.symptoms {
                modes.entry((name.clone(), Subject::Item(symptom.item))).or_default().insert(symptom.mode);
            }
        }
        Ratings { rater: "rules".into(), modes }
    }

    /// Returns what is rated.
    #[must_use]
    pub fn subjects(&self) -> BTreeSet<(String, Subject)> {
        self.modes.keys().cloned().collect()
    }

    /// The name of a run in ratings: its folder below `dir`.
    #[must_use]
    pub fn name_of(dir: &Path, run: &Path) -> String {
        let below = run.strip_prefix(dir).unwrap_or(run);
        below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Checks that everything rated here can be rated.
    ///
    /// # Errors
    /// Names the first subject that is not among `known`.
    pub fn check(&self, known: &BTreeSet<(String, Subject)>) -> Result<(), String> {
        let Some((run, subject)) = self.modes.keys().find(|place| !known.contains(*place)) else {
            return Ok(());
        };
        let runs: BTreeSet<&str> = known.iter().map(|(run, _)| run.as_str()).collect();
        if runs.contains(run.as_str()) {
            let of = if run.is_empty() { String::new() } else { format!(" of the run `{run}`") };
            return Err(match (subject, known.first()) {
                (Subject::Agent(_), Some((_, Subject::Item(_)))) => {
                    "this is an evaluation; its labels need a column `item`, not `agent`".into()
                }
                (Subject::Item(_), Some((_, Subject::Agent(_)))) => {
                    "this is a society; its labels need a column `agent`, not `item`".into()
                }
                (Subject::Item(_), _) => format!("there is no {subject}{of} that has ended; items are numbered from 0"),
                (Subject::Agent(_), _) => {
                    format!("there is no {subject}{of} that a model was asked for; agents are numbered from 0")
                }
            });
        }
        let near = nearest(run, runs.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        match runs.contains("") {
            true => {
                Err(format!("`run` is `{run}`, but this is one run; leave `run` out, or name the folder of the sweep"))
            }
            false if run.is_empty() => {
                Err("this is a sweep; each label needs its `run`, for instance `runs/clean/1`".into())
            }
            false => Err(format!("there is no run `{run}`{near}")),
        }
    }
}

/// A label in a JSON file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    run: String,
    item: Option<u32>,
    agent: Option<u32>,
    modes: Vec<String>,
}

impl Entry {
    fn subject(&self) -> Result<Subject, String> {
        match (self.item, self.agent) {
            (Some(item), None) => Ok(Subject::Item(item)),
            (None, Some(agent)) => Ok(Subject::Agent(agent)),
            _ => Err("a label needs an `item`, or in a society an `agent`, and not both".into()),
        }
    }
}

/// Reads labels: a table with the columns `item` and `modes`, or a JSON list of objects with these keys (`.json`). In a table several modes
/// are separated by spaces. A mode is given by its number or its name; without one, the item has no failure. For a society the column or
/// key is `agent` instead of `item`. In a sweep there is a column or key `run`, too.
///
/// # Errors
/// Names the file and the row: an unreadable file, a missing column, an unknown mode, an item that is labelled twice, no items.
pub fn read_labels(path: &Path, bytes: &[u8]) -> Result<Ratings, String> {
    let file = path.display();
    let entries = match path.extension().is_some_and(|ending| ending == "json") {
        true => serde_json::from_slice(bytes).map_err(|error| format!("{file}: {error}"))?,
        false => rows(path, bytes)?,
    };
    let mut modes = BTreeMap::new();
    for (i, entry) in entries.into_iter().enumerate() {
        let at = |why: String| format!("{file}: label {}: {why}", i + 1);
        let subject = entry.subject().map_err(at)?;
        let set: Result<BTreeSet<FailureMode>, String> = entry.modes.iter().map(String::as_str).map(mode).collect();
        if modes.insert((entry.run, subject), set.map_err(at)?).is_some() {
            return Err(at(format!("{subject} is labelled twice")));
        }
    }
    match modes.is_empty() {
        true => Err(format!("{file}: there are no labels")),
        false => Ok(Ratings { rater: "labels".into(), modes }),
    }
}

/// Reads a table of labels.
fn rows(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let table = texts_from_bytes(path, bytes).map_err(|error| error.to_string())?;
    let file = path.display();
    if let Some((name, _)) = table.columns().find(|(name, _)| !["run", "item", "agent", "modes"].contains(name)) {
        return Err(format!(
            "{file}: there is a column `{name}`; the columns are `item` (in a society `agent`) and `modes`, in a sweep also `run`"
        ));
    }
    let column = |name: &str| table.columns().find(|(other, _)| *other == name).map(|(_, column)| column);
    let missing = |name: &str| format!("{file}: the column `{name}` is missing");
    let (agent, modes, run) = (column("agent"), column("modes").ok_or_else(|| missing("modes"))?, column("run"));
    let item = column("item");
    if agent.is_none() && item.is_none() {
        return Err(missing("item"));
    }
    let entry = |row: usize| {
        let number = |name: &str, column: Option<&Column>| {
            let Some(cell) = column.map(|column| column.cell(row).to_string()) else { return Ok(None) };
            let wrong = || format!("{file}: label {}: `{name}` must be a whole number from 0, not `{cell}`", row + 1);
            cell.trim().parse::<u32>().map(Some).map_err(|_| wrong())
        };
        Ok(Entry {
            run: run.map_or(String::new(), |run| run.cell(row).to_string()),
            item: number("item", item)?,
            agent: number("agent", agent)?,
            modes: modes.cell(row).to_string().split_whitespace().map(str::to_owned).collect(),
        })
    };
    (0..table.rows()).map(entry).collect()
}

/// Returns the mode of this number or name.
fn mode(text: &str) -> Result<FailureMode, String> {
    let found = FailureMode::ALL.into_iter().find(|mode| mode.number() == text || mode.name() == text);
    found.ok_or_else(|| {
        let near = nearest(text, FailureMode::ALL.map(FailureMode::name));
        let near = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        format!("there is no failure mode `{text}`{near}. Modes are given by number (1.3) or name (step-repetition)")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn labels(name: &str, text: &str) -> Result<Ratings, String> {
        read_labels(Path::new(name), text.as_bytes())
    }

    #[test]
    fn tables_and_json_are_read_alike() {
        let table = labels("l.csv", "item,modes\n0,1.3 task-derailment\n2,\n").unwrap();
        let json = labels("l.json", r#"[{"item": 0, "modes": ["2.3", "step-repetition"]}, {"item": 2, "modes": []}]"#);
        assert_eq!(table, json.unwrap());
        assert_eq!(table.modes.len(), 2);
        let table = labels("l.csv", "agent,modes\n4,1.1\n").unwrap();
        assert_eq!(table, labels("l.json", r#"[{"agent": 4, "modes": ["1.1"]}]"#).unwrap());
        assert!(table.modes.contains_key(&(String::new(), Subject::Agent(4))));
    }

    #[test]
    fn wrong_labels_are_refused_in_words() {
        for (text, words) in [
            ("item,modes\n0,step-repetitions\n", "(did you mean `step-repetition`?)"),
            ("item,modes\n0,1.9\n", "label 1: there is no failure mode `1.9`"),
            ("item,modes\nx,1.3\n", "label 1: `item` must be a whole number from 0, not `x`"),
            ("item,modes\n0,1.3\n0,\n", "label 2: item 0 is labelled twice"),
            ("item,mode\n0,1.3\n", "there is a column `mode`"),
            ("item\n0\n", "the column `modes` is missing"),
            ("modes\n1.3\n", "the column `item` is missing"),
            ("item,agent,modes\n0,0,1.3\n", "label 1: a label needs an `item`"),
        ] {
            let why = labels("l.csv", text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        assert!(labels("l.json", "[]").unwrap_err().contains("there are no labels"));
        assert!(labels("l.json", r#"[{"item": 0}]"#).unwrap_err().contains("modes"));
    }

    #[test]
    fn agreement_is_counted_by_mode_and_over_all() {
        let ratings = |rater: &str, named: [&[FailureMode]; 4]| {
            let modes = (0..)
                .zip(named)
                .map(|(item, modes)| ((String::new(), Subject::Item(item)), modes.iter().copied().collect()));
            Ratings { rater: rater.into(), modes: modes.collect() }
        };
        let (repeated, derailed) = (FailureMode::StepRepetition, FailureMode::TaskDerailment);
        let a = ratings("a", [&[repeated], &[repeated], &[], &[derailed]]);
        let b = ratings("b", [&[repeated], &[], &[], &[derailed]]);
        let found = Agreement::of(&a, &b);
        let of = |mode: FailureMode| found.modes.iter().find(|it| it.mode == mode).unwrap();
        // Three of four agree; by chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2 would.
        let (repeated, derailed) = (of(repeated), of(derailed));
        assert_eq!((repeated.both, repeated.first, repeated.second, repeated.kappa), (1, 1, 0, Some(0.5)));
        assert_eq!((derailed.both, derailed.kappa), (1, Some(1.0)));
        assert_eq!(of(FailureMode::IncorrectVerification).kappa, None);
        // 55 of 56 decisions agree.
        assert_eq!((found.items, found.agreement), (4, Some(55.0 / 56.0)));
        let chance = (3.0 * 2.0 + 53.0 * 54.0) / (56.0 * 56.0);
        assert!((found.kappa.unwrap() - (55.0 / 56.0 - chance) / (1.0 - chance)).abs() < 1e-12);
    }

    #[test]
    fn labels_must_be_of_what_can_be_rated() {
        use Subject::{Agent, Item};
        let known = |run: &str, subject: Subject| BTreeSet::from([(run.to_owned(), subject)]);
        let of = |run: &str, subject: Subject| Ratings {
            rater: "labels".into(),
            modes: BTreeMap::from([((run.into(), subject), BTreeSet::new())]),
        };
        assert_eq!(of("", Item(0)).check(&known("", Item(0))), Ok(()));
        for (labels, known, words) in [
            (of("", Item(1)), known("", Item(0)), "no item 1 that has ended"),
            (of("", Agent(1)), known("", Agent(0)), "no agent 1 that a model was asked for"),
            (of("", Agent(0)), known("", Item(0)), "need a column `item`"),
            (of("", Item(0)), known("", Agent(0)), "need a column `agent`"),
            (of("a", Item(0)), known("", Item(0)), "this is one run"),
            (of("", Item(0)), known("runs/a/1", Item(0)), "this is a sweep"),
            (of("runs/a/2", Item(0)), known("runs/a/1", Item(0)), "did you mean `runs/a/1`?"),
        ] {
            let why = labels.check(&known).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
