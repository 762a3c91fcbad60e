//! Measures of the ties of a society, as rows of the table `network`.

use polity_kernel::population::Column;
use polity_kernel::society::Society;
use polity_kernel::topology::measures::{Structure, correlation, mixing};
use polity_kernel::topology::{Csr, Topology};
use std::collections::BTreeMap;

/// The most values of an attribute by which agents are groups.
const MOST_GROUPS: usize = 50;

/// A row of the table.
pub(super) struct Measured {
    pub quantity: &'static str,
    pub by: Option<String>,
    pub value: f64,
}

/// Measures the ties of a society after its last round. `first`: its columns before the first round.
pub(super) fn measured(society: &Society, first: &[Vec<f64>]) -> Vec<Measured> {
    let shared_context = society.shared_context();
    let Topology::Graph(graph) = &shared_context.topology else { return Vec::new() };
    let mut rows = structure(&Structure::of(graph, shared_context.seed));
    let n = graph.n();
    let people = &shared_context.population;
    let row = |agent: u32| people.row(agent) as usize;
    for (name, column) in people.columns() {
        match column {
            Column::Number(values) => {
                let numbers: Vec<f64> = (0..n).map(|agent| values[row(agent)]).collect();
                by_numbers(graph, name, &numbers, &mut rows);
            }
            Column::Text { codes, .. } => by_groups(graph, name, (0..n).map(|agent| codes[row(agent)]), &mut rows),
        }
    }
    for (i, first) in first.iter().enumerate() {
        if let Some(column) = society.interface().columns.get(i) {
            by_numbers(graph, &format!("{}.first", column.name), first, &mut rows);
            by_numbers(graph, &format!("{}.last", column.name), &society.column(i), &mut rows);
        }
    }
    rows
}

fn structure(of: &Structure) -> Vec<Measured> {
    let mut rows = Vec::new();
    let mut push = |quantity, value| rows.push(Measured { quantity, by: None, value });
    push("agents", f64::from(of.agents));
    push("ties", of.ties as f64);
    push("directed", f64::from(u8::from(of.directed)));
    push("mean-degree", of.mean_degree);
    push("degree-variance", of.degree_variance);
    push("max-degree", f64::from(of.max_degree));
    if let Some(incoming) = of.incoming {
        push("in-degree-variance", incoming.degree_variance);
        push("max-in-degree", f64::from(incoming.max_degree));
        push("reciprocity", incoming.reciprocity);
    }
    if let Some(transitivity) = of.transitivity {
        push("transitivity", transitivity);
    }
    push("mean-clustering", of.mean_clustering);
    push("components", f64::from(of.components));
    push("largest-component", of.largest_component);
    if let Some(distance) = of.mean_distance {
        push("mean-distance", distance);
        push("distance-sources", f64::from(of.distance_sources));
    }
    rows
}

/// By a number: its correlation over ties, and measures of groups if it has few values.
fn by_numbers(graph: &Csr, name: &str, numbers: &[f64], rows: &mut Vec<Measured>) {
    // Agents born during the run have no ties.
    let Some(numbers) = numbers.get(..graph.n() as usize) else { return };
    if let Some(value) = correlation(graph, numbers) {
        rows.push(Measured { quantity: "numeric-assortativity", by: Some(name.into()), value });
    }
    if numbers.iter().all(|number| number.is_finite()) {
        // A zero has one sign here.
        by_groups(graph, name, numbers.iter().map(|number| (number + 0.0).to_bits()), rows);
    }
}

/// By groups of agents with the same value; not if there is only one group, more than [`MOST_GROUPS`], or one for each agent.
fn by_groups<T: Ord>(graph: &Csr, name: &str, values: impl Iterator<Item = T>, rows: &mut Vec<Measured>) {
    let mut groups = BTreeMap::new();
    let mut group = Vec::with_capacity(graph.n() as usize);
    for value in values {
        let next = groups.len() as u32;
        group.push(*groups.entry(value).or_insert(next));
        if groups.len() > MOST_GROUPS {
            return;
        }
    }
    if groups.len() < 2 || groups.len() == group.len() {
        return;
    }
    let Some(found) = mixing(graph, &group, groups.len()) else { return };
    if let Some(value) = found.assortativity {
        rows.push(Measured { quantity: "assortativity", by: Some(name.into()), value });
    }
    rows.push(Measured { quantity: "modularity", by: Some(name.into()), value: found.modularity });
    rows.push(Measured { quantity: "same", by: Some(name.into()), value: found.same });
}
