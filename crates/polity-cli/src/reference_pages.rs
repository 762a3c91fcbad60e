//! Two chapters of the book that are made from the program: the tables of runs, and the flags of all commands.

use super::engine::plain_engine;
use super::failure::{Exit, Failure};
use clap::Command;
use polity_driver::recorder::table_specs;
use polity_driver::run::prepare;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, Record, Scenario};
use polity_kernel::tree::{Node, Value};
use polity_store::files::{Reach, yaml};
use polity_store::tables::{Kind, TableSpec};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The tables of a leaf's example, with everything recorded; none if the example does not assemble. `items`: the file of a data set.
fn specs(registry: &Registry, name: &str, items: Option<&Path>) -> Option<(Vec<TableSpec>, Vec<String>)> {
    let mut tree = yaml::parse(registry.example(name)?).ok()?;
    let mut reach = Reach::of(Path::new("."), &[]);
    if let Some(file) = items {
        let text = Value::Text(file.file_name()?.to_str()?.into());
        tree.edit("items.file", Node::built(text)).ok()?;
        tree.edit("items.count", Node::built(Value::Int(1))).ok()?;
        reach = Reach::of(file.parent()?, &[]);
    }
    let prepared = prepare(tree, name, reach, name, Vec::new()).ok()?;
    let machine = plain_engine(registry).assemble(&prepared).ok()?;
    let mut scenario = Scenario::read(&prepared.tree).ok()?;
    scenario.record = Record {
        acts: true,
        agents: true,
        messages: true,
        calls: true,
        world: true,
        steps: true,
        states: Some(1),
        ties: Some(true),
        network: Some(true),
    };
    let own = match &machine {
        Assembled::Society(society) => society.interface().tables.iter().map(|table| table.name.to_string()).collect(),
        Assembled::Evaluation(_) => Vec::new(),
    };
    Some((table_specs(&machine, &scenario), own))
}

/// The same of a method's example, on an item of its own.
fn of_evaluation(registry: &Registry) -> Option<(Vec<TableSpec>, Vec<String>)> {
    let folder = std::env::temp_dir().join(format!("polity-reference-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let file = folder.join("item.jsonl");
    std::fs::write(&file, "{\"question\": \"1 + 1\", \"answer\": \"2\", \"difficulty\": 0.5}\n").ok()?;
    let found = specs(registry, "debate", Some(&file));
    // It is in the folder for temporary files in any case.
    let _ = std::fs::remove_dir_all(&folder);
    found
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::U32 | Kind::U64 => "whole number".into(),
        Kind::F64 => "number".into(),
        Kind::Bool => "true or false".into(),
        Kind::Text => "text".into(),
        Kind::Category(words) if words.len() <= 8 => {
            words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Category(_) => "one of several words".into(),
    }
}

fn describe(out: &mut String, spec: &TableSpec) {
    let _ = write!(out, "\n### {}\n\n{}\n\n| column | values | meaning |\n|---|---|---|\n", spec.name, spec.doc);
    for column in &spec.columns {
        let missing = if column.nullable { ", or missing" } else { "" };
        let volatile = if column.volatile { " It may differ between two runs of the same seed." } else { "" };
        let doc = column.doc.replace('|', "\\|");
        let _ = writeln!(out, "| `{}` | {}{missing} | {doc}.{volatile} |", column.name, kind(&column.kind));
    }
}

/// The chapter on tables.
pub(crate) fn tables(registry: &Registry) -> Result<String, Failure> {
    let missing = |name: &str| Failure::new(Exit::Defect, format!("the example of `{name}` does not assemble"));
    let mut out = String::from(
        "<!-- Made by `polity reference tables`; a test holds this file equal to what it prints. -->\n# Tables\n\n\
         A run leaves its tables as Parquet. Their columns are described in the files' metadata, too. A society has a column for each \
         attribute and each state of its agents; below are those of two examples.\n\n## Of a society\n",
    );
    let (society, _) = specs(registry, "guess-average", None).ok_or_else(|| missing("guess-average"))?;
    society.iter().for_each(|spec| describe(&mut out, spec));
    out.push_str("\n## Of an evaluation\n");
    let (evaluation, _) = of_evaluation(registry).ok_or_else(|| missing("debate"))?;
    let known: BTreeMap<&str, &TableSpec> = society.iter().map(|spec| (spec.name.as_str(), spec)).collect();
    evaluation
        .iter()
        .filter(|spec| known.get(spec.name.as_str()) != Some(spec))
        .for_each(|spec| describe(&mut out, spec));
    out.push_str("\n## Of worlds\n\nSome worlds record tables of their own.\n");
    for world in registry.worlds() {
        let Some((specs, own)) = specs(registry, world.name, None) else { continue };
        for spec in specs.iter().filter(|spec| own.contains(&spec.name)) {
            describe(&mut out, &TableSpec { name: format!("{} (world `{}`)", spec.name, world.name), ..spec.clone() });
        }
    }
    Ok(out)
}

/// The chapter on flags.
pub(crate) fn flags(whole: &Command) -> String {
    let mut out = String::from(
        "<!-- Made by `polity reference flags`; a test holds this file equal to what it prints. -->\n# All flags\n\n\
         `polity help VERB` prints the same in a terminal. [Commands](commands.md) says what the verbs are for.\n",
    );
    for verb in whole.get_subcommands().filter(|verb| verb.get_name() != "help") {
        section(&mut out, verb, verb.get_name());
    }
    out
}

fn section(out: &mut String, verb: &Command, name: &str) {
    let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(out, "\n## {name}\n\n{}.\n", about.trim_end_matches('.'));
    let arguments: Vec<&clap::Arg> =
        verb.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help").collect();
    if !arguments.is_empty() {
        out.push_str("\n| | |\n|---|---|\n");
    }
    for argument in arguments {
        let values = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
        let takes = argument.get_action().takes_values();
        let value = if takes { values.collect::<Vec<_>>().join(" ") } else { String::new() };
        let shown = match (argument.get_long(), argument.get_short()) {
            (Some(long), _) => format!("--{long} {value}"),
            (None, Some(short)) => format!("-{short} {value}"),
            (None, None) => value,
        };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "| `{}` | {} |", shown.trim(), help.replace('|', "\\|").replace('\n', " "));
    }
    for inner in verb.get_subcommands().filter(|inner| inner.get_name() != "help") {
        section(out, inner, &format!("{name} {}", inner.get_name()));
    }
}
