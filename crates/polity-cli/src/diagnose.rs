//! `polity diagnose`: the ways in which the teams of a run failed.

use super::engine::plain_engine;
use super::failure::{Exit, Failure};
use super::output::{json, print_line, print_text};
use polity_driver::diagnosis::{CallId, Diagnosed, Diagnosis, ModeTally, Observations, Tally};
use polity_kernel::registry::Registry;
use serde::Serialize;
use std::path::Path;

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    runs: &'a [Diagnosed],
    tally: &'a Tally,
}

pub fn diagnose(run: &Path, as_json: bool, registry: &Registry) -> Result<Exit, Failure> {
    let runs = plain_engine(registry).diagnose(run)?;
    let tally = Tally::of(&runs);
    match (as_json, runs.as_slice()) {
        (true, _) => print_line(&json(&Report { runs: &runs, tally: &tally })),
        (false, [one]) => print_text(&listing(&one.diagnosis)),
        (false, _) => print_text(&table(&tally)),
    }
    Ok(Exit::Done)
}

/// Formats the diagnosis of a run.
fn listing(diagnosis: &Diagnosis) -> String {
    let Diagnosis { items, calls, symptoms, undecided, observations } = diagnosis;
    let mut failed: Vec<u32> = symptoms.iter().map(|symptom| symptom.item).collect();
    failed.dedup();
    let mut out = format!("{} of {items} items show a failure; members were asked {calls} times\n", failed.len());
    for symptom in symptoms {
        let shown: Vec<String> = symptom.calls.iter().map(place).collect();
        out.push_str(&format!(
            "\nitem {}: {} {}\n  {}\n  shown by {}\n",
            symptom.item,
            symptom.mode.number(),
            symptom.mode,
            symptom.why,
            if shown.is_empty() { "no call".into() } else { shown.join("; ") }
        ));
    }
    out.push_str("\nnot decided for this run:\n");
    for undecided in undecided {
        out.push_str(&format!("  {} {}: {}\n", undecided.mode.number(), undecided.mode, undecided.why));
    }
    out.push_str(&overall(observations));
    out
}

fn place(CallId { round, agent, n }: &CallId) -> String {
    format!("round {round}, agent {agent}, question {n}")
}

/// Formats what the run shows as a whole.
fn overall(Observations { turned, contested, drift, collapse, monopoly }: &Observations) -> String {
    let said = |flag: &Option<bool>| match flag {
        Some(true) => "yes",
        Some(false) => "no",
        None => "too few items to say",
    };
    let most = contested.decided_by.values().max().copied().unwrap_or(0);
    let alone = match monopoly {
        Some(member) => format!("agent {member}"),
        None if contested.is_enough() => "no".into(),
        None => "too few items to say".into(),
    };
    format!(
        "\nin the whole run:\n  drift: {}; the first majority is right in {} items, {} of these end wrong, and {} others \
         end right\n  collapse: {}; members differ at first in {} items, and {} of these end with one answer of all\n  \
         monopoly: {alone}; the most that any member's first answer stands in the end is {most} of these {}\n",
        said(drift),
        turned.first_right,
        turned.lost,
        turned.gained,
        said(collapse),
        contested.items,
        contested.united,
        contested.items
    )
}

/// Formats how often planted faults are named.
fn table(tally: &Tally) -> String {
    let Tally { runs, clean_runs, unlabelled_clean_runs, modes } = tally;
    let mut out = format!(
        "{:<4} {:<34} {:>13} {:>14} {:>16}\n",
        "", "failure mode", "named in runs", "named in items", "elsewhere (runs)"
    );
    for mode in modes {
        let ModeTally { number, planted_runs, named_runs, planted_items, named_items, runs_named_elsewhere, .. } = mode;
        let share = |part: &usize, of: &usize| if *of == 0 { "-".into() } else { format!("{part} of {of}") };
        out.push_str(&format!(
            "{number:<4} {:<34} {:>13} {:>14} {runs_named_elsewhere:>16}\n",
            mode.mode.name(),
            share(named_runs, planted_runs),
            share(named_items, planted_items)
        ));
    }
    out.push_str(&format!(
        "{runs} runs; nothing is planted in {clean_runs} of them, and {unlabelled_clean_runs} of these get no label\n"
    ));
    out
}
