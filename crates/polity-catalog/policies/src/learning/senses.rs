//! What a learner sees of a world, and what it chooses from.

use super::{Decision, Returns};
use polity_kernel::AgentId;
use polity_kernel::Invalid;
use polity_kernel::interface::{ActionArgument, NumberSlot, Observation};
use polity_kernel::policy::{PolicySetup, Seating, Turn};
use polity_kernel::rng::Draws;
use polity_nn::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest bound of a number that a learner chooses.
const LARGEST: f64 = 1e6;
/// The most choices of a learner.
const MOST_CHOICES: usize = 1_000;
/// What is added to the logit of a choice that is not offered.
const FORBIDDEN: f32 = -1e9;

/// What a learner sees of a world, and what it chooses from.
#[derive(Clone, Debug)]
pub struct Senses {
    numbers: Vec<(String, Sight)>,
    seating: Seating,
    /// The numbers that make up the reward, and their weights.
    reward: Vec<(NumberSlot, f64)>,
    active: Option<NumberSlot>,
    ended: Option<NumberSlot>,
    cut: Option<NumberSlot>,
    choices: Vec<Choice>,
}

/// A number that a learner sees.
#[derive(Clone, Copy, Debug)]
enum Sight {
    /// One that the world shows.
    Shown(NumberSlot),
    /// 1 for the agents on this seat of their episodes, of those that the cohort takes; 0 for others.
    Seat(AgentId),
    /// 1 for the agents who follow this policy of so many, 0 for others.
    Policy(AgentId, AgentId),
}

/// What an agent sees of itself by default, by which agents that share a network are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Nothing: all agents are alike.
    Shared,
    /// Its seat, if an episode has several.
    Seat,
    /// Which of so many policies it follows: agent `k` follows policy `k` modulo this number.
    Policy(u32),
}

/// A choice: an action, or one option of an action; or an action that takes a number.
#[derive(Clone, Debug)]
struct Choice {
    name: String,
    act: u16,
    takes: Takes,
    /// Shows 1 when the action is offered.
    offered: Option<NumberSlot>,
}

/// What an action takes.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// This value.
    Value(f64),
    /// A number from the first to the second.
    Between(f64, f64),
}

/// The reward that an agent learns from.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "the name of a number, or names of numbers with their weights")]
pub enum RewardSource {
    /// A number that the world shows.
    Number(String),
    /// The sum of several numbers, each times its weight: a linear utility of several objectives.
    Weighted(BTreeMap<String, f64>),
}

impl Default for RewardSource {
    fn default() -> Self {
        RewardSource::Number("last-reward".into())
    }
}

impl RewardSource {
    /// Returns the numbers and their weights.
    fn parts(&self) -> Vec<(&str, f64)> {
        match self {
            RewardSource::Number(name) => vec![(name, 1.0)],
            RewardSource::Weighted(weights) => weights.iter().map(|(name, weight)| (name.as_str(), *weight)).collect(),
        }
    }

    fn bind(&self, setup: &PolicySetup<'_>) -> Result<Vec<(NumberSlot, f64)>, Invalid> {
        let parts = self.parts();
        Invalid::unless(!parts.is_empty(), "reward", "name at least one number")?;
        let bind = |(name, weight): (&str, f64)| {
            let slot = setup.number(name).map_err(|error| Invalid { key: "reward".into(), ..error })?;
            Invalid::unless(weight.is_finite(), "reward", format!("the weight of `{name}` is not a finite number"))?;
            Ok((slot, weight))
        };
        parts.into_iter().map(bind).collect()
    }
}

/// The agents of a cohort in a round, in order of id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Who they are.
    pub agents: Vec<AgentId>,
    /// What each sees.
    pub inputs: Array,
    /// What each got in the last round.
    pub rewards: Vec<f32>,
    /// Whether the last round ended the episode of each. What it sees is then the start of the next one.
    pub ended: Vec<bool>,
    /// Whether that episode was only cut off.
    pub cut: Vec<bool>,
    /// Whether it is the turn of each.
    pub active: Vec<bool>,
    /// What is added to the logits of the choices of each: a large negative number for those that are not offered. If agents choose numbers,
    /// there is a column for each of them.
    pub mask: Array,
}

impl Seen {
    /// Returns the row of an agent.
    #[must_use]
    pub fn row(&self, who: AgentId) -> Option<usize> {
        // Usually the agents are consecutive.
        let guess = who.checked_sub(*self.agents.first()?)? as usize;
        match self.agents.get(guess) {
            Some(found) if *found == who => Some(guess),
            _ => self.agents.binary_search(&who).ok(),
        }
    }

    /// Returns the agents of the first, then those of the second.
    #[must_use]
    pub fn merged(mut self, later: Seen) -> Seen {
        self.agents.extend(later.agents);
        self.inputs.append(&later.inputs);
        self.rewards.extend(later.rewards);
        self.ended.extend(later.ended);
        self.cut.extend(later.cut);
        self.active.extend(later.active);
        self.mask.append(&later.mask);
        self
    }
}

/// Draws one of the choices that are offered, by their mask ([`Seen::mask`]); the first if there are none.
pub fn any_offered(mask: &[f32], draws: &mut Draws) -> u16 {
    let open: Vec<u16> = (0u16..).zip(mask).filter(|x| *x.1 == 0.0).map(|x| x.0).collect();
    open.get(draws.below(open.len().max(1) as u64) as usize).copied().unwrap_or_default()
}

/// Returns whether a number is about turns and rewards.
pub(super) fn about_turns(name: &str) -> bool {
    ["active", "episode-ended", "episode-cut"].contains(&name)
        || name.starts_with("may-")
        || name.starts_with("last-reward")
}

impl Senses {
    /// Binds a learner to a world. `observe`: the numbers that it sees; by default all, except those about turns and rewards. Besides what
    /// the world shows, an agent can see its seat in its episode: `seat-0` is 1 for the agents on the first seat, 0 for others, and so on;
    /// and the policy that it follows, of several in one network: `policy-0` and so on. `ended`: the number that is 1 when the last round
    /// ended an agent's episode; by default that of the world. The agents decide by a `D`.
    ///
    /// # Errors
    /// A world without numbers, without such numbers, without a reward, or without actions for such decisions.
    pub fn open<D: Decision>(
        observe: Option<&[String]>,
        reward: &RewardSource,
        ended: Option<&str>,
        identity: Identity,
        setup: &PolicySetup<'_>,
    ) -> Result<Self, Invalid> {
        let seating = setup.seating.unwrap_or(Seating { first: 0, seats: 1 });
        let shown = setup.interface.numbers().map(|field| field.name.to_string());
        let parts = reward.parts();
        let of_reward = |name: &str| parts.iter().any(|(part, _)| *part == name) || ended == Some(name);
        let all = shown.filter(|name| !of_reward(name) && !about_turns(name));
        let (kind, of) = match identity {
            Identity::Shared => ("", 0),
            Identity::Seat => ("seat", Some(seating.seats).filter(|seats| *seats > 1).unwrap_or(0)),
            Identity::Policy(policies) => ("policy", policies),
        };
        let own = (0..of).map(|k| format!("{kind}-{k}"));
        let names: Vec<String> = match (observe, identity) {
            (None, _) => all.chain(own).collect(),
            // Without it all policies would be one.
            (Some(observe), Identity::Policy(_)) => observe.iter().cloned().chain(own).collect(),
            (Some(observe), _) => observe.to_vec(),
        };
        let message = format!("the world `{}` shows no numbers to learn from", setup.world);
        Invalid::unless(!names.is_empty(), if observe.is_some() { "observe" } else { "kind" }, message)?;
        let numbered = |name: &str, kind: &str| name.strip_prefix(kind).and_then(|k| k.parse::<AgentId>().ok());
        let policies = names.iter().filter(|name| numbered(name, "policy-").is_some()).count() as AgentId;
        let slot = |name: String| {
            let sight = match (setup.number(&name), numbered(&name, "seat-"), numbered(&name, "policy-")) {
                (Ok(slot), ..) => Sight::Shown(slot),
                (_, Some(seat), _) if seat < seating.seats => Sight::Seat(seat),
                (.., Some(policy)) if policy < policies => Sight::Policy(policy, policies),
                (Err(error), ..) => return Err(Invalid { key: "observe".into(), ..error }),
            };
            Ok((name, sight))
        };
        let numbers = names.into_iter().map(slot).collect::<Result<_, Invalid>>()?;
        let choices: Vec<Choice> = all_choices(setup)
            .into_iter()
            .filter(|choice| matches!(choice.takes, Takes::Between(..)) == D::NUMBERS)
            .collect();
        let message = match D::NUMBERS {
            true => format!("the world `{}` has no action that takes a number within bounds", setup.world),
            false if setup.number_act().is_ok() => {
                format!(
                    "the world `{}` has no action with choices that can be learned; its actions take numbers",
                    setup.world
                )
            }
            false => {
                format!(
                    "the world `{}` has no action without numbers, words or tables that can be learned",
                    setup.world
                )
            }
        };
        Invalid::unless(!choices.is_empty(), "kind", message)?;
        let message =
            format!("the world `{}` has {} choices; a learner has at most {MOST_CHOICES}", setup.world, choices.len());
        Invalid::unless(choices.len() <= MOST_CHOICES, "kind", message)?;
        Ok(Senses {
            numbers,
            seating,
            reward: reward.bind(setup)?,
            active: setup.number("active").ok(),
            ended: match ended {
                Some(name) => Some(setup.number(name).map_err(|error| Invalid { key: "ended".into(), ..error })?),
                None => setup.number("episode-ended").ok(),
            },
            cut: if ended.is_some() { None } else { setup.number("episode-cut").ok() },
            choices,
        })
    }

    /// Refuses a world without episodes, for a learner that learns from whole ones.
    ///
    /// # Errors
    /// Such a world.
    pub fn check_episodes(&self, setup: &PolicySetup<'_>) -> Result<(), Invalid> {
        let message = format!("the world `{}` has no episodes, which it learns from", setup.world);
        Invalid::unless(self.ended.is_some(), "kind", message)
    }

    /// Returns the names of the numbers that it sees.
    #[must_use]
    pub fn numbers(&self) -> Vec<String> {
        self.numbers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns whether a number is part of the reward, or shows the end of an episode.
    #[must_use]
    pub fn is_outcome(&self, slot: NumberSlot) -> bool {
        self.ended == Some(slot) || self.reward.iter().any(|(part, _)| *part == slot)
    }

    /// Returns the names of its choices.
    #[must_use]
    pub fn choices(&self) -> Vec<String> {
        self.choices.iter().map(|choice| choice.name.clone()).collect()
    }

    /// Returns the bytes that an agent takes in what the cohort sees of a round.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        4 * (self.numbers.len() + self.choices.len()) + 16
    }

    /// Returns what an agent got in the last round, and whether that ended its episode.
    #[must_use]
    fn outcome(&self, seen: Observation<'_>) -> (f64, bool) {
        let reward = self.reward.iter().map(|(slot, weight)| weight * seen.number(*slot)).sum();
        (reward, self.ended.is_some_and(|ended| seen.number(ended) == 1.0))
    }

    /// Adds an agent.
    pub fn count(&self, seen: &mut Seen, who: AgentId, observation: Observation<'_>) {
        let number = |slot: NumberSlot| observation.number(slot);
        let (reward, ended) = self.outcome(observation);
        let sight = |(_, sight): &(String, Sight)| match sight {
            Sight::Shown(slot) => number(*slot) as f32,
            Sight::Seat(seat) => f32::from(u8::from(self.seating.seat(who) == *seat)),
            Sight::Policy(policy, of) => f32::from(u8::from(who % of == *policy)),
        };
        let inputs: Vec<f32> = self.numbers.iter().map(sight).collect();
        let offered = |choice: &Choice| choice.offered.is_none_or(|slot| number(slot) != 0.0);
        let mask: Vec<f32> = self.choices.iter().map(|choice| if offered(choice) { 0.0 } else { FORBIDDEN }).collect();
        seen.agents.push(who);
        seen.inputs.push(&inputs);
        seen.rewards.push(reward as f32);
        seen.ended.push(ended);
        seen.cut.push(self.cut.is_some_and(|cut| number(cut) == 1.0));
        seen.active.push(self.active.is_none_or(|active| number(active) != 0.0) && mask.contains(&0.0));
        seen.mask.push(&mask);
    }

    /// An agent's turn: counts what it got in the last round, and performs its decision, if it has one.
    pub fn act<D: Decision>(&self, returns: &mut Returns, turn: &mut Turn<'_>, decision: Option<D>) {
        let (reward, ended) = self.outcome(turn.observation);
        returns.add(reward, ended);
        if let Some(decision) = decision {
            decision.perform(self, turn);
        }
    }

    /// Performs a choice.
    pub fn choose(&self, turn: &mut Turn<'_>, choice: u16) {
        if let Some(Choice { act, takes: Takes::Value(value), .. }) = self.choices.get(usize::from(choice)) {
            turn.act(*act, *value);
        }
    }

    /// Performs all actions that take a number and are offered. `numbers`: from -1 for the lowest to 1 for the highest.
    pub fn set(&self, turn: &mut Turn<'_>, numbers: &[f32]) {
        for (choice, number) in self.choices.iter().zip(numbers) {
            let offered = choice.offered.is_none_or(|slot| turn.observation.number(slot) != 0.0);
            if let Choice { act, takes: Takes::Between(low, high), .. } = choice
                && offered
            {
                let part = (f64::from(*number) + 1.0) / 2.0;
                turn.act(*act, (low + part * (high - low)).clamp(*low, *high));
            }
        }
    }
}

/// Returns all choices that a world has, and all actions that take a number within bounds.
fn all_choices(setup: &PolicySetup<'_>) -> Vec<Choice> {
    let mut choices = Vec::new();
    for (act, kind) in (0u16..).zip(&setup.interface.acts) {
        let offered = setup.number(&format!("may-{}", kind.name)).ok();
        match &kind.argument {
            ActionArgument::Nothing => {
                choices.push(Choice { name: kind.name.to_string(), act, takes: Takes::Value(0.0), offered });
            }
            ActionArgument::Number { low, high } if low.abs() <= LARGEST && high.abs() <= LARGEST => {
                choices.push(Choice { name: kind.name.to_string(), act, takes: Takes::Between(*low, *high), offered });
            }
            ActionArgument::Choice(options) => choices.extend((0..options.len()).map(|option| {
                let value = option as f64;
                Choice { name: kind.choice(value).into_owned(), act, takes: Takes::Value(value), offered }
            })),
            _ => {}
        }
    }
    choices
}
