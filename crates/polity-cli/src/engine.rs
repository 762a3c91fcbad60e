//! The engine as the flags ask for it.

use super::args::{Answering, Common};
use super::failure::{Exit, Failure};
use super::output::{self, note};
use polity_driver::drive::Stop;
use polity_driver::run::Engine;
use polity_driver::source::{Declared, Notes, Outside};
use polity_driver::traces::Traces;
use polity_kernel::registry::Registry;
use polity_models::models::Providers;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether `polity resume` continues what this process does.
static RESUMABLE: AtomicBool = AtomicBool::new(false);

/// Sets the folder that this process works on and that `polity resume` continues. `key`: as of [`output::works_on`].
pub(crate) fn continues_with(key: &'static str, folder: &Path) {
    output::works_on(key, folder);
    RESUMABLE.store(true, Ordering::Relaxed);
}

/// The message of an interrupt that stops the process at once.
fn stopped_at_once() -> String {
    match output::folder().filter(|_| RESUMABLE.load(Ordering::Relaxed)) {
        Some((_, folder)) => format!("stopped; `polity resume {folder}` continues from the last save"),
        None => "stopped".to_owned(),
    }
}

/// Returns an engine for commands that run nothing.
pub(crate) fn plain_engine(registry: &Registry) -> Engine<'_> {
    Engine::new(registry)
}

pub(crate) fn with_engine<T>(
    common: &Common,
    answering: &Answering,
    registry: &Registry,
    work: impl FnOnce(&Engine<'_>, Stop) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(threads) = common.threads {
        // Fails only when the pool is already there, which keeps the first choice.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
    }
    let stop = Stop::default();
    let asked = stop.clone();
    // Without a handler Ctrl-C still stops the process; the run can be resumed all the same.
    let _ = ctrlc::set_handler(move || {
        if asked.ask() > 1 {
            note(&stopped_at_once());
            std::process::exit(i32::from(Exit::Stopped as u8));
        }
        note("finishing what is in flight and saving; interrupt again to stop immediately");
    });
    let notes = Notes::to(output::warn);
    let traces = match &answering.otlp {
        None if answering.otlp_content => {
            return Err(Failure::new(Exit::Input, "--otlp-content needs --otlp; name a receiver with --otlp URL"));
        }
        None => None,
        Some(address) => {
            let traces = Traces::new(address, answering.otlp_content, notes.clone());
            Some(traces.map_err(|why| Failure::new(Exit::Input, why))?)
        }
    };
    let engine = Engine {
        shards: common.shards.get(),
        connections: common.max_connections.get(),
        memory: common.memory,
        outside: Outside {
            prices: answering.prices()?,
            cache: answering.cache.clone(),
            declared: Declared {
                requests_per_minute: answering.requests_per_minute.map(NonZeroU32::get),
                tokens_per_minute: answering.tokens_per_minute.map(NonZeroU32::get),
            },
            schedule: answering.schedule,
            patience: answering.patience,
            grace: answering.grace,
            batch: answering.batch,
            batch_pause: answering.batch_pause_ms.map(Duration::from_millis),
            allow_tools: answering.allow_tools,
            notes,
            traces: traces.clone(),
            ..Outside::default()
        },
        stop: stop.clone(),
        providers: Arc::new(Providers::within(answering.request_timeout)),
        ..plain_engine(registry)
    };
    let result = work(&engine, stop);
    if let Some(lost) = traces.and_then(|traces| traces.finish()) {
        output::warn(&lost);
    }
    result
}
