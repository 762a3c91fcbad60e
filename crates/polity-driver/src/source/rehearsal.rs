//! A whole run in which only a few requests are sent: the others reuse one of those answers to the same kind of request.
//!
//! Agents (items of an evaluation) are *units*. In every class of units (a cohort on one model, a cohort's cohort step, all items) a few,
//! the *donors*, make real calls. Each other unit is assigned a donor by a hash, and receives what its donor received in the nearest
//! round with calls. So prompts grow, retries occur and debates end early as they would, at the price of a few answers. This is hot-deck
//! imputation (Andridge and Little: "A Review of Hot Deck Imputation for Survey Non-response", 2010). Nothing of it is recorded: it
//! serves only to estimate the cost of a run.

use super::cache::Key;
use super::{Broken, Live, Source, failed};
use polity_kernel::ask::{
    Answer, Asker, ChatMessage, Effect, EffectId, Outcome, Request, ResponseFormat, Target, TargetKind, Usage, Value,
};
use polity_kernel::digest::{Digest, Kind, RowHash};
use polity_models::models::Providers;
use polity_models::models::prices::Prices;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A quarter of the units of a class are donors, within these limits; in a large class one in a hundred, up to [`MOST_DONORS`].
const DONORS: (usize, usize) = (2, 8);
const MOST_DONORS: usize = 32;
/// Rounds in which donors always make calls; later only in rounds that are powers of two.
const EARLY_ROUNDS: u32 = 4;
/// Part of the money for further donors of kinds of requests that already have one: new kinds in later rounds need some, too.
const ON_MORE: f64 = 0.5;
/// Characters per token, above the real value of any text, so that prompts are counted from below.
const MOST_LETTERS_A_TOKEN: u64 = 6;
/// Characters per reply token, for replies of maximum length.
const LETTERS_A_TOKEN: u64 = 4;

/// Whose answers represent those of others.
pub(crate) enum Donors {
    /// A sample of calls, with a limit in US dollars.
    Asked(Box<Live>, f64),
    /// Answers of an earlier run.
    Recorded(Vec<Answer>),
    /// None: every reply is as short as possible.
    Shortest,
    /// None: every reply is as long as possible, and fits only at the last try.
    Longest,
}

/// Units that can represent each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    cohort: u16,
    /// Whether they are asked once for many: a cohort's cohort step, or what a method does once a run.
    once: bool,
    /// Empty for the items of an evaluation, where members have models.
    model: Target,
}

/// Requests that can share each other's answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    class: Class,
    /// Member of the team.
    member: u32,
    model: Target,
    purpose: String,
    /// Number of earlier tries.
    nth: u8,
    /// The requested form, without bounds and options.
    form: u128,
}

/// Totals of requests to one model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) calls: f64,
    /// For requests of unknown token counts.
    letters: f64,
    tokens_in: f64,
    pub(crate) tokens_out: f64,
    pub(crate) tokens_thinking: f64,
}

/// A donor, and all units that it represents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    pub(crate) units: u32,
    pub(crate) by_model: BTreeMap<String, Sums>,
}

#[derive(Default)]
struct Units {
    donors: Vec<u32>,
    /// The position of each donor.
    index: BTreeMap<u32, usize>,
    /// By donor.
    shares: Vec<Share>,
    /// Index of the donor of every unit.
    of: BTreeMap<u32, usize>,
    /// Units that have made requests, donors or not.
    seen: BTreeSet<u32>,
}

impl Units {
    fn add(&mut self, donor: u32) {
        self.index.insert(donor, self.donors.len());
        self.donors.push(donor);
        self.shares.push(Share::default());
    }

    /// Makes a unit the first donor if there is none yet.
    fn first(&mut self, unit: u32) {
        if self.donors.is_empty() {
            self.add(unit);
        }
    }
}

/// Real calls of one model.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    letters: f64,
    tokens_in: f64,
    tokens_cached: f64,
}

struct Reply {
    round: u32,
    outcome: Outcome,
    usage: Usage,
}

/// A source that sends only a few requests.
pub(crate) struct Rehearsal {
    donors: Donors,
    providers: Arc<Providers>,
    prices: Prices,
    /// Cohort of each agent; `None` in an evaluation.
    cohorts: Option<Vec<u16>>,
    units: BTreeMap<Class, Units>,
    /// By unit.
    heard: BTreeMap<Alike, BTreeMap<u32, Vec<Reply>>>,
    measured: BTreeMap<String, Measured>,
    /// Kinds of requests that were really sent.
    kinds: BTreeSet<Alike>,
    /// Requests that wait for donors.
    held: BTreeMap<EffectId, Effect>,
    ready: Vec<Answer>,
    /// Maximum cost of calls in progress.
    reserved: BTreeMap<EffectId, f64>,
    spent: f64,
    asked: u64,
    /// Requests of a round of which only the first is a call.
    once: BTreeSet<(u32, Digest)>,
    /// Why no answer is possible.
    lost: Option<String>,
    /// Whether the reason is a lack of donors rather than of a provider.
    short: bool,
}

impl Rehearsal {
    /// `prices` knows every model; `cohorts`: of each agent, `None` in an evaluation.
    pub(crate) fn new(
        mut donors: Donors,
        providers: Arc<Providers>,
        prices: Prices,
        cohorts: Option<Vec<u16>>,
    ) -> Self {
        let recorded = match &mut donors {
            Donors::Recorded(answers) => std::mem::take(answers),
            _ => Vec::new(),
        };
        let mut rehearsal = Rehearsal {
            donors,
            providers,
            prices,
            cohorts,
            units: BTreeMap::new(),
            heard: BTreeMap::new(),
            measured: BTreeMap::new(),
            kinds: BTreeSet::new(),
            held: BTreeMap::new(),
            ready: Vec::new(),
            reserved: BTreeMap::new(),
            spent: 0.0,
            asked: 0,
            once: BTreeSet::new(),
            lost: None,
            short: false,
        };
        for answer in recorded {
            let (class, unit) = (rehearsal.class(answer.id, &answer.request), rehearsal.unit(answer.id));
            let units = rehearsal.units.entry(class).or_default();
            if units.seen.insert(unit) {
                units.add(unit);
            }
            rehearsal.learn(&answer);
        }
        rehearsal.units.values_mut().for_each(|units| units.seen.clear());
        rehearsal
    }

    /// Number of requests really sent, and their cost in US dollars.
    pub(crate) fn asked(&self) -> (u64, f64) {
        (self.asked, self.spent)
    }

    /// Why no donor represents a request, if so.
    pub(crate) fn short(&self) -> Option<&str> {
        self.lost.as_deref().filter(|_| self.short)
    }

    /// The donors of each class, with what they represent.
    pub(crate) fn shares(&self) -> impl Iterator<Item = Vec<&Share>> {
        self.units.values().map(|units| units.shares.iter().filter(|share| share.units > 0).collect())
    }

    /// Usage of requests to a model, with its cost.
    pub(crate) fn usage(&self, model: &str, sums: &Sums) -> Usage {
        let Measured { letters, tokens_in, tokens_cached } = self.measured.get(model).copied().unwrap_or_default();
        let part = |of: f64, whole: f64| if whole > 0.0 { of / whole } else { 0.0 };
        let all = sums.tokens_in + sums.letters * part(tokens_in, letters);
        let usage = Usage {
            tokens_in: all.round() as u64,
            tokens_out: sums.tokens_out.round() as u64,
            tokens_thinking: sums.tokens_thinking.round() as u64,
            tokens_cached: (all * part(tokens_cached, tokens_in)).round() as u64,
            ..Usage::default()
        };
        self.prices.applied(model, usage)
    }

    fn unit(&self, id: EffectId) -> u32 {
        if self.cohorts.is_some() { id.actor } else { id.item }
    }

    fn class(&self, id: EffectId, request: &Request) -> Class {
        match &self.cohorts {
            None => Class { cohort: 0, once: id.asker == Asker::Preparation, model: "".into() },
            // Agents born later belong to the last cohort.
            Some(cohorts) => Class {
                cohort: cohorts.get(id.actor as usize).or(cohorts.last()).copied().unwrap_or(0),
                once: id.asker == Asker::Cohort,
                model: request.model.clone(),
            },
        }
    }

    fn alike(&self, id: EffectId, request: &Request) -> Alike {
        let longest = request.settings.max_tokens.unwrap_or(0);
        Alike {
            class: self.class(id, request),
            member: if self.cohorts.is_some() { 0 } else { id.actor },
            model: request.model.clone(),
            purpose: request.purpose.clone(),
            nth: request.step.map_or(0, |step| step.nth),
            form: form(RowHash::new(Kind::Request, 0).word(longest), &request.response_format).finish(),
        }
    }

    /// Calls in progress.
    fn under_way(&self) -> usize {
        match &self.donors {
            Donors::Asked(live, _) => live.in_flight(),
            Donors::Recorded(_) | Donors::Shortest | Donors::Longest => 0,
        }
    }

    /// Whether donors make calls in this round.
    fn is_asked_in(&self, round: u32) -> bool {
        self.cohorts.is_none() || round < EARLY_ROUNDS || round.is_power_of_two()
    }

    /// Sends a request if its maximum cost is within this part of the limit; else returns it.
    fn ask(&mut self, effect: Effect, part: f64) -> Option<Effect> {
        let alike = self.alike(effect.id, &effect.request);
        let Donors::Asked(live, limit) = &mut self.donors else { return Some(effect) };
        let most = self.providers.for_model(&effect.request.model).map(|provider| provider.most(&effect.request));
        let most = self.prices.applied(&effect.request.model, most.unwrap_or_default()).cost_usd;
        let reserved: f64 = self.reserved.values().sum();
        if self.spent + reserved + most > *limit * part {
            return Some(effect);
        }
        self.reserved.insert(effect.id, most);
        self.asked += 1;
        live.start(vec![effect]);
        self.kinds.insert(alike);
        None
    }

    /// Records what a donor received.
    fn learn(&mut self, answer: &Answer) {
        let Answer { id, request, outcome, usage, .. } = answer;
        if matches!(outcome, Outcome::Failed { .. } | Outcome::Denied { .. }) {
            return;
        }
        let measured = self.measured.entry(request.model.to_string()).or_default();
        measured.letters += letters(request);
        measured.tokens_in += usage.tokens_in as f64;
        measured.tokens_cached += usage.tokens_cached as f64;
        let heard = Reply { round: id.round, outcome: outcome.clone(), usage: *usage };
        let (alike, unit) = (self.alike(*id, request), self.unit(*id));
        self.heard.entry(alike).or_default().entry(unit).or_default().push(heard);
    }

    /// The index of a unit's donor; `None` if there is none.
    fn donor(&mut self, class: &Class, unit: u32) -> Option<usize> {
        let units = self.units.entry(class.clone()).or_default();
        if units.donors.is_empty() {
            return None;
        }
        if let Some(donor) = units.of.get(&unit) {
            return Some(*donor);
        }
        let donor = units.index.get(&unit).copied().unwrap_or_else(|| any(unit, units.donors.len()));
        units.of.insert(unit, donor);
        units.shares[donor].units += 1;
        Some(donor)
    }

    /// Counts a request.
    fn count(&mut self, id: EffectId, request: &Request, known: &Usage, letters: f64) {
        let provider = self.providers.for_model(&request.model).ok();
        // Equal requests to a real provider are one call; in a later round they are equal only because donors repeat themselves.
        let address =
            provider.filter(|provider| !provider.immediate()).and_then(|provider| provider.address(&request.model));
        if let Some(key) = address.and_then(|address| Key::of(&address, request))
            && !self.once.insert((id.round, key.digest))
        {
            return;
        }
        let (class, unit) = (self.class(id, request), self.unit(id));
        let Some(donor) = self.donor(&class, unit) else { return };
        let share = self.units.get_mut(&class).and_then(|units| units.shares.get_mut(donor));
        let Some(sums) = share.map(|share| share.by_model.entry(request.model.to_string()).or_default()) else {
            return;
        };
        sums.calls += 1.0;
        sums.letters += letters;
        sums.tokens_in += known.tokens_in as f64;
        sums.tokens_out += known.tokens_out as f64;
        sums.tokens_thinking += known.tokens_thinking as f64;
    }

    /// The answer to a request without a call; `None` while nothing similar was sent.
    fn given(&mut self, effect: &Effect) -> Option<(Outcome, Usage)> {
        let alike = self.alike(effect.id, &effect.request);
        let unit = self.unit(effect.id);
        let donor = self.donor(&alike.class, unit);
        let preferred = donor.and_then(|donor| self.units.get(&alike.class)?.donors.get(donor).copied());
        let by_unit = self.heard.get(&alike)?;
        let heard = preferred.and_then(|donor| by_unit.get(&donor));
        let heard = heard.or_else(|| by_unit.values().nth(any(unit, by_unit.len())))?;
        let far = |heard: &&Reply| heard.round.abs_diff(effect.id.round);
        let Reply { outcome, usage, .. } = heard.iter().min_by_key(far)?;
        let outcome = match outcome {
            Outcome::Reply { value, raw, repaired } => {
                let value = fitted(value, &effect.request.response_format);
                Outcome::Reply { value, raw: raw.clone(), repaired: *repaired }
            }
            other => other.clone(),
        };
        Some((outcome, Usage { tokens_in: 0, ..*usage }))
    }

    /// Answers requests that wait for donors; if nothing similar was sent, sends one.
    fn serve_held(&mut self) {
        let mut asked: BTreeSet<Alike> = BTreeSet::new();
        for (id, effect) in std::mem::take(&mut self.held) {
            if let Some((outcome, usage)) = self.given(&effect) {
                self.count(id, &effect.request, &usage, letters(&effect.request));
                self.ready.push(Answer {
                    id,
                    request: effect.request,
                    outcome,
                    usage: Usage::default(),
                    reasoning: None,
                });
                continue;
            }
            let alike = self.alike(id, &effect.request);
            let (what, model) = (effect.request.purpose.clone(), effect.request.model.clone());
            if asked.contains(&alike) {
                self.held.insert(id, effect);
                continue;
            }
            match self.ask_as_donor(effect) {
                None => drop(asked.insert(alike)),
                // Part of what is reserved for calls in progress may be left over.
                Some(effect) if self.under_way() > 0 => drop(self.held.insert(id, effect)),
                Some(_) => {
                    self.short = true;
                    self.lost.get_or_insert(match &self.donors {
                        Donors::Asked(_, limit) => format!(
                            "a sample for {limit} USD has no room for a single question `{what}` to `{model}`; raise \
                             --max-cost, or call no models with --no-ask"
                        ),
                        _ => format!(
                            "the earlier run has no answer of `{model}` to a question like `{what}` of this scenario; \
                             omit --from to ask a sample"
                        ),
                    });
                    return;
                }
            }
        }
    }

    /// Sends a request and makes its unit a donor; returns it if there is no money.
    fn ask_as_donor(&mut self, effect: Effect) -> Option<Effect> {
        let (class, unit) = (self.class(effect.id, &effect.request), self.unit(effect.id));
        let back = self.ask(effect, 1.0);
        if back.is_none() {
            self.units.entry(class).or_default().first(unit);
        }
        back
    }

    /// A made-up reply, for bounds.
    fn made_up(&self, effect: &Effect, longest: bool) -> (Outcome, Usage) {
        let request = &effect.request;
        let provider = self.providers.for_model(&request.model).ok();
        let most = provider.map(|provider| provider.most(request)).unwrap_or_default();
        if !longest {
            let tokens_in = (letters(request) as u64 / MOST_LETTERS_A_TOKEN).min(most.tokens_in);
            let value = blank(&request.response_format, "0", false);
            return (
                Outcome::Reply { value, raw: "0".into(), repaired: false },
                Usage { tokens_in, ..Usage::default() },
            );
        }
        // No two are equal.
        let EffectId { item, round, actor, asker, n } = effect.id;
        let mut text = format!("{item} {round} {actor} {} {n} ", asker.name());
        text.push_str(&"x".repeat((most.tokens_out * LETTERS_A_TOKEN) as usize));
        let outcome = match request.step {
            Some(step) if !step.last => Outcome::Invalid { raw: text, why: "it may not fit".into() },
            _ => Outcome::Reply { value: blank(&request.response_format, &text, true), raw: text, repaired: false },
        };
        (outcome, most)
    }

    /// Selects some of the units with a first request, sends their requests and those of earlier donors, and holds the rest.
    fn start_sample(&mut self, effects: Vec<Effect>) {
        let mut fresh: BTreeMap<Class, BTreeSet<(u128, u32)>> = BTreeMap::new();
        for effect in &effects {
            let (class, unit) = (self.class(effect.id, &effect.request), self.unit(effect.id));
            if self.units.entry(class.clone()).or_default().seen.insert(unit) {
                fresh.entry(class).or_default().insert((scattered(unit), unit));
            }
        }
        let mut chosen: BTreeSet<(Class, u32)> = BTreeSet::new();
        for (class, fresh) in fresh {
            let Some(units) = self.units.get(&class) else { continue };
            let seen = units.seen.len();
            let wanted = (seen / 4).clamp(DONORS.0, DONORS.1).max((seen / 100).min(MOST_DONORS));
            let more = fresh.into_iter().take(wanted.saturating_sub(units.donors.len()));
            chosen.extend(more.map(|(_, unit)| (class.clone(), unit)));
        }
        for effect in effects {
            let (id, key) = (effect.id, (self.class(effect.id, &effect.request), self.unit(effect.id)));
            let donates = self.units.get(&key.0).is_some_and(|units| units.index.contains_key(&key.1));
            let asks = (donates || chosen.contains(&key)) && self.is_asked_in(id.round);
            let part = if self.kinds.contains(&self.alike(id, &effect.request)) { ON_MORE } else { 1.0 };
            match if asks { self.ask(effect, part) } else { Some(effect) } {
                Some(effect) => {
                    self.held.insert(id, effect);
                }
                // A unit not called for lack of money is not a donor.
                None if !donates => self.units.entry(key.0).or_default().add(key.1),
                None => {}
            }
        }
    }
}

impl Source for Rehearsal {
    fn start(&mut self, effects: Vec<Effect>) {
        // People cost nothing and are not asked in a rehearsal: their defaults apply.
        let (people, effects): (Vec<Effect>, Vec<Effect>) =
            effects.into_iter().partition(|effect| effect.request.model.kind() == TargetKind::Human);
        self.ready
            .extend(people.into_iter().map(|effect| failed(effect, "people are asked in runs only".into(), false)));
        let longest = match self.donors {
            Donors::Shortest => false,
            Donors::Longest => true,
            Donors::Asked(..) | Donors::Recorded(_) => return self.start_sample(effects),
        };
        for effect in effects {
            let (class, unit) = (self.class(effect.id, &effect.request), self.unit(effect.id));
            self.units.entry(class).or_default().first(unit);
            let (outcome, usage) = self.made_up(&effect, longest);
            self.count(effect.id, &effect.request, &usage, 0.0);
            self.ready.push(Answer {
                id: effect.id,
                request: effect.request,
                outcome,
                usage: Usage::default(),
                reasoning: None,
            });
        }
    }

    fn in_flight(&self) -> usize {
        self.under_way() + self.held.len() + self.ready.len()
    }

    fn wait(&mut self, patience: Duration) -> Vec<Answer> {
        if let Donors::Asked(live, _) = &mut self.donors {
            let answers = live.wait(patience);
            let (broken, mut again_charged) = (live.broken(), Vec::new());
            if let Some(why) = live.lost() {
                self.lost.get_or_insert_with(|| why.to_string());
            }
            for Broken { effect, charged, again } in broken {
                let id = effect.id;
                match charged {
                    None if again => live.start(vec![effect]),
                    None => {}
                    Some(usage) => {
                        self.spent += usage.cost_usd;
                        self.reserved.remove(&id);
                        again_charged.extend(again.then_some(effect));
                    }
                }
            }
            for effect in again_charged {
                let id = effect.id;
                if let Some(effect) = self.ask(effect, 1.0) {
                    self.held.insert(id, effect);
                }
            }
            for answer in answers {
                self.reserved.remove(&answer.id);
                if !answer.usage.shared {
                    self.spent += answer.usage.cost_usd;
                }
                self.learn(&answer);
                let known = Usage { tokens_in: 0, ..answer.usage };
                self.count(answer.id, &answer.request, &known, letters(&answer.request));
                self.ready.push(answer);
            }
        }
        if self.under_way() == 0 {
            self.serve_held();
        }
        std::mem::take(&mut self.ready)
    }

    fn hold(&mut self) {
        self.held.clear();
        if let Donors::Asked(live, _) = &mut self.donors {
            live.hold();
        }
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn reason(&self) -> String {
        match &self.donors {
            Donors::Asked(live, _) => live.reason(),
            _ => "no calls are made".into(),
        }
    }
}

/// Bytes of a request's messages.
fn letters(request: &Request) -> f64 {
    request.messages.iter().map(ChatMessage::size).sum::<usize>() as f64
}

/// A number that depends only on the unit.
fn scattered(unit: u32) -> u128 {
    RowHash::new(Kind::Request, 1).word(u64::from(unit)).finish()
}

/// One of `n`, by unit; 0 if there are none.
fn any(unit: u32, n: usize) -> usize {
    (scattered(unit) % n.max(1) as u128) as usize
}

/// The requested form, without bounds and options.
fn form(hash: RowHash, response_format: &ResponseFormat) -> RowHash {
    match response_format {
        ResponseFormat::Text => hash.word(0),
        ResponseFormat::Choice(_) => hash.word(1),
        ResponseFormat::Number { .. } => hash.word(2),
        ResponseFormat::List { of, .. } => form(hash.word(3), of),
        ResponseFormat::Record(fields) => {
            let hash = hash.word(4).word(fields.len() as u64);
            fields.iter().fold(hash, |hash, (name, response_format)| form(hash.bytes(name.as_bytes()), response_format))
        }
        ResponseFormat::Vector => hash.word(5),
        ResponseFormat::Calls(tools) => tools.iter().fold(hash.word(6), |hash, tool| hash.bytes(tool.name.as_bytes())),
    }
}

/// Fits a value to other bounds or options of the same form.
fn fitted(value: &Value, response_format: &ResponseFormat) -> Value {
    match (value, response_format) {
        (Value::Choice(i), ResponseFormat::Choice(options)) => Value::Choice(i % (options.len() as u32).max(1)),
        (Value::Number(x), ResponseFormat::Number { low, high, whole }) => {
            let x = x.max(*low).min(*high);
            Value::Number(if *whole { x.round() } else { x })
        }
        (Value::List(values), ResponseFormat::List { of, least, most }) => {
            let mut values: Vec<Value> = values.iter().take(*most as usize).map(|value| fitted(value, of)).collect();
            while values.len() < *least as usize {
                values.push(values.last().cloned().unwrap_or_else(|| blank(of, "0", false)));
            }
            Value::List(values)
        }
        (Value::Record(values), ResponseFormat::Record(fields)) => Value::Record(
            values.iter().zip(fields).map(|(value, (_, response_format))| fitted(value, response_format)).collect(),
        ),
        (value, _) => value.clone(),
    }
}

/// A value in which every text is this one; lists have the minimum or maximum number of values.
fn blank(response_format: &ResponseFormat, text: &str, longest: bool) -> Value {
    match response_format {
        ResponseFormat::Text => Value::Text(text.into()),
        ResponseFormat::Choice(_) => Value::Choice(0),
        ResponseFormat::Number { low, .. } => Value::Number(*low),
        ResponseFormat::List { of, least, most } => {
            // One of them has all the text allowed.
            let n = if longest { (*most).min(1).max(*least) } else { *least };
            Value::List((0..n).map(|_| blank(of, text, longest)).collect())
        }
        ResponseFormat::Record(fields) => {
            Value::Record(fields.iter().map(|(_, response_format)| blank(response_format, text, longest)).collect())
        }
        ResponseFormat::Vector => Value::Vector(Vec::new()),
        ResponseFormat::Calls(_) => Value::Calls { text: text.into(), calls: Vec::new() },
    }
}
