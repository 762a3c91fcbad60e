//! The traffic of a run, all its agents together: whose turn it is to be asked, how many calls of a model may be under way and how fast
//! they may follow each other, who shares whose answer, when a failed try is made again, and when nobody can be asked at all. It knows no
//! socket and waits for nothing: [`super::calling`] does, and tells it the time (of a clock that is never set).

mod lane;
mod queue;

pub use lane::Declared;
pub use queue::Schedule;

use super::cache::Key;
use super::{Broken, failed};
use crate::models::{Exchange, RateLimits};
use lane::Lane;
use polity_kernel::ask::{Answer, Effect, EffectId, Request, Usage};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use queue::Queue;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a question is tried again while its provider is in trouble, unless it is said otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);
/// Tries of a question that no answer of its model has preceded: an address that is wrong shows soon.
const FIRST_TRIES: u32 = 5;
/// Wait after the first failed try; doubled after each, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// So many tries on end are an outage: what waits is tried at once when somebody is answered again.
const OUTAGE: u32 = 3;
/// Letters of a token, on the average; what was counted really is told with the answers.
const LETTERS: f64 = 4.0;

/// What a run allows its calls, all together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Calls in flight at most; at least one.
    pub connections: usize,
    /// Limits of every model, besides those that its provider tells.
    pub declared: Declared,
    /// Whose turn it is.
    pub schedule: Schedule,
    /// How long a question is tried again while its provider is in trouble. `None`: [`PATIENCE`], and only [`FIRST_TRIES`] tries as long
    /// as the model has answered nothing.
    pub patience: Option<Duration>,
}

/// A question on its way to a provider. It goes through many hands: boxed, so that it stays where it is.
pub(super) type Call = Box<Question>;

/// See [`Call`].
pub(super) struct Question {
    pub effect: Effect,
    /// Of what may share its answer.
    pub key: Option<Key>,
    /// How urgent it is, where the schedule looks at that.
    rank: i32,
    road: usize,
    /// Tokens of the request, about.
    tokens: f64,
    /// When it was asked.
    since: Instant,
    /// When it was last sent.
    sent: Instant,
    /// Which call of its lane it is.
    number: u64,
    /// Whether it is asked in a batch, and takes no connection.
    pub batched: bool,
    tries: Tries,
}

/// The way to one model.
struct Road {
    lane: Lane,
    queue: Queue,
    /// By the time at which they are tried again.
    pausing: BTreeMap<(Instant, u64), Call>,
    /// Whether questions are gathered here until they are taken together.
    batched: bool,
    /// Exchanges that came about.
    answered: u64,
    /// Whether a question waits that has failed [`OUTAGE`] times on end.
    outage: bool,
}

impl Road {
    /// When the last of what is tried again may be.
    fn all_due(&self) -> Option<Instant> {
        self.pausing.last_key_value().map(|((due, _), _)| *due)
    }
}

/// How often a question was tried.
#[derive(Clone, Copy, Default)]
struct Tries {
    /// Tries that failed.
    failed: u32,
    /// Of these, those since the last one that only had to wait for its turn.
    streak: u32,
    /// When the first of the streak failed.
    since: Option<Instant>,
    /// Exchanges of the run before the last try.
    answered: u64,
    /// Whether the server has said how long to wait.
    told: bool,
    /// When the question came.
    came: Option<Instant>,
}

/// What becomes of a try that failed.
pub(super) enum After {
    /// It is made again when its time comes, if whoever has the budget agrees.
    Again,
    /// Its provider was in trouble for longer than the run has patience: the run stops, and can be resumed.
    Lost(String),
}

/// See the module.
pub(super) struct Traffic {
    rules: Rules,
    roads: Vec<Road>,
    /// Of every model, its road.
    by_model: BTreeMap<String, usize>,
    /// The road whose turn it is.
    turn: usize,
    asking: usize,
    /// Of those that are not gathered.
    pausing: usize,
    count: u64,
    /// Of every question under way that others may share, those that do.
    flights: BTreeMap<Key, Vec<Effect>>,
    following: usize,
    /// Tries of questions that were handed out as broken and may come back, and when they may be tried again.
    tried: BTreeMap<EffectId, (Tries, Instant)>,
    broken: Vec<Broken>,
    /// Exchanges that came about.
    answered: u64,
}

/// Tokens of a request, about: letters over four.
fn tokens(request: &Request) -> f64 {
    let letters: usize = request.messages.iter().map(|message| message.size()).sum();
    letters as f64 / LETTERS
}

impl Traffic {
    pub(super) fn new(rules: Rules) -> Self {
        Traffic {
            rules: Rules {
                connections: match rules.schedule {
                    Schedule::None => usize::MAX,
                    _ => rules.connections.max(1),
                },
                ..rules
            },
            roads: Vec::new(),
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

    fn road(&mut self, model: &str, now: Instant) -> usize {
        if let Some(road) = self.by_model.get(model) {
            return *road;
        }
        let road = Road {
            lane: match self.rules.schedule {
                Schedule::None => Lane::open(now),
                _ => Lane::new(self.rules.connections, self.rules.declared, now),
            },
            queue: Queue::new(self.rules.schedule),
            pausing: BTreeMap::new(),
            batched: false,
            answered: 0,
            outage: false,
        };
        self.roads.push(road);
        self.by_model.insert(model.to_owned(), self.roads.len() - 1);
        self.roads.len() - 1
    }

    /// Questions that are put together from here on: those that begin alike are asked one after the other.
    pub(super) fn batch(&mut self) {
        self.roads.iter_mut().for_each(|road| road.queue.batch());
    }

    /// Questions of this model are gathered from here on, and taken together.
    pub(super) fn gathers(&mut self, model: &str, now: Instant) {
        let road = self.road(model, now);
        if let Some(road) = self.roads.get_mut(road) {
            road.batched = true;
        }
    }

    /// Takes a question; with a key it shares the answer of one that is under way with the same key.
    pub(super) fn begin(&mut self, effect: Effect, key: Option<Key>, rank: i32, now: Instant) {
        let tried = self.tried.get(&effect.id).copied();
        let Some(call) = self.enter(effect, key, rank, now) else { return };
        match (tried, self.roads.get_mut(call.road)) {
            (Some((_, due)), _) => self.pause(due, call),
            (None, Some(road)) => road.queue.push(call),
            (None, None) => {}
        }
    }

    /// Takes a question that is in a batch already, sent by an earlier process: it is being asked. `None` if it shares an answer.
    pub(super) fn begin_sent(&mut self, effect: Effect, key: Option<Key>, now: Instant) -> Option<Call> {
        let mut call = self.enter(effect, key, 0, now)?;
        call.batched = true;
        Some(call)
    }

    /// What was taken for sent and is not: it is asked as if it had just come.
    pub(super) fn unsent(&mut self, mut call: Call) {
        call.batched = false;
        if let Some(road) = self.roads.get_mut(call.road) {
            road.queue.push(call);
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
        let road = self.road(&effect.request.model, now);
        let tokens = tokens(&effect.request);
        let tried = self.tried.remove(&effect.id);
        let fresh = Tries { answered: self.answered, ..Tries::default() };
        let tries = tried.map_or(fresh, |(tries, _)| tries);
        let (number, batched, since) = (0, false, tries.came.unwrap_or(now));
        Some(Box::new(Question { effect, key, rank, road, tokens, since, sent: now, number, batched, tries }))
    }

    fn pause(&mut self, due: Instant, call: Call) {
        self.count += 1;
        if let Some(road) = self.roads.get_mut(call.road) {
            self.pausing += usize::from(!road.batched);
            road.pausing.insert((due, self.count), call);
        }
    }

    /// The next question to be asked, which is asked from then on. One that waits for its next try keeps its place: a server in trouble is
    /// not to be asked more than before.
    pub(super) fn next(&mut self, now: Instant) -> Option<Call> {
        let Rules { connections, .. } = self.rules;
        if self.asking >= connections {
            return None;
        }
        let n = self.roads.len();
        let fresh = self.asking + self.pausing < connections;
        for i in (0..n).map(|i| (self.turn + i) % n.max(1)) {
            let Some(Road { lane, queue, pausing, batched: false, .. }) = self.roads.get_mut(i) else { continue };
            let again = pausing.first_key_value().filter(|((due, _), _)| *due <= now).map(|(_, call)| call.tokens);
            let Some(tokens) = again.or_else(|| queue.first().filter(|_| fresh).map(|call| call.tokens)) else {
                continue;
            };
            if lane.room(tokens, now).is_err() {
                continue;
            }
            let call = if again.is_some() { pausing.pop_first().map(|(_, call)| call) } else { queue.pop() };
            let Some(mut call) = call else { continue };
            self.pausing -= usize::from(again.is_some());
            call.number = lane.begin(tokens, now);
            (call.sent, call.batched) = (now, false);
            self.asking += 1;
            self.turn = i + 1;
            return Some(call);
        }
        None
    }

    /// When there may be something to ask though nothing has come.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<Instant> {
        let Rules { connections, .. } = self.rules;
        if self.asking >= connections {
            return None;
        }
        let fresh = self.asking + self.pausing < connections;
        let due = |Road { lane, queue, pausing, .. }: &mut Road| {
            let again = pausing.first_key_value().map(|((due, _), call)| (*due, call.tokens));
            let first = queue.first().filter(|_| fresh).map(|call| (now, call.tokens));
            let (due, tokens) = [again, first].into_iter().flatten().min_by_key(|(due, _)| *due)?;
            match lane.room(tokens, now) {
                Ok(()) => Some(due),
                Err(Some(wait)) => Some(due.max(now + wait)),
                // Something is under way, and that ends.
                Err(None) => None,
            }
        };
        self.roads.iter_mut().filter(|road| !road.batched).filter_map(due).min()
    }

    /// What has been gathered and may be sent now, by model, each with those that share its answer; it is being asked from then on. What
    /// is tried again waits for the last of its kind, so that it goes together.
    pub(super) fn gathered(&mut self, now: Instant) -> Vec<Vec<(Call, Vec<EffectId>)>> {
        let mut all = Vec::new();
        let ready = |road: &&mut Road| road.batched && road.all_due().is_none_or(|due| due <= now);
        for road in self.roads.iter_mut().filter(ready) {
            let share = |call: &Call| call.key.as_ref().and_then(|key| self.flights.get(key));
            let with = |mut call: Call| {
                let others = share(&call).into_iter().flatten().map(|effect| effect.id).collect();
                (call.sent, call.batched) = (now, true);
                (call, others)
            };
            let again = std::mem::take(&mut road.pausing).into_values();
            let calls: Vec<_> = road.queue.drain().chain(again).map(with).collect();
            if !calls.is_empty() {
                all.push(calls);
            }
        }
        all
    }

    /// When there will be something more to be gathered though nothing has come.
    pub(super) fn gathered_due(&self) -> Option<Instant> {
        self.roads.iter().filter(|road| road.batched).filter_map(Road::all_due).min()
    }

    /// Drops questions that stay in a batch of theirs, and those that share them.
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

    /// A call is not under way any more.
    fn ended(&mut self, call: &Call) -> Option<&mut Lane> {
        if call.batched {
            return None;
        }
        self.asking = self.asking.saturating_sub(1);
        let lane = self.roads.get_mut(call.road).map(|road| &mut road.lane)?;
        lane.end();
        Some(lane)
    }

    /// What a provider says of its limits on a model.
    pub(super) fn told(&mut self, model: &str, told: RateLimits, now: Instant) {
        if let Some(road) = self.by_model.get(model).and_then(|road| self.roads.get_mut(*road)) {
            road.lane.told(told, now);
        }
    }

    /// A call was turned away, too many at once or too fast; what becomes of it.
    pub(super) fn turned_away(&mut self, call: Call, why: &str, after_ms: Option<u64>, now: Instant) -> After {
        if let Some(road) = self.roads.get_mut(call.road).filter(|_| !call.batched) {
            road.lane.turned_away(call.number);
        }
        // Who asks for itself alone does not know of others.
        let waits = after_ms.is_some() || !matches!(self.rules.schedule, Schedule::None);
        self.again(call, why, after_ms, None, now, waits)
    }

    /// The same question is put again at once, in another form; that says nothing against its provider.
    pub(super) fn anew(&mut self, mut call: Call, now: Instant) {
        self.ended(&call);
        call.tries.failed += 1;
        call.tries.answered = self.answered;
        self.hand_out(call, None, now);
    }

    /// An exchange came about: the answers to the question and to those that share it.
    pub(super) fn answered(&mut self, call: Call, exchange: Exchange, now: Instant) -> Vec<Answer> {
        self.answered += 1;
        self.recovered(call.road, now);
        if let Some(lane) = self.ended(&call) {
            lane.answered(exchange.usage.tokens_out as f64);
        }
        let waited_ms = call.sent.duration_since(call.since).as_secs_f64() * 1e3;
        let usage = Usage { waited_ms, retries: call.tries.failed, ..exchange.usage };
        self.settle(call, |effect, shared| Answer {
            id: effect.id,
            request: effect.request,
            outcome: exchange.outcome.clone(),
            usage: if shared { Usage { waited_ms: 0.0, retries: 0, shared, ..usage } } else { usage },
        })
    }

    /// A question that can not be answered, nor those of the same words.
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

    /// Somebody was answered: what waits after an outage is tried at once.
    fn recovered(&mut self, road: usize, now: Instant) {
        let Some(road) = self.roads.get_mut(road) else { return };
        road.answered += 1;
        // Who asks for itself alone does not know of others.
        if !std::mem::take(&mut road.outage) || matches!(self.rules.schedule, Schedule::None) {
            return;
        }
        let waits = |call: &Call| call.tries.streak >= OUTAGE && !call.tries.told;
        let moved: Vec<_> = road.pausing.extract_if(.., |_, call| waits(call)).collect();
        road.pausing.extend(moved.into_iter().map(|((due, n), call)| ((due.min(now), n), call)));
        for (_, due) in self.tried.values_mut().filter(|(tries, _)| tries.streak >= OUTAGE && !tries.told) {
            *due = now.min(*due);
        }
    }

    /// A try failed and may be made again. `charged`: the most that it can have cost, if it may have cost anything.
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

    /// `waits`: it was told to wait, which says nothing against it as long as others are answered.
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
        // A wait of nothing, or until a time that has passed, says nothing.
        let after_ms = after_ms.filter(|ms| *ms > 0);
        let tries = &mut call.tries;
        tries.failed += 1;
        // Who is told to wait while others are answered only waits for its turn.
        match waits && tries.answered < self.answered {
            true => (tries.streak, tries.since) = (0, None),
            false => tries.streak += 1,
        }
        tries.answered = self.answered;
        tries.told = after_ms.is_some();
        let since = *tries.since.get_or_insert(now);
        let pause = pause(call.effect.id, tries.failed, tries.streak, after_ms);
        let road = self.roads.get_mut(call.road);
        let unheard = road.as_ref().is_some_and(|road| road.answered == 0);
        if let Some(road) = road {
            road.outage |= call.tries.streak >= OUTAGE;
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

    /// Hands out a question whose request brought no answer: whether there may be another request others decide. Those that share the
    /// question go on without it.
    fn hand_out(&mut self, call: Call, charged: Option<Usage>, due: Instant) {
        let Question { effect, key, rank, road, tokens, since, sent, tries, .. } = *call;
        let (number, batched) = (0, false);
        if let Some(key) = key
            && let Some(mut followers) = self.flights.remove(&key)
            && !followers.is_empty()
        {
            let leader = followers.remove(0);
            self.following -= 1;
            self.flights.insert(key.clone(), followers);
            let key = Some(key);
            let leader = Question { effect: leader, key, rank, road, tokens, since, sent, number, batched, tries };
            self.pause(due, Box::new(leader));
        }
        self.tried.insert(effect.id, (Tries { came: Some(since), ..tries }, due));
        self.broken.push(Broken { effect, charged, again: true });
    }

    /// Requests that brought no answer since the last call.
    pub(super) fn take_broken(&mut self) -> Vec<Broken> {
        std::mem::take(&mut self.broken)
    }

    /// How many calls may be in flight from now on; none in a pause.
    pub(super) fn connections(&mut self, most: usize) {
        if !matches!(self.rules.schedule, Schedule::None) || most == 0 {
            self.rules.connections = most;
        } else {
            self.rules.connections = usize::MAX;
        }
        if most > 0 {
            self.roads.iter_mut().for_each(|road| road.lane.most(most));
        }
    }

    /// Hands back what has never been asked, with what shares it.
    pub(super) fn take_back(&mut self) -> Vec<Effect> {
        let mut back = Vec::new();
        for call in self.roads.iter_mut().flat_map(|road| road.queue.drain()) {
            let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
            self.following -= followers.len();
            back.push(call.effect);
            back.extend(followers);
        }
        back
    }

    /// Drops all that is not being asked.
    pub(super) fn drop_waiting(&mut self) -> Vec<EffectId> {
        let waits = |road: &mut Road| {
            let pausing = std::mem::take(&mut road.pausing).into_values();
            road.queue.drain().chain(pausing).collect::<Vec<_>>()
        };
        let waiting: Vec<Call> = self.roads.iter_mut().flat_map(waits).collect();
        self.pausing = 0;
        self.broken.iter_mut().for_each(|broken| broken.again = false);
        self.left(waiting)
    }

    /// All questions that are here and not being asked, those that share an answer among them.
    pub(super) fn held(&self) -> impl Iterator<Item = EffectId> {
        let waiting = self.roads.iter().flat_map(|road| road.queue.iter().chain(road.pausing.values()));
        let followers = self.flights.values().flatten().map(|effect| effect.id);
        waiting.map(|call| call.effect.id).chain(followers)
    }

    /// Questions that are being asked.
    pub(super) fn asking(&self) -> usize {
        self.asking
    }

    /// Questions that wait for a connection.
    pub(super) fn queued(&self) -> usize {
        self.roads.iter().map(|road| road.queue.len()).sum()
    }

    /// Of these, those that are not gathered.
    pub(super) fn waiting(&self) -> usize {
        self.roads.iter().filter(|road| !road.batched).map(|road| road.queue.len()).sum()
    }

    /// Questions that wait for their next try.
    pub(super) fn pausing(&self) -> usize {
        self.roads.iter().map(|road| road.pausing.len()).sum()
    }

    /// The limits on the rate that questions wait for, in words.
    pub(super) fn limits(&mut self, now: Instant) -> Vec<String> {
        let limit = |(model, road): (&String, &usize)| {
            let road = self.roads.get_mut(*road).filter(|road| road.queue.len() + road.pausing.len() > 0)?;
            road.lane.limited(now).map(|limit| format!("{limit} of {model}"))
        };
        self.by_model.iter().filter_map(limit).collect()
    }

    /// Questions that wait for the answer to another.
    pub(super) fn following(&self) -> usize {
        self.following
    }
}

/// How long to wait before the next try: doubled with every try on end, between half and all of that, so that questions that failed
/// together do not come back together. What the server asks for is kept to, and is not enough where it has proven wrong. A function of the
/// question and its tries alone.
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
    use polity_kernel::ask::{Asker, Outcome, Value, Want};

    fn open(connections: usize) -> Traffic {
        Traffic::new(Rules { connections: 4 * connections, ..Rules::default() })
    }

    fn effect(actor: u32) -> Effect {
        let request = Request::new("openai/m", Vec::new(), Want::Text);
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
        Exchange { outcome, usage: Usage { cost_usd: 0.5, ..Usage::default() } }
    }

    fn who(call: &Call) -> u32 {
        call.effect.id.actor
    }

    #[test]
    fn the_same_question_is_asked_once_while_it_is_under_way() {
        let now = Instant::now();
        let mut traffic = open(10);
        (0..5).for_each(|actor| traffic.begin(effect(actor), key(), 0, now));
        traffic.begin(effect(9), None, 0, now);
        let first = traffic.next(now).unwrap();
        let alone = traffic.next(now).unwrap();
        assert!(traffic.next(now).is_none());
        assert_eq!((who(&first), who(&alone), traffic.following()), (0, 9, 4));
        let answers = traffic.answered(first, exchange(), now);
        assert_eq!(
            answers.iter().map(|a| (a.id.actor, a.usage.shared)).collect::<Vec<_>>(),
            [(0, false), (1, true), (2, true), (3, true), (4, true)]
        );
        // What they would have cost is told, for the budget.
        assert!(answers.iter().all(|answer| answer.usage.cost_usd == 0.5) && traffic.following() == 0);
        // Afterwards it is asked again.
        traffic.begin(effect(7), key(), 0, now);
        assert_eq!(who(&traffic.next(now).unwrap()), 7);
    }

    /// Has it tried again: what a budget that holds it does.
    fn return_all(traffic: &mut Traffic, now: Instant) -> Vec<Broken> {
        let broken = traffic.take_broken();
        broken.iter().filter(|broken| broken.again).for_each(|b| traffic.begin(b.effect.clone(), None, 0, now));
        broken
    }

    #[test]
    fn a_request_without_an_answer_is_handed_out_and_those_that_share_it_go_on() {
        let now = Instant::now();
        let mut traffic = open(10);
        (0..3).for_each(|actor| traffic.begin(effect(actor), key(), 0, now));
        let first = traffic.next(now).unwrap();
        let most = Usage { cost_usd: 2.0, ..Usage::default() };
        assert!(matches!(traffic.retry(first, "cut", None, Some(most), now), After::Again));
        let broken = traffic.take_broken();
        assert_eq!((broken.len(), broken[0].charged, broken[0].effect.id.actor), (1, Some(most), 0));
        // The second asks now, when the pause is over, and counts the tries of the first.
        assert!(traffic.next(now).is_none());
        let due = traffic.next_due(now).unwrap();
        let second = traffic.next(due).unwrap();
        assert_eq!((who(&second), traffic.following()), (1, 1));
        // The first comes back, and shares.
        traffic.begin(broken.into_iter().next().unwrap().effect, key(), 0, now);
        assert_eq!(traffic.following(), 2);
        let answers = traffic.answered(second, exchange(), now);
        assert_eq!(answers.len(), 3);
        assert_eq!(answers[0].usage.retries, 1);
    }

    #[test]
    fn who_is_told_to_wait_while_others_are_answered_waits_for_its_turn() {
        let mut now = Instant::now();
        let mut traffic = open(10);
        traffic.begin(effect(0), None, 0, now);
        for _ in 0..1000 {
            let call = traffic.next(now).unwrap();
            traffic.begin(effect(1), None, 0, now);
            let other = traffic.next(now).unwrap();
            let _ = traffic.answered(other, exchange(), now);
            assert!(matches!(traffic.retry(call, "429", Some(20_000), None, now), After::Again));
            assert!(return_all(&mut traffic, now).iter().all(|broken| broken.charged.is_none()));
            let due = traffic.next_due(now).unwrap();
            assert!(due >= now + Duration::from_secs(20) && due <= now + Duration::from_secs(25));
            now = due;
        }
    }

    /// Lets a question fail until the run is lost: tries, and the time since the first.
    fn fails(traffic: &mut Traffic, mut now: Instant, others: bool) -> (u32, Duration) {
        traffic.begin(effect(0), None, 0, now);
        let began = now;
        for tries in 1..10_000 {
            let call = traffic.next(now).unwrap();
            if others {
                traffic.begin(effect(1), None, 0, now);
                let other = traffic.next(now).unwrap();
                let _ = traffic.answered(other, exchange(), now);
            }
            match traffic.retry(call, "500", None, None, now) {
                After::Again => {
                    return_all(traffic, now);
                    let due = traffic.next_due(now).unwrap();
                    assert!(due - now <= LONGEST_PAUSE && due > now);
                    now = due;
                }
                After::Lost(why) => {
                    assert!(why.contains("500"), "{why}");
                    assert!(traffic.take_broken().iter().all(|broken| !broken.again));
                    return (tries, now - began);
                }
            }
        }
        panic!("it must end");
    }

    #[test]
    fn trouble_is_waited_for_as_long_as_the_run_has_patience_and_no_longer() {
        let now = Instant::now();
        let with = |patience| Traffic::new(Rules { connections: 40, patience, ..Rules::default() });
        // An address that is wrong shows soon, unless it is said that it will be right.
        assert_eq!(fails(&mut with(None), now, false).0, FIRST_TRIES);
        for patience in [90, 3600] {
            let patience = Duration::from_secs(patience);
            for others in [false, true] {
                let (tries, time) = fails(&mut with(Some(patience)), now, others);
                assert!(time <= patience && time + LONGEST_PAUSE >= patience, "{time:?} {tries}");
            }
        }
        // Once somebody was answered an outage is one, however long it was quiet before.
        let mut traffic = with(None);
        traffic.begin(effect(7), None, 0, now);
        let call = traffic.next(now).unwrap();
        let _ = traffic.answered(call, exchange(), now);
        let (_, time) = fails(&mut traffic, now + 2 * PATIENCE, false);
        assert!(time <= PATIENCE && time + LONGEST_PAUSE >= PATIENCE, "{time:?}");
    }

    #[test]
    fn when_an_outage_is_over_all_that_wait_are_tried_at_once() {
        let began = Instant::now();
        let mut now = began;
        let mut traffic = Traffic::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
        (0..2).for_each(|actor| traffic.begin(effect(actor), None, 0, now));
        let mut calls: Vec<Call> = (0..2).map(|_| traffic.next(now).unwrap()).collect();
        for _ in 0..8 {
            for call in calls.drain(..) {
                assert!(matches!(traffic.retry(call, "refused", None, None, now), After::Again));
            }
            return_all(&mut traffic, now);
            while calls.len() < 2 {
                now = now.max(traffic.next_due(now).unwrap());
                calls.push(traffic.next(now).unwrap());
            }
        }
        let last = calls.pop().unwrap();
        assert!(matches!(traffic.retry(last, "refused", None, None, now), After::Again));
        return_all(&mut traffic, now);
        assert!(traffic.next_due(now).unwrap() > now + Duration::from_secs(10));
        let answers = traffic.answered(calls.pop().unwrap(), exchange(), now);
        // It waited from when it came until it was sent for the last time, whatever was tried on the way: more than the longest pause.
        let (waited, all) = (answers[0].usage.waited_ms, now.duration_since(began).as_secs_f64() * 1e3);
        assert!(waited > 2.0 * LONGEST_PAUSE.as_secs_f64() * 1e3 && waited <= all, "{waited} of {all} ms");
        assert!(traffic.next(now).is_some());
    }

    #[test]
    fn a_wait_of_nothing_says_nothing_and_one_that_was_too_short_is_not_believed_again() {
        let id = effect(3).id;
        let mut now = Instant::now();
        let mut traffic = Traffic::new(Rules { connections: 8, patience: Some(PATIENCE), ..Rules::default() });
        traffic.begin(effect(0), None, 0, now);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let call = traffic.next(now).unwrap();
            assert!(matches!(traffic.retry(call, "429", Some(0), None, now), After::Again));
            return_all(&mut traffic, now);
            let due = traffic.next_due(now).unwrap();
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
    fn what_was_never_asked_is_handed_back_with_what_shares_it() {
        let now = Instant::now();
        let mut traffic = open(1);
        traffic.begin(effect(0), key(), 0, now);
        let asked = traffic.next(now).unwrap();
        traffic.begin(effect(1), key(), 0, now);
        let other = Key::of("there", &effect(2).request);
        (2..5).for_each(|actor| traffic.begin(effect(actor), other.clone(), 0, now));
        traffic.begin(effect(5), None, 0, now);
        let back: Vec<u32> = traffic.take_back().iter().map(|effect| effect.id.actor).collect();
        assert_eq!((back, traffic.queued(), traffic.following()), (vec![2, 3, 4, 5], 0, 1));
        // Begun again they are asked, but in no pause, and what is being asked goes on.
        traffic.begin(effect(3), other, 0, now);
        traffic.connections(0);
        assert!(traffic.next(now).is_none() && traffic.next_due(now).is_none());
        traffic.connections(8);
        assert_eq!(traffic.answered(asked, exchange(), now).len(), 2);
        assert_eq!(who(&traffic.next(now).unwrap()), 3);
    }

    #[test]
    fn a_stop_drops_what_is_not_being_asked() {
        let now = Instant::now();
        let mut traffic = open(10);
        traffic.begin(effect(0), key(), 0, now);
        let asked = traffic.next(now).unwrap();
        traffic.begin(effect(1), key(), 0, now);
        let other = Key::of("there", &effect(2).request);
        traffic.begin(effect(2), other.clone(), 0, now);
        traffic.begin(effect(3), other, 0, now);
        assert_eq!((traffic.following(), traffic.queued()), (2, 1));
        assert_eq!(traffic.drop_waiting().iter().map(|id| id.actor).collect::<Vec<_>>(), [2, 3]);
        assert_eq!((traffic.following(), traffic.queued(), traffic.pausing()), (1, 0, 0));
        assert_eq!(traffic.answered(asked, exchange(), now).len(), 2);
    }
}
