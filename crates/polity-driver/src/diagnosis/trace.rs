//! The trace of an item: its steps and its end, as the record has them.

use polity_kernel::ask::{Answer, Asker, EffectId, Outcome, Part, Request, Resolution, ResponseFormat, Role, Value};
use polity_kernel::items::Item;
use std::collections::BTreeMap;

/// How an item ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// The team's answer.
    pub answer: Option<String>,
    /// Whether it is right, if that is known.
    pub correct: Option<bool>,
    /// Number of rounds.
    pub rounds: u32,
}

/// A step: a question that got a reply that fits, or none.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its place.
    pub id: EffectId,
    /// The request.
    pub request: Request,
    /// Its kind.
    pub kind: Kind,
    /// The answer in the reply; `None` if it has none.
    pub answer: Option<String>,
    /// The reasons in the reply.
    pub reasons: Option<String>,
    /// The words in which an answer is reviewed; `None` if it is no check.
    pub review: Option<String>,
    /// Whether the reply does not fit its format.
    pub unfit: bool,
    /// Whether it accepts the answer that it checks; `None` if it is no check, or says neither.
    pub accepts: Option<bool>,
    /// Which of its member's solving steps on the item it is, from 0; `None` if it does not solve.
    pub nth: Option<u32>,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A member answers the item.
    Solves,
    /// A member judges answers, or a program runs with tests.
    Judges,
    /// Anything else.
    Other,
}

/// The trace of an item that has ended.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The item.
    pub item: u32,
    /// Its steps, by round, member and number.
    pub steps: Vec<Step>,
    /// How it ended.
    pub ended: Ended,
}

impl Step {
    fn of(item: &Item, answer: &Answer) -> Step {
        let Answer { id, request, outcome, .. } = answer;
        let kind = match request.purpose.as_str() {
            "solve" | "reconsider" | "mislead" => Kind::Solves,
            "check" | "choose" | "rate" => Kind::Judges,
            "run" if id.asker == Asker::Method => Kind::Judges,
            _ => Kind::Other,
        };
        let value = match outcome {
            Outcome::Reply { value, .. } => Some(value),
            _ => None,
        };
        let field = |name: &str| value.and_then(|value| field(value, &request.response_format, name, item));
        let whole = || value.and_then(|value| text(value, item));
        let (answer, reasons) = match kind {
            Kind::Solves => (field("answer").or_else(whole), field("reasons")),
            _ => (None, None),
        };
        let accepts = match (request.purpose.as_str(), value) {
            ("check", Some(value)) => accepted(value, &request.response_format),
            _ => None,
        };
        let review = accepts.and(field("reasons"));
        let unfit = matches!(outcome, Outcome::Invalid { .. });
        Step { id: *id, request: request.clone(), kind, answer, reasons, review, unfit, accepts, nth: None }
    }

    /// Returns the member's own last answer, as the request shows it.
    #[must_use]
    pub fn own(&self) -> Option<&str> {
        let own = self.request.messages.iter().rev().filter(|message| message.role == Role::Assistant);
        own.flat_map(|message| &message.parts).find_map(|part| match part {
            Part::Said { answer, .. } => Some(answer.as_str()),
            _ => None,
        })
    }

    /// Whether the request continues a conversation in which the member spoke.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.request.messages.iter().any(|message| message.role == Role::Assistant)
    }

    /// Returns the answers of others in the request: (speaker, answer).
    pub fn heard(&self) -> impl Iterator<Item = (&str, &str)> {
        let others = self.request.messages.iter().filter(|message| message.role == Role::User);
        others.flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::Said { by, answer, .. } => Some((by.as_str(), answer.as_str())),
            _ => None,
        })
    }

    /// Returns whether the last finding in the request says that the member's answer is right.
    #[must_use]
    pub fn finding(&self) -> Option<bool> {
        self.request.messages.iter().flat_map(|message| &message.parts).rev().find_map(|part| match part {
            Part::Finding { right, .. } => Some(*right),
            _ => None,
        })
    }

    /// Whether the request shows anything that was said before.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.continues() || self.finding().is_some() || self.heard().next().is_some()
    }

    /// Whether the member is told that its own answer is wrong, or several others give another one.
    #[must_use]
    pub fn is_opposed(&self) -> bool {
        self.own()
            .is_some_and(|own| self.finding() == Some(false) || self.heard().filter(|(_, it)| *it != own).count() > 1)
    }

    /// Whether the request has this text.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        self.request.messages.iter().flat_map(|message| &message.parts).any(|part| match part {
            Part::Text(part) => part.contains(text),
            _ => false,
        })
    }
}

impl Trace {
    /// Makes the traces of the items that have ended.
    #[must_use]
    pub fn of_run<'a>(
        items: &[Item],
        answers: impl Iterator<Item = &'a Answer>,
        mut ended: BTreeMap<u32, Ended>,
    ) -> Vec<Trace> {
        let mut steps: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
        let mut solved: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for answer in answers.filter(|answer| matches!(answer.id.asker, Asker::Member | Asker::Method)) {
            let (Some(item), false) = (items.get(answer.id.item as usize), answer.resolution() == Resolution::Again)
            else {
                continue;
            };
            let mut step = Step::of(item, answer);
            if step.kind == Kind::Solves {
                let nth = solved.entry((answer.id.item, answer.id.actor)).or_default();
                step.nth = Some(*nth);
                *nth += 1;
            }
            steps.entry(answer.id.item).or_default().push(step);
        }
        let trace = |(item, steps)| ended.remove(&item).map(|ended| Trace { item, steps, ended });
        steps.into_iter().filter_map(trace).collect()
    }

    /// Returns the steps in which members answer the item.
    pub fn solving(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.kind == Kind::Solves)
    }

    /// Returns the steps in which answers are judged.
    pub fn judging(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.kind == Kind::Judges)
    }

    /// Returns the checks of an answer: steps that accept or reject it.
    pub fn checks<'a>(&'a self, item: &'a Item, answer: &'a str) -> impl Iterator<Item = &'a Step> {
        let shows = move |step: &Step| step.heard().last().is_some_and(|(_, shown)| same(item, shown, answer));
        self.judging().filter(move |step| step.accepts.is_some() && shows(step))
    }
}

/// Whether two answers are the same, by their text or to the scorer.
pub(super) fn same(item: &Item, a: &str, b: &str) -> bool {
    a.trim() == b.trim() || item.same(a, b)
}

/// Returns a value as text; a choice of an item's option is its letter.
fn text(value: &Value, item: &Item) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.trim().to_owned()),
        Value::Choice(i) => item.letters().get(*i as usize).cloned(),
        Value::Number(x) => Some(x.to_string()),
        Value::Calls { text, calls } => calls.is_empty().then(|| text.trim().to_owned()),
        Value::List(_) | Value::Record(_) | Value::Vector(_) => None,
    }
}

/// Returns a field of a reply as text.
fn field(value: &Value, form: &ResponseFormat, name: &str, item: &Item) -> Option<String> {
    let ResponseFormat::Record(fields) = form else { return None };
    let place = fields.iter().position(|(field, _)| field == name)?;
    text(value.field(place)?, item)
}

/// Returns whether a check accepts the answer: it chooses the first of two options.
fn accepted(value: &Value, form: &ResponseFormat) -> Option<bool> {
    match (form, value) {
        (ResponseFormat::Choice(options), Value::Choice(i)) if options.len() == 2 => Some(*i == 0),
        (ResponseFormat::Record(fields), Value::Record(values)) => {
            fields.iter().zip(values).find_map(|((_, form), value)| accepted(value, form))
        }
        _ => None,
    }
}
