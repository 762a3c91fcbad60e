//! What is named in several runs, beside what was planted in them.

use super::Diagnosis;
use polity_kernel::failure::{DiscussionFault, FailureMode};
use polity_kernel::method::{PlantedFault, PlantedMode};
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
    /// The items that have ended.
    #[serde(skip)]
    pub ended: BTreeSet<u32>,
    /// What is found.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

impl Diagnosed {
    /// The items in which a mode is named.
    fn named(&self, mode: FailureMode) -> BTreeSet<u32> {
        self.diagnosis.symptoms.iter().filter(|symptom| symptom.mode == mode).map(|symptom| symptom.item).collect()
    }

    /// The items in which a mode is planted, with the round from which on it is; placebos are left out.
    fn planted(&self, mode: PlantedMode) -> BTreeSet<(u32, u32)> {
        let all = 0..self.diagnosis.items as u32;
        let of = |fault: &PlantedFault| -> Vec<(u32, u32)> {
            let items = if fault.items.is_empty() { all.clone().collect() } else { fault.items.clone() };
            items.into_iter().map(|item| (item, fault.turn)).collect()
        };
        let real = self.planted.iter().filter(|fault| fault.mode == mode && !fault.placebo);
        real.flat_map(of).collect()
    }

    /// Whether a fault of a discussion, or its placebo, is planted.
    fn disturbed(&self, placebo: bool) -> bool {
        let of_discussions = |fault: &&PlantedFault| matches!(fault.mode, PlantedMode::Discussion(_));
        self.planted.iter().filter(of_discussions).any(|fault| fault.placebo == placebo)
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

/// How often a fault of a discussion is flagged, at the turn from which on it is planted and elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TurnTally {
    /// The fault.
    pub fault: DiscussionFault,
    /// Runs in which it is planted.
    pub planted_runs: usize,
    /// How many of these have an item in which it is flagged at its turn.
    pub flagged_runs: usize,
    /// Items in which it is planted, in all runs.
    pub planted_items: usize,
    /// In how many of these it is flagged at its turn.
    pub flagged_items: usize,
    /// How often it is flagged, in all runs, items and turns. The share of `flagged_items` in these is its precision.
    pub flags: usize,
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
    /// Runs in which no fault of a discussion is planted, and no placebo of one.
    pub quiet_runs: usize,
    /// How many of these get no flag.
    pub unflagged_quiet_runs: usize,
    /// Runs in which only placebos of such faults are planted.
    pub placebo_runs: usize,
    /// How many of these get no flag.
    pub unflagged_placebo_runs: usize,
    /// All faults of discussions, in order.
    pub turns: Vec<TurnTally>,
}

impl Tally {
    /// Counts over runs.
    #[must_use]
    pub fn of(runs: &[Diagnosed]) -> Self {
        let clean = || runs.iter().filter(|run| run.planted.is_empty());
        let quiet = || runs.iter().filter(|run| !run.disturbed(false) && !run.disturbed(true));
        let placebo = || runs.iter().filter(|run| !run.disturbed(false) && run.disturbed(true));
        let unflagged = |run: &&Diagnosed| run.diagnosis.turnings.is_empty();
        Tally {
            runs: runs.len(),
            clean_runs: clean().count(),
            unlabelled_clean_runs: clean().filter(|run| run.diagnosis.symptoms.is_empty()).count(),
            modes: FailureMode::ALL.map(|mode| ModeTally::of(mode, runs)).into(),
            quiet_runs: quiet().count(),
            unflagged_quiet_runs: quiet().filter(unflagged).count(),
            placebo_runs: placebo().count(),
            unflagged_placebo_runs: placebo().filter(unflagged).count(),
            turns: DiscussionFault::ALL.map(|fault| TurnTally::of(fault, runs)).into(),
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
            let planted: BTreeSet<u32> =
                run.planted(PlantedMode::Failure(mode)).into_iter().map(|(item, _)| item).collect();
            let named = run.named(mode);
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

impl TurnTally {
    fn of(fault: DiscussionFault, runs: &[Diagnosed]) -> Self {
        let mut tally =
            TurnTally { fault, planted_runs: 0, flagged_runs: 0, planted_items: 0, flagged_items: 0, flags: 0 };
        for run in runs {
            let planted = run.planted(PlantedMode::Discussion(fault));
            let flags = run.diagnosis.turnings.iter().filter(|turning| turning.fault == fault);
            let flagged: BTreeSet<(u32, u32)> = flags.map(|turning| (turning.item, turning.turn)).collect();
            let found = planted.intersection(&flagged).count();
            tally.planted_runs += usize::from(!planted.is_empty());
            tally.flagged_runs += usize::from(found > 0);
            tally.planted_items += planted.len();
            tally.flagged_items += found;
            tally.flags += flagged.len();
        }
        tally
    }
}
