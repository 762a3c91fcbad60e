//! From a scenario file, edits and flags to something that can be assembled.

use super::manifest::InputEntry;
use crate::DriveError;
use crate::drive::digest_of;
use crate::files;
use polity_kernel::scenario::{FileKind, Inputs, Scenario};
use polity_kernel::tree::{Invalid, Key, Node, Origin, TreeError, Value};
use std::path::Path;
use std::sync::Arc;

/// A scenario with the contents of its files.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario with all edits.
    pub tree: Node,
    /// Its name.
    pub name: String,
    /// Its file, as given.
    pub source: String,
    /// What its files hold.
    pub inputs: Inputs,
    pub(super) files: Vec<InputFile>,
}

#[derive(Clone, Debug)]
pub(super) struct InputFile {
    pub entry: InputEntry,
    pub bytes: Arc<Vec<u8>>,
}

/// A key that a flag sets: `--rounds 5` is `rounds=5`.
pub type SetKey = (String, Node);

/// Reads the files that a scenario names (relative to `folder`) after edits were made on its tree.
pub fn prepare(
    mut tree: Node,
    source: &str,
    folder: &Path,
    default_name: &str,
    edits: Vec<SetKey>,
) -> Result<Prepared, DriveError> {
    for (path, value) in edits {
        tree.edit(&path, value)?;
    }
    let scenario = Scenario::read(&tree)?;
    let mut inputs = Inputs::default();
    let mut loaded: Vec<InputFile> = Vec::new();
    for wish in scenario.files() {
        let path = folder.join(&wish.path);
        let bytes = files::read_bytes(&path).map_err(|e| blame(&tree, &wish.key, &e))?;
        match wish.kind {
            FileKind::Table => {
                let table = files::table_from_bytes(&path, bytes.clone()).map_err(|e| blame(&tree, &wish.key, &e))?;
                inputs.tables.insert(wish.path.clone(), Arc::new(table));
            }
            FileKind::Edges => {
                let edges =
                    files::edges_from_bytes(&path, bytes.clone(), None).map_err(|e| blame(&tree, &wish.key, &e))?;
                inputs.edges.insert(wish.path.clone(), Arc::new(edges.edges));
            }
        }
        let name = Path::new(&wish.path).file_name().map_or("input".into(), |n| n.to_string_lossy().into_owned());
        let entry = InputEntry {
            stored: format!("{}-{name}", loaded.len()),
            path: wish.path,
            bytes: bytes.len() as u64,
            digest: digest_of(&bytes).to_string(),
        };
        loaded.push(InputFile { entry, bytes: Arc::new(bytes) });
    }
    let name = scenario.name.clone().unwrap_or_else(|| default_name.to_string());
    Ok(Prepared { tree, name, source: source.into(), inputs, files: loaded })
}

/// A file's error, pointing at the key that names the file.
fn blame(tree: &Node, key: &str, error: &dyn std::fmt::Display) -> DriveError {
    let error = tree.blame("", Invalid { key: key.to_string(), message: error.to_string() });
    DriveError::Scenario(TreeError { help: None, ..error })
}

impl Prepared {
    /// Makes edits hold from round `at` on; at round 0 they simply hold.
    pub fn change_at(&mut self, at: u32, edits: Vec<SetKey>) -> Result<(), DriveError> {
        if edits.is_empty() {
            return Ok(());
        }
        if at == 0 {
            for (path, value) in edits {
                self.tree.edit(&path, value)?;
            }
            return Ok(());
        }
        let key = |name: &str| Key { name: name.into(), origin: Origin::Built };
        let set = edits.into_iter().map(|(path, value)| (key(&path), value)).collect();
        let change = Node::built(Value::Map(vec![
            (key("at"), Node::built(Value::Int(i64::from(at)))),
            (key("set"), Node::built(Value::Map(set))),
        ]));
        let mut changes = match self.tree.get("changes").map(|node| &node.value) {
            Some(Value::List(items)) => items.clone(),
            _ => Vec::new(),
        };
        changes.push(change);
        self.tree.edit("changes", Node::built(Value::List(changes)))?;
        Ok(())
    }
}
