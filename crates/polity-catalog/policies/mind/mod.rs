//! Minds: agents that ask a model what to do, in typed questions. See README.md.

#[cfg(test)]
mod tests;

use crate::minds::memory::Memory;
use crate::minds::offer::Offer;
use crate::minds::prompts::{self, Prompts, Text};
use crate::minds::{
    ACTIVE, ActionForm, Given, ModelShare, OPEN_QUESTION, THOUGHTS, actions, heard, invalid, models_of, thoughts,
    values, wanted,
};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Hidden, Part, Question, Request, ResponseFormat, Role, Settings, Target, Value};
use polity_kernel::interface::NumberSlot;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Mind>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Whether a mind thinks before it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Think {
    /// Decide at once.
    #[default]
    No,
    /// Think and then decide in one reply.
    InReply,
    /// Think in one call, and decide in another.
    First,
}

/// A mind's memory of earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keeping {
    /// Maximum tokens (four characters each) of memories in a prompt; the oldest are dropped first. 0: no memory.
    tokens: u32,
    /// Let the model summarise memories before they are dropped, in an occasional call of its own.
    summary: bool,
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping { tokens: 500, summary: false }
    }
}

/// An additional question to every mind in every round, after its decision. The answers are recorded and have no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Further {
    /// Its name, in tables.
    name: String,
    /// Its text.
    ask: String,
    /// The kind of answer.
    response_format: ResponseFormat,
}

/// Parameters of minds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; by default, the scenario's `model`.
    model: Option<String>,
    /// Several models; each agent is given one at birth.
    models: Vec<ModelShare>,
    /// Sampling settings of the model; defaults are the scenario's `settings`.
    settings: Settings,
    /// Templates that replace the world's and the policy's own, by name (README.md lists them): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// Whether it thinks before it decides: `no`, `in-reply` or `first`.
    think: Think,
    /// Its memory of earlier rounds.
    memory: Keeping,
    /// The acts that it may perform; by default, all of the world's.
    acts: Option<Vec<String>>,
    /// Values by act, used when no reply can be used. An act without one is not performed.
    default: BTreeMap<String, Given>,
    /// Additional questions in every round.
    questions: Vec<Further>,
    /// Number of retries when a reply cannot be used; 0 to 10.
    max_retries: u8,
    /// Maximum number of messages that it hears per round, drawn from all that came.
    max_messages: u32,
    /// Report its actions to those who hear it.
    broadcast: bool,
    /// Let agents with identical prompts share one call and its answer. Otherwise each has its own sample.
    shared: bool,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            model: None,
            models: Vec::new(),
            settings: Settings::default(),
            prompts: BTreeMap::new(),
            think: Think::No,
            memory: Keeping::default(),
            acts: None,
            default: BTreeMap::new(),
            questions: Vec::new(),
            max_retries: 1,
            max_messages: 20,
            broadcast: true,
            shared: false,
        }
    }
}

/// Agents that ask a model.
pub struct Mind {
    /// Names and shares.
    models: Vec<Target>,
    shares: Vec<f64>,
    settings: Settings,
    prompts: Prompts,
    think: Think,
    memory: Keeping,
    actions: Vec<ActionForm>,
    /// Whether it picks one of them per turn.
    picks: bool,
    /// The observation field that is 0 if an agent has nothing to decide.
    active: Option<NumberSlot>,
    questions: Vec<Further>,
    max_retries: u8,
    max_messages: usize,
    broadcast: bool,
    shared: bool,
}

/// A mind's state between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Index of its model.
    model: u32,
    memory: Memory,
}

/// Placeholder for an act without a decision; it is never read.
const NOTHING: Value = Value::Record(Vec::new());

impl Policy for Mind {
    const NAME: &'static str = "mind";
    const SUMMARY: &'static str = "Ask a model what to do, in typed questions (persona, memory, thoughts)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (models, shares) = models_of(params.model.as_deref(), &params.models, setup)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "max_retries", params.max_retries)?;
        let actions = actions(params.acts.as_deref(), &params.default, setup)?;
        for (i, question) in params.questions.iter().enumerate() {
            let known = params.questions[..i].iter().map(|q| &q.name).chain(actions.iter().map(|action| &action.name));
            let fits = !question.name.is_empty()
                && question.name != THOUGHTS
                && !known.clone().any(|name| *name == question.name);
            let key = format!("questions[{i}].name");
            Invalid::unless(fits, &key, format!("`{}` is empty or already in use", question.name))?;
            question.response_format.check().map_err(|message| invalid(&format!("questions[{i}].want"), message))?;
        }
        let prompts = Prompts::open(&params.prompts, setup)?;
        Ok(Mind {
            models: models.into_iter().map(Target::from).collect(),
            shares,
            settings: setup.settings.with(params.settings),
            prompts,
            think: params.think,
            memory: params.memory,
            actions,
            picks: setup.interface.alternatives,
            active: setup.number(ACTIVE).ok(),
            questions: params.questions,
            max_retries: params.max_retries,
            max_messages: params.max_messages as usize,
            broadcast: params.broadcast,
            shared: params.shared,
        })
    }

    fn models(&self) -> Vec<String> {
        self.models.iter().map(Target::to_string).collect()
    }

    /// An open question with its prompts, and five bytes per token of memory.
    fn memory_bytes(&self) -> usize {
        OPEN_QUESTION + 5 * self.memory.tokens as usize
    }

    fn tells_neighbours(&self) -> bool {
        self.broadcast && !self.picks
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> State {
        // With one model, no draw is needed.
        let model = if self.models.len() > 1 { draws.weighted(&self.shares).unwrap_or(0) as u32 } else { 0 };
        State { model, memory: Memory::default() }
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if self.active.is_some_and(|active| turn.observation.number(active) == 0.0) {
            return Ok(());
        }
        self.make_room(state, turn).await;
        let (mut messages, thoughts) = match turn.answered_next() {
            // The turn is rerun with its answers, so its question need not be rendered again.
            Some(request) if self.think != Think::First => (request.messages.clone(), None),
            _ => self.worded(state, turn).await?,
        };
        let (decided, words) = match self.picks {
            true => self.pick(state, turn, messages.clone()).await,
            false => self.decide(state, turn, messages.clone()).await,
        };
        let thoughts = thoughts.or(words);
        for (action, value) in self.actions.iter().zip(&decided) {
            if let Some(value) = value {
                action.perform(value, turn, self.broadcast && !self.picks);
            }
        }
        let did = self.did(&decided);
        if !self.questions.is_empty() {
            Arc::make_mut(&mut messages).push(ChatMessage::text(Role::Assistant, did.clone()));
            let questions = self.questions.iter().map(|further| {
                let mut messages = messages.clone();
                Arc::make_mut(&mut messages).push(ChatMessage::text(Role::User, further.ask.clone()));
                self.question(self.request(state, turn, messages, further.response_format.clone(), &further.name), None)
            });
            // They are recorded with the calls and have no effect.
            turn.ask_all(questions.collect()).await;
        }
        if self.memory.tokens > 0 {
            let mut context = self.prompts.context(turn, &state.memory);
            let entry = self.prompts.remember(&mut context, &did, thoughts.as_deref())?;
            state.memory.keep(turn.round, entry, if self.memory.summary { None } else { Some(self.memory.tokens) });
        }
        Ok(())
    }

    fn interview(&self, state: &State, turn: &Turn<'_>, question: &str) -> Result<Option<Request>, Fault> {
        let mut context = self.prompts.context(turn, &state.memory);
        let system = ChatMessage::text(Role::System, self.prompts.render(Text::System, &context)?);
        let messages = vec![system, self.told(turn, &mut context, question)?];
        Ok(Some(self.request(state, turn, messages, ResponseFormat::Text, "interview")))
    }
}

impl Mind {
    fn request(
        &self,
        state: &State,
        turn: &Turn<'_>,
        messages: impl Into<Arc<Vec<ChatMessage>>>,
        response_format: ResponseFormat,
        purpose: &str,
    ) -> Request {
        let model = self.models.get(state.model as usize).or(self.models.first()).cloned().unwrap_or_else(|| "".into());
        Request {
            settings: self.settings,
            sample: if self.shared { 0 } else { turn.who },
            purpose: purpose.to_owned(),
            ..Request::new(model, messages, response_format)
        }
    }

    fn question(&self, request: Request, hidden: Option<Hidden>) -> Question {
        Question::new(request).hidden(hidden).retries(self.max_retries).default(NOTHING)
    }

    /// Returns the agent's prompt in its turn, with the messages that it hears.
    fn told(&self, turn: &Turn<'_>, context: &mut prompts::Context, question: &str) -> Result<ChatMessage, Fault> {
        let mut parts = vec![Part::Text(self.prompts.turn(context)?)];
        parts.extend(heard(turn, self.max_messages));
        parts.push(Part::Text(question.to_owned()));
        Ok(ChatMessage { role: Role::User, parts })
    }

    /// Returns the values of all acts, `None` for acts not performed; and the thoughts in the reply, if any.
    async fn decide(
        &self,
        state: &State,
        turn: &mut Turn<'_>,
        messages: Arc<Vec<ChatMessage>>,
    ) -> (Vec<Option<Value>>, Option<String>) {
        let in_reply = self.think == Think::InReply;
        let (response_format, purpose) = wanted(&self.actions, in_reply);
        let hidden = match self.actions.as_slice() {
            [action @ ActionForm { right: Some(slot), .. }] => {
                Some(Hidden { gold: action.gold(turn.observation.number(*slot)), ..Hidden::default() })
            }
            _ => None,
        };
        // Each act has its own default; a person sees it if all acts have one.
        let defaults = self.actions.iter().map(|action| action.default.clone()).collect::<Option<Vec<Value>>>();
        let default = defaults.map_or(NOTHING, |mut values| match response_format {
            ResponseFormat::Record(_) => {
                let thoughts = in_reply.then(|| Value::Text(String::new()));
                Value::Record(thoughts.into_iter().chain(values).collect())
            }
            _ => values.pop().unwrap_or(NOTHING),
        });
        let request = self.request(state, turn, messages, response_format, &purpose);
        let Ok(value) = turn.ask(self.question(request, hidden).default(default)).await else {
            return (self.actions.iter().map(|action| action.default.clone()).collect(), None);
        };
        let mut fields = values(value);
        let words = in_reply.then(|| thoughts(&mut fields)).flatten();
        (fields.into_iter().map(Some).collect(), words)
    }

    /// Returns the same if one act is picked: at most one has a value.
    async fn pick(
        &self,
        state: &State,
        turn: &mut Turn<'_>,
        messages: Arc<Vec<ChatMessage>>,
    ) -> (Vec<Option<Value>>, Option<String>) {
        let mut decided = vec![None; self.actions.len()];
        let offer = Offer::of(&self.actions, turn.observation, self.think == Think::InReply);
        let question = self.question(self.request(state, turn, messages, offer.response_format(), "act"), None);
        let Ok(value) = turn.ask(question).await else { return (decided, None) };
        let (picked, words) = offer.read(value);
        if let Some((place, value)) = picked {
            decided[place] = Some(value);
        }
        (decided, words)
    }

    /// Returns the mind's prompt and question in this turn, and its thoughts from a separate call.
    async fn worded(
        &self,
        state: &State,
        turn: &mut Turn<'_>,
    ) -> Result<(Arc<Vec<ChatMessage>>, Option<String>), Fault> {
        let mut context = self.prompts.context(turn, &state.memory);
        let mut messages = vec![ChatMessage::text(Role::System, self.prompts.render(Text::System, &context)?)];
        let mut question = self.prompts.render(Text::Question, &context)?;
        if self.think == Think::InReply {
            question = format!("{question}\n\n{}", self.prompts.think(&context, false)?);
        }
        let mut thoughts = None;
        if self.think == Think::First {
            let think = self.prompts.think(&context, true)?;
            messages.push(self.told(turn, &mut context, &think)?);
            let heard = turn.ask(self.request(state, turn, messages.clone(), ResponseFormat::Text, THOUGHTS)).await;
            // A mind without thoughts decides without them.
            match heard {
                Ok(Value::Text(words)) => {
                    messages.push(ChatMessage::text(Role::Assistant, words.clone()));
                    messages.push(ChatMessage::text(Role::User, question));
                    thoughts = Some(words);
                }
                _ => {
                    messages.truncate(1);
                    messages.push(self.told(turn, &mut context, &question)?);
                }
            }
        } else {
            messages.push(self.told(turn, &mut context, &question)?);
        }
        Ok((Arc::new(messages), thoughts))
    }

    /// Describes its actions in words.
    fn did(&self, decided: &[Option<Value>]) -> String {
        let all = self.actions.iter().zip(decided).filter(|(_, value)| !self.picks || value.is_some());
        let done: Vec<String> = all.map(|(action, value)| action.done(value.as_ref())).collect();
        if done.is_empty() { "nothing".into() } else { done.join("; ") }
    }

    /// Summarises memories that no longer fit, if the scenario asks for it.
    async fn make_room(&self, state: &mut State, turn: &mut Turn<'_>) {
        if !self.memory.summary || state.memory.tokens() <= u64::from(self.memory.tokens) {
            return;
        }
        let old = state.memory.older_half();
        let Ok(words) = self.prompts.sum_up(&state.memory.summary, &old, self.memory.tokens / 2) else { return };
        let request =
            self.request(state, turn, vec![ChatMessage::text(Role::User, words)], ResponseFormat::Text, "summary");
        let heard = turn.ask(request).await;
        if let Ok(Value::Text(summary)) = heard {
            state.memory.replace_older_half(summary);
        }
        // Without a summary, or if it is too long, the oldest memories are dropped.
        state.memory.cut(self.memory.tokens);
    }
}
