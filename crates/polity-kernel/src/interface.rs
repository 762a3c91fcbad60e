//! What an agent sees and can do, as data.
//!
//! A world declares named observation fields and kinds of acts ([`crate::declare`]). A policy binds to them by name once, when the
//! society is built, and uses slots from then on. So no policy names a world and no world names a policy. Model-driven, rule-based
//! and learned policies read the same observation.

use crate::ask::ResponseFormat;
use crate::tree::nearest;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A name or a description: written in the code, or made from a scenario's data.
pub type Name = Cow<'static, str>;

/// A declared quantity: an observation field, a column of the world, or a kind of act.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Its name, in kebab-case.
    pub name: Name,
    /// Whether it is a number, a text or a table.
    pub kind: FieldKind,
    /// The columns of a table, in kebab-case; all are numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Name>,
    /// One line: meaning and unit.
    pub doc: Name,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    /// A number.
    Number,
    /// A text.
    Text,
    /// Any number of rows of numbers: a feed, a list of offers. An agent that sees no rows costs nothing.
    Table,
}

impl Field {
    /// Makes a number field.
    #[must_use]
    pub fn number(name: impl Into<Name>, doc: impl Into<Name>) -> Self {
        Field { name: name.into(), kind: FieldKind::Number, columns: Vec::new(), doc: doc.into() }
    }

    /// Makes a text field.
    #[must_use]
    pub fn text(name: impl Into<Name>, doc: impl Into<Name>) -> Self {
        Field { kind: FieldKind::Text, ..Field::number(name, doc) }
    }

    /// Makes a table field with these columns.
    #[must_use]
    pub fn table<C: Into<Name>>(
        name: impl Into<Name>,
        columns: impl IntoIterator<Item = C>,
        doc: impl Into<Name>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Field { kind: FieldKind::Table, columns, ..Field::number(name, doc) }
    }
}

/// Returns which of the options an act's value names, if any.
#[must_use]
pub fn named(value: f64, below: usize) -> Option<u32> {
    let id = value as u32;
    (f64::from(id) == value && (id as usize) < below).then_some(id)
}

/// The argument of an act, and so the question to a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionArgument {
    /// A number within bounds (both included).
    Number {
        /// Smallest sensible value.
        low: f64,
        /// Largest sensible value.
        high: f64,
    },
    /// One of the options; the act's value is its index.
    Choice(Vec<String>),
    /// Free text.
    Text,
    /// A value that the agent sees in a column of a table of its observation.
    Seen {
        /// The table.
        table: Name,
        /// The column.
        column: Name,
        /// Whether the act also carries a text.
        words: bool,
        /// The rows that it may refer to, if not all: those with this value in that column. On other rows it does nothing.
        only: Option<(Name, f64)>,
    },
    /// Named fields: numbers, choices, texts, lists, records. An agent writes it with [`crate::policy::Turn::act_record`], and a
    /// world reads it with [`crate::world::AgentActions::record`]. [`ResponseFormat::of`] makes it from a Rust type.
    Record(ResponseFormat),
    /// Nothing.
    Nothing,
}

impl ActionArgument {
    /// Returns whether the act carries a text: words, or a record as JSON.
    #[must_use]
    pub fn has_text(&self) -> bool {
        self.has_words() || matches!(self, ActionArgument::Record(_))
    }

    /// Returns whether it carries the words of a speaker.
    #[must_use]
    pub fn has_words(&self) -> bool {
        matches!(self, ActionArgument::Text | ActionArgument::Seen { words: true, .. })
    }

    /// Returns whether it carries a number.
    #[must_use]
    pub fn has_number(&self) -> bool {
        !matches!(self, ActionArgument::Text | ActionArgument::Record(_))
    }
}

/// A kind of act that a world understands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionKind {
    /// Its name, in kebab-case.
    pub name: Name,
    /// What it carries.
    pub argument: ActionArgument,
    /// One line: what it does.
    pub doc: Name,
}

impl ActionKind {
    /// Returns what an agent chose with an act of this kind, in words: its name, with the option if there are options.
    #[must_use]
    pub fn choice(&self, value: f64) -> Cow<'_, str> {
        match &self.argument {
            ActionArgument::Choice(options) => {
                match named(value, options.len()).and_then(|i| options.get(i as usize)) {
                    Some(option) => format!("{}: {option}", self.name).into(),
                    None => self.name.as_ref().into(),
                }
            }
            _ => self.name.as_ref().into(),
        }
    }
}

/// A column of the world, or of a policy's agent state, that metrics and tables may read: one number per agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldColumn {
    /// Its name, in kebab-case.
    pub name: Name,
    /// One line: meaning and unit.
    pub doc: Name,
    /// Smallest and largest sensible value, if any.
    pub range: Option<(f64, f64)>,
    /// The coordinate that it is, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
}

/// A coordinate of an agent's place, by which pictures of the world draw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Column of the agent's cell on a grid, from 0.
    CellX,
    /// Row of the agent's cell on a grid, from 0.
    CellY,
    /// Position on a plane, x.
    X,
    /// Position on a plane, y.
    Y,
    /// Direction of movement, x.
    HeadingX,
    /// Direction of movement, y.
    HeadingY,
}

/// The type of a column of a world's own table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellKind {
    /// A whole number (a round, an agent, a count), or none.
    Whole,
    /// A number.
    Number,
    /// One of these words.
    Word(Vec<Name>),
    /// A text, or none.
    Text,
}

/// A column of a world's own table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellColumn {
    /// Its name, in kebab-case.
    pub name: Name,
    /// What it holds.
    pub kind: CellKind,
    /// One line: meaning and unit.
    pub doc: Name,
}

/// A table that a world records, with rows in every round. Its first column is `round`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableKind {
    /// Its name, in kebab-case; different from the tables that every run has.
    pub name: Name,
    /// One line: what a row is.
    pub doc: Name,
    /// Its columns.
    pub columns: Vec<CellColumn>,
}

/// The values of a column of a world's own table, one per row of the round.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// For [`CellKind::Whole`].
    Whole(Vec<Option<u32>>),
    /// For [`CellKind::Number`].
    Number(Vec<f64>),
    /// For [`CellKind::Word`]: indices into its list.
    Word(Vec<u16>),
    /// For [`CellKind::Text`].
    Text(Vec<Option<String>>),
}

impl Cells {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Cells::Whole(values) => values.len(),
            Cells::Number(values) => values.len(),
            Cells::Word(values) => values.len(),
            Cells::Text(values) => values.len(),
        }
    }
}

/// Everything that a world declares by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interface {
    /// What agents see.
    pub observation: Vec<Field>,
    /// What agents can do.
    pub acts: Vec<ActionKind>,
    /// Whether the acts are alternatives: an agent names one of them, or none. Otherwise it is asked for a value of each.
    pub alternatives: bool,
    /// One number per agent, for metrics and tables.
    pub columns: Vec<WorldColumn>,
    /// The column of each agent's reward in the last round, if the world has rewards; learners learn from it.
    pub reward: Option<usize>,
    /// The number of agents of an episode, if the world has episodes. Agents `k * seats .. (k + 1) * seats` share one, unless cohorts take
    /// seats of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seats: Option<u32>,
    /// One number per round, recorded as metrics.
    pub scalars: Vec<Field>,
    /// The tables that it records.
    pub tables: Vec<TableKind>,
}

/// Slot of a number in an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberSlot(pub usize);

/// Slot of a text in an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSlot(pub usize);

/// Slot of a table in an observation, and the number of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSlot(pub usize, pub usize);

/// The most names that a message lists.
const MOST_NAMES: usize = 40;

/// Says that a world lacks what somebody needs. `needs`: such as `it reads the number`; `does`: what a world does with it, `show` or
/// `offer`.
fn missing<'a>(
    needs: &str,
    name: &str,
    world: &str,
    does: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let list: Vec<&str> = known.clone().collect();
    let near = nearest(name, known).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
    let list = match list.len() {
        0 => "none".into(),
        n if n > MOST_NAMES => format!("{} and {} more", list[..MOST_NAMES].join(", "), n - MOST_NAMES),
        _ => list.join(", "),
    };
    format!("{needs} `{name}`, which the world `{world}` does not {does}{near} (it {does}s {list})")
}

impl Interface {
    /// Returns the numbers that agents see, in order of their slots.
    pub fn numbers(&self) -> impl Iterator<Item = &Field> {
        self.observation.iter().filter(|field| field.kind == FieldKind::Number)
    }

    fn slot(&self, world: &str, name: &str, kind: FieldKind) -> Result<usize, String> {
        let fields = || self.observation.iter().filter(|f| f.kind == kind).map(|f| f.name.as_ref());
        let needs = match kind {
            FieldKind::Number => "it reads the number",
            FieldKind::Text => "it reads the text",
            FieldKind::Table => "it reads the table",
        };
        fields().position(|f| f == name).ok_or_else(|| missing(needs, name, world, "show", fields()))
    }

    /// Returns the slot of the number `name`.
    pub fn number(&self, world: &str, name: &str) -> Result<NumberSlot, String> {
        self.slot(world, name, FieldKind::Number).map(NumberSlot)
    }

    /// Returns the slot of the text `name`.
    pub fn text(&self, world: &str, name: &str) -> Result<TextSlot, String> {
        self.slot(world, name, FieldKind::Text).map(TextSlot)
    }

    /// Returns the slot of the table `name`, and the positions of these columns in a row.
    pub fn table<const N: usize>(
        &self,
        world: &str,
        name: &str,
        columns: [&str; N],
    ) -> Result<(TableSlot, [usize; N]), String> {
        let slot = self.slot(world, name, FieldKind::Table)?;
        let field = self.observation.iter().filter(|f| f.kind == FieldKind::Table).nth(slot);
        let known = field.map_or(&[][..], |field| field.columns.as_slice());
        let mut places = [0; N];
        for (place, column) in places.iter_mut().zip(columns) {
            let needs = format!("it reads the table `{name}` with the column");
            let found = known.iter().position(|known| *known == column);
            *place = found.ok_or_else(|| missing(&needs, column, world, "show", known.iter().map(AsRef::as_ref)))?;
        }
        Ok((TableSlot(slot, known.len()), places))
    }

    /// Returns the number of the act `name`, and its argument.
    pub fn act(&self, world: &str, name: &str) -> Result<(u16, &ActionArgument), String> {
        let names = || self.acts.iter().map(|a| a.name.as_ref());
        match self.acts.iter().position(|a| a.name == name) {
            Some(i) => Ok((i as u16, &self.acts[i].argument)),
            None => Err(missing("it performs the act", name, world, "offer", names())),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Numbers {
    /// One value per row, or one that all rows share.
    values: Vec<f64>,
    /// The stride from one row's value to the next: 1, or 0 if shared.
    step: usize,
}

impl Numbers {
    fn share(&mut self, value: f64) {
        self.values.clear();
        self.values.push(value);
        self.step = 0;
    }

    /// Gives every row a value of its own.
    #[inline]
    fn spread(&mut self, rows: usize) {
        if self.step == 0 {
            let shared = self.values.first().copied().unwrap_or(0.0);
            self.values.resize(rows, shared);
            self.step = 1;
        }
    }
}

/// Tables, one per row of the observations: spans of consecutive values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tables {
    /// Empty while no agent sees anything.
    spans: Vec<(u32, u32)>,
    values: Vec<f64>,
    /// (end of the values of its row, text), in that order.
    texts: Vec<(u32, String)>,
}

impl Tables {
    fn alone(&self, row: usize) -> Self {
        let (start, end) = self.span(row);
        let texts = self.texts.iter().filter(|(at, _)| (start + 1..=end).contains(at));
        Tables {
            spans: vec![(0, end - start)],
            values: self.of(row).to_vec(),
            texts: texts.map(|(at, text)| (at - start, text.clone())).collect(),
        }
    }

    fn span(&self, row: usize) -> (u32, u32) {
        self.spans.get(row).copied().unwrap_or_default()
    }

    fn of(&self, row: usize) -> &[f64] {
        let (start, end) = self.span(row);
        self.values.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// Writes a table of an observation, row by row.
#[derive(Debug)]
pub struct Rows<'a> {
    values: &'a mut Vec<f64>,
    texts: &'a mut Vec<(u32, String)>,
}

impl<'a> Rows<'a> {
    /// Makes a writer for a table that belongs to no observation.
    pub fn new(values: &'a mut Vec<f64>, texts: &'a mut Vec<(u32, String)>) -> Self {
        Rows { values, texts }
    }

    /// Appends values, in the order of the columns.
    #[inline]
    pub fn extend(&mut self, values: impl IntoIterator<Item = f64>) {
        self.values.extend(values);
    }

    /// Sets the text of the last row written.
    pub fn text(&mut self, text: String) {
        self.texts.push((self.values.len() as u32, text));
    }
}

/// The observations of a run of agents, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    numbers: Vec<Numbers>,
    texts: Vec<Vec<String>>,
    tables: Vec<Tables>,
    rows: usize,
}

impl Observations {
    /// Makes observations for `rows` agents of a world with this interface, with all fields 0 or empty.
    #[must_use]
    pub fn new(interface: &Interface, rows: usize) -> Self {
        let mut observations = Observations::default();
        observations.reset(interface, rows);
        observations
    }

    /// Resets them, keeping the allocated memory.
    pub fn reset(&mut self, interface: &Interface, rows: usize) {
        let count = |kind| interface.observation.iter().filter(|f| f.kind == kind).count();
        self.numbers.resize(count(FieldKind::Number), Numbers::default());
        self.texts.resize(count(FieldKind::Text), Vec::new());
        self.tables.resize(count(FieldKind::Table), Tables::default());
        self.clear(rows);
    }

    /// Does the same with the interface of the last reset.
    #[inline]
    pub(crate) fn clear(&mut self, rows: usize) {
        self.rows = rows;
        for numbers in &mut self.numbers {
            numbers.share(0.0);
        }
        for texts in &mut self.texts {
            texts.clear();
        }
        for tables in &mut self.tables {
            tables.spans.clear();
            tables.values.clear();
            tables.texts.clear();
        }
    }

    /// Frees the memory of tables: they are the largest part of observations, and each is read once.
    pub(crate) fn release_tables(&mut self) {
        self.tables.iter_mut().for_each(|tables| *tables = Tables::default());
    }

    /// Writes a number that all rows see.
    pub fn put_all(&mut self, slot: NumberSlot, value: f64) {
        if let Some(numbers) = self.numbers.get_mut(slot.0) {
            numbers.share(value);
        }
    }

    /// Writes a number that one row sees.
    #[inline]
    pub fn put(&mut self, row: usize, slot: NumberSlot, value: f64) {
        let rows = self.rows;
        if let Some(numbers) = self.numbers.get_mut(slot.0) {
            numbers.spread(rows);
            if let Some(cell) = numbers.values.get_mut(row) {
                *cell = value;
            }
        }
    }

    /// Writes each row's own value of a number, in order.
    pub fn put_each(&mut self, slot: NumberSlot, values: impl Iterator<Item = f64>) {
        if let Some(numbers) = self.numbers.get_mut(slot.0) {
            numbers.values.clear();
            numbers.values.extend(values);
            numbers.values.resize(self.rows, 0.0);
            numbers.step = 1;
        }
    }

    /// Writes a text that one row sees.
    pub fn put_text(&mut self, row: usize, slot: TextSlot, value: impl Into<String>) {
        let rows = self.rows;
        if let Some(texts) = self.texts.get_mut(slot.0) {
            texts.resize(rows, String::new());
            if let Some(cell) = texts.get_mut(row) {
                *cell = value.into();
            }
        }
    }

    /// Writes the whole table that one row sees: `fill` appends its rows.
    pub fn put_table(&mut self, row: usize, slot: TableSlot, fill: impl FnOnce(&mut Rows<'_>)) {
        let rows = self.rows;
        if let Some(tables) = self.tables.get_mut(slot.0) {
            tables.spans.resize(rows, (0, 0));
            let start = tables.values.len() as u32;
            fill(&mut Rows { values: &mut tables.values, texts: &mut tables.texts });
            if let Some(span) = tables.spans.get_mut(row) {
                *span = (start, tables.values.len() as u32);
            }
        }
    }

    /// Copies the observations of later agents to the rows from `at` on. Parts are placed in order.
    pub(crate) fn place(&mut self, at: usize, part: &Observations) {
        let rows = self.rows;
        for (mine, theirs) in self.numbers.iter_mut().zip(&part.numbers) {
            if mine.step == 0 && theirs.step == 0 && mine.values == theirs.values {
                continue;
            }
            mine.spread(rows);
            for (row, cell) in mine.values.iter_mut().skip(at).take(part.rows).enumerate() {
                *cell = theirs.values.get(row * theirs.step).copied().unwrap_or(0.0);
            }
        }
        for (mine, theirs) in self.texts.iter_mut().zip(&part.texts).filter(|(_, theirs)| !theirs.is_empty()) {
            mine.resize(rows, String::new());
            mine.iter_mut().skip(at).zip(theirs).for_each(|(cell, text)| cell.clone_from(text));
        }
        for (mine, theirs) in self.tables.iter_mut().zip(&part.tables).filter(|(_, theirs)| !theirs.spans.is_empty()) {
            let before = mine.values.len() as u32;
            mine.spans.resize(rows, (0, 0));
            let spans = theirs.spans.iter().map(|(start, end)| (before + start, before + end));
            mine.spans.iter_mut().skip(at).zip(spans).for_each(|(cell, span)| *cell = span);
            mine.values.extend_from_slice(&theirs.values);
            mine.texts.extend(theirs.texts.iter().map(|(end, text)| (before + end, text.clone())));
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the observation of one row.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> Observation<'_> {
        Observation { observations: self, row }
    }

    /// Returns an owned copy of one row's observation.
    #[must_use]
    pub fn keep(&self, row: usize) -> Observations {
        let observation = self.row(row);
        Observations {
            numbers: (0..self.numbers.len())
                .map(|i| Numbers { values: vec![observation.number(NumberSlot(i))], step: 0 })
                .collect(),
            texts: (0..self.texts.len()).map(|i| vec![observation.text(TextSlot(i)).to_string()]).collect(),
            tables: self.tables.iter().map(|tables| tables.alone(row)).collect(),
            rows: 1,
        }
    }
}

/// What one agent sees.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    observations: &'a Observations,
    row: usize,
}

impl<'a> Observation<'a> {
    /// Returns the number in a slot.
    #[inline]
    #[must_use]
    pub fn number(self, slot: NumberSlot) -> f64 {
        let numbers = self.observations.numbers.get(slot.0);
        numbers.and_then(|numbers| numbers.values.get(self.row * numbers.step)).copied().unwrap_or(0.0)
    }

    /// Returns the rows of a table.
    #[inline]
    pub fn table(self, slot: TableSlot) -> std::slice::ChunksExact<'a, f64> {
        let values = self.observations.tables.get(slot.0).map_or(&[][..], |tables| tables.of(self.row));
        values.chunks_exact(slot.1.max(1))
    }

    /// Returns the texts of a table's rows: (row number, text) for rows that have one.
    pub fn table_texts(self, slot: TableSlot) -> impl Iterator<Item = (usize, &'a str)> {
        let (start, end, texts) = match self.observations.tables.get(slot.0) {
            None => (0, 0, &[][..]),
            Some(tables) => {
                let (start, end) = tables.span(self.row);
                (start, end, &tables.texts[tables.texts.partition_point(|(at, _)| *at <= start)..])
            }
        };
        let columns = slot.1.max(1) as u32;
        let of_row = texts.iter().take_while(move |(at, _)| *at <= end);
        of_row.map(move |(at, text)| (((at - start) / columns) as usize - 1, text.as_str()))
    }

    #[inline(always)]
    pub(crate) fn row(self) -> usize {
        self.row
    }

    /// Returns the text in a slot.
    #[must_use]
    pub fn text(self, slot: TextSlot) -> &'a str {
        self.observations.texts.get(slot.0).and_then(|t| t.get(self.row)).map_or("", String::as_str)
    }
}

/// One act: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Who acts.
    pub who: u32,
    /// Index of the act's kind in the world's interface.
    pub kind: u16,
    /// The number, or the index of the choice; 0 for texts.
    pub value: f64,
}

/// The acts of a run of agents in agent order, with the texts of those that carry one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Actions {
    /// The acts, sorted by agent.
    pub rows: Vec<Action>,
    /// (index of the act, its text), sorted by index.
    pub texts: Vec<(u32, String)>,
}

impl Actions {
    /// Appends an act.
    #[inline]
    pub fn push(&mut self, act: Action, text: Option<String>) {
        if let Some(text) = text {
            self.texts.push((self.rows.len() as u32, text));
        }
        self.rows.push(act);
    }

    /// Returns the text of act `i`.
    #[must_use]
    pub fn text(&self, i: usize) -> Option<&str> {
        let found = self.texts.binary_search_by_key(&(i as u32), |t| t.0).ok()?;
        self.texts.get(found).map(|t| t.1.as_str())
    }

    /// Appends the acts of later agents.
    pub fn append(&mut self, later: &Actions) {
        let base = self.rows.len() as u32;
        self.rows.extend_from_slice(&later.rows);
        self.texts.extend(later.texts.iter().map(|(i, t)| (i + base, t.clone())));
    }

    /// Moves late acts into the order of agents. Acts of one agent keep their order.
    pub fn sort(&mut self) {
        let (Some(low), Some(high)) =
            (self.rows.iter().map(|act| act.who).min(), self.rows.iter().map(|act| act.who).max())
        else {
            return;
        };
        // Use a counting sort: these are the acts of one block.
        let mut place = vec![0u32; (high - low) as usize + 2];
        for act in &self.rows {
            place[(act.who - low) as usize + 1] += 1;
        }
        for i in 1..place.len() {
            place[i] += place[i - 1];
        }
        let mut sorted = self.rows.clone();
        let mut texts = Vec::with_capacity(self.texts.len());
        let mut rest = std::mem::take(&mut self.texts).into_iter().peekable();
        for (i, act) in self.rows.iter().enumerate() {
            let to = &mut place[(act.who - low) as usize];
            sorted[*to as usize] = *act;
            if let Some((_, text)) = rest.next_if(|(of, _)| *of as usize == i) {
                texts.push((*to, text));
            }
            *to += 1;
        }
        texts.sort_by_key(|(of, _)| *of);
        *self = Actions { rows: sorted, texts };
    }

    /// Returns the range of the acts of `who`.
    #[must_use]
    pub fn of(&self, who: u32) -> std::ops::Range<usize> {
        let start = self.rows.partition_point(|a| a.who < who);
        start..start + self.rows[start..].partition_point(|a| a.who == who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_errors_name_the_nearest() {
        let interface = Interface {
            observation: vec![Field::text("news", ""), Field::number("fraction", "")],
            ..Interface::default()
        };
        assert_eq!(interface.number("w", "fraction"), Ok(NumberSlot(0)));
        assert_eq!(interface.text("w", "news"), Ok(TextSlot(0)));
        let error = interface.number("w", "fractoin").unwrap_err();
        assert!(error.contains("did you mean `fraction`"), "{error}");
    }

    #[test]
    fn observations_share_common_numbers_until_a_row_differs() {
        let interface =
            Interface { observation: vec![Field::number("a", ""), Field::text("t", "")], ..Interface::default() };
        let mut observations = Observations::new(&interface, 3);
        observations.put_all(NumberSlot(0), 5.0);
        observations.put(1, NumberSlot(0), 7.0);
        observations.put_text(2, TextSlot(0), "x");
        let seen: Vec<f64> = (0..3).map(|i| observations.row(i).number(NumberSlot(0))).collect();
        assert_eq!(seen, [5.0, 7.0, 5.0]);
        assert_eq!(observations.keep(2).row(0).text(TextSlot(0)), "x");
        assert_eq!(observations.keep(1).row(0).number(NumberSlot(0)), 7.0);
        assert_eq!(observations.row(0).text(TextSlot(0)), "");
    }

    #[test]
    fn tables_are_seen_by_those_who_have_one() {
        let columns = ["who", "price"];
        let interface = Interface {
            observation: vec![Field::number("a", ""), Field::table("offers", columns, "")],
            ..Interface::default()
        };
        let (slot, [price]) = interface.table("w", "offers", ["price"]).unwrap();
        assert_eq!((slot, price), (TableSlot(0, 2), 1));
        let error = interface.table("w", "offers", ["prize"]).unwrap_err();
        assert!(
            error.contains(
                "the column `prize`, which the world `w` does not show; did you mean `price`? (it shows who, price)"
            ),
            "{error}"
        );
        let mut observations = Observations::new(&interface, 4);
        observations.put_table(2, slot, |rows| {
            rows.extend([7.0, 0.5, 8.0, 0.25]);
            rows.text("cheap".into());
        });
        observations.put_table(0, slot, |rows| {
            rows.extend([1.0, 2.0]);
            rows.text("dear".into());
        });
        let prices = |row: usize| observations.row(row).table(slot).map(|offer| offer[price]).collect::<Vec<_>>();
        assert_eq!([prices(0), prices(1), prices(2), prices(3)], [vec![2.0], vec![], vec![0.5, 0.25], vec![]]);
        assert_eq!(observations.keep(2).row(0).table(slot).count(), 2);
        let texts = |observations: &Observations, row: usize| -> Vec<(usize, String)> {
            observations.row(row).table_texts(slot).map(|(i, text)| (i, text.to_owned())).collect()
        };
        assert_eq!(
            (texts(&observations, 2), texts(&observations, 0)),
            (vec![(1, "cheap".into())], vec![(0, "dear".into())])
        );
        assert_eq!((texts(&observations.keep(2), 0), texts(&observations, 1)), (vec![(1, "cheap".into())], vec![]));
        observations.reset(&interface, 4);
        assert_eq!(observations.row(2).table(slot).count(), 0);
    }

    #[test]
    fn observations_written_in_parts_are_those_written_at_once() {
        let interface = Interface {
            observation: vec![
                Field::number("a", ""),
                Field::number("b", ""),
                Field::text("t", ""),
                Field::table("r", ["x", "y"], ""),
            ],
            ..Interface::default()
        };
        let write = |observations: &mut Observations, row: usize, who: usize| {
            if who.is_multiple_of(3) {
                observations.put(row, NumberSlot(1), who as f64);
            }
            if who == 5 {
                observations.put_text(row, TextSlot(0), "five");
            }
            observations.put_table(row, TableSlot(0, 2), |rows| {
                for i in 0..who % 4 {
                    rows.extend([who as f64, i as f64]);
                    rows.text(format!("{who}/{i}"));
                }
            });
        };
        let mut whole = Observations::new(&interface, 10);
        (0..10).for_each(|who| write(&mut whole, who, who));
        for part in 1..=10 {
            let mut joined = Observations::new(&interface, 10);
            for start in (0..10).step_by(part) {
                let n = part.min(10 - start);
                let mut own = Observations::new(&interface, n);
                (0..n).for_each(|row| write(&mut own, row, start + row));
                joined.place(start, &own);
            }
            assert_eq!(joined, whole, "parts of {part}");
        }
    }

    #[test]
    fn late_acts_are_sorted_with_their_texts() {
        let mut acts = Actions::default();
        for (who, text) in [(3, None), (1, Some("a")), (1, Some("b")), (2, None)] {
            acts.push(Action { who, kind: 0, value: 0.0 }, text.map(String::from));
        }
        acts.sort();
        assert_eq!(acts.rows.iter().map(|a| a.who).collect::<Vec<_>>(), [1, 1, 2, 3]);
        assert_eq!((acts.text(0), acts.text(1), acts.text(2)), (Some("a"), Some("b"), None));
        assert_eq!(acts.of(1), 0..2);
    }
}
