//! A world in Python: its state is in one place, and all acts of a round are applied with one call.

use crate::bytes::{Bytes, as_doubles, doubles, wholes};
use crate::handle::Handle;
use crate::policy::Params;
use crate::setup::Setup;
use polity::kernel::interface::ActionArgument;
use polity::kernel::policy::Fault;
use polity::kernel::rng::Draws;
use polity::kernel::world::{AgentActions, DeclareWorld, Future, World, WorldSetup};
use polity::kernel::{AgentId, Invalid};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// The acts of a round, in order of agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Acts {
    who: Vec<AgentId>,
    kind: Vec<u32>,
    value: Vec<f64>,
    text: Vec<Option<String>>,
}

/// The state: what Python keeps, and what it showed of it last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    kept: Bytes,
    round: u32,
    /// Numbers that agents see, then columns, then scalars: one value for all, or one for each agent.
    shown: Vec<Vec<f64>>,
    acts: Acts,
    /// Why it cannot continue. Such a state is never saved.
    #[serde(skip)]
    fault: Option<String>,
}

impl State {
    fn number(&self, at: usize, who: usize) -> f64 {
        match self.shown.get(at).map(Vec::as_slice) {
            Some([one]) => *one,
            Some(each) => each.get(who).copied().unwrap_or(0.0),
            None => 0.0,
        }
    }
}

/// What Python declares, as JSON.
#[derive(Deserialize)]
struct Declared {
    observation: Vec<(String, String)>,
    actions: Vec<(String, String, Argument)>,
    columns: Vec<(String, String, Range)>,
    reward: Option<String>,
    metrics: Vec<(String, String)>,
}

/// Smallest and largest sensible value, if any.
type Range = Option<(f64, f64)>;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Argument {
    Number(f64, f64),
    Choice(Vec<String>),
    Text,
    Nothing,
}

pub struct PyWorld {
    handle: Arc<Handle>,
    bound: Py<PyAny>,
}

/// What Python gives back: its state, what is shown, and why the run ends, if it does.
type Stepped = (Vec<u8>, Vec<Vec<u8>>, Option<String>);

impl PyWorld {
    pub fn open_with(
        handle: &Arc<Handle>,
        Params(params): Params,
        setup: &WorldSetup<'_>,
        declare: &mut DeclareWorld<Self>,
    ) -> Result<Self, Invalid> {
        let told = json!({ "agents": setup.agents }).to_string();
        let opened = Python::attach(|py| {
            let open = || -> PyResult<(Py<PyAny>, String)> {
                let society = Setup::new(setup.population.table().clone(), setup.topology.clone());
                let params = serde_json::Value::Object(params).to_string();
                let bound = handle.adapter.call_method1(py, "open", (params, told, Bound::new(py, society)?))?;
                let declared = bound.call_method0(py, "declared")?.extract(py)?;
                Ok((bound, declared))
            };
            open().map_err(|error| handle.failed(py, error))
        });
        let invalid = |message: String| Invalid { key: String::new(), message };
        let (bound, declared) = opened.map_err(invalid)?;
        let declared: Declared = serde_json::from_str(&declared)
            .map_err(|error| invalid(format!("the declarations of `{}` do not fit: {error}", handle.name)))?;
        let mut at = 0..;
        let mut next = || at.next().unwrap_or_default();
        for (name, doc) in declared.observation {
            let i = next();
            declare.number(name, doc, move |_, state: &State, who| state.number(i, *who as usize));
        }
        for (name, doc, range) in declared.columns {
            let i = next();
            declare.column(name, doc, range, move |_, state: &State, who| state.number(i, *who as usize));
        }
        if let Some(doc) = declared.reward {
            let i = next();
            declare.reward(doc, move |_, state: &State, who| state.number(i, *who as usize));
        }
        for (name, doc) in declared.metrics {
            let i = next();
            declare.scalar(name, doc, move |_, state: &State| state.number(i, 0));
        }
        for (name, doc, argument) in declared.actions {
            let argument = match argument {
                Argument::Number(low, high) => ActionArgument::Number { low, high },
                Argument::Choice(options) => ActionArgument::Choice(options),
                Argument::Text => ActionArgument::Text,
                Argument::Nothing => ActionArgument::Nothing,
            };
            declare.action(name, argument, doc);
        }
        Ok(PyWorld { handle: handle.clone(), bound })
    }

    /// Calls Python, and takes what it gives back into the state.
    fn call(
        &self,
        state: &mut State,
        round: u32,
        call: impl FnOnce(Python<'_>) -> PyResult<Stepped>,
    ) -> Option<String> {
        let began = Instant::now();
        let called = Python::attach(|py| call(py).map_err(|error| self.handle.failed(py, error)));
        self.handle.took(round, began.elapsed());
        match called {
            Ok((kept, shown, ends)) => {
                state.kept = Bytes(kept);
                state.shown = shown.iter().map(|bytes| as_doubles(bytes)).collect();
                ends
            }
            Err(why) => {
                state.fault = Some(why);
                None
            }
        }
    }
}

fn key(draws: &mut Draws) -> (u64, u64) {
    (draws.u64(), draws.u64())
}

impl World for PyWorld {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "A world in Python";
    type Params = Params;
    type State = State;

    fn open(_: Params, _: &WorldSetup<'_>, _: &mut DeclareWorld<Self>) -> Result<Self, Invalid> {
        Err(Invalid { key: String::new(), message: "a world in Python is opened by its name".into() })
    }

    fn init_state(&self, setup: &WorldSetup<'_>, draws: &mut Draws) -> State {
        let mut state = State::default();
        let key = key(draws);
        let n = setup.agents;
        self.call(&mut state, 0, |py| self.bound.call_method1(py, "begin", (n, key))?.extract(py));
        state
    }

    fn apply(&self, state: &mut State, actions: &AgentActions<'_>, _: &mut Future) {
        for (i, act) in actions.acts().iter().enumerate() {
            state.acts.who.push(act.who);
            state.acts.kind.push(u32::from(act.kind));
            state.acts.value.push(act.value);
            state.acts.text.push(actions.text(i).map(str::to_owned));
        }
    }

    fn end_round(&self, state: &mut State, draws: &mut Draws) -> Option<String> {
        if state.fault.is_some() {
            return None;
        }
        let (acts, round, key) = (std::mem::take(&mut state.acts), state.round, key(draws));
        let kept = std::mem::take(&mut state.kept);
        let ends = self.call(state, round, |py| {
            let (who, kinds, values) = (wholes(py, &acts.who)?, wholes(py, &acts.kind)?, doubles(py, &acts.value)?);
            let texts = match acts.text.iter().any(Option::is_some) {
                true => Some(PyList::new(py, &acts.text)?),
                false => None,
            };
            let kept = PyBytes::new(py, &kept.0);
            self.bound.call_method1(py, "step", (round, who, kinds, values, texts, kept, key))?.extract(py)
        });
        state.round += 1;
        ends
    }

    fn fault(&self, state: &State) -> Option<Fault> {
        state.fault.clone().map(Fault)
    }
}
