//! Environments of the box, step by step, for Gymnasium and PettingZoo.

use crate::call::written;
use crate::error::exception;
use crate::policy::argument;
use polity::kernel::ask::{ResponseFormat, Value};
use polity::kernel::environment::{Env, Episode as Played};
use polity::kernel::interface::{FieldKind, NumberSlot, TableSlot, TextSlot};
use polity::kernel::items::Item;
use polity::kernel::tree::Node;
use pyo3::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open environment.
#[pyclass(frozen, module = "polity._polity")]
pub struct Environment(Env);

/// An episode in progress.
#[pyclass(frozen, module = "polity._polity")]
pub struct Episode {
    env: Env,
    played: Mutex<Played>,
}

/// A seat's observation: its numbers, its texts, the rows of its tables.
type Observed = (Vec<f64>, Vec<String>, Vec<Vec<Vec<f64>>>);

fn defect(py: Python<'_>, error: impl std::fmt::Display) -> PyErr {
    exception(py, "RunError", &error.to_string(), None)
}

#[pymethods]
impl Environment {
    /// Opens an environment by its name, with parameters as JSON.
    #[new]
    fn new(py: Python<'_>, name: &str, params: &str) -> PyResult<Environment> {
        let wrong = |message: String| exception(py, "InputError", &message, None);
        let mut node: serde_json::Value = serde_json::from_str(params).map_err(|error| wrong(error.to_string()))?;
        node["kind"] = name.into();
        let opened = polity::registry().make_env(&Node::from_json(&node));
        opened.map(Environment).map_err(|error| exception(py, "InputError", &error.to_string(), Some(&error.path)))
    }

    /// What a seat sees and can do, as JSON.
    fn about(&self, py: Python<'_>) -> PyResult<String> {
        let interface = self.0.interface();
        let named = |kind: FieldKind| -> Vec<_> {
            let fields = interface.observation.iter().filter(|field| field.kind == kind);
            fields.map(|field| json!({ "name": field.name, "doc": field.doc, "columns": field.columns })).collect()
        };
        let actions: Vec<_> = interface.acts.iter().map(argument).collect();
        written(
            py,
            &json!({
                "seats": self.0.seats(), "numbers": named(FieldKind::Number), "texts": named(FieldKind::Text),
                "tables": named(FieldKind::Table), "actions": actions,
            }),
        )
    }

    /// Begins an episode on a task, which may be empty.
    #[pyo3(signature = (seed, index, question = "", answer = None))]
    fn begin(&self, seed: u64, index: u32, question: &str, answer: Option<String>) -> Episode {
        let task = Item { question: question.into(), gold: answer, ..Item::default() };
        Episode { env: self.0.clone(), played: Mutex::new(self.0.begin(&task, seed, index)) }
    }
}

impl Episode {
    fn played(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Episode {
    fn observe(&self, py: Python<'_>, seat: u32) -> PyResult<Observed> {
        let fields = &self.env.interface().observation;
        let count = |kind: FieldKind| fields.iter().filter(move |field| field.kind == kind).count();
        let tables = || fields.iter().filter(|field| field.kind == FieldKind::Table).map(|field| field.columns.len());
        let observed = self.played().observe(seat, |seen| {
            let numbers = (0..count(FieldKind::Number)).map(|slot| seen.number(NumberSlot(slot))).collect();
            let texts = (0..count(FieldKind::Text)).map(|slot| seen.text(TextSlot(slot)).to_owned()).collect();
            let rows = |(slot, columns)| seen.table(TableSlot(slot, columns)).map(<[f64]>::to_vec).collect();
            (numbers, texts, tables().enumerate().map(rows).collect())
        });
        observed.map_err(|error| defect(py, error))
    }

    /// The numbers of the actions that a seat is offered; none if it has no turn.
    fn offered(&self, py: Python<'_>, seat: u32) -> PyResult<Vec<u16>> {
        let offered = self.played().offered(seat).map_err(|error| defect(py, error))?;
        Ok(offered.iter().map(|offered| offered.action).collect())
    }

    /// Its state, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        let state = self.played().state().map_err(|error| defect(py, error))?;
        written(py, &state)
    }

    /// Begins anew from a state, given as JSON.
    fn begin_from(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        let wrong = |message: String| exception(py, "InputError", &message, None);
        let state = serde_json::from_str(state).map_err(|error| wrong(error.to_string()))?;
        self.played().begin_from(&state).map_err(wrong)
    }

    /// What the last step gave a seat of each objective, by name; empty if the reward is not a vector.
    fn objectives(&self, py: Python<'_>, seat: u32) -> PyResult<BTreeMap<String, f64>> {
        let gained = self.played().gained(seat).map_err(|error| defect(py, error))?;
        Ok(self.env.objectives().into_iter().map(str::to_owned).zip(gained).collect())
    }

    /// Whether it has ended only because it was cut off.
    fn is_cut(&self, py: Python<'_>) -> PyResult<bool> {
        self.played().is_cut().map_err(|error| defect(py, error))
    }

    /// Takes a step: moves are (seat, action, its arguments as a JSON list). Returns rewards by seat, whether it is over, and results.
    fn step(&self, py: Python<'_>, moves: Vec<(u32, u16, String)>) -> PyResult<(Vec<f64>, bool, Vec<String>)> {
        let mut played = self.played();
        let mut taken = Vec::new();
        for (seat, action, arguments) in moves {
            let wrong = |message: String| exception(py, "InputError", &message, None);
            let offered = played.offered(seat).map_err(|error| defect(py, error))?;
            let Some(offer) = offered.iter().find(|offer| offer.action == action) else {
                let known: Vec<_> = offered.iter().map(|offer| format!("{} ({})", offer.action, offer.name)).collect();
                let known = if known.is_empty() { "none: it has no turn".into() } else { known.join(", ") };
                return Err(wrong(format!("seat {seat} is not offered the action {action} (it is offered {known})")));
            };
            let values: Vec<serde_json::Value> =
                serde_json::from_str(&arguments).map_err(|error| wrong(error.to_string()))?;
            if values.len() != offer.arguments.len() {
                let (takes, got) = (offer.arguments.len(), values.len());
                return Err(wrong(format!("the action `{}` takes {takes} arguments, not {got}", offer.name)));
            }
            let read = |(value, (name, format)): (&serde_json::Value, &(String, ResponseFormat))| {
                Value::from_json(value, format)
                    .ok_or_else(|| wrong(format!("the argument `{name}` of `{}` cannot be {value}", offer.name)))
            };
            let values = values.iter().zip(&offer.arguments).map(read).collect::<PyResult<Vec<_>>>()?;
            taken.push(offer.with(seat, values));
        }
        let result = played.step(&taken).map_err(|error| defect(py, error))?;
        Ok((result.rewards, result.done, result.results))
    }
}
