//! What the program keeps of a policy or a world that is written in Python.

use crate::error::described;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A policy or a world of the user's: the object that makes it, what it took, and how it failed.
pub struct Handle {
    pub name: String,
    /// An adapter of `polity._policy` or `polity._world`.
    pub adapter: Py<PyAny>,
    /// Seconds in Python by round.
    seconds: Mutex<Vec<(u32, f64)>>,
    error: Mutex<Option<PyErr>>,
}

impl Handle {
    pub fn new(adapter: &Bound<'_, PyAny>) -> PyResult<Arc<Handle>> {
        let name = adapter.getattr("name")?.extract()?;
        let adapter = adapter.clone().unbind();
        Ok(Arc::new(Handle { name, adapter, seconds: Mutex::default(), error: Mutex::default() }))
    }

    /// Counts the time of a round.
    pub fn took(&self, round: u32, time: Duration) {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).push((round, time.as_secs_f64()));
    }

    /// Keeps an exception for the caller, and describes it.
    pub fn failed(&self, py: Python<'_>, error: PyErr) -> String {
        let words = format!("`{}`, which is written in Python, raised {}", self.name, described(py, &error));
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        words
    }

    /// Takes the seconds in Python by round.
    pub fn take_seconds(&self) -> Vec<(u32, f64)> {
        std::mem::take(&mut *self.seconds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the exception that it raised, if any.
    pub fn take_error(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
