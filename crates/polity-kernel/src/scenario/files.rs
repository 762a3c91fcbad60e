//! The files that a scenario names, and their contents.

use crate::population::Table;
use crate::tool::Listed;
use crate::topology::EdgeList;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWish {
    /// The path as written.
    pub path: String,
    /// The key it is written under.
    pub key: String,
    /// Its content.
    pub kind: FileKind,
}

/// The content of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Rows and columns.
    Table,
    /// Rows and columns whose cells are texts, as they stand.
    Texts,
    /// Pairs of agents, by number.
    Edges,
    /// Pairs of agents, by the names that they have in the population.
    NamedEdges,
    /// Text.
    Text,
    /// Bytes of any kind.
    Bytes,
    /// All files of a folder and the folders in it, as a table of texts with the columns `id` (the path in the folder) and `text`.
    Folder,
}

/// The contents of the files that a scenario names, by path as written.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Tables.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Edges.
    pub edges: BTreeMap<String, Arc<EdgeList>>,
    /// Texts.
    pub texts: BTreeMap<String, Arc<str>>,
    /// Files of any kind.
    pub bytes: BTreeMap<String, Arc<[u8]>>,
    /// The tools that toolkits listed themselves before the run, by the name of their entry.
    pub tools: BTreeMap<String, Arc<Listed>>,
}
