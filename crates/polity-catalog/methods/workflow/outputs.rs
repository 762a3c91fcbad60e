//! Outputs of steps, and how they are shown.

use super::plan::{QUESTION, ROW, field, places};
use polity_kernel::ask::ResponseFormat;
use polity_kernel::items::Item;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The output of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Output {
    /// The text, or the first of several.
    pub text: String,
    /// Reasons that were given with it; may be empty.
    pub reasons: String,
    /// All texts, of several samples or elements.
    pub all: Vec<String>,
    /// Whether it passed: a function or a review. A step without a usable reply has failed.
    pub passed: Option<bool>,
    /// How it was asked for, to revise it.
    pub asked: Option<Asked>,
}

/// How an output was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub member: usize,
    pub instruction: String,
    pub part: Option<String>,
    pub see: Vec<String>,
    pub want: Option<ResponseFormat>,
}

impl Output {
    pub fn text(text: impl Into<String>) -> Output {
        Output { text: text.into(), ..Output::default() }
    }

    /// The text of a step that has nothing to say.
    pub fn failed(why: impl Into<String>) -> Output {
        Output { text: why.into(), passed: Some(false), ..Output::default() }
    }

    /// All texts; the text alone if there is one.
    pub fn texts(&self) -> Vec<&str> {
        match self.all.is_empty() {
            true => vec![self.text.as_str()],
            false => self.all.iter().map(String::as_str).collect(),
        }
    }
}

/// The outputs so far, by id, and the elements at hand.
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    by_id: BTreeMap<String, Output>,
    elements: Vec<(String, String)>,
    blank: Vec<String>,
}

impl Outputs {
    pub fn new(blank: &[String]) -> Outputs {
        Outputs { blank: blank.to_vec(), ..Outputs::default() }
    }

    pub fn put(&mut self, id: &str, output: Output) {
        self.by_id.insert(id.to_owned(), output);
    }

    pub fn get(&self, id: &str) -> Option<&Output> {
        self.by_id.get(id)
    }

    /// Whether a step has passed; `None` if it was not done, or cannot fail.
    pub fn passed(&self, id: &str) -> Option<bool> {
        self.get(id)?.passed
    }

    /// The text of a step as others get it: covered under the placebo, empty if the step was not done.
    pub fn shown(&self, id: &str) -> String {
        let Some(Output { text, reasons, .. }) = self.get(id) else { return String::new() };
        let whole = if reasons.is_empty() { text.clone() } else { format!("{text}\n{reasons}") };
        if self.blank.iter().any(|blank| blank == id) { covered(&whole) } else { whole }
    }

    /// The same without reasons; of `ID.FIELD`, the field of a record.
    pub fn given(&self, id: &str) -> String {
        let (step, text) = match (self.get(id), field(id)) {
            (Some(output), _) => (id, output.text.clone()),
            (None, Some((step, name))) => {
                (step, self.get(step).map_or_else(String::new, |output| part_of(output, name)))
            }
            (None, None) => (id, String::new()),
        };
        if self.blank.iter().any(|blank| blank == step) { covered(&text) } else { text }
    }

    /// The number that a step, or a field of its output, is.
    pub fn number(&self, id: &str) -> Option<f64> {
        self.given(id).trim().parse().ok()
    }

    /// The elements that `each` goes through: several samples, else lines; covered under the placebo.
    pub fn elements(&self, id: &str) -> Vec<String> {
        let Some(output) = self.get(id) else { return Vec::new() };
        let elements: Vec<&str> = match output.all.is_empty() {
            true => output.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
            false => output.texts(),
        };
        let is_blank = self.blank.iter().any(|blank| blank == id);
        elements.into_iter().map(|text| if is_blank { covered(text) } else { text.to_owned() }).collect()
    }

    pub fn enter(&mut self, name: &str, element: &str) {
        self.elements.push((name.to_owned(), element.to_owned()));
    }

    pub fn leave(&mut self) {
        self.elements.pop();
    }

    /// Fills in a template.
    pub fn filled(&self, template: &str, item: &Item) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut from = 0;
        for (start, end, name) in places(template) {
            if start < from {
                continue;
            }
            filled.push_str(&template[from..start]);
            let element = self.elements.iter().rev().find(|(known, _)| known == name);
            match (element, name.strip_prefix(ROW)) {
                (Some((_, element)), _) => filled.push_str(element),
                (None, Some(column)) => filled.push_str(&cell(item, column)),
                (None, None) if name == QUESTION => filled.push_str(&item.question),
                (None, None) => filled.push_str(&self.given(name)),
            }
            from = end;
        }
        filled.push_str(&template[from..]);
        filled
    }
}

/// A field of an output that is a record; empty if there is none.
fn part_of(output: &Output, name: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(&output.text).ok().as_ref().and_then(|record| record.get(name)) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// A cell of the item's row; empty if there is none.
fn cell(item: &Item, column: &str) -> String {
    let row = item.checker.as_ref().and_then(|checker| serde_json::from_str::<serde_json::Value>(&checker.row).ok());
    match row.as_ref().and_then(|row| row.get(column)) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// A text of the same shape that carries no information.
fn covered(text: &str) -> String {
    let cover = |c: char| match c {
        c if c.is_numeric() => '0',
        c if c.is_alphabetic() => 'x',
        c => c,
    };
    text.chars().map(cover).collect()
}
