//! An orchestrator's books (Fourney et al., "Magentic-One", 2024): a task ledger of facts and plan, a progress ledger of every step, and when to plan
//! anew.

use super::{Stand, talk};
use polity_kernel::ask::{Part, Task, Value, Want};
use polity_kernel::method::{Brief, Desk};
use serde::{Deserialize, Serialize};

const FACTS: &str = include_str!("prompts/facts.md");
const PLAN: &str = include_str!("prompts/plan.md");
const PROGRESS: &str = include_str!("prompts/progress.md");

/// What is known, and what is to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// Facts given, to be looked up, to be derived, and guesses.
    pub facts: String,
    /// Steps, and who takes them.
    pub plan: String,
}

/// Where things stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether the last answer settles the question.
    pub satisfied: bool,
    /// Whether the team goes round in circles.
    pub looping: bool,
    /// Whether it gets on.
    pub progressing: bool,
    /// Place in the list of those who may be called.
    pub next: usize,
    /// What they are to do.
    pub order: String,
}

/// Steps without progress so far: one more each time the team loops or does not get on, one fewer otherwise.
#[must_use]
pub fn stalls(before: u32, progress: &Progress) -> u32 {
    match progress.looping || !progress.progressing {
        true => before + 1,
        false => before.saturating_sub(1),
    }
}

impl Tasks {
    /// As it is shown.
    #[must_use]
    pub fn shown(&self) -> Part {
        Part::Text(format!("What is known:\n{}\n\nThe plan:\n{}", self.facts, self.plan))
    }
}

/// The orchestrator writes its task ledger; `before` is the one that led nowhere, if there is one.
pub async fn plan(desk: &mut Desk<'_>, by: usize, can: &str, before: Option<&Tasks>, heard: &[Stand]) -> Tasks {
    let mut shown: Vec<Part> = before.map(Tasks::shown).into_iter().collect();
    shown.extend(heard.iter().map(Stand::said));
    let facts = super::write(desk, by, &shown, FACTS).await.unwrap_or_default();
    shown.push(Part::Text(format!("What is known:\n{facts}\n\nThe team:\n{can}")));
    let plan = super::write(desk, by, &shown, PLAN).await.unwrap_or_default();
    Tasks { facts, plan }
}

/// The orchestrator looks where things stand and says who does what next. `None`: it gave no answer that can be read.
pub async fn progress(
    desk: &mut Desk<'_>,
    by: usize,
    tasks: &Tasks,
    who: &[String],
    heard: &[Stand],
) -> Option<Progress> {
    let yes = || Want::Choice(vec!["yes".into(), "no".into()]);
    let want = Want::Record(vec![
        ("satisfied".into(), yes()),
        ("looping".into(), yes()),
        ("progressing".into(), yes()),
        ("next".into(), Want::Choice(who.to_vec())),
        ("order".into(), Want::Text),
    ]);
    let mut shown = vec![tasks.shown()];
    shown.extend(heard.iter().map(Stand::said));
    let brief = Brief::new(by, talk(desk, by, &shown, PROGRESS), want).task(Task::Check);
    let value = desk.ask(brief).await.ok()?;
    let choice = |i: usize| if let Some(Value::Choice(c)) = value.field(i) { Some(*c as usize) } else { None };
    Some(Progress {
        satisfied: choice(0)? == 0,
        looping: choice(1)? == 0,
        progressing: choice(2)? == 0,
        next: choice(3)?,
        order: value.field(4)?.as_text()?.to_owned(),
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
