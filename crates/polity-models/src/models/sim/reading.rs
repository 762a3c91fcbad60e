//! How a simulated model reads: it calls the tool that the item's plan names next, sees whether a result holds what was looked for, and
//! answers from what it has seen. What a reader overlooks, forgets or makes up is declared ([`super::parameters::Reading`]).

use super::answers::placeholder;
use super::call::{Call, For};
use polity_kernel::ask::schema::{kind, listed, resolved};
use polity_kernel::ask::{ChatMessage, Hidden, Part, PlannedCall, ResponseFormat, Role, Value};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::tool::{Arguments, ToolCall, ToolSpec};
use serde_json::Value as Json;

/// The tool by which an answer is given, if it is offered.
const ANSWER: &str = "answer";
/// Its argument for reasons, if it takes any.
const REASONS: &str = "reasons";
/// Calls that a model makes which knows nothing of an item, in all and in one reply.
const MOST_TRIED: usize = 3;
const TRIED_AT_ONCE: usize = 2;
/// Characters of a text that is made up as an argument, and depth of an argument.
const WORDS: usize = 200;
const DEEPEST: usize = 8;
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
        // The question itself is no evidence, and neither are instructions of the system.
        let messages = self.effect.request.messages.iter().filter(|message| message.role != Role::System);
        for (nth, part) in messages.flat_map(|message| &message.parts).enumerate() {
            let (text, evidence) = match part {
                Part::Result(result) if !result.error => (result.text.to_lowercase(), true),
                Part::Said { answer, reasons, .. } => (format!("{answer}\n{reasons}").to_lowercase(), true),
                Part::Finding { words, .. } | Part::Text(words) => (words.to_lowercase(), false),
                Part::Result(_) | Part::Calls(_) => continue,
            };
            match nth > 0 && text.contains(&wanted) {
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
        let Some(hidden) = &self.effect.hidden else {
            return match self.tried(tools) {
                calls if calls.is_empty() => self.answered(tools, &self.answer()),
                calls => Value::Calls { text: String::new(), calls },
            };
        };
        let step = match self.seen(hidden) {
            None => return self.answered(tools, &self.answer()),
            Some(Seen::All) => return self.answered(tools, &self.read_answer(hidden)),
            Some(Seen::UpTo(step)) => step,
        };
        let reading = &self.model.reading;
        if self.draws(For::ClosedBook).chance(reading.closed_book) {
            return self.answered(tools, &self.remembered(hidden));
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

    /// The calls that the model has made so far.
    fn made(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = self.effect.request.messages.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| if let Part::Calls(calls) = part { Some(calls) } else { None }).flatten()
    }

    fn has_made(&self, call: &ToolCall) -> bool {
        self.made().any(|made| made.tool == call.tool && made.read() == call.read())
    }

    /// The next calls of a model that knows nothing of an item: every tool once, in order, except the one to answer with. A tool whose
    /// arguments cannot be made up is left out.
    fn tried(&self, tools: &[ToolSpec]) -> Vec<ToolCall> {
        let left = MOST_TRIED.saturating_sub(self.made().count());
        let new = tools.iter().filter(|tool| &*tool.name != ANSWER && self.made().all(|made| made.tool != *tool.name));
        new.filter_map(|tool| made_up(tool, &self.question())).take(left.min(TRIED_AT_ONCE)).collect()
    }

    /// The words of the user's last message that is not the result of a call.
    fn question(&self) -> String {
        let asks = |message: &&ChatMessage| {
            let results = message.parts.iter().any(|part| matches!(part, Part::Result(_)));
            message.role == Role::User && !results
        };
        let last = self.effect.request.messages.iter().rev().find(asks);
        last.map(|message| message.rendered().split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
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

/// A call with the required arguments: texts are the words, numbers their minimum. `None` if they do not fit the tool's schema.
fn made_up(tool: &ToolSpec, words: &str) -> Option<ToolCall> {
    let schema = tool.schema();
    let arguments = argument(&schema, &schema, words, 0);
    let fits = jsonschema::validator_for(&schema).is_ok_and(|validator| validator.is_valid(&arguments));
    match arguments {
        Json::Object(arguments) if fits => Some(ToolCall::new(&*tool.name, &arguments)),
        _ => None,
    }
}

fn argument(root: &Json, schema: &Json, words: &str, depth: usize) -> Json {
    let schema = resolved(root, schema, depth);
    if depth > DEEPEST {
        return Json::Null;
    }
    if let Some(values) = listed(schema) {
        return values.first().map_or(Json::Null, |value| (*value).clone());
    }
    let bound = |name: &str| schema[name].as_f64();
    match kind(schema) {
        "object" => {
            let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
            let field = |name: &str| (name.to_owned(), argument(root, &schema["properties"][name], words, depth + 1));
            Json::Object(names.map(field).collect())
        }
        "array" => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(100);
            (0..least).map(|_| argument(root, &schema["items"], words, depth + 1)).collect()
        }
        "integer" => {
            let least = bound("minimum").map(f64::ceil).or(bound("exclusiveMinimum").map(|low| low.floor() + 1.0));
            Json::from(least.unwrap_or_else(|| bound("maximum").map_or(0.0, |high| high.floor().min(0.0))) as i64)
        }
        "number" => {
            let least = bound("minimum").or(bound("exclusiveMinimum").map(|low| low + 1.0));
            Json::from(least.unwrap_or_else(|| bound("maximum").map_or(0.0, |high| high.min(0.0))))
        }
        "boolean" => Json::Bool(false),
        "null" => Json::Null,
        _ => {
            let most = schema["maxLength"].as_u64().map_or(WORDS, |most| (most as usize).min(WORDS));
            Json::from(words.chars().take(most).collect::<String>().trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::tool::EffectClass;
    use serde_json::json;

    fn made(schema: &Json) -> Option<Json> {
        let call = made_up(&ToolSpec::new("t", "", schema, EffectClass::Pure), "how warm is it?")?;
        Some(Json::Object(call.read()))
    }

    #[test]
    fn made_up_arguments_fit() {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "maxLength": 8}, "k": {"type": "integer", "minimum": 2},
                "share": {"type": "number", "exclusiveMinimum": 0}, "unit": {"enum": ["c", "f"]},
                "days": {"type": "array", "minItems": 2, "items": {"type": ["string", "null"]}},
                "place": {"$ref": "#/$defs/place"}, "deep": {"type": "boolean"}, "spare": {"type": "string"},
            },
            "required": ["query", "k", "share", "unit", "days", "place", "deep"],
            "additionalProperties": false,
            "$defs": {"place": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}},
        });
        let words = "how warm is it?";
        let expected = json!({
            "query": "how warm", "k": 2, "share": 1.0, "unit": "c", "days": [words, words], "place": {"town": words},
            "deep": false,
        });
        assert_eq!(made(&schema), Some(expected));
        assert_eq!(made(&json!({"type": "object", "properties": {}})), Some(json!({})));
        // Nothing can be made up for a pattern.
        let town = json!({"type": "string", "pattern": "^[0-9]{5}$"});
        assert_eq!(made(&json!({"type": "object", "properties": {"code": town}, "required": ["code"]})), None);
    }
}
