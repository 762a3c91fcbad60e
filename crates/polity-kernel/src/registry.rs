//! The registry: all leaves that a build knows, by kind and name.
//!
//! The catalogue's part is generated from its folders; a crate of your own adds its leaves with the same calls.

use crate::council::Council;
use crate::declare::{DeclareSplit, DeclareWorld};
use crate::method::{self, Facts, Method, MethodHost};
use crate::metric::{self, Metric, MetricHost, Source};
use crate::policy::{self, Binding, Policy, PolicyHost};
use crate::tree::{Key, Node, TreeError, unknown_kind};
use crate::world::{Setup, SplitHost, SplitWorld, WholeHost, World, WorldHost};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Templates by name: `rules`, `observation`, `question`.
pub type Prompts = &'static [(&'static str, &'static str)];

/// The texts that lie beside a leaf's code in its folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafFiles {
    /// `README.md`: source, equations, what is reproduced.
    pub readme: &'static str,
    /// `scenario.yaml`: a small society that exercises the leaf; the conformance suite runs it.
    pub scenario: &'static str,
    /// `golden.json`: what that society must give.
    pub golden: &'static str,
    /// `cite.bib`: the BibTeX entries of its sources; empty where there are none.
    pub cite: &'static str,
    /// Templates: `mind/*.md` of a world, which is what it says to model-driven agents; `prompts/*.md` of other leaves.
    pub prompts: Prompts,
    /// The folder itself, where the leaf was built: files that the scenario names are found from here.
    pub folder: &'static str,
}

/// What a list shows of a leaf.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// JSON Schema of its parameters.
    pub parameters: serde_json::Value,
    /// The texts beside its code.
    #[serde(skip)]
    pub files: LeafFiles,
}

type OpenWorld = Box<dyn Fn(&Node, &str, &Setup<'_>) -> Result<Box<dyn WorldHost>, TreeError> + Send + Sync>;
type OpenPolicy = Box<dyn Fn(&Node, &str, &Binding<'_>) -> Result<Arc<dyn PolicyHost>, TreeError> + Send + Sync>;
type OpenMethod = Box<dyn Fn(&Node, &str, usize, u32) -> Result<Box<dyn MethodHost>, TreeError> + Send + Sync>;
type OpenMetric = Box<dyn Fn(&Node, &str, &Source<'_>) -> Result<Box<dyn MetricHost>, TreeError> + Send + Sync>;

struct Shelf<Open> {
    what: &'static str,
    leaves: BTreeMap<&'static str, (Card, Open)>,
}

impl<Open> Shelf<Open> {
    fn new(what: &'static str) -> Self {
        Shelf { what, leaves: BTreeMap::new() }
    }

    fn put<P: schemars::JsonSchema>(
        &mut self,
        name: &'static str,
        summary: &'static str,
        files: LeafFiles,
        open: Open,
    ) {
        let parameters = serde_json::to_value(schemars::schema_for!(P)).unwrap_or_default();
        self.leaves.insert(name, (Card { name, summary, parameters, files }, open));
    }

    fn find(&self, kind: &Key, path: &str) -> Result<&Open, TreeError> {
        match self.leaves.get(kind.name.as_str()) {
            Some((_, open)) => Ok(open),
            None => {
                let known: Vec<&str> = self.leaves.keys().copied().collect();
                Err(unknown_kind(self.what, &kind.name, &known, path, kind.origin.clone()))
            }
        }
    }

    fn cards(&self) -> Vec<&Card> {
        self.leaves.values().map(|(card, _)| card).collect()
    }
}

/// All leaves of a build.
pub struct Registry {
    worlds: Shelf<OpenWorld>,
    policies: Shelf<OpenPolicy>,
    methods: Shelf<OpenMethod>,
    metrics: Shelf<OpenMetric>,
    /// What is said of each method besides.
    facts: BTreeMap<&'static str, Facts>,
}

impl Default for Registry {
    fn default() -> Self {
        Registry::new()
    }
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Registry {
            worlds: Shelf::new("world"),
            policies: Shelf::new("policy"),
            methods: Shelf::new("method"),
            metrics: Shelf::new("metric"),
            facts: BTreeMap::new(),
        }
    }

    /// What a world says to model-driven agents.
    pub(crate) fn prompts(&self, world: &str) -> Prompts {
        self.worlds.leaves.get(world).map_or(&[], |(card, _)| card.files.prompts)
    }

    /// Adds a world whose state is split over the agents.
    pub fn split_world<W: SplitWorld>(&mut self, files: LeafFiles) {
        self.worlds.put::<W::Params>(
            W::NAME,
            W::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let mut declare = DeclareSplit::<W>::default();
                let world =
                    W::open(node.read(path)?, setup, &mut declare).and_then(|world| declare.check().map(|()| world));
                let world = world.map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(SplitHost::new(world, declare)))
            }),
        );
    }

    /// Adds a world whose state lies in one place.
    pub fn world<W: World>(&mut self, files: LeafFiles) {
        self.worlds.put::<W::Params>(
            W::NAME,
            W::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let mut declare = DeclareWorld::<W>::default();
                let world =
                    W::open(node.read(path)?, setup, &mut declare).and_then(|world| declare.check().map(|()| world));
                let world = world.map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(WholeHost::new(world, declare)))
            }),
        );
    }

    /// Adds a policy.
    pub fn policy<P: Policy>(&mut self, files: LeafFiles) {
        self.put_policy(files, policy::Host::<P>::new);
    }

    /// Adds a policy whose agents hold council.
    pub fn council<P: Council>(&mut self, files: LeafFiles) {
        self.put_policy(files, policy::Host::<P>::in_council);
    }

    fn put_policy<P: Policy>(&mut self, files: LeafFiles, host: fn(P) -> policy::Host<P>) {
        self.policies.put::<P::Params>(
            P::NAME,
            P::SUMMARY,
            files,
            Box::new(move |node, path, binding| {
                let policy = P::open(node.read(path)?, binding).map_err(|invalid| node.blame(path, invalid))?;
                Ok(Arc::new(host(policy)))
            }),
        );
    }

    /// Adds a method.
    pub fn method<M: Method>(&mut self, files: LeafFiles) {
        let facts = Facts {
            short: M::SHORT,
            usual: M::USUAL,
            form: M::FORM,
            tools: M::TOOLS,
            quantities: M::QUANTITIES,
            records: M::RECORDS,
        };
        self.facts.insert(M::NAME, facts);
        self.methods.put::<M::Params>(
            M::NAME,
            M::SUMMARY,
            files,
            Box::new(|node, path, members, rounds| {
                let method = M::open(node.read(path)?, members, rounds).map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(method::Host(method)))
            }),
        );
    }

    /// Adds a metric.
    pub fn metric<M: Metric>(&mut self, files: LeafFiles) {
        self.metrics.put::<M::Params>(
            M::NAME,
            M::SUMMARY,
            files,
            Box::new(|node, path, source| {
                let metric = M::open(node.read(path)?, source).map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(metric::Host(metric)))
            }),
        );
    }

    /// The worlds, by name.
    #[must_use]
    pub fn worlds(&self) -> Vec<&Card> {
        self.worlds.cards()
    }

    /// The policies, by name.
    #[must_use]
    pub fn policies(&self) -> Vec<&Card> {
        self.policies.cards()
    }

    /// The methods, by name.
    #[must_use]
    pub fn methods(&self) -> Vec<&Card> {
        self.methods.cards()
    }

    /// The name of a method by that or by its short name.
    #[must_use]
    pub fn method_named(&self, name: &str) -> Option<&'static str> {
        self.facts.iter().find(|(own, facts)| **own == name || facts.short == Some(name)).map(|(own, _)| *own)
    }

    /// What is said of a method besides its card.
    #[must_use]
    pub fn facts(&self, method: &str) -> Option<&Facts> {
        self.facts.get(method)
    }

    /// The metrics, by name.
    #[must_use]
    pub fn metrics(&self) -> Vec<&Card> {
        self.metrics.cards()
    }

    pub(crate) fn open_world(
        &self,
        node: &Node,
        path: &str,
        setup: &Setup<'_>,
    ) -> Result<(String, Box<dyn WorldHost>), TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        Ok((kind.name.clone(), self.worlds.find(&kind, path)?(&rest, path, setup)?))
    }

    pub(crate) fn open_policy(
        &self,
        node: &Node,
        path: &str,
        binding: &Binding<'_>,
    ) -> Result<Arc<dyn PolicyHost>, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        self.policies.find(&kind, path)?(&rest, path, binding).map_err(|error| at_kind(error, &kind))
    }

    pub(crate) fn open_method(
        &self,
        node: &Node,
        path: &str,
        members: usize,
        rounds: u32,
    ) -> Result<Box<dyn MethodHost>, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        self.methods.find(&kind, path)?(&rest, path, members, rounds)
    }

    /// Opens a metric from its node without the keys that the scenario itself reads.
    pub(crate) fn open_metric(
        &self,
        kind: &Key,
        rest: &Node,
        path: &str,
        source: &Source<'_>,
    ) -> Result<Box<dyn MetricHost>, TreeError> {
        self.metrics.find(kind, path)?(rest, path, source)
    }
}

/// A leaf that does not fit its society blames `kind`, which its own map no longer holds: point at the kind's own place.
fn at_kind(mut error: TreeError, kind: &Key) -> TreeError {
    if error.path.ends_with(".kind") {
        error.origin = kind.origin.clone();
        error.help = None;
    }
    error
}
