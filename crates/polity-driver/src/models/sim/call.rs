//! One call of a simulated model: what it thinks, how others sway it, how it puts that into words, and how that goes wrong.

use super::Hold;
use super::answers::{answer_field, answer_want, number, placeholder, reasons, wrong};
use super::parameters::{Failures, Model};
use crate::models::{Exchange, read_reply};
use polity_kernel::ask::{Effect, Hidden, Message, Outcome, Part, Request, Role, Usage, Want};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::method::same_answer;
use polity_kernel::rng::{Draws, Stream, normal_quantile};
use serde_json::Value as Json;

/// What a draw is for. Each purpose has draws of its own, so that none shifts another's.
#[derive(Clone, Copy)]
enum For {
    Insight,
    Temptation,
    Mistake,
    Placeholder,
    Persuasion,
    Conformity,
    Failure,
    Reasons,
    Latency,
    Leaning,
}

/// An answer that the model was shown.
#[derive(Clone, Copy)]
struct Heard<'a> {
    answer: &'a str,
    argued: bool,
}

pub(super) struct Call<'a> {
    model: &'a Model,
    effect: &'a Effect,
    seed: u64,
    hold: Hold,
    /// Key of what is this call's own.
    call: RowHash,
    /// Key of what all calls on the item share.
    item: RowHash,
}

impl<'a> Call<'a> {
    pub(super) fn new(model: &'a Model, effect: &'a Effect, seed: u64, hold: Hold) -> Self {
        let Effect { id, request, .. } = effect;
        let key = RowHash::new(Kind::Request, 0).word(u64::from(id.item));
        let call = key.bytes(request.model.as_bytes()).word(u64::from(id.n)).word(u64::from(request.sample));
        let question = request.messages.iter().find(|message| message.role == Role::User);
        let item = question.into_iter().flat_map(|message| &message.parts).fold(key, |key, part| match part {
            Part::Text(text) => key.bytes(text.as_bytes()),
            Part::Said { .. } => key,
        });
        Call { model, effect, seed, hold, call, item }
    }

    /// Draws of this call.
    fn draws(&self, purpose: For) -> Draws {
        let key = self.call.word(purpose as u64).finish() as u64;
        Draws::new(self.seed ^ key, Stream::Model, self.effect.id.round, self.effect.id.actor)
    }

    /// Draws that all calls on the item share.
    fn item_draws(&self, purpose: For) -> Draws {
        Draws::new(self.seed ^ self.item.word(purpose as u64).finish() as u64, Stream::Model, 0, 0)
    }

    pub(super) fn exchange(&self) -> Exchange {
        let request = &self.effect.request;
        let reply = self.worded(&self.answer());
        let (raw, outcome) = match reply.char_indices().nth(4 * longest(request) as usize) {
            Some((end, _)) => cut_off(reply[..end].to_owned()),
            None => self.delivered(reply),
        };
        let latency = &self.model.latency_ms;
        let usage = Usage {
            latency_ms: latency.median * libm::exp(latency.spread * self.draws(For::Latency).normal()),
            ..usage(self.model, request, tokens(&raw))
        };
        Exchange { outcome, usage }
    }

    /// How likely each option is as the first token of the reply, and what is said. Log-odds are standard normal, the highest the option's
    /// that the model holds; what it would say off form takes its share of all.
    pub(super) fn alternatives(&self) -> (Vec<(String, f64)>, String) {
        let Want::Choice(options) = &self.effect.request.want else {
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

    /// What the model holds in the end: what it said before or thinks now, swayed by what it has been shown since.
    fn answer(&self) -> String {
        let messages = &self.effect.request.messages;
        let spoke = messages.iter().rposition(|message| message.role == Role::Assistant);
        let since = spoke.map_or(0, |i| i + 1);
        let before = spoke.and_then(|i| said(&messages[i]).last()).map(|said| said.answer.to_owned());
        let own = before.unwrap_or_else(|| self.alone());
        let heard: Vec<Heard<'_>> = messages[since..].iter().flat_map(said).collect();
        self.persuaded(&own, &heard).or_else(|| self.conformed(&own, &heard)).map_or(own, str::to_owned)
    }

    /// What the model thinks without hearing anybody.
    fn alone(&self) -> String {
        let want = answer_want(&self.effect.request.want);
        match &self.effect.hidden {
            None => placeholder(want, &mut self.draws(For::Placeholder)),
            Some(hidden) if self.knows(hidden) => hidden.gold.clone(),
            Some(hidden) => self.mistake(want, hidden),
        }
    }

    /// A Gaussian copula: each call's luck is normal with a part that all calls on the item share.
    fn knows(&self, hidden: &Hidden) -> bool {
        let p = self.model.mastery(hidden.difficulty);
        if p <= 0.0 || p >= 1.0 {
            return p >= 1.0;
        }
        let shared = self.model.correlation;
        let luck = libm::sqrt(shared) * self.item_draws(For::Insight).normal()
            + libm::sqrt(1.0 - shared) * self.draws(For::Insight).normal();
        luck < normal_quantile(p)
    }

    fn mistake(&self, want: &Want, hidden: &Hidden) -> String {
        let named = hidden.lure.clone().filter(|lure| !same_answer(lure, &hidden.gold));
        let tempting = named.unwrap_or_else(|| wrong(want, &hidden.gold, None, &mut self.item_draws(For::Temptation)));
        match self.draws(For::Temptation).chance(self.model.lure) {
            true => tempting,
            false => wrong(want, &hidden.gold, Some(&tempting), &mut self.draws(For::Mistake)),
        }
    }

    /// The first argument for another answer that wins the model over. It sees through wrong ones as far as it masters the item.
    fn persuaded<'b>(&self, own: &str, heard: &[Heard<'b>]) -> Option<&'b str> {
        let Model { persuadability, discernment, .. } = self.model;
        let mut draws = self.draws(For::Persuasion);
        let argued = heard.iter().filter(|said| said.argued && !same_answer(said.answer, own));
        argued.map(|said| said.answer).find(|answer| {
            let doubt = match &self.effect.hidden {
                Some(hidden) if !same_answer(answer, &hidden.gold) => {
                    discernment * self.model.mastery(hidden.difficulty)
                }
                _ => 0.0,
            };
            draws.chance(persuadability * (1.0 - doubt))
        })
    }

    /// The answer of more than half of those heard, if the model gives in to it.
    fn conformed<'b>(&self, own: &str, heard: &[Heard<'b>]) -> Option<&'b str> {
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

    /// The reply in the form that was asked for.
    fn worded(&self, answer: &str) -> String {
        match &self.effect.request.want {
            want @ (Want::Record(_) | Want::List { .. }) => {
                self.shaped(want, Some(answer), &mut self.draws(For::Reasons)).to_string()
            }
            Want::Number { .. } => number(answer).map_or(answer.to_owned(), |x| x.to_string()),
            want => match fitted(want, answer) {
                Json::String(text) => text,
                other => other.to_string(),
            },
        }
    }

    /// A value with the answer in its place, reasons as its other texts and placeholders for the rest.
    fn shaped(&self, want: &Want, answer: Option<&str>, words: &mut Draws) -> Json {
        match (want, answer) {
            (Want::Record(fields), answer) => {
                let place = answer_field(fields);
                // Every record draws its words anew.
                let mut words = self.draws(For::Reasons);
                let mut value = |i: usize, want: &Want| self.shaped(want, answer.filter(|_| i == place), &mut words);
                Json::Object(
                    fields.iter().enumerate().map(|(i, (name, want))| (name.clone(), value(i, want))).collect(),
                )
            }
            (Want::List { of, least, most }, answer) => {
                let room = u64::from(most.saturating_sub(*least)).min(8);
                let n = u64::from((*least).max(u32::from(*most > 0))) + words.below(room.max(1));
                (0..n.min(u64::from(*most))).map(|i| self.shaped(of, answer.filter(|_| i == 0), words)).collect()
            }
            (want, Some(answer)) => fitted(want, answer),
            (Want::Text, None) => Json::String(reasons(self.model.verbosity, words)),
            (want, None) => fitted(want, &placeholder(want, words)),
        }
    }

    /// The reply as it arrives, and what the reader makes of it. Of a cut reply and of a call of a tool a provider is told
    /// outright, so they never depend on reading the text.
    fn delivered(&self, reply: String) -> (String, Outcome) {
        let want = &self.effect.request.want;
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
                let raw = String::from("I can not help with that.");
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
            Some(4) if self.hold == Hold::Words && matches!(answer_want(want), Want::Choice(_)) => {
                let raw = unheld(&reply, &mut draws);
                (raw.clone(), read_reply(want, &raw))
            }
            Some(3) if matches!(want, Want::Record(_) | Want::List { .. }) => {
                let raw = broken(&reply, &mut draws);
                (raw.clone(), read_reply(want, &raw))
            }
            _ => (reply.clone(), read_reply(want, &reply)),
        }
    }
}

/// Where nothing holds a model to the options: wrapped up (which can be mended), in prose, or of its own making.
fn unheld(reply: &str, draws: &mut Draws) -> String {
    match draws.below(3) {
        0 => format!("```\n{reply}\n```"),
        1 => {
            String::from("It depends. There is something to be said for each of them, so I would rather not name one.")
        }
        _ => String::from("none of the above"),
    }
}

/// Tokens of a reply at most.
const LONGEST_REPLY: u64 = 4096;

fn usage(model: &Model, request: &Request, tokens_out: u64) -> Usage {
    let tokens_in: u64 = request.messages.iter().map(|message| tokens(&message.rendered())).sum();
    let cost_usd = (tokens_in as f64 * model.price.input + tokens_out as f64 * model.price.output) / 1e6;
    Usage { tokens_in, tokens_out, cost_usd, ..Usage::default() }
}

/// The most that an exchange can take.
pub(super) fn most(model: &Model, request: &Request) -> Usage {
    // What breaks a reply may add a few words.
    usage(model, request, longest(request) + 16)
}

fn longest(request: &Request) -> u64 {
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

/// The answer as a value of the kind wanted; one that does not fit stays the text that it is, and the reader says so.
fn fitted(want: &Want, answer: &str) -> Json {
    match want {
        Want::Choice(options) => {
            Json::from(options.iter().find(|option| same_answer(option, answer)).map_or(answer, String::as_str))
        }
        Want::Number { .. } => number(answer).map_or_else(|| Json::from(answer), Json::from),
        Want::Text | Want::List { .. } | Want::Record(_) => Json::from(answer),
    }
}

fn said(message: &Message) -> impl Iterator<Item = Heard<'_>> {
    message.parts.iter().filter_map(|part| match part {
        Part::Said { answer, reasons, .. } if !answer.trim().is_empty() => {
            Some(Heard { answer: answer.as_str(), argued: !reasons.trim().is_empty() })
        }
        _ => None,
    })
}

/// An estimate: four letters a token, rounded up.
fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}
