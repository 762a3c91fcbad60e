//! Measures how long calls of the toolkit `workspace` take on this machine: `cargo run --release -p polity-models --example measure_workspace`.
#![allow(clippy::print_stdout)]

use polity_models::toolkits::Toolkit;
use polity_models::toolkits::workspace::{Limits, Start, Workspace};
use serde_json::{Value, json};
use std::error::Error;
use std::time::Instant;

/// How often each thing is measured.
const TIMES: usize = 40;

struct Bench {
    workspace: Workspace,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// The state after a call, and milliseconds.
    fn call(&self, tool: &str, arguments: &Value, state: &str) -> Result<(String, f64), Box<dyn Error>> {
        let arguments = arguments.as_object().ok_or("arguments are an object")?;
        let began = Instant::now();
        let output = self.runtime.block_on(self.workspace.call(tool, arguments, state))?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        if output.error { Err(output.text.into()) } else { Ok((output.state, took)) }
    }

    /// Makes a call many times, each on the state of the one before (`chained`) or on the same, and prints the median and the extremes.
    fn many(
        &self,
        what: &str,
        tool: &str,
        arguments: impl Fn(usize) -> Value,
        state: &str,
        chained: bool,
    ) -> Result<String, Box<dyn Error>> {
        let (mut now, mut times) = (state.to_owned(), Vec::new());
        for i in 0..TIMES {
            let (next, took) = self.call(tool, &arguments(i), if chained { &now } else { state })?;
            now = next;
            times.push(took);
        }
        times.sort_by(f64::total_cmp);
        println!("{what}: median {:.1} ms, from {:.1} to {:.1}", times[TIMES / 2], times[0], times[TIMES - 1]);
        Ok(now)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let files = (0..20).map(|i| (format!("src/m{i}.py"), format!("x = {i}\n").repeat(50).into_bytes())).collect();
    let workspace =
        Workspace::open(&folder.path().join("store"), Start::Files(files), &Workspace::TOOLS, Limits::STANDARD)?;
    let bench = Bench { workspace, runtime: tokio::runtime::Runtime::new()? };
    bench.workspace.check()?;
    let code = |i: usize| json!({"code": format!("x = {i}\nx + 1")});
    bench.many("python, first call of a session", "python", code, "", false)?;
    let (state, _) = bench.call("python", &code(0), "")?;
    let state = bench.many("python, next call, no file changes", "python", code, &state, true)?;
    let write = |i: usize| json!({"code": format!("_ = open('out.txt', 'w').write('{i}')")});
    let state = bench.many("python, next call, a file changes", "python", write, &state, true)?;
    let (_, took) = bench.call("python", &code(1), &state)?;
    println!("python, once more: {took:.1} ms");
    let (_, took) = bench.call("python", &code(1), &state)?;
    println!("python on an older version, 81 cells run again: {took:.1} ms");
    bench.many("shell", "shell", |_| json!({"command": "cat src/*.py | wc -l"}), "", false)?;
    bench.many("read_file", "read_file", |_| json!({"path": "src/m1.py"}), "", false)?;
    bench.many("search_files", "search_files", |_| json!({"pattern": "x = 1"}), "", false)?;
    let text = |i: usize| json!({"path": "a.txt", "text": i.to_string()});
    bench.many("write_file", "write_file", text, "", true)?;
    let many = "for i in $(seq 1 99); do mkdir d$i; for j in $(seq 1 99); do echo $i $j > d$i/$j; done; done";
    let (state, took) = bench.call("shell", &json!({"command": many}), "")?;
    println!("shell that makes 9,801 files: {took:.0} ms");
    let (state, took) = bench.call("python", &code(0), &state)?;
    println!("python, first call with 9,801 files: {took:.0} ms");
    bench.many("python, next call with 9,801 files", "python", code, &state, true)?;
    Ok(())
}
