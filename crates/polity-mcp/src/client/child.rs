//! A server as a child process: its environment, its streams, its end.

use crate::limited::{Limited, Watch};
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// What a child gets of the own environment.
const INHERITED: &[&str] = &["PATH", "HOME", "LANG"];
/// Time that a server has to end once its stdin is closed.
const FAREWELL: Duration = Duration::from_secs(2);
/// Time in which a server that closed its stdout should have ended.
const ENDING: Duration = Duration::from_secs(1);

/// How long the stderr of an ended server is still read. Programs that it started may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(super) type Pipes = AsyncRwTransport<RoleClient, Limited<ChildStdout>, ChildStdin>;

/// A child with what it started itself: all of them are killed when it is dropped.
pub(super) struct Group {
    child: Child,
    /// Reads its stderr until it is closed.
    listener: Option<JoinHandle<()>>,
}

impl Drop for Group {
    fn drop(&mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended in the meantime.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Group {
    /// Says how the child ended, or that it did not. Its stderr is read first, to the end or for [`LAST_WORDS`].
    pub async fn ended(&mut self) -> String {
        let ended = tokio::time::timeout(ENDING, self.child.wait()).await;
        if let (Ok(_), Some(listener)) = (&ended, self.listener.take()) {
            let _ = tokio::time::timeout(LAST_WORDS, listener).await;
        }
        match ended {
            Ok(Ok(status)) => format!("it ended ({status})"),
            Ok(Err(error)) => format!("it ended ({error})"),
            Err(_) => "it closed its stdout".into(),
        }
    }

    /// Lets the child end by itself, since its stdin is closed, and kills it if it does not.
    pub fn leave(mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(FAREWELL, self.child.wait()).await;
            });
        }
    }
}

/// Starts a server.
pub(super) fn start(
    command: &[String],
    env: &BTreeMap<String, String>,
    watch: &Arc<Watch>,
) -> Result<(Pipes, Group), String> {
    let Some((program, arguments)) = command.split_first() else { return Err("`command` is empty".into()) };
    let inherited = INHERITED.iter().filter_map(|name| std::env::var_os(name).map(|value| (*name, value)));
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(inherited)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("`{program}` cannot be started ({error}): install it, or give its full path"))?;
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut group = Group { child, listener: None };
    let (Some(stdin), Some(stdout), Some(mut stderr)) = streams else {
        return Err(format!("`{program}` has no streams"));
    };
    let heard = watch.clone();
    group.listener = Some(tokio::spawn(async move {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = stderr.read(&mut bytes).await {
            heard.heard(&bytes[..length]);
        }
    }));
    let pipes = AsyncRwTransport::new(Limited::new(stdout, watch.clone()), stdin).with_max_line_length(usize::MAX);
    Ok((pipes, group))
}
