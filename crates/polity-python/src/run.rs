//! Runs: their results, and operations on them.

use crate::call::read;
use crate::error::{exception, failure, of};
use crate::leaves::Leaves;
use crate::simulation::{Simulation, answering};
use crate::table::Table;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Whether a folder holds a sweep.
#[pyfunction]
pub fn is_sweep(folder: PathBuf) -> bool {
    polity::is_sweep(&folder)
}

/// A run that has ended or stopped.
#[pyclass(frozen, module = "polity._polity")]
pub struct Run(polity::Run);

impl Run {
    pub fn of(run: polity::Run) -> Run {
        Run(run)
    }

    fn reading<T: Send + 'static>(
        &self,
        py: Python<'_>,
        reads: impl FnOnce(&polity::Run) -> polity::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let run = self.0.clone();
        read(py, move || reads(&run))?.map_err(|error| of(py, &error))
    }
}

pub fn written(py: Python<'_>, value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| of(py, &polity::Error::from(error)))
}

#[pymethods]
impl Run {
    /// Opens the folder of a run, with these leaves for later operations.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, leaves: Option<&Leaves>) -> PyResult<Run> {
        let registry = leaves.map(|leaves| leaves.registry.clone());
        let opened = read(py, move || polity::Run::open(folder))?.map_err(|error| of(py, &error))?;
        Ok(Run(match registry {
            Some(registry) => opened.with_registry(registry),
            None => opened,
        }))
    }

    /// The same run with a function that answers as a model.
    fn with_model(&self, name: &str, function: Py<PyAny>) -> Run {
        Run(self.0.clone().with_model(name, answering(function)))
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.0.folder().to_path_buf()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn status(&self) -> &'static str {
        self.0.status().name()
    }

    #[getter]
    fn digest(&self) -> &str {
        self.0.digest()
    }

    #[getter]
    fn rounds(&self) -> u32 {
        self.0.rounds()
    }

    #[getter]
    fn agents(&self) -> u32 {
        self.0.agents()
    }

    fn scenario(&self, py: Python<'_>) -> PyResult<String> {
        written(py, self.0.scenario())
    }

    fn totals(&self, py: Python<'_>) -> PyResult<String> {
        written(py, self.0.totals())
    }

    fn alarms(&self, py: Python<'_>) -> PyResult<String> {
        written(py, &self.0.alarms())
    }

    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        written(py, self.0.summary())
    }

    fn manifest(&self, py: Python<'_>) -> PyResult<String> {
        written(py, self.0.manifest())
    }

    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.reading(py, polity::Run::tables)
    }

    fn table(&self, py: Python<'_>, name: String) -> PyResult<Table> {
        self.reading(py, move |run| Ok(Table::of(run.table_spec(&name)?, run.table(&name)?)))
    }

    fn calls(&self, py: Python<'_>) -> PyResult<Table> {
        let calls = self.reading(py, polity::Run::calls)?;
        Table::of_calls(&calls)
            .map_err(|error| exception(py, "RunError", &format!("the table of calls: {error}"), None))
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<BTreeMap<String, f64>> {
        self.reading(py, polity::Run::metrics)
    }

    fn series(&self, py: Python<'_>, name: String) -> PyResult<Vec<(u32, f64)>> {
        self.reading(py, move |run| run.series(&name))
    }

    fn resume(&self) -> Simulation {
        Simulation::of(self.0.resume())
    }

    fn fork(&self, at: u32) -> Simulation {
        Simulation::of(self.0.fork(at))
    }

    /// The summary of a replay, as JSON.
    fn replay(&self, py: Python<'_>) -> PyResult<String> {
        let summary = self.reading(py, polity::Run::replay)?;
        written(py, &summary)
    }

    /// The verified folders, as JSON.
    fn verify(&self, py: Python<'_>) -> PyResult<String> {
        let found = self.reading(py, polity::Run::verify)?;
        written(py, &found)
    }

    /// Answers of agents, as JSON.
    #[pyo3(signature = (agents, question, at = None))]
    fn interview(&self, py: Python<'_>, agents: Vec<u32>, question: String, at: Option<u32>) -> PyResult<String> {
        let said = self.reading(py, move |run| run.interview(&agents, &question, at))?;
        let rows = said.iter().map(|said| {
            json!({
                "agent": said.agent, "round": said.round, "answer": said.answer.outcome.words(),
                "outcome": said.answer.outcome.name(), "model": said.answer.request.model.to_string(),
                "simulated": said.simulated, "tokens_in": said.answer.usage.tokens_in,
                "tokens_out": said.answer.usage.tokens_out, "cost_usd": said.answer.usage.cost_usd,
            })
        });
        written(py, &rows.collect::<Vec<_>>())
    }

    /// Writes report.html again, and returns its path.
    fn report(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let folder = self.0.folder().to_path_buf();
        let written = read(py, move || polity::cli::write_report(&folder, &polity::registry()))?;
        written.map_err(|error| failure(py, &error))
    }
}
