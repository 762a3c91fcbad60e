//! The only place that prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// A line for people.
pub fn note(text: &str) {
    // A closed standard error is no reason to stop a run.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A line for people while a bar may be drawn: it takes the bar's place, which is drawn anew below it.
pub fn news(text: &str) {
    let clear = if std::io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
    note(&format!("{clear}{text}"));
}

/// Whether something that was printed for programs did not arrive.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether something that was printed for programs did not arrive, though its reader was there.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

fn print(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout();
    let written = out.write_fmt(text).and_then(|()| out.flush());
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// A line for programs. A reader that has gone away (`polity list worlds | head -1`) ends the output quietly.
pub fn print_line(text: &str) {
    print(format_args!("{text}\n"));
}

/// Text of many lines for programs, as it is.
pub fn print_text(text: &str) {
    print(format_args!("{text}"));
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

/// What a terminal may be shown: a model must not be able to move its cursor or change its title.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// Lines as a terminal may be shown them, each a little to the right.
#[must_use]
pub fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".into() } else { format!("   {}\n", printable(line)) };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_can_not_steer_a_terminal() {
        assert_eq!(indented("a\u{1b}[2Jb\r\n\nc"), "   a\u{fffd}[2Jb\n\n   c\n");
    }
}
