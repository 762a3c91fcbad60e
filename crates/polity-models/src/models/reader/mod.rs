//! A reader of surveys by rules: `reader/surveys` reads a survey in the prompt and scores an aspect of it. See README.md.

mod rules;
#[cfg(test)]
mod tests;

use super::provider::{Answering, Exchange, Provider, ProviderError};
use super::reply::read_reply;
use polity_kernel::ask::{Effect, Outcome, Part, Request, ResponseFormat, Usage};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use rules::{Defect, Survey};
use serde_json::{Map, Value as Json};
use std::collections::BTreeSet;

/// The provider's name.
const NAME: &str = "reader";

/// Marks and their bounds: one less for each defect found.
const MARKS: (i64, i64) = (1, 5);

/// The provider `reader`.
pub struct Reader;

impl Provider for Reader {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, model: &str) -> Result<(), String> {
        lapse(model).map(|_| ())
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    /// It stands in for a model.
    fn simulated(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        let exchange = lapse(&effect.request.model).map_err(|why| ProviderError::Fatal { why }).map(|lapse| {
            let outcome = match reply(effect, lapse, seed) {
                Ok(raw) => read_reply(&effect.request.response_format, &raw),
                Err(why) => Outcome::Failed { why },
            };
            Exchange { outcome, usage: Usage::default(), reasoning: None }
        });
        Box::pin(std::future::ready(exchange))
    }
}

/// The probability that a reader skips a question of the survey, from the model's name: `reader/surveys?lapse=0.3`.
fn lapse(model: &str) -> Result<f64, String> {
    let name = model.split_once('/').map_or("", |(_, name)| name);
    let wrong = || format!("`{model}`: write `reader/surveys`, or `reader/surveys?lapse=P` with P from 0 to 1");
    match name.split_once('?') {
        None if name == "surveys" => Ok(0.0),
        Some(("surveys", set)) => {
            let value = set.strip_prefix("lapse=").and_then(|value| value.parse().ok());
            value.filter(|lapse| (0.0..=1.0).contains(lapse)).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// What a reader found: the place of the question, from 0, and the defect.
type Found = BTreeSet<(usize, Defect)>;

/// Reads the request: the survey, the aspect, what others said of it; returns the reply.
fn reply(effect: &Effect, lapse: f64, seed: u64) -> Result<String, String> {
    let parts = || effect.request.messages.iter().flat_map(|message| &message.parts);
    let texts = || parts().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
    let survey = texts().find_map(survey).ok_or("there is no survey in the request")?;
    let aspect = texts().next_back().and_then(aspect).ok_or("the request names no aspect to look at")?;
    let mut found: Found = own(&survey, lapse, draws(effect, seed));
    // What others found is looked up where they say it is.
    let said = parts().filter_map(|part| if let Part::Said { reasons, .. } = part { Some(reasons) } else { None });
    found.extend(said.flat_map(|reasons| remarks(reasons)).filter(|(place, defect)| defect.at(&survey, *place)));
    found.retain(|(_, defect)| defect.concerns(aspect));
    let (low, high) = MARKS;
    let mark = (high - found.len() as i64).max(low);
    worded(&effect.request.response_format, &reasons(&found), mark)
}

fn draws(effect: &Effect, seed: u64) -> Draws {
    let key = RowHash::new(Kind::Request, 0).word(u64::from(effect.id.item)).word(u64::from(effect.id.n));
    let key = key.word(u64::from(effect.request.sample)).finish() as u64;
    Draws::new(seed ^ key, Stream::Model, effect.id.round, effect.id.actor)
}

/// The survey in a text: the first JSON object, if it is one.
fn survey(text: &str) -> Option<Survey> {
    let json = &text[text.find('{')?..];
    serde_json::Deserializer::from_str(json).into_iter().next()?.ok()
}

/// The aspect that an instruction names: what stands between the colon after the word and the full stop.
fn aspect(text: &str) -> Option<&str> {
    let (_, named) = text[text.find("aspect")?..].split_once(": ")?;
    named.split_once('.').map(|(aspect, _)| aspect)
}

/// What a reader finds itself. It skips each question with the probability of a lapse.
fn own(survey: &Survey, lapse: f64, mut draws: Draws) -> Found {
    let mut found = Found::new();
    for place in 0..survey.questions.len() {
        if !draws.chance(lapse) {
            found.extend(
                Defect::ALL.into_iter().filter(|defect| defect.at(survey, place)).map(|defect| (place, defect)),
            );
        }
    }
    found
}

fn reasons(found: &Found) -> String {
    if found.is_empty() {
        return "Nothing is wrong.".into();
    }
    let told = found.iter().map(|(place, defect)| format!("Question {} {}.", place + 1, defect.words()));
    told.collect::<Vec<_>>().join(" ")
}

/// The defects that a text names, and where; other sentences are passed over.
fn remarks(text: &str) -> Vec<(usize, Defect)> {
    let remark = |sentence: &str| {
        let (number, words) = sentence.trim().strip_prefix("Question ")?.split_once(' ')?;
        let place = number.parse::<usize>().ok()?.checked_sub(1)?;
        Defect::ALL.into_iter().find(|defect| defect.words() == words).map(|defect| (place, defect))
    };
    text.split('.').filter_map(remark).collect()
}

/// A reply in the requested form: a number, or a record of texts and numbers.
fn worded(response_format: &ResponseFormat, reasons: &str, mark: i64) -> Result<String, String> {
    match response_format {
        ResponseFormat::Number { .. } => Ok(mark.to_string()),
        ResponseFormat::Record(fields) => {
            let mut json = Map::new();
            for (name, form) in fields {
                let value = match form {
                    ResponseFormat::Text => Json::from(reasons),
                    ResponseFormat::Number { .. } => Json::from(mark),
                    _ => return Err(format!("a reader has no answer for the field `{name}`")),
                };
                json.insert(name.clone(), value);
            }
            Ok(Json::Object(json).to_string())
        }
        _ => Err("a reader answers with a number, or with reasons and a number".into()),
    }
}
