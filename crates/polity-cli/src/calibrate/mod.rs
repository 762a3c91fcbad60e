//! `polity calibrate`: the parameters of simulated models that fit the answers of a recorded evaluation.

mod against;
mod observed;

use super::args::Calibrating;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text, table};
use observed::Seen;
use polity_kernel::registry::Registry;
use polity_models::models::sim::{Critic, Model, Sim};
use polity_stats::calibration::{
    Fit, Misfit, fit, influence, influence::Influence, judging, judging::Judging, misfits,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// What fits a model.
#[derive(Debug, Serialize)]
struct Fitted {
    model: String,
    /// From answers given alone.
    alone: Option<Fit>,
    /// From answers after others were heard.
    influence: Option<Influence>,
    /// From choices between two answers.
    judging: Option<Judging>,
    /// Its name in the written file.
    #[serde(skip_serializing_if = "Option::is_none")]
    written_as: Option<String>,
}

#[derive(Debug, Serialize)]
struct Calibration {
    models: Vec<Fitted>,
    /// How far the team of all models is from its simulated twin.
    misfit: Vec<Misfit>,
}

pub fn calibrate(asked: &Calibrating, registry: &Registry) -> Result<Exit, Failure> {
    let like = Sim::standard().model(&asked.like).map_err(|why| Failure::new(Exit::Input, why))?.into_owned();
    let seen = observed::read(&asked.run, registry)?;
    if seen.values().all(|seen| seen.alone.is_empty() && seen.choices.is_empty()) {
        let message = format!(
            "{}: there are no answers that can be scored by reading them; `direct`, `self-consistency` and `debate` on \
             items with right answers produce such answers, and `judge` on pairs",
            asked.run.display()
        );
        return Err(Failure::new(Exit::Input, message));
    }
    if let Some(file) = &asked.against {
        let found = against::compare(seen, file)?;
        match asked.json {
            true => print_line(&json(&found)),
            false => print_text(&against::listing(&found)),
        }
        return Ok(Exit::Done);
    }
    let mut found = fitted(seen);
    if let Some(out) = &asked.out {
        write(out, &mut found.models, &like)?;
    }
    if asked.json {
        print_line(&json(&found));
    } else {
        print_text(&listing(&found, asked.out.as_deref(), &asked.like));
    }
    Ok(Exit::Done)
}

fn fitted(seen: BTreeMap<String, Seen>) -> Calibration {
    let (names, seen): (Vec<String>, Vec<Seen>) = seen.into_iter().unzip();
    let alone: Vec<_> = seen.iter().map(|seen| seen.alone.clone()).collect();
    let fits = fit(&alone);
    let misfit = misfits(&alone, &fits);
    let mut models = Vec::new();
    for ((model, seen), alone) in names.into_iter().zip(seen).zip(fits) {
        if alone.is_none() && !seen.alone.is_empty() {
            let answers = seen.alone.len();
            note(&format!(
                "{model}: {answers} answers say nothing about its parameters (all are right, or all are wrong)"
            ));
        }
        let influence = influence::fit(&seen.heard, alone.as_ref());
        models.push(Fitted { model, alone, influence, judging: judging::fit(&seen.choices), written_as: None });
    }
    Calibration { models, misfit }
}

/// Rounds to what a reader can use.
fn round(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

/// Returns the parameters of a fitted model. Those about which the answers say nothing are the ones of `like`.
fn parameters(fitted: &Fitted, like: &Model) -> Model {
    let mut model = like.clone();
    if let Some(fit) = &fitted.alone {
        model.skill = round(fit.skill.0);
        let response = fit.difficulty_response.map(|(response, _)| round(response));
        model.difficulty_response = response.unwrap_or(model.difficulty_response);
        model.correlation = fit.correlation.map_or(model.correlation, round);
        model.lure = fit.lure.map_or(model.lure, round);
    }
    if let Some(influence) = &fitted.influence {
        model.persuadability = round(influence.persuadability);
        model.discernment = round(influence.discernment);
        model.conformity = round(influence.conformity);
    }
    if let Some(judging) = &fitted.judging {
        // The fitted distance is over all wrong answers, those that it would give itself among them.
        let (sensitivity, first_bias) = (round(judging.sensitivity.0), round(judging.first_bias.0));
        model.critic = Critic { sensitivity, first_bias, blindness: 0.0, ..model.critic };
    }
    model
}

/// Returns names for the models of a run in a file: the part after the provider, or all of it if that is the name of a built-in model or
/// of another model of the run.
fn names(models: &[&str]) -> Vec<String> {
    let safe = |name: &str| name.replace(|c: char| c.is_whitespace() || "/~?".contains(c), "-");
    let short = |model: &str| safe(model.split_once('/').map_or(model, |(_, short)| short));
    let built_in = Sim::standard();
    let taken =
        |name: &String| built_in.model(name).is_ok() || models.iter().filter(|other| short(other) == *name).count() > 1;
    models.iter().map(|model| Some(short(model)).filter(|name| !taken(name)).unwrap_or_else(|| safe(model))).collect()
}

/// Writes the models to a new file, in the format of the built-in ones.
fn write(out: &Path, found: &mut [Fitted], like: &Model) -> Result<(), Failure> {
    let disk = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}", out.display()))
    };
    let names = names(&found.iter().map(|fitted| fitted.model.as_str()).collect::<Vec<_>>());
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    for (fitted, name) in found.iter_mut().zip(names) {
        if fitted.alone.is_some() || fitted.influence.is_some() || fitted.judging.is_some() {
            models.insert(name.clone(), parameters(fitted, like));
            fitted.written_as = Some(name);
        }
    }
    let text = serde_json::to_string_pretty(&models).map_err(|error| disk(&error))? + "\n";
    let mut file = File::create_new(out).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(
            Exit::Disk,
            format!("{} already exists; nothing was changed. Choose another file: --out FILE", out.display()),
        ),
        _ => disk(&error),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| disk(&error))
}

/// Formats a value and its standard error.
fn sure((value, error): (f64, f64)) -> String {
    format!("{value:.3} ± {error:.3}")
}

/// Makes a table of rows of cells, with a line break; empty without rows.
fn listed(header: &[&str], rows: Vec<Vec<String>>) -> Option<String> {
    let mut table = table(header.iter().map(|name| (*name).to_owned()).collect());
    let some = !rows.is_empty();
    table.add_rows(rows);
    some.then(|| format!("{table}\n"))
}

/// The tables of a calibration, with an empty line between them.
fn listing(found: &Calibration, out: Option<&Path>, like: &str) -> String {
    let plain = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let beside = |(observed, implied): (f64, f64)| format!("{observed:.3} ({implied:.3})");
    let alone = found.models.iter().filter_map(|Fitted { model, alone, .. }| {
        let Fit { answers, accuracy, skill, difficulty_response, correlation, lure } = alone.as_ref()?;
        let response = difficulty_response.map_or("-".into(), sure);
        let right = format!("{accuracy:.3}");
        let answers = answers.to_string();
        Some(vec![model.clone(), answers, right, sure(*skill), response, plain(*correlation), plain(*lure)])
    });
    let influence = found.models.iter().filter_map(|Fitted { model, influence, .. }| {
        let Influence { heard, persuadability, discernment, conformity, unheard, corrected, misled } =
            influence.as_ref()?;
        let shares = [persuadability, discernment, conformity, unheard].map(|x| format!("{x:.3}"));
        let mut row = vec![model.clone(), heard.to_string()];
        row.extend(shares.into_iter().chain([beside(*corrected), beside(*misled)]));
        Some(row)
    });
    let judging = found.models.iter().filter_map(|Fitted { model, judging, .. }| {
        let Judging { choices, sensitivity, first_bias } = judging.as_ref()?;
        Some(vec![model.clone(), choices.to_string(), sure(*sensitivity), sure(*first_bias)])
    });
    let written = out.map(|out| {
        let name = found.models.iter().find_map(|fitted| fitted.written_as.as_deref()).unwrap_or("NAME");
        format!(
            "Written to {}, with all other parameters of {like}. To use it, add to a scenario below the same folder:\n  \
             simulated: {}\n  model: sim/{name}\n",
            out.display(),
            out.file_name().unwrap_or_default().display()
        )
    });
    let names = ["answers alone", "answers", "right", "skill", "difficulty_response", "correlation", "lure"];
    let of_influence = [
        "after others",
        "heard",
        "persuadability",
        "discernment",
        "conformity",
        "unheard",
        "corrected (implied)",
        "misled (implied)",
    ];
    let of_judging = ["as judges", "choices", "critic.sensitivity", "critic.first_bias"];
    [
        listed(&names, alone.collect()),
        listed(&of_influence, influence.collect()),
        listed(&of_judging, judging.collect()),
        of_team(&found.misfit),
        written,
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join("\n")
}

/// What the fit does not use, observed and implied.
fn of_team(misfit: &[Misfit]) -> Option<String> {
    let row = |Misfit { figure, observed, error, implied }: &Misfit| {
        vec![(*figure).to_owned(), sure((*observed, *error)), format!("{implied:.3}")]
    };
    listed(&["the team (not used by the fit)", "observed", "implied"], misfit.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn every_model_has_a_name_of_its_own() {
        let models = ["openai/a", "azure/a", "openai/b/c", "sim/medium", "sim/medium?skill=2"];
        assert_eq!(names(&models), ["openai-a", "azure-a", "b-c", "sim-medium", "medium-skill=2"]);
    }
}
