//! A service that runs a small society and reports its events to the caller: `cargo run -p polity --example embedding`.
//!
//! Three traders name a price by asking a model, which is a function of this program. The events are written as lines of JSON, as a
//! server would send them; the caller may stop at any of them.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use polity::kernel::ask::{Request, ResponseFormat};
use polity::{Event, Result, Run, Simulation};
use serde_json::json;
use std::io::Write;
use std::ops::ControlFlow;

/// The model: reads the wanted answer type, and names three quarters of the greatest number allowed.
fn trader(request: &Request) -> std::result::Result<f64, String> {
    match &request.response_format {
        ResponseFormat::Number { high, .. } => Ok(0.75 * high),
        other => Err(format!("a trader names numbers, not {other:?}")),
    }
}

/// Builds the society as a value: no text is written and no file is read.
fn market(rounds: u32) -> Result<Simulation> {
    let simulation = Simulation::from_value(json!({
        "name": "market",
        "rounds": rounds,
        "agents": 3,
        "model": "service/trader",
        "world": {"kind": "guess-average", "fraction": 0.5, "low": 0, "high": 100},
        "cohorts": [{"name": "traders", "policy": {"kind": "mind"}}],
        "metrics": [{"kind": "mean", "of": "guess"}]
    }))?;
    Ok(simulation.model("service/trader", trader))
}

/// Runs the society and sends its events to a caller, one per line. If the caller disconnects, the run stops.
pub fn serve(rounds: u32, mut caller: impl Write + Send + 'static) -> Result<Run> {
    let tell = move |event: Event| {
        let line = serde_json::to_string(&event).unwrap_or_default();
        match writeln!(caller, "{line}") {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    market(rounds)?.max_calls(1000).in_memory().on_event(tell).run()
}

#[allow(dead_code, reason = "the test that runs this file calls what `main` calls")]
fn main() -> Result<()> {
    let run = serve(3, std::io::stdout())?;
    eprintln!("{}: {} answers, mean price {}", run.status(), run.totals().answers, run.metric("guess.mean")?);
    Ok(())
}
