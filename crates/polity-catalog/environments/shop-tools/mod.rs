//! A calculator and a table of goods, as tools. See README.md.

#[cfg(test)]
mod tests;

use polity_kernel::ask::{ResponseFormat, Value};
use polity_kernel::environment::{DeclareEnvironment, Environment, Move, Seat, StepResult};
use polity_kernel::interface::{ActionArgument, TextSlot};
use polity_kernel::items::{Item, Scorer};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::world::{ObservationRow, WorldSetup};
use polity_kernel::{Invalid, expression};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.environment::<ShopTools>(files);
}

/// Parameters of the tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The table: numbers by good and by column.
    goods: BTreeMap<String, BTreeMap<String, f64>>,
    /// Maximum number of tool calls, after which the episode ends without an answer.
    most_calls: u32,
}

impl Default for Params {
    fn default() -> Self {
        let good = |name: &str, price: f64, weight: f64| {
            (name.to_owned(), BTreeMap::from([("price".to_owned(), price), ("weight".to_owned(), weight)]))
        };
        let goods =
            [good("ink", 7.5, 0.2), good("lamp", 42.0, 1.8), good("paper", 3.25, 2.4), good("stool", 61.0, 5.5)];
        Params { goods: BTreeMap::from(goods), most_calls: 8 }
    }
}

/// A calculator and a table.
pub struct ShopTools {
    params: Params,
    columns: Vec<String>,
    calculate: u16,
    look_up: u16,
    answer: u16,
    question: TextSlot,
    result: TextSlot,
}

/// An episode: the question, and the results so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Desk {
    question: String,
    right: Option<String>,
    number: bool,
    result: String,
    calls: u32,
    over: bool,
}

impl ShopTools {
    fn found(&self, good: &str, column: &str) -> Result<f64, String> {
        let Some(row) = self.params.goods.get(good.trim()) else {
            let known: Vec<&str> = self.params.goods.keys().map(String::as_str).collect();
            return Err(format!("error: there is no good `{good}` (there are {})", known.join(", ")));
        };
        row.get(column).copied().ok_or_else(|| format!("error: `{good}` has no {column}"))
    }

    /// Returns the result of a tool call.
    fn call(&self, action: u16, argument: &Value) -> String {
        let text = |i: usize| argument.field(i).and_then(Value::as_text).unwrap_or_default();
        let shown = |found: Result<f64, String>| found.map_or_else(|error| error, expression::shown);
        if action == self.calculate {
            return shown(expression::value(text(0)).map_err(|error| format!("error: {error}")));
        }
        let column = match argument.field(1) {
            Some(Value::Choice(i)) => self.columns.get(*i as usize).map_or("", String::as_str),
            _ => "",
        };
        shown(self.found(text(0), column))
    }
}

impl Environment for ShopTools {
    const NAME: &'static str = "shop-tools";
    const SUMMARY: &'static str = "A calculator and a table of goods as tools, for questions about prices";
    type Params = Params;
    type State = Desk;

    fn open(params: Params, _: &WorldSetup<'_>, declare: &mut DeclareEnvironment<Self>) -> Result<Self, Invalid> {
        Invalid::unless(!params.goods.is_empty(), "goods", "the table must have at least one good")?;
        Invalid::unless(params.most_calls > 0, "most_calls", "must be at least 1")?;
        let columns: BTreeSet<String> = params.goods.values().flat_map(BTreeMap::keys).cloned().collect();
        Invalid::unless(!columns.is_empty(), "goods", "the table must have at least one column")?;
        let columns: Vec<String> = columns.into_iter().collect();
        let record = |fields: [(&str, ResponseFormat); 1]| {
            ActionArgument::Record(ResponseFormat::Record(
                fields.map(|(name, response_format)| (name.to_owned(), response_format)).into(),
            ))
        };
        let goods: Vec<&str> = params.goods.keys().map(String::as_str).collect();
        let doc = format!("look up a number of a good in the table; the goods are {}", goods.join(", "));
        let fields = vec![
            ("good".to_owned(), ResponseFormat::Text),
            ("column".to_owned(), ResponseFormat::Choice(columns.clone())),
        ];
        let look_up = declare.action("look-up", ActionArgument::Record(ResponseFormat::Record(fields)), doc);
        let doc = "work out an expression of numbers, + - * / and parentheses";
        let calculate = declare.action("calculate", record([("expression", ResponseFormat::Text)]), doc);
        let answer =
            declare.action("answer", record([("answer", ResponseFormat::Text)]), "give the final answer, as a number");
        let question = declare.text_slot("question", "the question");
        let result = declare.text_slot("result", "what the last call of a tool gave back");
        declare.number("calls", "calls of tools so far", |_, desk, _| f64::from(desk.calls));
        declare.column("calls", "tool calls so far", None, |_, desk, _| f64::from(desk.calls));
        Ok(ShopTools { params, columns, calculate, look_up, answer, question, result })
    }

    /// Without a data set the task is drawn at random: the price of a few pieces of two goods.
    fn reset(&self, task: &Item, draws: &mut Draws) -> Desk {
        if !task.question.is_empty() {
            let (question, right) = (task.question.clone(), task.gold.clone());
            return Desk { question, right, number: task.scorer == Scorer::Number, ..Desk::default() };
        }
        let n = self.params.goods.len() as u64;
        let column = &self.columns[draws.below(self.columns.len() as u64) as usize];
        let mut sum = 0.0;
        let parts: Vec<String> = (0..2)
            .map(|_| {
                let (pieces, place) = (1 + draws.below(9), draws.below(n) as usize);
                let (name, row) =
                    self.params.goods.iter().nth(place).unwrap_or_else(|| unreachable!("there are goods"));
                sum += pieces as f64 * row.get(column).copied().unwrap_or_default();
                format!("{pieces} x {name}")
            })
            .collect();
        let question = format!("What is the {column} of {} together?", parts.join(" and "));
        Desk { question, right: Some(sum.to_string()), number: true, ..Desk::default() }
    }

    fn observe(&self, desk: &Desk, _: Seat, observation: &mut ObservationRow<'_>) {
        observation.text(self.question, desk.question.clone());
        observation.text(self.result, desk.result.clone());
    }

    fn offers(&self, desk: &Desk, _: Seat, _: u16) -> bool {
        !desk.over
    }

    fn step(&self, desk: &mut Desk, moves: &[Move], _: &mut Draws) -> StepResult {
        let Some(made) = moves.first() else { return StepResult::default() };
        if made.action == self.answer {
            let said = made.argument.field(0).and_then(Value::as_text).unwrap_or_default();
            let scorer = if desk.number { Scorer::Number } else { Scorer::Exact };
            let item = Item { gold: desk.right.clone(), scorer, ..Item::default() };
            desk.over = true;
            let reward = f64::from(u8::from(item.is_right(said) == Some(true)));
            return StepResult { rewards: vec![reward], results: vec![String::new()], done: true };
        }
        assert!(made.action == self.calculate || made.action == self.look_up);
        desk.calls += 1;
        desk.result = self.call(made.action, &made.argument);
        desk.over = desk.calls >= self.params.most_calls;
        StepResult { rewards: vec![0.0], results: vec![desk.result.clone()], done: desk.over }
    }
}
