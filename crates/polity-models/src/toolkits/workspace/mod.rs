//! The toolkit `workspace`: a folder of files, a shell and a Python session, all in a sandbox. README.md lists its guarantees and limits.
//!
//! The workspace is a value. A state names a `Version`: a tree of files, and the chain of the cells that the Python session has run.
//! Versions are immutable and lie in a store. A call works on the version that it is given and names the one that it leaves. Live
//! processes are only a cache: a session whose process is not there is built again by running its cells again.

mod declare;
mod files;
mod patch;
mod process;
mod start;
mod store;
mod suite;
#[cfg(test)]
mod tests;
mod tools;
mod tree;
mod workers;

pub use declare::{Files, PythonSession, Shell, WorkspaceParams};
pub(super) use declare::{register, specs};
pub use start::Start;

use self::process::{Ended, Report, Sandbox, Work};
use self::store::{Hash, NotAdded, Store};
use self::tree::Tree;
use self::workers::Workers;
use super::toolkit::{Calling, Toolkit};
use crate::models::ProviderError;
use crate::tools::python;
use crate::tools::python::sandbox::{self, Found, again};
use polity_kernel::tool::{Arguments, ToolOutput, ToolSpec};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::oneshot;

/// The name of the session that all its tools share.
const SESSION: &str = "workspace";
/// Threads for tools that need no sandbox.
const QUICK: usize = 2;

/// Limits of a workspace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Of the sandbox: seconds of a cell, and of a command that gives no other number; memory, processes, output, files.
    pub sandbox: python::Limits,
    /// The most seconds a command may ask for.
    pub longest: u64,
    /// Python sessions kept alive; the one that was used least recently is ended.
    pub live: usize,
    /// Characters of a result that the model sees.
    pub shown: usize,
    /// Bytes of the store on disk.
    pub store: u64,
}

impl Limits {
    /// As [`python::Limits::STANDARD`]; 120 s, 8 sessions, 20,000 characters, 2 GB.
    pub const STANDARD: Limits =
        Limits { sandbox: python::Limits::STANDARD, longest: 120, live: 8, shown: 20_000, store: 2_000_000_000 };
}

/// A version of a workspace. Its text is the state of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    tree: Hash,
    /// The last cell of the Python session, if one was run.
    cells: Option<Hash>,
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tree)?;
        self.cells.map_or(Ok(()), |cells| write!(f, ".{cells}"))
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let (tree, cells) = text.split_once('.').map_or((text, None), |(tree, cells)| (tree, Some(cells)));
        let version = || Ok(Version { tree: tree.parse()?, cells: cells.map(str::parse).transpose()? });
        version().map_err(|why: String| format!("this is no state of a workspace: {why}"))
    }
}

/// A cell that a session has run, in the store.
#[derive(Serialize, Deserialize)]
struct Cell {
    before: Option<Hash>,
    /// Counts the cells of the session, from 1.
    number: u64,
    /// The files that it began with.
    tree: Hash,
    code: String,
}

/// What ends a call.
#[derive(Debug)]
enum Trouble {
    /// Something that the model sees; the version stays as it was.
    Told(String),
    /// The toolkit failed.
    Failed(ProviderError),
}

impl From<ProviderError> for Trouble {
    fn from(error: ProviderError) -> Self {
        Trouble::Failed(error)
    }
}

/// For what is wrong with the arguments.
impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Trouble::Told(why)
    }
}

/// What a call comes to.
struct Done {
    text: String,
    error: bool,
    version: Version,
}

/// An interpreter that has run the cells of a session.
struct Live {
    cells: Hash,
    sandbox: Sandbox,
}

/// The toolkit.
///
/// ```no_run
/// use polity_models::toolkits::Toolkit;
/// use polity_models::toolkits::workspace::{Limits, Start, Workspace};
/// use std::path::Path;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let start = Start::Files(vec![("notes.txt".into(), b"hello\n".to_vec())]);
/// let workspace = Workspace::open(Path::new("runs/7/workspace"), start, &Workspace::TOOLS, Limits::STANDARD)?;
/// let arguments = serde_json::from_str(r#"{"code": "open('notes.txt').read()"}"#)?;
/// let first = workspace.call("python", &arguments, "").await?;
/// let next = workspace.call("python", &arguments, &first.state).await?;
/// # Ok(())
/// # }
/// ```
pub struct Workspace {
    shared: Arc<Shared>,
    /// As many sandboxes work at once as there are processors.
    workers: Workers,
    /// For tools that only read and write the store, which need not wait for sandboxes.
    quick: Workers,
}

/// What calls share.
struct Shared {
    store: Store,
    limits: Limits,
    start: Version,
    tools: Vec<ToolSpec>,
    found: OnceLock<Result<Found, String>>,
    /// Used least recently first.
    live: Mutex<Vec<Live>>,
}

impl Workspace {
    /// The names of all tools.
    pub const TOOLS: [&'static str; 9] = [
        "python",
        "shell",
        "read_file",
        "write_file",
        "edit_file",
        "apply_patch",
        "search_files",
        "list_files",
        "run_tests",
    ];

    /// Opens the workspace of a run. `store`: a folder that the run owns, made if it is not there. `tools`: the names of those offered.
    ///
    /// # Errors
    /// An unknown tool; a start that is beyond the limits, has links or paths that are not allowed, or cannot be read; a store that is
    /// damaged, cannot be opened, or is open in another process.
    pub fn open(store: &Path, start: Start, tools: &[&str], limits: Limits) -> Result<Workspace, String> {
        let tools = tools::offered(tools, &limits)?;
        let (tree, mut objects) = start.tree(&limits)?;
        let store = Store::open(store, limits.store)?;
        let (hash, manifest) = manifest(&tree)?;
        objects.push(manifest);
        store.add(objects).map_err(|not| match not {
            NotAdded::Full => format!("the start does not fit in a store of {} bytes", limits.store),
            NotAdded::Disk(why) => why,
        })?;
        let start = Version { tree: hash, cells: None };
        let shared = Shared { store, limits, start, tools, found: OnceLock::new(), live: Mutex::default() };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = |count| Workers::start(count).map_err(|error| format!("no thread can be started: {error}"));
        Ok(Workspace { shared: Arc::new(shared), workers: workers(processors)?, quick: workers(QUICK)? })
    }
}

impl Toolkit for Workspace {
    fn tools(&self) -> Vec<ToolSpec> {
        self.shared.tools.clone()
    }

    fn check(&self) -> Result<(), String> {
        let sandboxed = self.shared.tools.iter().any(|tool| tools::sandboxed(&tool.name));
        if sandboxed { self.shared.found().map(|_| ()) } else { Ok(()) }
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Arguments, state: &'a str) -> Calling<'a> {
        Box::pin(async move {
            let (shared, name, arguments, state) =
                (self.shared.clone(), tool.to_owned(), arguments.clone(), state.to_owned());
            let (answer, answered) = oneshot::channel();
            let workers = if tools::sandboxed(tool) { &self.workers } else { &self.quick };
            workers.take(move || {
                let output = shared.work(&name, &arguments, &state);
                drop(shared);
                // Nobody waits if the call was given up.
                let _ = answer.send(output);
            });
            answered.await.unwrap_or_else(|_| {
                Err(ProviderError::Never { why: format!("`{tool}` failed within; this is an error of Polity") })
            })
        })
    }
}

/// The hash and the bytes of a tree in the store.
fn manifest(tree: &Tree) -> Result<(Hash, Vec<u8>), String> {
    let bytes = serde_json::to_vec(tree).map_err(|error| error.to_string())?;
    Ok((Hash::of(&bytes), bytes))
}

impl Shared {
    fn found(&self) -> Result<&Found, String> {
        self.found.get_or_init(|| self.find()).as_ref().map_err(Clone::clone)
    }

    /// Finds what sandboxes need, and runs a trivial command.
    fn find(&self) -> Result<Found, String> {
        let found = Found::search()?;
        let tried = Sandbox::start(&found, &self.limits.sandbox).and_then(|mut sandbox| {
            let work = Work::Shell("echo $((41 + 1))");
            sandbox.run(&self.store, &Tree::default(), &work, self.limits.sandbox.seconds)
        });
        let report = tried.map_err(|why| sandbox::untried(&why.to_string()))?;
        match (report.ended, report.printed.as_slice()) {
            (Ended::Exited, b"42\n") => Ok(found),
            (ended, printed) => {
                let printed = String::from_utf8_lossy(printed);
                Err(sandbox::missing(&format!("a trivial command gave a wrong result in it: {ended:?}, {printed}")))
            }
        }
    }

    fn work(&self, tool: &str, arguments: &Arguments, state: &str) -> Result<ToolOutput, ProviderError> {
        if !self.tools.iter().any(|offered| &*offered.name == tool) {
            return Err(ProviderError::Never { why: format!("this workspace does not offer the tool `{tool}`") });
        }
        let version =
            if state.is_empty() { self.start } else { state.parse().map_err(|why| ProviderError::Never { why })? };
        match self.dispatch(tool, arguments, version) {
            Ok(Done { text, error, version }) => Ok(ToolOutput { text, error, state: version.to_string() }),
            Err(Trouble::Told(text)) => Ok(ToolOutput { text, error: true, state: version.to_string() }),
            Err(Trouble::Failed(error)) => Err(error),
        }
    }

    fn object(&self, hash: Hash) -> Result<Vec<u8>, ProviderError> {
        self.store.read(hash).map_err(|why| ProviderError::Fatal { why })
    }

    fn parsed<T: for<'de> Deserialize<'de>>(&self, hash: Hash) -> Result<T, ProviderError> {
        let bytes = self.object(hash)?;
        // Its hash is right, so these bytes were named as something that they are not.
        serde_json::from_slice(&bytes).map_err(|error| ProviderError::Never {
            why: format!("object {hash} is not of the kind expected: {error}"),
        })
    }

    fn tree(&self, version: Version) -> Result<Tree, ProviderError> {
        self.parsed(version.tree)
    }

    /// Stores a tree and objects beside it, and returns its hash.
    fn keep(&self, tree: &Tree, mut objects: Vec<Vec<u8>>) -> Result<Hash, Trouble> {
        tree.within(self.limits.sandbox.files, self.limits.sandbox.disk)?;
        let (hash, manifest) = manifest(tree)?;
        objects.push(manifest);
        self.add(objects)?;
        Ok(hash)
    }

    fn add(&self, objects: Vec<Vec<u8>>) -> Result<(), Trouble> {
        self.store.add(objects).map_err(|not| match not {
            NotAdded::Full => Trouble::Told(format!(
                "Nothing was changed: all versions of the workspace together have reached the limit of {} bytes on disk.",
                self.limits.store
            )),
            NotAdded::Disk(why) => Trouble::Failed(ProviderError::Fatal { why }),
        })
    }

    fn live(&self) -> MutexGuard<'_, Vec<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the live interpreter of a session, if there is one.
    fn take_live(&self, cells: Hash) -> Option<Sandbox> {
        let mut live = self.live();
        let at = live.iter().rposition(|one| one.cells == cells)?;
        Some(live.remove(at).sandbox)
    }

    fn keep_live(&self, cells: Hash, sandbox: Sandbox) {
        let mut live = self.live();
        live.push(Live { cells, sandbox });
        let many = live.len().saturating_sub(self.limits.live);
        let ended: Vec<Live> = live.drain(..many).collect();
        drop(live);
        // Ending a process takes a moment, in which others may use the list.
        drop(ended);
    }

    fn fresh(&self) -> Result<Sandbox, ProviderError> {
        let found = self.found().map_err(|why| ProviderError::Fatal { why })?;
        Sandbox::start(found, &self.limits.sandbox)
    }

    /// Makes an interpreter that has run the cells of a session, by running them again, each on the files that it began with.
    fn rebuild(&self, cells: Option<Hash>) -> Result<Sandbox, ProviderError> {
        let (mut chain, mut next) = (Vec::new(), cells);
        while let Some(hash) = next {
            let cell: Cell = self.parsed(hash)?;
            next = cell.before;
            chain.push(cell);
        }
        let mut sandbox = self.fresh()?;
        for cell in chain.iter().rev() {
            let tree: Tree = self.parsed(cell.tree)?;
            let report = self.run_cell(&mut sandbox, &tree, cell.number, &cell.code)?;
            if !matches!(report.ended, Ended::Finished | Ended::Raised) {
                let why = format!(
                    "the Python session cannot be continued: its cell {}, run again, ended differently ({:?}). Either \
                     this machine is overloaded or the cell depends on chance or time",
                    cell.number, report.ended
                );
                return Err(again(why));
            }
        }
        Ok(sandbox)
    }

    fn run_cell(&self, sandbox: &mut Sandbox, tree: &Tree, number: u64, code: &str) -> Result<Report, ProviderError> {
        let work = Work::Cell(format!("<cell {number}>"), code);
        sandbox.run(&self.store, tree, &work, self.limits.sandbox.seconds)
    }

    /// The tool `python`.
    fn python(&self, version: Version, code: &str) -> Result<Done, Trouble> {
        let tree = self.tree(version)?;
        let before: Option<Cell> = version.cells.map(|cells| self.parsed(cells)).transpose()?;
        let number = before.map_or(0, |cell| cell.number) + 1;
        let warm = version.cells.and_then(|cells| self.take_live(cells)).and_then(|mut sandbox| {
            // One that has died while it waited is built again.
            self.run_cell(&mut sandbox, &tree, number, code).ok().map(|report| (sandbox, report))
        });
        let (sandbox, mut report) = match warm {
            Some(done) => done,
            None => {
                let mut sandbox = self.rebuild(version.cells)?;
                let report = self.run_cell(&mut sandbox, &tree, number, code)?;
                (sandbox, report)
            }
        };
        if !matches!(report.ended, Ended::Finished | Ended::Raised) {
            return Err(self.cut_off(&report, "The cell", self.limits.sandbox.seconds).into());
        }
        let text = self.told(&mut report);
        let cell = Cell { before: version.cells, number, tree: version.tree, code: code.to_owned() };
        let cell = serde_json::to_vec(&cell).map_err(|error| error.to_string())?;
        let cells = Hash::of(&cell);
        report.contents.push(cell);
        let tree = self.keep(&report.tree, report.contents)?;
        self.keep_live(cells, sandbox);
        let version = Version { tree, cells: Some(cells) };
        Ok(Done { text, error: report.ended == Ended::Raised, version })
    }

    /// Runs a command in a sandbox of its own; returns its exit status, what it printed, and the version that it left.
    fn command(&self, version: Version, command: &str, seconds: u64) -> Result<(i64, String, Version), Trouble> {
        let tree = self.tree(version)?;
        let mut report = self.fresh()?.run(&self.store, &tree, &Work::Shell(command), seconds)?;
        if report.ended != Ended::Exited {
            return Err(self.cut_off(&report, "The command", seconds).into());
        }
        let text = self.told(&mut report);
        let tree = self.keep(&report.tree, report.contents)?;
        Ok((report.status, text, Version { tree, ..version }))
    }

    /// What was printed, and what was not kept; and drops that from the tree.
    fn told(&self, report: &mut Report) -> String {
        let mut text = self.shown(&String::from_utf8_lossy(&report.printed));
        report.dropped.extend(report.tree.clean());
        for (path, why) in &report.dropped {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text += &format!("`{}` was removed from the workspace: {why}\n", path.escape_debug());
        }
        if text.is_empty() { "(no output)".into() } else { text }
    }

    /// A text in the length that models see: its beginning and its end.
    fn shown(&self, text: &str) -> String {
        let most = self.limits.shown;
        let count = text.chars().count();
        if count <= most {
            return text.to_owned();
        }
        let head: String = text.chars().take(most / 2).collect();
        let tail: String = text.chars().skip(count - most / 2).collect();
        format!("{head}\n[... {} characters left out ...]\n{tail}", count - 2 * (most / 2))
    }

    /// Says that work was cut off.
    fn cut_off(&self, report: &Report, what: &str, seconds: u64) -> String {
        let python::Limits { memory, processes, output, disk, files, .. } = self.limits.sandbox;
        let how = match report.ended {
            Ended::TooLong => format!("ran longer than {seconds} seconds"),
            Ended::TooMuchMemory => format!("used more than {memory} bytes of memory"),
            Ended::TooManyProcesses => format!("had more than {processes} processes and threads"),
            Ended::TooMuchOutput => format!("printed more than {output} bytes"),
            Ended::TooManyFiles => format!("left more than {files} files or {disk} bytes in them, or too long a path"),
            Ended::NoRoom => "could not begin, because the session has no room for the files".into(),
            Ended::Exited | Ended::Finished | Ended::Raised => {
                format!("ended the Python process (status {})", report.status)
            }
        };
        let more = report.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let mut text = format!("{what} {how}{more} and was stopped. The workspace is as it was before this call.");
        if !report.printed.is_empty() {
            text += &format!(" It had printed:\n{}", self.shown(&String::from_utf8_lossy(&report.printed)));
        }
        text
    }
}
