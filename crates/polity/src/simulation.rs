//! A simulation that is yet to run: a scenario, and how to run it.

use crate::environment::Environment;
use crate::error::{Error, Result, Written};
use crate::events::{Event, Flow, Handler, Observer, StopHandle};
use crate::run::Run;
use crate::sweep::{Sweep, Unwatched, limits};
use polity_driver::drive::Stop;
use polity_driver::run::{Prepared, SetKey, fork_folder, new_folder, other_models, prepare, seed_of};
use polity_driver::source::Notes;
use polity_driver::sweep;
use polity_kernel::ask::Request;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_kernel::tree::{Node, Origin, TreeError, Value, nearest, parse_path};
use polity_models::models::{Provider, Reply};
use polity_store::disk::SimDisk;
use polity_store::files::{self, Reach, yaml};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where a run starts.
#[derive(Clone)]
enum Start {
    Scenario(Scenario),
    Resume(PathBuf),
    Fork { folder: PathBuf, at: u32 },
}

#[derive(Clone)]
struct Scenario {
    tree: Node,
    /// The source's name in the manifest.
    source: String,
    written: Option<Written>,
    /// The folder in which the scenario's files are looked up.
    folder: PathBuf,
    /// The name of a scenario that states none.
    stem: String,
}

#[derive(Clone)]
struct Edit {
    set: SetKey,
    /// Whether the edit applies to a forked run as a whole.
    whole: bool,
}

/// A simulation that is yet to run: a scenario, and how to run it.
///
/// Create it from a file, a text or a value, change it step by step, and then [run](Simulation::run) or [start](Simulation::spawn) it. A
/// clone is an independent simulation, so that one scenario can run with many seeds.
///
/// ```
/// use polity::Simulation;
/// use serde_json::json;
///
/// let simulation = Simulation::from_value(json!({
///     "name": "guess", "rounds": 10, "agents": 100,
///     "world": {"kind": "guess-average", "fraction": 0.5},
///     "cohorts": [{"policy": {"kind": "adaptive", "rate": 0.5}}],
///     "metrics": [{"kind": "mean", "of": "guess"}]
/// }))?;
/// let run = simulation.seed(7).set("world.fraction", 0.6)?.in_memory().run()?;
/// assert_eq!((run.rounds(), run.agents()), (10, 100));
/// assert!(run.metric("guess.mean")? < 50.0);
/// # Ok::<(), polity::Error>(())
/// ```
#[must_use = "a simulation does nothing before it is run"]
pub struct Simulation {
    start: Start,
    /// Edits of the scenario, in order.
    edits: Vec<Edit>,
    /// The budget of a resumed run, in place of its scenario's.
    budget: Budget,
    environment: Environment,
    allowed: Vec<PathBuf>,
    out: Option<PathBuf>,
    handler: Option<Handler>,
    stop: Stop,
}

/// A clone has its own stop handle.
impl Clone for Simulation {
    fn clone(&self) -> Self {
        Simulation {
            start: self.start.clone(),
            edits: self.edits.clone(),
            budget: self.budget.clone(),
            environment: self.environment.clone(),
            allowed: self.allowed.clone(),
            out: self.out.clone(),
            handler: self.handler.clone(),
            stop: Stop::default(),
        }
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.start {
            Start::Scenario(scenario) => scenario.source.clone(),
            Start::Resume(folder) => format!("resume {}", folder.display()),
            Start::Fork { folder, at } => format!("fork {} at {at}", folder.display()),
        };
        f.debug_struct("Simulation").field("of", &what).field("out", &self.out).finish_non_exhaustive()
    }
}

/// Why a resumed run refuses changes.
const KEEPS: &str = "a resumed run keeps its scenario; fork it to change the scenario";
/// Why a fork refuses changes.
const BEGINS: &str = "a fork keeps the beginning of its run, with its seed and its agents; to change them, start a new \
    run of the scenario";

fn refused(path: &str, message: String) -> Error {
    Error::scenario(TreeError { message, path: path.into(), origin: Origin::Built, help: None }, None)
}

/// Constructors.
impl Simulation {
    fn new(start: Start, environment: Environment) -> Self {
        Simulation {
            start,
            edits: Vec::new(),
            budget: Budget::default(),
            environment,
            allowed: Vec::new(),
            out: None,
            handler: None,
            stop: Stop::default(),
        }
    }

    /// Reads a scenario from a YAML file. Files that it names are looked up from the file's folder.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or is not YAML. Errors in the scenario itself are returned when it is run, or by
    /// [`Simulation::validate`].
    ///
    /// ```
    /// use polity::Simulation;
    /// # let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("guess.yaml");
    /// std::fs::write(&file, "
    /// rounds: 3
    /// agents: 20
    /// world: {kind: guess-average}
    /// cohorts: [{policy: {kind: level-k, mean: 1.5}}]
    /// ")?;
    /// let run = Simulation::from_file(&file)?.out(folder.path().join("first")).run()?;
    /// assert_eq!(run.name(), "guess");
    /// assert!(folder.path().join("first/manifest.json").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (text, tree) = files::read_file(path)?;
        let name = path.display().to_string();
        Ok(Self::new(
            Start::Scenario(Scenario {
                tree,
                source: name.clone(),
                written: Some(Written { name, text }),
                folder: path.parent().unwrap_or(Path::new(".")).to_path_buf(),
                stem: path.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned()),
            }),
            Environment::default(),
        ))
    }

    /// Reads a scenario from YAML text. Files that it names are looked up from the current folder.
    ///
    /// # Errors
    /// [`Error::Scenario`] if the text is not YAML, with its line and column.
    ///
    /// ```
    /// let error = polity::Simulation::from_yaml("rounds: 3\nagents: [").unwrap_err();
    /// assert!(error.to_string().starts_with("the scenario's text:2:9: "), "{error}");
    /// ```
    pub fn from_yaml(text: &str) -> Result<Self> {
        let written = Written { name: "the scenario's text".into(), text: text.into() };
        let tree = yaml::parse(text).map_err(|error| Error::scenario(error, Some(&written)))?;
        Ok(Self::of_tree(tree, "(text)", Some(written)))
    }

    /// Takes the example scenario of a leaf in the box, by the leaf's name. Files that it names are looked up from the current folder.
    ///
    /// # Errors
    /// [`Error::NoExample`] for a name that no leaf has.
    ///
    /// ```
    /// let run = polity::Simulation::example("guess-average")?.in_memory().run()?;
    /// assert_eq!(run.name(), "guess-average");
    /// let error = polity::Simulation::example("gues-average").unwrap_err();
    /// assert!(error.to_string().contains("did you mean `guess-average`?"), "{error}");
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn example(name: &str) -> Result<Self> {
        let registry = crate::registry();
        let Some(text) = registry.example(name) else {
            let all = registry.leaves().into_iter().flat_map(|(_, cards)| cards).map(|card| card.name);
            let near = nearest(name, all).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(Error::NoExample(format!("there is no scenario `{name}` in the box{near}")));
        };
        let written = Written { name: name.into(), text: text.into() };
        let tree = yaml::parse(text).map_err(|error| Error::scenario(error, Some(&written)))?;
        Ok(Self::of_tree(tree, name, Some(written)))
    }

    /// Creates a scenario from a value: `serde_json::json!({...})`, or anything that serialises to such a map. Files that it names are
    /// looked up from the current folder.
    ///
    /// # Errors
    /// [`Error::Value`] if the value has no JSON form.
    ///
    /// ```
    /// #[derive(serde::Serialize)]
    /// struct Scenario {
    ///     rounds: u32,
    ///     agents: u32,
    ///     world: World,
    ///     cohorts: Vec<serde_json::Value>,
    /// }
    /// #[derive(serde::Serialize)]
    /// struct World {
    ///     kind: &'static str,
    ///     fraction: f64,
    /// }
    /// let world = World { kind: "guess-average", fraction: 0.5 };
    /// let cohorts = vec![serde_json::json!({"policy": {"kind": "noise"}})];
    /// let scenario = Scenario { rounds: 2, agents: 10, world, cohorts };
    /// let run = polity::Simulation::from_value(scenario)?.in_memory().run()?;
    /// assert_eq!(run.scenario()["world"]["fraction"], 0.5);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn from_value(scenario: impl Serialize) -> Result<Self> {
        Ok(Self::of_tree(Node::from_json(&serde_json::to_value(scenario)?), "(value)", None))
    }

    fn of_tree(tree: Node, source: &str, written: Option<Written>) -> Self {
        let scenario =
            Scenario { tree, source: source.into(), written, folder: PathBuf::from("."), stem: "run".into() };
        Self::new(Start::Scenario(scenario), Environment::default())
    }

    pub(crate) fn resuming(folder: &Path, environment: Environment) -> Self {
        Self::new(Start::Resume(folder.into()), environment)
    }

    pub(crate) fn forking(folder: &Path, at: u32, environment: Environment) -> Self {
        Self::new(Start::Fork { folder: folder.into(), at }, environment)
    }
}

/// Settings of the scenario.
impl Simulation {
    /// Sets a key of the scenario by its path, `world.fraction`, `cohorts[0].policy.mean` or `cohorts.thinkers.policy.mean`, as the
    /// command's `-P PATH=VALUE` does. In a fork it applies from the forked round on. A resumed run keeps its scenario.
    ///
    /// # Errors
    /// [`Error::Scenario`] for an impossible path, and for a resumed run.
    ///
    /// ```
    /// # let scenario = "{rounds: 1, agents: 5, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
    /// let simulation = polity::Simulation::from_yaml(scenario)?;
    /// let error = simulation.clone().set("cohorts[3].share", 1).unwrap_err();
    /// assert_eq!(error.path(), Some("cohorts"));
    /// let run = simulation.set("cohorts[0].policy", serde_json::json!({"kind": "level-k", "mean": 2}))?;
    /// assert!(run.in_memory().run()?.is_done());
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn set(mut self, path: &str, value: impl Into<serde_json::Value>) -> Result<Self> {
        let json = value.into();
        let node = Node { origin: Origin::Edit(format!("{path}={json}").into()), ..Node::from_json(&json) };
        match &self.start {
            Start::Scenario(scenario) => {
                let mut tree = self.edited(scenario)?;
                tree.edit(path, node.clone()).map_err(|error| Error::scenario(error, None))?;
            }
            Start::Fork { .. } => drop(parse_path(path).map_err(|message| refused(path, message))?),
            Start::Resume(_) => return Err(refused(path, KEEPS.into())),
        }
        self.edits.push(Edit { set: (path.into(), node), whole: false });
        Ok(self)
    }

    /// Refuses changes that a resumed run or a fork does not allow.
    fn check_changes(&self) -> Result<()> {
        let wrong = self.edits.iter().find_map(|Edit { set: (path, _), whole }| match &self.start {
            _ if path.starts_with("budget.") => None,
            Start::Resume(_) => Some((path, KEEPS)),
            Start::Fork { .. } if *whole && path != "rounds" => Some((path, BEGINS)),
            _ => None,
        });
        wrong.map_or(Ok(()), |(path, why)| Err(refused(path, why.into())))
    }

    /// Returns the scenario with the edits so far.
    fn edited(&self, scenario: &Scenario) -> Result<Node> {
        let mut tree = scenario.tree.clone();
        for Edit { set: (path, value), .. } in &self.edits {
            tree.edit(path, value.clone()).map_err(|error| Error::scenario(error, None))?;
        }
        Ok(tree)
    }

    fn flag(mut self, flag: &str, path: &str, value: Value, shown: impl std::fmt::Display) -> Self {
        let node = Node { value, origin: Origin::Edit(format!("--{flag} {shown}").into()) };
        self.edits.push(Edit { set: (path.into(), node), whole: true });
        self
    }

    fn count(self, flag: &str, path: &str, n: u64) -> Self {
        // A number beyond i64 is more than anybody can spend or count.
        self.flag(flag, path, Value::Int(i64::try_from(n).unwrap_or(i64::MAX)), n)
    }

    /// Sets the seed of all random numbers. The same scenario with the same seed gives the same run, to the last byte.
    ///
    /// ```
    /// # let scenario = "{rounds: 2, agents: 9, world: {kind: guess-average}, cohorts: [{policy: {kind: noise}}]}";
    /// let simulation = polity::Simulation::from_yaml(scenario)?.in_memory();
    /// let digest = |seed| Ok::<_, polity::Error>(simulation.clone().seed(seed).run()?.digest().to_string());
    /// assert_eq!(digest(7)?, digest(7)?);
    /// assert_ne!(digest(7)?, digest(8)?);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn seed(self, seed: u64) -> Self {
        self.count("seed", "seed", seed)
    }

    /// Sets the number of agents at the start; in an evaluation, the size of the team.
    pub fn agents(self, agents: u32) -> Self {
        self.count("agents", "agents", agents.into())
    }

    /// Sets the number of rounds.
    pub fn rounds(self, rounds: u32) -> Self {
        self.count("rounds", "rounds", rounds.into())
    }

    /// Uses one model, `provider/model`, for all calls, including those of team members and policies that name another.
    pub fn ask(mut self, model: &str) -> Self {
        let node = Node { value: Value::Text(model.into()), origin: Origin::Edit(format!("--model {model}").into()) };
        if let Start::Scenario(scenario) = &self.start {
            let others = other_models(&scenario.tree, &node).into_iter();
            self.edits.extend(others.map(|set| Edit { set, whole: false }));
        }
        self.edits.push(Edit { set: ("model".into(), node), whole: false });
        self
    }

    /// Sets the maximum cost of the scenario's calls, in US dollars. A call is made only if its maximum cost fits.
    pub fn max_cost(mut self, dollars: f64) -> Self {
        self.budget.cost_usd = Some(dollars);
        self.flag("max-cost", "budget.cost_usd", Value::Float(dollars), dollars)
    }

    /// Sets the maximum number of tokens, in requests and replies together.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.budget.tokens = Some(tokens);
        self.count("max-tokens", "budget.tokens", tokens)
    }

    /// Sets the maximum number of model calls. When they are used up, the run stops with the status
    /// [`RunStatus::Budget`](crate::RunStatus::Budget), and can be resumed with more.
    ///
    /// ```
    /// # let scenario = "
    /// # {rounds: 5, agents: 3, model: sim/small, world: {kind: guess-average}, cohorts: [{policy: {kind: mind}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.max_calls(4).in_memory().run()?;
    /// assert_eq!(run.status(), polity::RunStatus::Budget);
    /// assert!(run.totals().calls <= 4 && run.rounds() < 5);
    /// let run = run.resume().max_calls(100).run()?;
    /// assert!(run.is_done());
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.budget.calls = Some(calls);
        self.count("max-calls", "budget.calls", calls)
    }

    /// Sets the maximum wall time of this process. Then it finishes what is in flight, saves and stops.
    pub fn max_time(mut self, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        self.budget.seconds = Some(seconds);
        self.flag("max-time", "budget.seconds", Value::Float(seconds), seconds)
    }
}

/// Settings of the execution.
impl Simulation {
    /// Sets the run's folder, which must not hold a run. The default is `runs/NAME-SEED` below the current folder, with a number appended
    /// if it is taken.
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out = Some(folder.into());
        self
    }

    /// Keeps the run's folder in memory: nothing is written to disk, and everything is gone with the [`Run`]. Resumed runs and forks are
    /// stored where their run is.
    pub fn in_memory(mut self) -> Self {
        if matches!(self.start, Start::Scenario(_)) {
            self.environment.disk = Arc::new(SimDisk::default());
        }
        self
    }

    /// Sets the folder in which files named by a scenario from a text or a value are looked up.
    pub fn relative_to(mut self, folder: impl Into<PathBuf>) -> Self {
        if let Start::Scenario(scenario) = &mut self.start {
            scenario.folder = folder.into();
        }
        self
    }

    /// Lets the scenario read files below this folder, too, besides those below its own.
    pub fn allow_read(mut self, folder: impl Into<PathBuf>) -> Self {
        self.allowed.push(folder.into());
        self
    }

    /// Lets the scenario's tools start programs (MCP servers) and ask the hosts that they list. Without it such a scenario is refused.
    pub fn allow_tools(mut self) -> Self {
        self.environment.allow_tools = true;
        self
    }

    /// Uses the leaves of this registry instead of those of [`registry`](crate::registry): your own worlds, policies, methods and
    /// metrics.
    ///
    /// ```
    /// use polity::kernel::policy::{PolicySetup, Fault, Person, Policy, Turn};
    /// use polity::kernel::{Invalid, registry::LeafFiles, rng::Draws};
    ///
    /// /// Names the same number every time.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Stubborn {
    ///     number: f64,
    /// }
    ///
    /// impl Policy for Stubborn {
    ///     const NAME: &'static str = "stubborn";
    ///     const SUMMARY: &'static str = "The same number every time";
    ///     type Params = Stubborn;
    ///     type State = u16; // The act that carries a number.
    ///
    ///     fn open(policy: Stubborn, society: &PolicySetup<'_>) -> Result<Self, Invalid> {
    ///         let (_, low, high) = society.number_act()?;
    ///         Invalid::within(low..=high, "number", policy.number)?;
    ///         Ok(policy)
    ///     }
    ///     fn init_state(&self, _: Person<'_>, _: &mut Draws) -> u16 {
    ///         0
    ///     }
    ///     async fn act(&self, act: &mut u16, turn: &mut Turn<'_>) -> Result<(), Fault> {
    ///         turn.act(*act, self.number);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut registry = polity::registry();
    /// registry.policy::<Stubborn>(LeafFiles::default());
    /// let run = polity::Simulation::from_yaml("
    /// rounds: 2
    /// agents: 5
    /// world: {kind: guess-average}
    /// cohorts: [{policy: {kind: stubborn, number: 40}}]
    /// metrics: [{kind: mean, of: guess}]
    /// ")?.registry(registry).in_memory().run()?;
    /// assert_eq!(run.metric("guess.mean")?, 40.0);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn registry(mut self, registry: impl Into<Arc<Registry>>) -> Self {
        self.environment.registry = registry.into();
        self
    }

    /// Adds a model that is a function of this program. `name` is `provider/model`; with a provider's name alone the function answers for
    /// all of its models. It is called on its own threads, several calls at once, and may block. It costs nothing.
    ///
    /// The function receives the whole [`Request`]: the conversation, and the kind of answer that is wanted. It returns a text or
    /// anything that converts into a [`Reply`]. A reply that does not fit is sent back to the model for another try, as with any model.
    ///
    /// ```
    /// use polity::{Simulation, kernel::ask::{Request, ResponseFormat}};
    ///
    /// fn halfway(request: &Request) -> Result<f64, String> {
    ///     match &request.response_format {
    ///         ResponseFormat::Number { low, high, .. } => Ok((low + high) / 2.0),
    ///         other => Err(format!("this model knows numbers only, not {other:?}")),
    ///     }
    /// }
    ///
    /// let run = Simulation::from_yaml("
    /// rounds: 1
    /// agents: 3
    /// model: mine/halfway
    /// world: {kind: guess-average, low: 0, high: 100}
    /// cohorts: [{policy: {kind: mind}}]
    /// metrics: [{kind: mean, of: guess}]
    /// ")?.model("mine/halfway", halfway).in_memory().run()?;
    /// assert_eq!(run.metric("guess.mean")?, 50.0);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn model<R: Into<Reply>>(mut self, name: &str, answer: impl Fn(&Request) -> R + Send + Sync + 'static) -> Self {
        self.environment.add_model(name, answer);
        self
    }

    /// Adds your own provider of models. It replaces a built-in provider of the same name.
    pub fn provider(mut self, provider: Box<dyn Provider>) -> Self {
        self.environment.providers.push(Arc::from(provider));
        self
    }

    /// Splits a society over several shards, which may compute in parallel. Does not affect results.
    pub fn shards(mut self, shards: usize) -> Self {
        self.environment.shards = shards.max(1);
        self
    }

    /// Sets the maximum number of calls in flight (default: 100). Does not affect results.
    pub fn connections(mut self, most: usize) -> Self {
        self.environment.connections = most.max(1);
        self
    }

    /// Sets the maximum memory of a run, in MB (10^6 bytes). A run with a greater estimate does not start.
    pub fn memory(mut self, mb: u64) -> Self {
        self.environment.memory = Some(mb);
        self
    }

    /// Sets the timeout of one request.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.environment.timeout = Some(timeout);
        self
    }

    /// Caches models' answers in a folder, across runs.
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.environment.cache = Some(folder.into());
        self
    }

    /// Calls `handler` for every event, on the run's thread, which waits for it. A handler that returns
    /// [`ControlFlow::Break`](std::ops::ControlFlow::Break) stops the run.
    ///
    /// ```
    /// use polity::{Event, RunStatus, Simulation};
    /// use std::ops::ControlFlow;
    ///
    /// # let scenario = "{rounds: 100, agents: 20, world: {kind: guess-average}, metrics: [{kind: mean, of: guess}],
    /// # cohorts: [{policy: {kind: adaptive, rate: 0.5}}]}";
    /// let settled = |event| match event {
    ///     Event::Round { metrics, .. } if metrics["guess.mean"] < 1.0 => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// };
    /// let run = Simulation::from_yaml(scenario)?.on_event(settled).in_memory().run()?;
    /// assert_eq!(run.status(), RunStatus::Stopped);
    /// assert!(run.rounds() < 100 && run.metric("guess.mean")? < 1.0);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn on_event<F: Into<Flow>>(mut self, mut handler: impl FnMut(Event) -> F + Send + 'static) -> Self {
        self.handler = Some(Arc::new(Mutex::new(move |event| handler(event).into())));
        self
    }

    /// Returns a handle that stops the run from elsewhere in the program. Clones of a simulation have their own handles.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.stop.clone())
    }
}

/// Running.
impl Simulation {
    fn prepared(&self, scenario: &Scenario) -> Result<Prepared> {
        let Scenario { tree, source, written, folder, stem } = scenario;
        let reach = Reach::of(folder, &self.allowed);
        let edits = self.edits.iter().map(|edit| edit.set.clone()).collect();
        prepare(tree.clone(), source, reach, stem, edits).map_err(|error| Error::of(error, written.as_ref()))
    }

    /// Checks the scenario without running it: every key, the files that it names, its models, its memory.
    ///
    /// # Errors
    /// [`Error::Scenario`] names the path of the error and where it was written; [`Error::Run`] is any other obstacle. Resumed runs and
    /// forks are checked when they are run.
    ///
    /// ```
    /// let text = "
    /// rounds: 3
    /// agents: 5
    /// world: {kind: guess-avrage}
    /// cohorts: [{policy: {kind: noise}}]";
    /// let error = polity::Simulation::from_yaml(text)?.validate().unwrap_err();
    /// assert!(error.to_string().starts_with("the scenario's text:4:15: world: there is no world `guess-avrage`; did you mean"));
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn validate(&self) -> Result<()> {
        let Start::Scenario(scenario) = &self.start else { return Ok(()) };
        let prepared = self.prepared(scenario)?;
        let engine = self.environment.reader();
        engine
            .validate(&prepared, polity_driver::run::Extent::Outline)
            .map_err(|error| Error::of(error, scenario.written.as_ref()))
    }

    /// Runs the simulation to its end, or until it is stopped or its budget is used up; [`Run::status`] says which.
    ///
    /// # Errors
    /// [`Error::Scenario`] for errors in the scenario, with their path; [`Error::Run`] for external causes: a folder that is taken, a
    /// full disk, an unreachable model. What was done until then is kept and can be resumed.
    pub fn run(self) -> Result<Run> {
        self.run_telling(None)
    }

    fn run_telling(self, stream: Option<Sender<Event>>) -> Result<Run> {
        let (tells, notes) = channel();
        // The listener is gone once the run has ended.
        let notes_to = Notes::to(move |text| drop(tells.send(text.to_owned())));
        self.check_changes()?;
        self.check_changes()?;
        let Simulation { start, edits, budget, environment, out, handler, stop, .. } = &self;
        let mut watch = Observer { handler: handler.clone(), stream, notes, stop: stop.clone(), planned: 0 };
        let resumes = matches!(start, Start::Resume(_));
        let engine =
            environment.engine(if resumes { budget.clone() } else { Budget::default() }, stop.clone(), notes_to);
        let disk = engine.disk.as_ref();
        let summary = match start {
            Start::Scenario(scenario) => {
                let prepared = self.prepared(scenario)?;
                let out = match out {
                    Some(out) => out.clone(),
                    None => new_folder(disk, &prepared.name, seed_of(&prepared.tree))?,
                };
                let ran = engine.run(&prepared, &out, &mut watch);
                ran.map_err(|error| Error::of(error, scenario.written.as_ref()))?
            }
            Start::Resume(folder) => engine.resume(folder, &mut watch)?,
            Start::Fork { folder, at } => {
                let out = match out {
                    Some(out) => out.clone(),
                    None => fork_folder(disk, folder, *at)?,
                };
                let (whole, later): (Vec<_>, Vec<_>) = edits.iter().cloned().partition(|edit| edit.whole);
                let sets = |edits: Vec<Edit>| edits.into_iter().map(|edit| edit.set).collect();
                engine.fork(folder, *at, sets(later), sets(whole), &out, &mut watch)?
            }
        };
        watch.tell_notes();
        summary.health.iter().cloned().for_each(|alarm| watch.tell(Event::Alarm(alarm)));
        drop(engine);
        Run::of(summary, self.environment)
    }

    /// Runs the design of the scenario, `design:`, which has arms and seeds: a sweep. `jobs`: the maximum number of concurrent runs
    /// (default: the number of cores). Its default folder is `runs/NAME-sweep-SEED`.
    ///
    /// # Errors
    /// Those of [`Simulation::run`], and [`Error::Scenario`] for a scenario without a design.
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let sweep = polity::Simulation::from_yaml("
    /// rounds: 3
    /// agents: 20
    /// world: {kind: guess-average}
    /// cohorts: [{policy: {kind: level-k, mean: 1.5}}]
    /// metrics: [{kind: mean, of: guess}]
    /// design: {seeds: 3, factors: {world.fraction: [0.4, 0.6]}}
    /// ")?.out(folder.path().join("sweep")).sweep(None)?;
    /// assert!(sweep.is_done() && sweep.tables()?.contains(&"summary".to_string()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep(self, jobs: Option<NonZeroUsize>) -> Result<Sweep> {
        self.check_changes()?;
        let Simulation { start, environment, out, stop, .. } = &self;
        let Start::Scenario(scenario) = start else {
            return Err(refused("design", "a sweep begins with a scenario, not with a run".into()));
        };
        let prepared = self.prepared(scenario)?;
        let engine = environment.engine(Budget::default(), stop.clone(), Notes::default());
        let out = match out {
            Some(out) => out.clone(),
            None => new_folder(engine.disk.as_ref(), &format!("{}-sweep", prepared.name), seed_of(&prepared.tree))?,
        };
        let begun = sweep::begin(&engine, &prepared, &out, limits(jobs), &mut Unwatched);
        let summary = begun.map_err(|error| Error::of(error, scenario.written.as_ref()))?;
        drop(engine);
        Ok(Sweep::of(summary, self.environment))
    }

    /// Runs the simulation on its own thread, and streams its events.
    ///
    /// ```
    /// use polity::{Event, Simulation};
    /// # let scenario = "
    /// # {rounds: 2, agents: 3, model: sim/small, world: {kind: guess-average}, cohorts: [{policy: {kind: mind}}]}";
    /// let running = Simulation::from_yaml(scenario)?.in_memory().spawn();
    /// let mut answers = 0;
    /// for event in running.events() {
    ///     match event {
    ///         Event::Call(call) => answers += u32::from(call.outcome == "reply"),
    ///         Event::Round { round, metrics, .. } => println!("round {round}: {metrics:?}"),
    ///         _ => {}
    ///     }
    /// }
    /// let run = running.join()?;
    /// assert_eq!((run.rounds(), answers), (2, 6));
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn spawn(self) -> Running {
        let (stream, events) = channel();
        let stop = self.stop_handle();
        let thread = std::thread::spawn(move || self.run_telling(Some(stream)));
        Running { events, stop, thread }
    }
}

/// A run in progress on its own thread, made by [`Simulation::spawn`]. If dropped, the run continues without a listener.
#[derive(Debug)]
pub struct Running {
    events: std::sync::mpsc::Receiver<Event>,
    stop: StopHandle,
    thread: JoinHandle<Result<Run>>,
}

impl Running {
    /// Iterates over the events as they arrive. Waits for the next one, and ends with the run. Events not yet read are kept.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter()
    }

    /// Stops the run: it finishes what is in flight and saves. It can be resumed.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Waits for the run.
    ///
    /// # Errors
    /// Those of [`Simulation::run`], and [`Error::Panicked`] if a function of the program panicked.
    pub fn join(self) -> Result<Run> {
        match self.thread.join() {
            Ok(run) => run,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(Error::Panicked(text.unwrap_or_else(|| "it gave no message".into())))
            }
        }
    }
}

/// What is done next with a run that was made or opened.
impl Run {
    /// Continues the run, once it is run: from the newest saved state, with the recorded answers. A run that has ended is only summed up.
    pub fn resume(&self) -> Simulation {
        Simulation::resuming(self.folder(), self.environment().clone())
    }

    /// Reruns it up to round `at`, with its recorded answers, and continues from there with what is [set](Simulation::set). The fork has
    /// its own folder.
    ///
    /// ```
    /// # let scenario = "{rounds: 6, agents: 8, world: {kind: guess-average}, metrics: [{kind: mean, of: guess}],
    /// # cohorts: [{policy: {kind: adaptive, rate: 0.2}}]}";
    /// let run = polity::Simulation::from_yaml(scenario)?.in_memory().run()?;
    /// let other = run.fork(3).set("cohorts[0].policy.rate", 0.9)?.run()?;
    /// assert_eq!(run.series("guess.mean")?[..3], other.series("guess.mean")?[..3]);
    /// assert!(other.metric("guess.mean")? < run.metric("guess.mean")?);
    /// # Ok::<(), polity::Error>(())
    /// ```
    pub fn fork(&self, at: u32) -> Simulation {
        Simulation::forking(self.folder(), at, self.environment().clone())
    }
}
