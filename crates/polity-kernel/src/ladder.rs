//! The ladder of a question that must end in a value: a reply in the form that was asked for, a reply whose form was mended, the question
//! put again with what was wrong, the declared default.
//!
//! The first two rungs are the driver's, where replies are read; the others are here, as straight-line code over the door of a turn or a
//! desk. So every try is an effect of its own: journaled before it is used, counted by the budget, never paid twice.
//! `docs/decisions/the-ladder-is-in-the-kernel.md`.

use crate::ask::{Hidden, Message, Request, Role, Step, Unanswered, Value};
use crate::door::{Ask, Door};
use std::sync::Arc;

/// Letters of a reply that a model is shown again.
const SHOWN: usize = 2_000;

/// A question that ends in a value whatever comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What is asked; its step is the ladder's.
    pub request: Request,
    /// What a simulated model may know of it.
    pub hidden: Option<Hidden>,
    /// How often it is put again at most.
    pub again: u8,
    /// What holds when nothing helps.
    pub default: Value,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// Its value.
    pub value: Value,
    /// Why it is the declared default, if so.
    pub defaulted: Option<Unanswered>,
}

impl Question {
    fn ask(&self, actor: u32, nth: u8) -> Ask {
        let step = Some(Step { nth, last: nth >= self.again });
        let request = Request { step, ..self.request.clone() };
        Ask { actor, request, hidden: self.hidden.clone(), default: Some(self.default.clone()) }
    }

    /// Shows the model what was wrong with its reply.
    fn show(&mut self, unanswered: &Unanswered) {
        let (raw, why) = match unanswered {
            Unanswered::Invalid { raw, why } => (raw.as_str(), why.as_str()),
            Unanswered::Refused(raw) => (raw.as_str(), "it declines to answer, and an answer is needed"),
            Unanswered::Failed(_) | Unanswered::Denied(_) => return,
        };
        let end = raw.char_indices().nth(SHOWN).map_or(raw.len(), |(end, _)| end);
        let messages = Arc::make_mut(&mut self.request.messages);
        let shown = raw.get(..end).map(str::trim).unwrap_or_default();
        if !shown.is_empty() {
            messages.push(Message::text(Role::Assistant, shown));
        }
        let words = format!("That reply can not be used: {why}. Reply again, in the form that was asked for.");
        messages.push(Message::text(Role::User, words));
    }
}

impl Unanswered {
    /// Whether putting the question once more may help; as [`crate::ask::Outcome::may_be_asked_again`].
    #[must_use]
    pub fn may_be_asked_again(&self) -> bool {
        matches!(self, Unanswered::Invalid { .. } | Unanswered::Refused(_))
    }
}

impl Door<'_> {
    /// Puts questions together, each with its ladder; what they end in comes in the order asked.
    pub async fn settle_all(&mut self, mut questions: Vec<(u32, Question)>) -> Vec<Settled> {
        let mut settled: Vec<Option<Settled>> = vec![None; questions.len()];
        let mut open: Vec<usize> = (0..questions.len()).collect();
        let mut nth = 0;
        while !open.is_empty() {
            let asks = open.iter().map(|i| questions[*i].1.ask(questions[*i].0, nth)).collect();
            let heard = self.ask_all(asks).await;
            let mut again = Vec::new();
            for (i, heard) in open.into_iter().zip(heard) {
                let question = &mut questions[i].1;
                match heard {
                    Ok(value) => settled[i] = Some(Settled { value, defaulted: None }),
                    Err(why) if why.may_be_asked_again() && nth < question.again => {
                        question.show(&why);
                        again.push(i);
                    }
                    Err(why) => {
                        settled[i] = Some(Settled { value: question.default.clone(), defaulted: Some(why) });
                    }
                }
            }
            open = again;
            nth += 1;
        }
        settled.into_iter().flatten().collect()
    }
}
