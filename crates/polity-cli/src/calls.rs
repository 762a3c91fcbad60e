//! `polity calls`: requests to models and their answers.

use super::failure::{Exit, Failure};
use super::output::{indented, json, note, print_text};
use polity_driver::calls::Call;
use polity_driver::run::{Shown, Texts, Wanted, calls as recorded};
use polity_store::disk::RealDisk;
use polity_store::printable::on_one_line;
use std::path::Path;
use std::sync::Arc;

/// Maximum characters of a prompt or an answer, unless full texts are requested.
const LONGEST: usize = 600;

pub fn calls(run: &Path, wanted: &Wanted, as_json: bool, full: bool) -> Result<Exit, Failure> {
    // Programs get full texts: truncated text is not data.
    let texts = if as_json || full { Texts::Whole } else { Texts::Cut(LONGEST) };
    let found = recorded(Arc::new(RealDisk), run, wanted, texts)?;
    for shown in &found {
        print_text(&if as_json { json(&shown.call) + "\n" } else { listing(shown) });
    }
    if found.is_empty() {
        note("no such call so far");
    }
    Ok(Exit::Done)
}

/// Formats a call for people.
fn listing(Shown { call, unfit, .. }: &Shown) -> String {
    let Call { round, agent, n, model, outcome, resolution, attempt, retries, .. } = call;
    let mut place = call.item.map_or(String::new(), |item| format!("item {item}, "));
    place.push_str(&format!("round {round}, agent {agent}, question {n}"));
    let mut head = vec![place];
    if !call.purpose.is_empty() {
        head.push(call.purpose.clone());
    }
    head.push(model.clone());
    head.push(if outcome == resolution { (*resolution).into() } else { format!("{outcome}: {resolution}") });
    let mut facts = vec![format!("{} tokens in, {} out", call.tokens_in, call.tokens_out)];
    for (tokens, what) in [(call.tokens_cached, "cached"), (call.tokens_thinking, "thinking")] {
        if tokens > 0 {
            facts.push(format!("{tokens} {what}"));
        }
    }
    facts.push(match call.shared {
        true => "shared, at no cost".into(),
        false => format!("${:.6}", call.cost_usd),
    });
    facts.push(format!("{:.0} ms", call.latency_ms));
    if *attempt > 0 {
        facts.push(format!("asked again (repeat {attempt})"));
    }
    if *retries > 0 {
        facts.push(format!("after {retries} failed tries"));
    }
    let mut out = format!("== {}\n   {}\n", on_one_line(&head.join(" | ")), facts.join(", "));
    out.push_str(&indented(&call.prompt));
    if !call.reasoning.is_empty() {
        out.push_str("   -> reasoning\n");
        out.push_str(&indented(&call.reasoning));
    }
    out.push_str("   -> answer\n");
    out.push_str(&indented(&call.answer));
    if let Some(why) = unfit {
        out.push_str(&format!("   -> the answer does not fit: {}\n", on_one_line(why)));
    }
    out.push('\n');
    out
}
