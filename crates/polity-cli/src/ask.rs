//! `polity ask`: one question or task for a team, whose answer is printed.

use super::args::{Answering, Asking, Common, Edits, Keys, Listening};
use super::engine::{continues_with, with_engine};
use super::failure::{Exit, Failure, Source, failure};
use super::flags::{all_edits, check_model, edits as read_edits, no_model};
use super::output::{self, note, print_line};
use super::{answer, lost, progress, story};
use polity_arena::arena::{Entrant, Spent};
use polity_arena::team::{TeamRequest, answer_of, scenario_of, with_question};
use polity_driver::results;
use polity_driver::run::{Engine, Prepared, RunStatus, Summary, new_folder, seed_of};
use polity_kernel::registry::Registry;
use polity_kernel::scenario::Budget;
use polity_kernel::tree::{Node, Value};
use polity_store::files::{self, Reach};
use serde_json::json;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// The longest question, in bytes.
const LONGEST: u64 = 10_000_000;
/// How long answers are, unless the scenario or a flag says otherwise: nothing is scored, so nothing asks for short ones.
const LENGTH: &str = "as long as the task asks for";
/// The prompt that says so.
const LENGTH_PROMPT: &str = "length";

/// Puts a question to a team, and prints its answer.
pub(crate) fn ask(
    asked: &Asking,
    edits: &Edits,
    budget: Budget,
    answering: &Answering,
    common: &Common,
    registry: &Registry,
) -> Result<Exit, Failure> {
    // First, since a wrong name can be reported before a question is typed.
    let entrant = match is_scenario(&asked.method) {
        true => None,
        false => Some(Entrant::read(&asked.method, edits.keys.agents, edits.keys.rounds, registry)?),
    };
    let text = question(asked)?;
    let (prepared, source) = match &entrant {
        None => of_file(asked, edits, &text, answering, registry)?,
        Some(entrant) => (of_method(entrant, edits, &text, answering, registry)?, None),
    };
    let name = if entrant.is_some() { &asked.method } else { &prepared.name };
    with_engine(common, answering, registry, |engine, stop| {
        let out = match &asked.out {
            Some(out) => out.clone(),
            None => new_folder(engine.disk.as_ref(), &format!("ask-{name}"), seed_of(&prepared.tree))?,
        };
        let mut watch = progress::Bar::new(stop);
        continues_with("run", &out);
        let _doors = answer::open(&out, Listening::default(), &watch)?;
        let engine = &Engine { budget: budget.clone(), ..engine.clone() };
        let ran = engine.run(&prepared, &out, &mut watch);
        let summary = ran.map_err(|error| lost(failure(&error, source.as_ref()), &error, &out))?;
        watch.finish();
        tell(&summary, engine, common, registry)
    })
}

/// Prints the answer, and says what it cost.
fn tell(summary: &Summary, engine: &Engine<'_>, common: &Common, registry: &Registry) -> Result<Exit, Failure> {
    let run = results::of_run(engine.disk.as_ref(), Path::new(&summary.run))?;
    let folder = run.folder.display();
    let (exit, answered) = match summary.status {
        RunStatus::Stopped => (Exit::Stopped, None),
        RunStatus::Budget => (Exit::Budget, None),
        _ => (Exit::Done, answer_of(&run, &summary.digest, &|model| engine.knows_price(&run.manifest, model))?),
    };
    if exit == Exit::Done && !common.no_report {
        story::write_report(engine.disk.as_ref(), &run, &story::metrics(&run.tables)?, registry)?;
    }
    let spent = answered.as_ref().map_or_else(Spent::default, |(_, spent)| *spent);
    match &answered {
        Some((text, _)) => {
            if !common.json {
                print_line(text);
            }
            let cost = match spent.cost_usd {
                Some(usd) => format!("${usd:.4}"),
                None => "at an unknown price (--price sets it)".into(),
            };
            let simulated = if summary.simulated { " of simulated models" } else { "" };
            note(&format!(
                "{} answers{simulated}, {} tokens, {cost}; run folder {folder} (`polity calls {folder}` shows every prompt and answer)",
                spent.calls,
                spent.tokens()
            ));
        }
        None if exit == Exit::Done => {
            let message = format!(
                "the members came to no answer; `polity calls {folder}` shows what they were asked and what they answered"
            );
            return Err(Failure::new(Exit::Defect, message));
        }
        None => note(&format!("there is no answer yet; `polity resume {folder}` continues, and prints it")),
    }
    if common.json {
        let text = answered.map(|(text, _)| text);
        let Spent { calls, tokens_in, tokens_out, cost_usd } = spent;
        print_line(&output::json(&json!({
            "status": summary.status, "answer": text, "run": summary.run, "digest": summary.digest, "simulated": summary.simulated,
            "calls": calls, "tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": cost_usd,
        })));
    }
    Ok(exit)
}

/// Whether a team is named by a scenario file.
fn is_scenario(method: &str) -> bool {
    Path::new(method).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Returns the run of a method with a team of equal members.
fn of_method(
    entrant: &Entrant,
    edits: &Edits,
    text: &str,
    answering: &Answering,
    registry: &Registry,
) -> Result<Prepared, Failure> {
    let Edits { keys: Keys { seed, set, .. }, model } = edits;
    let mut edits = read_edits(set)?;
    let has_models = edits.iter().any(|(path, _)| path == "team" || path == "model");
    let model = match model {
        Some(model) => model.clone(),
        None if has_models => String::new(),
        None => return Err(no_model()),
    };
    if !model.is_empty() {
        check_model(&model)?;
    }
    edits.extend(answering.flags()?);
    edits.extend(entrant.set.iter().cloned());
    let wish = TeamRequest { model, seed: seed.unwrap_or(1), edits, budget: Budget::default() };
    let mut tree = scenario_of(entrant, &wish)?;
    if wish.model.is_empty() {
        tree.take("model");
    }
    lengthen(&mut tree, entrant.method, registry)?;
    Ok(with_question(tree, text, Path::new("."), wish.edits)?)
}

/// Returns the run of a scenario's team, with the question in the place of its items.
fn of_file(
    asked: &Asking,
    edits: &Edits,
    text: &str,
    answering: &Answering,
    registry: &Registry,
) -> Result<(Prepared, Option<Source>), Failure> {
    let path = Path::new(&asked.method);
    let (scenario, mut tree) = files::read_file(path)?;
    let source = Source { name: path.display().to_string(), text: scenario };
    let blame = |error: polity_store::DriveError| failure(&error, Some(&source));
    let Some(method) = tree.get("method") else {
        let message = format!("{} has no `method`, so it has no team to ask", path.display());
        return Err(Failure::new(Exit::Input, message));
    };
    let (kind, _) = method.split_kind("method").map_err(|error| blame(error.into()))?;
    lengthen(&mut tree, &kind.name, registry)?;
    let all = all_edits(&tree, &edits.keys.set, edits.flags().into_iter().chain(answering.flags()?))?;
    let reach = Reach::of(path.parent().unwrap_or(Path::new(".")), &[]);
    let prepared = with_question(tree, text, reach, all).map_err(blame)?;
    Ok((prepared, Some(source)))
}

/// Lets answers be as long as the task asks for, unless the scenario says how long they are to be.
fn lengthen(tree: &mut Node, method: &str, registry: &Registry) -> Result<(), Failure> {
    let has = registry.facts(method).is_some_and(|facts| facts.prompts.iter().any(|p| p.name == LENGTH_PROMPT));
    let is_set = tree.get("method").and_then(|method| method.get("prompts")?.get(LENGTH_PROMPT)).is_some();
    if has && !is_set {
        if let Some(Node { value: Value::Text(kind), .. }) = tree.get("method") {
            let whole = Node::from_json(&json!({ "kind": kind }));
            tree.edit("method", whole).map_err(polity_store::DriveError::from)?;
        }
        let length = Node::built(Value::Text(LENGTH.into()));
        tree.edit(&format!("method.prompts.{LENGTH_PROMPT}"), length).map_err(polity_store::DriveError::from)?;
    }
    Ok(())
}

/// Reads the question: from the command line, a file, or standard input.
fn question(asked: &Asking) -> Result<String, Failure> {
    let unreadable =
        |name: &str, error: &std::io::Error| Failure::new(Exit::Input, format!("{name} cannot be read: {error}"));
    let read = |name: &str, reader: &mut dyn Read| {
        let mut text = String::new();
        reader.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(name, &error))?;
        if text.len() as u64 > LONGEST {
            return Err(Failure::new(Exit::Input, format!("{name} is longer than {LONGEST} bytes")));
        }
        Ok::<_, Failure>(text)
    };
    let text = match (asked.question.as_deref(), &asked.file) {
        (Some("-"), _) => {
            let mut input = std::io::stdin();
            if input.is_terminal() {
                note("reading the question from this terminal; end it with Ctrl-D");
            }
            read("standard input", &mut input)?
        }
        (Some(text), _) => text.to_owned(),
        (None, Some(file)) => {
            let name = file.display().to_string();
            read(&name, &mut std::fs::File::open(file).map_err(|error| unreadable(&name, &error))?)?
        }
        (None, None) => String::new(),
    };
    match text.trim() {
        "" => Err(Failure::new(Exit::Input, "the question is empty")),
        text => Ok(text.to_owned()),
    }
}
