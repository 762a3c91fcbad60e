//! Minds: agents that ask a model what to do, in typed questions. See README.md.

use crate::minds::memory::Memory;
use crate::minds::offer::Offer;
use crate::minds::prompts::{self, Prompts, Text};
use crate::minds::templates::plain;
use crate::minds::{
    ACTIVE, Deed, Given, ModelShare, OPEN_QUESTION, THOUGHTS, deeds, invalid, models_of, thoughts, values, wanted,
};
use polity_kernel::Invalid;
use polity_kernel::ask::{Hidden, Message, Part, Request, Role, Settings, Value, Want};
use polity_kernel::ladder::Question;
use polity_kernel::mail::Body;
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::NumberSlot;
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
    /// It decides at once.
    #[default]
    No,
    /// Its reply holds its thoughts, and its decision after them.
    InReply,
    /// It is asked for its thoughts, and for its decision in a call of its own.
    First,
}

/// What a mind keeps of earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keeping {
    /// Tokens (four letters each) that memories may take in a prompt; what is oldest goes first. 0: nothing is kept.
    tokens: u32,
    /// Whether what goes is first summed up by the model, which is a call of its own now and then.
    summary: bool,
}

impl Default for Keeping {
    fn default() -> Self {
        Keeping { tokens: 500, summary: false }
    }
}

/// A further question that every mind is asked in every round, after its decision. The answers are recorded, nothing acts on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Further {
    /// Its name, in tables.
    name: String,
    /// Its words.
    ask: String,
    /// The kind of answer.
    want: Want,
}

/// Parameters of minds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; without it the scenario's `model`.
    model: Option<String>,
    /// Several models; each agent is given one at birth.
    models: Vec<ModelShare>,
    /// How the model is to sample; what is not given is as the scenario's `settings` have it.
    settings: Settings,
    /// Templates in place of the world's and the policy's own, by name (README.md lists them): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// Whether it thinks before it decides: `no`, `in-reply` or `first`.
    think: Think,
    /// What it keeps of earlier rounds.
    memory: Keeping,
    /// The acts that it may perform; without it all that the world has.
    acts: Option<Vec<String>>,
    /// What it does when no reply can be used: values by act. An act without one is not performed.
    default: BTreeMap<String, Given>,
    /// Further questions of every round.
    questions: Vec<Further>,
    /// How often a question is put again when its reply can not be used; 0 to 10.
    again: u8,
    /// Letters that it hears in a round at most, drawn from all that came.
    hear: u32,
    /// Whether those who hear it are told what it does.
    tell: bool,
    /// Whether agents whose prompts are the very same share one call and its answer. Without it each has a sample of its own.
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
            again: 1,
            hear: 20,
            tell: true,
            shared: false,
        }
    }
}

/// Agents that ask a model.
pub struct Mind {
    /// Names and shares.
    models: Vec<String>,
    shares: Vec<f64>,
    settings: Settings,
    prompts: Prompts,
    think: Think,
    memory: Keeping,
    deeds: Vec<Deed>,
    /// Whether it picks one of them a turn.
    picks: bool,
    /// Where the world says that an agent has nothing to decide.
    active: Option<NumberSlot>,
    questions: Vec<Further>,
    again: u8,
    hear: usize,
    tell: bool,
    shared: bool,
}

/// What a mind carries from turn to turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Which of the models it has.
    model: u32,
    memory: Memory,
}

/// Stands where an act that was not decided has no value; it is looked at by nobody.
const NOTHING: Value = Value::Record(Vec::new());

impl Policy for Mind {
    const NAME: &'static str = "mind";
    const SUMMARY: &'static str = "Ask a model what to do, in typed questions (persona, memory, thoughts)";
    type Params = Params;
    type State = State;

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (models, shares) = models_of(params.model.as_deref(), &params.models, binding)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "again", params.again)?;
        let deeds = deeds(params.acts.as_deref(), &params.default, binding)?;
        for (i, question) in params.questions.iter().enumerate() {
            let known = params.questions[..i].iter().map(|q| &q.name).chain(deeds.iter().map(|deed| &deed.name));
            let fits = !question.name.is_empty()
                && question.name != THOUGHTS
                && !known.clone().any(|name| *name == question.name);
            let key = format!("questions[{i}].name");
            Invalid::unless(fits, &key, format!("`{}` is taken, or no name", question.name))?;
            check_want(&question.want).map_err(|message| invalid(&format!("questions[{i}].want"), message))?;
        }
        let prompts = Prompts::open(&params.prompts, binding)?;
        Ok(Mind {
            models,
            shares,
            settings: binding.settings.with(params.settings),
            prompts,
            think: params.think,
            memory: params.memory,
            deeds,
            picks: binding.interface.alternatives,
            active: binding.number(ACTIVE).ok(),
            questions: params.questions,
            again: params.again,
            hear: params.hear as usize,
            tell: params.tell,
            shared: params.shared,
        })
    }

    fn models(&self) -> Vec<String> {
        self.models.clone()
    }

    /// An open question with its prompts, and five bytes for each token that it remembers.
    fn memory_bytes(&self) -> usize {
        OPEN_QUESTION + 5 * self.memory.tokens as usize
    }

    fn tells_neighbours(&self) -> bool {
        self.tell && !self.picks
    }

    fn born(&self, _: Person<'_>, draws: &mut Draws) -> State {
        // With one model nothing is drawn.
        let model = if self.models.len() > 1 { draws.weighted(&self.shares).unwrap_or(0) as u32 } else { 0 };
        State { model, memory: Memory::default() }
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if self.active.is_some_and(|active| turn.sight.number(active) == 0.0) {
            return Ok(());
        }
        self.make_room(state, turn).await;
        let (mut messages, thoughts) = match turn.answered_next() {
            // The turn is run again with its answers: what it asked need not be put into words again.
            Some(request) if self.think != Think::First => (request.messages.clone(), None),
            _ => self.worded(state, turn).await?,
        };
        let (decided, words) = match self.picks {
            true => self.pick(state, turn, messages.clone()).await,
            false => self.decide(state, turn, messages.clone()).await,
        };
        let thoughts = thoughts.or(words);
        for (deed, value) in self.deeds.iter().zip(&decided) {
            if let Some(value) = value {
                deed.perform(value, turn, self.tell && !self.picks);
            }
        }
        let did = self.did(&decided);
        if !self.questions.is_empty() {
            Arc::make_mut(&mut messages).push(Message::text(Role::Assistant, did.clone()));
            let questions = self.questions.iter().map(|further| {
                let mut messages = messages.clone();
                Arc::make_mut(&mut messages).push(Message::text(Role::User, further.ask.clone()));
                self.question(self.request(state, turn, messages, further.want.clone(), &further.name), None)
            });
            // They stand in the record of calls; nothing acts on them.
            turn.settle_all(questions.collect()).await;
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
        let system = Message::text(Role::System, self.prompts.render(Text::System, &context)?);
        let messages = vec![system, self.told(turn, &mut context, question)?];
        Ok(Some(self.request(state, turn, messages, Want::Text, "interview")))
    }
}

fn check_want(want: &Want) -> Result<(), String> {
    match want {
        Want::Text => Ok(()),
        Want::Choice(options) if options.is_empty() => Err("a choice has at least one option".into()),
        Want::Choice(_) => Ok(()),
        Want::Number { low, high, .. } if low <= high => Ok(()),
        Want::Number { low, high, .. } => Err(format!("no number lies in {low}..={high}")),
        Want::List { of, least, most } if least <= most && *most > 0 => check_want(of),
        Want::List { .. } => Err("`most` must be at least 1, and at least `least`".into()),
        Want::Record(fields) if fields.is_empty() => Err("a record has at least one field".into()),
        Want::Record(fields) => fields.iter().try_for_each(|(_, want)| check_want(want)),
        Want::Vector => Err("a vector is nothing that a mind says".into()),
    }
}

impl Mind {
    fn request(
        &self,
        state: &State,
        turn: &Turn<'_>,
        messages: impl Into<Arc<Vec<Message>>>,
        want: Want,
        purpose: &str,
    ) -> Request {
        let model = self.models.get(state.model as usize).or(self.models.first()).cloned().unwrap_or_default();
        Request {
            settings: self.settings,
            sample: if self.shared { 0 } else { turn.who },
            purpose: purpose.to_owned(),
            ..Request::new(model, messages, want)
        }
    }

    fn question(&self, request: Request, hidden: Option<Hidden>) -> Question {
        Question { request, hidden, again: self.again, default: NOTHING }
    }

    /// What the agent is told in its turn, with the letters that it hears.
    fn told(&self, turn: &Turn<'_>, context: &mut prompts::Context, question: &str) -> Result<Message, Fault> {
        let mut parts = vec![Part::Text(self.prompts.turn(context)?)];
        let inbox = turn.inbox();
        let mut heard: Vec<usize> = (0..inbox.len()).collect();
        if heard.len() > self.hear {
            turn.draws.clone().shuffle(&mut heard);
            heard.truncate(self.hear);
            heard.sort_unstable();
        }
        for mail in heard.into_iter().filter_map(|i| inbox.get(i)) {
            let answer = match mail.body {
                Body::Number(x) => plain(x),
                Body::Text(text) => text.to_owned(),
            };
            parts.push(Part::Said { by: format!("Agent {}", mail.from), answer, reasons: String::new() });
        }
        parts.push(Part::Text(question.to_owned()));
        Ok(Message { role: Role::User, parts })
    }

    /// The values of all acts, each `None` where it is not performed; and the thoughts in the reply, if any.
    async fn decide(
        &self,
        state: &State,
        turn: &mut Turn<'_>,
        messages: Arc<Vec<Message>>,
    ) -> (Vec<Option<Value>>, Option<String>) {
        let in_reply = self.think == Think::InReply;
        let (want, purpose) = wanted(&self.deeds, in_reply);
        let hidden = match self.deeds.as_slice() {
            [deed @ Deed { right: Some(slot), .. }] => {
                Some(Hidden { gold: deed.gold(turn.sight.number(*slot)), ..Hidden::default() })
            }
            _ => None,
        };
        // What holds in the end is each act's own default; a person is shown it where all acts have one.
        let defaults = self.deeds.iter().map(|deed| deed.default.clone()).collect::<Option<Vec<Value>>>();
        let default = defaults.map_or(NOTHING, |mut values| match want {
            Want::Record(_) => {
                let thoughts = in_reply.then(|| Value::Text(String::new()));
                Value::Record(thoughts.into_iter().chain(values).collect())
            }
            _ => values.pop().unwrap_or(NOTHING),
        });
        let request = self.request(state, turn, messages, want, &purpose);
        let question = Question { default, ..self.question(request, hidden) };
        let settled = turn.settle_all(vec![question]).await.pop();
        let value = settled.filter(|settled| settled.defaulted.is_none()).map(|settled| settled.value);
        let Some(value) = value else {
            return (self.deeds.iter().map(|deed| deed.default.clone()).collect(), None);
        };
        let mut fields = values(value);
        let words = in_reply.then(|| thoughts(&mut fields)).flatten();
        (fields.into_iter().map(Some).collect(), words)
    }

    /// The same where one act is picked: at most one has a value.
    async fn pick(
        &self,
        state: &State,
        turn: &mut Turn<'_>,
        messages: Arc<Vec<Message>>,
    ) -> (Vec<Option<Value>>, Option<String>) {
        let mut decided = vec![None; self.deeds.len()];
        let offer = Offer::of(&self.deeds, turn.sight, self.think == Think::InReply);
        let question = self.question(self.request(state, turn, messages, offer.want(), "act"), None);
        let settled = turn.settle_all(vec![question]).await.pop();
        let Some(settled) = settled.filter(|settled| settled.defaulted.is_none()) else { return (decided, None) };
        let (picked, words) = offer.read(settled.value);
        if let Some((place, value)) = picked {
            decided[place] = Some(value);
        }
        (decided, words)
    }

    /// What the mind is told and asked in this turn, and what it thought of that in a call of its own.
    async fn worded(&self, state: &State, turn: &mut Turn<'_>) -> Result<(Arc<Vec<Message>>, Option<String>), Fault> {
        let mut context = self.prompts.context(turn, &state.memory);
        let mut messages = vec![Message::text(Role::System, self.prompts.render(Text::System, &context)?)];
        let mut question = self.prompts.render(Text::Question, &context)?;
        if self.think == Think::InReply {
            question = format!("{question}\n\n{}", self.prompts.think(&context, false)?);
        }
        let mut thoughts = None;
        if self.think == Think::First {
            let think = self.prompts.think(&context, true)?;
            messages.push(self.told(turn, &mut context, &think)?);
            let heard = turn.ask(self.request(state, turn, messages.clone(), Want::Text, THOUGHTS), None).await;
            // A mind that does not get to think decides without.
            match heard {
                Ok(Value::Text(words)) => {
                    messages.push(Message::text(Role::Assistant, words.clone()));
                    messages.push(Message::text(Role::User, question));
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

    /// What it did, in words.
    fn did(&self, decided: &[Option<Value>]) -> String {
        let all = self.deeds.iter().zip(decided).filter(|(_, value)| !self.picks || value.is_some());
        let done: Vec<String> = all.map(|(deed, value)| deed.done(value.as_ref())).collect();
        if done.is_empty() { "nothing".into() } else { done.join("; ") }
    }

    /// Has what no longer fits into the memory summed up, where the scenario asks for it.
    async fn make_room(&self, state: &mut State, turn: &mut Turn<'_>) {
        if !self.memory.summary || state.memory.tokens() <= u64::from(self.memory.tokens) {
            return;
        }
        let old = state.memory.older_half();
        let Ok(words) = self.prompts.sum_up(&state.memory.summary, &old, self.memory.tokens / 2) else { return };
        let request = self.request(state, turn, vec![Message::text(Role::User, words)], Want::Text, "summary");
        let heard = turn.ask(request, None).await;
        if let Ok(Value::Text(summary)) = heard {
            state.memory.replace_older_half(summary);
        }
        // A summary that is too long, or was not had: what is oldest goes.
        state.memory.cut(self.memory.tokens);
    }
}
