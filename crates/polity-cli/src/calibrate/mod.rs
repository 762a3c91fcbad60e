//! `polity calibrate`: the parameters of a simulated model that fit the answers of a recorded evaluation.

use super::agreement::columns;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text};
use polity_driver::results;
use polity_driver::run::Folder;
use polity_kernel::registry::Registry;
use polity_kernel::scenario::{Assembled, assemble};
use polity_kernel::transport::InMemory;
use polity_stats::calibration::{Answered, Fit, fit};
use polity_store::disk::RealDisk;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The fitted parameters of a model.
#[derive(Debug, Serialize)]
struct Fitted {
    model: String,
    #[serde(flatten)]
    fit: Fit,
}

pub fn calibrate(run: &Path, as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let folder = Folder::read(Arc::new(RealDisk), run)?;
    let manifest = folder.manifest()?;
    let prepared = folder.prepared(&manifest)?;
    let machine = assemble(&prepared.tree, registry, &prepared.inputs, 1, Box::new(InMemory::default()))
        .map_err(|error| Failure::new(Exit::Folder, error.to_string()))?;
    let Assembled::Evaluation(evaluation) = machine else {
        let message = format!("{} is a society; parameters can be fitted to evaluations only", run.display());
        return Err(Failure::new(Exit::Input, message));
    };
    let tables = results::open(&RealDisk, run)?;
    let [item, round, who, kind, text] = columns(run, &tables, "acts", ["item", "round", "agent", "kind", "text"])?;
    let whole = |data: &polity_store::tables::ColumnData| -> Vec<Option<u32>> {
        data.numbers().into_iter().map(|x| x.map(|x| x as u32)).collect()
    };
    // The first answer of every member to every item, before it has heard anyone.
    let mut first: BTreeMap<(u32, u32), String> = BTreeMap::new();
    let rows = whole(&item).into_iter().zip(whole(&round)).zip(whole(&who)).zip(kind.texts()).zip(text.texts());
    for ((((item, round), who), kind), text) in rows {
        if let (Some(item), Some(0), Some(who), Some("answer"), Some(text)) = (item, round, who, kind.as_deref(), text)
        {
            first.entry((item, who)).or_insert(text);
        }
    }
    let mut by_model: BTreeMap<&str, Vec<Answered>> = BTreeMap::new();
    for ((index, who), text) in &first {
        let (Some(item), Some(member)) =
            (evaluation.items().get(*index as usize), evaluation.team().get(*who as usize))
        else {
            continue;
        };
        if let Some(right) = item.is_right(text).filter(|_| !member.adversarial) {
            let answer = item.extracted(text).unwrap_or_default();
            let answered = Answered { item: *index, difficulty: item.difficulty, right, answer };
            by_model.entry(member.model.as_str()).or_default().push(answered);
        }
    }
    if by_model.is_empty() {
        let message = format!(
            "{}: there are no answers that can be scored by reading them; `direct`, `self-consistency` and `debate` on \
             items with right answers produce such answers",
            run.display()
        );
        return Err(Failure::new(Exit::Input, message));
    }
    let mut out = String::new();
    for (model, answers) in by_model {
        let Some(fit) = fit(&answers) else {
            note(&format!(
                "{model}: {} answers say nothing about its parameters (all are right, or all are wrong)",
                answers.len()
            ));
            continue;
        };
        if as_json {
            print_line(&json(&Fitted { model: model.into(), fit }));
            continue;
        }
        let Fit { answers, accuracy, skill, difficulty_response, correlation, lure } = fit;
        let with = |(x, error): (f64, f64)| format!("{x:.3} ± {error:.3}");
        let plain = |x: Option<f64>| x.map_or("cannot be estimated".into(), |x| format!("{x:.3}"));
        out.push_str(&format!(
            "{model}: {answers} answers, {accuracy:.3} right\n  skill {}\n  difficulty_response {}\n  correlation {}\n  lure {}\n",
            with(skill),
            difficulty_response.map_or("cannot be estimated".into(), with),
            plain(correlation),
            plain(lure)
        ));
    }
    print_text(&out);
    Ok(Exit::Done)
}
