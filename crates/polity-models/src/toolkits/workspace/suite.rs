//! The tool `run_tests`.

use super::{Done, Shared, Trouble, Version};
use regex::Regex;

/// The tests that there are, by the runner that there is.
const STANDARD: &str = "if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -q -p no:cacheprovider; \
                        else python3 -m unittest; fi";
/// Lines shown of what a runner printed.
const LINES: usize = 60;
/// Times that runners print, which are never the same.
const TIMES: &str = r"(?m)^(Ran \d+ tests?|=*\s?.*\b(?:passed|failed|errors?|skipped|no tests ran)) in \d+\.\d+s";

/// Tests by how they ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Reads the summary of unittest or pytest; none if there is none.
fn counts(printed: &str) -> Option<Counts> {
    for line in printed.lines().rev() {
        if let Some(counts) = pytest(line) {
            return Some(counts);
        }
        if line == "OK" || line.starts_with("OK (") || line.starts_with("FAILED (") || line.starts_with("NO TESTS RAN")
        {
            return unittest(printed, line);
        }
    }
    None
}

/// `== 3 passed, 1 failed, 1 error in 0.12s ==`
fn pytest(line: &str) -> Option<Counts> {
    let line = line.trim_matches(|c| c == '=' || c == ' ');
    let (parts, time) = line.split_once(" in ")?;
    time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let mut counts = Counts::default();
    for part in parts.split(", ") {
        if part == "no tests ran" {
            continue;
        }
        let (number, what) = part.split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match what {
            "passed" | "xpassed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" | "xfailed" => counts.skipped += number,
            "deselected" | "warning" | "warnings" => {}
            _ => return None,
        }
    }
    Some(counts)
}

/// `Ran 4 tests in 0.001s`, and behind it `OK (skipped=1)` or `FAILED (failures=1, errors=1)`
fn unittest(printed: &str, verdict: &str) -> Option<Counts> {
    let ran =
        printed.lines().rev().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u64>().ok())?;
    let mut counts = Counts::default();
    let inside = verdict.split_once('(').map_or("", |(_, inside)| inside.trim_end_matches(')'));
    for (what, number) in inside.split(", ").filter_map(|part| part.split_once('=')) {
        let number: u64 = number.parse().ok()?;
        match what {
            "failures" | "errors" | "unexpected successes" => counts.failed += number,
            "skipped" | "expected failures" => counts.skipped += number,
            _ => return None,
        }
    }
    counts.passed = ran.saturating_sub(counts.failed + counts.skipped);
    Some(counts)
}

/// What a runner printed, without times, in its last lines.
fn last_lines(printed: &str) -> String {
    let times = Regex::new(TIMES);
    let text = times.map_or_else(|_| printed.into(), |times| times.replace_all(printed, "$1"));
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let left_out = lines.len().saturating_sub(LINES);
    let head = if left_out > 0 { format!("[... {left_out} lines left out ...]\n") } else { String::new() };
    head + &lines[left_out..].join("\n")
}

impl Shared {
    /// The tool `run_tests`. Tests that fail are a result, not an error; that none ran is an error.
    pub(super) fn run_tests(&self, version: Version, command: Option<&str>) -> Result<Done, Trouble> {
        let (status, text, version) = self.command(version, command.unwrap_or(STANDARD), self.limits.longest)?;
        let (summary, error) = match counts(&text) {
            Some(Counts { passed: 0, failed: 0, skipped: 0 }) => ("No tests were found.".to_owned(), true),
            Some(Counts { passed, failed, skipped }) => {
                let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
                (format!("{passed} passed, {failed} failed{skipped}."), false)
            }
            None => (format!("The command ended with status {status}."), status != 0),
        };
        Ok(Done { text: format!("{summary}\n\n{}", last_lines(&text)), error, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_runners_are_read() {
        let all = |passed, failed, skipped| Some(Counts { passed, failed, skipped });
        for (printed, expected) in [
            ("....\n------\nRan 4 tests in 0.001s\n\nOK\n", all(4, 0, 0)),
            ("Ran 4 tests in 0.001s\n\nOK (skipped=1)\n", all(3, 0, 1)),
            ("Ran 5 tests in 1.001s\n\nFAILED (failures=1, errors=2, skipped=1)\n", all(1, 3, 1)),
            ("Ran 2 tests in 1.001s\n\nOK (expected failures=1)\n", all(1, 0, 1)),
            ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", all(0, 0, 0)),
            ("..F\n1 failed, 2 passed in 0.03s\n", all(2, 1, 0)),
            ("== 3 passed, 1 skipped, 2 errors, 1 warning in 12.30s (0:00:12) ==\n", all(3, 2, 1)),
            ("no tests ran in 0.00s\n", all(0, 0, 0)),
            ("all is well\n", None),
            ("12 monkeys in 3 cars\n", None),
        ] {
            assert_eq!(counts(printed), expected, "{printed}");
        }
    }

    #[test]
    fn times_are_left_out() {
        assert_eq!(last_lines("Ran 4 tests in 0.001s\n\nOK\n"), "Ran 4 tests\n\nOK");
        assert_eq!(last_lines("== 1 failed, 2 passed in 0.03s ==\n"), "== 1 failed, 2 passed ==");
        assert!(last_lines(&"line\n".repeat(100)).starts_with("[... 40 lines left out ...]\nline"));
    }
}
