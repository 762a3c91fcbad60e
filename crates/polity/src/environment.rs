//! What a run needs besides its scenario. Apart from the leaves and the models, none of it affects results.

use polity_driver::drive::Stop;
use polity_driver::run::Engine;
use polity_driver::source::{Notes, Outside};
use polity_kernel::ask::Request;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_models::models::{InProcess, Provider, Providers, Reply};
use polity_store::disk::{Disk, RealDisk};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The default number of calls in flight, as for the command.
const CONNECTIONS: usize = 100;

#[derive(Clone)]
pub(crate) struct Environment {
    pub registry: Arc<Registry>,
    pub disk: Arc<dyn Disk>,
    pub providers: Vec<Arc<dyn Provider>>,
    /// Functions that answer as models, by the name of their provider.
    pub functions: BTreeMap<String, InProcess>,
    pub shards: usize,
    pub connections: usize,
    pub memory: Option<u64>,
    pub timeout: Option<Duration>,
    pub cache: Option<PathBuf>,
    /// Whether the scenario's tools may start programs and ask the hosts that it lists.
    pub allow_tools: bool,
}

impl Default for Environment {
    fn default() -> Self {
        Environment {
            registry: Arc::new(crate::registry()),
            disk: Arc::new(RealDisk),
            providers: Vec::new(),
            functions: BTreeMap::new(),
            shards: 1,
            connections: CONNECTIONS,
            memory: None,
            timeout: None,
            cache: None,
            allow_tools: false,
        }
    }
}

impl Environment {
    /// Adds a model that is a function.
    pub fn add_model<R: Into<Reply>>(&mut self, name: &str, answer: impl Fn(&Request) -> R + Send + Sync + 'static) {
        let (provider, model) = name.split_once('/').map_or((name, None), |(provider, own)| (provider, Some(own)));
        let known = self.functions.remove(provider).unwrap_or_else(|| InProcess::new(provider));
        self.functions.insert(provider.to_owned(), known.with(model, answer));
    }

    pub fn engine(&self, budget: Budget, stop: Stop, notes: Notes) -> Engine<'_> {
        let functions = self.functions.values().map(|provider| Arc::new(provider.clone()) as Arc<dyn Provider>);
        let others = self.providers.iter().cloned().chain(functions);
        Engine {
            registry: &self.registry,
            providers: Arc::new(Providers::within(self.timeout).with(others)),
            disk: self.disk.clone(),
            shards: self.shards,
            spread: None,
            connections: self.connections,
            memory: self.memory,
            budget,
            outside: Outside { cache: self.cache.clone(), allow_tools: self.allow_tools, notes, ..Outside::default() },
            faults: None,
            stop,
            asks: true,
        }
    }

    /// Returns an engine that only reads.
    pub fn reader(&self) -> Engine<'_> {
        self.engine(Budget::default(), Stop::default(), Notes::default())
    }
}
