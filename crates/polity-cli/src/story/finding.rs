//! What a run shows, in a sentence or two.

use super::Lines;
use super::parent::Parent;
use polity_arena::report::{Mark, short};
use polity_driver::results::Run;
use polity_store::tables::{ColumnData, Reader, TableError};
use serde_json::Value;

/// A change smaller than this part of a value is none to speak of.
const LITTLE: f64 = 0.02;

/// A turn within a run counts if it goes beyond both ends by this part of all that was seen.
const TURN: f64 = 0.25;

/// Metrics by importance: those that the scenario asks for, in its order, then what the world measures, first what goes one way.
pub fn ranked<'a>(lines: &'a Lines, scenario: &Value) -> Vec<&'a String> {
    let text = |metric: &Value, key: &str| metric.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let asked: Vec<String> = scenario
        .get("metrics")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|metric| format!("{}.{}", text(metric, "of"), text(metric, "kind")))
        .collect();
    let place = |name: &String| {
        let of = |asked: &String| name == asked || name.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.'));
        asked.iter().position(of).unwrap_or(asked.len())
    };
    let mut names: Vec<&String> = lines.keys().filter(|name| !name.contains(".histogram.")).collect();
    let straight = |name: &String| lines.get(name).map_or(0.0, |points| straightness(points));
    names.sort_by(|a, b| (place(a).cmp(&place(b))).then_with(|| straight(b).total_cmp(&straight(a))));
    names
}

fn ends(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut finite = points.iter().filter(|point| point.1.is_finite());
    let first = finite.next()?;
    Some((first.1, finite.next_back().unwrap_or(first).1))
}

/// How much of its range a metric crosses from its first to its last value: 1 if it goes one way.
fn straightness(points: &[(f64, f64)]) -> f64 {
    let finite = || points.iter().map(|point| point.1).filter(|value| value.is_finite());
    let span = finite().fold(f64::MIN, f64::max) - finite().fold(f64::MAX, f64::min);
    let part = |(first, last): (f64, f64)| if span > 0.0 { (last - first).abs() / span } else { 0.0 };
    ends(points).map_or(0.0, part)
}

fn changed(points: &[(f64, f64)]) -> bool {
    ends(points).is_some_and(|(first, last)| (last - first).abs() > LITTLE * first.abs().max(last.abs()))
}

/// A metric's course in words: `like-share.mean rose from 0.62 to 0.78`.
fn course(name: &str, points: &[(f64, f64)]) -> Option<String> {
    let (first, last) = ends(points)?;
    let finite = || points.iter().filter(|point| point.1.is_finite());
    let highest = finite().fold((0.0, f64::MIN), |best, point| if point.1 > best.1 { *point } else { best });
    let lowest = finite().fold((0.0, f64::MAX), |best, point| if point.1 < best.1 { *point } else { best });
    let span = highest.1 - lowest.1;
    let (from, to) = (short(first), short(last));
    let is_flat = span <= LITTLE * highest.1.abs().max(lowest.1.abs());
    Some(if is_flat {
        format!("{name} stayed near {to}")
    } else if highest.1 - first.max(last) > TURN * span {
        format!("{name} rose from {from} to {} in round {} and ended at {to}", short(highest.1), highest.0)
    } else if first.min(last) - lowest.1 > TURN * span {
        format!("{name} fell from {from} to {} in round {} and ended at {to}", short(lowest.1), lowest.0)
    } else if !changed(points) {
        format!("{name} stayed near {to}")
    } else {
        format!("{name} {} from {from} to {to}", if last > first { "rose" } else { "fell" })
    })
}

/// How the run ended, in words.
pub fn status(run: &Run<'_>) -> &'static str {
    match &run.ended {
        Some(outcome) if outcome.reason.is_some() => "ended early",
        Some(_) => "finished",
        None => "not finished",
    }
}

fn ending(run: &Run<'_>, planned: u64) -> Option<String> {
    match &run.ended {
        Some(outcome) => {
            let reason = outcome.reason.as_ref()?;
            Some(format!("the run ended after {} of {planned} rounds: {reason}", outcome.rounds))
        }
        None => Some(format!("{} of {planned} rounds are complete so far", run.rounds)),
    }
}

/// The verdicts of an evaluation: items answered correctly, and scored.
fn verdicts(tables: &Reader<'_>) -> Result<Option<(usize, usize)>, TableError> {
    let data = tables.closed("items", &["correct"], usize::MAX)?;
    Ok(data.first().and_then(|(_, column)| match column {
        ColumnData::Bool(correct) => Some((
            correct.iter().filter(|correct| **correct == Some(true)).count(),
            correct.iter().filter(|correct| correct.is_some()).count(),
        )),
        _ => None,
    }))
}

fn sentence(words: &[String]) -> String {
    format!("{}.", words.join("; "))
}

/// The finding of a run. `marks`: what was changed in it.
pub fn finding(
    run: &Run<'_>,
    lines: &Lines,
    marks: &[Mark],
    parent: Option<&Parent>,
    planned: u64,
) -> Result<Vec<String>, TableError> {
    let scenario = &run.manifest.scenario;
    let mut found = Vec::new();
    if scenario.get("method").is_some_and(|method| !method.is_null()) {
        if let Some((right, scored)) = verdicts(&run.tables)?.filter(|(_, scored)| *scored > 0) {
            let share = short(100.0 * right as f64 / scored as f64);
            found.push(format!("The team answered {right} of {scored} items correctly ({share} %)."));
        }
        found.extend(ending(run, planned).map(|words| sentence(&[capital(&words)])));
        return Ok(found);
    }
    let ranked = ranked(lines, scenario);
    let own = |name: &&String| lines.get(*name).is_some_and(|points| changed(points));
    // The first metric that changes is the main one; without such, the first.
    let main = ranked.iter().find(|name| own(name)).or_else(|| ranked.first()).copied();
    let told = main.and_then(|name| course(name, lines.get(name)?));
    let first: Vec<String> = match (told, ending(run, planned)) {
        (Some(told), ending) => [told].into_iter().chain(ending).collect(),
        (None, ending) => ending.iter().map(|words| capital(words)).collect(),
    };
    found.extend((!first.is_empty()).then(|| sentence(&first)));
    if let (Some(parent), Some(name)) = (parent, main) {
        found.push(beside(parent, name, lines));
        return Ok(found);
    }
    let second = ranked.iter().find(|name| own(name) && main.is_none_or(|main| subject(main) != subject(name)));
    if let Some(words) = second.and_then(|name| course(name, lines.get(*name)?)) {
        found.push(sentence(&[words]));
    }
    if let Some(mark) = marks.first() {
        let more = if marks.len() > 1 { format!(" ({} more changes follow)", marks.len() - 1) } else { String::new() };
        found.push(format!("From round {} on: {}{more}.", mark.at, mark.label));
    }
    Ok(found)
}

/// What a metric is about: the level of a quantity, for its mean and its quantiles; else itself.
fn subject(name: &str) -> &str {
    match name.split_once('.') {
        Some((quantity, metric)) if metric == "mean" || metric.starts_with("quantiles.") => quantity,
        _ => name,
    }
}

/// A fork's last value beside its parent's.
fn beside(parent: &Parent, name: &str, lines: &Lines) -> String {
    let changed = match (parent.changes().as_str(), parent.first()) {
        ("", Some(round)) => format!("Its parent differs from round {round} on"),
        ("", None) => return "It does not differ from its parent.".into(),
        (changes, _) => capital(changes),
    };
    let last = |lines: &Lines| lines.get(name).and_then(|points| ends(points)).map(|(_, last)| short(last));
    match (last(lines), last(&parent.lines)) {
        (Some(own), Some(before)) if own != before => {
            format!("{changed}; in its parent {name} ended at {before}, here at {own}.")
        }
        _ => format!("{changed}; {name} ended as in its parent."),
    }
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn points(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(i, value)| (i as f64, *value)).collect()
    }

    #[test]
    fn a_course_is_told_as_a_person_would() {
        let told = |values: &[f64]| course("m", &points(values)).unwrap();
        assert_eq!(told(&[0.621, 0.7, 0.779]), "m rose from 0.621 to 0.779");
        assert_eq!(told(&[40.0, 20.0, 13.5256]), "m fell from 40 to 13.5");
        assert_eq!(told(&[4.3, 4.31, 4.304]), "m stayed near 4.3");
        assert_eq!(told(&[4.3, 4.3]), "m stayed near 4.3");
        assert_eq!(told(&[10.0, 320.0, 0.0]), "m rose from 10 to 320 in round 1 and ended at 0");
        assert_eq!(told(&[1.0, 0.1, 0.9]), "m fell from 1 to 0.1 in round 1 and ended at 0.9");
        assert_eq!(course("m", &points(&[f64::NAN])), None);
    }

    #[test]
    fn what_the_scenario_asks_for_comes_first() {
        let all = ["back", "order", "x.mean", "x.quantiles.q0.5", "x.histogram.b00"];
        let values = |name: &str| if name == "back" { points(&[1.0, 5.0, 2.0]) } else { points(&[1.0, 2.0, 3.0]) };
        let lines: Lines = all.map(|name| (name.to_owned(), values(name))).into();
        let scenario = json!({"metrics": [{"kind": "quantiles", "of": "x"}, {"kind": "mean", "of": "x"}]});
        assert_eq!(ranked(&lines, &scenario), ["x.quantiles.q0.5", "x.mean", "order", "back"]);
    }
}
