//! A population made from shares alone, without microdata.

use super::fit::{FitError, Marginal, apportion, check, shares};
use super::level::{About, Level, LevelError, check_different};
use super::{Column, Population, Share, Table};
use crate::outline::Guesses;
use crate::rng::{Draws, Stream};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Makes `n` agents with a column for each marginal. Every level has its exact number of agents, by largest remainder. The columns
/// are shuffled separately, so they are independent of each other. If the joint distribution of attributes is known, fit a table of
/// cells with weights instead ([`super::fit::weights`]).
///
/// A column whose levels are all numbers holds numbers, any other words.
///
/// # Errors
/// Invalid shares, levels given twice, ranges of numbers (no value can be read from them), no agents.
pub fn independent(marginals: &[Marginal], n: u32, seed: u64) -> Result<Population, FitError> {
    let mut columns = Vec::with_capacity(marginals.len());
    let mut obtained = Vec::new();
    for (m, marginal) in marginals.iter().enumerate() {
        let levels = Levels::read(m, marginal, n)?;
        let each = |(level, size): (usize, &u32)| std::iter::repeat_n(level as u32, *size as usize);
        let mut codes: Vec<u32> = levels.sizes.iter().enumerate().flat_map(each).collect();
        Draws::new(seed, Stream::Population, 1 + m as u32, 0).shuffle(&mut codes);
        obtained.extend(levels.obtained(marginal));
        columns.push(levels.column(codes));
    }
    let table = table(marginals, columns)?;
    Ok(Population::from_table(Arc::new(table)).with_shares(obtained))
}

/// Returns the outline of [`independent`]: each column has the same people, grouped. The joint distribution is a guess.
///
/// # Errors
/// Those of [`independent`].
pub fn independent_grouped(marginals: &[Marginal], n: u32, guesses: &Guesses) -> Result<Population, FitError> {
    let all = marginals.iter().enumerate().map(|(m, marginal)| Levels::read(m, marginal, n));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    // Every column stands in order of level; a new row begins where one of them comes to its next level.
    let ends_of = |levels: &Levels<'_>| -> Vec<u32> {
        let ends = levels.sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        ends.collect()
    };
    let rows: BTreeSet<u32> = all.iter().flat_map(ends_of).filter(|end| *end > 0).collect();
    let counts = rows.iter().scan(0, |begin, end| Some(end - std::mem::replace(begin, *end)));
    let counts: Vec<u32> = counts.collect();
    let (mut columns, mut obtained) = (Vec::new(), Vec::new());
    for (levels, marginal) in all.into_iter().zip(marginals) {
        let ends = ends_of(&levels);
        let codes = rows.iter().map(|row| ends.partition_point(|end| end < row) as u32).collect();
        obtained.extend(levels.obtained(marginal));
        columns.push(levels.column(codes));
    }
    let table = table(marginals, columns)?;
    Ok(Population::grouped(Arc::new(table), &counts, guesses).with_shares(obtained))
}

fn table(marginals: &[Marginal], columns: Vec<Column>) -> Result<Table, FitError> {
    let names = marginals.iter().map(|marginal| marginal.column.clone());
    Table::new(names.zip(columns).collect()).map_err(|error| FitError {
        entry: marginals.iter().rposition(|marginal| Some(&marginal.column) == error.column.as_ref()),
        about: About::Column,
        message: error.to_string(),
    })
}

/// The levels of one column, with the agents of each.
struct Levels<'a> {
    names: Vec<&'a str>,
    /// Levels that are all numbers are numbers, any other words.
    values: Option<Vec<f64>>,
    sizes: Vec<u32>,
}

impl<'a> Levels<'a> {
    fn read(m: usize, marginal: &'a Marginal, n: u32) -> Result<Self, FitError> {
        let wrong = |error| FitError::of(m, error);
        check(marginal.shares.iter().map(|(_, share)| *share)).map_err(wrong)?;
        let names: Vec<&str> = marginal.shares.iter().map(|(level, _)| level.trim()).collect();
        let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
        let end = |text: &str| text.trim().is_empty() || number(text.trim()).is_some();
        let range = |text: &&str| text.split_once("..").is_some_and(|(low, high)| end(low) && end(high));
        if let Some(level) = names.iter().position(range) {
            let message = format!(
                "`{}` is a range, and without a `file` of people there is no value to take from it; write a word such \
                 as 18-29, or a number",
                names[level]
            );
            return Err(wrong(LevelError::at(level, message)));
        }
        let values = names.iter().map(|name| number(name)).collect::<Option<Vec<f64>>>();
        let levels: Vec<Level<'_>> = match &values {
            Some(values) => values.iter().map(|value| Level::Number(*value)).collect(),
            None => names.iter().map(|name| Level::Word(name)).collect(),
        };
        check_different(&names, &levels).map_err(wrong)?;
        let asked: Vec<f64> = marginal.shares.iter().map(|(_, share)| *share).collect();
        Ok(Levels { sizes: apportion(&asked, n), names, values })
    }

    fn obtained(&self, marginal: &Marginal) -> Vec<Share> {
        shares(&marginal.column, marginal.shares.iter().cloned(), &self.sizes).collect()
    }

    /// The column in which each row has the level of that position.
    fn column(self, codes: Vec<u32>) -> Column {
        match self.values {
            Some(values) => Column::Number(codes.iter().map(|code| values[*code as usize]).collect()),
            None => Column::Text { codes, words: self.names.into_iter().map(str::to_owned).collect() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marginal(column: &str, shares: &[(&str, f64)]) -> Marginal {
        Marginal { column: column.into(), shares: shares.iter().map(|(l, s)| ((*l).to_owned(), *s)).collect() }
    }

    #[test]
    fn shares_are_exact_and_columns_independent() {
        let marginals =
            [marginal("sex", &[("f", 0.5), ("m", 0.5)]), marginal("PID", &[("0", 0.2), ("1", 0.5), ("2", 0.3)])];
        let people = independent(&marginals, 100_000, 4).unwrap();
        let (sex, pid) = (people.table().text_column("sex").unwrap(), people.table().number_column("PID").unwrap());
        let count = |s: &str, p: f64| {
            (0..100_000).filter(|i| people.text(sex, *i) == s && people.number(pid, *i) == p).count() as f64
        };
        for (p, share) in [(0.0, 0.2), (1.0, 0.5), (2.0, 0.3)] {
            assert_eq!(count("f", p) + count("m", p), share * 100_000.0);
            // Hypergeometric: 5 sigma.
            let sigma = (100_000.0 * share * (1.0 - share) * 0.25f64).sqrt();
            assert!((count("f", p) - share * 50_000.0).abs() < 5.0 * sigma);
        }
        // What is told of the people is counted among them.
        for share in people.shares() {
            let has = |agent: &u32| match share.column.as_str() {
                "sex" => people.text(sex, *agent) == share.level,
                _ => people.number(pid, *agent).to_string() == share.level,
            };
            assert_eq!((0..100_000).filter(has).count() as u32, share.agents);
        }
        assert_eq!(people, independent(&marginals, 100_000, 4).unwrap());
        assert_ne!(people, independent(&marginals, 100_000, 5).unwrap());
        assert!(people.shares().iter().all(|share| share.asked == share.obtained));
    }

    #[test]
    fn an_outline_has_the_same_people_of_each_column() {
        let marginals = [
            marginal("sex", &[("f", 0.5), ("m", 0.5), ("x", 0.0)]),
            marginal("PID", &[("0", 0.2), ("1", 0.5), ("2", 0.3)]),
            marginal("rare", &[("no", 0.99999), ("yes", 0.00001)]),
        ];
        let guesses = Guesses::default();
        let whole = independent(&marginals, 100_000, 4).unwrap();
        let outline = independent_grouped(&marginals, 100_000, &guesses).unwrap();
        assert_eq!((outline.len(), outline.shares()), (100_000, whole.shares()));
        assert!(outline.table().rows() <= 6 && !guesses.any(), "{}", outline.table().rows());
        for column in 0..3 {
            let sorted = |people: &Population| {
                let mut cells: Vec<String> = (0..100_000).map(|i| people.cell(column, i).to_string()).collect();
                cells.sort_unstable();
                cells
            };
            assert_eq!(sorted(&outline), sorted(&whole));
        }
        // One agent has only one level of each.
        assert_eq!(independent_grouped(&marginals, 1, &guesses).unwrap().table().rows(), 1);
    }

    #[test]
    fn what_can_not_be_made_is_named() {
        let error = |marginals: &[Marginal]| {
            let error = independent(marginals, 10, 1).unwrap_err();
            assert_eq!(independent_grouped(marginals, 10, &Guesses::default()).unwrap_err(), error);
            (error.entry, error.about, error.message)
        };
        assert_eq!(
            error(&[marginal("a", &[("x", 0.5), ("x", 0.5)])]),
            (Some(0), About::Level(1), "the level `x` is given twice".into())
        );
        let same = [marginal("a", &[("1", 0.5), ("1.0", 0.5)])];
        assert_eq!(error(&same).2, "the level `1.0` is given twice, first as `1`");
        // As words they are two.
        assert!(independent(&[marginal("a", &[("1", 0.5), ("1.0", 0.3), ("x", 0.2)])], 10, 1).is_ok());
        assert!(error(&[marginal("a", &[("1", 0.5), ("18..30", 0.5)])]).2.starts_with("`18..30` is a range"));
        let twice = [marginal("a", &[("x", 1.0)]), marginal("a", &[("x", 1.0)])];
        assert_eq!(
            error(&twice),
            (Some(1), About::Column, "column `a`: the name is used twice; rename one of the two".into())
        );
        assert!(error(&[]).2.contains("at least one column"));
    }
}
