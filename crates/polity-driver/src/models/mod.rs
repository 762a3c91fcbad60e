//! Models: who answers a request. One folder a provider.
//!
//! A provider turns one effect into one outcome and knows nothing of batches, retries, caches or budgets; those belong to the run.

pub mod anthropic;
pub mod batch;
mod capabilities;
mod choice;
mod form;
pub mod google;
pub mod human;
pub mod keys;
mod line;
#[cfg(feature = "local")]
pub mod local;
mod mend;
pub mod ollama;
pub mod openai;
pub mod openai_responses;
pub mod prices;
mod received;
mod remote;
mod reply;
mod secret;
pub mod sim;

pub use capabilities::Capabilities;
pub use choice::Held;
pub use line::{Home, LONGEST_ANSWER};
pub use received::{End, Ended, Received, Told};
pub use remote::{LONGEST_REPLY, Question, Remote, Settings, Turn, Wire};
pub use reply::read_reply;

use crate::tools::Tools;
use polity_kernel::ask::{Constrain, Effect, Outcome, Request, Usage};
use polity_kernel::scenario::Price;
use polity_kernel::tree::nearest;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// One question put and answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost.
    pub usage: Usage,
}

/// Why there was no exchange at all. A bad reply is no trouble: it is an [`Outcome`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Trouble {
    /// Asking again may help: a timeout, a limit on the rate, an overloaded server.
    #[error("{why}")]
    Retry {
        /// What happened.
        why: String,
        /// How long the provider asks to wait, in milliseconds.
        after_ms: Option<u64>,
        /// Whether it may have charged all the same: it had the question, and an answer was under way or may have been.
        charged: bool,
    },
    /// The provider has turned the question away before it looked at it: too many at once, or too fast. It costs nothing, is asked again,
    /// and less is asked at once.
    #[error("{why}")]
    Crowded {
        /// What happened.
        why: String,
        /// How long the provider asks to wait, in milliseconds.
        after_ms: Option<u64>,
    },
    /// The request was refused for its form, and the same question is to be put again at once: in the same form, to see whether it was a
    /// stray refusal, or in another one. It costs nothing.
    #[error("{why}")]
    Anew {
        /// What happened.
        why: String,
    },
    /// This question can not be answered; others may be.
    #[error("{why}")]
    Never {
        /// What happened.
        why: String,
    },
    /// Asking again can not help, whatever is asked: a wrong key, an unknown model. The run stops, and can be resumed.
    #[error("{why}")]
    Fatal {
        /// What happened and what to do.
        why: String,
    },
}

/// A limit on what may be sent a minute, as a provider tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// So much a minute.
    pub limit: f64,
    /// What is left of it now.
    pub left: f64,
}

/// What a provider has told of its limits on a model, with its last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateLimits {
    /// Requests.
    pub requests: Option<Window>,
    /// Tokens of requests and replies.
    pub tokens: Option<Window>,
}

/// The future of an exchange.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Exchange, Trouble>> + Send + 'a>>;

/// The future of what is known of a model.
pub type Probing<'a> = Pin<Box<dyn Future<Output = Option<Capabilities>> + Send + 'a>>;

/// A source of models.
pub trait Provider: Send + Sync {
    /// The part of a model's name before the slash.
    fn name(&self) -> &'static str;
    /// Other names that mean the same.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// The models it knows by name, in full (`sim/medium`). Most know none: whatever they are asked for may be there.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }
    /// Says before a run whether it has the model (full name); the error names the nearest one.
    fn check(&self, model: &str) -> Result<(), String>;
    /// Says before a run whether a model (full name) makes vectors of texts.
    fn makes_vectors(&self, model: &str) -> Result<(), String> {
        Err(no_vectors(self.name(), model))
    }
    /// The most that one exchange can take: tokens and dollars, from above. A budget sets it aside before it asks.
    fn most(&self, request: &Request) -> Usage;
    /// Whether its usage tells what calls cost. If not, prices say, as far as they are known: [`prices`].
    fn tells_costs(&self) -> bool {
        true
    }
    /// What a model (full name) costs where this provider asks it, as far as that is known before it is asked.
    fn list_price(&self, model: &str) -> Option<Price> {
        let _ = model;
        None
    }
    /// Whom it asks for a model (full name) and all that an answer depends on besides the request, without secrets: the same request there
    /// may share an answer. `None`: every effect is answered on its own.
    fn address(&self, model: &str) -> Option<String> {
        let _ = model;
        None
    }
    /// What a person is to know before it is asked for the first time: an address that is not its own, for instance.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    /// What it was last told of the limits on a model (full name), once; the run keeps within them.
    fn limits(&self, model: &str) -> Option<RateLimits> {
        let _ = model;
        None
    }
    /// The ways of holding a model (full name) to a form that its server is known to refuse, with what it said.
    fn refused(&self, model: &str) -> BTreeMap<Constrain, String> {
        let _ = model;
        BTreeMap::new()
    }
    /// Whether its answers are made up: runs that used it say so.
    fn simulated(&self) -> bool;
    /// What a model (full name) offers, as far as that can be known for nothing; `None` where nobody outside is asked. Trouble on the
    /// way is no failure: less is known then.
    fn probe<'a>(&'a self, model: &'a str) -> Probing<'a> {
        let _ = model;
        Box::pin(std::future::ready(None))
    }
    /// Its batches, if it has any: questions that may wait for a day are cheaper there.
    fn batching(&self) -> Option<&dyn batch::Batching> {
        None
    }
    /// Puts the question. `seed` is the run's; what is drawn here uses it.
    fn answer<'a>(&'a self, effect: &'a Effect, seed: u64) -> Answering<'a>;
}

/// What is said of a model that makes no vectors of texts.
fn no_vectors(provider: &str, model: &str) -> String {
    format!(
        "`{model}`: `{provider}/...` makes no vectors of texts (embeddings). Name one that does: `openai/text-embedding-3-small`, a model of any \
         server that speaks that wire, with OPENAI_BASE_URL, or `local/FOLDER`, in builds with the feature `local`"
    )
}

/// Providers whose place is kept and that this build does not have.
const LATER: [&str; 1] = ["vllm"];
/// The provider of models inside the process, which only some builds have.
const LOCAL: &str = "local";

/// The providers of a build.
pub struct Providers {
    all: Vec<Box<dyn Provider>>,
    /// Where calls are made, of all runs that have these providers. Its thread does nothing else: runs come and go (a sweep has many at once)
    /// and compute between their calls, and a connection that nobody serves in the meantime would look like a server that hangs.
    runtime: OnceLock<std::io::Result<Runtime>>,
}

impl Drop for Providers {
    fn drop(&mut self) {
        // Without waiting, which is not allowed everywhere.
        if let Some(Ok(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Providers {
    /// All that this build has.
    #[must_use]
    pub fn standard() -> Self {
        Providers::within(None)
    }

    /// The same, where the answer to a request may take so long.
    #[must_use]
    pub fn within(timeout: Option<Duration>) -> Self {
        fn remote<W: Wire>(timeout: Option<Duration>) -> Box<dyn Provider> {
            Box::new(Remote::<W>::standard().within(timeout))
        }
        Providers::of(vec![
            Box::new(sim::Sim::standard()),
            remote::<openai::Chat>(timeout),
            remote::<openai_responses::Responses>(timeout),
            remote::<anthropic::Messages>(timeout),
            remote::<google::GenerateContent>(timeout),
            remote::<ollama::Chat>(timeout),
            Box::new(human::Human),
            Box::new(Tools::standard()),
            #[cfg(feature = "local")]
            Box::new(local::Local::standard()),
        ])
    }

    /// Providers of your own, asked in this order.
    #[must_use]
    pub fn of(providers: Vec<Box<dyn Provider>>) -> Self {
        Providers { all: providers, runtime: OnceLock::new() }
    }

    /// Where calls are made.
    pub(crate) fn runtime(&self) -> Result<&Handle, String> {
        // One thread serves thousands of connections; more only wake each other.
        let open = || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).thread_name("polity-calls").enable_all().build()
        };
        match self.runtime.get_or_init(open) {
            Ok(runtime) => Ok(runtime.handle()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Every model known by name.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        self.all.iter().flat_map(|provider| provider.models()).collect()
    }

    /// The provider of a model (`provider/model`), which has been checked to have it.
    pub fn for_model(&self, model: &str) -> Result<&dyn Provider, String> {
        let Some((name, _)) = model.split_once('/') else {
            return Err(format!("a model is named `provider/model`, for instance `sim/medium`, not `{model}`"));
        };
        let named = || self.all.iter().find(|provider| provider.name() == name);
        // Names first: most models are named so, and this is asked for every call.
        if let Some(provider) = named().or_else(|| self.all.iter().find(|provider| provider.aliases().contains(&name)))
        {
            provider.check(model)?;
            return Ok(provider.as_ref());
        }
        let known: Vec<&str> = self.all.iter().map(|provider| provider.name()).collect();
        let have = known.iter().map(|name| format!("`{name}/...`")).collect::<Vec<_>>().join(", ");
        if name == LOCAL {
            return Err(format!(
                "`{model}`: this build has no models inside the process: build it with `cargo build --release --features local`. Or ask a \
                 server on this machine: `ollama/...`, or `openai/...` with OPENAI_BASE_URL"
            ));
        }
        if LATER.contains(&name) {
            return Err(format!(
                "`{model}`: this build has no provider `{name}`; providers other than {have} come with a later version. \
                 A server that speaks OpenAI's wire is asked as `openai/...` with OPENAI_BASE_URL set; or use a simulated model, \
                 for instance `sim/medium`"
            ));
        }
        let meant = nearest(name, known).map(|near| format!(", did you mean `{near}/...`?")).unwrap_or_default();
        Err(format!("`{model}`: there is no provider `{name}`{meant} (this build has {have})"))
    }
}
