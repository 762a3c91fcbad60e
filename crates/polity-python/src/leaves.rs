//! Policies and worlds that are written in Python, beside those in the box.

use crate::call::written;
use crate::handle::Handle;
use crate::policy::PyPolicy;
use crate::world::PyWorld;
use polity::kernel::registry::Registry;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

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
        self.handles.iter().map(|handle| (handle.name.clone(), handle.take_seconds())).collect()
    }

    /// The exception of a leaf since the last call, if any.
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.handles.iter().find_map(|handle| handle.take_error()).map(|error| error.into_value(py).into_any())
    }
}
