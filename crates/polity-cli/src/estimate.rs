//! `polity estimate`: the cost of a run, before it is made.

use super::failure::{Exit, Failure, Source, failure};
use super::output::{json, note, print_line};
use super::progress;
use polity_driver::run::{Basis, Engine, Forecast, Prepared, SpreadForecast};
use std::path::Path;

/// The default maximum cost of a sample, in US dollars.
pub const SAMPLE_USD: f64 = 0.10;

/// What an estimate rests on: an earlier run, nothing, or a sample for at most `limit` US dollars.
pub fn basis(from: Option<&Path>, no_ask: bool, limit: f64) -> Basis<'_> {
    match from {
        Some(run) => Basis::Run(run),
        None if no_ask => Basis::Bounds,
        None => Basis::Sample(limit),
    }
}

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
            return Err(Failure::new(
                Exit::Input,
                format!("--max-cost {limit}: it must be between 0 and 1,000,000,000"),
            ));
        }
        note(&format!("asking a few of the agents or items, for at most ${limit} (--max-cost)"));
    }
    let found = engine.estimate(prepared, basis, &mut watch).map_err(|error| failure(&error, Some(source)))?;
    watch.finish();
    let Some(forecast) = found else {
        note("stopped before the estimate was complete; nothing of it is kept");
        return Ok(Exit::Stopped);
    };
    tell(&forecast);
    if as_json {
        print_line(&json(&forecast));
    }
    Ok(Exit::Done)
}

/// Estimates what a society would need and gain over several processes.
pub fn processes(
    engine: &Engine<'_>,
    prepared: &Prepared,
    source: &Source,
    processes: usize,
    as_json: bool,
) -> Result<Exit, Failure> {
    let forecast = engine.forecast_spread(prepared, processes).map_err(|error| failure(&error, Some(source)))?;
    let SpreadForecast { crossing, memory_mb: (alone, each), gain, advice, .. } = &forecast;
    note(&match crossing {
        Some(crossing) => format!("{:.1} % of the ties are between agents of different processes", crossing * 100.0),
        None => "the agents have no ties".to_string(),
    });
    note(&format!("memory: {alone:.0} MB in one process, {each:.0} MB in each of {processes}"));
    if let Some(gain) = gain {
        note(&format!("a round would be about {gain:.1} times as fast as on one core, if each process has one"));
    }
    note(advice);
    if as_json {
        print_line(&json(&forecast));
    }
    Ok(Exit::Done)
}

/// Shows the estimate for people.
fn tell(forecast: &Forecast) {
    let Forecast { low, expected, high, coverage, calls, tokens_in, tokens_out, tokens_thinking, .. } = forecast;
    note(&match (expected, coverage) {
        (Some(expected), Some(coverage)) => {
            let percent = coverage * 100.0;
            format!("the run will cost ${low:.4} to ${high:.4} ({percent:.0} %), most likely about ${expected:.4}")
        }
        _ => format!(
            "the run will cost between ${low:.4} and ${high:.4}, with the shortest and the longest possible replies"
        ),
    });
    note(&format!(
        "{} {calls} calls, {tokens_in} tokens in and {tokens_out} out, of which {tokens_thinking} for thinking",
        if expected.is_none() { "at most" } else { "about" }
    ));
    let simulated = if forecast.simulated { "; the models are simulated, and so are their prices" } else { "" };
    note(&match forecast.basis {
        "sample" => format!("from {} answers that cost ${:.4}{simulated}", forecast.asked, forecast.asked_usd),
        "run" => format!("from the answers of an earlier run; no model was asked{simulated}"),
        _ => format!("no model was asked{simulated}"),
    });
}
