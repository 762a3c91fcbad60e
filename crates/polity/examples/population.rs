//! A million people that meet stated shares, with a graph between them: `cargo run --release -p polity --example population`.
//!
//! Prints how long it takes, how far the shares are from those asked for, and what the graph is. Another number of people may be
//! given: `-- 10000`.
#![allow(clippy::print_stdout, clippy::expect_used)]

use polity_driver::files;
use polity_driver::run::prepare;
use polity_kernel::scenario::{Assembled, assemble};
use polity_kernel::topology::Topology;
use polity_kernel::transport::InMemory;
use polity_kernel::tree::{Node, Value};
use std::path::Path;
use std::time::Instant;

const SURVEY: &str = "scenarios/survey.yaml";

fn main() {
    let agents: i64 =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("the argument is a number of people"));
    let began = Instant::now();
    let (_, tree) = files::read_file(Path::new(SURVEY)).expect("started in the root of the repository");
    let edits = vec![("agents".to_string(), Node::built(Value::Int(agents)))];
    let prepared = prepare(tree, SURVEY, Path::new("scenarios"), "survey", edits).expect("a scenario in the box");
    let machine = assemble(&prepared.tree, &polity::registry(), &prepared.inputs, 1, Box::new(InMemory::default()))
        .expect("it fits");
    let seconds = began.elapsed().as_secs_f64();
    let Assembled::Society(society) = machine else { return };
    let commons = society.commons();
    println!("{} people with shares, personas, graph and a world: {seconds:.2} s", commons.population.len());
    println!();
    println!("| column | level | asked | obtained | error, percentage points |");
    println!("|---|---|---|---|---|");
    let mut largest = 0.0f64;
    for share in commons.population.shares() {
        let error = share.obtained - share.asked;
        largest = largest.max(error.abs());
        println!(
            "| {} | {} | {} | {:.6} | {:+.5} |",
            share.column,
            share.level,
            share.asked,
            share.obtained,
            100.0 * error
        );
    }
    println!();
    println!("largest error of a share: {:.5} percentage points", 100.0 * largest);
    if let (Topology::Graph(graph), Ok(by)) = (&commons.topology, commons.population.table().number_column("PID")) {
        let group = |agent| commons.population.number(by, agent);
        let inside = (0..graph.n())
            .map(|i| graph.neighbours(i).iter().filter(|j| group(**j) == group(i)).count())
            .sum::<usize>();
        println!(
            "graph: {} ties, {:.3} of an agent on average, {:.5} of them within a party",
            graph.arcs() / 2,
            graph.arcs() as f64 / f64::from(graph.n()),
            inside as f64 / graph.arcs() as f64
        );
    }
}
