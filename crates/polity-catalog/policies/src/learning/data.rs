//! Data: what agents of another run saw and chose.

use super::senses::about_turns;
use super::{NONE, Replay, Seen, Senses, Teams};
use polity_kernel::interface::{NumberSlot, Observations};
use polity_kernel::policy::PolicySetup;
use polity_kernel::population::{Cell, Column, Table};
use polity_kernel::rng::{Draws, Stream};
use polity_kernel::scenario::StepsSource;
use polity_kernel::{AgentId, Invalid};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The data that a learner learns from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DataSource {
    /// What agents saw and chose: the table `steps` of a run with `record: {steps: true}`, as a file: {file: NAME}.
    pub steps: StepsSource,
    /// The cohort whose agents are learned from. Default: those of all cohorts.
    #[serde(default)]
    pub cohort: Option<String>,
    /// The outcomes of their choices.
    #[serde(default)]
    pub outcomes: Outcomes,
}

/// Outcomes of recorded choices: rewards and ends of episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcomes {
    /// As recorded.
    #[default]
    Recorded,
    /// Shuffled among agents and rounds, as a placebo: the same work, but no information about what a choice led to.
    Shuffled,
}

/// What a learner from data learns from.
#[derive(Clone, Debug, Default)]
pub struct Data(Option<Given>);

/// The data.
#[derive(Clone, Debug)]
struct Given {
    /// What they did. Agents are numbered by their order in `agents`.
    replay: Replay,
    /// The recorded agents, in order.
    agents: Vec<AgentId>,
}

/// The column of a number in a table of steps.
fn column_of(number: &str) -> String {
    format!("observation.{number}")
}

impl Data {
    /// Reads data.
    ///
    /// # Errors
    /// A table without what the learner sees, or with choices that it does not have.
    pub fn open(source: Option<&DataSource>, senses: &Senses, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let Some(source) = source else { return Ok(Data(None)) };
        let wrong = |key: &str, message: String| Invalid { key: format!("data.{key}"), message };
        let table =
            setup.steps(&source.steps).map_err(|error| wrong(&format!("steps.{}", error.key), error.message))?;
        let steps = Steps::read(table, senses, setup).map_err(|message| wrong("steps", message))?;
        let (agents, mut replay) =
            steps.replay(source.cohort.as_deref(), senses).map_err(|message| wrong("cohort", message))?;
        if source.outcomes == Outcomes::Shuffled {
            let (seed, whose) = (setup.shared_context.seed, setup.cohort.start);
            replay.shuffle_outcomes(&mut Draws::new(seed, Stream::Learner, u32::MAX, whose));
        }
        Ok(Data(Some(Given { replay, agents })))
    }

    /// Returns what is learned from: the data, or what the learner's own agents did if there are none.
    #[must_use]
    pub fn or<'a>(&'a self, own: &'a Replay) -> &'a Replay {
        self.0.as_ref().map_or(own, |given| &given.replay)
    }

    /// Returns the teams to learn from: those of the data, or `own` if there are no data. As in any world with episodes, recorded agents with
    /// consecutive numbers are a team, and the first number is a multiple of the team's size.
    ///
    /// # Errors
    /// Data with a part of a team.
    pub fn teams(&self, own: &Teams) -> Result<Teams, Invalid> {
        let Some(Given { agents, .. }) = &self.0 else { return Ok(own.clone()) };
        let seats = own.seats() as AgentId;
        for team in agents.chunks(own.seats()) {
            let whole = team[0].is_multiple_of(seats) && (team[0]..team[0] + seats).eq(team.iter().copied());
            let message = format!(
                "agent {} is not the first of a whole team: a team of {seats} has consecutive numbers, and the first is a multiple of {seats}",
                team[0],
            );
            Invalid::unless(whole, "data.steps", message)?;
        }
        Ok(own.among(agents.len()))
    }

    /// Returns whether there are data.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Returns how many of the last rounds the learner has to remember. `most`: if it has no data.
    #[must_use]
    pub fn remembers(&self, most: u32) -> u32 {
        if self.is_given() { 1 } else { most }
    }
}

/// Returns a column of numbers, all of which are there.
fn numbers<'t>(table: &'t Table, name: &str) -> Result<&'t [f64], String> {
    let place = table.index(name).map_err(|error| error.to_string())?;
    match table.columns().nth(place) {
        Some((_, Column::Number(values))) => match values.iter().position(|value| value.is_nan()) {
            None => Ok(values),
            Some(row) => Err(format!("column `{name}`: the number is missing in {}", table.place(row))),
        },
        _ => Err(format!("column `{name}`: holds words, but numbers are needed")),
    }
}

/// The rows of a table of steps.
struct Steps<'a> {
    table: &'a Table,
    rounds: Vec<u32>,
    agents: Vec<AgentId>,
    choices: Vec<u16>,
    seen: Observations,
}

impl<'a> Steps<'a> {
    fn read(table: &'a Table, senses: &Senses, setup: &PolicySetup<'_>) -> Result<Self, String> {
        let whole = |name: &str| {
            let of = |value: &f64| match value.fract() == 0.0 && (0.0..4_294_967_295.0).contains(value) {
                true => Ok(*value as u32),
                false => Err(format!("the column `{name}` has {value}, but needs whole numbers from 0 on")),
            };
            numbers(table, name)?.iter().map(of).collect::<Result<Vec<u32>, String>>()
        };
        let mut seen = Observations::new(setup.interface, table.rows());
        let sees = senses.numbers();
        for (slot, field) in setup.interface.numbers().enumerate() {
            let name = field.name.as_ref();
            if sees.iter().any(|seen| seen == name) || senses.is_outcome(NumberSlot(slot)) || about_turns(name) {
                seen.put_each(NumberSlot(slot), numbers(table, &column_of(name))?.iter().copied());
            }
        }
        let known = senses.choices();
        let place = table.index("choice").map_err(|error| error.to_string())?;
        let (_, column) = table.columns().nth(place).ok_or("the table has no column `choice`")?;
        let choice = |row: usize| match column.cell(row) {
            Cell::Text("") => Ok(NONE),
            Cell::Text(name) => known.iter().position(|known| known == name).map(|i| i as u16).ok_or_else(|| {
                format!("{} chose `{name}`, but the choices here are {}", table.place(row), known.join(", "))
            }),
            Cell::Number(value) if value.is_nan() => Ok(NONE),
            Cell::Number(value) => {
                Err(format!("the column `choice` has the number {value}, but needs names of choices"))
            }
        };
        let choices = (0..table.rows()).map(choice).collect::<Result<Vec<u16>, String>>()?;
        Ok(Steps { table, rounds: whole("round")?, agents: whole("agent")?, choices, seen })
    }

    /// Returns the agents of a cohort in order, and its rows as a replay memory, in which agents are numbered in that order.
    fn replay(&self, cohort: Option<&str>, senses: &Senses) -> Result<(Vec<AgentId>, Replay), String> {
        let mut order: BTreeMap<(u32, AgentId), usize> = BTreeMap::new();
        let place = cohort.map(|_| self.table.index("cohort").map_err(|error| error.to_string())).transpose()?;
        let column = place.and_then(|place| self.table.columns().nth(place));
        for row in 0..self.table.rows() {
            let of_cohort = column.is_none_or(|(_, column)| match column.cell(row) {
                Cell::Text(name) => Some(name) == cohort,
                Cell::Number(_) => false,
            });
            if of_cohort && let Some(other) = order.insert((self.rounds[row], self.agents[row]), row) {
                return Err(format!(
                    "{} and {} are both about agent {} in round {}; give agents of different runs different numbers",
                    self.table.place(other),
                    self.table.place(row),
                    self.agents[row],
                    self.rounds[row],
                ));
            }
        }
        let agents: Vec<AgentId> = order.keys().map(|(_, who)| *who).collect::<BTreeSet<_>>().into_iter().collect();
        let mut replay = Replay::default();
        let mut rows = order.into_iter().peekable();
        let mut next = None;
        while let Some(((round, _), _)) = rows.peek() {
            let round = *round;
            if next.is_some_and(|next| next < round) {
                // What comes after a missing round does not follow from what was before it.
                replay.push(Seen::default(), Vec::new(), true, u32::MAX);
            }
            let (mut seen, mut choices) = (Seen::default(), Vec::new());
            while let Some(((_, who), row)) = rows.next_if(|((other, _), _)| *other == round) {
                senses.count(&mut seen, who, self.seen.row(row));
                choices.push(self.choices[row]);
            }
            seen.agents.iter_mut().for_each(|who| *who = agents.partition_point(|other| other < who) as AgentId);
            replay.push(seen, choices, true, u32::MAX);
            next = Some(round + 1);
        }
        match (replay.is_empty(), cohort) {
            (false, _) => Ok((agents, replay)),
            (true, Some(cohort)) => Err(format!("the table of steps has no cohort `{cohort}`")),
            (true, None) => Err("the table of steps has no rows".into()),
        }
    }
}
