//! The `tools` of a scenario: a list of toolkits, opened as one toolbox.

use super::files::{FileKind, FileWish, Inputs};
use super::keys::{Scenario, ToolkitKeys};
use crate::registry::{Registry, ToolkitSetup};
use crate::toolbox::{Kit, RESULT_TOKENS, Toolbox, bytes};
use crate::tree::{Invalid, Key, Node, TreeError, Value, nearest};
use std::sync::Arc;

/// The keys that the scenario itself reads.
const OWN: [&str; 3] = ["name", "only", "result_tokens"];

/// An entry of `tools`, split into what the scenario reads and what its toolkit reads.
#[derive(Clone, Debug)]
pub struct ToolkitEntry {
    /// Its kind.
    pub kind: Key,
    /// Its name.
    pub name: String,
    /// The parameters of the toolkit.
    pub parameters: Node,
    keys: ToolkitKeys,
}

impl ToolkitEntry {
    /// Reads an entry; `path` is its path in the scenario.
    ///
    /// # Errors
    /// An entry that is no toolkit.
    pub fn read(node: &Node, path: &str) -> Result<Self, TreeError> {
        let (kind, rest) = node.split_kind(path)?;
        let Value::Map(entries) = &rest.value else {
            return Err(rest.blame(path, Invalid { key: String::new(), message: "a toolkit must be a map".into() }));
        };
        let (own, others): (Vec<_>, Vec<_>) =
            entries.iter().cloned().partition(|(key, _): &(Key, Node)| OWN.contains(&key.name.as_str()));
        let own = Node { value: Value::Map(own), origin: rest.origin.clone() };
        let keys: ToolkitKeys = own.read(path)?;
        let invalid = |key: &str, message: &str| own.blame(path, Invalid { key: key.into(), message: message.into() });
        if keys.result_tokens == Some(0) {
            return Err(invalid("result_tokens", "must be at least 1"));
        }
        let name = keys.name.clone().unwrap_or_else(|| kind.name.clone());
        if name.is_empty()
            || name.len() > 32
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            return Err(invalid("name", "must be 1 to 32 letters, digits, `_` or `-`"));
        }
        Ok(ToolkitEntry { kind, name, parameters: Node { value: Value::Map(others), origin: rest.origin }, keys })
    }
}

/// Opens the toolkits of a scenario.
pub(super) fn open(scenario: &Scenario, registry: &Registry, inputs: &Inputs) -> Result<Arc<Toolbox>, TreeError> {
    let (tools, model) = (&scenario.tools, scenario.model.as_deref());
    let mut kits: Vec<Kit> = Vec::new();
    for (i, node) in tools.iter().enumerate() {
        let path = format!("tools[{i}]");
        let blame = |key: &str, message: String| node.blame(&path, Invalid { key: key.into(), message });
        let entry = ToolkitEntry::read(node, &path)?;
        let ToolkitEntry { kind, name, parameters, keys } = entry;
        if kits.iter().any(|kit| kit.name == name) {
            return Err(blame("", format!("two toolkits are named `{name}`; give one of them a `name`")));
        }
        let listed = inputs.tools.get(&name).map(|listed| listed.tools.as_slice());
        let setup = ToolkitSetup { inputs, listed, model };
        let (mut tools, host) = registry.open_toolkit(&kind, &parameters, &path, &setup)?;
        if let Some(only) = &keys.only {
            let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
                let near = nearest(unknown, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!(", did you mean `{near}`?"));
                let message = format!("`{}` has no tool `{unknown}`{near} (it has {})", kind.name, known.join(", "));
                return Err(blame("only", message));
            }
            if only.is_empty() {
                return Err(blame("only", "name at least one tool, or leave the toolkit out".into()));
            }
            tools.retain(|tool| only.iter().any(|name| *name == *tool.name));
        }
        // A session that is named like the kind belongs to this entry; any other is shared by the toolkits that name it.
        for tool in tools.iter_mut().filter(|tool| tool.session.as_deref() == Some(kind.name.as_str())) {
            tool.session = Some(name.as_str().into());
        }
        let prefix = keys.name.as_ref().map_or(String::new(), |name| format!("{name}_"));
        let most = bytes(keys.result_tokens.unwrap_or(RESULT_TOKENS));
        kits.push(Kit { name, tools, prefix, most, host });
        if let Err(message) = Toolbox::check_names(&kits) {
            return Err(blame("", message));
        }
    }
    Ok(Arc::new(Toolbox::new(kits)))
}

/// Checks that no tool has the name of an action of the environment.
pub(super) fn apart(toolbox: &Toolbox, actions: &[&str]) -> Result<(), String> {
    match toolbox.tools().iter().find(|tool| actions.contains(&&*tool.name)) {
        None => Ok(()),
        Some(tool) => Err(format!(
            "the environment has an action `{0}`, and a toolkit a tool `{0}`; give the toolkit a `name`, which is put before the names of its \
             tools",
            tool.name
        )),
    }
}

/// Returns the files that toolkits name with `file: PATH`, `files: [PATH, ...]` or `folder: PATH`: tables, texts or bytes by their extension.
pub(super) fn files(tools: &[Node]) -> Vec<FileWish> {
    let mut wishes = Vec::new();
    for (i, node) in tools.iter().enumerate() {
        let Ok((_, rest)) = node.split_kind("tools") else { continue };
        let mut wish = |key: String, node: &Node| {
            if let Value::Text(path) = &node.value {
                let kind = if key == "folder" { FileKind::Folder } else { kind_of(path) };
                wishes.push(FileWish { path: path.clone(), key: format!("tools[{i}].{key}"), kind });
            }
        };
        for key in ["file", "folder"] {
            if let Some(file) = rest.get(key) {
                wish(key.into(), file);
            }
        }
        if let Some(Node { value: Value::List(all), .. }) = rest.get("files") {
            all.iter().enumerate().for_each(|(j, file)| wish(format!("files[{j}]"), file));
        }
    }
    wishes
}

fn kind_of(path: &str) -> FileKind {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "csv" | "tsv" | "jsonl" => FileKind::Texts,
        "md" | "txt" | "html" | "htm" | "json" | "yaml" | "py" => FileKind::Text,
        _ => FileKind::Bytes,
    }
}
