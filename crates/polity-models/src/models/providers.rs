//! The providers of a build.

use super::provider::LOCAL;
use super::provider::Provider;
use super::remote::Remote;
use super::wire::Wire;
use super::{anthropic, google, human, ollama, openai, openai_responses, reader, recorded, sim};
use crate::tools::Tools;
use polity_kernel::tree::nearest;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// Reserved provider names that this build lacks.
const LATER: [&str; 1] = ["vllm"];

/// The providers of a build.
pub struct Providers {
    all: Vec<Arc<dyn Provider>>,
    runtime: Arc<CallRuntime>,
}

/// The runtime of all calls of all runs that share these providers. Its thread does nothing else: the runs of a sweep start, end and
/// compute between their calls, and an unattended connection would look like a hanging server.
#[derive(Default)]
struct CallRuntime(OnceLock<std::io::Result<Runtime>>);

impl Drop for CallRuntime {
    fn drop(&mut self) {
        // Without waiting, which is not allowed everywhere.
        if let Some(Ok(runtime)) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Providers {
    /// Creates all providers of this build.
    #[must_use]
    pub fn standard() -> Self {
        Providers::within(None)
    }

    /// The same with a timeout for each answer.
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
            Box::new(recorded::Recordings),
            Box::new(reader::Reader),
            Box::new(human::Human),
            Box::new(Tools::standard()),
            #[cfg(feature = "local")]
            Box::new(super::local::Local::standard()),
        ])
    }

    /// Creates a set of your own providers, tried in this order.
    #[must_use]
    pub fn of(providers: Vec<Box<dyn Provider>>) -> Self {
        Providers { all: providers.into_iter().map(Arc::from).collect(), runtime: Arc::default() }
    }

    /// Adds providers, which are tried first; one with the name of a built-in provider replaces it.
    #[must_use]
    pub fn with(mut self, others: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        let all = others.into_iter().chain(std::mem::take(&mut self.all)).collect();
        self.all = all;
        self
    }

    /// The same providers, and `first`, which is tried before them. Both sets share the runtime of calls.
    #[must_use]
    pub fn behind(&self, first: Arc<dyn Provider>) -> Self {
        let all = std::iter::once(first).chain(self.all.iter().cloned()).collect();
        Providers { all, runtime: self.runtime.clone() }
    }

    /// The runtime for calls.
    pub fn runtime(&self) -> Result<&Handle, String> {
        // One thread serves thousands of connections; more threads only wake each other.
        let open = || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).thread_name("polity-calls").enable_all().build()
        };
        match self.runtime.0.get_or_init(open) {
            Ok(runtime) => Ok(runtime.handle()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Every model known by name.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        self.all.iter().flat_map(|provider| provider.models()).collect()
    }

    /// The provider of a model (`provider/model`), after checking that it has the model. Whether it has a key is not checked.
    pub fn for_model(&self, model: &str) -> Result<&dyn Provider, String> {
        let Some((name, _)) = model.split_once('/') else {
            return Err(format!("a model is named `provider/model`, for instance `sim/medium`, not `{model}`"));
        };
        let named = || self.all.iter().find(|provider| provider.name() == name);
        // Names first: most models are named this way, and this runs for every call.
        if let Some(provider) = named().or_else(|| self.all.iter().find(|provider| provider.aliases().contains(&name)))
        {
            provider.check_name(model)?;
            return Ok(provider.as_ref());
        }
        let known: Vec<&str> = self.all.iter().map(|provider| provider.name()).collect();
        let have = known.iter().map(|name| format!("`{name}/...`")).collect::<Vec<_>>().join(", ");
        if name == LOCAL {
            return Err(format!(
                "`{model}`: this build has no models inside the process. Build it with `cargo build --release \
                 --features local`, or use a server on this machine: `ollama/...`, or `openai/...` with \
                 OPENAI_BASE_URL"
            ));
        }
        if LATER.contains(&name) {
            return Err(format!(
                "`{model}`: this build has no provider `{name}`; providers other than {have} come with a later \
                 version. For a server with OpenAI's API, name the model `openai/...` and set OPENAI_BASE_URL; or use \
                 a simulated model, for instance `sim/medium`"
            ));
        }
        let meant = nearest(name, known).map(|near| format!(", did you mean `{near}/...`?")).unwrap_or_default();
        Err(format!("`{model}`: there is no provider `{name}`{meant} (this build has {have})"))
    }
}
