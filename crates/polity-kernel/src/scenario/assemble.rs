//! From a scenario to a machine: the one place where leaves meet.

use super::memory_budget::{ARC, MemoryBudget};
use super::people::People;
use super::{Answers, Change, Count, FileKind, MemberSource, MetricKeys, Scenario, checks};
use crate::ask::Want;
use crate::evaluation::{self, Evaluation};
use crate::items::{self, Item};
use crate::method::{Member, MethodHost};
use crate::metric::Source;
use crate::policy::{Binding, Commons};
use crate::population::{Population, Table};
use crate::registry::Registry;
use crate::society::{Leaves, Measure, Plan, Reads, Society, interface_of};
use crate::topology::{self, Csr, Topology, TopologySpec};
use crate::transport::Transport;
use crate::tree::{Invalid, Key, Node, TreeError, Value, nearest};
use crate::world::{Activation, Setup, Split, WorldHost};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contents of the files that a scenario names, by the path as written.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Tables.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Edge lists: (from, to).
    pub edges: BTreeMap<String, Arc<Vec<(u32, u32)>>>,
    /// Texts.
    pub texts: BTreeMap<String, Arc<str>>,
}

/// A machine, ready to be driven.
pub enum Assembled {
    /// Agents in a world.
    Society(Box<Society>),
    /// A method at work on a data set.
    Evaluation(Box<Evaluation>),
}

impl Assembled {
    /// The models that its world may ask for vectors of texts.
    #[must_use]
    pub fn models_of_vectors(&self) -> Vec<String> {
        let Assembled::Society(society) = self else { return Vec::new() };
        let asked = society.models_of_world().into_iter().filter(|(_, want)| *want == Want::Vector);
        asked.map(|(model, _)| model).collect()
    }

    /// The models that it may ask, each once, in order of first use.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        let all = match self {
            Assembled::Society(society) => society.models(),
            Assembled::Evaluation(evaluation) => evaluation.models(),
        };
        let mut once: Vec<String> = Vec::new();
        for model in all {
            if !once.contains(&model) {
                once.push(model);
            }
        }
        once
    }
}

/// Largest number of agents of a society at its start.
const MOST_AGENTS: u32 = 100_000_000;
/// Most rounds.
const MOST_ROUNDS: u32 = 1_000_000_000;

fn wrong(path: &str, node: Option<&Node>, tree: &Node, message: impl Into<String>, help: Option<&str>) -> TreeError {
    TreeError {
        message: message.into(),
        path: path.into(),
        origin: node.map_or(&tree.origin, |n| &n.origin).clone(),
        help: help.map(String::from),
    }
}

/// Builds the machine that a scenario describes, with `shards` shards.
pub fn assemble(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    shards: usize,
    transport: Box<dyn Transport>,
) -> Result<Assembled, TreeError> {
    assemble_within(tree, registry, inputs, shards, transport, &mut MemoryBudget::unlimited())
}

/// The same within a memory budget: each part is checked before it is allocated.
pub fn assemble_within(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    shards: usize,
    transport: Box<dyn Transport>,
    memory: &mut MemoryBudget,
) -> Result<Assembled, TreeError> {
    let scenario = Scenario::read(tree)?;
    check_numbers(&scenario, tree)?;
    let at = |key: &str| tree.get(key);
    match (&scenario.world, &scenario.method) {
        (Some(_), Some(_)) => Err(wrong(
            "method",
            at("method"),
            tree,
            "a scenario has a `world` (a society) or a `method` (an evaluation), not both",
            Some("take one of the two out"),
        )),
        (None, None) => Err(wrong(
            "",
            None,
            tree,
            "a scenario needs a `world` (a society) or a `method` (an evaluation)",
            Some("for instance `world: {kind: guess-average}`"),
        )),
        (Some(_), None) => {
            let keys = ["team", "items", "window"];
            if let Some(key) = keys.into_iter().find(|key| at(key).is_some()) {
                let help = Some("evaluations have a `method` and no `world`");
                return Err(wrong(key, at(key), tree, format!("`{key}` belongs to an evaluation"), help));
            }
            society(&scenario, tree, registry, inputs, shards, transport, memory)
        }
        (None, Some(_)) => {
            let keys = ["population", "cohorts", "metrics", "validate", "answers"];
            if let Some(key) = keys.into_iter().find(|key| at(key).is_some()) {
                let help = Some("societies have a `world` and no `method`");
                return Err(wrong(key, at(key), tree, format!("`{key}` belongs to a society"), help));
            }
            check_budget(&scenario, tree, false, None)?;
            evaluation(&scenario, tree, registry, inputs)
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
            return Err(wrong("agents", at("agents"), tree, format!("at most {MOST_AGENTS} agents fit"), None));
        }
    }
    let plan = &scenario.snapshot;
    if !(plan.seconds > 0.0 && plan.seconds.is_finite()) || plan.rounds == Some(0) {
        return Err(wrong("snapshot", at("snapshot"), tree, "`rounds` and `seconds` must be greater than 0", None));
    }
    if let Answers::Lag(lag) = scenario.answers
        && !(1..=1000).contains(&lag)
    {
        return Err(wrong("answers", at("answers"), tree, format!("a lag is 1 to 1000 rounds, not {lag}"), None));
    }
    let settings = tree.get("settings").unwrap_or(tree);
    scenario.settings.check().map_err(|invalid| settings.blame("settings", invalid))?;
    for (model, price) in &scenario.prices {
        let node = at("prices").and_then(|prices| prices.get(model)).unwrap_or(tree);
        price.check().map_err(|invalid| node.blame(&format!("prices.{model}"), invalid))?;
    }
    if scenario.window == Some(0) {
        return Err(wrong("window", at("window"), tree, "at least one item must be under way", None));
    }
    Ok(())
}

/// Agents of each cohort when there are `agents` in all (`None`: as the cohorts say).
fn sizes(scenario: &Scenario, tree: &Node, table_rows: Option<u32>) -> Result<Vec<u32>, TreeError> {
    let Some(cohorts) = &scenario.cohorts else {
        return Err(wrong(
            "",
            None,
            tree,
            "a society needs `cohorts`: who are its agents?",
            Some("for instance `cohorts: [{policy: {kind: level-k}}]`"),
        ));
    };
    let node = tree.get("cohorts");
    let error = |message: String, help: Option<&str>| wrong("cohorts", node, tree, message, help);
    if cohorts.is_empty() || cohorts.len() > 1000 {
        return Err(error(format!("a society has 1 to 1000 cohorts, not {}", cohorts.len()), None));
    }
    let mut weights = Vec::new();
    let (mut shares, mut counts, mut fixed_total) = (0, 0, 0u64);
    for (i, cohort) in cohorts.iter().enumerate() {
        let here = node.and_then(|n| match &n.value {
            Value::List(items) => items.get(i),
            _ => None,
        });
        let path = format!("cohorts[{i}]");
        let weight = match (cohort.share, cohort.count) {
            (Some(_), Some(_)) => return Err(wrong(&path, here, tree, "give `share` or `count`, not both", None)),
            (Some(share), None) if !(share > 0.0 && share <= 1.0) => {
                return Err(wrong(&path, here, tree, format!("`share` lies above 0 and up to 1, not {share}"), None));
            }
            (Some(share), None) => {
                shares += 1;
                share
            }
            (None, Some(Count::Scaled(0) | Count::Fixed { fixed: 0 })) => {
                return Err(wrong(&path, here, tree, "a cohort has at least one agent", Some("take the cohort out")));
            }
            (None, Some(Count::Scaled(n))) => {
                counts += 1;
                f64::from(n)
            }
            (None, Some(Count::Fixed { fixed })) => {
                fixed_total += u64::from(fixed);
                0.0
            }
            (None, None) if cohorts.len() == 1 => 1.0,
            (None, None) => {
                let help = Some("for instance `share: 0.5`");
                return Err(wrong(&path, here, tree, "with several cohorts each needs a `share` or a `count`", help));
            }
        };
        weights.push(weight);
    }
    if shares > 0 && counts > 0 {
        return Err(error("some cohorts have a `share` and some a `count`".into(), Some("use one of the two for all")));
    }
    let sum: f64 = weights.iter().sum();
    if shares > 0 && (sum - 1.0).abs() > 1e-6 {
        return Err(error(format!("the shares sum to {sum}, not to 1"), None));
    }
    let counted = if shares == 0 && counts > 0 { Some(sum as u64) } else { None };
    let only_fixed = shares == 0 && counts == 0 && fixed_total > 0;
    let asked = counted.or(only_fixed.then_some(0)).map(|counted| counted + fixed_total);
    if let (None, Some(rows), Some(asked)) = (scenario.agents, table_rows, asked)
        && asked != u64::from(rows)
    {
        let parts: Vec<String> = cohorts
            .iter()
            .filter_map(|cohort| match cohort.count? {
                Count::Scaled(n) | Count::Fixed { fixed: n } => Some(n.to_string()),
            })
            .collect();
        let message = format!(
            "how many agents are there: the {} of the cohorts, or the {rows} rows of the population's file?",
            parts.join(" + ")
        );
        return Err(error(message, Some("add `agents`")));
    }
    let total = match (scenario.agents, table_rows, counted) {
        (Some(n), _, _) => u64::from(n),
        (None, Some(rows), _) => u64::from(rows),
        (None, None, Some(n)) => n + fixed_total,
        (None, None, None) if only_fixed => fixed_total,
        _ => {
            let help = Some("add `agents: 1000`, or give every cohort a `count`");
            return Err(wrong("", None, tree, "how many agents are there?", help));
        }
    };
    let scaled = weights.iter().filter(|w| **w > 0.0).count() as u64;
    if total > u64::from(MOST_AGENTS) || total < fixed_total + scaled || only_fixed && total != fixed_total {
        let message = format!(
            "{total} agents can not be split: fixed cohorts take {fixed_total}, and each of the {scaled} others needs at least one"
        );
        return Err(wrong("agents", tree.get("agents"), tree, message, None));
    }
    Ok(largest_remainder(&weights, sum, total - fixed_total)
        .into_iter()
        .zip(cohorts)
        .map(|(n, cohort)| match cohort.count {
            Some(Count::Fixed { fixed }) => fixed,
            _ => n,
        })
        .collect())
}

/// Splits `total` in proportion to the weights; every positive weight gets at least one.
fn largest_remainder(weights: &[f64], sum: f64, total: u64) -> Vec<u32> {
    let exact: Vec<f64> = weights.iter().map(|w| if sum > 0.0 { w / sum * total as f64 } else { 0.0 }).collect();
    let mut sizes: Vec<u64> =
        exact.iter().zip(weights).map(|(x, w)| (x.floor() as u64).max(u64::from(*w > 0.0))).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
    order.sort_by(|a, b| (exact[*b].fract()).total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    let mut given: u64 = sizes.iter().sum();
    for i in order.iter().cycle().take(order.len() * 2) {
        if given >= total {
            break;
        }
        sizes[*i] += 1;
        given += 1;
    }
    // Minimums of one may have given too much away: the largest pay.
    while given > total {
        match (0..sizes.len()).filter(|i| sizes[*i] > 1).max_by_key(|i| sizes[*i]) {
            Some(i) => sizes[i] -= 1,
            None => break,
        }
        given -= 1;
    }
    sizes.into_iter().map(|n| n as u32).collect()
}

fn topology(
    scenario: &Scenario,
    tree: &Node,
    n: u32,
    population: &Population,
    inputs: &Inputs,
    default: Topology,
    memory: &mut MemoryBudget,
) -> Result<Topology, TreeError> {
    let Some(node) = &scenario.topology else { return Ok(default) };
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
        let Some(edges) = inputs.edges.get(&file.path) else {
            return Err(wrong("topology.path", Some(node), tree, format!("`{}` was not read", file.path), None));
        };
        if let Some((from, to)) = edges.iter().find(|(a, b)| *a >= n || *b >= n) {
            let message =
                format!("`{}` has a tie from {from} to {to}, and there are only the agents 0 to {}", file.path, n - 1);
            let help = "a topology from a file fits one number of agents; use a generated topology to scale";
            return Err(wrong("topology.path", rest.get("path"), tree, message, Some(help)));
        }
        let arcs = edges.len() as f64 * if file.directed { 1.0 } else { 2.0 };
        memory.reserve("ties", arcs * ARC).map_err(|why| does_not_fit(tree, "topology", why))?;
        let csr = Csr::from_edges(n, edges, file.directed).map_err(blame)?;
        return Ok(Topology::Graph(Arc::new(csr)));
    }
    let most = memory.remaining() / (2.0 * ARC);
    let topology = topology::generate_within(&spec, n, population, scenario.seed, most).map_err(blame)?;
    if let Topology::Graph(csr) = &topology {
        memory.reserve("ties", csr.arcs() as f64 * ARC).map_err(|why| does_not_fit(tree, "topology", why))?;
    }
    Ok(topology)
}

fn does_not_fit(tree: &Node, path: &str, why: String) -> TreeError {
    let help = "take fewer agents or a sparser topology; --memory MB raises the limit";
    wrong(path, tree.get(path), tree, why, Some(help))
}

/// Whether the topology says of each agent, by number, what its ties are.
fn by_agent(scenario: &Scenario) -> bool {
    let Some(node) = &scenario.topology else { return false };
    let file = node.split_kind("topology").is_ok_and(|(kind, _)| kind.name == "file");
    file || node.get("degrees").is_some()
}

/// Generated topologies are undirected; a file says.
fn is_directed(node: &Node) -> bool {
    matches!(node.get("directed"), Some(Node { value: Value::Bool(true), .. }))
}

/// The tree with one change made, checked to touch nothing but parameters of leaves.
fn changed(tree: &Node, change: &Change, i: usize, roots: &[&str]) -> Result<Node, TreeError> {
    let mut tree = tree.clone();
    for (path, value) in &change.set {
        let root = path.split(['.', '[']).next().unwrap_or_default();
        let of_cohort = root != "cohorts" || path.contains(".policy.");
        if !roots.contains(&root) || !of_cohort || path.ends_with(".kind") || path == root {
            return Err(TreeError {
                message: format!("`{path}` can not change while a run is under way"),
                path: format!("changes[{i}].set"),
                origin: value.origin.clone(),
                help: Some("parameters of the world, of policies and of the method can; their kinds, the agents, the population and the topology can not".into()),
            });
        }
        tree.edit(path, value.clone())?;
    }
    Ok(tree)
}

/// The scenario's changes in order of round, each with the whole tree that holds from then on.
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
                "a change at round 0 is no change: write the value into the scenario",
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
    shards: usize,
    transport: Box<dyn Transport>,
    memory: &mut MemoryBudget,
) -> Result<Assembled, TreeError> {
    let people = match &scenario.population {
        Some(source) => Some(People::new(source, tree.get("population").unwrap_or(tree), inputs)?),
        None => None,
    };
    let sizes = sizes(scenario, tree, people.as_ref().and_then(People::rows))?;
    let agents: u32 = sizes.iter().sum();
    let unfit = |why: String| does_not_fit(tree, "agents", why);
    memory.reserve_agents(agents).map_err(unfit)?;
    if let Some(people) = &people {
        memory.reserve("population", people.memory_bytes(agents)).map_err(unfit)?;
    }
    let population = match people {
        Some(people) => {
            // Cohorts take agents in order: a sorted file would make them differ by more than their policies.
            let shuffled = sizes.len() > 1 && !by_agent(scenario);
            people.make(agents, shuffled, scenario.seed)?
        }
        None => Population::empty(agents),
    };
    let topology = topology(scenario, tree, agents, &population, inputs, Topology::None { n: agents }, memory)?;
    let audience = match (&scenario.topology, &topology) {
        (Some(node), Topology::Graph(csr)) if is_directed(node) => {
            memory.reserve("ties the other way", csr.arcs() as f64 * ARC).map_err(unfit)?;
            Some(Topology::Graph(Arc::new(csr.reversed())))
        }
        _ => None,
    };
    let commons = Commons { seed: scenario.seed, population, topology, audience };
    let lag = scenario.answers.lag();
    let names: Vec<String> = scenario
        .cohorts
        .iter()
        .flatten()
        .enumerate()
        .map(|(i, cohort)| cohort.name.clone().unwrap_or_else(|| format!("cohort-{i}")))
        .collect();
    check_budget(scenario, tree, lag > 0, Some(&names))?;
    let leaves = leaves(tree, registry, inputs, &commons, agents, shards)?;
    let world = f64::from(agents) * leaves.worlds.first().map_or(0, |world| world.memory_bytes()) as f64;
    memory.reserve("the world", world).map_err(unfit)?;
    let states: f64 =
        sizes.iter().zip(&leaves.policies).map(|(n, policy)| f64::from(*n) * policy.memory_bytes() as f64).sum();
    memory.reserve("states of agents", states).map_err(unfit)?;
    let told = sizes.iter().zip(&leaves.policies).filter(|(_, policy)| policy.tells_neighbours());
    let tellers: u32 = told.map(|(n, _)| *n).sum();
    if tellers > 0 {
        // Of those who tell only a part, about that part of the arcs.
        let arcs = (commons.topology.arcs() as f64 * f64::from(tellers) / f64::from(agents)) as u64;
        // A complete topology stores no arcs, so MAX_ARCS has not been checked for it.
        if arcs > topology::MAX_ARCS {
            let message = format!(
                "every agent would tell every other: {:.3e} letters a round, but at most {:.3e} are allowed",
                arcs as f64,
                topology::MAX_ARCS as f64
            );
            let help = "take fewer agents, or a topology that is not complete";
            return Err(wrong("topology", tree.get("topology"), tree, message, Some(help)));
        }
        memory.reserve_letters(arcs).map_err(unfit)?;
    }
    let mut later = Vec::new();
    for (at, tree) in changes(scenario, tree, &["world", "cohorts"])? {
        later.push((at, self::leaves(&tree, registry, inputs, &commons, agents, shards)?));
    }
    if lag > 0
        && let Some(i) = leaves.policies.iter().position(|policy| policy.council().is_some())
    {
        let message =
            format!("the agents of the cohort `{}` act on what their council of the same round comes to", names[i]);
        return Err(wrong("answers", tree.get("answers"), tree, message, Some("write `answers: wait`")));
    }
    let asks = |leaves: &Leaves| leaves.worlds.first().is_some_and(|world| !world.models().is_empty());
    if lag > 0 && (asks(&leaves) || later.iter().any(|(_, leaves)| asks(leaves))) {
        let message = "the world asks a model itself, and nobody looks before it has its answers";
        return Err(wrong("answers", tree.get("answers"), tree, message, Some("write `answers: wait`")));
    }
    let (activation, window) = activation(scenario, tree, leaves.worlds[0].as_ref(), lag)?;
    for (at, later) in &later {
        if later.worlds[0].delay() != window {
            let message = format!("the world's least delay can not change (in round {at}): events are planned by it");
            return Err(wrong("changes", tree.get("changes"), tree, message, None));
        }
    }
    let plan = Plan { rounds: scenario.rounds, lag, activation, window, cohorts: sizes, names };
    let society = Society::new(plan, commons, leaves, later, transport)
        .map_err(|bug| wrong("", None, tree, bug.to_string(), None))?;
    // A validation that can not be made is found before the run, not after it.
    checks(scenario, inputs, &society)?;
    Ok(Assembled::Society(Box::new(society)))
}

/// How agents take their turns, and in event time the length of a round.
fn activation(
    scenario: &Scenario,
    tree: &Node,
    world: &dyn WorldHost,
    lag: u32,
) -> Result<(Activation, Option<f64>), TreeError> {
    let wrong = |path: &str, message: String, help: &str| Err(wrong(path, tree.get(path), tree, message, Some(help)));
    let activation = scenario.activation.unwrap_or(world.activation());
    let window = world.delay();
    match (activation, window) {
        (Activation::EventTime, None) => {
            return wrong(
                "activation",
                "nothing happens in this world by itself: it has no event time".into(),
                "leave it out",
            );
        }
        (Activation::Simultaneous | Activation::RandomOrder, Some(_)) => {
            return wrong("activation", "this world lives in event time".into(), "leave it out, or write event-time");
        }
        (Activation::RandomOrder, None) if world.split() == Split::Rows => {
            let message =
                "the agents of this world do not see each other's acts within a round: an order makes no difference";
            return wrong("activation", message.into(), "leave it out, or write simultaneous");
        }
        (Activation::EventTime, Some(window)) if !(window > 0.0 && window.is_finite()) => {
            let message = format!("the world's least delay is {window}; it must be greater than 0");
            return wrong("world", message, "a greater least delay makes rounds that can be computed at once");
        }
        (Activation::RandomOrder, _) if lag > 0 => {
            let message =
                "in random order each agent sees what those before it have done, so none can act rounds later".into();
            return wrong("answers", message, "write `answers: wait`, or `activation: simultaneous`");
        }
        _ => {}
    }
    Ok((activation, window))
}

fn leaves(
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
    commons: &Commons,
    agents: u32,
    shards: usize,
) -> Result<Leaves, TreeError> {
    let scenario = Scenario::read(tree)?;
    let Commons { population, topology, .. } = commons;
    let setup = Setup { agents, population, topology, lag: scenario.answers.lag() };
    let Some(node) = &scenario.world else { return Err(wrong("world", None, tree, "the world is missing", None)) };
    let mut worlds = Vec::new();
    let mut name = String::new();
    for _ in 0..shards.max(1) {
        let (kind, world) = registry.open_world(node, "world", &setup)?;
        worlds.push(world);
        name = kind;
    }
    let interface = worlds[0].interface().clone();
    let binding = Binding {
        world: &name,
        interface: &interface,
        prompts: registry.prompts(&name),
        commons,
        agents,
        rounds: scenario.rounds,
        model: scenario.model.as_deref(),
        settings: scenario.settings,
        texts: &inputs.texts,
    };
    let mut policies = Vec::new();
    for (i, cohort) in scenario.cohorts.iter().flatten().enumerate() {
        policies.push(registry.open_policy(&cohort.policy, &format!("cohorts[{i}].policy"), &binding)?);
    }
    let of_world = interface.columns.len();
    let interface = interface_of(&*worlds[0], &policies);
    let mut measures = Vec::new();
    for (i, node) in scenario.metrics.iter().enumerate() {
        measures.push(measure(node, &format!("metrics[{i}]"), registry, &name, &interface, of_world)?);
    }
    Ok(Leaves { worlds, policies, measures })
}

fn measure(
    node: &Node,
    path: &str,
    registry: &Registry,
    world: &str,
    interface: &crate::sight::Interface,
    of_world: usize,
) -> Result<Measure, TreeError> {
    let (kind, rest) = node.split_kind(path)?;
    let Value::Map(entries) = &rest.value else {
        return Err(wrong(path, Some(node), node, "a metric is a map", None));
    };
    let (own, others): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|(key, _): &(Key, Node)| key.name == "of" || key.name == "every");
    let own = Node { value: Value::Map(own), origin: rest.origin.clone() };
    let rest = Node { value: Value::Map(others), origin: rest.origin };
    let MetricKeys { of, every } = own.read(path)?;
    if every == Some(0) {
        return Err(own.blame(path, Invalid { key: "every".into(), message: "must be at least 1 round".into() }));
    }
    let column = interface.columns.iter().position(|c| c.name == of);
    let act = interface.acts.iter().position(|a| a.name == of);
    let (reads, range) = match (column, act) {
        (Some(i), _) if i < of_world => (Reads::Column(i), interface.columns[i].range),
        (_, Some(i)) if !interface.acts[i].argument.has_number() => {
            let message = format!("acts of the kind `{of}` carry no number that could be measured");
            return Err(own.blame(path, Invalid { key: "of".into(), message }));
        }
        (_, Some(i)) => {
            let range = match interface.acts[i].argument {
                crate::sight::ActArgument::Number { low, high } => Some((low, high)),
                _ => None,
            };
            (Reads::Act(i as u16), range)
        }
        (Some(i), None) => (Reads::State(interface.columns[i].name.clone()), interface.columns[i].range),
        (None, None) => {
            let names = interface.columns.iter().map(|c| &c.name).chain(interface.acts.iter().map(|a| &a.name));
            let known: Vec<&str> = names.map(AsRef::as_ref).collect();
            let near = nearest(&of, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(own.blame(
                path,
                Invalid {
                    key: "of".into(),
                    message: format!("the world `{world}` has no quantity `{of}`{near} (it has {})", known.join(", ")),
                },
            ));
        }
    };
    let host = registry.open_metric(&kind, &rest, path, &Source { name: &of, range })?;
    Ok(Measure { host, reads, name: format!("{of}.{}", kind.name), every: every.unwrap_or(1) })
}

fn evaluation(scenario: &Scenario, tree: &Node, registry: &Registry, inputs: &Inputs) -> Result<Assembled, TreeError> {
    let team = team(scenario, tree)?;
    let n = team.len() as u32;
    let topology = topology(
        scenario,
        tree,
        n,
        &Population::empty(n),
        inputs,
        Topology::Complete { n },
        &mut MemoryBudget::unlimited(),
    )?;
    let items = items(scenario, tree, inputs)?;
    if scenario.rounds == 0 {
        return Err(wrong("rounds", tree.get("rounds"), tree, "a method works at least one round", None));
    }
    let open = |tree: &Node| -> Result<Box<dyn MethodHost>, TreeError> {
        let scenario = Scenario::read(tree)?;
        match &scenario.method {
            Some(node) => registry.open_method(node, "method", team.len(), scenario.rounds),
            None => Err(wrong("method", None, tree, "the method is missing", None)),
        }
    };
    let method = open(tree)?;
    if let Some((i, why)) = items.iter().enumerate().find_map(|(i, item)| Some((i, method.suits(item).err()?))) {
        return Err(wrong("method", tree.get("method"), tree, format!("it can not work on item {i}: {why}"), None));
    }
    let mut later = Vec::new();
    for (at, tree) in changes(scenario, tree, &["method"])? {
        later.push((at, open(&tree)?));
    }
    let window = scenario.window.unwrap_or(1000) as usize;
    let plan = evaluation::Plan { seed: scenario.seed, rounds: scenario.rounds, window, items, team, topology };
    Ok(Assembled::Evaluation(Box::new(Evaluation::new(plan, method, later))))
}

fn team(scenario: &Scenario, tree: &Node) -> Result<Vec<Member>, TreeError> {
    let listed = scenario.team.as_deref().unwrap_or_default();
    if scenario.team.is_some() && listed.is_empty() {
        return Err(wrong("team", tree.get("team"), tree, "a team has at least one member", None));
    }
    let n = scenario.agents.map_or(listed.len(), |n| n as usize);
    if n == 0 || n > 10_000 {
        let help = Some("add `agents: 3`, or a `team` with a list of members");
        return Err(wrong("agents", tree.get("agents"), tree, "a team has 1 to 10,000 members", help));
    }
    (0..n)
        .map(|i| {
            let source = listed.get(i % listed.len().max(1));
            let model = source.and_then(|m| m.model.clone()).or_else(|| scenario.model.clone());
            let Some(model) = model else {
                let help = Some("add `model: sim/medium`");
                return Err(wrong("team", tree.get("team"), tree, format!("member {i} has no model"), help));
            };
            if !model.contains('/') {
                let help = Some("for instance `sim/medium`");
                let message = format!("a model is named `provider/model`, not `{model}`");
                return Err(wrong("model", tree.get("model"), tree, message, help));
            }
            let round_robin = i / listed.len().max(1);
            let name = match source.and_then(|m| m.name.clone()) {
                Some(name) if round_robin == 0 => name,
                Some(name) => format!("{name} {}", round_robin + 1),
                None => format!("Agent {}", i + 1),
            };
            let settings = source.map_or(scenario.settings, |m| scenario.settings.with(m.settings));
            let node = tree.get("team").unwrap_or(tree);
            settings.check().map_err(|invalid| node.blame("team", invalid))?;
            let MemberSource { persona, role, misleads, .. } = source.cloned().unwrap_or_default();
            Ok(Member { name, model, persona, role, misleads, settings })
        })
        .collect()
}

fn items(scenario: &Scenario, tree: &Node, inputs: &Inputs) -> Result<Vec<Item>, TreeError> {
    let node = tree.get("items");
    let Some(source) = &scenario.items else {
        let help = Some("for instance `items: {file: questions.tsv, answer: answer}`");
        return Err(wrong("", None, tree, "an evaluation needs `items`: what is the team asked?", help));
    };
    let Some(table) = inputs.tables.get(&source.file) else {
        return Err(wrong("items.file", node, tree, format!("`{}` was not read", source.file), None));
    };
    items::read(source, table, scenario.seed).map_err(|invalid| node.unwrap_or(tree).blame("items", invalid))
}

/// What kind of file each wish is read as, for drivers that read them.
impl FileKind {
    /// A word for messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FileKind::Table => "table",
            FileKind::Edges => "edge list",
            FileKind::Text => "text",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::largest_remainder;

    #[test]
    fn proportions_are_kept_and_nobody_is_left_out() {
        assert_eq!(largest_remainder(&[0.5, 0.3, 0.2], 1.0, 10), [5, 3, 2]);
        assert_eq!(largest_remainder(&[0.5, 0.3, 0.2], 1.0, 7), [4, 2, 1]);
        assert_eq!(largest_remainder(&[0.98, 0.01, 0.01], 1.0, 5), [3, 1, 1]);
        assert_eq!(largest_remainder(&[1.0, 0.0, 1.0], 2.0, 3), [2, 0, 1]);
        for total in 3..200 {
            assert_eq!(largest_remainder(&[0.98, 0.01, 0.01], 1.0, total).iter().sum::<u32>() as u64, total);
        }
    }
}
