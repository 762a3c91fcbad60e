//! The contrasts of a sweep: arms against the baseline, main effects, interactions of two factors.

use super::results::Values;
use polity_kernel::scenario::{Arm, Design, Factor, Intervals, Until};
use polity_stats::{self as stats, Estimate, Verdict, holm, welch_tested};
use polity_store::tables::{Batch, Column, ColumnSpec, Kind, TableSpec};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// An arm minus the baseline.
pub(super) const ARM: &str = "arm";
const MAIN_EFFECT: &str = "main effect";
const INTERACTION: &str = "interaction";

/// A difference between arms, or between levels of a factor, or between such differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContrastRow {
    /// `arm`: an arm minus the baseline; `main effect`: the arms with a level minus those with the factor's first level; `interaction`:
    /// this difference at a level of another factor minus that at the other factor's first level.
    pub contrast: &'static str,
    /// The factor of a main effect or an interaction.
    pub factor: Option<String>,
    /// The arm, or the level.
    pub level: String,
    /// What it is compared with.
    pub reference: String,
    /// The other factor of an interaction.
    pub with_factor: Option<String>,
    /// Its level.
    pub with_level: Option<String>,
    /// The level that it is compared with.
    pub with_reference: Option<String>,
    /// The metric.
    pub metric: String,
    /// Difference of the means.
    pub difference: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Number of seeds (if not paired, of the arm with the fewest).
    pub n: usize,
    /// Whether it was computed seed by seed.
    pub paired: bool,
    /// Two-sided p value of no difference.
    pub p: Option<f64>,
    /// The same after Holm's correction for all contrasts of this kind and metric.
    pub p_holm: Option<f64>,
    /// `stable` if the interval excludes 0 and the corrected p value is below 0.05, `not after Holm` if only the former holds, `seed noise` if
    /// the interval contains 0, `the same` if the difference is 0 in every run, `unknown` with too few seeds.
    pub verdict: Verdict,
    /// In a fractional design, the effects that it cannot be told apart from.
    pub aliases: Option<String>,
}

/// Two groups of arms whose means are compared.
struct Comparison<'a> {
    contrast: &'static str,
    factor: Option<&'a str>,
    level: &'a str,
    reference: &'a str,
    /// Another factor, its level, and that level's reference.
    with: Option<[&'a str; 3]>,
    plus: Vec<usize>,
    minus: Vec<usize>,
    /// The contrast is so many times the difference of the groups' means.
    times: f64,
    aliases: Option<String>,
}

/// The aliases of an effect, each as the names of its factors; `None` if there are none.
fn aliases(design: &Design, effect: &[&str]) -> Option<Vec<Vec<String>>> {
    design.fraction.as_ref().map(|fraction| fraction.aliases(effect)).filter(|aliases| !aliases.is_empty())
}

fn as_text(aliases: &[Vec<String>]) -> String {
    aliases.iter().map(|names| names.join(":")).collect::<Vec<_>>().join(", ")
}

/// Every arm against the baseline.
fn against_baseline(design: &Design) -> Vec<Comparison<'_>> {
    let Some(baseline) = design.arms.get(design.baseline).filter(|_| design.compares_arms()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (at, arm) in design.arms.iter().enumerate().filter(|(at, _)| *at != design.baseline) {
        all.push(Comparison {
            contrast: ARM,
            factor: None,
            level: &arm.name,
            reference: &baseline.name,
            with: None,
            plus: vec![at],
            minus: vec![design.baseline],
            times: 1.0,
            aliases: None,
        });
    }
    all
}

/// Every level of each factor that lists its levels against its first, and the interactions of each two of these factors.
fn effects(design: &Design) -> Vec<Comparison<'_>> {
    let arms = |has: &dyn Fn(&Arm) -> bool| -> Vec<usize> {
        design.arms.iter().enumerate().filter(|(_, arm)| has(arm)).map(|(at, _)| at).collect()
    };
    let listed: Vec<(usize, &Factor)> =
        design.factors.iter().enumerate().filter(|(_, factor)| factor.range.is_none()).collect();
    let mut all = Vec::new();
    for &(f, factor) in &listed {
        for (level, name) in factor.levels.iter().enumerate().skip(1) {
            all.push(Comparison {
                contrast: MAIN_EFFECT,
                factor: Some(&factor.name),
                level: name,
                reference: &factor.levels[0],
                with: None,
                plus: arms(&|arm| arm.levels[f] == level),
                minus: arms(&|arm| arm.levels[f] == 0),
                times: 1.0,
                aliases: aliases(design, &[&factor.name]).map(|aliases| as_text(&aliases)),
            });
        }
    }
    let pairs = listed.iter().enumerate().flat_map(|(i, one)| listed[i + 1..].iter().map(move |other| (*one, *other)));
    for ((f, with), (g, factor)) in pairs {
        let same = aliases(design, &[&with.name, &factor.name]);
        if same.as_ref().is_some_and(|same| same.iter().any(|other| is_before(design, other, (f, g)))) {
            continue;
        }
        let levels = (1..with.levels.len()).flat_map(|a| (1..factor.levels.len()).map(move |b| (a, b)));
        for (a, b) in levels {
            // The arms at both levels or at both references, against those at one of each: half of the difference of differences.
            let at = |arm: &Arm, at: usize, level: usize| match arm.levels[at] {
                own if own == level => Some(true),
                0 => Some(false),
                _ => None,
            };
            let both = |arm: &Arm| at(arm, f, a).zip(at(arm, g, b));
            all.push(Comparison {
                contrast: INTERACTION,
                factor: Some(&factor.name),
                level: &factor.levels[b],
                reference: &factor.levels[0],
                with: Some([&with.name, &with.levels[a], &with.levels[0]]),
                plus: arms(&|arm| both(arm).is_some_and(|(one, other)| one == other)),
                minus: arms(&|arm| both(arm).is_some_and(|(one, other)| one != other)),
                times: 2.0,
                aliases: same.as_deref().map(as_text),
            });
        }
    }
    all
}

/// Whether an alias of the interaction of two factors is a main effect, or an interaction that comes before it.
fn is_before(design: &Design, alias: &[String], pair: (usize, usize)) -> bool {
    let place = |factor: &Factor| alias.contains(&factor.name);
    let mut places = design.factors.iter().enumerate().filter(|(_, factor)| place(factor)).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(one), Some(other)) => (one, other) < pair,
        _ => true,
    }
}

/// The contrast, and its p value.
fn difference(design: &Design, of: &Comparison<'_>, values: &Values) -> (Estimate, Option<f64>) {
    if design.common_random_numbers {
        // Seed by seed, over the seeds at which all arms of the comparison have the metric.
        let seeds = values.first().map_or(0, Vec::len);
        let level = |arms: &[usize], seed: usize| {
            let values: Option<Vec<f64>> = arms.iter().map(|arm| values[*arm].get(seed).copied().flatten()).collect();
            stats::mean_in_any_order(values?)
        };
        let pairs: Vec<f64> =
            (0..seeds).filter_map(|seed| Some(of.times * (level(&of.plus, seed)? - level(&of.minus, seed)?))).collect();
        return welch_tested(&[&pairs], &[]);
    }
    let own: Vec<Vec<f64>> = values.iter().map(|arm| arm.iter().flatten().map(|x| of.times * x).collect()).collect();
    let samples = |arms: &[usize]| arms.iter().map(|arm| own[*arm].as_slice()).collect::<Vec<_>>();
    welch_tested(&samples(&of.plus), &samples(&of.minus))
}

/// Whether the intervals that a rule looks at are narrow enough, given the values of its metric so far.
pub(super) fn is_narrow(design: &Design, until: &Until, values: &Values) -> bool {
    let intervals: Vec<Estimate> = match until.of {
        Intervals::Arms => {
            values.iter().map(|arm| stats::student(&arm.iter().flatten().copied().collect::<Vec<f64>>())).collect()
        }
        Intervals::Differences => against_baseline(design).iter().map(|of| difference(design, of, values).0).collect(),
    };
    until.narrow(intervals.iter().map(|found| found.low.zip(found.high)))
}

/// A difference, and its p value.
type Found = (Estimate, Option<f64>);

/// All contrasts of all metrics, corrected by kind and metric.
pub(super) fn rows(design: &Design, metrics: &[String], values: &[Values]) -> Vec<ContrastRow> {
    let mut compared = against_baseline(design);
    compared.extend(effects(design));
    let cells: Vec<(&Comparison<'_>, usize)> =
        compared.iter().flat_map(|of| (0..metrics.len()).map(move |metric| (of, metric))).collect();
    // Results are joined in order.
    let found: Vec<Found> = cells.par_iter().map(|(of, metric)| difference(design, of, &values[*metric])).collect();
    let mut families: BTreeMap<(&str, usize), Vec<(usize, f64)>> = BTreeMap::new();
    for (at, ((of, metric), (_, p))) in cells.iter().zip(&found).enumerate() {
        families.entry((of.contrast, *metric)).or_default().extend(p.map(|p| (at, p)));
    }
    let mut corrected = vec![None; cells.len()];
    for family in families.values() {
        let p: Vec<f64> = family.iter().map(|(_, p)| *p).collect();
        family.iter().zip(holm(&p)).for_each(|((at, _), p)| corrected[*at] = Some(p));
    }
    let row = |(((of, metric), (found, p)), p_holm): ((&(&Comparison<'_>, usize), Found), Option<f64>)| {
        let with = |part: usize| of.with.map(|with| with[part].to_string());
        ContrastRow {
            contrast: of.contrast,
            factor: of.factor.map(str::to_owned),
            level: of.level.to_string(),
            reference: of.reference.to_string(),
            with_factor: with(0),
            with_level: with(1),
            with_reference: with(2),
            metric: metrics[*metric].clone(),
            difference: found.mean,
            low: found.low,
            high: found.high,
            n: found.n,
            paired: design.common_random_numbers,
            p,
            p_holm,
            verdict: found.verdict_corrected(p_holm),
            aliases: of.aliases.clone(),
        }
    };
    cells.iter().zip(found).zip(corrected).map(row).collect()
}

/// The table of contrasts.
pub(super) fn table(rows: &[ContrastRow]) -> (TableSpec, Batch) {
    let text = |name: &str, doc: &str| ColumnSpec::new(name, Kind::Text, doc);
    let number = |name: &str, doc: &str| ColumnSpec::new(name, Kind::F64, doc).nullable();
    let columns = vec![
        text(
            "contrast",
            "`arm`: an arm minus the baseline; `main effect`: arms with a level minus those with the first level; `interaction`: this \
             difference at a level of another factor minus that at its first level",
        ),
        text("factor", "factor of a main effect or an interaction").nullable(),
        text("level", "the arm, or the level"),
        text("reference", "what it is compared with"),
        text("with_factor", "the other factor of an interaction").nullable(),
        text("with_level", "its level").nullable(),
        text("with_reference", "the level that this is compared with").nullable(),
        text("metric", "quantity and metric"),
        number("difference", "difference of the means"),
        number("low", "lower end of the 95 % interval"),
        number("high", "upper end of the 95 % interval"),
        ColumnSpec::new("n", Kind::U32, "seeds"),
        ColumnSpec::new("paired", Kind::Bool, "whether differences were taken seed by seed"),
        number("p", "two-sided p value of no difference"),
        number("p_holm", "the same, corrected by Holm's method for all contrasts of this kind and metric"),
        text(
            "verdict",
            "`stable`: the interval excludes 0 and p_holm is below 0.05; `not after Holm`: only the interval excludes 0; `seed noise`: it \
             contains 0; `the same`: the difference is 0 in every run; `unknown`: there is no interval, or too few seeds",
        ),
        text("aliases", "in a fractional design, the effects that it cannot be told apart from").nullable(),
    ];
    let words = |of: fn(&ContrastRow) -> &str| Column::Text(rows.iter().map(|row| of(row).to_string()).collect());
    let maybe =
        |of: fn(&ContrastRow) -> &Option<String>| Column::MaybeText(rows.iter().map(|row| of(row).clone()).collect());
    let numbers = |of: fn(&ContrastRow) -> Option<f64>| Column::MaybeF64(rows.iter().map(of).collect());
    let data = vec![
        words(|row| row.contrast),
        maybe(|row| &row.factor),
        words(|row| &row.level),
        words(|row| &row.reference),
        maybe(|row| &row.with_factor),
        maybe(|row| &row.with_level),
        maybe(|row| &row.with_reference),
        words(|row| &row.metric),
        numbers(|row| row.difference),
        numbers(|row| row.low),
        numbers(|row| row.high),
        Column::U32(rows.iter().map(|row| row.n as u32).collect()),
        Column::Bool(rows.iter().map(|row| row.paired).collect()),
        numbers(|row| row.p),
        numbers(|row| row.p_holm),
        words(|row| row.verdict.word()),
        maybe(|row| &row.aliases),
    ];
    let doc = "One row per contrast and metric. Intervals: Student's, 95 %, of the differences by seed; Welch's where they are not paired."
        .to_string();
    (
        TableSpec { name: "contrasts".into(), doc, columns, volatile: false, only_with_rows: false },
        Batch { rows: rows.len(), columns: data },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::scenario::Reading;

    #[test]
    fn a_factor_without_effect_interacts_with_none() {
        let factor = |name: &str| Factor {
            name: name.into(),
            path: Some(name.into()),
            levels: vec!["0".into(), "1".into()],
            range: None,
        };
        let arm = |levels: [usize; 2]| Arm {
            name: format!("{levels:?}"),
            levels: levels.to_vec(),
            set: Vec::new(),
            seeds: (0..8).collect(),
        };
        let design = Design {
            factors: vec![factor("a"), factor("b")],
            arms: [[0, 0], [0, 1], [1, 0], [1, 1]].map(arm).to_vec(),
            common_random_numbers: true,
            metrics: None,
            read: Reading::Last,
            baseline: 0,
            sample: None,
            search: None,
            fraction: None,
            until: None,
            budget: None,
            expect: Vec::new(),
        };
        // Only `b` matters. Sums of these values in another order differ in their last digits.
        let value = |arm: &Arm, seed: f64| if arm.levels[1] == 0 { 0.1 * (seed + 1.0) } else { 0.7 / (seed + 3.0) };
        let of_arm = |arm: &Arm| (0..8).map(|seed| Some(value(arm, f64::from(seed)))).collect::<Vec<_>>();
        let values: Values = design.arms.iter().map(of_arm).collect();
        for (common_random_numbers, verdict) in [(true, Verdict::Same), (false, Verdict::SeedNoise)] {
            let design = Design { common_random_numbers, ..design.clone() };
            let found = rows(&design, &["m".to_owned()], std::slice::from_ref(&values));
            let row = found.iter().find(|row| row.contrast == INTERACTION).unwrap();
            assert_eq!((row.difference, row.verdict), (Some(0.0), verdict), "{row:?}");
        }
    }
}
