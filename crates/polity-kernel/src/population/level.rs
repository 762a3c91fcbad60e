//! Levels: what a share is a share of.

use super::{Column, Table, TableError, listed};
use crate::tree::nearest;

/// A level of a column as a person writes it.
///
/// In a column of words it is the word. In a column of numbers it is a number (`3`), or a range with a lower end that
/// belongs to it and an upper end that does not: `18..30`, `65..`, `..18`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level<'a> {
    /// A word, letter for letter.
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
                Err(format!("the range `{text}` is empty, for {low} is not less than {high}"))
            }
            _ => Err(format!("`{text}` is no level of a column of numbers; write a number, 3, or a range, 18..30")),
        }
    }

    fn has(self, value: f64) -> bool {
        match self {
            Level::Number(number) => number == value,
            Level::Range(low, high) => low <= value && value < high,
            Level::Word(_) => false,
        }
    }
}

/// What is wrong with a list of levels: which of them, if one is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    /// The position of the level in the list; `None` when it is about the column.
    pub level: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl LevelError {
    pub(super) fn at(level: usize, message: impl Into<String>) -> Self {
        LevelError { level: Some(level), message: message.into() }
    }

    pub(super) fn general(message: impl Into<String>) -> Self {
        LevelError { level: None, message: message.into() }
    }
}

impl From<TableError> for LevelError {
    fn from(error: TableError) -> Self {
        LevelError::general(error.to_string())
    }
}

/// The level of each row of a table in one of its columns, as a position in `levels`.
///
/// # Errors
/// No such column; a level that can not be read or that no row has; two levels that share a row; a row without a level.
pub fn codes(table: &Table, column: &str, levels: &[&str]) -> Result<Vec<u32>, LevelError> {
    let index = table.index(column)?;
    let Some((_, data)) = table.columns().nth(index) else { return Ok(Vec::new()) };
    let of_words = matches!(data, Column::Text { .. });
    let mut read = Vec::with_capacity(levels.len());
    for (i, text) in levels.iter().enumerate() {
        read.push(Level::read(text, of_words).map_err(|message| LevelError::at(i, message))?);
    }
    let mut found = vec![false; levels.len()];
    let codes = match data {
        Column::Text { codes, words } => {
            let level_of = |word: &String| levels.iter().position(|level| level == word);
            let by_word: Vec<Option<usize>> = words.iter().map(level_of).collect();
            let mut out = Vec::with_capacity(codes.len());
            for code in codes {
                let word = *code as usize;
                let Some(level) = by_word[word] else { return Err(unnamed(column, data, &words[word], levels)) };
                found[level] = true;
                out.push(level as u32);
            }
            out
        }
        Column::Number(values) => {
            let mut out = Vec::with_capacity(values.len());
            for value in values {
                let mut fitting = (0..read.len()).filter(|i| read[*i].has(*value));
                let Some(level) = fitting.next() else {
                    return Err(unnamed(column, data, &value.to_string(), levels));
                };
                if let Some(other) = fitting.next() {
                    let message = format!("{value} is of the levels `{}` and `{}`", levels[level], levels[other]);
                    return Err(LevelError::at(other, format!("{message}; a value has one level")));
                }
                found[level] = true;
                out.push(level as u32);
            }
            out
        }
    };
    match found.iter().position(|found| !found) {
        None => Ok(codes),
        Some(i) => {
            let values = values(data);
            let near = nearest(levels[i], values.iter().map(String::as_str));
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let known = format!("(it has {}){}", listed(&values), data.mixture());
            Err(LevelError::at(i, format!("no row has the level `{}` of column `{column}`{hint} {known}", levels[i])))
        }
    }
}

fn unnamed(column: &str, data: &Column, value: &str, levels: &[&str]) -> LevelError {
    let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
    LevelError::general(format!(
        "column `{column}` has the value `{value}`, which has no share (shares are given for {}); give it one, 0 leaves its \
         rows out{}",
        listed(&levels),
        data.mixture()
    ))
}

/// The different values of a column, as a person reads them: words as they appear, numbers ascending.
fn values(column: &Column) -> Vec<String> {
    match column {
        Column::Text { words, .. } => words.clone(),
        Column::Number(values) => {
            let mut values = values.clone();
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            values.iter().map(f64::to_string).collect()
        }
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
        let of = |column: &str, levels: &[&str]| codes(&people(), column, levels).unwrap();
        assert_eq!(of("party", &["red", "none", "green"]), [2, 0, 2, 1]);
        assert_eq!(of("age", &["..30", "30..65", "65.."]), [0, 1, 1, 2]);
        assert_eq!(of("age", &["65", "64.5", " 30 .. 31", "1.8e1"]), [3, 2, 1, 0]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = |column: &str, levels: &[&str]| {
            let error = codes(&people(), column, levels).unwrap_err();
            (error.level, error.message)
        };
        let (level, message) = error("party", &["green", "red", "none", "blue"]);
        assert_eq!(
            (level, message.as_str()),
            (Some(3), "no row has the level `blue` of column `party` (it has green, red, none)")
        );
        assert!(error("party", &["Green", "red", "none", "green"]).1.contains("did you mean `green`?"));
        let (level, message) = error("party", &["green", "red"]);
        assert!(level.is_none() && message.starts_with("column `party` has the value `none`, which has no share"));
        assert_eq!(
            error("age", &["..65", "60..70"]).1,
            "64.5 is of the levels `..65` and `60..70`; a value has one level"
        );
        assert_eq!(error("age", &["30..30"]).1, "the range `30..30` is empty, for 30 is not less than 30");
        assert!(error("age", &["young"]).1.starts_with("`young` is no level of a column of numbers"));
        assert!(error("agee", &["1"]).1.contains("did you mean `age`?"));
        assert!(error("age", &["NaN"]).1.contains("no level"));
        let mut mixed = TextBuilder::default();
        ["36", "20", "old"].iter().for_each(|word| mixed.push(word));
        let table = Table::new(vec![("age".into(), mixed.finish())]).unwrap();
        let message = codes(&table, "age", &["..30", "30.."]).unwrap_err().message;
        assert!(message.ends_with("it mixes numbers and words: row 2, counted from 0, has `old`"), "{message}");
        assert!(table.number_column("age").unwrap_err().to_string().ends_with("has `old`"));
    }
}
