//! The sandbox: its parts on this machine, its command line, and its walls (`walls.py`). Whatever runs programs shares it.

use super::Limits;
use crate::models::ProviderError;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Characters shown of the sandbox's own errors.
const TOLD: usize = 2_000;
/// The user of a program if the run is root: nobody. Root has no process limit.
const NOBODY: u32 = 65_534;
/// The first Linux version that counts processes per sandbox.
const OLDEST: (u32, u32) = (5, 14);
/// Where Python is searched for before the PATH.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];
/// Folders of the machine's owner within visible ones; they appear empty.
const HIDDEN: [&str; 3] = ["/usr/local/etc", "/usr/local/src", "/usr/src"];
const INSTALL: &str = "on Debian and Ubuntu: apt install bubblewrap python3";

/// The parts of a sandbox on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) python: PathBuf,
    /// The folder of a Python other than the system's.
    prefix: Option<PathBuf>,
    /// Whether this process is root; programs never get root's rights.
    root: bool,
}

impl Found {
    /// Finds what is needed. Whether it works is seen when something runs in it.
    pub(crate) fn search() -> Result<Found, String> {
        if !cfg!(target_os = "linux") {
            return Err(missing("it needs the namespaces of Linux, and this is not Linux"));
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
        // The owner of this process, if the system reports it.
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        Ok(Found { python, prefix, root })
    }
}

/// Says what a sandbox lacks.
pub(crate) fn missing(what: &str) -> String {
    format!("programs run only in a sandbox, and this machine cannot make one: {what}")
}

/// Says that a trivial program failed.
pub(crate) fn untried(why: &str) -> String {
    missing(&format!(
        "a trivial program cannot be run in it. User namespaces must be allowed (in a container they often are \
         not; Ubuntu 24.04 and newer need an AppArmor profile for bwrap), bubblewrap must be 0.8 or newer, and \
         Python 3.9 or newer. The error was: {why}"
    ))
}

/// Says that a sandbox ended without a report. `errors`: its standard error.
pub(crate) fn no_report(errors: &[u8]) -> String {
    let said = String::from_utf8_lossy(errors).trim().chars().take(TOLD).collect::<String>();
    format!("the sandbox ended without a report: {said}")
}

/// Makes the command that makes a sandbox and starts `boot` in it, the text of its first process. `folders`: the only places that can be
/// written, in memory, each of at most `limits.disk` bytes; the last one is the working directory. `/tmp` must be among them.
pub(crate) fn command(found: &Found, limits: &Limits, folders: &[&str], boot: &str) -> Result<Command, String> {
    let mut command = Command::new("bwrap");
    for namespace in ["user", "pid", "net", "ipc", "uts", "cgroup-try"] {
        command.arg(format!("--unshare-{namespace}"));
    }
    // Without further namespaces no process regains capabilities, for instance to mount unlimited memory.
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
    // Only these folders are writable, with a size limit; other folders made by bwrap are unlimited memory, and are closed.
    command.args(["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", "/tmp", "/dev/shm"]);
    for folder in folders {
        command.arg("--size").arg(limits.disk.to_string()).args(["--tmpfs", folder]);
    }
    command.args(["--remount-ro", "/", "--chdir", folders.last().unwrap_or(&"/tmp")]);
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "UTC"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONUTF8", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        // Each thread would reserve addresses for its own heap.
        ("MALLOC_ARENA_MAX", "1"),
    ] {
        command.args(["--setenv", name, value]);
    }
    let limits = serde_json::to_string(limits).map_err(|error| error.to_string())?;
    command.arg("--").arg(&found.python).args(["-s", "-c", boot, &limits]);
    command.current_dir("/");
    if found.root {
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command)
}

/// A process that is killed on drop, with everything in its sandbox.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself; a killed process can be reaped at once.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn again(why: String) -> ProviderError {
    ProviderError::Retry { why, after_ms: None, charged: false }
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

/// The Python on the PATH, by its own path, with its folder.
fn other_python() -> Option<(PathBuf, Option<PathBuf>)> {
    let tell = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix, sep='\\n')";
    let told = Command::new(on_path("python3")?).args(["-I", "-c", tell]).output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let mut lines = told.lines().map(PathBuf::from);
    Some((lines.next()?, lines.next()))
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
