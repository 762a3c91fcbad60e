//! Measures memory and disk use of a long run of the platform: `cargo run --release -p polity --example memory`. Takes up to ten minutes.
//!
//! The run is a separate process (this program, started again as `polity`), polled four times a second, on Linux. It fails unless memory
//! and snapshots are flat: no larger in the last third of the run than in the one before, within a tenth. To measure another run:
//! `MEMORY_OF="FILE --agents 1000000 --rounds 200"`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod common;

use polity_store::memory::entry_mb;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const RUN: &str = "scenarios/platform.yaml --agents 100000 --rounds 1500 -P snapshot.rounds=100";

/// A measurement, in MB (10^6 bytes).
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    resident: f64,
    /// Peak resident memory.
    peak: f64,
    /// Size of all snapshots on disk, and their number of files.
    saved: f64,
    files: usize,
    /// Written to the disk so far, including tables.
    written: f64,
}

/// Returns the MB that a process has written to the disk.
fn written(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("write_bytes:"))?;
    Some(bytes.trim().parse::<f64>().ok()? / 1e6)
}

fn look(process: u32, journal: &Path) -> Option<Seen> {
    let names = fs::read_dir(journal).ok()?.flatten();
    let snapshots = names.filter(|name| name.file_name().to_string_lossy().starts_with("snapshot-"));
    let lengths: Vec<u64> = snapshots.filter_map(|name| Some(name.metadata().ok()?.len())).collect();
    let status = format!("/proc/{process}/status");
    Some(Seen {
        resident: entry_mb(&status, "VmRSS:")?,
        peak: entry_mb(&status, "VmHWM:")?,
        saved: lengths.iter().sum::<u64>() as f64 / 1e6,
        files: lengths.len(),
        written: written(process)?,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NAN, f64::max)
}

fn main() -> ExitCode {
    if let Some(code) = common::as_polity() {
        return code;
    }
    let folder = common::folder("memory");
    let asked = std::env::var("MEMORY_OF").unwrap_or_else(|_| RUN.into());
    let out = folder.join("run");
    let mut process = Command::new(std::env::current_exe().expect("the path of this program"))
        .arg("run")
        .args(asked.split_whitespace())
        .args(["--no-report", "--json", "--out"])
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts again");
    let (began, mut seen) = (Instant::now(), Vec::new());
    let ended = loop {
        if let Some(ended) = process.try_wait().expect("it can be waited for") {
            break ended;
        }
        seen.extend(look(process.id(), &out.join("journal")));
        sleep(Duration::from_millis(250));
    };
    let (wall, mut said) = (began.elapsed().as_secs_f64(), String::new());
    process.stdout.take().expect("it prints").read_to_string(&mut said).expect("what it prints is text");
    assert!(ended.success() && seen.len() > 9, "{asked}: {ended}, looked at {} times", seen.len());
    let told: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let of = |key: &str| told[key].as_f64().unwrap();
    println!(
        "`polity run {asked}`: {:.0} rounds in {wall:.0} s, {:.0} ms a round, peak {:.0} MB, digest {}",
        of("rounds"),
        of("round_ms"),
        of("peak_memory_mb"),
        told["digest"].as_str().unwrap()
    );
    println!(
        "| part of the run | resident MB, median | most | peak MB so far | snapshots MB, median | most | files | MB written |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let thirds: Vec<&[Seen]> = seen.chunks(seen.len().div_ceil(3)).collect();
    let mut before = 0.0;
    for (name, third) in ["first third", "middle", "last third"].into_iter().zip(&thirds) {
        let last = third.last().copied().unwrap_or_default();
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {:.0} |",
            median(third.iter().map(|seen| seen.resident)),
            most(third.iter().map(|seen| seen.resident)),
            last.peak,
            median(third.iter().map(|seen| seen.saved)),
            most(third.iter().map(|seen| seen.saved)),
            third.iter().map(|seen| seen.files).max().unwrap_or(0),
            last.written - before,
        );
        before = last.written;
    }
    let flat = |what: &str, value: &dyn Fn(&[Seen]) -> f64| {
        let (middle, last) = (value(thirds[1]), value(thirds[2]));
        let flat = last <= 1.1 * middle;
        println!("{what}: {middle:.0} MB, then {last:.0} MB: {}", if flat { "flat" } else { "NOT FLAT" });
        flat
    };
    let resident = flat("resident", &|third| median(third.iter().map(|seen| seen.resident)));
    let peak = flat("peak", &|third| most(third.iter().map(|seen| seen.peak)));
    let saved = flat("snapshots", &|third| median(third.iter().map(|seen| seen.saved)));
    let _ = fs::remove_dir_all(&folder);
    if resident && peak && saved { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
