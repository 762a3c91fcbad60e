//! Simulations: a scenario, how to run it, and the run that it becomes. A run can be resumed and forked, which is a simulation again.

use crate::call::{Worked, read, reading, work, written};
use crate::error::{exception, failure, of};
use crate::leaves::Leaves;
use crate::sweep::Sweep;
use crate::table::Table;
use polity::kernel::ask::Request;
use polity::{Event, Flow, Reply};
use pyo3::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A function of Python as a model.
pub fn answering(function: Py<PyAny>) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| {
        let told = serde_json::to_string(request).unwrap_or_default();
        let messages: Vec<(&str, String)> =
            request.messages.iter().map(|message| (message.role.name(), message.rendered())).collect();
        Python::attach(|py| {
            // What the adapter raises is no reply, and says why.
            let answer = function.call1(py, (told, messages)).and_then(|answer| answer.extract::<(bool, String)>(py));
            match answer {
                Ok((true, text)) => Reply::Text(text),
                Ok((false, text)) => Reply::Refused(text),
                Err(error) => Reply::Failed(crate::error::described(py, &error)),
            }
        })
    }
}

/// A simulation that is yet to run.
#[pyclass(frozen, module = "polity._polity")]
pub struct Simulation(Mutex<Option<polity::Simulation>>);

impl Simulation {
    pub fn of(simulation: polity::Simulation) -> Simulation {
        Simulation(Mutex::new(Some(simulation)))
    }

    fn take(&self, py: Python<'_>) -> PyResult<polity::Simulation> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| exception(py, "InputError", "this simulation was already run", None))
    }

    fn change(
        &self,
        py: Python<'_>,
        change: impl FnOnce(polity::Simulation) -> polity::Result<polity::Simulation>,
    ) -> PyResult<()> {
        let changed = change(self.take(py)?).map_err(|error| of(py, &error))?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed);
        Ok(())
    }
}

/// What the thread of a run tells the calling thread.
#[derive(Default)]
struct Told {
    round: u32,
    planned: u32,
    agents: u32,
    calls: u64,
    cost_usd: f64,
    waiting: Option<String>,
    /// External trouble that a person may want to know about, not yet passed on.
    notes: Vec<String>,
    /// The exception of a handler of events.
    error: Option<PyErr>,
}

#[pymethods]
impl Simulation {
    /// Reads a scenario: `how` is `file`, `yaml`, `json` or `example`.
    #[new]
    fn new(py: Python<'_>, how: &str, source: &str) -> PyResult<Simulation> {
        let made = match how {
            "file" => polity::Simulation::from_file(source),
            "yaml" => polity::Simulation::from_yaml(source),
            "example" => polity::Simulation::example(source),
            _ => serde_json::from_str::<serde_json::Value>(source)
                .map_err(polity::Error::from)
                .and_then(polity::Simulation::from_value),
        };
        Ok(Simulation::of(made.map_err(|error| of(py, &error))?))
    }

    /// Sets a key of the scenario to a JSON value.
    fn set(&self, py: Python<'_>, path: &str, json: &str) -> PyResult<()> {
        let value: serde_json::Value =
            serde_json::from_str(json).map_err(|error| of(py, &polity::Error::from(error)))?;
        self.change(py, |simulation| simulation.set(path, value))
    }

    fn seed(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.seed(seed)))
    }

    fn agents(&self, py: Python<'_>, agents: u32) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.agents(agents)))
    }

    fn rounds(&self, py: Python<'_>, rounds: u32) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.rounds(rounds)))
    }

    fn ask(&self, py: Python<'_>, model: &str) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.ask(model)))
    }

    fn max_cost(&self, py: Python<'_>, dollars: f64) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.max_cost(dollars)))
    }

    fn max_calls(&self, py: Python<'_>, calls: u64) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.max_calls(calls)))
    }

    fn max_tokens(&self, py: Python<'_>, tokens: u64) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.max_tokens(tokens)))
    }

    fn max_time(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| exception(py, "InputError", &format!("max_time={seconds}: {error}"), None))?;
        self.change(py, |simulation| Ok(simulation.max_time(time)))
    }

    fn out(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.out(folder)))
    }

    fn allow_read(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.allow_read(folder)))
    }

    fn leaves(&self, py: Python<'_>, leaves: &Leaves) -> PyResult<()> {
        let registry = leaves.registry.clone();
        self.change(py, |simulation| Ok(simulation.registry(registry)))
    }

    fn model(&self, py: Python<'_>, name: &str, function: Py<PyAny>) -> PyResult<()> {
        self.change(py, |simulation| Ok(simulation.model(name, answering(function))))
    }

    /// Checks the scenario without running it.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        let simulation = self.take(py)?;
        let checked = read(py, move || simulation.validate())?;
        checked.map_err(|error| of(py, &error))
    }

    /// Runs it. `on_event` gets every event as JSON, on the run's thread, and stops the run by returning `False`. `progress` is called
    /// about twenty times a second with (round, planned, agents, calls, dollars, what it waits for), and `note` with every note about
    /// trouble outside. Both are called on the calling thread. Returns the run, and the exception of a signal that interrupted it.
    #[pyo3(signature = (on_event = None, progress = None, note = None))]
    fn run(
        &self,
        py: Python<'_>,
        on_event: Option<Py<PyAny>>,
        progress: Option<Py<PyAny>>,
        note: Option<Py<PyAny>>,
    ) -> PyResult<(Run, Option<Py<PyAny>>)> {
        let told = Arc::new(Mutex::new(Told::default()));
        let tells = told.clone();
        let simulation = self.take(py)?.on_event(move |event: Event| -> Flow {
            let json = on_event.as_ref().map(|_| serde_json::to_string(&event).unwrap_or_default());
            {
                let mut told = tells.lock().unwrap_or_else(PoisonError::into_inner);
                match &event {
                    Event::Round { round, planned, agents, .. } => {
                        (told.round, told.planned, told.agents) = (round + 1, *planned, *agents);
                        told.waiting = None;
                    }
                    Event::Call(call) => {
                        told.calls += 1;
                        told.cost_usd += call.cost_usd.unwrap_or_default();
                    }
                    Event::Waiting { why } => told.waiting = Some(why.clone()),
                    Event::Note { text } => told.notes.push(text.clone()),
                    _ => {}
                }
            }
            let (Some(function), Some(json)) = (&on_event, json) else { return Flow::Continue };
            let heard = Python::attach(|py| {
                function.call1(py, (json,)).map(|answer| answer.extract::<bool>(py).unwrap_or(true))
            });
            match heard {
                Ok(true) => Flow::Continue,
                Ok(false) => Flow::Stop,
                Err(error) => {
                    tells.lock().unwrap_or_else(PoisonError::into_inner).error.get_or_insert(error);
                    Flow::Stop
                }
            }
        });
        let stop = Some(simulation.stop_handle());
        let pass_on = |py: Python<'_>| -> PyResult<()> {
            let notes = std::mem::take(&mut told.lock().unwrap_or_else(PoisonError::into_inner).notes);
            match &note {
                Some(note) => notes.into_iter().try_for_each(|text| note.call1(py, (text,)).map(drop)),
                None => Ok(()),
            }
        };
        let tick = |py: Python<'_>| -> PyResult<()> {
            pass_on(py)?;
            let Some(progress) = &progress else { return Ok(()) };
            let now = {
                let told = told.lock().unwrap_or_else(PoisonError::into_inner);
                (told.round, told.planned, told.agents, told.calls, told.cost_usd, told.waiting.clone())
            };
            progress.call1(py, now).map(drop)
        };
        let Worked { result, interrupted } = work(py, &stop, tick, move || simulation.run())?;
        pass_on(py)?;
        if let Some(error) = told.lock().unwrap_or_else(PoisonError::into_inner).error.take() {
            return Err(error);
        }
        let run = result.map_err(|error| of(py, &error))?;
        Ok((Run::of(run), interrupted.map(|error| error.into_value(py).into_any())))
    }

    /// Runs the design of the scenario.
    #[pyo3(signature = (jobs = None))]
    fn sweep(&self, py: Python<'_>, jobs: Option<NonZeroUsize>) -> PyResult<(Sweep, Option<Py<PyAny>>)> {
        let simulation = self.take(py)?;
        let stop = Some(simulation.stop_handle());
        let Worked { result, interrupted } = work(py, &stop, |_| Ok(()), move || simulation.sweep(jobs))?;
        let sweep = result.map_err(|error| of(py, &error))?;
        Ok((Sweep::of(sweep), interrupted.map(|error| error.into_value(py).into_any())))
    }
}

/// A run that has ended or stopped.
#[pyclass(frozen, module = "polity._polity")]
pub struct Run(polity::Run);

impl Run {
    pub fn of(run: polity::Run) -> Run {
        Run(run)
    }
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
        reading(py, &self.0, polity::Run::tables)
    }

    fn table(&self, py: Python<'_>, name: String) -> PyResult<Table> {
        reading(py, &self.0, move |run| Ok(Table::of(run.table_spec(&name)?, run.table(&name)?)))
    }

    fn calls(&self, py: Python<'_>) -> PyResult<Table> {
        let calls = reading(py, &self.0, polity::Run::calls)?;
        Table::of_calls(&calls)
            .map_err(|error| exception(py, "RunError", &format!("the table of calls: {error}"), None))
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<BTreeMap<String, f64>> {
        reading(py, &self.0, polity::Run::metrics)
    }

    fn series(&self, py: Python<'_>, name: String) -> PyResult<Vec<(u32, f64)>> {
        reading(py, &self.0, move |run| run.series(&name))
    }

    fn resume(&self) -> Simulation {
        Simulation::of(self.0.resume())
    }

    fn fork(&self, at: u32) -> Simulation {
        Simulation::of(self.0.fork(at))
    }

    /// The summary of a replay, as JSON.
    fn replay(&self, py: Python<'_>) -> PyResult<String> {
        let summary = reading(py, &self.0, polity::Run::replay)?;
        written(py, &summary)
    }

    /// The verified folders, as JSON.
    fn verify(&self, py: Python<'_>) -> PyResult<String> {
        let found = reading(py, &self.0, polity::Run::verify)?;
        written(py, &found)
    }

    /// Answers of agents, as JSON.
    #[pyo3(signature = (agents, question, at = None))]
    fn interview(&self, py: Python<'_>, agents: Vec<u32>, question: String, at: Option<u32>) -> PyResult<String> {
        let said = reading(py, &self.0, move |run| run.interview(&agents, &question, at))?;
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
