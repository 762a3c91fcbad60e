//! The registry: all leaves that a build knows, by kind and name.
//!
//! The catalogue's part is generated from its folders. A crate of your own adds its leaves with the same calls.

use crate::cohort::CohortPolicy;
use crate::environment::{self, AsWorld, DeclareEnvironment, Env, Environment};
use crate::method::{self, Facts, Method, MethodHost, Methods, PROMPTS, TeamSetup};
use crate::metric::{self, Metric, MetricHost, Source};
use crate::policy::{self, Policy, PolicyHost, PolicySetup, Prompts, Variants};
use crate::population::Population;
use crate::scenario::Inputs;
use crate::tool::{AskingToolkit, OutsideToolkit, PureToolkit, ToolSpec};
use crate::toolbox::Host;
use crate::topology::Topology;
use crate::tree::{Invalid, Key, Node, TreeError, unknown_kind};
use crate::world::{
    AskingWorld, DeclareSplit, DeclareWorld, SplitHost, SplitWorld, TimedWorld, WholeHost, World, WorldHost, WorldSetup,
};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The texts in a leaf's folder, beside its code.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafFiles {
    /// `README.md`: source, equations, what is reproduced.
    pub readme: &'static str,
    /// `scenario.yaml`: a small society that exercises the leaf. The conformance suite runs it.
    pub scenario: &'static str,
    /// `golden.json`: the expected result of that society.
    pub golden: &'static str,
    /// `cite.bib`: the BibTeX entries of its sources; may be empty.
    pub cite: &'static str,
    /// Templates: `mind/*.md` of a world, its prompts for model-driven agents; `prompts/*.md` of other leaves.
    pub prompts: Prompts,
    /// The folder in which the leaf was built. Files that the scenario names are relative to it.
    pub folder: &'static str,
}

/// Parameters of a leaf that has nothing to set.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Params", description = "There is nothing to set.")]
pub struct NoParams {}

/// The list entry of a leaf.
#[derive(Clone, Debug, Serialize)]
pub struct LeafInfo {
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

type OpenWorld = Box<dyn Fn(&Node, &str, &WorldSetup<'_>) -> Result<Box<dyn WorldHost>, TreeError> + Send + Sync>;
type OpenPolicy = Box<dyn Fn(&Node, &str, &PolicySetup<'_>) -> Result<Arc<dyn PolicyHost>, TreeError> + Send + Sync>;
type OpenMethod = Box<dyn Fn(&Node, &str, &TeamSetup<'_>) -> Result<Box<dyn MethodHost>, TreeError> + Send + Sync>;
type OpenEnvironment = Box<dyn Fn(&Node, &str, &WorldSetup<'_>) -> Result<Env, TreeError> + Send + Sync>;
type OpenToolkit = Box<dyn Fn(&Node, &str, &ToolkitSetup<'_>) -> Result<Opened, TreeError> + Send + Sync>;
type OpenMetric = Box<dyn Fn(&Node, &str, &Source<'_>) -> Result<Box<dyn MetricHost>, TreeError> + Send + Sync>;

/// The tools of an open toolkit, and who makes its calls.
type Opened = (Vec<ToolSpec>, Host);

/// What a toolkit is opened with, besides its parameters.
pub(crate) struct ToolkitSetup<'a> {
    pub inputs: &'a Inputs,
    /// The tools that it listed itself before the run.
    pub listed: Option<&'a [ToolSpec]>,
    /// The scenario's model.
    pub model: Option<&'a str>,
}

struct KindRegistry<Open> {
    what: &'static str,
    leaves: BTreeMap<&'static str, (LeafInfo, Open)>,
}

impl<Open> KindRegistry<Open> {
    fn new(what: &'static str) -> Self {
        KindRegistry { what, leaves: BTreeMap::new() }
    }

    fn put<P: schemars::JsonSchema>(
        &mut self,
        name: &'static str,
        summary: &'static str,
        files: LeafFiles,
        open: Open,
    ) {
        let parameters = serde_json::to_value(schemars::schema_for!(P)).unwrap_or_default();
        self.leaves.insert(name, (LeafInfo { name, summary, parameters, files }, open));
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

    fn cards(&self) -> Vec<&LeafInfo> {
        self.leaves.values().map(|(card, _)| card).collect()
    }
}

/// All leaves of a build.
/// ```
/// use polity_kernel::registry::Registry;
///
/// // Empty; `polity::registry()` has all that are in the box, and `registry.policy::<Own>(files)` adds one of your own.
/// let registry = Registry::new();
/// assert!(registry.worlds().is_empty() && registry.method_named("debate").is_none());
/// ```
pub struct Registry {
    worlds: KindRegistry<OpenWorld>,
    policies: KindRegistry<OpenPolicy>,
    methods: KindRegistry<OpenMethod>,
    metrics: KindRegistry<OpenMetric>,
    environments: KindRegistry<OpenEnvironment>,
    toolkits: KindRegistry<OpenToolkit>,
    /// Further facts of each method.
    facts: BTreeMap<&'static str, Facts>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |cards: Vec<&LeafInfo>| cards.iter().map(|card| card.name).collect::<Vec<_>>();
        let mut all = f.debug_struct("Registry");
        all.field("worlds", &names(self.worlds())).field("policies", &names(self.policies()));
        all.field("methods", &names(self.methods())).field("metrics", &names(self.metrics())).finish()
    }
}

impl Default for Registry {
    fn default() -> Self {
        Registry::new()
    }
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Registry {
            worlds: KindRegistry::new("world"),
            policies: KindRegistry::new("policy"),
            methods: KindRegistry::new("method"),
            metrics: KindRegistry::new("metric"),
            environments: KindRegistry::new("environment"),
            toolkits: KindRegistry::new("toolkit"),
            facts: BTreeMap::new(),
        }
    }

    /// Returns a world's prompts for model-driven agents.
    pub(crate) fn prompts(&self, world: &str) -> Prompts {
        self.worlds.leaves.get(world).map_or(&[], |(card, _)| card.files.prompts)
    }

    /// Adds a world whose state is split over the agents.
    pub fn split_world<W: SplitWorld>(&mut self, files: LeafFiles) {
        self.put_split_world(files, SplitHost::<W>::new);
    }

    /// Adds a world whose state is split over the agents and which has events in time.
    pub fn timed_world<W: TimedWorld>(&mut self, files: LeafFiles) {
        self.put_split_world(files, SplitHost::<W>::timed);
    }

    fn put_split_world<W: SplitWorld>(&mut self, files: LeafFiles, host: fn(W, DeclareSplit<W>) -> SplitHost<W>) {
        self.worlds.put::<W::Params>(
            W::NAME,
            W::SUMMARY,
            files,
            Box::new(move |node, path, setup| {
                let mut declare = DeclareSplit::<W>::default();
                let world =
                    W::open(node.read(path)?, setup, &mut declare).and_then(|world| declare.check().map(|()| world));
                let world = world.map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(host(world, declare)))
            }),
        );
    }

    /// Adds a world whose state is in one place.
    pub fn world<W: World>(&mut self, files: LeafFiles) {
        self.put_world(files, WholeHost::<W>::new);
    }

    /// Adds a world whose state is in one place and which asks models itself.
    pub fn asking_world<W: AskingWorld>(&mut self, files: LeafFiles) {
        self.put_world(files, WholeHost::<W>::asking);
    }

    /// Adds a world whose state is in one place, under another name than its type's, with a function that opens it. So one type can be
    /// several worlds, made from data. It replaces a world of the same name.
    ///
    /// ```
    /// # use polity_kernel::{Invalid, interface::ActionArgument, rng::Draws};
    /// # use polity_kernel::world::{AgentActions, DeclareWorld, Future, World, WorldSetup};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Hall {}
    /// # impl World for Hall {
    /// #     const NAME: &'static str = "hall";
    /// #     const SUMMARY: &'static str = "Agents clap";
    /// #     type Params = Hall;
    /// #     type State = ();
    /// #     fn open(hall: Hall, _: &WorldSetup<'_>, _: &mut DeclareWorld<Self>) -> Result<Self, Invalid> { Ok(hall) }
    /// #     fn init_state(&self, _: &WorldSetup<'_>, _: &mut Draws) {}
    /// #     fn apply(&self, (): &mut (), _: &AgentActions<'_>, _: &mut Future) {}
    /// #     fn end_round(&self, (): &mut (), _: &mut Draws) -> Option<String> { None }
    /// # }
    /// let mut registry = polity_kernel::registry::Registry::new();
    /// registry.world_named("great-hall", "Agents clap in a great hall", |hall: Hall, _, declare| {
    ///     declare.action("clap", ActionArgument::Nothing, "clap");
    ///     Ok(hall)
    /// });
    /// assert_eq!(registry.worlds()[0].name, "great-hall");
    /// ```
    pub fn world_named<W: World>(
        &mut self,
        name: &'static str,
        summary: &'static str,
        open: impl Fn(W::Params, &WorldSetup<'_>, &mut DeclareWorld<W>) -> Result<W, Invalid> + Send + Sync + 'static,
    ) {
        self.worlds.put::<W::Params>(
            name,
            summary,
            LeafFiles::default(),
            Box::new(move |node, path, setup| {
                let mut declare = DeclareWorld::<W>::default();
                let world = open(node.read(path)?, setup, &mut declare)
                    .and_then(|world| declare.check().map(|()| world))
                    .map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(WholeHost::<W>::new(world, declare)))
            }),
        );
    }

    fn put_world<W: World>(&mut self, files: LeafFiles, host: fn(W, DeclareWorld<W>) -> WholeHost<W>) {
        self.worlds.put::<W::Params>(
            W::NAME,
            W::SUMMARY,
            files,
            Box::new(move |node, path, setup| {
                let mut declare = DeclareWorld::<W>::default();
                let world =
                    W::open(node.read(path)?, setup, &mut declare).and_then(|world| declare.check().map(|()| world));
                let world = world.map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(host(world, declare)))
            }),
        );
    }

    /// Adds a policy.
    pub fn policy<P: Policy>(&mut self, files: LeafFiles) {
        self.put_policy(files, false, policy::Host::<P>::new);
    }

    /// Adds a policy with a cohort step.
    pub fn cohort_policy<P: CohortPolicy>(&mut self, files: LeafFiles) {
        self.put_policy(files, true, policy::Host::<P>::with_cohort_step);
    }

    /// Adds a policy with a cohort step, under another name than its type's, with a function that opens it. So one type can be several
    /// policies, made from data. It replaces a policy of the same name.
    pub fn cohort_policy_named<P: CohortPolicy>(
        &mut self,
        name: &'static str,
        summary: &'static str,
        open: impl Fn(P::Params, &PolicySetup<'_>) -> Result<P, Invalid> + Send + Sync + 'static,
    ) {
        self.policies.put::<P::Params>(
            name,
            summary,
            LeafFiles::default(),
            Box::new(move |node, path, setup| {
                let policies = policy::open_variants(node, path, setup, true, &open)?;
                Ok(Arc::new(policy::Host::<P>::with_cohort_step(policies)))
            }),
        );
    }

    /// `whole`: whether it has a cohort step.
    fn put_policy<P: Policy>(&mut self, files: LeafFiles, whole: bool, host: fn(Variants<P>) -> policy::Host<P>) {
        self.policies.put::<P::Params>(
            P::NAME,
            P::SUMMARY,
            files,
            Box::new(move |node, path, setup| {
                let policies = policy::open_variants(node, path, setup, whole, &P::open)?;
                Ok(Arc::new(host(policies)))
            }),
        );
    }

    /// Adds a method.
    pub fn method<M: Method>(&mut self, files: LeafFiles) {
        let facts = Facts {
            short: M::SHORT,
            usual: M::DEFAULT_TEAM,
            form: M::TAXONOMY,
            tools: M::TOOLS,
            roles: M::ROLES,
            quantities: M::QUANTITIES,
            records: M::RECORDS,
            prompts: M::PROMPTS,
        };
        self.facts.insert(M::NAME, facts);
        self.methods.put::<M::Params>(
            M::NAME,
            M::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let TeamSetup { members, rounds, texts } = *setup;
                let (prompts, node) = method::Prompts::take(M::NAME, M::PROMPTS, node, path, texts)?;
                let method = M::open(node.read(path)?, members, rounds).map_err(|invalid| node.blame(path, invalid))?;
                Ok(Box::new(method::Host { method, prompts: Arc::new(prompts) }))
            }),
        );
        if let Some((card, _)) = self.methods.leaves.get_mut(M::NAME)
            && let Some(properties) = card.parameters.as_object_mut()
        {
            let properties = properties.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(PROMPTS.into(), method::schema_of(M::NAME, M::PROMPTS));
            }
        }
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

    /// Adds an environment: a task for teams, and a world under the same name.
    pub fn environment<E: Environment>(&mut self, files: LeafFiles) {
        self.world::<AsWorld<E>>(files);
        self.environments.put::<E::Params>(
            E::NAME,
            E::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let mut declare = DeclareEnvironment::<E>::default();
                let opened = E::open(node.read(path)?, setup, &mut declare)
                    .and_then(|environment| declare.check().map(|()| environment));
                let environment = opened.map_err(|invalid| node.blame(path, invalid))?;
                Ok(Env(Arc::new(environment::Host::new(environment, declare))))
            }),
        );
    }

    /// Adds a toolkit whose results follow from the arguments and from files of the scenario.
    pub fn toolkit<T: PureToolkit>(&mut self, files: LeafFiles) {
        self.toolkits.put::<T::Params>(
            T::NAME,
            T::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let toolkit = T::open(node.read(path)?, setup.inputs).map_err(|invalid| node.blame(path, invalid))?;
                Ok((toolkit.tools(), Host::Pure(Box::new(toolkit))))
            }),
        );
    }

    /// Adds a toolkit whose calls are questions to models or people.
    pub fn asking_toolkit<T: AskingToolkit>(&mut self, files: LeafFiles) {
        self.toolkits.put::<T::Params>(
            T::NAME,
            T::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let toolkit = T::open(node.read(path)?, setup.model).map_err(|invalid| node.blame(path, invalid))?;
                Ok((toolkit.tools(), Host::Asking(Box::new(toolkit))))
            }),
        );
    }

    /// Adds the declaration of a toolkit whose calls are effects.
    pub fn outside_toolkit<T: OutsideToolkit>(&mut self, files: LeafFiles) {
        self.toolkits.put::<T::Params>(
            T::NAME,
            T::SUMMARY,
            files,
            Box::new(|node, path, setup| {
                let tools = T::tools(node.read(path)?, setup.listed).map_err(|invalid| node.blame(path, invalid))?;
                Ok((tools, Host::Outside))
            }),
        );
    }

    /// Returns the toolkits, by name.
    #[must_use]
    pub fn toolkits(&self) -> Vec<&LeafInfo> {
        self.toolkits.cards()
    }

    /// Opens a toolkit, from its node without the keys that the scenario itself reads.
    pub(crate) fn open_toolkit(
        &self,
        kind: &Key,
        rest: &Node,
        path: &str,
        setup: &ToolkitSetup<'_>,
    ) -> Result<Opened, TreeError> {
        self.toolkits.find(kind, path)?(rest, path, setup)
    }

    /// Returns the environments, by name. Each is also a world.
    #[must_use]
    pub fn environments(&self) -> Vec<&LeafInfo> {
        self.environments.cards()
    }

    /// Returns all leaves by kind, like their folders. An environment is also a world, but is listed only as an environment. Toolkits
    /// whose calls the driver makes are no leaves of the catalogue; see [`Registry::toolkits`].
    #[must_use]
    pub fn leaves(&self) -> [(&'static str, Vec<&LeafInfo>); 6] {
        let worlds = self.worlds().into_iter().filter(|card| !self.environments.leaves.contains_key(card.name));
        let toolkits = self.toolkits().into_iter().filter(|card| !card.files.folder.is_empty());
        [
            ("worlds", worlds.collect()),
            ("environments", self.environments()),
            ("policies", self.policies()),
            ("methods", self.methods()),
            ("metrics", self.metrics()),
            ("toolkits", toolkits.collect()),
        ]
    }

    /// Returns the example scenario of a leaf, if there is a leaf of that name; a world before a policy of the same name.
    #[must_use]
    pub fn example(&self, name: &str) -> Option<&'static str> {
        let mut all = self.leaves().into_iter().flat_map(|(_, cards)| cards);
        all.find(|card| card.name == name && !card.files.scenario.is_empty()).map(|card| card.files.scenario)
    }

    /// Returns the worlds, by name, including environments.
    #[must_use]
    pub fn worlds(&self) -> Vec<&LeafInfo> {
        self.worlds.cards()
    }

    /// Returns the policies, by name.
    #[must_use]
    pub fn policies(&self) -> Vec<&LeafInfo> {
        self.policies.cards()
    }

    /// Returns the methods, by name.
    #[must_use]
    pub fn methods(&self) -> Vec<&LeafInfo> {
        self.methods.cards()
    }

    /// Returns the name of a method, given its name or its short name.
    #[must_use]
    pub fn method_named(&self, name: &str) -> Option<&'static str> {
        self.facts.iter().find(|(own, facts)| **own == name || facts.short == Some(name)).map(|(own, _)| *own)
    }

    /// Returns the facts of a method besides its card.
    #[must_use]
    pub fn facts(&self, method: &str) -> Option<&Facts> {
        self.facts.get(method)
    }

    /// Returns the metrics, by name.
    #[must_use]
    pub fn metrics(&self) -> Vec<&LeafInfo> {
        self.metrics.cards()
    }

    pub(crate) fn open_world(
        &self,
        node: &Node,
        path: &str,
        setup: &WorldSetup<'_>,
    ) -> Result<(String, Box<dyn WorldHost>), TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        Ok((kind.name.clone(), self.worlds.find(&kind, path)?(&rest, path, setup)?))
    }

    /// Opens an environment: `{kind: NAME}` with its parameters, or the name alone.
    ///
    /// ```
    /// # use polity_kernel::{items::Item, registry::Registry, tree::Node};
    /// # fn play(registry: &Registry) -> Result<(), Box<dyn std::error::Error>> {
    /// let env = registry.make_env(&Node::from_json(&serde_json::json!({"kind": "matrix-game", "repeat": 10})))?;
    /// let mut episode = env.begin(&Item::default(), 42, 0);
    /// while !episode.is_done() {
    ///     let mut moves = Vec::new();
    ///     for seat in 0..env.seats() {
    ///         moves.extend(episode.offered(seat)?.first().map(|action| action.with(seat, Vec::new())));
    ///     }
    ///     println!("{:?}", episode.step(&moves)?.rewards);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An unknown name, or parameters that do not fit.
    pub fn make_env(&self, node: &Node) -> Result<Env, TreeError> {
        self.open_environment(node, "environment", &BTreeMap::new())
    }

    /// Opens an environment for a team. `texts`: those of the scenario's files, by path.
    pub(crate) fn open_environment(
        &self,
        node: &Node,
        path: &str,
        texts: &BTreeMap<String, Arc<str>>,
    ) -> Result<Env, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        let (population, topology) = (Population::empty(1), Topology::Complete { n: 1 });
        let setup = WorldSetup { agents: 1, population: &population, topology: &topology, lag: 0, seats: &[], texts };
        self.environments.find(&kind, path)?(&rest, path, &setup)
    }

    pub(crate) fn open_policy(
        &self,
        node: &Node,
        path: &str,
        setup: &PolicySetup<'_>,
    ) -> Result<Arc<dyn PolicyHost>, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        let opened = self.policies.find(&kind, path)?(&rest, path, setup);
        opened.map_err(|error| at_kind(error, path, &kind, setup.world))
    }

    /// Opens a metric from its node, without the keys that the scenario itself reads.
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

impl Methods for Registry {
    fn facts(&self, method: &str) -> Option<&Facts> {
        Registry::facts(self, method)
    }

    fn open_method(&self, node: &Node, path: &str, setup: &TeamSetup<'_>) -> Result<Box<dyn MethodHost>, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        self.methods.find(&kind, path)?(&rest, path, setup)
    }
}

/// Points an error that blames the `kind` of the policy at `path`, which is no longer in its map, at the place of `kind`: the policy
/// does not fit the world.
fn at_kind(mut error: TreeError, path: &str, kind: &Key, world: &str) -> TreeError {
    if error.path.strip_prefix(path) == Some(".kind") {
        error.origin = kind.origin.clone();
        error.message = format!("the policy `{}` does not fit this world: {}", kind.name, error.message);
        error.help = Some(format!("`polity explain {world}` lists the policies that fit this world"));
    }
    error
}
