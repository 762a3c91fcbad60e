//! The traffic of a run, all its agents together: whose turn it is to be asked, who shares whose answer, when a failed try is made again,
//! and when nobody can be asked at all. It knows no socket and waits for nothing: [`super::Live`] does, and tells it the time (of a
//! clock that is never set). Limits on requests and tokens a minute will be kept here, too.

use super::cache::Key;
use super::{Broken, failed};
use crate::models::Exchange;
use polity_kernel::ask::{Answer, Effect, EffectId, Usage};
use polity_kernel::digest::{Kind, RowHash};
use polity_kernel::rng::{Draws, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Tries of one effect before it counts as failed.
const TRIES: u32 = 5;
/// Wait after the first failed try; doubled after each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// A question on its way to a provider.
pub(super) struct Call {
    pub effect: Effect,
    /// Of what may share its answer.
    pub key: Option<Key>,
    tries: Tries,
}

/// How often a question was tried.
#[derive(Clone, Copy, Default)]
struct Tries {
    /// Tries that failed.
    failed: u32,
    /// Of these, those that count against [`TRIES`].
    counted: u32,
    /// Exchanges of the run before the first of those.
    answered: u64,
    /// The same before the last try.
    answered_last: u64,
}

/// What becomes of a try that failed.
pub(super) enum After {
    /// It is made again when its time comes, or whoever has the budget decides.
    Again,
    /// The question has no answer, and neither have those that share it.
    Failed(Vec<Answer>),
    /// Nobody can be asked: the run stops, and can be resumed.
    Lost(String),
}

/// See the module.
#[derive(Default)]
pub(super) struct Traffic {
    queue: VecDeque<Call>,
    /// By the time at which they are tried again.
    pausing: BTreeMap<(Instant, u64), Call>,
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

impl Traffic {
    /// Takes a question; with a key it shares the answer of one that is under way with the same key.
    pub(super) fn begin(&mut self, effect: Effect, key: Option<Key>) {
        if let Some(followers) = key.as_ref().and_then(|key| self.flights.get_mut(key)) {
            self.tried.remove(&effect.id);
            followers.push(effect);
            self.following += 1;
            return;
        }
        if let Some(key) = &key {
            self.flights.insert(key.clone(), Vec::new());
        }
        match self.tried.remove(&effect.id) {
            Some((tries, due)) => self.pause(due, Call { effect, key, tries }),
            None => {
                let tries = Tries { answered: self.answered, answered_last: self.answered, ..Tries::default() };
                self.queue.push_back(Call { effect, key, tries });
            }
        }
    }

    fn pause(&mut self, due: Instant, call: Call) {
        self.count += 1;
        self.pausing.insert((due, self.count), call);
    }

    /// The next question to be asked, when `asking` are being asked and at most `connections` may be. One that waits for its next try
    /// keeps its place: a server in trouble is not to be asked more than before.
    pub(super) fn next(&mut self, asking: usize, connections: usize, now: Instant) -> Option<Call> {
        if asking >= connections {
            return None;
        }
        if let Some(first) = self.pausing.first_entry()
            && first.key().0 <= now
        {
            return Some(first.remove());
        }
        if asking + self.pausing.len() >= connections {
            return None;
        }
        self.queue.pop_front()
    }

    /// When the next pause ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.pausing.keys().next().map(|(due, _)| *due)
    }

    /// An exchange came about: the answers to the question and to those that share it.
    pub(super) fn answered(&mut self, call: Call, exchange: Exchange) -> Vec<Answer> {
        self.answered += 1;
        let usage = Usage { retries: call.tries.failed, ..exchange.usage };
        self.settle(call, |effect, shared| Answer {
            id: effect.id,
            request: effect.request,
            outcome: exchange.outcome.clone(),
            usage: if shared { Usage { retries: 0, shared, ..usage } } else { usage },
        })
    }

    /// A question that can not be answered, nor those of the same words.
    pub(super) fn never(&mut self, call: Call, why: &str) -> Vec<Answer> {
        self.settle(call, |effect, shared| failed(effect, why.to_owned(), shared))
    }

    fn settle(&mut self, call: Call, answer: impl Fn(Effect, bool) -> Answer) -> Vec<Answer> {
        let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
        self.following -= followers.len();
        let mut answers = vec![answer(call.effect, false)];
        answers.extend(followers.into_iter().map(|effect| answer(effect, true)));
        answers
    }

    /// A try failed and may be made again. `charged`: the most that it can have cost, if it may have cost anything.
    pub(super) fn retry(
        &mut self,
        mut call: Call,
        why: &str,
        after_ms: Option<u64>,
        charged: Option<Usage>,
        now: Instant,
    ) -> After {
        let tries = &mut call.tries;
        tries.failed += 1;
        // Who is told to wait while others are answered only waits for its turn.
        match after_ms.is_some() && tries.answered_last < self.answered {
            true => (tries.counted, tries.answered) = (0, self.answered),
            false => tries.counted += 1,
        }
        tries.answered_last = self.answered;
        if tries.counted >= TRIES {
            let why = format!("{} tries failed; the last: {why}", tries.failed);
            let nobody = self.answered == tries.answered;
            if let Some(usage) = charged {
                self.broken.push(Broken { id: call.effect.id, usage, again: None });
            }
            return match nobody {
                true => After::Lost(why),
                false => After::Failed(self.never(call, &why)),
            };
        }
        let due = now + pause(call.effect.id, tries.failed, tries.counted, after_ms);
        let Some(usage) = charged else {
            self.pause(due, call);
            return After::Again;
        };
        // Whether there is money for one more try others decide. Those that share the question have theirs.
        let Call { effect, key, tries } = call;
        if let Some(key) = key
            && let Some(mut followers) = self.flights.remove(&key)
            && !followers.is_empty()
        {
            let leader = followers.remove(0);
            self.following -= 1;
            self.flights.insert(key.clone(), followers);
            self.pause(due, Call { effect: leader, key: Some(key), tries });
        }
        self.tried.insert(effect.id, (tries, due));
        self.broken.push(Broken { id: effect.id, usage, again: Some(effect) });
        After::Again
    }

    /// Tries that broke off since the last call.
    pub(super) fn take_broken(&mut self) -> Vec<Broken> {
        std::mem::take(&mut self.broken)
    }

    /// Whether something waits to be handed out.
    pub(super) fn has_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Hands back what has never been asked, with what shares it.
    pub(super) fn take_back(&mut self) -> Vec<Effect> {
        let mut back = Vec::new();
        for call in self.queue.drain(..) {
            let followers = call.key.and_then(|key| self.flights.remove(&key)).unwrap_or_default();
            self.following -= followers.len();
            back.push(call.effect);
            back.extend(followers);
        }
        back
    }

    /// Drops all that is not being asked.
    pub(super) fn drop_waiting(&mut self) {
        let waiting = self.queue.drain(..).chain(std::mem::take(&mut self.pausing).into_values());
        for key in waiting.filter_map(|call| call.key) {
            self.following -= self.flights.remove(&key).map_or(0, |followers| followers.len());
        }
        self.broken.iter_mut().for_each(|broken| broken.again = None);
    }

    /// Questions that wait for a connection.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Questions that wait for their next try.
    pub(super) fn pausing(&self) -> usize {
        self.pausing.len()
    }

    /// Questions that wait for the answer to another.
    pub(super) fn following(&self) -> usize {
        self.following
    }
}

/// How long to wait before the next try: doubled with every try that counts, between half and all of that, so that questions that failed
/// together do not come back together; never less than the server asks for. A function of the question and its tries alone.
fn pause(id: EffectId, failed: u32, counted: u32, after_ms: Option<u64>) -> Duration {
    let key = RowHash::new(Kind::Request, id.round)
        .words(u64::from(id.item) << 32 | u64::from(id.actor), u64::from(id.n) << 32 | u64::from(failed));
    let jitter = Draws::new(key.finish() as u64, Stream::Driver, 0, 0).unit();
    match after_ms {
        Some(ms) => Duration::from_millis(ms).mul_f64(1.0 + 0.25 * jitter),
        None => FIRST_PAUSE.mul_f64(f64::from(1u32 << counted.clamp(1, 10)) * 0.5 * (0.5 + 0.5 * jitter)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use polity_kernel::ask::{Outcome, Request, Value, Want};

    fn effect(actor: u32) -> Effect {
        let request = Request::new("openai/m", Vec::new(), Want::Text);
        Effect { id: EffectId { item: 0, round: 0, actor, n: 0 }, request, hidden: None, default: None }
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
        let mut traffic = Traffic::default();
        (0..5).for_each(|actor| traffic.begin(effect(actor), key()));
        traffic.begin(effect(9), None);
        let first = traffic.next(0, 10, now).unwrap();
        let alone = traffic.next(1, 10, now).unwrap();
        assert!(traffic.next(2, 10, now).is_none());
        assert_eq!((who(&first), who(&alone), traffic.following()), (0, 9, 4));
        let answers = traffic.answered(first, exchange());
        assert_eq!(
            answers.iter().map(|a| (a.id.actor, a.usage.shared)).collect::<Vec<_>>(),
            [(0, false), (1, true), (2, true), (3, true), (4, true)]
        );
        // What they would have cost is told, for the budget.
        assert!(answers.iter().all(|answer| answer.usage.cost_usd == 0.5) && traffic.following() == 0);
        // Afterwards it is asked again.
        traffic.begin(effect(7), key());
        assert_eq!(who(&traffic.next(1, 10, now).unwrap()), 7);
    }

    #[test]
    fn a_try_that_may_have_cost_is_handed_out_and_those_that_share_it_go_on() {
        let now = Instant::now();
        let mut traffic = Traffic::default();
        (0..3).for_each(|actor| traffic.begin(effect(actor), key()));
        let first = traffic.next(0, 10, now).unwrap();
        let most = Usage { cost_usd: 2.0, ..Usage::default() };
        assert!(matches!(traffic.retry(first, "cut", None, Some(most), now), After::Again));
        let broken = traffic.take_broken();
        assert_eq!((broken.len(), broken[0].usage, broken[0].id.actor), (1, most, 0));
        // The second asks now, when the pause is over, and counts the tries of the first.
        assert!(traffic.next(0, 10, now).is_none());
        let due = traffic.next_due().unwrap();
        let second = traffic.next(0, 10, due).unwrap();
        assert_eq!((who(&second), traffic.following()), (1, 1));
        // The first comes back, and shares.
        traffic.begin(broken.into_iter().next().unwrap().again.unwrap(), key());
        assert_eq!(traffic.following(), 2);
        let answers = traffic.answered(second, exchange());
        assert_eq!(answers.len(), 3);
        assert_eq!(answers[0].usage.retries, 1);
    }

    #[test]
    fn who_is_told_to_wait_while_others_are_answered_waits_for_its_turn() {
        let mut now = Instant::now();
        let mut traffic = Traffic::default();
        traffic.begin(effect(0), None);
        for _ in 0..50 {
            let call = traffic.next(0, 10, now).unwrap();
            traffic.begin(effect(1), None);
            let other = traffic.next(1, 10, now).unwrap();
            let _ = traffic.answered(other, exchange());
            assert!(matches!(traffic.retry(call, "429", Some(20_000), None, now), After::Again));
            let due = traffic.next_due().unwrap();
            assert!(due >= now + Duration::from_secs(20) && due <= now + Duration::from_secs(25));
            now = due;
        }
        // When nobody is answered any more it is not the question.
        for n in 1..=TRIES {
            let call = traffic.next(0, 10, now).unwrap();
            match traffic.retry(call, "429", Some(20_000), None, now) {
                After::Again => now = traffic.next_due().unwrap(),
                After::Lost(_) => {
                    assert_eq!(n, TRIES);
                    return;
                }
                After::Failed(_) => panic!("it is not the question"),
            }
        }
        panic!("it must end");
    }

    #[test]
    fn nobody_answered_in_all_tries_means_lost_and_one_bad_question_does_not() {
        let mut now = Instant::now();
        for others in [false, true] {
            let mut traffic = Traffic::default();
            traffic.begin(effect(0), None);
            let mut ended = None;
            for _ in 0..TRIES {
                let call = traffic.next(0, 10, now).unwrap();
                if others {
                    traffic.begin(effect(1), None);
                    let other = traffic.next(1, 10, now).unwrap();
                    let _ = traffic.answered(other, exchange());
                }
                match traffic.retry(call, "500", None, None, now) {
                    After::Again => now = traffic.next_due().unwrap(),
                    After::Failed(_) => ended = Some(false),
                    After::Lost(_) => ended = Some(true),
                }
            }
            assert_eq!(ended, Some(!others));
        }
    }

    #[test]
    fn pauses_are_spread_and_grow_and_are_the_same_each_time() {
        let id = |actor| effect(actor).id;
        for n in 1..5 {
            let whole = FIRST_PAUSE * (1 << (n - 1));
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
        let mut traffic = Traffic::default();
        traffic.begin(effect(0), key());
        let asked = traffic.next(0, 1, now).unwrap();
        traffic.begin(effect(1), key());
        let other = Key::of("there", &effect(2).request);
        (2..5).for_each(|actor| traffic.begin(effect(actor), other.clone()));
        traffic.begin(effect(5), None);
        let back: Vec<u32> = traffic.take_back().iter().map(|effect| effect.id.actor).collect();
        assert_eq!((back, traffic.queued(), traffic.following()), (vec![2, 3, 4, 5], 0, 1));
        // Begun again they are asked, and what is being asked goes on.
        traffic.begin(effect(3), other);
        assert_eq!(who(&traffic.next(1, 2, now).unwrap()), 3);
        assert_eq!(traffic.answered(asked, exchange()).len(), 2);
    }

    #[test]
    fn a_stop_drops_what_is_not_being_asked() {
        let now = Instant::now();
        let mut traffic = Traffic::default();
        traffic.begin(effect(0), key());
        let asked = traffic.next(0, 1, now).unwrap();
        traffic.begin(effect(1), key());
        let other = Key::of("there", &effect(2).request);
        traffic.begin(effect(2), other.clone());
        traffic.begin(effect(3), other);
        assert_eq!((traffic.following(), traffic.queued()), (2, 1));
        traffic.drop_waiting();
        assert_eq!((traffic.following(), traffic.queued(), traffic.pausing()), (1, 0, 0));
        assert_eq!(traffic.answered(asked, exchange()).len(), 2);
    }
}
