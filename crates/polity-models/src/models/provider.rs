//! What a provider is: it turns one effect into one outcome.

use super::capabilities::Capabilities;
use polity_kernel::ask::{Constrain, Effect, Outcome, Request, Usage};
use polity_kernel::scenario::Price;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

/// A request and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// How it ended.
    pub outcome: Outcome,
    /// Its cost.
    pub usage: Usage,
    /// What the model thought, if its server shows it. It is no part of the reply.
    pub reasoning: Option<String>,
}

/// Why there was no exchange. A bad reply is not an error but an [`Outcome`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProviderError {
    /// A retry may help: a timeout, a rate limit, an overloaded server.
    #[error("{why}")]
    Retry {
        /// What happened.
        why: String,
        /// How long the provider asks to wait, in milliseconds.
        after_ms: Option<u64>,
        /// Whether it may have charged anyway: it received the request and may have started an answer.
        charged: bool,
    },
    /// The provider rejected the request before processing it: too many at once, or too fast. It costs nothing, is retried, and
    /// concurrency is reduced.
    #[error("{why}")]
    RateLimited {
        /// What happened.
        why: String,
        /// How long the provider asks to wait, in milliseconds.
        after_ms: Option<u64>,
    },
    /// The request was rejected for its form and must be sent again at once: in the same form, in case the rejection was accidental, or
    /// in another one. It costs nothing.
    #[error("{why}")]
    Anew {
        /// What happened.
        why: String,
    },
    /// This request cannot be answered; others may be.
    #[error("{why}")]
    Never {
        /// What happened.
        why: String,
    },
    /// No request can be answered: a wrong key, an unknown model. The run stops, and can be resumed.
    #[error("{why}")]
    Fatal {
        /// What happened and what to do.
        why: String,
    },
}

/// A rate limit reported by a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The limit per minute.
    pub limit: f64,
    /// What is left now.
    pub left: f64,
}

/// The rate limits on a model, as last reported by its provider.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<Window>,
    /// Tokens of requests and replies.
    pub tokens: Option<Window>,
}

/// The future of an exchange.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Exchange, ProviderError>> + Send + 'a>>;

/// The future of a model's capabilities.
pub type Probing<'a> = Pin<Box<dyn Future<Output = Option<Capabilities>> + Send + 'a>>;

/// A source of models.
pub trait Provider: Send + Sync {
    /// The part of a model's name before the slash.
    fn name(&self) -> &str;
    /// Other names that mean the same.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// The models it knows by name, in full (`sim/medium`). Most providers know none, and accept any name.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }
    /// Checks before a run that it has the model (full name); the error suggests the nearest one.
    fn check(&self, model: &str) -> Result<(), String>;
    /// Checks the name of a model (full name) alone, for commands that call no model and so need no key.
    fn check_name(&self, model: &str) -> Result<(), String> {
        self.check(model)
    }
    /// Checks before a run that a model (full name) makes embeddings.
    fn makes_vectors(&self, model: &str) -> Result<(), String> {
        Err(no_vectors(self.name(), model))
    }
    /// Upper bound of one exchange in tokens and dollars. A budget reserves it before the call.
    fn most(&self, request: &Request) -> Usage;
    /// Whether its usage includes costs. If not, known prices apply: [`prices`](super::prices).
    fn tells_costs(&self) -> bool {
        true
    }
    /// The list price of a model (full name) at this provider's address, if known in advance.
    fn list_price(&self, model: &str) -> Option<Price> {
        let _ = model;
        None
    }
    /// The server for a model (full name) and everything else that affects an answer besides the request, without secrets: equal requests
    /// there may share an answer. `None`: every effect is answered separately.
    fn address(&self, model: &str) -> Option<String> {
        let _ = model;
        None
    }
    /// Warnings before the first call, such as an address that is not its own.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Takes the last reported rate limits on a model (full name); the run keeps within them.
    fn limits(&self, model: &str) -> Option<RateLimits> {
        let _ = model;
        None
    }
    /// The constraint modes its server is known to refuse for a model (full name), with its messages.
    fn refused(&self, model: &str) -> BTreeMap<Constrain, String> {
        let _ = model;
        BTreeMap::new()
    }
    /// Whether its answers are simulated; runs that used it say so.
    fn simulated(&self) -> bool;
    /// Whether a request may be sent again after a try that may have been answered. If not, such a try is the last: the request fails, and
    /// says so.
    fn repeatable(&self, request: &Request) -> bool {
        let _ = request;
        true
    }
    /// Whether it answers at once, without a connection.
    fn immediate(&self) -> bool {
        self.simulated()
    }
    /// The capabilities of a model (full name), as far as they are free to find out; `None` for providers without a server. A
    /// ProviderError on the way is not a failure: less is known then.
    fn probe<'a>(&'a self, model: &'a str) -> Probing<'a> {
        let _ = model;
        Box::pin(std::future::ready(None))
    }
    /// Its batches, if any: cheaper, for requests that can wait for a day.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }
    /// Sends the request. `seed` is the run's; random draws here use it.
    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a>;
}

/// The error for a model that makes no embeddings.
pub(super) fn no_vectors(provider: &str, model: &str) -> String {
    format!(
        "`{model}`: `{provider}/...` makes no embeddings of texts. Name a model that does: \
         `openai/text-embedding-3-small`, a model of any server with the same API (set OPENAI_BASE_URL), or \
         `local/FOLDER` in builds with the feature `local`"
    )
}

/// The future of a provider operation.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;

/// The result of each request by line name: an exchange, or why there is none.
pub type Results = BTreeMap<String, Result<Exchange, ProviderError>>;

/// A provider's batches.
pub trait Batching: Send + Sync {
    /// Maximum requests of a batch, and maximum bytes of its lines.
    fn holds(&self) -> (usize, usize);
    /// A request as a line of a batch. `name`: letters, digits and hyphens, 64 at most, unique in the batch.
    fn line(&self, name: &str, effect: &Effect) -> Result<String, ProviderError>;
    /// Sends lines, all for one model (full name), as a batch of this name; returns its id. [`ProviderError::Retry`] with `charged`: the
    /// batch may exist anyway.
    fn send<'a>(&'a self, name: &'a str, model: &'a str, lines: &'a [String]) -> Doing<'a, String>;
    /// Looks for a batch that may have been sent, by its name, its number of lines, and its time (in milliseconds since 1970). Its line
    /// names start with its own.
    fn find<'a>(&'a self, name: &'a str, lines: usize, since_ms: u64) -> Doing<'a, Found>;
    /// The status of a batch.
    fn standing<'a>(&'a self, id: &'a str) -> Doing<'a, Standing>;
    /// The results of a finished batch; `asked` are the requests to look up, by line name.
    fn results<'a>(&'a self, from: &'a [Vec<String>], asked: &'a BTreeMap<String, &'a Effect>) -> Doing<'a, Results>;
}

/// Whether a batch exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It exists, under this id.
    There(String),
    /// It does not exist.
    Absent,
    /// A candidate exists; only its results will tell.
    Unsure,
}

/// The status of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its id.
    pub id: String,
    /// The name with which it was sent, if the wire keeps it.
    pub name: Option<String>,
    /// Number of requests counted so far.
    pub lines: usize,
    /// Of these, how many are answered or failed.
    pub ended: usize,
    /// Creation time, in milliseconds since 1970.
    pub made_ms: u64,
    /// How long the provider asks to wait before the next poll, in milliseconds.
    pub after_ms: Option<u64>,
    /// Whether its results are available.
    pub state: State,
}

/// Whether a batch's results are available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not yet.
    Working,
    /// They are, at these paths; a request in none of them has no result.
    Ended(Vec<Vec<String>>),
    /// There will be no results; nothing was charged.
    Failed {
        /// In the provider's words.
        why: String,
        /// Whether only too much was queued at once.
        crowded: bool,
    },
}

/// The provider of models inside the process, included only in some builds.
pub(super) const LOCAL: &str = "local";
