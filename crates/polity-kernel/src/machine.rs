//! The machine that a driver runs: it asks, reports rounds, and ends.

use crate::Bug;
use crate::ask::{Answer, Effect};
use crate::digest::Digest;
use crate::layout::Frame;
use crate::saved::Sink;
use serde::{Deserialize, Serialize};

/// One step of a machine.
#[derive(Debug)]
pub struct Step {
    /// Effects to begin now.
    pub start: Vec<Effect>,
    /// What the machine does next.
    pub then: Then,
}

/// What follows a step.
#[derive(Debug)]
pub enum Then {
    /// There is more to do before any wait. Poll again, with whatever answers have arrived. The effects so far may be started
    /// meanwhile.
    More,
    /// Nothing happens until more answers arrive.
    Wait,
    /// The machine is one of several processes that compute a society. Give these frames to the others, one to each, and what they
    /// send to [`Machine::receive`]; then poll again, without answers.
    Exchange(Vec<Frame>),
    /// A round is complete. Poll again, with whatever answers have arrived.
    Round(Box<RoundReport>),
    /// The machine has ended.
    Done(Outcome),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rounds completed.
    pub rounds: u32,
    /// Why it ended before the planned number of rounds, if it did.
    pub reason: Option<String>,
    /// The digest of the whole run.
    pub digest: Digest,
}

/// The verdict on one item of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemReport {
    /// Row of the data set.
    pub item: u32,
    /// The team's answer; `None` when it has none.
    pub answer: Option<String>,
    /// The right answer, if the data set names one.
    pub gold: Option<String>,
    /// The final answer that was extracted from it.
    pub extracted: Option<String>,
    /// Whether it is right.
    pub correct: Option<bool>,
    /// The output of its tests, if any.
    pub note: Option<String>,
    /// The score of a checker, from 0 to 1.
    pub points: Option<f64>,
    /// Rounds the method took.
    pub rounds: u32,
    /// Questions asked.
    pub asks: u32,
    /// The method's measurements, in the order of its quantities; `None` where there is none.
    pub measured: Vec<Option<f64>>,
}

/// The summary of a round.
#[derive(Clone, Debug, Default)]
pub struct RoundReport {
    /// The round.
    pub round: u32,
    /// The sum over its rows.
    pub sum: Digest,
    /// The chain up to and with this round.
    pub chain: Digest,
    /// Agents alive when it began (in an evaluation: items under way).
    pub agents: u32,
    /// Number of acts. The acts themselves stay with the machine until its next round.
    pub acts: u64,
    /// Number of messages sent.
    pub messages: u64,
    /// Results of metrics and the world's scalars: (name, value).
    pub metrics: Vec<(String, f64)>,
    /// Children born: (child, parent).
    pub births: Vec<(u32, u32)>,
    /// Agents that died.
    pub deaths: Vec<u32>,
    /// Verdicts reached.
    pub items: Vec<ItemReport>,
}

/// A deterministic machine: its steps are a function of its scenario and of the answers it gets.
pub trait Machine: Send {
    /// Takes answers (in any order, any number, even none) and continues.
    fn poll(&mut self, answers: Vec<Answer>) -> Result<Step, Bug>;
    /// Takes one frame from each other process, after [`Then::Exchange`].
    ///
    /// # Errors
    /// Frames for which the machine does not wait.
    fn receive(&mut self, frames: Vec<Frame>) -> Result<(), Bug> {
        Err(Bug::Transport(format!("{} frames for a machine that no other process helps", frames.len())))
    }
    /// Saves everything needed to continue from the barrier between two rounds, as canonical bytes: the same bytes for the same
    /// state. Call it only after a [`Then::Round`].
    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug>;
    /// Returns the bytes that [`Machine::save`] writes, all at once.
    fn snapshot(&self) -> Result<Vec<u8>, Bug> {
        let mut bytes = Vec::new();
        self.save(&mut bytes)?;
        Ok(bytes)
    }
    /// Returns the first round after a snapshot taken now.
    fn next_round(&self) -> u32;
    /// Returns the effects that the machine waits for. A driver that restores a snapshot starts them.
    fn open_effects(&self) -> Vec<Effect>;
}
