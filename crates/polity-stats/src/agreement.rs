//! Agreement of raters: Cohen's and Fleiss' kappa, and the position bias of pairwise judges.

use crate::{CONFIDENCE, Estimate};
use polity_kernel::rng::normal_quantile;
use std::collections::BTreeMap;

/// Returns Cohen's kappa of two raters over the things that both have rated: (observed agreement - chance agreement) / (1 - chance
/// agreement). The chance agreement is that of two independent raters with these margins (Cohen 1960). `None` without things, or if
/// the chance agreement is 1.
#[must_use]
pub fn cohen<T: Ord>(ratings: &[(T, T)]) -> Option<f64> {
    let n = ratings.len() as f64;
    let agreed = ratings.iter().filter(|(a, b)| a == b).count() as f64 / n;
    let margin = |which: fn(&(T, T)) -> &T| {
        let mut counts: BTreeMap<&T, f64> = BTreeMap::new();
        ratings.iter().for_each(|rating| *counts.entry(which(rating)).or_default() += 1.0);
        counts
    };
    let (first, second) = (margin(|(a, _)| a), margin(|(_, b)| b));
    let chance: f64 = first.iter().map(|(word, a)| a / n * second.get(word).copied().unwrap_or(0.0) / n).sum();
    (n > 0.0 && chance < 1.0).then(|| (agreed - chance) / (1.0 - chance))
}

/// Returns Fleiss' kappa of several raters (Fleiss 1971), given the ratings of each thing. Things with fewer than two ratings are
/// left out. Numbers of ratings may differ; the chance agreement uses the shares over all ratings. `None` without things, or if the
/// chance agreement is 1.
#[must_use]
pub fn fleiss<T: Ord>(things: &[Vec<T>]) -> Option<f64> {
    let mut totals: BTreeMap<&T, f64> = BTreeMap::new();
    let (mut agreed, mut rated) = (0.0, 0.0);
    for ratings in things.iter().filter(|ratings| ratings.len() > 1) {
        let mut counts: BTreeMap<&T, f64> = BTreeMap::new();
        ratings.iter().for_each(|word| *counts.entry(word).or_default() += 1.0);
        let n = ratings.len() as f64;
        agreed += counts.values().map(|c| c * (c - 1.0)).sum::<f64>() / (n * (n - 1.0));
        rated += 1.0;
        counts.into_iter().for_each(|(word, c)| *totals.entry(word).or_default() += c);
    }
    let all: f64 = totals.values().sum();
    let chance: f64 = totals.values().map(|c| (c / all) * (c / all)).sum();
    (rated > 0.0 && chance < 1.0).then(|| (agreed / rated - chance) / (1.0 - chance))
}

/// Returns the position bias of a pairwise judge, using labels: how often it names the first when the second is better, minus how
/// often it names the second when the first is better. A pair is (it names the first, the label names the first). The share of
/// labels has no effect: a judge that guesses has no bias, whatever that share is. There is no mean without labels of both kinds.
///
/// The interval is that of Agresti and Caffo ("Simple and Effective Confidence Intervals for Proportions", 2000): Wald's, with one
/// more success and one more failure on each side. `n` is the number of pairs.
#[must_use]
pub fn position_bias(pairs: &[(bool, bool)]) -> Estimate {
    let named = |label: bool| {
        let of = || pairs.iter().filter(move |(_, labelled)| *labelled == label);
        (of().filter(|(said, labelled)| said != labelled).count() as f64, of().count() as f64)
    };
    let ((to_first, second_better), (to_second, first_better)) = (named(false), named(true));
    if second_better == 0.0 || first_better == 0.0 {
        return Estimate { n: pairs.len(), ..Estimate::NONE };
    }
    let share = |errors: f64, of: f64| (errors + 1.0) / (of + 2.0);
    let variance = |share: f64, of: f64| share * (1.0 - share) / (of + 2.0);
    let (a, b) = (share(to_first, second_better), share(to_second, first_better));
    let deviation = (variance(a, second_better) + variance(b, first_better)).sqrt();
    around(to_first / second_better - to_second / first_better, a - b, deviation, pairs.len())
}

/// Returns the position bias of a judge that is asked in both orders: the share of pairs in which it names the item shown first
/// each time, minus the share in which it names the item shown second each time. It needs no labels, and is the same quantity as
/// [`position_bias`]. A pair is (it names the first, it names the first when they are swapped).
///
/// The interval is that of Agresti and Min ("Simple Improved Confidence Intervals for Comparing Matched Proportions", 2005): Wald's, with
/// half a pair more in each cell.
#[must_use]
pub fn position_bias_of_orders(pairs: &[(bool, bool)]) -> Estimate {
    let n = pairs.len() as f64;
    if pairs.is_empty() {
        return Estimate::NONE;
    }
    let count = |which: bool| pairs.iter().filter(|pair| **pair == (which, which)).count() as f64;
    let (first, second) = (count(true), count(false));
    let (a, b, of) = (first + 0.5, second + 0.5, n + 2.0);
    let middle = (a - b) / of;
    let deviation = (((a + b) / of - middle * middle) / of).sqrt();
    around((first - second) / n, middle, deviation, pairs.len())
}

/// Returns a difference of shares, with the interval around its shrunken estimate.
fn around(mean: f64, middle: f64, deviation: f64, n: usize) -> Estimate {
    let half = normal_quantile((1.0 + CONFIDENCE) / 2.0) * deviation;
    Estimate { mean: Some(mean), low: Some((middle - half).max(-1.0)), high: Some((middle + half).min(1.0)), n }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::rng::{Draws, Stream};

    /// Simulates a judge of `n` pairs with a share in which the first is better: (names the first, label, names the first when
    /// swapped). It compares impressions; the better item and the first item get a bonus.
    fn judged(n: u32, trial: u32, labelled_first: f64, sensitivity: f64, bias: f64) -> Vec<(bool, bool, bool)> {
        let mut draws = Draws::new(17, Stream::Driver, n, trial);
        let mut names_first = |better: bool| {
            let difference = draws.normal() - draws.normal();
            difference + bias + if better { sensitivity } else { -sensitivity } > 0.0
        };
        let label = |i: u32| f64::from(i) < labelled_first * f64::from(n);
        (0..n).map(|i| (names_first(label(i)), label(i), names_first(!label(i)))).collect()
    }

    fn both(judged: &[(bool, bool, bool)]) -> [Estimate; 2] {
        let by_labels: Vec<(bool, bool)> = judged.iter().map(|(said, label, _)| (*said, *label)).collect();
        let by_orders: Vec<(bool, bool)> = judged.iter().map(|(said, _, swapped)| (*said, *swapped)).collect();
        [position_bias(&by_labels), position_bias_of_orders(&by_orders)]
    }

    #[test]
    fn a_bias_is_none_of_the_labels() {
        // Nine of ten labels are first. A judge that tosses a coin has no bias; a bias of 0.3 standard deviations is detected.
        for (labelled, sensitivity, bias) in [(0.9, 0.0, 0.0), (0.62, 0.6, 0.0), (0.9, 0.0, 0.3), (0.62, 0.6, 0.3)] {
            for found in both(&judged(4000, 0, labelled, sensitivity, bias)) {
                let (low, high) = (found.low.unwrap(), found.high.unwrap());
                assert!(high - low < 0.12 && low <= found.mean.unwrap() && found.mean.unwrap() <= high, "{found:?}");
                assert_eq!(low > 0.0, bias > 0.0, "{labelled} {sensitivity} {bias}: {found:?}");
                assert!(high > 0.0, "{found:?}");
            }
        }
    }

    #[test]
    fn intervals_of_a_bias_hold_it_as_often_as_they_say() {
        // A judge that names the first with probability 3/4 if it is better and with 1/2 if it is not: 3/4 + 1/2 - 1.
        let trials = 2000;
        for (n, labelled) in [(20, 0.5), (20, 0.8), (100, 0.62)] {
            let mut covered = [0; 2];
            for trial in 0..trials {
                let mut draws = Draws::new(18, Stream::Driver, n, trial);
                let mut names_first = |better: bool| draws.chance(if better { 0.75 } else { 0.5 });
                let label = |i: u32| f64::from(i) < labelled * f64::from(n);
                let said: Vec<_> = (0..n).map(|i| (names_first(label(i)), label(i), names_first(!label(i)))).collect();
                for (found, covered) in both(&said).into_iter().zip(&mut covered) {
                    *covered += u32::from(found.low.unwrap() <= 0.25 && found.high.unwrap() >= 0.25);
                }
            }
            let shares = covered.map(|covered| f64::from(covered) / f64::from(trials));
            assert!(shares.iter().all(|share| (0.93..0.985).contains(share)), "{n} {labelled}: {shares:?}");
        }
    }

    #[test]
    fn what_tells_nothing_of_a_bias_is_told_so() {
        assert_eq!(position_bias(&[]).mean, None);
        assert_eq!(
            position_bias(&[(true, true); 5]),
            Estimate { n: 5, ..Estimate::NONE },
            "no label of the other kind"
        );
        assert_eq!(position_bias_of_orders(&[]), Estimate::NONE);
        // A few pairs without an error show little; a judge that always names the first is detected.
        let right = position_bias(&[(true, true), (false, false)]);
        assert!(right.mean == Some(0.0) && right.low.unwrap() < -0.5 && right.high.unwrap() > 0.5, "{right:?}");
        let always = position_bias_of_orders(&[(true, true); 10]);
        assert!(always.mean == Some(1.0) && always.low.unwrap() > 0.5 && always.high == Some(1.0), "{always:?}");
    }

    /// Expands a table of counts to pairs.
    fn pairs(table: &[(char, char, usize)]) -> Vec<(char, char)> {
        table.iter().flat_map(|(a, b, n)| std::iter::repeat_n((*a, *b), *n)).collect()
    }

    #[test]
    fn cohen_as_in_textbooks() {
        // 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: agreement 0.7, chance 0.5.
        let kappa = cohen(&pairs(&[('y', 'y', 20), ('y', 'n', 5), ('n', 'y', 10), ('n', 'n', 15)])).unwrap();
        assert!((kappa - 0.4).abs() < 1e-12, "{kappa}");
        assert_eq!(cohen(&pairs(&[('y', 'y', 3), ('n', 'n', 2)])), Some(1.0));
        assert_eq!(cohen(&pairs(&[('y', 'n', 2), ('n', 'y', 2)])), Some(-1.0));
        assert_eq!(cohen(&pairs(&[('y', 'y', 3)])), None, "chance agrees on all");
        assert_eq!(cohen::<u32>(&[]), None);
    }

    #[test]
    fn fleiss_as_in_its_paper_s_usual_example() {
        // Ten things, fourteen raters, five categories; kappa 0.210 (the example of many textbooks).
        let table = [
            [0, 0, 0, 0, 14],
            [0, 2, 6, 4, 2],
            [0, 0, 3, 5, 6],
            [0, 3, 9, 2, 0],
            [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0],
            [3, 2, 6, 3, 0],
            [2, 5, 3, 2, 2],
            [6, 5, 2, 1, 0],
            [0, 2, 2, 3, 7],
        ];
        let things: Vec<Vec<usize>> = table
            .iter()
            .map(|row| row.iter().enumerate().flat_map(|(k, n)| std::iter::repeat_n(k, *n)).collect())
            .collect();
        let kappa = fleiss(&things).unwrap();
        assert!((kappa - 0.2099).abs() < 1e-3, "{kappa}");
        assert_eq!(fleiss(&[vec![1, 1, 1], vec![2, 2]]), Some(1.0));
        assert_eq!(fleiss(&[vec![1]]), None);
    }
}
