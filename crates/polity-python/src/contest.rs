//! Methods compared on the same items.

use crate::call::{Worked, work, written};
use crate::error::{exception, of};
use crate::simulation::answering;
use polity::arena::Allowance;
use polity::kernel::scenario::Budget;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Runs a comparison; returns its results as JSON: the comparison, and answers to items by method and repeat.
#[pyfunction]
#[pyo3(signature = (methods, tasks, names, *, models, limit, seed, repeats, equal, pilot, out, max_cost, max_calls, max_tokens, max_time, edits))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn compare(
    py: Python<'_>,
    methods: Vec<String>,
    tasks: Vec<PathBuf>,
    names: Vec<String>,
    models: Vec<(String, Py<PyAny>)>,
    limit: Option<u32>,
    seed: Option<u64>,
    repeats: u32,
    equal: Option<String>,
    pilot: Option<u32>,
    out: Option<PathBuf>,
    max_cost: Option<f64>,
    max_calls: Option<u64>,
    max_tokens: Option<u64>,
    max_time: Option<f64>,
    edits: Vec<(String, String)>,
) -> PyResult<String> {
    let (mut tasks, mut names) = (tasks.into_iter(), names.into_iter());
    let (Some(task), Some(name)) = (tasks.next(), names.next()) else {
        return Err(exception(py, "InputError", "a comparison needs at least one task and one model", None));
    };
    let mut contest = polity::Contest::new(methods, task, name).repeats(repeats);
    contest = tasks.fold(contest, |contest, task| contest.task(task));
    contest = names.fold(contest, |contest, name| contest.and_model(name));
    if let Some(limit) = limit {
        contest = contest.limit(limit);
    }
    if let Some(seed) = seed {
        contest = contest.seed(seed);
    }
    if let Some(equal) = equal {
        let allowance = Allowance::read(&equal)
            .map_err(|why| exception(py, "InputError", &format!("equal={equal:?}: {why}"), None))?;
        contest = contest.equal(allowance, pilot);
    }
    if let Some(out) = out {
        contest = contest.out(out);
    }
    for (path, json) in edits {
        let value: serde_json::Value =
            serde_json::from_str(&json).map_err(|error| of(py, &polity::Error::from(error)))?;
        contest = contest.set(&path, value);
    }
    for (name, function) in models {
        contest = contest.model(&name, answering(function));
    }
    let budget =
        Budget { cost_usd: max_cost, calls: max_calls, tokens: max_tokens, seconds: max_time, ..Budget::default() };
    let contest = contest.budget(budget);
    let stop = Some(contest.stop_handle());
    let Worked { result, interrupted } = work(py, &stop, |_| Ok(()), move || contest.run())?;
    match (result, interrupted) {
        (Ok(comparison), None) => written(py, &comparison),
        (_, Some(error)) => Err(error),
        (Err(error), None) => Err(of(py, &error)),
    }
}
