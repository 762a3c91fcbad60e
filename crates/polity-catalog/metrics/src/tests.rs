//! Tests of each metric against a naive implementation, over random values and random cuts into runs of agents.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::testing;

use crate::metrics::agreement::Agreement;
use crate::metrics::bimodality::Bimodality;
use crate::metrics::clusters::Clusters;
use crate::metrics::gini::Gini;
use crate::metrics::histogram::Histogram;
use crate::metrics::hypervolume::Hypervolume;
use crate::metrics::mean::Mean;
use crate::metrics::mutual_information::MutualInformation;
use crate::metrics::quantiles::Quantiles;
use crate::metrics::variance::Variance;
use crate::testing::{acts, open, play};
use polity_kernel::metric::{Metric, Source};
use polity_kernel::scenario::Inputs;
use polity_kernel::tree_reduce;
use proptest::prelude::*;
use serde_json::{Value, json};

type Results = Vec<(String, f64)>;

/// What the kernel does: fold runs of agents, merge the folds in a fixed tree, write the results.
fn measure<M: Metric>(params: Value, range: Option<(f64, f64)>, values: &[f64], cuts: &[usize]) -> Results {
    let source = Source { name: "x", range, ..Source::default() };
    let metric = M::open(serde_json::from_value(params).unwrap(), &source).unwrap();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (values.len() + 1)).collect();
    cuts.extend([0, values.len()]);
    cuts.sort_unstable();
    let folds = cuts.windows(2).map(|run| metric.fold(&values[run[0]..run[1]])).collect();
    let all = tree_reduce(folds, |left, right| metric.merge(left, right)).unwrap_or_else(|| metric.fold(&[]));
    let mut results = Vec::new();
    metric.finish(all, &mut |suffix, value| results.push((suffix.to_string(), value)));
    results
}

/// Returns the single result of a metric without a suffix.
fn single<M: Metric>(params: Value, range: Option<(f64, f64)>, values: &[f64], cuts: &[usize]) -> Option<f64> {
    let results = measure::<M>(params, range, values, cuts);
    assert!(results.len() <= 1 && results.iter().all(|(suffix, _)| suffix.is_empty()), "{results:?}");
    results.first().map(|(_, value)| *value)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// Values of very different sizes with many repetitions.
fn any_values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![-1e3..1e3f64, -1e-3..1e-3f64, (-4..5i32).prop_map(f64::from), Just(-0.0)];
    prop::collection::vec(value, 0..200)
}

fn values_from_0() -> impl Strategy<Value = Vec<f64>> {
    any_values().prop_map(|values| values.into_iter().map(f64::abs).collect())
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..12)
}

proptest! {
    #[test]
    fn mean_and_variance(values in any_values(), cuts in cuts()) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let near = |got: Option<f64>, wanted: f64, exists: bool| match got {
            Some(got) => exists && (got - wanted).abs() <= 1e-9 * (1.0 + wanted.abs()),
            None => !exists,
        };
        let (none, sample) = (json!({}), json!({"sample": true}));
        let means = near(single::<Mean>(none.clone(), None, &values, &cuts), mean, n > 0.0);
        let variances = near(single::<Variance>(none, None, &values, &cuts), squares / n, n > 0.0);
        let of_samples = near(single::<Variance>(sample, None, &values, &cuts), squares / (n - 1.0), n > 1.0);
        prop_assert!(means && variances && of_samples, "{} {} {}", means, variances, of_samples);
    }

    /// (skewness^2 + 1) / kurtosis, of all values at once.
    #[test]
    fn bimodality(values in any_values(), cuts in cuts()) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let moment = |power: i32| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
        let (skewness, kurtosis) = (moment(3) / moment(2).powf(1.5), moment(4) / moment(2).powi(2));
        let all_equal = values.iter().all(|x| *x == values[0]);
        match single::<Bimodality>(json!({}), None, &values, &cuts) {
            Some(got) => {
                prop_assert!(!all_equal && got > 0.0 && got < 1.0 + 1e-9, "{}", got);
                prop_assert!((got - (skewness.powi(2) + 1.0) / kurtosis).abs() < 1e-7, "{}", got);
            }
            None => prop_assert!(all_equal),
        }
    }

    /// Exact to the last bit, for all cuts.
    #[test]
    fn quantiles(values in any_values(), cuts in cuts(), at in prop::collection::btree_set(0u32..=1000, 1..20)) {
        let at: Vec<f64> = at.into_iter().map(|per_mille| f64::from(per_mille) / 1000.0).collect();
        let sorted = sorted(&values);
        let wanted: Results = at.iter().filter(|_| !sorted.is_empty()).map(|p| {
            let h = p * (sorted.len() - 1) as f64;
            let (low, high) = (sorted[h.floor() as usize], sorted[h.ceil() as usize]);
            (format!("q{p}"), if low == high { low } else { low + (h - h.floor()) * (high - low) })
        }).collect();
        prop_assert_eq!(measure::<Quantiles>(json!({"at": at}), None, &values, &cuts), wanted);
    }

    /// The mean absolute difference of all pairs, over twice the mean.
    #[test]
    fn gini(values in values_from_0(), cuts in cuts()) {
        let n = values.len() as f64;
        let pairs: f64 = values.iter().flat_map(|x| values.iter().map(move |y| (x - y).abs())).sum();
        let sum: f64 = values.iter().sum();
        match single::<Gini>(json!({}), None, &values, &cuts) {
            Some(gini) if sum > 0.0 => prop_assert!((gini - pairs / (2.0 * n * sum)).abs() < 1e-9, "{}", gini),
            Some(gini) => prop_assert!(gini == 0.0 && !values.is_empty()),
            None => prop_assert!(values.is_empty()),
        }
        prop_assert_eq!(single::<Gini>(json!({}), None, &values, &cuts), single::<Gini>(json!({}), None, &values, &[]));
    }

    #[test]
    fn histogram(values in any_values(), cuts in cuts(), bins in 1usize..=120) {
        // A width that floats represent exactly, so that the borders of bins can be written out.
        let (low, width) = (-3.0, 0.25);
        let params = json!({"bins": bins, "range": [low, low + width * bins as f64]});
        let mut counts = vec![0; bins];
        for x in &values {
            let bin = (0..bins).rev().find(|bin| *x >= low + width * *bin as f64).unwrap_or(0);
            counts[bin] += 1;
        }
        let digits = if bins > 100 { 3 } else { 2 };
        let wanted: Results = counts.iter().enumerate().filter(|_| !values.is_empty())
            .map(|(bin, count)| (format!("b{bin:0digits$}"), f64::from(*count) / values.len() as f64)).collect();
        prop_assert_eq!(measure::<Histogram>(params, Some((5.0, 6.0)), &values, &cuts), wanted);
    }

    /// On a grid of eighths: sort the cells, cut at wide gaps, drop small groups.
    #[test]
    fn clusters(values in any_values(), cuts in cuts(), reach in 1i64..40, share in 0.0..0.3f64) {
        let params = json!({"range": [-8, 8], "cells": 128, "gap": reach as f64 / 8.0, "share": share});
        let mut cells: Vec<i64> = values.iter().map(|x| (((x + 8.0) * 8.0).floor() as i64).clamp(0, 127)).collect();
        cells.sort_unstable();
        let groups = cells.chunk_by(|a, b| b - a <= reach);
        let wanted = groups.filter(|group| group.len() as f64 >= share * values.len() as f64).count() as f64;
        prop_assert_eq!(single::<Clusters>(params, None, &values, &cuts), (!values.is_empty()).then_some(wanted));
    }

    #[test]
    fn agreement(values in any_values(), cuts in cuts()) {
        let most = values.iter().map(|x| values.iter().filter(|y| x == *y).count()).max();
        let wanted = most.map(|most| most as f64 / values.len() as f64);
        prop_assert_eq!(single::<Agreement>(json!({}), None, &values, &cuts), wanted);
    }
}

/// The information of pairs by its definition, the sum of p(a, b) log (p(a, b) / p(a) p(b)), less the correction of its bias.
fn plain_information(pairs: &[(u32, u32)]) -> f64 {
    let n = pairs.len() as f64;
    let (mut sum, mut values) = (0.0, [0.0; 3]);
    for a in 0..8 {
        values[0] += f64::from(u8::from(pairs.iter().any(|pair| pair.0 == a)));
        values[1] += f64::from(u8::from(pairs.iter().any(|pair| pair.1 == a)));
        for b in 0..8 {
            let share = |of: &dyn Fn(&&(u32, u32)) -> bool| pairs.iter().filter(of).count() as f64 / n;
            let both = share(&|pair| **pair == (a, b));
            if both > 0.0 {
                sum += both * (both / share(&|pair| pair.0 == a) / share(&|pair| pair.1 == b)).ln();
                values[2] += 1.0;
            }
        }
    }
    (sum + (values[0] + values[1] - values[2] - 1.0) / (2.0 * n)).max(0.0)
}

proptest! {
    #[test]
    fn mutual_information(pairs in prop::collection::vec((0u32..8, 0u32..8), 1..200), cuts in cuts()) {
        let results = information(&pairs, &cuts);
        let wanted = plain_information(&pairs);
        prop_assert!((results[0].1 - wanted).abs() < 1e-9 && (results[1].1 - wanted.exp()).abs() < 1e-8, "{:?}", results);
        prop_assert_eq!((results[0].0.as_str(), results[1].0.as_str()), ("", "count"));
    }
}

/// The information of pairs, folded in runs.
fn information(pairs: &[(u32, u32)], cuts: &[usize]) -> Results {
    let rows =
        |pairs: &[(u32, u32)]| -> Vec<f64> { pairs.iter().flat_map(|(a, b)| [f64::from(*a), f64::from(*b)]).collect() };
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (pairs.len() + 1)).chain([0, pairs.len()]).collect();
    cuts.sort_unstable();
    let metric = MutualInformation;
    let folds = cuts.windows(2).map(|run| metric.fold(&rows(&pairs[run[0]..run[1]]))).collect();
    let all = tree_reduce(folds, |left, right| metric.merge(left, right)).unwrap();
    let mut results = Vec::new();
    metric.finish(all, &mut |suffix, value| results.push((suffix.to_string(), value)));
    results
}

#[test]
fn information_is_none_or_all() {
    let of = |first: &dyn Fn(u32) -> u32| {
        let pairs: Vec<(u32, u32)> = (0..6_400).map(|i| (first(i), i % 4)).collect();
        information(&pairs, &[])
    };
    // The first number tells the second; it tells nothing; the second one tells half of the first.
    let (count, none, half) = (of(&|i| i % 4), of(&|i| i / 4 % 5), of(&|i| i % 2));
    assert!((count[1].1 - 4.0).abs() < 0.01 && none[0].1 < 1e-3 && (half[1].1 - 2.0).abs() < 0.01);
    assert_eq!(information(&[], &[]), []);
}

#[test]
fn quantiles_of_many_values_are_those_of_the_sorted_list() {
    // Whole blocks of one value, a smooth spread, both signs, all sizes.
    let values: Vec<f64> = (0..50_000u32)
        .map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 12) / 1e3 - 300.0)
        .chain(std::iter::repeat_n(0.5, 20_000))
        .chain((0..1_000).map(|i| signed_power(i - 500)))
        .collect();
    let sorted = sorted(&values);
    let at: Vec<f64> = (0..=90).map(|i| f64::from(i) / 90.0).collect();
    let results = measure::<Quantiles>(json!({"at": at}), None, &values, &[4096, 8192, 30_000]);
    for (p, (_, got)) in at.iter().zip(&results) {
        let h = p * (sorted.len() - 1) as f64;
        let (low, high) = (sorted[h as usize], sorted[h.ceil() as usize]);
        assert_eq!(*got, if low == high { low } else { low + h.fract() * (high - low) });
    }
    assert_eq!(results.len(), 91);
}

/// 2 to a power, of either sign.
fn signed_power(exponent: i32) -> f64 {
    if exponent % 2 == 0 { 2f64.powi(exponent) } else { -(2f64.powi(exponent)) }
}

#[test]
fn known_values() {
    assert_eq!(single::<Variance>(json!({}), None, &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], &[3]), Some(4.0));
    let quartiles = measure::<Quantiles>(json!({"at": [0.25, 0.5, 1, 0]}), None, &[4.0, 1.0, 3.0, 2.0], &[]);
    let named = [("q0.25", 1.75), ("q0.5", 2.5), ("q1", 4.0), ("q0", 1.0)];
    assert_eq!(quartiles, named.map(|(name, value)| (name.to_string(), value)));
    assert_eq!(single::<Gini>(json!({}), None, &[0.0, 0.0, 0.0, 8.0], &[2]), Some(0.75));
    assert_eq!(single::<Gini>(json!({}), None, &[3.0; 5], &[2]), Some(0.0));
    assert_eq!(single::<Clusters>(json!({}), Some((0.0, 1.0)), &[0.1, 0.105, 0.5, 0.9], &[1]), Some(3.0));
    assert_eq!(single::<Clusters>(json!({"share": 0.3}), Some((0.0, 1.0)), &[0.1, 0.105, 0.5, 0.9], &[1]), Some(1.0));
    assert_eq!(single::<Agreement>(json!({}), None, &[-0.0, 1.0, 0.0, 2.0], &[1]), Some(0.5));
}

#[test]
fn bimodality_of_known_distributions() {
    let of = |values: &[f64]| single::<Bimodality>(json!({}), None, values, &[3, 4096, 5000]);
    let near = |values: &[f64], wanted: f64| (of(values).unwrap() - wanted).abs() < 1e-6;
    let evenly: Vec<f64> = (0..20_000).map(f64::from).collect();
    assert!(near(&evenly, 5.0 / 9.0));
    // Two points have 1, however unequal, also far from 0.
    let two: Vec<f64> = (0..20_000).map(|i| 1e6 + f64::from(u8::from(i % 5 == 0))).collect();
    assert!(near(&two, 1.0));
    // Sums of many draws, without draws: binomial weights of 40.
    let binomial = |k: i32| (1..=k).fold(1.0, |all, i| all * f64::from(41 - i) / f64::from(i)) / 1e7;
    let bell: Vec<f64> = (0..=40).flat_map(|k| vec![f64::from(k); binomial(k) as usize]).collect();
    assert!((of(&bell).unwrap() - 1.0 / 3.0).abs() < 0.02, "{:?}", of(&bell));
    assert_eq!(of(&[0.1; 9000]), None);
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[1.0, f64::INFINITY]), None);
}

/// Millions of equal but tiny deviations on a large value: what a naive sum of squares gets wrong.
#[test]
fn the_variance_of_small_deviations_from_a_large_value_is_kept() {
    let values: Vec<f64> = (0..20_000).map(|i| 1e9 + f64::from(i % 2)).collect();
    let variance = single::<Variance>(json!({}), None, &values, &[4096, 8192, 12_288, 16_384]).unwrap();
    assert!((variance - 0.25).abs() < 1e-9, "{variance}");
}

#[test]
fn infinite_values_give_what_exists_and_nothing_else() {
    let inf = f64::INFINITY;
    assert_eq!(single::<Variance>(json!({}), None, &[1.0, inf], &[1]), None);
    assert_eq!(single::<Gini>(json!({}), None, &[1.0, inf], &[1]), None);
    assert_eq!(single::<Gini>(json!({}), None, &[1.0, -1.0], &[1]), None);
    let at = json!({"at": [0, 0.5, 1]});
    let named = |values: &[(&str, f64)]| -> Results { values.iter().map(|(n, v)| (n.to_string(), *v)).collect() };
    assert_eq!(
        measure::<Quantiles>(at.clone(), None, &[1.0, inf, inf], &[]),
        named(&[("q0", 1.0), ("q0.5", inf), ("q1", inf)])
    );
    assert_eq!(measure::<Quantiles>(at, None, &[-inf, inf], &[]), named(&[("q0", -inf), ("q1", inf)]));
    let shares = measure::<Histogram>(json!({"bins": 2}), Some((0.0, 1.0)), &[-inf, inf, 7.0, 0.6], &[]);
    assert_eq!(shares, named(&[("b00", 0.25), ("b01", 0.75)]));
    assert_eq!(single::<Clusters>(json!({}), Some((0.0, 1.0)), &[-inf, inf, 7.0], &[]), Some(2.0));
    assert_eq!(single::<Agreement>(json!({}), None, &[inf, inf, 1.0, -inf], &[2]), Some(0.5));
}

#[test]
fn metrics_are_recorded_under_the_names_of_quantity_and_metric() {
    let played = play(&json!({
        "rounds": 3, "agents": 100, "world": {"kind": "guess-average"}, "cohorts": [{"policy": {"kind": "noise"}}],
        "metrics": [
            {"kind": "quantiles", "of": "guess", "at": [0.5]},
            {"kind": "histogram", "of": "guess", "bins": 2, "every": 2},
            {"kind": "gini", "of": "last-guess"},
        ],
    }));
    let names = |round: usize| played.rounds[round].metrics.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), ["target", "guess.quantiles.q0.5", "last-guess.gini"]);
    assert_eq!(
        names(1),
        ["target", "guess.quantiles.q0.5", "guess.histogram.b00", "guess.histogram.b01", "last-guess.gini"]
    );
    let median = {
        let sorted = sorted(&acts(&played.rounds[1]));
        (sorted[49] + sorted[50]) / 2.0
    };
    assert!((testing::metric(&played.rounds[1], "guess.quantiles.q0.5") - median).abs() < 1e-12);
}

#[test]
fn wrong_parameters_are_refused_where_they_stand() {
    for (metric, wanted) in [
        (json!({"kind": "quantiles", "at": []}), "metrics[0].at: needs 1 to 100 numbers, has 0"),
        (json!({"kind": "quantiles", "at": [0.5, 50]}), "metrics[0].at[1]: must lie in 0..=1, is 50"),
        (json!({"kind": "quantiles", "at": [0.5, 0.5]}), "metrics[0].at[1]: 0.5 appears twice"),
        (json!({"kind": "histogram", "bins": 0}), "metrics[0].bins: must lie in 1..=1000, is 0"),
        (json!({"kind": "histogram", "range": [1, 1]}), "metrics[0].range: must be two numbers, the smaller first"),
        (
            json!({"kind": "clusters", "gap": 0.01}),
            "metrics[0].gap: must lie between the width of a cell (0.02) and the range (20)",
        ),
        (json!({"kind": "clusters", "cells": 1}), "metrics[0].cells: must lie in 2..=4000, is 1"),
        (json!({"kind": "clusters", "share": 2}), "metrics[0].share: must lie in 0..=1, is 2"),
        (
            json!({"kind": "gini"}),
            "metrics[0]: the Gini index needs a quantity that is never negative, but `guess` goes down to -10",
        ),
        (json!({"kind": "variance", "smaple": true}), "metrics[0].smaple: unknown key `smaple`"),
    ] {
        let mut metric = metric;
        metric["of"] = json!("guess");
        let scenario = json!({
            "rounds": 1, "agents": 3, "world": {"kind": "guess-average", "low": -10, "high": 10},
            "cohorts": [{"policy": {"kind": "noise"}}], "metrics": [metric],
        });
        let error = open(&scenario, &Inputs::default(), 1).err().unwrap_or_else(|| panic!("accepted: {scenario}"));
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
}

/// Sources without a declared range.
#[test]
fn a_grid_needs_a_range() {
    let source = Source { name: "x", ..Source::default() };
    let bins = serde_json::from_value(json!({})).unwrap();
    let error = Histogram::open(bins, &source).err().unwrap().to_string();
    assert_eq!(error, "range: the world declares no range for `x`; give one, such as `range: [0, 1]`");
    let cells = serde_json::from_value(json!({})).unwrap();
    assert_eq!(Clusters::open(cells, &source).err().unwrap().key, "range");
}

/// Points of groups: each row has its numbers and its group.
fn points_of(rows: &[(Vec<f64>, u8)], groups: usize) -> Vec<Vec<f64>> {
    let mean = |group: usize| {
        let own: Vec<&Vec<f64>> = rows.iter().filter(|(_, of)| usize::from(*of) == group).map(|(row, _)| row).collect();
        let n = own.len() as f64;
        (n > 0.0).then(|| (0..3).map(|axis| own.iter().map(|row| row[axis]).sum::<f64>() / n).collect())
    };
    (0..groups).filter_map(mean).collect()
}

proptest! {
    #[test]
    fn a_hypervolume_is_that_of_the_union_of_boxes(
        rows in prop::collection::vec((prop::collection::vec((-2..6i32).prop_map(f64::from), 3), 0..5u8), 0..30),
        cuts in cuts(),
    ) {
        let groups: Vec<String> = (0..5).map(|group| format!("cohort={group}")).collect();
        let others = [Source { name: "y", ..Source::default() }, Source { name: "z", ..Source::default() }];
        let source = Source { name: "x", others: &others, groups: &groups, ..Source::default() };
        let params = serde_json::from_value(json!({"reference": [-1, 0, 1]})).unwrap();
        let metric = Hypervolume::open(params, &source).unwrap();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (rows.len() + 1)).chain([0, rows.len()]).collect();
        cuts.sort_unstable();
        let flat = |rows: &[(Vec<f64>, u8)]| -> Vec<f64> {
            rows.iter().flat_map(|(row, group)| row.iter().copied().chain([f64::from(*group)])).collect()
        };
        let folds = cuts.windows(2).map(|run| metric.fold(&flat(&rows[run[0]..run[1]]))).collect();
        let all = tree_reduce(folds, |left, right| metric.merge(left, right)).unwrap();
        let mut found = Vec::new();
        metric.finish(all, &mut |suffix, value| found.push((suffix.to_string(), value)));
        // By inclusion and exclusion over all sets of points.
        let points = points_of(&rows, 5);
        let mut volume = 0.0;
        for set in 1..1u32 << points.len() {
            let own = || (0..points.len()).filter(|i| set >> i & 1 == 1);
            let edge = |axis: usize| {
                let low = own().map(|i| points[i][axis]).fold(f64::INFINITY, f64::min);
                (low - [-1.0, 0.0, 1.0][axis]).max(0.0)
            };
            let sign = if own().count() % 2 == 1 { 1.0 } else { -1.0 };
            volume += sign * edge(0) * edge(1) * edge(2);
        }
        prop_assert!((found[0].1 - volume).abs() < 1e-6, "{found:?}, not {volume}");
        prop_assert_eq!(found[1].1 == 0.0, volume == 0.0);
    }
}

#[test]
fn several_quantities_are_measured_together_over_groups() {
    let game = json!({"kind": "formula-game", "players": 2, "rounds": 4, "actions": {"give": {"low": 0, "high": 4}},
        "phases": [{"actions": ["give"]}], "payoff": 1,
        "objectives": {"kept": {"value": "4 - give"}, "given": {"value": "give"}}});
    let rule = |give: u32| json!({"kind": "rule", "actions": [{"act": "give", "value": give}]});
    let metric =
        json!({"kind": "hypervolume", "of": ["return-kept", "return-given"], "by": "cohort", "reference": [0, 0]});
    let scenario = json!({"seed": 1, "rounds": 4, "agents": 6, "topology": {"kind": "none"}, "world": game,
        "cohorts": [{"name": "a", "count": 2, "policy": rule(1)}, {"name": "b", "count": 2, "policy": rule(3)},
            {"name": "c", "count": 2, "policy": rule(4)}],
        "metrics": [metric]});
    let played = play(&scenario);
    let last = &played.rounds[3].metrics;
    let value = |name: &str| last.iter().find(|(known, _)| known == name).unwrap().1;
    // After four rounds the points are (12, 4) and (4, 12); the third one, (0, 16), is not above the reference point.
    assert_eq!(value("return-kept+return-given.hypervolume"), 12.0 * 4.0 + 4.0 * 8.0);
    assert_eq!(value("return-kept+return-given.hypervolume.front"), 2.0);
    let refusal = |key: &str, value: Value| {
        let mut scenario = scenario.clone();
        scenario["metrics"][0][key] = value;
        testing::refused(&scenario)
    };
    assert!(refusal("of", json!("return-kept")).contains("must be 2 to 4 quantities"));
    assert!(refusal("of", json!([])).contains("list"));
    assert!(refusal("by", json!(null)).contains("name what groups agents"));
    assert!(refusal("reference", json!([0])).contains("must be 2 finite numbers"));
    let mut several = scenario.clone();
    several["metrics"][0] = json!({"kind": "mean", "of": ["return-kept", "return-given"]});
    assert!(testing::refused(&several).contains("`mean` describes one quantity"));
}
