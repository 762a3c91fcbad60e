//! What a run of an evaluation came to: its items and what was spent on them, by who and what for. A fold of the run's tables.

use polity_driver::DriveError;
use polity_driver::tables::{ColumnData, Reader, TableError};
use polity_driver::tools::is_tool;
use polity_kernel::items::SCORING;
use polity_kernel::method::Quantity;
use serde::Serialize;
use std::collections::BTreeMap;

/// The kind of work that is no coordination: `calls.purpose` of a question to solve the item.
pub const SOLVE: &str = "solve";

/// What answers took. Each counts as if it had been asked for, also where another question had the answer: what a method uses does not depend
/// on who asked first. Questions that a budget denied, runs of programs, and questions to a model that scores answers are no calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Answers of models.
    pub calls: u64,
    /// Tokens of their requests.
    pub tokens_in: u64,
    /// Tokens of the replies.
    pub tokens_out: u64,
    /// US dollars.
    pub cost_usd: f64,
}

impl Spent {
    /// Tokens of requests and replies.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in + self.tokens_out
    }

    /// Adds what others took.
    pub fn add(&mut self, other: &Spent) {
        self.calls += other.calls;
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.cost_usd += other.cost_usd;
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
    /// What was read in it.
    pub extracted: Option<String>,
    /// The right answer.
    pub gold: Option<String>,
    /// Whether it is right; `None` where nobody can tell.
    pub correct: Option<bool>,
    /// What its tests said.
    pub note: Option<String>,
    /// Rounds the method took.
    pub rounds: u32,
    /// What the method measured of it, by the quantity's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measured: BTreeMap<&'static str, f64>,
    /// What was spent on it.
    #[serde(flatten)]
    pub spent: Spent,
}

/// By (who, what for): the member's role, its name where it has been given one, else `members`; and the kind of work.
pub type Ledger = BTreeMap<(String, String), Spent>;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// In order of the data set.
    pub rows: Vec<Row>,
    /// Who spent what for what.
    pub ledger: Ledger,
    /// What a model that scores the answers took: no part of what the method takes.
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
    /// Reads the tables of a run that has ended with this digest. `scenario`: what its manifest holds, for the roles of the team.
    /// `quantities`: what its method measures.
    pub fn read(
        tables: &Reader<'_>,
        digest: &str,
        scenario: &serde_json::Value,
        quantities: &'static [Quantity],
    ) -> Result<Sheet, DriveError> {
        let columns = ["item", "question", "answer", "extracted", "gold", "correct", "note", "rounds"];
        let columns: Vec<&str> = columns.into_iter().chain(quantities.iter().map(|quantity| quantity.name)).collect();
        let items = Columns::read(tables, "items", &columns)?;
        let measured = |i: usize| {
            let value = |quantity: &'static Quantity| {
                let values = items.find(quantity.name)?.numbers();
                Some((quantity.name, values.get(i).copied().flatten()?))
            };
            quantities.iter().filter_map(value).collect()
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
        for (i, purpose) in calls.texts("purpose").into_iter().enumerate() {
            let tool = models[i].as_deref().is_some_and(is_tool);
            if tool || is(&outcomes, i, "denied") {
                continue;
            }
            let spent =
                Spent { calls: 1, tokens_in: tokens_in[i] as u64, tokens_out: tokens_out[i] as u64, cost_usd: cost[i] };
            if purpose.as_deref() == Some(SCORING) {
                scoring.add(&spent);
                continue;
            }
            let who = who(scenario, agent[i] as usize);
            ledger.entry((who, purpose.unwrap_or_default())).or_default().add(&spent);
            if let Ok(at) = rows.binary_search_by_key(&(item[i] as u32), |row| row.item) {
                rows[at].spent.add(&spent);
            }
        }
        Ok(Sheet { rows, ledger, scoring, digest: digest.into() })
    }
}

/// What a member is called in ledgers.
fn who(scenario: &serde_json::Value, agent: usize) -> String {
    let team = scenario.get("team").and_then(|team| team.as_array()).filter(|team| !team.is_empty());
    let member = team.and_then(|team| team.get(agent % team.len()));
    let text = |key: &str| member.and_then(|member| member.get(key)?.as_str());
    text("role").or_else(|| text("name")).unwrap_or("members").to_owned()
}
