//! How straight-line code asks the outside and waits for answers.
//!
//! A turn is a pure function of its inputs and the answers so far. So nothing that waits is ever kept: the future is polled once
//! and dropped. When answers arrive, the turn runs again from its start with them. Suspending, resuming after a crash and replaying
//! are the same operation, exercised at every wait. Re-running costs the square of the number of sequential questions within one
//! turn; a method reduces that with checkpoints ([`crate::method::TeamContext::end_round`]).

use super::{Answer, AskError, Asker, Effect, EffectId, Question, Reply, Request};
use crate::Bug;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Maximum number of questions in a turn of an agent, or of a cohort on behalf of one. More are taken for an endless loop.
pub const MOST_QUESTIONS: u32 = 10_000;

/// The one way to ask models, tools and people, lent to agents in their turns, to cohorts, methods and worlds. It holds the answers
/// so far and the questions that are still open.
#[derive(Debug)]
pub struct Ask<'a> {
    item: u32,
    round: u32,
    asker: Asker,
    /// Sorted by id.
    answers: &'a [Answer],
    /// Lent, because most turns ask nothing: an unused handle costs nothing to make and to drop.
    book: &'a mut Book,
}

/// The questions asked through a handle. Empty between turns.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Next number per actor, in order of first use. A turn has one actor, a team a handful.
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

    /// Returns the number of an actor's next question.
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

impl<'a> Ask<'a> {
    /// Makes a handle for one turn; `answers` must be sorted by id.
    #[inline]
    #[must_use]
    pub(crate) fn new(asker: Asker, item: u32, round: u32, answers: &'a [Answer], book: &'a mut Book) -> Self {
        Ask { item, round, asker, answers, book }
    }

    /// Lends the same handle to other code in this turn.
    pub(crate) fn lend(&mut self) -> Ask<'_> {
        Ask { item: self.item, round: self.round, asker: self.asker, answers: self.answers, book: self.book }
    }

    /// Begins another round of the same item: question numbers start again from 0.
    pub fn set_round(&mut self, round: u32) {
        self.round = round;
        self.book.next.clear();
    }

    fn id(&self, asker: Asker, actor: u32, n: u32) -> EffectId {
        EffectId { item: self.item, round: self.round, actor, asker, n }
    }

    /// Returns the next question of an actor if it already has an answer. An earlier run of the same turn asked it, and this run
    /// will ask it again.
    pub fn answered_next(&self, actor: u32) -> Option<&'a Request> {
        let id = self.id(self.asker, actor, self.book.next(actor));
        let i = self.answers.binary_search_by_key(&id, |answer| answer.id).ok()?;
        self.answers.get(i).map(|answer| &answer.request)
    }

    /// Asks questions together, each on behalf of an actor, and waits for all of them. Answers are in the order of the questions.
    /// An unusable answer is an error, even if the question has a default.
    pub async fn ask_all(&mut self, questions: Vec<(u32, Question)>) -> Vec<Reply> {
        self.ask_all_for(self.asker, questions).await
    }

    /// Does the same for another asker of the same turn, with its own actors.
    pub(crate) async fn ask_all_for(&mut self, asker: Asker, questions: Vec<(u32, Question)>) -> Vec<Reply> {
        let mut heard: Vec<Option<Reply>> = vec![None; questions.len()];
        let mut open: Vec<(usize, (u32, Question))> = questions.into_iter().enumerate().collect();
        let mut nth = 0;
        while !open.is_empty() {
            let mut again = Vec::new();
            for (place, (actor, question)) in open {
                // Keep only a question that may be asked again.
                let kept = (nth < question.retries).then(|| question.clone());
                match (self.put(asker, actor, nth, question), kept) {
                    (Some(Err(why)), Some(mut question)) if why.may_be_asked_again() => {
                        question.show(&why);
                        again.push((place, (actor, question)));
                    }
                    (answer, _) => heard[place] = answer,
                }
            }
            if !self.book.wanted.is_empty() || self.book.bug.is_some() {
                std::future::pending::<()>().await;
            }
            open = again;
            nth += 1;
        }
        let unheard = || Err(AskError::Failed("no answer was recorded".into()));
        heard.into_iter().map(|heard| heard.unwrap_or_else(unheard)).collect()
    }

    /// Asks a question for the `nth` time; returns its answer, if there is one.
    fn put(&mut self, asker: Asker, actor: u32, nth: u8, question: Question) -> Option<Reply> {
        let step = question.step(nth);
        let Question { request, hidden, default, .. } = question;
        let request = Request { step, ..request };
        let n = self.book.number(actor);
        let id = self.id(asker, actor, n);
        match self.answers.binary_search_by_key(&id, |a| a.id) {
            Err(_) => {
                self.book.wanted.push(Effect { id, request, hidden, default });
                None
            }
            Ok(i) if self.answers[i].request == request => Some(self.answers[i].heard()),
            Ok(i) => {
                let journaled = Box::new(self.answers[i].request.clone());
                self.book.bug = Some(Bug::Mismatch { id, journaled, asked: Box::new(request) });
                None
            }
        }
    }

    /// Asks one question and waits for the answer.
    pub async fn ask(&mut self, actor: u32, question: impl Into<Question>) -> Reply {
        self.ask_for(self.asker, actor, question).await
    }

    /// Does the same for another asker of the same turn.
    pub(crate) async fn ask_for(&mut self, asker: Asker, actor: u32, question: impl Into<Question>) -> Reply {
        let mut heard = self.ask_all_for(asker, vec![(actor, question.into())]).await;
        heard.pop().unwrap_or_else(|| Err(AskError::Failed("no answer was recorded".into())))
    }

    /// Returns whether anything was asked in this round.
    pub(crate) fn has_asked(&self) -> bool {
        !self.book.next.is_empty()
    }

    /// Ends the turn's run; returns the open questions, or the bug that was found.
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

/// Polls a turn's future once. `None`: it waits for answers.
#[inline(always)]
pub(crate) fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
