//! Agreement of raters: Cohen's and Fleiss' kappa.

use std::collections::BTreeMap;

/// Cohen's kappa of two raters over the things that both have rated: (share that agree - share expected by chance) / (1 - share expected by
/// chance), where chance is that of two independent raters with these margins (Cohen 1960). `None` without things, and where chance alone
/// agrees on all.
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

/// Fleiss' kappa of several raters (Fleiss 1971): of every thing the ratings that it was given. Things with fewer than two ratings are left out;
/// numbers of ratings may differ (the chance is that of the shares over all ratings). `None` without things, and where chance alone agrees on all.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of counts as pairs.
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
