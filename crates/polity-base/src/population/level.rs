//! Levels: what a share is a share of.

use super::table::listed;
use super::{Column, Table, TableError};
use crate::tree::nearest;
use std::collections::BTreeMap;

/// A level of a column as a person writes it.
///
/// In a column of words it is the word. In a column of numbers it is a number (`3`), or a range with a lower end that
/// belongs to it and an upper end that does not: `18..30`, `65..`, `..18`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level<'a> {
    /// A word, compared exactly.
    Word(&'a str),
    /// A number.
    Number(f64),
    /// At least the first and less than the second.
    Range(f64, f64),
}

impl<'a> Level<'a> {
    /// Reads a level of a column of words, or of numbers.
    ///
    /// # Errors
    /// A level of numbers that is neither a number nor a range, or an empty range.
    pub fn read(text: &'a str, of_words: bool) -> Result<Self, String> {
        if of_words {
            return Ok(Level::Word(text));
        }
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        if let Some(value) = number(text) {
            return Ok(Level::Number(value));
        }
        let end = |text: &str, open: f64| if text.trim().is_empty() { Some(open) } else { number(text) };
        match text.split_once("..").map(|(low, high)| (end(low, f64::NEG_INFINITY), end(high, f64::INFINITY))) {
            Some((Some(low), Some(high))) if low < high => Ok(Level::Range(low, high)),
            Some((Some(low), Some(high))) => {
                Err(format!("the range `{text}` is empty, because {low} is not less than {high}"))
            }
            _ => Err(format!(
                "`{text}` is not a level of a column of numbers; write a number such as 3, or a range such as 18..30"
            )),
        }
    }

    /// Returns a key that is equal for two ways to write the same level.
    fn key(self) -> (u8, &'a str, u64, u64) {
        // Adding zero makes -0 and 0 one number.
        let bits = |value: f64| (value + 0.0).to_bits();
        match self {
            Level::Word(word) => (0, word, 0, 0),
            Level::Number(number) => (1, "", bits(number), 0),
            Level::Range(low, high) => (2, "", bits(low), bits(high)),
        }
    }
}

/// What an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The column: the table has no column of that name.
    Column,
    /// The levels and their shares, all together.
    Levels,
    /// The level at that position in the list.
    Level(usize),
}

/// What is wrong with a list of levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    /// What it is about.
    pub about: About,
    /// What is wrong and what to do.
    pub message: String,
}

impl LevelError {
    pub(super) fn at(level: usize, message: impl Into<String>) -> Self {
        LevelError { about: About::Level(level), message: message.into() }
    }

    pub(super) fn general(message: impl Into<String>) -> Self {
        LevelError { about: About::Levels, message: message.into() }
    }
}

/// Refuses a list with a level given twice: 1 and 1.0 are one number.
pub(super) fn check_different(names: &[&str], levels: &[Level<'_>]) -> Result<(), LevelError> {
    let mut seen = BTreeMap::new();
    for (i, level) in levels.iter().enumerate() {
        if let Some(first) = seen.insert(level.key(), i) {
            let message = match names[first] == names[i] {
                true => format!("the level `{}` is given twice", names[i]),
                false => format!("the level `{}` is given twice, first as `{}`", names[i], names[first]),
            };
            return Err(LevelError::at(i, message));
        }
    }
    Ok(())
}

/// Returns the level of each row of a table in one of its columns, as a position in `levels`. `needed` says for each level whether
/// some row must have it.
///
/// # Errors
/// An unknown column; a level that cannot be read, that is given twice, or that is needed but in no row; two levels that share a
/// row; a row without a level.
pub fn codes(table: &Table, column: &str, levels: &[&str], needed: &[bool]) -> Result<Vec<u32>, LevelError> {
    let missing = |error: TableError| LevelError { about: About::Column, message: error.to_string() };
    let index = table.index(column).map_err(missing)?;
    let Some((_, data)) = table.columns().nth(index) else { return Ok(Vec::new()) };
    let of_words = matches!(data, Column::Text { .. });
    let mut read = Vec::with_capacity(levels.len());
    for (i, text) in levels.iter().enumerate() {
        read.push(Level::read(text, of_words).map_err(|message| LevelError::at(i, message))?);
    }
    check_different(levels, &read)?;
    let (codes, found) = match data {
        Column::Text { codes, words } => {
            let level_of: BTreeMap<&str, usize> = levels.iter().enumerate().map(|(i, level)| (*level, i)).collect();
            let of_word: Vec<Option<usize>> = words.iter().map(|word| level_of.get(word.as_str()).copied()).collect();
            of_rows(codes.len(), levels.len(), |row| {
                let word = codes[row] as usize;
                of_word[word].ok_or_else(|| unnamed(table, column, &words[word], levels))
            })?
        }
        Column::Number(values) => {
            table.number_column(column).map_err(|error| LevelError::general(error.to_string()))?;
            let different = different(values);
            let of_value = levels_of(&different, levels, &read)?;
            of_rows(values.len(), levels.len(), |row| {
                let place = different.partition_point(|value| *value < values[row]);
                of_value[place].ok_or_else(|| unnamed(table, column, &values[row].to_string(), levels))
            })?
        }
    };
    match found.iter().zip(needed).position(|(found, needed)| *needed && !found) {
        None => Ok(codes),
        Some(i) => {
            let values = values(data);
            let near = nearest(levels[i], values.iter().map(String::as_str));
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let known = format!("(it has {}){}", listed(&values), table.mixture(index));
            Err(LevelError::at(i, format!("no row has the level `{}` of column `{column}`{hint} {known}", levels[i])))
        }
    }
}

/// The levels of all rows, and which levels some row has.
fn of_rows(
    rows: usize,
    levels: usize,
    level: impl Fn(usize) -> Result<usize, LevelError>,
) -> Result<(Vec<u32>, Vec<bool>), LevelError> {
    let (mut codes, mut found) = (Vec::with_capacity(rows), vec![false; levels]);
    for row in 0..rows {
        let level = level(row)?;
        found[level] = true;
        codes.push(level as u32);
    }
    Ok((codes, found))
}

/// Returns the level of each of distinct, ascending values. A level has a run of them, so a value is looked at once, not once per
/// level.
fn levels_of(values: &[f64], names: &[&str], levels: &[Level<'_>]) -> Result<Vec<Option<usize>>, LevelError> {
    let mut out: Vec<Option<usize>> = vec![None; values.len()];
    for (i, level) in levels.iter().enumerate() {
        let from = |end: f64| values.partition_point(|value| *value < end);
        let run = match *level {
            Level::Number(number) => from(number)..values.partition_point(|value| *value <= number),
            Level::Range(low, high) => from(low)..from(high),
            Level::Word(_) => 0..0,
        };
        for place in run {
            if let Some(other) = out[place].replace(i) {
                let message = format!("{} belongs to the levels `{}` and `{}`", values[place], names[other], names[i]);
                return Err(LevelError::at(i, format!("{message}; a value can have only one level")));
            }
        }
    }
    Ok(out)
}

fn unnamed(table: &Table, column: &str, value: &str, levels: &[&str]) -> LevelError {
    let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
    LevelError::general(format!(
        "column `{column}` has the value `{value}`, which has no share (shares are given for {}); give it one, or 0 to \
         leave its rows out{}",
        listed(&levels),
        table.index(column).map_or(String::new(), |index| table.mixture(index))
    ))
}

/// The different values, ascending.
fn different(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

/// The different values of a column, as a person reads them: words as they appear, numbers ascending.
fn values(column: &Column) -> Vec<String> {
    match column {
        Column::Text { words, .. } => words.clone(),
        Column::Number(values) => different(values).iter().map(f64::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextBuilder;
    use super::*;

    fn people() -> Table {
        let mut words = TextBuilder::default();
        ["green", "red", "green", "none"].iter().for_each(|word| words.push(word));
        let age = Column::Number(vec![18.0, 30.0, 64.5, 65.0]);
        Table::new(vec![("age".into(), age), ("party".into(), words.finish())]).unwrap()
    }

    #[test]
    fn words_numbers_and_ranges() {
        let of = |column: &str, levels: &[&str]| codes(&people(), column, levels, &vec![true; levels.len()]).unwrap();
        assert_eq!(of("party", &["red", "none", "green"]), [2, 0, 2, 1]);
        assert_eq!(of("age", &["..30", "30..65", "65.."]), [0, 1, 1, 2]);
        assert_eq!(
            codes(&people(), "party", &["blue", "red", "none", "green"], &[false, true, true, true]).unwrap(),
            [3, 1, 3, 2]
        );
        assert_eq!(of("age", &["65", "64.5", " 30 .. 31", "1.8e1"]), [3, 2, 1, 0]);
    }

    /// Every level of every row, one by one.
    #[test]
    fn many_levels_agree_with_a_plain_search() {
        let values: Vec<f64> = (0..2000).map(|i| f64::from(i * 7919 % 1009) / 2.0).collect();
        let table = Table::new(vec![("x".into(), Column::Number(values.clone()))]).unwrap();
        let ranges = (0..100).map(|i| format!("{}..{}", i * 2, i * 2 + 2));
        let exact = (400..1009).map(|i| (f64::from(i) / 2.0).to_string());
        let names: Vec<String> = exact.chain(ranges).rev().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let has = |name: &str, value: f64| match name.split_once("..") {
            Some((low, high)) => low.parse::<f64>().unwrap() <= value && value < high.parse().unwrap(),
            None => name.parse::<f64>().unwrap() == value,
        };
        let plain: Vec<u32> =
            values.iter().map(|value| names.iter().position(|name| has(name, *value)).unwrap() as u32).collect();
        assert_eq!(codes(&table, "x", &names, &vec![true; names.len()]).unwrap(), plain);
        // A million rows and 20,000 levels take as long as sorting; twenty billion comparisons would not end.
        let values: Vec<f64> = (0..1_000_000).map(|i| f64::from(i % 20_000)).collect();
        let table = Table::new(vec![("x".into(), Column::Number(values))]).unwrap();
        let names: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(codes(&table, "x", &names, &[true; 20_000]).unwrap()[999_999], 19_999);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |column: &str, levels: &[&str]| {
            let error = codes(&people(), column, levels, &vec![true; levels.len()]).unwrap_err();
            (error.about, error.message)
        };
        let (about, message) = error("party", &["green", "red", "none", "blue"]);
        assert_eq!(
            (about, message.as_str()),
            (About::Level(3), "no row has the level `blue` of column `party` (it has green, red, none)")
        );
        assert!(error("party", &["Green", "red", "none", "green"]).1.contains("did you mean `green`?"));
        let (about, message) = error("party", &["green", "red"]);
        assert!(
            about == About::Levels && message.starts_with("column `party` has the value `none`, which has no share")
        );
        assert_eq!(
            error("age", &["..65", "60..70"]).1,
            "64.5 belongs to the levels `..65` and `60..70`; a value can have only one level"
        );
        assert_eq!(error("age", &["30..30"]).1, "the range `30..30` is empty, because 30 is not less than 30");
        assert!(error("age", &["young"]).1.starts_with("`young` is not a level of a column of numbers"));
        assert!(error("agee", &["1"]).1.contains("did you mean `age`?"));
        assert!(error("age", &["NaN"]).1.contains("not a level"));
        let twice = "the level `green` is given twice";
        assert_eq!(error("party", &["red", "green", "none", "green"]), (About::Level(3), twice.into()));
        let twice = "the level `3e1` is given twice, first as `30`";
        assert_eq!(error("age", &["30", "..30", "3e1", "64.."]), (About::Level(2), twice.into()));
        assert_eq!(error("age", &["..40", "40..", " ..40"]).0, About::Level(2));
        assert_eq!(error("agee", &["1"]).0, About::Column);
        let mut mixed = TextBuilder::default();
        ["36", "20", "old"].iter().for_each(|word| mixed.push(word));
        let table = Table::new(vec![("age".into(), mixed.finish())]).unwrap();
        let message = codes(&table, "age", &["..30", "30.."], &[true; 2]).unwrap_err().message;
        assert!(
            message.ends_with(
                "it mixes numbers and words: row 2 (counted from 0) has `old` (1 of 3 values are not numbers)"
            ),
            "{message}"
        );
        assert!(
            table.number_column("age").unwrap_err().to_string().ends_with("has `old` (1 of 3 values are not numbers)")
        );
    }
}
