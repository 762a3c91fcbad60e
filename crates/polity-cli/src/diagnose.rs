//! `polity diagnose`: the ways in which the teams of a run failed.

use super::args::Diagnosing;
use super::engine::with_engine;
use super::failure::{Exit, Failure};
use super::output::{json, note, print_line, print_text};
use polity_driver::diagnosis::{
    Agreement, CallId, Diagnosed, Diagnosis, ModeAgreement, ModeTally, Observations, Ratings, Tally, TurnTally,
    Turning, read_labels,
};
use polity_driver::run::{Engine, Judged};
use polity_kernel::registry::Registry;
use polity_store::files::read_bytes;
use polity_store::printable::on_one_line;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// Of evaluations; the rules are not for societies.
    #[serde(flatten)]
    rules: Option<ByRules<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<&'a Judged>,
    /// Between the raters, if there is more than one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agreement: &'a [Agreement],
}

#[derive(Serialize)]
struct ByRules<'a> {
    runs: &'a [Diagnosed],
    tally: Tally,
}

pub fn diagnose(asked: &Diagnosing, registry: &Arc<Registry>) -> Result<Exit, Failure> {
    let Diagnosing { run, judge, labels, spending, answering, common } = asked;
    with_engine(common, answering, registry, |engine, _| {
        let engine = &Engine { budget: spending.budget(), ..engine.clone() };
        diagnosed(engine, run, judge.as_deref(), labels.as_deref(), common.json)
    })
}

fn diagnosed(
    engine: &Engine<'_>,
    run: &Path,
    judge: Option<&str>,
    labels: Option<&Path>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let wrong = |why: String| Failure::new(Exit::Input, why);
    let labels = match labels {
        Some(path) => {
            let bytes = read_bytes(path).map_err(|error| wrong(error.to_string()))?;
            Some((path, read_labels(path, &bytes).map_err(wrong)?))
        }
        None => None,
    };
    // Without a judge nothing can be said of a society, and the engine tells so.
    let society = judge.is_some() && engine.is_society(run)?;
    let runs = if society { Vec::new() } else { engine.diagnose(run)? };
    let rules = (!society).then(|| Ratings::of_rules(run, &runs));
    if let Some((path, labels)) = &labels {
        let known = rules.as_ref().map_or_else(|| engine.asked_agents(run), |rules| Ok(rules.subjects()))?;
        labels.check(&known).map_err(|why| wrong(format!("{}: {why}", path.display())))?;
    }
    let judged = judge.map(|model| engine.judge(run, model)).transpose()?;
    let judge = judged.as_ref().map(|judged| ratings(run, judged));
    let labels = labels.as_ref().map(|(_, labels)| labels);
    let pairs = [(rules.as_ref(), labels), (rules.as_ref(), judge.as_ref()), (judge.as_ref(), labels)];
    let agreement: Vec<Agreement> = pairs.into_iter().filter_map(|(a, b)| Some(Agreement::of(a?, b?))).collect();
    let by_rules = (!society).then(|| ByRules { runs: &runs, tally: Tally::of(&runs) });
    match (as_json, runs.as_slice(), &by_rules) {
        (true, ..) => {
            print_line(&json(&Report { rules: by_rules, judged: judged.as_ref(), agreement: &agreement }));
        }
        (false, [one], _) => print_text(&listing(&one.diagnosis)),
        (false, _, Some(by_rules)) => print_text(&table(&by_rules.tally)),
        (false, _, None) => {}
    }
    if !as_json {
        judged.iter().for_each(|judged| print_text(&verdicts(run, judged)));
        agreement.iter().for_each(|found| print_text(&compared(found)));
    }
    if let Some(why) = judged.as_ref().and_then(|judged| Some((judged.left, judged.why_left.as_ref()?))) {
        let of = if society { "agents" } else { "items" };
        note(&format!("the judge was not asked about {} {of}: {}", why.0, why.1));
    }
    Ok(Exit::Done)
}

/// The ratings of a judge: its replies that fit.
fn ratings(dir: &Path, judged: &Judged) -> Ratings {
    let verdicts = judged.verdicts.iter();
    let modes = verdicts.filter_map(|it| Some(((Ratings::name_of(dir, &it.run), it.subject), it.modes.clone()?)));
    Ratings { rater: judged.judge.clone(), modes: modes.collect() }
}

/// Formats what a judge says of the items or agents.
fn verdicts(dir: &Path, judged: &Judged) -> String {
    let Judged { judge, simulated, verdicts, calls, tokens, cost_usd, .. } = judged;
    let kind = if *simulated { ", a simulated model whose verdicts say nothing about the run" } else { "" };
    let mut out = format!("\n{judge}{kind}: {calls} answers, {tokens} tokens, ${cost_usd:.4}\n");
    for it in verdicts {
        let run = Ratings::name_of(dir, &it.run);
        let place = if run.is_empty() { it.subject.to_string() } else { format!("{run}, {}", it.subject) };
        let modes = match &it.modes {
            None => format!("no verdict: {}", on_one_line(&it.reasons)),
            Some(modes) if modes.is_empty() => "no failure".into(),
            Some(modes) => modes.iter().map(|mode| format!("{} {mode}", mode.number())).collect::<Vec<_>>().join(", "),
        };
        out.push_str(&format!("  {place}: {modes}\n"));
    }
    out
}

/// Formats how far two raters agree.
fn compared(found: &Agreement) -> String {
    let Agreement { rater, against, items, agreement, kappa, modes } = found;
    let shown = |x: &Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
    let mut out = format!(
        "\n{rater} against {against}, {items} rated by both: kappa {}, same decision in {}\n{:<4} {:<34} {:>6} {:>10} {:>11} {:>7}\n",
        shown(kappa),
        shown(agreement),
        "",
        "failure mode",
        "both",
        "first only",
        "second only",
        "kappa"
    );
    for ModeAgreement { mode, number, both, first, second, kappa } in modes {
        let name = mode.name();
        out.push_str(&format!("{number:<4} {name:<34} {both:>6} {first:>10} {second:>11} {:>7}\n", shown(kappa)));
    }
    out
}

/// Formats the diagnosis of a run.
fn listing(diagnosis: &Diagnosis) -> String {
    let Diagnosis { items, calls, symptoms, undecided, turnings, behaviours, undecided_behaviours, observations } =
        diagnosis;
    let mut failed: Vec<u32> = symptoms.iter().map(|symptom| symptom.item).collect();
    failed.dedup();
    let mut out = format!("{} of {items} items show a failure; members were asked {calls} times\n", failed.len());
    for symptom in symptoms {
        out.push_str(&format!(
            "\nitem {}: {} {}\n  {}\n  shown by {}\n",
            symptom.item,
            symptom.mode.number(),
            symptom.mode,
            symptom.why,
            places(&symptom.calls)
        ));
    }
    for Turning { item, fault, turn, why, calls, .. } in turnings {
        let shown = places(calls);
        out.push_str(&format!("\nitem {item}: {fault} from round {turn} on\n  {why}\n  shown by {shown}\n"));
    }
    for it in behaviours {
        let shown = places(&[it.call]);
        let name = it.behaviour.name();
        out.push_str(&format!(
            "\nitem {}: {name} behaviour in round {}\n  {}\n  shown by {shown}\n",
            it.item, it.turn, it.why
        ));
    }
    out.push_str("\nnot decided for this run:\n");
    for undecided in undecided {
        out.push_str(&format!("  {} {}: {}\n", undecided.mode.number(), undecided.mode, undecided.why));
    }
    for undecided in undecided_behaviours {
        out.push_str(&format!("  {} behaviour: {}\n", undecided.behaviour.name(), undecided.why));
    }
    out.push_str(&overall(observations));
    out
}

fn places(calls: &[CallId]) -> String {
    let place = |CallId { round, agent, n }: &CallId| format!("round {round}, agent {agent}, question {n}");
    let shown: Vec<String> = calls.iter().map(place).collect();
    if shown.is_empty() { "no call".into() } else { shown.join("; ") }
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
    let Tally { runs, clean_runs, unlabelled_clean_runs, modes, .. } = tally;
    let mut out = format!(
        "{:<4} {:<34} {:>13} {:>14} {:>16}\n",
        "", "failure mode", "named in runs", "named in items", "elsewhere (runs)"
    );
    for mode in modes {
        let ModeTally { number, planted_runs, named_runs, planted_items, named_items, runs_named_elsewhere, .. } = mode;
        out.push_str(&format!(
            "{number:<4} {:<34} {:>13} {:>14} {runs_named_elsewhere:>16}\n",
            mode.mode.name(),
            share(*named_runs, *planted_runs),
            share(*named_items, *planted_items)
        ));
    }
    out.push_str(&format!(
        "{runs} runs; nothing is planted in {clean_runs} of them, and {unlabelled_clean_runs} of these get no label\n"
    ));
    out.push_str(&by_turn(tally));
    out
}

fn share(part: usize, of: usize) -> String {
    if of == 0 { "-".into() } else { format!("{part} of {of}") }
}

/// Formats how often faults of discussions are flagged at their turn; empty if none is planted and none flagged.
fn by_turn(tally: &Tally) -> String {
    let Tally { quiet_runs, unflagged_quiet_runs, placebo_runs, unflagged_placebo_runs, turns, .. } = tally;
    if turns.iter().all(|turn| turn.planted_runs + turn.flags == 0) && *placebo_runs == 0 {
        return String::new();
    }
    let mut out = format!(
        "\n{:<20} {:>16} {:>17} {:>20}\n",
        "from a turn on", "flagged in runs", "flagged in items", "flags that are right"
    );
    for TurnTally { fault, planted_runs, flagged_runs, planted_items, flagged_items, flags } in turns {
        out.push_str(&format!(
            "{:<20} {:>16} {:>17} {:>20}\n",
            fault.name(),
            share(*flagged_runs, *planted_runs),
            share(*flagged_items, *planted_items),
            share(*flagged_items, *flags)
        ));
    }
    out.push_str(&format!(
        "{unflagged_quiet_runs} of {quiet_runs} runs without such a fault get no flag; of those with a placebo, \
         {unflagged_placebo_runs} of {placebo_runs}\n"
    ));
    out
}
