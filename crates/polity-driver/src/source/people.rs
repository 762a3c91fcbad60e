//! People beside models: their questions are written to the run's folder and stay open until answered or timed out. They use no
//! connection, so others wait for them only where the run's own order requires it.

use super::{Broken, FormChange, Notes, Source, failed};
use crate::people::{Given, Mailbox, Question, tally};
use polity_kernel::ask::{Answer, Effect, EffectId, TargetKind, Usage};
use polity_store::clock::now_ms;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// How often the folder is checked.
const LOOK: Duration = Duration::from_millis(50);

/// A question that waits for a person.
struct Open {
    effect: Effect,
    question: Question,
    due: Option<Instant>,
}

/// A source with people: it asks people itself, and passes everything else to its inner source.
pub struct WithPeople {
    inner: Box<dyn Source>,
    mailbox: Mailbox,
    run: String,
    timeout: Option<Duration>,
    notes: Notes,
    open: BTreeMap<EffectId, Open>,
    /// Questions held back during a pause.
    held: Vec<Effect>,
    paused: bool,
    looked: Option<Instant>,
    ready: Vec<Answer>,
    lost: Option<String>,
}

impl WithPeople {
    /// `timeout`: how long a question waits; `run`: the run's folder in words.
    #[must_use]
    pub fn new(inner: Box<dyn Source>, mailbox: Mailbox, run: String, timeout: Option<Duration>, notes: Notes) -> Self {
        WithPeople {
            inner,
            mailbox,
            run,
            timeout,
            notes,
            open: BTreeMap::new(),
            held: Vec::new(),
            paused: false,
            looked: None,
            ready: Vec::new(),
            lost: None,
        }
    }

    fn put(&mut self, effect: Effect) {
        let question = match self.mailbox.put(&effect, self.timeout) {
            Ok(question) => question,
            Err(error) => return self.give_up(&error),
        };
        let who = &question.who;
        self.notes.tell(&format!(
            "{who} is asked, and the run waits: `polity answer {}` shows the question and takes the answer",
            self.run
        ));
        let due = question.timeout_ms.map(|timeout| Instant::now() + left(timeout, question.put_ms, now_ms()));
        self.open.insert(effect.id, Open { effect, question, due });
        // It may have been answered while no process ran.
        self.looked = None;
    }

    fn give_up(&mut self, error: &io::Error) {
        self.lost.get_or_insert(format!(
            "the questions to people in {}/people cannot be read or written: {error}",
            self.run
        ));
    }

    /// Takes answers from the folder.
    fn look(&mut self) {
        if self.open.is_empty() || self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let ids: Vec<EffectId> = self.open.keys().copied().collect();
        for id in ids {
            let Some(Open { question, due, .. }) = self.open.get(&id) else { continue };
            let given = match self.mailbox.given(id) {
                Ok(None) if due.is_some_and(|due| due <= Instant::now()) => {
                    let waited = Duration::from_millis(question.timeout_ms.unwrap_or_default());
                    let why = format!("{} gave no answer within {} s", question.who, waited.as_secs_f64());
                    self.mailbox.time_up(id, why).map(Some)
                }
                given => given,
            };
            match given {
                Ok(None) => {}
                Ok(Some(given)) => self.take(id, given),
                Err(error) => return self.give_up(&error),
            }
        }
    }

    fn take(&mut self, id: EffectId, given: Given) {
        let Some(Open { effect, question, .. }) = self.open.remove(&id) else { return };
        let latency_ms = given.at_ms.saturating_sub(question.put_ms) as f64;
        let answer = failed(effect, String::new(), false);
        self.ready.push(Answer { outcome: given.outcome, usage: Usage { latency_ms, ..Usage::default() }, ..answer });
    }
}

/// The rest of a wait that began at `put`, by the system clock. Within a process a monotonic clock is used; only the time between
/// processes comes from the system clock. If that was set back, the wait restarts, and is no longer than before.
fn left(timeout_ms: u64, put_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(timeout_ms.saturating_sub(now_ms.saturating_sub(put_ms)))
}

impl Source for WithPeople {
    fn start(&mut self, effects: Vec<Effect>) {
        let (people, models): (Vec<Effect>, Vec<Effect>) =
            effects.into_iter().partition(|effect| effect.request.model.kind() == TargetKind::Human);
        if !models.is_empty() {
            self.inner.start(models);
        }
        match self.paused {
            true => self.held.extend(people),
            false => people.into_iter().for_each(|effect| self.put(effect)),
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.open.len() + self.held.len() + self.ready.len()
    }

    fn wait(&mut self, patience: Duration) -> Vec<Answer> {
        self.look();
        let mut answers = std::mem::take(&mut self.ready);
        let people = !self.open.is_empty() || !self.held.is_empty();
        let patience = match (answers.is_empty(), people) {
            (false, _) => Duration::ZERO,
            (true, true) => patience.min(LOOK),
            (true, false) => patience,
        };
        if self.inner.in_flight() > 0 {
            answers.extend(self.inner.wait(patience));
        } else if people && !patience.is_zero() {
            std::thread::sleep(patience);
        }
        answers
    }

    fn is_sated(&self) -> Option<bool> {
        self.inner.is_sated()
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn broken(&mut self) -> Vec<Broken> {
        self.inner.broken()
    }

    fn forms(&mut self) -> Vec<FormChange> {
        self.inner.forms()
    }

    fn hold(&mut self) {
        // Questions stay in the folder; a resumed run writes them again, and finds the answers.
        self.open.clear();
        self.held.clear();
        self.inner.hold();
    }

    fn connections(&mut self, most: usize) {
        self.paused = most == 0;
        self.inner.connections(most);
        if !self.paused {
            std::mem::take(&mut self.held).into_iter().for_each(|effect| self.put(effect));
        }
    }

    fn take_back(&mut self) -> Vec<Effect> {
        // Nothing is saved by taking back questions to people.
        self.inner.take_back()
    }

    fn lost(&self) -> Option<&str> {
        self.lost.as_deref().or(self.inner.lost())
    }

    fn reason(&self) -> String {
        let mut reasons = Vec::new();
        if !self.open.is_empty() {
            let who = tally(self.open.values().map(|open| open.question.who.as_str()));
            reasons.push(format!("waiting for {who} (polity answer {})", self.run));
        }
        if self.inner.in_flight() > 0 || self.open.is_empty() {
            reasons.push(self.inner.reason());
        }
        reasons.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_wait_survives_clocks_that_are_set() {
        let ms = Duration::from_millis;
        assert_eq!(left(1000, 50_000, 50_300), ms(700));
        assert_eq!(left(1000, 50_000, 60_000), ms(0));
        // Set back: at most the whole wait once more.
        assert_eq!(left(1000, 50_000, 1), ms(1000));
    }
}
