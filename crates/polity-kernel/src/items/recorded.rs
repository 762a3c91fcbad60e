//! Recorded answers of models to the items of a data set, from a table that the scenario names (`items.recorded`).

use crate::ask::{ChatMessage, Part, Recorded, Request, Role, Task};
use crate::population::{Population, Table};
use crate::tree::{Invalid, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// The provider of recorded answers, with the slash: `recorded/NAME`.
pub const RECORDED: &str = "recorded/";
/// Columns that say which question a row answers.
const KEYS: [&str; 5] = ["item", "model", "sample", "round", "order"];
/// In a table with a column for each model: it was not asked.
const NOT_ASKED: &str = "-";
/// Columns that say what the answer cost.
const COSTS: [&str; 3] = ["tokens_in", "tokens_out", "cost_usd"];

/// The name of a model in a table of recorded answers; `None` for models of other providers.
#[must_use]
pub fn recorded_model(name: &str) -> Option<&str> {
    name.strip_prefix(RECORDED)
}

/// Answers that models once gave to the items of a data set.
///
/// The columns are `item` (the item's id), `model` and `answer`. An empty answer means that the model replied, but no answer could be
/// read. There may be more columns: `sample` and `round` (numbers from 0), `order` (for pairs: the letters of the answers in the order
/// in which the judge saw them, `AB` or `BA`), `tokens_in`, `tokens_out` and `cost_usd`. Any other column is a field of the reply.
/// Without a column `sample`, rows that answer the same question are its samples, in their order.
///
/// A table without the columns `model` and `answer` has a column for each model, with its answers; `-` means that it was not asked.
#[derive(Debug, PartialEq)]
pub struct Recording {
    people: Population,
    /// By item and model, in the order of the table.
    rows: BTreeMap<(String, String), Vec<Row>>,
    models: BTreeSet<String>,
    /// Whether a column tells pairs in one order from pairs in the other.
    ordered: bool,
    /// Whether there is a column of rounds.
    rounds: bool,
    /// The columns of other fields of a reply, by name.
    fields: Vec<(String, usize)>,
}

/// A recorded answer.
#[derive(Debug, PartialEq)]
struct Row {
    /// Its row in the table.
    row: u32,
    /// The column of the answer.
    answer: usize,
    /// Its number among the samples, if the table has such a column.
    sample: Option<u32>,
    round: u32,
    order: String,
    tokens: [u64; 2],
    cost_usd: f64,
}

/// A question that may have a recorded answer.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The item's id.
    pub item: &'a str,
    /// Whether the item is a pair of answers.
    pub pair: bool,
    /// The model's name in the table.
    pub model: &'a str,
    /// Which sample of this model, from 0.
    pub sample: u32,
    /// The round, from 0.
    pub round: u32,
    /// The kind of work.
    pub task: Task,
    /// What the model would be shown.
    pub request: &'a Request,
}

impl Recording {
    /// Reads a table. The error names the column or the row.
    pub fn read(table: &Arc<Table>) -> Result<Self, Invalid> {
        let invalid = |message: String| Invalid { key: "recorded".into(), message };
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        let place = |name: &str| names.iter().position(|other| *other == name);
        let column = |name: &str| table.index(name).map_err(|error| invalid(error.to_string()));
        let item = column("item")?;
        let wide = place("model").is_none() && place("answer").is_none();
        let known = |name: &&str| KEYS.contains(name) || COSTS.contains(name) || *name == "answer";
        let others =
            names.iter().filter(|name| !known(name)).filter_map(|name| Some(((*name).to_owned(), place(name)?)));
        let mut recording = Recording {
            people: Population::from_table(table.clone()),
            rows: BTreeMap::new(),
            models: BTreeSet::new(),
            ordered: place("order").is_some(),
            rounds: place("round").is_some(),
            fields: others.collect(),
        };
        if wide {
            let models = std::mem::take(&mut recording.fields);
            if models.is_empty() {
                return Err(invalid("there is no column `answer`, and no column of a model".into()));
            }
            for row in 0..table.rows() as u32 {
                for (model, answer) in &models {
                    if recording.cell(*answer, row) != NOT_ASKED {
                        recording.add(item, model.clone(), Row::plain(row, *answer));
                    }
                }
            }
            return Ok(recording);
        }
        let (model, answer) = (column("model")?, column("answer")?);
        for row in 0..table.rows() as u32 {
            let read = recording.row(row, answer, &place).map_err(invalid)?;
            recording.add(item, recording.cell(model, row), read);
        }
        match recording.twice() {
            Some(row) => Err(invalid(format!("row {row} answers the same question as an earlier row"))),
            None => Ok(recording),
        }
    }

    fn add(&mut self, item: usize, model: String, row: Row) {
        let key = (self.cell(item, row.row), model);
        self.models.insert(key.1.clone());
        self.rows.entry(key).or_default().push(row);
    }

    /// Reads a row of a table with a row for each answer.
    fn row(&self, row: u32, answer: usize, place: &dyn Fn(&str) -> Option<usize>) -> Result<Row, String> {
        let cell = |name: &str| place(name).map(|column| self.cell(column, row));
        let whole = |name: &str| match cell(name) {
            Some(cell) => cell
                .parse()
                .map(Some)
                .map_err(|_| format!("row {row}: `{name}` must be a whole number from 0, not `{cell}`")),
            None => Ok(None),
        };
        // A cost that was not recorded is an empty cell.
        let cost = |name: &str| match cell(name).filter(|cell| !cell.is_empty()) {
            Some(cell) => cell
                .parse::<f64>()
                .ok()
                .filter(|cost| cost.is_finite() && *cost >= 0.0)
                .ok_or_else(|| format!("row {row}: `{name}` must be a number from 0, not `{cell}`")),
            None => Ok(0.0),
        };
        let [tokens_in, tokens_out, dollars] = COSTS;
        Ok(Row {
            sample: whole("sample")?,
            round: whole("round")?.unwrap_or(0),
            order: cell("order").unwrap_or_default(),
            tokens: [cost(tokens_in)? as u64, cost(tokens_out)? as u64],
            cost_usd: cost(dollars)?,
            ..Row::plain(row, answer)
        })
    }

    /// The first row with the same sample number as an earlier one that answers the same question.
    fn twice(&self) -> Option<u32> {
        let mut twice = self.rows.values().filter_map(|rows| {
            let mut taken = BTreeSet::new();
            let key = |row: &Row| Some((row.sample?, row.round, row.order.clone()));
            rows.iter().find(|row| key(row).is_some_and(|key| !taken.insert(key))).map(|row| row.row)
        });
        twice.next()
    }

    /// Returns whether it has answers of a model; if not, the error names the nearest one.
    pub fn knows(&self, model: &str) -> Result<(), String> {
        if self.models.contains(model) {
            return Ok(());
        }
        let meant = nearest(model, self.models.iter().map(String::as_str));
        let meant = meant.map_or(String::new(), |near| format!(", did you mean `{RECORDED}{near}`?"));
        let known: Vec<&str> = self.models.iter().take(40).map(String::as_str).collect();
        let more = if self.models.len() > known.len() { ", ..." } else { "" };
        Err(format!("the table of recorded answers has no model `{model}`{meant} (it has {}{more})", known.join(", ")))
    }

    fn cell(&self, column: usize, row: u32) -> String {
        self.people.cell(column, row).to_string()
    }

    /// Returns the recorded answer to a question, or why there is none. A model that is shown the answers of others has an answer only in
    /// the round of a table with rounds, and only if these were the answers of the round before.
    pub fn answer(&self, lookup: &Lookup<'_>) -> Result<Recorded, String> {
        let Lookup { item, pair, model, sample, round, task, request } = *lookup;
        let none = |why: &str| Err(format!("`{RECORDED}{model}` has no recorded answer to item {item}: {why}"));
        let wanted = if pair { Task::Choose } else { Task::Solve };
        if task != wanted {
            return none(&format!("the table records answers, not the work `{}`", task.name()));
        }
        let spoke = |message: &ChatMessage| {
            message.role == Role::Assistant || message.parts.iter().any(|part| matches!(part, Part::Finding { .. }))
        };
        if request.messages.iter().any(spoke) {
            return none("it would be shown an answer of its own or a review");
        }
        if round > 0 && !self.rounds {
            return none("the table has no rounds, and this is not the first");
        }
        if !pair && shown(request).next().is_some() {
            let before = self.answers_of(item, round.checked_sub(1));
            if shown(request).any(|(_, answer)| !before.contains(answer.trim())) {
                return none("it would be shown other answers than those on record");
            }
        }
        let order: String = shown(request).map(|(by, _)| by).collect();
        let rows = self.rows.get(&(item.to_owned(), model.to_owned())).map(Vec::as_slice).unwrap_or_default();
        let mut fitting = rows.iter().filter(|row| row.round == round && (!self.ordered || row.order == order));
        let found = fitting.clone().find(|row| row.sample == Some(sample));
        let found = found.or_else(|| fitting.nth(sample as usize).filter(|row| row.sample.is_none()));
        let Some(Row { row, answer, tokens: [tokens_in, tokens_out], cost_usd, .. }) = found else {
            return none(&format!("sample {sample} of round {round} is not on record"));
        };
        let mut fields: BTreeMap<String, String> =
            self.fields.iter().map(|(name, column)| (name.clone(), self.cell(*column, *row))).collect();
        fields.insert("answer".into(), self.cell(*answer, *row));
        Ok(Recorded { fields, tokens_in: *tokens_in, tokens_out: *tokens_out, cost_usd: *cost_usd })
    }

    /// Returns the next item that a model has answered; after the last, the first.
    #[must_use]
    pub fn other(&self, item: &str, model: &str) -> Option<&str> {
        let of_model = |((_, other), _): &(&(String, String), &Vec<Row>)| other == model;
        let after = (item.to_owned(), model.to_owned());
        let next = self.rows.range((Excluded(after), Unbounded)).find(of_model);
        next.or_else(|| self.rows.iter().find(of_model)).map(|((item, _), _)| item.as_str())
    }

    /// Answers of all models to an item in a round; none before the first.
    fn answers_of(&self, item: &str, round: Option<u32>) -> BTreeSet<String> {
        let from = (item.to_owned(), String::new());
        let of_item = self.rows.range(from..).take_while(|((other, _), _)| other == item);
        let rows = of_item.flat_map(|(_, rows)| rows).filter(|row| Some(row.round) == round);
        rows.map(|row| self.cell(row.answer, row.row).trim().to_owned()).collect()
    }
}

impl Row {
    /// An answer to the first question, without more.
    fn plain(row: u32, answer: usize) -> Row {
        Row { row, answer, sample: None, round: 0, order: String::new(), tokens: [0, 0], cost_usd: 0.0 }
    }
}

/// Whether a request shows the answers of a pair in the other order, the second first.
pub(crate) fn in_other_order(request: &Request) -> bool {
    let mut names = shown(request).map(|(by, _)| by);
    matches!((names.next(), names.next()), (Some(first), Some(second)) if first > second)
}

/// The answers that a request shows: by whom, and what.
fn shown(request: &Request) -> impl Iterator<Item = (&str, &str)> {
    request.messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::Said { by, answer, .. } => Some((by.as_str(), answer.as_str())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ask::ResponseFormat;
    use crate::population::TextBuilder;

    fn table(columns: &[(&str, &[&str])]) -> Arc<Table> {
        let column = |(name, cells): &(&str, &[&str])| {
            let mut text = TextBuilder::default();
            cells.iter().for_each(|cell| text.push(cell));
            ((*name).to_string(), text.finish())
        };
        Arc::new(Table::new(columns.iter().map(column).collect()).unwrap())
    }

    fn request(parts: Vec<Part>) -> Request {
        Request::new("recorded/a", vec![ChatMessage { role: Role::User, parts }], ResponseFormat::Text)
    }

    fn said(by: &str, answer: &str) -> Part {
        Part::Said { by: by.into(), answer: answer.into(), reasons: String::new() }
    }

    fn asked(request: &Request) -> Lookup<'_> {
        Lookup { item: "q1", pair: false, model: "a", sample: 0, round: 0, task: Task::Solve, request }
    }

    fn answer(found: Result<Recorded, String>) -> String {
        found.map_or_else(|why| why, |found| found.fields["answer"].clone())
    }

    #[test]
    fn rows_of_the_same_question_are_its_samples() {
        let recording = Recording::read(&table(&[
            ("item", &["q1", "q1", "q2", "q1"]),
            ("model", &["a", "a", "a", "b"]),
            ("answer", &["3", "4", "5", "6"]),
            ("tokens_out", &["10", "20", "", "30"]),
        ]))
        .unwrap();
        let plain = request(vec![Part::Text("?".into())]);
        let found = |sample, model| recording.answer(&Lookup { sample, model, ..asked(&plain) });
        assert_eq!([found(0, "a"), found(1, "a"), found(0, "b")].map(answer), ["3", "4", "6"]);
        assert_eq!(found(1, "a").unwrap().tokens_out, 20);
        assert!(found(2, "a").unwrap_err().contains("sample 2"), "there are two");
        assert!(recording.knows("c").is_err() && recording.knows("b").is_ok());
        assert_eq!((recording.other("q1", "a"), recording.other("q2", "a")), (Some("q2"), Some("q1")));
        assert_eq!((recording.other("q1", "b"), recording.other("q1", "c")), (Some("q1"), None));
    }

    #[test]
    fn nothing_is_made_up() {
        let recording = Recording::read(&table(&[("item", &["q1"]), ("model", &["a"]), ("answer", &["3"])])).unwrap();
        let plain = request(vec![Part::Text("?".into())]);
        assert_eq!(answer(recording.answer(&asked(&plain))), "3");
        for task in [Task::Rate, Task::Write, Task::Mislead, Task::Check] {
            assert!(recording.answer(&Lookup { task, ..asked(&plain) }).is_err(), "{task:?}");
        }
        assert!(recording.answer(&Lookup { round: 1, ..asked(&plain) }).is_err());
        assert!(recording.answer(&Lookup { item: "q2", ..asked(&plain) }).is_err());
        let others = request(vec![Part::Text("?".into()), said("b", "3")]);
        assert!(recording.answer(&asked(&others)).is_err(), "it was not shown anything");
        let finding = Part::Finding { by: "b".into(), right: false, words: String::new() };
        assert!(recording.answer(&asked(&request(vec![finding]))).is_err());
    }

    #[test]
    fn later_rounds_count_if_the_answers_shown_are_those_of_the_round_before() {
        let recording = Recording::read(&table(&[
            ("item", &["q1", "q1", "q1"]),
            ("model", &["a", "b", "a"]),
            ("round", &["0", "0", "1"]),
            ("answer", &["3", "4", "5"]),
        ]))
        .unwrap();
        let later = |parts| {
            let request = request(parts);
            answer(recording.answer(&Lookup { round: 1, ..asked(&request) }))
        };
        assert_eq!(later(vec![said("b", "4")]), "5");
        assert!(later(vec![said("b", "9")]).contains("other answers"));
    }

    #[test]
    fn judges_of_pairs_answer_by_the_order_in_which_they_saw_the_pair() {
        let recording = Recording::read(&table(&[
            ("item", &["q1", "q1"]),
            ("model", &["a", "a"]),
            ("order", &["AB", "BA"]),
            ("answer", &["A", "B"]),
        ]))
        .unwrap();
        let verdict = |order: [&str; 2]| {
            let request = request(order.map(|by| said(by, "text")).to_vec());
            answer(recording.answer(&Lookup { pair: true, task: Task::Choose, ..asked(&request) }))
        };
        assert_eq!([verdict(["A", "B"]), verdict(["B", "A"])], ["A", "B"]);
    }

    #[test]
    fn a_table_may_have_a_column_for_each_model() {
        let recording =
            Recording::read(&table(&[("item", &["q1", "q2"]), ("a", &["3", "-"]), ("b", &["", "5"])])).unwrap();
        let plain = request(vec![Part::Text("?".into())]);
        let found = |item, model| recording.answer(&Lookup { item, model, ..asked(&plain) });
        assert_eq!([found("q1", "a"), found("q1", "b"), found("q2", "b")].map(answer), ["3", "", "5"]);
        assert!(found("q2", "a").is_err() && recording.knows("c").is_err());
    }

    #[test]
    fn tables_that_are_no_recordings_are_refused() {
        let why = |columns: &[(&str, &[&str])]| Recording::read(&table(columns)).unwrap_err().message;
        assert!(why(&[("item", &["q1"]), ("model", &["a"])]).contains("answer"));
        assert!(why(&[("item", &["q1"])]).contains("no column of a model"));
        let twice: &[(&str, &[&str])] =
            &[("item", &["q1", "q1"]), ("model", &["a", "a"]), ("sample", &["0", "0"]), ("answer", &["3", "4"])];
        assert!(why(twice).contains("row 1 answers the same question"));
        let word: &[(&str, &[&str])] =
            &[("item", &["q1"]), ("model", &["a"]), ("round", &["first"]), ("answer", &["3"])];
        assert!(why(word).contains("`first`"));
        let cost: &[(&str, &[&str])] =
            &[("item", &["q1"]), ("model", &["a"]), ("tokens_out", &["many"]), ("answer", &["3"])];
        assert!(why(cost).contains("`many`"));
    }
}
