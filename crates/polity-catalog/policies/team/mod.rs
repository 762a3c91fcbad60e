//! A team that acts as one agent: it decides by any method of the catalogue. See README.md.

#[cfg(test)]
mod tests;

use crate::minds::memory::Memory;
use crate::minds::offer::Offer;
use crate::minds::prompts::{self, Prompts, Text};
use crate::minds::{ACTIVE, ActionForm, Given, OPEN_QUESTION, actions, heard, invalid, values, wanted};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Hidden, Part, Question, Request, ResponseFormat, Role, Settings, Value};
use polity_kernel::interface::NumberSlot;
use polity_kernel::items::{Item, Scorer};
use polity_kernel::method::{Team, TeamSource};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::{MemberSource, TextSource};
use polity_kernel::tree::Node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.policy::<TeamAgent>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Prompt to convert the verdict to the acts' format.
const DECIDED: &str = include_str!("prompts/decided.md");

/// Parameters of teams.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The method by which the team decides: a name, or {kind: NAME} with its parameters.
    method: Node,
    /// Rounds of the method per turn; by default, its usual number.
    rounds: Option<u32>,
    /// Number of members; by default, the length of `team`, or the method's usual number.
    members: Option<u32>,
    /// The members, if they differ.
    #[serde(default)]
    team: Vec<MemberSource>,
    /// `provider/model` of members that name none; by default, the scenario's `model`.
    model: Option<String>,
    /// Sampling settings of models; defaults are the scenario's `settings`.
    #[serde(default)]
    settings: Settings,
    /// Templates that replace the world's and the policy's own, by name: a text, or {file: NAME}.
    #[serde(default)]
    prompts: BTreeMap<String, TextSource>,
    /// The acts that it may perform; by default, all of the world's.
    acts: Option<Vec<String>>,
    /// Values by act, used when the team reaches no decision. An act without one is not performed.
    #[serde(default)]
    default: BTreeMap<String, Given>,
    /// Tokens (four characters each) of memories of earlier rounds in the prompts; 0: none.
    #[serde(default = "tokens")]
    memory: u32,
    /// Number of retries when a member's reply cannot be used; 0 to 10.
    #[serde(default = "one")]
    max_retries: u8,
    /// Maximum number of neighbours' messages that it hears per round, drawn from all that came.
    #[serde(default = "messages")]
    max_messages: u32,
    /// Report its actions to those who hear it.
    #[serde(default = "yes")]
    broadcast: bool,
}

fn tokens() -> u32 {
    500
}

fn one() -> u8 {
    1
}

fn messages() -> u32 {
    20
}

fn yes() -> bool {
    true
}

/// Agents that are teams.
pub struct TeamAgent {
    team: Team,
    prompts: Prompts,
    actions: Vec<ActionForm>,
    /// Whether it picks one of them per turn.
    picks: bool,
    /// The observation field that is 0 if an agent has nothing to decide.
    active: Option<NumberSlot>,
    memory: u32,
    retries: u8,
    max_messages: usize,
    broadcast: bool,
}

/// A team's state between turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    memory: Memory,
}

impl Policy for TeamAgent {
    const NAME: &'static str = "team";
    const SUMMARY: &'static str =
        "A team that acts as one agent and decides what to do by a method (debate, vote, judge)";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        let actions = actions(params.acts.as_deref(), &params.default, setup)?;
        let team = setup.team(&TeamSource {
            method: &params.method,
            members: params.members,
            listed: &params.team,
            model: params.model.as_deref(),
            settings: params.settings,
            rounds: params.rounds,
            retries: params.max_retries,
        })?;
        let prompts = Prompts::open(&params.prompts, setup)?;
        let picks = setup.interface.alternatives;
        let agent = TeamAgent {
            team,
            prompts,
            actions,
            picks,
            active: setup.number(ACTIVE).ok(),
            memory: params.memory,
            retries: params.max_retries,
            max_messages: params.max_messages as usize,
            broadcast: params.broadcast && !picks,
        };
        let suits = agent.team.suits(&agent.item(String::new(), None));
        suits.map_err(|why| invalid("method", format!("it cannot decide what to do in a world: {why}")))?;
        Ok(agent)
    }

    fn models(&self) -> Vec<String> {
        self.team.models()
    }

    /// An open question per member with its prompts, and five bytes per token of memory.
    fn memory_bytes(&self) -> usize {
        OPEN_QUESTION * self.team.members().len() + 5 * self.memory as usize
    }

    fn tells_neighbours(&self) -> bool {
        self.broadcast
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) -> State {
        State::default()
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        if self.active.is_some_and(|active| turn.observation.number(active) == 0.0) {
            return Ok(());
        }
        let mut context = self.prompts.context(turn, &state.memory);
        let system = ChatMessage::text(Role::System, self.prompts.render(Text::System, &context)?);
        let mut parts = vec![Part::Text(self.prompts.turn(&mut context)?)];
        parts.extend(heard(turn, self.max_messages));
        parts.push(Part::Text(self.prompts.render(Text::Question, &context)?));
        let told = ChatMessage { role: Role::User, parts };

        let item = self.item(format!("{}\n\n{}", system.rendered(), told.rendered()), self.right(turn));
        let verdict = turn.deliberate(&self.team, &item).await?;
        let decided = match verdict.answer {
            Some(answer) => match self.read(&item, &answer) {
                Some(value) => vec![Some(value)],
                None => self.put_into_form(turn, vec![system, told], answer).await,
            },
            None => self.defaults(),
        };

        let mut done = Vec::new();
        for (action, value) in self.actions.iter().zip(&decided) {
            if let Some(value) = value {
                action.perform(value, turn, self.broadcast);
            }
            if !self.picks || value.is_some() {
                done.push(action.done(value.as_ref()));
            }
        }
        if self.memory > 0 {
            let did = if done.is_empty() { "nothing".to_owned() } else { done.join("; ") };
            let mut context = self.prompts.context(turn, &state.memory);
            let entry = self.prompts.remember(&mut context, &did, None)?;
            state.memory.keep(turn.round, entry, Some(self.memory));
        }
        Ok(())
    }
}

impl TeamAgent {
    fn defaults(&self) -> Vec<Option<Value>> {
        self.actions.iter().map(|action| action.default.clone()).collect()
    }

    /// Returns the right answer to the only act, for simulated models, if the world knows it.
    fn right(&self, turn: &Turn<'_>) -> Option<String> {
        match self.actions.as_slice() {
            [action @ ActionForm { right: Some(slot), .. }] if !self.picks => {
                Some(action.gold(turn.observation.number(*slot)))
            }
            _ => None,
        }
    }

    /// Returns the only act, if an answer in words can be read as its argument.
    fn only(&self) -> Option<&ActionForm> {
        match self.actions.as_slice() {
            [action] if !self.picks => Some(action),
            _ => None,
        }
    }

    /// Returns the item that the team works on.
    fn item(&self, question: String, right: Option<String>) -> Item {
        match self.only().map(|action| &action.response_format) {
            Some(ResponseFormat::Choice(options)) => {
                let item = Item { options: options.clone(), scorer: Scorer::Choice, ..Item::default() };
                let letters = item.letters();
                let listed: Vec<String> =
                    letters.iter().zip(options).map(|(letter, option)| format!("{letter}. {option}")).collect();
                let place = right.and_then(|right| options.iter().position(|option| *option == right));
                let gold = place.and_then(|place| letters.get(place).cloned());
                Item { question: format!("{question}\n\n{}", listed.join("\n")), gold, ..item }
            }
            Some(ResponseFormat::Number { .. }) => {
                Item { question, gold: right, scorer: Scorer::Number, ..Item::default() }
            }
            _ => Item { question, gold: right, ..Item::default() },
        }
    }

    /// Reads an answer in words as the argument of the only act; `None`: it must be converted to the format.
    fn read(&self, item: &Item, answer: &str) -> Option<Value> {
        let found = item.extracted(answer)?;
        match &self.only()?.response_format {
            ResponseFormat::Choice(_) => {
                let place = item.letters().iter().position(|letter| *letter == found)?;
                Some(Value::Choice(place as u32))
            }
            ResponseFormat::Number { low, high, whole } => {
                let x: f64 = found.parse().ok()?;
                ((*low..=*high).contains(&x) && (!whole || x.fract() == 0.0)).then_some(Value::Number(x))
            }
            ResponseFormat::Text => Some(Value::Text(found)),
            _ => None,
        }
    }

    /// Lets the first member convert the verdict to the format of the world's acts: the values of all, `None` for acts not performed.
    async fn put_into_form(
        &self,
        turn: &mut Turn<'_>,
        mut messages: Vec<ChatMessage>,
        answer: String,
    ) -> Vec<Option<Value>> {
        let offer = self.picks.then(|| Offer::of(&self.actions, turn.observation, false));
        let (response_format, purpose) = match &offer {
            Some(offer) => (offer.response_format(), "act".to_owned()),
            None => wanted(&self.actions, false),
        };
        if let Some(told) = messages.last_mut() {
            told.parts.push(Part::Said { by: "Your team".into(), answer, reasons: String::new() });
            told.parts.push(Part::Text(DECIDED.trim_end().to_owned()));
        }
        let speaker = &self.team.members()[0];
        let request = Request {
            settings: speaker.settings,
            sample: turn.who,
            purpose,
            ..Request::new(&speaker.model, messages, response_format)
        };
        let hidden = self.right(turn).map(|gold| Hidden { gold, ..Hidden::default() });
        let question = Question::new(request).hidden(hidden).retries(self.retries);
        let Ok(value) = turn.ask(question).await else { return self.defaults() };
        let Some(offer) = offer else { return values(value).into_iter().map(Some).collect() };
        let mut decided = vec![None; self.actions.len()];
        if let (Some((place, value)), _) = offer.read(value) {
            decided[place] = Some(value);
        }
        decided
    }
}
