//! What is named in several runs, beside what was planted in them.

use super::Diagnosis;
use polity_kernel::failure::FailureMode;
use polity_kernel::method::PlantedFault;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The diagnosis of a run, and the faults that its scenario plants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosed {
    /// The run folder.
    pub run: PathBuf,
    /// The faults that were planted in the run.
    pub planted: Vec<PlantedFault>,
    /// What is found.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

impl Diagnosed {
    /// The items in which a mode is named.
    fn named(&self, mode: FailureMode) -> BTreeSet<u32> {
        self.diagnosis.symptoms.iter().filter(|symptom| symptom.mode == mode).map(|symptom| symptom.item).collect()
    }

    /// The items in which a mode is planted.
    fn planted(&self, mode: FailureMode) -> BTreeSet<u32> {
        let all = 0..self.diagnosis.items as u32;
        let of =
            |fault: &PlantedFault| if fault.items.is_empty() { all.clone().collect() } else { fault.items.clone() };
        self.planted.iter().filter(|fault| fault.mode == mode).flat_map(of).collect()
    }
}

/// How often a mode is named, where it is planted and where it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModeTally {
    /// The mode.
    pub mode: FailureMode,
    /// Its number.
    pub number: &'static str,
    /// Runs in which it is planted.
    pub planted_runs: usize,
    /// How many of these have an item in which it is planted and named.
    pub named_runs: usize,
    /// Items in which it is planted, in all runs.
    pub planted_items: usize,
    /// In how many of these it is named.
    pub named_items: usize,
    /// Runs with an item in which it is named, but not planted.
    pub runs_named_elsewhere: usize,
}

/// The tally of several runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of runs.
    pub runs: usize,
    /// Runs in which nothing is planted.
    pub clean_runs: usize,
    /// How many of these get no label.
    pub unlabelled_clean_runs: usize,
    /// All modes, in order.
    pub modes: Vec<ModeTally>,
}

impl Tally {
    /// Counts over runs.
    #[must_use]
    pub fn of(runs: &[Diagnosed]) -> Self {
        let clean = || runs.iter().filter(|run| run.planted.is_empty());
        Tally {
            runs: runs.len(),
            clean_runs: clean().count(),
            unlabelled_clean_runs: clean().filter(|run| run.diagnosis.symptoms.is_empty()).count(),
            modes: FailureMode::ALL.map(|mode| ModeTally::of(mode, runs)).into(),
        }
    }
}

impl ModeTally {
    fn of(mode: FailureMode, runs: &[Diagnosed]) -> Self {
        let mut tally = ModeTally {
            mode,
            number: mode.number(),
            planted_runs: 0,
            named_runs: 0,
            planted_items: 0,
            named_items: 0,
            runs_named_elsewhere: 0,
        };
        for run in runs {
            let (planted, named) = (run.planted(mode), run.named(mode));
            let found = planted.intersection(&named).count();
            tally.planted_runs += usize::from(!planted.is_empty());
            tally.named_runs += usize::from(found > 0);
            tally.planted_items += planted.len();
            tally.named_items += found;
            tally.runs_named_elsewhere += usize::from(!named.is_subset(&planted));
        }
        tally
    }
}
