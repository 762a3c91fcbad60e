//! Long work on a thread of its own. The calling thread listens to signals meanwhile, so that Ctrl-C reaches Python.

use crate::error::{Stopper, exception, of};
use pyo3::prelude::*;
use serde::Serialize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often the calling thread looks for signals, and shows progress.
const TICK: Duration = Duration::from_millis(50);

/// The result of work, and the exception of a signal (KeyboardInterrupt) that stopped it.
pub struct Worked<T> {
    pub result: T,
    pub interrupted: Option<PyErr>,
}

/// Does `work` on a thread of its own, without the interpreter's lock. The first interrupt asks `stop` to finish what is in flight and
/// to save, and waits for that; the second (or the first, without `stop`) returns at once, and leaves the thread to itself.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stopper,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<Worked<T>> {
    let (done, mut ended) = channel::<()>();
    let thread = std::thread::Builder::new().name("polity".into()).spawn(move || {
        // Dropped at the end, also of a panic.
        let _done = done;
        work()
    });
    let thread = thread.map_err(|error| {
        exception(py, "RunError", &format!("the system starts no further thread: {error}; end other programs"), None)
    })?;
    let mut interrupted: Option<PyErr> = None;
    loop {
        let waited = py.detach(move || (ended.recv_timeout(TICK), ended));
        ended = waited.1;
        match waited.0 {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        match (py.check_signals().and_then(|()| tick(py)), stop) {
            (Ok(()), _) => {}
            (Err(error), Some(stop)) if interrupted.is_none() => {
                stop.stop();
                interrupted = Some(error);
            }
            (Err(error), _) => return Err(error),
        }
    }
    match py.detach(move || thread.join()) {
        Ok(result) => Ok(Worked { result, interrupted }),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(exception(py, "RunError", &format!("this is a defect of Polity: its thread panicked: {text}"), None))
        }
    }
}

/// Work that only reads, and cannot be stopped.
pub fn read<T: Send + 'static>(py: Python<'_>, reads: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let Worked { result, interrupted } = work(py, &None, |_| Ok(()), reads)?;
    interrupted.map_or(Ok(result), Err)
}

/// A value as JSON, in which all crosses that is no column.
pub fn written(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| of(py, &polity::Error::from(error)))
}

/// Reads from a run or a sweep without the interpreter's lock.
pub fn reading<S: Clone + Send + 'static, T: Send + 'static>(
    py: Python<'_>,
    source: &S,
    reads: impl FnOnce(&S) -> polity::Result<T> + Send + 'static,
) -> PyResult<T> {
    let source = source.clone();
    read(py, move || reads(&source))?.map_err(|error| of(py, &error))
}
