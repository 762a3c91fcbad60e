//! `tool/python`: runs a Python program in a bubblewrap sandbox. README.md lists its guarantees and limits.
//!
//! Isolation is by namespaces, created by `bwrap`: no network, no files except system programs (read-only) and one small folder in
//! memory, no processes except those of the program and its tests. Inside, `boot.py` is process 1, which sets limits, watches and
//! reports; a program's tests (`tests.py`) query it over a pipe for plain data (`plain.py`). The sandbox is `sandbox.rs` and `walls.py`, which the toolkit `workspace` shares.

pub(crate) mod sandbox;

use self::sandbox::{Found, Killed, again};
use super::tool::{Tool, Working};
use crate::models::ProviderError;
use polity_kernel::ask::ResponseFormat;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::digest::{Kind, RowHash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

/// The sandbox's first process, after the modules it uses.
const BOOT: &str = concat!(
    include_str!("plain.py"),
    "\n",
    include_str!("walls.py"),
    "\n",
    include_str!("tests.py"),
    "\n",
    include_str!("boot.py")
);

/// Limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Elapsed seconds, and processor seconds of each process.
    pub seconds: u64,
    /// Bytes of memory of all its processes together, checked every 20 ms; the address space of each process is limited to twice that.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Bytes of standard output, and the same for standard error.
    pub output: usize,
    /// Total bytes of its files, which are in memory.
    pub disk: u64,
    /// Files, folders and links.
    pub files: u64,
    /// Sockets of all its processes together: pairs without outside connections.
    pub sockets: u64,
}

impl Limits {
    /// 10 s, 512 MB, 64 processes, 1 MB of output, 64 MB in 10,000 files, 64 sockets.
    pub const STANDARD: Limits = Limits {
        seconds: 10,
        memory: 512_000_000,
        processes: 64,
        output: 1_000_000,
        disk: 64_000_000,
        files: 10_000,
        sockets: 64,
    };
}

/// Results that are kept, so that equal programs are run once in a process: a check of claims scores the same answer many times, and
/// one that never ends would take its whole time each time. Only results with at most this many bytes of output.
const KNOWN: usize = 20_000;
const KNOWN_BYTES: usize = 4_000;
/// Time for the sandbox to start and stop, beyond the program's own time.
const GRACE: Duration = Duration::from_secs(15);
/// A program that creates a process, to test that limit too.
const TRIAL: &str = "import os\nif os.fork() == 0: os._exit(0)\nprint(os.wait()[1] + 42)";

/// The tool.
pub struct Python {
    limits: Limits,
    /// As many programs at once as there are processors; waiting does not use up a program's time.
    turns: Semaphore,
    /// The sandbox, and the time of a trivial program.
    found: OnceLock<Result<(Found, Duration), String>>,
    /// Results of programs, by their texts.
    known: Mutex<BTreeMap<u128, Ran>>,
}

/// The final report of `boot.py`.
#[derive(Deserialize)]
struct Report {
    ended: Ended,
    status: i32,
}

/// Standard output or error exceeds its limit.
struct Flood;

impl Python {
    /// With [`Limits::STANDARD`].
    #[must_use]
    pub fn standard() -> Self {
        Python::with(Limits::STANDARD)
    }

    /// With other limits.
    #[must_use]
    pub fn with(limits: Limits) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Python { limits, turns: Semaphore::new(processors), found: OnceLock::new(), known: Mutex::default() }
    }

    /// Describes the environment of programs, or what is missing.
    ///
    /// # Errors
    /// As [`Tool::check`].
    pub fn state(&self) -> Result<String, String> {
        let (Found { python, .. }, took) = self.found()?;
        Ok(format!(
            "Python programs run in bubblewrap, with {}; a trivial one takes {} ms",
            python.display(),
            took.as_millis()
        ))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u128, Ran>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> Result<&(Found, Duration), String> {
        self.found.get_or_init(|| self.find()).as_ref().map_err(Clone::clone)
    }

    /// Finds what is needed, and runs a program.
    fn find(&self) -> Result<(Found, Duration), String> {
        let found = Found::search()?;
        let began = Instant::now();
        let tried = self.try_out(&found).map_err(|why| sandbox::untried(&why))?;
        match tried {
            Ran { ended: Ended::Finished, output, .. } if output == "42\n" => Ok((found, began.elapsed())),
            other => Err(sandbox::missing(&format!("a trivial program gave a wrong result in it: {other:?}"))),
        }
    }

    /// Runs the trial on a thread of its own, since the caller may be within a runtime, where blocking is forbidden.
    fn try_out(&self, found: &Found) -> Result<Ran, String> {
        let tried = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
            runtime.block_on(self.run(found, &[TRIAL])).map_err(|trouble| trouble.to_string())
        };
        std::thread::scope(|scope| scope.spawn(tried).join().unwrap_or_else(|_| Err("the trial panicked".into())))
    }

    /// `texts`: the program and its tests, if any.
    async fn run(&self, found: &Found, texts: &[&str]) -> Result<Ran, ProviderError> {
        // The sandbox dies with the thread that creates it: one that serves calls and lives as long as they do.
        let command = sandbox::command(found, &self.limits, &["/tmp"], BOOT);
        let begun = command.and_then(|command| Begun::new(command).map_err(|error| error.to_string()));
        let Begun { process, mut line, mut out, mut err } = match begun {
            Ok(begun) => begun,
            Err(why) => return Err(again(format!("the sandbox did not start: {why}"))),
        };
        let (mut output, mut errors, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let most = self.limits.output;
        let talk = async {
            let (mut from, mut to) = line.split();
            for text in texts {
                // A sandbox that failed to start takes no input, and reports on standard error.
                let _ = to.write_all(&(text.len() as u64).to_be_bytes()).await;
                let _ = to.write_all(text.as_bytes()).await;
            }
            let _ = to.shutdown().await;
            let _ = from.read_to_end(&mut told).await;
            Ok(())
        };
        let all =
            async { tokio::try_join!(talk, read(&mut out, &mut output, most), read(&mut err, &mut errors, most)) };
        let all = tokio::time::timeout(Duration::from_secs(self.limits.seconds) + GRACE, all).await;
        drop(process);
        let report = match all {
            // Overrides other endings, so that the result does not depend on speed.
            Ok(Err(Flood)) => Report { ended: Ended::TooMuchOutput, status: -9 },
            Ok(Ok(_)) => match serde_json::from_slice(&told) {
                Ok(report) => report,
                Err(_) => {
                    let why = sandbox::no_report(&errors);
                    // After a good start, the machine or the program itself broke it, which may happen each time.
                    return Err(if told.is_empty() { again(why) } else { ProviderError::Never { why } });
                }
            },
            Err(_) => {
                return Err(again(
                    "the sandbox neither reported nor ended in time; this machine may be overloaded".into(),
                ));
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..most).unwrap_or(bytes)).into_owned();
        Ok(Ran { ended: report.ended, status: report.status, output: text(&output), errors: text(&errors) })
    }
}

/// A started sandbox, and the ends of its streams.
struct Begun {
    process: Killed,
    /// Its standard input: receives the program and its tests, returns the report.
    line: tokio::net::UnixStream,
    out: Receiver,
    err: Receiver,
}

impl Begun {
    fn new(mut command: Command) -> io::Result<Begun> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Killed(command.spawn()?);
        // From here on only the sandbox holds the other end, so its death can be detected.
        drop(command);
        let piped = |stream: Option<OwnedFd>| {
            Receiver::from_owned_fd(stream.ok_or_else(|| io::Error::other("a stream is missing"))?)
        };
        let out = piped(process.0.stdout.take().map(OwnedFd::from))?;
        let err = piped(process.0.stderr.take().map(OwnedFd::from))?;
        Ok(Begun { process, line: tokio::net::UnixStream::from_std(line)?, out, err })
    }
}

/// Reads a stream to its end, or to one byte above `most`.
async fn read(from: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>, most: usize) -> Result<(), Flood> {
    // An error ends a stream like its end does; the program's end is reported elsewhere.
    let _ = from.take(most as u64 + 1).read_to_end(into).await;
    if into.len() > most { Err(Flood) } else { Ok(()) }
}

impl Tool for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn gives(&self) -> ResponseFormat {
        Ran::response_format()
    }

    fn check(&self) -> Result<(), String> {
        self.found().map(|_| ())
    }

    fn takes(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn work<'a>(&'a self, texts: Vec<&'a str>) -> Working<'a> {
        Box::pin(async move {
            let (found, _) = self.found().map_err(|why| ProviderError::Fatal { why })?;
            let key =
                texts.iter().fold(RowHash::new(Kind::Request, 0), |key, text| key.bytes(text.as_bytes())).finish();
            if let Some(ran) = self.known().get(&key) {
                return Ok(ran.clone().value());
            }
            let _turn = self.turns.acquire().await.map_err(|error| again(error.to_string()))?;
            let ran = self.run(found, &texts).await?;
            if ran.output.len() + ran.errors.len() <= KNOWN_BYTES {
                let mut known = self.known();
                if known.len() >= KNOWN {
                    known.clear();
                }
                known.insert(key, ran.clone());
            }
            Ok(ran.value())
        })
    }
}
