//! One model's part of the traffic: how many calls of it may be under way, and how fast they may follow each other.

use crate::bucket::Bucket;
use crate::models::{RateLimits, Window};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Calls that are sent before anything is known of who answers: this part of those that may be.
const FIRST: usize = 4;
/// Of the last calls so many must be turned away, and this part of them, before fewer are sent: a stray refusal says nothing.
const TURNED_AWAY: (usize, f64) = (2, 0.05);
/// Answers are looked at so many at a time at least.
const LOOK: usize = 20;
/// A call that was sent so short a time ago may not have been counted yet by whoever tells what is left.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// How many calls may be under way: doubled as long as all goes well, then one more each time that all of them were answered; cut to half,
/// once for all calls that were under way together, when too many are turned away (as TCP does: Jacobson, 1988; RFC 5681).
#[derive(Clone, Copy, Debug)]
struct Crowd {
    room: f64,
    most: f64,
    /// Whether it still doubles.
    doubling: bool,
    /// Since the room was last changed: answers, and calls that were turned away.
    answered: usize,
    turned_away: usize,
    /// Calls that began before this one were under way at the last cut.
    cut_at: u64,
}

impl Crowd {
    fn new(most: usize) -> Self {
        let most = most.max(1) as f64;
        let room = (most / FIRST as f64).ceil();
        Crowd { room, most, doubling: true, answered: 0, turned_away: 0, cut_at: 0 }
    }

    fn answered(&mut self) {
        self.answered += 1;
        let more = if self.doubling { 1.0 } else { 1.0 / self.room };
        self.room = (self.room + more).min(self.most);
        self.forget();
    }

    /// A call was turned away that was the `began`-th; `next` is the number of the next one.
    fn turned_away(&mut self, began: u64, next: u64) {
        if began < self.cut_at {
            return;
        }
        self.turned_away += 1;
        let (least, part) = TURNED_AWAY;
        let all = self.answered + self.turned_away;
        if self.turned_away >= least && self.turned_away as f64 >= part * all as f64 {
            self.room = (self.room / 2.0).max(1.0);
            (self.doubling, self.cut_at) = (false, next);
            (self.answered, self.turned_away) = (0, 0);
        }
    }

    /// What is long past says nothing of now.
    fn forget(&mut self) {
        if self.answered + self.turned_away > LOOK.max((self.room as usize).saturating_mul(2)) {
            (self.answered, self.turned_away) = (self.answered / 2, self.turned_away / 2);
        }
    }
}

/// A limit on what may be sent a minute, with what was sent and may not be counted yet by whoever keeps it.
#[derive(Debug, Default)]
struct Pace {
    /// What a person has declared.
    declared: Option<f64>,
    bucket: Option<Bucket>,
    sent: VecDeque<(Instant, f64)>,
}

impl Pace {
    fn declared(per_minute: Option<f64>, now: Instant) -> Self {
        Pace {
            declared: per_minute,
            bucket: per_minute.map(|per_minute| Bucket::full(per_minute, now)),
            sent: VecDeque::new(),
        }
    }

    fn wait(&mut self, amount: f64, now: Instant) -> Option<Duration> {
        self.bucket.as_mut()?.wait(amount, now)
    }

    fn take(&mut self, amount: f64, now: Instant) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(amount);
        }
        while self.sent.front().is_some_and(|(at, _)| now.duration_since(*at) > UNDER_WAY) {
            self.sent.pop_front();
        }
        self.sent.push_back((now, amount));
    }

    /// `owed`: what calls under way will still be charged.
    fn told(&mut self, window: Window, owed: f64, now: Instant) {
        // A limit that a person has declared holds where the provider's is wider: others may use the same key.
        let (limit, mut left) = match self.declared {
            Some(declared) if declared < window.limit => return,
            _ => (window.limit, window.left),
        };
        left -= owed;
        left -= self.sent.iter().filter(|(at, _)| now.duration_since(*at) <= UNDER_WAY).map(|(_, n)| n).sum::<f64>();
        self.bucket.get_or_insert_with(|| Bucket::full(limit, now)).told(limit, left, now);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lane {
    crowd: Crowd,
    requests: Pace,
    tokens: Pace,
    asking: usize,
    /// Whether nothing is held back, whatever is told.
    open: bool,
    /// Calls begun.
    begun: u64,
    /// Tokens of a reply, on the average of those so far.
    reply: f64,
    replies: f64,
}

/// What a person declares of a model's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Requests a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute, of requests and replies.
    pub tokens_per_minute: Option<u32>,
}

impl Lane {
    pub(super) fn new(connections: usize, declared: Declared, now: Instant) -> Self {
        Lane {
            crowd: Crowd::new(connections),
            requests: Pace::declared(declared.requests_per_minute.map(f64::from), now),
            tokens: Pace::declared(declared.tokens_per_minute.map(f64::from), now),
            asking: 0,
            open: false,
            begun: 0,
            reply: 0.0,
            replies: 0.0,
        }
    }

    /// One that lets everything through.
    pub(super) fn open(now: Instant) -> Self {
        let mut lane = Lane::new(1, Declared::default(), now);
        (lane.crowd.room, lane.crowd.most, lane.open) = (f64::INFINITY, f64::INFINITY, true);
        lane
    }

    /// So many may be under way from now on.
    pub(super) fn most(&mut self, connections: usize) {
        if !self.open {
            self.crowd.most = connections as f64;
            self.crowd.room = self.crowd.room.min(self.crowd.most);
        }
    }

    /// Whether another call of so many tokens may begin; else how long that takes at least, if that is known.
    pub(super) fn room(&mut self, tokens: f64, now: Instant) -> Result<(), Option<Duration>> {
        if self.open {
            return Ok(());
        }
        if self.asking as f64 >= self.crowd.room.floor() {
            return Err(None);
        }
        let tokens = tokens + self.reply;
        match self.requests.wait(1.0, now).max(self.tokens.wait(tokens, now)) {
            Some(wait) => Err(Some(wait)),
            None => Ok(()),
        }
    }

    /// A call of so many tokens begins; its number.
    pub(super) fn begin(&mut self, tokens: f64, now: Instant) -> u64 {
        self.requests.take(1.0, now);
        self.tokens.take(tokens + self.reply, now);
        self.asking += 1;
        self.begun += 1;
        self.begun
    }

    /// A call has ended, whichever way.
    pub(super) fn end(&mut self) {
        self.asking = self.asking.saturating_sub(1);
    }

    /// A call was answered with so many tokens.
    pub(super) fn answered(&mut self, tokens_out: f64) {
        self.crowd.answered();
        // The mean of about the last hundred.
        self.replies = (self.replies + 1.0).min(100.0);
        self.reply += (tokens_out - self.reply) / self.replies;
    }

    /// The call of this number was turned away: too many at once, or too fast.
    pub(super) fn turned_away(&mut self, began: u64) {
        self.crowd.turned_away(began, self.begun + 1);
    }

    /// What the provider says of its limits.
    pub(super) fn told(&mut self, told: RateLimits, now: Instant) {
        if let Some(window) = told.requests {
            self.requests.told(window, 0.0, now);
        }
        if let Some(window) = told.tokens {
            // Replies are counted when they are made.
            let owed = self.reply * self.asking as f64;
            self.tokens.told(window, owed, now);
        }
    }

    /// In words, if it is a limit on the rate that calls wait for.
    pub(super) fn limited(&mut self, now: Instant) -> Option<String> {
        let requests = self.requests.wait(1.0, now).zip(self.requests.bucket).map(|(_, b)| (b, "requests"));
        let tokens = self.tokens.wait(1.0 + self.reply, now).zip(self.tokens.bucket).map(|(_, b)| (b, "tokens"));
        requests.or(tokens).map(|(bucket, what)| format!("a limit of {} {what} a minute", bucket.per_minute()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(connections: usize, declared: Declared, now: Instant) -> Lane {
        Lane::new(connections, declared, now)
    }

    #[test]
    fn the_room_doubles_until_many_are_turned_away_and_is_cut_once_for_all_of_them() {
        let now = Instant::now();
        let mut lane = lane(64, Declared::default(), now);
        let fill = |lane: &mut Lane| {
            let mut numbers = Vec::new();
            while lane.room(1.0, now).is_ok() {
                numbers.push(lane.begin(1.0, now));
            }
            numbers
        };
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let numbers = fill(&mut lane);
            sizes.push(numbers.len());
            numbers.iter().for_each(|_| {
                lane.end();
                lane.answered(1.0);
            });
        }
        assert_eq!(sizes, [16, 32, 64]);
        // All of them are turned away: one cut.
        let numbers = fill(&mut lane);
        numbers.iter().for_each(|n| {
            lane.end();
            lane.turned_away(*n);
        });
        let numbers = fill(&mut lane);
        assert_eq!(numbers.len(), 32);
        // From then on one more each time, about.
        numbers.iter().for_each(|_| {
            lane.end();
            lane.answered(1.0);
        });
        lane.answered(1.0);
        assert_eq!(fill(&mut lane).len(), 32 + 1);
    }

    #[test]
    fn a_lane_without_a_bound_counts_like_any_other() {
        let mut lane = lane(usize::MAX, Declared::default(), Instant::now());
        (0..10_000).for_each(|_| lane.answered(1.0));
        assert!(lane.crowd.answered > 0 && lane.crowd.room.is_finite());
    }

    #[test]
    fn a_stray_refusal_changes_nothing() {
        let now = Instant::now();
        let mut lane = lane(64, Declared::default(), now);
        for n in 0..1000u64 {
            let number = lane.begin(1.0, now);
            lane.end();
            match n % 50 {
                49 => lane.turned_away(number),
                _ => lane.answered(1.0),
            }
        }
        assert!(lane.crowd.room >= 60.0, "{}", lane.crowd.room);
    }

    #[test]
    fn limits_that_are_declared_or_told_are_kept() {
        let now = Instant::now();
        let declared = Declared { requests_per_minute: Some(60), tokens_per_minute: Some(6000) };
        let mut lane = lane(1000, declared, now);
        let mut sent = 0;
        while lane.room(10.0, now).is_ok() {
            lane.begin(10.0, now);
            sent += 1;
        }
        assert_eq!(sent, 60);
        assert_eq!(lane.room(10.0, now), Err(Some(Duration::from_secs(1))));
        assert!(lane.limited(now).is_some_and(|words| words.contains("60 requests a minute")));
        // The provider says that somebody else uses the key, too; what is sent just now it has not seen.
        let later = now + Duration::from_secs(30);
        lane.told(RateLimits { requests: Some(Window { limit: 60.0, left: 2.0 }), tokens: None }, later);
        assert!(lane.room(1.0, later).is_ok());
        lane.begin(1.0, later);
        lane.told(RateLimits { requests: Some(Window { limit: 60.0, left: 2.0 }), tokens: None }, later);
        lane.begin(1.0, later);
        assert!(lane.room(1.0, later).is_err());
        // A limit wider than the declared one is not believed.
        lane.told(RateLimits { requests: Some(Window { limit: 6000.0, left: 6000.0 }), tokens: None }, later);
        assert!(lane.room(1.0, later).is_err());
    }
}
