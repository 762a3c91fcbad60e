//! `polity calls`: requests to models and their answers.

use super::failure::{Exit, Failure};
use super::output::{indented, json, note, print_text};
use super::several::{Member, several};
use polity_driver::calls::Call;
use polity_driver::run::{Shown, Texts, Wanted, calls as recorded};
use polity_store::DriveError;
use polity_store::disk::RealDisk;
use polity_store::printable::on_one_line;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Maximum characters of a prompt or an answer, unless full texts are requested.
const LONGEST: usize = 600;

pub fn calls(dir: &Path, of: Option<&str>, wanted: &Wanted, as_json: bool, full: bool) -> Result<Exit, Failure> {
    // Programs get full texts: truncated text is not data.
    let texts = if as_json || full { Texts::Whole } else { Texts::Cut(LONGEST) };
    let found = match several(dir, of)? {
        None => {
            let found = recorded(Arc::new(RealDisk), dir, wanted, texts)?;
            found.iter().for_each(|call| show(call, None, as_json));
            found.len()
        }
        Some(members) => of_several(&members, wanted, texts, as_json)?,
    };
    if found == 0 {
        note("no such call so far");
    }
    Ok(Exit::Done)
}

/// Shows the calls of several runs, one run after the other; returns their number.
fn of_several(members: &[Member], wanted: &Wanted, texts: Texts, as_json: bool) -> Result<usize, Failure> {
    let mut found = 0;
    let mut refused = None;
    let mut fits = false;
    for member in members {
        let left = wanted.limit.map(|limit| limit.saturating_sub(found));
        if left == Some(0) {
            break;
        }
        let calls = recorded(Arc::new(RealDisk), &member.folder, &Wanted { limit: left, ..wanted.clone() }, texts);
        let calls = match calls {
            // Not every run has every member, item and purpose.
            Err(error @ DriveError::Input(_)) => {
                refused.get_or_insert(error);
                continue;
            }
            calls => calls?,
        };
        fits = true;
        if !as_json && !calls.is_empty() {
            print_text(&format!("### {} ({})\n\n", on_one_line(&member.name), on_one_line(&member.words())));
        }
        calls.iter().for_each(|call| show(call, Some(&member.name), as_json));
        found += calls.len();
    }
    match refused {
        Some(error) if !fits => Err(error.into()),
        _ => Ok(found),
    }
}

/// Prints a call; `run`: the name of its run, if there are several.
fn show(shown: &Shown, run: Option<&str>, as_json: bool) {
    if !as_json {
        print_text(&listing(shown));
        return;
    }
    let line = match run {
        None => json(&shown.call),
        Some(run) => json(&InRun { run, call: &shown.call }),
    };
    print_text(&(line + "\n"));
}

/// A call with the name of its run.
#[derive(Serialize)]
struct InRun<'a> {
    run: &'a str,
    #[serde(flatten)]
    call: &'a Call,
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
    facts.push(match (call.shared, call.cost_usd) {
        (true, _) => "shared, at no cost".into(),
        (false, Some(usd)) => format!("${usd:.6}"),
        (false, None) => "cost not known".into(),
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
