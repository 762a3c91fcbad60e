//! Prints the figures of archetypes for the book's page of benchmarks: `cargo run --release -p polity --example archetypes`.
//!
//! Runs `scenarios/city.yaml` with increasing numbers of people, each time in its own process (this program, started again as `polity`),
//! so that memory and start-up count. Its model is simulated and answers at once. With arguments this program is the polity command
//! itself.
#![allow(clippy::print_stdout, clippy::expect_used)]

use std::process::{Command, ExitCode};
use std::time::Instant;

/// As in the program `polity`.
#[global_allocator]
static MEMORY: polity::cli::Allocator = polity::cli::Allocator;

const AGENTS: [u32; 4] = [8_400, 84_000, 840_000, 8_400_000];

fn main() -> ExitCode {
    if std::env::args().len() > 1 {
        return polity::cli::main(polity::registry());
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    println!("| agents | days | calls | calls a day | ms a day | process, s | peak MB |");
    println!("|---|---|---|---|---|---|---|");
    for agents in AGENTS {
        let began = Instant::now();
        let done = Command::new(std::env::current_exe().expect("the path of this program"))
            .args(["run", "scenarios/city.yaml", "--no-report", "--json", "--agents", &agents.to_string(), "--out"])
            .arg(folder.path().join(agents.to_string()))
            .output()
            .expect("this program starts again");
        let wall = began.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&done.stdout);
        let last = text.lines().last().unwrap_or_default();
        assert!(done.status.success(), "{last}\n{}", String::from_utf8_lossy(&done.stderr));
        let json: serde_json::Value = serde_json::from_str(last).expect("one line of JSON");
        let number = |key: &str| json[key].as_f64().unwrap_or(f64::NAN);
        let (days, calls) = (number("rounds"), number("answers"));
        println!(
            "| {agents} | {days} | {calls} | {:.1} | {:.0} | {wall:.1} | {:.0} |",
            calls / days,
            number("round_ms"),
            number("peak_memory_mb")
        );
    }
    ExitCode::SUCCESS
}
