//! Compares the answers of a run with models that exist already. Nothing is fitted.

use super::observed::Seen;
use super::{listed, of_team, sure};
use crate::failure::{Exit, Failure};
use polity_models::models::sim::{Model, Sim};
use polity_stats::calibration::{Answered, Fit, Misfit, misfits};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A model's answers beside its parameters.
#[derive(Debug, Serialize)]
pub(super) struct Beside {
    model: String,
    /// Its name in the file.
    simulated: String,
    answers: usize,
    /// Share of right answers, and its standard error.
    observed: (f64, f64),
    /// The share that its parameters imply.
    implied: f64,
}

/// The comparison of a run with the models of a file.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    models: Vec<Beside>,
    misfit: Vec<Misfit>,
}

/// Compares the answers given alone with the models of a file. The names in the file are those that `--out` gives.
pub(super) fn compare(seen: BTreeMap<String, Seen>, file: &Path) -> Result<Compared, Failure> {
    let input = |why: String| Failure::new(Exit::Input, format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| input(format!("cannot be read: {error}")))?;
    let sim = Sim::standard_and(&text).map_err(input)?;
    let (mut models, mut answers, mut fits) = (Vec::new(), Vec::new(), Vec::new());
    let names = super::names(&seen.keys().map(String::as_str).collect::<Vec<_>>());
    for ((model, Seen { alone, .. }), name) in
        seen.into_iter().zip(names).filter(|((_, seen), _)| !seen.alone.is_empty())
    {
        let simulated = format!("sim/{name}");
        let fit = as_fit(&*sim.model(&simulated).map_err(input)?, &alone);
        let n = alone.len() as f64;
        let error = (fit.accuracy * (1.0 - fit.accuracy) / n).sqrt();
        let implied = alone.iter().map(|answer| fit.mastery(answer.difficulty)).sum::<f64>() / n;
        models.push(Beside { model, simulated, answers: alone.len(), observed: (fit.accuracy, error), implied });
        answers.push(alone);
        fits.push(Some(fit));
    }
    if models.is_empty() {
        let message = "there are no answers given alone, which could be compared with the models of the file";
        return Err(Failure::new(Exit::Input, message.to_owned()));
    }
    Ok(Compared { misfit: misfits(&answers, &fits), models })
}

fn as_fit(model: &Model, answers: &[Answered]) -> Fit {
    let right = answers.iter().filter(|answer| answer.right).count() as f64;
    Fit {
        answers: answers.len(),
        accuracy: right / answers.len() as f64,
        skill: (model.skill, 0.0),
        difficulty_response: Some((model.difficulty_response, 0.0)),
        correlation: Some(model.correlation),
        lure: Some(model.lure),
    }
}

pub(super) fn listing(found: &Compared) -> String {
    let row = |Beside { model, answers, observed, implied, .. }: &Beside| {
        vec![model.clone(), answers.to_string(), sure(*observed), format!("{implied:.3}")]
    };
    let alone = listed(&["right alone", "answers", "observed", "implied"], found.models.iter().map(row).collect());
    [alone, of_team(&found.misfit)].into_iter().flatten().collect::<Vec<_>>().join("\n")
}
