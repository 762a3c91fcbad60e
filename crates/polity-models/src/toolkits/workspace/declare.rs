//! The workspace in scenarios: `python`, `shell` and `files` are toolkits of their own that share one workspace.

use super::{Limits, Workspace, tools};
use polity_kernel::Invalid;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::tool::{OutsideToolkit, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a scenario may set. The files of all entries are put together; every item begins with them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceParams {
    /// A file that is in the workspace at the start, under its own name.
    pub file: Option<String>,
    /// Further such files.
    pub files: Vec<String>,
    /// A folder of texts whose files are in the workspace at the start, by their paths in it.
    pub folder: Option<String>,
}

/// A Python session.
pub struct PythonSession;
/// Commands.
pub struct Shell;
/// Files, by tools of their own.
pub struct Files;

/// Adds the declarations.
pub(in crate::toolkits) fn register(registry: &mut Registry) {
    let files = LeafFiles { readme: include_str!("README.md"), ..LeafFiles::default() };
    registry.outside_toolkit::<PythonSession>(files);
    registry.outside_toolkit::<Shell>(files);
    registry.outside_toolkit::<Files>(files);
}

/// All tools of a workspace.
pub(in crate::toolkits) fn specs() -> Result<Vec<ToolSpec>, String> {
    tools::offered(&Workspace::TOOLS, &Limits::STANDARD)
}

fn offered(names: &[&str]) -> Result<Vec<ToolSpec>, Invalid> {
    tools::offered(names, &Limits::STANDARD).map_err(|message| Invalid { key: String::new(), message })
}

impl OutsideToolkit for PythonSession {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "A Python session in a sandbox, which lasts over calls";
    type Params = WorkspaceParams;

    fn tools(_: WorkspaceParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        offered(&["python"])
    }
}

impl OutsideToolkit for Shell {
    const NAME: &'static str = "shell";
    const SUMMARY: &'static str = "Commands and tests in a sandbox, on the files of the workspace";
    type Params = WorkspaceParams;

    fn tools(_: WorkspaceParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        offered(&["shell", "run_tests"])
    }
}

impl OutsideToolkit for Files {
    const NAME: &'static str = "files";
    const SUMMARY: &'static str = "Files in a workspace: read, write, edit, patch, search, list";
    type Params = WorkspaceParams;

    fn tools(_: WorkspaceParams, _: Option<&[ToolSpec]>) -> Result<Vec<ToolSpec>, Invalid> {
        offered(&["read_file", "write_file", "edit_file", "apply_patch", "search_files", "list_files"])
    }
}

impl Workspace {
    /// The kinds of toolkits that share a workspace.
    pub const KINDS: [&'static str; 3] = [PythonSession::NAME, Shell::NAME, Files::NAME];
}
