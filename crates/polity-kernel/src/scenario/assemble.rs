//! Assembly of a machine from a scenario: the one place where leaves meet.

mod cohorts;
mod evaluation;
mod measures;

use super::draft::{Draft, SocietyDraft};
use super::files::Inputs;
use super::memory_budget::{ARC, MemoryBudget};
use super::people::People;
use super::validation::checks_of;
use super::{Answers, Assembled, Change, FileKind, MessageSource, Scenario, toolbox};
use crate::layout::Layout;
use crate::method::MOST_RETRIES;
use crate::outline::Guesses;
use crate::policy::{PolicySetup, Seating, SharedContext};
use crate::population::Population;
use crate::registry::Registry;
use crate::society::{Leaves, Plan, PlannedMessage, interface_of};
use crate::topology::{self, Topology, TopologySpec};
use crate::tree::{Invalid, Node, TreeError, Value};
use crate::world::{Activation, Split, WorldHost, WorldSetup};
use std::sync::Arc;

/// Maximum number of agents of a society at its start.
const MOST_AGENTS: u32 = 100_000_000;
/// Maximum length of a planned message, in bytes.
const LONGEST_MESSAGE: usize = 100_000;
/// The key of planned messages, which a change may set as a whole.
const MESSAGES: &str = "messages";
/// Maximum number of rounds.
const MOST_ROUNDS: u32 = 1_000_000_000;

fn wrong(path: &str, node: Option<&Node>, tree: &Node, message: impl Into<String>, help: Option<&str>) -> TreeError {
    TreeError {
        message: message.into(),
        path: path.into(),
        origin: node.map_or(&tree.origin, |n| &n.origin).clone(),
        help: help.map(String::from),
    }
}

/// Builds the machine that a scenario describes, or the part of it that this process computes.
pub fn assemble(tree: &Node, registry: &Registry, inputs: &Inputs, layout: Layout) -> Result<Assembled, TreeError> {
    assemble_within(tree, registry, inputs, layout, &mut MemoryBudget::unlimited())
}

/// Does the same within a memory budget: each part is checked before it is allocated.
pub fn assemble_within(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    layout: Layout,
    memory: &mut MemoryBudget,
) -> Result<Assembled, TreeError> {
    let draft = draft(tree, registry, inputs, layout, memory, None)?;
    draft.set_up(layout).map_err(|bug| wrong("", None, tree, bug.to_string(), None))
}

/// Checks a scenario without building its population and ties. Whatever this finds, [`assemble_within`] finds as well: an error
/// that may depend on a guess is confirmed with the whole society.
///
/// Only [`assemble_within`] finds that no graph has the degrees of a `configuration`, and what a leaf refuses because of who hears
/// whom or because of several attributes of one agent together. Prompts are tried for another agent, and memory is reserved for the
/// expected number of ties.
///
/// # Errors
/// Those of [`assemble_within`], except these.
pub fn outline_within(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    layout: Layout,
    memory: &mut MemoryBudget,
) -> Result<Draft, TreeError> {
    let guesses = Guesses::default();
    let mut estimate = memory.clone();
    match draft(tree, registry, inputs, layout, &mut estimate, Some(&guesses)) {
        // The error may depend on a guess.
        Err(_) if guesses.any() => draft(tree, registry, inputs, layout, memory, None),
        found => {
            *memory = estimate;
            found
        }
    }
}

/// Returns the checked parts of the machine that a scenario describes. If guesses are noted, it makes the outline of a society.
fn draft(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    layout: Layout,
    memory: &mut MemoryBudget,
    outline: Option<&Guesses>,
) -> Result<Draft, TreeError> {
    let scenario = Scenario::read(tree)?;
    check_numbers(&scenario, tree)?;
    let at = |key: &str| tree.get(key);
    match (&scenario.world, &scenario.method) {
        (Some(_), Some(_)) => Err(wrong(
            "method",
            at("method"),
            tree,
            "a scenario has a `world` (a society) or a `method` (an evaluation), not both",
            Some("remove one of the two"),
        )),
        (None, None) => Err(wrong(
            "",
            None,
            tree,
            "a scenario needs a `world` (a society) or a `method` (an evaluation)",
            Some("for instance `world: {kind: guess-average}`"),
        )),
        (Some(_), None) => {
            let keys = ["team", "items", "max_concurrent", "max_retries", "placebo", "faults", "environment"];
            if let Some(key) = keys.into_iter().find(|key| at(key).is_some()) {
                let help = Some("evaluations have a `method` and no `world`");
                return Err(wrong(key, at(key), tree, format!("`{key}` belongs to an evaluation"), help));
            }
            society(&scenario, tree, registry, inputs, layout, memory, outline)
        }
        (None, Some(_)) => {
            let keys = ["population", "cohorts", "metrics", "validate", "answers"];
            if let Some(key) = keys.into_iter().find(|key| at(key).is_some()) {
                let help = Some("societies have a `world` and no `method`");
                return Err(wrong(key, at(key), tree, format!("`{key}` belongs to a society"), help));
            }
            check_budget(&scenario, tree, false, None)?;
            evaluation::draft(&scenario, tree, registry, inputs)
        }
    }
}

fn check_budget(scenario: &Scenario, tree: &Node, lag: bool, cohorts: Option<&[String]>) -> Result<(), TreeError> {
    let checked = scenario.budget.check(lag, cohorts);
    checked.map_err(|invalid| TreeError { help: None, ..tree.get("budget").unwrap_or(tree).blame("budget", invalid) })
}

fn check_numbers(scenario: &Scenario, tree: &Node) -> Result<(), TreeError> {
    let at = |key: &str| tree.get(key);
    if scenario.rounds > MOST_ROUNDS {
        return Err(wrong("rounds", at("rounds"), tree, format!("at most {MOST_ROUNDS} rounds can be run"), None));
    }
    if let Some(agents) = scenario.agents {
        if agents == 0 {
            return Err(wrong("agents", at("agents"), tree, "there must be at least one agent", None));
        }
        if agents > MOST_AGENTS {
            return Err(wrong(
                "agents",
                at("agents"),
                tree,
                format!("at most {MOST_AGENTS} agents are possible"),
                None,
            ));
        }
    }
    let plan = &scenario.snapshot;
    if !(plan.seconds > 0.0 && plan.seconds.is_finite()) || plan.rounds == Some(0) {
        return Err(wrong("snapshot", at("snapshot"), tree, "`rounds` and `seconds` must be greater than 0", None));
    }
    if let Answers::Lag(lag) = scenario.answers
        && !(1..=1000).contains(&lag)
    {
        return Err(wrong("answers", at("answers"), tree, format!("a lag must be 1 to 1000 rounds, not {lag}"), None));
    }
    let settings = tree.get("settings").unwrap_or(tree);
    scenario.settings.check().map_err(|invalid| settings.blame("settings", invalid))?;
    for (model, price) in &scenario.prices {
        let node = at("prices").and_then(|prices| prices.get(model)).unwrap_or(tree);
        price.check().map_err(|invalid| node.blame(&format!("prices.{model}"), invalid))?;
    }
    if scenario.max_retries.is_some_and(|retries| retries > MOST_RETRIES) {
        let message = format!("a member can be asked again at most {MOST_RETRIES} times");
        return Err(wrong("max_retries", at("max_retries"), tree, message, None));
    }
    if scenario.max_concurrent == Some(0) {
        return Err(wrong(
            "max_concurrent",
            at("max_concurrent"),
            tree,
            "it must allow at least one item at a time",
            None,
        ));
    }
    Ok(())
}

/// Returns who hears whom, and whether ties have a direction. Generated topologies have none.
fn topology(
    scenario: &Scenario,
    tree: &Node,
    n: u32,
    population: &Population,
    inputs: &Inputs,
    memory: &mut MemoryBudget,
    outline: Option<&Guesses>,
) -> Result<Option<(Topology, bool)>, TreeError> {
    let Some(node) = &scenario.topology else { return Ok(None) };
    let path = "topology";
    let (kind, rest) = node.split_kind(path)?;
    if !TopologySpec::KINDS.contains(&kind.name.as_str()) {
        return Err(crate::tree::unknown_kind("topology", &kind.name, TopologySpec::KINDS, path, kind.origin));
    }
    let named = Node { value: Value::Map(vec![(kind.clone(), rest.clone())]), origin: node.origin.clone() };
    let spec: TopologySpec = named.read(path)?;
    let blame = |error: topology::TopologyError| {
        rest.blame(path, Invalid { key: error.key.unwrap_or_default(), message: error.message })
    };
    if let TopologySpec::File(file) = &spec {
        let name = &file.file;
        let Some(edges) = inputs.edges.get(name) else {
            return Err(wrong("topology.file", Some(node), tree, format!("`{name}` was not read"), None));
        };
        let directed = file.is_directed(edges);
        let arcs = edges.edges.len() as f64 * if directed { 1.0 } else { 2.0 };
        memory.reserve("ties", arcs * ARC).map_err(|why| does_not_fit(tree, "topology", why))?;
        let csr = file.graph(edges, n, population).map_err(blame)?;
        return Ok(Some((Topology::Graph(Arc::new(csr)), directed)));
    }
    let most = memory.remaining() / (2.0 * ARC);
    let plan = topology::plan(&spec, n, population, scenario.seed, most).map_err(blame)?;
    let topology = match outline {
        None => plan.make().map_err(blame)?,
        Some(guesses) => plan.outline(guesses),
    };
    if stores_arcs(&topology) {
        memory.reserve("ties", topology.arcs() as f64 * ARC).map_err(|why| does_not_fit(tree, "topology", why))?;
    }
    Ok(Some((topology, false)))
}

fn stores_arcs(topology: &Topology) -> bool {
    matches!(topology, Topology::Graph(_) | Topology::Outline { .. })
}

fn does_not_fit(tree: &Node, path: &str, why: String) -> TreeError {
    let help = "use fewer agents or a sparser topology; --memory MB raises the limit";
    wrong(path, tree.get(path), tree, why, Some(help))
}

/// Returns whether the topology defines ties by agent id.
fn by_agent(scenario: &Scenario) -> bool {
    let Some(node) = &scenario.topology else { return false };
    let file = node.split_kind("topology").is_ok_and(|(kind, _)| kind.name == "file");
    file && node.get("id").is_none() || node.get("degrees").is_some()
}

/// Returns the tree with one change made, checked to change nothing but parameters of leaves.
fn changed(tree: &Node, change: &Change, i: usize, roots: &[&str]) -> Result<Node, TreeError> {
    let mut tree = tree.clone();
    // Messages are sent once.
    if tree.get(MESSAGES).is_some() {
        tree.edit(MESSAGES, Node::built(Value::List(Vec::new())))?;
    }
    for (path, value) in &change.set {
        let root = path.split(['.', '[']).next().unwrap_or_default();
        let of_cohort = root != "cohorts" || path.contains(".policy.");
        if path == MESSAGES && roots.contains(&MESSAGES) {
            tree.edit(path, value.clone())?;
            continue;
        }
        if !roots.contains(&root) || !of_cohort || path.ends_with(".kind") || path == root {
            return Err(TreeError {
                message: format!("`{path}` cannot change during a run"),
                path: format!("changes[{i}].set"),
                origin: value.origin.clone(),
                help: Some(
                    "parameters of the world, of policies and of the method can change, and `messages` can be sent; their \
                     kinds, the agents, the population and the topology cannot change"
                        .into(),
                ),
            });
        }
        tree.edit(path, value.clone())?;
    }
    Ok(tree)
}

/// Returns the scenario's changes in order of round, each with the whole tree from then on.
fn changes(scenario: &Scenario, tree: &Node, roots: &[&str]) -> Result<Vec<(u32, Node)>, TreeError> {
    let mut order: Vec<(usize, &Change)> = scenario.changes.iter().enumerate().collect();
    order.sort_by_key(|(_, change)| change.at);
    let mut trees = Vec::new();
    let mut now = tree.clone();
    for (i, change) in order {
        if change.at == 0 {
            return Err(wrong(
                &format!("changes[{i}].at"),
                tree.get("changes"),
                tree,
                "a change cannot be at round 0: write the value into the scenario itself",
                None,
            ));
        }
        now = changed(&now, change, i, roots)?;
        trees.push((change.at, now.clone()));
    }
    Ok(trees)
}

fn society(
    scenario: &Scenario,
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    layout: Layout,
    memory: &mut MemoryBudget,
    outline: Option<&Guesses>,
) -> Result<Draft, TreeError> {
    let (sizes, shared_context) = shared_context(scenario, tree, inputs, memory, outline)?;
    let agents: u32 = sizes.iter().sum();
    let lag = scenario.answers.lag();
    let names: Vec<String> = scenario
        .cohorts
        .iter()
        .flatten()
        .enumerate()
        .map(|(i, cohort)| cohort.name.clone().unwrap_or_else(|| format!("cohort-{i}")))
        .collect();
    check_budget(scenario, tree, lag > 0, Some(&names))?;
    let leaves = leaves(tree, registry, inputs, &shared_context, (&sizes, &names), layout)?;
    reserve_states(tree, &sizes, &shared_context, &leaves, layout, memory)?;
    let mut later = Vec::new();
    let mut messages = planned_messages(tree, 0, agents)?;
    for (at, tree) in changes(scenario, tree, &["world", "cohorts", MESSAGES])? {
        messages.extend(planned_messages(&tree, at, agents)?);
        later.push((at, self::leaves(&tree, registry, inputs, &shared_context, (&sizes, &names), layout)?));
    }
    if lag > 0
        && let Some(i) = leaves.policies.iter().position(|policy| policy.cohort_host().is_some())
    {
        let message =
            format!("the agents of the cohort `{}` act on the result of the cohort step of the same round", names[i]);
        return Err(wrong("answers", tree.get("answers"), tree, message, Some("write `answers: wait`")));
    }
    let asks = |leaves: &Leaves| leaves.worlds.first().is_some_and(|world| !world.models().is_empty());
    if lag > 0 && (asks(&leaves) || later.iter().any(|(_, leaves)| asks(leaves))) {
        let message = "the world asks a model itself, and no agent sees the world before it has the answers";
        return Err(wrong("answers", tree.get("answers"), tree, message, Some("write `answers: wait`")));
    }
    let (activation, window) = activation(scenario, tree, leaves.worlds[0].as_ref(), lag)?;
    let in_one_piece = |leaves: &Leaves| leaves.worlds.first().is_some_and(|world| world.split() == Split::None);
    if layout.is_spread() && (in_one_piece(&leaves) || later.iter().any(|(_, leaves)| in_one_piece(leaves))) {
        let message = "this world keeps its state in one piece, so all agents would wait for one process; only worlds with a row \
                       for each agent run on several processes (`polity list worlds` says which)";
        return Err(wrong("world", tree.get("world"), tree, message, Some("run it in one process: it uses all cores")));
    }
    let states = |leaves: &Leaves| -> Vec<Vec<String>> {
        let policies = leaves.policies.iter();
        policies.map(|policy| policy.columns().iter().map(|column| column.name.to_string()).collect()).collect()
    };
    let before = states(&leaves);
    for (at, later) in &later {
        if let Some(i) = states(later).iter().zip(&before).position(|(then, now)| then != now) {
            let message =
                format!("the columns of the state of the cohort `{}` cannot change (in round {at})", names[i]);
            return Err(wrong("changes", tree.get("changes"), tree, message, None));
        }
        if later.worlds[0].delay() != window {
            let message =
                format!("the world's least delay cannot change (in round {at}), because events are planned by it");
            return Err(wrong("changes", tree.get("changes"), tree, message, None));
        }
    }
    // Check validations before the run, not after it.
    let interface = interface_of(&*leaves.worlds[0], &leaves.policies);
    checks_of(scenario, inputs, shared_context.population.table(), &interface)?;
    let plan = Plan { rounds: scenario.rounds, lag, activation, window, cohorts: sizes, names, messages };
    Ok(Draft::Society(Box::new(SocietyDraft { plan, shared_context, leaves, later })))
}

/// Returns the messages that a scenario sends in the round in which it begins to hold.
fn planned_messages(tree: &Node, round: u32, agents: u32) -> Result<Vec<PlannedMessage>, TreeError> {
    let scenario = Scenario::read(tree)?;
    let node = tree.get(MESSAGES).unwrap_or(tree);
    let wrong = |i: usize, key: &str, message: String| {
        wrong(&format!("{MESSAGES}[{i}].{key}"), Some(node), tree, message, None)
    };
    for (i, MessageSource { from, to, text }) in scenario.messages.iter().enumerate() {
        let absent = |agent: &u32| format!("there is no agent {agent}; the society begins with {agents}, from 0 on");
        if *from >= agents {
            return Err(wrong(i, "from", absent(from)));
        }
        if let Some(agent) = to.iter().flatten().find(|agent| **agent >= agents) {
            return Err(wrong(i, "to", absent(agent)));
        }
        if text.is_empty() || text.len() > LONGEST_MESSAGE {
            return Err(wrong(i, "text", format!("a text has 1 to {LONGEST_MESSAGE} bytes, not {}", text.len())));
        }
    }
    let planned = |MessageSource { from, to, text }| PlannedMessage { round, from, to, text };
    Ok(scenario.messages.into_iter().map(planned).collect())
}

/// Returns the agents of each cohort, and what all of them share.
fn shared_context(
    scenario: &Scenario,
    tree: &Node,
    inputs: &Inputs,
    memory: &mut MemoryBudget,
    outline: Option<&Guesses>,
) -> Result<(Vec<u32>, SharedContext), TreeError> {
    let people = match &scenario.population {
        Some(source) => Some(People::new(source, tree.get("population").unwrap_or(tree), inputs)?),
        None => None,
    };
    let split = cohorts::split(scenario, tree, people.as_ref().and_then(People::rows))?;
    let agents = split.agents();
    let unfit = |why: String| does_not_fit(tree, "agents", why);
    memory.reserve_agents(agents).map_err(unfit)?;
    if let Some(people) = &people {
        memory.reserve("population", people.memory_bytes(agents)).map_err(unfit)?;
    }
    let (population, sizes) = match people {
        Some(people) => {
            // Cohorts take agents in order: with a sorted file they would differ by more than their policies.
            let shuffled = split.takes_in_order() && !by_agent(scenario);
            let population = people.make(agents, shuffled, scenario.seed, outline)?;
            split.arrange(tree, population, by_agent(scenario))?
        }
        None => split.arrange(tree, Population::empty(agents), false)?,
    };
    let topology = topology(scenario, tree, agents, &population, inputs, memory, outline)?;
    let (topology, directed) = topology.unwrap_or((Topology::None { n: agents }, false));
    let audience = match &topology {
        Topology::Graph(csr) if directed => {
            memory.reserve("reversed ties", topology.arcs() as f64 * ARC).map_err(unfit)?;
            Some(Topology::Graph(Arc::new(csr.reversed())))
        }
        _ => None,
    };
    Ok((sizes, SharedContext { seed: scenario.seed, population, topology, audience }))
}

/// Reserves memory for the states of agents, their rows of the world, and the messages of a round.
fn reserve_states(
    tree: &Node,
    sizes: &[u32],
    shared_context: &SharedContext,
    leaves: &Leaves,
    layout: Layout,
    memory: &mut MemoryBudget,
) -> Result<(), TreeError> {
    let agents: u32 = sizes.iter().sum();
    let unfit = |why: String| does_not_fit(tree, "agents", why);
    // The part of the agents that this process holds.
    let share = layout.own().len() as f64 / layout.count() as f64;
    let world = share * f64::from(agents) * leaves.worlds.first().map_or(0, |world| world.memory_bytes()) as f64;
    memory.reserve("the world", world).map_err(unfit)?;
    let states: f64 =
        sizes.iter().zip(&leaves.policies).map(|(n, policy)| f64::from(*n) * policy.memory_bytes() as f64).sum();
    memory.reserve("states of agents", share * states).map_err(unfit)?;
    let told = sizes.iter().zip(&leaves.policies).filter(|(_, policy)| policy.tells_neighbours());
    let tellers: u32 = told.map(|(n, _)| *n).sum();
    if tellers == 0 {
        return Ok(());
    }
    // If only some agents tell their neighbours, count that part of the arcs.
    let arcs = (shared_context.topology.arcs() as f64 * f64::from(tellers) / f64::from(agents)) as u64;
    // A complete topology stores no arcs, so MAX_ARCS has not been checked for it.
    if arcs > topology::MAX_ARCS {
        let message = format!(
            "every agent would send a message to every other: {:.3e} messages a round, but at most {:.3e} are allowed",
            arcs as f64,
            topology::MAX_ARCS as f64
        );
        let help = "use fewer agents, or a topology that is not complete";
        return Err(wrong("topology", tree.get("topology"), tree, message, Some(help)));
    }
    memory.reserve_messages((share * arcs as f64) as u64).map_err(unfit)
}

/// Returns how agents take their turns, and in event time the length of a round.
fn activation(
    scenario: &Scenario,
    tree: &Node,
    world: &dyn WorldHost,
    lag: u32,
) -> Result<(Activation, Option<f64>), TreeError> {
    let wrong = |path: &str, message: String, help: &str| Err(wrong(path, tree.find(path), tree, message, Some(help)));
    let activation = scenario.activation.unwrap_or(world.activation());
    let window = world.delay();
    match (activation, window) {
        (Activation::EventTime, None) => {
            return wrong(
                "activation",
                "nothing happens in this world by itself, so it has no event time".into(),
                "leave it out",
            );
        }
        (Activation::Simultaneous | Activation::RandomOrder, Some(_)) => {
            return wrong("activation", "this world runs in event time".into(), "leave it out, or write event-time");
        }
        (Activation::RandomOrder, None) if world.split() == Split::Rows => {
            let message = "the agents of this world do not see each other's acts within a round, so their order makes \
                           no difference";
            return wrong("activation", message.into(), "leave it out, or write simultaneous");
        }
        (Activation::EventTime, Some(window)) if !(window > 0.0 && window.is_finite()) => {
            let message = format!("the world's least delay is {window}; it must be greater than 0");
            return wrong("world", message, "a round is a window of this length");
        }
        (Activation::RandomOrder, _) if lag > 0 => {
            let message =
                "in random order, each agent sees what the agents before it have done, so none can act rounds later"
                    .into();
            return wrong("answers", message, "write `answers: wait`, or `activation: simultaneous`");
        }
        _ => {}
    }
    if scenario.record.steps && activation != Activation::Simultaneous {
        let message =
            "a table of steps has what all agents see at the start of a round, but here they do not act together";
        return wrong("record.steps", message.into(), "leave it out, or write `activation: simultaneous`");
    }
    Ok((activation, window))
}

fn leaves(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    shared_context: &SharedContext,
    (sizes, names): (&[u32], &[String]),
    layout: Layout,
) -> Result<Leaves, TreeError> {
    let agents = sizes.iter().sum();
    let scenario = Scenario::read(tree)?;
    let SharedContext { population, topology, .. } = shared_context;
    let taken: Vec<u32> = scenario.cohorts.iter().flatten().filter_map(|cohort| cohort.seats).collect();
    let lag = scenario.answers.lag();
    let setup = WorldSetup { agents, population, topology, lag, seats: &taken, texts: &inputs.texts };
    let Some(node) = &scenario.world else { return Err(wrong("world", None, tree, "the world is missing", None)) };
    let mut worlds = Vec::new();
    let mut name = String::new();
    for _ in layout.own() {
        let (kind, world) = registry.open_world(node, "world", &setup)?;
        worlds.push(world);
        name = kind;
    }
    let interface = worlds[0].interface().clone();
    if interface.seats.is_none() && !taken.is_empty() {
        let message = format!("the world `{name}` has no episodes with seats");
        return Err(wrong("cohorts[0].seats", tree.find("cohorts[0].seats"), tree, message, Some("use `count`")));
    }
    let toolbox = toolbox::open(&scenario, registry, inputs)?;
    let setup = PolicySetup {
        world: &name,
        interface: &interface,
        prompts: registry.prompts(&name),
        shared_context,
        agents,
        cohort: &(0..agents),
        seating: None,
        rounds: scenario.rounds,
        model: scenario.model.as_deref(),
        settings: scenario.settings,
        texts: &inputs.texts,
        bytes: &inputs.bytes,
        tables: &inputs.tables,
        methods: registry,
        toolbox: &toolbox,
    };
    let mut policies = Vec::new();
    let mut first = 0;
    for (i, (cohort, size)) in scenario.cohorts.iter().flatten().zip(sizes).enumerate() {
        let members = first..first + size;
        first += size;
        let in_order = interface.seats.map(|seats| Seating { first: 0, seats });
        let own = cohort.seats.map(|seats| Seating { first: members.start, seats });
        let setup = PolicySetup { cohort: &members, seating: own.or(in_order), ..setup };
        policies.push(registry.open_policy(&cohort.policy, &format!("cohorts[{i}].policy"), &setup)?);
    }
    // Teams keep the toolbox.
    if !toolbox.is_empty() && Arc::strong_count(&toolbox) == 1 {
        let message = "no agent of this society can call tools; only teams can (`policy: {kind: team}`)";
        return Err(wrong("tools", tree.get("tools"), tree, message, Some("leave it out")));
    }
    let of_world = interface.columns.len();
    let interface = interface_of(&*worlds[0], &policies);
    let measurable =
        measures::Measurable { registry, world: &name, interface: &interface, of_world, population, cohorts: names };
    let mut measures = Vec::new();
    for (i, node) in scenario.metrics.iter().enumerate() {
        measures.extend(measurable.measures(node, &format!("metrics[{i}]"))?);
    }
    Ok(Leaves { worlds, policies, measures })
}

/// Names of the kinds of input files, for drivers that read them.
impl FileKind {
    /// Returns a word for messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FileKind::Table | FileKind::Texts => "table",
            FileKind::Edges | FileKind::NamedEdges => "edge list",
            FileKind::Text => "text",
            FileKind::Bytes => "file",
            FileKind::Folder => "folder",
        }
    }
}
