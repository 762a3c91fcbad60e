//! One call of a simulated model: what it thinks, how others sway it, how it words its reply, and how that fails.

use super::answers::{DIMENSIONS, answer_field, answer_want, embedding, number, placeholder, reasons, wrong};
use super::parameters::{Failures, Model};
use super::reading::Seen;
use crate::models::provider::Exchange;
use crate::models::reply::read_reply;
use crate::models::wire::{embedded, text_of};
use polity_kernel::ask::{
    Asker, ChatMessage, Effect, Hidden, Outcome, Part, Request, ResponseFormat, Role, Task, Usage,
};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::method::same_answer;
use polity_kernel::rng::{Draws, Stream, normal_cdf, normal_quantile};
use serde_json::Value as Json;

/// The purpose of a draw. Purposes have separate draws, so that none shifts another's.
#[derive(Clone, Copy)]
pub(super) enum For {
    Insight,
    Temptation,
    Mistake,
    Placeholder,
    Persuasion,
    Conformity,
    Failure,
    Reasons,
    Latency,
    Impression,
    Heed,
    Leaning,
    Reading,
    Comprehension,
    ClosedBook,
    WrongCall,
    Memory,
}

/// An answer that the model was shown.
#[derive(Clone, Copy)]
struct Reply<'a> {
    by: &'a str,
    answer: &'a str,
    argued: bool,
}

pub(super) struct Call<'a> {
    pub(super) model: &'a Model,
    pub(super) effect: &'a Effect,
    pub(super) seed: u64,
    hold: Hold,
    /// Key of this call.
    pub(super) call: RowHash,
    /// Key shared by all calls on the item.
    item: RowHash,
}

impl<'a> Call<'a> {
    pub(super) fn new(model: &'a Model, effect: &'a Effect, seed: u64, hold: Hold) -> Self {
        let Effect { id, request, .. } = effect;
        let key = RowHash::new(Kind::Request, 0).word(u64::from(id.item));
        // Requests by an agent in its turn, by its cohort on its behalf, by the world, and once a run are drawn separately.
        let apart = match id.asker {
            Asker::Cohort => 10_000,
            Asker::World => 20_000,
            Asker::Preparation => 30_000,
            Asker::Agent | Asker::Member | Asker::Method | Asker::Scorer => 0,
        };
        let n = apart + u64::from(id.n);
        // A model with other parameters has the same luck.
        let name = request.model.split('?').next().unwrap_or_default();
        let call = key.bytes(name.as_bytes()).word(n).word(u64::from(request.sample));
        // The question comes first; its wording may differ from call to call.
        let question = request.messages.iter().find(|message| message.role == Role::User);
        let item = match question.and_then(|message| message.parts.first()) {
            Some(Part::Text(text)) => key.bytes(text.as_bytes()),
            _ => key,
        };
        Call { model, effect, seed, hold, call, item }
    }

    /// Draws of this call.
    pub(super) fn draws(&self, purpose: For) -> Draws {
        let key = self.call.word(purpose as u64).finish() as u64;
        Draws::new(self.seed ^ key, Stream::Model, self.effect.id.round, self.effect.id.actor)
    }

    /// Draws shared by all calls on the item.
    fn item_draws(&self, purpose: For) -> Draws {
        Draws::new(self.seed ^ self.item.word(purpose as u64).finish() as u64, Stream::Model, 0, 0)
    }

    pub(super) fn exchange(&self) -> Exchange {
        let request = &self.effect.request;
        if request.response_format == ResponseFormat::Vector {
            let vector = embedding(&text_of(request), DIMENSIONS);
            let latency_ms = self.latency(0);
            return Exchange {
                outcome: embedded(vector),
                usage: Usage { latency_ms, ..usage(self.model, request, 0) },
                reasoning: None,
            };
        }
        let reply = self.reply();
        let (raw, outcome) = match reply.char_indices().nth(4 * longest(request) as usize) {
            Some((end, _)) => cut_off(reply[..end].to_owned()),
            None => self.delivered(reply),
        };
        let latency_ms = self.latency(tokens(&raw));
        Exchange { outcome, usage: Usage { latency_ms, ..usage(self.model, request, tokens(&raw)) }, reasoning: None }
    }

    /// Declared milliseconds for a reply of this many tokens.
    fn latency(&self, tokens: u64) -> f64 {
        let latency = &self.model.latency_ms;
        latency.median * libm::exp(latency.spread * self.draws(For::Latency).normal())
            + latency.per_token * tokens as f64
    }

    /// The probability of each option as the first token of the reply, and the reply. Log-odds are standard normal, and the model's own
    /// option gets the highest; off-form replies take their share of the total.
    pub(super) fn alternatives(&self) -> (Vec<(String, f64)>, String) {
        let ResponseFormat::Choice(options) = &self.effect.request.response_format else {
            return (Vec::new(), String::new());
        };
        let mut draws = self.draws(For::Leaning);
        let mut odds: Vec<f64> = options.iter().map(|_| libm::exp(draws.normal())).collect();
        let answer = self.answer();
        let held = options.iter().position(|option| same_answer(option, &answer)).unwrap_or(0);
        let best = (0..odds.len()).max_by(|a, b| odds[*a].total_cmp(&odds[*b])).unwrap_or(0);
        odds.swap(held, best);
        let off = self.model.failures.off_form;
        let all: f64 = odds.iter().sum();
        let shares = odds.iter().map(|odds| odds / all * (1.0 - off)).chain([off * 0.7, off * 0.3]);
        let words = ["It", "None"].map(String::from);
        let mut tokens: Vec<(String, f64)> = options.iter().chain(&words).cloned().zip(shares).collect();
        let shares: Vec<f64> = tokens.iter().map(|(_, share)| *share).collect();
        let said =
            draws.weighted(&shares).and_then(|i| tokens.get(i)).map_or_else(String::new, |(token, _)| token.clone());
        tokens.retain(|(_, share)| *share > 0.0);
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1));
        tokens.iter_mut().for_each(|(_, share)| *share = libm::log(*share));
        (tokens, said)
    }

    fn reply(&self) -> String {
        if let ResponseFormat::Calls(tools) = &self.effect.request.response_format {
            return self.acted(tools).to_json(&self.effect.request.response_format).to_string();
        }
        match self.effect.hidden.as_ref().map(|hidden| (hidden, hidden.task)) {
            Some((hidden, Task::Choose | Task::Rate | Task::Check)) => self.judged(hidden),
            Some((_, Task::Write)) => match &self.effect.request.response_format {
                response_format @ (ResponseFormat::Record(_) | ResponseFormat::List { .. }) => {
                    self.shaped(response_format, None, &mut self.draws(For::Reasons)).to_string()
                }
                ResponseFormat::Text => reasons(self.model.verbosity, &mut self.draws(For::Reasons)),
                response_format => placeholder(response_format, &mut self.draws(For::Placeholder)),
            },
            _ => match self.told("answer") {
                Some(answer) => self.worded(answer),
                None => self.worded(&self.answer()),
            },
        }
    }

    /// What the model is made to say in a field of its reply, by a planted fault.
    fn told(&self, field: &str) -> Option<&str> {
        let recorded = self.effect.hidden.as_ref()?.recorded.as_ref()?.as_ref().ok()?;
        recorded.fields.get(field).map(String::as_str)
    }

    /// What the model said last, and what it was shown since.
    fn before(&self) -> (Option<&str>, &[ChatMessage]) {
        let messages = &self.effect.request.messages;
        let spoke = messages.iter().rposition(|message| message.role == Role::Assistant);
        let before = spoke.and_then(|i| said(&messages[i]).last()).map(|said| said.answer);
        (before, &messages[spoke.map_or(0, |i| i + 1)..])
    }

    /// The model's final answer: its previous or own answer, swayed by what it has been shown since.
    pub(super) fn answer(&self) -> String {
        let (before, since) = self.before();
        if let Some(hidden) = self.effect.hidden.as_ref().filter(|hidden| hidden.task == Task::Mislead) {
            return before.map_or_else(
                || self.tempting(answer_want(&self.effect.request.response_format), hidden),
                str::to_owned,
            );
        }
        let refuted = since.iter().flat_map(|message| &message.parts).rev().find_map(|part| match part {
            Part::Finding { right, .. } => Some(!right),
            _ => None,
        });
        let own = match before {
            None => self.own(),
            Some(before) if refuted == Some(true) && self.draws(For::Heed).chance(self.model.critic.heed) => {
                self.anew(before)
            }
            Some(before) => before.to_owned(),
        };
        let heard: Vec<Reply<'_>> = since.iter().flat_map(said).collect();
        self.persuaded(&own, &heard).or_else(|| self.conformed(&own, &heard)).map_or(own, str::to_owned)
    }

    /// The model's own answer: from what it was shown, if the item says what must be shown, else from what it knows.
    fn own(&self) -> String {
        let Some(hidden) = &self.effect.hidden else { return self.alone() };
        match self.seen(hidden) {
            None => self.alone(),
            Some(Seen::All) => self.read_answer(hidden),
            Some(Seen::UpTo(_)) => self.remembered(hidden),
        }
    }

    /// The model's answer without the evidence.
    pub(super) fn remembered(&self, hidden: &Hidden) -> String {
        match self.draws(For::Memory).chance(self.model.reading.memory) {
            true => self.alone(),
            false => self.mistake(answer_want(&self.effect.request.response_format), hidden),
        }
    }

    /// A retry: the same wrong answer is not given again.
    fn anew(&self, before: &str) -> String {
        let fresh = self.own();
        match &self.effect.hidden {
            Some(hidden) if same_answer(&fresh, before) && !same_answer(before, &hidden.gold) => {
                let response_format = answer_want(&self.effect.request.response_format);
                wrong(response_format, hidden, Some(before), &mut self.draws(For::Mistake))
            }
            _ => fresh,
        }
    }

    /// A judgement on the shown answers, in the requested form.
    fn judged(&self, hidden: &Hidden) -> String {
        let (_, since) = self.before();
        let shown: Vec<Reply<'_>> = since.iter().flat_map(said).collect();
        let impressions: Vec<f64> =
            shown.iter().enumerate().map(|(i, said)| self.impression(hidden, said, i, shown.len())).collect();
        let leniency = self.model.critic.leniency;
        let last = impressions.last().copied().unwrap_or(-leniency);
        let response_format = answer_want_of_judgement(&self.effect.request.response_format);
        let mark = |impression: f64, low: f64, high: f64, whole: bool| self.mark(impression, low, high, whole);
        let value = match (hidden.task, response_format) {
            (Task::Choose, ResponseFormat::Choice(options)) => {
                let best = (0..shown.len()).rev().max_by(|a, b| impressions[*a].total_cmp(&impressions[*b]));
                let name = best.map(|best| shown[best].by);
                Json::from(
                    name.filter(|name| options.iter().any(|o| o == name)).or(options.first().map(String::as_str)),
                )
            }
            (Task::Check, ResponseFormat::Choice(options)) => {
                let passes = last + leniency > 0.0;
                Json::from(options.get(usize::from(!passes)).map(String::as_str))
            }
            (_, ResponseFormat::Number { low, high, whole }) => Json::from(mark(last, *low, *high, *whole)),
            (_, ResponseFormat::List { of, least, most }) => match of.as_ref() {
                ResponseFormat::Number { low, high, whole } => {
                    let mut marks: Vec<f64> = impressions.iter().map(|x| mark(*x, *low, *high, *whole)).collect();
                    marks.resize(marks.len().clamp(*least as usize, *most as usize), *low);
                    Json::from(marks)
                }
                of => Json::from(vec![self.shaped(of, None, &mut self.draws(For::Reasons)); *least as usize]),
            },
            (_, response_format) => self.shaped(response_format, None, &mut self.draws(For::Reasons)),
        };
        match self.around(&self.effect.request.response_format, value) {
            Json::String(text) => text,
            other => other.to_string(),
        }
    }

    /// An impression on a scale.
    fn mark(&self, impression: f64, low: f64, high: f64, whole: bool) -> f64 {
        let mark = low + (high - low) * normal_cdf(impression + self.model.critic.leniency);
        if whole { mark.round() } else { (mark * 100.0).round() / 100.0 }
    }

    /// Marks for the shown answers, if there are `n` of them and marks are numbers.
    fn marks(&self, of: &ResponseFormat, n: u32) -> Option<Vec<f64>> {
        let (ResponseFormat::Number { low, high, whole }, Some(hidden)) = (of, &self.effect.hidden) else {
            return None;
        };
        let (_, since) = self.before();
        let shown: Vec<Reply<'_>> = since.iter().flat_map(said).collect();
        let mark = |(i, said): (usize, &Reply<'_>)| {
            self.mark(self.impression(hidden, said, i, shown.len()), *low, *high, *whole)
        };
        (n > 0 && shown.len() == n as usize).then(|| shown.iter().enumerate().map(mark).collect())
    }

    /// How right an answer seems: above 0 more right than wrong. Judges' errors on one answer are as correlated as solvers' on one item.
    fn impression(&self, hidden: &Hidden, said: &Reply<'_>, place: usize, of: usize) -> f64 {
        let right = same_answer(said.answer, &hidden.gold);
        let critic = &self.model.critic;
        let about = RowHash::new(Kind::Request, 0).bytes(said.answer.trim().as_bytes()).finish() as u64;
        let call = self.call.word(For::Impression as u64).word(about).finish() as u64;
        let mut own = Draws::new(self.seed ^ call, Stream::Model, self.effect.id.round, self.effect.id.actor);
        let all = self.item.word(For::Impression as u64).word(about).finish() as u64;
        let mut shared = Draws::new(self.seed ^ all, Stream::Model, 0, 0);
        let c = self.model.correlation;
        let noise = libm::sqrt(c) * shared.normal() + libm::sqrt(1.0 - c) * own.normal();
        // Its own kind of error looks right to it.
        let blind =
            !right && own.chance(critic.blindness) && same_answer(&self.alone_as(&ResponseFormat::Text), said.answer);
        let half = self.model.sensitivity(hidden.difficulty, hidden.topic.as_deref()) / 2.0;
        let bias = if place == 0 && of > 1 { critic.first_bias } else { 0.0 };
        noise + bias + if right || blind { half } else { -half }
    }

    /// A value in the answer's place, with reasons as other texts and placeholders for the rest.
    fn around(&self, response_format: &ResponseFormat, value: Json) -> Json {
        let ResponseFormat::Record(fields) = response_format else { return value };
        let place = answer_field(fields);
        let mut words = self.draws(For::Reasons);
        let fields = fields.iter().enumerate().map(|(i, (name, response_format))| {
            let value = if i == place {
                self.around(response_format, value.clone())
            } else {
                self.shaped(response_format, None, &mut words)
            };
            (name.clone(), value)
        });
        Json::Object(fields.collect())
    }

    /// The model's answer without hearing others.
    pub(super) fn alone(&self) -> String {
        self.alone_as(answer_want(&self.effect.request.response_format))
    }

    /// The same for an answer of this form.
    fn alone_as(&self, response_format: &ResponseFormat) -> String {
        match &self.effect.hidden {
            None => placeholder(response_format, &mut self.draws(For::Placeholder)),
            Some(hidden) if self.knows(hidden) => hidden.gold.clone(),
            Some(hidden) => self.mistake(response_format, hidden),
        }
    }

    /// A Gaussian copula: each call's luck is normal, with a part shared by all calls on the item.
    fn knows(&self, hidden: &Hidden) -> bool {
        let p = self.model.mastery(hidden.difficulty, hidden.topic.as_deref());
        if p <= 0.0 || p >= 1.0 {
            return p >= 1.0;
        }
        let shared = self.model.correlation;
        let luck = libm::sqrt(shared) * self.item_draws(For::Insight).normal()
            + libm::sqrt(1.0 - shared) * self.draws(For::Insight).normal();
        luck < normal_quantile(p)
    }

    pub(super) fn mistake(&self, response_format: &ResponseFormat, hidden: &Hidden) -> String {
        let tempting = self.tempting(response_format, hidden);
        match self.draws(For::Temptation).chance(self.model.lure) {
            true => tempting,
            false => wrong(response_format, hidden, Some(&tempting), &mut self.draws(For::Mistake)),
        }
    }

    /// The item's tempting wrong answer, shared by all calls on it.
    fn tempting(&self, response_format: &ResponseFormat, hidden: &Hidden) -> String {
        let named = hidden.distractor.clone().filter(|lure| !same_answer(lure, &hidden.gold));
        named.unwrap_or_else(|| wrong(response_format, hidden, None, &mut self.item_draws(For::Temptation)))
    }

    /// The first argument for another answer that persuades the model. It sees through wrong ones as far as it masters the item.
    fn persuaded<'b>(&self, own: &str, heard: &[Reply<'b>]) -> Option<&'b str> {
        let Model { persuadability, discernment, .. } = self.model;
        let mut draws = self.draws(For::Persuasion);
        let argued = heard.iter().filter(|said| said.argued && !same_answer(said.answer, own));
        argued.map(|said| said.answer).find(|answer| {
            let doubt = match &self.effect.hidden {
                Some(hidden) if !same_answer(answer, &hidden.gold) => {
                    discernment * self.model.mastery(hidden.difficulty, hidden.topic.as_deref())
                }
                _ => 0.0,
            };
            draws.chance(persuadability * (1.0 - doubt))
        })
    }

    /// The majority answer among those heard, if the model conforms to it.
    fn conformed<'b>(&self, own: &str, heard: &[Reply<'b>]) -> Option<&'b str> {
        // Boyer and Moore: pairs of unequal answers cancel out, and only a majority can be left.
        let mut left = ("", 0usize);
        for said in heard {
            left = match left {
                (_, 0) => (said.answer, 1),
                (answer, lead) if same_answer(answer, said.answer) => (answer, lead + 1),
                (answer, lead) => (answer, lead - 1),
            };
        }
        let (answer, _) = left;
        let supporters = heard.iter().filter(|said| same_answer(said.answer, answer)).count();
        let share = supporters as f64 / heard.len().max(1) as f64;
        let gives_in = share > 0.5
            && !same_answer(answer, own)
            && self.draws(For::Conformity).chance(self.model.conformity * share);
        gives_in.then_some(answer)
    }

    /// The reply in the requested form.
    fn worded(&self, answer: &str) -> String {
        match &self.effect.request.response_format {
            response_format @ (ResponseFormat::Record(_) | ResponseFormat::List { .. }) => {
                self.shaped(response_format, Some(answer), &mut self.draws(For::Reasons)).to_string()
            }
            ResponseFormat::Number { .. } => number(answer).map_or(answer.to_owned(), |x| x.to_string()),
            response_format => match fitted(response_format, answer) {
                Json::String(text) => text,
                other => other.to_string(),
            },
        }
    }

    /// A value with the answer in its place, reasons as its other texts and placeholders for the rest.
    fn shaped(&self, response_format: &ResponseFormat, answer: Option<&str>, words: &mut Draws) -> Json {
        match (response_format, answer) {
            (ResponseFormat::Record(fields), answer) => {
                let place = answer_field(fields);
                // Every record draws its own words.
                let mut words = self.draws(For::Reasons);
                let mut value = |i: usize, name: &str, response_format: &ResponseFormat| match self.told(name) {
                    Some(text) => fitted(response_format, text),
                    None => self.shaped(response_format, answer.filter(|_| i == place), &mut words),
                };
                Json::Object(
                    fields
                        .iter()
                        .enumerate()
                        .map(|(i, (name, response_format))| (name.clone(), value(i, name, response_format)))
                        .collect(),
                )
            }
            // As many numbers as answers are shown, beside an answer: marks for them.
            (ResponseFormat::List { of, least, most }, None) if least == most && self.marks(of, *least).is_some() => {
                Json::from(self.marks(of, *least))
            }
            (ResponseFormat::List { of, least, most }, answer) => {
                let room = u64::from(most.saturating_sub(*least)).min(8);
                let n = u64::from((*least).max(u32::from(*most > 0))) + words.below(room.max(1));
                (0..n.min(u64::from(*most))).map(|i| self.shaped(of, answer.filter(|_| i == 0), words)).collect()
            }
            (response_format, Some(answer)) => fitted(response_format, answer),
            (ResponseFormat::Text, None) => Json::String(reasons(self.model.verbosity, words)),
            (response_format, None) => fitted(response_format, &placeholder(response_format, words)),
        }
    }

    /// The reply as it arrives, and its outcome. Providers report truncation and tool calls explicitly, so these outcomes never depend on
    /// parsing the text.
    fn delivered(&self, reply: String) -> (String, Outcome) {
        let response_format = &self.effect.request.response_format;
        let Failures { broken_json, refusal, truncation, wrong_tool, off_form } = self.model.failures;
        let mut draws = self.draws(For::Failure);
        let rates = [refusal, truncation, wrong_tool, broken_json, off_form];
        let u = draws.unit();
        let mut sum = 0.0;
        let failure = rates.into_iter().position(|rate| {
            sum += rate;
            u < sum
        });
        match failure {
            Some(0) => {
                let raw = String::from("I cannot help with that.");
                (raw.clone(), Outcome::Refused { raw })
            }
            Some(1) => {
                let kept = draws.below(reply.chars().count() as u64) as usize;
                cut_off(reply.chars().take(kept).collect())
            }
            Some(2) => {
                let raw = String::from(r#"{"tool": "look_up", "arguments": {}}"#);
                let why = "the model called the tool `look_up`, which was not offered".into();
                (raw.clone(), Outcome::Invalid { raw, why })
            }
            Some(4)
                if self.hold == Hold::Words && matches!(answer_want(response_format), ResponseFormat::Choice(_)) =>
            {
                let raw = unheld(&reply, &mut draws);
                (raw.clone(), read_reply(response_format, &raw))
            }
            Some(3) if matches!(response_format, ResponseFormat::Record(_) | ResponseFormat::List { .. }) => {
                let raw = broken(&reply, &mut draws);
                (raw.clone(), read_reply(response_format, &raw))
            }
            _ => (reply.clone(), read_reply(response_format, &reply)),
        }
    }
}

/// The part of the requested form that is the judgement itself; marks stay a list.
fn answer_want_of_judgement(response_format: &ResponseFormat) -> &ResponseFormat {
    match response_format {
        ResponseFormat::Record(fields) => fields
            .get(answer_field(fields))
            .map_or(response_format, |(_, response_format)| answer_want_of_judgement(response_format)),
        response_format => response_format,
    }
}

/// Without a constraint to the options: wrapped (repairable), in prose, or not an option.
fn unheld(reply: &str, draws: &mut Draws) -> String {
    match draws.below(3) {
        0 => format!("```\n{reply}\n```"),
        1 => {
            String::from("It depends. There is something to be said for each of them, so I would rather not name one.")
        }
        _ => String::from("none of the above"),
    }
}

/// Maximum tokens of a reply.
const LONGEST_REPLY: u64 = 4096;

fn usage(model: &Model, request: &Request, tokens_out: u64) -> Usage {
    let said: u64 = request.messages.iter().map(|message| tokens(&message.rendered())).sum();
    // Providers count the tools that are offered, too.
    let offered: u64 = match &request.response_format {
        ResponseFormat::Calls(tools) => {
            tools.iter().map(|tool| tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.arguments)).sum()
        }
        _ => 0,
    };
    let tokens_in = said + offered;
    let cost_usd = (tokens_in as f64 * model.price.input + tokens_out as f64 * model.price.output) / 1e6;
    Usage { tokens_in, tokens_out, cost_usd, ..Usage::default() }
}

/// Upper bound of an exchange.
pub(super) fn most(model: &Model, request: &Request) -> Usage {
    // A failure may add a few words.
    usage(model, request, longest(request) + 16)
}

fn longest(request: &Request) -> u64 {
    if request.response_format == ResponseFormat::Vector {
        return 0;
    }
    request.settings.max_tokens.unwrap_or(LONGEST_REPLY).min(LONGEST_REPLY)
}

fn cut_off(raw: String) -> (String, Outcome) {
    (raw.clone(), Outcome::Invalid { raw, why: "the reply was cut off at the limit of tokens".into() })
}

/// The ways in which models break JSON.
fn broken(json: &str, draws: &mut Draws) -> String {
    let open = json.strip_suffix('}').unwrap_or(json);
    match draws.below(4) {
        0 => open.to_owned(),
        1 => format!("{open},}}"),
        2 => format!("Here is my answer:\n{json}"),
        _ => format!("```json\n{json}\n```"),
    }
}

/// The answer as a value of the requested kind; one that does not fit stays text, and parsing reports it.
fn fitted(response_format: &ResponseFormat, answer: &str) -> Json {
    match response_format {
        ResponseFormat::Choice(options) => {
            Json::from(options.iter().find(|option| same_answer(option, answer)).map_or(answer, String::as_str))
        }
        ResponseFormat::Number { .. } => number(answer).map_or_else(|| Json::from(answer), Json::from),
        ResponseFormat::Text
        | ResponseFormat::List { .. }
        | ResponseFormat::Record(_)
        | ResponseFormat::Calls(_)
        | ResponseFormat::Vector => Json::from(answer),
    }
}

fn said(message: &ChatMessage) -> impl Iterator<Item = Reply<'_>> {
    message.parts.iter().filter_map(|part| match part {
        Part::Said { by, answer, reasons } if !answer.trim().is_empty() => {
            Some(Reply { by: by.as_str(), answer: answer.as_str(), argued: !reasons.trim().is_empty() })
        }
        _ => None,
    })
}

/// An estimate: four characters per token, rounded up.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

/// How a simulated model is constrained to the form of a reply when called through a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// By words alone.
    Words,
    /// By its server: it cannot reply otherwise.
    Form,
}
