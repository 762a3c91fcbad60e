//! `polity mock-provider`.

use super::output::{note, print_line};
use super::{Exit, Failure};
use polity_driver::standin::{Options, Standin};
use std::sync::mpsc;

/// Serves until it is stopped.
pub fn mock_provider(options: Options) -> Result<Exit, Failure> {
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || {
        // Nobody listens any more: it is ending already.
        let _ = stop.send(());
    })
    .map_err(|error| Failure::new(Exit::Input, format!("Ctrl-C can not be listened for: {error}")))?;
    let standin = Standin::start(options).map_err(|why| Failure::new(Exit::Input, why))?;
    print_line(&format!("listening on {}", standin.url()));
    note(&format!(
        "answers are simulated; ask it with OPENAI_BASE_URL={} or ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_HOST={}, and any \
         key; Ctrl-C ends it",
        standin.url(),
        standin.root()
    ));
    let _ = stopped.recv();
    Ok(Exit::Done)
}
