//! The only place that prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use polity_store::printable::{json as written_out, on_one_line, printable};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The format of standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line: time, level, message, and further fields.
    Json,
}

/// Interval between progress lines, where no bar is drawn: of JSON for programs, of text for people.
#[must_use]
pub fn between_lines() -> Duration {
    Duration::from_secs(if is_json() { 5 } else { 10 })
}

/// A length of time in words: `8 s`, `12 min`, `3 h 20 min`.
#[must_use]
pub fn span(seconds: f64) -> String {
    let (minutes, hours) = ((seconds / 60.0).round() as u64, (seconds / 60.0).round() as u64 / 60);
    match () {
        () if seconds < 100.0 => format!("{seconds:.0} s"),
        () if hours == 0 => format!("{minutes} min"),
        () if hours < 48 => format!("{hours} h {} min", minutes % 60),
        () => format!("{} days", hours / 24),
    }
}

/// Whether standard error is JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Sets the format of standard error.
pub fn write_as(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    if is_json() {
        std::panic::set_hook(Box::new(|info| error(&info.to_string(), None)));
    }
}

/// Whether standard error is JSON, one object per line.
#[must_use]
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// The folder that this process works on, and the key that names it in JSON lines: `run`, `sweep` or `comparison`.
static FOLDER: Mutex<Option<(&'static str, String)>> = Mutex::new(None);

/// Sets the folder that this process works on, which every JSON line names from here on. `key`: `run`, `sweep` or `comparison`.
pub fn works_on(key: &'static str, folder: &Path) {
    *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, folder.display().to_string()));
}

/// Returns the folder that this process works on, and its key.
pub fn folder() -> Option<(&'static str, String)> {
    FOLDER.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Writes to standard error: `shown`, which must be printable, or a JSON object with the text and `more`.
fn say(level: &str, text: &str, shown: &str, more: Map<String, Value>) {
    let line = match is_json() {
        false => shown.to_owned(),
        true => {
            let mut object = Map::new();
            object.insert("time".into(), rfc3339(SystemTime::now()).into());
            object.insert("level".into(), level.into());
            object.insert("message".into(), text.trim_end().into());
            object.extend(more);
            if let Some((key, folder)) = folder() {
                object.entry(key).or_insert_with(|| folder.into());
            }
            written_out(&Value::Object(object).to_string()).into_owned()
        }
    };
    // A closed standard error must not stop a run. Write in one piece, since several threads may write.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints a line for people.
pub fn note(text: &str) {
    say("info", text, &printable(text), Map::new());
}

/// Prints a line for people while a bar may be drawn: it takes the bar's place, and the bar is redrawn below it.
pub fn news(text: &str) {
    say("info", text, &over_a_bar(text), Map::new());
}

/// Reports trouble that does not end the command; otherwise as news.
pub fn warn(text: &str) {
    say("warn", text, &over_a_bar(text), Map::new());
}

fn over_a_bar(text: &str) -> String {
    let clear = if draws() { "\r\x1b[2K" } else { "" };
    format!("{clear}{}", printable(text))
}

/// Reports an error in one of several checked things.
pub fn wrong(text: &str) {
    say("error", text, &styled(text, colours()), Map::new());
}

/// Prints an error and its exit code.
pub fn error(message: &str, code: Option<u8>) {
    let message = message.trim_end();
    let more = code.map(|code| ("exit_code".to_owned(), code.into())).into_iter().collect();
    say("error", message, &format!("error: {}", styled(message, colours())), more);
}

/// Prints a usage error, in the words of the parser.
pub fn usage(message: &str, code: u8) {
    let more = [("exit_code".to_owned(), code.into())].into_iter().collect();
    let plain = message.strip_prefix("error: ").unwrap_or(message);
    say("error", plain, styled(message, colours()).trim_end(), more);
}

/// Prints a line for people, with numbers for programs.
pub fn note_with<T: Serialize>(text: &str, numbers: &T) {
    let more = match serde_json::to_value(numbers) {
        Ok(Value::Object(object)) => object,
        // Without its numbers the line is still true.
        _ => Map::new(),
    };
    say("info", text, &printable(text), more);
}

/// Makes an error printable, keeping the colours (SGR) that it was rendered with. Quoted text was made printable before rendering.
fn styled(text: &str, colours: bool) -> String {
    let mut pieces = text.split('\x1b');
    let mut out = printable(pieces.next().unwrap_or_default()).into_owned();
    for piece in pieces {
        let codes = piece.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(codes, _)| codes);
        let codes = codes.filter(|codes| colours && codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
        let (style, rest) = codes.map_or((String::new(), format!("\x1b{piece}")), |codes| {
            (format!("\x1b[{codes}m"), piece[codes.len() + 2..].to_owned())
        });
        out.push_str(&style);
        out.push_str(&printable(&rest));
    }
    out
}

/// Whether a bar may be drawn on standard error.
#[must_use]
pub fn draws() -> bool {
    std::io::stderr().is_terminal() && !is_json()
}

/// Formats a time in UTC as RFC 3339, with milliseconds.
fn rfc3339(time: SystemTime) -> String {
    // A clock before 1970 is wrong anyway.
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Civil date of a day, in years that begin with March: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + next;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Whether output for programs was lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Returns whether output for programs was lost although its reader was there.
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

/// Prints a line, made printable; for JSON use [`json`]. A reader that has gone away (`polity list worlds | head -1`) ends the output
/// quietly.
pub fn print_line(text: &str) {
    print(format_args!("{}\n", printable(text)));
}

/// Prints text of many lines, made printable.
pub fn print_text(text: &str) {
    print(format_args!("{}", printable(text)));
}

/// Writes data unchanged; to a terminal, made printable.
pub fn print_data(data: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.is_terminal() {
        true => out.write_all(printable(&String::from_utf8_lossy(data)).as_bytes())?,
        false => out.write_all(data)?,
    }
    out.flush()
}

/// Whether errors may be coloured.
#[must_use]
pub fn colours() -> bool {
    draws() && std::env::var_os("NO_COLOR").is_none()
}

/// Formats a value as one line of JSON, in which nothing is hidden.
#[must_use]
pub fn json<T: Serialize>(value: &T) -> String {
    match serde_json::to_string(value) {
        Ok(text) => written_out(&text).into_owned(),
        Err(error) => error_json(&error.to_string(), 1),
    }
}

/// Formats an error as one line of JSON.
#[must_use]
pub fn error_json(message: &str, code: u8) -> String {
    let object = serde_json::json!({ "status": "error", "error": message, "exit_code": code });
    written_out(&object.to_string()).into_owned()
}

/// Indents lines and makes them printable.
#[must_use]
pub fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".into() } else { format!("   {}\n", on_one_line(line)) };
    text.lines().map(line).collect()
}

/// Returns a table for people, without rows: columns apart by spaces, as wide as the terminal.
#[must_use]
pub fn table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_can_not_steer_a_terminal() {
        assert_eq!(indented("a\u{1b}[2Jb\r\n\nc"), "   a\\u{1b}[2Jb\n\n   c\n");
    }

    #[test]
    fn a_failure_keeps_its_colours_and_nothing_else() {
        let text = "\u{1b}[31;1mred\u{1b}[0m \u{1b}[2J\u{1b}]0;t\u{7}\u{1b}";
        assert_eq!(styled(text, true), "\u{1b}[31;1mred\u{1b}[0m \\u{1b}[2J\\u{1b}]0;t\\u{7}\\u{1b}");
        assert_eq!(styled("\u{1b}[31mred", false), "\\u{1b}[31mred");
        assert_eq!(styled("ü\u{1b}[m\u{202e}", true), "ü\u{1b}[m\\u{202e}");
    }

    #[test]
    fn json_says_the_same_and_hides_nothing() {
        let value = serde_json::json!({ "name": "a\u{202e}b\u{9b}\u{7f}\u{e0041}" });
        assert_eq!(json(&value), r#"{"name":"a\u202eb\u009b\u007f\udb40\udc41"}"#);
        assert_eq!(serde_json::from_str::<Value>(&json(&value)).ok(), Some(value));
    }

    #[test]
    fn lengths_of_time_are_short() {
        for (seconds, words) in
            [(0.4, "0 s"), (99.0, "99 s"), (100.0, "2 min"), (3600.0, "1 h 0 min"), (2.6e5, "3 days")]
        {
            assert_eq!(span(seconds), words);
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        // Seconds by `date -u -d ... +%s`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
            (1_795_268_417, "2026-11-21T13:40:17.007Z"),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(rfc3339(time), text);
        }
    }
}
