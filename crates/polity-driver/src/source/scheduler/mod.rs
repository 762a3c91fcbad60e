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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::{Asker, Outcome, ResponseFormat, Value};

    fn open(connections: usize) -> Scheduler {
        Scheduler::new(Rules { connections: 4 * connections, ..Rules::default() })
    }

    fn effect(actor: u32) -> Effect {
        let request = Request::new("openai/m", Vec::new(), ResponseFormat::Text);
        Effect {
            id: EffectId { item: 0, round: 0, actor, asker: Asker::Agent, n: 0 },
            request,
            hidden: None,
            default: None,
        }
    }

    fn key() -> Option<Key> {
        Key::of("here", &effect(0).request)
    }

    fn exchange() -> Exchange {
        let outcome = Outcome::Reply { value: Value::Text("x".into()), raw: "x".into(), repaired: false };
        Exchange { outcome, usage: Usage { cost_usd: 0.5, ..Usage::default() }, reasoning: None }
    }

    fn who(call: &Call) -> u32 {
        call.effect.id.actor
    }

    #[test]
    fn the_same_question_is_asked_once_while_it_is_under_way() {
        let now = Instant::now();
        let mut scheduler = open(10);
        (0..5).for_each(|actor| scheduler.begin(effect(actor), key(), 0, now));
        scheduler.begin(effect(9), None, 0, now);
        let first = scheduler.next(now).unwrap();
        let alone = scheduler.next(now).unwrap();
        assert!(scheduler.next(now).is_none());
        assert_eq!((who(&first), who(&alone), scheduler.following()), (0, 9, 4));
        let answers = scheduler.answered(first, exchange(), now);
        assert_eq!(
            answers.iter().map(|a| (a.id.actor, a.usage.shared)).collect::<Vec<_>>(),
            [(0, false), (1, true), (2, true), (3, true), (4, true)]
        );
        // Their would-be cost is reported, for the budget.
        assert!(answers.iter().all(|answer| answer.usage.cost_usd == 0.5) && scheduler.following() == 0);
        // Afterwards it is sent again.
        scheduler.begin(effect(7), key(), 0, now);
        assert_eq!(who(&scheduler.next(now).unwrap()), 7);
    }

    /// Retries them, as a budget that allows it does.
    fn return_all(scheduler: &mut Scheduler, now: Instant) -> Vec<Broken> {
        let broken = scheduler.take_broken();
        broken.iter().filter(|broken| broken.again).for_each(|b| scheduler.begin(b.effect.clone(), None, 0, now));
        broken
    }

    #[test]
    fn a_request_without_an_answer_is_handed_out_and_those_that_share_it_go_on() {
        let now = Instant::now();
        let mut scheduler = open(10);
        (0..3).for_each(|actor| scheduler.begin(effect(actor), key(), 0, now));
        let first = scheduler.next(now).unwrap();
        let most = Usage { cost_usd: 2.0, ..Usage::default() };
        assert!(matches!(scheduler.retry(first, "cut", None, Some(most), now), After::Again));
        let broken = scheduler.take_broken();
        assert_eq!((broken.len(), broken[0].charged, broken[0].effect.id.actor), (1, Some(most), 0));
        // The second is sent now, when the pause is over, and counts the tries of the first.
        assert!(scheduler.next(now).is_none());
        let due = scheduler.next_due(now).unwrap();
        let second = scheduler.next(due).unwrap();
        assert_eq!((who(&second), scheduler.following()), (1, 1));
        // The first comes back, and shares.
        scheduler.begin(broken.into_iter().next().unwrap().effect, key(), 0, now);
        assert_eq!(scheduler.following(), 2);
        let answers = scheduler.answered(second, exchange(), now);
        assert_eq!(answers.len(), 3);
        assert_eq!(answers[0].usage.retries, 1);
    }

    #[test]
    fn who_is_told_to_wait_while_others_are_answered_waits_for_its_turn() {
        let mut now = Instant::now();
        let mut scheduler = open(10);
        scheduler.begin(effect(0), None, 0, now);
        for _ in 0..1000 {
            let call = scheduler.next(now).unwrap();
            scheduler.begin(effect(1), None, 0, now);
            let other = scheduler.next(now).unwrap();
            let _ = scheduler.answered(other, exchange(), now);
            assert!(matches!(scheduler.retry(call, "429", Some(20_000), None, now), After::Again));
            assert!(return_all(&mut scheduler, now).iter().all(|broken| broken.charged.is_none()));
            let due = scheduler.next_due(now).unwrap();
            assert!(due >= now + Duration::from_secs(20) && due <= now + Duration::from_secs(25));
            now = due;
        }
    }

    /// Lets a request fail until the run is lost: tries, and the time since the first.
    fn fails(scheduler: &mut Scheduler, mut now: Instant, others: bool) -> (u32, Duration) {
        scheduler.begin(effect(0), None, 0, now);
        let began = now;
        for tries in 1..10_000 {
            let call = scheduler.next(now).unwrap();
            if others {
                scheduler.begin(effect(1), None, 0, now);
                let other = scheduler.next(now).unwrap();
                let _ = scheduler.answered(other, exchange(), now);
            }
            match scheduler.retry(call, "500", None, None, now) {
                After::Again => {
                    return_all(scheduler, now);
                    let due = scheduler.next_due(now).unwrap();
                    assert!(due - now <= LONGEST_PAUSE && due > now);
                    now = due;
                }
                After::Lost(why) => {
                    assert!(why.contains("500"), "{why}");
                    assert!(scheduler.take_broken().iter().all(|broken| !broken.again));
                    return (tries, now - began);
                }
            }
        }
        panic!("it must end");
    }

    #[test]
    fn trouble_is_waited_for_as_long_as_the_run_has_patience_and_no_longer() {
        let now = Instant::now();
        let with = |patience| Scheduler::new(Rules { connections: 40, patience, ..Rules::default() });
        // A wrong address shows soon, unless patience is set explicitly.
        assert_eq!(fails(&mut with(None), now, false).0, FIRST_TRIES);
        for patience in [90, 3600] {
            let patience = Duration::from_secs(patience);
            for others in [false, true] {
                let (tries, time) = fails(&mut with(Some(patience)), now, others);
                assert!(time <= patience && time + LONGEST_PAUSE >= patience, "{time:?} {tries}");
            }
        }
        // After a first answer an outage counts as one, however long it was quiet before.
        let mut scheduler = with(None);
        scheduler.begin(effect(7), None, 0, now);
        let call = scheduler.next(now).unwrap();
        let _ = scheduler.answered(call, exchange(), now);
        let (_, time) = fails(&mut scheduler, now + 2 * PATIENCE, false);
        assert!(time <= PATIENCE && time + LONGEST_PAUSE >= PATIENCE, "{time:?}");
    }

    #[test]
    fn when_an_outage_is_over_all_that_wait_are_tried_at_once() {
        let began = Instant::now();
        let mut now = began;
        let mut scheduler = Scheduler::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
        (0..2).for_each(|actor| scheduler.begin(effect(actor), None, 0, now));
        let mut calls: Vec<Call> = (0..2).map(|_| scheduler.next(now).unwrap()).collect();
        for _ in 0..8 {
            for call in calls.drain(..) {
                assert!(matches!(scheduler.retry(call, "refused", None, None, now), After::Again));
            }
            return_all(&mut scheduler, now);
            while calls.len() < 2 {
                now = now.max(scheduler.next_due(now).unwrap());
                calls.push(scheduler.next(now).unwrap());
            }
        }
        let last = calls.pop().unwrap();
        assert!(matches!(scheduler.retry(last, "refused", None, None, now), After::Again));
        return_all(&mut scheduler, now);
        assert!(scheduler.next_due(now).unwrap() > now + Duration::from_secs(10));
        let answers = scheduler.answered(calls.pop().unwrap(), exchange(), now);
        // It waited from its arrival until it was last sent, including all tries: more than the maximum pause.
        let (waited, all) = (answers[0].usage.waited_ms, now.duration_since(began).as_secs_f64() * 1e3);
        assert!(waited > 2.0 * LONGEST_PAUSE.as_secs_f64() * 1e3 && waited <= all, "{waited} of {all} ms");
        assert!(scheduler.next(now).is_some());
    }

    #[test]
    fn a_wait_of_nothing_says_nothing_and_one_that_was_too_short_is_not_believed_again() {
        let id = effect(3).id;
        let mut now = Instant::now();
        let mut scheduler = Scheduler::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
        scheduler.begin(effect(0), None, 0, now);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let call = scheduler.next(now).unwrap();
            assert!(matches!(scheduler.retry(call, "429", Some(0), None, now), After::Again));
            return_all(&mut scheduler, now);
            let due = scheduler.next_due(now).unwrap();
            pauses.push(due - now);
            now = due;
        }
        assert!(pauses[0] >= FIRST_PAUSE / 2 && pauses[5] >= FIRST_PAUSE * 16, "{pauses:?}");
        assert!(pause(id, 1, 1, Some(20)) < Duration::from_millis(26));
        assert!(pause(id, 5, 5, Some(20)) >= FIRST_PAUSE * 8);
    }

    #[test]
    fn pauses_are_spread_and_grow_and_are_the_same_each_time() {
        let id = |actor| effect(actor).id;
        for n in 1..12 {
            let whole = (FIRST_PAUSE * (1 << (n - 1))).min(LONGEST_PAUSE);
            let pauses: Vec<Duration> = (0..100).map(|actor| pause(id(actor), n, n, None)).collect();
            assert!(pauses.iter().all(|pause| *pause >= whole / 2 && *pause <= whole), "{n}");
            assert!(pauses.iter().collect::<std::collections::BTreeSet<_>>().len() > 90);
            assert_eq!(pauses[7], pause(id(7), n, n, None));
        }
        assert!((0..100).all(|actor| pause(id(actor), 1, 1, Some(1000)) >= Duration::from_secs(1)));
    }

    #[test]
    fn one_model_at_a_time_is_served_until_nothing_of_it_is_left() {
        let now = Instant::now();
        let to = |actor: u32, model: &str| {
            let mut effect = effect(actor);
            effect.request.model = model.into();
            effect
        };
        let by_model = Rules { connections: 12, schedule: Schedule::ByModel, ..Rules::default() };
        let mut scheduler = Scheduler::new(by_model);
        for (actor, model) in ["openai/a", "openai/b", "openai/a", "openai/b", "openai/a"].iter().enumerate() {
            scheduler.begin(to(actor as u32, model), None, 0, now);
        }
        let mut sent: Vec<Call> = std::iter::from_fn(|| scheduler.next(now)).collect();
        assert_eq!(sent.iter().map(who).collect::<Vec<_>>(), [0, 2, 4]);
        // The other model waits for the last answer, and nothing is due before.
        let last = sent.pop().unwrap();
        for call in sent {
            let _ = scheduler.answered(call, exchange(), now);
        }
        assert!(scheduler.next(now).is_none() && scheduler.next_due(now).is_none());
        // A request that waits for a retry does not delay other models.
        assert!(matches!(scheduler.retry(last, "500", None, None, now), After::Again));
        return_all(&mut scheduler, now);
        assert_eq!(scheduler.next_due(now), Some(now));
        let sent: Vec<Call> = std::iter::from_fn(|| scheduler.next(now)).collect();
        assert_eq!(sent.iter().map(who).collect::<Vec<_>>(), [1, 3]);
        for call in sent {
            let _ = scheduler.answered(call, exchange(), now);
        }
        let due = scheduler.next_due(now).unwrap();
        assert!(due > now && scheduler.next(now).is_none());
        assert_eq!(who(&scheduler.next(due).unwrap()), 4);
    }

    #[test]
    fn what_was_never_asked_is_handed_back_with_what_shares_it() {
        let now = Instant::now();
        let mut scheduler = open(1);
        scheduler.begin(effect(0), key(), 0, now);
        let asked = scheduler.next(now).unwrap();
        scheduler.begin(effect(1), key(), 0, now);
        let other = Key::of("there", &effect(2).request);
        (2..5).for_each(|actor| scheduler.begin(effect(actor), other.clone(), 0, now));
        scheduler.begin(effect(5), None, 0, now);
        let back: Vec<u32> = scheduler.take_back().iter().map(|effect| effect.id.actor).collect();
        assert_eq!((back, scheduler.queued(), scheduler.following()), (vec![2, 3, 4, 5], 0, 1));
        // Started again they are sent, but not during a pause, and calls in progress continue.
        scheduler.begin(effect(3), other, 0, now);
        scheduler.connections(0);
        assert!(scheduler.next(now).is_none() && scheduler.next_due(now).is_none());
        scheduler.connections(8);
        assert_eq!(scheduler.answered(asked, exchange(), now).len(), 2);
        assert_eq!(who(&scheduler.next(now).unwrap()), 3);
    }

    #[test]
    fn a_stop_drops_what_is_not_being_asked() {
        let now = Instant::now();
        let mut scheduler = open(10);
        scheduler.begin(effect(0), key(), 0, now);
        let asked = scheduler.next(now).unwrap();
        scheduler.begin(effect(1), key(), 0, now);
        let other = Key::of("there", &effect(2).request);
        scheduler.begin(effect(2), other.clone(), 0, now);
        scheduler.begin(effect(3), other, 0, now);
        assert_eq!((scheduler.following(), scheduler.queued()), (2, 1));
        assert_eq!(scheduler.drop_waiting().iter().map(|id| id.actor).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((scheduler.following(), scheduler.queued(), scheduler.pausing()), (1, 0, 0));
        assert_eq!(scheduler.answered(asked, exchange(), now).len(), 2);
    }
}
