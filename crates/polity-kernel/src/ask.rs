//! The only door outside: effects and their answers.
//!
//! What the kernel wants from outside leaves as an [`Effect`] and comes back as an [`Answer`]. The pair is closed: every kind of
//! effect has its kind of outcome, and a failure is an outcome of its own, never a text that looks like a reply.

pub mod schema;
pub mod tool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Who asks. The order is that in which questions of one actor and round are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// An agent, in its turn.
    Agent,
    /// A cohort, in the name of one of its agents ([`crate::council`]).
    Cohort,
    /// The world, in the name of an agent ([`crate::world::World::inquire`]).
    World,
    /// A member of a team.
    Member,
    /// The method of a team: it runs programs for nobody in particular.
    Method,
    /// Whoever scores a team's answer.
    Scorer,
}

impl Asker {
    /// All of them, in order.
    pub const ALL: [Asker; 6] =
        [Asker::Agent, Asker::Cohort, Asker::World, Asker::Member, Asker::Method, Asker::Scorer];

    /// Its name, in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Asker::Agent => "agent",
            Asker::Cohort => "cohort",
            Asker::World => "world",
            Asker::Member => "member",
            Asker::Method => "method",
            Asker::Scorer => "scorer",
        }
    }
}

/// Names an effect: the `n`-th question of `asker` for `actor` in `round` of `item`. In a society the item is 0 and the actor is the
/// agent; in an evaluation the item is the row of the data set and the actor is the member of the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EffectId {
    /// Row of the data set; 0 in a society.
    pub item: u32,
    /// The round in which the turn began.
    pub round: u32,
    /// The agent or the member of the team; the number behind the last member for a method and for what scores its answer.
    pub actor: u32,
    /// Who asks.
    pub asker: Asker,
    /// Counts the asker's questions for the actor in the round, from 0.
    pub n: u32,
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(item {}, round {}, {} {}, n {})", self.item, self.round, self.asker.name(), self.actor, self.n)
    }
}

/// Who speaks in a message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// What the model is told or asked.
    User,
    /// What the model itself said before.
    Assistant,
}

/// A piece of a message. What other agents said stays typed, so that a simulated model can weigh it without reading prose and a
/// table can show who was heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Plain text.
    Text(String),
    /// The standing answer of an agent, with its reasons.
    Said {
        /// Name of the speaker.
        by: String,
        /// The answer alone.
        answer: String,
        /// The reasons given; may be empty.
        reasons: String,
    },
    /// What somebody has found of the answer that the model gave last.
    Finding {
        /// Name of whoever looked at it.
        by: String,
        /// Whether it is right.
        right: bool,
        /// What was found.
        words: String,
    },
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Message { role, parts: vec![Part::Text(text.into())] }
    }

    /// The message as a provider is sent it.
    #[must_use]
    pub fn rendered(&self) -> String {
        let mut out = String::with_capacity(self.size());
        self.render(&mut out);
        out
    }

    /// Bytes of it at most.
    #[must_use]
    pub fn size(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Said { by, answer, reasons } => {
                by.len() + answer.len() + reasons.len() + " answers: \nReasons: ".len()
            }
            Part::Finding { by, words, .. } => by.len() + words.len() + " finds your answer right.\n".len() + 4,
        };
        self.parts.iter().map(|p| part(p) + "\n\n".len()).sum()
    }

    /// Puts it at the end of a text.
    fn render(&self, out: &mut String) {
        let start = out.len();
        for part in &self.parts {
            if out.len() > start {
                out.push_str("\n\n");
            }
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Said { by, answer, reasons } => {
                    out.extend([by, " answers: ", answer]);
                    if !reasons.is_empty() {
                        out.extend(["\nReasons: ", reasons]);
                    }
                }
                Part::Finding { by, right, words } => {
                    out.extend([by.as_str(), " finds your answer ", if *right { "right." } else { "wrong." }]);
                    if !words.is_empty() {
                        out.extend(["\n", words]);
                    }
                }
            }
        }
    }
}

/// What answer is wanted. The driver makes the reply fit or reports that it does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// Free text.
    Text,
    /// One of the options, by its text.
    Choice(Vec<String>),
    /// A number within bounds (both included).
    Number {
        /// Smallest allowed value.
        low: f64,
        /// Largest allowed value.
        high: f64,
        /// Whether it must be a whole number.
        #[serde(default)]
        whole: bool,
    },
    /// So many values of one kind, in the order that the model gives them.
    List {
        /// What each is.
        of: Box<Want>,
        /// Fewest.
        least: u32,
        /// Most.
        most: u32,
    },
    /// Named fields, in order.
    Record(Vec<(String, Want)>),
    /// The vector of the request's text (an embedding), of whatever length the model has. Nothing is said.
    #[schemars(skip)]
    Vector,
}

impl Want {
    /// A number within bounds, whole or not.
    #[must_use]
    pub fn number(low: f64, high: f64) -> Self {
        Want::Number { low, high, whole: false }
    }
}

/// A value that fits a [`Want`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Free text.
    Text(String),
    /// Index of the chosen option.
    Choice(u32),
    /// A number.
    Number(f64),
    /// The values of a list.
    List(Vec<Value>),
    /// The fields of a record, in the order asked.
    Record(Vec<Value>),
    /// A vector.
    Vector(Vec<f32>),
}

impl Value {
    /// The text, when it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Field `i` of a record.
    #[must_use]
    pub fn field(&self, i: usize) -> Option<&Value> {
        match self {
            Value::Record(fields) => fields.get(i),
            _ => None,
        }
    }
}

/// How a model is held to the options of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Constrain {
    /// By a JSON Schema.
    Schema,
    /// By the list of the options.
    Choice,
    /// By a grammar.
    Grammar,
    /// The options stand in the question as letters, and the likeliest letter counts.
    Logprobs,
    /// By words alone.
    Words,
}

impl Constrain {
    /// All of them, first what is tried first.
    pub const ALL: [Constrain; 5] =
        [Constrain::Schema, Constrain::Choice, Constrain::Grammar, Constrain::Logprobs, Constrain::Words];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Constrain::Schema => "schema",
            Constrain::Choice => "choice",
            Constrain::Grammar => "grammar",
            Constrain::Logprobs => "logprobs",
            Constrain::Words => "words",
        }
    }
}

/// How a model is to sample. What is not given is the provider's affair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How freely it samples; 0 to 2.
    pub temperature: Option<f64>,
    /// It samples from the likeliest tokens that have this probability together; above 0, up to 1.
    pub top_p: Option<f64>,
    /// Tokens of a reply at most; a budget sets that much aside for each call.
    pub max_tokens: Option<u64>,
    /// Seed of its sampling, to which the number of the sample is added. Few providers promise anything.
    pub seed: Option<u64>,
    /// How it is held to the options of a choice: `schema`, `choice`, `grammar`, `logprobs` or `words`; what a provider can not do is refused.
    /// Not given, it is what the provider is known to offer, a schema first.
    pub constrain: Option<Constrain>,
}

impl Settings {
    /// The same with other settings where those are given.
    #[must_use]
    pub fn with(self, other: Settings) -> Settings {
        Settings {
            temperature: other.temperature.or(self.temperature),
            top_p: other.top_p.or(self.top_p),
            max_tokens: other.max_tokens.or(self.max_tokens),
            seed: other.seed.or(self.seed),
            constrain: other.constrain.or(self.constrain),
        }
    }

    /// Refuses what no provider takes.
    pub fn check(&self) -> Result<(), crate::tree::Invalid> {
        let invalid = |key: &str, message: String| Err(crate::tree::Invalid { key: key.into(), message });
        match *self {
            Settings { temperature: Some(t), .. } if !(0.0..=2.0).contains(&t) => {
                invalid("temperature", format!("must lie in 0..=2, is {t}"))
            }
            Settings { top_p: Some(p), .. } if !(p > 0.0 && p <= 1.0) => {
                invalid("top_p", format!("must be above 0 and at most 1, is {p}"))
            }
            Settings { max_tokens: Some(0), .. } => invalid("max_tokens", "must be at least 1".into()),
            _ => Ok(()),
        }
    }
}

/// Where a request stands on the ladder of its question ([`crate::ladder`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// How often the question was put before.
    pub nth: u8,
    /// Whether it is not put again: without a fitting reply its declared default holds.
    pub last: bool,
}

/// A question to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// `provider/model`.
    pub model: String,
    /// The conversation so far.
    pub messages: Arc<Vec<Message>>,
    /// The kind of answer wanted.
    pub want: Want,
    /// How the model is to sample.
    pub settings: Settings,
    /// Tells samples of one and the same request apart.
    pub sample: u32,
    /// What it is asked for, in a word, for tables: `guess`, `thoughts`.
    pub purpose: String,
    /// Where it stands on the ladder of its question; `None`: whoever asks takes what comes.
    pub step: Option<Step>,
}

impl Role {
    /// Its name, as a heading of what it says.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

impl Request {
    /// All messages as they are sent, each under a heading with its role, for people.
    #[must_use]
    pub fn rendered(&self) -> String {
        // A run holds many of these for a while: with the room of their text, and no more than a few letters.
        let room = self.messages.iter().map(|message| "[assistant]\n\n\n".len() + message.size()).sum();
        let mut out = String::with_capacity(room);
        for message in self.messages.iter() {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.extend(["[", message.role.name(), "]\n"]);
            message.render(&mut out);
        }
        out
    }

    /// A question of its own: the first sample, with the provider's settings.
    #[must_use]
    pub fn new(model: impl Into<String>, messages: impl Into<Arc<Vec<Message>>>, want: Want) -> Self {
        Request {
            model: model.into(),
            messages: messages.into(),
            want,
            settings: Settings::default(),
            sample: 0,
            purpose: String::new(),
            step: None,
        }
    }
}

/// What kind of work a question is: what simulated models do, and what ledgers of tokens are split by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Answer the item, alone or with what others have said.
    #[default]
    Solve,
    /// Argue for a wrong answer.
    Mislead,
    /// Write tests for the program that is wanted.
    Test,
    /// Name the best of the answers shown: the options are the names of those who gave them.
    Choose,
    /// Mark the answers shown: a number for the last, or a list of numbers for all, in their order.
    Rate,
    /// Say whether the last answer shown is right: the first of two options says that it is.
    Check,
    /// Something that has no right answer: a plan, a document, an order to somebody.
    Write,
}

impl Task {
    /// Its name, in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Task::Solve => "solve",
            Task::Mislead => "mislead",
            Task::Test => "test",
            Task::Choose => "choose",
            Task::Rate => "rate",
            Task::Check => "check",
            Task::Write => "write",
        }
    }
}

/// What a simulated model may know and no prompt may say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hidden {
    /// The right answer.
    pub gold: String,
    /// Difficulty on the scale of the models' skill (log-odds; 0 is average).
    pub difficulty: f64,
    /// The tempting wrong answer, where the data name one.
    pub lure: Option<String>,
    /// The field of knowledge: models may have more or less skill in it.
    pub topic: Option<String>,
    /// Wrong answers to draw from; without any they are made up.
    pub wrong: Arc<Vec<String>>,
    /// What the question asks for.
    pub task: Task,
}

/// A wish for something outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Its name.
    pub id: EffectId,
    /// What is asked.
    pub request: Request,
    /// Out-of-band knowledge for simulated models; never sent anywhere.
    pub hidden: Option<Hidden>,
    /// What holds without an answer, where whoever asks has declared it: people are shown it, models are not.
    pub default: Option<Value>,
}

/// How an effect ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A reply that fits what was wanted, and the text it was read from.
    Reply {
        /// The typed value.
        value: Value,
        /// The reply as it came.
        raw: String,
        /// Whether its form had to be mended before it could be read.
        repaired: bool,
    },
    /// A reply that does not fit what was wanted.
    Invalid {
        /// The reply as it came.
        raw: String,
        /// What is wrong with it.
        why: String,
    },
    /// The model declined.
    Refused {
        /// Its words.
        raw: String,
    },
    /// No reply could be had.
    Failed {
        /// The last error.
        why: String,
    },
    /// The driver did not ask: a budget or a stop forbade it.
    Denied {
        /// Which limit, and its value.
        why: String,
    },
}

/// What an exchange cost. Latency is volatile: it is recorded and never reaches a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of the reply.
    pub tokens_out: u64,
    /// Of the request's tokens those that the provider had in its cache.
    pub tokens_cached: u64,
    /// Of the reply's tokens those of thinking that is not shown.
    pub tokens_thinking: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds from sending to the last byte (declared, for simulated models).
    pub latency_ms: f64,
    /// Milliseconds from the asking to the sending of what was answered: for a connection, within limits, for tries that failed. Volatile.
    pub waited_ms: f64,
    /// Tries that failed before. Volatile, as the latency.
    pub retries: u32,
    /// Whether nobody was asked, because the answer to the very same request was there or on its way: it cost nothing, and tokens and
    /// dollars are those of the answer as it was had. Volatile.
    pub shared: bool,
    /// Whether the server did not tell the tokens, or told zero: they are counted from above, at the most that the exchange can have taken.
    pub estimated: bool,
}

/// The answer to an effect, with the request it answers: replay and resume match both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The effect's name.
    pub id: EffectId,
    /// The request that was answered.
    pub request: Request,
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost.
    pub usage: Usage,
}

/// What a turn or a method gets back from a question.
pub type Heard = Result<Value, Unanswered>;

/// Why there is no value. A bad reply is an event that policies and methods see, never a value that looks like a reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum Unanswered {
    /// The reply did not fit what was wanted.
    #[error("the reply does not fit what was asked: {why}")]
    Invalid {
        /// The reply as it came.
        raw: String,
        /// What is wrong with it.
        why: String,
    },
    /// The model declined.
    #[error("the model refused: {0}")]
    Refused(String),
    /// No reply could be had.
    #[error("no reply: {0}")]
    Failed(String),
    /// The driver did not ask.
    #[error("not asked: {0}")]
    Denied(String),
}

impl Answer {
    /// The answer as a turn sees it.
    pub fn heard(&self) -> Heard {
        match &self.outcome {
            Outcome::Reply { value, .. } => Ok(value.clone()),
            Outcome::Invalid { raw, why } => Err(Unanswered::Invalid { raw: raw.clone(), why: why.clone() }),
            Outcome::Refused { raw } => Err(Unanswered::Refused(raw.clone())),
            Outcome::Failed { why } => Err(Unanswered::Failed(why.clone())),
            Outcome::Denied { why } => Err(Unanswered::Denied(why.clone())),
        }
    }

    /// How its question got on with it.
    #[must_use]
    pub fn rung(&self) -> Rung {
        let again = self.request.step.is_some_and(|step| step.nth > 0);
        match &self.outcome {
            Outcome::Reply { repaired: true, .. } => Rung::Repaired,
            Outcome::Reply { .. } if again => Rung::Reasked,
            Outcome::Reply { .. } => Rung::Fit,
            outcome => match self.request.step {
                Some(step) if step.last || !outcome.may_be_asked_again() => Rung::Default,
                Some(_) => Rung::Again,
                None => Rung::None,
            },
        }
    }
}

impl Outcome {
    /// The names of all kinds, in order.
    pub const NAMES: [&'static str; 5] = ["reply", "invalid", "refused", "failed", "denied"];

    /// The position of its kind in [`Outcome::NAMES`].
    #[must_use]
    pub fn kind(&self) -> usize {
        match self {
            Outcome::Reply { .. } => 0,
            Outcome::Invalid { .. } => 1,
            Outcome::Refused { .. } => 2,
            Outcome::Failed { .. } => 3,
            Outcome::Denied { .. } => 4,
        }
    }

    /// The name of its kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.kind()]
    }

    /// The reply as it came; where there is none, the words of the error.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Outcome::Reply { raw, .. } | Outcome::Invalid { raw, .. } | Outcome::Refused { raw } => raw,
            Outcome::Failed { why } | Outcome::Denied { why } => why,
        }
    }

    /// Whether putting the question once more may help.
    #[must_use]
    pub fn may_be_asked_again(&self) -> bool {
        matches!(self, Outcome::Invalid { .. } | Outcome::Refused { .. })
    }
}

/// What became of a question with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The reply fits as it came.
    Fit,
    /// It fits once its form was mended.
    Repaired,
    /// It fits as it came, after the question was put again.
    Reasked,
    /// It does not fit, and the question is put again.
    Again,
    /// There is none that fits, and the question's declared default holds.
    Default,
    /// There is none that fits, and whoever asked sees that.
    None,
}

impl Rung {
    /// All of them, in order.
    pub const ALL: [Rung; 6] = [Rung::Fit, Rung::Repaired, Rung::Reasked, Rung::Again, Rung::Default, Rung::None];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rung::Fit => "fit",
            Rung::Repaired => "repaired",
            Rung::Reasked => "reasked",
            Rung::Again => "again",
            Rung::Default => "default",
            Rung::None => "none",
        }
    }
}
