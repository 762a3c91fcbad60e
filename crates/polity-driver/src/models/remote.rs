//! Providers over the network: what is the same on every wire. A wire is a folder that says how a question is written and an answer is
//! read; see `openai/`, `anthropic/`, `google/`, `ollama/` and `openai_responses/`.

use super::batch::{BatchWire, Batching};
use super::choice::{Held, MOST_LETTERS, chosen, in_letters, listed};
use super::form::{Forms, in_words};
use super::keys::Secret;
use super::line::{Home, Line, Sent};
use super::received::{Ended, Received, Told};
use super::{Answering, Capabilities, Exchange, Probing, Provider, RateLimits, Trouble, no_vectors, prices};
use crate::drive::digest_of;
use polity_kernel::ask::{Constrain, Effect, EffectId, Message, Outcome, Request, Role, Usage, Value, Want};
use polity_kernel::digest::Digest;
use polity_kernel::scenario::Price;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tokens of a reply at most, unless the settings say otherwise. It is sent along: budgets set that much aside.
pub const LONGEST_REPLY: u64 = 8192;
/// How long an answer may take by default, in milliseconds.
const PATIENCE_MS: u64 = 300_000;
/// How long a question about a model may take.
const PROBE: Duration = Duration::from_secs(3);

/// What every call of a model is sent besides the question, as far as its wire knows it. By default nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How freely the model samples.
    pub temperature: Option<f64>,
    /// Tokens of a reply at most, under the name that most servers know.
    pub max_tokens: Option<u64>,
    /// The same under the name that OpenAI's thinking models know; thinking counts.
    pub max_completion_tokens: Option<u64>,
    /// Seed of the model's sampling; the number of the sample is added to it. Few servers promise anything.
    pub seed: Option<u64>,
    /// Log-probabilities of the tokens, with so many alternatives each (`openai/` only).
    pub logprobs: Option<u8>,
    /// Whether replies come in pieces, which keeps long ones from being cut by gateways (`openai/` only).
    pub stream: bool,
    /// How long an answer may take, in milliseconds (five minutes).
    pub timeout_ms: Option<u64>,
}

/// A question in words that every wire has.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The model, as its server knows it.
    pub model: &'a str,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// The form that the reply must have.
    pub schema: Option<Arc<Json>>,
    /// What else holds it to the options of a choice.
    pub held: Option<Held>,
    /// Tokens of the reply at most.
    pub longest: u64,
    /// How freely the model samples.
    pub temperature: Option<f64>,
    /// It samples from the likeliest tokens that have this probability together.
    pub top_p: Option<f64>,
    /// Seed of its sampling.
    pub seed: Option<u64>,
    /// What every call is sent.
    pub settings: &'a Settings,
    /// Whether the provider itself is asked, and no other server that speaks its wire.
    pub own: bool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
}

impl Question<'_> {
    /// The conversation on wires where what is said in front of it stands apart: that, and the rest. There is always a rest.
    #[must_use]
    pub fn apart(&self) -> (Option<String>, Vec<&Turn>) {
        let (system, rest): (Vec<&Turn>, Vec<&Turn>) = self.turns.iter().partition(|turn| turn.role == Role::System);
        match rest.is_empty() {
            true => (None, system),
            false => {
                let system: Vec<&str> = system.iter().map(|turn| turn.text.as_str()).collect();
                ((!system.is_empty()).then(|| system.join("\n\n")), rest)
            }
        }
    }

    /// More words at its end. Some servers refuse two messages of one speaker in a row.
    fn add(&mut self, words: String) {
        match self.turns.last_mut() {
            Some(Turn { role: Role::User, text }) => {
                text.push_str("\n\n");
                text.push_str(&words);
            }
            _ => self.turns.push(Turn { role: Role::User, text: words }),
        }
    }
}

/// A wire: how a server is asked, and what its answers say.
pub trait Wire: Send + Sync + 'static {
    /// Where it is found.
    const HOME: Home;
    /// What a request is sent as.
    type Body: Serialize + Send + Sync;

    /// How a model can be held to a form here.
    const WAYS: &'static [Constrain] = &[Constrain::Schema, Constrain::Words];

    /// Where a question is put.
    fn path(model: &str) -> Vec<String>;
    /// A question in its words.
    fn body(question: &Question<'_>) -> Self::Body;
    /// What a server answered; pure.
    fn told(received: &Received) -> Result<Told, Ended>;
    /// Whether schemas for this model may have bounds of numbers and lengths. Bounds are checked here whatever the server does.
    fn bounds(model: &str) -> bool {
        let _ = model;
        true
    }
    /// Where a server tells of a model what it can, and what it is sent to do so, if that costs nothing.
    fn inquiry(model: &str) -> (Vec<String>, Option<Json>);
    /// What an answer to that says of the model; null, if nothing.
    fn entry<'a>(model: &str, told: &'a Json) -> &'a Json {
        let _ = model;
        told
    }
    /// Its batches, if it has any.
    fn batches() -> Option<&'static dyn BatchWire> {
        None
    }
    /// How vectors of texts are asked for, if it has any.
    fn embedding() -> Option<&'static dyn EmbeddingWire> {
        None
    }
    /// What a model offers, by what its server tells of it (null, if nothing).
    fn capabilities(model: &str, own: bool, told: &Json) -> Capabilities;
}

/// The part of a wire that gives vectors of texts.
pub trait EmbeddingWire: Send + Sync {
    /// Where one is asked for.
    fn path(&self, model: &str) -> Vec<String>;
    /// What is sent for it.
    fn body(&self, model: &str, text: &str) -> Json;
    /// The vector, and what it took if that is told; pure.
    fn vector(&self, received: &Received) -> Result<(Vec<f32>, Option<Usage>), Ended>;
}

/// Bytes that a token has at most in texts as they are written: a server that tells fewer tokens counts wrongly.
const BYTES_A_TOKEN: usize = 8;

/// Tokens as a server tells them, as far as that can be: zero, or fewer than any text of that length has, is nothing told, and is counted at
/// the most that the call can have taken. A limit would be none otherwise.
fn plausible(told: Usage, asked: &Request, reply: &str, most: Usage) -> Usage {
    let counted = |told: u64, bytes: usize, most: u64| {
        let told_nothing = bytes > 0 && told <= (bytes / BYTES_A_TOKEN) as u64;
        if told_nothing { most.max(told) } else { told }
    };
    let request = asked.messages.iter().map(|message| message.size()).sum();
    let tokens_in = counted(told.tokens_in, request, most.tokens_in);
    let tokens_out = counted(told.tokens_out, reply.len(), most.tokens_out);
    let estimated = tokens_in != told.tokens_in || tokens_out != told.tokens_out;
    Usage { tokens_in, tokens_out, estimated, ..told }
}

/// The text of which a vector is wanted.
pub(super) fn text_of(asked: &Request) -> String {
    asked.messages.iter().map(Message::rendered).collect::<Vec<_>>().join("\n\n")
}

/// A vector as an outcome: one that has a direction.
pub(super) fn embedded(vector: Vec<f32>) -> Outcome {
    let raw = format!("a vector of {} numbers", vector.len());
    let why = match vector.iter().find(|x| !x.is_finite()) {
        Some(x) => Some(format!("one of its numbers is {x}")),
        None if vector.iter().all(|x| *x == 0.0) => Some("it has no number other than 0".to_owned()),
        None => None,
    };
    match why {
        None => Outcome::Reply { value: Value::Vector(vector), raw, repaired: false },
        Some(why) => Outcome::Invalid { raw, why },
    }
}

/// A way of holding a model to a form that its server has refused twice for one question.
#[derive(Clone, Debug)]
struct Refusal {
    /// What the server said.
    why: String,
    /// Questions that were put otherwise since.
    since: u32,
    /// After so many it is tried again: a server may have been replaced, or was in trouble.
    patience: u32,
}

/// What has become of a question so far.
#[derive(Clone, Debug, Default)]
struct Attempt {
    /// Whether the way that is being tried was refused once.
    doubted: bool,
    /// Ways that were refused twice, and the first refusal: what was received, and whether it speaks of the form.
    refused: Vec<Constrain>,
    first: Option<(Received, Constrain, bool)>,
    /// Places that were passed over on end.
    passed: usize,
}

/// A question of some run: runs of a sweep share their providers.
type Attempted = (EffectId, Digest);

fn attempted(effect: &Effect) -> Attempted {
    // A request that has no bytes, which none is, is told apart by its effect alone.
    let bytes = postcard::to_allocvec(&effect.request).unwrap_or_default();
    (effect.id, digest_of(&bytes))
}

impl Attempt {
    fn is_under_way(&self) -> bool {
        self.doubted || !self.refused.is_empty() || self.passed > 0
    }
}

/// Questions after which a refused way is tried again at first, and at most.
const TRIED_AGAIN: (u32, u32) = (100, 10_000);

/// The provider behind a wire. Its calls are made in a tokio runtime with I/O and time; connections live as long as that.
pub struct Remote<W> {
    pub(super) settings: Settings,
    pub(super) line: Line,
    forms: Forms,
    /// By model, how it turned out not to be held to a form.
    refused: Mutex<BTreeMap<String, BTreeMap<Constrain, Refusal>>>,
    /// Questions whose request was refused or passed over, until they are answered.
    attempts: Mutex<BTreeMap<Attempted, Attempt>>,
    /// By model, what was told of its limits and is not passed on yet.
    limits: Mutex<BTreeMap<String, RateLimits>>,
    /// What was learnt of models: a sweep asks once.
    learnt: Mutex<BTreeMap<String, Capabilities>>,
    wire: PhantomData<W>,
}

impl<W: Wire> fmt::Debug for Remote<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.line.known().map(|place| place.shown.as_str());
        let mut out = f.debug_struct(W::HOME.name);
        out.field("base_url", &shown).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A path of these parts.
pub(super) fn path<const N: usize>(parts: [&str; N]) -> Vec<String> {
    parts.map(str::to_owned).to_vec()
}

impl<W: Wire> Remote<W> {
    /// Whom its variables name, in the environment or in a `.env`; they are read when first needed.
    #[must_use]
    pub fn standard() -> Self {
        Remote::on(Line::standard(&W::HOME, Duration::from_millis(PATIENCE_MS)))
    }

    /// Several servers or keys for the same, first the one that is asked first: where one can not be asked, the next one is.
    pub fn among(places: Vec<(String, Secret)>) -> Result<Self, String> {
        Ok(Remote::on(Line::to_all(&W::HOME, places, Duration::from_millis(PATIENCE_MS))?))
    }

    /// A server of your own choice.
    pub fn new(base_url: &str, key: Secret) -> Result<Self, String> {
        Ok(Remote::on(Line::to(&W::HOME, base_url, key, Duration::from_millis(PATIENCE_MS))?))
    }

    fn on(line: Line) -> Self {
        let settings = Settings::default();
        Remote {
            settings,
            line,
            forms: Forms::default(),
            refused: Mutex::default(),
            attempts: Mutex::default(),
            limits: Mutex::default(),
            learnt: Mutex::default(),
            wire: PhantomData,
        }
    }

    /// With settings for every call.
    #[must_use]
    pub fn with(mut self, settings: Settings) -> Self {
        self.line.timeout = Duration::from_millis(settings.timeout_ms.unwrap_or(PATIENCE_MS));
        Remote { settings, ..self }
    }

    /// Where the answer to a request may take so long.
    #[must_use]
    pub fn within(mut self, timeout: Option<Duration>) -> Self {
        self.line.timeout = timeout.unwrap_or(self.line.timeout);
        self
    }

    /// The name of a model as its server knows it.
    pub(super) fn short<'a>(&self, model: &'a str) -> &'a str {
        let known = |name: &str| name == W::HOME.name || W::HOME.aliases.contains(&name);
        model.split_once('/').filter(|(name, _)| known(name)).map_or(model, |(_, short)| short)
    }

    /// A request of a run in the words of the wire: what is sent first.
    pub fn request(&self, effect: &Effect) -> W::Body {
        let asked = &effect.request;
        let first = self.ways(asked).ok().and_then(|ways| ways.first().copied()).unwrap_or(Constrain::Words);
        W::body(&self.put(asked, first))
    }

    pub(super) fn question<'a>(&'a self, asked: &'a Request) -> Question<'a> {
        let model = self.short(&asked.model);
        let turn = |message: &polity_kernel::ask::Message| Turn { role: message.role, text: message.rendered() };
        let seed = asked.settings.seed.or(self.settings.seed);
        Question {
            model,
            turns: asked.messages.iter().map(turn).collect(),
            schema: None,
            held: None,
            longest: self.longest(asked),
            temperature: asked.settings.temperature.or(self.settings.temperature),
            top_p: asked.settings.top_p,
            seed: seed.map(|seed| seed.wrapping_add(u64::from(asked.sample))),
            settings: &self.settings,
            own: self.line.place().is_ok_and(|place| place.is_own),
        }
    }

    /// Tokens of a reply at most.
    fn longest(&self, asked: &Request) -> u64 {
        let Settings { max_tokens, max_completion_tokens, .. } = self.settings;
        asked.settings.max_tokens.or(max_tokens).or(max_completion_tokens).unwrap_or(LONGEST_REPLY)
    }

    /// How a request is put: first what is tried first, then what is tried where that is refused. What is set is kept to.
    pub(super) fn ways(&self, asked: &Request) -> Result<Vec<Constrain>, Trouble> {
        let model = self.short(&asked.model);
        let options = match &asked.want {
            Want::Text | Want::Vector => return Ok(vec![Constrain::Words]),
            Want::Choice(options) => options.len(),
            Want::Number { .. } | Want::List { .. } | Want::Record(_) => 0,
        };
        let serves = |way: &Constrain| match way {
            Constrain::Schema | Constrain::Words => true,
            Constrain::Choice | Constrain::Grammar => options > 0,
            Constrain::Logprobs => (1..=MOST_LETTERS).contains(&options),
        };
        match asked.settings.constrain.filter(serves) {
            Some(way) if W::WAYS.contains(&way) => return Ok(vec![way]),
            Some(way) => {
                let all: Vec<&str> = W::WAYS.iter().map(|way| way.name()).collect();
                let why = format!(
                    "`constrain: {}` is nothing that `{}/...` has: leave it out, or set one of {}",
                    way.name(),
                    W::HOME.name,
                    all.join(", ")
                );
                return Err(Trouble::Fatal { why });
            }
            None => {}
        }
        let (learnt, refused) = (self.learnt(), self.refusals());
        let nothing = Capabilities::default();
        let known = learnt.get(model).unwrap_or(&nothing);
        let offered = |way: &Constrain| match way {
            // What nobody knows is tried: most servers have it.
            Constrain::Schema => known.schema != Some(false),
            way => known.offers(*way) == Some(true),
        };
        let refuses = |way: &Constrain| {
            let refusal = refused.get(model).and_then(|ways| ways.get(way));
            refusal.is_some_and(|refusal| refusal.since < refusal.patience)
        };
        let fits = |way: &&Constrain| serves(way) && offered(way) && !refuses(way);
        Ok(W::WAYS.iter().filter(fits).copied().collect())
    }

    /// What an answer to a request that was put so is to the one who asked, and what it took since it was asked for.
    pub(super) fn exchange(
        &self,
        asked: &Request,
        way: Constrain,
        received: &Received,
        began: Instant,
        seed: u64,
    ) -> Result<Exchange, Trouble> {
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        let told = match W::told(received) {
            Ok(told) => Ok(told),
            Err(Ended::Outcome(outcome)) => Err(outcome),
            Err(Ended::Trouble(trouble)) => return Err(self.line.scrubbed(trouble)),
        };
        let said = told.as_ref().ok().and_then(|told| told.text.as_deref()).unwrap_or_default();
        let usage = match told.as_ref().ok().and_then(|told| told.usage) {
            Some(usage) => plausible(usage, asked, said, self.most(asked)),
            // An answer of any kind was made, and counted there: what is not told is counted from above.
            None if received.is_answer() => Usage { estimated: true, ..self.most(asked) },
            None => Usage::default(),
        };
        let outcome = match (told, way, &asked.want) {
            (Err(outcome), ..) => outcome,
            (Ok(told), Constrain::Logprobs, Want::Choice(options)) if told.is_said() => {
                let temperature = asked.settings.temperature.or(self.settings.temperature);
                chosen(options, &told.alternatives, temperature, asked, seed)
            }
            (Ok(told), ..) => told.outcome(&asked.want, &received.body),
        };
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage } })
    }

    /// A question, put so.
    pub(super) fn put<'a>(&'a self, asked: &'a Request, way: Constrain) -> Question<'a> {
        let mut question = self.question(asked);
        match (way, &asked.want) {
            (Constrain::Choice, Want::Choice(options)) => {
                question.held = Some(Held::To(options.clone()));
                question.add(listed(options));
            }
            (Constrain::Grammar, Want::Choice(options)) => {
                question.held = Some(Held::in_grammar(options));
                question.add(listed(options));
            }
            (Constrain::Logprobs, Want::Choice(options)) => {
                question.held = Some(Held::Letters);
                question.longest = 1;
                question.add(in_letters(options));
            }
            (Constrain::Words, want) => {
                if let Some(words) = in_words(want) {
                    question.add(words);
                }
            }
            (_, want) => question.schema = self.forms.of(want, W::bounds(question.model)).map(|form| form.schema),
        }
        question
    }

    /// Sends one request, in the form that is wanted, and says in which. Where a server refuses that, the question is to be put anew: the
    /// same way once more, for a refusal may be a stray one, and then in the next way.
    async fn ask(&self, effect: &Effect) -> Result<(Received, Constrain), Trouble> {
        let asked = &effect.request;
        let model = self.short(&asked.model);
        let attempt = self.attempt(effect);
        let ways = self.ways(asked)?;
        let way = ways.iter().find(|way| !attempt.refused.contains(way)).copied();
        let Some(way) = way else {
            return Err(Trouble::Never { why: format!("there is no way to ask `{}` for that", asked.model) });
        };
        let body = W::body(&self.put(asked, way));
        let (received, mut attempt) = self.send(effect, attempt, &W::path(model), model, &body).await?;
        let Some(names_it) = received.refuses_form(&W::HOME) else {
            if received.is_answer() {
                self.learn(model, way, &attempt);
            }
            return Ok((received, way));
        };
        let last = ways.last() == Some(&way);
        let said = received.said();
        if !attempt.doubted {
            attempt.doubted = true;
            let why = format!(
                "{} refuses a request for `{model}` (status {}): {said}; it is sent once more",
                received.url, received.status
            );
            self.attempts().insert(attempted(effect), attempt);
            return Err(Trouble::Anew { why: self.line.hidden(why) });
        }
        if asked.settings.constrain == Some(way) && way != Constrain::Words && names_it {
            let why = format!(
                "{} does not take `constrain: {}`: leave it out, or set another one. It says: {said}",
                received.url,
                way.name(),
            );
            return Err(Trouble::Fatal { why: self.line.hidden(why) });
        }
        if last {
            // Nothing says that it was the form: what was refused first is told.
            return Ok(match attempt.first {
                Some((first, by, false)) => (first, by),
                _ => (received, way),
            });
        }
        attempt.doubted = false;
        attempt.refused.push(way);
        attempt.first.get_or_insert((received, way, names_it));
        self.attempts().insert(attempted(effect), attempt);
        // A run that goes on has not asked what else there is.
        if W::WAYS.contains(&Constrain::Choice) && !self.learnt().contains_key(model) {
            self.probe(model).await;
        }
        let why = format!("`{model}` takes no {} for this question; it is put otherwise", way.name());
        Err(Trouble::Anew { why })
    }

    /// Sends one request of a question. A place that cannot be asked is passed over; when all were, what the last one said counts.
    async fn send(
        &self,
        effect: &Effect,
        mut attempt: Attempt,
        path: &[String],
        model: &str,
        body: &impl Serialize,
    ) -> Result<(Received, Attempt), Trouble> {
        let trouble = match self.line.send(path, model, Some(body)).await {
            Sent::Received(received) => return Ok((received, attempt)),
            Sent::Trouble(trouble) => trouble,
            Sent::PassedOver { places, left } => {
                attempt.passed += 1;
                match (attempt.passed >= places, left) {
                    (true, left) => {
                        attempt.passed = 0;
                        match left {
                            Ok(received) => return Ok((received, attempt)),
                            Err(trouble) => trouble,
                        }
                    }
                    (false, Ok(Received { url, status, .. })) => {
                        Trouble::Anew { why: format!("{url} cannot be asked (status {status}); the next address is") }
                    }
                    (false, Err(trouble)) => Trouble::Anew { why: format!("{trouble}; the next address is asked") },
                }
            }
        };
        if attempt.is_under_way() {
            self.attempts().insert(attempted(effect), attempt);
        }
        Err(trouble)
    }

    /// Takes in that a question was answered which was put so, after other ways were refused.
    fn learn(&self, model: &str, way: Constrain, attempt: &Attempt) {
        let mut refusals = self.refusals();
        if attempt.refused.is_empty() && !refusals.contains_key(model) {
            return;
        }
        let ways = refusals.entry(model.to_owned()).or_default();
        // One that was tried again and taken is refused no longer.
        ways.remove(&way);
        for refusal in ways.values_mut() {
            refusal.since = refusal.since.saturating_add(1);
        }
        let why = attempt.first.as_ref().map(|(received, ..)| self.line.hidden(received.said()));
        for way in &attempt.refused {
            let (first, most) = TRIED_AGAIN;
            let patience = match ways.get(way) {
                // Others have found the same at the same time.
                Some(refusal) if refusal.since < refusal.patience => continue,
                Some(refusal) => refusal.patience.saturating_mul(2).min(most),
                None => first,
            };
            ways.insert(*way, Refusal { why: why.clone().unwrap_or_default(), since: 0, patience });
        }
        if ways.is_empty() {
            refusals.remove(model);
        }
    }

    /// Puts a question.
    async fn converse(&self, effect: &Effect, began: Instant, seed: u64) -> Result<Exchange, Trouble> {
        let asked = &effect.request;
        let (received, way) = self.ask(effect).await?;
        self.note_limits(asked, &received);
        self.exchange(asked, way, &received, began, seed)
    }

    /// Asks for the vector of a request's text.
    async fn embed(&self, effect: &Effect, began: Instant) -> Result<Exchange, Trouble> {
        let asked = &effect.request;
        let Some(wire) = W::embedding() else {
            return Err(Trouble::Fatal { why: no_vectors(W::HOME.name, &asked.model) });
        };
        let model = self.short(&asked.model);
        let body = wire.body(model, &text_of(asked));
        let attempt = self.attempt(effect);
        let (received, _) = self.send(effect, attempt, &wire.path(model), model, &body).await?;
        self.note_limits(asked, &received);
        let (outcome, usage) = match wire.vector(&received) {
            Ok((vector, usage)) => (embedded(vector), usage),
            Err(Ended::Outcome(outcome)) => (outcome, None),
            Err(Ended::Trouble(trouble)) => return Err(self.line.scrubbed(trouble)),
        };
        // What is not told is counted from above.
        let most = self.most(asked);
        let usage = usage.map_or(Usage { estimated: true, ..most }, |usage| plausible(usage, asked, "", most));
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage } })
    }

    /// Keeps what a server tells of its limits for the run.
    fn note_limits(&self, asked: &Request, received: &Received) {
        if let Some(limits) = received.limits() {
            self.limits_told().insert(self.short(&asked.model).to_owned(), limits);
        }
    }

    /// Notes that a server refuses to hold a model to a form so.
    pub(super) fn refuses(&self, model: &str, way: Constrain, why: String) {
        let refusal = Refusal { why, since: 0, patience: TRIED_AGAIN.0 };
        self.refusals().entry(model.to_owned()).or_default().insert(way, refusal);
    }

    fn refusals(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<Constrain, Refusal>>> {
        // Names and numbers alone are behind it: they are as good after a panic as before.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<Attempted, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has become of a question so far, which is forgotten.
    fn attempt(&self, effect: &Effect) -> Attempt {
        let mut attempts = self.attempts();
        match attempts.is_empty() {
            true => Attempt::default(),
            false => attempts.remove(&attempted(effect)).unwrap_or_default(),
        }
    }

    fn limits_told(&self) -> MutexGuard<'_, BTreeMap<String, RateLimits>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learnt(&self) -> MutexGuard<'_, BTreeMap<String, Capabilities>> {
        // As good after a panic as before, too.
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Wire> Provider for Remote<W> {
    fn name(&self) -> &'static str {
        W::HOME.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        W::HOME.aliases
    }

    fn check(&self, model: &str) -> Result<(), String> {
        if self.short(model).trim().is_empty() {
            return Err(format!(
                "`{model}` names no model: write it as the server knows it, for instance `{}`",
                W::HOME.model
            ));
        }
        self.line.open().map(|_| ()).map_err(|why| format!("`{model}`: {why}"))
    }

    fn makes_vectors(&self, model: &str) -> Result<(), String> {
        W::embedding().map(|_| ()).ok_or_else(|| no_vectors(W::HOME.name, model))
    }

    fn most(&self, request: &Request) -> Usage {
        // A token has a byte at least. A schema is counted, and what a server puts around a message.
        let messages: usize = request.messages.iter().map(|message| message.size() + 32).sum();
        // In words a form is longer than in any other way.
        let form = self.forms.of(&request.want, W::bounds(self.short(&request.model)));
        let form = form.map_or(0, |form| form.in_words + 32);
        let tokens_out = if request.want == Want::Vector { 0 } else { self.longest(request) };
        Usage { tokens_in: (messages + form) as u64, tokens_out, ..Usage::default() }
    }

    /// Wires tell tokens only.
    fn tells_costs(&self) -> bool {
        false
    }

    /// A provider's own prices hold at its own address. What a server elsewhere asks for a model of the same name nobody here knows.
    fn list_price(&self, model: &str) -> Option<Price> {
        let own = self.line.place().ok().filter(|place| place.is_own);
        own.and_then(|_| prices::listed(&format!("{}/{}", W::HOME.listed_as, self.short(model))))
    }

    fn address(&self, _: &str) -> Option<String> {
        let place = self.line.place().ok()?;
        Some(match self.settings == Settings::default() {
            true => place.shown.clone(),
            false => format!("{} {}", place.shown, serde_json::to_string(&self.settings).ok()?),
        })
    }

    fn notices(&self) -> Vec<String> {
        self.line.notices()
    }

    fn limits(&self, model: &str) -> Option<RateLimits> {
        self.limits_told().remove(self.short(model))
    }

    fn refused(&self, model: &str) -> BTreeMap<Constrain, String> {
        let refusals = self.refusals();
        let ways = refusals.get(self.short(model));
        ways.into_iter().flatten().map(|(way, refusal)| (*way, refusal.why.clone())).collect()
    }

    fn simulated(&self) -> bool {
        false
    }

    fn batching(&self) -> Option<&dyn Batching> {
        W::batches().map(|_| self as &dyn Batching)
    }

    fn probe<'a>(&'a self, model: &'a str) -> Probing<'a> {
        Box::pin(async move {
            let short = self.short(model);
            if let Some(learnt) = self.learnt().get(short) {
                return Some(learnt.clone());
            }
            let own = self.line.place().is_ok_and(|place| place.is_own);
            let (path, body) = W::inquiry(short);
            let asking = tokio::time::timeout(PROBE, self.line.send_once(&path, short, body.as_ref())).await;
            // A server that tells nothing may answer questions all the same: what is wrong with it shows there.
            let received = asking.ok().and_then(Result::ok).filter(Received::is_answer);
            let told: Option<Json> = received.and_then(|received| serde_json::from_str(&received.body).ok());
            let told = told.unwrap_or_default();
            let entry = W::entry(short, &told);
            let mut learnt = Capabilities { known: !entry.is_null(), ..W::capabilities(short, own, entry) };
            if !W::WAYS.contains(&Constrain::Choice) {
                (learnt.choice, learnt.grammar) = (Some(false), Some(false));
            }
            self.learnt().insert(short.to_owned(), learnt.clone());
            Some(learnt)
        })
    }

    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a> {
        Box::pin(async move {
            let (began, asked) = (Instant::now(), &effect.request);
            let ended = match asked.want {
                Want::Vector => self.embed(effect, began).await,
                _ => self.converse(effect, began, seed).await,
            };
            self.line.scrubbed_end(ended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_are_not_told_are_counted_at_the_most() {
        let messages = vec![Message::text(Role::User, "x".repeat(800))];
        let asked = Request::new("openai/m", messages, Want::Text);
        let most = Usage { tokens_in: 900, tokens_out: 500, ..Usage::default() };
        let usage = |tokens_in, tokens_out| Usage { tokens_in, tokens_out, ..Usage::default() };
        let counted = |told: Usage, reply: &str| {
            let usage = plausible(told, &asked, reply, most);
            (usage.tokens_in, usage.tokens_out, usage.estimated)
        };
        assert_eq!(counted(usage(210, 3), "a reply"), (210, 3, false));
        assert_eq!(counted(usage(0, 0), "a reply"), (900, 500, true));
        assert_eq!(counted(usage(210, 0), "a reply"), (210, 500, true));
        // A model that says nothing takes nothing for it.
        assert_eq!(counted(usage(210, 0), ""), (210, 0, false));
        // Fewer than any text of that length has.
        assert_eq!(counted(usage(1, 1), &"y".repeat(400)), (900, 500, true));
        // More than was thought possible is what it is.
        assert_eq!(counted(usage(2_000, 700), "a reply"), (2_000, 700, false));
    }
}
