//! The report's section on reasoning capacity: which component of a team is weak, at what cost, and how to change it for the next run.

use super::made_by;
use polity_arena::report::{DataTable, Section, short};
use polity_driver::chain::{Component, weakest};
use polity_driver::run::Manifest;
use serde_json::Value;
use std::path::Path;

/// Maximum components in the report.
const MOST_COMPONENTS: usize = 60;

/// Returns the section of a run whose team was asked.
pub fn section(components: &[Component], manifest: &Manifest, run: &Path) -> Option<Section> {
    let sum = |of: fn(&Component) -> f64| components.iter().map(of).sum::<f64>();
    let (tokens, seconds) = (sum(|component| component.tokens as f64), sum(|component| component.seconds));
    if components.is_empty() {
        return None;
    }
    let ratio = |a: f64, b: f64| if b > 0.0 { short(a / b) } else { String::new() };
    let row = |component: &Component| {
        let scored = |value: String| if component.scored > 0 { value } else { String::new() };
        let right = component.right as f64;
        vec![
            component.name.clone(),
            component.kind.clone(),
            component.model.clone(),
            component.calls.to_string(),
            scored(format!("{} of {}", component.right, component.scored)),
            scored(ratio(right, component.scored as f64)),
            scored(ratio(1000.0 * right, component.tokens as f64)),
            scored(ratio(right, component.seconds)),
            ratio(component.tokens as f64, tokens),
            ratio(component.seconds, seconds),
            short(component.cost_usd),
        ]
    };
    let columns = [
        "member",
        "work",
        "model",
        "calls",
        "items right",
        "share right",
        "right per 1,000 tokens",
        "right per second",
        "share of tokens",
        "share of time",
        "USD",
    ];
    let shown = components.len().min(MOST_COMPONENTS);
    Some(Section {
        title: "Reasoning capacity".into(),
        text: Some(format!("{} {}", constraints(manifest), advice(components, manifest, run))),
        figures: Vec::new(),
        table: Some(DataTable {
            columns: columns.map(String::from).to_vec(),
            rows: components.iter().take(MOST_COMPONENTS).map(row).collect(),
            caption: format!(
                "{shown} of {} components: a member in one kind of work. An answer is right by the rule of its item, and the \
                 last one on an item counts. Cells are empty where replies are no answers to the item, or where only tests or a \
                 judge can score them.",
                components.len()
            ),
            links: Vec::new(),
        }),
    })
}

/// Says under which constraints the components worked.
fn constraints(manifest: &Manifest) -> String {
    let budget = manifest.scenario.get("budget").and_then(Value::as_object);
    let limits: Vec<String> = budget
        .into_iter()
        .flatten()
        .filter(|(_, limit)| limit.is_number())
        .map(|(name, limit)| format!("{} {limit}", name.replace('_', " ")))
        .collect();
    let stated = match limits.is_empty() {
        true => "The scenario states no budget; shares are of what the run used.".to_owned(),
        false => format!("The budget of the scenario: {}. Shares are of what the run used.", limits.join(", ")),
    };
    match manifest.simulated {
        true => format!("{stated} Times of simulated models are declared."),
        false => stated,
    }
}

/// Names the weakest component, and the commands that show and change it.
fn advice(components: &[Component], manifest: &Manifest, run: &Path) -> String {
    let Some(weak) = weakest(components) else { return "No component is weaker than the others.".into() };
    let team = manifest.scenario.get("team").and_then(Value::as_array).map_or(0, Vec::len);
    let change = match (weak.member as usize).checked_rem(team) {
        Some(at) => format!("-P 'team[{at}].model=PROVIDER/MODEL', or -P 'team[{at}].persona=ADVICE'"),
        None => "-P 'team=[...]', which lists the members with a model and a persona each".into(),
    };
    format!(
        "The weakest is {} at {}: right on {} of {} items. “polity calls {} --agent {} --full” shows its work. To change it \
         in the next run, add to “{}”: {change}.",
        weak.name,
        weak.kind,
        weak.right,
        weak.scored,
        run.display(),
        weak.member,
        made_by(manifest)
    )
}
