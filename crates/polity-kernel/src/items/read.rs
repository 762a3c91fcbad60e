//! Reading of items from the rows of a table, in the usual formats of data sets.

use super::answers::{boxed, last_number, letter, letter_of};
use super::{Checker, Item, ItemPart, Recording, Scorer, program};
use crate::ask::PlannedCall;
use crate::items::Shape;
use crate::population::{Cell, Population, Table};
use crate::rng::{Draws, Stream};
use crate::scenario::ItemSource;
use crate::tool::{Arguments, ToolCall};
use crate::tree::Invalid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Mean and deviation of the number of lines of reference solutions, for the difficulty of programs.
const LINES: (f64, f64) = (6.0, 5.0);

/// Reads the items of a source from its table. The error names the key of the source.
pub fn read(
    source: &ItemSource,
    table: &Arc<Table>,
    recording: Option<&Arc<Recording>>,
    checker: Option<&Arc<str>>,
    seed: u64,
) -> Result<Vec<Item>, Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let column = |key: &str, name: &str| table.index(name).map_err(|error| invalid(key, error.to_string()));
    let named = |key: &str, name: &Option<String>, usual: Option<&str>| match (name, usual) {
        (Some(name), _) => column(key, name).map(Some),
        (None, Some(usual)) => Ok(table.index(usual).ok()),
        (None, None) => Ok(None),
    };
    let shape = source.shape;
    let question = column("question", source.question.as_deref().unwrap_or(shape.question()))?;
    let answer = match (&source.answer, shape.answer()) {
        (Some(name), _) => Some(column("answer", name)?),
        // A table without the answer column of the format has another format.
        (None, Some(usual)) => Some(column("answer", usual)?),
        (None, None) => None,
    };
    let distractor = named("distractor", &source.distractor, None)?;
    let topic = named("topic", &source.topic, shape.has_options().then_some("subject"))?;
    let id = named("id", &source.id, Some("id"))?;
    let level = named("difficulty", &None, (shape == Shape::Math).then_some("level"))?;
    let difficulty = source.difficulty.as_ref().map(|name| table.number_column(name));
    let difficulty = difficulty.transpose().map_err(|error| invalid("difficulty", error.to_string()))?;
    let choices = columns_of_options(shape, table)?;
    let code = match shape {
        Shape::Humaneval => Some((column("shape", "entry_point")?, column("shape", "test")?)),
        _ => None,
    };
    let plan = named("plan", &source.plan, None)?;
    let wrong = named("wrong", &source.wrong, None)?;
    let parts = named("parts", &source.parts, None)?;
    let judge: Option<Arc<str>> = source.judge.as_deref().map(Arc::from);
    let rows = table.rows() as u32;
    let count = source.count.unwrap_or(rows);
    if count == 0 || count > 10_000_000 {
        return Err(invalid("count", "there must be 1 to 10,000,000 items".into()));
    }
    // The population provides the rules of reading a row; if there are more items than rows, they are drawn by seed.
    let row_of = |i: u32| match count <= rows {
        true => i,
        false => Draws::new(seed, Stream::Population, 0, i).below(u64::from(rows)) as u32,
    };
    let all = Population::from_table(table.clone());
    let text = |c: usize, row: u32| all.cell(c, row).to_string();
    let item = |i: u32| {
        let row = row_of(i);
        let raw = answer.map(|c| text(c, row));
        let options: Vec<String> = match choices.as_slice() {
            [] => Vec::new(),
            [list] => listed(&text(*list, row)),
            several => several.iter().map(|c| text(*c, row)).collect(),
        };
        if shape.has_options() && !(2..=26).contains(&options.len()) {
            return Err(invalid("shape", format!("row {row} has {} options; there must be 2 to 26", options.len())));
        }
        let gold = raw.as_ref().map(|raw| gold(shape, raw, &options, row)).transpose()?;
        let solution = raw.as_deref().unwrap_or_default();
        let by_level =
            || level.map(|c| (last_number(&text(c, row)).and_then(|n| n.parse().ok()).unwrap_or(3.0) - 3.0) / 1.4);
        let declared = match shape {
            Shape::Gsm8k if solution.contains("<<") => (solution.matches("<<").count() as f64 - 3.1) / 1.43,
            Shape::Humaneval => (solution.trim().lines().count() as f64 - LINES.0) / LINES.1,
            _ => by_level().unwrap_or(0.0),
        };
        let asked = text(question, row);
        let program =
            code.map(|(entry, tests)| Arc::new(program(&asked, &text(entry, row), &text(tests, row), solution)));
        Ok(Item {
            index: i,
            id: recording.map_or_else(String::new, |_| id.map_or_else(|| row.to_string(), |c| text(c, row))),
            // Judges see the two answers of a pair by name, not in the question.
            question: if shape == Shape::Preference { asked } else { worded(asked, &options) },
            gold,
            difficulty: difficulty.map_or(declared, |c| all.number(c, row)),
            distractor: distractor.map(|c| text(c, row)),
            topic: topic.map(|c| text(c, row)),
            pair: shape == Shape::Preference,
            options,
            scorer: source.scorer.unwrap_or(if checker.is_some() { Scorer::Checker } else { shape.scorer() }),
            program,
            judge: judge.clone(),
            recording: recording.cloned(),
            plan: plan.map(|c| planned(&text(c, row), row)).transpose()?.unwrap_or_default(),
            wrong: Arc::new(wrong.map_or_else(Vec::new, |c| listed(&text(c, row)))),
            parts: parts.map(|c| parts_of(&text(c, row), row)).transpose()?.unwrap_or_default(),
            checker: checker
                .map(|source| Arc::new(Checker { source: source.clone(), row: row_of_table(table, &all, row) })),
        })
    };
    check_scorer(source)?;
    (0..count).map(item).collect()
}

/// The right answer of a row, as answers are compared with it, from its text `raw`.
fn gold(shape: Shape, raw: &str, options: &[String], row: u32) -> Result<String, Invalid> {
    let invalid = |message: String| Invalid { key: "answer".into(), message };
    match shape {
        Shape::Plain | Shape::Humaneval => Ok(raw.to_owned()),
        Shape::Gsm8k => {
            let end = raw.rsplit_once("####").map_or(raw, |(_, end)| end);
            last_number(end).ok_or_else(|| invalid(format!("row {row}: there is no number in the answer `{end}`")))
        }
        Shape::Math => Ok(boxed(raw).unwrap_or(raw).to_owned()),
        Shape::Preference => Some(raw.trim().to_ascii_uppercase())
            .filter(|letter| letter == "A" || letter == "B")
            .ok_or_else(|| invalid(format!("row {row}: the label must be `A` or `B`, not `{raw}`"))),
        Shape::Choice | Shape::Survey => {
            let index = raw.parse::<usize>().ok().filter(|i| *i < options.len()).and_then(letter_of);
            let none = || invalid(format!("row {row}: `{raw}` is not one of the options"));
            index.or_else(|| letter(raw, options)).ok_or_else(none)
        }
    }
}

/// The columns that hold the options of a question; one column of lists, or one for each option.
fn columns_of_options(shape: Shape, table: &Table) -> Result<Vec<usize>, Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let column = |key: &str, name: &str| table.index(name).map_err(|error| invalid(key, error.to_string()));
    let choices: Vec<usize> = match shape {
        _ if shape.has_options() && table.index("choices").is_ok() => vec![column("shape", "choices")?],
        _ if shape.has_options() => {
            ["A", "B", "C", "D", "E", "F"].iter().map_while(|name| table.index(name).ok()).collect()
        }
        _ => Vec::new(),
    };
    let choices = match shape {
        Shape::Preference => vec![column("shape", "answer_a")?, column("shape", "answer_b")?],
        _ => choices,
    };
    if shape.has_options() && choices.is_empty() {
        return Err(invalid("shape", "multiple choice needs a column `choices`, or columns `A`, `B` and so on".into()));
    }
    Ok(choices)
}

/// Checks that the scorer suits the shape of the items.
fn check_scorer(source: &ItemSource) -> Result<(), Invalid> {
    let invalid = |key: &str, message: String| Invalid { key: key.into(), message };
    let shape = source.shape;
    if source.judge.is_some() != (source.scorer == Some(Scorer::Judge)) {
        let what = "`scorer: judge` and `judge: provider/model` (the model that scores the answers) must be given \
                    together";
        return Err(invalid(if source.judge.is_some() { "judge" } else { "scorer" }, what.into()));
    }
    if source.scorer.is_some_and(|scorer| (scorer == Scorer::Checker) != source.checker.is_some()) {
        let what = "a `checker` scores answers by itself; leave `scorer` out, or name the file under `checker`";
        return Err(invalid("scorer", what.into()));
    }
    if source.scorer == Some(Scorer::Code) && shape != Shape::Humaneval {
        return Err(invalid("scorer", "only items of the shape `humaneval` have tests for scoring programs".into()));
    }
    if source.scorer == Some(Scorer::Choice) && !shape.has_options() && shape != Shape::Preference {
        return Err(invalid(
            "scorer",
            "only items of the shapes `choice`, `survey` and `preference` have options".into(),
        ));
    }
    Ok(())
}

/// A step of a plan: a call, or only what must be shown.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    #[serde(default)]
    tool: String,
    #[serde(default)]
    arguments: Arguments,
    finds: String,
}

impl Planned {
    fn call(self) -> PlannedCall {
        PlannedCall { call: ToolCall::new(self.tool, &self.arguments), finds: self.finds }
    }
}

/// Returns the cells of a row as a JSON object.
fn row_of_table(table: &Table, all: &Population, row: u32) -> String {
    let cell = |(c, (name, _)): (usize, (&str, _))| {
        let value = match all.cell(c, row) {
            // A missing number is null.
            Cell::Number(number) => serde_json::Value::from(number),
            Cell::Text(word) => serde_json::Value::from(word),
        };
        (name.to_owned(), value)
    };
    serde_json::Value::Object(table.columns().enumerate().map(cell).collect()).to_string()
}

/// Reads the parts of an item: a JSON object of `{"gold", "wrong", "difficulty", "topic", "plan"}` by name.
fn parts_of(cell: &str, row: u32) -> Result<Arc<BTreeMap<String, ItemPart>>, Invalid> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        gold: String,
        #[serde(default)]
        wrong: Vec<String>,
        #[serde(default)]
        difficulty: f64,
        topic: Option<String>,
        #[serde(default)]
        plan: Vec<Planned>,
    }
    if cell.trim().is_empty() {
        return Ok(Arc::default());
    }
    let parts: BTreeMap<String, Part> = serde_json::from_str(cell).map_err(|error| Invalid {
        key: "parts".into(),
        message: format!("row {row}: the parts cannot be read: {error}"),
    })?;
    let part = |Part { gold, wrong, difficulty, topic, plan }| {
        let plan = Arc::new(plan.into_iter().map(Planned::call).collect());
        ItemPart { gold, wrong: Arc::new(wrong), difficulty, topic, plan }
    };
    Ok(Arc::new(parts.into_iter().map(|(name, read)| (name, part(read))).collect()))
}

/// Reads the plan of an item: a JSON list of `{"tool": ..., "arguments": {...}, "finds": ...}`. A step without a tool says what must be
/// shown.
fn planned(cell: &str, row: u32) -> Result<Arc<Vec<PlannedCall>>, Invalid> {
    if cell.trim().is_empty() {
        return Ok(Arc::default());
    }
    let planned: Vec<Planned> = serde_json::from_str(cell).map_err(|error| Invalid {
        key: "plan".into(),
        message: format!("row {row}: the plan cannot be read: {error}"),
    })?;
    Ok(Arc::new(planned.into_iter().map(Planned::call).collect()))
}

/// Reads a list from a table cell, where it is JSON.
fn listed(cell: &str) -> Vec<String> {
    let values: Vec<serde_json::Value> = serde_json::from_str(cell).unwrap_or_default();
    let text = |value: serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values.into_iter().map(text).collect()
}

/// Returns the question with its options below it.
fn worded(question: String, options: &[String]) -> String {
    let lines = options.iter().enumerate().filter_map(|(i, option)| Some(format!("\n{}) {option}", letter_of(i)?)));
    lines.fold(question, |all, line| all + &line)
}
