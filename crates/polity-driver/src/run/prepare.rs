//! Prepares a scenario file with edits and flags for assembly.

use polity_kernel::digest::FileHash;
use polity_kernel::scenario::{FileKind, FileWish, Inputs, Scenario};
use polity_kernel::tree::{Invalid, Key, Node, Origin, TreeError, Value};
use polity_store::DriveError;
use polity_store::files::{self, DataError, Reach};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
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
    /// The contents of its files.
    pub inputs: Inputs,
    /// The flags that changed it, as in the manifest.
    pub edits: Vec<String>,
    /// Its `design:`, which [`crate::sweep`] reads.
    pub design: Option<Planned>,
    pub(crate) files: Vec<InputFile>,
}

/// A design not yet expanded.
#[derive(Clone, Debug)]
pub struct Planned {
    pub(crate) node: Node,
    /// Which files its arms may read.
    pub(crate) reach: Reach,
}

#[derive(Clone, Debug)]
pub(crate) struct InputFile {
    pub entry: InputEntry,
    pub bytes: Arc<Vec<u8>>,
}

/// A key that a flag sets: `--rounds 5` is `rounds=5`.
pub type SetKey = (String, Node);

/// Quotes a word for a shell, if it must be quoted.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-=+/,:@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Edits as command-line words.
pub(crate) fn words(edits: &[SetKey]) -> Vec<String> {
    edits.iter().map(|(path, value)| format!("-P {}", quoted(&format!("{path}={}", value.to_json())))).collect()
}

/// Set flags as command-line words.
pub(crate) fn flags(edits: &[SetKey]) -> Vec<String> {
    let word = |edit: &SetKey| match &edit.1.origin {
        Origin::Edit(text) if text.starts_with("--") => vec![text.to_string()],
        _ => words(std::slice::from_ref(edit)),
    };
    edits.iter().flat_map(word).collect()
}

/// Reads the files named by a scenario after its tree was edited, within its reach: those below its folder. A `design:` is kept
/// separately, since no run of its own depends on it.
pub fn prepare(
    tree: Node,
    source: &str,
    reach: impl Into<Reach>,
    default_name: &str,
    edits: Vec<SetKey>,
) -> Result<Prepared, DriveError> {
    let reach = reach.into();
    prepare_from(tree, source, reach.clone(), default_name, edits, &within(&reach))
}

/// The same for a scenario one of whose files is in memory: its name in the scenario, and its contents.
pub fn prepare_with_file(
    tree: Node,
    source: &str,
    reach: impl Into<Reach>,
    default_name: &str,
    edits: Vec<SetKey>,
    file: (&str, &[u8]),
) -> Result<Prepared, DriveError> {
    let reach = reach.into();
    let read = |wish: &FileWish, origin: &Origin| match wish.path == file.0 {
        true => Ok((PathBuf::from(file.0), file.1.to_vec())),
        false => within(&reach)(wish, origin),
    };
    prepare_from(tree, source, reach.clone(), default_name, edits, &read)
}

fn prepare_from(
    mut tree: Node,
    source: &str,
    reach: Reach,
    default_name: &str,
    edits: Vec<SetKey>,
    read: &ReadInput<'_>,
) -> Result<Prepared, DriveError> {
    let words = words(&edits);
    for (path, value) in edits {
        tree.edit(&path, value)?;
    }
    let name = Scenario::read(&tree)?.name.unwrap_or_else(|| default_name.to_string());
    let design = tree.take("design").map(|node| Planned { node, reach });
    let nothing = Prepared { design, edits: words, ..Prepared::nothing(name, source.into()) };
    nothing.with(tree, read)
}

/// The source of input bytes: their path and content.
pub(crate) type ReadInput<'a> = dyn Fn(&FileWish, &Origin) -> Result<(PathBuf, Vec<u8>), String> + 'a;

/// Reads inputs within a scenario's reach.
pub(crate) fn within(reach: &Reach) -> impl Fn(&FileWish, &Origin) -> Result<(PathBuf, Vec<u8>), String> + '_ {
    |wish, origin| match wish.kind {
        FileKind::Folder => reach.read_folder(&wish.path, origin),
        _ => reach.read(&wish.path, origin),
    }
}

/// Parses the bytes of a file as the requested kind.
pub(crate) fn take_in(inputs: &mut Inputs, wish: &FileWish, path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    match wish.kind {
        FileKind::Table => {
            let table = files::table_from_bytes(path, bytes)?;
            inputs.tables.insert(wish.path.clone(), Arc::new(table));
        }
        FileKind::Texts => {
            let table = files::texts_from_bytes(path, bytes)?;
            inputs.tables.insert(wish.path.clone(), Arc::new(table));
        }
        FileKind::Edges | FileKind::NamedEdges => {
            let edges = files::edges_from_bytes(path, bytes, wish.kind == FileKind::NamedEdges)?;
            inputs.edges.insert(wish.path.clone(), Arc::new(edges));
        }
        FileKind::Text => {
            let text = files::text_from_bytes(path, bytes)?;
            inputs.texts.insert(wish.path.clone(), text.into());
        }
        FileKind::Bytes => {
            inputs.bytes.insert(wish.path.clone(), bytes.into());
        }
        FileKind::Folder => {
            let table = files::texts_from_bytes(&path.with_extension("jsonl"), bytes)?;
            inputs.tables.insert(wish.path.clone(), Arc::new(table));
        }
    }
    Ok(())
}

/// A file's error, pointing at the key that names the file.
pub(super) fn blame(tree: &Node, key: &str, error: &dyn std::fmt::Display) -> DriveError {
    let error = tree.blame("", Invalid { key: key.to_string(), message: error.to_string() });
    DriveError::Scenario(TreeError { help: None, ..error })
}

impl Prepared {
    /// A placeholder without a scenario, to be filled by [`Prepared::with`].
    pub(crate) fn nothing(name: String, source: String) -> Prepared {
        let (tree, inputs) = (Node::built(Value::Null), Inputs::default());
        Prepared { tree, name, source, inputs, edits: Vec::new(), design: None, files: Vec::new() }
    }

    /// Its input files, by their names in the scenario, with their digests.
    #[must_use]
    pub fn input_digests(&self) -> Vec<(&str, &str)> {
        self.files.iter().map(|file| (file.entry.path.as_str(), file.entry.digest.as_str())).collect()
    }

    /// Shares the inputs of another, so that they need not be read again.
    pub(crate) fn share(&mut self, other: &Prepared) {
        for file in &other.files {
            if self.files.iter().all(|own| own.entry.path != file.entry.path) {
                self.files.push(file.clone());
            }
        }
        self.inputs.tables.extend(other.inputs.tables.clone());
        self.inputs.edges.extend(other.inputs.edges.clone());
        self.inputs.texts.extend(other.inputs.texts.clone());
        self.inputs.bytes.extend(other.inputs.bytes.clone());
        self.inputs.tools.extend(other.inputs.tools.clone());
    }

    /// The same with another tree: existing inputs are shared, others are read.
    pub(crate) fn with(&self, tree: Node, read: &ReadInput<'_>) -> Result<Prepared, DriveError> {
        let scenario = Scenario::read(&tree)?;
        let inputs = Inputs { tools: self.inputs.tools.clone(), ..Inputs::default() };
        let mut prepared = Prepared { tree, inputs, files: Vec::new(), ..self.clone() };
        for wish in scenario.files() {
            let blame = |error: &dyn std::fmt::Display| blame(&prepared.tree, &wish.key, error);
            let known = self.files.iter().find(|file| file.entry.path == wish.path);
            let (path, bytes) = match known {
                Some(file) => (PathBuf::from(&wish.path), file.bytes.clone()),
                None => {
                    // Additions by a program to a scenario from a file count as written there.
                    let node = prepared.tree.find(&wish.key).filter(|node| node.origin != Origin::Built);
                    let origin = &node.unwrap_or(&prepared.tree).origin;
                    let (path, bytes) = read(&wish, origin).map_err(|error| blame(&error))?;
                    (path, Arc::new(bytes))
                }
            };
            // A run keeps one file a name.
            if prepared.files.iter().any(|file| file.entry.path == wish.path && file.bytes != bytes) {
                return Err(blame(&format!("`{}` also names another file, so rename one of the two", wish.path)));
            }
            let Inputs { tables, edges, texts, bytes: kept, .. } = &self.inputs;
            match (tables.get(&wish.path), edges.get(&wish.path), texts.get(&wish.path)) {
                (Some(table), _, _) if matches!(wish.kind, FileKind::Table | FileKind::Texts | FileKind::Folder) => {
                    prepared.inputs.tables.insert(wish.path.clone(), table.clone());
                }
                // Another key `id` reads them again.
                (_, Some(edges), _) if wish.kind == FileKind::Edges && edges.names.is_none() => {
                    prepared.inputs.edges.insert(wish.path.clone(), edges.clone());
                }
                (_, _, Some(text)) if wish.kind == FileKind::Text => {
                    prepared.inputs.texts.insert(wish.path.clone(), text.clone());
                }
                _ if wish.kind == FileKind::Bytes && kept.contains_key(&wish.path) => {
                    prepared.inputs.bytes.extend(kept.get_key_value(&wish.path).map(|(k, v)| (k.clone(), v.clone())));
                }
                _ => take_in(&mut prepared.inputs, &wish, &path, &bytes).map_err(|error| blame(&error))?,
            }
            let name = Path::new(&wish.path).file_name().map_or("input".into(), |n| n.to_string_lossy().into_owned());
            let entry = InputEntry {
                stored: format!("{}-{name}", prepared.files.len()),
                path: wish.path,
                bytes: bytes.len() as u64,
                digest: FileHash::of(&bytes).to_string(),
            };
            prepared.files.push(InputFile { entry, bytes });
        }
        Ok(prepared)
    }

    /// Rows per act, agent or call fill disks; for many runs they are kept only if the scenario says so.
    pub(crate) fn record_little(&mut self) -> Result<(), TreeError> {
        let no = || Value::Bool(false);
        let little = [
            ("record.acts", no()),
            ("record.agents", no()),
            ("record.calls", no()),
            ("record.states", Value::Int(0)),
            ("record.ties", no()),
            ("record.network", no()),
        ];
        for (key, value) in little {
            if self.tree.find(key).is_none() {
                self.tree.edit(key, Node::built(value))?;
            }
        }
        Ok(())
    }

    /// Applies edits from round `at` on; from the start if it is round 0.
    pub fn change_at(&mut self, at: u32, edits: Vec<SetKey>) -> Result<(), DriveError> {
        if edits.is_empty() {
            return Ok(());
        }
        if at == 0 {
            for (path, mut value) in edits {
                // A list of messages joins those that the scenario sends itself.
                if let ("messages", Value::List(more), Some(Value::List(own))) =
                    (path.as_str(), &mut value.value, self.tree.get("messages").map(|node| &node.value))
                {
                    more.splice(0..0, own.iter().cloned());
                }
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

/// An input file of a run, as stored in `inputs/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEntry {
    /// Its path in the scenario.
    pub path: String,
    /// Its name in `inputs/`.
    pub stored: String,
    /// Bytes.
    pub bytes: u64,
    /// Digest of its bytes.
    pub digest: String,
}
