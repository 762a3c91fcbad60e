//! A turn: what an agent sees, asks and does.

use super::{Fault, Person, SharedContext};
use crate::ask::schema::typed;
use crate::ask::{Ask, AskError, Question, Reply, Request, ResponseFormat};
use crate::cohort::SharedBox;
use crate::digest::{Kind, RowHash};
use crate::interface::{Action, Actions, Observation};
use crate::items::Item;
use crate::messages::{Arena, Inbox, LONGEST_TEXT, LONGEST_VECTOR};
use crate::method::{Team, Verdict};
use crate::rng::Draws;
use crate::topology::Topology;
use crate::{AgentId, Plain};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug)]
pub(super) enum Address {
    One(AgentId),
    Neighbours,
}

#[derive(Debug)]
pub(super) enum Words {
    Number(f64),
    Text(String),
    Record(String),
    Vector(Vec<f64>),
}

#[derive(Debug)]
pub(super) struct Post {
    pub(super) to: Address,
    pub(super) channel: u16,
    pub(super) words: Words,
}

/// An agent's turn: its observation and its actions.
#[derive(Debug)]
pub struct Turn<'a> {
    /// Who acts.
    pub who: AgentId,
    /// The round in which the turn began.
    pub round: u32,
    /// What the world shows.
    pub observation: Observation<'a>,
    /// The agent's random numbers of this round.
    pub draws: Draws,
    pub(super) inbox: Messages<'a>,
    pub(super) shared_context: &'a SharedContext,
    pub(super) shared: Option<&'a SharedBox>,
    pub(super) ask: Ask<'a>,
    pub(super) acts: &'a mut Actions,
    pub(super) posts: &'a mut Vec<Post>,
}

impl<'a> Turn<'a> {
    /// Returns the agent's attributes.
    #[must_use]
    pub fn person(&self) -> Person<'_> {
        Person { id: self.who, population: &self.shared_context.population }
    }

    /// Returns the messages sent to the agent since its last turn, sorted by (round, sender, number).
    #[inline]
    #[must_use]
    pub fn inbox(&self) -> Inbox<'a> {
        self.inbox.inbox(self.observation.row())
    }

    /// Returns what the agents of its cohort share since the cohort step of this round.
    ///
    /// # Errors
    /// The policy has no cohort step, or shares a value of another type: a defect of the policy.
    #[inline]
    pub fn shared<S: Plain>(&self) -> Result<&'a S, Fault> {
        let shared = self.shared.and_then(|shared| shared.downcast_ref());
        shared
            .ok_or_else(|| Fault("the agents of this cohort share nothing of the type that their policy reads".into()))
    }

    /// Returns who can hear whom.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.shared_context.topology
    }

    /// Returns the seed of the run, for draws that several agents must agree on.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.shared_context.seed
    }

    /// Performs an act that carries a number or the index of a choice.
    #[inline]
    pub fn act(&mut self, kind: u16, value: f64) {
        self.acts.push(Action { who: self.who, kind, value }, None);
    }

    /// Performs an act that carries a text.
    pub fn act_text(&mut self, kind: u16, text: impl Into<String>) {
        self.acts.push(Action { who: self.who, kind, value: 0.0 }, Some(text.into()));
    }

    /// Performs an act with a record: the fields that the world has declared, by name.
    ///
    /// # Errors
    /// The record cannot be written as JSON.
    pub fn act_record(&mut self, kind: u16, record: &impl Serialize) -> Result<(), Fault> {
        self.act_text(kind, json(record)?);
        Ok(())
    }

    /// Performs an act that carries a number and a text.
    pub fn act_saying(&mut self, kind: u16, value: f64, text: impl Into<String>) {
        self.acts.push(Action { who: self.who, kind, value }, Some(text.into()));
    }

    /// Sends a number to one agent, which reads it in the next round. A message to an id that was never born is dropped.
    pub fn send(&mut self, to: AgentId, channel: u16, value: f64) {
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Number(value) });
    }

    /// Sends a text to one agent, which reads it in the next round. Texts above 16 MiB are cut.
    pub fn send_text(&mut self, to: AgentId, channel: u16, text: impl Into<String>) {
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Text(cut(text.into())) });
    }

    /// Sends a number to all agents that can hear this one.
    #[inline]
    pub fn tell_neighbours(&mut self, channel: u16, value: f64) {
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Number(value) });
    }

    /// Sends a text to all agents that can hear this one.
    pub fn tell_neighbours_text(&mut self, channel: u16, text: impl Into<String>) {
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Text(cut(text.into())) });
    }

    /// Sends a record to one agent, which reads it in the next round: named fields, which travel as JSON.
    ///
    /// # Errors
    /// The record cannot be written as JSON, or takes more than 16 MiB.
    pub fn send_record(&mut self, to: AgentId, channel: u16, record: &impl Serialize) -> Result<(), Fault> {
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Record(short(json(record)?)?) });
        Ok(())
    }

    /// Sends a record to all agents that can hear this one.
    ///
    /// # Errors
    /// The record cannot be written as JSON, or takes more than 16 MiB.
    pub fn tell_neighbours_record(&mut self, channel: u16, record: &impl Serialize) -> Result<(), Fault> {
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Record(short(json(record)?)?) });
        Ok(())
    }

    /// Sends a vector to one agent, which reads it in the next round. Vectors above [`LONGEST_VECTOR`] numbers are cut.
    pub fn send_vector(&mut self, to: AgentId, channel: u16, mut numbers: Vec<f64>) {
        numbers.truncate(LONGEST_VECTOR);
        self.posts.push(Post { to: Address::One(to), channel, words: Words::Vector(numbers) });
    }

    /// Sends a vector to all agents that can hear this one.
    pub fn tell_neighbours_vector(&mut self, channel: u16, mut numbers: Vec<f64>) {
        numbers.truncate(LONGEST_VECTOR);
        self.posts.push(Post { to: Address::Neighbours, channel, words: Words::Vector(numbers) });
    }

    /// Asks a model, a tool or a person, and waits for the answer.
    pub async fn ask(&mut self, question: impl Into<Question>) -> Reply {
        self.ask.ask(self.who, question).await
    }

    /// Asks several questions at once; the answers come in the order asked.
    pub async fn ask_all(&mut self, questions: Vec<Question>) -> Vec<Reply> {
        let actor = self.who;
        self.ask.ask_all(questions.into_iter().map(|question| (actor, question)).collect()).await
    }

    /// Asks for a value of a Rust type, overriding the format of the request. A type that cannot be asked for
    /// ([`ResponseFormat::of`]) is a fault of the policy.
    pub async fn ask_as<T: JsonSchema + DeserializeOwned>(
        &mut self,
        question: impl Into<Question>,
    ) -> Result<Result<T, AskError>, Fault> {
        let mut question = question.into();
        let response_format = ResponseFormat::of::<T>().map_err(Fault)?;
        question.request.response_format = response_format.clone();
        Ok(typed(self.ask(question).await, &response_format))
    }

    /// Lets a team work on an item on behalf of this agent. Its members' questions are the agent's, and the agent's budget pays for
    /// them. Messages between members and measurements are not recorded separately; every call is.
    pub async fn deliberate(&mut self, team: &Team, item: &Item) -> Result<Verdict, Fault> {
        // Another round of the society has other draws.
        let seed = self.shared_context.seed ^ RowHash::new(Kind::Item, self.round).finish() as u64;
        team.work(item, self.who, seed, self.ask.lend()).await
    }

    /// Returns the next question of this turn if it already has an answer. A turn runs again from its start when its answers
    /// arrive, so parts of the question that are costly to make can be taken from here.
    #[must_use]
    pub fn answered_next(&self) -> Option<&Request> {
        self.ask.answered_next(self.who)
    }
}

fn json(record: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(record).map_err(|error| Fault(format!("a record cannot be written as JSON: {error}")))
}

/// Refuses a record that no message holds: half of it would be no record.
fn short(json: String) -> Result<String, Fault> {
    match json.len() <= LONGEST_TEXT {
        true => Ok(json),
        false => Err(Fault(format!("a record of {} bytes is too long for a message", json.len()))),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let mut end = LONGEST_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// The source of messages for turns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Messages<'a> {
    /// By row.
    OfBlock(&'a Arena),
    /// Of one agent.
    OfTurn(Inbox<'a>),
}

impl<'a> Messages<'a> {
    #[inline]
    pub(super) fn inbox(self, row: usize) -> Inbox<'a> {
        match self {
            Messages::OfBlock(arena) => arena.inbox(row),
            Messages::OfTurn(inbox) => inbox,
        }
    }
}
