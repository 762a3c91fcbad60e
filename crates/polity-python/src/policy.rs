//! A policy in Python: once a round, one call for all agents of a cohort.
//!
//! It is a policy with a cohort step. The agents are counted into columns, the step passes them to Python, and the result waits in what
//! the cohort shares until each agent takes its part of it in its turn. What Python keeps is a part of what the cohort shares, so that it
//! is in the snapshot and in the digest.

use crate::bytes::{Bytes, as_doubles, doubles, wholes};
use crate::handle::Handle;
use crate::setup::Setup;
use polity::kernel::cohort::{CohortContext, CohortPolicy};
use polity::kernel::interface::{ActionArgument, ActionKind, FieldKind, NumberSlot, Observation, TextSlot};
use polity::kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity::kernel::rng::Draws;
use polity::kernel::{AgentId, Invalid};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Parameters of a leaf in Python: any.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Params(pub serde_json::Map<String, serde_json::Value>);

/// The agents of a cohort in a round, in columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    ids: Vec<AgentId>,
    /// Their rows of the population.
    rows: Vec<u32>,
    numbers: Vec<Vec<f64>>,
    texts: Vec<Vec<String>>,
}

/// Which agent's part is where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Places {
    /// Agents with consecutive ids from this one on.
    From(AgentId),
    /// Sorted.
    Of(Vec<AgentId>),
}

impl Places {
    fn new(ids: &[AgentId]) -> Places {
        match (ids.first(), ids.last()) {
            (Some(first), Some(last)) if (last - first) as usize + 1 == ids.len() => Places::From(*first),
            _ => Places::Of(ids.to_vec()),
        }
    }

    fn of(&self, who: AgentId) -> Option<usize> {
        match self {
            Places::From(first) => who.checked_sub(*first).map(|at| at as usize),
            Places::Of(ids) => ids.binary_search(&who).ok(),
        }
    }
}

/// What all agents do with one action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Done {
    /// Numbers; NaN: not this agent.
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
}

/// What a cohort shares: what Python keeps, and what its agents do in this round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    state: Bytes,
    places: Places,
    acts: Vec<(u16, Done)>,
    /// Numbers for those who hear an agent; NaN: none.
    tells: Option<Vec<f64>>,
}

/// What Python gives back: its state, values by action (bytes of doubles, or a list of texts), and numbers for those who hear an agent.
type Stepped<'py> = (Vec<u8>, Vec<(u16, Bound<'py, PyAny>)>, Option<Bound<'py, PyBytes>>);

pub struct PyPolicy {
    handle: Arc<Handle>,
    /// The adapter, bound to a society.
    bound: Py<PyAny>,
    numbers: usize,
    texts: usize,
    acts: Vec<ActionKind>,
    tells: bool,
    initial: Bytes,
}

/// What a policy or a world is told about an argument.
pub fn argument(kind: &ActionKind) -> serde_json::Value {
    let (form, more) = match &kind.argument {
        ActionArgument::Number { low, high } => ("number", json!({ "low": low, "high": high })),
        ActionArgument::Choice(options) => ("choice", json!({ "options": options })),
        ActionArgument::Text => ("text", json!({})),
        ActionArgument::Seen { table, column, words, .. } => {
            ("seen", json!({ "table": table, "column": column, "words": words }))
        }
        ActionArgument::Record(format) => ("record", json!({ "schema": format.to_schema(true) })),
        ActionArgument::Nothing => ("nothing", json!({})),
    };
    json!({ "name": kind.name, "doc": kind.doc, "form": form, "of": more })
}

impl PyPolicy {
    pub fn open_with(handle: &Arc<Handle>, Params(params): Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let named = |kind: FieldKind| {
            let fields = setup.interface.observation.iter().filter(move |field| field.kind == kind);
            fields.map(|field| field.name.to_string()).collect::<Vec<_>>()
        };
        let (numbers, texts) = (named(FieldKind::Number), named(FieldKind::Text));
        let acts: Vec<_> = setup.interface.acts.iter().map(argument).collect();
        let told = json!({
            "world": setup.world, "agents": setup.agents, "rounds": setup.rounds, "seed": setup.shared_context.seed,
            "numbers": numbers, "texts": texts, "actions": acts,
        });
        let shared = setup.shared_context;
        let society = Setup::new(shared.population.table().clone(), shared.topology.clone());
        Python::attach(|py| {
            let open = || -> PyResult<_> {
                let params = serde_json::Value::Object(params).to_string();
                let bound =
                    handle.adapter.call_method1(py, "open", (params, told.to_string(), Bound::new(py, society)?))?;
                let tells = bound.getattr(py, "tells")?.extract(py)?;
                let initial: Vec<u8> = bound.call_method0(py, "initial")?.extract(py)?;
                Ok((bound, tells, initial))
            };
            match open() {
                Ok((bound, tells, initial)) => Ok(PyPolicy {
                    handle: handle.clone(),
                    bound,
                    numbers: numbers.len(),
                    texts: texts.len(),
                    acts: setup.interface.acts.clone(),
                    tells,
                    initial: Bytes(initial),
                }),
                Err(error) => Err(Invalid { key: String::new(), message: handle.failed(py, error) }),
            }
        })
    }

    fn step(
        &self,
        py: Python<'_>,
        round: u32,
        key: (u64, u64),
        state: &Bytes,
        seen: &Seen,
    ) -> PyResult<Result<Shared, String>> {
        let numbers = seen.numbers.iter().map(|values| doubles(py, values)).collect::<PyResult<Vec<_>>>()?;
        let texts = seen.texts.iter().map(|texts| PyList::new(py, texts)).collect::<PyResult<Vec<_>>>()?;
        let (ids, rows) = (wholes(py, &seen.ids)?, wholes(py, &seen.rows)?);
        let state = PyBytes::new(py, &state.0);
        let stepped = self.bound.call_method1(py, "step", (round, ids, rows, numbers, texts, state, key))?;
        let (state, acts, tells): Stepped<'_> = stepped.extract(py)?;
        let mut done = Vec::with_capacity(acts.len());
        for (kind, values) in acts {
            let values = match values.cast::<PyBytes>() {
                Ok(bytes) => Done::Numbers(as_doubles(bytes.as_bytes())),
                Err(_) => Done::Texts(values.extract()?),
            };
            if let Err(why) = self.check(kind, &values, seen) {
                return Ok(Err(why));
            }
            done.push((kind, values));
        }
        let tells = tells.map(|bytes| as_doubles(bytes.as_bytes()));
        Ok(Ok(Shared { state: Bytes(state), places: Places::new(&seen.ids), acts: done, tells }))
    }

    /// Refuses what the world does not understand.
    fn check(&self, kind: u16, values: &Done, seen: &Seen) -> Result<(), String> {
        let Some(act) = self.acts.get(usize::from(kind)) else { return Err(format!("there is no action {kind}")) };
        let Done::Numbers(values) = values else { return Ok(()) };
        let (low, high, whole) = match &act.argument {
            ActionArgument::Number { low, high } => (*low, *high, false),
            ActionArgument::Choice(options) => (0.0, options.len() as f64 - 1.0, true),
            ActionArgument::Seen { .. } => (f64::MIN, f64::MAX, false),
            ActionArgument::Nothing => (0.0, 1.0, true),
            ActionArgument::Text | ActionArgument::Record(_) => {
                return Err(format!("the action `{}` takes texts, not numbers", act.name));
            }
        };
        let fits = |value: &f64| value.is_nan() || (low..=high).contains(value) && (!whole || value.fract() == 0.0);
        match values.iter().position(|value| !fits(value)) {
            None => Ok(()),
            Some(at) => Err(format!(
                "the action `{}` of agent {} is {}, and must be {} from {low} to {high} (NaN: no action)",
                act.name,
                seen.ids.get(at).copied().unwrap_or_default(),
                values[at],
                if whole { "a whole number" } else { "a number" },
            )),
        }
    }
}

impl Policy for PyPolicy {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "A policy in Python";
    type Params = Params;
    type State = ();

    fn open(_: Params, _: &PolicySetup<'_>) -> Result<Self, Invalid> {
        Err(Invalid { key: String::new(), message: "a policy in Python is opened by its name".into() })
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    fn memory_bytes(&self) -> usize {
        // Counted, passed to Python, taken back; texts are not known before.
        (self.numbers + self.acts.len() + 1) * 8 * 4 + self.texts * 200
    }

    fn tells_neighbours(&self) -> bool {
        self.tells
    }

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let shared: &Shared = turn.shared()?;
        let Some(at) = shared.places.of(turn.who) else { return Ok(()) };
        for (kind, done) in &shared.acts {
            match done {
                Done::Numbers(values) => match values.get(at) {
                    Some(value) if !value.is_nan() => {
                        // An action without an argument is marked with 1.
                        let nothing = self
                            .acts
                            .get(usize::from(*kind))
                            .is_some_and(|act| act.argument == ActionArgument::Nothing);
                        match (nothing, *value) {
                            (true, 1.0) => turn.act(*kind, 0.0),
                            (true, _) => {}
                            (false, value) => turn.act(*kind, value),
                        }
                    }
                    _ => {}
                },
                Done::Texts(texts) => {
                    if let Some(Some(text)) = texts.get(at) {
                        turn.act_text(*kind, text.as_str());
                    }
                }
            }
        }
        if let Some(value) = shared.tells.as_ref().and_then(|tells| tells.get(at)).filter(|value| !value.is_nan()) {
            turn.tell_neighbours(0, *value);
        }
        Ok(())
    }
}

impl CohortPolicy for PyPolicy {
    type Tally = Seen;
    type Shared = Shared;

    fn init_shared(&self) -> Shared {
        Shared { state: self.initial.clone(), places: Places::Of(Vec::new()), acts: Vec::new(), tells: None }
    }

    fn tally(&self) -> Seen {
        Seen { numbers: vec![Vec::new(); self.numbers], texts: vec![Vec::new(); self.texts], ..Seen::default() }
    }

    fn count(&self, seen: &mut Seen, _: u32, (): &(), person: Person<'_>, observation: Observation<'_>) {
        seen.ids.push(person.id);
        seen.rows.push(person.population.row(person.id));
        for (slot, numbers) in seen.numbers.iter_mut().enumerate() {
            numbers.push(observation.number(NumberSlot(slot)));
        }
        for (slot, texts) in seen.texts.iter_mut().enumerate() {
            texts.push(observation.text(TextSlot(slot)).to_owned());
        }
    }

    fn merge(&self, mut left: Seen, right: Seen) -> Seen {
        left.ids.extend(right.ids);
        left.rows.extend(right.rows);
        left.numbers.iter_mut().zip(right.numbers).for_each(|(left, right)| left.extend(right));
        left.texts.iter_mut().zip(right.texts).for_each(|(left, right)| left.extend(right));
        left
    }

    async fn cohort_step(
        &self,
        shared: &mut Shared,
        seen: &Seen,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        let Some(first) = seen.ids.first() else {
            *shared = Shared { state: shared.state.clone(), ..self.init_shared() };
            return Ok(());
        };
        let mut draws = context.draws(*first);
        let key = (draws.u64(), draws.u64());
        let began = Instant::now();
        let stepped = Python::attach(|py| match self.step(py, context.round, key, &shared.state, seen) {
            Ok(stepped) => stepped.map_err(|why| format!("`{}`, which is written in Python: {why}", self.handle.name)),
            Err(error) => Err(self.handle.failed(py, error)),
        });
        self.handle.took(context.round, began.elapsed());
        *shared = stepped.map_err(Fault)?;
        Ok(())
    }
}
