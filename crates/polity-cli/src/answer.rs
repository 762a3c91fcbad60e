//! Questions to people: `polity answer`, and the terminal and the port of a run that asks.

use super::args::Listening;
use super::failure::{Exit, Failure};
use super::output::{indented, json, news, note, print_line, print_text};
use super::progress;
use indicatif::ProgressDrawTarget;
use polity_driver::control::under_way;
use polity_driver::people::{Mailbox, Question, Refused, Serving, Words, of_run};
use polity_store::disk::RealDisk;
use polity_store::printable::on_one_line;
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a terminal checks for a question.
const LOOK: Duration = Duration::from_millis(100);
/// The variable with your own token for `--listen`.
const TOKEN: &str = "POLITY_TOKEN";

fn refused(error: &Refused) -> Failure {
    let exit = if matches!(error, Refused::Disk(_)) { Exit::Disk } else { Exit::Input };
    Failure::new(exit, error.to_string())
}

pub fn answer(run: &Path, id: Option<&str>, values: &[String], as_json: bool) -> Result<Exit, Failure> {
    let mailbox = of_run(Arc::new(RealDisk), run)?;
    let Some(id) = id else { return list(run, &mailbox, as_json) };
    let typed;
    let values = match values {
        [] => {
            let question = mailbox.question(id).map_err(|error| refused(&error))?;
            note(&listing(&question));
            typed = read_values(&question, &mut std::io::stdin().lock())?
                .ok_or_else(|| Failure::new(Exit::Input, "no answer was given"))?;
            typed.as_slice()
        }
        values => values,
    };
    let (question, value) =
        mailbox.answer(id, &Words::Typed(values), "polity answer").map_err(|error| refused(&error))?;
    let later = match under_way(&RealDisk, run) {
        true => String::new(),
        false => format!("; no process is working on the run; `polity resume {}` continues it", run.display()),
    };
    note(&format!("answer accepted for {}{later}", question.who));
    if as_json {
        print_line(&json(&json!({ "id": question.id, "taken": value })));
    }
    Ok(Exit::Done)
}

fn list(run: &Path, mailbox: &Mailbox, as_json: bool) -> Result<Exit, Failure> {
    let pending = mailbox.pending().map_err(|error| Failure::new(Exit::Disk, error.to_string()))?;
    if as_json {
        print_line(&json(&pending));
        return Ok(Exit::Done);
    }
    pending.iter().for_each(|question| print_text(&listing(question)));
    note(&match pending.first() {
        None => "there are no open questions".to_string(),
        Some(first) => format!("answer with: polity answer {} {} VALUE", run.display(), first.id),
    });
    Ok(Exit::Done)
}

/// Formats a question for people.
fn listing(question: &Question) -> String {
    let Question { id, who, purpose, prompt, form, default, .. } = question;
    let mut head = vec![id.as_str(), who, purpose];
    head.retain(|part| !part.is_empty());
    let mut out = format!("== {}\n{}", on_one_line(&head.join(" | ")), indented(prompt));
    out.push_str(&format!("   -> expected: {}\n", on_one_line(form)));
    out.push_str(&match question.timeout_ms {
        Some(ms) => {
            format!(
                "   -> without an answer within {} s: {}\n",
                Duration::from_millis(ms).as_secs_f64(),
                on_one_line(default)
            )
        }
        None => "   -> there is no time limit: the run waits for the answer\n".into(),
    });
    out
}

/// Reads an answer, one value per line; `None` at the end of input.
fn read_values(question: &Question, input: &mut dyn BufRead) -> Result<Option<Vec<String>>, Failure> {
    let fields = question.fields().map_err(|why| Failure::new(Exit::Folder, format!("{}: {why}", question.id)))?;
    let mut values = Vec::new();
    for (name, form) in &fields {
        if fields.len() > 1 {
            note(&on_one_line(&format!("{name} ({form}):")));
        }
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => values.push(line.trim().to_owned()),
        }
    }
    Ok(Some(values))
}

/// The ways to answer a run in this process; closed on drop.
pub struct Doors {
    _serving: Option<Serving>,
}

/// Opens them: the requested port, and the terminal if there is one.
pub fn open(run: &Path, listening: Listening, bar: &progress::Bar) -> Result<Doors, Failure> {
    let mailbox = Mailbox::of(Arc::new(RealDisk), run);
    let serve = |address| -> Result<Serving, Failure> {
        let own = std::env::var(TOKEN).ok();
        let shown = own.is_none();
        let serving = Serving::start(mailbox.clone(), address, own)
            .map_err(|why| Failure::new(Exit::Input, format!("--listen: {why}")))?;
        let token = if shown { serving.token() } else { "the token in POLITY_TOKEN" };
        note(&format!(
            "people can answer at {}/questions, with the header Authorization: Bearer {token}",
            serving.url()
        ));
        Ok(serving)
    };
    let serving = listening.listen.map(serve).transpose()?;
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let bar = bar.drawn();
        // It ends with the process: a half-typed line cannot be interrupted.
        std::thread::spawn(move || {
            let show = |shown: bool| {
                bar.set_draw_target(if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
            };
            ask_here(&mailbox, &mut std::io::stdin().lock(), &show);
        });
    }
    Ok(Doors { _serving: serving })
}

/// Asks on the terminal, one question after the other, until its input ends. `show`: whether a bar may be drawn.
fn ask_here(mailbox: &Mailbox, input: &mut dyn BufRead, show: &dyn Fn(bool)) {
    loop {
        let Some(question) = mailbox.pending().ok().and_then(|pending| pending.into_iter().next()) else {
            std::thread::sleep(LOOK);
            continue;
        };
        show(false);
        news(&listing(&question));
        let values = read_values(&question, input);
        show(true);
        match values {
            Ok(Some(values)) => match mailbox.answer(&question.id, &Words::Typed(&values), "the terminal") {
                Ok(_) => {}
                Err(error) => news(&on_one_line(&error.to_string())),
            },
            Ok(None) => return news("this terminal asks no more questions; use `polity answer` to answer them"),
            Err(error) => return news(&error.message),
        }
    }
}
