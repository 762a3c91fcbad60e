//! `polity interview`: ask agents of a recorded run.

use super::failure::{Exit, Failure};
use super::output::{self, note, print_line};
use super::progress;
use polity_driver::run::{Engine, Interviewed};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// One answer, as in `--json` and `--out`.
#[derive(Serialize)]
struct Row<'a> {
    agent: u32,
    round: u32,
    question: &'a str,
    model: &'a str,
    simulated: bool,
    outcome: &'static str,
    answer: &'a str,
    tokens_in: u64,
    tokens_out: u64,
    cost_usd: f64,
}

fn row<'a>(said: &'a Interviewed, question: &'a str) -> Row<'a> {
    let outcome = &said.answer.outcome;
    let usage = &said.answer.usage;
    Row {
        agent: said.agent,
        round: said.round,
        question,
        model: &said.answer.request.model,
        simulated: said.simulated,
        outcome: outcome.name(),
        answer: outcome.words(),
        tokens_in: usage.tokens_in,
        tokens_out: usage.tokens_out,
        cost_usd: usage.cost_usd,
    }
}

/// Who is asked what, and when.
pub struct Asked<'a> {
    pub run: &'a Path,
    pub agents: &'a [u32],
    pub at: Option<u32>,
    pub question: &'a str,
}

pub fn interview(
    engine: &Engine<'_>,
    asked: &Asked<'_>,
    out: Option<&Path>,
    json: bool,
    mut watch: progress::Bar,
) -> Result<Exit, Failure> {
    let Asked { run, agents, at, question } = *asked;
    if question.trim().is_empty() {
        return Err(Failure::new(
            Exit::Input,
            "the question is empty; write the question that the agents are to answer",
        ));
    }
    if let Some(out) = out
        && out.starts_with(run)
    {
        let message = format!(
            "{} lies in the run's folder, which an interview does not change; name another place",
            out.display()
        );
        return Err(Failure::new(Exit::Input, message));
    }
    let said = engine.interview(run, agents, at, question, &mut watch)?;
    watch.finish();
    let unwritten = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Disk, format!("{} cannot be written: {error}", path.display()))
    };
    let mut file = match out {
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            Some((path, opened.map_err(|error| unwritten(path, error))?))
        }
        None => None,
    };
    for said in &said {
        let row = row(said, question);
        let line = output::json(&row);
        if let Some((path, file)) = &mut file {
            writeln!(file, "{line}").map_err(|error| unwritten(path, error))?;
        }
        if json {
            print_line(&line);
            continue;
        }
        let simulated = if row.simulated { ", a simulated model" } else { "" };
        let ill = if row.outcome == "reply" { String::new() } else { format!(" ({})", row.outcome) };
        print_line(&format!(
            "agent {} before round {} ({}{simulated}){ill}:\n{}\n",
            row.agent, row.round, row.model, row.answer
        ));
    }
    if said.len() < agents.len() {
        note("stopped before all agents had answered");
        return Ok(Exit::Stopped);
    }
    Ok(Exit::Done)
}
