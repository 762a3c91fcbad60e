//! `polity prompts`: what agents would be sent, and its templates.

use super::engine::plain_engine;
use super::failure::{Exit, Failure, Source, failure};
use super::output::{note, print_line};
use polity_driver::run::Prepared;
use polity_kernel::ask::{Asker, Role};
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::tree::{Node, Value};
use std::collections::BTreeMap;
use std::path::Path;

pub fn prompts(
    (prepared, source): &(Prepared, Source),
    agent: Option<u32>,
    out: Option<&Path>,
    registry: &Registry,
) -> Result<Exit, Failure> {
    let engine = plain_engine(registry);
    let asked = engine.first_questions(prepared).map_err(|error| failure(&error, Some(source)))?;
    let effect = match agent {
        None => asked.first(),
        Some(agent) => asked.iter().find(|effect| effect.id.actor == agent),
    };
    match (effect, agent) {
        (Some(effect), _) => {
            let request = &effect.request;
            let whose = if effect.id.asker == Asker::Cohort { " for its group" } else { "" };
            print_line(&format!("agent {}{whose}, {}: {}", effect.id.actor, request.model, request.purpose));
            for message in request.messages.iter() {
                let role = match message.role {
                    Role::System => "system",
                    Role::User => "user",
                    Role::Assistant => "assistant",
                };
                print_line(&format!("\n[{role}]\n{}", message.rendered()));
            }
            print_line(&format!("\n[response format]\n{}", serde_json::json!(request.response_format)));
        }
        (None, Some(agent)) if !asked.is_empty() => {
            return Err(Failure::new(Exit::Input, format!("agent {agent} asks no model in the first round")));
        }
        (None, _) => note("no agent asks a model in the first round of this scenario"),
    }
    match out {
        Some(out) => write(&prepared.tree, out, registry),
        None => Ok(Exit::Done),
    }
}

fn kind(node: Option<&Node>) -> Option<&str> {
    match node?.get("kind").map(|node| &node.value) {
        Some(Value::Text(kind)) => Some(kind),
        _ => None,
    }
}

/// Writes the templates of the world and of the policies that have some.
fn write(tree: &Node, out: &Path, registry: &Registry) -> Result<Exit, Failure> {
    let cohorts = match tree.get("cohorts").map(|node| &node.value) {
        Some(Value::List(cohorts)) => cohorts.as_slice(),
        _ => &[],
    };
    let policies: Vec<&str> = cohorts.iter().filter_map(|cohort| kind(cohort.get("policy"))).collect();
    let of = |cards: Vec<&LeafInfo>, names: &[&str]| -> BTreeMap<&'static str, &'static str> {
        let named = cards.into_iter().filter(|card| names.contains(&card.name));
        named.flat_map(|card| card.files.prompts.iter().copied()).collect()
    };
    let mut templates = of(registry.policies(), &policies);
    let asks = |card: &&LeafInfo| policies.contains(&card.name) && !card.files.prompts.is_empty();
    let of_those: Vec<&str> = registry.policies().into_iter().filter(asks).map(|card| card.name).collect();
    if templates.is_empty() {
        return Err(Failure::new(
            Exit::Input,
            "no cohort of this scenario has prompts; give one `policy: {kind: mind}`",
        ));
    }
    let world: Vec<&str> = kind(tree.get("world")).into_iter().collect();
    // The world's own templates take precedence.
    templates.extend(of(registry.worlds(), &world));
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    if let Some(taken) = templates.keys().map(|name| out.join(format!("{name}.md"))).find(|path| path.exists()) {
        let message = format!("{} already exists; name another folder, or move the file away", taken.display());
        return Err(Failure::new(Exit::Input, message));
    }
    for (name, text) in &templates {
        let path = out.join(format!("{name}.md"));
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    let names: Vec<&str> = templates.keys().copied().collect();
    note(&format!(
        "{} holds {}. A cohort uses one by its name (paths are relative to the scenario):\n  policy: {{kind: {}, \
         prompts: {{question: {{file: question.md}}}}}}",
        out.display(),
        names.iter().map(|name| format!("{name}.md")).collect::<Vec<_>>().join(", "),
        of_those.join(" or ")
    ));
    Ok(Exit::Done)
}
