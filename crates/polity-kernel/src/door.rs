//! How straight-line code waits for the outside.
//!
//! A turn is a pure function of its inputs and the answers so far. So nothing that waits is ever kept: the future is polled once
//! and dropped, and when answers have come the turn is run again from its start with them. Suspending, resuming after a crash and
//! replaying are one and the same thing, exercised at every wait. Re-running costs the square of the number of questions that
//! follow each other within one turn; a method cuts that short with checkpoints ([`crate::method::Desk::end_round`]).

use crate::Bug;
use crate::ask::{Answer, Asker, Effect, EffectId, Heard, Hidden, Request, Unanswered, Value};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// How many questions a turn of an agent, or a cohort in the name of one, puts at most: more are a loop without an end.
pub const MOST_QUESTIONS: u32 = 10_000;

/// One question on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Who asks: the agent itself, or a member of a team.
    pub actor: u32,
    /// What is asked.
    pub request: Request,
    /// What a simulated model may know of it.
    pub hidden: Option<Hidden>,
    /// What holds without an answer, where that is declared.
    pub default: Option<Value>,
}

/// The answers that a turn has, and the questions that it still has to put.
#[derive(Debug)]
pub struct Door<'a> {
    item: u32,
    round: u32,
    asker: Asker,
    /// Sorted by id.
    answers: &'a [Answer],
    /// Lent, because most turns never knock: a door that nobody uses costs nothing to make and to drop.
    book: &'a mut Book,
}

/// What has gone through a door. Empty between turns.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Next number per actor, in order of first use; a turn has one actor, a team a handful.
    next: Vec<(u32, u32)>,
    wanted: Vec<Effect>,
    bug: Option<Bug>,
}

impl Book {
    #[cold]
    pub fn close(&mut self) -> Result<Vec<Effect>, Bug> {
        let Book { wanted, bug, .. } = std::mem::take(self);
        bug.map_or(Ok(wanted), Err)
    }

    /// The number of an actor's next question.
    fn next(&self, actor: u32) -> u32 {
        self.next.iter().find(|(a, _)| *a == actor).map_or(0, |(_, n)| n + 1)
    }

    fn number(&mut self, actor: u32) -> u32 {
        if let Some((_, n)) = self.next.iter_mut().find(|(a, _)| *a == actor) {
            *n += 1;
            return *n;
        }
        self.next.push((actor, 0));
        0
    }
}

impl<'a> Door<'a> {
    /// A door for one turn; `answers` must be sorted by id.
    #[inline]
    #[must_use]
    pub(crate) fn new(asker: Asker, item: u32, round: u32, answers: &'a [Answer], book: &'a mut Book) -> Self {
        Door { item, round, asker, answers, book }
    }

    /// Begins another round of the same item: questions are numbered anew.
    pub fn set_round(&mut self, round: u32) {
        self.round = round;
        self.book.next.clear();
    }

    fn id(&self, asker: Asker, actor: u32, n: u32) -> EffectId {
        EffectId { item: self.item, round: self.round, actor, asker, n }
    }

    /// The next question of an actor, if it is answered: an earlier run of the same turn put it, and this one will.
    pub fn answered_next(&self, actor: u32) -> Option<&'a Request> {
        let id = self.id(self.asker, actor, self.book.next(actor));
        let i = self.answers.binary_search_by_key(&id, |answer| answer.id).ok()?;
        self.answers.get(i).map(|answer| &answer.request)
    }

    /// Puts questions together and waits for all of them; the answers come in the order asked.
    pub async fn ask_all(&mut self, asks: Vec<Ask>) -> Vec<Heard> {
        self.ask_for(self.asker, asks).await
    }

    /// The same for another asker of the same turn, whose actors are others.
    pub(crate) async fn ask_for(&mut self, asker: Asker, asks: Vec<Ask>) -> Vec<Heard> {
        let mut heard = Vec::with_capacity(asks.len());
        for Ask { actor, request, hidden, default } in asks {
            let n = self.book.number(actor);
            let id = self.id(asker, actor, n);
            match self.answers.binary_search_by_key(&id, |a| a.id) {
                Err(_) => self.book.wanted.push(Effect { id, request, hidden, default }),
                Ok(i) if self.answers[i].request == request => heard.push(self.answers[i].heard()),
                Ok(i) => {
                    let journaled = Box::new(self.answers[i].request.clone());
                    self.book.bug = Some(Bug::Mismatch { id, journaled, asked: Box::new(request) });
                }
            }
        }
        if self.book.wanted.is_empty() && self.book.bug.is_none() { heard } else { std::future::pending().await }
    }

    /// Puts one question and waits for the answer.
    pub async fn ask(&mut self, ask: Ask) -> Heard {
        one(self.ask_all(vec![ask]).await)
    }

    /// Whether anything was asked in this round.
    pub(crate) fn has_asked(&self) -> bool {
        !self.book.next.is_empty()
    }

    /// Ends the turn's run: the questions still open, or the bug that was met.
    pub fn close(self) -> Result<Vec<Effect>, Bug> {
        self.book.close()
    }

    /// Empties the book after a turn that is complete.
    #[inline(always)]
    pub(crate) fn forget(self) {
        if !self.book.next.is_empty() {
            *self.book = Book::default();
        }
    }
}

/// The answer to the only question of several.
pub(crate) fn one(mut heard: Vec<Heard>) -> Heard {
    heard.pop().unwrap_or_else(|| Err(Unanswered::Failed("no answer was recorded".into())))
}

/// Polls a turn's future once. `None`: it waits for answers.
#[inline(always)]
pub(crate) fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
