//! `polity mock-server`.

use super::failure::{Exit, Failure};
use super::output::{note, print_line};
use polity_models::mock_server::{MockServer, Options};
use std::sync::mpsc;

/// Serves until it is stopped.
pub fn mock_server(options: Options) -> Result<Exit, Failure> {
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || {
        // Nobody is listening any more: it is already ending.
        let _ = stop.send(());
    })
    .map_err(|error| Failure::new(Exit::Input, format!("Ctrl-C cannot be handled: {error}")))?;
    let mock_server = MockServer::start(options).map_err(|why| Failure::new(Exit::Input, why))?;
    print_line(&format!("listening on {}", mock_server.url()));
    note(&format!(
        "answers are simulated; to use this server, set OPENAI_BASE_URL={}, or ANTHROPIC_BASE_URL, \
         GOOGLE_GEMINI_BASE_URL or OLLAMA_HOST={}, with any key; Ctrl-C stops it",
        mock_server.url(),
        mock_server.root()
    ));
    let _ = stopped.recv();
    Ok(Exit::Done)
}
