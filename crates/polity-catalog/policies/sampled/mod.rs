//! Sampled minds: some agents ask a model, the others act like similar agents' answers. See README.md.

use crate::minds::cells::{By, Cells};
use crate::minds::memory::Memory;
use crate::minds::prompts::{self, Prompts, Text};
use crate::minds::{ActionForm, COUNTS, Given, OPEN_QUESTION, actions, invalid, models_of, no_alternatives, wanted};
use polity_kernel::Invalid;
use polity_kernel::ask::{ChatMessage, Hidden, Part, Question, Request, ResponseFormat, Role, Settings, Target, Value};
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::Observation;
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Sampled>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Parameters of sampled minds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; by default, the scenario's `model`.
    model: Option<String>,
    /// Sampling settings of the model; defaults are the scenario's `settings`.
    settings: Settings,
    /// Probability that an agent asks, drawn at birth; 0 to 1.
    share: f64,
    /// Inputs of the rule: agents with the same values act alike. By default, all agents are alike.
    by: Vec<By>,
    /// Number of rounds between fits of the rule, each to all answers so far.
    refit: u32,
    /// Weight of the overall answers in each cell, as a number of the cell's own answers.
    smoothing: f64,
    /// Templates that replace the world's and the policy's own, by name (those of `mind`): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// The act that is asked for, a choice of options; by default, the world's only act.
    act: Option<String>,
    /// Option for agents without a usable reply, and for all others before the first answers; without it they do nothing.
    default: Option<Given>,
    /// Number of retries when a reply cannot be used; 0 to 10.
    max_retries: u8,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            model: None,
            settings: Settings::default(),
            share: 0.01,
            by: Vec::new(),
            refit: 1,
            smoothing: 5.0,
            prompts: BTreeMap::new(),
            act: None,
            default: None,
            max_retries: 1,
        }
    }
}

/// Agents of which some ask.
pub struct Sampled {
    model: Target,
    settings: Settings,
    share: f64,
    cells: Cells,
    refit: u32,
    smoothing: f64,
    prompts: Prompts,
    action: ActionForm,
    options: usize,
    max_retries: u8,
}

/// An agent's state between turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Whether it asks.
    asks: bool,
    /// Its last answer: the round, its cell then, the option.
    said: Option<(u32, u16, u16)>,
}

/// The cohort's shared knowledge of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Answers so far: cell by cell, by option.
    answers: Vec<u64>,
    /// The rule: for each cell, cumulative probabilities of the options. Empty before the first fit.
    rule: Vec<f64>,
}

/// Placeholder for a question without a usable answer; it is never read.
const NOTHING: Value = Value::Record(Vec::new());

impl Policy for Sampled {
    const NAME: &'static str = "sampled";
    const SUMMARY: &'static str = "Some agents ask a model; the others do what agents like them have answered";
    type Params = Params;
    type State = State;

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        no_alternatives(Self::NAME, setup)?;
        let (mut models, _) = models_of(params.model.as_deref(), &[], setup)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "max_retries", params.max_retries)?;
        Invalid::unless(params.refit >= 1, "refit", "must be at least 1 round")?;
        let Params { share, smoothing, .. } = params;
        Invalid::within(0.0..=1.0, "share", share)?;
        let fits = smoothing > 0.0 && smoothing.is_finite();
        Invalid::unless(fits, "smoothing", format!("must be greater than 0, is {smoothing}"))?;
        let acts = params.act.map(|act| vec![act]);
        let name = match (&acts, setup.interface.acts.as_slice()) {
            (Some(acts), _) => acts.concat(),
            (None, [one]) => one.name.to_string(),
            (None, all) => {
                let names: Vec<&str> = all.iter().map(|act| act.name.as_ref()).collect();
                return Err(invalid("act", format!("name the act to ask for (there are {})", names.join(", "))));
            }
        };
        let default = params.default.into_iter().map(|given| (name.clone(), given)).collect();
        let mut actions = actions(Some(&[name]), &default, setup)?;
        let Some(action) = actions.pop() else { return Err(invalid("act", "there is no act to ask for")) };
        let ResponseFormat::Choice(options) = &action.response_format else {
            let message = format!("`{}` has no options, but the rule chooses from options; use `mind`", action.name);
            return Err(invalid("act", message));
        };
        Ok(Sampled {
            model: models.swap_remove(0).into(),
            settings: setup.settings.with(params.settings),
            share,
            cells: Cells::open(&params.by, setup)?,
            refit: params.refit,
            smoothing,
            prompts: Prompts::open(&params.prompts, setup)?,
            options: options.len(),
            action,
            max_retries: params.max_retries,
        })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.to_string()]
    }

    /// An open question, for the share that asks.
    fn memory_bytes(&self) -> usize {
        COUNTS + (OPEN_QUESTION as f64 * self.share) as usize
    }

    fn init_state(&self, _: Person<'_>, draws: &mut Draws) -> State {
        State { asks: draws.chance(self.share), said: None }
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let cell = self.cells.of(turn.person(), turn.observation);
        let value = match state.asks {
            true => {
                let question = self.question(turn)?;
                let value = turn.ask(question).await.ok();
                if let Some(Value::Choice(option)) = &value {
                    state.said = Some((turn.round, cell as u16, *option as u16));
                }
                value
            }
            false => {
                let learned: &Learned = turn.shared()?;
                learned.rule.get(cell * self.options..(cell + 1) * self.options).map(|summed| {
                    let draw = turn.draws.unit();
                    Value::Choice(summed.iter().take_while(|sum| draw >= **sum).count() as u32)
                })
            }
        };
        if let Some(value) = value.as_ref().or(self.action.default.as_ref()) {
            self.action.perform(value, turn, false);
        }
        Ok(())
    }
}

impl CohortPolicy for Sampled {
    /// Answers of the previous round: cell by cell, by option.
    type Tally = Vec<u64>;
    type Shared = Learned;

    fn init_shared(&self) -> Learned {
        Learned { answers: self.tally(), rule: Vec::new() }
    }

    fn tally(&self) -> Vec<u64> {
        vec![0; self.cells.count() * self.options]
    }

    fn count(&self, tally: &mut Vec<u64>, round: u32, state: &State, _: Person<'_>, _: Observation<'_>) {
        if let Some((said, cell, option)) = state.said
            && said + 1 == round
            && let Some(sum) = tally.get_mut(usize::from(cell) * self.options + usize::from(option))
        {
            *sum += 1;
        }
    }

    fn merge(&self, mut left: Vec<u64>, right: Vec<u64>) -> Vec<u64> {
        left.iter_mut().zip(right).for_each(|(sum, more)| *sum += more);
        left
    }

    async fn cohort_step(
        &self,
        learned: &mut Learned,
        tally: &Vec<u64>,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        if learned.answers.len() != tally.len() {
            // The scenario has changed the rule's inputs, so the cells differ.
            *learned = self.init_shared();
        }
        learned.answers.iter_mut().zip(tally).for_each(|(sum, more)| *sum += more);
        if (learned.rule.is_empty() || context.round.is_multiple_of(self.refit))
            && learned.answers.iter().any(|n| *n > 0)
        {
            learned.rule = self.fitted(&learned.answers);
        }
        Ok(())
    }
}

impl Sampled {
    fn question(&self, turn: &Turn<'_>) -> Result<Question, Fault> {
        let mut context = self.prompts.context(turn, &Memory::default());
        let system = ChatMessage::text(Role::System, self.prompts.render(Text::System, &context)?);
        let question = self.prompts.render(Text::Question, &context)?;
        let parts = vec![Part::Text(self.prompts.turn(&mut context)?), Part::Text(question)];
        let (response_format, purpose) = wanted(std::slice::from_ref(&self.action), false);
        let request = Request {
            settings: self.settings,
            sample: turn.who,
            purpose,
            ..Request::new(self.model.clone(), vec![system, ChatMessage { role: Role::User, parts }], response_format)
        };
        let gold = self.action.right.map(|slot| self.action.gold(turn.observation.number(slot)));
        let hidden = gold.map(|gold| Hidden { gold, ..Hidden::default() });
        Ok(Question::new(request).hidden(hidden).retries(self.max_retries).default(NOTHING))
    }

    /// Returns relative frequencies by cell, smoothed towards the overall ones where a cell has few answers (README.md).
    fn fitted(&self, answers: &[u64]) -> Vec<f64> {
        let k = self.options;
        let of_option = |option: usize| answers.iter().skip(option).step_by(k).sum::<u64>();
        let all: u64 = answers.iter().sum();
        let pooled: Vec<f64> = (0..k).map(|i| (of_option(i) as f64 + 1.0) / (all as f64 + k as f64)).collect();
        let mut rule = Vec::with_capacity(answers.len());
        for cell in answers.chunks(k) {
            let n: u64 = cell.iter().sum();
            let mut sum = 0.0;
            for (option, own) in cell.iter().enumerate() {
                sum += (*own as f64 + self.smoothing * pooled[option]) / (n as f64 + self.smoothing);
                // The last option takes the rounding error.
                rule.push(if option + 1 == k { 1.0 } else { sum.min(1.0) });
            }
        }
        rule
    }
}
