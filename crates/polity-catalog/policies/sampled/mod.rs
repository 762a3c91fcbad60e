//! Sampled minds: some agents ask a model, the rest do what those who are like them have answered. See README.md.

use crate::minds::cells::{By, Cells};
use crate::minds::memory::Memory;
use crate::minds::prompts::{self, Prompts, Text};
use crate::minds::{COUNTS, Deed, Given, OPEN_QUESTION, deeds, invalid, models_of, no_alternatives, wanted};
use polity_kernel::Invalid;
use polity_kernel::ask::{Hidden, Message, Part, Request, Role, Settings, Value, Want};
use polity_kernel::council::{Council, Session};
use polity_kernel::ladder::Question;
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::Sight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.council::<Sampled>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Parameters of sampled minds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; without it the scenario's `model`.
    model: Option<String>,
    /// How the model is to sample; what is not given is as the scenario's `settings` have it.
    settings: Settings,
    /// Probability with which an agent is one of those who ask, drawn at birth; 0 to 1.
    share: f64,
    /// What the rule reads: agents that are alike in it act alike. Without it all are.
    by: Vec<By>,
    /// The rule is fitted anew every so many rounds, to all answers so far.
    refit: u32,
    /// The answers of all count in each cell like so many of its own.
    smoothing: f64,
    /// Templates in place of the world's and the policy's own, by name (those of `mind`): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// The act that is asked for, one of options; without it the world's only one.
    act: Option<String>,
    /// What those do whose reply can not be used, and everybody else before the first answers; without it nothing.
    default: Option<Given>,
    /// How often a question is put again when its reply can not be used; 0 to 10.
    again: u8,
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
            again: 1,
        }
    }
}

/// Agents of which some ask.
pub struct Sampled {
    model: String,
    settings: Settings,
    share: f64,
    cells: Cells,
    refit: u32,
    smoothing: f64,
    prompts: Prompts,
    deed: Deed,
    options: usize,
    again: u8,
}

/// What an agent carries from turn to turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Whether it is one of those who ask.
    asks: bool,
    /// Its last answer: the round, its cell then, the option.
    said: Option<(u32, u16, u16)>,
}

/// What the agents of the cohort know of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Answers so far: cell by cell, by option.
    answers: Vec<u64>,
    /// The rule: of each cell the probabilities of the options, summed up. Empty before the first fit.
    rule: Vec<f64>,
}

/// Stands where a question has no usable answer; it is looked at by nobody.
const NOTHING: Value = Value::Record(Vec::new());

impl Policy for Sampled {
    const NAME: &'static str = "sampled";
    const SUMMARY: &'static str = "Some ask a model, the rest do what those who are like them have answered";
    type Params = Params;
    type State = State;

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        no_alternatives(Self::NAME, binding)?;
        let (mut models, _) = models_of(params.model.as_deref(), &[], binding)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "again", params.again)?;
        Invalid::unless(params.refit >= 1, "refit", "must be at least 1 round")?;
        let Params { share, smoothing, .. } = params;
        Invalid::within(0.0..=1.0, "share", share)?;
        let fits = smoothing > 0.0 && smoothing.is_finite();
        Invalid::unless(fits, "smoothing", format!("must be greater than 0, is {smoothing}"))?;
        let acts = params.act.map(|act| vec![act]);
        let name = match (&acts, binding.interface.acts.as_slice()) {
            (Some(acts), _) => acts.concat(),
            (None, [one]) => one.name.to_string(),
            (None, all) => {
                let names: Vec<&str> = all.iter().map(|act| act.name.as_ref()).collect();
                return Err(invalid("act", format!("which of {} is asked for?", names.join(", "))));
            }
        };
        let default = params.default.into_iter().map(|given| (name.clone(), given)).collect();
        let mut deeds = deeds(Some(&[name]), &default, binding)?;
        let Some(deed) = deeds.pop() else { return Err(invalid("act", "there is no act to ask for")) };
        let Want::Choice(options) = &deed.want else {
            let message = format!("`{}` has no options, and the rule chooses from options; take `mind`", deed.name);
            return Err(invalid("act", message));
        };
        Ok(Sampled {
            model: models.swap_remove(0),
            settings: binding.settings.with(params.settings),
            share,
            cells: Cells::open(&params.by, binding)?,
            refit: params.refit,
            smoothing,
            prompts: Prompts::open(&params.prompts, binding)?,
            options: options.len(),
            deed,
            again: params.again,
        })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    /// An open question, for the share that asks.
    fn memory_bytes(&self) -> usize {
        COUNTS + (OPEN_QUESTION as f64 * self.share) as usize
    }

    fn born(&self, _: Person<'_>, draws: &mut Draws) -> State {
        State { asks: draws.chance(self.share), said: None }
    }

    async fn act(&self, state: &mut State, turn: &mut Turn<'_>) -> Result<(), Fault> {
        let cell = self.cells.of(turn.person(), turn.sight);
        let value = match state.asks {
            true => {
                let question = self.question(turn)?;
                let settled = turn.settle_all(vec![question]).await.pop();
                let value = settled.filter(|settled| settled.defaulted.is_none()).map(|settled| settled.value);
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
        if let Some(value) = value.as_ref().or(self.deed.default.as_ref()) {
            self.deed.perform(value, turn, false);
        }
        Ok(())
    }
}

impl Council for Sampled {
    /// Answers of the round before: cell by cell, by option.
    type Tally = Vec<u64>;
    type Shared = Learned;

    fn begin(&self) -> Learned {
        Learned { answers: self.tally(), rule: Vec::new() }
    }

    fn tally(&self) -> Vec<u64> {
        vec![0; self.cells.count() * self.options]
    }

    fn count(&self, tally: &mut Vec<u64>, round: u32, state: &State, _: Person<'_>, _: Sight<'_>) {
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

    async fn confer(&self, learned: &mut Learned, tally: &Vec<u64>, session: &mut Session<'_>) -> Result<(), Fault> {
        if learned.answers.len() != tally.len() {
            // Other cells than before: the scenario has changed what the rule reads.
            *learned = self.begin();
        }
        learned.answers.iter_mut().zip(tally).for_each(|(sum, more)| *sum += more);
        if (learned.rule.is_empty() || session.round.is_multiple_of(self.refit))
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
        let system = Message::text(Role::System, self.prompts.render(Text::System, &context)?);
        let question = self.prompts.render(Text::Question, &context)?;
        let parts = vec![Part::Text(self.prompts.turn(&mut context)?), Part::Text(question)];
        let (want, purpose) = wanted(std::slice::from_ref(&self.deed), false);
        let request = Request {
            settings: self.settings,
            sample: turn.who,
            purpose,
            ..Request::new(self.model.clone(), vec![system, Message { role: Role::User, parts }], want)
        };
        let gold = self.deed.right.map(|slot| self.deed.gold(turn.sight.number(slot)));
        let hidden = gold.map(|gold| Hidden { gold, ..Hidden::default() });
        Ok(Question { request, hidden, again: self.again, default: NOTHING })
    }

    /// Relative frequencies by cell, drawn towards those of all cells where a cell has few answers (README.md).
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
                // Whatever is rounded on the way, the last option takes what is left.
                rule.push(if option + 1 == k { 1.0 } else { sum.min(1.0) });
            }
        }
        rule
    }
}
