//! Sweeps.

use crate::call::{Worked, read, reading, work, written};
use crate::error::of;
use crate::leaves::Leaves;
use crate::table::Table;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Whether a folder holds a sweep.
#[pyfunction]
pub fn is_sweep(folder: PathBuf) -> bool {
    polity::is_sweep(&folder)
}

/// The runs of a design.
#[pyclass(frozen, module = "polity._polity")]
pub struct Sweep(polity::Sweep);

impl Sweep {
    pub fn of(sweep: polity::Sweep) -> Sweep {
        Sweep(sweep)
    }
}

#[pymethods]
impl Sweep {
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, leaves: Option<&Leaves>) -> PyResult<Sweep> {
        let registry = leaves.map(|leaves| leaves.registry.clone());
        let opened = read(py, move || polity::Sweep::open(folder))?.map_err(|error| of(py, &error))?;
        Ok(Sweep(match registry {
            Some(registry) => opened.with_registry(registry),
            None => opened,
        }))
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.0.folder().to_path_buf()
    }

    #[getter]
    fn done(&self) -> bool {
        self.0.is_done()
    }

    /// The summary of what this process did, as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.summary().map(|summary| written(py, summary)).transpose()
    }

    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        let manifest = reading(py, &self.0, polity::Sweep::manifest)?;
        written(py, &manifest)
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        reading(py, &self.0, polity::Sweep::tables)
    }

    fn table(&self, py: Python<'_>, name: String) -> PyResult<Table> {
        reading(py, &self.0, move |sweep| Ok(Table::of(sweep.table_spec(&name)?, sweep.table(&name)?)))
    }

    /// Continues it. Returns the sweep, and the exception of a signal that stopped it.
    #[pyo3(signature = (jobs = None))]
    fn resume(&self, py: Python<'_>, jobs: Option<NonZeroUsize>) -> PyResult<(Sweep, Option<Py<PyAny>>)> {
        let sweep = self.0.clone();
        let stop = Some(sweep.stop_handle());
        let Worked { result, interrupted } = work(py, &stop, |_| Ok(()), move || sweep.resume(jobs))?;
        let sweep = result.map_err(|error| of(py, &error))?;
        Ok((Sweep(sweep), interrupted.map(|error| error.into_value(py).into_any())))
    }
}
