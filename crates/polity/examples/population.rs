//! Creates a million people that meet given shares, with a graph between them: `cargo run --release -p polity --example population`.
//!
//! Prints the time, the deviation of the shares from the requested ones, and properties of the graph. Another number of people may be
//! given: `-- 10000`. Then it draws a thousand people from a million rows with ten columns, where hardly two rows are alike. It fails
//! when a share is off by a percentage point or more, and when either takes longer than 30 seconds: run it in release.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::expect_used)]

use polity_driver::run::prepare;
use polity_kernel::layout::Layout;
use polity_kernel::population::fit::{Marginal, weights};
use polity_kernel::population::{Column, Share, Table};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::{Assembled, assemble};
use polity_kernel::topology::Topology;
use polity_kernel::tree::{Node, Value};
use polity_store::files;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const SURVEY: &str = "scenarios/survey.yaml";
/// The maximum error of a share, and the maximum time.
const MOST_ERROR: f64 = 0.01;
const MOST_SECONDS: f64 = 30.0;

fn main() -> ExitCode {
    let agents: i64 =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("the argument is a number of people"));
    // Show both, whatever the result of the first.
    let verdicts = [survey(agents), wide()];
    for fault in verdicts.iter().filter_map(|verdict| verdict.as_ref().err()) {
        eprintln!("failed: {fault}");
    }
    if verdicts.iter().all(Result::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns whether the shares are met, in time.
fn verdict(what: &str, shares: &[Share], seconds: f64) -> Result<(), String> {
    let largest = shares.iter().map(|share| (share.obtained - share.asked).abs()).fold(0.0, f64::max);
    println!("largest error of a share: {:.5} percentage points", 100.0 * largest);
    if largest >= MOST_ERROR {
        return Err(format!("{what}: a share is off by {:.5} percentage points", 100.0 * largest));
    }
    if seconds > MOST_SECONDS {
        return Err(format!("{what}: it took {seconds:.1} s; at most {MOST_SECONDS} s are allowed"));
    }
    Ok(())
}

fn survey(agents: i64) -> Result<(), String> {
    let began = Instant::now();
    let (_, tree) = files::read_file(Path::new(SURVEY)).expect("started in the root of the repository");
    let edits = vec![("agents".to_string(), Node::built(Value::Int(agents)))];
    let prepared = prepare(tree, SURVEY, Path::new("scenarios"), "survey", edits).expect("a scenario in the box");
    let machine = assemble(&prepared.tree, &polity::registry(), &prepared.inputs, Layout::default()).expect("it fits");
    let seconds = began.elapsed().as_secs_f64();
    let Assembled::Society(society) = machine else { return Err(format!("{SURVEY} is not a society")) };
    let shared_context = society.shared_context();
    println!("{} people with shares, personas, graph and a world: {seconds:.2} s", shared_context.population.len());
    println!();
    println!("| column | level | asked | obtained | error, percentage points |");
    println!("|---|---|---|---|---|");
    for share in shared_context.population.shares() {
        let error = share.obtained - share.asked;
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
    if let (Topology::Graph(graph), Ok(by)) =
        (&shared_context.topology, shared_context.population.table().number_column("PID"))
    {
        let group = |agent| shared_context.population.number(by, agent);
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
    verdict(SURVEY, shared_context.population.shares(), seconds)
}

/// Draws a thousand people from a million rows.
fn wide() -> Result<(), String> {
    const ROWS: usize = 1_000_000;
    const SHARES: [f64; 6] = [0.1, 0.1, 0.15, 0.15, 0.2, 0.3];
    let mut draws = Draws::new(1, Stream::Population, 9, 0);
    let names: Vec<String> = (0..10).map(|column| format!("column-{column}")).collect();
    let columns = names.iter().map(|name| {
        let values = (0..ROWS).map(|_| draws.below(SHARES.len() as u64) as f64).collect();
        (name.clone(), Column::Number(values))
    });
    let table = Table::new(columns.collect()).map_err(|error| error.to_string())?;
    let shares: Vec<(String, f64)> =
        SHARES.iter().enumerate().map(|(level, share)| (level.to_string(), *share)).collect();
    let marginals: Vec<Marginal> =
        names.into_iter().map(|column| Marginal { column, shares: shares.clone() }).collect();
    let began = Instant::now();
    let fit = weights(&table, None, &marginals).map_err(|error| error.to_string())?;
    let counts = fit.agents(1000, &mut draws);
    let seconds = began.elapsed().as_secs_f64();
    println!();
    println!("1000 people of {ROWS} rows with {} columns: {seconds:.2} s", marginals.len());
    verdict("wide data", &fit.obtained(&marginals, &counts), seconds)
}
