//! Policies and worlds that are written in Python, beside those in the box.

use crate::error::described;
use crate::policy::PyPolicy;
use crate::run::written;
use crate::world::PyWorld;
use polity::kernel::registry::Registry;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
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
    fn new(adapter: &Bound<'_, PyAny>) -> PyResult<Arc<Handle>> {
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
}

/// A name for the rest of the process. The same name is kept once.
fn forever(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into_boxed_str());
    names.insert(kept);
    kept
}

/// The leaves in the box and the user's own.
#[pyclass(frozen, module = "polity._polity")]
pub struct Leaves {
    pub registry: Arc<Registry>,
    handles: Vec<Arc<Handle>>,
}

#[pymethods]
impl Leaves {
    #[new]
    fn new(policies: Vec<Bound<'_, PyAny>>, worlds: Vec<Bound<'_, PyAny>>) -> PyResult<Leaves> {
        let mut registry = polity::registry();
        let mut handles = Vec::new();
        let summary = |adapter: &Bound<'_, PyAny>| adapter.getattr("summary")?.extract::<String>().map(forever);
        for adapter in &policies {
            let handle = Handle::new(adapter)?;
            let own = handle.clone();
            registry.cohort_policy_named(forever(handle.name.clone()), summary(adapter)?, move |params, setup| {
                PyPolicy::open_with(&own, params, setup)
            });
            handles.push(handle);
        }
        for adapter in &worlds {
            let handle = Handle::new(adapter)?;
            let own = handle.clone();
            registry.world_named(forever(handle.name.clone()), summary(adapter)?, move |params, setup, declare| {
                PyWorld::open_with(&own, params, setup, declare)
            });
            handles.push(handle);
        }
        Ok(Leaves { registry: Arc::new(registry), handles })
    }

    /// All leaves by kind: name, summary and parameters, as JSON.
    fn listed(&self, py: Python<'_>) -> PyResult<String> {
        written(py, &self.registry.leaves().into_iter().collect::<BTreeMap<_, _>>())
    }

    /// The example scenario of a leaf.
    fn example(&self, name: &str) -> Option<&'static str> {
        self.registry.example(name)
    }

    /// Seconds in Python by round, for each leaf; they are counted anew from here on.
    fn seconds(&self) -> Vec<(String, Vec<(u32, f64)>)> {
        let take = |handle: &Arc<Handle>| {
            let mut seconds = handle.seconds.lock().unwrap_or_else(PoisonError::into_inner);
            (handle.name.clone(), std::mem::take(&mut *seconds))
        };
        self.handles.iter().map(take).collect()
    }

    /// The exception of a leaf since the last call, if any.
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let take = |handle: &Arc<Handle>| handle.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.handles.iter().find_map(take).map(|error| error.into_value(py).into_any())
    }
}
