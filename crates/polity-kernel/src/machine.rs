//! What a driver drives: a machine that asks, reports rounds, and ends.

use crate::Bug;
use crate::ask::{Answer, Effect};
use crate::digest::Digest;
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
    /// There is more to do before anybody is waited for; poll again, with whatever answers there are. What was asked so far may be under
    /// way meanwhile.
    More,
    /// Nothing moves before more answers come.
    Wait,
    /// A round is complete; poll again, with whatever answers there are.
    Round(Box<RoundReport>),
    /// The machine has ended.
    Done(Outcome),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rounds completed.
    pub rounds: u32,
    /// Why before the planned number of rounds, if so.
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
    /// The right answer, where the data set names one.
    pub gold: Option<String>,
    /// What stands in the answer for the answer itself.
    pub extracted: Option<String>,
    /// Whether it is right.
    pub correct: Option<bool>,
    /// What its tests said, where there are tests.
    pub note: Option<String>,
    /// Rounds the method took.
    pub rounds: u32,
    /// Questions asked.
    pub asks: u32,
    /// What the method has measured of it, in the order of its quantities; `None` where it has not.
    pub measured: Vec<Option<f64>>,
}

/// What a round did.
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
    /// Number of acts; the acts themselves lie with the machine until its next round.
    pub acts: u64,
    /// Number of letters sent.
    pub letters: u64,
    /// Results of metrics and the world's scalars: (name, value).
    pub metrics: Vec<(String, f64)>,
    /// Children born: (child, parent).
    pub births: Vec<(u32, u32)>,
    /// Agents that died.
    pub deaths: Vec<u32>,
    /// Verdicts reached.
    pub items: Vec<ItemReport>,
}

/// A deterministic machine: its steps are a function of its scenario and the answers it is given.
pub trait Machine: Send {
    /// Takes answers in (in any order, as few as one, or none) and moves on.
    fn poll(&mut self, answers: Vec<Answer>) -> Result<Step, Bug>;
    /// Saves everything needed to go on from the barrier between two rounds: its canonical bytes, the same for the same state. Call it only
    /// after a [`Then::Round`].
    fn save(&self, to: &mut dyn Sink) -> Result<(), Bug>;
    /// The bytes that [`Machine::save`] hands on, all at once.
    fn snapshot(&self) -> Result<Vec<u8>, Bug> {
        let mut bytes = Vec::new();
        self.save(&mut bytes)?;
        Ok(bytes)
    }
    /// The round that a snapshot taken now would begin with.
    fn next_round(&self) -> u32;
    /// The effects that the machine waits for; a driver that restores a snapshot begins them.
    fn open_effects(&self) -> Vec<Effect>;
}
