//! What agents saw in a round, and what they chose: what others can learn from.

use super::state::Society;
use crate::AgentId;
use crate::interface::{ActionArgument, NumberSlot};
use crate::machine::RoundReport;
use std::collections::BTreeSet;

/// What the agents of a round saw and chose, by agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// Who they are, by id.
    pub agents: Vec<AgentId>,
    /// Their cohorts.
    pub cohorts: Vec<u16>,
    /// The first act of each, in words ([`crate::interface::ActionKind::choice`]), if it did anything.
    pub choices: Vec<Option<String>>,
    /// The number of that act, if it has one.
    pub values: Vec<Option<f64>>,
    /// The numbers that each saw, by number of the observation.
    pub seen: Vec<Vec<f64>>,
}

impl Society {
    /// Returns what agents saw and chose in the last round, of which this is the report. In a society over several processes, the process
    /// of shard 0 has all of it only if acts and numbers were gathered ([`super::Gather`]).
    #[must_use]
    pub fn steps(&self, report: &RoundReport) -> Steps {
        // Those who died at the end of the round took part in it, those who were born then did not.
        let newborns: BTreeSet<AgentId> = report.births.iter().map(|(child, _)| *child).collect();
        let died: BTreeSet<AgentId> = report.deaths.iter().copied().collect();
        let took_part = |who: &AgentId| !newborns.contains(who) && (!self.is_dead(*who) || died.contains(who));
        let agents: Vec<AgentId> = (0..self.ids_assigned()).filter(took_part).collect();
        let (mut choices, mut values) = (vec![None; agents.len()], vec![None; agents.len()]);
        for act in self.acts().flat_map(|block| &block.rows) {
            let (row, kind) = (agents.binary_search(&act.who), self.interface.acts.get(usize::from(act.kind)));
            let (Ok(row), Some(kind)) = (row, kind) else { continue };
            if choices[row].is_none() {
                choices[row] = Some(kind.choice(act.value).into_owned());
                let has_number = kind.argument.has_number() && kind.argument != ActionArgument::Nothing;
                values[row] = has_number.then_some(act.value);
            }
        }
        let cohorts = self.cohort_of_each();
        let cohorts = agents.iter().map(|who| cohorts.get(*who as usize).copied().unwrap_or_default()).collect();
        let of_agents = |slot: usize| {
            let all = self.seen(NumberSlot(slot));
            agents.iter().map(|who| all.get(*who as usize).copied().unwrap_or(f64::NAN)).collect()
        };
        let seen = (0..self.interface.numbers().count()).map(of_agents).collect();
        Steps { agents, cohorts, choices, values, seen }
    }
}
