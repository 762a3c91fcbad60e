//! A sandbox with the files of a version, in which cells and commands run. Its first process is `session.py`.

use super::store::{Hash, Store};
use super::tree::{Entry, ROOT, Tree};
use crate::models::ProviderError;
use crate::tools::python::Limits;
use crate::tools::python::sandbox::{self, Found, Killed, again};
use serde::Deserialize;
use serde_json::json;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, Stdio};
use std::time::Duration;

/// The sandbox's first process, after the modules it uses.
const BOOT: &str = concat!(
    include_str!("../../tools/python/plain.py"),
    "\n",
    include_str!("../../tools/python/walls.py"),
    "\n",
    include_str!("session.py")
);
/// Time for the sandbox to start and to look at files, beyond the time of what runs.
const GRACE: Duration = Duration::from_secs(30);
/// Bytes of a message of the sandbox beyond the files that it may have.
const HEADER: u64 = 64_000_000;

/// What to run.
pub(super) enum Work<'a> {
    /// A cell of the session, with its name in traces.
    Cell(String, &'a str),
    /// A command of a shell.
    Shell(&'a str),
}

/// How work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ended {
    /// A cell came to its end.
    Finished,
    /// An exception ended a cell, and was printed.
    Raised,
    /// The process ended: a command, or the interpreter, which should not.
    Exited,
    #[serde(rename = "too long")]
    TooLong,
    #[serde(rename = "too much memory")]
    TooMuchMemory,
    #[serde(rename = "too many processes")]
    TooManyProcesses,
    #[serde(rename = "too much output")]
    TooMuchOutput,
    /// Too many files, too many bytes in them, or too long a path.
    #[serde(rename = "too many files")]
    TooManyFiles,
    /// No room for the files of the version.
    #[serde(rename = "no room")]
    NoRoom,
}

/// What came of work.
pub(super) struct Report {
    pub(super) ended: Ended,
    /// The exit status of a command, or minus a signal's number.
    pub(super) status: i64,
    /// More about the end, if there is more to say.
    pub(super) why: Option<String>,
    /// Standard output and error, in the order in which they were written.
    pub(super) printed: Vec<u8>,
    /// The files afterwards; those of before if the work was cut off.
    pub(super) tree: Tree,
    /// The contents that are new.
    pub(super) contents: Vec<Vec<u8>>,
    /// Paths that were removed because no version can hold them, and why.
    pub(super) dropped: Vec<(String, String)>,
}

/// The header of a report.
#[derive(Deserialize)]
struct Header {
    ended: Ended,
    status: i64,
    why: Option<String>,
    remove: Vec<String>,
    /// Path, kind, and what it is: a file's size or a link's target.
    put: Vec<(String, String, serde_json::Value)>,
    dropped: Vec<(String, String)>,
}

/// A sandbox that waits for work. It ends when this is dropped, and with the thread that started it.
pub(super) struct Sandbox {
    line: UnixStream,
    /// What the sandbox itself complains of; what runs in it cannot write there.
    errors: ChildStderr,
    process: Killed,
    /// The files in it.
    tree: Tree,
    /// Bytes of a message.
    longest: u64,
}

impl Sandbox {
    /// Starts a sandbox without files.
    pub(super) fn start(found: &Found, limits: &Limits) -> Result<Sandbox, ProviderError> {
        let command = sandbox::command(found, limits, &["/tmp", ROOT], BOOT);
        let started = command.and_then(|mut command| {
            let begin = || -> io::Result<Sandbox> {
                let (line, theirs) = UnixStream::pair()?;
                command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
                let mut process = Killed(command.spawn()?);
                // From here on only the sandbox holds the other end, so its death can be detected.
                drop(command);
                let errors = process.0.stderr.take().ok_or_else(|| io::Error::other("a stream is missing"))?;
                Ok(Sandbox { line, errors, process, tree: Tree::default(), longest: limits.disk + HEADER })
            };
            begin().map_err(|error| error.to_string())
        });
        started.map_err(|why| again(format!("the sandbox did not start: {why}")))
    }

    /// Makes the files those of `tree`, and does work. After an error, and after work that was cut off, the sandbox is of no use.
    pub(super) fn run(
        &mut self,
        store: &Store,
        tree: &Tree,
        work: &Work<'_>,
        seconds: u64,
    ) -> Result<Report, ProviderError> {
        let (remove, put) = tree.changes_from(&self.tree);
        let (mut data, mut entries) = (Vec::new(), Vec::new());
        for (path, entry) in put {
            entries.push(match entry {
                Entry::Folder => json!([path, "d", ""]),
                Entry::Link(target) => json!([path, "l", target]),
                Entry::File { hash, size, executable } => {
                    data.extend(store.read(*hash).map_err(|why| ProviderError::Fatal { why })?);
                    json!([path, if *executable { "x" } else { "f" }, size])
                }
            });
        }
        let mut order = json!({"remove": remove, "put": entries, "seconds": seconds});
        match work {
            Work::Cell(name, code) => order["cell"] = json!([name, code]),
            Work::Shell(command) => order["shell"] = json!(command),
        }
        let most = data.len() as u64;
        match self.exchange(order.to_string().as_bytes(), &data, Duration::from_secs(seconds) + GRACE) {
            Ok((header, data, printed)) => self.report(tree, &header, data, printed),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(again("the sandbox did not report in time; this machine may be overloaded".into()))
            }
            Err(error) => Err(again(format!("{} ({error}; {most} bytes of files were sent)", self.complaint()))),
        }
    }

    fn exchange(&mut self, order: &[u8], data: &[u8], wait: Duration) -> io::Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        self.line.set_read_timeout(Some(wait))?;
        self.line.set_write_timeout(Some(GRACE))?;
        for message in [order, data] {
            self.line.write_all(&(message.len() as u64).to_be_bytes())?;
            self.line.write_all(message)?;
        }
        let mut receive = || {
            let mut length = [0; 8];
            self.line.read_exact(&mut length)?;
            let length = u64::from_be_bytes(length);
            if length > self.longest {
                return Err(io::Error::other("a message is too long"));
            }
            let mut bytes = Vec::new();
            (&self.line).take(length).read_to_end(&mut bytes)?;
            if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        };
        Ok((receive()?, receive()?, receive()?))
    }

    /// Ends the sandbox and returns what it said of its end.
    fn complaint(&mut self) -> String {
        let _ = self.process.0.kill();
        let mut said = Vec::new();
        let _ = (&mut self.errors).take(10_000).read_to_end(&mut said);
        sandbox::no_report(&said)
    }

    fn report(&mut self, tree: &Tree, header: &[u8], data: Vec<u8>, printed: Vec<u8>) -> Result<Report, ProviderError> {
        let wrong = |what: &str| again(format!("the sandbox gave a wrong report: {what}"));
        let header: Header = serde_json::from_slice(header).map_err(|error| wrong(&error.to_string()))?;
        let mut after = tree.clone();
        let (mut contents, mut at) = (Vec::new(), 0);
        for path in &header.remove {
            after.0.remove(path);
        }
        for (path, kind, what) in header.put {
            let entry = match (kind.as_str(), what) {
                ("d", _) => Entry::Folder,
                ("l", serde_json::Value::String(target)) => Entry::Link(target),
                ("f" | "x", size) => {
                    let size = size.as_u64().ok_or_else(|| wrong("a size"))?;
                    let bytes = data.get(at..at + size as usize).ok_or_else(|| wrong("too few bytes"))?.to_vec();
                    at += bytes.len();
                    let entry = Entry::File { hash: Hash::of(&bytes), size, executable: kind == "x" };
                    contents.push(bytes);
                    entry
                }
                _ => return Err(wrong("a kind")),
            };
            after.0.insert(path, entry);
        }
        self.tree = after.clone();
        let Header { ended, status, why, dropped, .. } = header;
        Ok(Report { ended, status, why, printed, tree: after, contents, dropped })
    }
}
