//! Failure modes as several raters name them - the rules, a judge, people who labelled the items - and how far two of them agree.

use super::Diagnosed;
use polity_kernel::failure::FailureMode;
use polity_kernel::tree::nearest;
use polity_stats::agreement::cohen;
use polity_store::files::texts_from_bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The failure modes that a rater names. An item that it did not rate is absent; one without a failure has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// Who rates.
    pub rater: String,
    /// By run and item. A run is named by its folder below that of the sweep; alone it is empty.
    pub modes: BTreeMap<(String, u32), BTreeSet<FailureMode>>,
}

/// How far two raters agree, over the items that both have rated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The first.
    pub rater: String,
    /// The second.
    pub against: String,
    /// Number of items that both have rated.
    pub items: usize,
    /// The share of decisions in which they agree: one for each item and mode.
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
        let mut modes: BTreeMap<(String, u32), BTreeSet<FailureMode>> = BTreeMap::new();
        for run in runs {
            let name = Self::name_of(dir, &run.run);
            modes.extend(run.ended.iter().map(|item| ((name.clone(), *item), BTreeSet::new())));
            for symptom in &run.diagnosis.symptoms {
                modes.entry((name.clone(), symptom.item)).or_default().insert(symptom.mode);
            }
        }
        Ratings { rater: "rules".into(), modes }
    }

    /// The name of a run in ratings: its folder below `dir`.
    #[must_use]
    pub fn name_of(dir: &Path, run: &Path) -> String {
        let below = run.strip_prefix(dir).unwrap_or(run);
        below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Checks that every item rated here has ended, which `rules` know.
    ///
    /// # Errors
    /// Names the first item that has not.
    pub fn check(&self, rules: &Ratings) -> Result<(), String> {
        let Some((run, item)) = self.modes.keys().find(|place| !rules.modes.contains_key(*place)) else {
            return Ok(());
        };
        let runs: BTreeSet<&str> = rules.modes.keys().map(|(run, _)| run.as_str()).collect();
        if runs.contains(run.as_str()) {
            let of = if run.is_empty() { String::new() } else { format!(" of the run `{run}`") };
            return Err(format!("there is no item {item}{of} that has ended; items are numbered from 0"));
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

/// A labelled item in a JSON file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    run: String,
    item: u32,
    modes: Vec<String>,
}

/// Reads labels: a table with the columns `item` and `modes`, or a JSON list of objects with these keys (`.json`). In a table several modes
/// are separated by spaces. A mode is given by its number or its name; without one, the item has no failure. In a sweep there is a
/// column or key `run`, too.
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
    for (i, Entry { run, item, modes: named }) in entries.into_iter().enumerate() {
        let at = |why: String| format!("{file}: label {}: {why}", i + 1);
        let set: Result<BTreeSet<FailureMode>, String> = named.iter().map(String::as_str).map(mode).collect();
        if modes.insert((run, item), set.map_err(at)?).is_some() {
            return Err(format!("{file}: label {}: item {item} is labelled twice", i + 1));
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
    if let Some((name, _)) = table.columns().find(|(name, _)| !["run", "item", "modes"].contains(name)) {
        return Err(format!(
            "{file}: there is a column `{name}`; the columns are `item` and `modes`, in a sweep also `run`"
        ));
    }
    let column = |name: &str| {
        let found = table.columns().find(|(other, _)| *other == name).map(|(_, column)| column);
        found.ok_or_else(|| format!("{file}: the column `{name}` is missing"))
    };
    let (item, modes, run) = (column("item")?, column("modes")?, column("run").ok());
    let entry = |row: usize| {
        let cell = item.cell(row).to_string();
        let item = cell.trim().parse::<u32>();
        let item =
            item.map_err(|_| format!("{file}: label {}: `item` must be a whole number from 0, not `{cell}`", row + 1));
        let modes = modes.cell(row).to_string().split_whitespace().map(str::to_owned).collect();
        Ok(Entry { run: run.map_or(String::new(), |run| run.cell(row).to_string()), item: item?, modes })
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
            let modes = (0..).zip(named).map(|(item, modes)| ((String::new(), item), modes.iter().copied().collect()));
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
    fn labels_must_be_of_items_that_have_ended() {
        let rules =
            |run: &str| Ratings { rater: "rules".into(), modes: BTreeMap::from([((run.into(), 0), BTreeSet::new())]) };
        let of = |run: &str, item: u32| Ratings {
            rater: "labels".into(),
            modes: BTreeMap::from([((run.into(), item), BTreeSet::new())]),
        };
        assert_eq!(of("", 0).check(&rules("")), Ok(()));
        for (labels, rules, words) in [
            (of("", 1), rules(""), "no item 1 that has ended"),
            (of("a", 0), rules(""), "this is one run"),
            (of("", 0), rules("runs/a/1"), "this is a sweep"),
            (of("runs/a/2", 0), rules("runs/a/1"), "did you mean `runs/a/1`?"),
        ] {
            let why = labels.check(&rules).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
