//! Counterfactual regret minimisation on Kuhn and Leduc poker: `cfr [SECONDS]` prints iterations a second on one core, and exploitability
//! after 100 and 1,000 iterations.
//!
//! For `scripts/openspiel.sh`, `cfr json GAME ITERATIONS...` prints one JSON object a line: variant, iterations and nash_conv.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use polity_games::cfr::{Solver, Variant};
use polity_games::extensive::{Tree, game};
use std::error::Error;
use std::time::{Duration, Instant};

const VARIANTS: [(&str, Variant); 3] =
    [("cfr", Variant::Plain), ("cfr+", Variant::Plus), ("external", Variant::External { seed: 1 })];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["json", name, iterations @ ..] => {
            let mut stops = iterations.iter().map(|n| n.parse()).collect::<Result<Vec<u32>, _>>()?;
            stops.sort_unstable();
            json(&found(name)?, &stops)
        }
        [] => table(2.0),
        [seconds] => table(seconds.parse()?),
        _ => Err("usage: cfr [SECONDS], or cfr json GAME ITERATIONS...".into()),
    }
}

fn found(name: &str) -> Result<Tree, String> {
    game(name).ok_or_else(|| format!("there is no game `{name}`"))
}

fn json(tree: &Tree, stops: &[u32]) -> Result<(), Box<dyn Error>> {
    for (variant, kind) in &VARIANTS[..2] {
        let mut solver = Solver::new(tree, *kind)?;
        for stop in stops {
            solver.run(stop - solver.iterations());
            let nash_conv = solver.distance().nash_conv;
            println!("{}", serde_json::json!({ "variant": variant, "iterations": stop, "nash_conv": nash_conv }));
        }
    }
    Ok(())
}

fn table(seconds: f64) -> Result<(), Box<dyn Error>> {
    println!("| game | variant | iterations/s | exploitability after 100 | after 1,000 | value to the first player |");
    println!("|---|---|---|---|---|---|");
    for name in ["kuhn", "leduc"] {
        let tree = found(name)?;
        for (variant, kind) in VARIANTS {
            let mut solver = Solver::new(&tree, kind)?;
            solver.run(100);
            let early = solver.distance();
            solver.run(900);
            let late = solver.distance();
            let begun = Instant::now();
            let mut iterations = 0u32;
            while begun.elapsed() < Duration::from_secs_f64(seconds) {
                solver.run(100);
                iterations += 100;
            }
            let rate = f64::from(iterations) / begun.elapsed().as_secs_f64();
            println!(
                "| {name} | {variant} | {rate:.0} | {:.6} | {:.6} | {:.6} |",
                early.exploitability, late.exploitability, late.payoffs[0]
            );
        }
    }
    Ok(())
}
