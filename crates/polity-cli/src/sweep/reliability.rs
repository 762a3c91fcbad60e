//! The report's sections on reliability: how far the differences of a sweep depend on its seeds, and whether its runs are what they
//! should be.

use super::columns::{Columns, Contrast, numbers, texts};
use polity_arena::report::{DataTable, Section, measured};
use polity_driver::results;
use polity_driver::sweep::SweepManifest;
use polity_kernel::scenario::{Arm, Design};
use polity_stats::replicates::{POWER, deviation, seeds_needed};
use polity_stats::{FEW, mean};
use polity_store::disk::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum runs of a sweep whose values are read for this.
const MOST_RUNS: usize = 100_000;
/// Maximum runs whose questions are counted, since their folders are opened for that.
const MOST_OPENED: usize = 2_000;

/// What the runs of a sweep tell, by arm and seed in the order of the design.
pub(super) struct Evidence {
    /// By metric: the values; missing where a run has none.
    pub(super) values: BTreeMap<String, Vec<Vec<Option<f64>>>>,
    digests: Vec<Vec<String>>,
    /// Questions to models, and those that ended in their default or without an answer, by arm.
    questions: Option<Vec<(f64, f64)>>,
}

impl Evidence {
    /// Reads it from the table of runs and their folders; `None` for very many runs.
    pub(super) fn of(disk: &dyn Disk, dir: &Path, manifest: &SweepManifest, runs: &Columns) -> Option<Evidence> {
        let design = &manifest.design;
        if design.runs() > MOST_RUNS {
            return None;
        }
        let places = design.arms.iter().enumerate().flat_map(|(arm, of)| {
            let seeds = of.seeds.iter().enumerate();
            // As a number of the table reads.
            seeds.map(move |(at, seed)| ((of.name.clone(), (*seed as f64).to_string()), (arm, at)))
        });
        let places: BTreeMap<(String, String), (usize, usize)> = places.collect();
        let none = || design.arms.iter().map(|arm| vec![None; arm.seeds.len()]).collect::<Vec<_>>();
        let mut digests: Vec<Vec<String>> =
            design.arms.iter().map(|arm| vec![String::new(); arm.seeds.len()]).collect();
        let mut values: BTreeMap<String, Vec<Vec<Option<f64>>>> = BTreeMap::new();
        let [arms, seeds, metrics, found] = ["arm", "seed", "metric", "digest"].map(|name| texts(runs, name));
        let numbers = numbers(runs, "value");
        for (row, metric) in metrics.into_iter().enumerate() {
            let text = |column: &[Option<String>]| column.get(row).cloned().flatten();
            let place = text(&arms).zip(text(&seeds)).and_then(|key| places.get(&key));
            let Some(((arm, at), metric)) = place.copied().zip(metric) else { continue };
            values.entry(metric).or_insert_with(none)[arm][at] = numbers.get(row).copied().flatten();
            digests[arm][at] = text(&found).unwrap_or_default();
        }
        let questions = (!manifest.models.is_empty() && design.runs() <= MOST_OPENED)
            .then(|| questions(disk, dir, manifest))
            .flatten();
        Some(Evidence { values, digests, questions })
    }
}

/// Counts the questions of all runs, by arm; `None` if a run cannot be read any more.
fn questions(disk: &dyn Disk, dir: &Path, manifest: &SweepManifest) -> Option<Vec<(f64, f64)>> {
    let of_arm = |(entry, arm): (&polity_driver::sweep::ArmEntry, &Arm)| {
        let (mut asked, mut unanswered) = (0.0, 0.0);
        for seed in &arm.seeds {
            let folder = dir.join("runs").join(&entry.folder).join(seed.to_string());
            let run = results::of_run(disk, &folder).ok()?;
            let health = run.tables.closed("health", &["measure", "value"], usize::MAX).ok()?;
            for (measure, value) in texts(&health, "measure").iter().zip(numbers(&health, "value")) {
                match measure.as_deref() {
                    Some("questions") => asked += value.unwrap_or(0.0),
                    Some("unanswered") => unanswered += value.unwrap_or(0.0),
                    _ => {}
                }
            }
        }
        Some((asked, unanswered))
    };
    manifest.arms.iter().zip(&manifest.design.arms).map(of_arm).collect()
}

/// The arms that a difference adds, those that it subtracts, and how many times the difference of their means it is.
fn sides(design: &Design, of: &Contrast) -> Option<(Vec<usize>, Vec<usize>, f64)> {
    let Some(name) = &of.factor else {
        let arm = |name: &str| design.arms.iter().position(|arm| arm.name == name);
        return Some((vec![arm(&of.level)?], vec![arm(&of.reference)?], 1.0));
    };
    // The position of the factor, of its level and of the reference.
    let place = |name: &str, level: &str, reference: &str| {
        let at = design.factors.iter().position(|factor| factor.name == name)?;
        let position = |label: &str| design.factors[at].levels.iter().position(|level| level == label);
        Some((at, position(level)?, position(reference)?))
    };
    let (at, level, reference) = place(name, &of.level, &of.reference)?;
    let side = |arm: &Arm, (at, level, reference): (usize, usize, usize)| match arm.levels.get(at) {
        Some(own) if *own == level => Some(true),
        Some(own) if *own == reference => Some(false),
        _ => None,
    };
    let arms = |wanted: bool, of: &dyn Fn(&Arm) -> Option<bool>| {
        let arms = design.arms.iter().enumerate().filter(|(_, arm)| of(arm) == Some(wanted));
        arms.map(|(arm, _)| arm).collect::<Vec<_>>()
    };
    let own = (at, level, reference);
    let Some([other, with_level, with_reference]) = &of.with else {
        let of = |arm: &Arm| side(arm, own);
        return Some((arms(true, &of), arms(false, &of), 1.0));
    };
    let other = place(other, with_level, with_reference)?;
    let equal = |arm: &Arm| Some(side(arm, own)? == side(arm, other)?);
    Some((arms(true, &equal), arms(false, &equal), 2.0))
}

/// How far a difference depends on the seeds.
#[derive(Debug, PartialEq)]
struct Stability {
    /// Seeds whose own difference has the sign of the mean, and all that have one; only of paired differences.
    same_sign: Option<(usize, usize)>,
    /// Seeds that would be needed for a difference of this size.
    needed: Option<u32>,
    /// Seeds at which both arms have the same digest; only of two arms with common seeds.
    equal: Option<(usize, usize)>,
}

fn stability(design: &Design, of: &Contrast, evidence: &Evidence) -> Option<Stability> {
    let (plus, minus, times) = sides(design, of)?;
    let values = evidence.values.get(&of.metric)?;
    if !design.common_random_numbers {
        // The variance of one seed's contribution to the difference.
        let share = |arms: &[usize]| -> Option<f64> {
            let k = arms.len() as f64;
            let one = |arm: &usize| deviation(&values[*arm].iter().flatten().copied().collect::<Vec<_>>());
            Some(arms.iter().map(one).collect::<Option<Vec<f64>>>()?.iter().map(|sd| sd * sd / (k * k)).sum())
        };
        let needed =
            share(&plus).zip(share(&minus)).and_then(|(a, b)| seeds_needed(of.difference, times * (a + b).sqrt()));
        return Some(Stability { same_sign: None, needed, equal: None });
    }
    let seeds = values.first().map_or(0, Vec::len);
    let level = |arms: &[usize], seed: usize| {
        mean(&arms.iter().map(|arm| values[*arm].get(seed).copied().flatten()).collect::<Option<Vec<f64>>>()?)
    };
    let pairs: Vec<f64> =
        (0..seeds).filter_map(|seed| Some(times * (level(&plus, seed)? - level(&minus, seed)?))).collect();
    let same = pairs.iter().filter(|pair| **pair * of.difference > 0.0).count();
    let equal = match (plus.as_slice(), minus.as_slice()) {
        ([plus], [minus]) => {
            let both = evidence.digests[*plus].iter().zip(&evidence.digests[*minus]);
            Some((both.filter(|(plus, minus)| plus == minus).count(), seeds))
        }
        _ => None,
    };
    let needed = deviation(&pairs).and_then(|deviation| seeds_needed(of.difference, deviation));
    Some(Stability { same_sign: Some((same, pairs.len())), needed, equal })
}

/// The sections of the report.
pub(super) fn sections(evidence: &Evidence, manifest: &SweepManifest, contrasts: &[Contrast]) -> Vec<Section> {
    let mut sections = Vec::new();
    sections.extend(differences(evidence, &manifest.design, contrasts));
    sections.push(runs(evidence, manifest));
    sections
}

fn differences(evidence: &Evidence, design: &Design, contrasts: &[Contrast]) -> Option<Section> {
    let of = |part: Option<(usize, usize)>| part.map_or("–".into(), |(some, all)| format!("{some} of {all}"));
    let row = |row: &Contrast| {
        let found = stability(design, row, evidence)?;
        let shown = |value: f64| measured(value, row.interval);
        let needed = match (row.verdict.as_str(), found.needed) {
            ("stable", _) => "enough".into(),
            (_, Some(needed)) => needed.to_string(),
            (_, None) => "–".into(),
        };
        Some(vec![
            row.name(),
            row.metric.clone(),
            row.interval.map_or("–".into(), |(low, high)| format!("{} to {}", shown(low), shown(high))),
            row.verdict.clone(),
            row.n.clone(),
            of(found.same_sign),
            needed,
            of(found.equal),
        ])
    };
    let rows: Vec<Vec<String>> = contrasts.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let text = format!(
        "Would other seeds show the same? Same sign: the seeds whose own difference has the sign of the mean. Seeds needed: with so many, a difference of \
         the measured size and spread would be found stable with a probability of {:.0} %, at least {FEW}; where the difference is stable, the seeds are enough. \
         The figure is rough: it takes the measured size for the true one. Equal runs: seeds at which both arms have the same digest, so that nothing at \
         all differs between them. A placebo should not be stable.",
        100.0 * POWER
    );
    let columns =
        ["difference of", "metric", "95 % interval", "verdict", "seeds", "same sign", "seeds needed", "equal runs"];
    let table = DataTable {
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        caption: "What each difference owes to its seeds.".into(),
        links: Vec::new(),
    };
    Some(Section { title: "Reliability".into(), text: Some(text), table: Some(table), ..Section::default() })
}

fn runs(evidence: &Evidence, manifest: &SweepManifest) -> Section {
    let different = |digests: &Vec<String>| digests.iter().collect::<BTreeSet<_>>().len();
    let row = |(at, arm): (usize, &Arm)| {
        let digests = &evidence.digests[at];
        let mut row = vec![arm.name.clone(), digests.len().to_string(), different(digests).to_string()];
        if let Some((asked, unanswered)) = evidence.questions.as_ref().and_then(|of| of.get(at)) {
            let share = if *asked > 0.0 { format!("{:.2}", 100.0 * unanswered / asked) } else { "–".into() };
            row.extend([format!("{asked}"), format!("{unanswered}"), share]);
        }
        row
    };
    let rows = manifest.design.arms.iter().enumerate().map(row).collect();
    let mut columns = vec!["arm", "runs", "different digests"];
    if evidence.questions.is_some() {
        columns.extend(["questions", "default or none", "default or none, %"]);
    }
    let alike: Vec<&str> = manifest
        .design
        .arms
        .iter()
        .zip(&evidence.digests)
        .filter(|(_, digests)| digests.len() > 1 && different(digests) < digests.len())
        .map(|(arm, _)| arm.name.as_str())
        .collect();
    let alike = match alike.as_slice() {
        [] => "All runs of an arm differ, so its seeds are replicates.".to_owned(),
        arms => format!(
            "Some seeds of {} give the very same run: these are no replicates, and the intervals are too narrow.",
            arms.join(", ")
        ),
    };
    let asked = match (manifest.models.is_empty(), &evidence.questions) {
        (true, _) => " No model was asked.",
        (false, None) => " Questions to models were not counted.",
        (false, Some(_)) => {
            " A question ends in its default, or in none, when no answer of the model fits: then it is not the model that decided."
        }
    };
    let text = format!(
        "{alike}{asked} The folder does not say whether the runs were replayed: “polity replay” on a run's folder computes it again and compares the digest of \
         every round."
    );
    let table = DataTable {
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows,
        caption: "Runs by arm.".into(),
        links: Vec::new(),
    };
    Section { title: "Reliability of the runs".into(), text: Some(text), table: Some(table), ..Section::default() }
}
