//! `polity calibrate`: the parameters of simulated models that fit the answers of a recorded evaluation.

mod against;
mod observed;

use super::args::Calibrating;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text};
use observed::Seen;
use polity_kernel::registry::Registry;
use polity_models::models::sim::{Critic, MODELS, Model, Sim};
use polity_stats::calibration::{Fit, Misfit, fit, judging, judging::Judging, misfits, sway, sway::Sway};
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
    swayed: Option<Sway>,
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
        let swayed = sway::fit(&seen.swayed(alone.as_ref()));
        models.push(Fitted { model, alone, swayed, judging: judging::fit(&seen.choices), written_as: None });
    }
    Calibration { models, misfit }
}

/// Rounds to what a reader can use.
fn round(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

/// The parameters of a fitted model; those that nothing is known of are taken over.
fn parameters(fitted: &Fitted, like: &Model) -> Model {
    let mut model = like.clone();
    if let Some(fit) = &fitted.alone {
        model.skill = round(fit.skill.0);
        let response = fit.difficulty_response.map(|(response, _)| round(response));
        model.difficulty_response = response.unwrap_or(model.difficulty_response);
        model.correlation = fit.correlation.map_or(model.correlation, round);
        model.lure = fit.lure.map_or(model.lure, round);
    }
    if let Some(sway) = &fitted.swayed {
        model.persuadability = round(sway.persuadability);
        model.discernment = round(sway.discernment);
        model.conformity = round(sway.conformity);
    }
    if let Some(judging) = &fitted.judging {
        // The fitted distance is over all wrong answers, those that it would give itself among them.
        let (sensitivity, first_bias) = (round(judging.sensitivity.0), round(judging.first_bias.0));
        model.critic = Critic { sensitivity, first_bias, blindness: 0.0, ..model.critic };
    }
    model
}

/// A name for a model in a file: without its provider, and unlike the built-in ones.
fn name_of(model: &str) -> Result<String, Failure> {
    let built_in: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(MODELS).map_err(|error| Failure::new(Exit::Input, error.to_string()))?;
    let short = model.split_once('/').map_or(model, |(_, short)| short);
    let name: String = short.chars().map(|c| if c.is_whitespace() || "/~?".contains(c) { '-' } else { c }).collect();
    Ok(if built_in.contains_key(&name) { format!("{name}-fitted") } else { name })
}

/// Writes the models to a new file, in the format of the built-in ones.
fn write(out: &Path, found: &mut [Fitted], like: &Model) -> Result<(), Failure> {
    let disk = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}", out.display()))
    };
    let mut models: BTreeMap<String, Model> = BTreeMap::new();
    for fitted in found.iter_mut() {
        if fitted.alone.is_none() && fitted.swayed.is_none() && fitted.judging.is_none() {
            continue;
        }
        let mut name = name_of(&fitted.model)?;
        while models.contains_key(&name) {
            name.push('+');
        }
        models.insert(name.clone(), parameters(fitted, like));
        fitted.written_as = Some(name);
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

fn listing(found: &Calibration, out: Option<&Path>, like: &str) -> String {
    let mut text = String::new();
    let with = |(x, error): (f64, f64)| format!("{x:.3} ± {error:.3}");
    let plain = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let width = found.models.iter().map(|fitted| fitted.model.chars().count()).max().unwrap_or(0).max(16);
    let alone: Vec<(&str, &Fit)> =
        found.models.iter().filter_map(|fitted| Some((fitted.model.as_str(), fitted.alone.as_ref()?))).collect();
    if !alone.is_empty() {
        text.push_str(&format!(
            "{:<width$} {:>8} {:>6} {:>15} {:>19} {:>11} {:>6}\n",
            "answers alone", "answers", "right", "skill", "difficulty_response", "correlation", "lure"
        ));
    }
    for (model, fit) in alone {
        let Fit { answers, accuracy, skill, difficulty_response, correlation, lure } = fit;
        let response = difficulty_response.map_or("-".into(), with);
        text.push_str(&format!(
            "{model:<width$} {answers:>8} {accuracy:>6.3} {:>15} {response:>19} {:>11} {:>6}\n",
            with(*skill),
            plain(*correlation),
            plain(*lure)
        ));
    }
    let swayed: Vec<(&str, &Sway)> =
        found.models.iter().filter_map(|fitted| Some((fitted.model.as_str(), fitted.swayed.as_ref()?))).collect();
    if !swayed.is_empty() {
        text.push_str(&format!(
            "\n{:<width$} {:>6} {:>14} {:>11} {:>10} {:>9} {:>20} {:>20}\n",
            "after others",
            "heard",
            "persuadability",
            "discernment",
            "conformity",
            "elsewhere",
            "corrected (implied)",
            "misled (implied)"
        ));
    }
    let beside = |(observed, implied): (f64, f64)| format!("{observed:.3} ({implied:.3})");
    for (model, Sway { heard, persuadability, discernment, conformity, elsewhere, corrected, misled }) in swayed {
        text.push_str(&format!(
            "{model:<width$} {heard:>6} {persuadability:>14.3} {discernment:>11.3} {conformity:>10.3} {elsewhere:>9.3} \
             {:>20} {:>20}\n",
            beside(*corrected),
            beside(*misled)
        ));
    }
    let judges: Vec<(&str, &Judging)> =
        found.models.iter().filter_map(|fitted| Some((fitted.model.as_str(), fitted.judging.as_ref()?))).collect();
    if !judges.is_empty() {
        text.push_str(&format!(
            "\n{:<width$} {:>8} {:>18} {:>17}\n",
            "as judges", "choices", "critic.sensitivity", "critic.first_bias"
        ));
    }
    for (model, Judging { choices, sensitivity, first_bias }) in judges {
        let (sensitivity, bias) = (with(*sensitivity), with(*first_bias));
        text.push_str(&format!("{model:<width$} {choices:>8} {sensitivity:>18} {bias:>17}\n"));
    }
    text.push_str(&of_team(&found.misfit));
    if let Some(out) = out {
        let name = found.models.iter().find_map(|fitted| fitted.written_as.as_deref()).unwrap_or("NAME");
        text.push_str(&format!(
            "\nWritten to {}, with all other parameters of {like}. To use it, add to a scenario below the same folder:\n  \
             simulated: {}\n  model: sim/{name}\n",
            out.display(),
            out.file_name().unwrap_or_default().display()
        ));
    }
    text
}

/// What the fit does not use, observed and implied.
fn of_team(misfit: &[Misfit]) -> String {
    if misfit.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<44} {:>15} {:>11}\n", "the team (not used by the fit)", "observed", "implied");
    for Misfit { figure, observed, error, implied } in misfit {
        let observed = format!("{observed:.3} ± {error:.3}");
        text.push_str(&format!("{figure:<44} {observed:>15} {implied:>11.3}\n"));
    }
    text
}
