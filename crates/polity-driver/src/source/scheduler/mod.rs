//! The scheduler of a run, shared by all its agents: the order of requests, the number and rate of calls per model, shared answers,
//! retries, and outages. It uses no socket and never waits: [`super::calling`] does, and passes it the time (of a monotonic clock).

mod call;
mod queue;
mod rate_limiter;
mod shared;

pub use queue::Schedule;
pub use rate_limiter::Declared;
pub use shared::SharedLimits;

use super::cache::Key;
use super::{Broken, failed};
pub(super) use call::Call;
use call::{Question, Tries};
use polity_kernel::ask::{Answer, Effect, EffectId, Request, Usage};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use polity_models::models::{Exchange, RateLimits};
use queue::Queue;
use rate_limiter::RateLimiter;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a request is retried by default while its provider fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);
/// Tries of a request to a model that has not answered yet: a wrong address shows soon.
const FIRST_TRIES: u32 = 5;
/// Wait after the first failed try; doubled after each, up to a maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Consecutive failed tries that count as an outage: waiting requests are retried at once after the next answer.
const OUTAGE: u32 = 3;
/// Average characters per token; actual counts come with the answers.
const LETTERS: f64 = 4.0;

/// Limits on a run's calls as a whole.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Maximum calls in flight; at least one.
    pub connections: usize,
    /// Limits of every model, besides those reported by its provider.
    pub declared: Declared,
    /// The runs that share these limits.
    pub shared: Arc<SharedLimits>,
    /// The order of requests.
    pub schedule: Schedule,
    /// How long a request is retried while its provider fails. `None`: [`PATIENCE`], and only [`FIRST_TRIES`] tries as long as the model
    /// has answered nothing.
    pub patience: Option<Duration>,
}

/// The queue of one model.
struct ModelQueue {
    rate_limiter: RateLimiter,
    queue: Queue,
    /// Requests by the time of their next try.
    pausing: BTreeMap<(Instant, u64), Call>,
    /// Whether requests are gathered here to be taken together.
    batched: bool,
    /// Requests in progress.
    asking: usize,
    /// Completed exchanges.
    answered: u64,
    /// Whether a request waits that has failed [`OUTAGE`] times in a row.
    outage: bool,
}

impl ModelQueue {
    /// When the last retry is due.
    fn all_due(&self) -> Option<Instant> {
        self.pausing.last_key_value().map(|((due, _), _)| *due)
    }
}

/// What follows a failed try.
pub(super) enum After {
    /// A retry when it is due, if the budget allows it.
    Again,
    /// Its provider failed for longer than the run's patience: the run stops, and can be resumed.
    Lost(String),
}

/// See the module docs.
pub(super) struct Scheduler {
    rules: Rules,
    model_queues: Vec<ModelQueue>,
    /// The index of each model's queue.
    by_model: BTreeMap<String, usize>,
    /// The model queue whose turn it is.
    turn: usize,
    asking: usize,
    /// Excludes gathered requests.
    pausing: usize,
    count: u64,
    /// The followers of each request in progress that may be shared.
    flights: BTreeMap<Key, Vec<Effect>>,
    following: usize,
    /// Tries of requests returned as broken that may come back, and when they may be retried.
    tried: BTreeMap<EffectId, (Tries, Instant)>,
    broken: Vec<Broken>,
    /// Completed exchanges.
    answered: u64,
}

/// Approximate tokens of a request: characters over four.
fn tokens(request: &Request) -> f64 {
    let letters: usize = request.messages.iter().map(|message| message.size()).sum();
    letters as f64 / LETTERS
}

impl Scheduler {
    pub(super) fn new(rules: Rules) -> Self {
        Scheduler {
            rules: Rules {
                connections: match rules.schedule {
                    Schedule::None => usize::MAX,
                    _ => rules.connections.max(1),
                },
                ..rules
            },
            model_queues: Vec::new(),
            by_model: BTreeMap::new(),
            turn: 0,
            asking: 0,
            pausing: 0,
            count: 0,
            flights: BTreeMap::new(),
            following: 0,
            tried: BTreeMap::new(),
            broken: Vec::new(),
            answered: 0,
        }
    }

    fn model_queue(&mut self, model: &str) -> usize {
        if let Some(model_queue) = self.by_model.get(model) {
            return *model_queue;
        }
        let model_queue = ModelQueue {
            rate_limiter: match self.rules.schedule {
                Schedule::None => RateLimiter::open(),
                _ => RateLimiter::new(self.rules.connections, model, self.rules.declared, &self.rules.shared),
            },
            queue: Queue::new(self.rules.schedule),
            pausing: BTreeMap::new(),
            batched: false,
            asking: 0,
            answered: 0,
            outage: false,
        };
        self.model_queues.push(model_queue);
        self.by_model.insert(model.to_owned(), self.model_queues.len() - 1);
        self.model_queues.len() - 1
    }

    /// Requests from here on belong together: those that begin alike are sent one after the other.
    pub(super) fn batch(&mut self) {
        self.model_queues.iter_mut().for_each(|model_queue| model_queue.queue.batch());
    }

    /// Requests to this model are gathered from here on, and taken together.
    pub(super) fn gathers(&mut self, model: &str) {
        let model_queue = self.model_queue(model);
        if let Some(model_queue) = self.model_queues.get_mut(model_queue) {
            model_queue.batched = true;
        }
    }

    /// Adds a request; with a key it shares the answer of one in progress with the same key.
    pub(super) fn begin(&mut self, effect: Effect, key: Option<Key>, rank: i32, now: Instant) {
        let tried = self.tried.get(&effect.id).copied();
        let Some(call) = self.enter(effect, key, rank, now) else { return };
        match (tried, self.model_queues.get_mut(call.model_queue)) {
            (Some((_, due)), _) => self.pause(due, call),
            (None, Some(model_queue)) => model_queue.queue.push(call),
            (None, None) => {}
        }
    }

    /// Adds a request already sent in a batch by an earlier process: it is in progress. `None` if it shares an answer.
    pub(super) fn begin_sent(&mut self, effect: Effect, key: Option<Key>, now: Instant) -> Option<Call> {
        let mut call = self.enter(effect, key, 0, now)?;
        call.batched = true;
        Some(call)
    }

    /// Requeues a request that turned out not to have been sent, as if it had just arrived.
    pub(super) fn unsent(&mut self, mut call: Call) {
        call.batched = false;
        if let Some(model_queue) = self.model_queues.get_mut(call.model_queue) {
            model_queue.queue.push(call);
        }
    }

    fn enter(&mut self, effect: Effect, key: Option<Key>, rank: i32, now: Instant) -> Option<Call> {
        if let Some(followers) = key.as_ref().and_then(|key| self.flights.get_mut(key)) {
            self.tried.remove(&effect.id);
            followers.push(effect);
            self.following += 1;
            return None;
        }
        if let Some(key) = &key {
            self.flights.insert(key.clone(), Vec::new());
        }
        let model_queue = self.model_queue(&effect.request.model);
        let tokens = tokens(&effect.request);
        let tried = self.tried.remove(&effect.id);
        let fresh = Tries { answered: self.answered, ..Tries::default() };
        let tries = tried.map_or(fresh, |(tries, _)| tries);
        let (number, batched, since) = (0, false, tries.came.unwrap_or(now));
        Some(Box::new(Question { effect, key, rank, model_queue, tokens, since, sent: now, number, batched, tries }))
    }

    fn pause(&mut self, due: Instant, call: Call) {
        self.count += 1;
        if let Some(model_queue) = self.model_queues.get_mut(call.model_queue) {
            self.pausing += usize::from(!model_queue.batched);
            model_queue.pausing.insert((due, self.count), call);
        }
    }

    /// The model queues from which a request may be sent, in order.
    fn served(&self) -> impl Iterator<Item = usize> + use<> {
        let n = self.model_queues.len();
        let (first, count) = match self.rules.schedule {
            Schedule::ByModel => self.loaded().map_or((0, 0), |i| (i, 1)),
            _ => (self.turn, n),
        };
        (0..count).map(move |i| (first + i) % n)
    }

    /// The queue of the model that a server with one model is asked for: the last one as long as it has requests to send or in progress,
    /// then the next one that has. Requests that wait for a retry do not delay other models.
    fn loaded(&self) -> Option<usize> {
        let n = self.model_queues.len();
        let direct = || {
            let in_turn = (0..n).map(|i| (self.turn + i) % n);
            in_turn.filter_map(|i| Some((i, self.model_queues.get(i).filter(|queue| !queue.batched)?)))
        };
        let busy = direct().find(|(_, queue)| queue.asking + queue.queue.len() > 0).map(|(i, _)| i);
        let due = |queue: &ModelQueue| queue.pausing.first_key_value().map(|((due, _), _)| *due);
        busy.or_else(|| direct().filter_map(|(i, queue)| Some((due(queue)?, i))).min().map(|(_, i)| i))
    }

    /// The next request to send, which is in progress from then on. One that waits for a retry keeps its place: a failing server must not
    /// get more calls than before.
    pub(super) fn next(&mut self, now: Instant) -> Option<Call> {
        let Rules { connections, .. } = self.rules;
        if self.asking >= connections {
            return None;
        }
        let fresh = self.asking + self.pausing < connections;
        for i in self.served() {
            let Some(model_queue) = self.model_queues.get_mut(i).filter(|model_queue| !model_queue.batched) else {
                continue;
            };
            let ModelQueue { rate_limiter, queue, pausing, asking, .. } = model_queue;
            let again = pausing.first_key_value().filter(|((due, _), _)| *due <= now).map(|(_, call)| call.tokens);
            let Some(tokens) = again.or_else(|| queue.first().filter(|_| fresh).map(|call| call.tokens)) else {
                continue;
            };
            if rate_limiter.room(tokens, now).is_err() {
                continue;
            }
            let call = if again.is_some() { pausing.pop_first().map(|(_, call)| call) } else { queue.pop() };
            let Some(mut call) = call else { continue };
            self.pausing -= usize::from(again.is_some());
            call.number = rate_limiter.begin(tokens, now);
            (call.sent, call.batched) = (now, false);
            *asking += 1;
            self.asking += 1;
            self.turn = if self.rules.schedule == Schedule::ByModel { i } else { i + 1 };
            return Some(call);
        }
        None
    }

    /// When a request may become due although nothing has arrived.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Instant> {
        let Rules { connections, .. } = self.rules;
        if self.asking >= connections {
            return None;
        }
        let (fresh, served) = (self.asking + self.pausing < connections, self.served());
        let due = |ModelQueue { rate_limiter, queue, pausing, .. }: &mut ModelQueue| {
            let again = pausing.first_key_value().map(|((due, _), call)| (*due, call.tokens));
            let first = queue.first().filter(|_| fresh).map(|call| (now, call.tokens));
            let (due, tokens) = [again, first].into_iter().flatten().min_by_key(|(due, _)| *due)?;
            match rate_limiter.room(tokens, now) {
                Ok(()) => Some(due),
                Err(Some(wait)) => Some(due.max(now + wait)),
                // Something is in progress, and that will end.
                Err(None) => None,
            }
        };
        let direct = |i: usize| {
            let model_queue: &mut ModelQueue = self.model_queues.get_mut(i)?;
            if model_queue.batched { None } else { due(model_queue) }
        };
        served.filter_map(direct).min()
    }

    /// Gathered requests that may be sent now, by model, each with those that share its answer; they are in progress from then on.
    /// Retries wait for the last of their kind, so that they go together.
    pub(super) fn gathered(&mut self, now: Instant) -> Vec<Vec<(Call, Vec<EffectId>)>> {
        let mut all = Vec::new();
        let ready =
            |model_queue: &&mut ModelQueue| model_queue.batched && model_queue.all_due().is_none_or(|due| due <= now);
        for model_queue in self.model_queues.iter_mut().filter(ready) {
            let share = |call: &Call| call.key.as_ref().and_then(|key| self.flights.get(key));
            let with = |mut call: Call| {
                let others = share(&call).into_iter().flatten().map(|effect| effect.id).collect();
                (call.sent, call.batched) = (now, true);
                (call, others)
            };
            let again = std::mem::take(&mut model_queue.pausing).into_values();
            let calls: Vec<_> = model_queue.queue.drain().chain(again).map(with).collect();
            if !calls.is_empty() {
                all.push(calls);
            }
        }
        all
    }

    /// When more gathered requests become due although nothing has arrived.
    pub(super) fn gathered_due(&self) -> Option<Instant> {
        self.model_queues.iter().filter(|model_queue| model_queue.batched).filter_map(ModelQueue::all_due).min()
    }

    /// Drops requests that stay in their batch, and those that share them.
    pub(super) fn left(&mut self, calls: Vec<Call>) -> Vec<EffectId> {
        let mut left = Vec::with_capacity(calls.len());
        for call in calls {
            left.push(call.effect.id);
            let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
            self.following -= followers.len();
            left.extend(followers.into_iter().map(|effect| effect.id));
        }
        left
    }

    /// Marks a call as no longer in progress.
    fn ended(&mut self, call: &Call) -> Option<&mut RateLimiter> {
        if call.batched {
            return None;
        }
        self.asking = self.asking.saturating_sub(1);
        let model_queue = self.model_queues.get_mut(call.model_queue)?;
        model_queue.asking = model_queue.asking.saturating_sub(1);
        model_queue.rate_limiter.end();
        Some(&mut model_queue.rate_limiter)
    }

    /// Takes a provider's reported limits on a model.
    pub(super) fn told(&mut self, model: &str, told: RateLimits, now: Instant) {
        if let Some(model_queue) =
            self.by_model.get(model).and_then(|model_queue| self.model_queues.get_mut(*model_queue))
        {
            model_queue.rate_limiter.told(told, now);
        }
    }

    /// Handles a rejected call (too many at once, or too fast); returns what follows.
    pub(super) fn turned_away(&mut self, call: Call, why: &str, after_ms: Option<u64>, now: Instant) -> After {
        if let Some(model_queue) = self.model_queues.get_mut(call.model_queue).filter(|_| !call.batched) {
            model_queue.rate_limiter.turned_away(call.number);
        }
        // Without a schedule, a request does not know of others.
        let waits = after_ms.is_some() || !matches!(self.rules.schedule, Schedule::None);
        self.again(call, why, after_ms, None, now, waits)
    }

    /// Sends the same request again at once, in another form; the provider is not to blame.
    pub(super) fn anew(&mut self, mut call: Call, now: Instant) {
        self.ended(&call);
        call.tries.failed += 1;
        call.tries.answered = self.answered;
        self.hand_out(call, None, now);
    }

    /// Completes an exchange: returns the answers to the request and to those that share it.
    pub(super) fn answered(&mut self, call: Call, exchange: Exchange, now: Instant) -> Vec<Answer> {
        self.answered += 1;
        self.recovered(call.model_queue, now);
        if let Some(rate_limiter) = self.ended(&call) {
            rate_limiter.answered(exchange.usage.tokens_out as f64);
        }
        let waited_ms = call.sent.duration_since(call.since).as_secs_f64() * 1e3;
        let usage = Usage { waited_ms, retries: call.tries.failed, ..exchange.usage };
        self.settle(call, |effect, shared| Answer {
            id: effect.id,
            request: effect.request,
            outcome: exchange.outcome.clone(),
            usage: if shared { Usage { waited_ms: 0.0, retries: 0, shared, ..usage } } else { usage },
            reasoning: exchange.reasoning.clone(),
        })
    }

    /// Ends a request that cannot be answered, and those of the same words.
    pub(super) fn never(&mut self, call: Call, why: &str) -> Vec<Answer> {
        self.ended(&call);
        self.given_up(call, why)
    }

    fn given_up(&mut self, call: Call, why: &str) -> Vec<Answer> {
        self.settle(call, |effect, shared| failed(effect, why.to_owned(), shared))
    }

    fn settle(&mut self, call: Call, answer: impl Fn(Effect, bool) -> Answer) -> Vec<Answer> {
        let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
        self.following -= followers.len();
        let mut answers = vec![answer(call.effect, false)];
        answers.extend(followers.into_iter().map(|effect| answer(effect, true)));
        answers
    }

    /// After an answer: requests that wait after an outage are retried at once.
    fn recovered(&mut self, model_queue: usize, now: Instant) {
        let Some(model_queue) = self.model_queues.get_mut(model_queue) else { return };
        model_queue.answered += 1;
        // Without a schedule, a request does not know of others.
        if !std::mem::take(&mut model_queue.outage) || matches!(self.rules.schedule, Schedule::None) {
            return;
        }
        let waits = |call: &Call| call.tries.streak >= OUTAGE && !call.tries.told;
        let moved: Vec<_> = model_queue.pausing.extract_if(.., |_, call| waits(call)).collect();
        model_queue.pausing.extend(moved.into_iter().map(|((due, n), call)| ((due.min(now), n), call)));
        for (_, due) in self.tried.values_mut().filter(|(tries, _)| tries.streak >= OUTAGE && !tries.told) {
            *due = now.min(*due);
        }
    }

    /// A try failed and may be repeated. `charged`: its maximum cost, if it may have cost anything.
    pub(super) fn retry(
        &mut self,
        call: Call,
        why: &str,
        after_ms: Option<u64>,
        charged: Option<Usage>,
        now: Instant,
    ) -> After {
        self.again(call, why, after_ms, charged, now, after_ms.is_some())
    }

    /// `waits`: it was told to wait, which is not a failure as long as others are answered.
    fn again(
        &mut self,
        mut call: Call,
        why: &str,
        after_ms: Option<u64>,
        charged: Option<Usage>,
        now: Instant,
        waits: bool,
    ) -> After {
        self.ended(&call);
        // A wait of zero, or until a past time, is ignored.
        let after_ms = after_ms.filter(|ms| *ms > 0);
        let tries = &mut call.tries;
        tries.failed += 1;
        // A request told to wait while others are answered only waits its turn.
        match waits && tries.answered < self.answered {
            true => (tries.streak, tries.since) = (0, None),
            false => tries.streak += 1,
        }
        tries.answered = self.answered;
        tries.told = after_ms.is_some();
        let since = *tries.since.get_or_insert(now);
        let pause = pause(call.effect.id, tries.failed, tries.streak, after_ms);
        let model_queue = self.model_queues.get_mut(call.model_queue);
        let unheard = model_queue.as_ref().is_some_and(|model_queue| model_queue.answered == 0);
        if let Some(model_queue) = model_queue {
            model_queue.outage |= call.tries.streak >= OUTAGE;
        }
        let late = now + pause - since > self.rules.patience.unwrap_or(PATIENCE);
        if late || self.rules.patience.is_none() && unheard && call.tries.streak >= FIRST_TRIES {
            let tried = call.tries.failed;
            let time = now.duration_since(since).as_secs_f64();
            self.broken.push(Broken { effect: call.effect, charged, again: false });
            return After::Lost(format!("{tried} tries failed within {time:.0} s; the last: {why}"));
        }
        self.hand_out(call, charged, now + pause);
        After::Again
    }

    /// Returns a request without an answer; the caller decides on another try. Those that share it continue without it.
    fn hand_out(&mut self, call: Call, charged: Option<Usage>, due: Instant) {
        let Question { effect, key, rank, model_queue, tokens, since, sent, tries, .. } = *call;
        let (number, batched) = (0, false);
        if let Some(key) = key
            && let Some(mut followers) = self.flights.remove(&key)
            && !followers.is_empty()
        {
            let leader = followers.remove(0);
            self.following -= 1;
            self.flights.insert(key.clone(), followers);
            let key = Some(key);
            let leader =
                Question { effect: leader, key, rank, model_queue, tokens, since, sent, number, batched, tries };
            self.pause(due, Box::new(leader));
        }
        self.tried.insert(effect.id, (Tries { came: Some(since), ..tries }, due));
        self.broken.push(Broken { effect, charged, again: true });
    }

    /// Requests without an answer since the last call.
    pub(super) fn take_broken(&mut self) -> Vec<Broken> {
        std::mem::take(&mut self.broken)
    }

    /// Sets the maximum calls in flight; none during a pause.
    pub(super) fn connections(&mut self, most: usize) {
        if !matches!(self.rules.schedule, Schedule::None) || most == 0 {
            self.rules.connections = most;
        } else {
            self.rules.connections = usize::MAX;
        }
        if most > 0 {
            self.model_queues.iter_mut().for_each(|model_queue| model_queue.rate_limiter.most(most));
        }
    }

    /// Returns requests that were never sent, with those that share them.
    pub(super) fn take_back(&mut self) -> Vec<Effect> {
        let mut back = Vec::new();
        for call in self.model_queues.iter_mut().flat_map(|model_queue| model_queue.queue.drain()) {
            let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
            self.following -= followers.len();
            back.push(call.effect);
            back.extend(followers);
        }
        back
    }

    /// Drops everything not in progress.
    pub(super) fn drop_waiting(&mut self) -> Vec<EffectId> {
        let waits = |model_queue: &mut ModelQueue| {
            let pausing = std::mem::take(&mut model_queue.pausing).into_values();
            model_queue.queue.drain().chain(pausing).collect::<Vec<_>>()
        };
        let waiting: Vec<Call> = self.model_queues.iter_mut().flat_map(waits).collect();
        self.pausing = 0;
        self.broken.iter_mut().for_each(|broken| broken.again = false);
        self.left(waiting)
    }

    /// All requests here that are not in progress, including those that share an answer.
    pub(super) fn held(&self) -> impl Iterator<Item = EffectId> {
        let waiting = self
            .model_queues
            .iter()
            .flat_map(|model_queue| model_queue.queue.iter().chain(model_queue.pausing.values()));
        let followers = self.flights.values().flatten().map(|effect| effect.id);
        waiting.map(|call| call.effect.id).chain(followers)
    }

    /// Number of requests in progress.
    pub(super) fn asking(&self) -> usize {
        self.asking
    }

    /// Number of requests that wait for a connection.
    pub(super) fn queued(&self) -> usize {
        self.model_queues.iter().map(|model_queue| model_queue.queue.len()).sum()
    }

    /// Of these, those not gathered.
    pub(super) fn waiting(&self) -> usize {
        self.model_queues
            .iter()
            .filter(|model_queue| !model_queue.batched)
            .map(|model_queue| model_queue.queue.len())
            .sum()
    }

    /// Number of requests that wait for a retry.
    pub(super) fn pausing(&self) -> usize {
        self.model_queues.iter().map(|model_queue| model_queue.pausing.len()).sum()
    }

    /// The rate limits that requests wait for, in words.
    pub(super) fn limits(&mut self, now: Instant) -> Vec<String> {
        let limit = |(model, model_queue): (&String, &usize)| {
            let model_queue = self
                .model_queues
                .get_mut(*model_queue)
                .filter(|model_queue| model_queue.queue.len() + model_queue.pausing.len() > 0)?;
            model_queue.rate_limiter.limited(now).map(|limit| format!("{limit} for {model}"))
        };
        self.by_model.iter().filter_map(limit).collect()
    }

    /// Number of requests that wait for the answer to another.
    pub(super) fn following(&self) -> usize {
        self.following
    }
}

/// The wait before the next try: doubled with every consecutive try, and drawn between half and all of that, so that requests that failed
/// together do not retry together. The server's requested wait is respected, and extended if it has proven too short. A function of the
/// request and its tries alone.
fn pause(id: EffectId, failed: u32, streak: u32, after_ms: Option<u64>) -> Duration {
    let key = RowHash::new(Kind::Request, id.round)
        .words(u64::from(id.item) << 32 | u64::from(id.actor), u64::from(id.n) << 32 | u64::from(failed));
    let jitter = Draws::new(key.finish() as u64, Stream::Driver, 0, 0).unit();
    let whole = FIRST_PAUSE.saturating_mul(1u32 << (streak.clamp(1, 16) - 1)).min(LONGEST_PAUSE);
    let own = whole.mul_f64(0.5 + 0.5 * jitter);
    match after_ms {
        Some(ms) => {
            let asked = Duration::from_millis(ms).mul_f64(1.0 + 0.25 * jitter);
            if streak > 2 { asked.max(own) } else { asked }
        }
        None => own,
    }
}

#[cfg(test)]
mod tests;
