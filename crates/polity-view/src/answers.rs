//! Calls, and the items of evaluations as conversations.

use super::App;
use super::problem::{Answer, Problem};
use super::rows::{Rows, page};
use polity_driver::results;
use polity_driver::run::{self, Shown, Texts};
use polity_stats::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Which calls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CallsWanted {
    pub round: Option<u32>,
    pub agent: Option<u32>,
    pub item: Option<u32>,
    pub purpose: Option<String>,
    pub outcome: Option<String>,
    pub model: Option<String>,
    /// Text that the prompt or the answer contains.
    pub text: Option<String>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// A number of calls of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Counted {
    pub name: String,
    pub count: usize,
}

/// A page of calls.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Calls {
    pub total: usize,
    pub calls: Vec<Json>,
    pub purposes: Vec<Counted>,
    pub outcomes: Vec<Counted>,
}

pub(crate) fn calls(app: &App, folder: &Path, wanted: &CallsWanted) -> Answer<Calls> {
    let CallsWanted { round, agent, item, purpose, outcome, model, text, limit, offset } = wanted;
    let filter = run::Wanted { round: *round, agent: *agent, item: *item, purpose: purpose.clone(), limit: None };
    let found = match run::calls(app.disk.clone(), folder, &filter, Texts::Whole) {
        Ok(found) => found,
        // Nobody with these properties asked anything.
        Err(polity_store::DriveError::Input(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let (mut purposes, mut outcomes): (BTreeMap<String, usize>, BTreeMap<String, usize>) = Default::default();
    let needle = text.as_ref().map(|text| text.to_lowercase());
    let mut matched: Vec<&Shown> = Vec::new();
    for shown in &found {
        let call = &shown.call;
        *purposes.entry(call.purpose.clone()).or_default() += 1;
        *outcomes.entry(call.outcome.to_string()).or_default() += 1;
        let has = |needle: &String| {
            call.prompt.to_lowercase().contains(needle) || call.answer.to_lowercase().contains(needle)
        };
        let fits = outcome.as_ref().is_none_or(|outcome| outcome == call.outcome)
            && model.as_ref().is_none_or(|model| *model == call.model)
            && needle.as_ref().is_none_or(has);
        if fits {
            matched.push(shown);
        }
    }
    let all: Vec<usize> = (0..matched.len()).collect();
    let page = page(&all, *offset, *limit, 100).iter().map(|i| call_json(matched[*i]));
    let list = |of: BTreeMap<String, usize>| of.into_iter().map(|(name, count)| Counted { name, count }).collect();
    Ok(Calls { total: matched.len(), calls: page.collect(), purposes: list(purposes), outcomes: list(outcomes) })
}

/// A call with the messages of its prompt.
fn call_json(shown: &Shown) -> Json {
    let mut json = serde_json::to_value(&shown.call).unwrap_or_default();
    let messages = shown.messages.iter().map(|(role, text)| json!({ "role": role, "text": text }));
    json["messages"] = messages.collect();
    json["unfit"] = json!(shown.unfit);
    json
}

/// Which items.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ItemsWanted {
    pub correct: Option<bool>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
}

/// A share with its interval.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Accuracy {
    pub mean: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub n: usize,
}

/// A page of items.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Items {
    /// Items that match.
    pub total: usize,
    /// Items with a verdict.
    pub of: usize,
    pub accuracy: Option<Accuracy>,
    pub items: Vec<Json>,
}

pub(crate) fn items(app: &App, folder: &Path, wanted: &ItemsWanted) -> Answer<Items> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let Some(rows) = Rows::read(&run.tables, "items", &[], None)? else {
        return Ok(Items { total: 0, of: 0, accuracy: None, items: Vec::new() });
    };
    let (item, correct) = (rows.column("item")?, rows.column("correct")?);
    let scores: Vec<f64> = (0..rows.len()).filter_map(|row| rows.number(row, correct)).collect();
    let accuracy = (!scores.is_empty()).then(|| {
        let estimate = student(&scores);
        Accuracy { mean: estimate.mean.unwrap_or_default(), low: estimate.low, high: estimate.high, n: scores.len() }
    });
    let is = |row: &usize| {
        wanted.correct.is_none_or(|wanted| rows.number(*row, correct) == Some(f64::from(u8::from(wanted))))
    };
    let mut matched: Vec<usize> = (0..rows.len()).filter(is).collect();
    matched.sort_by_key(|row| rows.number(*row, item).unwrap_or_default() as u64);
    let page = page(&matched, wanted.offset, wanted.limit, 100);
    Ok(Items {
        total: matched.len(),
        of: rows.len(),
        accuracy,
        items: page.iter().map(|row| rows.object(*row)).collect(),
    })
}

/// An item as a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Conversation {
    pub item: Json,
    /// Items with a verdict.
    pub of: u64,
    pub team: Vec<Json>,
    pub acts: Vec<Json>,
    pub messages: Vec<Json>,
    pub calls: Vec<Json>,
}

pub(crate) fn conversation(app: &App, folder: &Path, wanted: u32) -> Answer<Conversation> {
    let run = results::of_run(app.disk.as_ref(), folder)?;
    let of_item = |table: &str| -> Answer<Vec<Json>> {
        let Some(rows) = Rows::read(&run.tables, table, &[], None)? else { return Ok(Vec::new()) };
        let item = rows.column("item")?;
        let is = |row: &usize| rows.number(*row, item) == Some(f64::from(wanted));
        Ok((0..rows.len()).filter(is).map(|row| rows.object(row)).collect())
    };
    let item = of_item("items")?.into_iter().next();
    let calls = calls(app, folder, &CallsWanted { item: Some(wanted), limit: Some(500), ..Default::default() })?.calls;
    if item.is_none() && calls.is_empty() {
        return Err(Problem::absent(format!("there is no item {wanted}, or nothing is recorded of it yet")));
    }
    let team = match Rows::read(&run.tables, "agents", &[], None)? {
        Some(rows) => (0..rows.len()).map(|row| rows.object(row)).collect(),
        None => Vec::new(),
    };
    Ok(Conversation {
        of: run.tables.parts().get("items").map_or(0, |parts| parts.iter().map(|part| part.rows).sum()),
        item: item.unwrap_or_else(|| json!({ "item": wanted })),
        team,
        acts: of_item("acts")?,
        messages: of_item("messages")?,
        calls,
    })
}
