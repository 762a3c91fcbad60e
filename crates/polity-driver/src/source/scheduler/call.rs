//! A request as the scheduler holds it.

use crate::source::cache::Key;
use polity_kernel::ask::Effect;
use std::time::Instant;

/// A request on its way to a provider. Boxed, since it is moved often.
pub(in crate::source) type Call = Box<Question>;

/// See [`Call`].
pub(in crate::source) struct Question {
    pub effect: Effect,
    /// Identifies requests that may share its answer.
    pub key: Option<Key>,
    /// Its priority, if the schedule uses it.
    pub(super) rank: i32,
    pub(super) model_queue: usize,
    /// Approximate tokens of the request.
    pub(super) tokens: f64,
    /// When it was requested.
    pub(super) since: Instant,
    /// When it was last sent.
    pub(super) sent: Instant,
    /// Its call number at its rate limiter.
    pub(super) number: u64,
    /// Whether it is sent in a batch, without a connection.
    pub batched: bool,
    pub(super) tries: Tries,
}

/// The tries of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct Tries {
    /// Failed tries.
    pub(super) failed: u32,
    /// Of these, those since the last one that only had to wait its turn.
    pub(super) streak: u32,
    /// When the streak began.
    pub(super) since: Option<Instant>,
    /// Completed exchanges of the run before the last try.
    pub(super) answered: u64,
    /// Whether the server has said how long to wait.
    pub(super) told: bool,
    /// When the request arrived.
    pub(super) came: Option<Instant>,
}
