//! How a simulated model reads: it calls the tool that the item's plan names next, sees whether a result holds what was looked for, and
//! answers from what it has seen. What a reader overlooks, forgets or makes up is declared ([`super::parameters::Reading`]).

use super::answers::placeholder;
use super::call::{Call, For};
use polity_kernel::ask::{Hidden, Part, PlannedCall, ResponseFormat, Value};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tool::{Arguments, ToolCall, ToolSpec};
use serde_json::Value as Json;

/// The tool by which an answer is given, if it is offered.
const ANSWER: &str = "answer";
/// Its argument for reasons, if it takes any.
const REASONS: &str = "reasons";
/// Characters of a thousand tokens, about.
const THOUSAND_TOKENS: f64 = 4_000.0;

/// What a reader has seen of what an item needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Everything.
    All,
    /// Everything before this step of the plan.
    UpTo(usize),
}

impl Call<'_> {
    /// What the model has seen of the item's plan; `None` if the item has none.
    pub(super) fn seen(&self, hidden: &Hidden) -> Option<Seen> {
        if hidden.plan.is_empty() {
            return None;
        }
        let missing = hidden.plan.iter().position(|step| !self.sees(step));
        Some(missing.map_or(Seen::All, Seen::UpTo))
    }

    /// Whether a shown text holds what a step finds, and the model neither overlooks nor forgets it. Errors of tools say nothing.
    fn sees(&self, step: &PlannedCall) -> bool {
        let wanted = step.finds.to_lowercase();
        if wanted.is_empty() {
            return false;
        }
        let (mut after, mut distractors, mut found) = (0usize, 0u32, false);
        let parts = self.effect.request.messages.iter().flat_map(|message| &message.parts);
        for part in parts {
            let (text, evidence) = match part {
                Part::Result(result) if !result.error => (result.text.to_lowercase(), true),
                Part::Said { answer, reasons, .. } => (format!("{answer}\n{reasons}").to_lowercase(), true),
                Part::Finding { words, .. } | Part::Text(words) => (words.clone(), false),
                Part::Result(_) | Part::Calls(_) => continue,
            };
            match evidence && text.contains(&wanted) {
                true => (found, after) = (true, 0),
                false => {
                    after += text.len();
                    distractors += u32::from(evidence);
                }
            }
        }
        let reading = &self.model.reading;
        let missed = reading.unread
            + reading.distraction * f64::from(distractors)
            + reading.forgetting * after as f64 / THOUSAND_TOKENS;
        found && !self.about(For::Reading, &step.finds).chance(missed.min(0.95))
    }

    /// Draws about a text, apart for every call.
    fn about(&self, purpose: For, text: &str) -> Draws {
        let about = RowHash::new(Kind::Request, 0).bytes(text.as_bytes()).finish() as u64;
        let key = self.call.word(purpose as u64).word(about).finish() as u64;
        Draws::new(self.seed ^ key, Stream::Model, self.effect.id.round, self.effect.id.actor)
    }

    /// The answer of a reader that has seen everything: right as often as it comprehends.
    pub(super) fn read_answer(&self, hidden: &Hidden) -> String {
        match self.draws(For::Comprehension).chance(self.model.reading.comprehension) {
            true => hidden.gold.clone(),
            false => self.mistake(&ResponseFormat::Text, hidden),
        }
    }

    /// A reply that may call tools.
    pub(super) fn acted(&self, tools: &[ToolSpec]) -> Value {
        let Some(hidden) = &self.effect.hidden else { return self.answered(tools, &self.answer()) };
        let step = match self.seen(hidden) {
            None => return self.answered(tools, &self.answer()),
            Some(Seen::All) => return self.answered(tools, &self.read_answer(hidden)),
            Some(Seen::UpTo(step)) => step,
        };
        let reading = &self.model.reading;
        if self.draws(For::ClosedBook).chance(reading.closed_book) {
            return self.answered(tools, &self.alone());
        }
        if self.draws(For::WrongCall).chance(reading.wrong_call)
            && let Some(call) = self.wrong_call(tools)
        {
            return Value::Calls { text: String::new(), calls: vec![call] };
        }
        // A call that brought nothing is not made again.
        let open =
            hidden.plan.iter().skip(step).find(|planned| {
                tools.iter().any(|tool| *tool.name == planned.call.tool) && !self.has_made(&planned.call)
            });
        match open {
            Some(planned) => Value::Calls { text: String::new(), calls: vec![planned.call.clone()] },
            None => self.answered(tools, &self.answer()),
        }
    }

    /// What it has seen of what the item needs, to be told as reasons. Only a tool that takes reasons gets them.
    fn found(&self) -> Vec<&str> {
        let ResponseFormat::Calls(tools) = &self.effect.request.response_format else { return Vec::new() };
        let takes = |tool: &ToolSpec| &*tool.name == ANSWER && tool.schema()["properties"][REASONS].is_object();
        match &self.effect.hidden {
            Some(hidden) if tools.iter().any(takes) => {
                hidden.plan.iter().filter(|step| self.sees(step)).map(|step| step.finds.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn has_made(&self, call: &ToolCall) -> bool {
        let parts = self.effect.request.messages.iter().flat_map(|message| &message.parts);
        parts
            .filter_map(|part| if let Part::Calls(calls) = part { Some(calls) } else { None })
            .flatten()
            .any(|made| made.tool == call.tool && made.read() == call.read())
    }

    fn answered(&self, tools: &[ToolSpec], answer: &str) -> Value {
        match tools.iter().find(|tool| &*tool.name == ANSWER) {
            Some(_) => {
                let mut arguments = Arguments::from_iter([(ANSWER.to_owned(), Json::from(answer))]);
                let found = self.found();
                if !found.is_empty() {
                    arguments.insert(REASONS.to_owned(), Json::from(found.join(". ")));
                }
                Value::Calls { text: String::new(), calls: vec![ToolCall::new(ANSWER, &arguments)] }
            }
            None => Value::Calls { text: answer.to_owned(), calls: Vec::new() },
        }
    }

    /// A call that fits its schema and means nothing, of a tool other than the one to answer with.
    fn wrong_call(&self, tools: &[ToolSpec]) -> Option<ToolCall> {
        let others: Vec<&ToolSpec> = tools.iter().filter(|tool| &*tool.name != ANSWER).collect();
        let mut draws = self.draws(For::WrongCall);
        let tool = others.get(draws.below(others.len().max(1) as u64) as usize)?;
        let mut arguments = Arguments::new();
        let schema = tool.schema();
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            let format = ResponseFormat::like(&schema["properties"][name]);
            let text = placeholder(&format, &mut draws);
            let value = match format {
                ResponseFormat::Number { whole: true, .. } => Json::from(text.parse::<f64>().unwrap_or(0.0) as i64),
                ResponseFormat::Number { .. } => Json::from(text.parse::<f64>().unwrap_or(0.0)),
                ResponseFormat::List { .. } => Json::Array(Vec::new()),
                ResponseFormat::Record(_) => Json::Object(Arguments::new()),
                _ if format.is_yes_or_no() => Json::from(text == "true"),
                _ => Json::from(text),
            };
            arguments.insert(name.to_owned(), value);
        }
        Some(ToolCall::new(&*tool.name, &arguments))
    }
}
