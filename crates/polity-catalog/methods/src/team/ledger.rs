//! An orchestrator's ledgers (Fourney et al., "Magentic-One", 2024): a task ledger of facts and plan, a progress ledger for every step,
//! and when to replan.

use super::{Stand, talk};
use polity_kernel::ask::{Part, ResponseFormat, Task, Value};
use polity_kernel::method::{Brief, Prompt, TeamContext};
use serde::{Deserialize, Serialize};

/// Asks the leader for what is known and what has to be found out.
pub const FACTS: Prompt = Prompt::new(
    "facts",
    "asks the leader for what is known and what has to be found out",
    include_str!("prompts/facts.md"),
);
/// Asks the leader for a plan.
pub const PLAN: Prompt = Prompt::new("plan", "asks the leader for a plan", include_str!("prompts/plan.md"));
/// Asks the leader where things stand and who is next.
pub const PROGRESS: Prompt =
    Prompt::new("progress", "asks the leader where things stand and who is next", include_str!("prompts/progress.md"));

/// How the ledger is shown.
pub const LEDGER: Prompt = Prompt::new(
    "ledger",
    "shows what is known and the plan to whoever works on",
    "What is known:\n{{ facts }}\n\nThe plan:\n{{ plan }}",
)
.must_hold(&["facts", "plan"]);
/// What the leader plans with.
pub const TEAM: Prompt = Prompt::new(
    "team",
    "shows the leader what is known and who is in the team, before it plans",
    "What is known:\n{{ facts }}\n\nThe team:\n{{ team }}",
)
.must_hold(&["facts", "team"]);
/// How orders are shown.
pub const ORDER: Prompt =
    Prompt::new("order", "shows an earlier order to all", "Order to {{ to }}: {{ order }}").must_hold(&["to", "order"]);

/// The task ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// Facts given, to be looked up, to be derived, and guesses.
    pub facts: String,
    /// Steps, and who does them.
    pub plan: String,
}

/// The progress ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether the last answer settles the question.
    pub satisfied: bool,
    /// Whether the team is looping.
    pub looping: bool,
    /// Whether it makes progress.
    pub progressing: bool,
    /// Index of the next worker.
    pub next: usize,
    /// Its instruction.
    pub order: String,
}

/// An entry of the thread, which everybody hears: an order of the orchestrator, or an answer to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// What a member was told to do.
    Order {
        /// The member's name.
        to: String,
        /// The order.
        order: String,
    },
    /// What a member answered.
    Answer(Stand),
}

impl Entry {
    fn shown(&self, context: &TeamContext<'_>) -> Part {
        match self {
            Entry::Order { to, order } => Part::Text(context.filled(&ORDER, &[("to", to), ("order", order)])),
            Entry::Answer(stand) => stand.said(),
        }
    }

    /// Formats a thread for a prompt.
    #[must_use]
    pub fn all(context: &TeamContext<'_>, thread: &[Entry]) -> Vec<Part> {
        thread.iter().map(|entry| entry.shown(context)).collect()
    }
}

/// Returns the number of steps without progress: plus one if the team loops or makes no progress, else minus one.
#[must_use]
pub fn stalls(before: u32, progress: &Progress) -> u32 {
    match progress.looping || !progress.progressing {
        true => before + 1,
        false => before.saturating_sub(1),
    }
}

impl Tasks {
    /// Formats the ledger for a prompt.
    #[must_use]
    pub fn shown(&self, context: &TeamContext<'_>) -> Part {
        Part::Text(context.filled(&LEDGER, &[("facts", &self.facts), ("plan", &self.plan)]))
    }
}

/// The orchestrator writes its task ledger; `before` is the previous one that failed, if any.
pub async fn plan(
    context: &mut TeamContext<'_>,
    by: usize,
    can: &str,
    before: Option<&Tasks>,
    thread: &[Entry],
) -> Tasks {
    let mut shown: Vec<Part> = before.map(|tasks| tasks.shown(context)).into_iter().collect();
    shown.extend(Entry::all(context, thread));
    let facts = super::write(context, by, &shown, FACTS).await.unwrap_or_default();
    shown.push(Part::Text(context.filled(&TEAM, &[("facts", &facts), ("team", can)])));
    let plan = super::write(context, by, &shown, PLAN).await.unwrap_or_default();
    Tasks { facts, plan }
}

/// The orchestrator assesses the progress and chooses who does what next. `None`: it gave no readable answer.
pub async fn progress(
    context: &mut TeamContext<'_>,
    by: usize,
    tasks: &Tasks,
    who: &[String],
    thread: &[Entry],
) -> Option<Progress> {
    // Every entry has its reason.
    let entry = |name: &str, answer: ResponseFormat| {
        let fields = vec![("answer".into(), answer), ("reason".into(), ResponseFormat::Text)];
        (name.to_owned(), ResponseFormat::Record(fields))
    };
    let yes = || ResponseFormat::Choice(vec!["yes".into(), "no".into()]);
    let response_format = ResponseFormat::Record(vec![
        entry("satisfied", yes()),
        entry("looping", yes()),
        entry("progressing", yes()),
        entry("next", ResponseFormat::Choice(who.to_vec())),
        entry("order", ResponseFormat::Text),
    ]);
    let mut shown = vec![tasks.shown(context)];
    shown.extend(Entry::all(context, thread));
    let brief = Brief::new(by, talk(context, by, &shown, PROGRESS), response_format).task(Task::Check);
    let value = context.ask(brief).await.ok()?;
    let answer = |i: usize| value.field(i)?.field(0);
    let choice = |i: usize| if let Some(Value::Choice(c)) = answer(i) { Some(*c as usize) } else { None };
    Some(Progress {
        satisfied: choice(0)? == 0,
        looping: choice(1)? == 0,
        progressing: choice(2)? == 0,
        next: choice(3)?,
        order: answer(4)?.as_text()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_rise_and_fall() {
        let step =
            |looping, progressing| Progress { satisfied: false, looping, progressing, next: 0, order: String::new() };
        assert_eq!(stalls(0, &step(false, true)), 0);
        assert_eq!(stalls(0, &step(true, true)), 1);
        assert_eq!(stalls(1, &step(false, false)), 2);
        assert_eq!(stalls(2, &step(false, true)), 1);
    }
}
