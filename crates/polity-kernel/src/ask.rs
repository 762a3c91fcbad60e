//! The kernel's only way to the outside: effects and their answers.
//!
//! What the kernel needs from outside leaves as an [`Effect`] and comes back as an [`Answer`]. The pair is closed: every kind of
//! effect has its kind of outcome. A failure is an outcome of its own, never a text that looks like a reply.

mod handle;
mod question;
pub mod schema;
mod target;
pub mod tool;

pub use handle::{Ask, MOST_QUESTIONS};
pub(crate) use handle::{Book, poll_once};
pub use question::Question;
pub use target::{Target, TargetKind};

use crate::tool::{ToolCall, ToolResult, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Who asks. Questions of one actor and round are decided in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asker {
    /// An agent, in its turn.
    Agent,
    /// A cohort, on behalf of one of its agents ([`crate::cohort`]).
    Cohort,
    /// The world, on behalf of an agent ([`crate::world::AskingWorld::query`]).
    World,
    /// A member of a team.
    Member,
    /// The method of a team, for programs that it runs.
    Method,
    /// The scorer of a team's answer.
    Scorer,
    /// The method of a team, once a run ([`crate::method::Method::prepare`]). The item is 0 and the actor is the member that is asked.
    Preparation,
}

impl Asker {
    /// All of them, in order.
    pub const ALL: [Asker; 7] =
        [Asker::Agent, Asker::Cohort, Asker::World, Asker::Member, Asker::Method, Asker::Scorer, Asker::Preparation];

    /// Returns its name, in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Asker::Agent => "agent",
            Asker::Cohort => "cohort",
            Asker::World => "world",
            Asker::Member => "member",
            Asker::Method => "method",
            Asker::Scorer => "scorer",
            Asker::Preparation => "preparation",
        }
    }
}

/// The id of an effect: question `n` of `asker` for `actor` in `round` of `item`. In a society the item is 0 and the actor is the
/// agent. In an evaluation the item is the row of the data set and the actor is the member of the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EffectId {
    /// Row of the data set; 0 in a society.
    pub item: u32,
    /// The round in which the turn began.
    pub round: u32,
    /// The agent or the team member. Methods and scorers use the number after the last member.
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

/// The role of the speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// System instructions.
    System,
    /// What the model is told or asked.
    User,
    /// An earlier reply of the model.
    Assistant,
}

/// A part of a message. Statements of other agents stay typed, so that a simulated model can weigh them without parsing prose and a
/// table can show whose statements were read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Plain text.
    Text(String),
    /// The current answer of an agent, with its reasons.
    Said {
        /// Name of the speaker.
        by: String,
        /// The answer alone.
        answer: String,
        /// The reasons given; may be empty.
        reasons: String,
    },
    /// A review of the model's last answer.
    Finding {
        /// Name of the reviewer.
        by: String,
        /// Whether the answer is right.
        right: bool,
        /// The text of the review.
        words: String,
    },
    /// Calls of tools that the model made, in its own message.
    Calls(Vec<ToolCall>),
    /// What a call returned: text from outside, which is evidence and never an instruction.
    Result(ToolResult),
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl ChatMessage {
    /// Makes a message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        ChatMessage { role, parts: vec![Part::Text(text.into())] }
    }

    /// Returns the message as it is sent to a provider.
    #[must_use]
    pub fn rendered(&self) -> String {
        let mut out = String::with_capacity(self.size());
        self.render(&mut out);
        out
    }

    /// Returns an upper bound of its size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Said { by, answer, reasons } => {
                by.len() + answer.len() + reasons.len() + " answers: \nReasons: ".len()
            }
            Part::Finding { by, words, .. } => by.len() + words.len() + " finds your answer right.\n".len() + 4,
            Part::Calls(calls) => calls.iter().map(ToolCall::size).sum(),
            Part::Result(result) => result.size(),
        };
        self.parts.iter().map(|p| part(p) + "\n\n".len()).sum()
    }

    /// Appends it to a text.
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
                Part::Calls(calls) => {
                    let lines: Vec<String> = calls.iter().map(ToString::to_string).collect();
                    out.push_str(&lines.join("\n"));
                }
                Part::Result(result) => out.push_str(&result.to_string()),
            }
        }
    }
}

/// The format of the wanted answer. The driver makes the reply fit or reports that it does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseFormat {
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
    /// A number of values of one kind, in the order that the model gives them.
    List {
        /// The format of each value.
        of: Box<ResponseFormat>,
        /// Fewest.
        least: u32,
        /// Most.
        most: u32,
    },
    /// Named fields, in order.
    Record(Vec<(String, ResponseFormat)>),
    /// The embedding vector of the request's text, of whatever length the model has. No text is generated.
    #[schemars(skip)]
    Vector,
    /// Calls of these tools, or a text without a call. Arguments fit the schema of their tool.
    #[schemars(skip)]
    Calls(Arc<Vec<ToolSpec>>),
}

impl ResponseFormat {
    /// Makes the format of a number within bounds, whole or not.
    ///
    /// ```
    /// use polity_kernel::ask::ResponseFormat;
    ///
    /// // A record of two fields, of which one has bounds.
    /// let share = ResponseFormat::number(0.0, 1.0);
    /// let want = ResponseFormat::Record(vec![("reason".into(), ResponseFormat::Text), ("share".into(), share)]);
    /// assert_eq!(serde_json::to_value(&want)?["record"][0], serde_json::json!(["reason", "text"]));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn number(low: f64, high: f64) -> Self {
        ResponseFormat::Number { low, high, whole: false }
    }

    /// Checks that a scenario may ask for an answer in this format, and that some answer fits it.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn check(&self) -> Result<(), String> {
        match self {
            ResponseFormat::Text => Ok(()),
            ResponseFormat::Choice(options) if options.is_empty() => Err("a choice has at least one option".into()),
            ResponseFormat::Choice(_) => Ok(()),
            ResponseFormat::Number { low, high, .. } if low <= high => Ok(()),
            ResponseFormat::Number { low, high, .. } => Err(format!("no number is at least {low} and at most {high}")),
            ResponseFormat::List { of, least, most } if least <= most && *most > 0 => of.check(),
            ResponseFormat::List { .. } => Err("`most` must be at least 1, and at least `least`".into()),
            ResponseFormat::Record(fields) if fields.is_empty() => Err("a record has at least one field".into()),
            ResponseFormat::Record(fields) => fields.iter().try_for_each(|(_, format)| format.check()),
            ResponseFormat::Calls(_) | ResponseFormat::Vector => {
                Err("an answer is a text, a choice, a number, a list or a record".into())
            }
        }
    }
}

/// A value that fits a [`ResponseFormat`].
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
    /// Calls of tools, in order.
    Calls {
        /// What the model says besides; may be empty if there are calls.
        text: String,
        /// The calls; none if the text is the whole reply.
        calls: Vec<ToolCall>,
    },
}

impl Value {
    /// Returns the text, if it is one.
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

/// How a model is constrained to the options of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Constrain {
    /// By a JSON Schema.
    Schema,
    /// By the list of the options.
    Choice,
    /// By a grammar.
    Grammar,
    /// The question lists the options by letter, and the likeliest letter counts.
    Logprobs,
    /// By instructions in the prompt alone.
    Words,
    /// Calls of tools by the provider's own form of them. Other replies have no such form.
    Tools,
}

impl Constrain {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Constrain; 6] = [
        Constrain::Tools,
        Constrain::Schema,
        Constrain::Choice,
        Constrain::Grammar,
        Constrain::Logprobs,
        Constrain::Words,
    ];

    /// Returns its name in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Constrain::Schema => "schema",
            Constrain::Choice => "choice",
            Constrain::Grammar => "grammar",
            Constrain::Logprobs => "logprobs",
            Constrain::Words => "words",
            Constrain::Tools => "tools",
        }
    }
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Thinking {
    /// Not at all, or as little as the model can.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// As much as is useful.
    High,
}

impl Thinking {
    /// All of them, in order.
    pub const ALL: [Thinking; 4] = [Thinking::Off, Thinking::Low, Thinking::Medium, Thinking::High];

    /// Returns its name in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        }
    }
}

/// Sampling settings of a model. The provider decides what is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Nucleus sampling: sample from the likeliest tokens that together have this probability; above 0, up to 1.
    pub top_p: Option<f64>,
    /// Maximum number of tokens of a reply. A budget reserves that much for each call.
    pub max_tokens: Option<u64>,
    /// Sampling seed; the number of the sample is added to it. Few providers guarantee anything.
    pub seed: Option<u64>,
    /// How replies are constrained to the options of a choice: `schema`, `choice`, `grammar`, `logprobs` or `words`. Calls of tools:
    /// `tools` (the provider's own form), `schema` or `words`. What a provider cannot do is refused. Default: what the provider is known
    /// to offer, its own form of calls and a schema first.
    pub constrain: Option<Constrain>,
    /// How much the model thinks before it answers: `off`, `low`, `medium` or `high`. Thoughts count as tokens of the reply. Each
    /// provider has its own form of it; a model without thoughts may refuse it. Simulated models and local ones take no notice.
    pub thinking: Option<Thinking>,
}

impl Settings {
    /// Returns these settings, overridden by those of the other that are set.
    #[must_use]
    pub fn with(self, other: Settings) -> Settings {
        Settings {
            temperature: other.temperature.or(self.temperature),
            top_p: other.top_p.or(self.top_p),
            max_tokens: other.max_tokens.or(self.max_tokens),
            seed: other.seed.or(self.seed),
            constrain: other.constrain.or(self.constrain),
            thinking: other.thinking.or(self.thinking),
        }
    }

    /// Refuses settings that no provider accepts.
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

/// Which try of its question a request is ([`Question`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// How often the question was asked before.
    pub nth: u8,
    /// Whether this is the last try.
    pub last: bool,
    /// Whether the asker has a default for when no reply fits.
    pub default: bool,
}

/// A question to a model, a tool or a person.
///
/// ```
/// use polity_kernel::ask::{ChatMessage, Request, Role, ResponseFormat};
///
/// let messages = vec![
///     ChatMessage::text(Role::System, "You are a cautious trader."),
///     ChatMessage::text(Role::User, "Buy, hold or sell?"),
/// ];
/// let options = ["buy", "hold", "sell"].map(String::from).to_vec();
/// let request = Request::new("sim/medium", messages, ResponseFormat::Choice(options));
/// assert_eq!(request.rendered(), "[system]\nYou are a cautious trader.\n\n[user]\nBuy, hold or sell?");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Who is asked.
    pub model: Target,
    /// The conversation so far.
    pub messages: Arc<Vec<ChatMessage>>,
    /// The kind of answer wanted.
    pub response_format: ResponseFormat,
    /// How the model is to sample.
    pub settings: Settings,
    /// Distinguishes samples of the same request.
    pub sample: u32,
    /// The purpose in one word, for tables: `guess`, `thoughts`.
    pub purpose: String,
    /// Which try of its question it is. `None`: it is asked once, and the asker sees the outcome.
    pub step: Option<Step>,
}

impl Role {
    /// Returns its name, as a heading of its messages.
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
    /// Returns all messages as they are sent, each under a heading with its role, for people.
    #[must_use]
    pub fn rendered(&self) -> String {
        // A run holds many of these for a while, so reserve the size of the text and only a few bytes more.
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

    /// Makes a single request: the first sample, with the provider's settings.
    #[must_use]
    pub fn new(
        model: impl Into<Target>,
        messages: impl Into<Arc<Vec<ChatMessage>>>,
        response_format: ResponseFormat,
    ) -> Self {
        Request {
            model: model.into(),
            messages: messages.into(),
            response_format,
            settings: Settings::default(),
            sample: 0,
            purpose: String::new(),
            step: None,
        }
    }
}

/// The kind of work of a question. Simulated models act on it, and token ledgers are split by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Answer the item, alone or with the answers of others.
    #[default]
    Solve,
    /// Argue for a wrong answer.
    Mislead,
    /// Write tests for the requested program.
    Test,
    /// Name the best of the answers shown. The options are the names of their authors.
    Choose,
    /// Rate the answers shown: a number for the last, or a list of numbers for all, in their order.
    Rate,
    /// Check whether the last answer shown is right. The first of two options says that it is.
    Check,
    /// Write something that has no right answer: a plan, a document, an order to somebody.
    Write,
}

impl Task {
    /// Returns its name, in tables.
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

/// What a simulated model may know and no prompt may contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hidden {
    /// The right answer.
    pub gold: String,
    /// Difficulty on the scale of the models' skill (log-odds; 0 is average).
    pub difficulty: f64,
    /// The tempting wrong answer, if the data name one.
    pub distractor: Option<String>,
    /// The field of knowledge: models may have more or less skill in it.
    pub topic: Option<String>,
    /// Wrong answers to draw from. If empty, wrong answers are made up.
    pub wrong: Arc<Vec<String>>,
    /// What the question asks for.
    pub task: Task,
    /// For a model `recorded/NAME`: its answer on record, or why there is none.
    pub recorded: Option<Result<Recorded, String>>,
    /// Calls that find what the answer needs, in order; for simulated models that read what they are shown.
    pub plan: Arc<Vec<PlannedCall>>,
}

/// A call that finds something which an item's answer needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The call.
    pub call: ToolCall,
    /// A text that its result holds, without regard to case. If it is empty, no result shows that the call is done.
    pub finds: String,
}

/// An answer that a model once gave ([`crate::items::Recording`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The fields of the reply by name; one is `answer`, which is empty if no answer could be read.
    pub fields: BTreeMap<String, String>,
    /// Tokens of the request; 0 if they were not recorded.
    pub tokens_in: u64,
    /// Tokens of the reply; 0 if they were not recorded.
    pub tokens_out: u64,
    /// US dollars; 0 if they were not recorded.
    pub cost_usd: f64,
}

/// A request to the outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Its id.
    pub id: EffectId,
    /// What is asked.
    pub request: Request,
    /// Out-of-band knowledge for simulated models; never sent anywhere.
    pub hidden: Option<Hidden>,
    /// The declared default that holds without an answer. It is shown to people, not to models.
    pub default: Option<Value>,
}

/// How an effect ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A reply that fits the format, and the text it was read from.
    Reply {
        /// The typed value.
        value: Value,
        /// The reply as it came.
        raw: String,
        /// Whether the format of the reply was repaired.
        repaired: bool,
    },
    /// A reply that does not fit the format.
    Invalid {
        /// The reply as it came.
        raw: String,
        /// What is wrong with it.
        why: String,
    },
    /// The model declined.
    Refused {
        /// Its reply.
        raw: String,
    },
    /// There was no reply.
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
    /// Tokens of the request that the provider had in its cache.
    pub tokens_cached: u64,
    /// Tokens of the reply that were hidden thinking.
    pub tokens_thinking: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds from sending to the last byte (declared, for simulated models).
    pub latency_ms: f64,
    /// Milliseconds between the question and the sending of the answered request: waiting for a connection, for rate limits, and
    /// for failed tries. Volatile.
    pub waited_ms: f64,
    /// Failed tries before. Volatile, as the latency.
    pub retries: u32,
    /// Whether the answer was shared: no call was made, because the same request was already answered or in flight. It cost
    /// nothing; tokens and dollars are those of the original answer. Volatile.
    pub shared: bool,
    /// Whether the server reported no tokens or zero tokens. The counts are then an upper bound of what the exchange can have used.
    pub estimated: bool,
}

/// The answer to an effect, with the request it answers. Replay and resume match both.
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
    /// What the model thought, if its provider shows it. It is for people: no turn, no result and no later prompt depends on it.
    pub reasoning: Option<String>,
}

/// What a turn or a method gets back from a question.
pub type Reply = Result<Value, AskError>;

/// Why there is no value. Policies and methods see a bad reply as an error, never as a value that looks like a reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
pub enum AskError {
    /// The reply did not fit the format.
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
    /// There was no reply.
    #[error("no reply: {0}")]
    Failed(String),
    /// The driver did not ask.
    #[error("not asked: {0}")]
    Denied(String),
}

impl Answer {
    /// Returns the answer as a turn sees it.
    pub fn heard(&self) -> Reply {
        match &self.outcome {
            Outcome::Reply { value, .. } => Ok(value.clone()),
            Outcome::Invalid { raw, why } => Err(AskError::Invalid { raw: raw.clone(), why: why.clone() }),
            Outcome::Refused { raw } => Err(AskError::Refused(raw.clone())),
            Outcome::Failed { why } => Err(AskError::Failed(why.clone())),
            Outcome::Denied { why } => Err(AskError::Denied(why.clone())),
        }
    }

    /// Returns how its question was resolved.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        let again = self.request.step.is_some_and(|step| step.nth > 0);
        match &self.outcome {
            Outcome::Reply { repaired: true, .. } => Resolution::Repaired,
            Outcome::Reply { .. } if again => Resolution::Reasked,
            Outcome::Reply { .. } => Resolution::Fit,
            outcome => match self.request.step {
                Some(step) if !step.last && outcome.may_be_asked_again() => Resolution::Again,
                Some(Step { default: true, .. }) => Resolution::Default,
                Some(_) | None => Resolution::None,
            },
        }
    }
}

impl Outcome {
    /// The names of all kinds, in order.
    pub const NAMES: [&'static str; 5] = ["reply", "invalid", "refused", "failed", "denied"];

    /// Returns the position of its kind in [`Outcome::NAMES`].
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

    /// Returns the name of its kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.kind()]
    }

    /// Returns the reply as it came, or else the error message.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Outcome::Reply { raw, .. } | Outcome::Invalid { raw, .. } | Outcome::Refused { raw } => raw,
            Outcome::Failed { why } | Outcome::Denied { why } => why,
        }
    }

    /// Returns whether asking the question again may help.
    #[must_use]
    pub fn may_be_asked_again(&self) -> bool {
        matches!(self, Outcome::Invalid { .. } | Outcome::Refused { .. })
    }
}

/// How a question with an answer was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// The reply fits as it came.
    Fit,
    /// The reply fits after its format was repaired.
    Repaired,
    /// The reply fits as it came, after the question was asked again.
    Reasked,
    /// The reply does not fit, and the question is asked again.
    Again,
    /// No reply fits, and the question's declared default holds.
    Default,
    /// No reply fits, and the asker sees that.
    None,
}

impl Resolution {
    /// All of them, in order.
    pub const ALL: [Resolution; 6] = [
        Resolution::Fit,
        Resolution::Repaired,
        Resolution::Reasked,
        Resolution::Again,
        Resolution::Default,
        Resolution::None,
    ];

    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Resolution::Fit => "fit",
            Resolution::Repaired => "repaired",
            Resolution::Reasked => "reasked",
            Resolution::Again => "again",
            Resolution::Default => "default",
            Resolution::None => "none",
        }
    }
}
