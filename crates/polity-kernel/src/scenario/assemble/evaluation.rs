//! Assembly of an evaluation: its team, its items with their recorded answers, and its method.

use super::{MESSAGES, changes, topology, wrong};
use crate::environment::Env;
use crate::evaluation::{Evaluation, Plan};
use crate::items::{self, Item, Recording, recorded_model};
use crate::method::{MOST_MEMBERS, Member, MethodHost, Methods, TeamSetup, all_act, members, roles_exist, tools_exist};
use crate::population::Population;
use crate::registry::Registry;
use crate::scenario::{Draft, Inputs, MemoryBudget, Scenario, toolbox};
use crate::topology::Topology;
use crate::tree::{Node, TreeError};
use std::sync::Arc;

/// Assembles an evaluation: a method, a team and the items of a data set.
pub(super) fn draft(
    scenario: &Scenario,
    tree: &Node,
    registry: &Registry,
    inputs: &Inputs,
) -> Result<Draft, TreeError> {
    if !scenario.messages.is_empty() {
        let help = Some("leave it out");
        return Err(wrong(MESSAGES, tree.get(MESSAGES), tree, "only a society has messages to send", help));
    }
    let team = team(scenario, tree)?;
    let n = team.len() as u32;
    let unlimited = &mut MemoryBudget::unlimited();
    let topology = topology(scenario, tree, n, &Population::empty(n), inputs, unlimited, None)?;
    let (topology, _) = topology.unwrap_or((Topology::Complete { n }, false));
    let items = items(scenario, tree, inputs)?;
    recorded_members(&team, &items, tree)?;
    let models: Vec<&str> = team.iter().map(|member| member.model.as_str()).collect();
    for (i, fault) in scenario.faults.iter().enumerate() {
        let checked = fault.check(&models, items.len(), scenario.rounds);
        checked.map_err(|invalid| tree.blame(&format!("faults[{i}]"), invalid))?;
    }
    if scenario.rounds == 0 {
        return Err(wrong("rounds", tree.get("rounds"), tree, "a method needs at least one round", None));
    }
    let open = |tree: &Node| -> Result<Box<dyn MethodHost>, TreeError> {
        let scenario = Scenario::read(tree)?;
        match &scenario.method {
            Some(node) => {
                let setup = TeamSetup { members: team.len(), rounds: scenario.rounds, texts: &inputs.texts };
                registry.open_method(node, "method", &setup)
            }
            None => Err(wrong("method", None, tree, "the method is missing", None)),
        }
    };
    let method = open(tree)?;
    if let Some(Ok((kind, _))) = scenario.method.as_ref().map(|node| node.split_kind("method"))
        && let Some(facts) = registry.facts(&kind.name)
    {
        let checked = roles_exist(scenario.team.as_deref().unwrap_or_default(), &kind.name, facts.roles);
        checked.map_err(|invalid| tree.blame("", invalid))?;
    }
    if let Some((i, why)) = items.iter().enumerate().find_map(|(i, item)| Some((i, method.suits(item).err()?))) {
        return Err(wrong("method", tree.get("method"), tree, format!("it cannot work on item {i}: {why}"), None));
    }
    let mut later = Vec::new();
    for (at, tree) in changes(scenario, tree, &["method"])? {
        later.push((at, open(&tree)?));
    }
    let methods: Vec<&dyn MethodHost> =
        [&method].into_iter().chain(later.iter().map(|(_, method)| method)).map(AsRef::as_ref).collect();
    let listed = scenario.team.as_ref().map_or(0, Vec::len);
    all_act(&methods, &team, listed).map_err(|invalid| tree.blame("", invalid))?;
    let window = scenario.max_concurrent.unwrap_or(1000) as usize;
    let retries = scenario.max_retries.unwrap_or(0);
    let environment = match &scenario.environment {
        Some(node) => Some(registry.open_environment(node, "environment", &inputs.texts)?),
        None => None,
    };
    if let Some(seats) = environment.as_ref().map(Env::seats).filter(|seats| *seats != 1) {
        let message = format!("a team needs an environment with one seat, but this one has {seats}");
        let help = Some("use it as the `world` of a society, in which each agent takes a seat");
        return Err(wrong("environment", tree.get("environment"), tree, message, help));
    }
    let toolbox = toolbox::open(scenario, registry, inputs)?;
    let acts = environment.iter().flat_map(|environment| &environment.interface().acts);
    let actions: Vec<&str> = acts.map(|act| act.name.as_ref()).collect();
    toolbox::apart(&toolbox, &actions).map_err(|why| wrong("tools", tree.get("tools"), tree, why, None))?;
    let checked = tools_exist(scenario.team.as_deref().unwrap_or_default(), &toolbox, &actions);
    checked.map_err(|invalid| tree.blame("", invalid))?;
    let plan = Plan {
        seed: scenario.seed,
        rounds: scenario.rounds,
        window,
        items,
        team,
        topology,
        retries,
        placebos: scenario.placebo.clone(),
        faults: scenario.faults.clone(),
        environment,
        toolbox,
    };
    Ok(Draft::Evaluation(Box::new(Evaluation::new(plan, method, later))))
}

fn team(scenario: &Scenario, tree: &Node) -> Result<Vec<Member>, TreeError> {
    let listed = scenario.team.as_deref().unwrap_or_default();
    if scenario.team.is_some() && listed.is_empty() {
        return Err(wrong("team", tree.get("team"), tree, "a team must have at least one member", None));
    }
    let n = scenario.agents.map_or(listed.len(), |n| n as usize);
    if n == 0 || n > MOST_MEMBERS {
        let help = Some("add `agents: 3`, or a `team` with a list of members");
        return Err(wrong("agents", tree.get("agents"), tree, "a team must have 1 to 10,000 members", help));
    }
    let members = members(n, listed, scenario.model.as_deref(), scenario.settings);
    members.map_err(|invalid| tree.blame("", invalid))
}

fn items(scenario: &Scenario, tree: &Node, inputs: &Inputs) -> Result<Vec<Item>, TreeError> {
    let node = tree.get("items");
    let Some(source) = &scenario.items else {
        let help = Some("for instance `items: {file: questions.tsv, answer: answer}`");
        return Err(wrong("", None, tree, "an evaluation needs `items`, the questions that the team is asked", help));
    };
    let Some(table) = inputs.tables.get(&source.file) else {
        return Err(wrong("items.file", node, tree, format!("`{}` was not read", source.file), None));
    };
    let blame = |invalid| node.unwrap_or(tree).blame("items", invalid);
    let recording = match &source.recorded {
        None => None,
        Some(path) if *path == source.file => {
            let message = "the recorded answers must be in another file than the items";
            return Err(wrong("items.recorded", node, tree, message, None));
        }
        Some(path) => match inputs.tables.get(path) {
            Some(table) => Some(Arc::new(Recording::read(table).map_err(blame)?)),
            None => return Err(wrong("items.recorded", node, tree, format!("`{path}` was not read"), None)),
        },
    };
    let checker = match &source.checker {
        None => None,
        Some(path) => match inputs.texts.get(path) {
            Some(text) => Some(text),
            None => return Err(wrong("items.checker", node, tree, format!("`{path}` was not read"), None)),
        },
    };
    items::read(source, table, recording.as_ref(), checker, scenario.seed).map_err(blame)
}

/// Checks that members with recorded answers have some. A persona would be part of a question that nobody was asked.
fn recorded_members(team: &[Member], items: &[Item], tree: &Node) -> Result<(), TreeError> {
    let recording = items.first().and_then(|item| item.recording.as_ref());
    for (i, member) in team.iter().enumerate() {
        let Some(model) = recorded_model(&member.model) else { continue };
        let at = |key: &str| format!("team[{i}].{key}");
        let refused = |key: String, message: String| Err(wrong(&key, tree.get(&key), tree, message, None));
        let Some(recording) = recording else {
            let message = format!("`{}` needs `items.recorded`, the table with its answers", member.model);
            return refused(at("model"), message);
        };
        if let Err(why) = recording.knows(model) {
            return refused(at("model"), why);
        }
        if !member.persona.is_empty() {
            return refused(at("persona"), "recorded answers were given without a persona; leave it out".into());
        }
    }
    Ok(())
}
