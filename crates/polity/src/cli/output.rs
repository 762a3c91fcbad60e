//! The only place that prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use serde::Serialize;
use std::io::{IsTerminal, Write};

/// A line for people.
pub fn note(text: &str) {
    // A closed standard error is no reason to stop a run.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A line for programs. A reader that has gone away (`polity list worlds | head -1`) ends the output quietly.
pub fn print_line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Text of many lines for programs, as it is.
pub fn print_text(text: &str) {
    let _ = write!(std::io::stdout(), "{text}");
}

/// Whether errors may be coloured.
#[must_use]
pub fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A value as one line of JSON.
#[must_use]
pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| error_json(&e.to_string(), 1))
}

/// A failure as one line of JSON.
#[must_use]
pub fn error_json(message: &str, code: u8) -> String {
    serde_json::json!({ "status": "error", "error": message, "exit_code": code }).to_string()
}
