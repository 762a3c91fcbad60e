//! Opening of a scenario's toolkits, when they are first called: a run that is only checked or replayed opens none.

use super::browse::{Browse, BrowseParams};
use super::http::{Http, HttpParams};
use super::sql::{Sql, SqlParams};
use super::workspace::{Files, Limits, Start, Workspace, WorkspaceParams};
use super::{Calling, Toolkit};
use crate::models::ProviderError;
use crate::tools::{Tool, python};
use polity_kernel::Invalid;
use polity_kernel::population::Population;
use polity_kernel::scenario::{Inputs, ToolkitEntry};
use polity_kernel::tool::{Arguments, OutsideToolkit, ToolSpec};
use polity_kernel::tree::{Node, TreeError};
use polity_store::disk::{Disk, RealDisk, create_dir_durably, write_atomically};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What toolkits of a scenario are opened with.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where the run keeps files of its toolkits; `None` outside of a run, where no call is made.
    pub folder: Option<PathBuf>,
    /// The files that the scenario names.
    pub inputs: Inputs,
}

type Opening = Box<dyn Fn() -> Result<Arc<dyn Toolkit>, String> + Send + Sync>;

/// A toolkit that is opened when it is first called.
pub(super) struct Lazy {
    tools: Vec<ToolSpec>,
    consent: Option<String>,
    checks: fn() -> Result<(), String>,
    opening: Opening,
    open: OnceLock<Result<Arc<dyn Toolkit>, String>>,
}

impl Lazy {
    /// A toolkit that asks nobody.
    fn new(
        tools: Vec<ToolSpec>,
        opening: impl Fn() -> Result<Arc<dyn Toolkit>, String> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Lazy::of(tools, Vec::new(), opening))
    }

    /// The same for a toolkit that asks hosts.
    fn of(
        tools: Vec<ToolSpec>,
        hosts: Vec<String>,
        opening: impl Fn() -> Result<Arc<dyn Toolkit>, String> + Send + Sync + 'static,
    ) -> Self {
        let consent = (!hosts.is_empty()).then(|| format!("ask the hosts {}", hosts.join(", ")));
        Lazy { tools, consent, checks: || Ok(()), opening: Box::new(opening), open: OnceLock::new() }
    }

    fn toolkit(&self) -> Result<&Arc<dyn Toolkit>, String> {
        self.open.get_or_init(|| (self.opening)()).as_ref().map_err(Clone::clone)
    }
}

impl Toolkit for Lazy {
    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn check(&self) -> Result<(), String> {
        (self.checks)()
    }

    fn needs_consent(&self) -> Option<String> {
        self.consent.clone()
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a> {
        match self.toolkit() {
            Ok(toolkit) => toolkit.call(tool, arguments, state),
            Err(why) => Box::pin(async move { Err(ProviderError::Fatal { why }) }),
        }
    }
}

/// Opens the toolkits of a scenario whose calls reach outside, by the names of their entries.
pub(super) fn all(tools: &[Node], place: &Place) -> Result<BTreeMap<String, Arc<dyn Toolkit>>, TreeError> {
    let mut all: BTreeMap<String, Arc<dyn Toolkit>> = BTreeMap::new();
    let mut starts: Vec<WorkspaceParams> = Vec::new();
    let mut sharing: Vec<String> = Vec::new();
    let mut sandboxed = false;
    for (i, node) in tools.iter().enumerate() {
        let path = format!("tools[{i}]");
        let entry = ToolkitEntry::read(node, &path)?;
        let (name, place) = (entry.name.clone(), place.clone());
        let toolkit: Arc<dyn Toolkit> = match entry.kind.name.as_str() {
            kind if Workspace::KINDS.contains(&kind) => {
                starts.push(entry.parameters.read(&path)?);
                sharing.push(name);
                sandboxed |= kind != Files::NAME;
                continue;
            }
            kind if kind == Sql::NAME => {
                let (params, specs): (SqlParams, _) = declared::<Sql>(&entry, &path)?;
                Lazy::new(specs, move || sql(&params, &name, &place))
            }
            kind if kind == Browse::NAME => {
                let (params, specs): (BrowseParams, _) = declared::<Browse>(&entry, &path)?;
                Arc::new(Lazy::of(specs, params.hosts.clone(), move || browse(&params, &name, &place)))
            }
            kind if kind == Http::NAME => {
                let (params, specs): (HttpParams, _) = declared::<Http>(&entry, &path)?;
                Arc::new(Lazy::of(specs, params.hosts.clone(), move || {
                    Ok(Arc::new(Http::open(&params).map_err(said)?))
                }))
            }
            // A toolkit of the catalogue.
            _ => continue,
        };
        all.insert(entry.name, toolkit);
    }
    if !sharing.is_empty() {
        let shared = workspace(starts, sandboxed, place.clone())?;
        all.extend(sharing.into_iter().map(|name| (name, shared.clone() as Arc<dyn Toolkit>)));
    }
    Ok(all)
}

/// Reads the parameters of an entry, and returns its tools.
fn declared<T: OutsideToolkit<Params: DeserializeOwned + Clone>>(
    entry: &ToolkitEntry,
    path: &str,
) -> Result<(T::Params, Vec<ToolSpec>), TreeError> {
    let params: T::Params = entry.parameters.read(path)?;
    let specs = T::tools(params.clone(), None).map_err(|invalid| entry.parameters.blame(path, invalid))?;
    Ok((params, specs))
}

fn said(invalid: Invalid) -> String {
    format!("`{}`: {}", invalid.key, invalid.message)
}

/// The folder of a toolkit in a run.
fn folder(place: &Place, name: &str) -> Result<PathBuf, String> {
    let folder = place.folder.as_ref().ok_or("tools are called only in a run")?.join(name);
    create_dir_durably(&RealDisk, &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let known =
        RealDisk.exists(path).is_ok_and(|exists| exists) && RealDisk.read(path).is_ok_and(|known| known == bytes);
    if known {
        Ok(())
    } else {
        write_atomically(&RealDisk, path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The database lies in the run's folder, as it was when the run began.
fn sql(params: &SqlParams, name: &str, place: &Place) -> Result<Arc<dyn Toolkit>, String> {
    let folder = folder(place, name)?;
    let named = params.file.to_string_lossy().into_owned();
    let bytes = place.inputs.bytes.get(&named).ok_or_else(|| format!("the file `{named}` was not read"))?;
    let file = folder.join("start.db");
    write(&file, bytes)?;
    let params = SqlParams { file, ..params.clone() };
    Ok(Arc::new(Sql::open(&params, &folder.join("versions")).map_err(said)?))
}

/// Pages lie in the run's folder, likewise.
fn browse(params: &BrowseParams, name: &str, place: &Place) -> Result<Arc<dyn Toolkit>, String> {
    let Some(named) = &params.folder else { return Ok(Arc::new(Browse::open(params).map_err(said)?)) };
    let pages = folder(place, name)?.join("pages");
    for (page, text) in documents(&place.inputs, &named.to_string_lossy())? {
        let path = pages.join(&page);
        if let Some(above) = path.parent() {
            create_dir_durably(&RealDisk, above).map_err(|error| format!("{}: {error}", above.display()))?;
        }
        write(&path, text.as_bytes())?;
    }
    Ok(Arc::new(Browse::open(&BrowseParams { folder: Some(pages), ..params.clone() }).map_err(said)?))
}

/// The files of a folder that the scenario names: their paths and texts.
fn documents(inputs: &Inputs, folder: &str) -> Result<Vec<(String, String)>, String> {
    let missing = || format!("the folder `{folder}` was not read");
    let table = inputs.tables.get(folder).ok_or_else(missing)?;
    let (id, text) = (table.index("id").map_err(|_| missing())?, table.index("text").map_err(|_| missing())?);
    let all = Population::from_table(table.clone());
    Ok((0..table.rows() as u32).map(|row| (all.cell(id, row).to_string(), all.cell(text, row).to_string())).collect())
}

/// The one workspace of a scenario. `sandboxed`: whether commands or programs may be run in it.
fn workspace(starts: Vec<WorkspaceParams>, sandboxed: bool, place: Place) -> Result<Arc<Lazy>, TreeError> {
    let opening = move || -> Result<Arc<dyn Toolkit>, String> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for WorkspaceParams { file, files: others, folder } in &starts {
            for named in file.iter().chain(others) {
                let name =
                    Path::new(named).file_name().map_or(named.clone(), |name| name.to_string_lossy().into_owned());
                let Inputs { texts, bytes, .. } = &place.inputs;
                let text = texts.get(named).map(|text| text.as_bytes().to_vec());
                let bytes = text.or_else(|| bytes.get(named).map(|bytes| bytes.to_vec()));
                files.push((
                    name,
                    bytes.ok_or_else(|| {
                        format!("`{named}` cannot be a file of a workspace by itself; put it in a `folder`")
                    })?,
                ));
            }
            if let Some(folder) = folder {
                let documents = documents(&place.inputs, folder)?;
                files.extend(documents.into_iter().map(|(path, text)| (path, text.into_bytes())));
            }
        }
        let store = folder(&place, "workspace")?;
        let workspace = Workspace::open(&store, Start::Files(files), &Workspace::TOOLS, Limits::STANDARD)?;
        Ok(Arc::new(workspace))
    };
    let specs = super::workspace::specs().map_err(|message| {
        Node::built(polity_kernel::tree::Value::Null).blame("tools", Invalid { key: String::new(), message })
    })?;
    let checks = if sandboxed { || python::Python::standard().check() } else { || Ok(()) };
    Ok(Arc::new(Lazy { checks, ..Lazy::of(specs, Vec::new(), opening) }))
}
