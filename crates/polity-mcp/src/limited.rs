//! Limits on what a peer sends over a pipe.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes kept of what a peer wrote to stderr, and of a line that is no message.
const KEPT: usize = 2000;

/// What is known of a connection: how much came since the last request, and why it was cut off.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Maximum bytes of a message.
    message: usize,
    /// Maximum bytes between two requests.
    traffic: usize,
    seen: AtomicUsize,
    /// Answers of a model that were asked for since the last request.
    samples: AtomicUsize,
    cut: Mutex<Option<String>>,
    /// The end of stderr.
    stderr: Mutex<Vec<u8>>,
    /// The first line that is no message.
    strange: Mutex<Option<String>>,
}

impl Watch {
    pub fn new(message: usize, traffic: usize) -> Arc<Self> {
        let (seen, samples) = <(AtomicUsize, AtomicUsize)>::default();
        Arc::new(Watch {
            message,
            traffic,
            seen,
            samples,
            cut: Mutex::default(),
            stderr: Mutex::default(),
            strange: Mutex::default(),
        })
    }

    /// A request begins: what was sent before does not count.
    pub fn begin(&self) {
        self.seen.store(0, Ordering::Relaxed);
        self.samples.store(0, Ordering::Relaxed);
    }

    /// The peer asks for an answer of a model; returns how many it asked for.
    pub fn sample(&self) -> usize {
        self.samples.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts bytes; returns why the connection is cut off, if they are too many.
    pub fn count(&self, bytes: usize) -> Result<(), String> {
        let seen = self.seen.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if seen <= self.traffic {
            return Ok(());
        }
        Err(self.cut(format!("it sent more than {} bytes for one request", self.traffic)))
    }

    /// Notes why the connection is cut off; returns the first reason.
    pub fn cut(&self, why: String) -> String {
        held(&self.cut).get_or_insert(why).clone()
    }

    /// Returns why the connection was cut off.
    pub fn why_cut(&self) -> Option<String> {
        held(&self.cut).clone()
    }

    /// Keeps the end of stderr.
    pub fn heard(&self, bytes: &[u8]) {
        let mut kept = held(&self.stderr);
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }

    /// Says what the peer wrote that is no message, for an error; begins with a space unless empty.
    pub fn words(&self) -> String {
        let mut words = String::new();
        if let Some(line) = &*held(&self.strange) {
            words += &format!(" It wrote to stdout what is no message: `{line}`.");
        }
        let stderr = String::from_utf8_lossy(&held(&self.stderr)).trim().to_owned();
        if !stderr.is_empty() {
            words += &format!(" Its stderr ends with: `{stderr}`.");
        }
        words
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pipe with one message a line. Reading fails as soon as a limit of its [`Watch`] is exceeded.
pub(crate) struct Limited<R> {
    from: R,
    watch: Arc<Watch>,
    /// Bytes of the line so far.
    line: usize,
    /// The beginning of the line, if it is no JSON object.
    strange: Vec<u8>,
}

impl<R> Limited<R> {
    pub fn new(from: R, watch: Arc<Watch>) -> Self {
        Limited { from, watch, line: 0, strange: Vec::new() }
    }

    fn observe(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.watch.count(bytes.len())?;
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.line == 0 && !part.starts_with(b"{") || !self.strange.is_empty() {
                let room = 200_usize.saturating_sub(self.strange.len());
                self.strange.extend_from_slice(&part[..part.len().min(room)]);
            }
            self.line = self.line.saturating_add(part.len());
            if self.line > self.watch.message {
                return Err(self.watch.cut(format!("it sent a message of more than {} bytes", self.watch.message)));
            }
            if part.ends_with(b"\n") {
                self.line = 0;
                let strange = std::mem::take(&mut self.strange);
                let text = String::from_utf8_lossy(&strange).trim().to_owned();
                if !text.is_empty() {
                    held(&self.watch.strange).get_or_insert(text);
                }
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Limited<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.from).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = &polled {
            let bytes = &into.filled()[before..];
            if let Err(why) = self.observe(bytes) {
                return Poll::Ready(Err(io::Error::other(why)));
            }
        }
        polled
    }
}
