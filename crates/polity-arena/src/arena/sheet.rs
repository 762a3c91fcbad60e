//! The results of an evaluation run: its items, and the use of calls, tokens and money by member and purpose. A fold of the run's tables.

use polity_driver::run::Manifest;
use polity_kernel::ask::TargetKind;
use polity_kernel::items::SCORING;
use polity_kernel::method::Quantity;
use polity_store::DriveError;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The purpose that is not coordination: `calls.purpose` of a question to solve the item.
pub const SOLVE: &str = "solve";

/// Use of models. Every answer counts as if it had been requested, also when it was shared with another question: a method's use does not
/// depend on who asked first. Questions denied by a budget, program runs, and questions to a scoring model are not calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// Answers of models.
    pub calls: u64,
    /// Tokens of their requests.
    pub tokens_in: u64,
    /// Tokens of their replies.
    pub tokens_out: u64,
    /// US dollars; `None` if the price of a model is not known.
    pub cost_usd: Option<f64>,
}

impl Default for Spent {
    fn default() -> Self {
        Spent { calls: 0, tokens_in: 0, tokens_out: 0, cost_usd: Some(0.0) }
    }
}

impl Spent {
    /// Tokens of requests and replies.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in + self.tokens_out
    }

    /// Adds the use of others.
    pub fn add(&mut self, other: &Spent) {
        self.calls += other.calls;
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.cost_usd = self.cost_usd.zip(other.cost_usd).map(|(own, other)| own + other);
    }
}

/// An item with the team's answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Row of the data set.
    pub item: u32,
    /// The question.
    #[serde(skip)]
    pub question: String,
    /// The team's answer.
    pub answer: Option<String>,
    /// The answer extracted from it.
    pub extracted: Option<String>,
    /// The right answer.
    pub gold: Option<String>,
    /// Whether it is right; `None` if it cannot be scored.
    pub correct: Option<bool>,
    /// The message of its tests.
    pub note: Option<String>,
    /// Rounds the method took.
    pub rounds: u32,
    /// What the method measured on the item, by quantity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<&'static str, f64>,
    /// Use on this item.
    #[serde(flatten)]
    pub spent: Spent,
}

/// By (who, purpose): the member's role, its name if it has been given one, else `members`; and the kind of work.
pub type Ledger = BTreeMap<(String, String), Spent>;

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// In order of the data set.
    pub rows: Vec<Row>,
    /// Use by member and purpose.
    pub ledger: Ledger,
    /// Use of a scoring model, which is not part of the method's use.
    pub scoring: Spent,
    /// The run's digest.
    pub digest: String,
}

fn unreadable(error: TableError) -> DriveError {
    DriveError::Folder(error.to_string())
}

/// The columns of a table by name.
struct Columns(Vec<(String, ColumnData)>);

impl Columns {
    fn read(tables: &Reader<'_>, table: &str, names: &[&str]) -> Result<Columns, DriveError> {
        tables.table(table, names, usize::MAX).map(Columns).map_err(unreadable)
    }

    fn find(&self, name: &str) -> Option<&ColumnData> {
        self.0.iter().find(|(column, _)| column == name).map(|(_, data)| data)
    }

    fn texts(&self, name: &str) -> Vec<Option<String>> {
        self.find(name).map_or(Vec::new(), ColumnData::texts)
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.find(name).map_or(Vec::new(), |data| data.numbers().into_iter().map(Option::unwrap_or_default).collect())
    }
}

impl Sheet {
    /// Reads the tables of an ended run with this digest. The manifest has the roles of the team. `quantities`: the quantities that its
    /// method measures. `priced`: whether the price of a model is known.
    pub fn read(
        tables: &Reader<'_>,
        digest: &str,
        manifest: &Manifest,
        quantities: &'static [Quantity],
        priced: &dyn Fn(&str) -> bool,
    ) -> Result<Sheet, DriveError> {
        let columns = ["item", "question", "answer", "extracted", "gold", "correct", "note", "rounds"];
        let columns: Vec<&str> = columns.into_iter().chain(quantities.iter().map(|quantity| quantity.name)).collect();
        let items = Columns::read(tables, "items", &columns)?;
        let values = |quantity: &'static Quantity| Some((quantity.name, items.find(quantity.name)?.numbers()));
        let values: Vec<_> = quantities.iter().filter_map(values).collect();
        let measured = |i: usize| {
            values.iter().filter_map(|(name, values)| Some((*name, values.get(i).copied().flatten()?))).collect()
        };
        let correct = match items.find("correct") {
            Some(ColumnData::Bool(values)) => values.clone(),
            _ => Vec::new(),
        };
        let (mut answers, mut extracted) = (items.texts("answer").into_iter(), items.texts("extracted").into_iter());
        let (mut gold, mut notes) = (items.texts("gold").into_iter(), items.texts("note").into_iter());
        let (mut questions, rounds) = (items.texts("question").into_iter(), items.numbers("rounds"));
        let mut rows: Vec<Row> = items
            .numbers("item")
            .into_iter()
            .enumerate()
            .map(|(i, item)| Row {
                item: item as u32,
                question: questions.next().flatten().unwrap_or_default(),
                answer: answers.next().flatten(),
                extracted: extracted.next().flatten(),
                gold: gold.next().flatten(),
                correct: correct.get(i).copied().flatten(),
                note: notes.next().flatten(),
                rounds: rounds.get(i).copied().unwrap_or_default() as u32,
                measured: measured(i),
                spent: Spent::default(),
            })
            .collect();
        rows.sort_by_key(|row| row.item);
        let (mut ledger, mut scoring) = (Ledger::new(), Spent::default());
        let columns = ["item", "agent", "purpose", "model", "outcome", "tokens_in", "tokens_out", "cost_usd"];
        let calls = Columns::read(tables, "calls", &columns)?;
        let (item, agent, cost) = (calls.numbers("item"), calls.numbers("agent"), calls.numbers("cost_usd"));
        let (tokens_in, tokens_out) = (calls.numbers("tokens_in"), calls.numbers("tokens_out"));
        let (models, outcomes) = (calls.texts("model"), calls.texts("outcome"));
        let is = |column: &[Option<String>], i: usize, word: &str| column[i].as_deref() == Some(word);
        let names: BTreeSet<&String> = models.iter().flatten().collect();
        let priced: BTreeSet<&String> = names.into_iter().filter(|model| priced(model)).collect();
        for (i, purpose) in calls.texts("purpose").into_iter().enumerate() {
            let tool = models[i].as_deref().is_some_and(|model| TargetKind::of(model) == TargetKind::Tool);
            if tool || is(&outcomes, i, "denied") {
                continue;
            }
            let is_known = cost[i] > 0.0 || models[i].as_ref().is_some_and(|model| priced.contains(model));
            let spent = Spent {
                calls: 1,
                tokens_in: tokens_in[i] as u64,
                tokens_out: tokens_out[i] as u64,
                cost_usd: is_known.then_some(cost[i]),
            };
            if purpose.as_deref() == Some(SCORING) {
                scoring.add(&spent);
                continue;
            }
            let who = who(&manifest.scenario, agent[i] as usize);
            ledger.entry((who, purpose.unwrap_or_default())).or_default().add(&spent);
            if let Ok(at) = rows.binary_search_by_key(&(item[i] as u32), |row| row.item) {
                rows[at].spent.add(&spent);
            }
        }
        Ok(Sheet { rows, ledger, scoring, digest: digest.into() })
    }
}

/// Returns the name of a member in ledgers.
fn who(scenario: &serde_json::Value, agent: usize) -> String {
    let team = scenario.get("team").and_then(|team| team.as_array()).filter(|team| !team.is_empty());
    let member = team.and_then(|team| team.get(agent % team.len()));
    let text = |key: &str| member.and_then(|member| member.get(key)?.as_str());
    text("role").or_else(|| text("name")).unwrap_or("members").to_owned()
}
