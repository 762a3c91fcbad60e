//! Minds: agents that ask a model what to do, in typed questions. See README.md.

mod memory;
mod prompts;

use memory::Memory;
use polity_kernel::Invalid;
use polity_kernel::ask::{Hidden, Message, Part, Request, Role, Settings, Value, Want};
use polity_kernel::ladder::Question;
use polity_kernel::mail::Body;
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{ActArgument, NumberSlot};
use prompts::{Prompts, Text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<Mind>(files);
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

/// A model and the share of agents that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelShare {
    /// `provider/model`.
    model: String,
    /// Probability with which an agent is given it at birth; all sum to 1.
    share: f64,
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

/// A number, or the name of a choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Given {
    /// A number.
    Number(f64),
    /// A choice, or a text.
    Text(String),
}

impl<'de> Deserialize<'de> for Given {
    // By hand: an untagged enum would lose the place of an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl serde::de::Visitor<'_> for Read {
            type Value = Given;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_f64<E>(self, x: f64) -> Result<Given, E> {
                Ok(Given::Number(x))
            }
            fn visit_i64<E>(self, x: i64) -> Result<Given, E> {
                Ok(Given::Number(x as f64))
            }
            fn visit_u64<E>(self, x: u64) -> Result<Given, E> {
                Ok(Given::Number(x as f64))
            }
            fn visit_str<E>(self, text: &str) -> Result<Given, E> {
                Ok(Given::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Read)
    }
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

/// An act as a question.
struct Deed {
    kind: u16,
    name: String,
    argument: ActArgument,
    want: Want,
    default: Option<Value>,
    /// The sight field with the right answer, for simulated models.
    right: Option<NumberSlot>,
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
/// Bounds so far away are none.
const FAR: f64 = 1e15;
/// The field of a reply that is the decision, where there is but one.
const ANSWER: &str = "answer";
const THOUGHTS: &str = "thoughts";

fn invalid(key: &str, message: impl Into<String>) -> Invalid {
    Invalid { key: key.into(), message: message.into() }
}

/// What a world's act is asked for as.
fn want_of(name: &str, argument: &ActArgument) -> Want {
    match argument {
        ActArgument::Number { low, high } => Want::number(
            if *low < -FAR { f64::NEG_INFINITY } else { *low },
            if *high > FAR { f64::INFINITY } else { *high },
        ),
        ActArgument::Choice(options) => Want::Choice(options.clone()),
        ActArgument::Text => Want::Text,
        ActArgument::Nothing => Want::Choice(vec![name.to_owned(), format!("do not {name}")]),
    }
}

fn default_of(given: &Given, want: &Want) -> Result<Value, String> {
    match (given, want) {
        (Given::Number(x), Want::Number { low, high, .. }) if (low..=high).contains(&x) => Ok(Value::Number(*x)),
        (Given::Number(x), Want::Number { low, high, .. }) => Err(format!("must lie in {low}..={high}, is {x}")),
        (Given::Text(text), Want::Choice(options)) => match options.iter().position(|option| option == text) {
            Some(i) => Ok(Value::Choice(i as u32)),
            None => Err(format!("`{text}` is none of {}", options.join(", "))),
        },
        (Given::Text(text), Want::Text) => Ok(Value::Text(text.clone())),
        (_, Want::Number { .. }) => Err("must be a number".into()),
        (_, Want::Choice(options)) => Err(format!("must be one of {}", options.join(", "))),
        _ => Err("must be a text".into()),
    }
}

impl Policy for Mind {
    const NAME: &'static str = "mind";
    const SUMMARY: &'static str = "Ask a model what to do, in typed questions (persona, memory, thoughts)";
    type Params = Params;
    type State = State;

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (models, shares) = models_of(&params, binding)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::unless(params.again <= 10, "again", format!("must lie in 0..=10, is {}", params.again))?;
        let deeds = deeds(&params, binding)?;
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

    fn born(&self, _: Person<'_>, draws: &mut Draws) -> State {
        // With one model nothing is drawn.
        let model = if self.models.len() > 1 { draws.weighted(&self.shares).unwrap_or(0) as u32 } else { 0 };
        State { model, memory: Memory::default() }
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        self.make_room(state, turn).await;
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
        let (decided, words) = self.decide(state, turn, &messages).await;
        for (deed, value) in self.deeds.iter().zip(&decided) {
            if let Some(value) = value {
                self.perform(deed, value, turn);
            }
        }
        let did = self.did(&decided);
        if !self.questions.is_empty() {
            messages.push(Message::text(Role::Assistant, did.clone()));
            let questions = self.questions.iter().map(|further| {
                let mut messages = messages.clone();
                messages.push(Message::text(Role::User, further.ask.clone()));
                self.question(self.request(state, turn, messages, further.want.clone(), &further.name), None)
            });
            // They stand in the record of calls; nothing acts on them.
            turn.settle_all(questions.collect()).await;
        }
        if self.memory.tokens > 0 {
            let entry = self.prompts.remember(&mut context, &did, thoughts.or(words).as_deref())?;
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

/// The models that agents may be given, with their shares.
fn models_of(params: &Params, binding: &Binding<'_>) -> Result<(Vec<String>, Vec<f64>), Invalid> {
    let named = |key: &str, model: &str| {
        let message = format!("a model is named `provider/model`, for instance `sim/medium`, not `{model}`");
        Invalid::unless(model.contains('/'), key, message)
    };
    if params.models.is_empty() {
        let Some(model) = params.model.as_deref().or(binding.model) else {
            return Err(invalid(
                "",
                "which model does it ask? Write `model: sim/medium` here, or once for the whole scenario",
            ));
        };
        named(if params.model.is_some() { "model" } else { "" }, model)?;
        return Ok((vec![model.to_owned()], vec![1.0]));
    }
    Invalid::unless(params.model.is_none(), "models", "give `model` or `models`, not both")?;
    for (i, ModelShare { model, share }) in params.models.iter().enumerate() {
        named(&format!("models[{i}].model"), model)?;
        let fits = *share > 0.0 && *share <= 1.0;
        Invalid::unless(fits, &format!("models[{i}].share"), format!("lies above 0 and up to 1, not {share}"))?;
    }
    let sum: f64 = params.models.iter().map(|model| model.share).sum();
    Invalid::unless((sum - 1.0).abs() < 1e-6, "models", format!("the shares sum to {sum}, not to 1"))?;
    Ok(params.models.iter().map(|of| (of.model.clone(), of.share)).unzip())
}

/// The acts that a mind is asked for.
fn deeds(params: &Params, binding: &Binding<'_>) -> Result<Vec<Deed>, Invalid> {
    let all: Vec<String> = binding.interface.acts.iter().map(|act| act.name.to_owned()).collect();
    let names = params.acts.as_ref().unwrap_or(&all);
    Invalid::unless(!names.is_empty(), "acts", format!("the world `{}` has nothing to decide", binding.world))?;
    if let Some(name) = params.default.keys().find(|name| !names.contains(name)) {
        return Err(invalid(
            &format!("default.{name}"),
            format!("there is no such act (there are {})", names.join(", ")),
        ));
    }
    let deed = |(i, name): (usize, &String)| {
        let (kind, argument) = binding.act(name).map_err(|error| invalid(&format!("acts[{i}]"), error.message))?;
        Invalid::unless(!names[..i].contains(name), &format!("acts[{i}]"), format!("`{name}` stands here twice"))?;
        let want = want_of(name, &argument);
        let default = params.default.get(name).map(|given| default_of(given, &want)).transpose();
        let default = default.map_err(|message| invalid(&format!("default.{name}"), message))?;
        let right = binding.interface.number(binding.world, &format!("{}{name}", prompts::RIGHT)).ok();
        Ok(Deed { kind, name: name.clone(), argument, want, default, right })
    };
    names.iter().enumerate().map(deed).collect()
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
    }
}

impl Mind {
    fn request(&self, state: &State, turn: &Turn<'_>, messages: Vec<Message>, want: Want, purpose: &str) -> Request {
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
                Body::Number(x) => prompts::plain(x),
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
        messages: &[Message],
    ) -> (Vec<Option<Value>>, Option<String>) {
        let in_reply = self.think == Think::InReply;
        let (want, purpose) = match self.deeds.as_slice() {
            [deed] if in_reply => (
                Want::Record(vec![(THOUGHTS.into(), Want::Text), (ANSWER.into(), deed.want.clone())]),
                deed.name.clone(),
            ),
            [deed] => (deed.want.clone(), deed.name.clone()),
            deeds => {
                let thoughts = in_reply.then(|| (THOUGHTS.to_owned(), Want::Text));
                let wants = deeds.iter().map(|deed| (deed.name.clone(), deed.want.clone()));
                (Want::Record(thoughts.into_iter().chain(wants).collect()), "acts".to_owned())
            }
        };
        let hidden = match self.deeds.as_slice() {
            [Deed { right: Some(slot), .. }] => Some(Hidden {
                // As many digits as a person would give.
                gold: format!("{}", (turn.sight.number(*slot) * 100.0).round() / 100.0),
                ..Hidden::default()
            }),
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
        let request = self.request(state, turn, messages.to_vec(), want, &purpose);
        let question = Question { default, ..self.question(request, hidden) };
        let settled = turn.settle_all(vec![question]).await.pop();
        let value = settled.filter(|settled| settled.defaulted.is_none()).map(|settled| settled.value);
        let Some(value) = value else {
            return (self.deeds.iter().map(|deed| deed.default.clone()).collect(), None);
        };
        // An act's own value is no record.
        let mut fields = match value {
            Value::Record(fields) => fields,
            one => vec![one],
        };
        let words = match in_reply && !fields.is_empty() {
            true => fields.remove(0).as_text().map(str::to_owned),
            false => None,
        };
        (fields.into_iter().map(Some).collect(), words)
    }

    fn perform(&self, deed: &Deed, value: &Value, turn: &mut Turn<'_>) {
        match (&deed.argument, value) {
            (ActArgument::Nothing, Value::Choice(0)) => turn.act(deed.kind, 0.0),
            (ActArgument::Choice(_), Value::Choice(i)) => turn.act(deed.kind, f64::from(*i)),
            (ActArgument::Number { .. }, Value::Number(x)) => {
                turn.act(deed.kind, *x);
                if self.tell {
                    turn.tell_neighbours(0, *x);
                }
            }
            (ActArgument::Text, Value::Text(text)) => {
                turn.act_text(deed.kind, text.clone());
                if self.tell {
                    turn.tell_neighbours_text(0, text.clone());
                }
            }
            _ => {}
        }
    }

    /// What it did, in words.
    fn did(&self, decided: &[Option<Value>]) -> String {
        let deed = |(deed, value): (&Deed, &Option<Value>)| match (value, &deed.want) {
            (Some(Value::Number(x)), _) => format!("{}: {}", deed.name, prompts::plain(*x)),
            (Some(Value::Choice(i)), Want::Choice(options)) => {
                let option = options.get(*i as usize).map_or("", String::as_str);
                if deed.argument == ActArgument::Nothing {
                    option.to_owned()
                } else {
                    format!("{}: {option}", deed.name)
                }
            }
            (Some(Value::Text(text)), _) => format!("{}: {text}", deed.name),
            _ => format!("{}: nothing", deed.name),
        };
        self.deeds.iter().zip(decided).map(deed).collect::<Vec<_>>().join("; ")
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
