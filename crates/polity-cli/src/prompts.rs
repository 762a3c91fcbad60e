//! `polity prompts`: the prompts of methods and minds, and what agents would be sent.

use super::engine::plain_engine;
use super::failure::{Exit, Failure, Source, failure};
use super::output::{note, print_line};
use polity_driver::run::Prepared;
use polity_kernel::ask::{Asker, Role};
use polity_kernel::method::Prompt;
use polity_kernel::registry::{LeafInfo, Registry};
use polity_kernel::scenario::TextSource;
use polity_kernel::tree::{Node, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Shows the prompts of a method, or writes them to files.
pub fn of_method(method: &str, out: Option<&Path>, registry: &Registry) -> Result<Exit, Failure> {
    show(method, &texts_of(method, None, registry), out)
}

/// A prompt of a method, with its text in force and whether the scenario changed it.
type Shown = (&'static Prompt, String, bool);

/// Returns the prompts of a method, with the texts of a scenario.
fn texts_of(method: &str, scenario: Option<&Prepared>, registry: &Registry) -> Vec<Shown> {
    let prompts = registry.facts(method).map_or(&[][..], |facts| facts.prompts);
    let own = |prompt: &'static Prompt| {
        let scenario = scenario?;
        let node = scenario.tree.get("method")?.get("prompts")?.get(prompt.name)?;
        match node.read::<TextSource>("").ok()? {
            TextSource::Here(text) => Some(text),
            TextSource::In { file } => scenario.inputs.texts.get(&file).map(|text| text.to_string()),
        }
    };
    prompts
        .iter()
        .map(|prompt| match own(prompt) {
            Some(text) => (prompt, text.trim_end().to_owned(), true),
            None => (prompt, prompt.text.to_owned(), false),
        })
        .collect()
}

/// Prints the prompts of a method, or writes them to files.
fn show(method: &str, prompts: &[Shown], out: Option<&Path>) -> Result<Exit, Failure> {
    if prompts.is_empty() {
        return Err(Failure::new(Exit::Input, format!("the method `{method}` has no prompts")));
    }
    let Some(out) = out else {
        for (prompt, text, changed) in prompts {
            let held = |name: &&str| match prompt.must_hold.contains(name) {
                true => format!("{{{{ {name} }}}} (needed)"),
                false => format!("{{{{ {name} }}}}"),
            };
            let placeholders: Vec<String> = prompt.placeholders().iter().map(held).collect();
            let placeholders = match placeholders.as_slice() {
                [] => String::new(),
                all => format!("; placeholders: {}", all.join(", ")),
            };
            let whose = if *changed { " (changed in this scenario)" } else { "" };
            print_line(&format!("[{}]{whose} {}{placeholders}\n{text}", prompt.name, prompt.doc));
            if !changed {
                for (scorer, text) in prompt.by_scorer {
                    let scorer = serde_json::to_value(scorer).unwrap_or_default();
                    print_line(&format!("with `scorer: {}`: {text}", scorer.as_str().unwrap_or_default()));
                }
            }
            print_line("");
        }
        note(&format!(
            "a scenario changes them by name: `method: {{kind: {method}, prompts: {{{}: ...}}}}`; --out FOLDER writes them to files",
            prompts[0].0.name
        ));
        return Ok(Exit::Done);
    };
    let texts = prompts.iter().map(|(prompt, text, _)| (prompt.name, text.as_str())).collect();
    let names = write_files(&texts, out)?;
    note(&format!(
        "{} holds {names}. A scenario uses one by its name (paths are relative to the scenario):\n  method: {{kind: {method}, \
         prompts: {{{1}: {{file: {1}.md}}}}}}",
        out.display(),
        prompts[0].0.name
    ));
    Ok(Exit::Done)
}

/// Writes texts to new files, and returns the names of the files.
fn write_files(texts: &BTreeMap<&str, &str>, out: &Path) -> Result<String, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    if let Some(taken) = texts.keys().map(|name| out.join(format!("{name}.md"))).find(|path| path.exists()) {
        let message = format!("{} already exists; name another folder, or move the file away", taken.display());
        return Err(Failure::new(Exit::Input, message));
    }
    for (name, text) in texts {
        let path = out.join(format!("{name}.md"));
        std::fs::write(&path, format!("{}\n", text.trim_end())).map_err(|error| failed(&path, error))?;
    }
    Ok(texts.keys().map(|name| format!("{name}.md")).collect::<Vec<_>>().join(", "))
}

/// Shows what an agent or a member would be sent first, and the prompts of the scenario's method.
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
    let method = prepared.tree.get("method").and_then(|method| method.split_kind("method").ok());
    match (method, out) {
        (Some((kind, _)), None) => {
            print_line(&format!("\n--- prompts of the method `{}` ---\n", kind.name));
            show(&kind.name, &texts_of(&kind.name, Some(prepared), registry), None)
        }
        (Some((kind, _)), out) => show(&kind.name, &texts_of(&kind.name, Some(prepared), registry), out),
        (None, Some(out)) => write(&prepared.tree, out, registry),
        (None, None) => Ok(Exit::Done),
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
    let names = write_files(&templates.iter().map(|(name, text)| (*name, *text)).collect(), out)?;
    note(&format!(
        "{} holds {names}. A cohort uses one by its name (paths are relative to the scenario):\n  policy: {{kind: {}, \
         prompts: {{question: {{file: question.md}}}}}}",
        out.display(),
        of_those.join(" or ")
    ));
    Ok(Exit::Done)
}
