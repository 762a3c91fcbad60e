//! Archetypes: groups of similar agents; each group is asked once, and its agents draw their acts. See README.md.

mod prompts;
#[cfg(test)]
mod tests;

use crate::minds::cells::{By, Cells};
use crate::minds::offer::{NOTHING as NO_ACT, Offer};
use crate::minds::templates::plain;
use crate::minds::{ACTIVE, ActionForm, COUNTS, Given, actions, invalid, models_of, values, wanted};
use polity_kernel::ask::{
    ChatMessage, Hidden, Part, Question, Reply, Request, ResponseFormat, Role, Settings, Target, Value,
};
use polity_kernel::cohort::{CohortContext, CohortPolicy};
use polity_kernel::interface::{ActionArgument, FieldKind, NumberSlot, Observation, TableSlot};
use polity_kernel::policy::{Fault, Person, Policy, PolicySetup, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::{AgentId, Invalid};
use prompts::{Known, Prompts, Seen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.cohort_policy::<Archetype>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Parameters of archetypes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; by default, the scenario's `model`.
    model: Option<String>,
    /// Sampling settings of the model; defaults are the scenario's `settings`.
    settings: Settings,
    /// Criteria for groups; without them, there is one group.
    by: Vec<By>,
    /// Templates that replace the world's and the policy's own, by name (README.md lists them): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// The acts that agents may perform; by default, all of the world's (if they are alternatives decided by shares, those without a
    /// number or choice).
    acts: Option<Vec<String>>,
    /// Values by act, used by a group's agents when no reply can be used. An act without one is not performed.
    default: BTreeMap<String, Given>,
    /// Number of sampled answers per group; its agents draw from them. With 0, a group is instead asked which share of it chooses what.
    samples: u32,
    /// Number of rounds between questions to a group; meanwhile the last answer is reused.
    every: u32,
    /// Number of rounds in a group's memory.
    memory: u32,
    /// Number of retries when a reply cannot be used; 0 to 10.
    max_retries: u8,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            model: None,
            settings: Settings::default(),
            by: Vec::new(),
            prompts: BTreeMap::new(),
            acts: None,
            default: BTreeMap::new(),
            samples: 0,
            every: 1,
            memory: 3,
            max_retries: 1,
        }
    }
}

/// Agents that act according to their group's answer.
pub struct Archetype {
    model: Target,
    settings: Settings,
    cells: Cells,
    prompts: Prompts,
    actions: Vec<ActionForm>,
    /// Shares to ask for: (act, option), in order of act; empty with samples, and with alternative acts.
    asked: Vec<(usize, usize)>,
    /// Whether the acts are alternatives: each agent performs one, or none.
    picks: bool,
    /// The number that is 0 for an agent with nothing to decide.
    active: Option<NumberSlot>,
    /// Numbers that agents see.
    numbers: usize,
    /// Tables that agents see.
    tables: Vec<TableSlot>,
    samples: u32,
    every: u32,
    memory: usize,
    max_retries: u8,
}

/// The decision of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ways {
    /// Cumulative probabilities of the options of each act: the last is 1. For alternatives, one list over the acts and none of them.
    Shares(Vec<Vec<f64>>),
    /// Equally likely answers, each with the values of all acts (`None`: not performed). If empty, nobody acts.
    Samples(Vec<Vec<Option<Value>>>),
}

/// The shared state of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    ways: Ways,
    /// Its memories, oldest first.
    past: Vec<String>,
}

/// Counts of agents by group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Census {
    people: Vec<u64>,
    /// The first agent of each group, in whose name it is asked; [`AgentId::MAX`] if it is empty.
    first: Vec<AgentId>,
    /// Sums of the observed numbers: group by group, by slot.
    sums: Vec<f64>,
    /// Rows of the observed tables, and sums of each column: group by group, by table.
    rows: Vec<u64>,
    of_rows: Vec<f64>,
}

/// Placeholder for a question without a usable answer; it is never read.
const NOTHING: Value = Value::Record(Vec::new());
/// Groups are asked for numbers of people out of this many.
const OF: f64 = 100.0;

/// Returns the options that agents choose from, if the act has some.
fn options(action: &ActionForm) -> Option<&[String]> {
    match &action.response_format {
        ResponseFormat::Choice(options) => Some(options),
        _ => None,
    }
}

/// Returns the options whose shares are asked for: of two, only the one that does something.
fn asked_of(action: &ActionForm) -> Option<Vec<usize>> {
    let options = options(action)?;
    Some(match (options.len(), &action.argument) {
        (2, ActionArgument::Nothing) => vec![0],
        (2, _) => vec![1],
        (n, _) => (0..n).collect(),
    })
}

/// Converts numbers of people to cumulative probabilities: the last is 1. `None`: they are all 0.
fn summed(people: &[f64]) -> Option<Vec<f64>> {
    let all: f64 = people.iter().sum();
    let mut sum = 0.0;
    let summed = people.iter().map(|n| {
        sum += n;
        sum / all
    });
    (all > 0.0).then(|| summed.collect())
}

/// Formats cumulative probabilities in words.
fn parts<'a>(options: impl Iterator<Item = &'a str>, summed: &[f64]) -> String {
    let mut before = 0.0;
    let parts = options.zip(summed).map(|(option, sum)| {
        let share = sum - before;
        before = *sum;
        format!("{option} {} %", plain((share * 100.0).round()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

impl Policy for Archetype {
    const NAME: &'static str = "archetype";
    const SUMMARY: &'static str = "Do what a share of one's group does; a model is asked once per group (AgentTorch)";
    type Params = Params;
    type State = ();

    fn open(params: Params, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let (mut models, _) = models_of(params.model.as_deref(), &[], setup)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "max_retries", params.max_retries)?;
        Invalid::unless(params.every >= 1, "every", "must be at least 1 round")?;
        Invalid::within(0..=100, "samples", params.samples)?;
        let cells = Cells::open(&params.by, setup)?;
        let picks = setup.interface.alternatives;
        let mut actions = actions(params.acts.as_deref(), &params.default, setup)?;
        let mut asked = Vec::new();
        if picks && params.samples == 0 {
            let draws = |action: &ActionForm| {
                !matches!(
                    action.argument,
                    ActionArgument::Number { .. } | ActionArgument::Choice(_) | ActionArgument::Record(_)
                )
            };
            if let (Some(_), Some(i)) = (&params.acts, actions.iter().position(|action| !draws(action))) {
                let message = format!(
                    "`{}` carries a value that shares of a group cannot give; leave it out, or write `samples: 5`",
                    actions[i].name
                );
                return Err(invalid(&format!("acts[{i}]"), message));
            }
            actions.retain(draws);
        } else if params.samples == 0 {
            for (i, action) in actions.iter().enumerate() {
                let Some(options) = asked_of(action) else {
                    let message =
                        format!("`{}` has no options for shares of a group to choose; write `samples: 5`", action.name);
                    return Err(invalid("samples", message));
                };
                asked.extend(options.into_iter().map(|option| (i, option)));
            }
        }
        let named = |(act, option): &(usize, usize)| {
            let option = options(&actions[*act]).and_then(|options| options.get(*option)).cloned().unwrap_or_default();
            (actions[*act].name.clone(), option)
        };
        let doc = |action: &ActionForm| {
            setup.interface.acts.get(usize::from(action.kind)).map_or("", |act| act.doc.as_ref()).to_owned()
        };
        let named: Vec<(String, String)> = match picks {
            false => asked.iter().map(named).collect(),
            true => {
                let none = (NO_ACT.to_owned(), "none of these".to_owned());
                actions.iter().map(|action| (action.name.clone(), doc(action))).chain([none]).collect()
            }
        };
        let prompts = Prompts::open(&params.prompts, setup, &cells, &named)?;
        Ok(Archetype {
            model: models.swap_remove(0).into(),
            settings: setup.settings.with(params.settings),
            cells,
            prompts,
            actions,
            asked,
            picks,
            active: setup.number(ACTIVE).ok(),
            tables: prompts::tables(setup)?,
            numbers: setup.interface.observation.iter().filter(|field| field.kind == FieldKind::Number).count(),
            samples: params.samples,
            every: params.every,
            memory: params.memory as usize,
            max_retries: params.max_retries,
        })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.to_string()]
    }

    /// An agent's share of its group's counts.
    fn memory_bytes(&self) -> usize {
        COUNTS
    }

    fn init_state(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if self.rests(turn.observation) {
            return Ok(());
        }
        let groups: &Vec<Group> = turn.shared()?;
        let Some(group) = groups.get(self.cells.of(turn.person(), turn.observation)) else { return Ok(()) };
        match &group.ways {
            Ways::Shares(of_acts) if self.picks => {
                let draw = turn.draws.unit();
                let picked = of_acts.first().map(|summed| summed.iter().take_while(|sum| draw >= **sum).count());
                // Beyond the acts there is nothing.
                if let Some(action) = picked.and_then(|picked| self.actions.get(picked)) {
                    action.perform_on_first(None, turn);
                }
            }
            Ways::Shares(of_acts) => {
                for (action, summed) in self.actions.iter().zip(of_acts) {
                    let draw = turn.draws.unit();
                    let option = summed.iter().take_while(|sum| draw >= **sum).count();
                    action.perform(&Value::Choice(option as u32), turn, false);
                }
            }
            Ways::Samples(samples) if !samples.is_empty() => {
                let sample = &samples[turn.draws.below(samples.len() as u64) as usize];
                for (action, value) in self.actions.iter().zip(sample) {
                    match value {
                        Some(value) if self.picks => action.perform_on_first(Some(value), turn),
                        Some(value) => action.perform(value, turn, false),
                        None => {}
                    }
                }
            }
            Ways::Samples(_) => {}
        }
        Ok(())
    }
}

impl CohortPolicy for Archetype {
    type Tally = Census;
    type Shared = Vec<Group>;

    fn init_shared(&self) -> Vec<Group> {
        vec![Group { ways: Ways::Samples(Vec::new()), past: Vec::new() }; self.cells.count()]
    }

    fn tally(&self) -> Census {
        let groups = self.cells.count();
        Census {
            people: vec![0; groups],
            first: vec![AgentId::MAX; groups],
            sums: vec![0.0; groups * self.numbers],
            rows: vec![0; groups * self.tables.len()],
            of_rows: vec![0.0; groups * self.columns()],
        }
    }

    fn count(&self, census: &mut Census, _: u32, (): &(), person: Person<'_>, observation: Observation<'_>) {
        if self.rests(observation) {
            return;
        }
        let group = self.cells.of(person, observation);
        census.people[group] += 1;
        census.first[group] = census.first[group].min(person.id);
        let sums = &mut census.sums[group * self.numbers..][..self.numbers];
        for (slot, sum) in sums.iter_mut().enumerate() {
            *sum += observation.number(NumberSlot(slot));
        }
        let mut sums = census.of_rows[group * self.columns()..].iter_mut();
        for (i, slot) in self.tables.iter().enumerate() {
            let rows = observation.table(*slot);
            census.rows[group * self.tables.len() + i] += rows.len() as u64;
            for (column, sum) in sums.by_ref().take(slot.1).enumerate() {
                *sum += rows.clone().map(|row| row[column]).sum::<f64>();
            }
        }
    }

    fn merge(&self, mut left: Census, right: Census) -> Census {
        left.people.iter_mut().zip(right.people).for_each(|(sum, more)| *sum += more);
        left.first.iter_mut().zip(right.first).for_each(|(first, other)| *first = other.min(*first));
        left.sums.iter_mut().zip(right.sums).for_each(|(sum, more)| *sum += more);
        left.rows.iter_mut().zip(right.rows).for_each(|(sum, more)| *sum += more);
        left.of_rows.iter_mut().zip(right.of_rows).for_each(|(sum, more)| *sum += more);
        left
    }

    async fn cohort_step(
        &self,
        groups: &mut Vec<Group>,
        census: &Census,
        context: &mut CohortContext<'_>,
    ) -> Result<(), Fault> {
        if groups.len() != self.cells.count() {
            // The scenario has changed the criteria, so the groups differ.
            *groups = self.init_shared();
        }
        if !context.round.is_multiple_of(self.every) {
            return Ok(());
        }
        let (mut conferring, mut questions) = (Vec::new(), Vec::new());
        for (cell, group) in groups.iter().enumerate().filter(|(cell, _)| census.people[*cell] > 0) {
            let people = census.people[cell];
            let sums = &census.sums[cell * self.numbers..][..self.numbers];
            let means: Vec<f64> = sums.iter().map(|sum| sum / people as f64).collect();
            let tables = self.tables_of(census, cell);
            let known = Known { cell, people, round: context.round, means: &means, tables: &tables, past: &group.past };
            let context = self.prompts.context(&self.cells, &known);
            let question = self.question(cell, &context, &means)?;
            for sample in 0..self.samples.max(1) {
                let mut question = question.clone();
                question.request.sample += sample;
                questions.push((census.first[cell], question));
            }
            conferring.push((cell, context));
        }
        let heard = context.ask_all(questions).await;
        for ((cell, context), heard) in conferring.iter().zip(heard.chunks(self.samples.max(1) as usize)) {
            let ways = self.ways(heard);
            let group = &mut groups[*cell];
            group.past.push(self.prompts.remember(context, &self.did(&ways))?);
            let forgotten = group.past.len().saturating_sub(self.memory);
            group.past.drain(..forgotten);
            group.ways = ways;
        }
        Ok(())
    }
}

impl Archetype {
    /// Returns whether an agent with this observation has nothing to decide in the round: it is not counted, and does nothing.
    fn rests(&self, observation: Observation<'_>) -> bool {
        self.active.is_some_and(|active| observation.number(active) == 0.0)
    }

    /// Returns the number of columns of all tables.
    fn columns(&self) -> usize {
        self.tables.iter().map(|slot| slot.1).sum()
    }

    /// Returns the tables as the agents of a group see them.
    fn tables_of(&self, census: &Census, cell: usize) -> Vec<Seen> {
        let mut sums = census.of_rows[cell * self.columns()..].iter();
        let of_table = |(i, slot): (usize, &TableSlot)| {
            let rows = census.rows[cell * self.tables.len() + i] as f64;
            let means = sums.by_ref().take(slot.1).map(|sum| sum / rows.max(1.0)).collect();
            Seen { rows: rows / census.people[cell].max(1) as f64, means }
        };
        self.tables.iter().enumerate().map(of_table).collect()
    }

    /// Returns a group's question.
    fn question(&self, cell: usize, context: &prompts::Context, means: &[f64]) -> Result<Question, Fault> {
        let (response_format, purpose) = self.response_format();
        let (turn, question) = self.prompts.told(context, self.samples == 0)?;
        let told = ChatMessage { role: Role::User, parts: vec![Part::Text(turn), Part::Text(question)] };
        let request = Request {
            settings: self.settings,
            // Groups with identical prompts are still different people.
            sample: cell as u32 * self.samples.max(1),
            purpose,
            ..Request::new(
                self.model.clone(),
                vec![ChatMessage::text(Role::System, self.prompts.system(context)?), told],
                response_format,
            )
        };
        // For simulated models: the mean of its agents' right answers.
        let hidden = match self.actions.as_slice() {
            [action @ ActionForm { right: Some(slot), .. }] if !self.picks => {
                let right = means.get(slot.0).copied().unwrap_or(0.0);
                let gold = match self.asked.as_slice() {
                    [] => Some(action.gold(right)),
                    [_] => Some(plain((OF * right).round())),
                    _ => None,
                };
                gold.map(|gold| Hidden { gold, ..Hidden::default() })
            }
            _ => None,
        };
        Ok(Question::new(request).hidden(hidden).retries(self.max_retries).default(NOTHING))
    }

    /// Returns the format of an answer, and its purpose in a word.
    fn response_format(&self) -> (ResponseFormat, String) {
        let share = || ResponseFormat::number(0.0, OF);
        if self.picks {
            let names = self.actions.iter().map(|action| action.name.clone()).chain([NO_ACT.to_owned()]);
            return match self.samples {
                0 => (ResponseFormat::Record(names.map(|name| (name, share())).collect()), "acts".to_owned()),
                _ => (Offer::of_many(&self.actions).response_format(), "act".to_owned()),
            };
        }
        let (samples, purpose) = wanted(&self.actions, false);
        let response_format = match self.asked.as_slice() {
            [] => samples,
            [_] => share(),
            all => {
                let name = |(act, option): &(usize, usize)| {
                    let action = &self.actions[*act];
                    let option = options(action).and_then(|options| options.get(*option)).cloned().unwrap_or_default();
                    if self.actions.len() == 1 { option } else { format!("{} {option}", action.name) }
                };
                ResponseFormat::Record(all.iter().map(|of| (name(of), share())).collect())
            }
        };
        (response_format, purpose)
    }

    /// Returns the decision of a group, from the answers to its questions.
    fn ways(&self, heard: &[Reply]) -> Ways {
        let mut usable = heard.iter().flatten().peekable();
        let ways = match (usable.peek(), self.samples) {
            (Some(value), 0) => self.shares(&values((*value).clone())).map(Ways::Shares),
            (Some(_), _) => Some(Ways::Samples(usable.map(|value| self.sample(value.clone())).collect())),
            (None, _) => None,
        };
        ways.unwrap_or_else(|| {
            let default: Vec<Option<Value>> = self.actions.iter().map(|action| action.default.clone()).collect();
            Ways::Samples(if default.iter().any(Option::is_some) { vec![default] } else { Vec::new() })
        })
    }

    /// Returns the decision of one agent of a group, from an answer: the values of all acts.
    fn sample(&self, answer: Value) -> Vec<Option<Value>> {
        if !self.picks {
            return values(answer).into_iter().map(Some).collect();
        }
        let mut decided = vec![None; self.actions.len()];
        if let (Some((place, value)), _) = Offer::of_many(&self.actions).read(answer) {
            decided[place] = Some(value);
        }
        decided
    }

    /// Converts numbers of people to probabilities. `None`: for some act nobody chooses anything, which is not an answer.
    fn shares(&self, values: &[Value]) -> Option<Vec<Vec<f64>>> {
        if self.picks {
            let number = |value: &Value| match value {
                Value::Number(x) => Some(*x),
                _ => None,
            };
            let people: Vec<f64> = values.iter().map(number).collect::<Option<_>>()?;
            return (people.len() == self.actions.len() + 1).then(|| summed(&people)).flatten().map(|all| vec![all]);
        }
        let of_act = |(i, action): (usize, &ActionForm)| {
            let number = |(place, (_, option)): (usize, &(usize, usize))| match values.get(place) {
                Some(Value::Number(x)) => Some((*option, *x)),
                _ => None,
            };
            let own = self.asked.iter().enumerate().filter(|(_, (act, _))| *act == i);
            let given: Vec<(usize, f64)> = own.map(number).collect::<Option<_>>()?;
            let mut people = vec![0.0; options(action).map_or(0, <[String]>::len)];
            given.iter().for_each(|(option, n)| people[*option] = *n);
            if let ([(option, n)], 2) = (given.as_slice(), people.len()) {
                people[1 - option] = OF - n;
            }
            summed(&people)
        };
        self.actions.iter().enumerate().map(of_act).collect()
    }

    /// Describes a group's actions in words.
    fn did(&self, ways: &Ways) -> String {
        match ways {
            Ways::Shares(of_acts) if self.picks => {
                let names = self.actions.iter().map(|action| action.name.as_str()).chain([NO_ACT]);
                parts(names, of_acts.first().map_or(&[], Vec::as_slice))
            }
            Ways::Shares(of_acts) => {
                let of_act = |(action, summed): (&ActionForm, &Vec<f64>)| {
                    let options = options(action).unwrap_or_default().iter().map(String::as_str);
                    format!("{}: {}", action.name, parts(options, summed))
                };
                self.actions.iter().zip(of_acts).map(of_act).collect::<Vec<_>>().join("; ")
            }
            Ways::Samples(samples) => {
                let of_sample = |values: &Vec<Option<Value>>| {
                    let all = self.actions.iter().zip(values).filter(|(_, value)| !self.picks || value.is_some());
                    let done = |(action, value): (&ActionForm, &Option<Value>)| match (&action.shown, value) {
                        // The target differs from agent to agent.
                        (Some(_), Some(value)) if self.picks => match value.as_text() {
                            Some(words) => format!("{}: {words}", action.name),
                            None => action.name.clone(),
                        },
                        _ => action.done(value.as_ref()),
                    };
                    let done: Vec<String> = all.map(done).collect();
                    if done.is_empty() { NO_ACT.to_owned() } else { done.join("; ") }
                };
                match samples.is_empty() {
                    true => "nobody decided anything".into(),
                    false => samples.iter().map(of_sample).collect::<Vec<_>>().join(" | "),
                }
            }
        }
    }
}
