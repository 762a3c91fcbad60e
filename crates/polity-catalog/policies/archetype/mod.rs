//! Archetypes: groups of agents that are alike; each group is asked once, and its agents draw their acts. See README.md.

mod prompts;

use crate::minds::cells::{By, Cells};
use crate::minds::offer::{NOTHING as NO_ACT, Offer};
use crate::minds::templates::plain;
use crate::minds::{ACTIVE, COUNTS, Deed, Given, deeds, invalid, models_of, values, wanted};
use polity_kernel::ask::{Hidden, Message, Part, Request, Role, Settings, Value, Want};
use polity_kernel::council::{Council, Session};
use polity_kernel::ladder::{Question, Settled};
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{ActArgument, FieldKind, NumberSlot, Sight, TableSlot};
use polity_kernel::{AgentId, Invalid};
use prompts::{Known, Prompts, Seen};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Adds the leaf.
pub fn register(registry: &mut Registry, files: LeafFiles) {
    registry.council::<Archetype>(LeafFiles { prompts: prompts::OWN, ..files });
}

/// Parameters of archetypes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// `provider/model`; without it the scenario's `model`.
    model: Option<String>,
    /// How the model is to sample; what is not given is as the scenario's `settings` have it.
    settings: Settings,
    /// What tells groups apart; without it all are one.
    by: Vec<By>,
    /// Templates in place of the world's and the policy's own, by name (README.md lists them): a text, or {file: NAME}.
    prompts: BTreeMap<String, TextSource>,
    /// The acts that agents may perform; without it all that the world has (of alternatives by shares, those that carry no number and no
    /// choice).
    acts: Option<Vec<String>>,
    /// What the agents of a group do when no reply can be used: values by act. An act without one is not performed.
    default: BTreeMap<String, Given>,
    /// 0: a group is asked which share of it chooses what. Otherwise it is asked so many times what one of it decides; its agents draw from
    /// the answers.
    samples: u32,
    /// Groups are asked every so many rounds, from the first on; between them the last answer holds.
    every: u32,
    /// Rounds that a group is reminded of.
    memory: u32,
    /// How often a question is put again when its reply can not be used; 0 to 10.
    again: u8,
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
            again: 1,
        }
    }
}

/// Agents that act as their group's answer has it.
pub struct Archetype {
    model: String,
    settings: Settings,
    cells: Cells,
    prompts: Prompts,
    deeds: Vec<Deed>,
    /// What shares are asked of: (act, option), in order of act; empty where samples are taken, and where acts are alternatives.
    asked: Vec<(usize, usize)>,
    /// Whether the acts are alternatives: of each agent one, or none.
    picks: bool,
    /// The number that is 0 for who has nothing to decide.
    active: Option<NumberSlot>,
    /// Numbers that agents see.
    numbers: usize,
    /// Tables that agents see.
    tables: Vec<TableSlot>,
    samples: u32,
    every: u32,
    memory: usize,
    again: u8,
}

/// What the agents of a group do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ways {
    /// Probabilities of the options of each act, summed up: the last is 1. Of alternatives one list, of the acts and of none of them.
    Shares(Vec<Vec<f64>>),
    /// Answers, each the values of all acts (`None`: not performed), equally likely. None: nobody acts.
    Samples(Vec<Vec<Option<Value>>>),
}

/// A group, as its agents know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    ways: Ways,
    /// What it is reminded of, oldest first.
    past: Vec<String>,
}

/// Agents counted by group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Census {
    people: Vec<u64>,
    /// The first agent of each, in whose name it is asked; [`AgentId::MAX`] where there is none.
    first: Vec<AgentId>,
    /// Sums of the numbers that its agents see: group by group, by slot.
    sums: Vec<f64>,
    /// Rows of the tables that its agents see, and sums over these of each column: group by group, by table.
    rows: Vec<u64>,
    of_rows: Vec<f64>,
}

/// Stands where a question has no usable answer; it is looked at by nobody.
const NOTHING: Value = Value::Record(Vec::new());
/// Groups are asked how many of so many decide something.
const OF: f64 = 100.0;

/// The options that agents choose from, of an act that has some.
fn options(deed: &Deed) -> Option<&[String]> {
    match &deed.want {
        Want::Choice(options) => Some(options),
        _ => None,
    }
}

/// The options whose shares are asked for: of two one is enough, the one that is to do something.
fn asked_of(deed: &Deed) -> Option<Vec<usize>> {
    let options = options(deed)?;
    Some(match (options.len(), &deed.argument) {
        (2, ActArgument::Nothing) => vec![0],
        (2, _) => vec![1],
        (n, _) => (0..n).collect(),
    })
}

/// Numbers of people as probabilities, summed up: the last is 1. `None`: they are all 0.
fn summed(people: &[f64]) -> Option<Vec<f64>> {
    let all: f64 = people.iter().sum();
    let mut sum = 0.0;
    let summed = people.iter().map(|n| {
        sum += n;
        sum / all
    });
    (all > 0.0).then(|| summed.collect())
}

/// Probabilities that are summed up, in words.
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
    const SUMMARY: &'static str = "Do what a share of one's group does; a model is asked once a group (AgentTorch)";
    type Params = Params;
    type State = ();

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        let (mut models, _) = models_of(params.model.as_deref(), &[], binding)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "again", params.again)?;
        Invalid::unless(params.every >= 1, "every", "must be at least 1 round")?;
        Invalid::within(0..=100, "samples", params.samples)?;
        let cells = Cells::open(&params.by, binding)?;
        let picks = binding.interface.alternatives;
        let mut deeds = deeds(params.acts.as_deref(), &params.default, binding)?;
        let mut asked = Vec::new();
        if picks && params.samples == 0 {
            let draws = |deed: &Deed| {
                !matches!(deed.argument, ActArgument::Number { .. } | ActArgument::Choice(_) | ActArgument::Record(_))
            };
            if let (Some(_), Some(i)) = (&params.acts, deeds.iter().position(|deed| !draws(deed))) {
                let message = format!(
                    "`{}` carries what no share of a group tells; leave it out, or write `samples: 5`",
                    deeds[i].name
                );
                return Err(invalid(&format!("acts[{i}]"), message));
            }
            deeds.retain(draws);
        } else if params.samples == 0 {
            for (i, deed) in deeds.iter().enumerate() {
                let Some(options) = asked_of(deed) else {
                    let message =
                        format!("`{}` has no options that shares of a group choose; write `samples: 5`", deed.name);
                    return Err(invalid("samples", message));
                };
                asked.extend(options.into_iter().map(|option| (i, option)));
            }
        }
        let named = |(act, option): &(usize, usize)| {
            let option = options(&deeds[*act]).and_then(|options| options.get(*option)).cloned().unwrap_or_default();
            (deeds[*act].name.clone(), option)
        };
        let doc = |deed: &Deed| {
            binding.interface.acts.get(usize::from(deed.kind)).map_or("", |act| act.doc.as_ref()).to_owned()
        };
        let named: Vec<(String, String)> = match picks {
            false => asked.iter().map(named).collect(),
            true => {
                let none = (NO_ACT.to_owned(), "none of these".to_owned());
                deeds.iter().map(|deed| (deed.name.clone(), doc(deed))).chain([none]).collect()
            }
        };
        let prompts = Prompts::open(&params.prompts, binding, &cells, &named)?;
        Ok(Archetype {
            model: models.swap_remove(0),
            settings: binding.settings.with(params.settings),
            cells,
            prompts,
            deeds,
            asked,
            picks,
            active: binding.number(ACTIVE).ok(),
            tables: prompts::tables(binding)?,
            numbers: binding.interface.sight.iter().filter(|field| field.kind == FieldKind::Number).count(),
            samples: params.samples,
            every: params.every,
            memory: params.memory as usize,
            again: params.again,
        })
    }

    fn models(&self) -> Vec<String> {
        vec![self.model.clone()]
    }

    /// An agent's share of its group's counts.
    fn memory_bytes(&self) -> usize {
        COUNTS
    }

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        if self.rests(turn.sight) {
            return Ok(());
        }
        let groups: &Vec<Group> = turn.shared()?;
        let Some(group) = groups.get(self.cells.of(turn.person(), turn.sight)) else { return Ok(()) };
        match &group.ways {
            Ways::Shares(of_acts) if self.picks => {
                let draw = turn.draws.unit();
                let picked = of_acts.first().map(|summed| summed.iter().take_while(|sum| draw >= **sum).count());
                // Beyond the acts there is nothing.
                if let Some(deed) = picked.and_then(|picked| self.deeds.get(picked)) {
                    deed.perform_on_first(None, turn);
                }
            }
            Ways::Shares(of_acts) => {
                for (deed, summed) in self.deeds.iter().zip(of_acts) {
                    let draw = turn.draws.unit();
                    let option = summed.iter().take_while(|sum| draw >= **sum).count();
                    deed.perform(&Value::Choice(option as u32), turn, false);
                }
            }
            Ways::Samples(samples) if !samples.is_empty() => {
                let sample = &samples[turn.draws.below(samples.len() as u64) as usize];
                for (deed, value) in self.deeds.iter().zip(sample) {
                    match value {
                        Some(value) if self.picks => deed.perform_on_first(Some(value), turn),
                        Some(value) => deed.perform(value, turn, false),
                        None => {}
                    }
                }
            }
            Ways::Samples(_) => {}
        }
        Ok(())
    }
}

impl Council for Archetype {
    type Tally = Census;
    type Shared = Vec<Group>;

    fn begin(&self) -> Vec<Group> {
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

    fn count(&self, census: &mut Census, _: u32, (): &(), person: Person<'_>, sight: Sight<'_>) {
        if self.rests(sight) {
            return;
        }
        let group = self.cells.of(person, sight);
        census.people[group] += 1;
        census.first[group] = census.first[group].min(person.id);
        let sums = &mut census.sums[group * self.numbers..][..self.numbers];
        for (slot, sum) in sums.iter_mut().enumerate() {
            *sum += sight.number(NumberSlot(slot));
        }
        let mut sums = census.of_rows[group * self.columns()..].iter_mut();
        for (i, slot) in self.tables.iter().enumerate() {
            let rows = sight.table(*slot);
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

    async fn confer(&self, groups: &mut Vec<Group>, census: &Census, session: &mut Session<'_>) -> Result<(), Fault> {
        if groups.len() != self.cells.count() {
            // Other groups than before: the scenario has changed what tells them apart.
            *groups = self.begin();
        }
        if !session.round.is_multiple_of(self.every) {
            return Ok(());
        }
        let (mut conferring, mut questions) = (Vec::new(), Vec::new());
        for (cell, group) in groups.iter().enumerate().filter(|(cell, _)| census.people[*cell] > 0) {
            let people = census.people[cell];
            let sums = &census.sums[cell * self.numbers..][..self.numbers];
            let means: Vec<f64> = sums.iter().map(|sum| sum / people as f64).collect();
            let tables = self.tables_of(census, cell);
            let known = Known { cell, people, round: session.round, means: &means, tables: &tables, past: &group.past };
            let context = self.prompts.context(&self.cells, &known);
            let question = self.question(cell, &context, &means)?;
            for sample in 0..self.samples.max(1) {
                let mut question = question.clone();
                question.request.sample += sample;
                questions.push((census.first[cell], question));
            }
            conferring.push((cell, context));
        }
        let settled = session.settle_all(questions).await;
        for ((cell, context), settled) in conferring.iter().zip(settled.chunks(self.samples.max(1) as usize)) {
            let ways = self.ways(settled);
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
    /// Whether an agent that sees this has nothing to decide in the round: it is not counted, and does nothing.
    fn rests(&self, sight: Sight<'_>) -> bool {
        self.active.is_some_and(|active| sight.number(active) == 0.0)
    }

    /// Columns of all tables.
    fn columns(&self) -> usize {
        self.tables.iter().map(|slot| slot.1).sum()
    }

    /// What the agents of a group see in tables.
    fn tables_of(&self, census: &Census, cell: usize) -> Vec<Seen> {
        let mut sums = census.of_rows[cell * self.columns()..].iter();
        let of_table = |(i, slot): (usize, &TableSlot)| {
            let rows = census.rows[cell * self.tables.len() + i] as f64;
            let means = sums.by_ref().take(slot.1).map(|sum| sum / rows.max(1.0)).collect();
            Seen { rows: rows / census.people[cell].max(1) as f64, means }
        };
        self.tables.iter().enumerate().map(of_table).collect()
    }

    /// What a group is asked.
    fn question(&self, cell: usize, context: &prompts::Context, means: &[f64]) -> Result<Question, Fault> {
        let (want, purpose) = self.want();
        let (turn, question) = self.prompts.told(context, self.samples == 0)?;
        let told = Message { role: Role::User, parts: vec![Part::Text(turn), Part::Text(question)] };
        let request = Request {
            settings: self.settings,
            // Groups with the very same words are different people all the same.
            sample: cell as u32 * self.samples.max(1),
            purpose,
            ..Request::new(
                self.model.clone(),
                vec![Message::text(Role::System, self.prompts.system(context)?), told],
                want,
            )
        };
        // What simulated models may know: the mean of what is right for its agents.
        let hidden = match self.deeds.as_slice() {
            [deed @ Deed { right: Some(slot), .. }] if !self.picks => {
                let right = means.get(slot.0).copied().unwrap_or(0.0);
                let gold = match self.asked.as_slice() {
                    [] => Some(deed.gold(right)),
                    [_] => Some(plain((OF * right).round())),
                    _ => None,
                };
                gold.map(|gold| Hidden { gold, ..Hidden::default() })
            }
            _ => None,
        };
        Ok(Question { request, hidden, again: self.again, default: NOTHING })
    }

    /// The form of an answer, and what it is for in a word.
    fn want(&self) -> (Want, String) {
        let share = || Want::number(0.0, OF);
        if self.picks {
            let names = self.deeds.iter().map(|deed| deed.name.clone()).chain([NO_ACT.to_owned()]);
            return match self.samples {
                0 => (Want::Record(names.map(|name| (name, share())).collect()), "acts".to_owned()),
                _ => (Offer::of_many(&self.deeds).want(), "act".to_owned()),
            };
        }
        let (samples, purpose) = wanted(&self.deeds, false);
        let want = match self.asked.as_slice() {
            [] => samples,
            [_] => share(),
            all => {
                let name = |(act, option): &(usize, usize)| {
                    let deed = &self.deeds[*act];
                    let option = options(deed).and_then(|options| options.get(*option)).cloned().unwrap_or_default();
                    if self.deeds.len() == 1 { option } else { format!("{} {option}", deed.name) }
                };
                Want::Record(all.iter().map(|of| (name(of), share())).collect())
            }
        };
        (want, purpose)
    }

    /// What the agents of a group do, by the answers to its questions.
    fn ways(&self, settled: &[Settled]) -> Ways {
        let mut usable = settled.iter().filter(|settled| settled.defaulted.is_none()).peekable();
        let ways = match (usable.peek(), self.samples) {
            (Some(settled), 0) => self.shares(&values(settled.value.clone())).map(Ways::Shares),
            (Some(_), _) => Some(Ways::Samples(usable.map(|settled| self.sample(settled.value.clone())).collect())),
            (None, _) => None,
        };
        ways.unwrap_or_else(|| {
            let default: Vec<Option<Value>> = self.deeds.iter().map(|deed| deed.default.clone()).collect();
            Ways::Samples(if default.iter().any(Option::is_some) { vec![default] } else { Vec::new() })
        })
    }

    /// What one of a group does, by an answer: the values of all acts.
    fn sample(&self, answer: Value) -> Vec<Option<Value>> {
        if !self.picks {
            return values(answer).into_iter().map(Some).collect();
        }
        let mut decided = vec![None; self.deeds.len()];
        if let (Some((place, value)), _) = Offer::of_many(&self.deeds).read(answer) {
            decided[place] = Some(value);
        }
        decided
    }

    /// Numbers of people as probabilities, summed up. `None`: of some act nobody chooses anything, which is no answer.
    fn shares(&self, values: &[Value]) -> Option<Vec<Vec<f64>>> {
        if self.picks {
            let number = |value: &Value| match value {
                Value::Number(x) => Some(*x),
                _ => None,
            };
            let people: Vec<f64> = values.iter().map(number).collect::<Option<_>>()?;
            return (people.len() == self.deeds.len() + 1).then(|| summed(&people)).flatten().map(|all| vec![all]);
        }
        let of_act = |(i, deed): (usize, &Deed)| {
            let number = |(place, (_, option)): (usize, &(usize, usize))| match values.get(place) {
                Some(Value::Number(x)) => Some((*option, *x)),
                _ => None,
            };
            let own = self.asked.iter().enumerate().filter(|(_, (act, _))| *act == i);
            let given: Vec<(usize, f64)> = own.map(number).collect::<Option<_>>()?;
            let mut people = vec![0.0; options(deed).map_or(0, <[String]>::len)];
            given.iter().for_each(|(option, n)| people[*option] = *n);
            if let ([(option, n)], 2) = (given.as_slice(), people.len()) {
                people[1 - option] = OF - n;
            }
            summed(&people)
        };
        self.deeds.iter().enumerate().map(of_act).collect()
    }

    /// What a group does, in words.
    fn did(&self, ways: &Ways) -> String {
        match ways {
            Ways::Shares(of_acts) if self.picks => {
                let names = self.deeds.iter().map(|deed| deed.name.as_str()).chain([NO_ACT]);
                parts(names, of_acts.first().map_or(&[], Vec::as_slice))
            }
            Ways::Shares(of_acts) => {
                let of_act = |(deed, summed): (&Deed, &Vec<f64>)| {
                    let options = options(deed).unwrap_or_default().iter().map(String::as_str);
                    format!("{}: {}", deed.name, parts(options, summed))
                };
                self.deeds.iter().zip(of_acts).map(of_act).collect::<Vec<_>>().join("; ")
            }
            Ways::Samples(samples) => {
                let of_sample = |values: &Vec<Option<Value>>| {
                    let all = self.deeds.iter().zip(values).filter(|(_, value)| !self.picks || value.is_some());
                    let done = |(deed, value): (&Deed, &Option<Value>)| match (&deed.shown, value) {
                        // What it was about differs from agent to agent.
                        (Some(_), Some(value)) if self.picks => match value.as_text() {
                            Some(words) => format!("{}: {words}", deed.name),
                            None => deed.name.clone(),
                        },
                        _ => deed.done(value.as_ref()),
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
