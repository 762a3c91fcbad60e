//! Questions to people, in the folder of a run: `people/ID.question.json`, and beside it, once answered, `people/ID.answer.json`.
//!
//! The run writes a question once. The first answer counts: from a command, the terminal, HTTP, or the run itself on timeout. The answer
//! file decides that: it is created under a lock, checked and durable, and never changes. Both files stay, so that a restarted process
//! finds answers given meanwhile, and late answers are refused. The final authority is the journal, where the run writes an answer before
//! use.

mod form;
mod mailbox;
mod of_run;
mod serve;

pub use form::{LONGEST_ANSWER, Words, form};
pub(crate) use mailbox::tally;
pub use mailbox::{Given, Mailbox, Question, Refused, name};
pub use of_run::of_run;
pub use serve::Serving;
