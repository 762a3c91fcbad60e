//! Agents that share an episode.

use super::Seen;
use polity_kernel::policy::PolicySetup;
use polity_kernel::{AgentId, Invalid};
use polity_nn::Array;
use schemars::JsonSchema;
use serde::Deserialize;

/// Whose views and decisions are put together in learning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Together {
    /// Each agent's alone.
    Alone,
    /// Those of all agents of an episode.
    #[default]
    Episode,
    /// Those of as many agents of different episodes, as a placebo: the same work, but the agents have nothing in common.
    Strangers,
}

/// The agents of a cohort in teams: those that learn together.
#[derive(Clone, Debug)]
pub struct Teams {
    first: AgentId,
    seats: usize,
    count: usize,
    strangers: bool,
}

impl Teams {
    /// Groups the agents of a cohort.
    ///
    /// # Errors
    /// A world without episodes, or a cohort that holds a part of an episode.
    pub fn open(together: Together, setup: &PolicySetup<'_>) -> Result<Self, Invalid> {
        let wrong = |message: String| Invalid { key: "kind".into(), message };
        let message =
            || format!("the world `{}` has no episodes, so it does not say which agents learn together", setup.world);
        let seating = setup.seating.ok_or_else(|| wrong(message()))?;
        let (seats, first, agents) = (seating.seats, setup.cohort.start, setup.cohort.end - setup.cohort.start);
        let message = format!(
            "an episode of `{}` has {seats} seats, and the cohort has the agents {first} to {}; it must hold whole episodes",
            setup.world,
            setup.cohort.end.saturating_sub(1),
        );
        Invalid::unless(seating.fills(setup.cohort), "kind", message)?;
        Ok(Teams::new(first, agents, seats, together))
    }

    /// Groups so many agents from the first on, of whom so many share an episode.
    #[must_use]
    pub fn new(first: AgentId, agents: u32, seats: u32, together: Together) -> Self {
        let seats = if together == Together::Alone { 1 } else { seats };
        let (count, seats) = ((agents / seats) as usize, seats as usize);
        Teams { first, seats, count, strangers: together == Together::Strangers }
    }

    /// Groups the agents from 0 to below `agents` in the same way.
    #[must_use]
    pub fn among(&self, agents: usize) -> Self {
        Teams { first: 0, count: agents / self.seats, ..*self }
    }

    /// Returns the number of agents of a team.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.seats
    }

    /// Returns the number of teams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the episode of an agent of the cohort, from 0.
    #[must_use]
    pub fn of(&self, who: AgentId) -> usize {
        (who - self.first) as usize / self.seats
    }

    /// Returns who sits where in a team.
    fn member(&self, team: usize, seat: usize) -> AgentId {
        let episode = if self.strangers { (team + seat) % self.count } else { team };
        self.first + (episode * self.seats + seat) as AgentId
    }

    /// Returns the members of an agent's team: itself, then those on the seats after its own, the first seat after the last.
    #[must_use]
    pub fn from(&self, who: AgentId) -> Vec<AgentId> {
        let (episode, own) = (self.of(who), (who - self.first) as usize % self.seats);
        let team = if self.strangers { (episode + self.count * self.seats - own) % self.count } else { episode };
        (0..self.seats).map(|at| self.member(team, (own + at) % self.seats)).collect()
    }

    /// Returns the rows of the members of a team in what is seen, in order of seat; `None` for those who are not there.
    pub fn rows(&self, team: usize, seen: &Seen) -> Vec<Option<usize>> {
        (0..self.seats).map(|seat| seen.row(self.member(team, seat))).collect()
    }

    /// Returns what the team of each agent sees ([`own_first`]). Zeros stand for those who are not there.
    #[must_use]
    pub fn views(&self, seen: &Seen) -> Array {
        let width = seen.inputs.columns();
        let mut all = Array::zeros(self.count * self.seats, width);
        let mut places = vec![0u32; seen.agents.len()];
        for team in 0..self.count {
            for (seat, row) in self.rows(team, seen).into_iter().enumerate() {
                let Some(row) = row else { continue };
                let place = team * self.seats + seat;
                all.data_mut()[place * width..(place + 1) * width].copy_from_slice(seen.inputs.row(row));
                places[row] = place as u32;
            }
        }
        own_first(&all, self.seats).pick(&places)
    }
}

/// Returns for each member what it has, then what those on the seats after its own have, the first seat after the last. `of`: a row for each
/// member, team by team.
#[must_use]
pub fn own_first(of: &Array, seats: usize) -> Array {
    let mut data = Vec::with_capacity(of.data().len() * seats);
    for row in 0..of.rows() {
        let (team, own) = (row / seats, row % seats);
        (0..seats).for_each(|at| data.extend_from_slice(of.row(team * seats + (own + at) % seats)));
    }
    Array::new(of.rows(), seats * of.columns(), data)
}

/// Returns a row for each choice, with a 1 at the choice and 0 elsewhere.
#[must_use]
pub fn one_hot(choices: impl Iterator<Item = usize>, columns: usize) -> Array {
    let mut rows = Array::EMPTY;
    let mut row = vec![0.0; columns];
    for choice in choices {
        row.fill(0.0);
        row[choice] = 1.0;
        rows.push(&row);
    }
    rows
}
