//! Archetypes: groups of agents that are alike; each group is asked once, and its agents draw their acts. See README.md.

mod prompts;

use crate::minds::cells::{By, Cells};
use crate::minds::templates::plain;
use crate::minds::{Deed, Given, deeds, invalid, models_of, no_alternatives, values, wanted};
use polity_kernel::ask::{Hidden, Message, Part, Request, Role, Settings, Value, Want};
use polity_kernel::council::{Council, Session};
use polity_kernel::ladder::{Question, Settled};
use polity_kernel::policy::{Binding, Fault, Person, Policy, Turn};
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::rng::Draws;
use polity_kernel::scenario::TextSource;
use polity_kernel::sight::{ActArgument, FieldKind, NumberSlot, Sight};
use polity_kernel::{AgentId, Invalid};
use prompts::{Known, Prompts};
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
    /// The acts that agents may perform; without it all that the world has.
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
    /// What shares are asked of: (act, option), in order of act; empty where samples are taken.
    asked: Vec<(usize, usize)>,
    /// Numbers that agents see.
    numbers: usize,
    samples: u32,
    every: u32,
    memory: usize,
    again: u8,
}

/// What the agents of a group do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ways {
    /// Probabilities of the options of each act, summed up: the last is 1.
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

impl Policy for Archetype {
    const NAME: &'static str = "archetype";
    const SUMMARY: &'static str = "Do what a share of one's group does; a model is asked once a group (AgentTorch)";
    type Params = Params;
    type State = ();

    fn open(params: Params, binding: &Binding<'_>) -> Result<Self, Invalid> {
        no_alternatives(Self::NAME, binding)?;
        let (mut models, _) = models_of(params.model.as_deref(), &[], binding)?;
        params.settings.check().map_err(|error| invalid(&format!("settings.{}", error.key), error.message))?;
        Invalid::within(0..=10, "again", params.again)?;
        Invalid::unless(params.every >= 1, "every", "must be at least 1 round")?;
        Invalid::within(0..=100, "samples", params.samples)?;
        let cells = Cells::open(&params.by, binding)?;
        let deeds = deeds(params.acts.as_deref(), &params.default, binding)?;
        let mut asked = Vec::new();
        if params.samples == 0 {
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
        let named: Vec<(String, String)> = asked.iter().map(named).collect();
        let prompts = Prompts::open(&params.prompts, binding, &cells, &named)?;
        Ok(Archetype {
            model: models.swap_remove(0),
            settings: binding.settings.with(params.settings),
            cells,
            prompts,
            deeds,
            asked,
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

    fn born(&self, _: Person<'_>, _: &mut Draws) {}

    async fn act(&self, (): &mut (), turn: &mut Turn<'_>) -> Result<(), Fault> {
        let groups: &Vec<Group> = turn.shared()?;
        let Some(group) = groups.get(self.cells.of(turn.person(), turn.sight)) else { return Ok(()) };
        match &group.ways {
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
                    if let Some(value) = value {
                        deed.perform(value, turn, false);
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
        Census { people: vec![0; groups], first: vec![AgentId::MAX; groups], sums: vec![0.0; groups * self.numbers] }
    }

    fn count(&self, census: &mut Census, _: u32, (): &(), person: Person<'_>, sight: Sight<'_>) {
        let group = self.cells.of(person, sight);
        census.people[group] += 1;
        census.first[group] = census.first[group].min(person.id);
        let sums = &mut census.sums[group * self.numbers..][..self.numbers];
        for (slot, sum) in sums.iter_mut().enumerate() {
            *sum += sight.number(NumberSlot(slot));
        }
    }

    fn merge(&self, mut left: Census, right: Census) -> Census {
        left.people.iter_mut().zip(right.people).for_each(|(sum, more)| *sum += more);
        left.first.iter_mut().zip(right.first).for_each(|(first, other)| *first = other.min(*first));
        left.sums.iter_mut().zip(right.sums).for_each(|(sum, more)| *sum += more);
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
            let known = Known { cell, people, round: session.round, means: &means, past: &group.past };
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
    /// What a group is asked.
    fn question(&self, cell: usize, context: &prompts::Context, means: &[f64]) -> Result<Question, Fault> {
        let (want, purpose) = self.want();
        let (turn, question) = self.prompts.told(context, !self.asked.is_empty())?;
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
            [deed @ Deed { right: Some(slot), .. }] => {
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
        let (samples, purpose) = wanted(&self.deeds, false);
        let share = || Want::number(0.0, OF);
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
        let usable: Vec<Vec<Value>> = settled
            .iter()
            .filter(|settled| settled.defaulted.is_none())
            .map(|settled| values(settled.value.clone()))
            .collect();
        let ways = match (usable.first(), self.asked.is_empty()) {
            (Some(_), true) => {
                Some(Ways::Samples(usable.into_iter().map(|values| values.into_iter().map(Some).collect()).collect()))
            }
            (Some(values), false) => self.shares(values).map(Ways::Shares),
            (None, _) => None,
        };
        ways.unwrap_or_else(|| {
            let default: Vec<Option<Value>> = self.deeds.iter().map(|deed| deed.default.clone()).collect();
            Ways::Samples(if default.iter().any(Option::is_some) { vec![default] } else { Vec::new() })
        })
    }

    /// Numbers of people as probabilities, summed up. `None`: of some act nobody chooses anything, which is no answer.
    fn shares(&self, values: &[Value]) -> Option<Vec<Vec<f64>>> {
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
            let all: f64 = people.iter().sum();
            let mut sum = 0.0;
            let summed = people.iter().map(|n| {
                sum += n;
                sum / all
            });
            (all > 0.0).then(|| summed.collect())
        };
        self.deeds.iter().enumerate().map(of_act).collect()
    }

    /// What a group does, in words.
    fn did(&self, ways: &Ways) -> String {
        match ways {
            Ways::Shares(of_acts) => {
                let of_act = |(deed, summed): (&Deed, &Vec<f64>)| {
                    let mut before = 0.0;
                    let parts = options(deed).unwrap_or_default().iter().zip(summed).map(|(option, sum)| {
                        let share = sum - before;
                        before = *sum;
                        format!("{option} {} %", plain((share * 100.0).round()))
                    });
                    format!("{}: {}", deed.name, parts.collect::<Vec<_>>().join(", "))
                };
                self.deeds.iter().zip(of_acts).map(of_act).collect::<Vec<_>>().join("; ")
            }
            Ways::Samples(samples) => {
                let of_sample = |values: &Vec<Option<Value>>| {
                    let done = self.deeds.iter().zip(values).map(|(deed, value)| deed.done(value.as_ref()));
                    done.collect::<Vec<_>>().join("; ")
                };
                match samples.is_empty() {
                    true => "nobody decided anything".into(),
                    false => samples.iter().map(of_sample).collect::<Vec<_>>().join(" | "),
                }
            }
        }
    }
}
