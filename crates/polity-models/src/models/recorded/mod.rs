//! Recorded answers of real models: `recorded/NAME` replies what that model once answered to the item. The scenario names the table
//! (`items.recorded`), and the kernel looks the answer up (`polity_kernel::items::Recording`). Nothing is made up: a question without an
//! answer on record fails and says why.

use super::provider::{Answering, Exchange, Provider, ProviderError};
use super::reply::read_reply;
use polity_kernel::ask::{Effect, Outcome, Recorded, Request, ResponseFormat, Usage};
use polity_kernel::items::recorded_model;
use serde_json::{Map, Value as Json};

/// The provider `recorded`.
pub struct Recordings;

impl Provider for Recordings {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn check(&self, model: &str) -> Result<(), String> {
        match recorded_model(model).is_some_and(|name| !name.is_empty()) {
            true => Ok(()),
            false => Err(format!("`{model}`: name the model as in the table of recorded answers, `recorded/NAME`")),
        }
    }

    fn most(&self, _: &Request) -> Usage {
        Usage::default()
    }

    fn notices(&self) -> Vec<String> {
        vec!["models `recorded/...` are not asked: their answers are read from the table `items.recorded`".into()]
    }

    fn simulated(&self) -> bool {
        false
    }

    fn immediate(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, effect: &'a Effect, _: u64) -> Answering<'a> {
        let exchange = match effect.hidden.as_ref().and_then(|hidden| hidden.recorded.as_ref()) {
            Some(Ok(found)) => Ok(reply(found, &effect.request)),
            Some(Err(why)) => Ok(failed(why.clone())),
            None => Err(ProviderError::Fatal {
                why: format!(
                    "`{}`: recorded answers exist for the items of an evaluation only (`items.recorded`)",
                    effect.request.model
                ),
            }),
        };
        Box::pin(std::future::ready(exchange))
    }
}

fn failed(why: String) -> Exchange {
    Exchange { outcome: Outcome::Failed { why }, usage: Usage::default(), reasoning: None }
}

/// The recorded reply in the wanted form.
fn reply(found: &Recorded, request: &Request) -> Exchange {
    let Recorded { fields, tokens_in, tokens_out, cost_usd } = found;
    let usage = Usage { tokens_in: *tokens_in, tokens_out: *tokens_out, cost_usd: *cost_usd, ..Usage::default() };
    if request.step.is_some_and(|step| step.nth > 0) {
        return failed("the model was not asked again when its answer was recorded".into());
    }
    let answer = fields.get("answer").map_or("", String::as_str);
    if answer.is_empty() {
        let why = "no answer could be read from the recorded reply".into();
        return Exchange { outcome: Outcome::Invalid { raw: String::new(), why }, usage, reasoning: None };
    }
    let raw = match &request.response_format {
        ResponseFormat::Record(parts) => match record(found, parts) {
            Ok(json) => json.to_string(),
            Err(why) => return failed(why),
        },
        _ => answer.to_owned(),
    };
    Exchange { outcome: read_reply(&request.response_format, &raw), usage, reasoning: None }
}

/// A record with the recorded fields. Texts that were not recorded, such as reasons, are empty.
fn record(found: &Recorded, parts: &[(String, ResponseFormat)]) -> Result<Json, String> {
    let mut json = Map::new();
    for (name, form) in parts {
        let value = match (found.fields.get(name), form) {
            (Some(cell), ResponseFormat::Number { .. }) => match cell.parse::<f64>() {
                Ok(number) => Json::from(number),
                Err(_) => Json::from(cell.as_str()),
            },
            (Some(cell), _) => Json::from(cell.as_str()),
            (None, ResponseFormat::Text) => Json::from(""),
            (None, _) => return Err(format!("the question wants a field `{name}`, which is not on record")),
        };
        json.insert(name.clone(), value);
    }
    Ok(Json::Object(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::{Asker, EffectId, Hidden, Value};
    use std::task::{Context, Poll, Waker};

    fn answered(found: Result<Recorded, String>, response_format: ResponseFormat) -> Option<Outcome> {
        let id = EffectId { item: 0, round: 0, actor: 0, asker: Asker::Member, n: 0 };
        let request = Request::new("recorded/a", Vec::new(), response_format);
        let hidden = Some(Hidden { recorded: Some(found), ..Hidden::default() });
        let effect = Effect { id, request, hidden, default: None };
        match Recordings.answer(&effect, 1).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(exchange)) => Some(exchange.outcome),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    fn on_record(answer: &str) -> Result<Recorded, String> {
        Ok(Recorded { fields: [("answer".to_string(), answer.to_string())].into(), ..Recorded::default() })
    }

    fn reasons_and(answer: ResponseFormat) -> ResponseFormat {
        ResponseFormat::Record(vec![("reasons".into(), ResponseFormat::Text), ("answer".into(), answer)])
    }

    #[test]
    fn the_recorded_answer_takes_the_wanted_form() {
        let letters = ResponseFormat::Choice(["A", "B"].map(String::from).to_vec());
        let value = |outcome: Option<Outcome>| match outcome {
            Some(Outcome::Reply { value, repaired: false, .. }) => Some(value),
            _ => None,
        };
        assert_eq!(value(answered(on_record("B"), letters.clone())), Some(Value::Choice(1)));
        let both = value(answered(on_record("A"), reasons_and(letters.clone())));
        assert_eq!(both, Some(Value::Record(vec![Value::Text(String::new()), Value::Choice(0)])));
        assert_eq!(
            value(answered(on_record("4.5"), reasons_and(ResponseFormat::Text))),
            Some(Value::Record(vec![Value::Text(String::new()), Value::Text("4.5".into())]))
        );
        // An answer outside the options is the model's own fault.
        assert!(matches!(answered(on_record("Z"), letters), Some(Outcome::Invalid { .. })));
    }

    #[test]
    fn nothing_is_made_up() {
        let marks = ResponseFormat::List { of: Box::new(ResponseFormat::number(1.0, 5.0)), least: 2, most: 2 };
        let with_marks = ResponseFormat::Record(vec![("answer".into(), ResponseFormat::Text), ("marks".into(), marks)]);
        assert!(matches!(answered(on_record("x"), with_marks), Some(Outcome::Failed { .. })));
        assert!(matches!(answered(on_record(""), ResponseFormat::Text), Some(Outcome::Invalid { .. })));
        let none = answered(Err("not on record".into()), ResponseFormat::Text);
        assert_eq!(none, Some(Outcome::Failed { why: "not on record".into() }));
    }
}
