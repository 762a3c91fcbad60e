//! One model's part of the scheduler: how many calls may be in progress, and how fast they may follow each other.

use super::shared::{Share, SharedLimits};
use polity_models::bucket::Bucket;
use polity_models::models::{RateLimits, Window};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Share of the allowed calls that are sent before the server is known.
const FIRST: usize = 4;
/// Number and share of recent calls that must be rejected before fewer are sent: a stray rejection is no evidence.
const TURNED_AWAY: (usize, f64) = (2, 0.05);
/// Minimum number of answers considered at a time.
const LOOK: usize = 20;
/// A call sent more recently than this may not be included in the provider's reported rest.
const UNDER_WAY: Duration = Duration::from_millis(250);

/// The window of calls in progress: doubled as long as all goes well, then increased by one each time all of them were answered; halved
/// when too many are rejected, once for all calls in progress together (as TCP does: Jacobson, 1988; RFC 5681).
#[derive(Clone, Copy, Debug)]
struct CongestionWindow {
    room: f64,
    most: f64,
    /// Whether it still doubles.
    doubling: bool,
    /// Since the last change: answers, and rejected calls.
    answered: usize,
    turned_away: usize,
    /// Calls that began before this one were in progress at the last cut.
    cut_at: u64,
}

impl CongestionWindow {
    fn new(most: usize) -> Self {
        let most = most.max(1) as f64;
        let room = (most / FIRST as f64).ceil();
        CongestionWindow { room, most, doubling: true, answered: 0, turned_away: 0, cut_at: 0 }
    }

    fn answered(&mut self) {
        self.answered += 1;
        let more = if self.doubling { 1.0 } else { 1.0 / self.room };
        self.room = (self.room + more).min(self.most);
        self.forget();
    }

    /// Handles the rejection of the `began`-th call; `next` is the number of the next one.
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

    /// Forgets old counts, which say nothing about the present.
    fn forget(&mut self) {
        if self.answered + self.turned_away > LOOK.max((self.room as usize).saturating_mul(2)) {
            (self.answered, self.turned_away) = (self.answered / 2, self.turned_away / 2);
        }
    }
}

/// A limit per minute, with what was sent but may not be counted by the provider yet.
#[derive(Debug, Default)]
struct MinuteLimit {
    /// Declared by the user, for all runs together.
    declared: Option<Share>,
    /// Told by the provider.
    bucket: Option<Bucket>,
    sent: VecDeque<(Instant, f64)>,
}

impl MinuteLimit {
    fn declared(share: Option<Share>) -> Self {
        MinuteLimit { declared: share, ..MinuteLimit::default() }
    }

    fn wait(&mut self, amount: f64, now: Instant) -> Option<Duration> {
        let told = self.bucket.as_mut().and_then(|bucket| bucket.wait(amount, now));
        told.or_else(|| self.declared.as_mut()?.wait(amount, now))
    }

    /// The smaller of the limits.
    fn per_minute(&self) -> f64 {
        let declared = self.declared.as_ref().map_or(f64::INFINITY, Share::per_minute);
        self.bucket.as_ref().map_or(declared, |bucket| declared.min(bucket.per_minute()))
    }

    fn take(&mut self, amount: f64, now: Instant) {
        if let Some(share) = &mut self.declared {
            share.take(amount);
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.take(amount);
        }
        while self.sent.front().is_some_and(|(at, _)| now.duration_since(*at) > UNDER_WAY) {
            self.sent.pop_front();
        }
        self.sent.push_back((now, amount));
    }

    /// `owed`: what calls in progress will still be charged.
    fn told(&mut self, window: Window, owed: f64, now: Instant) {
        // A declared limit applies if the provider's is higher: others may use the same key.
        let (limit, mut left) = match &self.declared {
            Some(declared) if declared.per_minute() < window.limit => return,
            _ => (window.limit, window.left),
        };
        left -= owed;
        left -= self.sent.iter().filter(|(at, _)| now.duration_since(*at) <= UNDER_WAY).map(|(_, n)| n).sum::<f64>();
        self.bucket.get_or_insert_with(|| Bucket::full(limit, now)).told(limit, left, now);
    }
}

/// See the module docs.
#[derive(Debug)]
pub(super) struct RateLimiter {
    congestion_window: CongestionWindow,
    requests: MinuteLimit,
    tokens: MinuteLimit,
    asking: usize,
    /// Whether nothing is held back, whatever is reported.
    open: bool,
    /// Calls begun.
    begun: u64,
    /// Average reply tokens so far.
    reply: f64,
    replies: f64,
}

/// A user's declared limits for a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Requests per minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, of requests and replies.
    pub tokens_per_minute: Option<u32>,
}

impl RateLimiter {
    pub(super) fn new(connections: usize, model: &str, declared: Declared, shared: &Arc<SharedLimits>) -> Self {
        let limit = |what: &str, per_minute: Option<u32>| {
            MinuteLimit::declared(
                per_minute.map(|per_minute| Share::new(shared, format!("{model} {what}"), f64::from(per_minute))),
            )
        };
        RateLimiter {
            congestion_window: CongestionWindow::new(connections),
            requests: limit("requests", declared.requests_per_minute),
            tokens: limit("tokens", declared.tokens_per_minute),
            asking: 0,
            open: false,
            begun: 0,
            reply: 0.0,
            replies: 0.0,
        }
    }

    /// Creates one that lets everything through.
    pub(super) fn open() -> Self {
        let mut rate_limiter = RateLimiter::new(1, "", Declared::default(), &Arc::default());
        (rate_limiter.congestion_window.room, rate_limiter.congestion_window.most, rate_limiter.open) =
            (f64::INFINITY, f64::INFINITY, true);
        rate_limiter
    }

    /// Sets the maximum calls in progress.
    pub(super) fn most(&mut self, connections: usize) {
        if !self.open {
            self.congestion_window.most = connections as f64;
            self.congestion_window.room = self.congestion_window.room.min(self.congestion_window.most);
        }
    }

    /// Whether another call with this many tokens may start; else the minimum wait, if known.
    pub(super) fn room(&mut self, tokens: f64, now: Instant) -> Result<(), Option<Duration>> {
        if self.open {
            return Ok(());
        }
        if self.asking as f64 >= self.congestion_window.room.floor() {
            return Err(None);
        }
        let tokens = tokens + self.reply;
        match self.requests.wait(1.0, now).max(self.tokens.wait(tokens, now)) {
            Some(wait) => Err(Some(wait)),
            None => Ok(()),
        }
    }

    /// Starts a call with this many tokens; returns its number.
    pub(super) fn begin(&mut self, tokens: f64, now: Instant) -> u64 {
        self.requests.take(1.0, now);
        self.tokens.take(tokens + self.reply, now);
        self.asking += 1;
        self.begun += 1;
        self.begun
    }

    /// Ends a call, in any way.
    pub(super) fn end(&mut self) {
        self.asking = self.asking.saturating_sub(1);
    }

    /// Counts an answer with this many reply tokens.
    pub(super) fn answered(&mut self, tokens_out: f64) {
        self.congestion_window.answered();
        // The mean of about the last hundred.
        self.replies = (self.replies + 1.0).min(100.0);
        self.reply += (tokens_out - self.reply) / self.replies;
    }

    /// Handles the rejection of a call: too many at once, or too fast.
    pub(super) fn turned_away(&mut self, began: u64) {
        self.congestion_window.turned_away(began, self.begun + 1);
    }

    /// Takes the provider's reported limits.
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

    /// Describes the rate limit that calls wait for, if any.
    pub(super) fn limited(&mut self, now: Instant) -> Option<String> {
        let limits = [(&mut self.requests, 1.0, "requests"), (&mut self.tokens, 1.0 + self.reply, "tokens")];
        let limiting =
            limits.into_iter().find_map(|(limit, amount, what)| Some((limit.wait(amount, now)?, limit, what)));
        limiting.map(|(_, limit, what)| format!("a limit of {} {what} per minute", limit.per_minute()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_limiter(connections: usize, declared: Declared) -> RateLimiter {
        RateLimiter::new(connections, "m", declared, &Arc::default())
    }

    #[test]
    fn the_room_doubles_until_many_are_turned_away_and_is_cut_once_for_all_of_them() {
        let now = Instant::now();
        let mut rate_limiter = rate_limiter(64, Declared::default());
        let fill = |rate_limiter: &mut RateLimiter| {
            let mut numbers = Vec::new();
            while rate_limiter.room(1.0, now).is_ok() {
                numbers.push(rate_limiter.begin(1.0, now));
            }
            numbers
        };
        let mut sizes = Vec::new();
        for _ in 0..3 {
            let numbers = fill(&mut rate_limiter);
            sizes.push(numbers.len());
            numbers.iter().for_each(|_| {
                rate_limiter.end();
                rate_limiter.answered(1.0);
            });
        }
        assert_eq!(sizes, [16, 32, 64]);
        // All of them are rejected: one cut.
        let numbers = fill(&mut rate_limiter);
        numbers.iter().for_each(|n| {
            rate_limiter.end();
            rate_limiter.turned_away(*n);
        });
        let numbers = fill(&mut rate_limiter);
        assert_eq!(numbers.len(), 32);
        // From then on about one more each time.
        numbers.iter().for_each(|_| {
            rate_limiter.end();
            rate_limiter.answered(1.0);
        });
        rate_limiter.answered(1.0);
        assert_eq!(fill(&mut rate_limiter).len(), 32 + 1);
    }

    #[test]
    fn a_lane_without_a_bound_counts_like_any_other() {
        let mut rate_limiter = rate_limiter(usize::MAX, Declared::default());
        (0..10_000).for_each(|_| rate_limiter.answered(1.0));
        assert!(rate_limiter.congestion_window.answered > 0 && rate_limiter.congestion_window.room.is_finite());
    }

    #[test]
    fn a_stray_refusal_changes_nothing() {
        let now = Instant::now();
        let mut rate_limiter = rate_limiter(64, Declared::default());
        for n in 0..1000u64 {
            let number = rate_limiter.begin(1.0, now);
            rate_limiter.end();
            match n % 50 {
                49 => rate_limiter.turned_away(number),
                _ => rate_limiter.answered(1.0),
            }
        }
        assert!(rate_limiter.congestion_window.room >= 60.0, "{}", rate_limiter.congestion_window.room);
    }

    #[test]
    fn limits_that_are_declared_or_told_are_kept() {
        let now = Instant::now();
        let declared = Declared { requests_per_minute: Some(60), tokens_per_minute: Some(6000) };
        let mut rate_limiter = rate_limiter(1000, declared);
        let mut sent = 0;
        while rate_limiter.room(10.0, now).is_ok() {
            rate_limiter.begin(10.0, now);
            sent += 1;
        }
        assert_eq!(sent, 60);
        assert_eq!(rate_limiter.room(10.0, now), Err(Some(Duration::from_secs(1))));
        assert!(rate_limiter.limited(now).is_some_and(|words| words.contains("60 requests per minute")));
        // The provider reports that somebody else uses the key, too; it has not seen what was just sent.
        let later = now + Duration::from_secs(30);
        rate_limiter.told(RateLimits { requests: Some(Window { limit: 60.0, left: 2.0 }), tokens: None }, later);
        assert!(rate_limiter.room(1.0, later).is_ok());
        rate_limiter.begin(1.0, later);
        rate_limiter.told(RateLimits { requests: Some(Window { limit: 60.0, left: 2.0 }), tokens: None }, later);
        rate_limiter.begin(1.0, later);
        assert!(rate_limiter.room(1.0, later).is_err());
        // A limit above the declared one is ignored.
        rate_limiter.told(RateLimits { requests: Some(Window { limit: 6000.0, left: 6000.0 }), tokens: None }, later);
        assert!(rate_limiter.room(1.0, later).is_err());
    }
}
