//! Providers over the network: the part shared by all wires. A wire is a folder that defines how requests are written and answers parsed;
//! see `openai/`, `anthropic/`, `google/`, `ollama/` and `openai_responses/`.

use super::capabilities::Capabilities;
use super::choice::{Held, MOST_LETTERS, chosen, in_letters, listed};
use super::form::{Forms, in_words};
use super::keys::Secret;
use super::line::{Line, Sent};
use super::prices;
use super::provider::{Answering, Batching, Exchange, Probing, Provider, ProviderError, RateLimits, no_vectors};
use super::received::{Ended, Received};
use super::wire::{LONGEST_REPLY, Question, Settings, Turn, Wire, embedded, text_of};
use polity_kernel::ask::{Constrain, Effect, EffectId, Request, ResponseFormat, Thinking, Usage};
use polity_kernel::digest::Digest;
use polity_kernel::scenario::Price;
use polity_store::digest_of;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Default timeout of an answer, in milliseconds.
const PATIENCE_MS: u64 = 300_000;
/// Timeout of a capability probe.
const PROBE: Duration = Duration::from_secs(3);

/// Maximum bytes per token in written texts: a server that reports fewer tokens miscounts.
const BYTES_A_TOKEN: usize = 8;

/// Reported token counts, if plausible. Zero, or fewer than possible for the text's length, counts as not reported, and the maximum of
/// the call is used; otherwise limits would have no effect.
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

/// A constraint mode that a server has refused twice for one request.
#[derive(Clone, Debug)]
struct Refusal {
    /// The server's message.
    why: String,
    /// Requests sent in other modes since then.
    since: u32,
    /// Number of requests after which it is tried again, since the server may have been replaced or repaired.
    patience: u32,
}

/// The progress of a request.
#[derive(Clone, Debug, Default)]
struct Attempt {
    /// Whether the current mode was refused once.
    doubted: bool,
    /// Modes refused twice, and the first refusal: the answer, and whether it mentions the form.
    refused: Vec<Constrain>,
    first: Option<(Received, Constrain, bool)>,
    /// Servers skipped in a row.
    passed: usize,
}

/// A request of some run, since the runs of a sweep share their providers.
type Attempted = (EffectId, Digest);

fn attempted(effect: &Effect) -> Attempted {
    // A request without bytes (which does not happen) is identified by its effect alone.
    let bytes = postcard::to_allocvec(&effect.request).unwrap_or_default();
    (effect.id, digest_of(&bytes))
}

impl Attempt {
    fn is_under_way(&self) -> bool {
        self.doubted || !self.refused.is_empty() || self.passed > 0
    }
}

/// Requests after which a refused mode is tried again, at first and at most.
const TRIED_AGAIN: (u32, u32) = (100, 10_000);

/// Refuses settings that do not go together.
pub(super) fn agrees<W: Wire>(question: &Question<'_>) -> Result<(), ProviderError> {
    let conflict = match &question.held {
        Some(Held::Letters) if question.thinks() => Some(
            "a reply of one letter has no room for thoughts: set it to `off`, or set another `constrain`".to_owned(),
        ),
        _ => W::conflict(question),
    };
    match (conflict, question.thinking) {
        (Some(why), Some(thinking)) => {
            let why = format!("`thinking: {}` of `{}/{}`: {why}", thinking.name(), W::HOME.name, question.model);
            Err(ProviderError::Fatal { why })
        }
        _ => Ok(()),
    }
}

/// The provider of a wire. Its calls need a tokio runtime with I/O and time; connections live as long as that.
pub struct Remote<W> {
    pub(super) settings: Settings,
    pub(super) line: Line,
    forms: Forms,
    /// Refused constraint modes, by model.
    refused: Mutex<BTreeMap<String, BTreeMap<Constrain, Refusal>>>,
    /// Requests that were refused or skipped, until they are answered.
    attempts: Mutex<BTreeMap<Attempted, Attempt>>,
    /// Reported rate limits not yet passed on, by model.
    limits: Mutex<BTreeMap<String, RateLimits>>,
    /// Probed capabilities of models: a sweep probes once.
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

impl<W: Wire> Remote<W> {
    /// Uses the servers named by its variables, in the environment or a `.env`, which are read when first needed.
    #[must_use]
    pub fn standard() -> Self {
        Remote::on(Line::standard(&W::HOME, Duration::from_millis(PATIENCE_MS)))
    }

    /// Uses several equivalent servers or keys, in order of preference: if one is unavailable, the next is used.
    pub fn among(places: Vec<(String, Secret)>) -> Result<Self, String> {
        Ok(Remote::on(Line::to_all(&W::HOME, places, Duration::from_millis(PATIENCE_MS))?))
    }

    /// Uses a server of your own choice.
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

    /// Sets the settings of every call.
    #[must_use]
    pub fn with(mut self, settings: Settings) -> Self {
        self.line.timeout = Duration::from_millis(settings.timeout_ms.unwrap_or(PATIENCE_MS));
        Remote { settings, ..self }
    }

    /// Sets the timeout of an answer.
    #[must_use]
    pub fn within(mut self, timeout: Option<Duration>) -> Self {
        self.line.timeout = timeout.unwrap_or(self.line.timeout);
        self
    }

    /// The server's name of a model.
    pub(super) fn short<'a>(&self, model: &'a str) -> &'a str {
        let known = |name: &str| name == W::HOME.name || W::HOME.aliases.contains(&name);
        model.split_once('/').filter(|(name, _)| known(name)).map_or(model, |(_, short)| short)
    }

    /// Writes a run's request for the wire, in the first mode.
    pub fn request(&self, effect: &Effect) -> W::Body {
        let asked = &effect.request;
        let first = self.ways(asked).ok().and_then(|ways| ways.first().copied()).unwrap_or(Constrain::Words);
        W::body(&self.put(asked, first))
    }

    pub(super) fn question<'a>(&'a self, asked: &'a Request) -> Question<'a> {
        let model = self.short(&asked.model);
        let seed = asked.settings.seed.or(self.settings.seed);
        Question {
            model,
            turns: asked.messages.iter().map(|message| Turn::of(message, false)).collect(),
            schema: None,
            tools: Arc::default(),
            held: None,
            longest: self.longest(asked),
            temperature: asked.settings.temperature.or(self.settings.temperature),
            top_p: asked.settings.top_p,
            seed: seed.map(|seed| seed.wrapping_add(u64::from(asked.sample))),
            thinking: asked.settings.thinking,
            settings: &self.settings,
            own: self.line.place().is_ok_and(|place| place.is_own),
        }
    }

    /// Maximum tokens of a reply.
    fn longest(&self, asked: &Request) -> u64 {
        let Settings { max_tokens, max_completion_tokens, .. } = self.settings;
        asked.settings.max_tokens.or(max_tokens).or(max_completion_tokens).unwrap_or(LONGEST_REPLY)
    }

    /// The constraint modes of a request, in the order in which they are tried. A configured mode is the only one.
    pub(super) fn ways(&self, asked: &Request) -> Result<Vec<Constrain>, ProviderError> {
        let model = self.short(&asked.model);
        let options = match &asked.response_format {
            ResponseFormat::Text | ResponseFormat::Vector => return Ok(vec![Constrain::Words]),
            ResponseFormat::Choice(options) => options.len(),
            ResponseFormat::Number { .. }
            | ResponseFormat::List { .. }
            | ResponseFormat::Record(_)
            | ResponseFormat::Calls(_) => 0,
        };
        let serves = |way: &Constrain| match way {
            Constrain::Schema | Constrain::Words => true,
            Constrain::Tools => matches!(asked.response_format, ResponseFormat::Calls(_)),
            Constrain::Choice | Constrain::Grammar => options > 0,
            Constrain::Logprobs => (1..=MOST_LETTERS).contains(&options),
        };
        match asked.settings.constrain.filter(serves) {
            Some(way) if W::WAYS.contains(&way) => return Ok(vec![way]),
            Some(way) => {
                let all: Vec<&str> = W::WAYS.iter().map(|way| way.name()).collect();
                let why = format!(
                    "`constrain: {}` is not supported by `{}/...`: leave it out, or set it to one of {}",
                    way.name(),
                    W::HOME.name,
                    all.join(", ")
                );
                return Err(ProviderError::Fatal { why });
            }
            None => {}
        }
        let (learnt, refused) = (self.learnt(), self.refusals());
        let thinks = asked.settings.thinking.is_some_and(|thinking| thinking != Thinking::Off);
        let nothing = Capabilities::default();
        let known = learnt.get(model).unwrap_or(&nothing);
        let offered = |way: &Constrain| match way {
            // Unknown support is tried: most servers have it.
            Constrain::Schema => known.schema != Some(false),
            Constrain::Tools => known.tools != Some(false),
            // The first token would be a thought.
            Constrain::Logprobs if thinks => false,
            way => known.offers(*way) == Some(true),
        };
        let refuses = |way: &Constrain| {
            let refusal = refused.get(model).and_then(|ways| ways.get(way));
            refusal.is_some_and(|refusal| refusal.since < refusal.patience)
        };
        let fits = |way: &&Constrain| serves(way) && offered(way) && !refuses(way);
        Ok(W::WAYS.iter().filter(fits).copied().collect())
    }

    /// The outcome and usage of an answer to a request sent in this mode, for the caller.
    pub(super) fn exchange(
        &self,
        asked: &Request,
        way: Constrain,
        received: &Received,
        began: Instant,
        seed: u64,
    ) -> Result<Exchange, ProviderError> {
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        let told = match W::told(received) {
            Ok(told) => Ok(told.without_thoughts()),
            Err(Ended::Outcome(outcome)) => Err(outcome),
            Err(Ended::ProviderError(trouble)) => return Err(self.line.scrubbed(trouble)),
        };
        let said = told.as_ref().ok().and_then(|told| told.text.as_deref()).unwrap_or_default();
        let usage = match told.as_ref().ok().and_then(|told| told.usage) {
            Some(usage) => plausible(usage, asked, said, self.most(asked)),
            // A successful answer was counted there: unreported usage is estimated from above.
            None if received.is_answer() => Usage { estimated: true, ..self.most(asked) },
            None => Usage::default(),
        };
        let reasoning = told.as_ref().ok().and_then(|told| told.reasoning.clone());
        let reasoning = reasoning.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let outcome = match (told, way, &asked.response_format) {
            (Err(outcome), ..) => outcome,
            (Ok(told), Constrain::Logprobs, ResponseFormat::Choice(options)) if told.is_said() => {
                let temperature = asked.settings.temperature.or(self.settings.temperature);
                chosen(options, &told.alternatives, temperature, asked, seed)
            }
            (Ok(told), ..) => told.outcome(&asked.response_format, &received.body),
        };
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage }, reasoning })
    }

    /// A request in this mode.
    pub(super) fn put<'a>(&'a self, asked: &'a Request, way: Constrain) -> Question<'a> {
        let mut question = self.question(asked);
        match (way, &asked.response_format) {
            (Constrain::Tools, ResponseFormat::Calls(tools)) => {
                question.tools = tools.clone();
                question.turns = asked.messages.iter().map(|message| Turn::of(message, true)).collect();
            }
            (Constrain::Choice, ResponseFormat::Choice(options)) => {
                question.held = Some(Held::To(options.clone()));
                question.add(listed(options));
            }
            (Constrain::Grammar, ResponseFormat::Choice(options)) => {
                question.held = Some(Held::in_grammar(options));
                question.add(listed(options));
            }
            (Constrain::Logprobs, ResponseFormat::Choice(options)) => {
                question.held = Some(Held::Letters);
                question.longest = 1;
                question.add(in_letters(options));
            }
            (Constrain::Words, response_format) => {
                if let Some(words) = in_words(response_format) {
                    question.add(words);
                }
            }
            (_, response_format) => {
                question.schema = self.forms.of(response_format, W::bounds(question.model)).map(|form| form.schema)
            }
        }
        question
    }

    /// Sends one request, and returns the constraint mode used. If a server refuses the mode, the request is to be sent again: once more
    /// in the same mode, since the refusal may be accidental, and then in the next one.
    async fn ask(&self, effect: &Effect) -> Result<(Received, Constrain), ProviderError> {
        let asked = &effect.request;
        let model = self.short(&asked.model);
        let attempt = self.attempt(effect);
        let ways = self.ways(asked)?;
        let way = ways.iter().find(|way| !attempt.refused.contains(way)).copied();
        let Some(way) = way else {
            return Err(ProviderError::Never { why: format!("there is no way to ask `{}` for that", asked.model) });
        };
        let question = self.put(asked, way);
        agrees::<W>(&question)?;
        let body = W::body(&question);
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
                "{} refuses a request for `{model}` (status {}): {said}; the request is sent once more",
                received.url, received.status
            );
            self.attempts().insert(attempted(effect), attempt);
            return Err(ProviderError::Anew { why: self.line.hidden(why) });
        }
        if asked.settings.constrain == Some(way) && way != Constrain::Words && names_it {
            let why = format!(
                "{} does not accept `constrain: {}`: leave it out, or set another value. It says: {said}",
                received.url,
                way.name(),
            );
            return Err(ProviderError::Fatal { why: self.line.hidden(why) });
        }
        if last {
            // Nothing indicates that it was the form: report the first refusal.
            return Ok(match attempt.first {
                Some((first, by, false)) => (first, by),
                _ => (received, way),
            });
        }
        attempt.doubted = false;
        attempt.refused.push(way);
        attempt.first.get_or_insert((received, way, names_it));
        self.attempts().insert(attempted(effect), attempt);
        // A resumed run has not probed the capabilities.
        if W::WAYS.contains(&Constrain::Choice) && !self.learnt().contains_key(model) {
            self.probe(model).await;
        }
        let why =
            format!("`{model}` does not accept `constrain: {}` for this question; another way is tried", way.name());
        Err(ProviderError::Anew { why })
    }

    /// Sends one request. An unavailable server is skipped; if all were, the last answer counts.
    async fn send(
        &self,
        effect: &Effect,
        mut attempt: Attempt,
        path: &[String],
        model: &str,
        body: &impl Serialize,
    ) -> Result<(Received, Attempt), ProviderError> {
        let trouble = match self.line.send(path, model, Some(body)).await {
            Sent::Received(received) => return Ok((received, attempt)),
            Sent::ProviderError(trouble) => trouble,
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
                    (false, Ok(Received { url, status, .. })) => ProviderError::Anew {
                        why: format!("{url} does not serve the request (status {status}); the next address is used"),
                    },
                    (false, Err(trouble)) => {
                        ProviderError::Anew { why: format!("{trouble}; the next address is used") }
                    }
                }
            }
        };
        if attempt.is_under_way() {
            self.attempts().insert(attempted(effect), attempt);
        }
        Err(trouble)
    }

    /// Records that a request was answered in this mode after others were refused.
    fn learn(&self, model: &str, way: Constrain, attempt: &Attempt) {
        let mut refusals = self.refusals();
        if attempt.refused.is_empty() && !refusals.contains_key(model) {
            return;
        }
        let ways = refusals.entry(model.to_owned()).or_default();
        // A mode that was retried and accepted is no longer refused.
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

    /// Sends a chat request.
    async fn converse(&self, effect: &Effect, began: Instant, seed: u64) -> Result<Exchange, ProviderError> {
        let asked = &effect.request;
        let (received, way) = self.ask(effect).await?;
        self.note_limits(asked, &received);
        self.exchange(asked, way, &received, began, seed)
    }

    /// Requests the embedding of a request's text.
    async fn embed(&self, effect: &Effect, began: Instant) -> Result<Exchange, ProviderError> {
        let asked = &effect.request;
        let Some(wire) = W::embedding() else {
            return Err(ProviderError::Fatal { why: no_vectors(W::HOME.name, &asked.model) });
        };
        let model = self.short(&asked.model);
        let body = wire.body(model, &text_of(asked));
        let attempt = self.attempt(effect);
        let (received, _) = self.send(effect, attempt, &wire.path(model), model, &body).await?;
        self.note_limits(asked, &received);
        let (outcome, usage) = match wire.vector(&received) {
            Ok((vector, usage)) => (embedded(vector), usage),
            Err(Ended::Outcome(outcome)) => (outcome, None),
            Err(Ended::ProviderError(trouble)) => return Err(self.line.scrubbed(trouble)),
        };
        // Unreported usage is estimated from above.
        let most = self.most(asked);
        let usage = usage.map_or(Usage { estimated: true, ..most }, |usage| plausible(usage, asked, "", most));
        let latency_ms = began.elapsed().as_secs_f64() * 1e3;
        Ok(Exchange { outcome, usage: Usage { latency_ms, ..usage }, reasoning: None })
    }

    /// Keeps a server's reported limits for the run.
    fn note_limits(&self, asked: &Request, received: &Received) {
        if let Some(limits) = received.limits() {
            self.limits_told().insert(self.short(&asked.model).to_owned(), limits);
        }
    }

    /// Records that a server refuses a constraint mode for a model.
    pub(super) fn refuses(&self, model: &str, way: Constrain, why: String) {
        let refusal = Refusal { why, since: 0, patience: TRIED_AGAIN.0 };
        self.refusals().entry(model.to_owned()).or_default().insert(way, refusal);
    }

    fn refusals(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<Constrain, Refusal>>> {
        // The guarded data is valid even after a panic.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<Attempted, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the progress of a request.
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
        // Valid even after a panic, too.
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
        self.check_name(model)?;
        self.line.open().map(|_| ()).map_err(|why| format!("`{model}`: {why}"))
    }

    fn check_name(&self, model: &str) -> Result<(), String> {
        if self.short(model).trim().is_empty() {
            return Err(format!(
                "`{model}` names no model: write the name that the server uses, for instance `{}`",
                W::HOME.model
            ));
        }
        Ok(())
    }

    fn makes_vectors(&self, model: &str) -> Result<(), String> {
        W::embedding().map(|_| ()).ok_or_else(|| no_vectors(W::HOME.name, model))
    }

    fn most(&self, request: &Request) -> Usage {
        // A token has at least one byte. Includes the schema, and what a server adds around a message.
        let messages: usize = request.messages.iter().map(|message| message.size() + 32).sum();
        // In words, a form is longer than in any other mode.
        let form = self.forms.of(&request.response_format, W::bounds(self.short(&request.model)));
        let form = form.map_or(0, |form| form.in_words + 32);
        let tokens_out = if request.response_format == ResponseFormat::Vector { 0 } else { self.longest(request) };
        Usage { tokens_in: (messages + form) as u64, tokens_out, ..Usage::default() }
    }

    /// Wires report only tokens.
    fn tells_costs(&self) -> bool {
        false
    }

    /// List prices apply at the provider's own address; prices of other servers are unknown.
    fn list_price(&self, model: &str) -> Option<Price> {
        let named = format!("{}/{}", W::HOME.listed_as, self.short(model));
        self.line.is_own().then(|| prices::listed(&named)).flatten()
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
            // A server without a usable answer may still answer requests; errors will show there.
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
            let ended = match asked.response_format {
                ResponseFormat::Vector => self.embed(effect, began).await,
                _ => self.converse(effect, began, seed).await,
            };
            self.line.scrubbed_end(ended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_kernel::ask::{ChatMessage, Role};

    #[test]
    fn tokens_that_are_not_told_are_counted_at_the_most() {
        let messages = vec![ChatMessage::text(Role::User, "x".repeat(800))];
        let asked = Request::new("openai/m", messages, ResponseFormat::Text);
        let most = Usage { tokens_in: 900, tokens_out: 500, ..Usage::default() };
        let usage = |tokens_in, tokens_out| Usage { tokens_in, tokens_out, ..Usage::default() };
        let counted = |told: Usage, reply: &str| {
            let usage = plausible(told, &asked, reply, most);
            (usage.tokens_in, usage.tokens_out, usage.estimated)
        };
        assert_eq!(counted(usage(210, 3), "a reply"), (210, 3, false));
        assert_eq!(counted(usage(0, 0), "a reply"), (900, 500, true));
        assert_eq!(counted(usage(210, 0), "a reply"), (210, 500, true));
        // An empty reply uses no tokens.
        assert_eq!(counted(usage(210, 0), ""), (210, 0, false));
        // Fewer than possible for any text of that length.
        assert_eq!(counted(usage(1, 1), &"y".repeat(400)), (900, 500, true));
        // A count above the estimated maximum is accepted.
        assert_eq!(counted(usage(2_000, 700), "a reply"), (2_000, 700, false));
    }
}
