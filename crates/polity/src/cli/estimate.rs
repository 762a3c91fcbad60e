//! `polity estimate`: what a run will cost, before it is made.

use super::output::{json, note, print_line};
use super::{Exit, Failure, Source, failure, progress};
use polity_driver::run::{Basis, Engine, Forecast, Prepared};

/// US dollars that a sample may cost unless something else is said.
pub const SAMPLE_USD: f64 = 0.10;

pub fn estimate(
    engine: &Engine<'_>,
    prepared: &Prepared,
    source: &Source,
    basis: Basis<'_>,
    as_json: bool,
    mut watch: progress::Bar,
) -> Result<Exit, Failure> {
    if let Basis::Sample(limit) = basis {
        if !(0.0..=1e9).contains(&limit) {
            return Err(Failure::new(Exit::Input, format!("--max-cost {limit}: it must lie in 0 to 1,000,000,000")));
        }
        note(&format!("a few of the agents or items are asked, for ${limit} at most (--max-cost)"));
    }
    let found = engine.estimate(prepared, basis, &mut watch).map_err(|error| failure(&error, Some(source)))?;
    watch.finish();
    let Some(forecast) = found else {
        note("stopped before the estimate was there; nothing is kept of it");
        return Ok(Exit::Stopped);
    };
    tell(&forecast);
    if as_json {
        print_line(&json(&forecast));
    }
    Ok(Exit::Done)
}

/// The estimate for people.
fn tell(forecast: &Forecast) {
    let Forecast { low, expected, high, coverage, calls, tokens_in, tokens_out, tokens_thinking, .. } = forecast;
    note(&match (expected, coverage) {
        (Some(expected), Some(coverage)) => {
            let percent = coverage * 100.0;
            format!("the run will cost ${low:.4} to ${high:.4} ({percent:.0} %), most likely about ${expected:.4}")
        }
        _ => format!(
            "the run will cost between ${low:.4} and ${high:.4}: bounds, by the shortest and the longest replies"
        ),
    });
    note(&format!(
        "about {calls} calls, {tokens_in} tokens in and {tokens_out} out (of these {tokens_thinking} of thinking){}",
        if expected.is_none() { ", at most" } else { "" }
    ));
    let simulated = if forecast.simulated { "; models are simulated, so are their prices" } else { "" };
    note(&match forecast.basis {
        "sample" => format!("from {} answers that cost ${:.4}{simulated}", forecast.asked, forecast.asked_usd),
        "run" => format!("from the answers of an earlier run; nobody was asked{simulated}"),
        _ => format!("nobody was asked{simulated}"),
    });
}
