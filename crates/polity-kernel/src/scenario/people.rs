//! The population that a scenario describes.

use super::data::{MissingSource, Prepared, prepare};
use super::{FileKind, FileWish, Inputs};
use crate::outline::Guesses;
use crate::population::fit::{self, Cell, Filled, FitError, Marginal};
use crate::population::independent::{independent, independent_grouped};
use crate::population::level::About;
use crate::population::persona::{Labels, Template, shown};
use crate::population::{self, Census, Column, Population, Table};
use crate::rng::{Draws, Stream};
use crate::tree::{Invalid, Node, TreeError, Value, child, item, nearest};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where the attributes of agents come from.
///
/// With a `file` alone, agents are its rows, or are drawn from them evenly. `marginals` or `quotas` set the shares of attributes.
/// Without a `file`, `marginals` make independent attributes.
///
/// Agents that are the rows keep the file's order if there is one cohort, or if ties are given by agent (a topology `file`, or
/// `degrees`). Otherwise, with several cohorts, they are shuffled, because cohorts take agents in order and files are often sorted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PopulationSource {
    /// A CSV, TSV, JSONL or Parquet file, relative to the scenario. Its columns become attributes.
    pub file: Option<String>,
    /// The columns of the file that are read. Default: all.
    pub columns: Option<Vec<String>>,
    /// What becomes of rows with a missing value (an empty cell, NA, N/A, NaN or null) in a column that is read: `drop` leaves the row
    /// out, `keep` keeps it without the attribute, `level` reads it as the word `missing`. One word for all columns, or
    /// `{COLUMN: WORD, ...}`. Default: `keep`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub missing: Option<MissingSource>,
    /// Further values that count as missing: `[-99, refused]`.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub na_values: Vec<Node>,
    /// Further attributes: formulas over the others, `{generation: "'young' if age < 30 else 'old'"}`, or combinations of them,
    /// `{cell: [sex, party]}` with values such as `sex=f, party=green`. Each may use those before it.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub derive: Option<Node>,
    /// The column of the file with the initial weights of its rows.
    pub weight: Option<String>,
    /// Shares of the levels of several columns, all to be met at once.
    pub marginals: Option<Vec<MarginalSource>>,
    /// Shares of cells, to be met exactly: a list of `{COLUMN: LEVEL, ..., share: 0.2}`, or `{file: ...}` with such rows.
    pub quotas: Option<Node>,
    /// Labels of values of columns in `persona`: `{vote: {0: Bill Clinton, 1: Bob Dole}}`.
    #[serde(default)]
    pub labels: Labels,
    /// A template with names of columns in braces. Filled in, it becomes each agent's attribute `persona`.
    pub persona: Option<String>,
}

/// Shares of one column's levels, or a file with those of several columns.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarginalSource {
    /// The column.
    pub column: Option<String>,
    /// Levels and shares: `{green: 0.2, red: 0.8}`, `{18..30: 0.25, 30..: 0.75}`.
    pub shares: Option<Node>,
    /// A table with the columns `column`, `level` and `share`.
    pub file: Option<String>,
}

/// The name of the attribute with the persona text.
const PERSONA: &str = "persona";

impl PopulationSource {
    /// Returns the files it names.
    pub(super) fn files(&self) -> Vec<FileWish> {
        let wish = |path: &str, key: String| FileWish { path: path.to_owned(), key, kind: FileKind::Table };
        let own = self.file.iter().map(|path| wish(path, "population.file".into()));
        let of_marginals = self.marginals.iter().flatten().enumerate().filter_map(|(i, marginal)| {
            marginal.file.as_ref().map(|path| wish(path, format!("population.marginals[{i}].file")))
        });
        let of_quotas = self.quotas.iter().filter_map(|quotas| match quotas.get("file") {
            Some(Node { value: Value::Text(path), .. }) => Some(wish(path, "population.quotas.file".into())),
            _ => None,
        });
        own.chain(of_marginals).chain(of_quotas).collect()
    }
}

/// Makes an error at a key below `population`.
fn invalid(key: impl Into<String>, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}

/// A population under construction: the scenario's request, with the contents of its files.
pub(super) struct People<'a> {
    source: &'a PopulationSource,
    node: &'a Node,
    inputs: &'a Inputs,
    prepared: Option<Prepared>,
}

/// A population, and the rows of the table that some society of it may have.
struct Made {
    people: Population,
    /// By row; `None` if any row may occur.
    possible: Option<Vec<bool>>,
}

impl From<Population> for Made {
    fn from(people: Population) -> Self {
        Made { people, possible: None }
    }
}

impl<'a> People<'a> {
    /// `node` is the scenario's `population`.
    pub fn new(source: &'a PopulationSource, node: &'a Node, inputs: &'a Inputs) -> Result<Self, TreeError> {
        let mut people = People { source, node, inputs, prepared: None };
        people.check().map_err(|invalid| people.blame(invalid))?;
        if let Some(file) = &source.file {
            let table = people.read(file, "file").map_err(|invalid| people.blame(invalid))?;
            people.prepared = Some(prepare(table, source).map_err(|invalid| people.blame(invalid))?);
        }
        Ok(people)
    }

    fn blame(&self, invalid: Invalid) -> TreeError {
        let mut error = self.node.blame("population", invalid);
        // A missing value here has no default.
        error.help = None;
        error
    }

    /// Returns the rows of the microdata: the number of agents, if the scenario names none.
    pub fn rows(&self) -> Option<u32> {
        self.table().map(|table| table.rows() as u32)
    }

    /// Returns the table behind the agents.
    fn table(&self) -> Option<&Arc<Table>> {
        self.prepared.as_ref().map(|prepared| &prepared.table)
    }

    /// Estimates the bytes of a population of `n`: a row per person of the file, else a row per agent.
    pub fn memory_bytes(&self, n: u32) -> f64 {
        let (rows, columns) = match self.table() {
            Some(table) => (table.rows() as f64, 0.0),
            None => (f64::from(n), self.source.marginals.iter().flatten().count() as f64),
        };
        let persona = self.source.persona.as_ref().map_or(0.0, |words| 80.0 + 1.5 * words.len() as f64);
        f64::from(n) * 8.0 + rows * (8.0 * columns + persona)
    }

    /// Makes the population of `n` agents, or its outline if guesses are noted. `shuffled`: the rows of a file do not keep their
    /// order even if every one of them is an agent.
    pub fn make(&self, n: u32, shuffled: bool, seed: u64, outline: Option<&Guesses>) -> Result<Population, TreeError> {
        let made = self.people(n, shuffled, seed, outline).and_then(|made| self.with_persona(made));
        let made = made.map(|people| match &self.prepared {
            Some(Prepared { rows, dropped, table }) => {
                people.with_census(Census { rows: *rows, missing: dropped.clone(), eligible: table.rows() as u32 })
            }
            None => people,
        });
        made.map_err(|invalid| {
            // Of several wrong values, the first is reported.
            outline.into_iter().for_each(Guesses::note);
            self.blame(invalid)
        })
    }

    fn read(&self, file: &str, key: &str) -> Result<&'a Arc<Table>, Invalid> {
        self.inputs.tables.get(file).ok_or_else(|| invalid(key, format!("`{file}` was not read")))
    }

    fn check(&self) -> Result<(), Invalid> {
        let source = self.source;
        let no_file = source.file.is_none();
        let empty = |key: &&str| match self.node.get(key).map(|node| &node.value) {
            Some(Value::Null) => true,
            Some(Value::List(items)) => items.is_empty(),
            _ => false,
        };
        if let Some(key) = ["marginals", "quotas"].into_iter().find(empty) {
            return Err(invalid(key, "the list is empty"));
        }
        match (&source.marginals, &source.quotas) {
            (Some(_), Some(_)) => Err(invalid("quotas", "give `marginals` or `quotas`, not both")),
            (None, Some(_)) if no_file => {
                Err(invalid("quotas", "quotas are drawn from people; add a `file` with people"))
            }
            (None, None) if no_file => Err(invalid("", "give a `file` with people, or `marginals`")),
            _ if no_file && source.derive.is_some() => {
                Err(invalid("derive", "attributes are derived from those of a `file` with people"))
            }
            _ if no_file && (source.columns.is_some() || source.missing.is_some() || !source.na_values.is_empty()) => {
                let keys = ["columns", "missing", "na_values"];
                let key = keys.into_iter().find(|key| self.node.get(key).is_some()).unwrap_or_default();
                Err(invalid(key, "there is no `file` to which this could apply"))
            }
            _ if no_file && source.weight.is_some() => Err(invalid("weight", "weights need a `file` with people")),
            _ if source.persona.is_none() && !source.labels.is_empty() => {
                Err(invalid("labels", "labels are used in a `persona`, but there is none"))
            }
            _ => Ok(()),
        }
    }

    fn with_persona(&self, made: Made) -> Result<Population, Invalid> {
        let Some(template) = &self.source.persona else { return Ok(made.people) };
        let table = made.people.table();
        let template = Template::read(template, table).map_err(|message| invalid("persona", message))?;
        self.check_labels(&template, table)?;
        // A value that no agent can have needs no label.
        let wanted = |row: usize| made.possible.as_ref().is_none_or(|possible| possible[row]);
        let texts =
            template.render(table, &self.source.labels, wanted).map_err(|message| invalid("labels", message))?;
        let table = Table::clone(table).with(PERSONA, texts).map_err(|_| {
            let message = format!("the data already have a column `{PERSONA}`; rename it, or remove the template");
            invalid("persona", message)
        })?;
        made.people.with_table(Arc::new(table)).map_err(|error| invalid("", error.to_string()))
    }

    /// Refuses labels that would never be seen, which are misspelt names.
    fn check_labels(&self, template: &Template, table: &Table) -> Result<(), Invalid> {
        for (column, labels) in &self.source.labels {
            let key = child("labels", column);
            let index = table.index(column).map_err(|error| invalid(&key, error.to_string()))?;
            if !template.shows(column) {
                return Err(invalid(
                    key,
                    format!("`persona` does not show this column; write `{{{column}}}` into it, or remove the labels"),
                ));
            }
            let Some((_, data)) = table.columns().nth(index) else { continue };
            let mut known: BTreeSet<String> = match data {
                Column::Number(values) => values.iter().map(|value| shown(population::Cell::Number(*value))).collect(),
                Column::Text { words, .. } => words.iter().cloned().collect(),
            };
            // A level with share 0 may have an unused label.
            known.extend(
                self.marginals()?
                    .0
                    .into_iter()
                    .filter(|marginal| marginal.column == *column)
                    .flat_map(|marginal| marginal.shares.into_iter().map(|(level, _)| level.trim().to_owned())),
            );
            if let Some(value) = labels.keys().find(|value| !known.contains(*value)) {
                let hint = nearest(value, known.iter().map(String::as_str));
                let hint = hint.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(invalid(
                    child(&key, value),
                    format!("no agent can have the value `{value}` of column `{column}`{hint}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the initial weights of the rows of the file.
    fn base<'t>(&self, table: &'t Table) -> Result<Option<&'t [f64]>, Invalid> {
        let Some(name) = &self.source.weight else { return Ok(None) };
        let base = of_column(table, name).map_err(|message| invalid("weight", message))?;
        fit::check_base(base, table.rows()).map_err(|error| invalid("weight", error.message))?;
        Ok(Some(base))
    }

    fn people(&self, n: u32, shuffled: bool, seed: u64, outline: Option<&Guesses>) -> Result<Made, Invalid> {
        let (marginals, places) = self.marginals()?;
        let at = |error: FitError| match error.entry.and_then(|entry| Some((marginals.get(entry)?, places.get(entry)?)))
        {
            Some((marginal, place)) => place.blame(marginal, error),
            None => invalid(if marginals.is_empty() { "weight" } else { "marginals" }, error.message),
        };
        let Some(table) = self.table() else {
            let people = match outline {
                None => independent(&marginals, n, seed),
                Some(guesses) => independent_grouped(&marginals, n, guesses),
            };
            return Ok(people.map_err(at)?.into());
        };
        let of_counts = |counts: &[u32]| match outline {
            None => Population::of_counts(table.clone(), counts, seed),
            Some(guesses) => Population::grouped(table.clone(), counts, guesses),
        };
        let base = self.base(table)?;
        // Resampling uses other draws of this stream, one by one; here one sequence serves all.
        let mut draws = Draws::new(seed, Stream::Population, 1, 0);
        let Filled { weights, counts, shares } = if let Some(quotas) = &self.source.quotas {
            let (cells, of_file) = self.cells(quotas)?;
            fit::quotas(table, base, &cells, n, &mut draws).map_err(|error| match (error.entry, of_file) {
                (Some(entry), true) => {
                    invalid("quotas.file", format!("row {entry}, counted from 0: {}", error.message))
                }
                (Some(entry), false) => invalid(item("quotas", entry), error.message),
                (None, _) => invalid("quotas", error.message),
            })?
        } else if !marginals.is_empty() || base.is_some() {
            let fit = fit::weights(table, base, &marginals).map_err(at)?;
            let counts = fit.agents(n, &mut draws);
            let shares = fit.obtained(&marginals, &counts);
            Filled { weights: fit.weights, counts, shares }
        } else if shuffled && table.rows() == n as usize {
            return Ok(of_counts(&vec![1; table.rows()]).into());
        } else {
            let people = match outline {
                None => Population::resample(table.clone(), n, seed),
                Some(guesses) => Population::resample_grouped(table.clone(), n, seed, guesses),
            };
            return Ok(people.into());
        };
        let made: u64 = counts.iter().copied().map(u64::from).sum();
        if made != u64::from(n) {
            let message =
                format!("{made} people were made instead of {n}; this is a defect of Polity, please report it");
            return Err(invalid("", message));
        }
        let people = of_counts(&counts).with_shares(shares);
        Ok(Made { people, possible: Some(weights.iter().map(|weight| *weight > 0.0).collect()) })
    }

    /// Returns all marginals, and where each was written.
    fn marginals(&self) -> Result<(Vec<Marginal>, Vec<Place>), Invalid> {
        let (mut marginals, mut places) = (Vec::new(), Vec::new());
        for (i, source) in self.source.marginals.iter().flatten().enumerate() {
            let key = item("marginals", i);
            match (&source.column, &source.shares, &source.file) {
                (Some(column), Some(shares), None) => {
                    marginals
                        .push(Marginal { column: column.clone(), shares: levels(shares, &child(&key, "shares"))? });
                    places.push(Place { key, file: false });
                }
                (None, None, Some(file)) => {
                    let key = child(&key, "file");
                    for marginal in of_table(self.read(file, &key)?).map_err(|message| invalid(&key, message))? {
                        marginals.push(marginal);
                        places.push(Place { key: key.clone(), file: true });
                    }
                }
                _ => return Err(invalid(key, "write `{column: NAME, shares: {LEVEL: SHARE, ...}}`, or `{file: ...}`")),
            }
        }
        for (i, marginal) in marginals.iter().enumerate() {
            if marginals[..i].iter().any(|other| other.column == marginal.column) {
                return Err(invalid(
                    &places[i].key,
                    format!("the shares of column `{}` are given twice", marginal.column),
                ));
            }
        }
        Ok((marginals, places))
    }

    /// Returns the cells of the quotas, and whether they are in a file.
    fn cells(&self, quotas: &Node) -> Result<(Vec<Cell>, bool), Invalid> {
        match &quotas.value {
            Value::List(items) => {
                let mut cells = Vec::with_capacity(items.len());
                for (i, node) in items.iter().enumerate() {
                    let key = item("quotas", i);
                    let Value::Map(entries) = &node.value else {
                        return Err(invalid(
                            key,
                            format!(
                                "a quota must look like `{{COLUMN: LEVEL, share: 0.2}}`, found {}",
                                node.describe()
                            ),
                        ));
                    };
                    let mut cell = Cell { levels: Vec::new(), share: f64::NAN };
                    for (name, value) in entries {
                        if name.name == "share" {
                            cell.share = number(value, &child(&key, "share"))?;
                        } else {
                            cell.levels.push((name.name.clone(), level(value, &child(&key, &name.name))?));
                        }
                    }
                    complete(&cell).map_err(|message| invalid(key, message))?;
                    cells.push(cell);
                }
                Ok((cells, false))
            }
            Value::Map(entries) if entries.len() == 1 && quotas.get("file").is_some() => {
                let Some(Node { value: Value::Text(file), .. }) = quotas.get("file") else {
                    return Err(invalid("quotas.file", "the name of a file must be text"));
                };
                let table = self.read(file, "quotas.file")?;
                let share = of_column(table, "share").map_err(|message| invalid("quotas.file", message))?;
                let all = Population::from_table(table.clone());
                let columns: Vec<(usize, &str)> =
                    table.columns().map(|(name, _)| name).enumerate().filter(|(_, name)| *name != "share").collect();
                let cell = |row: usize| Cell {
                    levels: columns
                        .iter()
                        .map(|(i, name)| ((*name).to_owned(), all.cell(*i, row as u32).to_string()))
                        .collect(),
                    share: share[row],
                };
                let cells: Vec<Cell> = (0..table.rows()).map(cell).collect();
                cells.first().map_or(Ok(()), complete).map_err(|message| invalid("quotas.file", message))?;
                Ok((cells, true))
            }
            _ => Err(invalid("quotas", "write a list of `{COLUMN: LEVEL, share: 0.2}`, or `{file: ...}`")),
        }
    }
}

/// Where a marginal was written.
struct Place {
    key: String,
    file: bool,
}

impl Place {
    fn blame(&self, marginal: &Marginal, error: FitError) -> Invalid {
        let level = match error.about {
            About::Level(level) => marginal.shares.get(level).map(|(level, _)| level),
            About::Column | About::Levels => None,
        };
        match (self.file, level) {
            (true, Some(level)) => {
                invalid(&self.key, format!("column `{}`, level `{level}`: {}", marginal.column, error.message))
            }
            (true, None) => invalid(&self.key, format!("column `{}`: {}", marginal.column, error.message)),
            (false, Some(level)) => invalid(child(&child(&self.key, "shares"), level), error.message),
            (false, None) if error.about == About::Column => invalid(child(&self.key, "column"), error.message),
            (false, None) => invalid(child(&self.key, "shares"), error.message),
        }
    }
}

fn complete(cell: &Cell) -> Result<(), String> {
    if cell.levels.is_empty() {
        return Err("name at least one column with a level".into());
    }
    if cell.share.is_nan() {
        return Err("the key `share` is missing".into());
    }
    Ok(())
}

fn number(node: &Node, key: &str) -> Result<f64, Invalid> {
    match node.value {
        Value::Int(number) => Ok(number as f64),
        Value::Float(number) => Ok(number),
        _ => {
            let help = node.number_help().map_or(String::new(), |help| format!("; {help}"));
            Err(invalid(key, format!("a share must be a number, found {}{help}", node.describe())))
        }
    }
}

/// Returns a level, which YAML may have parsed as a number.
fn level(node: &Node, key: &str) -> Result<String, Invalid> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Int(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(invalid(key, format!("a level must be a word, a number or a range, found {}", node.describe()))),
    }
}

/// Returns levels and shares as written in a scenario.
fn levels(node: &Node, key: &str) -> Result<Vec<(String, f64)>, Invalid> {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => entries
            .iter()
            .map(|(name, value)| Ok((name.name.clone(), number(value, &child(key, &name.name))?)))
            .collect(),
        _ => Err(invalid(key, format!("write `{{LEVEL: SHARE, ...}}`, found {}", node.describe()))),
    }
}

fn of_column<'a>(table: &'a Table, name: &str) -> Result<&'a [f64], String> {
    table.number_column(name).map_err(|error| error.to_string())?;
    match table.columns().find(|(column, _)| *column == name) {
        Some((_, Column::Number(values))) => Ok(values),
        _ => Ok(&[]),
    }
}

/// Returns the marginals of a table with the columns `column`, `level` and `share`, in order of appearance.
fn of_table(table: &Arc<Table>) -> Result<Vec<Marginal>, String> {
    let [column, level] = ["column", "level"].map(|name| table.index(name).map_err(|error| error.to_string()));
    let (column, level, share) = (column?, level?, of_column(table, "share")?);
    let all = population::Population::from_table(table.clone());
    let mut marginals: Vec<Marginal> = Vec::new();
    for (row, share) in share.iter().enumerate() {
        let [column, level] = [column, level].map(|index| all.cell(index, row as u32).to_string());
        match marginals.iter_mut().find(|marginal| marginal.column == column) {
            Some(marginal) => marginal.shares.push((level, *share)),
            None => marginals.push(Marginal { column, shares: vec![(level, *share)] }),
        }
    }
    Ok(marginals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    fn make(population: &Json, n: u32) -> Result<Population, TreeError> {
        made(population, n, false)
    }

    fn made(population: &Json, n: u32, shuffled: bool) -> Result<Population, TreeError> {
        let node = Node::from_json(population);
        let column = |values: &[f64]| Column::Number(values.to_vec());
        let mut words = population::TextBuilder::default();
        ["a", "b", "c", "a"].iter().for_each(|word| words.push(word));
        let table = Table::new(vec![
            ("x".into(), column(&[1.0, 2.0, 3.0, 1.0])),
            ("w".into(), column(&[0.0, 1.0, 2.5, 1.0])),
            ("word".into(), words.finish()),
            ("minus".into(), column(&[-1.0, 3.0, 3.0, 1.0])),
            ("huge".into(), column(&[1e308; 4])),
        ]);
        let mut inputs = Inputs::default();
        inputs.tables.insert("people.csv".into(), Arc::new(table.unwrap()));
        let source: PopulationSource = node.read("population")?;
        let people = People::new(&source, &node, &inputs)?;
        let made = people.make(n, shuffled, 1, None);
        // An outline has the same people in a different order.
        match (&made, people.make(n, shuffled, 1, Some(&Guesses::default()))) {
            (Ok(whole), Ok(outline)) => {
                assert_eq!((outline.len(), outline.shares()), (whole.len(), whole.shares()));
                for column in 0..whole.columns().len() {
                    let sorted = |people: &Population| {
                        let mut cells: Vec<String> = (0..n).map(|i| people.cell(column, i).to_string()).collect();
                        cells.sort_unstable();
                        cells
                    };
                    // Independent attributes have as many personas as combinations.
                    let combined = source.file.is_none() && column + 1 == whole.columns().len();
                    assert!(combined && source.persona.is_some() || sorted(&outline) == sorted(whole));
                }
            }
            (whole, outline) => assert_eq!(whole.is_ok(), outline.is_ok()),
        }
        made
    }

    #[test]
    fn weights_alone_are_met() {
        let people = make(&json!({"file": "people.csv", "weight": "w"}), 450).unwrap();
        let count = |row| (0..450).filter(|agent| people.row(*agent) == row).count();
        assert_eq!([0, 1, 2, 3].map(count), [0, 100, 250, 100]);
        // The order is shuffled, so that cohorts are alike.
        assert!((0..450).map(|agent| people.row(agent)).collect::<Vec<_>>().windows(2).any(|w| w[0] > w[1]));
    }

    #[test]
    fn several_cohorts_do_not_take_a_file_in_its_order() {
        let (plain, mixed) =
            (json!({"file": "people.csv"}), |n| made(&json!({"file": "people.csv"}), n, true).unwrap());
        assert_eq!(*make(&plain, 4).unwrap().rows(), population::Rows::Identity(4));
        let population::Rows::Index(mut rows) = mixed(4).rows().clone() else { panic!("not shuffled") };
        assert_eq!(mixed(4), mixed(4));
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2, 3]);
        assert_eq!(mixed(40), make(&plain, 40).unwrap());
    }

    fn refused(population: &Json) -> (String, String) {
        let error = make(population, 100).unwrap_err();
        (error.path, error.message)
    }

    #[test]
    fn weights_that_are_none_are_blamed_with_marginals_and_quotas() {
        let marginals = json!([{"column": "word", "shares": {"a": 0.5, "b": 0.25, "c": 0.25}}]);
        let quotas = json!([{"word": "a", "share": 0.5}, {"word": "b", "share": 0.25}, {"word": "c", "share": 0.25}]);
        for (weight, words) in
            [("minus", "has the weight -1"), ("huge", "to calculate with"), ("wrod", "no such column")]
        {
            for (key, value) in [("marginals", &marginals), ("quotas", &quotas)] {
                let (path, message) = refused(&json!({"file": "people.csv", "weight": weight, key: value}));
                assert_eq!((path.as_str(), message.contains(words)), ("population.weight", true), "{message}");
            }
        }
        for (key, value) in
            [("marginals", json!(null)), ("quotas", json!(null)), ("marginals", json!([])), ("quotas", json!([]))]
        {
            let expected = (format!("population.{key}"), "the list is empty".to_string());
            assert_eq!(refused(&json!({"file": "people.csv", key: value})), expected);
        }
    }

    #[test]
    fn labels_are_for_what_is_shown_and_can_be() {
        let with = |labels: Json, more: Json| {
            let mut population = json!({"file": "people.csv", "persona": "{word}", "labels": labels});
            more.as_object().unwrap().iter().for_each(|(key, value)| population[key] = value.clone());
            population
        };
        let all = json!({"word": {"a": "A", "b": "B", "c": "C"}});
        assert!(make(&with(all.clone(), json!({})), 4).is_ok());
        let (path, message) = refused(&with(json!({"word": all["word"], "x": {"1": "one"}}), json!({})));
        assert_eq!(path, "population.labels.x");
        assert!(message.starts_with("`persona` does not show this column"), "{message}");
        let (path, message) = refused(&with(json!({"word": {"a": "A", "b": "B", "c": "C", "dd": "D"}}), json!({})));
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("population.labels.word.dd", "no agent can have the value `dd` of column `word`")
        );
        // No agent is a c, so no label is needed for it; one may be given.
        let few = json!({"word": {"a": "A", "b": "B"}});
        let marginals = json!({"marginals": [{"column": "word", "shares": {"a": 0.5, "b": 0.5, "c": 0}}]});
        let quotas =
            json!({"quotas": [{"word": "a", "share": 0.5}, {"word": "b", "share": 0.5}, {"word": "c", "share": 0}]});
        for more in [&marginals, &quotas] {
            assert!(
                make(&with(few.clone(), more.clone()), 1).is_ok() && make(&with(all.clone(), more.clone()), 50).is_ok()
            );
        }
        let alone = |labels: &Json| json!({"marginals": marginals["marginals"], "persona": "{word}", "labels": labels});
        assert!(make(&alone(&few), 50).is_ok() && make(&alone(&all), 50).is_ok());
        let (path, message) = refused(&with(few, json!({})));
        assert_eq!(
            (path.as_str(), message.contains("the value `c` of column `word` has no label")),
            ("population.labels", true)
        );
    }

    /// Generates a scenario's population from parts that fit and parts that do not.
    fn parts() -> impl Strategy<Value = Json> {
        let share = prop_oneof![
            Just(json!(0.5)),
            Just(json!(0)),
            Just(json!(1)),
            Just(json!(-0.1)),
            Just(json!(1e300)),
            Just(json!("half")),
            Just(json!(0.25)),
        ];
        let name = prop::sample::select(vec!["x", "w", "word", "wrod", "persona", ""]);
        let level = prop::sample::select(vec!["1", "2", "3", "a", "b", "c", "..2", "2..", "2..1", "..", "NaN"]);
        let shares = prop::collection::vec((level.clone(), share.clone()), 0..4)
            .prop_map(|pairs| Json::Object(pairs.into_iter().map(|(l, s)| (l.to_owned(), s)).collect()));
        let marginal =
            (name.clone(), shares, prop::bool::weighted(0.1)).prop_map(|(column, shares, file)| match file {
                true => json!({"file": "people.csv"}),
                false => json!({"column": column, "shares": shares}),
            });
        let quota =
            (name.clone(), level, share).prop_map(|(column, level, share)| json!({column: level, "share": share}));
        let persona = prop::sample::select(vec!["{x} {word}", "{y}", "{", "}", "{{}}", "{}", "é{x}é"]);
        (
            prop::option::weighted(0.8, Just("people.csv")),
            prop::option::weighted(0.3, name),
            prop::option::weighted(0.6, prop::collection::vec(marginal, 0..3)),
            prop::option::weighted(0.3, prop::collection::vec(quota, 0..4)),
            prop::option::weighted(0.4, persona),
        )
            .prop_map(|(file, weight, marginals, quotas, persona)| {
                let parts = [
                    ("file", file.map(Json::from)),
                    ("weight", weight.map(Json::from)),
                    ("marginals", marginals.map(Json::from)),
                    ("quotas", quotas.map(Json::from)),
                    ("persona", persona.map(Json::from)),
                ];
                Json::Object(parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
            })
    }

    proptest! {
        #[test]
        fn populations_are_made_or_refused(population in parts(), n in 1u32..200) {
            match make(&population, n) {
                Ok(people) => {
                    prop_assert_eq!(people.len(), n);
                    for shares in people.shares().chunk_by(|a, b| a.column == b.column) {
                        prop_assert_eq!(shares.iter().map(|share| share.agents).sum::<u32>(), n);
                    }
                }
                Err(error) => prop_assert!(error.path.starts_with("population"), "{}", error),
            }
        }
    }
}
