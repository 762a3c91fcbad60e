//! `tool/python`: runs a Python program in a sandbox of bubblewrap. README.md says what holds and what does not.
//!
//! The walls are namespaces, made by `bwrap`: no network, no files but the system's own programs (read-only) and one small folder in memory,
//! no process but the program's and its tests'. Within them `boot.py` is process 1, which sets limits, watches and reports; a program's tests
//! (`tests.py`) ask it over a pipe for plain data (`plain.py`).

use super::{Tool, Working};
use crate::models::Trouble;
use polity_kernel::ask::Want;
use polity_kernel::ask::tool::{Ended, Ran};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

/// The sandbox's first process, behind what it uses.
const BOOT: &str = concat!(include_str!("plain.py"), "\n", include_str!("tests.py"), "\n", include_str!("boot.py"));

/// What a program has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Seconds by the clock, and seconds of each process on processors.
    pub seconds: u64,
    /// Bytes of memory of all its processes together, looked at every 20 ms; no process has more than twice that of addresses.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Bytes of standard output, and as many of standard error.
    pub output: usize,
    /// Bytes of all its files together, which lie in memory.
    pub disk: u64,
    /// Files, folders and links.
    pub files: u64,
    /// Sockets of all its processes together: pairs, which reach nobody else.
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

/// How long the sandbox may take to begin and to end, beside the program's own time.
const GRACE: Duration = Duration::from_secs(15);
/// Letters of the sandbox's own errors that are told.
const TOLD: usize = 2_000;
/// Whose rights a program has where the run has root's: nobody's. Root has no limit of processes.
const NOBODY: u32 = 65_534;
/// The first Linux that counts the processes of each sandbox for itself.
const OLDEST: (u32, u32) = (5, 14);
/// Where Python is looked for before the PATH.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];
/// Folders of the machine's owner within those that are shown; they are shown empty.
const HIDDEN: [&str; 3] = ["/usr/local/etc", "/usr/local/src", "/usr/src"];
const INSTALL: &str = "on Debian and Ubuntu: apt install bubblewrap python3";
/// A program that needs processes, so that their limit is tried too.
const TRIAL: &str = "import os\nif os.fork() == 0: os._exit(0)\nprint(os.wait()[1] + 42)";

/// The tool.
pub struct Python {
    limits: Limits,
    /// As many programs at once as there are processors: one that waits for its turn uses up none of its time.
    turns: Semaphore,
    found: OnceLock<Result<Found, String>>,
}

/// What a sandbox is made of on this machine.
#[derive(Clone, Debug)]
struct Found {
    python: PathBuf,
    /// The folder of a Python that is not the system's.
    prefix: Option<PathBuf>,
    /// Whether this process is root, whose rights no program gets.
    root: bool,
    /// How long a trivial program takes.
    took: Duration,
}

/// What `boot.py` says at the end.
#[derive(Deserialize)]
struct Report {
    ended: Ended,
    status: i32,
}

/// Standard output or error is longer than it may be.
struct Flood;

/// A process that is killed when nobody waits for it any more, and with it all that is in its sandbox.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself; one that was killed is there to be waited for at once.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
        Python { limits, turns: Semaphore::new(processors), found: OnceLock::new() }
    }

    /// What programs run in, in words, or what is missing.
    ///
    /// # Errors
    /// As [`Tool::check`].
    pub fn state(&self) -> Result<String, String> {
        let Found { python, took, .. } = self.found()?;
        Ok(format!(
            "Python programs run in bubblewrap, by {}; a trivial one takes {} ms",
            python.display(),
            took.as_millis()
        ))
    }

    fn found(&self) -> Result<&Found, String> {
        self.found.get_or_init(|| self.find()).as_ref().map_err(Clone::clone)
    }

    /// Looks for what is needed, and runs a program.
    fn find(&self) -> Result<Found, String> {
        let missing =
            |what: &str| format!("programs run in a sandbox or not at all, and this machine can not make one: {what}");
        if !cfg!(target_os = "linux") {
            return Err(missing("it is made of Linux's namespaces, and this is no Linux"));
        }
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if version(&release).is_some_and(|version| version < OLDEST) {
            let (major, minor) = OLDEST;
            return Err(missing(&format!("it needs Linux {major}.{minor} or newer, and this is {}", release.trim())));
        }
        if on_path("bwrap").is_none() {
            return Err(missing(&format!("`bwrap` is not installed ({INSTALL})")));
        }
        let system = PYTHONS.iter().map(PathBuf::from).find(|path| path.exists());
        let (python, prefix) = match system {
            Some(python) => (python, None),
            None => other_python().ok_or_else(|| missing(&format!("`python3` is not installed ({INSTALL})")))?,
        };
        // Who owns this process, as far as the system tells.
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let found = Found { python, prefix, root, took: Duration::ZERO };
        let began = Instant::now();
        let tried = self.try_out(&found).map_err(|why| {
            missing(&format!(
                "a trivial program can not be run in it. User namespaces must be allowed (in a container they often are not; Ubuntu 24.04 \
                 and newer want an AppArmor profile for bwrap), bubblewrap must be 0.8 or newer, Python 3.9 or newer. What was said: {why}"
            ))
        })?;
        match tried {
            Ran { ended: Ended::Finished, output, .. } if output == "42\n" => {
                Ok(Found { took: began.elapsed(), ..found })
            }
            other => Err(missing(&format!("a trivial program did not do there what it does: {other:?}"))),
        }
    }

    /// Runs the trial on a thread of its own: whoever checks may be within a runtime, where nobody may wait.
    fn try_out(&self, found: &Found) -> Result<Ran, String> {
        let tried = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
            runtime.block_on(self.run(found, &[TRIAL])).map_err(|trouble| trouble.to_string())
        };
        std::thread::scope(|scope| {
            scope.spawn(tried).join().unwrap_or_else(|_| Err("the trial broke off by a defect".into()))
        })
    }

    /// The command that makes the sandbox and starts `boot.py` in it.
    fn command(&self, found: &Found) -> Result<Command, String> {
        let mut command = Command::new("bwrap");
        for namespace in ["user", "pid", "net", "ipc", "uts", "cgroup-try"] {
            command.arg(format!("--unshare-{namespace}"));
        }
        // Without further namespaces nobody gets capabilities again, for instance to mount memory that nothing limits.
        command.args(["--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--as-pid-1"]);
        command.args(["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv"]);
        command.args(["--ro-bind", "/usr", "/usr"]);
        for folder in HIDDEN.iter().filter(|folder| Path::new(folder).is_dir()) {
            command.args(["--tmpfs", folder, "--remount-ro", folder]);
        }
        // Links into /usr on most systems, folders on others.
        for name in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
            if let Ok(target) = fs::read_link(name) {
                command.arg("--symlink").arg(target).arg(name);
            } else if Path::new(name).is_dir() {
                command.args(["--ro-bind", name, name]);
            }
        }
        if let Some(prefix) = &found.prefix {
            command.arg("--ro-bind").arg(prefix).arg(prefix);
        }
        command.args(["--proc", "/proc", "--dir", "/dev"]);
        for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
            command.args(["--dev-bind", device, device]);
        }
        // One place can be written, and it has a size; what else bwrap has made lies in memory without one, and is closed.
        command.args(["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]);
        command.arg("--size").arg(self.limits.disk.to_string());
        command.args(["--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp"]);
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/tmp"),
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "UTC"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONUTF8", "1"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            // Each thread would take addresses for a heap of its own.
            ("MALLOC_ARENA_MAX", "1"),
        ] {
            command.args(["--setenv", name, value]);
        }
        let limits = serde_json::to_string(&self.limits).map_err(|error| error.to_string())?;
        command.arg("--").arg(&found.python).args(["-s", "-c", BOOT, &limits]);
        command.current_dir("/");
        if found.root {
            command.uid(NOBODY).gid(NOBODY);
        }
        Ok(command)
    }

    /// `texts`: the program and, if there are any, its tests.
    async fn run(&self, found: &Found, texts: &[&str]) -> Result<Ran, Trouble> {
        // The sandbox dies with the thread that makes it: one that serves calls, and lives as long as they do.
        let begun = self.command(found).and_then(|command| Begun::new(command).map_err(|error| error.to_string()));
        let Begun { process, mut line, mut out, mut err } = match begun {
            Ok(begun) => begun,
            Err(why) => return Err(again(format!("the sandbox did not start: {why}"))),
        };
        let (mut output, mut errors, mut told) = (Vec::new(), Vec::new(), Vec::new());
        let most = self.limits.output;
        let talk = async {
            let (mut from, mut to) = line.split();
            for text in texts {
                // A sandbox that has not begun takes nothing, and says why on standard error.
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
            // Whatever else it was: so it is the same however fast it went.
            Ok(Err(Flood)) => Report { ended: Ended::TooMuchOutput, status: -9 },
            Ok(Ok(_)) => match serde_json::from_slice(&told) {
                Ok(report) => report,
                Err(_) => {
                    let said = String::from_utf8_lossy(&errors).trim().chars().take(TOLD).collect::<String>();
                    let why = format!("the sandbox ended without a report: {said}");
                    // Once it stands the machine or the program itself has broken it, which may be so each time.
                    return Err(if told.is_empty() { again(why) } else { Trouble::Never { why } });
                }
            },
            Err(_) => {
                return Err(again(
                    "the sandbox neither reported nor ended in time; this machine may have too much to do".into(),
                ));
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.get(..most).unwrap_or(bytes)).into_owned();
        Ok(Ran { ended: report.ended, status: report.status, output: text(&output), errors: text(&errors) })
    }
}

/// A sandbox that has been started, and the ends of its streams.
struct Begun {
    process: Killed,
    /// Its standard input: the program and its tests go in, the report comes out.
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
        // The other end of the line is the sandbox's alone from here on: when it is gone, that can be seen.
        drop(command);
        let piped = |stream: Option<OwnedFd>| {
            Receiver::from_owned_fd(stream.ok_or_else(|| io::Error::other("a stream is missing"))?)
        };
        let out = piped(process.0.stdout.take().map(OwnedFd::from))?;
        let err = piped(process.0.stderr.take().map(OwnedFd::from))?;
        Ok(Begun { process, line: tokio::net::UnixStream::from_std(line)?, out, err })
    }
}

/// Reads a stream to its end, and no further than one byte above `most`.
async fn read(from: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>, most: usize) -> Result<(), Flood> {
    // An error ends a stream as its end does; whether the program ended is reported elsewhere.
    let _ = from.take(most as u64 + 1).read_to_end(into).await;
    if into.len() > most { Err(Flood) } else { Ok(()) }
}

fn again(why: String) -> Trouble {
    Trouble::Retry { why, after_ms: None, charged: false }
}

/// `5.10.0-8-amd64` is (5, 10).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The Python that the PATH leads to, as it knows itself, with the folder that it lives in.
fn other_python() -> Option<(PathBuf, Option<PathBuf>)> {
    let tell = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix, sep='\\n')";
    let told = Command::new(on_path("python3")?).args(["-I", "-c", tell]).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let mut lines = told.lines().map(PathBuf::from);
    Some((lines.next()?, lines.next()))
}

impl Tool for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn gives(&self) -> Want {
        Ran::want()
    }

    fn check(&self) -> Result<(), String> {
        self.found().map(|_| ())
    }

    fn takes(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn work<'a>(&'a self, texts: Vec<&'a str>) -> Working<'a> {
        Box::pin(async move {
            let found = self.found().map_err(|why| Trouble::Fatal { why })?;
            let _turn = self.turns.acquire().await.map_err(|error| again(error.to_string()))?;
            self.run(found, &texts).await.map(Ran::value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_linux_are_told_apart() {
        assert_eq!(version("6.18.44-fc-v669\n"), Some((6, 18)));
        assert_eq!(version("5.4\n"), Some((5, 4)));
        assert!(version("5.10.0-8-amd64") < Some(OLDEST) && version("5.14.0") >= Some(OLDEST));
        assert_eq!(version("strange"), None);
    }
}
